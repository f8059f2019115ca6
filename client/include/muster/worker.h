/* worker.h - runs the tasks that a coordinator schedules (coordinator.h).
 *
 *   muster_worker_open        opens a worker on its own, or beside the training of a node
 *   muster_worker_register    names a function
 *   muster_worker_serve       runs tasks on this thread until muster_worker_stop; or
 *   muster_worker_start       runs them on threads of muster's own
 *   muster_worker_close
 *
 * A task is run at least once. It runs again, on this worker or another, if its worker was lost,
 * was preempted with its node, or was too slow. It then has a higher attempt number. No attempt
 * number is begun twice. The coordinator's option max_attempts limits how often a worker may be
 * lost with the task. The result of an attempt counts only if the task was not given to another
 * worker meanwhile. A function that must not do a thing twice should record task id and attempt
 * with what it does.
 *
 * Workers may come and go, also while tasks run: they take no part in steps and rounds.
 * Threads: register before serve or start. Any thread, function or signal handler may call stop;
 * one thread calls the rest.
 * Fork: in a forked child register, serve, start and close return MUSTER_E_FORKED; stop does
 * nothing. */
#ifndef MUSTER_WORKER_H
#define MUSTER_WORKER_H

#include <muster/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_worker muster_worker_t;
typedef struct muster_task muster_task_t;
typedef struct muster_node muster_node_t;

/* Runs one task. Returns 0, or a code of its own if the task failed (muster_task_fail adds a text).
 * A cancelled attempt that returns a code counts as cancelled. Borrows task for the call. */
typedef int muster_task_fn(muster_task_t *task, void *arg);

struct muster_worker_options {
    size_t struct_size; /* set by MUSTER_WORKER_OPTIONS_INIT; do not change */
    /* NULL = none. Else the worker takes broker, job and index from the node, and is lost with it.
     * Borrowed until close. */
    muster_node_t *node;
    const char *broker; /* NULL = the node's, else MUSTER_BROKER, else musterd's default */
    const char *job;    /* NULL = the node's, else MUSTER_JOB */
    int index;          /* unique in the job; -1 = the node's rank, else MUSTER_RANK */
    int slots;          /* tasks at the same time, each on a thread; 0 = 1 */
    /* How many tasks are fetched ahead, beyond slots. With 0, the default, no task waits at a slow
     * worker. slots and prefetch together are at most 512. */
    int prefetch;
    /* How long serve and start wait for a broker's answer. 0 = 10,000, or 30,000 with several
     * addresses. */
    int64_t connect_timeout_ms;
};
#define MUSTER_WORKER_OPTIONS_INIT                                       \
    {                                                                    \
        .struct_size = sizeof(struct muster_worker_options), .index = -1 \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_worker_options_init(struct muster_worker_options *options,
                                           size_t struct_size);

/* Copies options. Connects to nothing yet. MUSTER_E_ARGUMENT: an option is wrong; the text says
 * which. */
MUSTER_API enum muster_status muster_worker_open(const struct muster_worker_options *options,
                                                 muster_worker_t **ret_worker,
                                                 struct muster_error *ret_error);
/* name: at most 63 bytes, copied. Borrows arg until close. MUSTER_E_EXISTS the name is taken ·
 * MUSTER_E_BUSY the worker serves already. */
MUSTER_API enum muster_status muster_worker_register(muster_worker_t *worker, const char *name,
                                                     muster_task_fn *fn, void *arg,
                                                     struct muster_error *ret_error);
/* Joins and runs tasks, on this thread and slots - 1 others, until stopped. While the broker is
 * away it goes on with its tasks and waits for the broker.
 * MUSTER_OK it was stopped, and its tasks have ended and their results were sent · MUSTER_E_BROKER
 * nobody answered at the start, or the broker took no results for 5 s at the end. The text then
 * tells how many tasks will be run again · MUSTER_E_RANK_TAKEN another live process has this
 * worker's index. That can also happen later. This worker's tasks were then given to others, and
 * its functions were cancelled and have ended.
 * After MUSTER_E_RANK_TAKEN, and after MUSTER_E_BROKER at the start, serve may be called again.
 * After any other return a further call returns MUSTER_E_BUSY: close the worker and open
 * another. */
MUSTER_API enum muster_status muster_worker_serve(muster_worker_t *worker,
                                                  struct muster_error *ret_error);
/* The same on threads of muster's own, beside a training loop; returns when the worker has joined.
 * If another process takes the index, muster_task_cancelled becomes true in the running tasks, and
 * the worker waits until that process is lost. */
MUSTER_API enum muster_status muster_worker_start(muster_worker_t *worker,
                                                  struct muster_error *ret_error);
/* From now on the worker takes no new tasks. Tasks that have not begun are given back, which is no
 * loss. Running tasks run to their end, and their results count. This call returns at once; serve
 * returns when all tasks have ended.
 * Any thread and any signal handler may call it (until close), so a process can end cleanly on
 * SIGTERM, also under `muster run`:
 *     static muster_worker_t *worker;
 *     static void on_term(int signo) { (void)signo; muster_worker_stop(worker); }
 *     ... muster_worker_open; sigaction(SIGTERM, on_term); muster_worker_serve; muster_worker_close
 *     ...
 * A process that is killed before that (SIGKILL after `muster run --stop-ms`) loses its running
 * tasks.
 * NULL-safe. */
MUSTER_API void muster_worker_stop(muster_worker_t *worker);
/* Stops the worker and waits for running functions, without a limit, because they are the user's.
 * Then it sends their results, until the broker took none for 5 s, and leaves. Frees per-worker
 * values. Closes in every case and nulls the handle; NULL-safe. MUSTER_OK · MUSTER_E_BROKER the
 * broker took no result for 5 s · MUSTER_E_FORKED. */
MUSTER_API enum muster_status muster_worker_close(muster_worker_t **worker,
                                                  struct muster_error *ret_error);

/* --- inside a function ------------------------------------------------------------------- */

MUSTER_API uint64_t muster_task_id(const muster_task_t *task);
MUSTER_API int muster_task_attempt(const muster_task_t *task); /* 1, 2, ... */
MUSTER_API int muster_task_worker_index(const muster_task_t *task);
MUSTER_API const void *muster_task_args(const muster_task_t *task, size_t *ret_size);
/* This worker's part of the n-th per-worker value of the call, as muster_task_set_value gave it;
 * NULL if there is none. */
MUSTER_API void *muster_task_value(const muster_task_t *task, size_t n);
/* Is the attempt no longer wanted? It was cancelled, another task failed, or another worker has the
 * task. */
MUSTER_API bool muster_task_cancelled(const muster_task_t *task);
/* Says that the task makes progress: call.timeout_ms starts again. The broker is told at most ten
 * times a second. The job's journal names a silent attempt after 60 s. It names an attempt that
 * only renews after ten times as long (see `muster tasks`). */
MUSTER_API void muster_task_renew(muster_task_t *task);
/* Sets the result, at most 16 MiB; copied. If it is called several times, the last result counts.
 * MUSTER_E_ARGUMENT · MUSTER_E_NOMEM: the task fails with that status, also if the function returns
 * 0. */
MUSTER_API enum muster_status muster_task_set_result(muster_task_t *task, const void *data,
                                                     size_t size);
/* Sets the text of the failure and returns code: `return muster_task_fail(task, 3, "...")`. */
MUSTER_API int muster_task_fail(muster_task_t *task, int code, const char *text);
/* In a function of create_per_worker: sets the value that the function made. In a function that is
 * scheduled as a task, the value is freed at once. free_fn (may be NULL) runs when the worker
 * closes, or when the queue is gone and none of its attempts is left on this worker. In the second
 * case it runs on a thread that speaks with the broker, and must not wait long. */
MUSTER_API void muster_task_set_value(muster_task_t *task, void *value,
                                      void (*free_fn)(void *value));

#ifdef __cplusplus
}
#endif

#endif
