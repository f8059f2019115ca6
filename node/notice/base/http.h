/* http - requests to metadata services, all in one thread that waits for none of them.
 * Owns: libcurl; nobody else includes it. Plain HTTP only, HTTP/1.0 and 1.1; no proxy whatever the
 * environment says, no redirect, no cookie, no kept connection; body and headers capped; every
 * request ends within its timeout. Never: a signal, a signal handler (not SIGPIPE's either), a
 * thread but the resolver's, a log of a header (tokens). A struct http belongs to the thread that
 * uses it, and is nobody's in a forked child. */
#ifndef NODE_NOTICE_HTTP_H
#define NODE_NOTICE_HTTP_H

#include "schema/status.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_BODY_MAX 65536
#define HTTP_HEADERS_MAX 8192
#define HTTP_TRANSFERS_MAX 32
#define HTTP_URL_MAX 1023
#define HTTP_REQUEST_HEADERS_MAX 4
#define HTTP_REQUEST_HEADER_MAX 1279 /* a token and its name */

struct http;

struct http_request {
    const char *method; /* "GET", "PUT", "POST" */
    char url[HTTP_URL_MAX + 1];
    char headers[HTTP_REQUEST_HEADERS_MAX]
                [HTTP_REQUEST_HEADER_MAX + 1]; /* "Name: value"; "" = none */
    const char *body;                          /* NULL = none; borrowed for the call */
    int64_t connect_ms, timeout_ms;
};

enum http_result {
    HTTP_ANSWERED, /* status, headers, body */
    HTTP_REFUSED,  /* nobody there: refused, no route, no such name */
    HTTP_TIMEOUT,  /* connected or not: no complete answer in time */
    HTTP_BROKEN,   /* reset, ended early */
    HTTP_GARBAGE,  /* no HTTP, or more than the caps allow */
    HTTP_RESULT_COUNT
};
struct http_reply {
    enum http_result result;
    int status;
    const char *headers; /* lines of "Name: value\r\n"; NUL-terminated */
    const char *body;    /* NUL-terminated behind size */
    size_t size;
    const char *error; /* of what is not HTTP_ANSWERED */
};
/* The value of the first header of that name, in any case of letters, cut to size - 1; false: none.
 * Pure. */
bool http_header(const struct http_reply *reply, const char *name, char *ret_value, size_t size);

enum muster_status http_create(struct http **ret_http, struct muster_error *err);
/* Ends all transfers without a word. NULL-safe. */
void http_destroy(struct http **http);
/* Copies the request. False: HTTP_TRANSFERS_MAX run, or no memory. */
bool http_start(struct http *http, const struct http_request *request, const void *owner,
                unsigned slot);
/* Waits for network, for fds and at most timeout_ms; makes progress. */
void http_wait(struct http *http, struct pollfd *fds, size_t fds_count, int64_t timeout_ms);
/* Takes one finished transfer of that owner; its reply is good until the next call of http_take or
 * http_destroy. */
bool http_take(struct http *http, const void *owner, unsigned *ret_slot,
               struct http_reply *ret_reply);
/* Ends the transfers of that owner without a word. */
void http_abandon(struct http *http, const void *owner);

#endif
