/* manifest_same - see manifest_same.h. */
#include "tests/support/manifest_same.h"

#include <string.h>

static bool same_shard(const struct manifest_shard *a, const struct manifest_shard *b)
{
    if (a->rank != b->rank || a->incarnation != b->incarnation || a->file_count != b->file_count)
        return false;
    for (size_t i = 0; i < a->file_count; i++) {
        if (a->files[i].bytes != b->files[i].bytes ||
            strcmp(a->files[i].path, b->files[i].path) != 0 ||
            strcmp(a->files[i].checksum, b->files[i].checksum) != 0)
            return false;
    }
    return true;
}

bool manifest_same_checkpoint(const struct manifest *a, const struct manifest *b)
{
    if (strcmp(a->job, b->job) != 0 || a->generation != b->generation || a->round != b->round ||
        a->step != b->step || a->layout != b->layout || a->shard_count != b->shard_count)
        return false;
    for (size_t i = 0; i < a->shard_count; i++) {
        if (!same_shard(&a->shards[i], &b->shards[i]))
            return false;
    }
    return true;
}
