/* member_rules - the invariants that the actions of a node's core must keep, whatever its broker,
 * its user and time do to it: what it says can be sent, is true and is numbered without a hole; its
 * orders to the training thread can be obeyed, and an end is for ever. */
#ifndef TESTS_FUZZ_MEMBER_RULES_H
#define TESTS_FUZZ_MEMBER_RULES_H

#include "tests/support/member_fixture.h"

#define RULES_SAVED_MAX 64
#define RULES_DELETES_MAX 10

struct member_rules {
    uint64_t applied_seq; /* highest that was said */
    bool ended;
    uint64_t saved[RULES_SAVED_MAX]; /* rounds that the thread saved */
    size_t saved_count;
    uint64_t past[RULES_SAVED_MAX]; /* rounds that it said to be beyond of */
    size_t past_count;
    bool told[RULES_DELETES_MAX];     /* by checkpoint: its deletion was heard of */
    bool deleting[RULES_DELETES_MAX]; /* the writer has it */
};

/* To be called after each input, before the actions are cleared. */
void member_rules_check(struct member_rules *rules, const struct member_fixture *f);

/* The thread tells that it saved for this round. */
void member_rules_saved(struct member_rules *rules, uint64_t round);

/* A DELETE is about to be heard; the writer is about to answer, or to be taken for lost. */
void member_rules_told(struct member_rules *rules, uint64_t checkpoint);
void member_rules_deleted(struct member_rules *rules, uint64_t checkpoint);

#endif
