/* prog_member - a member of a job that trains while tasks run, for the tests of tasks.
 *
 *   prog_member chief     takes steps of 10 ms until SIGTERM, or until its job is preempted; world
 *                         size 1
 *   prog_member beside    the same with a worker (echo, number) on threads of its own, which lives
 *                         in the node
 *   prog_member ps        joins as parameter server and stays, but not from launch to launch; fails
 *                         at SIGUSR1
 *   prog_member ps_watch  the same, and its node hears SIGTERM as a notice: it leaves when its job
 *                         is preempted
 *
 * MUSTER_BROKER, MUSTER_JOB, MUSTER_RANK, MUSTER_CHECKPOINT_DIR. Ends with 0 when all went well,
 * with 1 when it was to fail, with the restart code when its job was preempted. */
#include <muster/muster.h>

#include "tests/proc/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct muster_error err;
static volatile sig_atomic_t ended, failed;

static void end(int signo)
{
    failed = signo == SIGUSR1;
    ended = 1;
}

static void nap(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};

    nanosleep(&time, NULL);
}

static int step(void *arg)
{
    int64_t *steps = arg;

    nap(10);
    ++*steps;
    return 0;
}

/* Its argument back, with the step that the training has reached meanwhile; arg is the node. */
static int number(muster_task_t *task, void *arg)
{
    char text[32];

    nap(20);
    snprintf(text, sizeof text, "%lld", (long long)muster_node_total_run_calls(arg));
    return muster_task_set_result(task, text, strlen(text)) == MUSTER_OK ? 0 : 1;
}

static muster_node_t *join(enum muster_role role, bool watches, muster_state_t *state)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    muster_node_t *node = NULL;

    options.rank = 0;
    options.role = role;
    options.world_size = 1;
    options.state = state;
    options.restore_later = role == MUSTER_ROLE_PS && !watches;
    options.connect_timeout_ms = options.open_timeout_ms = 60000;
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    if (!watches)
        options.termination.signals[0] = -1;
    CHECK(muster_node_open(&options, &node, &err) == MUSTER_OK);
    return node;
}

static muster_worker_t *worker_of(muster_node_t *node)
{
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;
    muster_worker_t *worker = NULL;

    options.node = node;
    options.slots = 2;
    options.connect_timeout_ms = 60000;
    CHECK(muster_worker_open(&options, &worker, &err) == MUSTER_OK);
    CHECK(muster_worker_register(worker, "number", number, node, &err) == MUSTER_OK);
    CHECK(muster_worker_start(worker, &err) == MUSTER_OK);
    return worker;
}

/* Until it is told to end, or its job is preempted. A server that watches nothing has no steps. */
static void stay(muster_node_t *node, bool steps_too, int64_t *steps)
{
    enum muster_status status = MUSTER_OK;

    while (!ended && status == MUSTER_OK)
        if (steps_too)
            status = muster_node_run(node, step, steps, &err);
        else
            nap(10);
    CHECK(status == MUSTER_OK || status == MUSTER_PREEMPTED);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool watches = strcmp(what, "ps_watch") == 0, ps = watches || strcmp(what, "ps") == 0;
    struct sigaction action = {.sa_handler = end};
    int64_t steps = 0;
    muster_state_t *state = NULL;
    muster_worker_t *worker = NULL;
    muster_node_t *node;
    enum muster_status status;
    int code;

    CHECK(watches || sigaction(SIGTERM, &action, NULL) == 0);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(muster_state_create(&state, &err) == MUSTER_OK);
    CHECK(muster_state_add_i64(state, "steps", &steps, &err) == MUSTER_OK);
    node = join(ps ? MUSTER_ROLE_PS : MUSTER_ROLE_CHIEF, watches, state);
    code = muster_node_restart_code(node);
    if (strcmp(what, "beside") == 0)
        worker = worker_of(node);
    stay(node, !ps || watches, &steps);
    muster_worker_close(&worker, NULL);
    status = muster_node_close(&node, failed, &err);
    CHECK(status == MUSTER_OK || status == MUSTER_PREEMPTED);
    muster_state_destroy(&state);
    return status == MUSTER_PREEMPTED ? code : failed;
}
