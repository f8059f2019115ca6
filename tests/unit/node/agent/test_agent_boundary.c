/* Must-fail control of the slow path itself: one that admits a step at S lets the training thread
 * begin S + 1. The mutated file stands in for the one of the archive. */
#include "node/gate.h"

#include <stdbool.h>
#include <string.h>

static bool forgets;

/* The slow path asks for it once, where it tests done < S. */
#define gate_done(gate) \
    (gate_done(gate) - (forgets && strcmp(__func__, "boundary_obey") == 0 ? 1 : 0))
#include "node/agent/agent_boundary.c" /* NOLINT(bugprone-suspicious-include) */
#undef gate_done

#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A termination's freeze, and a decision of a step that the node comes to: there it waits for the
 * verdict. */
static int64_t decide_ahead(void)
{
    int64_t save_step;

    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    lone_say_with_member(EVENT_FREEZE, CAUSE_TERMINATION, -1, 0);
    save_step = lone_await(WIRE_REPORT)->u.report.begun + 2;
    lone_say_with_member(EVENT_DECISION, CAUSE_TERMINATION, save_step, MEMBER_FLAG_WRITER);
    return save_step;
}

static void go_on(void)
{
    lone_say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = 1});
    lone_await_leave();
}

/* R4.3 */
static void the_slow_path_admits_no_step_beyond_the_save_step(void **state)
{
    int64_t save_step;

    (void)state;
    forgets = false;
    save_step = decide_ahead();
    lone_await(WIRE_AT_STEP);
    assert_int_equal(lone.heard.u.at_step.step, save_step);
    assert_int_equal(atomic_load(&lone.in_step), save_step);
    go_on();
}

static void without_its_guard_a_step_beyond_it_is_seen(void **state)
{
    int64_t save_step;

    (void)state;
    forgets = true;
    save_step = decide_ahead();
    lone_await_steps((int)save_step + 1); /* what the test above says is not */
    go_on();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_slow_path_admits_no_step_beyond_the_save_step),
        TEST(without_its_guard_a_step_beyond_it_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
