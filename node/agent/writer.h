/* writer - the thread that writes manifests, removes aborted rounds and deletes checkpoints, beside
 * the agent's. Manifests go before deletions, even between the files of a deletion that has begun.
 * Deletions are dropped when the writer is destroyed: the broker, which decided on them, asks
 * again. Owns: its queue and its thread, which starts with the first job: most nodes never need it.
 * Never: a shard's content; the decision to write or remove. All signals are blocked in it. */
#ifndef NODE_WRITER_H
#define NODE_WRITER_H

#include "node/shard/dir.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer;

struct writer_result {
    uint64_t checkpoint;
    bool deleted; /* of a deletion; else of a manifest */
    enum muster_status status;
    const char *path; /* MUSTER_OK: the checkpoint's directory */
    const char *text; /* else: why not */
};
/* Called on the writer's thread with the outcome of each manifest and deletion; borrows it for the
 * call. */
typedef void writer_done_fn(const struct writer_result *result, void *arg);

/* root and job are copied. E_NOMEM. */
enum muster_status writer_create(const char *root, const char *job, writer_done_fn *done, void *arg,
                                 struct writer **ret_writer, struct muster_error *err);
/* How checkpoints are called from here on; before the first manifest. Copies. */
void writer_set_names(struct writer *writer, const struct dir_names *names);
/* From here on no further deletion begins: the broker asks again. */
void writer_end_deletions(struct writer *writer);
/* Waits at most limit_ms until all that was queued is done, but for deletions that have not begun.
 * False: it is not; the thread is left behind with all that it uses, also what `done` is called
 * with. NULL-safe. */
bool writer_destroy(struct writer **writer, int64_t limit_ms);

/* Neither waits. Bytes are copied. E_NOMEM, E_BUSY (no thread to be had). */
enum muster_status writer_manifest(struct writer *writer, uint64_t checkpoint, const void *bytes,
                                   size_t size, struct muster_error *err);
enum muster_status writer_discard(struct writer *writer, uint64_t generation, uint64_t round,
                                  uint64_t nonce, struct muster_error *err);

/* The same for a round that an earlier launch left: in the order of deletions, and dropped with
 * them. */
enum muster_status writer_clear_left(struct writer *writer, uint64_t generation, uint64_t round,
                                     struct muster_error *err);

/* Deletes a committed checkpoint, see dir_delete.h. Strings are copied. */
enum muster_status writer_delete(struct writer *writer, uint64_t generation, uint64_t round,
                                 int64_t step, const char *path, const char *trash,
                                 struct muster_error *err);

bool writer_is_busy(struct writer *writer); /* any thread; deletions that wait do not count */

#endif
