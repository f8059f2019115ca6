/* store_samples - one row of every kind, each field with a value of its own, and their comparison.
 */
#ifndef TESTS_UNIT_STORE_SAMPLES_H
#define TESTS_UNIT_STORE_SAMPLES_H

#include "broker/core/contract/core.h"

#define SAMPLE_JOB "words"
#define SAMPLE_GENERATION UINT64_C(3)
#define SAMPLE_ROUND UINT64_C(7)
#define SAMPLE_INCARNATION UINT64_C(0xfedcba9876543210) /* negative as SQLite sees it */

/* In an order that foreign keys allow: job before all others, round before checkpoint, ... The
 * sample of RECORD_LAUNCH went back behind none of the others. */
extern const struct record samples[];
extern const size_t samples_count;
const struct record *sample_of(enum record_kind kind);

/* Fails the test at the first field that differs. */
void assert_record_same(const struct record *a, const struct record *b);
void assert_event_same(const struct wire_event *a, const struct wire_event *b);

/* A batch of rows to persist, in a caller's array of actions. */
struct actions batch_of(const struct record *rows, size_t count, bool lazy, struct action *items);

#endif
