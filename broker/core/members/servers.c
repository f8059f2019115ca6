/* servers - the parameter servers that a job has: tasks need them, steps do not (bystander.c). One that was lost, was
 * preempted or failed took what it had with it: it is missed until it is back, also by the launches that follow: it stands among their nodes, with its old row, until
 * its rank is taken again. So is one that lived when its launch was over and does not follow into the next: nobody
 * judges its silence there. A job that has finished misses nobody. */
#include "broker/core/state/state.h"

/* Who said that it has finished is needed no more. */
static bool is_gone(const struct core *core, const struct peer *peer)
{
    if (peer->state == NODE_FENCED)
        return core_passed_ms(core, peer->heard_boot_ms) >= LOST_MS;
    return peer->state == NODE_LOST ||
           (peer->state == NODE_LEFT && peer->leave_why != LEAVE_FINISHED);
}

/* The newest process of each rank counts: the last in the order in which they came. */
static bool is_newest(const struct job *job, size_t index)
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
        if ((missing == NULL || job->peers[i]->rank < missing->rank) && is_newest(job, i) &&
            is_gone(core, job->peers[i]))
            missing = job->peers[i];
    return missing;
}

static bool has_finished(const struct job *job)
{
    uint64_t finished = 0;

    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        finished += generation_rank_finished(job, rank);
    return finished == job->gen.world_size;
}

void servers_keep(struct core *core, struct job *job, bool launch)
{
    const bool finished = has_finished(job);

    for (size_t i = 0; i < job->peers_count; i++) {
        struct peer *peer = job->peers[i];
        bool follows = launch && (peer_is_live(peer) || peer->state == NODE_FENCED);

        peer->kept = !finished && is_newest(job, i) && (follows || is_gone(core, peer));
    }
    for (size_t i = 0; i < job->peers_count; i++) /* of a launch that had ended before */
        if (job->peers[i]->kept && peer_is_live(job->peers[i]))
            peer_move(job->peers[i], NODE_FENCED);
}

void servers_kept(struct core *core, struct job *job)
{
    for (size_t i = 0; i < job->peers_count; i++) {
        job->peers[i]->kept = false;
        persist_peer(core, job->peers[i]);
    }
}
