/* Must-fail controls: cores that keep no margin before a deadline. Each save still ends before it,
 * where nothing is slow. The mutated files stand in for those of the archive. */
#include "broker/core/state/state.h"
#include "node/core/member_state.h"

static int64_t nodes_ms, brokers_ms;

#undef MARGIN_MS
#define MARGIN_MS nodes_ms
#include "node/core/member_round.c" /* NOLINT(bugprone-suspicious-include) */
#undef MARGIN_MS
#define MARGIN_MS brokers_ms
#include "broker/core/rounds/round.c" /* NOLINT(bugprone-suspicious-include) */
#undef MARGIN_MS
#define KEPT_MS 1000 /* by limits.h */

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 40

static int as_it_is(void **state)
{
    (void)state;
    nodes_ms = brokers_ms = KEPT_MS;
    return 0;
}

/* The last save takes three and a half times as long as the one before: all that the plan has to
 * spare, more or less. */
static struct sim_grace slow(unsigned i)
{
    return (struct sim_grace){
        .step_ms = 100, .save_ms = 64 + i % 8, .growth = 250, .notice_ms = 40000, .left_ms = 60000};
}

static void no_save_ends_in_the_margin(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    for (unsigned i = 1; i <= SEEDS; i++) {
        struct sim_grace g = slow(i);
        struct sim_options options = {.seed = i, .nodes = 3, .async = 0, .grace = &g};
        assert_true(sim_run_told(&options, &stats));
    }
}

/* A rank that leaves at its margin ends its launch: so all of them stay. */
static void a_commit_in_the_margin_is_seen(void **state)
{
    struct sim_failure failure = {.at_ms = 0};
    struct sim_stats stats = {0};
    bool seen = false;

    (void)state;
    nodes_ms = brokers_ms = 0;
    for (unsigned i = 1; i <= SEEDS && !seen; i++) {
        struct sim_grace g = slow(i);
        struct sim_options options = {.seed = i, .nodes = 3, .async = 0, .grace = &g};
        seen = !sim_run(&options, &stats, &failure) && strcmp(failure.invariant, "margin") == 0;
        if (seen)
            sim_bug_seen(&failure, i);
    }
    assert_true(seen);
}

static void a_rank_that_stays_until_its_deadline_is_seen(void **state)
{
    struct sim_options options = {.async = -1};

    (void)state;
    nodes_ms = 0;
    assert_true(sim_find_broken(&options, 200, "I5"));
}

#define BUGS_MIN 2 /* that are seen: may grow, never fall */
#define T(test) cmocka_unit_test_setup(test, as_it_is)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(no_save_ends_in_the_margin),
        T(a_commit_in_the_margin_is_seen),
        T(a_rank_that_stays_until_its_deadline_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
