/* A question to the broker: until when the asking thread waits. The node's thread and the clock are
 * this test's. */
#include "node/agent/agent_state.h"
#include "node/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define LOOK_MS 250

static struct agent asker;
static struct {
    int64_t now_ms;
    unsigned asked;
    unsigned looks;           /* of the asking thread, since it asked */
    unsigned answered_at;     /* the look that brings the answer, 0 = none does */
    unsigned refused;         /* so many answers are that the broker knows nobody */
    enum muster_status fault; /* of each look */
} world;

static int64_t world_clock(clockid_t clock)
{
    (void)clock;
    return world.now_ms;
}

static enum muster_status world_put(struct agent *to, struct post *post, struct muster_error *err)
{
    (void)to, (void)err;
    assert_int_equal(post->input.kind, MEMBER_ASK);
    assert_int_equal(post->input.ask->type, WIRE_SWEEP);
    post_free(post);
    world.asked++;
    world.looks = 0;
    return MUSTER_OK;
}

static enum muster_status world_wait(struct agent *of, struct agent_patience *patience,
                                     int64_t limit_ms, struct muster_error *err)
{
    (void)patience, (void)err;
    assert_true(limit_ms > 0);
    world.now_ms += limit_ms < LOOK_MS ? limit_ms : LOOK_MS;
    if (++world.looks == world.answered_at) {
        of->view.asks_answered++;
        of->view.ask_code = world.asked <= world.refused ? MUSTER_E_HELLO : MUSTER_OK;
        of->view.ask_value = 7;
    }
    return world.fault;
}

#define clock_ms world_clock
#define post_put world_put
#define agent_wait world_wait
#include "node/agent/agent_keep.c" /* NOLINT(bugprone-suspicious-include) */

static void begin(void)
{
    memset(&world, 0, sizeof world);
    memset(&asker.view, 0, sizeof asker.view);
    world.now_ms = 1000000;
}

static enum muster_status ask(int64_t timeout_ms, uint64_t *ret_value)
{
    const struct wire_msg message = {.type = WIRE_SWEEP};

    return agent_ask(&asker, &message, timeout_ms, ret_value, NULL);
}

static void an_answer_is_waited_for_as_long_as_was_said(void **state)
{
    uint64_t value = 0;

    (void)state;
    begin();
    world.answered_at = 4;
    assert_int_equal(ask(10000, &value), MUSTER_OK);
    assert_int_equal(value, 7);
    begin();
    value = 0;
    assert_int_equal(ask(10100, &value), MUSTER_E_TIMEOUT);
    assert_int_equal(value, 0);
    assert_int_equal(world.now_ms, 1000000 + 10100);
}

/* Until it has left the broker serves it: what it has deleted meanwhile is told. */
static void a_rank_whose_job_ends_is_answered_until_it_has_left(void **state)
{
    uint64_t value = 0;

    (void)state;
    begin();
    world.answered_at = 4;
    asker.view.mode = VIEW_END;
    assert_int_equal(ask(10000, &value), MUSTER_OK);
    assert_int_equal(value, 7);
    begin();
    asker.view.left = true;
    assert_int_equal(ask(10000, &value), MUSTER_E_TIMEOUT);
    assert_int_equal(world.looks, 0);
}

static void a_broker_that_began_anew_is_asked_again_in_the_same_time(void **state)
{
    uint64_t value = 0;

    (void)state;
    begin();
    world.answered_at = 2;
    world.refused = 3;
    assert_int_equal(ask(10000, &value), MUSTER_OK);
    assert_int_equal(world.asked, 4);
    begin();
    world.answered_at = 2;
    world.refused = 1000000;
    assert_int_equal(ask(10000, NULL), MUSTER_E_TIMEOUT);
    assert_int_equal(world.now_ms, 1000000 + 10000);
}

static void what_breaks_the_waiting_off_is_told(void **state)
{
    (void)state;
    begin();
    world.fault = MUSTER_E_INTERRUPTED;
    assert_int_equal(ask(10000, NULL), MUSTER_E_INTERRUPTED);
    assert_int_equal(world.looks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_waited_for_as_long_as_was_said),
        cmocka_unit_test(a_rank_whose_job_ends_is_answered_until_it_has_left),
        cmocka_unit_test(a_broker_that_began_anew_is_asked_again_in_the_same_time),
        cmocka_unit_test(what_breaks_the_waiting_off_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
