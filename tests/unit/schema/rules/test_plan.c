/* plan: when a round is frozen for a notice. */
#include "schema/limits.h"
#include "schema/rules/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1000000

static struct plan_facts measured(int64_t left_ms)
{
    return (struct plan_facts){.now_boot_ms = NOW,
                               .deadline_boot_ms = NOW + left_ms,
                               .grace_ms = left_ms,
                               .trained = true,
                               .step_p95_ms = 1000,
                               .save_p95_ms = 4000};
}

/* R6.3 */
static void the_freeze_leaves_time_for_the_reserve(void **state)
{
    struct plan_facts facts = measured(60000);
    struct plan plan = plan_make(&facts);

    (void)state;
    /* 2.5 x 4000 + 2 x 1000 + 2000 + 1000 + 500 */
    assert_int_equal(plan.reserve_ms, 15500);
    assert_int_equal(plan.why, PLAN_AHEAD);
    assert_int_equal(plan.freeze_boot_ms, NOW + 60000 - 15500);
    facts.lag = 3;
    plan = plan_make(&facts);
    assert_int_equal(plan.reserve_ms, 18500);
    facts.save_p95_ms = 1; /* a half is rounded up */
    facts.grace_ms = 3;
    assert_int_equal(plan_make(&facts).reserve_ms, 3 + 5000 + 3500);
}

/* R6.4 */
static void short_saves_leave_time_for_a_broker_that_starts_again(void **state)
{
    struct plan_facts facts = measured(60000);

    (void)state;
    facts.save_p95_ms = 40;
    facts.step_p95_ms = 10;
    assert_int_equal(plan_make(&facts).reserve_ms, 40 + 10 + 4500 + 1000 + 1000);
    facts.grace_ms = 11620; /* an eighth of 11620 - 3620, not more */
    assert_int_equal(plan_make(&facts).reserve_ms, 3620 + 1000);
    facts.grace_ms = 3620;
    assert_int_equal(plan_make(&facts).reserve_ms, 3620);
}

static void alone_there_is_no_freeze_to_wait_for(void **state)
{
    struct plan_facts facts = measured(60000);

    (void)state;
    facts.alone = true;
    assert_int_equal(plan_make(&facts).reserve_ms, 10000 + 2000 + 1000 + 500);
    facts.save_p95_ms = 40; /* and no broker that may start again */
    facts.step_p95_ms = 10;
    assert_int_equal(plan_make(&facts).reserve_ms, 100 + 20 + 1000 + 500);
}

static void a_time_left_that_is_not_known_freezes_at_once(void **state)
{
    struct plan_facts facts = measured(60000);

    (void)state;
    facts.deadline_boot_ms = 0;
    assert_int_equal(plan_make(&facts).why, PLAN_ASKED);
    facts = measured(60000);
    facts.at_once = true;
    assert_int_equal(plan_make(&facts).why, PLAN_ASKED);
    assert_int_equal(plan_make(&facts).freeze_boot_ms, NOW);
}

/* R6.7 */
static void what_was_not_measured_is_assumed(void **state)
{
    struct plan_facts facts = measured(1800000);
    char text[PLAN_BASIS_TEXT];

    (void)state;
    facts.save_p95_ms = 0;
    assert_int_equal(plan_make(&facts).why, PLAN_AHEAD);
    assert_int_equal(plan_make(&facts).basis, PLAN_KNOWS_STEP | PLAN_KNOWS_TRAINED);
    int64_t assumed = 60000 + 2000 + FREEZE_MS + MARGIN_MS + PLAN_SPARE_MS;
    int64_t restart = PLAN_SAVE_MS + 1000 + PLAN_RESTART_MS + PLAN_FREEZE_MS + MARGIN_MS;
    assert_true(restart < assumed);
    assert_int_equal(plan_make(&facts).reserve_ms, assumed);
    plan_describe_basis(&facts, text);
    assert_string_equal(text, "step p95 1000 ms, no save was measured yet: 24 s assumed");
    facts.grace_ms = 60000; /* the assumption does not fit into it */
    facts.deadline_boot_ms = NOW + 60000;
    assert_int_equal(plan_make(&facts).why, PLAN_DUE);
    facts = measured(60000);
    facts.step_p95_ms = 0; /* who knows: it is measured when the first one ends */
    assert_int_equal(plan_make(&facts).reserve_ms, 10000 + FREEZE_MS + MARGIN_MS + PLAN_SPARE_MS);
    plan_describe_basis(&facts, text);
    assert_string_equal(text, "no step was measured yet, save p95 4000 ms");
}

/* A freeze now would save nothing: it waits for a step as long as one and its save may still
 * fit (R6.2). */
static void nothing_is_frozen_before_a_step_of_the_launch(void **state)
{
    struct plan_facts facts = measured(16000);
    char text[PLAN_BASIS_TEXT];

    (void)state;
    facts.trained = false;
    assert_int_equal(plan_make(&facts).reserve_ms, 4000 + 1000 + PLAN_FREEZE_MS + MARGIN_MS);
    assert_int_equal(plan_make(&facts).why, PLAN_AHEAD);
    plan_describe_basis(&facts, text);
    assert_non_null(strstr(text, ", no step of this launch has begun"));
    facts.save_p95_ms = 0;
    assert_int_equal(plan_make(&facts).reserve_ms, FREEZE_MS + 2 * MARGIN_MS);
    facts.now_boot_ms = facts.deadline_boot_ms - FREEZE_MS - 2 * MARGIN_MS;
    assert_int_equal(plan_make(&facts).why, PLAN_DUE);
}

/* R7.1 */
static void a_time_left_counts_by_one_rule_whoever_tells_it(void **state)
{
    static const struct {
        int64_t told_ms, option_ms;
        bool usual;
        struct plan_left expected;
    } table[] = {
        {90000, -1, false, {90000, false, false, false, false}},
        {-1, -1, false, {GRACE_DEFAULT_MS, false, true, true, false}},
        {10000, -1, true, {10000, false, true, true, false}},          /* docker, of a signal */
        {2000, -1, true, {GRACE_DEFAULT_MS, false, true, true, true}}, /* mpirun */
        {LEAST_LEAD_MS - 1, -1, false, {GRACE_DEFAULT_MS, false, true, true, true}},
        {LEAST_LEAD_MS, -1, false, {LEAST_LEAD_MS, false, false, false, false}},
        {-1, 1, true, {GRACE_DEFAULT_MS, false, true, true, true}},
        {-1, 1000, true, {GRACE_DEFAULT_MS, false, true, true, true}},
        {-1, 1500, true, {GRACE_DEFAULT_MS, false, true, true, true}},
        {60000, 1500, false, {60000, false, false, true, true}},
        {-1, LEAST_LEAD_MS, true, {LEAST_LEAD_MS, true, false, false, false}},
        {60000, 20000, false, {20000, true, false, false, false}},
        {20000, 60000, false, {20000, false, false, false, false}},
        {0,
         60000,
         false,
         {60000, true, false, true, true}}, /* who lives on shows that it is not exact */
        {60000, 0, false, {60000, false, false, true, false}},
        {-1, 0, true, {GRACE_DEFAULT_MS, false, true, true, false}},
        {INT64_MAX, -1, false, {INT32_MAX, false, false, false, false}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct plan_left left = plan_left_of(table[i].told_ms, table[i].option_ms, table[i].usual);
        assert_int_equal(left.ms, table[i].expected.ms);
        assert_int_equal(left.by_option, table[i].expected.by_option);
        assert_int_equal(left.assumed, table[i].expected.assumed);
        assert_int_equal(left.at_once, table[i].expected.at_once);
        assert_int_equal(left.too_short, table[i].expected.too_short);
    }
}

static void a_moment_that_has_passed_is_now(void **state)
{
    struct plan_facts facts = measured(15500);
    struct plan plan = plan_make(&facts);

    (void)state;
    assert_int_equal(plan.why, PLAN_DUE);
    assert_int_equal(plan.freeze_boot_ms, NOW);
    facts = measured(15501);
    assert_int_equal(plan_make(&facts).freeze_boot_ms, NOW + 1);
    facts = measured(60000); /* it waited, and is late */
    facts.now_boot_ms = NOW + 59000;
    assert_int_equal(plan_make(&facts).freeze_boot_ms, NOW + 59000);
}

static void no_number_overflows(void **state)
{
    struct plan_facts facts = measured(INT64_C(3650) * 24 * 3600 * 1000);

    (void)state;
    facts.lag = INT64_MAX;
    assert_int_equal(plan_make(&facts).why, PLAN_DUE);
    facts.step_p95_ms = INT64_MAX;
    assert_int_equal(plan_make(&facts).why, PLAN_DUE);
    facts.save_p95_ms = INT64_MAX;
    assert_int_equal(plan_make(&facts).why, PLAN_DUE);
    assert_true(plan_least_ms(&facts) > 0);
}

/* R6.5 */
static void save_p95_is_the_nearest_rank_of_the_newest(void **state)
{
    struct plan_saves saves = {.count = 0};

    (void)state;
    assert_int_equal(plan_saves_p95(&saves), 0);
    plan_saves_add(&saves, 0);
    assert_int_equal(plan_saves_p95(&saves), 1);
    plan_saves_add(&saves, 700);
    plan_saves_add(&saves, 300);
    assert_int_equal(plan_saves_p95(&saves), 700); /* few: the longest */
    for (int i = 0; i < PLAN_SAVES_MAX - 1; i++)
        plan_saves_add(&saves, 100 + i);
    assert_int_equal(saves.count, PLAN_SAVES_MAX);
    assert_int_equal(saves.ms[0], 300);            /* what is older was forgotten */
    assert_int_equal(plan_saves_p95(&saves), 130); /* one outlier of 32 does not count */
    plan_saves_add(&saves, 900);
    plan_saves_add(&saves, 800);
    assert_int_equal(plan_saves_p95(&saves), 800); /* two do */
}

static void saves_survive_as_text(void **state)
{
    struct plan_saves saves = {.count = 0}, again;
    char text[PLAN_SAVES_TEXT];

    (void)state;
    plan_saves_write(&saves, text);
    assert_string_equal(text, "");
    for (int i = 0; i < PLAN_SAVES_MAX + 3; i++)
        plan_saves_add(&saves, INT64_MAX - i); /* the longest text */
    plan_saves_write(&saves, text);
    plan_saves_read(&again, text);
    assert_memory_equal(&saves, &again, sizeof saves);
    static const char *const wrong[] = {"12 x", "0", "-4", "1;2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        plan_saves_read(&again, wrong[i]);
        assert_int_equal(again.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_freeze_leaves_time_for_the_reserve),
        cmocka_unit_test(short_saves_leave_time_for_a_broker_that_starts_again),
        cmocka_unit_test(alone_there_is_no_freeze_to_wait_for),
        cmocka_unit_test(a_time_left_that_is_not_known_freezes_at_once),
        cmocka_unit_test(what_was_not_measured_is_assumed),
        cmocka_unit_test(nothing_is_frozen_before_a_step_of_the_launch),
        cmocka_unit_test(a_time_left_counts_by_one_rule_whoever_tells_it),
        cmocka_unit_test(a_moment_that_has_passed_is_now),
        cmocka_unit_test(no_number_overflows),
        cmocka_unit_test(save_p95_is_the_nearest_rank_of_the_newest),
        cmocka_unit_test(saves_survive_as_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
