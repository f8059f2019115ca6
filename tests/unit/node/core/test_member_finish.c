/* member: a program that has done all its steps, and a termination that comes meanwhile. */
#include "tests/support/member_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct member_fixture fixture;

static int running(void **state)
{
    member_fixture_running(&fixture, 1, LAYOUT_REPLICATED);
    member_stand(&fixture, 5);
    *state = &fixture;
    return 0;
}

/* It closes while a termination is being agreed on, which then ends so. */
static enum wire_leave_why leaves_after(struct member_fixture *f, enum wire_leave_why why,
                                        enum wire_event_kind end)
{
    struct wire_event event;

    member_freeze(f, 1, CAUSE_TERMINATION, false);
    member_close(f, why);
    assert_null(member_sent(f, WIRE_LEAVE));
    event = member_event(f, end);
    event.round = 1;
    event.cause = CAUSE_TERMINATION;
    event.step = 5;
    event.text = "rank 2 finished before the save";
    member_tell(f, event);
    assert_non_null(member_sent(f, WIRE_LEAVE));
    assert_int_equal(member_seen(f)->mode, VIEW_END);
    assert_true(member_seen(f)->leave_restart);
    return (enum wire_leave_why)member_sent(f, WIRE_LEAVE)->u.leave.why;
}

/* R5.15 */
static void who_has_finished_leaves_so_when_nothing_was_saved(void **state)
{
    assert_int_equal(leaves_after(*state, LEAVE_FINISHED, EVENT_NOT_SAVED), LEAVE_FINISHED);
    assert_int_equal(fixture.m->view.end.code, MUSTER_E_NOT_SAVED); /* close() looks at it */
}

static void who_has_not_finished_is_preempted(void **state)
{
    assert_int_equal(leaves_after(*state, LEAVE_PREEMPTED, EVENT_NOT_SAVED), LEAVE_PREEMPTED);
}

static void with_nothing_new_to_save_who_has_finished_is_preempted(void **state)
{
    assert_int_equal(leaves_after(*state, LEAVE_FINISHED, EVENT_UNCHANGED), LEAVE_PREEMPTED);
}

/* Its process has saved and closes, and the broker is silent: of a termination's round it hears the
 * verdict when that is back; of another one it has nothing to wait for. */
static void only_a_terminations_save_keeps_who_closes_without_a_broker(void **state)
{
    static const struct {
        enum wire_cause cause;
        bool stays;
    } table[] = {{CAUSE_TERMINATION, true}, {CAUSE_POLICY, false}};
    struct member_fixture *f = *state;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        member_anew(f);
        member_capture(f, table[i].cause);
        member_pass(f, LOST_MS + 1000, false);
        member_close(f, LEAVE_FINISHED);
        assert_int_equal(member_sent(f, WIRE_LEAVE) == NULL, table[i].stays);
    }
}

/* R8.5: the broker is heard all the while and gives none. A rank without a part to write waits as
 * the writer does, for a notice may join the round. */
static void who_closes_waits_for_no_verdict_for_ever(void **state)
{
    struct member_fixture *f = *state;

    for (unsigned writers = 1; writers <= 2;
         writers++) { /* of three ranks the first, or this one */
        member_anew(f);
        member_stand(f, 5);
        member_freeze(f, 1, CAUSE_OPERATOR, false);
        member_close(f, LEAVE_FINISHED);
        member_decision(f, 1, CAUSE_OPERATOR, 5, writers);
        member_arrive(f);
        if (writers == 2)
            member_saved(f, 1, 1);
        member_ack_all(f);
        member_pass(f, GIVE_UP_MS - 1, true);
        assert_null(member_sent(f, WIRE_LEAVE));
        member_pass(f, 1, true);
        assert_non_null(member_sent(f, WIRE_LEAVE));
    }
}

/* R8.5 */
static void a_rank_without_a_part_to_write_leaves_at_the_verdict(void **state)
{
    struct member_fixture *f = *state;

    member_close(f, LEAVE_FINISHED);
    assert_non_null(member_sent(f, WIRE_LEAVE)); /* nothing holds it */
    member_anew(f);
    member_stand(f, 5);
    member_freeze(f, 1, CAUSE_OPERATOR, false);
    member_close(f, LEAVE_FINISHED);
    member_decision(f, 1, CAUSE_OPERATOR, 5, 1);
    member_arrive(f);
    member_ack_all(f);
    assert_null(member_sent(f, WIRE_LEAVE));
    member_commit(f, 1, CAUSE_OPERATOR, 5, false);
    assert_non_null(member_sent(f, WIRE_LEAVE));
}

/* R8.5: what it captured is written by another rank; its own state is that of no step. */
static void who_closes_inside_a_step_waits_for_no_verdict(void **state)
{
    struct member_fixture *f = *state;

    for (int broken = 0; broken <= 1; broken++) {
        member_anew(f);
        member_stand(f, 5);
        member_freeze(f, 1, CAUSE_OPERATOR, false);
        member_decision(f, 1, CAUSE_OPERATOR, 5, 1);
        member_arrive(f);
        member_ack_all(f);
        member_in_step(f, 6);
        member_feed(
            f, (struct member_input){.kind = MEMBER_CLOSE, .why = LEAVE_FAILED, .broken = broken});
        assert_int_equal(member_sent(f, WIRE_LEAVE) != NULL, broken);
    }
}

static void a_program_that_closes_is_not_called_preempted_by_its_own_deadline(void **state)
{
    struct member_fixture *f = *state;

    member_notice(f, "n1", 3000);
    member_ack_all(f);
    member_tick_at(f, f->now + 1900);
    member_close(f, LEAVE_FINISHED);
    member_pass(f, 500, false);
    assert_true(member_seen(f)->mode != VIEW_END);
    member_ack_all(f);
    assert_true(member_seen(f)->left);
}

#define T(test) cmocka_unit_test_setup_teardown(test, running, member_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_program_that_closes_is_not_called_preempted_by_its_own_deadline, member_set_up,
            member_tear_down),
        T(who_closes_waits_for_no_verdict_for_ever),
        T(a_rank_without_a_part_to_write_leaves_at_the_verdict),
        T(who_closes_inside_a_step_waits_for_no_verdict),
        T(who_has_finished_leaves_so_when_nothing_was_saved),
        T(who_has_not_finished_is_preempted),
        T(only_a_terminations_save_keeps_who_closes_without_a_broker),
        T(with_nothing_new_to_save_who_has_finished_is_preempted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
