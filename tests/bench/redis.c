#include "tests/bench/redis.h"

#include "tests/bench/swarm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 120000
#define BODY_BYTES HEAD_BYTES /* as large as muster's */
#define BUFFER_BYTES 1024
#define READY_MAX 256

struct peer { /* of one node */
    int commands, news;
    char answers[BUFFER_BYTES], messages[BUFFER_BYTES];
    size_t answers_size, messages_size;
};

struct redis {
    pid_t server;
    in_port_t port;
    int poll;
    struct peer *peers;
    size_t count;
    size_t heard, decided; /* how many have subscribed, and the decision */
    unsigned long round;
};

bool redis_is_here(void)
{
    return system("command -v redis-server >/dev/null") == 0;
}

static double redis_cpu_ms(const struct redis *redis)
{
    struct timespec used = {0};
    clockid_t clock;

    if (clock_getcpuclockid(redis->server, &clock) == 0)
        clock_gettime(clock, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

/* --- the server ------------------------------------------------------------------------------- */

static struct sockaddr_in loopback(in_port_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static in_port_t free_port(void)
{
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        bench_die("no port is free: %s", strerror(errno));
    close(fd);
    return at.sin_port;
}

static void redis_start(struct redis *redis, const char *dir)
{
    char port[16];

    redis->port = free_port();
    snprintf(port, sizeof port, "%d", ntohs(redis->port));
    redis->server = fork();
    if (redis->server == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(null, STDOUT_FILENO);
        execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir,
               "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxclients",
               "10000", (char *)NULL);
        _exit(127);
    }
    bench_server = redis->server; /* bench_die ends it */
}

static int redis_connect(const struct redis *redis)
{
    const struct sockaddr_in at = loopback(redis->port);
    const struct timespec pause = {.tv_nsec = 10000000};
    double until = bench_now_ms() + PATIENCE_MS;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    while (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        if (bench_now_ms() > until)
            bench_die("redis-server did not start");
        nanosleep(&pause, NULL);
    }
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        bench_die("cannot connect to Redis: %s", strerror(errno));
    return fd;
}

/* --- the nodes -------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void redis_say(int fd, const char *format, ...)
{
    char line[BUFFER_BYTES];
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (write(fd, line, (size_t)size) != size)
        bench_die("cannot speak to Redis: %s", strerror(errno));
}

static void redis_publish(const struct peer *peer, char kind)
{
    char body[BODY_BYTES + 1];

    memset(body, kind, BODY_BYTES);
    body[BODY_BYTES] = '\0';
    redis_say(peer->commands, "PUBLISH bench %s\r\n", body);
}

/* What is whole of it: a message on the topic ends with its body, which begins with its kind. */
static void take_messages(struct redis *redis, struct peer *peer)
{
    static const char head[] = "*3\r\n$7\r\nmessage\r\n$5\r\nbench\r\n$60\r\n";
    static const char hello[] = "*3\r\n$9\r\nsubscribe\r\n$5\r\nbench\r\n:1\r\n";
    const size_t size = sizeof head - 1 + BODY_BYTES + 2;
    char body[BODY_BYTES + 1];

    for (;;) {
        size_t taken = 0;

        if (peer->messages_size >= sizeof hello - 1 &&
            memcmp(peer->messages, hello, sizeof hello - 1) == 0) {
            taken = sizeof hello - 1;
            redis->heard++;
        } else if (peer->messages_size >= size &&
                   memcmp(peer->messages, head, sizeof head - 1) == 0) {
            taken = size;
            memset(body, 'r', BODY_BYTES);
            body[BODY_BYTES] = '\0';
            if (peer->messages[size - 3] == 'f')
                redis_say(peer->commands, "RPUSH reports:%lu %s\r\n", redis->round, body);
            else
                redis->decided++;
        } else if (peer->messages_size >= size) {
            bench_die("Redis says what is not understood");
        }
        if (taken == 0)
            return;
        peer->messages_size -= taken;
        memmove(peer->messages, peer->messages + taken, peer->messages_size);
    }
}

/* Of RPUSH: how many reports there are. The last one decides. Other answers are the length of
 * nothing. */
static void take_answers(struct redis *redis, struct peer *peer)
{
    char *end;

    while ((end = memchr(peer->answers, '\n', peer->answers_size)) != NULL) {
        size_t taken = (size_t)(end - peer->answers) + 1;

        if (peer->answers[0] == '-')
            bench_die("Redis refuses: %.*s", (int)taken, peer->answers);
        if (peer->answers[0] == ':' && redis->decided == 0 &&
            strtoul(peer->answers + 1, NULL, 10) == redis->count + 1) {
            redis_say(peer->commands, "SET decision:%lu 12\r\n", redis->round);
            redis_publish(peer, 'd');
        }
        peer->answers_size -= taken;
        memmove(peer->answers, peer->answers + taken, peer->answers_size);
    }
}

static void redis_take(struct redis *redis, uint64_t which)
{
    struct peer *peer = &redis->peers[which / 2];
    bool news = which % 2 != 0;
    char *buffer = news ? peer->messages : peer->answers;
    size_t *size = news ? &peer->messages_size : &peer->answers_size;
    ssize_t got = read(news ? peer->news : peer->commands, buffer + *size, BUFFER_BYTES - *size);

    if (got <= 0)
        bench_die("Redis hung up");
    *size += (size_t)got;
    if (news)
        take_messages(redis, peer);
    else
        take_answers(redis, peer);
}

static void redis_await(struct redis *redis, const size_t *counter)
{
    struct epoll_event ready[READY_MAX];
    double until = bench_now_ms() + PATIENCE_MS;

    while (*counter < redis->count) {
        int count = epoll_wait(redis->poll, ready, READY_MAX, 100);

        for (int i = 0; i < count; i++)
            redis_take(redis, ready[i].data.u64);
        if (bench_now_ms() > until)
            bench_die("nodes waited in vain for Redis");
    }
}

static void redis_join(struct redis *redis)
{
    redis->poll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < redis->count; i++) {
        struct peer *peer = &redis->peers[i];
        struct epoll_event commands = {.events = EPOLLIN, .data.u64 = 2 * i};
        struct epoll_event news = {.events = EPOLLIN, .data.u64 = 2 * i + 1};

        peer->commands = redis_connect(redis);
        peer->news = redis_connect(redis);
        if (epoll_ctl(redis->poll, EPOLL_CTL_ADD, peer->commands, &commands) != 0 ||
            epoll_ctl(redis->poll, EPOLL_CTL_ADD, peer->news, &news) != 0)
            bench_die("cannot wait for Redis: %s", strerror(errno));
        redis_say(peer->news, "SUBSCRIBE bench\r\n");
    }
    redis_await(redis, &redis->heard);
}

static double redis_once(struct redis *redis)
{
    double began_ms = bench_now_ms();
    const struct peer *first = &redis->peers[redis->round++ % redis->count];

    redis->decided = 0;
    redis_say(first->commands, "RPUSH reports:%lu notice\r\n", redis->round);
    redis_publish(first, 'f');
    redis_await(redis, &redis->decided);
    return bench_now_ms() - began_ms;
}

void redis_measure(const char *dir, size_t count, size_t rounds, double *ret_times_ms,
                   double *ret_cpu_ms)
{
    struct redis redis = {.count = count, .peers = calloc(count, sizeof *redis.peers)};

    if (redis.peers == NULL)
        bench_die("no memory");
    redis_start(&redis, dir);
    redis_join(&redis);
    redis_once(&redis);
    for (size_t i = 0; i < rounds; i++) {
        double cpu_ms = redis_cpu_ms(&redis);

        ret_times_ms[i] = redis_once(&redis);
        ret_cpu_ms[i] = redis_cpu_ms(&redis) - cpu_ms;
    }
    bench_stop_server(SIGKILL);
    for (size_t i = 0; i < count; i++) {
        close(redis.peers[i].commands);
        close(redis.peers[i].news);
    }
    close(redis.poll);
    free(redis.peers);
}
