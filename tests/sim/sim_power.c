/* sim_power - the power of a host with ranks is cut: its processes end at once, what they had not
 * synced is there afterwards or not (sim_fs.c), and what they had just sent arrives or not. The
 * broker's machine may be one of those hosts. Only worlds with the option power_cuts have them;
 * these draw from the stream of chance of worlds with policies.
 * A rename and its sync take no time beside a world's: most cuts wait for such a moment. */
#include "tests/sim/sim_world.h"

#define LAST_US 6000000 /* before the calm: who is lost is missed by then */

void power_plan(struct sim *sim)
{
    static const unsigned ranks[] = {1, 1, 2, 4, SIM_NODES_MAX};

    sim->host_ranks = ranks[side_range(sim, 0, sizeof ranks / sizeof ranks[0] - 1)];
    sim->broker_beside = side_chance(sim, 30);
}

unsigned power_host(const struct sim *sim, uint64_t rank)
{
    return (unsigned)rank / sim->host_ranks;
}

static void end_processes(struct sim *sim, unsigned host)
{
    for (size_t i = 0; i < sim->procs_count; i++) {
        struct sim_proc *proc = sim->procs[i];
        if (!proc->alive || power_host(sim, proc->rank) != host)
            continue;
        if (proc->route != 0 && side_chance(sim, 50))
            net_disconnect(sim, proc);
        proc_end(sim, proc, END_KILLED, "its host has no power");
    }
}

static void cut(struct sim *sim, struct sim_event *event)
{
    unsigned host = (unsigned)event->number;

    if (sim->now_us > sim->calm_us - LAST_US)
        return;
    fault_met(sim, FAULT_HOST_CUT);
    SIM_TELL(sim, "POWER of host%u is cut", host);
    end_processes(sim, host);
    fs_forget(sim, host);
    check_batch(sim);
    for (size_t i = 0; i < sim->jobs_count; i++)
        check_listing(sim, &sim->jobs[i]);
    if (host > 0 || !sim->broker_beside || !sim->broker->alive)
        return;
    sim->broker->down_us = side_range(sim, 100000, 5000000);
    broker_crash(sim, sim_fault_name(FAULT_BROKER_REBOOT));
}

static void cut_after(struct sim *sim, int64_t delay_us, unsigned host)
{
    sim_after(sim, delay_us, cut, NULL)->number = host;
}

void power_fault(struct sim *sim, const struct sim_fault_plan *plan)
{
    const struct sim_job *job = &sim->jobs[plan->target % sim->jobs_count];

    if (side_chance(sim, 30))
        cut_after(sim, 0, power_host(sim, plan->target / 7 % job->nodes));
    else
        sim->cuts[side_range(sim, 0, POWER_MOMENT_COUNT - 1)]++;
}

void power_moment(struct sim *sim, const struct sim_proc *proc, enum sim_power_moment moment)
{
    if (sim->cuts[moment] == 0 || side_chance(sim, 30))
        return;
    sim->cuts[moment]--;
    cut_after(sim, side_range(sim, 0, side_chance(sim, 70) ? 3000 : 300000),
              power_host(sim, proc->rank));
}
