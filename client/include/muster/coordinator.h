/* coordinator.h - schedules tasks on whatever worker is free, as TensorFlow's ClusterCoordinator. A
 * task runs at least once, and its queue outlives coordinator, workers and broker. See
 * muster-tasks(3); the workers are in worker.h.
 *
 *   muster_coordinator_open               takes over the queue of this name, with what is in it
 *   muster_coordinator_create_per_worker  a value that every worker makes for itself
 *   muster_coordinator_schedule           a task; returns its remote value at once
 *   muster_coordinator_join / _done       waits until all tasks have ended, or for an error
 *   muster_remote_value_fetch             a result
 *   muster_coordinator_flush / _close     waits until all is on record with the broker
 *
 * Errors. The first task that fails stops the queue. The next schedule, join or done returns its
 * error. Before that call returns, running tasks are told to end and are waited for, and queued
 * tasks are cancelled. Schedule those again if you still want them. Afterwards the error is
 * cleared, and the queue goes on.
 * error.text names task, function and worker, and how many queued tasks were cancelled; error.code
 * is the handler's own.
 * From then on no task of the queue is executing at any worker that the broker reaches (a function
 * of create_per_worker may be). If the coordinator dies before a call has returned an error, the
 * next coordinator of the queue gets that error. If it dies while a call returns the error, both
 * may get it.
 *
 * A worker that is lost is no error: its tasks go to others. A parameter server is a node of role
 * ps. It is an error if one is lost, is preempted, fails, or does not join the next launch within
 * seconds. Calls then return MUSTER_E_UNAVAILABLE until a process of that server's rank is back.
 * That holds over all later launches, until the job has finished. Nodes of role ps join the launch
 * of a chief, which may be the coordinator's process. Without a chief their muster_node_open waits,
 * and no call fails because of them.
 *
 * Statuses of a task. error.task is its number, and the queue was cancelled as above. MUSTER_E_TASK
 * the handler's own failure, its code in error.code · MUSTER_E_INPUT a per-worker value could not
 * be made · MUSTER_E_LOST too many workers were lost with the task · MUSTER_E_TASK_TIMEOUT it broke
 * its call's timeout_ms · MUSTER_E_NOT_FOUND its worker has no such function · MUSTER_E_ARGUMENT
 * and MUSTER_E_NOMEM its result was too long for muster or for its worker · MUSTER_E_CANCELLED.
 *
 * Statuses of the call itself. error.task is 0, and nothing happened to any task.
 * MUSTER_E_TIMEOUT the call's own wait is over: call again · MUSTER_E_ARGUMENT, MUSTER_E_NOMEM and
 * MUSTER_E_NOT_FOUND as each call says · MUSTER_E_UNAVAILABLE · MUSTER_E_STALE another coordinator
 * of this name took the queue over, or the queue was lost with the broker's database; error.text
 * says which · MUSTER_E_BROKER no broker is heard · MUSTER_E_STORAGE the broker cannot write, or
 * cannot read the answer. After these two nothing is lost: call again. A call returns them at its
 * own time-out, or when it has waited for broker_timeout_ms.
 *
 * Threads: any number of threads may make all calls but close. Blocking calls take a timeout in
 * milliseconds; -1 = as long as the broker is heard. A thread of muster's own speaks with the
 * broker.
 * Fork: in a forked child every call returns MUSTER_E_FORKED (or does nothing)
 * and touches nothing. */
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
    /* Forget what is in the queue and begin a new one. Without this option the former coordinator's
     * tasks go on, and its results and its error are there. */
    bool fresh;
    /* How many tasks may be scheduled and not ended before schedule blocks. 0 = 262,144 */
    int64_t max_queued;
    /* How many workers may be lost with one task before it fails. 0 = 3, at most 255. */
    int max_attempts;
    /* How long open and create_per_worker wait for an answer. 0 = 10,000, or 30,000 with several
     * addresses. */
    int64_t connect_timeout_ms;
    /* Calls return MUSTER_E_BROKER after this long without a word of a broker. 0 = 60,000 */
    int64_t broker_timeout_ms;
};
#define MUSTER_COORDINATOR_OPTIONS_INIT                          \
    {                                                            \
        .struct_size = sizeof(struct muster_coordinator_options) \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_coordinator_options_init(struct muster_coordinator_options *options,
                                                size_t struct_size);

/* Takes over the queue. A coordinator of the same name that still lives gets MUSTER_E_STALE from
 * now on. Blocks up to connect_timeout_ms. Copies options. The caller owns *ret_coordinator and
 * frees it with muster_coordinator_close.
 * MUSTER_E_ARGUMENT · MUSTER_E_BROKER nobody answered · MUSTER_E_BUSY the broker has 256 queues,
 * and none of them is over. A queue is over when all its tasks have ended and its coordinator was
 * not heard for 60 s. If there are 256 queues, the broker forgets one that is over, with its
 * results; it prefers a queue whose results are all released. */
MUSTER_API enum muster_status
muster_coordinator_open(const struct muster_coordinator_options *options,
                        muster_coordinator_t **ret_coordinator, struct muster_error *ret_error);
/* Waits until the broker has all scheduled tasks on record: from then on they will be done,
 * whichever process ends. It does not wait for tasks that are scheduled meanwhile. MUSTER_E_TIMEOUT
 * tasks are missing; the text says how many · MUSTER_E_BROKER · MUSTER_E_STORAGE the broker cannot
 * write · MUSTER_E_STALE. */
MUSTER_API enum muster_status muster_coordinator_flush(muster_coordinator_t *coordinator,
                                                       int64_t timeout_ms,
                                                       struct muster_error *ret_error);
/* Hands over the tasks that the broker has not taken yet. It gives up when the broker took none, or
 * was not heard, for broker_timeout_ms. Tasks that the broker took go on. Closes in every case and
 * nulls the handle; NULL-safe. No other call may run. Remote values stay valid and give what is
 * known of them. MUSTER_OK, or why tasks that were not taken are lost: MUSTER_E_TIMEOUT ·
 * MUSTER_E_BROKER · MUSTER_E_STORAGE the broker cannot write · MUSTER_E_STALE · MUSTER_E_FORKED. */
MUSTER_API enum muster_status muster_coordinator_close(muster_coordinator_t **coordinator,
                                                       struct muster_error *ret_error);

struct muster_call {
    size_t struct_size;   /* set by MUSTER_CALL_INIT; do not change */
    const char *function; /* as a worker registered it, at most 63 bytes */
    const void *args;     /* msgpack, or whatever the function reads; copied */
    size_t args_size; /* at most 49,152; for more pass a file's path, or schedule smaller tasks */
    /* Values of this coordinator's create_per_worker. The function sees its own worker's part of
     * each. Anything else, such as a remote value, is refused. */
    muster_per_worker_t *const *per_worker;
    size_t per_worker_count; /* at most 16 */
    /* A task that is silent for this long goes to another worker. The time starts when the task's
     * turn comes at the worker, and again with each muster_task_renew. 0 = no limit while its
     * worker lives. */
    int64_t timeout_ms;
};
#define MUSTER_CALL_INIT                          \
    {                                             \
        .struct_size = sizeof(struct muster_call) \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_call_init(struct muster_call *call, size_t struct_size);

/* Schedules one task. Blocks before it returns an error of a task (see above), and while the queue
 * is full. The queue is full if max_queued tasks have not ended, or 64 MiB of arguments are not on
 * record with the broker. The caller owns *ret_value and frees it with muster_remote_value_free.
 * NULL: you do not want the result. MUSTER_E_ARGUMENT · MUSTER_E_TIMEOUT the queue stayed full · a
 * pending error: nothing was scheduled. */
MUSTER_API enum muster_status muster_coordinator_schedule(muster_coordinator_t *coordinator,
                                                          const struct muster_call *call,
                                                          int64_t timeout_ms,
                                                          muster_remote_value_t **ret_value,
                                                          struct muster_error *ret_error);
/* Waits until every task has ended. MUSTER_E_TIMEOUT · an error of a task, which is cleared when
 * this returns it. */
MUSTER_API enum muster_status muster_coordinator_join(muster_coordinator_t *coordinator,
                                                      int64_t timeout_ms,
                                                      struct muster_error *ret_error);
/* Have all tasks ended? It waits only if there is an error to return, 5 s at most, for tasks that
 * still run. If some still run then, *ret_done is false, and a later call returns the error. */
MUSTER_API enum muster_status muster_coordinator_done(muster_coordinator_t *coordinator,
                                                      bool *ret_done,
                                                      struct muster_error *ret_error);

/* A value that every worker makes with this function before it gets tasks of this queue. A worker
 * that comes back as a new process makes it again. The call returns when the broker has the value
 * on record. *ret_value lives as long as the coordinator: there is nothing to free. Arguments have
 * at most 49,152 bytes. If a worker cannot make the value, only the tasks there that use it fail
 * (MUSTER_E_INPUT). If max_attempts workers ended while they made it, the tasks that use it fail
 * with MUSTER_E_INPUT on every worker. A coordinator that takes the queue over finds the values
 * again with the same calls in the same order, by their numbers. MUSTER_E_EXISTS: a different call
 * made the value of this number. The call that made it still gets it. After MUSTER_E_TIMEOUT,
 * MUSTER_E_BROKER or MUSTER_E_STORAGE the value may be on record: the same call again finds it, and
 * makes no other. */
MUSTER_API enum muster_status muster_coordinator_create_per_worker(
    muster_coordinator_t *coordinator, const char *function, const void *args, size_t args_size,
    muster_per_worker_t **ret_value, struct muster_error *ret_error);

/* Waits for the task and borrows its result, which is valid until the value is freed. *ret_size 0:
 * the task gave none. If the task failed, this returns its error and does not clear it. Even with
 * timeout_ms 0 the call gives the broker a second: to send a result, or to say whether a former
 * coordinator's task has ended.
 * MUSTER_E_CANCELLED the task was cancelled, maybe because another had failed · MUSTER_E_TIMEOUT ·
 * MUSTER_E_NOMEM. */
MUSTER_API enum muster_status muster_remote_value_fetch(muster_remote_value_t *value,
                                                        int64_t timeout_ms, const void **ret_data,
                                                        size_t *ret_size,
                                                        struct muster_error *ret_error);

/* One place of a structure of results: a remote value, a plain one, or a list of places. Programs
 * keep places in arrays, so this structure never grows. */
enum muster_place_kind { MUSTER_PLACE_PLAIN, MUSTER_PLACE_VALUE, MUSTER_PLACE_LIST };
struct muster_place {
    enum muster_place_kind kind;
    muster_remote_value_t *value; /* VALUE */
    struct muster_place *items;   /* LIST */
    size_t count;
    const void *data; /* PLAIN: the user's own, not changed. VALUE: its result, after the fetch */
    size_t size;
};
/* Fetches every value in a structure, up to 64 lists deep, and keeps the structure. One timeout
 * holds for all. It returns the first error, in order of places; values that were fetched before it
 * stay. */
MUSTER_API enum muster_status muster_coordinator_fetch(muster_coordinator_t *coordinator,
                                                       struct muster_place *place,
                                                       int64_t timeout_ms,
                                                       struct muster_error *ret_error);

/* Cancels one task: at once if it is queued. If it runs, its handler sees muster_task_cancelled,
 * and ends as it likes. */
MUSTER_API enum muster_status muster_remote_value_cancel(muster_remote_value_t *value,
                                                         struct muster_error *ret_error);
/* The number of its task in the queue, from 1 on. */
MUSTER_API uint64_t muster_remote_value_id(const muster_remote_value_t *value);
/* Releases the result; the task goes on. The broker forgets results up to the first one that is
 * still held. NULL-safe; nulls the handle. */
MUSTER_API void muster_remote_value_free(muster_remote_value_t **value);

/* For a coordinator that took a queue over: the highest number that was ever scheduled, and the
 * value of any number that was not released. MUSTER_E_NOT_FOUND: there is no such task. */
MUSTER_API uint64_t muster_coordinator_scheduled(const muster_coordinator_t *coordinator);
MUSTER_API enum muster_status muster_coordinator_value(muster_coordinator_t *coordinator,
                                                       uint64_t id,
                                                       muster_remote_value_t **ret_value,
                                                       struct muster_error *ret_error);
/* Gives up the results that former coordinators left. From then on only values that this
 * coordinator holds are kept. */
MUSTER_API void muster_coordinator_release(muster_coordinator_t *coordinator);

#ifdef __cplusplus
}
#endif

#endif
