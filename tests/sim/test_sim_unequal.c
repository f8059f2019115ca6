/* Must-fail control: a broker whose commit rule forgets the equal-step test (save.c with
 * tests/mutants/unequal.patch stands in for the one of the archive) commits a checkpoint of two
 * steps, and the checker sees it. */
#include "mutants/unequal.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* R5.11 */
static void a_commit_without_the_equal_step_test_is_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_SAVES_LATE_SAYS_SO, 40, &failure));
    assert_string_equal(failure.invariant, "I1");
}

#define BUGS_MIN 1 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_without_the_equal_step_test_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
