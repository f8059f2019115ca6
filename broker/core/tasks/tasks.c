/* tasks - memory and rows of queues, tasks, leases and workers; the end of a task. See tasks.h. */
#include "broker/core/tasks/tasks.h"

#include <inttypes.h>
#include <stdio.h>

struct tasks *tasks_of(struct core *core)
{
    if (core->tasks == NULL) {
        core->tasks = calloc(1, sizeof *core->tasks);
        MUST(core->tasks != NULL);
        core->tasks->timer_boot_ms = INT64_MAX;
        core->tasks->to_cancel = TASKS_CANCEL_BYTES;
    }
    return core->tasks;
}

void tasks_timer(struct core *core, int64_t at_boot_ms)
{
    if (at_boot_ms < core->tasks->timer_boot_ms)
        core->tasks->timer_boot_ms = at_boot_ms;
}

int64_t tasks_wakeup_boot_ms(const struct core *core)
{
    return core->tasks != NULL ? core->tasks->timer_boot_ms : INT64_MAX;
}

/* --- queues ----------------------------------------------------------------------------------- */

static struct task_queue **tasks_queue_slot(struct tasks *tasks, uint64_t id)
{
    return &tasks->by_id[id % TASK_QUEUES_MAX];
}

struct task_queue *tasks_queue_find(const struct core *core, uint64_t id)
{
    struct task_queue *queue = core->tasks != NULL ? *tasks_queue_slot(core->tasks, id) : NULL;

    while (queue != NULL && queue->queue != id)
        queue = queue->next_id;
    return queue;
}

struct task_queue *tasks_queue_named(const struct core *core, const char *job, const char *name)
{
    struct task_queue *queue = core->tasks != NULL ? core->tasks->queues : NULL;

    while (queue != NULL && (strcmp(queue->job, job) != 0 || strcmp(queue->name, name) != 0))
        queue = queue->next;
    return queue;
}

struct task_queue *tasks_queue_create(struct core *core, uint64_t id, const char *job,
                                      const char *name)
{
    struct tasks *tasks = tasks_of(core);
    struct task_queue *queue = calloc(1, sizeof *queue);

    MUST(queue != NULL);
    queue->queue = id;
    snprintf(queue->job, sizeof queue->job, "%s", job);
    snprintf(queue->name, sizeof queue->name, "%s", name);
    queue->next = tasks->queues;
    tasks->queues = queue;
    queue->next_id = *tasks_queue_slot(tasks, id);
    *tasks_queue_slot(tasks, id) = queue;
    tasks->queues_count++;
    if (!tasks->ids_begun && id > tasks->queue_id)
        tasks->queue_id = id;
    return queue;
}

/* A leased task may still run: its leases stay, without a task and a queue. */
void tasks_queue_drop(struct core *core, struct task_queue *queue)
{
    struct tasks *tasks = core->tasks;
    struct task_queue **slot = &tasks->queues;

    for (struct task_worker *w = tasks->workers; w != NULL; w = w->next) {
        for (struct task_lease *lease = w->first; lease != NULL; lease = lease->next)
            if (lease->queue == queue)
                lease->queue = NULL, lease->task = NULL;
        for (size_t i = w->made_count; i-- > 0;)
            if (w->made[i].queue == queue->queue)
                w->made[i] = w->made[--w->made_count];
    }
    for (size_t i = 0; i < TASK_HASH; i++)
        for (struct task *task = tasks->hash[i], *next; task != NULL; task = next) {
            next = task->next_hash;
            if (task->queue == queue)
                tasks_forget(core, task);
        }
    while (*slot != queue)
        slot = &(*slot)->next;
    *slot = queue->next;
    slot = tasks_queue_slot(tasks, queue->queue);
    while (*slot != queue)
        slot = &(*slot)->next_id;
    *slot = queue->next_id;
    tasks->queues_count--;
    for (size_t i = 0; i < queue->resources_count; i++)
        free(queue->resources[i].args);
    free(queue->resources);
    free(queue);
}

void tasks_queue_left(struct core *core, uint64_t queue)
{
    struct tasks *tasks = tasks_of(core);
    uint64_t *grown = realloc(tasks->left, (tasks->left_count + 1) * sizeof *grown);

    MUST(grown != NULL);
    tasks->left = grown;
    tasks->left[tasks->left_count++] = queue;
}

/* A queue that still has rows would be found again under its number. */
bool tasks_queue_number_is_free(const struct core *core, uint64_t queue)
{
    for (size_t i = 0; i < core->tasks->left_count; i++)
        if (core->tasks->left[i] == queue)
            return false;
    return tasks_queue_find(core, queue) == NULL;
}

void tasks_resource_create(struct task_queue *queue, uint64_t number, const char *fn,
                           struct wire_bytes args)
{
    struct task_resource *resource;

    if (queue->resources_count == queue->resources_capacity) {
        size_t capacity = queue->resources_capacity ? queue->resources_capacity * 2 : 4;
        struct task_resource *grown =
            realloc(queue->resources, capacity * sizeof(struct task_resource));
        MUST(grown != NULL);
        queue->resources = grown;
        queue->resources_capacity = capacity;
    }
    resource = &queue->resources[queue->resources_count++];
    *resource = (struct task_resource){.number = number};
    resource->args_size = args.size;
    resource->args = malloc(args.size + 1);
    MUST(resource->args != NULL);
    if (args.size > 0)
        memcpy(resource->args, args.data, args.size);
    snprintf(resource->fn, sizeof resource->fn, "%s", fn);
    queue->value_bytes += sizeof *resource + args.size;
}

/* --- tasks ------------------------------------------------------------------------------------ */

static struct task **tasks_hash_slot(struct tasks *tasks, uint64_t queue, uint64_t number)
{
    return &tasks->hash[(number ^ queue * UINT64_C(0x9e3779b97f4a7c15)) % TASK_HASH];
}

struct task *tasks_find(const struct core *core, uint64_t queue, uint64_t number)
{
    struct task *task = core->tasks != NULL ? *tasks_hash_slot(core->tasks, queue, number) : NULL;

    while (task != NULL && (task->number != number || task->queue->queue != queue))
        task = task->next_hash;
    return task;
}

struct task *tasks_create(struct core *core, struct task_queue *queue,
                          const struct record_task *row)
{
    struct task **slot = tasks_hash_slot(core->tasks, queue->queue, row->number);
    struct task *task = calloc(1, sizeof *task + row->args.size + row->uses.size);

    MUST(task != NULL);
    task->queue = queue;
    task->number = row->number;
    task->attempt = row->attempt;
    task->losses = row->losses;
    task->excused = row->excused;
    task->timeout_ms = row->timeout_ms;
    task->args_size = row->args.size;
    task->uses_size = row->uses.size;
    if (row->args.size > 0)
        memcpy(task->bytes, row->args.data, row->args.size);
    if (row->uses.size > 0)
        memcpy(task->bytes + row->args.size, row->uses.data, row->uses.size);
    snprintf(task->fn, sizeof task->fn, "%s", row->fn);
    task->next_hash = *slot;
    *slot = task;
    queue->live++;
    queue->bytes += sizeof *task + row->args.size + row->uses.size;
    return task;
}

bool tasks_is_doubtful(const struct task *task)
{
    return task->losses + task->excused > 0;
}

/* The first loss is most often the worker's own end, and those that were lost together go on
 * together. Not so when one more would be the last: nobody is to fail for what another did. */
bool tasks_is_suspect(const struct task *task)
{
    return tasks_is_doubtful(task) &&
           (task->losses >= 2 || task->late || task->losses + 1 >= task->queue->max_attempts);
}

static struct task **tasks_list_of(struct task *task, struct task ***ret_last)
{
    struct task_queue *queue = task->queue;

    *ret_last = task->alone ? &queue->suspects_last : &queue->last;
    return task->alone ? &queue->suspects_first : &queue->first;
}

/* To the front means before all of higher numbers: as if it had never been taken from there. */
void tasks_list_put(struct task *task, bool front)
{
    struct task **last, **first;

    task->alone = tasks_is_suspect(task);
    first = tasks_list_of(task, &last);
    task->prev = front ? NULL : *last;
    task->next = front ? *first : NULL;
    while (task->next != NULL && task->next->number < task->number) {
        task->prev = task->next;
        task->next = task->next->next;
    }
    *(task->prev != NULL ? &task->prev->next : first) = task;
    *(task->next != NULL ? &task->next->prev : last) = task;
}

void tasks_list_take(struct task *task)
{
    struct task **last, **first = tasks_list_of(task, &last);

    *(task->prev != NULL ? &task->prev->next : first) = task->next;
    *(task->next != NULL ? &task->next->prev : last) = task->prev;
    task->prev = task->next = NULL;
}

void tasks_list_again(struct task_queue *queue)
{
    struct task *lists[] = {queue->first, queue->suspects_first};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (struct task *task = lists[i], *next; task != NULL; task = next) {
            next = task->next;
            if (tasks_is_suspect(task) == task->alone)
                continue;
            tasks_list_take(task);
            tasks_list_put(task, true);
        }
}

size_t tasks_forget(struct core *core, struct task *task)
{
    struct task **slot = tasks_hash_slot(core->tasks, task->queue->queue, task->number);
    size_t bytes = sizeof *task + task->args_size + task->uses_size;

    while (*slot != task)
        slot = &(*slot)->next_hash;
    *slot = task->next_hash;
    task->queue->live--;
    task->queue->bytes -= bytes;
    free(task);
    return bytes;
}

struct task *tasks_first_queued(const struct task_queue *queue)
{
    struct task *first = queue->first;
    struct task *suspect = queue->suspects_first;

    if (first == NULL || suspect == NULL)
        return first == NULL ? suspect : first;
    return first->number < suspect->number ? first : suspect;
}

/* --- workers and leases ----------------------------------------------------------------------- */

struct task_worker *tasks_worker_find(const struct core *core, uint64_t incarnation)
{
    struct task_worker *worker = core->tasks != NULL ? core->tasks->workers : NULL;

    while (worker != NULL && worker->incarnation != incarnation)
        worker = worker->next;
    return worker;
}

struct task_worker *tasks_worker_create(struct core *core, const char *job, uint64_t index,
                                        uint64_t incarnation)
{
    struct tasks *tasks = tasks_of(core);
    struct task_worker *worker = calloc(1, sizeof *worker);

    MUST(worker != NULL);
    snprintf(worker->job, sizeof worker->job, "%s", job);
    worker->index = index;
    worker->incarnation = incarnation;
    worker->heard_boot_ms = core->now;
    worker->next = tasks->workers;
    tasks->workers = worker;
    tasks->workers_count++;
    return worker;
}

void tasks_worker_free(struct core *core, struct task_worker *worker)
{
    struct task_worker **slot = &core->tasks->workers;

    for (struct task_lease *lease = worker->first, *next; lease != NULL; lease = next) {
        next = lease->next;
        tasks_lease_free(lease);
    }
    while (*slot != worker)
        slot = &(*slot)->next;
    *slot = worker->next;
    core->tasks->workers_count--;
    free(worker->made);
    free(worker);
}

static struct task_lease **tasks_lease_slot(struct task_worker *worker, uint64_t number)
{
    return &worker->leases[number % TASK_LEASE_SLOTS];
}

struct task_lease *tasks_lease_add(struct task_worker *worker, struct task_queue *queue,
                                   struct task *task, uint64_t number, uint64_t attempt,
                                   enum wire_task_kind kind)
{
    struct task_lease *lease = calloc(1, sizeof *lease);

    MUST(lease != NULL);
    lease->worker = worker;
    lease->task = task;
    lease->queue = queue;
    lease->queue_id = queue != NULL ? queue->queue : 0;
    lease->number = number;
    lease->attempt = attempt;
    lease->kind = kind;
    lease->next_number = *tasks_lease_slot(worker, number);
    *tasks_lease_slot(worker, number) = lease;
    lease->prev = worker->last;
    *(worker->last != NULL ? &worker->last->next : &worker->first) = lease;
    worker->last = lease;
    worker->held++;
    if (task != NULL)
        task->lease = lease;
    if (queue != NULL && kind == TASK_KIND_TASK)
        queue->leases++;
    return lease;
}

struct task_lease *tasks_lease_find(struct task_worker *worker, uint64_t queue, uint64_t number,
                                    uint64_t attempt, uint64_t kind)
{
    struct task_lease *lease = *tasks_lease_slot(worker, number);

    while (lease != NULL && (lease->number != number || lease->queue_id != queue ||
                             lease->attempt != attempt || lease->kind != kind))
        lease = lease->next_number;
    return lease;
}

void tasks_lease_free(struct task_lease *lease)
{
    struct task_worker *worker = lease->worker;
    struct task_lease **slot = tasks_lease_slot(worker, lease->number);

    while (*slot != lease)
        slot = &(*slot)->next_number;
    *slot = lease->next_number;
    *(lease->prev != NULL ? &lease->prev->next : &worker->first) = lease->next;
    *(lease->next != NULL ? &lease->next->prev : &worker->last) = lease->prev;
    worker->held--;
    if (worker->held == 0)
        worker->alone = false;
    if (lease->task != NULL)
        lease->task->lease = NULL;
    if (lease->queue != NULL && lease->kind == TASK_KIND_TASK)
        lease->queue->leases--;
    free(lease);
}

/* --- rows ------------------------------------------------------------------------------------- */

struct wire_bytes tasks_out_bytes(struct core *core, const uint8_t *data, size_t size)
{
    uint8_t *copy = arena_alloc(&core->out->arena, size > 0 ? size : 1);

    MUST(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return (struct wire_bytes){copy, size};
}

struct record *tasks_persist(struct core *core, enum record_kind kind)
{
    struct action *action = action_add(core, ACTION_PERSIST);

    action->record.kind = kind;
    return &action->record;
}

void tasks_persist_text(struct core *core, const struct task *task, const char *text)
{
    tasks_persist(core, RECORD_TASK_TEXT)->u.task = (struct record_task){
        .queue = task->queue->queue, .number = task->number, .fn = "", .text = text};
}

/* Of few tasks nobody waits for the word that they were taken: the end of the task, or the next
 * one, comes soon and takes it along. Of many somebody may: they are what he has ahead. */
void tasks_may_wait(struct core *core, size_t tasks)
{
    if (tasks <= TASKS_FEW)
        core->out->items[core->out->count - 1].patient = true;
}

void tasks_persist_state(struct core *core, struct task *task)
{
    const struct task_worker *worker = task->lease != NULL ? task->lease->worker : NULL;

    tasks_persist(core, RECORD_TASK_STATE)->u.task =
        (struct record_task){.queue = task->queue->queue,
                             .number = task->number,
                             .state = worker != NULL ? TASK_LEASED : TASK_QUEUED,
                             .attempt = task->attempt,
                             .losses = task->losses,
                             .excused = task->excused,
                             .worker = worker != NULL ? worker->incarnation : 0,
                             .worker_index = worker != NULL ? worker->index : 0,
                             .unix_ms = core->now_unix,
                             .fn = "",
                             .text = ""};
    if (task->named)
        tasks_persist_text(core, task, ""); /* of an attempt that is over */
    task->named = false;
}

static void tasks_persist_queue(struct core *core, struct task_queue *queue)
{
    struct record *row = tasks_persist(core, RECORD_TASK_QUEUE);

    queue->dirty = false;
    row->u.task_queue = (struct record_task_queue){
        .queue = queue->queue,
        .job = out_text(core, queue->job),
        .name = out_text(core, queue->name),
        .coordinator = queue->coordinator,
        .taken = queue->taken,
        .ended = queue->ended,
        .released = queue->released,
        .max_queued = queue->max_queued,
        .max_attempts = queue->max_attempts,
        .error_pending = queue->error_pending,
        .error_number = queue->error_number,
        .error_status = queue->error_status,
        .error_code = queue->error_code,
        .error_text = out_text(core, queue->error_text),
        .raised = queue->raised,
        .told = queue->raises_told,
        .cancelled_to = queue->cancelled_to,
        .created_unix_ms = queue->created_unix_ms,
    };
}

void tasks_persist_worker(struct core *core, const struct task_worker *worker,
                          enum record_worker_state state)
{
    tasks_persist(core, RECORD_TASK_WORKER)->u.task_worker =
        (struct record_task_worker){.job = out_text(core, worker->job),
                                    .index = worker->index,
                                    .incarnation = worker->incarnation,
                                    .node = worker->node,
                                    .host = out_text(core, worker->host),
                                    .pid = worker->pid,
                                    .slots = worker->slots,
                                    .takes = worker->takes,
                                    .state = state,
                                    .unix_ms = core->now_unix};
}

/* --- ends ------------------------------------------------------------------------------------- */

static void tasks_send_told(struct core *core, struct task_queue *queue)
{
    if (queue->told_count > 0 && queue->mapped) {
        struct wire_msg *message = send_to(core, queue->route, queue->job, WIRE_TASKS_ENDED);

        message->u.tasks_ended.queue = queue->queue;
        message->u.tasks_ended.before = queue->told_before;
        message->u.tasks_ended.tasks.items = queue->told;
        message->u.tasks_ended.tasks.count = queue->told_count;
    }
    queue->told = NULL;
    queue->told_count = queue->told_capacity = queue->told_bytes = 0;
}

static void tasks_tell(struct core *core, struct task_queue *queue,
                       const struct wire_ended_entry *entry)
{
    size_t bytes = TASK_ENTRY_BYTES + strlen(entry->text) + entry->result.size;

    if (queue->told_count == TASKS_FRAME_MAX || queue->told_bytes + bytes > TASK_FRAME_BYTES)
        tasks_send_told(core, queue);
    if (queue->told_count == 0)
        queue->told_before = queue->ended;
    if (queue->told_count == queue->told_capacity) {
        size_t capacity = queue->told_capacity ? queue->told_capacity * 2 : 16;
        struct wire_ended_entry *grown =
            arena_alloc(&core->out->arena, capacity * sizeof(struct wire_ended_entry));
        MUST(grown != NULL);
        if (queue->told_count > 0)
            memcpy(grown, queue->told, queue->told_count * sizeof *grown);
        queue->told = grown;
        queue->told_capacity = capacity;
    }
    queue->told[queue->told_count++] = *entry;
    queue->told_bytes += bytes;
}

/* The call that told of it knows nothing else that a handler gave. */
static void tasks_first_error(struct core *core, struct task_queue *queue, const struct task *task,
                              const struct task_end *end, uint64_t worker)
{
    const struct task_worker *who = tasks_worker_find(core, worker);

    if (queue->error_pending)
        return; /* the first one counts */
    queue->error_pending = true;
    queue->error_number = task->number;
    queue->error_status = end->status;
    queue->error_code = end->code;
    queue->counts = true;
    queue->cancelled = 0;
    snprintf(queue->error_text, sizeof queue->error_text, "%s", end->text);
    if (end->status == MUSTER_E_TASK && who != NULL)
        snprintf(
            queue->error_text, sizeof queue->error_text, "%s",
            wire_text_fit(&core->out->arena,
                          out_printf(core, "%s at worker %" PRIu64 "%s%s", task->fn, who->index,
                                     end->text[0] != '\0' ? ": " : " gave no text", end->text),
                          TASK_TEXT_MAX));
}

void tasks_end(struct core *core, struct task *task, const struct task_end *end, uint64_t worker)
{
    struct task_queue *queue = task->queue;
    const char *text = wire_text_fit(&core->out->arena, end->text, TASK_TEXT_MAX);
    struct wire_bytes result = tasks_out_bytes(core, end->result.data, end->result.size);
    struct record *row = tasks_persist(core, RECORD_TASK_END);

    MUST(text != NULL && task->lease == NULL);
    row->u.task = (struct record_task){.queue = queue->queue,
                                       .number = task->number,
                                       .state = end->state,
                                       .attempt = task->attempt,
                                       .losses = task->losses,
                                       .excused = task->excused,
                                       .worker = worker,
                                       .fn = "",
                                       .unix_ms = core->now_unix,
                                       .status = end->status,
                                       .code = end->code,
                                       .text = text,
                                       .result = result,
                                       .bytes = end->bytes};
    tasks_tell(core, queue,
               &(struct wire_ended_entry){.queue = queue->queue,
                                          .number = task->number,
                                          .attempt = task->attempt,
                                          .state = end->state,
                                          .status = end->status,
                                          .code = end->code,
                                          .text = text,
                                          .bytes = end->bytes,
                                          .result = result});
    queue->ended++;
    queue->dirty = true;
    queue->recent[task->number % TASK_RECENT] =
        (struct task_recent){task->number, worker, task->attempt};
    if (end->state == TASK_FAILED)
        tasks_first_error(core, queue, task, end, worker);
    tasks_forget(core, task);
}

/* Every input ends here, so that a row or an answer of it never waits for another batch. */
void tasks_flush(struct core *core)
{
    for (struct task_queue *queue = core->tasks != NULL ? core->tasks->queues : NULL; queue != NULL;
         queue = queue->next) {
        tasks_error_told(core, queue);
        tasks_send_told(core, queue);
        if (queue->dirty)
            tasks_persist_queue(core, queue);
    }
}

void tasks_free(struct core *core)
{
    if (core->tasks == NULL)
        return;
    while (core->tasks->workers != NULL)
        tasks_worker_free(core, core->tasks->workers);
    while (core->tasks->queues != NULL)
        tasks_queue_drop(core, core->tasks->queues);
    free(core->tasks->left);
    free(core->tasks);
    core->tasks = NULL;
}
