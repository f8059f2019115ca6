/* moves - the states of a generation, a process and a round, and which may follow which.
 * Every change of such a state goes through here; only rows that are loaded set one as it was. A
 * move that is not in its table is a bug of ours: the broker stops, and its next
 * start reads the rows. */
#include "broker/core/state/state.h"

#include "schema/moves.h"

static const uint32_t generation_to[GENERATION_STATE_COUNT] = {
    [GENERATION_NONE] = MOVE_TO(GENERATION_JOINING),
    [GENERATION_JOINING] =
        MOVE_TO(GENERATION_RUNNING) | MOVE_TO(GENERATION_ENDING) | MOVE_TO(GENERATION_ENDED),
    [GENERATION_RUNNING] = MOVE_TO(GENERATION_ENDING) | MOVE_TO(GENERATION_ENDED),
    [GENERATION_ENDING] = MOVE_TO(GENERATION_ENDED),
};
const struct moves generation_moves = {"generation", wire_generation_state_name, generation_to,
                                       GENERATION_STATE_COUNT};

static const uint32_t peer_to[NODE_STATE_COUNT] = {
    [NODE_NONE] = MOVE_TO(NODE_JOINED),
    [NODE_JOINED] =
        MOVE_TO(NODE_RESTORED) | MOVE_TO(NODE_LEFT) | MOVE_TO(NODE_LOST) | MOVE_TO(NODE_FENCED),
    [NODE_RESTORED] =
        MOVE_TO(NODE_JOINED) | MOVE_TO(NODE_LEFT) | MOVE_TO(NODE_LOST) | MOVE_TO(NODE_FENCED),
};
const struct moves peer_moves = {"process", wire_node_state_name, peer_to, NODE_STATE_COUNT};

static const uint32_t round_to[ROUND_STATE_COUNT] = {
    [ROUND_NONE] = MOVE_TO(ROUND_FREEZING) | MOVE_TO(ROUND_DECIDED) | MOVE_TO(ROUND_UNCHANGED) |
                   MOVE_TO(ROUND_ABORTED),
    [ROUND_FREEZING] = MOVE_TO(ROUND_DECIDED) | MOVE_TO(ROUND_ABORTED) | MOVE_TO(ROUND_UNCHANGED),
    [ROUND_DECIDED] = MOVE_TO(ROUND_WRITING) | MOVE_TO(ROUND_COMMITTED) | MOVE_TO(ROUND_ABORTED),
    [ROUND_WRITING] = MOVE_TO(ROUND_COMMITTED) | MOVE_TO(ROUND_ABORTED),
};
const struct moves round_moves = {"round", wire_round_state_name, round_to, ROUND_STATE_COUNT};

void generation_move(struct generation *generation, enum wire_generation_state to)
{
    MUST(moves_allow(&generation_moves, generation->state, to));
    generation->state = to;
}

void peer_move(struct peer *peer, enum wire_node_state to)
{
    MUST(moves_allow(&peer_moves, peer->state, to));
    peer->state = to;
    peer->job->moved = peer->job->keep.changed = true;
}

void round_move(struct round *round, enum wire_round_state to)
{
    MUST(moves_allow(&round_moves, round->state, to));
    round->state = to;
}
