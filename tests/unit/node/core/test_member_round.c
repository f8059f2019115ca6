/* The node's core: its part in a round, from the freeze to the verdict. PROTOCOL.md R4, R5. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define W0 1u /* rank 0 writes */
#define W1 2u /* this node does */

/* --- freeze and report ------------------------------------------------------------------------ */

/* R4.2 */
static void a_freeze_closes_the_gate_and_reports_what_the_closing_gave(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8); /* deep in a step: it answers anyway */
    member_freeze(f, 1, CAUSE_TERMINATION, false);
    assert_member(f, "close; view wait; REPORT r1 8/7");
    assert_int_equal(member_seen(f)->round, 1);
    assert_true(member_seen(f)->termination);
    assert_int_equal(member_phase(f->m), PHASE_STEPPING);
    member_stand(f, 8);
    member_arrive(f);
    assert_member(f, ""); /* reported is reported */
    assert_int_equal(member_phase(f->m), PHASE_FROZEN);
}

/* Its round was given up, and the next one asks it: it stands in its save anyway. */
static void who_does_not_come_out_of_a_save_says_so_whatever_is_asked(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 5, W1);
    member_arrive(f);
    member_set_saving(f->m, 1, 0);
    member_abort(f, 1, true);
    assert_int_equal(member_phase(f->m), PHASE_SAVING);
    member_freeze(f, 2, CAUSE_OPERATOR, false);
    assert_int_equal(member_phase(f->m), PHASE_SAVING);
    member_decision(f, 2, CAUSE_OPERATOR, 9, W1);
    assert_int_equal(member_phase(f->m), PHASE_SAVING);
    member_set_saving(f->m, 0, 0);
    member_pass(f, HEARTBEAT_MS, true);
    assert_int_equal(member_phase(f->m), PHASE_TO_STEP);
}

static void a_freeze_of_the_same_or_a_past_round_or_of_others_is_ignored(void **state)
{
    struct member_fixture *f = *state;

    member_freeze(f, 4, CAUSE_OPERATOR, false);
    member_ack_all(f);
    member_freeze(f, 4, CAUSE_OPERATOR, false);
    assert_member(f, "");
    member_freeze(f, 3, CAUSE_OPERATOR, false);
    assert_member(f, "");
    f->members[1].incarnation = 5; /* not this life of the rank */
    member_freeze(f, 5, CAUSE_OPERATOR, false);
    assert_member(f, "");
    assert_int_equal(f->m->round, 4);
}

/* R5.3 */
static void a_freeze_of_a_higher_round_closes_anew_and_the_last_report_is_said_no_more(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_freeze(f, 2, CAUSE_TERMINATION, false);
    assert_member(f, "close; view wait; REPORT r2 5/5");
    member_pass(f, (FREEZE_MS / 4), true);
    assert_member(f, "REPORT r2 5/5");
}

/* R5.3, R1.1 */
static void
a_report_is_said_until_the_outcome_is_heard_and_at_once_to_a_broker_that_is_back(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    assert_int_equal(f->m->pending_count, 0); /* it has no number, and awaits no answer */
    member_pass(f, (FREEZE_MS / 4) - 1, true);
    assert_int_equal(member_sent_count(f, WIRE_REPORT), 0);
    member_pass(f, 1, true);
    assert_int_equal(member_sent_count(f, WIRE_REPORT), 1);
    member_feed(f, (struct member_input){.kind = MEMBER_CONNECTED});
    member_welcome(f, false);
    assert_int_equal(member_sent_count(f, WIRE_REPORT), 1);
    member_abort(f, 1, true);
    member_pass(f, 2 * (FREEZE_MS / 4), true);
    assert_int_equal(member_sent_count(f, WIRE_REPORT), 0);
}

/* R5.6 */
static void an_event_may_name_those_who_take_no_part(void **state)
{
    struct member_fixture *f = *state;
    struct wire_member other = {0, 4711, 0};
    struct wire_event event = member_event(f, EVENT_FREEZE);

    member_stand(f, 5);
    event.round = 1;
    event.cause = CAUSE_OPERATOR;
    event.flags = EVENT_FLAG_OTHERS;
    event.members.items = &other;
    event.members.count = 1;
    member_tell(f, event);
    assert_int_equal(member_sent_count(f, WIRE_REPORT), 1);
    event = member_event(f, EVENT_DECISION);
    event.round = 1;
    event.cause = CAUSE_OPERATOR;
    event.step = 5;
    event.flags = EVENT_FLAG_OTHERS;
    event.incarnation = 4712; /* it writes */
    event.nonce = 99;
    event.members.items = &other;
    event.members.count = 1;
    member_tell(f, event);
    assert_int_equal(member_seen(f)->mode, VIEW_STEP_TO);
    assert_false(member_seen(f)->writer);
    assert_true(member_seen(f)->round_nonce == 99);
    other.incarnation = MEMBER_INCARNATION;
    event = member_event(f, EVENT_FREEZE);
    event.round = 2;
    event.cause = CAUSE_OPERATOR;
    event.flags = EVENT_FLAG_OTHERS;
    event.members.items = &other;
    event.members.count = 1;
    member_tell(f, event);
    assert_int_equal(f->m->round, 1); /* it is one of them */
}

/* R5.6 */
static void a_decision_without_a_named_writer_makes_each_member_one(void **state)
{
    struct member_fixture *f = *state;

    for (uint64_t named = 0; named <= MEMBER_INCARNATION; named += MEMBER_INCARNATION) {
        struct wire_event event = member_event(f, EVENT_DECISION);

        event.round = named > 0 ? 2 : 1;
        event.cause = CAUSE_POLICY;
        event.step = 5;
        event.flags = EVENT_FLAG_OTHERS;
        event.incarnation = named;
        event.nonce = 7;
        member_tell(f, event);
        assert_true(member_seen(f)->writer);
    }
}

/* R4.5 */
static void four_seconds_after_a_closing_without_a_decision_the_node_trains_on(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_pass(f, THAW_MS - 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    assert_true(member_sent_count(f, WIRE_REPORT) > 3);
    member_pass(f, 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    member_pass(f, 2000, false);
    assert_int_equal(member_sent_count(f, WIRE_REPORT), 0); /* it would be a lie by now */
}

/* --- the decision ----------------------------------------------------------------------------- */

struct decision_case {
    const char *what;
    bool freeze, thaw, writer;
    int64_t begun, done, step;
    const char *text;
};

static void the_begun_of_the_closing_judges_what_a_decision_means(void **state)
{
    struct member_fixture *f = *state;
    static const struct decision_case table[] = {
        {"at the step", true, false, false, 5, 5, 5, "close; view wait; view step_to 5"},
        {"before it", true, false, true, 4, 4, 6, "close; view wait; view step_to 6"},
        {"in the last step", true, false, false, 5, 4, 5, "close; view wait; view step_to 5"},
        {"policy save, gate open", false, false, false, 5, 4, 6,
         "close; view wait; view step_to 6"},
        {"policy save, past it", false, false, false, 7, 6, 6,
         "close; view wait; PAST #2 r1 at 7; view open"},
        {"thawed, not past it", true, true, false, 6, 5, 6, "close; view wait; view step_to 6"},
        {"thawed, in the step after", true, true, false, 7, 6, 6,
         "close; view wait; PAST #2 r1 at 7; view open"},
        {"thawed, past it", true, true, true, 9, 9, 6,
         "close; view wait; PAST #2 r1 at 9; view open"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        member_stand(f, 4);
        if (table[i].freeze)
            member_freeze(f, 1, CAUSE_OPERATOR, false);
        member_ack_all(f);
        if (table[i].thaw)
            member_pass(f, THAW_MS, true);
        f->begun = table[i].begun;
        f->done = table[i].done;
        member_decision(f, 1, CAUSE_OPERATOR, table[i].step, table[i].writer ? W1 : W0);
        if (strcmp(member_text_of(f), table[i].text) != 0)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        assert_int_equal(member_seen(f)->writer, table[i].writer);
        member_anew(f);
    }
}

static void a_decision_is_taken_once_and_never_for_who_is_not_in_it(void **state)
{
    struct member_fixture *f = *state;

    f->members[1].incarnation = 5;
    member_decision(f, 1, CAUSE_OPERATOR, 5, W0);
    assert_member(f, "");
    f->members[1].incarnation = MEMBER_INCARNATION;
    member_decision(f, 2, CAUSE_OPERATOR, 5, W0);
    member_decision(f, 2, CAUSE_OPERATOR, 9, W0); /* decided is decided */
    assert_member(f, "");
    assert_int_equal(member_seen(f)->step, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 9, W0);
    assert_member(f, "");
}

static void a_decision_that_comes_in_the_moment_of_the_thaw_is_walked_to(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_ack_all(f);
    member_pass(f, THAW_MS - 1, true);
    f->now++;
    member_decision(f, 1, CAUSE_OPERATOR, 6, W0);
    assert_int_equal(member_seen(f)->mode, VIEW_STEP_TO);
    assert_true(f->gate_closed);
    member_pass(f, 5000, true);
    assert_int_equal(member_seen(f)->mode, VIEW_STEP_TO);
}

/* --- at S ------------------------------------------------------------------------------------- */

struct capture_case {
    const char *what;
    enum wire_cause cause;
    bool writer;
    const char *arrived, *saved;
};

/* R5.8, R5.10 */
static void at_the_save_step_a_writer_saves_and_a_termination_holds(void **state)
{
    struct member_fixture *f = *state;
    static const struct capture_case table[] = {
        {"member", CAUSE_OPERATOR, false, "AT_STEP #2 r1 S5 captured; view open", ""},
        {"member, termination", CAUSE_TERMINATION, false, "AT_STEP #2 r1 S5 captured; view wait",
         ""},
        {"writer", CAUSE_OPERATOR, true, "AT_STEP #2 r1 S5; view capture 5",
         "FILES #3 2; SAVED #4 r1 S5 2 files; view open"},
        {"writer, termination", CAUSE_TERMINATION, true, "AT_STEP #2 r1 S5; view capture 5",
         "FILES #3 2; SAVED #4 r1 S5 2 files; view wait"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        member_stand(f, 4);
        member_decision(f, 1, table[i].cause, 5, table[i].writer ? W1 : W0);
        member_arrive(f); /* at 4: not yet */
        assert_member(f, "");
        member_in_step(f, 5);
        member_tick_at(f, f->now);
        member_stand(f, 5);
        member_arrive(f);
        if (strcmp(member_text_of(f), table[i].arrived) != 0)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        if (table[i].writer) {
            member_saved(f, 9, 2); /* of another round */
            assert_member(f, "");
            member_saved(f, 1, 2);
            if (strcmp(member_text_of(f), table[i].saved) != 0)
                fail_msg("%s: %s", table[i].what, member_text_of(f));
            member_saved(f, 1, 2);
            assert_member(f, ""); /* once a round */
        }
        member_anew(f);
    }
}

static void a_shard_of_many_files_is_told_in_frames_that_fit(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 5, W1);
    member_arrive(f);
    member_saved(f, 1, FILES_SHARD_MAX);
    assert_int_equal(member_sent_count(f, WIRE_FILES), (4096 + 95) / 96);
    assert_int_equal(member_sent(f, WIRE_FILES)->u.files.files.count, FILES_FRAME_MAX);
    assert_int_equal(member_sent_count(f, WIRE_SAVED), 1);
    assert_true(f->m->pending_count <= PENDING_MAX);
}

/* R5.8 */
static void a_save_that_failed_is_told_with_its_code(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_TERMINATION, 5, W1);
    member_arrive(f);
    member_save_failed(f, 1, MUSTER_E_STORAGE);
    assert_member(f, "SAVE_FAILED #3 r1; view wait");
    assert_int_equal(member_sent(f, WIRE_SAVE_FAILED)->u.save_failed.code, MUSTER_E_STORAGE);
    member_abort(f, 1, true);
    assert_member(f, "log; discard r1; view wait");
}

static void who_was_captured_never_says_past(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 5, W0);
    member_arrive(f);
    member_ack_all(f);
    member_stand(f, 9); /* trains on */
    member_decision(f, 1, CAUSE_OPERATOR, 5, W0);
    assert_member(f, "");
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void a_save_that_ends_after_its_round_is_not_told(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 5, W1);
    member_arrive(f);
    member_abort(f, 1, false);
    assert_member(f, "log; discard r1; view open");
    member_saved(f, 1, 1);
    assert_member(f, "");
    member_save_failed(f, 1, MUSTER_E_SAVE);
    assert_member(f, "");
}

/* --- outcomes --------------------------------------------------------------------------------- */

enum where { FROZEN, THAWED, TO_STEP, CAPTURING, CAPTURED, WHERE_COUNT };

static void bring(struct member_fixture *f, enum where where, enum wire_cause cause)
{
    member_stand(f, 5);
    member_freeze(f, 1, cause, false);
    member_ack_all(f);
    if (where == THAWED)
        member_pass(f, THAW_MS, true);
    if (where < TO_STEP)
        return;
    member_decision(f, 1, cause, 5, where >= CAPTURING ? W1 : W0);
    if (where >= CAPTURING)
        member_arrive(f);
    if (where == CAPTURED)
        member_saved(f, 1, 1);
    member_ack_all(f);
}

/* R4.4 */
static void the_end_of_a_round_lets_the_thread_go_from_every_state(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        for (int what = 0; what < 3; what++) {
            bring(f, (enum where)where, CAUSE_OPERATOR);
            struct wire_event unchanged = member_event(f, EVENT_UNCHANGED);
            unchanged.round = 1;
            unchanged.cause = CAUSE_OPERATOR;
            if (what == 0)
                member_commit(f, 1, CAUSE_OPERATOR, 5, false);
            else if (what == 1)
                member_abort(f, 1, false);
            else
                member_tell(f, unchanged);
            assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
            assert_int_equal(f->m->part, PART_NONE);
            assert_true((member_did(f, MEMBER_DISCARD_ROUND) != NULL) ==
                        (what == 1 && where >= CAPTURING));
            member_anew(f);
        }
    }
}

static void the_end_of_another_round_means_nothing(void **state)
{
    struct member_fixture *f = *state;

    bring(f, TO_STEP, CAUSE_TERMINATION);
    member_commit(f, 9, CAUSE_OPERATOR, 5, false);
    assert_member(f, "view step_to 5"); /* the same, with news of a checkpoint */
    member_abort(f, 9, false);
    assert_member(f, "");
    assert_int_equal(member_seen(f)->mode, VIEW_STEP_TO);
}

static void an_abort_that_is_tried_again_holds_for_the_next_freeze_but_not_for_ever(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        bool held = where != THAWED && where != CAPTURED;
        bring(f, (enum where)where, CAUSE_OPERATOR);
        member_abort(f, 1, true);
        assert_int_equal(member_seen(f)->mode, held ? VIEW_WAIT : VIEW_OPEN);
        member_pass(f, THAW_MS - 1, false);
        assert_int_equal(member_seen(f)->mode, held ? VIEW_WAIT : VIEW_OPEN);
        member_pass(f, 1, false);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        member_freeze(f, 2, CAUSE_OPERATOR, false);
        assert_int_equal(member_sent(f, WIRE_REPORT)->u.report.round, 2);
        member_anew(f);
    }
}

/* R5.12 */
static void a_committed_termination_holds_for_the_manifest_and_then_leaves(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        bring(f, (enum where)where, CAUSE_TERMINATION);
        member_commit(f, 1, CAUSE_TERMINATION, 5, false);
        assert_member(f, "close; view wait");
        member_pass(f, MANIFEST_WAIT_MS - 1, true);
        assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
        member_pass(f, 1, true);
        assert_int_equal(member_seen(f)->mode, VIEW_END);
        assert_int_equal(member_seen(f)->end.status, MUSTER_PREEMPTED);
        assert_true(member_seen(f)->leave_restart);
        member_anew(f);
    }
    bring(f, CAPTURED, CAUSE_TERMINATION);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    struct wire_event manifest = member_event(f, EVENT_MANIFEST);
    manifest.round = manifest.checkpoint = 1;
    member_tell(f, manifest);
    assert_member(f, "close; view end MUSTER_PREEMPTED restart");
}

/* R5.10, R8.1 */
static void who_was_not_a_member_leaves_with_the_others(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_commit(f, 3, CAUSE_TERMINATION, 5, false);
    assert_member(f, "close; view wait; on_error MUSTER_PREEMPTED");
    member_pass(f, MANIFEST_WAIT_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    member_pass(f, 20000 - MANIFEST_WAIT_MS - 1, true);
    assert_null(member_did(f, MEMBER_EXIT_PROCESS));
    member_pass(f, 1, true); /* the step never returned */
    assert_true(member_did(f, MEMBER_EXIT_PROCESS)->restart);
}

static void a_notice_that_joins_the_round_makes_the_captured_hold_from_then_on(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_TERMINATION);

    bring(f, TO_STEP, CAUSE_OPERATOR);
    event.round = 1;
    event.rank = 2;
    event.text = "n1";
    member_tell(f, event);
    assert_true(member_seen(f)->termination);
    member_arrive(f);
    assert_member(f, "AT_STEP #2 r1 S5 captured; view wait");
    member_anew(f);
    bring(f, CAPTURED, CAUSE_OPERATOR); /* it trains on already: it stops after the verdict */
    event.seq = 0;
    member_tell(f, event);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    member_in_step(f, 7);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    assert_member(f, "close; view wait; on_error MUSTER_PREEMPTED");
}

/* R9.7 */
static void no_wait_of_a_round_is_without_end_when_the_broker_is_gone(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        if (where == CAPTURING)
            continue; /* the thread is busy saving; its wait begins when it comes back */
        bring(f, (enum where)where, CAUSE_TERMINATION);
        member_pass(f, where == TO_STEP ? WAY_UNMEASURED_MS + GIVE_UP_MS : GIVE_UP_MS, false);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        member_anew(f);
    }
    member_pass(f, HEARTBEAT_MS / 3, true); /* no heartbeat wakes it at the bound */
    bring(f, CAPTURED, CAUSE_TERMINATION);
    member_pass(f, GIVE_UP_MS - 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void the_way_to_the_save_step_is_waited_for_as_long_as_steps_take(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 1);
    member_tick_at(f, f->now + 100);
    member_stand(f, 2);
    member_tick_at(f, f->now + 30000); /* 30 s a step */
    member_decision(f, 1, CAUSE_OPERATOR, 4, W0);
    int64_t bound = GIVE_UP_MS + 3 * 3 * 30000 - STUCK_MS;
    member_pass(f, bound - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_STEP_TO);
    member_in_step(f, 3); /* it came on: the wait begins again */
    member_tick_at(f, f->now);
    member_pass(f, 60000, true);
    assert_int_equal(member_seen(f)->mode, VIEW_STEP_TO);
    member_pass(f, bound, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

/* R4.5 */
static void who_gave_up_and_passes_the_save_step_says_so(void **state)
{
    struct member_fixture *f = *state;

    bring(f, TO_STEP, CAUSE_OPERATOR); /* S 5 */
    member_pass(f, WAY_UNMEASURED_MS + GIVE_UP_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    assert_int_equal(member_sent_count(f, WIRE_PAST), 0); /* it may come to S still */
    member_in_step(f, 6);
    member_tick_at(f, f->now + HEARTBEAT_MS);
    assert_int_equal(member_sent(f, WIRE_PAST)->u.past.begun, 6);
    member_tick_at(f, f->now + HEARTBEAT_MS);
    assert_int_equal(f->m->part, PART_NONE);
}

static void who_is_past_a_round_does_not_wait_for_it_with_anothers_error(void **state)
{
    struct member_fixture *f = *state;

    bring(f, THAWED, CAUSE_OPERATOR);
    member_in_step(f, 8);
    member_peer_error(f, 2, true);
    member_decision(f, 1, CAUSE_OPERATOR, 5, W1);
    assert_non_null(member_sent(f, WIRE_PAST));
    member_abort(f, 1, false);         /* it is over for this node already */
    member_pass(f, THAW_MS - 1, true); /* for the freeze of the next one, if there is one */
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, true);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
}

/* With the next heartbeat it would be late, by up to a second. */
static void the_end_of_the_way_to_the_save_step_is_woken_for(void **state)
{
    struct member_fixture *f = *state;

    bring(f, TO_STEP, CAUSE_OPERATOR);
    member_pass(f, f->m->give_up_at - f->now - 1, true);
    f->m->heartbeat_at = f->now + HEARTBEAT_MS; /* as if one had just been sent */
    assert_int_equal(member_wakeup_boot_ms(f->m), f->now + 1);
    assert_int_equal(f->m->part, PART_TO_STEP);
    member_pass(f, 1, true);
    assert_int_equal(f->m->part, PART_THAWED);
}

/* It is shown to people; who is on its way to a save trains on behind it. */
static void a_notice_of_a_kind_that_ends_nothing_makes_no_save_the_last(void **state)
{
    struct member_fixture *f = *state;
    struct wire_event event = member_event(f, EVENT_TERMINATION);

    member_capture(f, CAUSE_OPERATOR);
    event.round = 1;
    event.flags = EVENT_FLAG_RETRY;
    member_tell(f, event);
    assert_false(member_seen(f)->termination_seen);
    assert_int_equal(f->m->cause, CAUSE_OPERATOR);
}

#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_end_of_the_way_to_the_save_step_is_woken_for),
        T(a_notice_of_a_kind_that_ends_nothing_makes_no_save_the_last),
        T(a_freeze_closes_the_gate_and_reports_what_the_closing_gave),
        T(who_does_not_come_out_of_a_save_says_so_whatever_is_asked),
        T(a_freeze_of_the_same_or_a_past_round_or_of_others_is_ignored),
        T(a_freeze_of_a_higher_round_closes_anew_and_the_last_report_is_said_no_more),
        T(a_report_is_said_until_the_outcome_is_heard_and_at_once_to_a_broker_that_is_back),
        T(an_event_may_name_those_who_take_no_part),
        T(a_decision_without_a_named_writer_makes_each_member_one),
        T(four_seconds_after_a_closing_without_a_decision_the_node_trains_on),
        T(the_begun_of_the_closing_judges_what_a_decision_means),
        T(a_decision_is_taken_once_and_never_for_who_is_not_in_it),
        T(a_decision_that_comes_in_the_moment_of_the_thaw_is_walked_to),
        T(at_the_save_step_a_writer_saves_and_a_termination_holds),
        T(a_shard_of_many_files_is_told_in_frames_that_fit),
        T(a_save_that_failed_is_told_with_its_code),
        T(who_was_captured_never_says_past),
        T(a_save_that_ends_after_its_round_is_not_told),
        T(the_end_of_a_round_lets_the_thread_go_from_every_state),
        T(the_end_of_another_round_means_nothing),
        T(an_abort_that_is_tried_again_holds_for_the_next_freeze_but_not_for_ever),
        T(a_committed_termination_holds_for_the_manifest_and_then_leaves),
        T(who_was_not_a_member_leaves_with_the_others),
        T(a_notice_that_joins_the_round_makes_the_captured_hold_from_then_on),
        T(no_wait_of_a_round_is_without_end_when_the_broker_is_gone),
        T(the_way_to_the_save_step_is_waited_for_as_long_as_steps_take),
        T(who_is_past_a_round_does_not_wait_for_it_with_anothers_error),
        T(who_gave_up_and_passes_the_save_step_says_so),
    };

    return cmocka_run_group_tests_name("member_round", tests, NULL, NULL);
}
