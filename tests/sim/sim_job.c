/* sim_job - the seed's nature (sizes, times) and the supervisor that starts a job's processes
 * again. */
#include "tests/sim/sim_world.h"

#include <string.h>

static int64_t pick(struct sim *sim, const int64_t *values, size_t count)
{
    return values[sim_random(sim) % count];
}

static void plan_steps(struct sim *sim, struct sim_job *job)
{
    static const int64_t steps_us[] = {1000,   5000,    20000,   50000,    100000,  200000,
                                       500000, 1000000, 3000000, 10000000, 60000000};
    static const int64_t saves_us[] = {1000, 20000, 100000, 400000, 1500000, 4000000};
    const struct sim_focus *focus = sim->focus;
    int64_t seconds = sim_range(sim, 5, sim_chance(sim, 20) ? 90 : 45), steps;

    job->step_us = pick(sim, steps_us, sizeof steps_us / sizeof steps_us[0]);
    job->save_us = pick(sim, saves_us, sizeof saves_us / sizeof saves_us[0]);
    job->stride = sim_chance(sim, 20) ? (unsigned)sim_range(sim, 2, 16) : 1;
    job->hold_percent = sim_chance(sim, 20) ? (unsigned)sim_range(sim, 1, 10) : 0;
    if (job->step_us * job->stride <= 60000000)
        job->step_us *= job->stride; /* of one call; the protocol counts calls */
    if (sim->options.healthy && job->step_us > 1000000)
        job->step_us = 200000;
    if (sim->options.healthy && job->save_us > 400000)
        job->save_us = 400000;
    if (focus != NULL && focus->step_us > 0)
        job->step_us = focus->step_us;
    if (focus != NULL && focus->save_us > 0)
        job->save_us = focus->save_us;
    if (focus != NULL && focus->seconds > 0)
        seconds = focus->seconds;
    steps = seconds * 1000000 / job->step_us;
    steps = steps < 4 ? 4 : steps > 2000 ? 2000 : steps;
    for (unsigned rank = 0; rank < job->nodes; rank++)
        job->total[rank] = steps;
    if (!sim->options.healthy && (sim_chance(sim, 20) || (focus != NULL && focus->uneven)))
        for (unsigned rank = 0; rank < job->nodes; rank++) /* uneven loops */
            job->total[rank] = steps - sim_range(sim, 0, sim_chance(sim, 50) ? 1 : steps / 2);
    if (sim_chance(sim, 45))
        job->policy_every = sim_range(sim, 1 + steps / 12, 1 + steps / 2);
    if (focus != NULL)
        job->policy_every = focus->policy > 0 ? 1 + steps / focus->policy : 0;
}

static void plan_job(struct sim *sim)
{
    static const int64_t sizes[] = {1, 2, 2, 3, 4, 4, 6, 8, 8, 8, 8, 12, 16, 16, 24, 33, 64};
    const struct sim_focus *focus = sim->focus;
    struct sim_job *job = &sim->jobs[sim->jobs_count];
    bool sharded = sim_chance(sim, 50), async = sim_chance(sim, 30);

    job->index = (unsigned)sim->jobs_count++;
    snprintf(job->name, sizeof job->name, "job%u", job->index);
    job->nodes = (unsigned)pick(sim, sizes, sizeof sizes / sizeof sizes[0]);
    if (focus != NULL && focus->nodes_max > 0)
        job->nodes = (unsigned)sim_range(sim, focus->nodes_min, focus->nodes_max);
    if (sim->options.nodes > 0)
        job->nodes = sim->options.nodes;
    job->layout = sharded ? LAYOUT_SHARDED : LAYOUT_REPLICATED;
    if (focus != NULL && focus->layout != LAYOUT_NONE)
        job->layout = focus->layout;
    if (sim->options.layout != LAYOUT_NONE)
        job->layout = sim->options.layout;
    if (focus != NULL && focus->async >= 0)
        async = focus->async == 1;
    job->async = sim->options.async >= 0 ? sim->options.async == 1 : async;
    job->together = sim->options.healthy || sim_chance(sim, 70);
    job->gang = job->together && sim_chance(sim, 40);
    job->fallback = sim_chance(sim, 30);
    job->supervised = sim_chance(sim, 50);
    job->save_on_notice = sim_chance(sim, 30);
    job->writes_behind = sim_chance(sim, 35) && sim->options.grace == NULL;
    if (focus != NULL && focus->behind != SIM_BY_SEED)
        job->writes_behind = focus->behind == SIM_WITH;
    job->grace_period_ms = -1;
    if (!sim->options.healthy && sim_chance(sim, 30))
        job->grace_period_ms = sim_chance(sim, 40) ? 0 : sim_range(sim, 2000, 30000);
    job->extras = sim_chance(sim, 25) ? (unsigned)sim_range(sim, 1, SIM_EXTRAS_MAX) : 0;
    job->join_timeout_ms = sim_range(sim, 15000, 40000);
    job->abort_timeout_ms = sim_range(sim, 1000, 15000);
    plan_steps(sim, job);
    if (sim->options.grace != NULL)
        grace_plan_job(sim, job);
    sim->stats->nodes += job->nodes;
    sim->nodes += job->nodes;
}

/* Seeds whose focused world has a second job. */
#define ONE_IN 41
#define SHARED 9

static bool is_uneven(const struct sim_job *job)
{
    for (unsigned rank = 1; rank < job->nodes; rank++)
        if (job->total[rank] != job->total[0])
            return true;
    return false;
}

void job_plan(struct sim *sim)
{
    static const int64_t delays_us[] = {200, 200, 1000, 5000, 5000, 30000, 300000};

    sim->host_ranks = 1;
    sim->delay_min_us = 20;
    sim->delay_max_us = pick(sim, delays_us, sim->options.healthy || sim->focus != NULL ? 6 : 7);
    sim->post_max_us = sim_chance(sim, 50) ? 20 : 2000;
    sim->fsync_max_us = sim_chance(sim, 70) ? 3000 : 60000;
    if (sim->options.healthy &&
        sim_chance(sim, 40)) /* what PUB loses is no fault: it is repeated */
        sim->pub_loss_percent = sim_chance(sim, 50) ? 100 : 20;
    if (!sim->options.healthy) {
        sim->pub_loss_percent = sim_chance(sim, 25) ? (unsigned)sim_range(sim, 1, 30) : 0;
        sim->journal_max = sim_chance(sim, 25) ? (uint64_t)sim_range(sim, 4, 40) : 0;
    }
    plan_job(sim);
    while (!sim->options.healthy && sim->options.nodes == 0 && sim->focus == NULL &&
           sim->jobs_count < sizeof sim->jobs / sizeof sim->jobs[0] && sim_chance(sim, 15))
        plan_job(sim);
    if (sim->focus != NULL && sim->options.seed % ONE_IN == SHARED)
        plan_job(sim);
    sim->stats->jobs += sim->jobs_count;
    sim->stats->shared += sim->jobs_count > 1;
    for (size_t i = 0; i < sim->jobs_count; i++) {
        keeps_plan_job(sim, &sim->jobs[i]);
        sim->stats->strides += sim->jobs[i].stride > 1;
        sim->stats->uneven += is_uneven(&sim->jobs[i]);
        sim->stats->observers += sim->jobs[i].extras;
    }
}

struct sim_proc *job_peer(const struct sim_job *job, unsigned slot, uint64_t generation)
{
    struct sim_proc *found = NULL, *joins = NULL;

    for (struct sim_proc *proc = job->procs[slot]; proc != NULL; proc = proc->older) {
        if (proc->view.generation != generation)
            continue;
        if (proc->alive && proc->view.mode != VIEW_END && proc->view.started)
            return proc;
        if (joins == NULL && proc->alive && proc->view.mode != VIEW_END)
            joins =
                proc; /* or was let in by a database that was restored since, and is refused yet */
        if (found == NULL || proc->done > found->done)
            found = proc;
    }
    return joins != NULL ? joins : found;
}

bool job_slot_lives(const struct sim_job *job, unsigned slot)
{
    const struct sim_proc *proc = job->procs[slot];

    while (proc != NULL && !proc->alive)
        proc = proc->older;
    return proc != NULL;
}

bool job_is_done(const struct sim_job *job)
{
    for (unsigned rank = 0; rank < job->nodes; rank++)
        if (job->procs[rank] == NULL || job_slot_lives(job, rank) ||
            job->ended[rank] != END_FINISHED)
            return false;
    return true;
}

struct sim_job *sim_job_named(struct sim *sim, const char *name)
{
    for (size_t i = 0; i < sim->jobs_count; i++)
        if (strcmp(sim->jobs[i].name, name) == 0)
            return &sim->jobs[i];
    return NULL;
}

/* --- the supervisor --------------------------------------------------------------------------- */

static void start_slot(struct sim *sim, struct sim_event *event)
{
    struct sim_job *job = &sim->jobs[event->stamp];
    unsigned slot = (unsigned)event->number;

    if (sim->options.mutation == MUTANT_NEVER_AGAIN && slot == 1 && job->procs[slot] != NULL)
        return;
    if (!job->finished && !job_slot_lives(job, slot) && !(slot >= job->nodes && job_is_done(job)) &&
        !import_first(sim, job))
        proc_start(sim, job, slot, job->created_us[slot]);
}

static void start_later(struct sim *sim, struct sim_job *job, unsigned slot, int64_t delay_us)
{
    struct sim_event *event = sim_after(sim, delay_us, start_slot, NULL);

    job->created_us[slot] = sim->now_us;
    event->stamp = job->index;
    event->number = slot;
}

void job_launch(struct sim *sim, struct sim_job *job)
{
    int64_t spread = sim_chance(sim, 70) ? 100000 : 3000000;

    job->launch++;
    job->failed_us = 0;
    sim->stats->launches++;
    for (unsigned slot = 0; slot < job->nodes + job->extras; slot++)
        start_later(sim, job, slot, sim_range(sim, 0, spread));
}

static bool any_rank_lives(const struct sim_job *job)
{
    for (unsigned rank = 0; rank < job->nodes; rank++)
        if (job_slot_lives(job, rank))
            return true;
    return false;
}

static void launch_again(struct sim *sim, struct sim_event *event)
{
    struct sim_job *job = &sim->jobs[event->stamp];

    if (!job->finished && !any_rank_lives(job) && event->number == (int64_t)job->launch &&
        !import_first(sim, job))
        job_launch(sim, job);
}

static bool all_ranks_ended(const struct sim_job *job)
{
    for (unsigned rank = 0; rank < job->nodes; rank++)
        if (job->procs[rank] == NULL)
            return false;
    return !any_rank_lives(job);
}

static void kill_gang(struct sim *sim, struct sim_event *event)
{
    struct sim_job *job = &sim->jobs[event->stamp];

    for (unsigned rank = 0; rank < job->nodes && event->number == (int64_t)job->launch; rank++)
        for (struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older)
            if (proc->alive && proc->launch == job->launch)
                proc_end(sim, proc, END_KILLED, "killed with its launch");
}

static void watch_gang(struct sim *sim, struct sim_job *job, const struct sim_proc *proc)
{
    if (!job->gang || proc->end == END_FINISHED || proc->end == END_RESTART || job->failed_us > 0)
        return;
    job->failed_us = sim->now_us;
    struct sim_event *event = sim_after(sim, sim_range(sim, 100000, 30000000), kill_gang, NULL);
    event->stamp = job->index;
    event->number = (int64_t)job->launch;
}

#define USER_COMES_US 60000000

static void user_comes(struct sim *sim, struct sim_event *event)
{
    const struct sim_job *job = &sim->jobs[event->stamp];

    if (!job->finished && job->got_on_us < sim->now_us - USER_COMES_US)
        kill_gang(sim, event);
}

void job_told_stuck(struct sim *sim, const struct record_event *row)
{
    const struct sim_job *job = sim_job_named(sim, row->job);

    if (job == NULL || !sim_is_calm(sim) || !is_of_lost_history(job, row->generation))
        return;
    struct sim_event *event = sim_after(sim, USER_COMES_US, user_comes, NULL);
    event->stamp = job->index;
    event->number = (int64_t)job->launch;
}

/* Each rank by itself, as a pod: finished ones come back only because another does. */
static void restart_alone(struct sim *sim, struct sim_job *job, const struct sim_proc *proc)
{
    if (proc->end == END_FINISHED || job_slot_lives(job, proc->slot))
        return;
    for (unsigned rank = 0; rank < job->nodes; rank++) {
        if (rank == proc->slot || (!job_slot_lives(job, rank) && job->ended[rank] == END_FINISHED))
            start_later(sim, job, rank, sim_range(sim, 300000, 3000000));
    }
}

static void job_over(struct sim *sim, struct sim_job *job)
{
    bool over = true;

    job->finished = true;
    SIM_TELL(sim, "JOB %s has finished", job->name);
    for (size_t i = 0; i < sim->jobs_count; i++)
        over &= sim->jobs[i].finished;
    sim->over = over;
}

void job_proc_ended(struct sim *sim, struct sim_proc *proc)
{
    struct sim_job *job = &sim->jobs[proc->job];
    bool extras_live = false;

    job->ended[proc->slot] = proc->end;
    for (unsigned slot = job->nodes; slot < job->nodes + job->extras; slot++)
        extras_live |= job_slot_lives(job, slot);
    if (job_is_done(job)) {
        if (!extras_live)
            job_over(sim, job);
        return;
    }
    if (proc->slot >= job->nodes) { /* comes and goes; nobody waits for it */
        start_later(sim, job, proc->slot, sim_range(sim, 300000, 5000000));
        return;
    }
    if (!job->together) {
        restart_alone(sim, job, proc);
        return;
    }
    watch_gang(sim, job, proc);
    if (!all_ranks_ended(job))
        return;
    struct sim_event *event = sim_after(sim, sim_range(sim, 200000, 5000000), launch_again, NULL);
    event->stamp = job->index;
    event->number = (int64_t)job->launch;
}
