/* sim_check - the invariants of PROTOCOL.md, held against everything that happens.
 * What is written is checked against what was written before and against what the shards really hold;
 * what is sent, against what is written; what a process does, against the rounds that name it. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))
#define THAW_US (THAW_MS * 1000LL)
#define THAW_ABORTED_US (THAW_ABORTED_MS * 1000LL)
#define WAIT_LIMIT_US 45000000LL

static struct sim_job *job_of(struct sim *sim, const char *name)
{
    for (size_t i = 0; i < sim->jobs_count; i++)
        if (strcmp(sim->jobs[i].name, name) == 0)
            return &sim->jobs[i];
    sim_broken(sim, "rows", "a row of job '%s', which does not exist", name);
    return NULL;
}

/* --- what is written ------------------------------------------------------------------------------------ */

static void check_job(struct sim *sim, const struct record_job *row)
{
    const struct record_job *old = disk_job(sim, row->job);

    if (old == NULL)
        return;
    if (row->seq < old->seq || row->round < old->round || row->generation < old->generation)
        sim_broken(sim, "I6", "job %s goes back: seq %llu to %llu, round %llu to %llu", row->job,
                   U(old->seq), U(row->seq), U(old->round), U(row->round));
}

/* How far the furthest process was beyond what the next generation begins from. */
static void count_lost_steps(struct sim *sim, const struct record_generation *row)
{
    const struct sim_job *job = job_of(sim, row->job);
    int64_t furthest = row->resume_step;

    for (size_t i = 0; job != NULL && i < sim->procs_count; i++)
        if (sim->procs[i]->job == job->index &&
            sim->procs[i]->view.generation == row->generation - 1 && sim->procs[i]->done > furthest)
            furthest = sim->procs[i]->done;
    sim->stats->steps_lost += (uint64_t)(furthest - row->resume_step);
}

/* I9: the newest committed checkpoint that is not superseded. */
static void check_generation(struct sim *sim, const struct record_generation *row)
{
    const struct record_generation *old = disk_generation(sim, row->job, row->generation);
    const struct record_checkpoint *newest = disk_newest(sim, row->job);

    if (old != NULL) {
        if (old->state > row->state)
            sim_broken(sim, "I6", "generation %llu of %s goes back from %s to %s",
                       U(row->generation), row->job, wire_generation_state_name(old->state),
                       wire_generation_state_name(row->state));
        if (old->resume_checkpoint != row->resume_checkpoint && old->state != GENERATION_JOINING)
            sim_broken(sim, "I9", "generation %llu of %s changes its resume choice while %s",
                       U(row->generation), row->job, wire_generation_state_name(old->state));
        return;
    }
    sim->stats->generations++;
    count_lost_steps(sim, row);
    if (row->resume_checkpoint != (newest ? newest->round : 0) ||
        row->resume_step != (newest ? newest->step : 0))
        sim_broken(sim, "I9",
                   "generation %llu of %s resumes from %llu (step %lld), the newest is %llu "
                   "(step %lld)",
                   U(row->generation), row->job, U(row->resume_checkpoint),
                   (long long)row->resume_step, U(newest ? newest->round : 0),
                   (long long)(newest ? newest->step : 0));
}

static void count_event(struct sim *sim, const struct wire_event *event)
{
    struct sim_stats *s = sim->stats;

    if (event->kind < EVENT_KIND_COUNT)
        s->emitted[event->kind]++;
    if (event->kind == EVENT_COMMIT) {
        s->commits++;
        s->commits_of[event->cause]++;
    } else if (event->kind == EVENT_ABORT) {
        s->aborts++;
        if (event->code < SIM_REASONS_MAX)
            s->aborts_by[event->code]++;
    } else if (event->kind == EVENT_UNCHANGED)
        s->unchanged++;
    else if (event->kind == EVENT_NOT_SAVED)
        s->not_saved++;
    else if (event->kind == EVENT_SAVE_SKIPPED)
        s->skipped++;
}

static void check_event(struct sim *sim, const struct record_event *row)
{
    const struct sim_table *events = &sim->disk.tables[RECORD_EVENT];
    const struct sim_row *old = disk_event(sim, row->job, row->seq);

    SIM_TELL(sim, "%s EVENT %llu %s generation %llu round %llu step %lld rank %lld code %llu: %s",
             row->job, U(row->seq), wire_event_kind_name((unsigned)row->body.kind),
             U(row->generation), U(row->body.round), (long long)row->body.step,
             (long long)row->body.rank, U(row->body.code), row->body.text ? row->body.text : "");
    if (old != NULL) /* even with the same content: it would be published twice */
        sim_broken(sim, "I3", "event %llu of %s is written twice", U(row->seq), row->job);
    if (row->seq != row->body.seq)
        sim_broken(sim, "I3", "event %llu of %s says that it is %llu", U(row->seq), row->job,
                   U(row->body.seq));
    if (row->seq > 1 && disk_event(sim, row->job, row->seq - 1) == NULL && events->count > 0 &&
        sim->journal_max == 0)
        sim_broken(sim, "I8", "event %llu of %s has none before it", U(row->seq), row->job);
    if (row->body.kind == EVENT_DECISION) {
        for (size_t i = 0; i < events->count; i++) {
            const struct record_event *other = &events->rows[i].record.u.event;
            if (other->body.kind == EVENT_DECISION && other->body.round == row->body.round &&
                strcmp(other->job, row->job) == 0)
                sim_broken(sim, "I4", "round %llu of %s is decided twice", U(row->body.round),
                           row->job);
        }
    }
    count_event(sim, &row->body);
}

static void check_round(struct sim *sim, const struct record_round *row)
{
    const struct record_round *old = disk_round(sim, row->job, row->round);
    const struct record_job *job = disk_job(sim, row->job);

    if (old == NULL) {
        sim->stats->rounds++;
        if (job != NULL && row->generation < job->generation && row->state != ROUND_ABORTED)
            sim_broken(sim, "I6", "round %llu is opened for generation %llu, the newest is %llu",
                       U(row->round), U(row->generation), U(job->generation));
        return;
    }
    bool was_decided = old->state == ROUND_DECIDED || old->state == ROUND_WRITING;
    if ((was_decided || old->state == ROUND_COMMITTED) && row->step != old->step)
        sim_broken(sim, "I4", "round %llu changes its step from %lld to %lld", U(row->round),
                   (long long)old->step, (long long)row->step);
    if (old->state > ROUND_WRITING && row->state != old->state)
        sim_broken(sim, "I4", "round %llu had ended as %s and is %s now", U(row->round),
                   wire_round_state_name(old->state), wire_round_state_name(row->state));
    if (old->state != ROUND_NONE && row->state < old->state)
        sim_broken(sim, "I4", "round %llu goes back from %s to %s", U(row->round),
                   wire_round_state_name(old->state), wire_round_state_name(row->state));
}

/* I1, and I11 for the registry's own moves. */
static void check_checkpoint(struct sim *sim, const struct record_checkpoint *row)
{
    const struct record_checkpoint *old = disk_checkpoint(sim, row->job, row->round);
    const struct record_round *round = disk_round(sim, row->job, row->round);
    const struct record_job *job = disk_job(sim, row->job);

    if (old != NULL && old->state == CHECKPOINT_COMMITTED && row->state != CHECKPOINT_COMMITTED)
        sim_broken(sim, "I11", "checkpoint %llu was committed and is %s now", U(row->round),
                   wire_checkpoint_state_name(row->state));
    if (old != NULL && old->state > CHECKPOINT_COMMITTED && row->state <= CHECKPOINT_COMMITTED)
        sim_broken(sim, "I6", "checkpoint %llu was %s and is %s now", U(row->round),
                   wire_checkpoint_state_name(old->state), wire_checkpoint_state_name(row->state));
    if (row->state != CHECKPOINT_COMMITTED || (old != NULL && old->state == CHECKPOINT_COMMITTED))
        return;
    if (round == NULL || round->step != row->step || round->generation != row->generation)
        sim_broken(sim, "I1", "checkpoint %llu does not fit its round", U(row->round));
    if (job != NULL && row->generation != job->generation)
        sim_broken(sim, "I6", "checkpoint %llu of generation %llu commits in generation %llu",
                   U(row->round), U(row->generation), U(job->generation));
}

static void check_shard(struct sim *sim, const struct record_shard *row)
{
    const struct record_participant *part =
        disk_member(sim, row->job, row->round, row->incarnation);
    const struct record_round *round = disk_round(sim, row->job, row->round);
    const struct record_job *job = disk_job(sim, row->job);

    if (part == NULL || part->rank != row->rank)
        sim_broken(sim, "I1",
                   "a shard of rank %llu is taken into round %llu from a process that was not "
                   "decided",
                   U(row->rank), U(row->round));
    if (round == NULL || job == NULL || round->generation != job->generation)
        sim_broken(sim, "I6", "a shard of an old generation is taken into round %llu",
                   U(row->round));
}

/* Requests are taken once each, in order: never more than were made. */
static void check_node(struct sim *sim, const struct record_node *row)
{
    const struct record_node *old = disk_node(sim, row->incarnation);

    if (old != NULL && row->generation > old->generation)
        old = NULL; /* its WELCOME was lost, and a later generation let it in */
    if (old != NULL && (row->last_request < old->last_request || row->state < old->state))
        if (row->last_request < old->last_request || old->state != NODE_RESTORED)
            sim_broken(sim, "I12", "rank %llu's row goes back: request %llu to %llu, %s to %s",
                       U(row->rank), U(old->last_request), U(row->last_request),
                       wire_node_state_name(old->state), wire_node_state_name(row->state));
    for (size_t i = sim->procs_count; i-- > 0;)
        if (sim->procs[i]->incarnation == row->incarnation &&
            row->last_request > sim->procs[i]->request_said)
            sim_broken(sim, "I12", "request %llu of rank %llu is taken, it made %llu",
                       U(row->last_request), U(row->rank), U(sim->procs[i]->request_said));
}

void check_row(struct sim *sim, const struct record *r)
{
    switch (r->kind) {
    case RECORD_BROKER:
        if (r->u.broker.epoch <= sim->broker.epoch)
            sim_broken(sim, "I6", "broker epoch %llu after %llu", U(r->u.broker.epoch),
                       U(sim->broker.epoch));
        sim->broker.epoch = r->u.broker.epoch;
        break;
    case RECORD_JOB:
        check_job(sim, &r->u.job);
        break;
    case RECORD_GENERATION:
        check_generation(sim, &r->u.generation);
        break;
    case RECORD_NODE:
        check_node(sim, &r->u.node);
        break;
    case RECORD_EVENT:
        check_event(sim, &r->u.event);
        break;
    case RECORD_ROUND:
        check_round(sim, &r->u.round);
        break;
    case RECORD_CHECKPOINT:
        check_checkpoint(sim, &r->u.checkpoint);
        break;
    case RECORD_SHARD:
        check_shard(sim, &r->u.shard);
        break;
    default:
        break;
    }
}

/* --- after a transaction --------------------------------------------------------------------------------- */

static void check_shard_of(struct sim *sim, const struct sim_job *job,
                           const struct record_checkpoint *row,
                           const struct record_participant *part)
{
    const struct sim_shard *shard =
        fs_shard(sim, job->index, row->generation, row->round, part->rank);

    if (shard == NULL || !shard->complete || shard->deleted)
        sim_broken(sim, "I1", "checkpoint %llu is committed, rank %llu's shard is not there whole",
                   U(row->round), U(part->rank));
    else if (shard->incarnation != part->incarnation || shard->done != row->step ||
             shard->begun != row->step)
        sim_broken(sim, "I1",
                   "checkpoint %llu of step %lld has rank %llu's shard of step %lld (begun %lld)",
                   U(row->round), (long long)row->step, U(part->rank), (long long)shard->done,
                   (long long)shard->begun);
}

static void check_committed(struct sim *sim, const struct record_checkpoint *row)
{
    const struct sim_table *parts = &sim->disk.tables[RECORD_PARTICIPANT];
    const struct sim_job *job = job_of(sim, row->job);
    size_t writers = 0;

    for (size_t i = 0; i < parts->count && job != NULL; i++) {
        const struct record_participant *part = &parts->rows[i].record.u.participant;
        if (part->round != row->round || !part->writer || strcmp(part->job, row->job) != 0)
            continue;
        writers++;
        check_shard_of(sim, job, row, part);
    }
    if (job != NULL && writers != (row->layout == LAYOUT_SHARDED ? job->nodes : 1))
        sim_broken(sim, "I1", "checkpoint %llu has %zu writers", U(row->round), writers);
}

void check_batch(struct sim *sim)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];
    const struct sim_table *checkpoints = &sim->disk.tables[RECORD_CHECKPOINT];

    for (size_t j = 0; j < sim->jobs_count; j++) {
        unsigned open = 0, active = 0;
        for (size_t i = 0; i < rounds->count; i++) {
            const struct record_round *round = &rounds->rows[i].record.u.round;
            if (strcmp(round->job, sim->jobs[j].name) != 0)
                continue;
            open += round->state == ROUND_FREEZING || round->state == ROUND_DECIDED;
            active += round->state == ROUND_FREEZING || round->state == ROUND_DECIDED ||
                      round->state == ROUND_WRITING;
        }
        if (open > 1 || active > ROUNDS_ACTIVE_MAX)
            sim_broken(sim, "I7", "%u rounds of %s are open, %u active", open, sim->jobs[j].name,
                       active);
    }
    for (size_t i = 0; i < checkpoints->count; i++)
        if (checkpoints->rows[i].record.u.checkpoint.state == CHECKPOINT_COMMITTED)
            check_committed(sim, &checkpoints->rows[i].record.u.checkpoint);
}

/* --- what is sent ----------------------------------------------------------------------------------------- */

static void check_sent_event(struct sim *sim, const struct wire_msg *message)
{
    const struct wire_event *event = &message->u.event;
    const struct sim_row *row = disk_event(sim, message->down.job, event->seq);

    if (row == NULL || row->record.u.event.body.kind != event->kind ||
        row->record.u.event.body.round != event->round ||
        row->record.u.event.body.step != event->step)
        sim_broken(sim, "I3", "event %llu (%s) is sent and is not in the database", U(event->seq),
                   wire_event_kind_name((unsigned)event->kind));
}

/* I12: what is answered is written. */
static void check_ack(struct sim *sim, const struct wire_msg *message, const struct sim_proc *to)
{
    const struct record_node *row = disk_node(sim, to->incarnation);
    bool known =
        row != NULL && (row->last_request >= message->u.ack.request || row->state == NODE_LEFT);

    if (message->u.ack.code == MUSTER_OK && message->u.ack.request > 0 && !known)
        sim_broken(sim, "I12", "request %llu of rank %u is answered and not written",
                   U(message->u.ack.request), to->rank);
}

void check_sent(struct sim *sim, const struct wire_msg *message, const struct sim_proc *to)
{
    const struct record_job *job = message->down.job[0] ? disk_job(sim, message->down.job) : NULL;

    if (message->down.last_seq > (job ? job->seq : 0))
        sim_broken(sim, "I3", "a %s tells of event %llu, the database ends at %llu",
                   wire_type_name(message->type), U(message->down.last_seq), U(job ? job->seq : 0));
    if (message->down.broker_epoch > sim->broker.epoch)
        sim_broken(sim, "I3", "a %s tells of epoch %llu, which is not written",
                   wire_type_name(message->type), U(message->down.broker_epoch));
    if (message->type == WIRE_EVENT)
        check_sent_event(sim, message);
    if (message->type == WIRE_SNAPSHOT)
        sim->stats->snapshots++;
    if (message->type == WIRE_ACK &&
        (message->u.ack.code == MUSTER_E_PROTOCOL || message->u.ack.code == MUSTER_E_ARGUMENT))
        sim_broken(sim, "answers", "a faithful node's request %llu is answered: %s",
                   U(message->u.ack.request), message->u.ack.text);
    if (message->type == WIRE_ACK && to != NULL && to->alive)
        check_ack(sim, message, to);
    if (message->type == WIRE_WELCOME && to != NULL && disk_node(sim, to->incarnation) == NULL)
        sim_broken(sim, "I12", "rank %u is welcomed and not written", to->rank);
}

static bool stood_at(const struct sim_proc *proc, int64_t step)
{
    for (unsigned i = 0; i < sizeof proc->arrivals / sizeof proc->arrivals[0]; i++)
        if (i < proc->arrivals_next && proc->arrivals[i] == step)
            return true;
    return false;
}

static void check_past(struct sim *sim, struct sim_proc *proc, uint64_t number)
{
    const struct record_round *round = disk_round(sim, sim->jobs[proc->job].name, number);

    if (proc->captured_round == number || proc->captured_said == number)
        sim_broken(sim, "I2", "rank %u captured round %llu and answers PAST", proc->rank,
                   U(number));
    if (round == NULL || (round->step >= 0 && proc->begun <= round->step))
        sim_broken(sim, "I2", "rank %u answers PAST to round %llu and has begun %lld", proc->rank,
                   U(number), (long long)proc->begun);
    proc->past_said = number;
}

/* I8: what is acknowledged was heard without a gap. I2: nobody says SAVED who trained on. */
void check_up(struct sim *sim, struct sim_proc *proc, const struct wire_msg *message)
{
    uint64_t applied = message->up.applied_seq;

    if (applied < proc->applied_said || applied > proc->heard_contiguous)
        sim_broken(sim, "I8",
                   "rank %u says it applied %llu; it said %llu, and heard all up to %llu",
                   proc->rank, U(applied), U(proc->applied_said), U(proc->heard_contiguous));
    proc->applied_said = applied;
    if (message->up.request > 0 && message->up.request <= proc->request_said)
        return; /* sent once more: true when it was said first */
    if (message->up.request > 0)
        proc->request_said = message->up.request;
    if (message->type == WIRE_REPORT && message->u.report.begun != proc->begun &&
        !message->u.report.aborted && message->u.report.begun > proc->begun)
        sim_broken(sim, "I2", "rank %u reports begun %lld, it is at %lld", proc->rank,
                   (long long)message->u.report.begun, (long long)proc->begun);
    if (message->type == WIRE_AT_STEP) {
        if (!stood_at(proc,
                      message->u.at_step.step)) /* perhaps some time ago: no broker was there */
            sim_broken(sim, "I2", "rank %u says that it is at step %lld: begun %lld, done %lld",
                       proc->rank, (long long)message->u.at_step.step, (long long)proc->begun,
                       (long long)proc->done);
        if (message->u.at_step.captured)
            proc->captured_said = message->u.at_step.round;
    }
    if (message->type == WIRE_PAST)
        check_past(sim, proc, message->u.past.round);
}

/* --- what is heard ---------------------------------------------------------------------------------------- */

static void advance(struct sim_proc *proc)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < proc->heard_count; i++) {
            if (proc->heard[i] > proc->heard_contiguous + 1)
                continue;
            if (proc->heard[i] == proc->heard_contiguous + 1)
                proc->heard_contiguous++;
            proc->heard[i] = proc->heard[--proc->heard_count];
            moved = true;
            break;
        }
    }
}

void check_heard(struct sim *sim, struct sim_proc *proc, const struct wire_msg *message)
{
    uint64_t seq = message->u.event.seq;

    (void)sim;
    if (message->type == WIRE_SNAPSHOT && message->u.snapshot.seq > proc->heard_contiguous)
        proc->heard_contiguous = message->u.snapshot.seq;
    if (message->type == WIRE_EVENT && seq == proc->heard_contiguous + 1)
        proc->heard_contiguous = seq;
    else if (message->type == WIRE_EVENT && seq > proc->heard_contiguous) {
        proc->heard = realloc(proc->heard, (proc->heard_count + 1) * sizeof *proc->heard);
        proc->heard[proc->heard_count++] = seq;
    }
    advance(proc);
}

/* --- what a process does ----------------------------------------------------------------------------------- */

/* The round, open by what is written, that names this process. */
static const struct record_round *round_naming(struct sim *sim, const struct sim_proc *proc)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];
    const char *name = sim->jobs[proc->job].name;

    for (size_t i = rounds->count; i-- > 0;) {
        const struct record_round *round = &rounds->rows[i].record.u.round;
        if ((round->state == ROUND_FREEZING || round->state == ROUND_DECIDED) &&
            strcmp(round->job, name) == 0 &&
            disk_member(sim, name, round->round, proc->incarnation) != NULL)
            return round;
    }
    return NULL;
}

/* Who writes nothing has captured by standing at S. */
static bool has_captured(struct sim *sim, const struct sim_proc *proc,
                         const struct record_round *round)
{
    const struct record_participant *part =
        disk_member(sim, sim->jobs[proc->job].name, round->round, proc->incarnation);

    if (round->state == ROUND_DECIDED && !part->writer && proc->done == round->step &&
        proc->begun == proc->done)
        return true;
    return proc->captured_round == round->round || proc->captured_said == round->round;
}

/* I2: a step beyond S is begun before the capture by nobody whose gate was closed for this round. A gate
 * that has never closed, or that was opened by check_open's leave, may be beyond. */
void check_begin(struct sim *sim, struct sim_proc *proc)
{
    const struct record_round *round = round_naming(sim, proc);

    if (proc->begun != proc->done + 1)
        sim_broken(sim, "I2", "rank %u begins step %lld after %lld", proc->rank,
                   (long long)proc->begun, (long long)proc->done);
    if (proc->view.mode == VIEW_END || (proc->closed && proc->view.mode != VIEW_STEP_TO) ||
        (proc->closed && proc->begun > proc->view.step))
        sim_broken(sim, "I2", "rank %u begins step %lld with its gate closed (round %llu, S %lld)",
                   proc->rank, (long long)proc->begun, U(proc->view.round),
                   (long long)proc->view.step);
    if (!proc->view.started)
        sim_broken(sim, "I9", "rank %u begins a step before all have restored", proc->rank);
    if (round == NULL || round->state != ROUND_DECIDED || proc->begun <= round->step ||
        has_captured(sim, proc, round))
        return;
    proc->beyond_round = round->round;
}

/* Without faults no boundary between two steps waits long: agreeing, a save, and no timeout. */
void check_waited(struct sim *sim, struct sim_proc *proc)
{
    int64_t waited = sim->now_us - proc->since_us;
    const struct sim_job *job = &sim->jobs[proc->job];

    if (sim->options.healthy && proc->state == THREAD_WAITING && proc->begun > proc->first_step &&
        waited > 1000000 + 2 * job->save_us + job->step_us)
        sim_broken(sim, "healthy",
                   "rank %u waited %lld ms at a boundary without any fault (done %lld)", proc->rank,
                   (long long)(waited / 1000), (long long)proc->done);
}

/* The gate is opened: is there a round that has a claim on this process? It thaws after 4 s (2 s when its
 * step was broken off); a captured one may go on. */
void check_open(struct sim *sim, struct sim_proc *proc)
{
    const struct record_round *round = round_naming(sim, proc);
    int64_t closed = sim->now_us - proc->closed_since_us;

    if (round == NULL || has_captured(sim, proc, round) || proc->past_said == round->round)
        return;
    sim->stats->thaws++;
    if (proc->view.round != round->round &&
        proc->applied_said < disk_job(sim, sim->jobs[proc->job].name)->seq)
        return; /* it has not heard of it yet: what it opens for is over */
    const struct record_participant *part =
        disk_member(sim, sim->jobs[proc->job].name, round->round, proc->incarnation);
    if (round->state == ROUND_DECIDED && part->captured_ms >= 0)
        return;
    if (closed < (round->aborted_steps ? THAW_ABORTED_US : THAW_US) - 1000)
        sim_broken(sim, "I2", "rank %u opens its gate %lld ms after closing while round %llu is %s",
                   proc->rank, (long long)(closed / 1000), U(round->round),
                   wire_round_state_name(round->state));
}

void check_restored(struct sim *sim, struct sim_proc *proc, uint64_t checkpoint,
                    const struct sim_shard *shard)
{
    const char *name = sim->jobs[proc->job].name;
    const struct record_generation *row = disk_generation(sim, name, proc->view.generation);

    if (row == NULL || checkpoint != row->resume_checkpoint)
        return; /* a fallback is on its way to it */
    if ((shard ? shard->done : 0) != row->resume_step)
        sim_broken(sim, "I9", "rank %u restored step %lld, generation %llu resumes from %lld",
                   proc->rank, (long long)(shard ? shard->done : 0), U(row->generation),
                   (long long)row->resume_step);
}

/* I10: whoever ends for another's error names the first. */
void check_end(struct sim *sim, struct sim_proc *proc)
{
    const char *name = sim->jobs[proc->job].name;
    const struct record_generation *row = disk_generation(sim, name, proc->view.generation);
    const struct member_view *view = &proc->view;

    if (view->mode == VIEW_END && view->end.status == MUSTER_E_PEER &&
        (row == NULL || row->error_rank != view->end.rank))
        sim_broken(
            sim, "I10", "rank %u ends for an error of rank %d, the first was rank %lld's (%s)",
            proc->rank, view->end.rank, (long long)(row ? row->error_rank : -1), view->end.text);
    if (view->mode == VIEW_END && view->end.status == MUSTER_OK)
        sim_broken(sim, "I10", "rank %u ends without a status", proc->rank);
}

/* --- liveness ---------------------------------------------------------------------------------------------- */

static void check_waits(struct sim *sim, const struct sim_proc *proc)
{
    int64_t from = proc->since_us > sim->calm_us ? proc->since_us : sim->calm_us;
    const struct member_view *view = &proc->view;
    const struct record_job *job = disk_job(sim, sim->jobs[proc->job].name);

    if (!proc->alive || proc->state == THREAD_STEP || sim->now_us - from < WAIT_LIMIT_US)
        return;
    sim_broken(sim, "I5",
               "rank %u %s for %lld s (view %d, round %llu, step %lld, begun %lld, done %lld; job "
               "generation %llu is %s)",
               proc->rank, thread_state_name(proc->state),
               (long long)((sim->now_us - from) / 1000000), (int)view->mode, U(view->round),
               (long long)view->step, (long long)proc->begun, (long long)proc->done,
               U(job ? job->generation : 0), job ? wire_generation_state_name(job->state) : "?");
}

void check_second(struct sim *sim, struct sim_event *event)
{
    (void)event;
    for (size_t i = 0; i < sim->procs_count && sim_is_calm(sim); i++)
        check_waits(sim, sim->procs[i]);
    if (sim->now_us > sim->limit_us) {
        const struct sim_job *job = &sim->jobs[0];
        for (size_t i = 0; i < sim->jobs_count; i++)
            if (!sim->jobs[i].finished)
                job = &sim->jobs[i];
        const struct sim_proc *proc = job->procs[0];
        sim_broken(sim, "liveness",
                   "%s has not finished %lld s after the faults stopped (rank 0 %s, done %lld "
                   "of %lld, launch %llu)",
                   job->name, (long long)((sim->now_us - sim->calm_us) / 1000000),
                   proc ? thread_state_name(proc->state) : "was never started",
                   (long long)(proc ? proc->done : -1), (long long)job->total[0], U(job->launch));
    }
    sim_after(sim, 1000000, check_second, NULL);
}

void check_over(struct sim *sim)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];

    if (!sim->over)
        sim_broken(sim, "liveness", "nothing is left to happen and the jobs have not finished");
    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *round = &rounds->rows[i].record.u.round;
        const struct record_job *job = disk_job(sim, round->job);
        if (round->state < ROUND_COMMITTED &&
            (job->state == GENERATION_ENDED || job->generation != round->generation))
            sim_broken(sim, "I5", "round %llu is %s though generation %llu is over",
                       U(round->round), wire_round_state_name(round->state), U(round->generation));
        if (sim->options.healthy && round->state == ROUND_ABORTED)
            sim_broken(sim, "healthy", "round %llu (%s) was aborted without any fault: %s",
                       U(round->round), wire_cause_name(round->cause), round->reason);
    }
    if (sim->options.healthy && sim->stats->not_saved > 0)
        sim_broken(sim, "healthy", "a termination was not saved without any fault");
}
