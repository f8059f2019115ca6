/* node.h - one process of a job: it joins, runs steps, saves at the agreed step, and leaves. See
 * libmuster(3).
 *
 * A process has one node for each of its ranks. A node only changes handlers of signals that it was
 * asked to watch. It never forks. It ends the process only by the exit policy below.
 *
 * Threads. One thread at a time, the training thread, calls open, run, save_if_preempted, scope_*,
 * hold, release, restore, close and set_position. Any thread may call total_run_calls,
 * reached_preemption, generation, rank, world_size, restart_code, notify, fail and notify_signal,
 * but not while close runs or after it. Callbacks say on which thread they run.
 * A node owns background threads with all signals blocked: its own and its connection's. It has one
 * each for termination_watcher_fn, for log and on_error, for manifests, for saves behind the
 * training, and for checksums of saves and restores.
 * A callback that does not return stops neither heartbeats nor notices. close waits 1.5 s for the
 * callback, and then leaves its thread running. The memory that the callback uses must then stay
 * valid. The same holds for a save behind the training that was broken off and does not end. Such a
 * save does not count, and its memory is not freed. In the last second before this process's own
 * deadline, close waits only 0.25 s for either.
 *
 * Fork. In a forked child every call returns MUSTER_E_FORKED (or does nothing) and touches nothing.
 * The child's signal handlers are as they were before the node. The child may open a node of its
 * own.
 * Time. All times are milliseconds. */
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

/* replicated: every rank holds the whole state, and the shard of one rank is the checkpoint.
 * sharded: every rank holds its own part, and the shards of all ranks are the checkpoint. */
enum muster_layout { MUSTER_LAYOUT_DEFAULT, MUSTER_LAYOUT_REPLICATED, MUSTER_LAYOUT_SHARDED };

/* How a boundary acts once it is decided that the job is terminated.
 * EXIT (as TerminationConfig): it waits for this rank's own writes, tells the broker that the rank
 * leaves, and calls exit_fn once, on the training thread.
 * RETURN: it returns MUSTER_PREEMPTED. The caller leaves its loop, calls muster_node_close, and
 * exits with muster_node_restart_code. */
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

/* The library fills this structure and the next. Later versions add members at their ends. So a
 * program that may run with an older library asks MUSTER_HAS(context, member) before it reads a
 * newer member. */
struct muster_save_context {
    size_t struct_size;    /* how much the library filled */
    const char *directory; /* this rank's for this round, empty; write only in it; borrowed */
    int64_t step;          /* the agreed save step: this many steps are done */
    uint64_t generation;
    uint64_t round;
    int rank;
    int world_size;
    void *call_arg; /* arg of the boundary call that saves; NULL in close, and behind training */
    void *arg;      /* options.arg */
    void *snapshot; /* what snapshot_fn gave; NULL inside snapshot_fn, and without one */
};
struct muster_restore_context {
    size_t struct_size; /* how much the library filled */
    /* The directory that save_fn wrote: this rank's own, or the one writer's. NULL if fewer ranks
     * saved the checkpoint, and none of them had this rank's number (restore_any_world_size). */
    const char *directory;
    int64_t step;
    int rank;
    int world_size;
    void *arg;
    const char *checkpoint_directory; /* the whole checkpoint: the directories of all its ranks */
    int saved_world_size;             /* how many ranks saved it */
};
/* Does the library that made *given know this member? given: a structure with a struct_size. */
#define MUSTER_HAS(given, member) \
    ((const char *)(&(given)->member + 1) <= (const char *)(given) + (given)->struct_size)

/* One step of training. Returns 0, or a code of its own if the step failed. A failed step must
 * leave the state as it was before. Runs on the thread that called muster_node_run. */
typedef int muster_step_fn(void *arg);
/* Writes the state. Returns 0 or a code of its own. muster makes the data durable.
 * Training thread; with save_behind a thread of the node's. */
typedef int muster_save_fn(const struct muster_save_context *context);
/* Copies what is to be saved, so that the copy does not change when training goes on.
 * context->directory is NULL. With a save_fn, *ret_snapshot is whatever save_fn reads from
 * context->snapshot; else it is a muster_state_t *. Returns 0 or a code of its own. Training
 * thread. */
typedef int muster_snapshot_fn(const struct muster_save_context *context, void **ret_snapshot);
/* The snapshot was written, or will not be. Training thread, or the one that wrote it. */
typedef void muster_snapshot_release_fn(void *snapshot, void *arg);
typedef int muster_restore_fn(const struct muster_restore_context *context);
/* Is there a notice? Called every watcher_period_ms until it says yes once, on a thread of its own.
 * It may block, but then muster learns of the notice late. */
typedef bool muster_termination_watcher_fn(void *arg);
/* Leaves the process. Training thread. May return: the boundary then returns MUSTER_PREEMPTED. */
typedef void muster_exit_fn(int restart_code, void *arg);
/* Called when another rank failed, or when this rank is asked to break off its step. Your
 * function frees a training thread that is blocked in a collective (it aborts the communicator).
 * May be called while the step runs; must not call muster. Runs on the same thread of the node as
 * log: while either runs, the other waits. */
typedef void muster_error_fn(const struct muster_error *error, void *arg);
/* A line for the log. level: 0 error, 1 warning, 2 information, 3 detail.
 * Without this function, and without option events that keep lines, errors and warnings go to
 * stderr. MUSTER_LOG in the environment (none, error, warning, info, debug) sets how much goes to
 * this function or to stderr.
 * Runs on the training thread or on the thread of on_error, maybe on both at once. Return soon:
 * on_error waits for a log function that blocks, and lines beyond 256 are lost. */
typedef void muster_log_fn(int level, const char *text, void *arg);

/* Is this call to be broken off? Called about 10 times a second while a call of the node waits,
 * reads or writes, on the thread that made this call. true: that call returns MUSTER_E_INTERRUPTED
 * within a second, and the other ranks are told that this one failed. A save that is broken off is
 * not committed; a restore may have overwritten part of the state. It is not called while save_fn,
 * snapshot_fn or restore_fn runs. close finishes a save that it has begun, and then waits 500 ms at
 * most. Must not call muster. */
typedef bool muster_interrupted_fn(void *arg);

/* A queue of what happens at nodes, for the program to read (see below). */
typedef struct muster_events muster_events_t;

/* As TensorFlow's TerminationConfig. It is a member of muster_node_options and so never grows: new
 * members go to the end of muster_node_options. */
struct muster_termination_config {
    muster_termination_watcher_fn *termination_watcher_fn; /* NULL = none; signals stay watched */
    int64_t watcher_period_ms;                             /* 0 = 1000 */
    muster_exit_fn *exit_fn;                               /* NULL = exit(restart_code) */
    int restart_code; /* 0 = MUSTER_RESTART_CODE from the environment, else 42 */
    enum muster_on_preempted on_preempted;
    /* Time from a notice to the end of the process, unless the notice names an earlier end; see
     * muster-notices(7).
     * -1 = as the notice says. A signal names no time: the job then saves at once, within the time
     * that the launcher usually gives, else within 30 s. 0 = it always saves at once. */
    int64_t grace_period_ms;
    muster_save_fn *save_fn;       /* NULL = options.state is saved as safetensors */
    muster_restore_fn *restore_fn; /* required with save_fn */
    /* 0-terminated; first = -1: none. All 0 = SIGTERM, under LSF SIGINT and SIGUSR2 too. */
    int signals[8];
    /* More sources of notices: "file:/path,ec2,auto", see muster-notices(7).
     * NULL = MUSTER_NOTICE_SOURCES from the environment, else none. Borrowed for open. */
    const char *sources;
    /* Also save at once when a notice leaves time to train on. */
    bool save_on_notice;
};

struct muster_node_options {
    size_t struct_size; /* set by MUSTER_NODE_OPTIONS_INIT; do not change */
    /* Identity. A member that is unset (NULL, -1, 0) comes from the environment, see
     * muster-environment(7). Strings are borrowed for open. */
    /* "tcp://host:7700" or "ipc://path", or several with commas between them; NULL = musterd's
     * default. */
    const char *broker;
    const char *job;
    int rank;
    int world_size;
    enum muster_role role;     /* default: rank 0 chief, others worker */
    enum muster_layout layout; /* default: replicated */
    /* One shared directory for all ranks; NULL = MUSTER_CHECKPOINT_DIR. */
    const char *checkpoint_dir;
    /* The default save writes it, and the default restore fills it; borrowed until close. */
    muster_state_t *state;
    struct muster_termination_config termination;
    muster_error_fn *on_error;
    muster_log_fn *log;
    void *arg; /* handed to all callbacks */
    /* How long open waits for a broker to answer. 0 = 10,000, or 30,000 with several addresses. */
    int64_t connect_timeout_ms;
    int64_t open_timeout_ms; /* how long open tries while it is told "try again"; 0 = 60,000 */
    int64_t join_timeout_ms; /* until all ranks have joined and restored; 0 = 600,000 */
    /* How long a step may take to return after on_error; 0 = 60,000. After the job's end the same
     * limit holds for a save_fn that neither returns nor tells progress. It also holds then for the
     * set-up before the first step. */
    int64_t abort_timeout_ms;
    /* All ranks save together at each multiple of this number, before the step that follows it. 0 =
     * never. */
    int64_t save_every_steps;
    /* With world_size 1: if no broker answers, go on without one, and save and exit without
     * agreement. */
    bool offline_ok;
    /* If a rank finds the newest checkpoint damaged, all ranks take the next older one. A
     * checkpoint that is whole but does not fit the program still fails. With this option a restore
     * waits until all ranks have restored. MUSTER_FALLBACK=1 in the environment sets it, too. */
    bool restore_fallback;
    bool restore_later; /* open does not restore; the program calls muster_node_restore */
    /* Save behind the training thread. At the save step the state is copied (or snapshot_fn takes
     * it). Then training goes on, and a thread of the node's writes. Only one save is written at a
     * time: the next one waits, and the log says so if it waits for over a second. A termination is
     * saved while training is held. The copy needs as much memory as the state; this memory is kept
     * for the next save. muster_node_wait_until_finished and the log tell failures. It has no
     * effect without a broker (offline_ok). */
    bool save_behind;
    /* NULL = options.state is copied. Required if both save_behind and save_fn are set. Called
     * before every save, also before one that training waits for. */
    muster_snapshot_fn *snapshot_fn;
    muster_snapshot_release_fn *snapshot_release_fn; /* may be NULL */
    /* Layout sharded: restore_fn reads what any number of ranks saved, from
     * context->checkpoint_directory. Every file is verified first, each by one of the ranks.
     * Without this option another world size is refused (MUSTER_E_RESTORE). */
    bool restore_any_world_size;
    muster_interrupted_fn *interrupted_fn; /* NULL = no wait is broken off */
    /* A queue that gets what happens, besides on_error and log; NULL = no queue. Borrowed until the
     * node is open (a manager opens its node in restore). The node then holds the queue until it is
     * closed. */
    muster_events_t *events;
    /* Called on the training thread before a save reads option state, or a restore fills it. If it
     * returns a code other than 0, the save or restore fails with this code. For a save,
     * muster_node_save_fail adds the reason. It is for bindings to languages where the program may
     * have released the memory of an entry. NULL = the memory stays until close. */
    int (*state_check_fn)(void *arg);
};
#define MUSTER_NODE_OPTIONS_INIT                                                        \
    {                                                                                   \
        .struct_size = sizeof(struct muster_node_options), .rank = -1, .termination = { \
            .grace_period_ms = -1                                                       \
        }                                                                               \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_node_options_init(struct muster_node_options *options, size_t struct_size);

/* Joins the job and, unless restore_later, restores its newest committed checkpoint into
 * options->state or by restore_fn. muster_node_total_run_calls is right afterwards.
 * Blocks until joined (connect_timeout_ms, open_timeout_ms), then for the restore
 * (join_timeout_ms).
 * Copies options. The caller owns *ret_node and frees it with muster_node_close.
 * MUSTER_E_BROKER nobody answered · MUSTER_E_VERSION the broker speaks another version ·
 * MUSTER_E_ARGUMENT options or identity are wrong · MUSTER_E_RANK, _RANK_TAKEN, _WORLD_SIZE,
 * _LAYOUT the broker refused them · MUSTER_E_JOB the directory is another job's · MUSTER_E_IO it
 * cannot be written · MUSTER_E_RESTORE the checkpoint cannot be read, or the directory holds newer
 * ones that the broker does not know (its database was lost: `muster import`) · MUSTER_PREEMPTED
 * the launch is over: exit with muster_status_exit_code(). */
MUSTER_API enum muster_status muster_node_open(const struct muster_node_options *options,
                                               muster_node_t **ret_node,
                                               struct muster_error *ret_error);

/* Restores the one checkpoint that this launch resumes from (see restore_later). Call it once; a
 * second call returns MUSTER_OK and does nothing. Blocks up to join_timeout_ms. */
MUSTER_API enum muster_status muster_node_restore(muster_node_t *node,
                                                  struct muster_error *ret_error);

/* Runs one training step (as PreemptionCheckpointHandler.run). Borrows arg for the call.
 * Before the first step it waits until all ranks have restored (join_timeout_ms). Otherwise it
 * blocks as long as step_fn does, and at most 4 s more while a save step is being agreed. At the
 * save step it blocks for the save and, when the job is being terminated, for the verdict; both
 * have limits.
 * MUSTER_OK the step ran · MUSTER_PREEMPTED the job is being terminated (policy RETURN): leave the
 * loop · MUSTER_E_STEP step_fn failed, ret_error->code is its code, and the peers were told ·
 * MUSTER_E_PEER another rank failed: rank, code and text are in ret_error · MUSTER_E_STALE another
 * process has this rank now · MUSTER_E_JOIN ranks are missing · MUSTER_E_FORKED ·
 * MUSTER_E_INTERRUPTED interrupted_fn said so.
 * After any status but OK and E_ARGUMENT, every later boundary returns the same; after
 * E_INTERRUPTED it returns MUSTER_E_STEP. */
MUSTER_API enum muster_status muster_node_run(muster_node_t *node, muster_step_fn *step_fn,
                                              void *arg, struct muster_error *ret_error);

/* The call for a loop of your own, after each step. It counts the step as done and is the boundary
 * before the next one. save_fn gets arg as call_arg. It waits and returns as muster_node_run
 * does. */
MUSTER_API enum muster_status muster_node_save_if_preempted(muster_node_t *node, void *arg,
                                                            struct muster_error *ret_error);

/* A block that counts as one step (as watch_preemption_scope). enter is the boundary before the
 * block, and leave(0) the one after it. leave with another code means that the step failed. */
MUSTER_API enum muster_status muster_node_scope_enter(muster_node_t *node,
                                                      struct muster_error *ret_error);
MUSTER_API enum muster_status muster_node_scope_leave(muster_node_t *node, int code,
                                                      struct muster_error *ret_error);

/* Steps done since the job's start, over all restarts (as total_run_calls). Never waits. */
MUSTER_API int64_t muster_node_total_run_calls(const muster_node_t *node);
/* Would the job save at user step index `step` (done = step + 1)? A local read, never waits. */
MUSTER_API bool muster_node_reached_preemption(const muster_node_t *node, int64_t step);

/* Tells where training stands, for the record of the next checkpoint; -1 = not told.
 * muster_node_position gives the saved values after a restore. Training thread; never waits. */
MUSTER_API void muster_node_set_position(muster_node_t *node, int64_t epoch, int64_t step_in_epoch,
                                         int64_t data_position);

/* For a save_fn that takes long: says how many bytes are written so far. While that number grows,
 * muster waits for the save. It gives up a save that tells nothing for 60 s, or for three times the
 * longest save so far if that is longer.
 * muster's own writing needs no such call. Any thread; never waits. */
MUSTER_API void muster_node_save_progress(muster_node_t *node, uint64_t bytes);

/* Inside save_fn, snapshot_fn or restore_fn: says why it fails, and returns code:
 * `return muster_node_save_fail(node, 3, "out of memory")`. The text appears in the other ranks'
 * errors, the log, `muster events` and `muster why`. It is copied, at most 1,023 bytes of it. If
 * the node no longer lives, the call only returns code.
 * After muster_manager_should_save gave true, this call tells why the program's own save failed.
 * Then do not call muster_manager_save for that step: ask about the next step, or close. */
MUSTER_API int muster_node_save_fail(muster_node_t *node, int code, const char *text);

/* Where training stood in the restored checkpoint; -1 = not told, or nothing restored. Each pointer
 * may be NULL. */
MUSTER_API void muster_node_position(const muster_node_t *node, int64_t *ret_epoch,
                                     int64_t *ret_step_in_epoch, int64_t *ret_data_position);

/* Has this rank taken part in a save that is neither committed nor aborted yet? Any thread, not
 * while close runs or after it; never waits. */
MUSTER_API bool muster_node_is_saving_in_progress(const muster_node_t *node);
/* Waits until no save is under way, at most timeout_ms (0 = not at all). Then reports a save that
 * was not committed, even one that failed on another rank before this rank reached its step. Each
 * such save is reported once, the oldest first. Earlier checkpoints are untouched, and training may
 * go on. Any thread.
 * MUSTER_E_ABORTED, MUSTER_E_SAVE, MUSTER_E_STORAGE, … the save's step, and the rank that failed
 * it, are in ret_error · MUSTER_E_TIMEOUT one is still under way. */
MUSTER_API enum muster_status muster_node_wait_until_finished(muster_node_t *node,
                                                              int64_t timeout_ms,
                                                              struct muster_error *ret_error);

/* Says that this process failed for a reason of its own. All ranks are told (the first error wins),
 * and every later boundary here returns MUSTER_E_STEP. code and text are the caller's; text is
 * copied. */
MUSTER_API enum muster_status muster_node_fail(muster_node_t *node, int code, const char *text);
/* As muster_node_fail, for a failure that another rank may have caused, such as a collective that
 * broke because a peer went away. A rank that failed has 5 s to say so. Then the broker asks all
 * other ranks, and the call returns once each has answered. It waits wait_ms at most (0 = 10 s).
 * MUSTER_E_PEER, or another status that ends the launch: another rank failed, which ret_error
 * names, and this rank is not blamed · MUSTER_E_STEP no other rank was found to be gone; all ranks
 * were told code and text ·
 * MUSTER_E_INTERRUPTED. Training thread. */
MUSTER_API enum muster_status muster_node_fail_suspecting(muster_node_t *node, int code,
                                                          const char *text, int64_t wait_ms,
                                                          struct muster_error *ret_error);

/* The end that is announced for a process of this job; if there are several, the first to come. */
struct muster_announced {
    enum muster_notice_kind kind;
    int rank;        /* the rank whose process ends */
    int64_t left_ms; /* until that end; -1 = not known */
    int64_t save_ms; /* until the save for it begins, as planned now; -1 = not known */
};
/* Is the end of a process of this job announced, and when does it come? A program may use the time
 * for a shorter evaluation, or tell its user. The answer is at most a second older than what the
 * broker knows. False: none is announced, or this process has left; then kind is
 * MUSTER_NOTICE_NONE, and the rest -1. struct_size: the size of *ret_announced; no byte beyond it
 * is written. Any thread, not while close runs or after it; a local read, never waits. */
MUSTER_API bool muster_node_announced(const muster_node_t *node,
                                      struct muster_announced *ret_announced, size_t struct_size);

/* --- events ---------------------------------------------------------------------------------- */

/* A queue of what happens at the nodes whose option events names it. A thread of the program's own
 * reads it, so no thread of muster's has to enter the program's interpreter (such as Python's). No
 * node waits for the reader: the queue holds 1024 events of each kind. Beyond that the oldest is
 * dropped, and counted. */
enum muster_event_kind {
    MUSTER_EVENT_NONE,
    MUSTER_EVENT_LOG,    /* a line of the log, as muster_log_fn gets it: level, text */
    MUSTER_EVENT_ERROR,  /* another rank failed, as muster_error_fn gets it: status to text */
    MUSTER_EVENT_NOTICE, /* the answer of muster_node_announced has changed: notice, rank,
                          * left_ms */
    MUSTER_EVENT_COMMIT, /* a checkpoint of the job is on record: step */
    MUSTER_EVENT_KIND_COUNT
};
#define MUSTER_EVENTS_OF(kind) (1u << (kind)) /* kinds is a sum of these */
#define MUSTER_EVENTS_ALL (~0u)

struct muster_event {
    enum muster_event_kind kind;
    int level;
    enum muster_status status;
    int rank; /* -1 = of none */
    int code;
    enum muster_notice_kind notice; /* NONE: no end is announced any more */
    int64_t step;                   /* as the program counts; -1 = of none */
    int64_t left_ms;                /* when it was noted; -1 = not known */
    uint64_t lost; /* how many events of these kinds were dropped since the last one */
    char text[MUSTER_ERROR_TEXT_MAX];
};

/* Only events of these kinds are kept. The caller owns *ret_events and frees it with
 * muster_events_destroy. MUSTER_E_ARGUMENT, MUSTER_E_NOMEM. */
MUSTER_API enum muster_status muster_events_create(unsigned kinds, muster_events_t **ret_events,
                                                   struct muster_error *ret_error);
/* Takes the oldest event of these kinds. If there is none, waits timeout_ms at most. struct_size:
 * the size of *ret_event. MUSTER_E_TIMEOUT none came · MUSTER_E_CLOSED muster_events_end was
 * called, and none is left · MUSTER_E_FORKED the queue is the parent process's · MUSTER_E_ARGUMENT.
 * Any thread. */
MUSTER_API enum muster_status muster_events_next(muster_events_t *events, unsigned kinds,
                                                 int64_t timeout_ms, struct muster_event *ret_event,
                                                 size_t struct_size,
                                                 struct muster_error *ret_error);
/* Ends a reader: muster_events_next still returns the events that are there, and then waits for no
 * more. Any thread. */
MUSTER_API void muster_events_end(muster_events_t *events);
/* Frees the queue once the last node that has it is closed. No call of muster_events_next may run.
 * NULL-safe; nulls the handle. */
MUSTER_API void muster_events_destroy(muster_events_t **events);

/* No save happens between hold and release. The two calls bracket a part that must not be
 * interrupted, inside a step or between two steps. They count no step, and they nest. Ranks that
 * wait meanwhile are told that this rank holds. A boundary inside is refused (MUSTER_E_ARGUMENT,
 * nothing runs). A close inside saves nothing and counts as a failure. Training thread. */
MUSTER_API void muster_node_hold(muster_node_t *node);
MUSTER_API void muster_node_release(muster_node_t *node);

/* Tells that this process will be terminated in left_ms (-1 = unknown). text is copied and may be
 * NULL.
 * Does not wait. */
MUSTER_API enum muster_status muster_node_notify(muster_node_t *node, enum muster_notice_kind kind,
                                                 int64_t left_ms, const char *text);
/* The same, for a signal handler of the program's own: async-signal-safe. It counts as a notice by
 * that signal for every open node of this process. */
MUSTER_API void muster_notify_signal(int signo);
/* Puts muster's handlers back over those that the program has set since a node opened; the
 * program's handlers are still called. The library does so by itself within a second. Not in a
 * signal handler. */
MUSTER_API void muster_signals_put_back(void);
/* For a helper process of a rank, such as one that loads its data; called in the helper. The
 * helper then ignores SIGTERM. A SIGTERM from its parent, or after its parent has ended, acts as
 * before. So a helper outlives a SIGTERM to the whole process group while its rank still saves,
 * and a rank can still end its helpers. A handler of SIGTERM that is installed later replaces this
 * behaviour. */
MUSTER_API void muster_shield(void);

/* The rank and job that a node opened here would have, according to the environment. */
struct muster_identity {
    int rank, world_size;
    int local_rank, local_size; /* on this host; -1 = not told */
    char job[64];               /* "" = no variable names it, so option job has to */
    char launcher[32]; /* the family of variables: "muster", "torchrun", "slurm", ..., "single" */
    char note[256];    /* why other families were not taken; "" = there were none */
};
/* Opens nothing, and asks no broker. MUSTER_E_ARGUMENT: the variables contradict each other; the
 * text names them. struct_size: the size of *ret_identity; no byte beyond it is written. Any
 * thread. */
MUSTER_API enum muster_status muster_identity_read(struct muster_identity *ret_identity,
                                                   size_t struct_size,
                                                   struct muster_error *ret_error);

MUSTER_API int muster_node_rank(const muster_node_t *node);
MUSTER_API int muster_node_world_size(const muster_node_t *node);
MUSTER_API uint64_t muster_node_generation(const muster_node_t *node);
/* The exit code that asks for a restart. With NULL, after muster_node_open returned
 * MUSTER_PREEMPTED, it is MUSTER_RESTART_CODE, else 42. */
MUSTER_API int muster_node_restart_code(const muster_node_t *node);
/* The step at which this process resumed, 0 if it began from the start. */
MUSTER_API int64_t muster_node_resumed_step(const muster_node_t *node);

/* Leaves the job, frees the node and sets *node to NULL in every case. NULL-safe. It is a boundary:
 * if a save is being agreed, the node takes part. code: the exit code that this process is going to
 * use (0 = finished).
 * A save_fn on another thread may read the node until close returns.
 *
 * Blocks while the broker, heard within the last 5 s, needs this node. It may need the node for a
 * round, a save behind the training, a manifest, a deletion, or this rank's leave. close stops
 * blocking a second before this process's own deadline. If the broker may be restarting, call
 * muster_node_wait_until_finished first.
 *
 * With policy EXIT, if a termination was decided meanwhile, it exits as muster_node_run does.
 * MUSTER_PREEMPTED the job is being terminated: exit with the restart code · MUSTER_OK exit with
 * your own code. With code 0 it is also MUSTER_OK if nothing could be saved for the termination and
 * no boundary had reported the termination. So a program that has done all its steps does not run
 * again. */
MUSTER_API enum muster_status muster_node_close(muster_node_t **node, int code,
                                                struct muster_error *ret_error);

#ifdef __cplusplus
}
#endif
#endif
