/* bench_rank - one rank of the job that `muster bench` preempts. */
#include "tools/bench/bench.h"

#include <muster/node.h>

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STEPS 20 /* of a launch, before its notice */
#define STEP_US 1000

static double *rank_left_ms; /* where this process tells when it ends */

double bench_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct bench_plan *bench_plan_map(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *plan = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (ftruncate(fd, sizeof(struct bench_plan)) == 0)
        plan = mmap(NULL, sizeof(struct bench_plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return plan == MAP_FAILED ? NULL : plan;
}

static int rank_forget_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    int fd = type == FTW_F ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    (void)st, (void)ftw;
    if (fd >= 0) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return 0;
}

/* The next launch may be on another host: it reads from the disk. */
static void rank_leaves(void)
{
    const char *dir = getenv("MUSTER_CHECKPOINT_DIR");

    *rank_left_ms = bench_clock_ms();
    if (dir != NULL)
        nftw(dir, rank_forget_one, 8, FTW_PHYS);
}

static int rank_fail(const struct muster_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return muster_status_exit_code(err->status);
}

/* Steps until the notice of rank 0 ends this process, or until the last launch has restored. */
static int rank_train(muster_node_t *node, struct bench_plan *plan, int64_t launch, bool notifies)
{
    struct muster_error err = {0};

    for (int step = 0; launch < plan->rounds || step < STEPS; step++) {
        if (notifies && launch < plan->rounds && step == STEPS) {
            plan->launches[launch].noticed_ms = bench_clock_ms();
            muster_node_notify(node, MUSTER_NOTICE_PREEMPT, -1, "muster bench");
        }
        usleep(STEP_US);
        if (muster_node_save_if_preempted(node, NULL, &err) != MUSTER_OK)
            return rank_fail(&err);
    }
    return muster_node_close(&node, false, &err) == MUSTER_OK ? EXIT_SUCCESS : rank_fail(&err);
}

static enum muster_status rank_open(muster_state_t *state, char *data, int64_t size_bytes,
                                    muster_node_t **ret_node, struct muster_error *err)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    enum muster_status status =
        muster_state_add_tensor(state, "state", MUSTER_DTYPE_U8, &size_bytes, 1, data, err);

    options.state = state;
    options.layout = MUSTER_LAYOUT_SHARDED;
    options.termination.grace_period_ms = 0;
    return status == MUSTER_OK ? muster_node_open(&options, ret_node, err) : status;
}

/* Touches the memory of the state, as a program does that has set up its model. */
static int rank_run(struct bench_plan *plan, int64_t launch, int64_t rank, char *data)
{
    struct muster_error err = {0};
    muster_state_t *state = NULL;
    muster_node_t *node = NULL;
    int code = EXIT_FAILURE;

    memset(data, 1 + (int)rank, (size_t)plan->size_bytes);
    rank_left_ms = &plan->launches[launch].ranks[rank].left_ms;
    atexit(rank_leaves);
    plan->launches[launch].ranks[rank].opening_ms = bench_clock_ms();
    if (muster_state_create(&state, &err) != MUSTER_OK ||
        rank_open(state, data, plan->size_bytes, &node, &err) != MUSTER_OK) {
        code = rank_fail(&err);
    } else {
        plan->launches[launch].ranks[rank].opened_ms = bench_clock_ms();
        code = rank_train(node, plan, launch, rank == 0);
    }
    muster_state_destroy(&state);
    return code;
}

int bench_rank(const char *plan_path)
{
    struct bench_plan *plan = bench_plan_map(plan_path);
    struct muster_identity who;
    struct muster_error err = {0};
    const char *count = getenv("MUSTER_RESTART_COUNT");
    int64_t launch = count != NULL ? strtoll(count, NULL, 10) : 0;
    char *data;
    int code;

    if (plan == NULL || launch < 0 || launch > plan->rounds ||
        muster_identity_read(&who, sizeof who, &err) != MUSTER_OK || who.rank >= BENCH_RANKS_MAX)
        return tool_fail(TOOL_USAGE, BENCH_PLAN_ENV " is for `muster bench` alone: unset it");
    data = malloc((size_t)plan->size_bytes);
    if (data == NULL)
        return tool_fail(TOOL_NO, "no memory for a state of %" PRId64 " bytes", plan->size_bytes);
    code = rank_run(plan, launch, who.rank, data);
    free(data);
    return code;
}
