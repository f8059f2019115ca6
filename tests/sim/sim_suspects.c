/* sim_suspects - collectives that break, and who is blamed for it. In a synchronous job a rank that
 * is in a step with a process that has died finds that its collective breaks; some break though
 * all live. That rank suspects the others, as muster_node_fail_suspecting does: it asks the broker,
 * and says that its own step failed only if each other rank lives, or if nobody answers for
 * SUSPECT_US.
 * Owns: when collectives break, and what may be said then. Only worlds with the option suspects
 * have them; these draw from a stream of chance of their own. */
#include "tests/sim/sim_world.h"

#include "schema/limits.h"

#include <string.h>

#define SUSPECT_US (2 * LOST_MS * 1000LL) /* as client/node/node.c waits */
#define TAIL_US (SUSPECT_US + 10000000)
#define SALT UINT64_C(0x5c59ec75)

/* --- who is gone ------------------------------------------------------------------------------ */

/* The newest process of a rank in a generation: its number may be one of a lost history, too. */
static const struct sim_proc *newest_in(const struct sim_job *job, unsigned rank,
                                        uint64_t generation)
{
    const struct sim_proc *proc = job->procs[rank];

    while (proc != NULL && proc->view.generation != generation)
        proc = proc->older;
    return proc;
}

/* It died without a word, in this generation. */
static bool is_gone(const struct sim_job *job, unsigned rank, uint64_t generation)
{
    const struct sim_proc *proc = newest_in(job, rank, generation);

    return proc != NULL && !proc->alive && proc->end == END_KILLED && !proc->leaving &&
           proc->view.started;
}

/* The first such rank; -1: each other one lives, or has said why it does not. */
static int first_gone(const struct sim *sim, const struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];

    for (unsigned rank = 0; rank < job->nodes; rank++)
        if (rank != proc->rank && is_gone(job, rank, proc->view.generation))
            return (int)rank;
    return -1;
}

/* --- collectives that break ------------------------------------------------------------------- */

static void breaks(struct sim *sim, struct sim_event *event)
{
    if (event->stamp == event->proc->thread_stamp && event->proc->state == THREAD_STEP &&
        !event->proc->stuck)
        thread_suspects(sim, event->proc);
}

static void break_soon(struct sim *sim, struct sim_proc *proc)
{
    int64_t delay_us = suspects_below(sim, suspects_below(sim, 3) > 0 ? 3000 : 300000);

    sim_after(sim, delay_us, breaks, proc)->stamp = proc->thread_stamp;
}

static bool has_collectives(const struct sim *sim, const struct sim_proc *proc)
{
    return sim->options.suspects && !sim->jobs[proc->job].async && proc->slot == proc->rank &&
           proc->role != ROLE_PS && proc->role != ROLE_EVALUATOR;
}

/* In a step that `gone` has not done. */
static bool needs(const struct sim_proc *proc, const struct sim_proc *gone)
{
    return proc->alive && proc->state == THREAD_STEP && proc->begun > gone->done &&
           proc->view.generation == gone->view.generation;
}

void suspects_end(struct sim *sim, const struct sim_proc *gone)
{
    const struct sim_job *job = &sim->jobs[gone->job];

    if (!has_collectives(sim, gone) || gone->end == END_FINISHED)
        return;
    for (unsigned rank = 0; rank < job->nodes; rank++)
        for (struct sim_proc *proc = job->procs[rank]; proc != NULL; proc = proc->older)
            if (needs(proc, gone))
                break_soon(sim, proc);
}

void suspects_begin(struct sim *sim, struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];

    if (!has_collectives(sim, proc) || proc->state != THREAD_STEP || proc->released)
        return;
    for (unsigned rank = 0; rank < job->nodes; rank++) {
        const struct sim_proc *peer = job_peer(job, rank, proc->view.generation);
        if (peer != NULL && !peer->alive && peer->end != END_FINISHED && needs(proc, peer)) {
            break_soon(sim, proc);
            return;
        }
    }
}

/* A network that was too slow once: nobody is gone. */
static void break_all(struct sim *sim, struct sim_event *event)
{
    const struct sim_job *job = &sim->jobs[event->number];

    if (job->async)
        return;
    sim->stats->collectives_broken++;
    for (unsigned rank = 0; rank < job->nodes; rank++)
        if (job->procs[rank] != NULL && job->procs[rank]->alive &&
            job->procs[rank]->state == THREAD_STEP)
            break_soon(sim, job->procs[rank]);
}

/* Half of the worlds are quiet: there each rank has to be answered in time. */
void suspects_plan_world(struct sim *sim)
{
    const struct sim_options *o = &sim->options;
    bool others =
        o->sqlite || o->put_back || o->slow_disk || o->shared || o->power_cuts || o->relays;

    if (!o->suspects)
        return;
    sim->suspects_chance = (sim->options.seed ^ SALT) * UINT64_C(0x9e3779b97f4a7c15);
    sim->quiet = suspects_below(sim, 2) == 0 && !others;
    if (!sim->quiet)
        return;
    sim->focus = NULL;
    sim->frames_fail = false;
}

void suspects_plan(struct sim *sim, int64_t work)
{
    for (int64_t count = 1 + suspects_below(sim, 3); count > 0; count--) {
        struct sim_fault_plan plan = {.kind = FAULT_NODE_CRASH,
                                      .at_us = suspects_below(sim, work + 2000000),
                                      .for_us = TAIL_US,
                                      .target = (unsigned)suspects_below(sim, 0x10000),
                                      .slot = -1};
        plan_add(sim, &plan);
    }
    for (int64_t count = suspects_below(sim, 3); count > 0; count--) {
        int64_t at_us = suspects_below(sim, work + 2000000);
        sim_at(sim, at_us, break_all, NULL)->number = suspects_below(sim, (int64_t)sim->jobs_count);
        if (at_us + TAIL_US > sim->calm_us)
            sim->calm_us = at_us + TAIL_US;
    }
}

/* --- what may be said ------------------------------------------------------------------------- */

/* Nothing but dead ranks and notices since it asked. */
static bool is_answered(const struct sim *sim, const struct sim_proc *proc)
{
    return sim->quiet || proc->suspects_us >= sim->calm_us;
}

/* Since it asked, and so lately that the broker need not know it yet. */
static bool died_now(const struct sim *sim, const struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    int gone = first_gone(sim, proc);

    return proc->suspects_gone < 0 && gone >= 0 &&
           sim->now_us - newest_in(job, (unsigned)gone, proc->view.generation)->died_us <
               (LOST_MS + HEARTBEAT_MS) * 1000LL;
}

static void ran_out(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;

    if (proc->state != THREAD_SUSPECTING || proc->suspects_us != event->number)
        return;
    sim->stats->suspects_unanswered++;
    proc->suspects_ran_out = true;
    if (is_answered(sim, proc) && !died_now(sim, proc))
        sim_broken(sim, "suspects",
                   "rank %u suspects that another is gone for %lld ms, and rank %d is", proc->rank,
                   (long long)(SUSPECT_US / 1000), proc->suspects_gone);
    thread_suspects_nobody(sim, proc);
}

void suspects_asks(struct sim *sim, struct sim_proc *proc)
{
    proc->suspects_us = sim->now_us;
    proc->suspects_gone = first_gone(sim, proc);
    sim->stats->suspects[proc->suspects_gone >= 0]++;
    SIM_TELL(sim, "%s/%u suspects that another rank is gone; %d is", sim->jobs[proc->job].name,
             proc->slot, proc->suspects_gone);
    sim_after(sim, SUSPECT_US, ran_out, proc)->number = sim->now_us;
}

void suspects_lives(struct sim *sim, const struct sim_proc *proc)
{
    sim->stats->suspects_all_live++;
    if (proc->suspects_gone >= 0 &&
        is_gone(&sim->jobs[proc->job], (unsigned)proc->suspects_gone, proc->view.generation))
        sim_broken(sim, "suspects",
                   "rank %u hears that all others live, and rank %d was dead "
                   "before it asked",
                   proc->rank, proc->suspects_gone);
}

void suspects_blamed(struct sim *sim, const struct record_generation *row)
{
    const struct sim_job *job = sim_job_named(sim, row->job);
    const struct sim_proc *proc;

    if (!sim->options.suspects || strstr(row->error_text, SIM_BROKE) == NULL ||
        row->error_rank >= (int64_t)job->nodes)
        return;
    proc = newest_in(job, (unsigned)row->error_rank, row->generation);
    if (proc == NULL || proc->suspects_us == 0 || proc->suspects_gone < 0)
        return;
    if (!proc->suspects_ran_out || is_answered(sim, proc))
        sim_broken(sim, "suspects",
                   "rank %u is blamed for a collective that broke, and rank %d was "
                   "dead before",
                   proc->rank, proc->suspects_gone);
}
