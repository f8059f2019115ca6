/* round_decide - from the reports of a freeze to the save step, or to the ranks that did not
 * answer. */
#include "broker/core/rounds/rounds.h"

#include "schema/error.h"

#include <stdio.h>

static bool decide_all_reported(const struct round *round)
{
    return round->reported == round->count;
}

static void decide_set_writers(const struct job *job, struct round *round)
{
    bool sharded = job->gen.layout == LAYOUT_SHARDED;

    for (size_t i = 0; i < round->count; i++)
        round->parts[i].writer =
            sharded || i == 0; /* parts are by rank: the lowest that reported */
}

#define WAY_MAX_MS ((int64_t)30 * 24 * 3600 * 1000) /* no sum of it overflows */

/* How long the slowest member may take to S from where it stands; again and again while it
 * advances. */
int64_t round_way_ms(const struct round *round)
{
    int64_t way = STUCK_MS;

    for (size_t i = 0; i < round->count; i++) {
        const struct peer *peer = round->parts[i].peer;
        if (peer == NULL || peer->done >= round->step)
            continue;
        int64_t steps = round->step - peer->done + 1, each = 3 * (int64_t)peer->step_p95_ms;
        int64_t needs = WAY_UNMEASURED_MS; /* the deadline alone; without one still a bound */
        if (each > 0)
            needs = steps > WAY_MAX_MS / each ? WAY_MAX_MS : steps * each;
        if (needs > way)
            way = needs;
    }
    return way;
}

/* The rank with the longest way is there, or its steps were not measured before (WAY_UNMEASURED_MS)
 * and are now. From now on the others' way counts. */
void round_way_left(const struct core *core, struct round *round)
{
    int64_t until = core->now + round_way_ms(round);

    if (round->state == ROUND_DECIDED && until < round->way_until_boot_ms)
        round->way_until_boot_ms = until;
}

void round_decide(struct core *core, struct job *job, struct round *round, int64_t step)
{
    uint64_t writers = 0;

    round->step = step;
    decide_set_writers(job, round);
    for (size_t i = 0; i < round->count; i++)
        writers += round->parts[i].writer;
    round->nonce = round_nonce(round);
    round_move(round, ROUND_DECIDED);
    round->decided_unix_ms = core->now_unix;
    round->way_until_boot_ms = core->now + round_way_ms(round);
    round->checkpoint = (struct record_checkpoint){.job = job->name,
                                                   .round = round->round,
                                                   .generation = round->generation,
                                                   .step = step,
                                                   .state = CHECKPOINT_WRITING,
                                                   .cause = round->cause,
                                                   .layout = job->gen.layout,
                                                   .world_size = job->gen.world_size,
                                                   .shards_required = writers,
                                                   .path = "",
                                                   .epoch = -1,
                                                   .step_in_epoch = -1,
                                                   .data_position = -1,
                                                   .metrics = "",
                                                   .blocked_ms = -1,
                                                   .total_ms = -1};
    save_policy_decided(core, job);
    persist_round(core, job, round);
    persist_checkpoint(core, &round->checkpoint);
    for (size_t i = 0; i < round->count; i++)
        persist_participant(core, job, round, &round->parts[i]);
    round_emit(core, job, round, EVENT_DECISION);
    job_timer(job, round->way_until_boot_ms);
}

static void decide_from_reports(struct core *core, struct job *job, struct round *round)
{
    int64_t furthest = -1;
    size_t at = 0;

    for (size_t i = 0; i < round->count; i++) {
        int64_t stands = round->aborted_steps ? round->parts[i].done : round->parts[i].begun;
        if (stands > furthest) {
            furthest = stands;
            at = i;
        }
    }
    for (size_t i = 0; round->aborted_steps && i < round->count; i++) {
        if (round->parts[i].done == furthest)
            continue;
        char text[256];
        snprintf(text, sizeof text,
                 "the survivors stand at different steps (rank %llu at %lld, rank %llu at %lld), "
                 "so no step "
                 "can be saved by all",
                 (unsigned long long)round->parts[i].rank,
                 registry_shown(job, round->parts[i].done),
                 (unsigned long long)round->parts[at].rank, registry_shown(job, furthest));
        round_abort(core, job, round, (int64_t)round->parts[i].rank, MUSTER_E_UNREACHABLE, text,
                    ABORT_FINAL);
        return;
    }
    if (round_is_committed(job, furthest))
        round_unchanged(core, job, round, furthest);
    else if (round_is_being_written(job, furthest) && core->now < round->freeze_until_boot_ms)
        return; /* its commit would do; longer than a freeze may take nobody waits for it */
    else
        round_decide(core, job, round, furthest);
}

/* All have reported, and what is written of the same step has ended, never will, or takes too long.
 */
void round_settle(struct core *core, struct job *job)
{
    struct round *round = round_open_one(job);

    if (round != NULL && round->state == ROUND_FREEZING && decide_all_reported(round))
        decide_from_reports(core, job, round);
}

void round_report(struct core *core, struct peer *peer, const struct wire_report *m)
{
    struct round *round = round_find(peer->job, m->round);
    struct participant *part = round ? round_part(round, peer) : NULL;

    if (part == NULL || round->state != ROUND_FREEZING || part->reported_ms >= 0)
        return; /* of a round that went on without it, or a repeat */
    if (!step_ok(m->done) || m->begun < m->done || m->begun > m->done + 1)
        return; /* no node's: its round ends by the freeze's bound */
    part->begun = peer->begun = m->begun;
    part->done = peer->done = m->done;
    part->reported_ms = core->now_boot - round->opened_boot_ms;
    round->reported++;
    if (round->shown)
        persist_participant(core, peer->job, round, part);
}

/* A deadline that leaves less than a freeze is nobody's fault: the rank is named, not blamed. */
static bool decide_is_cut_short(const struct round *round, int64_t took_ms)
{
    return round->deadline_boot_ms > 0 && took_ms < (round->aborted_steps ? STUCK_MS : FREEZE_MS);
}

static void decide_freeze_text(const struct core *core, const struct round *round, uint64_t rank,
                               const char *others, char text[256])
{
    int64_t took_ms = core->now_boot - round->opened_boot_ms;
    char took[32];

    snprintf(took, sizeof took, "%lld.%lld s", (long long)(took_ms / 1000),
             (long long)(took_ms % 1000 / 100));
    if (decide_is_cut_short(round, took_ms))
        snprintf(text, 256,
                 ERROR_SAYS_NOTICE_LEFT "%s: rank %llu did not answer the freeze in that time%s",
                 took, (unsigned long long)rank, others);
    else
        snprintf(text, 256, "rank %llu did not answer the freeze in %s%s", (unsigned long long)rank,
                 took, others);
}

void round_freeze_over(struct core *core, struct job *job, struct round *round)
{
    char text[256];
    size_t missing = 0;
    const struct participant *first = NULL;

    if (decide_all_reported(round))
        return; /* it waits for what is written of its step */
    for (size_t i = 0; i < round->count; i++) {
        struct participant *part = &round->parts[i];
        if (part->reported_ms >= 0)
            continue;
        missing++;
        if (first == NULL)
            first = part;
        if (part->peer != NULL)
            part->peer->left_out = part->peer->missed_freeze = true;
    }
    MUST(first != NULL);
    decide_freeze_text(core, round, first->rank, missing > 1 ? ", and it was not the only one" : "",
                       text);
    round_abort(core, job, round, (int64_t)first->rank, MUSTER_E_TIMEOUT, text,
                round->aborted_steps ? ABORT_RETRY_ABORTED_STEPS : ABORT_RETRY);
}
