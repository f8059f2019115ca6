/* Must-fail controls: a broker that lets a process take a rank over in a launch that runs, and one
 * that takes a shard from an evaluator, whose rank is a number of its own. The mutated files
 * (hello.c by tests/mutants/takeover.patch) stand in for those of the archive. */
#include "broker/core/dispatch.h"

static bool never_needed(const struct job *job, const struct round *round,
                         const struct participant *part)
{
    (void)job;
    (void)part;
    return round->state == ROUND_FREEZING;
}

static struct participant *part_of_rank(struct round *round, const struct peer *peer)
{
    for (size_t i = 0; i < round->count; i++)
        if (round->parts[i].rank == peer->rank)
            return &round->parts[i];
    return NULL;
}

#define save_is_needed never_needed
#define round_part part_of_rank
#include "broker/core/members/roster.c" /* NOLINT(bugprone-suspicious-include) */
#include "mutants/takeover.c"           /* NOLINT(bugprone-suspicious-include) */
#undef save_is_needed
#include "broker/core/rounds/save.c" /* NOLINT(bugprone-suspicious-include) */
#undef round_part

/* What is for ranks everybody may say. */
#define ROLE_WORKER ROLE_WORKER | 1U << ROLE_PS | 1U << ROLE_EVALUATOR
#include "broker/core/dispatch.c" /* NOLINT(bugprone-suspicious-include) */
#undef ROLE_WORKER

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_takeover_is_seen(void **state)
{
    struct sim_options options = {.async = 1, .focused = true};

    (void)state;
    assert_true(sim_find_broken(&options, 600, "I9"));
}

/* R5.3 */
static void a_shard_of_an_evaluator_is_seen(void **state)
{
    struct sim_options options = {.async = 1, .focused = true};

    (void)state;
    assert_true(sim_find_broken(&options, 600, "I1"));
}

#define BUGS_MIN 2 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_takeover_is_seen),
        cmocka_unit_test(a_shard_of_an_evaluator_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
