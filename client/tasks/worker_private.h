/* worker_private - a worker behind the public handle. client/worker*.c only.
 * worker.c the calls, worker_run.c the functions' threads, worker_wire.c what is said to the
 * broker. */
#ifndef CLIENT_WORKER_PRIVATE_H
#define CLIENT_WORKER_PRIVATE_H

#include <muster/worker.h>

#include "client/tasks/task_link.h"
#include "client/tasks/task_parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum attempt_state { ATTEMPT_WAITING, ATTEMPT_RUNNING, ATTEMPT_ENDED };

/* One attempt at a task, from the time when the broker gave it to this worker until the broker took
 * its end. */
struct muster_task {
    muster_worker_t *worker;
    uint64_t queue, number, attempt;
    uint64_t serial; /* of its WORK; 0: WORK_HELLO named it, so the broker knows of it */
    enum wire_task_kind kind;
    enum attempt_state state; /* under the worker's mutex, as all below but where it is said */
    atomic_bool cancelled;
    atomic_bool renewed;
    char fn[NAME_MAX_BYTES + 1];
    size_t args_size, uses_size;

    /* the function's thread alone while it runs, the link's once it has ended */
    uint8_t *result;
    size_t result_size;
    unsigned status;         /* MUSTER_OK: done */
    bool given_back;         /* it was never begun */
    bool gone;               /* its queue is: a value that it makes is for nobody */
    unsigned result_refused; /* why the last result could not be taken: a function that goes on is
                                not done */
    int64_t code;
    char *text;
    void *value; /* of a resource */
    void (*value_free)(void *value);

    struct task_parts parts; /* of a long result */
    struct task_again again; /* WORK_DONE */
    struct muster_task *next;
    uint8_t bytes[]; /* args, uses */
};

struct worker_function {
    char name[NAME_MAX_BYTES + 1];
    muster_task_fn *fn;
    void *arg;
    struct worker_function *next;
};

struct worker_value { /* a resource that was made, or could not be */
    uint64_t queue, number;
    void *value;
    void (*value_free)(void *value);
    bool failed;
    bool gone; /* its queue is */
    char *text;
    struct worker_value *next;
};

struct muster_worker {
    char broker[BROKERS_TEXT_MAX + 1];
    char job[JOB_NAME_MAX + 1];
    char host[HOST_MAX + 1];
    uint64_t index, incarnation, node;
    uint64_t slots, takes;
    int64_t connect_timeout_ms;
    pid_t pid;
    struct worker_function *functions;
    struct task_link *link;
    pthread_t *threads;
    size_t threads_count;
    bool started;
    bool serving;      /* `serve` runs, which can tell what happened */
    bool link_closing; /* under the mutex */

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* an attempt waits, the welcome came, the end is near */
    bool leading;           /* one of the threads without an attempt looks after the link */
    size_t idle;            /* the others */
    bool stopping;
    atomic_bool stop_asked; /* maybe by a signal's handler: the next turn makes it `stopping` ... */
    int wake_fd;            /* ... which this calls for */
    atomic_uint stopping_now; /* so many are in muster_worker_stop */
    bool welcomed;            /* by this connection of this broker start */
    bool ever_welcomed;
    bool displaced; /* another process has its index: `serve` says so */
    bool said_leaving;
    bool left;
    unsigned refused; /* a status; MUSTER_OK: not */
    bool refused_for_good;
    char refused_text[TEXT_MAX + 1];
    uint64_t start_id, nonce, received;
    uint64_t confirmed;     /* of those received, what the broker has answered: they may begin */
    uint64_t said;          /* received, as the last WORK_BEAT told */
    size_t running, unsent; /* attempts that run; that ended and were not taken */
    uint64_t told;          /* ends and parts of results that were taken */
    int64_t tell_ends_ms;   /* `end` waits so long for the next of them */
    struct muster_task *first, *last; /* in the order in which they came */
    struct worker_value *values;
    struct task_window window; /* parts that are under way */
    struct task_again hello, leave;
    int64_t beat_ms;  /* when the next is due ... */
    int64_t renew_ms; /* ... also if something was renewed */
};

/* worker_run.c */
void *worker_thread(void *worker); /* runs attempts until it is stopped and none is left */
/* One attempt; all three with the mutex. Take the next, which is running then (NULL: none waits).
 * Is its function to be called? If not, its status says why. And after the call, with its status
 * set. */
struct muster_task *worker_attempt_begin(struct muster_worker *worker);
bool worker_attempt_is_callable(struct muster_task *task);
void worker_attempt_end(struct muster_worker *worker, struct muster_task *task);
/* worker_wire.c: the link's owner */
void worker_take(void *worker, const struct wire_msg *message, int64_t now_ms);
int64_t worker_turn(void *worker, int64_t now_ms);
void worker_task_free(struct muster_task *task);
void worker_value_free(struct worker_value *value); /* runs the user's free_fn: without the mutex */

#endif
