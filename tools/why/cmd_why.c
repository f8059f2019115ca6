/* cmd_why - chooses a story, gathers its rows, prints it. */
#include "tools/as_of.h"
#include "tools/render.h"
#include "tools/restored.h"
#include "tools/show/task.h"
#include "tools/tool.h"
#include "tools/verbs.h"
#include "tools/why/story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GATHER_MAX 3
#define ROUNDS_FIRST 256 /* that are asked for, times 8 until there are enough: 2^62 at most */
#define ROUNDS_TIMES 8

/* The subject of the story. */
struct subject {
    int64_t round;         /* 0: none */
    const char *notice_id; /* NULL: none */
    int64_t generation;
};

/* --- choosing --------------------------------------------------------------------------------- */

static int why_choose_round(struct tool *tool, int64_t number, struct subject *ret_subject)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    enum muster_status status = muster_client_round(tool->client, tool->job, number, &rows, &err);
    int code = TOOL_DONE;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (muster_rows_count(rows) == 0)
        code = tool_fail(TOOL_NO,
                         "job %s has no round %" PRId64 ": `muster rounds --job %s` lists them",
                         tool->job, number, tool->job);
    else
        *ret_subject = (struct subject){.round = muster_rows_rounds(rows)[0].round,
                                        .generation = muster_rows_rounds(rows)[0].generation};
    muster_rows_destroy(&rows);
    return code;
}

/* An id names one notice of a generation; the newest one is meant. */
static int why_choose_notice(struct tool *tool, const char *id, struct subject *ret_subject)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    enum muster_status status = muster_client_notices(tool->client, tool->job, id, 0, &rows, &err);
    size_t count = muster_rows_count(rows);
    int code = TOOL_DONE;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (count == 0) {
        code = tool_fail(TOOL_NO,
                         "job %s has no notice \"%s\": `muster events --job %s` shows the notices "
                         "that it had",
                         tool->job, id, tool->job);
    } else {
        const struct muster_notice_row *notice = &muster_rows_notices(rows)[count - 1];

        *ret_subject = (struct subject){
            .round = notice->round, .notice_id = id, .generation = notice->generation};
    }
    muster_rows_destroy(&rows);
    return code;
}

static bool why_is_saved(const struct muster_round_row *round)
{
    return strcmp(round->state, "committed") == 0 || strcmp(round->state, "unchanged") == 0;
}

static bool why_is_remarkable(const struct muster_round_row *round)
{
    return round != NULL && (strcmp(round->cause, "policy") != 0 || !why_is_saved(round));
}

/* The newest round that somebody may ask about: one that failed or that was asked for from outside.
 * If all went their ordinary course, the newest. NULL: there is none. */
static const struct muster_round_row *why_newest_remarkable(const muster_rows_t *rounds)
{
    const struct muster_round_row *round = muster_rows_rounds(rounds);
    size_t count = muster_rows_count(rounds);

    for (size_t i = count; i > 0; i--)
        if (why_is_remarkable(&round[i - 1]))
            return &round[i - 1];
    return count == 0 ? NULL : &round[count - 1];
}

/* Rounds of the job up to the newest, back to a remarkable one. A job may have 100,000: the newest
 * are asked for first. */
static enum muster_status why_newest_rounds(struct tool *tool, muster_rows_t **ret_rounds,
                                            struct muster_error *err)
{
    muster_rows_t *newest = NULL;
    enum muster_status status = muster_client_round(tool->client, tool->job, 0, &newest, err);
    int64_t last = muster_rows_count(newest) > 0 ? muster_rows_rounds(newest)->round : 0;
    bool found = false;

    muster_rows_destroy(&newest);
    for (int64_t count = ROUNDS_FIRST; status == MUSTER_OK && !found; count *= ROUNDS_TIMES) {
        muster_rows_destroy(ret_rounds);
        status = muster_client_rounds(tool->client, tool->job, last > count ? last - count : 0,
                                      ret_rounds, err);
        found = last <= count || why_is_remarkable(why_newest_remarkable(*ret_rounds));
    }
    return status;
}

/* Does the story of this round tell, or come after, that event? */
static bool why_covers(const struct muster_round_row *round, const struct muster_event_row *event)
{
    if (round == NULL || event->generation > round->generation)
        return false;
    if (strcmp(round->cause, "policy") == 0 && why_is_saved(round))
        return false;
    return strcmp(round->cause, "termination") == 0 || round->ended_unix_ms == 0 ||
           event->unix_ms <= round->ended_unix_ms;
}

/* A rank that was stuck and went on does not count, nor does one in a launch that ended well. The
 * nodes are those of a launch that runs. */
static bool why_is_failure(const struct muster_event_row *event, const muster_rows_t *nodes,
                           const struct muster_generation_row *generation)
{
    bool stuck = false;

    if (strcmp(event->kind, "stuck") != 0 || event->rank < 0)
        return story_is_failure(event);
    if (strcmp(generation->state, "ended") == 0)
        return generation->end_status != MUSTER_OK;
    for (size_t i = 0; i < muster_rows_count(nodes); i++)
        stuck |= muster_rows_nodes(nodes)[i].rank == event->rank &&
                 muster_rows_nodes(nodes)[i].stuck_unix_ms != 0;
    return stuck;
}

/* Is there a failure in it that the round's story does not tell? */
static enum muster_status why_has_failure(struct tool *tool, const struct muster_round_row *round,
                                          const struct muster_generation_row *generation,
                                          bool *ret_has, struct muster_error *err)
{
    int64_t number = generation->generation;
    muster_rows_t *rows = NULL, *nodes = NULL;
    enum muster_status status =
        muster_client_incidents(tool->client, tool->job, number, &rows, err);

    if (status == MUSTER_OK && strcmp(generation->state, "ended") != 0)
        status = muster_client_nodes(tool->client, tool->job, number, &nodes, err);
    *ret_has = false;
    for (size_t i = 0; status == MUSTER_OK && i < muster_rows_count(rows); i++)
        *ret_has |= why_is_failure(&muster_rows_events(rows)[i], nodes, generation) &&
                    !why_covers(round, &muster_rows_events(rows)[i]);
    muster_rows_destroy(&rows);
    muster_rows_destroy(&nodes);
    return status;
}

/* The newest generation, not older than the round's, that failed without the round's story telling
 * it. */
static enum muster_status why_find_failure(struct tool *tool, const struct muster_round_row *round,
                                           int64_t *ret_generation, struct muster_error *err)
{
    bool routine = round != NULL && strcmp(round->cause, "policy") == 0 && why_is_saved(round);
    int64_t after = round == NULL || routine ? 0 : round->generation - 1;
    muster_rows_t *generations = NULL;
    int64_t found = 0;
    enum muster_status status =
        muster_client_generations(tool->client, tool->job, after, &generations, err);

    for (size_t i = muster_rows_count(generations); status == MUSTER_OK && i > 0 && found == 0;
         i--) {
        const struct muster_generation_row *row = &muster_rows_generations(generations)[i - 1];
        bool has = false;

        status = why_has_failure(tool, round, row, &has, err);
        if (has)
            found = row->generation;
    }
    muster_rows_destroy(&generations);
    if (status == MUSTER_OK)
        *ret_generation = found;
    return status;
}

/* Had that round already saved what the notice asked for before the notice came? */
static bool why_is_served_by(const struct muster_notice_row *notice,
                             const struct muster_round_row *round)
{
    return notice->round == 0 && round->generation == notice->generation &&
           strcmp(round->cause, "termination") == 0 && why_is_saved(round) &&
           round->ended_unix_ms <= notice->received_unix_ms;
}

/* A notice for which nobody leaves is told only if there is no other story. NULL: there is none. */
static const struct muster_notice_row *why_newest_notice(const muster_rows_t *rows, bool any)
{
    const struct muster_notice_row *notice = muster_rows_notices(rows);
    size_t count = muster_rows_count(rows);

    for (size_t i = count; i > 0; i--)
        if (render_ends(notice[i - 1].kind))
            return &notice[i - 1];
    return any && count > 0 ? &notice[count - 1] : NULL;
}

/* The newest story: the newest remarkable round, a failure since, or a later notice that has no
 * round. *ret_notices keeps the notice's id alive. */
static int why_choose_newest(struct tool *tool, struct subject *ret_subject,
                             muster_rows_t **ret_notices)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rounds = NULL;
    const struct muster_round_row *round;
    const struct muster_notice_row *notice;
    enum muster_status status = why_newest_rounds(tool, &rounds, &err);
    int64_t failed = 0;

    round = why_newest_remarkable(rounds);
    if (status == MUSTER_OK)
        status = muster_client_notices(tool->client, tool->job, NULL, 0, ret_notices, &err);
    if (status == MUSTER_OK)
        status = why_find_failure(tool, round, &failed, &err);
    if (status != MUSTER_OK) {
        muster_rows_destroy(&rounds);
        return tool_fail_status(status, &err);
    }
    notice = why_newest_notice(*ret_notices, round == NULL && failed == 0);
    if (notice != NULL && notice->round == 0 && notice->generation >= failed &&
        (round == NULL || !why_is_served_by(notice, round)) &&
        (round == NULL || notice->received_unix_ms > round->opened_unix_ms))
        *ret_subject = (struct subject){.notice_id = notice->id, .generation = notice->generation};
    else if (failed != 0)
        *ret_subject = (struct subject){.generation = failed};
    else if (round != NULL)
        *ret_subject = (struct subject){.round = round->round, .generation = round->generation};
    muster_rows_destroy(&rounds);
    return TOOL_DONE;
}

/* --- gathering -------------------------------------------------------------------------------- */

static enum muster_status why_gather_rounds(struct tool *tool, int64_t number, struct story *story,
                                            struct muster_error *err)
{
    muster_client_t *client = tool->client;
    enum muster_status status =
        muster_client_attempts(client, tool->job, number, &story->rounds, err);
    size_t count = muster_rows_count(story->rounds);

    if (status != MUSTER_OK || count == 0)
        return status;
    story->participants = calloc(count, sizeof *story->participants);
    if (story->participants == NULL) {
        snprintf(err->text, sizeof err->text, "no memory for the story of round %" PRId64, number);
        return MUSTER_E_NOMEM;
    }
    for (size_t i = 0; status == MUSTER_OK && i < count; i++)
        status = muster_client_participants(client, tool->job,
                                            muster_rows_rounds(story->rounds)[i].round,
                                            &story->participants[i], err);
    if (status == MUSTER_OK)
        status = muster_client_checkpoint(client, tool->job,
                                          muster_rows_rounds(story->rounds)[count - 1].round,
                                          &story->checkpoint, err);
    return status;
}

/* A notice without a round: which round had saved before it came? */
static enum muster_status why_gather_served_by(struct tool *tool, struct story *story,
                                               struct muster_error *err)
{
    const struct muster_notice_row *notice = muster_rows_notices(story->notices);
    muster_rows_t *rounds = NULL;
    enum muster_status status = muster_client_rounds(tool->client, tool->job, 0, &rounds, err);

    for (size_t i = 0; i < muster_rows_count(story->notices); i++)
        for (size_t k = 0; k < muster_rows_count(rounds); k++)
            if (strcmp(notice[i].id, story->notice_id) == 0 &&
                why_is_served_by(&notice[i], &muster_rows_rounds(rounds)[k]))
                story->served_by = muster_rows_rounds(rounds)[k].round;
    muster_rows_destroy(&rounds);
    return status;
}

/* A launch before it may tell what a launch that began no step was to restore. */
static enum muster_status why_gather_before(struct tool *tool, struct story *story,
                                            struct muster_error *err)
{
    const struct muster_generation_row *generation = muster_rows_generations(story->generations);

    if (generation == NULL || !restored_nothing_begun(generation))
        return MUSTER_OK;
    return muster_client_generations(tool->client, tool->job, 0, &story->before, err);
}

static enum muster_status why_gather(struct tool *tool, const struct subject *subject,
                                     struct story *story, struct muster_error *err)
{
    muster_client_t *client = tool->client;
    int64_t generation = subject->generation;
    enum muster_status status = MUSTER_OK;

    *story = (struct story){
        .job = tool->job, .now_unix_ms = tool->now_unix_ms, .notice_id = subject->notice_id};
    if (subject->round != 0)
        status = why_gather_rounds(tool, subject->round, story, err);
    if (status == MUSTER_OK)
        status = muster_client_notices(client, tool->job, NULL, generation, &story->notices, err);
    if (status == MUSTER_OK && subject->round == 0 && subject->notice_id != NULL)
        status = why_gather_served_by(tool, story, err);
    if (status == MUSTER_OK)
        status = muster_client_incidents(client, tool->job, generation, &story->incidents, err);
    if (status == MUSTER_OK)
        status =
            muster_client_generations(client, tool->job, generation - 1, &story->generations, err);
    if (status == MUSTER_OK)
        status = why_gather_before(tool, story, err);
    if (status == MUSTER_OK)
        status = muster_client_nodes(client, tool->job, generation, &story->nodes, err);
    if (status == MUSTER_OK)
        status = muster_client_latest(client, tool->job, &story->latest, err);
    if (status == MUSTER_OK)
        status = muster_client_jobs(client, tool->job, &story->job_row, err);
    return status;
}

/* --- printing --------------------------------------------------------------------------------- */

static json_t *why_json_rounds(const struct story *story)
{
    json_t *rounds = render_rows(story->rounds);

    for (size_t i = 0; i < muster_rows_count(story->rounds); i++)
        json_object_set_new(json_array_get(rounds, i), "participants",
                            render_rows(story->participants[i]));
    return rounds;
}

static json_t *why_json_notices(const struct story *story)
{
    json_t *notices = json_array();

    for (size_t i = 0; i < muster_rows_count(story->notices); i++)
        if (story_has_notice(story, &muster_rows_notices(story->notices)[i]))
            json_array_append_new(notices, render_row(story->notices, i));
    return notices;
}

static json_t *why_json_lines(const struct story *story)
{
    json_t *lines = json_array();

    for (size_t i = 0; i < story->lines_count; i++)
        if (story->lines[i][0] != '\0')
            json_array_append_new(lines, json_string(story->lines[i]));
    return lines;
}

static json_t *why_row_or_null(const muster_rows_t *rows, size_t index)
{
    return index < muster_rows_count(rows) ? render_row(rows, index) : json_null();
}

/* Of the notices that stand. */
static json_t *why_json_plan(const struct story *story)
{
    const struct muster_job_row *job = muster_rows_jobs(story->job_row);
    json_t *plan;

    if (job == NULL || job->freeze_unix_ms == 0)
        return json_null();
    plan = json_object();
    json_object_set_new(plan, "freeze_unix_ms", json_integer(job->freeze_unix_ms));
    json_object_set_new(plan, "step_p95_ms", json_integer(job->step_p95_ms));
    json_object_set_new(plan, "save_p95_ms", json_integer(job->save_p95_ms));
    json_object_set_new(plan, "text", json_string(job->plan));
    return plan;
}

static int why_print_story(struct tool *tool, const struct story *story)
{
    json_t *document;

    if (story->broken)
        return tool_fail(TOOL_NO, "no memory for the story");
    if (!tool_json(tool)) {
        tool_print_as_of(tool);
        for (size_t i = 0; i < story->lines_count; i++)
            fprintf(tool->out, "%s\n", story->lines[i]);
        fprintf(tool->out, "\nTimes are %s; those without a date are of %.10s.\n",
                render_zone(story->now_unix_ms).text, render_stamp(story->now_unix_ms).text);
        return TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, "story", why_json_lines(story));
    json_object_set_new(document, "notices", why_json_notices(story));
    json_object_set_new(document, "rounds", why_json_rounds(story));
    json_object_set_new(document, "incidents", render_rows(story->incidents));
    json_object_set_new(document, "stuck", render_stuck_rows(story->nodes));
    json_object_set_new(document, "generation", why_row_or_null(story->generations, 0));
    json_object_set_new(document, "next_generation", why_row_or_null(story->generations, 1));
    json_object_set_new(document, "checkpoint", render_checkpoint(story->checkpoint, 0));
    json_object_set_new(document, "latest", render_checkpoint(story->latest, 0));
    json_object_set_new(document, "plan", why_json_plan(story));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

static enum muster_status why_newest_event(struct tool *tool, int64_t *ret_seq,
                                           struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    enum muster_status status = muster_client_jobs(tool->client, tool->job, &rows, err);

    if (status == MUSTER_OK)
        *ret_seq = muster_rows_count(rows) > 0 ? muster_rows_jobs(rows)[0].seq : 0;
    muster_rows_destroy(&rows);
    return status;
}

/* Several questions, and the job goes on meanwhile: they are asked again if something happened
 * between the first and the last. A job in which something always does is told as it was read. */
static enum muster_status why_gather_moment(struct tool *tool, const struct subject *subject,
                                            struct story *story, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    int64_t before = 0;

    *story = (struct story){0};
    for (int i = 0; status == MUSTER_OK && i < GATHER_MAX; i++) {
        const struct muster_job_row *job;

        story_free(story);
        status = why_newest_event(tool, &before, err);
        if (status == MUSTER_OK)
            status = why_gather(tool, subject, story, err);
        job = muster_rows_jobs(story->job_row);
        if (job == NULL || job->seq == before)
            break;
    }
    return status;
}

static int why_tell(struct tool *tool, const struct subject *subject)
{
    struct muster_error err = {.status = MUSTER_OK};
    struct story story;
    enum muster_status status = why_gather_moment(tool, subject, &story, &err);
    int code;

    if (status != MUSTER_OK) {
        code = tool_fail_status(status, &err);
    } else {
        story_tell(&story);
        code = why_print_story(tool, &story);
    }
    story_free(&story);
    return code;
}

static int why_nothing_to_tell(struct tool *tool)
{
    muster_rows_t *rows = NULL;
    int code = tool_get_job(tool, tool->job, &rows);
    const struct muster_job_row *job = muster_rows_jobs(rows);

    if (code == TOOL_DONE && strcmp(job->state, "ended") == 0 && job->end_status == MUSTER_OK &&
        job->end_text[0] == '\0' && job->started_unix_ms == 0)
        code = tool_fail(TOOL_NO,
                         "job %s ended before it started: its ranks left before all %" PRId64
                         " had joined and restored, so there is no checkpoint of it; `muster nodes "
                         "--job %s` shows how each left",
                         tool->job, job->world_size, tool->job);
    else if (code == TOOL_DONE && strcmp(job->state, "ended") == 0 &&
             job->end_status == MUSTER_OK && job->started_unix_ms > 0)
        code = tool_fail(TOOL_NO,
                         "job %s finished, and nobody asked for a save before: there was no notice "
                         "and no round, so it made no checkpoint; `muster events --job %s` shows "
                         "its journal",
                         tool->job, tool->job);
    else if (code == TOOL_DONE && strcmp(job->state, "ended") == 0)
        code = tool_fail(TOOL_NO,
                         "job %s ended without a notice, a round or a failure of a rank, so there "
                         "is no checkpoint (%.600s): `muster events --job %s` shows its journal",
                         tool->job,
                         job->end_text[0] != '\0'
                             ? job->end_text
                             : muster_status_sentence((enum muster_status)job->end_status),
                         tool->job);
    else if (code == TOOL_DONE && strcmp(job->state, "joining") == 0)
        code =
            tool_fail(TOOL_NO,
                      "job %s has not begun to train: its generation %" PRId64
                      " waits until all %" PRId64 " ranks have joined and restored, and it has "
                      "had neither a notice nor a round. `muster status %s` names who is missing",
                      tool->job, job->generation, job->world_size, tool->job);
    else if (code == TOOL_DONE)
        code = tool_fail(TOOL_NO,
                         "job %s has had neither a notice nor a round, so there is no checkpoint: "
                         "`muster save --job %s` makes one%s",
                         tool->job, tool->job,
                         tool_broker_is_dead(tool) ? ", once musterd runs again" : "");
    muster_rows_destroy(&rows);
    return code;
}

int cmd_why(struct tool *tool)
{
    struct subject subject = {0};
    muster_rows_t *notices = NULL;
    int64_t number = 0;
    int code = TOOL_DONE;

    if (tool->args_count == 2 && strcmp(tool->args[0], "task") == 0) {
        code = tool_number(tool->args[1], "a task", 1, ((int64_t)1 << 40) - 1, &number);
        return code == TOOL_DONE ? cmd_why_task(tool, number) : code;
    }
    if (tool->args_count == 2 && strcmp(tool->args[0], "round") == 0)
        code = tool_number(tool->args[1], "a round", 1, INT64_MAX, &number);
    else if (tool->args_count != 0 &&
             (tool->args_count != 2 || strcmp(tool->args[0], "notice") != 0))
        code = tool_fail(TOOL_USAGE, "say which story: `muster why`, `muster why round N`, `muster "
                                     "why task N` or `muster why notice ID`");
    if (code == TOOL_DONE)
        code = tool_find_job(tool);
    if (code != TOOL_DONE)
        return code;
    if (tool->args_count == 0)
        code = why_choose_newest(tool, &subject, &notices);
    else if (number > 0)
        code = why_choose_round(tool, number, &subject);
    else
        code = why_choose_notice(tool, tool->args[1], &subject);
    if (code == TOOL_DONE && subject.generation == 0)
        code = why_nothing_to_tell(tool);
    if (code == TOOL_DONE)
        code = why_tell(tool, &subject);
    muster_rows_destroy(&notices);
    return code;
}
