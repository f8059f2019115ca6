/* generation - one launch of the job: its opening with the one resume choice, its start once all
 * have restored, its end. */
#include "broker/core/members/members.h"

#include <stdio.h>

static void generation_reset(struct core *core, struct job *job)
{
    servers_keep(core, job);
    peers_forget(core, job);
    notices_free(job);
    free(job->gen.error_text);
    free(job->trainers);
    job->trainers = NULL;
    memset(&job->gen, 0, sizeof job->gen);
    job->gen.error_rank = -1;
    round_want_nothing(job);
    job->want_not_before_boot_ms = 0;
    grace_forget(job);
    job->policy_step = -1;
    job->policy_skipped = false;
    job->policy_pending = -1;
    job->keep.final = false;
}

static void generation_set_facts(struct core *core, struct job *job, uint64_t number,
                                 const struct wire_hello *hello)
{
    struct generation *gen = &job->gen;

    gen->generation = number;
    generation_move(gen, GENERATION_JOINING);
    gen->world_size = hello->world_size;
    gen->layout = (enum wire_layout)hello->layout;
    gen->fallback = hello->restore_fallback;
    strncpy(gen->checkpoint_dir, hello->checkpoint_dir, sizeof gen->checkpoint_dir - 1);
    gen->opened_unix_ms = core->now_unix;
    gen->join_ms = hello->join_timeout_ms > 0 ? (int64_t)hello->join_timeout_ms
                                              : core->options.join_timeout_ms;
    gen->join_until_boot_ms = core->now + gen->join_ms;
    job->trainers = calloc(gen->world_size, sizeof(struct peer *));
    MUST(job->trainers != NULL);
    job->state_unix_ms = core->now_unix;
    job_timer(job, gen->join_until_boot_ms);
}

/* Rounds of earlier generations can no longer commit: their writers belong to a generation that is
 * over. */
static void generation_close_old_rounds(struct core *core, struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used)
            round_abort(core, job, &job->rounds[i], -1, MUSTER_E_ABORTED,
                        "the next generation was opened before it was committed", ABORT_OVER);
}

static void generation_fence_old(struct core *core, struct job *job)
{
    generation_close_old_rounds(core, job);
    if (job->gen.generation == 0 || job->gen.state == GENERATION_ENDED)
        return;
    for (size_t i = 0; i < job->peers_count; i++) {
        if (!peer_is_live(job->peers[i]))
            continue;
        peer_move(job->peers[i], NODE_FENCED);
        persist_peer(core, job->peers[i]);
    }
    generation_move(&job->gen, GENERATION_ENDED);
    job->gen.ended_unix_ms = core->now_unix;
    save_policy_ended(job);
    persist_generation(core, job);
}

static const struct checkpoint *generation_choose(struct job *job)
{
    const struct checkpoint *newest = registry_newest(job);

    job->gen.resume_checkpoint = newest != NULL ? newest->row.round : 0;
    job->gen.resume_step = newest != NULL ? newest->row.step : 0;
    return newest;
}

void generation_open(struct core *core, struct job *job, const struct wire_hello *hello)
{
    uint64_t number = job->gen.generation + 1;

    for (size_t i = 0; i < job->launches_count; i++) /* an imported one may be greater */
        if (job->launches[i].generation >= number)
            number = job->launches[i].generation + 1;
    generation_fence_old(core, job);
    generation_reset(core, job);
    generation_set_facts(core, job, number, hello);

    const struct checkpoint *newest = generation_choose(job);
    persist_job(core, job);
    persist_generation(core, job);
    servers_kept(core, job);
    struct wire_event event = event_make(job, EVENT_GENERATION_OPENED);
    event.checkpoint = job->gen.resume_checkpoint;
    event.step = job->gen.resume_step;
    event_emit(core, job, event, 0);
    if (newest == NULL || newest->path[0] != '\0')
        registry_announce_resume(core, job);
}

/* Records a launch that this database, an older copy, does not know: it is over, and no other one
 * gets its number. */
void generation_ahead(struct core *core, struct job *job, uint64_t generation,
                      const struct wire_hello *hello, const char *text)
{
    generation_fence_old(core, job);
    generation_reset(core, job);
    generation_set_facts(core, job, generation, hello);
    job->gen.opened_unix_ms = 0; /* no manifest tells where it began */
    (void)generation_choose(job);
    persist_job(core, job);
    persist_generation(core, job);
    servers_kept(core, job);
    generation_ending(core, job, MUSTER_PREEMPTED, text);
    job->gen.ending_unix_ms = 0; /* so nobody who comes is late for it */
    job->moved = true;           /* nobody is in it */
    persist_generation(core, job);
}

/* A rank that had nothing left to do came and went before the others. These are still to come, and
 * need not wait for it. Bounded by the join timeout. */
static bool generation_others_are_to_come(const struct job *job)
{
    uint64_t finished = 0;

    if (job->gen.state != GENERATION_JOINING)
        return false;
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        finished += generation_rank_finished(job, rank);
    return finished > 0 && finished < job->gen.world_size;
}

/* No round is open: a round needs a member that lives, and a member that leaves or is lost ends
 * each round that needs it. (One that is still open would end by its bounds, or when the next
 * launch is opened.) */
void generation_end(struct core *core, struct job *job)
{
    round_want_nothing(job);
    grace_forget(job);
    generation_move(&job->gen, GENERATION_ENDED);
    job->gen.ended_unix_ms = core->now_unix;
    save_policy_ended(job);
    job->state_unix_ms = core->now_unix;
    persist_generation(core, job);
    struct wire_event event = event_make(job, EVENT_GENERATION_ENDED);
    event.text = job->gen.end_text[0] ? job->gen.end_text : "its last process left";
    event_emit(core, job, event, 0);
}

void generation_check_ended(struct core *core, struct job *job)
{
    enum wire_generation_state state = job->gen.state;

    if (state != GENERATION_NONE && state != GENERATION_ENDED && generation_live_count(job) == 0 &&
        !generation_others_are_to_come(job))
        generation_end(core, job);
}

static bool generation_rank_is_ready(const struct job *job, uint64_t rank)
{
    const struct peer *peer = job->trainers[rank];

    return peer != NULL ? peer->state == NODE_RESTORED : generation_rank_finished(job, rank);
}

void generation_check_started(struct core *core, struct job *job)
{
    if (job->gen.state != GENERATION_JOINING)
        return;
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (!generation_rank_is_ready(job, rank))
            return;
    registry_launched(core, job, job->gen.generation, job->gen.resume_step);
    generation_move(&job->gen, GENERATION_RUNNING);
    job->gen.started_unix_ms = core->now_unix;
    job->state_unix_ms = core->now_unix;
    persist_generation(core, job);
    event_emit(core, job, event_make(job, EVENT_STARTED), 0);
    save_policy_launched(core, job);
    keep_launched(core, job);
}

/* "1, 3 to 7 and 12" would be nicer; a bounded list is what fits into a line. */
static void generation_missing_ranks(const struct job *job, char *text, size_t size)
{
    size_t used = 0, shown = 0, missing = 0;

    text[0] = '\0';
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++) {
        const struct peer *peer = job->trainers[rank];
        if (generation_rank_is_ready(job, rank))
            continue;
        missing++;
        if (shown == 16)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%llu%s", shown ? ", " : "",
                                 (unsigned long long)rank, peer ? " (has not restored)" : "");
        shown++;
    }
    if (missing > shown)
        snprintf(text + used, size - used, " and %zu more", missing - shown);
}

void generation_rank_failed(struct core *core, struct job *job, enum wire_event_kind kind,
                            uint64_t rank, const char *text)
{
    struct wire_event event = event_make(job, kind);

    event.rank = (int64_t)rank;
    event.code = MUSTER_E_PEER;
    event.text = text;
    event_emit(core, job, event, 0);
    generation_set_first_error(core, job, (int64_t)rank, 0, text);
    generation_ending(core, job, MUSTER_E_PEER, text);
}

void generation_tick(struct core *core, struct job *job)
{
    char missing[400], text[512];

    if (job->gen.state != GENERATION_JOINING)
        return;
    if (core->now < job->gen.join_until_boot_ms) {
        job_timer(job, job->gen.join_until_boot_ms);
        return;
    }
    generation_missing_ranks(job, missing, sizeof missing);
    snprintf(text, sizeof text, "these ranks did not join and restore in time: %s", missing);
    struct wire_event event = event_make(job, EVENT_JOIN_FAILED);
    event.code = MUSTER_E_JOIN;
    event.text = text;
    event_emit(core, job, event, 0);
    generation_ending(core, job, MUSTER_E_JOIN, text);
}
