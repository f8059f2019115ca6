/* place - see place.h. */
#include "client/manager/place.h"

#include "node/shard/dir.h"
#include "schema/paths.h"

#include <stdio.h>

bool place_find(const char *job, const char *directory, const struct muster_checkpoint_row *row,
                int64_t steps_done, char ret_path[FS_PATH_MAX])
{
    const char *under_way = paths_under_way(row->path);
    char root[FS_PATH_MAX];
    enum dir_place place = DIR_PLACE_NONE;

    if (under_way == NULL)
        return false;
    if (directory == NULL || fs_path(root, NULL, "%s", directory) != MUSTER_OK)
        snprintf(root, sizeof root, "%.*s", (int)(under_way - row->path), row->path);
    return dir_find(root, job, (uint64_t)row->generation, (uint64_t)row->checkpoint, steps_done,
                    &place, ret_path, NULL) == MUSTER_OK &&
           place == DIR_PLACE_FINAL;
}
