/* sim_check_wire - what is said: that it is written, heard in order, and true. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define U(x) ((unsigned long long)(x))

/* --- what is sent ----------------------------------------------------------------------------- */

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
static void check_ack(struct sim *sim, const struct wire_msg *message, struct sim_proc *to)
{
    const struct record_node *row = disk_node_of(sim, to);
    bool known =
        row != NULL && (row->last_request >= message->u.ack.request || row->state == NODE_LEFT);

    if (message->u.ack.code != MUSTER_OK || message->u.ack.request == 0)
        return;
    if (!known)
        sim_broken(sim, "I12", "request %llu of rank %u is answered and not written",
                   U(message->u.ack.request), to->rank);
    claims_cancelled(sim, to, message->u.ack.request);
    if (row != NULL && row->state != NODE_LEFT && message->u.ack.request > to->acknowledged)
        to->acknowledged = message->u.ack.request;
}

/* I6: who was given up, in a batch before this one, is let in to nothing, and nothing of it is
 * taken. */
static void check_stale(struct sim *sim, const struct wire_msg *message, const struct sim_proc *to)
{
    const struct record_node *row = disk_node_of(sim, to);
    bool lets_in = message->type == WIRE_WELCOME || message->type == WIRE_SNAPSHOT;
    bool takes = message->type == WIRE_ACK && message->u.ack.code == MUSTER_OK;

    if (row != NULL && node_is_given_up(row) && to->given_up_in != sim->batches &&
        (lets_in || takes))
        sim_broken(sim, "I6", "a %s goes to rank %u, whose process is %s in the database",
                   wire_type_name(message->type), to->rank, wire_node_state_name(row->state));
}

/* An import knows of a launch that it was, not that it is over: who lives in it is believed. */
static void check_refused(struct sim *sim, const struct wire_msg *message,
                          const struct sim_proc *to)
{
    const struct record_job *job = disk_job(sim, message->down.job);
    const struct record_generation *row =
        job != NULL ? disk_generation(sim, job->job, job->generation) : NULL;

    if (message->type == WIRE_REFUSED && message->u.refused.code == MUSTER_E_STALE && row != NULL &&
        row->generation == to->view.generation && to->view.started && role_is_trainer(to->role) &&
        strcmp(row->end_text, FOUND_ON_DISK) == 0)
        sim_broken(sim, "I6",
                   "rank %u lives in launch %llu, which was found on disk, and is told "
                   "that it is over",
                   to->rank, U(row->generation));
}

/* I8: who misses an event learns it from the next ALIVE, which tells no less than was told in a
 * batch before. */
static void check_told_seq(struct sim *sim, struct sim_job *job, const struct wire_msg *message)
{
    if (job->told_batch != sim->batches) {
        job->told_batch = sim->batches;
        job->told_before = job->told_seq;
    }
    if (message->type == WIRE_ALIVE && message->down.last_seq < job->told_before)
        sim_broken(sim, "I8", "an ALIVE tells of event %llu, %llu was told in a batch before",
                   U(message->down.last_seq), U(job->told_before));
    if (message->down.last_seq > job->told_seq)
        job->told_seq = message->down.last_seq;
}

/* By a broker that was overtaken and does not know it yet. */
static void check_sent_late(struct sim *sim, const struct wire_msg *message)
{
    const struct record_job *job = message->down.job[0] ? disk_job(sim, message->down.job) : NULL;

    if (sim->broker->holder.of_lost_history)
        return;
    if (message->down.last_seq > (job ? job->seq : 0))
        sim_broken(sim, "I3", "a late %s tells of event %llu, the database ends at %llu",
                   wire_type_name(message->type), U(message->down.last_seq), U(job ? job->seq : 0));
    if (message->down.broker_epoch > sim->broker->epoch)
        sim_broken(sim, "I3", "a late %s tells of epoch %llu, which is not written",
                   wire_type_name(message->type), U(message->down.broker_epoch));
    if (message->type == WIRE_EVENT &&
        sim->journal_max == 0) /* else it may not be there any more */
        check_sent_event(sim, message);
}

void check_sent(struct sim *sim, const struct wire_msg *message, struct sim_proc *to)
{
    const struct record_job *job = message->down.job[0] ? disk_job(sim, message->down.job) : NULL;
    struct sim_job *told = message->down.job[0] ? sim_job_named(sim, message->down.job) : NULL;

    if (!shared_is_newest(sim)) {
        check_sent_late(sim, message);
        return;
    }
    if (told != NULL)
        check_told_seq(sim, told, message);
    if (message->down.last_seq > (job ? job->seq : 0))
        sim_broken(sim, "I3", "a %s tells of event %llu, the database ends at %llu",
                   wire_type_name(message->type), U(message->down.last_seq), U(job ? job->seq : 0));
    if (message->down.broker_epoch > sim->broker->epoch)
        sim_broken(sim, "I3", "a %s tells of epoch %llu, which is not written",
                   wire_type_name(message->type), U(message->down.broker_epoch));
    if (message->type == WIRE_EVENT)
        check_sent_event(sim, message);
    if (message->type == WIRE_SNAPSHOT)
        sim->stats->snapshots++;
    if (message->type == WIRE_DELETE)
        check_delete_sent(sim, message);
    if (message->type == WIRE_SNAPSHOT && to != NULL)
        check_resume_sent(sim, message, to);
    if (message->type == WIRE_ACK &&
        (message->u.ack.code == MUSTER_E_PROTOCOL || message->u.ack.code == MUSTER_E_ARGUMENT) &&
        (message->u.ack.request & OF_IMPORT) == 0) /* which is told in parts */
        sim_broken(sim, "answers", "a faithful node's request %llu is answered: %s",
                   U(message->u.ack.request), message->u.ack.text);
    if (to != NULL)
        check_stale(sim, message, to);
    if (to != NULL && to->alive)
        check_refused(sim, message, to);
    if (message->type == WIRE_ACK && to != NULL && to->alive)
        check_ack(sim, message, to);
    if (to == NULL)
        tool_hears(sim, message);
    if (message->type == WIRE_WELCOME && to != NULL && disk_node_of(sim, to) == NULL)
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

    if (proc->lost_history)
        return; /* of another round with this number */
    if (proc->captured_round == number || proc->captured_said == number)
        sim_broken(sim, "I2", "rank %u captured round %llu and answers PAST", proc->rank,
                   U(number));
    if (round == NULL ||
        (round->step >= 0 && proc->begun <= round->step &&
         (!proc->failed_step || proc->done == round->step))) /* else it cannot come to S any more */
        sim_broken(sim, "I2", "rank %u answers PAST to round %llu and has begun %lld", proc->rank,
                   U(number), (long long)proc->begun);
    proc->past_said = number;
}

/* A report that nobody has answered is said until somebody does: the step that it counts may have
 * failed since, and a database restored from a copy may have given it another number. */
static void check_report(struct sim *sim, struct sim_proc *proc, const struct wire_report *report)
{
    bool repeated = report->round == proc->reported_round && report->begun == proc->reported_begun;

    if (!repeated && !report->aborted && report->begun > proc->begun)
        sim_broken(sim, "I2", "rank %u reports begun %lld, it is at %lld", proc->rank,
                   (long long)report->begun, (long long)proc->begun);
    proc->reported_round = report->round;
    proc->reported_begun = report->begun;
}

/* The outcome of an own save is not waited for beyond a bound: a short one while a decided round,
 * of a step that this rank will not come to, waits for its LEAVE, or the broker is silent. Only
 * then may a commit cross that LEAVE. */
static void note_leave(const struct sim *sim, struct sim_proc *proc, uint64_t applied_seq)
{
    const char *name = sim->jobs[proc->job].name;
    const struct record_round *round = disk_round(sim, name, proc->view.round);
    const struct record_job *row = disk_job(sim, name);
    bool others_wait = round != NULL && round->step > proc->done;
    int64_t waited_ms = sim->now_us / 1000 - proc->saved_us / 1000;
    bool silent = sim->now_us / 1000 - proc->heard_us / 1000 >= LOST_MS;
    bool out_of_time = waited_ms >= STUCK_MS + STUCK_MS + FREEZE_MS;

    if (proc->left_seq == 0 && row != NULL &&
        ((others_wait && waited_ms >= MANIFEST_WAIT_MS) || silent || out_of_time))
        proc->left_seq = applied_seq;
}

/* I8: what is acknowledged was heard without a gap. I2: nobody says SAVED who trained on. */
void check_up(struct sim *sim, struct sim_proc *proc, const struct wire_msg *message)
{
    uint64_t applied = message->up.applied_seq;

    if (applied < proc->applied_said || applied > proc->heard_contiguous)
        sim_broken(sim, "I8",
                   "rank %u says it applied %llu; it said %llu, and heard all up to %llu",
                   proc->rank, U(applied), U(proc->applied_said), U(proc->heard_contiguous));
    if (applied > proc->applied_said)
        proc->undecided_us =
            sim->now_us; /* what it heard in another epoch counts when it is told again */
    proc->applied_said = applied;
    if (message->up.request > 0 && message->up.request <= proc->request_said)
        return; /* sent once more: true when it was said first */
    if (message->up.request > 0)
        proc->request_said = message->up.request;
    if (message->type == WIRE_REPORT)
        check_report(sim, proc, &message->u.report);
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
    if (message->type == WIRE_LEAVE)
        note_leave(sim, proc, message->up.applied_seq);
    for (size_t i = 0; message->type == WIRE_CANCEL && i < sim->notices_count; i++)
        if (sim->notices[i].proc == proc && strcmp(sim->notices[i].id, message->u.cancel.id) == 0)
            sim->notices[i].cancel = message->up.request;
}

/* --- what is heard ---------------------------------------------------------------------------- */

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
    uint64_t seq = message->u.event.seq, before = proc->heard_contiguous;

    if (message->type == WIRE_ALIVE && message->u.alive.awaited_round > 0) {
        proc->awaited_round = message->u.alive.awaited_round;
        proc->awaited_us = sim->now_us;
    }
    if (message->type == WIRE_SNAPSHOT && message->u.snapshot.seq > proc->heard_contiguous)
        proc->heard_contiguous = message->u.snapshot.seq;
    if (message->type == WIRE_EVENT && seq == proc->heard_contiguous + 1)
        proc->heard_contiguous = seq;
    else if (message->type == WIRE_EVENT && seq > proc->heard_contiguous) {
        proc->heard = realloc(proc->heard, (proc->heard_count + 1) * sizeof *proc->heard);
        proc->heard[proc->heard_count++] = seq;
    }
    advance(proc);
    if (proc->heard_contiguous != before || message->type == WIRE_SNAPSHOT)
        proc->undecided_us = sim->now_us;
}

/* I12: what was taken is answered, and nothing more comes of it. */
void check_taken_once(struct sim *sim, const struct sim_proc *proc, const struct wire_msg *message,
                      size_t before)
{
    const struct actions *batch = &sim->broker->batch;
    const struct record_node *row = disk_node_of(sim, proc);

    if (row == NULL || message->up.request == 0 || message->up.request > row->last_request)
        return;
    for (size_t i = before; i < batch->count; i++)
        if (batch->items[i].kind == ACTION_PERSIST && !batch->items[i].lazy)
            sim_broken(sim, "I12", "request %llu (%s) of rank %u was taken, and is taken again",
                       U(message->up.request), wire_type_name(message->type), proc->rank);
}

/* I3, I12: a new start of the broker knows all that a former one has told. */
void check_loaded(struct sim *sim)
{
    for (size_t i = 0; i < sim->procs_count; i++) {
        const struct sim_proc *proc = sim->procs[i];
        const struct record_node *row = proc->acknowledged > 0 ? disk_node_of(sim, proc) : NULL;
        /* Its HELLO was long on its way and let it, who was gone, into a later launch, where its
         * numbers begin again. */
        if (row != NULL && row->generation > proc->view.generation && !proc->alive)
            continue;
        if (proc->acknowledged > (row != NULL ? row->last_request : 0))
            sim_broken(sim, "I12",
                       "request %llu of rank %u was answered and is not in the database any more",
                       U(proc->acknowledged), proc->rank);
    }
    for (size_t i = 0; i < sim->jobs_count; i++) {
        const struct sim_job *job = &sim->jobs[i];
        const struct record_job *row = disk_job(sim, job->name);
        if (job->told_seq > (row != NULL ? row->seq : 0))
            sim_broken(sim, "I3", "event %llu of %s was told and is not in the database any more",
                       U(job->told_seq), job->name);
    }
}
