/* sim_tasks_break - what makes a core of a broker wrong, for the controls of sim_tasks. */
#include "broker/core/tasks/tasks.h"
#include "tests/sim/sim_tasks.h"

static void give_again(struct core *core, struct task_queue *queue)
{
    const struct record_task row = {
        .queue = queue->queue, .number = 1, .attempt = 1, .fn = "work", .state = TASK_QUEUED};

    if (queue->ended > 0 && tasks_find(core, queue->queue, 1) == NULL)
        tasks_list_put(tasks_create(core, queue, &row), false);
}

static void count_leases(const struct core *core, struct task_queue *queue)
{
    queue->leases = 0;
    for (const struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        for (const struct task_lease *lease = w->first; lease != NULL; lease = lease->next)
            queue->leases += lease->queue == queue && lease->kind == TASK_KIND_TASK;
}

static void lose_queued(struct core *core, struct task_queue *queue)
{
    for (struct task *task; (task = tasks_first_queued(queue)) != NULL;) {
        tasks_list_take(task);
        tasks_forget(core, task);
    }
}

/* As if the worker had never begun what it is lost with, by and by. */
static void give_numbers_again(struct core *core)
{
    for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        for (struct task_lease *lease = w->first; w->node_left && lease != NULL;
             lease = lease->next)
            if (lease->task != NULL && lease->task->attempt == lease->attempt &&
                tasks_is_confirmed(lease))
                lease->task->attempt--, lease->task->excused--;
}

/* Their losses are not looked at when it is said who runs alone. */
static void let_all_run_together(struct task_queue *queue)
{
    for (struct task *task; (task = queue->suspects_first) != NULL;) {
        uint64_t losses = task->losses;

        tasks_list_take(task);
        task->losses = 0;
        tasks_list_put(task, true);
        task->losses = losses;
    }
}

void sim_tasks_break_core(struct core *core, enum sim_tasks_break how)
{
    struct task_queue *queue = core->tasks != NULL ? core->tasks->queues : NULL;

    if (queue == NULL)
        return;
    if (how == SIM_TASKS_AGAIN || how == SIM_TASKS_MIXES)
        give_numbers_again(core);
    if (how == SIM_TASKS_BLAMES)
        let_all_run_together(queue);
    if (how == SIM_TASKS_LOSE && queue->first != NULL)
        lose_queued(core, queue);
    else if (how == SIM_TASKS_TWICE)
        give_again(core, queue);
    if (how != SIM_TASKS_RUNS && how != SIM_TASKS_STAYS)
        return;
    count_leases(core, queue);
    queue->error_said = true; /* nobody is told to end what it runs */
    if (how == SIM_TASKS_STAYS)
        queue->leases++; /* one that nobody has */
    else if (queue->raise_wanted != 0)
        queue->leases = 0;
}
