/* render - tables, JSON, times and sizes for people.
 * Never: the clock; `now` is handed in, so that outputs can be compared. */
#ifndef TOOLS_RENDER_H
#define TOOLS_RENDER_H

#include <muster/client.h>

#include "schema/arena.h"

#include <jansson.h>
#include <stdio.h>

#define RENDER_SCHEMA_VERSION 2
#define RENDER_COLUMNS_MAX 16

/* A short text, by value, so that several fit in one printf. */
struct shown {
    char text[64];
};
/* Text from elsewhere that must stay on one line: each control character becomes a blank. */
struct one_line {
    char text[4096];
};
struct one_line render_line(const char *text);
struct shown render_age(int64_t unix_ms, int64_t now_unix_ms); /* "12 s ago", "-" for 0 */
/* The fate that a notice of this kind means for a rank: "will be ended". */
const char *render_fate(const char *notice_kind);
bool render_ends(const char *notice_kind); /* or does nobody leave for it? */
struct shown render_duration(int64_t ms);  /* "0.8 s", "-" for -1 */
/* "12:00:03", with the date unless it is that of now, in local time. */
struct shown render_clock(int64_t unix_ms, int64_t now_unix_ms);
struct shown render_stamp(int64_t unix_ms); /* "2026-11-23 12:00:03", in local time */
struct shown render_zone(int64_t unix_ms);  /* "UTC+01:00": that of local times then */
struct shown render_bytes(int64_t bytes);   /* "1.2 MB" */
struct shown render_number(int64_t number); /* "-" below 0 */
struct shown render_count(int64_t number);  /* "-" for 0 too */
/* "in step 44 for 2 min", "saving for 2 min", "in no step since step 44 for 2 min": where a rank is
 * stuck; "" if it is not. */
struct shown render_stuck(const struct muster_node_row *node);

/* Those of the nodes that are stuck, the longest first. */
struct stuck {
    const struct muster_node_row **nodes; /* owned: free */
    size_t count;
    bool all; /* nobody else lives, and they are several */
};
void render_stuck_find(const muster_rows_t *nodes, struct stuck *ret_stuck);

/* One who holds a checkpoint, of its column "pins"; *pins goes on to the next. false: there is
 * none. */
struct pin {
    const char *id; /* not ended by a NUL */
    int length;
    int64_t until_unix_ms; /* 0 = until it is let go */
};
bool render_next_pin(const char **pins, struct pin *ret_pin);

/* Rows of texts in aligned columns; the last column is not padded. */
struct table {
    const char *const *titles; /* a leading '>' aligns to the right */
    const char *const *spare;  /* titles of columns that a narrow terminal does without, the first
                                  ones  first; ends with NULL; NULL: none */
    int columns;
    int widths[RENDER_COLUMNS_MAX]; /* of the widest cell or title of each column */
    char **cells;                   /* owned; their texts are in `texts` */
    struct arena texts;
    size_t cells_count;
    size_t cells_capacity;
    bool broken; /* out of memory */
};
void table_init(struct table *table, const char *const *titles, int columns);
void table_add(struct table *table, const char *text); /* copies; next column, next row */
/* Prints and frees. width: of the terminal; 0 = none, and then no column is left out. */
void table_print(struct table *table, FILE *out, int width);

/* New references; NULL: no memory. Keys are the columns' names; unknown numbers stay -1 or 0. */
json_t *render_row(const muster_rows_t *rows, size_t row);
json_t *render_rows(const muster_rows_t *rows);
/* A checkpoint, in every verb. Its holders are an array, and the user's JSON inside ours is JSON,
 * not a text; "written" is what the program wrote by itself. null: there is no such row. */
json_t *render_checkpoint(const muster_rows_t *rows, size_t row);
json_t *render_checkpoints(const muster_rows_t *rows);
/* {"path", "bytes"} of the text in the column "custom"; null: the program wrote nothing itself. */
json_t *render_written(const char *custom);
/* Those of the nodes that are stuck. */
json_t *render_stuck_rows(const muster_rows_t *nodes);
/* {"schema_version": 2}, to be filled. */
json_t *render_document(void);
/* Writes and drops it. false: no memory, nothing was written. */
bool render_json(json_t *document, FILE *out, bool one_line);

#endif
