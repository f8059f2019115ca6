/* http - connections: who may ask, what a path means, and how an answer goes out. */
#include "tools/web/web.h"

#include "schema/wire/wire.h"
#include "tools/web/routes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define WEB_HEADERS_BYTES (32u << 10) /* of one request */
#define HTTP_OPEN_METRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define WEB_STACK_BYTES (1u << 20)
#define HTTP_TIME_MAX 100000000000000 /* ms; so that sums of times stay small */

/* --- answers ---------------------------------------------------------------------------------- */

static void http_headers(struct MHD_Response *response, const char *type)
{
    static const char *const headers[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
         "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
}

static enum MHD_Result http_queue(struct MHD_Connection *connection, unsigned status,
                                  struct MHD_Response *response)
{
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* The error in the form that the client reads: JSON, or a page. */
static enum MHD_Result http_refuse(struct MHD_Connection *connection, unsigned status, bool api,
                                   const char *text)
{
    struct tool tool = {.now_unix_ms = tool_now_unix_ms()};
    struct MHD_Response *response;
    char *body = NULL;
    size_t size = 0;

    tool.out = open_memstream(&body, &size);
    if (tool.out == NULL)
        return MHD_NO;
    if (api) {
        json_t *document = render_document();

        json_object_set_new(document, "error", json_string(text));
        render_json(document, tool.out, false);
    } else {
        html_head(&tool, status == MHD_HTTP_NOT_FOUND ? "Not found" : "No answer", NULL, NULL);
        html(tool.out, "<div class=\"notice bad\" role=\"alert\"><p>%s</p></div>", text);
        html_foot(&tool);
    }
    fclose(tool.out);
    response = MHD_create_response_from_buffer(size, body, MHD_RESPMEM_MUST_FREE);
    if (response != NULL) {
        http_headers(response, api ? "application/json" : "text/html; charset=utf-8");
        if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
            MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "2");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
            MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    return http_queue(connection, status, response);
}

static unsigned http_status(int code)
{
    switch (code) {
    case TOOL_DONE:
        return MHD_HTTP_OK;
    case TOOL_NO:
        return MHD_HTTP_NOT_FOUND;
    case TOOL_UNREACHABLE:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    case TOOL_REFUSED:
        return MHD_HTTP_FORBIDDEN;
    default:
        return MHD_HTTP_BAD_REQUEST;
    }
}

static struct MHD_Response *http_constant(const char *bytes, size_t size)
{
    union {
        const char *constant;
        void *any; /* MHD does not write to it */
    } body = {bytes};

    return MHD_create_response_from_buffer(size, body.any, MHD_RESPMEM_PERSISTENT);
}

static void http_release(void *answer)
{
    web_release(answer);
}

static enum MHD_Result http_send(struct MHD_Connection *connection, struct web_answer *answer,
                                 const char *type)
{
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        answer->size, answer->body, http_release, answer);

    char began[24];

    if (response == NULL) {
        web_release(answer);
        return MHD_NO;
    }
    http_headers(response, type);
    snprintf(began, sizeof began, "%lld", (long long)(answer->made_ms - answer->cost_ms));
    MHD_add_response_header(response, "X-Muster-Began", began);
    return http_queue(connection, MHD_HTTP_OK, response);
}

/* --- who may ask ------------------------------------------------------------------------------ */

/* Another site's name that leads here (DNS rebinding) is told apart by what the browser says it
 * asked for: an address, localhost, or this host's own name. */
static bool http_host_ok(const struct web *web, const char *text)
{
    char host[256], own[256] = "";
    unsigned char address[sizeof(struct in6_addr)];
    const char *end;
    size_t length;

    if (text == NULL)
        return false;
    if (text[0] == '[') {
        text++;
        end = strchr(text, ']');
    } else {
        end = strchr(text, ':');
    }
    length = end == NULL ? strlen(text) : (size_t)(end - text);
    if (length == 0 || length >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)length, text);
    gethostname(own, sizeof own - 1);
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1 ||
           strcasecmp(host, "localhost") == 0 || strcasecmp(host, own) == 0 ||
           strcasecmp(host, web->host) == 0;
}

/* --- what a path means ------------------------------------------------------------------------ */

/* The next part of a path; false: there is none. */
static bool http_part(const char **path, const char **ret_part, size_t *ret_length)
{
    if (**path != '/' || (*path)[1] == '\0')
        return false;
    *ret_part = *path + 1;
    *ret_length = strcspn(*ret_part, "/");
    *path = *ret_part + *ret_length;
    return true;
}

static bool http_take_number(const char *text, size_t length, int64_t *ret_number)
{
    if (length == 0 || length > 18 || strspn(text, "0123456789") < length)
        return false;
    *ret_number = strtoll(text, NULL, 10);
    return true;
}

/* Pattern: "*" is a job, which has a name, "#" a number. */
static bool http_matches(const char *pattern, const char *path, struct web_request *request)
{
    const char *want, *have;
    size_t want_length, have_length;

    while (http_part(&pattern, &want, &want_length)) {
        if (!http_part(&path, &have, &have_length))
            return false;
        if (*want == '*') {
            if (have_length == 0 || have_length >= sizeof request->job)
                return false;
            snprintf(request->job, sizeof request->job, "%.*s", (int)have_length, have);
        } else if (*want == '#') {
            if (!http_take_number(have, have_length, &request->number))
                return false;
        } else if (want_length != have_length || memcmp(want, have, have_length) != 0) {
            return false;
        }
    }
    return strcmp(path, "") == 0 || strcmp(path, "/") == 0;
}

static const struct web_route *http_find(const struct web_route *route, const char *path,
                                         struct web_request *request)
{
    for (; route->pattern != NULL; route++) {
        *request = (struct web_request){.number = -1, .page = 1};
        if (http_matches(route->pattern, path, request))
            return route;
    }
    return NULL;
}

/* Both or none; Unix times. */
static bool http_take_window(struct MHD_Connection *connection, struct web_request *request)
{
    const char *from = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "from");
    const char *to = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "to");

    if (from == NULL && to == NULL)
        return true;
    return from != NULL && to != NULL && http_take_number(from, strlen(from), &request->from_ms) &&
           http_take_number(to, strlen(to), &request->to_ms) && request->from_ms < request->to_ms &&
           request->to_ms < HTTP_TIME_MAX;
}

static bool http_take_arguments(struct MHD_Connection *connection, struct web_request *request)
{
    const char *page = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "page");
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    int64_t number;

    request->since = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "since");
    request->generation =
        MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "generation");
    request->open = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    if (request->since != NULL &&
        !http_take_number(request->since, strlen(request->since), &number))
        return false;
    if (request->generation != NULL &&
        !http_take_number(request->generation, strlen(request->generation), &number))
        return false;
    if (!http_take_window(connection, request))
        return false;
    return page == NULL || (http_take_number(page, strlen(page), &request->page) &&
                            request->page >= 1 && request->page <= 1000000);
}

/* --- one request ------------------------------------------------------------------------------ */

static enum MHD_Result http_send_constant(struct MHD_Connection *connection, const char *bytes,
                                          size_t size, const char *type)
{
    struct MHD_Response *response = http_constant(bytes, size);

    if (response != NULL)
        http_headers(response, type);
    return http_queue(connection, MHD_HTTP_OK, response);
}

/* That there is no answer is a metric too, which alert rules look for. */
static enum MHD_Result http_send_down(struct MHD_Connection *connection, bool open)
{
    static const char down[] = "# TYPE muster_up gauge\n"
                               "# HELP muster_up 1 if the broker or database answered.\n"
                               "muster_up 0\n# EOF\n";

    return http_send_constant(connection, down, sizeof down - 1,
                              open ? HTTP_OPEN_METRICS : "text/plain; version=0.0.4");
}

/* Takes over the answer. */
static enum MHD_Result http_put(struct MHD_Connection *connection, struct web_answer *answer,
                                const struct web_route *route, const struct web_request *request,
                                bool api)
{
    const char *type = route->type;

    if (answer == NULL || answer->body == NULL) {
        if (answer != NULL)
            web_release(answer);
        return http_refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, api, "no memory");
    }
    if (answer->code == TOOL_UNREACHABLE && route->make == web_make_metrics) {
        web_release(answer);
        return http_send_down(connection, request->open);
    }
    if (answer->code != TOOL_DONE) {
        enum MHD_Result result =
            http_refuse(connection, http_status(answer->code), api, answer->body);

        web_release(answer);
        return result;
    }
    if (route->make == web_make_metrics && request->open)
        type = HTTP_OPEN_METRICS;
    return http_send(connection, answer, type);
}

static enum MHD_Result http_ask(struct web *web, struct MHD_Connection *connection,
                                const struct web_route *route, const struct web_request *request,
                                bool api)
{
    char key[640];

    snprintf(key, sizeof key, "%s %s %lld %lld %lld %lld %.20s %.20s %d", route->pattern,
             request->job, (long long)request->number, (long long)request->page,
             (long long)request->from_ms, (long long)request->to_ms,
             request->since == NULL ? "" : request->since,
             request->generation == NULL ? "" : request->generation, request->open);
    return http_put(connection, web_ask(web, key, route->make, request), route, request, api);
}

/* An order has no body: its values follow the `?` of its path. */
static enum MHD_Result http_post(struct web *web, struct MHD_Connection *connection,
                                 const char *path)
{
    const char *wrong = web_orders_wrong(web, connection);
    const struct web_route *route;
    struct web_request request;

    if (wrong != NULL)
        return http_refuse(connection, MHD_HTTP_FORBIDDEN, true, wrong);
    route = http_find(web_order_routes, path, &request);
    if (route == NULL)
        return http_refuse(connection, MHD_HTTP_NOT_FOUND, true,
                           "there is no such order: see muster-web(1)");
    request.rank = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "rank");
    request.grace = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "grace");
    request.text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "text");
    request.checkpoint =
        MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "checkpoint");
    return http_put(connection, web_order(web, route->make, &request), route, &request, true);
}

static enum MHD_Result http_stream(struct web *web, struct MHD_Connection *connection,
                                   const struct web_request *request)
{
    struct MHD_Response *response = web_stream(web, request, connection);

    if (response == NULL)
        return http_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, true,
                           "too many pages are open: close some, or look again later");
    http_headers(response, "text/event-stream");
    return http_queue(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result http_get(struct web *web, struct MHD_Connection *connection,
                                const char *path)
{
    bool api = strncmp(path, "/api/", 5) == 0;
    const struct web_route *route;
    struct web_request request;

    for (const struct web_asset *asset = web_assets; asset->path != NULL; asset++)
        if (strcmp(path, asset->path) == 0)
            return http_send_constant(connection, asset->bytes, (size_t)(asset->end - asset->bytes),
                                      asset->type);
    if (strcmp(path, "/healthz") == 0) /* this program answers; of its broker /readyz tells */
        return http_send_constant(connection, "ok\n", 3, "text/plain; charset=utf-8");
    route = http_find(web_routes, path, &request);
    if (route == NULL)
        return http_refuse(connection, MHD_HTTP_NOT_FOUND, api,
                           "there is no such page; the jobs are at /, documents at "
                           "/api/v1/jobs: see muster-web(1)");
    if (!http_take_arguments(connection, &request))
        return http_refuse(
            connection, MHD_HTTP_BAD_REQUEST, api,
            "page, since, generation, from and to are whole numbers, from before to");
    if (route->make == NULL)
        return http_stream(web, connection, &request);
    return http_ask(web, connection, route, &request, api);
}

static enum MHD_Result http_answer(void *arg, struct MHD_Connection *connection, const char *path,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request_arg)
{
    struct web *web = arg;
    bool api = strncmp(path, "/api/", 5) == 0;
    bool order = strcmp(method, "POST") == 0 && web->secret[0] != '\0';

    (void)version, (void)upload, (void)upload_size, (void)request_arg;
    if (!order && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return http_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, api,
                           "this page only shows: use muster save, notify or pin in a shell");
    if (!http_host_ok(web, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
        return http_refuse(connection, MHD_HTTP_MISDIRECTED_REQUEST, api,
                           "this page is asked for by address, by localhost or by its host's own "
                           "name; another name may be a trick of a foreign site");
    return order ? http_post(web, connection, path) : http_get(web, connection, path);
}

/* --- listening -------------------------------------------------------------------------------- */

static void http_log(void *arg, const char *format, va_list list)
{
    (void)arg, (void)format, (void)list; /* of connections that broke: nobody is to mend them */
}

static int http_socket(struct web *web, int *ret_socket)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[16];
    int one = 1, failed, fd = -1;

    snprintf(port, sizeof port, "%d", web->port);
    failed = getaddrinfo(web->host, port, &hints, &found);
    if (failed != 0)
        return tool_fail(TOOL_USAGE, "--listen %s:%d: %s; give an address of this host", web->host,
                         web->port, gai_strerror(failed));
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    failed = fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 64) != 0;
    freeaddrinfo(found);
    if (failed && errno == EADDRINUSE)
        failed = tool_fail(TOOL_NO,
                           "%s:%d is in use by another program, perhaps another `muster web`: end "
                           "it, or choose another port with --listen",
                           web->host, web->port);
    else if (failed)
        failed = tool_fail(TOOL_NO, "cannot listen at %s:%d: %s; choose another with --listen",
                           web->host, web->port, strerror(errno));
    if (failed && fd >= 0)
        close(fd);
    *ret_socket = fd;
    return failed ? failed : TOOL_DONE;
}

static int http_port(int fd)
{
    struct sockaddr_in6 address = {0}; /* an IPv4 address has its port at the same place */
    socklen_t size = sizeof address;

    _Static_assert(offsetof(struct sockaddr_in, sin_port) ==
                       offsetof(struct sockaddr_in6, sin6_port),
                   "both families tell the port alike");
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return 0;
    return ntohs(address.sin6_port);
}

static void http_say_where(struct web *web)
{
    bool v6 = strchr(web->host, ':') != NULL;
    bool here = strncmp(web->host, "127.", 4) == 0 || strcmp(web->host, "::1") == 0 ||
                strcasecmp(web->host, "localhost") == 0;

    printf("muster web: http://%s%s%s:%d/ shows %s; Ctrl-C ends it\n", v6 ? "[" : "", web->host,
           v6 ? "]" : "", web->port, web->tool->address);
    if (web->secret[0] != '\0')
        printf("muster web: orders are taken from whoever opens http://%s%s%s:%d/#orders=%s\n",
               v6 ? "[" : "", web->host, v6 ? "]" : "", web->port, web->secret);
    if (!here)
        fprintf(stderr, "muster web: whoever reaches %s:%d can read all jobs here\n", web->host,
                web->port);
    fflush(stdout);
}

int web_serve(struct web *web)
{
    struct MHD_Daemon *daemon;
    sigset_t signals;
    int fd = -1, number;
    int code = http_socket(web, &fd);

    if (code != TOOL_DONE)
        return code;
    web->port = http_port(fd);
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before there are threads */
    signal(SIGPIPE, SIG_IGN);
    daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                             MHD_USE_POLL | MHD_USE_ERROR_LOG,
                         0, NULL, NULL, http_answer, web, MHD_OPTION_EXTERNAL_LOGGER, http_log,
                         NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                         WEB_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, WEB_TIMEOUT_S,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)WEB_HEADERS_BYTES,
                         MHD_OPTION_THREAD_STACK_SIZE, (size_t)WEB_STACK_BYTES, MHD_OPTION_END);
    if (daemon == NULL) {
        close(fd);
        return tool_fail(TOOL_NO, "the page could not be started: %s", strerror(errno));
    }
    http_say_where(web);
    sigwait(&signals, &number);
    web->stopping = true;
    MHD_stop_daemon(daemon);
    return TOOL_DONE;
}
