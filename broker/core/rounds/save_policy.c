/* save_policy - rounds that the broker opens by time, cost and history, which ranks cannot compute
 * alike. Each is a round of cause `period`: a freeze, S = max(begun), nobody leaves.
 *
 * Intervals count from the beginning of the last save, whatever its cause, or of the launch's first
 * step. The cost of a save is how long it stops training. For a save behind training that is the
 * time of the snapshot, and of the wait for the save before. So no save by cost is opened while one
 * is written. The cost is the mean of the newest SAVES_MEASURED commits. Those of terminations
 * write in the foreground, so they count only if there are no others. While the cost is not known,
 * the first step that is heard of is saved, to measure it.
 *   overhead x     cost / interval = x
 *   Young, Daly    with M = mean time between interruptions, C = cost: daly.h
 * M = (time that all launches ran + a day) / (interruptions + 1). So a new job is taken to be
 * interrupted once a day, and its own history outweighs that in time. */
#include "broker/core/checkpoints/keep.h"
#include "broker/core/rounds/rounds.h"

#include "schema/rules/daly.h"

#define SAVES_MEASURED 8

static const struct answer none_opened = {MUSTER_OK, "", 0};

/* --- numbers ---------------------------------------------------------------------------------- */

/* -1 = not known. */
static int64_t save_policy_mean_cost_ms(const struct job *job, bool terminations)
{
    int64_t sum = 0, count = 0;

    for (size_t i = job->checkpoints_count; i-- > 0 && count < SAVES_MEASURED;) {
        const struct record_checkpoint *row = &job->checkpoints[i].row;
        if (row->blocked_ms < 0 || (row->cause == CAUSE_TERMINATION) != terminations)
            continue;
        sum += row->blocked_ms + (row->waited_ms > 0 ? row->waited_ms : 0);
        count++;
    }
    if (count == 0)
        return -1;
    return sum / count > 0 ? sum / count : 1; /* no save costs nothing: an interval would be 0 */
}

static int64_t save_policy_cost_ms(const struct job *job)
{
    int64_t cost = save_policy_mean_cost_ms(job, false);

    return cost >= 0 ? cost : save_policy_mean_cost_ms(job, true);
}

int64_t save_policy_between_ms(const struct job *job, int64_t now_unix_ms)
{
    int64_t run = job->keep.run_ms;

    if (job->gen.state == GENERATION_RUNNING && job->gen.started_unix_ms > 0 &&
        now_unix_ms > job->gen.started_unix_ms)
        run += now_unix_ms - job->gen.started_unix_ms;
    return (run + DAY_MS) / ((int64_t)job->keep.interruptions + 1);
}

static bool save_policy_is_writing(const struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used)
            return true;
    return false;
}

/* The first step is saved by what its ranks compute. It was not if one of them is beyond it, and
 * there is nothing. */
static bool save_policy_first_is_missing(const struct job *job)
{
    if (job->keep.committed || job->gen.resume_step > 0 || registry_newest(job) != NULL)
        return false;
    for (uint64_t rank = 0; job->trainers != NULL && rank < job->gen.world_size; rank++) {
        const struct peer *peer = job->trainers[rank];
        if (peer != NULL && peer->done > 0 && peer->begun > peer->done)
            return true;
    }
    return false;
}

/* Boot ms; INT64_MAX: not before something else happens. */
static int64_t save_policy_due_at(const struct core *core, const struct job *job,
                                  const struct save_rule *rule)
{
    int64_t cost = save_policy_cost_ms(job);
    int64_t last = job->keep.saved_boot_ms;
    int64_t number = rule->number < LEFT_MAX_MS ? rule->number : LEFT_MAX_MS;

    if (rule->kind != SAVE_RULE_PERIOD_MS && save_policy_is_writing(job))
        return INT64_MAX; /* training would stand still until that is written */
    switch (rule->kind) {
    case SAVE_RULE_PERIOD_MS:
        return last + number;
    case SAVE_RULE_CONTINUOUS_MS:
        return last + number;
    case SAVE_RULE_OVERHEAD_PPM:
        return cost < 0 ? core->now : last + cost * 1000000 / number;
    case SAVE_RULE_YOUNG_DALY:
        return cost < 0 ? core->now
                        : last + cost +
                              daly_interval_ms(cost, save_policy_between_ms(job, core->now_unix));
    case SAVE_RULE_FIRST:
        return save_policy_first_is_missing(job) ? core->now : INT64_MAX;
    default:
        return INT64_MAX;
    }
}

/* Is there a step that no checkpoint has? As far as heartbeats tell. */
static bool save_policy_has_advanced(const struct job *job)
{
    const struct checkpoint *newest = registry_newest(job);
    int64_t saved = job->gen.resume_step;

    if (newest != NULL && newest->row.step > saved)
        saved = newest->row.step;
    for (uint64_t rank = 0; job->trainers != NULL && rank < job->gen.world_size; rank++)
        if (job->trainers[rank] != NULL && job->trainers[rank]->begun > saved)
            return true;
    return false;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* A save that is still being written has not. */
static bool save_policy_last_came_to_nothing(struct job *job)
{
    unsigned state = round_outcome(job, job->keep.policy_round).state;

    return job->keep.policy_round > 0 && state != ROUND_COMMITTED && state != ROUND_WRITING;
}

static struct answer save_policy_open_one(struct core *core, struct job *job)
{
    uint64_t before = job->round;

    job->keep.retry_every_ms = save_policy_last_came_to_nothing(job)
                                   ? 2 * job->keep.retry_every_ms
                                   : HEARTBEAT_MS; /* a full disk stays full */
    if (job->keep.retry_every_ms > STUCK_MS)
        job->keep.retry_every_ms = STUCK_MS;
    job->keep.retry_boot_ms = core->now + job->keep.retry_every_ms;
    round_want(job, CAUSE_PERIOD);
    round_try_open(core, job);
    job->keep.policy_round = job->round > before ? job->round : 0;
    if (job->want.cause ==
        CAUSE_PERIOD) /* it could not begin: it is asked for again, not promised */
        round_want_nothing(job);
    return job->round > before ? (struct answer){MUSTER_OK, "", job->round} : none_opened;
}

static bool save_policy_may_save(struct job *job)
{
    char text[256];

    if (job->gen.layout == LAYOUT_SHARDED && round_missing_rank(job, text, sizeof text) >= 0)
        return false; /* each of them would be aborted */
    return job->gen.state == GENERATION_RUNNING && job->want.cause == CAUSE_NONE &&
           round_awaited(job) == NULL;
}

void save_policy_tick(struct core *core, struct job *job)
{
    const struct job_policies *policies = keep_policies_of(job);
    int64_t due = INT64_MAX;

    if (policies == NULL || policies->save.count == 0 || job->gen.state != GENERATION_RUNNING)
        return;
    for (size_t i = 0; i < policies->save.count; i++) {
        int64_t at = save_policy_due_at(core, job, &policies->save.rules[i]);
        if (at < due)
            due = at;
    }
    if (due == INT64_MAX)
        return;
    if (due > core->now) {
        job_timer(job, due);
        return;
    }
    if (save_policy_may_save(job) && core->now >= job->keep.retry_boot_ms &&
        save_policy_has_advanced(job))
        save_policy_open_one(core, job);
    job_timer(job, core->now + HEARTBEAT_MS);
}

struct answer save_policy_wish(struct core *core, struct peer *peer, int64_t step)
{
    struct job *job = peer->job;
    struct round *open = round_awaited(job);

    if (!step_ok(step))
        return (struct answer){MUSTER_E_ARGUMENT, "there is no such step", 0};
    if (open != NULL) /* its outcome is the answer */
        return (struct answer){MUSTER_OK, "", open->round};
    if (!save_policy_may_save(job) ||
        (core->now < job->keep.retry_boot_ms && save_policy_last_came_to_nothing(job)))
        return none_opened;
    return save_policy_open_one(core, job);
}

/* --- what happens ----------------------------------------------------------------------------- */

void save_policy_decided(struct core *core, struct job *job)
{
    job->keep.saved_boot_ms = core->now;
}

void save_policy_launched(struct core *core, struct job *job)
{
    job->keep.saved_boot_ms = core->now;
    job->keep.retry_boot_ms = 0;
    job->keep.policy_round = 0;
    job->keep.committed = false;
    job_timer(job, core->now);
}

/* Open ones and those that failed are saves too. */
void save_policy_load_round(struct job *job, const struct record_round *row)
{
    if (row->decided_unix_ms > job->keep.saved_unix_ms)
        job->keep.saved_unix_ms = row->decided_unix_ms;
}

/* A checkpoint that is older than the known rounds began when it was committed at the latest. */
void save_policy_start(struct core *core, struct job *job)
{
    const struct checkpoint *newest = registry_newest(job);
    int64_t saved = job->keep.saved_unix_ms;
    int64_t last = job->gen.started_unix_ms;

    if (saved == 0 && newest != NULL)
        saved = newest->row.committed_unix_ms;
    if (saved > last)
        last = saved;
    int64_t age = core->now_unix - last;
    job->keep.saved_boot_ms = core->now - (age < 0 ? 0 : age > LEFT_MAX_MS ? LEFT_MAX_MS : age);
    job->keep.retry_boot_ms = 0;
}

void save_policy_ended(struct job *job)
{
    if (job->gen.started_unix_ms <= 0)
        return;
    if (job->gen.ended_unix_ms > job->gen.started_unix_ms)
        job->keep.run_ms += job->gen.ended_unix_ms - job->gen.started_unix_ms;
    job->keep.interruptions += job->gen.end_status != MUSTER_OK;
}

void save_policy_load(struct core *core, const struct record_history *row)
{
    struct job *job = job_find(core, row->job);

    if (job == NULL || row->run_ms < 0)
        return;
    job->keep.run_ms = row->run_ms;
    job->keep.interruptions = row->interruptions;
}
