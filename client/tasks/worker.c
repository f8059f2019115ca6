/* worker - the public handle of a worker: options, functions, begin and end. */
#include "client/node/options_take.h"
#include "client/tasks/worker_private.h"

#include "client/node/node_private.h"
#include "client/query/query_door.h"
#include "node/thread.h"
#include "schema/error.h"
#include "schema/number.h"
#include "schema/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define TELL_ENDS_MS 5000
#define STOP_RETURNS_MS 1000 /* close: the rest of a muster_worker_stop is some instructions */

static bool worker_is_forked(const struct muster_worker *worker)
{
    return worker->pid != getpid();
}

static enum muster_status worker_check(const struct muster_worker *worker, const char *call,
                                       struct muster_error *err)
{
    if (worker == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: worker is NULL; open one with muster_worker_open", call);
    if (!worker_is_forked(worker))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_FORKED,
                     "worker %llu of job %s: this process was forked from the worker's, which "
                     "alone may use it; open a worker of its own",
                     (unsigned long long)worker->index, worker->job);
}

/* --- options ---------------------------------------------------------------------------------- */

/* -1: it is not a number of that range. */
static int worker_index_of(const struct muster_worker_options *options)
{
    const char *text = getenv("MUSTER_RANK");
    int64_t number;

    if (options->index >= 0)
        return options->index;
    if (options->node != NULL)
        return options->node->rank;
    return text != NULL && number_read(text, 0, INT32_MAX, &number) ? (int)number : -1;
}

static enum muster_status worker_configure(struct muster_worker *worker,
                                           const struct muster_worker_options *options,
                                           struct muster_error *err)
{
    const struct muster_node *node = options->node;
    int slots = options->slots == 0 ? 1 : options->slots;
    int index = worker_index_of(options);
    enum muster_status status;

    if (index < 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "option index is unset: give the worker's number in its job, or set "
                         "MUSTER_RANK");
    if (slots < 1 || options->prefetch < 0 || slots > TASK_CREDIT_MAX ||
        options->prefetch > TASK_CREDIT_MAX - slots)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "options slots (%d) and prefetch (%d) must be at least 1 and 0, together "
                         "at most %d",
                         options->slots, options->prefetch, TASK_CREDIT_MAX);
    status = task_identity(options->broker != NULL ? options->broker
                           : node != NULL          ? node->broker
                                                   : NULL,
                           options->job != NULL ? options->job
                           : node != NULL       ? node->job
                                                : NULL,
                           worker->broker, worker->job, err);
    if (status != MUSTER_OK)
        return status;
    worker->index = (uint64_t)index;
    worker->slots = (uint64_t)slots;
    worker->takes = worker->slots + (uint64_t)options->prefetch;
    worker->node = node != NULL ? node->incarnation : 0;
    worker->incarnation = task_incarnation();
    worker->pid = getpid();
    worker->connect_timeout_ms = options->connect_timeout_ms > 0 ? options->connect_timeout_ms
                                                                 : paths_connect_ms(worker->broker);
    worker->tell_ends_ms = TELL_ENDS_MS;
    if (gethostname(worker->host, sizeof worker->host - 1) != 0)
        snprintf(worker->host, sizeof worker->host, "unknown");
    return MUSTER_OK;
}

enum muster_status muster_worker_open(const struct muster_worker_options *options,
                                      muster_worker_t **ret_worker, struct muster_error *ret_error)
{
    struct muster_worker *worker;
    struct muster_worker_options own;
    enum muster_status status;
    pthread_condattr_t attributes;

    if (options == NULL || ret_worker == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_worker_open: %s is NULL; see <muster/worker.h>",
                         options == NULL ? "options" : "ret_worker");
    status = worker_options_take(options, &own, ret_error);
    if (status != MUSTER_OK)
        return status;
    worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a worker; free some");
    status = worker_configure(worker, &own, ret_error);
    if (status == MUSTER_OK) {
        worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (worker->wake_fd < 0)
            status = error_set_code(ret_error, MUSTER_E_IO, errno,
                                    "no file descriptor is left: %s; raise the limit (ulimit -n)",
                                    strerror(errno));
    }
    if (status != MUSTER_OK) {
        free(worker);
        return status;
    }
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_worker = worker;
    return MUSTER_OK;
}

enum muster_status muster_worker_register(muster_worker_t *worker, const char *name,
                                          muster_task_fn *fn, void *arg,
                                          struct muster_error *ret_error)
{
    enum muster_status status = worker_check(worker, "muster_worker_register", ret_error);
    struct worker_function *function;

    if (status != MUSTER_OK)
        return status;
    if (name == NULL || fn == NULL || name[0] == '\0' || !wire_text_ok(name, NAME_MAX_BYTES))
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "a function needs a name of 1 to %d bytes of UTF-8, and code",
                         NAME_MAX_BYTES);
    if (worker->started)
        return error_set(ret_error, MUSTER_E_BUSY,
                         "worker %llu serves already: register \"%s\" before",
                         (unsigned long long)worker->index, name);
    for (function = worker->functions; function != NULL; function = function->next)
        if (strcmp(function->name, name) == 0)
            return error_set(ret_error, MUSTER_E_EXISTS, "function \"%s\" is registered already",
                             name);
    function = calloc(1, sizeof *function);
    if (function == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory to register \"%s\"", name);
    snprintf(function->name, sizeof function->name, "%s", name);
    function->fn = fn;
    function->arg = arg;
    function->next = worker->functions;
    worker->functions = function;
    return MUSTER_OK;
}

/* --- begin ------------------------------------------------------------------------------------ */

/* With the mutex. */
static enum muster_status worker_wait_for_welcome(struct muster_worker *worker,
                                                  struct muster_error *err)
{
    struct timespec until = thread_time_after(worker->connect_timeout_ms);
    int code = 0;

    while (!worker->ever_welcomed && !worker->refused_for_good && !worker->stopping && code == 0)
        code = pthread_cond_timedwait(&worker->changed, &worker->mutex, &until);
    if (worker->ever_welcomed || worker->stopping)
        return MUSTER_OK;
    if (worker->refused != MUSTER_OK)
        return error_set(err, (enum muster_status)worker->refused, "%s", worker->refused_text);
    return error_set(err, MUSTER_E_BROKER,
                     "no broker answered at %s within %.1f s: start one with `musterd`, or correct "
                     "the address (option broker, MUSTER_BROKER)",
                     worker->broker, (double)worker->connect_timeout_ms / 1000.0);
}

static enum muster_status worker_begin_threads(struct muster_worker *worker, size_t count,
                                               struct muster_error *err)
{
    worker->threads = calloc(count + 1, sizeof *worker->threads);
    if (worker->threads == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for %zu threads", count);
    while (worker->threads_count < count) {
        int code = thread_start(&worker->threads[worker->threads_count], worker_thread, worker);

        if (code != 0)
            return error_set_code(err, MUSTER_E_NOMEM, code, "cannot start a thread: %s",
                                  strerror(code));
        worker->threads_count++;
    }
    return MUSTER_OK;
}

/* --- end -------------------------------------------------------------------------------------- */

/* All of it may be done in a signal's handler. */
void muster_worker_stop(muster_worker_t *worker)
{
    const uint64_t one = 1;
    const int error = errno;
    ssize_t written;

    if (worker == NULL || worker_is_forked(worker))
        return; /* a child has its parent's handlers */
    atomic_fetch_add(&worker->stopping_now, 1);
    atomic_store(&worker->stop_asked, true);
    written = write(worker->wake_fd, &one, sizeof one);
    (void)written; /* full: it is awake already */
    atomic_fetch_sub(&worker->stopping_now, 1);
    errno = error;
}

static void worker_stop_now(struct muster_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    if (worker->link != NULL && !worker->link_closing)
        task_link_wake(worker->link);
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

static void worker_close_link(struct muster_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->link_closing = true; /* its last turn still uses it; who stops the worker must not */
    pthread_mutex_unlock(&worker->mutex);
    task_link_close(&worker->link);
}

/* As long as it goes on. With the mutex. */
static enum muster_status worker_tell_ends(struct muster_worker *worker, struct muster_error *err)
{
    struct timespec until = thread_time_after(worker->tell_ends_ms);
    uint64_t told = worker->told;
    int code = 0;

    while (worker->ever_welcomed && !worker->left && worker->unsent > 0 && code == 0) {
        code = pthread_cond_timedwait(&worker->changed, &worker->mutex, &until);
        if (worker->told != told)
            until = thread_time_after(worker->tell_ends_ms), code = 0;
        told = worker->told;
    }
    if (worker->left || worker->unsent == 0)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_BROKER,
                     "the broker at %s took no message for %.1f s: it does not know that %zu tasks "
                     "have ended here or were given back, counts this worker as lost with them, "
                     "and they are run again",
                     worker->broker, (double)worker->tell_ends_ms / 1000.0, worker->unsent);
}

static enum muster_status worker_end(struct muster_worker *worker, struct muster_error *err)
{
    struct timespec until;
    enum muster_status status;
    int code = 0;

    worker_stop_now(worker);
    for (size_t i = 0; i < worker->threads_count; i++)
        pthread_join(worker->threads[i], NULL);
    worker->threads_count = 0;
    if (worker->link == NULL)
        return MUSTER_OK;
    task_link_wake(worker->link);
    pthread_mutex_lock(&worker->mutex);
    status = worker_tell_ends(worker, err);
    until = thread_time_after(HEARTBEAT_MS);
    task_link_wake(worker->link);
    while (status == MUSTER_OK && worker->ever_welcomed && !worker->left && code == 0)
        code = pthread_cond_timedwait(&worker->changed, &worker->mutex, &until);
    pthread_mutex_unlock(&worker->mutex);
    worker_close_link(worker);
    return status;
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* Its link and its threads are gone: the next serve or start begins again. */
static void worker_forget_all(struct muster_worker *worker, bool was_us)
{
    pthread_mutex_lock(&worker->mutex);
    if (was_us)
        worker->stopping = false;
    worker->started = worker->link_closing = worker->serving = worker->displaced = false;
    worker->welcomed = worker->ever_welcomed = worker->left = worker->said_leaving = false;
    worker->refused = MUSTER_OK;
    worker->refused_for_good = false;
    task_again_reset(&worker->hello);
    task_again_reset(&worker->leave);
    free(worker->threads);
    worker->threads = NULL;
    pthread_mutex_unlock(&worker->mutex);
}

/* From here on this worker takes no work, because no thread is left to run it. */
static void worker_begin_failed(struct muster_worker *worker)
{
    bool was_welcomed;

    pthread_mutex_lock(&worker->mutex);
    was_welcomed = worker->ever_welcomed;
    pthread_mutex_unlock(&worker->mutex);
    if (was_welcomed)
        worker_end(worker, NULL);
    else
        worker_close_link(worker);
    worker_forget_all(worker, was_welcomed);
}

static enum muster_status worker_begin(struct muster_worker *worker, size_t threads,
                                       struct muster_error *err) /* worker is checked */
{
    const struct task_link_owner owner = {.arg = worker,
                                          .take = worker_take,
                                          .turn = worker_turn,
                                          .job = worker->job,
                                          .role = ROLE_WORKER,
                                          .index = worker->index,
                                          .incarnation = worker->incarnation,
                                          .wake_fd = &worker->wake_fd};
    enum muster_status status;

    if (worker->started)
        return error_set(err, MUSTER_E_BUSY, "worker %llu serves already",
                         (unsigned long long)worker->index);
    worker->started = true;
    status = task_link_open(worker->broker, &owner, &worker->link, err);
    if (status == MUSTER_OK)
        status = task_link_start(worker->link, err);
    if (status == MUSTER_OK) {
        pthread_mutex_lock(&worker->mutex);
        status = worker_wait_for_welcome(worker, err);
        pthread_mutex_unlock(&worker->mutex);
        status = query_door_explain(worker->broker, status, err);
    }
    if (status == MUSTER_OK)
        status = worker_begin_threads(worker, threads, err);
    if (status != MUSTER_OK)
        worker_begin_failed(worker);
    return status;
}

enum muster_status muster_worker_start(muster_worker_t *worker, struct muster_error *ret_error)
{
    enum muster_status status = worker_check(worker, "muster_worker_start", ret_error);

    return status != MUSTER_OK ? status : worker_begin(worker, (size_t)worker->slots, ret_error);
}

enum muster_status muster_worker_serve(muster_worker_t *worker, struct muster_error *ret_error)
{
    enum muster_status status = worker_check(worker, "muster_worker_serve", ret_error);

    if (status == MUSTER_OK)
        status = worker_begin(worker, (size_t)worker->slots - 1, ret_error);
    if (status != MUSTER_OK)
        return status;
    pthread_mutex_lock(&worker->mutex);
    worker->serving = true;
    pthread_mutex_unlock(&worker->mutex);
    worker_thread(worker);
    status = worker_end(worker, ret_error);
    if (!worker->displaced)
        return status;
    status = error_set(ret_error, MUSTER_E_RANK_TAKEN,
                       "while this worker was not heard, its tasks went to others: %s",
                       worker->refused_text);
    worker_forget_all(worker, true);
    return status;
}

static void worker_free_all(struct muster_worker *worker)
{
    while (worker->first != NULL) {
        struct muster_task *task = worker->first;
        worker->first = task->next;
        worker_task_free(task);
    }
    while (worker->values != NULL) {
        struct worker_value *value = worker->values;
        worker->values = value->next;
        worker_value_free(value);
    }
    while (worker->functions != NULL) {
        struct worker_function *function = worker->functions;
        worker->functions = function->next;
        free(function);
    }
}

/* A handler on another thread that asked for this end is about to return. A function that was
 * interrupted by a handler which ends the program never returns. */
static bool worker_stops_return(struct muster_worker *worker)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < STOP_RETURNS_MS && atomic_load(&worker->stopping_now) > 0; i++)
        nanosleep(&pause, NULL);
    return atomic_load(&worker->stopping_now) == 0;
}

enum muster_status muster_worker_close(muster_worker_t **worker, struct muster_error *ret_error)
{
    struct muster_worker *w = worker != NULL ? *worker : NULL;
    enum muster_status status;

    if (w == NULL)
        return MUSTER_OK;
    *worker = NULL;
    status = worker_check(w, "muster_worker_close", ret_error);
    if (status != MUSTER_OK)
        return status; /* a child closes nothing of its parent's */
    status = worker_end(w, ret_error);
    worker_free_all(w);
    free(w->threads);
    if (!worker_stops_return(w))
        return status; /* what they use stays */
    close(w->wake_fd);
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->changed);
    free(w);
    return status;
}
