/* dir_commit - from a round's directory to a checkpoint; see dir.h.
 *
 * Order, and what a crash after each step leaves:
 *   1. every shard is there with its size           nothing changed
 *   2. manifest.json, durable, in .muster/<g>-<r>/  a round with a manifest, to be renamed later
 *   3. renamed to <step>                            the checkpoint, perhaps not yet durable
 *   4. root and .muster fsynced                     done
 * Each step may be done again. A power cut can undo 3 before 4: then it is done again too. */
#include "node/shard/dir.h"

#include "schema/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum muster_status commit_file_there(const char *dir, const struct wire_file *file,
                                            bool with_size, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    struct stat st;
    enum muster_status status = fs_path(path, err, "%s/%s", dir, file->path);

    if (status != MUSTER_OK)
        return status;
    if (lstat(path, &st) != 0 && errno != ENOENT && errno != ENOTDIR)
        return fs_fail(err, MUSTER_E_IO, errno, "look at", path);
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the shard file %.600s is not there; do all ranks see one and the same "
                         "checkpoint directory?",
                         path);
    if (with_size && (uint64_t)st.st_size != file->bytes)
        return error_set(err, MUSTER_E_CORRUPT,
                         "the shard file %.600s has %lld bytes, %" PRIu64 " were saved", path,
                         (long long)st.st_size, file->bytes);
    return MUSTER_OK;
}

/* Whether a directory holds the shards of this manifest; its names are its writers' alone. */
static enum muster_status commit_holds_shards(const char *dir, const struct manifest *manifest,
                                              bool with_size, struct muster_error *err)
{
    for (size_t i = 0; i < manifest->shard_count; i++) {
        const struct manifest_shard *shard = &manifest->shards[i];
        char path[FS_PATH_MAX];
        char name[DIR_NAME_SIZE];
        enum muster_status status = MUSTER_OK;

        for (size_t k = 0; k < shard->file_count && status == MUSTER_OK; k++)
            status = commit_file_there(dir, &shard->files[k], with_size, err);
        if (shard->file_count == 0) { /* a save_fn that wrote nothing: its directory says so */
            dir_shard_name(shard->rank, shard->incarnation, name);
            status = fs_path(path, err, "%s/%s", dir, name);
            if (status == MUSTER_OK && !fs_is_dir(path))
                status = error_set(err, MUSTER_E_NOT_FOUND, "the shard %.600s is not there", path);
        }
        if (status != MUSTER_OK)
            return status;
    }
    return MUSTER_OK;
}

static bool commit_has_text(const char *path, const char *text, size_t size)
{
    char *found;
    size_t found_size;
    bool same;

    if (fs_read_small(path, MANIFEST_BYTES_MAX, &found, &found_size, NULL) != MUSTER_OK)
        return false;
    same = found_size == size && memcmp(found, text, size) == 0;
    free(found);
    return same;
}

static enum muster_status commit_put_manifest(const char *root, const char *dir, const char *text,
                                              size_t size, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char muster[FS_PATH_MAX];
    enum muster_status status = fs_path(path, err, "%s/" MANIFEST_FILE_NAME, dir);

    if (status == MUSTER_OK)
        status = dir_muster_path(root, muster, err);
    if (status != MUSTER_OK)
        return status;
    if (commit_has_text(path, text, size)) /* of an earlier try: its name is maybe not durable */
        return fs_sync_dir(dir, err);
    return fs_replace(muster, dir, path, text, size, err);
}

enum muster_status dir_commit_manifest(const char *root, const struct manifest *manifest,
                                       const char *text, size_t size, struct muster_error *err)
{
    char dir[FS_PATH_MAX];
    enum muster_status status =
        dir_round_path(root, manifest->generation, manifest->round, dir, err);

    if (status == MUSTER_OK)
        status = commit_holds_shards(dir, manifest, true, err);
    if (status == MUSTER_OK)
        status = commit_put_manifest(root, dir, text, size, err);
    return status;
}

static enum muster_status dir_commit_sync_names(const char *root, struct muster_error *err)
{
    char muster[FS_PATH_MAX];
    enum muster_status status = dir_muster_path(root, muster, err);

    if (status == MUSTER_OK)
        status = fs_sync_dir(root, err);
    if (status == MUSTER_OK)
        status = fs_sync_dir(muster, err);
    return status;
}

static enum muster_status commit_rename_as(const char *root, const struct dir_names *names,
                                           const struct manifest *manifest,
                                           char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    char from[FS_PATH_MAX];
    char to[FS_PATH_MAX];
    char name[DIR_NAME_SIZE];
    enum muster_status status =
        dir_round_path(root, manifest->generation, manifest->round, from, err);

    if (status != MUSTER_OK)
        return status;
    status = MUSTER_E_EXISTS;
    for (int i = 0; i < 2 && status == MUSTER_E_EXISTS; i++) {
        dir_final_name(names, manifest->step, manifest->generation, manifest->round, i == 1, name);
        status = fs_path(to, err, "%s/%s", root, name);
        if (status == MUSTER_OK)
            status = fs_rename_new(from, to, err);
    }
    if (status == MUSTER_OK)
        status = dir_commit_sync_names(root, err);
    return status != MUSTER_OK ? status : fs_path(ret_path, err, "%s", to);
}

/* The same life may have written shards of these names for another round, and another life of the
 * job's database the same round: only both together are this checkpoint. */
static bool commit_is_this(const char *path, const struct manifest *manifest)
{
    return dir_is_round(path, manifest->job, manifest->generation, manifest->round) &&
           commit_holds_shards(path, manifest, false, NULL) == MUSTER_OK;
}

static bool commit_find_final(const char *root, const struct dir_names *names,
                              const struct manifest *manifest, char ret_path[FS_PATH_MAX])
{
    char name[DIR_NAME_SIZE];

    for (int i = 0; i < 2; i++) {
        dir_final_name(names, manifest->step, manifest->generation, manifest->round, i == 1, name);
        if (fs_path(ret_path, NULL, "%s/%s", root, name) == MUSTER_OK &&
            commit_is_this(ret_path, manifest))
            return true;
    }
    return false;
}

struct commit { /* borrowed for one dir_commit_as */
    const char *root;
    const struct dir_names *names;
    const struct manifest *manifest;
    const char *text;
    size_t size;
};

/* The final directory of an earlier try, mended where that try did not come to its end. `scan`: it
 * may have been given another name by a job that names otherwise. */
static enum muster_status commit_again(const struct commit *c, bool scan,
                                       char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    char path[FS_PATH_MAX];
    enum muster_status status;

    if (!commit_find_final(c->root, c->names, c->manifest, path) &&
        !(scan &&
          dir_scan(c->root, c->manifest->job, c->manifest->generation, c->manifest->round, path) &&
          commit_is_this(path, c->manifest)))
        return MUSTER_E_NOT_FOUND; /* err untouched: the caller goes on with the first try */
    status = commit_put_manifest(c->root, path, c->text, c->size, err);
    if (status == MUSTER_OK)
        status = dir_commit_sync_names(c->root, err);
    return status != MUSTER_OK ? status : fs_path(ret_path, err, "%s", path);
}

enum muster_status dir_commit_as(const char *root, const struct dir_names *names,
                                 const char *manifest_text, size_t manifest_size,
                                 char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    struct manifest *manifest = NULL;
    enum muster_status status = manifest_parse(manifest_text, manifest_size, &manifest, err);
    struct commit c = {root, names, manifest, manifest_text, manifest_size};

    if (status != MUSTER_OK)
        return status;
    status = commit_again(&c, false, ret_path, err);
    if (status == MUSTER_E_NOT_FOUND) {
        status = dir_commit_manifest(root, manifest, manifest_text, manifest_size, err);
        if (status == MUSTER_OK)
            status = commit_rename_as(root, names, manifest, ret_path, err);
        /* Another process that repairs the same round may have renamed it under our hands. */
        if (status != MUSTER_OK && commit_again(&c, true, ret_path, NULL) == MUSTER_OK)
            status = MUSTER_OK;
    }
    manifest_destroy(&manifest);
    return status;
}
