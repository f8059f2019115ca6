/* prog_elastic - a sharded training whose weights are split among however many ranks there are.
 *
 *   prog_elastic STEPS MS       a rank (identity from the environment): trains to STEPS, MS a step
 *   prog_elastic expect STEPS   the bits of all weights after so many steps
 *   prog_elastic read           the bits of the newest checkpoint, by a reader that knows of no
 *                               parts; with MUSTER_JOB of the broker MUSTER_BROKER, else of the
 *                               directory MUSTER_CHECKPOINT_DIR
 *
 * Each element changes by a rule of its own place and step alone, in floating point. So the bits of
 * the whole after n steps are the same however it was split on the way. With ELASTIC_SHORT rank 1
 * forgets its last slice. ELASTIC_OPEN_MS is the option open_timeout_ms. At exit, where bits is the
 * sum of the elements' bit patterns:
 *   trainer: rank= world= resumed= done= bits= status= */
#include <muster/manager.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LENGTH 1003 /* no number of ranks divides it */
#define ROWS 5

struct part {
    int64_t step, begin, count;
    double w[LENGTH];       /* [count] of [LENGTH] */
    float m[ROWS * LENGTH]; /* [ROWS, count] of [ROWS, LENGTH] */
    int64_t ms;
};
static struct part part;

static int train_step(void *arg)
{
    struct part *p = arg;
    struct timespec pause = {.tv_nsec = (long)p->ms * 1000000};

    p->step++;
    for (int64_t i = 0; i < p->count; i++) {
        double place = (double)(p->begin + i + 1);

        p->w[i] += (double)p->step / place - p->w[i] * 1e-3;
        for (int64_t row = 0; row < ROWS; row++)
            p->m[row * p->count + i] += (float)(p->w[i] * 1e-3) + (float)(row + 1) / (float)place;
    }
    nanosleep(&pause, NULL);
    return 0;
}

static uint64_t bits(const struct part *p)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < p->count; i++) {
        uint64_t wide;
        uint32_t narrow;

        memcpy(&wide, &p->w[i], sizeof wide);
        sum += wide * (uint64_t)(2 * (p->begin + i) + 1); /* in another place it is another sum */
        for (int64_t row = 0; row < ROWS; row++) {
            memcpy(&narrow, &p->m[row * p->count + i], sizeof narrow);
            sum += narrow * (uint64_t)(2 * (ROWS * (p->begin + i) + row) + 1);
        }
    }
    return sum;
}

static enum muster_status make_state(struct part *p, int rank, int world,
                                     muster_state_t **ret_state, struct muster_error *error)
{
    static const int64_t whole[1] = {LENGTH}, rows[2] = {ROWS, LENGTH};
    enum muster_status status = muster_state_create(ret_state, error);

    muster_split_range(LENGTH, rank, world, &p->begin, &p->count);
    if (rank == 1 && getenv("ELASTIC_SHORT") != NULL)
        p->count--;
    if (status == MUSTER_OK)
        status = muster_state_add_i64(*ret_state, "step", &p->step, error);
    if (status == MUSTER_OK)
        status = muster_state_add_split(*ret_state, "w", MUSTER_DTYPE_F64, whole, 1, 0, p->begin,
                                        p->count, p->w, error);
    if (status == MUSTER_OK)
        status = muster_state_add_split(*ret_state, "m", MUSTER_DTYPE_F32, rows, 2, 1, p->begin,
                                        p->count, p->m, error);
    return status;
}

static int run(int64_t steps)
{
    const char *rank = getenv("MUSTER_RANK"), *size = getenv("MUSTER_WORLD_SIZE");
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    struct muster_error error = {.status = MUSTER_OK};
    muster_state_t *state = NULL;
    muster_node_t *node = NULL;
    int code = EXIT_FAILURE;
    int64_t resumed = -1;
    enum muster_status status;

    if (rank == NULL || size == NULL)
        return 2;
    status =
        make_state(&part, (int)strtol(rank, NULL, 10), (int)strtol(size, NULL, 10), &state, &error);
    options.layout = MUSTER_LAYOUT_SHARDED;
    options.state = state;
    if (getenv("ELASTIC_OPEN_MS") != NULL)
        options.open_timeout_ms = (int)strtol(getenv("ELASTIC_OPEN_MS"), NULL, 10);
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    if (status == MUSTER_OK)
        status = muster_node_open(&options, &node, &error);
    if (status == MUSTER_OK) {
        resumed = muster_node_total_run_calls(node);
        printf("opened at step %" PRId64 "\n", resumed);
    }
    if (status == MUSTER_OK && part.step != resumed)
        return EXIT_FAILURE;
    while (status == MUSTER_OK && part.step < steps) {
        status = muster_node_run(node, train_step, &part, &error);
        if (part.step % 10 == 0)
            printf("at step %" PRId64 "\n", part.step);
    }
    if (status == MUSTER_OK || status == MUSTER_PREEMPTED)
        code = status == MUSTER_OK ? 0 : muster_node_restart_code(node);
    else
        printf("error: %s\n", error.text);
    if (muster_node_close(&node, status == MUSTER_PREEMPTED ? 0 : code, &error) == MUSTER_PREEMPTED)
        code = 42;
    printf("trainer: rank=%s world=%s resumed=%" PRId64 " done=%" PRId64 " bits=%" PRId64
           " status=%s\n",
           rank, size, resumed, part.step, (int64_t)bits(&part), muster_status_name(status));
    muster_state_destroy(&state);
    return code;
}

static int read_newest(void)
{
    static const int64_t whole[1] = {LENGTH}, rows[2] = {ROWS, LENGTH};
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    struct muster_restored restored = {.step = -1};
    struct muster_error error = {.status = MUSTER_OK};
    muster_manager_t *manager = NULL;
    enum muster_status status = muster_state_create(&options.state, &error);

    options.job = getenv("MUSTER_JOB");
    if (options.job == NULL)
        options.checkpoint_dir = getenv("MUSTER_CHECKPOINT_DIR");
    part.count = LENGTH;
    if (status == MUSTER_OK)
        status =
            muster_state_add_tensor(options.state, "w", MUSTER_DTYPE_F64, whole, 1, part.w, &error);
    if (status == MUSTER_OK)
        status =
            muster_state_add_tensor(options.state, "m", MUSTER_DTYPE_F32, rows, 2, part.m, &error);
    if (status == MUSTER_OK)
        status = muster_manager_open(&options, &manager, &error);
    if (status == MUSTER_OK)
        status =
            muster_manager_restore(manager, MUSTER_STEP_LATEST, &restored, sizeof restored, &error);
    if (status == MUSTER_OK)
        printf("%" PRId64 " %" PRId64 "\n", restored.step + 1, (int64_t)bits(&part));
    else
        printf("error: %s\n", error.text);
    muster_manager_close(&manager, 0, NULL);
    muster_state_destroy(&options.state);
    return status == MUSTER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "expect") == 0) {
        part.count = LENGTH;
        while (part.step < strtoll(argv[2], NULL, 10))
            train_step(&part);
        printf("%" PRId64 "\n", (int64_t)bits(&part));
        return EXIT_SUCCESS;
    }
    if (argc == 2 && strcmp(argv[1], "read") == 0)
        return read_newest();
    if (argc != 3)
        return 2;
    part.ms = strtoll(argv[2], NULL, 10);
    return run(strtoll(argv[1], NULL, 10));
}
