/* counts - which checkpoints count. A launch that started goes on from the step that it resumed. So
 * checkpoints that earlier launches saved beyond that step no longer count. The broker asks this of
 * its rows, and a reader of a directory of its manifests. Pure. */
#ifndef SCHEMA_COUNTS_H
#define SCHEMA_COUNTS_H

#include "schema/manifest/manifest.h"

/* The same question in SQL, about a row of `checkpoint`. */
#define COUNTS_SQL(checkpoint) "NOT " COUNTS_NOT_SQL(checkpoint)
#define COUNTS_NOT_SQL(checkpoint)                             \
    "EXISTS (SELECT 1 FROM launch l WHERE l.job = " checkpoint \
    ".job AND l.generation > " checkpoint ".generation AND l.began_step < " checkpoint ".step)"

struct counts_launch { /* one that started: a launch that took no step gave up nothing */
    uint64_t generation;
    int64_t began_step;
};

/* The launches of one job, in any order; the checkpoint that this generation saved at this step. */
bool counts_among(const struct counts_launch *launches, size_t count, uint64_t generation,
                  int64_t step);
/* Where the launch of a manifest began. If that does not tell: the greatest step possible. */
int64_t counts_began(const struct manifest *manifest);

/* --- by the manifests of a directory ---------------------------------------------------------- */

struct counts_item { /* of one manifest, which tells of its checkpoint and of its launch */
    const char *job; /* borrowed; only those of one job have to do with each other */
    uint64_t generation;
    int64_t step;
    int64_t began_step;
    int64_t created_unix_ms;
    bool counts; /* the answer */
};

struct counts_item counts_item_of(const struct manifest *manifest);
/* Fills in counts. A launch that saved nothing after a checkpoint gave it up neither, whatever its
 * number: numbers begin again with a database that was lost. */
void counts_mark(struct counts_item *items, size_t count);
/* Does a checkpoint count that may not be among these items? */
bool counts_beside(const struct counts_item *items, size_t count, const struct counts_item *item);

#endif
