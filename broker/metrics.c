/* metrics - see metrics.h. One thread polls the listening socket and its connections; each has a
 * request of at most a kilobyte, an answer, and a deadline. */
#include "broker/metrics.h"

#include "broker/base/clock.h"

#include "schema/error.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define METRICS_REQUEST_MAX 1024
#define METRICS_STALE_MS 10000

enum metrics_phase { METRICS_READS, METRICS_WAITS, METRICS_WRITES };

struct metrics_connection {
    int fd; /* -1 = none */
    enum metrics_phase phase;
    int64_t until_ms, wait_until_ms;
    uint64_t after; /* waits for a text that is newer than this one */
    bool open;      /* asks for OpenMetrics */
    char request[METRICS_REQUEST_MAX];
    size_t request_size;
    char *answer; /* owned */
    size_t answer_size, written;
};

struct metrics {
    char address[300];
    bool local;
    int listen_fd, wake_fd;
    pthread_t thread;
    struct metrics_connection connections[METRICS_CONNECTIONS_MAX];
    pthread_mutex_t lock; /* of what follows */
    bool stop, wanted;
    uint64_t number;       /* of the texts */
    int64_t written_ms;    /* boot time */
    char *text, *text_old; /* owned; OpenMetrics, and the older form */
};

static void metrics_wake(struct metrics *metrics)
{
    const uint64_t one = 1;

    if (write(metrics->wake_fd, &one, sizeof one) < 0) /* then it is awake already */
        return;
}

/* --- the loop's side -------------------------------------------------------------------------- */

bool metrics_is_due(struct metrics *metrics, int64_t now_boot_ms)
{
    bool due;

    pthread_mutex_lock(&metrics->lock);
    due = metrics->wanted &&
          (metrics->text == NULL || now_boot_ms - metrics->written_ms >= METRICS_FRESH_MS);
    pthread_mutex_unlock(&metrics->lock);
    return due;
}

void metrics_write(struct metrics *metrics, const struct self *self, int64_t now_boot_ms)
{
    char *text = metrics_text(self, true), *text_old = metrics_text(self, false);

    pthread_mutex_lock(&metrics->lock);
    if (text != NULL && text_old != NULL) {
        char *swap = metrics->text;

        metrics->text = text;
        text = swap;
        swap = metrics->text_old;
        metrics->text_old = text_old;
        text_old = swap;
        metrics->number++;
        metrics->written_ms = now_boot_ms;
        metrics->wanted = false;
    }
    pthread_mutex_unlock(&metrics->lock);
    free(text);
    free(text_old);
    metrics_wake(metrics);
}

/* --- one connection --------------------------------------------------------------------------- */

static void metrics_drop(struct metrics_connection *connection)
{
    close(connection->fd);
    free(connection->answer);
    connection->answer = NULL;
    connection->fd = -1;
}

static void metrics_answer(struct metrics_connection *connection, const char *status,
                           const char *type, const char *body)
{
    int size = asprintf(&connection->answer,
                        "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                        "Connection: close\r\n\r\n%s",
                        status, type, strlen(body), body);

    if (size < 0) {
        connection->answer = NULL;
        metrics_drop(connection);
        return;
    }
    connection->answer_size = (size_t)size;
    connection->phase = METRICS_WRITES;
}

/* The newest text, if it is new enough, or if no newer one comes and it is not too old: a loop that
 * hangs must not look alive. */
static void metrics_try_answer(struct metrics *metrics, struct metrics_connection *connection,
                               int64_t now_ms)
{
    char *text = NULL;
    bool late = now_ms >= connection->wait_until_ms;

    pthread_mutex_lock(&metrics->lock);
    if (metrics->text != NULL && (metrics->number > connection->after ||
                                  (late && now_ms - metrics->written_ms < METRICS_STALE_MS)))
        text = strdup(connection->open ? metrics->text : metrics->text_old);
    pthread_mutex_unlock(&metrics->lock);
    if (text != NULL)
        metrics_answer(connection, "200 OK",
                       connection->open
                           ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                           : "text/plain; version=0.0.4; charset=utf-8",
                       text);
    else if (late)
        metrics_answer(connection, "503 Service Unavailable", "text/plain",
                       "the broker is busy: ask again\n");
    free(text);
}

static void metrics_want(struct metrics *metrics, struct metrics_connection *connection,
                         int64_t now_ms)
{
    pthread_mutex_lock(&metrics->lock);
    metrics->wanted = true;
    connection->after = metrics->number;
    if (metrics->text != NULL && now_ms - metrics->written_ms < METRICS_FRESH_MS)
        connection->after--;
    pthread_mutex_unlock(&metrics->lock);
    connection->phase = METRICS_WAITS;
    connection->wait_until_ms = now_ms + METRICS_PATIENCE_MS / 2;
    metrics_try_answer(metrics, connection, now_ms);
}

static void metrics_requested(struct metrics *metrics, struct metrics_connection *connection,
                              int64_t now_ms)
{
    const char *line = connection->request;

    connection->open = strstr(line, "application/openmetrics-text") != NULL;
    if (strncmp(line, "GET /metrics ", 13) == 0)
        metrics_want(metrics, connection, now_ms);
    else if (strncmp(line, "GET ", 4) == 0)
        metrics_answer(connection, "404 Not Found", "text/plain", "only /metrics is here\n");
    else
        metrics_answer(connection, "405 Method Not Allowed", "text/plain", "only GET is here\n");
}

static void metrics_read(struct metrics *metrics, struct metrics_connection *connection,
                         int64_t now_ms)
{
    size_t room = sizeof connection->request - 1 - connection->request_size;
    ssize_t got = read(connection->fd, connection->request + connection->request_size, room);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        metrics_drop(connection);
        return;
    }
    connection->request_size += (size_t)got;
    connection->request[connection->request_size] = '\0';
    if (strstr(connection->request, "\r\n\r\n") != NULL)
        metrics_requested(metrics, connection, now_ms);
    else if (connection->request_size == sizeof connection->request - 1)
        metrics_answer(connection, "431 Request Header Fields Too Large", "text/plain",
                       "the request is too long\n");
}

static void metrics_send(struct metrics_connection *connection)
{
    ssize_t put = write(connection->fd, connection->answer + connection->written,
                        connection->answer_size - connection->written);

    if (put < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (put > 0)
        connection->written += (size_t)put;
    if (put < 0 || connection->written == connection->answer_size)
        metrics_drop(connection);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Not by accept4(), which is libzmq's in this program: see bus_guard.h. One connection too many is
 * closed at once. */
static void metrics_accept(struct metrics *metrics, int64_t now_ms)
{
    int fd =
        (int)syscall(SYS_accept4, metrics->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    for (size_t i = 0; i < METRICS_CONNECTIONS_MAX; i++) {
        if (metrics->connections[i].fd >= 0)
            continue;
        metrics->connections[i] =
            (struct metrics_connection){.fd = fd, .until_ms = now_ms + METRICS_PATIENCE_MS};
        return;
    }
    close(fd);
}

static void metrics_turn(struct metrics *metrics, struct metrics_connection *connection,
                         short events, int64_t now_ms)
{
    if (connection->fd < 0)
        return;
    if (connection->phase == METRICS_READS && events != 0)
        metrics_read(metrics, connection, now_ms);
    if (connection->fd >= 0 && connection->phase == METRICS_WAITS)
        metrics_try_answer(metrics, connection, now_ms);
    if (connection->fd >= 0 && connection->phase == METRICS_WRITES)
        metrics_send(connection);
    if (connection->fd >= 0 && now_ms >= connection->until_ms)
        metrics_drop(connection);
}

/* How long the thread may sleep. */
static int metrics_wait_ms(const struct metrics *metrics, int64_t now_ms)
{
    int64_t until_ms = now_ms + 60000;

    for (size_t i = 0; i < METRICS_CONNECTIONS_MAX; i++) {
        const struct metrics_connection *connection = &metrics->connections[i];

        if (connection->fd < 0)
            continue;
        if (connection->until_ms < until_ms)
            until_ms = connection->until_ms;
        if (connection->phase == METRICS_WAITS && connection->wait_until_ms < until_ms)
            until_ms = connection->wait_until_ms;
    }
    return until_ms <= now_ms ? 0 : (int)(until_ms - now_ms);
}

static bool metrics_stops(struct metrics *metrics)
{
    bool stop;

    pthread_mutex_lock(&metrics->lock);
    stop = metrics->stop;
    pthread_mutex_unlock(&metrics->lock);
    return stop;
}

static void *metrics_serve(void *arg)
{
    struct metrics *metrics = arg;

    while (!metrics_stops(metrics)) {
        struct pollfd fds[METRICS_CONNECTIONS_MAX + 2];
        uint64_t woken;
        int64_t now_ms;

        fds[0] = (struct pollfd){.fd = metrics->wake_fd, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = metrics->listen_fd, .events = POLLIN};
        for (size_t i = 0; i < METRICS_CONNECTIONS_MAX; i++) {
            static const short events[] = {
                [METRICS_READS] = POLLIN, [METRICS_WAITS] = 0, [METRICS_WRITES] = POLLOUT};

            fds[i + 2] = (struct pollfd){.fd = metrics->connections[i].fd,
                                         .events = events[metrics->connections[i].phase]};
        }
        poll(fds, METRICS_CONNECTIONS_MAX + 2, metrics_wait_ms(metrics, clock_ms(CLOCK_BOOTTIME)));
        now_ms = clock_ms(CLOCK_BOOTTIME);
        if (fds[0].revents != 0 && read(metrics->wake_fd, &woken, sizeof woken) < 0)
            continue;
        for (size_t i = 0; i < METRICS_CONNECTIONS_MAX; i++) {
            if ((fds[i + 2].revents & (POLLERR | POLLHUP)) != 0 && fds[i + 2].events == 0)
                metrics_drop(&metrics->connections[i]);
            metrics_turn(metrics, &metrics->connections[i], fds[i + 2].revents, now_ms);
        }
        if (fds[1].revents != 0)
            metrics_accept(metrics, now_ms);
    }
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static enum muster_status metrics_find(const char *address, struct addrinfo **ret_found,
                                       struct muster_error *err)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    const char *colon = strrchr(address, ':');
    char host[256];

    if (colon == NULL || colon == address || (size_t)(colon - address) >= sizeof host)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "--metrics is \"%s\"; give HOST:PORT in numbers, as 127.0.0.1:7790",
                         address);
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    if (host[0] == '[' && host[strlen(host) - 1] == ']') { /* IPv6 */
        host[strlen(host) - 1] = '\0';
        memmove(host, host + 1, strlen(host));
    }
    if (getaddrinfo(host, colon + 1, &want, ret_found) != 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "--metrics is \"%s\"; give HOST:PORT in numbers, as 127.0.0.1:7790",
                         address);
    return MUSTER_OK;
}

static bool metrics_name(struct metrics *metrics)
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    char host[128], port[16];

    if (getsockname(metrics->listen_fd, (struct sockaddr *)&name, &size) != 0 ||
        getnameinfo((struct sockaddr *)&name, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    metrics->local = strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    snprintf(metrics->address, sizeof metrics->address,
             strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
    return true;
}

static enum muster_status metrics_listen(struct metrics *metrics, const char *address,
                                         struct muster_error *err)
{
    struct addrinfo *found = NULL;
    enum muster_status status = metrics_find(address, &found, err);
    const int yes = 1;
    bool ok;

    if (status != MUSTER_OK)
        return status;
    metrics->listen_fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ok = metrics->listen_fd >= 0 &&
         setsockopt(metrics->listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
         bind(metrics->listen_fd, found->ai_addr, found->ai_addrlen) == 0 &&
         listen(metrics->listen_fd, METRICS_CONNECTIONS_MAX) == 0 && metrics_name(metrics);
    if (!ok)
        error_set_code(err, MUSTER_E_IO, errno,
                       "cannot listen at %s for metrics: %s; choose another address with --metrics",
                       address, strerror(errno));
    freeaddrinfo(found);
    return ok ? MUSTER_OK : MUSTER_E_IO;
}

enum muster_status metrics_open(const char *address, struct metrics **ret_metrics,
                                struct muster_error *err)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    enum muster_status status;

    if (metrics == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for metrics");
    for (size_t i = 0; i < METRICS_CONNECTIONS_MAX; i++)
        metrics->connections[i].fd = -1;
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->listen_fd = -1;
    metrics->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    status = metrics_listen(metrics, address, err);
    if (status == MUSTER_OK &&
        (metrics->wake_fd < 0 ||
         pthread_create(&metrics->thread, NULL, metrics_serve, metrics) != 0))
        status = error_set(err, MUSTER_E_IO, "cannot begin the thread that answers for metrics");
    if (status == MUSTER_OK) {
        *ret_metrics = metrics;
        return MUSTER_OK;
    }
    if (metrics->listen_fd >= 0)
        close(metrics->listen_fd);
    if (metrics->wake_fd >= 0)
        close(metrics->wake_fd);
    free(metrics);
    return status;
}

void metrics_close(struct metrics **metrics)
{
    struct metrics *closed = *metrics;

    if (closed == NULL)
        return;
    *metrics = NULL;
    pthread_mutex_lock(&closed->lock);
    closed->stop = true;
    pthread_mutex_unlock(&closed->lock);
    metrics_wake(closed);
    pthread_join(closed->thread, NULL);
    for (size_t i = 0; i < METRICS_CONNECTIONS_MAX; i++)
        if (closed->connections[i].fd >= 0)
            metrics_drop(&closed->connections[i]);
    close(closed->listen_fd);
    close(closed->wake_fd);
    pthread_mutex_destroy(&closed->lock);
    free(closed->text);
    free(closed->text_old);
    free(closed);
}

const char *metrics_address(const struct metrics *metrics)
{
    return metrics->address;
}

bool metrics_is_local(const struct metrics *metrics)
{
    return metrics->local;
}
