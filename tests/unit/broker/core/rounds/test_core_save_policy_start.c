/* The broker's core: when the last save began, as a start of the broker knows it. */
#include "broker/core/checkpoints/keep.h"
#include "tests/support/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static int one_running_with_a_period(void **state)
{
    static struct core_fixture f;

    core_fixture_running(&f, 1, LAYOUT_REPLICATED);
    struct wire_msg message = core_msg(&f, 0, WIRE_POLICIES);
    message.u.policies = (struct wire_policies){.keep = "", .save = "period-ms 60000", .trash = ""};
    core_say(&f, 0, message);
    *state = &f;
    return 0;
}

static void steps(struct core_fixture *f, int64_t done)
{
    f->nodes[0].begun = f->nodes[0].done = done;
    core_heartbeat(f, 0);
}

static void restart(struct core_fixture *f)
{
    core_restart(f, false);
    core_hello(f, 0);
    core_clear(f);
}

/* An operator's save of the step is agreed on, and not made yet. */
static uint64_t decide(struct core_fixture *f, int64_t step)
{
    core_save_now(f, "save");
    uint64_t round = core_job(f)->round;
    core_report(f, 0, round, step, step);
    assert_int_equal(round_find(core_job(f), round)->state, ROUND_DECIDED);
    return round;
}

/* A start between the two forgot that this save had begun: the next was due as if it had not. */
static void a_save_that_was_decided_before_a_start_has_begun_then(void **state)
{
    struct core_fixture *f = *state;

    steps(f, 1);
    core_pass(f, 50000);
    uint64_t round = decide(f, 1);
    restart(f);
    core_save(f, 0, round, 1);
    steps(f, 2);
    core_pass(f, 55000);
    assert_int_equal(core_job(f)->round, round); /* 55 s after it began */
    core_pass(f, 6000);
    assert_int_equal(core_job(f)->round, round + 1);
}

static void a_save_that_failed_before_a_start_has_begun_too(void **state)
{
    struct core_fixture *f = *state;

    steps(f, 1);
    core_pass(f, 50000);
    uint64_t round = decide(f, 1);
    core_save_failed(f, 0, round, 1, MUSTER_E_STORAGE);
    assert_null(round_open_one(core_job(f)));
    restart(f);
    core_pass(f, 55000);
    assert_int_equal(core_job(f)->round, round);
    core_pass(f, 6000);
    assert_int_equal(core_job(f)->round, round + 1);
}

/* What joined the save of a policy is promised, though no row wants that one: a policy comes again
 * by itself, when its time does. */
static void an_operators_save_that_joined_a_policys_is_owed_after_two_starts(void **state)
{
    struct core_fixture *f = *state;
    struct wire_msg wish = core_msg(f, 0, WIRE_SAVE_WISH);

    steps(f, 1);
    wish.u.save_wish.step = 1;
    core_say(f, 0, wish);
    assert_events(f, "freeze r1 period m0");
    core_save_now(f, "save");
    assert_int_equal(core_job(f)->save_now_round, 1);
    core_restart(f, false);
    core_restart(f, false); /* nobody was back yet */
    f->nodes[0].applied_seq = core_job(f)->seq;
    core_hello(f, 0);
    assert_events(f, "freeze r2 operator m0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_save_that_was_decided_before_a_start_has_begun_then,
                                        one_running_with_a_period, core_close),
        cmocka_unit_test_setup_teardown(a_save_that_failed_before_a_start_has_begun_too,
                                        one_running_with_a_period, core_close),
        cmocka_unit_test_setup_teardown(
            an_operators_save_that_joined_a_policys_is_owed_after_two_starts,
            one_running_with_a_period, core_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
