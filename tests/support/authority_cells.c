/* authority_cells - see authority_cells.h. */
#include "tests/support/authority_cells.h"

enum { DOWN, UP };

const struct authority_message authority_messages[] = {
#define MSG(TYPE, number, way, ...) {WIRE_##TYPE, way == UP},
#include "schema/wire/wire.def"
#undef MSG
};
const size_t authority_message_count = sizeof authority_messages / sizeof *authority_messages;

static const enum wire_type viewers[] = {WIRE_HEARTBEAT, WIRE_QUERY};
static const enum wire_type operators[] = {WIRE_HEARTBEAT, WIRE_QUERY,  WIRE_NOTICE, WIRE_CANCEL,
                                           WIRE_PIN,       WIRE_UNPIN,  WIRE_DROP,   WIRE_GONE,
                                           WIRE_SAVE_NOW,  WIRE_FORGET, WIRE_IMPORT, WIRE_HOST};
static const enum wire_type not_nodes[] = {WIRE_SAVE_NOW, WIRE_FORGET};

static bool among(enum wire_type type, const enum wire_type *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == type)
            return true;
    return false;
}

bool authority_cell(enum key_role role, const struct authority_message *message)
{
    if (!message->up)
        return false;
    if (role == KEY_NODE)
        return !among(message->type, not_nodes, sizeof not_nodes / sizeof *not_nodes);
    if (role == KEY_OPERATOR)
        return among(message->type, operators, sizeof operators / sizeof *operators);
    return role == KEY_VIEWER && among(message->type, viewers, sizeof viewers / sizeof *viewers);
}
