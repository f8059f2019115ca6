/* sim_notice - notices, and what must come of them. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define WAKES_US 10000 /* the agent sleeps a millisecond at least */

static struct sim_notice *remember(struct sim *sim, struct sim_proc *proc, const char *id,
                                   int64_t left_ms)
{
    sim->notices = realloc(sim->notices, (sim->notices_count + 1) * sizeof *sim->notices);
    struct sim_notice *notice = &sim->notices[sim->notices_count++];
    *notice = (struct sim_notice){.job = sim->jobs[proc->job].name,
                                  .id = sim_word(sim, id),
                                  .proc = proc,
                                  .at_us = sim->now_us,
                                  .left_ms = left_ms};
    return notice;
}

static void deadline(struct sim *sim, struct sim_event *event)
{
    const struct sim_notice *notice = &sim->notices[event->number];

    if (notice->ample)
        sim_broken(sim, "I5", "rank %u is still there at the deadline of notice %s (%lld ms)",
                   event->proc->rank, notice->id, (long long)notice->left_ms);
    if (event->proc->alive)
        claims_leaves(sim, notice);
    proc_end(sim, event->proc, END_KILLED, "the deadline of its notice");
}

static void margin(struct sim *sim, struct sim_event *event)
{
    if (event->proc->alive)
        claims_leaves(sim, &sim->notices[event->number]);
}

static void withdraw(struct sim *sim, struct sim_event *event)
{
    struct sim_notice *notice = &sim->notices[event->number];
    struct member_input input = {.kind = MEMBER_NOTICE_CANCELLED, .id = notice->id};

    SIM_TELL(sim, "NOTICE %s of rank %u withdrawn", input.id, event->proc->rank);
    notice->withdrawn = true;
    fault_met(sim, FAULT_NOTICE_WITHDRAWN);
    proc_feed(sim, event->proc, &input);
}

/* Who was stopped hears it when it goes on, as of a signal that waits. */
static void hear(struct sim *sim, struct sim_event *event)
{
    struct sim_notice *notice = &sim->notices[event->number];
    int64_t ago_ms = (sim->now_us - notice->at_us) / 1000;
    struct member_input input;

    memcpy(&input, event->data, sizeof input);
    if (input.left_ms >= 0)
        input.left_ms = input.left_ms > ago_ms ? input.left_ms - ago_ms : 0;
    notice->ends &= input.left_ms >= LEAST_LEAD_MS; /* else it does not believe it */
    proc_feed(sim, event->proc, &input);
}

static void hear_later(struct sim *sim, struct sim_proc *proc, const struct member_input *input)
{
    struct sim_event *event = sim_after(sim, 0, hear, proc);

    event->number = (int64_t)sim->notices_count - 1;
    event->data = malloc(sizeof *input);
    memcpy(event->data, input, sizeof *input);
}

static enum sim_moment moment_of(const struct sim_proc *proc)
{
    if (proc->state == THREAD_JOINING)
        return MOMENT_JOINING;
    if (proc->behind_round != 0 || proc->state == THREAD_SAVING)
        return MOMENT_SAVE;
    if (!proc->view.started)
        return MOMENT_STARTUP;
    if (proc->state == THREAD_LEAVING || proc->state == THREAD_SWEEPING)
        return MOMENT_LEAVING;
    return proc->begun == proc->total ? MOMENT_LAST_STEP : MOMENT_STEP;
}

/* A notice reaches the process; at its deadline the process is killed, unless it is withdrawn. */
static struct sim_notice *notify(struct sim *sim, struct sim_proc *proc, int64_t left_ms, bool told,
                                 int64_t withdraw_us)
{
    static const enum wire_notice_kind kinds[] = {NOTICE_PREEMPT, NOTICE_TERMINATE, NOTICE_STOP,
                                                  NOTICE_REBOOT,  NOTICE_SIGNAL,    NOTICE_USER};
    char id[32];

    snprintf(id, sizeof id, "n%llu", (unsigned long long)++sim->last_notice);
    struct sim_notice *notice = remember(sim, proc, id, left_ms);
    struct member_input input = {.kind = MEMBER_NOTICE,
                                 .id = notice->id,
                                 .source = "sim",
                                 .text = "",
                                 .left_ms = told ? left_ms : -1,
                                 .cancellable = withdraw_us > 0,
                                 .notice_kind = kinds[sim_random(sim) % 6]};
    if (sim->options.grace != NULL)
        input.notice_kind = NOTICE_PREEMPT; /* a signal tells no time to plan with */
    notice->ends = told && wire_notice_ends(input.notice_kind);
    sim->stats->notices++;
    sim->stats->noticed[moment_of(proc)]++;
    SIM_TELL(sim, "NOTICE %s on %s/%u, %lld ms left%s", id, sim->jobs[proc->job].name, proc->slot,
             (long long)left_ms, told ? "" : " (not told)");
    struct sim_event *event = withdraw_us > 0 ? sim_after(sim, withdraw_us, withdraw, proc)
                                              : sim_after(sim, left_ms * 1000, deadline, proc);
    event->number = (int64_t)sim->notices_count - 1;
    size_t index = sim->notices_count - 1;
    if (withdraw_us <= 0 && left_ms > MARGIN_MS &&
        sim->options.grace == NULL) /* which has its own */
        sim_after(sim, (left_ms - MARGIN_MS) * 1000 + WAKES_US, margin, proc)->number =
            (int64_t)index;
    if (proc->frozen)
        hear_later(sim, proc, &input);
    else
        proc_feed(sim, proc, &input);
    return &sim->notices[index];
}

static void on_all(struct sim *sim, const struct sim_fault_plan *plan, const struct sim_job *job)
{
    bool any = false;

    for (unsigned slot = 0; slot < job->nodes; slot++)
        if (job->procs[slot] != NULL && job->procs[slot]->alive) {
            any = true;
            notify(sim, job->procs[slot], plan->for_us / 1000 + sim_range(sim, 4000, 20000), true,
                   0);
        }
    if (any)
        fault_met(sim, FAULT_NOTICE_ALL);
}

/* A second one of the same job, when the first is known; its deadline is the earlier. */
static void earlier(struct sim *sim, struct sim_event *event)
{
    fault_met(sim, FAULT_NOTICE_EARLIER);
    notify(sim, event->proc, event->number, true, 0);
}

static void and_earlier(struct sim *sim, struct sim_proc *proc, int64_t left_ms)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    struct sim_proc *other = job->procs[sim_random(sim) % job->nodes];

    notify(sim, proc, left_ms + 10000, true, 0);
    if (other == NULL || !other->alive)
        other = proc;
    if (other->alive)
        sim_after(sim, sim_range(sim, 0, 1500000), earlier, other)->number = left_ms / 2 + 2500;
}

/* In some seeds' worlds: chance seldom finds that step. */
#define ONE_IN 41
#define AT_LAST_STEP 13
#define LAST_STEP_LEFT_MS 20000

bool notice_is_at_the_end(const struct sim *sim)
{
    return sim->options.seed % ONE_IN == AT_LAST_STEP;
}

static void in_last_step(struct sim *sim, struct sim_event *event)
{
    if (sim->now_us + LAST_STEP_LEFT_MS * 1000 <
        sim->calm_us) /* all such deadlines are over then */
        notify(sim, event->proc, LAST_STEP_LEFT_MS, true, 0);
}

void notice_at_last_step(struct sim *sim, struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];

    if (!notice_is_at_the_end(sim) || proc->begun != proc->total ||
        proc->slot != sim->options.seed / ONE_IN % job->nodes || sim_is_calm(sim) ||
        sim->options.healthy || sim->options.grace != NULL)
        return;
    sim_after(sim, job->step_us / 2, in_last_step, proc);
}

void notice_fault(struct sim *sim, const struct sim_fault_plan *plan, struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    int64_t ms = plan->left_ms > 0 ? plan->left_ms : plan->for_us / 1000 + 6000;

    switch (plan->kind) {
    case FAULT_NOTICE_ALL:
        on_all(sim, plan, job);
        return;
    case FAULT_NOTICE_SHORT:
        fault_met(sim, FAULT_NOTICE_SHORT);
        notify(sim, proc, plan->for_us / 1000 % 3000, true, 0);
        return;
    case FAULT_NOTICE_WITHDRAWN:
        notify(sim, proc, plan->for_us / 1000 + 20000, true,
               sim_chance(sim, 40) ? sim_range(sim, 1, 2000) : plan->for_us + 1);
        return;
    case FAULT_NOTICE_EARLIER:
        and_earlier(sim, proc, ms);
        return;
    case FAULT_NOTICE_RANK_0:
        if (job->procs[0] != NULL && job->procs[0]->alive)
            proc = job->procs[0];
        break;
    default:
        break;
    }
    if (plan->kind == FAULT_NOTICE || proc->slot == 0)
        fault_met(sim, plan->kind);
    notify(sim, proc, ms, plan->left_ms > 0 || sim_chance(sim, 70), 0);
}

/* --- with time enough ------------------------------------------------------------------------- */

/* Every step to S (a rank may lag behind; any step may be a long one), three saves, and half a
 * minute for all that is said. */
static int64_t enough_ms(const struct sim_job *job)
{
    int64_t furthest = 0, last = INT64_MAX;
    int64_t longest = job->step_us * 12 / 10 * 3 * (job->hold_percent > 0 ? 10 : 1);

    for (unsigned rank = 0; rank < job->nodes; rank++)
        for (const struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older) {
            if (!proc->alive) /* a second process for a rank waits while the first one trains */
                continue;
            furthest = proc->begun > furthest ? proc->begun : furthest;
            last = proc->done < last ? proc->done : last;
        }
    int64_t way = last <= furthest ? (furthest - last + 2) * longest : 0;
    return 30000 + (way + 2 * longest + 3 * 14 * job->save_us / 10) / 1000;
}

/* It died, and the broker has not found out: the next one for its rank may have begun already. */
static bool is_missed(const struct sim *sim, const struct sim_proc *proc)
{
    const struct record_node *row = proc->alive ? NULL : disk_node_of(sim, proc);

    return row != NULL && (row->state == NODE_JOINED || row->state == NODE_RESTORED);
}

/* A process that died just now is a fault that is not over: nobody knows of it yet. So is one that
 * was stopped just now, in a deletion, until it goes on: no agent hears a notice there. */
static bool all_live(const struct sim *sim, const struct sim_job *job)
{
    for (unsigned rank = 0; rank < job->nodes; rank++) {
        if (!job_slot_lives(job, rank) || job->procs[rank]->frozen)
            return false;
        for (const struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older)
            if (is_missed(sim, proc))
                return false;
    }
    return true;
}

/* Which ends the round that a notice joins (R5.14), when the broker hears of it. */
static bool had_room(const struct sim *sim, const struct sim_job *job)
{
    return job->no_room_us == 0 || sim->now_us - job->no_room_us > INT64_C(1000) * STUCK_MS;
}

void notice_in_calm(struct sim *sim, struct sim_job *job)
{
    struct sim_proc *proc = job->procs[sim_random(sim) % job->nodes];

    bool away = sim->options.shared && !sim->broker->alive; /* a take-over is not over */
    if (away || job->finished || !all_live(sim, job) || !proc->alive)
        return;
    int64_t left = enough_ms(job);
    bool ample = had_room(sim, job) && (job->grace_period_ms <= 0 || job->grace_period_ms >= left);
    sim->stats->notices_ample += ample;
    notify(sim, proc, left, true, 0)->ample = ample;
}
