/* manager.h - checkpoints by step, as in Orbax' CheckpointManager. All ranks agree on each save.
 * See muster-manager(3).
 *
 *   muster_manager_open       takes where checkpoints go, their names, when to save, what to keep
 *   muster_manager_restore    joins the job and restores; every rank gets the same checkpoint
 *   muster_manager_save       call it after each step: the boundary before the next; it saves if
 *                             a policy, the caller or a notice says so
 *   muster_manager_close
 *
 * Steps are the program's own indexes 0, 1, 2, …: step k is saved when k + 1 steps are done.
 * Directories, the log and the tool `muster` show k; muster_node_total_run_calls returns k + 1. All
 * ranks call save with the same steps, each step once, in order. should_save, save and a notice
 * give the same answer on every rank. A preempted job saves whatever the policies say.
 *
 * A manager without a node is read-only: it lists and restores checkpoints, and takes part in
 * nothing.
 * It asks a broker, or reads the directory itself.
 *
 * Threads: one thread at a time, the training thread, uses a manager. Any thread may ask
 * is_saving_in_progress and reached_preemption. Blocking: the text of each call gives its limit.
 * Strings and rows that a call returns are borrowed until the next call of the same manager, unless
 * that call says otherwise.
 * Fork: as in node.h. */
#ifndef MUSTER_MANAGER_H
#define MUSTER_MANAGER_H

#include <muster/node.h>
#include <muster/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_manager muster_manager_t;

#define MUSTER_STEP_LATEST (-1)

struct muster_manager_options {
    size_t struct_size; /* set by MUSTER_MANAGER_OPTIONS_INIT; do not change */
    /* The job that saves, as for muster_node_open; save_every_steps and restore_later stay unset.
     * Strings are copied; state and callbacks are borrowed until close. NULL = read-only. */
    const struct muster_node_options *node;
    /* For a read-only manager: where to look. All three must be NULL if there is a node.
     * With a broker and a job, the broker is asked. checkpoint_dir then tells where this host sees
     * the job's checkpoints, if its path is not the ranks' path.
     * With checkpoint_dir alone, the manifests in it are read (with job NULL, those of any job). A
     * damaged manifest is passed over; `muster verify` names it. A manifest that cannot be read
     * just now gives MUSTER_E_IO. */
    const char *broker;
    const char *job;
    const char *checkpoint_dir;
    muster_state_t *state; /* what restore fills; borrowed until close */
    muster_restore_fn *restore_fn;
    void *arg;

    /* NULL: only force and preemptions save, and every checkpoint is kept. */
    const struct muster_policies *policies;
    /* Names of the checkpoints' directories: "<prefix><step, with leading zeros>": 23, 0023,
     * step_23.
     * prefix: at most 31 letters, digits, _ and -, no digit at its end; NULL = none.
     * If the name is taken, ".<generation>-<round>" is added. So take a checkpoint's place from its
     * path, and do not build it from the step. */
    const char *name_prefix;
    int name_digits; /* at least this many digits, 0 to 18; 0 = no leading zeros */
    /* If the newest checkpoint is damaged, all ranks take the next older valid one, and the log and
     * struct muster_restored say so. Without this option the restore fails. */
    bool fallback;
    int64_t save_timeout_ms; /* how long a call waits for a save; 0 = 600,000 */
    /* How long a question to the broker may take; 0 = 5,000. With a node it is at most
     * connect_timeout_ms. */
    int64_t query_timeout_ms;
    /* Read-only, without a broker: how long open waits until checkpoint_dir is there, for a reader
     * that starts before its job. 0 = not at all. */
    int64_t directory_timeout_ms;
    /* Read-only: as the node's option of that name, with arg. It breaks off a restore, or a wait
     * for a broker or for a new checkpoint. The call then returns MUSTER_E_INTERRUPTED. */
    muster_interrupted_fn *interrupted_fn;
};
#define MUSTER_MANAGER_OPTIONS_INIT                          \
    {                                                        \
        .struct_size = sizeof(struct muster_manager_options) \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_manager_options_init(struct muster_manager_options *options,
                                            size_t struct_size);

/* Opens a manager; joins nothing yet. Blocks for the directory only, see directory_timeout_ms.
 * MUSTER_E_ARGUMENT an option is wrong or contradicts another; the text says which ·
 * MUSTER_E_NOT_FOUND read-only, and there is no such directory · and the statuses with which
 * muster_node_open refuses options. */
MUSTER_API enum muster_status muster_manager_open(const struct muster_manager_options *options,
                                                  muster_manager_t **ret_manager,
                                                  struct muster_error *ret_error);

/* Waits for saves that are under way, at most save_timeout_ms. If no broker is heard for 5 s, as
 * during its restart, close waits 30 s for one. It gives up a save that is not on record by then.
 * If interrupted_fn broke off an earlier wait, close waits for no save (MUSTER_E_INTERRUPTED).
 * Then leaves the job as muster_node_close does, with the same code, and frees the manager in every
 * case. Nulls the handle; NULL-safe.
 * If leaving the job fails, close returns that status. Else it reports the first failed save that
 * the caller was not told of. Else it reports a checkpoint that could not be deleted (MUSTER_E_IO,
 * MUSTER_E_CORRUPT). The log has all of these. */
MUSTER_API enum muster_status muster_manager_close(muster_manager_t **manager, int code,
                                                   struct muster_error *ret_error);
/* For a caller that does not know how its program ends, such as a finalizer. After this call, close
 * does not mean that the job is done. It keeps the newest checkpoint for the next launch, whatever
 * the policies want. NULL-safe. */
MUSTER_API void muster_manager_keep_newest(muster_manager_t *manager);

/* The node of a manager that has restored, or is in its restore_fn; else NULL. Borrowed until
 * close. The manager counts the node's steps, so call no boundary of the node. */
MUSTER_API muster_node_t *muster_manager_node(const muster_manager_t *manager);

/* --- restoring --------------------------------------------------------------------------- */

struct muster_restored {
    int64_t step;        /* index of the restored step; training goes on with step + 1 */
    uint64_t checkpoint; /* number of the round that made it; 0 = nothing was restored */
    int64_t epoch, step_in_epoch, data_position; /* told at the save; -1 = not told */
    bool fell_back; /* there is a newer checkpoint that not all ranks could restore */
};

/* A manager with a node joins the job, restores, and waits for all ranks to do so
 * (join_timeout_ms). Call it once, before the first step. step: MUSTER_STEP_LATEST, or an older
 * step. All ranks have to ask for the same step. After a restore of an older step, newer
 * checkpoints no longer count; policy.h says when they are deleted. MUSTER_E_NOT_FOUND for
 * MUSTER_STEP_LATEST: nothing is saved yet. ret_restored->step is -1, the job has been joined, and
 * training begins with step 0 · MUSTER_E_NOT_FOUND for a step: there is no such checkpoint. The job
 * is not joined, and nothing has changed. If a save of it never ended, the text says so · else as
 * muster_node_open and muster_node_restore.
 *
 * A read-only manager fills options.state or calls restore_fn. It may do so at any time, for any
 * step, and again. From a sharded checkpoint the state gets whole tensors, joined from the ranks'
 * parts; restore_fn cannot do this. The checkpoint is pinned while it is read. A reader that dies
 * holds it for a minute.
 * ret_restored may be NULL. struct_size: the size of *ret_restored; no byte beyond it is
 * written. */
MUSTER_API enum muster_status muster_manager_restore(muster_manager_t *manager, int64_t step,
                                                     struct muster_restored *ret_restored,
                                                     size_t struct_size,
                                                     struct muster_error *ret_error);

/* --- saving ------------------------------------------------------------------------------ */

/* Programs keep metrics in arrays, so this structure never grows: the size of an element is fixed
 * when the program is built. */
struct muster_metric {
    const char *name; /* at most 63 letters, digits and . _ - / */
    double value;     /* a value that is not finite is left out, and the log says so */
};

struct muster_save_request {
    size_t struct_size; /* set by MUSTER_SAVE_REQUEST_INIT; do not change */
    bool force;         /* save whatever the policies say; set it on all ranks */
    /* The state that a save of this step writes, even a save for a preemption. NULL =
     * options.node->state, which a restore also fills. It is borrowed until close, or until a later
     * save, or should_save of a later step, has returned MUSTER_OK. A preemption may come after
     * this call. A call that is refused changes nothing. Do not set it with a save_fn or a
     * snapshot_fn, which choose what they save. */
    const muster_state_t *state;
    /* Metrics and metadata for the checkpoint of this step, even of one for a preemption. All are
     * borrowed for the call. If several ranks save, those of the lowest rank are recorded. */
    const struct muster_metric *metrics;
    size_t metrics_count;
    /* A JSON object of at most 16,383 bytes; NULL = none. If the program itself wrote elsewhere,
     * "path" and "bytes" in it are what `muster checkpoints` and `verify` show. */
    const char *custom_metadata;
    int64_t epoch, step_in_epoch, data_position; /* as muster_node_set_position; -1 = not told */
    void *call_arg;                              /* reaches save_fn */
};
#define MUSTER_SAVE_REQUEST_INIT                                                             \
    {                                                                                        \
        .struct_size = sizeof(struct muster_save_request), .epoch = -1, .step_in_epoch = -1, \
        .data_position = -1                                                                  \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_save_request_init(struct muster_save_request *request, size_t struct_size);

/* The boundary after step `step` (as CheckpointManager.save). It saves if should_save says so, if
 * force is given, or if the job is being preempted, and waits until the save is committed
 * (save_timeout_ms).
 * If nothing is to be saved it costs no more than muster_node_run's boundary.
 * With the node's option save_behind it returns when the state is copied. The save goes on in the
 * background, and the next save waits for it. A failure is reported once: by the next call that
 * saves, by wait_until_finished or by check_for_errors. If the next save reports it, *ret_saved is
 * still about that save's own step.
 * request may be NULL. *ret_saved (may be NULL) is true if this step is committed, or with
 * save_behind if its state is copied, and else false.
 * MUSTER_OK · MUSTER_PREEMPTED the job is being terminated (policy RETURN) · MUSTER_E_EXISTS the
 * step is committed already (also with force): nothing was done, and training may go on ·
 * MUSTER_E_ARGUMENT the step is negative, goes backwards or skips steps, or nothing was restored
 * before ·
 * MUSTER_E_ABORTED, MUSTER_E_SAVE, MUSTER_E_STORAGE the save failed, earlier ones are untouched,
 * training may go on · MUSTER_E_TIMEOUT it is not known yet how the save went · and the statuses of
 * muster_node_run. */
MUSTER_API enum muster_status muster_manager_save(muster_manager_t *manager, int64_t step,
                                                  const struct muster_save_request *request,
                                                  bool *ret_saved, struct muster_error *ret_error);

/* Will save(step) save? Every rank gets the same answer. (A rank that has not heard its broker for
 * 4 s gets false, and its save does not save either.) False for a step at or below the latest.
 * The answer is binding. After false the step is over, as if save had been called, and a later
 * save(step) does nothing. For a forced save call muster_manager_begin_save instead. Waits as a
 * boundary does. Errors as save, also MUSTER_PREEMPTED.
 * After true the save begins here: a program that writes its checkpoint itself does so before it
 * calls save. That time counts as part of the save, for the limit of a save and for the plan of the
 * next notice. In a save that lasts for minutes call muster_node_save_progress. A rank that asks
 * for the next step without save(step) fails this save. Call muster_node_save_fail first to say
 * why. */
MUSTER_API enum muster_status muster_manager_should_save(muster_manager_t *manager, int64_t step,
                                                         bool *ret_should_save,
                                                         struct muster_error *ret_error);
/* Begins a save that the program itself decides, alike on all ranks. It acts like a should_save
 * that answers true, whatever the policies say. *ret_begun (may be NULL) is false if this step
 * cannot be saved: the broker is not heard, or the step was passed before. */
MUSTER_API enum muster_status muster_manager_begin_save(muster_manager_t *manager, int64_t step,
                                                        bool *ret_begun,
                                                        struct muster_error *ret_error);

/* Waits for all saves that are under way, at most timeout_ms (-1 = save_timeout_ms). Then it waits,
 * 2 s at most, until their checkpoints have manifest and final name. It reports each failed save
 * once. MUSTER_E_TIMEOUT. */
MUSTER_API enum muster_status muster_manager_wait_until_finished(muster_manager_t *manager,
                                                                 int64_t timeout_ms,
                                                                 struct muster_error *ret_error);
/* Did a save, or the deletion of a checkpoint, fail since the last such call? Never waits. */
MUSTER_API enum muster_status muster_manager_check_for_errors(muster_manager_t *manager,
                                                              struct muster_error *ret_error);
/* Never waits. */
MUSTER_API bool muster_manager_is_saving_in_progress(muster_manager_t *manager);
/* Is the job being terminated, and is `step` the step that is saved for the termination, or a later
 * one? Never waits. */
MUSTER_API bool muster_manager_reached_preemption(muster_manager_t *manager, int64_t step);

/* --- what there is ----------------------------------------------------------------------- */

struct muster_checkpoint_info {
    uint64_t checkpoint; /* number of the round that made it */
    uint64_t generation;
    int64_t step;                                /* index */
    const char *path;                            /* it stays there until it is deleted */
    int64_t epoch, step_in_epoch, data_position; /* -1 = not told */
    int64_t committed_unix_ms;
    int64_t bytes;
    bool pinned;
    const char *metrics;         /* a JSON object, "" = none */
    const char *custom_metadata; /* the same; only muster_manager_metadata fills it, else NULL */
};

/* All committed checkpoints that count, by step. Asks the broker (query_timeout_ms), or reads the
 * directory. Right after a save the call takes up to 2 s more: a checkpoint gets its manifest and
 * final name a moment after its commit. If it cannot get them, as on a full disk, the path is where
 * it was written, in .muster. *ret_all is borrowed until the next call of the manager. An empty
 * list is MUSTER_OK. struct_size: the size of one element of *ret_all, at least 1. A member that
 * this library does not know is 0 or NULL. */
MUSTER_API enum muster_status
muster_manager_all_steps(muster_manager_t *manager, const struct muster_checkpoint_info **ret_all,
                         size_t *ret_count, size_t struct_size, struct muster_error *ret_error);
/* The step of the newest checkpoint. MUSTER_E_NOT_FOUND: nothing is saved. Asks as all_steps. */
MUSTER_API enum muster_status muster_manager_latest_step(muster_manager_t *manager,
                                                         int64_t *ret_step,
                                                         struct muster_error *ret_error);
/* The step of the best checkpoint by a metric, of equals the newer; checkpoints without the metric
 * do not count. MUSTER_E_NOT_FOUND: none has it. Asks as all_steps. */
MUSTER_API enum muster_status muster_manager_best_step(muster_manager_t *manager,
                                                       const char *metric, bool greatest,
                                                       int64_t *ret_step,
                                                       struct muster_error *ret_error);
/* One metric of one step. MUSTER_E_NOT_FOUND: no such step, or it has no such metric. Asks as
 * all_steps. */
MUSTER_API enum muster_status muster_manager_metrics(muster_manager_t *manager, int64_t step,
                                                     const char *metric, double *ret_value,
                                                     struct muster_error *ret_error);
/* All about the checkpoint of one step, with the custom metadata of its manifest. *ret_info is
 * borrowed until the next call. struct_size: the size of **ret_info; see all_steps.
 * MUSTER_E_NOT_FOUND. Asks as all_steps. */
MUSTER_API enum muster_status
muster_manager_metadata(muster_manager_t *manager, int64_t step,
                        const struct muster_checkpoint_info **ret_info, size_t struct_size,
                        struct muster_error *ret_error);

/* For readers: waits, at most timeout_ms, until there is a checkpoint of a step above after_step
 * (-1 = of any step), and gives the newest. Looks at most 10 times a second. If the broker does not
 * answer, it is asked again until the time is over. MUSTER_E_TIMEOUT · MUSTER_E_BROKER. */
MUSTER_API enum muster_status
muster_manager_wait_for_new_checkpoint(muster_manager_t *manager, int64_t after_step,
                                       int64_t timeout_ms, int64_t *ret_step,
                                       struct muster_error *ret_error);
/* As wait_for_new_checkpoint, for a step above the last one that this call gave (as
 * checkpoints_iterator). It does not pin the checkpoint: if the job keeps few, this one may be gone
 * before it is read. To get the newest, restore MUSTER_STEP_LATEST. To get this one, pin it first
 * (through a broker). If the pin returns MUSTER_E_NOT_FOUND, go on to the next. */
MUSTER_API enum muster_status muster_manager_next_checkpoint(muster_manager_t *manager,
                                                             int64_t timeout_ms, int64_t *ret_step,
                                                             struct muster_error *ret_error);

/* Protects the checkpoint of this step for lease_ms (above 0), or until unpin or close. A further
 * call starts lease_ms again. *ret_step (may be NULL) is the checkpoint's step: with
 * MUSTER_STEP_LATEST the caller learns it here. A lease ends by itself, so a reader that dies does
 * not hold a checkpoint for ever. MUSTER_E_UNSUPPORTED: a directory without a broker, where only
 * its own job deletes. */
MUSTER_API enum muster_status muster_manager_pin(muster_manager_t *manager, int64_t step,
                                                 int64_t lease_ms, int64_t *ret_step,
                                                 struct muster_error *ret_error);
MUSTER_API enum muster_status muster_manager_unpin(muster_manager_t *manager, int64_t step,
                                                   struct muster_error *ret_error);

/* Deletes the checkpoint of one step, whatever the policies say. It is no longer listed when this
 * returns; its files are removed in the background. One rank's call is enough. MUSTER_E_BUSY it is
 * pinned, being restored or the newest · MUSTER_E_NOT_FOUND · MUSTER_E_UNSUPPORTED read-only. */
MUSTER_API enum muster_status muster_manager_delete(muster_manager_t *manager, int64_t step,
                                                    struct muster_error *ret_error);

/* Forgets what was read from the directory or the broker, and reads it again. */
MUSTER_API enum muster_status muster_manager_reload(muster_manager_t *manager,
                                                    struct muster_error *ret_error);

#ifdef __cplusplus
}
#endif
#endif
