/* start - what a start of the broker makes of the rows that it read. */
#include "broker/core/dispatch.h"

/* Members' times count from the opening. After a reboot that moment is put where the last thing
 * that is known of the round happened just now, so that no time of it becomes negative. */
static void start_place_opening(const struct core *core, struct round *round)
{
    int64_t last = 0;

    if (round->opened_boot_ms != BOOT_UNKNOWN)
        return;
    for (size_t i = 0; i < round->count; i++) {
        const struct participant *part = &round->parts[i];
        const int64_t times[] = {part->reported_ms, part->at_step_ms, part->captured_ms,
                                 part->saved_ms};
        for (size_t t = 0; t < sizeof times / sizeof times[0]; t++)
            if (times[t] > last)
                last = times[t];
    }
    round->opened_boot_ms = core->now_boot - last;
}

/* The cause is wanted again, with the attempt's number: it was not its fault. */
static void start_give_up(struct core *core, struct job *job, struct round *round, const char *why)
{
    const struct want want = {round->cause, round->attempt, round->aborted_steps};
    uint64_t attempts_before = round->attempts_before;
    bool again = round->state == ROUND_FREEZING ||
                 (round->generation == job->gen.generation &&
                  job->gen.state == GENERATION_RUNNING && round->cause != CAUSE_POLICY);

    job->want_not_before_boot_ms = core->now + START_FREEZE_MS;
    round_abort(core, job, round, -1, MUSTER_E_ABORTED, why, again ? ABORT_LATER : ABORT_OVER);
    if (again)
        round_want_again(job, want, attempts_before);
}

/* Which of a termination's attempts were those of the cause that it joined is in no row. Its own
 * are the rounds right before, one after another; what a start aborted was tried again under its
 * number. */
static uint64_t start_attempts_of_others(struct job *job, uint64_t round, uint64_t attempt)
{
    uint64_t own = 1;

    while (--round > 0 && own < attempt) {
        struct outcome at = round_outcome(job, round);
        if (at.cause != CAUSE_TERMINATION || at.state != ROUND_ABORTED ||
            at.generation != job->gen.generation)
            break;
        if (at.attempt + own == attempt)
            own++;
        else if (at.attempt + own != attempt + 1)
            break;
    }
    return attempt > own ? attempt - own : 0;
}

static void start_want_as_before(struct job *job)
{
    if (job->want.cause == CAUSE_TERMINATION)
        job->want_before = start_attempts_of_others(job, job->round + 1, job->want.attempt);
}

/* An undecided round dies with the broker that led it; a decided one goes on with new bounds,
 * unless this database may have forgotten its end. */
static void start_restart_rounds(struct core *core, struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        struct round *round = &job->rounds[i];
        if (!round->used)
            continue;
        start_place_opening(core, round);
        round->nonce = round_nonce(round);
        if (round->cause == CAUSE_TERMINATION)
            round->attempts_before = start_attempts_of_others(job, round->round, round->attempt);
        if (round->deadline_boot_ms > 0 &&
            round->deadline_boot_ms < core->now_boot + PLAN_FREEZE_MS + MARGIN_MS)
            round->deadline_boot_ms = notice_deadline(job);
        round->way_until_boot_ms = core->now + round_way_ms(round);
        for (size_t p = 0; p < round->count; p++)
            round->parts[p].at_step_boot_ms = core->now;
        if (round->state == ROUND_FREEZING)
            start_give_up(core, job, round, "the broker was restarted before a step was decided");
        else if (core->older)
            start_give_up(
                core, job, round,
                "the broker's database was restored from an older copy: this round may have "
                "ended since, and its shards be deleted");
    }
}

void start_take(struct core *core)
{
    core->epoch++;
    if (core->database == 0)
        core->database = core->options.start_id;
    core->started = true;
    core->start_boot_ms = core->now;
    persist_broker(core);
    tasks_start(core);
    for (struct job *job = core->jobs; job != NULL; job = job->next)
        start_job(core, job);
}

void start_job(struct core *core, struct job *job)
{
    lineage_begin(core, job);
    bool lives = job->gen.state != GENERATION_NONE && job->gen.state != GENERATION_ENDED;
    for (size_t i = 0; i < job->peers_count; i++)
        lives |= peer_is_live(job->peers[i]); /* an observer of a launch that has ended */
    if (lives)
        persist_job(core, job); /* else nobody is told of it but with more of the job's rows */
    job->want_not_before_boot_ms = core->now + START_FREEZE_MS;
    job->gen.ending_boot_ms = core->now;
    job->gen.join_ms = core->options.join_timeout_ms;
    job->gen.join_until_boot_ms = core->now + job->gen.join_ms;
    for (size_t i = 0; i < job->peers_count; i++) {
        job->peers[i]->heard_boot_ms = core->now;
        job->peers[i]->advanced_boot_ms = core->now;
    }
    /* whoever failed first is known by the error's row: it takes part in no round */
    struct peer *first = peer_of_rank(job, job->gen.error_rank);
    if (first != NULL)
        first->failed = true;
    hosts_take_for_heard(core, job);
    notices_let_pass(core, job);
    start_want_as_before(job);
    start_restart_rounds(core, job);
    keep_start(core, job);
    save_policy_start(core, job);
    if (job->want.cause == CAUSE_NONE)
        round_want_owed(job); /* also one that joined the save of a policy, which no row wants */
    job->moved = true;
    job_settle(core, job);
    job_timer(job, core->now);
}
