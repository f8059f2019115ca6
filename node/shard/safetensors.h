/* safetensors - a state written into a safetensors file, and read back.
 * Owns: one file for the time of a call, and one buffer of FS_CHUNK_BYTES; a file of any size costs
 * no more memory than that and its header.
 * Invariants: a file that save reported is whole and durable; one that save did not report is gone.
 * Restore reads a file twice: first all of it against its checksum, then into the user's memory.
 * One pass could do both only by overwriting the state before knowing that the file is good, or by
 * holding a copy of the whole state; and a training state that a damaged file has half overwritten
 * is lost, when it could have gone on from another file. */
#ifndef NODE_SHARD_SAFETENSORS_H
#define NODE_SHARD_SAFETENSORS_H

#include "node/shard/safetensors_header.h"
#include "schema/manifest.h"

/* Creates the file (E_EXISTS if it is there: untouched), writes, fsyncs; the directory's name for it
 * is the caller's to sync. Blocks for the disk. Reads the state's memory.
 * E_SAVE: the disk (path and cause in err, errno in code); the file is removed. E_NOMEM. */
enum muster_status safetensors_save(const char *path, const struct muster_state *state,
                                    const struct safetensors_fact *facts, size_t fact_count,
                                    uint64_t *ret_bytes, char ret_checksum[MANIFEST_CHECKSUM_SIZE],
                                    struct muster_error *err);

/* Fills the state's memory from the file, which must have exactly these bytes and this checksum.
 * Entries of the file that the state does not have are skipped.
 * E_NOT_FOUND, E_IO; E_CORRUPT: size, checksum or header; E_RESTORE: an entry of the state is
 * missing there or has another type or shape (named); E_UNSUPPORTED, E_NOMEM. On each of these the
 * state's memory is as before, except when err says that the file changed or failed while it was
 * being read the second time: then the state is partly overwritten, and must not be trained on. */
enum muster_status safetensors_restore(const char *path, uint64_t bytes, const char *checksum,
                                       const struct muster_state *state, struct muster_error *err);

#endif
