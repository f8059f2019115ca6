/* training.h - back-ups for training in epochs and batches, as Keras' BackupAndRestore. Every rank
 * restores the same back-up and goes on at its batch. See muster-training(3).
 *
 *   muster_training_state_open
 *   muster_training_state_restore             joins the job; every rank gets the newest back-up
 *   muster_training_state_initial_position    where to begin: epoch, batch, data position
 *   per batch: muster_training_state_batch_end; per epoch: muster_training_state_epoch_end
 *   muster_training_state_delete_backup       training is over and no longer needs the back-up
 *   muster_training_state_close
 *
 * All ranks call batch_end, epoch_end and back_up alike, in the same order. Each call is a
 * boundary. A preempted job backs up at the next boundary on all ranks, whatever the frequency,
 * even with NEVER.
 * Back-ups are committed checkpoints of the job (node.h): one that is not complete does not count.
 * Only the newest one is kept; it is deleted when a newer one is committed.
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
    MUSTER_SAVE_FREQ_EPOCH, /* at the end of each epoch */
    /* After each save_freq_batches batches. The count goes on over epochs. Without
     * batches_per_epoch a call of back_up counts as a batch. */
    MUSTER_SAVE_FREQ_BATCHES,
    MUSTER_SAVE_FREQ_NEVER /* only at back_up and preemptions */
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
    /* Batches of an epoch; 0 = not known. If it is known, the call for the last batch also makes
     * the epoch's back-up, and training resumes with the next epoch. */
    int64_t batches_per_epoch;
    bool fallback;           /* as in manager.h */
    int64_t save_timeout_ms; /* as in manager.h */
};
#define MUSTER_TRAINING_STATE_OPTIONS_INIT                          \
    {                                                               \
        .struct_size = sizeof(struct muster_training_state_options) \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_training_state_options_init(struct muster_training_state_options *options,
                                                   size_t struct_size);

/* Opens the state and joins nothing yet. MUSTER_E_ARGUMENT: an option is wrong or contradicts
 * another; the text says which. Else as muster_manager_open. */
MUSTER_API enum muster_status
muster_training_state_open(const struct muster_training_state_options *options,
                           muster_training_state_t **ret_state, struct muster_error *ret_error);

/* Joins the job, restores the newest back-up, and waits until all ranks have restored it
 * (join_timeout_ms). Call it once.
 * *ret_found (may be NULL) is true if there was one. If there is none, training begins from the
 * start, which is no error. Returns the statuses of muster_manager_restore except
 * MUSTER_E_NOT_FOUND. */
MUSTER_API enum muster_status muster_training_state_restore(muster_training_state_t *state,
                                                            bool *ret_found,
                                                            struct muster_error *ret_error);

/* The node, after the restore, else NULL; as muster_manager_node. */
MUSTER_API muster_node_t *muster_training_state_node(const muster_training_state_t *state);

/* The epoch to begin with (as maybe_load_initial_epoch). In mode TRAIN it is the one after the
 * saved epoch, or the saved epoch itself if the back-up was made in its middle. Without a back-up,
 * and in every other mode, it is `initial`. */
MUSTER_API int64_t muster_training_state_initial_epoch(const muster_training_state_t *state,
                                                       int64_t initial,
                                                       enum muster_training_mode mode);

/* Where training goes on: at (epoch, batch + 1) after a back-up within an epoch, at (epoch + 1, 0)
 * after one at an epoch's end. Without a back-up it is (0, 0). *ret_data_position is what the
 * program told for the back-up, -1 = not told. Each pointer may be NULL. */
MUSTER_API void muster_training_state_initial_position(const muster_training_state_t *state,
                                                       int64_t *ret_epoch, int64_t *ret_batch,
                                                       int64_t *ret_data_position);

/* The saved epoch and batch; -1 = nothing was saved, or (batch) the whole epoch was. */
MUSTER_API void muster_training_state_saved_position(const muster_training_state_t *state,
                                                     int64_t *ret_epoch, int64_t *ret_batch);

/* Tells where the input stands, for the next back-ups: how many items the loader gave out. */
MUSTER_API void muster_training_state_set_data_position(muster_training_state_t *state,
                                                        int64_t data_position);

/* Call it when batch `batch` of epoch `epoch` is done. Backs up if the frequency says so, or if the
 * job is being preempted. *ret_saved (may be NULL) is true if a back-up of this batch is committed.
 * Statuses of muster_manager_save. MUSTER_PREEMPTED: leave the loops. MUSTER_E_ARGUMENT: the batch
 * does not come after the one before. A back-up that failed (MUSTER_E_SAVE, MUSTER_E_ABORTED, …)
 * leaves the earlier one as it was, and training may go on. */
MUSTER_API enum muster_status muster_training_state_batch_end(muster_training_state_t *state,
                                                              int64_t epoch, int64_t batch,
                                                              bool *ret_saved,
                                                              struct muster_error *ret_error);
/* Call it when epoch `epoch` is over. Backs up if save_freq is EPOCH. If batches_per_epoch is
 * known, batch_end of the last batch has made that back-up already, and *ret_saved says how it
 * went. */
MUSTER_API enum muster_status muster_training_state_epoch_end(muster_training_state_t *state,
                                                              int64_t epoch, bool *ret_saved,
                                                              struct muster_error *ret_error);
/* Backs up now, whatever the frequency (as WorkerTrainingState.back_up): after this batch, or with
 * batch -1 at the end of the epoch. The call is a boundary. If anything was trained since the last
 * call, this call ends that step. */
MUSTER_API enum muster_status muster_training_state_back_up(muster_training_state_t *state,
                                                            int64_t epoch, int64_t batch,
                                                            struct muster_error *ret_error);

/* Call it when training succeeded and no longer needs its back-up (as delete_backup). Rank 0
 * deletes all of the job's back-ups, the newest too; the other ranks do nothing. Only close may
 * follow: batch_end, epoch_end and back_up are refused (MUSTER_E_ARGUMENT). Blocks for the
 * deletion, 10 s at most; the rest is deleted in the background or by the next launch.
 * MUSTER_E_BUSY: somebody reads a back-up. */
MUSTER_API enum muster_status muster_training_state_delete_backup(muster_training_state_t *state,
                                                                  struct muster_error *ret_error);

/* Where this rank may write beside the back-up (as write_filepath): <backup_dir>/chief on rank 0,
 * and <backup_dir>/workertemp_<rank> on the others. This call makes the directory. A workertemp
 * directory is removed after each committed back-up and at close. All ranks restore from the
 * chief's. The string is borrowed until close. MUSTER_E_IO. */
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
