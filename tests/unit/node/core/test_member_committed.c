/* A node's core: once the checkpoint that ends the job is committed, no other round's end lets it
 * go on. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct member_fixture f;

/* The state of round 1 is captured and being written; round 2 asks, and round 1's commit ends the
 * job. */
static int ended_by_round_1_and_asked_by_round_2(void **state)
{
    (void)state;
    member_fixture_running(&f, 1, LAYOUT_REPLICATED);
    member_freeze(&f, 1, CAUSE_PERIOD, false);
    member_freeze(&f, 2, CAUSE_PERIOD, false);
    member_commit(&f, 1, CAUSE_TERMINATION, f.done, false);
    assert_int_equal(member_seen(&f)->mode, VIEW_WAIT);
    return 0;
}

static int close_member(void **state)
{
    (void)state;
    member_fixture_close(&f);
    return 0;
}

static void assert_ends(void)
{
    assert_int_equal(member_seen(&f)->mode, VIEW_WAIT);
    member_tick_at(&f, f.now + MANIFEST_WAIT_MS);
    assert_int_equal(member_seen(&f)->mode, VIEW_END);
    assert_int_equal(member_seen(&f)->end.status, MUSTER_PREEMPTED);
}

/* It trained on after the end of its job, and nobody ended it any more (R4.4). */
static void an_unchanged_round_does_not_open_its_gate(void **state)
{
    struct wire_event event = member_event(&f, EVENT_UNCHANGED);

    (void)state;
    event.round = 2;
    event.cause = CAUSE_PERIOD;
    event.step = f.done;
    member_tell(&f, event);
    assert_ends();
}

static void an_aborted_round_does_not_open_its_gate(void **state)
{
    (void)state;
    member_abort(&f, 2, false);
    assert_ends();
}

static void an_aborted_round_that_is_tried_again_keeps_nobody(void **state)
{
    (void)state;
    member_abort(&f, 2, true);
    assert_ends();
}

static void another_commit_does_not_open_its_gate(void **state)
{
    (void)state;
    member_commit(&f, 2, CAUSE_PERIOD, f.done, false);
    assert_ends();
}

int main(void)
{
#define TEST(test) \
    cmocka_unit_test_setup_teardown(test, ended_by_round_1_and_asked_by_round_2, close_member)
    const struct CMUnitTest tests[] = {
        TEST(an_unchanged_round_does_not_open_its_gate),
        TEST(an_aborted_round_does_not_open_its_gate),
        TEST(an_aborted_round_that_is_tried_again_keeps_nobody),
        TEST(another_commit_does_not_open_its_gate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
