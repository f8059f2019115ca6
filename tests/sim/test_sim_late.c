/* Ranks that start late, while the others of their launch are told to end. The must-fail control: a
 * broker that knows no late rank lets it open a generation, for peers that have left. */
#include "broker/core/dispatch.h"

static bool mutated;

bool unmutated_rank_is_late(const struct core *core, const struct job *job, uint64_t rank,
                            uint64_t age_ms);
#define generation_rank_is_late unmutated_rank_is_late
#include "broker/core/state/facts.c" /* NOLINT(bugprone-suspicious-include) */
#undef generation_rank_is_late

bool generation_rank_is_late(const struct core *core, const struct job *job, uint64_t rank,
                             uint64_t age_ms)
{
    return !mutated && unmutated_rank_is_late(core, job, rank, age_ms);
}

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct sim_options starting = {.async = -1, .world = "a notice while ranks start"};

static void nobody_opens_a_generation_for_a_launch_that_has_ended(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    mutated = false;
    for (unsigned seed = 1; seed <= 120; seed++) {
        struct sim_options options = starting;
        options.seed = seed;
        assert_true(sim_run_told(&options, &stats));
    }
}

static void a_late_rank_that_opens_one_is_seen(void **state)
{
    (void)state;
    mutated = true;
    assert_true(sim_find_broken(&starting, 60, "late"));
}

#define BUGS_MIN 1 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_opens_a_generation_for_a_launch_that_has_ended),
        cmocka_unit_test(a_late_rank_that_opens_one_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
