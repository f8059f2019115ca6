/* registry - committed checkpoints, and which one a generation resumes from.
 * Holds the newest CORE_CHECKPOINTS_MAX committed ones that count; the database has all. */
#include "broker/core/checkpoints/checkpoints.h"

#include "schema/error.h"
#include "schema/room.h"

#include <stdio.h>

static void registry_drop_at(struct job *job, size_t index)
{
    free(job->checkpoints[index].path);
    free(job->checkpoints[index].metrics);
    memmove(&job->checkpoints[index], &job->checkpoints[index + 1],
            (job->checkpoints_count - index - 1) * sizeof job->checkpoints[0]);
    job->checkpoints_count--;
}

static void registry_point_to_own(struct job *job, struct checkpoint *checkpoint)
{
    checkpoint->row.job = job->name;
    checkpoint->row.path = checkpoint->path;
    checkpoint->row.metrics = checkpoint->metrics;
    checkpoint->row.trash = "";
    job->keep.changed = true;
}

static void registry_make_room(struct job *job)
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
        registry_drop_at(job, 0);
        at--;
    }
    registry_make_room(job);
    memmove(&job->checkpoints[at + 1], &job->checkpoints[at],
            (job->checkpoints_count - at) * sizeof job->checkpoints[0]);
    job->checkpoints_count++;
    struct checkpoint *checkpoint = &job->checkpoints[at];
    checkpoint->row = *row;
    checkpoint->given_up = false;
    checkpoint->path = strdup(row->path);
    checkpoint->metrics = strdup(row->metrics);
    MUST(checkpoint->path != NULL && checkpoint->metrics != NULL);
    registry_point_to_own(job, checkpoint);
}

void registry_drop(struct job *job, uint64_t round)
{
    for (size_t i = 0; i < job->checkpoints_count; i++) {
        if (job->checkpoints[i].row.round != round)
            continue;
        registry_drop_at(job, i);
        return;
    }
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

static bool registry_counts(const struct job *job, const struct record_checkpoint *row)
{
    return counts_among(job->launches, job->launches_count, row->generation, row->step);
}

bool registry_take(struct job *job, const struct record_checkpoint *row)
{
    const bool counts = registry_counts(job, row);

    given_up_forget(job, row->round); /* an import tells it again */
    if (counts)
        registry_add(job, row);
    else
        given_up_add(job, row);
    return counts;
}

void registry_load_launch(struct job *job, const struct record_launch *row)
{
    job->launches = room_for_one(job->launches, job->launches_count, &job->launches_capacity, 8,
                                 sizeof *job->launches);
    MUST(job->launches != NULL);
    job->launches[job->launches_count++] = (struct counts_launch){row->generation, row->began_step};
}

void registry_launched(struct core *core, struct job *job, uint64_t generation, int64_t began_step)
{
    const struct record_launch row = {out_text(core, job->name), generation, began_step};
    size_t at = 0;

    while (at < job->launches_count && job->launches[at].generation != generation)
        at++;
    if (at < job->launches_count && job->launches[at].began_step <= began_step)
        return; /* it is known of it already */
    if (at == job->launches_count)
        registry_load_launch(job, &row);
    job->launches[at].began_step = began_step;
    struct action *action = action_add(core, ACTION_PERSIST);
    action->record.kind = RECORD_LAUNCH;
    action->record.u.launch = row;
    for (size_t i = job->checkpoints_count; i-- > 0;) {
        if (registry_counts(job, &job->checkpoints[i].row))
            continue;
        given_up_add(job, &job->checkpoints[i].row);
        registry_drop_at(job, i);
    }
}

struct answer registry_manifest_done(struct core *core, struct peer *peer,
                                     const struct wire_manifest_done *m)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;
    struct checkpoint *checkpoint = registry_find(job, m->checkpoint);

    if (checkpoint == NULL || checkpoint->path[0] != '\0')
        return ok; /* it counts no more, or was told twice */
    if (m->path[0] == '\0') {
        checkpoint->given_up = true;
        return ok;
    }
    free(checkpoint->path);
    checkpoint->path = strdup(m->path);
    MUST(checkpoint->path != NULL);
    registry_point_to_own(job, checkpoint);
    persist_checkpoint(core, &checkpoint->row);
    struct wire_event event = event_make(job, EVENT_MANIFEST);
    event.checkpoint = m->checkpoint;
    event.round = m->checkpoint;
    event.step = checkpoint->row.step;
    event.path = m->path;
    event_emit(core, job, event, 0);
    if ((job->gen.state == GENERATION_JOINING || job->gen.state == GENERATION_RUNNING) &&
        job->gen.resume_checkpoint == m->checkpoint)
        registry_announce_resume(core, job);
    job_timer(job, core->now); /* deletions may have waited for it */
    return ok;
}
