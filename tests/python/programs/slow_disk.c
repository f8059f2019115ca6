/* slow_disk - loaded before libmuster: from when slow_disk_ms is set, each MiB that is read or
 * written takes so long. What is small costs nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Atomic int slow_disk_ms;

static ssize_t take_time(ssize_t bytes)
{
    const long us = bytes > 0 ? (long)(bytes >> 10) * atomic_load(&slow_disk_ms) : 0;

    if (us > 1000)
        nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
    return bytes;
}

#define SLOW(name, parameters, ...)                                \
    ssize_t name parameters                                        \
    {                                                              \
        static ssize_t(*real) parameters;                          \
                                                                   \
        if (real == NULL)                                          \
            real = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name); \
        return take_time(real(__VA_ARGS__));                       \
    }

SLOW(pread, (int fd, void *to, size_t size, off_t at), fd, to, size, at)
SLOW(pread64, (int fd, void *to, size_t size, off_t at), fd, to, size, at)
SLOW(preadv2, (int fd, const struct iovec *to, int count, off_t at, int flags), fd, to, count, at,
     flags)
SLOW(preadv64v2, (int fd, const struct iovec *to, int count, off_t at, int flags), fd, to, count,
     at, flags)
SLOW(write, (int fd, const void *from, size_t size), fd, from, size)
SLOW(pwrite, (int fd, const void *from, size_t size, off_t at), fd, from, size, at)
SLOW(pwrite64, (int fd, const void *from, size_t size, off_t at), fd, from, size, at)
