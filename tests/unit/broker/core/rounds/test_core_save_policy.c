/* The broker's core: rounds that save policies open, by time, cost and history; and what a save
 * tells. */
#include "schema/rules/daly.h"
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* --- rounds by time, cost and history --------------------------------------------------------- */

static void steps(struct core_fixture *f, int64_t done)
{
    for (int n = 0; n < (int)f->world_size; n++) {
        f->nodes[n].begun = f->nodes[n].done = done;
        core_heartbeat(f, n);
    }
}

/* Ms until a round opens, at most `most`. */
static int64_t opens_after(struct core_fixture *f, int64_t most)
{
    int64_t began = f->now;

    core_tick(f);
    while (core_event(f, EVENT_FREEZE) == NULL) {
        if (f->now - began >= most)
            return -1;
        core_pass(f, 500);
    }
    return f->now - began;
}

/* The open round is saved at `step`, and stops training for blocked_ms. */
static void finish(struct core_fixture *f, int64_t step, uint64_t blocked_ms)
{
    uint64_t round = core_job(f)->round;

    f->blocked_ms = blocked_ms;
    core_report(f, 0, round, step, step);
    core_save(f, 0, round, step);
    core_manifest_done(f, round, step);
    assert_int_equal(registry_newest(core_job(f))->row.step, step);
}

/* R5.1, R13.1, R13.3 */
static void a_period_opens_rounds(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "period-ms 60000");
    steps(f, 1);
    int64_t first = opens_after(f, 70000);
    assert_in_range(first, 58500, 60500);
    assert_events(f, "freeze r1 period m0");
    finish(f, 1, 100);
    assert_int_equal(opens_after(f, 70000), -1); /* nothing was done since */
    steps(f, 2);
    assert_in_range(opens_after(f, 2000), 0, 1000);
    finish(f, 2, 100);
    steps(f, 3);
    core_commit_at(f, 3); /* another cause's save counts */
    steps(f, 4);
    assert_in_range(opens_after(f, 70000), 59500, 60500);
}

/* What fails is not asked for every second: a full disk stays full (R13.2). */
static void saves_that_fail_are_asked_for_more_and_more_rarely(void **state)
{
    struct core_fixture *f = *state;
    int64_t waits[9] = {0};

    core_policies(f, "", "continuous-ms 0");
    steps(f, 1);
    for (int i = 0; i < 9; i++) {
        waits[i] = opens_after(f, 70000);
        core_report(f, 0, core_job(f)->round, 1, 1);
        core_save_failed(f, 0, core_job(f)->round, 1, MUSTER_E_STORAGE);
    }
    assert_in_range(waits[1], 500, 1000);
    assert_in_range(waits[3], 3500, 4000);
    assert_in_range(waits[8], 59500, 60000);
    assert_in_range(opens_after(f, 70000), 59500, 60000);
    finish(f, 1, 1);
    steps(f, 2);
    assert_in_range(opens_after(f, 70000), 59500, 60000); /* it was in time to wait for that one */
    finish(f, 2, 1);
    steps(f, 3);
    assert_in_range(opens_after(f, 70000), 500, 1000);
}

/* R13.1 */
static void a_sharded_job_without_a_rank_is_not_asked(void **state)
{
    struct core_fixture f;

    (void)state;
    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    core_policies(&f, "", "period-ms 1000");
    core_leave(&f, 1, LEAVE_FINISHED, 0);
    f.nodes[1].silent = true;
    f.nodes[0].begun = f.nodes[0].done = 1;
    core_heartbeat(&f, 0);
    assert_int_equal(opens_after(&f, 10000), -1);
    assert_int_equal(core_job(&f)->round, 0);
    core_fixture_close(&f);
}

static void a_period_counts_on_over_a_restart(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "period-ms 60000");
    core_saved_whole(f, 1);
    f->now += 40000;
    core_start_again(f);
    steps(f, 2);
    assert_in_range(opens_after(f, 70000), 19000, 21000);
}

/* R13.3 */
static void continuous_waits_for_the_save_before(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "continuous-ms 5000");
    steps(f, 1);
    assert_in_range(opens_after(f, 10000), 3500, 5500);
    core_report(f, 0, 1, 1, 1);
    core_at_step(f, 0, 1, 1, true); /* captured: it is written behind */
    assert_int_equal(core_job(f)->rounds[0].state, ROUND_WRITING);
    steps(f, 2);
    assert_int_equal(opens_after(f, 20000), -1);
    core_files(f, 0, 1, 1, 1);
    core_saved(f, 0, 1, 1, 1);
    assert_in_range(opens_after(f, 2000), 0, 1000);
}

/* R13.3, R13.4 */
static void overhead_follows_the_measured_cost(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "overhead-ppm 20000"); /* 2 % */
    steps(f, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000); /* to learn what a save costs */
    finish(f, 1, 400);
    steps(f, 2);
    assert_in_range(opens_after(f, 60000), 19500, 20500);
    finish(f, 2, 800); /* mean 600 */
    steps(f, 3);
    assert_in_range(opens_after(f, 60000), 29500, 30500);
}

/* Behind training a snapshot is nothing, and the wait for the save before was
 * everything (R13.4). */
static void the_wait_for_the_save_before_is_a_cost(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "overhead-ppm 20000");
    steps(f, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000);
    f->waited_ms = 399;
    finish(f, 1, 1);
    f->waited_ms = 0;
    assert_int_equal(core_checkpoint(f, 1)->waited_ms, 399);
    steps(f, 2);
    assert_in_range(opens_after(f, 60000), 19500, 20500);
}

/* Eight saves later one that took long, as the first one of a cold disk, paces nothing any
 * more (R13.4). */
static void a_cost_of_nine_saves_ago_is_forgotten(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "overhead-ppm 20000");
    for (int64_t step = 1; step <= 9; step++) {
        steps(f, step);
        assert_true(opens_after(f, 450000) >= 0);
        finish(f, step, step == 1 ? 8000 : 100);
    }
    steps(f, 10);
    assert_in_range(opens_after(f, 60000), 4500, 5500);
}

/* It would stop training until the one before is on disk. */
static void none_by_cost_is_opened_while_one_is_written(void **state)
{
    struct core_fixture *f = *state;
    static const char *const policies[] = {"overhead-ppm 500000", "young-daly"};

    for (size_t i = 0; i < 2; i++) {
        int64_t step = 1 + 20 * (int64_t)i;

        core_policies(f, "", policies[i]);
        steps(f, step);
        assert_true(opens_after(f, 100000) >= 0);
        finish(f, step, 0);
        steps(f, step + 1);
        assert_true(opens_after(f, 100000) >= 0);
        uint64_t round = core_job(f)->round;
        core_report(f, 0, round, step + 1, step + 1);
        core_at_step(f, 0, round, step + 1, true);
        steps(f, step + 9);
        assert_int_equal(opens_after(f, 40000), -1);
        core_save(f, 0, round, step + 1);
        core_manifest_done(f, round, step + 1);
        assert_in_range(opens_after(f, 100000), 0, 20000);
        finish(f, step + 9, 0);
    }
}

/* One writes behind the training, but what ends it is written in the foreground (R13.4). */
static void what_a_termination_saves_paces_nothing(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "overhead-ppm 20000");
    steps(f, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000);
    finish(f, 1, 400);
    core_job(f)->checkpoints[0].row.cause = CAUSE_TERMINATION;
    steps(f, 2);
    assert_in_range(opens_after(f, 60000), 19500, 20500); /* it is all that is known */
    finish(f, 2, 100);
    steps(f, 3);
    assert_in_range(opens_after(f, 60000), 4500, 5500);
}

/* R13.3 */
static void daly_follows_cost_and_interruptions(void **state)
{
    struct core_fixture *f = *state;
    int64_t day = 24 * HOUR;

    /* Daly 2006: sqrt(2 C M)(1 + 1/3 sqrt(C/2M) + 1/9 (C/2M)) between saves */
    assert_int_equal(daly_interval_ms(60000, day), 3240062);
    assert_int_equal(daly_interval_ms(0, day), 0);
    assert_int_equal(daly_interval_ms(2 * day, day), day);
    core_policies(f, "", "young-daly");
    steps(f, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000);
    finish(f, 1, 2000);
    steps(f, 2);
    int64_t once = opens_after(f, 3000000);
    assert_in_range(once, 580000, 600000); /* sqrt(2 x 2 s x 86,400 s) = 588 s */
    finish(f, 2, 2000);
    core_job(f)->keep.interruptions = 15; /* M is a 16th of it, the interval a quarter */
    steps(f, 3);
    assert_in_range(opens_after(f, 3000000), once / 4 - 3000, once / 4 + 3000);
}

/* A copy of a small state takes less than a millisecond: it was saved every second for ever. */
static void a_save_below_a_millisecond_has_a_cost(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "young-daly");
    steps(f, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000);
    finish(f, 1, 0);
    steps(f, 2);
    assert_in_range(opens_after(f, 3000000), 10000, 20000); /* sqrt(2 * 1 ms * 1 day) */
}

static int64_t between_ms(struct core_fixture *f)
{
    return save_policy_between_ms(core_job(f), f->core->now_unix);
}

static void a_launch_that_did_not_finish_is_an_interruption(void **state)
{
    struct core_fixture *f = *state;

    f->now += HOUR;
    core_tick(f);
    /* so far one of a day is assumed, and the launch that runs counts */
    assert_in_range(between_ms(f), 25 * HOUR, 25 * HOUR + 5000);
    core_notice(f, 0, "n1", 1000000);
    core_report(f, 0, 1, 4, 4);
    core_save(f, 0, 1, 4);
    core_leave(f, 0, LEAVE_PREEMPTED, 42);
    assert_int_equal(core_job(f)->keep.interruptions, 1);
    assert_in_range(core_job(f)->keep.run_ms, HOUR, HOUR + 5000);
    f->now += 7 * HOUR; /* nobody takes a step meanwhile */
    core_tick(f);
    assert_in_range(between_ms(f), 25 * HOUR / 2, 25 * HOUR / 2 + 5000);
}

static void stands(struct core_fixture *f, int64_t begun, int64_t done)
{
    f->nodes[0].begun = begun;
    f->nodes[0].done = done;
    core_heartbeat(f, 0);
}

/* Its ranks ask for the first step themselves; when nothing came of it, it is not lost (R13.3). */
static void a_first_save_that_failed_is_made_later(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "", "first");
    stands(f, 1, 0);
    assert_int_equal(opens_after(f, 5000), -1);
    stands(f, 1, 1); /* it is at the end of the first step still */
    assert_int_equal(opens_after(f, 5000), -1);
    stands(f, 2, 1);
    assert_in_range(opens_after(f, 5000), 0, 1000);
    core_report(f, 0, core_job(f)->round, 2, 1);
    core_save_failed(f, 0, core_job(f)->round, 2, MUSTER_E_SAVE);
    stands(f, 3, 2);
    assert_in_range(opens_after(f, 5000), 500, 1500);
    finish(f, 3, 1);
    stands(f, 5, 4);
    assert_int_equal(opens_after(f, 70000), -1);
    registry_drop(core_job(f), registry_newest(core_job(f))->row.round);
    assert_null(registry_newest(core_job(f))); /* it was saved anyway */
    assert_int_equal(opens_after(f, 5000), -1);
}

/* R13.5 */
static void the_chief_may_wish_for_a_save(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg message = core_msg(f, 0, WIRE_SAVE_WISH);

    message.u.save_wish.step = 1;
    steps(f, 1);
    core_say(f, 0, message);
    assert_int_equal(core_ack_value(f, 0), 1);
    core_say(f, 0, message); /* while it is open: the same */
    assert_int_equal(core_ack_value(f, 0), 1);
    finish(f, 1, 1);
    message.u.save_wish.step = 2;
    steps(f, 2);
    core_say(f, 0, message); /* the last one was saved: at once */
    assert_int_equal(core_ack_value(f, 0), 2);
    core_report(f, 0, 2, 2, 2);
    core_save_failed(f, 0, 2, 2, MUSTER_E_STORAGE);
    core_say(f, 0, message); /* a full disk stays full: not now */
    assert_int_equal(core_ack_value(f, 0), 0);
    core_pass(f, 4 * HEARTBEAT_MS);
    core_say(f, 0, message);
    assert_int_equal(core_ack_value(f, 0), 3);
}

/* --- what a save tells ------------------------------------------------------------------------ */

static void metrics_and_times_are_in_the_rows(void **state)
{
    struct core_fixture *f = *state;

    f->metrics = "{\"loss\": 0.5}";
    f->custom = "{\"who\": \"me\"}";
    f->blocked_ms = 25;
    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    f->now += 300;
    core_at_step(f, 0, 1, 4, false);
    core_files(f, 0, 1, 4, 1);
    core_saved(f, 0, 1, 4, 1);
    assert_non_null(strstr(core_text(f), "+custom {\"who\": \"me\"}"));
    assert_string_equal(core_checkpoint(f, 1)->metrics, "{\"loss\": 0.5}");
    assert_int_equal(core_checkpoint(f, 1)->blocked_ms, 25);
    assert_int_equal(core_checkpoint(f, 1)->total_ms, 300);
    f->metrics = "no JSON"; /* of a sender that does not check: the save counts */
    f->custom = "[]";
    core_commit_at(f, 5);
    assert_string_equal(core_checkpoint(f, 2)->metrics, "");
}

/* Two ranks that wait for the commit: rank 1 stood at the step when the round began, rank 0 came 50
 * ms later and wrote for 100 ms, rank 1 for 300. */
static void who_waits_for_the_commit_stands_still_until_then(void **state)
{
    struct core_fixture f;

    (void)state;
    core_fixture_running(&f, 2, LAYOUT_SHARDED);
    f.held = true;
    f.blocked_ms = 100;
    core_save_now(&f, "a");
    core_report(&f, 1, 1, 4, 4);
    f.now += 10;
    core_report(&f, 0, 1, 4, 3);
    core_at_step(&f, 1, 1, 4, false);
    f.now += 40;
    core_at_step(&f, 0, 1, 4, false);
    core_files(&f, 0, 1, 4, 1);
    f.now += 100;
    core_saved(&f, 0, 1, 4, 1);
    core_files(&f, 1, 1, 4, 1);
    f.now += 200;
    f.blocked_ms = 300;
    core_saved(&f, 1, 1, 4, 1);
    assert_int_equal(core_checkpoint(&f, 1)->blocked_ms, 350);
    assert_int_equal(core_checkpoint(&f, 1)->total_ms, 340);
    core_fixture_close(&f);
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, core_run_one, core_close)
    const struct CMUnitTest tests[] = {
        ONE(a_period_opens_rounds),
        ONE(saves_that_fail_are_asked_for_more_and_more_rarely),
        cmocka_unit_test(a_sharded_job_without_a_rank_is_not_asked),
        ONE(a_period_counts_on_over_a_restart),
        ONE(continuous_waits_for_the_save_before),
        ONE(overhead_follows_the_measured_cost),
        ONE(the_wait_for_the_save_before_is_a_cost),
        ONE(a_cost_of_nine_saves_ago_is_forgotten),
        ONE(none_by_cost_is_opened_while_one_is_written),
        ONE(what_a_termination_saves_paces_nothing),
        ONE(daly_follows_cost_and_interruptions),
        ONE(a_save_below_a_millisecond_has_a_cost),
        ONE(a_launch_that_did_not_finish_is_an_interruption),
        ONE(a_first_save_that_failed_is_made_later),
        ONE(the_chief_may_wish_for_a_save),
        ONE(metrics_and_times_are_in_the_rows),
        cmocka_unit_test(who_waits_for_the_commit_stands_still_until_then),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
