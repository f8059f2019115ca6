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

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_error_that_was_raised_to_a_dead_coordinator_is_raised_to_the_next),
        TEST(one_that_a_call_has_returned_is_not),
        TEST(nor_one_behind_which_another_was_asked_for),
    };

    return cmocka_run_group_tests_name("core_tasks_raise", tests, tasks_open_file,
                                       tasks_close_file);
}
