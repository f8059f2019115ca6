/* Queues, workers and leases as a start of the broker finds them in its database. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* R20.7 */
static void a_lease_stands_and_its_time_begins_again(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    f->number = 1;
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "slow", .timeout_ms = 3000});
    tasks_pass(f, 2500);
    tasks_restart(f);
    assert_int_equal(tasks_queue(f)->leases, 1);
    tasks_hello(f, 0, "1.1");
    tasks_pass(f, 2500); /* renewals were not written: it has 3 s from the start on */
    assert_null(strstr(f->text, "-1.1"));
    tasks_pass(f, 500);
    assert_non_null(strstr(f->text, "-1.1"));
}

static void counts_and_bounds_of_a_queue_are_as_before(void **state)
{
    struct tasks_fixture *f = *state;
    const struct task_queue *queue;

    tasks_open_queue(f, true, 7);
    tasks_worker_begin(f, 0, 2, 2);
    tasks_add(f, 4);
    tasks_done(f, 0, 1, 1);
    tasks_say(f, WIRE_TASK_CANCEL, 4);
    tasks_restart(f);
    queue = tasks_queue(f);
    assert_non_null(queue);
    assert_int_equal(queue->max_queued, 7);
    assert_int_equal(queue->taken, 4);
    assert_int_equal(queue->ended, tasks_look(f, "SELECT ended FROM task_queue WHERE queue ="
                                                 " (SELECT max(queue) FROM task_queue)"));
    assert_int_not_equal(queue->ended, 0);
}

static void the_error_that_no_call_returned_yet_is_still_pending(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 2);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    tasks_restart(f);
    assert_true(tasks_queue(f)->error_pending);
    assert_int_equal(tasks_queue(f)->error_number, 1);
    assert_int_equal(tasks_queue(f)->error_status, MUSTER_E_TASK);
}

/* The order in which they were added is that in which they are given. */
static void tasks_that_wait_are_given_in_their_order(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_add(f, 3);
    tasks_restart(f);
    tasks_worker_begin(f, 0, 3, 3);
    assert_non_null(strstr(f->text, "work 1.1 2.1 3.1"));
}

/* R20.7 */
static void a_worker_that_left_is_not_there(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    f->workers[1].silent = true;
    tasks_pass(f, 20000);
    tasks_restart(f);
    assert_non_null(tasks_worker_find(f->core, f->workers[0].incarnation));
    assert_null(tasks_worker_find(f->core, f->workers[1].incarnation));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_stands_and_its_time_begins_again),
        TEST(counts_and_bounds_of_a_queue_are_as_before),
        TEST(the_error_that_no_call_returned_yet_is_still_pending),
        TEST(tasks_that_wait_are_given_in_their_order),
        TEST(a_worker_that_left_is_not_there),
    };

    return cmocka_run_group_tests(tests, tasks_open_file, tasks_close_file);
}
