/* shard_restore - restores one rank's part; see shard.h. */
#include "node/shard/shard.h"

#include "node/shard/checksum.h"
#include "node/shard/safetensors.h"
#include "node/shard/shard_reshard.h"
#include "schema/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum muster_status shard_manifest_text(const char *checkpoint_path, char **ret_text,
                                       size_t *ret_size, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    enum muster_status status = fs_path(path, err, "%s/" MANIFEST_FILE_NAME, checkpoint_path);

    if (status != MUSTER_OK)
        return status;
    status = fs_read_small(path, MANIFEST_BYTES_MAX, ret_text, ret_size, err);
    if (status == MUSTER_E_NOT_FOUND && !fs_exists(checkpoint_path))
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "there is no checkpoint %.600s; `muster checkpoints` lists what there is",
                         checkpoint_path);
    if (status == MUSTER_E_NOT_FOUND)
        return error_set(err, MUSTER_E_RESTORE,
                         "the checkpoint %.600s is unfinished, or its " MANIFEST_FILE_NAME
                         " was lost: put that back from a copy, or restore another one, as "
                         "`muster checkpoints` lists them",
                         checkpoint_path);
    return status;
}

enum muster_status shard_manifest_read(const char *checkpoint_path, struct manifest **ret_manifest,
                                       struct muster_error *err)
{
    struct muster_error why = {0};
    char *text = NULL;
    size_t size = 0;
    enum muster_status status = shard_manifest_text(checkpoint_path, &text, &size, err);

    if (status != MUSTER_OK)
        return status;
    status = manifest_parse(text, size, ret_manifest, &why);
    free(text);
    if (status != MUSTER_OK)
        error_set(err, status, "%.500s/" MANIFEST_FILE_NAME ": %.500s", checkpoint_path, why.text);
    return status;
}

enum muster_status shard_damage(enum muster_status status, struct muster_error *err)
{
    if (status != MUSTER_E_NOT_FOUND)
        return status;
    if (err != NULL)
        err->status = MUSTER_E_CORRUPT;
    return MUSTER_E_CORRUPT;
}

static enum muster_status shard_restore_verify_file(const char *checkpoint_path,
                                                    const struct wire_file *file,
                                                    struct interrupt *interrupt,
                                                    struct muster_error *err)
{
    const struct fs_watcher watcher = {interrupt_went, interrupt};
    char path[FS_PATH_MAX];
    char checksum[MANIFEST_CHECKSUM_SIZE];
    uint64_t bytes;
    enum muster_status status = fs_path(path, err, "%s/%s", checkpoint_path, file->path);

    if (status == MUSTER_OK)
        status = shard_damage(
            checksum_file(path, checksum_kind_of(file->checksum), &watcher, &bytes, checksum, err),
            err);
    if (status != MUSTER_OK)
        return status;
    if (bytes != file->bytes)
        return error_set(err, MUSTER_E_CORRUPT,
                         "%.600s has %" PRIu64 " bytes, %" PRIu64 " were saved: it was %s", path,
                         bytes, file->bytes, bytes < file->bytes ? "cut" : "added to");
    if (strcmp(checksum, file->checksum) != 0)
        return error_set(err, MUSTER_E_CORRUPT,
                         "%.600s is damaged: its checksum is %s, %s was saved", path, checksum,
                         file->checksum);
    return MUSTER_OK;
}

static enum muster_status shard_restore_verify_files(const char *checkpoint_path,
                                                     const struct manifest_shard *shard,
                                                     struct interrupt *interrupt,
                                                     struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < shard->file_count && status == MUSTER_OK; i++)
        status = shard_restore_verify_file(checkpoint_path, &shard->files[i], interrupt, err);
    return status;
}

enum muster_status shard_verify(const char *checkpoint_path, const struct manifest_shard *shard,
                                struct muster_error *err)
{
    return shard_restore_verify_files(checkpoint_path, shard, NULL, err);
}

enum muster_status shard_manifest_signed(const char *checkpoint_path, const char *signer,
                                         struct manifest **ret_manifest, struct muster_error *err)
{
    struct manifest *manifest = NULL;
    struct muster_error why;
    enum muster_status status = shard_manifest_read(checkpoint_path, &manifest, err);

    if (status != MUSTER_OK)
        return status;
    status = manifest_check_signer(manifest, signer, &why);
    if (status == MUSTER_OK)
        *ret_manifest = manifest;
    else {
        error_set(err, status, "the checkpoint %.500s: %.500s", checkpoint_path, why.text);
        manifest_destroy(&manifest);
    }
    return status;
}

static enum muster_status shard_restore_check_request(const struct shard_restore *request,
                                                      const struct manifest *manifest,
                                                      struct muster_error *err)
{
    const char *path = request->checkpoint_path;

    if (strcmp(manifest->job, request->job) != 0)
        return error_set(err, MUSTER_E_JOB,
                         "the checkpoint %.600s is of job \"%s\", this is job \"%s\"", path,
                         manifest->job, request->job);
    if (manifest->layout != request->layout)
        return error_set(
            err, MUSTER_E_LAYOUT,
            "the checkpoint %.600s is %s, this job's layout is %s; set option layout to "
            "MUSTER_LAYOUT_%s",
            path, wire_layout_name(manifest->layout), wire_layout_name(request->layout),
            manifest->layout == LAYOUT_SHARDED ? "SHARDED" : "REPLICATED");
    if (request->step >= 0 && manifest->step != request->step)
        return error_set(err, MUSTER_E_RESTORE,
                         "the checkpoint %.600s has step %" PRId64 ", step %" PRId64 " was to be "
                         "restored",
                         path, manifest->step, request->step);
    if (request->round != 0 && manifest->round != request->round)
        return error_set(err, MUSTER_E_RESTORE,
                         "the checkpoint %.600s is of round %" PRIu64 ", round %" PRIu64
                         " was to be "
                         "restored",
                         path, manifest->round, request->round);
    if (manifest->layout == LAYOUT_SHARDED && manifest->world_size != request->world_size &&
        request->state == NULL && !request->any_world_size)
        return error_set(err, MUSTER_E_RESTORE,
                         "the checkpoint %.600s has shards of %" PRIu64
                         " ranks, this job has %" PRIu64
                         ", and its own save_fn and restore_fn know of no parts; start it with as "
                         "many ranks, register a state with split tensors, or set option "
                         "restore_any_world_size if restore_fn reads what any number saved",
                         path, manifest->world_size, request->world_size);
    return MUSTER_OK;
}

/* NULL: it has none. Of one that other ranks saved, the first. */
static const struct manifest_shard *shard_restore_own_shard(const struct shard_restore *request,
                                                            const struct manifest *manifest)
{
    return manifest->layout == LAYOUT_REPLICATED || manifest->world_size != request->world_size
               ? &manifest->shards[0]
               : manifest_shard_of(manifest, request->rank);
}

enum muster_status shard_kind(const struct manifest_shard *shard, bool *ret_is_dir,
                              struct muster_error *err)
{
    char name[DIR_NAME_SIZE];
    size_t length;

    dir_shard_name(shard->rank, shard->incarnation, name);
    length = strlen(name);
    *ret_is_dir = true;
    for (size_t i = 0; i < shard->file_count; i++) {
        const char *path = shard->files[i].path;

        if (strncmp(path, name, length) == 0 && path[length] == '/')
            continue;
        if (shard->file_count == 1 && strncmp(path, name, length) == 0 &&
            strcmp(path + length, DIR_SHARD_SUFFIX) == 0) {
            *ret_is_dir = false;
            return MUSTER_OK;
        }
        return error_set(err, MUSTER_E_CORRUPT,
                         "the manifest names %.255s as a file of %s; nothing was restored", path,
                         name);
    }
    return MUSTER_OK;
}

static enum muster_status shard_restore_refuse_kind(const struct shard_restore *request,
                                                    bool is_dir, struct muster_error *err)
{
    return error_set(err, MUSTER_E_RESTORE,
                     "the checkpoint %.600s was written %s; restore it the same way",
                     request->checkpoint_path,
                     is_dir ? "by the job's own save_fn, and there is no restore_fn"
                            : "from a muster_state_t, and there is a restore_fn instead");
}

static enum muster_status restore_state(const struct shard_restore *request,
                                        const struct manifest *manifest,
                                        const struct manifest_shard *shard,
                                        struct muster_error *err)
{
    char path[FS_PATH_MAX];
    const struct wire_file *file = &shard->files[0];
    enum muster_status status = fs_path(path, err, "%s/%s", request->checkpoint_path, file->path);

    if (status != MUSTER_OK)
        return status;
    if (manifest->layout == LAYOUT_SHARDED && shard_is_split_otherwise(path, request->state))
        return shard_reshard(request, manifest, err);
    return shard_damage(safetensors_restore(path, file->bytes, file->checksum, request->state,
                                            request->interrupt, err),
                        err);
}

/* The directory that save_fn wrote, with all its files as they were saved. */
static enum muster_status shard_restore_verify_dir(const struct shard_restore *request,
                                                   const struct manifest_shard *shard,
                                                   char ret_path[FS_PATH_MAX],
                                                   struct muster_error *err)
{
    char name[DIR_NAME_SIZE];
    enum muster_status status =
        shard_restore_verify_files(request->checkpoint_path, shard, request->interrupt, err);

    dir_shard_name(shard->rank, shard->incarnation, name);
    if (status == MUSTER_OK)
        status = fs_path(ret_path, err, "%s/%s", request->checkpoint_path, name);
    if (status != MUSTER_OK)
        return status;
    if (!fs_is_dir(ret_path))
        return error_set(err, MUSTER_E_CORRUPT, "the shard directory %.600s is missing", ret_path);
    return MUSTER_OK;
}

static enum muster_status shard_restore_show(const struct shard_restore *request,
                                             const struct manifest *manifest, const char *dir,
                                             struct muster_error *err)
{
    const struct shard_found found = {.step = manifest->step,
                                      .dir = dir,
                                      .checkpoint_dir = request->checkpoint_path,
                                      .world_size = manifest->world_size};
    int code = request->restore_fn(request->arg, &found);

    if (code == 0)
        return MUSTER_OK;
    return error_set_code(err, MUSTER_E_RESTORE, code,
                          "restore_fn failed with code %d on %.600s, whose files are as they were "
                          "saved",
                          code, dir != NULL ? dir : request->checkpoint_path);
}

static enum muster_status shard_restore_find_dir(const struct shard_restore *request,
                                                 const struct manifest_shard *shard,
                                                 char ret_path[FS_PATH_MAX],
                                                 struct muster_error *err)
{
    bool is_dir = false;
    enum muster_status status = shard_kind(shard, &is_dir, err);

    if (status == MUSTER_OK && !is_dir)
        return shard_restore_refuse_kind(request, is_dir, err);
    return status == MUSTER_OK ? shard_restore_verify_dir(request, shard, ret_path, err) : status;
}

static enum muster_status restore_by_fn(const struct shard_restore *request,
                                        const struct manifest *manifest,
                                        const struct manifest_shard *shard,
                                        struct muster_error *err)
{
    char path[FS_PATH_MAX];
    enum muster_status status = shard_restore_verify_dir(request, shard, path, err);

    return status == MUSTER_OK ? shard_restore_show(request, manifest, path, err) : status;
}

/* Another number of ranks saved it, and restore_fn reads what it needs from all shards. Rank r
 * verifies every world_size-th shard, so that each file is verified once. */
static enum muster_status restore_all_by_fn(const struct shard_restore *request,
                                            const struct manifest *manifest,
                                            struct muster_error *err)
{
    const struct manifest_shard *own = manifest_shard_of(manifest, request->rank);
    char path[FS_PATH_MAX];
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < manifest->shard_count && status == MUSTER_OK; i++) {
        const struct manifest_shard *shard = &manifest->shards[i];

        if (shard == own || i % request->world_size != request->rank)
            continue;
        status = shard_restore_find_dir(request, shard, path, err);
    }
    if (status == MUSTER_OK && own != NULL)
        status = shard_restore_find_dir(request, own, path, err);
    return status == MUSTER_OK
               ? shard_restore_show(request, manifest, own != NULL ? path : NULL, err)
               : status;
}

/* Of all shards alike, so one is looked at. */
static void shard_restore_find_left(const struct shard_restore *request,
                                    const struct manifest_shard *shard)
{
    char path[FS_PATH_MAX];

    if (request->ret_left == NULL)
        return;
    request->ret_left[0] = '\0';
    if (request->state != NULL && shard->file_count == 1 &&
        fs_path(path, NULL, "%s/%s", request->checkpoint_path, shard->files[0].path) == MUSTER_OK)
        safetensors_find_left(path, request->state, request->ret_left);
}

/* Why it does not fit is told by tensor; that the numbers differ is what its reader has to know
 * first. */
static enum muster_status shard_restore_by_another_number(enum muster_status status,
                                                          const struct shard_restore *request,
                                                          const struct manifest *manifest,
                                                          struct muster_error *err)
{
    struct muster_error why;

    if (status != MUSTER_E_RESTORE || err == NULL)
        return status;
    why = *err;
    return error_set_code(err, status, why.code,
                          "saved by %" PRIu64 " ranks, and to be restored by %" PRIu64 ": %.3000s",
                          manifest->world_size, request->world_size, why.text);
}

static enum muster_status restore_shard(const struct shard_restore *request,
                                        const struct manifest *manifest, struct muster_error *err)
{
    const struct manifest_shard *shard = shard_restore_own_shard(request, manifest);
    bool is_dir = false;
    enum muster_status status;

    if (manifest->layout == LAYOUT_SHARDED && manifest->world_size != request->world_size &&
        request->restore_fn != NULL)
        return restore_all_by_fn(request, manifest, err);
    if (manifest->layout == LAYOUT_SHARDED && manifest->world_size != request->world_size)
        return shard_restore_by_another_number(shard_reshard(request, manifest, err), request,
                                               manifest, err);
    if (shard == NULL)
        return error_set(err, MUSTER_E_RESTORE,
                         "the checkpoint %.600s has no shard of rank %" PRIu64,
                         request->checkpoint_path, request->rank);
    status = shard_kind(shard, &is_dir, err);
    if (status != MUSTER_OK)
        return status;
    if (is_dir != (request->restore_fn != NULL))
        return shard_restore_refuse_kind(request, is_dir, err);
    return is_dir ? restore_by_fn(request, manifest, shard, err)
                  : restore_state(request, manifest, shard, err);
}

enum muster_status shard_restore(const struct shard_restore *request,
                                 struct manifest **ret_manifest, struct muster_error *err)
{
    struct manifest *manifest = NULL;
    enum muster_status status;

    if ((request->state == NULL) == (request->restore_fn == NULL))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "a restore needs a state or a restore_fn, not both or neither");
    status = shard_manifest_signed(request->checkpoint_path, request->signer, &manifest, err);
    if (manifest == NULL)
        return status;
    status = shard_restore_check_request(request, manifest, err);
    if (status == MUSTER_OK && request->state != NULL && manifest->layout == LAYOUT_REPLICATED)
        status = state_refuse_own(request->state, MUSTER_E_RESTORE, err);
    if (status == MUSTER_OK)
        status = safetensors_told(restore_shard(request, manifest, err), request->interrupt,
                                  request->checkpoint_path, err);
    if (status == MUSTER_OK)
        shard_restore_find_left(request, shard_restore_own_shard(request, manifest));
    if (status == MUSTER_OK && ret_manifest != NULL)
        *ret_manifest = manifest;
    else
        manifest_destroy(&manifest);
    return status;
}
