/* facts_saves - questions about rounds and checkpoints that more than one machine asks. None
 * changes anything. */
#include "broker/core/state/state.h"
#include "schema/paths.h"

/* --- rounds ----------------------------------------------------------------------------------- */

struct round *round_open_one(struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used &&
            (job->rounds[i].state == ROUND_FREEZING || job->rounds[i].state == ROUND_DECIDED))
            return &job->rounds[i];
    return NULL;
}

struct round *round_awaited(struct job *job)
{
    struct round *round = round_open_one(job);

    for (size_t i = 0; round == NULL && i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used && job->rounds[i].cause == CAUSE_TERMINATION)
            round = &job->rounds[i];
    return round;
}

struct round *round_find(struct job *job, uint64_t number)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used && job->rounds[i].round == number)
            return &job->rounds[i];
    return NULL;
}

struct participant *round_part(struct round *round, const struct peer *peer)
{
    size_t from = 0, to = round->count;

    while (from < to) { /* they are by rank */
        size_t middle = from + (to - from) / 2;

        if (round->parts[middle].rank < peer->rank)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == round->count || round->parts[from].incarnation != peer->incarnation)
        return NULL;
    return &round->parts[from];
}

/* --- checkpoints ------------------------------------------------------------------------------ */

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

bool round_is_committed(const struct job *job, int64_t step)
{
    const struct checkpoint *newest = registry_newest(job);
    uint64_t resume = job->gen.resume_checkpoint;
    bool known =
        generation_began_is_known(job); /* else what others saved may be of a branch that it left */

    if (step == job->gen.resume_step && (resume == 0 || (known && registry_has(job, resume))))
        return true; /* it may have been deleted meanwhile */
    return newest != NULL && newest->row.step == step &&
           (known || newest->row.generation == job->gen.generation);
}

bool round_is_being_written(const struct job *job, int64_t step)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used && job->rounds[i].state == ROUND_WRITING &&
            job->rounds[i].step == step)
            return true;
    return false;
}
