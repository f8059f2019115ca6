/* moves - which state of a machine may follow which, as a table of bits.
 * Owns: the question. Each machine owns its table: broker/core/state/moves.c,
 * node/core/member_moves.c. schema/PROTOCOL.md shows the tables;
 * tests/unit/broker/core/test_moves.c keeps page and tables equal. Pure. */
#ifndef SCHEMA_MOVES_H
#define SCHEMA_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#define MOVE_TO(state) (UINT32_C(1) << (state))

struct moves {
    const char *machine;
    const char *(*name)(unsigned state);
    const uint32_t *to; /* [count]: the states that may follow, as bits */
    unsigned count;
};

static inline bool moves_allow(const struct moves *moves, unsigned from, unsigned to)
{
    return from < moves->count && to < moves->count && (moves->to[from] & MOVE_TO(to)) != 0;
}

#endif
