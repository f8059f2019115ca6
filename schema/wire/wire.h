/* wire - the messages of muster, as structs, and their msgpack form.
 * Owns: the grammar (wire.def, WIRE.md), its limits, encode and decode.
 * Never: socket, clock, global state. Bytes from outside are checked for type, range, depth, count
 * and size before anything is allocated.
 *
 * Strings in a decoded message are NUL-terminated and live in the arena given to wire_decode; in a
 * message to encode they are borrowed, and NULL means empty. */
#ifndef SCHEMA_WIRE_H
#define SCHEMA_WIRE_H

#include "schema/arena.h"
#include "schema/limits.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers below travel on the wire and are stored: append only. */
enum wire_role {
    ROLE_NONE,
    ROLE_CHIEF,
    ROLE_WORKER,
    ROLE_PS,
    ROLE_EVALUATOR,
    ROLE_TOOL,
    ROLE_COUNT
};
/* Does it count in steps, so that a round needs it? */
static inline bool role_is_trainer(enum wire_role role)
{
    return role == ROLE_CHIEF || role == ROLE_WORKER;
}
enum wire_layout { LAYOUT_NONE, LAYOUT_REPLICATED, LAYOUT_SHARDED, LAYOUT_COUNT };
enum wire_cause {
    CAUSE_NONE,
    CAUSE_TERMINATION,
    CAUSE_OPERATOR,
    CAUSE_PERIOD,
    CAUSE_POLICY,
    CAUSE_ERROR,
    CAUSE_NOTICE, /* the first of two saves that a notice asked for; nobody leaves */
    CAUSE_COUNT
};
enum wire_round_state {
    ROUND_NONE,
    ROUND_FREEZING,
    ROUND_DECIDED,
    ROUND_WRITING,
    ROUND_COMMITTED,
    ROUND_ABORTED,
    ROUND_UNCHANGED,
    ROUND_STATE_COUNT
};
enum wire_generation_state { /* joining until all have restored */
                             GENERATION_NONE,
                             GENERATION_JOINING,
                             GENERATION_RUNNING,
                             GENERATION_ENDING,
                             GENERATION_ENDED,
                             GENERATION_STATE_COUNT
};
enum wire_node_state {
    NODE_NONE,
    NODE_JOINED,
    NODE_RESTORED,
    NODE_LEFT,
    NODE_LOST,
    NODE_FENCED,
    NODE_STATE_COUNT
};
enum wire_phase { /* what a node is doing, for `muster nodes` and culprits */
                  PHASE_NONE,
                  PHASE_JOINING,
                  PHASE_RESTORING,
                  PHASE_STEPPING,
                  PHASE_FROZEN,
                  PHASE_TO_STEP,
                  PHASE_SAVING,
                  PHASE_HOLDING,
                  PHASE_HOLD_SCOPE,
                  PHASE_CLOSING,
                  PHASE_ENDED,
                  PHASE_COUNT
};
enum wire_notice_kind {
    NOTICE_NONE,
    NOTICE_PREEMPT,
    NOTICE_TERMINATE,
    NOTICE_STOP,
    NOTICE_REBOOT,
    NOTICE_TIME_LIMIT,
    NOTICE_SIGNAL,
    NOTICE_USER,
    NOTICE_FREEZE,
    NOTICE_MIGRATE, /* the last two are no termination */
    NOTICE_KIND_COUNT
};
enum wire_leave_why {
    LEAVE_NONE,
    LEAVE_FINISHED,
    LEAVE_PREEMPTED,
    LEAVE_FAILED,
    LEAVE_ERROR,
    LEAVE_WHY_COUNT
};
enum wire_checkpoint_state {
    CHECKPOINT_NONE,
    CHECKPOINT_WRITING,
    CHECKPOINT_COMMITTED,
    CHECKPOINT_FAILED,
    CHECKPOINT_SUPERSEDED, /* only shown: committed, and it does not count */
    CHECKPOINT_DELETED,
    CHECKPOINT_DELETING, /* decided, on record, and not done yet */
    CHECKPOINT_STATE_COUNT
};
enum wire_task_state { /* an ended one never changes again */
                       TASK_NONE,
                       TASK_QUEUED,
                       TASK_LEASED,
                       TASK_DONE,
                       TASK_FAILED,
                       TASK_CANCELLED,
                       TASK_STATE_COUNT
};
enum wire_task_kind { /* what a lease is of */ TASK_KIND_TASK, TASK_KIND_RESOURCE };
enum wire_event_kind { /* fields that carry something are named; `round` etc. as in wire.def */
                       EVENT_NONE,
                       EVENT_GENERATION_OPENED, /* generation, step + checkpoint = resume choice */
                       EVENT_RESUME,  /* checkpoint, step, path: in place, restore it (checkpoint 0:
                                         start) */
                       EVENT_STARTED, /* all ranks restored: steps may begin */
                       EVENT_TERMINATION, /* rank, code = notice kind, left_ms, text = id, round it
                                             joined or 0 */
                       EVENT_NOTICE_CANCELLED, /* rank, incarnation (0: by a tool), text = id */
                       EVENT_FREEZE,           /* round, cause, members, flags ABORT, OTHERS */
                       EVENT_DECISION,  /* round, cause, step = S, members, nonce, flags OTHERS */
                       EVENT_COMMIT,    /* round, cause, step, checkpoint, rank = manifest writer */
                       EVENT_MANIFEST,  /* checkpoint, round, step, path */
                       EVENT_ABORT,     /* round, cause, rank = culprit, code, text, flags RETRY */
                       EVENT_UNCHANGED, /* round, cause, step, checkpoint */
                       EVENT_NOT_SAVED, /* a termination ends without a checkpoint: rank, code, text
                                         */
                       EVENT_PEER_ERROR, /* rank, code = status, step, text, flags ROUND_FOLLOWS */
                       EVENT_NODE_LOST,  /* rank, step, left_ms = age of its last word, text,
                                            ROUND_FOLLOWS */
                       EVENT_RANK_RESTARTED,   /* rank: ends the generation */
                       EVENT_JOIN_FAILED,      /* text: the missing ranks; ends the generation */
                       EVENT_RESTORE_FAILED,   /* rank, checkpoint, text; flags RETRY: an older one
                                                  follows */
                       EVENT_STUCK,            /* rank, step, text */
                       EVENT_SAVE_SKIPPED,     /* step: a policy save that will not be made, text */
                       EVENT_GENERATION_ENDED, /* generation, text */
                       EVENT_OBSERVER, /* incarnation, code, step, text: a ps or evaluator failed,
                                           could not restore or was lost; the job goes on */
                       EVENT_ORDER,    /* of an operator: text = who, and what; round: the one it is
                                          answered with */
                       EVENT_KIND_COUNT
};
#define EVENT_FLAG_ABORT 1u /* FREEZE: run on_error, report with no step in flight */
#define EVENT_FLAG_RETRY 2u /* ABORT, RESTORE_FAILED: another attempt follows */
#define EVENT_FLAG_IMPORTS \
    16u /* RESTORE_FAILED: rank 0 imports; the next launch goes on from that */
/* PEER_ERROR, NODE_LOST: serve a round first: the event's, or 0: one that is not open yet. */
#define EVENT_FLAG_ROUND_FOLLOWS 4u
/* FREEZE, DECISION: all ranks of the launch take part but those in `members`. In a decision the one
 * whose incarnation the event has saves; each does if it has none. Without this flag `members` are
 * those who take part, and who saves has the flag WRITER. */
#define EVENT_FLAG_OTHERS 8u
#define NOTICE_FLAG_AT_ONCE 1u  /* the time left is a guess, or no more steps are wanted */
#define NOTICE_FLAG_SAVE_NOW 2u /* save now too, when the freeze is planned for later */
#define NOTICE_FLAG_ASSUMED                                               \
    4u /* left_ms was not told, or is over: what is usual, or the default \
        */
#define NOTICE_FLAG_GRACE_PERIOD 8u /* left_ms is the job's grace_period_ms */
#define NOTICE_FLAG_TAKEN_BACK 256u /* in the broker's rows only: a tool withdrew it */
#define MEMBER_FLAG_WRITER 1u

/* Stored and shown texts of the enums above: "chief", "committed", "termination", ... */
const char *wire_role_name(unsigned role);
const char *wire_layout_name(unsigned layout);
const char *wire_cause_name(unsigned cause);
const char *wire_round_state_name(unsigned state);
const char *wire_generation_state_name(unsigned state);
const char *wire_node_state_name(unsigned state);
const char *wire_phase_name(unsigned phase);
const char *wire_notice_kind_name(unsigned kind);
const char *wire_leave_why_name(unsigned why);
const char *wire_checkpoint_state_name(unsigned state);
const char *wire_event_kind_name(unsigned kind);
const char *wire_task_state_name(unsigned state);
const char *wire_type_name(unsigned type);
unsigned wire_notice_kind_from_name(const char *name); /* NOTICE_NONE if unknown */
/* Does a notice of this kind end the process? Freezing and migrating do not; one that a newer
 * sender knows does, to be safe. */
bool wire_notice_ends(uint64_t kind);

struct wire_member {
    uint64_t rank;
    uint64_t incarnation;
    uint64_t flags;
};
struct wire_file {
    const char *path;
    uint64_t bytes;
    const char *checksum;
};
struct wire_notice_fact {
    const char *id;
    uint64_t kind;
    const char *source;
    int64_t left_ms; /* -1 = unknown */
    bool cancellable;
    const char *text;
    uint64_t flags; /* NOTICE_FLAG_* */
};

struct wire_notice_id {
    const char *id;
};
struct wire_bytes {
    const uint8_t *data;
    size_t size;
};
struct wire_task_entry { /* one to do */
    uint64_t queue;
    uint64_t number; /* of a resource: its own numbers */
    uint64_t attempt;
    uint64_t kind;       /* wire_task_kind */
    uint64_t serial;     /* of what this worker was given, from 1 on */
    uint64_t timeout_ms; /* 0 = none */
    const char *fn;
    struct wire_bytes args;
    struct wire_bytes uses; /* numbers of per-worker values, 4 bytes each, high byte first */
};
struct wire_ended_entry { /* how one ended */
    uint64_t queue;
    uint64_t number;
    uint64_t attempt;
    uint64_t kind;
    uint64_t state;  /* from a worker TASK_QUEUED: given back, it was not begun */
    uint64_t status; /* enum muster_status */
    int64_t code;    /* the handler's own */
    const char *text;
    uint64_t bytes; /* of the result; those above TASK_INLINE_MAX travel apart */
    struct wire_bytes result;
};
struct wire_lease_entry { /* one named */
    uint64_t queue;
    uint64_t number;
    uint64_t attempt;
    uint64_t kind;
    uint64_t code; /* the answer; in WORK_HELLO 1: it has ended */
};

/* Head of UP messages. */
struct wire_up {
    uint64_t request; /* 0 = not numbered */
    const char *job;
    uint64_t role;
    uint64_t rank;
    uint64_t incarnation;
    uint64_t generation;
    uint64_t broker_epoch; /* highest seen */
    uint64_t applied_seq;  /* cumulative acknowledgement of events */
};
/* Head of DOWN messages. */
struct wire_down {
    uint64_t start_id; /* random, one a broker start */
    uint64_t broker_epoch;
    const char *job; /* "" to tools */
    uint64_t generation;
    uint64_t last_seq; /* the job's newest event */
};

enum wire_type {
    WIRE_NONE = 0,
#define MSG(TYPE, number, direction, lower, ...) WIRE_##TYPE = number,
#include "schema/wire/wire.def"
#undef MSG
    WIRE_TYPE_MAX = 128
};

/* One struct a message, from the table. */
#define U(name, max) uint64_t name;
#define I(name) int64_t name;
#define B(name) bool name;
#define S(name, max) const char *name;
#define R(name, max)         \
    struct {                 \
        const uint8_t *data; \
        size_t size;         \
    } name;
#define L(name, kind, max)                       \
    struct {                                     \
        const struct wire_##kind##_entry *items; \
        size_t count;                            \
    } name;
#define wire_member_entry wire_member
#define wire_file_entry wire_file
#define wire_notice_entry wire_notice_fact
#define wire_notice_id_entry wire_notice_id
#define MSG(TYPE, number, direction, lower, ...) \
    struct wire_##lower {                        \
        __VA_ARGS__                              \
    };
#include "schema/wire/wire.def"
#undef MSG
#undef U
#undef I
#undef B
#undef S
#undef R
#undef L

struct wire_msg {
    enum wire_type type;
    struct wire_up up;     /* UP messages */
    struct wire_down down; /* DOWN messages */
    union {
#define MSG(TYPE, number, direction, lower, ...) struct wire_##lower lower;
#include "schema/wire/wire.def"
#undef MSG
    } u;
};

/* Time crosses the wire as what is left of it now: of an event, a hint or a snapshot, until that
 * deadline. 0: it has none. */
void wire_set_left(struct wire_msg *msg, int64_t deadline_boot_ms, int64_t now_boot_ms);

/* Encodes msg into buffer[capacity]. Returns the size, or 0 if it does not fit (a caller's bug) or
 * a field is over its limit. */
size_t wire_encode(const struct wire_msg *msg, uint8_t *buffer, size_t capacity);

/* Decodes one whole frame. Strings and lists are copied into arena, whose limit bounds them.
 * MUSTER_E_VERSION: another protocol version (type and head are then not to be trusted, except
 * that ret_msg->type is set if it could be read). MUSTER_E_PROTOCOL: anything else that is not as
 * it must be; err says what. MUSTER_E_NOMEM: the frame may be good, but the arena is full or memory
 * is out: end the batch and decode it again. ret_msg is written only on MUSTER_OK and, for its
 * type, E_VERSION. */
enum muster_status wire_decode(const uint8_t *frame, size_t size, struct arena *arena,
                               struct wire_msg *ret_msg, struct muster_error *err);

bool wire_is_up(unsigned type);      /* a known type of that direction? */
bool wire_is_task(unsigned type);    /* of coordinators and their workers */
bool wire_is_request(unsigned type); /* numbered and answered by ACK after the commit */

/* Deep copy into arena. Returns false when the arena is full. */
bool wire_copy(struct wire_msg *ret_copy, const struct wire_msg *msg, struct arena *arena);

/* A copy of text (NULL = "") that wire_encode accepts: at most max bytes, cut at a character, bytes
 * that are not UTF-8 replaced by '?'. NULL when the arena is full. */
char *wire_text_fit(struct arena *arena, const char *text, size_t max);
/* It can be sent as it is: valid UTF-8, at most `max` bytes. */
bool wire_text_ok(const char *text, size_t max);

/* Names one life of a round number: the same for all who were decided together, another after the
 * database was lost and numbers began again. Never 0; the order of members does not matter. */
uint64_t wire_round_nonce(const struct wire_member *members, size_t count);
/* The same, member by member: from a sum of 0; if the last one is 0 the nonce is 1. */
uint64_t wire_round_nonce_add(uint64_t sum, const struct wire_member *member);

/* A job name that may be used as topic, directory owner and key: see JOB_NAME_MAX. */
bool wire_job_name_ok(const char *name);
/* Makes a text that is not empty such a name, in place, up to its length: what may not stand in a
 * name becomes '-', at its beginning '_'. */
void wire_job_name_clean(char *name);

#endif
