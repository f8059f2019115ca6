/* member_moves - the states of a node's link to the broker and of its part in a round, and which
 * may follow which. Every change of such a state goes through here. A move that is not in its table
 * is an error of ours: it is made anyway, for training must not end because of it. Tests see it. */
#include "node/core/member_state.h"

#include "schema/moves.h"

static const char *link_name(unsigned state)
{
    static const char *const names[] = {"hello", "snapshot", "joined", "over"};

    return names[state];
}

static const uint32_t link_to[] = {
    [LINK_HELLO] =
        MOVE_TO(LINK_HELLO) | MOVE_TO(LINK_SNAPSHOT) | MOVE_TO(LINK_JOINED) | MOVE_TO(LINK_OVER),
    [LINK_SNAPSHOT] = MOVE_TO(LINK_HELLO) | MOVE_TO(LINK_JOINED) | MOVE_TO(LINK_OVER),
    [LINK_JOINED] = MOVE_TO(LINK_HELLO) | MOVE_TO(LINK_OVER),
    [LINK_OVER] = 0,
};
const struct moves link_moves = {"link", link_name, link_to, LINK_OVER + 1};

static const char *part_name(unsigned state)
{
    static const char *const names[] = {"none",      "frozen",   "thawed",   "to_step",
                                        "capturing", "captured", "committed"};

    return names[state];
}

static const uint32_t part_to[] = {
    [PART_NONE] = MOVE_TO(PART_FROZEN) | MOVE_TO(PART_THAWED) | MOVE_TO(PART_TO_STEP) |
                  MOVE_TO(PART_COMMITTED),
    [PART_FROZEN] = MOVE_TO(PART_NONE) | MOVE_TO(PART_THAWED) | MOVE_TO(PART_COMMITTED),
    [PART_THAWED] = MOVE_TO(PART_NONE) | MOVE_TO(PART_FROZEN) | MOVE_TO(PART_COMMITTED),
    [PART_TO_STEP] = MOVE_TO(PART_NONE) | MOVE_TO(PART_FROZEN) | MOVE_TO(PART_CAPTURING) |
                     MOVE_TO(PART_CAPTURED) | MOVE_TO(PART_COMMITTED),
    [PART_CAPTURING] = MOVE_TO(PART_NONE) | MOVE_TO(PART_FROZEN) | MOVE_TO(PART_CAPTURED) |
                       MOVE_TO(PART_COMMITTED),
    [PART_CAPTURED] = MOVE_TO(PART_NONE) | MOVE_TO(PART_FROZEN) | MOVE_TO(PART_COMMITTED),
    [PART_COMMITTED] = MOVE_TO(PART_NONE) | MOVE_TO(PART_FROZEN),
};
const struct moves part_moves = {"part", part_name, part_to, PART_COMMITTED + 1};

void link_move(struct member *m, enum link_state to)
{
    m->moved_wrong |= !moves_allow(&link_moves, m->link, to);
    m->link = to;
}

void part_move(struct member *m, enum part_state to)
{
    m->moved_wrong |= m->part != to && !moves_allow(&part_moves, m->part, to);
    m->part = to;
}

bool member_moved_wrong(const struct member *member)
{
    return member->moved_wrong;
}
