/* tasks_queue - what coordinators say: add, cancel, raise, and what they are told. See tasks.h */
#include "broker/core/tasks/tasks.h"

#include "schema/keys/keys.h"

#include <inttypes.h>
#include <stdio.h>

/* --- who is there ----------------------------------------------------------------------------- */

/* A parameter server that is missing, for people; "": none. */
static const char *queue_missing_ps(struct core *core, const char *job_name)
{
    const struct job *job = job_find(core, job_name);
    const struct peer *peer = job != NULL ? servers_missing(core, job) : NULL;

    if (peer == NULL)
        return "";
    return out_printf(core,
                      "parameter server %" PRIu64 " of job %s (process %" PRIu64
                      " on %s) %s and is not back; start it again, then go on from the "
                      "newest checkpoint",
                      peer->rank, job_name, peer->pid, peer->host,
                      peer->state == NODE_LOST     ? "was lost"
                      : peer->state == NODE_FENCED ? "did not follow the job into its next launch"
                      : peer->leave_why == LEAVE_PREEMPTED ? "was preempted"
                                                           : "failed");
}

static uint64_t queue_live_workers(const struct core *core, const char *job)
{
    uint64_t count = 0;

    for (const struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        count += w->mapped && strcmp(w->job, job) == 0;
    return count;
}

static uint64_t tasks_queue_queue_of(const struct wire_msg *m)
{
    switch (m->type) {
    case WIRE_TASKS_ADD:
        return m->u.tasks_add.queue;
    case WIRE_TASKS_GET:
        return m->u.tasks_get.queue;
    case WIRE_RAISE:
        return m->u.raise.queue;
    case WIRE_TASK_CANCEL:
        return m->u.task_cancel.queue;
    case WIRE_RESULT_GET:
        return m->u.result_get.queue;
    case WIRE_QUEUE_BEAT:
        return m->u.queue_beat.queue;
    case WIRE_RESOURCE_ADD:
        return m->u.resource_add.queue;
    default:
        return 0;
    }
}

static void queue_answer_alive(struct core *core, const struct input *in,
                               const struct task_queue *queue, unsigned code)
{
    const char *job = in->message->up.job;
    struct wire_msg *message = send_to(core, in->route, job, WIRE_QUEUE_ALIVE);

    message->u.queue_alive.queue = tasks_queue_queue_of(in->message);
    message->u.queue_alive.code = code;
    if (code != MUSTER_OK)
        return;
    message->u.queue_alive.taken = queue->taken;
    message->u.queue_alive.ended = queue->ended;
    message->u.queue_alive.leased = queue->leases;
    message->u.queue_alive.workers = queue_live_workers(core, job);
    message->u.queue_alive.error_number = queue->error_pending ? queue->error_number : 0;
    message->u.queue_alive.unavailable = queue_missing_ps(core, job);
}

/* --- add -------------------------------------------------------------------------------------- */

/* As jobs_refusal: what further arguments of this key's jobs may take. */
static size_t queue_bytes_left(const struct core *core, const char *key_jobs)
{
    size_t most = core->options.task_key_bytes_max > 0 ? core->options.task_key_bytes_max
                                                       : TASK_KEY_BYTES_MAX;
    size_t own = 0, all = 0;

    if (!key_is_bounded(key_jobs))
        return SIZE_MAX;
    for (const struct task_queue *queue = core->tasks->queues; queue != NULL; queue = queue->next) {
        size_t bytes = queue->bytes + queue->value_bytes;

        all += bytes;
        own += key_covers(key_jobs, queue->job) ? bytes : 0;
    }
    return all + own < most ? most - all - own : 0;
}

/* NULL: it may be taken. */
static const char *tasks_queue_refused(const struct core *core, const struct task_queue *queue,
                                       const struct wire_task_entry *entry, size_t left)
{
    size_t bytes_max =
        core->options.task_bytes_max > 0 ? core->options.task_bytes_max : TASK_QUEUE_BYTES_MAX;

    if (queue->live >= queue->max_queued)
        return "the queue is full; wait until a task has ended";
    if (queue->bytes + entry->args.size > bytes_max)
        return "the arguments of the queue's tasks need more memory than a queue may take; wait "
               "until a task has ended";
    if (entry->args.size >= left)
        return "the arguments of this key's tasks need more memory than this broker still has for "
               "them; wait until a task has ended";
    if (queue->taken == TASK_NUMBER_MAX)
        return "the queue has used up its numbers; begin it again";
    return NULL;
}

/* It is in no list. */
static void queue_end_queued(struct core *core, struct task *task, const char *why)
{
    tasks_end(
        core, task,
        &(struct task_end){.state = TASK_CANCELLED, .status = MUSTER_E_CANCELLED, .text = why}, 0);
}

static void queue_take_task(struct core *core, struct task_queue *queue,
                            const struct wire_task_entry *entry)
{
    struct record *row = tasks_persist(core, RECORD_TASK);
    struct record_task *task = &row->u.task;

    *task = (struct record_task){.queue = queue->queue,
                                 .number = entry->number,
                                 .state = TASK_QUEUED,
                                 .fn = out_text(core, entry->fn),
                                 .args = tasks_out_bytes(core, entry->args.data, entry->args.size),
                                 .uses = tasks_out_bytes(core, entry->uses.data, entry->uses.size),
                                 .timeout_ms = entry->timeout_ms,
                                 .unix_ms = core->now_unix,
                                 .text = ""};
    struct task *added = tasks_create(core, queue, task);
    queue->taken = entry->number;
    queue->dirty = true;
    if (entry->number > queue->cancelled_to)
        tasks_list_put(added, false);
    else
        queue_end_queued(core, added,
                         "an error of its queue was raised before it reached the broker");
}

static void queue_take_add(struct core *core, const struct input *in, struct task_queue *queue)
{
    const struct wire_tasks_add *m = &in->message->u.tasks_add;
    const char *why = NULL;
    size_t left = queue_bytes_left(core, in->key_jobs);
    struct wire_msg *answer;

    for (size_t i = 0; i < m->tasks.count && why == NULL; i++) {
        const struct wire_task_entry *entry = &m->tasks.items[i];

        if (entry->number <= queue->taken)
            continue; /* a repetition */
        if (entry->number > queue->taken + 1)
            break; /* what is before it was lost, and comes again first */
        why = tasks_queue_refused(core, queue, entry, left);
        if (why == NULL) {
            queue_take_task(core, queue, entry);
            left -= left == SIZE_MAX ? 0 : entry->args.size;
        }
    }
    answer = send_to(core, in->route, queue->job, WIRE_TASKS_TAKEN);
    answer->u.tasks_taken =
        (struct wire_tasks_taken){.queue = queue->queue,
                                  .taken = queue->taken,
                                  .code = why != NULL ? MUSTER_E_BUSY : MUSTER_OK,
                                  .text = why != NULL ? why : ""};
    tasks_may_wait(core, why == NULL ? m->tasks.count : SIZE_MAX);
}

/* Said again, by this coordinator or one that came after it: not what another program makes under
 * this number. */
static bool tasks_queue_is_same(const struct task_resource *resource,
                                const struct wire_resource_add *m)
{
    return strcmp(resource->fn, m->fn) == 0 && resource->args_size == m->args.size &&
           (m->args.size == 0 || memcmp(resource->args, m->args.data, m->args.size) == 0);
}

static void queue_put_resource(struct core *core, struct task_queue *queue,
                               const struct wire_resource_add *m)
{
    struct record *row = tasks_persist(core, RECORD_TASK_RESOURCE);

    row->u.task_resource =
        (struct record_task_resource){.queue = queue->queue,
                                      .number = m->number,
                                      .fn = out_text(core, m->fn),
                                      .args = tasks_out_bytes(core, m->args.data, m->args.size)};
    tasks_resource_create(queue, m->number, m->fn, (struct wire_bytes){m->args.data, m->args.size});
}

static void tasks_queue_take_resource(struct core *core, const struct input *in,
                                      struct task_queue *queue)
{
    const struct wire_resource_add *m = &in->message->u.resource_add;
    bool next = m->number == queue->resources_count + 1 && m->number <= TASK_RESOURCES_MAX;
    struct wire_msg *answer;
    unsigned code = MUSTER_OK;
    const char *text = "";

    if (next &&
        sizeof(struct task_resource) + m->args.size >= queue_bytes_left(core, in->key_jobs)) {
        code = MUSTER_E_BUSY;
        text = "the tasks and per-worker values of this key need more memory than this broker "
               "still has for them; wait until a task has ended";
    } else if (next) {
        queue_put_resource(core, queue, m);
    } else if (m->number == 0 || m->number > queue->resources_count) {
        code = MUSTER_E_ARGUMENT;
        text = m->number <= TASK_RESOURCES_MAX && m->number > 0
                   ? "the per-worker value before this one was refused; start the coordinator "
                     "again when there is room for it"
                   : "a queue has no room for another per-worker value";
    } else if (!tasks_queue_is_same(&queue->resources[m->number - 1], m)) {
        code = MUSTER_E_EXISTS;
        text = "this per-worker value is another one";
    }
    answer = send_to(core, in->route, queue->job, WIRE_RESOURCE_TAKEN);
    answer->u.resource_taken = (struct wire_resource_taken){
        .queue = queue->queue, .number = m->number, .code = code, .text = text};
}

/* --- cancel and raise ------------------------------------------------------------------------- */

static void queue_take_cancel(struct core *core, struct task_queue *queue, uint64_t number)
{
    struct task *task = tasks_find(core, queue->queue, number);

    if (task == NULL)
        return; /* it has ended, which is told */
    if (task->lease == NULL) {
        tasks_list_take(task);
        queue_end_queued(core, task, "it was cancelled before it began");
        return;
    }
    task->cancel = true;
    if (task->lease->worker->mapped)
        tasks_worker_alive(core, task->lease->worker, MUSTER_OK);
}

static void queue_answer_raise(struct core *core, struct task_queue *queue, uint64_t raise,
                               bool any)
{
    struct wire_msg *message = send_to(core, queue->route, queue->job, WIRE_RAISED);
    struct wire_raised *m = &message->u.raised;

    m->queue = queue->queue;
    m->raise = raise;
    m->cancelled_to = queue->cancelled_to;
    m->ended = queue->ended;
    m->text = "";
    if (!any)
        return;
    m->cancelled = queue->counts ? queue->cancelled : 0;
    m->number = queue->error_number;
    m->status = queue->error_status;
    m->code = queue->error_code;
    m->text = out_text(core, queue->error_text);
}

/* Forgets queued ones without a row each: one for all of them stands for their ends. False: some
 * are left for the next pass, so that other jobs are served while many are cancelled. */
static bool queue_cancel_queued(struct core *core, struct task_queue *queue)
{
    struct record_task_range range = {.queue = queue->queue, .unix_ms = core->now_unix};
    size_t bytes = 0;
    struct task *task;

    while (bytes < core->tasks->to_cancel && (task = tasks_first_queued(queue)) != NULL) {
        range.from = range.from == 0 ? task->number : range.from;
        range.to = task->number;
        tasks_list_take(task);
        bytes += tasks_forget(core, task);
        queue->ended++;
        queue->cancelled++;
    }
    core->tasks->to_cancel -= bytes < core->tasks->to_cancel ? bytes : core->tasks->to_cancel;
    if (range.from > 0) {
        tasks_persist(core, RECORD_TASK_CANCEL)->u.task_range = range;
        queue->dirty = true;
    }
    return tasks_first_queued(queue) == NULL;
}

/* After a broker's start: a worker was given something and has not said yet what it has. An attempt
 * that was taken away from it stands nowhere else. Bounded: it is lost after ENDING_MS. */
static bool tasks_queue_is_awaited(const struct core *core, const struct task_queue *queue)
{
    for (const struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        if (!w->mapped && strcmp(w->job, queue->job) == 0)
            return true;
    return false;
}

/* The queue goes on afterwards as if nothing had been. */
void tasks_raise(struct core *core, struct task_queue *queue)
{
    if (queue->raise_wanted == 0 || queue->leases > 0 || !queue->error_pending ||
        tasks_queue_is_awaited(core, queue))
        return;
    tasks_flush(core); /* the ends so far are told before the cancelled ones are counted */
    if (!queue_cancel_queued(core, queue)) {
        tasks_timer(core, core->now);
        return;
    }
    queue->cancelled += queue->raise_to > queue->taken ? queue->raise_to - queue->taken : 0;
    queue->cancelled_to = queue->taken > queue->raise_to ? queue->taken : queue->raise_to;
    queue->error_pending = queue->error_said = false;
    queue->raised = queue->raise_wanted;
    queue->raise_wanted = 0;
    queue->dirty = true;
    if (queue->mapped)
        queue_answer_raise(core, queue, queue->raised, true);
}

/* Calls of the coordinator have returned so many of the raised errors: the next coordinator is not
 * told again. */
static void tasks_queue_told(struct task_queue *queue, uint64_t count)
{
    if (count <= queue->raises_told || count > queue->raised)
        return;
    queue->raises_told = count;
    queue->dirty = true;
}

static void queue_take_raise(struct core *core, struct task_queue *queue,
                             const struct wire_raise *m)
{
    const uint64_t raise = m->raise;

    /* its answer was lost; but if an error pends it is that one's wish, lest it be repeated for
     * ever */
    if (raise < queue->raised || (raise == queue->raised && !queue->error_pending)) {
        queue_answer_raise(core, queue, raise, raise == queue->raised && queue->error_number != 0);
        return;
    }
    if (raise > queue->raised)
        tasks_queue_told(queue, queue->raised);
    if (!queue->error_pending) {
        queue_answer_raise(core, queue, raise, false);
        return;
    }
    queue->raise_wanted = raise;
    queue->raise_to = m->scheduled;
    tasks_raise(core, queue);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void queue_take_get(struct core *core, const struct input *in,
                           const struct task_queue *queue)
{
    struct action *action = action_add(core, ACTION_SEND_TASKS);
    const struct wire_tasks_get *m = &in->message->u.tasks_get;
    uint64_t to = m->to > 0 && m->to < queue->taken ? m->to : queue->taken;

    action->route = in->route;
    action->job = out_text(core, queue->job);
    action->message.type = WIRE_TASKS_PAGE;
    core_fill_down(core, queue->job, &action->message.down);
    action->message.down.job = action->job;
    action->message.u.tasks_page =
        (struct wire_tasks_page){.queue = queue->queue,
                                 .nonce = m->nonce,
                                 .from = m->from,
                                 .next = to,
                                 .ended = queue->ended,
                                 .error_number = queue->error_pending ? queue->error_number : 0};
}

static void queue_take_result_get(struct core *core, const struct input *in,
                                  const struct task_queue *queue)
{
    struct action *action = action_add(core, ACTION_SEND_TASK_RESULT);

    action->route = in->route;
    action->job = out_text(core, queue->job);
    MUST(wire_copy(&action->message, in->message, &core->out->arena));
    action->number = in->message->u.result_get.number;
}

static void tasks_queue_take_beat(struct core *core, const struct input *in,
                                  struct task_queue *queue)
{
    uint64_t released = in->message->u.queue_beat.released;

    tasks_queue_told(queue, in->message->u.queue_beat.told);
    if (released > queue->released && released <= queue->taken) {
        struct record *row = tasks_persist(core, RECORD_TASK_RELEASE);

        row->u.task_range = (struct record_task_range){
            .queue = queue->queue, .to = released, .unix_ms = core->now_unix};
        queue->released = released;
        queue->dirty = true;
    }
    queue_answer_alive(core, in, queue, MUSTER_OK);
}

/* Another coordinator of the same name holds it now, or this start of the broker does not know the
 * route. */
static bool queue_is_theirs(struct core *core, const struct input *in, struct task_queue *queue)
{
    const struct wire_up *up = &in->message->up;
    bool theirs =
        queue != NULL && strcmp(queue->job, up->job) == 0 && queue->coordinator == up->incarnation;

    if (theirs && queue->mapped && queue->route == in->route) {
        queue->heard_boot_ms = core->now;
        return true;
    }
    queue_answer_alive(core, in, NULL, theirs ? MUSTER_E_HELLO : MUSTER_E_STALE);
    return false;
}

void tasks_queue_message(struct core *core, const struct input *in)
{
    struct task_queue *queue;

    tasks_of(core);
    if (in->message->type == WIRE_QUEUE_OPEN) {
        tasks_queue_open(core, in);
        return;
    }
    queue = tasks_queue_find(core, tasks_queue_queue_of(in->message));
    if (!queue_is_theirs(core, in, queue))
        return;
    switch (in->message->type) {
    case WIRE_TASKS_ADD:
        queue_take_add(core, in, queue);
        break;
    case WIRE_RESOURCE_ADD:
        tasks_queue_take_resource(core, in, queue);
        break;
    case WIRE_TASKS_GET:
        queue_take_get(core, in, queue);
        break;
    case WIRE_RESULT_GET:
        queue_take_result_get(core, in, queue);
        break;
    case WIRE_RAISE:
        queue_take_raise(core, queue, &in->message->u.raise);
        break;
    case WIRE_TASK_CANCEL:
        queue_take_cancel(core, queue, in->message->u.task_cancel.number);
        break;
    case WIRE_QUEUE_BEAT:
        tasks_queue_take_beat(core, in, queue);
        break;
    default:
        break;
    }
}
