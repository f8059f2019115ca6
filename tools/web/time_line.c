/* time_line - one launch as a picture: when it joined and trained, its rounds and its notices. At
 * most one mark a slot, so that a launch of weeks is drawn as fast as one of minutes; a window of
 * it shows what the slots of the whole hide. */
#include "tools/web/web.h"

#include <inttypes.h>
#include <string.h>

#define LINE_SLOTS 300 /* across, of up to three elements: a page has a thousand at most */
#define LINE_TICKS 4
#define LINE_LEAST_MS 1000 /* of a window; below that the axis has nothing to tell */

struct line {
    int64_t from_ms, to_ms;    /* shown */
    int64_t first_ms, last_ms; /* of the launch */
};

static bool line_is_whole(const struct line *line)
{
    return line->from_ms == line->first_ms && line->to_ms == line->last_ms;
}

/* The marks that it has in the window. False: nothing. */
static bool line_clip(const struct line *line, int64_t *from_ms, int64_t *to_ms)
{
    if (*from_ms < line->from_ms)
        *from_ms = line->from_ms;
    if (*to_ms > line->to_ms)
        *to_ms = line->to_ms;
    return *from_ms <= *to_ms;
}

static struct shown line_at(const struct line *line, int64_t unix_ms)
{
    return html_percent((double)(unix_ms - line->from_ms), (double)(line->to_ms - line->from_ms));
}

static struct shown line_width(const struct line *line, int64_t from_ms, int64_t to_ms)
{
    return html_percent((double)(to_ms - from_ms), (double)(line->to_ms - line->from_ms));
}

static void line_put_span(FILE *out, const struct line *line, const char *kind, int64_t from_ms,
                          int64_t to_ms, const char *title)
{
    const struct shown lasted = render_duration(to_ms - from_ms);

    if (!line_clip(line, &from_ms, &to_ms))
        return;
    html(out,
         "<rect class=\"%s\" x=\"%s\" y=\"26\" width=\"%s\" height=\"20\"><title>%s, %s</title>"
         "</rect>",
         kind, line_at(line, from_ms).text, line_width(line, from_ms, to_ms).text, title,
         lasted.text);
}

/* Which of two marks in one slot is shown. */
static int line_weight(const struct muster_round_row *round)
{
    if (strcmp(round->state, "aborted") == 0)
        return 3;
    return strcmp(round->state, "committed") == 0 || strcmp(round->state, "unchanged") == 0 ? 1 : 2;
}

static const char *line_tone(const struct muster_round_row *round)
{
    static const char *const tones[] = {"line-good", "line-busy", "line-bad"};

    return tones[line_weight(round) - 1];
}

static void line_put_round(struct tool *tool, const struct line *line,
                           const struct muster_round_row *round)
{
    int64_t end_ms = round->ended_unix_ms > 0 ? round->ended_unix_ms : tool->now_unix_ms;
    int64_t from_ms = round->opened_unix_ms, to_ms = end_ms;
    FILE *out = tool->out;

    line_clip(line, &from_ms, &to_ms);
    html_job_path(out, "<a tabindex=\"-1\" href=\"/jobs/", tool->job, "/rounds/");
    html(out,
         "%s\"><rect class=\"mark %s\" x=\"%s\" y=\"22\" width=\"%s\" height=\"28\"><title>Round "
         "%s: %s, step %s, %s</title></rect></a>",
         render_number(round->round).text, line_tone(round), line_at(line, from_ms).text,
         line_width(line, from_ms, to_ms).text, html_number(round->round).text, round->state,
         html_number(round->step).text, render_duration(end_ms - round->opened_unix_ms).text);
}

static void line_put_rounds(struct tool *tool, const struct line *line, const muster_rows_t *rows,
                            int64_t generation)
{
    const struct muster_round_row *round = muster_rows_rounds(rows);
    const struct muster_round_row *slots[LINE_SLOTS] = {NULL};

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        int64_t from_ms = round[i].opened_unix_ms, slot;
        int64_t to_ms = round[i].ended_unix_ms > 0 ? round[i].ended_unix_ms : tool->now_unix_ms;

        if (round[i].generation != generation || from_ms < line->first_ms ||
            !line_clip(line, &from_ms, &to_ms))
            continue;
        slot = (from_ms - line->from_ms) * LINE_SLOTS / (line->to_ms - line->from_ms);
        if (slot >= LINE_SLOTS)
            slot = LINE_SLOTS - 1;
        if (slots[slot] == NULL || line_weight(&round[i]) >= line_weight(slots[slot]))
            slots[slot] = &round[i];
    }
    for (size_t i = 0; i < LINE_SLOTS; i++)
        if (slots[i] != NULL)
            line_put_round(tool, line, slots[i]);
}

static void line_put_notices(FILE *out, const struct line *line, const muster_rows_t *rows,
                             int64_t generation)
{
    const struct muster_notice_row *notice = muster_rows_notices(rows);
    int64_t last_slot = -2;

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        int64_t slot = (notice[i].received_unix_ms - line->from_ms) * LINE_SLOTS /
                       (line->to_ms - line->from_ms);

        if (notice[i].generation != generation || notice[i].received_unix_ms < line->from_ms ||
            slot > LINE_SLOTS || slot / 4 == last_slot / 4)
            continue;
        last_slot = slot;
        html(out,
             "<svg class=\"notice-mark\" x=\"%s\" y=\"4\" overflow=\"visible\"><path d=\"M-6 "
             "0h12l-6 11z\"/><title>Notice %s: rank %s %s, told by %s</title></svg>",
             line_at(line, notice[i].received_unix_ms).text, notice[i].id,
             render_number(notice[i].rank).text, render_fate(notice[i].kind), notice[i].source);
    }
}

/* Of a launch of days the day, else the time of day. */
static struct shown line_label(const struct line *line, int64_t unix_ms)
{
    const char *stamp;
    struct shown full = render_stamp(unix_ms), shown;

    stamp = full.text;
    if (line->to_ms - line->from_ms > 48 * 3600 * 1000LL)
        snprintf(shown.text, sizeof shown.text, "%.5s", stamp + 5);
    else
        snprintf(shown.text, sizeof shown.text, "%.8s", stamp + 11);
    return shown;
}

/* No two marks of one second. */
static void line_put_axis(struct tool *tool, const struct line *line)
{
    int64_t seconds = (line->to_ms - line->from_ms) / 1000;
    int ticks = seconds < 2 * LINE_TICKS ? 1 : LINE_TICKS;

    for (int i = 0; i <= ticks; i++) {
        int64_t at_ms = line->from_ms + (line->to_ms - line->from_ms) * i / ticks;
        const char *anchor = i == 0 ? "start" : (i == ticks ? "end" : "middle");

        html(tool->out,
             "<line x1=\"%s\" x2=\"%s\" y1=\"52\" y2=\"57\"/><text x=\"%s\" y=\"71\" "
             "class=\"%s\" text-anchor=\"%s\">%s</text>",
             line_at(line, at_ms).text, line_at(line, at_ms).text, line_at(line, at_ms).text,
             i % 2 == 1 && i < ticks ? "minor" : "", anchor, line_label(line, at_ms).text);
    }
}

/* A window of the launch, kept inside it. */
static void line_put_link(FILE *out, const struct line *line, int64_t from_ms, int64_t span_ms,
                          const char *key, const char *name)
{
    int64_t whole_ms = line->last_ms - line->first_ms, to_ms;
    char off[40] = "";

    if (span_ms < LINE_LEAST_MS)
        span_ms = LINE_LEAST_MS;
    if (span_ms > whole_ms / 10 * 9)
        span_ms = whole_ms; /* a launch that goes on grew since the window was half of it */
    if (from_ms > line->last_ms - span_ms)
        from_ms = line->last_ms - span_ms;
    if (from_ms < line->first_ms)
        from_ms = line->first_ms;
    to_ms = span_ms < whole_ms ? from_ms + span_ms : line->last_ms;
    if (from_ms == line->from_ms && to_ms == line->to_ms)
        snprintf(off, sizeof off, " aria-disabled=\"true\"");
    fprintf(out, "<a%s aria-keyshortcuts=\"%s\" href=\"?", off, key);
    if (from_ms > line->first_ms || to_ms < line->last_ms)
        fprintf(out, "from=%" PRId64 "&amp;to=%" PRId64, from_ms, to_ms);
    html(out, "#launches\">%s</a>", name);
}

static void line_put_links(FILE *out, const struct line *line)
{
    int64_t span_ms = line->to_ms - line->from_ms;

    fputs("<nav class=\"zoom\" aria-label=\"Zoom of the time line\">", out);
    line_put_link(out, line, line->from_ms + span_ms / 4, span_ms / 2, "+", "Zoom in");
    line_put_link(out, line, line->from_ms - span_ms / 2, span_ms * 2, "-", "Zoom out");
    line_put_link(out, line, line->from_ms - span_ms / 2, span_ms, "ArrowLeft", "Earlier");
    line_put_link(out, line, line->from_ms + span_ms / 2, span_ms, "ArrowRight", "Later");
    line_put_link(out, line, line->first_ms, line->last_ms - line->first_ms, "0", "Whole launch");
    fputs("</nav>", out);
}

static void line_put_caption(FILE *out, const struct line *line, int64_t generation, bool over)
{
    struct shown from = render_stamp(line->from_ms), to = render_stamp(line->to_ms);
    struct shown whole = render_duration(line->last_ms - line->first_ms);

    html(out, "<figcaption>Generation %s: ", html_number(generation).text);
    if (line_is_whole(line))
        html(out, "%s%s", whole.text, over ? "" : " until now");
    else
        html(out, "%s to %s, of %s", from.text,
             strncmp(from.text, to.text, 10) == 0 ? to.text + 11 : to.text, whole.text);
    fputs(". Bars are rounds, triangles notices.</figcaption>", out);
}

static struct line line_of(const struct web_request *request,
                           const struct muster_generation_row *launch, int64_t end_ms)
{
    struct line line = {.first_ms = launch->opened_unix_ms, .last_ms = end_ms};
    int64_t from_ms = request->from_ms, to_ms = request->to_ms;

    if (line.last_ms <= line.first_ms)
        line.last_ms = line.first_ms + 1;
    line.from_ms = line.first_ms;
    line.to_ms = line.last_ms;
    if (line_clip(&line, &from_ms, &to_ms) && to_ms - from_ms >= LINE_LEAST_MS) {
        line.from_ms = from_ms;
        line.to_ms = to_ms;
    } /* else it is a window of another launch */
    return line;
}

void web_time_line(struct tool *tool, const struct web_request *request,
                   const struct muster_generation_row *launch, const muster_rows_t *rounds,
                   const muster_rows_t *notices)
{
    bool over = launch->ended_unix_ms > 0;
    struct line line = line_of(request, launch, over ? launch->ended_unix_ms : tool->now_unix_ms);
    int64_t started_ms = launch->started_unix_ms > 0 ? launch->started_unix_ms : line.last_ms;
    FILE *out = tool->out;

    if (line.first_ms <= 0)
        return; /* imported: nobody knows when */
    fputs("<figure class=\"line\">", out);
    line_put_caption(out, &line, launch->generation, over);
    html(out,
         "<svg role=\"group\" aria-label=\"Time line of generation %s; the tables below have its "
         "rounds\" height=\"76\"",
         html_number(launch->generation).text);
    fprintf(out,
            " data-from=\"%" PRId64 "\" data-to=\"%" PRId64 "\" data-first=\"%" PRId64
            "\" data-last=\"%" PRId64 "\">",
            line.from_ms, line.to_ms, line.first_ms, line.last_ms);
    line_put_span(out, &line, "line-join", line.first_ms, started_ms, "joining");
    line_put_span(out, &line, "line-train", started_ms, line.last_ms, "training");
    line_put_rounds(tool, &line, rounds, launch->generation);
    line_put_notices(out, &line, notices, launch->generation);
    line_put_axis(tool, &line);
    fputs("</svg>", out);
    line_put_links(out, &line);
    fputs("</figure>\n", out);
}
