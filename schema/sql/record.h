/* record - the rows of the database as structs, one tagged union.
 * The broker's core hands them out to be written and gets them back when a broker starts; each is
 * a whole row (insert or replace by its key), so that writing one twice changes nothing.
 * Strings are borrowed and NUL-terminated, never NULL. Enums are those of wire.h; the store keeps
 * their words. Boot times are CLOCK_BOOTTIME milliseconds of the boot named by the store's own boot
 * id; the store hands rows of another boot back with deadline 0 and `other_boot` set. */
#ifndef SCHEMA_RECORD_H
#define SCHEMA_RECORD_H

#include "schema/wire/wire.h"

enum record_kind {
    RECORD_NONE,
    RECORD_BROKER,
    RECORD_JOB,
    RECORD_GENERATION,
    RECORD_NODE,
    RECORD_PROGRESS,
    RECORD_NOTICE,
    RECORD_EVENT,
    RECORD_ROUND,
    RECORD_PARTICIPANT,
    RECORD_CHECKPOINT,
    RECORD_LAUNCH, /* a generation that took steps */
    RECORD_HOST, /* of a launch that hosts formed, or waiting; read: of the newest, and who waits */
    RECORD_SHARD,
    RECORD_FILE,
    RECORD_SHARDS_GONE, /* write only: the round has neither shards nor files, as if none had come
                         */
    RECORD_POLICY,
    RECORD_PIN,
    RECORD_UNPIN,  /* write only: that pin is gone */
    RECORD_CUSTOM, /* write only: custom metadata of a checkpoint */
    RECORD_TASK_QUEUE,
    RECORD_TASK_QUEUE_DROP, /* the queue is gone; read: rows of its tasks are left */
    RECORD_TASK,            /* written once, when it was taken; read: those that have not ended */
    RECORD_TASK_STATE,      /* write only: queued again, or leased */
    RECORD_TASK_END,        /* write only */
    RECORD_TASK_TEXT,       /* write only: of one that has not ended */
    RECORD_TASK_PART,       /* write only: of a result */
    RECORD_TASK_CANCEL,     /* write only: all of the queue that are queued */
    RECORD_TASK_RELEASE,    /* write only: the ended ones up to a number are gone */
    RECORD_TASK_RESOURCE,
    RECORD_TASK_WORKER,
    RECORD_HISTORY,    /* read only: of the job's generations that are over */
    RECORD_JOB_ASLEEP, /* read only: a job that has ended, instead of its rows */
    RECORD_FORGET,     /* write only: all rows of the job go */
    RECORD_KIND_COUNT
};

struct record_broker {
    uint64_t epoch;    /* +1 at each start, or a jump above what a node has seen */
    uint64_t database; /* number of it and of its copies: its first start's id; 0 = none yet */
    bool older; /* read only: the database is a copy from before something that it had told */
};
struct record_job {
    const char *job;
    enum wire_generation_state state;
    int64_t state_unix_ms;
    uint64_t generation;
    uint64_t seq;
    uint64_t round;
    const char *save_now_id;
    int64_t created_unix_ms;
    uint64_t save_now_round; /* what that request was answered with, 0 = not known */
    enum wire_cause want;    /* of the round that is to be opened, none: CAUSE_NONE */
    uint64_t want_attempt;
    bool want_aborted_steps;
    int64_t step_p95_ms;    /* over all launches, 0 = never measured */
    int64_t save_p95_ms;    /* of `saves` */
    const char *saves;      /* ms of the newest saves, oldest first */
    int64_t freeze_unix_ms; /* the waiting plan's, 0 = none waits */
    const char *plan;       /* why then, for people */
    const char *lineage;    /* starts of the broker: broker/core/state/lineage.c */
};
struct record_job_asleep {
    const char *job;
    int64_t since_unix_ms;
    bool saved;  /* it has committed checkpoints */
    bool pinned; /* ... one of them without a lease */
};
struct record_forget {
    const char *job;
    const char *by; /* who ordered it, for the log; "": the broker, to make room */
};
struct record_generation {
    const char *job;
    uint64_t generation;
    enum wire_generation_state state;
    uint64_t world_size;
    enum wire_layout layout;
    const char *checkpoint_dir;
    uint64_t resume_checkpoint;
    int64_t resume_step;
    bool resume_ready;
    bool fallback;
    unsigned end_status;
    const char *end_text;
    int64_t error_rank;
    int64_t error_code;
    const char *error_text;
    int64_t opened_unix_ms;
    int64_t started_unix_ms;
    int64_t ended_unix_ms;
    int64_t ending_unix_ms;
};
struct record_node {
    const char *job;
    uint64_t incarnation;
    uint64_t generation;
    enum wire_role role;
    uint64_t rank;
    const char *host;
    uint64_t pid;
    enum wire_node_state state;
    uint64_t last_request;
    unsigned last_code;
    uint64_t last_value;
    enum wire_leave_why leave_why;
    int64_t exit_code;
    int64_t joined_unix_ms;
    int64_t ended_unix_ms;
};
struct record_progress {
    const char *job;
    uint64_t incarnation;
    int64_t begun;
    int64_t done;
    enum wire_phase phase;
    uint64_t step_p95_ms;
    uint64_t applied_seq;
    int64_t heard_unix_ms;
    const char *sources; /* HEARTBEAT.sources */
};
enum record_notice_state { RECORD_NOTICE_ACTIVE, RECORD_NOTICE_CANCELLED, RECORD_NOTICE_SERVED };
struct record_notice {
    const char *job;
    uint64_t generation;
    const char *id;
    int64_t rank;
    uint64_t incarnation;
    enum wire_notice_kind kind;
    const char *source;
    enum record_notice_state state;
    bool cancellable;
    int64_t left_ms;
    int64_t deadline_boot_ms;
    bool other_boot; /* read only */
    const char *text;
    uint64_t round;
    int64_t received_unix_ms;
    uint64_t flags;
};
struct record_event {
    const char *job;
    uint64_t seq;
    uint64_t generation;
    int64_t unix_ms;
    int64_t deadline_boot_ms; /* 0: left_ms is as in the body */
    struct wire_event body;
};
/* A row made of a manifest: it knows less than the one that a launch or a round left. */
#define FOUND_ON_DISK "found on disk"                /* end_text, reason */
#define ROUND_FOUND_IN_PART "found on disk, in part" /* reason of an import that was cut short */
struct record_round {
    const char *job;
    uint64_t round;
    uint64_t generation;
    uint64_t attempt;
    enum wire_cause cause;
    enum wire_round_state state;
    int64_t step;
    bool aborted_steps;
    int64_t culprit_rank;
    unsigned reason_code;
    const char *reason;
    bool final;
    int64_t deadline_boot_ms;
    bool other_boot; /* read only */
    int64_t opened_boot_ms;
    int64_t opened_unix_ms;
    int64_t decided_unix_ms;
    int64_t captured_unix_ms;
    int64_t ended_unix_ms;
    int64_t margin_ms;
    const char *plan;
};
struct record_participant {
    const char *job;
    uint64_t round;
    uint64_t rank;
    uint64_t incarnation;
    bool writer;
    int64_t begun;
    int64_t done;
    int64_t reported_ms;
    int64_t at_step_ms;
    int64_t captured_ms;
    int64_t saved_ms;
    int64_t save_ms;
    const char *failed;
};
struct record_checkpoint {
    const char *job;
    uint64_t round;
    uint64_t generation;
    int64_t step;
    enum wire_checkpoint_state state;
    enum wire_cause cause;
    enum wire_layout layout;
    uint64_t world_size;
    uint64_t shards_required;
    uint64_t bytes;
    const char *path;
    int64_t epoch;
    int64_t step_in_epoch;
    int64_t data_position;
    bool pinned;
    const char *metrics;
    int64_t committed_unix_ms;
    int64_t blocked_ms; /* how long it stopped training: the longest of its writers, or who waited
                           for its commit; -1 = not known */
    int64_t waited_ms;  /* for the save before, the same way */
    int64_t total_ms;   /* from the decision to the commit, -1 = not committed */
    const char *trash;  /* of a deletion: the folder it is moved to, "" = removed at once */
};
struct record_policy {
    const char *job;
    uint64_t generation; /* that told them */
    const char *keep;
    const char *save;
    const char *trash;
};
struct record_pin {
    const char *job;
    uint64_t checkpoint;
    const char *id;
    int64_t until_unix_ms; /* 0 = until it is taken back */
};
struct record_custom {
    const char *job;
    uint64_t round;
    const char *custom; /* JSON */
};
struct record_history {
    const char *job;
    int64_t run_ms;         /* that its launches took steps */
    uint64_t interruptions; /* how many did not finish */
};
struct record_shards_gone {
    const char *job;
    uint64_t round;
};
struct record_launch {
    const char *job;
    uint64_t generation;
    int64_t began_step; /* there, or before */
};
enum host_state { HOST_NONE, HOST_WAITING, HOST_RUNNING, HOST_LEFT, HOST_LOST, HOST_STATE_COUNT };
struct record_host {
    const char *job;
    uint64_t launch; /* 1, 2, ... as the hosts formed them; 0: it waits, and has no place */
    uint64_t id;     /* of that life of `muster run` */
    int64_t place;   /* 0, 1, ...; -1: none */
    const char *name;
    const char *address; /* where the other hosts reach it */
    uint64_t port;       /* free there, for rank 0 of its ranks */
    uint64_t first_rank;
    uint64_t ranks;
    uint64_t min_hosts, max_hosts; /* as it was started */
    uint64_t wait_ms;
    int64_t node_rank; /* the place that it asks for, -1 = any */
    uint64_t ended;    /* the newest launch that it saw end */
    enum host_state state;
    int64_t state_unix_ms; /* since then; lost: last heard */
};
struct record_shard {
    const char *job;
    uint64_t round;
    uint64_t rank;
    uint64_t incarnation;
    uint64_t files;
    uint64_t bytes;
    uint64_t save_ms;
    uint64_t blocked_ms;
    int64_t saved_unix_ms;
    uint64_t waited_ms;
};
struct record_file {
    const char *job;
    uint64_t round;
    uint64_t rank;
    const char *path;
    uint64_t bytes;
    const char *checksum;
};

struct record_task_queue {
    uint64_t queue;
    const char *job;
    const char *name;
    uint64_t coordinator; /* incarnation that holds it */
    uint64_t taken;       /* highest number */
    uint64_t ended;       /* how many */
    uint64_t released;    /* up to here nobody asks again */
    uint64_t max_queued;
    uint64_t max_attempts;
    bool error_pending;
    uint64_t error_number; /* the newest first error, also when it was raised; 0 = none yet */
    unsigned error_status;
    int64_t error_code;
    const char *error_text;
    uint64_t raised; /* how often one was */
    uint64_t told;   /* how many of these a call of the coordinator has returned */
    uint64_t cancelled_to;
    int64_t created_unix_ms;
};
struct record_task { /* also TASK_STATE, TASK_END, with the fields that change */
    uint64_t queue;
    uint64_t number;
    enum wire_task_state state;
    uint64_t attempt; /* how often it was given to a worker */
    uint64_t losses;  /* how often the worker was lost with it, or it took too long */
    uint64_t excused; /* attempts that may have begun, and do not count against it */
    const char *fn;
    struct wire_bytes args;
    struct wire_bytes uses;
    uint64_t timeout_ms;
    uint64_t worker; /* incarnation */
    uint64_t worker_index;
    int64_t unix_ms; /* of this change */
    /* TASK_END */
    unsigned status;
    int64_t code;
    const char *text;
    struct wire_bytes result;
    uint64_t bytes; /* of the result; in parts if it is not `result` */
};
struct record_task_part {
    uint64_t queue;
    uint64_t number;
    uint64_t attempt;
    uint64_t offset;
    struct wire_bytes bytes;
};
struct record_task_range { /* TASK_CANCEL, TASK_RELEASE, TASK_QUEUE_DROP */
    uint64_t queue;
    uint64_t from; /* TASK_CANCEL */
    uint64_t to;
    int64_t unix_ms;
};
struct record_task_resource {
    uint64_t queue;
    uint64_t number;
    const char *fn;
    struct wire_bytes args;
};
enum record_worker_state { RECORD_WORKER_LIVE, RECORD_WORKER_LEFT, RECORD_WORKER_LOST };
struct record_task_worker {
    const char *job;
    uint64_t index;
    uint64_t incarnation;
    uint64_t node; /* incarnation of the node that it lives in, 0 = none */
    const char *host;
    uint64_t pid;
    uint64_t slots;
    uint64_t takes;
    enum record_worker_state state;
    int64_t unix_ms; /* since when */
};

struct record {
    enum record_kind kind;
    union {
        struct record_broker broker;
        struct record_job job;
        struct record_job_asleep job_asleep;
        struct record_forget forget;
        struct record_generation generation;
        struct record_node node;
        struct record_progress progress;
        struct record_notice notice;
        struct record_event event;
        struct record_round round;
        struct record_participant participant;
        struct record_checkpoint checkpoint;
        struct record_launch launch;
        struct record_host host;
        struct record_shard shard;
        struct record_file file;
        struct record_shards_gone shards_gone;
        struct record_policy policy;
        struct record_pin pin;
        struct record_custom custom;
        struct record_history history;
        struct record_task_queue task_queue;
        struct record_task task;
        struct record_task_part task_part;
        struct record_task_range task_range;
        struct record_task_resource task_resource;
        struct record_task_worker task_worker;
    } u;
};

#endif
