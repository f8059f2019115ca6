/* The real threads of a node. Each wake-up of the agent's thread and of those that wait for it is
 * lost: nothing hangs, for each of them looks again within a heartbeat. When none is lost, nobody
 * waits for that look. */
#include "schema/limits.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define AT_ONCE_MS (HEARTBEAT_MS / 2)
#define TRIES 3 /* a busy machine may hold one up */

static _Atomic bool losing;
static _Atomic unsigned wakes_lost, tellings_lost;

static ssize_t lossy_write(int fd, const void *data, size_t size)
{
    if (!atomic_load(&losing))
        return write(fd, data, size);
    atomic_fetch_add(&wakes_lost, 1);
    return (ssize_t)size;
}

static int lossy_broadcast(pthread_cond_t *changed)
{
    if (!atomic_load(&losing))
        return pthread_cond_broadcast(changed);
    atomic_fetch_add(&tellings_lost, 1);
    return 0;
}

#define write lossy_write
#define pthread_cond_broadcast lossy_broadcast
#include "node/agent/agent.c"      /* NOLINT(bugprone-suspicious-include) */
#include "node/agent/agent_core.c" /* NOLINT(bugprone-suspicious-include) */
#include "node/agent/agent_post.c" /* NOLINT(bugprone-suspicious-include) */
#undef write
#undef pthread_cond_broadcast

static int all_are_lost(void **state)
{
    atomic_store(&losing, true);
    atomic_store(&wakes_lost, 0);
    atomic_store(&tellings_lost, 0);
    return lone_setup(state);
}

static int none_is_lost(void **state)
{
    atomic_store(&losing, false);
    return lone_setup(state);
}

static int end(void **state)
{
    assert_int_equal(atomic_load(&wakes_lost) > 0, atomic_load(&losing));
    assert_int_equal(atomic_load(&tellings_lost) > 0, atomic_load(&losing));
    atomic_store(&wakes_lost, 0);
    atomic_store(&tellings_lost, 0);
    return lone_teardown(state);
}

#define QUIET_STEPS 100 /* of a millisecond: what the broker answered has been heard */

/* From a moment at which the agent's thread has nothing to do for most of a heartbeat. */
static int64_t a_failed_step_is_told_after(void)
{
    int64_t since;

    lone_await(WIRE_HEARTBEAT);
    lone_await_steps(atomic_load(&lone.in_step) + QUIET_STEPS);
    since = lone_now_ms();
    atomic_store(&lone.fail_code, 7);
    lone_await(WIRE_ERROR);
    int64_t took = lone_now_ms() - since;
    assert_int_equal(lone.heard.u.error.code, 7);
    lone_await_leave();
    assert_int_equal(lone.run_status, MUSTER_E_STEP);
    return took;
}

/* It joins, restores, steps, freezes, goes on, fails, leaves. */
static bool a_life_tells_its_failure_at_once(void)
{
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    lone_say_with_member(EVENT_FREEZE, CAUSE_OPERATOR, -1, 0);
    lone_await(WIRE_REPORT);
    lone_say((struct wire_event){
        .kind = EVENT_ABORT, .round = 1, .rank = -1, .text = "the test ends it"});
    lone_await_steps(atomic_load(&lone.in_step) + 3);
    return a_failed_step_is_told_after() < AT_ONCE_MS;
}

static bool some_life_tells_it(bool at_once)
{
    for (int i = 0; i < TRIES; i++) {
        if (i > 0) {
            lone_teardown(NULL);
            lone_setup(NULL);
        }
        if (a_life_tells_its_failure_at_once() == at_once)
            return true;
    }
    return false;
}

static void a_failed_step_is_told_at_once(void **state)
{
    (void)state;
    assert_true(some_life_tells_it(true));
}

/* No life hangs. It is the control of the other test, too: that would see a wake-up that is not
 * given. */
static void without_wake_ups_all_is_done_at_the_next_look(void **state)
{
    (void)state;
    assert_true(some_life_tells_it(false));
}

static int step_of_a_millisecond(void *arg)
{
    (void)arg;
    lone.weight++;
    poll(NULL, 0, 1);
    return 0;
}

/* Its thread sleeps for a second once steps were measured. */
static int64_t closing_without_a_broker_takes(void)
{
    muster_node_t *node;

    lone.options.broker = "ipc:///tmp/muster-no-broker-at-all";
    lone.options.offline_ok = true;
    lone.options.connect_timeout_ms = 1;
    lone.options.world_size = 1;
    assert_int_equal(muster_node_open(&lone.options, &node, &lone.error), MUSTER_OK);
    for (int i = 0; i < 2 * QUIET_STEPS; i++)
        assert_int_equal(muster_node_run(node, step_of_a_millisecond, NULL, &lone.error),
                         MUSTER_OK);
    int64_t since = lone_now_ms();
    assert_int_equal(muster_node_close(&node, 0, &lone.error), MUSTER_OK);
    return lone_now_ms() - since;
}

static void a_node_without_a_broker_closes_at_once(void **state)
{
    int64_t took = INT64_MAX;

    (void)state;
    for (int i = 0; i < TRIES && took >= AT_ONCE_MS; i++)
        took = closing_without_a_broker_takes();
    assert_true(took < AT_ONCE_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_step_is_told_at_once, none_is_lost, end),
        cmocka_unit_test_setup_teardown(a_node_without_a_broker_closes_at_once, none_is_lost, end),
        cmocka_unit_test_setup_teardown(without_wake_ups_all_is_done_at_the_next_look, all_are_lost,
                                        end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
