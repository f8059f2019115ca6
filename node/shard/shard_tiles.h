/* shard_tiles - checks that each split tensor is whole in what the ranks of a round saved.
 * The rank that finds the shards of all ranks in the round's directory looks at their headers.
 * Every rank looks after its own write, so the last one finds all shards. On a file system that
 * hides a new file for a while, maybe no rank does. Never: fails for anything but parts that leave
 * a hole, overlap, or do not agree on the whole. */
#ifndef NODE_SHARD_SHARD_TILES_H
#define NODE_SHARD_SHARD_TILES_H

#include "node/shard/shard.h"

#define SHARD_TILES_MAX ((size_t)1 << 22) /* parts of all ranks; beyond that nobody looks */

/* Reads the directory, and N headers if it holds the shards of all `world_size` ranks. MUSTER_OK:
 * whole, or not all are there, or nothing in `state` is split. E_SAVE: names tensor and ranks; code
 * ECANCELED: `watch` (NULL: nothing does) broke it off. */
enum muster_status shard_tiles_check(const char *round_dir, uint64_t world_size,
                                     const struct muster_state *state,
                                     struct safetensors_watch *watch, struct muster_error *err);

#endif
