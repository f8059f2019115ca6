/* coordinator - the public handle of a coordinator: options, schedule, join, done. */
#include "client/node/options_take.h"
#include "client/query/query_door.h"
#include "client/tasks/coordinator_private.h"

#include "node/thread.h"
#include "schema/error.h"
#include "schema/paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- refusals --------------------------------------------------------------------------------- */

bool coordinator_is_forked(const struct muster_coordinator *c)
{
    return c->pid != getpid();
}

enum muster_status coordinator_is_null(const char *call, const char *what, struct muster_error *err)
{
    return error_set(err, MUSTER_E_ARGUMENT, "%s: %s is NULL; see <muster/coordinator.h>", call,
                     what);
}

enum muster_status coordinator_check(const struct muster_coordinator *c, const char *call,
                                     struct muster_error *err)
{
    if (c == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: coordinator is NULL; open one with muster_coordinator_open", call);
    if (!coordinator_is_forked(c))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_FORKED,
                     "queue %s of job %s: this process was forked from the coordinator's, which "
                     "alone can use it; open one of another name here",
                     c->name, c->job);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int64_t coordinator_at_most(int64_t timeout_ms)
{
    return timeout_ms < LONGEST_MS ? timeout_ms : LONGEST_MS;
}

struct call_time coordinator_time(int64_t timeout_ms)
{
    int64_t now_ms = task_now_ms();

    return (struct call_time){
        .from_ms = now_ms,
        .until_ms = timeout_ms < 0 ? 0 : now_ms + coordinator_at_most(timeout_ms) + 1};
}

static int64_t coordinator_later_of(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

void coordinator_look(struct muster_coordinator *c, int64_t now_ms)
{
    int64_t gap_ms = c->looked_ms > 0 ? now_ms - c->looked_ms : 0;

    c->looked_ms = now_ms;
    if (gap_ms <= LOOK_GAP_MS)
        return;
    c->heard_ms += gap_ms;
    if (c->unwritten.since_ms > 0)
        c->unwritten.since_ms += gap_ms;
    if (c->unread.since_ms > 0)
        c->unread.since_ms += gap_ms;
    for (struct muster_remote_value *value = c->first; value != NULL; value = value->next)
        if (value->unread_ms > 0)
            value->unread_ms += gap_ms;
}

static enum muster_status coordinator_is_stale(const struct muster_coordinator *c,
                                               struct muster_error *err)
{
    if (!c->begun_anew)
        return error_set(err, MUSTER_E_STALE,
                         "another coordinator holds queue %s of job %s now: this one can do no "
                         "more; close it",
                         c->name, c->job);
    return error_set(err, MUSTER_E_STALE,
                     "queue %s of job %s at the broker is not what this coordinator has opened, or "
                     "an older copy of it: it has %llu of %llu tasks. The broker's database was "
                     "lost or restored, or another coordinator began the queue again. Close this "
                     "one, open it again, and schedule what is missing once more",
                     c->name, c->job, (unsigned long long)c->begun_taken,
                     (unsigned long long)c->scheduled);
}

static bool coordinator_has_lasted(const struct broker_trouble *trouble, int64_t from_ms,
                                   int64_t until_ms)
{
    return trouble->since_ms > 0 && until_ms >= coordinator_later_of(trouble->since_ms, from_ms);
}

/* Returns an error if the broker has been in trouble for so long that it is of no use to wait
 * on. */
static enum muster_status coordinator_is_in_trouble(const struct muster_coordinator *c,
                                                    enum awaited awaited, int64_t from_ms,
                                                    int64_t until_ms, const char *what,
                                                    struct muster_error *err)
{
    const struct broker_trouble *trouble = NULL;

    if (coordinator_has_lasted(&c->unwritten, from_ms, until_ms))
        trouble = &c->unwritten;
    else if (awaited == AWAITED_ENDS && c->asking &&
             coordinator_has_lasted(&c->unread, from_ms, until_ms))
        trouble = &c->unread;
    if (trouble == NULL)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_STORAGE,
                     "%s, for the broker at %s %s: %s. Nothing is lost: see to that, and call "
                     "again",
                     what, c->broker,
                     trouble == &c->unwritten ? "can write nothing"
                                              : "cannot read which tasks have ended",
                     trouble->text);
}

static bool coordinator_is_unheard(const struct muster_coordinator *c, int64_t from_ms,
                                   int64_t now_ms)
{
    return now_ms - coordinator_later_of(c->heard_ms, from_ms) >= c->broker_timeout_ms;
}

static enum muster_status coordinator_no_broker(const struct muster_coordinator *c, int64_t now_ms,
                                                struct muster_error *err)
{
    return error_set(err, MUSTER_E_BROKER,
                     "no broker was heard at %s for %.1f s; nothing is lost: start it again, and "
                     "call again",
                     c->broker, (double)(now_ms - c->heard_ms) / 1000.0);
}

static enum muster_status coordinator_is_over(struct muster_coordinator *c, enum awaited awaited,
                                              int64_t from_ms, const char *what,
                                              struct muster_error *err)
{
    int64_t now_ms = task_now_ms();

    coordinator_look(c, now_ms);
    if (c->stale)
        return coordinator_is_stale(c, err);
    if (coordinator_is_unheard(c, from_ms, now_ms))
        return coordinator_no_broker(c, now_ms, err);
    return coordinator_is_in_trouble(c, awaited, from_ms, now_ms - c->broker_timeout_ms, what, err);
}

/* The first that waits looks after the link meanwhile, so that what comes wakes it and no other
 * thread before. */
static void coordinator_wait_for_change(struct muster_coordinator *c, int64_t wait_ms)
{
    uint64_t seen = task_link_seen(c->link);
    struct timespec until;

    if (c->leading) {
        task_link_push(c->link);
        until = thread_time_after(wait_ms);
        c->waiting++;
        pthread_cond_timedwait(&c->changed, &c->mutex, &until);
        c->waiting--;
        return;
    }
    c->leading = true;
    pthread_mutex_unlock(&c->mutex);
    task_link_lead(c->link, seen, wait_ms);
    pthread_mutex_lock(&c->mutex);
    c->leading = false;
}

static enum muster_status coordinator_timed_out(const struct muster_coordinator *c,
                                                enum awaited awaited, int64_t now_ms,
                                                const char *what, struct muster_error *err)
{
    char others[96] = "where the others are was not heard yet";
    char in_time[160];

    snprintf(in_time, sizeof in_time, "%s in time", what);
    if (coordinator_is_unheard(c, 0, now_ms))
        return coordinator_no_broker(c, now_ms, err);
    if (coordinator_is_in_trouble(c, awaited, 0, now_ms, in_time, err) != MUSTER_OK)
        return MUSTER_E_STORAGE;
    if (c->alives > 0)
        snprintf(others, sizeof others, "%llu were at %llu workers %.1f s ago",
                 (unsigned long long)c->leased, (unsigned long long)c->workers,
                 (double)(now_ms - c->alive_ms) / 1000.0);
    return error_set(err, MUSTER_E_TIMEOUT,
                     "%s: %llu of %llu tasks have ended, %s; `muster tasks` shows them", in_time,
                     (unsigned long long)c->ended, (unsigned long long)c->scheduled, others);
}

/* Once before the end of a wait, so that what it tells then is no second old. */
static void coordinator_ask_early(struct muster_coordinator *c, int64_t until_ms, int64_t now_ms)
{
    int64_t at_ms = until_ms - FRESH_MS;

    if (until_ms == 0 || until_ms == c->early_until_ms || c->beat_ms <= at_ms ||
        at_ms - now_ms > HEARTBEAT_MS || at_ms - c->alive_ms < FRESH_MS)
        return;
    c->early_until_ms = until_ms;
    c->beat_ms = at_ms;
    task_link_ask(c->link);
}

enum muster_status coordinator_wait(struct muster_coordinator *c, enum awaited awaited,
                                    struct call_time time, const char *what,
                                    struct muster_error *err)
{
    enum muster_status status = coordinator_is_over(c, awaited, time.from_ms, what, err);
    int64_t now_ms = task_now_ms(), until_ms = time.until_ms;
    int64_t wait_ms =
        coordinator_later_of(c->heard_ms, time.from_ms) + c->broker_timeout_ms - now_ms;

    if (status != MUSTER_OK)
        return status;
    if (until_ms > 0 && now_ms >= until_ms)
        return coordinator_timed_out(c, awaited, now_ms, what, err);
    coordinator_ask_early(c, until_ms, now_ms);
    if (until_ms > 0 && until_ms - now_ms < wait_ms)
        wait_ms = until_ms - now_ms;
    coordinator_wait_for_change(c, wait_ms > 0 ? wait_ms : 0);
    return MUSTER_OK;
}

/* Unlocks, and lets another of the waiting calls lead. */
static void coordinator_leave(struct muster_coordinator *c)
{
    if (c->waiting > 0 && !c->leading)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

void coordinator_unlock(struct muster_coordinator *c)
{
    coordinator_leave(c);
    task_link_drive(c->link);
}

/* --- errors of tasks -------------------------------------------------------------------------- */

void coordinator_ask_raise(struct muster_coordinator *c)
{
    if (c->error_number == 0 || c->raising || c->unsaid)
        return;
    c->raising = true;
    task_again_reset(&c->raise_again);
    task_link_ask(c->link);
}

/* The last word may be a second old, and the server may be back: so this asks again. */
static bool coordinator_is_unavailable(struct muster_coordinator *c)
{
    const struct call_time confirm = coordinator_time(CONFIRM_MS);
    const uint64_t alives = c->alives;

    c->beat_ms = 0;
    task_link_ask(c->link);
    while (c->unavailable[0] != '\0' && c->alives == alives &&
           coordinator_wait(c, AWAITED_ANSWER, confirm, "", NULL) == MUSTER_OK)
        continue;
    return c->unavailable[0] != '\0';
}

/* MUSTER_OK: there is none. Waits until nothing is executing; then the error is cleared by this
 * return. */
static enum muster_status coordinator_raise_error(struct muster_coordinator *c,
                                                  enum awaited awaited, struct call_time time,
                                                  struct muster_error *err)
{
    enum muster_status status =
        coordinator_is_over(c, awaited, time.from_ms, "nothing goes on", err);

    while (status == MUSTER_OK &&
           coordinator_is_unheard(c, 0, task_now_ms())) /* its error may be news */
        status = coordinator_wait(c, awaited, time, "no broker was heard", err);
    while (status == MUSTER_OK && !c->unsaid && (c->error_number != 0 || c->raising)) {
        coordinator_ask_raise(c);
        status = coordinator_wait(c, awaited, time,
                                  "a task failed, and what was running then did not end", err);
    }
    if (status == MUSTER_OK && c->unsaid) {
        c->unsaid = false;
        c->beat_ms = 0; /* the broker hears that it was told */
        task_link_ask(c->link);
        if (err != NULL)
            *err = c->raised_error;
        return c->raised_error.status;
    }
    if (status == MUSTER_OK && c->unavailable[0] != '\0' && coordinator_is_unavailable(c))
        return error_set(err, MUSTER_E_UNAVAILABLE, "%s", c->unavailable);
    return status;
}

/* --- schedule --------------------------------------------------------------------------------- */

enum muster_status coordinator_check_name(const char *function, struct muster_error *err)
{
    if (function == NULL || function[0] == '\0' || !wire_text_ok(function, NAME_MAX_BYTES))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "a call names a function, with at most %d bytes of UTF-8", NAME_MAX_BYTES);
    return MUSTER_OK;
}

enum muster_status coordinator_check_args(const char *function, const void *args, size_t size,
                                          const char *else_too, struct muster_error *err)
{
    if (size > 0 && args == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the arguments of \"%s\" are NULL, with a size of %zu bytes", function,
                         size);
    if (size > TASK_ARGS_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the arguments of \"%s\" have %zu bytes, at most %d are allowed: give the "
                         "path of a file that has them%s",
                         function, size, TASK_ARGS_MAX, else_too);
    return MUSTER_OK;
}

static enum muster_status coordinator_check_value(const struct muster_coordinator *c,
                                                  const struct muster_call *call, size_t i,
                                                  struct muster_error *err)
{
    const struct muster_per_worker *value = call->per_worker[i];

    if (value == NULL || value->magic != PER_WORKER_MAGIC)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "argument %zu of \"%s\" is no per-worker value: a remote value cannot "
                         "be an argument; fetch it and give its bytes",
                         i, call->function);
    if (value->coordinator != c)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "argument %zu of \"%s\" is another coordinator's per-worker value: make "
                         "one with that of queue %s",
                         i, call->function, c->name);
    return MUSTER_OK;
}

static enum muster_status coordinator_check_call(const struct muster_coordinator *c,
                                                 const struct muster_call *call,
                                                 struct muster_error *err)
{
    enum muster_status status;

    status = coordinator_check_name(call->function, err);
    if (status == MUSTER_OK)
        status = coordinator_check_args(call->function, call->args, call->args_size,
                                        ", or schedule several smaller tasks", err);
    if (status != MUSTER_OK)
        return status;
    if (call->timeout_ms < 0 || call->timeout_ms > INT32_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "timeout_ms of a call is from 0 to 2^31-1");
    if (call->per_worker_count > TASK_USES_MAX)
        return error_set(err, MUSTER_E_ARGUMENT, "a call uses at most %d per-worker values",
                         TASK_USES_MAX);
    if (call->per_worker_count > 0 && call->per_worker == NULL)
        return coordinator_is_null("muster_coordinator_schedule", "call.per_worker", err);
    for (size_t i = 0; i < call->per_worker_count && status == MUSTER_OK; i++)
        status = coordinator_check_value(c, call, i, err);
    return status;
}

/* NULL: memory is out. */
static struct task_call *coordinator_copy_call(const struct muster_call *call)
{
    size_t uses_size = call->per_worker_count * 4;
    struct task_call *copy = calloc(1, sizeof *copy + call->args_size + uses_size);
    uint8_t *uses;

    if (copy == NULL)
        return NULL;
    snprintf(copy->fn, sizeof copy->fn, "%s", call->function);
    copy->timeout_ms = (uint64_t)call->timeout_ms;
    copy->args_size = call->args_size;
    copy->uses_size = uses_size;
    if (call->args_size > 0)
        memcpy(copy->bytes, call->args, call->args_size);
    uses = copy->bytes + call->args_size;
    for (size_t i = 0; i < call->per_worker_count; i++)
        for (unsigned k = 0; k < 4; k++)
            uses[i * 4 + k] = (uint8_t)(call->per_worker[i]->number >> (24 - 8 * k));
    return copy;
}

static bool coordinator_is_full(const struct muster_coordinator *c)
{
    return c->scheduled - c->ended >= c->max_queued;
}

/* With the mutex. Only ends of tasks make room in a full queue; otherwise nothing needs to be
 * read. */
static enum muster_status coordinator_wait_for_room(struct muster_coordinator *c,
                                                    struct call_time time, struct muster_error *err)
{
    enum muster_status status = coordinator_raise_error(c, AWAITED_ANSWER, time, err);

    while (status == MUSTER_OK &&
           (coordinator_is_full(c) || c->untaken_bytes >= UNTAKEN_BYTES_MAX)) {
        status = coordinator_wait(c, coordinator_is_full(c) ? AWAITED_ENDS : AWAITED_ANSWER, time,
                                  "the queue stayed full and nothing was scheduled", err);
        if (status == MUSTER_OK)
            status = coordinator_raise_error(c, AWAITED_ANSWER, time, err);
    }
    return status;
}

enum muster_status muster_coordinator_schedule(muster_coordinator_t *c,
                                               const struct muster_call *given, int64_t timeout_ms,
                                               muster_remote_value_t **ret_value,
                                               struct muster_error *ret_error)
{
    struct muster_call own;
    const struct muster_call *call = &own;
    struct muster_remote_value *value = NULL;
    struct task_call *copy;
    bool alone = false;
    enum muster_status status = coordinator_check(c, "muster_coordinator_schedule", ret_error);

    if (status == MUSTER_OK && given == NULL)
        status = coordinator_is_null("muster_coordinator_schedule", "call", ret_error);
    if (status == MUSTER_OK)
        status = call_take(given, &own, ret_error);
    if (status == MUSTER_OK)
        status = coordinator_check_call(c, call, ret_error);
    if (status != MUSTER_OK)
        return status;
    copy = coordinator_copy_call(call);
    if (copy == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory to schedule \"%s\"", call->function);
    pthread_mutex_lock(&c->mutex);
    status = coordinator_wait_for_room(c, coordinator_time(timeout_ms), ret_error);
    if (status == MUSTER_OK && (value = values_add(c, c->scheduled + 1)) == NULL)
        status =
            error_set(ret_error, MUSTER_E_NOMEM, "no memory to schedule \"%s\"", call->function);
    if (status == MUSTER_OK) {
        bool idle = c->sent == c->scheduled;
        alone = idle && c->taken == c->sent;
        c->scheduled++;
        values_call_set(c, value, copy);
        value->held = ret_value != NULL;
        if (alone)
            task_link_ask(c->link);
        else if (idle)
            task_link_wake(c->link); /* else it is on its way there */
    }
    coordinator_leave(c);
    if (alone)
        task_link_drive(c->link); /* sent from here; of many each would be a frame of its own */
    if (status != MUSTER_OK)
        free(copy);
    else if (ret_value != NULL)
        *ret_value = value;
    return status;
}

enum muster_status muster_coordinator_join(muster_coordinator_t *c, int64_t timeout_ms,
                                           struct muster_error *ret_error)
{
    const struct call_time time = coordinator_time(timeout_ms);
    enum muster_status status = coordinator_check(c, "muster_coordinator_join", ret_error);

    if (status != MUSTER_OK)
        return status;
    pthread_mutex_lock(&c->mutex);
    status = coordinator_raise_error(c, AWAITED_ENDS, time, ret_error);
    while (status == MUSTER_OK && c->ended < c->scheduled) {
        status = coordinator_wait(c, AWAITED_ENDS, time, "not all tasks have ended", ret_error);
        if (status == MUSTER_OK)
            status = coordinator_raise_error(c, AWAITED_ENDS, time, ret_error);
    }
    coordinator_unlock(c);
    return status;
}

enum muster_status muster_coordinator_done(muster_coordinator_t *c, bool *ret_done,
                                           struct muster_error *ret_error)
{
    enum muster_status status = coordinator_check(c, "muster_coordinator_done", ret_error);
    struct call_time time;
    struct muster_error why;

    if (status == MUSTER_OK && ret_done == NULL)
        status = coordinator_is_null("muster_coordinator_done", "ret_done", ret_error);
    if (status != MUSTER_OK)
        return status;
    pthread_mutex_lock(&c->mutex);
    time = coordinator_time(c->done_wait_ms);
    time.from_ms = 0; /* it is asked again and again, and has no wait of its own */
    status = coordinator_raise_error(c, AWAITED_ENDS, time, &why);
    if (status == MUSTER_OK)
        *ret_done = c->ended >= c->scheduled;
    if (status == MUSTER_E_TIMEOUT && why.task == 0) {
        /* A task that runs ignores its cancel: the error is for a later call. With a number it is a
         * task's own, from the database of an older broker. */
        *ret_done = false;
        status = MUSTER_OK;
    }
    coordinator_unlock(c);
    return error_pass(ret_error, status, &why);
}

/* --- after an attach -------------------------------------------------------------------------- */

uint64_t muster_coordinator_scheduled(const muster_coordinator_t *coordinator)
{
    struct muster_coordinator *c = (struct muster_coordinator *)coordinator;
    uint64_t scheduled;

    if (c == NULL || coordinator_is_forked(c))
        return 0;
    pthread_mutex_lock(&c->mutex);
    scheduled = c->scheduled;
    pthread_mutex_unlock(&c->mutex);
    return scheduled;
}

/* Of these numbers alone: who takes values one by one does not wait for all that is there each
 * time. */
static void coordinator_ask_for(struct muster_coordinator *c, uint64_t id)
{
    if (c->new_from == 0 || id < c->new_from)
        c->new_from = id;
    if (id > c->new_to)
        c->new_to = id;
}

enum muster_status muster_coordinator_value(muster_coordinator_t *c, uint64_t id,
                                            muster_remote_value_t **ret_value,
                                            struct muster_error *ret_error)
{
    struct muster_remote_value *value;
    enum muster_status status = coordinator_check(c, "muster_coordinator_value", ret_error);

    if (status == MUSTER_OK && ret_value == NULL)
        status = coordinator_is_null("muster_coordinator_value", "ret_value", ret_error);
    if (status != MUSTER_OK)
        return status;
    pthread_mutex_lock(&c->mutex);
    value = values_find(c, id);
    if (id == 0 || id > c->scheduled || id <= c->released) {
        status = error_set(ret_error, MUSTER_E_NOT_FOUND,
                           "queue %s has tasks %llu to %llu, and not %llu", c->name,
                           (unsigned long long)c->released + 1, (unsigned long long)c->scheduled,
                           (unsigned long long)id);
    } else if (value != NULL && value->held) {
        status = error_set(ret_error, MUSTER_E_EXISTS, "the value of task %llu is held already",
                           (unsigned long long)id);
    } else if (value == NULL) {
        value = values_add(c, id);
        if (value == NULL)
            status = error_set(ret_error, MUSTER_E_NOMEM, "no memory for a remote value");
        else
            coordinator_ask_for(c, id), value->unasked = true;
    }
    if (status == MUSTER_OK) {
        value->held = true;
        *ret_value = value;
        task_link_ask(c->link);
    }
    coordinator_unlock(c);
    return status;
}

void muster_coordinator_release(muster_coordinator_t *c)
{
    if (c == NULL || coordinator_is_forked(c))
        return;
    pthread_mutex_lock(&c->mutex);
    c->keep_from = 0;
    pthread_mutex_unlock(&c->mutex);
}

/* --- open and close --------------------------------------------------------------------------- */

static enum muster_status coordinator_configure(struct muster_coordinator *c,
                                                const struct muster_coordinator_options *options,
                                                struct muster_error *err)
{
    const char *name = options->name != NULL ? options->name : "main";
    enum muster_status status;

    if (!wire_job_name_ok(name))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "option name is \"%s\": letters, digits, '.', '_' and '-', at most %d",
                         name, JOB_NAME_MAX);
    if (options->max_queued < 0 || options->max_attempts < 0 || options->max_attempts > UINT8_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "option max_queued is 0 or more, max_attempts from 0 to 255");
    snprintf(c->name, sizeof c->name, "%s", name);
    c->fresh = options->fresh;
    c->max_queued =
        options->max_queued > 0 ? (uint64_t)options->max_queued : (uint64_t)TASK_QUEUED_DEFAULT;
    c->max_attempts = (uint64_t)options->max_attempts;
    c->broker_timeout_ms =
        options->broker_timeout_ms > 0 ? coordinator_at_most(options->broker_timeout_ms) : STUCK_MS;
    c->done_wait_ms = DONE_WAIT_MS;
    c->incarnation = task_incarnation();
    c->pid = getpid();
    status = task_identity(options->broker, options->job, c->broker, c->job, err);
    c->connect_timeout_ms = options->connect_timeout_ms > 0
                                ? coordinator_at_most(options->connect_timeout_ms)
                                : paths_connect_ms(c->broker);
    return status;
}

static enum muster_status coordinator_wait_until_opened(struct muster_coordinator *c,
                                                        struct muster_error *err)
{
    struct timespec until = thread_time_after(c->connect_timeout_ms);
    enum muster_status status = MUSTER_OK;
    int code = 0;

    pthread_mutex_lock(&c->mutex);
    while (!c->ever_opened && c->refused == MUSTER_OK && code == 0)
        code = pthread_cond_timedwait(&c->changed, &c->mutex, &until);
    if (!c->ever_opened && c->refused != MUSTER_OK)
        status = error_set(err, (enum muster_status)c->refused, "%s", c->refused_text);
    else if (!c->ever_opened)
        status = coordinator_is_in_trouble(c, AWAITED_ANSWER, 0, task_now_ms(),
                                           "the queue was not opened", err);
    if (!c->ever_opened && status == MUSTER_OK)
        status = error_set(err, MUSTER_E_BROKER,
                           "no broker answered at %s within %.1f s: start one with `musterd`, or "
                           "correct the address (option broker, MUSTER_BROKER)",
                           c->broker, (double)c->connect_timeout_ms / 1000.0);
    pthread_mutex_unlock(&c->mutex);
    return query_door_explain(c->broker, status, err);
}

static enum muster_status coordinator_connect_it(struct muster_coordinator *c,
                                                 struct muster_error *err)
{
    const struct task_link_owner owner = {.arg = c,
                                          .take = coordinator_take,
                                          .turn = coordinator_turn,
                                          .job = c->job,
                                          .role = ROLE_TOOL,
                                          .incarnation = c->incarnation};
    enum muster_status status = task_link_open(c->broker, &owner, &c->link, err);

    c->heard_ms = task_now_ms();
    if (status == MUSTER_OK)
        status = task_link_start(c->link, err);
    return status == MUSTER_OK ? coordinator_wait_until_opened(c, err) : status;
}

enum muster_status muster_coordinator_open(const struct muster_coordinator_options *options,
                                           muster_coordinator_t **ret_coordinator,
                                           struct muster_error *ret_error)
{
    struct muster_coordinator *c;
    struct muster_coordinator_options own;
    enum muster_status status;
    pthread_condattr_t attributes;

    if (options == NULL || ret_coordinator == NULL)
        return coordinator_is_null("muster_coordinator_open",
                                   options == NULL ? "options" : "ret_coordinator", ret_error);
    status = coordinator_options_take(options, &own, ret_error);
    if (status != MUSTER_OK)
        return status;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a coordinator; free some");
    status = coordinator_configure(c, &own, ret_error);
    if (status != MUSTER_OK) {
        free(c);
        return status;
    }
    pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    status = coordinator_connect_it(c, ret_error);
    if (status == MUSTER_OK)
        *ret_coordinator = c;
    else
        muster_coordinator_close(&c, NULL);
    return status;
}

static enum muster_status coordinator_flush(struct muster_coordinator *c, struct call_time time,
                                            struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    uint64_t last;
    char what[128];

    pthread_mutex_lock(&c->mutex);
    last = c->scheduled;
    while (status == MUSTER_OK && c->taken < last) {
        snprintf(what, sizeof what, "%" PRIu64 " tasks are not on record with the broker yet%s",
                 last - c->taken, c->full ? ", for its queue is full," : "");
        status = coordinator_wait(c, AWAITED_ANSWER, time, what, err);
    }
    coordinator_unlock(c);
    return status;
}

enum muster_status muster_coordinator_flush(muster_coordinator_t *c, int64_t timeout_ms,
                                            struct muster_error *ret_error)
{
    enum muster_status status = coordinator_check(c, "muster_coordinator_flush", ret_error);

    return status != MUSTER_OK ? status
                               : coordinator_flush(c, coordinator_time(timeout_ms), ret_error);
}

static uint64_t coordinator_taken_of(struct muster_coordinator *c)
{
    uint64_t taken;

    pthread_mutex_lock(&c->mutex);
    taken = c->taken;
    pthread_mutex_unlock(&c->mutex);
    return taken;
}

/* As long as it goes on: what was scheduled is on record, or there is a reason that it cannot be */
static enum muster_status coordinator_hand_over(struct muster_coordinator *c,
                                                struct muster_error *err)
{
    struct muster_error why;
    enum muster_status status;
    uint64_t taken;

    do {
        struct call_time time = coordinator_time(c->broker_timeout_ms);

        time.from_ms = 0; /* who closes has waited for this broker before */
        taken = coordinator_taken_of(c);
        status = coordinator_flush(c, time, &why);
    } while (status == MUSTER_E_TIMEOUT && coordinator_taken_of(c) > taken);
    return error_pass(err, status, &why);
}

enum muster_status muster_coordinator_close(muster_coordinator_t **coordinator,
                                            struct muster_error *ret_error)
{
    struct muster_coordinator *c = coordinator != NULL ? *coordinator : NULL;
    enum muster_status status = MUSTER_OK;

    if (c == NULL)
        return MUSTER_OK;
    *coordinator = NULL;
    status = coordinator_check(c, "muster_coordinator_close", ret_error);
    if (status != MUSTER_OK)
        return status; /* a child closes nothing of its parent's */
    if (c->ever_opened)
        status = coordinator_hand_over(c, ret_error);
    task_link_close(&c->link);
    while (c->first != NULL)
        values_forget(c, c->first);
    per_worker_forget_all(c);
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->changed);
    free(c);
    return status;
}
