/* train_words - train a character-level language model on a list of words, data-parallel, in a job
 * that may be terminated at any moment and goes on where it was.
 *
 * Every rank computes the gradient of its own part of the batch, the ranks average their gradients
 * in shared memory (words_allreduce), and all make the same update. muster's part is in main() and
 * join_job(): muster_node_run runs each step, the state is registered once, and on_error frees a
 * broken collective. A preempted process leaves with the restart code.
 *
 * A loss that is printed is that of the one step whose number stands beside it, over the batches of
 * all ranks, before that step's update. So it is the same in every run of the same job, terminated
 * or not; it goes up and down with the batches. */
#include "words_allreduce.h"
#include "words_data.h"
#include "words_model.h"
#include "words_options.h"

#include <muster/node.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_DO_NOT_RESTART 93 /* to `muster run`: trying again cannot help */

struct training {
    struct words_options options;
    muster_node_t *node;
    muster_state_t *state;
    struct words_data data;
    struct words_model model;
    struct words_allreduce all;
    uint8_t *contexts, *targets; /* the batch */
    float *gradient;             /* and after it the loss, to be averaged with it */
    float loss;                  /* of the last step, mean over the ranks */
    int rank, world_size;
    uint64_t step; /* done since the job's start, over all restarts */
    uint64_t resumed_at;
};

static void report_step(struct training *t)
{
    const struct words_options *o = &t->options;
    bool terminal = isatty(STDOUT_FILENO);

    if (t->rank != 0 || o->quiet)
        return;
    if (t->step % o->report_every == 0 || t->step == o->steps) {
        printf("%sstep %" PRIu64 " of %" PRIu64 "  loss %.4f\n", terminal ? "\r" : "", t->step,
               o->steps, (double)t->loss);
    } else if (terminal) {
        printf("\rstep %" PRIu64 " of %" PRIu64, t->step, o->steps);
    }
    fflush(stdout);
}

/* Tells where the next step's data begin, for the next checkpoint's record. */
static void tell_position(const struct training *t, struct words_place place)
{
    uint64_t per_step = (uint64_t)place.world_size * place.batch, epoch, index;

    place.step = t->step;
    words_data_position(&t->data, &place, &epoch, &index);
    muster_node_set_position(t->node, (int64_t)epoch, (int64_t)(index / per_step), (int64_t)index);
}

/* One step. It changes weights and velocity only when nothing can fail any more. So a failed step
 * changes nothing, and memory still holds the state of the step before. */
static int train_step(void *arg)
{
    struct training *t = arg;
    const struct words_options *o = &t->options;
    struct words_place place = {.step = t->step,
                                .rank = (uint32_t)t->rank,
                                .world_size = (uint32_t)t->world_size,
                                .batch = o->batch,
                                .context = o->shape.context};
    struct timespec pause = {.tv_sec = o->step_sleep_ms / 1000,
                             .tv_nsec = o->step_sleep_ms % 1000 * 1000000L};
    int code;

    if (o->step_sleep_ms > 0)
        nanosleep(&pause, NULL);
    words_data_batch(&t->data, &place, t->contexts, t->targets);
    t->gradient[t->model.count] =
        (float)words_model_loss(&t->model, t->contexts, t->targets, o->batch, t->gradient);
    code = words_allreduce_mean(&t->all, t->gradient);
    if (code)
        return -code;
    words_model_update(&t->model, t->gradient, o->rate, o->momentum);
    t->loss = t->gradient[t->model.count];
    t->step++;
    tell_position(t, place);
    report_step(t);
    return 0;
}

/* Another rank failed: free the training thread, which may be waiting for it. */
static void free_collective(const struct muster_error *error, void *arg)
{
    struct training *t = arg;

    (void)error;
    words_allreduce_abort(&t->all);
}

static void log_warning(int level, const char *text, void *arg)
{
    (void)arg;
    if (level <= 1)
        fprintf(stderr, "train_words: %s\n", text);
}

static int complain(const char *what, const char *whom, int code)
{
    fprintf(stderr, "train_words: %s %s: %s\n", what, whom, strerror(code));
    return EXIT_FAILURE;
}

static int complain_muster(const struct training *t, const struct muster_error *error)
{
    fprintf(stderr, "train_words: rank %d: %s\n", t->rank, error->text);
    return muster_status_exit_code(error->status);
}

static int prepare(struct training *t)
{
    const struct words_options *o = &t->options;
    int code = words_data_open(&t->data, o->words, o->seed);

    if (code == -ENODATA)
        fprintf(stderr, "train_words: no word of a to z in %s\n", o->words);
    else if (code)
        complain("cannot read words from", o->words, -code);
    if (code)
        return EXIT_DO_NOT_RESTART;
    code = words_model_open(&t->model, &o->shape, o->seed);
    if (code)
        return complain("cannot make", "the model", -code);
    t->contexts = malloc((size_t)o->batch * o->shape.context);
    t->targets = malloc(o->batch);
    t->gradient = malloc((t->model.count + 1) * sizeof(float));
    if (!t->contexts || !t->targets || !t->gradient)
        return complain("cannot make", "the batch", ENOMEM);
    return 0;
}

/* Names what a checkpoint holds: all of the state, or with --layout sharded this rank's part. */
static enum muster_status register_state(struct training *t, struct muster_error *error)
{
    size_t begin = 0, end = t->model.count;
    enum muster_status status;
    int64_t count;

    if (t->options.sharded)
        words_allreduce_slice(t->model.count, t->rank, t->world_size, &begin, &end);
    count = (int64_t)(end - begin);
    status = muster_state_add_tensor(t->state, "weights", MUSTER_DTYPE_F32, &count, 1,
                                     t->model.weights + begin, error);
    if (status == MUSTER_OK)
        status = muster_state_add_tensor(t->state, "velocity", MUSTER_DTYPE_F32, &count, 1,
                                         t->model.velocity + begin, error);
    return status;
}

/* Joins the job and restores its newest checkpoint, if it has one. */
static enum muster_status join_job(struct training *t, struct muster_error *error)
{
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT; /* rank, broker: environment */
    enum muster_status status = muster_state_create(&t->state, error);

    if (status != MUSTER_OK)
        return status;
    options.job = t->options.job;
    options.checkpoint_dir = t->options.checkpoint_dir;
    options.layout = t->options.sharded ? MUSTER_LAYOUT_SHARDED : MUSTER_LAYOUT_REPLICATED;
    options.state = t->state;
    options.restore_later = true; /* what is a rank's part is known when its rank is */
    options.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    options.on_error = free_collective;
    options.log = log_warning;
    options.arg = t;
    status = muster_node_open(&options, &t->node, error);
    if (status != MUSTER_OK)
        return status;
    t->rank = muster_node_rank(t->node);
    t->world_size = muster_node_world_size(t->node);
    status = register_state(t, error);
    if (status == MUSTER_OK)
        status = muster_node_restore(t->node, error);
    t->resumed_at = t->step = (uint64_t)muster_node_total_run_calls(t->node);
    return status;
}

/* Meets the other ranks of this launch. Each rank gives the others what it restored of a sharded
 * checkpoint. */
static int meet_ranks(struct training *t)
{
    const char *job = t->options.job ? t->options.job : getenv("MUSTER_JOB");
    struct words_group group = {.name = job ? job : "words",
                                .nonce = muster_node_generation(t->node),
                                .rank = t->rank,
                                .world_size = t->world_size};
    int code = words_allreduce_open(&t->all, &group, t->model.count + 1, t->options.timeout_ms);

    if (code == 0 && t->options.sharded && t->resumed_at > 0)
        code = words_allreduce_gather(&t->all, t->model.weights, t->model.count);
    if (code == 0 && t->options.sharded && t->resumed_at > 0)
        code = words_allreduce_gather(&t->all, t->model.velocity, t->model.count);
    if (code && t->all.late_rank >= 0)
        fprintf(stderr, "train_words: rank %d waits for rank %d\n", t->rank, t->all.late_rank);
    return code ? complain("cannot meet", "the other ranks", -code) : 0;
}

static int write_weights(const struct training *t, const char *path)
{
    FILE *file = fopen(path, "wbe");
    size_t written;

    if (!file)
        return complain("cannot write", path, errno);
    written = fwrite(t->model.weights, sizeof(float), t->model.count, file);
    if (fclose(file) != 0 || written != t->model.count)
        return complain("cannot write", path, errno);
    return 0;
}

/* Prints what this process did; at the job's end rank 0 writes the weights. */
static int conclude(const struct training *t)
{
    printf("words: rank=%d resumed_at=%" PRIu64 " computed=%" PRIu64 " step=%" PRIu64
           " steps=%" PRIu64 " loss=%.6f weights=%016" PRIx64 "\n",
           t->rank, t->resumed_at, t->step - t->resumed_at, t->step, t->options.steps,
           (double)t->loss, words_model_hash(&t->model));
    if (fflush(stdout) != 0)
        return complain("cannot write to", "standard output", errno);
    if (t->rank == 0 && t->options.out && t->step == t->options.steps)
        return write_weights(t, t->options.out);
    return 0;
}

static void release(struct training *t)
{
    muster_state_destroy(&t->state);
    words_allreduce_close(&t->all);
    words_model_close(&t->model);
    words_data_close(&t->data);
    free(t->contexts);
    free(t->targets);
    free(t->gradient);
}

/* The training, from the first boundary to the last; returns the process's exit code. */
static int train(struct training *t)
{
    struct muster_error error;
    enum muster_status status = join_job(t, &error);
    int restart_code, code = 0;

    if (status == MUSTER_OK) {
        code = meet_ranks(t);
        while (code == 0 && status == MUSTER_OK && t->step < t->options.steps)
            status = muster_node_run(t->node, train_step, t, &error);
    }
    if (status != MUSTER_OK && status != MUSTER_PREEMPTED)
        code = complain_muster(t, &error);
    else if (code == 0)
        code = conclude(t);
    if (!t->node) /* MUSTER_PREEMPTED: it came into a launch that was over */
        return code == 0 && status == MUSTER_PREEMPTED ? muster_node_restart_code(NULL) : code;
    restart_code = muster_node_restart_code(t->node);
    if (muster_node_close(&t->node, code, NULL) == MUSTER_PREEMPTED && code == 0)
        return restart_code;
    return code;
}

int main(int argc, char **argv)
{
    static struct training t;
    int code = words_options_parse(&t.options, argc, argv);

    if (code >= 0)
        return code == 0 ? EXIT_SUCCESS : EXIT_DO_NOT_RESTART;
    code = prepare(&t);
    if (code == 0)
        code = train(&t);
    release(&t);
    return code;
}
