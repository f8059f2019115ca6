/* Worlds whose hosts lose their power, and what their ranks had not synced; -O2 and without
 * sanitizers, as plain_fixed_set.c. What a rank really syncs, and in which order, is held by
 * faults/test_power_cut.c; here it is what the others make of what it says. Must-fail controls:
 * ranks that say it before. */
#include "tests/sim/sim_often.h"
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 600
#define ON_SQLITE 20 /* of so many one */

static struct sim_options world(uint64_t seed)
{
    return (struct sim_options){.seed = seed,
                                .async = -1,
                                .power_cuts = true,
                                .focused = seed % 3 == 0,
                                .keeps = seed % 2 == 0 ? SIM_WITH : SIM_BY_SEED,
                                .put_back = seed % 7 == 0,
                                .sqlite = seed % ON_SQLITE == 0,
                                .lasting = seed % 4 == 1};
}

/* R5.8, R5.12, R12.7: SAVED, MANIFEST_DONE and DELETED come behind a sync. */
static void power_cuts_break_nothing(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    sim_run_worlds(world, SEEDS, &stats);
    sim_expect_often("fault", sim_fault_name(FAULT_HOST_CUT), stats.faults[FAULT_HOST_CUT]);
    sim_expect_often("taken back", "shards", stats.cut_shards);
    assert_int_equal(sim_rare(), 0);
    assert_true(stats.cut_names >= 10 && stats.cut_deletions >= 10);
}

static void expect_seen(enum sim_mutation mutation, unsigned count, const char *invariant,
                        const char *words)
{
    const struct sim_options options = {
        .async = -1, .power_cuts = true, .keeps = SIM_WITH, .mutation = mutation};

    if (!sim_find_said(&options, count, invariant, words))
        fail_msg("no seed of %u breaks %s", count, invariant);
}

static void a_shard_that_is_told_before_it_is_synced_is_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_SAVED_UNSYNCED, 100, "I1", "shard is not there whole");
}

static void a_name_that_is_told_before_it_is_synced_is_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_NAMED_UNSYNCED, 300, "I9", "which is not there whole");
}

static void files_that_go_before_their_name_does_are_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_REMOVED_UNSYNCED, 600, "I11", "lists, and rank");
}

/* The same bug, which is seen sooner if DELETED was taken before the power went. */
static void a_deletion_that_is_told_before_it_is_synced_is_seen(void **state)
{
    (void)state;
    expect_seen(MUTANT_REMOVED_UNSYNCED, 600, "I11", "lists, and was called deleted");
}

#define BUGS_MIN 4 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cuts_break_nothing),
        cmocka_unit_test(a_shard_that_is_told_before_it_is_synced_is_seen),
        cmocka_unit_test(a_name_that_is_told_before_it_is_synced_is_seen),
        cmocka_unit_test(files_that_go_before_their_name_does_are_seen),
        cmocka_unit_test(a_deletion_that_is_told_before_it_is_synced_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
