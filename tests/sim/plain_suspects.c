/* Worlds in which collectives break, because another rank was killed or for no reason; -O2 and
 * without sanitizers, as plain_fixed_set.c. A rank whose collective breaks suspects the others, and
 * asks the broker. No rank is blamed if another was dead before. While nothing else fails, each
 * rank is answered within its 10 s.
 * Must-fail controls: a rank that asks nobody, one that is told at once that all others live, and
 * one that is never told. */
#include "tests/sim/sim_often.h"
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 600

static struct sim_options world(uint64_t seed)
{
    return (struct sim_options){.seed = seed,
                                .async = seed % 8 == 0 ? -1 : 0,
                                .suspects = true,
                                .focused = seed % 3 == 0,
                                .relays = seed % 5 == 3,
                                .shared = seed % 7 == 5,
                                .lasting = seed % 4 == 1};
}

static void nobody_is_blamed_for_a_dead_rank(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    sim_run_worlds(world, SEEDS, &stats);
    sim_expect_often("rank", "that suspected a dead one", stats.suspects[1]);
    sim_expect_often("rank", "that suspected a live one", stats.suspects[0]);
    sim_expect_often("rank", "that was told that all live", stats.suspects_all_live);
    assert_int_equal(sim_rare(), 0);
}

static void is_seen(enum sim_mutation mutation)
{
    const struct sim_options options = {.async = 0, .suspects = true, .mutation = mutation};

    if (!sim_find_broken(&options, 50, "suspects"))
        fail_msg("no seed of 50 sees it");
}

static void a_rank_that_asks_nobody_is_seen(void **state)
{
    (void)state;
    is_seen(MUTANT_BLAMES_ITSELF);
}

static void a_word_that_all_others_live_is_seen_where_one_is_dead(void **state)
{
    (void)state;
    is_seen(MUTANT_ALL_LIVE);
}

static void a_rank_that_is_never_answered_is_seen(void **state)
{
    (void)state;
    is_seen(MUTANT_NEVER_TOLD);
}

#define BUGS_MIN 3 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_blamed_for_a_dead_rank),
        cmocka_unit_test(a_rank_that_asks_nobody_is_seen),
        cmocka_unit_test(a_word_that_all_others_live_is_seen_where_one_is_dead),
        cmocka_unit_test(a_rank_that_is_never_answered_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
