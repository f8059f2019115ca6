/* core - create, timers, the clock. See core.h for the contract and state.h for the rest. */
#include "broker/core/dispatch.h"

struct core *core_create(const struct core_options *options)
{
    struct core *core = calloc(1, sizeof *core);

    if (core == NULL)
        return NULL;
    core->options = *options;
    if (core->options.join_timeout_ms == 0)
        core->options.join_timeout_ms = JOIN_TIMEOUT_MS;
    strncpy(core->events_endpoint, options->events_endpoint ? options->events_endpoint : "",
            sizeof core->events_endpoint - 1);
    core->options.events_endpoint = core->events_endpoint;
    strncpy(core->signer, options->signer ? options->signer : "", sizeof core->signer - 1);
    core->options.signer = core->signer;
    return core;
}

void core_destroy(struct core **core)
{
    if (*core == NULL)
        return;
    while ((*core)->jobs != NULL)
        job_drop(*core, (*core)->jobs);
    import_free(*core);
    asleep_free(*core);
    tasks_free(*core);
    free(*core);
    *core = NULL;
}

struct core_counts core_count(const struct core *core)
{
    struct core_counts counts = {0};

    for (const struct job *job = core->jobs; job != NULL; job = job->next) {
        counts.jobs_running +=
            job->gen.state != GENERATION_NONE && job->gen.state != GENERATION_ENDED;
        for (size_t i = 0; i < job->peers_count; i++)
            counts.processes += peer_is_live(job->peers[i]);
    }
    return counts;
}

uint64_t core_epoch(const struct core *core)
{
    return core->epoch;
}

uint64_t core_start_id(const struct core *core)
{
    return core->options.start_id;
}

uint64_t core_last_seq(const struct core *core, const char *name)
{
    const struct job *job = job_find(core, name);

    return job ? job->seq : 0;
}

bool core_step_offset(const struct core *core, const char *name, int64_t *ret_offset)
{
    const struct job *job = job_find(core, name);

    return job != NULL && registry_step_offset(job, ret_offset);
}

int64_t core_wakeup_boot_ms(const struct core *core)
{
    int64_t at = import_is_due(core) ? core->ticked_ms : tasks_wakeup_boot_ms(core);

    for (const struct job *job = core->jobs; job != NULL; job = job->next)
        if (job->timer_boot_ms < at)
            at = job->timer_boot_ms;
    return at == INT64_MAX ? at : at + core->away_ms;
}

/* --- time ----------------------------------------------------------------------------------- */

void job_tick(struct core *core, struct job *job)
{
    job->timer_boot_ms = INT64_MAX;
    job->moved = true; /* time alone may end what they wait for */
    roster_tick(core, job);
    round_tick(core, job);
    generation_tick(core, job);
    hosts_tick(core, job);
    keep_tick(core, job);
    job_settle(core, job);
    save_policy_tick(core, job);
    grace_step_p95(job);
    if (core->now - job->progress_boot_ms >= HEARTBEAT_MS) {
        job->progress_boot_ms = core->now;
        for (size_t i = 0; i < job->peers_count; i++)
            if (job->peers[i]->progress_dirty)
                persist_progress(core, job->peers[i]);
    }
}

/* How much of the time since the last pass no bound counts. A loop that is away again and again
 * does not stand still: it receives and sends in between. If none of that time counted, no bound
 * would ever end. */
static int64_t core_time_away(struct core *core, int64_t gap_ms)
{
    if (gap_ms <= LOOP_GAP_MS) {
        if (core->now_boot - core->gap_boot_ms >= (GAPS_FORGIVEN * LOOP_GAP_MS))
            core->gaps = 0;
        return 0;
    }
    core->gap_boot_ms = core->now_boot;
    if (core->gaps == GAPS_FORGIVEN)
        return gap_ms - LOOP_GAP_MS;
    core->gaps++;
    return gap_ms;
}

/* Moves the loop's clock. Messages of a pass come before its tick, and what they begin has the time
 * that the tick will have. If the loop was away, the clock does not count that gap. */
static void core_clock_move(struct core *core, const struct input *in)
{
    int64_t since_tick = in->now_boot_ms - (core->ticked_ms + core->away_ms);
    int64_t now = core->ticked_ms + since_tick;

    core->now_boot = in->now_boot_ms;
    core->now_unix = in->now_unix_ms;
    if (in->kind == INPUT_START)
        core->now = core->ticked_ms = now;
    else if (in->kind == INPUT_TICK)
        now -= core_time_away(core, since_tick);
    else if (since_tick > LOOP_GAP_MS) /* as the tick of this pass will count it */
        now = core->ticked_ms + (core->gaps == GAPS_FORGIVEN ? LOOP_GAP_MS : 0);
    if (now > core->now)
        core->now = now;
    if (in->kind != INPUT_TICK)
        return;
    core->ticked_ms = core->now;
    core->away_ms = core->now_boot - core->now;
}

static void core_on_tick(struct core *core)
{
    bool away = core->away_ms != core->timers_away_ms; /* deadlines came nearer on the clock */

    core->timers_away_ms = core->away_ms;
    tasks_tick(core);
    import_tick(core);
    for (struct job *job = core->jobs; job != NULL; job = job->next)
        if (away || core->now >= job->timer_boot_ms)
            job_tick(core, job);
    asleep_tick(core);
}

void core_step(struct core *core, const struct input *in, struct actions *out)
{
    struct job *job;
    struct peer *peer;

    core_clock_move(core, in);
    core->steps++;
    core->out = out;
    switch (in->kind) {
    case INPUT_START:
        start_take(core);
        break;
    case INPUT_MESSAGE:
        dispatch_message(core, in);
        break;
    case INPUT_TICK:
        core_on_tick(core);
        break;
    case INPUT_JOB:
        job = job_find(core, in->job);
        if (job != NULL)
            start_job(core, job);
        break;
    case INPUT_NO_EVENTS:
        job = job_find(core, in->job);
        for (size_t i = 0; job != NULL && i < job->peers_count; i++) {
            peer = job->peers[i];
            if (peer->mapped && peer->route == in->route && peer_is_live(peer))
                hello_snapshot(core, peer);
        }
        break;
    default:
        break;
    }
    core->out = NULL;
}
