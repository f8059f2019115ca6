/* The broker's core: a freeze that is planned for as late as is safe. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* 2.5 x 40 ms of a save + 2 x 100 ms of steps + freeze + margin + spare */
#define LEAST_MS (100 + 200 + FREEZE_MS + MARGIN_MS + PLAN_SPARE_MS)
/* A save, a step and a broker that starts again: of a notice with 60 s. */
#define RESERVE_MS (40 + 100 + PLAN_RESTART_MS + PLAN_FREEZE_MS + MARGIN_MS)
#define RESERVE_OF(grace_ms) (LEAST_MS + ((grace_ms)-LEAST_MS) / PLAN_RESTART_SHARE)

static void beat_all(struct core_fixture *f, int64_t at)
{
    for (int n = 0; n < (int)f->world_size; n++) {
        f->nodes[n].p95_ms = 100;
        f->nodes[n].begun = f->nodes[n].done = at;
        core_heartbeat(f, n);
    }
}

/* Three ranks at step 8, one checkpoint at step 4. */
static int measured(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 3, LAYOUT_REPLICATED);
    f.plans = true;
    core_commit_at(&f, 4);
    beat_all(&f, 8);
    *state = &f;
    return 0;
}

static void notice_with(struct core_fixture *f, int node, const char *id, int64_t left_ms,
                        uint64_t flags)
{
    struct wire_msg m = core_msg(f, node, WIRE_NOTICE);

    m.u.notice = (struct wire_notice){.id = id,
                                      .kind = NOTICE_PREEMPT,
                                      .source = "test",
                                      .left_ms = left_ms,
                                      .cancellable = true,
                                      .text = "",
                                      .flags = flags};
    core_say(f, node, m);
}

static void assert_freezes_after(struct core_fixture *f, int64_t ms, const char *events)
{
    core_pass(f, ms - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, events);
}

/* R6.6 */
static void what_a_plan_moved_by_since_it_was_shown_is_told_with_its_freeze(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1");
    plan_saves_add(&core_job(f)->saves,
                   240); /* 200 ms more than the longest: nothing is shown again */
    assert_freezes_after(f, 60000 - RESERVE_MS - 200, "freeze r2 termination m0,1,2");
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "6.8 s before the deadline of notice n1, which gave 60.0 s (step p95 100 "
                        "ms, save p95 240 ms, ranks 0 steps apart)");
}

static void a_notice_that_leaves_time_is_frozen_at_the_last_safe_moment(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1");
    assert_answers(f, "1:ack #3 MUSTER_OK");
    assert_true(core_job(f)->plan.freeze_unix_ms > 0);
    assert_string_equal(core_row(f, RECORD_JOB)->u.job.plan,
                        "6.6 s before the deadline of notice n1, which gave 60.0 s (step p95 100 "
                        "ms, save p95 40 ms, ranks 0 steps apart)");
    assert_freezes_after(f, 60000 - RESERVE_MS, "freeze r2 termination m0,1,2");
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "6.6 s before the deadline of notice n1, which gave 60.0 s (step p95 100 "
                        "ms, save p95 40 ms, ranks 0 steps apart)");
    assert_int_equal(core_job(f)->plan.freeze_unix_ms, 0); /* no plan waits now */
}

/* R6.1 */
static void a_guess_a_wish_and_a_grace_that_is_needed_are_frozen_at_once(void **state)
{
    struct core_fixture *f = *state;

    notice_with(f, 1, "n1", 60000, NOTICE_FLAG_AT_ONCE);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "at once: notice n1 asks for it (by grace_period_ms)");
    core_close(state);
    measured(state);
    notice_with(f, 1, "n1", 60000, NOTICE_FLAG_AT_ONCE | NOTICE_FLAG_ASSUMED);
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "at once: notice n1 tells no time left to plan with");
    core_close(state);
    measured(state);
    core_notice(f, 1, "n1", -1);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
    core_close(state);
    measured(state);
    plan_saves_add(&core_job(f)->saves, 23001);
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "61.2 s before the deadline of notice n1, which gave 60.0 s (step p95 100 "
                        "ms, save p95 23001 ms, ranks 0 steps apart); that was now already");
    core_close(state);
    measured(state);
    core_notice(f, 1, "n1", LEAST_MS);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
}

/* What has to be kept free for a save that nobody measured, and for what else the line above has */
#define ASSUMED_MS (60000 + FREEZE_MS + MARGIN_MS + PLAN_SPARE_MS)

static void what_was_not_measured_is_assumed_and_named(void **state)
{
    struct core_fixture *f = *state;

    core_job(f)->saves.count = 0;
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "63.7 s before the deadline of notice n1, which gave 60.0 s (step p95 100 "
                        "ms, no save was measured yet: 24 s assumed, ranks 0 steps apart); that "
                        "was now already");
}

/* Three ranks that take their first steps, and nothing was ever measured. */
static void fresh(struct core_fixture *f)
{
    core_fixture_close(f);
    core_fixture_running(f, 3, LAYOUT_REPLICATED);
    f->plans = true;
}

static void begin_step(struct core_fixture *f, int64_t step)
{
    for (int n = 0; n < (int)f->world_size; n++) {
        f->nodes[n].begun = step;
        f->nodes[n].done = step - 1;
        core_heartbeat(f, n);
    }
    core_tick(f);
}

/* R6.7 */
static void a_notice_far_ahead_costs_one_early_save(void **state)
{
    struct core_fixture *f = *state;

    fresh(f);
    core_notice(f, 1, "n1", 200000);
    assert_events(f, "termination rank 1"); /* there is nothing to save */
    begin_step(f, 1);
    assert_events(f, "freeze r1 notice m0,1,2");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 1, 0);
    core_save(f, 0, 1, 1);
    assert_events(f, "commit r1 notice S1 c1 rank 0");
    beat_all(f, 2);
    assert_freezes_after(f, 200000 - RESERVE_MS, "freeze r2 termination m0,1,2");
}

/* It is measured by what comes of it: a save that fails is not tried for ever. */
static void an_early_save_that_fails_is_asked_for_once(void **state)
{
    struct core_fixture *f = *state;

    fresh(f);
    core_notice(f, 1, "n1", 200000);
    begin_step(f, 1);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 1, 0);
    core_save_failed(f, 0, 1, 1, MUSTER_E_STORAGE);
    (void)core_events(f);
    beat_all(f, 2);
    assert_freezes_after(f, 200000 - ASSUMED_MS - 200, "freeze r2 termination m0,1,2");
}

/* A round for it would end at once, once at each input (R6.7). */
static void a_sharded_job_of_which_a_rank_has_finished_asks_for_no_early_save(void **state)
{
    struct core_fixture *f = *state;

    core_fixture_close(f);
    core_fixture_running(f, 3, LAYOUT_SHARDED);
    f->plans = true;
    core_leave(f, 2, LEAVE_FINISHED, 0);
    core_notice(f, 1, "n1", 200000);
    (void)core_events(f);
    begin_step(f, 1);
    assert_events(f, "");
}

/* There is no time for two saves, but for the first it has to train. */
static void a_launch_under_a_short_notice_trains_before_it_leaves(void **state)
{
    struct core_fixture *f = *state;

    fresh(f);
    core_notice(f, 1, "n1", 30000);
    assert_events(f, "termination rank 1");
    core_pass(f, 20000);
    assert_events(f, "");
    begin_step(f, 1);
    assert_events(f, "freeze r1 termination m0,1,2");
    fresh(f);
    core_notice(f, 1, "n1", 30000);
    (void)core_events(f);
    core_pass(f, 30000 - FREEZE_MS - 2 * MARGIN_MS - 1);
    assert_events(f, "");
    core_pass(f, 1); /* it never began */
    assert_events(f, "freeze r1 termination m0,1,2");
}

/* An open save is the last when no time is left for another (R5.16). */
static void an_early_save_that_takes_long_becomes_the_last(void **state)
{
    struct core_fixture *f = *state;

    fresh(f);
    core_notice(f, 1, "n1", ASSUMED_MS + 100);
    begin_step(f, 1);
    assert_events(f, "freeze r1 notice m0,1,2");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 1, 0);
    assert_events(f, "decision r1 notice S1 m0w,1,2");
    assert_freezes_after(f, ASSUMED_MS + 100 - FREEZE_MS - 2 * MARGIN_MS, "termination r1 rank 1");
    core_save(f, 0, 1, 1);
    assert_events(f, "commit r1 termination S1 c1 rank 0");
}

/* R6.3 */
static void an_earlier_notice_moves_the_freeze_forward_and_its_withdrawal_back(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_notice(f, 2, "n2", 20000);
    assert_events(f, "termination rank 2");
    core_pass(f, 5000);
    core_cancel(f, 2, "n2");
    assert_events(f, "notice cancelled rank 2");
    assert_freezes_after(f, 60000 - RESERVE_MS - 5000, "freeze r2 termination m0,1,2");
    core_close(state);
    measured(state);
    core_notice(f, 1, "n1", 60000);
    core_notice(f, 2, "n2", 20000);
    assert_freezes_after(f, 20000 - RESERVE_OF(20000), "freeze r2 termination m0,1,2");
    core_close(state);
    measured(state);
    core_notice(f, 1, "n1", 60000);
    core_notice(f, 1, "n1", 10000); /* the same one, and its deadline has moved */
    assert_freezes_after(f, 10000 - RESERVE_OF(10000), "freeze r2 termination m0,1,2");
}

static void a_notice_that_is_withdrawn_in_time_ends_nobody(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_pass(f, 50000);
    core_cancel(f, 1, "n1");
    assert_events(f, "notice cancelled rank 1");
    assert_int_equal(core_job(f)->plan.freeze_unix_ms, 0);
    assert_string_equal(core_row(f, RECORD_JOB)->u.job.plan, "");
    core_pass(f, 30000);
    assert_events(f, "");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

/* R6.5 */
static void ranks_that_are_apart_and_slower_steps_freeze_earlier(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    f->nodes[2].begun = f->nodes[2].done = 3; /* five steps behind the others */
    core_pass(f, 1000);
    assert_freezes_after(f, 60000 - RESERVE_MS - 1000 - 500, "freeze r2 termination m0,1,2");
    core_close(state);
    measured(state);
    core_notice(f, 1, "n1", 60000);
    f->nodes[0].p95_ms = 1000;
    core_pass(f, 1000);
    assert_freezes_after(f, 60000 - RESERVE_MS - 1000 - 900, "freeze r2 termination m0,1,2");
}

/* R6.5 */
static void heartbeats_of_different_moments_are_no_distance(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[2].begun = f->nodes[2].done = 100; /* all begin ten steps a second */
    core_heartbeat(f, 2);
    f->now += 900;
    for (int n = 0; n < 2; n++) {
        f->nodes[n].begun = f->nodes[n].done = 109;
        core_heartbeat(f, n);
    }
    core_notice(f, 1, "n1", 60000);
    assert_int_equal(core_job(f)->plan.freeze_boot_ms, f->now + 60000 - RESERVE_MS);
}

/* R9.6 */
static void a_plan_outlives_the_broker(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_pass(f, 2000); /* progress is written */
    core_restart(f, false);
    for (int n = 0; n < 3; n++)
        core_hello(f, n);
    assert_true(core_job(f)->plan.freeze_unix_ms > 0);
    assert_freezes_after(f, 60000 - RESERVE_MS - 2000, "freeze r2 termination m0,1,2");
}

/* R9.6 */
static void a_broker_that_was_away_at_the_moment_freezes_when_it_is_back(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_pass(f, 60000 - RESERVE_MS - 10);
    f->now += 300;
    core_restart(f, false);
    assert_events(f, ""); /* there is time to wait for the nodes */
    core_hello(f, 0);
    core_hello(f, 1);
    assert_events(f, "");
    core_hello(f, 2);
    assert_events(f, "freeze r2 termination m0,1,2");
    core_close(state);
    measured(state);
    core_notice(f, 1, "n1", 60000);
    core_pass(f, 60000 - RESERVE_MS - 10);
    f->now += 4600;
    core_restart(f, false);
    assert_events(f, "freeze r2 termination m0,1,2"); /* no time is left to wait */
}

/* Who lives after it shows that it was not exact: there is a save to make, and time to come back
 * for it (R9.6). */
static void a_deadline_that_passed_while_the_broker_was_away_is_not_known(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_pass(f, 2000);
    f->now += 60000;
    core_restart(f, false);
    assert_events(f, "");
    core_hello(f, 0);
    core_hello(f, 1);
    assert_events(f, "");
    core_hello(f, 2);
    assert_events(f, "freeze r2 termination m0,1,2");
    const struct record_round *round = &core_row(f, RECORD_ROUND)->u.round;
    assert_int_equal(round->deadline_boot_ms, 0);
    assert_non_null(strstr(round->plan, "a deadline that passed while the broker was away"));
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 9, 9);
    assert_events(f, "decision r2 termination S9 m0w,1,2");
    core_save(f, 0, 2, 9);
    assert_events(f, "commit r2 termination S9 c2 rank 0");
}

static void a_decided_save_outlives_a_deadline_that_passed_while_the_broker_was_away(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_pass(f, 60000 - RESERVE_MS);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 9, 9);
    assert_non_null(strstr(core_events(f), "decision r2 termination S9"));
    f->now += 30000;
    core_restart(f, false);
    for (int n = 0; n < 3; n++)
        core_hello(f, n);
    assert_events(f, "");
    core_save(f, 0, 2, 9);
    assert_events(f, "commit r2 termination S9 c2 rank 0");
}

/* A notice that still waits for its moment has joined no save but its own. */
static void another_save_that_outlives_the_broker_gets_no_deadline(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 9, 9);
    assert_events(f, "decision r2 operator S9 m0w,1,2");
    core_restart(f, false);
    for (int n = 0; n < 3; n++)
        core_hello(f, n);
    core_save(f, 0, 2, 9);
    assert_events(f, "commit r2 operator S9 c2 rank 0");
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms, 0);
}

/* R6.5 */
static void times_of_the_launch_before_plan_the_first_notice(void **state)
{
    struct core_fixture *f = *state;

    core_pass(f, 1000);
    for (int n = 0; n < 3; n++)
        core_leave(f, n, LEAVE_FINISHED, 0);
    core_restart(f, false);
    for (int n = 0; n < 3; n++) {
        f->nodes[n] = (struct core_node){.role = f->nodes[n].role,
                                         .rank = f->nodes[n].rank,
                                         .incarnation = f->nodes[n].incarnation + 1000,
                                         .route = f->nodes[n].route};
        core_hello(f, n);
    }
    for (int n = 0; n < 3; n++)
        core_restored(f, n, 1, 4);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1");
    for (int n = 0; n < 3; n++) {
        f->nodes[n].begun = f->nodes[n].done = 5;
        core_heartbeat(f, n);
    }
    assert_freezes_after(f, 60000 - RESERVE_MS, "freeze r2 termination m0,1,2");
}

static void other_saves_go_on_while_a_plan_waits(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_commit_at(f, 9);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_save_at(f, 0, 12);
    assert_events(f, "decision r3 policy S12 m0w,1,2");
}

/* R5.16: at the moment of its plan another save would still fit in. */
static void an_open_save_is_joined_when_no_other_fits_in(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "op");
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1"); /* that save is not its own */
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 9, 9);
    assert_events(f, "decision r2 operator S9 m0w,1,2");
    assert_freezes_after(f, 60000 - (40 + 100 + PLAN_FREEZE_MS + MARGIN_MS),
                         "termination r2 rank 1");
    core_save(f, 0, 2, 9);
    assert_events(f, "commit r2 termination S9 c2 rank 0");
}

/* R6.7 */
static void a_notice_may_ask_for_two_saves(void **state)
{
    struct core_fixture *f = *state;

    notice_with(f, 1, "n1", 60000, NOTICE_FLAG_SAVE_NOW);
    assert_events(f, "termination rank 1; freeze r2 notice m0,1,2");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 9, 9);
    core_save(f, 0, 2, 9);
    assert_events(f, "commit r2 notice S9 c2 rank 0");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    beat_all(f, 9);
    assert_freezes_after(f, 60000 - RESERVE_MS, "freeze r3 termination m0,1,2");
}

/* It is open when the notice comes, and is all that was asked for (R6.7). */
static void a_save_that_is_made_behind_the_notice_is_the_first_of_two(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "op");
    notice_with(f, 1, "n1", 60000, NOTICE_FLAG_SAVE_NOW);
    assert_events(f, "termination rank 1");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 9, 9);
    f->now += 100;
    core_save(f, 0, 2, 9);
    assert_events(f, "commit r2 operator S9 c2 rank 0");
    beat_all(f, 9);
    core_pass(f, 1000);
    assert_events(f, "");
}

static void two_saves_are_one_if_there_is_no_time_between(void **state)
{
    struct core_fixture *f = *state;

    notice_with(f, 1, "n1", 3000, NOTICE_FLAG_SAVE_NOW);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
}

/* One event that four machines tell 0.4 s apart, one of them taken back: one save now, one at the
 * end. */
static void two_saves_are_two_however_many_tell_of_the_end(void **state)
{
    struct core_fixture *f = *state;
    static const char *const ids[] = {"n0", "n1", "n2"};

    notice_with(f, 0, ids[0], 60000, NOTICE_FLAG_SAVE_NOW);
    assert_events(f, "termination rank 0; freeze r2 notice m0,1,2");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 2, 9, 9);
    core_save(f, 0, 2, 9);
    for (int n = 1; n < 3; n++) {
        core_pass(f, 400);
        notice_with(f, n, ids[n], 60000, NOTICE_FLAG_SAVE_NOW);
        assert_events(f, n == 1 ? "termination rank 1" : "termination rank 2");
    }
    core_cancel(f, 2, ids[2]);
    assert_events(f, "notice cancelled rank 2");
    core_cancel(f, 0, ids[0]);
    core_cancel(f, 1, ids[1]);
    notice_with(f, 1, "another", 60000, NOTICE_FLAG_SAVE_NOW); /* all was taken back: a new story */
    assert_events(f, "termination rank 1; freeze r3 notice m0,1,2");
}

/* Its machine goes, and nobody needs it; the others would end by it long after (R7.4). */
static void the_notice_of_a_rank_that_has_finished_ends_nobody(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_events(f, "notice cancelled rank 1");
    core_pass(f, 61000);
    assert_events(f, "");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

static void joining(struct core_fixture *f)
{
    core_fixture_close(f);
    core_fixture_open(f, 2, LAYOUT_REPLICATED);
    f->plans = true;
    core_hello(f, 0);
}

/* A machine whose end is announced for later does not keep the job from running until then. */
static void a_job_begins_although_a_notice_stands_that_leaves_it_time(void **state)
{
    struct core_fixture *f = *state;

    joining(f);
    core_notice(f, 0, "n1", 3000000);
    assert_events(f, "termination rank 0");
    core_hello(f, 1);
    core_restored(f, 0, 0, 0);
    core_restored(f, 1, 0, 0);
    core_tick(f);
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
}

static void one_that_does_not_begin_in_time_ends_as_it_is(void **state)
{
    struct core_fixture *f = *state;

    joining(f);
    core_notice(f, 0, "n1", 60000);
    assert_events(f, "termination rank 0");
    core_pass(f, 60000 - FREEZE_MS - 2 * MARGIN_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "unchanged r1 termination S0");
}

/* R7.1 */
static void a_tool_that_says_that_no_time_is_left_is_taken_for_one_that_does_not_know(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg m = {.type = WIRE_NOTICE};

    m.u.notice = (struct wire_notice){
        .id = "n1", .kind = NOTICE_PREEMPT, .source = "tool", .rank = 1, .text = ""};
    core_tool(f, m, 1);
    assert_events(f, "termination rank 1; freeze r2 termination m0,1,2");
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms,
                     f->now + GRACE_DEFAULT_MS);
}

/* R6.8 */
static void a_rank_that_is_lost_while_a_plan_waits_loses_no_save(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_leave(f, 1, LEAVE_FAILED, 9); /* ended before its time */
    assert_events(f,
                  "peer error S8 rank 1 MUSTER_E_STEP follows; freeze r2 termination abort m0,2");
    core_report_aborted(f, 0, 2, 8);
    core_report_aborted(f, 2, 2, 8);
    core_save(f, 0, 2, 8);
    assert_events(f, "commit r2 termination S8 c2 rank 0");
}

/* The save of the policy comes to nothing, and what follows is told to those who heard that (R8.2).
 */
static void nor_does_one_that_another_save_needs(void **state)
{
    struct core_fixture *f = *state;

    for (int lost = 0; lost < 2; lost++) {
        core_notice(f, 1, "n1", 60000);
        core_save_at(f, 1, 12);
        assert_events(f, "decision r2 policy S12 m0w,1,2");
        if (lost > 0) {
            f->nodes[0].silent = true;
            core_pass(f, LOST_MS);
        } else {
            core_error(f, 0, 9, "loss is NaN");
        }
        assert_events(f, lost > 0
                             ? "node lost S8 rank 0 MUSTER_E_PEER follows; abort r2 policy S12 "
                               "rank 0 MUSTER_E_PEER; freeze r3 termination abort m1,2"
                             : "peer error S9 rank 0 MUSTER_E_STEP follows; abort r2 policy S12 "
                               "rank 0 MUSTER_E_STEP; freeze r3 termination abort m1,2");
        core_report_aborted(f, 1, 3, 8);
        core_report_aborted(f, 2, 3, 8);
        core_save(f, 1, 3, 8);
        assert_events(f, "commit r3 termination S8 c3 rank 1");
        core_close(state);
        (void)measured(state);
    }
}

/* R6.8 */
static void a_sharded_job_that_finishes_within_its_grace_is_let(void **state)
{
    struct core_fixture *f = *state;

    core_fixture_close(f);
    core_fixture_running(f, 3, LAYOUT_SHARDED);
    f->plans = true;
    core_commit_at(f, 4);
    beat_all(f, 8);
    core_notice(f, 1, "n1", 60000);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_pass(f, 60000 - RESERVE_MS + 1000);
    assert_events(f, ""); /* a freeze could save nothing */
    core_leave(f, 1, LEAVE_FINISHED, 0);
    core_leave(f, 2, LEAVE_FINISHED, 0);
    assert_events(f, "generation ended");
    core_close(state);
    core_fixture_running(f, 3, LAYOUT_SHARDED);
    f->plans = true;
    core_commit_at(f, 4);
    beat_all(f, 8);
    core_notice(f, 1, "n1", 60000);
    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_pass(f, 60000 - 2 * MARGIN_MS - 1);
    assert_events(f, "");
    core_pass(f, 1); /* the others did not: it is said why there is no checkpoint */
    assert_non_null(strstr(core_events(f), "abort r2"));
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.reason,
                        "rank 0 finished, and a sharded checkpoint needs every rank");
}

/* No round was open, and none can be saved any more. */
static void a_broker_that_stood_still_past_the_margin_says_that_nothing_was_saved(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    core_clear(f);
    f->now += 60000 - MARGIN_MS;
    core_tick(f);
    assert_int_equal(core_event(f, EVENT_NOT_SAVED)->round, 0);
    assert_string_equal(core_event(f, EVENT_NOT_SAVED)->text,
                        "the deadline's margin was reached before the commit");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, measured, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_plan_moved_by_since_it_was_shown_is_told_with_its_freeze),
        TEST(a_broker_that_stood_still_past_the_margin_says_that_nothing_was_saved),
        TEST(a_notice_that_leaves_time_is_frozen_at_the_last_safe_moment),
        TEST(a_guess_a_wish_and_a_grace_that_is_needed_are_frozen_at_once),
        TEST(what_was_not_measured_is_assumed_and_named),
        TEST(a_notice_far_ahead_costs_one_early_save),
        TEST(an_early_save_that_fails_is_asked_for_once),
        TEST(a_sharded_job_of_which_a_rank_has_finished_asks_for_no_early_save),
        TEST(a_launch_under_a_short_notice_trains_before_it_leaves),
        TEST(an_early_save_that_takes_long_becomes_the_last),
        TEST(an_earlier_notice_moves_the_freeze_forward_and_its_withdrawal_back),
        TEST(a_notice_that_is_withdrawn_in_time_ends_nobody),
        TEST(ranks_that_are_apart_and_slower_steps_freeze_earlier),
        TEST(heartbeats_of_different_moments_are_no_distance),
        TEST(a_plan_outlives_the_broker),
        TEST(a_broker_that_was_away_at_the_moment_freezes_when_it_is_back),
        TEST(a_deadline_that_passed_while_the_broker_was_away_is_not_known),
        TEST(a_decided_save_outlives_a_deadline_that_passed_while_the_broker_was_away),
        TEST(another_save_that_outlives_the_broker_gets_no_deadline),
        TEST(times_of_the_launch_before_plan_the_first_notice),
        TEST(other_saves_go_on_while_a_plan_waits),
        TEST(an_open_save_is_joined_when_no_other_fits_in),
        TEST(a_notice_may_ask_for_two_saves),
        TEST(a_save_that_is_made_behind_the_notice_is_the_first_of_two),
        TEST(two_saves_are_one_if_there_is_no_time_between),
        TEST(two_saves_are_two_however_many_tell_of_the_end),
        TEST(the_notice_of_a_rank_that_has_finished_ends_nobody),
        TEST(a_job_begins_although_a_notice_stands_that_leaves_it_time),
        TEST(one_that_does_not_begin_in_time_ends_as_it_is),
        TEST(a_tool_that_says_that_no_time_is_left_is_taken_for_one_that_does_not_know),
        TEST(a_rank_that_is_lost_while_a_plan_waits_loses_no_save),
        TEST(nor_does_one_that_another_save_needs),
        TEST(a_sharded_job_that_finishes_within_its_grace_is_let),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
