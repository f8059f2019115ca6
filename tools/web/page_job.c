/* page_job - one job: the story first, then the ranks, the launches, the saves and the journal. */
#include "tools/show/status.h"
#include "tools/verbs.h"
#include "tools/web/web.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define JOB_WORST 8 /* ranks in the table beside the grid */
/* In a larger job the story and the table of ranks come after the rest of the page. */
#define JOB_AT_ONCE 1024

/* The contents of the page; rows owned. */
struct job_view {
    const struct muster_job_row *job;
    muster_rows_t *jobs, *nodes, *rounds, *checkpoints, *notices, *launches, *events;
    struct web_world world;
};

static void job_free(struct job_view *view)
{
    web_world_free(&view->world);
    muster_rows_destroy(&view->jobs);
    muster_rows_destroy(&view->nodes);
    muster_rows_destroy(&view->rounds);
    muster_rows_destroy(&view->checkpoints);
    muster_rows_destroy(&view->notices);
    muster_rows_destroy(&view->launches);
    muster_rows_destroy(&view->events);
}

static int job_gather(struct tool *tool, struct job_view *view)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_client_t *client = tool->client;
    int code = tool_get_job(tool, tool->values[OPTION_JOB], &view->jobs);
    enum muster_status status = MUSTER_OK;

    if (code == TOOL_DONE)
        code = tool_find_job(tool);
    if (code != TOOL_DONE)
        return code;
    view->job = muster_rows_jobs(view->jobs);
    if (view->job->world_size <= JOB_AT_ONCE)
        status = muster_client_nodes(client, tool->job, 0, &view->nodes, &err);
    if (status == MUSTER_OK)
        status = muster_client_rounds(client, tool->job, 0, &view->rounds, &err);
    if (status == MUSTER_OK)
        status = muster_client_checkpoints(client, tool->job, 0, &view->checkpoints, &err);
    if (status == MUSTER_OK)
        status = muster_client_notices(client, tool->job, NULL, 0, &view->notices, &err);
    if (status == MUSTER_OK)
        status = muster_client_generations(client, tool->job, 0, &view->launches, &err);
    if (status == MUSTER_OK)
        status = muster_client_events(client, tool->job,
                                      view->job->seq > WEB_ROWS ? view->job->seq - WEB_ROWS : 0,
                                      NULL, &view->events, &err);
    code = web_failed(status, &err);
    return code != TOOL_DONE ? code
                             : web_world_find(view->nodes, view->job->world_size, tool->now_unix_ms,
                                              &view->world);
}

/* --- facts ------------------------------------------------------------------------------------ */

static void job_put_fact(FILE *out, const char *name, const char *fact, const char *value)
{
    html(out, "<div><dt>%s</dt><dd", name);
    if (fact != NULL)
        html(out, " data-fact=\"%s\"", fact);
    html(out, ">%s</dd></div>\n", value);
}

static void job_put_next(struct tool *tool, const struct muster_job_row *job)
{
    FILE *out = tool->out;

    if (job->open_round != 0) {
        html_job_path(out, "<div><dt>Save under way</dt><dd><a href=\"/jobs/", job->job,
                      "/rounds/");
        html(out, "%s\">round %s</a> ", render_number(job->open_round).text,
             render_number(job->open_round).text);
        html_state(out, job->open_round_state);
        if (job->open_round_waits > 0) /* a freeze tells of them once it lasts */
            html(out, " <span class=\"aside\">waits for %s</span>",
                 html_number(job->open_round_waits).text);
        html(out, "</dd></div>\n");
    } else if (job->freeze_unix_ms != 0) {
        fputs("<div><dt>Next planned freeze</dt><dd>", out);
        html_until(tool, job->freeze_unix_ms);
        fputs("</dd></div>\n", out);
    }
}

static void job_put_risk(FILE *out, const struct muster_job_row *job)
{
    if (strcmp(job->state, "ended") != 0 && status_unsaved(job) >= 0)
        job_put_fact(out, "Steps since", "since", html_number(status_unsaved(job)).text);
}

static void job_put_facts(struct web *web, struct tool *tool, const struct muster_job_row *job)
{
    FILE *out = tool->out;

    html(out, "<div class=\"title\"><h1>%s</h1>", job->job);
    html_state(out, status_outcome(job));
    fputs("<span class=\"since\">", out);
    html_age(tool, job->state_unix_ms);
    fputs("</span>", out);
    if (web->secret[0] != '\0') /* the script fills it, in a tab that may give orders */
        fputs("<div id=\"orders\" data-keep></div>", out);
    fputs("</div>\n", out);
    if (web->secret[0] != '\0')
        fputs("<div id=\"said\" class=\"notice\" role=\"status\" data-keep hidden></div>\n", out);
    fputs("<dl class=\"facts\">\n", out);
    job_put_fact(out, "Step", "step", html_number(status_step(job, job->step)).text);
    if (strcmp(job->state, "ended") != 0) {
        web_spark_note(web, job, tool->now_unix_ms);
        html(
            out,
            "<div><dt>Steps a second</dt><dd class=\"with-bar\"><span data-fact=\"rate\">%s</span>",
            web_spark_rate(web, job->job).text);
        web_spark_put(web, job->job, out);
        fputs("</dd></div>\n", out);
    }
    html(out, "<div><dt>Ranks</dt><dd><span data-fact=\"live\">%s</span> of %s</dd></div>\n",
         html_number(job->nodes_live).text, html_number(job->world_size).text);
    job_put_fact(out, "Goodput", "goodput", status_goodput_shown(job).text);
    fputs("<div><dt>Newest checkpoint</dt><dd>", out);
    if (job->newest_checkpoint == 0) {
        fputs("none yet", out);
    } else {
        html(out, "step %s <span class=\"aside\">",
             html_number(status_step(job, job->newest_step)).text);
        html_age(tool, job->newest_unix_ms);
        fputs("</span>", out);
    }
    fputs("</dd></div>\n", out);
    job_put_risk(out, job);
    job_put_fact(out, "Generation", NULL, html_number(job->generation).text);
    job_put_next(tool, job);
    fputs("</dl>\n", out);
}

/* Notices that stand. */
static void job_put_notices(struct tool *tool, const struct job_view *view)
{
    const struct muster_notice_row *notice = muster_rows_notices(view->notices);
    FILE *out = tool->out;
    size_t shown = 0;

    for (size_t i = 0; i < muster_rows_count(view->notices); i++) {
        if (strcmp(notice[i].state, "active") != 0 || strcmp(view->job->state, "ended") == 0 ||
            notice[i].generation != view->job->generation || shown++ >= 4)
            continue;
        html(out, "<div class=\"notice busy\"><p>Rank %s (%s) %s, told by %s ",
             render_number(notice[i].rank).text, notice[i].host, render_fate(notice[i].kind),
             notice[i].source);
        html_age(tool, notice[i].received_unix_ms);
        if (notice[i].left_ms >= 0)
            html(out, " with %s left", render_duration(notice[i].left_ms).text);
        html(out, "%s%s</p></div>\n", notice[i].text[0] == '\0' ? "." : ": ", notice[i].text);
    }
    if (shown > 4)
        html(out, "<p class=\"shown\">4 of %s standing notices shown; the journal has all</p>\n",
             html_number((int64_t)shown).text);
}

/* --- story ------------------------------------------------------------------------------------ */

static json_t *job_load_story(struct tool *tool, int64_t round)
{
    struct tool inner = *tool;
    char *text = NULL, number[24];
    size_t size = 0;
    json_t *story = NULL;

    inner.out = open_memstream(&text, &size);
    if (inner.out == NULL)
        return NULL;
    inner.values[OPTION_JSON] = "";
    if (round > 0) {
        snprintf(number, sizeof number, "%" PRId64, round);
        inner.args[0] = "round";
        inner.args[1] = number;
        inner.args_count = 2;
    }
    if (cmd_why(&inner) == TOOL_DONE && fflush(inner.out) == 0)
        story = json_loads(text, 0, NULL);
    fclose(inner.out);
    free(text);
    return story;
}

/* A sentence of the story; text between two ` is a command to type. */
static void job_put_line(FILE *out, const char *class, const char *line)
{
    bool code = false;

    fprintf(out, "<p class=\"%s\">", class);
    while (line != NULL && *line != '\0') {
        size_t length = strcspn(line, "`");
        char part[1024];

        snprintf(part, sizeof part, "%.*s", (int)length, line);
        html_escaped(out, part);
        if (length >= sizeof part)
            length = sizeof part - 1;
        line += length;
        if (*line != '`')
            continue;
        line++;
        if (code || strchr(line, '`') != NULL) {
            fputs(code ? "</code>" : "<code>", out);
            code = !code;
        } else {
            fputc('`', out);
        }
    }
    fputs("</p>\n", out);
}

static void job_put_lines(struct web *web, struct tool *tool, int64_t round)
{
    json_t *document = job_load_story(tool, round);
    const json_t *lines = json_object_get(document, "story");
    FILE *out = tool->out;

    if (lines == NULL) {
        char text[sizeof web->said + 1];

        snprintf(text, sizeof text, "%s.", web->said);
        job_put_line(out, "empty", text);
    } else {
        html(out, "<p class=\"story-head\">%s</p>\n<div class=\"story\">",
             json_string_value(json_array_get(lines, 0)));
        for (size_t i = 1; i < json_array_size(lines); i++)
            job_put_line(out, "said", json_string_value(json_array_get(lines, i)));
        fputs("</div>\n", out);
    }
    web->said[0] = '\0';
    json_decref(document);
}

/* A part of the page that the page asks for later; without a script a link leads there. */
static void job_put_later(struct tool *tool, const char *id, const char *where, const char *words)
{
    html(tool->out, "<div id=\"%s\"", id);
    html_job_path(tool->out, " data-part=\"/jobs/", tool->job, where);
    html_job_path(tool->out, "\"><p class=\"empty\"><a href=\"/jobs/", tool->job, where);
    html(tool->out, "\">%s</a></p></div>\n", words);
}

void web_put_story(struct web *web, struct tool *tool, int64_t round, bool later)
{
    FILE *out = tool->out;

    fputs("<section id=\"story\" aria-labelledby=\"story-title\"><h2 id=\"story-title\">What "
          "happened</h2>\n",
          out);
    if (later) {
        job_put_later(tool, "story-part", "/story", "The newest story");
    } else {
        fputs("<div id=\"story-part\">", out);
        job_put_lines(web, tool, round);
        fputs("</div>\n", out);
    }
    fputs("</section>\n", out);
}

int web_make_story(struct web *web, struct tool *tool, const struct web_request *request)
{
    int code = tool_find_job(tool);
    char title[320];

    (void)request;
    if (code != TOOL_DONE)
        return code;
    snprintf(title, sizeof title, "Story of %s", tool->job);
    html_head(tool, title, tool->job, "story");
    html(tool->out, "<h1>%s</h1>\n", title);
    web_put_story(web, tool, 0, false);
    html_foot(tool);
    return TOOL_DONE;
}

/* --- ranks ------------------------------------------------------------------------------------ */

static int64_t job_badness(const struct muster_node_row *node, int64_t now_unix_ms)
{
    static const int64_t weight[CELL_COUNT] = {
        [CELL_LOST] = 6,    [CELL_STUCK] = 5,  [CELL_SILENT] = 4,   [CELL_MISSING] = 0,
        [CELL_JOINING] = 2, [CELL_SAVING] = 1, [CELL_TRAINING] = 1, [CELL_LEFT] = 0,
    };

    return weight[web_cell_of(node, now_unix_ms)] * 1000000000 +
           (node->lag < 999999999 ? node->lag : 999999999);
}

/* Fills the ranks that need a look, the worst first; ties by rank. */
static size_t job_worst(const struct web_world *world, int64_t now_unix_ms,
                        const struct muster_node_row **worst, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < world->count; i++) {
        const struct muster_node_row *node = world->rank[i];
        size_t at;

        if (node == NULL)
            continue;
        at = count;
        while (at > 0 && job_badness(worst[at - 1], now_unix_ms) < job_badness(node, now_unix_ms))
            at--;
        if (at >= max)
            continue;
        memmove(worst + at + 1, worst + at, ((count < max ? count : max - 1) - at) * sizeof *worst);
        worst[at] = node;
        count += count < max;
    }
    return count;
}

static void job_put_legend(FILE *out, const struct web_world *world)
{
    fputs("<ul class=\"legend\" aria-label=\"Ranks by state\">", out);
    for (size_t i = 0; i < CELL_COUNT; i++)
        if (world->cells[i] > 0)
            html(out, "<li><span class=\"key cell-%s\" aria-hidden=\"true\"></span>%s %s</li>",
                 web_cell_letters[i] == '.' ? "m" : (const char[]){web_cell_letters[i], '\0'},
                 html_number((int64_t)world->cells[i]).text, web_cell_words[i]);
    fputs("</ul>\n", out);
}

/* Counts by state, and the ranks that need a look. */
static void job_put_worst(struct tool *tool, const struct web_world *world)
{
    const struct muster_node_row *worst[JOB_WORST + 1];
    size_t count = job_worst(world, tool->now_unix_ms, worst, JOB_WORST);
    FILE *out = tool->out;

    fputs("<div id=\"worst\">", out);
    job_put_legend(out, world);
    web_list_ranks(tool, worst, count);
    html(out, "<p class=\"shown\">%s of %s shown, those that need a look first &middot; ",
         html_number((int64_t)count).text, html_number((int64_t)world->count).text);
    html_job_path(out, "<a href=\"/jobs/", tool->job, "/ranks");
    fputs("\">all ranks</a></p></div>\n", out);
}

static void job_put_ranks(struct tool *tool, const struct web_world *world, bool later)
{
    FILE *out = tool->out;

    fputs("<section id=\"ranks\" aria-labelledby=\"ranks-title\"><div class=\"head\"><h2 "
          "id=\"ranks-title\">Ranks</h2>"
          "<div id=\"heat-mode\" class=\"switch\" role=\"group\" aria-label=\"The grid shows\" "
          "hidden><button type=\"button\" data-mode=\"state\" aria-pressed=\"true\">State</button>"
          "<button type=\"button\" data-mode=\"lag\" aria-pressed=\"false\">Lag</button></div>"
          "</div>\n<div id=\"heat\" data-keep></div>\n",
          out);
    if (later)
        job_put_later(tool, "worst", "/worst", "Ranks that need a look");
    else
        job_put_worst(tool, world);
    fputs("</section>\n", out);
}

int web_make_worst(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *nodes = NULL;
    struct web_world world = {0};
    int code = tool_find_job(tool);
    char title[320];

    (void)web, (void)request;
    if (code == TOOL_DONE)
        code = web_failed(muster_client_nodes(tool->client, tool->job, 0, &nodes, &err), &err);
    if (code == TOOL_DONE)
        code = web_world_find(nodes, 0, tool->now_unix_ms, &world);
    if (code == TOOL_DONE) {
        snprintf(title, sizeof title, "Ranks of %s", tool->job);
        html_head(tool, title, tool->job, "ranks that need a look");
        html(tool->out, "<h1>%s</h1>\n", title);
        job_put_ranks(tool, &world, false);
        html_foot(tool);
    }
    web_world_free(&world);
    muster_rows_destroy(&nodes);
    return code;
}

/* --- the rest --------------------------------------------------------------------------------- */

static void job_put_section(struct tool *tool, const char *id, const char *title)
{
    html(tool->out, "<section id=\"%s\" aria-labelledby=\"%s-title\"><h2 id=\"%s-title\">%s</h2>\n",
         id, id, id, title);
}

static void job_end_section(struct tool *tool, size_t shown, size_t all, const char *where)
{
    FILE *out = tool->out;

    if (all == 0) {
        fputs("</section>\n", out);
        return;
    }
    html(out, "<p class=\"shown\">%s of %s shown", html_number((int64_t)shown).text,
         html_number((int64_t)all).text);
    if (shown < all) {
        html_job_path(out, " &middot; <a href=\"/jobs/", tool->job, where);
        fputs("\">show all</a>", out);
    }
    fputs("</p></section>\n", out);
}

static size_t job_few(size_t count, size_t max)
{
    return count > max ? max : count;
}

static void job_put_launches(struct tool *tool, const struct web_request *request,
                             const struct job_view *view)
{
    size_t count = muster_rows_count(view->launches), few = job_few(count, 8);

    job_put_section(tool, "launches", "Launches");
    if (count > 0)
        web_time_line(tool, request, &muster_rows_generations(view->launches)[count - 1],
                      view->rounds, view->notices);
    web_list_launches(tool, view->launches, 0, few);
    job_end_section(tool, few, count, "/launches");
}

static void job_put_saves(struct tool *tool, const struct job_view *view)
{
    size_t rounds = muster_rows_count(view->rounds),
           checkpoints = muster_rows_count(view->checkpoints);

    job_put_section(tool, "checkpoints", "Checkpoints");
    web_list_checkpoints(tool, view->checkpoints, 0, job_few(checkpoints, 8));
    job_end_section(tool, job_few(checkpoints, 8), checkpoints, "/checkpoints");
    job_put_section(tool, "rounds", "Rounds");
    web_list_rounds(tool, view->rounds, 0, job_few(rounds, 8));
    job_end_section(tool, job_few(rounds, 8), rounds, "/rounds");
}

static void job_put_journal(struct tool *tool, const struct job_view *view)
{
    size_t count = muster_rows_count(view->events);

    job_put_section(tool, "journal", "Journal");
    web_list_events(tool, view->events, 0, WEB_ROWS);
    job_end_section(tool, job_few(count, WEB_ROWS),
                    (size_t)(view->job->seq > (int64_t)count ? view->job->seq : (int64_t)count),
                    "/journal");
}

int web_make_job(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct job_view view = {0};
    int code = job_gather(tool, &view);

    if (code == TOOL_DONE) {
        html_head(tool, tool->job, tool->job, NULL);
        web_put_as_of(tool);
        job_put_facts(web, tool, view.job);
        job_put_notices(tool, &view);
        web_put_story(web, tool, 0, view.job->world_size > JOB_AT_ONCE);
        job_put_ranks(tool, &view.world, view.job->world_size > JOB_AT_ONCE);
        job_put_launches(tool, request, &view);
        job_put_saves(tool, &view);
        job_put_journal(tool, &view);
        html_foot(tool);
    }
    job_free(&view);
    return code;
}
