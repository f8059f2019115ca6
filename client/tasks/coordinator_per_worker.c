/* coordinator_per_worker - the values that every worker makes for itself: one call at a time puts
 * one on record. */
#include "client/tasks/coordinator_private.h"

#include "schema/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct muster_per_worker *per_worker_new(const char *function, const void *args,
                                                size_t args_size)
{
    struct muster_per_worker *value = calloc(1, sizeof *value);

    if (value == NULL)
        return NULL;
    value->args = malloc(args_size + 1);
    if (value->args == NULL) {
        free(value);
        return NULL;
    }
    if (args_size > 0)
        memcpy(value->args, args, args_size);
    value->magic = PER_WORKER_MAGIC;
    value->args_size = args_size;
    snprintf(value->fn, sizeof value->fn, "%s", function);
    return value;
}

static void per_worker_free(struct muster_per_worker *value)
{
    free(value->args);
    free(value);
}

/* One that was refused has no number: the next call's is the same. */
static void per_worker_forget_newest(struct muster_coordinator *c)
{
    struct muster_per_worker *value = c->per_worker;

    c->per_worker = value->next;
    c->per_worker_count--;
    per_worker_free(value);
}

/* The same that an earlier call gave up, which may be on record: it is not made twice. */
static struct muster_per_worker *per_worker_given_up(const struct muster_coordinator *c,
                                                     const struct muster_per_worker *like)
{
    struct muster_per_worker *value = c->per_worker, *found = NULL;

    for (; value != NULL; value = value->next)
        if (value->given_up && strcmp(value->fn, like->fn) == 0 &&
            value->args_size == like->args_size &&
            memcmp(value->args, like->args, like->args_size) == 0)
            found = value; /* the lowest number */
    return found;
}

/* Consumes fresh. The value with its number: it is in the list. */
static struct muster_per_worker *per_worker_enlist(struct muster_coordinator *c,
                                                   struct muster_per_worker *fresh)
{
    struct muster_per_worker *value;

    while (c->per_worker != NULL && c->per_worker->given_up && c->per_worker->refused != MUSTER_OK)
        per_worker_forget_newest(c);
    value = per_worker_given_up(c, fresh);
    if (value != NULL) {
        per_worker_free(fresh);
        value->given_up = false;
        return value;
    }
    fresh->coordinator = c;
    fresh->number = ++c->per_worker_count;
    fresh->next = c->per_worker;
    c->per_worker = fresh;
    return fresh;
}

static enum muster_status coordinator_per_worker_refused(const struct muster_coordinator *c,
                                                         const struct muster_per_worker *value,
                                                         struct muster_error *err)
{
    if (value->refused == MUSTER_E_EXISTS)
        return error_set(err, MUSTER_E_EXISTS,
                         "per-worker value %llu of queue %s was made by another call, and is not "
                         "\"%s\" of these arguments: make the values in the order of the first "
                         "coordinator, or begin the queue again",
                         (unsigned long long)value->number, c->name, value->fn);
    if (value->refused == MUSTER_E_BUSY)
        return error_set(err, MUSTER_E_BUSY,
                         "queue %s takes no more per-worker values now: the tasks and values of "
                         "this key need more memory than the broker still has for them; wait until "
                         "a task has ended, then make the value again",
                         c->name);
    return error_set(err, (enum muster_status)value->refused,
                     "queue %s takes no more per-worker values: at most %d", c->name,
                     TASK_RESOURCES_MAX);
}

/* Consumes fresh. One call at a time: a number that is refused is the newest. A value that was not
 * answered stays in the list. */
static enum muster_status coordinator_per_worker_record(struct muster_coordinator *c,
                                                        struct muster_per_worker *fresh,
                                                        struct muster_per_worker **ret_value,
                                                        struct muster_error *err)
{
    static const char what[] = "the per-worker value was not put on record";
    const struct call_time time = coordinator_time(c->connect_timeout_ms);
    enum muster_status status = MUSTER_OK;
    struct muster_per_worker *value;

    while (status == MUSTER_OK && c->recording)
        status = coordinator_wait(c, AWAITED_ANSWER, time, what, err);
    if (status != MUSTER_OK) {
        per_worker_free(fresh);
        return status;
    }
    c->recording = true;
    value = per_worker_enlist(c, fresh);
    task_again_reset(&c->resource_again);
    task_link_ask(c->link);
    while (status == MUSTER_OK && !value->taken && value->refused == MUSTER_OK)
        status = coordinator_wait(c, AWAITED_ANSWER, time, what, err);
    c->recording = false;
    pthread_cond_broadcast(&c->changed);
    task_link_wake(c->link); /* one that waits for its turn here may lead the link */
    value->given_up = status != MUSTER_OK;
    if (status == MUSTER_OK && value->refused != MUSTER_OK) {
        status = coordinator_per_worker_refused(c, value, err);
        value->given_up = true;
        if (value == c->per_worker)
            per_worker_forget_newest(c);
    } else if (status == MUSTER_OK) {
        *ret_value = value;
    }
    return status;
}

enum muster_status muster_coordinator_create_per_worker(muster_coordinator_t *c,
                                                        const char *function, const void *args,
                                                        size_t args_size,
                                                        muster_per_worker_t **ret_value,
                                                        struct muster_error *ret_error)
{
    enum muster_status status =
        coordinator_check(c, "muster_coordinator_create_per_worker", ret_error);
    struct muster_per_worker *value;

    if (status == MUSTER_OK && ret_value == NULL)
        status =
            coordinator_is_null("muster_coordinator_create_per_worker", "ret_value", ret_error);
    if (status == MUSTER_OK)
        status = coordinator_check_name(function, ret_error);
    if (status == MUSTER_OK)
        status = coordinator_check_args(function, args, args_size, "", ret_error);
    if (status != MUSTER_OK)
        return status;
    value = per_worker_new(function, args, args_size);
    if (value == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a per-worker value");
    pthread_mutex_lock(&c->mutex);
    status = coordinator_per_worker_record(c, value, ret_value, ret_error);
    coordinator_unlock(c);
    return status;
}

void per_worker_forget_all(struct muster_coordinator *c)
{
    while (c->per_worker != NULL)
        per_worker_forget_newest(c);
}
