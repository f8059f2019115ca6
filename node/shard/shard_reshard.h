/* shard_reshard - a sharded checkpoint of N ranks read by one of M: from each of the N files only
 * what this rank's entries need. Owns: one file at a time, and one buffer of a piece (sums.h).
 * Never: a byte of the state before every shard's header was read, and everything was found to fit.
 *
 * Bytes that are read are checked by the file's own sums: its table and header whole, then each
 * piece that a needed byte lies in. Such a piece is read whole for that. The manifest's checksum,
 * of the whole file, is not: `muster verify` reads everything. That a file is the one that the
 * manifest means is seen by its size and by the round, step and incarnation in its own metadata.
 *
 * An entry that is declared as split (struct state_split) is put together from the shards' parts,
 * which must not overlap. One that is not must be the same in every shard that has it: nobody could
 * say whose is meant by a rank that was not there. A rank's own comes from the shard of its number,
 * and from no other. */
#ifndef NODE_SHARD_SHARD_RESHARD_H
#define NODE_SHARD_SHARD_RESHARD_H

#include "node/shard/safetensors_file.h"
#include "node/shard/shard.h"

/* E_RESTORE: what does not fit, or is in no shard; the state is as before. E_CORRUPT: damage, with
 * file and tensor; the state is partly overwritten if err says so. E_IO, E_NOMEM. */
enum muster_status shard_reshard(const struct shard_restore *request,
                                 const struct manifest *manifest, struct muster_error *err);

/* Opens the file of a shard, and checks that its header and table of sums are whole and its facts
 * are the manifest's. ret_file borrows the memory of path. The caller closes it. E_RESTORE:
 * save_fn wrote the shard, or it has no sums. E_CORRUPT, E_IO, E_NOMEM. */
enum muster_status shard_reshard_open(const char *checkpoint_path, const struct manifest *manifest,
                                      const struct manifest_shard *shard, char path[FS_PATH_MAX],
                                      struct safetensors_file *ret_file, struct muster_error *err);

/* Whether this rank's own shard holds other parts than the state declares. False if it cannot be
 * told: the plain restore says what is wrong. */
bool shard_is_split_otherwise(const char *path, const struct muster_state *state);

#endif
