/* roster - who is there: HELLO and its refusals, heartbeats, LEAVE, loss, errors.
 * A rank has one live holder. Silence is judged only here, in a tick, after the messages of the
 * same pass were taken. */
#include "broker/core/state.h"

#include <stdio.h>

static void refuse(struct core *core, const struct input *in, unsigned code, bool retry,
                   const char *text)
{
    const struct wire_msg *m = in->message;
    struct wire_msg *out = send_to(core, in->route, m->up.job, WIRE_REFUSED);

    out->u.refused = (struct wire_refused){
        .nonce = m->u.hello.nonce, .code = code, .text = out_text(core, text), .retry = retry};
}

/* --- WELCOME and SNAPSHOT --------------------------------------------------------------------- */

static bool asked_to_repair(const struct peer *peer)
{
    const struct generation *gen = &peer->job->gen;

    return gen->resume_checkpoint > 0 && !gen->resume_ready && role_is_trainer(peer->role) &&
           peer->rank == 0;
}

static const char *checkpoint_path(const struct job *job, uint64_t round)
{
    for (size_t i = 0; i < job->checkpoints_count; i++)
        if (job->checkpoints[i].row.round == round)
            return job->checkpoints[i].path;
    return "";
}

static void snapshot_round(struct core *core, struct job *job, const struct peer *peer,
                           struct wire_snapshot *s)
{
    struct round *round = round_open_one(job);

    if (round == NULL)
        return;
    s->round = round->round;
    s->round_state = round->state;
    s->round_cause = round->cause;
    s->round_step = round->step;
    s->round_flags = round->aborted_steps ? EVENT_FLAG_ABORT : 0;
    const struct participant *part = round_part(round, peer);
    if (part == NULL)
        return;
    s->member = true;
    s->writer = part->writer;
    s->round_nonce = round_nonce(core, round);
    if (round->state == ROUND_FREEZING)
        s->taken = part->reported_ms >= 0;
    else
        s->taken = part->writer ? part->saved_ms >= 0 : part->captured_ms >= 0;
}

/* Everything that a node without the journal has to know, at the job's present seq. */
void roster_snapshot(struct core *core, struct peer *peer)
{
    struct job *job = peer->job;
    const struct generation *gen = &job->gen;
    struct wire_msg *out = send_to(core, peer->route, job->name, WIRE_SNAPSHOT);
    struct wire_snapshot *s = &out->u.snapshot;
    const struct checkpoint *newest = registry_newest(job);
    struct outcome named = round_outcome(job, peer->named_round);
    int64_t deadline = notice_deadline(job);

    peer->repeated = true; /* what it acknowledges next was not published to it just now */
    *s = (struct wire_snapshot){
        .seq = job->seq,
        .generation = gen->generation,
        .generation_state = gen->state,
        .resume_checkpoint = gen->resume_checkpoint,
        .resume_step = gen->resume_step,
        .resume_ready = gen->resume_ready,
        .resume_path = out_text(core, checkpoint_path(job, gen->resume_checkpoint)),
        .resume_repair = asked_to_repair(peer),
        .round_step = -1,
        .newest_checkpoint = newest ? newest->row.round : 0,
        .newest_step = newest ? newest->row.step : 0,
        .named_round = named.round,
        .named_state = named.state,
        .named_step = named.step,
        .named_cause = named.cause,
        .error_rank = gen->error_rank,
        .error_code = gen->error_code,
        .error_text = out_text(core, gen->error_text),
        .end_status = gen->end_status,
        .end_text = out_text(core, gen->end_text),
        .left_ms = deadline > 0 ? deadline - core->now : -1,
    };
    snapshot_round(core, job, peer, s);
}

static void welcome(struct core *core, const struct input *in, struct peer *peer, bool snapshot)
{
    struct wire_msg *out = send_to(core, in->route, peer->job->name, WIRE_WELCOME);

    out->u.welcome = (struct wire_welcome){
        .nonce = in->message->u.hello.nonce,
        .generation = peer->job->gen.generation,
        .world_size = peer->job->gen.world_size,
        .events_endpoint = out_text(core, core->events_endpoint),
        .heartbeat_ms = HEARTBEAT_MS,
        .last_request = peer->last_request,
        .snapshot_follows = snapshot,
    };
    if (snapshot)
        roster_snapshot(core, peer);
}

/* --- HELLO ------------------------------------------------------------------------------------ */

/* A database that was restored from a copy knows less than the nodes: jump above what they saw
 * before anything is answered, so that no number is ever used twice. */
static void jump_above(struct core *core, struct job *job, const struct wire_msg *m)
{
    if (m->up.broker_epoch > core->epoch) {
        core->epoch = m->up.broker_epoch + 1;
        persist_broker(core);
    }
    if (job == NULL)
        return;
    bool changed = false;
    if (m->up.applied_seq > job->seq) {
        job->seq = m->up.applied_seq + 1;
        changed = true;
    }
    uint64_t round =
        m->u.hello.round > m->u.hello.saved_round ? m->u.hello.round : m->u.hello.saved_round;
    if (round > job->round) {
        job->round = round;
        changed = true;
    }
    if (changed)
        persist_job(core, job);
}

/* A newer node may do what this broker has no word for. */
static unsigned phase_known(uint64_t phase)
{
    return phase < PHASE_COUNT ? (unsigned)phase : PHASE_NONE;
}

static void take_facts(struct core *core, const struct input *in, struct peer *peer)
{
    const struct wire_hello *hello = &in->message->u.hello;

    peer->mapped = true;
    peer->route = in->route;
    peer->heard_boot_ms = core->now;
    peer->heard_unix_ms = core->now_unix;
    peer->pinged_boot_ms = 0;
    peer->begun = hello->begun;
    peer->done = hello->done;
    peer->phase = phase_known(hello->phase);
    peer->named_round = hello->round;
    peer->applied_seq = in->message->up.applied_seq;
    peer->repeat_every_ms = REPEAT_MIN_MS;
    peer->repeat_boot_ms = core->now + REPEAT_MAX_MS; /* it repairs by itself first */
    peer->progress_dirty = true;
    job_timer(peer->job, core->now + REPEAT_MIN_MS);
}

static struct peer *join(struct core *core, const struct input *in, struct job *job)
{
    const struct wire_msg *m = in->message;
    struct peer *peer = peer_create(core, job, m->up.incarnation);

    if (peer == NULL) {
        refuse(core, in, MUSTER_E_NOMEM, true, "the broker holds as many nodes as it can");
        return NULL;
    }
    peer->role = (enum wire_role)m->up.role;
    peer->rank = m->up.rank;
    peer->state = NODE_JOINED;
    peer->pid = m->u.hello.pid;
    peer->joined_unix_ms = core->now_unix;
    peer->advanced_boot_ms = core->now;
    strncpy(peer->host, m->u.hello.host, sizeof peer->host - 1);
    if (role_is_trainer(peer->role))
        job->trainers[peer->rank] = peer;
    return peer;
}

static struct peer *holder_of(const struct job *job, enum wire_role role, uint64_t rank)
{
    if (role_is_trainer(role))
        return rank < job->gen.world_size ? job->trainers[rank] : NULL;
    for (size_t i = 0; i < job->peers_count; i++) {
        struct peer *peer = job->peers[i];
        if (peer->role == role && peer->rank == rank && peer_is_live(peer))
            return peer;
    }
    return NULL;
}

/* A save that is under way is not given up for a process that came back: it ends by its bounds. */
static bool saves_are_open(const struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used)
            return true;
    return false;
}

static bool rank_was_held(const struct job *job, enum wire_role role, uint64_t rank)
{
    for (size_t i = 0; i < job->peers_count; i++)
        if (role_is_trainer(job->peers[i]->role) == role_is_trainer(role) &&
            job->peers[i]->rank == rank)
            return true;
    return false;
}

/* True when the holder is gone and the rank is free. */
static bool takeover(struct core *core, const struct input *in, struct peer *holder)
{
    if (holder->pinged_boot_ms > 0 && core->now - holder->pinged_boot_ms >= TAKEOVER_PING_MS) {
        roster_lost(core, holder,
                    "another process came for its rank and it did not answer for 2 s");
        return true;
    }
    if (holder->pinged_boot_ms == 0)
        holder->pinged_boot_ms = core->now;
    if (holder->mapped)
        send_to(core, holder->route, holder->job->name, WIRE_PING);
    char text[512];
    snprintf(
        text, sizeof text,
        "rank %llu of job '%s' is held by process %llu on %s; stop that process, or give this one "
        "its own rank",
        (unsigned long long)holder->rank, holder->job->name, (unsigned long long)holder->pid,
        holder->host);
    refuse(core, in, MUSTER_E_RANK_TAKEN, true, text);
    return false;
}

static bool facts_agree(struct core *core, const struct input *in, const struct job *job)
{
    const struct wire_hello *hello = &in->message->u.hello;
    const struct generation *gen = &job->gen;
    char text[PATH_BYTES_MAX + 512];

    if (!role_is_trainer((enum wire_role)in->message->up.role))
        return true;
    if (hello->world_size != gen->world_size) {
        snprintf(text, sizeof text,
                 "job '%s' runs with world size %llu, this process came with %llu; start all ranks "
                 "of one "
                 "launch with one world size",
                 job->name, (unsigned long long)gen->world_size,
                 (unsigned long long)hello->world_size);
        refuse(core, in, MUSTER_E_WORLD_SIZE, false, text);
        return false;
    }
    if (hello->layout != gen->layout || strcmp(hello->checkpoint_dir, gen->checkpoint_dir) != 0) {
        snprintf(
            text, sizeof text,
            "job '%s' runs with layout %s in checkpoint directory '%s', this process came with %s "
            "in '%s'; use the same on all ranks",
            job->name, wire_layout_name(gen->layout), gen->checkpoint_dir,
            wire_layout_name((unsigned)hello->layout), hello->checkpoint_dir);
        refuse(core, in, MUSTER_E_LAYOUT, false, text);
        return false;
    }
    return true;
}

/* A new process for the present generation. NULL: it was refused. */
static struct peer *join_present(struct core *core, const struct input *in, struct job *job)
{
    enum wire_role role = (enum wire_role)in->message->up.role;
    uint64_t rank = in->message->up.rank;

    if (!facts_agree(core, in, job))
        return NULL;
    struct peer *holder = holder_of(job, role, rank);
    if (holder != NULL && !takeover(core, in, holder))
        return NULL;
    if (job->gen.state == GENERATION_RUNNING && role_is_trainer(role) &&
        rank_was_held(job, role, rank) && saves_are_open(job)) {
        refuse(core, in, MUSTER_E_ENDING, true,
               out_printf(core, "job '%s' is saving; rank %llu may come back when that is over",
                          job->name, (unsigned long long)rank));
        return NULL;
    }
    if (job->gen.state == GENERATION_RUNNING && role_is_trainer(role) &&
        rank_was_held(job, role, rank)) {
        struct wire_event event = event_make(job, EVENT_RANK_RESTARTED);
        event.rank = (int64_t)rank;
        event.code = MUSTER_E_PEER;
        char text[256];
        snprintf(text, sizeof text, "rank %llu was restarted after steps were taken",
                 (unsigned long long)rank);
        event.text = text;
        event_emit(core, job, event, 0);
        generation_set_first_error(core, job, (int64_t)rank, 0, text);
        generation_ending(core, job, MUSTER_E_PEER, text);
        generation_check_ended(core, job);
    }
    if (job->gen.state == GENERATION_ENDING || job->gen.state == GENERATION_ENDED)
        return NULL; /* the caller goes on with that */
    return join(core, in, job);
}

static bool ending_is_over(struct core *core, const struct job *job)
{
    return job->gen.state == GENERATION_ENDED ||
           (job->gen.state == GENERATION_ENDING &&
            (generation_live_count(job) == 0 ||
             (core->now - job->gen.ending_boot_ms >= ENDING_MS && !saves_are_open(job))));
}

static void hello_new(struct core *core, const struct input *in, struct job *job)
{
    const struct wire_msg *m = in->message;
    bool trainer = role_is_trainer((enum wire_role)m->up.role);
    enum wire_generation_state state = job->gen.state;
    struct peer *peer = NULL;

    if (state == GENERATION_JOINING || state == GENERATION_RUNNING) {
        size_t before = core->out->count;
        peer = join_present(core, in, job);
        if (peer == NULL && job->gen.state == state && core->out->count > before)
            return; /* refused, with the reason */
    }
    if (peer == NULL) {
        if (job->gen.generation > 0 && !ending_is_over(core, job)) {
            refuse(
                core, in, MUSTER_E_ENDING, true,
                out_printf(
                    core,
                    "generation %llu of job '%s' is ending; %zu of its processes are still leaving",
                    (unsigned long long)job->gen.generation, job->name,
                    generation_live_count(job)));
            return;
        }
        if (!trainer) { /* the facts of a launch are told by those who train */
            refuse(core, in, MUSTER_E_ENDING, true,
                   "the job has no running generation yet; its ranks come first");
            return;
        }
        generation_open(core, job, &m->u.hello);
        if (job->trainers == NULL) {
            refuse(core, in, MUSTER_E_NOMEM, true, "the broker is out of memory");
            return;
        }
        peer = join(core, in, job);
    }
    if (peer == NULL)
        return;
    take_facts(core, in, peer);
    persist_peer(core, peer);
    welcome(core, in, peer, true);
    notice_facts(core, peer, &m->u.hello);
}

/* A live process that this broker start has heard. Rows alone, read from a copy of the database, are
 * no proof that a launch which a newer one replaced still runs. */
static bool somebody_speaks(const struct job *job)
{
    for (size_t i = 0; i < job->peers_count; i++)
        if (job->peers[i]->mapped && peer_is_live(job->peers[i]))
            return true;
    return false;
}

/* What the launch asked for is in no row: after a start of the broker its processes say it again. */
static void join_timeout_again(struct core *core, struct job *job, const struct wire_hello *hello)
{
    int64_t until = core->start_boot_ms + (int64_t)hello->join_timeout_ms;

    if (hello->join_timeout_ms <= LEFT_MAX_MS && until > job->gen.join_until_boot_ms &&
        job->gen.state == GENERATION_JOINING)
        job->gen.join_until_boot_ms = until;
}

/* A process that was welcomed before: by this broker, by its former start, or by one whose database
 * is lost. */
static void hello_again(struct core *core, const struct input *in, struct job *job)
{
    const struct wire_msg *m = in->message;
    struct peer *peer = peer_find(core, m->up.incarnation);
    bool known = peer != NULL && peer->job == job, asked = false;

    if (!known && m->up.generation >= job->gen.generation && m->up.generation > 0) {
        bool newer = m->up.generation > job->gen.generation;
        bool running = job->gen.state == GENERATION_JOINING || job->gen.state == GENERATION_RUNNING;
        bool held = !newer && holder_of(job, (enum wire_role)m->up.role, m->up.rank) != NULL;
        if (newer && !role_is_trainer((enum wire_role)m->up.role)) {
            refuse(core, in, MUSTER_E_ENDING, true, "the job has no running generation yet");
            return; /* its world is told by those who train */
        }
        if (!newer && running && !held && !facts_agree(core, in, job))
            return;
        if (newer && !somebody_speaks(job))
            generation_adopt(core, job, m->up.generation, &m->u.hello);
        if ((newer && job->gen.generation == m->up.generation) || (!newer && running && !held)) {
            peer = join(core, in, job);
            if (peer == NULL)
                return;
            peer->state = job->gen.state == GENERATION_RUNNING ? NODE_RESTORED : NODE_JOINED;
            peer->last_request = 0;
            known = true;
            asked = round_join_freeze(core, job, peer);
        }
    }
    if (!known || peer->state == NODE_LOST || peer->state == NODE_FENCED) {
        refuse(core, in, MUSTER_E_STALE, false,
               out_printf(core,
                          "rank %llu of job '%s' (generation %llu) was given up or taken over; "
                          "generation %llu goes on without this process",
                          (unsigned long long)m->up.rank, job->name,
                          (unsigned long long)m->up.generation,
                          (unsigned long long)job->gen.generation));
        return;
    }
    uint64_t named = m->u.hello.round;
    bool unknown = named > 0 && round_outcome(job, named).cause == CAUSE_NONE;
    bool jumped = m->up.applied_seq == 0 || m->up.applied_seq > job->seq || unknown || asked ||
                  asked_to_repair(peer);
    if (!peer->mapped)
        join_timeout_again(core, job, &m->u.hello);
    jump_above(core, job, m);
    take_facts(core, in, peer);
    persist_peer(core, peer);
    welcome(core, in, peer, jumped);
    notice_facts(core, peer, &m->u.hello);
    round_try_open(core, job);
}

/* The database keeps signed numbers, and a jump goes above what a node has seen. */
static bool numbers_ok(const struct wire_msg *m)
{
    const uint64_t max = (uint64_t)1 << 62;

    return m->up.applied_seq < max && m->up.broker_epoch < max && m->up.generation < max &&
           m->u.hello.round < max && m->u.hello.saved_round < max && step_ok(m->u.hello.begun) &&
           step_ok(m->u.hello.done);
}

void roster_hello(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;
    bool trainer = role_is_trainer((enum wire_role)m->up.role);

    if (!numbers_ok(m)) {
        refuse(core, in, MUSTER_E_ARGUMENT, false, "a number of HELLO is negative or beyond 2^62");
        return;
    }
    if (!wire_job_name_ok(m->up.job) || m->up.role == ROLE_NONE || m->up.role >= ROLE_TOOL ||
        m->up.incarnation == 0 || m->u.hello.layout == LAYOUT_NONE) {
        refuse(core, in, MUSTER_E_ARGUMENT, false,
               "job name, role, incarnation or layout of HELLO are not acceptable");
        return;
    }
    if (trainer && (m->u.hello.world_size == 0 || m->up.rank >= m->u.hello.world_size)) {
        refuse(
            core, in, MUSTER_E_RANK, false,
            out_printf(core,
                       "rank %llu is not inside a world of %llu; ranks go from 0 to world size - 1",
                       (unsigned long long)m->up.rank, (unsigned long long)m->u.hello.world_size));
        return;
    }
    struct job *job = job_find(core, m->up.job);
    if (job == NULL) {
        job = job_create(core, m->up.job);
        if (job == NULL) {
            refuse(core, in, MUSTER_E_NOMEM, true, "the broker holds as many jobs as it can");
            return;
        }
        job->state_unix_ms = core->now_unix;
        persist_job(core, job);
    }
    jump_above(core, NULL, m);
    struct peer *peer = peer_find(core, m->up.incarnation);
    if (peer != NULL && peer->job != job) {
        refuse(core, in, MUSTER_E_ARGUMENT, false, "the incarnation is in use by another job");
        return;
    }
    if (peer != NULL || m->up.generation > 0)
        hello_again(core, in, job);
    else
        hello_new(core, in, job);
    persist_want(core, job);
}

/* --- while it lives --------------------------------------------------------------------------- */

void roster_heartbeat(struct core *core, struct peer *peer, const struct wire_heartbeat *beat)
{
    send_to(core, peer->route, peer->job->name, WIRE_ALIVE);
    if (!step_ok(beat->begun) || !step_ok(beat->done))
        return;
    if (beat->begun != peer->begun || beat->done != peer->done) {
        peer->advanced_boot_ms = core->now;
        peer->stuck_said = false;
    }
    bool advanced = beat->begun > peer->begun;
    peer->begun = beat->begun;
    peer->done = beat->done;
    struct round *round = round_open_one(peer->job);
    if (advanced && round != NULL && round->state == ROUND_DECIDED && beat->begun <= round->step) {
        int64_t until = core->now + round_way_ms(round); /* it is still coming */
        if (until > round->way_until_boot_ms)
            round->way_until_boot_ms = until;
    }
    peer->named_round = beat->round;
    peer->phase = phase_known(beat->phase);
    peer->phase_ms = beat->phase_ms;
    peer->step_p95_ms = beat->step_p95_ms;
    peer->progress_dirty = true;
    if (peer->job->timer_boot_ms > core->now + PROGRESS_MS)
        job_timer(peer->job, core->now + PROGRESS_MS);
}

static void gone(struct core *core, struct peer *peer, enum wire_node_state state)
{
    struct job *job = peer->job;

    peer->state = state;
    peer->ended_unix_ms = core->now_unix;
    if (role_is_trainer(peer->role) && job->trainers[peer->rank] == peer)
        job->trainers[peer->rank] = NULL;
}

/* Ends or repeats the open round if this member was needed. `why_text` goes into the story. Returns
 * whether a round is open afterwards. */
static bool round_without(struct core *core, struct job *job, const struct peer *peer,
                          unsigned code, const char *why_text, bool steps_broken)
{
    struct round *round = round_open_one(job);

    if (round == NULL)
        return false;
    struct participant *part = round_part(round, peer);
    if (part == NULL || !save_is_needed(job, round, part))
        return true;
    bool again = job->gen.layout == LAYOUT_REPLICATED &&
                 (round->cause == CAUSE_TERMINATION || !steps_broken);
    enum abort_retry retry = !again         ? ABORT_FINAL
                             : steps_broken ? ABORT_RETRY_ABORTED_STEPS
                                            : ABORT_RETRY;
    return round_abort(core, job, round, (int64_t)peer->rank, code, why_text, retry);
}

/* A write behind whose writer is gone never ends. */
static void writes_without(struct core *core, struct job *job, const struct peer *peer,
                           unsigned code, const char *why_text)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        struct round *round = &job->rounds[i];
        const struct participant *part = round->used ? round_part(round, peer) : NULL;
        if (part != NULL && round->state == ROUND_WRITING && save_is_needed(job, round, part))
            round_abort(core, job, round, (int64_t)peer->rank, code, why_text,
                        round->cause == CAUSE_TERMINATION ? ABORT_RETRY : ABORT_FINAL);
    }
}

/* Without it the others cannot go on together, and nobody told them yet. */
static void left_early(struct core *core, struct peer *peer)
{
    struct wire_error error = {.code = peer->exit_code, .step = peer->done};
    char text[256];

    snprintf(text, sizeof text, "rank %llu left in the middle (%s, exit code %lld)",
             (unsigned long long)peer->rank, wire_leave_why_name(peer->leave_why),
             (long long)peer->exit_code);
    error.text = text;
    roster_error(core, peer, &error);
}

struct answer roster_leave(struct core *core, struct peer *peer, const struct wire_leave *leave)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;
    bool running = job->gen.state == GENERATION_RUNNING;

    if (step_ok(leave->done))
        peer->begun = peer->done = leave->done;
    peer->leave_why = leave->why < LEAVE_WHY_COUNT ? (enum wire_leave_why)leave->why : LEAVE_ERROR;
    peer->exit_code = leave->code;
    /* the noticed rank's own clock may be first to reach the margin; it is the same one for all */
    if (running && role_is_trainer(peer->role) && leave->why == LEAVE_PREEMPTED)
        round_margin_reached(core, job);
    gone(core, peer, NODE_LEFT);
    persist_peer(core, peer);
    persist_progress(core, peer);
    if (running && role_is_trainer(peer->role)) {
        char text[256];
        if (leave->why == LEAVE_FAILED) {
            struct wire_error error = {.code = leave->code, .step = leave->done, .text = text};
            snprintf(text, sizeof text, "rank %llu left with exit code %lld",
                     (unsigned long long)peer->rank, (long long)leave->code);
            if (job->gen.error_rank < 0 && !peer->failed)
                roster_error(core, peer, &error);
        }
        bool finished = leave->why == LEAVE_FINISHED;
        snprintf(text, sizeof text, "rank %llu %s before the save", (unsigned long long)peer->rank,
                 finished ? "finished" : "left");
        writes_without(core, job, peer, MUSTER_E_ABORTED, text);
        round_without(core, job, peer, MUSTER_E_ABORTED, text, !finished);
        if (!finished && job->gen.state == GENERATION_RUNNING && job->gen.error_rank < 0 &&
            generation_live_count(job) > 0)
            left_early(core, peer);
    }
    if (!role_is_trainer(peer->role) && leave->why == LEAVE_FAILED && !peer->failed)
        bystander_failed(core, peer, leave->done,
                         out_printf(core, "it left with exit code %lld", (long long)leave->code));
    generation_check_ended(core, job);
    generation_check_started(core, job); /* the others may have waited for this one alone */
    return ok;
}

struct answer roster_error(struct core *core, struct peer *peer, const struct wire_error *error)
{
    struct job *job = peer->job;
    struct wire_event event = event_make(job, EVENT_PEER_ERROR);
    char text[256];

    if (!role_is_trainer(peer->role)) {
        bystander_failed(core, peer, error->step, error->text);
        return (struct answer){MUSTER_OK, "", 0};
    }
    peer->failed = true;
    if (job->gen.state != GENERATION_RUNNING && job->gen.state != GENERATION_JOINING)
        return (struct answer){MUSTER_OK, "", 0};
    generation_set_first_error(core, job, (int64_t)peer->rank, error->code, error->text);
    snprintf(text, sizeof text, "rank %llu failed its step", (unsigned long long)peer->rank);
    event.rank = (int64_t)peer->rank;
    event.code = MUSTER_E_STEP;
    event.left_ms = error->code;
    event.step = error->step;
    event.text = error->text;
    /* the error before the retry's freeze: everybody knows why its step is broken off */
    struct round *round = round_open_one(job);
    bool follows =
        round != NULL && round->cause == CAUSE_TERMINATION && job->gen.layout == LAYOUT_REPLICATED;
    if (round != NULL && !follows) {
        const struct participant *part = round_part(round, peer);
        follows = part != NULL && !save_is_needed(job, round, part);
    }
    event.flags = follows ? EVENT_FLAG_ROUND_FOLLOWS : 0;
    event_emit(core, job, event, 0);
    if (!round_without(core, job, peer, MUSTER_E_STEP, text, true))
        generation_ending(core, job, MUSTER_E_PEER, text);
    return (struct answer){MUSTER_OK, "", 0};
}

void roster_lost(struct core *core, struct peer *peer, const char *why)
{
    struct job *job = peer->job;
    enum wire_generation_state state = job->gen.state;
    int64_t age = core->now - peer->heard_boot_ms;
    char text[512];

    gone(core, peer, NODE_LOST);
    persist_peer(core, peer);
    if (!role_is_trainer(peer->role))
        bystander_lost(core, peer, why);
    snprintf(text, sizeof text, "rank %llu (process %llu on %s) was lost after step %lld: %s",
             (unsigned long long)peer->rank, (unsigned long long)peer->pid, peer->host,
             (long long)peer->done, why);
    if (state == GENERATION_RUNNING && role_is_trainer(peer->role)) {
        struct wire_event event = event_make(job, EVENT_NODE_LOST);
        struct round *round = round_open_one(job);
        const struct participant *part = round ? round_part(round, peer) : NULL;
        bool needed = part != NULL && save_is_needed(job, round, part);
        bool follows = round != NULL && (!needed || (round->cause == CAUSE_TERMINATION &&
                                                     job->gen.layout == LAYOUT_REPLICATED));
        generation_set_first_error(core, job, (int64_t)peer->rank, 0, text);
        event.rank = (int64_t)peer->rank;
        event.code = MUSTER_E_PEER;
        event.step = peer->done;
        event.left_ms = age;
        event.text = text;
        event.flags = follows ? EVENT_FLAG_ROUND_FOLLOWS : 0;
        event_emit(core, job, event, 0);
        char reason[256];
        snprintf(reason, sizeof reason, "rank %llu was lost", (unsigned long long)peer->rank);
        writes_without(core, job, peer, MUSTER_E_PEER, reason);
        if (!round_without(core, job, peer, MUSTER_E_PEER, reason, true))
            generation_ending(core, job, MUSTER_E_PEER, text);
    }
    generation_check_ended(core, job);
}

/* --- time --------------------------------------------------------------------------------------- */

static void judge_silence(struct core *core, struct peer *peer)
{
    int64_t silent = core->now - peer->heard_boot_ms;
    bool grace = core->now - core->start_boot_ms < START_GRACE_MS;
    bool pinged_in_vain = peer->pinged_boot_ms > 0 && core->now - peer->pinged_boot_ms >= LOST_MS;
    char why[128];

    if (silent < LOST_MS || (grace && core->epoch > 1 && !peer->mapped && !pinged_in_vain)) {
        if (silent >= 2 * HEARTBEAT_MS && peer->mapped && peer->pinged_boot_ms == 0) {
            peer->pinged_boot_ms = core->now;
            send_to(core, peer->route, peer->job->name, WIRE_PING);
        }
        return;
    }
    snprintf(why, sizeof why, "it was silent for %lld.%01lld s", (long long)(silent / 1000),
             (long long)(silent % 1000 / 100));
    roster_lost(core, peer, why);
}

/* What was published and not acknowledged goes once more, to this node alone. */
static void repeat_events(struct core *core, struct peer *peer)
{
    struct job *job = peer->job;

    if (!peer->mapped || peer->applied_seq >= job->seq || core->now < peer->repeat_boot_ms)
        return;
    struct action *action = action_add(core, ACTION_SEND_EVENTS);
    action->route = peer->route;
    action->job = out_text(core, job->name);
    action->number = peer->applied_seq + 1;
    action->count = EVENTS_PAGE_MAX;
    peer->repeated = true;
    peer->repeat_every_ms =
        peer->repeat_every_ms * 2 > REPEAT_MAX_MS ? REPEAT_MAX_MS : peer->repeat_every_ms * 2;
    peer->repeat_boot_ms = core->now + peer->repeat_every_ms;
}

static void judge_stuck(struct core *core, struct peer *peer)
{
    int64_t limit = 10 * (int64_t)peer->step_p95_ms;
    int64_t still = core->now - peer->advanced_boot_ms;
    bool stepping = peer->begun > peer->done;
    char text[256];

    if (limit < STUCK_MIN_MS)
        limit = STUCK_MIN_MS;
    if (peer->stuck_said || !stepping || still < limit ||
        peer->job->gen.state != GENERATION_RUNNING)
        return;
    struct wire_event event = event_make(peer->job, EVENT_STUCK);
    snprintf(text, sizeof text, "%s %llu has been in step %lld for %lld s",
             role_is_trainer(peer->role) ? "rank" : wire_role_name(peer->role),
             (unsigned long long)peer->rank, (long long)peer->begun, (long long)(still / 1000));
    event.rank = (int64_t)peer->rank;
    event.step = peer->begun;
    event.left_ms = still;
    event.text = text;
    peer->stuck_said = true;
    event_emit(core, peer->job, event, 0);
}

void roster_tick(struct core *core, struct job *job)
{
    size_t live = 0;

    for (size_t i = 0; i < job->peers_count; i++) {
        struct peer *peer = job->peers[i];
        if (!peer_is_live(peer))
            continue;
        judge_silence(core, peer);
        if (!peer_is_live(peer))
            continue;
        live++;
        judge_stuck(core, peer);
        repeat_events(core, peer);
        if (peer->mapped && peer->applied_seq < job->seq)
            job_timer(job, peer->repeat_boot_ms);
    }
    if (live > 0)
        job_timer(job, core->now + HEARTBEAT_MS / 2);
}
