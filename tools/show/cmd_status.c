/* cmd_status - all jobs in a table, or one job in a few lines. */
#include "tools/show/status.h"

#include "tools/as_of.h"
#include "tools/paint.h"
#include "tools/restored.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include "schema/error.h"
#include "schema/limits.h"
#include "schema/paths.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENDED_SHOWN 5 /* jobs in the list, without --all */

static bool status_is_ended(const struct muster_job_row *job)
{
    return strcmp(job->state, "ended") == 0;
}

const char *status_outcome(const struct muster_job_row *job)
{
    if (job->generation == 0 && job->state[0] == '\0')
        return "not launched"; /* it has a journal: tasks that make no progress are in it */
    if (strcmp(job->state, "ended") != 0)
        return job->state;
    if (strcmp(job->end_text, "found on disk") == 0)
        return "imported"; /* nobody knows how it ended */
    if (job->end_status == 0)
        return job->started_unix_ms > 0 ? "finished" : "ended, never started";
    if (job->end_status == MUSTER_E_NOT_SAVED)
        return "preempted, not saved";
    if (tool_end_is_unheard(job->end_text, job->unknown_ranks))
        return "unheard"; /* it may have finished */
    return job->end_status == MUSTER_PREEMPTED ? "preempted" : "failed";
}

int64_t status_step(const struct muster_job_row *job, int64_t step)
{
    return step < 0 ? step : step + paths_step_offset(job->newest_path, job->newest_step);
}

int64_t status_unsaved(const struct muster_job_row *job)
{
    return job->step - (job->newest_checkpoint == 0 ? 0 : job->newest_step);
}

double status_goodput(const struct muster_job_row *job)
{
    int64_t counted = job->step;

    /* Of a launch that did not finish only what was saved is left. */
    if (job->end_status != MUSTER_OK && job->newest_step < counted)
        counted = job->newest_step < 0 ? 0 : job->newest_step;
    if (job->steps_executed <= 0 || counted > job->steps_executed)
        return -1;
    return (double)counted / (double)job->steps_executed;
}

struct shown status_goodput_shown(const struct muster_job_row *job)
{
    struct shown shown = {"-"};
    double part = status_goodput(job);

    if (part >= 0)
        snprintf(shown.text, sizeof shown.text, "%s%.1f %%", job->unknown_ranks > 0 ? "<= " : "",
                 100.0 * part);
    return shown;
}

static struct shown status_open_round(const struct muster_job_row *job)
{
    struct shown shown = {"-"};

    if (job->open_round != 0)
        snprintf(shown.text, sizeof shown.text, "%" PRId64 " %s", job->open_round,
                 job->open_round_state);
    return shown;
}

static void status_add_job(struct table *table, const struct muster_job_row *job,
                           int64_t now_unix_ms)
{
    struct shown nodes;

    snprintf(nodes.text, sizeof nodes.text, "%" PRId64 "/%" PRId64, job->nodes_live,
             job->world_size);
    table_add(table, job->job);
    table_add(table, status_outcome(job));
    table_add(table, render_age(job->state_unix_ms, now_unix_ms).text);
    table_add(table, render_number(job->generation).text);
    table_add(table, nodes.text);
    table_add(table, render_number(status_step(job, job->step)).text);
    table_add(table, status_open_round(job).text);
    table_add(table, render_count(status_is_ended(job) ? 0 : job->notices_active).text);
    table_add(table, render_number(status_step(job, job->newest_step)).text);
    table_add(table, render_age(job->newest_unix_ms, now_unix_ms).text);
    table_add(table, status_goodput_shown(job).text);
}

/* Jobs that go on by name, then those that have ended, the newest end first. */
static int status_compare_jobs(const void *one, const void *other)
{
    const struct muster_job_row *a = *(const struct muster_job_row *const *)one;
    const struct muster_job_row *b = *(const struct muster_job_row *const *)other;

    if (status_is_ended(a) != status_is_ended(b))
        return status_is_ended(a) ? 1 : -1;
    if (status_is_ended(a) && a->state_unix_ms != b->state_unix_ms)
        return a->state_unix_ms > b->state_unix_ms ? -1 : 1;
    return strcmp(a->job, b->job);
}

const struct muster_job_row **status_ordered(const muster_rows_t *rows)
{
    size_t count = muster_rows_count(rows);
    const struct muster_job_row **jobs = malloc((count + 1) * sizeof *jobs);

    for (size_t i = 0; jobs != NULL && i < count; i++)
        jobs[i] = &muster_rows_jobs(rows)[i];
    if (jobs != NULL)
        qsort(jobs, count, sizeof *jobs, status_compare_jobs);
    return jobs;
}

void status_list(FILE *out, const struct muster_job_row *const *jobs, size_t count,
                 int64_t now_unix_ms, int width)
{
    static const char *const titles[] = {"JOB",         "STATE",      ">SINCE",  ">GEN",
                                         ">NODES",      ">STEP",      "ROUND",   ">NOTICES",
                                         ">CHECKPOINT", ">COMMITTED", ">GOODPUT"};
    static const char *const spare[] = {"GEN",     "ROUND", "GOODPUT", "COMMITTED",
                                        "NOTICES", "SINCE", NULL};
    struct table table;

    table_init(&table, titles, 11);
    table.spare = spare;
    for (size_t i = 0; i < count; i++)
        status_add_job(&table, jobs[i], now_unix_ms);
    table_print(&table, out, width);
}

static int status_print_jobs(struct tool *tool, const muster_rows_t *rows)
{
    const struct muster_job_row **jobs = status_ordered(rows);
    size_t shown = 0, ended = 0, count = muster_rows_count(rows);

    if (jobs == NULL)
        return tool_fail(TOOL_NO, "no memory for the answer");
    while (shown < count && (tool->values[OPTION_ALL] != NULL || !status_is_ended(jobs[shown]) ||
                             ended < ENDED_SHOWN))
        ended += status_is_ended(jobs[shown++]);
    status_list(tool->out, jobs, shown, tool->now_unix_ms, tool->width);
    free(jobs);
    if (count == 0)
        fprintf(tool->out, "(no job yet)\n");
    if (count > shown)
        fprintf(tool->out, "%zu more ha%s ended: --all\n", count - shown,
                count - shown == 1 ? "s" : "ve");
    return TOOL_DONE;
}

/* With the word of the table beside the state. */
static json_t *status_json_jobs(const muster_rows_t *rows)
{
    json_t *jobs = render_rows(rows);

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const struct muster_job_row *job = &muster_rows_jobs(rows)[i];
        json_t *object = json_array_get(jobs, i);

        json_object_set_new(object, "step", json_integer(status_step(job, job->step)));
        json_object_set_new(object, "newest_step",
                            json_integer(status_step(job, job->newest_step)));
        json_object_set_new(object, "resume_step",
                            json_integer(status_step(job, job->resume_step)));
        json_object_set_new(object, "outcome", json_string(status_outcome(job)));
    }
    return jobs;
}

static int status_all_jobs(struct tool *tool)
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = muster_client_jobs(tool->client, NULL, &rows, &err);
    int code = TOOL_DONE;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (tool_json(tool)) {
        json_t *document = render_document();

        json_object_set_new(document, "jobs", status_json_jobs(rows));
        if (!render_json(document, tool->out, false))
            code = tool_fail(TOOL_NO, "no memory for the answer");
    } else {
        tool_print_as_of(tool);
        code = status_print_jobs(tool, rows);
    }
    muster_rows_destroy(&rows);
    return code;
}

/* --- one job ---------------------------------------------------------------------------------- */

/* Does the open round wait for this member? As open_round_waits counts. */
static bool status_is_awaited(const struct muster_participant_row *member, const char *round_state)
{
    if (strcmp(round_state, "freezing") == 0)
        return member->reported_ms < 0;
    return member->captured_ms < 0 || (member->writer && member->saved_ms < 0);
}

static void status_print_open_round(struct tool *tool, const struct muster_job_row *job,
                                    const muster_rows_t *members)
{
    const struct muster_participant_row *member = muster_rows_participants(members);
    int shown = 0;

    fprintf(tool->out, "  open round    %" PRId64 " (%s, %s)", job->open_round,
            job->open_round_cause, job->open_round_state);
    if (muster_rows_count(members) == 0) { /* a freeze tells of them once it lasts */
        fprintf(tool->out, ", has just asked its ranks\n");
        return;
    }
    fprintf(tool->out, ", waits for %" PRId64 " of %zu", job->open_round_waits,
            muster_rows_count(members));
    for (size_t i = 0; i < muster_rows_count(members); i++) {
        if (!status_is_awaited(&member[i], job->open_round_state))
            continue;
        if (shown++ == 8) {
            fprintf(tool->out, ", ...");
            break;
        }
        fprintf(tool->out, "%s rank %" PRId64 " (%s)", shown == 1 ? ":" : ",", member[i].rank,
                render_line(member[i].host).text);
    }
    fputc('\n', tool->out);
}

static const char *status_left_from(const char *from)
{
    if (strcmp(from, "assumed") == 0)
        return ", which is assumed";
    return strcmp(from, "told") == 0 ? "" : ", by grace_period_ms";
}

static void status_print_notices(struct tool *tool, const muster_rows_t *rows, bool ended)
{
    const struct muster_notice_row *notice = muster_rows_notices(rows);

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        int64_t grace_ms = notice[i].left_ms < 0 ? GRACE_DEFAULT_MS : notice[i].left_ms;
        int64_t left_ms = notice[i].received_unix_ms + grace_ms - tool->now_unix_ms;

        if (strcmp(notice[i].state, "active") != 0 || (ended && !render_ends(notice[i].kind)))
            continue;
        if (ended) {
            fprintf(tool->out,
                    "  notice        %s: rank %" PRId64 " was to be ended; it stood when the job "
                    "ended (%s)\n",
                    render_line(notice[i].id).text, notice[i].rank,
                    render_line(notice[i].source).text);
            continue;
        }
        fprintf(tool->out, "  notice        %s: rank %" PRId64 " %s, %s left%s (%s)\n",
                render_line(notice[i].id).text, notice[i].rank, render_fate(notice[i].kind),
                render_duration(left_ms < 0 ? 0 : left_ms).text,
                status_left_from(notice[i].left_from), render_line(notice[i].source).text);
    }
}

static void status_print_plan(struct tool *tool, const struct muster_job_row *job)
{
    int64_t left_ms = job->freeze_unix_ms - tool->now_unix_ms;

    fprintf(tool->out, "  plan          trains on for %s, then freezes: %s\n",
            render_duration(left_ms < 0 ? 0 : left_ms).text, render_line(job->plan).text);
}

static void status_print_error(FILE *out, const struct muster_job_row *job)
{
    if (error_names_rank(job->error_text, job->error_rank))
        fprintf(out, "  first error   %s\n", render_line(job->error_text).text);
    else
        fprintf(out, "  first error   rank %" PRId64 ": %s\n", job->error_rank,
                render_line(job->error_text).text);
}

static bool status_is_there(const muster_rows_t *nodes, int64_t rank)
{
    const struct muster_node_row *node = muster_rows_nodes(nodes);

    for (size_t i = 0; i < muster_rows_count(nodes); i++)
        if (node[i].rank == rank && tool_node_is_live(&node[i]))
            return true;
    return false;
}

static void status_print_missing(FILE *out, const struct muster_job_row *job,
                                 const muster_rows_t *nodes)
{
    int shown = 0;

    for (int64_t rank = 0; rank < job->world_size && shown <= 8; rank++) {
        if (status_is_there(nodes, rank))
            continue;
        if (shown++ == 8)
            fprintf(out, ", ...");
        else
            fprintf(out, "%s%" PRId64, shown == 1 ? "  waits for     rank " : ", ", rank);
    }
    if (shown > 0)
        fputc('\n', out);
}

/* For a launch that ends: the ranks that have not left yet. */
static void status_print_staying(FILE *out, const muster_rows_t *nodes)
{
    const struct muster_node_row *node = muster_rows_nodes(nodes);
    int shown = 0;

    for (size_t i = 0; i < muster_rows_count(nodes); i++) {
        if (!tool_node_is_live(&node[i]) || shown > 8)
            continue;
        if (shown == 8) {
            fprintf(out, ", ...");
        } else {
            fprintf(out, "%srank %" PRId64, shown == 0 ? "  not left yet  " : ", ", node[i].rank);
            if (node[i].begun > node[i].done)
                fprintf(out, " (in step %" PRId64 ")", node[i].begun);
        }
        shown++;
    }
    if (shown > 0)
        fputc('\n', out);
}

/* Parameter servers and evaluators are no ranks of the world. */
static void status_print_beside(FILE *out, const muster_rows_t *nodes)
{
    const struct muster_node_row *node = muster_rows_nodes(nodes);
    size_t servers = 0, evaluators = 0;

    for (size_t i = 0; i < muster_rows_count(nodes); i++) {
        servers += tool_node_is_live(&node[i]) && strcmp(node[i].role, "ps") == 0;
        evaluators += tool_node_is_live(&node[i]) && strcmp(node[i].role, "evaluator") == 0;
    }
    if (servers > 0)
        fprintf(out, ", %zu ps", servers);
    if (evaluators > 0)
        fprintf(out, ", %zu evaluator%s", evaluators, evaluators == 1 ? "" : "s");
    fputc('\n', out);
}

/* The ranks that are stuck now, the longest first. */
static void status_print_stuck(FILE *out, const muster_rows_t *nodes)
{
    struct stuck stuck;

    render_stuck_find(nodes, &stuck);
    if (stuck.count > 0)
        fprintf(out, "  stuck         ");
    if (stuck.all)
        fprintf(out, "all %zu ranks, the longest first: ", stuck.count);
    for (size_t i = 0; i < stuck.count && i < 8; i++)
        fprintf(out, "%srank %" PRId64 " (%s) %s", i == 0 ? "" : ", ", stuck.nodes[i]->rank,
                render_line(stuck.nodes[i]->host).text, render_stuck(stuck.nodes[i]).text);
    if (stuck.count > 0)
        fprintf(out, stuck.count > 8 ? ", ...\n" : "\n");
    free(stuck.nodes);
}

static void status_print_newest(struct tool *tool, const struct muster_job_row *job)
{
    fprintf(tool->out, "  checkpoint    step %" PRId64 ", committed %s: %s%s\n",
            status_step(job, job->newest_step),
            render_age(job->newest_unix_ms, tool->now_unix_ms).text, job->newest_path,
            paths_under_way(job->newest_path) != NULL ? " (its final name follows)" : "");
}

/* Rounds since the newest checkpoint that came to nothing, and are not tried again. */
static bool status_is_failed(const struct muster_round_row *round)
{
    return strcmp(round->state, "aborted") == 0 && round->final;
}

static void status_print_failed_saves(FILE *out, const struct muster_job_row *job,
                                      const muster_rows_t *rows)
{
    const struct muster_round_row *rounds = muster_rows_rounds(rows), *last = NULL;
    int count = 0;

    for (size_t i = 0; i < muster_rows_count(rows); i++)
        if (status_is_failed(&rounds[i])) {
            last = &rounds[i];
            count++;
        }
    if (last == NULL)
        return;
    fprintf(out, "  not saved     %d save%s failed%s; the last, round %" PRId64, count,
            count == 1 ? "" : "s", job->newest_checkpoint != 0 ? " since that" : "", last->round);
    if (last->step >= 0)
        fprintf(out, " of step %" PRId64, last->step);
    fprintf(out, ": %s\n",
            last->reason[0] != '\0'
                ? render_line(last->reason).text
                : muster_status_sentence((enum muster_status)last->reason_code));
}

static json_t *status_json_failed_saves(const muster_rows_t *rows)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < muster_rows_count(rows); i++)
        if (status_is_failed(&muster_rows_rounds(rows)[i]))
            json_array_append_new(array, render_row(rows, i));
    return array;
}

#define HOSTS_SHOWN 16

static void status_print_host(struct tool *tool, const struct muster_host_row *host)
{
    struct shown age = render_age(host->state_unix_ms, tool->now_unix_ms);
    const struct one_line name = render_line(host->host);

    if (host->launch == 0)
        fprintf(tool->out, "  host          %s, %" PRId64 " rank%s", name.text, host->ranks,
                host->ranks == 1 ? "" : "s");
    else if (host->ranks == 1)
        fprintf(tool->out, "  host %-7" PRId64 "  %s, rank %" PRId64, host->place, name.text,
                host->first_rank);
    else
        fprintf(tool->out, "  host %-7" PRId64 "  %s, ranks %" PRId64 " to %" PRId64, host->place,
                name.text, host->first_rank, host->first_rank + host->ranks - 1);
    fprintf(tool->out,
            strcmp(host->state, "lost") == 0 ? ": %s, last heard %s\n" : ": %s, since %s\n",
            host->state, age.text);
}

/* Of `muster run --nodes`. */
static void status_print_hosts(struct tool *tool, const muster_rows_t *rows)
{
    size_t count = muster_rows_count(rows);

    for (size_t i = 0; i < count && i < HOSTS_SHOWN; i++)
        status_print_host(tool, &muster_rows_hosts(rows)[i]);
    if (count > HOSTS_SHOWN)
        fprintf(tool->out, "  hosts         and %zu more: --json\n", count - HOSTS_SHOWN);
}

/* ", 14.9 steps/s", the mean of this launch; "" unless it is known to run. Only the program knows
 * how many steps it will take, so nobody can tell how long that lasts. */
static struct shown status_print_rate_of(const struct tool *tool, const struct muster_job_row *job)
{
    int64_t passed_ms = tool->now_unix_ms - job->started_unix_ms;
    int64_t begun_at = job->resume_checkpoint == 0 ? 0 : job->resume_step;
    struct shown shown = {""};
    double rate;

    if (strcmp(job->state, "running") != 0 || job->started_unix_ms <= 0 || passed_ms < 1000 ||
        job->step <= begun_at || tool_broker_is_dead(tool))
        return shown;
    rate = (double)(job->step - begun_at) * 1000 / (double)passed_ms;
    snprintf(shown.text, sizeof shown.text, rate < 1 ? ", %.2g steps/s" : ", %.1f steps/s", rate);
    return shown;
}

static void status_print_job(struct tool *tool, const struct muster_job_row *job,
                             const muster_rows_t *members, const muster_rows_t *notices,
                             const muster_rows_t *nodes, const muster_rows_t *generations,
                             const muster_rows_t *rounds, const muster_rows_t *hosts)
{
    const struct muster_generation_row *failed =
        restored_in_the_way(generations, muster_rows_count(generations));
    FILE *out = tool->out;

    if (strcmp(status_outcome(job), "not launched") == 0) {
        fprintf(out, "job %s: not launched%s\n", job->job,
                muster_rows_count(hosts) > 0 ? "" : "; `muster tasks` shows its tasks");
        status_print_hosts(tool, hosts);
        return;
    }
    fprintf(out, "job %s: %s%s%s%s %s\n", job->job, paint(paint_of_state(status_outcome(job))),
            status_outcome(job), paint(PAINT_PLAIN),
            strcmp(job->state, "ended") == 0 ? "" : ", since",
            render_age(job->state_unix_ms, tool->now_unix_ms).text);
    if (strcmp(status_outcome(job), "imported") == 0) {
        status_print_newest(tool, job);
        fprintf(out, "  known         what `muster import` found on disk; nothing of how it ran\n");
        return;
    }
    fprintf(out,
            "  generation    %" PRId64 ", opened %s, %s, %" PRId64 " of %" PRId64 " nodes live",
            job->generation, render_age(job->opened_unix_ms, tool->now_unix_ms).text, job->layout,
            job->nodes_live, job->world_size);
    status_print_beside(out, nodes);
    if (strcmp(job->state, "joining") == 0)
        status_print_missing(out, job, nodes);
    if (strcmp(job->state, "ending") == 0)
        status_print_staying(out, nodes);
    status_print_hosts(tool, hosts);
    status_print_stuck(out, nodes);
    if (failed != NULL && failed->generation < job->generation)
        fprintf(out,
                "  resumed       nowhere: generation %" PRId64 " could not restore, and no step "
                "was begun since; `muster why` tells what to do\n",
                failed->generation);
    else if (failed != NULL)
        fprintf(out, "  resumed       nowhere: no step was begun; `muster why` tells what to do\n");
    else if (job->resume_checkpoint != 0 && job->opened_unix_ms != 0)
        fprintf(out, "  resumed       at step %" PRId64 ", from checkpoint %" PRId64 "\n",
                status_step(job, job->resume_step), job->resume_checkpoint);
    fprintf(out, "  step          %" PRId64 "%s, goodput %s (%s%" PRId64 " step%s computed%s)\n",
            status_step(job, job->step), status_print_rate_of(tool, job).text,
            status_goodput_shown(job).text, job->unknown_ranks > 0 ? "at least " : "",
            job->steps_executed, job->steps_executed == 1 ? "" : "s",
            job->unknown_ranks > 0 ? ": what lost ranks did after they were last heard is not known"
                                   : "");
    if (job->open_round != 0)
        status_print_open_round(tool, job, members);
    status_print_notices(tool, notices, strcmp(job->state, "ended") == 0);
    if (job->freeze_unix_ms != 0)
        status_print_plan(tool, job);
    if (job->newest_checkpoint != 0)
        status_print_newest(tool, job);
    else
        fprintf(out, "  checkpoint    none%s\n",
                strcmp(job->state, "ended") == 0 ? "" : " committed yet");
    status_print_failed_saves(out, job, rounds);
    if (job->error_rank >= 0)
        status_print_error(out, job);
    if (strcmp(status_outcome(job), "unheard") == 0)
        fprintf(out, "  finished?     not known here: `muster run` said it where it was started\n");
    if (job->end_text[0] != '\0' && !tool_end_is_of(job->end_text, job->error_text))
        fprintf(out, "  end           %s\n", render_line(job->end_text).text);
}

/* For a job without tasks this prints nothing; many queues are left to `muster tasks`. */
static void status_print_task_queues(FILE *out, const muster_rows_t *rows)
{
    const struct muster_task_queue_row *queue = muster_rows_task_queues(rows);

    for (size_t i = 0; i < muster_rows_count(rows) && i < 4; i++) {
        fprintf(out,
                "  tasks         queue %s: %" PRId64 " of %" PRId64 " have ended, %" PRId64
                " at workers (%" PRId64 " there)",
                queue[i].queue_name, queue[i].ended, queue[i].taken, queue[i].leased,
                queue[i].workers);
        if (queue[i].error_pending)
            fprintf(out, "; stopped, for task %" PRId64 " failed", queue[i].error_number);
        fputc('\n', out);
    }
    if (muster_rows_count(rows) > 4)
        fprintf(out, "  tasks         and %zu more queues: `muster tasks`\n",
                muster_rows_count(rows) - 4);
}

static int status_print_job_json(struct tool *tool, const muster_rows_t *job,
                                 const muster_rows_t *members, const muster_rows_t *notices,
                                 const muster_rows_t *nodes, const muster_rows_t *rounds,
                                 const muster_rows_t *hosts)
{
    json_t *document = render_document();

    json_object_set_new(document, "jobs", status_json_jobs(job));
    json_object_set_new(document, "participants", render_rows(members));
    json_object_set_new(document, "notices", render_rows(notices));
    json_object_set_new(document, "stuck", render_stuck_rows(nodes));
    json_object_set_new(document, "hosts", render_rows(hosts));
    json_object_set_new(document, "failed_saves", status_json_failed_saves(rounds));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

#define EXIT_RUNS 5 /* beyond the codes that every verb has */

/* Of a launch whose ranks left before it started, which ends without an error, too. */
static int status_unstarted_exit_code(const muster_rows_t *rows)
{
    const struct muster_node_row *nodes = muster_rows_nodes(rows);

    for (size_t i = 0; i < muster_rows_count(rows); i++)
        if (tool_node_is_rank(&nodes[i]) && strcmp(nodes[i].leave_why, "preempted") == 0)
            return muster_status_exit_code(MUSTER_PREEMPTED);
    return TOOL_NO;
}

/* For scripts around a launcher whose own exit code does not tell. */
static int status_exit_code(const struct muster_job_row *job, const muster_rows_t *nodes)
{
    if (strcmp(job->state, "ended") != 0)
        return job->generation == 0 ? TOOL_NO : EXIT_RUNS;
    if (job->end_status == MUSTER_PREEMPTED || job->end_status == MUSTER_E_NOT_SAVED)
        return muster_status_exit_code(MUSTER_PREEMPTED);
    if (job->end_status == MUSTER_OK && job->started_unix_ms == 0)
        return status_unstarted_exit_code(nodes);
    return job->end_status == MUSTER_OK ? TOOL_DONE : TOOL_NO;
}

static int status_one_job(struct tool *tool, const char *name)
{
    muster_rows_t *rows = NULL;
    muster_rows_t *members = NULL;
    muster_rows_t *notices = NULL;
    muster_rows_t *nodes = NULL;
    muster_rows_t *queues = NULL;
    muster_rows_t *hosts = NULL;
    muster_rows_t *generations = NULL;
    muster_rows_t *rounds = NULL;
    const struct muster_job_row *job;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int code = tool_get_job(tool, name, &rows);

    if (code != TOOL_DONE)
        return code;
    job = muster_rows_jobs(rows);
    snprintf(tool->job, sizeof tool->job, "%s", name);
    code = tool_count_steps(tool);
    if (code != TOOL_DONE) {
        muster_rows_destroy(&rows);
        return code;
    }
    status = muster_client_notices(tool->client, name, NULL, job->generation, &notices, &err);
    if (status == MUSTER_OK) /* round 0 has no members */
        status = muster_client_participants(tool->client, name, job->open_round, &members, &err);
    if (status == MUSTER_OK)
        status = muster_client_nodes(tool->client, name, job->generation, &nodes, &err);
    if (status == MUSTER_OK)
        status = muster_client_rounds(tool->client, name, job->newest_checkpoint, &rounds, &err);
    if (status == MUSTER_OK)
        status = muster_client_task_queues(tool->client, name, &queues, &err);
    if (status == MUSTER_OK)
        status = muster_client_hosts(tool->client, name, 0, &hosts, &err);
    if (status == MUSTER_OK && strcmp(job->state, "ended") == 0 && job->started_unix_ms == 0)
        status = muster_client_generations(tool->client, name, 0, &generations, &err);
    if (status != MUSTER_OK)
        code = tool_fail_status(status, &err);
    else if (tool_json(tool))
        code = status_print_job_json(tool, rows, members, notices, nodes, rounds, hosts);
    else {
        tool_print_as_of(tool);
        status_print_job(tool, job, members, notices, nodes, generations, rounds, hosts);
        status_print_task_queues(tool->out, queues);
    }
    if (code == TOOL_DONE && tool->values[OPTION_EXIT_CODE] != NULL)
        code = status_exit_code(job, nodes);
    muster_rows_destroy(&rows);
    muster_rows_destroy(&members);
    muster_rows_destroy(&notices);
    muster_rows_destroy(&nodes);
    muster_rows_destroy(&queues);
    muster_rows_destroy(&hosts);
    muster_rows_destroy(&generations);
    muster_rows_destroy(&rounds);
    return code;
}

int cmd_status(struct tool *tool)
{
    const char *name = tool->args_count > 0 ? tool->args[0] : tool->values[OPTION_JOB];

    if (name == NULL && tool->values[OPTION_EXIT_CODE] != NULL)
        return tool_fail(TOOL_USAGE, "--exit-code is of one job: muster status JOB --exit-code");
    return name == NULL ? status_all_jobs(tool) : status_one_job(tool, name);
}
