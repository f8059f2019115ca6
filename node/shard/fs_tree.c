/* fs_tree - walking and removing directory trees; see fs.h.
 * Never: recursion deeper than FS_DEPTH_MAX, a followed link. */
#include "node/shard/fs.h"

#include "schema/error.h"
#include "schema/limits.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    const char *root;
    const struct fs_watcher *watcher;
    struct fs_list list;
};

void fs_list_clear(struct fs_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct fs_list){0};
}

static enum muster_status tree_list_add(struct fs_list *list, const char *path,
                                        struct muster_error *err)
{
    char *copy;

    if (list->count == FILES_SHARD_MAX)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "a shard has more than %d files (at %.600s); write fewer, larger ones",
                         FILES_SHARD_MAX, path);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        char **paths = realloc(list->paths, capacity * sizeof *paths);

        if (paths == NULL)
            return error_set(err, MUSTER_E_NOMEM, "no memory to list the files of a shard");
        list->paths = paths;
        list->capacity = capacity;
    }
    copy = strdup(path);
    if (copy == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to list the files of a shard");
    list->paths[list->count++] = copy;
    return MUSTER_OK;
}

static bool tree_is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static enum muster_status tree_walk_dir(struct walk *walk, const char *relative, int depth,
                                        struct muster_error *err);

static enum muster_status tree_walk_entry(struct walk *walk, const char *relative, int depth,
                                          struct muster_error *err)
{
    char path[FS_PATH_MAX];
    struct stat st;
    enum muster_status status = fs_path(path, err, "%s/%s", walk->root, relative);

    if (status != MUSTER_OK)
        return status;
    if (lstat(path, &st) != 0)
        return fs_fail(err, MUSTER_E_IO, errno, "look at", path);
    if (S_ISDIR(st.st_mode))
        return tree_walk_dir(walk, relative, depth + 1, err);
    if (!S_ISREG(st.st_mode))
        return error_set(
            err, MUSTER_E_UNSUPPORTED,
            "%.600s is a %s; a checkpoint holds only regular files and directories, so "
            "write a copy there",
            path, S_ISLNK(st.st_mode) ? "symbolic link" : "special file");
    status = fs_sync_file(path, walk->watcher, err);
    return status != MUSTER_OK ? status : tree_list_add(&walk->list, relative, err);
}

static enum muster_status tree_walk_dir(struct walk *walk, const char *relative, int depth,
                                        struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char child[FS_PATH_MAX];
    const char *separator = *relative == '\0' ? "" : "/";
    const struct dirent *entry;
    DIR *dir;
    enum muster_status status = fs_path(path, err, "%s%s%s", walk->root, separator, relative);

    if (status != MUSTER_OK)
        return status;
    if (depth > FS_DEPTH_MAX)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "%.600s is nested deeper than %d directories; write a flatter tree", path,
                         FS_DEPTH_MAX);
    dir = fs_opendir(path);
    if (dir == NULL)
        return fs_fail(err, MUSTER_E_IO, errno, "open the directory", path);
    while (status == MUSTER_OK && (entry = fs_readdir(dir)) != NULL) {
        if (tree_is_dot(entry->d_name))
            continue;
        status = fs_path(child, err, "%s%s%s", relative, separator, entry->d_name);
        if (status == MUSTER_OK)
            status = tree_walk_entry(walk, child, depth, err);
    }
    if (status == MUSTER_OK && errno != 0)
        status = fs_fail(err, MUSTER_E_IO, errno, "read the directory", path);
    closedir(dir);
    if (status == MUSTER_OK)
        status = fs_sync_dir(path, err);
    return status;
}

static int tree_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum muster_status fs_walk(const char *dir, const struct fs_watcher *watcher,
                           struct fs_list *ret_list, struct muster_error *err)
{
    struct walk walk = {.root = dir, .watcher = watcher};
    enum muster_status status = tree_walk_dir(&walk, "", 0, err);

    if (status != MUSTER_OK) {
        fs_list_clear(&walk.list);
        return status;
    }
    if (walk.list.count > 1)
        qsort(walk.list.paths, walk.list.count, sizeof *walk.list.paths, tree_by_text);
    *ret_list = walk.list;
    return MUSTER_OK;
}

struct removal {
    void (*between)(void *arg);
    void *arg;
};

static enum muster_status tree_remove_at(const struct removal *removal, const char *path, int depth,
                                         struct muster_error *err)
{
    char child[FS_PATH_MAX];
    const struct dirent *entry;
    DIR *dir;
    enum muster_status status = MUSTER_OK;

    if (unlink(path) == 0 || errno == ENOENT)
        return MUSTER_OK;
    if (errno != EISDIR && errno != EPERM)
        return fs_fail(err, MUSTER_E_IO, errno, "remove", path);
    if (depth > FS_DEPTH_MAX * 2)
        return error_set(err, MUSTER_E_UNSUPPORTED, "%.600s is nested too deep to be removed",
                         path);
    dir = fs_opendir(path);
    if (dir == NULL)
        return errno == ENOENT ? MUSTER_OK
                               : fs_fail(err, MUSTER_E_IO, errno, "open the directory", path);
    while (status == MUSTER_OK && (entry = fs_readdir(dir)) != NULL) {
        if (tree_is_dot(entry->d_name))
            continue;
        status = fs_path(child, err, "%s/%s", path, entry->d_name);
        if (status == MUSTER_OK)
            status = tree_remove_at(removal, child, depth + 1, err);
        if (removal->between != NULL)
            removal->between(removal->arg);
    }
    closedir(dir);
    if (status == MUSTER_OK && rmdir(path) != 0 && errno != ENOENT)
        status = fs_fail(err, MUSTER_E_IO, errno, "remove the directory", path);
    return status;
}

enum muster_status fs_remove_tree(const char *path, struct muster_error *err)
{
    return fs_remove_tree_with(path, NULL, NULL, err);
}

enum muster_status fs_remove_tree_with(const char *path, void (*between)(void *arg), void *arg,
                                       struct muster_error *err)
{
    return tree_remove_at(&(struct removal){between, arg}, path, 0, err);
}
