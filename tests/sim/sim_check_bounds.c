/* sim_check_bounds - I5 in every phase of a world: a round ends by its own bounds, and a closed
 * gate opens by its own. A bound counts while the broker's loop goes round; it begins again when
 * that was away (LOOP_GAP_MS), for then the broker lets it last longer. A deadline may end a round
 * before them. */
#include "tests/sim/sim_world.h"

#include <string.h>

#define U(x) ((unsigned long long)(x))
#define SLACK_US 3000000 /* a look a second, a slow disk */

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- the broker's time ------------------------------------------------------------------------ */

void bounds_pass(struct sim *sim)
{
    struct sim_broker *b = sim->broker;

    if (sim->now_us - b->passed_us >= LOOP_GAP_MS * 1000LL || b->steady_us < b->started_us)
        b->steady_us = sim->now_us;
    b->passed_us = sim->now_us;
}

static bool goes_round(const struct sim *sim)
{
    const struct sim_broker *b = sim->broker;

    return b->alive && shared_is_newest(sim) && !b->frozen && !b->blocked && !b->starting &&
           b->steady_us >= b->started_us && sim->now_us - b->passed_us < LOOP_GAP_MS * 1000LL;
}

void bounds_beat(struct sim *sim, struct sim_proc *proc, const struct wire_heartbeat *beat)
{
    if (beat->begun > proc->begun_told)
        proc->advanced_us = sim->now_us;
    proc->begun_told = beat->begun;
    if ((int64_t)beat->step_p95_ms > proc->p95_told_ms)
        proc->p95_told_ms = (int64_t)beat->step_p95_ms;
    if (beat->step_p95_ms == 0)
        proc->measured_us = -1;
    else if (proc->measured_us <= sim->broker->started_us)
        proc->measured_us = sim->now_us;
}

/* --- a round ---------------------------------------------------------------------------------- */

static void check_freezing(struct sim *sim, const struct sim_job *job,
                           const struct record_round *round)
{
    int64_t bound = round->aborted_steps ? STUCK_MS : FREEZE_MS;

    int64_t since = latest(job->freezing_us, sim->broker->steady_us);
    if (sim->now_us - since > bound * 1000 + SLACK_US)
        sim_broken(sim, "I5",
                   "round %llu of %s is freezing for %lld s, which its bound does not allow",
                   U(round->round), job->name, (long long)((sim->now_us - since) / 1000000));
}

static const struct sim_proc *proc_of(const struct sim_job *job,
                                      const struct record_participant *part)
{
    const struct sim_proc *proc = part->rank < job->nodes ? job->procs[part->rank] : NULL;

    while (proc != NULL && proc->incarnation != part->incarnation)
        proc = proc->older;
    return proc;
}

/* Three times the longest save that anybody told of. */
static int64_t save_bound_ms(const struct sim *sim, const struct sim_job *job)
{
    const struct sim_table *parts = &sim->disk.tables[RECORD_PARTICIPANT];
    const struct record_job *row = disk_job(sim, job->name);
    int64_t longest = row != NULL ? row->save_p95_ms : 0;

    for (size_t i = 0; i < parts->count; i++)
        if (same(parts->rows[i].record.u.participant.job, job->name))
            longest = latest(longest, parts->rows[i].record.u.participant.save_ms);
    return latest(STUCK_MS, 3 * longest);
}

/* Of a round that was opened before the broker's machine booted it is not known: as if it were now.
 */
static int64_t at_step_us(const struct sim *sim, const struct sim_row *row,
                          const struct record_participant *part)
{
    int64_t at_ms = row->record.u.round.opened_boot_ms + part->at_step_ms;

    return row->boot == sim->broker->boot ? (at_ms - sim->broker->boot_offset_ms) * 1000
                                          : sim->now_us;
}

/* Its writer came to S; what it tells of its save's progress gives it new time. */
static void check_saving(struct sim *sim, const struct sim_job *job, const struct sim_row *row,
                         const struct record_participant *part)
{
    const struct record_round *round = &row->record.u.round;
    const struct sim_proc *proc = proc_of(job, part);
    int64_t took_us = sim->now_us - latest(at_step_us(sim, row, part), sim->broker->steady_us);

    if (proc == NULL || proc->saves_long || sim->now_us - proc->saved_long_us <= SLACK_US ||
        took_us <= STUCK_MS * 1000LL + SLACK_US ||
        took_us <= save_bound_ms(sim, job) * 1000 + SLACK_US)
        return;
    sim_broken(sim, "I5", "round %llu of %s waits for %lld s for the save of rank %llu",
               U(round->round), job->name, (long long)(took_us / 1000000), U(part->rank));
}

/* The way to S begins again with each step that a member tells of. One whose steps were not
 * measured has longer, until it tells of one, or is there. */
static void check_way(struct sim *sim, const struct sim_job *job, const struct record_round *round,
                      int64_t way_ms, int64_t advanced_us)
{
    int64_t since = latest(latest(job->decided_us, advanced_us), sim->broker->steady_us);

    if (sim->now_us - since > way_ms * 1000 + SLACK_US)
        sim_broken(sim, "I5",
                   "round %llu of %s waits for %lld s for its members to come to step %lld",
                   U(round->round), job->name, (long long)((sim->now_us - since) / 1000000),
                   (long long)round->step);
}

static void check_decided(struct sim *sim, const struct sim_job *job, const struct sim_row *row)
{
    const struct sim_table *parts = &sim->disk.tables[RECORD_PARTICIPANT];
    const struct record_round *round = &row->record.u.round;
    int64_t way_ms = 0, advanced_us = 0;
    bool measured = true, saved = false;

    for (size_t i = 0; i < parts->count && !sim->failed; i++) {
        const struct record_participant *part = &parts->rows[i].record.u.participant;
        const struct sim_proc *proc =
            part->round == round->round && same(part->job, job->name) ? proc_of(job, part) : NULL;
        if (proc == NULL)
            continue;
        saved |= part->writer && part->saved_ms >= 0;
        advanced_us = latest(advanced_us, latest(proc->advanced_us, proc->measured_us));
        if (part->at_step_ms >= 0) {
            advanced_us = latest(advanced_us, at_step_us(sim, row, part));
            if (part->writer && part->saved_ms < 0)
                check_saving(sim, job, row, part);
            continue;
        }
        int64_t steps = round->step - (part->done < 0 ? 0 : part->done) + 1;
        way_ms = latest(way_ms, latest(STUCK_MS, 3 * proc->p95_told_ms * steps));
        measured &= proc->measured_us > sim->broker->started_us;
    }
    if (round->state == ROUND_DECIDED && way_ms > 0 && measured &&
        !(saved && job->layout == LAYOUT_REPLICATED))
        check_way(sim, job, round, way_ms, advanced_us);
}

/* Since when it is seen: a database that is restored from a copy may give the number to another. */
static void note_round(struct sim *sim, uint64_t *seen, int64_t *since_us, uint64_t round)
{
    if (*seen != round)
        *since_us = sim->now_us;
    *seen = round;
}

static void note_rounds(struct sim *sim, struct sim_job *job)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];
    uint64_t freezing = 0, decided = 0;

    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *round = &rounds->rows[i].record.u.round;
        if (round->state == ROUND_FREEZING && same(round->job, job->name))
            freezing = round->round;
        if (round->state == ROUND_DECIDED && same(round->job, job->name))
            decided = round->round;
    }
    note_round(sim, &job->freezing_round, &job->freezing_us, freezing);
    note_round(sim, &job->decided_round, &job->decided_us, decided);
}

static void check_rounds_of(struct sim *sim, const struct sim_job *job)
{
    const struct sim_table *rounds = &sim->disk.tables[RECORD_ROUND];

    for (size_t i = 0; i < rounds->count; i++) {
        const struct record_round *round = &rounds->rows[i].record.u.round;
        if (round->state >= ROUND_COMMITTED || !same(round->job, job->name))
            continue;
        if (round->state == ROUND_FREEZING)
            check_freezing(sim, job, round);
        else
            check_decided(sim, job, &rounds->rows[i]);
    }
}

/* --- a gate ----------------------------------------------------------------------------------- */

/* Closed for a freeze, and no decision was heard. What was heard since (another try of that round)
 * closes it again. */
static bool is_frozen(const struct sim *sim, const struct sim_proc *proc)
{
    const struct record_generation *gen =
        disk_generation(sim, sim->jobs[proc->job].name, proc->view.generation);

    return proc->alive && !proc->frozen && proc->closed && proc->view.started &&
           proc->view.mode == VIEW_WAIT && proc->view.round > 0 && proc->view.step < 0 &&
           !proc->leaving && !proc->lost_history && gen != NULL && gen->error_rank < 0;
}

/* R4.5 */
static void check_thaw(struct sim *sim, const struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    const struct record_round *round = disk_round(sim, job->name, proc->view.round);
    int64_t bound_ms = THAW_MS;

    if (!is_frozen(sim, proc))
        return;
    if (round != NULL && round->state == ROUND_COMMITTED)
        bound_ms = ENDING_MS; /* it writes the manifest */
    else if (round != NULL && round->aborted_steps)
        bound_ms += job->abort_timeout_ms;
    if (sim->now_us - proc->undecided_us > (bound_ms + 1000) * 1000)
        sim_broken(sim, "I5",
                   "the gate of rank %u is closed for round %llu for %lld ms without a decision",
                   proc->rank, U(proc->view.round),
                   (long long)((sim->now_us - proc->undecided_us) / 1000));
}

void check_bounds(struct sim *sim)
{
    for (size_t i = 0; i < sim->jobs_count; i++) {
        note_rounds(sim, &sim->jobs[i]);
        if (goes_round(sim))
            check_rounds_of(sim, &sim->jobs[i]);
    }
    for (size_t i = 0; i < sim->jobs_count; i++)
        for (unsigned rank = 0; rank < sim->jobs[i].nodes; rank++)
            for (const struct sim_proc *proc = sim->jobs[i].procs[rank]; proc; proc = proc->older)
                check_thaw(sim, proc);
}
