/* What a step costs: muster_node_run with an empty step and no notice, beside a bare atomic
 * fetch-and-add in the same binary, and beside a function that does no more than that and calls the
 * step, as any library has to. One JSON object on stdout; medians over the rounds. */
#include <muster/node.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CALLS 1000000
#define ROUNDS 31

static _Atomic uint64_t counter;

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int empty_step(void *arg)
{
    (void)arg;
    return 0;
}

static double measure_add(void)
{
    double began = now_ns();

    for (int i = 0; i < CALLS; i++)
        atomic_fetch_add(&counter, 1);
    return (now_ns() - began) / CALLS;
}

static __attribute__((noinline)) int call_step(int (*step)(void *), void *arg)
{
    atomic_fetch_add(&counter, 1);
    return step(arg);
}

static double measure_call(void)
{
    double began = now_ns();

    for (int i = 0; i < CALLS; i++)
        if (call_step(empty_step, NULL) != 0)
            exit(EXIT_FAILURE);
    return (now_ns() - began) / CALLS;
}

static double measure_run(muster_node_t *node)
{
    struct muster_error err;
    double began = now_ns();

    for (int i = 0; i < CALLS; i++)
        if (muster_node_run(node, empty_step, NULL, &err) != MUSTER_OK) {
            fprintf(stderr, "bench_gate: %s\n", err.text);
            exit(EXIT_FAILURE);
        }
    return (now_ns() - began) / CALLS;
}

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, ascending);
    return values[ROUNDS / 2];
}

int main(void)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    char directory[] = "/tmp/muster-bench-XXXXXX", remove[128];
    double adds[ROUNDS], calls[ROUNDS], runs[ROUNDS], add_ns, call_ns, run_ns;
    int64_t weight = 0;
    muster_state_t *state = NULL;
    muster_node_t *node = NULL;
    struct muster_error err;

    if (mkdtemp(directory) == NULL || muster_state_create(&state, &err) != MUSTER_OK ||
        muster_state_add_i64(state, "weight", &weight, &err) != MUSTER_OK)
        return EXIT_FAILURE;
    options.broker = "ipc:///tmp/muster-bench-no-broker"; /* the gate is the same without one */
    options.offline_ok = true;
    options.connect_timeout_ms = 1;
    options.job = "bench";
    options.rank = 0;
    options.world_size = 1;
    options.checkpoint_dir = directory;
    options.state = state;
    if (muster_node_open(&options, &node, &err) != MUSTER_OK) {
        fprintf(stderr, "bench_gate: %s\n", err.text);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < ROUNDS; i++) {
        adds[i] = measure_add();
        calls[i] = measure_call();
        runs[i] = measure_run(node);
    }
    add_ns = median(adds);
    call_ns = median(calls);
    run_ns = median(runs);
    printf("{\"bench\": \"gate\", \"calls\": %d, \"rounds\": %d, \"fetch_add_ns\": %.2f, "
           "\"call_ns\": %.2f, \"run_ns\": %.2f, \"ratio\": %.2f, \"steps\": %" PRId64 "}\n",
           CALLS, ROUNDS, add_ns, call_ns, run_ns, run_ns / add_ns,
           muster_node_total_run_calls(node));
    muster_node_close(&node, 0, NULL);
    muster_state_destroy(&state);
    snprintf(remove, sizeof remove, "rm -rf %s", directory);
    return system(remove) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
