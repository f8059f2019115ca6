/* training - back-ups in epochs and batches, on top of a manager; see training.h. Owns: which step
 * of the manager a batch is (each boundary is a step), what is backed up when, the position. Never:
 * a save of its own. */
#include <muster/training.h>

#include "client/manager/manager_private.h"
#include "client/node/options_take.h"

#include "schema/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct muster_training_state {
    muster_manager_t *manager;
    struct muster_training_state_options options; /* numbers only */
    char backup_dir[PATH_BYTES_MAX + 1];
    char write_dir[FS_PATH_MAX]; /* "" = not asked for since it was removed */
    int64_t data_position;
    int64_t saved_epoch, saved_batch, saved_data; /* restored */
    int64_t epoch, batch; /* of the last call; batch -1: the epoch is over */
    int64_t step;         /* of the last boundary; -1 = none */
    bool batch_ended; /* the last call was batch_end: epoch_end and back_up are of the same state */
    bool saved;       /* at the last boundary */
    bool deleted;     /* delete_backup was called: training is over */
};

static enum muster_status training_refuse(const struct muster_training_state *ts, const char *call,
                                          struct muster_error *err)
{
    if (ts == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: state is NULL; open one with muster_training_state_open", call);
    return manager_need_node(ts->manager, call, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum muster_status training_wrong(struct muster_error *err, const char *text)
{
    return error_set(err, MUSTER_E_ARGUMENT, "muster_training_state_open: %s", text);
}

static enum muster_status training_check(const struct muster_training_state_options *o,
                                         struct muster_error *err)
{
    if (o->node == NULL)
        return training_wrong(err, "options.node is NULL; it says which job this is");
    if (o->backup_dir == NULL || o->backup_dir[0] == '\0')
        return training_wrong(err, "backup_dir is not given; use one directory for all ranks");
    if (strlen(o->backup_dir) > PATH_BYTES_MAX - 128)
        return training_wrong(err, "backup_dir is too long; use a shorter one");
    if (o->node->checkpoint_dir != NULL)
        return training_wrong(err,
                              "the node's checkpoint_dir is <backup_dir>/chief; leave it unset");
    if (o->save_freq < MUSTER_SAVE_FREQ_EPOCH || o->save_freq > MUSTER_SAVE_FREQ_NEVER)
        return training_wrong(err, "save_freq has no such value");
    if (o->save_freq == MUSTER_SAVE_FREQ_BATCHES && o->save_freq_batches < 1)
        return training_wrong(err, "save_freq_batches is below 1, with save_freq BATCHES");
    if (o->save_freq != MUSTER_SAVE_FREQ_BATCHES && o->save_freq_batches != 0)
        return training_wrong(err, "save_freq_batches is given, but save_freq is not BATCHES");
    if (o->batches_per_epoch < 0)
        return training_wrong(err, "batches_per_epoch is negative; 0 is not known");
    return MUSTER_OK;
}

static enum muster_status training_open_manager(struct muster_training_state *ts,
                                                const struct muster_training_state_options *o,
                                                struct muster_error *err)
{
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    const struct muster_keep_policy one = {.kind = MUSTER_KEEP_LATEST, .number = 1};
    struct muster_policies policies = MUSTER_POLICIES_INIT;
    struct muster_node_options node = *o->node;
    char chief[FS_PATH_MAX];
    enum muster_status status = fs_path(chief, err, "%s/chief", o->backup_dir);

    if (status != MUSTER_OK)
        return status;
    node.checkpoint_dir = chief;
    options.node = &node;
    policies.keep = &one;
    policies.keep_count = 1;
    options.policies = &policies;
    options.fallback = o->fallback;
    options.save_timeout_ms = o->save_timeout_ms;
    return muster_manager_open(&options, &ts->manager, err);
}

enum muster_status muster_training_state_open(const struct muster_training_state_options *options,
                                              muster_training_state_t **ret_state,
                                              struct muster_error *ret_error)
{
    struct muster_training_state *ts;
    struct muster_training_state_options own;
    struct muster_node_options node;
    enum muster_status status = training_state_options_take(options, &own, ret_error);

    if (status == MUSTER_OK && own.node != NULL) {
        status = node_options_take(own.node, &node, ret_error);
        own.node = &node;
    }
    if (status == MUSTER_OK)
        status = training_check(&own, ret_error);
    if (status == MUSTER_OK && ret_state == NULL)
        status = training_wrong(ret_error, "ret_state is NULL; give the address of a handle");
    if (status != MUSTER_OK)
        return status;
    ts = calloc(1, sizeof *ts);
    if (ts == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a training state; free some");
    ts->options = own;
    ts->options.node = NULL; /* it was borrowed for the call */
    memcpy(ts->backup_dir, own.backup_dir, strlen(own.backup_dir) + 1);
    ts->data_position = ts->saved_epoch = ts->saved_batch = ts->saved_data = -1;
    ts->epoch = ts->batch = ts->step = -1;
    status = training_open_manager(ts, &own, ret_error);
    if (status == MUSTER_OK)
        *ret_state = ts;
    else
        free(ts);
    return status;
}

/* A back-up that a rank other than the chief wrote is not used any more. Best effort: leftovers
 * only cost disk space. */
static void training_clear_write_dir(struct muster_training_state *ts)
{
    if (ts->write_dir[0] != '\0' && ts->manager->rank != 0)
        fs_remove_tree(ts->write_dir, NULL);
    ts->write_dir[0] = '\0';
}

enum muster_status muster_training_state_close(muster_training_state_t **state, int code,
                                               struct muster_error *ret_error)
{
    struct muster_training_state *ts = state != NULL ? *state : NULL;
    enum muster_status status;

    if (ts == NULL)
        return MUSTER_OK;
    *state = NULL;
    if (!manager_is_gone(ts->manager))
        training_clear_write_dir(ts);
    status = muster_manager_close(&ts->manager, code, ret_error);
    if (status != MUSTER_E_FORKED)
        free(ts);
    return status;
}

enum muster_status muster_training_state_write_directory(muster_training_state_t *state,
                                                         const char **ret_directory,
                                                         struct muster_error *ret_error)
{
    char path[FS_PATH_MAX];
    enum muster_status status;
    char *real; /* where it is, also after a chdir: it is removed later */

    if (state == NULL || ret_directory == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_training_state_write_directory: state or ret_directory is NULL");
    if (state->manager->rank == 0)
        status = fs_path(path, ret_error, "%s/chief", state->backup_dir);
    else
        status =
            fs_path(path, ret_error, "%s/workertemp_%d", state->backup_dir, state->manager->rank);
    if (status == MUSTER_OK)
        status = fs_make_dirs(path, ret_error);
    if (status != MUSTER_OK)
        return status;
    real = realpath(path, NULL);
    if (real == NULL)
        return error_set_code(ret_error, MUSTER_E_IO, errno,
                              "muster_training_state_write_directory: %s: %s; is it being moved?",
                              path, strerror(errno));
    status = fs_path(state->write_dir, ret_error, "%s", real);
    free(real);
    if (status != MUSTER_OK)
        return status;
    *ret_directory = state->write_dir;
    return MUSTER_OK;
}

muster_node_t *muster_training_state_node(const muster_training_state_t *state)
{
    return state == NULL ? NULL : muster_manager_node(state->manager);
}

/* --- where it stands -------------------------------------------------------------------------- */

enum muster_status muster_training_state_restore(muster_training_state_t *state, bool *ret_found,
                                                 struct muster_error *ret_error)
{
    struct muster_restored restored;
    struct muster_error why;
    enum muster_status status;

    if (state == NULL)
        return training_refuse(state, "muster_training_state_restore", ret_error);
    status = muster_manager_restore(state->manager, MUSTER_STEP_LATEST, &restored, sizeof restored,
                                    &why);
    if (status == MUSTER_OK) {
        state->saved_epoch = state->epoch = restored.epoch;
        state->saved_batch = state->batch = restored.step_in_epoch;
        state->saved_data = state->data_position = restored.data_position;
        state->step = restored.step;
    }
    if (status != MUSTER_OK && status != MUSTER_E_NOT_FOUND)
        return error_pass(ret_error, status, &why);
    if (ret_found != NULL)
        *ret_found = status == MUSTER_OK;
    return MUSTER_OK;
}

void muster_training_state_initial_position(const muster_training_state_t *state,
                                            int64_t *ret_epoch, int64_t *ret_batch,
                                            int64_t *ret_data_position)
{
    int64_t epoch = 0, batch = 0;

    if (state != NULL && state->saved_epoch >= 0) {
        int64_t per_epoch = state->options.batches_per_epoch;
        bool over =
            state->saved_batch < 0 || (per_epoch > 0 && state->saved_batch + 1 >= per_epoch);

        epoch = over ? state->saved_epoch + 1 : state->saved_epoch;
        batch = over ? 0 : state->saved_batch + 1;
    }
    if (ret_epoch != NULL)
        *ret_epoch = epoch;
    if (ret_batch != NULL)
        *ret_batch = batch;
    if (ret_data_position != NULL)
        *ret_data_position = state != NULL ? state->saved_data : -1;
}

int64_t muster_training_state_initial_epoch(const muster_training_state_t *state, int64_t initial,
                                            enum muster_training_mode mode)
{
    int64_t epoch;

    if (state == NULL || mode != MUSTER_MODE_TRAIN || state->saved_epoch < 0)
        return initial;
    muster_training_state_initial_position(state, &epoch, NULL, NULL);
    return epoch;
}

void muster_training_state_saved_position(const muster_training_state_t *state, int64_t *ret_epoch,
                                          int64_t *ret_batch)
{
    if (ret_epoch != NULL)
        *ret_epoch = state != NULL ? state->saved_epoch : -1;
    if (ret_batch != NULL)
        *ret_batch = state != NULL ? state->saved_batch : -1;
}

void muster_training_state_set_data_position(muster_training_state_t *state, int64_t data_position)
{
    if (state != NULL && data_position >= -1)
        state->data_position = data_position;
}

enum muster_status muster_training_state_delete_backup(muster_training_state_t *state,
                                                       struct muster_error *ret_error)
{
    enum muster_status status =
        training_refuse(state, "muster_training_state_delete_backup", ret_error);
    struct muster_manager *m = status == MUSTER_OK ? state->manager : NULL;

    if (status == MUSTER_OK && m->rank != 0)
        state->deleted = true;
    if (m == NULL || m->rank != 0)
        return status;
    status = muster_manager_wait_until_finished(m, -1, ret_error);
    if (m->node->agent != NULL)
        agent_wait_in_place(m->node->agent, MANIFEST_WAIT_MS); /* what is being named stays */
    if (status == MUSTER_OK)
        status = manager_read_list(m, ret_error);
    for (size_t i = m->list.count; i-- > 0 && status == MUSTER_OK;) {
        struct wire_msg message = {.type = WIRE_DROP};

        message.u.drop =
            (struct wire_drop){.checkpoint = m->list.items[i].checkpoint, .newest = true};
        if (m->node->local != NULL)
            status = manager_keep_delete_alone(m, &m->list.items[i], ret_error);
        else
            status = manager_order(m, &message, ret_error);
    }
    if (status == MUSTER_OK)
        status = manager_keep_sweep(m, true, ret_error);
    state->deleted = status == MUSTER_OK;
    return status;
}

/* --- back-ups --------------------------------------------------------------------------------- */

/* The unit that ends here, for texts. */
static const char *training_position_text(int64_t epoch, int64_t batch, char *text, size_t size)
{
    if (epoch < 0)
        snprintf(text, size, "the start");
    else if (batch < 0)
        snprintf(text, size, "the end of epoch %lld", (long long)epoch);
    else
        snprintf(text, size, "epoch %lld, batch %lld", (long long)epoch, (long long)batch);
    return text;
}

/* Batch -1, an epoch's end, comes after all batches of the epoch. */
static bool training_comes_after(const struct muster_training_state *ts, int64_t epoch,
                                 int64_t batch)
{
    if (epoch != ts->epoch)
        return epoch > ts->epoch;
    return ts->batch >= 0 && (batch < 0 || batch > ts->batch);
}

static enum muster_status training_check_position(const struct muster_training_state *ts,
                                                  const char *call, int64_t epoch, int64_t batch,
                                                  struct muster_error *err)
{
    int64_t per_epoch = ts->options.batches_per_epoch;
    char here[64], last[64];

    if (ts->deleted)
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "%s: muster_training_state_delete_backup was called: the training is over, "
            "and only muster_training_state_close may follow",
            call);
    if (epoch < 0 || batch < -1 || epoch > INT64_MAX / 4 || batch > INT64_MAX / 4)
        return error_set(err, MUSTER_E_ARGUMENT, "%s: epoch %lld, batch %lld: they count from 0",
                         call, (long long)epoch, (long long)batch);
    if (per_epoch > 0 && batch >= per_epoch)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: batch %lld is not inside an epoch of batches_per_epoch %lld", call,
                         (long long)batch, (long long)per_epoch);
    if (!training_comes_after(ts, epoch, batch))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: %s does not come after %s, which was the last; to go back, begin "
                         "again and restore",
                         call, training_position_text(epoch, batch, here, sizeof here),
                         training_position_text(ts->epoch, ts->batch, last, sizeof last));
    return MUSTER_OK;
}

/* One boundary, and so one step of the manager: all ranks come to it alike, whatever each of them
 * was told before. To save the state of a boundary that was passed already would be refused where
 * another rank had not asked yet. */
static enum muster_status training_end(struct muster_training_state *ts, int64_t epoch,
                                       int64_t batch, bool want, bool *ret_saved,
                                       struct muster_error *err)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    int64_t step = ts->step + 1;
    struct muster_error why;
    enum muster_status status;

    request.force = want;
    request.epoch = epoch;
    request.step_in_epoch = batch;
    request.data_position = ts->data_position;
    status = muster_manager_save(ts->manager, step, &request, ret_saved, &why);
    if (ts->manager->passed == step) {
        ts->step = step;
        ts->epoch = epoch;
        ts->batch = batch;
    }
    ts->saved = *ret_saved;
    if (*ret_saved)
        training_clear_write_dir(ts);
    return error_pass(err, status, &why);
}

/* With the batch that ends here; without known batches a back_up counts as one. */
static int64_t training_batches_done(const struct muster_training_state *ts, int64_t epoch,
                                     int64_t batch)
{
    int64_t per_epoch = ts->options.batches_per_epoch;

    return per_epoch > 0 ? epoch * per_epoch + batch + 1 : ts->step + 2;
}

static bool training_batch_is_due(const struct muster_training_state *ts, int64_t epoch,
                                  int64_t batch)
{
    const struct muster_training_state_options *o = &ts->options;

    if (o->save_freq == MUSTER_SAVE_FREQ_BATCHES)
        return training_batches_done(ts, epoch, batch) % o->save_freq_batches == 0;
    return o->save_freq == MUSTER_SAVE_FREQ_EPOCH && o->batches_per_epoch > 0 &&
           batch + 1 == o->batches_per_epoch;
}

enum muster_status muster_training_state_batch_end(muster_training_state_t *state, int64_t epoch,
                                                   int64_t batch, bool *ret_saved,
                                                   struct muster_error *ret_error)
{
    static const char call[] = "muster_training_state_batch_end";
    enum muster_status status = training_refuse(state, call, ret_error);
    bool saved = false;

    if (status == MUSTER_OK && batch < 0)
        status = error_set(ret_error, MUSTER_E_ARGUMENT,
                           "%s: batch is %lld; an epoch's end is told by "
                           "muster_training_state_epoch_end",
                           call, (long long)batch);
    if (status == MUSTER_OK)
        status = training_check_position(state, call, epoch, batch, ret_error);
    if (status != MUSTER_OK)
        return status;
    status = training_end(state, epoch, batch, training_batch_is_due(state, epoch, batch), &saved,
                          ret_error);
    state->batch_ended = true;
    if (ret_saved != NULL)
        *ret_saved = saved;
    return status;
}

enum muster_status muster_training_state_epoch_end(muster_training_state_t *state, int64_t epoch,
                                                   bool *ret_saved, struct muster_error *ret_error)
{
    static const char call[] = "muster_training_state_epoch_end";
    enum muster_status status = training_refuse(state, call, ret_error);
    bool saved = false, same, want, last;

    if (status == MUSTER_OK)
        status = training_check_position(state, call, epoch, -1, ret_error);
    if (status != MUSTER_OK)
        return status;
    same = state->batch_ended && state->epoch == epoch;
    last = same && state->batch + 1 == state->options.batches_per_epoch; /* stood for this */
    want = state->options.save_freq == MUSTER_SAVE_FREQ_EPOCH;
    if (!same || (want && !last)) {
        status = training_end(state, epoch, -1, want, &saved, ret_error);
    } else {
        state->batch = -1;
        saved = want && state->saved;
    }
    state->batch_ended = false;
    if (ret_saved != NULL)
        *ret_saved = saved;
    return status;
}

enum muster_status muster_training_state_back_up(muster_training_state_t *state, int64_t epoch,
                                                 int64_t batch, struct muster_error *ret_error)
{
    static const char call[] = "muster_training_state_back_up";
    enum muster_status status = training_refuse(state, call, ret_error);
    bool saved = false, same;

    if (status != MUSTER_OK)
        return status;
    same = state->batch_ended && state->epoch == epoch && (batch == state->batch || batch == -1);
    if (!same || batch != state->batch || state->deleted)
        status = training_check_position(state, call, epoch, batch, ret_error);
    if (status == MUSTER_OK)
        status = training_end(state, epoch, batch, true, &saved, ret_error);
    if (batch == -1)
        state->batch_ended = false;
    return status;
}
