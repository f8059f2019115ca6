/* How long a broker that is killed in an open round keeps its nodes from a decision: from SIGKILL,
 * with its next start at once, until the last of N nodes has the decision of the round that
 * follows. usage: bench_restart [ROUNDS [DIRECTORY [NODES ...]]]; one JSON object. Medians of ms,
 * and the worst:
 *
 *   back     from the kill until all nodes have said HELLO and were welcomed
 *   decided  from the kill until all have the decision
 *   floor    a bare ROUTER and PUB that are killed and started as well: until as many peers have an
 *            answer on their DEALER and have heard their topic. They decide nothing
 *   beyond   the median of decided less floor, of the same round
 *
 * As nodes do, all say HELLO when they are connected again, and try that every RECONNECT_MS. Both
 * take turns. One thread serves all nodes, and its work is part of the time. */
#include "tests/bench/swarm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_DEFAULT 5
#define ROUNDS_LIMIT 100
#define COUNTS_MAX 16
#define PATIENCE_MS 30000
#define FLOOR_WORD "floor"
#define PORT_LEAST 20000 /* below those that the kernel gives to whoever connects */
#define PORT_COUNT 12000

struct place { /* of one server, which is started again there */
    char dir[PATH_MAX];
    char listen[SWARM_ENDPOINT_BYTES];
    char db[PATH_MAX + 16], port_file[PATH_MAX + 16];
    char port[16];
    struct door door;
};

/* --- servers ---------------------------------------------------------------------------------- */

static bool port_is_free(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((in_port_t)port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool free = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;

    if (fd >= 0)
        close(fd);
    return free;
}

/* Two in a row: commands, and events. */
static int free_ports(void)
{
    static int next;

    if (next == 0)
        next = (int)getpid() * 2;
    for (int i = 0; i < PORT_COUNT; i += 2) {
        int port = PORT_LEAST + (next + i) % PORT_COUNT;

        if (port_is_free(port) && port_is_free(port + 1)) {
            next += i + 2;
            return port;
        }
    }
    bench_die("no two ports are free");
}

static void place_make(const char *parent, struct place *place)
{
    int port = free_ports();

    bench_make_directory(parent, place->dir);
    snprintf(place->port, sizeof place->port, "%d", port);
    snprintf(place->listen, sizeof place->listen, "tcp://127.0.0.1:%d", port);
    snprintf(place->db, sizeof place->db, "%s/muster.db", place->dir);
    snprintf(place->port_file, sizeof place->port_file, "%s/port", place->dir);
    snprintf(place->door.commands, sizeof place->door.commands, "tcp://127.0.0.1:%d", port);
    snprintf(place->door.events, sizeof place->door.events, "tcp://127.0.0.1:%d", port + 1);
}

static void start_musterd(const struct place *place)
{
    const char *from = getenv("MUSTERD"), *musterd = from != NULL ? from : MUSTERD_PATH;

    bench_server = fork();
    if (bench_server != 0)
        return;
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    execl(musterd, musterd, "--listen", place->listen, "--db", place->db, "--port-file",
          place->port_file, (char *)NULL);
    _exit(127);
}

static void start_floor(const struct place *place)
{
    bench_server = fork();
    if (bench_server != 0)
        return;
    execl("/proc/self/exe", "bench_restart", FLOOR_WORD, place->port, (char *)NULL);
    _exit(127);
}

static int floor_run(const char *port)
{
    char commands[SWARM_ENDPOINT_BYTES], events[SWARM_ENDPOINT_BYTES];
    uint8_t from[256], frame[512], answer[HEAD_BYTES] = {'a'};
    void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER),
         *pub = zmq_socket(context, ZMQ_PUB);

    snprintf(commands, sizeof commands, "tcp://127.0.0.1:%s", port);
    snprintf(events, sizeof events, "tcp://127.0.0.1:%ld", strtol(port, NULL, 10) + 1);
    if (zmq_bind(router, commands) != 0 || zmq_bind(pub, events) != 0)
        return EXIT_FAILURE;
    for (;;) {
        int from_size = zmq_recv(router, from, sizeof from, 0);

        if (from_size < 0 || zmq_recv(router, frame, sizeof frame, 0) < 0)
            return EXIT_FAILURE;
        if (frame[0] == 'p') {
            floor_publish(pub, 'p', 1);
            continue;
        }
        zmq_send(router, from, (size_t)from_size, ZMQ_SNDMORE);
        zmq_send(router, answer, sizeof answer, 0);
    }
}

/* Its next start is at once. */
static double kill_and_start(const struct place *place, void (*start)(const struct place *place))
{
    double began_ms = bench_now_ms();

    bench_stop_server(SIGKILL);
    start(place);
    return began_ms;
}

/* --- the floor -------------------------------------------------------------------------------- */

static void floor_connected(struct swarm *swarm, struct node *node)
{
    (void)swarm;
    floor_say(node, 'h');
}

static void floor_take(struct swarm *swarm, struct node *node, const uint8_t *frame, size_t size)
{
    (void)size;
    if (frame[0] == 'a')
        swarm_welcomed(swarm, node);
}

/* Their SUB is connected again when they hear their topic. */
static void floor_await_topic(struct swarm *swarm)
{
    double until = bench_now_ms() + PATIENCE_MS;

    while (swarm->heard_topic < swarm->count) {
        floor_say(&swarm->nodes[0], 'p');
        swarm_pump(swarm, 10);
        if (bench_now_ms() > until)
            bench_die("%zu nodes waited in vain for their topic",
                      swarm->count - swarm->heard_topic);
    }
}

static double floor_once(struct swarm *swarm, const struct place *place)
{
    double began_ms, last_ms;

    swarm_forget(swarm);
    began_ms = kill_and_start(place, start_floor);
    swarm_await(swarm, &swarm->welcomed, "for the floor that was started again");
    floor_await_topic(swarm);
    last_ms = bench_now_ms();
    swarm_quiet(swarm);
    return last_ms - began_ms;
}

/* --- musterd ---------------------------------------------------------------------------------- */

struct times {
    double back_ms, decided_ms;
};

static uint64_t frozen_round; /* the one that is open when the broker is killed */
static size_t frozen;         /* nodes that have heard of it */

static void say_report(struct swarm *swarm, struct node *node, uint64_t round)
{
    struct wire_msg message = swarm_message(WIRE_REPORT);

    message.u.report.round = round;
    message.u.report.begun = 10 + (int64_t)node->rank % 3;
    message.u.report.done = message.u.report.begun - 1;
    swarm_say(swarm, node, &message);
}

/* The last node keeps its report of the first round, so that it stays open. */
static void apply(struct swarm *swarm, struct node *node, const struct wire_event *event)
{
    switch (event->kind) {
    case EVENT_FREEZE:
        swarm->round = event->round;
        if (frozen_round == 0)
            frozen_round = event->round;
        frozen += event->round == frozen_round;
        if (event->round != frozen_round || node->rank + 1 < swarm->count)
            say_report(swarm, node, event->round);
        break;
    case EVENT_DECISION:
        if (event->round == frozen_round)
            bench_die("round %llu was decided without a report", (unsigned long long)event->round);
        swarm->decided_ms = bench_now_ms();
        swarm->decided++;
        break;
    case EVENT_NOT_SAVED:
        swarm->ended++;
        break;
    default:
        break;
    }
}

static void say_notice(struct swarm *swarm)
{
    struct wire_msg notice = swarm_message(WIRE_NOTICE);

    notice.u.notice.id = "bench";
    notice.u.notice.kind = NOTICE_PREEMPT;
    notice.u.notice.source = "bench";
    notice.u.notice.left_ms = 60000;
    notice.u.notice.flags = NOTICE_FLAG_AT_ONCE;
    notice.u.notice.rank = 0;
    swarm_say(swarm, &swarm->nodes[0], &notice);
}

static void end_launch(struct swarm *swarm)
{
    struct wire_msg failed = swarm_message(WIRE_SAVE_FAILED);

    failed.u.save_failed.round = swarm->round;
    failed.u.save_failed.step = 10 + (swarm->count > 2 ? 2 : (int64_t)swarm->count - 1);
    failed.u.save_failed.code = MUSTER_E_STORAGE; /* is not tried again */
    failed.u.save_failed.text = "as planned";
    swarm_say(swarm, &swarm->nodes[0], &failed);
    swarm_await(swarm, &swarm->ended, "for the end of the launch");
    swarm_leave(swarm, LEAVE_PREEMPTED);
}

static struct times musterd_once(struct swarm *swarm, const struct place *place, uint64_t launch)
{
    double began_ms;
    struct times times;

    swarm_join(swarm, launch);
    frozen = 0;
    frozen_round = 0;
    say_notice(swarm);
    swarm_await(swarm, &frozen, "for the freeze");
    swarm_quiet(swarm);
    swarm_forget(swarm);
    began_ms = kill_and_start(place, start_musterd);
    swarm_await(swarm, &swarm->welcomed, "for the broker that was started again");
    times.back_ms = bench_now_ms() - began_ms;
    swarm_await(swarm, &swarm->decided, "for the decision");
    times.decided_ms = swarm->decided_ms - began_ms;
    end_launch(swarm);
    return times;
}

/* --- runs ------------------------------------------------------------------------------------- */

static double worst(const double *values, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++)
        most = fmax(most, values[i]);
    return most;
}

/* Two of them cannot be started at a time: bench_server is one. */
static pid_t hold(pid_t other)
{
    pid_t held = bench_server;

    bench_server = other;
    return held;
}

static void print_figure(const char *name, double *values, size_t count)
{
    printf(", \"%s_ms\": %.1f, \"%s_worst_ms\": %.1f", name, bench_median(values, count), name,
           worst(values, count));
}

static void measure(const char *parent, size_t count, size_t rounds)
{
    double back[ROUNDS_LIMIT], decided[ROUNDS_LIMIT], floor[ROUNDS_LIMIT], beyond[ROUNDS_LIMIT];
    static const struct bench bench = {.name = "restart", .apply = apply};
    struct place places[2];
    struct swarm swarm, bare;
    int watch = inotify_init1(IN_CLOEXEC);
    pid_t musterd;

    place_make(parent, &places[0]);
    place_make(parent, &places[1]);
    if (inotify_add_watch(watch, places[0].dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
        bench_die("cannot watch %s: %s", places[0].dir, strerror(errno));
    start_musterd(&places[0]);
    await_port_file(watch, bench_server, places[0].port_file, &places[0].door);
    close(watch);
    swarm_open(&swarm, 0, count, &places[0].door, count, NULL);
    swarm.take = swarm_take_frame;
    swarm.bench = &bench;
    swarm_watch(&swarm, swarm_hello_again);
    musterd = hold(0);
    start_floor(&places[1]);
    swarm_open(&bare, 0, count, &places[1].door, count, NULL);
    bare.take = floor_take;
    swarm_watch(&bare, floor_connected);
    floor_await_topic(&bare);
    swarm_quiet(&bare);
    for (size_t i = 0; i < rounds; i++) {
        pid_t floor_server;
        struct times times;

        floor[i] = floor_once(&bare, &places[1]);
        floor_server = hold(musterd);
        times = musterd_once(&swarm, &places[0], i + 1);
        musterd = hold(floor_server);
        back[i] = times.back_ms;
        decided[i] = times.decided_ms;
        beyond[i] = decided[i] - floor[i];
    }
    bench_stop_server(SIGKILL);
    bench_server = musterd;
    bench_stop_server(SIGTERM);
    swarm_close(&bare);
    swarm_close(&swarm);
    for (size_t i = 0; i < 2; i++)
        bench_remove_directory(places[i].dir);
    printf("{\"nodes\": %zu", count);
    print_figure("back", back, rounds);
    print_figure("decided", decided, rounds);
    print_figure("floor", floor, rounds);
    print_figure("beyond", beyond, rounds);
    printf("}");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {8, 64, 256, 1000};
    size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : ROUNDS_DEFAULT;
    const char *directory = argc > 2 ? argv[2] : BUILD_DIR;

    if (argc == 3 && strcmp(argv[1], FLOOR_WORD) == 0)
        return floor_run(argv[2]);
    if (rounds == 0 || rounds > ROUNDS_LIMIT || argc > 3 + COUNTS_MAX)
        bench_die("usage: bench_restart [ROUNDS [DIRECTORY [NODES ...]]], at most %d rounds",
                  ROUNDS_LIMIT);
    bench_raise_files();
    printf("{\"bench\": \"restart\", \"rounds\": %zu, \"results\": [", rounds);
    fflush(stdout);
    for (size_t i = 0; argc > 3 ? i + 3 < (size_t)argc : i < sizeof counts / sizeof *counts; i++) {
        size_t count = argc > 3 ? strtoul(argv[i + 3], NULL, 10) : counts[i];

        if (count == 0 || count > SWARM_PROCESS_NODES / 2)
            bench_die("%s is no number of nodes from 1 to %d", argv[i + 3],
                      SWARM_PROCESS_NODES / 2);
        printf("%s", i > 0 ? ", " : "");
        fflush(stdout);
        measure(directory, count, rounds);
    }
    printf("]}\n");
    return EXIT_SUCCESS;
}
