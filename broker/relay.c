/* relay - see relay.h. */
#include "broker/relay.h"

#include "broker/base/clock.h"
#include "broker/bus_up.h"
#include "broker/log.h"
#include "broker/relay_peers.h"
#include "broker/service.h"
#include "schema/error.h"
#include "schema/wire/bundle.h"
#include "schema/wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define PASS_FRAMES_UP 4096 /* then look at what came from above */
#define PASS_MESSAGES_DOWN 256
#define WAIT_MAX_MS 500
#define WAIT_HELD_MS 5 /* for room above: the socket's descriptor alone does not show it */
#define DECODE_BYTES_MAX (1u << 20)

struct relay {
    struct bus *bus;
    struct bus_up *up;
    int signal_fd;
    uint64_t id;
    int64_t now_ms;
    int64_t hello_ms; /* when it was last said */
    int64_t held_ms;  /* since when a bundle could not leave */
    int64_t away_ms;  /* since when no broker answers */
    bool said_away;
    char
        why_away[MUSTER_ERROR_TEXT_MAX]; /* of what was said, e.g. a key file; "": nobody answers */
    bool held;                           /* bundles[1 - filling] waits, and nobody is read */
    unsigned filling;                    /* the bundle that takes frames */
    struct bundle bundles[2];
    struct relay_peers peers;
    struct relay_counters counters;
    struct arena arena;
    uint8_t frame[WIRE_FRAME_MAX]; /* a WELCOME with another endpoint */
};

/* --- up --------------------------------------------------------------------------------------- */

static bool relay_send(struct relay *relay, const struct bundle *bundle)
{
    if (!bus_up_send(relay->up, bundle->bytes, bundle->size))
        return false;
    relay->counters.bundles_up++;
    return true;
}

/* Sends the bundle that is held. If no broker took it within HEARTBEAT_MS it is dropped: it would
 * be out of date, and its senders repeat it. */
static void relay_release(struct relay *relay)
{
    const struct bundle *waits = &relay->bundles[1 - relay->filling];

    if (!relay->held)
        return;
    if (relay_send(relay, waits)) {
        relay->held = false;
    } else if (relay->now_ms - relay->held_ms >= HEARTBEAT_MS) {
        relay->counters.late += waits->entries;
        relay->held = false;
    }
}

/* Sends the bundle that is filled, or holds it and fills the other one. */
static void relay_bundle_leaves(struct relay *relay)
{
    if (relay->held || relay->bundles[relay->filling].entries == 0)
        return;
    if (!relay_send(relay, &relay->bundles[relay->filling])) {
        relay->held = true;
        relay->held_ms = relay->now_ms;
        relay->filling = 1 - relay->filling;
    }
    bundle_begin(&relay->bundles[relay->filling], WIRE_FRAME_MAX);
}

static void relay_add(struct relay *relay, uint32_t number, const uint8_t *frame, size_t size)
{
    if (bundle_add(&relay->bundles[relay->filling], number, frame, size))
        return;
    relay_bundle_leaves(relay);
    if (!bundle_add(&relay->bundles[relay->filling], number, frame, size))
        relay->counters.late++;
}

/* While no broker answers, frames wait for HEARTBEAT_MS. From then on the relay drops them, as a
 * node does whose broker is away. */
static bool relay_may_take(const struct relay *relay)
{
    return !relay->held &&
           (bus_up_is_reached(relay->up) || relay->now_ms - relay->away_ms >= HEARTBEAT_MS);
}

/* ROUTER gives each connection its turn, so a bundle is filled rank by rank. */
static void relay_take_up(struct relay *relay)
{
    for (int i = 0; i < PASS_FRAMES_UP && relay_may_take(relay); i++) {
        struct bus_frame frame;
        enum bus_received received = bus_receive(relay->bus, &frame);

        if (received == BUS_NOTHING)
            break;
        if (received != BUS_FRAME)
            continue;
        relay->counters.up++;
        if (!bus_up_is_reached(relay->up))
            relay->counters.late++;
        else
            relay_add(relay, relay_peers_number(&relay->peers, frame.route), frame.data,
                      frame.size);
    }
    relay_bundle_leaves(relay);
}

/* Says HELLO each second, and at once to a broker that has not answered yet. */
static void relay_say_hello(struct relay *relay)
{
    const int64_t pause_ms = bus_up_is_reached(relay->up) ? HEARTBEAT_MS : RECONNECT_MS / 5;
    struct bundle_hello hello = {.sender = relay->id};
    uint8_t bytes[BUNDLE_HELLO_MAX];

    if (relay->held || relay->now_ms - relay->hello_ms < pause_ms)
        return;
    relay->hello_ms = relay->now_ms;
    relay_add(relay, BUNDLE_CONTROL, bytes, bundle_hello_write(&hello, bytes));
    if (bus_up_is_reached(relay->up))
        return;
    relay_send(relay, &relay->bundles[relay->filling]); /* never held: nobody may be there */
    bundle_begin(&relay->bundles[relay->filling], WIRE_FRAME_MAX);
}

/* --- down ------------------------------------------------------------------------------------- */

static enum muster_status relay_heard(struct relay *relay, const struct bundle_entry *entry,
                                      struct muster_error *err)
{
    const bool reached = bus_up_is_reached(relay->up);
    struct bundle_hello hello;
    enum muster_status status;

    if (!bundle_hello_read(entry->frame, entry->size, &hello))
        return MUSTER_OK;
    status = bus_up_heard(relay->up, hello.endpoint, relay->now_ms, err);
    bus_is_relay(relay->bus, relay->id, hello.depth + 1);
    if (!reached && status == MUSTER_OK)
        broker_log(LOG_LEVEL_INFO, "the broker at %s answers", bus_up_address(relay->up));
    relay->said_away = false;
    return status;
}

static enum muster_status relay_take_entry(struct relay *relay, const struct bundle_entry *entry,
                                           struct muster_error *err)
{
    const uint8_t *frame = entry->frame;
    size_t size = entry->size, moved;
    uint64_t route;

    if (entry->peer == BUNDLE_CONTROL)
        return relay_heard(relay, entry, err);
    relay->counters.down++;
    if (!relay_peers_route(&relay->peers, entry->peer, &route)) {
        relay->counters.unknown++;
        return MUSTER_OK;
    }
    moved = bundle_welcome_at(frame, size, bus_events_endpoint(relay->bus), relay->frame);
    if (moved > 0) {
        frame = relay->frame;
        size = moved;
    }
    bus_send(relay->bus, route, frame, size);
    return MUSTER_OK;
}

/* A broker that knows no bundles answers one as it answers a frame of another version. */
static enum muster_status relay_take_frame(struct relay *relay, const uint8_t *frame, size_t size,
                                           struct muster_error *err)
{
    struct wire_msg message;
    struct muster_error unused;
    enum muster_status status;

    arena_reset(&relay->arena);
    status = wire_decode(frame, size, &relay->arena, &message, &unused);
    if (status == MUSTER_OK && message.type == WIRE_ACK)
        status = (enum muster_status)message.u.ack.code;
    if (status != MUSTER_E_VERSION)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_VERSION,
                     "the broker at %s does not take what this relay (musterd " MUSTER_VERSION
                     ") says: install the same version of musterd on both hosts",
                     bus_up_address(relay->up));
}

static enum muster_status relay_take_message(struct relay *relay, const uint8_t *data, size_t size,
                                             struct muster_error *err)
{
    struct bundle_reader reader;
    struct bundle_entry entry;
    enum muster_status status = MUSTER_OK;

    switch (bundle_open(data, size, &reader)) {
    case BUNDLE_WHOLE:
        break;
    case BUNDLE_NONE:
        return relay_take_frame(relay, data, size, err);
    case BUNDLE_OTHER:
    case BUNDLE_BROKEN:
        return MUSTER_OK;
    }
    relay->counters.bundles_down++;
    while (status == MUSTER_OK && bundle_next(&reader, &entry))
        status = relay_take_entry(relay, &entry, err);
    return status;
}

static enum muster_status relay_take_down(struct relay *relay, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    char topic[JOB_NAME_MAX + 1];
    const uint8_t *data;
    size_t size;

    for (int i = 0; i < PASS_MESSAGES_DOWN && status == MUSTER_OK; i++) {
        data = bus_up_receive(relay->up, &size);
        if (data == NULL)
            break;
        status = relay_take_message(relay, data, size, err);
    }
    bus_flush(relay->bus);
    for (int i = 0; i < PASS_MESSAGES_DOWN; i++) {
        data = bus_up_event(relay->up, topic, &size);
        if (data == NULL)
            break;
        bus_publish(relay->bus, topic, data, size);
        relay->counters.events++;
    }
    return status;
}

static void relay_topic(void *arg, const char *topic, bool wanted)
{
    struct relay *relay = arg;

    if (bus_up_topic(relay->up, topic, wanted))
        return;
    if (relay->counters.topics++ == 0)
        broker_log(LOG_LEVEL_WARNING,
                   "job %s hears its events late: more jobs run through this relay than it may "
                   "listen for; start another one with --listen",
                   topic);
}

/* --- one pass --------------------------------------------------------------------------------- */

static bool relay_signal_came(const struct relay *relay)
{
    struct signalfd_siginfo info;

    if (relay->signal_fd < 0 || read(relay->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    broker_log(LOG_LEVEL_INFO, "signal %u from pid %u: stopping", info.ssi_signo, info.ssi_pid);
    return true;
}

static void relay_say_away(struct relay *relay, const struct muster_error *why)
{
    const bool another = why->text[0] != '\0' && strcmp(why->text, relay->why_away) != 0;

    if ((relay->said_away && !another) || relay->now_ms - relay->away_ms < LOST_MS)
        return;
    relay->said_away = true;
    snprintf(relay->why_away, sizeof relay->why_away, "%s", why->text);
    broker_log(
        LOG_LEVEL_WARNING,
        "no broker answers at %s%s%s: check that the address is right, and that musterd runs "
        "there and accepts this relay's key; trying again",
        bus_up_address(relay->up), why->text[0] != '\0' ? ": " : "", why->text);
}

/* Logs a broker that was there and is silent now, or one that never answered. */
static void relay_tick(struct relay *relay)
{
    const bool reached = bus_up_is_reached(relay->up);
    struct muster_error err = {.text = ""};

    if (reached)
        relay->away_ms = relay->now_ms;
    if (bus_up_tick(relay->up, relay->now_ms, &err)) {
        bus_is_relay(relay->bus, relay->id, 0); /* those below look elsewhere, too */
        relay->hello_ms = 0;
    }
    if (!bus_up_is_reached(relay->up))
        relay_say_away(relay, &err);
}

static int64_t relay_time_to_wait(const struct relay *relay, int64_t timeout_ms)
{
    int64_t most = bus_up_is_reached(relay->up) ? timeout_ms : RECONNECT_MS / 5;

    if (bus_up_is_ready(relay->up))
        return 0;
    if (relay->held && most > WAIT_HELD_MS)
        most = WAIT_HELD_MS;
    return most < timeout_ms ? most : timeout_ms;
}

/* Does not wait for the peers below: nobody may be reading there now. */
static void relay_wait_for_room(const struct relay *relay)
{
    struct timespec pause = {.tv_nsec = WAIT_HELD_MS * 1000000L};

    if (!bus_up_is_ready(relay->up))
        nanosleep(&pause, NULL);
}

enum muster_status relay_pass(struct relay *relay, int64_t timeout_ms, bool *ret_stop,
                              struct muster_error *err)
{
    enum muster_status status;

    if (!relay_may_take(relay))
        relay_wait_for_room(relay);
    bus_wait(relay->bus, bus_up_fd(relay->up),
             relay_may_take(relay) ? relay_time_to_wait(relay, timeout_ms) : 0);
    relay->now_ms = clock_ms(CLOCK_MONOTONIC);
    *ret_stop |= relay_signal_came(relay);
    status = relay_take_down(relay, err);
    relay_release(relay);
    relay_take_up(relay);
    relay_say_hello(relay);
    relay_bundle_leaves(relay);
    bus_flush(relay->bus);
    relay_tick(relay);
    if (status == MUSTER_OK && bus_met_itself(relay->bus))
        status = error_set(err, MUSTER_E_ARGUMENT,
                           "%s leads back to this relay: give it the broker's address with "
                           "--relay",
                           bus_up_address(relay->up));
    return status;
}

enum muster_status relay_run(struct relay *relay, struct muster_error *err)
{
    bool stop = false;
    enum muster_status status = MUSTER_OK;

    while (!stop && status == MUSTER_OK) {
        status = relay_pass(relay, WAIT_MAX_MS, &stop, err);
        service_alive(clock_ms(CLOCK_BOOTTIME));
    }
    return status;
}

/* --- life ------------------------------------------------------------------------------------- */

enum muster_status relay_check(const char *listen, const struct brokers *brokers,
                               struct muster_error *err)
{
    enum muster_status status = bus_check_listen(listen, NULL, err);
    struct muster_error unused;

    if (status != MUSTER_OK)
        return status;
    if (bus_check_listen(listen, "", &unused) != MUSTER_OK)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "listen address %s can be reached from other hosts, and a relay asks "
                         "nobody for a key: use ipc:///PATH or tcp://127.0.0.1:PORT",
                         listen);
    for (size_t i = 0; i < brokers->count; i++)
        if (strcmp(brokers->address[i], listen) == 0)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "%s is where this relay itself listens: give it the broker's address "
                             "with --relay, or listen elsewhere with --listen",
                             listen);
    return MUSTER_OK;
}

static enum muster_status relay_make_id(struct relay *relay, struct muster_error *err)
{
    while (relay->id == 0)
        if (getrandom(&relay->id, sizeof relay->id, 0) < 0)
            return error_set_code(err, MUSTER_E_IO, errno, "no random numbers: %s",
                                  strerror(errno));
    return MUSTER_OK;
}

enum muster_status relay_open(const struct relay_options *options, struct relay **ret_relay,
                              struct muster_error *err)
{
    struct bus_options bus = {.listen = options->listen, .topic = relay_topic};
    enum muster_status status = relay_check(options->listen, options->brokers, err);
    struct relay *relay;

    if (status != MUSTER_OK)
        return status;
    relay = calloc(1, sizeof *relay);
    if (relay == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a relay");
    bundle_begin(&relay->bundles[0], WIRE_FRAME_MAX);
    bundle_begin(&relay->bundles[1], WIRE_FRAME_MAX);
    arena_init(&relay->arena, DECODE_BYTES_MAX);
    relay->signal_fd = options->signal_fd;
    relay->now_ms = relay->away_ms = clock_ms(CLOCK_MONOTONIC);
    bus.arg = relay;
    status = relay_make_id(relay, err);
    if (status == MUSTER_OK)
        status = bus_up_open(options->brokers, options->key_file, options->signal_fd, relay->now_ms,
                             &relay->up, err);
    if (status == MUSTER_OK)
        status = bus_open(&bus, &relay->bus, err);
    if (status != MUSTER_OK) {
        relay_close(&relay);
        return status;
    }
    bus_is_relay(relay->bus, relay->id, 0);
    *ret_relay = relay;
    return MUSTER_OK;
}

void relay_close(struct relay **relay)
{
    if (*relay == NULL)
        return;
    bus_close(&(*relay)->bus);
    bus_up_close(&(*relay)->up);
    arena_free(&(*relay)->arena);
    free(*relay);
    *relay = NULL;
}

struct bus *relay_bus(struct relay *relay)
{
    return relay->bus;
}

const struct relay_counters *relay_counters(const struct relay *relay)
{
    return &relay->counters;
}
