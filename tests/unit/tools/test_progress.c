/* What is told of long work: how much, how fast, how long. */
#include "tools/progress.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void is_told(enum progress_unit unit, int64_t done, int64_t all, int64_t passed_ms,
                    const char *expected)
{
    char text[160];

    progress_text(text, sizeof text, unit, done, all, passed_ms);
    assert_string_equal(text, expected);
}

static void amount_rate_and_time_left_are_told(void **state)
{
    (void)state;
    is_told(PROGRESS_BYTES, 2000000000, 8000000000, 4000,
            "2.0 GB of 8.0 GB, 500.0 MB/s, 12.0 s left");
    is_told(PROGRESS_COUNT, 250, 1000, 5000, "250 of 1000, 50/s, 15.0 s left");
    is_told(PROGRESS_COUNT, 1000, 1000, 5000, "1000 of 1000, 200/s, 0 ms left");
}

static void without_a_rate_there_is_no_time_left(void **state)
{
    (void)state;
    is_told(PROGRESS_COUNT, 0, 1000, 0, "0 of 1000");
    is_told(PROGRESS_COUNT, 1, 1000, 5000, "1 of 1000"); /* less than one a second */
}

static void what_takes_less_than_a_second_is_not_told(void **state)
{
    struct progress progress;

    (void)state;
    progress_begin(&progress, "verify", PROGRESS_COUNT, 10);
    progress_at(&progress, 5);
    assert_false(progress.shown);
    progress.next_ms = 0; /* a second has passed */
    progress_at(&progress, 6);
    assert_true(progress.shown);
    assert_true(progress.next_ms > 0);
    progress_end(&progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amount_rate_and_time_left_are_told),
        cmocka_unit_test(without_a_rate_there_is_no_time_left),
        cmocka_unit_test(what_takes_less_than_a_second_is_not_told),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
