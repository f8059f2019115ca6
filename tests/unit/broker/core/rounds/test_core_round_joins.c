/* The broker's core: a notice that comes while a save of another cause is open or decided.
 * PROTOCOL.md R5.16. */
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define NO_MORE_MS (FREEZE_MS + 2 * MARGIN_MS) /* nothing was measured: no other save fits in */

/* R5.16: rank 1 has saved and may have begun step 5, in which it would wait for those that leave.
 */
static void a_notice_leaves_a_decided_save_alone_while_another_fits_in(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report_all(f, 1, 4);
    core_at_step(f, 1, 1, 4, true);
    core_notice(f, 2, "n1", NO_MORE_MS + 100);
    assert_events(f, "termination rank 2");
    core_save(f, 0, 1, 4);
    assert_events(f, "commit r1 operator S4 c1 rank 0; freeze r2 termination m0,1,2");
    assert_int_equal(core_row(f, RECORD_NOTICE)->u.notice.round, 2);
}

/* R5.16 */
static void a_notice_joins_a_decided_save_when_no_other_fits_in_any_more(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report_all(f, 1, 4);
    core_notice(f, 2, "n1", NO_MORE_MS + 100);
    (void)core_events(f);
    core_pass(f, 99);
    assert_events(f, "");
    core_pass(f, 1);
    assert_events(f, "termination r1 rank 2");
    core_save(f, 0, 1, 4);
    assert_events(f, "commit r1 termination S4 c1 rank 0");
}

/* An operator's save is decided there. */
static void stand_at_4(struct core_fixture *f)
{
    for (int n = 0; n < 3; n++)
        f->nodes[n].begun = f->nodes[n].done = 4;
    core_pass(f, 500);
    core_save_now(f, "a");
    core_report_all(f, 1, 4);
}

/* R5.16, R6.8: that save is lost with its writer, and the others make the notice's. */
static void a_rank_that_is_lost_in_a_save_before_the_notices_own_loses_none(void **state)
{
    struct core_fixture *f = *state;

    stand_at_4(f);
    core_notice(f, 2, "n1", 60000);
    core_error(f, 0, 5, "no memory");
    assert_non_null(strstr(core_events(f), "freeze r2 termination abort m1,2"));
}

/* Its part is saved, and then it fails. */
static void saved_and_failed(struct core_fixture *f)
{
    stand_at_4(f);
    core_at_step(f, 1, 1, 4, true);
    core_notice(f, 2, "n1", 60000);
    core_error(f, 1, 5, "no memory");
    assert_true(core_event(f, EVENT_PEER_ERROR)->flags & EVENT_FLAG_ROUND_FOLLOWS);
}

/* R5.16: that save commits, and the notice's own follows without it. */
static void nor_does_one_that_had_its_part_in_that_save(void **state)
{
    struct core_fixture *f = *state;

    saved_and_failed(f);
    core_at_step(f, 2, 1, 4, true);
    core_save(f, 0, 1, 4);
    assert_non_null(strstr(core_events(f), "freeze r2 termination abort m0,2"));
}

static void without_the_notice_the_launch_ends_for_its_error(void **state)
{
    struct core_fixture *f = *state;

    saved_and_failed(f);
    core_cancel(f, 2, "n1");
    core_at_step(f, 2, 1, 4, true);
    core_save(f, 0, 1, 4);
    assert_null(core_event(f, EVENT_FREEZE));
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_PEER);
}

/* R5.15, R5.16: the broker stood still beyond the moment at which it would have joined. */
static void the_margin_ends_a_save_before_the_notices_own_too(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report_all(f, 1, 4);
    core_notice(f, 2, "n1", 60000);
    f->now += 60000 - MARGIN_MS;
    core_leave(f, 2, LEAVE_PREEMPTED, 0);
    assert_events(f, "abort r1 operator S4 rank 0 MUSTER_E_NOT_SAVED; "
                     "not saved r1 termination rank 0 MUSTER_E_NOT_SAVED");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
}

/* R5.15, R5.16: a sharded job cannot save without it, and leaves to be started again. */
static void a_sharded_job_that_loses_a_rank_before_the_notices_save_is_preempted(void **state)
{
    struct core_fixture *f = *state;

    core_fixture_close(f);
    core_fixture_running(f, 3, LAYOUT_SHARDED);
    stand_at_4(f);
    core_notice(f, 2, "n1", 60000);
    core_error(f, 0, 5, "no memory");
    assert_non_null(strstr(core_events(f), "not saved r2 termination rank 0"));
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_E_NOT_SAVED);
}

/* R5.16 */
static void a_notice_turns_an_open_round_into_a_termination(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report_all(f, 1, 4);
    core_at_step(f, 1, 1, 4, true);
    core_notice(f, 2, "n1", NO_MORE_MS);
    assert_core(f, "hint n1; +notice n1 active; +job; +event 6; !6 termination r1 rank 2; "
                   "+notice n1 active; +round 1 decided; +checkpoint 1 writing; +node 2 restored "
                   "#2; 2:ack #2 MUSTER_OK=1");
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.step, 4); /* S stands */
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "at once: an operator asked for a checkpoint; the notice came later");
    core_notice(f, 1, "n2", 3000);
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.deadline_boot_ms, f->now + 3000);
    assert_string_equal(core_row(f, RECORD_ROUND)->u.round.plan,
                        "at once: an operator asked for a checkpoint; the notice came later");
    assert_int_equal(core_row(f, RECORD_CHECKPOINT)->u.checkpoint.cause, CAUSE_TERMINATION);
    core_save(f, 0, 1, 4);
    assert_events(f, "commit r1 termination S4 c1 rank 0");
    assert_int_equal(core_job(f)->gen.end_status, MUSTER_PREEMPTED);
    assert_int_equal(core_row(f, RECORD_ROUND)->u.round.margin_ms, 3000);
}

/* R5.16 */
static void attempts_of_another_cause_do_not_count_for_a_notice_that_joins(void **state)
{
    struct core_fixture *f = *state;

    core_save_now(f, "a");
    core_report_all(f, 1, 4);
    core_save_failed(f, 0, 1, 4, MUSTER_E_SAVE);
    core_report_all(f, 2, 4);
    core_save_failed(f, 0, 2, 4, MUSTER_E_SAVE);
    core_notice(f, 2, "n1", 60000); /* in the freeze of the operator's last */
    core_report_all(f, 3, 4);
    for (uint64_t round = 3; round < 5; round++) {
        core_save_failed(f, 0, round, 4, MUSTER_E_SAVE);
        assert_int_equal(core_event(f, EVENT_FREEZE)->round, round + 1);
        core_report_all(f, round + 1, 4);
    }
    core_save_failed(f, 0, 5, 4, MUSTER_E_SAVE);
    assert_events(f, "abort r5 termination S4 rank 0 MUSTER_E_SAVE; "
                     "not saved r5 termination rank 0 MUSTER_E_SAVE");
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, core_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_notice_leaves_a_decided_save_alone_while_another_fits_in, core_run_three),
        T(a_notice_joins_a_decided_save_when_no_other_fits_in_any_more, core_run_three),
        T(a_rank_that_is_lost_in_a_save_before_the_notices_own_loses_none, core_run_three),
        T(nor_does_one_that_had_its_part_in_that_save, core_run_three),
        T(without_the_notice_the_launch_ends_for_its_error, core_run_three),
        T(the_margin_ends_a_save_before_the_notices_own_too, core_run_three),
        T(a_sharded_job_that_loses_a_rank_before_the_notices_save_is_preempted, core_run_three),
        T(a_notice_turns_an_open_round_into_a_termination, core_run_three),
        T(attempts_of_another_cause_do_not_count_for_a_notice_that_joins, core_run_three),
    };

    return cmocka_run_group_tests_name("core_round_joins", tests, NULL, NULL);
}
