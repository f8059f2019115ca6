/* tasks_values - per-worker values: which worker is to make which, and those that end their
 * workers.
 *
 * A worker that is lost while it makes a value may have been ended by it. From then on that value
 * is made alone, by a worker that holds nothing else. If it ended max_attempts workers in a row,
 * and no worker has it, it is not made again before another coordinator holds the queue. Tasks that
 * use it fail, all others go on. Workers that are lost together are one loss: a worker that had
 * begun before the last loss that counted does not count. Workers that left in good order are no
 * loss. The count is kept in memory: a broker that starts counts from zero. */
#include "broker/core/tasks/tasks.h"

#include <inttypes.h>
#include <stdio.h>

/* Alone: the worker gets nothing else until it holds nothing. */
static bool values_may_make(struct task_worker *worker, const struct task_resource *resource)
{
    if (worker->held >= worker->takes || worker->alone || tasks_is_stuck(worker))
        return false;
    if (resource->losses > 0 && worker->held > 0) {
        worker->reserved = true;
        return false;
    }
    return true;
}

bool tasks_values_give(struct core *core, struct task_worker *worker, struct task_queue *queue)
{
    bool all = true;

    for (size_t i = 0; i < queue->resources_count; i++) {
        const struct task_resource *resource = &queue->resources[i];
        const struct task_made *made = tasks_made_find(worker, queue->queue, resource->number);

        if (resource->given_up)
            continue;
        all = all && made != NULL && made->made;
        if (made != NULL || !values_may_make(worker, resource))
            continue;
        tasks_made(worker, queue->queue, resource->number, false)->losses = resource->losses;
        tasks_lease_new(core, worker, queue, NULL, resource->number, 0, TASK_KIND_RESOURCE);
        worker->alone = resource->losses > 0;
    }
    return all;
}

/* At a worker that lives, as far as is known. */
static bool values_somebody_has_it(const struct core *core, const struct task_queue *queue,
                                   const struct task_resource *resource)
{
    for (const struct task_worker *w = core->tasks->workers; w != NULL; w = w->next) {
        const struct task_made *made = tasks_made_find(w, queue->queue, resource->number);

        if (w->mapped && made != NULL && made->made)
            return true;
    }
    return false;
}

static void values_count_loss(struct core *core, struct task_queue *queue,
                              struct task_resource *resource, const struct task_worker *worker,
                              const char *why)
{
    const struct task_made *made = tasks_made_find(worker, queue->queue, resource->number);

    if (made == NULL || made->losses < resource->losses)
        return;
    resource->losses++;
    resource->worker = worker->incarnation;
    resource->given_up =
        resource->losses >= queue->max_attempts && !values_somebody_has_it(core, queue, resource);
    snprintf(resource->why, sizeof resource->why,
             "per-worker value %" PRIu64 " (%s) of queue %s: each of %" PRIu64
             " workers in a row was "
             "lost while it made this value, the last one: %s; it is not made again for this "
             "coordinator",
             resource->number, resource->fn, queue->name, resource->losses, why);
}

void tasks_values_lost(struct core *core, struct task_worker *worker, const char *why)
{
    uint64_t place = 0;

    if (!worker->mapped || worker->node_left)
        return; /* perhaps long ago; in good order */
    for (struct task_lease *lease = worker->first; lease != NULL && place < worker->slots;
         lease = lease->next, place++)
        if (lease->kind == TASK_KIND_RESOURCE && lease->queue != NULL && tasks_is_confirmed(lease))
            values_count_loss(core, lease->queue, &lease->queue->resources[lease->number - 1],
                              worker, why);
}

void tasks_values_again(struct task_queue *queue)
{
    for (size_t i = 0; i < queue->resources_count; i++)
        tasks_value_made(&queue->resources[i]);
}

void tasks_value_made(struct task_resource *resource)
{
    resource->losses = 0;
    resource->given_up = false;
}

/* The value that the task waits for in vain, or NULL. */
static const struct task_resource *values_in_vain(const struct task *task)
{
    const uint8_t *uses = task->bytes + task->args_size;

    for (size_t i = 0; i + 4 <= task->uses_size; i += 4) {
        uint64_t number = (uint64_t)uses[i] << 24 | (uint64_t)uses[i + 1] << 16 |
                          (uint64_t)uses[i + 2] << 8 | uses[i + 3];

        if (number >= 1 && number <= task->queue->resources_count &&
            task->queue->resources[number - 1].given_up)
            return &task->queue->resources[number - 1];
    }
    return NULL;
}

bool tasks_value_fails(struct core *core, struct task *task)
{
    const struct task_resource *resource = values_in_vain(task);

    if (resource == NULL)
        return false;
    tasks_list_take(task);
    tasks_end(
        core, task,
        &(struct task_end){.state = TASK_FAILED, .status = MUSTER_E_INPUT, .text = resource->why},
        resource->worker);
    return true;
}
