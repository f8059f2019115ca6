/* The agent over real sockets: rounds, notices, errors while the node steps. */
#include "node/shard/fs.h"
#include "schema/manifest/manifest.h"
#include "tests/support/lone_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

static bool is_directory(const char *name)
{
    return fs_is_dir(scratch_path(lone.directory, "%s", name));
}

/* Freeze, decision two steps ahead, save. Returns S; lone.heard is SAVED. */
static int64_t save_ahead(enum wire_cause cause)
{
    int64_t save_step;

    lone_say_with_member(EVENT_FREEZE, cause, -1, 0);
    save_step = lone_await(WIRE_REPORT)->u.report.begun + 2;
    lone_say_with_member(EVENT_DECISION, cause, save_step, MEMBER_FLAG_WRITER);
    lone_await(WIRE_AT_STEP);
    assert_int_equal(lone.heard.u.at_step.step, save_step);
    lone_await(WIRE_FILES);
    assert_int_equal(lone.heard.u.files.files.count, 1);
    return save_step;
}

/* The commit, with the manifest that a broker would derive from lone.heard, which is FILES. */
static void commit(enum wire_cause cause, int64_t save_step)
{
    struct wire_file file = lone.heard.u.files.files.items[0];
    const struct manifest_shard shard = {
        .incarnation = lone.incarnation, .files = &file, .file_count = 1};
    const struct manifest manifest = {.job = "agent",
                                      .generation = 1,
                                      .round = 1,
                                      .step = save_step,
                                      .layout = LAYOUT_REPLICATED,
                                      .world_size = 2,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = save_step,
                                      .created_unix_ms = 1,
                                      .cause = wire_cause_name(cause),
                                      .shards = &shard,
                                      .shard_count = 1};
    struct wire_msg reply = {.type = WIRE_MANIFEST_CHUNK};
    char *text = NULL;
    size_t size = 0;

    assert_int_equal(manifest_render(&manifest, &text, &size, NULL), MUSTER_OK);
    lone_await(WIRE_SAVED);
    assert_int_equal(lone.heard.u.saved.step, save_step);
    lone_say((struct wire_event){.kind = EVENT_COMMIT,
                                 .round = 1,
                                 .cause = cause,
                                 .step = save_step,
                                 .checkpoint = 1,
                                 .incarnation = lone.incarnation});
    lone_await(WIRE_MANIFEST_GET);
    reply.u.manifest_chunk = (struct wire_manifest_chunk){.checkpoint = 1,
                                                          .round_generation = 1,
                                                          .step = save_step,
                                                          .total = size,
                                                          .bytes = {(const uint8_t *)text, size}};
    lone_transmit(&reply, false);
    lone_await(WIRE_MANIFEST_DONE);
    free(text);
}

/* R4.2 */
static void a_freeze_is_answered_while_a_step_runs(void **state)
{
    int64_t began_ms;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    lone_hold_in_step();
    began_ms = lone_now_ms();
    lone_say_with_member(EVENT_FREEZE, CAUSE_OPERATOR, -1, 0);
    lone_await(WIRE_REPORT);
    assert_true(lone_now_ms() - began_ms < 1000);
    assert_int_equal(lone.heard.u.report.round, 1);
    assert_int_equal(lone.heard.u.report.begun, lone.heard.u.report.done + 1);
    lone_say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = -1});
    atomic_store(&lone.slow, false);
    lone_await_leave();
    assert_int_equal(lone.run_status, MUSTER_OK);
}

/* Returns the step that it saved. The program has ended. */
static int64_t terminate(void)
{
    char name[32];
    int64_t save_step;

    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    save_step = save_ahead(CAUSE_TERMINATION);
    commit(CAUSE_TERMINATION, save_step);
    snprintf(name, sizeof name, "%lld", (long long)save_step);
    assert_string_equal(strrchr(lone.heard.u.manifest_done.path, '/') + 1, name);
    lone_say((struct wire_event){
        .kind = EVENT_MANIFEST, .round = 1, .checkpoint = 1, .step = save_step});
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_PREEMPTED);
    assert_int_equal(lone.heard.u.leave.code, 42);
    lone_end();
    assert_int_equal(lone.run_status, MUSTER_PREEMPTED);
    assert_int_equal(lone.close_status, MUSTER_PREEMPTED);
    assert_true(is_directory(name));
    return save_step;
}

static void a_termination_saves_at_the_agreed_step_and_nothing_runs_after_it(void **state)
{
    int64_t save_step;

    (void)state;
    save_step = terminate();
    assert_int_equal(lone.weight, save_step);
    assert_int_equal(atomic_load(&lone.in_step), save_step);
}

static int exits, exit_code;                  /* of exit_fn, ... */
static enum muster_status run_status_at_exit; /* ... where no boundary had returned yet */

static void note_exit(int code, void *arg)
{
    (void)arg;
    exits++;
    exit_code = code;
    run_status_at_exit = lone.run_status;
}

static void a_boundary_leaves_a_terminated_job_by_the_exit_policy(void **state)
{
    (void)state;
    exits = 0;
    run_status_at_exit = MUSTER_PREEMPTED;
    lone.options.termination.on_preempted = MUSTER_PREEMPTED_EXIT;
    lone.options.termination.exit_fn = note_exit;
    terminate();
    assert_int_equal(exits, 1);
    assert_int_equal(exit_code, 42);
    assert_int_equal(run_status_at_exit, MUSTER_OK);
}

static void an_operators_save_lets_training_go_on(void **state)
{
    int64_t save_step;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    save_step = save_ahead(CAUSE_OPERATOR);
    commit(CAUSE_OPERATOR, save_step);
    lone_await_steps((int)save_step + 5);
    lone_await_leave();
    assert_int_equal(lone.run_status, MUSTER_OK);
}

static void an_aborted_rounds_files_are_removed(void **state)
{
    int64_t until;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    save_ahead(CAUSE_OPERATOR);
    assert_true(is_directory(".muster/1-1"));
    lone_say((struct wire_event){.kind = EVENT_ABORT, .round = 1, .rank = 1});
    until = lone_now_ms() + LONE_DEADLINE_MS;
    while (is_directory(".muster/1-1")) {
        assert_true(lone_now_ms() < until);
        poll(NULL, 0, 1);
    }
    lone_await_leave();
}

static void a_signal_becomes_a_notice_while_a_step_runs(void **state)
{
    (void)state;
    lone_start();
    lone_welcome_and_start();
    atomic_store(&lone.slow, true);
    lone_await_steps(1);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    lone_await(WIRE_NOTICE);
    assert_int_equal(lone.heard.u.notice.kind, NOTICE_SIGNAL);
    assert_string_equal(lone.heard.u.notice.source, "signal");
    assert_non_null(strstr(lone.heard.u.notice.text, "SIGUSR1 from pid"));
    atomic_store(&lone.slow, false);
    lone_await_leave();
}

static void the_programs_own_notice_is_told_with_its_time(void **state)
{
    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(1);
    assert_int_equal(muster_node_notify(lone.node, MUSTER_NOTICE_STOP, 90000, "spot"), MUSTER_OK);
    lone_await(WIRE_NOTICE);
    assert_int_equal(lone.heard.u.notice.kind, NOTICE_STOP);
    assert_true(lone.heard.u.notice.left_ms > 80000 && lone.heard.u.notice.left_ms <= 90000);
    assert_string_equal(lone.heard.u.notice.text, "spot");
    lone_await_leave();
}

static void a_failed_step_is_told_and_ends_this_node(void **state)
{
    int64_t failed_step;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(2);
    atomic_store(&lone.fail_code, 19);
    lone_await(WIRE_ERROR);
    assert_int_equal(lone.heard.u.error.code, 19);
    failed_step = lone.heard.u.error.step;
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_FAILED);
    lone_end();
    assert_int_equal(failed_step, lone.weight + 1);
    assert_int_equal(lone.run_status, MUSTER_E_STEP);
    assert_int_equal(lone.error.code, 19);
}

/* Its state is that of a step: the others need it. */
static void who_fails_between_two_steps_saves_for_the_others(void **state)
{
    int64_t save_step;

    (void)state;
    lone.close_code = 9;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(1);
    lone_hold_in_step();
    lone_say_with_member(EVENT_FREEZE, CAUSE_OPERATOR, -1, 0);
    save_step = lone_await(WIRE_REPORT)->u.report.begun;
    lone_say_with_member(EVENT_DECISION, CAUSE_OPERATOR, save_step, MEMBER_FLAG_WRITER);
    atomic_store(&lone.stop, true);
    atomic_store(&lone.slow, false);
    assert_int_equal(lone_await(WIRE_SAVED)->u.saved.step, save_step);
    lone_say_with_member(EVENT_COMMIT, CAUSE_OPERATOR, save_step, 0);
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_FAILED);
    assert_int_equal(lone.heard.u.leave.code, 9);
    lone_end();
}

static void who_closes_inside_a_hold_saves_nothing(void **state)
{
    int64_t save_step;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(1);
    lone_hold_in_step();
    lone_say_with_member(EVENT_FREEZE, CAUSE_OPERATOR, -1, 0);
    save_step = lone_await(WIRE_REPORT)->u.report.begun;
    lone_say_with_member(EVENT_DECISION, CAUSE_OPERATOR, save_step, MEMBER_FLAG_WRITER);
    atomic_store(&lone.hold, true);
    atomic_store(&lone.slow, false); /* it stands at the save step, and holds */
    lone_await(WIRE_LEAVE);
    assert_int_equal(lone.heard.u.leave.why, LEAVE_FAILED);
    assert_int_equal(lone.heard.u.leave.done, save_step);
    lone_end();
    assert_int_equal(lone.run_status, MUSTER_E_ARGUMENT);
    assert_int_equal(lone.saves_told, 0);
}

static void another_ranks_failure_frees_a_blocked_step_and_is_named(void **state)
{
    struct muster_event event;

    (void)state;
    assert_int_equal(muster_events_create(MUSTER_EVENTS_ALL, &lone.options.events, NULL),
                     MUSTER_OK);
    lone_start();
    lone_welcome_and_start();
    atomic_store(&lone.slow, true); /* as in a collective whose partner has died */
    lone_await_steps(1);
    lone_say((struct wire_event){.kind = EVENT_PEER_ERROR,
                                 .rank = 1,
                                 .code = MUSTER_E_STEP,
                                 .step = 7,
                                 .text = "no memory"});
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(atomic_load(&lone.on_error_calls), 1);
    assert_int_equal(lone.on_error_seen.rank, 1);
    assert_int_equal(lone.run_status, MUSTER_E_PEER);
    assert_int_equal(lone.error.rank, 1);
    assert_non_null(strstr(lone.error.text, "no memory"));
    assert_int_equal(muster_events_next(lone.options.events, MUSTER_EVENTS_OF(MUSTER_EVENT_ERROR),
                                        0, &event, sizeof event, NULL),
                     MUSTER_OK);
    assert_int_equal(event.rank, 1);
    assert_non_null(strstr(event.text, "no memory"));
    muster_events_destroy(&lone.options.events);
}

static void a_step_that_was_broken_off_is_saved_as_if_it_had_not_begun(void **state)
{
    int64_t done;

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(3);
    lone_hold_in_step();
    atomic_store(&lone.fail_code, 4); /* what the step returns once on_error has freed it */
    lone_say((struct wire_event){
        .kind = EVENT_NODE_LOST, .rank = 1, .text = "silent", .flags = EVENT_FLAG_ROUND_FOLLOWS});
    lone_say((struct wire_event){
        .kind = EVENT_FREEZE,
        .round = 1,
        .cause = CAUSE_ERROR,
        .flags = EVENT_FLAG_ABORT,
        .members = {&(struct wire_member){.incarnation = lone.incarnation}, 1}});
    lone_await(WIRE_REPORT);
    assert_true(lone.heard.u.report.aborted);
    done = lone.heard.u.report.done;
    assert_int_equal(lone.heard.u.report.begun, done);
    lone_say_with_member(EVENT_DECISION, CAUSE_ERROR, done, MEMBER_FLAG_WRITER);
    lone_await(WIRE_AT_STEP);
    lone_await(WIRE_FILES);
    commit(CAUSE_ERROR, done);
    lone_await(WIRE_LEAVE);
    lone_end();
    assert_int_equal(lone.weight, done);
    assert_int_equal(lone.run_status, MUSTER_E_PEER);
    assert_non_null(strstr(lone.error.text, "silent"));
}

static void garbage_from_the_network_changes_nothing(void **state)
{
    static const char *const frames[] = {"", "x", "\xc1\xc1\xc1", "\x93\x01\xff\x00"};

    (void)state;
    lone_start();
    lone_welcome_and_start();
    lone_await_steps(1);
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        assert_true(zmq_send(lone.router, lone.route, (size_t)lone.route_size, ZMQ_SNDMORE) >= 0);
        assert_true(zmq_send(lone.router, frames[i], strlen(frames[i]), 0) >= 0);
        assert_true(zmq_send(lone.xpub, "agent", 6, ZMQ_SNDMORE) >= 0);
        assert_true(zmq_send(lone.xpub, frames[i], strlen(frames[i]), 0) >= 0);
    }
    lone_await_steps(atomic_load(&lone.in_step) + 5);
    lone_await_leave();
    assert_int_equal(lone.run_status, MUSTER_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_freeze_is_answered_while_a_step_runs),
        TEST(a_termination_saves_at_the_agreed_step_and_nothing_runs_after_it),
        TEST(a_boundary_leaves_a_terminated_job_by_the_exit_policy),
        TEST(an_operators_save_lets_training_go_on),
        TEST(who_fails_between_two_steps_saves_for_the_others),
        TEST(an_aborted_rounds_files_are_removed),
        TEST(a_signal_becomes_a_notice_while_a_step_runs),
        TEST(the_programs_own_notice_is_told_with_its_time),
        TEST(a_failed_step_is_told_and_ends_this_node),
        TEST(who_closes_inside_a_hold_saves_nothing),
        TEST(another_ranks_failure_frees_a_blocked_step_and_is_named),
        TEST(a_step_that_was_broken_off_is_saved_as_if_it_had_not_begun),
        TEST(garbage_from_the_network_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
