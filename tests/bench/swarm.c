/* swarm - the nodes: sockets and the real wire protocol; see swarm.h. */
#include "tests/bench/swarm.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 120000
#define QUIET_MS 30 /* nothing came for so long: everybody rests */

pid_t bench_server; /* musterd or the floor's echo; 0 = none */

void bench_stop_server(int signo)
{
    relays_stop(signo);
    if (bench_server <= 0)
        return;
    kill(bench_server, signo);
    waitpid(bench_server, NULL, 0);
    bench_server = 0;
}

__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...)
{
    va_list args;

    fputs("bench: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    bench_stop_server(SIGKILL);
    exit(EXIT_FAILURE);
}

double bench_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* All threads of it, also of one that others keep from running. */
static double server_cpu_ms(void)
{
    struct timespec used = {0};
    clockid_t clock;

    if (clock_getcpuclockid(bench_server, &clock) == 0)
        clock_gettime(clock, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

double bench_server_mib(void)
{
    char path[64], line[128];
    double kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)bench_server);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtod(line + 6, NULL);
    if (file != NULL)
        fclose(file);
    return kib / 1024;
}

double swarm_begin(struct swarm *swarm)
{
    swarm->cpu_from_ms = server_cpu_ms();
    return bench_now_ms();
}

void swarm_meet(struct swarm *swarm)
{
    if (swarm->mates == NULL)
        return;
    swarm->mates->arrived++;
    swarm->turns++;
    while (swarm->mates->arrived < swarm->turns * swarm->mates->count)
        swarm_pump(swarm, 1);
}

double swarm_end(struct swarm *swarm, double began_ms)
{
    double last_ms = swarm->decided_ms;

    swarm->cpu_ms = server_cpu_ms() - swarm->cpu_from_ms;
    swarm->server_mib = bench_server_mib();
    if (swarm->mates != NULL) {
        swarm->mates->decided_ms[swarm->mine] = swarm->decided_ms;
        swarm_meet(swarm);
        for (size_t i = 0; i < swarm->mates->count; i++)
            last_ms = fmax(last_ms, swarm->mates->decided_ms[i]);
    }
    return last_ms - began_ms;
}

/* --- the swarm: sockets ----------------------------------------------------------------------- */

static bool show_key(void *socket, const struct key_file *key)
{
    const size_t size = KEY_TEXT_BYTES + 1;

    return key == NULL ||
           (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, key->broker_key, size) == 0 &&
            zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, key->public_key, size) == 0 &&
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, key->secret_key, size) == 0);
}

void *swarm_connect(struct swarm *swarm, int type, const char *endpoint, const struct key_file *key)
{
    void *socket = zmq_socket(swarm->context, type);
    int none = 0, again_ms = RECONNECT_MS;

    if (socket == NULL || zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none) != 0 ||
        zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &again_ms, sizeof again_ms) != 0 ||
        !show_key(socket, key) || zmq_connect(socket, endpoint) != 0)
        bench_die("cannot connect to %s: %s", endpoint, zmq_strerror(errno));
    return socket;
}

static void swarm_begin_with(struct swarm *swarm, size_t first, size_t count)
{
    memset(swarm, 0, sizeof *swarm);
    arena_init(&swarm->arena, 0);
    swarm->count = swarm->total = swarm->world = count;
    swarm->first = first;
    swarm->opened_ms = bench_now_ms();
    swarm->context = zmq_ctx_new();
    swarm->nodes = calloc(count, sizeof *swarm->nodes);
    swarm->items = calloc(3 * count, sizeof *swarm->items);
    swarm->items_count = 2 * count;
    if (swarm->context == NULL || swarm->nodes == NULL || swarm->items == NULL)
        bench_die("no memory");
    zmq_ctx_set(swarm->context, ZMQ_MAX_SOCKETS, (int)(4 * count + 16));
    for (size_t i = 0; i < count; i++) {
        swarm->nodes[i].rank = first + i;
        snprintf(swarm->nodes[i].job, sizeof swarm->nodes[i].job, "bench");
    }
}

void swarm_open(struct swarm *swarm, size_t first, size_t count, const struct door *doors,
                size_t each, const struct key_file *key)
{
    swarm_begin_with(swarm, first, count);
    for (size_t i = 0; i < count; i++) {
        const struct door *door = &doors[(first + i) / each];
        struct node *node = &swarm->nodes[i];

        node->dealer = swarm_connect(swarm, ZMQ_DEALER, door->commands, key);
        node->sub = swarm_connect(swarm, ZMQ_SUB, door->events, key);
        if (zmq_setsockopt(node->sub, ZMQ_SUBSCRIBE, "bench", sizeof "bench") != 0)
            bench_die("cannot subscribe: %s", zmq_strerror(errno));
        swarm->items[2 * i] = (zmq_pollitem_t){.socket = node->dealer, .events = ZMQ_POLLIN};
        swarm->items[2 * i + 1] = (zmq_pollitem_t){.socket = node->sub, .events = ZMQ_POLLIN};
    }
}

void swarm_open_behind_hosts(struct swarm *swarm, size_t count, const struct door *door,
                             size_t each)
{
    swarm_begin_with(swarm, 0, count);
    swarm_hosts_open(swarm, door, each);
}

void swarm_split(struct swarm *swarm, size_t world)
{
    swarm->world = world;
    for (size_t i = 0; i < swarm->count; i++) {
        struct node *node = &swarm->nodes[i];

        node->rank = i % world;
        zmq_setsockopt(node->sub, ZMQ_UNSUBSCRIBE, node->job, strlen(node->job) + 1);
        snprintf(node->job, sizeof node->job, "bench-%zu", i / world);
        if (zmq_setsockopt(node->sub, ZMQ_SUBSCRIBE, node->job, strlen(node->job) + 1) != 0)
            bench_die("cannot subscribe: %s", zmq_strerror(errno));
    }
}

void swarm_watch(struct swarm *swarm, void (*again)(struct swarm *swarm, struct node *node))
{
    char name[48];

    swarm->connected = again;
    for (size_t i = 0; i < swarm->count; i++) {
        struct node *node = &swarm->nodes[i];

        snprintf(name, sizeof name, "inproc://monitor-%zu", i);
        node->monitor = zmq_socket(swarm->context, ZMQ_PAIR);
        if (node->monitor == NULL ||
            zmq_socket_monitor(node->dealer, name, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0 ||
            zmq_connect(node->monitor, name) != 0)
            bench_die("cannot watch a connection: %s", zmq_strerror(errno));
        swarm->items[swarm->items_count++] =
            (zmq_pollitem_t){.socket = node->monitor, .events = ZMQ_POLLIN};
    }
}

static void node_close(struct node *node)
{
    if (node->monitor != NULL) {
        zmq_socket_monitor(node->dealer, NULL, 0);
        zmq_close(node->monitor);
    }
    if (node->dealer == NULL)
        return;
    zmq_close(node->dealer);
    zmq_close(node->sub);
}

void swarm_close(struct swarm *swarm)
{
    for (size_t i = 0; i < swarm->count; i++)
        node_close(&swarm->nodes[i]);
    swarm_hosts_close(swarm);
    zmq_ctx_term(swarm->context);
    arena_free(&swarm->arena);
    free(swarm->nodes);
    free(swarm->items);
}

/* Sends from a DEALER or publishes; a full queue means that nobody reads any more. */
static void put(void *socket, const void *bytes, size_t size)
{
    if (zmq_send(socket, bytes, size, ZMQ_DONTWAIT) < 0)
        bench_die("cannot send: %s", zmq_strerror(errno));
}

void swarm_take(struct swarm *swarm, struct node *node, bool event, const uint8_t *frame,
                size_t size)
{
    if (event && !node->heard_topic) {
        node->heard_topic = true;
        swarm->heard_topic++;
    }
    swarm->take(swarm, node, frame, size);
}

static void take_all(struct swarm *swarm, struct node *node, void *socket)
{
    zmq_msg_t part;

    zmq_msg_init(&part);
    while (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) >= 0) {
        if (zmq_msg_more(&part))
            continue; /* the topic; the frame follows */
        swarm_take(swarm, node, socket == node->sub, zmq_msg_data(&part), zmq_msg_size(&part));
    }
    zmq_msg_close(&part);
}

static bool heartbeats(struct swarm *swarm, bool everybody);

/* Of one event there are two parts, the first with its kind. */
static void take_monitor(struct swarm *swarm, struct node *node)
{
    zmq_msg_t part;

    zmq_msg_init(&part);
    while (zmq_msg_recv(&part, node->monitor, ZMQ_DONTWAIT) >= 0)
        if (zmq_msg_more(&part))
            swarm->connected(swarm, node);
    zmq_msg_close(&part);
}

static void take_item(struct swarm *swarm, size_t item)
{
    if (swarm->hosts != NULL)
        swarm_hosts_take(swarm, item);
    else if (item < 2 * swarm->count)
        take_all(swarm, &swarm->nodes[item / 2], swarm->items[item].socket);
    else
        take_monitor(swarm, &swarm->nodes[item - 2 * swarm->count]);
}

/* What is there for all nodes; false: nothing came within timeout_ms, nor was anything said. */
bool swarm_pump(struct swarm *swarm, long timeout_ms)
{
    bool said;
    int ready;

    swarm_hosts_flush(swarm);
    ready = zmq_poll(swarm->items, (int)swarm->items_count, timeout_ms);
    for (size_t i = 0; ready > 0 && i < swarm->items_count; i++)
        if (swarm->items[i].revents & ZMQ_POLLIN)
            take_item(swarm, i);
    said = heartbeats(swarm, false);
    swarm_hosts_flush(swarm);
    return said || ready > 0;
}

void swarm_await(struct swarm *swarm, const size_t *counter, const char *what)
{
    double until = bench_now_ms() + PATIENCE_MS;

    while (*counter < swarm->count) {
        swarm_pump(swarm, 100);
        if (bench_now_ms() > until)
            bench_die("%zu of %zu nodes waited in vain: %s", swarm->count - *counter, swarm->count,
                      what);
    }
}

/* --- the swarm: the protocol ------------------------------------------------------------------ */

struct wire_msg swarm_message(enum wire_type type)
{
    struct wire_msg message;

    memset(&message, 0, sizeof message);
    message.type = type;
    return message;
}

void swarm_say(struct swarm *swarm, struct node *node, struct wire_msg *message)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size;

    message->up = (struct wire_up){.request = wire_is_request(message->type) ? ++node->request : 0,
                                   .job = node->job,
                                   .role = node->rank == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                   .rank = node->rank,
                                   .incarnation = node->incarnation,
                                   .generation = node->generation,
                                   .broker_epoch = swarm->broker_epoch,
                                   .applied_seq = node->applied_seq};
    size = wire_encode(message, frame, sizeof frame);
    if (size == 0)
        bench_die("%s cannot be encoded", wire_type_name(message->type));
    node->ack_ms = 0;
    if (swarm->hosts != NULL)
        swarm_hosts_put(swarm, node, frame, size);
    else
        put(node->dealer, frame, size);
}

static void heartbeat(struct swarm *swarm, struct node *node)
{
    struct wire_msg message = swarm_message(WIRE_HEARTBEAT);

    message.u.heartbeat.phase = PHASE_STEPPING;
    swarm_say(swarm, node, &message);
}

static bool is_due(const struct node *node, int64_t now_ms)
{
    return node->ack_ms > 0 && now_ms >= node->ack_ms;
}

/* Those that applied an event and have nothing to say for a while, as a real node; all once a
 * second. */
static bool heartbeats(struct swarm *swarm, bool everybody)
{
    int64_t now = (int64_t)bench_now_ms();
    bool said = false;

    if (now - swarm->heartbeat_ms >= HEARTBEAT_MS) {
        swarm->heartbeat_ms = now;
        everybody = true;
        swarm_hosts_hello(swarm);
    }
    for (size_t i = 0; i < swarm->count; i++)
        if (swarm->nodes[i].joined && (everybody || is_due(&swarm->nodes[i], now))) {
            heartbeat(swarm, &swarm->nodes[i]);
            said = true;
        }
    return said;
}

static void restore(struct swarm *swarm, struct node *node)
{
    struct wire_msg message = swarm_message(WIRE_RESTORED);

    if (node->restored)
        return;
    node->restored = true; /* from the start: checkpoint 0, step 0 */
    swarm_say(swarm, node, &message);
}

static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    if (event->kind == EVENT_RESUME)
        restore(swarm, node);
    else if (event->kind == EVENT_STARTED)
        swarm->started++;
    else
        swarm->bench->apply(swarm, node, event);
}

static void ask_for_events(struct swarm *swarm, struct node *node)
{
    struct wire_msg ask = swarm_message(WIRE_EVENTS_GET);

    ask.u.events_get.from_seq = node->applied_seq + 1;
    swarm_say(swarm, node, &ask);
}

static void take_event(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    if (!node->joined || event->seq <= node->applied_seq)
        return;
    if (event->seq > node->applied_seq + 1) {
        ask_for_events(swarm, node);
        return;
    }
    node->applied_seq = event->seq;
    if (node->ack_ms == 0)
        node->ack_ms = (int64_t)bench_now_ms() + FLIGHT_MS;
    apply(swarm, node, event);
}

void swarm_welcomed(struct swarm *swarm, struct node *node)
{
    swarm->welcomed += !node->welcomed;
    node->welcomed = true;
}

void swarm_forget(struct swarm *swarm)
{
    swarm->welcomed = swarm->heard_topic = 0;
    for (size_t i = 0; i < swarm->count; i++)
        swarm->nodes[i].welcomed = swarm->nodes[i].heard_topic = false;
}

void swarm_take_frame(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size)
{
    struct wire_msg message;
    struct muster_error err;

    arena_reset(&swarm->arena);
    if (wire_decode(frame, size, &swarm->arena, &message, &err) != MUSTER_OK)
        bench_die("a frame of musterd is not understood: %s", err.text);
    switch (message.type) {
    case WIRE_WELCOME:
        node->generation = message.u.welcome.generation;
        swarm->broker_epoch = message.down.broker_epoch;
        swarm_welcomed(swarm, node);
        if (!message.u.welcome.snapshot_follows && message.down.last_seq > node->applied_seq)
            ask_for_events(swarm, node);
        break;
    case WIRE_SNAPSHOT:
        node->joined = true;
        node->applied_seq = message.u.snapshot.seq;
        if (message.u.snapshot.resume_ready)
            restore(swarm, node);
        break;
    case WIRE_EVENT:
        take_event(swarm, node, &message.u.event);
        break;
    case WIRE_PING:
        heartbeat(swarm, node);
        break;
    case WIRE_ACK:
        if (message.u.ack.code == MUSTER_E_HELLO && swarm->connected != NULL)
            break; /* to what it said before the connection was new; its HELLO is on its way */
        if (message.u.ack.code != MUSTER_OK)
            bench_die("musterd answered %s: %s",
                      muster_status_name((enum muster_status)message.u.ack.code),
                      message.u.ack.text);
        swarm->left += swarm->ended == swarm->count && message.u.ack.request == node->request;
        break;
    case WIRE_REFUSED:
        bench_die("musterd refused rank %llu: %s", (unsigned long long)node->rank,
                  message.u.refused.text);
        break;
    default:
        break;
    }
}

static void say_hello(struct swarm *swarm, struct node *node, struct wire_msg message)
{
    message.u.hello.nonce = node->incarnation;
    message.u.hello.world_size = swarm->world;
    message.u.hello.host = "bench";
    message.u.hello.pid = (uint64_t)getpid();
    message.u.hello.layout = LAYOUT_REPLICATED;
    message.u.hello.checkpoint_dir = "/bench";
    message.u.hello.speaks = WIRE_SPEAKS;
    swarm_say(swarm, node, &message);
}

static void hello(struct swarm *swarm, struct node *node, uint64_t launch)
{
    node->incarnation =
        launch << 32 | (uint64_t)(node - swarm->nodes + 1 + (ptrdiff_t)swarm->first);
    node->generation = node->request = node->applied_seq = 0;
    node->joined = node->restored = false;
    say_hello(swarm, node, swarm_message(WIRE_HELLO));
}

void swarm_hello_again(struct swarm *swarm, struct node *node)
{
    struct wire_msg message = swarm_message(WIRE_HELLO);

    if (!node->joined)
        return;
    message.u.hello.phase = PHASE_STEPPING;
    message.u.hello.generation_seen = node->generation;
    message.u.hello.round = swarm->round;
    say_hello(swarm, node, message);
}

/* A SUB that heard something on its topic hears what follows. */
static void await_topic(struct swarm *swarm)
{
    double until = bench_now_ms() + PATIENCE_MS;

    while (swarm->heard_topic < swarm->count && bench_now_ms() < until) {
        for (size_t i = 0; i < swarm->count; i += swarm->world) { /* one of each job */
            struct wire_msg message = swarm_message(WIRE_PROBE_GET);

            message.u.probe_get.nonce = 1;
            swarm_say(swarm, &swarm->nodes[i], &message);
        }
        swarm_pump(swarm, 10);
    }
    swarm_await(swarm, &swarm->heard_topic, "for the echo on their topic");
}

void swarm_quiet(struct swarm *swarm)
{
    while (swarm_pump(swarm, QUIET_MS))
        continue;
}

void swarm_join(struct swarm *swarm, uint64_t launch)
{
    swarm->started = swarm->decided = swarm->ended = swarm->left = 0;
    swarm_meet(swarm); /* nobody is in the launch before */
    for (size_t i = 0; i < swarm->count; i++)
        hello(swarm, &swarm->nodes[i], launch);
    swarm_await(swarm, &swarm->started, "for all ranks to be restored");
    await_topic(swarm);
    if (swarm->join_ms == 0)
        swarm->join_ms = bench_now_ms() - swarm->opened_ms;
    swarm_meet(swarm);
    swarm_quiet(swarm);
    swarm_meet(swarm);
}

void swarm_leave(struct swarm *swarm, enum wire_leave_why why)
{
    for (size_t i = 0; i < swarm->count; i++) {
        struct wire_msg leave = swarm_message(WIRE_LEAVE);

        leave.u.leave.why = why;
        swarm_say(swarm, &swarm->nodes[i], &leave);
        swarm->nodes[i].joined = false;
    }
    swarm_await(swarm, &swarm->left, "for the answer to LEAVE");
}

void floor_say(struct node *node, char kind)
{
    uint8_t bytes[HEAD_BYTES] = {(uint8_t)kind};

    put(node->dealer, bytes, sizeof bytes);
}
