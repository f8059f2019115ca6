/* coordinator_private - a coordinator behind the public handle. client/coordinator*.c only.
 * coordinator.c the calls, coordinator_values.c results, coordinator_per_worker.c per-worker
 * values, coordinator_wire.c what is said to the broker. */
#ifndef CLIENT_COORDINATOR_PRIVATE_H
#define CLIENT_COORDINATOR_PRIVATE_H

#include <muster/coordinator.h>

#include "client/tasks/task_link.h"
#include "client/tasks/task_parts.h"

#include <pthread.h>
#include <sys/types.h>

#define PER_WORKER_MAGIC UINT32_C(0x7065725f) /* a remote value has another one there */
#define REMOTE_VALUE_MAGIC UINT32_C(0x72656d6f)
#define VALUES_HASH 4096
#define ADD_FRAMES_AHEAD 4 /* TASKS_ADD without an answer */
#define LOOK_GAP_MS \
    3000             /* turns are a second apart at most: longer, and we stood still ourselves */
#define FRESH_MS 200 /* how old numbers may be that a time-out tells */
/* How long to wait for the broker's word that a server is still missing, that a task has ended, or
 * for its result. */
#define CONFIRM_MS 1000
#define LONGEST_MS (INT64_C(1) << 40) /* of a time-out: some take INT64_MAX for `for ever` */
#define DONE_WAIT_MS 5000             /* for what still runs when `done` has an error to return */
#define UNTAKEN_BYTES_MAX (UINT64_C(64) << 20) /* arguments that are not on record yet */

struct muster_per_worker {
    uint32_t magic;
    const muster_coordinator_t *coordinator;
    uint64_t number;
    char fn[NAME_MAX_BYTES + 1];
    uint8_t *args;
    size_t args_size;
    bool taken;
    unsigned refused;
    bool given_up; /* its call has returned without it: the next of the same finds it */
    struct muster_per_worker *next;
};

/* A task as this coordinator knows it, while the user holds its value or the task has not ended. */
struct muster_remote_value {
    uint32_t magic;
    muster_coordinator_t *coordinator; /* NULL: it is closed */
    uint64_t number;
    bool held;    /* by the user */
    bool unasked; /* a former coordinator's: the broker has not told yet whether it has ended */
    enum wire_task_state state; /* TASK_QUEUED: not ended, as far as is known */
    unsigned status;
    int64_t code;
    char *text;
    uint64_t bytes;          /* of the result */
    uint8_t *result;         /* what has come of it */
    struct task_parts parts; /* of it */
    bool wanted;             /* a long result is being fetched */
    bool no_memory;          /* for the result, when its first bytes came */
    int64_t unread_ms; /* since when the broker says that it cannot read the result, 0 = it can */
    unsigned unread_code; /* and why */
    bool cancel;
    uint64_t cancelled_by;   /* the task whose failure it was cancelled for, 0 = not known */
    struct task_again again; /* of TASK_CANCEL */
    struct task_call *call;  /* until the broker has it */
    struct muster_remote_value *prev, *next; /* by number */
    struct muster_remote_value *next_hash;
};

struct task_call { /* what is to be sent */
    uint64_t timeout_ms;
    size_t args_size, uses_size;
    char fn[NAME_MAX_BYTES + 1];
    uint8_t bytes[];
};

enum awaited { AWAITED_ANSWER, AWAITED_ENDS }; /* of tasks: from pages, when some were not heard */

/* The waits of one call. The broker's silence before the call began does not shorten the call's own
 * wait. */
struct call_time {
    int64_t from_ms;  /* 0 = the silence before it counts, too */
    int64_t until_ms; /* 0 = no bound but the broker's */
};

struct broker_trouble {
    int64_t since_ms; /* 0 = there is none */
    char text[TEXT_MAX + 1];
};

struct muster_coordinator {
    char broker[BROKERS_TEXT_MAX + 1];
    char job[JOB_NAME_MAX + 1];
    char name[JOB_NAME_MAX + 1];
    uint64_t incarnation;
    bool fresh;
    uint64_t max_queued, max_attempts;
    int64_t connect_timeout_ms, broker_timeout_ms, done_wait_ms;
    pid_t pid;
    struct task_link *link;

    pthread_mutex_t mutex; /* never held where a turn is taken: turns take it */
    pthread_cond_t changed;
    bool leading;   /* one of the waiting calls looks after the link */
    size_t waiting; /* the others */
    bool opened;    /* on this connection of this broker start */
    bool ever_opened;
    bool stale;
    bool begun_anew; /* and it is because the broker has another queue, or less of it, than this one
                        opened */
    uint64_t begun_taken;
    unsigned refused; /* QUEUE_OPENED's code */
    char refused_text[TEXT_MAX + 1];
    uint64_t start_id, nonce, queue;
    int64_t heard_ms, looked_ms;
    struct broker_trouble unwritten; /* the broker says that it can write nothing ... */
    struct broker_trouble unread;    /* ... or read no page, which counts while one is asked for */

    uint64_t scheduled; /* highest number given */
    uint64_t sent, taken;
    uint64_t untaken_bytes; /* arguments of those that were not taken */
    uint64_t ended;         /* how many, told without a gap */
    uint64_t released,
        keep_from; /* what former coordinators left: up to here nothing is released */
    struct task_again add, open, get, raise_again, resource_again;
    bool full;                 /* the broker said so */
    struct task_window window; /* parts of results that are under way */
    struct muster_remote_value *first, *last;
    struct muster_remote_value *hash[VALUES_HASH];

    bool asking; /* pages, from `ask_from` to `ask_to`, 0 = all */
    uint64_t new_from,
        new_to; /* the user holds some of these that nothing was asked of; 0 = none */
    bool look;  /* a value wants something said */
    bool ask_again;
    uint64_t ask_from, ask_to, ask_nonce;

    uint64_t error_number; /* a pending error, as far as is known */
    uint64_t raised;       /* how often one was */
    bool raising;          /* the answer is awaited */
    bool unsaid;           /* it came, and no call returned it yet */
    struct muster_error raised_error;
    char unavailable[TEXT_MAX + 1];
    uint64_t leased, workers;
    uint64_t alives; /* how often it was told */
    int64_t alive_ms, early_until_ms;

    struct muster_per_worker *per_worker; /* newest first */
    uint64_t per_worker_count;
    bool recording; /* a call waits for its value to be put on record */
    int64_t beat_ms;
    struct wire_task_entry adding[TASKS_FRAME_MAX]; /* of one frame */
};

/* coordinator_values.c; all with the mutex */
struct muster_remote_value *values_find(const struct muster_coordinator *c, uint64_t number);
struct muster_remote_value *values_add(struct muster_coordinator *c, uint64_t number);
void values_forget(struct muster_coordinator *c, struct muster_remote_value *value);
void values_call_set(struct muster_coordinator *c, struct muster_remote_value *value,
                     struct task_call *call); /* takes it over; NULL: the broker has it */
void values_end(struct muster_coordinator *c, const struct wire_ended_entry *entry);
/* The broker has told what became of all tasks below this number. */
void values_asked(struct muster_coordinator *c, uint64_t before);
uint64_t values_released(const struct muster_coordinator *c);

/* coordinator_per_worker.c */
void per_worker_forget_all(struct muster_coordinator *c);

/* coordinator.c */
/* In a forked child nobody takes turns, and locks may be held by threads that are not there: each
 * call asks this first. */
bool coordinator_is_forked(const struct muster_coordinator *c);
/* MUSTER_E_ARGUMENT `call` was given NULL, MUSTER_E_FORKED, or OK. */
enum muster_status coordinator_check(const struct muster_coordinator *c, const char *call,
                                     struct muster_error *err);
enum muster_status coordinator_is_null(const char *call, const char *what,
                                       struct muster_error *err);
enum muster_status coordinator_check_name(const char *function, struct muster_error *err);
/* `else_too`: another way than a file, or "". */
enum muster_status coordinator_check_args(const char *function, const void *args, size_t size,
                                          const char *else_too, struct muster_error *err);
/* Waits for a change, as long as the call may. MUSTER_OK: look again. A broker that cannot read
 * what has ended ends the wait of those alone who wait for that. */
enum muster_status coordinator_wait(struct muster_coordinator *c, enum awaited awaited,
                                    struct call_time time, const char *what,
                                    struct muster_error *err);
/* If there is an error to raise: the broker is asked to, and a later call returns it. */
void coordinator_ask_raise(struct muster_coordinator *c);
struct call_time coordinator_time(int64_t timeout_ms);
/* Of the time that this process stood still, or its machine did, the broker is not to blame. */
void coordinator_look(struct muster_coordinator *c, int64_t now_ms);
/* Ends a call: unlocks, lets another waiting call lead, and says what was asked for
 * (task_link_ask). */
void coordinator_unlock(struct muster_coordinator *c);

/* coordinator_wire.c: the link's owner */
void coordinator_take(void *coordinator, const struct wire_msg *message, int64_t now_ms);
int64_t coordinator_turn(void *coordinator, int64_t now_ms);

#endif
