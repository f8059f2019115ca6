/* manifest - see manifest.h. */
#include "schema/manifest.h"

#include "schema/error.h"
#include "schema/json_sure.h"
#include "schema/metrics.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What manifest_parse returns: the manifest first, so that its address is this one's. */
struct parsed {
    struct manifest manifest;
    json_t *root; /* owns every string but these */
    char *metrics;
    char *custom;
    struct manifest_shard *shards;
    struct wire_file *files;
};

static enum muster_status bad(struct muster_error *err, enum muster_status status, const char *what)
{
    return error_set(err, status, "a manifest %s; it is not used", what);
}

/* --- rules --------------------------------------------------------------------------------- */

bool manifest_checksum_ok(const char *text)
{
    const size_t prefix = sizeof MANIFEST_CHECKSUM_PREFIX - 1;

    return strlen(text) == MANIFEST_CHECKSUM_SIZE - 1 &&
           memcmp(text, MANIFEST_CHECKSUM_PREFIX, prefix) == 0 &&
           strspn(text + prefix, "0123456789abcdef") == 32;
}

static bool plain_text(const char *text, size_t max)
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

    if (!plain_text(path, FILE_PATH_MAX) || strchr(path, '\\') != NULL)
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

static const char *shard_problem(const struct manifest *manifest,
                                 const struct manifest_shard *shard, uint64_t *bytes)
{
    if (shard->rank >= manifest->world_size)
        return "has a shard of a rank outside its world";
    if (shard->file_count > FILES_SHARD_MAX)
        return "has a shard of too many files";
    for (size_t i = 0; i < shard->file_count; i++) {
        const struct wire_file *file = &shard->files[i];

        if (file->path == NULL || !manifest_path_ok(file->path))
            return "has a file path that is empty, absolute, too long or leaves the directory";
        if (file->bytes > (uint64_t)INT64_MAX - *bytes) /* all files together, too */
            return "has a file of an impossible size";
        *bytes += file->bytes;
        if (file->checksum == NULL || !manifest_checksum_ok(file->checksum))
            return "has a checksum that is not \"xxh3-128:\" and 32 digits";
    }
    return NULL;
}

static bool is_beyond(int64_t number)
{
    return number > MANIFEST_NUMBER_MAX;
}

static const char *number_problem(const struct manifest *m)
{
    if (m->generation == 0 || m->round == 0)
        return "has a generation or round below 1";
    if (m->generation > (uint64_t)MANIFEST_NUMBER_MAX || m->round > (uint64_t)MANIFEST_NUMBER_MAX)
        return "has a generation or round that no job comes to (above 2^61)";
    if (m->step < 0 || m->total_run_calls < 0 || m->created_unix_ms < 0)
        return "has a negative step, number of calls or time";
    if (is_beyond(m->step) || is_beyond(m->total_run_calls) || is_beyond(m->created_unix_ms))
        return "has a step, number of calls or time that no job comes to (above 2^61)";
    if (m->resumed_known && (m->resumed_step < 0 || m->resumed_step > m->step))
        return "has a resumed step that is negative or beyond its own";
    if (m->epoch < -1 || m->step_in_epoch < -1 || m->data_position < -1)
        return "has an epoch, step in epoch or data position below -1";
    return NULL;
}

/* NULL: all rules hold but those about duplicates, which need sorting. */
static const char *problem_of(const struct manifest *m)
{
    const char *number = number_problem(m);
    uint64_t bytes = 0;

    if (m->job == NULL || !plain_text(m->job, JOB_NAME_MAX))
        return "has no valid job name";
    if (number != NULL)
        return number;
    if (m->layout != LAYOUT_REPLICATED && m->layout != LAYOUT_SHARDED)
        return "has an unknown layout";
    if (m->world_size == 0 || m->world_size > WORLD_SIZE_MAX)
        return "has an impossible world size";
    if (m->cause == NULL || !plain_text(m->cause, NAME_MAX_BYTES))
        return "has no valid cause";
    if (m->layout == LAYOUT_REPLICATED && m->shard_count != 1)
        return "is replicated but has not exactly one shard";
    if (m->layout == LAYOUT_SHARDED && m->shard_count != m->world_size)
        return "is sharded but has not one shard for each rank";
    for (size_t i = 0; i < m->shard_count; i++) {
        const char *problem = shard_problem(m, &m->shards[i], &bytes);

        if (problem != NULL)
            return problem;
    }
    return NULL;
}

static int by_rank(const void *a, const void *b)
{
    uint64_t x = ((const struct manifest_shard *)a)->rank;
    uint64_t y = ((const struct manifest_shard *)b)->rank;

    return (x > y) - (x < y);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct wire_file *)a)->path, ((const struct wire_file *)b)->path);
}

/* Sorts an own copy in place. Files of different shards cannot share a name unnoticed either: their
 * paths begin with rank and incarnation, which restore checks, and ranks are unique. */
static const char *sort_and_check(struct manifest_shard *shards, size_t count)
{
    qsort(shards, count, sizeof *shards, by_rank);
    for (size_t i = 0; i < count; i++) {
        struct wire_file *files = (struct wire_file *)(uintptr_t)shards[i].files; /* own copy */

        if (i > 0 && shards[i].rank == shards[i - 1].rank)
            return "has two shards of one rank";
        if (shards[i].file_count < 2)
            continue;
        qsort(files, shards[i].file_count, sizeof *files, by_path);
        for (size_t k = 1; k < shards[i].file_count; k++) {
            if (strcmp(files[k].path, files[k - 1].path) == 0)
                return "has one file path twice";
        }
    }
    return NULL;
}

const struct manifest_shard *manifest_shard_of(const struct manifest *manifest, uint64_t rank)
{
    for (size_t i = 0; i < manifest->shard_count; i++) {
        if (manifest->shards[i].rank == rank)
            return &manifest->shards[i];
    }
    return NULL;
}

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

/* --- render -------------------------------------------------------------------------------- */

static struct manifest_shard *copy_shards(const struct manifest *m, struct wire_file **ret_files)
{
    struct manifest_shard *shards = calloc(m->shard_count + 1, sizeof *shards);
    struct wire_file *files;
    size_t total = 0;

    for (size_t i = 0; i < m->shard_count; i++)
        total += m->shards[i].file_count;
    files = calloc(total + 1, sizeof *files);
    if (shards == NULL || files == NULL) {
        free(shards);
        free(files);
        return NULL;
    }
    *ret_files = files;
    for (size_t i = 0; i < m->shard_count; i++) {
        shards[i] = m->shards[i];
        shards[i].files = files;
        for (size_t k = 0; k < shards[i].file_count; k++)
            *files++ = m->shards[i].files[k];
    }
    return shards;
}

static json_t *shard_json(const struct manifest_shard *shard)
{
    char incarnation[17];
    json_t *files = json_array();
    json_t *object;

    snprintf(incarnation, sizeof incarnation, "%016" PRIx64, shard->incarnation);
    for (size_t i = 0; i < shard->file_count; i++) {
        const struct wire_file *file = &shard->files[i];

        if (json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "path", file->path, "bytes",
                                                   (json_int_t)file->bytes, "checksum",
                                                   file->checksum)) != 0) {
            json_decref(files);
            return NULL;
        }
    }
    object = json_pack("{s:I, s:s, s:o}", "rank", (json_int_t)shard->rank, "incarnation",
                       incarnation, "files", files); /* takes files, also when it fails */
    return object;
}

static bool add_object(json_t *root, const char *key, const char *text)
{
    json_error_t why;
    bool nomem;

    if (text == NULL || *text == '\0')
        return true;
    return json_object_set_new(root, key, json_sure_read(text, strlen(text), &why, &nomem)) == 0;
}

static json_t *manifest_json(const struct manifest *m, const struct manifest_shard *shards)
{
    json_t *list = json_array();
    json_t *root;

    for (size_t i = 0; i < m->shard_count; i++) {
        if (json_array_append_new(list, shard_json(&shards[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    root = json_pack("{s:i, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}",
                     "muster_manifest", MANIFEST_FORMAT, "job", m->job, "generation",
                     (json_int_t)m->generation, "round", (json_int_t)m->round, "step",
                     (json_int_t)m->step, "layout", wire_layout_name(m->layout), "world_size",
                     (json_int_t)m->world_size, "epoch", (json_int_t)m->epoch, "step_in_epoch",
                     (json_int_t)m->step_in_epoch, "data_position", (json_int_t)m->data_position,
                     "total_run_calls", (json_int_t)m->total_run_calls, "created_unix_ms",
                     (json_int_t)m->created_unix_ms, "cause", m->cause, "shards", list);
    if (!add_object(root, "metrics", m->metrics) || !add_object(root, "custom", m->custom) ||
        (m->resumed_known &&
         json_object_set_new(root, "resumed_step", json_integer(m->resumed_step)) != 0)) {
        json_decref(root);
        return NULL;
    }
    return root;
}

enum muster_status manifest_render(const struct manifest *manifest, char **ret_text,
                                   size_t *ret_size, struct muster_error *err)
{
    struct wire_file *files = NULL;
    struct manifest_shard *shards;
    json_t *root;
    char *text = NULL;
    const char *problem = problem_of(manifest);

    if (problem == NULL && manifest->metrics != NULL && !metrics_ok(manifest->metrics))
        problem = "has metrics that are no object of names and numbers";
    if (problem == NULL && manifest->custom != NULL && !custom_ok(manifest->custom))
        problem = "has custom metadata that is no object, or too long";
    if (problem != NULL)
        return bad(err, MUSTER_E_ARGUMENT, problem);
    shards = copy_shards(manifest, &files);
    if (shards == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a manifest");
    problem = sort_and_check(shards, manifest->shard_count);
    root = problem == NULL ? manifest_json(manifest, shards) : NULL;
    if (root != NULL)
        text = json_sure_write(root, JSON_SORT_KEYS | JSON_INDENT(1));
    json_decref(root);
    free(shards);
    free(files);
    if (problem != NULL)
        return bad(err, MUSTER_E_ARGUMENT, problem);
    if (text == NULL) /* jansson tells the two apart no better */
        return bad(err, MUSTER_E_ARGUMENT, "holds text that is not UTF-8, or there is no memory");
    if (strlen(text) > MANIFEST_BYTES_MAX) {
        free(text);
        return bad(err, MUSTER_E_ARGUMENT, "would be larger than its limit");
    }
    *ret_size = strlen(text);
    *ret_text = text;
    return MUSTER_OK;
}

/* --- parse --------------------------------------------------------------------------------- */

static bool get_int(const json_t *object, const char *key, int64_t *ret)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value))
        return false;
    *ret = json_integer_value(value);
    return true;
}

static bool get_unsigned(const json_t *object, const char *key, uint64_t *ret)
{
    int64_t value;

    if (!get_int(object, key, &value) || value < 0)
        return false;
    *ret = (uint64_t)value;
    return true;
}

static bool get_text(const json_t *object, const char *key, const char **ret)
{
    const char *value = json_string_value(json_object_get(object, key));

    if (value == NULL)
        return false;
    *ret = value;
    return true;
}

static bool parse_incarnation(const json_t *object, uint64_t *ret)
{
    const char *text;

    if (!get_text(object, "incarnation", &text) || strlen(text) != 16 ||
        strspn(text, "0123456789abcdef") != 16)
        return false;
    *ret = strtoull(text, NULL, 16);
    return true;
}

static const char *parse_shard(const json_t *object, struct wire_file *files,
                               struct manifest_shard *ret)
{
    const json_t *list = json_object_get(object, "files");

    if (!get_unsigned(object, "rank", &ret->rank) || !parse_incarnation(object, &ret->incarnation))
        return "has a shard without a valid rank or incarnation";
    ret->files = files;
    ret->file_count = json_array_size(list);
    for (size_t i = 0; i < ret->file_count; i++) {
        const json_t *file = json_array_get(list, i);

        if (!get_text(file, "path", &files[i].path) ||
            !get_unsigned(file, "bytes", &files[i].bytes) ||
            !get_text(file, "checksum", &files[i].checksum))
            return "has a file without path, bytes or checksum";
    }
    return NULL;
}

/* Older ones have none. */
static const char *parse_resumed(const json_t *root, struct manifest *m)
{
    if (json_object_get(root, "resumed_step") == NULL)
        return NULL;
    m->resumed_known = true;
    return get_int(root, "resumed_step", &m->resumed_step) ? NULL
                                                           : "has a resumed_step that is no number";
}

static const char *parse_head(const json_t *root, struct manifest *m)
{
    const char *layout;

    if (!get_text(root, "job", &m->job) || !get_unsigned(root, "generation", &m->generation) ||
        !get_unsigned(root, "round", &m->round) || !get_int(root, "step", &m->step) ||
        !get_text(root, "layout", &layout) || !get_unsigned(root, "world_size", &m->world_size) ||
        !get_int(root, "epoch", &m->epoch) || !get_int(root, "step_in_epoch", &m->step_in_epoch) ||
        !get_int(root, "data_position", &m->data_position) ||
        !get_int(root, "total_run_calls", &m->total_run_calls) ||
        !get_int(root, "created_unix_ms", &m->created_unix_ms) ||
        !get_text(root, "cause", &m->cause))
        return "lacks a field, or one has the wrong type";
    m->layout = strcmp(layout, wire_layout_name(LAYOUT_REPLICATED)) == 0 ? LAYOUT_REPLICATED
                : strcmp(layout, wire_layout_name(LAYOUT_SHARDED)) == 0  ? LAYOUT_SHARDED
                                                                         : LAYOUT_NONE;
    return parse_resumed(root, m);
}

/* A missing object is none. */
static const char *parse_object(const json_t *root, const char *key, char **ret_text,
                                bool *ret_nomem)
{
    const json_t *value = json_object_get(root, key);

    if (value == NULL)
        return NULL;
    if (!json_is_object(value))
        return "has metrics or custom metadata that are no objects";
    *ret_text = json_sure_write(value, JSON_SORT_KEYS | JSON_COMPACT);
    *ret_nomem = *ret_text == NULL;
    return *ret_nomem ? "found no memory" : NULL;
}

static const char *parse_facts(const json_t *root, struct parsed *parsed, bool *ret_nomem)
{
    const char *problem = parse_object(root, "metrics", &parsed->metrics, ret_nomem);

    if (problem == NULL)
        problem = parse_object(root, "custom", &parsed->custom, ret_nomem);
    parsed->manifest.metrics = parsed->metrics;
    parsed->manifest.custom = parsed->custom;
    return problem;
}

/* Fills parsed->shards and files; bounded by what the text can hold, which MANIFEST_BYTES_MAX bounds. */
static const char *parse_shards(const json_t *list, struct parsed *parsed, bool *ret_nomem)
{
    size_t total = 0;
    size_t used = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *files = json_object_get(json_array_get(list, i), "files");

        if (!json_is_array(files) || json_array_size(files) > FILES_SHARD_MAX)
            return "has a shard without files, or with too many";
        total += json_array_size(files);
    }
    parsed->manifest.shard_count = json_array_size(list);
    parsed->shards = calloc(parsed->manifest.shard_count + 1, sizeof *parsed->shards);
    parsed->files = calloc(total + 1, sizeof *parsed->files);
    if (parsed->shards == NULL || parsed->files == NULL) {
        *ret_nomem = true;
        return "found no memory";
    }
    parsed->manifest.shards = parsed->shards;
    for (size_t i = 0; i < parsed->manifest.shard_count; i++) {
        const char *problem =
            parse_shard(json_array_get(list, i), parsed->files + used, &parsed->shards[i]);

        if (problem != NULL)
            return problem;
        used += parsed->shards[i].file_count;
    }
    return NULL;
}

static enum muster_status parse_root(const json_t *root, struct parsed *parsed,
                                     struct muster_error *err)
{
    int64_t format;
    bool nomem = false;
    const json_t *list = json_object_get(root, "shards");
    const char *problem = NULL;

    if (!get_int(root, "muster_manifest", &format) || format < 1)
        return bad(err, MUSTER_E_CORRUPT, "has no format number");
    if (format > MANIFEST_FORMAT)
        return error_set(err, MUSTER_E_VERSION,
                         "a manifest has format %lld, this muster reads up to %d; use that newer "
                         "muster",
                         (long long)format, MANIFEST_FORMAT);
    problem = parse_head(root, &parsed->manifest);
    if (problem == NULL && !json_is_array(list))
        problem = "has no shards";
    if (problem == NULL && json_array_size(list) > WORLD_SIZE_MAX)
        problem = "has too many shards";
    if (problem == NULL)
        problem = parse_facts(root, parsed, &nomem);
    if (problem == NULL)
        problem = parse_shards(list, parsed, &nomem);
    if (problem == NULL)
        problem = problem_of(&parsed->manifest);
    if (problem == NULL)
        problem = sort_and_check(parsed->shards, parsed->manifest.shard_count);
    if (problem == NULL)
        return MUSTER_OK;
    return bad(err, nomem ? MUSTER_E_NOMEM : MUSTER_E_CORRUPT, problem);
}

enum muster_status manifest_parse(const char *text, size_t size, struct manifest **ret_manifest,
                                  struct muster_error *err)
{
    json_error_t why;
    struct parsed *parsed;
    struct manifest *manifest;
    enum muster_status status;
    bool nomem;

    if (size > MANIFEST_BYTES_MAX)
        return bad(err, MUSTER_E_CORRUPT, "is larger than its limit");
    parsed = calloc(1, sizeof *parsed);
    if (parsed == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a manifest");
    manifest = &parsed->manifest;
    parsed->root = json_sure_read(text, size, &why, &nomem);
    if (parsed->root == NULL) {
        manifest_destroy(&manifest);
        if (nomem)
            return error_set(err, MUSTER_E_NOMEM, "no memory to read a manifest");
        return error_set(err, MUSTER_E_CORRUPT,
                         "a manifest is not JSON (line %d: %s); it is not used", why.line,
                         why.text);
    }
    status = parse_root(parsed->root, parsed, err);
    if (status != MUSTER_OK)
        manifest_destroy(&manifest);
    else
        *ret_manifest = manifest;
    return status;
}

void manifest_destroy(struct manifest **manifest)
{
    struct parsed *parsed = manifest == NULL ? NULL : (struct parsed *)(void *)*manifest;

    if (parsed == NULL)
        return;
    json_decref(parsed->root);
    free(parsed->metrics);
    free(parsed->custom);
    free(parsed->shards);
    free(parsed->files);
    free(parsed);
    *manifest = NULL;
}
