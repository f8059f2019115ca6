/* The node's core: what a freeze is planned with, step times and the time left. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Steps of 3 s, a save of 20 s after each: the save is no step's time. */
static void what_a_save_takes_is_not_taken_for_a_step(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 1);
    member_tick_at(f, f->now + 10);
    for (uint64_t round = 1; round <= 3; round++) {
        member_tick_at(f, f->now + 3000);
        member_stand(f, (int64_t)round);
        member_freeze(f, round, CAUSE_OPERATOR, false);
        member_arrive(f);
        member_tick_at(f, f->now + 20000);
        member_abort(f, round, false);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        member_in_step(f, (int64_t)round + 1);
        member_tick_at(f, f->now + 1000);
        member_tick_at(f, f->now - 1000 + HEARTBEAT_MS); /* a look within the step */
    }
    assert_int_equal(link_step_p95(f->m), 4000);
}

/* Each step is the one to save: it ends at the gate, which closed when it had just begun. */
static void a_step_that_ends_at_the_closed_gate_is_measured(void **state)
{
    struct member_fixture *f = *state;

    member_in_step(f, 1);
    member_tick_at(f, f->now + 10);
    for (uint64_t round = 1; round <= 3; round++) {
        member_freeze(f, round, CAUSE_OPERATOR, false);
        member_tick_at(f, f->now + 3000);
        member_stand(f, (int64_t)round);
        member_arrive(f);
        assert_int_equal(link_step_p95(f->m), 3000);
        member_tick_at(f, f->now + 20000);
        member_arrive(f); /* it waits there: that is no step */
        member_abort(f, round, false);
        assert_int_equal(member_seen(f)->mode, VIEW_OPEN);
        member_in_step(f, (int64_t)round + 1);
        member_tick_at(f, f->now);
    }
    assert_int_equal(link_step_p95(f->m), 3000);
}

/* R6.5 */
static void step_p95_is_one_of_steps_and_not_of_looks(void **state)
{
    struct member_fixture *f = *state;
    int64_t begun = 0;

    member_in_step(f, ++begun);
    member_tick_at(f, f->now + 10);
    assert_int_equal(link_step_p95(f->m), 0); /* none has ended */
    member_in_step(f, ++begun);
    member_tick_at(f, f->now + 3000);
    assert_int_equal(link_step_p95(f->m), 3000); /* of few the longest */
    for (int look = 0; look < 2; look++) {
        begun += 10;
        member_in_step(f, begun);
        member_tick_at(f, f->now + 1000);
    }
    assert_int_equal(link_step_p95(f->m), 100); /* 1 of 21 */
    member_in_step(f, ++begun);
    member_tick_at(f, f->now + 2000);
    assert_int_equal(link_step_p95(f->m), 2000); /* 2 of 22 */
}

#define GUESS (NOTICE_FLAG_AT_ONCE | NOTICE_FLAG_ASSUMED)
#define OPTION NOTICE_FLAG_GRACE_PERIOD

struct grace_case {
    int64_t period_ms, told_ms, left_ms;
    uint64_t flags;
};

static void the_grace_period_bounds_what_a_notice_tells(void **state)
{
    struct member_fixture *f = *state;
    static const struct grace_case table[] = {
        {-1, 90000, 90000, 0},
        {-1, -1, GRACE_DEFAULT_MS, GUESS}, /* a guess is nothing to plan with */
        {60000, -1, 60000, OPTION},
        {60000, 90000, 60000, OPTION},
        {60000, 20000, 20000, 0}, /* the platform knows better when it ends */
        {0, 90000, 90000, NOTICE_FLAG_AT_ONCE},
        {0, -1, GRACE_DEFAULT_MS, GUESS},
        {-1, LEAST_LEAD_MS, LEAST_LEAD_MS, 0},
        {-1, LEAST_LEAD_MS - 1, GRACE_DEFAULT_MS, GUESS}, /* who told so still lives */
        {-1, 0, GRACE_DEFAULT_MS, GUESS},
        {60000, 0, 60000, OPTION | NOTICE_FLAG_AT_ONCE},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char id[8];
        f->m->options.grace_period_ms = table[i].period_ms;
        f->m->options.save_on_notice = i % 2 == 1;
        snprintf(id, sizeof id, "n%zu", i);
        member_notice(f, id, table[i].told_ms);
        const struct wire_notice *told = &member_sent(f, WIRE_NOTICE)->u.notice;
        assert_int_equal(told->left_ms, table[i].left_ms);
        assert_int_equal(told->flags, table[i].flags | (i % 2 == 1 ? NOTICE_FLAG_SAVE_NOW : 0));
        assert_int_equal(f->m->notices[0].flags, told->flags); /* for HELLO */
        member_ack_all(f);
        member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = id});
        member_ack_all(f); /* there is room for eight */
    }
}

/* What is usual for a signal's sender is no more than that, and people are told so. */
static void what_is_usual_for_a_signal_is_told_as_assumed(void **state)
{
    struct member_fixture *f = *state;
    struct member_input in = {.kind = MEMBER_NOTICE,
                              .id = "n1",
                              .notice_kind = NOTICE_SIGNAL,
                              .left_ms = 10000,
                              .text = "SIGTERM; docker gives 10 s"};

    member_feed(f, in);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->u.notice.left_ms, 10000);
    assert_int_equal(member_sent(f, WIRE_NOTICE)->u.notice.flags, GUESS);
}

/* The broker was away while it came and went: what it never took it must not hear now. */
static void a_notice_that_was_withdrawn_unheard_is_not_told_late(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 60000);
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = "n1"});
    member_tick_at(f, f->now + HEARTBEAT_MS);
    assert_int_equal(member_sent_count(f, WIRE_NOTICE), 0);
    assert_int_equal(member_sent_count(f, WIRE_NOOP), 1);
    assert_string_equal(member_sent(f, WIRE_CANCEL)->u.cancel.id, "n1"); /* if it did take it */
}

/* R3.13 */
static void only_an_end_that_is_near_keeps_a_process_from_joining(void **state)
{
    struct member_fixture *f = *state;
    char why[64];

    member_notice(f, "far", GRACE_DEFAULT_MS + 1000);
    assert_false(member_ends_soon(f->m, f->now, why, sizeof why));
    assert_true(member_ends_soon(f->m, f->now + 1000, why, sizeof why));
    member_feed(f, (struct member_input){.kind = MEMBER_NOTICE_CANCELLED, .id = "far"});
    assert_false(member_ends_soon(f->m, f->now + 1000, why, sizeof why));
    member_notice(f, "unknown", -1);
    assert_true(member_ends_soon(f->m, f->now, why, sizeof why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_save_takes_is_not_taken_for_a_step, member_set_up,
                                        member_tear_down),
        cmocka_unit_test_setup_teardown(a_step_that_ends_at_the_closed_gate_is_measured,
                                        member_set_up, member_tear_down),
        cmocka_unit_test_setup_teardown(step_p95_is_one_of_steps_and_not_of_looks, member_set_up,
                                        member_tear_down),
        cmocka_unit_test_setup_teardown(the_grace_period_bounds_what_a_notice_tells, member_set_up,
                                        member_tear_down),
        cmocka_unit_test_setup_teardown(what_is_usual_for_a_signal_is_told_as_assumed,
                                        member_set_up, member_tear_down),
        cmocka_unit_test_setup_teardown(a_notice_that_was_withdrawn_unheard_is_not_told_late,
                                        member_set_up, member_tear_down),
        cmocka_unit_test_setup_teardown(only_an_end_that_is_near_keeps_a_process_from_joining,
                                        member_set_up, member_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
