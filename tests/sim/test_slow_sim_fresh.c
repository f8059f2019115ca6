/* Seeds that nobody has run before, sanitized. One that fails is kept as a line of regressions.txt. */
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void fresh_seeds_break_nothing(void **state)
{
    (void)state;
    assert_true(sim_run_fresh(false, 15.0));
}

static void fresh_seeds_break_nothing_on_the_real_store(void **state)
{
    (void)state;
    assert_true(sim_run_fresh(true, 10.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_seeds_break_nothing),
        cmocka_unit_test(fresh_seeds_break_nothing_on_the_real_store),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
