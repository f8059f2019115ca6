#include "client/query/query_door.h"

#include "client/query/query_address.h"
#include "node/clock.h"
#include "node/link_key.h"
#include "schema/brokers.h"
#include "schema/error.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GREETING_BYTES 64
#define MECHANISM_AT 12

static bool door_wait(int fd, short events, int64_t until_ms)
{
    struct pollfd item = {.fd = fd, .events = events};
    int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
    int code;

    do
        code = poll(&item, 1, left_ms > 0 ? (int)left_ms : 0);
    while (code < 0 && errno == EINTR);
    return code > 0;
}

static int door_connect(const struct addrinfo *to, int64_t until_ms)
{
    int fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;
    socklen_t size = sizeof error;

    if (fd < 0)
        return -1;
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return fd;
    error = errno;
    if (error == EINPROGRESS)
        error = !door_wait(fd, POLLOUT, until_ms)                          ? ETIMEDOUT
                : getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? errno
                                                                           : error;
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* The first of its addresses that takes us; -1: none, and errno (0: not known) of the last. */
static int door_reach(const char *address, int64_t until_ms)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char name[ADDRESS_HOST_MAX + 1];
    const char *port = NULL;
    int fd = -1;

    errno = 0;
    if (!query_address_host(address, name, &port) || port == NULL ||
        getaddrinfo(name, port, &hints, &found) != 0)
        return -1;
    for (const struct addrinfo *to = found; to != NULL && fd < 0; to = to->ai_next)
        fd = door_connect(to, until_ms);
    freeaddrinfo(found);
    return fd;
}

/* *ret_curve: it asks for a key. False: no peer of ours greets there. */
static bool door_greeting(int fd, int64_t until_ms, bool *ret_curve)
{
    /* Signature and version: then the other side tells its mechanism. With ours it would close. */
    const unsigned char mine[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0};
    char theirs[GREETING_BYTES];
    size_t size = 0;

    if (send(fd, mine, sizeof mine, MSG_NOSIGNAL) != (ssize_t)sizeof mine)
        return false;
    while (size < sizeof theirs && door_wait(fd, POLLIN, until_ms)) {
        ssize_t got = recv(fd, theirs + size, sizeof theirs - size, 0);

        if (got <= 0)
            return false;
        size += (size_t)got;
    }
    *ret_curve = memcmp(theirs + MECHANISM_AT, "CURVE", sizeof "CURVE") == 0;
    return size == sizeof theirs && (unsigned char)theirs[0] == 0xff;
}

static bool door_asks(const char *address, bool *ret_curve)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + DOOR_WAIT_MS;
    int fd = door_reach(address, until_ms);
    bool greeted = fd >= 0 && door_greeting(fd, until_ms, ret_curve);

    if (fd >= 0)
        close(fd);
    return greeted;
}

static enum query_door door_perhaps(const char *address, const char *path,
                                    char ret_text[DOOR_TEXT_MAX])
{
    snprintf(
        ret_text, DOOR_TEXT_MAX,
        "the broker at %s stands still, or it does not accept the key in %s (revoked, expired, "
        "not valid yet, or another broker's): `muster key list` on its host tells, and musterd's "
        "log",
        address, path);
    return DOOR_PERHAPS;
}

enum query_door query_door_look(const char *address, char ret_text[DOOR_TEXT_MAX])
{
    const char *path = link_key_path();
    int error = errno;
    bool curve = false;
    bool greets = strncmp(address, "tcp://", strlen("tcp://")) == 0 && door_asks(address, &curve);

    errno = error;
    ret_text[0] = '\0';
    if (!greets || curve == (path != NULL))
        return greets && curve ? door_perhaps(address, path, ret_text) : DOOR_OPEN;
    if (curve)
        snprintf(ret_text, DOOR_TEXT_MAX,
                 "the broker at %s asks for a key: make one on its host with `muster key add`, and "
                 "name its file with " LINK_KEY_VARIABLE,
                 address);
    else
        snprintf(ret_text, DOOR_TEXT_MAX,
                 "the broker at %s has no keys, and a client that was given a key (%s) cannot "
                 "talk to it: unset " LINK_KEY_VARIABLE ", or use the right address",
                 address, path);
    return DOOR_SHUT;
}

/* Of a broker that did not answer, in short. */
static enum query_door door_why(const char *address, char ret_text[DOOR_TEXT_MAX])
{
    char trouble[ADDRESS_TROUBLE_MAX];
    enum query_door door;
    int fd, code;

    if (query_address_trouble(address, trouble)) {
        snprintf(ret_text, DOOR_TEXT_MAX, "%s", trouble);
        return DOOR_OPEN;
    }
    if (strncmp(address, "tcp://", strlen("tcp://")) != 0) {
        snprintf(ret_text, DOOR_TEXT_MAX, "no answer");
        return DOOR_OPEN;
    }
    fd = door_reach(address, clock_ms(CLOCK_MONOTONIC) + DOOR_WAIT_MS);
    code = errno;
    if (fd < 0) {
        snprintf(ret_text, DOOR_TEXT_MAX, "%s", code != 0 ? strerror(code) : "cannot be reached");
        return DOOR_OPEN;
    }
    close(fd);
    door = query_door_look(address, ret_text);
    if (door == DOOR_OPEN)
        snprintf(ret_text, DOOR_TEXT_MAX, "it takes connections and does not answer");
    return door;
}

bool query_door_tried(const char *brokers, char ret_text[DOORS_TEXT_MAX])
{
    char why[DOOR_TEXT_MAX];
    struct brokers list = {.count = 0};
    size_t used = 0, shut = 0;
    int error = errno;

    ret_text[0] = '\0';
    (void)brokers_read(brokers, &list, NULL);
    for (size_t i = 0; i < list.count; i++) {
        shut += door_why(list.address[i], why) == DOOR_SHUT;
        if (used < DOORS_TEXT_MAX)
            used += (size_t)snprintf(ret_text + used, DOORS_TEXT_MAX - used, "%s%s (%s)",
                                     i == 0 ? "" : ", ", list.address[i], why);
    }
    errno = error;
    return list.count > 0 && shut == list.count;
}

enum muster_status query_door_explain(const char *address, enum muster_status status,
                                      struct muster_error *err)
{
    char trouble[ADDRESS_TROUBLE_MAX], text[DOOR_TEXT_MAX];
    char tried[DOORS_TEXT_MAX];
    struct muster_error plain = {.status = MUSTER_OK};
    enum query_door door;

    if (status != MUSTER_E_BROKER)
        return status;
    if (err != NULL)
        plain = *err;
    if (strchr(address, ',') != NULL)
        return error_set(err, query_door_tried(address, tried) ? MUSTER_E_AUTH : status,
                         "%s. Tried: %s", plain.text, tried);
    if (query_address_trouble(address, trouble))
        return error_set(err, status, "%s: %s", trouble, plain.text);
    door = query_door_look(address, text);
    if (door == DOOR_OPEN)
        return status;
    return error_set(err, door == DOOR_SHUT ? MUSTER_E_AUTH : status, "%s", text);
}
