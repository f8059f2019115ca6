/* file_calls - see file_calls.h. Each __wrap_x stands where the objects call x. */
#include "tests/faults/file_calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

static struct {
    unsigned calls;
    int code;
    uint64_t at;
    bool sticky;
    bool counting;
    uint64_t count, hits;
    file_calls_seen_fn *seen_fn;
    void *seen_arg;
    uint64_t random;
} plan;

void file_calls_plan(unsigned calls, int code, uint64_t at, bool sticky)
{
    plan.calls = calls;
    plan.code = code;
    plan.at = at;
    plan.sticky = sticky;
    plan.count = 0;
    plan.hits = 0;
}

void file_calls_begin(void)
{
    plan.counting = true;
}

void file_calls_end(void)
{
    plan.counting = false;
}

uint64_t file_calls_count(void)
{
    return plan.count;
}

uint64_t file_calls_hits(void)
{
    return plan.hits;
}

void file_calls_watch(file_calls_seen_fn *seen_fn, void *arg)
{
    plan.seen_fn = seen_fn;
    plan.seen_arg = arg;
}

static bool is_hit(enum file_call call)
{
    if (!plan.counting || (plan.calls & (unsigned)call) == 0)
        return false;
    plan.count++;
    if (plan.at == 0 || plan.count < plan.at || (plan.count > plan.at && !plan.sticky))
        return false;
    plan.hits++;
    return true;
}

/* True with errno: the call is to fail. A short transfer is not a failure. */
static bool fails(enum file_call call)
{
    if (!is_hit(call) || plan.code == FILE_CALL_SHORT)
        return false;
    errno = plan.code;
    return true;
}

/* As fails(); a short one gets a smaller size. */
static bool transfer_fails(enum file_call call, size_t *size)
{
    if (!is_hit(call))
        return false;
    if (plan.code == FILE_CALL_SHORT) {
        *size = *size > 1 ? *size / 2 : *size;
        return false;
    }
    errno = plan.code;
    return true;
}

void file_calls_random(uint64_t seed)
{
    plan.random = seed;
}

static bool is_watched(void)
{
    return plan.counting && plan.seen_fn != NULL;
}

static void seen(const char *name, const char *from, const char *path)
{
    const int code = errno;

    if (!is_watched())
        return;
    plan.counting = false;
    plan.seen_fn(plan.seen_arg, &(struct file_calls_seen){name, path, from});
    plan.counting = true;
    errno = code;
}

static void seen_fd(const char *name, int fd)
{
    char link[64];
    char path[PATH_MAX];
    ssize_t size;

    if (!is_watched())
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    seen(name, "", path);
}

/* --- the calls -------------------------------------------------------------------------------- */

/* WRAP(call, type, name, parameters, arguments): fails with `failed`, else as it is. */
#define WRAP(call, type, failed, name, parameters, arguments)    \
    type __real_##name parameters;                               \
    type __wrap_##name parameters;                               \
    type __wrap_##name parameters                                \
    {                                                            \
        return fails(call) ? (failed) : __real_##name arguments; \
    }
/* The same, with the path of a call that succeeded. */
#define WRAP_SEEN(call, name, parameters, arguments, from, path) \
    int __real_##name parameters;                                \
    int __wrap_##name parameters;                                \
    int __wrap_##name parameters                                 \
    {                                                            \
        int result = fails(call) ? -1 : __real_##name arguments; \
                                                                 \
        if (result == 0)                                         \
            seen(#name, from, path);                             \
        return result;                                           \
    }
#define WRAP_TRANSFER(call, name, parameters, arguments)                           \
    ssize_t __real_##name parameters;                                              \
    ssize_t __wrap_##name parameters;                                              \
    ssize_t __wrap_##name parameters                                               \
    {                                                                              \
        ssize_t done = transfer_fails(call, &size) ? -1 : __real_##name arguments; \
                                                                                   \
        if (done > 0 && (call) == FILE_CALL_WRITE)                                 \
            seen_fd(#name, fd);                                                    \
        return done;                                                               \
    }

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    unsigned mode = 0;
    int fd;

    va_start(args, flags);
    if (flags & O_CREAT)
        mode = va_arg(args, unsigned);
    va_end(args);
    fd = fails(FILE_CALL_OPEN) ? -1 : __real_open(path, flags, mode);
    if (fd >= 0 && (flags & O_CREAT) != 0)
        seen("open", "", path);
    return fd;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    bool failed = fails(FILE_CALL_CLOSE);
    int result = __real_close(fd);

    if (failed)
        errno = plan.code;
    return failed ? -1 : result;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    int result = fails(FILE_CALL_SYNC) ? -1 : __real_fsync(fd);

    if (result == 0)
        seen_fd("fsync", fd);
    return result;
}

WRAP_TRANSFER(FILE_CALL_WRITE, write, (int fd, const void *data, size_t size), (fd, data, size))
WRAP_TRANSFER(FILE_CALL_WRITE, pwrite, (int fd, const void *data, size_t size, off_t offset),
              (fd, data, size, offset))
WRAP_TRANSFER(FILE_CALL_READ, pread, (int fd, void *data, size_t size, off_t offset),
              (fd, data, size, offset))
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    int result = fails(FILE_CALL_WRITE) ? -1 : __real_ftruncate(fd, size);

    if (result == 0)
        seen_fd("ftruncate", fd);
    return result;
}

WRAP(FILE_CALL_OPEN, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
WRAP(FILE_CALL_LIST, DIR *, NULL, opendir, (const char *path), (path))
WRAP(FILE_CALL_LIST, struct dirent *, NULL, readdir, (DIR * dir), (dir))
WRAP_SEEN(FILE_CALL_MAKE, mkdir, (const char *path, mode_t mode), (path, mode), "", path)
WRAP_SEEN(FILE_CALL_MAKE, link, (const char *from, const char *to), (from, to), from, to)
WRAP_SEEN(FILE_CALL_RENAME, rename, (const char *from, const char *to), (from, to), from, to)
WRAP_SEEN(FILE_CALL_RENAME, renameat2,
          (int from_fd, const char *from, int to_fd, const char *to, unsigned flags),
          (from_fd, from, to_fd, to, flags), from, to)
WRAP_SEEN(FILE_CALL_REMOVE, unlink, (const char *path), (path), "", path)
WRAP_SEEN(FILE_CALL_REMOVE, rmdir, (const char *path), (path), "", path)
WRAP(FILE_CALL_LOOK, int, -1, stat, (const char *path, struct stat *info), (path, info))
WRAP(FILE_CALL_LOOK, int, -1, lstat, (const char *path, struct stat *info), (path, info))
WRAP(FILE_CALL_LOOK, int, -1, fstat, (int fd, struct stat *info), (fd, info))
WRAP(FILE_CALL_LOOK, int, -1, statfs, (const char *path, struct statfs *info), (path, info))
WRAP(FILE_CALL_LOOK, int, -1, access, (const char *path, int mode), (path, mode))
WRAP(FILE_CALL_LOOK, int, -1, faccessat, (int fd, const char *path, int mode, int flags),
     (fd, path, mode, flags))
WRAP(FILE_CALL_LOOK, char *, NULL, realpath, (const char *path, char *to), (path, to))

ssize_t __real_getrandom(void *data, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags)
{
    if (fails(FILE_CALL_OTHER))
        return -1;
    if (!plan.counting || plan.random == 0 || size != sizeof plan.random)
        return __real_getrandom(data, size, flags);
    plan.random = plan.random * 6364136223846793005u + 1442695040888963407u;
    memcpy(data, &plan.random, size);
    return (ssize_t)size;
}

WRAP(FILE_CALL_OTHER, int, -1, flock, (int fd, int operation), (fd, operation))
