/* shard_contents - reads a committed checkpoint for a program that has not joined its job.
 * Owns: the manifest and one file at a time, for the time of a call.
 * Never: returns a byte whose sum was not checked; writes. All calls block for the disk.
 *
 * A tensor is checked by its own pieces' sums (shard_reshard.h), a file by its checksum in the
 * manifest. With `signer` the checkpoint has to be signed by that key.
 * rank: read that rank's shard alone; -1: all shards. */
#ifndef NODE_SHARD_SHARD_CONTENTS_H
#define NODE_SHARD_SHARD_CONTENTS_H

#include "node/shard/shard.h"

struct shard_contents {
    const char *checkpoint_path;
    const char *signer; /* NULL: no signature is asked for */
    int rank;
    struct interrupt *interrupt; /* NULL: nobody is asked whether to break a read off */
};

/* The manifest's own members and, in place of its shards, files and tensors by name:
 *   "files": {"shard-00000-….safetensors": {"bytes": 96, "checksum": "xxh3-128:…", "rank": 0}}
 *   "tensors": {"w": {"dtype": "F32", "shape": [3, 4], "bytes": 48, "ranks": 1}}
 * ranks: how many ranks have it, or a part of it. One that was saved in parts has "axis", and with
 * a rank also "begin"; without a rank its shape is that of the whole. Returned owned (free).
 * E_NOT_FOUND: no such checkpoint, or no shard of that rank. E_RESTORE: it is unfinished.
 * E_CORRUPT, E_SIGNATURE, E_VERSION, E_IO, E_NOMEM. */
enum muster_status shard_contents_text(const struct shard_contents *of, char **ret_text,
                                       struct muster_error *err);

/* Fills each entry of the state: from the tensor of its name, or from the file of that path.
 * Also E_NOT_FOUND: there is neither, and err names it. E_RESTORE: it has another type, shape or
 * size. E_INTERRUPTED. The state's memory is as before, unless err says that it is partly
 * overwritten. */
enum muster_status shard_contents_read(const struct shard_contents *of,
                                       const struct muster_state *state, struct muster_error *err);

#endif
