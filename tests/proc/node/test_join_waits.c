/* A node that waits to join: for a rank, for a broker, until its own timeout or a signal. */
#include "schema/limits.h"
#include "schema/manifest/manifest.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

static _Atomic int waits_said; /* lines of the log that say what open waits for */
static _Atomic int exit_code;  /* what exit_fn was called with */

static void note_line(int level, const char *text, void *arg)
{
    (void)arg;
    if (level == 1 && strstr(text, "waits to join job agent: rank 0 is held by host h") != NULL)
        atomic_fetch_add(&waits_said, 1);
}

static void note_exit(int code, void *arg)
{
    (void)arg;
    atomic_store(&exit_code, code);
}

static bool say_yes(void *arg)
{
    (void)arg;
    return true;
}

static void a_signal_ends_the_wait_for_a_taken_rank_at_once_and_says_so(void **state)
{
    int64_t began_ms = lone_now_ms();

    (void)state;
    lone.options.log = note_line;
    lone.options.termination.exit_fn = note_exit; /* policy RETURN: not called */
    lone_start();
    lone_refuse(MUSTER_E_RANK_TAKEN, true);
    lone_refuse(MUSTER_E_RANK_TAKEN, true);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    lone_end();
    assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS); /* open_timeout_ms is a minute */
    assert_int_equal(lone.open_status, MUSTER_PREEMPTED);
    assert_non_null(strstr(lone.error.text, "signal: SIGUSR1"));
    assert_non_null(strstr(lone.error.text, "while waiting to join job agent"));
    assert_non_null(strstr(lone.error.text, "host h"));
    assert_int_equal(atomic_load(&waits_said), 1);
    assert_int_equal(atomic_load(&exit_code), 0);
}

static void a_taken_rank_is_tried_again_until_the_timeout(void **state)
{
    (void)state;
    lone.options.open_timeout_ms = 400;
    lone_start();
    lone_refuse(MUSTER_E_RANK_TAKEN, true);
    lone_refuse(MUSTER_E_RANK_TAKEN, true);
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_E_RANK_TAKEN);
    assert_non_null(strstr(lone.error.text, "host h"));
}

static void a_taken_rank_that_becomes_free_is_joined(void **state)
{
    (void)state;
    lone_start();
    lone_refuse(MUSTER_E_RANK_TAKEN, true);
    lone_welcome_and_start();
    lone_await_steps(1);
    lone_await_leave();
    assert_int_equal(lone.run_status, MUSTER_OK);
}

static void a_silent_broker_is_named_after_the_connect_timeout(void **state)
{
    int64_t began_ms = lone_now_ms();

    (void)state;
    lone.options.connect_timeout_ms = 150;
    lone_start(); /* nobody reads the ROUTER */
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_E_BROKER);
    assert_non_null(strstr(lone.error.text, lone.command));
    assert_non_null(strstr(lone.error.text, "musterd"));
    assert_true(lone_now_ms() - began_ms >= 150);
}

static void a_notice_ends_the_wait_for_a_broker_that_is_not_there(void **state)
{
    int64_t began_ms = lone_now_ms();

    (void)state;
    lone.options.connect_timeout_ms = 10 * LONE_DEADLINE_MS;
    lone.options.termination.termination_watcher_fn = say_yes;
    lone_start(); /* nobody reads the ROUTER */
    lone_end();
    assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS);
    assert_int_equal(lone.open_status, MUSTER_PREEMPTED);
    assert_non_null(strstr(lone.error.text, "termination_watcher_fn"));
}

static void a_broker_of_another_version_is_named_as_that(void **state)
{
    const uint8_t frame[] = {0x92, WIRE_VERSION + 1, WIRE_REFUSED};
    int64_t began_ms = lone_now_ms();

    (void)state;
    lone_start();
    lone_await(WIRE_HELLO);
    assert_true(zmq_send(lone.router, lone.route, (size_t)lone.route_size, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(lone.router, frame, sizeof frame, 0) >= 0);
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_E_VERSION);
    assert_non_null(strstr(lone.error.text, lone.command));
    assert_non_null(strstr(lone.error.text, "protocol version 2"));
    assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS);
}

/* --- the chief's question about what is newer ------------------------------------------------- */

/* Of a launch that begins from the start, beside a checkpoint that it asks for; the broker takes
 * all but the question. */
static void begin_with_a_question(int64_t grace_ms)
{
    static const char round[] = "muster_round 1\njob agent\ngeneration 2\nround 7\n"
                                "nonce 00000000000000ff\n";

    mkdir(scratch_path(lone.directory, "20"), 0777);
    scratch_write(scratch_path(lone.directory, "20/ROUND"), round, sizeof round - 1);
    scratch_write(scratch_path(lone.directory, "20/" MANIFEST_FILE_NAME), "{", 1);
    lone.options.join_timeout_ms = 2 * LONE_DEADLINE_MS;
    lone.options.connect_timeout_ms = 2 * LONE_DEADLINE_MS;
    lone.options.termination.grace_period_ms = grace_ms;
    lone_start();
    lone_welcome();
    lone_say((struct wire_event){.kind = EVENT_RESUME});
    lone_await(WIRE_QUERY);
    assert_string_equal(lone.heard.u.query.name, "round");
    assert_int_equal(lone.heard.u.query.number_arg, 7);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    lone_await(WIRE_NOTICE);
}

static void is_left_as_preempted(void)
{
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_PREEMPTED);
    assert_int_equal(lone.heard.u.leave.code, 42);
    lone_end();
    assert_int_equal(lone.open_status, MUSTER_PREEMPTED);
    assert_int_equal(lone.failures_told, 0);
}

/* R11.6 */
static void a_question_without_an_answer_ends_with_the_launch(void **state)
{
    (void)state;
    begin_with_a_question(10 * LONE_DEADLINE_MS);
    lone_say((struct wire_event){.kind = EVENT_NOT_SAVED, .rank = -1, .text = "nobody began"});
    is_left_as_preempted();
    assert_non_null(strstr(lone.error.text, "nobody began"));
}

static void a_question_without_an_answer_ends_before_the_own_deadline(void **state)
{
    int64_t began_ms = lone_now_ms();

    (void)state;
    begin_with_a_question(LEAST_LEAD_MS);
    is_left_as_preempted();
    assert_true(lone_now_ms() - began_ms < LONE_DEADLINE_MS);
    assert_non_null(strstr(lone.error.text, "own deadline"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_broker_of_another_version_is_named_as_that),
        TEST(a_notice_ends_the_wait_for_a_broker_that_is_not_there),
        TEST(a_signal_ends_the_wait_for_a_taken_rank_at_once_and_says_so),
        TEST(a_taken_rank_is_tried_again_until_the_timeout),
        TEST(a_taken_rank_that_becomes_free_is_joined),
        TEST(a_question_without_an_answer_ends_before_the_own_deadline),
        TEST(a_question_without_an_answer_ends_with_the_launch),
        TEST(a_silent_broker_is_named_after_the_connect_timeout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
