/* The broker's core: how long a task may be without a word, also when it waits behind others at its
 * worker. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* --- by itself -------------------------------------------------------------------------------- */

/* R21.6 */
static void a_task_without_a_word_for_too_long_goes_to_another(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 1, 1, 1);
    f->number = 1;
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "slow", .timeout_ms = 3000});
    assert_sent(f, "c:taken 1; w1:work 1.1");
    tasks_pass(f, 2500);
    assert_sent(f, "");
    tasks_pass(f, 500);
    assert_sent(f, "w1:alive -1.1; w0:work 1.2"); /* it may run on: nothing else for it */
    tasks_add(f, 1);
    assert_sent(f, "c:taken 2");
    tasks_done(f, 1, 1, 1);
    assert_sent(f, "w1:taken 1.1/MUSTER_E_STALE; w1:work 2.1");
    tasks_done(f, 0, 1, 2);
    assert_int_equal(tasks_queue(f)->ended, 1);
}

static void a_renewed_lease_stands(void **state)
{
    struct tasks_fixture *f = *state;
    struct wire_lease_entry entry = {.queue = f->queue, .number = 1, .attempt = 1};
    struct wire_msg beat;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "slow", .timeout_ms = 3000});
    for (int i = 0; i < 3; i++) {
        tasks_pass(f, 2000);
        beat = tasks_msg(f, 0, WIRE_WORK_BEAT);
        beat.u.work_beat.received = 1;
        beat.u.work_beat.renewed.items = &entry;
        beat.u.work_beat.renewed.count = 1;
        tasks_feed(f, 600, &beat);
        assert_sent(f, "w0:alive");
    }
    tasks_pass(f, 3000);
    assert_sent(f, "w0:alive -1.1");
}

static void a_pause_of_the_broker_takes_no_lease_away(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add_one(f, (struct wire_task_entry){.number = 1, .fn = "slow", .timeout_ms = 3000});
    tasks_beat(f, 0, 1);
    f->now += 60000;
    tasks_tick_at(f);
    assert_sent(f, "");
    assert_int_equal(tasks_queue(f)->leases, 1);
}

/* Another process asks for its index, and its HELLO stands before the beats that came meanwhile. */
static void a_pause_of_the_broker_takes_no_index_away(void **state)
{
    struct tasks_fixture *f = *state;
    struct tasks_worker holder;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 1);
    tasks_pass(f, 1000);
    holder = f->workers[0];
    f->now += 60000;
    tasks_worker_begin(f, 0, 1, 1);
    assert_sent(f, "w0:welcome/MUSTER_E_RANK_TAKEN");
    f->workers[0] = holder;
    tasks_done(f, 0, 1, 1);
    assert_sent(f, "w0:taken 1.1; c:ended @0 1.1=done");
}

static void one_that_is_silent_loses_its_index_where_every_pass_is_slow(void **state)
{
    struct tasks_fixture *f = *state;
    int passes = 0;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_worker_begin(f, 0, 1, 1);
    assert_sent(f, "w0:welcome/MUSTER_E_RANK_TAKEN");
    do {
        f->now += LOOP_GAP_MS + 100;
        tasks_hello(f, 0, ""); /* judged by what was known at the tick before */
        passes++;
    } while (passes < 3600 && strcmp(f->text, "w0:welcome/MUSTER_E_RANK_TAKEN") == 0);
    assert_sent(f, "w0:welcome");
    assert_int_equal(passes, GAPS_FORGIVEN + TAKEOVER_MS / LOOP_GAP_MS + 1);
}

/* --- behind others ---------------------------------------------------------------------------- */

static void add_timed(struct tasks_fixture *f, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tasks_add_one(
            f, (struct wire_task_entry){.number = ++f->number, .fn = "work", .timeout_ms = 1000});
}

static void what_waits_behind_others_does_not_time_out(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 4);
    add_timed(f, 4);
    assert_sent(f, "c:taken 4; w0:work 4.1");
    for (uint64_t number = 1; number <= 4; number++) {
        tasks_pass(f, 900);
        assert_sent(f, "");
        tasks_done(f, 0, number, 1);
    }
    assert_int_equal(tasks_queue(f)->ended, 4);
    assert_int_equal(tasks_look(f, "SELECT sum(losses) FROM task"), 0);
}

/* R21.6 */
static void what_waits_behind_one_that_hangs_goes_back(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 4);
    add_timed(f, 3);
    f->now += 999;
    tasks_tick_at(f);
    assert_int_equal(tasks_queue(f)->leases, 3);
    f->now += 1;
    tasks_tick_at(f);
    assert_sent(f, "w0:alive -1.1 <2.1 <3.1");
    assert_int_equal(tasks_look(f, "SELECT sum(losses) FROM task"), 1);
    tasks_ended_as(f, 0,
                   (struct wire_ended_entry){.number = 2, .attempt = 1, .state = TASK_QUEUED});
    tasks_ended_as(f, 0,
                   (struct wire_ended_entry){.number = 3, .attempt = 1, .state = TASK_QUEUED});
    assert_sent(f, "w0:taken 3.1"); /* and it gets nothing as long as it hangs */
    tasks_worker_begin(f, 1, 1, 4);
    assert_sent(f, "w1:welcome; w1:work 1.2");
    tasks_done(f, 1, 1, 2);
    assert_sent(f, "w1:taken 1.2; c:ended @0 1.2=done; w1:work 2.1 3.1");
    tasks_ended_as(
        f, 0,
        (struct wire_ended_entry){
            .number = 1, .attempt = 1, .state = TASK_FAILED, .status = MUSTER_E_CANCELLED});
    assert_sent(f, "w0:taken 1.1/MUSTER_E_STALE");
    assert_int_equal(tasks_look(f, "SELECT sum(losses) FROM task"), 1);
}

static void with_a_slot_that_goes_on_nothing_goes_back(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 2, 4);
    add_timed(f, 1);
    tasks_add(f, 2);
    f->now += 1000;
    tasks_tick_at(f);
    assert_int_equal(tasks_look(f, "SELECT sum(losses) FROM task"), 1);
    assert_null(strchr(f->text, '<'));
}

/* It was never begun: it is no value, and is given again. */
static void a_value_that_waits_behind_one_that_hangs_is_made_later(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 2);
    add_timed(f, 1);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    assert_sent(f, "c:resource 1; w0:work r1");
    tasks_beat(f, 0, 2);
    f->now += 1000;
    tasks_tick_at(f);
    assert_sent(f, "w0:alive -1.1 <r1");
    tasks_ended_as(
        f, 0,
        (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE, .state = TASK_QUEUED});
    assert_sent(f, "w0:taken r1");
    tasks_add_one(f, (struct wire_task_entry){.number = ++f->number,
                                              .fn = "work",
                                              .uses = {(uint8_t[]){0, 0, 0, 1}, 4}});
    assert_sent(f, "c:taken 2");
    tasks_ended_as(
        f, 0,
        (struct wire_ended_entry){
            .number = 1, .attempt = 1, .state = TASK_FAILED, .status = MUSTER_E_CANCELLED});
    assert_sent(f, "w0:taken 1.1/MUSTER_E_STALE; w0:work r1");
}

/* Nothing takes that one away; it is named, and costs its slot. */
static void what_waits_behind_one_without_a_limit_that_hangs_goes_back(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 2);
    tasks_add(f, 1);
    add_timed(f, 1);
    tasks_worker_begin(f, 1, 1, 1);
    tasks_pass(f, STUCK_MS + 1000);
    tasks_beat(f, 0, 2);
    assert_sent(f, "w0:alive <1.1 <2.1"); /* what runs does not come back by that */
    tasks_ended_as(f, 0,
                   (struct wire_ended_entry){.number = 2, .attempt = 1, .state = TASK_QUEUED});
    assert_sent(f, "w0:taken 2.1; w1:work 2.1");
    assert_int_equal(tasks_look(f, "SELECT sum(losses) FROM task"), 0);
}

/* Others take all other tasks meanwhile, and never hold none. */
static void a_suspect_does_not_wait_for_a_worker_that_hangs(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    add_timed(f, 1);
    tasks_worker_begin(f, 1, 2, 4);
    tasks_add(f, 6);
    tasks_pass(f, 1000);
    for (uint64_t number = 2; number <= 7 && tasks_look(f, "SELECT max(attempt) FROM task") < 2;
         number++) {
        tasks_done(f, 1, number, 1);
        tasks_add(f, 1);
    }
    assert_int_equal(tasks_look(f, "SELECT attempt FROM task WHERE id % 256 = 1"), 2);
}

static void a_worker_hears_of_queues_that_are_gone(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_worker_begin(f, 0, 1, 1);
    tasks_say(f, WIRE_RESOURCE_ADD, 1);
    tasks_ended_as(f, 0, (struct wire_ended_entry){.number = 1, .kind = TASK_KIND_RESOURCE});
    f->coordinator++;
    tasks_open_queue(f, true, 0);
    assert_sent(f, "w0:alive gone q1; c:opened q2 0/0");
    tasks_restart(f);
    f->queue = 1;
    tasks_hello(f, 0, "r1!"); /* it did not hear that */
    assert_sent(f, "w0:welcome; w0:alive gone q1");
    tasks_beat(f, 0, 0);
    assert_sent(f, "w0:alive");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_without_a_word_for_too_long_goes_to_another),
        TEST(a_renewed_lease_stands),
        TEST(a_pause_of_the_broker_takes_no_lease_away),
        TEST(a_pause_of_the_broker_takes_no_index_away),
        TEST(one_that_is_silent_loses_its_index_where_every_pass_is_slow),
        TEST(what_waits_behind_others_does_not_time_out),
        TEST(what_waits_behind_one_that_hangs_goes_back),
        TEST(with_a_slot_that_goes_on_nothing_goes_back),
        TEST(a_value_that_waits_behind_one_that_hangs_is_made_later),
        TEST(what_waits_behind_one_without_a_limit_that_hangs_goes_back),
        TEST(a_suspect_does_not_wait_for_a_worker_that_hangs),
        TEST(a_worker_hears_of_queues_that_are_gone),
    };

    return cmocka_run_group_tests_name("core_tasks_time", tests, tasks_open_file, tasks_close_file);
}
