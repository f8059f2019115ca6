/* Must-fail controls of the bounds (sim_check_bounds.c): each of these lasts ten times as long in a
 * mutant of a core, and a world sees it while its faults go on. The mutated files stand in for
 * those of the archive. */
#include "broker/core/dispatch.h"
#include "node/core/member_state.h"

#include <stdbool.h>

static bool freezes_long, waits_long, saves_long, thaws_late;

/* NOLINTBEGIN(bugprone-suspicious-include) */
#undef FREEZE_MS
#define FREEZE_MS (freezes_long ? 20000 : 2000)
#include "broker/core/rounds/round.c"
#undef FREEZE_MS
#define FREEZE_MS 2000

#undef STUCK_MS
#define STUCK_MS (waits_long ? 600000 : 60000)
#include "broker/core/rounds/round_decide.c"
#undef STUCK_MS
#define STUCK_MS 60000

#undef STUCK_MS
#define STUCK_MS (saves_long ? 600000 : 60000)
#include "broker/core/rounds/save.c"
#undef STUCK_MS
#define STUCK_MS 60000

#undef THAW_MS
#define THAW_MS (thaws_late ? 40000 : 4000)
#include "node/core/member_round.c"
/* NOLINTEND(bugprone-suspicious-include) */

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int nothing_is_mutated(void **state)
{
    (void)state;
    freezes_long = waits_long = saves_long = thaws_late = false;
    return 0;
}

static const struct sim_options focused = {.async = -1, .focused = true};

static void a_freeze_that_outlasts_its_bound_is_seen(void **state)
{
    (void)state;
    freezes_long = true;
    assert_true(sim_find_said(&focused, 200, "I5", "is freezing for"));
}

static void a_way_to_the_save_step_that_outlasts_its_bound_is_seen(void **state)
{
    (void)state;
    waits_long = true;
    assert_true(sim_find_said(&focused, 300, "I5", "for its members to come to step"));
}

static void a_save_that_outlasts_its_bound_is_seen(void **state)
{
    (void)state;
    saves_long = true;
    assert_true(sim_find_said(&focused, 300, "I5", "for the save of rank"));
}

static void a_gate_that_does_not_thaw_is_seen(void **state)
{
    (void)state;
    thaws_late = true;
    assert_true(sim_find_said(&focused, 200, "I5", "without a decision"));
}

static void without_that_the_same_worlds_break_nothing(void **state)
{
    (void)state;
    assert_false(sim_find_said(&focused, 300, "I5", ""));
}

#define BREAKS(test) cmocka_unit_test_setup(test, nothing_is_mutated)

#define BUGS_MIN 4 /* that are seen: may grow, never fall */

int main(void)
{
    const struct CMUnitTest tests[] = {
        BREAKS(a_freeze_that_outlasts_its_bound_is_seen),
        BREAKS(a_way_to_the_save_step_that_outlasts_its_bound_is_seen),
        BREAKS(a_save_that_outlasts_its_bound_is_seen),
        BREAKS(a_gate_that_does_not_thaw_is_seen),
        cmocka_unit_test_setup(without_that_the_same_worlds_break_nothing, nothing_is_mutated),
    };

    sim_guard_aborts();
    return sim_bugs_end(cmocka_run_group_tests(tests, NULL, NULL), BUGS_MIN);
}
