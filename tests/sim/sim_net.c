/* sim_net - the wires. A command connection is in order and loses nothing while it stands (but for
 * the worlds of single frames' mishaps); when it is cut, or the broker's process ends, what is
 * under way is lost (a prefix may still arrive) and a new connection has a new route. Nothing
 * queues up for a broker that is not connected. PUB may lose any message to any subscriber, and
 * whoever comes late has missed what was before. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define RECONNECT_MIN_US 200000
#define RECONNECT_MAX_US 2000000
#define PUB_STALL_US 2500000
#define SILENCE_LOOK_US 250000

static uint8_t *own(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);

    memcpy(copy, data, size);
    return copy;
}

static int64_t arrival(struct sim *sim, int64_t *last_us, int64_t extra_us)
{
    int64_t at = sim->now_us + sim_range(sim, sim->delay_min_us, sim->delay_max_us) + extra_us;

    if (at <= *last_us)
        at = *last_us + 1;
    *last_us = at;
    return at;
}

/* --- single frames ---------------------------------------------------------------------------- */

/* In a part of the worlds a frame may be lost, come twice or be overtaken, which TCP does not do to
 * ours: the protocol does not count on that. By a stream of chance of their own, so that the other
 * worlds stay as they are. */
#define FRAMES_PERCENT 30 /* of the worlds */
#define STRIKES_PERCENT 3 /* of their frames, each of the three */
#define TWICE_MAX_US 500000
#define LATE_MAX_US 300000

struct mishaps {
    enum sim_fault lost, twice, late;
};
static const struct mishaps of_up = {FAULT_UP_LOST, FAULT_UP_TWICE, FAULT_UP_LATE};
static const struct mishaps of_down = {FAULT_DOWN_LOST, FAULT_DOWN_TWICE, FAULT_DOWN_LATE};
static const struct mishaps of_pub = {FAULT_NOTHING, FAULT_PUB_TWICE, FAULT_PUB_LATE};

void net_plan(struct sim *sim)
{
    sim->frames = sim->options.seed * UINT64_C(0xd1342543de82ef95) + 5;
    sim->frames_fail = frames_below(sim, 100) < FRAMES_PERCENT && !sim->options.healthy &&
                       sim->options.grace == NULL;
}

static bool strikes(struct sim *sim, enum sim_fault kind)
{
    if (!sim->frames_fail || kind == FAULT_NOTHING || sim_is_calm(sim) ||
        frames_below(sim, 100) >= STRIKES_PERCENT)
        return false;
    sim->stats->faults[kind]++;
    return true;
}

static void arrives(struct sim *sim, const struct sim_event *frame, int64_t at_us)
{
    struct sim_event *event = sim_at(sim, at_us, frame->fn, frame->proc);

    event->number = frame->number;
    event->stamp = frame->stamp;
    event->data = frame->data;
    event->size = frame->size;
}

static void send(struct sim *sim, const struct sim_event *frame, int64_t *last_us, int64_t extra_us,
                 const struct mishaps *mishaps)
{
    struct sim_event again = *frame;
    int64_t before_us = *last_us, at_us = arrival(sim, last_us, extra_us);

    if (strikes(sim, mishaps->twice)) {
        again.data = own(frame->data, frame->size);
        arrives(sim, &again, at_us + frames_below(sim, TWICE_MAX_US));
    }
    if (strikes(sim, mishaps->lost)) {
        free(frame->data);
        return;
    }
    if (strikes(sim, mishaps->late)) {
        at_us += frames_below(sim, LATE_MAX_US);
        *last_us = before_us;
    }
    arrives(sim, frame, at_us);
}

static void keep(struct sim_frames *frames, uint64_t stamp, uint8_t *data, size_t size)
{
    frames->items = realloc(frames->items, (frames->count + 1) * sizeof *frames->items);
    frames->items[frames->count++] = (struct sim_event){.stamp = stamp, .data = data, .size = size};
}

static void forget(struct sim_frames *frames)
{
    for (size_t i = 0; i < frames->count; i++)
        free(frames->items[i].data);
    frames->count = 0;
}

/* A frame or a connection does not come through. */
static void partition_strikes(struct sim *sim, struct sim_proc *proc)
{
    fault_met_once(sim, &proc->unmet,
                   proc->stall_up && proc->stall_down ? FAULT_STALL_BOTH
                   : proc->stall_up                   ? FAULT_STALL_UP
                                                      : FAULT_STALL_DOWN);
}

static void cut_strikes(struct sim *sim, struct sim_proc *proc)
{
    fault_met_once(sim, &proc->unmet, FAULT_CUT_NODE);
    fault_met_once(sim, &sim->unmet, FAULT_CUT_ALL);
}

/* --- node to broker --------------------------------------------------------------------------- */

static void arrive_up(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = sim->procs[event->number];

    struct sim_broker *newest = broker_turn(sim, proc->at);

    if (sim->broker->alive && proc->route == event->stamp)
        broker_receive(sim, event->stamp, event->data, event->size);
    sim->broker = newest;
}

/* What takes the place of single frames where hosts have relays. */
void net_bundle(struct sim *sim, const struct sim_event *frame, int64_t *last_us, bool up)
{
    send(sim, frame, last_us, 0, up ? &of_up : &of_down);
}

static bool goes_by_relay(struct sim *sim, const struct sim_proc *proc, uint64_t route,
                          uint8_t *data, size_t size, bool up)
{
    if (!sim->options.relays)
        return false;
    relay_take(sim, proc, route, data, size, up);
    free(data);
    return true;
}

static void send_up(struct sim *sim, struct sim_proc *proc, uint64_t route, uint8_t *data,
                    size_t size)
{
    const struct sim_event frame = {
        .fn = arrive_up, .number = proc->index, .stamp = route, .data = data, .size = size};

    if (goes_by_relay(sim, proc, route, data, size, true))
        return;
    send(sim, &frame, &proc->up_last_us, 0, &of_up);
}

void net_up(struct sim *sim, struct sim_proc *proc, const uint8_t *data, size_t size)
{
    if (proc->route == 0)
        return; /* nobody is connected: dropped */
    if (!proc->stall_up) {
        send_up(sim, proc, proc->route, own(data, size), size);
        return;
    }
    partition_strikes(sim, proc);
    keep(&proc->stalled_up, proc->route, own(data, size), size);
}

/* --- broker to node --------------------------------------------------------------------------- */

static void arrive_down(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;

    if (proc->route == event->stamp || event->at_us <= proc->old_cut_us)
        proc_frame(sim, proc, event->data, event->size);
}

static void send_down(struct sim *sim, struct sim_proc *proc, uint64_t route, uint8_t *data,
                      size_t size)
{
    const struct sim_event frame = {
        .fn = arrive_down, .proc = proc, .stamp = route, .data = data, .size = size};

    if (goes_by_relay(sim, proc, route, data, size, false))
        return;
    send(sim, &frame, &proc->down_last_us, 0, &of_down);
}

void net_down(struct sim *sim, uint64_t route, const uint8_t *data, size_t size)
{
    struct sim_proc *proc;

    if (route == 0) {
        sim_broken(sim, "route", "the broker answers somebody that its start has not heard");
        return;
    }
    proc = route <= sim->last_route ? sim->routes[route] : NULL;
    if (proc == NULL || !proc->alive || proc->route != route)
        return; /* nobody any more */
    if (!proc->stall_down) {
        send_down(sim, proc, route, own(data, size), size);
        return;
    }
    partition_strikes(sim, proc);
    keep(&proc->stalled_down, route, own(data, size), size);
}

/* --- events ----------------------------------------------------------------------------------- */

static void arrive_event(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;

    if (proc->sub_stamp == event->stamp || event->at_us <= proc->old_cut_us)
        proc_frame(sim, proc, event->data, event->size);
}

static bool is_dropped(struct sim *sim, struct sim_proc *proc)
{
    unsigned always = sim->pub_loss_percent, loss = always + sim->pub_drop_percent, roll;

    if (sim->pub_drop_all) {
        fault_met_once(sim, &sim->unmet, FAULT_PUB_DROPS_ALL);
        return true;
    }
    if (proc->stall_down) {
        partition_strikes(sim, proc);
        return true;
    }
    if (loss == 0)
        return false;
    roll = (unsigned)(sim_random(sim) % 100);
    if (roll >= always && roll < loss)
        fault_met_once(sim, &sim->unmet, FAULT_PUB_DROPS_SOME);
    return roll < loss;
}

void net_publish(struct sim *sim, const char *job, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sim->procs_count; i++) {
        struct sim_proc *proc = sim->procs[i];
        if (!proc->alive || !proc->subscribed || proc->at != broker_index(sim) ||
            strcmp(sim->jobs[proc->job].name, job) != 0)
            continue;
        if (is_dropped(sim, proc))
            continue;
        if (sim->pub_stall)
            fault_met_once(sim, &sim->unmet, FAULT_PUB_STALLS);
        const struct sim_event frame = {.fn = arrive_event,
                                        .proc = proc,
                                        .stamp = proc->sub_stamp,
                                        .data = own(data, size),
                                        .size = size};
        send(sim, &frame, &proc->sub_last_us, sim->pub_stall ? PUB_STALL_US : 0, &of_pub);
    }
}

static void subscribed(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;

    if (event->stamp == proc->sub_stamp && proc->route != 0 && sim->brokers[proc->at].alive)
        proc->subscribed = true;
}

void net_subscribe(struct sim *sim, struct sim_proc *proc)
{
    proc->wants_sub = true;
    proc->subscribed = false;
    proc->sub_stamp++;
    if (proc->route != 0)
        sim_after(sim, sim_range(sim, 500, 100000), subscribed, proc)->stamp = proc->sub_stamp;
}

/* --- connections ------------------------------------------------------------------------------ */

/* At its address, or the next one. */
static bool finds_broker(const struct sim *sim, struct sim_proc *proc)
{
    const struct sim_broker *b = &sim->brokers[proc->at];

    if (sim->options.shared && (!b->alive || b->frozen)) {
        proc->at = (proc->at + 1) % SIM_BROKERS;
        b = &sim->brokers[proc->at];
    }
    return b->alive && !(sim->options.shared && b->frozen);
}

/* The broker there is silent: at the next address there may be the active one. */
void net_look_at_silence(struct sim *sim, struct sim_event *event)
{
    (void)event;
    for (size_t i = 0; i < sim->procs_count; i++) {
        struct sim_proc *proc = sim->procs[i];
        if (!proc->alive || proc->frozen || proc->route == 0 ||
            sim->now_us - proc->link_us < LOST_MS * 1000LL)
            continue;
        SIM_TELL(sim, "%s/%u leaves broker %u, which is silent", sim->jobs[proc->job].name,
                 proc->slot, proc->at);
        net_disconnect(sim, proc);
        proc->at = (proc->at + 1) % SIM_BROKERS;
        net_connect(sim, proc, sim->now_us + sim_range(sim, 1000, RECONNECT_MS * 1000LL));
    }
    sim_after(sim, SILENCE_LOOK_US, net_look_at_silence, NULL);
}

static void connected(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;

    if (proc->route != 0)
        return;
    if (proc->cut)
        cut_strikes(sim, proc);
    else if (proc->stall_up || proc->stall_down)
        partition_strikes(sim, proc);
    if (!finds_broker(sim, proc) || proc->cut || proc->stall_up || proc->stall_down) {
        net_connect(sim, proc, sim->now_us + sim_range(sim, RECONNECT_MIN_US, RECONNECT_MAX_US));
        return;
    }
    proc->route = ++sim->last_route;
    sim->routes = realloc(sim->routes, (proc->route + 1) * sizeof(struct sim_proc *));
    sim->routes[proc->route] = proc;
    proc->link_us = sim->now_us;
    SIM_TELL(sim, "%s/%u connected to broker %u as route %llu", sim->jobs[proc->job].name,
             proc->slot, proc->at, (unsigned long long)proc->route);
    if (proc->wants_sub)
        net_subscribe(sim, proc);
    if (proc->connected_once)
        proc_feed(sim, proc, &(struct member_input){.kind = MEMBER_CONNECTED});
    proc->connected_once = true;
}

void net_connect(struct sim *sim, struct sim_proc *proc, int64_t at_us)
{
    sim_at(sim, at_us, connected, proc);
}

void net_disconnect(struct sim *sim, struct sim_proc *proc)
{
    proc->route = 0;
    proc->subscribed = false;
    proc->sub_stamp++;
    proc->old_cut_us = sim->now_us + sim_range(sim, 0, 2 * sim->delay_max_us);
    forget(&proc->stalled_up);
    forget(&proc->stalled_down);
}

void net_process_gone(struct sim_proc *proc)
{
    forget(&proc->stalled_up);
    forget(&proc->stalled_down);
}

void net_broker_gone(struct sim *sim)
{
    for (size_t i = 0; i < sim->procs_count; i++)
        if (sim->procs[i]->route != 0 && sim->procs[i]->at == broker_index(sim)) {
            net_disconnect(sim, sim->procs[i]);
            if (sim->options.shared)
                net_connect(sim, sim->procs[i],
                            sim->now_us + sim_range(sim, 1000, RECONNECT_MAX_US));
        }
}

void net_broker_back(struct sim *sim)
{
    for (size_t i = 0; i < sim->procs_count; i++)
        if (sim->procs[i]->alive)
            net_connect(sim, sim->procs[i], sim->now_us + sim_range(sim, 1000, RECONNECT_MAX_US));
}

void net_cut(struct sim *sim, struct sim_proc *proc, bool cut)
{
    if (cut && proc->route != 0) {
        cut_strikes(sim, proc);
        net_disconnect(sim, proc);
    }
    proc->cut = cut;
    if (!cut)
        net_connect(sim, proc, sim->now_us + sim_range(sim, 1000, RECONNECT_MAX_US));
}

void net_stall(struct sim *sim, struct sim_proc *proc, bool up, bool down)
{
    bool flush_up = proc->stall_up && !up, flush_down = proc->stall_down && !down;

    proc->stall_up = up;
    proc->stall_down = down;
    for (size_t i = 0; flush_up && i < proc->stalled_up.count; i++)
        send_up(sim, proc, proc->stalled_up.items[i].stamp, proc->stalled_up.items[i].data,
                proc->stalled_up.items[i].size);
    for (size_t i = 0; flush_down && i < proc->stalled_down.count; i++)
        send_down(sim, proc, proc->stalled_down.items[i].stamp, proc->stalled_down.items[i].data,
                  proc->stalled_down.items[i].size);
    if (flush_up)
        proc->stalled_up.count = 0;
    if (flush_down)
        proc->stalled_down.count = 0;
}
