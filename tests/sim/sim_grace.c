/* sim_grace - worlds of one job whose times the test sets and one notice that tells the time left;
 * what came of it is written down. */
#include "broker/core/dispatch.h"
#include "tests/sim/sim_world.h"

#define POLICY_SAVES 4 /* before the notice */

#define LOOK_US 20000
#define ON_ITS_WAY_MS 100 /* a notice, which tells how much time was left */

/* When the broker's plan says to freeze; NEVER = no plan waits. */
static int64_t planned_us(const struct sim *sim)
{
    const struct sim_broker *b = sim->broker;
    const struct job *job = b->alive ? job_find(b->core, sim->jobs[0].name) : NULL;

    if (job == NULL || job->plan.why != PLAN_AHEAD)
        return NEVER;
    return (job->plan.freeze_boot_ms - b->boot_offset_ms) * 1000;
}

void grace_plan_job(struct sim *sim, struct sim_job *job)
{
    struct sim_grace *g = sim->options.grace;
    int64_t before = g->notice_ms / g->step_ms;

    g->frozen_ms = g->committed_ms = g->not_saved_ms = g->named_rank = -1;
    job->async = false;
    job->together = true;
    job->gang = false;
    job->extras = 0;
    job->grace_period_ms = -1; /* as the notice says */
    job->save_on_notice = false;
    job->step_us = g->step_ms * 1000;
    job->save_us = g->save_ms * 1000;
    if (g->stands)
        job->policy_every = 0; /* no save is measured but by the notice */
    else
        job->policy_every = before / (POLICY_SAVES + 1) > 0 ? before / (POLICY_SAVES + 1) : 1;
    for (unsigned rank = 0; rank < job->nodes; rank++)
        job->total[rank] = (g->notice_ms + g->left_ms) / g->step_ms + 2;
}

static int64_t deadline_ms(const struct sim_grace *g)
{
    return g->notice_ms + g->left_ms;
}

static void told_again(struct sim *sim, struct sim_event *event)
{
    const struct sim_fault_plan plan = {.kind = FAULT_NOTICE, .left_ms = event->number};

    if (event->proc->alive)
        notice_fault(sim, &plan, event->proc);
}

/* The file, or the machine's address, says so to each process that begins there. */
void grace_started(struct sim *sim, struct sim_proc *proc)
{
    const struct sim_grace *g = sim->options.grace;
    int64_t after_us, left_ms;

    if (g == NULL || !g->stands)
        return;
    after_us = sim_range(sim, 0, 300000);
    left_ms = deadline_ms(g) - (sim->now_us + after_us) / 1000;
    if (left_ms > 0)
        sim_after(sim, after_us, told_again, proc)->number = left_ms;
}

static void notice(struct sim *sim, struct sim_event *event)
{
    struct sim_job *job = &sim->jobs[0];

    (void)event;
    const struct sim_fault_plan plan = {.kind = FAULT_NOTICE,
                                        .left_ms = sim->options.grace->left_ms};
    notice_fault(sim, &plan, job->procs[sim_random(sim) % job->nodes]);
}

static void broker_dies(struct sim *sim, struct sim_event *event)
{
    (void)event;
    if (planned_us(sim) > sim->now_us + 2 * LOOK_US) {
        sim_after(sim, LOOK_US, broker_dies, NULL);
        return;
    }
    sim->broker->down_us = sim->options.grace->broker_down_ms * 1000;
    broker_crash(sim, "just before the planned freeze");
}

void grace_plan_faults(struct sim *sim)
{
    const struct sim_grace *g = sim->options.grace;
    int64_t end_us = deadline_ms(g) * 1000;

    if (!g->stands)
        sim_at(sim, g->notice_ms * 1000, notice, NULL);
    if (g->broker_down_ms > 0)
        sim_at(sim, g->notice_ms * 1000 + 1000000, broker_dies, NULL);
    sim->calm_us = 0;
    sim->limit_us = 4 * end_us + 600000000;
}

static int64_t around(struct sim *sim, int64_t us, unsigned jitter)
{
    return us * sim_range(sim, 100 - jitter, 100 + jitter) / 100;
}

int64_t grace_step_us(struct sim *sim, const struct sim_proc *proc)
{
    struct sim_grace *g = sim->options.grace;
    int64_t takes = around(sim, g->step_ms * 1000, g->jitter);

    /* the one that is in flight when the freeze comes */
    if (g->slow_times == 0 || g->slowed || proc->rank != 0 ||
        planned_us(sim) > sim->now_us + takes * 9 / 10)
        return takes;
    g->slowed = true;
    return takes * g->slow_times;
}

int64_t grace_save_us(struct sim *sim, uint64_t round)
{
    const struct sim_grace *g = sim->options.grace;
    int64_t takes = around(sim, g->save_ms * 1000, g->jitter);

    for (uint64_t i = 1; i < round && i <= POLICY_SAVES + 2; i++)
        takes += takes * g->growth / 100;
    return takes;
}

/* What a launch needs for the least that it can gain: to start (its ranks come within 3 s), to take
 * two steps, to freeze and to save, and to be heard of by heartbeats. */
static int64_t needed_ms(const struct sim_grace *g)
{
    return 8000 + (2 * g->step_ms + 2 * g->save_ms) * (100 + g->jitter) / 100 + FREEZE_MS +
           2 * MARGIN_MS;
}

/* A job under a standing notice with time left makes progress in each launch. */
static void observe_launch(struct sim *sim, struct sim_grace *g, const struct wire_event *event)
{
    int64_t now_ms = sim->now_us / 1000;

    if (event->kind == EVENT_GENERATION_OPENED) {
        g->opened_ms = now_ms;
        g->resume_step = event->step;
        g->gained = false;
        g->launches += deadline_ms(g) - now_ms >= needed_ms(g);
    } else if (event->kind == EVENT_COMMIT) {
        g->gained |= event->step > g->resume_step;
    } else if (event->kind == EVENT_GENERATION_ENDED && !g->gained &&
               deadline_ms(g) - g->opened_ms >= needed_ms(g)) {
        sim_broken(sim, "progress",
                   "a launch that began at step %lld with %lld ms left ended and gained no step",
                   (long long)g->resume_step, (long long)(deadline_ms(g) - g->opened_ms));
    }
}

void grace_observe(struct sim *sim, const struct wire_event *event)
{
    struct sim_grace *g = sim->options.grace;
    int64_t now_ms = sim->now_us / 1000;

    if (g != NULL && g->stands)
        observe_launch(sim, g, event);
    if (g == NULL || now_ms > deadline_ms(g))
        return;
    bool joins = event->kind == EVENT_TERMINATION && event->round > 0; /* an open save will do */
    bool freezes = event->kind == EVENT_FREEZE && event->cause == CAUSE_TERMINATION;
    if ((joins || freezes) && g->frozen_ms < 0) {
        const struct sim_broker *b = sim->broker;
        snprintf(g->plan, sizeof g->plan, "%s", job_find(b->core, sim->jobs[0].name)->plan.text);
        g->frozen_ms = now_ms;
    }
    if (event->cause != CAUSE_TERMINATION)
        return;
    if (event->kind == EVENT_COMMIT && now_ms > deadline_ms(g) - MARGIN_MS + ON_ITS_WAY_MS)
        sim_broken(sim, "margin", "round %llu is committed %lld ms before the deadline",
                   (unsigned long long)event->round, (long long)(deadline_ms(g) - now_ms));
    if (event->kind == EVENT_COMMIT)
        g->committed_ms = now_ms;
    else if (event->kind == EVENT_NOT_SAVED) {
        g->not_saved_ms = now_ms;
        g->named_rank = event->rank;
    }
}
