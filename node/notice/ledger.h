/* ledger - which notices of the sources were told to the node.
 * Owns: every notice that is known, by source, topic and key; which records were given for it.
 * Never: a clock, memory, a lock. Pure.
 *
 * The rule: the earliest time wins. A notice is told when it is new, and again (as a further
 * record) when its time moves earlier by LEDGER_STEP_MS or becomes known; a later time says
 * nothing. A notice that its source no longer says is withdrawn, with all its records, if it was
 * cancellable; else it stays. A notice that ends nothing (freeze, migrate) never takes the place of
 * one that does. If it becomes an end, it is told as one, whatever its time. An unknown time may be
 * now: no known one is sooner where there is little room. A notice that was cancelled from outside
 * is not told again while its source says the same. */
#ifndef NODE_NOTICE_LEDGER_H
#define NODE_NOTICE_LEDGER_H

#include "node/notice/base/source.h"

#define LEDGER_MAX 64      /* notices known at once */
#define LEDGER_STEP_MS 500 /* an earlier time within that is the same time */
#define LEDGER_TOLD_MAX \
    4 /* notices of ends that stand at once: a node has NOTICES_NODE_MAX in all ... */
#define LEDGER_REPORTS_MAX 1 /* ... and of those that end nothing */
#define LEDGER_HORIZON_MS                                                   \
    3600000 /* a time further ahead is known, and told when it comes nearer \
             */
#define LEDGER_OUT_MAX (2 * NOTICE_SET_MAX + LEDGER_MAX)

struct ledger_entry {
    const char *source; /* borrowed for ever */
    unsigned topic;
    bool present;            /* its source says it still */
    struct notice_item item; /* with the earliest time */
    uint64_t first, last;    /* numbers of its records; 0 = none */
    bool hushed;             /* all its records were cancelled from outside */
    struct notice_item said; /* by its source the last time before that, then */
    int64_t said_boot_ms;
};

struct ledger {
    struct ledger_entry entries[LEDGER_MAX];
    size_t count;
    uint64_t next_number; /* 1.. */
};

struct ledger_out {
    struct notice_record records[LEDGER_OUT_MAX];
    size_t count;
};

void ledger_init(struct ledger *ledger);
/* Takes what one topic of a source says now. Borrows source for ever. ret_out is overwritten. */
void ledger_say(struct ledger *ledger, const char *source, unsigned topic,
                const struct notice_set *set, int64_t now_boot_ms, struct ledger_out *ret_out);
/* Tells what had to wait: for its time to come nearer, for room. */
void ledger_tick(struct ledger *ledger, int64_t now_boot_ms, struct ledger_out *ret_out);
/* The record of this number was cancelled from outside: it is told again when its source says it
 * otherwise, or not and then again. A signal and the callback say something new each time. */
void ledger_forget(struct ledger *ledger, uint64_t number);

#endif
