/* lone_node - one node of a world of two, over real sockets: the broker and the other rank are the
 * test, which says what its script says. The node's program runs on a thread of its own, as one
 * training process would.
 * Owns: the pretended broker's sockets, the node's options, its program, what both saw.
 * Never: an answer that was not asked for, but acknowledgements, PROBE and ALIVE; rows. */
#ifndef TESTS_SUPPORT_LONE_NODE_H
#define TESTS_SUPPORT_LONE_NODE_H

#include <muster/node.h>

#include "schema/wire/wire.h"
#include "tests/support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define LONE_DEADLINE_MS 8000

struct lone {
    char directory[SCRATCH_PATH_MAX];
    /* the broker */
    void *context, *router, *xpub;
    char command[128], events[128];
    uint8_t route[16];
    int route_size;
    uint64_t incarnation, seq, epoch;
    struct arena arena;
    struct wire_msg heard;
    int saves_told;                /* SAVED messages among what was heard */
    int failures_told;             /* ... and RESTORE_FAILED */
    int reports_told;              /* ... and REPORT */
    enum muster_status not_stored; /* what requests are acknowledged with; OK: they are taken */
    bool all_live;                 /* what it answers to a node that suspects the other rank */
    const char *signer;            /* of the broker; NULL = it signs nothing */
    int nag; /* a signal that this process gets as long as the broker waits; 0 = none */
    /* the node's program */
    struct muster_node_options options; /* may be changed before lone_start */
    muster_state_t *state;
    int64_t weight; /* steps that were done */
    muster_node_t *node;
    pthread_t thread;
    enum muster_status open_status, run_status, close_status;
    struct muster_error error;
    _Atomic bool slow;         /* the step waits until this is false */
    _Atomic bool in_slow_step; /* it waits */
    _Atomic int in_step;       /* steps that have begun */
    _Atomic int fail_code;     /* what the step returns */
    _Atomic bool hold;         /* the step begins a hold */
    _Atomic bool stop;         /* the loop ends by itself */
    int close_code;            /* what the program closes with */
    _Atomic int on_error_calls;
    struct muster_error on_error_seen;
};

extern struct lone lone; /* made again by lone_setup */

int lone_setup(void **state);
int lone_teardown(void **state);
int64_t lone_now_ms(void);

/* --- the node's program ----------------------------------------------------------------------- */

void lone_start(void);
void lone_await_steps(int count);

void lone_step_is_slow(void); /* of a program of one's own: waits as the step does */
void lone_hold_in_step(void); /* returns when the program waits in a step */
void lone_end(void);          /* stops the program and waits for it */
/* The program closes by itself; the broker hears LEAVE. */
void lone_await_leave(void);

/* --- the broker ------------------------------------------------------------------------------- */

/* To the node; by_event: published. */
void lone_transmit(struct wire_msg *message, bool by_event);
/* An event, by DEALER: it cannot get lost. */
void lone_say(struct wire_event event);
/* An event of round 1 whose only member is the node. */
void lone_say_with_member(enum wire_event_kind kind, enum wire_cause cause, int64_t step,
                          uint64_t flags);
/* Hears and answers until a message of this type came; it is in lone.heard. */
const struct wire_msg *lone_await(enum wire_type type);
void lone_welcome(void);           /* awaits HELLO */
void lone_welcome_and_start(void); /* ... and lets the steps begin */
void lone_refuse(enum muster_status code, bool retry);

#endif
