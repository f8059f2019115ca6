/* tasks_give - which worker gets which task: leases, what is sent again, and what is taken back
 * after a time-out or a loss.
 *
 * Work is given by credit: a worker says how many tasks it takes (its slots and what it fetches
 * ahead). A lease stands against that until its end was taken. First every worker that has a free
 * slot gets one task at a time in turn, then what is fetched ahead, so that few tasks spread over
 * many workers. A task that was lost with a worker comes first, and is never fetched ahead. So if
 * its next worker is lost, too, the broker knows that it had begun. */
#include "broker/core/tasks/tasks.h"

#include <inttypes.h>
#include <stdio.h>

/* --- taking back ------------------------------------------------------------------------------ */

/* Pauses grow from the second loss on: the first is most often the worker's own end. */
static int64_t tasks_give_pause_ms(const struct task *task)
{
    uint64_t doublings = task->losses < 2 ? 0 : task->losses - 2;

    if (task->losses < 2)
        return 0;
    return (int64_t)(HEARTBEAT_MS / 2) << (doublings < 6 ? doublings : 6);
}

static void give_queue_again(struct core *core, struct task *task)
{
    task->not_before_boot_ms = core->now + tasks_give_pause_ms(task);
    tasks_list_put(task, true);
    tasks_persist_state(core, task);
    tasks_timer(core, core->now);
}

static void tasks_give_give_up(struct core *core, struct task *task, unsigned status,
                               const char *why, uint64_t worker)
{
    const char *besides =
        task->excused == 0
            ? ""
            : out_printf(core, ", besides %" PRIu64 " that do not count,", task->excused);
    const char *text = out_printf(
        core,
        "task %" PRIu64 " (%s) of queue %s: %s; it was tried %" PRIu64 " times%s and is not "
        "tried again",
        task->number, task->fn, task->queue->name, why, task->losses, besides);

    tasks_end(core, task, &(struct task_end){.state = TASK_FAILED, .status = status, .text = text},
              worker);
}

/* It has no lease any more. Its losses are too many at one more loss only: who attached since may
 * want fewer, and what is merely given back has not failed. */
static void give_again_or_never(struct core *core, struct task *task, bool lost, unsigned status,
                                const char *why, uint64_t worker)
{
    if (task->cancel)
        tasks_end(core, task,
                  &(struct task_end){.state = TASK_CANCELLED,
                                     .status = MUSTER_E_CANCELLED,
                                     .text = "it was cancelled"},
                  worker);
    else if ((lost && task->losses >= task->queue->max_attempts) || task->attempt >= TASK_TRIES_MAX)
        tasks_give_give_up(core, task, status, why, worker);
    else
        give_queue_again(core, task);
}

/* A task with a part of its result here has begun, whatever is said of it. */
static bool give_was_begun(const struct task *task)
{
    return task->parts_have > 0 && task->parts_attempt == task->attempt;
}

void tasks_give_back(struct core *core, struct task_lease *lease, enum task_over how,
                     unsigned status, const char *why)
{
    struct task *task = lease->task;
    uint64_t worker = lease->worker->incarnation;

    tasks_lease_free(lease);
    if (task == NULL)
        return;
    if (how == TASK_COUNTED)
        task->losses++;
    else if (how == TASK_EXCUSED || give_was_begun(task))
        task->excused++;
    else
        task->attempt--;
    give_again_or_never(core, task, how == TASK_COUNTED, status, why, worker);
}

void tasks_node_left(struct core *core, uint64_t incarnation)
{
    struct task_worker *worker = core->tasks != NULL ? core->tasks->workers : NULL;

    for (; worker != NULL; worker = worker->next)
        if (worker->node == incarnation)
            worker->node_left = true;
}

/* A worker begins what it has confirmed, in order. A task that waits behind others does nothing
 * wrong. It may have begun, if the ends of those before it were lost: its number is not given
 * again. */
static enum task_over give_what_it_was(const struct task_lease *lease, uint64_t place)
{
    if (!tasks_is_confirmed(lease))
        return TASK_NOT_BEGUN;

    bool its_turn = lease->loaded || lease->begun_boot_ms > 0 || place < lease->worker->slots;

    return its_turn && !lease->worker->node_left ? TASK_COUNTED : TASK_EXCUSED;
}

void tasks_worker_lost(struct core *core, struct task_worker *worker, unsigned status,
                       const char *why)
{
    const char *text =
        out_printf(core, "worker %" PRIu64 " (process %" PRIu64 " on %s) was lost: %s",
                   worker->index, worker->pid, worker->host, why);

    tasks_values_lost(core, worker, text);
    while (worker->last != NULL) /* from behind, so that the first is the first again */
        tasks_give_back(core, worker->last, give_what_it_was(worker->last, worker->held - 1),
                        status, text);
    tasks_persist_worker(core, worker, RECORD_WORKER_LOST);
    tasks_worker_free(core, worker);
}

/* The attempt may run on: its lease stays with the worker, so that nothing else is given for it and
 * no error is raised while it runs. */
static void give_take_away(struct core *core, struct task_lease *lease)
{
    struct task *task = lease->task;

    lease->task = NULL;
    task->lease = NULL;
    task->losses++;
    task->late = true;
    give_again_or_never(
        core, task, true, MUSTER_E_TASK_TIMEOUT,
        out_printf(core, "no word of it for %" PRIu64 " ms, the last time on worker %" PRIu64,
                   task->timeout_ms, lease->worker->index),
        lease->worker->incarnation);
    if (lease->worker->mapped)
        tasks_worker_alive(core, lease->worker, MUSTER_OK);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void tasks_give_fill(struct core *core, struct wire_task_entry *entry,
                            const struct task_lease *lease)
{
    *entry = (struct wire_task_entry){.queue = lease->queue_id,
                                      .number = lease->number,
                                      .attempt = lease->attempt,
                                      .kind = (uint64_t)lease->kind,
                                      .serial = lease->serial,
                                      .fn = ""};
    if (lease->kind == TASK_KIND_RESOURCE && lease->queue != NULL) {
        const struct task_resource *resource = &lease->queue->resources[lease->number - 1];
        entry->fn = out_text(core, resource->fn);
        entry->args = tasks_out_bytes(core, resource->args, resource->args_size);
    } else if (lease->task != NULL) {
        const struct task *task = lease->task;
        entry->fn = out_text(core, task->fn);
        entry->timeout_ms = task->timeout_ms;
        entry->args = tasks_out_bytes(core, task->bytes, task->args_size);
        entry->uses = tasks_out_bytes(core, task->bytes + task->args_size, task->uses_size);
    }
}

static size_t give_size_of(const struct task_lease *lease)
{
    if (lease->kind == TASK_KIND_RESOURCE)
        return lease->queue == NULL ? TASK_ENTRY_BYTES
                                    : TASK_ENTRY_BYTES + NAME_MAX_BYTES +
                                          lease->queue->resources[lease->number - 1].args_size;
    return lease->task == NULL ? TASK_ENTRY_BYTES
                               : TASK_ENTRY_BYTES + NAME_MAX_BYTES + lease->task->args_size +
                                     lease->task->uses_size;
}

static bool tasks_give_is_due(const struct core *core, const struct task_worker *worker,
                              const struct task_lease *lease)
{
    if (lease->serial <= worker->received)
        return false; /* it has it */
    return lease->sent_boot_ms == 0 || core->now >= lease->sent_boot_ms + lease->every_ms;
}

/* From the first that is due on: one frame, of as many as fit. NULL: none was. */
static struct task_lease *tasks_give_send_frame(struct core *core, struct task_worker *worker,
                                                struct task_lease *lease)
{
    struct wire_task_entry *items = NULL;
    struct wire_msg *message;
    size_t count = 0, bytes = 0;

    while (lease != NULL && !tasks_give_is_due(core, worker, lease))
        lease = lease->next;
    if (lease == NULL)
        return NULL;
    items = arena_alloc(&core->out->arena, (worker->held + 1) * sizeof *items);
    MUST(items != NULL);
    for (; lease != NULL && count < TASKS_FRAME_MAX; lease = lease->next) {
        size_t size = give_size_of(lease);

        if (!tasks_give_is_due(core, worker, lease))
            continue;
        if (count > 0 && bytes + size > TASK_FRAME_BYTES)
            break;
        lease->every_ms = lease->sent_boot_ms == 0             ? RESEND_MIN_MS
                          : lease->every_ms * 2 > HEARTBEAT_MS ? HEARTBEAT_MS
                                                               : lease->every_ms * 2;
        lease->sent_boot_ms = core->now;
        tasks_timer(core, core->now + lease->every_ms);
        tasks_give_fill(core, &items[count++], lease);
        bytes += size;
    }
    message = send_to(core, worker->route, worker->job, WIRE_WORK);
    message->u.work.tasks.items = items;
    message->u.work.tasks.count = count;
    return lease;
}

void tasks_send_again(struct core *core, struct task_worker *worker)
{
    struct task_lease *lease = worker->mapped ? worker->first : NULL;

    while (lease != NULL)
        lease = tasks_give_send_frame(core, worker, lease);
}

/* --- giving ----------------------------------------------------------------------------------- */

void tasks_lease_new(struct core *core, struct task_worker *worker, struct task_queue *queue,
                     struct task *task, uint64_t number, uint64_t attempt, enum wire_task_kind kind)
{
    struct task_lease *lease = tasks_lease_add(worker, queue, task, number, attempt, kind);

    lease->serial = ++worker->serial;
    lease->since_boot_ms = core->now;
    lease->begun_boot_ms = worker->held <= worker->slots ? core->now : 0; /* else see tasks_watch */
}

static struct task *give_suspect_of(struct core *core, const struct task_queue *queue)
{
    for (struct task *task = queue->suspects_first; task != NULL; task = task->next) {
        if (core->now >= task->not_before_boot_ms)
            return task;
        tasks_timer(core, task->not_before_boot_ms);
    }
    return NULL;
}

static bool give_serves(const struct task_worker *worker, const struct task_queue *queue)
{
    return worker->mapped && strcmp(worker->job, queue->job) == 0;
}

static void give(struct core *core, struct task_worker *worker, struct task *task)
{
    tasks_list_take(task);
    task->attempt++;
    task->late = false;
    worker->alone = task->alone;
    tasks_lease_new(core, worker, task->queue, task, task->number, task->attempt, TASK_KIND_TASK);
    tasks_persist_state(core, task);
}

/* One task for this worker, of this queue, as long as it holds less than `limit`. */
static bool give_one(struct core *core, struct task_worker *worker, struct task_queue *queue,
                     uint64_t limit)
{
    if (!give_serves(worker, queue) || queue->error_pending || queue->first == NULL ||
        worker->held >= limit || worker->alone || worker->reserved || tasks_is_stuck(worker) ||
        !tasks_values_give(core, worker, queue))
        return false;
    if (!tasks_value_fails(core, queue->first))
        give(core, worker, queue->first);
    return true;
}

/* It has an attempt that was taken away, and may have it for ever. */
static bool give_hangs(const struct task_worker *worker)
{
    for (const struct task_lease *lease = worker->first; lease != NULL; lease = lease->next)
        if (tasks_is_taken_away(lease))
            return true;
    return false;
}

/* A suspect waits for a worker that holds nothing; the one that comes nearest to that gets nothing
 * more until then. */
static void give_suspects(struct core *core, struct task_queue *queue)
{
    struct task *task;

    while (!queue->error_pending && (task = give_suspect_of(core, queue)) != NULL) {
        struct task_worker *best = NULL;

        if (tasks_value_fails(core, task))
            continue;
        for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
            if (give_serves(w, queue) && w->takes > 0 && !w->alone && !w->reserved &&
                !give_hangs(w) && (best == NULL || w->held < best->held))
                best = w;
        if (best == NULL)
            return;
        if (!tasks_values_give(core, best, queue) || best->held > 0) {
            best->reserved = true;
            return;
        }
        give(core, best, task);
    }
}

static bool give_has_doubtful(const struct task_worker *worker, const struct task_queue *queue)
{
    return give_serves(worker, queue) && !queue->error_pending && queue->first != NULL &&
           tasks_is_doubtful(queue->first);
}

static bool give_doubtful_waits(const struct core *core, const struct task_worker *worker)
{
    for (const struct task_queue *q = core->tasks->queues; q != NULL; q = q->next)
        if (give_has_doubtful(worker, q))
            return true;
    return false;
}

/* Free slots get first what was lost with its worker, then anything. Nothing is fetched ahead of
 * what was lost and waits for a slot. */
enum turn { LOST, FREE, AHEAD };

static bool give_round(struct core *core, enum turn turn)
{
    bool any = false;

    for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next) {
        if (turn == AHEAD && give_doubtful_waits(core, w))
            continue;
        for (struct task_queue *q = core->tasks->queues; q != NULL; q = q->next)
            if (turn == FREE || give_has_doubtful(w, q) == (turn == LOST))
                any |= give_one(core, w, q, turn == AHEAD ? w->takes : w->slots);
    }
    return any;
}

void tasks_give(struct core *core)
{
    struct tasks *tasks = core->tasks;

    for (struct task_worker *w = tasks->workers; w != NULL; w = w->next)
        w->reserved = false;
    for (struct task_queue *q = tasks->queues; q != NULL; q = q->next)
        for (struct task_worker *w = tasks->workers; w != NULL && !q->error_pending; w = w->next)
            if (give_serves(w, q))
                tasks_values_give(core, w, q);
    for (struct task_queue *q = tasks->queues; q != NULL; q = q->next) {
        if (q->first != NULL && !q->error_pending)
            tasks_value_fails(core,
                              q->first); /* also if no worker is there to whom it could be given */
        give_suspects(core, q);
    }
    for (enum turn turn = LOST; turn <= AHEAD; turn++)
        while (give_round(core, turn))
            continue;
    for (struct task_worker *w = tasks->workers; w != NULL; w = w->next)
        tasks_send_again(core, w);
}

/* --- time ------------------------------------------------------------------------------------- */

/* Time runs from the turn at the worker: what waits behind others there does nothing wrong. */
static void give_check_leases(struct core *core, struct task_worker *worker)
{
    for (struct task_lease *lease = worker->first, *next; lease != NULL; lease = next) {
        int64_t until = 0;

        next = lease->next;
        if (lease->task != NULL && lease->task->timeout_ms > 0 && lease->begun_boot_ms > 0)
            until = tasks_word_boot_ms(lease) + (int64_t)lease->task->timeout_ms;
        if (until > 0 && core->now >= until)
            give_take_away(core, lease);
        else if (until > 0)
            tasks_timer(core, until);
        if (lease->serial > worker->received && lease->sent_boot_ms > 0)
            tasks_timer(core, lease->sent_boot_ms + lease->every_ms);
    }
}

/* Why the worker is lost now, or NULL. */
static const char *give_lost_why(struct core *core, const struct task_worker *worker)
{
    const struct peer *node = worker->node != 0 ? peer_find(core, worker->node) : NULL;
    int64_t silent_ms = core->now - worker->heard_boot_ms;
    int64_t limit_ms = worker->mapped ? LOST_MS : ENDING_MS;

    /* a server that is fenced is kept (servers.c), and may still be there: the worker beats, or
     * does not */
    if (node != NULL &&
        (node->state == NODE_LOST || (node->state == NODE_FENCED && node->role != ROLE_PS)))
        return "the node that it lives in was";
    if (silent_ms >= limit_ms)
        return out_printf(core, "silent for %" PRId64 " ms", silent_ms);
    tasks_timer(core, worker->heard_boot_ms + limit_ms);
    return NULL;
}

void tasks_tick(struct core *core)
{
    struct tasks *tasks = core->tasks;

    if (tasks == NULL)
        return;
    tasks->timer_boot_ms = INT64_MAX;
    tasks->to_cancel = TASKS_CANCEL_BYTES;
    for (struct task_worker *w = tasks->workers, *next; w != NULL; w = next) {
        const char *why = give_lost_why(core, w);

        next = w->next;
        if (why != NULL)
            tasks_worker_lost(core, w, MUSTER_E_LOST, why);
        else
            give_check_leases(core, w);
        if (why == NULL)
            tasks_watch(core, w);
    }
    tasks_give(core);
    for (struct task_queue *q = tasks->queues; q != NULL; q = q->next)
        tasks_raise(core, q);
    tasks_flush(core);
}

void tasks_message(struct core *core, const struct input *in)
{
    if (in->message->type >= WIRE_WORK_HELLO)
        tasks_worker_message(core, in);
    else
        tasks_queue_message(core, in);
    for (struct task_queue *q = core->tasks->queues; q != NULL; q = q->next)
        tasks_raise(core, q);
    tasks_flush(core);
}
