/* round - one agreement on a save step, its members, and how the newest ones ended. */
#ifndef BROKER_CORE_ROUND_H
#define BROKER_CORE_ROUND_H

#include "broker/core/state/notice.h"
#include "broker/core/state/peer.h"
#include "schema/sql/record.h"

#define OUTCOMES_MAX \
    CORE_OUTCOMES_MAX /* rounds whose outcome a returning node can be told without the database */

struct participant {
    struct peer *peer; /* NULL once the peer is forgotten */
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
    int64_t at_step_boot_ms;
    int64_t saving_boot_ms; /* when its save was last seen to go on, 0 = never */
    uint64_t saving_bytes;  /* how far it had come */
    uint64_t files_taken;
};

struct round {
    bool used;
    uint64_t round;
    uint64_t generation;
    uint64_t attempt;
    uint64_t attempts_before; /* of the cause that a termination joined: they do not count for it */
    enum wire_cause cause;
    enum wire_round_state state;
    int64_t step;
    bool aborted_steps;
    int64_t culprit_rank;
    unsigned reason_code;
    char reason[512];
    char plan[GRACE_TEXT_MAX + 1]; /* a termination: why it was frozen when it was */
    bool final;
    bool held; /* trainers wait for the commit. Forgotten by a start of the broker: then as told */
    int64_t deadline_boot_ms; /* 0 = none */
    int64_t opened_boot_ms;   /* BOOT_UNKNOWN between load and start: of another boot */
    int64_t opened_unix_ms;
    int64_t decided_unix_ms;
    int64_t captured_unix_ms;
    int64_t ended_unix_ms;
    int64_t margin_ms;
    int64_t freeze_until_boot_ms;
    int64_t show_boot_ms; /* freezing: its members become rows then, for people */
    bool shown;           /* they are: each report changes its row */
    int64_t way_until_boot_ms;
    struct participant *parts; /* by rank, ascending */
    size_t count;
    size_t reported;                     /* of them, to the freeze */
    uint64_t nonce;                      /* of a decided one: names the life of its directory */
    struct record_checkpoint checkpoint; /* strings: job's, "", metrics */
    char *metrics;                       /* as its lowest writer told, NULL = none */
};

struct outcome {
    uint64_t round;
    enum wire_round_state state;
    enum wire_cause cause;
    int64_t step;
    uint64_t generation;
    uint64_t attempt;
    bool final; /* aborted, and not to be tried again */
};

struct want { /* all zero: no save is wanted */
    enum wire_cause cause;
    uint64_t attempt;   /* number the next round of it gets */
    bool aborted_steps; /* freeze with abort: a member was lost or failed */
};

#endif
