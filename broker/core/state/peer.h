/* peer - one process of a launch, as the broker knows it. */
#ifndef BROKER_CORE_PEER_H
#define BROKER_CORE_PEER_H

#include "schema/wire/wire.h"

struct job;

enum gone_state { GONE_NONE, GONE_TOLD, GONE_PINGED };

struct peer { /* one incarnation of the newest generation */
    struct job *job;
    uint64_t incarnation;
    enum wire_role role;
    uint64_t rank;
    char host[HOST_MAX + 1];
    uint64_t pid;
    enum wire_node_state state;
    bool failed; /* told of an own failure: takes part in no further round */
    bool mapped; /* said HELLO to this broker start */
    uint64_t route;
    uint64_t last_request;
    unsigned last_code;
    uint64_t last_value;
    enum wire_leave_why leave_why;
    int64_t exit_code;
    int64_t joined_unix_ms;
    int64_t ended_unix_ms;
    /* progress */
    int64_t begun;
    int64_t done;
    unsigned phase;
    uint64_t phase_ms;
    uint64_t saving_bytes; /* as its last heartbeat has them */
    uint64_t step_p95_ms;
    uint64_t applied_seq;
    uint64_t named_round; /* the round that its last HELLO spoke of */
    uint64_t told_resume; /* an observer: what it was told to restore */
    bool reads_any;       /* an observer of before this start: what it was told is in no row */
    int64_t heard_boot_ms;
    int64_t heard_unix_ms;
    int64_t advanced_boot_ms; /* when begun last changed, or its save came on */
    int64_t told_boot_ms;     /* when it told begun by a heartbeat, 0 = not yet */
    bool stuck_said;
    int64_t pinged_boot_ms;   /* 0 = no ping without an answer since */
    int64_t suspects_boot_ms; /* since then it suspects another rank; 0 = it does not */
    bool progress_dirty;
    char sources[SOURCES_BYTES_MAX + 1]; /* for show alone */
    int64_t repeat_boot_ms;              /* next unicast repeat */
    int64_t repeat_every_ms;
    bool repeated; /* since the newest event: its acknowledgement says nothing of the fan-out */
    bool left_out; /* missed a freeze: not a member of the next round (replicated) */
    bool missed_freeze; /* one of this start of the broker */
    bool kept;          /* a launch that is being opened takes it over (servers.c) */
    /* its supervisor says that it ended (gone.c) */
    enum gone_state gone_state;
    unsigned gone_signo;
    int64_t gone_code;
    int64_t gone_boot_ms; /* when it was told, then when it was pinged */
    struct peer *next_hash;
};

#endif
