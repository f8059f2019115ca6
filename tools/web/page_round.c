/* page_round - one round: its story, and where its time went, rank by rank. */
#include "tools/web/web.h"

#include "schema/status.h"

#include <inttypes.h>
#include <stdlib.h>

/* The phases of a rank, in order. */
static const struct {
    const char *name, *kind, *words;
} stages[] = {
    {"Reported", "wf-report", "until it reported its steps"},
    {"At the step", "wf-step", "until it reached the agreed step"},
    {"Captured", "wf-capture", "until it had copied its state"},
    {"Saved", "wf-write", "until its shard was written"},
};
#define STAGES 4

static int64_t round_stage(const struct muster_participant_row *member, int stage)
{
    const int64_t ms[STAGES] = {member->reported_ms, member->at_step_ms, member->captured_ms,
                                member->saved_ms};

    return ms[stage];
}

/* How far a rank came; ranks that never reported are the slowest of all. */
static int64_t round_end_ms(const struct muster_participant_row *member)
{
    if (member->reported_ms < 0)
        return INT64_MAX;
    for (int stage = STAGES - 1; stage > 0; stage--)
        if (round_stage(member, stage) >= 0)
            return round_stage(member, stage);
    return member->reported_ms;
}

static int round_compare(const void *one, const void *other)
{
    const struct muster_participant_row *a = *(const struct muster_participant_row *const *)one;
    const struct muster_participant_row *b = *(const struct muster_participant_row *const *)other;
    int64_t a_ms = round_end_ms(a), b_ms = round_end_ms(b);

    if (a_ms != b_ms)
        return a_ms > b_ms ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Owned; the slowest first. NULL: no memory. */
static const struct muster_participant_row **round_ordered(const muster_rows_t *rows)
{
    size_t count = muster_rows_count(rows);
    const struct muster_participant_row **members = calloc(count + 1, sizeof *members);

    for (size_t i = 0; members != NULL && i < count; i++)
        members[i] = &muster_rows_participants(rows)[i];
    if (members != NULL)
        qsort(members, count, sizeof *members, round_compare);
    return members;
}

/* The time at which the picture ends. */
static int64_t round_span_ms(const struct muster_round_row *round, const muster_rows_t *rows,
                             int64_t now_unix_ms)
{
    int64_t end_ms = round->ended_unix_ms > 0 ? round->ended_unix_ms : now_unix_ms;
    int64_t span_ms = end_ms > round->opened_unix_ms ? end_ms - round->opened_unix_ms : 1;

    for (size_t i = 0; i < muster_rows_count(rows); i++)
        for (int stage = 0; stage < STAGES; stage++)
            if (round_stage(&muster_rows_participants(rows)[i], stage) > span_ms)
                span_ms = round_stage(&muster_rows_participants(rows)[i], stage);
    return span_ms;
}

/* --- summary ---------------------------------------------------------------------------------- */

static void round_put_stage(FILE *out, const muster_rows_t *rows, int stage)
{
    const struct muster_participant_row *member = muster_rows_participants(rows), *last = NULL;
    size_t reached = 0;

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        if (round_stage(&member[i], stage) < 0)
            continue;
        reached++;
        if (last == NULL || round_stage(&member[i], stage) > round_stage(last, stage))
            last = &member[i];
    }
    html(out,
         "<div><dt><span class=\"key %s\" aria-hidden=\"true\"></span>%s</dt><dd>%s<span "
         "class=\"aside under\">%s of %s",
         stages[stage].kind, stages[stage].name,
         last == NULL ? "-" : render_duration(round_stage(last, stage)).text,
         html_number((int64_t)reached).text, html_number((int64_t)muster_rows_count(rows)).text);
    if (last != NULL)
        html(out, ", rank %s last", html_number(last->rank).text);
    fputs("</span></dd></div>\n", out);
}

static void round_put_facts(struct tool *tool, const struct muster_round_row *round,
                            const muster_rows_t *rows)
{
    FILE *out = tool->out;

    html(out, "<div class=\"title\"><h1>Round %s</h1>", html_number(round->round).text);
    html_state(out, round->state);
    fputs("<span class=\"since\">", out);
    html_age(tool, round->ended_unix_ms > 0 ? round->ended_unix_ms : round->opened_unix_ms);
    fputs("</span></div>\n<dl class=\"facts\">\n", out);
    html(out, "<div><dt>Save step</dt><dd>%s</dd></div>\n", html_number(round->step).text);
    html(out,
         "<div><dt>Cause</dt><dd>%s <span class=\"aside under\">attempt %s</span></dd></div>\n",
         round->cause, html_number(round->attempt).text);
    html(out, "<div><dt>Generation</dt><dd>%s</dd></div>\n", html_number(round->generation).text);
    for (int stage = 0; stage < STAGES; stage++)
        round_put_stage(out, rows, stage);
    if (round->deadline_unix_ms > 0)
        html(out, "<div><dt>Left at the commit</dt><dd>%s</dd></div>\n",
             render_duration(round->margin_ms).text);
    fputs("</dl>\n", out);
    if (round->reason[0] != '\0')
        html(out, "<div class=\"notice bad\"><p>%s</p></div>\n", round->reason);
}

/* --- waterfall -------------------------------------------------------------------------------- */

static void round_put_bar(FILE *out, const struct muster_participant_row *member, int64_t span_ms)
{
    int64_t from_ms = 0;

    fputs("<svg class=\"fall\" aria-hidden=\"true\"><rect class=\"rail\" width=\"100%\" "
          "height=\"100%\"/>",
          out);
    for (int stage = 0; stage < STAGES; stage++) {
        int64_t to_ms = round_stage(member, stage);

        if (to_ms < from_ms)
            continue;
        html(out,
             "<rect class=\"%s\" x=\"%s\" width=\"%s\" height=\"100%%\"><title>%s: "
             "%s</title></rect>",
             stages[stage].kind, html_percent((double)from_ms, (double)span_ms).text,
             html_percent((double)(to_ms - from_ms), (double)span_ms).text, stages[stage].words,
             render_duration(to_ms - from_ms).text);
        from_ms = to_ms;
    }
    fputs("</svg>", out);
}

static void round_put_member(struct tool *tool, const struct muster_participant_row *member,
                             int64_t span_ms)
{
    FILE *out = tool->out;

    html(out, "<tr><th scope=\"row\" class=\"number\">%s</th><td>%s</td><td class=\"fall-cell\">",
         html_number(member->rank).text, member->host);
    round_put_bar(out, member, span_ms);
    fputs("</td>", out);
    for (int stage = 0; stage < STAGES; stage++)
        html(out, "<td class=\"number\">%s</td>",
             round_stage(member, stage) < 0 ? "\u2013"
                                            : render_duration(round_stage(member, stage)).text);
    html(out, "<td class=\"wide\">%s</td></tr>\n",
         member->failed[0] != '\0' ? member->failed : (member->writer ? "" : "does not write"));
}

static void round_put_members(struct tool *tool, const struct web_request *request,
                              const struct muster_participant_row **members, size_t count,
                              int64_t span_ms)
{
    FILE *out = tool->out;
    size_t first, end;

    html(out,
         "<section id=\"members\" aria-labelledby=\"members-title\"><h2 id=\"members-title\">Where "
         "the time went</h2>\n<p class=\"lead\">The slowest ranks first; a bar spans %s.</p>\n"
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ranks of the round\">"
         "<table class=\"sticky\"><thead><tr><th scope=\"col\" class=\"number\">Rank</th><th "
         "scope=\"col\">Host</th><th scope=\"col\">Since the round was opened</th>",
         render_duration(span_ms).text);
    for (int stage = 0; stage < STAGES; stage++)
        html(out, "<th scope=\"col\" class=\"number\">%s</th>", stages[stage].name);
    fputs("<th scope=\"col\">Remark</th></tr></thead><tbody>\n", out);
    html_page_rows(request->page, count, &first, &end);
    for (size_t i = first; i < end; i++)
        round_put_member(tool, members[i], span_ms);
    fputs("</tbody></table></div>\n", out);
    html_pages(out, request->page, count);
    fputs("</section>\n", out);
}

static int round_put(struct web *web, struct tool *tool, const struct web_request *request,
                     const struct muster_round_row *round, const muster_rows_t *rows)
{
    const struct muster_participant_row **members = round_ordered(rows);
    char title[320], view[32];

    if (members == NULL)
        return tool_fail(TOOL_NO, "no memory for the round");
    snprintf(view, sizeof view, "round %" PRId64, round->round);
    snprintf(title, sizeof title, "%s of %s", view, tool->job);
    html_head(tool, title, tool->job, view);
    web_put_as_of(tool);
    round_put_facts(tool, round, rows);
    web_put_story(web, tool, round->round, false);
    if (muster_rows_count(rows) > 0)
        round_put_members(tool, request, members, muster_rows_count(rows),
                          round_span_ms(round, rows, tool->now_unix_ms));
    html_foot(tool);
    free(members);
    return TOOL_DONE;
}

int web_make_round(struct web *web, struct tool *tool, const struct web_request *request)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *round = NULL, *members = NULL;
    int code = tool_find_job(tool);

    if (code == TOOL_DONE)
        code = web_failed(
            muster_client_round(tool->client, tool->job, request->number, &round, &err), &err);
    if (code == TOOL_DONE && (request->number == 0 || muster_rows_count(round) == 0))
        code = tool_fail(TOOL_NO, "job %s has no round %" PRId64, tool->job, request->number);
    if (code == TOOL_DONE)
        code = web_failed(
            muster_client_participants(tool->client, tool->job, request->number, &members, &err),
            &err);
    if (code == TOOL_DONE)
        code = round_put(web, tool, request, muster_rows_rounds(round), members);
    muster_rows_destroy(&round);
    muster_rows_destroy(&members);
    return code;
}
