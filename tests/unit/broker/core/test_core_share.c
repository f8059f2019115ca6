/* The broker's core: what one key may take of it, jobs and queues. It leaves as much to the others.
 */
#include "broker/core/tasks/tasks.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static int open_core(void **state)
{
    static struct core_fixture f;

    core_fixture_open(&f, 1, LAYOUT_REPLICATED);
    *state = &f;
    return 0;
}

static int close_core(void **state)
{
    core_fixture_close(*state);
    return 0;
}

/* A rank says HELLO for that job, with that key. MUSTER_OK: it is in. */
static unsigned join_rank(struct core_fixture *f, const char *key_jobs, const char *job,
                          uint64_t rank, uint64_t world_size)
{
    static uint64_t lives = 5000;
    struct wire_msg hello = {.type = WIRE_HELLO};
    const struct wire_msg *refused;

    hello.up = (struct wire_up){.job = job,
                                .role = rank == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                .rank = rank,
                                .incarnation = ++lives};
    hello.u.hello = (struct wire_hello){.nonce = 1,
                                        .world_size = world_size,
                                        .host = "h",
                                        .pid = 1,
                                        .layout = LAYOUT_REPLICATED,
                                        .checkpoint_dir = "/c",
                                        .speaks = WIRE_SPEAKS};
    f->key_jobs = key_jobs;
    core_feed(f, lives, &hello);
    refused = core_sent(f, lives, WIRE_REFUSED);
    if (refused != NULL)
        return (unsigned)refused->u.refused.code;
    assert_non_null(core_sent(f, lives, WIRE_WELCOME));
    return MUSTER_OK;
}

/* A job of one rank. */
static unsigned join(struct core_fixture *f, const char *key_jobs, const char *prefix,
                     unsigned number)
{
    char job[JOB_NAME_MAX + 1];

    snprintf(job, sizeof job, "%s%u", prefix, number);
    return join_rank(f, key_jobs, job, 0, 1);
}

static void one_key_takes_half_of_the_jobs_and_another_half_of_the_rest(void **state)
{
    struct core_fixture *f = *state;
    unsigned first = 0, second = 0;

    while (join(f, "a*", "a", first) == MUSTER_OK)
        first++;
    assert_int_equal(first, CORE_JOBS_MAX / 2);
    while (join(f, "b*", "b", second) == MUSTER_OK)
        second++;
    assert_int_equal(second, CORE_JOBS_MAX / 4);
    assert_int_equal(join(f, "a*", "a", first), MUSTER_E_BUSY);
    assert_int_equal(join(f, "c*", "c", 1), MUSTER_OK);
}

static void a_key_for_all_jobs_and_a_user_without_one_have_no_share(void **state)
{
    struct core_fixture *f = *state;
    unsigned count = 0;

    while (join(f, "a*", "a", count) == MUSTER_OK)
        count++;
    assert_int_equal(join(f, "*", "d", 1), MUSTER_OK);
    assert_int_equal(join(f, NULL, "d", 2), MUSTER_OK);
}

/* A job of that key that runs is not touched, and one that ends makes room. */
static void a_job_that_ends_makes_room_for_the_next(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg leave = {.type = WIRE_LEAVE};
    unsigned count = 0;

    while (join(f, "a*", "a", count) == MUSTER_OK)
        count++;
    leave.up = (struct wire_up){.job = "a0",
                                .role = ROLE_CHIEF,
                                .incarnation = job_find(f->core, "a0")->peers[0]->incarnation,
                                .request = 1,
                                .generation = 1};
    leave.u.leave.why = LEAVE_FINISHED;
    core_feed(f, job_find(f->core, "a0")->peers[0]->route, &leave);
    assert_int_equal(join(f, "a*", "a", count), MUSTER_OK);
    assert_int_equal(join(f, "a*", "a", count + 1), MUSTER_E_BUSY);
}

static unsigned open_queue(struct core_fixture *f, const char *key_jobs, const char *job,
                           unsigned number)
{
    char name[32];
    struct wire_msg open = {.type = WIRE_QUEUE_OPEN};
    const uint64_t route = 90000 + number;

    snprintf(name, sizeof name, "q%u", number);
    open.up = (struct wire_up){.job = job, .role = ROLE_CHIEF, .incarnation = 70000 + number};
    open.u.queue_open = (struct wire_queue_open){.nonce = 1, .name = name};
    f->key_jobs = key_jobs;
    core_feed(f, route, &open);
    return (unsigned)core_sent(f, route, WIRE_QUEUE_OPENED)->u.queue_opened.code;
}

static void one_key_takes_half_of_the_queues(void **state)
{
    struct core_fixture *f = *state;
    unsigned count = 0;

    while (open_queue(f, "a*", "a", count) == MUSTER_OK)
        count++;
    assert_int_equal(count, TASK_QUEUES_MAX / 2);
    assert_int_equal(open_queue(f, "b", "b", count), MUSTER_OK);
    assert_int_equal(open_queue(f, NULL, "a", count + 1), MUSTER_OK);
    assert_int_equal(open_queue(f, "a*", "a", 0), MUSTER_OK); /* one that is there is attached */
}

/* A connection that speaks bundles may say HELLO for many processes. */
static void one_key_takes_half_of_the_places_for_processes(void **state)
{
    struct core_fixture *f = *state;
    size_t count = 0;

    f->core->options.nodes_max = 1000;
    while (join_rank(f, "a*", count < 300 ? "a1" : "a2", count % 300, 300) == MUSTER_OK)
        count++;
    assert_int_equal(count, 500);
    assert_int_equal(join_rank(f, "b*", "b", 0, 300), MUSTER_OK);
    assert_int_equal(join_rank(f, NULL, "d", 0, 300), MUSTER_OK);
}

static unsigned add_task(struct core_fixture *f, const char *key_jobs, const char *job,
                         unsigned name, uint64_t number)
{
    static const uint8_t args[100];
    struct wire_task_entry entry = {
        .number = number, .fn = "f", .args = {args, sizeof args}, .uses = {NULL, 0}};
    struct wire_msg add = {.type = WIRE_TASKS_ADD};
    const uint64_t route = 90000 + name;
    const struct task_queue *queue = f->core->tasks->queues;

    while (strcmp(queue->job, job) != 0)
        queue = queue->next;
    add.up = (struct wire_up){.job = job, .role = ROLE_CHIEF, .incarnation = 70000 + name};
    add.u.tasks_add =
        (struct wire_tasks_add){.queue = queue->queue, .tasks = {.items = &entry, .count = 1}};
    f->key_jobs = key_jobs;
    core_feed(f, route, &add);
    return (unsigned)core_sent(f, route, WIRE_TASKS_TAKEN)->u.tasks_taken.code;
}

static void one_key_takes_half_of_the_memory_for_tasks(void **state)
{
    struct core_fixture *f = *state;
    const size_t most = 100000;
    uint64_t own = 0, other = 0;

    f->core->options.task_key_bytes_max = most;
    assert_int_equal(open_queue(f, "a", "a", 1), MUSTER_OK);
    assert_int_equal(open_queue(f, "b", "b", 2), MUSTER_OK);
    while (add_task(f, "a", "a", 1, own + 1) == MUSTER_OK)
        own++;
    assert_in_range(f->core->tasks->queues->bytes + f->core->tasks->queues->next->bytes,
                    most / 2 - 100, most / 2 + 300);
    while (add_task(f, "b", "b", 2, other + 1) == MUSTER_OK)
        other++;
    assert_in_range(other, own / 2 - 1, own / 2 + 1);
    assert_int_equal(add_task(f, NULL, "b", 2, other + 1), MUSTER_OK);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, open_core, close_core)
    const struct CMUnitTest tests[] = {
        T(one_key_takes_half_of_the_jobs_and_another_half_of_the_rest),
        T(a_key_for_all_jobs_and_a_user_without_one_have_no_share),
        T(a_job_that_ends_makes_room_for_the_next),
        T(one_key_takes_half_of_the_queues),
        T(one_key_takes_half_of_the_places_for_processes),
        T(one_key_takes_half_of_the_memory_for_tasks),
    };

    return cmocka_run_group_tests_name("core_share", tests, NULL, NULL);
}
