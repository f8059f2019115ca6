/* sim_check_calm - how long a job takes to come to rest once no fault is left: no round is open,
 * every rank trains or has finished; or a round of the calm is on disk. What others take in that
 * time is theirs, not the protocol's, and is not charged: user code that has to end first, the
 * supervisor that starts processes again, ranks that are awaited for a launch (its join timeout),
 * and those that a broker awaits after its start (START_GRACE_MS) before it takes them for lost. In
 * a launch whose history is lost two lives of a rank may have taken part, of which the one that
 * lives has not the steps that the others wait for: each attempt at a save ends by its own bound
 * then (sim_check_bounds.c). */
#include "tests/sim/sim_world.h"

#define SECOND_US 1000000LL
#define REST_LIMIT_US (30 * SECOND_US)

/* Every process of a rank trains, but a second one that is told to come again while the first
 * lives: open() bounds that. */
static bool slot_rests(const struct sim_job *job, unsigned rank)
{
    bool trains = false, waits = false;

    for (const struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older) {
        bool trains_too = proc->alive && proc->state == THREAD_STEP && proc->view.mode != VIEW_END;
        trains |= trains_too;
        waits |= proc->alive && !trains_too && proc->state != THREAD_JOINING;
    }
    return !waits && (trains || (job->ended[rank] == END_FINISHED && !job_slot_lives(job, rank)));
}

/* Saves of a policy that follow one another leave no second without a round: one that was opened in
 * the calm is on disk, and the next is open. */
static bool saves_again(const struct sim *sim, struct sim_job *job)
{
    const struct record_round *before;

    if (job->open_round == 0)
        return false;
    if (job->calm_round == 0)
        job->calm_round = job->open_round;
    before = job->open_round > job->calm_round + 1 ? disk_round(sim, job->name, job->open_round - 1)
                                                   : NULL;
    return before != NULL && before->state == ROUND_COMMITTED;
}

static bool rests(const struct sim_job *job)
{
    bool all = job->open_round == 0;

    for (unsigned rank = 0; rank < job->nodes && all; rank++)
        all = slot_rests(job, rank);
    return all || job->finished;
}

/* It has to end before its rank can go on, and is in the user's code. */
static bool ends_its_code(const struct sim *sim, const struct sim_proc *proc)
{
    return proc->alive && (proc->state == THREAD_RESTORING || is_to_be_ended(sim, proc) ||
                           (runs_user_code(proc) && proc->view.mode == VIEW_END));
}

static bool others_take_it(const struct sim *sim, const struct sim_job *job)
{
    unsigned live = 0, absent = 0, missing = 0, started = 0;
    bool code = job->comes;

    for (unsigned rank = 0; rank < job->nodes; rank++) {
        absent += !job_slot_lives(job, rank);
        missing += !job_slot_lives(job, rank) && job->ended[rank] != END_FINISHED;
        for (const struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older) {
            live += proc->alive;
            started += proc->alive && proc->view.started;
            code |= ends_its_code(sim, proc);
        }
    }
    const struct record_job *row = disk_job(sim, job->name);
    bool lost = row != NULL && is_of_lost_history(job, row->generation);
    bool grace = sim->now_us < sim->broker->started_us + (START_GRACE_MS + 1000) * 1000LL;
    return code || lost || live == 0 || (absent > 0 && started == 0) || (missing > 0 && grace);
}

void check_rests(struct sim *sim, struct sim_job *job)
{
    if (job->rested)
        return;
    job->rested = saves_again(sim, job) || rests(job);
    if (!job->rested && !others_take_it(sim, job))
        job->restless_us += SECOND_US;
    if ((uint64_t)job->restless_us > sim->stats->restless_us) {
        sim->stats->restless_us = (uint64_t)job->restless_us;
        sim->stats->restless_seed = sim->options.seed;
    }
    sim->stats->rested += job->rested;
    if (job->restless_us > REST_LIMIT_US + 2 * SECOND_US)
        sim_broken(sim, "rest", "%s has not come to rest in %lld s without a fault (round %llu)",
                   job->name, (long long)(job->restless_us / SECOND_US),
                   (unsigned long long)job->open_round);
}
