/* dir_left - see dir_left.h. */
#include "node/shard/dir_left.h"

#include "node/shard/dir.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "<generation>-<round>" as dir_round_path writes it, and nothing else. */
static bool read_name(const char *name, struct dir_left *ret_left)
{
    char same[48], *end = NULL;

    ret_left->generation = strtoull(name, &end, 10);
    if (*end != '-')
        return false;
    ret_left->round = strtoull(end + 1, NULL, 10);
    snprintf(same, sizeof same, "%" PRIu64 "-%" PRIu64, ret_left->generation, ret_left->round);
    return strcmp(same, name) == 0;
}

/* Whose commit was told: it lacks its final name only. What cannot be looked at may be such a one. */
static bool is_committed(const char *muster, const char *name)
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
        if (read_name(entry->d_name, &ret_left[count]) && ret_left[count].generation < generation &&
            !is_committed(muster, entry->d_name))
            count++;
    closedir(dir);
    return count;
}
