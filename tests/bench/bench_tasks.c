/* How many empty tasks a second, and how long one takes. usage: bench_tasks [TASKS [DIRECTORY...]]
 *
 * For each directory of a database (a disk's: every commit is synced; /dev/shm: memory), 1, 4 and 16 workers with 1
 * and 64 tasks in flight each: tasks a second from the first schedule to the end of join, and, with one worker and one
 * task at a time, p50 and p99 from schedule to fetched result. Beside them the limit: a bare echo over the same hops
 * (DEALER, ROUTER, DEALER and back) in the same process. Workers and coordinator are threads of this process, musterd is
 * one of its own. One line of JSON a cell. */
#include <muster/muster.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define WORKERS_MAX 16
#define ROUND_TRIPS 2000

static char scratch[512], address[600];
static pid_t broker;

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
    if (broker > 0)
        kill(broker, SIGKILL);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* --- the broker ----------------------------------------------------------------------------------- */

static void broker_start(const char *directory)
{
    char db[600];

    snprintf(scratch, sizeof scratch, "%s/muster-bench-XXXXXX", directory);
    insist(mkdtemp(scratch) != NULL, "a directory", NULL);
    snprintf(db, sizeof db, "%s/muster.db", scratch);
    snprintf(address, sizeof address, "ipc://%s/socket", scratch);
    broker = fork();
    insist(broker >= 0, "fork", NULL);
    if (broker == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(127);
        execl(MUSTERD_PATH, "musterd", "--db", db, "--listen", address, (char *)NULL);
        _exit(127);
    }
}

static void broker_stop(void)
{
    char command[600];

    kill(broker, SIGTERM);
    waitpid(broker, NULL, 0);
    broker = 0;
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    if (system(command) != 0)
        fprintf(stderr, "bench_tasks: %s is left\n", scratch);
}

/* --- tasks ---------------------------------------------------------------------------------------- */

static int nothing(muster_task_t *task, void *arg)
{
    (void)task, (void)arg;
    return 0;
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
        insist(muster_worker_register(workers[i], "nothing", nothing, NULL, &err) == MUSTER_OK,
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

static void latency(muster_coordinator_t *coordinator, double *ret_p50, double *ret_p99)
{
    static double times[ROUND_TRIPS];
    struct muster_call call = MUSTER_CALL_INIT;
    struct muster_error err;

    call.function = "nothing";
    for (int i = 0; i < ROUND_TRIPS; i++) {
        muster_remote_value_t *value = NULL;
        double began_ms = now_ms();
        const void *data;
        size_t size;

        insist(muster_coordinator_schedule(coordinator, &call, -1, &value, &err) == MUSTER_OK,
               "schedule", &err);
        insist(muster_remote_value_fetch(value, -1, &data, &size, &err) == MUSTER_OK, "fetch",
               &err);
        times[i] = now_ms() - began_ms;
        muster_remote_value_free(&value);
    }
    qsort(times, ROUND_TRIPS, sizeof times[0], by_size);
    *ret_p50 = times[ROUND_TRIPS / 2];
    *ret_p99 = times[ROUND_TRIPS * 99 / 100];
}

static void measure(const char *directory, int workers_count, int in_flight, int tasks)
{
    muster_worker_t *workers[WORKERS_MAX];
    muster_coordinator_t *coordinator;
    double rate, p50 = 0, p99 = 0;

    broker_start(directory);
    workers_start(workers, workers_count, in_flight);
    coordinator = coordinator_start();
    rate = tasks_a_second(coordinator, tasks);
    if (workers_count == 1 && in_flight == 1)
        latency(coordinator, &p50, &p99);
    printf("{\"bench\": \"tasks\", \"database\": \"%s\", \"workers\": %d, \"in_flight\": %d, "
           "\"tasks\": %d, \"tasks_per_s\": %.0f",
           directory, workers_count, in_flight, tasks, rate);
    if (p50 > 0)
        printf(", \"p50_ms\": %.3f, \"p99_ms\": %.3f", p50, p99);
    printf("}\n");
    fflush(stdout);
    muster_coordinator_close(&coordinator);
    for (int i = 0; i < workers_count; i++)
        muster_worker_close(&workers[i]);
    broker_stop();
}

/* --- the limit ------------------------------------------------------------------------------------ */

static void *context;
static atomic_bool stop;

/* Passes each of two peers' frames to the other. */
static void *route(void *arg)
{
    void *router = zmq_socket(context, ZMQ_ROUTER);
    char ids[2][256], id[256], frame[256];
    int sizes[2] = {0, 0}, wait_ms = 100;

    zmq_setsockopt(router, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_bind(router, arg);
    while (!atomic_load(&stop)) {
        int id_size = zmq_recv(router, id, sizeof id, 0), size, other;

        if (id_size < 0)
            continue;
        size = zmq_recv(router, frame, sizeof frame, 0);
        if (size < 0)
            continue;
        other = frame[0] == 'c' ? 1 : 0; /* from the coordinator to the worker, and back */
        memcpy(ids[1 - other], id, (size_t)id_size);
        sizes[1 - other] = id_size;
        if (sizes[other] == 0)
            continue;
        zmq_send(router, ids[other], (size_t)sizes[other], ZMQ_SNDMORE);
        zmq_send(router, frame, (size_t)size, 0);
    }
    zmq_close(router);
    return NULL;
}

static void *answer(void *arg)
{
    void *dealer = zmq_socket(context, ZMQ_DEALER);
    int wait_ms = 100, linger_ms = 0;
    char frame[256] = "w";

    zmq_setsockopt(dealer, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(dealer, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_connect(dealer, arg);
    while (!atomic_load(&stop)) {
        int size = zmq_recv(dealer, frame, sizeof frame, 0);

        frame[0] = 'w'; /* without one: here I am */
        zmq_send(dealer, frame, size > 0 ? (size_t)size : 64, 0);
    }
    zmq_close(dealer);
    return NULL;
}

static void echo(void)
{
    static double times[ROUND_TRIPS];
    char endpoint[600], frame[256] = "c", got[256];
    pthread_t threads[2];
    int wait_ms = 1000, linger_ms = 0;
    void *dealer;

    snprintf(scratch, sizeof scratch, "/tmp/muster-bench-echo-%ld", (long)getpid());
    snprintf(endpoint, sizeof endpoint, "ipc://%s", scratch);
    context = zmq_ctx_new();
    pthread_create(&threads[0], NULL, route, endpoint);
    pthread_create(&threads[1], NULL, answer, endpoint);
    dealer = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(dealer, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    zmq_setsockopt(dealer, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_connect(dealer, endpoint);
    for (int i = -500; i < ROUND_TRIPS;) {
        double began_ms = now_ms();

        zmq_send(dealer, frame, 64, 0);
        while (zmq_recv(dealer, got, sizeof got, 0) < 0 || got[0] != 'w')
            if (now_ms() - began_ms > 5000)
                insist(false, "no echo", NULL);
        if (i >= 0)
            times[i] = now_ms() - began_ms;
        i++;
    }
    atomic_store(&stop, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    zmq_close(dealer);
    zmq_ctx_term(context);
    unlink(scratch);
    qsort(times, ROUND_TRIPS, sizeof times[0], by_size);
    printf("{\"bench\": \"tasks_limit\", \"what\": \"bare echo over the same hops\", "
           "\"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
           times[ROUND_TRIPS / 2], times[ROUND_TRIPS * 99 / 100]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const int workers[] = {1, 4, 16}, in_flight[] = {1, 64};
    static char *defaults[] = {"/dev/shm", "/tmp"};
    int tasks = argc > 1 ? atoi(argv[1]) : 20000;
    char **directories = argc > 2 ? argv + 2 : defaults;
    int count = argc > 2 ? argc - 2 : 2;

    echo();
    for (int d = 0; d < count; d++)
        for (size_t w = 0; w < sizeof workers / sizeof *workers; w++)
            for (size_t f = 0; f < sizeof in_flight / sizeof *in_flight; f++)
                measure(directories[d], workers[w], in_flight[f],
                        in_flight[f] == 1 ? tasks / 10 : tasks);
    return 0;
}
