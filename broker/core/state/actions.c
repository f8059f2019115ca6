/* actions - the list of actions that a batch of inputs asks for. */
#include "broker/core/state/state.h"

void actions_init(struct actions *actions)
{
    memset(actions, 0, sizeof *actions);
    arena_init(&actions->arena, 0);
}

void actions_clear(struct actions *actions)
{
    actions->count = 0;
    arena_reset(&actions->arena);
}

void actions_free(struct actions *actions)
{
    free(actions->items);
    arena_free(&actions->arena);
    memset(actions, 0, sizeof *actions);
}
