/* metrics_text - the broker's facts and its jobs, as Prometheus reads them; see metrics.h. */
#include "broker/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    FILE *out;
    bool open;
    struct core_job *jobs; /* owned; names are copied */
    size_t count, left_out;
    const struct self *self;
};

static void text_family(const struct text *text, const char *name, const char *type,
                        const char *help)
{
    const char *end = strcmp(type, "counter") == 0 && !text->open ? "_total" : "";

    fprintf(text->out, "# TYPE %s%s %s\n# HELP %s%s %s\n", name, end, type, name, end, help);
}

static void text_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, "{%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"')
            fputc('\\', out);
        if (*value == '\n')
            fputs("\\n", out);
        else
            fputc(*value, out);
    }
    fputs("\"}", out);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void text_take(void *arg, const struct core_job *job)
{
    struct text *text = arg;
    char *name = text->count < METRICS_JOBS_MAX ? strdup(job->name) : NULL;

    if (name == NULL) {
        text->left_out++;
        return;
    }
    text->jobs[text->count] = *job;
    text->jobs[text->count++].name = name;
}

static double text_risk(const struct core_job *job)
{
    int64_t saved = job->checkpoint_step < 0 ? 0 : job->checkpoint_step;

    return job->step < saved ? 0 : (double)(job->step - saved);
}

static const char *const text_families[][3] = {
#define METRIC_JOB(name, type, help) {name, type, help},
#define METRIC_JOB_WEB(name, type, help)
#include "schema/metrics_jobs.def"
#undef METRIC_JOB
#undef METRIC_JOB_WEB
};
#define TEXT_FAMILIES (sizeof text_families / sizeof *text_families)

/* In the order of the families. Negative: there is none. */
static double text_figure(const struct core_job *job, size_t which)
{
    bool saved = job->checkpoint_step >= 0;
    const double figures[] = {
        job->running,
        (double)(job->step + job->step_offset),
        (double)job->generation,
        (double)job->world_size,
        (double)job->live,
        (double)job->lag,
        (double)job->stuck_ms / 1000,
        (double)job->silence_ms / 1000,
        saved ? (double)(job->checkpoint_step + job->step_offset) : -1,
        saved ? (double)job->checkpoint_unix_ms / 1000 : -1,
        text_risk(job),
        (double)job->notices,
        job->freeze_unix_ms > 0 ? (double)job->freeze_unix_ms / 1000 : -1,
    };

    _Static_assert(sizeof figures / sizeof *figures == TEXT_FAMILIES, "a figure a family");
    return figures[which];
}

static void text_jobs(const struct text *text)
{
    for (size_t i = 0; i < TEXT_FAMILIES; i++) {
        const char *end = strcmp(text_families[i][1], "counter") == 0 ? "_total" : "";

        text_family(text, text_families[i][0], text_families[i][1], text_families[i][2]);
        for (size_t k = 0; k < text->count; k++) {
            double figure = text_figure(&text->jobs[k], i);

            if (figure < 0)
                continue;
            fprintf(text->out, "%s%s", text_families[i][0], end);
            text_label(text->out, "muster_job", text->jobs[k].name);
            fprintf(text->out, " %.15g\n", figure);
        }
    }
    text_family(text, "muster_left_out_jobs", "gauge",
                "Jobs beyond 1000, of which nothing is told.");
    fprintf(text->out, "muster_left_out_jobs %zu\n", text->left_out);
}

/* --- the broker's own ------------------------------------------------------------------------- */

struct text_fact {
    const struct text *text;
    const char *fact; /* its name, or how its name begins */
    const char *name, *end;
    double scale; /* 0: reasons */
};

static void text_take_fact(void *arg, const char *name, int64_t number, const char *words)
{
    const struct text_fact *wanted = arg;
    FILE *out = wanted->text->out;
    size_t length = strlen(wanted->fact);

    if (number < 0 || words[0] != '\0' || strncmp(name, wanted->fact, length) != 0 ||
        (wanted->scale > 0 && name[length] != '\0'))
        return;
    fprintf(out, "%s%s", wanted->name, wanted->end);
    if (wanted->scale > 0) {
        fprintf(out, " %.15g\n", (double)number * wanted->scale);
        return;
    }
    text_label(out, "reason", name + length);
    fprintf(out, " %" PRId64 "\n", number);
}

static void text_facts(const struct text *text)
{
    static const struct {
        const char *fact, *name, *type, *help;
        double scale;
    } facts[] = {
#define METRIC_FACT(fact, name, type, help, scale) {fact, name, type, help, scale},
#define METRIC_REASONS(prefix, name, help) {prefix, name, "counter", help, 0},
#include "schema/metrics.def"
#undef METRIC_FACT
#undef METRIC_REASONS
    };

    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct text_fact wanted = {
            .text = text,
            .fact = facts[i].fact,
            .name = facts[i].name,
            .end = strcmp(facts[i].type, "counter") == 0 ? "_total" : "",
            .scale = facts[i].scale,
        };

        text_family(text, facts[i].name, facts[i].type, facts[i].help);
        self_facts(text->self, text_take_fact, &wanted);
    }
}

char *metrics_text(const struct self *self, bool open)
{
    struct text text = {.open = open, .self = self};
    char *bytes = NULL;
    size_t size = 0;
    bool ok;

    text.jobs = calloc(METRICS_JOBS_MAX, sizeof *text.jobs);
    text.out = open_memstream(&bytes, &size);
    if (text.jobs == NULL || text.out == NULL) {
        free(text.jobs);
        if (text.out != NULL)
            fclose(text.out);
        free(bytes);
        return NULL;
    }
    core_jobs(self->core, text_take, &text);
    text_family(&text, "muster_up", "gauge", "1 if the broker or database answered.");
    fputs("muster_up 1\n", text.out);
    text_jobs(&text);
    text_facts(&text);
    fputs(open ? "# EOF\n" : "", text.out);
    ok = fclose(text.out) == 0;
    for (size_t i = 0; i < text.count; i++)
        free((char *)text.jobs[i].name);
    free(text.jobs);
    if (ok)
        return bytes;
    free(bytes);
    return NULL;
}
