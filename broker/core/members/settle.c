/* settle - what follows from a job's facts, whoever changed them.
 * Owns: the order of the consequences of an input. Handlers change facts of their own and call no
 * other machine. Always: settling again at the same moment does nothing, which the simulator checks
 * after each input. */
#include "broker/core/members/members.h"

#include <stdio.h>

/* An error is known, and the round that it waited for came to nothing or is over. */
static void settle_error(struct core *core, struct job *job)
{
    const struct generation *gen = &job->gen;
    char text[64];

    if ((gen->state != GENERATION_RUNNING && gen->state != GENERATION_JOINING) ||
        gen->error_rank < 0 || job->want.cause != CAUSE_NONE || round_awaited(job) != NULL)
        return;
    const struct peer *peer = peer_of_rank(job, gen->error_rank);
    snprintf(text, sizeof text, "rank %lld failed its step", (long long)gen->error_rank);
    generation_ending(core, job, MUSTER_E_PEER,
                      peer != NULL && peer->failed ? text : gen->error_text);
}

/* The consequences of processes that come and go take a look at each process: not for every word of
 * one of thousands. */
void job_settle(struct core *core, struct job *job)
{
    job->settled_step = core->steps;
    if (job->moved) {
        generation_check_started(core, job);
        save_settle(core, job);
        notices_settle(core, job);
    }
    round_settle(core, job);
    grace_consider(core, job);
    round_try_open(core, job);
    settle_error(core, job);
    policy_pending(core, job);
    if (job->moved)
        generation_check_ended(core, job);
    keep_settle(core, job);
    job->moved = false;
    persist_want(core, job);
}

void core_settle(struct core *core, struct actions *out)
{
    core->out = out;
    for (struct job *job = core->jobs; job != NULL; job = job->next) {
        if (job->settled_step != core->steps)
            continue;
        job->moved = true;
        job_settle(core, job);
    }
    core->out = NULL;
}
