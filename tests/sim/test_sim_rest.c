/* Must-fail control: a broker that takes a silent node for lost only after three minutes. Its peers
 * wait in a step, which no bound of a single wait sees; that the job does not come to rest is. The
 * mutated file stands in for that of the archive. */
#include "broker/core/dispatch.h"

#undef LOST_MS
#define LOST_MS 180000
#include "broker/core/members/roster.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_job_that_does_not_come_to_rest_is_seen(void **state)
{
    struct sim_options options = {.async = 0, .nodes = 2};

    (void)state;
    assert_true(sim_find_broken(&options, 400, "rest"));
}

#define BUGS_MIN 1 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_does_not_come_to_rest_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
