/* Must-fail control: a broker that lets a takeover save. The loss of a member that is needed does not
 * abort its round, the process that comes for its rank joins the running generation, is told of the
 * round in its place, and its shard is taken. The mutated files (hello.c by tests/mutants/takeover.patch) stand in for
 * those of the archive. */
#include "broker/core/state/state.h"

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

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* R5.3 */
static void a_takeover_that_saves_is_seen(void **state)
{
    struct sim_options options = {.async = 1, .focused = true};

    (void)state;
    assert_true(sim_find_broken(&options, 600, "I1"));
}

#define BUGS_MIN 1 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_takeover_that_saves_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
