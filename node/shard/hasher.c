/* hasher - see hasher.h. */
#include "node/shard/hasher.h"

#include "node/clock.h"
#include "node/shard/fs.h"
#include "node/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The thread is woken for so much at a time: a wake costs as much as some 100 KiB of hashing. */
#define WAKE_BYTES ((uint64_t)4 * FS_CHUNK_BYTES)

struct hasher {
    struct checksum *sum;
    struct fs_watcher watcher;   /* went NULL: nobody */
    struct interrupt *interrupt; /* of the thread that pushes */
    pthread_t thread;
    bool started;
    atomic_bool give_up;
    pthread_mutex_t mutex; /* the rest */
    pthread_cond_t more, done;
    bool stop;
    bool sleeps;             /* the thread, until there is enough to do */
    bool wanted;             /* somebody waits for what there is, however little */
    uint64_t behind_bytes;   /* pushed since the last wake */
    uint64_t pushed, hashed; /* counts; at most HASHER_AHEAD_MAX apart */
    struct hasher_entry entries[HASHER_AHEAD_MAX];
};

/* Both sums in one pass over each piece, so that the second finds it in the cache. */
static void hasher_hash(struct hasher *hasher, const struct hasher_entry *entry)
{
    const unsigned char *at = entry->data;
    unsigned char *sum = entry->ret_sums;
    uint64_t piece = entry->ret_sums != NULL ? entry->piece_bytes : FS_CHUNK_BYTES;

    for (uint64_t left = entry->size; left > 0 && !atomic_load(&hasher->give_up);) {
        size_t n = left < piece ? (size_t)left : (size_t)piece;

        checksum_update(hasher->sum, at, n);
        if (sum != NULL) {
            checksum_raw(at, n, sum);
            sum += CHECKSUM_RAW_BYTES;
        }
        at += n;
        left -= n;
        if (hasher->watcher.went != NULL && !hasher->watcher.went(n, hasher->watcher.arg))
            atomic_store(&hasher->give_up, true);
    }
}

/* Under the mutex. */
static void hasher_sleep_until_woken(struct hasher *hasher)
{
    hasher->sleeps = true;
    while (hasher->sleeps && !hasher->stop)
        pthread_cond_wait(&hasher->more, &hasher->mutex);
    hasher->sleeps = false;
}

static void hasher_wake(struct hasher *hasher)
{
    if (!hasher->sleeps)
        return;
    hasher->sleeps = false;
    pthread_cond_signal(&hasher->more);
}

static void hasher_wait_for_done(struct hasher *hasher)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + INTERRUPT_MS;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000L};

    if (hasher->interrupt == NULL) {
        pthread_cond_wait(&hasher->done, &hasher->mutex);
        return;
    }
    pthread_cond_timedwait(&hasher->done, &hasher->mutex, &until);
    pthread_mutex_unlock(&hasher->mutex); /* it is asked without */
    if (interrupt_look(hasher->interrupt))
        atomic_store(&hasher->give_up, true);
    pthread_mutex_lock(&hasher->mutex);
}

/* Waits until at most `behind` entries are not hashed. */
static void hasher_wait_for(struct hasher *hasher, uint64_t behind)
{
    hasher->wanted = true;
    while (hasher->started && hasher->pushed - hasher->hashed > behind) {
        hasher_wake(hasher);
        hasher_wait_for_done(hasher);
    }
    hasher->wanted = false;
}

static void *hasher_run(void *arg)
{
    struct hasher *hasher = arg;

    pthread_mutex_lock(&hasher->mutex);
    while (!hasher->stop || hasher->hashed < hasher->pushed) {
        struct hasher_entry entry;

        if (hasher->hashed == hasher->pushed) {
            hasher_sleep_until_woken(hasher);
            continue;
        }
        entry = hasher->entries[hasher->hashed % HASHER_AHEAD_MAX];
        pthread_mutex_unlock(&hasher->mutex);
        hasher_hash(hasher, &entry);
        pthread_mutex_lock(&hasher->mutex);
        hasher->hashed++;
        if (hasher->wanted)
            pthread_cond_signal(&hasher->done);
    }
    pthread_mutex_unlock(&hasher->mutex);
    return NULL;
}

struct hasher *hasher_create(enum checksum_kind kind, const struct fs_watcher *watcher,
                             struct interrupt *interrupt)
{
    pthread_condattr_t monotonic;
    struct hasher *hasher = calloc(1, sizeof *hasher);

    if (hasher == NULL)
        return NULL;
    if (watcher != NULL)
        hasher->watcher = *watcher;
    hasher->interrupt = interrupt;
    hasher->sum = checksum_create(kind);
    if (hasher->sum == NULL) {
        free(hasher);
        return NULL;
    }
    pthread_mutex_init(&hasher->mutex, NULL);
    pthread_cond_init(&hasher->more, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&hasher->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    hasher->started = thread_start(&hasher->thread, hasher_run, hasher) == 0;
    return hasher;
}

void hasher_destroy(struct hasher **hasher)
{
    struct hasher *h = hasher != NULL ? *hasher : NULL;

    if (h == NULL)
        return;
    *hasher = NULL;
    atomic_store(&h->give_up, true);
    pthread_mutex_lock(&h->mutex);
    h->stop = true;
    pthread_cond_signal(&h->more);
    pthread_mutex_unlock(&h->mutex);
    if (h->started)
        pthread_join(h->thread, NULL);
    pthread_cond_destroy(&h->more);
    pthread_cond_destroy(&h->done);
    pthread_mutex_destroy(&h->mutex);
    checksum_destroy(&h->sum);
    free(h);
}

void hasher_push(struct hasher *hasher, const struct hasher_entry *entry)
{
    if (!hasher->started) {
        hasher_hash(hasher, entry);
        return;
    }
    pthread_mutex_lock(&hasher->mutex);
    if (hasher->pushed - hasher->hashed >= HASHER_AHEAD_MAX)
        hasher_wait_for(hasher, HASHER_AHEAD_MAX - 1);
    hasher->entries[hasher->pushed % HASHER_AHEAD_MAX] = *entry;
    hasher->pushed++;
    hasher->behind_bytes += entry->size;
    if (hasher->behind_bytes >= WAKE_BYTES) {
        hasher->behind_bytes = 0;
        hasher_wake(hasher);
    }
    pthread_mutex_unlock(&hasher->mutex);
}

void hasher_wait(struct hasher *hasher)
{
    pthread_mutex_lock(&hasher->mutex);
    hasher_wait_for(hasher, 0);
    pthread_mutex_unlock(&hasher->mutex);
}

bool hasher_gave_up(struct hasher *hasher)
{
    return atomic_load(&hasher->give_up);
}

void hasher_text(struct hasher *hasher, char ret_text[MANIFEST_CHECKSUM_SIZE])
{
    checksum_text(hasher->sum, ret_text);
}
