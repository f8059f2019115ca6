/* dir_delete - see dir_delete.h. */
#include "node/shard/dir_delete.h"

#include "schema/error.h"

#include <inttypes.h>
#include <string.h>

/* E_NOT_FOUND: it is in none of its places. */
static enum muster_status find(const struct dir_deletion *d, char ret_path[FS_PATH_MAX],
                               struct muster_error *err)
{
    enum dir_place place;

    if (d->path[0] == '/' && dir_is_round(d->path, d->job, d->generation, d->round))
        return fs_path(ret_path, err, "%s", d->path);
    return dir_find(d->root, d->job, d->generation, d->round, d->step, &place, ret_path, err);
}

/* "<root>/.muster/trash-<g>-<r>-<random>", which nobody reads and the next start clears. */
static enum muster_status own_place(const struct dir_deletion *d, char ret_path[FS_PATH_MAX],
                                    struct muster_error *err)
{
    uint64_t number = 0;
    enum muster_status status = fs_random_u64(&number, err);

    if (status == MUSTER_OK)
        status = fs_path(ret_path, err, "%s/.muster/trash-%" PRIu64 "-%" PRIu64 "-%016" PRIx64,
                         d->root, d->generation, d->round, number);
    return status;
}

/* "<root>/<trash>/<step>.<g>-<r>": a user finds it by its step, and no two have one name. */
static enum muster_status users_place(const struct dir_deletion *d, char ret_path[FS_PATH_MAX],
                                      struct muster_error *err)
{
    char name[DIR_NAME_SIZE];
    char folder[FS_PATH_MAX];
    enum muster_status status = fs_path(folder, err, "%s/%s", d->root, d->trash);

    dir_final_name(d->step, d->generation, d->round, true, name);
    if (status == MUSTER_OK)
        status = fs_make_dirs(folder, err);
    if (status == MUSTER_OK)
        status = fs_path(ret_path, err, "%s/%s", folder, name);
    return status;
}

static enum muster_status sync_names(const struct dir_deletion *d, struct muster_error *err)
{
    char folder[FS_PATH_MAX];
    enum muster_status status =
        fs_path(folder, err, "%s/%s", d->root, d->trash[0] != '\0' ? d->trash : ".muster");

    if (status == MUSTER_OK)
        status = fs_sync_dir(d->root, err);
    if (status == MUSTER_OK)
        status = fs_sync_dir(folder, err);
    return status;
}

enum muster_status dir_delete_checkpoint(const struct dir_deletion *deletion,
                                         struct muster_error *err)
{
    char from[FS_PATH_MAX];
    char to[FS_PATH_MAX];
    const bool keeps = deletion->trash[0] != '\0';
    enum muster_status status = find(deletion, from, err);

    if (status == MUSTER_E_NOT_FOUND)
        return MUSTER_OK;
    if (status == MUSTER_OK)
        status = keeps ? users_place(deletion, to, err) : own_place(deletion, to, err);
    if (status == MUSTER_OK)
        status = fs_rename_new(from, to, err);
    if (status == MUSTER_E_NOT_FOUND)
        return MUSTER_OK; /* another hand was quicker */
    if (status == MUSTER_OK)
        status = sync_names(deletion, err);
    if (status == MUSTER_OK && !keeps)
        status = fs_remove_tree(to, err);
    return status;
}
