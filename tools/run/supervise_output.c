/* supervise_output - what the ranks print, line by line; see supervise_output.h. */
#include "tools/run/supervise_output.h"

#include "node/clock.h"
#include "schema/error.h"
#include "tools/run/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_BYTES 16384
#define PREFIX_MAX 16
/* A read may bring READ_BYTES empty lines, each with a prefix, beside a line begun before. */
#define ROOM_FOR_A_READ (READ_BYTES * PREFIX_MAX + OUTPUT_LINE_MAX)
#define WRITES_A_PASS 64

/* ---- sinks ---- */

static bool output_sink_open(struct output_sink *sink, int fd)
{
    struct stat st;

    sink->fd = fd;
    sink->queue = malloc(OUTPUT_QUEUE_MAX);
    sink->gone = fstat(fd, &st) != 0; /* started with the file closed */
    /* POLLOUT promises PIPE_BUF bytes of a pipe, and not more of anything else that can block. */
    sink->chunk_max = !sink->gone && S_ISREG(st.st_mode) ? OUTPUT_QUEUE_MAX : PIPE_BUF;
    return sink->queue != NULL;
}

static void output_sink_put(struct output_sink *sink, const char *data, size_t length)
{
    static const char wipe[] = "\r\033[K";

    if (sink->gone)
        return;
    if (sink->bar && OUTPUT_QUEUE_MAX - sink->length > sizeof wipe) {
        sink->bar = false;
        output_sink_put(sink, wipe, sizeof wipe - 1);
    }
    if (length > OUTPUT_QUEUE_MAX - sink->length)
        length = OUTPUT_QUEUE_MAX - sink->length; /* only our own lines: ranks are not read then */
    memcpy(sink->queue + sink->length, data, length);
    sink->length += length;
}

/* A reader that went away knows that it did, but nobody notices a full disk unless it is said. */
static void output_sink_lost(struct output_sink *sink, int code)
{
    char line[160];

    sink->gone = true;
    if (code == EPIPE || sink->complaints == NULL)
        return;
    snprintf(line, sizeof line,
             "muster run: the standard output cannot be written (%s); what the ranks print there "
             "is lost from here on\n",
             strerror(code));
    output_sink_put(sink->complaints, line, strlen(line));
}

/* Whole lines where the chunk holds one, so that another writer to the pipe gets none torn. */
static size_t output_sink_chunk(const struct output_sink *sink, size_t start)
{
    const char *end;

    if (sink->length - start <= sink->chunk_max)
        return sink->length - start;
    end = memrchr(sink->queue + start, '\n', sink->chunk_max);
    return end != NULL ? (size_t)(end - (sink->queue + start)) + 1 : sink->chunk_max;
}

void output_write(struct output_sink *sink)
{
    size_t start = 0;

    for (int i = 0; i < WRITES_A_PASS && start < sink->length; i++) {
        struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
        ssize_t written;

        if (poll(&ready, 1, 0) <= 0)
            break;
        written = write(sink->fd, sink->queue + start, output_sink_chunk(sink, start));
        if (written < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (written <= 0)
            output_sink_lost(sink, written < 0 ? errno : ENOSPC);
        start = sink->gone ? sink->length : start + (size_t)written;
    }
    sink->length -= start;
    memmove(sink->queue, sink->queue + start, sink->length);
}

void output_flush(struct output *output, int limit_ms)
{
    int64_t end_ms = clock_ms(CLOCK_BOOTTIME) + limit_ms;

    for (;;) {
        struct pollfd ready[2];
        int64_t left_ms = end_ms - clock_ms(CLOCK_BOOTTIME);
        nfds_t count = 0;

        for (int i = 0; i < 2; i++) {
            output_write(&output->sinks[i]);
            if (output->sinks[i].length > 0)
                ready[count++] = (struct pollfd){.fd = output->sinks[i].fd, .events = POLLOUT};
        }
        if (count == 0 || left_ms <= 0)
            return;
        poll(ready, count, (int)left_ms);
    }
}

static void output_line_put(struct output *output, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void output_line_put(struct output *output, const char *format, va_list args)
{
    char line[1400];

    vsnprintf(line, sizeof line, format, args);
    output_sink_put(output->to_err, line, strlen(line));
    output_sink_put(output->to_err, "\n", 1);
    output_write(output->to_err);
}

void output_say(struct output *output, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    output_line_put(output, format, args);
    va_end(args);
}

void output_note(struct output *output, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (!output->quiet)
        output_line_put(output, format, args);
    va_end(args);
}

int output_bar_width(const struct output *output)
{
    struct winsize size;

    if (output->quiet || !isatty(output->to_err->fd))
        return 0;
    return ioctl(output->to_err->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void output_bar(struct output *output, const char *text)
{
    struct output_sink *sink = output->to_err;

    if (sink->length > 0 || (text == NULL && !sink->bar))
        return; /* it would wait behind what nobody reads */
    output_sink_put(sink, text == NULL ? "" : text, text == NULL ? 0 : strlen(text));
    sink->bar = text != NULL;
    output_write(sink);
}

/* ---- lines ---- */

static void output_tail_put(struct output_rank *rank, const char *line, size_t length)
{
    static const char rest[] = " ..."; /* its first copy is whole */
    char *slot = rank->tail[rank->tail_count++ % OUTPUT_TAIL_LINES];
    bool cut = length > OUTPUT_TAIL_BYTES - 1;

    if (cut)
        length = OUTPUT_TAIL_BYTES - sizeof rest;
    while (cut && length > 0 && ((unsigned char)line[length] & 0xc0) == 0x80) /* in a character */
        length--;
    for (size_t i = 0; i < length; i++) /* the box stays a box: no escapes, no NUL */
        slot[i] = (char)((unsigned char)line[i] < ' ' || line[i] == 0x7f ? ' ' : line[i]);
    memcpy(slot + length, cut ? rest : "", cut ? sizeof rest : 1);
}

const char *output_tail(const struct output *output, int index, int i)
{
    const struct output_rank *rank = &output->ranks[index];
    uint64_t count = rank->tail_count < OUTPUT_TAIL_LINES ? rank->tail_count : OUTPUT_TAIL_LINES;

    if ((uint64_t)i >= count)
        return NULL;
    return rank->tail[(rank->tail_count - count + (uint64_t)i) % OUTPUT_TAIL_LINES];
}

static void output_log_put(struct output *output, struct output_rank *rank, const char *line,
                           size_t length)
{
    struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)line, .iov_len = length},
                             {.iov_base = (void *)(uintptr_t) "\n", .iov_len = 1}};

    if (rank->log_fd < 0 || rank->log_failed)
        return;
    errno = 0;
    if (writev(rank->log_fd, parts, 2) == (ssize_t)length + 1)
        return;
    rank->log_failed = true; /* said once; the job is worth more than its log */
    output_say(output, "muster run: the log of %s cannot be written any more (%s)",
               supervise_name(rank->rank).text, errno != 0 ? strerror(errno) : "disk full");
}

static void output_line_end(struct output *output, struct output_rank *rank,
                            struct output_stream *stream)
{
    char prefix[PREFIX_MAX];
    int length = rank->rank < 0 ? 0 : snprintf(prefix, sizeof prefix, "[%d] ", rank->rank);

    output_sink_put(stream->sink, prefix, (size_t)length);
    output_sink_put(stream->sink, stream->line, stream->length);
    output_sink_put(stream->sink, "\n", 1);
    output_log_put(output, rank, stream->line, stream->length);
    if (stream == &rank->err)
        output_tail_put(rank, stream->line, stream->length);
    stream->length = 0;
}

/* A line ends at '\n' or at '\r' (progress bars), "\r\n" is one end. */
static void output_bytes_take(struct output *output, struct output_rank *rank,
                              struct output_stream *stream, const char *data, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool second = data[i] == '\n' && stream->after_return;

        stream->after_return = data[i] == '\r';
        if (second)
            continue;
        if (data[i] == '\n' || data[i] == '\r') {
            output_line_end(output, rank, stream);
            continue;
        }
        if (stream->length == OUTPUT_LINE_MAX)
            output_line_end(output, rank, stream);
        stream->line[stream->length++] = data[i];
    }
}

static void output_stream_close(struct output *output, struct output_rank *rank,
                                struct output_stream *stream)
{
    if (stream->fd < 0)
        return;
    if (stream->length > 0)
        output_line_end(output, rank, stream);
    close(stream->fd);
    stream->fd = -1;
}

bool output_wants(const struct output_stream *stream)
{
    return stream->fd >= 0 && OUTPUT_QUEUE_MAX - stream->sink->length >= ROOM_FOR_A_READ;
}

void output_read(struct output *output, struct output_rank *rank, struct output_stream *stream)
{
    char data[READ_BYTES];
    ssize_t length;

    if (!output_wants(stream))
        return;
    length = read(stream->fd, data, sizeof data);
    if (length > 0) {
        output_bytes_take(output, rank, stream, data, (size_t)length);
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        output_stream_close(output, rank, stream);
    }
}

/* Reads every pipe that is ready, once. False when all are closed. */
static bool output_drain_pass(struct output *output, int wait_ms)
{
    bool open = false;

    for (int i = 0; i < output->rank_count; i++) {
        struct output_stream *streams[2] = {&output->ranks[i].out, &output->ranks[i].err};

        for (int s = 0; s < 2; s++) {
            struct pollfd ready = {.fd = streams[s]->fd, .events = POLLIN};

            if (streams[s]->fd < 0)
                continue;
            if (poll(&ready, 1, open ? 0 : wait_ms) > 0)
                output_read(output, &output->ranks[i], streams[s]);
            open = open || streams[s]->fd >= 0;
        }
    }
    return open;
}

void output_drain(struct output *output, int limit_ms)
{
    int64_t end_ms = clock_ms(CLOCK_BOOTTIME) + limit_ms;

    while (clock_ms(CLOCK_BOOTTIME) < end_ms && output_drain_pass(output, 10))
        output_flush(output, limit_ms); /* room for what is still in the pipes */
    for (int i = 0; i < output->rank_count; i++) {
        output_stream_close(output, &output->ranks[i], &output->ranks[i].out);
        output_stream_close(output, &output->ranks[i], &output->ranks[i].err);
    }
}

/* ---- opening and closing ---- */

static enum muster_status output_log_open(struct output_rank *rank, const char *directory,
                                          struct muster_error *err)
{
    char path[PATH_MAX], name[24] = "launcher";

    if (rank->rank >= 0)
        snprintf(name, sizeof name, "%d", rank->rank);
    if ((size_t)snprintf(path, sizeof path, "%s/%s.log", directory, name) >= sizeof path)
        return error_set(err, MUSTER_E_ARGUMENT, "--output: the path is too long");
    rank->log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (rank->log_fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot open the log %.400s: %s", path,
                              strerror(errno));
    return MUSTER_OK;
}

static bool output_rank_open(struct output *output, struct output_rank *rank)
{
    rank->out = (struct output_stream){.fd = -1, .sink = output->to_out};
    rank->err = (struct output_stream){.fd = -1, .sink = output->to_err};
    rank->log_fd = -1;
    rank->out.line = malloc(OUTPUT_LINE_MAX);
    rank->err.line = malloc(OUTPUT_LINE_MAX);
    rank->tail = calloc(OUTPUT_TAIL_LINES, sizeof *rank->tail);
    return rank->out.line != NULL && rank->err.line != NULL && rank->tail != NULL;
}

static bool output_one_file(int fd, int other_fd)
{
    struct stat st;
    struct stat other;

    return fstat(fd, &st) == 0 && fstat(other_fd, &other) == 0 && st.st_dev == other.st_dev &&
           st.st_ino == other.st_ino;
}

enum muster_status output_open(struct output *ret, int rank_count, int first_rank,
                               const char *directory, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    memset(ret, 0, sizeof *ret);
    ret->ranks = calloc((size_t)rank_count, sizeof *ret->ranks);
    if (ret->ranks == NULL || !output_sink_open(&ret->sinks[0], STDOUT_FILENO) ||
        !output_sink_open(&ret->sinks[1], STDERR_FILENO)) {
        output_close(ret);
        return error_set(err, MUSTER_E_NOMEM, "no memory for the output of %d ranks", rank_count);
    }
    ret->to_out = &ret->sinks[0];
    ret->to_err = &ret->sinks[output_one_file(STDOUT_FILENO, STDERR_FILENO) ? 0 : 1];
    if (ret->to_err != ret->to_out)
        ret->sinks[0].complaints = ret->to_err;
    if (directory != NULL && mkdir(directory, 0777) != 0 && errno != EEXIST)
        status = error_set_code(err, MUSTER_E_IO, errno, "cannot make the directory %.400s: %s",
                                directory, strerror(errno));
    for (int i = 0; status == MUSTER_OK && i < rank_count; i++) {
        ret->rank_count = i + 1; /* a half-opened one is closed too */
        ret->ranks[i].rank = first_rank + i;
        if (!output_rank_open(ret, &ret->ranks[i]))
            status =
                error_set(err, MUSTER_E_NOMEM, "no memory for the output of %d ranks", rank_count);
        else if (directory != NULL)
            status = output_log_open(&ret->ranks[i], directory, err);
    }
    if (status != MUSTER_OK)
        output_close(ret);
    return status;
}

enum muster_status output_renumber(struct output *output, int first_rank, const char *directory,
                                   struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (int i = 0; status == MUSTER_OK && i < output->rank_count; i++) {
        struct output_rank *rank = &output->ranks[i];

        if (rank->rank == first_rank + i)
            continue;
        rank->rank = first_rank + i;
        if (rank->log_fd >= 0)
            close(rank->log_fd);
        rank->log_fd = -1;
        if (directory != NULL)
            status = output_log_open(rank, directory, err);
    }
    return status;
}

void output_attach(struct output *output, int index, int out_fd, int err_fd)
{
    struct output_rank *rank = &output->ranks[index];

    rank->out.fd = out_fd;
    rank->err.fd = err_fd;
    rank->out.after_return = false;
    rank->err.after_return = false;
    rank->tail_count = 0;
}

void output_close(struct output *output)
{
    for (int i = 0; output->ranks != NULL && i < output->rank_count; i++) {
        struct output_rank *rank = &output->ranks[i];

        if (rank->out.fd >= 0)
            close(rank->out.fd);
        if (rank->err.fd >= 0)
            close(rank->err.fd);
        if (rank->log_fd >= 0)
            close(rank->log_fd);
        free(rank->out.line);
        free(rank->err.line);
        free(rank->tail);
    }
    free(output->ranks);
    free(output->sinks[0].queue);
    free(output->sinks[1].queue);
    memset(output, 0, sizeof *output);
}
