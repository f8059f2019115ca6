/* Must-fail control: a database that was put back to an older copy, and what knows it taken away. The seeds are those
 * that found it. The mutated file stands in for that of the archive. What a node says again has its controls in
 * unit.member_again: since a node that has told all leaves a silent broker after 5 s, no world is known that breaks
 * without it. */
#include "broker/core/state.h"

bool lineage_tells(const struct job *job, uint64_t start_id, uint64_t seq);

#define lineage_holds lineage_tells
#include "broker/core/lineage.c" /* NOLINT(bugprone-suspicious-include) */
#undef lineage_holds

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static bool believes;

/* The broker takes whatever a node has heard for its own. */
bool lineage_holds(const struct job *job, uint64_t start_id, uint64_t seq)
{
    return believes || lineage_tells(job, start_id, seq);
}

static int nothing_is_mutated(void **state)
{
    (void)state;
    believes = false;
    return 0;
}

static void expect(uint64_t seed, const char *invariant)
{
    struct sim_options options = {.seed = seed, .async = -1};
    struct sim_stats stats = {0};
    struct sim_failure failure;

    assert_false(sim_run(&options, &stats, &failure));
    assert_string_equal(failure.invariant, invariant);
}

static void events_of_a_lost_history_that_are_believed_are_seen(void **state)
{
    (void)state;
    believes = true;
    expect(500090552, "I9");
    expect(500027972, "I5");
}

/* A history that was lost is forgotten with the launches that had it: of a later one all is asked again. */
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
        cmocka_unit_test_setup(events_of_a_lost_history_that_are_believed_are_seen,
                               nothing_is_mutated),
        cmocka_unit_test_setup(what_a_later_launch_does_is_looked_at, nothing_is_mutated),
        cmocka_unit_test_setup(without_that_the_same_worlds_break_nothing, nothing_is_mutated),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
