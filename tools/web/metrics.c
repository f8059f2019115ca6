/* metrics - what Prometheus reads: OpenMetrics, or its older text form for those that ask for it.
 * A job that ended more than METRICS_ENDED_MS ago is counted among muster_jobs alone. */
#include "tools/show/status.h"
#include "tools/web/web.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_JOBS_MAX 1000
#define METRICS_ENDED_MS 3600000

struct metrics_job {
    const struct muster_job_row *row;
    struct web_job_history *history;
    size_t cells[CELL_COUNT];
    int64_t lag;
    int64_t stuck_ms, silence_ms; /* the longest of its ranks */
};

struct metrics {
    FILE *out;
    bool open;                /* OpenMetrics */
    struct metrics_job *jobs; /* owned */
    size_t count;
    size_t left_out;
    muster_rows_t *broker; /* NULL: a database */
};

/* --- form ------------------------------------------------------------------------------------- */

static void metrics_family(const struct metrics *m, const char *name, const char *type,
                           const char *help)
{
    const char *end = strcmp(type, "counter") == 0 && !m->open ? "_total" : "";

    fprintf(m->out, "# TYPE %s%s %s\n# HELP %s%s %s\n", name, end, type, name, end, help);
}

static void metrics_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"')
            fputc('\\', out);
        if (*value == '\n')
            fputs("\\n", out);
        else
            fputc(*value, out);
    }
    fputc('"', out);
}

/* "name{muster_job="...",LABEL="VALUE"} "; label NULL: none. */
static void metrics_name(const struct metrics *m, const char *name, const char *end,
                         const char *job, const char *label, const char *value)
{
    fprintf(m->out, "%s%s", name, end);
    if (job != NULL || label != NULL)
        fputc('{', m->out);
    if (job != NULL)
        metrics_label(m->out, "muster_job", job);
    if (label != NULL) {
        fputs(job != NULL ? "," : "", m->out);
        metrics_label(m->out, label, value);
    }
    if (job != NULL || label != NULL)
        fputc('}', m->out);
    fputc(' ', m->out);
}

static void metrics_number(const struct metrics *m, double number)
{
    fprintf(m->out, "%.15g\n", number);
}

/* --- a number a job --------------------------------------------------------------------------- */

static const struct {
    const char *name, *type, *help;
} metrics_list[] = {
#define METRIC_JOB(name, type, help) {name, type, help},
#define METRIC_JOB_WEB(name, type, help) {name, type, help},
#include "schema/metrics_jobs.def"
#undef METRIC_JOB
#undef METRIC_JOB_WEB
};
#define METRICS_LISTED (sizeof metrics_list / sizeof *metrics_list)

/* In the order of the list. Negative: there is none. */
static double metrics_figure(const struct metrics_job *job, size_t which)
{
    const struct muster_job_row *row = job->row;
    const bool ended = strcmp(row->state, "ended") == 0, saved = row->newest_checkpoint != 0;
    const int64_t saved_step = saved ? row->newest_step : 0;
    const double figures[] = {
        strcmp(row->state, "running") == 0,
        (double)status_step(row, row->step),
        status_goodput(row),
        (double)row->steps_executed,
        (double)row->generation,
        (double)row->world_size,
        (double)row->nodes_live,
        (double)job->lag,
        (double)job->stuck_ms / 1000,
        (double)job->silence_ms / 1000,
        (double)status_step(row, row->newest_step),
        saved ? (double)row->newest_unix_ms / 1000 : -1,
        ended                    ? -1
        : row->step < saved_step ? 0
                                 : (double)(row->step - saved_step),
        row->step_p95_ms > 0 ? (double)row->step_p95_ms / 1000 : -1,
        row->save_p95_ms > 0 ? (double)row->save_p95_ms / 1000 : -1,
        ended ? 0 : (double)row->notices_active,
        row->freeze_unix_ms > 0 ? (double)row->freeze_unix_ms / 1000 : -1,
        row->open_round == 0 ? 0 : (double)row->open_round_waits,
        job->history == NULL ? -1 : (double)job->history->bytes,
    };

    _Static_assert(sizeof figures / sizeof *figures == METRICS_LISTED, "a figure a name");
    return figures[which];
}

static void metrics_put_list(const struct metrics *m)
{
    for (size_t i = 0; i < METRICS_LISTED; i++) {
        const char *end = strcmp(metrics_list[i].type, "counter") == 0 ? "_total" : "";

        metrics_family(m, metrics_list[i].name, metrics_list[i].type, metrics_list[i].help);
        for (size_t k = 0; k < m->count; k++) {
            double number = metrics_figure(&m->jobs[k], i);

            if (number < 0)
                continue;
            metrics_name(m, metrics_list[i].name, end, m->jobs[k].row->job, NULL, NULL);
            metrics_number(m, number);
        }
    }
}

/* --- several numbers a job -------------------------------------------------------------------- */

static void metrics_put_cells(const struct metrics *m)
{
    static const char *const words[CELL_COUNT] = {"missing", "joining", "training", "saving",
                                                  "stuck",   "silent",  "left",     "lost"};

    metrics_family(m, "muster_job_ranks", "gauge", "Ranks by what they do.");
    for (size_t k = 0; k < m->count; k++)
        for (size_t cell = 0; cell < CELL_COUNT; cell++) {
            metrics_name(m, "muster_job_ranks", "", m->jobs[k].row->job, "state", words[cell]);
            metrics_number(m, (double)m->jobs[k].cells[cell]);
        }
}

static void metrics_put_outcomes(const struct metrics *m)
{
    metrics_family(m, "muster_rounds", "counter", "Rounds that ended, by cause and outcome.");
    for (size_t k = 0; k < m->count; k++)
        for (size_t i = 0; m->jobs[k].history != NULL && i < 64; i++) {
            uint64_t count = m->jobs[k].history->outcomes[i / 8][i % 8];

            if (count == 0)
                continue;
            fputs("muster_rounds_total{", m->out);
            metrics_label(m->out, "muster_job", m->jobs[k].row->job);
            fprintf(m->out, ",cause=\"%s\",outcome=\"%s\"} %" PRIu64 "\n", web_causes[i / 8],
                    web_outcomes[i % 8], count);
        }
}

static void metrics_put_ends(const struct metrics *m)
{
    metrics_family(m, "muster_launch_ends", "counter", "Launches that ended, by reason.");
    for (size_t k = 0; k < m->count; k++)
        for (size_t i = 0; m->jobs[k].history != NULL && web_end_words[i] != NULL; i++) {
            metrics_name(m, "muster_launch_ends", "_total", m->jobs[k].row->job, "reason",
                         web_end_words[i]);
            metrics_number(m, (double)m->jobs[k].history->ends[i]);
        }
}

static void metrics_put_phase(const struct metrics *m, const char *job, const char *name,
                              const struct web_phases *phases)
{
    for (size_t i = 0; i <= 12; i++) {
        char end[24] = "+Inf";

        if (i < 12)
            snprintf(end, sizeof end, "%.15g%s", web_bucket_s[i], web_bucket_s[i] >= 1 ? ".0" : "");
        fputs("muster_round_phase_seconds_bucket{", m->out);
        metrics_label(m->out, "muster_job", job);
        fprintf(m->out, ",phase=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, end,
                i < 12 ? phases->buckets[i] : phases->count);
    }
    metrics_name(m, "muster_round_phase_seconds", "_sum", job, "phase", name);
    metrics_number(m, phases->sum_s);
    metrics_name(m, "muster_round_phase_seconds", "_count", job, "phase", name);
    metrics_number(m, (double)phases->count);
}

static void metrics_put_phases(const struct metrics *m)
{
    static const char *const words[WEB_PHASES] = {"freeze", "reach", "write"};

    metrics_family(m, "muster_round_phase_seconds", "histogram",
                   "Time until all ranks reported, then captured, then wrote.");
    for (size_t k = 0; k < m->count; k++)
        for (size_t phase = 0; m->jobs[k].history != NULL && phase < WEB_PHASES; phase++)
            metrics_put_phase(m, m->jobs[k].row->job, words[phase],
                              &m->jobs[k].history->phases[phase]);
}

/* --- the broker's own ------------------------------------------------------------------------- */

static const struct {
    const char *fact; /* its name, or how its name begins */
    const char *name, *type, *help;
    double scale; /* 0: reasons */
} metrics_facts[] = {
#define METRIC_FACT(fact, name, type, help, scale) {fact, name, type, help, scale},
#define METRIC_REASONS(prefix, name, help) {prefix, name, "counter", help, 0},
#include "schema/metrics.def"
#undef METRIC_FACT
#undef METRIC_REASONS
};

/* A reason is a number of its own: "refused_key" and the like, also those of a later broker. */
static void metrics_put_facts(const struct metrics *m)
{
    const struct muster_broker_row *fact = muster_rows_broker(m->broker);

    for (size_t i = 0; i < sizeof metrics_facts / sizeof *metrics_facts; i++) {
        const char *end = strcmp(metrics_facts[i].type, "counter") == 0 ? "_total" : "";
        const size_t length = strlen(metrics_facts[i].fact);
        const bool reasons = !(metrics_facts[i].scale > 0);

        metrics_family(m, metrics_facts[i].name, metrics_facts[i].type, metrics_facts[i].help);
        for (size_t k = 0; k < muster_rows_count(m->broker); k++) {
            if (strncmp(fact[k].name, metrics_facts[i].fact, length) != 0 ||
                (!reasons && fact[k].name[length] != '\0') || fact[k].number < 0)
                continue;
            metrics_name(m, metrics_facts[i].name, end, NULL, reasons ? "reason" : NULL,
                         fact[k].name + length);
            metrics_number(m, (double)fact[k].number * (reasons ? 1 : metrics_facts[i].scale));
        }
    }
}

/* --- gathering -------------------------------------------------------------------------------- */

static int metrics_gather_ranks(struct tool *tool, struct metrics_job *job)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *nodes = NULL;
    struct web_world world = {0};
    int code = web_failed(muster_client_nodes(tool->client, job->row->job, 0, &nodes, &err), &err);

    if (code == TOOL_DONE)
        code = web_world_find(nodes, job->row->world_size, tool->now_unix_ms, &world);
    memcpy(job->cells, world.cells, sizeof job->cells);
    for (size_t i = 0; i < world.count; i++) {
        const struct muster_node_row *node = world.rank[i];
        int64_t silence_ms, stuck_ms;

        if (node == NULL || !tool_node_is_live(node))
            continue;
        silence_ms = node->heard_unix_ms == 0 ? 0 : tool->now_unix_ms - node->heard_unix_ms;
        stuck_ms = node->stuck_unix_ms == 0 ? 0 : tool->now_unix_ms - node->stuck_unix_ms;
        job->lag = node->lag > job->lag ? node->lag : job->lag;
        job->silence_ms = silence_ms > job->silence_ms ? silence_ms : job->silence_ms;
        job->stuck_ms = stuck_ms > job->stuck_ms ? stuck_ms : job->stuck_ms;
    }
    web_world_free(&world);
    muster_rows_destroy(&nodes);
    return code;
}

static bool metrics_is_old(const struct muster_job_row *job, int64_t now_unix_ms)
{
    return strcmp(job->state, "ended") == 0 && now_unix_ms - job->state_unix_ms > METRICS_ENDED_MS;
}

static int metrics_gather(struct web *web, struct tool *tool, const muster_rows_t *rows,
                          struct metrics *m)
{
    const struct muster_job_row *job = muster_rows_jobs(rows);
    struct muster_error err = {.status = MUSTER_OK};
    int code = TOOL_DONE;

    m->jobs = calloc(METRICS_JOBS_MAX, sizeof *m->jobs);
    if (m->jobs == NULL)
        return tool_fail(TOOL_NO, "no memory for the metrics");
    for (size_t i = 0; code == TOOL_DONE && i < muster_rows_count(rows); i++) {
        if (metrics_is_old(&job[i], tool->now_unix_ms))
            continue;
        if (m->count == METRICS_JOBS_MAX) {
            m->left_out++;
            continue;
        }
        m->jobs[m->count].row = &job[i];
        m->jobs[m->count].history = web_history_of(web, tool, &job[i]);
        code = web->history_failed;
        if (code == TOOL_DONE)
            code = metrics_gather_ranks(tool, &m->jobs[m->count++]);
    }
    if (code == TOOL_DONE && !muster_client_is_database(tool->client))
        code = web_failed(muster_client_broker(tool->client, &m->broker, &err), &err);
    return code;
}

static void metrics_put_jobs(const struct metrics *m, const muster_rows_t *rows)
{
    static const char *const states[] = {"joining", "running", "ending", "ended"};
    const struct muster_job_row *job = muster_rows_jobs(rows);

    metrics_family(m, "muster_up", "gauge", "1 if the broker or database answered.");
    fputs("muster_up 1\n", m->out);
    metrics_family(m, "muster_jobs", "gauge", "Jobs by state.");
    for (size_t i = 0; i < 4; i++) {
        size_t count = 0;

        for (size_t k = 0; k < muster_rows_count(rows); k++)
            count += strcmp(job[k].state, states[i]) == 0;
        metrics_name(m, "muster_jobs", "", NULL, "state", states[i]);
        metrics_number(m, (double)count);
    }
    metrics_family(m, "muster_left_out_jobs", "gauge",
                   "Jobs beyond 1000, of which nothing is told.");
    metrics_name(m, "muster_left_out_jobs", "", NULL, NULL, NULL);
    metrics_number(m, (double)m->left_out);
}

int web_make_metrics(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct metrics m = {.out = tool->out, .open = request->open};
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    int code = web_failed(muster_client_jobs(tool->client, NULL, &rows, &err), &err);

    if (code == TOOL_DONE)
        code = metrics_gather(web, tool, rows, &m);
    if (code == TOOL_DONE) {
        metrics_put_jobs(&m, rows);
        metrics_put_list(&m);
        metrics_put_cells(&m);
        metrics_put_outcomes(&m);
        metrics_put_ends(&m);
        metrics_put_phases(&m);
        if (m.broker != NULL)
            metrics_put_facts(&m);
        fputs(m.open ? "# EOF\n" : "", m.out);
    }
    free(m.jobs);
    muster_rows_destroy(&m.broker);
    muster_rows_destroy(&rows);
    return code;
}
