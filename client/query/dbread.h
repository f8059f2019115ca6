/* dbread - reads a broker's database file, or a copy of what brokers share (dbread_shared.h).
 * Owns: the read-only connection. Statements are short: prepared, stepped to the end of a page,
 * finalised, so that the broker's WAL is never held back.
 * Never: writes (SQLITE_OPEN_READONLY), never immutable=1: the broker may be running. */
#ifndef CLIENT_DBREAD_H
#define CLIENT_DBREAD_H

#include "client/query/query_rows.h"

struct dbread;

/* Opens and checks path, which may be a PostgreSQL address; see muster_client_open for the codes.
 * timeout_ms: for a file that is busy, and for a connection. *ret_db owned: dbread_close. */
enum muster_status dbread_open(const char *path, int timeout_ms, struct dbread **ret_db,
                               struct muster_error *err);
void dbread_close(struct dbread **db); /* NULL-safe; nulls */

/* The path, or "DATABASE on HOST", without a password. Borrowed. */
const char *dbread_name(const struct dbread *db);

/* Appends one page of rows. *ret_more: ask again with a greater `after`. */
enum muster_status dbread_page(struct dbread *db, const struct question *question,
                               muster_rows_t *rows, bool *ret_more, struct muster_error *err);

#endif
