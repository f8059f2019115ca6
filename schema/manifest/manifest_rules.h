/* manifest_rules - the rules of a manifest, for code that writes it or reads it piece by piece.
 * Each returns what is wrong, as the rest of "a manifest ...", or NULL. */
#ifndef SCHEMA_MANIFEST_RULES_H
#define SCHEMA_MANIFEST_RULES_H

#include "schema/manifest/manifest.h"

const char *manifest_head_problem(const struct manifest *manifest); /* all but its shards */
const char *manifest_count_problem(const struct manifest *manifest, size_t shard_count);
/* Adds the file's size to *bytes, which is that of all files before it. */
const char *manifest_file_problem(const struct wire_file *file, uint64_t *bytes);

void manifest_sort_shards(struct manifest_shard *shards, size_t count); /* by rank */
void manifest_sort_files(struct wire_file *files, size_t count);        /* by path */

enum muster_status manifest_bad(struct muster_error *err, enum muster_status status,
                                const char *what);
#ifdef __clang_analyzer__ /* as of error_set */
#define manifest_bad(err, status, what) ((manifest_bad)(err, status, what), (status))
#endif

#endif
