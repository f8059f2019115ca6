/* shard_contents - see shard_contents.h. */
#include "node/shard/shard_contents.h"

#include "node/shard/reader.h"
#include "node/shard/safetensors_file.h"
#include "node/shard/shard_reshard.h"
#include "node/shard/sums.h"
#include "schema/error.h"
#include "schema/manifest/json_sure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A checkpoint as it is read: all its shards, or one. */
struct contents {
    const struct shard_contents *of;
    struct manifest *parsed;
    struct manifest manifest; /* the same; its shards are those that are looked at */
};

static enum muster_status contents_open(const struct shard_contents *of, struct contents *ret,
                                        struct muster_error *err)
{
    enum muster_status status;

    *ret = (struct contents){.of = of};
    status = shard_manifest_signed(of->checkpoint_path, of->signer, &ret->parsed, err);
    if (status != MUSTER_OK)
        return status;
    ret->manifest = *ret->parsed;
    if (of->rank < 0)
        return MUSTER_OK;
    ret->manifest.shard_count = 1;
    ret->manifest.shards = manifest_shard_of(ret->parsed, (uint64_t)of->rank);
    if (ret->manifest.shards != NULL)
        return MUSTER_OK;
    status = error_set(err, MUSTER_E_NOT_FOUND,
                       "the checkpoint %.600s has no shard of rank %d; its %zu shards begin with "
                       "rank %" PRIu64 "; without a rank all are read",
                       of->checkpoint_path, of->rank, ret->parsed->shard_count,
                       ret->parsed->shards[0].rank);
    manifest_destroy(&ret->parsed);
    return status;
}

/* If the checkpoint was deleted meanwhile, tells that instead of what went wrong. */
static enum muster_status contents_close(struct contents *c, enum muster_status status,
                                         struct muster_error *err)
{
    char path[FS_PATH_MAX];

    manifest_destroy(&c->parsed);
    if (status == MUSTER_OK ||
        fs_path(path, NULL, "%s/" MANIFEST_FILE_NAME, c->of->checkpoint_path) != MUSTER_OK ||
        fs_exists(path))
        return status;
    return error_set(err, MUSTER_E_NOT_FOUND,
                     "the checkpoint %.600s was deleted while it was read; `muster checkpoints` "
                     "lists what there is, and `muster pin` keeps one",
                     c->of->checkpoint_path);
}

/* --- what there is --------------------------------------------------------------------------- */

static json_t *shard_tensor_json(const struct safetensors_tensor *tensor, bool of_rank)
{
    json_t *json = json_pack("{s:s, s:[], s:I}", "dtype", state_dtype_name(tensor->dtype), "shape",
                             "ranks", (json_int_t)1);
    json_t *shape = json_object_get(json, "shape");
    bool whole = tensor->split.is && !of_rank, ok = json != NULL;
    int64_t dims[STATE_DIMS_MAX];
    uint64_t bytes = 0;

    memcpy(dims, tensor->shape, sizeof dims);
    if (whole)
        dims[tensor->split.axis] = tensor->split.global_count;
    for (size_t i = 0; i < tensor->dim_count; i++)
        ok &= json_array_append_new(shape, json_integer(dims[i])) == 0;
    ok &= state_shape_bytes(tensor->dtype, dims, tensor->dim_count, &bytes) &&
          json_object_set_new(json, "bytes", json_integer((json_int_t)bytes)) == 0;
    if (tensor->split.is)
        ok &= json_object_set_new(json, "axis", json_integer((json_int_t)tensor->split.axis)) == 0;
    if (tensor->split.is && of_rank)
        ok &= json_object_set_new(json, "begin", json_integer(tensor->split.begin)) == 0;
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

static bool shard_add_tensors(json_t *tensors, const struct safetensors_file *file, bool of_rank)
{
    bool ok = true;

    for (size_t i = 0; ok && i < safetensors_index_count(file->index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(file->index, i);
        json_t *ranks = json_object_get(json_object_get(tensors, tensor->name), "ranks");

        if (strcmp(tensor->name, SUMS_NAME) == 0)
            continue;
        ok = ranks != NULL ? json_integer_set(ranks, json_integer_value(ranks) + 1) == 0
                           : json_object_set_new(tensors, tensor->name,
                                                 shard_tensor_json(tensor, of_rank)) == 0;
    }
    return ok;
}

static bool shard_add_file(json_t *files, const struct wire_file *file, uint64_t rank)
{
    return json_object_set_new(files, file->path,
                               json_pack("{s:I, s:s, s:I}", "bytes", (json_int_t)file->bytes,
                                         "checksum", file->checksum, "rank", (json_int_t)rank)) ==
           0;
}

static enum muster_status contents_nomem(const struct contents *c, struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOMEM, "no memory to read the checkpoint %.600s",
                     c->of->checkpoint_path);
}

static enum muster_status shard_add(const struct contents *c, const struct manifest_shard *shard,
                                    json_t *files, json_t *tensors, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    struct safetensors_file file;
    bool is_dir, ok = true;
    enum muster_status status = shard_kind(shard, &is_dir, err);

    for (size_t i = 0; i < shard->file_count && status == MUSTER_OK && ok; i++)
        ok = shard_add_file(files, &shard->files[i], shard->rank);
    if (status != MUSTER_OK || is_dir || !ok)
        return ok ? status : contents_nomem(c, err);
    status = shard_reshard_open(c->of->checkpoint_path, &c->manifest, shard, path, &file, err);
    if (status != MUSTER_OK)
        return status;
    ok = shard_add_tensors(tensors, &file, c->of->rank >= 0);
    safetensors_file_close(&file);
    return ok ? MUSTER_OK : contents_nomem(c, err);
}

/* The manifest as it is, with files and tensors in place of its shards and sums. */
static json_t *contents_head(const struct contents *c, json_t *files, json_t *tensors)
{
    static const char *const without[] = {"muster_manifest", "shards", "checksum", "signature"};
    json_t *root = NULL;
    json_error_t why;
    char *text = NULL;
    size_t size = 0;
    bool nomem;

    if (shard_manifest_text(c->of->checkpoint_path, &text, &size, NULL) == MUSTER_OK)
        root = json_sure_read(text, size, &why, &nomem);
    free(text);
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        json_object_del(root, without[i]);
    if (json_object_set(root, "files", files) == 0 &&
        json_object_set(root, "tensors", tensors) == 0)
        return root;
    json_decref(root);
    return NULL;
}

enum muster_status shard_contents_text(const struct shard_contents *of, char **ret_text,
                                       struct muster_error *err)
{
    json_t *files = json_object(), *tensors = json_object(), *root = NULL;
    struct contents c;
    char *text = NULL;
    enum muster_status status = contents_open(of, &c, err);

    if (c.parsed == NULL)
        goto out;
    for (size_t i = 0; i < c.manifest.shard_count && status == MUSTER_OK; i++)
        status = shard_add(&c, &c.manifest.shards[i], files, tensors, err);
    root = status == MUSTER_OK ? contents_head(&c, files, tensors) : NULL;
    text = root != NULL ? json_sure_write(root, JSON_COMPACT) : NULL;
    if (status == MUSTER_OK && text == NULL)
        status = contents_nomem(&c, err);
    status = contents_close(&c, status, err);
    if (status == MUSTER_OK)
        *ret_text = text;
    else
        free(text);
out:
    json_decref(root);
    json_decref(files);
    json_decref(tensors);
    return status;
}

/* --- reading --------------------------------------------------------------------------------- */

static const struct wire_file *shard_file_of(const struct contents *c, const char *name)
{
    for (size_t i = 0; i < c->manifest.shard_count; i++)
        for (size_t k = 0; k < c->manifest.shards[i].file_count; k++)
            if (strcmp(c->manifest.shards[i].files[k].path, name) == 0)
                return &c->manifest.shards[i].files[k];
    return NULL;
}

/* An open file of the size that was saved, into memory of that size. */
static enum muster_status shard_read_summed(const struct safetensors_file *from,
                                            const struct wire_file *told, void *to,
                                            struct interrupt *interrupt, struct muster_error *err)
{
    const struct reader_range all = {.size = told->bytes, .to = to};
    struct checksum *sum = checksum_create(checksum_kind_of(told->checksum));
    char found[MANIFEST_CHECKSUM_SIZE] = "";
    int code = sum != NULL ? reader_read(from->fd, &all, 1, sum, interrupt) : ENOMEM;

    if (code == 0)
        checksum_text(sum, found);
    checksum_destroy(&sum);
    if (code > 0)
        return fs_fail(err, code == ENOMEM ? MUSTER_E_NOMEM : MUSTER_E_IO, code, "read",
                       from->path);
    if (code == 0 && strcmp(found, told->checksum) == 0)
        return MUSTER_OK;
    if (code < 0)
        return error_set(err, MUSTER_E_CORRUPT,
                         "%.600s is damaged: it is shorter than what was saved; do not use what "
                         "was read of it",
                         from->path);
    return error_set(err, MUSTER_E_CORRUPT,
                     "%.600s is damaged: its checksum is %s, %s was saved; do not use what was "
                     "read of it",
                     from->path, found, told->checksum);
}

static enum muster_status shard_read_file(const struct contents *c, const struct wire_file *told,
                                          const struct state_item *item, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    struct safetensors_file file;
    enum muster_status status = fs_path(path, err, "%s/%s", c->of->checkpoint_path, told->path);

    if (status == MUSTER_OK && item->size_bytes != told->bytes)
        return error_set(err, MUSTER_E_RESTORE,
                         "%.600s has %" PRIu64 " bytes, and the entry has %" PRIu64
                         "; give one of the same size",
                         path, told->bytes, item->size_bytes);
    if (status == MUSTER_OK)
        status = shard_damage(safetensors_file_open(path, &file, err), err);
    if (status != MUSTER_OK)
        return status;
    if (file.size != told->bytes)
        status = error_set(err, MUSTER_E_CORRUPT,
                           "%.600s has %" PRIu64 " bytes, %" PRIu64 " were saved: it was %s", path,
                           file.size, told->bytes, file.size < told->bytes ? "cut" : "added to");
    else
        status = shard_read_summed(&file, told, item->data, c->of->interrupt, err);
    safetensors_file_close(&file);
    return status;
}

static enum muster_status shard_no_tensor(const struct contents *c, const char *name,
                                          const char *why, struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOT_FOUND,
                     "there is no tensor or file \"%s\" in the checkpoint %.500s%s; "
                     "muster_checkpoint_metadata lists what there is",
                     name, c->of->checkpoint_path, why);
}

static enum muster_status shard_read_tensors(const struct contents *c,
                                             const struct muster_state *state,
                                             struct muster_error *err)
{
    const struct shard_restore request = {.checkpoint_path = c->of->checkpoint_path,
                                          .wholes = true,
                                          .own_parts = c->of->rank >= 0,
                                          .signer = c->of->signer,
                                          .interrupt = c->of->interrupt,
                                          .state = state};
    bool is_dir = false;
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < c->manifest.shard_count && status == MUSTER_OK; i++) {
        status = shard_kind(&c->manifest.shards[i], &is_dir, err);
        if (status == MUSTER_OK && is_dir)
            return shard_no_tensor(c, state->items[0].name, ", which the job's own save_fn wrote",
                                   err);
    }
    return status == MUSTER_OK ? shard_reshard(&request, &c->manifest, err) : status;
}

static enum muster_status shard_read_all(const struct contents *c, const struct muster_state *state,
                                         struct muster_state *tensors, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < state->count && status == MUSTER_OK; i++)
        if (shard_file_of(c, state->items[i].name) == NULL)
            status = state_add(tensors, &state->items[i], err);
    if (status == MUSTER_OK && tensors->count > 0)
        status = shard_read_tensors(c, tensors, err);
    for (size_t i = 0; i < state->count && status == MUSTER_OK; i++) {
        const struct wire_file *file = shard_file_of(c, state->items[i].name);

        if (file != NULL)
            status = shard_read_file(c, file, &state->items[i], err);
    }
    return status;
}

enum muster_status shard_contents_read(const struct shard_contents *of,
                                       const struct muster_state *state, struct muster_error *err)
{
    struct muster_state *tensors = NULL;
    struct contents c;
    enum muster_status status = contents_open(of, &c, err);

    if (c.parsed == NULL)
        return status;
    status = state_create(&tensors, err);
    if (status == MUSTER_OK)
        status = safetensors_told(shard_read_all(&c, state, tensors, err), of->interrupt,
                                  of->checkpoint_path, err);
    state_destroy(&tensors);
    return contents_close(&c, status, err);
}
