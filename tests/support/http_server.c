/* http_server - see http_server.h. */
#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SCRIPTS_MAX 64
#define SEEN_MAX 32
#define REQUEST_MAX 8192
#define PATH_MAX_BYTES 256
#define CONNECTIONS_MAX 256

struct route {
    char method[8], path[PATH_MAX_BYTES];
    struct http_script script;
    char *headers, *body, *needs, *holds;
    int used;
};
struct seen {
    char path[PATH_MAX_BYTES + 8];
    size_t hits;
    int64_t last_boot_ms;
    char request[REQUEST_MAX];
};

struct http_server {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct route routes[SCRIPTS_MAX];
    size_t route_count;
    unsigned version; /* of the routes */
    struct seen seen[SEEN_MAX];
    size_t seen_count;
    size_t hits;
    bool stop;
    int held; /* bound and never listening: the port stays ours while the server is away */
    int fd, stop_pipe[2];
    char url[64];
    pthread_t thread;
    pthread_t connections[CONNECTIONS_MAX];
    size_t connection_count;
};

struct connection {
    struct http_server *server;
    int fd;
};

static int64_t boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* True: the server stops. */
static bool pause_ms(struct http_server *server, int ms)
{
    struct pollfd item = {.fd = server->stop_pipe[0], .events = POLLIN};

    return poll(&item, 1, ms) > 0;
}

static bool send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* Until the empty line, and the body that Content-Length tells. */
static bool read_request(int fd, char request[REQUEST_MAX])
{
    size_t size = 0;
    const char *end, *length;

    for (;;) {
        ssize_t got = recv(fd, request + size, REQUEST_MAX - 1 - size, 0);

        if (got <= 0)
            return false;
        size += (size_t)got;
        request[size] = '\0';
        end = strstr(request, "\r\n\r\n");
        if (end == NULL)
            continue;
        length = strcasestr(request, "Content-Length:");
        if (length == NULL || length > end ||
            size >= (size_t)(end + 4 - request) + strtoul(length + 15, NULL, 10))
            return true;
    }
}

static void note(struct http_server *server, const char *path, const char *request)
{
    struct seen *seen = NULL;

    for (size_t i = 0; i < server->seen_count && seen == NULL; i++)
        if (strcmp(server->seen[i].path, path) == 0)
            seen = &server->seen[i];
    if (seen == NULL) {
        assert(server->seen_count < SEEN_MAX);
        seen = &server->seen[server->seen_count++];
        snprintf(seen->path, sizeof seen->path, "%s", path);
    }
    seen->hits++;
    server->hits++;
    seen->last_boot_ms = boot_ms();
    memcpy(seen->request, request, REQUEST_MAX);
    pthread_cond_broadcast(&server->changed);
}

/* Mutex held. The strings of the copy are owned. */
static struct http_script choose(struct http_server *server, const char *method, const char *path,
                                 const char *request, bool *ret_holds)
{
    struct http_script script = {.status = 404, .body = "404 - Not Found"};

    *ret_holds = false;
    for (size_t i = 0; i < server->route_count; i++) {
        struct route *route = &server->routes[i];

        if (strcmp(route->method, method) != 0 || strcmp(route->path, path) != 0 ||
            (route->script.times > 0 && route->used >= route->script.times))
            continue;
        route->used++;
        script = route->script;
        if (route->needs != NULL && strstr(request, route->needs) == NULL)
            script = (struct http_script){.status = 401, .body = "401 - Unauthorized"};
        *ret_holds = route->holds != NULL && strstr(request, route->holds) != NULL;
        break;
    }
    script.headers = strdup(script.headers != NULL ? script.headers : "");
    script.body = strdup(script.body != NULL ? script.body : "");
    return script;
}

/* As choose, after the wait that a script asks for. */
static struct http_script choose_waiting(struct http_server *server, const char *method,
                                         const char *path, const char *request)
{
    bool holds;
    struct http_script script = choose(server, method, path, request, &holds);

    while (holds && !server->stop) {
        unsigned version = server->version;

        while (server->version == version && !server->stop)
            pthread_cond_wait(&server->changed, &server->mutex);
        free((char *)(uintptr_t)script.headers);
        free((char *)(uintptr_t)script.body);
        script = choose(server, method, path, request, &holds);
    }
    return script;
}

static void send_body(struct http_server *server, int fd, const struct http_script *script)
{
    size_t size = strlen(script->body);

    if (script->way == HTTP_WAY_PART)
        size /= 2;
    if (script->slow_ms == 0) {
        send_all(fd, script->body, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        if (pause_ms(server, script->slow_ms) || !send_all(fd, script->body + i, 1))
            return;
}

static void answer(struct http_server *server, int fd, const struct http_script *script)
{
    char head[4096], length[64] = "";

    if (!script->no_length)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(script->body));
    snprintf(head, sizeof head, "HTTP/%s %d X\r\n%s%s%s\r\n", script->http_1_0 ? "1.0" : "1.1",
             script->status != 0 ? script->status : 200, length, script->headers,
             script->http_1_0 || script->no_length ? "Connection: close\r\n" : "");
    if (send_all(fd, head, strlen(head)))
        send_body(server, fd, script);
}

static void misbehave(struct http_server *server, int fd, const struct http_script *script)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    switch (script->way) {
    case HTTP_WAY_RESET:
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        break;
    case HTTP_WAY_HANG:
        while (!pause_ms(server, 1000))
            continue;
        break;
    case HTTP_WAY_GARBAGE:
        send_all(fd, script->body, strlen(script->body));
        break;
    case HTTP_WAY_CLOSE:
        break;
    case HTTP_WAY_PART:
    case HTTP_WAY_ANSWER:
        answer(server, fd, script);
        break;
    }
}

static void *serve(void *arg)
{
    struct connection *connection = arg;
    struct http_server *server = connection->server;
    char request[REQUEST_MAX] = "", method[8], path[PATH_MAX_BYTES], posted[PATH_MAX_BYTES + 8];
    struct http_script script;

    if (read_request(connection->fd, request) &&
        sscanf(request, "%7s %255[^ ?]", method, path) == 2) {
        pthread_mutex_lock(&server->mutex);
        snprintf(posted, sizeof posted, "POST %s", path);
        note(server, strcmp(method, "POST") == 0 ? posted : path, request);
        script = choose_waiting(server, method, path, request);
        pthread_mutex_unlock(&server->mutex);
        if (script.delay_ms == 0 || !pause_ms(server, script.delay_ms))
            misbehave(server, connection->fd, &script);
        free((char *)(uintptr_t)script.headers);
        free((char *)(uintptr_t)script.body);
    }
    close(connection->fd);
    free(connection);
    return NULL;
}

static void *run(void *arg)
{
    struct http_server *server = arg;
    struct pollfd items[2] = {{.fd = server->stop_pipe[0], .events = POLLIN},
                              {.fd = server->fd, .events = POLLIN}};

    while (poll(items, 2, -1) >= 0 && items[0].revents == 0) {
        struct connection *connection = malloc(sizeof *connection);
        size_t index = server->connection_count % CONNECTIONS_MAX;

        assert(connection != NULL);
        *connection = (struct connection){server, accept(server->fd, NULL, NULL)};
        if (server->connection_count >= CONNECTIONS_MAX) /* an old one: it has ended, or hangs */
            pthread_join(server->connections[index], NULL);
        assert(pthread_create(&server->connections[index], NULL, serve, connection) == 0);
        server->connection_count++;
    }
    return NULL;
}

static void server_dies(const struct sockaddr_in *at)
{
    fprintf(stderr, "http_server: port %d: %s\n", ntohs(at->sin_port), strerror(errno));
    abort();
}

/* A socket at that port, which others may share that do not listen either. */
static int bound_to(struct sockaddr_in *at)
{
    const int yes = 1;
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)at, size) != 0 ||
        getsockname(fd, (struct sockaddr *)at, &size) != 0)
        server_dies(at);
    return fd;
}

void http_server_resume(struct http_server *server)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;

    if (getsockname(server->held, (struct sockaddr *)&at, &size) != 0)
        server_dies(&at);
    server->fd = bound_to(&at);
    server->stop = false;
    server->connection_count = 0;
    if (listen(server->fd, 64) != 0 || pipe(server->stop_pipe) != 0 ||
        pthread_create(&server->thread, NULL, run, server) != 0)
        server_dies(&at);
}

struct http_server *http_server_start_at(const char *address, int port)
{
    struct http_server *server = calloc(1, sizeof *server);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    assert(server != NULL && inet_pton(AF_INET, address, &at.sin_addr) == 1);
    pthread_mutex_init(&server->mutex, NULL);
    pthread_cond_init(&server->changed, NULL);
    server->held = bound_to(&at);
    snprintf(server->url, sizeof server->url, "http://%s:%d", address, ntohs(at.sin_port));
    http_server_resume(server);
    return server;
}

struct http_server *http_server_start(void)
{
    return http_server_start_at("127.0.0.1", 0);
}

const char *http_server_url(const struct http_server *server)
{
    return server->url;
}

void http_server_pause(struct http_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->stop = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
    assert(write(server->stop_pipe[1], "x", 1) == 1);
    pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->connection_count && i < CONNECTIONS_MAX; i++)
        pthread_join(server->connections[i], NULL);
    http_server_reset(server, NULL);
    close(server->fd);
    close(server->stop_pipe[0]);
    close(server->stop_pipe[1]);
    server->fd = -1;
}

void http_server_stop(struct http_server **server)
{
    struct http_server *s = *server;

    if (s == NULL)
        return;
    *server = NULL;
    if (s->fd >= 0)
        http_server_pause(s);
    close(s->held);
    free(s);
}

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

/* Mutex held, as for forget. */
static void add(struct http_server *server, const char *method, const char *path,
                struct http_script script)
{
    struct route *route;

    assert(server->route_count < SCRIPTS_MAX);
    route = &server->routes[server->route_count++];
    memset(route, 0, sizeof *route);
    snprintf(route->method, sizeof route->method, "%s", method);
    snprintf(route->path, sizeof route->path, "%s", path);
    script.headers = route->headers = copy(script.headers);
    script.body = route->body = copy(script.body);
    script.needs = route->needs = copy(script.needs);
    script.holds = route->holds = copy(script.holds);
    route->script = script;
}

static void forget(struct http_server *server, const char *path)
{
    size_t kept = 0;

    for (size_t i = 0; i < server->route_count; i++) {
        struct route *route = &server->routes[i];

        if (path != NULL && strcmp(route->path, path) != 0) {
            server->routes[kept++] = *route;
            continue;
        }
        free(route->headers);
        free(route->body);
        free(route->needs);
        free(route->holds);
    }
    server->route_count = kept;
}

static void tell_changed(struct http_server *server)
{
    server->version++;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
}

void http_server_on(struct http_server *server, const char *method, const char *path,
                    struct http_script script)
{
    pthread_mutex_lock(&server->mutex);
    add(server, method, path, script);
    tell_changed(server);
}

void http_server_replace(struct http_server *server, const char *method, const char *path,
                         struct http_script script)
{
    pthread_mutex_lock(&server->mutex);
    forget(server, path);
    add(server, method, path, script);
    tell_changed(server);
}

void http_server_reset(struct http_server *server, const char *path)
{
    pthread_mutex_lock(&server->mutex);
    forget(server, path);
    tell_changed(server);
}

static const struct seen *seen_of(const struct http_server *server, const char *path)
{
    for (size_t i = 0; i < server->seen_count; i++)
        if (strcmp(server->seen[i].path, path) == 0)
            return &server->seen[i];
    return NULL;
}

static size_t hits(const struct http_server *server, const char *path)
{
    const struct seen *seen = path != NULL ? seen_of(server, path) : NULL;

    return path == NULL ? server->hits : seen != NULL ? seen->hits : 0;
}

size_t http_server_hits(struct http_server *server, const char *path)
{
    size_t count;

    pthread_mutex_lock(&server->mutex);
    count = hits(server, path);
    pthread_mutex_unlock(&server->mutex);
    return count;
}

int64_t http_server_last_boot_ms(struct http_server *server, const char *path)
{
    int64_t at = -1;

    pthread_mutex_lock(&server->mutex);
    if (seen_of(server, path) != NULL)
        at = seen_of(server, path)->last_boot_ms;
    pthread_mutex_unlock(&server->mutex);
    return at;
}

bool http_server_await(struct http_server *server, const char *path, size_t count, int limit_ms)
{
    struct timespec until;
    bool enough;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += limit_ms / 1000;
    until.tv_nsec += limit_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&server->mutex);
    while (hits(server, path) < count &&
           pthread_cond_timedwait(&server->changed, &server->mutex, &until) == 0)
        continue;
    enough = hits(server, path) >= count;
    pthread_mutex_unlock(&server->mutex);
    return enough;
}

char *http_server_request(struct http_server *server, const char *path)
{
    char *request;

    pthread_mutex_lock(&server->mutex);
    request = strdup(seen_of(server, path) != NULL ? seen_of(server, path)->request : "");
    pthread_mutex_unlock(&server->mutex);
    return request;
}
