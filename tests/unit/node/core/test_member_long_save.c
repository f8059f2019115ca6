/* The node's core: others of a termination save for longer than any bound of this rank's own. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define W0 1u
#define FIVE_MINUTES_MS 300000

/* Round 1 at step 5; rank 0 writes, and this one waits for it. */
static int waiting(void **state)
{
    static struct member_fixture f;

    member_fixture_running(&f, 1, LAYOUT_REPLICATED);
    member_stand(&f, 5);
    member_decision(&f, 1, CAUSE_TERMINATION, 5, W0);
    member_arrive(&f);
    member_ack_all(&f);
    assert_int_equal(member_seen(&f)->mode, VIEW_WAIT);
    f.awaited = 1;
    *state = &f;
    return 0;
}

static int close_member(void **state)
{
    struct member_fixture *f = *state;

    f->awaited = 0;
    member_fixture_close(f);
    return 0;
}

/* It trained on after two minutes, steps that were all lost. */
static void a_save_that_the_broker_waits_for_is_waited_for(void **state)
{
    struct member_fixture *f = *state;

    member_pass(f, FIVE_MINUTES_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_commit(f, 1, CAUSE_TERMINATION, 5, false);
    member_pass(f, MANIFEST_WAIT_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_int_equal(member_seen(f)->end.status, MUSTER_PREEMPTED);
}

static void a_broker_that_is_silent_or_knows_nothing_of_it_keeps_nobody(void **state)
{
    struct member_fixture *f = *state;

    member_pass(f, FIVE_MINUTES_MS, true);
    f->awaited = 0;
    member_pass(f, GIVE_UP_MS - HEARTBEAT_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, HEARTBEAT_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

static void what_is_awaited_of_another_round_keeps_nobody(void **state)
{
    struct member_fixture *f = *state;

    f->awaited = 2;
    member_pass(f, GIVE_UP_MS - 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    member_pass(f, 1, true);
    assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
}

/* Rank 2 was lost, which the round does not need any more. */
static void with_anothers_error_it_is_waited_for_too(void **state)
{
    struct member_fixture *f = *state;

    member_peer_error(f, 2, true);
    member_pass(f, FIVE_MINUTES_MS, true);
    assert_int_equal(member_seen(f)->mode, VIEW_WAIT);
    f->awaited = 0;
    member_pass(f, GIVE_UP_MS, false);
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_int_equal(member_seen(f)->end.status, MUSTER_E_PEER);
}

/* Nobody waits for a save that ends nothing: a rank that captured for it trains on, or leaves. */
static void a_save_that_ends_nothing_keeps_no_closing_rank(void **state)
{
    struct member_fixture *f = *state;

    member_abort(f, 1, false);
    member_decision(f, 2, CAUSE_OPERATOR, 5, W0);
    member_arrive(f);
    member_ack_all(f);
    f->awaited = 2;
    member_close(f, LEAVE_FINISHED);
    member_pass(f, GIVE_UP_MS + HEARTBEAT_MS, true);
    assert_true(f->m->leave_request > 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, waiting, close_member)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_save_that_the_broker_waits_for_is_waited_for),
        T(a_broker_that_is_silent_or_knows_nothing_of_it_keeps_nobody),
        T(what_is_awaited_of_another_round_keeps_nobody),
        T(with_anothers_error_it_is_waited_for_too),
        T(a_save_that_ends_nothing_keeps_no_closing_rank),
    };

    return cmocka_run_group_tests_name("member_long_save", tests, NULL, NULL);
}
