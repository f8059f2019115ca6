#include "broker/core/state/orders.h"

#include <inttypes.h>
#include <stdio.h>

#define OPERATORS_PIN "operator" /* the id that `muster pin` gives */

static bool orders_holds_for_good(const struct job *job, const struct wire_unpin *m)
{
    for (size_t i = 0; i < job->keep.pins_count; i++) {
        const struct pin *pin = &job->keep.pins[i];

        if ((m->checkpoint == 0 || pin->checkpoint == m->checkpoint) && strcmp(pin->id, m->id) == 0)
            return pin->until_boot_ms == 0 || strcmp(m->id, OPERATORS_PIN) == 0;
    }
    return false;
}

static void orders_checkpoint_words(const char *verb, uint64_t checkpoint, const char *id,
                                    char ret[ORDER_WORDS_MAX])
{
    char which[40] = "the newest checkpoint";

    if (checkpoint > 0)
        snprintf(which, sizeof which, "checkpoint %" PRIu64, checkpoint);
    snprintf(ret, ORDER_WORDS_MAX, "%s %s%s%s", verb, which, id[0] != '\0' ? " as " : "", id);
}

bool order_words(const struct job *job, const struct wire_msg *order, char ret[ORDER_WORDS_MAX])
{
    switch (order->type) {
    case WIRE_SAVE_NOW:
        snprintf(ret, ORDER_WORDS_MAX, "save");
        return true;
    case WIRE_NOTICE:
        snprintf(ret, ORDER_WORDS_MAX, "notify rank %" PRId64 ", notice %s", order->u.notice.rank,
                 order->u.notice.id);
        return true;
    case WIRE_CANCEL:
        snprintf(ret, ORDER_WORDS_MAX, "cancel notice %s", order->u.cancel.id);
        return true;
    case WIRE_DROP:
        orders_checkpoint_words("drop", order->u.drop.checkpoint, "", ret);
        return true;
    case WIRE_PIN:
        orders_checkpoint_words("pin", order->u.pin.checkpoint, order->u.pin.id, ret);
        return order->u.pin.lease_ms == 0 || strcmp(order->u.pin.id, OPERATORS_PIN) == 0;
    case WIRE_UNPIN:
        orders_checkpoint_words("unpin", order->u.unpin.checkpoint, order->u.unpin.id, ret);
        return orders_holds_for_good(job, &order->u.unpin);
    default:
        return false;
    }
}

static void order_event(struct core *core, struct job *job, uint64_t round, const char *text)
{
    struct wire_event event = event_make(job, EVENT_ORDER);

    event.round = round;
    event.text = text;
    event_emit(core, job, event, 0);
}

static bool orders_has_changed(const struct core *core, size_t actions)
{
    for (size_t i = actions; i < core->out->count; i++)
        if (core->out->items[i].kind == ACTION_PERSIST)
            return true;
    return false; /* a repeat, or nothing to do */
}

void order_journal(struct core *core, struct job *job, const char *by, const char *words,
                   uint64_t round, size_t actions)
{
    if (orders_has_changed(core, actions))
        order_event(core, job, round, out_printf(core, "%s: %s", by, words));
}

void order_import(struct core *core, struct job *job, const char *by, const char *directory)
{
    if (by[0] == '\0' ||
        (job->import_told_ms != 0 && core->now - job->import_told_ms < START_GRACE_MS))
        return;
    job->import_told_ms = core->now;
    order_event(core, job, 0, out_printf(core, "%s: import from %s", by, directory));
}

static bool orders_has_key(const struct input *in)
{
    return in->by != NULL && in->key_jobs != NULL;
}

void order_gone(struct core *core, struct job *job, const struct input *in)
{
    if (orders_has_key(in))
        order_event(core, job, 0,
                    out_printf(core, "%s: the process of rank %" PRIu64 " has ended", in->by,
                               in->message->u.gone.rank));
}

void order_host(struct core *core, struct job *job, const struct input *in)
{
    if (orders_has_key(in))
        order_event(core, job, 0,
                    out_printf(core, "%s: host %s comes", in->by, in->message->u.host.name));
}
