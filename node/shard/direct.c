/* direct - see direct.h. */
#include "node/shard/direct.h"

#include "node/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define ALIGNMENT 4096 /* of buffers, offsets and sizes: no smaller than a disk's sector */
#define LANES 2        /* with one the disk waits while the next piece is copied */
#define XFS_MAGIC 0x58465342

/* One piece: the caller fills it, its thread writes it. */
struct lane {
    struct direct *direct;
    pthread_t thread;
    bool started;
    char *buffer;
    size_t size;
    uint64_t offset;
    bool full; /* under the mutex: the thread has it, else the caller */
};

struct direct {
    int fd;
    struct fs_watcher watcher;
    size_t filling;  /* the lane, */
    size_t used;     /* of its buffer; 0: its thread may still have it */
    uint64_t offset; /* of its piece */
    struct lane lanes[LANES];
    pthread_mutex_t mutex; /* the rest */
    pthread_cond_t changed;
    bool stop;
    int code; /* of the first piece that failed */
};

bool direct_gains(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) != 0)
        return false;
    return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_MAGIC ||
           fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static void direct_set(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0)
        (void)fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT); /* EINVAL: buffered */
}

/* A file's end is seldom aligned; what a short write leaves is not either. The kernel then says
 * EINVAL, and the whole piece is written again through the page cache. */
static int direct_lane_write(const struct lane *lane)
{
    const struct direct *direct = lane->direct;
    int code;

    if (lane->size % ALIGNMENT != 0)
        direct_set(direct->fd, false);
    code = fs_pwrite_all(direct->fd, lane->buffer, lane->size, lane->offset);
    if (code == EINVAL) {
        direct_set(direct->fd, false);
        code = fs_pwrite_all(direct->fd, lane->buffer, lane->size, lane->offset);
    }
    if (code == 0 && !direct->watcher.went(lane->size, direct->watcher.arg))
        code = ECANCELED;
    return code;
}

static void *direct_lane_run(void *arg)
{
    struct lane *lane = arg;
    struct direct *direct = lane->direct;

    pthread_mutex_lock(&direct->mutex);
    for (;;) {
        bool failed;
        int code;

        while (!lane->full && !direct->stop)
            pthread_cond_wait(&direct->changed, &direct->mutex);
        if (!lane->full)
            break;
        failed = direct->code != 0;
        pthread_mutex_unlock(&direct->mutex);
        code = failed ? 0 : direct_lane_write(lane);
        pthread_mutex_lock(&direct->mutex);
        if (direct->code == 0)
            direct->code = code;
        lane->full = false;
        pthread_cond_broadcast(&direct->changed);
    }
    pthread_mutex_unlock(&direct->mutex);
    return NULL;
}

/* A full buffer is written first. */
static void direct_free(struct direct *direct)
{
    pthread_mutex_lock(&direct->mutex);
    direct->stop = true;
    pthread_cond_broadcast(&direct->changed);
    pthread_mutex_unlock(&direct->mutex);
    for (size_t i = 0; i < LANES; i++) {
        if (direct->lanes[i].started)
            pthread_join(direct->lanes[i].thread, NULL);
        free(direct->lanes[i].buffer);
    }
    pthread_cond_destroy(&direct->changed);
    pthread_mutex_destroy(&direct->mutex);
    free(direct);
}

struct direct *direct_begin(int fd, const struct fs_watcher *watcher)
{
    struct direct *direct = calloc(1, sizeof *direct);
    bool ready = true;

    if (direct == NULL)
        return NULL;
    direct->fd = fd;
    direct->watcher = *watcher;
    pthread_mutex_init(&direct->mutex, NULL);
    pthread_cond_init(&direct->changed, NULL);
    for (size_t i = 0; i < LANES && ready; i++) {
        struct lane *lane = &direct->lanes[i];

        lane->direct = direct;
        lane->buffer = aligned_alloc(ALIGNMENT, DIRECT_PIECE_BYTES);
        lane->started =
            lane->buffer != NULL && thread_start(&lane->thread, direct_lane_run, lane) == 0;
        ready = lane->started;
    }
    if (!ready) {
        direct_free(direct);
        return NULL;
    }
    direct_set(fd, true);
    return direct;
}

/* The caller may fill the lane after it. */
static int direct_lane_await(struct lane *lane)
{
    struct direct *direct = lane->direct;
    int code;

    pthread_mutex_lock(&direct->mutex);
    while (lane->full)
        pthread_cond_wait(&direct->changed, &direct->mutex);
    code = direct->code;
    pthread_mutex_unlock(&direct->mutex);
    return code;
}

static void direct_lane_hand_over(struct lane *lane)
{
    struct direct *direct = lane->direct;

    lane->offset = direct->offset;
    lane->size = direct->used;
    direct->offset += direct->used;
    direct->used = 0;
    direct->filling = (direct->filling + 1) % LANES;
    pthread_mutex_lock(&direct->mutex);
    lane->full = true;
    pthread_cond_broadcast(&direct->changed);
    pthread_mutex_unlock(&direct->mutex);
}

int direct_put(struct direct *direct, const void *data, uint64_t size)
{
    const char *at = data;

    while (size > 0) {
        struct lane *lane = &direct->lanes[direct->filling];
        size_t n = DIRECT_PIECE_BYTES - direct->used;
        int code = direct->used == 0 ? direct_lane_await(lane) : 0;

        if (code != 0)
            return code;
        if (n > size)
            n = (size_t)size;
        memcpy(lane->buffer + direct->used, at, n);
        direct->used += n;
        at += n;
        size -= n;
        if (direct->used == DIRECT_PIECE_BYTES)
            direct_lane_hand_over(lane);
    }
    return 0;
}

int direct_end(struct direct **direct)
{
    struct direct *d = *direct;
    int code = 0;

    *direct = NULL;
    if (d->used > 0)
        direct_lane_hand_over(&d->lanes[d->filling]);
    for (size_t i = 0; i < LANES; i++)
        code = direct_lane_await(&d->lanes[i]);
    direct_free(d);
    return code;
}
