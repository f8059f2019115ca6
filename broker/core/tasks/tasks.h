/* tasks - queues of tasks and the workers that run them: what the files tasks*.c share.
 *
 *   tasks.c          memory, rows, ends
 *   tasks_queue.c    what coordinators say
 *   tasks_open.c     who holds a queue
 *   tasks_load.c     what a start finds
 *   tasks_worker.c   what workers say
 *   tasks_give.c     who gets what, and when it is taken back
 *   tasks_watch.c    what makes no progress
 *   tasks_values.c   per-worker values
 *
 * A task is queued, then leased to a worker, then ended for good: done, failed or cancelled. Only
 * those that have not ended are in memory. A lease says that a worker has, or may have, an attempt
 * of a task. It stands from before the task is sent until the worker says that the attempt is over,
 * or is lost. A lease without its task was taken away: the attempt may still run, but its word no
 * longer counts. Invariants:
 *   T1 a task ends once: its end is written once, by the worker that holds its lease, or without a
 *      lease
 *   T2 whatever a coordinator or worker was told was written before
 *   T3 an error is raised when the queue has no lease, with or without a task: nothing executes
 *   T4 a task whose worker was lost is given again where it begins at once, never ahead. From its
 *      second loss on, or when one more would make it fail, it runs alone. So a task that ends its
 *      workers is found, and none fails because of its neighbours
 *   T5 an attempt's number is given again only if nobody can have begun it */
#ifndef BROKER_CORE_TASKS_H
#define BROKER_CORE_TASKS_H

#include "broker/core/tasks/queues.h"

#define TASK_HASH 65536
#define TASK_GONE_MAX 64
#define TASK_LEASE_SLOTS                                                    \
    64 /* of a worker: it may hold TASK_CREDIT_MAX and name as many at once \
        */
#define TASKS_CANCEL_BYTES \
    (512u << 10) /* of one pass: nobody else is served while they are written */

struct task;
struct task_worker;

struct task_recent { /* a task that ended, and by whom */
    uint64_t number;
    uint64_t worker;
    uint64_t attempt;
};

struct task_resource {
    uint64_t number;
    char fn[NAME_MAX_BYTES + 1];
    uint8_t *args;
    size_t args_size;
    uint64_t losses; /* of workers that were making it, and nobody made it since */
    bool given_up;   /* tasks that use it fail ... */
    char why[TASK_TEXT_MAX + 1];
    uint64_t worker; /* ... by the last of them */
};

struct task_queue {
    uint64_t queue;
    char job[JOB_NAME_MAX + 1];
    char name[JOB_NAME_MAX + 1];
    uint64_t coordinator;
    bool mapped; /* said QUEUE_OPEN to this broker start, from this route */
    uint64_t route;
    int64_t heard_boot_ms; /* its coordinator; or this broker's start */
    uint64_t taken, ended, released;
    uint64_t max_queued, max_attempts;
    bool error_pending;
    uint64_t error_number;
    unsigned error_status;
    int64_t error_code;
    char error_text[TASK_TEXT_MAX + 1];
    uint64_t raised, raises_told;
    uint64_t raise_wanted; /* a raise that waits for the last lease, 0 = none ... */
    uint64_t raise_to;     /* ... and the highest number that is scheduled */
    bool counts;           /* the error came to this broker start, so that ... */
    uint64_t cancelled;    /* ... these are all that were cancelled for it */
    uint64_t cancelled_to; /* of this coordinator's; beyond `taken`: what it has yet to add */
    int64_t created_unix_ms;

    struct task *first, *last;                   /* queued, to be given in this order */
    struct task *suspects_first, *suspects_last; /* queued, and to run alone (T4) */
    uint64_t live;                               /* tasks in memory */
    uint64_t leases;                             /* of tasks; also those taken away */
    size_t bytes;                                /* arguments in memory */
    size_t value_bytes;                          /* the same of its per-worker values */
    struct task_resource *resources;
    size_t resources_count, resources_capacity;
    struct task_recent recent[TASK_RECENT]; /* by number */

    int64_t typical_ms;            /* what its tasks took of late */
    bool error_said;               /* to the workers that have leases of it */
    bool dirty;                    /* its row is to be written */
    struct wire_ended_entry *told; /* ends of this input, in the actions' arena */
    size_t told_count, told_capacity;
    size_t told_bytes;
    uint64_t told_before;
    struct task_queue *next;
    struct task_queue *next_id; /* in its slot */
};

struct task {
    struct task_queue *queue;
    uint64_t number;
    uint64_t attempt; /* losses, excused, and the one that somebody has */
    uint64_t losses;  /* it may have been the task's doing; so many as max_attempts are too many */
    uint64_t excused; /* attempts that may have begun, and that do not count */
    uint64_t timeout_ms;
    struct task_lease *lease; /* NULL: queued */
    bool cancel;              /* wanted while it was leased */
    bool named;               /* its row says that it makes no progress */
    bool late;                /* its last attempt was taken away, and may run on */
    bool alone;               /* it is, or was, among the suspects */
    int64_t not_before_boot_ms;
    uint64_t parts_have, parts_attempt; /* bytes of a long result that came, and from whom */
    size_t args_size, uses_size;
    struct task *prev, *next; /* in its list */
    struct task *next_hash;
    char fn[NAME_MAX_BYTES + 1];
    uint8_t bytes[]; /* args, then uses */
};

struct task_lease {
    struct task_worker *worker;
    struct task *task;        /* NULL: taken away, or a resource */
    struct task_queue *queue; /* NULL: the queue is gone */
    uint64_t queue_id, number, attempt;
    enum wire_task_kind kind;
    uint64_t serial;       /* 0: before this broker start, or known from the worker's HELLO */
    int64_t since_boot_ms; /* given, or renewed */
    int64_t begun_boot_ms; /* its turn at the worker, as far as is known; 0 = not yet */
    int64_t sent_boot_ms;  /* 0 = not yet */
    int64_t every_ms;      /* until it is sent again */
    bool stuck_said;       /* that it makes no progress */
    bool loaded;           /* from before this broker start: in no order, begun or not */
    bool named;            /* by the WORK_HELLO that is being taken */
    struct task_lease *next_number; /* in its slot */
    struct task_lease *prev, *next; /* of its worker, in order of serial */
};

struct task_made { /* a resource at a worker */
    uint64_t queue, number;
    bool made;       /* answered; else it was given ... */
    uint64_t losses; /* ... when it had so many */
};

struct task_worker {
    char job[JOB_NAME_MAX + 1];
    uint64_t index;
    uint64_t incarnation;
    uint64_t node;
    char host[HOST_MAX + 1];
    uint64_t pid;
    uint64_t slots, takes;
    bool mapped;
    uint64_t route;
    int64_t heard_boot_ms;
    uint64_t serial;   /* the last one given */
    uint64_t received; /* up to here */
    struct task_lease *first, *last;
    struct task_lease *leases[TASK_LEASE_SLOTS]; /* the same, by number */
    uint64_t held;
    bool node_left; /* the process that it lives in ended in good order: no doing of its tasks */
    bool alone;     /* what it holds is a suspect: nothing else */
    bool reserved;  /* it gets nothing more until a suspect can be given to it */
    struct task_made *made;
    size_t made_count, made_capacity;
    uint64_t gone[TASK_GONE_MAX]; /* queues that it is to be told of; more of them stay with it */
    size_t gone_count;
    struct task_worker *next;
};

struct tasks {
    struct task_queue *queues;
    struct task_queue *by_id[TASK_QUEUES_MAX];
    struct task_worker *workers;
    size_t queues_count, workers_count;
    uint64_t queue_id; /* the last one given; until then the highest that was loaded */
    uint64_t *left;    /* numbers of queues that are gone and whose rows are not, as was loaded */
    size_t left_count;
    bool ids_begun; /* one was given */
    int64_t timer_boot_ms;
    size_t to_cancel; /* bytes of tasks that this pass may still cancel for a raise */
    struct task *hash[TASK_HASH];
};

/* tasks.c */
struct tasks *tasks_of(struct core *core); /* made when first wanted */
struct task_queue *tasks_queue_find(const struct core *core, uint64_t queue);
struct task_queue *tasks_queue_named(const struct core *core, const char *job, const char *name);
struct task_queue *tasks_queue_create(struct core *core, uint64_t queue, const char *job,
                                      const char *name);
void tasks_queue_drop(struct core *core, struct task_queue *queue);
void tasks_queue_left(struct core *core, uint64_t queue);
bool tasks_queue_number_is_free(const struct core *core, uint64_t queue);
struct task *tasks_find(const struct core *core, uint64_t queue, uint64_t number);
struct task *tasks_create(struct core *core, struct task_queue *queue,
                          const struct record_task *row); /* in no list yet */
void tasks_list_put(struct task *task, bool front); /* into one of two, by what is known of it */
bool tasks_is_suspect(const struct task *task);     /* it is to run alone */
bool tasks_is_doubtful(const struct task *task);    /* it is not to be given ahead */
void tasks_list_again(struct task_queue *queue);    /* another max_attempts counts */
void tasks_list_take(struct task *task);
struct task *tasks_first_queued(const struct task_queue *queue); /* of the lowest number */
size_t tasks_forget(struct core *core, struct task *task);       /* in no list; bytes */
void tasks_resource_create(struct task_queue *queue, uint64_t number, const char *fn,
                           struct wire_bytes args);
struct task_worker *tasks_worker_find(const struct core *core, uint64_t incarnation);
struct task_worker *tasks_worker_create(struct core *core, const char *job, uint64_t index,
                                        uint64_t incarnation);
void tasks_worker_free(struct core *core, struct task_worker *worker);
struct task_lease *tasks_lease_add(struct task_worker *worker, struct task_queue *queue,
                                   struct task *task, uint64_t number, uint64_t attempt,
                                   enum wire_task_kind kind);
struct task_lease *tasks_lease_find(struct task_worker *worker, uint64_t queue, uint64_t number,
                                    uint64_t attempt, uint64_t kind);
void tasks_lease_free(struct task_lease *lease);
struct wire_bytes tasks_out_bytes(struct core *core, const uint8_t *data, size_t size);
void tasks_persist_state(struct core *core, struct task *task);
void tasks_persist_text(struct core *core, const struct task *task, const char *text);
void tasks_persist_worker(struct core *core, const struct task_worker *worker,
                          enum record_worker_state state);
struct record *tasks_persist(struct core *core, enum record_kind kind);
/* The message that was just made tells of so many tasks that were taken. */
#define TASKS_FEW 4
void tasks_may_wait(struct core *core, size_t tasks);

struct task_end {
    enum wire_task_state state;
    unsigned status;
    int64_t code;
    const char *text;
    struct wire_bytes result;
    uint64_t bytes;
};
/* Writes its end, remembers the first error, tells the coordinator, forgets the task. Its lease is
 * freed by the caller, before. */
void tasks_end(struct core *core, struct task *task, const struct task_end *end, uint64_t worker);
void tasks_flush(struct core *core); /* after each input: rows of queues, ends told together */
void tasks_timer(struct core *core, int64_t at_boot_ms);

/* tasks_open.c */
void tasks_queue_open(struct core *core, const struct input *in);

/* tasks_queue.c */
void tasks_queue_message(struct core *core, const struct input *in);
void tasks_raise(struct core *core, struct task_queue *queue); /* if it is wanted, and can be */

/* tasks_worker.c */
void tasks_worker_message(struct core *core, const struct input *in);
void tasks_worker_alive(struct core *core, struct task_worker *worker, unsigned code);
/* All that it can run at a time was taken away from it and runs on: it gets nothing, and what waits
 * goes back. */
bool tasks_is_stuck(const struct task_worker *worker);
/* A queue is not there any more of which it has values: the next WORK_ALIVE tells. */
void tasks_gone(struct task_worker *worker, uint64_t queue);
/* Why the worker's attempt is no longer wanted. */
/* The worker said that it has it (to a former start, maybe). It begins nothing before that is
 * answered. */
bool tasks_is_confirmed(const struct task_lease *lease);
bool tasks_is_to_end(const struct task_lease *lease);
bool tasks_is_taken_away(const struct task_lease *lease); /* and may run on */
/* Those who have leases of a queue with an error hear at once that these are to end. */
void tasks_error_told(struct core *core, struct task_queue *queue);
struct task_made *tasks_made(struct task_worker *worker, uint64_t queue, uint64_t number,
                             bool made);
const struct task_made *tasks_made_find(const struct task_worker *worker, uint64_t queue,
                                        uint64_t number);

/* tasks_values.c */
/* The worker gets what it is to make. True: all that the queue's tasks may use is there. */
bool tasks_values_give(struct core *core, struct task_worker *worker, struct task_queue *queue);
void tasks_values_lost(struct core *core, struct task_worker *worker,
                       const char *why); /* with its leases still */
void tasks_values_again(struct task_queue *queue);
void tasks_value_made(struct task_resource *resource);
bool tasks_value_fails(struct core *core,
                       struct task *task); /* ends the queued task, or does nothing */

/* tasks_give.c */
void tasks_lease_new(struct core *core, struct task_worker *worker, struct task_queue *queue,
                     struct task *task, uint64_t number, uint64_t attempt,
                     enum wire_task_kind kind);
void tasks_give(struct core *core);
void tasks_send_again(struct core *core, struct task_worker *worker);
enum task_over {                 /* an attempt, without an end */
                 TASK_NOT_BEGUN, /* its worker said so, or never confirmed it: the number is free
                                    again */
                 TASK_EXCUSED,   /* it may have begun, and was no doing of the task */
                 TASK_COUNTED
};
void tasks_give_back(struct core *core, struct task_lease *lease, enum task_over how,
                     unsigned status, const char *why);
void tasks_worker_lost(struct core *core, struct task_worker *worker, unsigned status,
                       const char *why);

/* tasks_watch.c */
void tasks_watch(struct core *core, struct task_worker *worker);
void tasks_took(struct core *core,
                const struct task_lease *lease);            /* it has ended, and was a task */
int64_t tasks_word_boot_ms(const struct task_lease *lease); /* the last one of it */

#endif
