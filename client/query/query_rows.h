/* query_rows - the answer to a query: an array of the public row structs, and their columns' names.
 * Owns: the array, its strings, the shapes (which column fills which member).
 * Never: SQLite, sockets. Rows come in as cells in the order of the SELECT (schema/sql/queries.h).
 */
#ifndef CLIENT_QUERY_ROWS_H
#define CLIENT_QUERY_ROWS_H

#include <muster/client.h>

#define ROWS_MAX 1000000 /* of one answer, over all its pages; the journal keeps 100,000 events */

struct cell {
    const char *text; /* NULL unless it is a text; need not be terminated */
    size_t size;      /* of text, bytes */
    int64_t integer;
};

/* Empty rows of that query (a name of schema/sql/queries.def); NULL: no memory, or no such query */
muster_rows_t *rows_create(const char *query);

/* Appends one row; copies. Cells beyond the known columns are left out, missing ones are 0 and "".
 * A cell of the other kind counts as missing. MUSTER_E_NOMEM, also beyond ROWS_MAX. */
enum muster_status rows_append(muster_rows_t *rows, const struct cell *cells, size_t count,
                               struct muster_error *err);

/* Steps as the job's program counts them (schema/paths.h); those that are not known stay -1. */
void rows_shift_steps(muster_rows_t *rows, int64_t offset);

struct question { /* a query with its arguments; all borrowed */
    const char *query;
    const char *job;
    const char *text_arg;
    int64_t number_arg;
    int64_t after;     /* rows that are there already */
    bool keyed;        /* rows above number_arg in the order of a column: pages go on by that, so */
    size_t key_column; /* that none is missed or comes twice while others are removed */
};
/* The question for the rows after these. If the question is keyed, it does not skip over each of
 * these again. */
void rows_go_on(const muster_rows_t *rows, struct question *question);

#endif
