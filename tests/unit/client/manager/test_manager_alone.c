/* When a process without a broker saves by time and cost. */
#include "client/manager/manager_alone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HOUR ((int64_t)3600 * 1000)

static struct save_policies rules(const char *text)
{
    struct save_policies parsed;

    assert_int_equal(save_policies_parse(text, &parsed, NULL), MUSTER_OK);
    return parsed;
}

/* Ms from now on until one is due, by steps of 1 ms; at most `most`. */
static int64_t due_after(const struct alone_pace *pace, const char *text, int64_t now_ms,
                         int64_t most)
{
    const struct save_policies parsed = rules(text);

    for (int64_t ms = 0; ms <= most; ms++)
        if (alone_pace_due(pace, &parsed, now_ms + ms))
            return ms;
    return -1;
}

static void a_period_counts_from_the_last_save_also_of_an_earlier_life(void **state)
{
    struct alone_pace pace = alone_pace_begin(5000, -1);

    (void)state;
    assert_int_equal(due_after(&pace, "period-ms 200", 5000, 1000), 200);
    assert_int_equal(due_after(&pace, "continuous-ms 0", 5000, 1000), 0);
    alone_pace_saved(&pace, 5300, 50);
    assert_int_equal(due_after(&pace, "period-ms 200", 5350, 1000), 150);
    assert_int_equal(due_after(&pace, "period-ms 900; period-ms 200", 5350, 1000),
                     150); /* any-of */
    pace = alone_pace_begin(100, 150);
    assert_int_equal(due_after(&pace, "period-ms 200", 100, 1000), 50);
    assert_int_equal(due_after(&pace, "", 100, 1000), -1);
}

static void cost_is_measured_by_the_first_save(void **state)
{
    struct alone_pace pace = alone_pace_begin(0, -1);

    (void)state;
    assert_int_equal(due_after(&pace, "overhead-ppm 20000", 1, 10), 0);
    assert_int_equal(due_after(&pace, "young-daly", 1, 10), 0);
    alone_pace_saved(&pace, 0, 100);
    assert_int_equal(due_after(&pace, "overhead-ppm 20000", 0, 9000), 5000); /* 2 % */
    alone_pace_saved(&pace, 0, 0); /* a save that costs nothing is no reason to do nothing else */
    alone_pace_saved(&pace, 0, 0);
    assert_int_equal(due_after(&pace, "overhead-ppm 20000", 0, 9000), 1700);
    pace = alone_pace_begin(0, -1);
    alone_pace_saved(&pace, 0, 1000);
    assert_false(alone_pace_due(
        &pace, &(struct save_policies){.rules = {{SAVE_RULE_YOUNG_DALY, 0}}, .count = 1},
        HOUR / 10)); /* of a job that is interrupted once a day */
    assert_true(alone_pace_due(
        &pace, &(struct save_policies){.rules = {{SAVE_RULE_YOUNG_DALY, 0}}, .count = 1},
        HOUR / 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_period_counts_from_the_last_save_also_of_an_earlier_life),
        cmocka_unit_test(cost_is_measured_by_the_first_save),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
