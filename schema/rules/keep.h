/* keep - which checkpoints the keep policies want: a checkpoint that one rule wants stays. Owns:
 * what each rule means. Never: pins, restores or the newest checkpoint, which the caller that
 * deletes looks after; clock, state, I/O. The times are those of the commits, so that the answer is
 * the same whenever it is asked for. */
#ifndef SCHEMA_KEEP_H
#define SCHEMA_KEEP_H

#include "schema/rules/policies.h"

struct keep_item {
    int64_t step;
    int64_t committed_unix_ms;
    const char *metrics; /* JSON, "" = none; see metrics.h */
};

/* Items in ascending order of step. Sets ret_keep[i] for each. Without a rule all are kept.
 * False: memory is out, and nothing was set. */
bool keep_choose(const struct keep_policies *policies, const struct keep_item *items, size_t count,
                 bool *ret_keep);

#endif
