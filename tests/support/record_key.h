/* record_key - what makes two records one row.
 * Owns: the primary keys of schema/sql, of the kinds that are rows by themselves but for those of
 * tasks. */
#ifndef TESTS_SUPPORT_RECORD_KEY_H
#define TESTS_SUPPORT_RECORD_KEY_H

#include "schema/sql/record.h"

#include <stdbool.h>
#include <stdint.h>

/* False of a kind that is no row, or has no key here. Only what is of the key is looked at. */
bool record_same_key(const struct record *a, const struct record *b);

/* Of the numbers in its key: few rows have the same and differ in a word. */
uint64_t record_key_hash(const struct record *row);

#endif
