/* dir_left - see dir_left.h. */
#include "node/shard/dir_left.h"

#include "node/shard/dir.h"

#include <dirent.h>
#include <stdbool.h>

/* Its commit was told: it lacks its final name only. A directory that cannot be looked at may be
 * such a one. */
static bool dir_is_committed(const char *muster, const char *name)
{
    char manifest[FS_PATH_MAX];
    bool there = true;

    return fs_path(manifest, NULL, "%s/%s/" MANIFEST_FILE_NAME, muster, name) != MUSTER_OK ||
           fs_look(manifest, &there, NULL) != MUSTER_OK || there;
}

size_t dir_left_find(const char *root, uint64_t generation, struct dir_left *ret_left, size_t max)
{
    char muster[FS_PATH_MAX];
    const struct dirent *entry;
    size_t count = 0;
    DIR *dir;

    if (dir_muster_path(root, muster, NULL) != MUSTER_OK)
        return 0;
    dir = fs_opendir(muster);
    if (dir == NULL)
        return 0;
    while (count < max && (entry = fs_readdir(dir)) != NULL)
        if (dir_round_name(entry->d_name, &ret_left[count].generation, &ret_left[count].round) &&
            ret_left[count].generation < generation && !dir_is_committed(muster, entry->d_name))
            count++;
    closedir(dir);
    return count;
}
