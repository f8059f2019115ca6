/* core_rules - the invariants that the actions of a broker's core must keep, one step after
 * another, whoever says what to it: I1, I3, I4, I6, I7, I12 of PROTOCOL.md, and that all it says
 * can be sent. What the rows refer to is looked up in the fixture's database. */
#ifndef TESTS_FUZZ_CORE_RULES_H
#define TESTS_FUZZ_CORE_RULES_H

#include "tests/support/core_fixture.h"

#define RULES_ROUNDS_MAX 256
#define RULES_SAVES_MAX 512

struct core_rules {
    uint64_t seq;        /* of the last event written; it never comes again */
    uint64_t generation; /* newest */
    struct {
        uint64_t round;
        enum wire_round_state state;
        int64_t step;
        bool committed;
        bool deleting; /* decided, for good */
    } rounds[RULES_ROUNDS_MAX];
    size_t rounds_count;
    struct { /* a SAVED, whatever its answer */
        uint64_t round;
        uint64_t incarnation;
        int64_t step;
    } saves[RULES_SAVES_MAX];
    size_t saves_count;
    bool gives_up; /* somebody said that the newest is needed no more */
};

/* To be called after each input, before the actions are cleared. */
void core_rules_check(struct core_rules *rules, struct core_fixture *f);

/* A node is about to say SAVED. */
void core_rules_said(struct core_rules *rules, uint64_t incarnation,
                     const struct wire_saved *saved);

/* All nodes are silent from now on: every round ends, and so does the generation (I5). */
void core_rules_all_ends(struct core_rules *rules, struct core_fixture *f);

#endif
