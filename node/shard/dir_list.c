/* dir_list - see dir_list.h. */
#include "node/shard/dir_list.h"

#include "node/shard/shard.h"
#include "schema/error.h"
#include "schema/room.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void dir_list_free(struct dir_list *list)
{
    free(list->items);
    free(list->launches);
    *list = (struct dir_list){0};
}

/* Room for one more. */
static bool grow(struct dir_list *list)
{
    struct dir_item *items =
        room_for_one(list->items, list->count, &list->capacity, 64, sizeof *items);
    struct superseded_item *launches = NULL;

    if (items != NULL) {
        list->items = items;
        launches = room_for_one(list->launches, list->count, &list->launches_capacity, 64,
                                sizeof *launches);
    }
    if (launches != NULL)
        list->launches = launches;
    return launches != NULL;
}

static int64_t bytes_of(const struct manifest *manifest)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < manifest->shard_count; i++)
        for (size_t k = 0; k < manifest->shards[i].file_count; k++)
            bytes += manifest->shards[i].files[k].bytes;
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* False: no memory. */
static bool add(struct dir_list *list, struct arena *arena, const char *path,
                const struct manifest *manifest)
{
    struct superseded_item launch = superseded_item_of(manifest);
    const struct dir_item item = {.path = arena_strdup(arena, path),
                                  .metrics = arena_strdup(arena, manifest->metrics),
                                  .round = manifest->round,
                                  .epoch = manifest->epoch,
                                  .step_in_epoch = manifest->step_in_epoch,
                                  .data_position = manifest->data_position,
                                  .bytes = bytes_of(manifest)};

    launch.job = arena_strdup(arena, manifest->job);
    if (item.path == NULL || item.metrics == NULL || launch.job == NULL || !grow(list))
        return false;
    list->items[list->count] = item;
    list->launches[list->count++] = launch;
    return true;
}

/* False: no memory. */
static bool look_at(struct dir_list *list, struct arena *arena, const char *path, const char *job)
{
    struct manifest *manifest = NULL;
    bool ok = true;

    if (shard_manifest_read(path, &manifest, NULL) != MUSTER_OK)
        return true;
    if (job == NULL || strcmp(manifest->job, job) == 0)
        ok = add(list, arena, path, manifest);
    manifest_destroy(&manifest);
    return ok;
}

enum muster_status dir_list_read(const char *root, const char *job, struct arena *arena,
                                 struct dir_list *ret_list, struct muster_error *err)
{
    DIR *dir = opendir(root);
    const struct dirent *entry;
    struct dir_list list = {0};
    char path[FS_PATH_MAX];
    bool ok = true;

    if (dir == NULL)
        return fs_fail(err, errno == ENOENT ? MUSTER_E_NOT_FOUND : MUSTER_E_IO, errno, "read",
                       root);
    while (ok && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' &&
            fs_path(path, NULL, "%s/%s", root, entry->d_name) == MUSTER_OK)
            ok = look_at(&list, arena, path, job);
    closedir(dir);
    if (ok && superseded_mark(list.launches, list.count)) {
        *ret_list = list;
        return MUSTER_OK;
    }
    dir_list_free(&list);
    return error_set(err, MUSTER_E_NOMEM, "no memory for the list of checkpoints; free some");
}
