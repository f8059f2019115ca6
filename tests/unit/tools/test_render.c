/* Tables: whole for files and pipes, without their least columns on a narrow terminal. Times: with
 * their date and zone. */
#include "tools/paint.c"   /* NOLINT(bugprone-suspicious-include) */
#include "tools/render.c"  /* NOLINT(bugprone-suspicious-include) */
#include "tools/written.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static const char *const titles[] = {"JOB", ">STEP", "STATE", ">AGE"};
static const char *const spare[] = {"STEP", "AGE", NULL};

static char *printed(int width)
{
    static const char *const cells[] = {"words", "47",  "running", "12 s",
                                        "a",     "400", "ended",   "3 s"};
    struct table table;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    table_init(&table, titles, 4);
    table.spare = spare;
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        table_add(&table, cells[i]);
    table_print(&table, out, width);
    fclose(out);
    return text;
}

static void is_printed(int width, const char *expected)
{
    char *text = printed(width);

    assert_string_equal(text, expected);
    free(text);
}

static const char whole[] = "JOB    STEP  STATE     AGE\n"
                            "words    47  running  12 s\n"
                            "a       400  ended     3 s\n";

static void a_table_that_fits_or_that_no_terminal_reads_is_whole(void **state)
{
    (void)state;
    is_printed(0, whole);
    is_printed(26, whole);
}

static void a_narrow_terminal_gets_the_columns_that_matter(void **state)
{
    (void)state;
    is_printed(25, "JOB    STATE     AGE\nwords  running  12 s\na      ended     3 s\n");
    is_printed(19, "JOB    STATE\nwords  running\na      ended\n");
    is_printed(5, "JOB    STATE\nwords  running\na      ended\n"); /* no further */
}

/* A row is put together in memory that grows: it is as wide as its texts ask for. */
static void a_wide_row_is_padded_by_what_is_seen_of_its_cells(void **state)
{
    static const char *const two[] = {">N", "TEXT"};
    char wide[1001], expected[8192], *text = NULL;
    struct table table;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    for (size_t i = 0; i < sizeof wide - 1; i++)
        wide[i] = "\xc3\xa4"[i % 2];
    wide[sizeof wide - 1] = '\0';
    table_init(&table, two, 2);
    table_add(&table, "\xc3\xa4");
    table_add(&table, wide);
    table_add(&table, wide);
    table_add(&table, "");
    table_add(&table, "a\nb");
    table_add(&table, "\xc3\xa4\x1b");
    table_print(&table, out, 0);
    fclose(out);
    snprintf(expected, sizeof expected, "%*s  TEXT\n%*s\xc3\xa4  %s\n%s  -\n%*sa b  \xc3\xa4 \n",
             500, "N", 499, "", wide, wide, 497, "");
    assert_string_equal(text, expected);
    free(text);
}

static void a_state_is_painted_and_the_padding_is_not(void **state)
{
    char *text;

    (void)state;
    paint_on = true;
    text = printed(0);
    paint_on = false;
    assert_string_equal(text, "\017JOB\001    \017STEP\001  \017STATE\001     \017AGE\001\n"
                              "words    47  \002running\001  12 s\n"
                              "a       400  ended     3 s\n");
    free(text);
}

static void a_number_is_all_its_digits(void **state)
{
    (void)state;
    assert_string_equal(render_number(0).text, "0");
    assert_string_equal(render_number(10).text, "10");
    assert_string_equal(render_number(INT64_MAX).text, "9223372036854775807");
    assert_string_equal(render_number(-1).text, "-");
    assert_string_equal(render_number(INT64_MIN).text, "-");
    assert_string_equal(render_count(0).text, "-");
}

/* Of a log that others send from another time zone, or that is read the next day. */
static void a_time_has_its_zone_and_its_date_unless_it_is_of_today(void **state)
{
    const int64_t second = INT64_C(1767653999) * 1000; /* 2026-01-05 22:59:59 UTC */

    (void)state;
    setenv("TZ", "CET-1", 1);
    tzset();
    assert_string_equal(render_zone(second).text, "UTC+01:00");
    assert_string_equal(render_stamp(second).text, "2026-01-05 23:59:59");
    assert_string_equal(render_clock(second, second - 3600000).text, "23:59:59");
    assert_string_equal(render_clock(second, second + 1000).text, "2026-01-05 23:59:59");
    setenv("TZ", "NST3:30", 1);
    tzset();
    assert_string_equal(render_zone(second).text, "UTC-03:30");
    assert_string_equal(render_clock(second, second + 1000).text, "19:29:59");
}

static void a_line_has_no_end_of_line_within(void **state)
{
    (void)state;
    assert_string_equal(render_line("a\nb\tc\n").text, "a b c ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_that_fits_or_that_no_terminal_reads_is_whole),
        cmocka_unit_test(a_line_has_no_end_of_line_within),
        cmocka_unit_test(a_wide_row_is_padded_by_what_is_seen_of_its_cells),
        cmocka_unit_test(a_state_is_painted_and_the_padding_is_not),
        cmocka_unit_test(a_number_is_all_its_digits),
        cmocka_unit_test(a_narrow_terminal_gets_the_columns_that_matter),
        cmocka_unit_test(a_time_has_its_zone_and_its_date_unless_it_is_of_today),
    };

    return cmocka_run_group_tests_name("render", tests, NULL, NULL);
}
