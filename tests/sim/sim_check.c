/* sim_check - the invariants of PROTOCOL.md, held against everything that happens.
 * What is written is checked against what was written before and against what the shards really
 * hold; what is sent, against what is written; what a process does, against the rounds that name
 * it. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))
#define HELLO_WAY_US 1000000 /* the longest between its writing and the row */

static struct sim_job *job_of(struct sim *sim, const char *name)
{
    struct sim_job *job = sim_job_named(sim, name);

    if (job == NULL)
        sim_broken(sim, "rows", "a row of job '%s', which does not exist", name);
    return job;
}

/* --- what is written -------------------------------------------------------------------------- */

static void check_job(struct sim *sim, const struct record_job *row)
{
    const struct record_job *old = disk_job(sim, row->job);

    if (old == NULL)
        return;
    if (row->seq < old->seq || row->round < old->round || row->generation < old->generation)
        sim_broken(sim, "I6", "job %s goes back: seq %llu to %llu, round %llu to %llu", row->job,
                   U(old->seq), U(row->seq), U(old->round), U(row->round));
}

static void do_again(struct sim_job *job, int64_t from)
{
    for (unsigned rank = 0; rank < job->nodes; rank++)
        job->furthest[rank] = from;
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

static bool opens_anew(struct sim *sim, const struct record_generation *row)
{
    const struct sim_job *job = job_of(sim, row->job);

    return sim->lost_history && job != NULL && !is_of_lost_history(job, row->generation);
}

/* I9: the newest checkpoint that counts. */
static void check_generation(struct sim *sim, const struct record_generation *row)
{
    const struct record_generation *old = disk_generation(sim, row->job, row->generation);
    const struct record_checkpoint *newest = disk_newest(sim, row->job);

    if (old != NULL && strcmp(old->end_text, FOUND_ON_DISK) == 0)
        old = NULL; /* that it was is all that was known of it */
    if (old != NULL) {
        if (old->state > row->state)
            sim_broken(sim, "I6", "generation %llu of %s goes back from %s to %s",
                       U(row->generation), row->job, wire_generation_state_name(old->state),
                       wire_generation_state_name(row->state));
        if (old->resume_checkpoint != row->resume_checkpoint && old->state != GENERATION_JOINING)
            sim_broken(sim, "I9", "generation %llu of %s changes its resume choice while %s",
                       U(row->generation), row->job, wire_generation_state_name(old->state));
        claims_generation(sim, row, old);
        return;
    }
    if (strcmp(row->end_text, FOUND_ON_DISK) == 0)
        return; /* imported */
    sim->stats->generations++;
    job_of(sim, row->job)->opened_generation = row->generation;
    if (opens_anew(sim, row)) {
        sim->stats->launches_anew++;
        if (is_of_lost_history(job_of(sim, row->job), row->generation - 1))
            do_again(job_of(sim, row->job), row->resume_step);
    }
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

static void count_reason(struct sim *sim, const char *text)
{
    for (unsigned i = 0; i < REASON_COUNT; i++) {
        if (strstr(text, sim_reason_words(i)) == NULL)
            continue;
        sim->stats->reasons[i]++;
        return;
    }
    sim_broken(sim, "rows", "a round was aborted for a reason that is not listed: %s", text);
}

static void count_event(struct sim *sim, const struct wire_event *event)
{
    struct sim_stats *s = sim->stats;

    grace_observe(sim, event);
    if (event->kind < EVENT_KIND_COUNT)
        s->emitted[event->kind]++;
    if (event->kind == EVENT_COMMIT) {
        s->commits++;
        s->commits_of[event->cause]++;
    } else if (event->kind == EVENT_ABORT) {
        s->aborts++;
        if (event->code < SIM_REASONS_MAX)
            s->aborts_by[event->code]++;
        count_reason(sim, event->text);
    } else if (event->kind == EVENT_UNCHANGED)
        s->unchanged++;
    else if (event->kind == EVENT_NOT_SAVED)
        s->not_saved++;
    else if (event->kind == EVENT_SAVE_SKIPPED)
        s->skipped++;
}

/* A database that was restored from a copy leaves out what its nodes say that they know, and one
 * number more. */
static bool is_jumped_over(const struct sim *sim, const struct record_event *row)
{
    uint64_t said = 0;

    for (size_t i = 0; i < sim->procs_count; i++) {
        const struct sim_proc *proc = sim->procs[i];
        if (proc->lost_history && proc->applied_said > said &&
            strcmp(sim->jobs[proc->job].name, row->job) == 0)
            said = proc->applied_said;
    }
    return said > 0 && row->seq <= said + 2;
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
        sim->journal_max == 0 && !is_jumped_over(sim, row))
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
    if (row->body.kind == EVENT_STARTED)
        claims_started(sim, row);
    if (row->body.kind == EVENT_NODE_LOST)
        claims_lost(sim, row);
    if (row->body.kind == EVENT_STUCK)
        job_told_stuck(sim, row);
    claims_follows(sim, row);
    count_event(sim, &row->body);
}

static void count_plan(struct sim *sim, const char *plan)
{
    unsigned why = 0;

    while (why < PLANNED_COUNT && strstr(plan, sim_plan_words(why)) == NULL)
        why++;
    if (why < PLANNED_COUNT)
        sim->stats->plans[why]++;
    else
        sim_broken(sim, "words", "a plan of words that nobody knows: %s", plan);
}

/* Its manifest is written behind a commit alone: a database that was restored to a time before that
 * had it aborted, or gave its number to one that left nothing. */
static bool is_found_again(struct sim *sim, const struct record_round *old,
                           const struct record_round *row)
{
    bool same = row->generation == old->generation && row->step == old->step;

    return strcmp(row->reason, FOUND_ON_DISK) == 0 && row->state == ROUND_COMMITTED &&
           (old->state == ROUND_UNCHANGED ||
            (old->state == ROUND_ABORTED && (same || old->step < 0))) &&
           is_of_lost_history(job_of(sim, row->job), row->generation);
}

/* I2: a rank that captured for a termination leaves at S, and waits in no later step. */
static void check_leaves_together(struct sim *sim, const struct record_round *row)
{
    const struct sim_job *job = sim_job_named(sim, row->job);

    if (row->state != ROUND_COMMITTED || row->cause != CAUSE_TERMINATION ||
        job->late_round == row->round)
        return;
    for (size_t i = 0; i < sim->procs_count; i++) {
        const struct sim_proc *proc = sim->procs[i];
        bool captured = proc->captured_round == row->round || proc->captured_said == row->round;
        if (proc->job == job->index && proc->alive && captured && proc->begun > row->step &&
            disk_member(sim, row->job, row->round, proc->incarnation) != NULL)
            sim_broken(sim, "I2",
                       "round %llu of a termination is committed at step %lld, and its rank %u has "
                       "captured that and begun %lld",
                       U(row->round), (long long)row->step, proc->rank, (long long)proc->begun);
    }
}

static void check_round(struct sim *sim, const struct record_round *row)
{
    const struct record_round *old = disk_round(sim, row->job, row->round);
    const struct record_job *job = disk_job(sim, row->job);
    enum wire_round_state from = old != NULL ? old->state : ROUND_NONE;

    if (row->plan[0] != '\0' && (old == NULL || strcmp(old->plan, row->plan) != 0))
        count_plan(sim, row->plan);
    if (strcmp(row->reason, FOUND_ON_DISK) == 0 && (old == NULL || is_found_again(sim, old, row)))
        return; /* imported */
    if (from != row->state)
        sim->stats->moves[from][row->state]++;
    if (row->state == ROUND_DECIDED && from != ROUND_DECIDED)
        sim_job_named(sim, row->job)->keeps.save_begun_unix_ms = row->decided_unix_ms;
    if (old == NULL && row->cause == CAUSE_PERIOD)
        check_period(sim, row);
    claims_round(sim, row, old);
    if (old == NULL) {
        sim->stats->rounds++;
        if (job != NULL && row->generation < job->generation && row->state != ROUND_ABORTED)
            sim_broken(sim, "I6", "round %llu is opened for generation %llu, the newest is %llu",
                       U(row->round), U(row->generation), U(job->generation));
        return;
    }
    if (row->state != old->state)
        check_leaves_together(sim, row);
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

    bool decided =
        old != NULL && old->state == CHECKPOINT_COMMITTED && row->state == CHECKPOINT_DELETING;
    if (decided && disk_counts(sim, old))
        check_deletion(sim, old);
    else if (decided)
        check_left_behind(sim, old);
    else if (row->state == CHECKPOINT_DELETED)
        check_deleted(sim, row);
    else if (old != NULL && old->state == CHECKPOINT_COMMITTED &&
             row->state != CHECKPOINT_COMMITTED)
        sim_broken(sim, "I11", "checkpoint %llu was committed and is %s now", U(row->round),
                   wire_checkpoint_state_name(row->state));
    if (old != NULL && old->state > CHECKPOINT_COMMITTED && row->state <= CHECKPOINT_COMMITTED &&
        !(old->state == CHECKPOINT_FAILED && check_is_imported(sim, row->job, row->round)))
        sim_broken(sim, "I6", "checkpoint %llu was %s and is %s now", U(row->round),
                   wire_checkpoint_state_name(old->state), wire_checkpoint_state_name(row->state));
    if (row->state != CHECKPOINT_COMMITTED || (old != NULL && old->state == CHECKPOINT_COMMITTED) ||
        check_is_imported(sim, row->job, row->round))
        return;
    if (round == NULL || round->step != row->step || round->generation != row->generation)
        sim_broken(sim, "I1", "checkpoint %llu does not fit its round", U(row->round));
    claims_committed(sim, row);
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

    if (check_is_imported(sim, row->job, row->round))
        return;
    if (part == NULL || part->rank != row->rank)
        sim_broken(sim, "I1",
                   "a shard of rank %llu is taken into round %llu from a process that was not "
                   "decided",
                   U(row->rank), U(row->round));
    if (round == NULL || job == NULL || round->generation != job->generation)
        sim_broken(sim, "I6", "a shard of an old generation is taken into round %llu",
                   U(row->round));
}

static bool was_in(struct sim *sim, const struct record_node *row, uint64_t generation)
{
    const struct sim_table *nodes = &sim->disk.tables[RECORD_NODE];

    for (size_t i = 0; i < nodes->count; i++) {
        const struct record_node *node = &nodes->rows[i].record.u.node;
        if (strcmp(node->job, row->job) == 0 && node->generation == generation &&
            node->rank == row->rank && role_is_trainer(node->role))
            return true;
    }
    return false;
}

/* Nobody opens a generation for a launch that has ended as terminated: its other ranks have left. A
 * HELLO that was long on its way tells of a younger process. One that was welcomed opens none: a
 * database restored from a copy takes its launch over. Once the wall clock has jumped the times
 * cannot be compared. */
static void check_opener(struct sim *sim, const struct record_node *row,
                         const struct sim_proc *proc)
{
    const struct record_generation *gen = disk_generation(sim, row->job, row->generation - 1);
    int64_t created_unix_ms = broker_unix_ms(sim) - (sim->now_us - proc->created_us) / 1000;

    if (gen == NULL || sim->wall_offset_ms != 0 || gen->started_unix_ms > 0 ||
        gen->error_rank >= 0 ||
        (gen->end_status != MUSTER_PREEMPTED && gen->end_status != MUSTER_E_NOT_SAVED) ||
        row->rank >= gen->world_size || was_in(sim, row, row->generation - 1) ||
        proc->hello_way_us > HELLO_WAY_US || proc->view.generation > 0)
        return;
    if (created_unix_ms + HELLO_WAY_US / 1000 < gen->ending_unix_ms)
        sim_broken(sim, "late",
                   "rank %llu of a launch that ended as terminated opens generation %llu, %lld ms "
                   "after that",
                   U(row->rank), U(row->generation),
                   (long long)(broker_unix_ms(sim) - gen->ending_unix_ms));
}

bool node_is_given_up(const struct record_node *row)
{
    return row->state == NODE_LOST || row->state == NODE_FENCED;
}

/* Requests are taken once each, in order: never more than were made. */
static void check_node(struct sim *sim, const struct record_node *row)
{
    const struct record_node *old = disk_node(sim, row->job, row->incarnation);

    if (old != NULL && row->generation > old->generation)
        old = NULL; /* its WELCOME was lost, and a later generation let it in */
    claims_node(sim, row, old);
    if (old != NULL && (row->last_request < old->last_request || row->state < old->state))
        if (row->last_request < old->last_request || old->state != NODE_RESTORED)
            sim_broken(sim, "I12", "rank %llu's row goes back: request %llu to %llu, %s to %s",
                       U(row->rank), U(old->last_request), U(row->last_request),
                       wire_node_state_name(old->state), wire_node_state_name(row->state));
    for (size_t i = sim->procs_count; i-- > 0;) {
        struct sim_proc *proc = sim->procs[i];
        if (proc->incarnation != row->incarnation)
            continue;
        if (disk_node(sim, row->job, row->incarnation) == NULL && role_is_trainer(row->role) &&
            job_of(sim, row->job)->opened_generation == row->generation) {
            job_of(sim, row->job)->opened_generation = 0;
            check_opener(sim, row, proc);
        }
        if (node_is_given_up(row) && (old == NULL || !node_is_given_up(old)))
            proc->given_up_in = sim->batches;
        bool counted =
            !(sim->options.shared && proc->lost_history); /* else by a broker that lived */
        if (counted && row->last_request > proc->request_said)
            sim_broken(sim, "I12", "request %llu of rank %llu is taken, it made %llu",
                       U(row->last_request), U(row->rank), U(proc->request_said));
    }
}

void check_row(struct sim *sim, const struct record *r)
{
    switch (r->kind) {
    case RECORD_BROKER:
        if (r->u.broker.epoch <= sim->broker->epoch)
            sim_broken(sim, "I6", "broker epoch %llu after %llu", U(r->u.broker.epoch),
                       U(sim->broker->epoch));
        sim->broker->epoch = r->u.broker.epoch;
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

/* --- after a transaction ---------------------------------------------------------------------- */

static void check_shard_of(struct sim *sim, const struct sim_job *job,
                           const struct record_checkpoint *row,
                           const struct record_participant *part)
{
    const struct sim_shard *shard =
        fs_shard_of(sim, job->index, row->generation, row->round, part->incarnation);

    /* Its abort was lost with the end of a log, and only the host of that broker could know
     * (R10.4): nothing is promised from here on. */
    if (sim->options.shared && shard != NULL && shard->deleted &&
        is_of_lost_history(job, row->generation)) {
        SIM_TELL(sim, "OVER: checkpoint %llu was given up in a history that is lost",
                 U(row->round));
        sim->over = true;
        return;
    }
    if (shard == NULL || !shard->complete || shard->deleted)
        sim_broken(sim, "I1", "checkpoint %llu is committed, rank %llu's shard is not there whole",
                   U(row->round), U(part->rank));
    else if (shard->rank != part->rank || shard->done != row->step || shard->begun != row->step)
        sim_broken(sim, "I1",
                   "checkpoint %llu of step %lld has rank %llu's shard of step %lld (begun %lld)",
                   U(row->round), (long long)row->step, U(part->rank), (long long)shard->done,
                   (long long)shard->begun);
}

/* Deleted, and the database was restored from a copy that does not know. */
static bool is_gone(struct sim *sim, const struct sim_job *job, const struct record_checkpoint *row)
{
    return job != NULL && is_of_lost_history(job, row->generation) &&
           fs_dir(sim, job->index, row->generation, row->round)->out;
}

static void check_committed(struct sim *sim, const struct record_checkpoint *row)
{
    const struct sim_job *job = job_of(sim, row->job);
    struct record key = {.kind = RECORD_PARTICIPANT,
                         .u.participant = {.job = row->job, .round = row->round}};
    size_t writers = 0;

    if (sim->keeps && (check_is_imported(sim, row->job, row->round) || is_gone(sim, job, row)))
        return;
    for (unsigned rank = 0; rank < SIM_SLOTS_MAX && job != NULL; rank++) {
        key.u.participant.rank = rank;
        const struct sim_row *part = table_find(&sim->disk.tables[RECORD_PARTICIPANT], &key);
        if (part == NULL || !part->record.u.participant.writer)
            continue;
        writers++;
        check_shard_of(sim, job, row, &part->record.u.participant);
    }
    if (job != NULL && writers != (row->layout == LAYOUT_SHARDED ? job->nodes : 1))
        sim_broken(sim, "I1", "checkpoint %llu has %zu writers", U(row->round), writers);
}

static void check_rounds(struct sim *sim)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];

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
        if (open > 1 || active > ROUNDS_ACTIVE_MAX) /* R5.2 */
            sim_broken(sim, "I7", "%u rounds of %s are open, %u active", open, sim->jobs[j].name,
                       active);
    }
}

void check_batch(struct sim *sim)
{
    const struct sim_table *checkpoints = &sim->disk.tables[RECORD_CHECKPOINT];

    if (sim->unchecked_rounds)
        check_rounds(sim);
    sim->unchecked_rounds = false;
    for (size_t i = 0; i < checkpoints->count && sim->unchecked; i++)
        if (checkpoints->rows[i].record.u.checkpoint.state == CHECKPOINT_COMMITTED)
            check_committed(sim, &checkpoints->rows[i].record.u.checkpoint);
    sim->unchecked = false;
}
