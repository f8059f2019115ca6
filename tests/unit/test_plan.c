/* plan: when a round is frozen for a notice. */
#include "schema/limits.h"
#include "schema/plan.h"

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
                               .step_p95_ms = 1000,
                               .save_p95_ms = 4000};
}

static void the_freeze_leaves_time_for_the_reserve(void **state)
{
    struct plan_facts facts = measured(60000);
    struct plan plan = plan_make(&facts);

    (void)state;
    /* 2.5 x 4000 + 2 x 1000 + 2000 + 1000 + 500 */
    assert_int_equal(plan.reserve_ms, 15500);
    assert_int_equal(plan.why, PLAN_MEASURED);
    assert_int_equal(plan.freeze_boot_ms, NOW + 60000 - 15500);
    facts.lag = 3;
    plan = plan_make(&facts);
    assert_int_equal(plan.reserve_ms, 18500);
    facts.save_p95_ms = 1; /* a half is rounded up */
    facts.grace_ms = 3;
    assert_int_equal(plan_make(&facts).reserve_ms, 3 + 5000 + 3500);
}

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

static void what_is_not_known_freezes_at_once(void **state)
{
    struct plan_facts facts = measured(60000);

    (void)state;
    facts.step_p95_ms = 0;
    assert_int_equal(plan_make(&facts).why, PLAN_UNMEASURED);
    assert_int_equal(plan_make(&facts).freeze_boot_ms, NOW);
    facts = measured(60000);
    facts.save_p95_ms = 0;
    assert_int_equal(plan_make(&facts).why, PLAN_UNMEASURED);
    facts = measured(60000);
    facts.deadline_boot_ms = 0;
    assert_int_equal(plan_make(&facts).why, PLAN_ASKED);
    facts = measured(60000);
    facts.at_once = true;
    assert_int_equal(plan_make(&facts).why, PLAN_ASKED);
    assert_int_equal(plan_make(&facts).freeze_boot_ms, NOW);
}

static void a_grace_of_less_than_three_saves_freezes_at_once(void **state)
{
    struct plan_facts facts = measured(120000);

    (void)state;
    facts.save_p95_ms = 40001;
    assert_int_equal(plan_make(&facts).why, PLAN_SHORT);
    assert_int_equal(plan_make(&facts).freeze_boot_ms, NOW);
    facts.save_p95_ms = 40000;
    assert_int_equal(plan_make(&facts).why, PLAN_MEASURED);
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
    assert_int_equal(plan_make(&facts).why, PLAN_SHORT);
    assert_true(plan_least_ms(&facts) > 0);
}

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
        cmocka_unit_test(what_is_not_known_freezes_at_once),
        cmocka_unit_test(a_grace_of_less_than_three_saves_freezes_at_once),
        cmocka_unit_test(a_moment_that_has_passed_is_now),
        cmocka_unit_test(no_number_overflows),
        cmocka_unit_test(save_p95_is_the_nearest_rank_of_the_newest),
        cmocka_unit_test(saves_survive_as_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
