/* held - why each checkpoint stays: the keep policies that want it, its pins, or that it is the
 * newest. The policies' own meaning is schema/rules/keep.h, as in the broker. */
#ifndef TOOLS_HELD_H
#define TOOLS_HELD_H

#include "schema/rules/policies.h"
#include "tools/tool.h"

#include <jansson.h>

struct held {
    const struct muster_checkpoint_row *rows; /* borrowed */
    size_t count;
    bool known; /* else the broker is too old to tell the policies */
    struct keep_policies policies;
    unsigned *wanted; /* owned; a bit a rule, beside rows */
    size_t newest;    /* index; count: none */
};

/* rows: all checkpoints of tool->job; borrowed until held_free. */
struct held held_find(struct tool *tool, const muster_rows_t *rows);
void held_free(struct held *held);

/* "latest 2", "pin ci": `rank` counts from 0. False: there is no such one. */
bool held_by(const struct held *held, size_t row, size_t rank, char *text, size_t size);
/* All of them, ", " between; "-": nothing holds it. */
void held_text(const struct held *held, size_t row, char *text, size_t size);
json_t *held_json(const struct held *held, size_t row); /* an array of texts; new */

#endif
