/* cmd_show - the verbs that show rows: nodes, rounds, round, checkpoints, latest. */
#include "tools/as_of.h"
#include "tools/render.h"
#include "tools/restored.h"
#include "tools/show/held.h"
#include "tools/show/latest.h"
#include "tools/tool.h"
#include "tools/verbs.h"
#include "tools/written.h"

#include <inttypes.h>
#include <string.h>

#define ROUNDS_SHOWN 200 /* the newest, unless --since says */

/* {"schema_version": 2, "job": ..., KEY: json}; json is dropped. */
static int show_print_json_as(struct tool *tool, const char *key, json_t *json)
{
    json_t *document = render_document();

    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, key, json);
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

/* The rows are freed. */
static int show_print_json_rows(struct tool *tool, const char *key, muster_rows_t *rows)
{
    json_t *json = render_rows(rows);

    muster_rows_destroy(&rows);
    return show_print_json_as(tool, key, json);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* A node's own words: an array, or what else it may have said. */
static json_t *show_sources_of(const char *text)
{
    json_t *sources = json_loads(text, 0, NULL);

    return sources != NULL ? sources : json_array();
}

/* "signal, ec2 degraded (well 40 s ago)": the sources that are asked, and what is wrong with
 * each. */
static void show_say_sources(const char *text, int64_t now_unix_ms, char *ret_line, size_t size)
{
    json_t *sources = show_sources_of(text), *source;
    size_t index, used = 0;

    ret_line[0] = '\0';
    json_array_foreach(sources, index, source)
    {
        const char *name = json_string_value(json_object_get(source, "name"));
        const char *state = json_string_value(json_object_get(source, "state"));
        json_int_t ok_unix_ms = json_integer_value(json_object_get(source, "ok_unix_ms"));
        bool well = state != NULL && strcmp(state, "healthy") == 0;

        if (name == NULL || state == NULL || strcmp(state, "off") == 0 || used >= size)
            continue;
        used += (size_t)snprintf(ret_line + used, size - used, "%s%s%s%s", used > 0 ? ", " : "",
                                 name, well ? "" : " ", well ? "" : state);
        if (!well && ok_unix_ms > 0 && used < size)
            used += (size_t)snprintf(ret_line + used, size - used, " (well %s)",
                                     render_age(ok_unix_ms, now_unix_ms).text);
    }
    json_decref(sources);
}

static int show_print_json_nodes(struct tool *tool, muster_rows_t *rows)
{
    json_t *nodes = render_rows(rows), *node;
    size_t index;

    muster_rows_destroy(&rows);
    json_array_foreach(nodes, index, node)
    {
        const char *text = json_string_value(json_object_get(node, "sources"));

        json_object_set_new(node, "sources", show_sources_of(text != NULL ? text : ""));
    }
    return show_print_json_as(tool, "nodes", nodes);
}

/* "ended" is what a node thinks of its launch; a training thread that has not come out of a step is
 * there. A process that has left does nothing more, whatever it said last. */
static struct shown show_phase_of(const struct muster_node_row *node)
{
    struct shown shown = {""};

    if (node->stuck_unix_ms != 0)
        return render_stuck(node);
    if (strcmp(node->state, "left") == 0)
        snprintf(shown.text, sizeof shown.text, "ended");
    else if (tool_node_is_live(node) && strcmp(node->phase, "ended") == 0 &&
             node->begun > node->done)
        snprintf(shown.text, sizeof shown.text, "in step %" PRId64, node->begun);
    else if (strcmp(node->phase, "none") != 0)
        snprintf(shown.text, sizeof shown.text, "%s", node->phase);
    return shown;
}

static void show_print_nodes(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const titles[] = {">RANK", "ROLE", "HOST", ">PID",   "STATE", "PHASE",
                                         ">STEP", ">LAG", ">P95", ">HEARD", "ROUND", "SOURCES"};
    const struct muster_node_row *nodes = muster_rows_nodes(rows);
    static const char *const spare[] = {"ROUND", "P95", "PID", "SOURCES", "LAG", "ROLE", NULL};
    struct table table;

    table_init(&table, titles, 12);
    table.spare = spare;
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_node_row *node = &nodes[i];
        const char *why = strcmp(node->leave_why, "none") == 0 ? "" : node->leave_why;
        char state[96], sources[512];

        show_say_sources(node->sources, tool->now_unix_ms, sources, sizeof sources);
        snprintf(state, sizeof state, "%s%s%s", node->state, why[0] == '\0' ? "" : ": ", why);
        table_add(&table, render_number(node->rank).text);
        table_add(&table, node->role);
        table_add(&table, node->host);
        table_add(&table, render_number(node->pid).text);
        table_add(&table, state);
        table_add(&table, show_phase_of(node).text);
        table_add(&table, render_number(node->done).text);
        table_add(&table, render_number(node->lag).text);
        table_add(&table, render_duration(node->step_p95_ms).text);
        table_add(&table, render_age(node->heard_unix_ms, tool->now_unix_ms).text);
        table_add(&table, node->acknowledgement);
        table_add(&table, sources);
    }
    table_print(&table, tool->out, tool->width);
}

int cmd_nodes(struct tool *tool)
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int64_t generation = 0;
    int code = tool_find_job(tool);

    if (code == TOOL_DONE && tool->values[OPTION_GENERATION] != NULL)
        code =
            tool_number(tool->values[OPTION_GENERATION], "--generation", 1, INT64_MAX, &generation);
    if (code != TOOL_DONE)
        return code;
    status = muster_client_nodes(tool->client, tool->job, generation, &rows, &err);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (muster_rows_count(rows) == 0 && generation != 0) {
        muster_rows_destroy(&rows);
        return tool_fail(TOOL_NO,
                         "the ranks of generation %" PRId64 " of job %s are not on record: "
                         "there was no such generation, or it ended long ago; `muster status %s` "
                         "shows the newest",
                         generation, tool->job, tool->job);
    }
    if (tool_json(tool))
        return show_print_json_nodes(tool, rows);
    tool_print_as_of(tool);
    show_print_nodes(tool, rows);
    muster_rows_destroy(&rows);
    return TOOL_DONE;
}

/* --- rounds ----------------------------------------------------------------------------------- */

static struct shown show_how_long(const struct muster_round_row *round)
{
    return render_duration(
        round->ended_unix_ms == 0 ? -1 : round->ended_unix_ms - round->opened_unix_ms);
}

static struct shown show_part(int64_t count, int64_t all)
{
    struct shown shown = render_number(count), of = render_number(all);
    size_t length = strlen(shown.text);

    shown.text[length] = '/';
    memcpy(shown.text + length + 1, of.text, strlen(of.text) + 1);
    return shown;
}

static void show_print_rounds(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const titles[] = {">ROUND",  ">GEN",  "CAUSE",   ">TRY",
                                         "STATE",   ">STEP", "REPORTS", "SAVED",
                                         ">OPENED", ">TOOK", ">MARGIN", "REASON"};
    const struct muster_round_row *rounds = muster_rows_rounds(rows);
    static const char *const spare[] = {"REPORTS", "MARGIN", "TRY", "GEN", "TOOK", "SAVED", NULL};
    struct table table;

    table_init(&table, titles, 12);
    table.spare = spare;
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_round_row *round = &rounds[i];

        table_add(&table, render_number(round->round).text);
        table_add(&table, render_number(round->generation).text);
        table_add(&table, round->cause);
        table_add(&table, render_number(round->attempt).text);
        table_add(&table, round->state);
        table_add(&table, render_number(round->step).text);
        /* a step that every rank computes alike needs no report */
        table_add(&table, round->reported == 0 && strcmp(round->cause, "policy") == 0
                              ? "-"
                              : show_part(round->reported, round->members).text);
        table_add(&table, show_part(round->saved, round->writers).text);
        table_add(&table, render_age(round->opened_unix_ms, tool->now_unix_ms).text);
        table_add(&table, show_how_long(round).text);
        table_add(&table, render_duration(round->margin_ms).text);
        table_add(&table, round->reason);
    }
    table_print(&table, tool->out, tool->width);
}

/* A verb that lists rows of a job that was found: all after a number, as a table or as JSON. */
typedef enum muster_status fetch_fn(muster_client_t *client, const char *job, int64_t after,
                                    muster_rows_t **ret_rows, struct muster_error *ret_error);

static int show_rows(struct tool *tool, const char *name, fetch_fn *fetch, int64_t after,
                     void (*print)(struct tool *tool, const muster_rows_t *rows))
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = fetch(tool->client, tool->job, after, &rows, &err);

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (tool_json(tool))
        return show_print_json_rows(tool, name, rows);
    tool_print_as_of(tool);
    print(tool, rows);
    muster_rows_destroy(&rows);
    return TOOL_DONE;
}

/* The number after which to begin. A job may have 100,000 rounds. */
static int show_rounds_after(struct tool *tool, int64_t *ret_after)
{
    muster_rows_t *newest = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int64_t last;

    if (tool->values[OPTION_SINCE] != NULL)
        return tool_number(tool->values[OPTION_SINCE], "--since", 0, INT64_MAX, ret_after);
    status = muster_client_round(tool->client, tool->job, 0, &newest, &err);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    last = muster_rows_count(newest) > 0 ? muster_rows_rounds(newest)->round : 0;
    *ret_after = last > ROUNDS_SHOWN ? last - ROUNDS_SHOWN : 0;
    muster_rows_destroy(&newest);
    return TOOL_DONE;
}

int cmd_rounds(struct tool *tool)
{
    int64_t after = 0;
    int code = tool_find_job(tool);

    if (code == TOOL_DONE)
        code = show_rounds_after(tool, &after);
    if (code == TOOL_DONE)
        code = show_rows(tool, "rounds", muster_client_rounds, after, show_print_rounds);
    if (code == TOOL_DONE && after > 0 && tool->values[OPTION_SINCE] == NULL && !tool_json(tool))
        fprintf(tool->out, "rounds up to %" PRId64 " are not shown: --since 0\n", after);
    return code;
}

/* --- one round -------------------------------------------------------------------------------- */

static struct shown show_since(int64_t unix_ms, int64_t from_unix_ms)
{
    return render_duration(unix_ms == 0 ? -1 : unix_ms - from_unix_ms);
}

static void show_print_round_head(struct tool *tool, const struct muster_round_row *round)
{
    FILE *out = tool->out;

    fprintf(out, "round %" PRId64 " of job %s, generation %" PRId64 ": %s\n", round->round,
            tool->job, round->generation, round->state);
    fprintf(out, "  cause      %s, attempt %" PRId64 "%s\n", round->cause, round->attempt,
            round->aborted_steps ? ", steps broken off" : "");
    fprintf(out, "  save step  %s\n",
            round->step < 0 ? "not agreed" : render_number(round->step).text);
    fprintf(out, "  opened     %s %s (%s)\n", render_stamp(round->opened_unix_ms).text,
            render_zone(round->opened_unix_ms).text,
            render_age(round->opened_unix_ms, tool->now_unix_ms).text);
    fprintf(out, "  agreed     %s, captured %s, ended %s (since it was opened)\n",
            show_since(round->decided_unix_ms, round->opened_unix_ms).text,
            show_since(round->captured_unix_ms, round->opened_unix_ms).text,
            show_since(round->ended_unix_ms, round->opened_unix_ms).text);
    if (round->deadline_unix_ms != 0)
        fprintf(out, "  deadline   %s, left at the commit: %s\n",
                render_stamp(round->deadline_unix_ms).text, render_duration(round->margin_ms).text);
    if (round->culprit_rank >= 0)
        fprintf(out, "  culprit    rank %" PRId64 "\n", round->culprit_rank);
    if (round->reason[0] != '\0')
        fprintf(out, "  reason     %s\n", render_line(round->reason).text);
    fputc('\n', out);
}

static void show_print_members(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const titles[] = {">RANK",     "HOST",     ">BEGUN",    ">DONE",
                                         ">REPORTED", ">AT STEP", ">CAPTURED", ">SAVED",
                                         ">SAVE",     "WRITER",   "FAILED"};
    const struct muster_participant_row *members = muster_rows_participants(rows);
    static const char *const spare[] = {"DONE", "CAPTURED", "AT STEP", "BEGUN", "WRITER", NULL};
    struct table table;

    table_init(&table, titles, 11);
    table.spare = spare;
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_participant_row *member = &members[i];

        table_add(&table, render_number(member->rank).text);
        table_add(&table, member->host);
        table_add(&table, render_number(member->begun).text);
        table_add(&table, render_number(member->done).text);
        table_add(&table, render_duration(member->reported_ms).text);
        table_add(&table, render_duration(member->at_step_ms).text);
        table_add(&table, render_duration(member->captured_ms).text);
        table_add(&table, render_duration(member->saved_ms).text);
        table_add(&table, render_duration(member->saved_ms < 0 ? -1 : member->save_ms).text);
        table_add(&table, member->writer ? "yes" : "no");
        table_add(&table, member->failed);
    }
    table_print(&table, tool->out, tool->width);
}

static int show_round(struct tool *tool, const muster_rows_t *round, const muster_rows_t *members)
{
    json_t *document;

    if (!tool_json(tool)) {
        tool_print_as_of(tool);
        show_print_round_head(tool, muster_rows_rounds(round));
        show_print_members(tool, members);
        return TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, "round", render_row(round, 0));
    json_object_set_new(document, "participants", render_rows(members));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

int cmd_round(struct tool *tool)
{
    muster_rows_t *round = NULL;
    muster_rows_t *members = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int64_t number = 0;
    int code = tool_number(tool->args[0], "a round", 1, INT64_MAX, &number);

    if (code == TOOL_DONE)
        code = tool_find_job(tool);
    if (code != TOOL_DONE)
        return code;
    status = muster_client_round(tool->client, tool->job, number, &round, &err);
    if (status == MUSTER_OK && muster_rows_count(round) > 0)
        status = muster_client_participants(tool->client, tool->job, number, &members, &err);
    if (status != MUSTER_OK)
        code = tool_fail_status(status, &err);
    else if (muster_rows_count(round) == 0)
        code = tool_fail(TOOL_NO,
                         "job %s has no round %" PRId64 ": `muster rounds --job %s` lists "
                         "them",
                         tool->job, number, tool->job);
    else
        code = show_round(tool, round, members);
    muster_rows_destroy(&round);
    muster_rows_destroy(&members);
    return code;
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static struct shown show_position(const struct muster_checkpoint_row *checkpoint)
{
    struct shown shown = {"-"};

    if (checkpoint->epoch >= 0 && checkpoint->step_in_epoch >= 0)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 "+%" PRId64, checkpoint->epoch,
                 checkpoint->step_in_epoch);
    else if (checkpoint->epoch >= 0)
        snprintf(shown.text, sizeof shown.text, "%" PRId64, checkpoint->epoch);
    return shown;
}

static struct shown show_rate(const struct muster_checkpoint_row *checkpoint)
{
    struct shown shown = {"-"};

    if (checkpoint->bytes_per_s >= 0)
        snprintf(shown.text, sizeof shown.text, "%.20s/s",
                 render_bytes(checkpoint->bytes_per_s).text);
    return shown;
}

/* A checkpoint that a program wrote by itself: muster's own path holds only a pointer to it. */
static void show_add_written(struct table *table, const struct muster_checkpoint_row *checkpoint)
{
    struct written written;

    if (!written_find(checkpoint->custom, &written))
        return;
    table_add(table, render_number(checkpoint->checkpoint).text);
    table_add(table, render_bytes(written.bytes).text);
    table_add(table, written.path);
}

static void show_print_checkpoints(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const written_titles[] = {">CHECKPOINT", ">SIZE", "WRITTEN BY THE PROGRAM"};
    static const char *const titles[] = {
        ">CHECKPOINT", ">STEP", "EPOCH",  "STATE",   "CAUSE",      ">SIZE", ">SAVE",
        ">BLOCKED",    ">RATE", "SHARDS", "HELD BY", ">COMMITTED", "PATH",  "METRICS"};
    const struct muster_checkpoint_row *checkpoints = muster_rows_checkpoints(rows);
    static const char *const spare[] = {"RATE",  "BLOCKED", "EPOCH", "METRICS", "SHARDS",
                                        "CAUSE", "HELD BY", "SAVE",  "SIZE",    NULL};
    struct held held = held_find(tool, rows);
    struct table table, written;
    char holders[1024];
    size_t hidden = 0;

    table_init(&written, written_titles, 3);
    table_init(&table, titles, 14);
    table.spare = spare;
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_checkpoint_row *checkpoint = &checkpoints[i];

        if (tool->values[OPTION_ALL] == NULL && strcmp(checkpoint->state, "deleted") == 0) {
            hidden++;
            continue;
        }
        table_add(&table, render_number(checkpoint->checkpoint).text);
        table_add(&table, render_number(checkpoint->step).text);
        table_add(&table, show_position(checkpoint).text);
        table_add(&table, checkpoint->state);
        table_add(&table, checkpoint->cause);
        table_add(&table, render_bytes(checkpoint->bytes).text);
        table_add(&table, render_duration(checkpoint->save_ms).text);
        table_add(&table, render_duration(checkpoint->blocked_ms).text);
        table_add(&table, show_rate(checkpoint).text);
        table_add(&table, show_part(checkpoint->shards, checkpoint->shards_required).text);
        held_text(&held, i, holders, sizeof holders);
        table_add(&table, holders);
        table_add(&table, render_age(checkpoint->committed_unix_ms, tool->now_unix_ms).text);
        table_add(&table, checkpoint->path);
        table_add(&table, checkpoint->metrics);
        show_add_written(&written, checkpoint);
    }
    held_free(&held);
    table_print(&table, tool->out, tool->width);
    if (written.cells_count > 0) {
        fputs("\n", tool->out);
        table_print(&written, tool->out, tool->width);
    }
    if (hidden > 0)
        fprintf(tool->out, "%zu deleted one%s not shown: --all\n", hidden,
                hidden == 1 ? " is" : "s are");
}

static json_t *show_checkpoints_json(struct tool *tool, const muster_rows_t *rows)
{
    json_t *array = render_checkpoints(rows);
    struct held held = held_find(tool, rows);

    for (size_t i = 0; i < json_array_size(array); i++)
        json_object_set_new(json_array_get(array, i), "held_by", held_json(&held, i));
    held_free(&held);
    return array;
}

int cmd_checkpoints(struct tool *tool)
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    json_t *checkpoints;
    int code = tool_find_job(tool);

    if (code != TOOL_DONE)
        return code;
    if (!tool_json(tool))
        return show_rows(tool, "checkpoints", muster_client_checkpoints, 0, show_print_checkpoints);
    status = muster_client_checkpoints(tool->client, tool->job, 0, &rows, &err);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    checkpoints = show_checkpoints_json(tool, rows);
    muster_rows_destroy(&rows);
    return show_print_json_as(tool, "checkpoints", checkpoints);
}

/* "job X has finished and ...", of one that may have deleted its checkpoints itself. *ret_code: if
 * it has. */
static bool show_finished_without(struct tool *tool, int *ret_code)
{
    muster_rows_t *rows = NULL;
    const struct muster_job_row *job;
    bool finished;

    if (muster_client_jobs(tool->client, tool->job, &rows, NULL) != MUSTER_OK)
        return false;
    job = muster_rows_jobs(rows);
    finished = job != NULL && strcmp(job->state, "ended") == 0 && job->end_status == MUSTER_OK;
    muster_rows_destroy(&rows);
    if (finished)
        *ret_code = tool_fail(TOOL_NO,
                              "job %s has finished, and has no committed checkpoint: `muster "
                              "checkpoints --job %s` shows what became of those that it had",
                              tool->job, tool->job);
    return finished;
}

/* No checkpoint is on record; a launch that could not restore says that there are others. */
static int show_no_latest(struct tool *tool)
{
    muster_rows_t *rows = NULL;
    const struct muster_generation_row *failed;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = muster_client_generations(tool->client, tool->job, 0, &rows, &err);
    int code;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    failed = restored_in_the_way(rows, muster_rows_count(rows));
    if (failed != NULL)
        code = tool_fail(TOOL_NO,
                         "job %s has no committed checkpoint on record, and its generation %" PRId64
                         " could not restore: %s",
                         tool->job, failed->generation, restored_text(failed));
    else if (!show_finished_without(tool, &code))
        code = tool_fail(TOOL_NO,
                         "job %s has no committed checkpoint, so it starts from the beginning: "
                         "`muster why --job %s` tells why, `muster save --job %s` makes one",
                         tool->job, tool->job, tool->job);
    muster_rows_destroy(&rows);
    return code;
}

/* The one that the job resumes from, and that nobody can read yet. */
static int show_unfinished(const struct latest *latest)
{
    const struct muster_checkpoint_row *newest = latest->newest;

    return tool_fail(latest->whole != NULL ? TOOL_DONE : TOOL_NO,
                     "checkpoint %" PRId64 " (step %" PRId64 ") is committed, but its writer left "
                     "before its directory had its final name: the job's next launch gives it that "
                     "and resumes from it; until then its shards are in %s",
                     newest->checkpoint, newest->step, newest->path);
}

/* Printed on stderr, because scripts read step and path from stdout. */
static void show_say_written(const struct muster_checkpoint_row *row)
{
    struct written written;

    if (written_find(row->custom, &written))
        tool_fail(TOOL_DONE,
                  "checkpoint %" PRId64 " (step %" PRId64 ") only points to what the program wrote "
                  "by itself, %s in %s",
                  row->checkpoint, row->step, render_bytes(written.bytes).text, written.path);
}

static json_t *show_latest_json(const struct latest *latest,
                                const struct muster_checkpoint_row *row)
{
    json_t *object;

    if (row == NULL)
        return json_null();
    object = render_checkpoint(latest->rows, (size_t)(row - muster_rows_checkpoints(latest->rows)));
    if (row == latest->whole) {
        json_object_set_new(object, "path", json_string(latest->path));
        json_object_set_new(object, "in_place", json_true());
    }
    return object;
}

int cmd_latest(struct tool *tool)
{
    struct latest latest;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    json_t *document;
    int code = tool_find_job(tool);

    if (code != TOOL_DONE)
        return code;
    status = latest_find(tool->client, tool->job, &latest, &err);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (latest.newest == NULL)
        code = show_no_latest(tool);
    else if (latest.newest != latest.whole)
        code = show_unfinished(&latest);
    if (tool_json(tool)) {
        document = render_document();
        json_object_set_new(document, "job", json_string(tool->job));
        json_object_set_new(document, "checkpoint", show_latest_json(&latest, latest.whole));
        json_object_set_new(
            document, "unfinished",
            show_latest_json(&latest, latest.newest != latest.whole ? latest.newest : NULL));
        if (!render_json(document, tool->out, false))
            code = tool_fail(TOOL_NO, "no memory for the answer");
    } else if (latest.whole != NULL) {
        fprintf(tool->out, "%" PRId64 " %s\n", latest.whole->step, latest.path);
        show_say_written(latest.whole);
    }
    muster_rows_destroy(&latest.rows);
    return code;
}
