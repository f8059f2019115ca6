/* job - all that is known of one job. */
#ifndef BROKER_CORE_JOB_H
#define BROKER_CORE_JOB_H

#include "broker/core/contract/core.h"
#include "broker/core/state/generation.h"
#include "broker/core/state/hosts.h"
#include "broker/core/state/keep_state.h"
#include "broker/core/state/notice.h"
#include "broker/core/state/peer.h"
#include "broker/core/state/round.h"
#include "schema/rules/counts.h"
#include "schema/rules/plan.h"

struct checkpoint {               /* a committed one that counts */
    struct record_checkpoint row; /* path, metrics: owned below */
    char *path;
    char *metrics;
    bool given_up; /* its manifest could not be written in this launch */
};

struct lineage_start {
    uint64_t id;  /* of a start of the broker */
    uint64_t seq; /* the newest event when it began */
};
struct lineage {                              /* lineage.c */
    struct lineage_start starts[LINEAGE_MAX]; /* the newest ones, oldest first */
    size_t count;
    char text[LINEAGE_MAX * (16 + 1 + 20 + 1) + 1]; /* of them, for the row */
};

struct job {
    char name[JOB_NAME_MAX + 1];
    int64_t state_unix_ms;
    uint64_t seq;
    struct lineage lineage;
    uint64_t round; /* highest number used */
    char save_now_id[NOTICE_ID_MAX + 1];
    uint64_t save_now_round;
    int64_t created_unix_ms;
    struct generation gen; /* gen.generation 0: none yet */
    struct peer **peers;   /* all of this generation, the ended ones too */
    size_t peers_count;
    size_t peers_capacity;
    struct peer **trainers; /* [world_size]: the live holder of each rank, or NULL */
    struct notice *notices; /* of this generation */
    struct hosts *hosts;    /* NULL: none has come by itself */
    struct round rounds[ROUNDS_ACTIVE_MAX];
    struct checkpoint *checkpoints; /* ascending step */
    size_t checkpoints_count, checkpoints_capacity;
    struct counts_launch *launches; /* all that took steps */
    size_t launches_count, launches_capacity;
    struct keep_state keep;
    struct outcome outcomes[OUTCOMES_MAX]; /* ring */
    size_t outcomes_next;
    uint64_t outcomes_from; /* the ring had no room for this one, or one below it: see
                               round_known_above */
    struct want want;       /* the save that is to be opened */
    struct want want_row;   /* as the database has it */
    uint64_t want_before;   /* as round.attempts_before */
    int64_t
        want_not_before_boot_ms; /* after a broker start: give the generation time to come back */
    uint64_t *partly;            /* rounds of large imports that were cut short: import.c */
    size_t partly_count, partly_capacity;
    int64_t policy_step; /* last decided or skipped by SAVE_AT, -1 */
    bool policy_skipped;
    int64_t policy_pending;  /* asked for while a round was open, -1 */
    uint64_t save_p95_ms;    /* longest save seen */
    int64_t step_p95_ms;     /* of its slowest rank, over all launches; 0 = never measured */
    struct plan_saves saves; /* over all launches */
    struct grace plan;
    struct grace plan_row;    /* as the database has it */
    int64_t progress_boot_ms; /* last progress rows */
    int64_t fan_out_ms;       /* last measured */
    int64_t emitted_boot_ms;  /* when seq last rose */
    struct silence {          /* as it was at that moment */
        int64_t at_boot_ms, least_boot_ms, second_boot_ms;
        uint64_t least_rank;
    } silence;
    int64_t asked_boot_ms;  /* when its ranks were pinged for a process of another launch */
    int64_t timer_boot_ms;  /* when job_tick is due */
    uint64_t settled_step;  /* core->steps when it was settled last */
    int64_t import_told_ms; /* when an event told of one */
    bool moved; /* a process came, went, failed or told a notice: settling looks at each */
    struct job *next;
};

#endif
