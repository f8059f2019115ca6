/* dir_delete - see dir_delete.h. */
#include "node/shard/dir_delete.h"

#include "node/shard/shard.h"
#include "schema/error.h"
#include "schema/paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One that its manifest alone tells has to be of that step, too: it may be of another life of the
 * job's records. */
static enum muster_status dir_delete_is_it(const struct dir_deletion *d, const char *path,
                                           bool *ret_is, struct muster_error *err)
{
    struct manifest *manifest;
    struct dir_claim claim;
    enum muster_status status = dir_look_round(path, d->job, d->generation, d->round, ret_is, err);

    if (status != MUSTER_OK || !*ret_is || dir_claim_read(path, &claim, NULL) == MUSTER_OK ||
        shard_manifest_read(path, &manifest, NULL) != MUSTER_OK)
        return status;
    *ret_is = manifest->step == d->step;
    manifest_destroy(&manifest);
    return MUSTER_OK;
}

/* Where it was written, which is no name: the "/.muster/<g>-<r>" at the end of the path. NULL: it
 * has one, maybe in a root that is itself called .muster. */
static const char *dir_delete_under_way(const struct dir_deletion *d, const char *path)
{
    const char *at = paths_under_way(path);
    char name[64];

    snprintf(name, sizeof name, "/.muster/%" PRIu64 "-%" PRIu64, d->generation, d->round);
    return at != NULL && strcmp(at, name) == 0 ? at : NULL;
}

/* The name that it was given for good: "" if it is not known, or was not given one yet. */
static const char *delete_known_name(const struct dir_deletion *d)
{
    const char *name = strrchr(d->path, '/');

    return name == NULL || d->path[0] != '/' || dir_delete_under_way(d, d->path) != NULL ? ""
                                                                                         : name + 1;
}

/* E_NOT_FOUND: it is gone. One that had a name is looked for by that alone, here or where the
 * directory is now. Another one that says it is this round belongs to an earlier database of the
 * job, whose numbers begin again, and stays. */
static enum muster_status dir_delete_find(const struct dir_deletion *d, char ret_path[FS_PATH_MAX],
                                          struct muster_error *err)
{
    const char *name = delete_known_name(d);
    enum dir_place place;
    bool is = false;
    enum muster_status status = MUSTER_OK;

    if (name[0] == '\0')
        return dir_find(d->root, d->job, d->generation, d->round, d->step, &place, ret_path, err);
    for (int i = 0; i < 2 && status == MUSTER_OK && !is; i++) {
        status = i == 0 ? fs_path(ret_path, err, "%s", d->path)
                        : fs_path(ret_path, err, "%s/%s", d->root, name);
        if (status == MUSTER_OK)
            status = dir_delete_is_it(d, ret_path, &is, err);
    }
    return status != MUSTER_OK || is ? status : MUSTER_E_NOT_FOUND;
}

/* The checkpoint directory that it lies in, which is another than the job's present one after the
 * job has moved, and maybe on another file system, to which nothing can be renamed. */
static enum muster_status delete_root_of(const struct dir_deletion *d, const char *from,
                                         char ret_root[FS_PATH_MAX], struct muster_error *err)
{
    const char *end =
        dir_delete_under_way(d, from) != NULL ? dir_delete_under_way(d, from) : strrchr(from, '/');

    if (end == NULL)
        return error_set(err, MUSTER_E_ARGUMENT, "%.600s is no path of a checkpoint", from);
    return fs_path(ret_root, err, "%.*s", (int)(end - from), from);
}

/* "<root>/.muster/trash-<g>-<r>-<random>", which nobody reads and the next start clears. */
static enum muster_status delete_own_place(const struct dir_deletion *d, char ret_path[FS_PATH_MAX],
                                           struct muster_error *err)
{
    uint64_t number = 0;
    enum muster_status status = fs_random_u64(&number, err);

    if (status == MUSTER_OK)
        status = fs_path(ret_path, err, "%s/.muster/trash-%" PRIu64 "-%" PRIu64 "-%016" PRIx64,
                         d->root, d->generation, d->round, number);
    return status;
}

/* Its name in the root; "" if it never had its final name. */
static const char *delete_name_in_root(const struct dir_deletion *d, const char *from)
{
    size_t length = strlen(d->root);
    bool inside = strncmp(from, d->root, length) == 0 && from[length] == '/';
    const char *name = inside ? from + length + 1 : "";

    return name[0] == '.' || strchr(name, '/') != NULL ? "" : name;
}

/* "<root>/<trash>/<its name>.<g>-<r>": a user finds it by its name, and no two of one life of the
 * records have one. */
static enum muster_status delete_users_place(const struct dir_deletion *d, const char *from,
                                             char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    char final[DIR_NAME_SIZE];
    char folder[FS_PATH_MAX];
    const char *name = delete_name_in_root(d, from), *dot = strchr(name, '.'), *suffix;
    enum muster_status status = fs_path(folder, err, "%s/%s", d->root, d->trash);

    dir_final_name(NULL, d->step, d->generation, d->round, true, final);
    suffix = strchr(final, '.');
    if (status == MUSTER_OK)
        status = fs_make_dirs(folder, err);
    if (status != MUSTER_OK)
        return status;
    if (name[0] == '\0')
        return fs_path(ret_path, err, "%s/%s", folder, final);
    return fs_path(ret_path, err, "%s/%s%s", folder, name,
                   dot != NULL && strcmp(dot, suffix) == 0 ? "" : suffix);
}

/* Where it goes. */
static enum muster_status delete_trash_folder(const struct dir_deletion *d,
                                              char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    return fs_path(ret_path, err, "%s/%s", d->root, d->trash[0] != '\0' ? d->trash : ".muster");
}

static enum muster_status dir_delete_sync_names(const struct dir_deletion *d,
                                                struct muster_error *err)
{
    char folder[FS_PATH_MAX];
    enum muster_status status = delete_trash_folder(d, folder, err);

    if (status == MUSTER_OK)
        status = fs_sync_dir(d->root, err);
    if (status == MUSTER_OK)
        status = fs_sync_dir(folder, err);
    return status;
}

/* It is in its place no more, and the process that moved it may have died before it synced that. */
static enum muster_status delete_sync_gone(const struct dir_deletion *deletion,
                                           struct muster_error *err)
{
    struct dir_deletion d = *deletion;
    char root[FS_PATH_MAX], folder[FS_PATH_MAX];
    enum muster_status status = MUSTER_OK;

    if (delete_known_name(&d)[0] != '\0')
        status = delete_root_of(&d, d.path, root, err);
    if (status == MUSTER_OK && delete_known_name(&d)[0] != '\0')
        d.root = root;
    if (status == MUSTER_OK)
        status = delete_trash_folder(&d, folder, err);
    if (status == MUSTER_OK && fs_is_dir(d.root))
        status = fs_sync_dir(d.root, err);
    if (status == MUSTER_OK && fs_is_dir(folder))
        status = fs_sync_dir(folder, err);
    return status;
}

/* Out of `from`, and back if it is another: since it was found a quicker hand may have removed it,
 * and a later checkpoint have taken its name. */
static enum muster_status delete_take_out(const struct dir_deletion *d, const char *from,
                                          const char *to, struct muster_error *err)
{
    char back[FS_PATH_MAX];
    bool is = false;
    enum muster_status status = fs_rename_new(from, to, err);
    enum muster_status look;

    if (status != MUSTER_OK)
        return status;
    look = dir_delete_is_it(d, to, &is, err);
    if (look == MUSTER_OK && is)
        return MUSTER_OK;
    status = fs_rename_new(to, from, look == MUSTER_OK ? err : NULL);
    if (status == MUSTER_E_EXISTS) { /* whoever looks for it finds it by its ROUND file */
        uint64_t number = 0;
        status = fs_random_u64(&number, err);
        if (status == MUSTER_OK)
            status = fs_path(back, err, "%s.%016" PRIx64, from, number);
        if (status == MUSTER_OK)
            status = fs_rename_new(to, back, err);
    }
    if (status != MUSTER_OK || look != MUSTER_OK)
        return look != MUSTER_OK ? look : status;
    return error_set(err, MUSTER_E_IO, "%.600s became another checkpoint meanwhile; it is kept",
                     from);
}

/* Into the user's folder, which may be older than the job's records, so hold another of the same
 * name. */
static enum muster_status delete_take_beside(const struct dir_deletion *d, const char *from,
                                             char *to, struct muster_error *err)
{
    uint64_t number = 0;
    char first[FS_PATH_MAX];
    enum muster_status status = delete_take_out(d, from, to, err);

    if (status != MUSTER_E_EXISTS)
        return status;
    status = fs_random_u64(&number, err);
    if (status == MUSTER_OK)
        status = fs_path(first, err, "%s", to);
    if (status == MUSTER_OK)
        status = fs_path(to, err, "%s.%016" PRIx64, first, number);
    return status == MUSTER_OK ? delete_take_out(d, from, to, err) : status;
}

enum muster_status dir_delete_checkpoint(const struct dir_deletion *deletion,
                                         struct muster_error *err)
{
    struct dir_deletion d = *deletion;
    char from[FS_PATH_MAX], to[FS_PATH_MAX], root[FS_PATH_MAX];
    const bool keeps = deletion->trash[0] != '\0';
    enum muster_status status = dir_delete_find(deletion, from, err);

    if (status == MUSTER_E_NOT_FOUND)
        return delete_sync_gone(deletion, err);
    if (status == MUSTER_OK)
        status = delete_root_of(&d, from, root, err);
    d.root = root;
    if (status == MUSTER_OK)
        status = keeps ? delete_users_place(&d, from, to, err) : delete_own_place(&d, to, err);
    if (status == MUSTER_OK)
        status = keeps ? delete_take_beside(&d, from, to, err) : delete_take_out(&d, from, to, err);
    if (status == MUSTER_E_NOT_FOUND)
        return delete_sync_gone(deletion, err); /* another process was quicker */
    if (status == MUSTER_OK)
        status = dir_delete_sync_names(&d, err);
    if (status == MUSTER_OK && !keeps)
        status = fs_remove_tree_with(to, d.between, d.arg, err);
    return status;
}
