/* When this process began: node/started.h. */
#include "node/clock.h"
#include "node/started.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STAT(name, start) \
    "7 (" name ") R 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 " start " 3133440 412 18446"

static void the_start_is_read_behind_any_name_and_never_too_early(void **state)
{
    (void)state;
    assert_int_equal(started_parse_ms(STAT("cat", "123103"), 100), 1231040);
    assert_int_equal(started_parse_ms(STAT("a) b (c d", "99"), 1000), 100);
}

static void what_cannot_be_read_is_not_known(void **state)
{
    (void)state;
    assert_int_equal(started_parse_ms("", 100), 0);
    assert_int_equal(started_parse_ms("7 (cat) R 1 7", 100), 0);
    assert_int_equal(started_parse_ms(STAT("cat", "0"), 100), 0);
    assert_int_equal(started_parse_ms(STAT("cat", "18446744073709551615"), 100), 0);
    assert_int_equal(started_parse_ms(STAT("cat", "123103"), 0), 0);
}

static void only_the_first_node_of_a_process_is_as_old_as_it(void **state)
{
    int64_t now = clock_ms(CLOCK_BOOTTIME), start = started_first_node_boot_ms();

    (void)state;
    assert_in_range(start, 1, now + 10);
    assert_int_equal(started_first_node_boot_ms(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_start_is_read_behind_any_name_and_never_too_early),
        cmocka_unit_test(what_cannot_be_read_is_not_known),
        cmocka_unit_test(only_the_first_node_of_a_process_is_as_old_as_it),
    };

    return cmocka_run_group_tests_name("started", tests, NULL, NULL);
}
