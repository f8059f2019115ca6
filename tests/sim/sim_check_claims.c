/* sim_check_claims - what rows and events say of themselves is true: that nothing new was to be
 * saved, who is to blame, which error was the first, that all have restored, whose shards a
 * checkpoint is made of. */
#include "tests/sim/sim_world.h"

#include <string.h>

#define U(x) ((unsigned long long)(x))
#define PROMISED_MAX_US 15000000 /* START_FREEZE_MS, and a while */
#define UNTOLD_MAX_US 10000000

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* --- unchanged -------------------------------------------------------------------------------- */

/* What the launch began from counts while it joins, and as long as nobody has decided to delete it.
 */
static bool is_on_disk(const struct sim *sim, const struct record_round *row)
{
    const struct sim_table *table = &sim->disk.tables[RECORD_CHECKPOINT];
    const struct record_generation *gen = disk_generation(sim, row->job, row->generation);
    const struct record_checkpoint *resume =
        gen != NULL ? disk_checkpoint(sim, row->job, gen->resume_checkpoint) : NULL;
    bool there = resume != NULL && disk_counts(sim, resume);

    if (gen != NULL && gen->resume_step == row->step &&
        (row->step == 0 || there || (resume != NULL && gen->state == GENERATION_JOINING)))
        return true;
    for (size_t i = 0; i < table->count; i++) {
        const struct record_checkpoint *at = &table->rows[i].record.u.checkpoint;
        if (at->step == row->step && same(at->job, row->job) && disk_counts(sim, at))
            return true;
    }
    return false;
}

/* A termination that ends `unchanged` lets everybody leave without a save: nobody may have done
 * more than is on disk (R5.5). */
static void check_unchanged(struct sim *sim, const struct record_round *row)
{
    const struct sim_table *parts = &sim->disk.tables[RECORD_PARTICIPANT];

    if (!is_on_disk(sim, row))
        sim_broken(sim, "unchanged", "round %llu ends unchanged at step %lld, which is on no disk",
                   U(row->round), (long long)row->step);
    for (size_t i = 0; i < parts->count; i++) {
        const struct record_participant *part = &parts->rows[i].record.u.participant;
        if (part->round == row->round && same(part->job, row->job) &&
            (row->aborted_steps ? part->done : part->begun) > row->step)
            sim_broken(sim, "unchanged",
                       "round %llu ends unchanged at step %lld, and rank %llu reported begun %lld, "
                       "done %lld",
                       U(row->round), (long long)row->step, U(part->rank), (long long)part->begun,
                       (long long)part->done);
    }
}

/* --- who is to blame -------------------------------------------------------------------------- */

static const struct record_participant *part_of_rank(const struct sim *sim, const char *job,
                                                     uint64_t round, int64_t rank)
{
    const struct record key = {
        .kind = RECORD_PARTICIPANT,
        .u.participant = {.job = job, .round = round, .rank = (uint64_t)rank}};
    const struct sim_row *row = table_find(&sim->disk.tables[RECORD_PARTICIPANT], &key);

    return row != NULL ? &row->record.u.participant : NULL;
}

static bool lacks_save(const struct record_participant *part)
{
    return part != NULL && (part->writer ? part->saved_ms < 0 : part->captured_ms < 0);
}

/* At the margin a round may wait for another's save of the same step. */
static bool lacks_any_save(const struct sim *sim, const struct record_round *row)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];

    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *other = &rounds->rows[i].record.u.round;
        if (other->state == ROUND_WRITING && same(other->job, row->job) &&
            lacks_save(part_of_rank(sim, row->job, other->round, row->culprit_rank)))
            return true;
    }
    return lacks_save(part_of_rank(sim, row->job, row->round, row->culprit_rank));
}

static bool node_is(const struct sim *sim, const struct record_round *row,
                    enum wire_node_state state)
{
    const struct sim_table *nodes = &sim->disk.tables[RECORD_NODE];

    for (size_t i = 0; i < nodes->count; i++) {
        const struct record_node *node = &nodes->rows[i].record.u.node;
        if ((int64_t)node->rank == row->culprit_rank && node->state == state &&
            node->generation == row->generation && same(node->job, row->job))
            return true;
    }
    return false;
}

static bool says(const struct record_round *row, enum sim_reason reason)
{
    return strstr(row->reason, sim_reason_words(reason)) != NULL;
}

static const struct sim_proc *proc_of(const struct sim *sim, const struct record_participant *part)
{
    for (size_t i = 0; part != NULL && i < sim->procs_count; i++)
        if (sim->procs[i]->incarnation == part->incarnation)
            return sim->procs[i];
    return NULL;
}

/* Who was a member itself left, or is lost: not another life of its rank. */
static bool is_gone(const struct sim *sim, const struct record_round *row,
                    const struct record_participant *part)
{
    const struct record_node *node =
        part != NULL ? disk_node(sim, row->job, part->incarnation) : NULL;

    if (says(row, REASON_FINISHED))
        return node != NULL && node->state == NODE_LEFT && node->leave_why == LEAVE_FINISHED;
    if (says(row, REASON_LEFT))
        return node != NULL && node->state == NODE_LEFT && node->leave_why != LEAVE_FINISHED;
    return node != NULL ? node->state == NODE_LOST : node_is(sim, row, NODE_LOST);
}

/* What it did itself: its save or step failed, or it had trained on. */
static bool did_it(const struct sim *sim, const struct record_round *row,
                   const struct record_participant *part)
{
    const struct sim_proc *proc = proc_of(sim, part);

    if (says(row, REASON_SAVE_FAILED))
        return part != NULL && part->writer && part->saved_ms < 0;
    if (proc != NULL && proc->lost_history)
        return true; /* said of a round that this number was before */
    if (says(row, REASON_PAST))
        return proc != NULL && proc->past_said >= row->round;
    return proc == NULL || proc->failed_step;
}

static bool is_blamed_rightly(const struct sim *sim, const struct record_round *row)
{
    const struct record_participant *part =
        part_of_rank(sim, row->job, row->round, row->culprit_rank);

    if (says(row, REASON_FREEZE) || says(row, REASON_MARGIN_REPORT))
        return part != NULL && part->reported_ms < 0;
    if (says(row, REASON_WAY))
        return part != NULL && part->at_step_ms < 0;
    if (says(row, REASON_SAVE_SLOW))
        return part != NULL && part->at_step_ms >= 0 && lacks_save(part);
    if (says(row, REASON_MARGIN_SAVE))
        return lacks_any_save(sim, row);
    if (says(row, REASON_LOST) || says(row, REASON_FINISHED) || says(row, REASON_LEFT))
        return is_gone(sim, row, part);
    if (says(row, REASON_SAVE_FAILED) || says(row, REASON_PAST) || says(row, REASON_FAILED))
        return did_it(sim, row, part);
    return true;
}

/* R5.14 */
static void check_culprit(struct sim *sim, const struct record_round *row)
{
    unsigned long long named;

    if (sscanf(row->reason, "rank %llu ", &named) == 1 && (int64_t)named != row->culprit_rank)
        sim_broken(sim, "culprit", "round %llu blames rank %lld and says: %s", U(row->round),
                   (long long)row->culprit_rank, row->reason);
    if (!is_blamed_rightly(sim, row))
        sim_broken(sim, "culprit", "round %llu blames rank %lld, which did its part: %s",
                   U(row->round), (long long)row->culprit_rank, row->reason);
}

/* --- how often -------------------------------------------------------------------------------- */

/* Those of its cause that came to nothing right before it, one after another, and it. */
static unsigned attempts_in_a_row(const struct sim *sim, const struct record_round *row)
{
    unsigned count = 1;

    for (uint64_t back = 1; back < row->round && back < row->attempt; back++) {
        const struct record_round *before = disk_round(sim, row->job, row->round - back);
        if (before == NULL || before->cause != row->cause || before->state != ROUND_ABORTED ||
            before->generation != row->generation || before->attempt != row->attempt - back)
            break;
        count++;
    }
    return count;
}

/* A cause gets three rounds; one that a termination joined, or that is owed still when its notice
 * was withdrawn, counts again from where that had come to (R5.14). */
static void check_attempts(struct sim *sim, const struct record_round *row)
{
    if (attempts_in_a_row(sim, row) > 3)
        sim_broken(sim, "I5", "round %llu is attempt %llu of its cause", U(row->round),
                   U(row->attempt));
    if (row->state == ROUND_ABORTED && row->reason_code == MUSTER_E_STORAGE && !row->final)
        sim_broken(sim, "I5", "round %llu was aborted by a full disk and is tried again",
                   U(row->round));
}

void claims_round(struct sim *sim, const struct record_round *row, const struct record_round *old)
{
    check_attempts(sim, row);
    if (old != NULL && old->state == row->state)
        return;
    if (row->state == ROUND_UNCHANGED)
        check_unchanged(sim, row);
    if (row->state == ROUND_ABORTED)
        check_culprit(sim, row);
}

/* --- a launch --------------------------------------------------------------------------------- */

/* I5: who leaves or is lost ends each round that needs it, so none is open when the last one has
 * gone. */
static void check_rounds_over(struct sim *sim, const struct record_generation *row)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];

    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *at = &rounds->rows[i].record.u.round;
        bool open =
            at->state == ROUND_FREEZING || at->state == ROUND_DECIDED || at->state == ROUND_WRITING;
        if (open && at->generation == row->generation && same(at->job, row->job))
            sim_broken(sim, "I5", "generation %llu of %s has ended, and its round %llu is %s",
                       U(row->generation), row->job, U(at->round),
                       wire_round_state_name(at->state));
    }
}

/* I10: the first error of a launch stays the first. */
void claims_generation(struct sim *sim, const struct record_generation *row,
                       const struct record_generation *old)
{
    const struct sim_broker *b = sim->broker;

    if (row->state == GENERATION_ENDING && old->state != GENERATION_ENDING)
        sim_job_named(sim, row->job)->ending_us =
            b->blocked || b->starting ? 0
                                      : b->passed_us; /* decided some time ago: not known when */
    if (row->state == GENERATION_ENDED && old->state != GENERATION_ENDED)
        check_rounds_over(sim, row);
    if (row->error_rank >= 0 && old->error_rank < 0) {
        sim_job_named(sim, row->job)->error_batch = sim->batches;
        suspects_blamed(sim, row);
    }
    if (old->error_rank >= 0 &&
        (row->error_rank != old->error_rank || !same(row->error_text, old->error_text)))
        sim_broken(sim, "I10", "the first error of generation %llu was rank %lld's, now %lld's",
                   U(row->generation), (long long)old->error_rank, (long long)row->error_rank);
}

/* I9: nobody joins a launch that runs. I6: nobody is fenced while its launch has time to end. */
void claims_node(struct sim *sim, const struct record_node *row, const struct record_node *old)
{
    const struct record_generation *gen = disk_generation(sim, row->job, row->generation);
    const struct sim_job *job = sim_job_named(sim, row->job);

    if (gen == NULL || !role_is_trainer(row->role) || is_of_lost_history(job, row->generation))
        return;
    if (old == NULL && gen->state == GENERATION_RUNNING)
        sim_broken(sim, "I9", "rank %llu joins generation %llu of %s, which runs", U(row->rank),
                   U(row->generation), row->job);
    if (row->state != NODE_FENCED || (old != NULL && old->state == NODE_FENCED))
        return;
    if (gen->state != GENERATION_ENDING ||
        (job->ending_us > 0 &&
         sim->broker->passed_us - job->ending_us < (ENDING_MS - 100) * 1000LL)) /* then written */
        sim_broken(sim, "I6", "rank %llu of generation %llu of %s, which is %s, is fenced",
                   U(row->rank), U(row->generation), row->job,
                   wire_generation_state_name(gen->state));
}

/* R3.3 */
static bool has_restored(const struct sim *sim, const struct record_event *row, uint64_t rank)
{
    const struct sim_table *nodes = &sim->disk.tables[RECORD_NODE];

    for (size_t i = 0; i < nodes->count; i++) {
        const struct record_node *node = &nodes->rows[i].record.u.node;
        if (node->rank == rank && role_is_trainer(node->role) &&
            node->generation == row->generation && same(node->job, row->job) &&
            (node->state == NODE_RESTORED ||
             (node->state == NODE_LEFT && node->leave_why == LEAVE_FINISHED)))
            return true;
    }
    return false;
}

/* I9: no first step before all have restored. (A launch that the database, restored from a copy,
 * did not know to have started is taken over as it is.) */
void claims_started(struct sim *sim, const struct record_event *row)
{
    const struct record_generation *gen = disk_generation(sim, row->job, row->generation);

    if (gen == NULL || is_of_lost_history(sim_job_named(sim, row->job), row->generation))
        return;
    for (uint64_t rank = 0; rank < gen->world_size; rank++)
        if (!has_restored(sim, row, rank))
            sim_broken(sim, "I9", "generation %llu of %s starts, and rank %llu has not restored",
                       U(row->generation), row->job, U(rank));
}

/* Of this process, or of another for its rank? */
static bool node_of(const struct sim *sim, const struct sim_proc *proc)
{
    const struct record_node *row = disk_node(sim, sim->jobs[proc->job].name, proc->incarnation);

    return row != NULL && row->state == NODE_LOST && proc->given_up_in == sim->batches;
}

/* For one that came later a freeze is planned again. */
static bool is_noticed(const struct sim *sim, const struct record_generation *gen,
                       const struct record_round *round)
{
    const struct sim_table *notices = &sim->disk.tables[RECORD_NOTICE];

    for (size_t i = 0; i < notices->count; i++) {
        const struct record_notice *row = &notices->rows[i].record.u.notice;
        if (row->generation == gen->generation && row->state == RECORD_NOTICE_ACTIVE &&
            row->round == round->round && same(row->job, gen->job))
            return true;
    }
    return false;
}

/* Silence is counted from the last frame that came. */
void claims_lost(struct sim *sim, const struct record_event *row)
{
    const struct sim_broker *b = sim->broker;

    if (strstr(row->body.text, "it was silent for") == NULL || b->blocked || b->starting)
        return; /* a batch that was kept for want of room was decided some time ago */
    for (size_t i = 0; i < sim->procs_count; i++) {
        const struct sim_proc *proc = sim->procs[i];
        if ((int64_t)proc->rank != row->body.rank || proc->view.generation != row->generation ||
            !role_is_trainer(proc->role) || strcmp(sim->jobs[proc->job].name, row->job) != 0)
            continue;
        if (node_of(sim, proc) && sim->now_us - proc->taken_us < (LOST_MS - 100) * 1000LL)
            sim_broken(sim, "I5", "rank %u was heard %lld ms ago, and is lost: %s", proc->rank,
                       (long long)(sim->now_us - proc->taken_us) / 1000, row->body.text);
    }
}

static bool has_notice(const struct sim *sim, const struct record_job *job)
{
    const struct sim_table *notices = &sim->disk.tables[RECORD_NOTICE];

    for (size_t i = 0; i < notices->count; i++) {
        const struct record_notice *row = &notices->rows[i].record.u.notice;
        if (row->state == RECORD_NOTICE_ACTIVE && row->generation == job->generation &&
            same(row->job, job->job))
            return true;
    }
    return false;
}

/* A policy's saves come and go beside the one that was promised. */
static bool is_policys(const struct record_round *row)
{
    return row->cause == CAUSE_POLICY || row->cause == CAUSE_PERIOD;
}

/* What `muster save` was answered with came to nothing, and so did all behind it, but none for
 * good: the last of them. (While there is a notice, that comes first. R9.4.) */
static const struct record_round *owed_save(const struct sim *sim, const struct record_job *job)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];
    const struct record_round *owed = disk_round(sim, job->job, job->save_now_round);

    if (owed == NULL || owed->generation != job->generation)
        return NULL;
    bool joined = is_policys(owed); /* it was open when the operator asked */
    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *at = &rounds->rows[i].record.u.round;
        if (!same(at->job, job->job) || at->round < job->save_now_round ||
            (is_policys(at) && !joined))
            continue;
        if (at->state != ROUND_ABORTED || at->final)
            return NULL;
        owed = at->round > owed->round ? at : owed;
    }
    return has_notice(sim, job) ? NULL : owed;
}

/* The last attempt came to nothing for now: an operator's comes again, a termination's as long as a
 * notice is there that it was frozen for. */
static const struct record_round *owed_last(const struct sim *sim,
                                            const struct record_generation *gen)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];
    const struct record_round *last = NULL;

    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *at = &rounds->rows[i].record.u.round;
        if (same(at->job, gen->job) && !is_policys(at) && (last == NULL || at->round > last->round))
            last = at;
    }
    if (last == NULL || last->state != ROUND_ABORTED || last->final ||
        last->generation != gen->generation)
        return NULL;
    bool termination = last->cause == CAUSE_TERMINATION && is_noticed(sim, gen, last);
    return termination || last->cause == CAUSE_OPERATOR ? last : NULL;
}

/* A save that was told to be tried again is. Where three are being written it waits for one of
 * them. */
void claims_promised(struct sim *sim, struct sim_job *job)
{
    const struct record_job *row = disk_job(sim, job->name);
    const struct record_generation *gen =
        row != NULL ? disk_generation(sim, job->name, row->generation) : NULL;
    const struct record_round *owed = NULL;

    if (gen != NULL && gen->state == GENERATION_RUNNING) {
        owed = owed_last(sim, gen);
        if (owed == NULL)
            owed = owed_save(sim, row);
    }
    job->promised_us = owed != NULL && job->open_round == 0 ? job->promised_us + 1000000 : 0;
    if (job->promised_us > PROMISED_MAX_US)
        sim_broken(sim, "I5", "round %llu of %s was to be tried again, and is not (%s, %s)",
                   U(owed->round), job->name, wire_cause_name(owed->cause), owed->reason);
}

/* --- a process -------------------------------------------------------------------------------- */

/* What a process was told while no broker was there, it tells the next one. */
void claims_noticed(struct sim *sim, struct sim_notice *notice)
{
    const struct sim_proc *proc = notice->proc;

    if (notice->told || notice->withdrawn || proc == NULL)
        return;
    notice->told = disk_notice(sim, notice->job, notice->id) != NULL;
    bool can = proc->alive && !proc->frozen && proc->route != 0 && proc->view.joined &&
               proc->view.mode != VIEW_END && !proc->leaving && !proc->lost_history;
    notice->untold_us = can && !notice->told ? notice->untold_us + 1000000 : 0;
    if (notice->untold_us > UNTOLD_MAX_US)
        sim_broken(sim, "notices", "notice %s of rank %u is not told in %lld s", notice->id,
                   proc->rank, (long long)(notice->untold_us / 1000000));
}

/* I12: who is told that its notice is withdrawn is not saved for by it. (Who has left is answered,
 * and takes part in nothing.) */
void claims_cancelled(struct sim *sim, const struct sim_proc *to, uint64_t request)
{
    const struct record_node *node = disk_node_of(sim, to);

    if (node != NULL && node->state == NODE_LEFT)
        return;
    for (size_t i = 0; i < sim->notices_count; i++) {
        const struct sim_notice *notice = &sim->notices[i];
        const struct record_notice *row = notice->proc == to && notice->cancel == request
                                              ? disk_notice(sim, notice->job, notice->id)
                                              : NULL;
        if (row != NULL && row->state == RECORD_NOTICE_ACTIVE && !to->lost_history)
            sim_broken(sim, "I12", "rank %u is told that notice %s is withdrawn, and it is active",
                       to->rank, notice->id);
    }
}

/* Its commit may be in no row any more. */
static bool is_committed_for(const struct sim *sim, const struct sim_proc *proc)
{
    const struct record_round *round = disk_round(sim, sim->jobs[proc->job].name, proc->view.round);
    bool committed = proc->lost_history || (round != NULL && round->state == ROUND_COMMITTED);

    return committed && proc->view.termination && proc->view.mode == VIEW_WAIT;
}

/* At the margin it leaves, broker or not, and whatever its training thread does; who stood still
 * then at the deadline. */
void claims_leaves(struct sim *sim, const struct sim_notice *notice)
{
    const struct sim_proc *proc = notice->proc;

    if (!notice->ends || proc->frozen || proc->leaving || proc->view.mode == VIEW_END ||
        notice->left_ms < LEAST_LEAD_MS + 2 * MARGIN_MS || is_committed_for(sim, proc))
        return;
    sim_broken(sim, "I5", "rank %u has not begun to leave %lld ms before the deadline of notice %s",
               proc->rank, (long long)(notice->left_ms - (sim->now_us - notice->at_us) / 1000),
               notice->id);
}

/* What a process knows of the saves that it took part in. */
void claims_outcomes(struct sim *sim, const struct sim_proc *proc)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX && !proc->lost_history; i++) {
        const struct member_outcome *at = &proc->view.outcomes[i];
        const struct record_round *round =
            at->round != 0 ? disk_round(sim, sim->jobs[proc->job].name, at->round) : NULL;
        bool saved =
            round != NULL && (round->state == ROUND_COMMITTED || round->state == ROUND_UNCHANGED);
        bool aborted = round != NULL && round->state == ROUND_ABORTED;

        if (at->round == 0)
            continue;
        if ((at->state == OUTCOME_COMMITTED && !saved) ||
            (at->state == OUTCOME_ABORTED && !aborted))
            sim_broken(sim, "verdict", "rank %u takes round %llu for %s, it is %s", proc->rank,
                       U(at->round), at->state == OUTCOME_COMMITTED ? "committed" : "aborted",
                       round != NULL ? wire_round_state_name(round->state) : "unknown");
    }
}

/* --- a round that follows an error ------------------------------------------------------------ */

/* An error, the abort of the save that needed its rank, and the freeze of a termination, told as
 * one. */
void claims_follows(struct sim *sim, const struct record_event *row)
{
    struct sim_job *job = sim_job_named(sim, row->job);
    const struct wire_event *event = &row->body;
    bool error = event->kind == EVENT_PEER_ERROR || event->kind == EVENT_NODE_LOST;

    if (error && (event->flags & EVENT_FLAG_ROUND_FOLLOWS) != 0) {
        job->announced_batch = sim->batches;
        job->announced_us = sim->broker->blocked || sim->broker->starting ? 0 : sim->now_us;
    }
    if (event->kind != EVENT_FREEZE || (event->flags & EVENT_FLAG_ABORT) == 0 ||
        job->announced_batch != sim->batches)
        return;
    job->follows_round = event->round;
    job->follows_seq = row->seq;
}

/* Who has heard all before that freeze is there for it: nobody thaws as soon as this. */
void claims_ends(struct sim *sim, const struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    const struct record_round *round = disk_round(sim, job->name, job->follows_round);
    bool first = job->error_batch == job->announced_batch;

    if (proc->view.end.status != MUSTER_E_PEER || proc->lost_history || round == NULL ||
        !disk_asks(sim, job->name, round, proc) || proc->reported_round == round->round ||
        round->state != ROUND_FREEZING || !first || proc->heard_contiguous + 1 < job->follows_seq)
        return;
    if (sim->now_us - job->announced_us < (FREEZE_MS - 100) * 1000LL)
        sim_broken(sim, "I10", "rank %u ends for an error, and not for the round %llu that follows",
                   proc->rank, U(round->round));
}

/* --- a checkpoint ----------------------------------------------------------------------------- */

static uint64_t files_of(const struct sim *sim, const struct record_checkpoint *row, uint64_t rank)
{
    const struct sim_table *files = &sim->disk.tables[RECORD_FILE];
    uint64_t count = 0;

    for (size_t i = 0; i < files->count; i++) {
        const struct record_file *file = &files->rows[i].record.u.file;
        count += file->round == row->round && file->rank == rank && same(file->job, row->job);
    }
    return count;
}

/* I1 in rows: each writer's shard, by the decided process, with all its files. From them the
 * manifest is made. */
void claims_committed(struct sim *sim, const struct record_checkpoint *row)
{
    uint64_t shards = 0;

    for (uint64_t rank = 0; rank < row->world_size; rank++) {
        const struct record_participant *part =
            part_of_rank(sim, row->job, row->round, (int64_t)rank);
        const struct record key = {.kind = RECORD_SHARD,
                                   .u.shard = {.job = row->job, .round = row->round, .rank = rank}};
        const struct sim_row *found = table_find(&sim->disk.tables[RECORD_SHARD], &key);
        const struct record_shard *shard = found != NULL ? &found->record.u.shard : NULL;

        if (part != NULL && !part->writer && shards == 0)
            sim_broken(sim, "I1", "checkpoint %llu commits, and rank %llu was not its writer",
                       U(row->round), U(rank)); /* the lowest that reported */
        if (part == NULL || !part->writer)
            continue;
        shards++;
        if (shard == NULL || shard->incarnation != part->incarnation)
            sim_broken(sim, "I1", "checkpoint %llu commits, and the shard of rank %llu has no row",
                       U(row->round), U(rank));
        else if (files_of(sim, row, rank) != shard->files)
            sim_broken(sim, "I1",
                       "checkpoint %llu commits with %llu of %llu files of rank %llu in its rows",
                       U(row->round), U(files_of(sim, row, rank)), U(shard->files), U(rank));
    }
    if (shards != row->shards_required)
        sim_broken(sim, "I1", "checkpoint %llu commits with %llu writers of %llu", U(row->round),
                   U(shards), U(row->shards_required));
}
