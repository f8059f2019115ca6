/* words_allreduce - see words_allreduce.h.
 *
 * The segment: a header, one slot of count floats a rank, and one result. An average is
 *     copy to own slot | barrier | sum own slice of all slots into the result | barrier | copy out
 * Two barriers are enough. A slot is written again only after the second, when all sums are taken.
 * The result is written only after the first of the next average, when all have copied it out.
 *
 * Meeting: rank 0 removes the name, creates it, fills the header, sets `ready`. The others open the
 * name until it is ready with their nonce and their place in it is free. They claim the place and
 * wait for `started`. A segment that was replaced under the name meanwhile was a leftover. */
#include "words_allreduce.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 20 /* how long an abort can go unseen: nobody is woken for it */
#define NAME_SIZE 160

struct words_segment {
    _Atomic uint32_t ready;
    _Atomic uint32_t started;
    _Atomic uint32_t claimed_count;
    uint32_t world_size;
    uint64_t nonce;
    uint64_t count;
    _Atomic uint32_t claimed[WORDS_WORLD_MAX];
    _Alignas(64) _Atomic uint32_t arrived;
    _Atomic uint32_t phase;                    /* barriers passed; wraps */
    _Atomic uint32_t reached[WORDS_WORLD_MAX]; /* the barrier a rank came to, for naming the late */
    _Alignas(64) float floats[];
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&span, NULL);
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps while *word is value. 0, -ECANCELED or -ETIMEDOUT. */
static int await_change(struct words_allreduce *all, _Atomic uint32_t *word, uint32_t value,
                        int64_t deadline_ms)
{
    static const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};

    while (atomic_load(word) == value) {
        if (atomic_load(&all->aborted))
            return -ECANCELED;
        if (now_ms() >= deadline_ms)
            return -ETIMEDOUT;
        syscall(SYS_futex, word, FUTEX_WAIT, value, &look, NULL, 0);
    }
    return 0;
}

static void unmap(struct words_allreduce *all)
{
    if (all->segment)
        munmap(all->segment, all->size_bytes);
    all->segment = NULL;
}

static int map(struct words_allreduce *all, int fd)
{
    void *at = mmap(NULL, all->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return -errno;
    all->segment = at;
    return 0;
}

/* Rank 0: a fresh segment under the name, its header filled. */
static int create_segment(struct words_allreduce *all, const char *name)
{
    int code, fd;

    if (shm_unlink(name) != 0 && errno != ENOENT)
        return -errno;
    fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0)
        return -errno;
    /* Reserved, not just sized: a full /dev/shm is an error here, not a SIGBUS later. */
    code = -posix_fallocate(fd, 0, (off_t)all->size_bytes);
    if (code == 0)
        code = map(all, fd);
    close(fd);
    if (code) {
        shm_unlink(name);
        return code;
    }
    all->segment->world_size = (uint32_t)all->group.world_size;
    all->segment->nonce = all->group.nonce;
    all->segment->count = all->count;
    atomic_store(&all->segment->ready, 1);
    return 0;
}

static int start_group(struct words_allreduce *all, const char *name, int64_t deadline_ms)
{
    uint32_t others = (uint32_t)all->group.world_size - 1, here;
    int code = create_segment(all, name);

    if (code)
        return code;
    while (code == 0 && (here = atomic_load(&all->segment->claimed_count)) < others)
        code = await_change(all, &all->segment->claimed_count, here, deadline_ms);
    shm_unlink(name);
    if (code) {
        for (int rank = 1; rank < all->group.world_size && all->late_rank < 0; rank++)
            if (!atomic_load(&all->segment->claimed[rank]))
                all->late_rank = rank;
        return code;
    }
    atomic_store(&all->segment->started, 1);
    wake(&all->segment->started);
    return 0;
}

/* The other ranks: -EAGAIN when the name does not lead to a segment that is being started. */
static int claim_place(struct words_allreduce *all, const char *name, struct stat *ret_file)
{
    int fd = shm_open(name, O_RDWR, 0);
    struct words_segment *segment;
    uint32_t free_place = 0;
    int code = -EAGAIN;

    if (fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    if (fstat(fd, ret_file) == 0 && ret_file->st_size == (off_t)all->size_bytes)
        code = map(all, fd);
    close(fd);
    if (code)
        return code;
    segment = all->segment;
    if (atomic_load(&segment->ready) && !atomic_load(&segment->started) &&
        segment->nonce == all->group.nonce && segment->count == all->count &&
        segment->world_size == (uint32_t)all->group.world_size &&
        atomic_compare_exchange_strong(&segment->claimed[all->group.rank], &free_place, 1)) {
        atomic_fetch_add(&segment->claimed_count, 1);
        wake(&segment->claimed_count);
        return 0;
    }
    unmap(all);
    return -EAGAIN;
}

/* While we wait for rank 0 to start: is the name still that of our segment? When it is gone, rank 0
 * has started or failed, and `started` or the deadline tells. */
static bool was_replaced(const char *name, const struct stat *ours)
{
    struct stat now = {0};
    int fd = shm_open(name, O_RDWR, 0);
    bool replaced;

    if (fd < 0)
        return false;
    replaced = fstat(fd, &now) == 0 && now.st_ino != ours->st_ino;
    close(fd);
    return replaced;
}

static int join_group(struct words_allreduce *all, const char *name, int64_t deadline_ms)
{
    struct stat file = {0};

    for (;;) {
        int code = claim_place(all, name, &file);

        while (code == 0) {
            code = await_change(all, &all->segment->started, 0, now_ms() + 5 * LOOK_MS);
            if (code == 0)
                return 0;
            if (code == -ETIMEDOUT && was_replaced(name, &file)) {
                unmap(all);
                code = -EAGAIN;
            } else if (code == -ETIMEDOUT && now_ms() < deadline_ms) {
                code = 0;
            }
        }
        if (code != -EAGAIN)
            return code;
        if (atomic_load(&all->aborted))
            return -ECANCELED;
        if (now_ms() >= deadline_ms) {
            all->late_rank = 0;
            return -ETIMEDOUT;
        }
        sleep_ms(LOOK_MS / 4);
    }
}

int words_allreduce_open(struct words_allreduce *all, const struct words_group *group, size_t count,
                         unsigned timeout_ms)
{
    int64_t deadline_ms = now_ms() + timeout_ms;
    char name[NAME_SIZE];
    int length;

    if (group->world_size < 1 || group->world_size > WORDS_WORLD_MAX || group->rank < 0 ||
        group->rank >= group->world_size || count == 0 || strchr(group->name, '/'))
        return -EINVAL;
    length = snprintf(name, sizeof(name), "/muster-%lu-%s", (unsigned long)getuid(), group->name);
    if (length < 0 || (size_t)length >= sizeof(name))
        return -ENAMETOOLONG;
    all->group = *group;
    all->group.name = NULL;
    all->count = count;
    all->timeout_ms = timeout_ms;
    all->late_rank = -1;
    all->size_bytes =
        sizeof(struct words_segment) + ((size_t)group->world_size + 1) * count * sizeof(float);
    if (group->rank == 0)
        all->status = start_group(all, name, deadline_ms);
    else
        all->status = join_group(all, name, deadline_ms);
    if (all->status)
        unmap(all);
    return all->status;
}

void words_allreduce_close(struct words_allreduce *all)
{
    unmap(all);
}

void words_allreduce_abort(struct words_allreduce *all)
{
    atomic_store(&all->aborted, true);
}

static void find_late_rank(struct words_allreduce *all, uint32_t barrier)
{
    for (int rank = 0; rank < all->group.world_size && all->late_rank < 0; rank++)
        if (atomic_load(&all->segment->reached[rank]) != barrier)
            all->late_rank = rank;
}

/* The last to arrive opens the next phase and wakes the others. */
static int barrier(struct words_allreduce *all)
{
    struct words_segment *segment = all->segment;
    uint32_t phase = atomic_load(&segment->phase); /* cannot move before we have arrived */
    int code;

    if (atomic_load(&all->aborted))
        return -ECANCELED;
    atomic_store(&segment->reached[all->group.rank], phase + 1);
    if (atomic_fetch_add(&segment->arrived, 1) + 1 == (uint32_t)all->group.world_size) {
        atomic_store(&segment->arrived, 0);
        atomic_fetch_add(&segment->phase, 1);
        wake(&segment->phase);
        return 0;
    }
    code = await_change(all, &segment->phase, phase, now_ms() + all->timeout_ms);
    if (code == -ETIMEDOUT)
        find_late_rank(all, phase + 1);
    return code;
}

void words_allreduce_slice(size_t count, int rank, int world_size, size_t *ret_begin,
                           size_t *ret_end)
{
    size_t part = count / (size_t)world_size, rest = count % (size_t)world_size, r = (size_t)rank;

    *ret_begin = r * part + (r < rest ? r : rest);
    *ret_end = *ret_begin + part + (r < rest);
}

static void sum_slice(struct words_allreduce *all)
{
    float *slots = all->segment->floats;
    float *result = slots + (size_t)all->group.world_size * all->count;
    float divisor = (float)all->group.world_size;
    size_t begin, end;

    words_allreduce_slice(all->count, all->group.rank, all->group.world_size, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float sum = slots[i];

        for (int rank = 1; rank < all->group.world_size; rank++)
            sum += slots[(size_t)rank * all->count + i];
        result[i] = sum / divisor;
    }
}

int words_allreduce_mean(struct words_allreduce *all, float *values)
{
    size_t bytes = all->count * sizeof(float);

    if (!all->segment)
        return -ENOTCONN;
    if (all->status)
        return all->status;
    memcpy(all->segment->floats + (size_t)all->group.rank * all->count, values, bytes);
    all->status = barrier(all);
    if (all->status)
        return all->status;
    sum_slice(all);
    all->status = barrier(all);
    if (all->status)
        return all->status;
    memcpy(values, all->segment->floats + (size_t)all->group.world_size * all->count, bytes);
    return 0;
}

int words_allreduce_gather(struct words_allreduce *all, float *values, size_t count)
{
    float *result;
    size_t begin, end;

    if (!all->segment)
        return -ENOTCONN;
    if (all->status)
        return all->status;
    if (count > all->count)
        return -EINVAL;
    all->status = barrier(all); /* the last result was copied out by all */
    if (all->status)
        return all->status;
    result = all->segment->floats + (size_t)all->group.world_size * all->count;
    words_allreduce_slice(count, all->group.rank, all->group.world_size, &begin, &end);
    memcpy(result + begin, values + begin, (end - begin) * sizeof(float));
    all->status = barrier(all);
    if (all->status)
        return all->status;
    memcpy(values, result, count * sizeof(float));
    return 0;
}
