/* superseded - which checkpoints of a directory a later launch gave up, by their manifests alone:
 * it went back to an earlier step and trained on from there. The broker has it on record; who reads
 * a directory finds it out. Pure; memory of its own for the time of a call. */
#ifndef SCHEMA_SUPERSEDED_H
#define SCHEMA_SUPERSEDED_H

#include "schema/manifest/manifest.h"

struct superseded_item { /* of one manifest */
    const char *job;     /* borrowed; only those of one job have to do with each other */
    uint64_t generation;
    int64_t step;
    int64_t beyond; /* what earlier launches saved behind this step was given up by its launch */
    int64_t created_unix_ms;
    bool superseded; /* the answer */
};

struct superseded_item superseded_item_of(const struct manifest *manifest);
/* Fills in superseded. A launch that is older by the clock gives up nothing, whatever its number:
 * numbers begin anew with a database that was lost. False: no memory. */
bool superseded_mark(struct superseded_item *items, size_t count);
/* Whether one that is not among them was given up by their launches. False also: no memory. */
bool superseded_by(const struct superseded_item *items, size_t count,
                   const struct superseded_item *item);

#endif
