/* registry - committed checkpoints, and which one a generation resumes from.
 * Holds the newest CORE_CHECKPOINTS_MAX committed ones that are not superseded; the database has all. */
#include "broker/core/state/state.h"

#include "schema/error.h"
#include "schema/paths.h"
#include "schema/room.h"

#include <stdio.h>

const struct checkpoint *registry_newest(const struct job *job)
{
    return job->checkpoints_count ? &job->checkpoints[job->checkpoints_count - 1] : NULL;
}

const struct checkpoint *registry_newest_whole(const struct job *job)
{
    for (size_t i = job->checkpoints_count; i-- > 0;)
        if (job->checkpoints[i].path[0] != '\0')
            return &job->checkpoints[i];
    return NULL;
}

static void drop(struct job *job, size_t index)
{
    free(job->checkpoints[index].path);
    free(job->checkpoints[index].metrics);
    memmove(&job->checkpoints[index], &job->checkpoints[index + 1],
            (job->checkpoints_count - index - 1) * sizeof job->checkpoints[0]);
    job->checkpoints_count--;
}

static void point_to_own(struct job *job, struct checkpoint *checkpoint)
{
    checkpoint->row.job = job->name;
    checkpoint->row.path = checkpoint->path;
    checkpoint->row.metrics = checkpoint->metrics;
    checkpoint->row.trash = "";
    job->keep.changed = true;
}

static void make_room(struct job *job)
{
    job->checkpoints = room_for_one(job->checkpoints, job->checkpoints_count,
                                    &job->checkpoints_capacity, 16, sizeof *job->checkpoints);
    MUST(job->checkpoints != NULL);
}

void registry_add(struct job *job, const struct record_checkpoint *row)
{
    size_t at = job->checkpoints_count;

    while (at > 0 && (job->checkpoints[at - 1].row.step > row->step ||
                      (job->checkpoints[at - 1].row.step == row->step &&
                       job->checkpoints[at - 1].row.round > row->round)))
        at--;
    if (job->checkpoints_count == CORE_CHECKPOINTS_MAX) {
        if (at == 0)
            return; /* older than all that are held */
        drop(job, 0);
        at--;
    }
    make_room(job);
    memmove(&job->checkpoints[at + 1], &job->checkpoints[at],
            (job->checkpoints_count - at) * sizeof job->checkpoints[0]);
    job->checkpoints_count++;
    struct checkpoint *checkpoint = &job->checkpoints[at];
    checkpoint->row = *row;
    checkpoint->given_up = false;
    checkpoint->path = strdup(row->path);
    checkpoint->metrics = strdup(row->metrics);
    MUST(checkpoint->path != NULL && checkpoint->metrics != NULL);
    point_to_own(job, checkpoint);
}

void registry_free(struct job *job)
{
    while (job->checkpoints_count > 0)
        drop(job, job->checkpoints_count - 1);
    free(job->checkpoints);
    job->checkpoints = NULL;
    job->checkpoints_capacity = 0;
}

void registry_drop(struct job *job, uint64_t round)
{
    for (size_t i = 0; i < job->checkpoints_count; i++) {
        if (job->checkpoints[i].row.round != round)
            continue;
        drop(job, i);
        return;
    }
}

struct checkpoint *registry_find(struct job *job, uint64_t round)
{
    for (size_t i = 0; i < job->checkpoints_count; i++)
        if (job->checkpoints[i].row.round == round)
            return &job->checkpoints[i];
    return NULL;
}

bool registry_has(const struct job *job, uint64_t round)
{
    for (size_t i = 0; i < job->checkpoints_count; i++)
        if (job->checkpoints[i].row.round == round)
            return true;
    return false;
}

bool registry_has_step(const struct job *job, int64_t step)
{
    for (size_t i = job->checkpoints_count; i-- > 0 && job->checkpoints[i].row.step >= step;)
        if (job->checkpoints[i].row.step == step)
            return true;
    return false;
}

bool registry_step_offset(const struct job *job, int64_t *ret_offset)
{
    for (size_t i = job->checkpoints_count; i-- > 0;) {
        if (job->checkpoints[i].path[0] == '\0')
            continue; /* its name follows: the ones before tell */
        *ret_offset = paths_step_offset(job->checkpoints[i].path, job->checkpoints[i].row.step);
        return true;
    }
    return false;
}

long long registry_shown(const struct job *job, int64_t step)
{
    int64_t offset = 0;

    return step > 0 && registry_step_offset(job, &offset) ? step + offset : step;
}

const struct checkpoint *registry_resume_of(struct job *job, struct peer *peer)
{
    const struct checkpoint *chosen = registry_find(job, job->gen.resume_checkpoint);

    if (chosen == NULL && job->gen.resume_checkpoint > 0 && !role_is_trainer(peer->role) &&
        job->gen.state == GENERATION_RUNNING) {
        chosen = registry_find(job, peer->told_resume); /* it reads that one already */
        if (chosen == NULL)
            chosen = registry_newest_whole(job);
    }
    peer->told_resume = chosen != NULL ? chosen->row.round : 0;
    return chosen;
}

bool registry_lets_begin(const struct job *job, const struct peer *peer)
{
    return !role_is_trainer(peer->role) && job->gen.state == GENERATION_RUNNING &&
           !registry_has(job, job->gen.resume_checkpoint);
}

/* The choice is in place (manifest and final name): every rank may restore it. After this nobody
 * renames it. */
void registry_announce_resume(struct core *core, struct job *job)
{
    struct generation *gen = &job->gen;
    const struct checkpoint *chosen = registry_find(job, gen->resume_checkpoint);
    struct wire_event event = event_make(job, EVENT_RESUME);

    gen->resume_ready = true;
    persist_generation(core, job);
    event.checkpoint = gen->resume_checkpoint;
    event.step = gen->resume_step;
    event.path = chosen ? chosen->path : "";
    event_emit(core, job, event, 0);
}

static struct answer wrong_restore(struct core *core, struct peer *peer, uint64_t checkpoint,
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

static bool is_at_step(struct job *job, uint64_t checkpoint, int64_t step)
{
    const struct checkpoint *found = registry_find(job, checkpoint);

    return found != NULL && found->row.step == step;
}

struct answer registry_restored(struct core *core, struct peer *peer, const struct wire_restored *m)
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
    if (peer->reads_any && is_at_step(job, m->checkpoint, m->step))
        wrong = false; /* by the broker's start before this one */
    if (wrong && !role_is_trainer(peer->role))
        return bystander_restore_failed(core, peer, m->step,
                                        "it restored another checkpoint than the job's");
    if (wrong)
        return wrong_restore(core, peer, m->checkpoint, m->step);
    peer_move(peer, NODE_RESTORED);
    peer->begun = peer->done = m->step;
    persist_peer(core, peer);
    return ok;
}

bool registry_is_given_up(const struct job *job, const struct checkpoint *checkpoint)
{
    return job->gen.fallback && checkpoint != NULL &&
           checkpoint->row.generation < job->gen.generation &&
           checkpoint->row.step > job->gen.resume_step;
}

void registry_give_up_beyond(struct core *core, struct job *job, int64_t step)
{
    size_t before = job->checkpoints_count;
    struct action *action;

    for (size_t i = before; i-- > 0 && job->checkpoints[i].row.step > step;) {
        if (job->checkpoints[i].row.generation >= job->gen.generation)
            continue; /* its own */
        given_up_add(job, &job->checkpoints[i].row);
        drop(job, i);
    }
    if (job->checkpoints_count == before)
        return;
    action = action_add(core, ACTION_PERSIST);
    action->record.kind = RECORD_SUPERSEDE;
    action->record.u.supersede =
        (struct record_supersede){out_text(core, job->name), step, job->gen.generation};
}

void registry_supersede_given_up(struct core *core, struct job *job)
{
    if (registry_is_given_up(job, registry_newest(job)))
        registry_give_up_beyond(core, job, job->gen.resume_step);
}

/* The whole generation goes back to the next older one. What is newer counts until all have restored: the older ones
 * may be worse, and the next launch may find the newest mended. */
static bool fall_back(struct core *core, struct job *job, uint64_t from)
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

struct answer registry_restore_failed(struct core *core, struct peer *peer,
                                      const struct wire_restore_failed *m)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;
    struct wire_event event = event_make(job, EVENT_RESTORE_FAILED);

    bool joining = job->gen.state == GENERATION_JOINING;
    bool given_up = joining && job->gen.fallback && m->checkpoint != job->gen.resume_checkpoint;
    if (!role_is_trainer(peer->role) &&
        !given_up) /* what it was told may be another one than theirs */
        return bystander_restore_failed(core, peer, m->step, m->text);
    if (job->gen.state != GENERATION_JOINING || m->checkpoint != job->gen.resume_checkpoint)
        return ok; /* of a choice that was given up already */
    event.rank = (int64_t)peer->rank;
    event.checkpoint = m->checkpoint;
    event.step = m->step;
    event.code = MUSTER_E_RESTORE;
    bool may = job->gen.fallback && !m->final;
    bool again = may && fall_back(core, job, m->checkpoint);
    event.text =
        may && !again ? out_printf(core, "%.3900s; " ERROR_SAYS_NONE_OLDER, m->text) : m->text;
    event.flags = again ? EVENT_FLAG_RETRY : 0;
    event_emit(core, job, event, 0);
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

struct answer registry_manifest_done(struct core *core, struct peer *peer,
                                     const struct wire_manifest_done *m)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;
    struct checkpoint *checkpoint = registry_find(job, m->checkpoint);

    if (checkpoint == NULL || checkpoint->path[0] != '\0')
        return ok; /* superseded meanwhile, or told twice */
    if (m->path[0] == '\0') {
        checkpoint->given_up = true;
        return ok;
    }
    free(checkpoint->path);
    checkpoint->path = strdup(m->path);
    MUST(checkpoint->path != NULL);
    point_to_own(job, checkpoint);
    persist_checkpoint(core, &checkpoint->row);
    struct wire_event event = event_make(job, EVENT_MANIFEST);
    event.checkpoint = m->checkpoint;
    event.round = m->checkpoint;
    event.step = checkpoint->row.step;
    event.path = m->path;
    event_emit(core, job, event, 0);
    if ((job->gen.state == GENERATION_JOINING || job->gen.state == GENERATION_RUNNING) &&
        !job->gen.resume_ready && job->gen.resume_checkpoint == m->checkpoint)
        registry_announce_resume(core, job);
    job_timer(job, core->now); /* deletions may have waited for it */
    return ok;
}
