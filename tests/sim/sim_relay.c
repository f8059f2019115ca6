/* sim_relay - the relays of hosts, in worlds with the option relays: what a host's processes say
 * within a moment travels as one bundle, and is lost, late or damaged as one; so does what they are
 * told. Bundles and numbers are the product's own code. A relay dies with all that it holds, or
 * stands still; its processes connect again when it is back. Events are as in other worlds, for a
 * relay only repeats them. Relays have a stream of chance of their own. */
#include "tests/sim/sim_world.h"

#include "broker/relay_peers.h"
#include "schema/wire/bundle.h"

#include <stdlib.h>
#include <string.h>

#define COMPANY_US 2000 /* a bundle waits for more at most so long */
#define DAMAGED_PERCENT 2
#define HALVED_PERCENT 2

struct way {
    struct bundle bundle;
    bool leaves; /* it is planned when */
    int64_t last_us;
};

struct sim_relay {
    unsigned host;
    uint64_t life;
    struct relay_peers peers;
    struct way up, down;
};

static struct sim_relay *relay_of(struct sim *sim, const struct sim_proc *proc)
{
    const unsigned host = proc->job * SIM_SLOTS_MAX + proc->slot / sim->relay_ranks;
    struct sim_relay *relay;

    for (size_t i = 0; i < sim->relays_count; i++)
        if (sim->relays[i]->host == host)
            return sim->relays[i];
    relay = calloc(1, sizeof *relay);
    relay->host = host;
    bundle_begin(&relay->up.bundle, WIRE_FRAME_MAX);
    bundle_begin(&relay->down.bundle, WIRE_EVENT_MAX);
    sim->relays = realloc(sim->relays, (sim->relays_count + 1) * sizeof(struct sim_relay *));
    sim->relays[sim->relays_count++] = relay;
    return relay;
}

static struct sim_relay *relay_at(const struct sim *sim, const struct sim_event *event)
{
    for (size_t i = 0; i < sim->relays_count; i++)
        if (sim->relays[i]->host == event->number && sim->relays[i]->life == event->stamp)
            return sim->relays[i];
    return NULL; /* it has died since */
}

void relays_plan(struct sim *sim)
{
    sim->relay_chance = sim->options.seed * UINT64_C(0x9fb21c651e98df25) + 11;
    sim->relay_ranks = 2U << relay_below(sim, 3);
}

void relays_end(struct sim *sim)
{
    for (size_t i = 0; i < sim->relays_count; i++)
        free(sim->relays[i]);
    free(sim->relays);
}

/* --- at the end of the way -------------------------------------------------------------------- */

/* A bundle of what came whole in front of its cut. */
static void half_is_enough(struct sim_event *event)
{
    size_t at = BUNDLE_HEAD_BYTES, count = 0;

    while (at + BUNDLE_ENTRY_BYTES <= event->size) {
        const uint8_t *length = event->data + at + 6;
        size_t next = event->data[at + 5] == 0xc5
                          ? at + 8 + (size_t)(length[0] << 8 | length[1])
                          : at + 10 +
                                ((size_t)length[0] << 24 | (size_t)length[1] << 16 |
                                 (size_t)length[2] << 8 | (size_t)length[3]);

        if (next > event->size)
            break;
        at = next;
        count++;
    }
    event->size = at;
    event->data[1] = (uint8_t)((1 + 2 * count) >> 8);
    event->data[2] = (uint8_t)(1 + 2 * count);
}

/* Of a bundle that was cut off nothing may be taken. */
static bool is_taken(struct sim *sim, struct sim_event *event, struct bundle_reader *reader)
{
    const bool cut = event->proc != NULL; /* see damaged */
    bool whole;

    if (cut && sim->options.mutation == MUTANT_HALF_A_BUNDLE)
        half_is_enough(event);
    whole = bundle_open(event->data, event->size, reader) == BUNDLE_WHOLE;
    if (whole == cut)
        sim_broken(sim, "relay",
                   cut ? "a bundle that was cut off is taken"
                       : "a bundle that came whole is not taken");
    return whole && !cut;
}

/* Whose number that was at this relay; its route has changed if it connected again. */
static struct sim_proc *proc_below(const struct sim *sim, const struct sim_relay *relay,
                                   uint32_t peer, uint64_t *ret_route)
{
    *ret_route = 0;
    relay_peers_route(&relay->peers, peer, ret_route);
    return *ret_route != 0 && *ret_route <= sim->last_route ? sim->routes[*ret_route] : NULL;
}

static void arrive_up(struct sim *sim, struct sim_event *event)
{
    const struct sim_relay *relay = relay_at(sim, event);
    struct bundle_reader reader;
    struct bundle_entry entry;

    if (relay == NULL || !is_taken(sim, event, &reader))
        return;
    while (bundle_next(&reader, &entry)) {
        uint64_t route;
        const struct sim_proc *proc = proc_below(sim, relay, entry.peer, &route);
        struct sim_broker *newest;

        if (proc == NULL || proc->route != route)
            continue;
        newest = broker_turn(sim, proc->at);
        if (sim->broker->alive)
            broker_receive(sim, route, entry.frame, entry.size);
        sim->broker = newest;
    }
}

static void arrive_down(struct sim *sim, struct sim_event *event)
{
    const struct sim_relay *relay = relay_at(sim, event);
    struct bundle_reader reader;
    struct bundle_entry entry;

    if (relay == NULL || !is_taken(sim, event, &reader))
        return;
    while (bundle_next(&reader, &entry)) {
        struct sim_proc *proc;
        uint64_t route;

        if (sim->options.mutation == MUTANT_RANKS_MIXED_UP)
            entry.peer ^= 1;
        proc = proc_below(sim, relay, entry.peer, &route);
        if (proc != NULL && (proc->route == route || event->at_us <= proc->old_cut_us))
            proc_frame(sim, proc, entry.frame, entry.size);
    }
}

/* --- on its way ------------------------------------------------------------------------------- */

/* A relay that lies: the last half of the messages is not there, and the bundle is whole. */
static void halved(struct sim *sim, struct sim_event *frame)
{
    struct bundle half;
    struct bundle_reader reader;
    struct bundle_entry entry;

    bundle_begin(&half, WIRE_EVENT_MAX);
    if (bundle_open(frame->data, frame->size, &reader) != BUNDLE_WHOLE || reader.left < 2)
        return;
    for (unsigned left = reader.left / 2; left > 0 && bundle_next(&reader, &entry); left--)
        bundle_add(&half, entry.peer, entry.frame, entry.size);
    memcpy(frame->data, half.bytes, half.size);
    frame->size = half.size;
    sim->stats->bundles_halved++;
}

/* The bundle loses its end, and is marked for the check. */
static void damaged(struct sim *sim, struct sim_event *frame)
{
    int64_t chance;

    if (sim_is_calm(sim) || sim->options.healthy)
        return;
    chance = relay_below(sim, 100);
    if (chance >= DAMAGED_PERCENT && chance < DAMAGED_PERCENT + HALVED_PERCENT)
        halved(sim, frame);
    if (chance >= DAMAGED_PERCENT)
        return;
    frame->size =
        BUNDLE_HEAD_BYTES + (size_t)relay_below(sim, (int64_t)frame->size - BUNDLE_HEAD_BYTES);
    frame->proc = sim->procs[0];
    sim->stats->bundles_cut++;
}

static void way_leaves(struct sim *sim, const struct sim_relay *relay, struct way *way, bool up)
{
    struct sim_event frame = {.fn = up ? arrive_up : arrive_down,
                              .number = relay->host,
                              .stamp = relay->life,
                              .size = way->bundle.size};

    frame.data = malloc(frame.size);
    memcpy(frame.data, way->bundle.bytes, frame.size);
    sim->stats->bundles++;
    sim->stats->bundled += way->bundle.entries;
    bundle_begin(&way->bundle, way->bundle.frame_max);
    damaged(sim, &frame);
    net_bundle(sim, &frame, &way->last_us, up);
}

static void leave_up(struct sim *sim, struct sim_event *event)
{
    struct sim_relay *relay = relay_at(sim, event);

    if (relay == NULL)
        return;
    relay->up.leaves = false;
    way_leaves(sim, relay, &relay->up, true);
}

static void leave_down(struct sim *sim, struct sim_event *event)
{
    struct sim_relay *relay = relay_at(sim, event);

    if (relay == NULL)
        return;
    relay->down.leaves = false;
    way_leaves(sim, relay, &relay->down, false);
}

void relay_take(struct sim *sim, const struct sim_proc *proc, uint64_t route, const uint8_t *data,
                size_t size, bool up)
{
    struct sim_relay *relay = relay_of(sim, proc);
    struct way *way = up ? &relay->up : &relay->down;
    uint32_t number = relay_peers_number(&relay->peers, route);
    struct sim_event *event;

    if (!bundle_add(&way->bundle, number, data, size)) {
        way_leaves(sim, relay, way, up);
        bundle_add(&way->bundle, number, data, size);
    }
    if (way->leaves)
        return;
    way->leaves = true;
    event = sim_after(sim, relay_below(sim, COMPANY_US), up ? leave_up : leave_down, NULL);
    event->number = relay->host;
    event->stamp = relay->life;
}

/* --- faults ----------------------------------------------------------------------------------- */

static void each_behind(struct sim *sim, const struct sim_relay *relay, enum sim_fault kind,
                        bool begins)
{
    for (size_t i = 0; i < sim->procs_count; i++) {
        struct sim_proc *proc = sim->procs[i];

        if (!proc->alive || relay_of(sim, proc) != relay)
            continue;
        if (kind == FAULT_RELAY_DIES)
            net_cut(sim, proc, begins);
        else
            net_stall(sim, proc, begins, begins);
    }
}

void relay_fault(struct sim *sim, struct sim_proc *proc, enum sim_fault kind, bool begins)
{
    struct sim_relay *relay = relay_of(sim, proc);

    if (begins)
        fault_met(sim, kind);
    if (begins && kind == FAULT_RELAY_DIES) {
        relay->life++;
        relay->peers = (struct relay_peers){.count = 0};
        bundle_begin(&relay->up.bundle, WIRE_FRAME_MAX);
        bundle_begin(&relay->down.bundle, WIRE_EVENT_MAX);
        relay->up.leaves = relay->down.leaves = false;
    }
    each_behind(sim, relay, kind, begins);
}
