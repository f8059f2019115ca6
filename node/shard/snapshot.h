/* snapshot - a copy of a state's content at one moment, so that it can be written while the state
 * changes. Owns: the copy's memory, as large as the state; it is kept for the next one until
 * destroy; the threads that copy, which end before take returns. Never: a file, fork. */
#ifndef NODE_SHARD_SNAPSHOT_H
#define NODE_SHARD_SNAPSHOT_H

#include "node/shard/interrupt.h"
#include "node/shard/state.h"

#include <stdatomic.h>

struct snapshot { /* zero at first */
    struct muster_state *state;
    char *memory;
    uint64_t capacity_bytes;
};

/* snapshot->state is then the source as it is now, until the next take or clear. *copied_bytes (may
 * be NULL) grows by what is copied, as it goes. Nothing was taken: E_NOMEM; E_INTERRUPTED:
 * interrupt (NULL: nobody is asked) said so. */
enum muster_status snapshot_take(struct snapshot *snapshot, const struct muster_state *source,
                                 _Atomic uint64_t *copied_bytes, struct interrupt *interrupt,
                                 struct muster_error *err);
void snapshot_clear(struct snapshot *snapshot); /* idempotent */

#endif
