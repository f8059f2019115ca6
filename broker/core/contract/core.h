/* core - what the broker decides, as a pure function of (state, input, now).
 * Owns: jobs, generations, rosters, notices, rounds, the choice of the resume checkpoint, event
 * numbers, acknowledgements, every bound of PROTOCOL.md.
 * Never: socket, file, clock, lock, log, randomness. Time comes in; work comes out as actions.
 *
 * The driver's contract (broker/loop.c, and the simulator):
 *   1. feed inputs one at a time; the actions of a whole batch are collected in one list;
 *   2. write every ACTION_PERSIST of the batch in ONE transaction, in order;
 *   3. only after its commit carry out the other actions, in order. ACTION_HINT alone may go
 *      out before the commit;
 *   4. keep a batch that could not be written whole, and try it again. Until it is written, give
 *      only inputs for which core_input_is_free() holds, and answer the rest with E_STORAGE.
 * The core is never rolled back. */
#ifndef BROKER_CORE_CORE_H
#define BROKER_CORE_CORE_H

#include "schema/arena.h"
#include "schema/sql/record.h"
#include "schema/wire/wire.h"

#define CORE_JOBS_MAX 1280      /* in memory: those that run, and the ended ones that follow */
#define CORE_ENDED_MAX 256      /* ended jobs that stay in memory; the others are asleep */
#define KEEP_JOBS_DEFAULT 10000 /* ended jobs whose rows stay */
#define KEEP_JOBS_DAYS_DEFAULT 365
#define CORE_NODES_MAX \
    65536 /* over all jobs, the ended ones of a job's newest generation included */

struct core;

struct core_options {
    uint64_t start_id;           /* random, of this broker start */
    const char *events_endpoint; /* told in WELCOME; copied */
    const char *signer;          /* NULL: it signs no manifests; else its public key; copied */
    int64_t join_timeout_ms;     /* 0 = JOIN_TIMEOUT_MS; a HELLO may ask for another */
    size_t nodes_max;            /* 0 = CORE_NODES_MAX */
    size_t task_bytes_max;       /* 0 = TASK_QUEUE_BYTES_MAX */
    size_t task_queues_max;      /* 0 = TASK_QUEUES_MAX */
    size_t task_key_bytes_max;   /* 0 = TASK_KEY_BYTES_MAX */
    /* ended jobs: their rows are kept by number and by age (0: without that bound) */
    size_t keep_jobs;
    int64_t keep_jobs_days;
    int ended_held; /* of these in memory; 0 = CORE_ENDED_MAX, below it none */
};

#define BY_MAX 400 /* a key's name, and an address */

enum input_kind {
    INPUT_NONE,
    INPUT_START,     /* after all rows were loaded: begins a new broker epoch */
    INPUT_MESSAGE,   /* a decoded UP message from route */
    INPUT_TICK,      /* time passed; give one a loop pass, after the messages of that pass */
    INPUT_JOB,       /* the rows of `job` were loaded: see core_lacks */
    INPUT_NO_EVENTS, /* the journal has no event from_seq for this node: it needs a snapshot */
};

struct input {
    enum input_kind kind;
    int64_t now_boot_ms;
    int64_t now_unix_ms;
    uint64_t route;                 /* MESSAGE, NO_EVENTS: whom to answer */
    const struct wire_msg *message; /* MESSAGE: borrowed for the call */
    const char *by;                 /* MESSAGE of a tool: who sent it; NULL: nobody asks */
    const char *key_jobs;           /* MESSAGE: the jobs that its key is for; NULL: no key */
    const char *job;                /* JOB, NO_EVENTS */
};

enum action_kind {
    ACTION_NONE,
    ACTION_PERSIST,       /* record */
    ACTION_SEND,          /* message to route */
    ACTION_PUBLISH,       /* message (EVENT, PROBE) on topic `job` */
    ACTION_HINT,          /* message (HINT) on topic `job`, at once */
    ACTION_SEND_EVENTS,   /* journal of `job`, from number, at most count events, as EVENTs to route
                           */
    ACTION_SEND_MANIFEST, /* manifest of (job, number), from offset `count`: MANIFEST_CHUNK to route
                           */
    ACTION_SEND_TASKS, /* `message` (TASKS_PAGE) to route, once the tasks from `from` to `next` that
                          have ended are put in */
    ACTION_SEND_TASK_RESULT, /* the part that `message` (RESULT_GET) asks for, as RESULT_CHUNK */
    ACTION_SEND_ROWS,        /* the query in `message` (QUERY), answered to route as ROWS */
};

struct action {
    enum action_kind kind;
    uint64_t route;
    const char *job;
    uint64_t number;
    uint64_t count;
    bool lazy;    /* PERSIST: progress; need not be synced for itself */
    bool patient; /* SEND: may wait some milliseconds for the next message to the same peer */
    /* EVENT with a deadline: left_ms is to be computed from this at each send (0 = as it is) */
    int64_t deadline_boot_ms;
    struct record record;
    struct wire_msg message;
};

/* A list of actions; all that they point to lives in its arena. */
struct actions {
    struct arena arena;
    struct action *items;
    size_t count;
    size_t capacity;
};
void actions_init(struct actions *actions);
void actions_clear(struct actions *actions); /* keeps memory */
void actions_free(struct actions *actions);

/* NULL when memory is out. Copies options. */
struct core *core_create(const struct core_options *options);
void core_destroy(struct core **core);

/* Before INPUT_START: one row of the database at a time, in this order.
 *   - the broker, the jobs;
 *   - of each job its newest generation, its launches, the hosts of the newest one that hosts
 *     formed;
 *   - that generation's nodes, progress, notices (the cancelled too: a node may repeat one);
 *   - the CORE_OUTCOMES_MAX newest ended rounds in ascending order;
 *   - every round in state freezing, decided or writing (of any generation), with its participants
 *     (ascending rank) and shard files;
 *   - the checkpoints: every one `writing` or `deleting`, the CORE_CHECKPOINTS_MAX newest committed
 *     that count (in any order), as many that do not (the oldest);
 *   - the policies, the pins, the history;
 *   - after all jobs the queues of tasks, their resources (ascending number), the workers, the
 *     tasks that have not ended (ascending number).
 * Older checkpoints than that are never deleted. A job that has ended may be told by
 * RECORD_JOB_ASLEEP alone; the newest are not. */
#define CORE_CHECKPOINTS_MAX 16384
#define CORE_OUTCOMES_MAX 64
void core_load(struct core *core, const struct record *row);

/* The job that this message is about, when it has left memory: load its rows (the job's first, then
 * in the order above) and give INPUT_JOB, then the message. NULL: none. Not while a batch is kept.
 */
const char *core_lacks(const struct core *core, const struct wire_msg *message);

void core_step(struct core *core, const struct input *input, struct actions *out);

/* Settles once more the jobs that the last step settled. For tests: no action may follow. */
void core_settle(struct core *core, struct actions *out);

/* When the next INPUT_TICK is due at the latest, boot ms; INT64_MAX = no timer. */
int64_t core_wakeup_boot_ms(const struct core *core);

/* Does this message, whatever its content, persist nothing but lazy progress? (See contract 4.) */
bool core_input_is_free(const struct wire_msg *message);

/* Counts of the present state. */
struct core_counts {
    size_t jobs_running; /* a launch of it has not ended */
    size_t processes;    /* that live, as far as is known */
};
struct core_counts core_count(const struct core *core);

/* A job with a launch that has not ended, as metrics tell of it. Steps are counts of steps done;
 * its program counts them + step_offset. */
struct core_job {
    const char *name; /* borrowed for the call */
    bool running;
    uint64_t generation;
    uint64_t world_size;
    uint64_t live;                /* of its ranks */
    uint64_t notices;             /* that stand */
    int64_t step;                 /* the furthest done */
    int64_t lag;                  /* from there to the last live rank */
    int64_t silence_ms, stuck_ms; /* the longest of its live ranks */
    int64_t step_offset;
    int64_t checkpoint_step; /* -1 = none is committed */
    int64_t checkpoint_unix_ms;
    int64_t freeze_unix_ms; /* 0 = no plan waits */
};
void core_jobs(const struct core *core, void (*take)(void *arg, const struct core_job *job),
               void *arg);

/* Current numbers, for heads and logs. */
uint64_t core_epoch(const struct core *core);
uint64_t core_start_id(const struct core *core);
uint64_t core_last_seq(const struct core *core, const char *job); /* 0 for an unknown job */
/* Fills the head of a DOWN message to a job ("" for tools). */
/* A count of steps done + this is the step as the job's program counts it. False: not known (yet),
 * as of an unknown job. */
bool core_step_offset(const struct core *core, const char *job, int64_t *ret_offset);
void core_fill_down(const struct core *core, const char *job, struct wire_down *ret_down);

#endif
