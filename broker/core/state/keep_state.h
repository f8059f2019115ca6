/* keep_state - what a job's policies, pins and deletions are, inside struct job. It belongs
 * to keep.c, given_up.c, pins.c and save_policy.c; see keep.h. */
#ifndef BROKER_CORE_KEEP_STATE_H
#define BROKER_CORE_KEEP_STATE_H

#include "schema/rules/policies.h"
#include "schema/sql/record.h"

struct job_policies { /* of the launch that told them; another launch has none until it tells its
                         own */
    uint64_t generation;
    char *keep_text;
    char *save_text;
    char trash[FILE_PATH_MAX + 1];
    struct keep_policies keep;
    struct save_policies save;
};

struct pin {
    uint64_t checkpoint;
    char id[NOTICE_ID_MAX + 1];
    int64_t until_unix_ms; /* as stored, 0 = until UNPIN */
    int64_t until_boot_ms; /* 0 = until UNPIN; BOOT_UNKNOWN between load and start */
};

struct deletion {
    uint64_t checkpoint;
    uint64_t generation;
    int64_t step;
    char *path;
    struct record_checkpoint row; /* strings: job's, path, metrics, trash */
    char *metrics;
    char *trash;
    int64_t send_boot_ms; /* not before */
    bool failed;          /* the hand that was told last could not */
};

struct given_up { /* it does not count, and is still on disk */
    struct record_checkpoint row;
    char *path;
    char *metrics;
};

struct keep_state {
    struct job_policies *policies; /* NULL: none were ever told */
    /* a fact by which a checkpoint may go; a DROP is none, it asks for that one alone */
    bool changed;
    bool final; /* of this launch: the newest is not protected once all ranks have finished ... */
    uint64_t final_rank; /* ... but this one, which said so */
    char failure[256];   /* why a deletion could not be carried out, the last one */
    struct deletion *deletions;
    size_t deletions_count, deletions_capacity;
    struct given_up *given_up;
    size_t given_up_count, given_up_capacity;
    struct pin *pins;
    size_t pins_count, pins_capacity;
    /* save_policy.c */
    int64_t saved_boot_ms;  /* when the last save began */
    bool committed;         /* one was, in this launch */
    int64_t saved_unix_ms;  /* the same, as a start read it; 0 = no round is known */
    int64_t retry_boot_ms;  /* no round by a policy before ... */
    int64_t retry_every_ms; /* ... which doubles while they come to nothing */
    uint64_t policy_round;  /* the last that was opened by one, 0 = none */
    int64_t run_ms;         /* of the launches that are over ... */
    uint64_t interruptions; /* ... and how many of them did not finish */
};

#endif
