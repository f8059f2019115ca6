/* Worlds in which each host has a relay; -O2 and without sanitizers, as plain_fixed_set.c. Bundles
 * are lost, late, damaged and come twice as one; relays die and stand still. Must-fail control: a
 * relay that mixes up its ranks. */
#include "tests/sim/sim_often.h"
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 600

static struct sim_options world(uint64_t seed)
{
    return (struct sim_options){.seed = seed,
                                .async = -1,
                                .relays = true,
                                .focused = seed % 3 == 0,
                                .put_back = seed % 11 == 0,
                                .lasting = seed % 4 == 1};
}

static void relays_break_nothing(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_options options = world(seed);
        assert_true(sim_run_told(&options, &stats));
    }
    sim_stats_print(&stats, stdout);
    sim_expect_often("fault", sim_fault_name(FAULT_RELAY_DIES), stats.faults[FAULT_RELAY_DIES]);
    sim_expect_often("fault", sim_fault_name(FAULT_RELAY_STALLS), stats.faults[FAULT_RELAY_STALLS]);
    sim_expect_often("bundles", "cut off", stats.bundles_cut);
    assert_int_equal(sim_rare(), 0);
    assert_true(stats.bundled > stats.bundles + stats.bundles / 4);
}

static void a_relay_that_mixes_up_its_ranks_is_seen(void **state)
{
    struct sim_options options = {
        .async = -1, .relays = true, .mutation = MUTANT_RANKS_MIXED_UP, .nodes = 4};
    struct sim_stats stats = {0};
    struct sim_failure failure;

    (void)state;
    for (options.seed = 1; options.seed <= 50; options.seed++)
        if (!sim_run(&options, &stats, &failure)) {
            sim_bug_seen(&failure, options.seed);
            return;
        }
    fail_msg("no seed of 50 sees it");
}

#define BUGS_MIN 1 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relays_break_nothing),
        cmocka_unit_test(a_relay_that_mixes_up_its_ranks_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
