/* The broker's core: silence, repeats, the stuck event, LEAVE, errors, what a snapshot says.
 * PROTOCOL.md R1, R8, Bounds. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* --- silence ---------------------------------------------------------------------------------- */

/* R8.3 */
static void five_seconds_of_silence_and_not_less_lose_a_node(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].silent = true;
    core_pass(f, 2000);
    assert_answers(f, "1:PING");
    core_pass(f, LOST_MS - 2000 - 1);
    assert_core(f, "");
    core_pass(f, 1);
    assert_core(f, "+node 1 lost #1; +generation running; +job; +event 4; "
                   "!4 node lost S0 rank 1 MUSTER_E_PEER; +generation ending; +job");
    const struct wire_event *lost = core_event(f, EVENT_NODE_LOST);
    assert_int_equal(lost->left_ms, LOST_MS);
    assert_string_equal(lost->text,
                        "rank 1 (process 4001 on host) was lost at step 0 or later: it was "
                        "silent for 5.0 s");
}

/* R1.9 */
static void a_gap_between_two_passes_is_not_counted_as_silence(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].silent = f->nodes[0].silent = true;
    f->now += 60000; /* the broker was stopped */
    core_tick(f);
    assert_events(f, "");
    core_pass(f, LOST_MS - 500);
    assert_events(f, "");
    core_pass(f, 500);
    assert_int_equal(generation_live_count(core_job(f)), 0);
}

static void gaps_up_to_a_second_are_counted(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].silent = true;
    for (int i = 0; i < 5; i++) {
        core_heartbeat(f, 0);
        f->now += LOOP_GAP_MS;
        core_heartbeat(f, 0);
        core_tick(f);
    }
    assert_events(f, "node lost S0 rank 1 MUSTER_E_PEER");
}

/* However slow its passes are: rank 0 is heard in each, rank 1 in none. */
static void a_loop_whose_every_pass_is_slow_finds_a_silent_rank(void **state)
{
    struct core_fixture *f = *state;
    int passes = 0;

    f->nodes[1].silent = true;
    core_clear(f);
    for (; passes < 3600 && core_event(f, EVENT_NODE_LOST) == NULL; passes++) {
        f->now += LOOP_GAP_MS + 100;
        core_heartbeat(f, 0);
        core_tick(f);
    }
    assert_events(f, "node lost S0 rank 1 MUSTER_E_PEER");
    assert_in_range(passes, GAPS_FORGIVEN, GAPS_FORGIVEN + LOST_MS / LOOP_GAP_MS);
}

/* Its word is of this pass, behind the gap: nothing of that is to be added to it. */
static void who_is_told_gone_behind_a_gap_is_looked_for_at_once(void **state)
{
    struct core_fixture *f = *state;

    struct wire_msg gone = {.type = WIRE_GONE};

    gone.u.gone = (struct wire_gone){.rank = 1, .incarnation = f->nodes[1].incarnation, .signo = 9};
    f->nodes[1].silent = true;
    f->now += 60000;
    core_tool(f, gone, 1);
    core_tick(f);
    core_pass(f, FLIGHT_MS);
    core_pass(f, GONE_PING_MS);
    assert_events(f, "node lost S0 rank 1 MUSTER_E_PEER");
}

static void when_who_is_lost_was_last_heard_is_written_with_its_loss(void **state)
{
    struct core_fixture *f = *state;
    int64_t last = 0, age;

    core_pass(f, 500);
    f->nodes[1].silent = true;
    core_pass(f, LOST_MS - 1);
    f->now += 1;
    core_tick(f);
    const struct wire_event *lost = core_event(f, EVENT_NODE_LOST);
    assert_int_equal(lost->rank, 1);
    age = lost->left_ms;
    for (size_t i = 0; i < f->out.count; i++) {
        const struct record *row = &f->out.items[i].record;

        if (f->out.items[i].kind == ACTION_PERSIST && row->kind == RECORD_PROGRESS &&
            row->u.progress.incarnation == f->nodes[1].incarnation)
            last = row->u.progress.heard_unix_ms;
    }
    assert_int_equal(last, 1700000000000 + f->now - age);
}

/* R9.5 */
static void after_a_start_only_who_was_heard_can_be_lost_within_thirty_seconds(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_hello(f, 1);
    f->nodes[1].silent = true;
    core_pass(f, LOST_MS);
    assert_events(f, "node lost S0 rank 1 MUSTER_E_PEER"); /* it spoke, then fell silent */
    core_pass(f, START_GRACE_MS - LOST_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "generation ended"); /* node 0 never came back */
}

static void of_who_does_not_come_back_it_is_said_that_the_broker_was_away(void **state)
{
    struct core_fixture *f = *state;

    core_restart(f, false);
    core_pass(f, START_GRACE_MS);
    const struct wire_event *lost = core_event(f, EVENT_NODE_LOST);
    assert_string_equal(lost->text,
                        "rank 0 (process 4000 on host) was lost at step 0 or later: in 30.0 s it "
                        "did not come back to the restarted broker, and what it did while none ran "
                        "is not known");
}

static void a_node_that_steps_for_a_minute_without_a_step_is_told_of_once(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].begun = 8;
    f->nodes[1].done = 7;
    core_pass(f, 500);
    core_pass(f, STUCK_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "stuck S8 rank 1");
    core_pass(f, STUCK_MS);
    assert_events(f, "");
    f->nodes[1].done = 8; /* it came back, and waits at a boundary */
    f->nodes[1].phase = PHASE_FROZEN;
    core_pass(f, 2 * STUCK_MS);
    assert_events(f, "");
}

/* Loops that muster does not step show no step that is begun: all stand at equal counts. */
static void ranks_that_do_no_step_for_a_minute_are_told_of_once(void **state)
{
    struct core_fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        f->nodes[i].phase = PHASE_STEPPING;
        f->nodes[i].begun = f->nodes[i].done = 7;
    }
    core_pass(f, 500);
    core_pass(f, STUCK_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "stuck S7 rank 0; stuck S7 rank 1");
    assert_string_equal(core_event(f, EVENT_STUCK)->text,
                        "rank 0 has been in no step since step 7 for 60 s");
    core_pass(f, STUCK_MS);
    assert_events(f, "");
}

static void a_program_that_sets_up_before_its_first_step_is_not_stuck(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[0].phase = f->nodes[1].phase = PHASE_STEPPING;
    core_pass(f, 10 * STUCK_MS);
    assert_events(f, "");
}

static void a_long_step_is_stuck_only_after_ten_times_its_usual_time(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].begun = 8;
    f->nodes[1].done = 7;
    f->nodes[1].p95_ms = 20000;
    core_pass(f, 500);
    core_pass(f, 199999);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "stuck S8 rank 1");
}

static void a_save_that_stands_still_for_a_minute_is_told_of_once(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].begun = f->nodes[1].done = 7;
    f->nodes[1].phase = PHASE_SAVING;
    core_pass(f, 500);
    core_pass(f, STUCK_MS - 1);
    assert_events(f, "");
    f->nodes[1].saving_bytes = 10; /* it writes on */
    core_pass(f, 500);
    core_pass(f, STUCK_MS - 1);
    assert_events(f, "");
    core_pass(f, 1);
    const struct wire_event *stuck = core_event(f, EVENT_STUCK);
    assert_string_equal(stuck->text, "rank 1 has been in its save at step 7 for 60 s");
    assert_int_equal(stuck->step, 7);
    core_pass(f, STUCK_MS);
    assert_events(f, "");
    f->nodes[1].phase = PHASE_HOLDING; /* it waits for the others */
    core_pass(f, 2 * STUCK_MS);
    assert_events(f, "");
}

static void bytes_written_behind_a_step_do_not_hide_that_it_hangs(void **state)
{
    struct core_fixture *f = *state;

    f->nodes[1].begun = 8;
    f->nodes[1].done = 7;
    core_pass(f, 500);
    core_pass(f, STUCK_MS - 1);
    assert_events(f, "");
    f->nodes[1].saving_bytes = 10;
    core_pass(f, 500);
    assert_events(f, "stuck S8 rank 1");
}

static void what_a_newer_node_does_has_no_word_here_and_does_no_harm(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg beat = core_msg(f, 1, WIRE_HEARTBEAT);

    beat.u.heartbeat.phase = 200;
    core_feed(f, 101, &beat);
    f->now += HEARTBEAT_MS;
    core_tick(f);
    assert_int_equal(core_row(f, RECORD_PROGRESS)->u.progress.phase, PHASE_NONE);
    assert_true(f->out.items[0].lazy);
}

/* --- repeats ---------------------------------------------------------------------------------- */

/* R1.6 */
static void what_is_not_acknowledged_is_repeated_to_that_node_alone(void **state)
{
    struct core_fixture *f = *state;
    int64_t waits[] = {REPEAT_MIN_MS, 100, 200, 400, 800, 1000, 1000};

    core_pass(f, 100);
    core_notice(f, 0, "n1", 60000); /* two events: a burst counts from its first */
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_heartbeat(f, 0);
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        f->now += waits[i] - 1;
        core_tick(f);
        if (i < 5) /* later it is pinged too */
            assert_answers(f, "");
        f->now += 1;
        core_tick(f);
        assert_non_null(strstr(core_answers(f), "1:events 4"));
        assert_null(strstr(core_answers(f), "0:events"));
    }
    f->nodes[1].applied_seq = 4; /* a part of it */
    struct wire_msg beat = core_msg(f, 1, WIRE_HEARTBEAT);
    core_feed(f, 101, &beat);
    f->now += 1000;
    core_tick(f);
    assert_non_null(strstr(core_answers(f), "1:events 5"));
}

static void nothing_is_repeated_to_who_left_or_was_lost(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 1, LEAVE_FINISHED, 0);
    f->nodes[2].silent = true;
    core_pass(f, LOST_MS);
    assert_events(f, "node lost S0 rank 2 MUSTER_E_PEER");
    core_pass(f, 5000);
    assert_answers(f, "");
}

/* R1.6 */
static void a_slow_fan_out_delays_the_first_repeat(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    f->now += 40;
    for (int n = 0; n < 2; n++)
        core_heartbeat(f, n); /* both have it after 40 ms */
    core_report(f, 0, 1, 3, 3);
    core_report(f, 1, 1, 3, 3); /* the decision */
    f->now += 119;
    core_tick(f);
    assert_answers(f, "");
    f->now += 1;
    core_tick(f);
    assert_answers(f, "0:events 5; 1:events 5");
}

/* --- leaving ---------------------------------------------------------------------------------- */

struct leave_case {
    const char *what;
    enum wire_leave_why why;
    bool round; /* an operator's round is being decided */
    const char *events;
    enum wire_generation_state state;
};

/* R5.14, R8.3 */
static void what_a_leave_means_depends_on_its_reason(void **state)
{
    struct core_fixture *f = *state;
    static const struct leave_case table[] = {
        {"finished", LEAVE_FINISHED, false, "", GENERATION_RUNNING},
        {"failed", LEAVE_FAILED, false, "peer error S0 rank 2 MUSTER_E_STEP", GENERATION_ENDING},
        {"error", LEAVE_ERROR, false, "peer error S0 rank 2 MUSTER_E_STEP", GENERATION_ENDING},
        {"preempted", LEAVE_PREEMPTED, false, "peer error S0 rank 2 MUSTER_E_STEP",
         GENERATION_ENDING},
        {"finished in a round", LEAVE_FINISHED, true,
         "abort r1 operator rank 2 MUSTER_E_ABORTED retry; freeze r2 operator m0,1",
         GENERATION_RUNNING},
        {"failed in a round", LEAVE_FAILED, true,
         "peer error S0 rank 2 MUSTER_E_STEP; abort r1 operator rank 2 MUSTER_E_STEP",
         GENERATION_ENDING},
        {"error in a round", LEAVE_ERROR, true,
         "peer error S0 rank 2 MUSTER_E_STEP; abort r1 operator rank 2 MUSTER_E_ABORTED",
         GENERATION_ENDING},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (i > 0)
            core_fixture_running(f, 3, LAYOUT_REPLICATED);
        if (table[i].round)
            core_save_now(f, "a");
        core_leave(f, 2, table[i].why, 3);
        if (strcmp(core_events(f), table[i].events) != 0)
            fail_msg("%s: %s", table[i].what, core_events(f));
        assert_int_equal(core_job(f)->gen.state, table[i].state);
        assert_int_equal(core_row(f, RECORD_NODE)->u.node.leave_why, table[i].why);
        assert_int_equal(core_row(f, RECORD_NODE)->u.node.last_request, f->nodes[2].request);
        if (i + 1 < sizeof table / sizeof table[0])
            core_fixture_close(f);
    }
}

static void the_last_leave_ends_the_generation(void **state)
{
    struct core_fixture *f = *state;

    core_leave(f, 0, LEAVE_FINISHED, 0);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    assert_core(f, "+node 1 left #1; +progress; +generation ended; +job; +event 4; "
                   "!4 generation ended; +node 1 left #2; 1:ack #2 MUSTER_OK");
}

/* --- errors ----------------------------------------------------------------------------------- */

/* R8.1 */
static void the_first_error_is_journaled_published_and_kept(void **state)
{
    struct core_fixture *f = *state;

    core_error(f, 1, 7, "loss is NaN");
    assert_core(f, "+generation running; +job; +event 4; !4 peer error S7 rank 1 MUSTER_E_STEP; "
                   "+generation ending; +job; +node 1 restored #2; 1:ack #2 MUSTER_OK");
    assert_string_equal(core_event(f, EVENT_PEER_ERROR)->text, "loss is NaN");
    assert_int_equal(core_event(f, EVENT_PEER_ERROR)->left_ms, 3); /* its own code */
    core_error(f, 2, 7, "me too");
    assert_events(f, "");
    assert_int_equal(core_job(f)->gen.error_rank, 1);
    assert_string_equal(core_job(f)->gen.error_text, "loss is NaN");
    core_leave(f, 1, LEAVE_FAILED, 3);
    assert_events(f, ""); /* told already */
}

/* R5.14 */
static void a_member_that_fails_ends_a_termination_with_one_more_try_of_the_others(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    core_report(f, 0, 1, 5, 4);
    core_error(f, 1, 5, "bad");
    assert_events(f, "peer error S5 rank 1 MUSTER_E_STEP follows; "
                     "abort r1 termination rank 1 MUSTER_E_STEP retry; "
                     "freeze r2 termination abort m0,2");
    core_report_aborted(f, 0, 2, 4);
    core_report_aborted(f, 2, 2, 4);
    assert_events(f, "decision r2 termination S4 abort m0w,2");
    core_save(f, 0, 2, 4);
    assert_events(f, "commit r2 termination S4 c2 rank 0");
}

static void an_error_after_a_node_was_captured_lets_the_save_end_first(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 5, 5);
    core_at_step(f, 1, 1, 5, true);
    core_error(f, 1, 6, "bad");
    assert_events(f, "peer error r1 S6 rank 1 MUSTER_E_STEP follows");
    assert_int_equal(core_job(f)->gen.state, GENERATION_RUNNING);
    core_save(f, 0, 1, 5);
    assert_events(f, "commit r1 operator S5 c1 rank 0");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_PEER);
}

static void an_error_ends_the_generation_also_when_the_awaited_save_comes_to_nothing(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 5, 5);
    core_at_step(f, 1, 1, 5, true);
    core_error(f, 1, 6, "bad");
    core_save_failed(f, 0, 1, 5, MUSTER_E_STORAGE);
    assert_events(f, "abort r1 operator S5 rank 0 MUSTER_E_STORAGE");
    core_pass(f, 500);
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_PEER);
}

static void a_lost_rank_breaks_off_the_steps_of_a_termination(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    for (int n = 1; n < 3; n++)
        core_report(f, n, 1, 8, 7);
    f->nodes[0].silent = true;
    core_pass(f, FREEZE_MS); /* first the freeze is over, then the silence */
    assert_events(f, "abort r1 termination rank 0 MUSTER_E_TIMEOUT retry; "
                     "freeze r2 termination m1,2");
    for (int n = 1; n < 3; n++)
        core_report(f, n, 2, 8, 7);
    assert_events(f, "decision r2 termination S8 m1w,2");
    core_pass(f, LOST_MS - FREEZE_MS); /* not a member: the round goes on */
    assert_events(f, "node lost S0 rank 0 MUSTER_E_PEER follows");
    core_save(f, 1, 2, 8);
    assert_events(f, "commit r2 termination S8 c2 rank 1");
}

static void survivors_whose_steps_were_broken_off_save_what_they_have_done(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    for (int n = 1; n < 3; n++)
        core_report(f, n, 1, 8, 7);
    f->nodes[0].silent = true;
    core_pass(f, FREEZE_MS); /* first the freeze is over, then the silence */
    for (int n = 1; n < 3; n++)
        core_report(f, n, 2, 8, 7);
    core_pass(f, LOST_MS - FREEZE_MS);
    assert_events(f, "node lost S0 rank 0 MUSTER_E_PEER follows");
    core_past(f, 2, 2, 7); /* in lockstep: the step waited for rank 0 */
    assert_events(f, "abort r2 termination S8 rank 0 MUSTER_E_PEER retry; "
                     "freeze r3 termination abort m1,2");
    core_past(f, 1, 2, 7);
    assert_events(f, "");
    core_report_aborted(f, 1, 3, 7);
    core_report_aborted(f, 2, 3, 7);
    assert_events(f, "decision r3 termination S7 abort m1w,2");
}

static void without_rank_0_the_next_rank_saves_what_all_survivors_have_done(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 8, 7);
    f->nodes[0].silent = true;
    core_pass(f, LOST_MS);
    assert_events(f, "node lost S7 rank 0 MUSTER_E_PEER follows; "
                     "abort r1 termination S8 rank 0 MUSTER_E_PEER retry; "
                     "freeze r2 termination abort m1,2");
    core_report_aborted(f, 1, 2, 7);
    core_report_aborted(f, 2, 2, 7);
    assert_events(f, "decision r2 termination S7 abort m1w,2");
}

/* R5.14 */
static void survivors_at_different_steps_cannot_save(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 8, 7);
    f->nodes[0].silent = true;
    core_pass(f, LOST_MS);
    core_report_aborted(f, 1, 2, 8);
    core_report_aborted(f, 2, 2, 7);
    assert_events(f, "abort r2 termination rank 2 MUSTER_E_UNREACHABLE; "
                     "not saved r2 termination rank 2 MUSTER_E_UNREACHABLE");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
}

/* ... as a termination that saved nothing: who leaves wants to be begun again (R5.14). */
static void sharded_ends_when_a_rank_is_lost(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 8, 7);
    f->nodes[1].silent = true;
    core_pass(f, LOST_MS);
    assert_events(f, "node lost S7 rank 1 MUSTER_E_PEER follows; "
                     "abort r1 termination S8 rank 1 MUSTER_E_PEER; "
                     "not saved r1 termination rank 1 MUSTER_E_PEER");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
}

static void sharded_ends_when_a_step_fails_in_a_termination(void **state)
{
    struct core_fixture *f = *state;

    core_notice(f, 2, "n1", 120000);
    for (int n = 0; n < 3; n++)
        core_report(f, n, 1, 8, 7);
    core_error(f, 1, 8, "no memory");
    assert_events(f, "peer error S8 rank 1 MUSTER_E_STEP follows; "
                     "abort r1 termination S8 rank 1 MUSTER_E_STEP; "
                     "not saved r1 termination rank 1 MUSTER_E_STEP");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
}

/* --- snapshot --------------------------------------------------------------------------------- */

static const struct wire_snapshot *snapshot_of(struct core_fixture *f, int node)
{
    struct input input = {.kind = INPUT_NO_EVENTS,
                          .now_boot_ms = f->now,
                          .route = f->nodes[node].route,
                          .job = f->job};

    core_clear(f);
    core_step(f->core, &input, &f->out);
    assert_int_equal(f->out.count, 1);
    return &core_sent(f, f->nodes[node].route, WIRE_SNAPSHOT)->u.snapshot;
}

static void a_snapshot_tells_the_open_round_as_this_node_stands_to_it(void **state)
{
    struct core_fixture *f = *state;
    const struct wire_snapshot *s = snapshot_of(f, 1);

    assert_int_equal(s->round, 0);
    assert_int_equal(s->round_step, -1);
    assert_int_equal(s->generation_state, GENERATION_RUNNING);
    assert_true(s->resume_ready);
    assert_int_equal(s->error_rank, -1);
    assert_int_equal(s->left_ms, -1);

    core_notice(f, 2, "n1", 60000);
    s = snapshot_of(f, 1);
    assert_int_equal(s->round, 1);
    assert_int_equal(s->round_state, ROUND_FREEZING);
    assert_int_equal(s->round_cause, CAUSE_TERMINATION);
    assert_true(s->member && !s->writer && !s->taken);
    assert_int_equal(s->left_ms, 60000);
    core_report(f, 1, 1, 5, 5);
    assert_true(snapshot_of(f, 1)->taken);
    core_report(f, 0, 1, 5, 5);
    core_report(f, 2, 1, 5, 5);
    s = snapshot_of(f, 1);
    assert_int_equal(s->round_state, ROUND_DECIDED);
    assert_int_equal(s->round_step, 5);
    assert_true(s->member && !s->writer && !s->taken);
    assert_true(snapshot_of(f, 0)->writer);
    core_at_step(f, 1, 1, 5, true);
    assert_true(snapshot_of(f, 1)->taken);
    core_save(f, 0, 1, 5);
    s = snapshot_of(f, 1);
    assert_int_equal(s->round, 0);
    assert_int_equal(s->generation_state, GENERATION_ENDING);
    assert_int_equal(s->end_status, MUSTER_PREEMPTED);
    assert_int_equal(s->newest_checkpoint, 1);
    assert_int_equal(s->newest_step, 5);
}

static void a_snapshot_tells_the_outcome_of_the_round_that_a_heartbeat_names(void **state)
{
    struct core_fixture *f = *state;

    core_commit_at(f, 9);
    assert_int_equal(snapshot_of(f, 1)->named_state, ROUND_NONE);
    f->nodes[1].round = 1; /* it was in it, and missed the commit */
    core_heartbeat(f, 1);
    const struct wire_snapshot *s = snapshot_of(f, 1);
    assert_int_equal(s->named_round, 1);
    assert_int_equal(s->named_state, ROUND_COMMITTED);
    assert_int_equal(s->named_cause, CAUSE_OPERATOR);
    assert_int_equal(s->named_step, 9);
}

static void the_failure_of_rank_0_ends_the_launch_as_anothers_does(void **state)
{
    struct core_fixture *f = *state;

    core_error(f, 0, 5, "bad");
    assert_int_equal(core_job(f)->gen.state, GENERATION_ENDING);
    assert_int_equal(core_job(f)->gen.error_rank, 0);
}

static void a_snapshot_tells_the_first_error_and_the_end(void **state)
{
    struct core_fixture *f = *state;

    core_error(f, 2, 5, "bad");
    const struct wire_snapshot *s = snapshot_of(f, 1);
    assert_int_equal(s->error_rank, 2);
    assert_int_equal(s->error_code, 3);
    assert_string_equal(s->error_text, "bad");
    assert_int_equal(s->end_status, MUSTER_E_PEER);
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(five_seconds_of_silence_and_not_less_lose_a_node, core_run_two),
        T(a_gap_between_two_passes_is_not_counted_as_silence, core_run_two),
        T(gaps_up_to_a_second_are_counted, core_run_two),
        T(a_loop_whose_every_pass_is_slow_finds_a_silent_rank, core_run_two),
        T(who_is_told_gone_behind_a_gap_is_looked_for_at_once, core_run_two),
        T(when_who_is_lost_was_last_heard_is_written_with_its_loss, core_run_two),
        T(after_a_start_only_who_was_heard_can_be_lost_within_thirty_seconds, core_run_two),
        T(of_who_does_not_come_back_it_is_said_that_the_broker_was_away, core_run_two),
        T(a_node_that_steps_for_a_minute_without_a_step_is_told_of_once, core_run_two),
        T(ranks_that_do_no_step_for_a_minute_are_told_of_once, core_run_two),
        T(a_program_that_sets_up_before_its_first_step_is_not_stuck, core_run_two),
        T(a_long_step_is_stuck_only_after_ten_times_its_usual_time, core_run_two),
        T(a_save_that_stands_still_for_a_minute_is_told_of_once, core_run_two),
        T(bytes_written_behind_a_step_do_not_hide_that_it_hangs, core_run_two),
        T(what_a_newer_node_does_has_no_word_here_and_does_no_harm, core_run_two),
        T(what_is_not_acknowledged_is_repeated_to_that_node_alone, core_run_two),
        T(nothing_is_repeated_to_who_left_or_was_lost, core_run_three),
        T(a_slow_fan_out_delays_the_first_repeat, core_run_two),
        T(what_a_leave_means_depends_on_its_reason, core_run_three),
        T(the_last_leave_ends_the_generation, core_run_two),
        T(the_first_error_is_journaled_published_and_kept, core_run_three),
        T(a_member_that_fails_ends_a_termination_with_one_more_try_of_the_others, core_run_three),
        T(an_error_after_a_node_was_captured_lets_the_save_end_first, core_run_three),
        T(an_error_ends_the_generation_also_when_the_awaited_save_comes_to_nothing, core_run_three),
        T(a_lost_rank_breaks_off_the_steps_of_a_termination, core_run_three),
        T(without_rank_0_the_next_rank_saves_what_all_survivors_have_done, core_run_three),
        T(survivors_at_different_steps_cannot_save, core_run_three),
        T(survivors_whose_steps_were_broken_off_save_what_they_have_done, core_run_three),
        T(sharded_ends_when_a_rank_is_lost, core_run_three_sharded),
        T(sharded_ends_when_a_step_fails_in_a_termination, core_run_three_sharded),
        T(a_snapshot_tells_the_open_round_as_this_node_stands_to_it, core_run_three),
        T(a_snapshot_tells_the_outcome_of_the_round_that_a_heartbeat_names, core_run_three),
        T(the_failure_of_rank_0_ends_the_launch_as_anothers_does, core_run_three),
        T(a_snapshot_tells_the_first_error_and_the_end, core_run_three),
    };

    return cmocka_run_group_tests_name("core_roster", tests, NULL, NULL);
}
