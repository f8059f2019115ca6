/* agent - one node's life beside its training thread: its thread, its link, its core.
 * Owns: the agent thread, the gate, the mutex under which core and training thread meet, the notice
 * sources, the writer.
 * Never: a decision (those are member's and the broker's), a lock or a system call on the hot path,
 * a user's callback with the mutex held, an exit of the process but MEMBER_EXIT_PROCESS.
 *
 * Hot path of a boundary: gate_begin() is true. Everything else is agent_boundary(). "Training
 * thread" below: any one thread at a time. No call here may be made in a forked child
 * (gate_forked() tells). Every wait ends: by the core's bounds, or by a FAULT when the agent thread
 * hangs. */
#ifndef NODE_AGENT_H
#define NODE_AGENT_H

#include "node/agent/agent_keep.h"
#include "node/agent/agent_save.h"
#include "node/agent/supervised.h"
#include "node/core/member.h"
#include "node/gate.h"
#include "node/notice/sources.h"

struct agent;

struct agent_hooks {                                               /* all may be NULL */
    bool (*watch)(void *arg);                                      /* thread of its own */
    void (*on_error)(const struct muster_error *error, void *arg); /* the log's thread */
    void (*log)(int level, const char *text, void *arg);           /* thread of its own */
    bool (*interrupted)(void *arg); /* the thread that waits, mutex free */
    /* The agent's thread, at each change of the view. Must not wait. */
    void (*seen)(const struct member_view *view, void *arg);
    void *arg;
    void *log_arg; /* of log, on_error and seen */
};

struct agent_options {
    struct member_options member; /* strings are copied */
    const char *broker;           /* copied */
    struct save_target save;      /* its pointers are borrowed until agent_destroy */
    struct agent_hooks hooks;
    int64_t watch_period_ms;
    const int *signals; /* copied */
    size_t signal_count;
    const struct source_list
        *sources;             /* borrowed for open; NULL = signals and the callback alone */
    int64_t save_every_steps; /* 0 = none */
    bool save_behind; /* a save that is no termination's is written while training goes on */
    /* agent thread, mutex free: what MEMBER_EXIT_PROCESS ends the process for, just before. NULL =
     * nobody */
    void (*ending)(const struct muster_error *error, void *ending_arg);
    void *ending_arg;
    struct supervised *supervised; /* told when steps may begin; borrowed until agent_leave */
};

/* Starts the thread and the connection; does not wait for the broker. Statuses of link_open and
 * signal_watch; E_NOMEM, E_BUSY (no thread). */
enum muster_status agent_open(const struct agent_options *options, struct agent **ret_agent,
                              struct muster_error *err);
/* Stops and frees. Waits ENDING_MS at most for manifests being written and a deletion that has
 * begun, and AGENT_CLOSE_MS for each thread, all within the own deadline's margin. A callback or
 * save_fn that does not return by then keeps what it uses. False: that includes what options.save
 * borrowed. NULL-safe. */
bool agent_destroy(struct agent **agent);
/* As agent_destroy, of one that never joined. True: a signal or the user's callback told meanwhile
 * of an end within GRACE_DEFAULT_MS, or of one without a time; other sources tell the next who asks
 * as well. *ret_ended is what agent_destroy returned. */
bool agent_dismiss(struct agent **agent, char *ret_why, size_t size, bool *ret_ended);

struct gate *agent_gate(struct agent *agent); /* borrowed until agent_destroy */

/* --- joining (training thread) ---------------------------------------------------------------- */
/* MUSTER_E_BROKER: nobody answered within connect_ms. The last refusal: after open_ms. It is logged
 * once while it is waited out. MUSTER_PREEMPTED: this process was told to end before it joined. */
enum muster_status agent_wait_joined(struct agent *agent, int64_t connect_ms, int64_t open_ms,
                                     struct muster_error *err);
struct agent_resume {
    uint64_t checkpoint; /* 0: begin from the start */
    int64_t step;
    char path[PATH_BYTES_MAX + 1];
};
/* The checkpoint to restore; after agent_restore_failed: the next choice. not_checkpoint: the one
 * that failed, UINT64_MAX: none did. Bounded by the core's join timeout. */
enum muster_status agent_wait_resume(struct agent *agent, uint64_t not_checkpoint,
                                     struct agent_resume *ret_resume, struct muster_error *err);
/* After agent_restored: waits until all ranks have restored, or another checkpoint is to be
 * restored
 * (*ret_started false), or the end. */
enum muster_status agent_wait_started(struct agent *agent, uint64_t checkpoint, bool *ret_started,
                                      struct muster_error *err);
/* True if hooks.interrupted says yes, or said so since the last agent_fail or agent_leave. */
bool agent_is_interrupted(struct agent *agent);
/* For a wait of the caller's own that VIEW_END or agent_is_interrupted breaks off. The status that
 * every boundary returns, and what the caller does; MUSTER_OK: the launch goes on. */
enum muster_status agent_take_end(struct agent *agent, struct muster_error *err);
/* Asks the broker whether another rank is gone. Returns the status of an end that comes within
 * wait_ms, or MUSTER_OK: none came, or every other rank was heard since. */
enum muster_status agent_suspects(struct agent *agent, int64_t wait_ms, struct muster_error *err);
/* begun = done = step from here on. */
enum muster_status agent_restored(struct agent *agent, uint64_t checkpoint, int64_t step,
                                  struct muster_error *err);
/* final: an older one is not to be tried, whatever the options say. imports: the launch ends, and
 * this process tells the broker of the newer checkpoints before it leaves. */
enum muster_status agent_restore_failed(struct agent *agent, uint64_t checkpoint, int64_t step,
                                        const char *text, bool final, bool imports,
                                        struct muster_error *err);

/* --- steps (training thread) ------------------------------------------------------------------ */
/* The slow path: waits, saves or learns a verdict. begin: on MUSTER_OK one more step is begun.
 * Else the status that every later boundary returns, with its text. */
enum muster_status agent_boundary(struct agent *agent, bool begin, void *call_arg,
                                  struct muster_error *err);
/* The step that was begun failed: it is taken back, the others are told, an open round is served.
 * Returns E_STEP with code; or, when the step was asked to break off, the error that asked. */
enum muster_status agent_step_failed(struct agent *agent, int code, struct muster_error *err);
/* A step that no boundary began is done (loops of save_if_preempted): begun = max(begun, done). */
/* A boundary after agent_fail: the step that ends here is not counted. E_STEP, or what came first.
 */
enum muster_status agent_after_failure(struct agent *agent, struct muster_error *err);
void agent_count_step(struct agent *agent);
/* A round of an earlier launch, known to be aborted: its directory goes, in the background. Any
 * thread. */
void agent_clear_left(struct agent *agent, uint64_t generation, uint64_t round);
/* How far the user's own save came; any thread. */
void agent_set_save_progress(struct agent *agent, uint64_t bytes);
void agent_set_position(struct agent *agent, int64_t epoch, int64_t step_in_epoch,
                        int64_t data_position);
void agent_hold(struct agent *agent, int change);

/* --- steps of a manager (training thread; agent_manager.c) ------------------------------------ */
struct agent_end {
    int64_t done; /* the step that ends here makes it so many */
    bool want;    /* all ranks want this state saved, by a rule that needs no message */
    bool ask;     /* only tell whether it is saved; if so the next call with ask false saves it */
    bool
        awaits; /* a save here is awaited by the caller, in the foreground, until it is committed */
    void *call_arg;
};
struct agent_ended {
    bool saves;     /* the state at done is a save step's: captured, or with ask to be captured */
    uint64_t round; /* of that save; without saves, of one that was aborted before this rank came */
    bool committed; /* nothing was captured here, others saved this step before this rank came to it
                     */
};
/* The boundary after a step, as agent_boundary with begin. With ask, if the step is saved, no step
 * is begun; with committed one is. */
enum muster_status agent_end_step(struct agent *agent, const struct agent_end *end,
                                  struct agent_ended *ret_ended, struct muster_error *err);
/* Takes back the step that the last boundary began, if nobody was told of it yet. */
bool agent_unbegin(struct agent *agent);
/* Waits until this node has heard of the round, or timeout_ms are over. */
void agent_wait_round(struct agent *agent, uint64_t round, int64_t timeout_ms);
/* Waits until the checkpoints of the newest rounds in which it captured have their final names. */
void agent_wait_in_place(struct agent *agent, int64_t timeout_ms);
/* The outcome of a round in which this node captured. False: it is not one of the newest. */
bool agent_outcome(struct agent *agent, uint64_t round, struct member_outcome *ret_outcome);
struct agent_patience { /* of one wait; the caller's, zero at first */
    uint64_t passes;
    int64_t idle_ms;
    int64_t asked_ms; /* CLOCK_MONOTONIC, when hooks.interrupted was asked last, 0 = never */
    bool deaf; /* it is not asked: a thread of ours waits, or a wait that is short by itself */
};
/* One wait for several outcomes; the caller's. Its bounds are over all of them. */
struct agent_outcome_wait {
    int64_t until_ms;   /* CLOCK_MONOTONIC */
    int64_t silence_ms; /* it leaves: no longer without a broker, nor once the job is over; 0 = it
                           does not */
    bool silent;        /* the rest is the agent's; zero at first */
    int64_t silent_from_ms;
    struct agent_patience patience;
};
/* ... waited for. E_TIMEOUT: it is still open. E_FAULT: the node's thread hangs. */
enum muster_status agent_wait_outcome(struct agent *agent, uint64_t round,
                                      struct agent_outcome_wait *wait,
                                      struct member_outcome *ret_outcome, struct muster_error *err);

/* --- saves written behind (agent_capture.c) --------------------------------------------------- */
/* Any thread: has this node captured for a save that is neither committed nor aborted yet? */
bool agent_is_saving(struct agent *agent);
/* Waits until it has not. Then tells of a save that failed, each once: E_ABORTED, E_SAVE,
 * E_STORAGE, … with step and rank. E_TIMEOUT. timeout_ms 0: does not wait. */
enum muster_status agent_wait_saved(struct agent *agent, int64_t timeout_ms,
                                    struct muster_error *err);

/* Leaves the job: a boundary at which an open round is served, then LEAVE. The core says how long
 * its answer is awaited; after an interrupt it is HURRY_MS at most. A step that was begun and not
 * done is taken back. May be called again; then it only waits. */
void agent_leave(struct agent *agent, enum wire_leave_why why, int code);
/* The process ends next: what was to be logged is, within AGENT_DRAIN_MS. */
void agent_drain(struct agent *agent);

/* --- any thread ------------------------------------------------------------------------------- */
enum muster_status agent_fail(struct agent *agent, int code, const char *text,
                              struct muster_error *err);
enum muster_status agent_notify(struct agent *agent, enum wire_notice_kind kind, int64_t left_ms,
                                const char *text, struct muster_error *err);
/* The step at which the open round saves; -1: none is decided. A load. */
int64_t agent_save_step(const struct agent *agent);
/* The greatest step of this launch whose commit or abort this rank heard; 0 = none. A load. */
int64_t agent_outcome_step(const struct agent *agent);
/* False: the broker was not heard for LOST_MS. Any thread, never waits. */
bool agent_hears_broker(const struct agent *agent);
/* A text for a wait for a save that failed. */
const char *agent_why_waits(const struct agent *agent);
/* The broker's start, as it was heard of last: another number is another start. Any thread, never
 * waits. */
uint64_t agent_broker_start(const struct agent *agent);
/* A copy of the newest view. */
void agent_view(struct agent *agent, struct member_view *ret_view);

#endif
