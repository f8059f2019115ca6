/* worker_run - the threads that run functions, and what a function may ask. */
#include "client/tasks/worker_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- one attempt ------------------------------------------------------------------------------ */

static const struct worker_function *worker_run_function_of(const struct muster_worker *worker,
                                                            const char *name)
{
    const struct worker_function *function = worker->functions;

    while (function != NULL && strcmp(function->name, name) != 0)
        function = function->next;
    return function;
}

static void worker_run_set_text(struct muster_task *task, const char *text)
{
    free(task->text);
    task->text = text != NULL ? strdup(text) : NULL;
}

static uint64_t worker_run_use_of(const struct muster_task *task, size_t n)
{
    const uint8_t *bytes = task->bytes + task->args_size + n * 4;

    return (uint64_t)bytes[0] << 24 | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 8 | bytes[3];
}

static const struct worker_value *worker_run_value_of(const struct muster_worker *worker,
                                                      uint64_t queue, uint64_t number)
{
    const struct worker_value *value = worker->values;

    while (value != NULL && (value->queue != queue || value->number != number))
        value = value->next;
    return value;
}

/* False: the task uses a value that could not be made, which is its failure. */
static bool worker_run_values_are_there(struct muster_task *task)
{
    for (size_t i = 0; i < task->uses_size / 4; i++) {
        uint64_t number = worker_run_use_of(task, i);
        const struct worker_value *value = worker_run_value_of(task->worker, task->queue, number);
        char text[TASK_TEXT_MAX + 1];

        if (value != NULL && !value->failed)
            continue;
        snprintf(text, sizeof text, "per-worker value %llu could not be made at worker %llu: %s",
                 (unsigned long long)number, (unsigned long long)task->worker->index,
                 value == NULL         ? "it was never asked for"
                 : value->text != NULL ? value->text
                                       : "its function gave no reason");
        task->status = MUSTER_E_INPUT;
        worker_run_set_text(task, text);
        return false;
    }
    return true;
}

/* Without the mutex. */
static void worker_run_call(struct muster_task *task)
{
    const struct worker_function *function = worker_run_function_of(task->worker, task->fn);
    char text[TASK_TEXT_MAX + 1];
    int code;

    if (function == NULL) {
        snprintf(text, sizeof text,
                 "worker %llu has no function \"%s\"; register it before the worker serves",
                 (unsigned long long)task->worker->index, task->fn);
        task->status = MUSTER_E_NOT_FOUND;
        worker_run_set_text(task, text);
        return;
    }
    code = function->fn(task, function->arg);
    if (task->kind != TASK_KIND_RESOURCE)
        muster_task_set_value(task, NULL, NULL); /* it made one, and for nobody */
    if (code == 0) {
        task->status = task->result_refused;
        return;
    }
    task->code = code;
    task->status = atomic_load(&task->cancelled) ? MUSTER_E_CANCELLED : MUSTER_E_TASK;
}

/* --- the threads ------------------------------------------------------------------------------ */

static void worker_run_keep_value(struct muster_worker *worker, struct muster_task *task)
{
    struct worker_value *value = calloc(1, sizeof *value);

    if (value == NULL) { /* tasks that use it say so */
        if (task->value_free != NULL)
            task->value_free(task->value);
        return;
    }
    value->queue = task->queue;
    value->number = task->number;
    value->value = task->value;
    value->value_free = task->value_free;
    value->gone = task->gone;
    value->failed = task->status != MUSTER_OK;
    value->text = task->text != NULL ? strdup(task->text) : NULL;
    value->next = worker->values;
    worker->values = value;
}

/* A worker that ends before the broker knows that it has the attempt has not begun it. */
struct muster_task *worker_attempt_begin(struct muster_worker *worker)
{
    struct muster_task *task = worker->first;

    while (task != NULL && task->state != ATTEMPT_WAITING)
        task = task->next;
    if (task == NULL || task->serial > worker->confirmed)
        return NULL;
    task->state = ATTEMPT_RUNNING;
    worker->running++;
    return task;
}

bool worker_attempt_is_callable(struct muster_task *task)
{
    if (!atomic_load(&task->cancelled))
        return worker_run_values_are_there(task);
    task->status = MUSTER_E_CANCELLED;
    return false;
}

void worker_attempt_end(struct muster_worker *worker, struct muster_task *task)
{
    worker->running--;
    if (task->kind == TASK_KIND_RESOURCE)
        worker_run_keep_value(worker, task);
    if (task->status != MUSTER_OK) { /* a failed one has no result */
        free(task->result);
        task->result = NULL;
        task->result_size = 0;
    }
    task->state = ATTEMPT_ENDED;
    worker->unsent++;
    task_link_ask(worker->link);
}

/* The first without an attempt looks after the link meanwhile: what comes wakes who runs it. */
static void worker_run_wait_for_work(struct muster_worker *worker)
{
    uint64_t seen = task_link_seen(worker->link);

    if (worker->leading) {
        task_link_push(worker->link);
        worker->idle++;
        pthread_cond_wait(&worker->changed, &worker->mutex);
        worker->idle--;
        return;
    }
    worker->leading = true;
    pthread_mutex_unlock(&worker->mutex);
    task_link_lead(worker->link, seen, HEARTBEAT_MS);
    pthread_mutex_lock(&worker->mutex);
    worker->leading = false;
}

/* While this thread runs one, another leads, or soon the link's own; and that is called for the
 * ends so far. */
static void worker_run_hand_over(struct muster_worker *worker)
{
    if (worker->idle > 0 && !worker->leading)
        pthread_cond_signal(&worker->changed);
    task_link_push(worker->link);
}

void *worker_thread(void *arg)
{
    struct muster_worker *worker = arg;

    pthread_mutex_lock(&worker->mutex);
    while (!worker->stopping) {
        struct muster_task *task = worker_attempt_begin(worker);

        if (task == NULL) {
            worker_run_wait_for_work(worker);
            continue;
        }
        worker_run_hand_over(worker);
        if (worker_attempt_is_callable(task)) {
            pthread_mutex_unlock(&worker->mutex);
            worker_run_call(task);
            pthread_mutex_lock(&worker->mutex);
        }
        worker_attempt_end(worker, task);
    }
    task_link_wake(worker->link); /* which gives back what was not begun */
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

/* --- inside a function ------------------------------------------------------------------------ */

uint64_t muster_task_id(const muster_task_t *task)
{
    return task != NULL ? task->number : 0;
}

int muster_task_attempt(const muster_task_t *task)
{
    return task != NULL ? (int)task->attempt : 0;
}

int muster_task_worker_index(const muster_task_t *task)
{
    return task != NULL ? (int)task->worker->index : -1;
}

const void *muster_task_args(const muster_task_t *task, size_t *ret_size)
{
    if (ret_size != NULL)
        *ret_size = task != NULL ? task->args_size : 0;
    return task != NULL ? task->bytes : NULL;
}

void *muster_task_value(const muster_task_t *task, size_t n)
{
    const struct worker_value *value = NULL;
    void *made;

    if (task == NULL || n >= task->uses_size / 4)
        return NULL;
    pthread_mutex_lock(&task->worker->mutex);
    value = worker_run_value_of(task->worker, task->queue, worker_run_use_of(task, n));
    made = value != NULL ? value->value : NULL;
    pthread_mutex_unlock(&task->worker->mutex);
    return made;
}

bool muster_task_cancelled(const muster_task_t *task)
{
    return task != NULL && atomic_load(&task->cancelled);
}

void muster_task_renew(muster_task_t *task)
{
    if (task != NULL && !atomic_exchange(&task->renewed, true))
        task_link_wake(task->worker->link);
}

/* A function that does not look, and ends well, must not be taken for one that gave no result. */
static enum muster_status worker_run_refuse_result(struct muster_task *task, size_t size,
                                                   enum muster_status status)
{
    char text[TASK_TEXT_MAX + 1];

    if (status == MUSTER_E_NOMEM)
        snprintf(text, sizeof text, "worker %llu has no memory for a result of %zu bytes",
                 (unsigned long long)task->worker->index, size);
    else
        snprintf(
            text, sizeof text,
            "\"%s\" gave a result of %zu bytes%s, at most %d are allowed: write it to a file and "
            "give the path",
            task->fn, size, size <= TASK_RESULT_MAX ? " at NULL" : "", TASK_RESULT_MAX);
    worker_run_set_text(task, text);
    task->result_refused = status;
    return status;
}

enum muster_status muster_task_set_result(muster_task_t *task, const void *data, size_t size)
{
    uint8_t *copy;

    if (task == NULL)
        return MUSTER_E_ARGUMENT;
    if (size > TASK_RESULT_MAX || (data == NULL && size > 0))
        return worker_run_refuse_result(task, size, MUSTER_E_ARGUMENT);
    copy = size > 0 ? malloc(size) : NULL;
    if (size > 0 && copy == NULL)
        return worker_run_refuse_result(task, size, MUSTER_E_NOMEM);
    if (size > 0)
        memcpy(copy, data, size);
    task->result_refused = MUSTER_OK;
    free(task->result);
    task->result = copy;
    task->result_size = size;
    return MUSTER_OK;
}

int muster_task_fail(muster_task_t *task, int code, const char *text)
{
    if (task != NULL)
        worker_run_set_text(task, text);
    return code;
}

void muster_task_set_value(muster_task_t *task, void *value, void (*free_fn)(void *value))
{
    if (task == NULL)
        return; /* the value stays the caller's */
    if (task->value != NULL && task->value != value && task->value_free != NULL)
        task->value_free(task->value);
    task->value = value;
    task->value_free = free_fn;
}
