/* What a boundary leaves behind in the manager, and how often a function's wish is told: the node,
 * the broker and the clock are this test's. */
#include "client/manager/manager_private.h"
#include "node/agent/agent.h"
#include "node/agent/agent_keep.h"
#include "node/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define START_MS 1000000
#define NO_STEP (-1)

static struct {
    int64_t now_ms;
    /* the boundary */
    struct agent_ended ended;
    enum muster_status status;
    int64_t run_calls;
    /* the broker */
    bool heard;
    enum muster_status answer;
    uint64_t round; /* that it opens, 0 = none */
    unsigned asked;
    uint64_t waited_for;
    /* what became pending */
    unsigned pending;
    uint64_t pending_round;
    int64_t pending_step;
    unsigned paced; /* saves of a process alone */
} world;

static int64_t world_clock(clockid_t clock)
{
    (void)clock;
    return world.now_ms;
}

static enum muster_status world_end_step(struct muster_node *node, const struct agent_end *end,
                                         struct agent_ended *ret_ended, struct muster_error *err)
{
    (void)node, (void)end, (void)err;
    *ret_ended = world.ended;
    return world.status;
}

static int64_t world_run_calls(const struct muster_node *node)
{
    (void)node;
    return world.run_calls;
}

static bool world_hears(const struct agent *agent)
{
    (void)agent;
    return world.heard;
}

static enum muster_status world_ask(struct agent *agent, const struct wire_msg *message,
                                    int64_t timeout_ms, uint64_t *ret_value,
                                    struct muster_error *err)
{
    (void)agent, (void)timeout_ms, (void)err;
    assert_int_equal(message->type, WIRE_SAVE_WISH);
    world.asked++;
    *ret_value = world.round;
    return world.answer;
}

static void world_wait_round(struct agent *agent, uint64_t round, int64_t timeout_ms)
{
    (void)agent, (void)timeout_ms;
    world.waited_for = round;
}

static void world_pending(struct muster_manager *manager, uint64_t round, int64_t step)
{
    (void)manager;
    world.pending++;
    world.pending_round = round;
    world.pending_step = step;
}

static void world_paced(struct alone_pace *pace, int64_t began_ms, int64_t took_ms)
{
    (void)pace, (void)began_ms, (void)took_ms;
    world.paced++;
}

#define clock_ms world_clock
#define node_end_step world_end_step
#define muster_node_total_run_calls world_run_calls
#define agent_hears_broker world_hears
#define agent_ask world_ask
#define agent_wait_round world_wait_round
#define manager_outcome_add world_pending
#define alone_pace_saved world_paced
#define node_log(node, ...) ((void)(node))
#include "client/manager/manager_save.c" /* NOLINT(bugprone-suspicious-include) */

/* --- a manager behind step 6, whose function wanted step 5 ------------------------------------ */

static struct muster_node node;
static struct muster_manager manager;
static int something; /* an agent or a local process: nobody looks into it */

static void begin(bool alone)
{
    memset(&world, 0, sizeof world);
    memset(&node, 0, sizeof node);
    memset(&manager, 0, sizeof manager);
    world.now_ms = START_MS;
    world.heard = true;
    world.run_calls = 7;
    if (alone)
        node.local = (void *)&something;
    else
        node.agent = (void *)&something;
    manager.node = &node;
    manager.fresh = true;
    manager.wished = 5;
    manager.latest = manager.asked = NO_STEP;
    manager.passed = 5;
}

static enum muster_status end_6(struct agent_ended ended, enum muster_status status, bool ask)
{
    const struct agent_end end = {.done = 7, .want = true, .ask = ask};
    struct muster_error err;
    bool saves;

    world.ended = ended;
    world.status = status;
    world.pending = 0;
    return manager_save_end_step(&manager, 6, &end, &saves, &err);
}

static const struct agent_ended nothing = {.saves = false};
static const struct agent_ended saves = {.saves = true, .round = 4};
static const struct agent_ended aborted_before = {.round = 4};
static const struct agent_ended others_saved = {.committed = true};

static void any_save_gives_what_a_function_wanted(void **state)
{
    (void)state;
    begin(false);
    end_6(nothing, MUSTER_OK, false);
    assert_int_equal(manager.wished, 5);
    end_6(saves, MUSTER_OK, false);
    assert_int_equal(manager.wished, NO_STEP);
    begin(false);
    end_6(others_saved, MUSTER_OK, false);
    assert_int_equal(manager.wished, NO_STEP);
    assert_int_equal(manager.latest, 6);
}

static void a_step_is_passed_once_the_node_has_done_it(void **state)
{
    (void)state;
    begin(false);
    end_6(saves, MUSTER_OK, true);
    assert_int_equal(manager.passed, 6);
    assert_int_equal(manager.asked, 6);
    assert_false(manager.fresh);
    end_6(nothing, MUSTER_OK, true);
    assert_int_equal(manager.asked, NO_STEP);
    end_6(saves, MUSTER_OK, false);
    assert_int_equal(manager.asked, NO_STEP);
    begin(false);
    world.run_calls = 6; /* the boundary ended before the step did */
    end_6(nothing, MUSTER_E_PEER, false);
    assert_int_equal(manager.passed, 5);
    assert_true(manager.fresh);
}

static void a_save_is_pending_once_it_is_captured_in_a_round(void **state)
{
    (void)state;
    begin(false);
    end_6(saves, MUSTER_OK, false);
    assert_int_equal(world.pending, 1);
    assert_int_equal(world.pending_round, 4);
    assert_int_equal(world.pending_step, 6);
    assert_int_equal(manager.latest, NO_STEP); /* its outcome tells */
    end_6(saves, MUSTER_OK, true);             /* the caller captures it in the next call */
    assert_int_equal(world.pending, 0);
    end_6(nothing, MUSTER_OK, false);
    assert_int_equal(world.pending, 0);
    end_6(saves, MUSTER_E_IO, false);
    assert_int_equal(world.pending, 0);
}

/* The others are told of it, and so is this rank. */
static void a_save_that_was_aborted_before_this_rank_came_is_pending_too(void **state)
{
    (void)state;
    begin(false);
    end_6(aborted_before, MUSTER_OK, false);
    assert_int_equal(world.pending, 1);
    assert_int_equal(world.pending_round, 4);
    assert_int_equal(world.pending_step, 6);
    assert_int_equal(manager.latest, NO_STEP);
    end_6(aborted_before, MUSTER_OK, true); /* there is nothing left to save */
    assert_int_equal(world.pending, 0);
    assert_int_equal(manager.asked, NO_STEP);
}

static void the_newest_is_known_at_once_where_the_boundary_waited_for_it(void **state)
{
    const struct agent_ended alone = {.saves = true};

    (void)state;
    begin(false);
    end_6(saves, MUSTER_PREEMPTED, false);
    assert_int_equal(manager.latest, 6);
    assert_int_equal(world.pending, 0);
    begin(true);
    end_6(alone, MUSTER_OK, false);
    assert_int_equal(manager.latest, 6);
    assert_int_equal(world.pending, 0);
    assert_int_equal(world.paced, 1);
    begin(true);
    end_6(alone, MUSTER_OK, true); /* asked only: nothing is written yet */
    assert_int_equal(manager.latest, NO_STEP);
    assert_int_equal(world.paced, 0);
    end_6(nothing, MUSTER_OK, false);
    assert_int_equal(manager.latest, NO_STEP);
}

/* How long after a wish that came to nothing the next one is told. */
static int64_t told_again_after(bool heard, enum muster_status answer)
{
    begin(false);
    world.heard = heard;
    world.answer = answer;
    manager_save_tell_wish(&manager, 5);
    assert_int_equal(manager.wished, 5);
    assert_int_equal(world.asked, heard ? 1 : 0);
    world.heard = true;
    world.answer = MUSTER_OK;
    world.round = 9;
    while (manager.wished >= 0) {
        world.now_ms += 50;
        assert_true(world.now_ms < START_MS + 60000);
        manager_save_tell_wish(&manager, 6);
    }
    assert_int_equal(world.waited_for, 9);
    return world.now_ms - START_MS;
}

/* R13.5: but nobody trains at the pace of answers that do not come. */
static void a_wish_that_opens_no_round_is_told_again(void **state)
{
    (void)state;
    assert_int_equal(told_again_after(true, MUSTER_OK), WISH_AGAIN_MS);
    assert_int_equal(told_again_after(false, MUSTER_OK), WISH_AGAIN_MS);
    assert_int_equal(told_again_after(true, MUSTER_E_BUSY), WISH_AGAIN_MS);
    assert_int_equal(told_again_after(true, MUSTER_E_TIMEOUT), WISH_UNANSWERED_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_save_gives_what_a_function_wanted),
        cmocka_unit_test(a_step_is_passed_once_the_node_has_done_it),
        cmocka_unit_test(a_save_is_pending_once_it_is_captured_in_a_round),
        cmocka_unit_test(a_save_that_was_aborted_before_this_rank_came_is_pending_too),
        cmocka_unit_test(the_newest_is_known_at_once_where_the_boundary_waited_for_it),
        cmocka_unit_test(a_wish_that_opens_no_round_is_told_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
