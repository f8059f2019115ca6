/* How fast the job agrees: from the sending of one node's notice until the last of N nodes has the
 * decision, with N simulated nodes of this process against a real musterd over TCP on this host.
 * usage: bench_notice [ROUNDS [DIRECTORY]]; one JSON object on stdout, milliseconds.
 *
 * Each round is a whole launch of a job: all nodes say HELLO and RESTORED, one gives a notice, all
 * answer the freeze, all hear the decision (here the clock stops), the writer fails its save so that
 * the next launch begins at step 0, all leave. The nodes speak the real wire protocol; one thread
 * serves all of them, so its work is part of the time.
 *
 *   floor    the same messages in number and size through a bare ROUTER and PUB that only counts:
 *            no decoding, no decision, no database
 *   memory   musterd with its database on /dev/shm, where fsync costs nothing (musterd has no switch
 *            that leaves it out)
 *   disk     musterd with its database in DIRECTORY (default: the build tree)
 */
#include "schema/wire.h"

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
#include <zmq.h>

#define ROUNDS_DEFAULT 21
#define ROUNDS_LIMIT 1000
#define PATIENCE_MS 30000
#define QUIET_MS 30 /* nothing came for so long: everybody rests */
#define HEAD_BYTES 60
#define MEMBER_BYTES 14 /* rank, incarnation and flags in a freeze or decision */
#define ENDPOINT_BYTES 128
#define TMPFS 0x01021994

struct node {
    void *dealer;
    void *sub;
    uint64_t rank;
    uint64_t incarnation;
    uint64_t generation;
    uint64_t request; /* last number given */
    uint64_t applied_seq;
    bool heard_topic; /* its SUB works */
    bool joined;      /* SNAPSHOT taken */
    bool restored;
    bool acknowledge; /* applied events, and said nothing since */
};

struct swarm {
    void *context;
    struct node *nodes;
    size_t count;
    zmq_pollitem_t *items; /* each node's DEALER, then its SUB */
    void (*take)(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size);
    struct arena arena;
    uint64_t broker_epoch;
    uint64_t round;
    int64_t heartbeat_ms;
    double decided_ms; /* when the last of them had it */
    /* how many nodes are that far */
    size_t heard_topic;
    size_t started;
    size_t decided;
    size_t ended;
    size_t left;
};

static pid_t server; /* musterd or the floor's echo; 0 = none */

static void stop_server(int signo)
{
    if (server <= 0)
        return;
    kill(server, signo);
    waitpid(server, NULL, 0);
    server = 0;
}

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;

    fputs("bench_notice: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    stop_server(SIGKILL);
    exit(EXIT_FAILURE);
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* --- the swarm: sockets ---------------------------------------------------------------------------- */

static void *connected(void *context, int type, const char *endpoint)
{
    void *socket = zmq_socket(context, type);
    int none = 0;

    if (socket == NULL || zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none) != 0 ||
        zmq_connect(socket, endpoint) != 0)
        die("cannot connect to %s: %s", endpoint, zmq_strerror(errno));
    return socket;
}

static void swarm_open(struct swarm *swarm, size_t count, const char *commands, const char *events)
{
    memset(swarm, 0, sizeof *swarm);
    arena_init(&swarm->arena, 0);
    swarm->count = count;
    swarm->context = zmq_ctx_new();
    swarm->nodes = calloc(count, sizeof *swarm->nodes);
    swarm->items = calloc(2 * count, sizeof *swarm->items);
    if (swarm->context == NULL || swarm->nodes == NULL || swarm->items == NULL)
        die("no memory");
    zmq_ctx_set(swarm->context, ZMQ_MAX_SOCKETS, (int)(2 * count + 16));
    for (size_t i = 0; i < count; i++) {
        struct node *node = &swarm->nodes[i];

        node->rank = i;
        node->dealer = connected(swarm->context, ZMQ_DEALER, commands);
        node->sub = connected(swarm->context, ZMQ_SUB, events);
        if (zmq_setsockopt(node->sub, ZMQ_SUBSCRIBE, "bench", sizeof "bench") != 0)
            die("cannot subscribe: %s", zmq_strerror(errno));
        swarm->items[2 * i] = (zmq_pollitem_t){.socket = node->dealer, .events = ZMQ_POLLIN};
        swarm->items[2 * i + 1] = (zmq_pollitem_t){.socket = node->sub, .events = ZMQ_POLLIN};
    }
}

static void swarm_close(struct swarm *swarm)
{
    for (size_t i = 0; i < swarm->count; i++) {
        zmq_close(swarm->nodes[i].dealer);
        zmq_close(swarm->nodes[i].sub);
    }
    zmq_ctx_term(swarm->context);
    arena_free(&swarm->arena);
    free(swarm->nodes);
    free(swarm->items);
}

/* Sends from a DEALER or publishes; a full queue means that nobody reads any more. */
static void put(void *socket, const void *bytes, size_t size, int flags)
{
    if (zmq_send(socket, bytes, size, flags | ZMQ_DONTWAIT) < 0)
        die("cannot send: %s", zmq_strerror(errno));
}

static void take_all(struct swarm *swarm, struct node *node, void *socket)
{
    zmq_msg_t part;

    zmq_msg_init(&part);
    while (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) >= 0) {
        if (zmq_msg_more(&part))
            continue; /* the topic; the frame follows */
        if (socket == node->sub && !node->heard_topic) {
            node->heard_topic = true;
            swarm->heard_topic++;
        }
        swarm->take(swarm, node, zmq_msg_data(&part), zmq_msg_size(&part));
    }
    zmq_msg_close(&part);
}

static void heartbeats(struct swarm *swarm, bool everybody);

/* What is there for all nodes; false: nothing came within timeout_ms. */
static bool pump(struct swarm *swarm, long timeout_ms)
{
    int ready = zmq_poll(swarm->items, (int)(2 * swarm->count), timeout_ms);

    for (size_t i = 0; ready > 0 && i < 2 * swarm->count; i++)
        if (swarm->items[i].revents & ZMQ_POLLIN)
            take_all(swarm, &swarm->nodes[i / 2], swarm->items[i].socket);
    heartbeats(swarm, false);
    return ready > 0;
}

static void await_count(struct swarm *swarm, const size_t *counter, const char *what)
{
    double until = now_ms() + PATIENCE_MS;

    while (*counter < swarm->count) {
        pump(swarm, 100);
        if (now_ms() > until)
            die("%zu of %zu nodes waited in vain: %s", swarm->count - *counter, swarm->count, what);
    }
}

/* --- the swarm: the protocol -------------------------------------------------------------------------- */

static struct wire_msg message_of(enum wire_type type)
{
    struct wire_msg message;

    memset(&message, 0, sizeof message);
    message.type = type;
    return message;
}

static void say(struct swarm *swarm, struct node *node, struct wire_msg *message)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size;

    message->up = (struct wire_up){.request = wire_is_request(message->type) ? ++node->request : 0,
                                   .job = "bench",
                                   .role = node->rank == 0 ? ROLE_CHIEF : ROLE_WORKER,
                                   .rank = node->rank,
                                   .incarnation = node->incarnation,
                                   .generation = node->generation,
                                   .broker_epoch = swarm->broker_epoch,
                                   .applied_seq = node->applied_seq};
    size = wire_encode(message, frame, sizeof frame);
    if (size == 0)
        die("%s cannot be encoded", wire_type_name(message->type));
    node->acknowledge = false;
    put(node->dealer, frame, size, 0);
}

static void heartbeat(struct swarm *swarm, struct node *node)
{
    struct wire_msg message = message_of(WIRE_HEARTBEAT);

    message.u.heartbeat.phase = PHASE_STEPPING;
    say(swarm, node, &message);
}

/* Those that applied an event and had nothing to say since, as a real node; all once a second. */
static void heartbeats(struct swarm *swarm, bool everybody)
{
    int64_t now = (int64_t)now_ms();

    if (now - swarm->heartbeat_ms >= HEARTBEAT_MS) {
        swarm->heartbeat_ms = now;
        everybody = true;
    }
    for (size_t i = 0; i < swarm->count; i++)
        if (swarm->nodes[i].joined && (everybody || swarm->nodes[i].acknowledge))
            heartbeat(swarm, &swarm->nodes[i]);
}

static void restore(struct swarm *swarm, struct node *node)
{
    struct wire_msg message = message_of(WIRE_RESTORED);

    if (node->restored)
        return;
    node->restored = true; /* from the start: checkpoint 0, step 0 */
    say(swarm, node, &message);
}

static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    struct wire_msg message = message_of(WIRE_REPORT);

    switch (event->kind) {
    case EVENT_RESUME:
        restore(swarm, node);
        break;
    case EVENT_STARTED:
        swarm->started++;
        break;
    case EVENT_FREEZE: /* some are a step ahead, as ranks are */
        message.u.report.round = swarm->round = event->round;
        message.u.report.begun = 10 + (int64_t)node->rank % 3;
        message.u.report.done = message.u.report.begun - 1;
        say(swarm, node, &message);
        break;
    case EVENT_DECISION:
        swarm->decided_ms = now_ms();
        swarm->decided++;
        break;
    case EVENT_NOT_SAVED:
        swarm->ended++;
        break;
    default:
        break;
    }
}

static void take_event(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    struct wire_msg ask = message_of(WIRE_EVENTS_GET);

    if (!node->joined || event->seq <= node->applied_seq)
        return;
    if (event->seq > node->applied_seq + 1) {
        ask.u.events_get.from_seq = node->applied_seq + 1;
        say(swarm, node, &ask);
        return;
    }
    node->applied_seq = event->seq;
    node->acknowledge = true;
    apply(swarm, node, event);
}

static void take_frame(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size)
{
    struct wire_msg message;
    struct muster_error err;

    arena_reset(&swarm->arena);
    if (wire_decode(frame, size, &swarm->arena, &message, &err) != MUSTER_OK)
        die("a frame of musterd is not understood: %s", err.text);
    switch (message.type) {
    case WIRE_WELCOME:
        node->generation = message.u.welcome.generation;
        swarm->broker_epoch = message.down.broker_epoch;
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
        if (message.u.ack.code != MUSTER_OK)
            die("musterd answered %s: %s",
                muster_status_name((enum muster_status)message.u.ack.code), message.u.ack.text);
        swarm->left += swarm->ended == swarm->count && message.u.ack.request == node->request;
        break;
    case WIRE_REFUSED:
        die("musterd refused rank %llu: %s", (unsigned long long)node->rank,
            message.u.refused.text);
        break;
    default:
        break;
    }
}

static void hello(struct swarm *swarm, struct node *node, uint64_t launch)
{
    struct wire_msg message = message_of(WIRE_HELLO);

    node->incarnation = launch << 32 | (node->rank + 1);
    node->generation = node->request = node->applied_seq = 0;
    node->joined = node->restored = false;
    message.u.hello.nonce = node->incarnation;
    message.u.hello.world_size = swarm->count;
    message.u.hello.host = "bench";
    message.u.hello.pid = (uint64_t)getpid();
    message.u.hello.layout = LAYOUT_REPLICATED;
    message.u.hello.checkpoint_dir = "/bench";
    say(swarm, node, &message);
}

/* A SUB that heard something on its topic hears what follows. */
static void await_topic(struct swarm *swarm)
{
    double until = now_ms() + PATIENCE_MS;

    while (swarm->heard_topic < swarm->count && now_ms() < until) {
        struct wire_msg message = message_of(WIRE_PROBE_GET);

        message.u.probe_get.nonce = 1;
        say(swarm, &swarm->nodes[0], &message);
        pump(swarm, 10);
    }
    await_count(swarm, &swarm->heard_topic, "for the echo on their topic");
}

static void await_quiet(struct swarm *swarm)
{
    while (pump(swarm, QUIET_MS))
        continue;
}

/* One launch, from HELLO to LEAVE. Returns the time from notice to the last decision. */
static double launch_once(struct swarm *swarm, uint64_t launch)
{
    struct wire_msg notice = message_of(WIRE_NOTICE), failed = message_of(WIRE_SAVE_FAILED);
    double began_ms;

    swarm->started = swarm->decided = swarm->ended = swarm->left = 0;
    for (size_t i = 0; i < swarm->count; i++)
        hello(swarm, &swarm->nodes[i], launch);
    await_count(swarm, &swarm->started, "for all ranks to be restored");
    await_topic(swarm);
    await_quiet(swarm);

    notice.u.notice.id = "bench";
    notice.u.notice.kind = NOTICE_PREEMPT;
    notice.u.notice.source = "bench";
    notice.u.notice.left_ms = 60000;
    notice.u.notice.rank = (int64_t)(launch % swarm->count);
    began_ms = now_ms();
    say(swarm, &swarm->nodes[launch % swarm->count], &notice);
    await_count(swarm, &swarm->decided, "for the decision");

    failed.u.save_failed.round = swarm->round;
    failed.u.save_failed.step = 10 + (swarm->count > 2 ? 2 : (int64_t)swarm->count - 1);
    failed.u.save_failed.code = MUSTER_E_STORAGE; /* is not tried again */
    failed.u.save_failed.text = "as planned";
    say(swarm, &swarm->nodes[0], &failed);
    await_count(swarm, &swarm->ended, "for the end of the launch");
    for (size_t i = 0; i < swarm->count; i++) {
        struct wire_msg leave = message_of(WIRE_LEAVE);

        leave.u.leave.why = LEAVE_PREEMPTED;
        say(swarm, &swarm->nodes[i], &leave);
        swarm->nodes[i].joined = false;
    }
    await_count(swarm, &swarm->left, "for the answer to LEAVE");
    return swarm->decided_ms - began_ms;
}

/* --- the floor --------------------------------------------------------------------------------------------- */

static void echo_publish(void *pub, char kind, size_t size)
{
    static uint8_t bytes[WIRE_FRAME_MAX];

    bytes[0] = (uint8_t)kind;
    zmq_send(pub, "bench", sizeof "bench", ZMQ_SNDMORE);
    zmq_send(pub, bytes, size, 0);
}

/* What musterd sends for a notice and for each report, at once, without knowing why. */
static void echo_serve(void *router, void *pub, size_t count)
{
    size_t decision = HEAD_BYTES + MEMBER_BYTES * count, reports = 0;
    uint8_t from[256], frame[512], answer[HEAD_BYTES] = {'a'};

    for (;;) {
        int from_size = zmq_recv(router, from, sizeof from, 0);

        if (from_size < 0 || zmq_recv(router, frame, sizeof frame, 0) < 0)
            _exit(EXIT_FAILURE);
        if (frame[0] == 'p') { /* for await_topic's like */
            echo_publish(pub, 'p', 1);
            continue;
        }
        if (frame[0] == 'n')
            echo_publish(pub, 'h', HEAD_BYTES);
        zmq_send(router, from, (size_t)from_size, ZMQ_SNDMORE);
        zmq_send(router, answer, sizeof answer, 0);
        if (frame[0] == 'n') {
            echo_publish(pub, 't', HEAD_BYTES);
            echo_publish(pub, 'f', decision);
        } else if (frame[0] == 'r' && ++reports == count) {
            reports = 0;
            echo_publish(pub, 'd', decision);
        }
    }
}

static void echo_start(size_t count, char commands[ENDPOINT_BYTES], char events[ENDPOINT_BYTES])
{
    int ends[2];

    if (pipe(ends) != 0 || (server = fork()) < 0)
        die("cannot start the floor: %s", strerror(errno));
    if (server == 0) {
        char both[2][ENDPOINT_BYTES] = {{0}};
        size_t size = ENDPOINT_BYTES;
        void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER),
             *pub = zmq_socket(context, ZMQ_PUB);

        if (zmq_bind(router, "tcp://127.0.0.1:*") != 0 || zmq_bind(pub, "tcp://127.0.0.1:*") != 0)
            _exit(EXIT_FAILURE);
        zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, both[0], &size);
        size = ENDPOINT_BYTES;
        zmq_getsockopt(pub, ZMQ_LAST_ENDPOINT, both[1], &size);
        if (write(ends[1], both, sizeof both) != (ssize_t)sizeof both)
            _exit(EXIT_FAILURE);
        echo_serve(router, pub, count);
    }
    close(ends[1]);
    if (read(ends[0], commands, ENDPOINT_BYTES) != ENDPOINT_BYTES ||
        read(ends[0], events, ENDPOINT_BYTES) != ENDPOINT_BYTES)
        die("the floor did not start");
    close(ends[0]);
}

static void floor_say(struct node *node, char kind)
{
    uint8_t bytes[HEAD_BYTES] = {(uint8_t)kind};

    put(node->dealer, bytes, sizeof bytes, 0);
}

static void take_floor(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size)
{
    (void)size;
    if (frame[0] == 'f') {
        floor_say(node, 'r');
    } else if (frame[0] == 'd') {
        swarm->decided_ms = now_ms();
        swarm->decided++;
    }
}

static double floor_once(struct swarm *swarm, uint64_t launch)
{
    double until = now_ms() + PATIENCE_MS, began_ms;

    while (swarm->heard_topic < swarm->count && now_ms() < until) {
        floor_say(&swarm->nodes[0], 'p');
        pump(swarm, 10);
    }
    await_quiet(swarm);
    swarm->decided = 0;
    began_ms = now_ms();
    floor_say(&swarm->nodes[launch % swarm->count], 'n');
    await_count(swarm, &swarm->decided, "for the floor's decision");
    return swarm->decided_ms - began_ms;
}

/* --- runs ------------------------------------------------------------------------------------------------------ */

struct figure {
    double median;
    double worst;
};

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static struct figure figure_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return (struct figure){values[count / 2], values[count - 1]};
}

static struct figure run_rounds(struct swarm *swarm, size_t rounds,
                                double (*once)(struct swarm *, uint64_t))
{
    static double times[ROUNDS_LIMIT];

    once(swarm, 1); /* connections, caches and the database's file are warm then */
    for (size_t i = 0; i < rounds; i++)
        times[i] = once(swarm, i + 2);
    return figure_of(times, rounds);
}

static struct figure measure_floor(size_t count, size_t rounds)
{
    char commands[ENDPOINT_BYTES], events[ENDPOINT_BYTES];
    struct swarm swarm;
    struct figure figure;

    echo_start(count, commands, events);
    swarm_open(&swarm, count, commands, events);
    swarm.take = take_floor;
    figure = run_rounds(&swarm, rounds, floor_once);
    swarm_close(&swarm);
    stop_server(SIGKILL);
    return figure;
}

/* watch: an inotify descriptor of the file's directory, made before the server was started. Ends
 * early when the server does. */
static void await_port_file(int watch, const char *path, char commands[ENDPOINT_BYTES],
                            char events[ENDPOINT_BYTES])
{
    struct pollfd items[] = {{.fd = watch, .events = POLLIN},
                             {.fd = (int)syscall(SYS_pidfd_open, server, 0), .events = POLLIN}};
    char seen[4096];
    double until = now_ms() + PATIENCE_MS;
    FILE *file;

    while ((file = fopen(path, "re")) == NULL) {
        int ready = poll(items, 2, (int)fmax(until - now_ms(), 0));

        if (ready <= 0 || items[1].revents != 0 || read(watch, seen, sizeof seen) < 0)
            die("musterd did not start; what it said is above");
    }
    close(items[1].fd);
    if (fgets(commands, ENDPOINT_BYTES, file) == NULL ||
        fgets(events, ENDPOINT_BYTES, file) == NULL)
        die("musterd wrote no endpoints to %s", path);
    commands[strcspn(commands, "\n")] = events[strcspn(events, "\n")] = '\0';
    fclose(file);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static struct figure measure_broker(const char *parent, size_t count, size_t rounds)
{
    const char *from = getenv("MUSTERD"), *musterd = from != NULL ? from : MUSTERD_PATH;
    char dir[PATH_MAX], db[PATH_MAX + 16], port[PATH_MAX + 16];
    char commands[ENDPOINT_BYTES], events[ENDPOINT_BYTES];
    struct swarm swarm;
    struct figure figure;
    int watch = inotify_init1(IN_CLOEXEC);

    snprintf(dir, sizeof dir, "%s/muster-bench-XXXXXX", parent);
    if (mkdtemp(dir) == NULL)
        die("cannot make a directory in %s: %s", parent, strerror(errno));
    snprintf(db, sizeof db, "%s/muster.db", dir);
    snprintf(port, sizeof port, "%s/port", dir);
    if (inotify_add_watch(watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
        die("cannot watch %s: %s", dir, strerror(errno));
    server = fork();
    if (server == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(null, STDERR_FILENO); /* its log: one line a join */
        execl(musterd, musterd, "--listen", "tcp://127.0.0.1:*", "--db", db, "--port-file", port,
              (char *)NULL);
        _exit(127);
    }
    await_port_file(watch, port, commands, events);
    close(watch);
    swarm_open(&swarm, count, commands, events);
    swarm.take = take_frame;
    figure = run_rounds(&swarm, rounds, launch_once);
    swarm_close(&swarm);
    stop_server(SIGTERM);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return figure;
}

/* What one synced write of a page costs there: SQLite's commits are made of these. */
static double sync_ms(const char *parent, size_t rounds)
{
    static double times[ROUNDS_LIMIT];
    char path[PATH_MAX], page[4096] = {0};
    int fd;

    snprintf(path, sizeof path, "%s/muster-bench-XXXXXX", parent);
    fd = mkstemp(path);
    if (fd < 0)
        die("cannot make a file in %s: %s", parent, strerror(errno));
    for (size_t i = 0; i < rounds; i++) {
        double began_ms = now_ms();

        if (write(fd, page, sizeof page) != (ssize_t)sizeof page || fdatasync(fd) != 0)
            die("cannot write to %s: %s", path, strerror(errno));
        times[i] = now_ms() - began_ms;
    }
    close(fd);
    unlink(path);
    return figure_of(times, rounds).median;
}

static bool is_memory(const char *path)
{
    struct statfs fs;

    return statfs(path, &fs) == 0 && fs.f_type == TMPFS;
}

static void print_figure(const char *name, struct figure figure)
{
    printf(", \"%s_ms\": %.3f, \"%s_worst_ms\": %.3f", name, figure.median, name, figure.worst);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {4, 64, 256};
    const char *memory = "/dev/shm", *disk = argc > 2 ? argv[2] : BUILD_DIR;
    size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : ROUNDS_DEFAULT;
    struct rlimit files;

    if (rounds == 0 || rounds > ROUNDS_LIMIT)
        die("usage: bench_notice [ROUNDS [DIRECTORY]], at most %d rounds", ROUNDS_LIMIT);
    if (!is_memory(memory))
        die("%s is no tmpfs, so there is no place without an fsync", memory);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* 256 nodes: two connections and two eventfds each */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    printf("{\"bench\": \"notice\", \"rounds\": %zu, \"memory_sync_ms\": %.3f, "
           "\"disk_sync_ms\": %.3f, \"disk_is_memory\": %s, \"results\": [",
           rounds, sync_ms(memory, rounds), sync_ms(disk, rounds),
           is_memory(disk) ? "true" : "false");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        printf("%s{\"nodes\": %zu", i > 0 ? ", " : "", counts[i]);
        fflush(stdout); /* a child must not have it too */
        print_figure("floor", measure_floor(counts[i], rounds));
        fflush(stdout);
        print_figure("memory", measure_broker(memory, counts[i], rounds));
        fflush(stdout);
        print_figure("disk", measure_broker(disk, counts[i], rounds));
        printf("}");
        fflush(stdout);
    }
    printf("]}\n");
    return EXIT_SUCCESS;
}
