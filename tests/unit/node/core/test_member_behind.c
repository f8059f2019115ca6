/* The node's core: a shard that is written while the thread trains on. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define W1 2u /* this node writes */

static void captured(struct member_fixture *f, uint64_t round)
{
    member_feed(f, (struct member_input){.kind = MEMBER_CAPTURED, .round = round});
}

/* Round 1 at step 5 is captured; its shard is on its way. */
static void write_behind(struct member_fixture *f, enum wire_cause cause)
{
    member_stand(f, 5);
    member_decision(f, 1, cause, 5, W1);
    member_arrive(f);
    member_ack_all(f);
    captured(f, 1);
}

/* R5.9 */
static void a_snapshot_lets_the_thread_go_and_saved_follows(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    assert_member(f, "AT_STEP #3 r1 S5 captured; view open");
    assert_true(member_sent(f, WIRE_AT_STEP)->u.at_step.captured);
    assert_int_equal(member_sent(f, WIRE_AT_STEP)->u.at_step.step, 5);
    member_ack_all(f);
    member_in_step(f, 9);
    member_saved(f, 1, 2);
    assert_member(f, "FILES #4 2; SAVED #5 r1 S5 2 files");
    assert_int_equal(member_sent(f, WIRE_SAVED)->u.saved.step, 5); /* not where it is now */
    assert_int_equal(member_sent(f, WIRE_FILES)->u.files.step, 5);
    member_saved(f, 1, 2);
    assert_member(f, ""); /* once */
    member_commit(f, 1, CAUSE_OPERATOR, 5, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void a_failure_behind_is_told_with_its_step(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_in_step(f, 7);
    member_save_failed(f, 1, MUSTER_E_STORAGE);
    assert_member(f, "SAVE_FAILED #4 r1");
    assert_int_equal(member_sent(f, WIRE_SAVE_FAILED)->u.save_failed.step, 5);
    member_abort(f, 1, false);
    assert_non_null(member_did(f, MEMBER_DISCARD_ROUND));
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

/* R5.9 */
static void a_later_round_goes_its_way_while_one_is_written(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_in_step(f, 7);
    member_freeze(f, 2, CAUSE_TERMINATION, false);
    assert_non_null(member_sent(f, WIRE_REPORT));
    member_ack_all(f);
    member_decision(f, 2, CAUSE_TERMINATION, 7, W1);
    member_stand(f, 7);
    member_arrive(f);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
    member_ack_all(f);
    member_saved(f, 1, 1); /* the driver waited for it */
    assert_int_equal(member_sent(f, WIRE_SAVED)->u.saved.round, 1);
    assert_int_equal(member_sent(f, WIRE_SAVED)->u.saved.step, 5);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE); /* the next one is still to be saved */
    member_saved(f, 2, 1);
    assert_int_equal(member_sent(f, WIRE_SAVED)->u.saved.round, 2);
    assert_int_equal(member_sent(f, WIRE_SAVED)->u.saved.step, 7);
}

/* Round 2 is decided, and the broker is gone, while round 1 is still written; aborted: nobody wants
 * it any more. */
static void wait_for_the_one_before(struct member_fixture *f, bool aborted)
{
    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    if (aborted)
        member_abort(f, 1, false);
    member_in_step(f, 7);
    member_decision(f, 2, CAUSE_OPERATOR, 7, W1);
    member_stand(f, 7);
    member_arrive(f);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
    member_pass(f, GIVE_UP_MS - 100, false);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
}

static void who_waits_for_a_write_that_does_not_end_trains_on_without_a_broker(void **state)
{
    struct member_fixture *f = *state;

    for (int aborted = 0; aborted < 2; aborted++) {
        wait_for_the_one_before(f, aborted);
        member_alive(f);
        member_pass(f, 60000, true); /* a broker that is there decides how long a save may take */
        assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
        member_pass(f, LOST_MS + 100, false);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        captured(f, 2); /* it began just then: too late */
        assert_int_equal(f->m->behind_round, aborted ? 0 : 1);
        member_in_step(f, 8);
        member_pass(f, HEARTBEAT_MS, false);
        assert_non_null(member_sent(f, WIRE_PAST)); /* this rank has no state of round 2 */
        member_saved(f, 2, 1);
        assert_null(member_sent(f, WIRE_SAVED));
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

static void who_saves_after_the_write_before_has_ended_has_its_time(void **state)
{
    struct member_fixture *f = *state;

    for (int aborted = 0; aborted < 2; aborted++) {
        wait_for_the_one_before(f, aborted);
        member_saved(f, 1, 1);
        member_pass(f, 2 * GIVE_UP_MS, false);
        assert_int_equal(member_seen(f)->mode,
                         VIEW_CAPTURE); /* save_fn takes as long as it takes */
        captured(f, 2);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

static void an_abort_of_what_is_written_discards_it_and_drops_what_follows(void **state)
{
    struct member_fixture *f = *state;

    for (int later = 0; later < 2; later++) { /* whether another round is known already */
        write_behind(f, CAUSE_OPERATOR);
        member_ack_all(f);
        member_in_step(f, 7);
        if (later) {
            member_freeze(f, 2, CAUSE_OPERATOR, false);
            member_ack_all(f);
        }
        member_abort(f, 1, false);
        assert_non_null(member_did(f, MEMBER_DISCARD_ROUND));
        assert_int_equal(member_did(f, MEMBER_DISCARD_ROUND)->round, 1);
        member_saved(f, 1, 1);
        assert_null(member_sent(f, WIRE_SAVED));
        assert_int_equal(f->m->behind_round, 0);
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

static void a_snapshot_of_a_round_that_is_over_is_nothing(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_decision(f, 1, CAUSE_OPERATOR, 5, W1);
    member_arrive(f);
    member_ack_all(f);
    member_abort(f, 1, false);
    captured(f, 1);
    assert_member(f, "");
    member_saved(f, 1, 1);
    assert_null(member_sent(f, WIRE_SAVED));
}

/* R8.5 */
static void leave_is_said_after_what_is_written_behind_was_told(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 8);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 30000, true); /* a slow disk */
    assert_null(member_sent(f, WIRE_LEAVE));
    assert_false(member_seen(f)->left);
    member_saved(f, 1, 1);
    assert_non_null(member_sent(f, WIRE_SAVED));
    member_ack_all(f);
    member_commit(f, 1, CAUSE_OPERATOR, 5, false);
    member_pass(f, 100, true);
    assert_int_equal(f->m->leave_request > 0, true);
}

/* R8.5: its LEAVE is said, and waits for no answer. */
static void a_broker_that_is_silent_keeps_nobody(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 8);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 30000, true);
    member_pass(f, LOST_MS - 1100, false); /* its last answer is up to a heartbeat old */
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, 1200, false);
    assert_true(f->m->leave_request > 0);
    assert_true(member_seen(f)->left);
}

/* It stood for its whole patience at S, 122 s, once it had told that all is written. */
static void a_broker_that_is_silent_after_it_was_told_keeps_nobody(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 6);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 3000, true);
    member_saved(f, 1, 1);
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, LOST_MS + 100, false);
    assert_true(f->m->leave_request > 0);
    assert_true(member_seen(f)->left);
}

/* The host stood still, or the process: what the broker said meanwhile is still to be read. */
static void who_did_not_run_does_not_call_the_broker_silent(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 8);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 3000, true);
    member_tick_at(f, f->now + 60000);
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, LOST_MS + 100, false); /* but who runs and hears nothing does */
    assert_true(f->m->leave_request > 0);
}

/* Round 1 is told whole while another round concerns this node, which closed before that one's
 * step. */
static void saved_among_others(struct member_fixture *f, bool others_wait)
{
    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 8);
    member_decision(f, 2, CAUSE_OPERATOR, 20, W1);
    if (!others_wait)
        member_abort(f, 2, false);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 1000, true);
    member_saved(f, 1, 1);
    member_ack_all(f);
}

/* R8.5 */
static void leave_is_said_after_the_outcome_of_what_was_written_behind(void **state)
{
    struct member_fixture *f = *state;

    for (int manifest = 0; manifest < 2; manifest++) {
        saved_among_others(f, false);
        assert_int_equal(f->m->leave_request, 0);
        member_commit(f, 1, CAUSE_OPERATOR, 5, manifest > 0);
        assert_int_equal(member_sent(f, WIRE_MANIFEST_GET) != NULL, manifest);
        assert_int_equal(f->m->leave_request == 0, manifest); /* its manifest is this node's */
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
        saved_among_others(f, false);
        member_abort(f, 1, false);
        assert_true(f->m->leave_request > 0);
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

/* R8.5 */
static void an_outcome_that_does_not_come_is_not_waited_for_for_ever(void **state)
{
    struct member_fixture *f = *state;

    saved_among_others(f, false);
    member_pass(f, GIVE_UP_MS - 200, true);
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, 400, true);
    assert_true(f->m->leave_request > 0);
}

/* R8.5: they wait for its LEAVE at a step that it does not come to. Rank 0 writes the manifest. */
static void no_outcome_is_waited_for_while_others_wait_for_leave(void **state)
{
    struct member_fixture *f = *state;

    member_fixture_close(f);
    member_fixture_running(f, 1, LAYOUT_SHARDED);
    saved_among_others(f, true);
    assert_true(f->m->leave_request > 0);
    member_fixture_close(f);
    member_fixture_running(f, 1, LAYOUT_SHARDED);
    saved_among_others(f, false);
    member_pass(f, 4000, true);
    assert_int_equal(f->m->leave_request, 0);
    member_decision(f, 9, CAUSE_PERIOD, f->m->done + 1, W1);
    assert_true(f->m->leave_request > 0);
}

/* R8.5: nobody else would, if its LEAVE came before the commit. */
static void who_writes_the_manifest_waits_for_the_outcome_even_then(void **state)
{
    struct member_fixture *f = *state;

    saved_among_others(f, true);
    assert_int_equal(f->m->leave_request, 0);
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    assert_non_null(member_sent(f, WIRE_MANIFEST_GET));
    assert_int_equal(f->m->leave_request, 0);
    member_fixture_close(f);
    member_fixture_running(f, 1, LAYOUT_REPLICATED);
    saved_among_others(f, true);
    member_abort(f, 1, false);
    assert_true(f->m->leave_request > 0);
}

/* R8.5: the next launch waits for it then. */
static void no_outcome_is_waited_for_once_the_job_is_over(void **state)
{
    struct member_fixture *f = *state;

    saved_among_others(f, false);
    assert_int_equal(f->m->leave_request, 0);
    member_peer_error(f, 2, false);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_true(f->m->leave_request > 0);
}

/* R8.5: the answer to its SAVED is waited for even then. The commit may be that answer, and the
 * manifest this node's to write. */
static void the_answer_to_saved_is_waited_for_while_others_wait_for_leave(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 8);
    member_decision(f, 2, CAUSE_OPERATOR, 20, W1);
    member_close(f, LEAVE_FINISHED);
    member_saved(f, 1, 1);
    assert_int_equal(f->m->leave_request, 0);
    f->seq++; /* the answer tells of an event */
    member_ack_all(f);
    assert_int_equal(f->m->leave_request, 0);
    f->seq--;
    member_commit(f, 1, CAUSE_OPERATOR, 5, true);
    assert_non_null(member_sent(f, WIRE_MANIFEST_GET));
    assert_int_equal(f->m->leave_request, 0);
}

/* R8.5: a database restored from a copy may have ended the round before this node was there again;
 * of one that the snapshot names as decided the end will be told. */
static void an_outcome_is_waited_for_unless_a_snapshot_does_not_tell_of_it(void **state)
{
    static const struct {
        uint64_t named;
        enum wire_round_state state;
        bool stays;
    } table[] = {{0, ROUND_NONE, false}, {1, ROUND_DECIDED, true}, {1, ROUND_WRITING, true}};
    struct member_fixture *f = *state;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wire_snapshot s;

        saved_among_others(f, false);
        s = member_snapshot_made(f);
        s.named_round = table[i].named;
        s.named_state = table[i].state;
        s.named_cause = CAUSE_OPERATOR;
        member_snapshot(f, s);
        assert_int_equal(f->m->leave_request == 0, table[i].stays);
        member_fixture_close(f);
        member_fixture_running(f, 1, LAYOUT_REPLICATED);
    }
}

/* R8.5 */
static void a_deadline_does_not_wait_for_what_is_written_behind(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 8);
    member_notice(f, "n", 20000);
    member_ack_all(f);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 20000 - MARGIN_MS - 500, true);
    assert_int_equal(f->m->leave_request, 0);
    member_pass(f, 600, true);
    assert_true(f->m->leave_request > 0);
}

static void who_cannot_reach_the_broker_leaves_all_the_same(void **state)
{
    struct member_fixture *f = *state;

    write_behind(f, CAUSE_OPERATOR);
    member_ack_all(f);
    member_stand(f, 8);
    f->m->link = LINK_HELLO; /* the broker went */
    member_close(f, LEAVE_FINISHED);
    member_pass(f, LOST_MS, false);
    assert_true(member_seen(f)->left);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, member_set_up, member_tear_down)
    const struct CMUnitTest tests[] = {
        T(a_snapshot_lets_the_thread_go_and_saved_follows),
        T(a_failure_behind_is_told_with_its_step),
        T(a_later_round_goes_its_way_while_one_is_written),
        T(who_waits_for_a_write_that_does_not_end_trains_on_without_a_broker),
        T(who_saves_after_the_write_before_has_ended_has_its_time),
        T(an_abort_of_what_is_written_discards_it_and_drops_what_follows),
        T(a_snapshot_of_a_round_that_is_over_is_nothing),
        T(leave_is_said_after_what_is_written_behind_was_told),
        T(a_broker_that_is_silent_keeps_nobody),
        T(a_broker_that_is_silent_after_it_was_told_keeps_nobody),
        T(who_did_not_run_does_not_call_the_broker_silent),
        T(leave_is_said_after_the_outcome_of_what_was_written_behind),
        T(an_outcome_that_does_not_come_is_not_waited_for_for_ever),
        T(no_outcome_is_waited_for_while_others_wait_for_leave),
        T(who_writes_the_manifest_waits_for_the_outcome_even_then),
        T(no_outcome_is_waited_for_once_the_job_is_over),
        T(the_answer_to_saved_is_waited_for_while_others_wait_for_leave),
        T(an_outcome_is_waited_for_unless_a_snapshot_does_not_tell_of_it),
        T(a_deadline_does_not_wait_for_what_is_written_behind),
        T(who_cannot_reach_the_broker_leaves_all_the_same),
    };

    return cmocka_run_group_tests_name("member_behind", tests, NULL, NULL);
}
