/* hello - processes that join: HELLO, its refusals, WELCOME and the snapshot that replaces the
 * journal. A rank has one live holder. */
#include "broker/core/members/members.h"

#include <stdio.h>

#define DATABASE_OLDER                                                                          \
    "the broker's database was restored from an older copy, and does not know how this launch " \
    "went on; the next launch imports what is on disk, and resumes from the newest checkpoint"

static void hello_refuse(struct core *core, const struct input *in, unsigned code, bool retry,
                         const char *text)
{
    const struct wire_msg *m = in->message;
    struct wire_msg *out = send_to(core, in->route, m->up.job, WIRE_REFUSED);

    out->u.refused = (struct wire_refused){
        .nonce = m->u.hello.nonce, .code = code, .text = out_text(core, text), .retry = retry};
}

/* --- WELCOME and SNAPSHOT --------------------------------------------------------------------- */

static bool hello_asked_to_repair(const struct peer *peer)
{
    const struct generation *gen = &peer->job->gen;

    return gen->resume_checkpoint > 0 && !gen->resume_ready && role_is_trainer(peer->role) &&
           peer->rank == 0;
}

static void hello_snapshot_round(struct job *job, const struct peer *peer, struct wire_snapshot *s)
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
    s->round_nonce = round->nonce;
    if (round->state == ROUND_FREEZING)
        s->taken = part->reported_ms >= 0;
    else
        s->taken = part->writer ? part->saved_ms >= 0 : part->captured_ms >= 0;
}

/* Everything that a node without the journal has to know, at the job's present seq. */
void hello_snapshot(struct core *core, struct peer *peer)
{
    struct job *job = peer->job;
    const struct generation *gen = &job->gen;
    struct wire_msg *out = send_to(core, peer->route, job->name, WIRE_SNAPSHOT);
    struct wire_snapshot *s = &out->u.snapshot;
    const struct checkpoint *resume = registry_resume_of(job, peer);
    const struct checkpoint *newest = registry_newest(job);
    bool none = resume == NULL && registry_lets_begin(job, peer);
    struct outcome named = round_outcome(job, peer->named_round);
    int64_t deadline = notice_deadline(job);

    if (resume != NULL && gen->started_unix_ms == 0)
        newest = resume;   /* after a fallback others count until all have restored it */
    peer->repeated = true; /* what it acknowledges next was not published to it just now */
    *s = (struct wire_snapshot){
        .seq = job->seq,
        .generation = gen->generation,
        .generation_state = gen->state,
        .resume_checkpoint = resume ? resume->row.round
                             : none ? 0
                                    : gen->resume_checkpoint,
        .resume_step = resume ? resume->row.step
                       : none ? 0
                              : gen->resume_step,
        .resume_ready = gen->resume_ready,
        .resume_path = out_text(core, resume ? resume->path : ""),
        .resume_repair = hello_asked_to_repair(peer),
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
        .left_ms = deadline > 0 ? deadline - core->now_boot : -1,
    };
    hello_snapshot_round(job, peer, s);
    notices_taken_back(core, peer, s);
}

static void hello_welcome(struct core *core, const struct input *in, struct peer *peer,
                          bool snapshot)
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
        .speaks = WIRE_SPEAKS,
        .signer = out_text(core, core->signer),
        .database = core->database,
    };
    if (snapshot)
        hello_snapshot(core, peer);
}

/* --- HELLO ------------------------------------------------------------------------------------ */

/* A database that was restored from a copy knows less than the nodes: jump above what they saw
 * before anything is answered, so that no number is ever used twice. */
static void hello_jump_above(struct core *core, struct job *job, const struct wire_msg *m)
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

static void hello_take_facts(struct core *core, const struct input *in, struct peer *peer)
{
    const struct wire_hello *hello = &in->message->u.hello;
    struct generation *gen = &peer->job->gen;

    peer->mapped = true;
    peer->route = in->route;
    if (role_is_trainer(peer->role) && gen->directory == 0) {
        gen->directory = hello->directory;
        gen->directory_rank = peer->rank;
        snprintf(gen->directory_host, sizeof gen->directory_host, "%s", hello->host);
    }
    peer->heard_boot_ms = core->now;
    peer->heard_unix_ms = core->now_unix;
    peer->pinged_boot_ms = 0;
    gone_heard(peer);
    peer->begun = hello->begun;
    peer->done = hello->done;
    peer->phase = roster_phase_known(hello->phase);
    peer->named_round = hello->round;
    peer->applied_seq = in->message->up.applied_seq;
    peer->repeat_every_ms = REPEAT_MIN_MS;
    peer->repeat_boot_ms = core->now + HEARTBEAT_MS; /* it repairs by itself first */
    peer->progress_dirty = true;
    job_timer(peer->job, core->now + REPEAT_MIN_MS);
}

static struct peer *hello_join(struct core *core, const struct input *in, struct job *job)
{
    const struct wire_msg *m = in->message;
    struct peer *peer;

    if (!peers_have_room(core, in->key_jobs)) {
        hello_refuse(core, in, MUSTER_E_BUSY, true, TOO_MANY_PROCESSES_OF_KEY);
        return NULL;
    }
    peer = peer_create(core, job, m->up.incarnation);
    if (peer == NULL) {
        hello_refuse(
            core, in, MUSTER_E_BUSY, true,
            "this broker holds as many processes as it can; start another musterd with its own "
            "--db and --listen for further jobs");
        return NULL;
    }
    peer->role = (enum wire_role)m->up.role;
    peer->rank = m->up.rank;
    peer_move(peer, NODE_JOINED);
    peer->pid = m->u.hello.pid;
    peer->joined_unix_ms = core->now_unix;
    peer->advanced_boot_ms = core->now;
    strncpy(peer->host, m->u.hello.host, sizeof peer->host - 1);
    if (role_is_trainer(peer->role))
        job->trainers[peer->rank] = peer;
    return peer;
}

static struct peer *hello_holder_of(const struct job *job, enum wire_role role, uint64_t rank)
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
static bool hello_saves_are_open(const struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used)
            return true;
    return false;
}

/* All ranks had restored before steps were taken, so a process that comes now restarts its rank. */
static bool hello_comes_back(const struct job *job, enum wire_role role)
{
    return job->gen.state == GENERATION_RUNNING && role_is_trainer(role);
}

static void hello_rank_restarted(struct core *core, struct job *job, uint64_t rank)
{
    char text[256];

    snprintf(text, sizeof text, "rank %llu was restarted after steps were taken",
             (unsigned long long)rank);
    generation_rank_failed(core, job, EVENT_RANK_RESTARTED, rank, text);
    job_settle(core, job); /* nobody may live in it any more: then this one opens the next */
}

/* True when the holder is gone and the rank is free. */
static bool hello_takeover(struct core *core, const struct input *in, struct peer *holder)
{
    if (holder->pinged_boot_ms > 0 && core_passed_ms(core, holder->pinged_boot_ms) >= TAKEOVER_MS) {
        roster_lost(core, holder,
                    "another process came for its rank and it did not answer for 2 s");
        job_settle(core, holder->job);
        return true;
    }
    if (holder->pinged_boot_ms == 0)
        holder->pinged_boot_ms = core->now;
    if (holder->mapped)
        send_to(core, holder->route, holder->job->name, WIRE_PING);
    char text[640];
    snprintf(
        text, sizeof text,
        "rank %llu of job '%s' is held by process %llu on %s; stop that process, or give this one "
        "its own rank%s",
        (unsigned long long)holder->rank, holder->job->name, (unsigned long long)holder->pid,
        holder->host,
        holder->job->gen.world_size > 1
            ? ""
            : ": that launch has one rank; `muster run -n N` starts more, or set MUSTER_RANK and "
              "MUSTER_WORLD_SIZE for each process");
    hello_refuse(core, in, MUSTER_E_RANK_TAKEN, true, text);
    return false;
}

static bool hello_same_launch(const struct wire_hello *hello, const struct generation *gen)
{
    return hello->world_size == gen->world_size && hello->layout == gen->layout &&
           strcmp(hello->checkpoint_dir, gen->checkpoint_dir) == 0 &&
           (hello->directory == gen->directory || hello->directory == 0 || gen->directory == 0) &&
           (gen->state != GENERATION_JOINING || hello->restore_fallback == gen->fallback);
}

/* Once a rank has answered a ping, this launch lives for certain. The ranks of a launch that was
 * killed may not be lost yet; once they are, they bind nobody. */
static bool hello_launch_answers(struct core *core, struct job *job)
{
    bool asked = job->asked_boot_ms > 0 && core_passed_ms(core, job->asked_boot_ms) < TAKEOVER_MS;

    for (uint64_t rank = 0; rank < job->gen.world_size; rank++) {
        struct peer *peer = job->trainers[rank];
        if (peer == NULL || !peer_is_live(peer) || !peer->mapped || peer->pinged_boot_ms > 0)
            continue;
        if (asked)
            return true;
        peer->pinged_boot_ms = core->now;
        send_to(core, peer->route, job->name, WIRE_PING);
    }
    if (!asked)
        job->asked_boot_ms = core->now;
    return false;
}

static bool hello_facts_agree(struct core *core, const struct input *in, struct job *job)
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
        hello_refuse(core, in, MUSTER_E_WORLD_SIZE, !hello_launch_answers(core, job), text);
        return false;
    }
    if (hello->layout != gen->layout || strcmp(hello->checkpoint_dir, gen->checkpoint_dir) != 0) {
        snprintf(
            text, sizeof text,
            "job '%s' runs with layout %s in checkpoint directory '%s', this process came with %s "
            "in '%s'; use the same on all ranks",
            job->name, wire_layout_name(gen->layout), gen->checkpoint_dir,
            wire_layout_name((unsigned)hello->layout), hello->checkpoint_dir);
        hello_refuse(core, in, MUSTER_E_LAYOUT, !hello_launch_answers(core, job), text);
        return false;
    }
    return true;
}

/* Two hosts that see different directories under one path: what one saves the other does not find.
 * Told again while the ranks join, as below. */
static bool hello_directory_agrees(struct core *core, const struct input *in, const struct job *job)
{
    const struct wire_hello *hello = &in->message->u.hello;
    const struct generation *gen = &job->gen;

    if (!role_is_trainer((enum wire_role)in->message->up.role) || hello->directory == 0 ||
        gen->directory == 0 || hello->directory == gen->directory)
        return true;
    hello_refuse(
        core, in, MUSTER_E_LAYOUT, gen->state == GENERATION_JOINING,
        out_printf(core,
                   "%s is one directory for rank %llu on %s and another for rank %llu on %s, "
                   "where job '%s' runs; mount the same file system there on all hosts",
                   gen->checkpoint_dir, (unsigned long long)in->message->up.rank, hello->host,
                   (unsigned long long)gen->directory_rank, gen->directory_host, job->name));
    return false;
}

/* While the ranks restore, what each may take is one choice: who takes nothing but the newest would
 * begin at another step than those who go back. Told again, since the others may be of a launch
 * that was killed and is not known to be lost. */
static bool hello_wishes_agree(struct core *core, const struct input *in, const struct job *job)
{
    const bool older = in->message->u.hello.restore_fallback;

    if (job->gen.state != GENERATION_JOINING || older == job->gen.fallback ||
        !role_is_trainer((enum wire_role)in->message->up.role))
        return true;
    hello_refuse(
        core, in, MUSTER_E_RESTORE, true,
        out_printf(core,
                   "rank %llu %s, and the other ranks of job '%s' %s; restore the same on all "
                   "ranks, with or without fallback on all of them",
                   (unsigned long long)in->message->up.rank,
                   older ? "may take an older checkpoint (fallback, or a step that it asks for)"
                         : "takes the newest checkpoint alone",
                   job->name, older ? "take the newest alone" : "may take an older one"));
    return false;
}

/* A new process for the present generation. NULL: it was refused. */
static struct peer *hello_join_present(struct core *core, const struct input *in, struct job *job)
{
    enum wire_role role = (enum wire_role)in->message->up.role;
    uint64_t rank = in->message->up.rank;

    if (role_is_trainer(role) && generation_live_count(job) == 0 &&
        !hello_same_launch(&in->message->u.hello, &job->gen)) {
        generation_end(core, job); /* a launch of which nobody lives binds no other */
        return NULL;
    }
    if (!hello_facts_agree(core, in, job))
        return NULL;
    struct peer *holder = hello_holder_of(job, role, rank);
    if (holder != NULL && !hello_takeover(core, in, holder))
        return NULL;
    if (holder == NULL && !hello_wishes_agree(core, in, job))
        return NULL;
    if (!generation_is_over(job) && !hello_directory_agrees(core, in, job))
        return NULL;
    if (hello_comes_back(job, role) && hello_saves_are_open(job)) {
        hello_refuse(core, in, MUSTER_E_ENDING, true,
                     out_printf(core,
                                "job '%s' is saving; rank %llu may come back when that is over",
                                job->name, (unsigned long long)rank));
        return NULL;
    }
    if (hello_comes_back(job, role))
        hello_rank_restarted(core, job, rank);
    if (generation_is_over(job))
        return NULL; /* the caller goes on with that */
    return hello_join(core, in, job);
}

static bool hello_ending_is_over(struct core *core, const struct job *job)
{
    return job->gen.state == GENERATION_ENDED ||
           (job->gen.state == GENERATION_ENDING &&
            (generation_live_count(job) == 0 ||
             (core_passed_ms(core, job->gen.ending_boot_ms) >= ENDING_MS &&
              !hello_saves_are_open(job))));
}

#define RANKS_FIRST "the job has no running generation yet; its ranks come first"

/* A live rank that this broker start has heard. Rows alone may come from a copy of the database, so
 * they do not prove that this launch still runs: a newer one may have replaced it. Nor does a ps or
 * an evaluator, which may live on or be new. */
static bool hello_rank_speaks(const struct job *job)
{
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (job->trainers[rank] != NULL && job->trainers[rank]->mapped)
            return true;
    return false;
}

/* This process opens no generation: its peers have left, and it would wait for them in vain. */
static void hello_refuse_late(struct core *core, const struct input *in, const struct job *job)
{
    const struct generation *gen = &job->gen;
    unsigned code = gen->end_status == MUSTER_E_NOT_SAVED ? MUSTER_PREEMPTED : gen->end_status;
    char failed[64] = "";

    if (gen->error_rank >= 0)
        snprintf(failed, sizeof failed, "rank %lld failed: ", (long long)gen->error_rank);
    hello_refuse(
        core, in, code, false,
        out_printf(core, "rank %llu came after its launch had ended (generation %llu, %s%s)",
                   (unsigned long long)in->message->up.rank, (unsigned long long)gen->generation,
                   failed, gen->error_rank >= 0 ? gen->error_text : gen->end_text));
}

static void hello_new(struct core *core, const struct input *in, struct job *job)
{
    const struct wire_msg *m = in->message;
    bool trainer = role_is_trainer((enum wire_role)m->up.role);
    enum wire_generation_state state = job->gen.state;
    struct peer *peer = NULL;

    if (trainer && hello_same_launch(&m->u.hello, &job->gen) &&
        generation_rank_is_late(core, job, m->up.rank, m->u.hello.age_ms)) {
        hello_refuse_late(core, in, job);
        return;
    }
    if (!trainer && !generation_is_over(job) && !hello_rank_speaks(job)) {
        hello_refuse(core, in, MUSTER_E_ENDING, true, RANKS_FIRST);
        return; /* the launch that this database knows may be over, and another run */
    }
    if (state == GENERATION_JOINING || state == GENERATION_RUNNING) {
        size_t before = core->out->count;
        peer = hello_join_present(core, in, job);
        if (peer == NULL && job->gen.state == state && core->out->count > before)
            return; /* refused, with the reason */
    }
    if (peer == NULL) {
        if (job->gen.generation > 0 && !hello_ending_is_over(core, job)) {
            hello_refuse(
                core, in, MUSTER_E_ENDING, true,
                out_printf(
                    core,
                    "generation %llu of job '%s' is ending; %zu of its processes are still leaving",
                    (unsigned long long)job->gen.generation, job->name,
                    generation_live_count(job)));
            return;
        }
        if (!trainer) { /* the facts of a launch are told by those who train */
            hello_refuse(core, in, MUSTER_E_ENDING, true, RANKS_FIRST);
            return;
        }
        generation_open(core, job, &m->u.hello);
        peer = hello_join(core, in, job);
    }
    if (peer == NULL)
        return;
    hello_take_facts(core, in, peer);
    persist_peer(core, peer);
    hello_welcome(core, in, peer, true);
    notice_facts(core, peer, &m->u.hello);
}

/* The launch's options are in no row: after a start of the broker its processes say them again */
static void hello_join_timeout_again(struct job *job, const struct wire_hello *hello)
{
    int64_t more_ms = (int64_t)hello->join_timeout_ms - job->gen.join_ms;

    if (job->gen.state != GENERATION_JOINING || more_ms <= 0)
        return;
    job->gen.join_ms += more_ms;
    job->gen.join_until_boot_ms += more_ms;
}

/* This process is in none of the rows, or heard or was answered more than they tell. Nobody is told
 * before that is written: the database was restored from an older copy. */
static bool hello_is_ahead(const struct job *job, const struct peer *peer, const struct wire_msg *m)
{
    const struct wire_hello *hello = &m->u.hello;

    return peer == NULL ||
           (m->up.generation == job->gen.generation && hello->answered > peer->last_request) ||
           (hello->history != 0 && !lineage_holds(job, hello->history, m->up.applied_seq));
}

/* A process that is in no row, while ranks that are in one speak, or hold its rank: another broker
 * had let it in. */
static bool hello_is_a_stranger(const struct job *job, const struct wire_msg *m)
{
    return hello_rank_speaks(job) ||
           (m->up.generation == job->gen.generation && !generation_is_over(job) &&
            hello_holder_of(job, (enum wire_role)m->up.role, m->up.rank) != NULL);
}

/* The process's launch ends. The next one finds on disk what it saved. */
static void hello_end_ahead(struct core *core, struct job *job, const struct wire_msg *m)
{
    struct peer *peer;

    if (m->up.generation <= job->gen.generation) {
        if (!generation_is_over(job))
            round_not_saved(core, job, 0, -1, 0, DATABASE_OLDER);
    } else if (role_is_trainer((enum wire_role)m->up.role)) /* an observer knows no world */
        generation_ahead(core, job, m->up.generation, &m->u.hello, DATABASE_OLDER);
    peer = peer_find(core, m->up.incarnation);
    if (peer != NULL && peer_is_live(peer))
        roster_preempted(core, peer);
}

/* A process that was welcomed before: by this broker, by its former start, or by one whose database
 * knew more. */
static void hello_again(struct core *core, const struct input *in, struct job *job)
{
    const struct wire_msg *m = in->message;
    struct peer *peer = peer_find(core, m->up.incarnation);
    bool of_before = m->up.generation < job->gen.generation || m->up.generation == 0;

    if ((peer == NULL && of_before) ||
        (peer != NULL && (peer->state == NODE_LOST || peer->state == NODE_FENCED))) {
        hello_refuse(
            core, in, MUSTER_E_STALE, false,
            out_printf(core,
                       "rank %llu of job '%s' (generation %llu) was given up or taken over; "
                       "generation %llu goes on without this process",
                       (unsigned long long)m->up.rank, job->name,
                       (unsigned long long)m->up.generation,
                       (unsigned long long)job->gen.generation));
        return;
    }
    bool stranger = peer == NULL && hello_is_a_stranger(job, m);
    if (!stranger)
        hello_jump_above(core, job, m);
    if (hello_is_ahead(job, peer, m)) {
        if (!stranger && (peer == NULL || peer_is_live(peer))) /* a LEFT one ends nobody else */
            hello_end_ahead(core, job, m);
        hello_refuse(core, in, MUSTER_PREEMPTED, false, DATABASE_OLDER);
        return;
    }
    uint64_t named = m->u.hello.round;
    bool unknown = named > 0 && round_outcome(job, named).cause == CAUSE_NONE;
    bool jumped = m->up.applied_seq == 0 || unknown || of_before || hello_asked_to_repair(peer);
    if (!peer->mapped)
        hello_join_timeout_again(job, &m->u.hello);
    hello_take_facts(core, in, peer);
    persist_peer(core, peer);
    hello_welcome(core, in, peer, jumped);
    notice_facts(core, peer, &m->u.hello);
}

/* The database keeps signed numbers, and a jump goes above what a node has seen. The epoch is one
 * of all jobs: what one claims must not take it to where no HELLO of the others may follow. */
static bool hello_numbers_ok(const struct core *core, const struct wire_msg *m)
{
    const uint64_t max = (uint64_t)1 << 62;

    return m->up.applied_seq < max && m->up.generation < max &&
           m->up.broker_epoch <= core->epoch + EPOCH_AHEAD_MAX && m->u.hello.round < max &&
           m->u.hello.saved_round < max && step_ok(m->u.hello.begun) && step_ok(m->u.hello.done);
}

static bool hello_speaks_alike(struct core *core, const struct input *in)
{
    if (in->message->u.hello.speaks >= WIRE_SPEAKS)
        return true;
    hello_refuse(
        core, in, MUSTER_E_VERSION, false,
        "this process has an older libmuster than this broker, and would not understand "
        "its rounds; build it with the libmuster of this musterd, and start the job again");
    return false;
}

void hello_take(struct core *core, const struct input *in)
{
    const struct wire_msg *m = in->message;
    bool trainer = role_is_trainer((enum wire_role)m->up.role);

    if (!hello_speaks_alike(core, in))
        return;

    if (!hello_numbers_ok(core, m)) {
        hello_refuse(core, in, MUSTER_E_ARGUMENT, false,
                     "a number of HELLO is negative or beyond what a broker has reached");
        return;
    }
    if (!wire_job_name_ok(m->up.job) || m->up.role == ROLE_NONE || m->up.role >= ROLE_TOOL ||
        m->up.incarnation == 0 || m->u.hello.layout == LAYOUT_NONE) {
        hello_refuse(core, in, MUSTER_E_ARGUMENT, false,
                     "job name, role, incarnation or layout of HELLO are not acceptable");
        return;
    }
    if (trainer && (m->u.hello.world_size == 0 || m->up.rank >= m->u.hello.world_size)) {
        hello_refuse(
            core, in, MUSTER_E_RANK, false,
            out_printf(core,
                       "rank %llu is not inside a world of %llu; ranks go from 0 to world size - 1",
                       (unsigned long long)m->up.rank, (unsigned long long)m->u.hello.world_size));
        return;
    }
    struct job *job = job_find(core, m->up.job);
    const char *refusal = jobs_refusal(core, job, in->key_jobs);
    if (refusal != NULL) {
        hello_refuse(core, in, MUSTER_E_BUSY, true, refusal);
        return;
    }
    if (job == NULL) {
        job = job_create(core, m->up.job);
        if (job == NULL) {
            hello_refuse(core, in, MUSTER_E_BUSY, true, TOO_MANY_JOBS);
            return;
        }
        job->state_unix_ms = core->now_unix;
    }
    hello_jump_above(core, NULL, m);
    struct peer *peer = peer_find(core, m->up.incarnation);
    if (peer != NULL && peer->job != job) {
        hello_refuse(core, in, MUSTER_E_ARGUMENT, false,
                     "the incarnation is in use by another job");
        return;
    }
    if (peer != NULL || m->up.generation > 0 || departed_holds(&core->departed, m->up.incarnation))
        hello_again(core, in, job); /* who left says no first HELLO: that one comes late */
    else
        hello_new(core, in, job);
    if (!job_has_row(job))
        job_drop(core, job); /* it opened nothing: it leaves no row */
    else
        job_settle(core, job);
}
