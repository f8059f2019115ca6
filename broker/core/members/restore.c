/* restore - what ranks say of their restore: done, or failed, and then perhaps all go back to an
 * older checkpoint. */
#include "broker/core/members/members.h"
#include "schema/error.h"

static struct answer restore_refuse(struct core *core, struct peer *peer, uint64_t checkpoint,
                                    int64_t step)
{
    struct job *job = peer->job;
    struct wire_event event = event_make(job, EVENT_RESTORE_FAILED);
    const char *text = out_printf(
        core, "rank %llu restored checkpoint %llu at step %lld, the job's is %llu at step %lld",
        (unsigned long long)peer->rank, (unsigned long long)checkpoint, registry_shown(job, step),
        (unsigned long long)job->gen.resume_checkpoint, registry_shown(job, job->gen.resume_step));

    event.rank = (int64_t)peer->rank;
    event.checkpoint = checkpoint;
    event.code = MUSTER_E_RESTORE;
    event.text = text;
    event_emit(core, job, event, 0);
    generation_set_first_error(core, job, (int64_t)peer->rank, MUSTER_E_RESTORE, text);
    generation_ending(core, job, MUSTER_E_RESTORE, text);
    return (struct answer){MUSTER_E_RESTORE, text, 0};
}

static bool restore_is_at_step(struct job *job, uint64_t checkpoint, int64_t step)
{
    const struct checkpoint *found = registry_find(job, checkpoint);

    return found != NULL && found->row.step == step;
}

struct answer restore_take_done(struct core *core, struct peer *peer, const struct wire_restored *m)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;

    if (peer->state == NODE_RESTORED)
        return ok;
    if (generation_is_over(job))
        return (struct answer){MUSTER_E_ENDING, "the generation is ending", 0};
    if (m->checkpoint != job->gen.resume_checkpoint && job->gen.fallback)
        return ok; /* an older one was announced meanwhile: it will restore that */
    bool wrong = m->checkpoint != job->gen.resume_checkpoint || m->step != job->gen.resume_step;
    if (m->checkpoint == 0 && m->step == 0 && registry_lets_begin(job, peer))
        wrong = false;
    if (!role_is_trainer(peer->role) && m->checkpoint > 0 && m->checkpoint == peer->told_resume)
        wrong = false; /* the launch's choice was deleted meanwhile: it was told another */
    if (peer->reads_any && restore_is_at_step(job, m->checkpoint, m->step))
        wrong = false; /* by the broker's start before this one */
    if (wrong && !role_is_trainer(peer->role))
        return observer_restore_failed(core, peer, m->step,
                                       "it restored another checkpoint than the job's");
    if (wrong)
        return restore_refuse(core, peer, m->checkpoint, m->step);
    peer_move(peer, NODE_RESTORED);
    peer->begun = peer->done = m->step;
    persist_peer(core, peer);
    return ok;
}

/* The whole generation goes back to the next older one. Newer checkpoints count until all have
 * restored: the older ones may be worse, and the next launch may find the newest mended. */
static bool restore_fall_back(struct core *core, struct job *job, uint64_t from)
{
    const struct checkpoint *failed = registry_find(job, from);
    const struct checkpoint *older = NULL;
    int64_t step = failed ? failed->row.step : job->gen.resume_step;

    for (size_t i = 0; i < job->checkpoints_count; i++)
        if (job->checkpoints[i].row.step < step)
            older = &job->checkpoints[i];
    if (older == NULL)
        return false;
    job->gen.resume_checkpoint = older->row.round;
    job->gen.resume_step = older->row.step;
    job->gen.resume_ready = false;
    persist_generation(core, job); /* also when it is announced only after its repair */
    for (size_t i = 0; i < job->peers_count; i++) {
        if (job->peers[i]->state != NODE_RESTORED)
            continue;
        peer_move(job->peers[i], NODE_JOINED);
        persist_peer(core, job->peers[i]);
    }
    return true;
}

struct answer restore_take_failed(struct core *core, struct peer *peer,
                                  const struct wire_restore_failed *m)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;
    struct wire_event event = event_make(job, EVENT_RESTORE_FAILED);

    bool joining = job->gen.state == GENERATION_JOINING;
    bool given_up = joining && job->gen.fallback && m->checkpoint != job->gen.resume_checkpoint;
    if (!role_is_trainer(peer->role) &&
        !given_up) /* what it was told may be another one than theirs */
        return observer_restore_failed(core, peer, m->step, m->text);
    if (job->gen.state != GENERATION_JOINING || m->checkpoint != job->gen.resume_checkpoint)
        return ok; /* of a choice that was given up already */
    event.rank = (int64_t)peer->rank;
    event.checkpoint = m->checkpoint;
    event.step = m->step;
    event.code = MUSTER_E_RESTORE;
    bool may = job->gen.fallback && !m->final && !m->imports;
    bool again = may && restore_fall_back(core, job, m->checkpoint);
    event.text =
        may && !again ? out_printf(core, "%.3900s; " ERROR_SAYS_NONE_OLDER, m->text) : m->text;
    event.flags = again ? EVENT_FLAG_RETRY : m->imports ? EVENT_FLAG_IMPORTS : 0;
    event_emit(core, job, event, 0);
    if (m->imports) {
        generation_ending(core, job, MUSTER_PREEMPTED, event.text);
        return ok;
    }
    if (!again) {
        generation_set_first_error(core, job, (int64_t)peer->rank, MUSTER_E_RESTORE, event.text);
        generation_ending(core, job, MUSTER_E_RESTORE,
                          out_printf(core, "rank %llu could not restore: %s",
                                     (unsigned long long)peer->rank, event.text));
        return ok;
    }
    const struct checkpoint *chosen = registry_find(job, job->gen.resume_checkpoint);
    if (chosen->path[0] != '\0')
        registry_announce_resume(core, job);
    else if (job->trainers[0] != NULL && job->trainers[0]->mapped)
        hello_snapshot(core, job->trainers[0]); /* it is asked to repair; else when it is back */
    return ok;
}
