/* The node's core: a round that follows the error of another rank, while another one is open.
 * PROTOCOL.md R8. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum where { FROZEN, TO_STEP, CAPTURING, CAPTURED, WHERE_COUNT };

/* An operator's round 1 at step 5, this node the writer; and rank 2, which it needs, is lost while
 * a notice stands. */
static void lose_a_peer_before(struct member_fixture *f, enum where where, uint64_t round_follows)
{
    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_ack_all(f);
    if (where >= TO_STEP)
        member_decision(f, 1, CAUSE_OPERATOR, 5, 1u << 1);
    if (where >= CAPTURING)
        member_arrive(f);
    if (where == CAPTURED)
        member_saved(f, 1, 1);
    member_ack_all(f);
    member_peer_error_before(f, 2, round_follows);
}

static void lose_a_peer(struct member_fixture *f, enum where where)
{
    lose_a_peer_before(f, where, 0);
}

/* That save comes to nothing, and the termination's freeze is the next event (R8.2). */
static void the_end_of_another_round_is_not_that_of_the_one_that_follows(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        lose_a_peer(f, (enum where)where);
        member_abort(f, 1, false);
        if (member_seen(f)->mode != VIEW_WAIT)
            fail_msg("where %d: %s", where, member_text_of(f));
        member_freeze(f, 2, CAUSE_TERMINATION, true);
        assert_int_equal(member_sent(f, WIRE_REPORT)->u.report.round, 2);
        assert_int_equal(member_sent(f, WIRE_REPORT)->u.report.done, 5);
        member_anew(f);
    }
}

static void nor_is_the_end_of_a_save_of_the_policy(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 8);
    member_decision(f, 1, CAUSE_POLICY, 8, 1u << 2);
    member_peer_error(f, 2, true);
    member_abort(f, 1, false);
    member_freeze(f, 2, CAUSE_TERMINATION, true);
    member_step_failed(f); /* broken off */
    assert_int_equal(member_sent(f, WIRE_REPORT)->u.report.done, 7);
}

static void what_follows_the_end_of_another_round_is_waited_for_with_a_bound(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        lose_a_peer(f, (enum where)where);
        member_abort(f, 1, false); /* and the plan is given up: no freeze comes */
        member_pass(f, THAW_MS - 1, false);
        assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
        member_pass(f, 1, false);
        assert_int_equal(member_seen(f)->mode, VIEW_END);
        assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
        assert_int_equal(member_seen(f)->end.rank, 2);
        assert_false(member_seen(f)->leave_restart);
        member_anew(f);
    }
}

/* Nothing else can be awaited: who waited on would hold its launch up for nothing. */
static void the_end_of_the_round_that_was_announced_ends_the_wait(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        lose_a_peer_before(f, (enum where)where, 1);
        assert_int_not_equal(member_seen(f)->mode, VIEW_END);
        member_abort(f, 1, false);
        assert_int_equal(member_seen(f)->mode, VIEW_END);
        assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
        member_anew(f);
    }
}

/* Round 1 goes on without rank 2, and is awaited; then rank 3 is lost, too, which it needs: it
 * comes to nothing, and the termination's freeze is the next event. Seed 1795860977015. */
static void a_second_loss_announces_another_round(void **state)
{
    struct member_fixture *f = *state;

    for (int where = FROZEN; where < WHERE_COUNT; where++) {
        lose_a_peer_before(f, (enum where)where, 1);
        member_peer_error_before(f, 3, 0);
        member_abort(f, 1, false);
        if (member_seen(f)->mode != VIEW_WAIT)
            fail_msg("where %d: %s", where, member_text_of(f));
        member_freeze(f, 2, CAUSE_TERMINATION, true);
        assert_int_equal(member_sent(f, WIRE_REPORT)->u.report.round, 2);
        member_anew(f);
    }
}

static void what_follows_is_waited_for_after_an_abort_too(void **state)
{
    struct member_fixture *f = *state;

    member_capture(f, CAUSE_OPERATOR);
    member_abort(f, 1, false);
    member_peer_error(f, 2, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_freeze(f, 2, CAUSE_TERMINATION, true);
    assert_int_equal(member_sent(f, WIRE_REPORT)->u.report.round, 2);
}

/* Its own wait for a decision, or for another try, was nearly over. */
static void what_follows_is_waited_for_from_the_error_on(void **state)
{
    struct member_fixture *f = *state;

    for (int aborted = 0; aborted < 2; aborted++) {
        member_stand(f, 5);
        member_freeze(f, 1, CAUSE_TERMINATION, false);
        if (aborted)
            member_abort(f, 1, true);
        member_pass(f, THAW_MS - 100, true);
        member_peer_error(f, 2, true);
        member_pass(f, THAW_MS - 1, true);
        assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
        member_pass(f, 1, true);
        assert_int_equal(member_seen(f)->mode, VIEW_END);
        assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
        member_anew(f);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, member_set_up, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_end_of_another_round_is_not_that_of_the_one_that_follows),
        T(nor_is_the_end_of_a_save_of_the_policy),
        T(what_follows_the_end_of_another_round_is_waited_for_with_a_bound),
        T(the_end_of_the_round_that_was_announced_ends_the_wait),
        T(a_second_loss_announces_another_round),
        T(what_follows_is_waited_for_after_an_abort_too),
        T(what_follows_is_waited_for_from_the_error_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
