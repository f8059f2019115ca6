/* How many empty tasks a second, and how long one takes. usage: bench_tasks [TASKS [DIRECTORY...]]
 *
 * For each directory of a database (a disk's: every commit is synced; /dev/shm: memory), 1, 4 and
 * 16 workers with 1 and 64 tasks in flight each: tasks a second from the first schedule to the end
 * of join; then p50 and p99 from schedule to fetched result while so many are kept scheduled as all
 * workers take. With one worker and one task at a time, beside that, in blocks of trips in turn,
 * the limit: a bare echo over the same hops, once with processes and contexts placed as the tasks'
 * are, once with all sockets in one context (see echo.h); and how long a result of 16 MiB takes to
 * the broker, and from there. TASKS 0: only that. Workers and coordinator are threads of this
 * process, musterd is one of its own. One line of JSON a cell.
 *
 * bench_tasks limits MEMORY DISK: only what is insisted on, with exit code 1 if it does not hold: a
 * task's p50 beside the echo's that is placed as it is, in MEMORY, as the median of what blocks in
 * turn give; and tasks a second at 16 workers with 64 each, on DISK, as the median of some runs. */
#include "tests/bench/broker.h"
#include "tests/bench/echo.h"

#include <muster/muster.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX 16
#define BLOCKS 20
#define BLOCK_TRIPS 100
#define LONG_RESULTS 9
#define RATES 5
#define LIVES 11
#define RATIO_MAX 1.5
#define RATE_MIN 20000.0
#define DEPTH_MAX (WORKERS_MAX * 64)

static char scratch[512], address[600];

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void insist(bool good, const char *what, const struct muster_error *err)
{
    if (good)
        return;
    fprintf(stderr, "bench_tasks: %s: %s\n", what, err != NULL ? err->text : strerror(errno));
    bench_broker_kill();
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* --- the broker ------------------------------------------------------------------------------- */

static void broker_start(const char *directory)
{
    char db[600];

    snprintf(scratch, sizeof scratch, "%s/muster-bench-XXXXXX", directory);
    insist(mkdtemp(scratch) != NULL, "a directory", NULL);
    snprintf(db, sizeof db, "%s/muster.db", scratch);
    snprintf(address, sizeof address, "ipc://%s/socket", scratch);
    insist(bench_broker_start(MUSTERD_PATH, db, address), "fork", NULL);
}

static void broker_stop(void)
{
    char command[600];

    bench_broker_stop();
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    if (system(command) != 0)
        fprintf(stderr, "bench_tasks: %s is left\n", scratch);
}

/* --- tasks ------------------------------------------------------------------------------------ */

static int nothing(muster_task_t *task, void *arg)
{
    (void)task, (void)arg;
    return 0;
}

static char long_result[16 << 20];

static int give_long(muster_task_t *task, void *arg)
{
    (void)arg;
    return muster_task_set_result(task, long_result, sizeof long_result) == MUSTER_OK ? 0 : 1;
}

static void workers_start(muster_worker_t **workers, int count, int in_flight)
{
    struct muster_error err;

    for (int i = 0; i < count; i++) {
        struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;

        options.broker = address;
        options.job = "bench";
        options.index = i;
        options.prefetch = in_flight - 1;
        insist(muster_worker_open(&options, &workers[i], &err) == MUSTER_OK, "worker", &err);
        insist(muster_worker_register(workers[i], "nothing", nothing, NULL, &err) == MUSTER_OK &&
                   muster_worker_register(workers[i], "long", give_long, NULL, &err) == MUSTER_OK,
               "register", &err);
        insist(muster_worker_start(workers[i], &err) == MUSTER_OK, "start", &err);
    }
}

static muster_coordinator_t *coordinator_start(void)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    muster_coordinator_t *coordinator = NULL;
    struct muster_error err;

    options.broker = address;
    options.job = "bench";
    options.fresh = true;
    insist(muster_coordinator_open(&options, &coordinator, &err) == MUSTER_OK, "coordinator", &err);
    return coordinator;
}

static double tasks_a_second(muster_coordinator_t *coordinator, int count)
{
    struct muster_call call = MUSTER_CALL_INIT;
    struct muster_error err;
    double began_ms = now_ms();

    call.function = "nothing";
    for (int i = 0; i < count; i++)
        insist(muster_coordinator_schedule(coordinator, &call, -1, NULL, &err) == MUSTER_OK,
               "schedule", &err);
    insist(muster_coordinator_join(coordinator, -1, &err) == MUSTER_OK, "join", &err);
    return count / (now_ms() - began_ms) * 1e3;
}

/* --- how long one takes ----------------------------------------------------------------------- */

#define TRIPS_MAX (8 * DEPTH_MAX)
_Static_assert(BLOCKS *BLOCK_TRIPS <= TRIPS_MAX, "all blocks' trips");

struct trips {
    double times[TRIPS_MAX];
    size_t count;
};

static muster_remote_value_t *scheduled(muster_coordinator_t *coordinator)
{
    struct muster_call call = MUSTER_CALL_INIT;
    muster_remote_value_t *value = NULL;
    struct muster_error err;

    call.function = "nothing";
    insist(muster_coordinator_schedule(coordinator, &call, -1, &value, &err) == MUSTER_OK,
           "schedule", &err);
    return value;
}

static void fetched(muster_remote_value_t *value)
{
    struct muster_error err;
    const void *data;
    size_t size;

    insist(muster_remote_value_fetch(value, -1, &data, &size, &err) == MUSTER_OK, "fetch", &err);
    muster_remote_value_free(&value);
}

/* As many as workers take are kept scheduled; the oldest is fetched before the next. */
static void keep_in_flight(muster_coordinator_t *coordinator, int depth, struct trips *trips)
{
    static muster_remote_value_t *values[DEPTH_MAX];
    static double began_ms[DEPTH_MAX];
    size_t count = (size_t)(depth > 250 ? 8 * depth : 2000);

    trips->count = 0;
    for (size_t i = 0; i < count + (size_t)depth; i++) {
        size_t slot = i % (size_t)depth;

        if (i >= (size_t)depth) {
            fetched(values[slot]);
            trips->times[trips->count++] = now_ms() - began_ms[slot];
        }
        began_ms[slot] = now_ms();
        values[slot] = i < count ? scheduled(coordinator) : NULL;
    }
}

/* A tenth of the block first goes uncounted: the others have slept meanwhile. */
static void block(struct trips *trips, muster_coordinator_t *coordinator, struct echo *echo)
{
    for (int i = -BLOCK_TRIPS / 10; i < BLOCK_TRIPS; i++) {
        double began_ms = now_ms();

        if (echo != NULL)
            insist(echo_trip(echo), "no echo", NULL);
        else
            fetched(scheduled(coordinator));
        if (i >= 0)
            trips->times[trips->count++] = now_ms() - began_ms;
    }
}

static void sort(struct trips *trips)
{
    qsort(trips->times, trips->count, sizeof trips->times[0], by_size);
}

static double nth(const struct trips *trips, size_t percent)
{
    return trips->times[trips->count * percent / 100];
}

static void print_trips(const char *what, const char *directory, struct trips *trips)
{
    sort(trips);
    printf("{\"bench\": \"tasks_latency\", \"what\": \"%s\", \"beside\": \"%s\", "
           "\"trips\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
           what, directory, trips->count, nth(trips, 50), nth(trips, 99));
    fflush(stdout);
}

/* Of the last block. */
static double block_p50(struct trips *trips)
{
    double *block = &trips->times[trips->count - BLOCK_TRIPS];

    qsort(block, BLOCK_TRIPS, sizeof *block, by_size);
    return block[BLOCK_TRIPS / 2];
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

/* How many times as long as the echo: of blocks in turn. */
static void measure_ratios(const char *directory, double ratios[BLOCKS])
{
    static struct trips trips[2];
    struct echo *placed = echo_open(true);
    muster_coordinator_t *coordinator;
    muster_worker_t *worker;

    insist(placed != NULL, "an echo", NULL);
    trips[0].count = trips[1].count = 0;
    broker_start(directory);
    workers_start(&worker, 1, 1);
    coordinator = coordinator_start();
    for (int i = 0; i < BLOCKS; i++) {
        block(&trips[0], coordinator, NULL);
        block(&trips[1], NULL, placed);
        ratios[i] = block_p50(&trips[0]) / block_p50(&trips[1]);
    }
    muster_coordinator_close(&coordinator, NULL);
    muster_worker_close(&worker, NULL);
    broker_stop();
    echo_close(&placed);
}

/* The kernel places the threads of each life otherwise: the blocks are of several. */
static bool latency_holds(const char *directory)
{
    static double ratios[LIVES * BLOCKS];
    double ratio;

    for (size_t i = 0; i < LIVES; i++)
        measure_ratios(directory, &ratios[i * BLOCKS]);
    ratio = median(ratios, LIVES * BLOCKS);
    printf("{\"bench\": \"tasks_limits\", \"what\": \"p50 of a task beside the echo's\", "
           "\"ratio\": %.2f, "
           "\"lowest\": %.2f, \"highest\": %.2f, \"at_most\": %.2f}\n",
           ratio, ratios[0], ratios[LIVES * BLOCKS - 1], RATIO_MAX);
    fflush(stdout);
    return ratio <= RATIO_MAX;
}

static void latency(const char *directory)
{
    static struct trips trips[3];
    struct echo *placed = echo_open(true), *shared = echo_open(false);
    muster_coordinator_t *coordinator;
    muster_worker_t *worker;

    insist(placed != NULL && shared != NULL, "an echo", NULL);
    broker_start(directory);
    workers_start(&worker, 1, 1);
    coordinator = coordinator_start();
    for (size_t i = 0; i < 3; i++)
        trips[i].count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        block(&trips[0], coordinator, NULL);
        block(&trips[1], NULL, placed);
        block(&trips[2], NULL, shared);
    }
    print_trips("task", directory, &trips[0]);
    print_trips("echo, a context each", directory, &trips[1]);
    print_trips("echo, one context", directory, &trips[2]);
    muster_coordinator_close(&coordinator, NULL);
    muster_worker_close(&worker, NULL);
    broker_stop();
    echo_close(&placed);
    echo_close(&shared);
}

/* --- how long a long result takes ------------------------------------------------------------- */

static void long_results(const char *directory)
{
    static struct trips puts_, fetches;
    struct muster_call call = MUSTER_CALL_INIT;
    muster_coordinator_t *coordinator;
    muster_worker_t *worker;
    struct muster_error err;

    broker_start(directory);
    workers_start(&worker, 1, 1);
    coordinator = coordinator_start();
    call.function = "long";
    for (puts_.count = fetches.count = 0; puts_.count < LONG_RESULTS; puts_.count++) {
        muster_remote_value_t *value = NULL;
        double began_ms = now_ms(), put_ms;
        const void *data;
        size_t size;

        insist(muster_coordinator_schedule(coordinator, &call, -1, &value, &err) == MUSTER_OK &&
                   muster_coordinator_join(coordinator, -1, &err) == MUSTER_OK,
               "a long result", &err);
        put_ms = now_ms();
        insist(muster_remote_value_fetch(value, -1, &data, &size, &err) == MUSTER_OK &&
                   size == sizeof long_result,
               "fetch", &err);
        puts_.times[puts_.count] = put_ms - began_ms;
        fetches.times[fetches.count++] = now_ms() - put_ms;
        muster_remote_value_free(&value);
    }
    print_trips("16 MiB from the worker to the broker", directory, &puts_);
    print_trips("16 MiB from the broker to the coordinator", directory, &fetches);
    muster_coordinator_close(&coordinator, NULL);
    muster_worker_close(&worker, NULL);
    broker_stop();
}

/* --- how many --------------------------------------------------------------------------------- */

static void measure(const char *directory, int workers_count, int in_flight, int tasks)
{
    muster_worker_t *workers[WORKERS_MAX];
    static struct trips trips;
    muster_coordinator_t *coordinator;
    double rate;

    broker_start(directory);
    workers_start(workers, workers_count, in_flight);
    coordinator = coordinator_start();
    rate = tasks_a_second(coordinator, tasks);
    keep_in_flight(coordinator, workers_count * in_flight, &trips);
    sort(&trips);
    printf("{\"bench\": \"tasks\", \"database\": \"%s\", \"workers\": %d, \"in_flight\": %d, "
           "\"tasks\": %d, \"tasks_per_s\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
           directory, workers_count, in_flight, tasks, rate, nth(&trips, 50), nth(&trips, 99));
    fflush(stdout);
    muster_coordinator_close(&coordinator, NULL);
    for (int i = 0; i < workers_count; i++)
        muster_worker_close(&workers[i], NULL);
    broker_stop();
}

static bool rate_holds(const char *directory)
{
    muster_worker_t *workers[WORKERS_MAX];
    muster_coordinator_t *coordinator;
    double rates[RATES], rate;

    broker_start(directory);
    workers_start(workers, WORKERS_MAX, 64);
    coordinator = coordinator_start();
    for (int i = 0; i < RATES; i++)
        rates[i] = tasks_a_second(coordinator, 20000);
    rate = median(rates, RATES);
    printf("{\"bench\": \"tasks_limits\", \"what\": \"durable tasks a second, 16 x 64\", "
           "\"tasks_per_s\": %.0f, "
           "\"lowest\": %.0f, \"highest\": %.0f, \"at_least\": %.0f}\n",
           rate, rates[0], rates[RATES - 1], RATE_MIN);
    fflush(stdout);
    muster_coordinator_close(&coordinator, NULL);
    for (int i = 0; i < WORKERS_MAX; i++)
        muster_worker_close(&workers[i], NULL);
    broker_stop();
    return rate >= RATE_MIN;
}

static int limits(const char *memory, const char *disk)
{
    bool quick = latency_holds(memory), many = rate_holds(disk);

    return quick && many ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const int workers[] = {1, 4, 16}, in_flight[] = {1, 64};
    static char *defaults[] = {"/dev/shm", "/tmp"};
    int tasks = argc > 1 ? atoi(argv[1]) : 20000;
    char **directories = argc > 2 ? argv + 2 : defaults;
    int count = argc > 2 ? argc - 2 : 2;

    if (argc == 4 && strcmp(argv[1], "limits") == 0)
        return limits(argv[2], argv[3]);
    for (int d = 0; d < count; d++) {
        latency(directories[d]);
        long_results(directories[d]);
        for (size_t w = 0; tasks > 0 && w < sizeof workers / sizeof *workers; w++)
            for (size_t f = 0; f < sizeof in_flight / sizeof *in_flight; f++)
                measure(directories[d], workers[w], in_flight[f],
                        in_flight[f] == 1 ? tasks / 10 : tasks);
    }
    return 0;
}
