/* sim_broker_send - what the broker says, as broker/loop_send.c: of what is written, to a route or
 * to all of a job. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>

void broker_lower_head(struct sim *sim, struct wire_down *head)
{
    const struct record_job *row = head->job && head->job[0] ? disk_job(sim, head->job) : NULL;
    uint64_t committed = row ? row->seq : 0;

    if (row != NULL && sim->options.shared)
        committed = shared_told(sim, head->job);

    if (head->last_seq > committed)
        head->last_seq = committed;
    if (head->broker_epoch > sim->broker->epoch)
        head->broker_epoch = sim->broker->epoch;
}

/* As answer_to of broker/loop.c. */
static struct wire_msg answer_to(struct sim *sim, const char *job, enum wire_type type)
{
    struct wire_msg message = {.type = type};

    core_fill_down(sim->broker->core, job, &message.down);
    if (sim->broker->blocked)
        broker_lower_head(sim, &message.down);
    return message;
}

void broker_transmit(struct sim *sim, uint64_t route, const char *topic, struct wire_msg *message)
{
    size_t size;

    if (sim->options.mutation == MUTANT_WRONG_ERROR && message->type == WIRE_EVENT &&
        (message->u.event.kind == EVENT_PEER_ERROR || message->u.event.kind == EVENT_NODE_LOST))
        message->u.event.rank++;
    check_sent(sim, message, route && route <= sim->last_route ? sim->routes[route] : NULL);
    size = wire_encode(message, sim->buffer, sizeof sim->buffer);
    if (size == 0) {
        sim_broken(sim, "wire", "a %s of the broker cannot be encoded",
                   wire_type_name(message->type));
        return;
    }
    sim->stats->messages[message->type]++;
    if (topic != NULL)
        net_publish(sim, topic, sim->buffer, size);
    else
        net_down(sim, route, sim->buffer, size);
}

struct stored {
    struct sim *sim;
    const struct action *action;
};

static void note_lacking(struct sim *sim, const struct action *action)
{
    struct sim_broker *b = sim->broker;

    if (!b->blocked && b->lacking_count < 64)
        b->lacking[b->lacking_count++] = (struct sim_event){
            .stamp = action->route, .data = (uint8_t *)(uintptr_t)sim_word(sim, action->job)};
}

static void send_stored_event(void *arg, const struct wire_event *event)
{
    const struct stored *to = arg;
    struct wire_msg message = answer_to(to->sim, to->action->job, WIRE_EVENT);

    message.u.event = *event;
    broker_transmit(to->sim, to->action->route, NULL, &message);
}

/* From broker/store instead. */
static void send_stored(struct sim *sim, const struct action *action)
{
    struct stored to = {sim, action};

    if (sim_store_events(sim, action, send_stored_event, &to) == MUSTER_E_NOT_FOUND)
        note_lacking(sim, action);
}

static void send_events(struct sim *sim, const struct action *action)
{
    struct sim_broker *b = sim->broker;
    const struct record_job *job = disk_job(sim, action->job);
    uint64_t last = job ? job->seq : 0;

    if (job != NULL && sim->options.shared)
        last = shared_told(sim, action->job);
    if (sim->store != NULL) {
        send_stored(sim, action);
        return;
    }
    if (disk_event(sim, action->job, action->number) == NULL) {
        note_lacking(sim, action);
        return;
    }
    for (uint64_t seq = action->number; seq <= last && seq < action->number + action->count;
         seq++) {
        const struct sim_row *row = disk_event(sim, action->job, seq);
        struct wire_msg message;
        struct muster_error err;
        if (row == NULL)
            break;
        arena_reset(&sim->frame);
        if (wire_decode(row->body, row->body_size, &sim->frame, &message, &err) != MUSTER_OK)
            sim_broken(sim, "wire", "event %llu cannot be decoded", (unsigned long long)seq);
        message.down = answer_to(sim, action->job, WIRE_EVENT).down;
        int64_t deadline = row->record.u.event.deadline_boot_ms;
        if (deadline > 0) {
            int64_t left = deadline - broker_boot_ms(sim);
            message.u.event.left_ms = row->boot != b->boot ? -1 : left > 0 ? left : 0;
        }
        broker_transmit(sim, action->route, NULL, &message);
    }
}

static void send_manifest(struct sim *sim, const struct action *action)
{
    const struct record_checkpoint *row = disk_checkpoint(sim, action->job, action->number);
    uint8_t *bytes;
    size_t total = 0, size;
    struct wire_msg message = answer_to(sim, action->job, WIRE_MANIFEST_CHUNK);

    if (sim->store != NULL) {
        if (sim_store_manifest(sim, action, &message.u.manifest_chunk))
            broker_transmit(sim, action->route, NULL, &message);
        return;
    }
    if (row == NULL || row->state != CHECKPOINT_COMMITTED)
        return;
    bytes = malloc(MANIFEST_CHUNK_MAX);
    size =
        fs_manifest_bytes(action->number, bytes, (size_t)action->count, MANIFEST_CHUNK_MAX, &total);
    message.u.manifest_chunk.checkpoint = action->number;
    message.u.manifest_chunk.round_generation = row->generation;
    message.u.manifest_chunk.step = row->step;
    message.u.manifest_chunk.offset = action->count;
    message.u.manifest_chunk.total = total;
    message.u.manifest_chunk.bytes.data = bytes;
    message.u.manifest_chunk.bytes.size = size;
    if (action->count <= total)
        broker_transmit(sim, action->route, NULL, &message);
    free(bytes);
}

/* In memory there are no queries to run: an answer without rows. */
static void send_rows(struct sim *sim, const struct action *action)
{
    struct wire_msg message = answer_to(sim, "", WIRE_ROWS);

    message.u.rows.request = action->message.up.request;
    if (sim->store != NULL)
        sim_store_query(sim, action, &message.u.rows);
    broker_transmit(sim, action->route, NULL, &message);
}

void broker_carry_out(struct sim *sim, const struct action *action)
{
    struct wire_msg message = action->message;

    wire_set_left(&message, action->deadline_boot_ms, broker_boot_ms(sim));
    switch (action->kind) {
    case ACTION_SEND:
        broker_transmit(sim, action->route, NULL, &message);
        break;
    case ACTION_PUBLISH:
        broker_transmit(sim, 0, action->job, &message);
        break;
    case ACTION_SEND_EVENTS:
        send_events(sim, action);
        break;
    case ACTION_SEND_MANIFEST:
        send_manifest(sim, action);
        break;
    case ACTION_SEND_ROWS:
        send_rows(sim, action);
        break;
    default:
        break;
    }
}

void broker_publish_hints(struct sim *sim)
{
    for (size_t i = 0; i < sim->broker->batch.count; i++) {
        const struct action *action = &sim->broker->batch.items[i];
        struct wire_msg message = action->message;
        if (action->kind != ACTION_HINT)
            continue;
        wire_set_left(&message, action->deadline_boot_ms, broker_boot_ms(sim));
        broker_lower_head(sim, &message.down);
        broker_transmit(sim, 0, action->job, &message);
    }
}
