/* The broker's core: keep policies. The examples of policies run here through commits, deletions by
 * the chief's hand and restarts of the broker. */
#include "tests/unit/broker/core/core_keep_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* --- the examples ----------------------------------------------------------------------------- */

struct keep_case {
    const char *what;
    const char *keep;
    int64_t steps[12]; /* saved one after another an hour apart; done = step + 1 of a user's step */
    size_t count;
    const char *kept;       /* with the newest */
    const char *kept_close; /* after the job said that it is done */
};

/* As a user counts steps from 0: `from 1`, given steps one more. */
static const struct keep_case cases[] = {
    {"keep 2 over 5 saves", "latest 2", {1, 2, 3, 4, 5}, 5, "4 5", "4 5"},
    {"keep 2, every 4, interval 2, 12 steps",
     "latest 2; every 4 from 1",
     {1, 3, 5, 7, 9, 11},
     6,
     "1 5 9 11",
     "1 5 9 11"},
    {"keep 0, every 3, every 5 h over 9 hourly saves",
     "latest 0; every 3 from 1; every-ms 18000000",
     {1, 2, 3, 4, 5, 6, 7, 8, 9},
     9,
     "1 4 6 7 9",
     "1 4 6 7"},
    {"every 3 from the last kept",
     "near 3",
     {1, 2, 3, 5, 6, 9, 10, 14, 15, 26},
     10,
     "1 5 9 14 26",
     "1 5 9 14 26"},
    {"interval 2 over 6, all kept", "", {1, 3, 5}, 3, "1 3 5", "1 3 5"},
    {"keep 0", "latest 0", {1, 2, 3}, 3, "3", ""},
    {"given steps", "steps 2 4", {1, 2, 3, 4, 5, 6}, 6, "2 4 6", "2 4"},
    {"the newest 2 of every 3",
     "every 3 from 1 most 2",
     {1, 2, 4, 7, 9, 10, 11},
     7,
     "7 10 11",
     "7 10"},
    {"the nearest to each 10",
     "closest 10 from 1",
     {1, 4, 9, 13, 16, 20, 22, 27, 33},
     9,
     "1 13 22 33",
     "1 13 22 33"},
    {"the newest 2 of those",
     "closest 10 from 1 most 2; steps 16",
     {1, 4, 9, 13, 16, 20, 22, 27, 33, 37},
     10,
     "16 33 37",
     "16 33 37"},
    {"last 2 h", "last-ms 7200000", {1, 2, 3, 4, 5}, 5, "3 4 5", "3 4 5"},
};

enum between { NOTHING, RESTARTS, LAUNCHES };

static void run_case(struct core_fixture *f, const struct keep_case *c, enum between between)
{
    core_policies(f, c->keep, "");
    assert_int_equal(core_ack_code(f, 0), MUSTER_OK);
    for (size_t i = 0; i < c->count; i++) {
        core_saved_whole(f, c->steps[i]);
        if (between == RESTARTS)
            core_start_again(f);
        core_obey(f);
        if (between == LAUNCHES)
            core_launch_again(f, c->keep);
        f->now += HOUR;
        core_tick(f);
        core_obey(f);
    }
    assert_kept(f, c->what, c->kept);
    core_sweep(f, true);
    uint64_t left = core_ack_value(f, 0);
    core_obey(f);
    core_sweep(f, true);
    assert_int_equal(core_ack_value(f, 0), 0);
    assert_true(left <= 1);
    assert_kept(f, c->what, c->kept_close);
}

/* The chief is done; what the others come to decides whether anybody goes on from the
 * newest (R12.4). */
static void the_newest_goes_when_all_have_finished(void **state)
{
    struct core_fixture *f = *state; /* three */

    core_policies(f, "latest 0", "");
    core_saved_whole(f, 1);
    core_sweep(f, true);
    assert_int_equal(core_ack_value(f, 0), 1); /* it is waited for */
    core_leave(f, 1, LEAVE_FINISHED, 0);
    core_sweep(f, true);
    core_obey(f);
    assert_kept(f, "a rank trains", "1");
    core_leave(f, 2, LEAVE_FINISHED, 0);
    core_sweep(f, true);
    core_obey(f);
    assert_kept(f, "all have finished", "");
}

static void the_newest_stays_when_another_rank_fails_after_the_end(void **state)
{
    struct core_fixture *f = *state; /* three */

    core_policies(f, "latest 0", "");
    core_saved_whole(f, 1);
    core_leave(f, 1, LEAVE_FINISHED, 0);
    core_sweep(f, true);
    core_leave(f, 2, LEAVE_FAILED, 3);
    core_sweep(f, true);
    assert_int_equal(core_ack_value(f, 0), 0); /* nothing is waited for */
    core_obey(f);
    assert_kept(f, "it is resumed from", "1");
}

static void run_cases(enum between between)
{
    struct core_fixture f;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        core_fixture_running(&f, 1, LAYOUT_REPLICATED);
        run_case(&f, &cases[i], between);
        core_fixture_close(&f);
    }
}

/* R12.2 */
static void the_examples_hold(void **state)
{
    (void)state;
    run_cases(NOTHING);
}

static void the_examples_hold_with_a_restart_after_every_save(void **state)
{
    (void)state;
    run_cases(RESTARTS);
}

static void the_examples_hold_over_launches(void **state)
{
    (void)state;
    run_cases(LAUNCHES);
}

/* As a list that never had it: the next of the chain may be another one. */
static void what_was_deleted_by_hand_is_in_no_chain(void **state)
{
    struct core_fixture *f = *state;

    core_policies(f, "near 4", "");
    core_saved_whole(f, 1);
    uint64_t second = core_saved_whole(f, 5);
    uint64_t third = core_saved_whole(f, 7);
    core_pin(f, third, "me", 0);
    core_saved_whole(f, 9);
    core_saved_whole(f, 10);
    core_obey(f);
    assert_kept(f, "a chain, a pin and the newest", "1 5 7 9 10");
    core_drop(f, second, false);
    core_obey(f);
    assert_kept(f, "that one alone", "1 7 9 10");
    core_start_again(f);
    core_saved_whole(f, 11);
    core_obey(f);
    assert_kept(f, "the chain goes over what is pinned", "1 7 11");
}

/* R12.2 */
static void the_best_by_metric_stay(void **state)
{
    struct core_fixture *f = *state;
    static const char *const losses[] = {"{\"loss\": 3}", "{\"loss\": 1}", NULL, "{\"loss\": 2}",
                                         "{\"loss\": 9}"};

    core_policies(f, "best 2 least loss", "");
    for (int i = 0; i < 5; i++) {
        f->metrics = losses[i];
        core_saved_whole(f, i + 1);
        core_obey(f);
    }
    assert_kept(f, "best 2", "2 4 5");
    core_start_again(f); /* the metrics are in the rows */
    f->metrics = "{\"loss\": 0.5}";
    core_saved_whole(f, 6);
    core_obey(f);
    assert_kept(f, "best 2", "2 6");
}

static void policies_that_are_none_are_refused_and_change_nothing(void **state)
{
    struct core_fixture *f = *state; /* three */
    struct wire_msg message = core_msg(f, 1, WIRE_POLICIES);

    core_policies(f, "latest 2", "");
    core_policies(f, "oldest 2", "");
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_ARGUMENT);
    core_policies(f, "latest 2", "never");
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_ARGUMENT);
    message.u.policies = (struct wire_policies){.keep = "latest 0", .save = "", .trash = ""};
    core_say(f, 1, message);
    assert_int_equal(core_ack_code(f, 1), MUSTER_E_ARGUMENT);
    message.u.policies = (struct wire_policies){.keep = "", .save = "", .trash = "../x"};
    message.up = core_msg(f, 0, WIRE_POLICIES).up;
    core_say(f, 0, message);
    assert_int_equal(core_ack_code(f, 0), MUSTER_E_ARGUMENT);
    assert_string_equal(keep_policies_of(core_job(f))->keep_text, "latest 2");
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, core_run_one, core_close)
#define THREE(test) cmocka_unit_test_setup_teardown(test, core_run_three, core_close)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_hold),
        cmocka_unit_test(the_examples_hold_with_a_restart_after_every_save),
        cmocka_unit_test(the_examples_hold_over_launches),
        ONE(what_was_deleted_by_hand_is_in_no_chain),
        ONE(the_best_by_metric_stay),
        THREE(the_newest_goes_when_all_have_finished),
        THREE(the_newest_stays_when_another_rank_fails_after_the_end),
        THREE(policies_that_are_none_are_refused_and_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
