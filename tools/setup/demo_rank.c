/* demo_rank - `muster demo rank`: a rank that trains a small model, and shows what a program of
 * yours would do. Every rank computes the same, so the result can be compared bit for bit. */
#include "tools/setup/setup.h"

#include <muster/node.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEMO_SAMPLES 64
#define DEMO_STEP_US 10000

/* Data of one step, the same in each life of the job. */
static double demo_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0 * 2 - 1;
}

/* Gradient descent on samples of y = sum of (k + 1) x_k. */
static void demo_step(double weights[DEMO_WEIGHTS], int step)
{
    uint64_t seed = (uint64_t)step + 1;
    double gradient[DEMO_WEIGHTS] = {0};

    for (int i = 0; i < DEMO_SAMPLES; i++) {
        double x[DEMO_WEIGHTS], error = 0;

        for (int k = 0; k < DEMO_WEIGHTS; k++) {
            x[k] = demo_number(&seed);
            error += (weights[k] - (k + 1)) * x[k];
        }
        for (int k = 0; k < DEMO_WEIGHTS; k++)
            gradient[k] += error * x[k];
    }
    for (int k = 0; k < DEMO_WEIGHTS; k++)
        weights[k] -= 0.05 * gradient[k] / DEMO_SAMPLES;
}

void demo_train(double weights[DEMO_WEIGHTS], int from, int to)
{
    for (int step = from; step < to; step++)
        demo_step(weights, step);
}

/* The line that `muster demo` compares: each weight as its bits. */
static void demo_print(const double weights[DEMO_WEIGHTS], int64_t resumed)
{
    printf("demo: resumed at %" PRId64 ", weights", resumed);
    for (int k = 0; k < DEMO_WEIGHTS; k++) {
        uint64_t bits;

        memcpy(&bits, &weights[k], sizeof bits);
        printf(" %016" PRIx64, bits);
    }
    putchar('\n');
    fflush(stdout);
}

int demo_rank(void)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    struct muster_error err = {.status = MUSTER_OK};
    muster_node_t *node = NULL;
    double weights[DEMO_WEIGHTS] = {0};
    int64_t resumed = 0;

    if (muster_state_create(&options.state, &err) == MUSTER_OK)
        muster_state_add_tensor(options.state, "weights", MUSTER_DTYPE_F64,
                                (const int64_t[]){DEMO_WEIGHTS}, 1, weights, &err);
    if (err.status == MUSTER_OK)
        muster_node_open(&options, &node, &err);
    if (err.status == MUSTER_OK)
        resumed = muster_node_total_run_calls(node);
    while (err.status == MUSTER_OK && muster_node_total_run_calls(node) < DEMO_STEPS) {
        demo_step(weights, (int)muster_node_total_run_calls(node));
        usleep(DEMO_STEP_US);
        muster_node_save_if_preempted(node, NULL, &err);
    }
    if (err.status != MUSTER_OK)
        fprintf(stderr, "muster demo: %s\n", err.text);
    else
        demo_print(weights, resumed);
    muster_node_close(&node, err.status != MUSTER_OK, NULL);
    muster_state_destroy(&options.state);
    return muster_status_exit_code(err.status);
}
