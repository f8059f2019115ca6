/* http_server - a metadata service that answers by script: what is documented, and every way to
 * misbehave. On 127.0.0.1 and a port of its own (or, in a network namespace, on any address); one
 * thread a connection. Routes can be changed at any time. Not for more than a test's traffic. */
#ifndef TESTS_SUPPORT_HTTP_SERVER_H
#define TESTS_SUPPORT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_way {
    HTTP_WAY_ANSWER,
    HTTP_WAY_RESET,   /* the connection is reset instead of an answer */
    HTTP_WAY_HANG,    /* nothing is said, the connection stays */
    HTTP_WAY_CLOSE,   /* closed without a word */
    HTTP_WAY_GARBAGE, /* body is sent raw, as all there is */
    HTTP_WAY_PART     /* the half of the body, under the whole's Content-Length */
};

struct http_script {
    enum http_way way;
    int status;          /* 0 = 200 */
    const char *headers; /* "Name: value\r\n..."; NULL = none. Copied, as body */
    const char *body;    /* NULL = "" */
    int delay_ms;        /* before the answer */
    int slow_ms;         /* between the bytes of the body */
    bool http_1_0;
    bool no_length;    /* the end is the connection's */
    const char *needs; /* a header that the request must have, "Name: value"; else 401 */
    const char *holds; /* a request that has this in it is not answered before the scripts change */
    int times;         /* so often, then the next script of the same path; 0 = for ever */
};

struct http_server;

struct http_server *http_server_start(void);
struct http_server *http_server_start_at(const char *address, int port); /* port 0: any */
const char *http_server_url(const struct http_server *server); /* "http://127.0.0.1:1234" */
void http_server_stop(struct http_server **server);
/* Nobody is there, and all scripts are forgotten; then it is there again, at the same port. */
void http_server_pause(struct http_server *server);
void http_server_resume(struct http_server *server);

/* Appends a script for this method and path (without its query). Requests without a script get 404.
 */
void http_server_on(struct http_server *server, const char *method, const char *path,
                    struct http_script script);
/* The same, and forgets those that were there for this path, at one moment. */
void http_server_replace(struct http_server *server, const char *method, const char *path,
                         struct http_script script);
/* Forgets the scripts of a path, or all (NULL). */
void http_server_reset(struct http_server *server, const char *path);

/* How many requests for this path came (NULL: all; those by POST: "POST /path"); when the last one,
 * CLOCK_BOOTTIME. */
size_t http_server_hits(struct http_server *server, const char *path);
int64_t http_server_last_boot_ms(struct http_server *server, const char *path);
/* Waits until count requests came; false: not within limit_ms. */
bool http_server_await(struct http_server *server, const char *path, size_t count, int limit_ms);
/* The last request for this path as it came, "" = none. A copy; free(). */
char *http_server_request(struct http_server *server, const char *path);

#endif
