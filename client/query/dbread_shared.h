/* dbread_shared - a copy in memory of the records that brokers share (fenced/fenced_log.h).
 * Owns: the copy, the connection to the shared database.
 * Never: writes there; rights to read are enough. No file: nothing is left behind. */
#ifndef CLIENT_DBREAD_SHARED_H
#define CLIENT_DBREAD_SHARED_H

#include "schema/status.h"

#include <sqlite3.h>
#include <stdbool.h>

struct dbread_shared;

/* Nothing is connected yet. *ret_shared owned: dbread_shared_close. MUSTER_E_UNSUPPORTED: built
 * without libpq. */
enum muster_status dbread_shared_open(const char *uri, int timeout_ms,
                                      struct dbread_shared **ret_shared, struct muster_error *err);
void dbread_shared_close(struct dbread_shared **shared); /* NULL-safe; nulls */

/* Is what was copied all that there is? Asks, and makes *ret_db what it is now. *ret_db is borrowed
 * until the next call. gone_fn is called before another *ret_db takes the place of the last. */
enum muster_status dbread_shared_renew(struct dbread_shared *shared, void (*gone_fn)(void *arg),
                                       void *arg, sqlite3 **ret_db, struct muster_error *err);

/* "DATABASE on HOST", without a password. Borrowed. */
const char *dbread_shared_name(const struct dbread_shared *shared);

#endif
