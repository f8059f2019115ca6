/* The broker's core: one agreement from its cause to the decision, and what happens at its bounds.
 * PROTOCOL.md R5. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* --- a notice and its freeze ------------------------------------------------------------------ */

/* R2.2 */
static void a_notice_is_hinted_written_told_and_frozen_for_in_this_order(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 60000);
    assert_core(f, "hint n1; +notice n1 active; +job; +event 4; !4 termination rank 1; +job; "
                   "+round 1 freezing; +notice n1 active; +job; +event 5; !5 freeze r1 "
                   "termination m0,1,2; +node 1 restored #2; 1:ack #2 MUSTER_OK=1");
    const struct wire_event *told = core_event(f, EVENT_TERMINATION);
    assert_int_equal(told->code, NOTICE_PREEMPT);
    assert_string_equal(told->text, "n1");
    assert_int_equal(f->out.items[4].deadline_boot_ms, f->now + 60000); /* left_ms at each send */
    core_notice(f, 1, "n1", 60000);
    assert_core(f, "+node 1 restored #3; 1:ack #3 MUSTER_OK=1"); /* known */
}

static void a_notice_before_the_first_step_ends_unchanged(void **state)
{
    struct core_fixture *f = *state;

    core_hello(f, 0);
    core_notice(f, 0, "n1", GRACE_DEFAULT_MS);
    assert_events(f, "termination rank 0; unchanged r1 termination S0");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.state, RECORD_NOTICE_SERVED);
}

/* --- reports ---------------------------------------------------------------------------------- */

struct decision_case {
    const char *what;
    int64_t begun[3], done[3];
    const char *events;
};

/* R5.4 */
static void the_furthest_begun_step_is_the_save_step(void **state)
{
    struct core_fixture *f = *state;
    static const struct decision_case table[] = {
        {"all stand", {4, 4, 4}, {4, 4, 4}, "decision r1 operator S4 m0w,1,2"},
        {"one is in a step", {4, 5, 4}, {4, 4, 4}, "decision r1 operator S5 m0w,1,2"},
        {"one lags", {9, 8, 3}, {8, 8, 2}, "decision r1 operator S9 m0w,1,2"},
        {"the last begun", {4, 4, 5}, {4, 4, 5}, "decision r1 operator S5 m0w,1,2"},
        {"nothing done", {0, 0, 0}, {0, 0, 0}, "unchanged r1 operator S0"},
        {"first step begun", {0, 1, 0}, {0, 0, 0}, "decision r1 operator S1 m0w,1,2"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        core_save_now(f, "a");
        for (int n = 0; n < 2; n++) {
            core_report(f, n, 1, table[i].begun[n], table[i].done[n]);
            assert_events(f, ""); /* not before the last one spoke */
            core_report(f, n, 1, table[i].begun[n] + 1, table[i].done[n] + 1);
            assert_events(f, ""); /* the first word of each counts */
        }
        core_report(f, 2, 1, table[i].begun[2], table[i].done[2]);
        if (strcmp(core_events(f), table[i].events) != 0)
            fail_msg("%s: %s", table[i].what, core_events(f));
        core_fixture_close(f);
        core_fixture_running(f, 3, LAYOUT_REPLICATED);
    }
}

/* R5.6 */
static void a_decision_is_written_with_all_its_rows_before_it_is_published(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    assert_core(f, "");
    core_report(f, 1, 1, 4, 4);
    core_report(f, 2, 1, 4, 4);
    assert_core(f, "+round 1 decided; +checkpoint 1 writing; +part 1.0; +part 1.1; +part 1.2; "
                   "+job; +event 5; !5 decision r1 operator S4 m0w,1w,2w");
    assert_int_equal(core_row(f, RECORD_CHECKPOINT)->u.checkpoint.shards_required, 3);
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.step, 4);
}

static void reports_that_cannot_be_are_not_taken(void **state)
{
    struct core_fixture *f = *state;
    static const int64_t table[][2] = {{3, 4},
                                       {6, 4},
                                       {0, -1},
                                       {-1, -1},
                                       {INT64_MAX, INT64_MAX},
                                       {INT64_MIN, INT64_MIN},
                                       {INT64_MAX, 0},
                                       {INT64_MIN, INT64_MAX}};

    core_save_now(f, "a");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        core_report(f, 0, 1, table[i][0], table[i][1]);
        assert_core(f, "");
    }
    core_report(f, 0, 9, 4, 4); /* of a round that is not */
    assert_core(f, "");
    core_report(f, 1, 1, 4, 4);
    core_report(f, 2, 1, 4, 4);
    assert_core(f, ""); /* nothing has come of rank 0 */
    core_report(f, 0, 1, 4, 4);
    assert_events(f, "decision r1 operator S4 m0w,1,2");
    core_report(f, 0, 1, 9, 9); /* decided: never again */
    assert_core(f, "");
}

/* R5.5 */
static void a_step_that_is_committed_already_is_not_saved_again(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 10);
    core_save_now(f, "again");
    core_report_all(f, 2, 10);
    assert_events(f, "unchanged r2 operator S10 c1");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_notice(f, 1, "n1", 60000);
    core_report_all(f, 3, 10);
    assert_events(f, "unchanged r3 termination S10 c1");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* People ask whom it waits for. */
static void a_freeze_that_lasts_has_rows_of_who_has_reported(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    assert_core(f, ""); /* it lasted for no time: nobody asks */
    core_pass(f, FREEZE_MS / 4);
    assert_core(f, "+part 1.0; +part 1.1; +part 1.2");
    assert_int_equal(f->out.items[0].record.u.participant.reported_ms, 0);
    assert_int_equal(f->out.items[1].record.u.participant.reported_ms, -1);
    core_report(f, 2, 1, 4, 4);
    assert_core(f, "+part 1.2");
    assert_int_equal(core_row(f, RECORD_PARTICIPANT)->u.participant.reported_ms, FREEZE_MS / 4);
    core_pass(f, FREEZE_MS / 4);
    assert_core(f, "");
}

/* R5.14 */
static void who_misses_a_freeze_is_left_out_of_the_next_and_only_of_that(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    core_report(f, 2, 1, 4, 4);
    core_pass(f, FREEZE_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "abort r1 operator rank 1 MUSTER_E_TIMEOUT retry; freeze r2 operator m0,2");
    assert_string_equal(core_event(f, EVENT_ABORT)->text,
                        "rank 1 did not answer the freeze in 2.0 s");
    core_report(f, 1, 1, 4, 4); /* too late */
    assert_events(f, "");
    core_report(f, 0, 2, 4, 4);
    core_report(f, 2, 2, 5, 4);
    assert_events(f, "decision r2 operator S5 m0w,2");
    core_save(f, 0, 2, 5);
    core_save_now(f, "b");
    assert_events(f, "freeze r3 operator m0,1,2");
}

/* R5.14 */
static void when_all_miss_a_freeze_all_are_asked_again(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 0, "n1", 60000);
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r1 termination rank 0 MUSTER_E_TIMEOUT retry; "
                     "freeze r2 termination m0,1,2");
    core_report_all(f, 2, 7);
    assert_events(f, "decision r2 termination S7 m0w,1,2");
}

/* R5.6 */
static void the_lowest_rank_that_reported_writes(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 1, 1, 4, 4);
    core_report(f, 2, 1, 4, 4);
    core_pass(f, FREEZE_MS);
    core_report(f, 1, 2, 4, 4);
    core_report(f, 2, 2, 4, 4);
    assert_events(f, "decision r2 operator S4 m1w,2");
}

/* R5.14 */
static void sharded_needs_every_rank_and_names_who_missed_the_freeze(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 4);
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r1 operator rank 1 MUSTER_E_TIMEOUT retry; "
                     "freeze r2 operator m0,1,2");
    core_leave(f, 2, LEAVE_FINISHED, 0);
    assert_events(f, "abort r2 operator rank 2 MUSTER_E_ABORTED");
    core_save_now(f, "b");
    assert_events(f, "abort r3 operator rank 2 MUSTER_E_ABORTED");
    assert_string_equal(core_event(f, EVENT_ABORT)->text,
                        "rank 2 finished, and a sharded checkpoint needs every rank");
}

/* R5.14 */
static void a_cause_gets_three_rounds(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 0, "n1", 600000);
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r1 termination rank 0 MUSTER_E_TIMEOUT retry; "
                     "freeze r2 termination m0,1,2");
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r2 termination rank 0 MUSTER_E_TIMEOUT retry; "
                     "freeze r3 termination m0,1,2");
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r3 termination rank 0 MUSTER_E_TIMEOUT; "
                     "not saved r3 termination rank 0 MUSTER_E_TIMEOUT");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
    core_pass(f, 10000);
    assert_events(f, "");
}

/* R5.14 */
static void a_retry_that_does_not_fit_before_the_deadline_is_not_begun(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 0, "n1", 2 * FREEZE_MS + MARGIN_MS); /* nothing is left for a second one */
    core_report(f, 0, 1, 4, 4);
    core_report(f, 1, 1, 4, 4);
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r1 termination rank 2 MUSTER_E_TIMEOUT; "
                     "not saved r1 termination rank 2 MUSTER_E_TIMEOUT");
}

/* R5.15 */
static void at_the_margin_the_job_leaves_and_the_culprit_is_named(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 10000);
    core_report_all(f, 1, 4);
    core_at_step(f, 1, 1, 4, true);
    core_at_step(f, 2, 1, 4, true);
    core_pass(f, 10000 - MARGIN_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "abort r1 termination S4 rank 0 MUSTER_E_NOT_SAVED; "
                     "not saved r1 termination rank 0 MUSTER_E_NOT_SAVED");
    assert_string_equal(core_event(f, EVENT_NOT_SAVED)->text,
                        "the deadline's margin was reached while rank 0 had not saved");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    core_save(f, 0, 1, 4); /* too late: a final abort is final */
    assert_events(f, "");
    assert_answers(f, "0:ack #4 MUSTER_E_ABORTED");
}

static void a_freeze_ends_at_the_margin_too_and_that_is_said(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 2500);
    core_report(f, 0, 1, 4, 4);
    core_report(f, 1, 1, 4, 4);
    core_pass(f, 2500 - MARGIN_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "abort r1 termination rank 2 MUSTER_E_TIMEOUT; "
                     "not saved r1 termination rank 2 MUSTER_E_TIMEOUT");
    assert_string_equal(core_event(f, EVENT_ABORT)->text,
                        "the notice left 1.5 s: rank 2 did not answer the freeze in that time");
}

static void a_node_that_reached_its_own_margin_first_means_the_same(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 1, "n1", 10000);
    core_report_all(f, 1, 4);
    core_pass(f, 8990);
    core_leave(f, 1, LEAVE_PREEMPTED, 0);
    assert_events(f, "abort r1 termination S4 rank 0 MUSTER_E_NOT_SAVED; "
                     "not saved r1 termination rank 0 MUSTER_E_NOT_SAVED");
}

static void the_way_to_the_save_step_is_bounded_by_measured_steps(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].p95_ms = 10000;
    f->nodes[1].begun = 5;
    f->nodes[1].done = 4;
    core_pass(f, 500);
    core_save_now(f, "a");
    core_report(f, 0, 1, 6, 5);
    core_report(f, 1, 1, 5, 4);
    core_report(f, 2, 1, 5, 5);
    f->nodes[0].begun = f->nodes[2].begun = 5;
    f->nodes[0].done = f->nodes[2].done = 5; /* held there: their times are not known */
    f->nodes[0].p95_ms = f->nodes[2].p95_ms = 10;
    /* decided before their times were known: half an hour */
    assert_int_equal(core_job(f)->rounds[0].way_until_boot_ms, f->now + WAY_UNMEASURED_MS);
    core_pass(f, 500);
    f->nodes[1].begun = 6;
    f->nodes[1].done = 5;
    core_pass(f, 500); /* it came on */
    assert_int_equal(round_way_ms(&core_job(f)->rounds[0]), STUCK_MS);
    f->nodes[1].p95_ms = 40000;
    core_pass(f, 500);
    assert_int_equal(round_way_ms(&core_job(f)->rounds[0]), 2 * 3 * 40000);
}

/* Where it stands is kept now and then, and its report at once. */
static void behind_a_start_the_way_begins_where_a_member_reported(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < 3; n++)
        f->nodes[n].p95_ms = 10000;
    core_pass(f, 500);
    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 42, 41);
    core_at_step(f, 1, 1, 42, true);
    core_restart(f, false);
    assert_int_equal(core_job(f)->rounds[0].way_until_boot_ms, f->now + STUCK_MS);
}

/* Its steps were measured since, or told again to a broker whose start had lost them. */
static void a_way_that_was_not_measured_is_bounded_once_it_is(void **state)
{
    struct core_fixture *f = *state;

    core_pass(f, 500);
    core_save_now(f, "a");
    core_report(f, 0, 1, 4, 3);
    core_report(f, 1, 1, 4, 4);
    core_report(f, 2, 1, 4, 4);
    core_at_step(f, 1, 1, 4, true);
    core_at_step(f, 2, 1, 4, true);
    for (int n = 0; n < 3; n++)
        f->nodes[n].begun = f->nodes[n].done = 4;
    f->nodes[0].done = 3;
    core_pass(f, 500);
    assert_true(core_job(f)->rounds[0].way_until_boot_ms > f->now + WAY_UNMEASURED_MS - 1000);
    f->nodes[0].p95_ms = 100;
    core_pass(f, 500);
    assert_int_equal(core_job(f)->rounds[0].way_until_boot_ms, f->now + STUCK_MS);
    core_pass(f, 500);
    core_pass(f, STUCK_MS - 501);
    assert_events(f, "stuck S4 rank 0");
    core_pass(f, 1);
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_TIMEOUT retry; "
                     "freeze r2 operator m0,1,2");
}

static void who_arrives_unmeasured_leaves_the_others_their_own_way(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].p95_ms = f->nodes[1].p95_ms = 100;
    for (int n = 0; n < 3; n++) {
        f->nodes[n].begun = 4;
        f->nodes[n].done = 3;
    }
    core_pass(f, 500);
    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 4, 3);
    assert_int_equal(core_job(f)->rounds[0].way_until_boot_ms, f->now + WAY_UNMEASURED_MS);
    core_at_step(f, 2, 1, 4, true);
    assert_int_equal(core_job(f)->rounds[0].way_until_boot_ms, f->now + STUCK_MS);
}

/* R5.14 */
static void who_does_not_come_to_the_save_step_is_the_culprit(void **state)
{
    struct core_fixture *f = *state;

    for (int n = 0; n < 3; n++)
        f->nodes[n].p95_ms = 100;
    core_pass(f, 500);
    core_save_now(f, "a");
    core_report_all(f, 1, 4);
    core_at_step(f, 1, 1, 4, true);
    core_at_step(f, 2, 1, 4, true);
    f->nodes[0].begun = f->nodes[0].done =
        3; /* it reported 4, and stands at 3 again: its step failed */
    f->nodes[0].phase = PHASE_STEPPING;
    core_pass(f, 500);
    core_pass(f, STUCK_MS - 501);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_TIMEOUT retry; "
                     "freeze r2 operator m0,1,2");
    assert_non_null(strstr(core_event(f, EVENT_ABORT)->text,
                           "rank 0 did not reach step 4 in time (it stands at 3, stepping"));
}

/* --- saves of an operator --------------------------------------------------------------------- */

/* R5.1, R5.2 */
static void an_operator_gets_one_round_for_one_id_and_an_open_one_is_good_enough(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    assert_core(f, "+job; +round 1 freezing; +job; +event 4; !4 freeze r1 operator m0,1,2; +job; "
                   "@500:ack #1 MUSTER_OK=1");
    core_save_now(f, "a");
    assert_core(f, "@500:ack #1 MUSTER_OK=1");
    core_save_now(f, "b");
    assert_core(f, "+job; @500:ack #1 MUSTER_OK=1");
    core_report_all(f, 1, 4);
    core_save(f, 0, 1, 4);
    core_save_now(f, "b"); /* its answer was lost */
    assert_core(f, "@500:ack #1 MUSTER_OK=1");
    core_restart(f, false);
    core_save_now(f, "b");
    assert_core(f, "@500:ack #1 MUSTER_OK=1");
}

static void an_operator_cannot_save_what_does_not_run(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    assert_core(f, "@500:ack #1 MUSTER_E_NOT_FOUND");
    core_hello(f, 0);
    core_save_now(f, "a");
    assert_core(f, "@500:ack #1 MUSTER_E_NOT_FOUND");
}

static void a_notice_during_the_end_is_only_told(void **state)
{
    struct core_fixture *f = *state;

    core_error(f, 0, 5, "bad");
    core_notice(f, 1, "n1", 60000);
    assert_events(f, "termination rank 1");
    core_pass(f, 70000);
    assert_events(f, "");
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

/* It stood still, or its database took nothing: the freeze was told to nobody until now. */
static void the_brokers_own_absence_runs_out_no_bound(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    assert_events(f, "freeze r1 operator m0,1,2");
    f->now += 60000;
    core_tick(f);
    assert_events(f, "");
    core_pass(f, FREEZE_MS - 1);
    assert_events(f, "");
    core_report_all(f, 1, 5);
    assert_events(f, "decision r1 operator S5 m0w,1,2");
    f->now += 3 * STUCK_MS;
    core_tick(f);
    assert_events(f, "");
    core_save(f, 0, 1, 5);
    assert_events(f, "commit r1 operator S5 c1 rank 0");
}

/* ... and no longer than from its end: a rank that is gone then is named. */
static void behind_the_brokers_absence_bounds_are_as_ever(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    f->now += 60000;
    core_tick(f);
    core_report(f, 0, 1, 5, 5);
    core_report(f, 2, 1, 5, 5);
    core_pass(f, FREEZE_MS);
    assert_events(f, "abort r1 operator rank 1 MUSTER_E_TIMEOUT retry; freeze r2 operator m0,2");
}

/* Rank 1 does not report, and every pass is slow, each followed by so many quick ones. How many
 * slow ones until the freeze ends: what is forgiven, then a second of each. */
static int slow_passes_of_a_freeze(struct core_fixture *f, int quick)
{
    int passes = 0;

    core_save_now(f, "a");
    core_clear(f);
    core_report(f, 0, 1, 5, 5);
    core_report(f, 2, 1, 5, 5);
    while (passes < 3600 && core_event(f, EVENT_ABORT) == NULL) {
        f->now += LOOP_GAP_MS + 100;
        core_tick(f);
        passes++;
        for (int i = 0; i < quick && core_event(f, EVENT_ABORT) == NULL; i++) {
            f->now += 1;
            core_tick(f);
        }
    }
    return passes;
}

static void a_loop_whose_every_pass_is_slow_ends_a_freeze(void **state)
{
    assert_int_equal(slow_passes_of_a_freeze(*state, 0), GAPS_FORGIVEN + FREEZE_MS / LOOP_GAP_MS);
}

static void slow_passes_among_quick_ones_end_a_freeze(void **state)
{
    assert_in_range(slow_passes_of_a_freeze(*state, 2), GAPS_FORGIVEN + 1,
                    GAPS_FORGIVEN + FREEZE_MS / LOOP_GAP_MS);
}

static void slow_pass(struct core_fixture *f)
{
    f->now += LOOP_GAP_MS + 100;
    for (int n = 0; n < (int)f->world_size; n++)
        core_heartbeat(f, n);
    core_tick(f);
}

static void a_loop_whose_every_pass_is_slow_ends_a_save(void **state)
{
    struct core_fixture *f = *state;
    int passes = 0;

    core_save_now(f, "a");
    core_report_all(f, 1, 5);
    for (int n = 0; n < 3; n++)
        core_at_step(f, n, 1, 5, n != 0);
    for (core_clear(f); passes < 3600 && core_event(f, EVENT_ABORT) == NULL; passes++)
        slow_pass(f);
    assert_events(f,
                  "abort r1 operator S5 rank 0 MUSTER_E_TIMEOUT retry; freeze r2 operator m0,1,2");
    assert_in_range(passes, GAPS_FORGIVEN, GAPS_FORGIVEN + STUCK_MS / LOOP_GAP_MS);
}

/* A loop that was steady for a while is one that was stopped, not one that is slow. */
static void behind_a_steady_time_absences_are_forgiven_again(void **state)
{
    struct core_fixture *f = *state;

    for (int i = 0; i < 2 * GAPS_FORGIVEN; i++)
        slow_pass(f);
    core_pass(f, (GAPS_FORGIVEN * LOOP_GAP_MS));
    core_save_now(f, "a");
    assert_events(f, "freeze r1 operator m0,1,2");
    for (int i = 0; i < GAPS_FORGIVEN; i++) {
        f->now += 60000;
        core_tick(f);
    }
    core_pass(f, FREEZE_MS - 1);
    assert_events(f, "");
    core_report_all(f, 1, 5);
    assert_events(f, "decision r1 operator S5 m0w,1,2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_notice_is_hinted_written_told_and_frozen_for_in_this_order, core_run_three),
        T(a_notice_before_the_first_step_ends_unchanged, core_open_two),
        T(the_furthest_begun_step_is_the_save_step, core_run_three),
        T(a_decision_is_written_with_all_its_rows_before_it_is_published, core_run_three_sharded),
        T(reports_that_cannot_be_are_not_taken, core_run_three),
        T(a_step_that_is_committed_already_is_not_saved_again, core_run_three),
        T(a_freeze_that_lasts_has_rows_of_who_has_reported, core_run_three),
        T(who_misses_a_freeze_is_left_out_of_the_next_and_only_of_that, core_run_three),
        T(when_all_miss_a_freeze_all_are_asked_again, core_run_three),
        T(the_brokers_own_absence_runs_out_no_bound, core_run_three),
        T(behind_the_brokers_absence_bounds_are_as_ever, core_run_three),
        T(a_loop_whose_every_pass_is_slow_ends_a_freeze, core_run_three),
        T(slow_passes_among_quick_ones_end_a_freeze, core_run_three),
        T(a_loop_whose_every_pass_is_slow_ends_a_save, core_run_three),
        T(behind_a_steady_time_absences_are_forgiven_again, core_run_three),
        T(the_lowest_rank_that_reported_writes, core_run_three),
        T(sharded_needs_every_rank_and_names_who_missed_the_freeze, core_run_three_sharded),
        T(a_cause_gets_three_rounds, core_run_three_sharded),
        T(a_retry_that_does_not_fit_before_the_deadline_is_not_begun, core_run_three),
        T(at_the_margin_the_job_leaves_and_the_culprit_is_named, core_run_three),
        T(a_freeze_ends_at_the_margin_too_and_that_is_said, core_run_three),
        T(a_node_that_reached_its_own_margin_first_means_the_same, core_run_three),
        T(the_way_to_the_save_step_is_bounded_by_measured_steps, core_run_three),
        T(behind_a_start_the_way_begins_where_a_member_reported, core_run_three),
        T(a_way_that_was_not_measured_is_bounded_once_it_is, core_run_three),
        T(who_arrives_unmeasured_leaves_the_others_their_own_way, core_run_three),
        T(who_does_not_come_to_the_save_step_is_the_culprit, core_run_three),
        T(an_operator_gets_one_round_for_one_id_and_an_open_one_is_good_enough, core_run_three),
        T(an_operator_cannot_save_what_does_not_run, core_open_two),
        T(a_notice_during_the_end_is_only_told, core_run_three),
    };

    return cmocka_run_group_tests_name("core_round", tests, NULL, NULL);
}
