/* Whole clusters without and with faults, and that the checker sees what it must. */
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIXED_SEEDS 180
#define SQLITE_SEEDS 20
#define FRESH_S 4.0

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void without_faults_every_notice_ends_in_a_checkpoint(void **state)
{
    static const unsigned sizes[] = {1, 2, 4, 8, 33};
    struct sim_stats stats = {0};
    uint64_t seed = 0;

    (void)state;
    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++)
        for (int layout = LAYOUT_REPLICATED; layout <= LAYOUT_SHARDED; layout++)
            for (int async = 0; async <= 1; async++)
                for (unsigned count = sizes[size] > 8 ? 1 : 5; count > 0; count--) {
                    struct sim_options options = {.seed = ++seed,
                                                  .healthy = true,
                                                  .nodes = sizes[size],
                                                  .layout = (enum wire_layout)layout,
                                                  .async = async};
                    assert_true(sim_run_told(&options, &stats));
                }
    assert_int_equal(stats.aborts, 0);
    assert_int_equal(stats.not_saved, 0);
    assert_true(stats.commits_of[CAUSE_TERMINATION] > 50);
    assert_true(stats.commits_of[CAUSE_OPERATOR] > 5);
    assert_true(stats.commits_of[CAUSE_POLICY] > 50);
}

static void the_fixed_seeds_break_nothing_and_meet_everything(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned seed = 1; seed <= FIXED_SEEDS; seed++) {
        struct sim_options options = {.seed = seed, .async = -1};
        assert_true(sim_run_told(&options, &stats));
    }
    sim_stats_print(&stats, stdout);
    for (unsigned fault = 1; fault < FAULT_COUNT; fault++)
        if (stats.faults[fault] == 0)
            fail_msg("no seed met the fault '%s'", sim_fault_name(fault));
    for (unsigned type = WIRE_HELLO; type <= WIRE_MANIFEST_CHUNK; type++)
        if (wire_type_name(type)[0] != '?' && (wire_is_up(type) || type == WIRE_EVENT) &&
            stats.messages[type] == 0)
            fail_msg("no seed sent a %s", wire_type_name(type));
    assert_true(stats.snapshots > 0 && stats.thaws > 0 && stats.unchanged > 0);
    assert_true(stats.aborts_by[MUSTER_E_TIMEOUT] > 0 && stats.aborts_by[MUSTER_E_PEER] > 0);
}

/* What broker/store hands out at each restart is compared with what was written. */
static void the_real_store_is_a_disk_that_forgets_nothing(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned seed = 1; seed <= SQLITE_SEEDS; seed++) {
        struct sim_options options = {.seed = seed, .async = -1, .sqlite = true};
        assert_true(sim_run_told(&options, &stats));
    }
    assert_true(stats.broker_starts > SQLITE_SEEDS + 10);
}

/* The seeds of the fresh set differ from run to run; the first is printed. */
static void fresh_seeds_break_nothing(void **state)
{
    struct sim_stats stats = {0};
    uint64_t base = (uint64_t)time(NULL) * 1000 + (uint64_t)(getpid() % 1000);
    double until = now_s() + FRESH_S;

    (void)state;
    printf("fresh seeds from %llu\n", (unsigned long long)base);
    fflush(stdout);
    for (uint64_t seed = base; now_s() < until; seed++) {
        struct sim_options options = {.seed = seed, .async = -1};
        assert_true(sim_run_told(&options, &stats));
    }
    printf("%llu fresh seeds\n", (unsigned long long)stats.seeds);
}

static char *story_of(uint64_t seed)
{
    struct sim_options options = {.seed = seed, .async = -1};
    struct sim_stats stats = {0};
    struct sim_failure failure;
    char *text = NULL;
    size_t size = 0;

    options.story = open_memstream(&text, &size);
    assert_non_null(options.story);
    sim_run(&options, &stats, &failure);
    fclose(options.story);
    return text;
}

static void one_seed_tells_one_story(void **state)
{
    (void)state;
    for (uint64_t seed = 11; seed < 15; seed++) {
        char *first = story_of(seed), *second = story_of(seed);
        assert_string_equal(first, second);
        assert_true(strlen(first) > 1000);
        free(first);
        free(second);
    }
}

/* --- must-fail controls ----------------------------------------------------------------------------- */

static void a_slow_path_without_its_guard_is_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_NO_GUARD, 50, &failure));
    assert_string_equal(failure.invariant, "I2");
}

static void publishing_before_the_transaction_is_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_PUBLISH_FIRST, 5, &failure));
    assert_string_equal(failure.invariant, "I3");
}

static void heartbeats_without_seq_are_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_SILENT_HEAD, 300, &failure));
}

static void half_a_transaction_is_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_TORN_BATCH, 600, &failure));
}

static void a_shard_of_another_step_is_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_SAVES_LATE, 50, &failure));
    assert_string_equal(failure.invariant, "I1");
}

/* test_sim_unequal.c is the other half: without the equal-step test the same seeds break I1. */
static void a_shard_that_names_another_step_is_never_taken(void **state)
{
    struct sim_failure failure;

    (void)state;
    if (sim_find_failure(MUTANT_SAVES_LATE_SAYS_SO, 40, &failure))
        assert_string_not_equal(failure.invariant, "I1");
}

static void a_request_that_is_taken_twice_is_seen(void **state)
{
    struct sim_failure failure;

    (void)state;
    assert_true(sim_find_failure(MUTANT_NO_DEDUPLICATION, 2000, &failure));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_every_notice_ends_in_a_checkpoint),
        cmocka_unit_test(the_fixed_seeds_break_nothing_and_meet_everything),
        cmocka_unit_test(the_real_store_is_a_disk_that_forgets_nothing),
        cmocka_unit_test(fresh_seeds_break_nothing),
        cmocka_unit_test(one_seed_tells_one_story),
        cmocka_unit_test(a_slow_path_without_its_guard_is_seen),
        cmocka_unit_test(publishing_before_the_transaction_is_seen),
        cmocka_unit_test(heartbeats_without_seq_are_seen),
        cmocka_unit_test(half_a_transaction_is_seen),
        cmocka_unit_test(a_shard_of_another_step_is_seen),
        cmocka_unit_test(a_shard_that_names_another_step_is_never_taken),
        cmocka_unit_test(a_request_that_is_taken_twice_is_seen),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
