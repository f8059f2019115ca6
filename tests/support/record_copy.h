/* record_copy - a record whose strings live as long as whoever keeps them says.
 * Owns: which strings each kind of record has. */
#ifndef TESTS_SUPPORT_RECORD_COPY_H
#define TESTS_SUPPORT_RECORD_COPY_H

#include "schema/sql/record.h"

/* Copies text (may be NULL) to where it lives long enough. */
typedef const char *record_keep_fn(void *arg, const char *text);

/* row with every string kept. An event's members are left out: a database has them in its encoded
 * body only. */
struct record record_copy(const struct record *row, record_keep_fn *keep, void *arg);

#endif
