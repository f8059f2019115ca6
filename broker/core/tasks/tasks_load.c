/* tasks_load - queues, workers and leases as the database has them, and what a start makes of them.
 * A lease stays until its worker comes back and says what it has, or until ENDING_MS have
 * passed. */
#include "broker/core/tasks/tasks.h"

#include <stdio.h>

static void load_queue(struct core *core, const struct record_task_queue *row)
{
    struct task_queue *queue = tasks_queue_create(core, row->queue, row->job, row->name);

    queue->coordinator = row->coordinator;
    queue->taken = row->taken;
    queue->ended = row->ended;
    queue->released = row->released;
    queue->max_queued = row->max_queued;
    queue->max_attempts = row->max_attempts;
    queue->error_pending = row->error_pending;
    queue->error_number = row->error_number;
    queue->error_status = row->error_status;
    queue->error_code = row->error_code;
    queue->raised = row->raised;
    queue->raises_told = row->told;
    queue->cancelled_to = row->cancelled_to;
    queue->created_unix_ms = row->created_unix_ms;
    snprintf(queue->error_text, sizeof queue->error_text, "%s", row->error_text);
}

static void load_worker(struct core *core, const struct record_task_worker *row)
{
    struct task_worker *worker;

    if (row->state != RECORD_WORKER_LIVE)
        return;
    worker = tasks_worker_create(core, row->job, row->index, row->incarnation);
    worker->node = row->node;
    worker->pid = row->pid;
    worker->slots = row->slots;
    worker->takes = row->takes;
    snprintf(worker->host, sizeof worker->host, "%s", row->host);
}

static void load_task(struct core *core, const struct record_task *row)
{
    struct task_queue *queue = tasks_queue_find(core, row->queue);
    struct task_worker *worker;
    struct task_lease *lease;
    struct task *task;

    if (queue == NULL)
        return;
    task = tasks_create(core, queue, row);
    task->named = row->text[0] != '\0';
    worker = row->state == TASK_LEASED ? tasks_worker_find(core, row->worker) : NULL;
    if (worker == NULL) {
        tasks_list_put(task, false);
        return;
    }
    lease = tasks_lease_add(worker, queue, task, row->number, row->attempt, TASK_KIND_TASK);
    lease->loaded = true;
    worker->alone = worker->alone || tasks_is_suspect(task); /* as it was given (T4) */
}

void tasks_load(struct core *core, const struct record *row)
{
    struct task_queue *queue;

    switch (row->kind) {
    case RECORD_TASK_QUEUE:
        load_queue(core, &row->u.task_queue);
        break;
    case RECORD_TASK_QUEUE_DROP:
        tasks_queue_left(core, row->u.task_range.queue);
        break;
    case RECORD_TASK_RESOURCE:
        queue = tasks_queue_find(core, row->u.task_resource.queue);
        if (queue != NULL && row->u.task_resource.number == queue->resources_count + 1)
            tasks_resource_create(queue, row->u.task_resource.number, row->u.task_resource.fn,
                                  row->u.task_resource.args);
        break;
    case RECORD_TASK_WORKER:
        load_worker(core, &row->u.task_worker);
        break;
    case RECORD_TASK:
        load_task(core, &row->u.task);
        break;
    default:
        break;
    }
}

void tasks_start(struct core *core)
{
    if (core->tasks == NULL)
        return;
    for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next) {
        w->heard_boot_ms = core->now;
        for (struct task_lease *lease = w->first; lease != NULL; lease = lease->next)
            lease->since_boot_ms =
                core->now; /* their time begins again: renewals were not written */
    }
    for (struct task_queue *queue = core->tasks->queues; queue != NULL; queue = queue->next)
        queue->heard_boot_ms = core->now;
    core->tasks->timer_boot_ms = core->now;
}
