/* outcomes - how the newest rounds ended, in a ring, for nodes that reconnect and ask. */
#include "broker/core/state/state.h"

static void outcomes_remember(struct job *job, const struct outcome *outcome)
{
    struct outcome *place = &job->outcomes[job->outcomes_next++ % OUTCOMES_MAX];

    if (place->round > job->outcomes_from)
        job->outcomes_from = place->round;
    *place = *outcome;
}

static struct outcome outcomes_outcome_of(const struct round *round)
{
    return (struct outcome){.round = round->round,
                            .state = round->state,
                            .cause = round->cause,
                            .step = round->step,
                            .generation = round->generation,
                            .attempt = round->attempt,
                            .final = round->final};
}

void round_remember(struct job *job, const struct round *round)
{
    const struct outcome outcome = outcomes_outcome_of(round);

    outcomes_remember(job, &outcome);
}

void round_imported(struct job *job, const struct outcome *outcome)
{
    for (size_t i = 0; i < OUTCOMES_MAX; i++)
        if (job->outcomes[i].round == outcome->round) {
            job->outcomes[i] = *outcome;
            return;
        }
    outcomes_remember(job, outcome);
}

/* A start reads as many as there is room for: with a full ring, nothing is known of what is below
 * all in it. */
uint64_t round_known_above(const struct job *job)
{
    uint64_t least = UINT64_MAX;

    if (job->outcomes_next < OUTCOMES_MAX)
        return 0;
    for (size_t i = 0; i < OUTCOMES_MAX; i++)
        if (job->outcomes[i].round < least)
            least = job->outcomes[i].round;
    return least > job->outcomes_from ? least : job->outcomes_from;
}

bool round_was_committed(const struct job *job, int64_t step)
{
    for (size_t i = 0; i < OUTCOMES_MAX; i++)
        if (job->outcomes[i].state == ROUND_COMMITTED && job->outcomes[i].step == step &&
            job->outcomes[i].generation == job->gen.generation)
            return true;
    return false;
}

/* A round that nobody knows any more is aborted: what it wrote was never committed. */
struct outcome round_outcome(struct job *job, uint64_t number)
{
    const struct round *round = round_find(job, number);

    if (round != NULL)
        return outcomes_outcome_of(round);
    for (size_t i = 0; i < OUTCOMES_MAX; i++)
        if (number > 0 && job->outcomes[i].round == number)
            return job->outcomes[i];
    return (struct outcome){
        .round = number, .state = number > 0 ? ROUND_ABORTED : ROUND_NONE, .step = -1};
}
