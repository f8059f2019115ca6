/* member_leave - the closing rule (R8.5). A process that closes stays while the broker, heard
 * within LOST_MS, needs it; then it says LEAVE and stays for the answer. It never stays beyond its
 * own deadline less the margin, nor beyond `stays_until`. A round that holds it as at any boundary
 * has bounds of its own. */
#include "node/core/member_state.h"

/* A save behind is given up then in any case: the process is about to be killed. */
int64_t member_give_up_boot_ms(const struct member *m)
{
    int64_t deadline = notice_own_deadline(m);

    return deadline == NEVER ? NEVER : deadline - MARGIN_MS;
}

/* Silence while this process did not run is nobody's: it heard nothing because it did not listen */
void hearing_look(struct member *m, int64_t now)
{
    int64_t due = member_wakeup_boot_ms(m);
    int64_t late = now - (due > m->now ? due : m->now);

    if (due != NEVER && late > LOOP_GAP_MS)
        m->heard_at = m->heard_at + late < now ? m->heard_at + late : now;
}

/* Not for a step that it will not come to: its LEAVE is what the others wait for. */
static bool leave_round_holds(const struct member *m)
{
    bool beyond_it = m->part == PART_TO_STEP && m->done < m->step;

    if (m->unfit || m->view.mode == VIEW_END)
        return false;
    return m->gate_use != GATE_NO_USE || (!no_round_holds(m) && !beyond_it);
}

/* Where it may have to write the manifest, a step that it will not come to is no reason to go
 * before the commit: nobody else writes it then. */
static bool leave_hinders_step(const struct member *m)
{
    bool writes_manifest = m->options.layout == LAYOUT_REPLICATED || m->options.rank == 0;

    return m->part == PART_TO_STEP && !(writes_manifest && outcome_awaited(m));
}

/* By what the broker told: a save of its own without SAVED, a manifest to write, a round, or what
 * came of its save. A member without a part to write waits for the verdict, too: a notice may still
 * join that round. While others wait for its LEAVE (they save, or the next launch begins) it hears
 * what is decided already, and no more. */
static bool leave_is_needed(const struct member *m)
{
    bool error_follows = m->error.status != MUSTER_OK && m->error_until != NEVER && !m->unfit;
    bool others_wait = leave_hinders_step(m) || m->view.mode == VIEW_END || m->unfit;
    bool unheard = m->pending_count > 0 || m->known_seq > m->applied_seq;
    bool manifest = m->manifest != 0 && m->now < m->manifest_late;
    bool verdict = m->part == PART_CAPTURED && !m->unfit;

    if (m->behind_round != 0 || manifest || verdict || leave_round_holds(m))
        return true;
    return (outcome_awaited(m) && (unheard || !others_wait)) || (error_follows && !others_wait);
}

/* R8.5: the one answer to "until when does it stay?", needed or waiting for LEAVE's answer. */
static int64_t leave_until(const struct member *m)
{
    int64_t until = member_give_up_boot_ms(m), silent = m->heard_at + LOST_MS;

    if (leave_round_holds(m))
        return until;
    if (m->behind_round == 0 && m->stays_until < until)
        until = m->stays_until;
    return m->view.joined && silent < until ? silent : until;
}

static void leave_say(struct member *m)
{
    struct wire_msg message = message_make(WIRE_LEAVE);
    bool finished = m->why == LEAVE_FINISHED && m->view.end.code == MUSTER_E_NOT_SAVED;
    enum wire_leave_why why = m->view.leave_restart && !finished ? LEAVE_PREEMPTED : m->why;

    message.u.leave = (struct wire_leave){.why = why, .code = m->exit_code, .done = m->done};
    m->leave_request = request_put(m, &message); /* 0: too many wait; tried again, not for ever */
    if (m->leave_request > 0)
        m->stays_until = m->now + ENDING_MS;
}

void member_leave(struct member *m)
{
    if (!m->closing || m->view.left)
        return;
    if (m->link == LINK_JOINED && m->leave_request == 0 &&
        (!leave_is_needed(m) || m->now >= leave_until(m)))
        leave_say(m);
    bool answered = m->leave_request > 0 && !request_waits(m, m->leave_request);
    if (m->link == LINK_OVER || answered || m->now >= leave_until(m))
        m->view.left = m->view_changed = true;
}

int64_t leave_wakeup(const struct member *m)
{
    int64_t until = leave_until(m);
    bool manifest = m->manifest != 0 && m->now < m->manifest_late && m->leave_request == 0;

    if (!m->closing || m->view.left)
        return NEVER;
    return manifest && m->manifest_late < until ? m->manifest_late : until;
}
