/* coordinator_wire - what a coordinator says to the broker and hears from it; all in turns of its
 * link. Everything is repeated until it was answered; ends that are pushed are counted, and pages
 * are asked for when some did not come. */
#include "client/tasks/coordinator_private.h"

#include "schema/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- hearing ---------------------------------------------------------------------------------- */

static void coordinator_wire_ask_range(struct muster_coordinator *c, uint64_t from, uint64_t to)
{
    c->asking = true;
    c->ask_from = from;
    c->ask_to = to;
    c->ask_nonce = ++c->nonce;
    task_again_reset(&c->get);
}

/* From the first that is held or awaited and not known to have ended: all, so that the count of
 * ends is right again. */
static void coordinator_wire_ask_pages(struct muster_coordinator *c)
{
    const struct muster_remote_value *value = c->first;

    if (c->asking) { /* and once more, behind this */
        c->ask_again = true;
        return;
    }
    while (value != NULL && value->state != TASK_QUEUED)
        value = value->next;
    c->ask_again = false;
    c->new_from = c->new_to = 0;
    coordinator_wire_ask_range(c, value != NULL ? value->number : c->taken + 1, 0);
}

/* Those that were under way were another connection's, or another broker's, which may read what
 * this one could not. */
static void coordinator_wire_reading_begins_anew(struct muster_coordinator *c)
{
    c->window = (struct task_window){0};
    c->unread.since_ms = 0;
    for (struct muster_remote_value *value = c->first; c->look && value != NULL;
         value = value->next) {
        value->unread_ms = 0;
        task_parts_again(&value->parts);
    }
}

/* All tasks up to number are on record: also said by the end of one, when TASKS_TAKEN was lost. */
static void coordinator_wire_taken_to(struct muster_coordinator *c, uint64_t number)
{
    for (uint64_t n = c->taken + 1; n <= number; n++) {
        struct muster_remote_value *value = values_find(c, n);

        if (value != NULL)
            values_call_set(c, value, NULL);
    }
    if (number > c->taken)
        c->taken = number;
    if (c->sent < c->taken)
        c->sent = c->taken;
}

static void coordinator_wire_take_opened(struct muster_coordinator *c,
                                         const struct wire_queue_opened *m)
{
    if (c->opened || m->nonce != c->nonce)
        return;
    c->refused = (unsigned)m->code;
    snprintf(c->refused_text, sizeof c->refused_text, "%s", m->text);
    if (m->code != MUSTER_OK)
        return;
    if (!c->ever_opened) {
        c->scheduled = m->taken;
        c->keep_from = m->taken;
        c->released = m->released;
        c->raised = m->raised;
    }
    if (c->ever_opened && (m->queue != c->queue || m->taken < c->taken)) {
        c->stale = c->begun_anew = true; /* or restored from an older copy */
        c->begun_taken = m->taken;
        return;
    }
    if (c->ever_opened) /* before there was none of its own */
        coordinator_wire_taken_to(
            c, m->taken); /* maybe unheard: the answer was lost with the last connection */
    c->opened = c->ever_opened = true;
    c->fresh = false; /* from now on it is attached to again */
    c->queue = m->queue;
    c->sent = c->taken = m->taken;
    c->ended = m->ended;
    c->full = false;
    if (m->error_number > 0 && m->raised >= c->raised) /* else it was raised here */
        c->error_number = m->error_number;
    c->beat_ms = 0;
    task_again_reset(&c->add);
    task_again_reset(&c->raise_again);
    task_again_reset(&c->resource_again);
    coordinator_wire_reading_begins_anew(c);
    c->asking = false;
    coordinator_wire_ask_pages(c);
}

static void coordinator_wire_take_taken(struct muster_coordinator *c,
                                        const struct wire_tasks_taken *m)
{
    c->full = m->code == MUSTER_E_BUSY;
    if (c->full)
        c->sent = m->taken > c->taken ? m->taken : c->taken; /* the rest when there is room */
    if (m->taken <= c->taken)
        return;
    coordinator_wire_taken_to(c, m->taken);
    c->add = (struct task_again){.at_ms = task_now_ms() + RESEND_MIN_MS, .every_ms = RESEND_MIN_MS};
}

/* One that ended; the list may have come before the answer to its TASKS_ADD. */
static void coordinator_wire_take_end(struct muster_coordinator *c,
                                      const struct wire_ended_entry *entry)
{
    if (entry->number <= c->scheduled)
        coordinator_wire_taken_to(c, entry->number);
    values_end(c, entry);
}

static void coordinator_wire_take_ended(struct muster_coordinator *c,
                                        const struct wire_tasks_ended *m)
{
    for (size_t i = 0; i < m->tasks.count; i++) {
        if (m->tasks.items[i].state == TASK_FAILED && c->error_number == 0)
            c->error_number = m->tasks.items[i].number;
        coordinator_wire_take_end(c, &m->tasks.items[i]);
    }
    if (m->before <= c->ended && m->before + m->tasks.count > c->ended)
        c->ended = m->before + m->tasks.count;
    else if (m->before > c->ended)
        coordinator_wire_ask_pages(c);
    if (c->full) {
        task_again_reset(&c->add);
        c->full = false;
    }
}

static void coordinator_wire_take_page(struct muster_coordinator *c,
                                       const struct wire_tasks_page *m)
{
    if (!c->asking || m->nonce != c->ask_nonce)
        return;
    for (size_t i = 0; i < m->tasks.count; i++)
        coordinator_wire_take_end(c, &m->tasks.items[i]);
    if (m->error_number > 0 && !c->raising)
        c->error_number = m->error_number;
    if (m->ended > c->ended && c->ask_to == 0) /* else others may have ended, unheard */
        c->ended = m->ended;
    c->unread.since_ms = 0;
    values_asked(c, m->more ? m->next : c->ask_to > 0 ? c->ask_to + 1 : UINT64_MAX);
    c->ask_from = m->next;
    c->ask_nonce = ++c->nonce;
    task_again_reset(&c->get);
    c->asking = m->more;
    if (!c->asking && c->ask_again)
        coordinator_wire_ask_pages(c);
}

/* Whom it concerns, and what is to be done; the failure's own text at the end, where it may be cut.
 */
static void coordinator_wire_tell_raised(struct muster_coordinator *c, const struct wire_raised *m)
{
    char code[40] = "", cancelled[80] = "what was queued was cancelled";

    if (m->code != 0)
        snprintf(code, sizeof code, " with code %lld", (long long)m->code);
    if (m->cancelled > 0)
        snprintf(cancelled, sizeof cancelled, "%llu queued task%s cancelled",
                 (unsigned long long)m->cancelled, m->cancelled == 1 ? " was" : "s were");
    error_set_code(&c->raised_error, (enum muster_status)m->status, (int)m->code,
                   "task %llu of queue %s failed%s, and %s (schedule again what is still wanted): "
                   "%s",
                   (unsigned long long)m->number, c->name, code, cancelled,
                   m->text[0] != '\0' ? m->text
                                      : muster_status_sentence((enum muster_status)m->status));
    c->raised_error.task = m->number;
}

static void coordinator_wire_cancelled_by(struct muster_coordinator *c, const struct wire_raised *m)
{
    for (struct muster_remote_value *value = c->first; value != NULL; value = value->next)
        if (value->state == TASK_QUEUED && value->number <= m->cancelled_to && !value->cancel)
            value->cancelled_by = m->number;
}

/* Tasks that it cancelled are seen in pages: these also have ends that were not told. */
static void coordinator_wire_take_raised(struct muster_coordinator *c, const struct wire_raised *m)
{
    if (m->raise != c->raised + 1)
        return;
    c->error_number = 0;
    c->raising = false;
    if (m->number == 0)
        return;
    coordinator_wire_tell_raised(c, m);
    coordinator_wire_cancelled_by(c, m);
    c->raised++;
    c->unsaid = true;
    c->full = false; /* what it had not taken is taken now, as cancelled */
    c->ended = m->ended > c->ended ? m->ended : c->ended;
    coordinator_wire_ask_pages(c);
}

static void coordinator_wire_take_chunk(struct muster_coordinator *c,
                                        const struct wire_result_chunk *m, int64_t now_ms)
{
    struct muster_remote_value *value = values_find(c, m->number);

    if (value == NULL || !value->wanted || m->offset != value->parts.have)
        return;
    if (m->code != MUSTER_OK || m->total != value->bytes || m->bytes.size == 0 ||
        m->bytes.size > value->bytes - m->offset) {
        if (m->code == MUSTER_E_NOT_FOUND) {
            value->state = TASK_FAILED;
            value->status = MUSTER_E_NOT_FOUND;
            value->wanted = false;
        }
        /* what is given and is not what was told of is of another database */
        value->unread_code = m->code != MUSTER_OK ? (unsigned)m->code : MUSTER_E_STORAGE;
        if (value->unread_ms == 0)
            value->unread_ms = c->heard_ms;
        task_parts_failed(&value->parts, now_ms);
        return; /* else it is asked for again */
    }
    value->unread_ms = 0;
    if (value->result == NULL)
        value->result = malloc((size_t)value->bytes);
    if (value->result == NULL) {
        value->wanted = false;
        value->no_memory = true;
        return;
    }
    memcpy(value->result + m->offset, m->bytes.data, m->bytes.size);
    task_parts_have(&value->parts, &c->window, m->offset + m->bytes.size, now_ms);
    value->wanted = value->parts.have < value->bytes;
    if (m->bytes.size != TASK_PART_MAX)
        task_parts_again(&value->parts); /* the next begins elsewhere than was thought */
}

static void coordinator_wire_take_alive(struct muster_coordinator *c,
                                        const struct wire_queue_alive *m)
{
    if (m->code == MUSTER_E_STALE && m->queue == c->queue)
        c->stale = true;
    if (m->code == MUSTER_E_HELLO && c->opened) {
        c->opened = false;
        task_again_reset(&c->open);
    }
    if (m->code != MUSTER_OK || m->queue != c->queue)
        return;
    snprintf(c->unavailable, sizeof c->unavailable, "%s", m->unavailable);
    if (m->taken <= c->scheduled)
        coordinator_wire_taken_to(c, m->taken);
    c->leased = m->leased;
    c->workers = m->workers;
    c->alives++;
    c->alive_ms = c->heard_ms;
    if (m->error_number > 0 && m->error_number != c->error_number && !c->raising)
        c->error_number = m->error_number;
    if (m->ended > c->ended)
        coordinator_wire_ask_pages(c);
}

static void coordinator_wire_take_resource(struct muster_coordinator *c,
                                           const struct wire_resource_taken *m)
{
    for (struct muster_per_worker *value = c->per_worker; value != NULL; value = value->next)
        if (value->number == m->number) {
            value->taken = m->code == MUSTER_OK;
            value->refused = (unsigned)m->code;
        }
}

/* As long as the broker can write nothing, it answers a beat or an open with that, and otherwise
 * only questions. A page that it cannot read is answered the same, with the question's nonce. */
static void coordinator_wire_take_trouble(struct muster_coordinator *c, const struct wire_msg *m,
                                          int64_t now_ms)
{
    bool page = m->type == WIRE_ACK && c->asking && m->u.ack.request == c->ask_nonce;
    struct broker_trouble *trouble = page ? &c->unread : &c->unwritten;

    if (m->type != WIRE_ACK && m->type != WIRE_RESULT_CHUNK) {
        c->unwritten.since_ms = 0;
    } else if (m->type == WIRE_ACK && m->u.ack.code == MUSTER_E_STORAGE) {
        if (trouble->since_ms == 0)
            trouble->since_ms = now_ms;
        snprintf(trouble->text, sizeof trouble->text, "%s", m->u.ack.text);
    }
}

void coordinator_take(void *arg, const struct wire_msg *m, int64_t now_ms)
{
    struct muster_coordinator *c = arg;

    pthread_mutex_lock(&c->mutex);
    coordinator_look(c, now_ms);
    c->heard_ms = now_ms;
    coordinator_wire_take_trouble(c, m, now_ms);
    if (m->down.start_id != c->start_id) {
        c->start_id = m->down.start_id;
        if (c->opened)
            task_again_reset(&c->open);
        c->opened = false;
    }
    if (m->type == WIRE_QUEUE_OPENED)
        coordinator_wire_take_opened(c, &m->u.queue_opened);
    else if (m->type == WIRE_QUEUE_ALIVE)
        coordinator_wire_take_alive(c, &m->u.queue_alive);
    else if (c->opened && m->type == WIRE_TASKS_TAKEN)
        coordinator_wire_take_taken(c, &m->u.tasks_taken);
    else if (c->opened && m->type == WIRE_TASKS_ENDED)
        coordinator_wire_take_ended(c, &m->u.tasks_ended);
    else if (c->opened && m->type == WIRE_TASKS_PAGE)
        coordinator_wire_take_page(c, &m->u.tasks_page);
    else if (c->opened && m->type == WIRE_RAISED)
        coordinator_wire_take_raised(c, &m->u.raised);
    else if (m->type == WIRE_RESULT_CHUNK)
        coordinator_wire_take_chunk(c, &m->u.result_chunk, now_ms);
    else if (m->type == WIRE_RESOURCE_TAKEN)
        coordinator_wire_take_resource(c, &m->u.resource_taken);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

/* --- saying ----------------------------------------------------------------------------------- */

static void coordinator_wire_say_open(struct muster_coordinator *c)
{
    struct wire_msg message = {.type = WIRE_QUEUE_OPEN};

    message.u.queue_open = (struct wire_queue_open){.nonce = ++c->nonce,
                                                    .name = c->name,
                                                    .fresh = c->fresh,
                                                    .max_queued = c->max_queued,
                                                    .max_attempts = c->max_attempts};
    task_link_send(c->link, &message);
}

/* One frame of what was not sent. False: there is none, or the connection takes no more for now. */
static bool coordinator_wire_say_add(struct muster_coordinator *c)
{
    struct wire_msg message = {.type = WIRE_TASKS_ADD};
    size_t count = 0, bytes = 0;

    while (c->sent < c->scheduled && count < TASKS_FRAME_MAX) {
        const struct muster_remote_value *value = values_find(c, c->sent + 1);
        const struct task_call *call = value != NULL ? value->call : NULL;

        if (call == NULL)
            break;
        bytes += TASK_ENTRY_BYTES + strlen(call->fn) + call->args_size + call->uses_size;
        if (count > 0 && bytes > TASK_FRAME_BYTES)
            break;
        c->adding[count++] =
            (struct wire_task_entry){.number = ++c->sent,
                                     .timeout_ms = call->timeout_ms,
                                     .fn = call->fn,
                                     .args = {call->bytes, call->args_size},
                                     .uses = {call->bytes + call->args_size, call->uses_size}};
    }
    if (count == 0)
        return false;
    message.u.tasks_add.queue = c->queue;
    message.u.tasks_add.tasks.items = c->adding;
    message.u.tasks_add.tasks.count = count;
    if (task_link_send(c->link, &message))
        return true;
    c->sent -= count; /* else what comes behind it would be of no use to the broker */
    return false;
}

static void coordinator_wire_say_adds(struct muster_coordinator *c, int64_t now_ms,
                                      int64_t *wait_ms)
{
    uint64_t ahead = (uint64_t)ADD_FRAMES_AHEAD * 256;

    if (c->scheduled == c->taken)
        return;
    if (c->taken < c->sent || c->full) { /* no answer yet, or no room */
        if (task_again_due(&c->add, now_ms, wait_ms))
            c->sent = c->taken;
        else if (c->full)
            return;
    } else {
        task_again_reset(&c->add);
        task_again_due(&c->add, now_ms, wait_ms);
    }
    c->full = false;
    for (int frames = 0;
         frames < ADD_FRAMES_AHEAD && c->sent < c->scheduled && c->sent - c->taken < ahead;
         frames++)
        if (!coordinator_wire_say_add(c))
            break;
}

static void coordinator_wire_say_numbered(struct muster_coordinator *c, enum wire_type type,
                                          uint64_t number)
{
    struct wire_msg message = {.type = type};

    if (type == WIRE_RAISE)
        message.u.raise = (struct wire_raise){c->queue, number, c->scheduled};
    else if (type == WIRE_TASK_CANCEL)
        message.u.task_cancel = (struct wire_task_cancel){c->queue, number};
    else if (type == WIRE_QUEUE_BEAT)
        message.u.queue_beat =
            (struct wire_queue_beat){c->queue, number, c->raised - (c->unsaid ? 1 : 0)};
    else
        message.u.tasks_get = (struct wire_tasks_get){c->queue, c->ask_nonce, number, c->ask_to};
    task_link_send(c->link, &message);
}

static uint64_t coordinator_wire_say_get(void *arg, uint64_t offset)
{
    const struct muster_remote_value *value = arg;
    const struct muster_coordinator *c = value->coordinator;
    struct wire_msg message = {.type = WIRE_RESULT_GET};

    message.u.result_get = (struct wire_result_get){c->queue, value->number, offset};
    return task_link_send(c->link, &message) ? TASK_PART_MAX : 0;
}

static void coordinator_wire_say_of_values(struct muster_coordinator *c, int64_t now_ms,
                                           int64_t *wait_ms)
{
    size_t ahead = task_parts_ahead(&c->window);
    bool look = false;

    for (struct muster_remote_value *value = c->first; c->look && value != NULL;
         value = value->next) {
        look |= value->wanted || (value->cancel && value->state == TASK_QUEUED);
        if (value->wanted)
            task_parts_say(&value->parts, &c->window, value->bytes, &ahead, now_ms, wait_ms,
                           coordinator_wire_say_get, value);
        if (value->cancel && value->state == TASK_QUEUED && value->number <= c->taken &&
            task_again_due(&value->again, now_ms, wait_ms))
            coordinator_wire_say_numbered(c, WIRE_TASK_CANCEL, value->number);
    }
    c->look = look;
}

static void coordinator_wire_say_resources(struct muster_coordinator *c, int64_t now_ms,
                                           int64_t *wait_ms)
{
    struct muster_per_worker *next = NULL;

    for (struct muster_per_worker *value = c->per_worker; value != NULL; value = value->next)
        if (!value->taken && value->refused == MUSTER_OK)
            next = value; /* the lowest number first */
    if (next != NULL && task_again_due(&c->resource_again, now_ms, wait_ms)) {
        struct wire_msg message = {.type = WIRE_RESOURCE_ADD};
        message.u.resource_add =
            (struct wire_resource_add){.queue = c->queue, .number = next->number, .fn = next->fn};
        message.u.resource_add.args.data = next->args;
        message.u.resource_add.args.size = next->args_size;
        task_link_send(c->link, &message);
    }
}

static void coordinator_wire_say_all(struct muster_coordinator *c, int64_t now_ms, int64_t *wait_ms)
{
    if (c->new_from > 0 && !c->asking) {
        coordinator_wire_ask_range(c, c->new_from, c->new_to);
        c->new_from = c->new_to = 0;
    }
    coordinator_wire_say_resources(c, now_ms, wait_ms);
    coordinator_wire_say_adds(c, now_ms, wait_ms);
    if (c->asking && task_again_due(&c->get, now_ms, wait_ms))
        coordinator_wire_say_numbered(c, WIRE_TASKS_GET, c->ask_from);
    if (c->raising && (c->taken == c->scheduled || c->full) &&
        task_again_due(&c->raise_again, now_ms, wait_ms))
        coordinator_wire_say_numbered(c, WIRE_RAISE, c->raised + 1);
    coordinator_wire_say_of_values(c, now_ms, wait_ms);
    if (now_ms >= c->beat_ms) {
        c->released = values_released(c);
        coordinator_wire_say_numbered(c, WIRE_QUEUE_BEAT, c->released);
        c->beat_ms = now_ms + HEARTBEAT_MS;
    }
    if (c->beat_ms - now_ms < *wait_ms)
        *wait_ms = c->beat_ms - now_ms;
}

int64_t coordinator_turn(void *arg, int64_t now_ms)
{
    struct muster_coordinator *c = arg;
    int64_t wait_ms = HEARTBEAT_MS;

    pthread_mutex_lock(&c->mutex);
    coordinator_look(c, now_ms);
    if (!c->opened && !c->stale && task_again_due(&c->open, now_ms, &wait_ms))
        coordinator_wire_say_open(c);
    if (c->opened && !c->stale)
        coordinator_wire_say_all(c, now_ms, &wait_ms);
    pthread_mutex_unlock(&c->mutex);
    return wait_ms;
}
