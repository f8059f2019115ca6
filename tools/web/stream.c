/* stream - server-sent events: what a page is told while it is open.
 *   trouble  the broker or database does not answer: why
 *   tick     {"version", "facts"}: a new version is worth a new look at the page
 *   heat     what each rank does, without the hosts
 * Owns: nothing but the message under way of each page. A page that stops reading is closed by the
 * server's own limit; when it comes again, it gets what is true then. */
#include "tools/web/web.h"

#include "node/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct stream {
    struct web *web;
    struct web_request request;
    int fd;        /* of the connection, to see that the page is gone */
    char *pending; /* owned: a message of which a part may be out */
    size_t size, at;
    uint64_t tick, heat; /* hashes of what was told last */
    bool troubled;
    int64_t told_ms;
};

/* id: of when the news are; an answer that was begun later has them (the header X-Muster-Began). */
static void stream_put(FILE *out, const char *event, int64_t id, const char *text)
{
    fprintf(out, "event: %s\nid: %" PRId64 "\ndata: ", event, id);
    for (; *text != '\0'; text++)
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, out);
    fputs("\n\n", out);
}

/* Asks, and tells what is new. False: nobody answers. */
static bool stream_look(struct stream *stream, FILE *out, const char *event, web_make_fn *make,
                        uint64_t *hash)
{
    struct web_answer *answer;
    char key[320];
    bool answered;

    snprintf(key, sizeof key, "stream %s %s", event, stream->request.job);
    answer = web_ask(stream->web, key, make, &stream->request);
    answered = answer != NULL && answer->code == TOOL_DONE;
    if (answered && answer->hash != *hash) {
        *hash = answer->hash;
        stream_put(out, event, answer->made_ms, answer->body);
    } else if (!answered && !stream->troubled) {
        stream->troubled = true;
        *hash = 0;
        stream_put(out, "trouble", clock_ms(CLOCK_MONOTONIC),
                   answer == NULL || answer->body == NULL ? "no memory" : answer->body);
    }
    if (answered)
        stream->troubled = false;
    if (answer != NULL)
        web_release(answer);
    return answered;
}

static bool stream_is_gone(const struct stream *stream)
{
    char byte;

    return recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Fills `pending` if there is something to tell. False: no memory. */
static bool stream_fill(struct stream *stream)
{
    int64_t now_ms = clock_ms(CLOCK_MONOTONIC);
    FILE *out;

    free(stream->pending);
    stream->pending = NULL;
    stream->size = stream->at = 0;
    out = open_memstream(&stream->pending, &stream->size);
    if (out == NULL)
        return false;
    if (stream_look(stream, out, "tick", web_make_tick, &stream->tick) &&
        stream->request.job[0] != '\0')
        stream_look(stream, out, "heat", web_make_frame, &stream->heat);
    if (ftell(out) == 0 && now_ms - stream->told_ms >= WEB_STREAM_ALIVE_MS)
        fputs(": still here\n\n", out);
    if (fclose(out) != 0)
        return false;
    if (stream->size > 0)
        stream->told_ms = now_ms;
    return true;
}

static ssize_t stream_read(void *arg, uint64_t offset, char *to, size_t max)
{
    const struct timespec pause = {.tv_nsec = WEB_STREAM_EVERY_MS * 1000000L};
    struct stream *stream = arg;
    size_t part;

    (void)offset;
    while (stream->at == stream->size) {
        if (stream->web->stopping || stream_is_gone(stream))
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (!stream_fill(stream))
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (stream->size == 0)
            nanosleep(&pause, NULL);
    }
    part = stream->size - stream->at < max ? stream->size - stream->at : max;
    memcpy(to, stream->pending + stream->at, part);
    stream->at += part;
    return (ssize_t)part;
}

static void stream_free(void *arg)
{
    struct stream *stream = arg;

    stream->web->streams--;
    free(stream->pending);
    free(stream);
}

struct MHD_Response *web_stream(struct web *web, const struct web_request *request,
                                struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct stream *stream;
    struct MHD_Response *response;

    if (info == NULL || ++web->streams > WEB_STREAMS_MAX) {
        web->streams -= info != NULL;
        return NULL;
    }
    stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        web->streams--;
        return NULL;
    }
    *stream = (struct stream){.web = web, .request = *request, .fd = info->connect_fd};
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, stream_read, stream,
                                                 stream_free);
    if (response == NULL)
        stream_free(stream);
    return response;
}
