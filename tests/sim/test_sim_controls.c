/* Must-fail controls: one thing is broken on purpose, and the checker turns red. Each invariant has
 * one. What is broken inside a core is in test_sim_members.c, test_sim_unequal.c,
 * test_sim_takeover.c and plain_claims.c. */
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static void expect_broken(enum sim_mutation mutation, unsigned count, const char *invariant)
{
    struct sim_options options = {.async = -1, .mutation = mutation};

    if (!sim_find_broken(&options, count, invariant))
        fail_msg("no seed of %u breaks %s", count, invariant);
}

static void a_slow_path_without_its_guard_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_NO_GUARD, 50, "I2");
}

/* R2.1 */
static void publishing_before_the_transaction_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_PUBLISH_FIRST, 5, "I3");
}

static void half_a_transaction_is_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_TORN_BATCH, 600, &failure));
}

static void a_shard_of_another_step_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_SAVES_LATE, 50, "I1");
}

/* test_sim_unequal.c is the other half: without the equal-step test the same seeds break I1. */
static void a_shard_that_names_another_step_is_never_taken(void **state)
{
    struct sim_options options = {.async = -1, .mutation = MUTANT_SAVES_LATE_SAYS_SO};

    (void)state;
    assert_false(sim_find_broken(&options, 40, "I1"));
}

static void a_round_that_could_be_decided_again_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_FORGETS_DECISION, 300, "I4");
}

static void bounds_without_a_clock_are_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_NO_TIMERS, 100, "I5");
}

static void an_epoch_that_is_used_again_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_FORGETS_EPOCH, 50, "I6");
}

static void a_second_open_round_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_FORGETS_ROUND, 500, "I7");
}

static void acting_behind_a_gap_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_NO_ORDER, 100, "I8");
}

static void resuming_from_an_older_checkpoint_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_FORGETS_CHECKPOINT, 300, "I9");
}

static void an_error_that_is_not_the_first_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_WRONG_ERROR, 300, "I10");
}

static void a_shard_that_is_deleted_too_early_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_DISCARDS_EARLY, 100, "I11");
}

static void a_job_that_never_ends_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_NEVER_AGAIN, 20, "liveness");
}

static void an_answer_that_a_crash_takes_back_is_seen(void **state)
{
    (void)state;
    expect_broken(MUTANT_LOSES_BATCH, 200, "I12");
}

static void a_power_cut_without_a_sync_is_seen(void **state)
{
    struct sim_options options = {.async = -1, .sqlite = true, .mutation = MUTANT_NO_SYNC};

    (void)state;
    if (!sim_find_broken(&options, 50, "store"))
        fail_msg("synchronous=OFF was seen by nobody");
}

#define BUGS_MIN 15 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_path_without_its_guard_is_seen),
        cmocka_unit_test(publishing_before_the_transaction_is_seen),
        cmocka_unit_test(half_a_transaction_is_seen),
        cmocka_unit_test(a_shard_of_another_step_is_seen),
        cmocka_unit_test(a_shard_that_names_another_step_is_never_taken),
        cmocka_unit_test(a_round_that_could_be_decided_again_is_seen),
        cmocka_unit_test(bounds_without_a_clock_are_seen),
        cmocka_unit_test(an_epoch_that_is_used_again_is_seen),
        cmocka_unit_test(a_second_open_round_is_seen),
        cmocka_unit_test(acting_behind_a_gap_is_seen),
        cmocka_unit_test(resuming_from_an_older_checkpoint_is_seen),
        cmocka_unit_test(an_error_that_is_not_the_first_is_seen),
        cmocka_unit_test(a_shard_that_is_deleted_too_early_is_seen),
        cmocka_unit_test(a_job_that_never_ends_is_seen),
        cmocka_unit_test(an_answer_that_a_crash_takes_back_is_seen),
        cmocka_unit_test(a_power_cut_without_a_sync_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
