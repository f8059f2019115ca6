/* dir_list - see dir_list.h. */
#include "node/shard/dir_list.h"

#include "node/shard/shard.h"
#include "schema/error.h"
#include "schema/room.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void dir_list_free(struct dir_list *list)
{
    free(list->items);
    free(list->launches);
    free(list->damaged);
    *list = (struct dir_list){0};
}

/* Room for one more. */
static bool dir_list_grow(struct dir_list *list)
{
    struct dir_item *items =
        room_for_one(list->items, list->count, &list->capacity, 64, sizeof *items);
    struct counts_item *launches = NULL;

    if (items != NULL) {
        list->items = items;
        launches = room_for_one(list->launches, list->count, &list->launches_capacity, 64,
                                sizeof *launches);
    }
    if (launches != NULL)
        list->launches = launches;
    return launches != NULL;
}

static int64_t dir_list_bytes_of(const struct manifest *manifest)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < manifest->shard_count; i++)
        for (size_t k = 0; k < manifest->shards[i].file_count; k++)
            bytes += manifest->shards[i].files[k].bytes;
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* False: no memory. */
static bool dir_list_add(struct dir_list *list, struct arena *arena, const char *path,
                         const struct manifest *manifest)
{
    struct counts_item launch = counts_item_of(manifest);
    const struct dir_item item = {.path = arena_strdup(arena, path),
                                  .metrics = arena_strdup(arena, manifest->metrics),
                                  .round = manifest->round,
                                  .database = manifest->database,
                                  .epoch = manifest->epoch,
                                  .step_in_epoch = manifest->step_in_epoch,
                                  .data_position = manifest->data_position,
                                  .bytes = dir_list_bytes_of(manifest)};

    launch.job = arena_strdup(arena, manifest->job);
    if (item.path == NULL || item.metrics == NULL || launch.job == NULL || !dir_list_grow(list))
        return false;
    list->items[list->count] = item;
    list->launches[list->count++] = launch;
    return true;
}

static enum muster_status dir_list_no_memory(struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOMEM, "no memory for the list of checkpoints; free some");
}

static int64_t dir_time_of(const char *dir, const char *file)
{
    char path[FS_PATH_MAX];
    struct stat info;

    if (fs_path(path, NULL, "%s/%s", dir, file) != MUSTER_OK || lstat(path, &info) != 0)
        return INT64_MAX;
    return (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
}

static enum muster_status dir_add_damaged(struct dir_list *list, struct arena *arena,
                                          const char *path, const char *job,
                                          struct muster_error *err)
{
    struct dir_damaged item = {.path = arena_strdup(arena, path),
                               .created_unix_ms = dir_time_of(path, "ROUND")};
    int64_t manifest_ms =
        dir_time_of(path, MANIFEST_FILE_NAME); /* later, if it was damaged by a write */
    struct dir_damaged *items =
        room_for_one(list->damaged, list->damaged_count, &list->damaged_capacity, 8, sizeof item);

    if (items != NULL)
        list->damaged = items;
    if (items == NULL || item.path == NULL)
        return dir_list_no_memory(err);
    item.name = strrchr(item.path, '/') + 1;
    if (manifest_ms < item.created_unix_ms)
        item.created_unix_ms = manifest_ms;
    if (job == NULL || !dir_round_of(path, job, &item.generation, &item.round))
        item.generation = item.round = UINT64_MAX;
    list->damaged[list->damaged_count++] = item;
    return MUSTER_OK;
}

struct look {
    struct dir_list list;
    struct arena *arena;
    const char *job;
    const struct dir_names *names; /* NULL: at all */
    int64_t above;
    bool unnamed; /* in .muster: rounds alone */
    bool older;   /* those of no more steps, if they can be read: for what their launches gave up */
};

/* Another user's directory (lost+found), as any other, is none of ours by its name. */
static bool dir_list_is_damaged(const struct look *look, enum muster_status status,
                                const struct muster_error *why)
{
    return status == MUSTER_E_CORRUPT || status == MUSTER_E_VERSION ||
           (status == MUSTER_E_IO &&
            (look->names != NULL || why->code == EACCES || why->code == EPERM));
}

static enum muster_status dir_list_look_at(struct look *look, const char *path,
                                           struct muster_error *err)
{
    struct manifest *manifest = NULL;
    struct muster_error why = {0};
    enum muster_status status = shard_manifest_read(path, &manifest, &why);
    bool ok = true;

    if (status == MUSTER_OK) {
        if (look->job == NULL || strcmp(manifest->job, look->job) == 0)
            ok = dir_list_add(&look->list, look->arena, path, manifest);
        manifest_destroy(&manifest);
        return ok ? MUSTER_OK : dir_list_no_memory(err);
    }
    if (dir_list_is_damaged(look, status, &why) && look->older)
        return MUSTER_OK;
    if (dir_list_is_damaged(look, status, &why))
        return dir_add_damaged(&look->list, look->arena, path, look->job, err);
    if (status == MUSTER_E_IO || status == MUSTER_E_NOMEM)
        return error_pass(err, status, &why);
    return MUSTER_OK; /* it has no manifest */
}

static bool dir_is_asked_for(const struct look *look, const char *name)
{
    uint64_t generation, round;
    int64_t step;
    bool older;

    if (look->unnamed) /* not what is being deleted */
        return dir_round_name(name, &generation, &round);
    older = look->names != NULL && dir_name_step(name, look->names, &step) && step <= look->above;
    return name[0] != '.' && older == look->older;
}

static enum muster_status dir_list_look_into(struct look *look, const char *root,
                                             struct muster_error *err)
{
    DIR *dir = fs_opendir(root);
    const struct dirent *entry;
    char path[FS_PATH_MAX];
    enum muster_status status = MUSTER_OK;

    if (dir == NULL)
        return fs_fail(err, errno == ENOENT ? MUSTER_E_NOT_FOUND : MUSTER_E_IO, errno, "read",
                       root);
    while (status == MUSTER_OK && (entry = fs_readdir(dir)) != NULL)
        if (dir_is_asked_for(look, entry->d_name) &&
            fs_path(path, NULL, "%s/%s", root, entry->d_name) == MUSTER_OK)
            status = dir_list_look_at(look, path, err);
    if (status == MUSTER_OK && errno != 0)
        status = fs_fail(err, MUSTER_E_IO, errno, "read", root);
    closedir(dir);
    return status;
}

/* Their names are of no step; what a look at them finds is a manifest, or nothing. */
static enum muster_status dir_look_at_unnamed(struct look *look, const char *root,
                                              struct muster_error *err)
{
    char path[FS_PATH_MAX];
    enum muster_status status = dir_muster_path(root, path, err);

    look->unnamed = true;
    if (status == MUSTER_OK)
        status = dir_list_look_into(look, path, err);
    look->unnamed = false;
    return status;
}

/* Which of them counts, the others may have to tell: a launch went back, and saved no more steps
 * than `above`. */
static bool dir_found_above(const struct look *look)
{
    const struct dir_list *list = &look->list;
    int64_t step;

    for (size_t i = 0; i < list->count; i++)
        if (list->launches[i].step > look->above)
            return true;
    for (size_t i = 0; i < list->damaged_count; i++)
        if (dir_name_step(list->damaged[i].name, look->names, &step) && step > look->above)
            return true;
    return false;
}

static enum muster_status dir_end_look(struct look *look, enum muster_status status,
                                       struct dir_list *ret_list)
{
    if (status == MUSTER_OK) {
        counts_mark(look->list.launches, look->list.count);
        *ret_list = look->list;
    } else {
        dir_list_free(&look->list);
    }
    return status;
}

enum muster_status dir_list_read(const char *root, const char *job, struct arena *arena,
                                 struct dir_list *ret_list, struct muster_error *err)
{
    struct look look = {.arena = arena, .job = job};
    enum muster_status status = dir_list_look_into(&look, root, err);

    return dir_end_look(&look, status, ret_list);
}

enum muster_status dir_list_read_all(const char *root, const char *job, struct arena *arena,
                                     struct dir_list *ret_list, struct muster_error *err)
{
    struct look look = {.arena = arena, .job = job};
    struct muster_error why = {0};
    enum muster_status status = dir_look_at_unnamed(&look, root, &why);

    status = status == MUSTER_OK || status == MUSTER_E_NOT_FOUND
                 ? dir_list_look_into(&look, root, err)
                 : error_pass(err, status, &why);
    return dir_end_look(&look, status, ret_list);
}

enum muster_status dir_list_read_above(const char *root, const char *job,
                                       const struct dir_names *names, int64_t above,
                                       struct arena *arena, struct dir_list *ret_list,
                                       struct muster_error *err)
{
    struct look look = {.arena = arena, .job = job, .names = names, .above = above};
    struct muster_error why = {0};
    enum muster_status status = dir_list_look_into(&look, root, err);

    if (status == MUSTER_OK && dir_look_at_unnamed(&look, root, &why) == MUSTER_E_NOMEM)
        status = error_pass(err, MUSTER_E_NOMEM, &why);
    if (status == MUSTER_OK && dir_found_above(&look)) {
        look.older = true;
        status = dir_list_look_into(&look, root, err);
    }
    return dir_end_look(&look, status, ret_list);
}

bool dir_list_counts(const struct dir_list *list, const struct dir_damaged *damaged,
                     const char *job, const struct dir_names *names, int64_t *ret_step)
{
    struct counts_item item = {
        .job = job, .generation = damaged->generation, .created_unix_ms = damaged->created_unix_ms};

    if (!dir_name_step(damaged->name, names, &item.step) ||
        !counts_beside(list->launches, list->count, &item))
        return false;
    *ret_step = item.step;
    return true;
}
