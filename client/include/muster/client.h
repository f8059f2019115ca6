/* client.h - questions about jobs, and orders to them (libmuster-query). The tool `muster` uses it.
 *
 * A client asks either a broker, or the broker's database file. The file is only read; the broker
 * may run meanwhile, or be down. Both give the same rows. Only a broker takes orders (notify,
 * cancel, save).
 *
 * Threads: a client and its rows are used by one thread at a time; two clients are independent.
 * Blocking: every call that asks a broker blocks until it is answered, at most timeout_ms of open.
 * A call that reads a database waits only while the database is busy, and at most timeout_ms.
 * Time: *_unix_ms are milliseconds since 1970 of the broker's clock, 0 = has not happened; other
 * *_ms are durations, -1 = not known. Steps and ranks: -1 = none. Checkpoints are named by the
 * number of the round that made them; 0 = none. The words for states, causes and kinds are those
 * that muster(1) prints.
 * Errors: ret_error may be NULL; on failure no output is written. */
#ifndef MUSTER_CLIENT_H
#define MUSTER_CLIENT_H

#include <muster/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_client muster_client_t;
typedef struct muster_rows muster_rows_t;

#define MUSTER_CLIENT_TIMEOUT_MS 5000

/* Opens address_or_path: "tcp://host:port" or "ipc://path" is a broker, "postgresql://..." is what
 * brokers share (musterd --shared), and anything else is the path of a broker's database. Several
 * brokers' addresses have commas between them. The client asks the one that answers, and an error
 * names each.
 * NULL: what MUSTER_BROKER or MUSTER_DB names, else the broker that was started on this host
 * without options, else its database. Open does not connect to a broker yet, so the first question
 * shows if there is none. A database is opened and checked at once. timeout_ms: the limit of each
 * later call; 0 = 5000. The caller owns *ret_client and frees it with muster_client_close.
 * MUSTER_E_ARGUMENT this is no address, or PostgreSQL refuses it for good · MUSTER_E_STORAGE
 * PostgreSQL cannot be reached · MUSTER_E_UNSUPPORTED this library was built without PostgreSQL ·
 * MUSTER_E_BROKER with NULL, none of these is there; the
 * text names what was looked for · MUSTER_E_NOT_FOUND no such file · MUSTER_E_CORRUPT not a muster
 * database, or damaged · MUSTER_E_SCHEMA written by a newer (or much older) muster · MUSTER_E_IO it
 * cannot be read; the text says what to do · MUSTER_E_NOMEM. */
MUSTER_API enum muster_status muster_client_open(const char *address_or_path, int timeout_ms,
                                                 muster_client_t **ret_client,
                                                 struct muster_error *ret_error);
/* Like every close it is NULL-safe and nulls the handle. It cannot fail. Returned rows stay
 * valid. */
MUSTER_API enum muster_status muster_client_close(muster_client_t **client,
                                                  struct muster_error *ret_error);

/* From now on interrupted_fn(arg) is called about 10 times a second while a call waits for a
 * broker, on the thread that made that call. true: the call returns MUSTER_E_INTERRUPTED. NULL =
 * none. arg is borrowed until close. */
MUSTER_API void muster_client_set_interrupted(muster_client_t *client,
                                              bool (*interrupted_fn)(void *arg), void *arg);

/* Does it read a database (true) or ask a broker (false)? */
MUSTER_API bool muster_client_is_database(const muster_client_t *client);
/* The address or path that it asks, as open got or found it; for PostgreSQL "DATABASE on HOST".
 * Borrowed until close. */
MUSTER_API const char *muster_client_place(const muster_client_t *client);

/* --- rows -------------------------------------------------------------------------------- */

/* Strings inside rows are never NULL and are borrowed until muster_rows_destroy. */
struct muster_job_row {
    const char *job;
    const char *state; /* of its newest generation: joining, running, ending, ended */
    int64_t state_unix_ms;
    int64_t generation; /* the newest */
    int64_t world_size;
    const char *layout;
    const char *checkpoint_dir;
    int64_t nodes_live;     /* of its ranks */
    int64_t step;           /* the furthest done of the newest generation */
    int64_t steps_executed; /* of all generations together; step / steps_executed is the goodput */
    int64_t seq;            /* newest event */
    int64_t open_round;     /* 0 = none */
    const char *open_round_state;
    const char *open_round_cause;
    int64_t open_round_waits; /* members that it waits for */
    int64_t notices_active;
    int64_t newest_checkpoint; /* to resume from; 0 = none */
    int64_t newest_step;
    const char *newest_path;
    int64_t newest_unix_ms;
    int64_t resume_checkpoint; /* what this generation resumed from; 0 = from the start */
    int64_t resume_step;
    int64_t error_rank; /* first error of this generation */
    int64_t error_code;
    const char *error_text;
    int64_t end_status; /* an enum muster_status: why the generation ends */
    const char *end_text;
    int64_t created_unix_ms;
    /* When the newest generation was opened. 0 = it is not in this database, so it is not known
     * where it resumed. */
    int64_t opened_unix_ms;
    int64_t started_unix_ms;
    int64_t ended_unix_ms;
    int64_t step_p95_ms;    /* of its slowest rank, 0 = never measured */
    int64_t save_p95_ms;    /* of its newest saves, 0 = never measured */
    int64_t freeze_unix_ms; /* when its active notices will freeze it, 0 = none planned */
    const char *plan;       /* why it freezes at that time */
    /* How many ranks were lost, over all generations. Their last steps are not known and count
     * nowhere. */
    int64_t unknown_ranks;
};
struct muster_node_row {
    int64_t generation;
    const char *role;
    int64_t rank;
    const char *host;
    int64_t pid;
    const char *incarnation; /* 16 hexadecimal digits */
    const char *state;       /* joined, restored, left, lost, fenced */
    int64_t begun;
    int64_t done;
    int64_t lag; /* steps behind the furthest rank; -1: unknown, or it is no rank */
    const char *phase;
    int64_t step_p95_ms;
    int64_t applied_seq;
    int64_t heard_unix_ms;
    /* Of the open round: awaited, reported, at step, captured, saved, failed. */
    const char *acknowledgement;
    const char *leave_why;
    int64_t exit_code;
    int64_t joined_unix_ms;
    int64_t ended_unix_ms;
    /* Its notice sources, as JSON: [{"name","state","ok_unix_ms","retry_ms","text"}]; "" = not
     * told. */
    const char *sources;
    /* Since when the node has been in its step or save, if the broker said that it is stuck there;
     * else 0. */
    int64_t stuck_unix_ms;
};
struct muster_round_row {
    int64_t round;
    int64_t generation;
    int64_t attempt; /* 1, 2, 3 of its cause */
    const char *cause;
    const char *state;  /* freezing, decided, writing, committed, aborted, unchanged */
    int64_t step;       /* the agreed step, -1 while undecided */
    bool aborted_steps; /* frozen with steps broken off, after a loss or a failure */
    int64_t culprit_rank;
    int64_t reason_code; /* an enum muster_status */
    const char *reason;
    bool final; /* aborted, and no other attempt follows */
    int64_t opened_unix_ms;
    int64_t decided_unix_ms;
    int64_t captured_unix_ms;
    int64_t ended_unix_ms;
    int64_t deadline_unix_ms;
    int64_t margin_ms; /* the time that was left to the deadline at the commit */
    int64_t members;
    int64_t reported; /* how many members; the counts below, too */
    int64_t captured;
    int64_t writers;
    int64_t saved;
    int64_t failed;
    const char *plan; /* of a termination: why it was frozen when it was */
};
struct muster_participant_row {
    int64_t round;
    int64_t rank;
    const char *host;
    int64_t pid;
    const char *incarnation;
    bool writer;
    int64_t begun; /* as reported; -1 = did not report */
    int64_t done;
    int64_t reported_ms; /* counted from the round's opening, -1 = not yet; so are the next three */
    int64_t at_step_ms;
    int64_t captured_ms;
    int64_t saved_ms;
    int64_t save_ms; /* how long its save took */
    const char *failed;
    const char *node_state;
};
struct muster_checkpoint_row {
    int64_t checkpoint;
    int64_t generation;
    int64_t step;
    const char *state; /* writing, committed, failed, superseded, deleting, deleted */
    const char *cause;
    const char *layout;
    int64_t world_size;
    int64_t shards_required;
    int64_t shards;
    int64_t bytes;
    const char *path;
    /* It has its manifest and final name. Else path is where it was written, "" if that failed. */
    bool in_place;
    int64_t epoch;
    int64_t step_in_epoch;
    int64_t data_position;
    bool pinned;
    const char *metrics;
    int64_t save_ms; /* of its slowest shard */
    int64_t committed_unix_ms;
    /* How long training stood still, on the rank where that took longest. It is the time for the
     * snapshot or the write; in a manager's foreground save it lasts until the commit. -1 = not
     * known. */
    int64_t blocked_ms;
    int64_t waited_ms;   /* how long the slowest rank waited for the save before */
    int64_t total_ms;    /* from the decision to the commit; -1 = not committed */
    int64_t bytes_per_s; /* all shards, by the slowest one's time; -1 = not known */
    const char *custom;  /* the user's metadata, JSON; "" = none */
    /* Its holders, one a line: until when (Unix time in ms; 0 = until unpin), " ", the holder. */
    const char *pins;
};
struct muster_shard_row {
    int64_t checkpoint;
    int64_t rank;
    const char *host;
    const char *incarnation;
    int64_t files;
    int64_t bytes;
    int64_t save_ms;
    int64_t blocked_ms; /* how long training stood still for its own snapshot or write */
    int64_t saved_unix_ms;
    int64_t waited_ms; /* how long it waited for the save before */
};
struct muster_file_row {
    int64_t checkpoint;
    int64_t rank;
    const char *path;
    int64_t bytes;
    const char *checksum;
};
struct muster_event_row {
    int64_t seq;
    int64_t generation;
    const char *kind;
    int64_t round;
    int64_t rank;
    int64_t step;
    const char *text;
    int64_t unix_ms;
};
struct muster_notice_row {
    const char *id;
    int64_t generation;
    int64_t rank;
    const char *host; /* "": the launch ended so long ago that its ranks are not on record */
    int64_t pid;
    bool by_operator; /* told by a person, not by the node itself */
    const char *kind;
    const char *source;
    const char *state; /* active, cancelled, served */
    bool cancellable;
    int64_t left_ms; /* when it was told; -1 not known, and 30 s are assumed */
    /* told, assumed (by its source's usual grace, or 30 s), grace_period_ms (the option) */
    const char *left_from;
    const char *text;
    int64_t round; /* the last one that it caused or joined; 0 = none */
    int64_t received_unix_ms;
};
struct muster_generation_row {
    int64_t generation;
    const char *state;
    int64_t world_size;
    const char *layout;
    const char *checkpoint_dir;
    int64_t nodes;
    int64_t step; /* the furthest done */
    int64_t resume_checkpoint;
    int64_t resume_step;
    bool resume_ready;
    bool fallback;
    int64_t end_status;
    const char *end_text;
    int64_t error_rank;
    int64_t error_code;
    const char *error_text;
    int64_t opened_unix_ms; /* 0 = not in this database: where it resumed is not known */
    int64_t started_unix_ms;
    int64_t ended_unix_ms;
    int64_t unknown_ranks;   /* lost ones: their last steps are not known */
    int64_t unknown_unix_ms; /* when the first of them was last heard, 0 = never */
};

struct muster_task_queue_row {
    const char *queue_name;
    const char *job;
    int64_t queue;
    int64_t taken;  /* highest number */
    int64_t ended;  /* how many, with those that are forgotten */
    int64_t queued; /* of those not forgotten, how many are in this state; the next, too */
    int64_t leased;
    int64_t done;
    int64_t failed;
    int64_t cancelled;
    int64_t workers; /* of the job, that are there */
    int64_t max_queued;
    int64_t max_attempts; /* 0 = 3 */
    bool error_pending;   /* workers get no tasks until a call has returned the error */
    int64_t error_number; /* the task of the newest error, 0 = none yet */
    int64_t error_status;
    int64_t error_code;
    const char *error_text;
    int64_t raised; /* how many errors were returned */
    int64_t created_unix_ms;
};
struct muster_task_row {
    const char *queue_name;
    int64_t number;
    const char *state; /* queued, leased, done, failed, cancelled */
    const char *function;
    int64_t attempt;      /* how often it was given to a worker */
    int64_t losses;       /* how often the worker was lost with it, or it took too long */
    int64_t worker_index; /* the last one, -1 = none yet */
    const char *worker_host;
    int64_t worker_pid;
    const char *worker_state; /* live, left, lost; "" = a newer process has its index */
    int64_t status;           /* of a failed one, an enum muster_status */
    int64_t code;             /* the function's own */
    const char *text;
    int64_t bytes; /* of the result */
    int64_t timeout_ms;
    int64_t scheduled_unix_ms;
    int64_t leased_unix_ms;
    int64_t ended_unix_ms;
    int64_t key; /* of the row: lists are in its order */
};
struct muster_task_worker_row {
    int64_t worker_index;
    const char *host;
    int64_t pid;
    const char *state; /* live, left, lost */
    int64_t slots;
    int64_t takes;
    int64_t held;      /* tasks that it was given */
    const char *holds; /* which: "main/17 main/18" */
    int64_t unix_ms;   /* since when it is in that state */
};

/* A host of a launch that hosts formed by themselves, or one that waits for the next. */
struct muster_host_row {
    int64_t launch; /* 1, 2, ...; 0: it has no place yet */
    int64_t place;  /* 0, 1, ...: what torchrun calls the node's rank; -1: none */
    const char *host;
    const char *address; /* where the other hosts reach it */
    int64_t port;        /* a port that it found free, in case rank 0 is one of its ranks */
    int64_t first_rank;
    int64_t ranks;
    const char *id;        /* of that process of `muster run`, 16 hexadecimal digits */
    const char *state;     /* running, waiting for the next launch, left, lost */
    int64_t state_unix_ms; /* since when; lost: when it was last heard */
};
/* The policies that the newest launch told: which checkpoints stay, and when the broker saves. */
struct muster_policy_row {
    const char *job;
    int64_t generation;
    const char *keep;  /* rules, as "latest 2; every 1000"; "" = all are kept */
    const char *save;  /* "" = the broker saves nothing by itself */
    const char *trash; /* the folder that deleted ones are moved to; "" = none */
};
/* One fact of the broker's own process; the names are those of muster-broker(1). */
struct muster_broker_row {
    const char *name;
    int64_t number;   /* if the text is ""; -1 = not known */
    const char *text; /* "" = see the number */
};

/* The questions. Each returns rows owned by the caller (muster_rows_destroy), also when there are
 * none: an unknown job or number gives zero rows and MUSTER_OK. job is borrowed for the call.
 * Lists are in the order of their numbers (jobs: names; nodes, participants: ranks).
 * MUSTER_E_BROKER no answer within the timeout · MUSTER_E_VERSION · MUSTER_E_PROTOCOL the answer is
 * not understood · MUSTER_E_IO, MUSTER_E_CORRUPT, MUSTER_E_BUSY of a database · MUSTER_E_NOMEM. */
MUSTER_API enum muster_status muster_client_jobs(muster_client_t *client,
                                                 const char *job, /* NULL = all */
                                                 muster_rows_t **ret_rows,
                                                 struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_nodes(muster_client_t *client, const char *job,
                                                  int64_t generation, /* 0 = newest */
                                                  muster_rows_t **ret_rows,
                                                  struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_rounds(muster_client_t *client, const char *job,
                                                   int64_t after_round, /* 0 = all */
                                                   muster_rows_t **ret_rows,
                                                   struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_round(muster_client_t *client, const char *job,
                                                  int64_t round, /* 0 = newest */
                                                  muster_rows_t **ret_rows,
                                                  struct muster_error *ret_error);
/* That round with the other attempts of its cause, in order. */
MUSTER_API enum muster_status muster_client_attempts(muster_client_t *client, const char *job,
                                                     int64_t round, muster_rows_t **ret_rows,
                                                     struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_participants(muster_client_t *client, const char *job,
                                                         int64_t round, muster_rows_t **ret_rows,
                                                         struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_checkpoints(muster_client_t *client, const char *job,
                                                        int64_t after_checkpoint, /* 0 = all */
                                                        muster_rows_t **ret_rows,
                                                        struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_checkpoint(muster_client_t *client, const char *job,
                                                       int64_t checkpoint, muster_rows_t **ret_rows,
                                                       struct muster_error *ret_error);
/* The one checkpoint to resume from: that of the greatest step among the committed ones that are
 * not superseded. */
MUSTER_API enum muster_status muster_client_latest(muster_client_t *client, const char *job,
                                                   muster_rows_t **ret_rows,
                                                   struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_shards(muster_client_t *client, const char *job,
                                                   int64_t checkpoint, muster_rows_t **ret_rows,
                                                   struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_files(muster_client_t *client, const char *job,
                                                  int64_t checkpoint, muster_rows_t **ret_rows,
                                                  struct muster_error *ret_error);
/* The journal after event after_seq, of one kind (NULL = all). */
MUSTER_API enum muster_status muster_client_events(muster_client_t *client, const char *job,
                                                   int64_t after_seq, const char *kind,
                                                   muster_rows_t **ret_rows,
                                                   struct muster_error *ret_error);
/* The incidents of a generation, by time: errors, losses, withdrawn notices, its end. Those with
 * seq 0 are about the broker itself: kind "broker started", and "broker blocked" (its disk has been
 * full since then). */
MUSTER_API enum muster_status muster_client_incidents(muster_client_t *client, const char *job,
                                                      int64_t generation, muster_rows_t **ret_rows,
                                                      struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_notices(muster_client_t *client, const char *job,
                                                    const char *id,     /* NULL = all */
                                                    int64_t generation, /* 0 = all */
                                                    muster_rows_t **ret_rows,
                                                    struct muster_error *ret_error);
MUSTER_API enum muster_status muster_client_generations(muster_client_t *client, const char *job,
                                                        int64_t after_generation, /* 0 = all */
                                                        muster_rows_t **ret_rows,
                                                        struct muster_error *ret_error);

/* Queues of tasks (coordinator.h); job NULL = of all jobs. */
MUSTER_API enum muster_status muster_client_task_queues(muster_client_t *client, const char *job,
                                                        muster_rows_t **ret_rows,
                                                        struct muster_error *ret_error);
/* Tasks of all queues of the job, without those that are forgotten. */
MUSTER_API enum muster_status muster_client_tasks(muster_client_t *client, const char *job,
                                                  const char *state, /* NULL = all */
                                                  int64_t number,    /* 0 = all */
                                                  muster_rows_t **ret_rows,
                                                  struct muster_error *ret_error);
/* The newest process of each worker index. */
MUSTER_API enum muster_status muster_client_task_workers(muster_client_t *client, const char *job,
                                                         muster_rows_t **ret_rows,
                                                         struct muster_error *ret_error);

/* The hosts of a launch that hosts formed by themselves (`muster run --nodes`), by place. Hosts
 * that wait for the next launch follow those of the newest one. There are none where a scheduler or
 * one host started the ranks. */
MUSTER_API enum muster_status muster_client_hosts(muster_client_t *client, const char *job,
                                                  int64_t launch, /* 0 = the newest */
                                                  muster_rows_t **ret_rows,
                                                  struct muster_error *ret_error);

/* The policies of the job's newest launch, in one row; no row if it has told none. */
MUSTER_API enum muster_status muster_client_policies(muster_client_t *client, const char *job,
                                                     muster_rows_t **ret_rows,
                                                     struct muster_error *ret_error);

/* The broker itself: version, addresses, disk, messages, and what it refused since its start.
 * MUSTER_E_UNSUPPORTED: this client reads a database, which cannot know that. */
MUSTER_API enum muster_status muster_client_broker(muster_client_t *client,
                                                   muster_rows_t **ret_rows,
                                                   struct muster_error *ret_error);

/* Frees rows and all that was read from them; NULL-safe; nulls the handle. */
MUSTER_API void muster_rows_destroy(muster_rows_t **rows);
MUSTER_API size_t muster_rows_count(const muster_rows_t *rows); /* 0 for NULL */

/* The kind of the rows that answer a question. */
enum muster_row_kind {
    MUSTER_ROW_NONE,
    MUSTER_ROW_JOB,
    MUSTER_ROW_NODE,
    MUSTER_ROW_ROUND,
    MUSTER_ROW_PARTICIPANT,
    MUSTER_ROW_CHECKPOINT,
    MUSTER_ROW_SHARD,
    MUSTER_ROW_FILE,
    MUSTER_ROW_EVENT,
    MUSTER_ROW_NOTICE,
    MUSTER_ROW_GENERATION,
    MUSTER_ROW_TASK_QUEUE,
    MUSTER_ROW_TASK,
    MUSTER_ROW_TASK_WORKER,
    MUSTER_ROW_HOST,
    MUSTER_ROW_POLICY,
    MUSTER_ROW_BROKER,
    MUSTER_ROW_KIND_COUNT
};
/* The rows as an array of muster_rows_count structs, borrowed; NULL if there are none, if they are
 * of another kind, or without memory. struct_size: the size of one struct, at least 1. A member
 * that this library does not know is 0 or NULL. Only one thread at a time may use the same rows. */
MUSTER_API const void *muster_rows_array(const muster_rows_t *rows, enum muster_row_kind kind,
                                         size_t struct_size);
#define MUSTER_ROWS_AS(rows, kind, type) \
    ((const struct type *)muster_rows_array(rows, kind, sizeof(struct type)))
#define muster_rows_jobs(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_JOB, muster_job_row)
#define muster_rows_nodes(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_NODE, muster_node_row)
#define muster_rows_rounds(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_ROUND, muster_round_row)
#define muster_rows_participants(rows) \
    MUSTER_ROWS_AS(rows, MUSTER_ROW_PARTICIPANT, muster_participant_row)
#define muster_rows_checkpoints(rows) \
    MUSTER_ROWS_AS(rows, MUSTER_ROW_CHECKPOINT, muster_checkpoint_row)
#define muster_rows_shards(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_SHARD, muster_shard_row)
#define muster_rows_files(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_FILE, muster_file_row)
#define muster_rows_events(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_EVENT, muster_event_row)
#define muster_rows_notices(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_NOTICE, muster_notice_row)
#define muster_rows_generations(rows) \
    MUSTER_ROWS_AS(rows, MUSTER_ROW_GENERATION, muster_generation_row)
#define muster_rows_task_queues(rows) \
    MUSTER_ROWS_AS(rows, MUSTER_ROW_TASK_QUEUE, muster_task_queue_row)
#define muster_rows_tasks(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_TASK, muster_task_row)
#define muster_rows_task_workers(rows) \
    MUSTER_ROWS_AS(rows, MUSTER_ROW_TASK_WORKER, muster_task_worker_row)
#define muster_rows_hosts(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_HOST, muster_host_row)
#define muster_rows_policies(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_POLICY, muster_policy_row)
#define muster_rows_broker(rows) MUSTER_ROWS_AS(rows, MUSTER_ROW_BROKER, muster_broker_row)

/* The same rows without their structs, for printing: columns have the structs' member names. */
enum muster_column_kind {
    MUSTER_COLUMN_NONE,
    MUSTER_COLUMN_TEXT,
    MUSTER_COLUMN_INTEGER,
    MUSTER_COLUMN_BOOLEAN
};
MUSTER_API size_t muster_rows_columns(const muster_rows_t *rows);
MUSTER_API const char *muster_rows_column_name(const muster_rows_t *rows, size_t column);
MUSTER_API enum muster_column_kind muster_rows_column_kind(const muster_rows_t *rows,
                                                           size_t column);
/* "" and 0 where row or column do not exist or are of the other kind; a boolean is an integer. */
MUSTER_API const char *muster_rows_text(const muster_rows_t *rows, size_t row, size_t column);
MUSTER_API int64_t muster_rows_integer(const muster_rows_t *rows, size_t row, size_t column);

/* --- orders ------------------------------------------------------------------------------ */

/* Each returns when the broker has committed the order. After an error an order may be repeated,
 * and is not done twice: an id names the same notice or the same save.
 * MUSTER_E_BROKER no answer within the timeout · MUSTER_E_STORAGE the broker could not write for
 * that long. After these two it is not known whether the order was taken: repeat it with the same
 * id. MUSTER_E_UNSUPPORTED the client reads a database · MUSTER_E_NOT_FOUND no such job, rank or
 * notice · any other code is the broker's refusal with its text. */

/* Tells that a rank will be ended. grace_ms: the time until then (-1 = not known). All strings are
 * borrowed for the call. ret_round (may be NULL): the round that was opened or joined,
 * 0 = later. */
MUSTER_API enum muster_status muster_client_notify(muster_client_t *client, const char *job,
                                                   const char *id, int rank, int64_t grace_ms,
                                                   const char *text, int64_t *ret_round,
                                                   struct muster_error *ret_error);
/* Withdraws a notice. This works until the ranks are frozen for the notice. MUSTER_E_ENDING: it is
 * too late, and the save or the end still comes; the text names the round. */
MUSTER_API enum muster_status muster_client_cancel(muster_client_t *client, const char *job,
                                                   const char *id, struct muster_error *ret_error);
/* Asks for an agreed checkpoint; nobody exits. *ret_round (may be NULL): the round
 * that makes it. */
MUSTER_API enum muster_status muster_client_save_now(muster_client_t *client, const char *job,
                                                     const char *id, int64_t *ret_round,
                                                     struct muster_error *ret_error);
/* Holds a checkpoint (0 = the newest): it is not deleted while this pin stands. lease_ms: the pin
 * ends after this time, unless a call with the same id renews it; 0 = until unpin. *ret_checkpoint
 * (may be NULL) is its number. */
MUSTER_API enum muster_status muster_client_pin(muster_client_t *client, const char *job,
                                                int64_t checkpoint, const char *id,
                                                int64_t lease_ms, int64_t *ret_checkpoint,
                                                struct muster_error *ret_error);
/* Ends the pin of one checkpoint (0 = all pins of this id). It is no error if there is none. */
MUSTER_API enum muster_status muster_client_unpin(muster_client_t *client, const char *job,
                                                  int64_t checkpoint, const char *id,
                                                  struct muster_error *ret_error);
/* Removes a job that has ended from the broker's records, with its checkpoints' rows and pins. No
 * file is deleted: *ret_checkpoints (may be NULL) counts those that stay on disk, and an import
 * brings them back. MUSTER_E_BUSY the job still runs · MUSTER_E_NOT_FOUND the broker does not know
 * it. */
MUSTER_API enum muster_status muster_client_forget(muster_client_t *client, const char *job,
                                                   int64_t *ret_checkpoints,
                                                   struct muster_error *ret_error);
/* Hands the broker a manifest that was found in `path` (absolute). The broker makes the rows of
 * that checkpoint if the database lost them; *ret_new (may be NULL) says so. MUSTER_E_EXISTS the
 * job has other rows with these numbers · MUSTER_E_BUSY it is running. */
MUSTER_API enum muster_status muster_client_import(muster_client_t *client, const char *job,
                                                   const char *path, const char *manifest,
                                                   size_t size, bool *ret_new,
                                                   struct muster_error *ret_error);
/* Waits, at most timeout_ms, until the job's newest committed checkpoint has a greater number than
 * after_checkpoint (0 = until there is one). It asks every 200 ms. *ret_rows (owned) holds that one
 * row. MUSTER_E_TIMEOUT: there is none yet. To go through all checkpoints that come, call this
 * again with the number that it gave. Pin a checkpoint before you read it. */
MUSTER_API enum muster_status
muster_client_wait_checkpoint(muster_client_t *client, const char *job, int64_t after_checkpoint,
                              int64_t timeout_ms, muster_rows_t **ret_rows,
                              struct muster_error *ret_error);
/* For supervisors: reports that a rank's process ended without leaving its job, by signo, or with
 * code if signo is 0. incarnation has 16 hexadecimal digits, as in the life file (see
 * muster-run(1)). The broker pings the process. If nothing answers, the other ranks learn at once
 * that the rank is lost. *ret_lived (may be NULL): did the broker believe that the process lived?
 * Nothing happens to a node that left, or that still answers. */
MUSTER_API enum muster_status muster_client_gone(muster_client_t *client, const char *job, int rank,
                                                 const char *incarnation, int code, int signo,
                                                 bool *ret_lived, struct muster_error *ret_error);

#ifdef __cplusplus
}
#endif
#endif
