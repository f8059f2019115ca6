/* coordinator.h - schedule tasks on whatever worker is free, as TensorFlow's ClusterCoordinator: at least once,
 * with a queue that outlives its coordinator, its workers and its broker. The workers are in worker.h.
 *
 *   muster_coordinator_open               take hold of the queue of this name: what is in it is still there
 *   muster_coordinator_create_per_worker  a value that every worker makes for itself
 *   muster_coordinator_schedule           a task; returns its remote value at once
 *   muster_coordinator_join / _done       until all have ended, or the first error
 *   muster_remote_value_fetch             a result
 *   muster_coordinator_flush / _close     until all is on record with the broker
 *
 * Errors: the first task that fails stops the queue. The next schedule, join or done returns its error: before,
 * what runs is told to end and waited for, and what is queued is cancelled (schedule it again if it is still
 * wanted); afterwards the error is cleared and everything goes on. error.text names task, function and worker, and how
 * many queued ones were cancelled; error.code is the handler's own. When the call has returned, no task of the
 * queue is executing at any worker that the broker reaches (a function of create_per_worker may be). One that no call has returned yet when the coordinator
 * dies is returned to the one that opens the queue next (twice, perhaps, if it dies in just that moment). A worker that is lost is no error: its tasks go to
 * others. A parameter server (a node of role ps) that is lost, preempted or failed, or does not join the next launch within
 * seconds, is: MUSTER_E_UNAVAILABLE, until one of its rank is back, through all launches that follow until the job has finished. Nodes of role ps join the launch of a chief (the
 * coordinator's process, maybe): before there is one their muster_node_open waits, and nobody misses them.
 *
 * Failures are told apart by their status: MUSTER_E_TASK the handler's own (its code in error.code),
 * MUSTER_E_INPUT a per-worker value that could not be made, MUSTER_E_LOST the task ended its workers,
 * MUSTER_E_TASK_TIMEOUT it broke its call's timeout_ms, MUSTER_E_NOT_FOUND its worker has no such function,
 * MUSTER_E_ARGUMENT and MUSTER_E_NOMEM its result was too long for muster or for its worker, MUSTER_E_CANCELLED;
 * error.task is then the number of the task, and the queue was cancelled as above. error.task is 0 if it is of the call
 * itself, where nothing happened to any task: MUSTER_E_TIMEOUT the call's own wait is over (call again),
 * MUSTER_E_ARGUMENT, MUSTER_E_NOMEM and MUSTER_E_NOT_FOUND as each call says, MUSTER_E_UNAVAILABLE,
 * MUSTER_E_BROKER no broker is heard (nothing is lost: call again), MUSTER_E_STORAGE it can write nothing, or not read
 * what is asked for (the same; told at the call's own time-out, else after broker_timeout_ms), MUSTER_E_STALE another coordinator of this
 * name took the queue over, or the queue was lost with the broker's database: error.text says which.
 *
 * Threads: all calls but close from any number of threads. Blocking calls take a timeout in milliseconds, -1 = as
 * long as the broker is heard. A thread of muster's own speaks with the broker.
 * Fork: in a forked child every call returns MUSTER_E_FORKED (or does nothing) and touches nothing. */
#ifndef MUSTER_COORDINATOR_H
#define MUSTER_COORDINATOR_H

#include <muster/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_coordinator muster_coordinator_t;
typedef struct muster_remote_value muster_remote_value_t;
typedef struct muster_per_worker muster_per_worker_t;

struct muster_coordinator_options {
    size_t struct_size; /* set by MUSTER_COORDINATOR_OPTIONS_INIT; do not change */
    const char *broker; /* NULL = MUSTER_BROKER, else musterd's default */
    const char *job;    /* NULL = MUSTER_JOB */
    const char *name;   /* of the queue, as a job is named; NULL = "main" */
    /* Forget what is in the queue and begin a new one; else what a former coordinator left is found: its
     * tasks go on, its results and its error are there. */
    bool fresh;
    int64_t max_queued; /* tasks that have not ended: then schedule blocks. 0 = 262,144 */
    int max_attempts; /* workers that may be lost with one task before it fails. 0 = 3, at most 255 */
    int64_t connect_timeout_ms; /* 0 = 10,000: open, and create_per_worker, without an answer */
    int64_t broker_timeout_ms;  /* 0 = 60,000: no broker is heard for so long: MUSTER_E_BROKER */
};
#define MUSTER_COORDINATOR_OPTIONS_INIT                          \
    {                                                            \
        .struct_size = sizeof(struct muster_coordinator_options) \
    }

/* Takes hold of the queue; a coordinator of the same name that still lives gets MUSTER_E_STALE from now on.
 * Blocks up to connect_timeout_ms. Copies options. *ret_coordinator is owned: muster_coordinator_close.
 * MUSTER_E_ARGUMENT · MUSTER_E_BROKER nobody answered · MUSTER_E_BUSY the broker has 256 queues, and
 * none is over. One is when all its tasks have ended and its coordinator was not heard for 60 s: when another is
 * opened and there is no room, such a one is forgotten with its results, first those that were all released. */
MUSTER_API enum muster_status
muster_coordinator_open(const struct muster_coordinator_options *options,
                        muster_coordinator_t **ret_coordinator, struct muster_error *ret_error);
/* Waits until the broker has all that was scheduled on record: from then on it is done, whatever ends. What is
 * scheduled meanwhile is not waited for. MUSTER_E_TIMEOUT tells how many are missing · MUSTER_E_BROKER ·
 * MUSTER_E_STORAGE it can write nothing · MUSTER_E_STALE. */
MUSTER_API enum muster_status muster_coordinator_flush(muster_coordinator_t *coordinator,
                                                       int64_t timeout_ms,
                                                       struct muster_error *ret_error);
/* Tasks that were scheduled go on: what the broker has not taken yet is handed over first, as long as that goes on
 * (until none was taken for broker_timeout_ms, or no broker was heard for so long). Closes in each case, nulls, and
 * returns MUSTER_OK, or why what was not taken is lost: MUSTER_E_TIMEOUT · MUSTER_E_BROKER ·
 * MUSTER_E_STORAGE it can write nothing · MUSTER_E_STALE · MUSTER_E_FORKED. NULL-safe. No other call may run. Remote values stay valid, for what is known of them. */
MUSTER_API enum muster_status muster_coordinator_close(muster_coordinator_t **coordinator);

struct muster_call {
    size_t struct_size;   /* set by MUSTER_CALL_INIT; do not change */
    const char *function; /* as a worker registered it, at most 63 bytes */
    const void *args;     /* msgpack, or whatever the function reads; copied */
    size_t args_size;     /* at most 49,152; of more the path of a file, or several smaller tasks */
    /* Values of this coordinator's create_per_worker: the handler sees its own worker's part of each. Anything else, a
     * remote value above all, is refused. */
    muster_per_worker_t *const *per_worker;
    size_t per_worker_count; /* at most 16 */
    /* So long without a word of it (its turn at the worker, or muster_task_renew) and the task goes to another worker. 0 = none:
     * as long as its worker lives. */
    int64_t timeout_ms;
};
#define MUSTER_CALL_INIT                          \
    {                                             \
        .struct_size = sizeof(struct muster_call) \
    }

/* Schedules one task; blocks only while the queue is full (or to raise an error, see above): max_queued tasks have not
 * ended, or 64 MiB of arguments are not on record with the broker, which takes none while it is full itself or away.
 * *ret_value is owned: muster_remote_value_free. ret_value may be NULL: nobody asks for the result.
 * MUSTER_E_ARGUMENT · MUSTER_E_TIMEOUT the queue stayed full · a pending error: nothing was scheduled. */
MUSTER_API enum muster_status muster_coordinator_schedule(muster_coordinator_t *coordinator,
                                                          const struct muster_call *call,
                                                          int64_t timeout_ms,
                                                          muster_remote_value_t **ret_value,
                                                          struct muster_error *ret_error);
/* Waits until every task has ended. MUSTER_E_TIMEOUT · an error of a task, cleared by this return. */
MUSTER_API enum muster_status muster_coordinator_join(muster_coordinator_t *coordinator,
                                                      int64_t timeout_ms,
                                                      struct muster_error *ret_error);
/* Have all ended? Does not wait, but for what still runs when there is an error to return, and for that at most 5 s:
 * then *ret_done is false, and a later call returns the error. */
MUSTER_API enum muster_status muster_coordinator_done(muster_coordinator_t *coordinator,
                                                      bool *ret_done,
                                                      struct muster_error *ret_error);

/* A value that every worker makes by its function, before it gets tasks of this queue, and again when it comes
 * back as a new process. Returns when the broker has it on record. *ret_value lives as long as the coordinator:
 * there is nothing to free. Its arguments have at most 49,152 bytes, as a task's. A worker that cannot make it fails the tasks that use it (MUSTER_E_INPUT), no others;
 * so do, on every worker, the tasks that use one whose making took max_attempts workers with it.
 * After an attach the same calls in the same order find the values again, by their numbers; MUSTER_E_EXISTS: another
 * call made the one of this number; the right call that follows gets that number. After MUSTER_E_TIMEOUT,
 * MUSTER_E_BROKER or MUSTER_E_STORAGE the value may be on record: the same call again finds it, and makes no other. */
MUSTER_API enum muster_status muster_coordinator_create_per_worker(
    muster_coordinator_t *coordinator, const char *function, const void *args, size_t args_size,
    muster_per_worker_t **ret_value, struct muster_error *ret_error);

/* Waits for the task and borrows its result: valid until the value is freed. *ret_size 0: it gave none.
 * The error of a task that failed; it is not cleared by this. MUSTER_E_CANCELLED: also of one that had not ended when
 * another failed · MUSTER_E_TIMEOUT · MUSTER_E_NOMEM. */
MUSTER_API enum muster_status muster_remote_value_fetch(muster_remote_value_t *value,
                                                        int64_t timeout_ms, const void **ret_data,
                                                        size_t *ret_size,
                                                        struct muster_error *ret_error);

/* One place of a structure of results: a remote value, a plain one, or a list of places. */
enum muster_place_kind { MUSTER_PLACE_PLAIN, MUSTER_PLACE_VALUE, MUSTER_PLACE_LIST };
struct muster_place {
    enum muster_place_kind kind;
    muster_remote_value_t *value; /* VALUE */
    struct muster_place *items;   /* LIST */
    size_t count;
    const void *data; /* PLAIN: the user's own, left as it is. VALUE: its result, after the fetch */
    size_t size;
};
/* Fetches every value in a structure, however deep (up to 64), and keeps the structure. One timeout for all.
 * The first error in order; what was fetched before it stands. */
MUSTER_API enum muster_status muster_coordinator_fetch(muster_coordinator_t *coordinator,
                                                       struct muster_place *place,
                                                       int64_t timeout_ms,
                                                       struct muster_error *ret_error);

/* Cancels one task: at once if it is queued; else its handler sees its flag and ends as it likes. */
MUSTER_API enum muster_status muster_remote_value_cancel(muster_remote_value_t *value,
                                                         struct muster_error *ret_error);
/* Its number in its queue, from 1 on. */
MUSTER_API uint64_t muster_remote_value_id(const muster_remote_value_t *value);
/* NULL-safe, nulls. The task goes on. The broker forgets results up to the first that is still held. */
MUSTER_API void muster_remote_value_free(muster_remote_value_t **value);

/* After an attach: the highest number that was ever scheduled, and the value of any number that was not released.
 * MUSTER_E_NOT_FOUND: there is no such task. */
MUSTER_API uint64_t muster_coordinator_scheduled(const muster_coordinator_t *coordinator);
MUSTER_API enum muster_status muster_coordinator_value(muster_coordinator_t *coordinator,
                                                       uint64_t id,
                                                       muster_remote_value_t **ret_value,
                                                       struct muster_error *ret_error);
/* What former coordinators left is kept until this is called: then only values that are held are. */
MUSTER_API void muster_coordinator_release(muster_coordinator_t *coordinator);

#ifdef __cplusplus
}
#endif

#endif
