/* The broker's core: what makes no progress at a worker is named, once, in the journal and in its
 * row. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t events(struct tasks_fixture *f)
{
    return tasks_look(f, "SELECT count(*) FROM event WHERE kind = 'stuck'");
}

/* Passes that much time; the task says at each second that it goes on. */
static void pass_renewing(struct tasks_fixture *f, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 1000) {
        struct wire_lease_entry entry = {
            .queue = f->queue, .number = 1, .attempt = 1, .kind = TASK_KIND_TASK};
        struct wire_msg beat = tasks_msg(f, 0, WIRE_WORK_BEAT);

        beat.u.work_beat.received = f->workers[0].serial;
        beat.u.work_beat.renewed.items = &entry;
        beat.u.work_beat.renewed.count = 1;
        tasks_feed(f, tasks_route(f, 0), &beat);
        tasks_pass(f, 1000);
    }
}

/* R21.7 */
static void a_task_without_a_word_is_named_once(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_pass(f, STUCK_MS - 6000);
    assert_int_equal(events(f), 0);
    tasks_pass(f, 12000);
    assert_int_equal(events(f), 1);
    assert_int_equal(
        tasks_look(
            f, "SELECT count(*) FROM event WHERE text LIKE"
               " 'task 1 (work) of queue main has said nothing for 6% s, at worker 0 (process%'"),
        1);
    assert_int_equal(
        tasks_look(
            f, "SELECT count(*) FROM task WHERE state = 'leased' AND text LIKE '%said nothing%'"),
        1);
    tasks_pass(f, 2 * STUCK_MS);
    assert_int_equal(events(f), 1);
    tasks_done(f, 0, 1, 1); /* it was only slow */
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'done' AND text = ''"),
                     1);
}

/* R21.7 */
static void one_that_renews_is_named_when_it_has_done_so_ten_times_as_long(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    pass_renewing(f, 10 * STUCK_MS - 10000);
    assert_int_equal(events(f), 0);
    pass_renewing(f, 20000);
    assert_int_equal(events(f), 1);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM event WHERE text LIKE '%renews its lease "
                                   "and has not ended for 60_ s%'"),
                     1);
}

static void one_that_waits_for_its_turn_is_not_meant(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 2);
    tasks_add(f, 2);
    tasks_pass(f, STUCK_MS + 10000);
    assert_int_equal(events(f), 1);
    tasks_done(f, 0, 1, 1);
    tasks_pass(f, STUCK_MS - 10000);
    assert_int_equal(events(f), 1);
    tasks_pass(f, 20000);
    assert_int_equal(events(f), 1); /* as long as the first took, ten times over */
    tasks_pass(f, 10 * STUCK_MS + 100000);
    assert_int_equal(events(f), 2);
}

static void a_time_limit_is_told_before_it_is_over(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "work", .timeout_ms = 20000});
    tasks_pass(f, 14000);
    assert_int_equal(events(f), 0);
    tasks_pass(f, 5500);
    assert_int_equal(events(f), 1);
    tasks_pass(f, 2000); /* taken away: the attempt that comes next begins with a clean row */
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE losses = 1 AND text = ''"), 1);
}

/* R21.7 */
static void one_that_is_not_wanted_and_runs_on_is_named(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_say(f, WIRE_TASK_CANCEL, 1);
    tasks_pass(f, STUCK_MS + 10000);
    assert_int_equal(
        tasks_look(
            f,
            "SELECT count(*) FROM event WHERE text LIKE '%is no longer wanted and has not ended%'"),
        1);
}

/* R21.7 */
static void a_value_in_the_making_is_named(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_worker_begin(f, 0, 1, 1);
    tasks_pass(f, STUCK_MS + 10000);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM event WHERE text LIKE 'per-worker value 1 "
                                   "of queue main has said nothing%'"),
                     1);
}

static void a_restart_of_the_broker_begins_the_time_anew(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_pass(f, STUCK_MS + 10000);
    tasks_restart(f);
    tasks_hello(f, 0, "1.1");
    assert_int_equal(events(f), 1);
    tasks_pass(f, STUCK_MS - 10000);
    assert_int_equal(events(f), 1);
    f->workers[0].silent = true;
    tasks_pass(f, 10000); /* lost: the row says nothing of the attempt that is over */
    assert_int_equal(
        tasks_look(f, "SELECT count(*) FROM task WHERE state = 'queued' AND text = ''"), 1);
}

static void a_worker_that_comes_back_does_not_begin_its_tasks_time_anew(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "work", .timeout_ms = 20000});
    for (int i = 0; i < 4; i++) {
        tasks_pass(f, 4000);
        tasks_hello(f, 0, "1.1");
    }
    assert_int_equal(events(f), 1);
    tasks_pass(f, 5000);
    assert_int_equal(tasks_look(f, "SELECT losses FROM task"), 1);
}

static void a_restart_of_the_broker_is_no_loss_of_what_has_a_time(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "work", .timeout_ms = 20000});
    f->now += 3600000;
    tasks_restart(f);
    tasks_tick_at(f);
    tasks_hello(f, 0, "1.1");
    tasks_pass(f, 19000);
    assert_int_equal(tasks_look(f, "SELECT losses FROM task"), 0);
    tasks_pass(f, 2000);
    assert_int_equal(tasks_look(f, "SELECT losses FROM task"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)
        TEST(a_task_without_a_word_is_named_once),
        TEST(one_that_renews_is_named_when_it_has_done_so_ten_times_as_long),
        TEST(one_that_waits_for_its_turn_is_not_meant),
        TEST(a_time_limit_is_told_before_it_is_over),
        TEST(one_that_is_not_wanted_and_runs_on_is_named),
        TEST(a_value_in_the_making_is_named),
        TEST(a_restart_of_the_broker_begins_the_time_anew),
        TEST(a_worker_that_comes_back_does_not_begin_its_tasks_time_anew),
        TEST(a_restart_of_the_broker_is_no_loss_of_what_has_a_time),
    };

    return cmocka_run_group_tests_name("core_tasks_watch", tests, tasks_open_file,
                                       tasks_close_file);
}
