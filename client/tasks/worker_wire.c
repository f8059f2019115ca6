/* worker_wire - what a worker says to the broker and hears from it; all in turns of its link.
 * Everything is repeated until it was answered. Frames that come before the welcome of this
 * connection are of another life and dropped. */
#include "client/tasks/worker_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A WORK is acknowledged so soon that the broker does not repeat it (RESEND_MIN_MS). */
#define BEAT_SOON_MS 50
#define RENEW_EVERY_MS 100 /* at most */

/* --- hearing ---------------------------------------------------------------------------------- */

static struct muster_task *worker_wire_find(const struct muster_worker *worker, uint64_t queue,
                                            uint64_t number, uint64_t attempt, uint64_t kind)
{
    struct muster_task *task = worker->first;

    while (task != NULL && (task->number != number || task->queue != queue ||
                            task->attempt != attempt || (uint64_t)task->kind != kind))
        task = task->next;
    return task;
}

static void worker_wire_add(struct muster_worker *worker, const struct wire_task_entry *entry)
{
    struct muster_task *task = calloc(1, sizeof *task + entry->args.size + entry->uses.size);

    if (task == NULL)
        return; /* not received: it comes again */
    task->worker = worker;
    task->queue = entry->queue;
    task->number = entry->number;
    task->attempt = entry->attempt;
    task->kind = entry->kind == TASK_KIND_RESOURCE ? TASK_KIND_RESOURCE : TASK_KIND_TASK;
    task->args_size = entry->args.size;
    task->uses_size = entry->uses.size;
    if (entry->args.size > 0)
        memcpy(task->bytes, entry->args.data, entry->args.size);
    if (entry->uses.size > 0)
        memcpy(task->bytes + entry->args.size, entry->uses.data, entry->uses.size);
    snprintf(task->fn, sizeof task->fn, "%s", entry->fn);
    *(worker->last != NULL ? &worker->last->next : &worker->first) = task;
    worker->last = task;
    worker->received = task->serial = entry->serial;
}

/* With its mutex. */
static void worker_wire_take_work(struct muster_worker *worker, const struct wire_work *m,
                                  int64_t now_ms)
{
    if (!worker->welcomed)
        return;
    for (size_t i = 0; i < m->tasks.count; i++) {
        const struct wire_task_entry *entry = &m->tasks.items[i];

        if (entry->serial != worker->received + 1)
            continue; /* here already, or behind one that was lost */
        if (worker_wire_find(worker, entry->queue, entry->number, entry->attempt, entry->kind) ==
            NULL)
            worker_wire_add(worker, entry);
        else
            worker->received = entry->serial;
    }
    if (worker->beat_ms > now_ms + BEAT_SOON_MS)
        worker->beat_ms = now_ms + BEAT_SOON_MS;
    pthread_cond_broadcast(&worker->changed);
}

void worker_value_free(struct worker_value *value)
{
    if (value->value_free != NULL)
        value->value_free(value->value);
    free(value->text);
    free(value);
}

void worker_task_free(struct muster_task *task)
{
    free(task->result);
    free(task->text);
    free(task);
}

static void worker_wire_drop(struct muster_worker *worker, struct muster_task *gone)
{
    struct muster_task **slot = &worker->first;
    struct muster_task *before = NULL;

    while (*slot != gone) {
        before = *slot;
        slot = &(*slot)->next;
    }
    *slot = gone->next;
    if (worker->last == gone)
        worker->last = before;
    worker_task_free(gone);
}

static void worker_wire_forget(struct muster_worker *worker, struct muster_task *gone)
{
    worker->unsent--;
    worker->told++;
    worker_wire_drop(worker, gone);
}

static void worker_wire_take_taken(struct muster_worker *worker, const struct wire_work_taken *m)
{
    for (size_t i = 0; i < m->tasks.count; i++) {
        const struct wire_lease_entry *entry = &m->tasks.items[i];
        struct muster_task *task =
            worker_wire_find(worker, entry->queue, entry->number, entry->attempt, entry->kind);

        if (task == NULL || task->state != ATTEMPT_ENDED)
            continue;
        if (entry->code == MUSTER_E_NOT_FOUND) { /* its parts are gone: from the beginning */
            task->parts = (struct task_parts){0};
            task_again_reset(&task->again);
            continue;
        }
        worker_wire_forget(worker, task);
    }
    pthread_cond_broadcast(&worker->changed);
}

static void worker_wire_take_part_taken(struct muster_worker *worker,
                                        const struct wire_part_taken *m, int64_t now_ms)
{
    uint64_t have = m->have;
    struct muster_task *task =
        worker_wire_find(worker, m->queue, m->number, m->attempt, TASK_KIND_TASK);

    if (task == NULL || task->state != ATTEMPT_ENDED)
        return;
    if (m->code != MUSTER_OK || have >= task->result_size) {
        have = task->result_size; /* all, or it no longer counts: WORK_DONE hears the same */
        task_again_reset(&task->again);
    }
    worker->told += have > task->parts.have;
    task_parts_have(&task->parts, &worker->window, have, now_ms);
}

/* It was never begun. */
static void worker_wire_give_back(struct muster_worker *worker, struct muster_task *task)
{
    task->given_back = true;
    task->state = ATTEMPT_ENDED;
    worker->unsent++;
}

/* With its values, also those that are being made. */
static void worker_wire_queue_is_gone(struct muster_worker *worker, uint64_t queue)
{
    for (struct worker_value *value = worker->values; value != NULL; value = value->next)
        value->gone = value->gone || value->queue == queue;
    for (struct muster_task *task = worker->first; task != NULL; task = task->next)
        task->gone = task->gone || task->queue == queue;
}

/* 0: an older broker, which never confirms. */
static void worker_wire_take_confirmed(struct muster_worker *worker, uint64_t below)
{
    uint64_t confirmed = below > 0 ? below - 1 : worker->received;

    if (!worker->welcomed || confirmed <= worker->confirmed)
        return;
    worker->confirmed = confirmed;
    pthread_cond_broadcast(&worker->changed);
}

static void worker_wire_take_alive(struct muster_worker *worker, const struct wire_work_alive *m)
{
    if (m->code == MUSTER_E_HELLO) {
        if (worker->welcomed || worker->hello.at_ms == 0)
            task_again_reset(&worker->hello);
        worker->welcomed = false;
        return;
    }
    worker_wire_take_confirmed(worker, m->confirmed);
    for (size_t i = 0; i < m->back.count; i++) {
        const struct wire_lease_entry *entry = &m->back.items[i];
        struct muster_task *task =
            worker_wire_find(worker, entry->queue, entry->number, entry->attempt, entry->kind);

        if (task != NULL && task->state == ATTEMPT_WAITING)
            worker_wire_give_back(worker, task);
    }
    for (size_t i = 0; i < m->gone.count; i++)
        worker_wire_queue_is_gone(worker, m->gone.items[i].queue);
    for (size_t i = 0; i < m->cancelled.count; i++) {
        const struct wire_lease_entry *entry = &m->cancelled.items[i];
        struct muster_task *task =
            worker_wire_find(worker, entry->queue, entry->number, entry->attempt, entry->kind);

        if (task != NULL)
            atomic_store(&task->cancelled, true);
    }
}

/* All that it has was given to others. A worker that only serves, and waits for its index for ever,
 * is of no use to anybody. */
static void worker_wire_be_displaced(struct muster_worker *worker)
{
    if (worker->serving)
        worker->displaced = worker->stopping = worker->left = true;
    for (struct muster_task *task = worker->first; task != NULL; task = task->next)
        atomic_store(&task->cancelled, true);
}

static void worker_wire_take_welcome(struct muster_worker *worker,
                                     const struct wire_work_welcome *m, int64_t now_ms)
{
    if (m->nonce != worker->nonce || worker->welcomed)
        return;
    worker->refused = (unsigned)m->code;
    worker->refused_for_good = m->code != MUSTER_OK && !m->retry;
    snprintf(worker->refused_text, sizeof worker->refused_text, "%s", m->text);
    if (m->code == MUSTER_E_RANK_TAKEN && worker->ever_welcomed)
        worker_wire_be_displaced(worker);
    if (m->code == MUSTER_OK) {
        worker->welcomed = worker->ever_welcomed = true;
        worker->said_leaving = false;
        worker->received = worker->confirmed = worker->said = 0;
        worker->beat_ms = now_ms;
        worker->window = (struct task_window){0};
        for (struct muster_task *task = worker->first; task != NULL; task = task->next) {
            task->serial = 0; /* WORK_HELLO named it */
            task_again_reset(&task->again);
            task_parts_again(&task->parts);
        }
    }
    pthread_cond_broadcast(&worker->changed);
}

/* The broker cannot write, so it lets nobody in. */
static void worker_wire_take_trouble(struct muster_worker *worker, const struct wire_ack *m)
{
    if (m->code != MUSTER_E_STORAGE || worker->welcomed)
        return;
    worker->refused = MUSTER_E_STORAGE;
    snprintf(worker->refused_text, sizeof worker->refused_text, "%s", m->text);
}

/* Frees the values of queues that are gone, except those that an attempt may still use. */
static struct worker_value *worker_wire_take_gone_values(struct muster_worker *worker)
{
    struct worker_value *gone = NULL;

    for (struct worker_value **slot = &worker->values; *slot != NULL;) {
        struct worker_value *value = *slot;
        const struct muster_task *task = worker->first;

        while (value->gone && task != NULL && task->queue != value->queue)
            task = task->next;
        if (!value->gone || task != NULL) {
            slot = &value->next;
            continue;
        }
        *slot = value->next;
        value->next = gone;
        gone = value;
    }
    return gone;
}

void worker_take(void *arg, const struct wire_msg *m, int64_t now_ms)
{
    struct muster_worker *worker = arg;
    struct worker_value *gone = NULL;

    pthread_mutex_lock(&worker->mutex);
    if (m->down.start_id != worker->start_id) {
        worker->start_id = m->down.start_id;
        if (worker->welcomed)
            task_again_reset(&worker->hello);
        worker->welcomed = false;
    }
    if (m->type == WIRE_ACK)
        worker_wire_take_trouble(worker, &m->u.ack);
    else if (m->type == WIRE_WORK_WELCOME)
        worker_wire_take_welcome(worker, &m->u.work_welcome, now_ms);
    else if (m->type == WIRE_WORK)
        worker_wire_take_work(worker, &m->u.work, now_ms);
    else if (m->type == WIRE_WORK_TAKEN)
        worker_wire_take_taken(worker, &m->u.work_taken);
    else if (m->type == WIRE_PART_TAKEN)
        worker_wire_take_part_taken(worker, &m->u.part_taken, now_ms);
    else if (m->type == WIRE_WORK_ALIVE)
        worker_wire_take_alive(worker, &m->u.work_alive);
    else if (m->type == WIRE_WORK_LEFT && m->u.work_left.nonce == worker->nonce)
        worker->left = true, pthread_cond_broadcast(&worker->changed);
    if (m->type == WIRE_WORK_ALIVE || m->type == WIRE_WORK_TAKEN)
        gone = worker_wire_take_gone_values(worker);
    pthread_mutex_unlock(&worker->mutex);
    while (gone != NULL) {
        struct worker_value *next = gone->next;
        worker_value_free(gone);
        gone = next;
    }
}

/* --- saying ----------------------------------------------------------------------------------- */

static struct wire_lease_entry worker_wire_lease_of(const struct muster_task *task)
{
    return (struct wire_lease_entry){.queue = task->queue,
                                     .number = task->number,
                                     .attempt = task->attempt,
                                     .kind = (uint64_t)task->kind,
                                     .code = task->state == ATTEMPT_ENDED};
}

/* An attempt that the broker did not know to be here may be another worker's by now, under the same
 * number. */
static void worker_wire_drop_unconfirmed(struct muster_worker *worker)
{
    for (struct muster_task *task = worker->first, *next; task != NULL; task = next) {
        next = task->next;
        if (task->state == ATTEMPT_WAITING && task->serial > worker->confirmed)
            worker_wire_drop(worker, task);
    }
}

static void worker_wire_say_hello(struct muster_worker *worker)
{
    static const size_t max = TASKS_FRAME_MAX;
    struct wire_lease_entry held[TASKS_FRAME_MAX];
    struct wire_msg message = {.type = WIRE_WORK_HELLO};
    size_t count = 0;

    worker_wire_drop_unconfirmed(worker);
    for (const struct muster_task *task = worker->first; task != NULL && count < max;
         task = task->next)
        held[count++] = worker_wire_lease_of(task);
    for (const struct worker_value *value = worker->values; value != NULL && count < max;
         value = value->next)
        held[count++] =
            (struct wire_lease_entry){value->queue, value->number, 0, TASK_KIND_RESOURCE, 1};
    worker->nonce++;
    message.u.work_hello = (struct wire_work_hello){.nonce = worker->nonce,
                                                    .node = worker->node,
                                                    .host = worker->host,
                                                    .pid = (uint64_t)worker->pid,
                                                    .slots = worker->slots,
                                                    .takes = worker->takes};
    message.u.work_hello.held.items = held;
    message.u.work_hello.held.count = count;
    task_link_send(worker->link, &message);
}

static void worker_wire_say_beat(struct muster_worker *worker)
{
    struct wire_lease_entry renewed[TASKS_FRAME_MAX];
    struct wire_msg message = {.type = WIRE_WORK_BEAT};
    size_t count = 0;

    for (struct muster_task *task = worker->first; task != NULL; task = task->next)
        if (count < TASKS_FRAME_MAX && atomic_exchange(&task->renewed, false))
            renewed[count++] = worker_wire_lease_of(task);
    message.u.work_beat.received = worker->said = worker->received;
    message.u.work_beat.leaving = worker->stopping;
    message.u.work_beat.renewed.items = renewed;
    message.u.work_beat.renewed.count = count;
    task_link_send(worker->link, &message);
}

static bool worker_wire_any_renewed(const struct muster_worker *worker)
{
    for (const struct muster_task *task = worker->first; task != NULL; task = task->next)
        if (atomic_load(&task->renewed))
            return true;
    return false;
}

static uint64_t worker_wire_say_part(void *arg, uint64_t offset)
{
    const struct muster_task *task = arg;
    size_t left = task->result_size - (size_t)offset;
    struct wire_msg message = {.type = WIRE_WORK_PART};

    message.u.work_part = (struct wire_work_part){.queue = task->queue,
                                                  .number = task->number,
                                                  .attempt = task->attempt,
                                                  .offset = offset,
                                                  .total = task->result_size};
    message.u.work_part.bytes.data = task->result + offset;
    message.u.work_part.bytes.size = left < TASK_PART_MAX ? left : TASK_PART_MAX;
    return task_link_send(task->worker->link, &message) ? message.u.work_part.bytes.size : 0;
}

static bool worker_wire_in_parts(const struct muster_task *task)
{
    return task->result_size > TASK_INLINE_MAX;
}

static struct wire_ended_entry worker_wire_end_of(struct muster_task *task, struct arena *arena)
{
    struct wire_ended_entry entry = {.queue = task->queue,
                                     .number = task->number,
                                     .attempt = task->attempt,
                                     .kind = (uint64_t)task->kind,
                                     .state = task->given_back            ? TASK_QUEUED
                                              : task->status == MUSTER_OK ? TASK_DONE
                                                                          : TASK_FAILED,
                                     .status = task->status,
                                     .code = task->code,
                                     .bytes = task->result_size};

    entry.text = wire_text_fit(arena, task->text, TASK_TEXT_MAX);
    if (!worker_wire_in_parts(task)) {
        entry.result.data = task->result;
        entry.result.size = task->result_size;
    }
    return entry;
}

struct batch {
    struct wire_ended_entry items[TASKS_FRAME_MAX];
    size_t count, bytes;
    struct arena arena;
};

static void worker_wire_send_batch(struct muster_worker *worker, struct batch *batch)
{
    struct wire_msg message = {.type = WIRE_WORK_DONE};

    if (batch->count == 0)
        return;
    message.u.work_done.tasks.items = batch->items;
    message.u.work_done.tasks.count = batch->count;
    task_link_send(worker->link, &message);
    batch->count = batch->bytes = 0;
    arena_reset(&batch->arena);
}

static void worker_wire_say_ends(struct muster_worker *worker, int64_t now_ms, int64_t *wait_ms)
{
    struct batch batch; /* 100 KB, of which most turns use nothing */
    size_t ahead = task_parts_ahead(&worker->window);

    batch.count = batch.bytes = 0;
    arena_init(&batch.arena, 0);
    for (struct muster_task *task = worker->first; task != NULL; task = task->next) {
        struct wire_ended_entry entry;
        size_t bytes;

        if (task->state == ATTEMPT_ENDED && worker_wire_in_parts(task) &&
            task->parts.have < task->result_size) {
            task_parts_say(&task->parts, &worker->window, task->result_size, &ahead, now_ms,
                           wait_ms, worker_wire_say_part, task);
            continue;
        }
        if (task->state != ATTEMPT_ENDED || !task_again_due(&task->again, now_ms, wait_ms))
            continue;
        entry = worker_wire_end_of(task, &batch.arena);
        bytes = TASK_ENTRY_BYTES + entry.result.size + TASK_TEXT_MAX;
        if (batch.count == TASKS_FRAME_MAX || batch.bytes + bytes > TASK_FRAME_BYTES) {
            worker_wire_send_batch(worker, &batch);
            entry = worker_wire_end_of(task, &batch.arena);
        }
        batch.items[batch.count++] = entry;
        batch.bytes +=
            TASK_ENTRY_BYTES + entry.result.size + (entry.text != NULL ? strlen(entry.text) : 0);
    }
    worker_wire_send_batch(worker, &batch);
    arena_free(&batch.arena);
}

/* Tasks that were not begun when it stops. The broker hears first that nothing more is wanted, lest
 * it gives the same again. */
static void worker_wire_give_all_back(struct muster_worker *worker)
{
    if (!worker->stopping)
        return;
    if (!worker->said_leaving) {
        worker->said_leaving = true;
        worker_wire_say_beat(worker);
    }
    for (struct muster_task *task = worker->first; task != NULL; task = task->next)
        if (task->state == ATTEMPT_WAITING)
            worker_wire_give_back(worker, task);
}

static bool worker_wire_may_leave(const struct muster_worker *worker)
{
    return worker->stopping && worker->running == 0 && worker->unsent == 0 && worker->first == NULL;
}

static void worker_wire_heed_stop(struct muster_worker *worker)
{
    if (worker->stopping || !atomic_load(&worker->stop_asked))
        return;
    worker->stopping = true;
    pthread_cond_broadcast(&worker->changed);
}

/* A slot is free, and what came for it may not begin before the broker knows of it. */
static bool worker_wire_waits_for_word(const struct muster_worker *worker)
{
    return worker->received > worker->said && worker->running < worker->slots;
}

/* A function that renews in each turn of a loop is passed on only as often as is useful. */
static void worker_wire_say_beats(struct muster_worker *worker, int64_t now_ms, int64_t *wait_ms)
{
    bool renewed = worker_wire_any_renewed(worker);

    if (now_ms >= worker->beat_ms || worker_wire_waits_for_word(worker) ||
        (renewed && now_ms >= worker->renew_ms)) {
        worker->beat_ms = now_ms + HEARTBEAT_MS;
        worker->renew_ms = now_ms + RENEW_EVERY_MS;
        worker_wire_say_beat(worker);
    } else if (renewed && worker->renew_ms - now_ms < *wait_ms) {
        *wait_ms = worker->renew_ms - now_ms;
    }
}

int64_t worker_turn(void *arg, int64_t now_ms)
{
    struct muster_worker *worker = arg;
    int64_t wait_ms = HEARTBEAT_MS;

    pthread_mutex_lock(&worker->mutex);
    worker_wire_heed_stop(worker);
    if (!worker->welcomed && !worker->left && !worker->refused_for_good) {
        if (task_again_due(&worker->hello, now_ms, &wait_ms))
            worker_wire_say_hello(worker);
    } else if (worker->welcomed && !worker->left) {
        worker_wire_give_all_back(worker);
        worker_wire_say_beats(worker, now_ms, &wait_ms); /* before long results, not behind them */
        worker_wire_say_ends(worker, now_ms, &wait_ms);
        if (worker->beat_ms - now_ms < wait_ms)
            wait_ms = worker->beat_ms - now_ms;
        if (worker_wire_may_leave(worker) && task_again_due(&worker->leave, now_ms, &wait_ms)) {
            struct wire_msg message = {.type = WIRE_WORK_LEAVE};
            message.u.work_leave.nonce = worker->nonce;
            task_link_send(worker->link, &message);
        }
    }
    pthread_mutex_unlock(&worker->mutex);
    return wait_ms;
}
