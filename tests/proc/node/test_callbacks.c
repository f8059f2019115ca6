/* Callbacks of the user that never return: they stop no heartbeat, no notice and no exit. */
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int callbacks_inside; /* that never return */

static void never_return(void)
{
    atomic_fetch_add(&callbacks_inside, 1);
    for (;;)
        pause();
}

static bool blocked_watcher(void *arg)
{
    (void)arg;
    never_return();
    return false;
}

static void blocked_log(int level, const char *text, void *arg)
{
    (void)arg;
    if (strstr(text, "SIGUSR1") != NULL && level == 3)
        never_return();
}

static void callbacks_that_never_return_stop_neither_heartbeats_nor_close(void **state)
{
    int64_t began_ms;

    (void)state;
    atomic_store(&callbacks_inside, 0);
    lone.options.termination.termination_watcher_fn = blocked_watcher;
    lone.options.log = blocked_log;
    lone_start();
    lone_welcome_and_start();
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    lone_await(WIRE_NOTICE);
    lone.nag = SIGUSR1;
    began_ms = lone_now_ms();
    while (atomic_load(&callbacks_inside) < 2) {
        assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS);
        lone_await(WIRE_HEARTBEAT);
    }
    lone.nag = 0;
    lone_await(WIRE_HEARTBEAT);
    lone_await(WIRE_HEARTBEAT);
    began_ms = lone_now_ms();
    lone_await_leave();
    assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS);
    assert_int_equal(lone.close_status, MUSTER_OK);
}

static int count_step(void *arg)
{
    (void)arg;
    lone.weight++;
    return 0;
}

static muster_node_t *open_alone(void)
{
    muster_node_t *node = NULL;

    atomic_store(&callbacks_inside, 0);
    lone.options.broker = "ipc:///tmp/muster-callbacks-no-broker";
    lone.options.offline_ok = true;
    lone.options.connect_timeout_ms = 1;
    lone.options.world_size = 1;
    assert_int_equal(muster_node_open(&lone.options, &node, NULL), MUSTER_OK);
    return node;
}

static void end_alone(muster_node_t *node)
{
    for (int tries = 0; muster_node_run(node, count_step, NULL, NULL) == MUSTER_OK; tries++) {
        assert_true(tries < 5000);
        poll(NULL, 0, 1);
    }
    assert_int_equal(muster_node_close(&node, 0, NULL), MUSTER_PREEMPTED); /* it comes back */
}

static void await_a_callback_inside(void)
{
    for (int tries = 0; atomic_load(&callbacks_inside) == 0 && tries < 5000; tries++)
        poll(NULL, 0, 1);
    assert_true(atomic_load(&callbacks_inside) > 0);
}

static void
without_a_broker_a_watcher_that_never_returns_stops_neither_notices_nor_close(void **state)
{
    (void)state;
    lone.options.termination.termination_watcher_fn = blocked_watcher;
    muster_node_t *node = open_alone();
    await_a_callback_inside();
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    end_alone(node);
}

static void log_blocked_by_a_source(int level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    if (strstr(text, "notice source") != NULL)
        never_return();
}

static void without_a_broker_a_log_that_never_returns_stops_neither_notices_nor_close(void **state)
{
    (void)state;
    lone.options.log = log_blocked_by_a_source;
    lone.options.termination.sources = "file:/muster-callbacks-no-notice";
    muster_node_t *node = open_alone();
    await_a_callback_inside();
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    end_alone(node);
}

/* On its way from one who asks the broker to one who does without. */
static void log_that_is_told_to_end(int level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    if (strstr(text, "goes on alone") != NULL)
        raise(SIGUSR1);
}

static void a_signal_while_the_broker_is_given_up_is_not_lost(void **state)
{
    (void)state;
    lone.options.log = log_that_is_told_to_end;
    end_alone(open_alone());
}

static void blocked_on_error(const struct muster_error *error, void *arg)
{
    (void)error;
    (void)arg;
    never_return();
}

/* The other rank fails while a step of the node's is under way; its on_error never returns. */
static void block_in_on_error(void)
{
    int64_t until = lone_now_ms() + LONE_DEADLINE_MS;

    atomic_store(&callbacks_inside, 0);
    lone.options.on_error = blocked_on_error;
    atomic_store(&lone.slow, true); /* from the first step on: none ends, and the node with it */
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(1);
    lone_say((struct wire_event){
        .kind = EVENT_PEER_ERROR, .rank = 1, .code = MUSTER_E_STEP, .text = "no memory"});
    while (atomic_load(&callbacks_inside) == 0) {
        assert_true(lone_now_ms() < until);
        lone_await(WIRE_HEARTBEAT);
    }
}

static void an_on_error_that_never_returns_stops_neither_heartbeats_nor_close(void **state)
{
    int64_t began_ms;

    (void)state;
    block_in_on_error();
    lone_await(WIRE_HEARTBEAT);
    lone_await(WIRE_HEARTBEAT);
    atomic_store(&lone.slow, false); /* the step ends without its help */
    began_ms = lone_now_ms();
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS);
    assert_int_equal(lone.run_status, MUSTER_E_PEER);
    assert_int_equal(lone.error.rank, 1);
}

#define ABORT_MS 3000

/* A program of its own: an assertion that fails ends it with code 255. Says so on stdout when only
 * the node can end it. */
static void end_in_a_step(void)
{
    alarm(60); /* instead of the node's exit, should that not come */
    assert_int_equal(lone_setup(NULL), 0);
    lone.options.termination.on_preempted = MUSTER_PREEMPTED_EXIT;
    lone.options.abort_timeout_ms = ABORT_MS;
    block_in_on_error();
    assert_int_equal(write(STDOUT_FILENO, "r", 1), 1);
    for (;;)
        pause();
}

static pid_t start_program(const char *mode, int *ret_said)
{
    int ends[2];
    pid_t child;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_callbacks", mode, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *ret_said = ends[0];
    return child;
}

static void an_on_error_and_a_step_that_never_return_end_the_process_in_time(void **state)
{
    char directory[SCRATCH_PATH_MAX], said;
    int64_t ready_ms;
    int output, status;
    pid_t child;

    (void)state;
    scratch_make(directory); /* of what the program leaves behind */
    setenv("TMPDIR", directory, 1);
    child = start_program("end-in-a-step", &output);
    unsetenv("TMPDIR");
    assert_int_equal(read(output, &said, 1), 1);
    ready_ms = lone_now_ms();
    assert_int_equal(waitpid(child, &status, 0), child);
    close(output);
    scratch_remove(directory);
    assert_true(lone_now_ms() - ready_ms < ABORT_MS + LONE_DEADLINE_MS);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(callbacks_that_never_return_stop_neither_heartbeats_nor_close),
        TEST(without_a_broker_a_watcher_that_never_returns_stops_neither_notices_nor_close),
        TEST(without_a_broker_a_log_that_never_returns_stops_neither_notices_nor_close),
        TEST(a_signal_while_the_broker_is_given_up_is_not_lost),
        TEST(an_on_error_that_never_returns_stops_neither_heartbeats_nor_close),
        cmocka_unit_test(an_on_error_and_a_step_that_never_return_end_the_process_in_time),
    };

    if (argc > 1 && strcmp(argv[1], "end-in-a-step") == 0)
        end_in_a_step();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
