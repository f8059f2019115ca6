/* The broker's core: tasks at a worker that lives beside a training. */
#include "broker/core/tasks.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { COORDINATOR = 700, WORKER = 800 };

static struct wire_msg from(const struct core_fixture *f, uint64_t who, enum wire_type type)
{
    struct wire_msg message = core_msg(f, 0, type);

    message.up.incarnation = who;
    message.up.role = who == COORDINATOR ? ROLE_TOOL : ROLE_WORKER;
    return message;
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
    message = from(&f, WORKER, WIRE_WORK_HELLO);
    message.u.work_hello = (struct wire_work_hello){
        .nonce = 1, .node = f.nodes[0].incarnation, .host = "h", .pid = 1, .slots = 1, .takes = 1};
    core_feed(&f, WORKER, &message);
    message = from(&f, COORDINATOR, WIRE_TASKS_ADD);
    message.u.tasks_add.queue = 1;
    message.u.tasks_add.tasks.items = &entry;
    message.u.tasks_add.tasks.count = 1;
    core_feed(&f, COORDINATOR, &message);
    core_tick(&f);
    assert_non_null(tasks_find(f.core, 1, 1)->lease);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    core_fixture_close(*state);
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

/* Three clean preemptions failed a task that ran beside the training, and stopped its queue. */
static void a_preemption_is_not_counted_against_the_task(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    silence(f);
    assert_int_equal(tasks_find(f->core, 1, 1)->losses, 0);
}

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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_preemption_is_not_counted_against_the_task),
        TEST(a_failure_is),
        TEST(and_a_death),
    };

    return cmocka_run_group_tests_name("core_tasks_beside", tests, NULL, NULL);
}
