/* shard_contents - what a committed checkpoint holds, for a program that reads one without its job.
 * Owns: the manifest and one file at a time, for the time of a call.
 * Never: a byte that no sum was checked of, or one that is written. All calls block for the disk.
 *
 * A tensor is checked by its own pieces' sums (shard_reshard.h), a file by the manifest's checksum
 * of it. With `signer` both are of a checkpoint that this key signed.
 * rank: that rank's shard alone, -1: all of them. */
#ifndef NODE_SHARD_SHARD_CONTENTS_H
#define NODE_SHARD_SHARD_CONTENTS_H

#include "node/shard/shard.h"

struct shard_contents {
    const char *checkpoint_path;
    const char *signer; /* NULL: no signature is asked for */
    int rank;
};

/* The manifest's own words and, in place of its shards, by name:
 *   "files": {"shard-00000-….safetensors": {"bytes": 96, "checksum": "xxh3-128:…", "rank": 0}}
 *   "tensors": {"w": {"dtype": "F32", "shape": [3, 4], "bytes": 48, "ranks": 1}}
 * ranks: so many have it, or a part of it. Of one that was saved in parts there is "axis", and
 * "begin" with a rank; without one the shape is that of the whole. Returned owned (free).
 * E_NOT_FOUND: no such checkpoint, or no shard of that rank. E_RESTORE: it is unfinished.
 * E_CORRUPT, E_SIGNATURE, E_VERSION, E_IO, E_NOMEM. */
enum muster_status shard_contents_text(const struct shard_contents *of, char **ret_text,
                                       struct muster_error *err);

/* Fills each entry of the state: from the tensor of its name, or from the file of that path.
 * Also E_NOT_FOUND: there is none, named. E_RESTORE: it has another type, shape or size. Memory of
 * the state is as before, except when err says that it is partly overwritten. */
enum muster_status shard_contents_read(const struct shard_contents *of,
                                       const struct muster_state *state, struct muster_error *err);

#endif
