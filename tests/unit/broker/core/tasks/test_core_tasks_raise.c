/* The broker's core: an error is raised by one call at least, whoever dies meanwhile. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Task 1 has failed, and was raised to a coordinator of which nothing more is known. */
static void raise_first(struct tasks_fixture *f)
{
    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 3);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 3 3");
}

/* R22.3 */
static void an_error_that_was_raised_to_a_dead_coordinator_is_raised_to_the_next(void **state)
{
    struct tasks_fixture *f = *state;

    raise_first(f);
    tasks_restart(f);
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 3/3 error 1");
    tasks_open_queue(f, false, 0); /* its answer was lost */
    assert_sent(f, "c:opened q1 3/3 error 1");
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 3 3");
    f->told = 1;
    tasks_say(f, WIRE_QUEUE_BEAT, 0);
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 3/3");
}

/* R22.3 */
static void one_that_a_call_has_returned_is_not(void **state)
{
    struct tasks_fixture *f = *state;

    raise_first(f);
    tasks_say(f, WIRE_QUEUE_BEAT, 0); /* it came, and no call has returned it */
    assert_int_equal(tasks_look(f, "SELECT raised - told FROM task_queue"), 1);
    f->told = 2; /* more than there were */
    tasks_say(f, WIRE_QUEUE_BEAT, 0);
    assert_int_equal(tasks_look(f, "SELECT raised - told FROM task_queue"), 1);
    f->told = 1;
    tasks_say(f, WIRE_QUEUE_BEAT, 0);
    f->told = 0;
    tasks_say(f, WIRE_QUEUE_BEAT, 0);
    tasks_restart(f);
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 3/3");
}

static void nor_one_behind_which_another_was_asked_for(void **state)
{
    struct tasks_fixture *f = *state;

    raise_first(f);
    tasks_say(f, WIRE_RAISE, 2);
    assert_sent(f, "c:raised 2 #0 3");
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 3/3");
}

/* An attempt that was taken away stands in no row (R22.2). */
static void after_a_start_it_is_raised_when_all_have_said_what_they_have(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "work", .timeout_ms = 1000});
    tasks_queue(f)->max_attempts = 1;
    tasks_pass(f, 2000);
    assert_true(tasks_queue(f)->error_pending);
    assert_int_equal(tasks_queue(f)->leases, 1);
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "");
    tasks_hello(f, 0, "");
    assert_sent(f, "w0:welcome");
    tasks_hello(f, 1, "1.1"); /* it runs on */
    assert_sent(f, "w1:welcome; w1:alive -1.1");
    tasks_done(f, 1, 1, 1);
    assert_sent(f, "w1:taken 1.1/MUSTER_E_STALE; c:raised 1 #1 MUSTER_E_TASK_TIMEOUT to 1 1");
}

static void nobody_is_waited_for_for_ever(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_fail(f, 0, 1, 1, MUSTER_E_TASK);
    tasks_restart(f);
    tasks_open_queue(f, false, 0);
    tasks_say(f, WIRE_RAISE, 1);
    f->workers[0].silent = true;
    tasks_pass(f, ENDING_MS - 500);
    assert_sent(f, "");
    tasks_pass(f, 500);
    assert_sent(f, "c:raised 1 #1 MUSTER_E_TASK to 1 1");
}

/* Its RAISE waits for an attempt, and would cancel what it had scheduled and never added. */
static void what_a_dead_coordinator_wanted_cancelled_is_not_the_next_ones(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 2);
    assert_sent(f, "c:taken 2; w1:work 1.1; w0:work 2.1");
    tasks_fail(f, 0, 2, 1, MUSTER_E_TASK);
    f->scheduled = 50;
    tasks_say(f, WIRE_RAISE, 1);
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    assert_sent(f, "c:opened q1 1/2 error 2");
    tasks_done(f, 1, 1, 1);
    assert_sent(f, "w1:taken 1.1; c:ended @1 1.1=done");
    f->scheduled = 2;
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #2 MUSTER_E_TASK to 2 2");
    tasks_add(f, 1);
    assert_sent(f, "c:taken 3; w1:work 3.1");
}

/* The first one's word never came back; the second is another error, and the next coordinator
 * raises it with that number or the next. */
static void a_second_error_is_not_taken_for_the_first(void **state)
{
    struct tasks_fixture *f = *state;

    raise_first(f);
    f->number = 3;
    tasks_worker_begin(f, 1, 1, 1);
    tasks_add(f, 2);
    assert_sent(f, "c:taken 5; w1:work 4.1; w0:work 5.1");
    tasks_fail(f, 1, 4, 1, MUSTER_E_TASK);
    assert_true(tasks_queue(f)->error_pending);
    f->coordinator++;
    tasks_open_queue(f, false, 0);
    f->scheduled = 5;
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, ""); /* of the first one nothing is known any more, and task 5 runs */
    tasks_done(f, 0, 5, 1);
    assert_sent(f, "w0:taken 5.1; c:ended @4 5.1=done; c:raised 1 #4 MUSTER_E_TASK to 5 5");
    tasks_say(f, WIRE_RAISE, 1);
    assert_sent(f, "c:raised 1 #4 MUSTER_E_TASK to 5 5");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_error_that_was_raised_to_a_dead_coordinator_is_raised_to_the_next),
        TEST(one_that_a_call_has_returned_is_not),
        TEST(nor_one_behind_which_another_was_asked_for),
        TEST(after_a_start_it_is_raised_when_all_have_said_what_they_have),
        TEST(nobody_is_waited_for_for_ever),
        TEST(what_a_dead_coordinator_wanted_cancelled_is_not_the_next_ones),
        TEST(a_second_error_is_not_taken_for_the_first),
    };

    return cmocka_run_group_tests_name("core_tasks_raise", tests, tasks_open_file,
                                       tasks_close_file);
}
