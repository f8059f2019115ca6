/* Numbers that come as text: the whole text counts, and the bounds belong to the range. */
#include "schema/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_whole_number_within_its_bounds_is_read(void **state)
{
    static const struct {
        const char *text;
        int64_t least, most, number;
    } cases[] = {
        {"0", 0, 0, 0},
        {"007", 1, 7, 7},
        {" +12", 1, 12, 12},
        {"-3", -3, 0, -3},
        {"9223372036854775807", 0, INT64_MAX, INT64_MAX},
    };
    int64_t number = -1;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(number_read(cases[i].text, cases[i].least, cases[i].most, &number));
        assert_int_equal(number, cases[i].number);
    }
}

static void what_is_no_such_number_leaves_the_old_one(void **state)
{
    static const struct {
        const char *text;
        int64_t least, most;
    } cases[] = {
        {"", 0, 9},   {" ", 0, 9},   {"x", 0, 9},
        {"1 ", 0, 9}, {"1.5", 0, 9}, {"0x1", 0, 9},
        {"0", 1, 9},  {"10", 1, 9},  {"9223372036854775808", 0, INT64_MAX},
        {"-1", 0, 9},
    };
    int64_t number = 77;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_false(number_read(cases[i].text, cases[i].least, cases[i].most, &number));
    assert_int_equal(number, 77);
}

static void digits_alone_are_without_blanks_and_signs(void **state)
{
    int64_t number = 77;

    (void)state;
    assert_false(number_read_digits(" 1", 0, 9, &number));
    assert_false(number_read_digits("+1", 0, 9, &number));
    assert_false(number_read_digits("-1", -9, 9, &number));
    assert_false(number_read_digits("", 0, 9, &number));
    assert_int_equal(number, 77);
    assert_true(number_read_digits("01", 1, 9, &number));
    assert_int_equal(number, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_number_within_its_bounds_is_read),
        cmocka_unit_test(what_is_no_such_number_leaves_the_old_one),
        cmocka_unit_test(digits_alone_are_without_blanks_and_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
