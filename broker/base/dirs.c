/* dirs - see dirs.h. */
#include "broker/base/dirs.h"

#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum muster_status dirs_parent(const char *path, char *ret_directory, size_t capacity,
                               struct muster_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);

    if (length >= capacity)
        return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                         path);
    memcpy(ret_directory, slash == NULL ? "." : path, length);
    ret_directory[length] = '\0';
    return MUSTER_OK;
}

enum muster_status dirs_sync(const char *directory, struct muster_error *err)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (code == 0 || code == EINVAL || code == EACCES)
        return MUSTER_OK;
    return error_set_code(err, MUSTER_E_IO, code,
                          "cannot make durable (fsync) directory %s: %s; "
                          "check the disk",
                          directory, strerror(code));
}

static enum muster_status dirs_sync_name_of(const char *directory, struct muster_error *err)
{
    char parent[PATH_MAX];
    enum muster_status status = dirs_parent(directory, parent, sizeof parent, err);

    if (status == MUSTER_OK)
        status = dirs_sync(parent, err);
    if (status != MUSTER_OK)
        rmdir(directory); /* else the next try takes it for durable */
    return status;
}

static enum muster_status dirs_make(const char *directory, struct muster_error *err)
{
    struct stat info;
    int code;

    if (mkdir(directory, 0700) == 0)
        return dirs_sync_name_of(directory, err);
    code = errno;
    /* EEXIST alone is not enough: on a read-only root mkdir says EROFS for what is there, too */
    if (stat(directory, &info) == 0 && S_ISDIR(info.st_mode))
        return MUSTER_OK;
    if (code == EEXIST)
        code = ENOTDIR; /* a file has its name */
    return error_set_code(err, MUSTER_E_IO, code,
                          "cannot create directory %s: %s; create it, or choose another place",
                          directory, strerror(code));
}

enum muster_status dirs_make_parent(const char *path, struct muster_error *err)
{
    char directory[PATH_MAX] = "";
    enum muster_status status = dirs_parent(path, directory, sizeof directory, err);

    if (status != MUSTER_OK)
        return status;
    for (char *at = directory + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        status = dirs_make(directory, err);
        *at = '/';
        if (status != MUSTER_OK)
            return status;
    }
    return dirs_make(directory, err);
}
