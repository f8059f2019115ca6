/* fs - single files and names; see fs.h. Trees are in fs_tree.c. */
#include "node/shard/fs.h"

#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *fs_advice_for(int code)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
        return "free disk space or raise the quota";
    case EACCES:
    case EPERM:
        return "give this user the right to read and write there";
    case EROFS:
        return "it is mounted read-only: remount it or use another directory";
    case ENOENT:
        return "create it, or correct the path";
    case ENOTDIR:
        return "a part of the path is a file: correct the path";
    case EFBIG:
        return "raise the file size limit (ulimit -f)";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files (ulimit -n)";
    case EIO:
        return "check the disk";
    case ESTALE:
        return "the network file system lost it: check the mount";
    default:
        return "see the cause";
    }
}

enum muster_status fs_fail(struct muster_error *err, enum muster_status status, int code,
                           const char *doing, const char *path)
{
    const char *cause = strerrordesc_np(code); /* static and thread-safe, unlike strerror */

    return error_set_code(err, status, code, "cannot %s %.600s: %s; %s", doing, path,
                          cause == NULL ? "unknown error" : cause, fs_advice_for(code));
}

enum muster_status fs_path(char ret_path[FS_PATH_MAX], struct muster_error *err, const char *format,
                           ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(ret_path, FS_PATH_MAX, format, args);
    va_end(args);
    if (n >= 0 && n < FS_PATH_MAX)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_ARGUMENT,
                     "a path of %d bytes is too long (it begins with %.200s); use a shorter "
                     "checkpoint directory",
                     n, ret_path);
}

int fs_open(const char *path, int flags, mode_t mode)
{
    int fd;

    do
        fd = open(path, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

DIR *fs_opendir(const char *path)
{
    DIR *dir;

    do
        dir = opendir(path);
    while (dir == NULL && errno == EINTR);
    return dir;
}

const struct dirent *fs_readdir(DIR *dir)
{
    const struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(dir);
    } while (entry == NULL && errno == EINTR);
    return entry;
}

int fs_fsync(int fd)
{
    int code;

    do
        code = fsync(fd);
    while (code != 0 && errno == EINTR);
    return code;
}

int fs_close(int fd)
{
    int code = close(fd);

    return code != 0 && errno == EINTR ? 0 : code;
}

/* If a size limit stops a save, only the save has failed; the signal would end the whole program.
 * The kernel sends it to the thread that writes. One that was pending before is its program's. */
struct size_limit {
    sigset_t signal, mask;
    bool pending;
};

static bool fs_limit_is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

static void fs_limit_hold(struct size_limit *limit)
{
    sigemptyset(&limit->signal);
    sigaddset(&limit->signal, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit->signal, &limit->mask);
    limit->pending = fs_limit_is_pending();
}

static int fs_limit_release(const struct size_limit *limit, int code)
{
    const struct timespec now = {0};

    if (code == EFBIG && !limit->pending)
        while (sigtimedwait(&limit->signal, NULL, &now) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &limit->mask, NULL);
    return code;
}

static int fs_allocate_blocks(int fd, uint64_t bytes)
{
    while (fallocate(fd, 0, 0, (off_t)bytes) != 0) {
        if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
            return errno;
        if (errno != EINTR)
            break; /* the writes will find out */
    }
    return 0;
}

int fs_allocate(int fd, uint64_t bytes)
{
    struct size_limit limit;

    fs_limit_hold(&limit);
    return fs_limit_release(&limit, fs_allocate_blocks(fd, bytes));
}

/* offset < 0: at the file's position. */
static int fs_write_whole(int fd, const void *data, size_t size, int64_t offset)
{
    const char *at = data;

    while (size > 0) {
        ssize_t n = offset < 0 ? write(fd, at, size) : pwrite(fd, at, size, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return ENOSPC; /* a device that takes nothing and says nothing */
        at += n;
        size -= (size_t)n;
        offset += offset < 0 ? 0 : n;
    }
    return 0;
}

static int fs_write_at(int fd, const void *data, size_t size, int64_t offset)
{
    struct size_limit limit;

    fs_limit_hold(&limit);
    return fs_limit_release(&limit, fs_write_whole(fd, data, size, offset));
}

int fs_write_all(int fd, const void *data, size_t size)
{
    return fs_write_at(fd, data, size, -1);
}

int fs_pwrite_all(int fd, const void *data, size_t size, uint64_t offset)
{
    return fs_write_at(fd, data, size, (int64_t)offset);
}

int fs_pread_all(int fd, void *data, size_t size, uint64_t offset)
{
    char *at = data;

    while (size > 0) {
        ssize_t n = pread(fd, at, size, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return FS_END;
        at += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

enum muster_status fs_open_regular(const char *path, int *ret_fd, uint64_t *ret_size_bytes,
                                   struct muster_error *err)
{
    struct stat st;
    /* O_NONBLOCK: a fifo must not hang us before we can see that it is one. */
    int fd = fs_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return error_set_code(err, MUSTER_E_NOT_FOUND, errno, "%.600s is missing", path);
    if (fd < 0 && errno == ELOOP)
        return error_set(err, MUSTER_E_CORRUPT,
                         "%.600s is a symbolic link; muster follows none inside a checkpoint",
                         path);
    if (fd < 0)
        return fs_fail(err, MUSTER_E_IO, errno, "open", path);
    if (fstat(fd, &st) != 0) {
        int code = errno;

        close(fd);
        return fs_fail(err, MUSTER_E_IO, code, "look at", path);
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return error_set(err, MUSTER_E_CORRUPT, "%.600s is not a regular file", path);
    }
    *ret_fd = fd;
    *ret_size_bytes = (uint64_t)st.st_size;
    return MUSTER_OK;
}

enum muster_status fs_read_small(const char *path, size_t max_bytes, char **ret_text,
                                 size_t *ret_size, struct muster_error *err)
{
    int fd = -1;
    uint64_t size = 0;
    char *text;
    int code;
    enum muster_status status = fs_open_regular(path, &fd, &size, err);

    if (status != MUSTER_OK)
        return status;
    if (size > max_bytes) {
        close(fd);
        return error_set(err, MUSTER_E_CORRUPT, "%.600s has %llu bytes, over its limit of %zu",
                         path, (unsigned long long)size, max_bytes);
    }
    text = malloc((size_t)size + 1);
    code = text == NULL ? ENOMEM : fs_pread_all(fd, text, (size_t)size, 0);
    close(fd);
    if (code != 0) {
        free(text);
        if (code == FS_END)
            return error_set(err, MUSTER_E_CORRUPT, "%.600s became shorter while it was read",
                             path);
        return fs_fail(err, code == ENOMEM ? MUSTER_E_NOMEM : MUSTER_E_IO, code, "read", path);
    }
    text[size] = '\0';
    *ret_text = text;
    *ret_size = (size_t)size;
    return MUSTER_OK;
}

enum muster_status fs_write_new(const char *path, const void *data, size_t size,
                                struct muster_error *err)
{
    int fd = fs_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    int code;

    if (fd < 0)
        return fs_fail(err, errno == EEXIST ? MUSTER_E_EXISTS : MUSTER_E_IO, errno, "create", path);
    code = fs_write_all(fd, data, size);
    if (code == 0 && fs_fsync(fd) != 0)
        code = errno;
    if (fs_close(fd) != 0 && code == 0)
        code = errno;
    if (code == 0)
        return MUSTER_OK;
    unlink(path);
    return fs_fail(err, MUSTER_E_IO, code, "write", path);
}

static enum muster_status fs_sync_opened(int fd, const char *path, struct muster_error *err)
{
    int code = fd < 0 || fs_fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    /* EINVAL: a file system that has no fsync for directories; there is nothing to wait for. */
    if (code == 0 || code == EINVAL)
        return MUSTER_OK;
    return fs_fail(err, MUSTER_E_IO, code, "make durable (fsync)", path);
}

enum muster_status fs_sync_dir(const char *path, struct muster_error *err)
{
    return fs_sync_opened(fs_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), path, err);
}

static bool fs_has_no_ranges(int code)
{
    return code == EINVAL || code == ENOSYS || code == ESPIPE;
}

int fs_await_disk(int fd, uint64_t bytes, const struct fs_watcher *watcher)
{
    for (uint64_t at = 0; at < bytes; at += FS_WRITEBACK_BYTES) {
        uint64_t size = bytes - at < FS_WRITEBACK_BYTES ? bytes - at : FS_WRITEBACK_BYTES;

        if (sync_file_range(fd, (off_t)at, (off_t)size,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                SYNC_FILE_RANGE_WAIT_AFTER) != 0)
            return fs_has_no_ranges(errno) ? 0 : errno;
        if (watcher != NULL && !watcher->went(size, watcher->arg))
            return ECANCELED;
    }
    return 0;
}

enum muster_status fs_sync_file(const char *path, const struct fs_watcher *watcher,
                                struct muster_error *err)
{
    int fd = fs_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    struct stat st;
    int code = 0;

    if (fd >= 0 && watcher != NULL && fstat(fd, &st) == 0)
        code = fs_await_disk(fd, (uint64_t)st.st_size, watcher);
    if (code == 0)
        return fs_sync_opened(fd, path, err);
    close(fd);
    return fs_fail(err, MUSTER_E_IO, code, "make durable", path);
}

bool fs_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

enum muster_status fs_look(const char *path, bool *ret_there, struct muster_error *err)
{
    struct stat st;

    *ret_there = lstat(path, &st) == 0;
    if (!*ret_there && errno != ENOENT && errno != ENOTDIR)
        return fs_fail(err, MUSTER_E_IO, errno, "look at", path);
    return MUSTER_OK;
}

bool fs_is_dir(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

enum muster_status fs_make_dirs(const char *path, struct muster_error *err)
{
    size_t made;

    return fs_make_dirs_counted(path, &made, err);
}

static enum muster_status fs_parent_of(const char *path, char ret_parent[FS_PATH_MAX],
                                       struct muster_error *err)
{
    enum muster_status status = fs_path(ret_parent, err, "%s", path);
    char *slash;

    if (status != MUSTER_OK)
        return status;
    slash = strrchr(ret_parent, '/');
    while (slash != NULL && slash > ret_parent && slash[1] == '\0') { /* "a/b//" */
        *slash = '\0';
        slash = strrchr(ret_parent, '/');
    }
    if (slash == NULL)
        memcpy(ret_parent, ".", 2);
    else
        slash[slash == ret_parent ? 1 : 0] = '\0';
    return MUSTER_OK;
}

/* The process that made `path` may have died before it synced the name. A parent that this user may
 * not read is not synced: another user made what is in it. */
static enum muster_status fs_sync_made_before(const char *parent, struct muster_error *err)
{
    int fd = fs_open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return MUSTER_OK;
    return fs_sync_opened(fd, parent, err);
}

enum muster_status fs_make_dirs_counted(const char *path, size_t *ret_made,
                                        struct muster_error *err)
{
    char parent[FS_PATH_MAX];
    struct stat st;
    const int code = stat(path, &st) == 0 ? 0 : errno; /* a link to a directory is good here */
    enum muster_status status = fs_parent_of(path, parent, err);

    *ret_made = 0;
    if (code == 0 && !S_ISDIR(st.st_mode))
        return fs_fail(err, MUSTER_E_ARGUMENT, ENOTDIR, "use as a directory", path);
    if (code != 0 && code != ENOENT)
        return fs_fail(err, code == ENOTDIR ? MUSTER_E_ARGUMENT : MUSTER_E_IO, code, "look at",
                       path);
    if (status == MUSTER_OK && code == 0)
        return fs_sync_made_before(parent, err);
    if (status == MUSTER_OK)
        status = fs_make_dirs_counted(parent, ret_made, err);
    if (status != MUSTER_OK)
        return status;
    if (mkdir(path, 0777) == 0)
        ++*ret_made;
    else if (errno == EEXIST) /* another rank was quicker */
        *ret_made = 0;
    else
        return fs_fail(err, MUSTER_E_IO, errno, "create the directory", path);
    return fs_sync_dir(parent, err);
}

enum muster_status fs_random_u64(uint64_t *ret_number, struct muster_error *err)
{
    uint64_t number;

    while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        if (errno != EINTR)
            return fs_fail(err, MUSTER_E_IO, errno, "read", "random numbers of the kernel");
    }
    *ret_number = number;
    return MUSTER_OK;
}

enum muster_status fs_rename_new(const char *from, const char *to, struct muster_error *err)
{
    int code = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ? 0 : errno;

    /* NFS and some others have no such flag. There, for directories, plain rename is as good: it
     * fails unless the target is an empty directory. For files, the caller has another way. */
    if ((code == EINVAL || code == ENOSYS || code == EOPNOTSUPP) && fs_is_dir(from)) {
        if (fs_exists(to))
            code = EEXIST;
        else
            code = rename(from, to) == 0 ? 0 : errno;
    }
    if (code == 0)
        return MUSTER_OK;
    if (code == EEXIST || code == ENOTEMPTY)
        return error_set_code(err, MUSTER_E_EXISTS, code, "%.600s is there already", to);
    return fs_fail(err, code == ENOENT ? MUSTER_E_NOT_FOUND : MUSTER_E_IO, code, "rename", from);
}

static enum muster_status fs_temp_write(const char *temp_dir, const void *data, size_t size,
                                        char ret_temp[FS_PATH_MAX], struct muster_error *err)
{
    uint64_t number = 0;
    enum muster_status status = fs_random_u64(&number, err);

    if (status == MUSTER_OK)
        status = fs_path(ret_temp, err, "%s/tmp-%016llx", temp_dir, (unsigned long long)number);
    if (status == MUSTER_OK)
        status = fs_write_new(ret_temp, data, size, err);
    return status;
}

enum muster_status fs_claim(const char *temp_dir, const char *path, const void *data, size_t size,
                            struct muster_error *err)
{
    char temp[FS_PATH_MAX];
    int code;
    enum muster_status status;

    if (fs_exists(path))
        return MUSTER_OK;
    status = fs_temp_write(temp_dir, data, size, temp, err);
    if (status != MUSTER_OK)
        return status;
    code = link(temp, path) == 0 ? 0 : errno;
    /* No hard links here (FAT, some FUSE): a rename that replaces nothing is as exclusive. */
    if (code == EPERM || code == EOPNOTSUPP || code == ENOSYS || code == EMLINK)
        code = renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0 ? 0 : errno;
    unlink(temp);
    if (code != 0 && code != EEXIST)
        return fs_fail(err, MUSTER_E_IO, code, "create", path);
    return MUSTER_OK;
}

enum muster_status fs_replace(const char *temp_dir, const char *dir, const char *path,
                              const void *data, size_t size, struct muster_error *err)
{
    char temp[FS_PATH_MAX];
    enum muster_status status = fs_temp_write(temp_dir, data, size, temp, err);

    if (status != MUSTER_OK)
        return status;
    if (rename(temp, path) != 0) {
        int code = errno;

        unlink(temp);
        return fs_fail(err, MUSTER_E_IO, code, "write", path);
    }
    return fs_sync_dir(dir, err);
}
