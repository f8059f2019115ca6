/* cmd_events - the journal, once or as it grows. */
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define EVENTS_SHOWN 200 /* the newest, unless --since says */
#define FOLLOW_EVERY_MS 500

/* One line an event, of fixed widths, so that following lines up with what was printed before. */
static void events_print_event(struct tool *tool, const struct muster_event_row *event, bool fell)
{
    fprintf(tool->out, "%6" PRId64 "  %-19s  %3" PRId64 "  %-18s %5s %5s %7s%s%s%s\n", event->seq,
            render_stamp(event->unix_ms).text, event->generation, event->kind,
            render_count(event->round).text, render_number(event->rank).text,
            render_number(event->step).text, event->text[0] == '\0' ? "" : "  ",
            render_line(event->text).text, fell ? ": its rank had finished" : "");
}

/* The journal has the notice's id; why it is over, its rank's row has. */
static bool events_fell(struct tool *tool, const struct muster_event_row *event)
{
    muster_rows_t *nodes = NULL;
    bool fell = false;

    if (strcmp(event->kind, "notice cancelled") == 0 &&
        muster_client_nodes(tool->client, tool->job, event->generation, &nodes, NULL) == MUSTER_OK)
        fell = tool_notice_fell(nodes, event);
    muster_rows_destroy(&nodes);
    return fell;
}

static int events_print(struct tool *tool, const muster_rows_t *rows)
{
    bool one_by_one = tool->values[OPTION_FOLLOW] != NULL;
    bool ok = true;

    if (!tool_json(tool)) {
        for (size_t i = 0; i < muster_rows_count(rows); i++)
            events_print_event(tool, &muster_rows_events(rows)[i],
                               events_fell(tool, &muster_rows_events(rows)[i]));
    } else if (one_by_one) {
        for (size_t i = 0; ok && i < muster_rows_count(rows); i++) {
            json_t *document = render_document();

            json_object_set_new(document, "job", json_string(tool->job));
            json_object_set_new(document, "event", render_row(rows, i));
            ok = render_json(document, tool->out, true);
        }
    } else {
        json_t *document = render_document();

        json_object_set_new(document, "job", json_string(tool->job));
        json_object_set_new(document, "events", render_rows(rows));
        ok = render_json(document, tool->out, false);
    }
    return ok ? TOOL_DONE : tool_fail(TOOL_NO, "no memory for the answer");
}

/* The number after which to begin. */
static int events_first_seq(struct tool *tool, int64_t *ret_seq)
{
    muster_rows_t *rows = NULL;
    int64_t newest;
    int code;

    if (tool->values[OPTION_SINCE] != NULL)
        return tool_number(tool->values[OPTION_SINCE], "--since", 0, INT64_MAX, ret_seq);
    code = tool_get_job(tool, tool->job, &rows);
    if (code != TOOL_DONE)
        return code;
    newest = muster_rows_jobs(rows)[0].seq;
    *ret_seq = newest > EVENTS_SHOWN ? newest - EVENTS_SHOWN : 0;
    muster_rows_destroy(&rows);
    return TOOL_DONE;
}

static int events_next(struct tool *tool, int64_t *seq)
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status =
        muster_client_events(tool->client, tool->job, *seq, NULL, &rows, &err);
    size_t count = muster_rows_count(rows);
    int code;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (count > 0)
        *seq = muster_rows_events(rows)[count - 1].seq;
    code = events_print(tool, rows);
    muster_rows_destroy(&rows);
    return code == TOOL_DONE ? tool_flush(tool) : code;
}

/* --follow may be started before the job: if a job is named, it is waited for. */
static int events_await_job(struct tool *tool, const struct timespec *pause)
{
    const char *name = tool->values[OPTION_JOB];
    struct muster_error err = {.status = MUSTER_OK};
    bool said = false;

    if (tool->values[OPTION_FOLLOW] == NULL || name == NULL || name[0] == '\0')
        return TOOL_DONE;
    for (;;) {
        muster_rows_t *rows = NULL;
        enum muster_status status = muster_client_jobs(tool->client, name, &rows, &err);
        size_t count = muster_rows_count(rows);

        muster_rows_destroy(&rows);
        if (status != MUSTER_OK)
            return tool_fail_status(status, &err);
        if (count > 0)
            return TOOL_DONE;
        if (!said)
            tool_fail(TOOL_DONE, "%s knows no job \"%s\" yet: waiting for it", tool->address, name);
        said = true;
        nanosleep(pause, NULL);
    }
}

int cmd_events(struct tool *tool)
{
    const struct timespec pause = {.tv_nsec = FOLLOW_EVERY_MS * 1000000L};
    int64_t seq = 0;
    int code = events_await_job(tool, &pause);
    char title[32];

    if (code == TOOL_DONE)
        code = tool_find_job(tool);
    if (code == TOOL_DONE)
        code = events_first_seq(tool, &seq);
    if (code != TOOL_DONE)
        return code;
    snprintf(title, sizeof title, "TIME, %.20s", render_zone(tool->now_unix_ms).text);
    if (!tool_json(tool))
        fprintf(tool->out, "%6s  %-19s  %3s  %-18s %5s %5s %7s  %s\n", "SEQ", title, "GEN", "KIND",
                "ROUND", "RANK", "STEP", "TEXT");
    code = events_next(tool, &seq);
    while (code == TOOL_DONE && tool->values[OPTION_FOLLOW] != NULL) {
        nanosleep(&pause, NULL);
        code = events_next(tool, &seq);
    }
    return code;
}
