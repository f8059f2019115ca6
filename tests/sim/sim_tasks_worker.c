/* sim_tasks_worker - the workers' processes of a world of tasks: they run, die, leave, stop and come back. */
#include "tests/sim/sim_tasks_private.h"

#include <stdlib.h>
#include <string.h>

void sim_tasks_worker_begins(size_t i)
{
    struct process *process = &w.processes[i];
    struct muster_worker_options options = MUSTER_WORKER_OPTIONS_INIT;
    struct task_link_owner owner;

    options.index = (int)i;
    options.slots = 1 + (int)sim_tasks_below(3);
    options.prefetch = (int)sim_tasks_below(4);
    assert_int_equal(muster_worker_open(&options, &process->worker, NULL), MUSTER_OK);
    owner = (struct task_link_owner){.arg = process->worker,
                                     .take = worker_take,
                                     .turn = worker_turn,
                                     .job = process->worker->job,
                                     .role = ROLE_WORKER,
                                     .index = i,
                                     .incarnation = process->worker->incarnation};
    task_link_open("", &owner, &process->worker->link, NULL);
    process->worker->started = true;
    w.links[i] = process->worker->link;
    memset(process->running, 0, sizeof process->running);
    process->paused_ms = 0;
    process->unheard_ms = w.now;
}

void sim_tasks_worker_dies(size_t i)
{
    struct process *process = &w.processes[i];

    process->worker->left = true; /* so that nobody waits for its goodbye */
    muster_worker_close(&process->worker);
    memset(process->running, 0, sizeof process->running);
    process->back_ms = w.now + (int64_t)sim_tasks_below(6000);
}

static void attempt_begins(struct process *process, struct running *slot)
{
    struct muster_task *task = process->worker->first;

    while (task != NULL && task->state != ATTEMPT_WAITING)
        task = task->next;
    if (task == NULL)
        return;
    task->state = ATTEMPT_RUNNING;
    process->worker->running++;
    w.stats->attempts++;
    INSIST(task->number < NUMBERS_MAX && ++w.began[task->number] <= 3,
           "task %llu is begun a fourth time", (unsigned long long)task->number);
    slot->task = task;
    slot->until_ms =
        w.now + 5 +
        (int64_t)sim_tasks_below(sim_tasks_one_in(10) || w.broken == SIM_TASKS_RUNS ? 4000 : 120);
}

/* Ends as the argument says: "f" fails; else the number, as text, long if it can be divided by 16. */
static void attempt_ends(struct process *process, struct running *slot)
{
    struct muster_task *task = slot->task;

    if (atomic_load(&task->cancelled) && sim_tasks_below(2) == 0)
        task->status = MUSTER_E_CANCELLED;
    else if (task->args_size == 1 && task->bytes[0] == 'f')
        task->status = MUSTER_E_TASK, task->code = 17;
    if (task->status == MUSTER_OK) {
        task->result_size = task->number % 16 == 0 ? 60000 : 8;
        task->result = calloc(1, task->result_size);
        assert_non_null(task->result);
        memcpy(task->result, &task->number, sizeof task->number);
    }
    task->state = ATTEMPT_ENDED;
    process->worker->running--;
    process->worker->unsent++;
    task_link_wake(process->worker->link);
    slot->task = NULL;
}

static void worker_works(struct process *process)
{
    for (uint64_t i = 0; i < process->worker->slots; i++) {
        struct running *slot = &process->running[i];

        if (slot->task != NULL && (w.now >= slot->until_ms || atomic_load(&slot->task->cancelled)))
            attempt_ends(process, slot);
        if (slot->task == NULL && !process->worker->stopping)
            attempt_begins(process, slot);
    }
}

void sim_tasks_process_passes(size_t i)
{
    struct process *process = &w.processes[i];

    if (process->worker == NULL) {
        if (w.now >= process->back_ms)
            sim_tasks_worker_begins(i);
        return;
    }
    if (w.now < process->paused_ms)
        return;
    if (sim_tasks_one_in(2500)) {
        w.stats->worker_kills++;
        sim_tasks_worker_dies(i);
        return;
    }
    if (sim_tasks_one_in(2500))
        process->worker->stopping = true; /* in order: it gives back, and leaves */
    if (process->worker->left) {
        w.stats->leaves++;
        sim_tasks_worker_dies(i);
        return;
    }
    if (sim_tasks_one_in(4000)) { /* stopped, maybe for so long that it is taken for lost */
        w.stats->pauses++;
        process->paused_ms = w.now + (int64_t)sim_tasks_below(9000);
        process->unheard_ms = process->paused_ms;
        return;
    }
    if (sim_tasks_one_in(1500)) {
        w.stats->cuts++;
        sim_tasks_reconnect(w.links[i]);
    }
    worker_works(process);
    sim_tasks_link_turns(w.links[i]);
}

/* T3: but at workers that the broker may have taken for lost. */
void sim_tasks_check_nothing_runs(void)
{
    for (size_t i = 0; i < WORKERS; i++) {
        struct process *process = &w.processes[i];

        if (process->worker == NULL || w.now - process->unheard_ms < 8000)
            continue;
        for (size_t k = 0; k < 4; k++)
            INSIST(process->running[k].task == NULL,
                   "an error was raised and worker %zu runs task %llu", i,
                   (unsigned long long)process->running[k].task->number);
    }
}
