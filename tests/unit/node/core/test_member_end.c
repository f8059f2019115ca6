/* The node's core: errors, steps that are broken off, deadlines, restoring, leaving.
 * PROTOCOL.md R7, R8, Bounds. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum where { IDLE, FROZEN, THAWED, TO_STEP, CAPTURING, CAPTURED, WHERE_COUNT };

/* Round 1 at step 5, this node the writer. */
static void bring(struct member_fixture *f, enum where where, enum wire_cause cause)
{
    member_stand(f, 5);
    if (where == IDLE)
        return;
    member_freeze(f, 1, cause, false);
    member_ack_all(f);
    if (where == THAWED)
        member_pass(f, THAW_MS, true);
    if (where < TO_STEP)
        return;
    member_decision(f, 1, cause, 5, 2);
    if (where >= CAPTURING)
        member_arrive(f);
    if (where == CAPTURED)
        member_saved(f, 1, 1);
    member_ack_all(f);
}

/* --- errors of others ------------------------------------------------------------------------- */

/* R8.1 */
static void an_error_elsewhere_runs_on_error_at_once_and_ends_every_boundary(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_peer_error(f, 2, false);
    assert_member(f, "on_error MUSTER_E_PEER; close; view end MUSTER_E_PEER");
    const struct muster_error *end = &member_seen(f)->end;
    assert_int_equal(end->rank, 2);
    assert_int_equal(end->code, 3); /* the rank's own */
    assert_int_equal(end->step, 7);
    assert_string_equal(end->text, "rank 2 failed at step 7: loss is NaN");
    assert_false(member_seen(f)->leave_restart);
    member_peer_error(f, 0, false); /* the first one wins */
    assert_member(f, "");
    assert_int_equal(member_seen(f)->end.rank, 2);
}

static void a_step_that_does_not_return_after_an_error_ends_the_process(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_peer_error(f, 2, false);
    member_pass(f, 20000 - 1, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    member_pass(f, 1, true);
    assert_false(member_did(f, MEMBER_EXIT_PROCESS)->restart);
    member_anew(f);
    member_in_step(f, 8);
    member_peer_error(f, 2, false);
    member_pass(f, 10000, true);
    member_stand(f, 7); /* it came back */
    member_pass(f, 30000, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
}

static void a_process_that_is_ended_by_force_says_leave_first(void **state)
{
    struct member_fixture *f = *state;

    f->m->options.exit_allowed = true;
    f->m->options.restart_code = 42;
    member_in_step(f, 8);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    member_ack_all(f);
    member_pass(f, 20000, true);
    assert_true(member_did(f, MEMBER_EXIT_PROCESS)->restart);
    const struct wire_leave *leave = &member_sent(f, WIRE_LEAVE)->u.leave;
    assert_int_equal(leave->why, LEAVE_PREEMPTED);
    assert_int_equal(leave->code, 42);
    assert_int_equal(leave->done, 7);
    member_anew(f);
    f->m->options.exit_allowed = true;
    member_in_step(f, 8);
    member_peer_error(f, 2, false);
    member_pass(f, 20000, true);
    assert_int_equal(member_sent(f, WIRE_LEAVE)->u.leave.why, LEAVE_ERROR);
    assert_int_equal(member_sent(f, WIRE_LEAVE)->u.leave.code, 1);
    member_anew(f);
    member_in_step(f, 8); /* with policy RETURN it lives on, whatever it does */
    member_peer_error(f, 2, false);
    member_pass(f, 30000, true);
    assert_null(member_sent(f, WIRE_LEAVE));
}

static void an_own_deadline_shortens_that_wait(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 8000);
    member_in_step(f, 8);
    member_peer_error(f, 2, false);
    member_pass(f, 8000 - MARGIN_MS - 1, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    member_pass(f, 1, true);
    assert_non_null(member_did(f, MEMBER_EXIT_PROCESS));
}

struct error_case {
    const char *what;
    enum where where;
    enum view_mode mode; /* after the error with a round that follows */
    int64_t wait_ms;     /* how long, when nothing more is heard */
};

/* R8.2 */
static void a_round_that_follows_is_served_first_and_waited_for_with_a_bound(void **state)
{
    struct member_fixture *f = *state;
    static const struct error_case table[] = {
        {"idle", IDLE, VIEW_WAIT, THAW_MS},
        {"frozen", FROZEN, VIEW_WAIT, THAW_MS},
        {"thawed", THAWED, VIEW_WAIT, THAW_MS},
        {"on the way", TO_STEP, VIEW_STEP_TO, GIVE_UP_MS + WAY_UNMEASURED_MS - STUCK_MS},
        {"captured", CAPTURED, VIEW_WAIT, GIVE_UP_MS},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        bring(f, table[i].where, CAUSE_OPERATOR);
        member_peer_error(f, 2, true);
        assert_non_null(member_did(f, MEMBER_ON_ERROR));
        if (member_seen(f)->mode != table[i].mode)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        member_pass(f, table[i].wait_ms - 1, false);
        if (member_seen(f)->mode != table[i].mode)
            fail_msg("%s: too early", table[i].what);
        member_pass(f, 1, false);
        if (member_seen(f)->mode != VIEW_END)
            fail_msg("%s: too late", table[i].what);
        assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
        member_anew(f);
    }
}

/* Let in, and back in its program: in a set-up of its own, that may wait for ranks that will not
 * come. */
static void bring_into_setup(struct member_fixture *f, bool restored)
{
    member_fixture_close(f);
    member_fixture_open(f, 1, LAYOUT_REPLICATED);
    member_tick_at(f, f->now);
    member_welcome(f, true);
    struct wire_snapshot s = member_snapshot_made(f);
    s.generation_state = GENERATION_JOINING;
    member_snapshot(f, s);
    if (restored)
        member_feed(f, (struct member_input){.kind = MEMBER_RESTORED});
    member_ack_all(f);
}

static void
a_process_that_is_told_to_end_before_its_first_step_is_freed_and_then_ended(void **state)
{
    struct member_fixture *f = *state;

    for (int restored = 0; restored < 2; restored++) {
        struct wire_event unchanged = member_event(f, EVENT_UNCHANGED);
        bring_into_setup(f, restored > 0);
        unchanged.round = 1;
        unchanged.cause = CAUSE_TERMINATION;
        unchanged.seq = 0;
        member_tell(f, unchanged);
        assert_int_equal(member_seen(f)->end.status, MUSTER_PREEMPTED);
        /* the program's on_error knows what it may break off once open has returned */
        assert_true((member_did(f, MEMBER_ON_ERROR) != NULL) == (restored > 0));
        member_pass(f, 20000 - 1, true);
        assert_null(member_did(f, MEMBER_EXIT_PROCESS));
        member_pass(f, 1, true);
        assert_true(member_did(f, MEMBER_EXIT_PROCESS)->restart);
    }
}

static void a_process_that_comes_to_its_end_by_itself_is_not_ended(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event failed = member_event(f, EVENT_JOIN_FAILED);

    bring_into_setup(f, true);
    member_tell(f, failed);
    member_pass(f, 10000, true);
    member_close(f, LEAVE_ERROR);
    member_pass(f, 60000, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
}

static void a_program_between_its_steps_is_not_ended_by_force(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 50);
    member_tick_at(f, f->now + 1);
    member_peer_error(f, 0, false); /* it may be writing down its results after the last step */
    member_pass(f, 120000, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
}

static void a_peers_text_commands_no_terminal(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_PEER_ERROR);

    member_in_step(f, 8);
    event.rank = 2;
    event.code = MUSTER_E_STEP;
    event.text = "loss \x1b[2J is\nNaN";
    member_tell(f, event);
    assert_non_null(strstr(member_seen(f)->end.text, "loss ?[2J is NaN"));
}

static void an_error_while_saving_is_returned_after_the_save(void **state)
{
    struct member_fixture *f = *state;

    bring(f, CAPTURING, CAUSE_OPERATOR);
    member_peer_error(f, 2, true);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
    member_pass(f, 300000, false);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE); /* the thread is busy with it */
    member_saved(f, 1, 1);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_commit(f, 1, CAUSE_OPERATOR, 5, false);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
}

static void an_error_before_a_termination_is_overtaken_by_its_commit(void **state)
{
    struct member_fixture *f = *state;

    bring(f, CAPTURED, CAUSE_TERMINATION);
    member_peer_error(f, 2, true);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    member_pass(f, MANIFEST_WAIT_MS, true);
    assert_int_equal(member_seen(f)->end.status, MUSTER_PREEMPTED);
    member_anew(f);
    bring(f, CAPTURED, CAUSE_TERMINATION);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    member_peer_error(f, 2, false); /* the others are leaving already */
    assert_member(f, "");
}

static void a_freeze_that_breaks_off_steps_waits_until_none_is_in_flight(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_freeze(f, 1, CAUSE_TERMINATION, true);
    assert_member(f, "close; view wait; on_error MUSTER_E_PEER");
    member_step_failed(f); /* broken off: its begun was taken back */
    assert_member(f, "REPORT r1 7/7 aborted");
    member_ack_all(f);
    member_pass(f, FREEZE_MS - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    member_anew(f);
    member_stand(f, 7);
    member_freeze(f, 1, CAUSE_TERMINATION, true);
    assert_member(f, "close; view wait; REPORT r1 7/7 aborted");
    member_anew(f);
    member_in_step(f, 8);
    member_freeze(f, 1, CAUSE_TERMINATION, true);
    member_stand(f, 8); /* it came to its end after all */
    member_arrive(f);
    assert_member(f, "REPORT r1 8/8 aborted");
}

static void a_step_that_cannot_be_broken_off_is_waited_for_with_a_bound(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_freeze(f, 1, CAUSE_TERMINATION, true);
    member_pass(f, THAW_MS + 20000 - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

/* --- own errors ------------------------------------------------------------------------------- */

static void an_own_error_is_told_and_ends_every_boundary(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 7);
    member_step_failed(f);
    assert_member(f, "ERROR #2; close; view end MUSTER_E_STEP");
    assert_int_equal(member_sent(f, WIRE_ERROR)->u.error.step, 7);
    assert_string_equal(member_sent(f, WIRE_ERROR)->u.error.text, "mine");
    member_peer_error(f, 1, false); /* its own, back from the broker */
    assert_member(f, "");
    member_freeze(f, 1, CAUSE_TERMINATION, true);
    assert_member(f, "");
}

static void a_step_that_fails_after_anothers_error_is_no_error_of_its_own(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_peer_error(f, 2, true);
    member_step_failed(f);
    assert_member(f, "");
    member_anew(f);
    member_in_step(f, 8);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    member_step_failed(f);
    assert_member(f, "");
}

/* R5.7 */
static void who_cannot_come_to_the_save_step_any_more_says_so(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_freeze(f, 1, CAUSE_TERMINATION, false);
    member_decision(f, 1, CAUSE_TERMINATION, 8, 1u << 1);
    member_ack_all(f);
    member_peer_error(f, 2, true); /* rank 2 missed the freeze, and the step waits for it */
    member_step_failed(f);
    assert_int_equal(member_sent(f, WIRE_PAST)->u.past.begun, 7);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_abort(f, 1, true);
    member_freeze(f, 2, CAUSE_TERMINATION, true);
    assert_int_equal(member_sent(f, WIRE_REPORT)->u.report.begun, 7);
}

/* --- deadlines -------------------------------------------------------------------------------- */

/* R7.7 */
static void at_its_own_margin_a_node_leaves_with_the_restart_code(void **state)
{
    struct member_fixture *f = *state;

    for (int where = IDLE; where < WHERE_COUNT; where++) {
        member_notice(f, "n1", 60000);
        int64_t at = f->now + 60000 - MARGIN_MS;
        bring(f, (enum where)where, CAUSE_TERMINATION);
        member_pass(f, at - f->now - 1, true);
        assert_true(member_seen(f)->mode != VIEW_END);
        member_pass(f, 1, true);
        assert_int_equal(member_seen(f)->mode, VIEW_END);
        assert_int_equal(member_seen(f)->end.status, MUSTER_PREEMPTED);
        assert_int_equal(member_seen(f)->end.code, MUSTER_E_NOT_SAVED);
        assert_true(member_seen(f)->leave_restart);
        member_saved(f, 1, 1);
        assert_int_equal(member_sent_count(f, WIRE_SAVED), 0);
        member_anew(f);
    }
}

/* Its thread is in a save_fn; when its margin comes. */
static int64_t saves_before_its_margin(struct member_fixture *f)
{
    member_anew(f);
    member_notice(f, "n1", 60000);
    int64_t at = f->now + 60000 - MARGIN_MS;
    member_capture(f, CAUSE_POLICY);
    member_set_saving(f->m, 1, 1);
    return at;
}

/* The training thread is in a save_fn that tells no bytes, or ever more: its process ends half a
 * second later. */
static void at_its_own_margin_a_save_that_does_not_return_is_ended_with_the_process(void **state)
{
    struct member_fixture *f = *state;

    for (uint64_t grows = 0; grows < 2; grows++) {
        int64_t at = saves_before_its_margin(f);
        member_pass(f, at - f->now, true);
        assert_int_equal(member_seen(f)->mode, VIEW_END);
        assert_null(member_did(f, MEMBER_EXIT_PROCESS));
        for (uint64_t tenth = 1; tenth < 10; tenth++) {
            member_set_saving(f->m, 1, 1 + grows * tenth);
            member_pass(f, MARGIN_MS / 10, true);
            if (member_did(f, MEMBER_EXIT_PROCESS) != NULL)
                break;
        }
        assert_non_null(member_did(f, MEMBER_EXIT_PROCESS));
        assert_true(member_did(f, MEMBER_EXIT_PROCESS)->restart);
    }
}

/* ... and not that of one that came back in time, nor one whose save is written behind it. */
static void at_its_own_margin_a_save_that_returns_ends_no_process(void **state)
{
    struct member_fixture *f = *state;

    for (int behind = 0; behind < 2; behind++) {
        int64_t at = saves_before_its_margin(f);
        if (behind > 0)
            member_feed(f, (struct member_input){.kind = MEMBER_CAPTURED, .round = 1, .step = 5});
        member_pass(f, at - f->now, true);
        if (behind == 0)
            member_set_saving(f->m, 0, 0);
        member_pass(f, 10 * MARGIN_MS, true);
        assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    }
}

/* The process must be gone before its deadline: LEAVE is said then, and waits for no answer
 * (R8.5). */
static void at_its_own_margin_leave_is_said_and_does_not_wait(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 3000);
    member_ack_all(f);
    member_pass(f, 3000 - MARGIN_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    member_close(f, LEAVE_PREEMPTED);
    assert_non_null(member_sent(f, WIRE_LEAVE));
    assert_true(member_seen(f)->left);
}

static void at_the_margin_a_running_step_is_not_waited_for(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 5000);
    member_in_step(f, 8);
    member_pass(f, 5000 - MARGIN_MS, true);
    assert_non_null(member_did(f, MEMBER_ON_ERROR));
    member_pass(f, MARGIN_MS / 2 - 1, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    member_pass(f, 1, true);
    assert_true(member_did(f, MEMBER_EXIT_PROCESS)->restart);
}

static void a_committed_checkpoint_is_not_called_lost_at_the_margin(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 5000);
    bring(f, CAPTURED, CAUSE_TERMINATION);
    member_pass(f, 3500, true);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    member_pass(f, MANIFEST_WAIT_MS, true);
    assert_int_equal(member_seen(f)->end.code, 0);
    assert_int_equal(member_seen(f)->end.status, MUSTER_PREEMPTED);
}

/* It was away when the rank failed, and no round follows that it could wait for. */
static void who_hears_of_an_error_by_a_snapshot_ends_at_once(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot snapshot = member_snapshot_made(f);

    snapshot.error_rank = 0;
    snapshot.error_code = MUSTER_E_STEP;
    snapshot.error_text = "bad";
    member_welcome(f, true);
    member_snapshot(f, snapshot);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
}

static void a_notice_of_another_rank_is_none_of_this_nodes_clock(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_TERMINATION);

    event.rank = 2;
    event.text = "n9";
    event.left_ms = 3000;
    member_tell(f, event);
    assert_true(member_seen(f)->termination_seen);
    member_pass(f, 10000, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

struct end_case {
    const char *what;
    enum wire_event_kind kind;
    uint64_t flags;
    enum muster_status status;
    bool restart;
};

static void an_evaluator_ends_by_its_own_restore_and_by_no_other(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_OBSERVER);

    event.code = MUSTER_E_RESTORE;
    event.text = "evaluator 0 could not restore";
    event.incarnation = 5;
    member_tell(f, event);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    event = member_event(f, EVENT_OBSERVER);
    event.code = MUSTER_E_RESTORE;
    event.text = "evaluator 0 could not restore";
    event.incarnation = MEMBER_INCARNATION;
    member_tell(f, event);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_RESTORE);
}

static void events_that_end_the_generation_end_the_node(void **state)
{
    struct member_fixture *f = *state;
    static const struct end_case table[] = {
        {"not saved", EVENT_NOT_SAVED, 0, MUSTER_PREEMPTED, true},
        {"unchanged", EVENT_UNCHANGED, 0, MUSTER_PREEMPTED, true},
        {"node lost", EVENT_NODE_LOST, 0, MUSTER_E_PEER, false},
        {"rank restarted", EVENT_RANK_RESTARTED, 0, MUSTER_E_PEER, false},
        {"join failed", EVENT_JOIN_FAILED, 0, MUSTER_E_JOIN, false},
        {"restore failed", EVENT_RESTORE_FAILED, 0, MUSTER_E_RESTORE, false},
        {"an older one follows", EVENT_RESTORE_FAILED, EVENT_FLAG_RETRY, MUSTER_OK, false},
        {"rank 0 imports", EVENT_RESTORE_FAILED, EVENT_FLAG_IMPORTS, MUSTER_PREEMPTED, true},
        {"stuck", EVENT_STUCK, 0, MUSTER_OK, false},
        {"of an evaluator", EVENT_OBSERVER, 0, MUSTER_OK, false},
        {"a kind that is not known here", EVENT_KIND_COUNT, 0, MUSTER_OK, false},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wire_event event = member_event(f, table[i].kind);
        event.flags = table[i].flags;
        event.cause = CAUSE_TERMINATION;
        event.rank = 2;
        event.text = "why";
        member_tell(f, event);
        bool end = member_seen(f)->mode == VIEW_END;
        if (end != (table[i].status != MUSTER_OK) ||
            member_seen(f)->end.status != table[i].status ||
            member_seen(f)->leave_restart != table[i].restart)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        member_anew(f);
    }
}

/* --- leaving ---------------------------------------------------------------------------------- */

struct close_case {
    const char *what;
    enum where where;
    enum wire_cause cause;
    int64_t stands, step;
    bool leaves_at_once;
    bool lost; /* another rank was, and a round follows */
};

static void closing_leaves_at_once_unless_a_round_needs_this_node(void **state)
{
    struct member_fixture *f = *state;
    static const struct close_case table[] = {
        {"idle", IDLE, CAUSE_NONE, 5, 5, true, false},
        {"frozen", FROZEN, CAUSE_OPERATOR, 5, 5, false, false},
        {"thawed", THAWED, CAUSE_OPERATOR, 5, 5, true, false},
        {"before the save step", TO_STEP, CAUSE_TERMINATION, 4, 5, true, false},
        {"before it, a rank was lost", TO_STEP, CAUSE_TERMINATION, 4, 5, true, true},
        {"captured", CAPTURED, CAUSE_OPERATOR, 5, 5, false, false}, /* its manifest may be ours */
        {"captured, termination", CAPTURED, CAUSE_TERMINATION, 5, 5, false, false},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        bring(f, table[i].where, table[i].cause);
        f->done = f->begun = table[i].stands;
        if (table[i].lost)
            member_peer_error(f, 2, true);
        member_close(f, LEAVE_FINISHED);
        if ((member_sent(f, WIRE_LEAVE) != NULL) != table[i].leaves_at_once)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        assert_false(member_seen(f)->left);
        if (table[i].leaves_at_once) {
            assert_int_equal(member_sent(f, WIRE_LEAVE)->u.leave.done, table[i].stands);
            assert_int_equal(member_sent(f, WIRE_LEAVE)->u.leave.code, 9);
            member_ack_all(f);
            assert_true(member_seen(f)->left);
        }
        member_anew(f);
    }
}

static void a_rank_that_finishes_at_the_save_step_saves_before_it_leaves(void **state)
{
    struct member_fixture *f = *state;

    bring(f, FROZEN, CAUSE_TERMINATION);
    member_close(f, LEAVE_FINISHED);
    member_decision(f, 1, CAUSE_TERMINATION, 5, 2);
    assert_int_equal(member_seen(f)->mode, VIEW_STEP_TO);
    member_arrive(f);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
    member_saved(f, 1, 1);
    assert_null(member_sent(f, WIRE_LEAVE));
    member_ack_all(f);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    member_pass(f, MANIFEST_WAIT_MS, true);
    assert_int_equal(member_sent(f, WIRE_LEAVE)->u.leave.why, LEAVE_PREEMPTED);
}

static void closing_at_the_save_step_is_an_arrival(void **state)
{
    struct member_fixture *f = *state;

    bring(f, TO_STEP, CAUSE_OPERATOR);
    member_close(f, LEAVE_FINISHED);
    assert_member(f, "close; AT_STEP #2 r1 S5; view capture 5");
    member_saved(f, 1, 1);
    uint64_t saved = member_sent(f, WIRE_SAVED)->up.request;
    assert_null(member_sent(f, WIRE_LEAVE)); /* who leaves before the commit writes no manifest */
    member_commit(f, 1, CAUSE_OPERATOR, 5, false);
    assert_non_null(member_sent(f, WIRE_LEAVE)); /* after SAVED: the numbers keep the order */
    assert_true(member_sent(f, WIRE_LEAVE)->up.request > saved);
}

static void who_finishes_before_the_next_save_step_writes_the_last_manifest_first(void **state)
{
    struct member_fixture *f = *state;

    bring(f, CAPTURED, CAUSE_OPERATOR);
    member_close(f, LEAVE_FINISHED);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    assert_non_null(member_sent(f, WIRE_MANIFEST_GET));
    member_decision(f, 2, CAUSE_POLICY, 9, 1); /* it will not come there */
    assert_null(member_sent(f, WIRE_LEAVE));
    member_pass(f, ENDING_MS, true); /* not longer than that */
    assert_non_null(member_sent(f, WIRE_LEAVE));
}

static void who_closes_inside_a_step_that_never_ended_takes_part_in_nothing(void **state)
{
    struct member_fixture *f = *state;
    struct member_input close = {.kind = MEMBER_CLOSE, .why = LEAVE_FAILED, .code = 1};

    close.broken = true; /* its state is that of no step, whatever the counts say */
    for (int where = IDLE; where < WHERE_COUNT; where++) {
        if (where == CAPTURING || where == CAPTURED)
            continue; /* no step is running there */
        bring(f, (enum where)where, CAUSE_TERMINATION);
        member_feed(f, close);
        assert_non_null(member_sent(f, WIRE_LEAVE));
        assert_null(member_sent(f, WIRE_AT_STEP));
        member_freeze(f, 7, CAUSE_TERMINATION, true);
        assert_null(member_sent(f, WIRE_REPORT));
        member_anew(f);
    }
}

static void a_link_that_comes_back_in_time_is_used_to_leave(void **state)
{
    struct member_fixture *f = *state;

    bring(f, CAPTURED, CAUSE_OPERATOR);
    member_ack(f, 0, MUSTER_E_HELLO);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 500, false);
    member_welcome(f, false);
    member_pass(f, 3000, true);
    assert_false(member_seen(f)->left); /* it waits for the verdict, and has not said LEAVE */
    member_commit(f, 1, CAUSE_OPERATOR, 5, false);
    assert_non_null(member_sent(f, WIRE_LEAVE));
}

/* R8.5 */
static void a_leave_without_an_answer_is_waited_for_until_the_broker_is_silent(void **state)
{
    struct member_fixture *f = *state;

    member_alive(f);
    member_close(f, LEAVE_FINISHED);
    assert_int_equal(member_sent_count(f, WIRE_LEAVE), 1);
    member_pass(f, LOST_MS - 1, false);
    assert_false(member_seen(f)->left);
    member_pass(f, 1, false);
    assert_true(member_seen(f)->left);
}

/* As when the broker has been away for long: there is no room for a LEAVE. */
static void closing_ends_also_when_no_further_request_can_be_kept(void **state)
{
    struct member_fixture *f = *state;

    for (int i = 0; i < PENDING_MAX; i++)
        member_feed(f, (struct member_input){.kind = MEMBER_RESTORED, .checkpoint = 0, .step = 0});
    assert_int_equal(f->m->pending_count, PENDING_MAX);
    member_close(f, LEAVE_FINISHED);
    assert_int_equal(member_sent_count(f, WIRE_LEAVE), 0);
    member_pass(f, LOST_MS - 1, false);
    assert_false(member_seen(f)->left);
    member_pass(f, 1, false);
    assert_true(member_seen(f)->left);
}

static void a_leave_is_said_as_soon_as_there_is_room_for_it(void **state)
{
    struct member_fixture *f = *state;

    for (int i = 0; i < PENDING_MAX; i++)
        member_feed(f, (struct member_input){.kind = MEMBER_RESTORED, .checkpoint = 0, .step = 0});
    member_close(f, LEAVE_FINISHED);
    member_ack_all(f);
    assert_true(member_seen(f)->left);
    assert_int_equal(f->m->pending_count, 0);
    assert_true(f->m->leave_request > 0);
}

/* R8.5 */
static void closing_ends_also_when_the_broker_is_away(void **state)
{
    struct member_fixture *f = *state;
    for (int where = IDLE; where < WHERE_COUNT; where++) {
        if (where == CAPTURING)
            continue; /* ends with its save */
        bring(f, (enum where)where, CAUSE_OPERATOR);
        if (where == TO_STEP)
            member_stand(f, 4);           /* S is 5: it will not be reached */
        member_ack(f, 0, MUSTER_E_HELLO); /* the link is down from here on */
        member_close(f, LEAVE_FINISHED);
        member_pass(f, LOST_MS, false);
        if (!member_seen(f)->left)
            fail_msg("state %d does not leave", where);
        member_anew(f);
    }
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_error_elsewhere_runs_on_error_at_once_and_ends_every_boundary, member_set_up),
        T(a_step_that_does_not_return_after_an_error_ends_the_process, member_set_up),
        T(a_process_that_is_told_to_end_before_its_first_step_is_freed_and_then_ended,
          member_set_up),
        T(a_process_that_comes_to_its_end_by_itself_is_not_ended, member_set_up),
        T(a_program_between_its_steps_is_not_ended_by_force, member_set_up),
        T(a_process_that_is_ended_by_force_says_leave_first, member_set_up),
        T(an_own_deadline_shortens_that_wait, member_set_up),
        T(a_round_that_follows_is_served_first_and_waited_for_with_a_bound, member_set_up),
        T(a_peers_text_commands_no_terminal, member_set_up),
        T(an_error_while_saving_is_returned_after_the_save, member_set_up),
        T(an_error_before_a_termination_is_overtaken_by_its_commit, member_set_up),
        T(a_freeze_that_breaks_off_steps_waits_until_none_is_in_flight, member_set_up),
        T(a_step_that_cannot_be_broken_off_is_waited_for_with_a_bound, member_set_up),
        T(an_own_error_is_told_and_ends_every_boundary, member_set_up),
        T(a_step_that_fails_after_anothers_error_is_no_error_of_its_own, member_set_up),
        T(who_cannot_come_to_the_save_step_any_more_says_so, member_set_up),
        T(at_its_own_margin_a_node_leaves_with_the_restart_code, member_set_up),
        T(at_its_own_margin_a_save_that_does_not_return_is_ended_with_the_process, member_set_up),
        T(at_its_own_margin_a_save_that_returns_ends_no_process, member_set_up),
        T(at_its_own_margin_leave_is_said_and_does_not_wait, member_set_up),
        T(at_the_margin_a_running_step_is_not_waited_for, member_set_up),
        T(a_committed_checkpoint_is_not_called_lost_at_the_margin, member_set_up),
        T(who_hears_of_an_error_by_a_snapshot_ends_at_once, member_set_up),
        T(a_notice_of_another_rank_is_none_of_this_nodes_clock, member_set_up),
        T(an_evaluator_ends_by_its_own_restore_and_by_no_other, member_set_up),
        T(events_that_end_the_generation_end_the_node, member_set_up),
        T(closing_leaves_at_once_unless_a_round_needs_this_node, member_set_up),
        T(a_rank_that_finishes_at_the_save_step_saves_before_it_leaves, member_set_up),
        T(closing_at_the_save_step_is_an_arrival, member_set_up),
        T(who_finishes_before_the_next_save_step_writes_the_last_manifest_first, member_set_up),
        T(who_closes_inside_a_step_that_never_ended_takes_part_in_nothing, member_set_up),
        T(a_link_that_comes_back_in_time_is_used_to_leave, member_set_up),
        T(a_leave_without_an_answer_is_waited_for_until_the_broker_is_silent, member_set_up),
        T(closing_ends_also_when_the_broker_is_away, member_set_up),
        T(closing_ends_also_when_no_further_request_can_be_kept, member_set_up),
        T(a_leave_is_said_as_soon_as_there_is_room_for_it, member_set_up),
    };

    return cmocka_run_group_tests_name("member_end", tests, NULL, NULL);
}
