/* cmd_tasks - queues of tasks, tasks and workers; and why a task is in its state. */
#include "tools/render.h"
#include "tools/show/task.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <inttypes.h>
#include <string.h>

/* The job that is meant: tasks need no launch, so the list of jobs need not have it. A list for a
 * program may be empty. */
static int tasks_find_queues(struct tool *tool, bool for_list, muster_rows_t **ret_rows)
{
    const char *named = tool->values[OPTION_JOB];
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = muster_client_task_queues(tool->client, named, ret_rows, &err);
    char has[sizeof tool->job + 8] = "";
    const struct muster_task_queue_row *queues;
    size_t count;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    queues = muster_rows_task_queues(*ret_rows);
    count = muster_rows_count(*ret_rows);
    for (size_t i = 1; i < count; i++)
        if (strcmp(queues[i].job, queues[0].job) != 0)
            return tool_fail(TOOL_USAGE,
                             "several jobs have tasks, %s and %s among them: say which with --job",
                             queues[0].job, queues[i].job);
    if (count == 0 && for_list && tool_json(tool))
        return tool_find_job(tool);
    if (named != NULL)
        snprintf(has, sizeof has, "%.*s has", (int)sizeof tool->job, named);
    if (count == 0)
        return tool_fail(
            TOOL_NO, "%s%s no queue of tasks: a coordinator makes one (muster_coordinator_open)",
            named != NULL ? "job " : "there is", has);
    snprintf(tool->job, sizeof tool->job, "%s", queues[0].job);
    return TOOL_DONE;
}

static int tasks_print_json(struct tool *tool, const char *key, const muster_rows_t *rows)
{
    json_t *document = render_document();

    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, key, render_rows(rows));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

/* --- lists ------------------------------------------------------------------------------------ */

/* They have ended, and nobody holds their values any more. */
static int64_t tasks_forgotten(const struct muster_task_queue_row *queue)
{
    int64_t count = queue->taken - queue->queued - queue->leased - queue->done - queue->failed -
                    queue->cancelled;

    return count > 0 ? count : 0;
}

static void tasks_print_queues(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const titles[] = {"QUEUE",    ">TASKS",  ">QUEUED",    ">AT WORKERS",
                                         ">DONE",    ">FAILED", ">CANCELLED", ">FORGOTTEN",
                                         ">WORKERS", "ERROR"};
    const struct muster_task_queue_row *queues = muster_rows_task_queues(rows);
    struct table table;

    table_init(&table, titles, 10);
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        char error[256] = "";

        if (queues[i].error_pending)
            snprintf(error, sizeof error, "task %" PRId64 ": %.200s", queues[i].error_number,
                     queues[i].error_text);
        table_add(&table, queues[i].queue_name);
        table_add(&table, render_number(queues[i].taken).text);
        table_add(&table, render_number(queues[i].queued).text);
        table_add(&table, render_number(queues[i].leased).text);
        table_add(&table, render_number(queues[i].done).text);
        table_add(&table, render_number(queues[i].failed).text);
        table_add(&table, render_number(queues[i].cancelled).text);
        table_add(&table, render_number(tasks_forgotten(&queues[i])).text);
        table_add(&table, render_number(queues[i].workers).text);
        table_add(&table, error);
    }
    table_print(&table, tool->out, tool->width);
}

static void tasks_print(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const titles[] = {">TASK",   "QUEUE",      "STATE",   "FUNCTION", ">ATTEMPT",
                                         ">WORKER", ">SCHEDULED", ">RESULT", "TEXT"};
    const struct muster_task_row *tasks = muster_rows_tasks(rows);
    struct table table;

    table_init(&table, titles, 9);
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_task_row *task = &tasks[i];
        bool done = strcmp(task->state, "done") == 0;

        table_add(&table, render_number(task->number).text);
        table_add(&table, task->queue_name);
        table_add(&table, task->state);
        table_add(&table, task->function);
        table_add(&table, render_count(task->attempt).text);
        table_add(&table, render_number(task->worker_index).text);
        table_add(&table, render_age(task->scheduled_unix_ms, tool->now_unix_ms).text);
        table_add(&table, done ? render_bytes(task->bytes).text : "");
        table_add(&table, strcmp(task->state, "failed") == 0 || strcmp(task->state, "leased") == 0
                              ? task->text /* of a leased one: that it makes no progress */
                              : "");
    }
    table_print(&table, tool->out, tool->width);
}

static void tasks_print_workers(struct tool *tool, const muster_rows_t *rows)
{
    static const char *const titles[] = {">WORKER", "HOST",   ">PID",  "STATE",
                                         ">SINCE",  ">TAKES", ">HELD", "TASKS"};
    const struct muster_task_worker_row *workers = muster_rows_task_workers(rows);
    struct table table;

    table_init(&table, titles, 8);
    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        const struct muster_task_worker_row *worker = &workers[i];

        table_add(&table, render_number(worker->worker_index).text);
        table_add(&table, worker->host);
        table_add(&table, render_number(worker->pid).text);
        table_add(&table, worker->state);
        table_add(&table, render_age(worker->unix_ms, tool->now_unix_ms).text);
        table_add(&table, render_number(worker->takes).text);
        table_add(&table, render_number(worker->held).text);
        table_add(&table, worker->holds);
    }
    table_print(&table, tool->out, tool->width);
}

static bool tasks_is_state(const char *word)
{
    static const char *const states[] = {"queued", "leased", "done", "failed", "cancelled"};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(states[i], word) == 0)
            return true;
    return false;
}

static int show_workers(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    enum muster_status status = muster_client_task_workers(tool->client, tool->job, &rows, &err);
    int code = TOOL_DONE;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (tool_json(tool))
        code = tasks_print_json(tool, "workers", rows);
    else
        tasks_print_workers(tool, rows);
    muster_rows_destroy(&rows);
    return code;
}

/* state NULL and number 0: all. */
static int show_tasks(struct tool *tool, const char *state, int64_t number)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    enum muster_status status =
        muster_client_tasks(tool->client, tool->job, state, number, &rows, &err);
    int code = TOOL_DONE;

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (number > 0 && muster_rows_count(rows) == 0)
        code = tool_fail(TOOL_NO,
                         "job %s has no task %" PRId64
                         ": `muster tasks all` lists those that are not forgotten",
                         tool->job, number);
    else if (tool_json(tool))
        code = tasks_print_json(tool, "tasks", rows);
    else
        tasks_print(tool, rows);
    muster_rows_destroy(&rows);
    return code;
}

/* They may be there before the first coordinator: of a job that is named no queue is needed. */
static int tasks_workers_alone(struct tool *tool)
{
    const char *named = tool->values[OPTION_JOB];

    if (strlen(named) >= sizeof tool->job)
        return tool_fail(TOOL_USAGE, "--job has more than %zu bytes", sizeof tool->job - 1);
    snprintf(tool->job, sizeof tool->job, "%s", named);
    return show_workers(tool);
}

static int show_queues(struct tool *tool, const muster_rows_t *queues)
{
    if (tool_json(tool))
        return tasks_print_json(tool, "queues", queues);
    tasks_print_queues(tool, queues);
    return TOOL_DONE;
}

static int tasks_read_number(const char *word, int64_t *ret_number)
{
    if (strspn(word, "+-0123456789") > 0)
        return tool_number(word, "a task", 1, (int64_t)TASK_NUMBER_MAX, ret_number);
    return tool_fail(TOOL_USAGE,
                     "tasks does not know \"%s\": give a state (queued, leased, done, failed, "
                     "cancelled), `all`, `workers` or the number of a task",
                     word);
}

int cmd_tasks(struct tool *tool)
{
    const char *what = tool->args_count > 0 ? tool->args[0] : "";
    const bool workers = strcmp(what, "workers") == 0, all = strcmp(what, "all") == 0;
    muster_rows_t *queues = NULL;
    int64_t number = 0;
    int code = TOOL_DONE;

    if (workers && tool->values[OPTION_JOB] != NULL)
        return tasks_workers_alone(tool);
    if (what[0] != '\0' && !workers && !all &&
        !tasks_is_state(what)) /* a wrong word is one of no queue too */
        code = tasks_read_number(what, &number);
    if (code == TOOL_DONE)
        code = tasks_find_queues(tool, true, &queues);
    if (code == TOOL_DONE && what[0] == '\0')
        code = show_queues(tool, queues);
    else if (code == TOOL_DONE && workers)
        code = show_workers(tool);
    else if (code == TOOL_DONE)
        code = show_tasks(tool, tasks_is_state(what) ? what : NULL, number);
    muster_rows_destroy(&queues);
    return code;
}

/* --- why -------------------------------------------------------------------------------------- */

static const struct muster_task_queue_row *tasks_queue_of(const muster_rows_t *queues,
                                                          const struct muster_task_row *task)
{
    const struct muster_task_queue_row *queue = muster_rows_task_queues(queues);

    for (size_t i = 0; i < muster_rows_count(queues); i++)
        if (strcmp(queue[i].queue_name, task->queue_name) == 0)
            return &queue[i];
    return queue;
}

static void tasks_say_waiting(struct tool *tool, const struct muster_task_queue_row *queue,
                              const struct muster_task_row *task)
{
    if (queue->error_pending)
        fprintf(tool->out,
                "It waits because the queue has stopped: task %" PRId64
                " failed (%s), and the coordinator has not raised that error yet. When it does, "
                "this task is cancelled.\n",
                queue->error_number, queue->error_text);
    else if (queue->workers == 0)
        fprintf(tool->out, "It waits because no worker of job %s is there; start one.\n",
                tool->job);
    else if (task->losses > 0)
        fprintf(
            tool->out,
            "It waits for a free slot: a task that was lost with a worker is not fetched "
            "ahead. After its second loss, or after a loss by time, it runs alone at a worker.\n");
    else
        fprintf(tool->out,
                "It waits for its turn: %" PRId64 " tasks are queued, and %" PRId64
                " workers have %" PRId64 ".\n",
                queue->queued, queue->workers, queue->leased);
}

static void tasks_say_worker(struct tool *tool, const struct muster_task_row *task,
                             const char *before)
{
    fprintf(tool->out, "%s worker %" PRId64, before, task->worker_index);
    if (task->worker_pid > 0)
        fprintf(tool->out, " (process %" PRId64 " on %s, which is %s)", task->worker_pid,
                render_line(task->worker_host).text, task->worker_state);
    fprintf(tool->out, "%s\n", task->worker_pid > 0 ? "." : ", whose process is another by now.");
}

static void tasks_say_leased(struct tool *tool, const struct muster_task_row *task)
{
    tasks_say_worker(tool, task, "It is at");
    if (task->text[0] != '\0')
        fprintf(tool->out,
                "It makes no progress, and was named for it: %s.\nNext: look at that process; "
                "nothing is "
                "done about it unless its call has timeout_ms, or its worker is ended.\n",
                task->text);
}

static void tasks_say_end(struct tool *tool, const struct muster_task_row *task)
{
    enum muster_status kind = task->status > 0 && task->status < MUSTER_STATUS_COUNT
                                  ? (enum muster_status)task->status
                                  : MUSTER_OK;

    if (strcmp(task->state, "done") == 0) {
        fprintf(tool->out, "It is done %s, with a result of %s.\n",
                render_age(task->ended_unix_ms, tool->now_unix_ms).text,
                render_bytes(task->bytes).text);
        return;
    }
    if (strcmp(task->state, "cancelled") == 0) {
        fprintf(tool->out,
                "It was cancelled %s, by its coordinator or because another task had "
                "failed; what was scheduled then runs only if it is scheduled again.\n",
                render_age(task->ended_unix_ms, tool->now_unix_ms).text);
        return;
    }
    fprintf(tool->out, "It failed %s: %s (%s",
            render_age(task->ended_unix_ms, tool->now_unix_ms).text, muster_status_sentence(kind),
            muster_status_name(kind));
    if (task->code != 0)
        fprintf(tool->out, ", code %" PRId64, task->code);
    fprintf(tool->out, "). %s\nNext: %s.\n", render_line(task->text).text,
            muster_status_advice(kind));
}

static void tasks_say_task(struct tool *tool, const struct muster_task_queue_row *queue,
                           const struct muster_task_row *task)
{
    fprintf(tool->out, "Task %" PRId64 " (%s) of queue %s of job %s is %s. It was scheduled %s.\n",
            task->number, task->function, task->queue_name, tool->job, task->state,
            render_age(task->scheduled_unix_ms, tool->now_unix_ms).text);
    if (task->attempt > 0)
        fprintf(tool->out, "It was given to a worker %s%s%s.\n",
                task->attempt == 1 ? "once" : render_number(task->attempt).text,
                task->attempt == 1 ? ", " : " times, the last time ",
                render_age(task->leased_unix_ms, tool->now_unix_ms).text);
    if (task->losses > 0)
        fprintf(tool->out,
                "%" PRId64 " times its worker was lost with it, or it took too long; at %" PRId64
                " it fails.\n",
                task->losses, queue->max_attempts > 0 ? queue->max_attempts : 3);
    if (strcmp(task->state, "queued") == 0)
        tasks_say_waiting(tool, queue, task);
    else if (strcmp(task->state, "leased") == 0)
        tasks_say_leased(tool, task);
    else
        tasks_say_end(tool, task);
}

int cmd_why_task(struct tool *tool, int64_t number)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *queues = NULL, *rows = NULL;
    int code = tasks_find_queues(tool, false, &queues);

    if (code == TOOL_DONE) {
        enum muster_status status =
            muster_client_tasks(tool->client, tool->job, NULL, number, &rows, &err);
        if (status != MUSTER_OK)
            code = tool_fail_status(status, &err);
        else if (muster_rows_count(rows) == 0)
            code = tool_fail(TOOL_NO,
                             "job %s has no task %" PRId64
                             ": it was never scheduled, or its value was freed and it is forgotten",
                             tool->job, number);
        else if (tool_json(tool))
            code = tasks_print_json(tool, "tasks", rows);
    }
    for (size_t i = 0; code == TOOL_DONE && !tool_json(tool) && i < muster_rows_count(rows); i++)
        tasks_say_task(tool, tasks_queue_of(queues, &muster_rows_tasks(rows)[i]),
                       &muster_rows_tasks(rows)[i]);
    muster_rows_destroy(&rows);
    muster_rows_destroy(&queues);
    return code;
}
