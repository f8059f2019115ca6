/* The node's core: policy saves, which every rank asks for at the same step. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define W0 1u /* rank 0 writes */
#define W1 2u /* this node does */

/* --- policy saves ----------------------------------------------------------------------------- */

static void a_policy_save_waits_for_its_decision_and_is_walked_to(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 50);
    member_policy(f);
    assert_member(f, "SAVE_AT #2 S50; view wait");
    member_ack_all(f);
    member_decision(f, 1, CAUSE_POLICY, 50, W1);
    assert_member(f, "close; view wait; view step_to 50");
    member_arrive(f);
    assert_member(f, "AT_STEP #3 r1 S50; view capture 50");
    member_saved(f, 1, 1);
    assert_member(f, "FILES #4 1; SAVED #5 r1 S50 1 files; view open");
}

static bool is_known(const struct member_fixture *f, int64_t step)
{
    for (size_t i = 0; i < MEMBER_COMMITS_MAX; i++)
        if (member_seen(f)->committed[i] == step)
            return true;
    return false;
}

/* Rank 0 saves for all; this one comes to the step when it is committed. */
static void a_step_that_others_saved_is_known_to_be_on_disk(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 50);
    member_policy(f);
    member_ack(f, 2, MUSTER_E_EXISTS);
    assert_true(is_known(f, 50));
    member_anew(f);
    member_stand(f, 48); /* it hears all of it on its way there */
    member_decision(f, 1, CAUSE_PERIOD, 50, W0);
    member_commit(f, 1, CAUSE_PERIOD, 50, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    assert_true(is_known(f, 50));
    assert_false(is_known(f, 48));
    member_anew(f);
    member_stand(f, 50);
    member_policy(f);
    member_ack(f, 2, MUSTER_E_ABORTED);
    assert_false(is_known(f, 50));
}

/* Its program may wait for this news in a queue of events. */
static void a_checkpoint_of_others_is_news_by_itself(void **state)
{
    struct member_fixture *f = *state;

    f->m->options.role = ROLE_EVALUATOR;
    member_stand(f, 8);
    member_commit(f, 1, CAUSE_PERIOD, 50, false);
    assert_true(is_known(f, 50));
    assert_member(f, "view open");
}

static void who_counts_in_no_steps_asks_for_no_save(void **state)
{
    struct member_fixture *f = *state;

    f->m->options.role =
        ROLE_EVALUATOR; /* the broker would refuse each multiple of its own steps */
    member_stand(f, 50);
    member_policy(f);
    assert_member(f, "view open");
}

/* R5.17 */
static void a_decision_that_comes_late_does_not_end_the_wait_for_the_next_policy_save(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f,
                 8); /* step 7 is committed: this node was told so before it heard the decision */
    member_policy(f);
    member_ack_all(f);
    member_decision(f, 1, CAUSE_POLICY, 7, W0);
    assert_member(f, "close; view wait; PAST #3 r1 at 8; view wait");
    member_ack(f, 3, MUSTER_E_ABORTED);
    member_decision(f, 2, CAUSE_POLICY, 8, W0); /* it is still there to save at it */
    assert_member(f, "close; view wait; view step_to 8");
    member_anew(f);
    member_stand(f, 8); /* and the wait that was kept has its bound still */
    member_policy(f);
    member_ack_all(f);
    member_decision(f, 1, CAUSE_POLICY, 7, W0);
    member_ack(f, 3, MUSTER_E_ABORTED);
    member_pass(f, THAW_MS - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void a_decision_of_a_later_step_stands_for_the_policy_save(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 8);
    member_policy(f);
    member_ack_all(f);
    member_decision(f, 1, CAUSE_OPERATOR, 9, W0);
    member_abort(f, 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

/* R5.17 */
static void a_policy_save_that_nobody_decides_is_skipped_after_four_seconds(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 50);
    member_policy(f);
    member_pass(f, THAW_MS - 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, false);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    assert_int_equal(f->m->pending[0]->message.type, WIRE_NOOP); /* withdrawn */
    assert_int_equal(f->m->pending[0]->message.up.request, 2);
}

struct policy_case {
    const char *what;
    int what_happens;
    enum view_mode mode;
};

static void a_policy_save_is_over_as_soon_as_the_broker_says_so(void **state)
{
    struct member_fixture *f = *state;
    static const struct policy_case table[] = {
        {"refused", 0, VIEW_OPEN}, {"taken", 1, VIEW_WAIT},
        {"skipped", 2, VIEW_OPEN}, {"another step is skipped", 3, VIEW_WAIT},
        {"frozen", 4, VIEW_WAIT},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wire_event skipped = member_event(f, EVENT_SAVE_SKIPPED);
        member_stand(f, 50);
        member_policy(f);
        skipped.step = table[i].what_happens == 3 ? 40 : 50;
        if (table[i].what_happens < 2)
            member_ack(f, 2, table[i].what_happens == 0 ? MUSTER_E_EXISTS : MUSTER_OK);
        else if (table[i].what_happens < 4)
            member_tell(f, skipped);
        else
            member_freeze(f, 1, CAUSE_OPERATOR, false);
        if (member_seen(f)->mode != table[i].mode)
            fail_msg("%s: %s", table[i].what, member_text_of(f));
        member_anew(f);
    }
}

/* Who captured for another round trains on while that one is being written: the answer lets it go.
 */
static void a_policy_save_is_over_for_who_captured_before_too(void **state)
{
    struct member_fixture *f = *state;

    for (int what = 0; what < 3; what++) {
        struct wire_event skipped = member_event(f, EVENT_SAVE_SKIPPED);
        member_capture(f, CAUSE_OPERATOR);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        member_stand(f, 50);
        member_policy(f);
        uint64_t asked = member_sent(f, WIRE_SAVE_AT)->up.request;
        assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
        skipped.step = 50;
        if (what == 0)
            member_ack(f, asked, MUSTER_E_BUSY);
        else if (what == 1)
            member_tell(f, skipped);
        else
            member_pass(f, THAW_MS, true);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        assert_int_equal(f->m->part, PART_CAPTURED);
        member_anew(f);
    }
}

static void no_answer_to_a_policy_save_opens_the_gate_of_a_committed_termination(void **state)
{
    struct member_fixture *f = *state;

    for (int what = 0; what < 3; what++) {
        struct wire_event skipped = member_event(f, EVENT_SAVE_SKIPPED);
        member_capture(f, CAUSE_OPERATOR);
        member_stand(f, 50);
        member_policy(f);
        uint64_t asked = member_sent(f, WIRE_SAVE_AT)->up.request;
        member_commit(f, 1, CAUSE_TERMINATION, 5,
                      true); /* a notice joined it; the manifest is mine */
        skipped.step = 50;
        if (what == 0)
            member_ack(f, asked, MUSTER_E_ABORTED);
        else if (what == 1)
            member_tell(f, skipped);
        member_pass(f, ENDING_MS - 1, true);
        for (size_t i = 0; i < f->views_count; i++)
            assert_int_not_equal(f->views[i].mode, VIEW_OPEN);
        member_pass(f, 1, true);
        assert_int_equal(member_seen(f)->mode, VIEW_END);
        member_anew(f);
    }
}

/* No broker of ours decides before the start; the start lets go anyway. */
static void the_start_lets_go_whom_no_round_holds(void **state)
{
    struct member_fixture *f = *state;
    struct wire_snapshot s;

    for (int captured = 0; captured < 2; captured++) {
        member_fixture_close(f);
        member_fixture_open(f, 1, LAYOUT_REPLICATED);
        member_tick_at(f, f->now);
        member_welcome(f, true);
        s = member_snapshot_made(f);
        s.generation_state = GENERATION_JOINING;
        member_snapshot(f, s);
        if (captured) {
            member_decision(f, 1, CAUSE_OPERATOR, 0, W0);
            member_arrive(f);
        } else {
            member_freeze(f, 1, CAUSE_OPERATOR, false);
            member_tick_at(f, f->now + THAW_MS);
        }
        assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
        member_tell(f, member_event(f, EVENT_STARTED));
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
    }
}

static void a_policy_save_is_no_message_when_nobody_could_agree_or_a_round_is_open(void **state)
{
    struct member_fixture *f = *state;

    member_stand(f, 50);
    member_ack(f, 0, MUSTER_E_HELLO); /* the broker is away */
    member_policy(f);
    assert_member(f, "view open");
    member_welcome(f, false);
    member_decision(f, 1, CAUSE_OPERATOR, 50, W0);
    f->done = f->begun = 50;
    member_policy(f); /* the open round stands for it */
    assert_member(f, "AT_STEP #2 r1 S50 captured; view open");
    member_stand(f, 60);
    member_policy(f); /* captured: the next one is a new question */
    assert_member(f, "SAVE_AT #3 S60; view wait");
}

#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_policy_save_waits_for_its_decision_and_is_walked_to),
        T(a_checkpoint_of_others_is_news_by_itself),
        T(who_counts_in_no_steps_asks_for_no_save),
        T(a_step_that_others_saved_is_known_to_be_on_disk),
        T(a_decision_that_comes_late_does_not_end_the_wait_for_the_next_policy_save),
        T(a_decision_of_a_later_step_stands_for_the_policy_save),
        T(a_policy_save_that_nobody_decides_is_skipped_after_four_seconds),
        T(a_policy_save_is_over_as_soon_as_the_broker_says_so),
        T(a_policy_save_is_over_for_who_captured_before_too),
        T(no_answer_to_a_policy_save_opens_the_gate_of_a_committed_termination),
        T(the_start_lets_go_whom_no_round_holds),
        T(a_policy_save_is_no_message_when_nobody_could_agree_or_a_round_is_open),
    };

    return cmocka_run_group_tests_name("member_policy", tests, NULL, NULL);
}
