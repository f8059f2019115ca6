/* bench_plain - the same bytes by plain writes and reads: what the disk itself takes. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)1 << 20)

static int plain_write_one(const char *path, char *piece, int64_t left)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0;

    while (good && left > 0) {
        size_t size = left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t n = write(fd, piece, size);

        good = n > 0;
        left -= n;
    }
    return good && fsync(fd) == 0 ? 0 : errno;
}

static int plain_read_one(const char *path, char *piece, int64_t left)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;

    while (good && left > 0) {
        ssize_t n = read(fd, piece, PIECE_BYTES);

        good = n > 0;
        left -= n;
    }
    return good ? 0 : errno;
}

static int plain_one(const char *dir, int64_t rank, int64_t size_bytes,
                     int (*work)(const char *path, char *piece, int64_t size_bytes))
{
    char path[PATH_MAX];
    char *piece = malloc(PIECE_BYTES);

    if (piece == NULL)
        return ENOMEM;
    memset(piece, 1 + (int)rank, PIECE_BYTES);
    snprintf(path, sizeof path, "%s/plain.%d", dir, (int)rank);
    return work(path, piece, size_bytes);
}

static double plain_all(const char *dir, int64_t ranks, int64_t size_bytes,
                        int (*work)(const char *path, char *piece, int64_t size_bytes))
{
    pid_t pids[BENCH_RANKS_MAX];
    double began_ms = bench_clock_ms();
    int code = 0, started = 0;

    for (; started < ranks && code == 0; started++) {
        pids[started] = fork();
        if (pids[started] == 0)
            _exit(plain_one(dir, started, size_bytes, work));
        if (pids[started] < 0)
            code = errno;
    }
    for (int i = 0; i < started; i++) {
        int status = 0;

        if (pids[i] < 0)
            continue;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            continue;
        if (code == 0)
            code = WIFEXITED(status) ? WEXITSTATUS(status) : ECANCELED;
    }
    errno = code;
    return code == 0 ? bench_clock_ms() - began_ms : -1;
}

double bench_plain_write(const char *dir, int64_t ranks, int64_t size_bytes)
{
    return plain_all(dir, ranks, size_bytes, plain_write_one);
}

double bench_plain_read(const char *dir, int64_t ranks, int64_t size_bytes)
{
    return plain_all(dir, ranks, size_bytes, plain_read_one);
}
