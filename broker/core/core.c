/* core - create, load, dispatch, timers. See core.h for the contract and state.h for the rest. */
#include "broker/core/state/state.h"

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

bool core_step_offset(const struct core *core, const char *name, int64_t *ret_offset)
{
    const struct job *job = job_find(core, name);

    return job != NULL && registry_step_offset(job, ret_offset);
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

bool core_input_is_free(const struct wire_msg *message)
{
    switch (message->type) {
    case WIRE_HEARTBEAT:
    case WIRE_EVENTS_GET:
    case WIRE_MANIFEST_GET:
    case WIRE_PROBE_GET:
    case WIRE_QUERY:
    case WIRE_RESULT_GET:
        return true;
    default:
        return false;
    }
}

/* --- messages ------------------------------------------------------------------------------- */

static struct answer take_request(struct core *core, struct peer *peer, const struct wire_msg *m)
{
    switch (m->type) {
    case WIRE_NOTICE:
        return notice_take(core, peer->job, &m->u.notice, (int64_t)peer->rank, peer->incarnation);
    case WIRE_CANCEL:
        return notice_cancel(core, peer->job, m->u.cancel.id, peer->incarnation);
    case WIRE_REPORT:
        return round_report(core, peer, &m->u.report);
    case WIRE_AT_STEP:
        return save_at_step(core, peer, &m->u.at_step);
    case WIRE_FILES:
        return save_files(core, peer, &m->u.files);
    case WIRE_SAVED:
        return save_saved(core, peer, &m->u.saved);
    case WIRE_SAVE_FAILED:
        return save_failed(core, peer, &m->u.save_failed);
    case WIRE_PAST:
        return save_past(core, peer, &m->u.past);
    case WIRE_SAVE_AT:
        return policy_save_at(core, peer, m->u.save_at.step);
    case WIRE_ERROR:
        return roster_error(core, peer, &m->u.error);
    case WIRE_RESTORED:
        return registry_restored(core, peer, &m->u.restored);
    case WIRE_RESTORE_FAILED:
        return registry_restore_failed(core, peer, &m->u.restore_failed);
    case WIRE_MANIFEST_DONE:
        return registry_manifest_done(core, peer, &m->u.manifest_done);
    case WIRE_LEAVE:
        return roster_leave(core, peer, &m->u.leave);
    case WIRE_POLICIES:
        return keep_policies_take(core, peer, &m->u.policies);
    case WIRE_SAVE_WISH:
        return save_policy_wish(core, peer, m->u.save_wish.step);
    case WIRE_SWEEP:
        return keep_sweep(core, peer, &m->u.sweep);
    case WIRE_DELETED:
        return keep_deleted(core, peer, &m->u.deleted);
    case WIRE_DROP:
        return keep_drop(core, peer->job, &m->u.drop);
    case WIRE_PIN:
        return pins_take(core, peer->job, &m->u.pin);
    case WIRE_UNPIN:
        return pins_unpin(core, peer->job, &m->u.unpin);
    case WIRE_NOOP:
        return (struct answer){MUSTER_OK, "", 0};
    default:
        return (struct answer){MUSTER_E_PROTOCOL, "this message is not for joined nodes", 0};
    }
}

/* Strictly in number order: a duplicate is answered again, a number too high waits for its turn
 * (the node resends in order). The answer and the number are one row of the same transaction. */
static void on_request(struct core *core, struct peer *peer, const struct wire_msg *m)
{
    uint64_t request = m->up.request;

    if (request <= peer->last_request) {
        bool last = request == peer->last_request;
        send_ack(core, peer->route, peer->job->name, request, last ? peer->last_code : MUSTER_OK,
                 "", last ? peer->last_value : 0);
        return;
    }
    if (request != peer->last_request + 1)
        return;
    struct answer answer = take_request(core, peer, m);
    job_settle(core, peer->job);
    peer->last_request = request;
    peer->last_code = answer.code;
    peer->last_value = answer.value;
    persist_peer(core, peer);
    send_ack(core, peer->route, peer->job->name, request, answer.code, answer.text, answer.value);
}

static void on_tool(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;
    struct job *job = job_find(core, m->up.job);
    struct answer answer = {MUSTER_E_PROTOCOL, "this message is not for tools", 0};

    if (m->type == WIRE_QUERY) {
        struct action *action = action_add(core, ACTION_SEND_ROWS);
        action->route = in->route;
        action->job = out_text(core, m->up.job);
        MUST(wire_copy(&action->message, m, &core->out->arena));
        return;
    }
    if (m->type == WIRE_HEARTBEAT) { /* a tool's ping */
        send_to(core, in->route, m->up.job, WIRE_ALIVE);
        return;
    }
    if (m->type == WIRE_IMPORT) {
        if (!import_take(core, in, &answer))
            return;
    } else if (job == NULL)
        answer = (struct answer){
            MUSTER_E_NOT_FOUND,
            out_printf(core, "no job '%s' is known here; `muster status` lists the jobs",
                       m->up.job),
            0};
    else if (m->type == WIRE_NOTICE)
        answer = notice_take(core, job, &m->u.notice, m->u.notice.rank, 0);
    else if (m->type == WIRE_CANCEL)
        answer = notice_cancel(core, job, m->u.cancel.id, 0);
    else if (m->type == WIRE_GONE)
        answer = gone_take(core, job, &m->u.gone);
    else if (m->type == WIRE_SAVE_NOW)
        answer = round_save_now(core, job, m->u.save_now.id);
    else if (m->type == WIRE_PIN)
        answer = pins_take(core, job, &m->u.pin);
    else if (m->type == WIRE_UNPIN)
        answer = pins_unpin(core, job, &m->u.unpin);
    else if (m->type == WIRE_DROP)
        answer = keep_drop(core, job, &m->u.drop);
    else if (m->type == WIRE_FORGET)
        answer = asleep_take(core, job);
    job = job_find(core, m->up.job);
    if (job != NULL)
        job_settle(core, job);
    send_ack(core, in->route, m->up.job, m->up.request, answer.code, answer.text, answer.value);
}

static void on_question(struct core *core, struct peer *peer, const struct wire_msg *m)
{
    struct action *action;

    switch (m->type) {
    case WIRE_HEARTBEAT:
        roster_heartbeat(core, peer, &m->u.heartbeat);
        break;
    case WIRE_PROBE_GET:
        action = action_add(core, ACTION_PUBLISH);
        action->job = out_text(core, peer->job->name);
        action->message.type = WIRE_PROBE;
        core_fill_down(core, peer->job->name, &action->message.down);
        action->message.down.job = action->job;
        action->message.u.probe.nonce = m->u.probe_get.nonce;
        break;
    case WIRE_EVENTS_GET:
        if (m->u.events_get.from_seq > peer->job->seq)
            break;
        peer->repeated = true; /* it found its gap at a heartbeat: no measure of the fan-out */
        action = action_add(core, ACTION_SEND_EVENTS);
        action->route = peer->route;
        action->job = out_text(core, peer->job->name);
        action->number = m->u.events_get.from_seq;
        action->count = EVENTS_PAGE_MAX;
        break;
    case WIRE_MANIFEST_GET:
        action = action_add(core, ACTION_SEND_MANIFEST);
        action->route = peer->route;
        action->job = out_text(core, peer->job->name);
        action->number = m->u.manifest_get.checkpoint;
        action->count = m->u.manifest_get.offset;
        break;
    default:
        break; /* a DOWN message from a node: dropped */
    }
}

static void on_message(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;

    if (m->type == WIRE_HELLO) {
        hello_take(core, in);
        return;
    }
    if (wire_is_task(m->type)) {
        tasks_message(core, in);
        return;
    }
    if (m->up.role == ROLE_TOOL) {
        on_tool(core, in);
        return;
    }
    struct peer *peer = peer_find(core, m->up.incarnation);
    if (peer == NULL || !peer->mapped || peer->route != in->route ||
        strcmp(peer->job->name, m->up.job) != 0) {
        send_ack(core, in->route, m->up.job, m->up.request, MUSTER_E_HELLO, "", 0);
        return;
    }
    peer->heard_boot_ms = core->now;
    peer->heard_unix_ms = core->now_unix;
    peer->pinged_boot_ms = 0;
    gone_heard(peer);
    uint64_t applied = m->up.applied_seq < peer->job->seq ? m->up.applied_seq : peer->job->seq;
    if (applied > peer->applied_seq) {
        peer->applied_seq = applied;
        peer->progress_dirty = true;
        if (peer->applied_seq == peer->job->seq && !peer->repeated) {
            int64_t took = core->now - peer->job->emitted_boot_ms;
            peer->job->fan_out_ms = took > 1000 ? 1000 : took;
        }
    }
    if (!peer_is_live(peer)) {
        unsigned code = peer->state == NODE_LEFT ? MUSTER_OK : MUSTER_E_STALE;
        send_ack(core, in->route, m->up.job, m->up.request, code, "", 0);
        return;
    }
    if (wire_is_request(m->type) && m->up.request > 0)
        on_request(core, peer, m);
    else
        on_question(core, peer, m);
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
        on_message(core, in);
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
