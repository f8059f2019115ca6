/* prog_tasks - a worker, or a coordinator that insists on one behaviour, for the tests of tasks.
 *
 *   prog_tasks worker [SLOTS [PREFETCH]]   serves until SIGTERM; MUSTER_BROKER, _JOB, _RANK
 *   prog_tasks SCENARIO                    exits with 0 when it went as it must
 *   prog_tasks run COUNT ["die"|"count"]   schedules COUNT tasks, joins, fetches all
 *   prog_tasks hold                        three tasks that wait for the file TASKS_LOG.go
 *   prog_tasks stay                        one task done, one that runs, one that waits; until it
 *                                          is killed
 *   prog_tasks values                      24 tasks that use a value which takes 2 s to make, then
 *                                          6 more at SIGUSR1
 *   prog_tasks lost_ps COUNT [WHY]         COUNT slow tasks, a parameter server that is lost, then
 *                                          is back, and one task more. With WHY, that is why it is
 *                                          missing, and the tasks wait for the file
 *   prog_tasks stopped                     two tasks, of a short and a long result, done in their
 *                                          second attempts: what a fetch gives, also to one who
 *                                          attaches at SIGUSR1
 *   prog_tasks beside COUNT                so many tasks of prog_member: its steps go on
 *   prog_tasks silent                      one task that says nothing; until it is killed
 *   prog_tasks begin COUNT                 schedules COUNT and goes; `prog_tasks attach COUNT`
 *                                          finds them
 *   prog_tasks leave COUNT                 schedules COUNT that wait for the file; until it is
 *                                          killed
 *   prog_tasks leave_an_error              one that fails and 20 that wait; until it is killed:
 *                                          `attach_error`
 *
 * What the functions are and note: task_functions.h. */
#include <muster/muster.h>

#include "tests/proc/check.h"
#include "tests/proc/tasks/task_calls.h"
#include "tests/proc/tasks/task_functions.h"
#include "tests/support/storm.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the worker ------------------------------------------------------------------------------- */

static muster_worker_t *worker;

static void on_term(int signo)
{
    (void)signo;
    muster_worker_stop(worker);
}

static int work(int slots, int prefetch)
{
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;
    struct sigaction action = {.sa_handler = on_term};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* until there is a worker to stop */
    options.slots = slots;
    options.prefetch = prefetch;
    options.connect_timeout_ms = PATIENCE_MS;
    CHECK(muster_worker_open(&options, &worker, &err) == MUSTER_OK);
    CHECK(task_functions_register(worker, &err) == MUSTER_OK);
    CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    CHECK(muster_worker_serve(worker, &err) == MUSTER_OK);
    muster_worker_close(&worker, NULL);
    return 0;
}

/* --- the coordinator -------------------------------------------------------------------------- */

static void error_in_schedule(void)
{
    muster_remote_value_t *bad = task_schedule("fail", "17"), *value;

    task_await_failure(bad);
    CHECK(task_try_schedule("echo", "a", &value) == MUSTER_E_TASK);
    CHECK(err.code == 17 && strstr(err.text, "failed with code 17") != NULL);
    CHECK(strstr(err.text, ": fail at worker ") != NULL);
    CHECK(strstr(err.text, ": as it was asked to") != NULL);
    value = task_schedule("echo", "b"); /* cleared */
    task_expect(&value, "b");
    CHECK(task_join() == MUSTER_OK);
    muster_remote_value_free(&bad);
}

static void error_in_join(void)
{
    muster_remote_value_t *bad = task_schedule("fail", "3"), *values[20];

    for (int i = 0; i < 20; i++)
        values[i] = task_schedule("slow", "60000"); /* they are told to end, or were not begun */
    CHECK(task_join() == MUSTER_E_TASK && err.code == 3);
    for (int i = 0; i < 20; i++)
        task_expect_error(&values[i], MUSTER_E_CANCELLED);
    CHECK(task_join() == MUSTER_OK);
    muster_remote_value_free(&bad);
}

/* Who waits for a result behind an error waits for nothing; the error itself is the next call's. */
static void fetch_behind_an_error(void)
{
    muster_remote_value_t *bad = task_schedule("fail", "5"), *values[20];

    for (int i = 0; i < 20; i++)
        values[i] = task_schedule("slow", "60000");
    task_expect_error(&values[19], MUSTER_E_CANCELLED);
    CHECK(task_join() == MUSTER_E_TASK && err.code == 5);
    for (int i = 0; i < 19; i++)
        task_expect_error(&values[i], MUSTER_E_CANCELLED);
    CHECK(task_join() == MUSTER_OK);
    muster_remote_value_free(&bad);
}

/* A coordinator that comes after finds a value by its number only if it is the same. */
static void another_value(void)
{
    muster_per_worker_t *made, *again;

    muster_coordinator_close(&task_coordinator, NULL);
    task_open_queue("values", true, 0);
    CHECK(muster_coordinator_create_per_worker(task_coordinator, "make", "7", 1, &made, &err) ==
          MUSTER_OK);
    muster_coordinator_close(&task_coordinator, NULL);
    task_open_queue("values", false, 0);
    CHECK(muster_coordinator_create_per_worker(task_coordinator, "make", "8", 1, &again, &err) ==
          MUSTER_E_EXISTS);
    CHECK(strstr(err.text, "per-worker value 1 of queue values") != NULL);
    CHECK(muster_coordinator_create_per_worker(task_coordinator, "make", "7", 1, &again, &err) ==
          MUSTER_OK);
}

static void error_in_done(void)
{
    muster_remote_value_t *bad = task_schedule("fail", "4");
    bool done = false;

    task_await_failure(bad);
    CHECK(muster_coordinator_done(task_coordinator, &done, &err) == MUSTER_E_TASK && err.code == 4);
    CHECK(muster_coordinator_done(task_coordinator, &done, &err) == MUSTER_OK && done);
    muster_remote_value_free(&bad);
}

static void many_errors(void)
{
    muster_remote_value_t *first, *values[10];
    int raised = 0;

    first = task_schedule("fail", "1");
    task_await_failure(first);
    muster_remote_value_free(&first);
    CHECK(task_join() == MUSTER_E_TASK && err.code == 1);
    for (int i = 0; i < 10; i++)
        if (task_try_schedule("fail", "2", &values[i]) != MUSTER_OK) {
            CHECK(err.status == MUSTER_E_TASK && err.code == 2);
            values[i] = NULL;
            raised++;
        }
    if (task_join() != MUSTER_OK) {
        CHECK(err.status == MUSTER_E_TASK && err.code == 2);
        raised++;
    }
    CHECK(raised > 0);
    CHECK(task_join() == MUSTER_OK); /* all have ended, and one return clears them all */
    for (int i = 0; i < 10; i++)
        muster_remote_value_free(&values[i]);
}

static void cancelled_is_not_reported(void)
{
    muster_remote_value_t *value = task_schedule("slow", "60000"), *bad;
    const char *text;

    CHECK(muster_remote_value_cancel(value, &err) == MUSTER_OK);
    CHECK(task_fetch(value, &text) == MUSTER_E_CANCELLED);
    CHECK(task_join() == MUSTER_OK);
    muster_remote_value_free(&value);
    value = task_schedule("slow", "60000");
    bad = task_schedule("fail", "6");
    CHECK(task_join() == MUSTER_E_TASK && err.code == 6); /* and not what was cancelled by it */
    task_expect_error(&value, MUSTER_E_CANCELLED);
    muster_remote_value_free(&bad);
}

static void *schedule_twenty(void *arg)
{
    struct muster_error own;

    for (int i = 0; i < 20; i++) {
        struct muster_call call = MUSTER_CALL_INIT;
        muster_remote_value_t *value = NULL;
        const void *data;
        size_t size;

        call.function = "echo";
        call.args = "x";
        call.args_size = 1;
        if (muster_coordinator_schedule(task_coordinator, &call, PATIENCE_MS, &value, &own) !=
                MUSTER_OK ||
            muster_remote_value_fetch(value, PATIENCE_MS, &data, &size, &own) != MUSTER_OK ||
            size != 1)
            return arg; /* not NULL */
        muster_remote_value_free(&value);
    }
    return NULL;
}

static void ten_threads(void)
{
    pthread_t threads[10];
    void *result;

    for (int i = 0; i < 10; i++)
        CHECK(pthread_create(&threads[i], NULL, schedule_twenty, task_coordinator) == 0);
    for (int i = 0; i < 10; i++)
        CHECK(pthread_join(threads[i], &result) == 0 && result == NULL);
    CHECK(task_join() == MUSTER_OK);
    CHECK(muster_coordinator_scheduled(task_coordinator) >= 200);
}

static void nested_results(void)
{
    muster_remote_value_t *a = task_schedule("echo", "a"), *b = task_schedule("echo", "b");
    struct muster_place inner[2] = {{.kind = MUSTER_PLACE_VALUE, .value = b},
                                    {.kind = MUSTER_PLACE_PLAIN, .data = "p", .size = 1}};
    struct muster_place outer[2] = {{.kind = MUSTER_PLACE_LIST, .items = inner, .count = 2},
                                    {.kind = MUSTER_PLACE_VALUE, .value = a}};
    struct muster_place all = {.kind = MUSTER_PLACE_LIST, .items = outer, .count = 2};

    CHECK(muster_coordinator_fetch(task_coordinator, &all, PATIENCE_MS, &err) == MUSTER_OK);
    CHECK(inner[0].size == 1 && memcmp(inner[0].data, "b", 1) == 0);
    CHECK(outer[1].size == 1 && memcmp(outer[1].data, "a", 1) == 0);
    CHECK(inner[1].size == 1 && memcmp(inner[1].data, "p", 1) == 0);
    muster_remote_value_free(&a);
    muster_remote_value_free(&b);
}

static void remote_value_is_refused(void)
{
    muster_remote_value_t *value = task_schedule("echo", "a"), *other;
    muster_per_worker_t *as = (muster_per_worker_t *)value;
    struct muster_call call = MUSTER_CALL_INIT;

    call.function = "echo";
    call.per_worker = &as;
    call.per_worker_count = 1;
    CHECK(muster_coordinator_schedule(task_coordinator, &call, 0, &other, &err) ==
          MUSTER_E_ARGUMENT);
    CHECK(strstr(err.text, "remote value") != NULL);
    task_expect(&value, "a");
}

/* A per-worker value is its own queue's: under its number another has another one. */
static void another_queues_value_is_refused(void)
{
    muster_coordinator_t *first = task_coordinator, *second;
    muster_per_worker_t *made, *others;
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    CHECK(muster_coordinator_create_per_worker(first, "make", "7", 1, &made, &err) == MUSTER_OK);
    task_open_queue("second", true, 0);
    second = task_coordinator;
    CHECK(muster_coordinator_create_per_worker(second, "make", "8", 1, &others, &err) == MUSTER_OK);
    task_coordinator = first;
    call.function = "use";
    call.per_worker = &others;
    call.per_worker_count = 1;
    CHECK(muster_coordinator_schedule(first, &call, 0, &value, &err) == MUSTER_E_ARGUMENT);
    CHECK(value == NULL && strstr(err.text, "another coordinator's") != NULL);
    value = task_schedule_use(made);
    task_expect(&value, "7");
    muster_coordinator_close(&second, NULL);
}

/* Who means "for ever" may say it so. */
static void longest_time_outs(void)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    struct muster_call call = MUSTER_CALL_INIT;
    muster_coordinator_t *c = NULL;
    muster_remote_value_t *value = NULL;
    struct muster_place place = {.kind = MUSTER_PLACE_VALUE};

    options.name = "patient";
    options.fresh = true;
    options.connect_timeout_ms = options.broker_timeout_ms = INT64_MAX;
    CHECK(muster_coordinator_open(&options, &c, &err) == MUSTER_OK);
    call.function = "echo";
    CHECK(muster_coordinator_schedule(c, &call, INT64_MAX, &value, &err) == MUSTER_OK);
    place.value = value;
    CHECK(muster_coordinator_fetch(c, &place, INT64_MAX, &err) == MUSTER_OK);
    CHECK(muster_coordinator_flush(c, INT64_MAX, &err) == MUSTER_OK);
    CHECK(muster_coordinator_join(c, INT64_MAX, &err) == MUSTER_OK);
    muster_remote_value_free(&value);
    CHECK(muster_coordinator_close(&c, NULL) == MUSTER_OK);
}

static void per_worker_values(void)
{
    muster_per_worker_t *made, *bad, *again;
    muster_remote_value_t *values[12];

    CHECK(muster_coordinator_create_per_worker(task_coordinator, "make", "7", 1, &made, &err) ==
          MUSTER_OK);
    CHECK(muster_coordinator_create_per_worker(task_coordinator, "make_bad", "", 0, &bad, &err) ==
          MUSTER_OK);
    for (int i = 0; i < 12; i++)
        values[i] = task_schedule_use(made); /* R22.4: the bad one harms only its users */
    for (int i = 0; i < 12; i++)
        task_expect(&values[i], "7");
    CHECK(task_join() == MUSTER_OK);
    CHECK(muster_coordinator_create_per_worker(task_coordinator, "make_again", "6", 1, &again,
                                               &err) == MUSTER_OK);
    values[0] = task_schedule_use(again);
    task_expect(&values[0], "6");
    values[0] = task_schedule("make", "5"); /* a task that makes one makes it for nobody */
    task_expect(&values[0], "");
    values[0] = task_schedule_use(bad);
    CHECK(task_join() == MUSTER_E_INPUT && strstr(err.text, "the file of numbers") != NULL);
    task_expect_error(&values[0], MUSTER_E_INPUT);
}

static void check_big(size_t size)
{
    char text[32];
    muster_remote_value_t *value;
    const void *data;
    const uint8_t *bytes;
    size_t got;

    snprintf(text, sizeof text, "%zu", size);
    value = task_schedule("big", text);
    CHECK(muster_remote_value_fetch(value, PATIENCE_MS, &data, &got, &err) == MUSTER_OK);
    CHECK(got == size);
    bytes = data;
    for (size_t i = 0; i < size; i++)
        CHECK(bytes[i] == (uint8_t)(i * 31 + i / 977));
    muster_remote_value_free(&value);
}

static void big_results(void)
{
    static const size_t sizes[] = {0, 1, 32768, 32769, 49152, 49153, 98304, 1000000, 16 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_big(sizes[i]);
}

static void too_big_a_result(void)
{
    muster_remote_value_t *value = task_schedule("too_big", "");

    CHECK(task_join() == MUSTER_E_ARGUMENT && strstr(err.text, "16777217 bytes") != NULL &&
          strstr(err.text, "at most 16777216") != NULL);
    task_expect_error(&value, MUSTER_E_ARGUMENT);
}

static void renewed_lease(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "renew";
    call.timeout_ms = 1000;
    CHECK(muster_coordinator_schedule(task_coordinator, &call, PATIENCE_MS, &value, &err) ==
          MUSTER_OK);
    task_expect(&value, "");
    CHECK(task_join() == MUSTER_OK);
}

static void size_two(void)
{
    muster_coordinator_close(&task_coordinator, NULL);
    task_open_queue("two", true, 2);
    for (int i = 0; i < 50; i++) {
        muster_remote_value_t *value = task_schedule("echo", "x");
        muster_remote_value_free(&value);
    }
    CHECK(task_join() == MUSTER_OK);
    CHECK(muster_coordinator_scheduled(task_coordinator) == 50);
}

/* Its tasks are held, so that nothing makes room. */
static void full_queue_blocks(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    muster_coordinator_close(&task_coordinator, NULL);
    task_open_queue("full", true, 2);
    for (int i = 0; i < 2; i++) {
        value = task_schedule("gated", "x");
        muster_remote_value_free(&value);
    }
    call.function = "gated";
    CHECK(muster_coordinator_schedule(task_coordinator, &call, 300, &value, &err) ==
          MUSTER_E_TIMEOUT);
    CHECK(err.task == 0 && strstr(err.text, "the queue stayed full") != NULL);
    CHECK(value == NULL && muster_coordinator_scheduled(task_coordinator) == 2);
    task_gate(true);
    value = task_schedule("gated", "y");
    task_expect(&value, "y");
    CHECK(task_join() == MUSTER_OK && muster_coordinator_scheduled(task_coordinator) == 3);
    task_gate(false);
}

/* The wait's own end and the task's are told apart by status and error.task alone. */
static void time_limits(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;
    enum muster_status status;
    int waits = 0;

    call.function = "slow";
    call.args = "600000";
    call.args_size = 6;
    call.timeout_ms = 300;
    CHECK(muster_coordinator_schedule(task_coordinator, &call, PATIENCE_MS, &value, &err) ==
          MUSTER_OK);
    while ((status = muster_coordinator_join(task_coordinator, 50, &err)) == MUSTER_E_TIMEOUT) {
        CHECK(err.task == 0);
        waits++;
    }
    CHECK(status == MUSTER_E_TASK_TIMEOUT && waits > 0);
    CHECK(err.task == muster_remote_value_id(value));
    task_expect_error(&value, MUSTER_E_TASK_TIMEOUT);
    CHECK(task_join() == MUSTER_OK);
}

/* They take a while to end once they are told to; there are slots for more. */
static void nothing_runs_behind_an_error(void)
{
    muster_remote_value_t *values[4], *bad;
    size_t begun, ended;

    for (int i = 0; i < 4; i++)
        values[i] = task_schedule("linger", "");
    do
        task_lingerers(&begun, &ended);
    while (begun < 3 && task_nap(5));
    bad = task_schedule("fail", "8");
    CHECK(task_join() == MUSTER_E_TASK && err.code == 8);
    task_lingerers(&begun, &ended);
    CHECK(begun >= 3 && begun == ended);
    for (int i = 0; i < 4; i++)
        task_expect_error(&values[i], MUSTER_E_CANCELLED);
    muster_remote_value_free(&bad);
}

/* Whoever schedules and leaves: close handed over for a second, and lost the rest without a word */
static void fire_and_forget(void)
{
    const uint64_t count = 20000;

    muster_coordinator_close(&task_coordinator, NULL);
    task_open_queue("forget", true, 0);
    for (uint64_t i = 0; i < count; i++) {
        muster_remote_value_t *value = task_schedule("echo", "x");
        muster_remote_value_free(&value);
    }
    CHECK(muster_coordinator_close(&task_coordinator, NULL) == MUSTER_OK);
    task_open_queue("forget", false, 0);
    CHECK(muster_coordinator_scheduled(task_coordinator) == count);
    CHECK(muster_coordinator_flush(task_coordinator, -1, &err) == MUSTER_OK);
    muster_coordinator_close(&task_coordinator, NULL);
    task_open_queue("forget", true, 0); /* nobody waits for them */
}

static void unknown_function(void)
{
    muster_remote_value_t *value = task_schedule("nobody_knows_it", "");

    CHECK(task_join() == MUSTER_E_NOT_FOUND && strstr(err.text, "nobody_knows_it") != NULL);
    task_expect_error(&value, MUSTER_E_NOT_FOUND);
    CHECK(task_try_schedule("no\xff", "", &value) ==
          MUSTER_E_ARGUMENT); /* no frame could carry it */
}

/* Ends its workers as often as it may: then it is named, and the rest is done. */
static void poisoned(void)
{
    muster_remote_value_t *bad = task_schedule("die", "100");

    CHECK(task_join() == MUSTER_E_LOST && strstr(err.text, "task 1 (die)") != NULL);
    task_expect_error(&bad, MUSTER_E_LOST);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } scenarios[] = {{"error_in_schedule", error_in_schedule},
                     {"error_in_join", error_in_join},
                     {"fetch_behind_an_error", fetch_behind_an_error},
                     {"another_value", another_value},
                     {"error_in_done", error_in_done},
                     {"many_errors", many_errors},
                     {"cancelled_is_not_reported", cancelled_is_not_reported},
                     {"ten_threads", ten_threads},
                     {"nested_results", nested_results},
                     {"remote_value_is_refused", remote_value_is_refused},
                     {"per_worker_values", per_worker_values},
                     {"another_queues_value_is_refused", another_queues_value_is_refused},
                     {"longest_time_outs", longest_time_outs},
                     {"big_results", big_results},
                     {"too_big_a_result", too_big_a_result},
                     {"renewed_lease", renewed_lease},
                     {"size_two", size_two},
                     {"full_queue_blocks", full_queue_blocks},
                     {"time_limits", time_limits},
                     {"nothing_runs_behind_an_error", nothing_runs_behind_an_error},
                     {"fire_and_forget", fire_and_forget},
                     {"unknown_function", unknown_function},
                     {"poisoned", poisoned}};
    const char *what = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 0;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* for who awaits it */
    storm_from_environment();
    if (strcmp(what, "worker") == 0)
        return work(count, argc > 3 ? atoi(argv[3]) : 0);
    task_open_queue("main", strstr(what, "attach") != what, 0); /* attach, attach_error */
    task_script(what, count, argc > 3 ? argv[3] : NULL);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(what, scenarios[i].name) == 0 || strcmp(what, "all") == 0)
            if (scenarios[i].fn != poisoned || strcmp(what, "all") != 0)
                scenarios[i].fn();
    muster_coordinator_close(&task_coordinator, NULL);
    return 0;
}
