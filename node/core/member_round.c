/* member_round - this node's part in a round, the manifest it writes, errors of others, the end.
 *
 *   freeze:   close the gate, report what the closing gave
 *   decision: begun <= S: walk to S; else PAST
 *   at S:     AT_STEP, capture (the writer saves), SAVED; a termination holds until the verdict
 * A node that trains on beyond S never says SAVED for that round. */
#include "node/core/member_state.h"

#include <stdio.h>

static void policy_forget(struct member *m)
{
    m->policy_wait = false;
    m->policy_until = NEVER;
}

void policy_over(struct member *m)
{
    policy_forget(m);
    if (no_round_holds(m))
        view_open_or_end(m);
}

/* --- freeze, report --------------------------------------------------------------------------- */

/* It has no number and no answer: it is said until the round's outcome is heard. */
static void round_say_report(struct member *m)
{
    struct wire_msg message = message_make(WIRE_REPORT);

    message.u.report = (struct wire_report){.round = m->round,
                                            .begun = m->reported_begun,
                                            .done = m->reported_done,
                                            .aborted = m->abort_mode};
    if (m->link == LINK_JOINED)
        message_send(m, &message, 0);
    m->report_at = m->now + FREEZE_MS / 4;
}

static void report(struct member *m, int64_t begun, int64_t done)
{
    m->reported = true;
    m->reported_begun = begun;
    m->reported_done = done;
    round_say_report(m);
    if (m->abort_mode)
        m->thaw_at = m->now + FREEZE_MS;
}

void round_freeze(struct member *m, uint64_t round, enum wire_cause cause, bool abort_mode)
{
    if (m->view.mode == VIEW_END || round <= m->round)
        return;
    m->report_at = NEVER;
    m->round = round;
    m->cause = cause;
    m->abort_mode = abort_mode;
    m->reported = false;
    m->step = -1;
    m->writer = false;
    part_move(m, PART_FROZEN);
    policy_forget(m);
    m->give_up_at = NEVER;
    m->error_until =
        m->error.status != MUSTER_OK ? m->now + THAW_MS + m->options.abort_timeout_ms : NEVER;
    m->thaw_at = m->now + THAW_MS + (abort_mode ? m->options.abort_timeout_ms : 0);
    close_gate(m, GATE_FREEZE);
    view_set(m, VIEW_WAIT);
}

#define STEPS_AHEAD_MAX ((int64_t)1 << 20) /* no product of it overflows */

/* The thread is not held on its way, so this is generous; it begins again with every step. */
static int64_t round_own_way_ms(const struct member *m)
{
    int64_t p95 =
        link_step_p95(m) > WAY_UNMEASURED_MS ? WAY_UNMEASURED_MS : (int64_t)link_step_p95(m);
    int64_t steps = m->step - m->done < STEPS_AHEAD_MAX ? m->step - m->done + 1 : STEPS_AHEAD_MAX;
    int64_t way = p95 > 0 ? steps * 3 * p95 : WAY_UNMEASURED_MS;

    return GIVE_UP_MS + (way > STUCK_MS ? way - STUCK_MS : 0);
}

static void round_say_past(struct member *m)
{
    struct wire_msg message = message_make(WIRE_PAST);

    message.u.past = (struct wire_past){.round = m->round, .begun = m->begun};
    request_put(m, &message);
    part_move(m, PART_NONE);
    if (m->error_until != NEVER)
        m->error_until = m->now + THAW_MS; /* it is over; the freeze of the next one may follow */
}

static void round_walk(struct member *m)
{
    if (m->begun > m->step) {
        round_say_past(m);
        view_open_or_end(m);
        return;
    }
    part_move(m, PART_TO_STEP);
    m->thaw_at = NEVER;
    m->give_up_at = m->now + round_own_way_ms(m);
    view_set(m, VIEW_STEP_TO);
}

void round_gate_closed(struct member *m)
{
    enum gate_use use = m->gate_use;

    m->gate_use = GATE_NO_USE;
    if (m->view.mode == VIEW_END) {
        error_break_off(m, &m->view.end, m->view.leave_restart);
        return;
    }
    if (m->part == PART_COMMITTED) {
        struct muster_error why = {.status = MUSTER_PREEMPTED, .rank = -1, .step = m->step};
        snprintf(why.text, sizeof why.text,
                 "the job's checkpoint is committed; it is being terminated");
        error_break_off(m, &why, true);
    } else if (m->error.status != MUSTER_OK && !m->abort_mode) {
        error_break_off(m, &m->error, false);
    }
    if (m->unfit)
        return; /* its state is that of no step: nothing to report, nowhere to go */
    if (use == GATE_DECISION) {
        round_walk(m);
    } else if (use == GATE_FREEZE && m->part == PART_FROZEN) {
        if (!m->abort_mode)
            report(m, m->begun, m->done);
        else if (m->begun == m->done)
            report(m, m->done, m->done);
        else
            error_ask(m, MUSTER_E_PEER, m->error.rank, m->error.code, m->error.step,
                      m->error.status != MUSTER_OK
                          ? m->error.text
                          : "a rank was lost; the running step is broken off");
    }
}

/* In abort mode the report waits until no step is in flight. */
void report_if_quiet(struct member *m)
{
    if (m->part == PART_FROZEN && m->abort_mode && !m->reported && m->begun == m->done &&
        m->gate_use == GATE_NO_USE && !m->unfit)
        report(m, m->done, m->done);
}

void round_decision(struct member *m, uint64_t round, uint64_t generation, enum wire_cause cause,
                    int64_t step, bool writer, uint64_t nonce)
{
    bool same = round == m->round;

    if (m->view.mode == VIEW_END || (same && m->part != PART_FROZEN && m->part != PART_THAWED))
        return;
    m->round = round;
    m->round_generation = generation;
    m->cause = cause;
    m->step = step;
    m->writer = writer;
    m->round_nonce = nonce;
    m->abort_mode = same && m->abort_mode;
    m->reported = same && m->reported;
    if (m->policy_wait &&
        step >= m->done) /* a late one of an earlier step is not what it waits for */
        policy_forget(m);
    m->thaw_at = m->give_up_at = NEVER; /* a late decision must not be thawed in its own step */
    part_move(m, PART_NONE);            /* until the gate's closing says where this node stands */
    m->error_until = m->error.status != MUSTER_OK ? m->now + GIVE_UP_MS : NEVER;
    close_gate(m, GATE_DECISION);
    view_set(m, VIEW_WAIT);
}

/* --- at S ------------------------------------------------------------------------------------- */

/* Is the training thread held by no round? A rank that captured for a save that is no termination
 * trains on. So does one that captured before a termination joined. A rank that holds has a bound,
 * unless it writes. */
bool no_round_holds(const struct member *m)
{
    return m->part == PART_NONE || m->part == PART_THAWED ||
           (m->part == PART_CAPTURED && m->give_up_at == NEVER);
}

void hold_or_go(struct member *m)
{
    if (m->cause == CAUSE_TERMINATION) {
        m->give_up_at = m->now + GIVE_UP_MS;
        view_set(m, VIEW_WAIT);
    } else {
        m->give_up_at = NEVER;
        m->error_until = m->error.status != MUSTER_OK ? m->now + GIVE_UP_MS : NEVER;
        view_open_or_end(m);
    }
}

void round_arrived(struct member *m)
{
    report_if_quiet(m);
    if (m->unfit || m->part != PART_TO_STEP || m->begun != m->step || m->done != m->step)
        return;
    outcome_captured(m, m->round, m->step);
    struct wire_msg message = message_make(WIRE_AT_STEP);
    message.u.at_step =
        (struct wire_at_step){.round = m->round, .step = m->step, .captured = !m->writer};
    request_put(m, &message);
    if (m->writer) {
        part_move(m, PART_CAPTURING);
        m->give_up_at = NEVER; /* the thread is busy; its wait begins when it comes back */
        if (m->written_behind != 0)
            m->give_up_at =
                m->now + GIVE_UP_MS; /* or it waits for the save before, see round_way_over_at */
        view_set(m, VIEW_CAPTURE);
        return;
    }
    part_move(m, PART_CAPTURED);
    hold_or_go(m);
}

/* Others still save for the termination that this rank waits for. The broker bounds how long that
 * takes. The wait for a broker that says nothing of it begins here. */
void round_is_awaited(struct member *m, uint64_t round)
{
    if (round == 0 || round != m->round || m->part != PART_CAPTURED ||
        m->cause != CAUSE_TERMINATION)
        return;
    if (m->give_up_at != NEVER)
        m->give_up_at = m->now + GIVE_UP_MS;
    if (m->error_until != NEVER)
        m->error_until = m->now + GIVE_UP_MS;
}

static void round_ask_policy(struct member *m, int64_t step)
{
    struct wire_msg message = message_make(WIRE_SAVE_AT);

    message.u.save_at.step = step;
    m->policy_request = request_put(m, &message);
}

void policy_again(struct member *m)
{
    if (m->policy_wait && !request_waits(m, m->policy_request))
        round_ask_policy(m, m->done); /* where its thread waits */
}

void round_policy(struct member *m, int64_t step)
{
    m->view_changed = true; /* the thread waits for a view, whatever it says */
    if (m->view.mode == VIEW_END)
        return;
    if (m->part != PART_NONE && m->part != PART_THAWED && m->view.mode != VIEW_OPEN) {
        round_arrived(m); /* an open round comes first and stands for this save */
        return;
    }
    if (m->link != LINK_JOINED || m->error.status != MUSTER_OK ||
        !role_is_trainer(m->options.role) || m->pending_count >= PENDING_POLICY_MAX) {
        view_open_or_end(m); /* nobody can agree now: skip it */
        return;
    }
    m->policy_wait = true;
    m->policy_until = m->now + THAW_MS;
    round_ask_policy(m, step);
    view_set(m, VIEW_WAIT);
}

/* --- outcomes --------------------------------------------------------------------------------- */

void round_over_for_me(struct member *m)
{
    part_move(m, PART_NONE);
    m->thaw_at = m->give_up_at = NEVER;
    if (m->error.status != MUSTER_OK)
        m->error_until = NEVER; /* the round that was announced is over */
    view_open_or_end(m);
}

/* When the checkpoint that ends the job is committed, what comes of a later round lets nobody go
 * on. */
static bool round_is_serving(const struct member *m, uint64_t round)
{
    return round == m->round && m->part != PART_NONE && m->part != PART_COMMITTED;
}

void round_committed(struct member *m, uint64_t round, enum wire_cause cause, bool writes_manifest)
{
    if (writes_manifest)
        manifest_begin(m, round);
    if (m->view.mode == VIEW_END)
        return;
    if (cause != CAUSE_TERMINATION) {
        if (round_is_serving(m, round))
            round_over_for_me(m);
        return;
    }
    m->round = round > m->round ? round : m->round;
    m->cause = cause;
    part_move(m, PART_COMMITTED);
    policy_forget(m);
    m->thaw_at = m->give_up_at = m->error_until = NEVER;
    m->manifest_until = m->now + (writes_manifest ? ENDING_MS : MANIFEST_WAIT_MS);
    close_gate(m, GATE_NO_USE);
    view_set(m, VIEW_WAIT);
}

void round_aborted(struct member *m, uint64_t round, uint64_t generation, bool again,
                   bool journaled)
{
    bool wrote =
        round == m->round ? m->writer : save_was_told(m, round) || round == m->behind_round;

    if (round == m->behind_round)
        m->behind_round = 0; /* what is still written is dropped */
    if (journaled && wrote) {
        struct member_action *action = member_add(m, MEMBER_DISCARD_ROUND);
        action->generation = generation;
        action->round = round;
    }
    if (!round_is_serving(m, round) || m->view.mode == VIEW_END)
        return;
    if (again && m->view.mode != VIEW_OPEN) { /* the next freeze is the next event; its bound is the
                                                 same as after a freeze */
        part_move(m, PART_FROZEN);
        m->reported = true; /* nothing to report for this one */
        m->report_at = NEVER;
        m->step = -1;
        m->give_up_at = NEVER;
        m->thaw_at = m->now + THAW_MS;
        view_set(m, VIEW_WAIT);
        return;
    }
    bool awaits =
        m->cause == CAUSE_TERMINATION || (error_awaits_round(m) && m->error_round != round);
    if (m->error.status != MUSTER_OK && !again && awaits) {
        m->part = PART_NONE; /* the job's end is the next event: who leaves by it is begun again. Or
                                the freeze of the round that was announced with the error */
        m->thaw_at = m->give_up_at = NEVER;
        m->error_until = m->now + THAW_MS;
        view_open_or_end(m);
        return;
    }
    round_over_for_me(m);
}

void part_unchanged(struct member *m, uint64_t round, enum wire_cause cause, int64_t step)
{
    if (cause == CAUSE_TERMINATION) {
        char why[NOTICE_WORDS_MAX] = "the job is being terminated", text[NOTICE_WORDS_MAX + 64];
        notice_words(m, why, sizeof why); /* a notice of this process says more */
        if (step > 0)
            snprintf(text, sizeof text, "%s; step %lld is on disk already", why,
                     member_shown(m, step));
        else
            snprintf(text, sizeof text, "%s; no step was done, so there is nothing to save", why);
        member_end(m, MUSTER_PREEMPTED, true, -1, 0, step, text);
    } else if (round_is_serving(m, round)) {
        round_over_for_me(m);
    }
}

/* --- errors ----------------------------------------------------------------------------------- */

void step_failed(struct member *m, const struct member_input *in)
{
    struct wire_msg message = message_make(WIRE_ERROR);

    /* broken off because of another rank: that error is the first one */
    if (m->error.status != MUSTER_OK || (m->part == PART_FROZEN && m->abort_mode) ||
        m->part == PART_COMMITTED || m->view.mode == VIEW_END) {
        if (m->error.status != MUSTER_OK && m->part == PART_TO_STEP && m->done < m->step) {
            round_say_past(m); /* it begins no step any more, so S is out of reach */
            view_open_or_end(m);
        }
        report_if_quiet(m);
        return;
    }
    m->own_failure = true;
    const char *text = member_text(m, in->text);
    message.u.error = (struct wire_error){.code = in->code, .step = in->step, .text = text};
    request_put(m, &message);
    member_end(m, MUSTER_E_STEP, false, (int)m->options.rank, (int)in->code, in->step, text);
}

/* --- time ------------------------------------------------------------------------------------- */

/* When this process must leave without a checkpoint. A program that closes and that no round holds
 * is leaving with an end of its own, finished or failed, which the notice does not change. */
static int64_t round_own_margin_at(const struct member *m)
{
    int64_t deadline = notice_own_deadline(m);
    bool done_here = m->closing && no_round_holds(m);

    if (deadline == NEVER || m->view.mode == VIEW_END || m->part == PART_COMMITTED || done_here)
        return NEVER;
    return deadline - MARGIN_MS;
}

static void round_own_margin(struct member *m)
{
    if (m->now < round_own_margin_at(m))
        return;
    char text[384];

    snprintf(text, sizeof text,
             "NOT saved: the job is being terminated and no checkpoint was committed before this "
             "process's own deadline; %s",
             outcome_cost(m).text);
    member_end(m, MUSTER_PREEMPTED, true, -1, MUSTER_E_NOT_SAVED, -1, text);
}

static void member_round_end_preempted(struct member *m)
{
    char text[128];

    snprintf(text, sizeof text, "the job is being terminated; saved at step %lld, it resumes there",
             member_shown(m, m->step));
    member_end(m, MUSTER_PREEMPTED, true, -1, 0, m->step, text);
}

/* When this node gives up its way to S, or at S its wait for the save before, which the broker
 * bounds as long as there is one. */
static int64_t round_way_over_at(const struct member *m)
{
    int64_t unheard = m->heard_at + LOST_MS;

    if (m->part == PART_TO_STEP)
        return m->give_up_at;
    if (m->part != PART_CAPTURING)
        return NEVER;
    return m->give_up_at > unheard ? m->give_up_at : unheard;
}

/* Training must not hang on a dead broker. */
static void round_thaw(struct member *m)
{
    part_move(m, PART_THAWED);
    m->thaw_at = NEVER;
    if (m->error.status != MUSTER_OK)
        m->error_until = NEVER;
    view_open_or_end(m);
}

void part_tick(struct member *m)
{
    error_exit_look(m);
    if (m->now >= m->exit_at)
        error_exit(m);
    manifest_look(m);
    round_own_margin(m);
    if (m->view.mode == VIEW_END)
        return;
    if (m->part == PART_COMMITTED && m->now >= m->manifest_until)
        member_round_end_preempted(m);
    if (m->now >= m->join_until)
        member_end(m, MUSTER_E_JOIN, false, -1, 0, -1,
                   "the ranks of this job did not all join and restore in time, and the broker did "
                   "not say which");
    if (m->part == PART_FROZEN && m->now >= m->thaw_at)
        round_thaw(m);
    if (m->part == PART_FROZEN && m->now >= m->report_at)
        round_say_report(m);
    if (m->part == PART_TO_STEP && m->last_begun_at == m->now)
        m->give_up_at = m->now + round_own_way_ms(m);
    if (m->now >= round_way_over_at(m)) {
        round_over_for_me(m);
        if (m->view.mode != VIEW_END)
            part_move(m, PART_THAWED); /* the broker may wait longer: it is told when S is passed */
    }
    if (m->part == PART_CAPTURED && m->now >= m->give_up_at)
        round_over_for_me(m); /* its SAVED stays valid */
    if (m->part == PART_THAWED && m->step >= 0 && m->begun > m->step)
        round_say_past(m);
    if (m->policy_wait && m->now >= m->policy_until) {
        request_withdraw(m, m->policy_request);
        policy_over(m);
    }
    if (m->error_until != NEVER && m->now >= m->error_until) {
        m->error_until = NEVER;
        if (no_round_holds(m))
            view_open_or_end(m);
    }
}

int64_t round_wakeup(const struct member *m)
{
    int64_t times[] = {m->exit_at,
                       m->manifest != 0 && !m->manifest_writing ? m->manifest_ask_at : NEVER,
                       round_own_margin_at(m),
                       m->part == PART_COMMITTED ? m->manifest_until : NEVER,
                       m->view.mode != VIEW_END ? m->join_until : NEVER,
                       m->part == PART_FROZEN ? m->thaw_at : NEVER,
                       m->part == PART_FROZEN ? m->report_at : NEVER,
                       round_way_over_at(m),
                       m->part == PART_CAPTURED ? m->give_up_at : NEVER,
                       m->policy_wait ? m->policy_until : NEVER,
                       m->error_until};
    int64_t at = NEVER;

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (times[i] < at)
            at = times[i];
    return at;
}
