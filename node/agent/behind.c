/* behind - see behind.h. */
#include "node/agent/behind.h"

#include "node/clock.h"
#include "node/shard/snapshot.h"
#include "node/thread.h"
#include "schema/error.h"

#include <pthread.h>
#include <stdlib.h>

struct behind {
    const struct save_target *target;
    behind_done_fn *done;
    void *arg;
    struct safetensors_watch watch;
    struct snapshot
        snapshot; /* training thread until start, then the thread's until it is not busy */
    struct save_order order;
    int64_t began_ms, blocked_ms;

    pthread_mutex_t mutex; /* the rest */
    pthread_cond_t changed;
    pthread_t thread;
    bool started, stop, busy;
};

static void behind_write_one(struct behind *behind)
{
    struct shard_files files = {0};
    struct muster_error why = {.status = MUSTER_OK};
    struct behind_result result = {
        .order = &behind->order, .files = &files, .why = &why, .blocked_ms = behind->blocked_ms};

    result.status = save_shard(behind->target, &behind->order, &files, &why);
    save_release(behind->target, &behind->order);
    result.save_ms = clock_ms(CLOCK_MONOTONIC) - behind->began_ms;
    behind->done(&result, behind->arg);
    shard_files_clear(&files);
}

static void *behind_run(void *arg)
{
    struct behind *behind = arg;

    pthread_mutex_lock(&behind->mutex);
    while (!behind->stop || behind->busy) {
        if (!behind->busy) {
            pthread_cond_wait(&behind->changed, &behind->mutex);
            continue;
        }
        pthread_mutex_unlock(&behind->mutex);
        behind_write_one(behind);
        pthread_mutex_lock(&behind->mutex);
        behind->busy = false;
    }
    pthread_mutex_unlock(&behind->mutex);
    return NULL;
}

enum muster_status behind_create(const struct save_target *target, behind_done_fn *done, void *arg,
                                 struct behind **ret_behind, struct muster_error *err)
{
    struct behind *behind = calloc(1, sizeof *behind);

    if (behind == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for saves in the background; free some");
    behind->target = target;
    behind->done = done;
    behind->arg = arg;
    pthread_mutex_init(&behind->mutex, NULL);
    pthread_cond_init(&behind->changed, NULL);
    *ret_behind = behind;
    return MUSTER_OK;
}

bool behind_destroy(struct behind **behind, int64_t limit_ms)
{
    struct behind *b = *behind;

    if (b == NULL)
        return true;
    *behind = NULL;
    behind_stop(b);
    pthread_mutex_lock(&b->mutex);
    b->stop = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->mutex);
    if (b->started && !thread_join(b->thread, limit_ms))
        return false;
    snapshot_clear(&b->snapshot);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->mutex);
    free(b);
    return true;
}

static bool behind_start_thread(struct behind *behind)
{
    if (!behind->started)
        behind->started = thread_start(&behind->thread, behind_run, behind) == 0;
    return behind->started;
}

void behind_begin(struct behind *behind)
{
    atomic_store(&behind->watch.bytes, 0);
}

enum muster_status behind_take(struct behind *behind, const struct save_order *order,
                               struct interrupt *interrupt, struct muster_error *err)
{
    const struct save_target *target = behind->target;
    enum muster_status status;

    if (!behind_start_thread(behind))
        return error_set(err, MUSTER_E_BUSY,
                         "no thread could be started to save in the background; raise the limit of "
                         "processes (ulimit -u)");
    behind->began_ms = order->turn_ms > 0 ? order->turn_ms : clock_ms(CLOCK_MONOTONIC);
    behind->order = *order;
    behind->order.watch = &behind->watch;
    behind->order.call_arg = NULL; /* the boundary's own: it is gone when this is written */
    status = save_take(target, &behind->order, err);
    if (status == MUSTER_OK && target->take == NULL)
        status = save_check(target, order, err);
    if (status == MUSTER_OK && target->take == NULL) {
        status =
            snapshot_take(&behind->snapshot, order->state != NULL ? order->state : target->state,
                          &behind->watch.bytes, interrupt, err);
        behind->order.state = behind->snapshot.state;
    }
    behind->blocked_ms = clock_ms(CLOCK_MONOTONIC) - behind->began_ms;
    return status;
}

void behind_start(struct behind *behind)
{
    atomic_store(&behind->watch.stop, false);
    pthread_mutex_lock(&behind->mutex);
    behind->busy = true;
    pthread_cond_signal(&behind->changed);
    pthread_mutex_unlock(&behind->mutex);
}

void behind_drop(struct behind *behind)
{
    save_release(behind->target, &behind->order);
}

bool behind_is_busy(struct behind *behind)
{
    bool busy;

    pthread_mutex_lock(&behind->mutex);
    busy = behind->busy;
    pthread_mutex_unlock(&behind->mutex);
    return busy;
}

void behind_stop(struct behind *behind)
{
    atomic_store(&behind->watch.stop, true);
}

uint64_t behind_bytes(struct behind *behind)
{
    return atomic_load(&behind->watch.bytes);
}
