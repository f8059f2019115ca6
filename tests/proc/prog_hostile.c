/* A peer that means harm, on raw sockets, for a bounded time and count.
 *   prog_hostile parts ENDPOINT MEGABYTES      one message whose parts never end
 *   prog_hostile topics ENDPOINT COUNT         random topics, as many as a connection takes
 *   prog_hostile connections ENDPOINT COUNT MS holds that many connections for so long
 * Says on stdout what it could do: the bytes, the topics or the connections that were taken. */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define CONNECTS_MAX 2000 /* a broker that drops us is asked again so often */
#define PART_BYTES 1024
#define PARTS_A_WRITE 64
#define TOPIC_BYTES 60
#define TOPICS_A_WRITE 128

static int connect_tcp(char *host_port)
{
    char *colon = strrchr(host_port, ':');
    struct addrinfo *found = NULL;
    int fd = -1;

    *colon = '\0';
    if (getaddrinfo(host_port, colon + 1, NULL, &found) == 0) {
        fd = socket(found->ai_family, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
        freeaddrinfo(found);
    }
    *colon = ':';
    return fd;
}

static int connect_ipc(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Takes what the broker says, so that it never waits for us. */
static void drain(int fd)
{
    char bytes[4096];

    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static bool send_whole(int fd, const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
        drain(fd);
    }
    return true;
}

/* ZMTP 3.0 without security, and READY. */
static bool greet(int fd, const char *type)
{
    uint8_t greeting[64] = {[0] = 0xff, [9] = 0x7f, [10] = 3};
    uint8_t ready[64] = {4, 0, 5, 'R', 'E', 'A', 'D', 'Y', 11};
    size_t size = 9;

    memcpy(greeting + 12, "NULL", 4);
    memcpy(ready + size, "Socket-Type", 11);
    size += 11 + 3;
    ready[size++] = (uint8_t)strlen(type);
    memcpy(ready + size, type, strlen(type));
    size += strlen(type);
    ready[1] = (uint8_t)(size - 2);
    return send_whole(fd, greeting, sizeof greeting) && send_whole(fd, ready, size);
}

static int come(char *endpoint, const char *type)
{
    int fd = strncmp(endpoint, "ipc://", 6) == 0 ? connect_ipc(endpoint + 6)
                                                 : connect_tcp(endpoint + strlen("tcp://"));

    if (fd >= 0 && type != NULL && !greet(fd, type)) {
        close(fd);
        return -1;
    }
    return fd;
}

static uint64_t send_parts(char *endpoint, uint64_t megabytes)
{
    static uint8_t parts[PARTS_A_WRITE * (PART_BYTES + 9)];
    uint64_t sent = 0;

    for (size_t i = 0; i < PARTS_A_WRITE; i++) { /* more follows, long, eight bytes of length */
        parts[i * (PART_BYTES + 9)] = 3;
        parts[i * (PART_BYTES + 9) + 7] = PART_BYTES >> 8;
    }
    for (int i = 0; i < CONNECTS_MAX && sent < megabytes << 20; i++) {
        int fd = come(endpoint, "DEALER");

        while (fd >= 0 && sent < megabytes << 20 && send_whole(fd, parts, sizeof parts))
            sent += sizeof parts;
        if (fd >= 0)
            close(fd);
    }
    return sent;
}

static size_t add_topic(uint8_t *at, uint64_t *seed)
{
    at[0] = 0;
    at[1] = TOPIC_BYTES + 1;
    at[2] = 1;
    for (size_t i = 0; i < TOPIC_BYTES; i++) {
        *seed = *seed * 6364136223846793005U + 1442695040888963407U;
        at[3 + i] = (uint8_t)(*seed >> 56);
    }
    return TOPIC_BYTES + 3;
}

/* The connections stay: what was asked for on them is held as long. */
static uint64_t subscribe(char *endpoint, uint64_t count)
{
    static uint8_t topics[TOPICS_A_WRITE * (TOPIC_BYTES + 3)];
    uint64_t sent = 0, seed = 1;

    for (int i = 0; i < CONNECTS_MAX && sent < count; i++) {
        int fd = come(endpoint, "SUB");
        bool taken = fd >= 0;

        while (taken && sent < count) {
            size_t size = 0;

            for (size_t t = 0; t < TOPICS_A_WRITE; t++)
                size += add_topic(topics + size, &seed);
            taken = send_whole(fd, topics, size);
            sent += taken ? TOPICS_A_WRITE : 0;
        }
    }
    return sent;
}

static bool is_open(int fd)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};

    drain(fd);
    return poll(&item, 1, 0) == 0;
}

static uint64_t hold(char *endpoint, uint64_t count, long ms)
{
    static int fds[CONNECTIONS_MAX];
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    uint64_t held = 0, open = 0;

    for (; held < count && held < CONNECTIONS_MAX; held++)
        fds[held] = come(endpoint, "DEALER");
    nanosleep(&pause, NULL);
    for (uint64_t i = 0; i < held; i++)
        open += fds[i] >= 0 && is_open(fds[i]);
    return open;
}

int main(int argc, char **argv)
{
    uint64_t done;

    if (argc < 4)
        return 2;
    if (strcmp(argv[1], "parts") == 0)
        done = send_parts(argv[2], strtoull(argv[3], NULL, 10));
    else if (strcmp(argv[1], "topics") == 0)
        done = subscribe(argv[2], strtoull(argv[3], NULL, 10));
    else if (strcmp(argv[1], "connections") == 0 && argc > 4)
        done = hold(argv[2], strtoull(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
    else
        return 2;
    printf("%" PRIu64 "\n", done);
    return 0;
}
