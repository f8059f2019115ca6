/* written - a checkpoint that a program wrote by itself: muster's own only points to it.
 * Owns: what counts as one. Its metadata tell "path" and "bytes", as the Python modules for
 * frameworks do.
 * Never: a word to the terminal. written_measure alone touches the disk, and it only looks. */
#ifndef TOOLS_WRITTEN_H
#define TOOLS_WRITTEN_H

#include <muster/client.h>

#include "schema/limits.h"

#include <stdbool.h>

struct written {
    char path[PATH_BYTES_MAX + 1];
    int64_t bytes;
};
/* Of the text in the column "custom". false: muster's own checkpoint is all there is. */
bool written_find(const char *custom, struct written *ret_written);

/* "/own/checkpoint-8": where a person finds its bytes; muster's own path if there is no other.
 * *written is room for it. */
const char *written_place(const struct muster_checkpoint_row *row, struct written *written);

/* Is its path one of this host's file system? An object store's, as gs://bucket/run, is none. */
bool written_is_local(const struct written *written);

/* The bytes of all files under its path, as the Python modules count them. E_NOT_FOUND: nothing is
 * there. E_IO: it cannot be read. */
enum muster_status written_measure(const struct written *written, int64_t *ret_bytes,
                                   struct muster_error *err);

#endif
