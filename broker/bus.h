/* bus - the broker's two sockets: ROUTER for commands, XPUB for events. The only place in broker/
 * that knows ZeroMQ, with bus_up.c. bus_guard.c bounds what a connection may send before it gets
 * here.
 * Owns: the endpoints, the socket options, routes (a route is a peer's automatic routing id, and
 * its number at the relay that it is behind), bundles, the counters of what was dropped.
 * Never: decodes a frame, retries a send, waits in a send, sets ZMQ_HEARTBEAT_* (libzmq aborts),
 * takes over signals. One thread. */
#ifndef BROKER_BUS_H
#define BROKER_BUS_H

#include "broker/bus_endpoint.h"
#include "broker/bus_keys.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bus;

struct bus_options {
    const char *listen; /* "tcp://127.0.0.1:7700", "tcp://127.0.0.1:*" or "ipc:///path"; borrowed */
    struct bus_keys *keys; /* borrowed; NULL, or none in it: nobody is asked for one */
    const char *db;        /* beside which keys would be, for an error; borrowed */
    /* Without keys: the first listener of a topic came (true), or its last one went. NULL: not
     * told. topic is a job's name. */
    void (*topic)(void *arg, const char *topic, bool wanted);
    void *arg;
};

struct bus_counters {
    uint64_t received;
    uint64_t dropped_shape;    /* not exactly [routing id][frame], or a bundle that is damaged */
    uint64_t dropped_identity; /* a peer that chose its own routing id */
    uint64_t refused_keys;     /* connections whose key does not count */
    uint64_t dropped_keys;     /* messages over a connection whose key does not count any more */
    uint64_t dropped_topics;   /* subscriptions to what the key may not hear */
    uint64_t rebinds_failed;
    uint64_t sent;
    uint64_t unreachable; /* the peer is gone */
    uint64_t full;        /* the peer does not read */
    uint64_t published;
};

struct bus_frame {
    uint64_t route;                /* never 0; of one node, also if a relay brought the frame */
    const struct key_grant *grant; /* the sender's; NULL: nobody is asked for one. Borrowed */
    const uint8_t *data;
    size_t size;
    bool kept; /* it was not the last that came: bus_sender knows no address */
};

/* Binds both sockets. The state lock must be held: binding an ipc path takes it over.
 * The events' endpoint: the next port for tcp (a free one if the port is `*`), path + ".events" for
 * ipc. MUSTER_E_ARGUMENT · MUSTER_E_BUSY somebody listens there · MUSTER_E_IO. */
enum muster_status bus_open(const struct bus_options *options, struct bus **ret_bus,
                            struct muster_error *err);
/* Waits up to 1 s for what was sent, and removes the socket files that bus_open made. NULL-safe. */
void bus_close(struct bus **bus);

/* As bound, wildcards resolved. */
const char *bus_command_endpoint(const struct bus *bus);
const char *bus_events_endpoint(const struct bus *bus);

bool bus_asks_for_keys(const struct bus *bus);

/* Once a pass of the loop. With keys: reads the list again if it changed, each second, and ends the
 * connections of those who may hear no more. */
void bus_look_at_keys(struct bus *bus, int64_t now_unix_ms);

/* Waits until a command is there or `fd` is readable, at most timeout_ms. True if fd is readable */
bool bus_wait(struct bus *bus, int fd, int64_t timeout_ms);

/* The sender of the frame that bus_receive lent: a key and its address, or a local socket's user.
 */
void bus_sender(struct bus *bus, const struct bus_frame *frame, char *ret_text, size_t size);
/* The rights of that key now. NULL: it is not on the list. Borrowed for this pass. */
const struct key_grant *bus_grant(const struct bus *bus, const char *public_key);
/* A message by that route was refused, because its key was revoked or has expired: see
 * bus_peers.h. */
void bus_refused_key(struct bus *bus, uint64_t route);

enum bus_received { BUS_NOTHING, BUS_FRAME, BUS_DROPPED };
/* One message without waiting; the frame is borrowed until the next call. */
enum bus_received bus_receive(struct bus *bus, struct bus_frame *ret_frame);

/* Both without waiting; what cannot go at once is counted and gone. Copies. Frames to
 * nodes behind a relay wait for more to that relay, until bus_flush: call it before each wait. */
bool bus_send(struct bus *bus, uint64_t route, const uint8_t *frame, size_t size);
void bus_flush(struct bus *bus);
void bus_publish(struct bus *bus, const char *job, const uint8_t *frame, size_t size);

/* From now on this process answers hellos as a relay. sender is its number. With depth 0 it reaches
 * no broker, and answers nobody. */
void bus_is_relay(struct bus *bus, uint64_t sender, uint32_t depth);
/* True if a hello with that number came: the relay is connected to itself. */
bool bus_met_itself(const struct bus *bus);

const struct bus_counters *bus_counters(const struct bus *bus);

#endif
