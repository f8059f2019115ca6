/* safetensors - a state written into a safetensors file, and read back.
 * Owns: one file for the time of a call; threads for its checksum (hasher.h, reader.h) and for a
 * large file's writes (direct.h); buffers of at most 17 MiB. A file of any size costs no more
 * memory than those, its header and its table of sums. Invariants: a file that save reported is
 * whole and durable; one that save did not report is gone.
 *
 * Restore reads each byte once, into the state's memory, and takes its checksum on the way. To know
 * before that the file is good would take a second reading, and twice the time. So wrong names,
 * types, shapes and sizes are found before a byte of the state is touched. Damage inside a tensor
 * is found after it, and then the state must not be trained on. A small file, up to
 * SAFETENSORS_VERIFY_FIRST_BYTES, is checked first. */
#ifndef NODE_SHARD_SAFETENSORS_H
#define NODE_SHARD_SAFETENSORS_H

#include "node/shard/checksum.h"
#include "node/shard/interrupt.h"
#include "node/shard/safetensors_header.h"
#include "schema/manifest/manifest.h"

#include <stdatomic.h>

#define SAFETENSORS_VERIFY_FIRST_BYTES ((uint64_t)8 << 20)

/* How a save is watched and broken off, from any thread. */
struct safetensors_watch {
    _Atomic uint64_t
        bytes; /* written so far, and again what of it the disk has: grows as long as it goes on */
    atomic_bool stop;            /* set it, and the save fails soon with ECANCELED */
    struct interrupt *interrupt; /* NULL = nobody is asked; the thread that saves sets stop by it */
};
/* Is it to be broken off? The thread that saves. NULL-safe. */
bool safetensors_is_stopped(struct safetensors_watch *watch);

/* Creates the file (E_EXISTS if it is there: untouched), writes, fsyncs; the directory's name for
 * it is the caller's to sync. Blocks for the disk. Reads the state's memory. watch may be NULL.
 * E_SAVE: the disk (path and cause in err, errno in code); the file is removed. E_NOMEM. */
enum muster_status safetensors_save(const char *path, const struct muster_state *state,
                                    const struct safetensors_fact *facts, size_t fact_count,
                                    struct safetensors_watch *watch, enum checksum_kind kind,
                                    uint64_t *ret_bytes, char ret_checksum[MANIFEST_CHECKSUM_SIZE],
                                    struct muster_error *err);

/* Fills the state's memory from the file, which must have exactly these bytes and this checksum.
 * Entries of the file that the state does not have are skipped.
 * E_NOT_FOUND, E_IO; E_CORRUPT: size, header or checksum, with the tensor that is damaged;
 * E_RESTORE: an entry of the state is missing there or has another type or shape (named);
 * E_UNSUPPORTED, E_NOMEM; E_INTERRUPTED: interrupt (NULL: nobody is asked) broke it off. On each of
 * these the state's memory is as before, except when err says that the state is partly overwritten:
 * damage inside a large file, or a file that changed or failed, or a program that was interrupted,
 * while it was read. */
enum muster_status safetensors_restore(const char *path, uint64_t bytes, const char *checksum,
                                       const struct muster_state *state,
                                       struct interrupt *interrupt, struct muster_error *err);
/* The status for a restore's caller, of one that ended with this one: E_INTERRUPTED if interrupt
 * broke it off. */
enum muster_status safetensors_told(enum muster_status status, const struct interrupt *interrupt,
                                    const char *path, struct muster_error *err);

/* A tensor of the file that the state has no entry for; "" if it has all, or the file cannot be
 * read. */
void safetensors_find_left(const char *path, const struct muster_state *state,
                           char ret_name[STATE_NAME_MAX + 1]);

#endif
