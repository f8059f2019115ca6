/* bus - see bus.h.
 *
 * czmq makes the sockets and sets their options; the hot path is plain zmq_msg_t. czmq would take
 * SIGTERM and SIGINT for itself when the first socket is made: zsys_handler_set(NULL) comes before.
 */
#include "broker/bus.h"

#include "broker/base/clock.h"
#include "broker/base/failpoint.h"
#include "broker/bus_endpoint.h"
#include "broker/bus_peers.h"
#include "broker/bus_zap.h"
#include "broker/core/contract/authority.h"
#include "broker/log.h"
#include "schema/error.h"
#include "schema/limits.h"
#include "schema/wire/bundle.h"

#include <czmq.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COMMAND_HWM 1000
#define UNREAD_MAX \
    100 /* messages of a connection that libzmq holds for us: 6 MiB, as frames of 64 KiB */
#define EVENTS_HWM 1000 /* of a listener that does not read: it asks for what it lacks */
#define BACKLOG 4096
#define HANDSHAKE_MS 3000 /* 5,000 idle connections hold 4,500 descriptors for 30 s by default */
#define LINGER_MS 1000
#define IO_THREADS 2
#define LOOK_MS 1000        /* how often keys that expire are looked for: their listeners end */
#define ROUTING_ID_SIZE 5   /* an automatic one: a zero byte and 32 bits */
#define ROUTE_PEER_SHIFT 32 /* a route is [number at the relay][connection], see bundle.h */

struct bus {
    zsock_t *commands;
    zsock_t *events;
    void *router; /* their libzmq handles */
    void *publisher;
    int router_fd, publisher_fd; /* readable when there may be something */
    bool published;              /* since the publisher was last asked for subscriptions */
    bool ipv6;
    struct bus_keys *keys; /* borrowed */
    struct bus_zap *zap;   /* NULL: nobody is asked for a key */
    int64_t now_unix_ms;   /* as last told */
    int64_t looked_unix_ms;
    bool keys_unread;        /* and that was said */
    zmq_msg_t frame;         /* what the last bus_receive lent, or a part of it */
    struct bundle_reader in; /* what is left of a bundle there */
    uint32_t in_from;        /* the connection that it came over */
    struct bundle out;       /* to the relay `out_to`, if there are entries */
    uint32_t out_to;
    struct bundle_hello self; /* what a relay's hello is answered with */
    bool silent;              /* or is not */
    bool met_itself;
    void (*topic)(void *arg, const char *topic, bool wanted);
    void *topic_arg;
    char command_endpoint[ENDPOINT_MAX + 1];
    char events_endpoint[ENDPOINT_MAX + 1];
    struct socket_file {
        const char *path; /* NULL: none of ours */
        dev_t device;
        ino_t inode;
    } files[2];
    struct bus_counters counters;
};

/* --- open and close --------------------------------------------------------------------------- */

/* what: the address that the user gave, for the error text. */
static enum muster_status bus_bind_one(void *socket, const char *endpoint, const char *what,
                                       char *ret_endpoint, struct muster_error *err)
{
    size_t size = ENDPOINT_MAX + 1;
    enum muster_status status = MUSTER_OK;

    if (bus_endpoint_is_ipc(endpoint)) {
        const char *path = endpoint + strlen("ipc://");

        status = bus_endpoint_take_path(path, err);
    }
    if (status != MUSTER_OK)
        return status;
    if (zmq_bind(socket, endpoint) != 0) {
        int code = zmq_errno();

        return error_set_code(err, code == EADDRINUSE ? MUSTER_E_BUSY : MUSTER_E_IO, code,
                              "cannot listen at %s: %s; choose another address with --listen", what,
                              zmq_strerror(code));
    }
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, ret_endpoint, &size) != 0)
        return error_set_code(err, MUSTER_E_IO, zmq_errno(), "cannot ask where %s was bound: %s",
                              endpoint, zmq_strerror(zmq_errno()));
    return MUSTER_OK;
}

/* The file at an ipc endpoint after the bind, so that bus_close removes nothing else. */
static void bus_note_file(struct socket_file *file, const char *endpoint)
{
    struct stat info;

    if (!bus_endpoint_is_ipc(endpoint) || lstat(endpoint + strlen("ipc://"), &info) != 0)
        return;
    *file = (struct socket_file){
        .path = endpoint + strlen("ipc://"), .device = info.st_dev, .inode = info.st_ino};
}

/* Called before the socket is closed: a file that another musterd binds there afterwards is not
 * ours. */
static void bus_remove_file(const struct socket_file *file)
{
    struct stat info;

    if (file->path != NULL && lstat(file->path, &info) == 0 && info.st_dev == file->device &&
        info.st_ino == file->inode)
        unlink(file->path);
}

static void bus_set_common(const struct bus *bus, zsock_t *socket)
{
    zsock_set_linger(socket, LINGER_MS);
    zsock_set_maxmsgsize(socket, WIRE_FRAME_MAX + WIRE_SEAL); /* a bundle is longer than a frame */
    zsock_set_handshake_ivl(socket, HANDSHAKE_MS);
    zsock_set_backlog(socket, BACKLOG);
    zsock_set_tcp_keepalive(socket, 1);
    zsock_set_tcp_keepalive_idle(socket, 15);
    zsock_set_tcp_keepalive_intvl(socket, 5);
    zsock_set_tcp_keepalive_cnt(socket, 3);
    zsock_set_tcp_maxrt(socket, TCP_MAXRT_MS);
    zsock_set_ipv6(socket, bus->ipv6 ? 1 : 0);
    zsock_set_rcvhwm(socket, UNREAD_MAX);
}

static bool bus_get_fd(void *socket, int *ret_fd)
{
    size_t size = sizeof *ret_fd;

    return zmq_getsockopt(socket, ZMQ_FD, ret_fd, &size) == 0;
}

static enum muster_status bus_no_socket(struct muster_error *err)
{
    return error_set_code(err, MUSTER_E_IO, zmq_errno(),
                          "cannot make the sockets: %s; raise the limit of open files",
                          zmq_strerror(zmq_errno()));
}

static enum muster_status bus_make_router(struct bus *bus, struct muster_error *err)
{
    bus->commands = zsock_new(ZMQ_ROUTER);
    if (bus->commands == NULL)
        return bus_no_socket(err);
    bus_set_common(bus, bus->commands);
    zsock_set_sndhwm(bus->commands, COMMAND_HWM);
    zsock_set_router_mandatory(bus->commands, 1); /* else what cannot be sent vanishes unseen */
    zsock_set_router_handover(bus->commands, 0);
    bus->router = zsock_resolve(bus->commands);
    if (!bus_get_fd(bus->router, &bus->router_fd))
        return bus_no_socket(err);
    return bus->zap == NULL || bus_zap_guard(bus->zap, bus->router, err) ? MUSTER_OK
                                                                         : MUSTER_E_UNSUPPORTED;
}

static enum muster_status bus_make_publisher(struct bus *bus, struct muster_error *err)
{
    bus->events = zsock_new(ZMQ_XPUB);
    if (bus->events == NULL)
        return bus_no_socket(err);
    bus_set_common(bus, bus->events);
    zsock_set_sndhwm(bus->events, failpoint_small_queue() ? 1 : EVENTS_HWM);
    if (failpoint_small_queue())
        zsock_set_sndbuf(bus->events, 1);
    zsock_set_xpub_nodrop(bus->events, 0); /* one slow node must not hold up the others */
    if (bus->zap != NULL)
        zsock_set_xpub_manual(bus->events, 1); /* a topic is heard by those who may */
    bus->publisher = zsock_resolve(bus->events);
    bus->published = true; /* a socket that was never asked may say nothing by its descriptor */
    if (!bus_get_fd(bus->publisher, &bus->publisher_fd))
        return bus_no_socket(err);
    return bus->zap == NULL || bus_zap_guard(bus->zap, bus->publisher, err) ? MUSTER_OK
                                                                            : MUSTER_E_UNSUPPORTED;
}

/* With keys, TCP asks for them. A local socket's directory says who may use it. */
static enum muster_status bus_make_sockets(struct bus *bus, const struct bus_options *options,
                                           struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    zsys_handler_set(NULL);
    zsys_set_io_threads(IO_THREADS);
    bus->ipv6 = strchr(options->listen, '[') != NULL;
    if (bus->keys != NULL && bus_keys_count(bus->keys) > 0 && !bus_endpoint_is_ipc(options->listen))
        status = bus_zap_open(zsys_init(), bus->keys, &bus->zap, err);
    if (status == MUSTER_OK)
        status = bus_make_publisher(bus, err);
    return status == MUSTER_OK ? bus_make_router(bus, err) : status;
}

enum muster_status bus_open(const struct bus_options *options, struct bus **ret_bus,
                            struct muster_error *err)
{
    char events[ENDPOINT_MAX + 1];
    char events_what[2 * ENDPOINT_MAX + 32];
    bool keys = options->keys != NULL && bus_keys_count(options->keys) > 0;
    enum muster_status status = bus_check_listen(options->listen, keys ? NULL : options->db, err);
    struct bus *bus;

    if (status != MUSTER_OK)
        return status;
    bus = calloc(1, sizeof *bus);
    if (bus == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the sockets");
    zmq_msg_init(&bus->frame);
    bundle_begin(&bus->out, WIRE_EVENT_MAX);
    bus->keys = options->keys;
    bus->topic = options->topic;
    bus->topic_arg = options->arg;
    bus->now_unix_ms = (int64_t)time(NULL) * 1000;
    bus_endpoint_of_events(options->listen, events);
    snprintf(events_what, sizeof events_what, "%s's events %s %s", options->listen,
             bus_endpoint_is_ipc(events) ? "socket" : "port",
             bus_endpoint_is_ipc(events) ? events + strlen("ipc://") : strrchr(events, ':') + 1);
    status = bus_make_sockets(bus, options, err);
    if (status == MUSTER_OK)
        status = bus_bind_one(bus->publisher, events, events_what, bus->events_endpoint, err);
    if (status == MUSTER_OK)
        bus_note_file(&bus->files[0], bus->events_endpoint);
    if (status == MUSTER_OK) /* last: who reaches us here may be told of the other */
        status =
            bus_bind_one(bus->router, options->listen, options->listen, bus->command_endpoint, err);
    if (status == MUSTER_OK)
        bus_note_file(&bus->files[1], bus->command_endpoint);
    memcpy(bus->self.endpoint, bus->events_endpoint, sizeof bus->self.endpoint);
    if (status == MUSTER_OK && bus->zap != NULL)
        bus_peers_watch((int)bus_endpoint_port(strrchr(bus->events_endpoint, ':') + 1));
    if (status != MUSTER_OK) {
        bus_close(&bus);
        return status;
    }
    *ret_bus = bus;
    return MUSTER_OK;
}

void bus_close(struct bus **bus)
{
    if (*bus == NULL)
        return;
    bus_remove_file(&(*bus)->files[0]);
    bus_remove_file(&(*bus)->files[1]);
    zmq_msg_close(&(*bus)->frame);
    zsock_destroy(&(*bus)->commands);
    zsock_destroy(&(*bus)->events);
    bus_zap_close(&(*bus)->zap);
    free(*bus);
    *bus = NULL;
}

const char *bus_command_endpoint(const struct bus *bus)
{
    return bus->command_endpoint;
}

const char *bus_events_endpoint(const struct bus *bus)
{
    return bus->events_endpoint;
}

const struct bus_counters *bus_counters(const struct bus *bus)
{
    return &bus->counters;
}

/* --- receive ---------------------------------------------------------------------------------- */

/* The key of the connection over which this came. NULL: that key is not on the list now. */
static const struct key_grant *bus_grant_of(const struct bus *bus, zmq_msg_t *message)
{
    const char *user = zmq_msg_gets(message, "User-Id");

    return user == NULL || user[0] == '\0' ? NULL : bus_keys_public(bus->keys, user);
}

/* For a connection with a key: counts what it holds, and whose it is. */
static void bus_note_part(const struct bus *bus, uint64_t route, zmq_msg_t *part)
{
    if (bus->zap != NULL)
        bus_peers_took(route, zmq_msg_get(part, ZMQ_SRCFD), zmq_msg_size(part),
                       zmq_msg_gets(part, "User-Id"));
}

/* A listener that may hear the topic is put on it; all others hear nothing. */
static void bus_grant_topic(struct bus *bus, zmq_msg_t *message)
{
    const struct key_grant *grant = bus_grant_of(bus, message);
    const char *bytes = zmq_msg_data(message);
    size_t size = zmq_msg_size(message);
    bool ends = size >= 2 && size <= JOB_NAME_MAX + 2 && bytes[size - 1] == '\0'; /* as a string */

    bus_note_part(bus, 0, message);
    if (ends && bytes[0] == 1 && grant != NULL &&
        authority_hears(grant, bytes + 1, bus->now_unix_ms))
        zmq_setsockopt(bus->publisher, ZMQ_SUBSCRIBE, bytes + 1, size - 1);
    else if (ends && bytes[0] == 0)
        zmq_setsockopt(bus->publisher, ZMQ_UNSUBSCRIBE, bytes + 1, size - 1);
    else
        bus->counters.dropped_topics++;
}

/* A job's name as it was subscribed to, with its end. */
static void bus_tell_topic(const struct bus *bus, zmq_msg_t *message)
{
    const char *bytes = zmq_msg_data(message);
    size_t size = zmq_msg_size(message);

    if (size >= 3 && size <= JOB_NAME_MAX + 2 && (unsigned char)bytes[0] <= 1 &&
        strnlen(bytes + 1, size - 1) == size - 2)
        bus->topic(bus->topic_arg, bytes + 1, bytes[0] == 1);
}

/* Without keys libzmq keeps the subscriptions, and tells of them only a relay, which has its own.
 */
static void bus_drain_subscriptions(struct bus *bus)
{
    zmq_msg_t message;

    zmq_msg_init(&message);
    while (bus->publisher != NULL && zmq_msg_recv(&message, bus->publisher, ZMQ_DONTWAIT) >= 0)
        if (bus->zap != NULL)
            bus_grant_topic(bus, &message);
        else if (bus->topic != NULL)
            bus_tell_topic(bus, &message);
    zmq_msg_close(&message);
}

/* The descriptor shows only what came since its socket was last touched; for what is there already,
 * ask the socket. */
static bool bus_has_message(void *socket)
{
    int events = 0;
    size_t size = sizeof events;

    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}

/* This calls poll and not zmq_poll, which asks both sockets for their state twice per call. */
bool bus_wait(struct bus *bus, int fd, int64_t timeout_ms)
{
    struct pollfd items[] = {
        {.fd = bus->router_fd, .events = POLLIN},
        {.fd = bus->publisher_fd, .events = POLLIN},
        {.fd = fd, .events = POLLIN}, /* below 0: passed over */
        {.fd = bus->zap != NULL ? bus_zap_fd(bus->zap) : -1, .events = POLLIN},
    };
    bool subscribed = bus->published && bus->publisher != NULL && bus_has_message(bus->publisher);

    bus->published = false;
    if (bus->zap != NULL && bus_zap_serve(bus->zap, bus->now_unix_ms))
        timeout_ms = 0;
    if (bus->zap != NULL)
        bus->counters.refused_keys = bus_zap_refused(bus->zap);
    if (subscribed || bus->in.left > 0 || bus_has_message(bus->router))
        timeout_ms = 0;
    if (poll(items, sizeof items / sizeof *items,
             timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms) < 0)
        return false; /* EINTR: the caller comes again */
    if (subscribed || items[1].revents != 0)
        bus_drain_subscriptions(bus);
    return items[2].revents != 0;
}

static void bus_drop_rest(struct bus *bus, zmq_msg_t *message)
{
    while (zmq_msg_more(message)) {
        if (zmq_msg_recv(message, bus->router, ZMQ_DONTWAIT) < 0)
            return;
        bus_note_part(bus, 0, message);
    }
}

/* The connection that a message came over. False: it chose its own name. */
static bool bus_connection_of(zmq_msg_t *id, uint32_t *ret_connection)
{
    const uint8_t *bytes = zmq_msg_data(id);

    if (zmq_msg_size(id) != ROUTING_ID_SIZE || bytes[0] != 0)
        return false;
    *ret_connection =
        (uint32_t)bytes[1] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 8 | bytes[4];
    return true;
}

static uint64_t bus_route_to(uint32_t connection, uint32_t peer)
{
    return (uint64_t)peer << ROUTE_PEER_SHIFT | connection;
}

static void bus_send_bundled(struct bus *bus, uint32_t connection, uint32_t peer,
                             const uint8_t *frame, size_t size);

/* Frames are judged by authority.c; a hello is in none. */
static bool bus_key_may_ask(const struct bus *bus, zmq_msg_t *message)
{
    const struct key_grant *grant = bus_grant_of(bus, message);

    return grant != NULL && key_trouble(grant, bus->now_unix_ms) == NULL;
}

/* Answers a relay that asks whether a broker is here. */
static void bus_answer_hello(struct bus *bus, const struct bundle_entry *entry)
{
    uint8_t bytes[BUNDLE_HELLO_MAX];
    struct bundle_hello hello;

    if (!bundle_hello_read(entry->frame, entry->size, &hello))
        return;
    bus->met_itself |= hello.sender != 0 && hello.sender == bus->self.sender;
    if (!bus->silent && (bus->zap == NULL || bus_key_may_ask(bus, &bus->frame)))
        bus_send_bundled(bus, bus->in_from, BUNDLE_CONTROL, bytes,
                         bundle_hello_write(&bus->self, bytes));
}

/* The sockets take a little more than a bundle's frames, for the bytes around them. */
static enum bus_received bus_frame_fits(struct bus *bus, const struct bus_frame *frame)
{
    if (frame->size <= WIRE_FRAME_MAX)
        return BUS_FRAME;
    bus->counters.dropped_shape++;
    return BUS_DROPPED;
}

void bus_refused_key(struct bus *bus, uint64_t route)
{
    bus->counters.dropped_keys++;
    bus_peers_refused(bus_route_to((uint32_t)route, BUNDLE_SELF), clock_ms(CLOCK_BOOTTIME));
}

/* The next frame of a bundle that came. The sender's key is looked up for each frame: between two
 * passes the list may have changed. */
static enum bus_received bus_next_of_bundle(struct bus *bus, struct bus_frame *ret_frame)
{
    struct bundle_entry entry;

    if (!bundle_next(&bus->in, &entry))
        return BUS_DROPPED;
    if (entry.peer == BUNDLE_CONTROL) {
        bus_answer_hello(bus, &entry);
        return BUS_DROPPED; /* each one counts in its pass */
    }
    *ret_frame =
        (struct bus_frame){.route = bus_route_to(bus->in_from, entry.peer),
                           .grant = bus->zap != NULL ? bus_grant_of(bus, &bus->frame) : NULL,
                           .data = entry.frame,
                           .size = entry.size};
    if (bus->zap == NULL || ret_frame->grant != NULL)
        return bus_frame_fits(bus, ret_frame);
    bus_refused_key(bus, ret_frame->route);
    return BUS_DROPPED;
}

/* A message with a routing id that is whole, in bus->frame. */
static enum bus_received bus_take(struct bus *bus, uint32_t connection, struct bus_frame *ret_frame)
{
    *ret_frame = (struct bus_frame){.route = bus_route_to(connection, BUNDLE_SELF),
                                    .data = zmq_msg_data(&bus->frame),
                                    .size = zmq_msg_size(&bus->frame)};
    if (bus->zap != NULL && (ret_frame->grant = bus_grant_of(bus, &bus->frame)) == NULL) {
        bus_refused_key(bus, ret_frame->route);
        return BUS_DROPPED;
    }
    bus->in_from = connection;
    switch (bundle_open(ret_frame->data, ret_frame->size, &bus->in)) {
    case BUNDLE_WHOLE:
        return bus_next_of_bundle(bus, ret_frame);
    case BUNDLE_BROKEN:
        bus->counters.dropped_shape++;
        return BUS_DROPPED;
    case BUNDLE_OTHER: /* its reader refuses it by its version */
    case BUNDLE_NONE:
        break;
    }
    return bus_frame_fits(bus, ret_frame);
}

enum bus_received bus_receive(struct bus *bus, struct bus_frame *ret_frame)
{
    zmq_msg_t id;
    uint32_t connection = 0;
    bool known;
    bool whole;

    if (bus->in.left > 0)
        return bus_next_of_bundle(bus, ret_frame);
    zmq_msg_init(&id);
    if (zmq_msg_recv(&id, bus->router, ZMQ_DONTWAIT) < 0)
        return BUS_NOTHING;
    bus->counters.received++;
    known = bus_connection_of(&id, &connection);
    whole = zmq_msg_more(&id) && zmq_msg_recv(&bus->frame, bus->router, ZMQ_DONTWAIT) >= 0;
    zmq_msg_close(&id);
    if (whole)
        bus_note_part(bus, known ? bus_route_to(connection, BUNDLE_SELF) : 0, &bus->frame);
    whole = whole && !zmq_msg_more(&bus->frame);
    if (!whole) {
        bus_drop_rest(bus, &bus->frame);
        bus->counters.dropped_shape++;
        return BUS_DROPPED;
    }
    if (known)
        return bus_take(bus, connection, ret_frame);
    bus->counters.dropped_identity++;
    return BUS_DROPPED;
}

static bool bus_user(zmq_msg_t *frame, unsigned *ret_uid)
{
    struct ucred who = {0};
    socklen_t size = sizeof who;
    int fd = zmq_msg_get(frame, ZMQ_SRCFD);

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid == 0)
        return false;
    *ret_uid = who.uid;
    return true;
}

const struct key_grant *bus_grant(const struct bus *bus, const char *public_key)
{
    return bus_keys_public(bus->keys, public_key);
}

void bus_sender(struct bus *bus, const struct bus_frame *frame, char *ret_text, size_t size)
{
    const char *address = zmq_msg_gets(&bus->frame, "Peer-Address");
    unsigned uid;

    if (frame->grant != NULL && (frame->kept || address == NULL))
        snprintf(ret_text, size, "key %s", frame->grant->name);
    else if (frame->grant != NULL)
        snprintf(ret_text, size, "key %s at %s", frame->grant->name, address);
    else if (bus_endpoint_is_ipc(bus->command_endpoint) && bus_user(&bus->frame, &uid))
        snprintf(ret_text, size, "local socket uid %u", uid);
    else
        snprintf(ret_text, size, "a process at %s", address != NULL ? address : "this host");
}

/* --- send ------------------------------------------------------------------------------------- */

static bool bus_send_now(struct bus *bus, const uint8_t id[ROUTING_ID_SIZE], const uint8_t *frame,
                         size_t size)
{
    if (zmq_send(bus->router, id, ROUTING_ID_SIZE, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        if (zmq_errno() == EAGAIN)
            bus->counters.full++;
        else
            bus->counters.unreachable++;
        return false;
    }
    if (zmq_send(bus->router, frame, size, ZMQ_DONTWAIT) < 0) {
        bus->counters.unreachable++;
        return false;
    }
    bus->counters.sent++;
    return true;
}

static bool bus_send_direct(struct bus *bus, uint32_t connection, const uint8_t *frame, size_t size)
{
    const uint64_t route = bus_route_to(connection, BUNDLE_SELF);
    const uint8_t id[ROUTING_ID_SIZE] = {0, (uint8_t)(connection >> 24),
                                         (uint8_t)(connection >> 16), (uint8_t)(connection >> 8),
                                         (uint8_t)connection};

    if (bus->zap != NULL && !bus_peers_queue(route, size)) {
        bus->counters.full++;
        return false;
    }
    if (bus_send_now(bus, id, frame, size))
        return true;
    if (bus->zap != NULL)
        bus_peers_unqueue(route, size, zmq_errno() == EAGAIN);
    return false;
}

void bus_flush(struct bus *bus)
{
    if (bus->out.entries > 0)
        bus_send_direct(bus, bus->out_to, bus->out.bytes, bus->out.size);
    bundle_begin(&bus->out, WIRE_EVENT_MAX);
}

/* Answers follow the order of what they answer, so those to one relay are beside each other: one
 * open bundle is enough. */
static void bus_send_bundled(struct bus *bus, uint32_t connection, uint32_t peer,
                             const uint8_t *frame, size_t size)
{
    if (bus->out_to != connection)
        bus_flush(bus);
    bus->out_to = connection;
    if (bundle_add(&bus->out, peer, frame, size))
        return;
    bus_flush(bus);
    bundle_add(&bus->out, peer, frame, size);
}

bool bus_send(struct bus *bus, uint64_t route, const uint8_t *frame, size_t size)
{
    const uint32_t peer = (uint32_t)(route >> ROUTE_PEER_SHIFT);

    if (peer == BUNDLE_SELF)
        return bus_send_direct(bus, (uint32_t)route, frame, size);
    bus_send_bundled(bus, (uint32_t)route, peer, frame, size);
    return true;
}

void bus_is_relay(struct bus *bus, uint64_t sender, uint32_t depth)
{
    bus->self.sender = sender;
    bus->self.depth = depth;
    bus->silent = depth == 0 || depth > BUNDLE_DEPTH_MAX;
}

bool bus_met_itself(const struct bus *bus)
{
    return bus->met_itself;
}

void bus_publish(struct bus *bus, const char *job, const uint8_t *frame, size_t size)
{
    if (bus->publisher == NULL)
        return; /* it is opened again: nodes ask for what they lack */
    bus->published = true;
    /* the topic's own end, so that job "a" does not hear job "ab" */
    if (zmq_send(bus->publisher, job, strlen(job) + 1, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return;
    if (zmq_send(bus->publisher, frame, size, ZMQ_DONTWAIT) >= 0)
        bus->counters.published++;
}

/* --- keys that change ------------------------------------------------------------------------- */

/* A listener hears its topic as long as its connection lasts, and libzmq cannot end one: all end.
 * Those who may connect again, and ask for the events that they lack. */
static void bus_drop_listeners(struct bus *bus)
{
    zsock_destroy(&bus->events);
    bus->publisher = NULL;
    bus->publisher_fd = -1;
}

static void bus_publish_again(struct bus *bus)
{
    struct muster_error err;
    enum muster_status status = MUSTER_OK;

    if (bus->events == NULL)
        status = bus_make_publisher(bus, &err);
    if (status == MUSTER_OK && zmq_bind(bus->publisher, bus->events_endpoint) != 0)
        status = error_set_code(&err, MUSTER_E_IO, zmq_errno(), "%s", zmq_strerror(zmq_errno()));
    if (status == MUSTER_OK)
        return;
    bus_drop_listeners(bus); /* the port may be taken for a moment more */
    bus->counters.rebinds_failed++;
}

bool bus_asks_for_keys(const struct bus *bus)
{
    return bus->zap != NULL;
}

void bus_look_at_keys(struct bus *bus, int64_t now_unix_ms)
{
    struct muster_error err;
    bool lost = false;

    bus->now_unix_ms = now_unix_ms;
    if (bus->zap == NULL)
        return;
    if (bus->publisher == NULL)
        bus_publish_again(bus);
    if (now_unix_ms - bus->looked_unix_ms < LOOK_MS && now_unix_ms >= bus->looked_unix_ms &&
        !bus_keys_changed(bus->keys))
        return;
    bus->looked_unix_ms = now_unix_ms;
    if (bus_keys_look(bus->keys, now_unix_ms, &lost, &err) == MUSTER_OK)
        bus->keys_unread = false;
    else if (!bus->keys_unread) {
        bus->keys_unread = true;
        broker_log(LOG_LEVEL_ERROR, "nobody is let in until the list of keys is mended: %s",
                   err.text);
    }
    if (lost)
        bus_drop_listeners(bus);
}
