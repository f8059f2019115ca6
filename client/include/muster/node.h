/* node.h - a process of a job: joins, runs steps, saves at the agreed step, leaves.
 *
 * One node a process and rank. A node owns background threads, all signals blocked in each: its own
 * and its connection's; one for termination_watcher_fn and one for log and on_error, where they are
 * given; one for manifests, from the first that has to be written; one that writes saves, with
 * save_behind, and beside each save or restore one for its checksum. It changes no signal handler but those of the signals it was asked to watch,
 * never forks, and ends the process only through the exit policy below.
 *
 * Threads: open, run, save_if_preempted, scope_*, hold, release, restore, close and set_position are
 * called by one thread at a time (the training thread). total_run_calls, reached_preemption,
 * generation, rank, world_size, restart_code, notify, fail and notify_signal may be called by any
 * thread, but not while close runs or after it. Callbacks say on which thread they run; one that does
 * not return stops neither heartbeats nor notices, and close leaves its thread behind after 1.5 s:
 * what it uses must then stay valid. So with a save that is written behind and that nobody waits for any
 * more, if it does not end within 1.5 s of being broken off (0.25 s once this process's own deadline is
 * a second away): it does not count, and its memory stays taken.
 * Fork: in a forked child every call returns MUSTER_E_FORKED (or does nothing) and touches nothing. The watched signals
 * have there the effect that they had before the node. A node that the child opens itself is its own.
 * Time: all times are milliseconds. */
#ifndef MUSTER_NODE_H
#define MUSTER_NODE_H

#include <muster/checkpoint.h>
#include <muster/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_node muster_node_t;

enum muster_role {
    MUSTER_ROLE_DEFAULT,
    MUSTER_ROLE_CHIEF,
    MUSTER_ROLE_WORKER,
    MUSTER_ROLE_PS,
    MUSTER_ROLE_EVALUATOR
};

/* replicated: every rank holds the whole state, one rank's shard makes the checkpoint.
 * sharded: every rank holds its part, the shards of all ranks make it. */
enum muster_layout { MUSTER_LAYOUT_DEFAULT, MUSTER_LAYOUT_REPLICATED, MUSTER_LAYOUT_SHARDED };

/* What happens at the boundary once the job's termination is settled.
 * EXIT (as TerminationConfig): own writes are awaited, LEAVE is sent, exit_fn is called on the
 * training thread, once. RETURN: the boundary returns MUSTER_PREEMPTED; the caller leaves its loop,
 * calls muster_node_close and exits with muster_node_restart_code. */
enum muster_on_preempted { MUSTER_PREEMPTED_EXIT, MUSTER_PREEMPTED_RETURN };

enum muster_notice_kind {
    MUSTER_NOTICE_NONE,
    MUSTER_NOTICE_PREEMPT,
    MUSTER_NOTICE_TERMINATE,
    MUSTER_NOTICE_STOP,
    MUSTER_NOTICE_REBOOT,
    MUSTER_NOTICE_TIME_LIMIT,
    MUSTER_NOTICE_SIGNAL,
    MUSTER_NOTICE_USER
};

struct muster_save_context {
    const char *directory; /* empty, own to this rank and round; write only inside it; borrowed */
    int64_t step;          /* the agreed save step: so many steps are done */
    uint64_t generation;
    uint64_t round;
    int rank;
    int world_size;
    void *call_arg; /* the arg of the boundary call that saves (NULL inside close, and behind) */
    void *arg;      /* options.arg */
    void *snapshot; /* what snapshot_fn gave; NULL inside snapshot_fn, and without one */
};
struct muster_restore_context {
    const char *directory; /* the files that save_fn wrote (a rank's own, or the one writer's) */
    int64_t step;
    int rank;
    int world_size;
    void *arg;
};

/* One step of training. Returns 0, or a code of its own: the step failed and left its state as
 * before it. Runs on the thread that called muster_node_run. */
typedef int muster_step_fn(void *arg);
/* Writes the state; 0 or a code of its own. Training thread; with save_behind a thread of the node's.
 * Data is made durable by muster. */
typedef int muster_save_fn(const struct muster_save_context *context);
/* Takes what is to be saved, so that it no longer changes when training goes on; context->directory is
 * NULL. *ret_snapshot: with a save_fn whatever that reads from context->snapshot, else a muster_state_t *.
 * 0 or a code of its own. Training thread. */
typedef int muster_snapshot_fn(const struct muster_save_context *context, void **ret_snapshot);
/* It was written, or will not be. Training thread, or the one that wrote it. */
typedef void muster_snapshot_release_fn(void *snapshot, void *arg);
typedef int muster_restore_fn(const struct muster_restore_context *context);
/* Is there a notice? Asked every watcher_period_ms, until it says yes once, on a thread of its own: it
 * may block, but what it does not say in time is not known in time. */
typedef bool muster_termination_watcher_fn(void *arg);
/* Leaves the process. Training thread. May return: the boundary then returns MUSTER_PREEMPTED. */
typedef void muster_exit_fn(int restart_code, void *arg);
/* Another rank failed, or this one is asked to break off its step: free a training thread that is
 * blocked in a collective (abort the communicator). Runs on a thread of the node's, which log shares:
 * while either runs the other waits. May be called while the step runs; must not call muster. */
typedef void muster_error_fn(const struct muster_error *error, void *arg);
/* A line for the log. The training thread, or on_error's, also both at once; return soon: behind one
 * that blocks on_error waits, and lines beyond 256 are lost. level: 0 error, 1 warning, 2 information, 3 detail. */
typedef void muster_log_fn(int level, const char *text, void *arg);

/* As TensorFlow's TerminationConfig. */
struct muster_termination_config {
    muster_termination_watcher_fn *termination_watcher_fn; /* NULL = none; signals stay watched */
    int64_t watcher_period_ms;                             /* 0 = 1000 */
    muster_exit_fn *exit_fn;                               /* NULL = exit(restart_code) */
    int restart_code; /* 0 = MUSTER_RESTART_CODE from the environment, else 42 */
    enum muster_on_preempted on_preempted;
    /* Time from a notice to the end (as TerminationConfig.grace_period), if the notice does not say an
     * earlier one. -1 = as the notice says; a signal says nothing and saves at once, within what the
     * launcher of this process usually gives, else 30 s, see muster(1). 0 = always at once. */
    int64_t grace_period_ms;
    muster_save_fn *save_fn;       /* NULL = options.state is saved as safetensors */
    muster_restore_fn *restore_fn; /* required with save_fn */
    int signals[8];                /* 0-terminated; all 0 = SIGTERM, under LSF SIGINT and
                                      SIGUSR2 too; first = -1: none */
    /* More sources of notices, besides signals and termination_watcher_fn: "file:/path,ec2,auto", see
     * muster(1). NULL = MUSTER_NOTICE_SOURCES from the environment, else none. Borrowed for open. */
    const char *sources;
    /* Save at once too when a notice leaves time to train on (as their grace mode's two saves). */
    bool save_on_notice;
};

struct muster_node_options {
    size_t struct_size; /* set by MUSTER_NODE_OPTIONS_INIT; do not change */
    /* Identity; unset (NULL, -1, 0) = from the environment, see muster(1). All borrowed for open. */
    const char *
        broker; /* "tcp://host:7700" or "ipc://path"; NULL = MUSTER_BROKER, else musterd's default */
    const char *job;
    int rank;                  /* -1 = environment */
    int world_size;            /* 0 = environment */
    enum muster_role role;     /* default: rank 0 chief, others worker */
    enum muster_layout layout; /* default: replicated */
    const char
        *checkpoint_dir; /* NULL = MUSTER_CHECKPOINT_DIR; the same shared directory on all ranks */
    muster_state_t
        *state; /* what the default save writes and restore fills; borrowed until close */
    struct muster_termination_config termination;
    muster_error_fn *on_error;
    muster_log_fn *log;
    void *arg;                  /* handed to all callbacks */
    int64_t connect_timeout_ms; /* 0 = 10,000: open without a broker that answers */
    int64_t open_timeout_ms;    /* 0 = 60,000: open while refused with "try again" */
    int64_t join_timeout_ms;    /* 0 = 600,000: all ranks joined and restored */
    /* 0 = 60,000: a step that does not return after on_error; after the job's end, a save_fn that neither returns nor
     * tells progress, or a set-up before the first step that does not end. */
    int64_t abort_timeout_ms;
    int64_t
        save_every_steps; /* 0 = none: all ranks save together at each multiple, before the step that follows it */
    bool offline_ok; /* no broker: go on alone (world_size 1), saving and exiting by oneself */
    bool restore_fallback; /* if the newest checkpoint is damaged for a rank (not: does not fit
                              the program), all take the next older; the restore then waits until all ranks have restored. Also
                              with MUSTER_FALLBACK=1 in the environment */
    bool restore_later;    /* open does not restore; the program calls muster_node_restore */
    /* Saves behind the training thread: at the save step the state is copied (or snapshot_fn takes what
     * is to be saved), training goes on, and a thread of the node's writes. One save at a time: the next
     * one waits for it, and the log says so if that takes over a second. A termination is saved as
     * without this option, while training is held. Costs a second copy of the state in memory, which is
     * kept for the next save. Failures: muster_node_wait_until_finished and the log. No effect alone (offline_ok). */
    bool save_behind;
    muster_snapshot_fn *
        snapshot_fn; /* NULL = options.state is copied; required with save_behind and save_fn. It is asked before every
                         save, also one that training waits for */
    muster_snapshot_release_fn *snapshot_release_fn; /* may be NULL */
};
#define MUSTER_NODE_OPTIONS_INIT                                                        \
    {                                                                                   \
        .struct_size = sizeof(struct muster_node_options), .rank = -1, .termination = { \
            .grace_period_ms = -1                                                       \
        }                                                                               \
    }

/* Joins the job and, unless restore_later, restores its newest committed checkpoint into
 * options->state or by restore_fn, so that muster_node_total_run_calls is right afterwards (as the
 * constructor of PreemptionCheckpointHandler).
 * Blocks: until joined (connect_timeout_ms, open_timeout_ms), then for the restore (join_timeout_ms).
 * Copies options. *ret_node is owned by the caller: muster_node_close.
 * MUSTER_E_BROKER nobody answered · MUSTER_E_VERSION it speaks another version · MUSTER_E_ARGUMENT options or identity wrong · MUSTER_E_RANK,
 * _RANK_TAKEN, _WORLD_SIZE, _LAYOUT refused · MUSTER_E_JOB the directory is another job's ·
 * MUSTER_E_IO it cannot be written · MUSTER_E_RESTORE the checkpoint cannot be read, or the directory holds newer
 * ones of this job, that the broker does not know (its database was lost or put back: `muster import`). */
MUSTER_API enum muster_status muster_node_open(const struct muster_node_options *options,
                                               muster_node_t **ret_node,
                                               struct muster_error *ret_error);

/* Restores the generation's one resume checkpoint (see restore_later). Once; a second call is
 * MUSTER_OK and does nothing. Blocks up to join_timeout_ms. */
MUSTER_API enum muster_status muster_node_restore(muster_node_t *node,
                                                  struct muster_error *ret_error);

/* Runs one training step under preemption and error handling (as PreemptionCheckpointHandler.run).
 * Before the first step it waits until all ranks have restored (join_timeout_ms). Otherwise blocks
 * as long as step_fn does, at most 4 s more while a save step is being agreed, and at the save
 * step for the save and, when the job is being terminated, for the verdict (bounded).
 * Borrows arg for the call.
 * MUSTER_OK the step ran · MUSTER_PREEMPTED the job is being terminated (policy RETURN): leave the
 * loop · MUSTER_E_STEP step_fn failed, its code is in ret_error->code; peers were told · MUSTER_E_PEER
 * another rank failed: rank, code, text in ret_error · MUSTER_E_STALE this rank was taken over ·
 * MUSTER_E_JOIN ranks are missing · MUSTER_E_FORKED. After any status but OK and E_ARGUMENT every later boundary
 * returns the same. */
MUSTER_API enum muster_status muster_node_run(muster_node_t *node, muster_step_fn *step_fn,
                                              void *arg, struct muster_error *ret_error);

/* The check for loops that do not use run: call it after each step (as
 * PreemptionCheckpointHandler.save_checkpoint_if_preempted). It counts the step as done and is
 * the boundary before the next. arg reaches save_fn as call_arg. Waits and returns as run. */
MUSTER_API enum muster_status muster_node_save_if_preempted(muster_node_t *node, void *arg,
                                                            struct muster_error *ret_error);

/* A block that counts as one step (as watch_preemption_scope). enter is the boundary before it,
 * leave(0) after it; leave(code != 0) says that the block failed (as a step that fails). */
MUSTER_API enum muster_status muster_node_scope_enter(muster_node_t *node,
                                                      struct muster_error *ret_error);
MUSTER_API enum muster_status muster_node_scope_leave(muster_node_t *node, int code,
                                                      struct muster_error *ret_error);

/* Steps done since the job's start, over all restarts (as total_run_calls). Never waits. */
MUSTER_API int64_t muster_node_total_run_calls(const muster_node_t *node);
/* Would the job save at user step index `step` (done = step + 1)? A local read, never waits. */
MUSTER_API bool muster_node_reached_preemption(const muster_node_t *node, int64_t step);

/* Tells where training stands, for the next checkpoint's record; -1 = not told. The saved values
 * come back with muster_node_position after a restore. Training thread; never waits. */
MUSTER_API void muster_node_set_position(muster_node_t *node, int64_t epoch, int64_t step_in_epoch,
                                         int64_t data_position);

/* For a save_fn that takes long: so many bytes are written. A save whose bytes grow is waited for; one that
 * tells nothing is given up after max(60 s, three times the longest save so far). What muster writes by itself is told by
 * itself. Any thread, also save_fn's; never waits. */
MUSTER_API void muster_node_save_progress(muster_node_t *node, uint64_t bytes);

/* Where training stood in the checkpoint that was restored; -1 = not told, or nothing restored. Each
 * pointer may be NULL. */
MUSTER_API void muster_node_position(const muster_node_t *node, int64_t *ret_epoch,
                                     int64_t *ret_step_in_epoch, int64_t *ret_data_position);

/* Has this rank taken part in a save that is neither committed nor aborted yet? Any thread, not while
 * close runs or after it; never waits. */
MUSTER_API bool muster_node_is_saving_in_progress(const muster_node_t *node);
/* Waits until none is under way, at most timeout_ms (0 = not at all). Then tells of a save that was not
 * committed, also of one that failed elsewhere before this rank came to its step, each once, the oldest first: MUSTER_E_ABORTED, MUSTER_E_SAVE, MUSTER_E_STORAGE, … with its step,
 * and in rank whose fault it was; earlier checkpoints are untouched and training may go on.
 * MUSTER_E_TIMEOUT: one is still under way. Any thread. */
MUSTER_API enum muster_status muster_node_wait_until_finished(muster_node_t *node,
                                                              int64_t timeout_ms,
                                                              struct muster_error *ret_error);

/* This process failed for a reason of its own: all ranks are told (first error wins), and every
 * later boundary here returns MUSTER_E_STEP. code and text are the caller's; text is copied. */
MUSTER_API enum muster_status muster_node_fail(muster_node_t *node, int code, const char *text);

/* No save between hold and release: they bracket a part that must not be interrupted, inside a step
 * or between two. They count no step. Boundaries inside are refused (MUSTER_E_ARGUMENT, nothing
 * runs); a close inside saves nothing and counts as a failure. While the others wait for this rank they
 * are told that it holds. Nest. Training thread. */
MUSTER_API void muster_node_hold(muster_node_t *node);
MUSTER_API void muster_node_release(muster_node_t *node);

/* I learned by myself that this process will be terminated in left_ms (-1 = unknown). text is
 * copied, may be NULL. Does not wait; the agreement starts at once. */
MUSTER_API enum muster_status muster_node_notify(muster_node_t *node, enum muster_notice_kind kind,
                                                 int64_t left_ms, const char *text);
/* The same from the host's own signal handler: async-signal-safe, counts as notice of that signal
 * for every open node of this process. */
MUSTER_API void muster_notify_signal(int signo);

MUSTER_API int muster_node_rank(const muster_node_t *node);
MUSTER_API int muster_node_world_size(const muster_node_t *node);
MUSTER_API uint64_t muster_node_generation(const muster_node_t *node);
MUSTER_API int muster_node_restart_code(const muster_node_t *node);
/* The step this process resumed at, 0 if it began from the start. */
MUSTER_API int64_t muster_node_resumed_step(const muster_node_t *node);

/* Leaves the job. A boundary: with a save being agreed it takes part. code: this process's exit
 * code to be (0 = finished). Blocks for an open round (bounded), own writes as long as
 * the broker waits for them (a save that goes on behind training: 5 s more at most once the broker is not heard, then it is given up; wait for it
 * before, with a time limit, where the broker may be starting anew; not beyond a second before this process's own deadline; then see Threads
 * above; the manifest of a checkpoint that is this node's to write down, 10 s from the last part of it that came; a
 * deletion that has begun, 10 s at most), and for LEAVE: 1 s, and up to 10 s while the broker says that its disk takes
 * nothing (who leaves unheard is taken for lost, and the job for failed), anew for a broker that is heard again and does
 * not know it, three times at most; not beyond this process's own deadline. With policy EXIT and a termination settled meanwhile it exits as run does. Frees the node
 * and sets *node to NULL in every case, as the last thing it does (a save_fn on another thread may read it
 * until then); NULL-safe. Returns MUSTER_PREEMPTED if the job is being
 * terminated: exit with the restart code. MUSTER_OK: exit with yours; also with code 0 when nothing could
 * be saved for the termination and no boundary had told of it: a program that has done all its steps is
 * not begun again from an older checkpoint. */
MUSTER_API enum muster_status muster_node_close(muster_node_t **node, int code,
                                                struct muster_error *ret_error);

#ifdef __cplusplus
}
#endif
#endif
