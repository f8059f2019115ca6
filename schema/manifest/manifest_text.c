/* manifest_text - see manifest_text.h.
 *
 * jansson writes the head with an empty list of shards, and the text is cut in two at that place.
 * Shards and files are written between in the same form by hand, since there may be very many. */
#include "schema/manifest/manifest_text.h"

#include "schema/error.h"
#include "schema/manifest/json_sure.h"
#include "schema/manifest/manifest_rules.h"
#include "schema/manifest/metrics.h"
#include "schema/manifest/seal.h"
#include "schema/manifest/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096
#define SIGN_EVERY_BYTES ((size_t)64 << 10) /* so that the end has little left to do */
#define PIECE_BYTES (2 * FILE_PATH_MAX + MANIFEST_CHECKSUM_SIZE + 160) /* a path of quotes only */

struct manifest_text {
    char *bytes;
    size_t size, capacity;
    char *tail; /* what follows the list of shards */
    enum wire_layout layout;
    uint64_t world_size;
    uint64_t all_bytes; /* of all files */
    size_t shards, files;
    uint64_t rank;                     /* of the shard that is open */
    char shard_tail[128];              /* ... what follows its files */
    char last_path[FILE_PATH_MAX + 1]; /* ... of them */
    const struct sign_key *key;        /* NULL: it gets no signature */
    struct sign *sign;                 /* of the text up to here: */
    size_t signed_size;
};

/* --- head ----------------------------------------------------------------------------------- */

static bool manifest_text_add_object(json_t *root, const char *key, const char *text)
{
    json_error_t why;
    bool nomem;

    if (text == NULL || *text == '\0')
        return true;
    return json_object_set_new(root, key, json_sure_read(text, strlen(text), &why, &nomem)) == 0;
}

static json_t *manifest_text_head_json(const struct manifest *m)
{
    json_t *root = json_pack(
        "{s:i, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:[]}",
        "muster_manifest", MANIFEST_FORMAT, "job", m->job, "generation", (json_int_t)m->generation,
        "round", (json_int_t)m->round, "step", (json_int_t)m->step, "layout",
        wire_layout_name(m->layout), "world_size", (json_int_t)m->world_size, "epoch",
        (json_int_t)m->epoch, "step_in_epoch", (json_int_t)m->step_in_epoch, "data_position",
        (json_int_t)m->data_position, "total_run_calls", (json_int_t)m->total_run_calls,
        "created_unix_ms", (json_int_t)m->created_unix_ms, "cause", m->cause, "shards");

    if (!manifest_text_add_object(root, "metrics", m->metrics) ||
        !manifest_text_add_object(root, "custom", m->custom) ||
        (m->resumed_known &&
         json_object_set_new(root, "resumed_step", json_integer(m->resumed_step)) != 0) ||
        (m->database != 0 &&
         json_object_set_new(root, "database", json_sprintf("%016" PRIx64, m->database)) != 0)) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static const char *manifest_text_head_problem(const struct manifest *m)
{
    const char *problem = manifest_head_problem(m);

    if (problem == NULL && m->metrics != NULL && !metrics_ok(m->metrics))
        problem = "has metrics that are no object of names and numbers";
    if (problem == NULL && m->custom != NULL && !custom_ok(m->custom))
        problem = "has custom metadata that is no object, or too long";
    return problem;
}

/* At one space, in a line of its own: no other text of the head can look like it. */
static bool manifest_text_cut_in_two(struct manifest_text *text, char *whole)
{
    static const char empty[] = "\n \"shards\": []";
    char *at = strstr(whole, empty);

    if (at == NULL)
        return false;
    whole[strlen(whole) - (sizeof "\n}" - 1)] = '\0'; /* the seal has it */
    text->tail = strdup(at + strlen(empty) - 1);      /* from the bracket on */
    text->bytes = whole;
    text->size = (size_t)(at - whole) + strlen(empty) - 1;
    text->capacity = text->size;
    return text->tail != NULL;
}

enum muster_status manifest_text_begin(const struct manifest *head, struct manifest_text **ret_text,
                                       struct muster_error *err)
{
    const char *problem = manifest_text_head_problem(head);
    struct manifest_text *text;
    json_t *root;
    char *whole = NULL;

    if (problem != NULL)
        return manifest_bad(err, MUSTER_E_ARGUMENT, problem);
    root = manifest_text_head_json(head);
    if (root != NULL)
        whole = json_sure_write(root, JSON_SORT_KEYS | JSON_INDENT(1));
    json_decref(root);
    if (whole == NULL) /* jansson tells the two apart no better */
        return manifest_bad(err, MUSTER_E_ARGUMENT,
                            "holds text that is not UTF-8, or there is no memory");
    text = calloc(1, sizeof *text);
    if (text == NULL || !manifest_text_cut_in_two(text, whole)) {
        if (text == NULL || text->bytes == NULL)
            free(whole);
        manifest_text_destroy(&text);
        return error_set(err, MUSTER_E_NOMEM, "no memory for a manifest");
    }
    text->layout = head->layout;
    text->world_size = head->world_size;
    *ret_text = text;
    return MUSTER_OK;
}

/* --- shards ---------------------------------------------------------------------------------- */

static enum muster_status manifest_text_make_room(struct manifest_text *text, size_t more,
                                                  struct muster_error *err)
{
    size_t capacity = text->capacity < FIRST_BYTES ? FIRST_BYTES : text->capacity;
    char *moved;

    if (text->size + more <= text->capacity)
        return MUSTER_OK;
    if (text->size + strlen(text->tail) > MANIFEST_BYTES_MAX)
        return manifest_bad(err, MUSTER_E_ARGUMENT, "would be larger than its limit");
    while (capacity < text->size + more)
        capacity *= 2;
    moved = realloc(text->bytes, capacity);
    if (moved == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a manifest");
    text->bytes = moved;
    text->capacity = capacity;
    return MUSTER_OK;
}

static void manifest_text_add(struct manifest_text *text, const char *bytes)
{
    size_t size = strlen(bytes);

    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

/* A path has no control character and no backslash. */
static void manifest_text_add_path(struct manifest_text *text, const char *path)
{
    for (; *path != '\0'; path++) {
        if (*path == '"')
            text->bytes[text->size++] = '\\';
        text->bytes[text->size++] = *path;
    }
}

/* --- its signature ---------------------------------------------------------------------------- */

enum muster_status manifest_text_sign(struct manifest_text *text, const struct sign_key *key,
                                      struct muster_error *err)
{
    text->sign = sign_create();
    if (text->sign == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a manifest");
    text->key = key;
    return MUSTER_OK;
}

static void manifest_text_sign_so_far(struct manifest_text *text, size_t at_least)
{
    if (text->key == NULL || text->size - text->signed_size < at_least)
        return;
    sign_add(text->sign, text->bytes + text->signed_size, text->size - text->signed_size);
    text->signed_size = text->size;
}

static void manifest_text_add_signature(struct manifest_text *text)
{
    char member[SIGN_BYTES + 1];

    if (text->key == NULL)
        return;
    manifest_text_sign_so_far(text, 0);
    sign_make(text->sign, text->key, member);
    manifest_text_add(text, member);
}

/* The text after the last file of the open shard, if one is open. */
static void manifest_text_close_shard(struct manifest_text *text)
{
    if (text->shards == 0)
        return;
    if (text->files > 0)
        manifest_text_add(text, "\n   ");
    manifest_text_add(text, text->shard_tail);
}

enum muster_status manifest_text_shard(struct manifest_text *text, uint64_t rank,
                                       uint64_t incarnation, struct muster_error *err)
{
    enum muster_status status = manifest_text_make_room(text, PIECE_BYTES, err);

    if (status != MUSTER_OK)
        return status;
    if (rank >= text->world_size)
        return manifest_bad(err, MUSTER_E_ARGUMENT, "has a shard of a rank outside its world");
    if (text->shards > 0 && rank <= text->rank)
        return manifest_bad(err, MUSTER_E_ARGUMENT, "has two shards of one rank");
    manifest_text_close_shard(text);
    manifest_text_add(text,
                      text->shards == 0 ? "\n  {\n   \"files\": [" : ",\n  {\n   \"files\": [");
    snprintf(text->shard_tail, sizeof text->shard_tail,
             "],\n   \"incarnation\": \"%016" PRIx64 "\",\n   \"rank\": %" PRIu64 "\n  }",
             incarnation, rank);
    text->shards++;
    text->rank = rank;
    text->files = 0;
    text->last_path[0] = '\0';
    return MUSTER_OK;
}

static const char *manifest_text_file_problem(struct manifest_text *text,
                                              const struct wire_file *file)
{
    const char *problem = manifest_file_problem(file, &text->all_bytes);

    if (problem != NULL)
        return problem;
    if (text->files == FILES_SHARD_MAX)
        return "has a shard of too many files";
    if (text->files > 0 && strcmp(file->path, text->last_path) <= 0)
        return "has one file path twice";
    return wire_text_ok(file->path, FILE_PATH_MAX) ? NULL : "has a file path that is not UTF-8";
}

enum muster_status manifest_text_file(struct manifest_text *text, const struct wire_file *file,
                                      struct muster_error *err)
{
    const char *problem = manifest_text_file_problem(text, file);
    enum muster_status status;
    char number[64];

    if (problem != NULL)
        return manifest_bad(err, MUSTER_E_ARGUMENT, problem);
    status = manifest_text_make_room(text, PIECE_BYTES, err);
    if (status != MUSTER_OK)
        return status;
    snprintf(number, sizeof number, "%s    {\n     \"bytes\": %" PRIu64,
             text->files == 0 ? "\n" : ",\n", file->bytes);
    manifest_text_add(text, number);
    manifest_text_add(text, ",\n     \"checksum\": \"");
    manifest_text_add(text, file->checksum);
    manifest_text_add(text, "\",\n     \"path\": \"");
    manifest_text_add_path(text, file->path);
    manifest_text_add(text, "\"\n    }");
    snprintf(text->last_path, sizeof text->last_path, "%s", file->path);
    text->files++;
    if (!manifest_checksum_is_strong(file->checksum))
        text->key = NULL;
    manifest_text_sign_so_far(text, SIGN_EVERY_BYTES);
    return MUSTER_OK;
}

enum muster_status manifest_text_end(struct manifest_text *text, char **ret_text, size_t *ret_size,
                                     struct muster_error *err)
{
    const struct manifest counted = {.layout = text->layout, .world_size = text->world_size};
    const char *problem = manifest_count_problem(&counted, text->shards);
    enum muster_status status = manifest_text_make_room(
        text, PIECE_BYTES + strlen(text->tail) + SIGN_BYTES + SEAL_BYTES, err);
    char seal[SEAL_BYTES + 1];

    if (problem != NULL)
        return manifest_bad(err, MUSTER_E_ARGUMENT, problem);
    if (status != MUSTER_OK)
        return status;
    manifest_text_close_shard(text);
    manifest_text_add(text, "\n ");
    manifest_text_add(text, text->tail);
    manifest_text_add_signature(text);
    seal_make(text->bytes, text->size, seal);
    manifest_text_add(text, seal);
    if (text->size > MANIFEST_BYTES_MAX)
        return manifest_bad(err, MUSTER_E_ARGUMENT, "would be larger than its limit");
    text->bytes[text->size] = '\0';
    *ret_text = text->bytes;
    *ret_size = text->size;
    text->bytes = NULL;
    return MUSTER_OK;
}

void manifest_text_destroy(struct manifest_text **text)
{
    if (*text == NULL)
        return;
    free((*text)->bytes);
    free((*text)->tail);
    sign_destroy(&(*text)->sign);
    free(*text);
    *text = NULL;
}

/* --- the whole at once ------------------------------------------------------------------------ */

static enum muster_status manifest_text_add_shard(struct manifest_text *text,
                                                  const struct manifest_shard *shard,
                                                  struct muster_error *err)
{
    enum muster_status status = manifest_text_shard(text, shard->rank, shard->incarnation, err);
    struct wire_file *files = malloc((shard->file_count + 1) * sizeof *files);

    if (status == MUSTER_OK && files == NULL)
        status = error_set(err, MUSTER_E_NOMEM, "no memory for a manifest");
    for (size_t i = 0; status == MUSTER_OK && i < shard->file_count; i++) {
        files[i] = shard->files[i];
        if (files[i].path == NULL)
            status = manifest_bad(err, MUSTER_E_ARGUMENT, "has a file without a path");
    }
    if (status == MUSTER_OK)
        manifest_sort_files(files, shard->file_count);
    for (size_t i = 0; status == MUSTER_OK && i < shard->file_count; i++)
        status = manifest_text_file(text, &files[i], err);
    free(files);
    return status;
}

enum muster_status manifest_render(const struct manifest *manifest, char **ret_text,
                                   size_t *ret_size, struct muster_error *err)
{
    const size_t count = manifest->shard_count;
    struct manifest_text *text = NULL;
    struct manifest_shard *shards;
    enum muster_status status = manifest_text_begin(manifest, &text, err);

    if (status != MUSTER_OK)
        return status;
    shards = calloc(count + 1, sizeof *shards); /* the caller's stay in their order */
    if (shards == NULL) {
        manifest_text_destroy(&text);
        return error_set(err, MUSTER_E_NOMEM, "no memory for a manifest");
    }
    for (size_t i = 0; i < count; i++)
        shards[i] = manifest->shards[i];
    manifest_sort_shards(shards, count);
    for (size_t i = 0; status == MUSTER_OK && i < count; i++)
        status = manifest_text_add_shard(text, &shards[i], err);
    if (status == MUSTER_OK)
        status = manifest_text_end(text, ret_text, ret_size, err);
    free(shards);
    manifest_text_destroy(&text);
    return status;
}
