/* reader - see reader.h. */
#include "node/shard/reader.h"

#include "node/shard/fs.h"
#include "node/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/uio.h>

#define WINDOW 16    /* chunks between the first that is not hashed and the last that is read */
#define HASH_FIRST 4 /* so many that wait are hashed before another is read */

struct chunk {
    uint64_t offset;
    char *to;
    size_t size;
    bool there; /* read, and not hashed yet */
};

struct reader {
    int fd;
    const struct reader_range *ranges;
    size_t count;
    struct checksum *sum;
    struct interrupt *interrupt; /* the first thread asks */
    char *skip;                  /* WINDOW chunks, or NULL: nothing is skipped */

    pthread_mutex_t mutex; /* the rest */
    pthread_cond_t changed;
    size_t range;           /* where the next chunk begins */
    uint64_t at;            /* ... in that range */
    uint64_t taken, hashed; /* counts of chunks */
    uint64_t ready;         /* read without a gap behind what is hashed */
    int waiting;            /* threads that are to be told of a change */
    bool warm; /* the first chunk and all after it were in the cache: the second thread reads too */
    int code;
    struct chunk chunks[WINDOW];
};

static bool reader_all_taken(const struct reader *r)
{
    return r->range == r->count || r->code != 0;
}

static void reader_skip_empty(struct reader *r)
{
    while (r->range < r->count && r->at == r->ranges[r->range].size) {
        r->range++;
        r->at = 0;
    }
}

/* The second thread is to read from the cache: two that read from a disk upset its reading ahead.
 * *ret_warm false: it was not. */
static int reader_read_cached(int fd, const struct chunk *chunk, bool *ret_warm)
{
    struct iovec into = {.iov_base = chunk->to, .iov_len = chunk->size};
    ssize_t n = preadv2(fd, &into, 1, (off_t)chunk->offset, RWF_NOWAIT);
    size_t have = n > 0 ? (size_t)n : 0;

    *ret_warm = have == chunk->size;
    return fs_pread_all(fd, chunk->to + have, chunk->size - have, chunk->offset + have);
}

/* Mutex held; it is free while the disk is waited for. */
static void reader_read_one(struct reader *r, bool second)
{
    const struct reader_range *range = &r->ranges[r->range];
    uint64_t number = r->taken++;
    struct chunk *chunk = &r->chunks[number % WINDOW];
    uint64_t left = range->size - r->at;
    bool warm = r->warm;
    int code;

    *chunk =
        (struct chunk){.offset = range->offset + r->at,
                       .to = range->to != NULL ? range->to + r->at
                                               : r->skip + number % WINDOW * (size_t)FS_CHUNK_BYTES,
                       .size = left < FS_CHUNK_BYTES ? (size_t)left : FS_CHUNK_BYTES};
    r->at += chunk->size;
    reader_skip_empty(r);
    pthread_mutex_unlock(&r->mutex);
    code = second || number == 0 ? reader_read_cached(r->fd, chunk, &warm)
                                 : fs_pread_all(r->fd, chunk->to, chunk->size, chunk->offset);
    pthread_mutex_lock(&r->mutex);
    r->warm = number == 0 ? warm : r->warm && warm;
    chunk->there = true;
    if (code != 0 && r->code == 0)
        r->code = code;
    while (r->ready < r->taken && r->chunks[r->ready % WINDOW].there)
        r->ready++;
}

static void reader_hash_one(struct reader *r)
{
    struct chunk *chunk = &r->chunks[r->hashed % WINDOW];

    pthread_mutex_unlock(&r->mutex);
    checksum_update(r->sum, chunk->to, chunk->size);
    pthread_mutex_lock(&r->mutex);
    chunk->there = false;
    r->hashed++;
}

/* Mutex held; it is free while the program is asked. */
static void reader_look_for_interrupt(struct reader *r)
{
    bool said;

    pthread_mutex_unlock(&r->mutex);
    said = interrupt_look(r->interrupt);
    pthread_mutex_lock(&r->mutex);
    if (said && r->code == 0)
        r->code = ECANCELED;
}

static void reader_tell(struct reader *r)
{
    if (r->waiting > 0)
        pthread_cond_broadcast(&r->changed);
}

static void reader_wait_for_other(struct reader *r)
{
    r->waiting++;
    pthread_cond_wait(&r->changed, &r->mutex);
    r->waiting--;
}

/* Mutex held. Until all is read and, for who hashes, hashed. */
static void reader_work(struct reader *r, bool second, bool hashes)
{
    for (;;) {
        bool room = !reader_all_taken(r) && r->taken - r->hashed < WINDOW && (!second || r->warm);
        uint64_t waiting = r->ready - r->hashed;

        if (hashes && waiting > 0 && r->code == 0 && (waiting >= HASH_FIRST || !room))
            reader_hash_one(r);
        else if (room)
            reader_read_one(r, second);
        else if (reader_all_taken(r) && (!hashes || r->hashed == r->taken || r->code != 0))
            break;
        else
            reader_wait_for_other(r);
        if (!second)
            reader_look_for_interrupt(r);
        reader_tell(r);
    }
    reader_tell(r);
}

static void *reader_run(void *arg)
{
    struct reader *r = arg;

    pthread_mutex_lock(&r->mutex);
    reader_work(r, true, true);
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

static void reader_read_all(struct reader *r)
{
    pthread_t thread;
    bool started = thread_start(&thread, reader_run, r) == 0;

    pthread_mutex_lock(&r->mutex);
    reader_work(r, false, !started);
    pthread_mutex_unlock(&r->mutex);
    if (started)
        pthread_join(thread, NULL);
}

int reader_read(int fd, const struct reader_range *ranges, size_t count, struct checksum *sum,
                struct interrupt *interrupt)
{
    struct reader r = {
        .fd = fd, .ranges = ranges, .count = count, .sum = sum, .interrupt = interrupt};
    bool skips = false;

    for (size_t i = 0; i < count; i++)
        skips |= ranges[i].to == NULL && ranges[i].size > 0;
    if (skips)
        r.skip = malloc(WINDOW * (size_t)FS_CHUNK_BYTES);
    if (skips && r.skip == NULL)
        return ENOMEM;
    reader_skip_empty(&r);
    pthread_mutex_init(&r.mutex, NULL);
    pthread_cond_init(&r.changed, NULL);
    reader_read_all(&r);
    pthread_cond_destroy(&r.changed);
    pthread_mutex_destroy(&r.mutex);
    free(r.skip);
    return r.code;
}
