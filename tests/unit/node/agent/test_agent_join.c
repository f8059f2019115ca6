/* The agent over real sockets: joining, being refused, leaving. What waits out a bound is in
 * tests/proc/node/test_join_waits.c. */
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int exit_code; /* what exit_fn was called with */

static void note_exit(int code, void *arg)
{
    (void)arg;
    atomic_store(&exit_code, code);
}

static void a_node_joins_steps_and_leaves(void **state)
{
    (void)state;
    lone_start();
    lone_welcome();
    assert_int_equal(lone.heard.up.rank, 0);
    assert_int_equal(lone.heard.up.role, ROLE_CHIEF);
    assert_string_equal(lone.heard.u.hello.checkpoint_dir, lone.directory);
    assert_int_equal(lone.heard.u.hello.pid, getpid());
    lone_say((struct wire_event){.kind = EVENT_RESUME});
    lone_await(WIRE_RESTORED);
    assert_int_equal(atomic_load(&lone.in_step), 0); /* no step before all have restored */
    lone_say((struct wire_event){.kind = EVENT_STARTED});
    lone_await_steps(5);
    atomic_store(&lone.stop, true);
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_FINISHED);
    assert_int_equal(lone.heard.u.leave.code, 0);
    lone_end();
    assert_int_equal(lone.heard.u.leave.done, lone.weight);
    assert_int_equal(lone.close_status, MUSTER_OK);
}

static bool life_says_started(const char *path)
{
    size_t size = 0;
    char *life = scratch_read(path, &size);
    bool said = strstr(life, "\nstarted\n") != NULL;

    free(life);
    return said;
}

/* With restore_fallback the gate is open before the first boundary, which then is a fast one. */
static void the_life_file_tells_that_steps_may_begin_before_one_does(void **state)
{
    char life[SCRATCH_PATH_MAX];

    (void)state;
    snprintf(life, sizeof life, "%s", scratch_path(lone.directory, "life"));
    setenv("MUSTER_LIFE_FILE", life, 1);
    lone.options.restore_fallback = true;
    atomic_store(&lone.slow, true);
    lone_start();
    lone_welcome();
    unsetenv("MUSTER_LIFE_FILE");
    lone_say((struct wire_event){.kind = EVENT_RESUME});
    lone_await(WIRE_RESTORED);
    assert_false(life_says_started(life));
    lone_say((struct wire_event){.kind = EVENT_STARTED});
    lone_await_steps(1);
    assert_true(life_says_started(life));
    lone_end();
}

static void the_join_timeout_is_told_as_unset_when_nobody_asked_for_one(void **state)
{
    (void)state;
    lone_start();
    lone_welcome();
    assert_int_equal(lone.heard.u.hello.join_timeout_ms, 0); /* the broker's own counts */
    lone_say(
        (struct wire_event){.kind = EVENT_JOIN_FAILED, .rank = -1, .text = "rank 1 is missing"});
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_E_JOIN);
}

static void a_join_timeout_that_was_asked_for_is_told(void **state)
{
    (void)state;
    lone.options.join_timeout_ms = 4321;
    lone_start();
    lone_welcome();
    assert_int_equal(lone.heard.u.hello.join_timeout_ms, 4321);
    lone_say(
        (struct wire_event){.kind = EVENT_JOIN_FAILED, .rank = -1, .text = "rank 1 is missing"});
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_E_JOIN);
}

static void a_final_refusal_ends_open_at_once(void **state)
{
    int64_t began_ms = lone_now_ms();

    (void)state;
    lone_start();
    lone_refuse(MUSTER_E_WORLD_SIZE, false);
    lone_end();
    assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS); /* open_timeout_ms is a minute */
    assert_int_equal(lone.open_status, MUSTER_E_WORLD_SIZE);
}

static void a_signal_before_joining_leaves_by_the_exit_policy(void **state)
{
    (void)state;
    lone.options.termination.on_preempted = MUSTER_PREEMPTED_EXIT;
    lone.options.termination.exit_fn = note_exit;
    lone_start();
    lone_refuse(MUSTER_E_ENDING, true);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    lone_end();
    assert_int_equal(atomic_load(&exit_code), 42);
    assert_int_equal(lone.open_status, MUSTER_PREEMPTED); /* exit_fn returned */
}

static void a_termination_while_the_job_assembles_is_left_with_the_restart_code(void **state)
{
    (void)state;
    lone_start();
    lone_welcome();
    lone_say((struct wire_event){.kind = EVENT_NOT_SAVED, .rank = -1, .text = "nobody began"});
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_PREEMPTED);
    assert_int_equal(lone.heard.u.leave.code, 42);
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_PREEMPTED);
}

static void a_checkpoint_that_cannot_be_read_is_an_error_of_open_and_told(void **state)
{
    (void)state;
    lone_start();
    lone_welcome();
    lone_say((struct wire_event){
        .kind = EVENT_RESUME, .checkpoint = 3, .step = 9, .path = "/nonexistent/9"});
    lone_await(WIRE_RESTORE_FAILED);
    assert_int_equal(lone.heard.u.restore_failed.checkpoint, 3);
    lone_say((struct wire_event){
        .kind = EVENT_RESTORE_FAILED, .rank = 0, .checkpoint = 3, .text = "rank 0"});
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_E_RESTORE);
    assert_non_null(strstr(lone.error.text, "/nonexistent/9"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_joins_steps_and_leaves),
        TEST(the_life_file_tells_that_steps_may_begin_before_one_does),
        TEST(the_join_timeout_is_told_as_unset_when_nobody_asked_for_one),
        TEST(a_join_timeout_that_was_asked_for_is_told),
        TEST(a_final_refusal_ends_open_at_once),
        TEST(a_signal_before_joining_leaves_by_the_exit_policy),
        TEST(a_termination_while_the_job_assembles_is_left_with_the_restart_code),
        TEST(a_checkpoint_that_cannot_be_read_is_an_error_of_open_and_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
