/* tool - what the verbs of `muster` share: options, the client, the job, exit codes.
 * The tool prints its answer on stdout only when it is whole, and every error on stderr as one
 * line: what happened, to what, what to do next. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include "schema/limits.h"

#include <muster/client.h>

#include <stdio.h>

enum tool_exit {
    TOOL_DONE = 0,
    TOOL_NO = 1, /* the answer is no: nothing found, not saved */
    TOOL_USAGE = 2,
    TOOL_UNREACHABLE = 3, /* no broker, no readable database */
    TOOL_REFUSED = 4      /* the broker said no */
};

enum tool_option_id {
    OPTION_BROKER,
    OPTION_DB,
    OPTION_JOB,
    OPTION_JSON,
    OPTION_TIMEOUT,
    OPTION_GENERATION,
    OPTION_SINCE,
    OPTION_FOLLOW,
    OPTION_GRACE,
    OPTION_TEXT,
    OPTION_CANCEL,
    OPTION_WAIT,
    OPTION_LEASE,
    OPTION_ID,
    OPTION_ALL,
    OPTION_EXIT_CODE,
    OPTION_ROLE,
    OPTION_EXPIRES,
    OPTION_FILE,
    OPTION_SIGN,
    OPTION_KEY,
    OPTION_LISTEN,
    OPTION_RANKS,
    OPTION_SIZE,
    OPTION_ROUNDS,
    OPTION_DIR,
    OPTION_PLOT,
    OPTION_WATCH,
    OPTION_HOSTS,
    OPTION_ORDERS,
    OPTION_HELP,
    OPTION_COUNT
};
struct tool_option {
    const char *name;  /* without the dashes */
    const char *value; /* what it is called in help; NULL: takes none */
    const char *env;   /* NULL: none */
    const char *help;
};
extern const struct tool_option tool_option_table[OPTION_COUNT];

#define TOOL_ARGS_MAX 3

struct tool {
    const char *verb;
    const char *values[OPTION_COUNT]; /* NULL: not given; flags: "" */
    const char *args[TOOL_ARGS_MAX];
    int args_count;
    int timeout_ms;
    int64_t now_unix_ms;
    char place[BROKERS_TEXT_MAX + 1];   /* brokers or database, once opened; not to be shown */
    char address[BROKERS_TEXT_MAX + 1]; /* the same, without a password */
    muster_client_t *client;
    char job[256]; /* once resolved */
    int64_t
        step_offset; /* then: rows tell counts of steps done + this, as the job's program counts */
    int width;       /* of the terminal that reads the answer; 0 = none does */
    FILE *out;       /* collects the answer, which tool_flush writes to stdout */
    char *answer;    /* what `out` holds */
    size_t answer_size;
    bool kept; /* not written: whoever asked takes the answer out of `out` */
};

struct tool_verb {
    const char *name;
    const char *args; /* shown in help */
    const char *summary;
    unsigned options; /* bits of tool_option_id, the common ones left out */
    int args_min;
    int args_max;
    int (*run)(struct tool *tool); /* an exit code */
};

#define OPTION_BIT(id) (1u << (id))
#define OPTIONS_COMMON                                                               \
    (OPTION_BIT(OPTION_BROKER) | OPTION_BIT(OPTION_DB) | OPTION_BIT(OPTION_JOB) |    \
     OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_TIMEOUT) | OPTION_BIT(OPTION_KEY) | \
     OPTION_BIT(OPTION_HELP))

/* --- options.c --- */

/* Reads the words after the verb. TOOL_DONE, or TOOL_USAGE after printing what is wrong. */
int tool_parse(struct tool *tool, const struct tool_verb *verb, int argc, char **argv);
/* A whole number, or a number of seconds given as decimal, of an option or argument. */
int tool_number(const char *text, const char *what, int64_t min, int64_t max, int64_t *ret_number);
int tool_seconds_ms(const char *text, const char *what, int64_t *ret_ms);
/* Opens the client on the broker or database that was named, or the default one. */
int tool_connect(struct tool *tool);
/* Only a broker takes orders: TOOL_DONE, or says so. Needs the client. */
int tool_check_broker(struct tool *tool);
/* Finds the job that is meant: --job, MUSTER_JOB, or the only one. Needs the client. */
int tool_find_job(struct tool *tool);
/* The same for a job given by name; *ret_rows (owned) holds its one row. */
int tool_get_job(struct tool *tool, const char *name, muster_rows_t **ret_rows);
/* Rows of tool->job tell steps as its program counts them from here on; tool_find_job does it. */
int tool_count_steps(struct tool *tool);

/* --- tool.c --- */

/* Says "muster: ..." on stderr. Returns exit_code, so that a caller can return it. */
int tool_fail(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* From here on errors go to text instead of stderr, and only the newest is kept; NULL: to stderr
 * again. It is for a verb that runs inside another one, on one thread at a time. */
void tool_hear(char *text, size_t size);
/* The same for an error of the library; picks the exit code. */
int tool_fail_status(enum muster_status status, const struct muster_error *err);
/* Writes what was collected in tool->out to stdout and empties it, without control characters. */
int tool_flush(struct tool *tool);
bool tool_json(const struct tool *tool);
int64_t tool_now_unix_ms(void);

/* Has it joined, and not left or been lost? */
bool tool_node_is_live(const struct muster_node_row *node);
/* False for a parameter server or an evaluator: what they do tells nothing about the ranks. */
bool tool_node_is_rank(const struct muster_node_row *node);
bool tool_node_has_finished(const struct muster_node_row *node);
/* Was this notice cancelled because its rank had finished, and not by anybody? nodes: those of its
 * generation. */
bool tool_notice_fell(const muster_rows_t *nodes, const struct muster_event_row *cancelled);
/* Did a launch end because the restarted broker heard no rank of it? It may have finished while no
 * broker ran. */
bool tool_end_is_unheard(const char *end_text, int64_t unknown_ranks);
/* Does the end say what this failure says, or the beginning of it? */
bool tool_end_is_of(const char *end_text, const char *failure);
/* The broker that is named, that of the environment, or the default one; NULL: none is known. */
const char *tool_broker_of(const char *broker, char address[ENDPOINT_MAX + 1]);
/* Is the job running, and how? False also if no broker answers within a second. */
bool tool_running_job(const char *broker, const char *job, char *ret_text, size_t size);
/* The newest committed step of a job, -1 if it has none or is not known. 0 = done; anything else:
 * the broker (NULL: MUSTER_BROKER, else the default one) was not reachable. Prints nothing. */
int tool_latest_step(const char *broker, const char *job, int64_t *ret_step);
/* How a job's newest generation ended, or ends. */
struct tool_end {
    int64_t generation; /* 0 = the broker knows of none */
    bool ended;
    bool preempted; /* it, or a rank that left it, is to be started again */
    bool finished;  /* it started, and each of its ranks left as finished */
    enum muster_status status;
    int error_rank; /* -1 = none; so the rest */
    int error_code;
    int64_t opened_unix_ms, ended_unix_ms;
    char host[256];
    char text[1200];
};
/* False: the broker (as above) was not reachable. Prints nothing. */
bool tool_job_end(const char *broker, const char *job, struct tool_end *ret_end);

/* --- watch.c --- */

/* Runs the verb again and again on the whole terminal (--watch), until q or Ctrl-C. */
int tool_watch(struct tool *tool, const struct tool_verb *verb);

#endif
