/* The broker's core: the first error of a task stops its queue until it was raised; what is
 * cancelled is none. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* R22.1, R22.2 */
static void the_first_error_stops_the_queue_until_it_is_raised(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 5);
    assert_sent(f, "c:taken 5; w1:work 1.1; w0:work 2.1");
    tasks_fail(f, 1, 1, 1, MUSTER_E_TASK);
    assert_sent(f, "w1:taken 1.1; w0:alive -2.1; c:ended @0 1.1=failed/MUSTER_E_TASK");
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, ""); /* the other still runs */
    tasks_fail(f, 0, 2, 1, MUSTER_E_CANCELLED);
    assert_sent(f, "w0:taken 2.1; c:ended @1 2.1=cancelled; c:raised 1 #1 MUSTER_E_TASK to 5 5");
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 4);
    tasks_say(f, WIRE_RAISE, 1); /* its answer was lost */
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 5 5");
    tasks_add(f, 1); /* and everything goes on */
    assert_sent(f, "c:taken 6; w1:work 6.1");
    tasks_done(f, 1, 6, 1);
    assert_sent(f, "w1:taken 6.1; c:ended @5 6.1=done");
}

/* With a queue that was full by bytes, hundreds of tasks ran after join had raised. */
static void what_was_scheduled_before_an_error_was_raised_never_runs(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 2);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    f->scheduled = 4;
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 4 2");
    tasks_add(f, 1);
    assert_sent(f, "c:taken 3; c:ended @2 3.0=cancelled");
    tasks_restart(f);
    tasks_open_queue(f, false, 100);
    tasks_hello(f, 0, "");
    tasks_add(f, 2);
    assert_sent(f, "c:taken 5; c:ended @3 4.0=cancelled; w0:work 5.1");
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 3);
}

static void the_next_coordinators_numbers_are_its_own(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    f->scheduled = 9;
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 9 1");
    f->coordinator++;
    tasks_open_queue(f, false, 100);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 2; w0:work 2.1");
}

/* The whole broker stood still for as long as it took to write them all (R22.2). */
static void many_are_cancelled_in_slices(void **state)
{
    static const uint8_t args[TASK_ARGS_MAX];
    struct tasks_fixture *f = *state;
    int64_t before = 0, slices = 0, cancelled;

    tasks_worker_begin(f, 0, 1, 1);
    for (uint64_t number = 1; number <= 100; number++)
        tasks_add_one(f, (struct wire_task_entry){
                             .number = number, .fn = "work", .args = {args, sizeof args}});
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    tasks_say(f, WIRE_RAISE, 1);
    for (; f->text[0] == '\0'; slices++, tasks_tick_at(f)) {
        cancelled = tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'");
        assert_in_range(cancelled - before, 1, 2 * (TASKS_CANCEL_BYTES / TASK_ARGS_MAX + 1));
        assert_int_equal(tasks_queue(f)->ended, cancelled + 1);
        assert_int_equal(tasks_wakeup_boot_ms(f->core), f->now); /* and nobody waits for the next */
        if (slices == 0) {                                       /* who died meanwhile asks again */
            tasks_restart(f);
            tasks_hello(f, 0, "");
            tasks_open_queue(f, false, 0);
            tasks_say(f, WIRE_RAISE, 1);
        }
        before = tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'");
    }
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 100 100");
    assert_in_range(slices, 3, 10);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 99);
    assert_int_equal(tasks_look(f, "SELECT sum(length(args)) FROM task WHERE state = 'cancelled'"),
                     0); /* nobody runs it */
}

static void of_many_errors_the_first_is_raised(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 3, 3);
    tasks_add(f, 3);
    tasks_fail(f, 0, 2, 1, MUSTER_E_TASK);
    tasks_fail(f, 0, 1, 1, MUSTER_E_INPUT);
    tasks_fail(f, 0, 3, 1, MUSTER_E_TASK);
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #2 MUSTER_E_TASK to 3 3");
    tasks_say(f, WIRE_RAISE, 2);
    assert_sent(f, "c:raised 2 #0 3");
}

static void a_cancelled_task_is_no_error(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 3);
    tasks_say(f, WIRE_TASK_CANCEL, 2);
    assert_sent(f, "c:ended @0 2.0=cancelled");
    tasks_say(f, WIRE_TASK_CANCEL, 1);
    assert_sent(f, "w0:alive -1.1");
    tasks_fail(f, 0, 1, 1, MUSTER_E_CANCELLED);
    assert_sent(f, "w0:taken 1.1; c:ended @1 1.1=cancelled; w0:work 3.1");
    tasks_say(f, WIRE_TASK_CANCEL, 1); /* it has ended */
    assert_sent(f, "");
    assert_false(tasks_queue(f)->error_pending);
}

/* A broker that was started in between made a failure of it, and cancelled the whole queue. */
static void a_cancelled_task_is_no_error_after_a_start_either(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 2);
    tasks_say(f, WIRE_TASK_CANCEL, 1);
    assert_sent(f, "w0:alive -1.1");
    tasks_restart(f);
    tasks_hello(f, 0, "1.1");
    tasks_fail(f, 0, 1, 1, MUSTER_E_CANCELLED);
    assert_sent(f, "w0:taken 1.1; w0:work 2.1");
    assert_false(tasks_queue(f)->error_pending);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'cancelled'"), 1);
}

/* It was written as it came, and the next start called the file damaged: the broker of all jobs. */
static void a_status_that_is_not_known_can_be_read_again(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_fail(f, 0, 1, 1, 255);
    assert_sent(f, "w0:taken 1.1; c:ended @0 1.1=failed/MUSTER_E_TASK");
    tasks_restart(f);
    assert_non_null(tasks_queue(f));
    assert_int_equal(tasks_queue(f)->error_status, MUSTER_E_TASK);
}

static void hold(struct tasks_fixture *f, const char *job, uint64_t kind, uint64_t first)
{
    struct wire_msg message = tasks_msg(f, 0, WIRE_WORK_HELLO);
    struct wire_lease_entry entries[100];

    for (uint64_t i = 0; i < 100; i++)
        entries[i] = (struct wire_lease_entry){f->queue, first + i, 1, kind, 0};
    message.up.job = job;
    message.u.work_hello =
        (struct wire_work_hello){.nonce = 3, .host = "h", .pid = 4, .slots = 1, .takes = 1};
    message.u.work_hello.held.items = entries;
    message.u.work_hello.held.count = 100;
    tasks_feed(f, tasks_route(f, 0), &message);
}

/* Each HELLO of such a worker took more memory, and no error of that queue was raised any more. */
static void what_no_worker_can_hold_is_passed_over(void **state)
{
    struct tasks_fixture *f = *state;

    f->workers[0] = (struct tasks_worker){.incarnation = 77, .route = 77, .slots = 1, .takes = 1};
    hold(f, "another", TASK_KIND_TASK, 1);
    f->workers[0].incarnation = 78;
    hold(f, "train", 77, 1);
    assert_int_equal(tasks_queue(f)->leases, 0);
    for (uint64_t i = 0; i < 20; i++)
        hold(f, "train", TASK_KIND_TASK, 1000 + 100 * i);
    assert_int_equal(tasks_queue(f)->leases, 100); /* what it named last */
}

static void a_lost_worker_is_waited_for_before_an_error_is_raised(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 2);
    tasks_fail(f, 1, 1, 1, MUSTER_E_TASK);
    f->workers[0].silent = true;
    tasks_say(f, WIRE_RAISE, 1);
    tasks_pass(f, 4500);
    assert_sent(f, "");
    tasks_pass(f, 500);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 2 2");
}

static void nothing_runs_when_an_error_is_raised_after_a_false_loss(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1; w1:work 1.1");
    f->workers[1].silent = true;
    tasks_pass(f, 5000);
    assert_sent(f, "w0:work 1.2");
    tasks_hello(f, 1, "1.1"); /* it still runs there */
    assert_sent(f, "w1:welcome; w1:alive -1.1");
    tasks_fail(f, 0, 1, 2, MUSTER_E_TASK);
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "");
    tasks_done(f, 1, 1, 1);
    assert_sent(f, "w1:taken 1.1/MUSTER_E_STALE; c:raised 1 #1 MUSTER_E_TASK to 1 1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_error_stops_the_queue_until_it_is_raised),
        TEST(what_was_scheduled_before_an_error_was_raised_never_runs),
        TEST(the_next_coordinators_numbers_are_its_own),
        TEST(many_are_cancelled_in_slices),
        TEST(of_many_errors_the_first_is_raised),
        TEST(a_cancelled_task_is_no_error),
        TEST(a_cancelled_task_is_no_error_after_a_start_either),
        TEST(a_status_that_is_not_known_can_be_read_again),
        TEST(what_no_worker_can_hold_is_passed_over),
        TEST(a_lost_worker_is_waited_for_before_an_error_is_raised),
        TEST(nothing_runs_when_an_error_is_raised_after_a_false_loss),
    };

    return cmocka_run_group_tests_name("core_tasks_errors", tests, tasks_open_file,
                                       tasks_close_file);
}
