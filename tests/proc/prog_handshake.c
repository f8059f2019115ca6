/* prog_handshake WHAT HOST PORT TIMES - raw connections to a broker that asks for keys, one after
 * another; says how many of them it closed, how many bytes behind its greeting it sent before, and
 * the longest that one lasted, in ms.
 *
 *     garbage  CURVE's greeting, then random bytes
 *     frames   the same, then well-formed frames of random bytes
 *     null     a greeting without keys, then READY and a message: a downgrade
 *     plain    the same with a password
 *     silent   nothing at all
 *     replay   once: says at which port a client with a key is to connect. What that says is passed
 *              on, and then, over a second connection, said once more */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20000
#define RECORD_MAX 65536

static uint64_t seed = 88172645463325252U;

static uint8_t random_byte(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint8_t)(seed >> 24);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int connect_to(const char *host, const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        perror("prog_handshake: connect");
        exit(1);
    }
    return fd;
}

static void say(int fd, const void *bytes, size_t size)
{
    (void)!send(fd, bytes, size, MSG_NOSIGNAL); /* it may have closed: that is the answer */
}

static void greet(int fd, const char *mechanism)
{
    uint8_t greeting[64] = {[0] = 0xff, [9] = 0x7f, [10] = 3};

    memcpy(greeting + 12, mechanism, strlen(mechanism));
    say(fd, greeting, sizeof greeting);
}

/* Until it closes. Returns the bytes that it said; below 0: it did not close. */
static long read_to_end(int fd)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    char bytes[4096];
    long all = 0;

    for (int64_t until = now_ms() + WAIT_MS; now_ms() < until;) {
        ssize_t got;

        if (poll(&item, 1, 1000) <= 0)
            continue;
        got = recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0)
            return all;
        all += got;
    }
    return -1;
}

static void act(const char *what, int fd)
{
    uint8_t bytes[200];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = random_byte();
    if (strcmp(what, "garbage") == 0 || strcmp(what, "frames") == 0)
        greet(fd, "CURVE");
    if (strcmp(what, "frames") == 0)
        memcpy(bytes, "\4\306\5HELLO\1\0", 10); /* a command of 198 bytes, as HELLO is */
    if (strcmp(what, "null") == 0 || strcmp(what, "plain") == 0) {
        greet(fd, what[0] == 'n' ? "NULL" : "PLAIN");
        say(fd, what[0] == 'n' ? "\4\6\5READY" : "\4\12\5HELLO\1a\1b", what[0] == 'n' ? 8 : 12);
        say(fd, "\0\4\223\1\3\0", 6);
    } else if (strcmp(what, "silent") != 0) {
        say(fd, bytes, sizeof bytes);
    }
}

static void many(const char *what, const char *host, const char *port, int times)
{
    long closed = 0, most = 0;
    int64_t longest = 0;

    for (int i = 0; i < times; i++) {
        int64_t since = now_ms();
        int fd = connect_to(host, port);
        long said;

        act(what, fd);
        said = read_to_end(fd);
        close(fd);
        closed += said >= 0;
        most = said > most ? said : most;
        longest = now_ms() - since > longest ? now_ms() - since : longest;
    }
    printf("%ld closed, %ld bytes at most, %ld ms at most\n", closed, most, (long)longest);
}

/* One direction, as far as something is there. Returns false at its end. */
static bool pass(int from, int to, uint8_t *record, size_t *size)
{
    uint8_t bytes[4096];
    ssize_t got = recv(from, bytes, sizeof bytes, 0);

    if (got <= 0)
        return false;
    if (record != NULL && *size + (size_t)got <= RECORD_MAX) {
        memcpy(record + *size, bytes, (size_t)got);
        *size += (size_t)got;
    }
    say(to, bytes, (size_t)got);
    return true;
}

static void replay(const char *host, const char *port)
{
    static uint8_t record[RECORD_MAX];
    struct sockaddr_in at = {.sin_family = AF_INET}; /* any free port */
    socklen_t at_size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client, broker;
    size_t size = 0;

    inet_pton(AF_INET, host, &at.sin_addr);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 4) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &at_size) != 0) {
        perror("prog_handshake: listen");
        exit(1);
    }
    printf("ready at %d\n", ntohs(at.sin_port));
    fflush(stdout);
    client = accept(listener, NULL, NULL);
    broker = connect_to(host, port);
    for (bool both = true; both;) {
        struct pollfd items[] = {{.fd = client, .events = POLLIN},
                                 {.fd = broker, .events = POLLIN}};

        poll(items, 2, 1000);
        if (items[0].revents != 0)
            both = pass(client, broker, record, &size);
        if (both && items[1].revents != 0)
            both = pass(broker, client, NULL, NULL);
    }
    close(client);
    close(broker);
    broker = connect_to(host, port);
    say(broker, record, size);
    printf("%zu bytes said again: %s\n", size, read_to_end(broker) >= 0 ? "closed" : "open");
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("prog_handshake WHAT HOST PORT TIMES\n", stderr);
        return 1;
    }
    if (strcmp(argv[1], "replay") == 0)
        replay(argv[2], argv[3]);
    else
        many(argv[1], argv[2], argv[3], atoi(argv[4]));
    return 0;
}
