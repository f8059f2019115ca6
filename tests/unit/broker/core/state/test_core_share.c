/* The broker's core: what one key may take of it, jobs and queues. It leaves as much to the others.
 */
#include "broker/core/state/sleepers.h"
#include "broker/core/tasks/tasks.h"
#include "tests/support/core_fixture.h"
#include "tests/support/signed_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static unsigned add_value(struct core_fixture *f, const char *key_jobs, const char *job,
                          unsigned name, uint64_t number)
{
    static const uint8_t args[10000];
    struct wire_msg add = {.type = WIRE_RESOURCE_ADD};
    const uint64_t route = 90000 + name;
    const struct task_queue *queue = f->core->tasks->queues;

    while (strcmp(queue->job, job) != 0)
        queue = queue->next;
    add.up = (struct wire_up){.job = job, .role = ROLE_CHIEF, .incarnation = 70000 + name};
    add.u.resource_add = (struct wire_resource_add){
        .queue = queue->queue, .number = number, .fn = "f", .args = {args, sizeof args}};
    f->key_jobs = key_jobs;
    core_feed(f, route, &add);
    return (unsigned)core_sent(f, route, WIRE_RESOURCE_TAKEN)->u.resource_taken.code;
}

static void per_worker_values_count_in_the_memory_for_tasks(void **state)
{
    struct core_fixture *f = *state;
    uint64_t own = 0;

    f->core->options.task_key_bytes_max = 200000;
    assert_int_equal(open_queue(f, "a", "a", 1), MUSTER_OK);
    assert_int_equal(open_queue(f, "b", "b", 2), MUSTER_OK);
    while (own < 100 && add_value(f, "a", "a", 1, own + 1) == MUSTER_OK)
        own++;
    assert_int_equal(own, 9); /* each with what is kept about it */
    assert_int_equal(add_value(f, "a", "a", 1, own), MUSTER_OK);             /* a repetition */
    assert_int_equal(add_value(f, "a", "a", 1, own + 2), MUSTER_E_ARGUMENT); /* sent behind it */
    assert_non_null(strstr(core_sent(f, 90001, WIRE_RESOURCE_TAKEN)->u.resource_taken.text,
                           "before this one was refused"));
    assert_int_equal(add_value(f, "b", "b", 2, 1), MUSTER_OK);
    assert_int_equal(add_value(f, NULL, "a", 1, own + 1), MUSTER_OK);
    assert_int_equal(add_task(f, "a", "a", 1, 1), MUSTER_E_BUSY);
}

static unsigned begin_worker(struct core_fixture *f, const char *key_jobs, const char *job,
                             uint64_t index)
{
    static uint64_t lives = 600000;
    struct wire_msg hello = {.type = WIRE_WORK_HELLO};

    hello.up =
        (struct wire_up){.job = job, .role = ROLE_WORKER, .rank = index, .incarnation = ++lives};
    hello.u.work_hello = (struct wire_work_hello){.nonce = 1, .host = "h", .pid = 1, .slots = 1};
    f->key_jobs = key_jobs;
    core_feed(f, lives, &hello);
    return (unsigned)core_sent(f, lives, WIRE_WORK_WELCOME)->u.work_welcome.code;
}

static void one_key_takes_half_of_the_places_for_workers(void **state)
{
    struct core_fixture *f = *state;
    uint64_t count = 0;

    while (begin_worker(f, "a*", count % 2 ? "a1" : "a2", count) == MUSTER_OK)
        count++;
    assert_int_equal(count, TASK_WORKERS_MAX / 2);
    assert_int_equal(begin_worker(f, "b", "b", 0), MUSTER_OK);
    assert_int_equal(begin_worker(f, NULL, "d", 0), MUSTER_OK);
}

static unsigned come_with(struct core_fixture *f, size_t tasks, size_t ended)
{
    static struct wire_lease_entry held[TASKS_FRAME_MAX];
    struct wire_msg hello = {.type = WIRE_WORK_HELLO};

    for (size_t i = 0; i < tasks + ended; i++)
        held[i] = (struct wire_lease_entry){
            .queue = 1000000 + i, .number = i + 1, .attempt = 1, .code = i >= tasks};
    hello.up = (struct wire_up){.job = "a", .role = ROLE_WORKER, .rank = 1, .incarnation = 9};
    hello.u.work_hello = (struct wire_work_hello){
        .nonce = 1, .host = "h", .pid = 1, .slots = 1, .held = {held, tasks + ended}};
    core_feed(f, 9, &hello);
    return (unsigned)core_sent(f, 9, WIRE_WORK_WELCOME)->u.work_welcome.code;
}

static void a_worker_comes_with_no_more_tasks_than_it_may_be_given(void **state)
{
    struct core_fixture *f = *state;

    assert_int_equal(come_with(f, TASK_CREDIT_MAX + 1, 0), MUSTER_E_ARGUMENT);
    assert_int_equal(come_with(f, TASK_CREDIT_MAX, TASKS_FRAME_MAX - TASK_CREDIT_MAX), MUSTER_OK);
    assert_int_equal(f->core->tasks->workers->held, TASK_CREDIT_MAX);
    assert_int_equal(come_with(f, 1, 0), MUSTER_OK); /* again, with less */
    assert_int_equal(f->core->tasks->workers->held, 1);
}

/* --- what stays taken when its user is gone --------------------------------------------------- */

/* A job that has ended, with a checkpoint. */
static const struct wire_ack *import(struct core_fixture *f, const char *key_jobs,
                                     const char *prefix, unsigned number)
{
    static char job[JOB_NAME_MAX + 1];
    struct wire_msg message = {.type = WIRE_IMPORT,
                               .up = {.job = job, .role = ROLE_TOOL, .request = 1}};
    size_t size;
    char *text;

    snprintf(job, sizeof job, "%s%u", prefix, number);
    text = signed_text_of_job(job, NULL, &size);
    message.u.import = (struct wire_import){
        .path = "/ckpt/7", .total = size, .bytes = {(const uint8_t *)text, size}};
    f->key_jobs = key_jobs;
    f->now += 10;
    core_feed(f, 500, &message);
    free(text);
    return &core_sent(f, 500, WIRE_ACK)->u.ack;
}

static void pin(struct core_fixture *f, const char *key_jobs, const char *prefix, unsigned number)
{
    char job[JOB_NAME_MAX + 1];
    const struct wire_msg message = {.type = WIRE_PIN,
                                     .up = {.job = job, .role = ROLE_TOOL, .request = 1},
                                     .u.pin = {.id = "operator"}};

    snprintf(job, sizeof job, "%s%u", prefix, number);
    f->key_jobs = key_jobs;
    core_feed(f, 500, &message);
    assert_int_equal(core_sent(f, 500, WIRE_ACK)->u.ack.code, MUSTER_OK);
}

static size_t asleep_of(struct core_fixture *f, const char *prefix)
{
    size_t count = 0;

    core_tick(f);
    for (size_t i = 0; i < SLEEPERS_SLOTS; i++)
        for (const struct asleep_job *job = f->core->asleep->jobs[i]; job != NULL; job = job->next)
            count += strncmp(job->name, prefix, strlen(prefix)) == 0;
    return count;
}

/* The broker keeps 40 ended jobs, and 30 of them are others'. */
static void keep_few(struct core_fixture *f)
{
    f->options.ended_held = -1;
    f->options.keep_jobs = 40;
    core_restart(f, false);
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(import(f, NULL, "b", i)->code, MUSTER_OK);
    assert_int_equal(asleep_of(f, "b"), 30);
}

/* No word of any coordinator for so long that all their queues are over. */
static void leave_queues(struct core_fixture *f)
{
    core_pass(f, STUCK_MS + 1000);
}

static size_t queues_of(const struct core_fixture *f, const char *job)
{
    size_t count = 0;

    for (const struct task_queue *q = f->core->tasks->queues; q != NULL; q = q->next)
        count += strcmp(q->job, job) == 0;
    return count;
}

/* R20.6 */
static void a_key_with_its_share_of_the_queues_forgets_none_of_another(void **state)
{
    struct core_fixture *f = *state;
    unsigned count = 0;

    f->options.task_queues_max = 40;
    core_restart(f, false);
    for (; count < 30; count++)
        assert_int_equal(open_queue(f, NULL, "b", count), MUSTER_OK);
    leave_queues(f);
    while (open_queue(f, "a*", "a", count) == MUSTER_OK && count < 100)
        count++;
    assert_int_equal(queues_of(f, "a"), 5);
    leave_queues(f);
    for (; count < 100; count++)
        if (open_queue(f, "a*", "a", count) != MUSTER_OK)
            break;
    assert_int_equal(queues_of(f, "a"), 5); /* its own that were over went */
    assert_int_equal(queues_of(f, "b"), 30);
    for (count = 200; count < 210; count++)
        assert_int_equal(open_queue(f, NULL, "c", count), MUSTER_OK);
    assert_int_equal(queues_of(f, "b"), 25); /* who has no share takes the place of any */
    assert_int_equal(open_queue(f, "d*", "d", 300), MUSTER_OK); /* so does who has few */
    assert_int_equal(open_queue(f, "a*", "a", 400), MUSTER_E_BUSY);
}

/* R14.5 */
static void ended_jobs_of_a_key_push_out_its_own_and_no_others(void **state)
{
    struct core_fixture *f = *state;

    keep_few(f);
    for (unsigned i = 0; i < 60; i++) {
        assert_int_equal(import(f, "a*", "a", i)->code, MUSTER_OK);
        if (i % 3 == 0)
            core_tick(f);
    }
    assert_int_equal(asleep_of(f, "a"), 5);
    assert_int_equal(asleep_of(f, "b"), 30);
    assert_true(asleep_holds(f->core, "a59"));
    assert_false(asleep_holds(f->core, "a54"));
    assert_int_equal(join(f, "a*", "a", 99), MUSTER_OK); /* so does one that is launched */
    assert_int_equal(asleep_of(f, "a"), 4);
    for (unsigned i = 0; i < 20; i++)
        import(f, NULL, "c", i);
    assert_int_equal(asleep_of(f, ""), 40); /* who has no share takes the place of any */
    assert_int_equal(asleep_of(f, "c"), 20);
}

/* R14.5: a broker that is full is no reason to forget all of a key that has few. */
static void a_key_has_a_few_ended_jobs_in_any_case(void **state)
{
    struct core_fixture *f = *state;

    keep_few(f);
    for (unsigned i = 0; i < 10; i++)
        import(f, NULL, "c", i);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(import(f, "a*", "a", i)->code, MUSTER_OK);
    assert_int_equal(asleep_of(f, "a"), 40 / KEY_SHARE_LEAST + 1);
}

/* R14.5 */
static void a_key_that_pins_its_share_begins_no_further_job(void **state)
{
    struct core_fixture *f = *state;
    const struct wire_ack *ack;
    unsigned count = 0;

    keep_few(f);
    while ((ack = import(f, "a*", "a", count))->code == MUSTER_OK && count < 60) {
        pin(f, "a*", "a", count++);
        core_tick(f);
    }
    assert_int_equal(count, 5);
    assert_int_equal(ack->code, MUSTER_E_BUSY);
    assert_non_null(strstr(ack->text, "muster unpin"));
    assert_int_equal(join(f, "a*", "a", 99), MUSTER_E_BUSY);
    assert_int_equal(join(f, "a*", "a", 0), MUSTER_OK); /* one that is there goes on */
    assert_int_equal(asleep_of(f, "b"), 30);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, core_open_one, core_close)
    const struct CMUnitTest tests[] = {
        T(one_key_takes_half_of_the_jobs_and_another_half_of_the_rest),
        T(a_key_for_all_jobs_and_a_user_without_one_have_no_share),
        T(a_job_that_ends_makes_room_for_the_next),
        T(one_key_takes_half_of_the_queues),
        T(one_key_takes_half_of_the_places_for_processes),
        T(one_key_takes_half_of_the_memory_for_tasks),
        T(per_worker_values_count_in_the_memory_for_tasks),
        T(one_key_takes_half_of_the_places_for_workers),
        T(a_worker_comes_with_no_more_tasks_than_it_may_be_given),
        T(a_key_with_its_share_of_the_queues_forgets_none_of_another),
        T(ended_jobs_of_a_key_push_out_its_own_and_no_others),
        T(a_key_has_a_few_ended_jobs_in_any_case),
        T(a_key_that_pins_its_share_begins_no_further_job),
    };

    return cmocka_run_group_tests_name("core_share", tests, NULL, NULL);
}
