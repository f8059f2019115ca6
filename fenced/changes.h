/* changes - a batch of the fenced log, applied to a copy of the database.
 * Never: opens or closes the copy, or begins its transaction. Looks at what the rows were before,
 * so a copy that is not the same is found. */
#ifndef FENCED_CHANGES_H
#define FENCED_CHANGES_H

#include "schema/status.h"

#include <sqlite3.h>
#include <stddef.h>

/* MUSTER_E_CORRUPT: the log does not fit this copy. */
enum muster_status changes_apply(sqlite3 *db, const void *changes, size_t size,
                                 struct muster_error *err);

#endif
