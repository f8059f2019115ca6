/* link - see link.h. */
#include "node/link.h"

#include "node/clock.h"
#include "node/link_key.h"
#include "node/link_socket.h"
#include "schema/brokers.h"
#include "schema/error.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

/* A context takes 5 descriptors, a socket with its monitor and its connection 4. */
#define DESCRIPTORS_OF_LINK 16
#define DESCRIPTORS_OF_SOCKET 6
#define SOCKET_LINGER_MS 200
#define HANDSHAKE_MS 3000 /* as long as the broker waits; then a connection is tried again ... */
#define NEXT_MS (4 * RECONNECT_MS) /* ... or the next address, if there is one */

/* One of the two sockets, with the monitor that tells when its connection broke. */
struct half {
    int type;     /* ZMQ_DEALER or ZMQ_SUB */
    void *socket; /* NULL: not wanted yet, or to be opened again */
    void *monitor;
    int fd, monitor_fd; /* readable when there may be something; only while the sockets are there */
    bool told;          /* the monitor has something to say */
    bool up;            /* connected and shaken hands */
    bool wanted;
    int64_t retry_mono_ms; /* when to try again unless it is up */
    uint64_t connections;  /* that were up so far */
    char endpoint[ENDPOINT_MAX + 1];
};

struct link {
    void *context;
    struct brokers brokers;
    size_t at;              /* the one that both sockets are for */
    int64_t silent_mono_ms; /* it is given up then, unless it is heard before */
    struct half dealer, sub;
    zmq_msg_t frame;
    char topic[JOB_NAME_MAX + 1];
    size_t topic_size; /* with its NUL */
    bool dealer_turn;  /* which socket link_receive looks at first */
    uint64_t jitter;
    unsigned monitor_count;
    char *key_path; /* NULL: no key is shown */
#ifdef MUSTER_FAIL_POINTS
    unsigned drop_every; /* MUSTER_TEST_SUB_DROP: every n-th event frame is lost */
    unsigned event_count;
#endif
};

/* libzmq aborts when it cannot make its descriptors, so see first whether they are to be had. */
static enum muster_status link_check_descriptors(int needed, struct muster_error *err)
{
    int fds[DESCRIPTORS_OF_LINK];
    int count = 0, code = 0;

    while (count < needed && code == 0) {
        fds[count] = eventfd(0, EFD_CLOEXEC);
        if (fds[count] < 0)
            code = errno;
        else
            count++;
    }
    for (int i = 0; i < count; i++)
        close(fds[i]);
    if (code == 0)
        return MUSTER_OK;
    return error_set_code(err, MUSTER_E_IO, code,
                          "the connection to the broker needs %d file descriptors and only %d are "
                          "free: %s; raise the limit (ulimit -n) or close files",
                          needed, count, strerror(code));
}

/* --- one socket ------------------------------------------------------------------------------- */

static bool link_set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool link_get_fd(void *socket, int *ret_fd)
{
    size_t size = sizeof *ret_fd;

    return zmq_getsockopt(socket, ZMQ_FD, ret_fd, &size) == 0;
}

static bool link_set_options(const struct link *link, const struct half *half)
{
    void *socket = half->socket;
    int64_t frame_max = WIRE_EVENT_MAX + WIRE_SEAL;
    bool ok =
        link_set(socket, ZMQ_LINGER, SOCKET_LINGER_MS) && link_set(socket, ZMQ_SNDHWM, 1000) &&
        link_set(socket, ZMQ_RCVHWM, 1000) && link_set(socket, ZMQ_RECONNECT_IVL, -1) &&
        link_set(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) &&
        link_set(socket, ZMQ_TCP_KEEPALIVE, 1) && link_set(socket, ZMQ_TCP_KEEPALIVE_IDLE, 30) &&
        link_set(socket, ZMQ_TCP_KEEPALIVE_INTVL, 10) &&
        link_set(socket, ZMQ_TCP_KEEPALIVE_CNT, 3) &&
        link_set(socket, ZMQ_TCP_MAXRT, TCP_MAXRT_MS) &&
        link_set(socket, ZMQ_IPV6, strchr(half->endpoint, '[') != NULL) &&
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max) == 0;

    if (ok && half->type == ZMQ_DEALER) /* nothing queues up for a broker that is not there */
        return link_set(socket, ZMQ_IMMEDIATE, 1);
    return ok && zmq_setsockopt(socket, ZMQ_SUBSCRIBE, link->topic, link->topic_size) == 0;
}

static bool link_watch_connection(struct link *link, struct half *half)
{
    const int events = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_DISCONNECTED |
                       ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                       ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    char name[40];

    snprintf(name, sizeof name, "inproc://monitor-%u", link->monitor_count++);
    if (socket_monitor(half->socket, name, events) != 0)
        return false;
    half->monitor = zmq_socket(link->context, ZMQ_PAIR);
    return half->monitor != NULL && link_set(half->monitor, ZMQ_LINGER, 0) &&
           socket_connect(half->monitor, name) == 0 &&
           link_get_fd(half->monitor, &half->monitor_fd);
}

static void link_half_close(struct half *half)
{
    if (half->socket != NULL) {
        zmq_socket_monitor(half->socket, NULL, 0);
        zmq_close(half->socket);
    }
    if (half->monitor != NULL)
        zmq_close(half->monitor);
    half->socket = half->monitor = NULL;
    half->up = false;
}

/* Up to a fifth less than RECONNECT_MS, so that the nodes of a job do not all come in the same
 * instant; for all addresses together. xorshift64: a stream of our own. */
static int64_t link_next_pause_ms(struct link *link)
{
    link->jitter ^= link->jitter << 13;
    link->jitter ^= link->jitter >> 7;
    link->jitter ^= link->jitter << 17;
    return (RECONNECT_MS - (int64_t)(link->jitter % (RECONNECT_MS / 5))) /
           (int64_t)link->brokers.count;
}

static void link_half_hear(struct link *link, struct half *half)
{
    zmq_msg_t part;
    uint16_t event;

    zmq_msg_init(&part);
    while (half->monitor != NULL && socket_receive(half->monitor, &part)) {
        if (zmq_msg_size(&part) < sizeof event || !zmq_msg_more(&part))
            continue; /* the address, which follows each event */
        memcpy(&event, zmq_msg_data(&part), sizeof event);
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            half->up = true;
            half->connections++;
            if (half == &link->dealer)
                link_heard(link);
        } else if (half->up || half->retry_mono_ms - clock_ms(CLOCK_MONOTONIC) > RECONNECT_MS) {
            half->up = false; /* the first word of a broken connection; others may follow */
            half->retry_mono_ms = clock_ms(CLOCK_MONOTONIC) + link_next_pause_ms(link);
        }
    }
    zmq_msg_close(&part);
}

static enum muster_status link_endpoint_fails(const struct half *half, struct muster_error *err)
{
    int code = zmq_errno();

    return error_set_code(err, MUSTER_E_ARGUMENT, code,
                          "cannot connect to the %s address \"%s\": %s; write tcp://HOST:PORT or "
                          "ipc://PATH",
                          half->type == ZMQ_DEALER ? "broker's" : "events'", half->endpoint,
                          zmq_strerror(code));
}

/* On failure there is no socket. */
static enum muster_status link_half_open(struct link *link, struct half *half,
                                         struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    half->up = false;
    half->retry_mono_ms =
        clock_ms(CLOCK_MONOTONIC) + (link->brokers.count > 1 ? NEXT_MS : HANDSHAKE_MS);
    half->socket = zmq_socket(link->context, half->type);
    if (half->socket != NULL)
        status = link_key_use(half->socket, half->endpoint, link->key_path, err);
    if (status == MUSTER_OK &&
        (half->socket == NULL || !link_set_options(link, half) ||
         !link_watch_connection(link, half) || !link_get_fd(half->socket, &half->fd) ||
         socket_connect(half->socket, half->endpoint) != 0))
        status = link_endpoint_fails(half, err);
    if (status == MUSTER_OK)
        link_half_hear(link,
                       half); /* a monitor that was never read says nothing by its descriptor */
    else
        link_half_close(half);
    return status;
}

/* A socket's descriptor tells of what came since the socket was last touched; what is there
 * already, only the socket itself. */
static bool link_has_frame(const struct half *half)
{
    return half->socket != NULL && socket_has_frame(half->socket);
}

/* When to open it again. */
static int64_t link_half_ends_ms(const struct link *link, const struct half *half)
{
    if (!half->up)
        return half->retry_mono_ms;
    return half == &link->dealer && link->brokers.count > 1 ? link->silent_mono_ms : INT64_MAX;
}

/* The events of the broker before are no longer heard: the next one tells where its own are. */
static void link_next(struct link *link)
{
    if (link->brokers.count < 2)
        return;
    link_half_close(&link->sub);
    link->sub.wanted = false;
    link->at = (link->at + 1) % link->brokers.count;
    memcpy(link->dealer.endpoint, link->brokers.address[link->at], sizeof link->dealer.endpoint);
}

/* A process that did not run has not listened, so it first reads what came meanwhile. */
static void link_half_mend(struct link *link, struct half *half)
{
    if (!half->wanted)
        return;
    if (half->told || !half->up)
        link_half_hear(link, half);
    if (clock_ms(CLOCK_MONOTONIC) < link_half_ends_ms(link, half) ||
        (half->up && link_has_frame(half)))
        return;
    link_half_close(half);
    if (half == &link->dealer)
        link_next(link);
    if (link_check_descriptors(DESCRIPTORS_OF_SOCKET, NULL) != MUSTER_OK ||
        link_half_open(link, half, NULL) != MUSTER_OK)
        half->retry_mono_ms = clock_ms(CLOCK_MONOTONIC) + link_next_pause_ms(link);
}

/* --- both ------------------------------------------------------------------------------------- */

static enum muster_status link_start(struct link *link, struct muster_error *err)
{
    link->context = zmq_ctx_new();
    if (link->context == NULL)
        return error_set_code(err, MUSTER_E_NOMEM, errno,
                              "cannot make a ZeroMQ context: %s; free memory", strerror(errno));
    zmq_ctx_set(link->context, ZMQ_BLOCKY, 0);
    zmq_ctx_set(link->context, ZMQ_IO_THREADS, 1);
    link->dealer.wanted = true;
    return link_half_open(link, &link->dealer, err);
}

#ifdef MUSTER_FAIL_POINTS
static void link_read_switches(struct link *link)
{
    const char *text = getenv("MUSTER_TEST_SUB_DROP");

    link->drop_every = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static bool link_dropped(struct link *link)
{
    return link->drop_every != 0 && ++link->event_count % link->drop_every == 0;
}
#else
static void link_read_switches(struct link *link)
{
    (void)link;
}

static bool link_dropped(struct link *link)
{
    (void)link;
    return false;
}
#endif

enum muster_status link_open(const char *brokers, const char *job, struct link **ret_link,
                             struct muster_error *err)
{
    struct brokers list;
    struct link *link;
    enum muster_status status;

    if (strlen(job) > JOB_NAME_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the job's name is too long (%d bytes are allowed); shorten it",
                         JOB_NAME_MAX);
    status = brokers_read(brokers, &list, err);
    if (status == MUSTER_OK)
        status = link_check_descriptors(DESCRIPTORS_OF_LINK, err);
    if (status != MUSTER_OK)
        return status;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return error_set(err, MUSTER_E_NOMEM,
                         "no memory for the connection to the broker; free some");
    zmq_msg_init(&link->frame);
    link->dealer.type = ZMQ_DEALER;
    link->sub.type = ZMQ_SUB;
    link->brokers = list;
    memcpy(link->dealer.endpoint, list.address[0], sizeof link->dealer.endpoint);
    memcpy(link->topic, job, strlen(job) + 1);
    link->topic_size = strlen(job) + 1;
    link->jitter =
        ((uint64_t)getpid() << 32 | (uint64_t)clock_ms(CLOCK_MONOTONIC)) ^ (uintptr_t)link;
    link->jitter |= 1;
    link_read_switches(link);
    if (link_key_path() != NULL && (link->key_path = strdup(link_key_path())) == NULL)
        status = error_set(err, MUSTER_E_NOMEM, "no memory to connect to the broker; free some");
    else
        status = link_start(link, err);
    if (status == MUSTER_OK)
        *ret_link = link;
    else
        link_close(&link);
    return status;
}

void link_close(struct link **link)
{
    struct link *l = *link;

    if (l == NULL)
        return;
    *link = NULL;
    zmq_msg_close(&l->frame);
    link_half_close(&l->dealer);
    link_half_close(&l->sub);
    if (l->context != NULL)
        socket_end(l->context);
    free(l->key_path);
    free(l);
}

enum muster_status link_subscribe(struct link *link, const char *endpoint, struct muster_error *err)
{
    char resolved[ENDPOINT_MAX + 1];
    enum muster_status status;

    if (!brokers_events_at(link->dealer.endpoint, endpoint, resolved))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the broker sends events from \"%s\", which cannot be reached "
                         "from \"%s\"; start musterd with a --listen that names its host",
                         endpoint, link->dealer.endpoint);
    if (link->sub.wanted && strcmp(link->sub.endpoint, resolved) == 0)
        return MUSTER_OK;
    link_half_close(&link->sub);
    memcpy(link->sub.endpoint, resolved, sizeof resolved);
    link->sub.wanted = true;
    status = link_half_open(link, &link->sub, err);
    link->sub.wanted = status == MUSTER_OK;
    return status;
}

bool link_is_up(const struct link *link)
{
    return link->dealer.up;
}

uint64_t link_connections(const struct link *link)
{
    return link->dealer.connections;
}

void link_heard(struct link *link)
{
    link->silent_mono_ms = clock_ms(CLOCK_MONOTONIC) + LOST_MS;
}

bool link_send(struct link *link, const void *frame, size_t size)
{
    return link->dealer.socket != NULL && socket_send(link->dealer.socket, frame, size);
}

/* Reads over the rest of a message; true if there was any. */
static bool link_skip_parts(struct link *link, void *socket)
{
    bool any = false;

    while (zmq_msg_more(&link->frame)) {
        any = true;
        if (!socket_receive(socket, &link->frame))
            break;
    }
    return any;
}

static bool link_receive_command(struct link *link)
{
    while (link->dealer.socket != NULL && socket_receive(link->dealer.socket, &link->frame))
        if (!link_skip_parts(link, link->dealer.socket))
            return true;
    return false;
}

static bool link_receive_event(struct link *link)
{
    void *sub = link->sub.socket;

    while (sub != NULL && socket_receive(sub, &link->frame)) {
        bool ours = zmq_msg_size(&link->frame) == link->topic_size &&
                    memcmp(zmq_msg_data(&link->frame), link->topic, link->topic_size) == 0 &&
                    zmq_msg_more(&link->frame) && socket_receive(sub, &link->frame);

        if (!link_skip_parts(link, sub) && ours && !link_dropped(link))
            return true;
    }
    return false;
}

const uint8_t *link_receive(struct link *link, size_t *ret_size)
{
    bool got;

    link->dealer_turn = !link->dealer_turn; /* a flood on one socket does not hide the other */
    if (link->dealer_turn)
        got = link_receive_command(link) || link_receive_event(link);
    else
        got = link_receive_event(link) || link_receive_command(link);
    if (!got)
        return NULL;
    *ret_size = zmq_msg_size(&link->frame);
    return zmq_msg_data(&link->frame);
}

static int64_t link_until_retry_ms(const struct link *link, const struct half *half,
                                   int64_t timeout_ms)
{
    int64_t left_ms = link_half_ends_ms(link, half) - clock_ms(CLOCK_MONOTONIC);

    if (!half->wanted || left_ms >= timeout_ms)
        return timeout_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* poll and not zmq_poll, which asks every socket for its state twice a call. Monitors are always
 * read to their end, so that their descriptors tell all. A descriptor below 0 is passed over. */
bool link_wait(struct link *link, int wake_fd, int64_t timeout_ms)
{
    struct half *halves[] = {&link->dealer, &link->sub};
    struct pollfd items[5] = {{.fd = wake_fd, .events = POLLIN}};

    for (size_t i = 0; i < 2; i++) {
        items[1 + i] =
            (struct pollfd){.fd = halves[i]->socket != NULL ? halves[i]->fd : -1, .events = POLLIN};
        items[3 + i] = (struct pollfd){
            .fd = halves[i]->monitor != NULL ? halves[i]->monitor_fd : -1, .events = POLLIN};
        timeout_ms =
            link_has_frame(halves[i]) ? 0 : link_until_retry_ms(link, halves[i], timeout_ms);
    }
    if (timeout_ms > INT_MAX)
        timeout_ms = INT_MAX;
    if (poll(items, 5, timeout_ms < 0 ? 0 : (int)timeout_ms) < 0)
        items[0].revents = items[3].revents = items[4].revents = 0;
    for (size_t i = 0; i < 2; i++) {
        halves[i]->told = items[3 + i].revents != 0;
        link_half_mend(link, halves[i]);
    }
    return items[0].revents != 0;
}
