/* Policies as text, and what the keep policies want: the examples as a table, and properties that
 * hold for every list of rules. The same examples through a broker: test_core_keep.c; on disk:
 * proc.keep_policies. */
#include "schema/manifest/metrics.h"
#include "schema/rules/keep.h"
#include "schema/rules/policies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR ((int64_t)3600000)

static void a_list_survives_as_text(void **state)
{
    static const char *const texts[] = {
        "",
        "latest 0",
        "latest 2; every 4",
        "every 100 from 1; near 7",
        "every 4 most 1; every 4 from 1 most 4611686018427387903",
        "closest 100; closest 100 from 1; closest 7 from 1 most 3",
        "every-ms 18000000; last-ms 0",
        "best 3 least loss; best 1 greatest eval/acc_5 unmeasured",
        "steps 1; steps 0 5 4611686018427387903",
    };
    static const char *const saves[] = {"", "period-ms 600000",
                                        "continuous-ms 0; overhead-ppm 20000",
                                        "young-daly; young-daly", "first; period-ms 1"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct keep_policies policies;
        char again[POLICY_TEXT_MAX + 1];
        assert_int_equal(keep_policies_parse(texts[i], &policies, NULL), MUSTER_OK);
        assert_int_equal(keep_policies_text(&policies, again, NULL), MUSTER_OK);
        assert_string_equal(again, texts[i]);
    }
    for (size_t i = 0; i < sizeof saves / sizeof *saves; i++) {
        struct save_policies policies;
        char again[POLICY_TEXT_MAX + 1];
        assert_int_equal(save_policies_parse(saves[i], &policies, NULL), MUSTER_OK);
        assert_int_equal(save_policies_text(&policies, again, NULL), MUSTER_OK);
        assert_string_equal(again, saves[i]);
    }
}

static void what_is_no_rule_is_named(void **state)
{
    static const char *const wrong[] = {"latest",
                                        "latest -1",
                                        "latest 2 ",
                                        " latest 2",
                                        "latest  2",
                                        "latest 2;",
                                        "; latest 2",
                                        "every 0",
                                        "every 4 to 1",
                                        "near 0",
                                        "near 4 most 2",
                                        "every 4 most 0",
                                        "every 4 most 2 from 1",
                                        "every 4 from 1 most",
                                        "closest 0",
                                        "best 3 least",
                                        "best 3 most loss",
                                        "best 3 least a b",
                                        "steps",
                                        "steps 1 x",
                                        "latest 99999999999999999999",
                                        "best 3 least lo;ss",
                                        "latest 4611686018427387904",
                                        "oldest 2"};
    struct keep_policies policies = {.count = 77};
    struct save_policies saves = {.count = 77};
    struct muster_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (keep_policies_parse(wrong[i], &policies, &err) != MUSTER_E_ARGUMENT)
            fail_msg("taken: %s", wrong[i]);
        assert_non_null(strstr(err.text, "the keep policies say"));
    }
    assert_int_equal(policies.count, 77);
    static const char *const wrong_saves[] = {"period-ms 0", "overhead-ppm 1000000", "young-daly 1",
                                              "first 1", "latest 2"};
    for (size_t i = 0; i < sizeof wrong_saves / sizeof *wrong_saves; i++)
        assert_int_equal(save_policies_parse(wrong_saves[i], &saves, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(saves.count, 77);
}

static void lists_are_bounded(void **state)
{
    char text[POLICY_TEXT_MAX + 1] = "steps";
    struct keep_policies policies;

    (void)state;
    for (int i = 0; i < POLICY_STEPS_MAX; i++)
        strcat(text, " 4611686018427387903");
    assert_int_equal(keep_policies_parse(text, &policies, NULL), MUSTER_OK);
    assert_int_equal(keep_policies_text(&policies, text, NULL), MUSTER_OK);
    strcat(text, " 1");
    assert_int_equal(keep_policies_parse(text, &policies, NULL), MUSTER_E_ARGUMENT);
    strcpy(text, "latest 1");
    for (int i = 1; i < POLICIES_MAX; i++)
        strcat(text, "; latest 1");
    assert_int_equal(keep_policies_parse(text, &policies, NULL), MUSTER_OK);
    strcat(text, "; latest 1");
    assert_int_equal(keep_policies_parse(text, &policies, NULL), MUSTER_E_ARGUMENT);
}

static void metrics_are_an_object_of_numbers(void **state)
{
    double value = 0;

    (void)state;
    assert_true(metrics_ok(""));
    assert_true(metrics_ok("{\"loss\": 0.5, \"eval/acc\": 1}"));
    assert_false(metrics_ok("{\"loss\": \"low\"}"));
    assert_false(metrics_ok("{\"the loss\": 1}"));
    assert_false(metrics_ok("{\"a\": 1, \"a\": 2}"));
    assert_false(metrics_ok("[1]"));
    assert_false(metrics_ok("{\"a\": 1"));
    assert_true(custom_ok("{\"who\": [\"x\", null]}"));
    assert_false(custom_ok("\"who\""));
    assert_true(metrics_get("{\"loss\": 0.5}", "loss", &value));
    assert_true(value > 0.49 && value < 0.51);
    assert_false(metrics_get("{\"loss\": 0.5}", "acc", &value));
    assert_false(metrics_get("", "loss", &value));
}

/* --- keep ------------------------------------------------------------------------------------- */

#define ITEMS_MAX 32
struct keep_case {
    const char *what;
    const char *rules;
    const char *steps;   /* in the order in which they are saved, an hour apart */
    const char *metrics; /* loss of each, - = none; "" = none has */
    const char *kept;    /* at the end, the newest not protected */
};

static size_t numbers(const char *text, int64_t *ret)
{
    size_t count = 0;
    char *end;

    for (const char *at = text; *at != '\0'; at = *end == ' ' ? end + 1 : end) {
        ret[count++] = strtoll(at, &end, 10);
        assert_true(end != at);
    }
    return count;
}

/* As a job lives: one is saved, what is not wanted goes, but for the newest; at the close that too.
 */
static void live(const struct keep_policies *policies, struct keep_item *held, size_t *count,
                 bool close)
{
    bool keep[ITEMS_MAX];
    size_t left = 0;

    assert_true(keep_choose(policies, held, *count, keep));
    for (size_t i = 0; i < *count; i++)
        if (keep[i] || (!close && i + 1 == *count))
            held[left++] = held[i];
    *count = left;
}

static void check_case(const struct keep_case *c)
{
    struct keep_policies policies;
    struct keep_item held[ITEMS_MAX];
    char metrics[ITEMS_MAX][40], found[256] = "", loss[256];
    int64_t steps[ITEMS_MAX];
    size_t count = 0, saves = numbers(c->steps, steps);
    char *rest = strcpy(loss, c->metrics);

    assert_int_equal(keep_policies_parse(c->rules, &policies, NULL), MUSTER_OK);
    for (size_t i = 0; i < saves; i++) {
        const char *one = strtok_r(NULL, " ", &rest);
        metrics[i][0] = '\0';
        if (one != NULL && *one != '-')
            snprintf(metrics[i], sizeof metrics[i], "{\"loss\": %s}", one);
        held[count++] = (struct keep_item){steps[i], (int64_t)i * HOUR, metrics[i]};
        live(&policies, held, &count, false);
    }
    live(&policies, held, &count, true);
    for (size_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld", i > 0 ? " " : "",
                 (long long)held[i].step);
    if (strcmp(found, c->kept) != 0)
        fail_msg("%s: \"%s\" over %s keeps %s, not %s", c->what, c->rules, c->steps, found,
                 c->kept);
}

static void the_examples_hold(void **state)
{
    static const struct keep_case cases[] = {
        {"keep 2 over 5 saves", "latest 2", "0 1 2 3 4", "", "3 4"},
        {"keep 2, every 4, interval 2, 12 steps", "latest 2; every 4", "0 2 4 6 8 10", "",
         "0 4 8 10"},
        {"keep 0, every 3 steps, every 5 h", "latest 0; every 3; every-ms 18000000",
         "0 1 2 3 4 5 6 7 8", "", "0 3 5 6"},
        {"every 3 counted from the last kept", "near 3", "0 1 2 4 5 8 9 13 14 25", "",
         "0 4 8 13 25"},
        {"no policy", "", "0 1 2", "", "0 1 2"},
        {"keep 0", "latest 0", "0 1 2", "", ""},
        {"keep more than there are", "latest 9", "0 1 2", "", "0 1 2"},
        {"steps counted from 1", "every 4 from 1", "1 3 5 7 9 11", "", "1 5 9"},
        {"the newest 2 of every 3", "every 3 most 2", "0 1 3 6 7 9 10", "", "6 9"},
        {"the nearest to each 10", "closest 10", "0 3 8 12 15 19 21 26 32 36", "", "0 12 21 32 36"},
        {"the nearest to each 10, as a user counts", "closest 10 from 1 most 2",
         "1 4 9 13 16 20 22 27 33 37", "", "33 37"},
        {"given steps", "steps 1 5 7", "0 1 2 5 6", "", "1 5"},
        {"given steps or the newest", "steps 1; latest 1", "0 1 2 5 6", "", "1 6"},
        {"last 2 h", "last-ms 7200000", "0 1 2 3 4", "", "2 3 4"},
        {"best 2, least", "best 2 least loss", "0 1 2 3 4", "5 3 9 1 4", "1 3"},
        {"best 2, greatest", "best 2 greatest loss", "0 1 2 3 4", "5 3 9 1 4", "0 2"},
        {"best 2 of equals: the newer", "best 2 least loss", "0 1 2 3", "1 1 1 1", "2 3"},
        {"best 1, unmeasured gone", "best 1 least loss", "0 1 2 3", "- 2 - 3", "1"},
        {"best 1, unmeasured kept", "best 1 least loss unmeasured", "0 1 2 3", "- 2 - 3", "0 1 2"},
        {"best 0", "best 0 least loss", "0 1", "1 2", ""},
        {"best of another metric", "best 1 least acc", "0 1", "1 2", ""},
        {"best 1 and latest 1", "best 1 least loss; latest 1", "0 1 2 3", "1 0.5 2 3", "1 3"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

/* Whatever the rules: any-of is the union of its rules, and what was given up is not wanted again
 * by what is left (so deleting as the job lives, or at its end, comes to the same wishes). */
static void any_of_is_the_union_and_choosing_again_changes_nothing(void **state)
{
    static const char *const rules[] = {
        "latest 3",  "every 3",         "near 4",         "every-ms 7200000", "best 2 least loss",
        "steps 2 9", "last-ms 3600000", "every 3 most 2", "closest 5",        "closest 4 most 2"};
    const size_t rules_count = sizeof rules / sizeof *rules;
    struct keep_item items[ITEMS_MAX];
    char metrics[ITEMS_MAX][40];
    unsigned seed = 1;

    (void)state;
    for (int run = 0; run < 60; run++) {
        size_t count = 1 + (size_t)rand_r(&seed) % 20;
        int64_t step = 0, at = 0;
        for (size_t i = 0; i < count; i++) {
            step += 1 + rand_r(&seed) % 4;
            at += rand_r(&seed) % (3 * HOUR);
            metrics[i][0] = '\0';
            if (rand_r(&seed) % 4 > 0)
                snprintf(metrics[i], sizeof metrics[i], "{\"loss\": %d}", rand_r(&seed) % 10);
            items[i] = (struct keep_item){step, at, metrics[i]};
        }
        unsigned mask = (unsigned)rand_r(&seed) % ((1u << rules_count) - 1) + 1;
        char text[256] = "";
        bool one[ITEMS_MAX], all[ITEMS_MAX] = {false}, keep[ITEMS_MAX], again[ITEMS_MAX];
        struct keep_policies policies;
        for (size_t r = 0; r < rules_count; r++) {
            if (!(mask >> r & 1))
                continue;
            assert_int_equal(keep_policies_parse(rules[r], &policies, NULL), MUSTER_OK);
            assert_true(keep_choose(&policies, items, count, one));
            for (size_t i = 0; i < count; i++)
                all[i] |= one[i];
            strcat(strcat(text, *text ? "; " : ""), rules[r]);
        }
        assert_int_equal(keep_policies_parse(text, &policies, NULL), MUSTER_OK);
        assert_true(keep_choose(&policies, items, count, keep));
        assert_memory_equal(keep, all, count * sizeof *keep);
        struct keep_item held[ITEMS_MAX];
        size_t left = 0;
        for (size_t i = 0; i < count; i++)
            if (keep[i])
                held[left++] = items[i];
        assert_true(keep_choose(&policies, held, left, again));
        for (size_t i = 0; i < left; i++)
            if (!again[i])
                fail_msg("\"%s\": step %lld was kept, then not", text, (long long)held[i].step);
    }
}

static void numbers_are_written_as_json_has_them(void **state)
{
    static const struct {
        const char *printed, *plain;
    } rows[] = {{"0,25", "0.25"},
                {"-1,5e-07", "-1.5e-07"},
                {"3\xd9\xab"
                 "5",
                 "3.5"},
                {"7", "7"}};
    char text[METRIC_NUMBER_SIZE];
    double back = 0;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strcpy(text, rows[i].printed);
        metrics_plain_number(text);
        assert_string_equal(text, rows[i].plain);
    }
    metrics_number(-0.1, text);
    assert_string_equal(text, "-0.10000000000000001");
    assert_true(metrics_get("{\"a\":1e+300}", "a", &back) && back == 1e300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_as_json_has_them),
        cmocka_unit_test(a_list_survives_as_text),
        cmocka_unit_test(what_is_no_rule_is_named),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(metrics_are_an_object_of_numbers),
        cmocka_unit_test(the_examples_hold),
        cmocka_unit_test(any_of_is_the_union_and_choosing_again_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
