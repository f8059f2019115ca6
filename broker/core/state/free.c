/* free - gives back what a job holds, when it leaves memory. */
#include "broker/core/state/state.h"

#include <stdlib.h>

void round_free(struct round *round)
{
    free(round->parts);
    free(round->metrics);
    memset(round, 0, sizeof *round);
}

void notices_free(struct job *job)
{
    while (job->notices != NULL) {
        struct notice *next = job->notices->next;
        free(job->notices->text);
        free(job->notices);
        job->notices = next;
    }
}

static void free_hosts(struct job *job)
{
    if (job->hosts == NULL)
        return;
    free(job->hosts->items);
    free(job->hosts->places);
    free(job->hosts);
}

void policies_free(struct job *job)
{
    struct job_policies *policies = job->keep.policies;

    if (policies == NULL)
        return;
    free(policies->keep_text);
    free(policies->save_text);
    free(policies);
    job->keep.policies = NULL;
}

static void free_checkpoints(struct job *job)
{
    for (size_t i = 0; i < job->checkpoints_count; i++) {
        free(job->checkpoints[i].path);
        free(job->checkpoints[i].metrics);
    }
    free(job->checkpoints);
    free(job->launches);
}

static void free_keep(struct job *job)
{
    struct keep_state *keep = &job->keep;

    policies_free(job);
    for (size_t i = 0; i < keep->deletions_count; i++) {
        free(keep->deletions[i].path);
        free(keep->deletions[i].metrics);
        free(keep->deletions[i].trash);
    }
    for (size_t i = 0; i < keep->given_up_count; i++) {
        free(keep->given_up[i].path);
        free(keep->given_up[i].metrics);
    }
    free(keep->deletions);
    free(keep->given_up);
    free(keep->pins);
}

void job_free(struct core *core, struct job *job)
{
    peers_forget(core, job);
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        round_free(&job->rounds[i]);
    free_checkpoints(job);
    free_keep(job);
    notices_free(job);
    free_hosts(job);
    free(job->peers);
    free(job->trainers);
    free(job->gen.error_text);
    free(job->partly);
    free(job);
}
