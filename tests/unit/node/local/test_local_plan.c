/* What a process without a broker plans: when it saves for its notices. */
#include "node/local/local_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOW 5000000

static struct local_plan p;

static int setup(void **state)
{
    (void)state;
    local_plan_init(&p, -1);
    plan_saves_add(&p.saves, 1000);
    p.begun = 1;
    pace_add(&p.pace, 10, 1000); /* reserve: 2500 + 200 + 1000 + 500 */
    return 0;
}
#define RESERVE 4200

static void tell(uint64_t number, int64_t left_ms)
{
    local_plan_notice(&p, NOW, number, NOTICE_PREEMPT, left_ms, "spot");
}

/* The moment at which it saves; -1: no notice. */
static int64_t due_at(void)
{
    int64_t wakeup;

    if (local_plan_due(&p, NOW, &wakeup))
        return NOW;
    return wakeup == INT64_MAX ? -1 : wakeup;
}

/* R7.7 */
static void a_notice_with_time_left_is_trained_through(void **state)
{
    int64_t wakeup;

    (void)state;
    assert_int_equal(due_at(), -1);
    tell(1, 60000);
    assert_int_equal(due_at(), NOW + 60000 - RESERVE);
    assert_non_null(strstr(p.text, "trains on until 4.2 s before its deadline in 60.0 s"));
    assert_true(local_plan_due(&p, NOW + 60000 - RESERVE, &wakeup));
}

static void the_earliest_notice_counts_and_a_withdrawal_gives_the_time_back(void **state)
{
    (void)state;
    tell(1, 60000);
    tell(2, 20000);
    assert_int_equal(due_at(), NOW + 20000 - RESERVE);
    assert_false(local_plan_withdraw(&p, 3));
    assert_true(local_plan_withdraw(&p, 2));
    assert_int_equal(due_at(), NOW + 60000 - RESERVE);
    assert_true(local_plan_withdraw(&p, 1));
    assert_int_equal(due_at(), -1);
    assert_string_equal(p.text, "");
}

static void what_the_program_said_is_not_withdrawn(void **state)
{
    (void)state;
    tell(0, 30000);
    assert_false(local_plan_withdraw(&p, 0));
    assert_int_equal(due_at(), NOW + 30000 - RESERVE);
}

static void what_is_a_guess_saves_at_once(void **state)
{
    (void)state;
    tell(1, -1);
    assert_int_equal(due_at(), NOW);
    assert_int_equal(p.plan.why, PLAN_ASKED);
    setup(NULL);
    local_plan_notice(&p, NOW, 1, NOTICE_SIGNAL, 30000,
                      "SIGTERM"); /* what is usual here: a guess */
    assert_int_equal(due_at(), NOW);
}

static void what_was_not_measured_is_assumed_and_one_save_measures_it(void **state)
{
    (void)state;
    local_plan_init(&p, -1);
    local_plan_restart_looks(&p, 100);
    tell(1, 1800000);
    assert_int_equal(due_at(), NOW + 1800000 - FREEZE_MS - 2 * MARGIN_MS);
    assert_false(local_plan_wants_save(&p)); /* there is nothing to save */
    local_plan_look(&p, NOW, 101, true);
    assert_int_equal(due_at(), NOW + 1800000 - 60000 - MARGIN_MS - PLAN_SPARE_MS);
    assert_non_null(strstr(p.text, "no save was measured yet: 24 s assumed"));
    assert_true(local_plan_wants_save(&p));
    assert_false(local_plan_wants_save(&p));
    plan_saves_add(&p.saves, 1000);
    pace_add(&p.pace, 1, 100);
    assert_int_equal(due_at(), NOW + 1800000 - RESERVE);
    local_plan_init(&p, -1);
    local_plan_restart_looks(&p, 100);
    local_plan_look(&p, NOW, 101, true);
    tell(1, 30000); /* no time for two saves */
    assert_int_equal(due_at(), NOW);
    assert_non_null(strstr(p.text, "saves at once: 30.0 s are left, and 61.5 s are reserved (no"));
    assert_false(local_plan_wants_save(&p));
}

static void a_time_in_which_nothing_can_be_saved_is_taken_for_unknown(void **state)
{
    (void)state;
    tell(1, LEAST_LEAD_MS - 1);
    assert_int_equal(due_at(), NOW);
    assert_int_equal(p.plan.why, PLAN_ASKED);
    assert_int_equal(p.chosen.deadline_boot_ms, NOW + GRACE_DEFAULT_MS);
    assert_non_null(strstr(p.text, "it tells no time left to plan with"));
    setup(NULL);
    p.grace_period_ms = 60000;
    tell(1, 0);
    assert_int_equal(due_at(), NOW);
    assert_int_equal(p.plan.why, PLAN_ASKED);
    assert_int_equal(p.chosen.deadline_boot_ms, NOW + 60000);
    setup(NULL);
    tell(1, LEAST_LEAD_MS);
    assert_int_equal(p.notices[0].deadline_boot_ms, NOW + LEAST_LEAD_MS);
    setup(NULL);
    p.grace_period_ms = 0;
    tell(1, 60000);
    assert_int_equal(due_at(), NOW);
    assert_non_null(strstr(p.text, "grace_period_ms asks for it"));
}

static void grace_period_ms_overrides_a_later_time_and_a_guess(void **state)
{
    (void)state;
    p.grace_period_ms = 10000;
    local_plan_notice(&p, NOW, 1, NOTICE_SIGNAL, 30000, "SIGTERM");
    assert_int_equal(due_at(), NOW + 10000 - RESERVE);
    tell(2, 8000); /* an earlier one is believed */
    assert_int_equal(due_at(), NOW + 8000 - RESERVE);
    setup(NULL);
    p.grace_period_ms = 0;
    tell(1, 60000);
    assert_int_equal(due_at(), NOW);
}

static void of_too_many_notices_the_latest_is_dropped(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < NOTICES_NODE_MAX; i++)
        tell(i + 1, 60000 - (int64_t)i);
    tell(100, 90000);
    assert_int_equal(due_at(), NOW + 60000 - (NOTICES_NODE_MAX - 1) - RESERVE);
    tell(101, 20000);
    assert_int_equal(due_at(), NOW + 20000 - RESERVE);
    assert_false(local_plan_withdraw(&p, 1));
    assert_false(local_plan_withdraw(&p, 100));
    tell(102, -1); /* at once goes before all */
    assert_int_equal(due_at(), NOW);
}

static void steps_are_measured_by_looks_while_the_gate_is_open(void **state)
{
    (void)state;
    local_plan_init(&p, -1);
    local_plan_restart_looks(&p, 100); /* restored */
    local_plan_look(&p, 1000, 100, true);
    assert_int_equal(local_plan_step_p95(&p), 0);
    local_plan_look(&p, 2000, 110, true); /* who knows when the first of them began */
    assert_int_equal(local_plan_step_p95(&p), 0);
    local_plan_look(&p, 3000, 110, true); /* in a long one */
    local_plan_look(&p, 4000, 114, true);
    assert_int_equal(local_plan_step_p95(&p), 500);
    local_plan_look(&p, 5000, 115, false); /* waited at the gate: says nothing */
    local_plan_look(&p, 95000, 116, true);
    assert_int_equal(local_plan_step_p95(&p), 500);
}

static void the_times_outlive_the_process_as_text(void **state)
{
    static const char *const wrong[] = {"", "step_p95_ms", "step_p95_ms -1\nsaves_ms 4\n",
                                        "step_p95_ms 4 saves_ms 4\n",
                                        "step_p95_ms 99999999999\nsaves_ms 4\n"};
    char text[LOCAL_TIMES_TEXT];

    (void)state;
    plan_saves_add(&p.saves, 3000);
    local_plan_write_times(&p, text);
    assert_string_equal(text, "step_p95_ms 100\nsaves_ms 1000 3000\n");
    local_plan_init(&p, -1);
    local_plan_read_times(&p, text);
    assert_int_equal(local_plan_step_p95(&p), 100);
    assert_int_equal(plan_saves_p95(&p.saves), 3000);
    pace_add(&p.pace, 1, 7); /* what this life measures counts more */
    assert_int_equal(local_plan_step_p95(&p), 7);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        local_plan_init(&p, -1);
        local_plan_read_times(&p, wrong[i]);
        assert_int_equal(plan_saves_p95(&p.saves), 0);
        assert_int_equal(local_plan_step_p95(&p), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_notice_with_time_left_is_trained_through, setup),
        cmocka_unit_test_setup(the_earliest_notice_counts_and_a_withdrawal_gives_the_time_back,
                               setup),
        cmocka_unit_test_setup(what_the_program_said_is_not_withdrawn, setup),
        cmocka_unit_test_setup(what_is_a_guess_saves_at_once, setup),
        cmocka_unit_test_setup(what_was_not_measured_is_assumed_and_one_save_measures_it, setup),
        cmocka_unit_test_setup(a_time_in_which_nothing_can_be_saved_is_taken_for_unknown, setup),
        cmocka_unit_test_setup(grace_period_ms_overrides_a_later_time_and_a_guess, setup),
        cmocka_unit_test_setup(of_too_many_notices_the_latest_is_dropped, setup),
        cmocka_unit_test_setup(steps_are_measured_by_looks_while_the_gate_is_open, setup),
        cmocka_unit_test_setup(the_times_outlive_the_process_as_text, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
