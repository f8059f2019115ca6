/* Worlds in which each host has a relay; -O2 and without sanitizers, as plain_fixed_set.c. Bundles
 * are lost, late, damaged and come twice as one; relays die, stand still and leave out half of one.
 * Must-fail controls: a relay that mixes up its ranks, and half a bundle that is taken. */
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
    sim_run_worlds(world, SEEDS, &stats);
    sim_expect_often("fault", sim_fault_name(FAULT_RELAY_DIES), stats.faults[FAULT_RELAY_DIES]);
    sim_expect_often("fault", sim_fault_name(FAULT_RELAY_STALLS), stats.faults[FAULT_RELAY_STALLS]);
    sim_expect_often("bundles", "cut off", stats.bundles_cut);
    sim_expect_often("bundles", "halved", stats.bundles_halved);
    assert_int_equal(sim_rare(), 0);
    assert_true(stats.bundled > stats.bundles + stats.bundles / 4);
}

static void is_seen(enum sim_mutation mutation)
{
    struct sim_options options = {.async = -1, .relays = true, .mutation = mutation, .nodes = 4};
    struct sim_stats stats = {0};
    struct sim_failure failure;

    for (options.seed = 1; options.seed <= 50; options.seed++)
        if (!sim_run(&options, &stats, &failure)) {
            sim_bug_seen(&failure, options.seed);
            return;
        }
    fail_msg("no seed of 50 sees it");
}

static void a_relay_that_mixes_up_its_ranks_is_seen(void **state)
{
    (void)state;
    is_seen(MUTANT_RANKS_MIXED_UP);
}

static void half_a_bundle_that_is_taken_is_seen(void **state)
{
    (void)state;
    is_seen(MUTANT_HALF_A_BUNDLE);
}

#define BUGS_MIN 2 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relays_break_nothing),
        cmocka_unit_test(a_relay_that_mixes_up_its_ranks_is_seen),
        cmocka_unit_test(half_a_bundle_that_is_taken_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
