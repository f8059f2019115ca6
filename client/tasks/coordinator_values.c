/* coordinator_values - what is known of tasks, and their results. */
#include "client/tasks/coordinator_private.h"

#include "schema/error.h"

#include <stdlib.h>
#include <string.h>

static struct muster_remote_value **coordinator_values_slot_of(struct muster_coordinator *c,
                                                               uint64_t number)
{
    return &c->hash[number % VALUES_HASH];
}

struct muster_remote_value *values_find(const struct muster_coordinator *c, uint64_t number)
{
    struct muster_remote_value *value = c->hash[number % VALUES_HASH];

    while (value != NULL && value->number != number)
        value = value->next_hash;
    return value;
}

/* NULL: memory is out. */
struct muster_remote_value *values_add(struct muster_coordinator *c, uint64_t number)
{
    struct muster_remote_value *value = calloc(1, sizeof *value);
    struct muster_remote_value **slot = coordinator_values_slot_of(c, number);

    if (value == NULL)
        return NULL;
    value->magic = REMOTE_VALUE_MAGIC;
    value->coordinator = c;
    value->number = number;
    value->state = TASK_QUEUED;
    value->next_hash = *slot;
    *slot = value;
    value->prev = c->last; /* most often the highest number */
    while (value->prev != NULL && value->prev->number > number)
        value->prev = value->prev->prev;
    value->next = value->prev != NULL ? value->prev->next : c->first;
    *(value->prev != NULL ? &value->prev->next : &c->first) = value;
    *(value->next != NULL ? &value->next->prev : &c->last) = value;
    return value;
}

void values_call_set(struct muster_coordinator *c, struct muster_remote_value *value,
                     struct task_call *call)
{
    if (value->call != NULL)
        c->untaken_bytes -= value->call->args_size + value->call->uses_size;
    free(value->call);
    value->call = call;
    if (call != NULL)
        c->untaken_bytes += call->args_size + call->uses_size;
}

static void coordinator_values_destroy(struct muster_remote_value *value)
{
    free(value->text);
    free(value->result);
    value->magic = 0;
    free(value);
}

static void coordinator_values_unlink_value(struct muster_coordinator *c,
                                            struct muster_remote_value *value)
{
    struct muster_remote_value **slot = coordinator_values_slot_of(c, value->number);

    while (*slot != value)
        slot = &(*slot)->next_hash;
    *slot = value->next_hash;
    *(value->prev != NULL ? &value->prev->next : &c->first) = value->next;
    *(value->next != NULL ? &value->next->prev : &c->last) = value->prev;
    value->coordinator = NULL;
}

void values_forget(struct muster_coordinator *c, struct muster_remote_value *value)
{
    bool held = value->held;

    values_call_set(c, value, NULL);
    coordinator_values_unlink_value(c, value);
    if (!held)
        coordinator_values_destroy(value);
}

static void values_drop_unused(struct muster_coordinator *c, struct muster_remote_value *value)
{
    if (!value->held && value->state != TASK_QUEUED)
        values_forget(c, value);
}

/* Everything below the first task that is held or has not ended. */
uint64_t values_released(const struct muster_coordinator *c)
{
    uint64_t to = c->first != NULL ? c->first->number - 1 : c->taken;

    if (to > c->taken)
        to = c->taken;
    if (c->keep_from > 0) /* what was there before is kept */
        return c->released;
    return to > c->released ? to : c->released;
}

static void coordinator_values_take_result(struct muster_remote_value *value,
                                           const struct wire_ended_entry *entry)
{
    value->bytes = entry->bytes;
    if (!value->held || entry->result.size != entry->bytes || entry->bytes == 0)
        return;
    value->result = malloc(entry->result.size);
    if (value->result == NULL)
        return; /* it is asked for when it is wanted */
    memcpy(value->result, entry->result.data, entry->result.size);
    value->parts.have = value->parts.sent = entry->result.size;
}

void values_end(struct muster_coordinator *c, const struct wire_ended_entry *entry)
{
    struct muster_remote_value *value = values_find(c, entry->number);

    if (value == NULL || value->state != TASK_QUEUED)
        return;
    value->state = (enum wire_task_state)entry->state;
    value->status = entry->state == TASK_CANCELLED ? MUSTER_E_CANCELLED : (unsigned)entry->status;
    value->code = entry->code;
    if (entry->state == TASK_CANCELLED && !value->cancel && value->cancelled_by == 0)
        value->cancelled_by = c->error_number; /* it ran, and was told to end */
    value->text = entry->text[0] != '\0' ? strdup(entry->text) : NULL;
    values_call_set(c, value, NULL);
    coordinator_values_take_result(value, entry);
    values_drop_unused(c, value);
}

void values_asked(struct muster_coordinator *c, uint64_t before)
{
    struct muster_remote_value *value = c->first;

    for (; value != NULL && value->number < before; value = value->next)
        if (value->number >= c->ask_from)
            value->unasked = false;
}

/* --- the user's calls ------------------------------------------------------------------------- */

uint64_t muster_remote_value_id(const muster_remote_value_t *value)
{
    return value != NULL ? value->number : 0;
}

void muster_remote_value_free(muster_remote_value_t **value)
{
    struct muster_remote_value *v = value != NULL ? *value : NULL;
    struct muster_coordinator *c = v != NULL ? v->coordinator : NULL;

    if (v == NULL)
        return;
    *value = NULL;
    if (c == NULL) {
        coordinator_values_destroy(v);
        return;
    }
    if (coordinator_is_forked(c))
        return; /* it is the parent's */
    pthread_mutex_lock(&c->mutex);
    v->held = false;
    values_drop_unused(c, v);
    pthread_mutex_unlock(&c->mutex);
}

static enum muster_status coordinator_values_check_value(const struct muster_remote_value *value,
                                                         const char *call, struct muster_error *err)
{
    if (value == NULL)
        return coordinator_is_null(call, "value", err);
    if (value->magic != REMOTE_VALUE_MAGIC)
        return error_set(err, MUSTER_E_ARGUMENT, "%s: this is no remote value", call);
    return MUSTER_OK;
}

enum muster_status muster_remote_value_cancel(muster_remote_value_t *value,
                                              struct muster_error *ret_error)
{
    enum muster_status status =
        coordinator_values_check_value(value, "muster_remote_value_cancel", ret_error);
    struct muster_coordinator *c;

    if (status != MUSTER_OK)
        return status;
    c = value->coordinator;
    if (c == NULL)
        return error_set(ret_error, MUSTER_E_CLOSED, "the coordinator of task %llu is closed",
                         (unsigned long long)value->number);
    status = coordinator_check(c, "muster_remote_value_cancel", ret_error);
    if (status != MUSTER_OK)
        return status;
    pthread_mutex_lock(&c->mutex);
    if (value->state == TASK_QUEUED) {
        value->cancel = c->look = true;
        task_again_reset(&value->again);
        task_link_ask(c->link);
    }
    coordinator_unlock(c);
    return MUSTER_OK;
}

static enum muster_status coordinator_values_cancelled(const struct muster_remote_value *value,
                                                       struct muster_error *err)
{
    unsigned long long number = (unsigned long long)value->number;

    if (value->cancelled_by > 0)
        return error_set_code(err, MUSTER_E_CANCELLED, (int)value->code,
                              "task %llu was cancelled because task %llu of its queue had failed; "
                              "schedule it again if it is still wanted",
                              number, (unsigned long long)value->cancelled_by);
    return error_set_code(err, MUSTER_E_CANCELLED, (int)value->code,
                          value->cancel ? "task %llu was cancelled, as was asked for"
                                        : "task %llu was cancelled, by a coordinator or because "
                                          "another task of its queue had failed; schedule it again "
                                          "if it is still wanted",
                          number);
}

static enum muster_status coordinator_values_failed(const struct muster_remote_value *value,
                                                    struct muster_error *err)
{
    return error_set_code(err, (enum muster_status)value->status, (int)value->code, "%s",
                          value->text != NULL
                              ? value->text
                              : muster_status_sentence((enum muster_status)value->status));
}

static enum muster_status coordinator_values_failure(const struct muster_remote_value *value,
                                                     struct muster_error *err)
{
    enum muster_status status = value->state == TASK_CANCELLED
                                    ? coordinator_values_cancelled(value, err)
                                    : coordinator_values_failed(value, err);

    if (err != NULL)
        err->task = value->number;
    return status;
}

static enum muster_status coordinator_values_result_of(struct muster_remote_value *value,
                                                       const void **ret_data, size_t *ret_size,
                                                       struct muster_error *err)
{
    if (value->state != TASK_DONE)
        return coordinator_values_failure(value, err);
    *ret_data = value->result;
    *ret_size = (size_t)value->bytes;
    return MUSTER_OK;
}

/* Returns an error once a broker that is heard could not give the result for as long as a broker
 * may be silent. */
static enum muster_status coordinator_values_is_unread(const struct muster_coordinator *c,
                                                       const struct muster_remote_value *value,
                                                       int64_t from_ms, int64_t for_ms,
                                                       struct muster_error *err)
{
    int64_t since_ms = value->unread_ms > from_ms ? value->unread_ms : from_ms;

    if (value->unread_ms == 0 || task_now_ms() - since_ms < for_ms)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_STORAGE,
                     "the result of task %llu did not come, for the broker at %s cannot read it "
                     "(%s: %s); musterd's log says more. Nothing was changed: see to that, and "
                     "fetch it again",
                     (unsigned long long)value->number, c->broker,
                     muster_status_name((enum muster_status)value->unread_code),
                     muster_status_sentence((enum muster_status)value->unread_code));
}

/* A result that the broker has, but has not sent yet, is worth a moment, also to a caller that does
 * not wait for the task. */
static struct call_time coordinator_values_time_for(const struct muster_remote_value *value,
                                                    struct call_time time)
{
    int64_t answer_ms = time.from_ms + CONFIRM_MS;

    if (time.until_ms > 0 && time.until_ms < answer_ms &&
        (value->unasked || value->state == TASK_DONE))
        time.until_ms = answer_ms;
    return time;
}

/* With the mutex. */
static enum muster_status coordinator_values_fetch(struct muster_coordinator *c,
                                                   struct muster_remote_value *value,
                                                   struct call_time time, const void **ret_data,
                                                   size_t *ret_size, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    while (status == MUSTER_OK) {
        bool ended = value->state != TASK_QUEUED;

        if (ended && (value->state != TASK_DONE || value->parts.have == value->bytes))
            return coordinator_values_result_of(value, ret_data, ret_size, err);
        if (value->no_memory) {
            value->no_memory = false;
            return error_set(err, MUSTER_E_NOMEM,
                             "no memory for the result of task %llu, %llu bytes; free some and "
                             "fetch it again",
                             (unsigned long long)value->number, (unsigned long long)value->bytes);
        }
        if (!ended) /* behind an error it never would: it is cancelled, and the error is for the
                       next call */
            coordinator_ask_raise(c);
        if (ended && !value->wanted) {
            value->wanted = c->look = true;
            task_parts_again(&value->parts);
            task_link_ask(c->link);
        }
        status = coordinator_values_is_unread(c, value, time.from_ms, c->broker_timeout_ms, err);
        if (status == MUSTER_OK)
            status = coordinator_wait(c, ended ? AWAITED_ANSWER : AWAITED_ENDS,
                                      coordinator_values_time_for(value, time),
                                      "the task's result did not come", err);
        if (status == MUSTER_E_TIMEOUT &&
            coordinator_values_is_unread(c, value, 0, 0, err) != MUSTER_OK)
            status = MUSTER_E_STORAGE;
    }
    return status;
}

enum muster_status muster_remote_value_fetch(muster_remote_value_t *value, int64_t timeout_ms,
                                             const void **ret_data, size_t *ret_size,
                                             struct muster_error *ret_error)
{
    enum muster_status status =
        coordinator_values_check_value(value, "muster_remote_value_fetch", ret_error);
    struct muster_coordinator *c;

    if (status == MUSTER_OK && (ret_data == NULL || ret_size == NULL))
        status = coordinator_is_null("muster_remote_value_fetch",
                                     ret_data == NULL ? "ret_data" : "ret_size", ret_error);
    if (status != MUSTER_OK)
        return status;
    c = value->coordinator;
    if (c == NULL && value->state != TASK_QUEUED && value->parts.have == value->bytes)
        return coordinator_values_result_of(value, ret_data, ret_size, ret_error);
    if (c == NULL)
        return error_set(ret_error, MUSTER_E_CLOSED,
                         "the coordinator of task %llu was closed before its result was fetched",
                         (unsigned long long)value->number);
    status = coordinator_check(c, "muster_remote_value_fetch", ret_error);
    if (status != MUSTER_OK)
        return status;
    pthread_mutex_lock(&c->mutex);
    status = coordinator_values_fetch(c, value, coordinator_time(timeout_ms), ret_data, ret_size,
                                      ret_error);
    coordinator_unlock(c);
    return status;
}

static enum muster_status coordinator_values_fetch_place(struct muster_place *place,
                                                         int64_t until_ms, int depth,
                                                         struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    int64_t left_ms = until_ms == 0 ? -1 : until_ms - task_now_ms();

    if (place->kind == MUSTER_PLACE_LIST && place->count > 0 && place->items == NULL)
        return coordinator_is_null("muster_coordinator_fetch", "place.items", err);
    if (depth > 64)
        return error_set(err, MUSTER_E_ARGUMENT, "places are nested more than 64 deep");
    if (place->kind == MUSTER_PLACE_VALUE)
        return muster_remote_value_fetch(place->value, until_ms != 0 && left_ms < 0 ? 0 : left_ms,
                                         &place->data, &place->size, err);
    for (size_t i = 0; place->kind == MUSTER_PLACE_LIST && i < place->count && status == MUSTER_OK;
         i++)
        status = coordinator_values_fetch_place(&place->items[i], until_ms, depth + 1, err);
    return status;
}

enum muster_status muster_coordinator_fetch(muster_coordinator_t *coordinator,
                                            struct muster_place *place, int64_t timeout_ms,
                                            struct muster_error *ret_error)
{
    enum muster_status status =
        coordinator_check(coordinator, "muster_coordinator_fetch", ret_error);

    if (status != MUSTER_OK)
        return status;
    if (place == NULL)
        return coordinator_is_null("muster_coordinator_fetch", "place", ret_error);
    return coordinator_values_fetch_place(place, coordinator_time(timeout_ms).until_ms, 1,
                                          ret_error);
}
