/* sim_job - the seed's nature (sizes, times) and the supervisor that starts a job's processes again. */
#include "tests/sim/sim_world.h"

#include <string.h>

static int64_t pick(struct sim *sim, const int64_t *values, size_t count)
{
    return values[sim_random(sim) % count];
}

static void plan_steps(struct sim *sim, struct sim_job *job)
{
    static const int64_t steps_us[] = {1000,   5000,   20000,   50000,   100000,
                                       200000, 500000, 1000000, 3000000, 10000000};
    static const int64_t saves_us[] = {1000, 20000, 100000, 400000, 1500000, 4000000};
    int64_t seconds = sim_range(sim, 5, 45), steps;

    job->step_us = pick(sim, steps_us, sizeof steps_us / sizeof steps_us[0]);
    job->save_us = pick(sim, saves_us, sizeof saves_us / sizeof saves_us[0]);
    if (sim->options.healthy && job->step_us > 1000000)
        job->step_us = 200000;
    if (sim->options.healthy && job->save_us > 400000)
        job->save_us = 400000;
    steps = seconds * 1000000 / job->step_us;
    steps = steps < 4 ? 4 : steps > 2000 ? 2000 : steps;
    for (unsigned rank = 0; rank < job->nodes; rank++)
        job->total[rank] = steps;
    if (!sim->options.healthy && sim_chance(sim, 20))
        for (unsigned rank = 0; rank < job->nodes; rank++) /* uneven loops */
            job->total[rank] = steps - sim_range(sim, 0, sim_chance(sim, 50) ? 1 : steps / 2);
    if (sim_chance(sim, 45))
        job->policy_every = sim_range(sim, 1 + steps / 12, 1 + steps / 2);
}

static void plan_job(struct sim *sim)
{
    static const int64_t sizes[] = {1, 2, 2, 3, 4, 4, 6, 8, 8, 8, 8, 12, 16, 16, 24, 33};
    struct sim_job *job = &sim->jobs[sim->jobs_count];
    bool sharded = sim_chance(sim, 50), async = sim_chance(sim, 30);

    job->index = (unsigned)sim->jobs_count++;
    snprintf(job->name, sizeof job->name, "job%u", job->index);
    job->nodes = (unsigned)pick(sim, sizes, sizeof sizes / sizeof sizes[0]);
    if (sim->options.nodes > 0)
        job->nodes = sim->options.nodes;
    job->layout = sharded ? LAYOUT_SHARDED : LAYOUT_REPLICATED;
    if (sim->options.layout != LAYOUT_NONE)
        job->layout = sim->options.layout;
    job->async = sim->options.async >= 0 ? sim->options.async == 1 : async;
    job->together = sim->options.healthy || sim_chance(sim, 70);
    job->gang = job->together && sim_chance(sim, 40);
    job->fallback = sim_chance(sim, 30);
    job->join_timeout_ms = sim_range(sim, 15000, 40000);
    job->abort_timeout_ms = sim_range(sim, 1000, 15000);
    plan_steps(sim, job);
    sim->stats->nodes += job->nodes;
}

void job_plan(struct sim *sim)
{
    static const int64_t delays_us[] = {200, 200, 1000, 5000, 5000, 30000, 300000};

    sim->delay_min_us = 20;
    sim->delay_max_us = pick(sim, delays_us, sim->options.healthy ? 6 : 7);
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
    if (!sim->options.healthy && sim->options.nodes == 0 && sim_chance(sim, 15))
        plan_job(sim);
}

struct sim_proc *job_peer(const struct sim_job *job, unsigned rank, uint64_t generation)
{
    struct sim_proc *found = NULL;

    for (struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older) {
        if (proc->view.generation != generation)
            continue;
        if (proc->alive && proc->view.mode != VIEW_END)
            return proc;
        if (found == NULL || proc->done > found->done)
            found = proc;
    }
    return found;
}

bool job_rank_lives(const struct sim_job *job, unsigned rank)
{
    const struct sim_proc *proc = job->procs[rank];

    while (proc != NULL && !proc->alive)
        proc = proc->older;
    return proc != NULL;
}

/* --- the supervisor --------------------------------------------------------------------------------- */

static void start_rank(struct sim *sim, struct sim_event *event)
{
    struct sim_job *job = &sim->jobs[event->stamp];
    unsigned rank = (unsigned)event->number;

    if (!job->finished && !job_rank_lives(job, rank))
        proc_start(sim, job, rank);
}

static void start_later(struct sim *sim, struct sim_job *job, unsigned rank, int64_t delay_us)
{
    struct sim_event *event = sim_after(sim, delay_us, start_rank, NULL);

    event->stamp = job->index;
    event->number = rank;
}

void job_launch(struct sim *sim, struct sim_job *job)
{
    int64_t spread = sim_chance(sim, 70) ? 100000 : 3000000;

    job->launch++;
    job->failed_us = 0;
    sim->stats->launches++;
    for (unsigned rank = 0; rank < job->nodes; rank++)
        start_later(sim, job, rank, sim_range(sim, 0, spread));
}

static void launch_again(struct sim *sim, struct sim_event *event)
{
    struct sim_job *job = &sim->jobs[event->stamp];

    for (unsigned rank = 0; rank < job->nodes; rank++)
        if (job_rank_lives(job, rank))
            return;
    if (!job->finished && event->number == (int64_t)job->launch)
        job_launch(sim, job);
}

static bool all_ended(const struct sim_job *job, bool *ret_finished)
{
    *ret_finished = true;
    for (unsigned rank = 0; rank < job->nodes; rank++) {
        if (job->procs[rank] == NULL || job_rank_lives(job, rank))
            return false;
        *ret_finished &= job->ended[rank] == END_FINISHED;
    }
    return true;
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

/* Each rank by itself, as a pod: finished ones come back only because another does. */
static void restart_alone(struct sim *sim, struct sim_job *job, const struct sim_proc *proc)
{
    if (proc->end == END_FINISHED || job_rank_lives(job, proc->rank))
        return;
    for (unsigned rank = 0; rank < job->nodes; rank++) {
        if (rank == proc->rank || (!job_rank_lives(job, rank) && job->ended[rank] == END_FINISHED))
            start_later(sim, job, rank, sim_range(sim, 300000, 3000000));
    }
}

void job_proc_ended(struct sim *sim, struct sim_proc *proc)
{
    struct sim_job *job = &sim->jobs[proc->job];
    bool finished, ended;

    job->ended[proc->rank] = proc->end;
    ended = all_ended(job, &finished);
    if (ended && finished) {
        job->finished = true;
        SIM_TELL(sim, "JOB %s has finished", job->name);
        bool over = true;
        for (size_t i = 0; i < sim->jobs_count; i++)
            over &= sim->jobs[i].finished;
        sim->over = over;
        return;
    }
    if (!job->together) {
        restart_alone(sim, job, proc);
        return;
    }
    watch_gang(sim, job, proc);
    if (!ended)
        return;
    struct sim_event *event = sim_after(sim, sim_range(sim, 200000, 5000000), launch_again, NULL);
    event->stamp = job->index;
    event->number = (int64_t)job->launch;
}
