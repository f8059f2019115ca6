/* tasks_watch - names what makes no progress: in the job's journal, and in the task's own row.
 * Nothing else is done about it: call.timeout_ms is there for that.
 *
 * An attempt's time begins when it comes to its turn at its worker, which runs them in the order in
 * which they were given, as many at once as it has slots. It is named once: after a time without a
 * word of it (muster_task_renew), or after RENEWED times that. A word is no progress: a function
 * may be stuck in a loop that says it. An attempt that is no longer wanted and runs on is named,
 * too: no error is raised before it ends. */
#include "broker/core/tasks/tasks.h"

#include <inttypes.h>

#define RENEWED 10
#define TYPICAL 10 /* times what the queue's tasks took of late, as with steps */

void tasks_took(struct core *core, const struct task_lease *lease)
{
    struct task_queue *queue = lease->queue;
    int64_t took_ms = core->now - lease->begun_boot_ms;

    if (queue == NULL || lease->begun_boot_ms == 0)
        return;
    queue->typical_ms += (took_ms - queue->typical_ms) / (queue->typical_ms == 0 ? 1 : 8);
}

static int64_t watch_limit_ms(const struct task_lease *lease)
{
    int64_t limit = STUCK_MS;

    if (lease->queue != NULL && TYPICAL * lease->queue->typical_ms > limit)
        limit = TYPICAL * lease->queue->typical_ms;
    if (lease->task != NULL && lease->task->timeout_ms > 0 &&
        (int64_t)lease->task->timeout_ms * 3 / 4 < limit)
        limit = (int64_t)lease->task->timeout_ms * 3 / 4; /* before it is taken away */
    return limit;
}

static const char *tasks_watch_text_of(struct core *core, const struct task_lease *lease,
                                       bool renews)
{
    const struct task_worker *worker = lease->worker;
    const char *queue = lease->queue != NULL ? lease->queue->name : "that is gone";
    const char *what =
        lease->kind == TASK_KIND_RESOURCE
            ? out_printf(core, "per-worker value %" PRIu64 " of queue %s", lease->number, queue)
        : lease->task != NULL
            ? out_printf(core, "task %" PRIu64 " (%s) of queue %s", lease->number, lease->task->fn,
                         queue)
            : out_printf(core, "task %" PRIu64 " of queue %s", lease->number, queue);
    const char *how = tasks_is_to_end(lease) ? "is no longer wanted and has not ended"
                      : renews               ? "renews its lease and has not ended"
                                             : "has said nothing";

    return out_printf(
        core, "%s %s for %" PRId64 " s, at worker %" PRIu64 " (process %" PRIu64 " on %s)", what,
        how, (core->now - (renews ? lease->begun_boot_ms : tasks_word_boot_ms(lease))) / 1000,
        worker->index, worker->pid, worker->host);
}

/* A job of nothing but tasks has no journal before this. */
static void tasks_watch_tell(struct core *core, const struct task_lease *lease, const char *text)
{
    struct job *job = job_find(core, lease->worker->job);
    struct wire_event event;

    if (job == NULL)
        job = job_create(core, lease->worker->job);
    if (job == NULL)
        return; /* as many jobs as there may be; the task's row has it */
    event = event_make(job, EVENT_STUCK);
    event.left_ms = core->now - lease->begun_boot_ms;
    event.text = text;
    event_emit(core, job, event, 0);
}

static void watch_name(struct core *core, struct task_lease *lease, bool renews)
{
    const char *text = tasks_watch_text_of(core, lease, renews);

    lease->stuck_said = true;
    tasks_watch_tell(core, lease, text);
    if (lease->task == NULL)
        return;
    lease->task->named = true;
    tasks_persist_text(core, lease->task, text);
}

int64_t tasks_word_boot_ms(const struct task_lease *lease)
{
    return lease->since_boot_ms > lease->begun_boot_ms ? lease->since_boot_ms
                                                       : lease->begun_boot_ms;
}

static void tasks_watch_watch(struct core *core, struct task_lease *lease)
{
    int64_t limit = watch_limit_ms(lease);
    int64_t silent_at = tasks_word_boot_ms(lease) + limit;
    int64_t long_at = lease->begun_boot_ms + RENEWED * limit;

    if (core->now >= silent_at || core->now >= long_at)
        watch_name(core, lease, core->now < silent_at);
    else
        tasks_timer(core, silent_at < long_at ? silent_at : long_at);
}

void tasks_watch(struct core *core, struct task_worker *worker)
{
    uint64_t place = 0;

    for (struct task_lease *lease = worker->first; lease != NULL && worker->mapped;
         lease = lease->next, place++) {
        if (lease->begun_boot_ms == 0 && place < worker->slots)
            lease->begun_boot_ms = core->now;
        if (lease->begun_boot_ms > 0 && !lease->stuck_said)
            tasks_watch_watch(core, lease);
    }
}
