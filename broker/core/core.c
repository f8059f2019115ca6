/* core - create, timers, the clock. See core.h for the contract and state.h for the rest. */
#include "broker/core/dispatch.h"

#include "schema/room.h"

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
    return core;
}

static void job_free(struct core *core, struct job *job)
{
    peers_forget(core, job);
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        round_free(&job->rounds[i]);
    registry_free(job);
    keep_free(job);
    notices_free(job);
    free(job->peers);
    free(job->trainers);
    free(job->gen.error_text);
    free(job->partly);
    free(job);
}

void core_destroy(struct core **core)
{
    if (*core == NULL)
        return;
    for (struct job *job = (*core)->jobs; job != NULL;) {
        struct job *next = job->next;
        job_free(*core, job);
        job = next;
    }
    import_free(*core);
    asleep_free(*core);
    tasks_free(*core);
    free(*core);
    *core = NULL;
}

struct job *job_find(const struct core *core, const char *name)
{
    for (struct job *job = core->jobs; job != NULL; job = job->next)
        if (strcmp(job->name, name) == 0)
            return job;
    return NULL;
}

struct job *job_create(struct core *core, const char *name)
{
    if (core->jobs_count == CORE_JOBS_MAX || asleep_holds(core, name))
        return NULL;
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    strncpy(job->name, name, sizeof job->name - 1);
    job->gen.error_rank = -1;
    job->policy_step = -1;
    job->policy_pending = -1;
    job->created_unix_ms = job->state_unix_ms = core->now_unix;
    job->timer_boot_ms = INT64_MAX;
    if (core->started)
        lineage_begin(core, job);
    job->next = core->jobs;
    core->jobs = job;
    core->jobs_count++;
    return job;
}

void job_drop(struct core *core, struct job *job)
{
    struct job **at = &core->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    core->jobs_count--;
    job_free(core, job);
}

static struct peer **hash_slot(struct core *core, uint64_t incarnation)
{
    size_t size = sizeof core->hash / sizeof core->hash[0];

    return &core->hash[(incarnation ^ (incarnation >> 29)) % size];
}

struct peer *peer_find(const struct core *core, uint64_t incarnation)
{
    struct peer *peer = *hash_slot((struct core *)core, incarnation);

    while (peer != NULL && peer->incarnation != incarnation)
        peer = peer->next_hash;
    return peer;
}

struct peer *peer_create(struct core *core, struct job *job, uint64_t incarnation)
{
    if (core->peers_count == CORE_NODES_MAX)
        return NULL;
    struct peer **peers =
        room_for_one(job->peers, job->peers_count, &job->peers_capacity, 16, sizeof(struct peer *));
    if (peers == NULL)
        return NULL;
    job->peers = peers;
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL)
        return NULL;
    struct peer **slot = hash_slot(core, incarnation);
    peer->job = job;
    peer->incarnation = incarnation;
    peer->next_hash = *slot;
    *slot = peer;
    job->peers[job->peers_count++] = peer;
    core->peers_count++;
    return peer;
}

static void peer_free(struct core *core, struct peer *peer)
{
    struct peer **slot = hash_slot(core, peer->incarnation);

    while (*slot != peer)
        slot = &(*slot)->next_hash;
    *slot = peer->next_hash;
    free(peer);
    core->peers_count--;
}

void peers_forget(struct core *core, struct job *job)
{
    size_t kept = 0;

    for (size_t i = 0; i < job->peers_count; i++) {
        if (job->peers[i]->kept)
            job->peers[kept++] = job->peers[i];
        else {
            if (job->peers[i]->state == NODE_LEFT)
                departed_add(&core->departed, job->peers[i]->incarnation);
            peer_free(core, job->peers[i]);
        }
    }
    job->peers_count = kept;
    for (size_t r = 0; r < ROUNDS_ACTIVE_MAX; r++)
        for (size_t i = 0; job->rounds[r].used && i < job->rounds[r].count; i++)
            job->rounds[r].parts[i].peer = NULL;
    for (uint64_t rank = 0; job->trainers != NULL && rank < job->gen.world_size; rank++)
        job->trainers[rank] = NULL;
}

bool peer_is_live(const struct peer *peer)
{
    return peer->state == NODE_JOINED || peer->state == NODE_RESTORED;
}

struct peer *peer_of_rank(const struct job *job, int64_t rank)
{
    return rank >= 0 && (uint64_t)rank < job->gen.world_size ? job->trainers[rank] : NULL;
}

bool peer_has_finished(const struct peer *peer)
{
    return peer->state == NODE_LEFT && peer->leave_why == LEAVE_FINISHED;
}

bool step_ok(int64_t step)
{
    return step >= 0 && step < STEP_MAX;
}

void job_timer(struct job *job, int64_t at_boot_ms)
{
    if (at_boot_ms < job->timer_boot_ms)
        job->timer_boot_ms = at_boot_ms;
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

void core_fill_down(const struct core *core, const char *name, struct wire_down *ret_down)
{
    const struct job *job = name[0] ? job_find(core, name) : NULL;

    *ret_down = (struct wire_down){
        .start_id = core->options.start_id,
        .broker_epoch = core->epoch,
        .job = name,
        .generation = job ? job->gen.generation : 0,
        .last_seq = job ? job->seq : 0,
    };
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
    keep_tick(core, job);
    job_settle(core, job);
    save_policy_tick(core, job);
    grace_step_p95(job);
    if (core->now - job->progress_boot_ms >= PROGRESS_MS) {
        job->progress_boot_ms = core->now;
        for (size_t i = 0; i < job->peers_count; i++)
            if (job->peers[i]->progress_dirty)
                persist_progress(core, job->peers[i]);
    }
}

/* How much of the time since the last pass is nobody's. A loop that is away again and again does not
 * stand still: it hears and tells between. Were all that time nobody's, no bound would ever end. */
static int64_t time_away(struct core *core, int64_t gap_ms)
{
    if (gap_ms <= LOOP_GAP_MS) {
        if (core->now_boot - core->gap_boot_ms >= GAP_STEADY_MS)
            core->gaps = 0;
        return 0;
    }
    core->gap_boot_ms = core->now_boot;
    if (core->gaps == GAPS_FORGIVEN)
        return gap_ms - LOOP_GAP_MS;
    core->gaps++;
    return gap_ms;
}

/* Moves the loop's clock. Messages of a pass come before its tick, and what they begin begins at the
 * time that the tick will have: of a gap that is nobody's the clock counts nothing. */
static void clock_move(struct core *core, const struct input *in)
{
    int64_t since_tick = in->now_boot_ms - (core->ticked_ms + core->away_ms);
    int64_t now = core->ticked_ms + since_tick;

    core->now_boot = in->now_boot_ms;
    core->now_unix = in->now_unix_ms;
    if (in->kind == INPUT_START)
        core->now = core->ticked_ms = now;
    else if (in->kind == INPUT_TICK)
        now -= time_away(core, since_tick);
    else if (since_tick > LOOP_GAP_MS) /* as the tick of this pass will count it */
        now = core->ticked_ms + (core->gaps == GAPS_FORGIVEN ? LOOP_GAP_MS : 0);
    if (now > core->now)
        core->now = now;
    if (in->kind != INPUT_TICK)
        return;
    core->ticked_ms = core->now;
    core->away_ms = core->now_boot - core->now;
}

/* What passed up to the last tick, since a moment on the loop's clock: who asks for a rank that is held is answered by
 * what was known then, for the holder's word may be the next in the queue. */
int64_t core_passed_ms(const struct core *core, int64_t since_ms)
{
    return core->ticked_ms - since_ms;
}

int64_t core_clock_ms(const struct core *core, int64_t boot_ms)
{
    return boot_ms - core->away_ms;
}

static void on_tick(struct core *core)
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

    clock_move(core, in);
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
        on_tick(core);
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
