/* dirs - see to it that the directory of a file exists. */
#ifndef BROKER_DIRS_H
#define BROKER_DIRS_H

#include "schema/status.h"

#include <stddef.h>

/* Creates what is missing above `path`, each with mode 0700. MUSTER_E_IO names the directory. */
enum muster_status dirs_make_parent(const char *path, struct muster_error *err);

/* The directory part of path ("." if it has none) into ret_directory. */
enum muster_status dirs_parent(const char *path, char *ret_directory, size_t capacity,
                               struct muster_error *err);

#endif
