/* history - what metrics count: each round, checkpoint and launch once, in the order of their
 * numbers, so that a counter never falls while this program runs. */
#include "tools/web/web.h"

#include <stdlib.h>
#include <string.h>

#define HISTORY_JOBS_MAX 1000

const double web_bucket_s[12] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 1800};
const char *const web_end_words[WEB_ENDS_MAX] = {"finished", "preempted", "not_saved", "lost",
                                                 "error",    "other",     NULL,        NULL};
const char *const web_causes[8] = {"termination", "operator", "period", "policy",
                                   "error",       "notice",   "none",   NULL};
const char *const web_outcomes[8] = {"committed", "aborted", "unchanged", NULL,
                                     NULL,        NULL,      NULL,        NULL};

struct web_history {
    struct web_job_history *jobs[HISTORY_JOBS_MAX];
    size_t count;
    uint64_t asked; /* how often one was */
};

static size_t history_word(const char *const *words, const char *word, size_t otherwise)
{
    for (size_t i = 0; i < 8 && words[i] != NULL; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return otherwise;
}

static void history_observe(struct web_phases *phases, int64_t from_ms, int64_t to_ms)
{
    double s = (double)(to_ms - from_ms) / 1000;

    if (from_ms <= 0 || to_ms < from_ms)
        return;
    phases->count++;
    phases->sum_s += s;
    for (size_t i = 0; i < 12; i++)
        phases->buckets[i] += s <= web_bucket_s[i];
}

static enum muster_status history_rounds(struct web_job_history *history, struct tool *tool,
                                         struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    enum muster_status status =
        muster_client_rounds(tool->client, history->job, history->last_round, &rows, err);
    const struct muster_round_row *round = muster_rows_rounds(rows);

    for (size_t i = 0; status == MUSTER_OK && i < muster_rows_count(rows); i++) {
        size_t outcome = history_word(web_outcomes, round[i].state, 8);

        if (outcome == 8)
            break; /* it has not ended: its time comes */
        history->outcomes[history_word(web_causes, round[i].cause, 6)][outcome]++;
        history_observe(&history->phases[PHASE_FREEZE], round[i].opened_unix_ms,
                        round[i].decided_unix_ms);
        history_observe(&history->phases[PHASE_REACH], round[i].decided_unix_ms,
                        round[i].captured_unix_ms);
        if (outcome == 0)
            history_observe(&history->phases[PHASE_WRITE], round[i].captured_unix_ms,
                            round[i].ended_unix_ms);
        history->last_round = round[i].round;
    }
    muster_rows_destroy(&rows);
    return status;
}

static enum muster_status history_checkpoints(struct web_job_history *history, struct tool *tool,
                                              struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    enum muster_status status =
        muster_client_checkpoints(tool->client, history->job, history->last_checkpoint, &rows, err);
    const struct muster_checkpoint_row *checkpoint = muster_rows_checkpoints(rows);

    for (size_t i = 0; status == MUSTER_OK && i < muster_rows_count(rows); i++) {
        if (strcmp(checkpoint[i].state, "writing") == 0)
            break;
        if (checkpoint[i].committed_unix_ms > 0)
            history->bytes += (uint64_t)checkpoint[i].bytes;
        history->last_checkpoint = checkpoint[i].checkpoint;
    }
    muster_rows_destroy(&rows);
    return status;
}

static size_t history_end(const struct muster_generation_row *launch)
{
    switch ((enum muster_status)launch->end_status) {
    case MUSTER_OK:
        return 0;
    case MUSTER_PREEMPTED:
        return 1;
    case MUSTER_E_NOT_SAVED:
        return 2;
    default:
        return launch->error_rank >= 0 ? 4 : (launch->unknown_ranks > 0 ? 3 : 5);
    }
}

static enum muster_status history_launches(struct web_job_history *history, struct tool *tool,
                                           struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    enum muster_status status =
        muster_client_generations(tool->client, history->job, history->last_launch, &rows, err);
    const struct muster_generation_row *launch = muster_rows_generations(rows);

    for (size_t i = 0; status == MUSTER_OK && i < muster_rows_count(rows); i++) {
        if (strcmp(launch[i].state, "ended") != 0)
            break;
        history->ends[history_end(&launch[i])]++;
        history->last_launch = launch[i].generation;
    }
    muster_rows_destroy(&rows);
    return status;
}

/* The job that was not asked about for longest: its place is given to another. If it comes back, it
 * counts from its rows again. */
static struct web_job_history *history_oldest(struct web_history *history)
{
    struct web_job_history *oldest = history->jobs[0];

    for (size_t i = 1; i < history->count; i++)
        if (history->jobs[i]->asked < oldest->asked)
            oldest = history->jobs[i];
    return oldest;
}

/* NULL: no memory. */
static struct web_job_history *history_find(struct web *web, const char *job)
{
    struct web_history *history = web->history;
    struct web_job_history *found;

    if (history == NULL)
        history = web->history = calloc(1, sizeof *history);
    for (size_t i = 0; history != NULL && i < history->count; i++)
        if (strcmp(history->jobs[i]->job, job) == 0)
            return history->jobs[i];
    if (history == NULL)
        return NULL;
    if (history->count < HISTORY_JOBS_MAX) {
        found = calloc(1, sizeof *found);
        if (found == NULL)
            return NULL;
        history->jobs[history->count++] = found;
    } else {
        found = history_oldest(history);
        *found = (struct web_job_history){.job = ""};
    }
    snprintf(found->job, sizeof found->job, "%s", job);
    return found;
}

struct web_job_history *web_history_of(struct web *web, struct tool *tool,
                                       const struct muster_job_row *job)
{
    struct web_job_history *history = history_find(web, job->job);
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = MUSTER_OK;

    web->history_failed = TOOL_DONE;
    if (history == NULL)
        return NULL;
    history->asked = ++web->history->asked;
    if (history->created_unix_ms != job->created_unix_ms) { /* forgotten, and there again */
        *history = (struct web_job_history){.created_unix_ms = job->created_unix_ms,
                                            .asked = history->asked};
        snprintf(history->job, sizeof history->job, "%s", job->job);
    }
    status = history_rounds(history, tool, &err);
    if (status == MUSTER_OK)
        status = history_checkpoints(history, tool, &err);
    if (status == MUSTER_OK)
        status = history_launches(history, tool, &err);
    web->history_failed = web_failed(status, &err);
    return status == MUSTER_OK ? history : NULL;
}

void web_history_free(struct web *web)
{
    for (size_t i = 0; web->history != NULL && i < web->history->count; i++)
        free(web->history->jobs[i]);
    free(web->history);
    web->history = NULL;
}
