/* sim_check_life - what processes do, how long they wait, what came of the notices. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))
#define THAW_US (THAW_MS * 1000LL)
#define THAW_ABORTED_US (FREEZE_MS * 1000LL)
#define SECOND_US 1000000LL
#define WAIT_LIMIT_US (30 * SECOND_US)
#define LONGEST_STEP 8 /* a slow one in a hold, in step_us */
#define UNTOLD_MAX_US (10 * SECOND_US)
#define OPEN_LIMIT_US (60 * SECOND_US)

/* --- what a process does ---------------------------------------------------------------------- */

/* The round, open by what is written, that names this process. */
static const struct record_round *round_naming(struct sim *sim, const struct sim_proc *proc)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];
    const char *name = sim->jobs[proc->job].name;

    for (size_t i = rounds->count; i-- > 0;) {
        const struct record_round *round = &rounds->rows[i].record.u.round;
        if ((round->state == ROUND_FREEZING || round->state == ROUND_DECIDED) &&
            strcmp(round->job, name) == 0 && disk_asks(sim, name, round, proc))
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

/* I2: a step beyond S is begun before the capture by nobody whose gate was closed for this round. A
 * gate that has never closed, or that was opened by check_open's leave, may be beyond. */
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
    if (proc->lost_history && proc->view.step != round->step)
        return; /* its round of this number was another, which is lost */
    if (proc->closed && proc->view.round == round->round)
        sim_broken(
            sim, "I2",
            "rank %u begins step %lld beyond the step %lld of round %llu, for which its gate "
            "was closed, and has not captured",
            proc->rank, (long long)proc->begun, (long long)round->step, U(round->round));
}

/* Without faults no boundary between two steps waits long: agreeing, a save, and no timeout. */
void check_waited(struct sim *sim, struct sim_proc *proc)
{
    int64_t waited = sim->now_us - proc->since_us;
    const struct sim_job *job = &sim->jobs[proc->job];

    if (sim->options.healthy && sim->options.grace == NULL && proc->state == THREAD_WAITING &&
        proc->begun > proc->first_step && waited > 1000000 + 2 * job->save_us + job->step_us)
        sim_broken(sim, "healthy",
                   "rank %u waited %lld ms at a boundary without any fault (done %lld)", proc->rank,
                   (long long)(waited / 1000), (long long)proc->done);
}

/* The gate is opened: is there a round that has a claim on this process? It thaws after 4 s (2 s
 * when its step was broken off); a captured one may go on. */
void check_open(struct sim *sim, struct sim_proc *proc)
{
    const struct record_round *round = round_naming(sim, proc);
    int64_t closed = sim->now_us - proc->closed_since_us;

    if (round == NULL || has_captured(sim, proc, round) || proc->past_said == round->round)
        return;
    sim->stats->thaws++;
    if (proc->lost_history || (proc->view.round != round->round &&
                               proc->applied_said < disk_job(sim, sim->jobs[proc->job].name)->seq))
        return; /* it has not heard of it yet: what it opens for is over */
    const struct record_participant *part =
        disk_member(sim, sim->jobs[proc->job].name, round->round, proc->incarnation);
    if ((round->state == ROUND_DECIDED && part->captured_ms >= 0) ||
        proc->thawed_round == round->round)
        return;
    proc->thawed_round = round->round;
    if (closed < (round->aborted_steps ? THAW_ABORTED_US : THAW_US) - 1000)
        sim_broken(sim, "I2", "rank %u opens its gate %lld ms after closing while round %llu is %s",
                   proc->rank, (long long)(closed / 1000), U(round->round),
                   wire_round_state_name(round->state));
}

/* Who has captured for a termination waits as long as the broker says that it does, and two
 * minutes. */
void check_held(struct sim *sim, struct sim_proc *proc, const struct member_view *former)
{
    const struct record_round *round =
        disk_round(sim, sim->jobs[proc->job].name, proc->awaited_round);
    int64_t silent = sim->now_us - proc->awaited_us;

    if (former->mode == VIEW_WAIT && former->termination && former->round == proc->awaited_round &&
        round != NULL && round->state == ROUND_DECIDED && former->step == round->step &&
        proc->done == round->step && has_captured(sim, proc, round) && !proc->lost_history &&
        silent < STUCK_MS * 2000LL)
        sim_broken(sim, "I5",
                   "rank %u trains on %lld ms after the broker said that round %llu is awaited",
                   proc->rank, (long long)(silent / 1000), U(round->round));
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
    if (role_is_trainer(proc->role) && proc->rank == 0 &&
        import_is_newer(sim, &sim->jobs[proc->job], shard != NULL ? shard->done : -1))
        sim_broken(sim, "R11.6", "%s goes on from step %lld, and newer ones are on disk", name,
                   (long long)row->resume_step);
}

/* I10: whoever ends for another's error names the first. */
void check_end(struct sim *sim, struct sim_proc *proc)
{
    const char *name = sim->jobs[proc->job].name;
    const struct record_generation *row = disk_generation(sim, name, proc->end_generation);
    const struct member_view *view = &proc->view;

    if (view->mode == VIEW_END && view->end.status == MUSTER_E_PEER && !proc->lost_history &&
        (row == NULL || row->error_rank != view->end.rank))
        sim_broken(
            sim, "I10", "rank %u ends for an error of rank %d, the first was rank %lld's (%s)",
            proc->rank, view->end.rank, (long long)(row ? row->error_rank : -1), view->end.text);
    if (view->mode == VIEW_END && view->end.status == MUSTER_OK)
        sim_broken(sim, "I10", "rank %u ends without a status", proc->rank);
}

/* --- liveness --------------------------------------------------------------------------------- */

/* The user's own code takes as long as it takes: a step, a save, a restore. A step that waits for
 * its peers is no such thing. */
bool runs_user_code(const struct sim_proc *proc)
{
    return proc->alive && !proc->frozen &&
           (proc->behind_round != 0 || proc->state == THREAD_SAVING ||
            proc->state == THREAD_RESTORING || proc->state == THREAD_SUSPECTING ||
            (proc->state == THREAD_STEP && proc->released));
}

/* A step that on_error did not end: after the abort timeout its process is ended. */
bool is_to_be_ended(const struct sim *sim, const struct sim_proc *proc)
{
    int64_t timeout_us = sim->jobs[proc->job].abort_timeout_ms * 1000;

    return proc->alive && proc->state == THREAD_STEP && proc->deaf_since_us >= proc->since_us &&
           sim->now_us < proc->deaf_since_us + timeout_us + SECOND_US;
}

/* No member, but the members' step does not end before it has begun it, too. */
static bool holds_a_step_up(const struct sim_job *job, const struct sim_proc *proc)
{
    return !job->async && proc->state == THREAD_STEP && proc->view.started;
}

/* The job's decided round waits for a member that is on its way to S or saves. Everybody at S waits
 * with it. The way is max(60 s, ...) for each step (PROTOCOL.md, bounds): longer than WAIT_LIMIT_US
 * by contract; but each such wait ends with that member's steps up to S and its save. */
static bool somebody_comes(struct sim *sim, const struct sim_job *job)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];

    for (size_t i = rounds->count; i-- > 0;) {
        const struct record_round *round = &rounds->rows[i].record.u.round;
        if ((round->state != ROUND_DECIDED && round->state != ROUND_WRITING) ||
            strcmp(round->job, job->name) != 0)
            continue;
        for (unsigned rank = 0; rank < job->nodes; rank++)
            for (const struct sim_proc *proc = job->procs[rank]; proc; proc = proc->older)
                if ((runs_user_code(proc) || is_to_be_ended(sim, proc)) &&
                    (proc->begun <= round->step || proc->behind_round == round->round) &&
                    (disk_member(sim, job->name, round->round, proc->incarnation) != NULL ||
                     holds_a_step_up(job, proc)))
                    return true;
    }
    return false;
}

/* A shard that was told to a database that is lost is awaited for the bound of the way to S (three
 * of the longest steps that a world has, one way) or of a save. */
static int64_t round_limit_us(const struct sim *sim, const struct sim_job *of)
{
    const struct record_job *row = disk_job(sim, of->name);
    bool lost = row != NULL && is_of_lost_history(of, row->generation);
    int64_t limit = STUCK_MS * 1000LL;

    for (size_t i = 0; i < sim->jobs_count; i++)
        if (LONGEST_STEP * 3 * sim->jobs[i].step_us > limit)
            limit = LONGEST_STEP * 3 * sim->jobs[i].step_us;
    return lost ? limit : WAIT_LIMIT_US;
}

/* WAIT_LIMIT_US is the convergence that is asked for after the faults. By contract two waits may be
 * longer: open() says HELLO again for 60 s while it is told "again" (an ending generation still
 * saves, a rank is held), and before the first step the ranks that are missing are awaited for the
 * job's join timeout, which the node itself ends LOST_MS later when no broker did. */
static int64_t wait_limit_us(const struct sim *sim, const struct sim_job *job,
                             const struct sim_proc *proc)
{
    int64_t joining = (job->join_timeout_ms + LOST_MS) * 1000;

    if (proc->state == THREAD_JOINING)
        return OPEN_LIMIT_US;
    if (!proc->view.started && joining > WAIT_LIMIT_US)
        return joining;
    return round_limit_us(sim, job);
}

static void check_waits(struct sim *sim, struct sim_proc *proc)
{
    const struct sim_job *sim_job = &sim->jobs[proc->job];
    const struct member_view *view = &proc->view;
    const struct record_job *job = disk_job(sim, sim_job->name);
    int64_t limit = wait_limit_us(sim, sim_job, proc);

    /* A take-over may end behind the faults, and then the broker itself waits for who is gone. */
    bool grace = sim->options.shared &&
                 sim->now_us < sim->broker->started_us + (START_GRACE_MS + 1000) * 1000LL;

    if (proc->charged_from_us != proc->since_us) {
        proc->charged_from_us = proc->since_us;
        proc->charged_us = 0;
    }
    if (grace)
        return;
    if (!proc->alive || proc->state == THREAD_STEP || runs_user_code(proc))
        return;
    if (view->started && sim_job->comes)
        return;
    proc->charged_us += SECOND_US;
    if (proc->charged_us < limit + 2 * SECOND_US) /* a look a second */
        return;
    sim_broken(sim, "I5",
               "rank %u %s for %lld s (view %d, round %llu, step %lld, begun %lld, done %lld; job "
               "generation %llu is %s)",
               proc->rank, thread_state_name(proc->state), (long long)(proc->charged_us / 1000000),
               (int)view->mode, U(view->round), (long long)view->step, (long long)proc->begun,
               (long long)proc->done, U(job ? job->generation : 0),
               job ? wire_generation_state_name(job->state) : "?");
}

/* I10: the first error reaches every live node. A round is served first; who is not connected is
 * told when it is. */
static bool is_to_act(struct sim *sim, const struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    const struct record_generation *row = disk_generation(sim, job->name, proc->view.generation);

    return row != NULL && row->error_rank >= 0 && row->error_rank != (int64_t)proc->rank &&
           proc->alive && !proc->frozen && !proc->leaving && !proc->lost_history &&
           proc->route != 0 && role_is_trainer(proc->role) && proc->view.started &&
           proc->view.mode != VIEW_END && job->open_round == 0;
}

/* R8.1 */
static void check_told(struct sim *sim, struct sim_proc *proc)
{
    proc->untold_us = is_to_act(sim, proc) ? proc->untold_us + SECOND_US : 0;
    if (proc->untold_us > UNTOLD_MAX_US)
        sim_broken(sim, "I10",
                   "rank %u has trained on for %lld s beside the first error of its launch",
                   proc->rank, (long long)(proc->untold_us / SECOND_US));
}

/* I5: a round ends, too. */
static void check_open_round(struct sim *sim, struct sim_job *job)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];
    uint64_t open = 0;

    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *round = &rounds->rows[i].record.u.round;
        if (round->state < ROUND_COMMITTED && strcmp(round->job, job->name) == 0)
            open = round->round;
    }
    if (open != job->open_round)
        job->open_charged_us = 0;
    job->open_round = open;
    if (open == 0 || job->comes)
        return;
    if (sim->options.shared && sim->broker->holder.seq > sim->lease.seq)
        return; /* an older log, which the broker finds by its next batch: it holds none open */
    job->open_charged_us += SECOND_US;
    if (job->open_charged_us > round_limit_us(sim, job) + 2 * SECOND_US)
        sim_broken(sim, "I5", "round %llu of %s is open for %lld s and nobody works for it",
                   U(open), job->name, (long long)(job->open_charged_us / 1000000));
}

/* A step that a rank has not done before in the calm gives the job new time: one of 64 ranks is
 * slow in nearly every step, one may be left when all others have finished, and how long a loop may
 * take is not known beforehand. There are as many such steps as loops have. What the faults have
 * taken is done again, between saves that may take longer than it. The faults may still end the
 * launch that was there in their last moment: the next one counts from its own beginning, too. */
static bool gets_on(const struct sim *sim, struct sim_job *job)
{
    const struct record_job *row = disk_job(sim, job->name);
    bool more = false;

    if (sim_is_calm(sim) && (job->calm_counts == 0 || (job->calm_counts == 1 && row != NULL &&
                                                       row->generation > job->calm_generation))) {
        job->calm_counts++;
        job->calm_generation = row == NULL ? 0 : row->generation;
        memset(job->furthest, 0, sizeof job->furthest);
    }
    for (unsigned rank = 0; rank < job->nodes; rank++) {
        const struct sim_proc *proc = job->procs[rank];
        if (proc != NULL && row != NULL && proc->view.generation == row->generation &&
            proc->done > job->furthest[rank]) {
            job->furthest[rank] = proc->done;
            more = true;
        }
    }
    return more;
}

static void check_finished(struct sim *sim)
{
    const struct sim_job *job = NULL;
    int64_t patience = sim->limit_us - sim->calm_us;

    for (size_t i = 0; i < sim->jobs_count; i++) {
        if (gets_on(sim, &sim->jobs[i]) || sim->jobs[i].got_on_us < sim->calm_us)
            sim->jobs[i].got_on_us = sim_is_calm(sim) ? sim->now_us : sim->calm_us;
        if (!sim->jobs[i].finished && sim->now_us - sim->jobs[i].got_on_us > patience)
            job = &sim->jobs[i];
    }
    if (job == NULL)
        return;
    const struct sim_proc *proc = job->procs[0];
    sim_broken(sim, "liveness",
               "%s has not finished %lld s after the faults stopped (rank 0 %s, done %lld "
               "of %lld, launch %llu)",
               job->name, (long long)((sim->now_us - sim->calm_us) / 1000000),
               proc ? thread_state_name(proc->state) : "was never started",
               (long long)(proc ? proc->done : -1), (long long)job->total[0], U(job->launch));
}

/* A fault that was armed may strike late, and the broker's machine boot until after the calm: what
 * is asked for is asked of a broker that runs (START_GRACE_MS begins with its start). That it does
 * start check_finished asks. */
void check_second(struct sim *sim, struct sim_event *event)
{
    bool convergence = sim_is_calm(sim) && sim->broker->alive;

    (void)event;
    check_bounds(sim);
    for (size_t i = 0; i < sim->jobs_count && convergence; i++) {
        sim->jobs[i].comes = somebody_comes(sim, &sim->jobs[i]);
        check_open_round(sim, &sim->jobs[i]);
        check_rests(sim, &sim->jobs[i]);
        check_converges(sim, &sim->jobs[i]);
        claims_promised(sim, &sim->jobs[i]);
    }
    for (size_t i = 0; i < sim->notices_count && convergence; i++)
        claims_noticed(sim, &sim->notices[i]);
    for (size_t i = 0; i < sim->procs_count && convergence; i++)
        check_waits(sim, sim->procs[i]);
    for (size_t i = 0; i < sim->procs_count && convergence; i++)
        check_told(sim, sim->procs[i]);
    check_finished(sim);
    sim_after(sim, SECOND_US, check_second, NULL);
}

/* --- notices ---------------------------------------------------------------------------------- */

/* Was it that rank's own doing: finished, failed, lost? Ranks that stand at different steps were
 * stopped because another rank was lost. */
static bool is_to_blame(const struct sim *sim, const struct record_round *round)
{
    const struct sim_table *nodes = &sim->disk.tables[RECORD_NODE];
    bool apart = strstr(round->reason, sim_reason_words(REASON_UNREACHABLE)) != NULL;

    for (size_t i = 0; i < nodes->count; i++) {
        const struct record_node *node = &nodes->rows[i].record.u.node;
        if ((int64_t)node->rank == round->culprit_rank && node->generation == round->generation &&
            strcmp(node->job, round->job) == 0 &&
            (node->state == NODE_LOST || node->leave_why != LEAVE_PREEMPTED))
            return true;
        if (apart && node->generation == round->generation && strcmp(node->job, round->job) == 0 &&
            node->state == NODE_LOST)
            return true;
    }
    return false;
}

/* What the broker took ends in a checkpoint, or in an abort that names its culprit. */
static void check_served(struct sim *sim, const struct sim_notice *notice,
                         const struct record_notice *row)
{
    const struct record_round *round = disk_round(sim, row->job, row->round);
    bool saved =
        round != NULL && (round->state == ROUND_COMMITTED || round->state == ROUND_UNCHANGED);
    bool nobody = round != NULL && strstr(round->reason, sim_reason_words(REASON_RESTART)) != NULL;

    sim->stats->ample_saved += notice->ample && saved;
    if (saved || is_of_lost_history(sim_job_named(sim, row->job), row->generation))
        return;
    if (round != NULL && round->state == ROUND_ABORTED && round->culprit_rank < 0 && !nobody)
        sim_broken(sim, "notices", "notice %s ended with round %llu, aborted by nobody: %s",
                   row->id, U(row->round), round->reason);
    if (round != NULL && round->state < ROUND_COMMITTED)
        sim_broken(sim, "notices", "notice %s is served by round %llu, which is %s", row->id,
                   U(row->round), wire_round_state_name(round->state));
    if (!notice->ample)
        return;
    if (round == NULL || !is_to_blame(sim, round))
        sim_broken(sim, "notices",
                   "notice %s had %lld ms, no fault was left, and nothing was saved: %s", row->id,
                   (long long)notice->left_ms, round ? round->reason : "no round was opened");
    sim->stats->ample_aborted++;
}

static void check_notice(struct sim *sim, const struct sim_notice *notice)
{
    const struct record_notice *row = disk_notice(sim, notice->job, notice->id);

    if (row != NULL && row->state == RECORD_NOTICE_SERVED) {
        check_served(sim, notice, row);
        return;
    }
    if (!notice->ample)
        return;
    const struct record_generation *gen =
        disk_generation(sim, notice->job, row ? row->generation : notice->proc->view.generation);
    sim->stats->ample_over++;
    if (notice->proc != NULL && notice->proc->end == END_FINISHED)
        return; /* the process had no step left, and perhaps no broker to tell */
    if (gen != NULL && gen->state != GENERATION_ENDED && gen->state != GENERATION_ENDING)
        sim_broken(sim, "notices", "notice %s came to nothing, and generation %llu is %s",
                   notice->id, U(gen->generation), wire_generation_state_name(gen->state));
}

/* Its writer's LEAVE was said before it, after the bounded wait that others put it under: the next
 * launch writes the manifest. */
static bool crossed_leave(const struct sim *sim, const struct record_event *commit)
{
    for (size_t i = 0; i < sim->procs_count; i++)
        if (sim->procs[i]->incarnation == commit->body.incarnation)
            return sim->procs[i]->left_seq > 0 && commit->seq > sim->procs[i]->left_seq;
    return false;
}

/* Committed, and its writer lived: the manifest is in place (R5.12). */
static void check_manifests(struct sim *sim)
{
    const struct sim_table *events = &sim->disk.tables[RECORD_EVENT];

    for (size_t i = 0; i < events->count; i++) {
        const struct record_event *row = &events->rows[i].record.u.event;
        const struct record_checkpoint *checkpoint =
            row->body.kind == EVENT_COMMIT ? disk_checkpoint(sim, row->job, row->body.round) : NULL;
        const struct record_node *writer =
            checkpoint != NULL ? disk_node(sim, row->job, row->body.incarnation) : NULL;
        if (writer == NULL || writer->state != NODE_LEFT || checkpoint->path[0] != '\0' ||
            checkpoint->state > CHECKPOINT_COMMITTED || !sim->calm_was ||
            row->seq <= sim_job_named(sim, row->job)->calm_seq ||
            is_of_lost_history(sim_job_named(sim, row->job), checkpoint->generation) ||
            crossed_leave(sim, row))
            continue;
        sim_broken(sim, "manifest",
                   "checkpoint %llu of %s was committed, rank %llu lived to write "
                   "its manifest and did not",
                   U(checkpoint->round), row->job, U(writer->rank));
    }
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
    for (size_t i = 0; i < sim->notices_count; i++)
        check_notice(sim, &sim->notices[i]);
    check_manifests(sim);
    if (sim->options.healthy && sim->stats->not_saved > 0)
        sim_broken(sim, "healthy", "a termination was not saved without any fault");
}
