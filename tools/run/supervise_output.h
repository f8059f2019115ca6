/* supervise_output - what the ranks print, passed on line by line with the rank before it.
 * Owns: the line buffers, the queues to our own stdout and stderr, the log files, each rank's last
 * lines for the error box.
 * Never: decides anything; blocks on a slow reader of our output (the ranks' pipes fill instead,
 * as they would at a terminal); lets two lines mix.
 * Invariant: a line is queued whole, and one queue writes to one file. */
#ifndef TOOLS_SUPERVISE_OUTPUT_H
#define TOOLS_SUPERVISE_OUTPUT_H

#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_LINE_MAX 65536    /* a longer line is passed on in pieces of this */
#define OUTPUT_QUEUE_MAX 1048576 /* bytes that wait for our reader */
#define OUTPUT_TAIL_LINES 20
#define OUTPUT_TAIL_BYTES 400 /* of a line in the error box */

/* One of our own two outputs. */
struct output_sink {
    int fd;
    char *queue; /* OUTPUT_QUEUE_MAX bytes */
    size_t length;
    size_t chunk_max; /* bytes that one write may have without blocking after POLLOUT */
    bool bar;         /* the last line is a bar, which goes away before another */
    bool gone; /* the reader went away, or the disk is full: what comes is dropped, the ranks go on
                */
    struct output_sink *complaints; /* where a full disk is told; NULL = nowhere */
};

/* One pipe from a rank. */
struct output_stream {
    int fd; /* our end, non-blocking; -1 = closed */
    struct output_sink *sink;
    char *line; /* OUTPUT_LINE_MAX bytes */
    size_t length;
    bool after_return; /* the last byte was '\r': a '\n' that follows ends no line */
};

struct output_rank {
    int rank;
    int log_fd; /* -1 = none */
    bool log_failed;
    struct output_stream out;
    struct output_stream err;
    char (*tail)[OUTPUT_TAIL_BYTES]; /* OUTPUT_TAIL_LINES of them, as a ring */
    uint64_t tail_count;             /* lines ever put into it */
};

struct output {
    struct output_sink sinks[2]; /* stdout, stderr; one serves both when they are one file */
    struct output_sink *to_out;
    struct output_sink *to_err;
    struct output_rank *ranks;
    int rank_count;
    bool quiet; /* what goes as it should is not said */
};

/* Opens the queues for rank_count ranks, whose numbers begin at first_rank, and with `directory`
 * (borrowed; may be NULL) their logs DIR/<rank>.log, which are appended to. A launcher's lines get
 * no number before them, and its log is DIR/launcher.log. */
enum muster_status output_open(struct output *ret, int rank_count, int first_rank,
                               const char *directory, struct muster_error *err);
void output_close(struct output *output); /* a zeroed one is fine */

/* Between launches: the ranks have other numbers now, in what they print and in their logs. */
enum muster_status output_renumber(struct output *output, int first_rank, const char *directory,
                                   struct muster_error *err);

/* A new launch: takes the reading ends of rank `index`'s pipes and forgets its last lines. */
void output_attach(struct output *output, int index, int out_fd, int err_fd);

/* May this stream be read now? False while its sink's queue is nearly full. */
bool output_wants(const struct output_stream *stream);

/* Reads once and queues the lines. At the end of the pipe: queues the rest and closes. */
void output_read(struct output *output, struct output_rank *rank, struct output_stream *stream);

/* Reads what is left in all pipes for at most limit_ms, then closes them. */
void output_drain(struct output *output, int limit_ms);

/* Writes as much as goes without blocking. */
void output_write(struct output_sink *sink);

/* Writes until the queues are empty, or for at most limit_ms. */
void output_flush(struct output *output, int limit_ms);

/* Queues a line of our own for stderr; the newline is added. */
void output_say(struct output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for what goes as it should, which --log-level warning hides. */
void output_note(struct output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The width of the terminal that our stderr is; 0: it is none, or bars are not wanted. */
int output_bar_width(const struct output *output);
/* The bar at the end of all lines, until another line or bar comes; NULL takes it away. */
void output_bar(struct output *output, const char *text);

/* Line i of the last that rank `index` wrote to its stderr, oldest first; NULL after the last.
 * Borrowed until the next read. */
const char *output_tail(const struct output *output, int index, int i);

#endif
