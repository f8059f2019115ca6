/* Worlds whose programs save by themselves, as one does that uses a framework's checkpoints; -O2
 * and without sanitizers, as plain_fixed_set.c. A program is told to save, and saves; it asks
 * again, its save fails, or its round is over before it comes back. All that is checked elsewhere
 * holds. Must-fail control: a program that trains a step in its turn and saves what came of it. */
#include "tests/sim/sim_often.h"
#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 1200

static struct sim_options world(uint64_t seed)
{
    return (struct sim_options){.seed = seed,
                                .async = -1,
                                .turns = true,
                                .focused = seed % 3 == 0,
                                .suspects = seed % 5 == 1,
                                .relays = seed % 5 == 3,
                                .shared = seed % 7 == 5,
                                .power_cuts = seed % 4 == 2,
                                .lasting = seed % 4 == 1};
}

static void programs_that_save_by_themselves_break_nothing(void **state)
{
    struct sim_stats stats = {0};

    (void)state;
    sim_run_worlds(world, SEEDS, &stats);
    sim_expect_often("turn", "of a rank that saves", stats.turns);
    sim_expect_often("turn", "of a rank beside others that save", stats.turns_beside);
    sim_expect_often("turn", "that was asked for again", stats.turns_again);
    sim_expect_often("turn", "whose round was over before", stats.turns_over);
    sim_expect_often("turn", "in which the save failed", stats.turns_failed);
    assert_int_equal(sim_rare(), 0);
}

static void a_program_that_trains_in_its_turn_is_seen(void **state)
{
    const struct sim_options options = {.async = -1, .turns = true, .mutation = MUTANT_TURN_TRAINS};

    (void)state;
    if (!sim_find_broken(&options, 50, "I1"))
        fail_msg("no seed of 50 sees it");
}

#define BUGS_MIN 1 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_that_save_by_themselves_break_nothing),
        cmocka_unit_test(a_program_that_trains_in_its_turn_is_seen),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
