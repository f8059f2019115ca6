/* bus - see bus.h.
 *
 * czmq makes the sockets and sets their options; the hot path is plain zmq_msg_t. czmq would take
 * SIGTERM and SIGINT for itself when the first socket is made: zsys_handler_set(NULL) comes before.
 */
#include "broker/bus.h"

#include "broker/base/dirs.h"
#include "broker/base/failpoint.h"
#include "broker/bus_peers.h"
#include "broker/bus_zap.h"
#include "broker/core/contract/authority.h"
#include "broker/log.h"
#include "schema/error.h"
#include "schema/limits.h"

#include <czmq.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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
#define LOOK_MS 1000 /* how long a key that was revoked still counts, at most */
#define EVENTS_SUFFIX ".events"
#define ROUTING_ID_SIZE 5             /* an automatic one: a zero byte and 32 bits */
#define ROUTE_BIT (UINT64_C(1) << 32) /* so that no route is 0 */

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
    bool keys_unread; /* and that was said */
    zmq_msg_t frame;  /* what the last bus_receive lent */
    char command_endpoint[ENDPOINT_MAX + 1];
    char events_endpoint[ENDPOINT_MAX + 1];
    struct socket_file {
        const char *path; /* NULL: none of ours */
        dev_t device;
        ino_t inode;
    } files[2];
    struct bus_counters counters;
};

/* --- endpoints -------------------------------------------------------------------------------- */

static bool bus_starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static enum muster_status check_ipc(const char *listen, struct muster_error *err)
{
    const char *path = listen + strlen("ipc://");
    const size_t path_max = sizeof((struct sockaddr_un *)NULL)->sun_path - sizeof EVENTS_SUFFIX;

    if (path[0] == '@')
        return error_set(err, MUSTER_E_ARGUMENT,
                         "listen address %s: an abstract socket can be used by every user of this "
                         "host; use a path, as ipc:///run/muster/broker.sock",
                         listen);
    if (path[0] != '/')
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "listen address %s: nodes run in other directories, so the path must begin "
            "with '/', as ipc:///run/muster/broker.sock",
            listen);
    if (path[strlen(path) - 1] == '/')
        return error_set(err, MUSTER_E_ARGUMENT, "listen address %s names no file", listen);
    if (strlen(path) > path_max)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "listen address %.120s: its path has %zu bytes, at most %zu fit into a "
                         "socket's name; use a shorter one",
                         listen, strlen(path), path_max);
    return MUSTER_OK;
}

static bool is_loopback(const char *host, size_t length)
{
    static const char *const names[] = {"localhost", "[::1]", "lo", "::1"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == length && strncmp(host, names[i], length) == 0)
            return true;
    }
    return bus_starts(host, "127.") && strspn(host, "0123456789.") == length;
}

/* -1 = any free port, -2 = not a port that can be used */
static long port_of(const char *text)
{
    char *end;
    long port;

    if (strcmp(text, "*") == 0 || strcmp(text, "0") == 0)
        return -1;
    if (text[0] < '0' || text[0] > '9')
        return -2;
    port = strtol(text, &end, 10);
    return *end == '\0' && port >= 1 && port <= 65534 ? port : -2;
}

static enum muster_status check_tcp(const char *listen, const char *db, struct muster_error *err)
{
    const char *host = listen + strlen("tcp://");
    const char *colon = strrchr(host, ':');

    if (colon == NULL || colon == host || port_of(colon + 1) == -2)
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "listen address %s: write tcp://HOST:PORT with a port from 1 to 65534 (the "
            "next one is for events), or * for any",
            listen);
    if (db == NULL || is_loopback(host, (size_t)(colon - host)))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_ARGUMENT,
                     "listen address %s can be reached from other hosts, and this broker has no "
                     "keys, so anybody there could command it. Make one, then start it: "
                     "`muster key add NAME --job JOB --db %s` and `musterd --db %s --listen %s`; "
                     "or listen on ipc:///PATH or tcp://127.0.0.1:PORT",
                     listen, db, db, listen);
}

enum muster_status bus_check_listen(const char *listen, const char *db, struct muster_error *err)
{
    if (strlen(listen) > ENDPOINT_MAX - sizeof EVENTS_SUFFIX)
        return error_set(err, MUSTER_E_ARGUMENT, "listen address %.60s... is too long", listen);
    if (bus_starts(listen, "ipc://") && listen[6] != '\0')
        return check_ipc(listen, err);
    if (bus_starts(listen, "tcp://"))
        return check_tcp(listen, db, err);
    return error_set(err, MUSTER_E_ARGUMENT,
                     "listen address %s: write ipc:///PATH or tcp://HOST:PORT", listen);
}

/* Where events are published, before wildcards are resolved. */
static void events_listen(const char *listen, char *ret_endpoint)
{
    const char *colon = strrchr(listen, ':');

    if (bus_starts(listen, "ipc://"))
        snprintf(ret_endpoint, ENDPOINT_MAX + 1, "%s" EVENTS_SUFFIX, listen);
    else if (port_of(colon + 1) == -1)
        snprintf(ret_endpoint, ENDPOINT_MAX + 1, "%s", listen);
    else
        snprintf(ret_endpoint, ENDPOINT_MAX + 1, "%.*s:%ld", (int)(colon - listen), listen,
                 port_of(colon + 1) + 1);
}

/* libzmq unlinks what is at an ipc path. The state lock says that no musterd with our database
 * lives; a process with another one, or no musterd at all, would lose its socket without a word. */
static enum muster_status ipc_path_is_free(const char *path, struct muster_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    int fd;
    bool answered;

    if (lstat(path, &info) != 0)
        return MUSTER_OK;
    if (!S_ISSOCK(info.st_mode))
        return error_set(err, MUSTER_E_BUSY,
                         "%s exists and is not a socket; remove it, or listen elsewhere", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot make a socket: %s", strerror(errno));
    memcpy(address.sun_path, path, strlen(path) + 1);
    answered = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
    close(fd);
    if (answered)
        return error_set(err, MUSTER_E_BUSY,
                         "another process listens at %s; stop it, or listen elsewhere", path);
    return MUSTER_OK;
}

/* Who owns the directory can put another socket in place of ours. */
static enum muster_status ipc_directory_is_ours(const char *path, struct muster_error *err)
{
    char directory[PATH_MAX];
    struct stat info;
    enum muster_status status = dirs_parent(path, directory, sizeof directory, err);

    if (status != MUSTER_OK)
        return status;
    if (stat(directory, &info) != 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot look at directory %s: %s", directory,
                              strerror(errno));
    if (info.st_uid == geteuid() || info.st_uid == 0)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_AUTH,
                     "directory %s belongs to another user, who could take over the socket; choose "
                     "another with --listen ipc:///PATH",
                     directory);
}

/* what: for the message, so that it names the address that the user gave. */
static enum muster_status bind_one(void *socket, const char *endpoint, const char *what,
                                   char *ret_endpoint, struct muster_error *err)
{
    size_t size = ENDPOINT_MAX + 1;
    enum muster_status status = MUSTER_OK;

    if (bus_starts(endpoint, "ipc://")) {
        const char *path = endpoint + strlen("ipc://");

        status = dirs_make_parent(path, err);
        if (status == MUSTER_OK)
            status = ipc_directory_is_ours(path, err);
        if (status == MUSTER_OK)
            status = ipc_path_is_free(path, err);
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

/* --- open and close --------------------------------------------------------------------------- */

/* What lies at an ipc endpoint after the bind, so that bus_close removes nothing else. */
static void note_file(struct socket_file *file, const char *endpoint)
{
    struct stat info;

    if (!bus_starts(endpoint, "ipc://") || lstat(endpoint + strlen("ipc://"), &info) != 0)
        return;
    *file = (struct socket_file){
        .path = endpoint + strlen("ipc://"), .device = info.st_dev, .inode = info.st_ino};
}

/* Before the socket is closed: what another musterd binds there afterwards is not ours. */
static void remove_file(const struct socket_file *file)
{
    struct stat info;

    if (file->path != NULL && lstat(file->path, &info) == 0 && info.st_dev == file->device &&
        info.st_ino == file->inode)
        unlink(file->path);
}

static void set_common(const struct bus *bus, zsock_t *socket)
{
    zsock_set_linger(socket, LINGER_MS);
    zsock_set_maxmsgsize(socket, WIRE_FRAME_MAX + (bus->zap != NULL ? WIRE_SEAL : 0));
    zsock_set_handshake_ivl(socket, HANDSHAKE_MS);
    zsock_set_backlog(socket, BACKLOG);
    zsock_set_tcp_keepalive(socket, 1);
    zsock_set_tcp_keepalive_idle(socket, 15);
    zsock_set_tcp_keepalive_intvl(socket, 5);
    zsock_set_tcp_keepalive_cnt(socket, 3);
    zsock_set_tcp_maxrt(socket, 20000);
    zsock_set_ipv6(socket, bus->ipv6 ? 1 : 0);
    zsock_set_rcvhwm(socket, UNREAD_MAX);
}

static bool bus_get_fd(void *socket, int *ret_fd)
{
    size_t size = sizeof *ret_fd;

    return zmq_getsockopt(socket, ZMQ_FD, ret_fd, &size) == 0;
}

static enum muster_status no_socket(struct muster_error *err)
{
    return error_set_code(err, MUSTER_E_IO, zmq_errno(),
                          "cannot make the sockets: %s; raise the limit of open files",
                          zmq_strerror(zmq_errno()));
}

static enum muster_status make_router(struct bus *bus, struct muster_error *err)
{
    bus->commands = zsock_new(ZMQ_ROUTER);
    if (bus->commands == NULL)
        return no_socket(err);
    set_common(bus, bus->commands);
    zsock_set_sndhwm(bus->commands, COMMAND_HWM);
    zsock_set_router_mandatory(bus->commands, 1); /* else what cannot be sent vanishes unseen */
    zsock_set_router_handover(bus->commands, 0);
    bus->router = zsock_resolve(bus->commands);
    if (!bus_get_fd(bus->router, &bus->router_fd))
        return no_socket(err);
    return bus->zap == NULL || bus_zap_guard(bus->zap, bus->router, err) ? MUSTER_OK
                                                                         : MUSTER_E_UNSUPPORTED;
}

static enum muster_status make_publisher(struct bus *bus, struct muster_error *err)
{
    bus->events = zsock_new(ZMQ_XPUB);
    if (bus->events == NULL)
        return no_socket(err);
    set_common(bus, bus->events);
    zsock_set_sndhwm(bus->events, failpoint_small_queue() ? 1 : EVENTS_HWM);
    if (failpoint_small_queue())
        zsock_set_sndbuf(bus->events, 1);
    zsock_set_xpub_nodrop(bus->events, 0); /* one slow node must not hold up the others */
    if (bus->zap != NULL)
        zsock_set_xpub_manual(bus->events, 1); /* a topic is heard by those who may */
    bus->publisher = zsock_resolve(bus->events);
    bus->published = true; /* a socket that was never asked may say nothing by its descriptor */
    if (!bus_get_fd(bus->publisher, &bus->publisher_fd))
        return no_socket(err);
    return bus->zap == NULL || bus_zap_guard(bus->zap, bus->publisher, err) ? MUSTER_OK
                                                                            : MUSTER_E_UNSUPPORTED;
}

/* With keys, TCP asks for them. A local socket's directory says who may use it. */
static enum muster_status make_sockets(struct bus *bus, const struct bus_options *options,
                                       struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    zsys_handler_set(NULL);
    zsys_set_io_threads(IO_THREADS);
    bus->ipv6 = strchr(options->listen, '[') != NULL;
    if (bus->keys != NULL && bus_keys_count(bus->keys) > 0 && bus_starts(options->listen, "tcp://"))
        status = bus_zap_open(zsys_init(), bus->keys, &bus->zap, err);
    if (status == MUSTER_OK)
        status = make_publisher(bus, err);
    return status == MUSTER_OK ? make_router(bus, err) : status;
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
    bus->keys = options->keys;
    bus->now_unix_ms = (int64_t)time(NULL) * 1000;
    events_listen(options->listen, events);
    snprintf(events_what, sizeof events_what, "%s's events %s %s", options->listen,
             bus_starts(events, "ipc://") ? "socket" : "port",
             bus_starts(events, "ipc://") ? events + strlen("ipc://") : strrchr(events, ':') + 1);
    status = make_sockets(bus, options, err);
    if (status == MUSTER_OK)
        status = bind_one(bus->publisher, events, events_what, bus->events_endpoint, err);
    if (status == MUSTER_OK)
        note_file(&bus->files[0], bus->events_endpoint);
    if (status == MUSTER_OK) /* last: who reaches us here may be told of the other */
        status =
            bind_one(bus->router, options->listen, options->listen, bus->command_endpoint, err);
    if (status == MUSTER_OK)
        note_file(&bus->files[1], bus->command_endpoint);
    if (status == MUSTER_OK && bus->zap != NULL)
        bus_peers_watch((int)port_of(strrchr(bus->events_endpoint, ':') + 1));
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
    remove_file(&(*bus)->files[0]);
    remove_file(&(*bus)->files[1]);
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

/* Whose key the connection has that this came over. NULL: none that is on the list now. */
static const struct key_grant *grant_of(const struct bus *bus, zmq_msg_t *message)
{
    const char *user = zmq_msg_gets(message, "User-Id");

    return user == NULL || user[0] == '\0' ? NULL : bus_keys_public(bus->keys, user);
}

/* Of a connection with a key: what it holds, and whose it is. */
static void note_part(const struct bus *bus, uint64_t route, zmq_msg_t *part)
{
    if (bus->zap != NULL)
        bus_peers_took(route, zmq_msg_get(part, ZMQ_SRCFD), zmq_msg_size(part),
                       zmq_msg_gets(part, "User-Id"));
}

/* Who may hear the topic is put on it; all others hear nothing. */
static void grant_topic(struct bus *bus, zmq_msg_t *message)
{
    const struct key_grant *grant = grant_of(bus, message);
    const char *bytes = zmq_msg_data(message);
    size_t size = zmq_msg_size(message);
    bool ends = size >= 2 && size <= JOB_NAME_MAX + 2 && bytes[size - 1] == '\0'; /* as a string */

    note_part(bus, 0, message);
    if (ends && bytes[0] == 1 && grant != NULL &&
        authority_hears(grant, bytes + 1, bus->now_unix_ms))
        zmq_setsockopt(bus->publisher, ZMQ_SUBSCRIBE, bytes + 1, size - 1);
    else if (ends && bytes[0] == 0)
        zmq_setsockopt(bus->publisher, ZMQ_UNSUBSCRIBE, bytes + 1, size - 1);
    else
        bus->counters.dropped_topics++;
}

/* Without keys libzmq keeps the subscriptions, and what it tells of them is only thrown away. */
static void drain_subscriptions(struct bus *bus)
{
    zmq_msg_t message;

    zmq_msg_init(&message);
    while (bus->publisher != NULL && zmq_msg_recv(&message, bus->publisher, ZMQ_DONTWAIT) >= 0)
        if (bus->zap != NULL)
            grant_topic(bus, &message);
    zmq_msg_close(&message);
}

/* A descriptor tells of what came since its socket was last touched; what is there already, only
 * the socket. */
static bool has_message(void *socket)
{
    int events = 0;
    size_t size = sizeof events;

    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}

/* poll and not zmq_poll, which asks both sockets for their state twice a call. */
bool bus_wait(struct bus *bus, int fd, int64_t timeout_ms)
{
    struct pollfd items[] = {
        {.fd = bus->router_fd, .events = POLLIN},
        {.fd = bus->publisher_fd, .events = POLLIN},
        {.fd = fd, .events = POLLIN}, /* below 0: passed over */
        {.fd = bus->zap != NULL ? bus_zap_fd(bus->zap) : -1, .events = POLLIN},
    };
    bool subscribed = bus->published && bus->publisher != NULL && has_message(bus->publisher);

    bus->published = false;
    if (bus->zap != NULL && bus_zap_serve(bus->zap, bus->now_unix_ms))
        timeout_ms = 0;
    if (bus->zap != NULL)
        bus->counters.refused_keys = bus_zap_refused(bus->zap);
    if (subscribed || has_message(bus->router))
        timeout_ms = 0;
    if (poll(items, sizeof items / sizeof *items,
             timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms) < 0)
        return false; /* EINTR: the caller comes again */
    if (subscribed || items[1].revents != 0)
        drain_subscriptions(bus);
    return items[2].revents != 0;
}

static void drop_rest(struct bus *bus, zmq_msg_t *message)
{
    while (zmq_msg_more(message)) {
        if (zmq_msg_recv(message, bus->router, ZMQ_DONTWAIT) < 0)
            return;
        note_part(bus, 0, message);
    }
}

static bool route_of(zmq_msg_t *id, uint64_t *ret_route)
{
    const uint8_t *bytes = zmq_msg_data(id);

    if (zmq_msg_size(id) != ROUTING_ID_SIZE || bytes[0] != 0)
        return false;
    *ret_route = ROUTE_BIT | (uint64_t)bytes[1] << 24 | (uint64_t)bytes[2] << 16 |
                 (uint64_t)bytes[3] << 8 | bytes[4];
    return true;
}

enum bus_received bus_receive(struct bus *bus, struct bus_frame *ret_frame)
{
    zmq_msg_t id;
    uint64_t route = 0;
    bool known;
    bool whole;

    zmq_msg_init(&id);
    if (zmq_msg_recv(&id, bus->router, ZMQ_DONTWAIT) < 0)
        return BUS_NOTHING;
    bus->counters.received++;
    known = route_of(&id, &route);
    whole = zmq_msg_more(&id) && zmq_msg_recv(&bus->frame, bus->router, ZMQ_DONTWAIT) >= 0;
    zmq_msg_close(&id);
    if (whole)
        note_part(bus, known ? route : 0, &bus->frame);
    whole = whole && !zmq_msg_more(&bus->frame);
    if (!whole) {
        drop_rest(bus, &bus->frame);
        bus->counters.dropped_shape++;
        return BUS_DROPPED;
    }
    if (!known) {
        bus->counters.dropped_identity++;
        return BUS_DROPPED;
    }
    *ret_frame = (struct bus_frame){
        .route = route, .data = zmq_msg_data(&bus->frame), .size = zmq_msg_size(&bus->frame)};
    if (bus->zap == NULL)
        return BUS_FRAME;
    ret_frame->grant = grant_of(bus, &bus->frame);
    if (ret_frame->grant != NULL)
        return BUS_FRAME;
    bus->counters.dropped_keys++;
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
    else if (bus_starts(bus->command_endpoint, "ipc://") && bus_user(&bus->frame, &uid))
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

bool bus_send(struct bus *bus, uint64_t route, const uint8_t *frame, size_t size)
{
    const uint8_t id[ROUTING_ID_SIZE] = {0, (uint8_t)(route >> 24), (uint8_t)(route >> 16),
                                         (uint8_t)(route >> 8), (uint8_t)route};

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

/* Who hears a topic keeps hearing it as long as its connection lasts, and libzmq can end none: all
 * end. Those who may connect again, and ask for the events that they lack. */
static void drop_listeners(struct bus *bus)
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
        status = make_publisher(bus, &err);
    if (status == MUSTER_OK && zmq_bind(bus->publisher, bus->events_endpoint) != 0)
        status = error_set_code(&err, MUSTER_E_IO, zmq_errno(), "%s", zmq_strerror(zmq_errno()));
    if (status == MUSTER_OK)
        return;
    drop_listeners(bus); /* the port may be taken for a moment more */
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
    if (now_unix_ms - bus->looked_unix_ms < LOOK_MS && now_unix_ms >= bus->looked_unix_ms)
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
        drop_listeners(bus);
}
