/* bus_up - see bus_up.h. libzmq's own reconnecting brings back a connection that broke; only
 * silence, and the next address, need new sockets. */
#include "broker/bus_up.h"

#include "broker/base/clock.h"
#include "broker/bus_endpoint.h"
#include "broker/bus_guard.h"
#include "broker/bus_keys.h"
#include "schema/error.h"
#include "schema/keys/secret.h"
#include "schema/limits.h"

#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define UP_BUNDLES_MAX 16 /* sent and not on their way yet; further ones wait at the caller */
#define UP_UNREAD_MAX 1000
#define UP_LINGER_MS 200
#define UP_NEXT_MS (4 * RECONNECT_MS) /* for a first answer, if there is another address */
#define UP_TOPICS_MAX (16 * GUARD_TOPICS_MAX)

struct up_topic {
    char name[JOB_NAME_MAX + 1];
    bool wanted;
    bool said; /* over `sub`'s connection, or when there is one */
};

struct bus_up {
    struct brokers brokers;
    size_t at;
    char *key_file;
    int epoll_fd;
    void *dealer, *sub; /* NULL: not there, see bus_up_tick; the sub: not known where, either */
    char events[ENDPOINT_MAX + 1]; /* where `sub` is connected to */
    struct up_topic topics[UP_TOPICS_MAX];
    size_t topics_count, topics_said; /* at most GUARD_TOPICS_MAX are said */
    bool reached;
    int64_t heard_ms; /* or when the sockets were opened */
    zmq_msg_t message;
};

/* --- one socket ------------------------------------------------------------------------------- */

static bool up_set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool up_set_options(const char *endpoint, void *socket, int type)
{
    const int64_t most = WIRE_EVENT_MAX + WIRE_SEAL;

    return up_set(socket, ZMQ_LINGER, UP_LINGER_MS) &&
           up_set(socket, ZMQ_SNDHWM, type == ZMQ_DEALER ? UP_BUNDLES_MAX : UP_UNREAD_MAX) &&
           up_set(socket, ZMQ_RCVHWM, UP_UNREAD_MAX) &&
           up_set(socket, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
           up_set(socket, ZMQ_HANDSHAKE_IVL, LOST_MS) && up_set(socket, ZMQ_TCP_KEEPALIVE, 1) &&
           up_set(socket, ZMQ_TCP_KEEPALIVE_IDLE, 30) &&
           up_set(socket, ZMQ_TCP_KEEPALIVE_INTVL, 10) &&
           up_set(socket, ZMQ_TCP_KEEPALIVE_CNT, 3) &&
           up_set(socket, ZMQ_TCP_MAXRT, TCP_MAXRT_MS) &&
           up_set(socket, ZMQ_IPV6, strchr(endpoint, '[') != NULL) &&
           zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most, sizeof most) == 0 &&
           /* nothing queues up for a broker that is not there */
           (type != ZMQ_DEALER || up_set(socket, ZMQ_IMMEDIATE, 1));
}

static enum muster_status up_show_key(void *socket, const char *endpoint, const char *path,
                                      struct muster_error *err)
{
    const size_t size = KEY_TEXT_BYTES + 1;
    struct key_file file = {.name = ""};
    enum muster_status status;

    if (path == NULL || bus_endpoint_is_ipc(endpoint))
        return MUSTER_OK;
    status = bus_keys_read_client(path, clock_ms(CLOCK_REALTIME), &file, err);
    if (status == MUSTER_OK &&
        (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, file.broker_key, size) != 0 ||
         zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, file.public_key, size) != 0 ||
         zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, file.secret_key, size) != 0))
        status = error_set_code(err, MUSTER_E_UNSUPPORTED, zmq_errno(),
                                "this libzmq cannot use key file %s: %s; install one with CURVE, "
                                "as Debian's",
                                path, zmq_strerror(zmq_errno()));
    secret_wipe(&file, sizeof file);
    return status;
}

static bool up_watch(const struct bus_up *up, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(up->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* -1: it has none. */
static int up_fd(void *socket)
{
    int fd = -1;
    size_t size = sizeof fd;

    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

static void up_close_socket(struct bus_up *up, void **socket)
{
    if (*socket == NULL)
        return;
    epoll_ctl(up->epoll_fd, EPOLL_CTL_DEL, up_fd(*socket), NULL);
    zmq_close(*socket);
    *socket = NULL;
}

/* On failure there is none. */
static enum muster_status up_open_socket(struct bus_up *up, int type, const char *endpoint,
                                         void **ret_socket, struct muster_error *err)
{
    void *socket = zmq_socket(zsys_init(), type);
    enum muster_status status = MUSTER_OK;

    if (socket == NULL)
        return error_set_code(err, MUSTER_E_IO, zmq_errno(),
                              "cannot make a socket: %s; raise the limit of open files",
                              zmq_strerror(zmq_errno()));
    status = up_show_key(socket, endpoint, up->key_file, err);
    if (status == MUSTER_OK && (!up_set_options(endpoint, socket, type) ||
                                zmq_connect(socket, endpoint) != 0 || !up_watch(up, up_fd(socket))))
        status = error_set_code(err, MUSTER_E_ARGUMENT, zmq_errno(),
                                "cannot connect to \"%s\": %s; write tcp://HOST:PORT or "
                                "ipc:///PATH",
                                endpoint, zmq_strerror(zmq_errno()));
    *ret_socket = socket;
    if (status != MUSTER_OK)
        up_close_socket(up, ret_socket);
    return status;
}

/* --- events ----------------------------------------------------------------------------------- */

static void up_say_topic(struct bus_up *up, struct up_topic *topic)
{
    if (topic->said || up->topics_said == GUARD_TOPICS_MAX)
        return;
    topic->said = up->sub == NULL ||
                  zmq_setsockopt(up->sub, ZMQ_SUBSCRIBE, topic->name, strlen(topic->name) + 1) == 0;
    up->topics_said += topic->said;
}

/* Makes a new connection, which subscribes only to what is wanted now, the oldest topic first.
 * Events that are published meanwhile are lost, as any event may be: nodes ask for what they
 * lack. */
static enum muster_status up_listen_again(struct bus_up *up, struct muster_error *err)
{
    size_t kept = 0;
    enum muster_status status = MUSTER_OK;

    up_close_socket(up, &up->sub);
    for (size_t i = 0; i < up->topics_count; i++)
        if (up->topics[i].wanted)
            up->topics[kept++] = up->topics[i];
    up->topics_count = kept;
    up->topics_said = 0;
    if (up->events[0] != '\0')
        status = up_open_socket(up, ZMQ_SUB, up->events, &up->sub, err);
    for (size_t i = 0; i < kept; i++) {
        up->topics[i].said = false;
        up_say_topic(up, &up->topics[i]);
    }
    return status;
}

/* Is there a topic that is `wanted`, or not, and `said`, or not? */
static bool up_has_topic(const struct bus_up *up, bool wanted, bool said)
{
    for (size_t i = 0; i < up->topics_count; i++)
        if (up->topics[i].wanted == wanted && up->topics[i].said == said)
            return true;
    return false;
}

static struct up_topic *up_find_topic(struct bus_up *up, const char *name)
{
    for (size_t i = 0; i < up->topics_count; i++)
        if (strcmp(up->topics[i].name, name) == 0)
            return &up->topics[i];
    return NULL;
}

bool bus_up_topic(struct bus_up *up, const char *topic, bool wanted)
{
    struct up_topic *known = up_find_topic(up, topic);
    struct muster_error err;

    if (known == NULL && wanted && strlen(topic) <= JOB_NAME_MAX &&
        up->topics_count < UP_TOPICS_MAX) {
        known = &up->topics[up->topics_count++];
        *known = (struct up_topic){.said = false};
        memcpy(known->name, topic, strlen(topic) + 1);
    }
    if (known == NULL)
        return !wanted;
    known->wanted = wanted;
    if (wanted)
        up_say_topic(up, known);
    /* One that is said for nobody makes room for one that is not said yet. */
    if (up_has_topic(up, true, false) && up_has_topic(up, false, true)) {
        up_listen_again(up, &err); /* if that fails, bus_up_heard does it again */
        known = up_find_topic(up, topic);
    }
    return !wanted || known->said;
}

/* --- which broker ----------------------------------------------------------------------------- */

static enum muster_status up_connect(struct bus_up *up, int64_t now_ms, struct muster_error *err)
{
    struct muster_error unused;

    up_close_socket(up, &up->dealer);
    up->events[0] = '\0'; /* the one before publishes elsewhere */
    up_listen_again(up, &unused);
    up->reached = false;
    up->heard_ms = now_ms;
    return up_open_socket(up, ZMQ_DEALER, up->brokers.address[up->at], &up->dealer, err);
}

enum muster_status bus_up_heard(struct bus_up *up, const char *events, int64_t now_ms,
                                struct muster_error *err)
{
    char endpoint[ENDPOINT_MAX + 1];

    up->heard_ms = now_ms;
    up->reached = true;
    if (!brokers_events_at(up->brokers.address[up->at], events, endpoint))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the broker sends events from \"%s\", which cannot be reached "
                         "from \"%s\"; start musterd with a --listen that names its host",
                         events, up->brokers.address[up->at]);
    if (up->sub != NULL && strcmp(endpoint, up->events) == 0)
        return MUSTER_OK;
    memcpy(up->events, endpoint, sizeof up->events);
    return up_listen_again(up, err);
}

bool bus_up_tick(struct bus_up *up, int64_t now_ms, struct muster_error *err)
{
    const bool others = up->brokers.count > 1;
    const int64_t most = up->reached || !others ? LOST_MS : UP_NEXT_MS;

    if (now_ms - up->heard_ms < most)
        return false;
    /* Its connection may be good, and there is no other; but a key file may have changed. */
    if (!others && up->dealer != NULL && up->key_file == NULL) {
        up->heard_ms = now_ms;
        up->reached = false;
        return true;
    }
    up->at = (up->at + 1) % up->brokers.count;
    err->text[0] = '\0';
    up_connect(up, now_ms, err);
    return true;
}

const char *bus_up_address(const struct bus_up *up)
{
    return up->brokers.address[up->at];
}

bool bus_up_is_reached(const struct bus_up *up)
{
    return up->reached;
}

/* --- messages --------------------------------------------------------------------------------- */

static bool up_has(void *socket)
{
    int events = 0;
    size_t size = sizeof events;

    return socket != NULL && zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 &&
           (events & ZMQ_POLLIN) != 0;
}

bool bus_up_is_ready(const struct bus_up *up)
{
    return up_has(up->dealer) || up_has(up->sub);
}

bool bus_up_send(struct bus_up *up, const uint8_t *bytes, size_t size)
{
    return up->dealer != NULL && zmq_send(up->dealer, bytes, size, ZMQ_DONTWAIT) >= 0;
}

static bool up_receive_part(struct bus_up *up, void *socket)
{
    return zmq_msg_recv(&up->message, socket, ZMQ_DONTWAIT) >= 0;
}

/* True if it has no more parts. */
static bool up_was_last(struct bus_up *up, void *socket)
{
    bool last = true;

    while (zmq_msg_more(&up->message) && up_receive_part(up, socket))
        last = false;
    return last;
}

const uint8_t *bus_up_receive(struct bus_up *up, size_t *ret_size)
{
    while (up->dealer != NULL && up_receive_part(up, up->dealer)) {
        if (!up_was_last(up, up->dealer))
            continue;
        *ret_size = zmq_msg_size(&up->message);
        return zmq_msg_data(&up->message);
    }
    return NULL;
}

const uint8_t *bus_up_event(struct bus_up *up, char ret_topic[JOB_NAME_MAX + 1], size_t *ret_size)
{
    while (up->sub != NULL && up_receive_part(up, up->sub)) {
        size_t size = zmq_msg_size(&up->message);
        const char *topic = zmq_msg_data(&up->message);
        bool ours = size >= 2 && size <= JOB_NAME_MAX + 1 && strnlen(topic, size) == size - 1 &&
                    zmq_msg_more(&up->message);

        if (ours)
            memcpy(ret_topic, topic, size);
        ours = ours && up_receive_part(up, up->sub);
        if (!up_was_last(up, up->sub) || !ours)
            continue;
        *ret_size = zmq_msg_size(&up->message);
        return zmq_msg_data(&up->message);
    }
    return NULL;
}

/* --- open and close --------------------------------------------------------------------------- */

int bus_up_fd(const struct bus_up *up)
{
    return up->epoll_fd;
}

enum muster_status bus_up_open(const struct brokers *brokers, const char *key_file, int watch_fd,
                               int64_t now_ms, struct bus_up **ret_up, struct muster_error *err)
{
    struct bus_up *up = calloc(1, sizeof *up);
    enum muster_status status = MUSTER_OK;

    if (up == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the connection to the broker");
    zsys_handler_set(NULL);
    zmq_msg_init(&up->message);
    up->brokers = *brokers;
    up->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (key_file != NULL && (up->key_file = strdup(key_file)) == NULL)
        status = error_set(err, MUSTER_E_NOMEM, "no memory for the connection to the broker");
    else if (up->epoll_fd < 0 || (watch_fd >= 0 && !up_watch(up, watch_fd)))
        status = error_set_code(err, MUSTER_E_IO, errno, "cannot wait for several sockets: %s",
                                strerror(errno));
    else
        status = up_connect(up, now_ms, err);
    if (status == MUSTER_OK)
        *ret_up = up;
    else
        bus_up_close(&up);
    return status;
}

void bus_up_close(struct bus_up **up)
{
    if (*up == NULL)
        return;
    up_close_socket(*up, &(*up)->dealer);
    up_close_socket(*up, &(*up)->sub);
    zmq_msg_close(&(*up)->message);
    if ((*up)->epoll_fd >= 0)
        close((*up)->epoll_fd);
    free((*up)->key_file);
    free(*up);
    *up = NULL;
}
