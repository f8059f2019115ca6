/* What a coordinator's calls return and say, against a broker of this program: it answers as each
 * test wants. */
#include "client/tasks/coordinator_private.h"
#include "tests/proc/tasks/coordinator_stage.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <stdio.h>

/* --- what is said ----------------------------------------------------------------------------- */

static void an_error_names_task_function_worker_and_what_was_cancelled(void **state)
{
    muster_remote_value_t *values[] = {stage_schedule(), stage_schedule(), stage_schedule()};
    const void *data;
    size_t size;

    (void)state;
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.failed, true);
    assert_int_equal(stage_join(20000), MUSTER_E_TASK);
    assert_int_equal(stage.err.code, 17);
    assert_int_equal(stage.err.task, 1);
    assert_int_equal(stage.err.rank, -1);
    /* The function's text commands no terminal. */
    assert_string_equal(
        stage.err.text,
        "task 1 of queue says failed with code 17, and 2 queued tasks were "
        "cancelled (schedule again what is still wanted): fail at worker 4: no ?[2Jluck");
    assert_int_equal(muster_remote_value_fetch(values[1], 10000, &data, &size, &stage.err),
                     MUSTER_E_CANCELLED);
    assert_says("task 2 was cancelled because task 1 of its queue had failed; schedule it again");
    assert_int_equal(stage.err.task, 2);
    for (int i = 0; i < 3; i++)
        muster_remote_value_free(&values[i]);
}

static void a_time_out_tells_numbers_that_are_of_now(void **state)
{
    muster_remote_value_t *value = stage_schedule();

    (void)state;
    assert_int_equal(stage_join(600), MUSTER_E_TIMEOUT);
    assert_int_equal(stage.err.task, 0);
    assert_says(
        "not all tasks have ended in time: 0 of 1 tasks have ended, 2 were at 1 workers 0.");
    assert_true(atomic_load(&stage.beats) >= 2);
    muster_remote_value_free(&value);
}

static void a_lost_database_is_told_from_another_coordinator(void **state)
{
    muster_remote_value_t *value = stage_schedule();

    (void)state;
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.queue, STAGE_QUEUE + 1);
    atomic_store(&stage.start, 2);
    assert_int_equal(stage_join(20000), MUSTER_E_STALE);
    assert_says("is not what this coordinator has opened");
    assert_says("it has 0 of 1 tasks. The broker's database was lost or restored");
    assert_says("schedule what is missing once more");
    muster_remote_value_free(&value);
}

static void a_server_is_missing_only_by_fresh_word(void **state)
{
    bool done;

    (void)state;
    atomic_store(&stage.server_lost, true);
    while (muster_coordinator_done(stage.coordinator, &done, &stage.err) == MUSTER_OK)
        usleep(10000);
    assert_int_equal(stage.err.status, MUSTER_E_UNAVAILABLE);
    assert_says("parameter server 0 was lost");
    atomic_store(&stage.server_lost, false);
    assert_int_equal(muster_coordinator_done(stage.coordinator, &done, &stage.err), MUSTER_OK);
}

/* --- the calls' own failures ------------------------------------------------------------------ */

static void each_call_says_that_no_broker_is_heard(void **state)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL, *none = NULL;
    const void *data;
    size_t size;
    bool done;

    (void)state;
    stage_open_again(400, 1500);
    atomic_store(&stage.silent, true);
    value = stage_schedule();
    assert_int_equal(stage_join(-1), MUSTER_E_BROKER);
    assert_int_equal(stage.err.task, 0);
    assert_says("no broker was heard at tcp://");
    call.function = "fail";
    assert_int_equal(muster_coordinator_schedule(stage.coordinator, &call, -1, &none, &stage.err),
                     MUSTER_E_BROKER);
    assert_null(none);
    assert_int_equal(muster_coordinator_done(stage.coordinator, &done, &stage.err),
                     MUSTER_E_BROKER);
    assert_int_equal(muster_coordinator_flush(stage.coordinator, -1, &stage.err), MUSTER_E_BROKER);
    assert_int_equal(muster_remote_value_fetch(value, -1, &data, &size, &stage.err),
                     MUSTER_E_BROKER);
    assert_int_equal(muster_coordinator_close(&stage.coordinator, NULL), MUSTER_E_BROKER);
    assert_int_equal(stage_open(400, 1500), MUSTER_E_BROKER);
    assert_says("no broker answered at tcp://");
    muster_remote_value_free(&value);
}

static void a_call_waits_its_own_time_for_a_broker_that_was_not_heard(void **state)
{
    muster_remote_value_t *value;

    (void)state;
    stage_open_again(30000, 1500);
    atomic_store(&stage.silent, true);
    value = stage_schedule();
    assert_int_equal(muster_coordinator_flush(stage.coordinator, -1, &stage.err), MUSTER_E_BROKER);
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 0, &stage.err), MUSTER_E_BROKER);
    atomic_store(&stage.silent, false);
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 20000, &stage.err), MUSTER_OK);
    muster_remote_value_free(&value);
}

static void close_says_what_was_not_taken(void **state)
{
    muster_remote_value_t *value;

    (void)state;
    stage_open_again(30000, STAGE_BROKER_MS);
    atomic_store(&stage.no_answer, WIRE_TASKS_ADD);
    value = stage_schedule();
    assert_int_equal(muster_coordinator_close(&stage.coordinator, NULL), MUSTER_E_TIMEOUT);
    muster_remote_value_free(&value);
    assert_int_equal(stage_open(30000, STAGE_BROKER_MS), MUSTER_OK);
    value = stage_schedule();
    atomic_store(&stage.queue, STAGE_QUEUE + 1);
    atomic_store(&stage.start, 2);
    assert_int_equal(muster_coordinator_close(&stage.coordinator, NULL), MUSTER_E_STALE);
    muster_remote_value_free(&value);
}

/* The raise is never answered, as long as something runs. */
static void done_does_not_wait_for_what_ignores_that_it_is_cancelled(void **state)
{
    muster_remote_value_t *value = stage_schedule();
    enum muster_status status;
    bool done = true;

    (void)state;
    stage.coordinator->done_wait_ms = 200;
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.no_answer, WIRE_RAISE);
    atomic_store(&stage.failed, true);
    while (atomic_load(&stage.raises) < 2) { /* or it hangs, and the alarm ends it */
        assert_int_equal(muster_coordinator_done(stage.coordinator, &done, &stage.err), MUSTER_OK);
        assert_false(done);
        usleep(1000);
    }
    atomic_store(&stage.no_answer, WIRE_NONE);
    while ((status = muster_coordinator_done(stage.coordinator, &done, &stage.err)) == MUSTER_OK)
        assert_false(done);
    assert_int_equal(status, MUSTER_E_TASK);
    assert_int_equal(stage.err.task, 1);
    muster_remote_value_free(&value);
}

/* As brokers of before MUSTER_E_TASK_TIMEOUT have it on record. */
static void done_returns_the_time_out_of_a_task(void **state)
{
    muster_remote_value_t *value = stage_schedule();
    enum muster_status status;
    bool done;

    (void)state;
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.raised_status, MUSTER_E_TIMEOUT);
    atomic_store(&stage.failed, true);
    while ((status = muster_coordinator_done(stage.coordinator, &done, &stage.err)) == MUSTER_OK)
        usleep(1000); /* the alarm ends it if it is never told */
    assert_int_equal(status, MUSTER_E_TIMEOUT);
    assert_int_equal(stage.err.task, 1);
    muster_remote_value_free(&value);
}

static enum muster_status create(const char *args)
{
    muster_per_worker_t *value = NULL;
    enum muster_status status = muster_coordinator_create_per_worker(
        stage.coordinator, "make", args, strlen(args), &value, &stage.err);

    assert_true((status == MUSTER_OK) == (value != NULL));
    return status;
}

static void a_value_that_was_not_answered_is_made_once(void **state)
{
    (void)state;
    stage_open_again(400, 30000);
    atomic_store(&stage.no_answer, WIRE_RESOURCE_ADD);
    assert_int_equal(create("7"), MUSTER_E_TIMEOUT);
    assert_int_equal(create("7"), MUSTER_E_TIMEOUT);
    atomic_store(&stage.no_answer, WIRE_NONE);
    stage.coordinator->connect_timeout_ms = 30000;
    assert_int_equal(create("7"), MUSTER_OK);
    assert_int_equal(atomic_load(&stage.resource), 1);
    assert_int_equal(create("7"), MUSTER_OK); /* another of the same kind */
    assert_int_equal(atomic_load(&stage.resource), 2);
}

static void a_number_that_was_refused_is_the_next_ones(void **state)
{
    (void)state;
    assert_int_equal(create("7"), MUSTER_OK);
    atomic_store(&stage.other_made, true);
    assert_int_equal(create("8"), MUSTER_E_EXISTS);
    assert_says("per-worker value 2 of queue says was made by another call");
    atomic_store(&stage.other_made, false);
    assert_int_equal(create("9"), MUSTER_OK);
    assert_int_equal(atomic_load(&stage.resource), 2);
}

/* Also while the broker takes nothing. */
static void schedule_waits_when_its_bytes_are_not_taken(void **state)
{
    static uint8_t args[49152];
    struct muster_call call = MUSTER_CALL_INIT;
    enum muster_status status = MUSTER_OK;
    size_t scheduled = 0;

    (void)state;
    atomic_store(&stage.busy, true);
    call.function = "fail";
    call.args = args;
    call.args_size = sizeof args;
    while (status == MUSTER_OK && scheduled <= ((size_t)64 << 20) / sizeof args + 1) {
        status = muster_coordinator_schedule(stage.coordinator, &call, 300, NULL, &stage.err);
        scheduled += status == MUSTER_OK;
    }
    assert_int_equal(status, MUSTER_E_TIMEOUT);
    assert_says("the queue stayed full and nothing was scheduled");
    assert_int_equal(scheduled, muster_coordinator_scheduled(stage.coordinator));
    assert_int_equal(scheduled, ((size_t)64 << 20) / sizeof args + 1);
    atomic_store(&stage.busy, false);
    assert_int_equal(muster_coordinator_schedule(stage.coordinator, &call, 30000, NULL, &stage.err),
                     MUSTER_OK);
}

static uint64_t untaken_bytes(void)
{
    uint64_t bytes;

    pthread_mutex_lock(&stage.coordinator->mutex);
    bytes = stage.coordinator->untaken_bytes;
    pthread_mutex_unlock(&stage.coordinator->mutex);
    return bytes;
}

/* Or a long task would hold on to its place in the 64 MiB until it ends. */
static void what_was_taken_unheard_waits_no_more(void **state)
{
    struct muster_call call = MUSTER_CALL_INIT;

    (void)state;
    atomic_store(&stage.no_answer, WIRE_TASKS_ADD);
    call.function = "fail";
    call.args = "arguments";
    call.args_size = 9;
    assert_int_equal(muster_coordinator_schedule(stage.coordinator, &call, 10000, NULL, &stage.err),
                     MUSTER_OK);
    assert_int_equal(untaken_bytes(), 9);
    stage_broker_is_another(1, WIRE_TASKS_ADD);
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 20000, &stage.err), MUSTER_OK);
    assert_int_equal(untaken_bytes(), 0);
}

/* A process that is stopped for longer than broker_timeout_ms hears nobody, which is nobody's
 * fault. */
static void who_was_stopped_blames_no_broker(void **state)
{
#ifdef __SANITIZE_THREAD__
    (void)state;
    puts("skipped: TSan follows no threads that a forked child begins");
    skip();
#else
    pid_t child;
    int status;

    (void)state;
    muster_coordinator_close(&stage.coordinator, NULL);
    child = fork();
    if (child == 0) {
        bool done;

        alarm(STAGE_PATIENCE_S);
        if (stage_open(30000, 3500) != MUSTER_OK)
            _exit(2);
        raise(SIGSTOP);
        for (int i = 0; i < 50; i++, usleep(1000))
            if (muster_coordinator_done(stage.coordinator, &done, &stage.err) != MUSTER_OK)
                _exit(3);
        _exit(muster_coordinator_close(&stage.coordinator, NULL) == MUSTER_OK ? 0 : 4);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    sleep(5); /* longer than broker_timeout_ms: that is the case */
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
#endif
}

/* In a child: each call is refused, whoever holds which lock in the parent, and nothing of it is
 * touched. */
static int call_everything(muster_remote_value_t *value)
{
    struct muster_place place = {.kind = MUSTER_PLACE_VALUE, .value = value};
    struct muster_call call = MUSTER_CALL_INIT;
    muster_per_worker_t *per_worker = NULL;
    muster_remote_value_t *other = NULL;
    const void *data;
    size_t size;
    bool done;

    call.function = "fail";
    if (muster_coordinator_schedule(stage.coordinator, &call, -1, &other, &stage.err) !=
            MUSTER_E_FORKED ||
        stage_join(-1) != MUSTER_E_FORKED ||
        muster_coordinator_done(stage.coordinator, &done, &stage.err) != MUSTER_E_FORKED ||
        muster_coordinator_flush(stage.coordinator, -1, &stage.err) != MUSTER_E_FORKED ||
        muster_coordinator_create_per_worker(stage.coordinator, "make", "7", 1, &per_worker,
                                             &stage.err) != MUSTER_E_FORKED)
        return 1;
    if (muster_remote_value_fetch(value, -1, &data, &size, &stage.err) != MUSTER_E_FORKED ||
        muster_coordinator_fetch(stage.coordinator, &place, -1, &stage.err) != MUSTER_E_FORKED ||
        muster_remote_value_cancel(value, &stage.err) != MUSTER_E_FORKED ||
        muster_coordinator_value(stage.coordinator, 1, &other, &stage.err) != MUSTER_E_FORKED)
        return 2;
    if (strstr(stage.err.text, "forked from the coordinator's") == NULL ||
        muster_coordinator_scheduled(stage.coordinator) != 0)
        return 3;
    muster_coordinator_release(stage.coordinator);
    muster_remote_value_free(&value);
    if (value != NULL || muster_coordinator_close(&stage.coordinator, NULL) != MUSTER_E_FORKED ||
        stage.coordinator != NULL)
        return 4;
    return 0;
}

static void a_forked_child_calls_in_vain_and_harms_nobody(void **state)
{
    muster_remote_value_t *value = stage_schedule();
    pid_t child;
    int status;

    (void)state;
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    pthread_mutex_lock(&stage.coordinator->mutex); /* as a thread that the child does not have */
    child = fork();
    if (child == 0) {
        alarm(STAGE_PATIENCE_S / 2);
        _exit(call_everything(value));
    }
    pthread_mutex_unlock(&stage.coordinator->mutex);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    atomic_store(&stage.done, 1);
    assert_int_equal(stage_join(20000), MUSTER_OK);
    muster_remote_value_free(&value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_begin, stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_error_names_task_function_worker_and_what_was_cancelled),
        TEST(a_time_out_tells_numbers_that_are_of_now),
        TEST(a_lost_database_is_told_from_another_coordinator),
        TEST(a_server_is_missing_only_by_fresh_word),
        TEST(each_call_says_that_no_broker_is_heard),
        TEST(a_call_waits_its_own_time_for_a_broker_that_was_not_heard),
        TEST(close_says_what_was_not_taken),
        TEST(done_does_not_wait_for_what_ignores_that_it_is_cancelled),
        TEST(done_returns_the_time_out_of_a_task),
        TEST(a_value_that_was_not_answered_is_made_once),
        TEST(a_number_that_was_refused_is_the_next_ones),
        TEST(schedule_waits_when_its_bytes_are_not_taken),
        TEST(what_was_taken_unheard_waits_no_more),
        TEST(who_was_stopped_blames_no_broker),
        TEST(a_forked_child_calls_in_vain_and_harms_nobody),
    };

    return cmocka_run_group_tests_name("coordinator_says", tests, NULL, NULL);
}
