/* callback - see callback.h. */
#include "node/notice/callback.h"

#include "node/thread.h"
#include "schema/error.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct callback {
    bool (*ask)(void *arg);
    void *arg;
    int64_t period_ms;
    pthread_t thread;
    pthread_mutex_t mutex; /* all below */
    pthread_cond_t changed;
    int wake_fd;
    bool stop;
    bool fresh; /* said yes, not taken yet */
};

/* Mutex held. */
static void callback_said_yes(struct callback *callback)
{
    const uint64_t one = 1;
    ssize_t written;

    if (callback->stop) /* the descriptor may be another's by now */
        return;
    callback->fresh = true;
    written = write(callback->wake_fd, &one, sizeof one); /* full: it is readable already */
    (void)written;
}

static void *callback_run(void *arg)
{
    struct callback *callback = arg;
    bool yes = false;

    pthread_mutex_lock(&callback->mutex);
    while (!callback->stop && !yes) {
        struct timespec until = thread_time_after(callback->period_ms);
        int code = 0;

        pthread_mutex_unlock(&callback->mutex);
        yes = callback->ask(callback->arg);
        pthread_mutex_lock(&callback->mutex);
        if (yes)
            callback_said_yes(callback);
        while (!yes && !callback->stop && code == 0)
            code = pthread_cond_timedwait(&callback->changed, &callback->mutex, &until);
    }
    pthread_mutex_unlock(&callback->mutex);
    return NULL;
}

static void callback_release(struct callback *callback)
{
    pthread_cond_destroy(&callback->changed);
    pthread_mutex_destroy(&callback->mutex);
    free(callback);
}

enum muster_status callback_start(bool (*ask)(void *arg), void *arg, int64_t period_ms, int wake_fd,
                                  struct callback **ret_callback, struct muster_error *err)
{
    pthread_condattr_t attributes;
    struct callback *callback;
    int code;

    if (ask == NULL) {
        *ret_callback = NULL;
        return MUSTER_OK;
    }
    callback = calloc(1, sizeof *callback);
    if (callback == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    callback->ask = ask;
    callback->arg = arg;
    callback->period_ms = period_ms;
    callback->wake_fd = wake_fd;
    pthread_mutex_init(&callback->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&callback->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    code = thread_start(&callback->thread, callback_run, callback);
    if (code != 0) {
        callback_release(callback);
        return error_set_code(err, MUSTER_E_BUSY, code,
                              "the thread for termination_watcher_fn could not be started: %s; "
                              "raise the limit of processes (ulimit -u)",
                              strerror(code));
    }
    *ret_callback = callback;
    return MUSTER_OK;
}

bool callback_take(struct callback *callback)
{
    bool fresh;

    if (callback == NULL)
        return false;
    pthread_mutex_lock(&callback->mutex);
    fresh = callback->fresh;
    callback->fresh = false;
    pthread_mutex_unlock(&callback->mutex);
    return fresh;
}

void callback_abandon(struct callback *callback)
{
    if (callback == NULL)
        return;
    pthread_mutex_lock(&callback->mutex);
    callback->stop = true;
    pthread_cond_signal(&callback->changed);
    pthread_mutex_unlock(&callback->mutex);
}

bool callback_stop(struct callback **callback, int64_t limit_ms)
{
    struct callback *c = *callback;

    if (c == NULL)
        return true;
    *callback = NULL;
    callback_abandon(c);
    if (!thread_join(c->thread, limit_ms))
        return false;
    callback_release(c);
    return true;
}
