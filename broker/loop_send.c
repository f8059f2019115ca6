/* loop_send - what a batch tells, once it is committed: answers, events, rows, manifests. */
#include "broker/loop_internal.h"

#include "broker/base/failpoint.h"
#include "broker/log.h"
#include "broker/self.h"
#include "schema/sql/queries.h"

#include <stdio.h>
#include <string.h>

static size_t send_encode(struct loop *loop, const struct wire_msg *message)
{
    size_t size = wire_encode(message, loop->frame, sizeof loop->frame);

    if (size == 0)
        broker_log(LOG_LEVEL_ERROR, "a %s message cannot be encoded and was not sent; report it",
                   wire_type_name(message->type));
    return size;
}

/* Sends it after what is held for that peer. */
static void loop_send_frame(struct loop *loop, uint64_t route, size_t size)
{
    const struct outbox_frame *held;

    while ((held = outbox_take(&loop->outbox, route)) != NULL)
        bus_send(loop->bus, route, held->data, held->size);
    bus_send(loop->bus, route, loop->frame, size);
}

void loop_send_held(struct loop *loop, int64_t until_boot_ms)
{
    const struct outbox_frame *held;

    while ((held = outbox_take_due(&loop->outbox, until_boot_ms)) != NULL)
        bus_send(loop->bus, held->route, held->data, held->size);
}

void loop_send_message(struct loop *loop, uint64_t route, const struct wire_msg *message)
{
    size_t size = send_encode(loop, message);

    failpoint_message(FAILPOINT_SEND_BEFORE, message);
    if (size > 0)
        loop_send_frame(loop, route, size);
    failpoint_message(FAILPOINT_SEND_AFTER, message);
}

/* Sends it with the next message to that peer, or soon. */
static void send_later(struct loop *loop, uint64_t route, const struct wire_msg *message)
{
    size_t size = send_encode(loop, message);

    failpoint_message(FAILPOINT_SEND_BEFORE, message);
    if (size > 0 && !outbox_hold(&loop->outbox, route, loop->frame, size, loop->now_boot_ms))
        loop_send_frame(loop, route, size);
    failpoint_message(FAILPOINT_SEND_AFTER, message);
}

void loop_publish_message(struct loop *loop, const char *job, const struct wire_msg *message)
{
    size_t size = send_encode(loop, message);

    failpoint_message(FAILPOINT_PUBLISH_BEFORE, message);
    if (size > 0 && !failpoint_drop_publish())
        for (long times = failpoint_publish_times(); times > 0; times--)
            bus_publish(loop->bus, job, loop->frame, size);
    failpoint_message(FAILPOINT_PUBLISH_AFTER, message);
}

/* A head that tells nothing which is not in the database. */
void loop_lower_head(struct loop *loop, struct wire_down *head)
{
    uint64_t committed;

    if (head->broker_epoch > loop->epoch_written)
        head->broker_epoch = loop->epoch_written;
    if (head->job == NULL || head->job[0] == '\0')
        return;
    committed = store_job_seq(loop->store, head->job);
    if (head->last_seq > committed)
        head->last_seq = committed;
}

struct wire_msg loop_answer_to(struct loop *loop, const char *job, enum wire_type type)
{
    struct wire_msg message = {.type = type};

    core_fill_down(loop->core, job, &message.down);
    if (loop->blocked)
        loop_lower_head(loop, &message.down);
    return message;
}

struct event_sink {
    struct loop *loop;
    uint64_t route;
    struct wire_msg message; /* head as of now */
};

static void send_event(void *arg, const struct wire_event *event)
{
    struct event_sink *sink = arg;

    sink->message.u.event = *event;
    loop_send_message(sink->loop, sink->route, &sink->message);
}

/* It returns only errors after which the process cannot go on. */
static enum muster_status send_events(struct loop *loop, const struct action *action,
                                      struct muster_error *err)
{
    struct event_sink sink = {.loop = loop,
                              .route = action->route,
                              .message = loop_answer_to(loop, action->job, WIRE_EVENT)};
    struct lacking *lacking = &loop->lacking[loop->lacking_count];
    enum muster_status status;

    status = store_send_events(loop->store, action->job, action->number, action->count,
                               loop->now_boot_ms, send_event, &sink, err);
    if (status == MUSTER_E_STORAGE) { /* the node goes on asking, and its waits have bounds */
        broker_log(LOG_LEVEL_WARNING, "no events for a node of job %s: %s", action->job, err->text);
        return MUSTER_OK;
    }
    if (status != MUSTER_E_NOT_FOUND)
        return status;
    if (!loop->blocked && loop->lacking_count < LACKING_MAX) { /* else the node asks again */
        lacking->route = action->route;
        snprintf(lacking->job, sizeof lacking->job, "%s", action->job);
        loop->lacking_count++;
    }
    return MUSTER_OK;
}

static void send_manifest(struct loop *loop, const struct action *action)
{
    struct wire_msg message = loop_answer_to(loop, action->job, WIRE_MANIFEST_CHUNK);
    struct store_manifest chunk;
    struct muster_error err;
    enum muster_status status =
        store_manifest(loop->store, action->job, action->number, action->count, &chunk, &err);

    if (status != MUSTER_OK && status != MUSTER_E_BUSY)
        broker_log(LOG_LEVEL_WARNING, "no manifest for a node of job %s: %s", action->job,
                   err.text);
    if (status != MUSTER_OK)
        return; /* the node asks again, or leaves the repair to the next generation */
    message.u.manifest_chunk.checkpoint = action->number;
    message.u.manifest_chunk.round_generation = chunk.generation;
    message.u.manifest_chunk.step = chunk.step;
    message.u.manifest_chunk.offset = chunk.offset;
    message.u.manifest_chunk.total = chunk.total;
    message.u.manifest_chunk.bytes.data = chunk.data;
    message.u.manifest_chunk.bytes.size = chunk.size;
    loop_send_message(loop, action->route, &message);
}

static struct self loop_self(const struct loop *loop)
{
    return (struct self){.store = loop->store,
                         .bus = loop->bus,
                         .core = loop->core,
                         .loop = &loop->counters,
                         .blocked_by = loop->blocked ? loop->blocked_by.text : NULL,
                         .started_unix_ms = loop->started_unix_ms,
                         .now_unix_ms = loop->now_unix_ms};
}

void loop_write_metrics(struct loop *loop)
{
    const struct self self = loop_self(loop);

    if (loop->metrics != NULL && metrics_is_due(loop->metrics, loop->now_boot_ms))
        metrics_write(loop->metrics, &self, loop->now_boot_ms);
}

/* One question is about this process, not about its database. */
static enum muster_status send_rows_of(struct loop *loop, const struct store_query *query,
                                       struct muster_error *err)
{
    const struct self self = loop_self(loop);

    if (strcmp(query->name, QUERY_BROKER) != 0)
        return store_query(loop->store, query, &loop->rows, err);
    self_rows(&self, &loop->rows);
    return MUSTER_OK;
}

static void send_rows(struct loop *loop, const struct action *action)
{
    const struct wire_query *asked = &action->message.u.query;
    const struct store_query query = {
        .name = asked->name,
        .job = action->message.up.job,
        .text = asked->text_arg,
        .number = asked->number_arg,
        .after = asked->after,
    };
    struct wire_msg message = loop_answer_to(loop, "", WIRE_ROWS);
    struct muster_error err;
    enum muster_status status = send_rows_of(loop, &query, &err);

    message.u.rows.request = action->message.up.request;
    message.u.rows.code = status;
    if (status != MUSTER_OK) {
        message.u.rows.text = err.text;
    } else {
        message.u.rows.more = loop->rows.more;
        message.u.rows.columns = loop->rows.columns;
        message.u.rows.rows = loop->rows.rows;
        message.u.rows.cells.data = loop->rows.cells;
        message.u.rows.cells.size = loop->rows.size;
    }
    loop_send_message(loop, action->route, &message);
}

static void send_tasks(struct loop *loop, const struct action *action)
{
    struct wire_msg message = action->message;
    struct muster_error err;

    if (store_task_page(loop->store, &message.u.tasks_page, &err) != MUSTER_OK) {
        broker_log(LOG_LEVEL_WARNING, "no page of tasks of job %s: %s", action->job, err.text);
        message = loop_answer_to(loop, action->job, WIRE_ACK);
        message.u.ack.request = action->message.u.tasks_page.nonce;
        message.u.ack.code = MUSTER_E_STORAGE;
        message.u.ack.text = err.text;
    }
    loop_send_message(loop, action->route, &message);
}

static void send_task_result(struct loop *loop, const struct action *action)
{
    const struct wire_result_get *asked = &action->message.u.result_get;
    struct wire_msg message = loop_answer_to(loop, action->job, WIRE_RESULT_CHUNK);
    struct wire_result_chunk *chunk = &message.u.result_chunk;
    struct muster_error err;

    *chunk = (struct wire_result_chunk){
        .queue = asked->queue, .number = asked->number, .offset = asked->offset};
    chunk->code = store_task_result(loop->store, asked, chunk, &err);
    if (chunk->code != MUSTER_OK && chunk->code != MUSTER_E_NOT_FOUND)
        broker_log(LOG_LEVEL_WARNING, "no result of a task of job %s: %s", action->job, err.text);
    loop_send_message(loop, action->route, &message);
}

void loop_publish_hints(struct loop *loop)
{
    for (size_t i = 0; i < loop->batch.count; i++) {
        struct wire_msg message;

        if (loop->batch.items[i].kind != ACTION_HINT)
            continue;
        message = loop->batch.items[i].message;
        wire_set_left(&message, loop->batch.items[i].deadline_boot_ms, loop->now_boot_ms);
        loop_lower_head(loop, &message.down); /* its batch is not committed yet */
        loop_publish_message(loop, loop->batch.items[i].job, &message);
    }
}

static enum muster_status loop_carry_out(struct loop *loop, const struct action *action,
                                         struct muster_error *err)
{
    struct wire_msg message = action->message;

    wire_set_left(&message, action->deadline_boot_ms, loop->now_boot_ms);
    switch (action->kind) {
    case ACTION_SEND:
        if (action->patient)
            send_later(loop, action->route, &message);
        else
            loop_send_message(loop, action->route, &message);
        return MUSTER_OK;
    case ACTION_PUBLISH:
        loop_publish_message(loop, action->job, &message);
        return MUSTER_OK;
    case ACTION_SEND_EVENTS:
        return send_events(loop, action, err);
    case ACTION_SEND_MANIFEST:
        send_manifest(loop, action);
        return MUSTER_OK;
    case ACTION_SEND_ROWS:
        send_rows(loop, action);
        return MUSTER_OK;
    case ACTION_SEND_TASKS:
        send_tasks(loop, action);
        return MUSTER_OK;
    case ACTION_SEND_TASK_RESULT:
        send_task_result(loop, action);
        return MUSTER_OK;
    case ACTION_NONE:
    case ACTION_PERSIST:
    case ACTION_HINT:
        return MUSTER_OK;
    }
    return MUSTER_OK;
}

enum muster_status loop_send_all(struct loop *loop, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < loop->batch.count && status == MUSTER_OK; i++)
        status = loop_carry_out(loop, &loop->batch.items[i], err);
    return status;
}

/* While a batch is kept: nothing that could tell of it. */
enum muster_status loop_send_free_outputs(struct loop *loop, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < loop->free_outputs.count && status == MUSTER_OK; i++) {
        struct action *action = &loop->free_outputs.items[i];
        enum wire_type type = action->message.type;

        if (type == WIRE_SNAPSHOT || type == WIRE_WELCOME || type == WIRE_EVENT)
            continue;
        if (action->kind == ACTION_SEND || action->kind == ACTION_PUBLISH)
            loop_lower_head(loop, &action->message.down);
        status = loop_carry_out(loop, action, err);
    }
    actions_clear(&loop->free_outputs);
    return status;
}
