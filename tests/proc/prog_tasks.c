/* prog_tasks - a worker, or a coordinator that insists on one behaviour, for the tests of tasks.
 *
 *   prog_tasks worker [SLOTS [PREFETCH]]   serves until SIGTERM; MUSTER_BROKER, MUSTER_JOB, MUSTER_RANK
 *   prog_tasks SCENARIO                    exits with 0 when it went as it must
 *   prog_tasks run COUNT ["die"|"count"]   schedules COUNT tasks, joins, fetches all
 *   prog_tasks hold                        three tasks that wait for the file TASKS_LOG.go
 *   prog_tasks stay                        one task done, one that runs, one that waits; until it is killed
 *   prog_tasks values                      24 tasks that use a value which takes 2 s to make, then 6 more at SIGUSR1
 *   prog_tasks lost_ps COUNT               COUNT slow tasks, a parameter server that is lost, then is back
 *   prog_tasks beside COUNT                so many tasks of prog_member: its steps go on
 *   prog_tasks silent                      one task that says nothing; until it is killed
 *   prog_tasks begin COUNT                 schedules COUNT and goes; `prog_tasks attach COUNT` finds them
 *
 * Every attempt is one line "ID ATTEMPT" in the file TASKS_LOG, written before the function does anything. */
#include <muster/muster.h>

#include "tests/proc/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000

static struct muster_error err; /* of the main thread */
static muster_coordinator_t *coordinator;

/* --- functions ---------------------------------------------------------------------------------- */

static void note(const muster_task_t *task)
{
    const char *path = getenv("TASKS_LOG");
    char line[64];
    int fd = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    int n = snprintf(line, sizeof line, "%" PRIu64 " %d\n", muster_task_id(task),
                     muster_task_attempt(task));

    if (fd < 0)
        return;
    if (write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static void nap(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

static int64_t number_of(const muster_task_t *task)
{
    char text[32] = "";
    size_t size;
    const void *args = muster_task_args(task, &size);

    memcpy(text, args, size < sizeof text ? size : sizeof text - 1);
    return strtoll(text, NULL, 10);
}

static int echo(muster_task_t *task, void *arg)
{
    size_t size;
    const void *args = muster_task_args(task, &size);

    (void)arg;
    note(task);
    return muster_task_set_result(task, args, size) == MUSTER_OK ? 0 : 1;
}

static int fail(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    return muster_task_fail(task, (int)number_of(task), "as it was asked to");
}

/* For so many ms, or until it is cancelled. */
static int slow(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    for (int64_t ms = 0; ms < number_of(task); ms += 5) {
        if (muster_task_cancelled(task))
            return 1;
        nap(5);
    }
    return 0;
}

/* Until the file TASKS_LOG.go is there. */
static int held(muster_task_t *task, void *arg)
{
    char path[1024];

    (void)arg;
    note(task);
    snprintf(path, sizeof path, "%s.go", getenv("TASKS_LOG"));
    while (access(path, F_OK) != 0)
        nap(5);
    return 0;
}

/* Ends its process in its first so many attempts. */
static int die(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    if (muster_task_attempt(task) <= number_of(task))
        raise(SIGKILL);
    return 0;
}

static int big(muster_task_t *task, void *arg)
{
    size_t size = (size_t)number_of(task);
    uint8_t *bytes = malloc(size);
    enum muster_status status;

    (void)arg;
    note(task);
    if (bytes == NULL)
        return 1;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 977);
    status = muster_task_set_result(task, bytes, size);
    free(bytes);
    return status == MUSTER_OK ? 0 : 1;
}

static int make(muster_task_t *task, void *arg)
{
    int *value = malloc(sizeof *value);

    (void)arg;
    if (value == NULL)
        return 1;
    *value = 100 * (int)number_of(task) + muster_task_worker_index(task);
    muster_task_set_value(task, value, free);
    return 0;
}

static int make_slowly(muster_task_t *task, void *arg)
{
    note(task); /* as 1 0: the first value, no attempt */
    nap(2000);
    return make(task, arg);
}

/* Says every 20 ms for 3 s that it goes on. */
static int renew(muster_task_t *task, void *arg)
{
    (void)arg;
    note(task);
    for (int i = 0; i < 150; i++) {
        if (muster_task_cancelled(task))
            return muster_task_fail(task, 8, "it was taken away though it renewed");
        muster_task_renew(task);
        nap(20);
    }
    return 0;
}

/* A result that is one byte too long; whoever does not look at the answer fails all the same. */
static int too_big(muster_task_t *task, void *arg)
{
    size_t size = ((size_t)16 << 20) + 1;
    uint8_t *bytes = calloc(1, size);
    bool refused;

    (void)arg;
    if (bytes == NULL)
        return 1;
    refused = muster_task_set_result(task, bytes, size) == MUSTER_E_ARGUMENT;
    free(bytes);
    return refused ? 0 : 2;
}

static int make_bad(muster_task_t *task, void *arg)
{
    (void)arg;
    return muster_task_fail(task, 5, "the file of numbers is not there");
}

static int use(muster_task_t *task, void *arg)
{
    const int *value = muster_task_value(task, 0);
    char text[32];

    (void)arg;
    note(task);
    if (value == NULL || *value % 100 != muster_task_worker_index(task))
        return muster_task_fail(task, 9, "that is another worker's value");
    snprintf(text, sizeof text, "%d", *value / 100);
    return muster_task_set_result(task, text, strlen(text)) == MUSTER_OK ? 0 : 1;
}

/* --- the worker --------------------------------------------------------------------------------- */

static muster_worker_t *worker;

static void on_term(int signo)
{
    (void)signo;
    muster_worker_stop(worker);
}

static int work(int slots, int prefetch)
{
    static const struct {
        const char *name;
        muster_task_fn *fn;
    } functions[] = {{"echo", echo},         {"fail", fail},       {"slow", slow},
                     {"die", die},           {"big", big},         {"make", make},
                     {"make_bad", make_bad}, {"use", use},         {"make_slowly", make_slowly},
                     {"renew", renew},       {"too_big", too_big}, {"held", held}};
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
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        CHECK(muster_worker_register(worker, functions[i].name, functions[i].fn, NULL, &err) ==
              MUSTER_OK);
    CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    CHECK(muster_worker_serve(worker, &err) == MUSTER_OK);
    muster_worker_close(&worker);
    return 0;
}

/* --- the coordinator ---------------------------------------------------------------------------- */

static void open_queue(const char *name, bool fresh, int64_t max_queued)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;

    options.name = name;
    options.fresh = fresh;
    options.max_queued = max_queued;
    options.connect_timeout_ms = PATIENCE_MS;
    CHECK(muster_coordinator_open(&options, &coordinator, &err) == MUSTER_OK);
}

static enum muster_status try_schedule(const char *function, const char *args,
                                       muster_remote_value_t **ret_value)
{
    struct muster_call call = MUSTER_CALL_INIT;

    call.function = function;
    call.args = args;
    call.args_size = strlen(args);
    return muster_coordinator_schedule(coordinator, &call, PATIENCE_MS, ret_value, &err);
}

static muster_remote_value_t *schedule(const char *function, const char *args)
{
    muster_remote_value_t *value = NULL;

    CHECK(try_schedule(function, args, &value) == MUSTER_OK);
    return value;
}

static enum muster_status join(void)
{
    return muster_coordinator_join(coordinator, PATIENCE_MS, &err);
}

static enum muster_status fetch(muster_remote_value_t *value, const char **ret_text)
{
    static char text[64];
    const void *data;
    size_t size;
    enum muster_status status = muster_remote_value_fetch(value, PATIENCE_MS, &data, &size, &err);

    if (status == MUSTER_OK)
        snprintf(text, sizeof text, "%.*s", (int)size, size > 0 ? (const char *)data : "");
    *ret_text = text;
    return status;
}

static void expect(muster_remote_value_t **value, const char *expected)
{
    const char *text;

    CHECK(fetch(*value, &text) == MUSTER_OK);
    CHECK(strcmp(text, expected) == 0);
    muster_remote_value_free(value);
}

static void expect_error(muster_remote_value_t **value, enum muster_status status)
{
    const char *text;

    CHECK(fetch(*value, &text) == status);
    muster_remote_value_free(value);
}

/* Errors show at the next call that may raise them: wait until the failure is known. */
static void await_failure(muster_remote_value_t *value)
{
    const char *text;

    CHECK(fetch(value, &text) == MUSTER_E_TASK);
}

static void error_in_schedule(void)
{
    muster_remote_value_t *bad = schedule("fail", "17"), *value;

    await_failure(bad);
    CHECK(try_schedule("echo", "a", &value) == MUSTER_E_TASK);
    CHECK(err.code == 17 && strstr(err.text, "failed with code 17") != NULL);
    CHECK(strstr(err.text, ": fail at worker ") != NULL);
    CHECK(strstr(err.text, ": as it was asked to") != NULL);
    value = schedule("echo", "b"); /* cleared */
    expect(&value, "b");
    CHECK(join() == MUSTER_OK);
    muster_remote_value_free(&bad);
}

static void error_in_join(void)
{
    muster_remote_value_t *bad = schedule("fail", "3"), *values[20];

    for (int i = 0; i < 20; i++)
        values[i] = schedule("slow", "60000"); /* they are told to end, or were not begun */
    CHECK(join() == MUSTER_E_TASK && err.code == 3);
    for (int i = 0; i < 20; i++)
        expect_error(&values[i], MUSTER_E_CANCELLED);
    CHECK(join() == MUSTER_OK);
    muster_remote_value_free(&bad);
}

/* Who waits for a result behind an error waits for nothing; the error itself is the next call's. */
static void fetch_behind_an_error(void)
{
    muster_remote_value_t *bad = schedule("fail", "5"), *values[20];

    for (int i = 0; i < 20; i++)
        values[i] = schedule("slow", "60000");
    expect_error(&values[19], MUSTER_E_CANCELLED);
    CHECK(join() == MUSTER_E_TASK && err.code == 5);
    for (int i = 0; i < 19; i++)
        expect_error(&values[i], MUSTER_E_CANCELLED);
    CHECK(join() == MUSTER_OK);
    muster_remote_value_free(&bad);
}

/* A coordinator that comes after finds a value by its number only if it is the same. */
static void another_value(void)
{
    muster_per_worker_t *made, *again;

    muster_coordinator_close(&coordinator);
    open_queue("values", true, 0);
    CHECK(muster_coordinator_create_per_worker(coordinator, "make", "7", 1, &made, &err) ==
          MUSTER_OK);
    muster_coordinator_close(&coordinator);
    open_queue("values", false, 0);
    CHECK(muster_coordinator_create_per_worker(coordinator, "make", "8", 1, &again, &err) ==
          MUSTER_E_EXISTS);
    CHECK(strstr(err.text, "per-worker value 1 of queue values") != NULL);
    muster_coordinator_close(&coordinator);
    open_queue("values", false, 0);
    CHECK(muster_coordinator_create_per_worker(coordinator, "make", "7", 1, &again, &err) ==
          MUSTER_OK);
}

static void error_in_done(void)
{
    muster_remote_value_t *bad = schedule("fail", "4");
    bool done = false;

    await_failure(bad);
    CHECK(muster_coordinator_done(coordinator, &done, &err) == MUSTER_E_TASK && err.code == 4);
    CHECK(muster_coordinator_done(coordinator, &done, &err) == MUSTER_OK && done);
    muster_remote_value_free(&bad);
}

static void many_errors(void)
{
    muster_remote_value_t *first, *values[10];

    first = schedule("fail", "1");
    await_failure(first);
    muster_remote_value_free(&first);
    CHECK(join() == MUSTER_E_TASK && err.code == 1);
    for (int i = 0; i < 10; i++)
        if (try_schedule("fail", "2", &values[i]) != MUSTER_OK)
            values[i] = NULL;
    join();
    for (int i = 0; i < 10; i++)
        muster_remote_value_free(&values[i]);
    CHECK(join() == MUSTER_OK);
}

static void cancelled_is_not_reported(void)
{
    muster_remote_value_t *value = schedule("slow", "60000"), *bad;
    const char *text;

    CHECK(muster_remote_value_cancel(value, &err) == MUSTER_OK);
    CHECK(fetch(value, &text) == MUSTER_E_CANCELLED);
    CHECK(join() == MUSTER_OK);
    muster_remote_value_free(&value);
    value = schedule("slow", "60000");
    bad = schedule("fail", "6");
    CHECK(join() == MUSTER_E_TASK && err.code == 6); /* and not what was cancelled by it */
    expect_error(&value, MUSTER_E_CANCELLED);
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
        if (muster_coordinator_schedule(coordinator, &call, PATIENCE_MS, &value, &own) !=
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
        CHECK(pthread_create(&threads[i], NULL, schedule_twenty, coordinator) == 0);
    for (int i = 0; i < 10; i++)
        CHECK(pthread_join(threads[i], &result) == 0 && result == NULL);
    CHECK(join() == MUSTER_OK);
    CHECK(muster_coordinator_scheduled(coordinator) >= 200);
}

static void nested_results(void)
{
    muster_remote_value_t *a = schedule("echo", "a"), *b = schedule("echo", "b");
    struct muster_place inner[2] = {{.kind = MUSTER_PLACE_VALUE, .value = b},
                                    {.kind = MUSTER_PLACE_PLAIN, .data = "p", .size = 1}};
    struct muster_place outer[2] = {{.kind = MUSTER_PLACE_LIST, .items = inner, .count = 2},
                                    {.kind = MUSTER_PLACE_VALUE, .value = a}};
    struct muster_place all = {.kind = MUSTER_PLACE_LIST, .items = outer, .count = 2};

    CHECK(muster_coordinator_fetch(coordinator, &all, PATIENCE_MS, &err) == MUSTER_OK);
    CHECK(inner[0].size == 1 && memcmp(inner[0].data, "b", 1) == 0);
    CHECK(outer[1].size == 1 && memcmp(outer[1].data, "a", 1) == 0);
    CHECK(inner[1].size == 1 && memcmp(inner[1].data, "p", 1) == 0);
    muster_remote_value_free(&a);
    muster_remote_value_free(&b);
}

static void remote_value_is_refused(void)
{
    muster_remote_value_t *value = schedule("echo", "a"), *other;
    muster_per_worker_t *as = (muster_per_worker_t *)value;
    struct muster_call call = MUSTER_CALL_INIT;

    call.function = "echo";
    call.per_worker = &as;
    call.per_worker_count = 1;
    CHECK(muster_coordinator_schedule(coordinator, &call, 0, &other, &err) == MUSTER_E_ARGUMENT);
    CHECK(strstr(err.text, "remote value") != NULL);
    expect(&value, "a");
}

static muster_remote_value_t *schedule_use(muster_per_worker_t *made)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "use";
    call.per_worker = &made;
    call.per_worker_count = 1;
    CHECK(muster_coordinator_schedule(coordinator, &call, PATIENCE_MS, &value, &err) == MUSTER_OK);
    return value;
}

static void per_worker_values(void)
{
    muster_per_worker_t *made, *bad;
    muster_remote_value_t *values[12];

    CHECK(muster_coordinator_create_per_worker(coordinator, "make", "7", 1, &made, &err) ==
          MUSTER_OK);
    CHECK(muster_coordinator_create_per_worker(coordinator, "make_bad", "", 0, &bad, &err) ==
          MUSTER_OK);
    for (int i = 0; i < 12; i++)
        values[i] = schedule_use(made); /* the bad one does no harm where it is not used */
    for (int i = 0; i < 12; i++)
        expect(&values[i], "7");
    CHECK(join() == MUSTER_OK);
    values[0] = schedule_use(bad);
    CHECK(join() == MUSTER_E_INPUT && strstr(err.text, "the file of numbers") != NULL);
    expect_error(&values[0], MUSTER_E_INPUT);
}

static void check_big(size_t size)
{
    char text[32];
    muster_remote_value_t *value;
    const void *data;
    const uint8_t *bytes;
    size_t got;

    snprintf(text, sizeof text, "%zu", size);
    value = schedule("big", text);
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
    muster_remote_value_t *value = schedule("too_big", "");

    CHECK(join() == MUSTER_E_ARGUMENT && strstr(err.text, "16777217 bytes") != NULL &&
          strstr(err.text, "at most 16777216") != NULL);
    expect_error(&value, MUSTER_E_ARGUMENT);
}

static void renewed_lease(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "renew";
    call.timeout_ms = 1000;
    CHECK(muster_coordinator_schedule(coordinator, &call, PATIENCE_MS, &value, &err) == MUSTER_OK);
    expect(&value, "");
    CHECK(join() == MUSTER_OK);
}

static void size_two(void)
{
    muster_coordinator_close(&coordinator);
    open_queue("two", true, 2);
    for (int i = 0; i < 50; i++) {
        muster_remote_value_t *value = schedule("echo", "x");
        muster_remote_value_free(&value);
    }
    CHECK(join() == MUSTER_OK);
    CHECK(muster_coordinator_scheduled(coordinator) == 50);
}

/* Whoever schedules and leaves: close handed over for a second, and lost the rest without a word. */
static void fire_and_forget(void)
{
    const uint64_t count = 20000;

    muster_coordinator_close(&coordinator);
    open_queue("forget", true, 0);
    for (uint64_t i = 0; i < count; i++) {
        muster_remote_value_t *value = schedule("echo", "x");
        muster_remote_value_free(&value);
    }
    CHECK(muster_coordinator_close(&coordinator) == MUSTER_OK);
    open_queue("forget", false, 0);
    CHECK(muster_coordinator_scheduled(coordinator) == count);
    CHECK(muster_coordinator_flush(coordinator, -1, &err) == MUSTER_OK);
    muster_coordinator_close(&coordinator);
    open_queue("forget", true, 0); /* nobody waits for them */
}

static void unknown_function(void)
{
    muster_remote_value_t *value = schedule("nobody_knows_it", "");

    CHECK(join() == MUSTER_E_NOT_FOUND && strstr(err.text, "nobody_knows_it") != NULL);
    expect_error(&value, MUSTER_E_NOT_FOUND);
    CHECK(try_schedule("no\xff", "", &value) == MUSTER_E_ARGUMENT); /* no frame could carry it */
}

/* Ends its workers as often as it may: then it is named, and the rest is done. */
static void poisoned(void)
{
    muster_remote_value_t *bad = schedule("die", "100");

    CHECK(join() == MUSTER_E_LOST && strstr(err.text, "task 1 (die)") != NULL);
    expect_error(&bad, MUSTER_E_LOST);
}

static void run(int count, const char *function)
{
    muster_remote_value_t **values = calloc((size_t)count, sizeof *values);
    char text[32];

    CHECK(values != NULL);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", strcmp(function, "die") == 0 ? i % 10 == 3 : i);
        values[i] = schedule(function, text);
    }
    CHECK(join() == MUSTER_OK);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", i);
        expect(&values[i], strcmp(function, "echo") == 0 ? text : "");
    }
    free(values);
}

static void attach(int count)
{
    CHECK(muster_coordinator_scheduled(coordinator) == (uint64_t)count);
    CHECK(join() == MUSTER_OK);
    for (int i = 0; i < count; i++) {
        muster_remote_value_t *value = NULL;
        char text[32];

        snprintf(text, sizeof text, "%d", i);
        CHECK(muster_coordinator_value(coordinator, (uint64_t)i + 1, &value, &err) == MUSTER_OK);
        expect(&value, text);
    }
}

/* The values are held to the end: what nobody holds is forgotten. */
static void begin(int count)
{
    muster_remote_value_t **values = calloc((size_t)count, sizeof *values);
    char text[32];

    CHECK(values != NULL);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", i);
        values[i] = schedule("echo", text);
    }
    muster_coordinator_close(&coordinator);
    for (int i = 0; i < count; i++)
        muster_remote_value_free(&values[i]);
    free(values);
}

static void hold(void)
{
    muster_remote_value_t *values[3];

    for (int i = 0; i < 3; i++)
        values[i] = schedule("held", "");
    CHECK(join() == MUSTER_OK);
    muster_coordinator_close(&coordinator); /* nothing was released */
    for (int i = 0; i < 3; i++)
        muster_remote_value_free(&values[i]);
}

static void stay(void)
{
    muster_remote_value_t *value = schedule("echo", "x");
    const char *text;

    CHECK(fetch(value, &text) == MUSTER_OK);
    schedule("slow", "600000");
    schedule("echo", "y");
    for (;;)
        pause();
}

static void values(void)
{
    muster_remote_value_t *tasks[24];
    muster_per_worker_t *made;
    sigset_t set;
    int signo;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    CHECK(muster_coordinator_create_per_worker(coordinator, "make_slowly", "7", 1, &made, &err) ==
          MUSTER_OK);
    for (int i = 0; i < 24; i++)
        tasks[i] = schedule_use(made);
    for (int i = 0; i < 24; i++)
        expect(&tasks[i], "7");
    CHECK(join() == MUSTER_OK);
    CHECK(sigwait(&set, &signo) == 0);
    for (int i = 0; i < 6; i++)
        tasks[i] = schedule_use(made);
    for (int i = 0; i < 6; i++)
        expect(&tasks[i], "7");
    CHECK(join() == MUSTER_OK);
}

static void beside(int count)
{
    muster_remote_value_t *first = schedule("number", ""), *value = NULL;
    long long from, to;
    const char *text;

    CHECK(fetch(first, &text) == MUSTER_OK);
    from = atoll(text);
    for (int i = 1; i < count; i++) {
        muster_remote_value_free(&value);
        value = schedule("number", "");
    }
    CHECK(fetch(value, &text) == MUSTER_OK);
    to = atoll(text);
    CHECK(join() == MUSTER_OK);
    CHECK(from >= 0 &&
          to > from + count / 4); /* a task takes 20 ms and two run at a time, a step 10 */
    muster_remote_value_free(&first);
    muster_remote_value_free(&value);
}

static bool is_unavailable(enum muster_status status)
{
    return status == MUSTER_E_UNAVAILABLE &&
           strstr(err.text, "parameter server 0 of job job (process ") != NULL &&
           strstr(err.text, "start it again") != NULL;
}

/* Each call says so while it is lost, and none does afterwards; the tasks that were scheduled are all done. */
static void lost_ps(int count)
{
    muster_remote_value_t **values = calloc((size_t)count, sizeof *values), *none = NULL;
    enum muster_status status = MUSTER_OK;
    int64_t patience = PATIENCE_MS;
    bool done;

    CHECK(values != NULL);
    for (int i = 0; i < count; i++)
        values[i] = schedule("slow", "100");
    CHECK(is_unavailable(join()));
    CHECK(is_unavailable(muster_coordinator_done(coordinator, &done, &err)));
    CHECK(is_unavailable(try_schedule("echo", "x", &none)) && none == NULL);
    printf("unavailable\n");
    fflush(stdout);
    while ((status = muster_coordinator_done(coordinator, &done, &err)) == MUSTER_E_UNAVAILABLE &&
           patience-- > 0)
        nap(1);
    CHECK(status == MUSTER_OK);
    CHECK(join() == MUSTER_OK);
    for (int i = 0; i < count; i++)
        expect(&values[i], "");
    free(values);
}

static void silent(void)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;

    call.function = "slow";
    call.args = "600000";
    call.args_size = 6;
    call.timeout_ms = 12000;
    CHECK(muster_coordinator_schedule(coordinator, &call, PATIENCE_MS, &value, &err) == MUSTER_OK);
    for (;;)
        pause();
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
                     {"big_results", big_results},
                     {"too_big_a_result", too_big_a_result},
                     {"renewed_lease", renewed_lease},
                     {"size_two", size_two},
                     {"fire_and_forget", fire_and_forget},
                     {"unknown_function", unknown_function},
                     {"poisoned", poisoned}};
    const char *what = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 0;

    if (strcmp(what, "worker") == 0)
        return work(count, argc > 3 ? atoi(argv[3]) : 0);
    open_queue("main", strcmp(what, "attach") != 0, 0);
    if (strcmp(what, "run") == 0)
        run(count, argc > 3 ? argv[3] : "echo");
    else if (strcmp(what, "hold") == 0)
        hold();
    else if (strcmp(what, "stay") == 0)
        stay();
    else if (strcmp(what, "silent") == 0)
        silent();
    else if (strcmp(what, "beside") == 0)
        beside(count);
    else if (strcmp(what, "values") == 0)
        values();
    else if (strcmp(what, "lost_ps") == 0)
        lost_ps(count);
    else if (strcmp(what, "begin") == 0)
        begin(count);
    else if (strcmp(what, "attach") == 0)
        attach(count);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(what, scenarios[i].name) == 0 || strcmp(what, "all") == 0)
            if (scenarios[i].fn != poisoned || strcmp(what, "all") != 0)
                scenarios[i].fn();
    muster_coordinator_close(&coordinator);
    return 0;
}
