/* facts - questions about a launch and its processes that more than one machine asks. None changes
 * anything. */
#include "broker/core/state/state.h"

bool generation_began_is_known(const struct job *job)
{
    return job->gen.opened_unix_ms > 0;
}

bool generation_is_over(const struct job *job)
{
    return job->gen.state == GENERATION_ENDING || job->gen.state == GENERATION_ENDED;
}

static bool facts_rank_joined(const struct job *job, uint64_t rank)
{
    for (size_t i = 0; i < job->peers_count; i++)
        if (role_is_trainer(job->peers[i]->role) && job->peers[i]->rank == rank)
            return true;
    return false;
}

/* The launch ended before this rank came, and its process is older than that end: terminated, or
 * because a rank told that it failed. A rank that had joined is never late: its process was
 * restarted. So one rank at least can open the next generation, whatever the clocks say. */
bool generation_rank_is_late(const struct core *core, const struct job *job, uint64_t rank,
                             uint64_t age_ms)
{
    const struct generation *gen = &job->gen;
    bool terminated = gen->end_status == MUSTER_PREEMPTED || gen->end_status == MUSTER_E_NOT_SAVED;
    bool told = gen->end_status == MUSTER_E_RESTORE || gen->end_status == MUSTER_E_PEER;
    bool for_all = told || (terminated && gen->error_rank < 0);

    return generation_is_over(job) && for_all && gen->started_unix_ms == 0 &&
           rank < gen->world_size && !facts_rank_joined(job, rank) && age_ms > 0 &&
           age_ms <= (uint64_t)core->now_unix &&
           core->now_unix - (int64_t)age_ms < gen->ending_unix_ms;
}

/* Its ranks: whoever else lives is waited for by nobody. */
size_t generation_live_count(const struct job *job)
{
    size_t live = 0;

    for (size_t i = 0; i < job->peers_count; i++)
        live += role_is_trainer(job->peers[i]->role) && peer_is_live(job->peers[i]);
    return live;
}

/* Nobody waits for a rank that restored and had nothing left to do: it joined, and is done. */
bool generation_rank_finished(const struct job *job, uint64_t rank)
{
    if (peer_of_rank(job, (int64_t)rank) != NULL)
        return false; /* another life of it came back */
    for (size_t i = 0; i < job->peers_count; i++) {
        const struct peer *peer = job->peers[i];
        if (role_is_trainer(peer->role) && peer->rank == rank && peer_has_finished(peer))
            return true;
    }
    return false;
}

/* --- parameter servers ------------------------------------------------------------------------ */

/* A rank that said that it has finished is needed no more. */
bool servers_is_gone(const struct core *core, const struct peer *peer)
{
    if (peer->state == NODE_FENCED)
        return core_passed_ms(core, peer->heard_boot_ms) >= LOST_MS;
    return peer->state == NODE_LOST ||
           (peer->state == NODE_LEFT && peer->leave_why != LEAVE_FINISHED);
}

/* The newest process of each rank counts: the last in the order in which they came. */
bool servers_is_newest(const struct job *job, size_t index)
{
    const struct peer *peer = job->peers[index];

    if (peer->role != ROLE_PS)
        return false;
    for (size_t i = 0; i < job->peers_count; i++)
        if (i != index && job->peers[i]->role == ROLE_PS && job->peers[i]->rank == peer->rank &&
            (i > index || peer_is_live(job->peers[i])))
            return false;
    return true;
}

const struct peer *servers_missing(const struct core *core, const struct job *job)
{
    const struct peer *missing = NULL;

    for (size_t i = 0; i < job->peers_count; i++)
        if ((missing == NULL || job->peers[i]->rank < missing->rank) && servers_is_newest(job, i) &&
            servers_is_gone(core, job->peers[i]))
            missing = job->peers[i];
    return missing;
}
