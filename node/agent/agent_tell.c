/* agent_tell - see agent_tell.h. */
#include "node/agent/agent_tell.h"

#include "node/thread.h"
#include "schema/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct call { /* on_error: no text */
    struct call *next;
    int level;
    struct muster_error error;
    char text[];
};

struct queue {
    struct call *first, *last;
};

struct tell {
    struct tell_hooks hooks;
    pthread_t thread;
    pthread_mutex_t mutex; /* all below */
    pthread_cond_t changed, idle;
    struct queue errors, lines;
    unsigned line_count;
    bool calling;
    bool stop;    /* the queues are made empty first */
    bool abandon; /* nothing is called any more */
};

static void agent_tell_put(struct queue *queue, struct call *call)
{
    call->next = NULL;
    if (queue->last != NULL)
        queue->last->next = call;
    else
        queue->first = call;
    queue->last = call;
}

static struct call *agent_tell_take(struct queue *queue)
{
    struct call *call = queue->first;

    if (call == NULL)
        return NULL;
    queue->first = call->next;
    if (queue->first == NULL)
        queue->last = NULL;
    return call;
}

static void agent_tell_release(struct tell *tell)
{
    struct call *call;

    while ((call = agent_tell_take(&tell->errors)) != NULL ||
           (call = agent_tell_take(&tell->lines)) != NULL)
        free(call);
    pthread_cond_destroy(&tell->idle);
    pthread_cond_destroy(&tell->changed);
    pthread_mutex_destroy(&tell->mutex);
    free(tell);
}

/* Mutex held; free during the call. False: there was none to make. */
static bool tell_make_call(struct tell *tell)
{
    struct call *call = agent_tell_take(&tell->errors);
    bool is_error = call != NULL;

    if (call == NULL && (call = agent_tell_take(&tell->lines)) != NULL)
        tell->line_count--;
    if (call == NULL)
        return false;
    tell->calling = true;
    pthread_mutex_unlock(&tell->mutex);
    if (is_error)
        tell->hooks.on_error(&call->error, tell->hooks.arg);
    else
        tell->hooks.log(call->level, call->text, tell->hooks.arg);
    free(call);
    pthread_mutex_lock(&tell->mutex);
    tell->calling = false;
    return true;
}

static void *agent_tell_run(void *arg)
{
    struct tell *tell = arg;

    pthread_mutex_lock(&tell->mutex);
    while (!tell->abandon) {
        if (tell_make_call(tell))
            continue;
        if (tell->stop)
            break;
        pthread_cond_broadcast(&tell->idle);
        pthread_cond_wait(&tell->changed, &tell->mutex);
    }
    pthread_mutex_unlock(&tell->mutex);
    return NULL;
}

static void tell_init_idle(struct tell *tell)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&tell->idle, &attributes);
    pthread_condattr_destroy(&attributes);
}

enum muster_status tell_start(const struct tell_hooks *hooks, struct tell **ret_tell,
                              struct muster_error *err)
{
    struct tell *tell;
    int code;

    if (hooks->log == NULL && hooks->on_error == NULL) {
        *ret_tell = NULL;
        return MUSTER_OK;
    }
    tell = calloc(1, sizeof *tell);
    if (tell == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    tell->hooks = *hooks;
    pthread_mutex_init(&tell->mutex, NULL);
    pthread_cond_init(&tell->changed, NULL);
    tell_init_idle(tell);
    code = thread_start(&tell->thread, agent_tell_run, tell);
    if (code != 0) {
        agent_tell_release(tell);
        return error_set_code(err, MUSTER_E_BUSY, code,
                              "the thread for log and on_error could not be started: %s; raise the "
                              "limit of processes (ulimit -u)",
                              strerror(code));
    }
    *ret_tell = tell;
    return MUSTER_OK;
}

void tell_log(struct tell *tell, int level, const char *text)
{
    size_t size = strlen(text) + 1;
    struct call *call;

    if (tell == NULL || tell->hooks.log == NULL || (call = malloc(sizeof *call + size)) == NULL)
        return;
    call->level = level;
    memcpy(call->text, text, size);
    pthread_mutex_lock(&tell->mutex);
    if (tell->line_count < TELL_LINES_MAX) {
        tell->line_count++;
        agent_tell_put(&tell->lines, call);
        call = NULL;
    }
    pthread_cond_signal(&tell->changed);
    pthread_mutex_unlock(&tell->mutex);
    free(call);
}

void tell_error(struct tell *tell, const struct muster_error *error)
{
    struct call *call;

    if (tell == NULL || tell->hooks.on_error == NULL || (call = malloc(sizeof *call)) == NULL)
        return;
    call->error = *error;
    pthread_mutex_lock(&tell->mutex);
    agent_tell_put(&tell->errors, call); /* few: the core asks once an error */
    pthread_cond_signal(&tell->changed);
    pthread_mutex_unlock(&tell->mutex);
}

void tell_drain(struct tell *tell, int64_t limit_ms)
{
    struct timespec until;
    int code = 0;

    if (tell == NULL ||
        pthread_equal(tell->thread, pthread_self())) /* a callback ends the process */
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += limit_ms % 1000 * 1000000L;
    until.tv_sec += limit_ms / 1000 + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&tell->mutex);
    while (code == 0 && (tell->calling || tell->errors.first != NULL || tell->lines.first != NULL))
        code = pthread_cond_timedwait(&tell->idle, &tell->mutex, &until);
    pthread_mutex_unlock(&tell->mutex);
}

bool tell_stop(struct tell **tell, int64_t limit_ms)
{
    struct tell *t = *tell;

    if (t == NULL)
        return true;
    *tell = NULL;
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    if (thread_join(t->thread, limit_ms)) {
        agent_tell_release(t);
        return true;
    }
    pthread_mutex_lock(&t->mutex);
    t->abandon = true;
    pthread_mutex_unlock(&t->mutex);
    return false;
}
