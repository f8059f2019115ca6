/* sim_tasks_worker - the workers' processes of a world of tasks: they run, die, leave, stop and
 * come back. */
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
    process->worker->node = i == BESIDE ? sim_tasks_node_begins(&w.node, ROLE_CHIEF, 0) : 0;
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
    muster_worker_close(&process->worker, NULL);
    memset(process->running, 0, sizeof process->running);
    process->back_ms = w.now + (int64_t)sim_tasks_below(6000);
}

/* --- attempts --------------------------------------------------------------------------------- */

struct made { /* a worker's part of a per-worker value */
    uint64_t queue, number;
};

/* In the order of the call, and of this queue; that this worker made them, its own list says. */
static void check_values(const struct muster_task *task)
{
    for (size_t i = 0; i < task->uses_size / 4; i++) {
        const struct made *made = muster_task_value(task, i);

        INSIST(made != NULL && made->queue == task->queue && made->number == i + 1,
               "task %llu has another's per-worker value", (unsigned long long)task->number);
    }
}

static bool is_callable(const struct process *process, struct muster_task *task)
{
    if (worker_attempt_is_callable(task)) {
        check_values(task);
        return true;
    }
    INSIST(task->status == MUSTER_E_CANCELLED || task->queue != w.queue ||
               (task->uses_size / 4 == PER_WORKER && process->worker->index == CANNOT_MAKE),
           "task %llu: %.200s", (unsigned long long)task->number, task->text);
    return false;
}

/* "s" takes too long. */
static int64_t takes_ms(const struct muster_task *task)
{
    bool slow = task->kind == TASK_KIND_TASK && task->args_size == 1 && task->bytes[0] == 's';
    bool is_long =
        sim_tasks_one_in(10) || w.broken == SIM_TASKS_RUNS || w.broken == SIM_TASKS_BLAMES;

    return (slow ? 3 * SIM_TASKS_LIMIT_MS : 5) + (int64_t)sim_tasks_below(is_long ? 4000 : 120);
}

static void check_attempt(const struct muster_task *task)
{
    if (w.broken == SIM_TASKS_MIXES)
        return; /* its results are looked at */
    INSIST(task->number < NUMBERS_MAX && task->attempt <= TASK_TRIES_MAX &&
               !w.begun[task->number][task->attempt],
           "attempt %llu of task %llu is begun twice", (unsigned long long)task->attempt,
           (unsigned long long)task->number);
    w.begun[task->number][task->attempt] = true;
    INSIST(++w.began[task->number] <= 3 + w.excused[task->number],
           "task %llu is begun a fourth time", (unsigned long long)task->number);
}

/* A task that ends its worker. */
static bool is_poison(const struct muster_task *task)
{
    return task->kind == TASK_KIND_TASK && task->args_size == 1 && task->bytes[0] == 'p';
}

/* False: the process is gone. */
static bool attempt_begins(struct process *process, struct running *slot)
{
    struct muster_task *task = worker_attempt_begin(process->worker);

    if (task == NULL)
        return true;
    w.stats->attempts++;
    if (task->kind == TASK_KIND_TASK && task->queue == w.queue)
        check_attempt(task);
    if (is_poison(task)) {
        w.stats->poisoned++;
        w.poisoned[task->number]++;
        sim_tasks_worker_dies((size_t)(process - w.processes));
        return false;
    }
    if (!is_callable(process, task)) {
        worker_attempt_end(process->worker, task);
        return true;
    }
    slot->task = task;
    slot->until_ms = w.now + takes_ms(task);
    return true;
}

static void value_is_made(struct muster_task *task)
{
    struct made *made = malloc(sizeof *made);

    assert_non_null(made);
    *made = (struct made){task->queue, task->number};
    w.stats->values_made++;
    if (task->number == PER_WORKER && task->worker->index == CANNOT_MAKE)
        task->status = MUSTER_E_TASK, task->code = 5;
    muster_task_set_value(task, made, free);
}

size_t sim_tasks_result_size(uint64_t number, uint64_t attempt)
{
    return number % 16 == 0 ? 100000 / (size_t)attempt : 3 * sizeof(uint64_t);
}

/* Ends as the argument says: "f" fails; else with a result. */
static void task_is_done(struct muster_task *task)
{
    if (atomic_load(&task->cancelled) && sim_tasks_below(2) == 0)
        task->status = MUSTER_E_CANCELLED;
    else if (task->args_size == 1 && task->bytes[0] == 'f')
        task->status = MUSTER_E_TASK, task->code = 17;
    if (task->status != MUSTER_OK)
        return;
    task->result_size = sim_tasks_result_size(task->number, task->attempt);
    task->result = malloc(task->result_size);
    assert_non_null(task->result);
    memset(task->result, (int)(task->worker->incarnation & 0xff), task->result_size);
    memcpy(task->result, (uint64_t[]){task->number, task->attempt, task->worker->incarnation},
           3 * sizeof(uint64_t));
}

static void attempt_ends(struct process *process, struct running *slot)
{
    if (slot->task->kind == TASK_KIND_RESOURCE)
        value_is_made(slot->task);
    else
        task_is_done(slot->task);
    worker_attempt_end(process->worker, slot->task);
    slot->task = NULL;
}

/* False: one of them ended the process. */
static bool worker_works(struct process *process)
{
    for (uint64_t i = 0; i < process->worker->slots; i++) {
        struct running *slot = &process->running[i];

        if (slot->task != NULL && sim_tasks_one_in(60))
            muster_task_renew(slot->task);
        if (slot->task != NULL && (w.now >= slot->until_ms || atomic_load(&slot->task->cancelled)))
            attempt_ends(process, slot);
        if (slot->task == NULL && !process->worker->stopping && !attempt_begins(process, slot))
            return false;
    }
    return true;
}

/* Some of a result is under way. */
static bool is_telling(const struct process *process)
{
    for (const struct muster_task *task = process->worker->first; task != NULL; task = task->next)
        if (task->state == ATTEMPT_ENDED && task->parts.sent > 0 &&
            task->parts.have < task->result_size)
            return true;
    return false;
}

/* The training that it lives in is preempted, or has finished: it is gone, and told its own broker
 * nothing. */
static bool is_preempted(const struct process *process)
{
    bool control = w.broken == SIM_TASKS_AGAIN || w.broken == SIM_TASKS_MIXES;

    if (is_telling(process))
        return sim_tasks_one_in(30) || (control && sim_tasks_below(2) == 0);
    return sim_tasks_one_in(1000) || (w.broken == SIM_TASKS_AGAIN && sim_tasks_below(200) == 0);
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
    if (i == BESIDE && !sim_tasks_node_passes(&w.node)) {
        sim_tasks_worker_dies(i);
        return;
    }
    if (i == BESIDE && is_preempted(process)) {
        if (w.core != NULL) {
            w.stats->preempted++;
            sim_tasks_node_says(&w.node, WIRE_LEAVE, /* a job that has finished misses no server */
                                w.has_servers || sim_tasks_below(2) == 0 ? LEAVE_PREEMPTED
                                                                         : LEAVE_FINISHED);
        }
        sim_tasks_worker_dies(i);
        return;
    }
    if (worker_works(process))
        sim_tasks_link_turns(w.links[i]);
}

/* A per-worker value may be made meanwhile. */
static bool runs_task(const struct running *slot)
{
    return slot->task != NULL && slot->task->kind == TASK_KIND_TASK && slot->task->queue == w.queue;
}

/* T3: but at workers that the broker may have taken for lost. */
void sim_tasks_check_nothing_runs(void)
{
    for (size_t i = 0; i < WORKERS; i++) {
        struct process *process = &w.processes[i];

        if (process->worker == NULL || w.now - process->unheard_ms < 8000)
            continue;
        for (size_t k = 0; k < 4; k++)
            INSIST(!runs_task(&process->running[k]),
                   "an error was raised and worker %zu runs task %llu", i,
                   (unsigned long long)process->running[k].task->number);
    }
}
