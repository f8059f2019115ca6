/* figures - answers what metrics show of each job. */
#include "broker/core/dispatch.h"

static void figures_ranks(const struct core *core, const struct job *job, struct core_job *figures)
{
    int64_t last = INT64_MAX;

    figures->step = job->gen.resume_step < 0 ? 0 : job->gen.resume_step;
    for (size_t i = 0; i < job->peers_count; i++) {
        const struct peer *peer = job->peers[i];
        int64_t silence_ms, stuck_ms;

        if (!role_is_trainer(peer->role))
            continue;
        if (peer->done > figures->step)
            figures->step = peer->done;
        if (!peer_is_live(peer))
            continue;
        figures->live++;
        last = peer->done < last ? peer->done : last;
        silence_ms = core_passed_ms(core, peer->heard_boot_ms);
        stuck_ms = peer->stuck_said ? core_passed_ms(core, peer->advanced_boot_ms) : 0;
        figures->silence_ms = silence_ms > figures->silence_ms ? silence_ms : figures->silence_ms;
        figures->stuck_ms = stuck_ms > figures->stuck_ms ? stuck_ms : figures->stuck_ms;
    }
    figures->lag = last == INT64_MAX || last > figures->step ? 0 : figures->step - last;
}

void core_jobs(const struct core *core, void (*take)(void *arg, const struct core_job *job),
               void *arg)
{
    for (const struct job *job = core->jobs; job != NULL; job = job->next) {
        const struct checkpoint *newest = registry_newest(job);
        struct core_job figures = {.name = job->name,
                                   .running = job->gen.state == GENERATION_RUNNING,
                                   .generation = job->gen.generation,
                                   .world_size = job->gen.world_size,
                                   .checkpoint_step = newest == NULL ? -1 : newest->row.step,
                                   .freeze_unix_ms = job->plan.freeze_unix_ms};

        if (job->gen.state == GENERATION_NONE || job->gen.state == GENERATION_ENDED)
            continue;
        if (newest != NULL)
            figures.checkpoint_unix_ms = newest->row.committed_unix_ms;
        for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next)
            figures.notices += notice->state == RECORD_NOTICE_ACTIVE;
        figures_ranks(core, job, &figures);
        registry_step_offset(job, &figures.step_offset);
        take(arg, &figures);
    }
}
