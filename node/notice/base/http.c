/* http - see http.h. */
#include "node/notice/base/http.h"

#include "schema/error.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct buffer {
    char *bytes;
    size_t size, max;
    bool over;
};

struct transfer {
    CURL *easy; /* NULL: free */
    struct curl_slist *headers;
    const void *owner;
    unsigned slot;
    bool done;
    CURLcode code;
    struct buffer body, head;
    char error[CURL_ERROR_SIZE];
};

struct http {
    CURLM *multi;
    struct transfer transfers[HTTP_TRANSFERS_MAX];
    struct transfer *taken; /* whose reply was handed out last */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;

/* Never undone: the host may use libcurl too, and may do so later. */
static void http_init_once(void)
{
    ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

bool http_header(const struct http_reply *reply, const char *name, char *ret_value, size_t size)
{
    size_t length = strlen(name);

    for (const char *line = reply->headers; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t line_size = end != NULL ? (size_t)(end - line) : strlen(line);

        if (line_size > length && strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1;
            size_t value_size = line_size - length - 1;

            while (value_size > 0 && (*value == ' ' || *value == '\t'))
                value++, value_size--;
            while (value_size > 0 && strchr(" \t\r", value[value_size - 1]) != NULL)
                value_size--;
            if (value_size >= size)
                value_size = size - 1;
            memcpy(ret_value, value, value_size);
            ret_value[value_size] = '\0';
            return true;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static bool http_buffer_add(struct buffer *buffer, const char *bytes, size_t size)
{
    char *more;

    if (size > buffer->max - buffer->size) {
        buffer->over = true;
        return false;
    }
    more = realloc(buffer->bytes, buffer->size + size + 1);
    if (more == NULL)
        return false;
    memcpy(more + buffer->size, bytes, size);
    buffer->bytes = more;
    buffer->size += size;
    more[buffer->size] = '\0';
    return true;
}

static size_t http_take_body(char *bytes, size_t one, size_t count, void *arg)
{
    struct transfer *transfer = arg;

    return http_buffer_add(&transfer->body, bytes, one * count) ? one * count : 0;
}

static size_t http_take_header(char *bytes, size_t one, size_t count, void *arg)
{
    struct transfer *transfer = arg;

    if (one * count > 5 && memcmp(bytes, "HTTP/", 5) == 0)
        transfer->head.size = 0; /* of an answer that was not the last, as 100 */
    return http_buffer_add(&transfer->head, bytes, one * count) ? one * count : 0;
}

enum muster_status http_create(struct http **ret_http, struct muster_error *err)
{
    struct http *http = calloc(1, sizeof *http);

    pthread_once(&once, http_init_once);
    if (http != NULL && ready)
        http->multi = curl_multi_init();
    if (http == NULL || http->multi == NULL) {
        free(http);
        return error_set(err, MUSTER_E_NOMEM,
                         "libcurl could not be started for the notice sources; free some memory");
    }
    *ret_http = http;
    return MUSTER_OK;
}

static void http_release(struct http *http, struct transfer *transfer)
{
    if (transfer->easy == NULL)
        return;
    curl_multi_remove_handle(http->multi, transfer->easy);
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    free(transfer->body.bytes);
    free(transfer->head.bytes);
    memset(transfer, 0, sizeof *transfer);
    if (http->taken == transfer)
        http->taken = NULL;
}

void http_destroy(struct http **http)
{
    struct http *h = *http;

    if (h == NULL)
        return;
    *http = NULL;
    for (size_t i = 0; i < HTTP_TRANSFERS_MAX; i++)
        http_release(h, &h->transfers[i]);
    curl_multi_cleanup(h->multi);
    free(h);
}

static bool http_set_headers(struct transfer *transfer, const struct http_request *request)
{
    /* curl would ask first whether a body is welcome, and wait a second for the answer */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");

    for (size_t i = 0; list != NULL && i < HTTP_REQUEST_HEADERS_MAX; i++) {
        struct curl_slist *more;

        if (request->headers[i][0] == '\0')
            continue;
        more = curl_slist_append(list, request->headers[i]);
        if (more == NULL)
            curl_slist_free_all(list);
        list = more;
    }
    transfer->headers = list;
    return list != NULL && curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, list) == CURLE_OK;
}

/* Every option that a rule of http.h stands on is checked. */
static bool http_set_rules(struct transfer *transfer, const struct http_request *request)
{
    CURL *easy = transfer->easy;
    CURLcode bad = CURLE_OK;

#define SET(option, value) bad = bad != CURLE_OK ? bad : curl_easy_setopt(easy, option, value)
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROTOCOLS_STR, "http");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* a name that is being looked up is not waited for */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_ms);
    SET(CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    SET(CURLOPT_URL, request->url);
    SET(CURLOPT_WRITEFUNCTION, http_take_body);
    SET(CURLOPT_WRITEDATA, (void *)transfer);
    SET(CURLOPT_HEADERFUNCTION, http_take_header);
    SET(CURLOPT_HEADERDATA, (void *)transfer);
    SET(CURLOPT_ERRORBUFFER, transfer->error);
    if (request->body != NULL || strcmp(request->method, "POST") == 0)
        SET(CURLOPT_COPYPOSTFIELDS, request->body != NULL ? request->body : "");
    if (strcmp(request->method, "PUT") == 0 && request->body == NULL)
        SET(CURLOPT_COPYPOSTFIELDS, ""); /* Content-Length: 0 */
    SET(CURLOPT_CUSTOMREQUEST, request->method);
#undef SET
    return bad == CURLE_OK;
}

bool http_start(struct http *http, const struct http_request *request, const void *owner,
                unsigned slot)
{
    struct transfer *transfer = NULL;

    for (size_t i = 0; i < HTTP_TRANSFERS_MAX && transfer == NULL; i++)
        if (http->transfers[i].easy == NULL)
            transfer = &http->transfers[i];
    if (transfer == NULL)
        return false;
    transfer->easy = curl_easy_init();
    transfer->owner = owner;
    transfer->slot = slot;
    transfer->body.max = HTTP_BODY_MAX;
    transfer->head.max = HTTP_HEADERS_MAX;
    if (transfer->easy == NULL)
        return false;
    if (http_set_rules(transfer, request) && http_set_headers(transfer, request) &&
        curl_multi_add_handle(http->multi, transfer->easy) == CURLM_OK)
        return true;
    http_release(http, transfer);
    return false;
}

static void http_collect(struct http *http)
{
    struct CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        for (size_t i = 0; i < HTTP_TRANSFERS_MAX; i++)
            if (http->transfers[i].easy == message->easy_handle) {
                http->transfers[i].done = true;
                http->transfers[i].code = message->data.result;
            }
    }
}

void http_wait(struct http *http, struct pollfd *fds, size_t fds_count, int64_t timeout_ms)
{
    struct curl_waitfd extra[32];
    size_t count = fds_count < 32 ? fds_count : 32;
    int running, ready_count;

    for (size_t i = 0; i < count; i++)
        extra[i] = (struct curl_waitfd){.fd = fds[i].fd, .events = CURL_WAIT_POLLIN};
    curl_multi_perform(http->multi, &running);
    http_collect(http);
    for (size_t i = 0; i < HTTP_TRANSFERS_MAX; i++)
        if (http->transfers[i].done)
            timeout_ms = 0;
    curl_multi_poll(http->multi, extra, (unsigned)count, (int)timeout_ms, &ready_count);
    for (size_t i = 0; i < count; i++)
        fds[i].revents = extra[i].revents != 0 ? POLLIN : 0;
    curl_multi_perform(http->multi, &running);
    http_collect(http);
}

static enum http_result http_result_of(const struct transfer *transfer)
{
    if (transfer->body.over || transfer->head.over)
        return HTTP_GARBAGE;
    switch (transfer->code) {
    case CURLE_OK:
        return HTTP_ANSWERED;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_INTERFACE_FAILED:
        return HTTP_REFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return HTTP_TIMEOUT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9: whatever it is */
    case CURLE_BAD_CONTENT_ENCODING:
        return HTTP_GARBAGE;
    default:
        return HTTP_BROKEN;
    }
}

bool http_take(struct http *http, const void *owner, unsigned *ret_slot,
               struct http_reply *ret_reply)
{
    long status = 0;

    if (http->taken != NULL)
        http_release(http, http->taken);
    for (size_t i = 0; i < HTTP_TRANSFERS_MAX; i++) {
        struct transfer *transfer = &http->transfers[i];

        if (!transfer->done || transfer->owner != owner)
            continue;
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        *ret_slot = transfer->slot;
        *ret_reply = (struct http_reply){
            .result = http_result_of(transfer),
            .status = (int)status,
            .headers = transfer->head.bytes != NULL ? transfer->head.bytes : "",
            .body = transfer->body.bytes != NULL ? transfer->body.bytes : "",
            .size = transfer->body.size,
            .error =
                transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(transfer->code)};
        http->taken = transfer;
        return true;
    }
    return false;
}

void http_abandon(struct http *http, const void *owner)
{
    for (size_t i = 0; i < HTTP_TRANSFERS_MAX; i++)
        if (http->transfers[i].owner == owner)
            http_release(http, &http->transfers[i]);
}
