/* grace - what the job's notices ask for, now or later: the plan (plan.h) with this job's own
 * numbers. After a crash it only needs notices and times, which are rows. So a plan is made again
 * at each tick, and a start of the broker goes on with it. The earliest freeze of all active
 * notices counts. */
#include "broker/core/rounds/rounds.h"

#include <stdio.h>

/* The slowest live rank's; of ranks that have not measured any yet what the job knew before. */
int64_t grace_step_p95(struct job *job)
{
    int64_t slowest = 0;
    bool all = true;

    for (uint64_t rank = 0; rank < job->gen.world_size; rank++) {
        const struct peer *peer = job->trainers[rank];
        if (peer == NULL)
            continue;
        all &= peer->step_p95_ms > 0;
        if ((int64_t)peer->step_p95_ms > slowest)
            slowest = (int64_t)peer->step_p95_ms;
    }
    if ((!all || slowest == 0) && job->step_p95_ms > slowest)
        slowest = job->step_p95_ms;
    if (slowest > 0)
        job->step_p95_ms = slowest;
    return slowest;
}

static bool grace_has_told(const struct peer *peer)
{
    return peer != NULL && peer->state == NODE_RESTORED && peer->told_boot_ms > 0;
}

/* Steps between the first and the last rank. Heartbeats do not come at the same moment: a rank that
 * told its count before the first one did is assumed to have gone on at its own pace until then. (A
 * rank that begins a step just after its heartbeat is not a step behind.) */
static int64_t grace_lag_now(const struct job *job)
{
    const struct peer *first = NULL;
    int64_t lag = 0;

    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (grace_has_told(job->trainers[rank]) &&
            (first == NULL || job->trainers[rank]->begun > first->begun))
            first = job->trainers[rank];
    for (uint64_t rank = 0; first != NULL && rank < job->gen.world_size; rank++) {
        const struct peer *peer = job->trainers[rank];
        if (!grace_has_told(peer))
            continue;
        int64_t at = peer->begun, since = first->told_boot_ms - peer->told_boot_ms;
        if (since > 0 && peer->step_p95_ms > 0)
            at += (since - 1) / (int64_t)peer->step_p95_ms + 1;
        if (first->begun - at > lag)
            lag = first->begun - at;
    }
    return lag;
}

bool grace_has_trained(const struct job *job)
{
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (job->trainers[rank] != NULL && job->trainers[rank]->begun > job->gen.resume_step)
            return true;
    return false;
}

static struct plan_facts grace_facts_of(const struct core *core, struct job *job)
{
    return (struct plan_facts){.now_boot_ms = core->now_boot,
                               .step_p95_ms = grace_step_p95(job),
                               .save_p95_ms = plan_saves_p95(&job->saves),
                               .trained = grace_has_trained(job),
                               .lag = grace_lag_now(job)};
}

int64_t grace_least_ms(const struct core *core, struct job *job)
{
    struct plan_facts facts = grace_facts_of(core, job);

    return plan_least_ms(&facts);
}

void grace_save_measured(struct job *job, const struct round *round)
{
    int64_t slowest = -1;

    for (size_t i = 0; i < round->count; i++)
        if (round->parts[i].writer && round->parts[i].save_ms > slowest)
            slowest = round->parts[i].save_ms;
    if (slowest >= 0)
        plan_saves_add(&job->saves, slowest);
}

/* --- what people read ------------------------------------------------------------------------- */

#define SECONDS(ms) (long long)((ms) / 1000), (long long)((ms) % 1000 / 100)

static void grace_describe(struct grace *grace, const struct plan *plan,
                           const struct plan_facts *facts, const struct notice *notice)
{
    bool told = notice->left_ms >= 0 &&
                (notice->flags & (NOTICE_FLAG_ASSUMED | NOTICE_FLAG_GRACE_PERIOD)) == 0;
    const char *id = notice->id;
    char *text = grace->text, basis[PLAN_BASIS_TEXT];
    size_t size = sizeof grace->text;

    if (plan->why == PLAN_ASKED && told && facts->deadline_boot_ms == 0) {
        snprintf(text, size,
                 "at once: notice %s told a deadline that passed while the broker was away, or "
                 "that a restart of the broker's machine made unknown",
                 id);
    } else if (plan->why == PLAN_ASKED) {
        snprintf(text, size, "at once: notice %s %s", id,
                 told ? "asks for it (by grace_period_ms)" : "tells no time left to plan with");
    } else {
        plan_describe_basis(facts, basis);
        snprintf(text, size,
                 "%lld.%lld s before the deadline of notice %s, which gave %lld.%lld s "
                 "(%s, ranks %lld step%s apart)%s",
                 SECONDS(plan->reserve_ms), id, SECONDS(facts->grace_ms), basis,
                 (long long)facts->lag, facts->lag == 1 ? "" : "s",
                 plan->why == PLAN_DUE && grace->freeze_unix_ms == 0 ? "; that was now already"
                                                                     : "");
    }
}

#define SHOWN_MS 1000 /* a plan that moves by less is not written again */

/* Shown is what was planned last; what it moves by with each measured step is not worth a row. */
static void grace_show(const struct core *core, struct job *job, const struct plan *plan,
                       const struct plan_facts *facts, const struct notice *notice)
{
    struct grace *grace = &job->plan;
    const char *id = notice->id;
    int64_t moved = plan->freeze_boot_ms - grace->freeze_boot_ms;
    bool same = strcmp(grace->id, id) == 0;
    bool near = moved < SHOWN_MS && moved > -SHOWN_MS;

    if (same && near && grace->why == PLAN_AHEAD && plan->why == PLAN_AHEAD &&
        grace->basis == plan->basis)
        return;
    if (same && plan->why == PLAN_DUE && grace->why == PLAN_AHEAD && moved < 2 * SHOWN_MS) {
        grace_describe(grace, plan, facts,
                       notice); /* it may have moved by less since, as by a save */
        grace->why = PLAN_DUE;
        grace->freeze_unix_ms = 0;
        return;
    }
    if (same && plan->why == grace->why && plan->why != PLAN_AHEAD)
        return;
    snprintf(grace->id, sizeof grace->id, "%s", id);
    grace_describe(grace, plan, facts, notice);
    grace->why = plan->why;
    grace->basis = plan->basis;
    grace->freeze_boot_ms = plan->freeze_boot_ms;
    grace->freeze_unix_ms =
        plan->why == PLAN_AHEAD ? core->now_unix + plan->freeze_boot_ms - core->now_boot : 0;
}

/* --- now or later ----------------------------------------------------------------------------- */

/* A sharded job saves no more once a rank has done all its steps, and any job once all ranks have.
 * The ranks that are left finish too, or run into the margin. A freeze would only keep them from
 * that. */
static bool grace_finishes(const struct job *job)
{
    bool finished = false, live = false;

    for (size_t i = 0; i < job->peers_count; i++) {
        const struct peer *peer = job->peers[i];
        if (!role_is_trainer(peer->role))
            continue;
        finished |= peer_has_finished(peer);
        live |= peer_is_live(peer);
    }
    return finished && (!live || job->gen.layout == LAYOUT_SHARDED);
}

bool grace_is_due(const struct core *core, struct job *job)
{
    struct plan_facts facts = grace_facts_of(core, job), of_best = facts;
    struct plan best = {.why = PLAN_NONE, .freeze_boot_ms = INT64_MAX};
    const struct notice *earliest = NULL;

    for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next) {
        if (!notice_counts(notice))
            continue;
        facts.deadline_boot_ms = notice->deadline_boot_ms;
        facts.grace_ms = notice->left_ms >= 0 ? notice->left_ms : GRACE_DEFAULT_MS;
        facts.at_once = notice->left_ms < 0 || (notice->flags & NOTICE_FLAG_AT_ONCE) != 0;
        struct plan plan = plan_make(&facts);
        if (earliest != NULL && plan.freeze_boot_ms >= best.freeze_boot_ms)
            continue;
        best = plan;
        of_best = facts;
        earliest = notice;
    }
    if (earliest == NULL) {
        grace_forget(job);
        return false;
    }
    grace_show(core, job, &best, &of_best, earliest);
    int64_t last =
        of_best.deadline_boot_ms - 2 * MARGIN_MS; /* then a round names who had finished */
    if (best.why == PLAN_DUE && core->now_boot < last && grace_finishes(job)) {
        job_timer(job, core_clock_ms(core, last));
        return false;
    }
    if (best.freeze_boot_ms <= core->now_boot)
        return true;
    job_timer(job, core_clock_ms(core, best.freeze_boot_ms));
    return false;
}

/* It measures what a save takes, or the job asked for two saves; also the newest one since the
 * notices came will do. Not once all have done their steps: what they saved may be deleted then. */
static bool grace_early_save_is_due(const struct job *job)
{
    const struct checkpoint *newest = registry_newest(job);
    bool asked = false, since = false;

    if (job->plan.why != PLAN_AHEAD || job->plan.early_asked || !grace_has_trained(job) ||
        job->gen.state != GENERATION_RUNNING || job->want.cause != CAUSE_NONE ||
        grace_finishes(job) || keep_is_over(job))
        return false;
    for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next) {
        if (!notice_counts(notice))
            continue;
        asked |= (notice->flags & NOTICE_FLAG_SAVE_NOW) != 0;
        since |= newest != NULL && newest->row.committed_unix_ms > notice->received_unix_ms;
    }
    return (asked && !since) || job->saves.count == 0;
}

/* A rank that saved at S may have begun the next step already, and would wait in its collective for
 * those that leave at S. So a decided save is left alone while there is time for one more. */
bool grace_takes(const struct core *core, struct job *job, const struct round *round)
{
    int64_t deadline = notice_deadline(job);

    if (round->state == ROUND_FREEZING)
        return true;
    if (deadline == 0)
        return false;
    int64_t last = deadline - grace_least_ms(core, job);
    if (core->now_boot >= last)
        return true;
    job_timer(job, core_clock_ms(core, last));
    return false;
}

void grace_consider(struct core *core, struct job *job)
{
    struct round *round = round_awaited(job);

    if ((job->gen.state != GENERATION_RUNNING && job->gen.state != GENERATION_JOINING) ||
        job->want.cause == CAUSE_TERMINATION ||
        (round == NULL && job->want.cause == CAUSE_NONE && job->gen.error_rank >= 0) ||
        (round != NULL && round->cause == CAUSE_TERMINATION) || !notice_any_active(job))
        return;
    if (grace_is_due(core, job)) {
        if (round == NULL)
            round_want(job, CAUSE_TERMINATION);
        else if (grace_takes(core, job, round))
            notices_join(core, job, round);
    } else if (round == NULL && grace_early_save_is_due(job)) {
        job->plan.early_asked = true;
        round_want(job, CAUSE_NOTICE);
    }
}
