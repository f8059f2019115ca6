/* web - what the files of `muster web` share.
 * Owns: one listening socket, one client, answers that are kept for a moment.
 * Never: writes to a database; gives its broker an order that is not of orders.c; asks others.
 * Always: at most WEB_CONNECTIONS_MAX connections, WEB_KEPT_BYTES of answers, one question at a
 * time, and no question again before ten times its own duration has passed. */
#ifndef TOOLS_WEB_WEB_H
#define TOOLS_WEB_WEB_H

#include "tools/render.h"
#include "tools/tool.h"

#include <microhttpd.h>
#include <pthread.h>

#define WEB_CONNECTIONS_MAX 64
#define WEB_STREAMS_MAX 40 /* so that a page is answered while all streams are taken */
#define WEB_TIMEOUT_S 30   /* of a connection on which nothing moves */
#define WEB_KEPT_MAX 32    /* answers */
#define WEB_KEPT_BYTES (64u << 20)
#define WEB_FRESH_MS 400        /* an answer this young is given again */
#define WEB_BROKEN_MS 2000      /* after a failure nobody waits for the broker again */
#define WEB_STREAM_EVERY_MS 250 /* looks for what is new */
#define WEB_STREAM_ALIVE_MS 10000
#define WEB_ROWS 20  /* of a list on a job's page */
#define WEB_PAGE 100 /* of a list on its own page */

struct web;

/* The request, checked. */
struct web_request {
    char job[256];          /* "" = none */
    int64_t number;         /* of the path, -1 = none */
    int64_t page;           /* from 1 */
    int64_t from_ms, to_ms; /* what the time line shows; 0, 0 = the whole launch */
    const char *since;      /* as in `muster events`, NULL = not given */
    const char *generation;
    bool open;                                    /* OpenMetrics, not Prometheus's older text */
    const char *rank, *grace, *text, *checkpoint; /* of an order, as its verb checks them */
};

/* Writes an answer to tool->out. An exit code of the tool; then the error was told to tool_fail. */
typedef int web_make_fn(struct web *web, struct tool *tool, const struct web_request *request);

struct web_answer { /* its bytes do not change */
    unsigned references;
    int code; /* enum tool_exit */
    char *body;
    size_t size;
    uint64_t hash; /* of body */
    int64_t made_ms;
    int64_t cost_ms;
};

struct web_kept {
    char key[512];
    struct web_answer *answer;
    int64_t used_ms;
};

struct web_history; /* history.c */

#define WEB_SPARKS_MAX 200
#define WEB_SPARK_MARKS 60
struct web_spark { /* steps a second, a mark each two seconds */
    char job[64];
    int64_t last_ms, last_steps; /* 0: nobody's */
    size_t count;
    float rate[WEB_SPARK_MARKS];
};

struct web {
    pthread_mutex_t lock;   /* of all below but `stopping` */
    struct tool *tool;      /* options, address, client */
    uint64_t device, inode; /* of the database, 0 = a broker */
    struct web_kept kept[WEB_KEPT_MAX];
    size_t kept_bytes;
    char said[MUSTER_ERROR_TEXT_MAX * 2];    /* the newest error of the question under way */
    char trouble[MUSTER_ERROR_TEXT_MAX * 2]; /* "" = the last question was answered */
    int64_t trouble_ms;                      /* of the last one that was not */
    struct web_spark sparks[WEB_SPARKS_MAX];
    struct web_history *history;
    int history_failed; /* an exit code of the tool */
    _Atomic bool stopping;
    _Atomic unsigned streams;
    char host[256]; /* that it was told to listen at */
    int port;
    char secret[33]; /* every order has to show it; "" = none is taken */
};

/* --- ask.c: questions, one at a time */

/* The answer under this key: one that was kept, or a new one. NULL only without memory. Release it
 * with web_release. */
struct web_answer *web_ask(struct web *web, const char *key, web_make_fn *make,
                           const struct web_request *request);
/* The same for an order: each one is carried out, and no answer is kept. */
struct web_answer *web_order(struct web *web, web_make_fn *make, const struct web_request *request);
void web_release(struct web_answer *answer);
void web_forget_all(struct web *web);

/* --- http.c: connections */

/* TOOL_DONE when it was told to stop, or says what is wrong. */
int web_serve(struct web *web);

/* --- stream.c: server-sent events */

struct MHD_Response *web_stream(struct web *web, const struct web_request *request,
                                struct MHD_Connection *connection);

/* --- orders.c: Save now, Notify, Pin (muster web --orders) */

#define WEB_SECRET "X-Muster-Orders" /* the header with the secret */
/* Makes the secret. TOOL_DONE, or says why there can be no orders. */
int web_orders_begin(struct web *web);
/* NULL: the sender may give orders. Else the reason why not. */
const char *web_orders_wrong(const struct web *web, struct MHD_Connection *connection);

/* --- html.c: every %s is escaped; there is no other conversion */

void html(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_escaped(FILE *out, const char *text);
void html_head(struct tool *tool, const char *title, const char *job, const char *view);
void html_foot(struct tool *tool);
/* before, the name as a part of a path, behind; of these only the name is not of ours. */
void html_job_path(FILE *out, const char *before, const char *job, const char *behind);
struct shown html_number(int64_t number); /* "8,412", a dash below 0 */
struct shown html_percent(double part, double whole);
/* "12 s ago" and "in 5 s", which the page keeps up to date. */
void html_age(struct tool *tool, int64_t unix_ms);
void html_until(struct tool *tool, int64_t unix_ms);
void html_clock(struct tool *tool, int64_t unix_ms);
/* A word of state, with its colour. */
void html_state(FILE *out, const char *word);
/* Rows *first to *end of count on that page. */
void html_page_rows(int64_t page, size_t count, size_t *ret_first, size_t *ret_end);
void html_pages(FILE *out, int64_t page, size_t count);

/* --- pages and documents */

web_make_fn web_make_jobs, web_make_job, web_make_ranks, web_make_rounds, web_make_round,
    web_make_checkpoints, web_make_journal, web_make_launches, web_make_story, web_make_worst;
web_make_fn web_make_heat, web_make_frame, web_make_tick, web_make_metrics, web_make_ready;

/* Is it the error of a question, so that the rest is not worth asking? Says so. */
int web_failed(enum muster_status status, const struct muster_error *err);
/* For the records of a dead broker: a line that says how old they are. */
void web_put_as_of(struct tool *tool);
/* As `muster why`: of that round, 0 = the newest. later: the page asks for it when it is there. */
void web_put_story(struct web *web, struct tool *tool, int64_t round, bool later);
void web_list_checkpoints(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end);
void web_list_rounds(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end);
void web_list_ranks(struct tool *tool, const struct muster_node_row *const *nodes, size_t count);
void web_list_events(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end);
void web_list_launches(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end);
/* The newest launch as a picture: its rounds and notices on a line, or the window of it that was
 * asked for. */
void web_time_line(struct tool *tool, const struct web_request *request,
                   const struct muster_generation_row *launch, const muster_rows_t *rounds,
                   const muster_rows_t *notices);

/* --- heat.c: what each rank does */

enum web_cell {
    CELL_MISSING,
    CELL_JOINING,
    CELL_TRAINING,
    CELL_SAVING,
    CELL_STUCK,
    CELL_SILENT,
    CELL_LEFT,
    CELL_LOST,
    CELL_COUNT
};
extern const char web_cell_letters[CELL_COUNT + 1];
extern const char *const web_cell_words[CELL_COUNT];

struct web_world {
    size_t count;                        /* ranks */
    const struct muster_node_row **rank; /* owned; its newest process, NULL = none */
    size_t cells[CELL_COUNT];            /* how many are in which state */
    int64_t frontier;                    /* the furthest step */
    int64_t generation;
};
int web_world_find(const muster_rows_t *nodes, int64_t world_size, int64_t now_unix_ms,
                   struct web_world *ret_world);
void web_world_free(struct web_world *world);
enum web_cell web_cell_of(const struct muster_node_row *node, int64_t now_unix_ms);

/* --- history.c: what metrics count; each round and launch once */

struct web_phases { /* a histogram */
    uint64_t count, buckets[12];
    double sum_s;
};
enum { PHASE_FREEZE, PHASE_REACH, PHASE_WRITE, WEB_PHASES };
extern const double web_bucket_s[12]; /* upper ends */
#define WEB_ENDS_MAX 8
struct web_job_history {
    char job[256];
    int64_t created_unix_ms;
    uint64_t asked;                                   /* which question of all was its last */
    int64_t last_round, last_checkpoint, last_launch; /* counted so far */
    uint64_t outcomes[8][8];                          /* of rounds: by cause, by outcome */
    struct web_phases phases[WEB_PHASES];
    uint64_t bytes;              /* of committed checkpoints */
    uint64_t ends[WEB_ENDS_MAX]; /* of launches, by web_end_words */
};
extern const char *const web_end_words[WEB_ENDS_MAX];
extern const char *const web_causes[8], *const web_outcomes[8];
/* That job's, up to now. NULL: no memory, or web->history_failed is the code of an error that was
 * said. */
struct web_job_history *web_history_of(struct web *web, struct tool *tool,
                                       const struct muster_job_row *job);
void web_history_free(struct web *web);

/* --- spark.c: how fast a job goes, since somebody looks at it */

void web_spark_note(struct web *web, const struct muster_job_row *job, int64_t now_ms);
struct shown web_spark_rate(struct web *web, const char *job); /* "14.9", a dash: not known yet */
void web_spark_points(struct web *web, const char *job, FILE *out);
void web_spark_put(struct web *web, const char *job, FILE *out);

/* --- assets.c: files inside the program */

struct web_asset {
    const char *path;
    const char *type;
    const char *bytes;
    const char *end;
};
extern const struct web_asset web_assets[]; /* ends with path NULL */

#endif
