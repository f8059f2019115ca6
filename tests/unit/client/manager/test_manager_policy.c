/* Save policies that every rank computes alike, and which lists are refused. */
#include "client/manager/manager_policy.h"

#include "schema/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/* The steps of 0..count-1 that are saved, as text. */
static const char *saved(const struct muster_save_policy *save, size_t save_count, int64_t count)
{
    static char text[256];
    struct muster_policies policies = MUSTER_POLICIES_INIT;
    struct step_rules rules;
    size_t used = 0;

    policies.save = save;
    policies.save_count = save_count;
    assert_int_equal(step_rules_take(&policies, &rules, NULL), MUSTER_OK);
    text[0] = '\0';
    for (int64_t step = 0; step < count; step++)
        if (step_rules_want(&rules, step, step == 0))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", used > 0 ? " " : "",
                                     (int)step);
    return text;
}

static void every_so_many_steps_counts_from_step_0(void **state)
{
    const struct muster_save_policy two = {.kind = MUSTER_SAVE_EVERY_STEPS, .number = 2};
    const struct muster_save_policy one = {.kind = MUSTER_SAVE_EVERY_STEPS, .number = 1};

    (void)state;
    assert_string_equal(saved(&two, 1, 6), "0 2 4");
    assert_string_equal(saved(&one, 1, 4), "0 1 2 3");
}

static void a_list_is_any_of(void **state)
{
    static const int64_t steps[] = {5, 1, 3};
    const struct muster_save_policy save[] = {
        {.kind = MUSTER_SAVE_EVERY_STEPS, .number = 10000},
        {.kind = MUSTER_SAVE_STEPS, .steps = steps, .steps_count = 3},
    };

    (void)state;
    assert_string_equal(saved(save, 2, 10), "0 1 3 5");
}

static void the_first_step_is_saved_once(void **state)
{
    const struct muster_save_policy first = {.kind = MUSTER_SAVE_FIRST};

    (void)state;
    assert_string_equal(saved(&first, 1, 10), "0");
}

static void without_policies_nothing_is_saved_by_itself(void **state)
{
    struct step_rules rules;

    (void)state;
    assert_int_equal(step_rules_take(NULL, &rules, NULL), MUSTER_OK);
    assert_false(step_rules_want(&rules, 0, true));
    assert_string_equal(saved(NULL, 0, 10), "");
}

static bool odd(int64_t step, void *arg)
{
    ++*(int *)arg;
    return step % 2 == 1;
}

static void each_function_is_asked_and_one_yes_is_enough(void **state)
{
    int calls[2] = {0};
    const struct muster_save_policy save[] = {
        {.kind = MUSTER_SAVE_FUNCTION, .should_save_fn = odd, .arg = &calls[0]},
        {.kind = MUSTER_SAVE_FUNCTION, .should_save_fn = odd, .arg = &calls[1]},
    };
    struct muster_policies policies = MUSTER_POLICIES_INIT;
    struct step_rules rules;

    (void)state;
    policies.save = save;
    policies.save_count = 2;
    assert_int_equal(step_rules_take(&policies, &rules, NULL), MUSTER_OK);
    assert_true(step_rules_ask(&rules, 3));
    assert_false(step_rules_ask(&rules, 4));
    assert_int_equal(calls[0], 2);
    assert_int_equal(calls[1], 2);
    assert_false(step_rules_want(&rules, 3, false)); /* not what every rank computes */
}

static void assert_refused(const struct muster_policies *policies, const char *says)
{
    struct step_rules rules;
    struct muster_error error;

    assert_int_equal(step_rules_take(policies, &rules, &error), MUSTER_E_ARGUMENT);
    if (strstr(error.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, says);
}

static void contradictions_of_saves_are_refused_by_name(void **state)
{
    static const int64_t good[] = {1}, negative[] = {1, -2};
    static const struct {
        struct muster_save_policy policy;
        const char *says;
    } rows[] = {
        {{.kind = MUSTER_SAVE_NONE}, "save[0] has a kind that does not exist"},
        {{.kind = MUSTER_SAVE_KIND_COUNT}, "does not exist"},
        {{.kind = MUSTER_SAVE_EVERY_STEPS, .number = 0}, "1 or more"},
        {{.kind = MUSTER_SAVE_EVERY_STEPS, .number = -4},
         "muster_manager_open: policies.save[0].number is -4; give 1 or more steps"},
        {{.kind = MUSTER_SAVE_PERIOD_MS, .number = INT64_MAX}, "milliseconds, below 2^62"},
        {{.kind = MUSTER_SAVE_STEPS, .steps = good, .steps_count = 1, .number = 3},
         "a number, which its kind does not use"},
        {{.kind = MUSTER_SAVE_FIRST, .number = 3}, "a number, which its kind does not use"},
        {{.kind = MUSTER_SAVE_EVERY_STEPS, .number = 3, .share = 0.5}, "not MUSTER_SAVE_OVERHEAD"},
        {{.kind = MUSTER_SAVE_STEPS}, "no steps"},
        {{.kind = MUSTER_SAVE_STEPS, .steps = negative, .steps_count = 2},
         "save[0].steps[1] is -2; steps begin with 0"},
        {{.kind = MUSTER_SAVE_STEPS, .steps = good, .steps_count = 513}, "more steps"},
        {{.kind = MUSTER_SAVE_FIRST, .steps = good, .steps_count = 1}, "not MUSTER_SAVE_STEPS"},
        {{.kind = MUSTER_SAVE_PERIOD_MS, .number = 0}, "1 or more"},
        {{.kind = MUSTER_SAVE_CONTINUOUS_MS, .number = -1}, "0 or more"},
        {{.kind = MUSTER_SAVE_OVERHEAD, .share = 0}, "share is 0; give"},
        {{.kind = MUSTER_SAVE_OVERHEAD, .share = 1}, "share is 1; give"},
        {{.kind = MUSTER_SAVE_FUNCTION}, "should_save_fn is NULL"},
        {{.kind = MUSTER_SAVE_FIRST, .should_save_fn = odd}, "not MUSTER_SAVE_FUNCTION"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct muster_policies policies = MUSTER_POLICIES_INIT;

        policies.save = &rows[i].policy;
        policies.save_count = 1;
        assert_refused(&policies, rows[i].says);
    }
}

static void contradictions_of_keeps_are_refused_by_name(void **state)
{
    static const int64_t good[] = {1}, negative[] = {1, -2};
    static const struct {
        struct muster_keep_policy policy;
        const char *says;
    } rows[] = {
        {{.kind = MUSTER_KEEP_NONE}, "keep[0] has a kind that does not exist"},
        {{.kind = MUSTER_KEEP_LATEST, .number = -1},
         "policies.keep[0].number is -1; give 0 or more checkpoints"},
        {{.kind = MUSTER_KEEP_LATEST, .number = INT64_MAX}, "below 2^62"},
        {{.kind = MUSTER_KEEP_LATEST, .number = 2, .greatest = true}, "not MUSTER_KEEP_BEST"},
        {{.kind = MUSTER_KEEP_EVERY_MS, .number = 2, .keep_unmeasured = true},
         "not MUSTER_KEEP_BEST"},
        {{.kind = MUSTER_KEEP_STEPS, .steps = good, .steps_count = 1, .number = 1},
         "a number, which its kind does not use"},
        {{.kind = MUSTER_KEEP_EVERY_STEPS, .number = 0}, "1 or more"},
        {{.kind = MUSTER_KEEP_EVERY_STEPS_NEAR, .number = -3}, "1 or more"},
        {{.kind = MUSTER_KEEP_EVERY_STEPS_NEAR, .number = 3, .max_to_keep = 1},
         "has max_to_keep, which its kind does not use"},
        {{.kind = MUSTER_KEEP_BEST, .number = 3, .metric = "loss", .max_to_keep = 1},
         "has max_to_keep, which its kind does not use"},
        {{.kind = MUSTER_KEEP_EVERY_STEPS, .number = 3, .max_to_keep = -1}, "1 or more, or 0"},
        {{.kind = MUSTER_KEEP_EVERY_STEPS_CLOSEST, .number = 0}, "1 or more steps"},
        {{.kind = MUSTER_KEEP_EVERY_MS, .number = 0}, "1 or more"},
        {{.kind = MUSTER_KEEP_LAST_MS, .number = -1}, "1 or more"},
        {{.kind = MUSTER_KEEP_BEST, .number = 1}, "names no metric"},
        {{.kind = MUSTER_KEEP_BEST, .number = -1, .metric = "loss"}, "0 or more checkpoints"},
        {{.kind = MUSTER_KEEP_LATEST, .number = 1, .metric = "loss"}, "not MUSTER_KEEP_BEST"},
        {{.kind = MUSTER_KEEP_STEPS}, "no steps"},
        {{.kind = MUSTER_KEEP_STEPS, .steps = negative, .steps_count = 2},
         "keep[0].steps[1] is -2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct muster_policies policies = MUSTER_POLICIES_INIT;

        policies.keep = &rows[i].policy;
        policies.keep_count = 1;
        assert_refused(&policies, rows[i].says);
    }
}

static void lists_that_cannot_be_read_are_refused(void **state)
{
    static const struct muster_save_policy first = {.kind = MUSTER_SAVE_FIRST};
    struct muster_policies policies = MUSTER_POLICIES_INIT;
    struct step_rules rules;

    (void)state;
    policies.save_count = 1; /* and no list */
    assert_int_equal(step_rules_take(&policies, &rules, NULL), MUSTER_E_ARGUMENT);
    policies.save = &first;
    policies.save_count = MUSTER_POLICIES_MAX + 1;
    assert_int_equal(step_rules_take(&policies, &rules, NULL), MUSTER_E_ARGUMENT);
    policies.save_count = 1;
    policies.trash = "old"; /* and nothing that is deleted */
    assert_int_equal(step_rules_take(&policies, &rules, NULL), MUSTER_E_ARGUMENT);
    policies.trash = NULL;
    assert_int_equal(step_rules_take(&policies, &rules, NULL), MUSTER_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_so_many_steps_counts_from_step_0),
        cmocka_unit_test(a_list_is_any_of),
        cmocka_unit_test(the_first_step_is_saved_once),
        cmocka_unit_test(without_policies_nothing_is_saved_by_itself),
        cmocka_unit_test(each_function_is_asked_and_one_yes_is_enough),
        cmocka_unit_test(contradictions_of_saves_are_refused_by_name),
        cmocka_unit_test(contradictions_of_keeps_are_refused_by_name),
        cmocka_unit_test(lists_that_cannot_be_read_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
