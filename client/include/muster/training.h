/* training.h - back-ups of a training in epochs and batches, as Keras' WorkerTrainingState
 * (BackupAndRestore): where training stood comes back with the state, to the batch, and every rank
 * restores the same one.
 *
 *   muster_training_state_open
 *   muster_training_state_restore             joins the job; every rank gets the newest back-up
 *   muster_training_state_initial_position    where to begin: epoch, batch, data position
 *   per batch: muster_training_state_batch_end; per epoch: muster_training_state_epoch_end
 *   muster_training_state_delete_backup       training is over and needs it no more
 *   muster_training_state_close
 *
 * All ranks call batch_end, epoch_end and back_up alike, in the same order. Each is a boundary: a job that
 * is preempted backs up at the next one on all ranks, whatever the frequency, also with NEVER. Back-ups
 * are commits of the job (node.h): one that is not whole does not exist. One is kept: the newest, which goes
 * when a newer one is committed.
 *
 * Threads, blocking, fork: as in manager.h. Epochs and batches count from 0; -1 = none. */
#ifndef MUSTER_TRAINING_H
#define MUSTER_TRAINING_H

#include <muster/node.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_training_state muster_training_state_t;

enum muster_save_freq {
    MUSTER_SAVE_FREQ_EPOCH,   /* at the end of each epoch */
    MUSTER_SAVE_FREQ_BATCHES, /* after each save_freq_batches batches; these count on over epochs (and
                                 without batches_per_epoch a back_up counts as one) */
    MUSTER_SAVE_FREQ_NEVER    /* only what back_up and preemptions save */
};

enum muster_training_mode { MUSTER_MODE_TRAIN, MUSTER_MODE_TEST, MUSTER_MODE_PREDICT };

struct muster_training_state_options {
    size_t struct_size; /* set by MUSTER_TRAINING_STATE_OPTIONS_INIT; do not change */
    /* The job: as for muster_manager_open; checkpoint_dir stays unset. */
    const struct muster_node_options *node;
    /* One directory for all ranks. Back-ups are in <backup_dir>/chief; see write_directory. */
    const char *backup_dir;
    enum muster_save_freq save_freq;
    int64_t save_freq_batches; /* with BATCHES, 1 or more; else 0 */
    /* Batches of an epoch, so that the last one is known: training goes on with the next epoch behind
     * it, and the epoch's back-up is made with it. 0 = not known. */
    int64_t batches_per_epoch;
    bool fallback;           /* as in manager.h */
    int64_t save_timeout_ms; /* as in manager.h */
};
#define MUSTER_TRAINING_STATE_OPTIONS_INIT                          \
    {                                                               \
        .struct_size = sizeof(struct muster_training_state_options) \
    }

/* Joins nothing yet. MUSTER_E_ARGUMENT: which option is wrong or contradicts which. Else as
 * muster_manager_open. */
MUSTER_API enum muster_status
muster_training_state_open(const struct muster_training_state_options *options,
                           muster_training_state_t **ret_state, struct muster_error *ret_error);

/* Joins the job and restores the newest back-up; waits until all ranks have (join_timeout_ms). Once.
 * *ret_found (may be NULL): there was one; else training begins from the start, which is no error.
 * Statuses of muster_manager_restore but MUSTER_E_NOT_FOUND. */
MUSTER_API enum muster_status muster_training_state_restore(muster_training_state_t *state,
                                                            bool *ret_found,
                                                            struct muster_error *ret_error);

/* The node, once restored, else NULL; as muster_manager_node. */
MUSTER_API muster_node_t *muster_training_state_node(const muster_training_state_t *state);

/* The epoch to begin with (as maybe_load_initial_epoch): in mode TRAIN the one after the saved epoch, or that
 * epoch itself if it was saved in its middle; without a back-up, and in every other mode, `initial`. */
MUSTER_API int64_t muster_training_state_initial_epoch(const muster_training_state_t *state,
                                                       int64_t initial,
                                                       enum muster_training_mode mode);

/* Where training goes on: (epoch, batch + 1) of what was saved, or (epoch + 1, 0) after an epoch's end;
 * (0, 0) without a back-up. data_position: as told with the back-up, -1 = not told. Each pointer may be
 * NULL. */
MUSTER_API void muster_training_state_initial_position(const muster_training_state_t *state,
                                                       int64_t *ret_epoch, int64_t *ret_batch,
                                                       int64_t *ret_data_position);

/* What was restored: the saved epoch and batch; -1 = nothing saved, or (batch) the whole epoch. */
MUSTER_API void muster_training_state_saved_position(const muster_training_state_t *state,
                                                     int64_t *ret_epoch, int64_t *ret_batch);

/* Where the input stands, for the next back-ups; the loader's own count of what it gave out. */
MUSTER_API void muster_training_state_set_data_position(muster_training_state_t *state,
                                                        int64_t data_position);

/* Batch `batch` of epoch `epoch` is trained. Backs up if the frequency says so, or the job is being
 * preempted. *ret_saved (may be NULL): a back-up of this batch is committed. Statuses of muster_manager_save:
 * MUSTER_PREEMPTED: leave the loops. MUSTER_E_ARGUMENT: it does not come after the one before. A back-up
 * that failed (MUSTER_E_SAVE, MUSTER_E_ABORTED, …) leaves the one before, and training may go on. */
MUSTER_API enum muster_status muster_training_state_batch_end(muster_training_state_t *state,
                                                              int64_t epoch, int64_t batch,
                                                              bool *ret_saved,
                                                              struct muster_error *ret_error);
/* Epoch `epoch` is over. Backs up with EPOCH; where batches_per_epoch told batch_end that it was the last one, that has
 * done it, and *ret_saved says how that went. */
MUSTER_API enum muster_status muster_training_state_epoch_end(muster_training_state_t *state,
                                                              int64_t epoch, bool *ret_saved,
                                                              struct muster_error *ret_error);
/* Backs up now, whatever the frequency (as WorkerTrainingState.back_up): after this batch, or with batch -1 at the
 * end of the epoch. A boundary of its own, which ends what was trained since the last call, if anything was. */
MUSTER_API enum muster_status muster_training_state_back_up(muster_training_state_t *state,
                                                            int64_t epoch, int64_t batch,
                                                            struct muster_error *ret_error);

/* Training succeeded and needs its back-up no more (as delete_backup): all of the job's back-ups are
 * deleted, the newest too, by rank 0; the others do nothing. After it only close may follow:
 * batch_end, epoch_end and back_up are refused (MUSTER_E_ARGUMENT). Blocks for the
 * deletion (10 s, what is left then goes in the background or with the next launch).
 * MUSTER_E_BUSY: somebody reads one. */
MUSTER_API enum muster_status muster_training_state_delete_backup(muster_training_state_t *state,
                                                                  struct muster_error *ret_error);

/* Where this rank may write beside the back-up (as write_filepath): <backup_dir>/chief on rank 0,
 * <backup_dir>/workertemp_<rank> on the others. Made when asked for; the others' is removed after each
 * back-up that was committed, and at close. All restore from the chief's. Borrowed until close.
 * MUSTER_E_IO. */
MUSTER_API enum muster_status muster_training_state_write_directory(muster_training_state_t *state,
                                                                    const char **ret_directory,
                                                                    struct muster_error *ret_error);

/* As muster_manager_close. */
MUSTER_API enum muster_status muster_training_state_close(muster_training_state_t **state, int code,
                                                          struct muster_error *ret_error);

#ifdef __cplusplus
}
#endif
#endif
