/* servers - the parameter servers that a job has: tasks need them, steps do not (observer.c). A
 * server that was lost, was preempted or failed took what it had with it, so it is missed until it
 * is back. The launches that follow miss it, too: it stands among their nodes, with its old row,
 * until its rank is taken again. The same goes for one that lived when its launch was over and does
 * not follow into the next, since nobody judges its silence there. A job that has finished misses
 * nobody. */
#include "broker/core/members/members.h"

static bool servers_has_finished(const struct job *job)
{
    uint64_t finished = 0;

    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        finished += generation_rank_finished(job, rank);
    return finished == job->gen.world_size;
}

void servers_keep(struct core *core, struct job *job)
{
    const bool finished = servers_has_finished(job);

    for (size_t i = 0; i < job->peers_count; i++) {
        struct peer *peer = job->peers[i];
        bool follows = peer_is_live(peer) || peer->state == NODE_FENCED;

        peer->kept =
            !finished && servers_is_newest(job, i) && (follows || servers_is_gone(core, peer));
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
