/* prog_training - one rank of a job that trains in epochs of four batches and backs up with a
 * training state; driven by training_state.sh. Its state counts the batches trained, so a wrong
 * position shows. */
#include <muster/training.h>

#include "client/examples/words_allreduce.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 4
#define SIGNALLED_MS 300 /* a notice is agreed on in this time */
#define COLLECTIVE_MS 20000

static struct {
    int rank, world_size;
    int64_t value; /* batches trained */
    muster_state_t *state;
    muster_training_state_t *training;
    struct words_allreduce all;
    int64_t epochs, every, signal_rank, signal_at, kill_rank, kill_at, files, delete;
    int64_t sharded, back_up_at, unknown, fallback;
} t = {.epochs = 3, .signal_rank = -1, .kill_rank = -1};

static const struct {
    const char *name;
    int64_t *value;
} numbers[] = {
    {"--epochs", &t.epochs},
    {"--every", &t.every}, /* 0: each epoch, -1: never, else so many batches */
    {"--signal-rank", &t.signal_rank},
    {"--signal-at", &t.signal_at}, /* in its so many-th batch */
    {"--kill-rank", &t.kill_rank},
    {"--kill-at", &t.kill_at},
    {"--files", &t.files},   /* writes beside the back-ups */
    {"--delete", &t.delete}, /* the back-up, at the end */
    {"--sharded", &t.sharded},
    {"--fallback", &t.fallback},
    {"--unknown", &t.unknown},       /* nobody says how many batches an epoch has */
    {"--back-up-at", &t.back_up_at}, /* behind its so many-th batch */
};

static bool take(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].value = strtoll(value, NULL, 10);
            return true;
        }
    fprintf(stderr, "prog_training: no such option: %s\n", name);
    return false;
}

static void free_collective(const struct muster_error *error, void *arg)
{
    (void)error;
    (void)arg;
    words_allreduce_abort(&t.all);
}

static int train_batch(void)
{
    float mean = (float)t.value;

    if (t.rank == t.kill_rank && t.value + 1 == t.kill_at)
        kill(getpid(), SIGKILL);
    if (t.rank == t.signal_rank && t.value + 1 == t.signal_at) {
        struct timespec left = {.tv_nsec = SIGNALLED_MS * 1000000L};

        kill(getpid(), SIGTERM);
        while (nanosleep(&left, &left) != 0 && errno == EINTR)
            continue;
    }
    if (words_allreduce_mean(&t.all, &mean) != 0)
        return 9;
    t.value++;
    return 0;
}

static void write_beside(void)
{
    const char *path = NULL;
    char name[4096];
    FILE *file;

    if (muster_training_state_write_directory(t.training, &path, NULL) != MUSTER_OK)
        return;
    snprintf(name, sizeof name, "%s/notes-%d", path, t.rank);
    file = fopen(name, "we");
    printf("wrote %s %d\n", path, file != NULL && fclose(file) == 0);
}

static enum muster_status train_epoch(int64_t epoch, int64_t first, struct muster_error *error)
{
    enum muster_status status = MUSTER_OK;
    bool saved;

    for (int64_t batch = first; batch < BATCHES && status == MUSTER_OK; batch++) {
        if (train_batch() != 0) {
            muster_node_fail(muster_training_state_node(t.training), 9, "the collective broke");
            return muster_training_state_batch_end(t.training, epoch, batch, NULL, error);
        }
        if (t.value != epoch * BATCHES + batch + 1) {
            printf("WRONG STATE %" PRId64 " at epoch %" PRId64 ", batch %" PRId64 "\n", t.value,
                   epoch, batch);
            return MUSTER_E_FAULT;
        }
        if (t.files)
            write_beside();
        muster_training_state_set_data_position(t.training, t.value * 10);
        status = muster_training_state_batch_end(t.training, epoch, batch, &saved, error);
        if (saved)
            printf("saved %" PRId64 ".%" PRId64 "\n", epoch, batch);
        if (status == MUSTER_OK && t.value == t.back_up_at)
            status = muster_training_state_back_up(t.training, epoch, batch, error);
    }
    if (status == MUSTER_OK)
        status = muster_training_state_epoch_end(t.training, epoch, &saved, error);
    return status;
}

static enum muster_status begin(struct muster_error *error)
{
    struct muster_training_state_options options = MUSTER_TRAINING_STATE_OPTIONS_INIT;
    struct muster_node_options node = MUSTER_NODE_OPTIONS_INIT;
    struct words_group group = {.name = getenv("TRAINER_GROUP"), .rank = t.rank};
    enum muster_status status;

    node.state = t.state;
    node.layout = t.sharded ? MUSTER_LAYOUT_SHARDED : MUSTER_LAYOUT_REPLICATED;
    node.termination.on_preempted = MUSTER_PREEMPTED_RETURN;
    node.on_error = free_collective;
    options.node = &node;
    options.backup_dir = getenv("MUSTER_CHECKPOINT_DIR");
    options.fallback = t.fallback != 0;
    options.batches_per_epoch = t.unknown ? 0 : BATCHES;
    options.save_freq = t.every == 0  ? MUSTER_SAVE_FREQ_EPOCH
                        : t.every > 0 ? MUSTER_SAVE_FREQ_BATCHES
                                      : MUSTER_SAVE_FREQ_NEVER;
    options.save_freq_batches = t.every > 0 ? t.every : 0;
    status = muster_training_state_open(&options, &t.training, error);
    if (status == MUSTER_OK)
        status = muster_training_state_restore(t.training, NULL, error);
    if (status != MUSTER_OK)
        return status;
    group.world_size = t.world_size;
    group.nonce = muster_node_generation(muster_training_state_node(t.training));
    return words_allreduce_open(&t.all, &group, 1, COLLECTIVE_MS) == 0 ? MUSTER_OK : MUSTER_E_FAULT;
}

static int run(enum muster_status *ret_status)
{
    struct muster_error error = {.status = MUSTER_OK};
    int64_t epoch = 0, batch = 0, data = -1;
    int code, restart_code;

    *ret_status = begin(&error);
    muster_training_state_initial_position(t.training, &epoch, &batch, &data);
    printf("begins at %" PRId64 ".%" PRId64 " data %" PRId64 " epoch %" PRId64 "\n", epoch, batch,
           data, muster_training_state_initial_epoch(t.training, 0, MUSTER_MODE_TRAIN));
    printf("evaluates from %" PRId64 ", predicts from %" PRId64 "\n",
           muster_training_state_initial_epoch(t.training, 7, MUSTER_MODE_TEST),
           muster_training_state_initial_epoch(t.training, 7, MUSTER_MODE_PREDICT));
    for (; *ret_status == MUSTER_OK && epoch < t.epochs; epoch++, batch = 0)
        *ret_status = train_epoch(epoch, batch, &error);
    if (*ret_status == MUSTER_OK && t.delete)
        *ret_status = muster_training_state_delete_backup(t.training, &error);
    if (*ret_status != MUSTER_OK)
        printf("error: rank=%d status=%s peer=%d text=%s\n", t.rank,
               muster_status_name(*ret_status), error.rank, error.text);
    code = *ret_status == MUSTER_OK || *ret_status == MUSTER_PREEMPTED ? 0 : 1;
    restart_code = muster_node_restart_code(muster_training_state_node(t.training));
    if (muster_training_state_close(&t.training, code, &error) == MUSTER_PREEMPTED && code == 0)
        return restart_code;
    return code;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("MUSTER_RANK"), *size = getenv("MUSTER_WORLD_SIZE");
    enum muster_status status;
    int code;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i + 1 < argc; i += 2)
        if (!take(argv[i], argv[i + 1]))
            return 2;
    t.rank = rank != NULL ? atoi(rank) : 0;
    t.world_size = size != NULL ? atoi(size) : 1;
    if (muster_state_create(&t.state, NULL) != MUSTER_OK ||
        muster_state_add_i64(t.state, "value", &t.value, NULL) != MUSTER_OK)
        return 2;
    code = run(&status);
    printf("trainer: rank=%d value=%" PRId64 " status=%s\n", t.rank, t.value,
           muster_status_name(status));
    muster_state_destroy(&t.state);
    words_allreduce_close(&t.all);
    return code;
}
