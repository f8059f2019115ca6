/* top - jobs and ranks on a terminal, kept up to date: asks every two seconds and takes keys
 * meanwhile. Never: changes anything; asks again before ten times the duration of the last answers
 * has passed. */
#include "tools/live/top.h"

#include "tools/live/screen.h"
#include "tools/verbs.h"

#include "node/clock.h"

#include <stdlib.h>
#include <string.h>

#define TOP_EVERY_MS 2000

/* --- asking ----------------------------------------------------------------------------------- */

static void top_forget(struct top *top)
{
    muster_rows_destroy(&top->nodes);
    muster_rows_destroy(&top->rounds);
    muster_rows_destroy(&top->notices);
    muster_rows_destroy(&top->events);
}

const struct muster_job_row *top_job(const struct top *top)
{
    for (size_t i = 0; i < muster_rows_count(top->jobs); i++)
        if (strcmp(muster_rows_jobs(top->jobs)[i].job, top->job) == 0)
            return &muster_rows_jobs(top->jobs)[i];
    return NULL;
}

static int64_t top_key(const struct muster_job_row *job, enum top_jobs_order order)
{
    return order == TOP_BY_STEP ? job->step : job->newest_unix_ms;
}

/* Insertion sort keeps the order of status_ordered among equals; few of the jobs are out of
 * place. */
static void top_sort(const struct muster_job_row **jobs, size_t count, enum top_jobs_order order)
{
    for (size_t i = 1; order != TOP_BY_STATE && i < count; i++) {
        const struct muster_job_row *job = jobs[i];
        size_t at = i;

        for (; at > 0 && top_key(jobs[at - 1], order) < top_key(job, order); at--)
            jobs[at] = jobs[at - 1];
        jobs[at] = job;
    }
}

static int top_order_jobs(struct top *top)
{
    size_t count = muster_rows_count(top->jobs);

    free(top->ordered);
    top->ordered = status_ordered(top->jobs);
    if (top->ordered == NULL)
        return tool_fail(TOOL_NO, "no memory for the jobs");
    top_sort(top->ordered, count < 1000 ? count : 1000, top->jobs_order);
    return TOOL_DONE;
}

static void top_open_job(struct top *top, const char *job)
{
    top_forget(top);
    snprintf(top->job, sizeof top->job, "%s", job);
    top->rate = -1;
    top->last_step = -1;
    top->chosen = 0;
}

/* The job whose launch changed last. */
static void top_follow(struct top *top)
{
    const struct muster_job_row *jobs = muster_rows_jobs(top->jobs), *newest = NULL;

    for (size_t i = 0; i < muster_rows_count(top->jobs); i++)
        if (newest == NULL || jobs[i].state_unix_ms > newest->state_unix_ms)
            newest = &jobs[i];
    if (newest != NULL && strcmp(newest->job, top->job) != 0)
        top_open_job(top, newest->job);
}

static void top_measure(struct top *top, const struct muster_job_row *job)
{
    int64_t passed_ms = top->asked_unix_ms - top->last_unix_ms;

    top->rate = -1;
    if (top->last_step >= 0 && job->step >= top->last_step && passed_ms > 0)
        top->rate = (double)(job->step - top->last_step) * 1000 / (double)passed_ms;
    top->last_step = job->step;
    top->last_unix_ms = top->asked_unix_ms;
}

static int top_ask_job(struct top *top, const struct muster_job_row *job)
{
    struct muster_error err = {.status = MUSTER_OK};
    struct tool *tool = top->tool;
    muster_client_t *client = tool->client;
    int64_t after = job->seq > TOP_EVENTS ? job->seq - TOP_EVENTS : 0;
    enum muster_status status;
    int code;

    snprintf(tool->job, sizeof tool->job, "%s", top->job);
    code = tool_count_steps(tool);
    if (code != TOOL_DONE)
        return code;
    top_forget(top);
    status = muster_client_nodes(client, top->job, 0, &top->nodes, &err);
    if (status == MUSTER_OK)
        status = job->open_round == 0
                     ? MUSTER_OK
                     : muster_client_round(client, top->job, job->open_round, &top->rounds, &err);
    if (status == MUSTER_OK)
        status =
            muster_client_notices(client, top->job, NULL, job->generation, &top->notices, &err);
    if (status == MUSTER_OK)
        status = muster_client_events(client, top->job, after, NULL, &top->events, &err);
    top_measure(top, job);
    return status == MUSTER_OK ? TOOL_DONE : tool_fail_status(status, &err);
}

static int top_ask_all(struct top *top)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *jobs = NULL;
    enum muster_status status = muster_client_jobs(top->tool->client, NULL, &jobs, &err);
    const struct muster_job_row *job;
    int code;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    muster_rows_destroy(&top->jobs);
    top->jobs = jobs;
    top->asked_unix_ms = tool_now_unix_ms();
    code = top_order_jobs(top);
    if (top->follow)
        top_follow(top);
    job = top_job(top);
    return code == TOOL_DONE && job != NULL ? top_ask_job(top, job) : code;
}

static int top_ask(struct top *top)
{
    int code;

    top->said[0] = '\0';
    tool_hear(top->said, sizeof top->said);
    code = top_ask_all(top);
    tool_hear(NULL, 0);
    return code;
}

/* --- keys ------------------------------------------------------------------------------------- */

static size_t top_last(const struct top *top) /* that can be chosen */
{
    size_t count = muster_rows_count(top->job[0] == '\0' ? top->jobs : top->nodes);

    return count == 0 ? 0 : count - 1;
}

static void top_move(struct top *top, int64_t by)
{
    int64_t at = (int64_t)top->chosen + by, last = (int64_t)top_last(top);

    top->chosen = at < 0 ? 0 : at > last ? (size_t)last : (size_t)at;
}

static void top_leave_job(struct top *top)
{
    if (top->job[0] == '\0' || top->named[0] != '\0')
        return;
    top->follow = false;
    top_open_job(top, "");
}

static void top_sort_next(struct top *top)
{
    if (top->job[0] != '\0')
        top->order = (top->order + 1) % TOP_ORDERS;
    else
        top->jobs_order = (top->jobs_order + 1) % TOP_JOBS_ORDERS;
    top->chosen = 0;
    if (top->jobs != NULL)
        top_order_jobs(top);
}

/* true: the broker is to be asked again. */
static bool top_take_key(struct top *top, int key)
{
    char job[256] = "";

    if (top->help) {
        top->help = false;
        return false;
    }
    if (key == SCREEN_UP || key == SCREEN_DOWN)
        top_move(top, key == SCREEN_UP ? -1 : 1);
    else if (key == SCREEN_PAGE_UP || key == SCREEN_PAGE_DOWN)
        top_move(top, key == SCREEN_PAGE_UP ? -10 : 10);
    else if (key == 's')
        top_sort_next(top);
    else if (key == SCREEN_ESCAPE)
        top_leave_job(top);
    else if (key == '?' || key == 'h')
        top->help = true;
    else if (key == 'p')
        top->paused = !top->paused;
    else if (key == 'f' && top->named[0] == '\0')
        top->follow = !top->follow;
    else if (key == SCREEN_ENTER && top->job[0] == '\0' &&
             top->chosen < muster_rows_count(top->jobs)) {
        snprintf(job, sizeof job, "%s", top->ordered[top->chosen]->job);
        top_open_job(top, job);
    }
    return (key == 'f' && top->follow) || job[0] != '\0' || key == 'r';
}

/* --- the program ------------------------------------------------------------------------------ */

static int top_draw(const struct top *top)
{
    char *text = NULL;
    size_t size = 0;
    int width, height;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return tool_fail(TOOL_NO, "no memory for the picture");
    screen_size(&width, &height);
    top_picture(top, out, width, height);
    if (fclose(out) == 0)
        screen_draw(text, 0);
    free(text);
    return TOOL_DONE;
}

static int top_go(struct top *top)
{
    int64_t next_ms = 0;
    int code = TOOL_DONE;

    while (code == TOOL_DONE) {
        int64_t now_ms = clock_ms(CLOCK_MONOTONIC), cost_ms;
        int key;

        if (now_ms >= next_ms && !top->paused) {
            top_ask(top);
            cost_ms = clock_ms(CLOCK_MONOTONIC) - now_ms;
            next_ms = now_ms + (10 * cost_ms > TOP_EVERY_MS ? 10 * cost_ms : TOP_EVERY_MS);
        }
        code = top_draw(top);
        key = screen_key(top->paused ? 3600000 : next_ms - clock_ms(CLOCK_MONOTONIC));
        if (key == SCREEN_END || (key == 'q' && !top->help))
            break;
        if (key != SCREEN_NONE && key != SCREEN_RESIZED && top_take_key(top, key))
            next_ms = 0;
    }
    return code;
}

/* Which job it begins with: the one that is named, or the only one. */
static int top_begin(struct top *top)
{
    const char *name = top->tool->values[OPTION_JOB];
    int code = top_ask(top);

    if (code != TOOL_DONE)
        return tool_fail(code, "%s", top->said);
    if (name != NULL) {
        muster_rows_t *rows = NULL;

        code = tool_get_job(top->tool, name, &rows);
        muster_rows_destroy(&rows);
        snprintf(top->named, sizeof top->named, "%s", name);
        top_open_job(top, name);
    } else if (muster_rows_count(top->jobs) == 1) {
        top_open_job(top, muster_rows_jobs(top->jobs)[0].job);
    }
    return code;
}

int cmd_top(struct tool *tool)
{
    struct top top = {.tool = tool, .rate = -1, .last_step = -1};
    int code;

    if (tool_json(tool))
        return tool_fail(TOOL_USAGE, "top is a picture: `muster status --json` has the figures");
    code = top_begin(&top);
    if (code == TOOL_DONE)
        code = screen_open("muster top");
    if (code == TOOL_DONE) {
        muster_client_set_interrupted(tool->client, screen_is_over, NULL);
        code = top_go(&top);
        screen_close();
    }
    top_forget(&top);
    muster_rows_destroy(&top.jobs);
    free(top.ordered);
    return code;
}
