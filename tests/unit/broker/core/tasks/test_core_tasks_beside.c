/* The broker's core: tasks at a worker that lives beside a training. */
#include "broker/core/tasks/tasks.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { COORDINATOR = 700, WORKER = 800, NEXT_WORKER };

static struct wire_msg from(const struct core_fixture *f, uint64_t who, enum wire_type type)
{
    struct wire_msg message = core_msg(f, 0, type);

    message.up.incarnation = who;
    message.up.role = who == COORDINATOR ? ROLE_TOOL : ROLE_WORKER;
    message.up.rank = who == NEXT_WORKER;
    return message;
}

static void worker_begins(struct core_fixture *f, uint64_t who, uint64_t node)
{
    struct wire_msg message = from(f, who, WIRE_WORK_HELLO);

    message.u.work_hello = (struct wire_work_hello){
        .nonce = 1, .node = node, .host = "h", .pid = 1, .slots = 1, .takes = 1};
    core_feed(f, who, &message);
}

static int set_up(void **state)
{
    static struct core_fixture f;
    struct wire_task_entry entry = {.number = 1, .fn = "work"};
    struct wire_msg message;

    core_fixture_running(&f, 1, LAYOUT_REPLICATED);
    message = from(&f, COORDINATOR, WIRE_QUEUE_OPEN);
    message.u.queue_open = (struct wire_queue_open){.nonce = 1, .name = "main"};
    core_feed(&f, COORDINATOR, &message);
    worker_begins(&f, WORKER, f.nodes[0].incarnation);
    message = from(&f, COORDINATOR, WIRE_TASKS_ADD);
    message.u.tasks_add.queue = 1;
    message.u.tasks_add.tasks.items = &entry;
    message.u.tasks_add.tasks.count = 1;
    core_feed(&f, COORDINATOR, &message);
    core_tick(&f);
    assert_non_null(tasks_find(f.core, 1, 1)->lease);
    message = from(&f, WORKER, WIRE_WORK_BEAT);
    message.u.work_beat.received = 1;
    core_feed(&f, WORKER, &message);
    *state = &f;
    return 0;
}

static void silence(struct core_fixture *f)
{
    for (int i = 0; i < 20; i++) {
        f->now += 500;
        core_tick(f);
    }
    assert_null(tasks_find(f->core, 1, 1)->lease);
}

/* Three clean preemptions failed a task that ran beside the training, and stopped its
 * queue (R21.5). */
static void a_preemption_is_not_counted_against_the_task(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    silence(f);
    assert_int_equal(tasks_find(f->core, 1, 1)->losses, 0);
}

/* --- the next attempt ------------------------------------------------------------------------- */

/* Of a result of so many bytes the part at this offset; what the broker says that it has. */
static uint64_t send_part(struct core_fixture *f, uint64_t who, uint64_t attempt, uint64_t offset,
                          uint64_t total)
{
    static uint8_t bytes[TASK_PART_MAX];
    struct wire_msg message = from(f, who, WIRE_WORK_PART);
    const struct wire_msg *answer;

    message.u.work_part = (struct wire_work_part){
        .queue = 1, .number = 1, .attempt = attempt, .offset = offset, .total = total};
    message.u.work_part.bytes.data = bytes;
    message.u.work_part.bytes.size =
        total - offset < TASK_PART_MAX ? (size_t)(total - offset) : TASK_PART_MAX;
    core_feed(f, who, &message);
    answer = core_sent(f, who, WIRE_PART_TAKEN);
    assert_non_null(answer);
    return answer->u.part_taken.have;
}

static uint64_t send_end(struct core_fixture *f, uint64_t who, uint64_t attempt, uint64_t size)
{
    struct wire_ended_entry entry = {.queue = 1,
                                     .number = 1,
                                     .attempt = attempt,
                                     .kind = TASK_KIND_TASK,
                                     .state = TASK_DONE,
                                     .bytes = size,
                                     .text = ""};
    struct wire_msg message = from(f, who, WIRE_WORK_DONE);

    message.u.work_done.tasks.items = &entry;
    message.u.work_done.tasks.count = 1;
    core_feed(f, who, &message);
    return core_sent(f, who, WIRE_WORK_TAKEN)->u.work_taken.tasks.items[0].code;
}

/* The first has sent a part of its result when its node is preempted; the next has one of so many
 * bytes. */
static void goes_to_the_next(struct core_fixture *f, uint64_t size)
{
    assert_int_equal(send_part(f, WORKER, 1, 0, 60000), TASK_PART_MAX);
    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    silence(f);
    worker_begins(f, NEXT_WORKER, 0);
    core_tick(f);
    assert_int_equal(tasks_find(f->core, 1, 1)->lease->attempt, 2);
    assert_int_equal(send_part(f, NEXT_WORKER, 2, TASK_PART_MAX, size), 0); /* from the beginning */
    for (uint64_t at = 0; at < size; at += TASK_PART_MAX)
        assert_int_equal(send_part(f, NEXT_WORKER, 2, at, size),
                         size - at < TASK_PART_MAX ? size : at + TASK_PART_MAX);
    assert_int_equal(send_end(f, NEXT_WORKER, 2, size), MUSTER_OK);
    assert_null(tasks_find(f->core, 1, 1));
}

/* Its number was given again: the bytes of two workers were taken for one result. */
static void no_part_of_a_preempted_attempt_is_the_next_ones(void **state)
{
    goes_to_the_next(*state, 100000);
}

/* It never ended: the broker had more of it than there was. */
static void a_shorter_result_of_the_next_is_taken(void **state)
{
    goes_to_the_next(*state, 40000);
}

static void what_its_worker_did_not_begin_may_have_been_begun_if_it_sent_of_it(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg leave = from(f, WORKER, WIRE_WORK_LEAVE);

    send_part(f, WORKER, 1, 0, 60000);
    core_feed(f, WORKER, &leave);
    assert_int_equal(tasks_find(f->core, 1, 1)->attempt, 1);
    assert_int_equal(tasks_find(f->core, 1, 1)->losses, 0);
}

/* --- how its node went ------------------------------------------------------------------------ */

static void a_failure_is(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_FAILED, 1);
    silence(f);
    assert_int_equal(tasks_find(f->core, 1, 1)->losses, 1);
}

static void and_a_death(void **state)
{
    struct core_fixture *f = *state;

    silence(f);
    assert_int_equal(tasks_find(f->core, 1, 1)->losses, 1);
}

/* The worker is heard all the while: it may be a thread that goes on in a process that is to
 * go (R21.1). */
static void its_node_is_lost_and_so_it_is(void **state)
{
    struct core_fixture *f = *state;

    for (int i = 0; i < 60 && tasks_worker_find(f->core, WORKER) != NULL; i++) {
        struct wire_msg beat = from(f, WORKER, WIRE_WORK_BEAT);

        core_feed(f, WORKER, &beat);
        f->now += 500;
        core_tick(f);
    }
    assert_null(tasks_worker_find(f->core, WORKER));
    assert_int_equal(tasks_find(f->core, 1, 1)->losses, 1);
    assert_int_equal(peer_find(f->core, f->nodes[0].incarnation)->state, NODE_LOST);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, core_close)
    const struct CMUnitTest tests[] = {
        TEST(a_preemption_is_not_counted_against_the_task),
        TEST(no_part_of_a_preempted_attempt_is_the_next_ones),
        TEST(a_shorter_result_of_the_next_is_taken),
        TEST(what_its_worker_did_not_begin_may_have_been_begun_if_it_sent_of_it),
        TEST(its_node_is_lost_and_so_it_is),
        TEST(a_failure_is),
        TEST(and_a_death),
    };

    return cmocka_run_group_tests_name("core_tasks_beside", tests, NULL, NULL);
}
