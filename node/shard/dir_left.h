/* dir_left - rounds' directories that earlier launches left in <root>/.muster.
 * Owns: the search for them. Never: their removal (dir_remove_round), or the decision to remove
 * them. */
#ifndef NODE_SHARD_DIR_LEFT_H
#define NODE_SHARD_DIR_LEFT_H

#include <stddef.h>
#include <stdint.h>

struct dir_left {
    uint64_t generation;
    uint64_t round;
};

/* At most `max` of them, of generations below `generation`, in no order; none with a manifest,
 * which is written behind the commit only. A directory that cannot be read holds none. */
size_t dir_left_find(const char *root, uint64_t generation, struct dir_left *ret_left, size_t max);

#endif
