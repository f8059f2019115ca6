/* The node's core: what is said when no broker is heard, and what answers of it are worth a word */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int joining(void **state)
{
    static struct member_fixture f;
    struct wire_snapshot snapshot;

    member_fixture_open(&f, 1, LAYOUT_REPLICATED);
    member_tick_at(&f, f.now);
    member_welcome(&f, true);
    snapshot = member_snapshot_made(&f);
    snapshot.generation_state = GENERATION_JOINING;
    member_snapshot(&f, snapshot);
    assert_true(member_seen(&f)->joined && !member_seen(&f)->started);
    *state = &f;
    return 0;
}

static bool logged(const struct member_fixture *f, const char *part)
{
    for (size_t i = 0; i < f->out.count; i++)
        if (f->out.items[i].kind == MEMBER_LOG && strstr(f->out.items[i].text, part) != NULL)
            return true;
    return false;
}

static void with_a_dead_broker_it_is_said_once_what_is_waited_for(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 20000);
    member_pass(f, LOST_MS - 1000, false);
    assert_false(logged(f, "no broker was heard"));
    member_pass(f, 1000, false);
    assert_true(logged(f, "told to end in 15 s, and no broker was heard for 5 s"));
    assert_true(logged(f, "leaves in 14 s"));
    f->out.count = 0;
    member_pass(f, 5000, false);
    assert_false(logged(f, "no broker was heard"));
    member_alive(f);
    member_pass(f, LOST_MS, false);
    assert_true(logged(f, "told to end in ")); /* again: another silence */
}

static void a_silence_of_the_broker_and_its_end_are_said(void **state)
{
    struct member_fixture *f = *state;

    member_pass(f, LOST_MS - 1000, true);
    assert_false(logged(f, "no broker was heard"));
    member_pass(f, LOST_MS, false);
    assert_true(logged(f, "no broker was heard for 5 s: training goes on"));
    f->out.count = 0;
    member_pass(f, 2 * LOST_MS, false);
    assert_false(logged(f, "no broker was heard")); /* once */
    member_alive(f);
    assert_true(logged(f, "the broker is heard again"));
    member_pass(f, LOST_MS - 1000, true);
    assert_false(logged(f, "no broker"));
}

/* Behind a relay that mixes up its ranks: HELLO is asked for, again and again, and not answered. */
static void who_is_told_to_greet_and_never_let_in_hears_no_broker(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg again = member_down(f, WIRE_ACK);
    struct wire_msg welcome = member_down(f, WIRE_WELCOME);

    again.u.ack.code = MUSTER_E_HELLO;
    member_frame(f, again);
    for (int i = 0; i < 4; i++) {
        member_pass(f, LOST_MS / 5, false);
        member_frame(f, again);
        welcome.u.welcome.nonce = f->m->nonce + 1; /* another's */
        member_frame(f, welcome);
    }
    f->out.count = 0;
    member_pass(f, LOST_MS / 5, false);
    assert_true(logged(f, "no broker was heard for 5 s: training goes on"));
    member_welcome(f, false);
    assert_true(logged(f, "the broker is heard again"));
}

/* S of another job would be nobody's. */
static void what_is_said_to_another_job_is_dropped_and_told_once(void **state)
{
    struct member_fixture *f = *state;
    struct wire_msg event = member_down(f, WIRE_EVENT);

    event.down.job = "other";
    event.down.last_seq = f->seq + 1;
    event.u.event.seq = f->seq + 1;
    event.u.event.kind = EVENT_FREEZE;
    event.u.event.round = 1;
    member_frame(f, event);
    assert_true(logged(f, "message for job other: a relay gave it to the wrong rank"));
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    assert_int_equal(f->m->applied_seq, f->seq);
    assert_int_equal(f->m->known_seq, f->seq);
    member_frame(f, event);
    assert_false(logged(f, "mixes up"));
    event.down.job = "train";
    member_frame(f, event);
    assert_int_equal(f->m->known_seq, f->seq + 1);
}

static void said(struct member_fixture *f, const char *part)
{
    f->out.count = 0;
    member_pass(f, LOST_MS, false);
    assert_true(logged(f, part));
    assert_false(logged(f, "training goes on, and"));
    assert_false(logged(f, "a save is agreed on as soon"));
}

/* Told to end in 29 s, its shard written, and the verdict is not heard. */
static void who_is_held_for_the_commit_does_not_say_that_it_trains(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 30000);
    member_capture(f, CAUSE_TERMINATION);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    said(f, "no broker was heard for 5 s: this rank is held at step 5, its shard is written, until "
            "that is committed; without a broker it leaves in 24 s; start musterd");
    assert_true(logged(f, "the save of step 5 is committed as soon as it is back"));
}

static void who_has_nothing_to_write_says_until_when_it_is_held(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_TERMINATION, false);
    member_decision(f, 1, CAUSE_TERMINATION, 5, 1);
    member_arrive(f);
    member_ack_all(f);
    said(f, "held at step 5 until that is committed; without a broker it trains on in 117 s");
}

static void who_is_on_its_way_to_the_step_or_saves_it_says_so(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 4);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
    member_ack_all(f);
    said(f, "training goes on to step 5, where a save is agreed on");
    member_alive(f);
    member_stand(f, 5);
    member_arrive(f);
    assert_int_equal(member_seen(f)->mode, VIEW_CAPTURE);
    said(f, "step 5 is being saved, and the commit waits for it");
}

/* Its state is safe and the save was an operator's: nothing holds it. */
static void who_is_captured_and_held_by_nobody_trains_on(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    member_pass(f, LOST_MS, false);
    assert_true(logged(f, "training goes on, and nothing is saved"));
}

static void who_is_held_by_its_committed_end_says_that_it_leaves(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 30000);
    member_capture(f, CAUSE_TERMINATION);
    member_commit(f, 1, CAUSE_TERMINATION, 5, true);
    said(f, "the job's checkpoint is committed, and this rank leaves in 5 s at most");
    assert_false(logged(f, "told to end"));
}

static void who_closes_says_that_it_leaves_without_a_broker(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    member_notice(f, "n1", 30000);
    member_ack_all(f);
    member_close(
        f, LEAVE_FINISHED); /* what came of its save is awaited as long as a broker is heard */
    assert_false(member_seen(f)->left);
    said(f, "this rank closes, and soon leaves without it");
    assert_false(logged(f, "told to end"));
}

static void before_the_first_step_none_goes_on(void **state)
{
    said(*state, "no step begins until it is back");
}

/* Others were quicker, and the round is committed: nothing was refused. */
static void who_comes_late_to_a_step_is_not_told_of_a_refusal(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_ack_all(f);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 1);
    member_arrive(f);
    const struct wire_msg *at_step = member_sent(f, WIRE_AT_STEP);
    assert_non_null(at_step);
    member_ack(f, at_step->up.request, MUSTER_E_ABORTED);
    assert_false(logged(f, "MUSTER_E_ABORTED"));
    assert_int_equal(member_did(f, MEMBER_LOG)->level, 3);
    assert_true(logged(f, "AT_STEP came when its round was over"));
}

static void a_shard_that_came_too_late_is_told_as_refused(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 2);
    member_arrive(f);
    member_ack_all(f);
    member_saved(f, 1, 0);
    member_ack(f, member_sent(f, WIRE_SAVED)->up.request, MUSTER_E_ABORTED);
    assert_true(logged(f, "SAVED was answered MUSTER_E_ABORTED"));
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(with_a_dead_broker_it_is_said_once_what_is_waited_for, member_set_up),
        T(a_silence_of_the_broker_and_its_end_are_said, member_set_up),
        T(who_is_told_to_greet_and_never_let_in_hears_no_broker, member_set_up),
        T(what_is_said_to_another_job_is_dropped_and_told_once, member_set_up),
        T(who_is_held_for_the_commit_does_not_say_that_it_trains, member_set_up),
        T(who_has_nothing_to_write_says_until_when_it_is_held, member_set_up),
        T(who_is_on_its_way_to_the_step_or_saves_it_says_so, member_set_up),
        T(who_is_captured_and_held_by_nobody_trains_on, member_set_up),
        T(who_is_held_by_its_committed_end_says_that_it_leaves, member_set_up),
        T(who_closes_says_that_it_leaves_without_a_broker, member_set_up),
        T(before_the_first_step_none_goes_on, joining),
        T(who_comes_late_to_a_step_is_not_told_of_a_refusal, member_set_up),
        T(a_shard_that_came_too_late_is_told_as_refused, member_set_up),
    };

    return cmocka_run_group_tests_name("member_unheard", tests, NULL, NULL);
}
