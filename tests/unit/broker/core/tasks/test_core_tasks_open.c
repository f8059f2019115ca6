/* The broker's core: who holds a queue, what makes room for new ones, and what one that attached
 * asks for. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void a_page_ends_where_it_was_asked_to(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 4);
    for (uint64_t number = 1; number <= 3; number++)
        tasks_done(f, 0, number, 1);
    f->get_to = 2;
    tasks_say(f, WIRE_TASKS_GET, 2);
    assert_sent(f, "c:page 2-3 2.1=done");
    f->get_to = 9;
    tasks_say(f, WIRE_TASKS_GET, 2);
    assert_sent(f, "c:page 2-5 2.1=done 3.1=done");
}

/* Its rows may be there, and would be found under the new one's numbers. */
static void the_number_of_a_dropped_queue_is_not_the_next_ones(void **state)
{
    struct tasks_fixture *f = *state;

    f->start_high = TASK_QUEUE_ID_MAX - 1; /* the next number is 1, but for main, which has it */
    tasks_restart(f);
    f->start_high = 0;
    f->coordinator++;
    tasks_open_queue(f, true, 0);
    assert_int_equal(f->queue, 2);
}

/* --- room ------------------------------------------------------------------------------------- */

/* As coordinator 1000 + n, of a queue of its own. */
static unsigned open_nth(struct tasks_fixture *f, unsigned n)
{
    struct wire_msg message;
    char name[24];

    snprintf(name, sizeof name, "n%u", n);
    f->coordinator = 1000 + n;
    message = tasks_msg(f, -1, WIRE_QUEUE_OPEN);
    message.u.queue_open = (struct wire_queue_open){.nonce = 5, .name = name};
    tasks_feed(f, tasks_route(f, -1), &message);
    if (strstr(f->text, "MUSTER_E_BUSY") != NULL)
        return MUSTER_E_BUSY;
    f->queue = tasks_queue_named(f->core, "train", name)->queue;
    f->number = 0;
    return MUSTER_OK;
}

static bool is_there(const struct tasks_fixture *f, unsigned n)
{
    char name[24];

    snprintf(name, sizeof name, "n%u", n);
    return tasks_queue_named(f->core, "train", name) != NULL;
}

static void beat_nth(struct tasks_fixture *f, unsigned n, uint64_t released)
{
    char name[24];

    snprintf(name, sizeof name, "n%u", n);
    f->coordinator = 1000 + n;
    f->queue = tasks_queue_named(f->core, "train", name)->queue;
    tasks_say(f, WIRE_QUEUE_BEAT, released);
}

static int with_four_queues(void **state)
{
    struct tasks_fixture *f;

    tasks_with_queue(state);
    f = *state;
    f->queues_max = 4;
    tasks_restart(f); /* with "main" */
    tasks_open_queue(f, false, 0);
    tasks_worker_begin(f, 0, 1, 1);
    for (unsigned n = 1; n <= 3; n++) {
        assert_int_equal(open_nth(f, n), MUSTER_OK);
        tasks_add(f, 1);
        tasks_done(f, 0, 1, 1);
        f->now += 10;
    }
    f->coordinator = 1000;
    f->queue = tasks_queue_named(f->core, "train", "main")->queue;
    f->number = 0;
    tasks_add(f, 1); /* at the worker: main has not ended */
    return 0;
}

/* R20.6 */
static void a_queue_that_is_over_makes_room(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_pass(f, STUCK_MS / 2);
    beat_nth(f, 1, 0);
    tasks_pass(f, STUCK_MS / 2 - 1000);
    assert_int_equal(open_nth(f, 4), MUSTER_E_BUSY); /* their coordinators may live */
    tasks_pass(f, 1000);
    assert_int_equal(open_nth(f, 4), MUSTER_OK); /* 1 was heard, 2 and 3 have results */
    assert_true(is_there(f, 1) && is_there(f, 3) && !is_there(f, 2));
    assert_int_equal(open_nth(f, 5), MUSTER_OK);
    assert_true(is_there(f, 1) && !is_there(f, 3));
    assert_int_equal(open_nth(f, 6), MUSTER_E_BUSY);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task"), 2);
}

static void the_brokers_own_absence_ends_none(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_pass(f, 1000);
    f->now += 2 * STUCK_MS;
    assert_int_equal(open_nth(f, 4), MUSTER_E_BUSY);
    tasks_pass(f, STUCK_MS - 2000);
    assert_int_equal(open_nth(f, 4), MUSTER_E_BUSY);
    tasks_pass(f, 1000);
    assert_int_equal(open_nth(f, 4), MUSTER_OK);
}

/* R20.6 */
static void one_whose_results_nobody_wants_goes_first(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_pass(f, 1000);
    beat_nth(f, 3, 1);
    tasks_pass(f, STUCK_MS);
    assert_int_equal(open_nth(f, 4), MUSTER_OK);
    assert_true(is_there(f, 1) && is_there(f, 2) && !is_there(f, 3));
}

/* R20.6 */
static void after_a_start_they_have_time_to_come_back(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_pass(f, 2 * STUCK_MS);
    tasks_restart(f);
    tasks_hello(f, 0, "1.1");
    assert_int_equal(open_nth(f, 4), MUSTER_E_BUSY);
    tasks_pass(f, STUCK_MS);
    assert_int_equal(open_nth(f, 4), MUSTER_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)
#define ROOM(name) cmocka_unit_test_setup_teardown(name, with_four_queues, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page_ends_where_it_was_asked_to),
        TEST(the_number_of_a_dropped_queue_is_not_the_next_ones),
        ROOM(a_queue_that_is_over_makes_room),
        ROOM(the_brokers_own_absence_ends_none),
        ROOM(one_whose_results_nobody_wants_goes_first),
        ROOM(after_a_start_they_have_time_to_come_back),
    };

    return cmocka_run_group_tests_name("core_tasks_open", tests, tasks_open_file, tasks_close_file);
}
