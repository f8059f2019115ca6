/* Must-fail controls: a database that was restored from an older copy, and what knows it taken
 * away. The mutated file stands in for that of the archive. */
#include "broker/core/dispatch.h"

bool heard_here(const struct job *job, uint64_t start_id, uint64_t seq);

#define lineage_holds heard_here
#include "broker/core/members/hello.c" /* NOLINT(bugprone-suspicious-include) */
#undef lineage_holds

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static bool all_is_believed;

/* Events of a lost history are taken for this one's. */
bool heard_here(const struct job *job, uint64_t start_id, uint64_t seq)
{
    return all_is_believed || lineage_holds(job, start_id, seq);
}

static int nothing_is_mutated(void **state)
{
    (void)state;
    all_is_believed = false;
    return 0;
}

/* A history that was lost is forgotten with the launches that had it: of a later one all is asked
 * again. */
static void what_a_later_launch_does_is_looked_at(void **state)
{
    struct sim_failure failure;

    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct sim_options options = {.seed = seed,
                                      .async = -1,
                                      .put_back = true,
                                      .keeps = SIM_WITH,
                                      .mutation = MUTANT_DELETES_IN_PLACE};
        struct sim_stats stats = {0};
        if (!sim_run(&options, &stats, &failure) && stats.launches_anew > 0 &&
            strstr(failure.text, "' lists, and") != NULL)
            return;
    }
    fail_msg(
        "files that go before their checkpoint's name were seen in no launch after a put-back");
}

/* R11.6 */
static void a_launch_that_goes_on_beside_newer_ones_is_seen(void **state)
{
    const struct sim_options options = {
        .async = -1, .put_back = true, .keeps = SIM_WITH, .mutation = MUTANT_DOES_NOT_LOOK};

    (void)state;
    assert_true(sim_find_broken(&options, 400, "R11.6"));
}

#define HASTY_SEEDS 400
#define HASTY_IMPORTS_MIN 50

static bool hasty_world(uint64_t seed, struct sim_stats *stats, struct sim_failure *failure)
{
    return sim_run(
        &(struct sim_options){
            .seed = seed, .async = -1, .put_back = true, .hasty = true, .keeps = SIM_WITH},
        stats, failure);
}

/* R10.2 */
static void a_launch_of_a_lost_history_that_goes_on_is_seen(void **state)
{
    const struct sim_options options = {.async = -1, .put_back = true};

    (void)state;
    all_is_believed = true;
    assert_true(sim_find_broken(&options, 1500, "liveness"));
}

static void imports_beside_a_job_that_runs_break_nothing(void **state)
{
    struct sim_stats stats = {0};
    struct sim_failure failure;

    (void)state;
    for (uint64_t seed = 1; seed <= HASTY_SEEDS; seed++)
        if (!hasty_world(seed, &stats, &failure))
            fail_msg("seed %llu --put-back --hasty --keeps 1: %s", (unsigned long long)seed,
                     failure.text);
    printf("%llu imports beside jobs that run\n", (unsigned long long)stats.imports);
    assert_true(stats.imports >= HASTY_IMPORTS_MIN);
}

static void without_that_the_same_worlds_break_nothing(void **state)
{
    static const uint64_t seeds[] = {500090552, 500027972, 500090545};
    struct sim_stats stats = {0};

    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        assert_true(sim_run_told(&(struct sim_options){.seed = seeds[i], .async = -1}, &stats));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_launch_that_goes_on_beside_newer_ones_is_seen, nothing_is_mutated),
        cmocka_unit_test_setup(what_a_later_launch_does_is_looked_at, nothing_is_mutated),
        cmocka_unit_test_setup(a_launch_of_a_lost_history_that_goes_on_is_seen, nothing_is_mutated),
        cmocka_unit_test_setup(imports_beside_a_job_that_runs_break_nothing, nothing_is_mutated),
        cmocka_unit_test_setup(without_that_the_same_worlds_break_nothing, nothing_is_mutated),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
