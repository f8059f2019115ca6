/* cmd_status - all jobs in a table, or one job in a few lines. */
#include "tools/render.h"
#include "tools/tool.h"

#include <inttypes.h>
#include <string.h>

/* Steps that count towards the result, of all that were computed. */
static struct shown goodput(const struct muster_job_row *job)
{
    struct shown shown = {"-"};

    if (job->steps_executed > 0 && job->step <= job->steps_executed)
        snprintf(shown.text, sizeof shown.text, "%.1f %%",
                 100.0 * (double)job->step / (double)job->steps_executed);
    return shown;
}

static struct shown open_round(const struct muster_job_row *job)
{
    struct shown shown = {"-"};

    if (job->open_round != 0)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " %s", job->open_round,
                 job->open_round_state);
    return shown;
}

static void print_jobs(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const titles[] = {"JOB",         "STATE",      ">SINCE",  ">GEN",
                                         ">NODES",      ">STEP",      "ROUND",   ">NOTICES",
                                         ">CHECKPOINT", ">COMMITTED", ">GOODPUT"};
    const struct muster_job_row *jobs = muster_rows_jobs(rows);
    struct table table;

    table_init(&table, titles, 11);
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_job_row *job = &jobs[i];
        struct shown nodes;

        snprintf(nodes.text, sizeof nodes.text, "%" PRId64 "/%" PRId64, job->nodes_live,
                 job->world_size);
        table_add(&table, job->job);
        table_add(&table, job->state);
        table_add(&table, render_age(job->state_unix_ms, tool->now_unix_ms).text);
        table_add(&table, render_number(job->generation).text);
        table_add(&table, nodes.text);
        table_add(&table, render_number(job->step).text);
        table_add(&table, open_round(job).text);
        table_add(&table, render_count(job->notices_active).text);
        table_add(&table, render_number(job->newest_step).text);
        table_add(&table, render_age(job->newest_unix_ms, tool->now_unix_ms).text);
        table_add(&table, goodput(job).text);
    }
    table_print(&table, tool->out);
    if (muster_rows_count(rows) == 0)
        fprintf(tool->out, "(no job yet)\n");
}

static int all_jobs(struct tool *tool)
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = muster_client_jobs(tool->client, NULL, &rows, &err);
    int code = TOOL_DONE;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (tool_json(tool)) {
        json_t *document = render_document();

        json_object_set_new(document, "jobs", render_rows(rows));
        if (!render_json(document, tool->out, false))
            code = tool_fail(TOOL_NO, "no memory for the answer");
    } else {
        print_jobs(tool, rows);
    }
    muster_rows_destroy(&rows);
    return code;
}

/* --- one job ------------------------------------------------------------------------------------- */

/* Does the open round wait for this member? As open_round_waits counts. */
static bool is_awaited(const struct muster_participant_row *member, const char *round_state)
{
    if (strcmp(round_state, "freezing") == 0)
        return member->reported_ms < 0;
    return member->captured_ms < 0 || (member->writer && member->saved_ms < 0);
}

static void print_open_round(struct tool *tool, const struct muster_job_row *job,
                             const muster_rows_t *members)
{
    const struct muster_participant_row *member = muster_rows_participants(members);
    int shown = 0;

    fprintf(tool->out, "  open round    %" PRId64 " (%s, %s), waits for %" PRId64 " of %zu",
            job->open_round, job->open_round_cause, job->open_round_state, job->open_round_waits,
            muster_rows_count(members));
    for (size_t i = 0; i < muster_rows_count(members); i++) {
        if (!is_awaited(&member[i], job->open_round_state))
            continue;
        if (shown++ == 8) {
            fprintf(tool->out, ", ...");
            break;
        }
        fprintf(tool->out, "%s rank %" PRId64 " (%s)", shown == 1 ? ":" : ",", member[i].rank,
                member[i].host);
    }
    fputc('\n', tool->out);
}

static void print_notices(struct tool *tool, const muster_rows_t *rows)
{
    const struct muster_notice_row *notice = muster_rows_notices(rows);

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        struct shown left = {"an unknown time"};

        if (strcmp(notice[i].state, "active") != 0)
            continue;
        if (notice[i].left_ms >= 0) {
            int64_t left_ms = notice[i].received_unix_ms + notice[i].left_ms - tool->now_unix_ms;

            left = render_duration(left_ms < 0 ? 0 : left_ms);
        }
        fprintf(tool->out, "  notice        %s: rank %" PRId64 " will be ended, %s left (%s)\n",
                notice[i].id, notice[i].rank, left.text, notice[i].source);
    }
}

static void print_job(struct tool *tool, const struct muster_job_row *job,
                      const muster_rows_t *members, const muster_rows_t *notices)
{
    FILE *out = tool->out;

    fprintf(out, "job %s: %s, since %s\n", job->job, job->state,
            render_age(job->state_unix_ms, tool->now_unix_ms).text);
    fprintf(out,
            "  generation    %" PRId64 ", opened %s, %s, %" PRId64 " of %" PRId64 " nodes live\n",
            job->generation, render_age(job->opened_unix_ms, tool->now_unix_ms).text, job->layout,
            job->nodes_live, job->world_size);
    if (job->resume_checkpoint != 0)
        fprintf(out, "  resumed       at step %" PRId64 ", from checkpoint %" PRId64 "\n",
                job->resume_step, job->resume_checkpoint);
    fprintf(out, "  step          %" PRId64 ", goodput %s (%" PRId64 " steps computed)\n",
            job->step, goodput(job).text, job->steps_executed);
    if (job->open_round != 0)
        print_open_round(tool, job, members);
    print_notices(tool, notices);
    if (job->newest_checkpoint != 0)
        fprintf(out, "  checkpoint    step %" PRId64 ", committed %s: %s\n", job->newest_step,
                render_age(job->newest_unix_ms, tool->now_unix_ms).text, job->newest_path);
    else
        fprintf(out, "  checkpoint    none committed yet\n");
    if (job->error_rank >= 0)
        fprintf(out, "  first error   rank %" PRId64 ": %s\n", job->error_rank, job->error_text);
    if (job->end_text[0] != '\0')
        fprintf(out, "  end           %s\n", job->end_text);
}

static int print_job_json(struct tool *tool, const muster_rows_t *job, const muster_rows_t *members,
                          const muster_rows_t *notices)
{
    json_t *document = render_document();

    json_object_set_new(document, "jobs", render_rows(job));
    json_object_set_new(document, "participants", render_rows(members));
    json_object_set_new(document, "notices", render_rows(notices));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

static int one_job(struct tool *tool, const char *name)
{
    muster_rows_t *rows = NULL;
    muster_rows_t *members = NULL;
    muster_rows_t *notices = NULL;
    const struct muster_job_row *job;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int code = tool_get_job(tool, name, &rows);

    if (code != TOOL_DONE)
        return code;
    job = muster_rows_jobs(rows);
    status = muster_client_notices(tool->client, name, NULL, job->generation, &notices, &err);
    if (status == MUSTER_OK) /* round 0 has no members */
        status = muster_client_participants(tool->client, name, job->open_round, &members, &err);
    if (status != MUSTER_OK)
        code = tool_fail_status(status, &err);
    else if (tool_json(tool))
        code = print_job_json(tool, rows, members, notices);
    else
        print_job(tool, job, members, notices);
    muster_rows_destroy(&rows);
    muster_rows_destroy(&members);
    muster_rows_destroy(&notices);
    return code;
}

int cmd_status(struct tool *tool)
{
    const char *name = tool->args_count > 0 ? tool->args[0] : tool->values[OPTION_JOB];

    return name == NULL ? all_jobs(tool) : one_job(tool, name);
}
