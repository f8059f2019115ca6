/* tasks_worker - what workers say: who they are and what they hold, what ended, what they go on
 * with. */
#include "broker/core/tasks/tasks.h"

#include "schema/keys/keys.h"

#include <inttypes.h>
#include <stdio.h>

/* --- answers ---------------------------------------------------------------------------------- */

static void tasks_worker_welcome(struct core *core, const struct input *in, unsigned code,
                                 const char *text, bool retry)
{
    struct wire_msg *message = send_to(core, in->route, in->message->up.job, WIRE_WORK_WELCOME);

    message->u.work_welcome = (struct wire_work_welcome){
        .nonce = in->message->u.work_hello.nonce, .code = code, .text = text, .retry = retry};
}

bool tasks_is_to_end(const struct task_lease *lease)
{
    if (lease->kind == TASK_KIND_RESOURCE)
        return lease->queue == NULL;
    return lease->task == NULL || lease->task->cancel || lease->queue->error_pending;
}

bool tasks_is_confirmed(const struct task_lease *lease)
{
    return lease->loaded || lease->serial <= lease->worker->received;
}

bool tasks_is_taken_away(const struct task_lease *lease)
{
    return lease->kind == TASK_KIND_TASK && lease->task == NULL;
}

/* Or named by the watch: one without a limit, or cancelled, hangs as well. */
static bool worker_may_hang(const struct task_lease *lease)
{
    return lease->stuck_said || tasks_is_taken_away(lease);
}

bool tasks_is_stuck(const struct task_worker *worker)
{
    const struct task_lease *lease = worker->first;
    uint64_t place = 0;

    while (lease != NULL && place < worker->slots && worker_may_hang(lease))
        lease = lease->next, place++;
    return worker->slots > 0 && place == worker->slots;
}

void tasks_gone(struct task_worker *worker, uint64_t queue)
{
    for (size_t i = 0; i < worker->gone_count; i++)
        if (worker->gone[i] == queue)
            return;
    if (worker->gone_count < TASK_GONE_MAX)
        worker->gone[worker->gone_count++] = queue;
}

/* As many as there is room for: the rest when these have ended. */
static struct wire_lease_entry *worker_entries(struct core *core, const struct task_worker *worker,
                                               bool to_end, size_t room, size_t *ret_count)
{
    struct wire_lease_entry *items =
        arena_alloc(&core->out->arena, (worker->held + 1) * sizeof *items);

    MUST(items != NULL);
    *ret_count = 0;
    for (const struct task_lease *lease = worker->first; lease != NULL && *ret_count < room;
         lease = lease->next)
        if (tasks_is_to_end(lease) == to_end)
            items[(*ret_count)++] = (struct wire_lease_entry){
                lease->queue_id, lease->number, lease->attempt, (uint64_t)lease->kind, MUSTER_OK};
    return items;
}

void tasks_worker_alive(struct core *core, struct task_worker *worker, unsigned code)
{
    struct wire_msg *message = send_to(core, worker->route, worker->job, WIRE_WORK_ALIVE);
    struct wire_work_alive *m = &message->u.work_alive;
    size_t cancelled = 0, back = 0;
    struct wire_lease_entry *gone;

    m->code = code;
    m->confirmed = worker->received + 1;
    m->cancelled.items = worker_entries(core, worker, true, TASKS_FRAME_MAX, &cancelled);
    m->cancelled.count = cancelled;
    if (tasks_is_stuck(worker))
        m->back.items = worker_entries(core, worker, false, TASKS_FRAME_MAX - cancelled, &back);
    m->back.count = back;
    if (worker->gone_count == 0)
        return;
    gone = arena_alloc(&core->out->arena, worker->gone_count * sizeof *gone);
    MUST(gone != NULL);
    for (size_t i = 0; i < worker->gone_count; i++)
        gone[i] = (struct wire_lease_entry){.queue = worker->gone[i]};
    m->gone.items = gone;
    m->gone.count = worker->gone_count;
    worker->gone_count = 0;
}

void tasks_error_told(struct core *core, struct task_queue *queue)
{
    if (!queue->error_pending || queue->error_said)
        return;
    queue->error_said = true;
    for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next) {
        const struct task_lease *lease = w->first;

        while (lease != NULL && (lease->queue != queue || !tasks_is_to_end(lease)))
            lease = lease->next;
        if (lease != NULL && w->mapped)
            tasks_worker_alive(core, w, MUSTER_OK);
    }
}

static void tasks_worker_unknown(struct core *core, const struct input *in)
{
    struct wire_msg *message = send_to(core, in->route, in->message->up.job, WIRE_WORK_ALIVE);

    message->u.work_alive.code = MUSTER_E_HELLO;
}

/* --- HELLO ------------------------------------------------------------------------------------ */

static struct task_worker *tasks_worker_holder_of(const struct core *core, const char *job,
                                                  uint64_t index)
{
    for (struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        if (w->index == index && strcmp(w->job, job) == 0)
            return w;
    return NULL;
}

/* Why a task ends that was given back for the last time that there may be (TASK_TRIES_MAX). */
#define GIVEN_BACK "its worker gave it back"

/* A task that it was given and does not have never reached it: the same attempt is for the next
 * worker. */
static void worker_take_back_unheard(struct core *core, struct task_worker *worker,
                                     const struct wire_work_hello *m)
{
    for (size_t i = 0; i < m->held.count; i++) {
        const struct wire_lease_entry *entry = &m->held.items[i];
        struct task_lease *lease =
            tasks_lease_find(worker, entry->queue, entry->number, entry->attempt, entry->kind);
        if (lease != NULL)
            lease->named = true;
    }
    for (struct task_lease *lease = worker->last, *prev; lease != NULL; lease = prev) {
        prev = lease->prev; /* from behind, so that the first is the first again */
        if (!lease->named)
            tasks_give_back(core, lease, TASK_NOT_BEGUN, MUSTER_E_LOST, GIVEN_BACK);
        else
            lease->named = false;
    }
}

static struct task_made *worker_made_of(struct task_worker *worker, uint64_t queue, uint64_t number)
{
    for (size_t i = 0; i < worker->made_count; i++)
        if (worker->made[i].queue == queue && worker->made[i].number == number)
            return &worker->made[i];
    return NULL;
}

struct task_made *tasks_made(struct task_worker *worker, uint64_t queue, uint64_t number, bool made)
{
    struct task_made *entry = worker_made_of(worker, queue, number);

    if (entry == NULL && worker->made_count == worker->made_capacity) {
        size_t capacity = worker->made_capacity ? worker->made_capacity * 2 : 8;
        struct task_made *grown = realloc(worker->made, capacity * sizeof *grown);
        MUST(grown != NULL);
        worker->made = grown;
        worker->made_capacity = capacity;
    }
    if (entry == NULL)
        entry = &worker->made[worker->made_count++];
    *entry = (struct task_made){queue, number, made, 0};
    return entry;
}

const struct task_made *tasks_made_find(const struct task_worker *worker, uint64_t queue,
                                        uint64_t number)
{
    return worker_made_of((struct task_worker *)worker, queue, number);
}

static bool worker_is_resource(const struct core *core, uint64_t queue_id, uint64_t number)
{
    const struct task_queue *queue = tasks_queue_find(core, queue_id);

    return queue != NULL && number >= 1 && number <= queue->resources_count;
}

/* Nobody holds what is of another job. */
static bool worker_may_be_held(const struct task_worker *worker, const struct task_queue *queue,
                               const struct wire_lease_entry *entry)
{
    return entry->kind <= TASK_KIND_RESOURCE &&
           (queue == NULL || strcmp(queue->job, worker->job) == 0);
}

/* An attempt that it has, and that the broker does not count as its own, may still be running (T3).
 */
static void worker_take_held(struct core *core, struct task_worker *worker,
                             const struct wire_work_hello *m)
{
    for (size_t i = 0; i < m->held.count; i++) {
        const struct wire_lease_entry *entry = &m->held.items[i];
        struct task_queue *queue = tasks_queue_find(core, entry->queue);
        bool ended = entry->code != 0;
        struct task_lease *lease;

        if (!worker_may_be_held(worker, queue, entry))
            continue;
        if (entry->kind == TASK_KIND_RESOURCE) {
            if (queue == NULL)
                tasks_gone(worker, entry->queue);
            if (!worker_is_resource(core, entry->queue, entry->number))
                continue;
            tasks_made(worker, entry->queue, entry->number, ended)->losses =
                queue->resources[entry->number - 1].losses;
        }
        if (ended || tasks_lease_find(worker, entry->queue, entry->number, entry->attempt,
                                      entry->kind) != NULL)
            continue;
        lease = tasks_lease_add(worker, queue, NULL, entry->number, entry->attempt,
                                (enum wire_task_kind)entry->kind);
        lease->queue_id = entry->queue;
        lease->sent_boot_ms = core->now;
        lease->since_boot_ms = core->now;
    }
    for (struct task_lease *lease = worker->first; lease != NULL; lease = lease->next) {
        lease->serial = 0; /* it has it: its numbers begin again */
        lease->sent_boot_ms = core->now;
    }
}

/* As jobs_refusal. Below half of the places no share can be full: nothing is counted. */
static const char *workers_refusal(const struct core *core, const char *key_jobs)
{
    const size_t all = core->tasks->workers_count;
    size_t own = 0;

    if (all >= TASK_WORKERS_MAX)
        return "the broker has as many workers as there may be";
    if (!key_is_bounded(key_jobs) || all < TASK_WORKERS_MAX / 2)
        return NULL;
    for (const struct task_worker *w = core->tasks->workers; w != NULL; w = w->next)
        own += key_covers(key_jobs, w->job);
    return own < TASK_WORKERS_MAX - all ? NULL
                                        : "this key has used up its share of workers: end one of "
                                          "them (`muster tasks workers` "
                                          "lists a job's)";
}

/* No worker is given as much. Values that it has made are no tasks. */
static bool worker_holds_too_many(const struct wire_work_hello *m)
{
    size_t tasks = 0;

    for (size_t i = 0; i < m->held.count; i++)
        tasks += m->held.items[i].kind == TASK_KIND_TASK && m->held.items[i].code == 0;
    return tasks > TASK_CREDIT_MAX;
}

/* NULL: refused. */
static struct task_worker *worker_of_hello(struct core *core, const struct input *in)
{
    const struct wire_up *up = &in->message->up;
    struct task_worker *worker = tasks_worker_find(core, up->incarnation);
    struct task_worker *holder = tasks_worker_holder_of(core, up->job, up->rank);

    if (worker != NULL && strcmp(worker->job, up->job) == 0 && worker->index == up->rank)
        return worker;
    if (worker != NULL || !wire_job_name_ok(up->job) || up->incarnation == 0) {
        tasks_worker_welcome(core, in, MUSTER_E_ARGUMENT,
                             "a worker needs a job, an index and an incarnation", false);
        return NULL;
    }
    if (holder != NULL && core_passed_ms(core, holder->heard_boot_ms) < TAKEOVER_MS) {
        tasks_worker_welcome(core, in, MUSTER_E_RANK_TAKEN,
                             out_printf(core,
                                        "worker %" PRIu64 " of job %s is process %" PRIu64
                                        " on %s, which lives; stop it, or take another index",
                                        holder->index, holder->job, holder->pid, holder->host),
                             true);
        return NULL;
    }
    if (holder != NULL)
        tasks_worker_lost(core, holder, MUSTER_E_LOST, "another process took its index");
    const char *refusal = workers_refusal(core, in->key_jobs);
    if (refusal != NULL) {
        tasks_worker_welcome(core, in, MUSTER_E_BUSY, refusal, true);
        return NULL;
    }
    return tasks_worker_create(core, up->job, up->rank, up->incarnation);
}

static void worker_take_hello(struct core *core, const struct input *in)
{
    const struct wire_work_hello *m = &in->message->u.work_hello;
    struct task_worker *worker;

    if (worker_holds_too_many(m)) {
        tasks_worker_welcome(core, in, MUSTER_E_ARGUMENT,
                             out_printf(core, "a worker holds at most %d tasks", TASK_CREDIT_MAX),
                             false);
        return;
    }
    worker = worker_of_hello(core, in);
    if (worker == NULL)
        return;
    worker->mapped = true;
    worker->route = in->route;
    worker->heard_boot_ms = core->now;
    worker->node = m->node;
    worker->pid = m->pid;
    worker->slots = m->slots > 0 ? m->slots : 1;
    worker->takes = m->takes > worker->slots ? m->takes : worker->slots;
    worker->serial = worker->received = 0;
    worker->made_count = 0; /* it names what it has made */
    snprintf(worker->host, sizeof worker->host, "%s", m->host);
    tasks_persist_worker(core, worker, RECORD_WORKER_LIVE);
    worker_take_back_unheard(core, worker, m);
    worker_take_held(core, worker, m);
    tasks_worker_welcome(core, in, MUSTER_OK, "", false);
    if (worker->held > 0 || worker->gone_count > 0)
        tasks_worker_alive(core, worker, MUSTER_OK);
}

/* --- what ended ------------------------------------------------------------------------------- */

static bool worker_was_taken(const struct task_queue *queue, const struct wire_ended_entry *entry,
                             uint64_t worker)
{
    const struct task_recent *recent = &queue->recent[entry->number % TASK_RECENT];

    return recent->number == entry->number && recent->worker == worker &&
           recent->attempt == entry->attempt;
}

static void worker_forget_made(struct task_worker *worker, const struct wire_ended_entry *entry)
{
    struct task_made *made = worker_made_of(worker, entry->queue, entry->number);

    if (made != NULL)
        *made = worker->made[--worker->made_count];
}

/* Also one that was given back: it was never begun, and is given again. */
static unsigned worker_end_of_resource(struct core *core, struct task_worker *worker,
                                       const struct wire_ended_entry *entry,
                                       struct task_lease *lease)
{
    if (lease != NULL)
        tasks_lease_free(lease);
    if (entry->state == TASK_QUEUED) {
        worker_forget_made(worker, entry);
    } else if (worker_is_resource(core, entry->queue, entry->number)) {
        tasks_made(worker, entry->queue, entry->number, true);
        tasks_value_made(&tasks_queue_find(core, entry->queue)->resources[entry->number - 1]);
    }
    return MUSTER_OK;
}

/* A worker says CANCELLED only of what it was told to end: this broker start need not know of that.
 */
static enum wire_task_state tasks_worker_state_of(const struct wire_ended_entry *entry)
{
    return entry->status == MUSTER_OK            ? TASK_DONE
           : entry->status == MUSTER_E_CANCELLED ? TASK_CANCELLED
                                                 : TASK_FAILED;
}

static unsigned worker_end_of_task(struct core *core, struct task_worker *worker,
                                   const struct wire_ended_entry *entry, struct task_lease *lease)
{
    struct task *task = lease->task;
    bool in_parts = entry->bytes != entry->result.size;
    bool known =
        entry->status < MUSTER_STATUS_COUNT; /* else of a worker that is newer than we are */
    struct task_end end = {.status = known ? (unsigned)entry->status : MUSTER_E_TASK,
                           .code = entry->code,
                           .text = entry->text,
                           .result = entry->result,
                           .bytes = entry->bytes};

    if (in_parts && (task->parts_have != entry->bytes || task->parts_attempt != entry->attempt ||
                     entry->result.size > 0))
        return MUSTER_E_NOT_FOUND; /* the parts first */
    end.state = tasks_worker_state_of(entry);
    tasks_took(core, lease);
    tasks_lease_free(lease);
    tasks_end(core, task, &end, worker->incarnation);
    return MUSTER_OK;
}

static unsigned tasks_worker_take_end(struct core *core, struct task_worker *worker,
                                      const struct wire_ended_entry *entry)
{
    struct task_queue *queue = tasks_queue_find(core, entry->queue);
    struct task_lease *lease =
        tasks_lease_find(worker, entry->queue, entry->number, entry->attempt, entry->kind);

    if (entry->kind == TASK_KIND_RESOURCE)
        return worker_end_of_resource(core, worker, entry, lease);
    if (lease == NULL)
        return queue != NULL && worker_was_taken(queue, entry, worker->incarnation)
                   ? MUSTER_OK
                   : MUSTER_E_STALE;
    if (lease->task == NULL) { /* it was given to another: this end does not count */
        tasks_lease_free(lease);
        return MUSTER_E_STALE;
    }
    if (entry->state == TASK_QUEUED) {
        tasks_give_back(core, lease, TASK_NOT_BEGUN, MUSTER_E_LOST, GIVEN_BACK);
        return MUSTER_OK;
    }
    return worker_end_of_task(core, worker, entry, lease);
}

static void worker_take_done(struct core *core, struct task_worker *worker,
                             const struct wire_msg *m)
{
    size_t count = m->u.work_done.tasks.count;
    struct wire_lease_entry *items =
        arena_alloc(&core->out->arena, (count + 1) * sizeof(struct wire_lease_entry));
    struct wire_msg *answer;

    MUST(items != NULL);
    for (size_t i = 0; i < count; i++) {
        const struct wire_ended_entry *entry = &m->u.work_done.tasks.items[i];
        items[i] =
            (struct wire_lease_entry){entry->queue, entry->number, entry->attempt, entry->kind,
                                      tasks_worker_take_end(core, worker, entry)};
    }
    answer = send_to(core, worker->route, worker->job, WIRE_WORK_TAKEN);
    answer->u.work_taken.tasks.items = items;
    answer->u.work_taken.tasks.count = count;
    tasks_may_wait(core, count);
}

/* In order, from 0: a part that is not the next one is answered with what there is. */
static void tasks_worker_take_part(struct core *core, struct task_worker *worker,
                                   const struct wire_work_part *m)
{
    struct task_lease *lease =
        tasks_lease_find(worker, m->queue, m->number, m->attempt, TASK_KIND_TASK);
    struct task *task = lease != NULL ? lease->task : NULL;
    struct wire_msg *answer = send_to(core, worker->route, worker->job, WIRE_PART_TAKEN);
    uint64_t have = 0;

    if (task != NULL && task->parts_attempt != m->attempt) {
        task->parts_attempt = m->attempt;
        task->parts_have = 0;
    }
    if (task != NULL && m->offset == task->parts_have && m->bytes.size > 0 &&
        m->offset + m->bytes.size <= TASK_RESULT_MAX) {
        struct wire_bytes bytes = tasks_out_bytes(core, m->bytes.data, m->bytes.size);
        tasks_persist(core, RECORD_TASK_PART)->u.task_part =
            (struct record_task_part){m->queue, m->number, m->attempt, m->offset, bytes};
        task->parts_have += m->bytes.size;
    }
    if (task != NULL)
        have = task->parts_have;
    answer->u.part_taken =
        (struct wire_part_taken){.queue = m->queue,
                                 .number = m->number,
                                 .attempt = m->attempt,
                                 .code = task != NULL ? MUSTER_OK : MUSTER_E_STALE,
                                 .have = have};
}

/* --- the rest --------------------------------------------------------------------------------- */

static void tasks_worker_take_beat(struct core *core, struct task_worker *worker,
                                   const struct wire_work_beat *m)
{
    if (m->received > worker->received && m->received <= worker->serial)
        worker->received = m->received;
    for (size_t i = 0; i < m->renewed.count; i++) {
        const struct wire_lease_entry *entry = &m->renewed.items[i];
        struct task_lease *lease =
            tasks_lease_find(worker, entry->queue, entry->number, entry->attempt, entry->kind);
        if (lease != NULL)
            lease->since_boot_ms = core->now;
    }
    if (m->leaving)
        worker->slots = worker->takes = 0;
    tasks_worker_alive(core, worker, MUSTER_OK);
}

/* In order: it has ended what it had, or gave it back; what it still holds was never begun. */
static void worker_take_leave(struct core *core, struct task_worker *worker, uint64_t nonce)
{
    struct wire_msg *answer = send_to(core, worker->route, worker->job, WIRE_WORK_LEFT);

    answer->u.work_left.nonce = nonce;
    while (worker->last != NULL)
        tasks_give_back(core, worker->last, TASK_NOT_BEGUN, MUSTER_E_LOST, GIVEN_BACK);
    tasks_persist_worker(core, worker, RECORD_WORKER_LEFT);
    tasks_worker_free(core, worker);
}

void tasks_worker_message(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;
    struct task_worker *worker;

    tasks_of(core);
    if (m->type == WIRE_WORK_HELLO) {
        worker_take_hello(core, in);
        return;
    }
    worker = tasks_worker_find(core, m->up.incarnation);
    if (worker == NULL || !worker->mapped || worker->route != in->route) {
        if (m->type == WIRE_WORK_LEAVE && worker == NULL) { /* its answer was lost */
            send_to(core, in->route, m->up.job, WIRE_WORK_LEFT)->u.work_left.nonce =
                m->u.work_leave.nonce;
            return;
        }
        tasks_worker_unknown(core, in);
        return;
    }
    worker->heard_boot_ms = core->now;
    if (m->type == WIRE_WORK_DONE)
        worker_take_done(core, worker, m);
    else if (m->type == WIRE_WORK_PART)
        tasks_worker_take_part(core, worker, &m->u.work_part);
    else if (m->type == WIRE_WORK_BEAT)
        tasks_worker_take_beat(core, worker, &m->u.work_beat);
    else if (m->type == WIRE_WORK_LEAVE)
        worker_take_leave(core, worker, m->u.work_leave.nonce);
}
