/* dirs - see to it that the directory of a file exists. */
#ifndef BROKER_DIRS_H
#define BROKER_DIRS_H

#include "schema/status.h"

#include <stddef.h>

/* Creates the directories that are missing above `path`, with mode 0700. Each is on the disk when
 * this returns: a power cut must not take a directory with all that was written into it since.
 * MUSTER_E_IO names the directory; one that could not be made durable is not kept. */
enum muster_status dirs_make_parent(const char *path, struct muster_error *err);

/* Makes the names in a directory durable. Where that cannot be asked for (no right to read it, a
 * file system that has no such thing) there is nothing to wait for. MUSTER_E_IO. */
enum muster_status dirs_sync(const char *directory, struct muster_error *err);

/* The directory part of path ("." if it has none) into ret_directory. */
enum muster_status dirs_parent(const char *path, char *ret_directory, size_t capacity,
                               struct muster_error *err);

#endif
