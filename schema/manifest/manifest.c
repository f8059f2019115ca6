/* manifest - see manifest.h. */
#include "schema/error.h"
#include "schema/manifest/manifest_rules.h"

#include <stdlib.h>
#include <string.h>

enum muster_status(manifest_bad)(struct muster_error *err, enum muster_status status,
                                 const char *what)
{
    return error_set(err, status, "a manifest %s; it is not used", what);
}

/* --- rules --------------------------------------------------------------------------------- */

static bool manifest_is_sum(const char *text, const char *prefix, size_t digits)
{
    const size_t size = strlen(prefix);

    return strncmp(text, prefix, size) == 0 && strlen(text + size) == digits &&
           strspn(text + size, "0123456789abcdef") == digits;
}

bool manifest_checksum_is_strong(const char *text)
{
    return manifest_is_sum(text, MANIFEST_STRONG_PREFIX, 64);
}

bool manifest_checksum_ok(const char *text)
{
    return manifest_is_sum(text, MANIFEST_CHECKSUM_PREFIX, 32) || manifest_checksum_is_strong(text);
}

static void manifest_sum_text(const char *prefix, const unsigned char *sum, size_t size,
                              char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    char *at = stpcpy(ret_text, prefix);

    for (size_t i = 0; i < size; i++) {
        *at++ = digits[sum[i] >> 4];
        *at++ = digits[sum[i] & 15];
    }
    *at = '\0';
}

void manifest_checksum_text(const unsigned char sum[16], char ret_text[MANIFEST_CHECKSUM_SIZE])
{
    manifest_sum_text(MANIFEST_CHECKSUM_PREFIX, sum, 16, ret_text);
}

void manifest_strong_text(const unsigned char sum[32], char ret_text[MANIFEST_CHECKSUM_SIZE])
{
    manifest_sum_text(MANIFEST_STRONG_PREFIX, sum, 32, ret_text);
}

static bool manifest_plain_text(const char *text, size_t max)
{
    const unsigned char *s = (const unsigned char *)text;

    if (*s == '\0' || strlen(text) > max)
        return false;
    for (; *s != '\0'; s++) {
        if (*s < 0x20 || *s == 0x7f)
            return false;
    }
    return true;
}

bool manifest_path_ok(const char *path)
{
    const char *part = path;

    if (!manifest_plain_text(path, FILE_PATH_MAX) || strchr(path, '\\') != NULL)
        return false;
    for (;;) {
        size_t length = strcspn(part, "/");

        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (part[length] == '\0')
            return true;
        part += length + 1;
    }
}

const char *manifest_file_problem(const struct wire_file *file, uint64_t *bytes)
{
    if (file->path == NULL || !manifest_path_ok(file->path))
        return "has a file path that is empty, absolute, too long or leaves the directory";
    if (file->bytes > (uint64_t)INT64_MAX - *bytes) /* all files together, too */
        return "has a file of an impossible size";
    *bytes += file->bytes;
    if (file->checksum == NULL || !manifest_checksum_ok(file->checksum))
        return "has a checksum that is not \"xxh3-128:\" and 32 digits, nor \"blake2b-256:\" "
               "and 64";
    return NULL;
}

static bool manifest_is_beyond(int64_t number)
{
    return number > MANIFEST_NUMBER_MAX;
}

static const char *manifest_number_problem(const struct manifest *m)
{
    if (m->generation == 0 || m->round == 0)
        return "has a generation or round below 1";
    if (m->generation > (uint64_t)MANIFEST_NUMBER_MAX || m->round > (uint64_t)MANIFEST_NUMBER_MAX)
        return "has a generation or round that no job comes to (above 2^61)";
    if (m->step < 0 || m->total_run_calls < 0 || m->created_unix_ms < 0)
        return "has a negative step, number of calls or time";
    if (manifest_is_beyond(m->step) || manifest_is_beyond(m->total_run_calls) ||
        manifest_is_beyond(m->created_unix_ms))
        return "has a step, number of calls or time that no job comes to (above 2^61)";
    if (m->resumed_known && (m->resumed_step < 0 || m->resumed_step > m->step))
        return "has a resumed step that is negative or beyond its own";
    if (m->epoch < -1 || m->step_in_epoch < -1 || m->data_position < -1)
        return "has an epoch, step in epoch or data position below -1";
    return NULL;
}

const char *manifest_head_problem(const struct manifest *m)
{
    const char *number = manifest_number_problem(m);

    if (m->job == NULL || !manifest_plain_text(m->job, JOB_NAME_MAX))
        return "has no valid job name";
    if (number != NULL)
        return number;
    if (m->layout != LAYOUT_REPLICATED && m->layout != LAYOUT_SHARDED)
        return "has an unknown layout";
    if (m->world_size == 0 || m->world_size > WORLD_SIZE_MAX)
        return "has an impossible world size";
    if (m->cause == NULL || !manifest_plain_text(m->cause, NAME_MAX_BYTES))
        return "has no valid cause";
    return NULL;
}

const char *manifest_count_problem(const struct manifest *m, size_t shard_count)
{
    if (m->layout == LAYOUT_REPLICATED && shard_count != 1)
        return "is replicated but has not exactly one shard";
    if (m->layout == LAYOUT_SHARDED && shard_count != m->world_size)
        return "is sharded but has not one shard for each rank";
    return NULL;
}

static int manifest_by_rank(const void *a, const void *b)
{
    uint64_t x = ((const struct manifest_shard *)a)->rank;
    uint64_t y = ((const struct manifest_shard *)b)->rank;

    return (x > y) - (x < y);
}

static int manifest_by_path(const void *a, const void *b)
{
    return strcmp(((const struct wire_file *)a)->path, ((const struct wire_file *)b)->path);
}

void manifest_sort_shards(struct manifest_shard *shards, size_t count)
{
    if (count > 1)
        qsort(shards, count, sizeof *shards, manifest_by_rank);
}

void manifest_sort_files(struct wire_file *files, size_t count)
{
    if (count > 1)
        qsort(files, count, sizeof *files, manifest_by_path);
}

const struct manifest_shard *manifest_shard_of(const struct manifest *manifest, uint64_t rank)
{
    for (size_t i = 0; i < manifest->shard_count; i++) {
        if (manifest->shards[i].rank == rank)
            return &manifest->shards[i];
    }
    return NULL;
}
