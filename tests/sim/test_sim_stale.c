/* Must-fail controls: a broker that lets processes in again that it has given up, or says that it
 * took their requests. The mutated
 * files stand in for those of the archive. */
#include "broker/core/state.h"

static bool lets_in, takes;

#define NODE_LOST (lets_in ? NODE_STATE_COUNT : NODE_LOST)
#define NODE_FENCED (lets_in ? NODE_STATE_COUNT : NODE_FENCED)
#include "broker/core/hello.c" /* NOLINT(bugprone-suspicious-include) */
#undef NODE_LOST
#undef NODE_FENCED

#define MUSTER_E_STALE (takes ? MUSTER_OK : MUSTER_E_STALE)
#include "broker/core/core.c" /* NOLINT(bugprone-suspicious-include) */
#undef MUSTER_E_STALE

#include "tests/sim/sim_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int nothing_is_mutated(void **state)
{
    (void)state;
    lets_in = takes = false;
    return 0;
}

static const struct sim_options chance = {.async = -1};

static void a_process_that_was_given_up_and_is_welcomed_is_seen(void **state)
{
    (void)state;
    lets_in = true;
    assert_true(sim_find_broken(&chance, 300, "I6"));
}

static void a_request_of_who_was_given_up_that_is_taken_is_seen(void **state)
{
    (void)state;
    takes = true;
    assert_true(sim_find_broken(&chance, 300, "I6"));
}

static void without_that_the_same_worlds_break_nothing(void **state)
{
    (void)state;
    assert_false(sim_find_broken(&chance, 60, "I6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_process_that_was_given_up_and_is_welcomed_is_seen,
                               nothing_is_mutated),
        cmocka_unit_test_setup(a_request_of_who_was_given_up_that_is_taken_is_seen,
                               nothing_is_mutated),
        cmocka_unit_test_setup(without_that_the_same_worlds_break_nothing, nothing_is_mutated),
    };

    sim_guard_aborts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
