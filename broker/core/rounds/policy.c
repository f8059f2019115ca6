/* policy - saves at a step that all ranks compute alike: they need no freeze. The first SAVE_AT
 * creates the round already decided; a save that cannot be made is skipped, with an event. */
#include "broker/core/rounds/rounds.h"

#include <stdio.h>

static void policy_skip(struct core *core, struct job *job, int64_t step, enum muster_status code,
                        const char *why)
{
    struct wire_event event = event_make(job, EVENT_SAVE_SKIPPED);

    job->policy_step = step;
    job->policy_skipped = true;
    event.step = step;
    event.text = why;
    event.code = code;
    event_emit(core, job, event, 0);
}

static void policy_open_round(struct core *core, struct job *job, int64_t step)
{
    char text[256];
    struct round *round;

    if (round_is_committed(job, step)) {
        policy_skip(core, job, step, MUSTER_E_EXISTS, "this step is committed already");
        return;
    }
    if (round_is_being_written(job, step)) {
        policy_skip(core, job, step, MUSTER_OK, "this step is being written already");
        return;
    }
    if (round_awaited(job) != NULL) {
        policy_skip(core, job, step, MUSTER_E_ENDING,
                    "the job ends with the checkpoint that is being written");
        return;
    }
    if (job->gen.layout == LAYOUT_SHARDED && round_missing_rank(job, text, sizeof text) >= 0) {
        policy_skip(core, job, step, MUSTER_OK, text);
        return;
    }
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++) {
        const struct peer *peer = job->trainers[rank];
        if (peer == NULL || peer->done <= step)
            continue; /* it waited for another round: that one took all beyond this step */
        snprintf(text, sizeof text, "rank %llu is past this step already",
                 (unsigned long long)rank);
        policy_skip(core, job, step, MUSTER_OK, text);
        return;
    }
    round = round_new(core, job, CAUSE_POLICY, 1);
    if (round != NULL)
        round_add_members(job, round);
    if (round == NULL || round->count == 0) {
        if (round != NULL) {
            job->round--; /* nobody heard of it */
            round_free(round);
        }
        policy_skip(core, job, step, MUSTER_E_ABORTED,
                    "earlier checkpoints are still being written");
        return;
    }
    job->policy_step = step;
    job->policy_skipped = false;
    persist_job(core, job);
    round_decide(core, job, round, step);
}

void policy_pending(struct core *core, struct job *job)
{
    int64_t step = job->policy_pending;

    if (step < 0 || round_open_one(job) != NULL || job->want.cause != CAUSE_NONE ||
        job->gen.state != GENERATION_RUNNING)
        return;
    job->policy_pending = -1;
    if (step > job->policy_step)
        policy_open_round(core, job, step);
}

/* A rank that comes late to the newest policy save: only an open round is still to be waited for.
 */
static struct answer policy_answer_late(const struct job *job, int64_t step)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        const struct round *round = &job->rounds[i];
        if (round->used && round->step == step && round->state == ROUND_DECIDED)
            return (struct answer){MUSTER_OK, "", 0};
        if (round->used && round->step == step && round->state == ROUND_WRITING)
            return (struct answer){MUSTER_E_BUSY, "this step is captured already", 0};
    }
    if (round_is_committed(job, step))
        return (struct answer){MUSTER_E_EXISTS, "this step is committed already", 0};
    return (struct answer){MUSTER_E_ABORTED, "this save was aborted", 0};
}

struct answer policy_save_at(struct core *core, struct peer *peer, int64_t step)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;
    struct round *round = round_open_one(job);

    if (!step_ok(step))
        return (struct answer){MUSTER_E_ARGUMENT, "there is no such step", 0};
    if (job->gen.state != GENERATION_RUNNING || peer->state != NODE_RESTORED)
        return (struct answer){MUSTER_E_ABORTED, "the job is not taking steps", 0};
    if (step <= job->policy_step) {
        if (registry_has_step(job, step) || round_was_committed(job, step))
            return (struct answer){MUSTER_E_EXISTS, "this step is committed already", 0};
        if (job->policy_skipped || step < job->policy_step)
            return (struct answer){MUSTER_E_ABORTED, "this save was skipped", 0};
        return policy_answer_late(job, step);
    }
    if (round != NULL) {
        struct participant *part = round_part(round, peer);
        if (round->state == ROUND_DECIDED && part != NULL && part->captured_ms < 0 &&
            step > round->step) {
            char text[160];
            snprintf(text, sizeof text, "rank %llu is at step %lld, past the save step %lld",
                     (unsigned long long)peer->rank, registry_shown(job, step),
                     registry_shown(job, round->step));
            round_abort(core, job, round, (int64_t)peer->rank, MUSTER_E_ABORTED, text, ABORT_RETRY);
        }
    }
    if (step > job->policy_pending)
        job->policy_pending = step;
    return ok;
}
