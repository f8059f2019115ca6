/* manifest_read - see manifest_read.h.
 *
 * The text is split, not parsed, by hand. Each element of "shards" is given to jansson by itself as
 * soon as it is whole, and is taken out of the text. The rest, with an empty list, is given to
 * jansson at the end. So nothing is accepted that jansson would not take as a whole: it sees every
 * byte but the commas and spaces between the elements. */
#include "schema/manifest/manifest_read.h"

#include "schema/arena.h"
#include "schema/error.h"
#include "schema/manifest/json_sure.h"
#include "schema/manifest/manifest_rules.h"
#include "schema/manifest/seal.h"
#include "schema/manifest/sign.h"
#include "schema/room.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The result: the manifest first, so that its address is this one's. */
struct parsed {
    struct manifest manifest;
    struct arena arena; /* owns the strings and files */
    char *metrics;
    char *custom;
    struct sign *sign;
    char signer[SIGN_PUBLIC_TEXT + 1];
    struct manifest_shard *shards;
    size_t shards_capacity;
};

struct text {
    char *bytes;
    size_t size, capacity;
};

enum place { PLACE_HEAD, PLACE_LIST, PLACE_SHARD };

struct manifest_reader {
    struct parsed *parsed;
    struct seal *seal;
    struct text head;
    struct text shard; /* the one that is being read */
    enum place place;
    int depth; /* of brackets, in this place */
    bool in_string, escaped;
    size_t string_at; /* in the head: where the last string of depth 1 began, and its end */
    size_t string_end;
    bool is_shards; /* "shards" and a colon were the last */
    bool comma;     /* in the list: behind a comma ... */
    bool element;   /* ... or an element */
    int line, shard_line, list_lines, list_line;
    uint64_t all_bytes;
    enum muster_status status; /* of the first thing that is wrong */
    struct muster_error problem;
    bool head_is_long;
};

/* --- what is wrong ------------------------------------------------------------------------- */

static void manifest_read_fail(struct manifest_reader *reader, enum muster_status status,
                               const char *what)
{
    if (reader->status == MUSTER_OK)
        reader->status = manifest_bad(&reader->problem, status, what);
}

static enum muster_status manifest_read_no_memory(struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOMEM, "no memory to read a manifest");
}

static enum muster_status manifest_read_not_json(struct muster_error *err, int line,
                                                 const char *why)
{
    return error_set(err, MUSTER_E_CORRUPT, "a manifest is not JSON (line %d: %s); it is not used",
                     line, why);
}

static void manifest_read_fail_json(struct manifest_reader *reader, int line, const char *why)
{
    if (reader->status == MUSTER_OK)
        reader->status = manifest_read_not_json(&reader->problem, line, why);
}

static void manifest_read_fail_memory(struct manifest_reader *reader)
{
    if (reader->status == MUSTER_OK)
        reader->status = manifest_read_no_memory(&reader->problem);
}

/* --- fields -------------------------------------------------------------------------------- */

static bool manifest_read_get_int(const json_t *object, const char *key, int64_t *ret)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value))
        return false;
    *ret = json_integer_value(value);
    return true;
}

static bool manifest_read_get_unsigned(const json_t *object, const char *key, uint64_t *ret)
{
    int64_t value;

    if (!manifest_read_get_int(object, key, &value) || value < 0)
        return false;
    *ret = (uint64_t)value;
    return true;
}

static bool manifest_read_get_text(const json_t *object, const char *key, const char **ret)
{
    const char *value = json_string_value(json_object_get(object, key));

    if (value == NULL)
        return false;
    *ret = value;
    return true;
}

static bool manifest_read_parse_incarnation(const json_t *object, uint64_t *ret)
{
    const char *text;

    if (!manifest_read_get_text(object, "incarnation", &text) || strlen(text) != 16 ||
        strspn(text, "0123456789abcdef") != 16)
        return false;
    *ret = strtoull(text, NULL, 16);
    return true;
}

/* --- one shard ------------------------------------------------------------------------------- */

static bool read_file(struct parsed *parsed, const json_t *object, struct wire_file *ret)
{
    const char *path;
    const char *checksum;

    if (!manifest_read_get_text(object, "path", &path) ||
        !manifest_read_get_unsigned(object, "bytes", &ret->bytes) ||
        !manifest_read_get_text(object, "checksum", &checksum))
        return false;
    ret->path = arena_strdup(&parsed->arena, path);
    ret->checksum = arena_strdup(&parsed->arena, checksum);
    return true;
}

static const char *manifest_read_read_files(struct manifest_reader *reader, const json_t *list,
                                            struct wire_file *files, bool *ret_nomem)
{
    const size_t count = json_array_size(list);

    for (size_t i = 0; i < count; i++) {
        const char *problem;

        if (!read_file(reader->parsed, json_array_get(list, i), &files[i]))
            return "has a file without path, bytes or checksum";
        *ret_nomem = files[i].path == NULL || files[i].checksum == NULL;
        if (*ret_nomem)
            return "found no memory";
        problem = manifest_file_problem(&files[i], &reader->all_bytes);
        if (problem != NULL)
            return problem;
    }
    manifest_sort_files(files, count);
    for (size_t i = 1; i < count; i++)
        if (strcmp(files[i].path, files[i - 1].path) == 0)
            return "has one file path twice";
    return NULL;
}

static const char *read_shard(struct manifest_reader *reader, const json_t *object, bool *ret_nomem)
{
    struct parsed *parsed = reader->parsed;
    const json_t *list = json_object_get(object, "files");
    struct manifest_shard shard = {.file_count = json_array_size(list)};
    struct manifest_shard *shards;
    struct wire_file *files;
    const char *problem;

    if (!json_is_array(list) || shard.file_count > FILES_SHARD_MAX)
        return "has a shard without files, or with too many";
    if (!manifest_read_get_unsigned(object, "rank", &shard.rank) ||
        !manifest_read_parse_incarnation(object, &shard.incarnation))
        return "has a shard without a valid rank or incarnation";
    if (parsed->manifest.shard_count == WORLD_SIZE_MAX)
        return "has too many shards";
    shards = room_for_one(parsed->shards, parsed->manifest.shard_count, &parsed->shards_capacity,
                          16, sizeof *shards);
    if (shards != NULL)
        parsed->shards = shards;
    files = arena_alloc(&parsed->arena, (shard.file_count + 1) * sizeof *files);
    *ret_nomem = shards == NULL || files == NULL;
    if (*ret_nomem)
        return "found no memory";
    problem = manifest_read_read_files(reader, list, files, ret_nomem);
    if (problem != NULL)
        return problem;
    shard.files = files;
    shards[parsed->manifest.shard_count++] = shard;
    return NULL;
}

static void manifest_read_take_shard(struct manifest_reader *reader)
{
    json_error_t why;
    bool nomem = false;
    json_t *object = json_sure_read(reader->shard.bytes, reader->shard.size, &why, &nomem);
    const char *problem = NULL;

    if (object != NULL)
        problem = read_shard(reader, object, &nomem);
    else if (!nomem)
        manifest_read_fail_json(reader, reader->shard_line + why.line - 1, why.text);
    json_decref(object);
    if (nomem)
        manifest_read_fail_memory(reader);
    else if (problem != NULL)
        manifest_read_fail(reader, MUSTER_E_CORRUPT, problem);
}

/* --- the split -------------------------------------------------------------------------------- */

static bool manifest_read_keep(struct text *text, char c, size_t max)
{
    char *bytes;

    if (text->size < text->capacity && text->size < max) {
        text->bytes[text->size++] = c;
        return true;
    }
    bytes =
        text->size < max ? room_for_one(text->bytes, text->size, &text->capacity, 4096, 1) : NULL;

    if (bytes == NULL)
        return false;
    text->bytes = bytes;
    bytes[text->size++] = c;
    return true;
}

static bool manifest_read_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* True: c is a bracket or any other byte outside of strings. */
static bool manifest_read_is_outside(struct manifest_reader *reader, char c)
{
    if (!reader->in_string) {
        reader->in_string = c == '"';
        return c != '"';
    }
    if (reader->escaped)
        reader->escaped = false;
    else if (c == '\\')
        reader->escaped = true;
    else if (c == '"')
        reader->in_string = false;
    return false;
}

static void manifest_read_count_depth(struct manifest_reader *reader, char c)
{
    if (c == '{' || c == '[')
        reader->depth++;
    else if (c == '}' || c == ']')
        reader->depth--;
}

/* The key before the colon, as it is spelled: with escapes it is another spelling, which the head's
 * parse refuses. */
static bool manifest_read_last_is_shards(const struct manifest_reader *reader)
{
    static const char key[] = "\"shards\"";
    const size_t size = sizeof key - 1;

    return reader->string_end - reader->string_at == size &&
           memcmp(reader->head.bytes + reader->string_at, key, size) == 0;
}

static void manifest_read_feed_head(struct manifest_reader *reader, char c)
{
    const bool was_in_string = reader->in_string;
    const bool outside = manifest_read_is_outside(reader, c);

    if (!manifest_read_keep(&reader->head, c, MANIFEST_HEAD_BYTES_MAX)) {
        if (reader->head.size >= MANIFEST_HEAD_BYTES_MAX)
            reader->head_is_long = true;
        else
            manifest_read_fail_memory(reader);
        return;
    }
    if (!outside) {
        if (reader->in_string && !was_in_string)
            reader->string_at = reader->head.size - 1;
        reader->string_end = reader->head.size;
        reader->is_shards = false;
        return;
    }
    if (c == '[' && reader->depth == 1 && reader->is_shards) {
        reader->place = PLACE_LIST;
        reader->comma = reader->element = false;
        reader->list_line = reader->line;
        return;
    }
    manifest_read_count_depth(reader, c);
    if (!manifest_read_is_space(c))
        reader->is_shards = c == ':' && reader->depth == 1 && manifest_read_last_is_shards(reader);
}

static void manifest_read_feed_shard(struct manifest_reader *reader, char c)
{
    if (manifest_read_is_outside(reader, c))
        manifest_read_count_depth(reader, c);
    if (!manifest_read_keep(&reader->shard, c, MANIFEST_SHARD_BYTES_MAX)) {
        if (reader->shard.size >= MANIFEST_SHARD_BYTES_MAX)
            manifest_read_fail(reader, MUSTER_E_CORRUPT,
                               "has a shard that is larger than its limit");
        else
            manifest_read_fail_memory(reader);
        return;
    }
    if (reader->depth > 0)
        return;
    if (reader->status == MUSTER_OK)
        manifest_read_take_shard(reader);
    reader->place = PLACE_LIST;
    reader->depth = 1;
}

static void manifest_read_feed_list(struct manifest_reader *reader, char c)
{
    if (manifest_read_is_space(c))
        return;
    if (c == '{' && (reader->comma || !reader->element)) {
        reader->place = PLACE_SHARD;
        reader->shard_line = reader->line;
        reader->shard.size = 0;
        reader->depth = 0;
        reader->comma = false;
        reader->element = true;
        manifest_read_feed_shard(reader, c);
    } else if (c == ',' && reader->element && !reader->comma) {
        reader->comma = true;
    } else if (c == ']' && !reader->comma) {
        reader->place = PLACE_HEAD;
        reader->is_shards = false;
        manifest_read_keep(&reader->head, c, SIZE_MAX);
    } else {
        manifest_read_fail_json(reader, reader->line, "its list of shards is no list of objects");
    }
}

void manifest_reader_feed(struct manifest_reader *reader, const char *text, size_t size)
{
    seal_feed(reader->seal, text, size);
    sign_feed(reader->parsed->sign, text, size);
    for (size_t i = 0; i < size && !reader->head_is_long; i++) {
        if (reader->place == PLACE_HEAD)
            manifest_read_feed_head(reader, text[i]);
        else if (reader->place == PLACE_LIST)
            manifest_read_feed_list(reader, text[i]);
        else
            manifest_read_feed_shard(reader, text[i]);
        reader->line += text[i] == '\n';
        reader->list_lines += text[i] == '\n' && reader->place != PLACE_HEAD;
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

/* Older ones have none. */
static const char *manifest_read_parse_resumed(const json_t *root, struct manifest *m)
{
    if (json_object_get(root, "resumed_step") == NULL)
        return NULL;
    m->resumed_known = true;
    return manifest_read_get_int(root, "resumed_step", &m->resumed_step)
               ? NULL
               : "has a resumed_step that is no number";
}

static const char *manifest_read_parse_database(const json_t *root, struct manifest *m)
{
    const char *text;
    char *end;

    if (json_object_get(root, "database") == NULL)
        return NULL;
    if (!manifest_read_get_text(root, "database", &text) || strlen(text) != 16)
        return "has a database that is no number of 16 digits";
    m->database = strtoull(text, &end, 16);
    return *end == '\0' ? NULL : "has a database that is no number of 16 digits";
}

static const char *manifest_read_parse_head(const json_t *root, struct parsed *parsed,
                                            bool *ret_nomem)
{
    struct manifest *m = &parsed->manifest;
    const char *layout;

    if (!manifest_read_get_text(root, "job", &m->job) ||
        !manifest_read_get_unsigned(root, "generation", &m->generation) ||
        !manifest_read_get_unsigned(root, "round", &m->round) ||
        !manifest_read_get_int(root, "step", &m->step) ||
        !manifest_read_get_text(root, "layout", &layout) ||
        !manifest_read_get_unsigned(root, "world_size", &m->world_size) ||
        !manifest_read_get_int(root, "epoch", &m->epoch) ||
        !manifest_read_get_int(root, "step_in_epoch", &m->step_in_epoch) ||
        !manifest_read_get_int(root, "data_position", &m->data_position) ||
        !manifest_read_get_int(root, "total_run_calls", &m->total_run_calls) ||
        !manifest_read_get_int(root, "created_unix_ms", &m->created_unix_ms) ||
        !manifest_read_get_text(root, "cause", &m->cause))
        return "lacks a field, or one has the wrong type";
    m->job = arena_strdup(&parsed->arena, m->job);
    m->cause = arena_strdup(&parsed->arena, m->cause);
    *ret_nomem = m->job == NULL || m->cause == NULL;
    if (*ret_nomem)
        return "found no memory";
    m->layout = strcmp(layout, wire_layout_name(LAYOUT_REPLICATED)) == 0 ? LAYOUT_REPLICATED
                : strcmp(layout, wire_layout_name(LAYOUT_SHARDED)) == 0  ? LAYOUT_SHARDED
                                                                         : LAYOUT_NONE;
    const char *problem = manifest_read_parse_resumed(root, m);

    return problem != NULL ? problem : manifest_read_parse_database(root, m);
}

/* A missing object is none. */
static const char *manifest_read_parse_object(const json_t *root, const char *key, char **ret_text,
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

static const char *manifest_read_parse_facts(const json_t *root, struct parsed *parsed,
                                             bool *ret_nomem)
{
    const char *problem = manifest_read_parse_object(root, "metrics", &parsed->metrics, ret_nomem);

    if (problem == NULL)
        problem = manifest_read_parse_object(root, "custom", &parsed->custom, ret_nomem);
    parsed->manifest.metrics = parsed->metrics;
    parsed->manifest.custom = parsed->custom;
    return problem;
}

/* A damaged seal must not pass for an older manifest, which had no seal and no member beyond these.
 */
static const char *manifest_read_seal_problem(const json_t *root,
                                              const struct manifest_reader *reader)
{
    static const char *const known[] = {"cause",         "created_unix_ms",
                                        "custom",        "data_position",
                                        "epoch",         "generation",
                                        "job",           "layout",
                                        "metrics",       "muster_manifest",
                                        "resumed_step",  "round",
                                        "shards",        "step",
                                        "step_in_epoch", "total_run_calls",
                                        "world_size"};
    size_t count = 0;

    if (seal_is_right(reader->seal))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        count += json_object_get(root, known[i]) != NULL;
    return !seal_is_there(reader->seal) && count == json_object_size(root)
               ? NULL
               : "is not what was saved: its bytes and the checksum at its end do not agree";
}

/* In another form than its own it would be passed over. */
static const char *manifest_read_sign_problem(const json_t *root, struct parsed *parsed)
{
    sign_signer(parsed->sign, parsed->signer);
    parsed->manifest.signer = parsed->signer[0] != '\0' ? parsed->signer : NULL;
    return json_object_get(root, SIGN_NAME) != NULL && parsed->manifest.signer == NULL
               ? "has a signature that is cut or damaged"
               : NULL;
}

static enum muster_status manifest_read_parse_root(const json_t *root,
                                                   struct manifest_reader *reader,
                                                   struct muster_error *err)
{
    struct parsed *parsed = reader->parsed;
    struct manifest *m = &parsed->manifest;
    const json_t *list = json_object_get(root, "shards");
    const char *problem;
    bool nomem = false;
    int64_t format;

    if (!manifest_read_get_int(root, "muster_manifest", &format) || format < 1)
        return manifest_bad(err, MUSTER_E_CORRUPT, "has no format number");
    if (format > MANIFEST_FORMAT)
        return error_set(err, MUSTER_E_VERSION,
                         "a manifest has format %lld, this muster reads up to %d; use that newer "
                         "muster",
                         (long long)format, MANIFEST_FORMAT);
    if (reader->status != MUSTER_OK)
        return error_pass(err, reader->status, &reader->problem);
    problem = manifest_read_parse_head(root, parsed, &nomem);
    if (problem == NULL && (!json_is_array(list) || json_array_size(list) > 0))
        problem = "has no shards";
    if (problem == NULL)
        problem = manifest_read_parse_facts(root, parsed, &nomem);
    if (problem == NULL)
        problem = manifest_head_problem(m);
    if (problem == NULL)
        problem = manifest_count_problem(m, m->shard_count);
    manifest_sort_shards(parsed->shards, m->shard_count);
    m->shards = parsed->shards;
    m->sealed = seal_is_there(reader->seal);
    for (size_t i = 0; problem == NULL && i < m->shard_count; i++) {
        if (m->shards[i].rank >= m->world_size)
            problem = "has a shard of a rank outside its world";
        else if (i > 0 && m->shards[i].rank == m->shards[i - 1].rank)
            problem = "has two shards of one rank";
    }
    if (problem == NULL)
        problem = manifest_read_seal_problem(root, reader);
    if (problem == NULL)
        problem = manifest_read_sign_problem(root, parsed);
    if (problem == NULL)
        return MUSTER_OK;
    return manifest_bad(err, nomem ? MUSTER_E_NOMEM : MUSTER_E_CORRUPT, problem);
}

/* Its lines are counted as if the shards were still in it. */
static enum muster_status manifest_read_parse_head_text(struct manifest_reader *reader,
                                                        struct muster_error *err)
{
    json_error_t why;
    bool nomem;
    json_t *root;
    enum muster_status status;

    if (reader->head_is_long)
        return manifest_bad(err, MUSTER_E_CORRUPT, "says too much beside its shards");
    if (reader->place != PLACE_HEAD)
        return reader->status != MUSTER_OK
                   ? error_pass(err, reader->status, &reader->problem)
                   : manifest_read_not_json(err, reader->line, "the text ends inside its shards");
    root = json_sure_read(reader->head.size > 0 ? reader->head.bytes : "", reader->head.size, &why,
                          &nomem);
    if (root == NULL && nomem)
        return manifest_read_no_memory(err);
    if (root == NULL)
        return reader->status != MUSTER_OK
                   ? error_pass(err, reader->status, &reader->problem)
                   : manifest_read_not_json(err,
                                            reader->list_line > 0 && why.line > reader->list_line
                                                ? why.line + reader->list_lines
                                                : why.line,
                                            why.text);
    status = manifest_read_parse_root(root, reader, err);
    json_decref(root);
    return status;
}

struct manifest_reader *manifest_reader_create(void)
{
    struct manifest_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->line = 1;
    reader->seal = seal_create();
    reader->parsed = calloc(1, sizeof *reader->parsed);
    if (reader->parsed != NULL) {
        arena_init(&reader->parsed->arena, 0);
        reader->parsed->sign = sign_create();
    }
    if (reader->seal == NULL || reader->parsed == NULL || reader->parsed->sign == NULL)
        manifest_reader_destroy(&reader);
    return reader;
}

enum muster_status manifest_reader_end(struct manifest_reader **reader,
                                       struct manifest **ret_manifest, struct muster_error *err)
{
    enum muster_status status = manifest_read_parse_head_text(*reader, err);

    if (status == MUSTER_OK) {
        *ret_manifest = &(*reader)->parsed->manifest;
        (*reader)->parsed = NULL;
    }
    manifest_reader_destroy(reader);
    return status;
}

void manifest_reader_destroy(struct manifest_reader **reader)
{
    struct manifest *manifest;

    if (*reader == NULL)
        return;
    manifest = (*reader)->parsed != NULL ? &(*reader)->parsed->manifest : NULL;
    manifest_destroy(&manifest);
    seal_destroy(&(*reader)->seal);
    free((*reader)->head.bytes);
    free((*reader)->shard.bytes);
    free(*reader);
    *reader = NULL;
}

enum muster_status manifest_parse(const char *text, size_t size, struct manifest **ret_manifest,
                                  struct muster_error *err)
{
    struct manifest_reader *reader;

    if (size > MANIFEST_BYTES_MAX)
        return manifest_bad(err, MUSTER_E_CORRUPT, "is larger than its limit");
    reader = manifest_reader_create();
    if (reader == NULL)
        return manifest_read_no_memory(err);
    manifest_reader_feed(reader, text, size);
    return manifest_reader_end(&reader, ret_manifest, err);
}

static bool manifest_read_covers_files(const struct manifest *manifest)
{
    for (size_t s = 0; s < manifest->shard_count; s++)
        for (size_t i = 0; i < manifest->shards[s].file_count; i++)
            if (!manifest_checksum_is_strong(manifest->shards[s].files[i].checksum))
                return false;
    return true;
}

#define NOT_TAKEN "it is not used, since your key file (MUSTER_KEY_FILE) asks for signatures"
#define KEY_SHOWN 16 /* digits of a key: enough to tell two apart */

enum muster_status manifest_check_signer(const struct manifest *manifest, const char *signer,
                                         struct muster_error *err)
{
    const struct parsed *parsed = (const struct parsed *)(const void *)manifest;

    if (signer == NULL)
        return MUSTER_OK;
    if (manifest->signer == NULL)
        return error_set(err, MUSTER_E_SIGNATURE,
                         "its manifest has no signature; " NOT_TAKEN
                         ": it was saved before `musterd --sign`, without a broker, or was "
                         "replaced; if you trust it, restore it once with a key file without its "
                         "line \"signer\"");
    if (strcmp(manifest->signer, signer) != 0)
        return error_set(err, MUSTER_E_SIGNATURE,
                         "its manifest is signed by key %.*s, and not by %.*s; " NOT_TAKEN
                         " of that one: it is another broker's, or was replaced",
                         KEY_SHOWN, manifest->signer, KEY_SHOWN, signer);
    if (!sign_is_right(parsed->sign))
        return error_set(err, MUSTER_E_CORRUPT,
                         "its manifest was changed since key %.*s signed it; it is not used: put "
                         "it back from a copy",
                         KEY_SHOWN, signer);
    if (!manifest_read_covers_files(manifest))
        return error_set(err, MUSTER_E_SIGNATURE,
                         "its manifest is signed, but has checksums of files that anybody can "
                         "forge; " NOT_TAKEN " that cover files");
    return MUSTER_OK;
}

void manifest_destroy(struct manifest **manifest)
{
    struct parsed *parsed = manifest == NULL ? NULL : (struct parsed *)(void *)*manifest;

    if (parsed == NULL)
        return;
    arena_free(&parsed->arena);
    free(parsed->metrics);
    free(parsed->custom);
    free(parsed->shards);
    sign_destroy(&parsed->sign);
    free(parsed);
    *manifest = NULL;
}
