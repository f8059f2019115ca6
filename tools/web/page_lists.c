/* page_lists - tables of ranks, rounds, checkpoints, launches and events, newest first; and the
 * pages that show all of them. */
#include "tools/web/web.h"

#include "schema/status.h"
#include "tools/show/held.h"
#include "tools/written.h"

#include <string.h>

/* False: the table would be empty, and `none` was written instead. */
static bool lists_begin(FILE *out, const char *label, const char *const *titles, size_t count,
                        const char *none)
{
    if (count == 0) {
        html(out, "<p class=\"empty\">%s</p>\n", none);
        return false;
    }
    html(out,
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s, as a table\">"
         "<table><thead><tr>",
         label);
    for (; *titles != NULL; titles++)
        html(out, "<th scope=\"col\" class=\"%s\">%s</th>", **titles == '>' ? "number" : "",
             **titles == '>' ? *titles + 1 : *titles);
    fputs("</tr></thead><tbody>\n", out);
    return true;
}

static void lists_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}

static void lists_number(FILE *out, struct shown shown)
{
    html(out, "<td class=\"number\">%s</td>", strcmp(shown.text, "-") == 0 ? "\u2013" : shown.text);
}

/* --- ranks ------------------------------------------------------------------------------------ */

static void lists_put_rank(struct tool *tool, const struct muster_node_row *node)
{
    enum web_cell cell = web_cell_of(node, tool->now_unix_ms);
    FILE *out = tool->out;

    html(out, "<tr><th scope=\"row\" class=\"number\">%s</th><td>%s</td><td>",
         html_number(node->rank).text, node->host);
    html_state(out, cell == CELL_TRAINING ? "training" : web_cell_words[cell]);
    if (node->stuck_unix_ms != 0)
        html(out, " <span class=\"aside\">%s</span>", render_stuck(node).text);
    else if (strcmp(node->leave_why, "none") != 0)
        html(out, " <span class=\"aside\">%s</span>", node->leave_why);
    else if (cell == CELL_SAVING)
        html(out, " <span class=\"aside\">%s</span>", node->phase);
    fputs("</td>", out);
    lists_number(out, html_number(node->done));
    lists_number(out, html_number(node->lag));
    lists_number(out, render_duration(node->step_p95_ms > 0 ? node->step_p95_ms : -1));
    fputs("<td>", out);
    html_age(tool, node->heard_unix_ms);
    fputs("</td></tr>\n", out);
}

void web_list_ranks(struct tool *tool, const struct muster_node_row *const *nodes, size_t count)
{
    static const char *const titles[] = {">Rank", "Host", "State", ">Step",
                                         ">Lag",  ">p95", "Heard", NULL};

    if (!lists_begin(tool->out, "Ranks", titles, count, "No rank has joined."))
        return;
    for (size_t i = 0; i < count; i++)
        lists_put_rank(tool, nodes[i]);
    lists_end(tool->out);
}

/* --- rounds ----------------------------------------------------------------------------------- */

static const char *lists_reason(const struct muster_round_row *round)
{
    if (strcmp(round->state, "aborted") != 0 && round->reason[0] == '\0')
        return round->plan;
    return round->reason[0] != '\0'
               ? round->reason
               : muster_status_sentence((enum muster_status)round->reason_code);
}

static int64_t lists_between(int64_t from_unix_ms, int64_t to_unix_ms)
{
    return from_unix_ms > 0 && to_unix_ms >= from_unix_ms ? to_unix_ms - from_unix_ms : -1;
}

static void lists_put_round(struct tool *tool, const struct muster_round_row *round)
{
    FILE *out = tool->out;

    html_job_path(out, "<tr><th scope=\"row\" class=\"number\"><a href=\"/jobs/", tool->job,
                  "/rounds/");
    html(out, "%s\">%s</a></th><td>", render_number(round->round).text,
         html_number(round->round).text);
    html_state(out, round->state);
    html(out, "</td><td>%s</td>", round->cause);
    lists_number(out, html_number(round->step));
    fputs("<td>", out);
    html_clock(tool, round->opened_unix_ms);
    fputs("</td>", out);
    lists_number(out, render_duration(lists_between(round->opened_unix_ms, round->ended_unix_ms)));
    html(out, "<td class=\"number\">%s / %s</td><td class=\"wide\">%s</td></tr>\n",
         html_number(round->saved).text, html_number(round->writers).text, lists_reason(round));
}

/* Rows `first` to `end`, counted from the newest. */
void web_list_rounds(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end)
{
    static const char *const titles[] = {">Round", "Outcome", "Cause",  ">Step", "Opened",
                                         ">Took",  ">Saved",  "Reason", NULL};
    size_t count = muster_rows_count(rows);

    if (!lists_begin(tool->out, "Rounds", titles, count,
                     "No round yet: nobody has asked for a save."))
        return;
    for (size_t i = first; i < end; i++)
        lists_put_round(tool, &muster_rows_rounds(rows)[count - 1 - i]);
    lists_end(tool->out);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static void lists_put_held(FILE *out, const struct held *held, size_t row)
{
    char text[320];

    if (!held_by(held, row, 0, text, sizeof text))
        fputs("&ndash;", out);
    for (size_t rank = 0; held_by(held, row, rank, text, sizeof text); rank++)
        html(out, "%s<span class=\"hold\">%s</span>", rank > 0 ? ", " : "", text);
}

static void lists_put_checkpoint(struct tool *tool, const struct held *held, size_t row,
                                 int64_t longest_ms)
{
    const struct muster_checkpoint_row *checkpoint = &held->rows[row];
    struct written written = {.bytes = checkpoint->bytes};
    const char *path = written_place(checkpoint, &written);
    FILE *out = tool->out;

    html_job_path(out, "<tr><th scope=\"row\" class=\"number\"><a href=\"/jobs/", tool->job,
                  "/rounds/");
    html(out, "%s\">%s</a></th><td>", render_number(checkpoint->checkpoint).text,
         html_number(checkpoint->step).text);
    html_state(out, checkpoint->state);
    fputs("</td><td>", out);
    html_age(tool, checkpoint->committed_unix_ms);
    fputs("</td>", out);
    lists_number(out, render_bytes(written.bytes));
    html(out, "<td class=\"number\"><span class=\"with-bar\">%s",
         checkpoint->total_ms < 0 ? "\u2013" : render_duration(checkpoint->total_ms).text);
    if (checkpoint->total_ms >= 0)
        html(out,
             "<svg class=\"bar\" aria-hidden=\"true\"><rect class=\"rail\" width=\"100%%\" "
             "height=\"100%%\"/><rect width=\"%s\" height=\"100%%\"/></svg>",
             html_percent((double)checkpoint->total_ms, (double)longest_ms).text);
    fputs("</span></td>", out);
    lists_number(out, render_duration(checkpoint->blocked_ms));
    fputs("<td class=\"held\">", out);
    lists_put_held(out, held, row);
    html(out, "</td><td class=\"wide\">%s</td><td><code>%s</code></td></tr>\n", checkpoint->metrics,
         path);
}

void web_list_checkpoints(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end)
{
    static const char *const titles[] = {">Step",    "State",   "Committed", ">Size", ">Took",
                                         ">Blocked", "Held by", "Metrics",   "Path",  NULL};
    const struct muster_checkpoint_row *checkpoint = muster_rows_checkpoints(rows);
    size_t count = muster_rows_count(rows);
    struct held held;
    int64_t longest_ms = 1;

    if (!lists_begin(tool->out, "Checkpoints", titles, count, "No checkpoint yet."))
        return;
    for (size_t i = first; i < end; i++)
        if (checkpoint[count - 1 - i].total_ms > longest_ms)
            longest_ms = checkpoint[count - 1 - i].total_ms;
    held = held_find(tool, rows);
    for (size_t i = first; i < end; i++)
        lists_put_checkpoint(tool, &held, count - 1 - i, longest_ms);
    lists_end(tool->out);
    held_free(&held);
}

/* --- launches --------------------------------------------------------------------------------- */

static const char *lists_launch_end(const struct muster_generation_row *launch)
{
    if (strcmp(launch->state, "ended") != 0)
        return launch->state;
    if (strcmp(launch->end_text, "found on disk") == 0)
        return "imported";
    if (launch->end_status == MUSTER_OK)
        return "finished";
    if (tool_end_is_unheard(launch->end_text, launch->unknown_ranks))
        return "unheard";
    return launch->end_status == MUSTER_PREEMPTED ? "preempted" : "failed";
}

static void lists_put_launch(struct tool *tool, const struct muster_generation_row *launch)
{
    int64_t end_ms = launch->ended_unix_ms > 0 ? launch->ended_unix_ms : tool->now_unix_ms;
    FILE *out = tool->out;

    html(out, "<tr><th scope=\"row\" class=\"number\">%s</th><td>",
         html_number(launch->generation).text);
    html_state(out, lists_launch_end(launch));
    fputs("</td><td>", out);
    html_clock(tool, launch->opened_unix_ms);
    fputs("</td>", out);
    lists_number(out, render_duration(lists_between(launch->opened_unix_ms, end_ms)));
    lists_number(out, html_number(launch->world_size));
    lists_number(out, html_number(launch->resume_checkpoint == 0 ? 0 : launch->resume_step));
    lists_number(out, html_number(launch->step));
    html(out, "<td class=\"wide\">%s</td></tr>\n",
         launch->error_text[0] != '\0' ? launch->error_text : launch->end_text);
}

void web_list_launches(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end)
{
    static const char *const titles[] = {">Generation", "State",    "Opened", ">Lasted", ">Ranks",
                                         ">From step",  ">To step", "End",    NULL};
    size_t count = muster_rows_count(rows);

    if (!lists_begin(tool->out, "Launches", titles, count, "It was not launched yet."))
        return;
    for (size_t i = first; i < end; i++)
        lists_put_launch(tool, &muster_rows_generations(rows)[count - 1 - i]);
    lists_end(tool->out);
}

/* --- events ----------------------------------------------------------------------------------- */

static void lists_put_event(struct tool *tool, const struct muster_event_row *event)
{
    FILE *out = tool->out;

    html(out, "<tr id=\"event-%s\"><th scope=\"row\" class=\"number\">%s</th><td>",
         render_number(event->seq).text, html_number(event->seq).text);
    html_clock(tool, event->unix_ms);
    html(out, "</td><td>%s</td>", event->kind);
    if (event->round > 0) {
        html_job_path(out, "<td class=\"number\"><a href=\"/jobs/", tool->job, "/rounds/");
        html(out, "%s\">%s</a></td>", render_number(event->round).text,
             html_number(event->round).text);
    } else {
        fputs("<td class=\"number\">&ndash;</td>", out);
    }
    lists_number(out, html_number(event->rank));
    lists_number(out, html_number(event->step));
    html(out, "<td class=\"wide\">%s</td></tr>\n", event->text);
}

/* Rows `first` to `end`, counted from the newest, as far as they are there. */
void web_list_events(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end)
{
    static const char *const titles[] = {">No.",  "Time",  "What", ">Round",
                                         ">Rank", ">Step", "Text", NULL};
    size_t count = muster_rows_count(rows);

    if (!lists_begin(tool->out, "Journal", titles, count, "Nothing is recorded."))
        return;
    for (size_t i = first; i < count && i < end; i++)
        lists_put_event(tool, &muster_rows_events(rows)[count - 1 - i]);
    lists_end(tool->out);
}

/* --- pages ------------------------------------------------------------------------------------ */

static void lists_page_head(struct tool *tool, const char *view, const char *title)
{
    char text[320];

    snprintf(text, sizeof text, "%s of %s", title, tool->job);
    html_head(tool, text, tool->job, view);
    web_put_as_of(tool);
    html(tool->out, "<h1>%s</h1>\n", text);
}

typedef enum muster_status lists_ask_fn(muster_client_t *client, const char *job, int64_t number,
                                        muster_rows_t **ret_rows, struct muster_error *ret_error);
typedef void lists_put_fn(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end);

static int lists_page(struct tool *tool, const struct web_request *request, const char *view,
                      const char *title, lists_ask_fn *ask, lists_put_fn *put)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    size_t first, end;
    int code = tool_find_job(tool);

    if (code == TOOL_DONE)
        code = web_failed(ask(tool->client, tool->job, 0, &rows, &err), &err);
    if (code == TOOL_DONE) {
        lists_page_head(tool, view, title);
        html_page_rows(request->page, muster_rows_count(rows), &first, &end);
        put(tool, rows, first, end);
        html_pages(tool->out, request->page, muster_rows_count(rows));
        html_foot(tool);
    }
    muster_rows_destroy(&rows);
    return code;
}

int web_make_rounds(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    return lists_page(tool, request, "rounds", "Rounds", muster_client_rounds, web_list_rounds);
}

int web_make_checkpoints(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    return lists_page(tool, request, "checkpoints", "Checkpoints", muster_client_checkpoints,
                      web_list_checkpoints);
}

int web_make_launches(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    return lists_page(tool, request, "launches", "Launches", muster_client_generations,
                      web_list_launches);
}

static void lists_put_nodes(struct tool *tool, const muster_rows_t *rows, size_t first, size_t end)
{
    const struct muster_node_row *nodes[WEB_PAGE];
    size_t count = 0;

    for (size_t i = first; i < end && count < WEB_PAGE; i++)
        nodes[count++] = &muster_rows_nodes(rows)[i];
    web_list_ranks(tool, nodes, count);
}

int web_make_ranks(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    return lists_page(tool, request, "ranks", "Ranks", muster_client_nodes, lists_put_nodes);
}

int web_make_journal(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL, *job = NULL;
    int64_t behind = request->page * WEB_PAGE, seq;
    int code = tool_find_job(tool);

    (void)web;
    if (code == TOOL_DONE)
        code = tool_get_job(tool, tool->job, &job);
    if (code != TOOL_DONE)
        return code;
    seq = muster_rows_jobs(job)[0].seq;
    muster_rows_destroy(&job);
    code = web_failed(muster_client_events(tool->client, tool->job, seq > behind ? seq - behind : 0,
                                           NULL, &rows, &err),
                      &err);
    if (code == TOOL_DONE) {
        lists_page_head(tool, "journal", "Journal");
        web_list_events(tool, rows, (size_t)(behind - WEB_PAGE), (size_t)behind);
        html_pages(tool->out, request->page, (size_t)seq);
        html_foot(tool);
    }
    muster_rows_destroy(&rows);
    return code;
}
