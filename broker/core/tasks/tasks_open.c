/* tasks_open - a coordinator takes a queue over: a new one, or one that a former coordinator left;
 * and how room is made for new ones. See tasks.h. */
#include "broker/core/tasks/tasks.h"

#include "schema/keys/keys.h"

#include <stdio.h>

static void open_answer(struct core *core, const struct input *in, const struct task_queue *queue,
                        unsigned code, const char *text)
{
    struct wire_msg *message = send_to(core, in->route, in->message->up.job, WIRE_QUEUE_OPENED);
    struct wire_queue_opened *m = &message->u.queue_opened;

    m->nonce = in->message->u.queue_open.nonce;
    m->code = code;
    m->text = text;
    if (queue == NULL)
        return;
    m->queue = queue->queue;
    m->taken = queue->taken;
    m->ended = queue->ended;
    m->released = queue->released;
    m->raised = queue->raised;
    m->error_number = queue->error_pending ? queue->error_number : 0;
    if (!queue->error_pending && queue->raises_told < queue->raised &&
        queue->error_number > 0) { /* it is to be raised again */
        m->raised = queue->raised - 1;
        m->error_number = queue->error_number;
    }
    m->resources = queue->resources_count;
}

static void tasks_open_drop(struct core *core, struct task_queue *queue)
{
    struct record *row = tasks_persist(core, RECORD_TASK_QUEUE_DROP);

    row->u.task_range = (struct record_task_range){
        .queue = queue->queue, .to = TASK_NUMBER_MAX, .unix_ms = core->now_unix};
    for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        for (size_t i = 0; i < w->made_count; i++)
            if (w->made[i].queue == queue->queue)
                tasks_gone(w, queue->queue);
    tasks_queue_left(core, queue->queue); /* its rows may be there for a while */
    tasks_queue_drop(core, queue);
    for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        if (w->mapped && (w->held > 0 || w->gone_count > 0))
            tasks_worker_alive(core, w, MUSTER_OK); /* what it has of that queue is to end */
}

/* A worker names values and attempts by their queue's number, and outlives databases. So each start
 * of a broker gives other numbers: else a value of a lost queue could pass for one of a new queue.
 */
static uint64_t tasks_open_new_id(struct core *core)
{
    struct tasks *tasks = core->tasks;

    if (!tasks->ids_begun)
        tasks->queue_id += core->options.start_id >> 32;
    tasks->ids_begun = true;
    do
        tasks->queue_id = tasks->queue_id % TASK_QUEUE_ID_MAX + 1;
    while (!tasks_queue_number_is_free(core, tasks->queue_id));
    return tasks->queue_id;
}

/* The queue has no work left, and nobody holds it. */
static bool tasks_open_is_over(const struct core *core, const struct task_queue *queue)
{
    return queue->live == 0 && queue->leases == 0 &&
           core_passed_ms(core, queue->heard_boot_ms) >= STUCK_MS;
}

/* Of two that are over: the one whose results nobody wants any more, else the one that was left
 * longer ago. */
static bool open_goes_before(const struct task_queue *a, const struct task_queue *b)
{
    bool a_is_empty = a->released == a->taken, b_is_empty = b->released == b->taken;

    if (a_is_empty != b_is_empty)
        return a_is_empty;
    if (a->heard_boot_ms != b->heard_boot_ms)
        return a->heard_boot_ms < b->heard_boot_ms;
    return a->created_unix_ms < b->created_unix_ms;
}

static size_t open_queues_max(const struct core *core)
{
    return core->options.task_queues_max > 0 ? core->options.task_queues_max : TASK_QUEUES_MAX;
}

/* Those that are over count as well: they stay. */
static bool open_queues_share_is_left(const struct core *core, const char *key_jobs)
{
    size_t own = 0;

    if (!key_is_bounded(key_jobs))
        return true;
    for (const struct task_queue *queue = core->tasks->queues; queue != NULL; queue = queue->next)
        own += key_covers(key_jobs, queue->job);
    return share_is_left(own, core->tasks->queues_count, open_queues_max(core));
}

static struct task_queue *open_first_that_is_over(const struct core *core, const char *jobs)
{
    struct task_queue *first = NULL;

    for (struct task_queue *queue = core->tasks->queues; queue != NULL; queue = queue->next)
        if (key_covers(jobs, queue->job) && tasks_open_is_over(core, queue) &&
            (first == NULL || open_goes_before(queue, first)))
            first = queue;
    return first;
}

/* Every job that ends leaves a queue: one that is over goes when there is no room for a new one.
 * Of a key that has its share it is one of its own. NULL: there is room. */
static const char *tasks_open_make_room(struct core *core, const char *key_jobs)
{
    bool share = open_queues_share_is_left(core, key_jobs);
    struct task_queue *first;

    if (share && core->tasks->queues_count < open_queues_max(core))
        return NULL;
    first = open_first_that_is_over(core, share ? "*" : key_jobs);
    if (first != NULL) {
        tasks_open_drop(core, first);
        return NULL;
    }
    return share ? "the broker has as many queues as there may be, and each has a coordinator, or "
                   "tasks that have not ended; begin one of them again (`muster tasks` lists a "
                   "job's)"
                 : "this key has used up its share of queues; open one of those that it has "
                   "instead (`muster tasks` lists a job's)";
}

/* The next numbers are the new one's: neither what the former one's raise cancelled beyond `taken`,
 * nor what a raise of it would that still waits for an attempt. The new one is told of the error,
 * and raises it itself. */
static void open_another_holds_it(struct task_queue *queue)
{
    if (queue->cancelled_to > queue->taken)
        queue->cancelled_to = queue->taken;
    queue->raise_wanted = queue->raise_to = 0;
    tasks_values_again(queue);
}

void tasks_queue_open(struct core *core, const struct input *in)
{
    const struct wire_queue_open *m = &in->message->u.queue_open;
    const struct wire_up *up = &in->message->up;
    struct task_queue *queue = tasks_queue_named(core, up->job, m->name);

    if (!wire_job_name_ok(up->job) || !wire_job_name_ok(m->name) || up->incarnation == 0) {
        open_answer(core, in, NULL, MUSTER_E_ARGUMENT,
                    "a queue needs a job and a name of letters, digits, '.', '_' and '-'");
        return;
    }
    if (queue != NULL && m->fresh && queue->coordinator != up->incarnation) {
        tasks_open_drop(core, queue);
        queue = NULL;
    }
    if (queue == NULL) {
        const char *refusal = tasks_open_make_room(core, in->key_jobs);
        if (refusal != NULL) {
            open_answer(core, in, NULL, MUSTER_E_BUSY, refusal);
            return;
        }
        queue = tasks_queue_create(core, tasks_open_new_id(core), up->job, m->name);
        queue->created_unix_ms = core->now_unix;
    }
    if (queue->coordinator != up->incarnation)
        open_another_holds_it(queue);
    queue->coordinator = up->incarnation;
    queue->mapped = true;
    queue->heard_boot_ms = core->now;
    queue->route = in->route;
    queue->max_queued = m->max_queued > 0 ? m->max_queued : TASK_QUEUED_DEFAULT;
    queue->max_attempts = m->max_attempts > 0 ? m->max_attempts : TASK_ATTEMPTS_DEFAULT;
    tasks_list_again(queue);
    queue->dirty = true;
    open_answer(core, in, queue, MUSTER_OK, "");
}
