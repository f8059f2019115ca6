/* blank_rows - an answer of a broker, made by hand: rows of zeros and empty texts, which a test
 * fills in. */
#ifndef TESTS_UNIT_TOOLS_BLANK_ROWS_H
#define TESTS_UNIT_TOOLS_BLANK_ROWS_H

#include <muster/client.h>

#include <stddef.h>

/* So many rows of that query, a name of schema/sql/queries.def. Owned: muster_rows_destroy. */
muster_rows_t *blank_rows(const char *query, size_t count);

/* Its rows, to be filled in: BLANK(job, rows)[0].job = "train". */
#define BLANK(kind, rows) ((struct muster_##kind##_row *)muster_rows_##kind##s(rows))

#endif
