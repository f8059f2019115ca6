/* authority_cells - which role may send which message, by role: written once more than in the
 * broker's table, and not taken from it. */
#ifndef TESTS_SUPPORT_AUTHORITY_CELLS_H
#define TESTS_SUPPORT_AUTHORITY_CELLS_H

#include "schema/keys/keys.h"
#include "schema/wire/wire.h"

struct authority_message {
    enum wire_type type;
    bool up; /* of a client */
};
extern const struct authority_message authority_messages[]; /* all of wire.def */
extern const size_t authority_message_count;

bool authority_cell(enum key_role role, const struct authority_message *message);

#endif
