/* dbread - reads a broker's database file.
 * Owns: the read-only connection. Statements are short: prepared, stepped to the end of a page,
 * finalised, so that the broker's WAL is never held back.
 * Never: writes (SQLITE_OPEN_READONLY), never immutable=1: the broker may be running. */
#ifndef CLIENT_DBREAD_H
#define CLIENT_DBREAD_H

#include "client/query_rows.h"

struct dbread;

/* Opens and checks path; see muster_client_open for the codes. *ret_db owned: dbread_close. */
enum muster_status dbread_open(const char *path, int busy_timeout_ms, struct dbread **ret_db,
                               struct muster_error *err);
void dbread_close(struct dbread **db); /* NULL-safe; nulls */

struct question { /* a query with its arguments; all borrowed */
    const char *query;
    const char *job;
    const char *text_arg;
    int64_t number_arg;
    int64_t after;     /* rows that are there already */
    bool keyed;        /* rows above number_arg in the order of a column: pages go on by that, so */
    size_t key_column; /* that none is missed or comes twice while others are removed */
};

/* Appends one page of rows. *ret_more: ask again with a greater `after`. */
enum muster_status dbread_page(struct dbread *db, const struct question *question,
                               muster_rows_t *rows, bool *ret_more, struct muster_error *err);

#endif
