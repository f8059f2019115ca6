/* time_line - one launch as a picture: when it joined and trained, its rounds and its notices. At
 * most one mark a slot, so that a launch of weeks is drawn as fast as one of minutes. */
#include "tools/web/web.h"

#include <inttypes.h>
#include <string.h>

#define LINE_SLOTS 480 /* across; more cannot be told apart */
#define LINE_TICKS 4

struct line {
    int64_t from_ms, to_ms;
};

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
    html(out,
         "<rect class=\"%s\" x=\"%s\" y=\"26\" width=\"%s\" height=\"20\"><title>%s, %s</title>"
         "</rect>",
         kind, line_at(line, from_ms).text, line_width(line, from_ms, to_ms).text, title,
         render_duration(to_ms - from_ms).text);
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
    FILE *out = tool->out;

    html_job_path(out, "<a tabindex=\"-1\" href=\"/jobs/", tool->job, "/rounds/");
    html(out,
         "%s\"><rect class=\"mark %s\" x=\"%s\" y=\"22\" width=\"%s\" height=\"28\"><title>Round "
         "%s: %s, step %s, %s</title></rect></a>",
         render_number(round->round).text, line_tone(round),
         line_at(line, round->opened_unix_ms).text,
         line_width(line, round->opened_unix_ms, end_ms).text, html_number(round->round).text,
         round->state, html_number(round->step).text,
         render_duration(end_ms - round->opened_unix_ms).text);
}

static void line_put_rounds(struct tool *tool, const struct line *line, const muster_rows_t *rows,
                            int64_t generation)
{
    const struct muster_round_row *round = muster_rows_rounds(rows);
    const struct muster_round_row *slots[LINE_SLOTS] = {NULL};

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        int64_t slot;

        if (round[i].generation != generation || round[i].opened_unix_ms < line->from_ms)
            continue;
        slot =
            (round[i].opened_unix_ms - line->from_ms) * LINE_SLOTS / (line->to_ms - line->from_ms);
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

        if (notice[i].generation != generation || slot < 0 || slot / 4 == last_slot / 4)
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

void web_time_line(struct tool *tool, const struct muster_generation_row *launch,
                   const muster_rows_t *rounds, const muster_rows_t *notices)
{
    bool over = launch->ended_unix_ms > 0;
    struct line line = {launch->opened_unix_ms, over ? launch->ended_unix_ms : tool->now_unix_ms};
    int64_t started_ms = launch->started_unix_ms > 0 ? launch->started_unix_ms : line.to_ms;
    FILE *out = tool->out;

    if (line.from_ms <= 0)
        return; /* imported: nobody knows when */
    if (line.to_ms <= line.from_ms)
        line.to_ms = line.from_ms + 1;
    html(out,
         "<figure class=\"line\"><figcaption>Generation %s: %s%s. Bars are rounds, triangles "
         "notices."
         "</figcaption><svg role=\"group\" aria-label=\"Time line of generation %s; the tables "
         "below "
         "have "
         "its rounds\" height=\"76\">",
         html_number(launch->generation).text, render_duration(line.to_ms - line.from_ms).text,
         over ? "" : " until now", html_number(launch->generation).text);
    line_put_span(out, &line, "line-join", line.from_ms, started_ms, "joining");
    line_put_span(out, &line, "line-train", started_ms, line.to_ms, "training");
    line_put_rounds(tool, &line, rounds, launch->generation);
    line_put_notices(out, &line, notices, launch->generation);
    line_put_axis(tool, &line);
    fputs("</svg></figure>\n", out);
}
