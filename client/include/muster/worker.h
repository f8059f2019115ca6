/* worker.h - run the tasks that a coordinator schedules (coordinator.h).
 *
 *   muster_worker_open        on its own, or beside the training of a node
 *   muster_worker_register    name a function
 *   muster_worker_serve       run tasks on this thread until muster_worker_stop; or
 *   muster_worker_start       run them on threads of muster's own
 *   muster_worker_close
 *
 * A task is run at least once: the same task may come again, to this worker or another, with a higher attempt
 * number, when a worker was lost, was preempted with its node, or was too slow; no number is begun twice. Of these
 * attempts max_attempts (muster_coordinator_options) count, those that the task may have ended. What an attempt gives counts only if the task was not given to
 * another meanwhile. A function that must not do a thing twice notes task id and attempt with what it does.
 *
 * Workers may come and go, also while tasks run: they take no part in steps and rounds.
 * Threads: register before serve or start; stop from any thread, function or signal's handler; the rest from one thread.
 * Fork: in a forked child register, serve and start return MUSTER_E_FORKED, stop and close do nothing to the parent's worker. */
#ifndef MUSTER_WORKER_H
#define MUSTER_WORKER_H

#include <muster/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_worker muster_worker_t;
typedef struct muster_task muster_task_t;
typedef struct muster_node muster_node_t;

/* Runs one task. 0, or a code of its own: the task failed (muster_task_fail adds a text). A cancelled attempt
 * that returns a code has been cancelled, not failed. Borrows task for the call. */
typedef int muster_task_fn(muster_task_t *task, void *arg);

struct muster_worker_options {
    size_t struct_size; /* set by MUSTER_WORKER_OPTIONS_INIT; do not change */
    muster_node_t *
        node; /* broker, job, index are its own, and it is lost with it. Borrowed until close; NULL = none */
    const char *broker; /* NULL = the node's, else MUSTER_BROKER, else musterd's default */
    const char *job;    /* NULL = the node's, else MUSTER_JOB */
    int index;          /* unique in the job; -1 = the node's rank, else MUSTER_RANK */
    int slots;          /* tasks at the same time, each on a thread. 0 = 1 */
    int prefetch; /* tasks fetched ahead of those; default 0: a slow worker hoards nothing. With it at most 512 */
    int64_t connect_timeout_ms; /* 0 = 10,000: open without an answer */
};
#define MUSTER_WORKER_OPTIONS_INIT                                       \
    {                                                                    \
        .struct_size = sizeof(struct muster_worker_options), .index = -1 \
    }

/* Copies options. Speaks to nobody yet. MUSTER_E_ARGUMENT: which option is wrong. */
MUSTER_API enum muster_status muster_worker_open(const struct muster_worker_options *options,
                                                 muster_worker_t **ret_worker,
                                                 struct muster_error *ret_error);
/* name: at most 63 bytes, copied. Borrows arg until close. MUSTER_E_EXISTS · MUSTER_E_BUSY it serves already. */
MUSTER_API enum muster_status muster_worker_register(muster_worker_t *worker, const char *name,
                                                     muster_task_fn *fn, void *arg,
                                                     struct muster_error *ret_error);
/* Joins and runs tasks, on this thread and slots - 1 others, until stopped. While the broker is away it goes on with
 * what it has and waits for it. MUSTER_OK it was stopped, what it had begun has ended and was told ·
 * MUSTER_E_BROKER nobody answered at the start, or at the end: no word of what had ended was taken for 5 s (the text tells
 * of how many; they are run again) · MUSTER_E_RANK_TAKEN another process has its index and lives (at
 * the start, or later: what it had was given to others, and its functions were cancelled and have ended); then nothing
 * of it is left and it may be called again, as after MUSTER_E_BROKER at the start. Else it has served: MUSTER_E_BUSY from
 * then on; close it, and open another. */
MUSTER_API enum muster_status muster_worker_serve(muster_worker_t *worker,
                                                  struct muster_error *ret_error);
/* The same on threads of muster's own; returns when it has joined. Beside a training loop, which stays as it is. When
 * another process has taken its index it waits until that one is lost; muster_task_cancelled is true in what ran. */
MUSTER_API enum muster_status muster_worker_start(muster_worker_t *worker,
                                                  struct muster_error *ret_error);
/* No new tasks; what was not begun is given back, which counts as no loss; what runs is run to its end, which counts.
 * Returns at once, and serve does when that is done. Any thread, and a signal's handler too (until the worker is closed),
 * so that a process ends well on SIGTERM, under `muster run` as well:
 *     static muster_worker_t *worker;
 *     static void on_term(int signo) { (void)signo; muster_worker_stop(worker); }
 *     ... muster_worker_open; sigaction(SIGTERM, on_term); muster_worker_serve; muster_worker_close ...
 * What ends the process before that (SIGKILL when the time for it is over: `muster run --stop-ms`) is a loss of what ran.
 * NULL-safe. */
MUSTER_API void muster_worker_stop(muster_worker_t *worker);
/* Stops, waits for functions that run (without bound: they are the user's), tells their ends (until none was taken for 5 s), leaves.
 * NULL-safe, nulls. Frees per-worker values. */
MUSTER_API void muster_worker_close(muster_worker_t **worker);

/* --- inside a function ----------------------------------------------------------------------------------- */

MUSTER_API uint64_t muster_task_id(const muster_task_t *task);
MUSTER_API int muster_task_attempt(const muster_task_t *task); /* 1, 2, ... */
MUSTER_API int muster_task_worker_index(const muster_task_t *task);
MUSTER_API const void *muster_task_args(const muster_task_t *task, size_t *ret_size);
/* This worker's part of the n-th per-worker value of the call, as muster_task_set_value gave it; NULL: none such. */
MUSTER_API void *muster_task_value(const muster_task_t *task, size_t n);
/* Is the attempt no longer wanted? An error elsewhere, a cancel, or another worker has the task. */
MUSTER_API bool muster_task_cancelled(const muster_task_t *task);
/* It goes on: call.timeout_ms begins anew; the broker hears it ten times a second at most. It is no progress for ever: an attempt that does nothing but renew is
 * named in the job's journal, though ten times later than a silent one (60 s; see `muster tasks`). */
MUSTER_API void muster_task_renew(muster_task_t *task);
/* The result, at most 16 MiB; copied. The last one counts. MUSTER_E_ARGUMENT · MUSTER_E_NOMEM: the task fails with that,
 * also if the function returns 0. */
MUSTER_API enum muster_status muster_task_set_result(muster_task_t *task, const void *data,
                                                     size_t size);
/* Text of the failure; returns code, so that a function can end with `return muster_task_fail(task, 3, "...")`. */
MUSTER_API int muster_task_fail(muster_task_t *task, int code, const char *text);
/* In a function of create_per_worker: the value it made (of one that is scheduled as a task it goes at once). free_fn (may be NULL) runs when its queue is gone (begun anew,
 * above all) and no attempt of that queue is left here, on a thread that speaks with the broker: it is not to wait long;
 * or when the worker closes. */
MUSTER_API void muster_task_set_value(muster_task_t *task, void *value,
                                      void (*free_fn)(void *value));

#ifdef __cplusplus
}
#endif

#endif
