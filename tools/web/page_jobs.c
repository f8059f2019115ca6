/* page_jobs - all jobs on one page, and what a stream tells of jobs. */
#include "tools/as_of.h"
#include "tools/show/status.h"
#include "tools/web/web.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void jobs_put_plan(struct tool *tool, const struct muster_job_row *job)
{
    if (job->open_round != 0) {
        html_state(tool->out, job->open_round_state);
    } else if (job->freeze_unix_ms != 0) {
        fputs("<span class=\"state busy\">freezes ", tool->out);
        html_until(tool, job->freeze_unix_ms);
        fputs("</span>", tool->out);
    } else if (job->notices_active > 0 && strcmp(job->state, "ended") != 0) {
        html(tool->out, "<span class=\"state busy\">%s notice%s</span>",
             html_number(job->notices_active).text, job->notices_active == 1 ? "" : "s");
    } else {
        fputs("<span class=\"none\">&ndash;</span>", tool->out);
    }
}

static void jobs_put_row(struct web *web, struct tool *tool, const struct muster_job_row *job)
{
    FILE *out = tool->out;
    double part = status_goodput(job);

    html_job_path(out, "<tr><th scope=\"row\"><a href=\"/jobs/", job->job, "\">");
    html(out, "%s</a></th><td>", job->job);
    html_state(out, status_outcome(job));
    fputs("<span class=\"since\">", out);
    html_age(tool, job->state_unix_ms);
    html(out, "</span></td><td class=\"number\">%s</td><td class=\"number\">",
         html_number(status_step(job, job->step)).text);
    if (strcmp(job->state, "ended") != 0) {
        html(out, "<span class=\"with-bar\">%s", web_spark_rate(web, job->job).text);
        web_spark_put(web, job->job, out);
        fputs("</span>", out);
    }
    html(out, "</td><td class=\"number\">%s / %s</td>", html_number(job->nodes_live).text,
         html_number(job->world_size).text);
    html(out, "<td class=\"number\"><span class=\"with-bar\">%s",
         part < 0 ? "\u2013" : status_goodput_shown(job).text);
    if (part >= 0)
        html(out,
             "<svg class=\"bar\" aria-hidden=\"true\"><rect class=\"rail\" width=\"100%%\" "
             "height=\"100%%\"/><rect width=\"%s\" height=\"100%%\"/></svg>",
             html_percent(part, 1).text);
    fputs("</span></td><td>", out);
    jobs_put_plan(tool, job);
    html(out, "</td><td class=\"number\">%s</td><td>",
         html_number(status_step(job, job->newest_step)).text);
    html_age(tool, job->newest_unix_ms);
    fputs("</td></tr>\n", out);
}

static void jobs_put_table(struct web *web, struct tool *tool, const struct muster_job_row **jobs,
                           size_t first, size_t end)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Jobs, as a table\">"
          "<table class=\"jobs\"><thead><tr><th scope=\"col\">Job</th>"
          "<th scope=\"col\">State</th><th scope=\"col\" class=\"number\">Step</th>"
          "<th scope=\"col\" class=\"number\">Steps/s</th>"
          "<th scope=\"col\" class=\"number\">Ranks</th>"
          "<th scope=\"col\" class=\"number\">Goodput</th><th scope=\"col\">Next save</th>"
          "<th scope=\"col\" class=\"number\">Checkpoint</th><th scope=\"col\">Saved</th>"
          "</tr></thead><tbody>\n",
          tool->out);
    for (size_t i = first; i < end; i++)
        jobs_put_row(web, tool, jobs[i]);
    fputs("</tbody></table></div>\n", tool->out);
}

static void jobs_put_counts(FILE *out, const struct muster_job_row **jobs, size_t count)
{
    size_t running = 0, ended = 0;

    for (size_t i = 0; i < count; i++) {
        running += strcmp(jobs[i]->state, "running") == 0;
        ended += strcmp(jobs[i]->state, "ended") == 0;
    }
    html(out, "<p class=\"lead\">%s running, %s on the way, %s ended</p>\n",
         html_number((int64_t)running).text, html_number((int64_t)(count - running - ended)).text,
         html_number((int64_t)ended).text);
}

void web_put_as_of(struct tool *tool)
{
    struct tool inner = *tool;
    char *text = NULL;
    size_t size = 0;

    inner.out = open_memstream(&text, &size);
    if (inner.out == NULL)
        return;
    tool_print_as_of(&inner);
    fclose(inner.out);
    if (size > 0)
        html(tool->out, "<div class=\"notice busy\"><p>%s</p></div>\n", text);
    free(text);
}

int web_make_jobs(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct muster_error err = {.status = MUSTER_OK};
    const struct muster_job_row **jobs;
    muster_rows_t *rows = NULL;
    size_t first, end, count;
    int code = web_failed(muster_client_jobs(tool->client, NULL, &rows, &err), &err);

    if (code != TOOL_DONE)
        return code;
    jobs = status_ordered(rows);
    count = muster_rows_count(rows);
    if (jobs == NULL) {
        muster_rows_destroy(&rows);
        return tool_fail(TOOL_NO, "no memory for the jobs");
    }
    html_head(tool, "Jobs", NULL, "");
    web_put_as_of(tool);
    fputs("<h1>Jobs</h1>\n", tool->out);
    html_page_rows(request->page, count, &first, &end);
    if (count == 0) {
        fputs("<p class=\"empty\">No job yet. Start one: <code>muster run --job NAME -n 4 -- "
              "PROGRAM</code></p>\n",
              tool->out);
    } else {
        jobs_put_counts(tool->out, jobs, count);
        for (size_t i = first; i < end; i++)
            web_spark_note(web, jobs[i], tool->now_unix_ms);
        jobs_put_table(web, tool, jobs, first, end);
        html_pages(tool->out, request->page, count);
    }
    html_foot(tool);
    free(jobs);
    muster_rows_destroy(&rows);
    return TOOL_DONE;
}

/* --- what a stream tells -----------------------------------------------------------------------
 */

static uint64_t jobs_mix(uint64_t hash, const struct muster_job_row *job)
{
    const int64_t numbers[] = {job->seq,
                               job->generation,
                               job->nodes_live,
                               job->open_round,
                               job->open_round_waits,
                               job->notices_active,
                               job->newest_checkpoint,
                               job->freeze_unix_ms,
                               job->world_size};

    hash = XXH3_64bits_withSeed(numbers, sizeof numbers, hash);
    hash = XXH3_64bits_withSeed(job->state, strlen(job->state), hash);
    return XXH3_64bits_withSeed(job->open_round_state, strlen(job->open_round_state), hash);
}

static int jobs_tick(struct web *web, struct tool *tool, const muster_rows_t *rows, bool one)
{
    const struct muster_job_row *job = muster_rows_jobs(rows);
    uint64_t version = 0;
    int64_t steps = 0;

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        version = jobs_mix(version, &job[i]);
        steps += job[i].step;
    }
    fprintf(tool->out, "{\"version\":\"%016" PRIx64 "\",\"steps\":%" PRId64, version, steps);
    for (size_t i = 0; i < muster_rows_count(rows) && i < WEB_SPARKS_MAX; i++)
        web_spark_note(web, &job[i], tool->now_unix_ms);
    if (one && muster_rows_count(rows) == 1) {
        fprintf(tool->out,
                ",\"facts\":{\"step\":\"%s\",\"since\":\"%s\",\"live\":\"%s\",\"goodput\":\"%s\","
                "\"rate\":\"%s\"},\"spark\":\"",
                html_number(status_step(job, job->step)).text,
                html_number(status_unsaved(job)).text, html_number(job->nodes_live).text,
                status_goodput_shown(job).text, web_spark_rate(web, job->job).text);
        web_spark_points(web, job->job, tool->out);
        fputs("\"", tool->out);
    }
    fputs("}", tool->out);
    return TOOL_DONE;
}

int web_make_tick(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct muster_error err = {.status = MUSTER_OK};
    bool one = request->job[0] != '\0';
    muster_rows_t *rows = NULL;
    int code =
        web_failed(muster_client_jobs(tool->client, one ? request->job : NULL, &rows, &err), &err);

    if (code == TOOL_DONE)
        code = jobs_tick(web, tool, rows, one);
    muster_rows_destroy(&rows);
    return code;
}

int web_make_ready(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    int code;

    (void)web, (void)request;
    /* A name that no job has: the shortest question. */
    code = web_failed(muster_client_jobs(tool->client, "-", &rows, &err), &err);
    muster_rows_destroy(&rows);
    if (code == TOOL_DONE)
        fputs("ok\n", tool->out);
    return code;
}
