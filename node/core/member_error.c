/* member_error - errors of others, and a step that does not return: it is to be broken off, or the
 * process ended. */
#include "node/core/member_state.h"

#include <stdio.h>

void error_ask(struct member *m, enum muster_status status, int rank, int code, int64_t step,
               const char *text)
{
    struct member_action *action = member_add(m, MEMBER_ON_ERROR);

    action->error =
        (struct muster_error){.status = status, .rank = rank, .code = code, .step = step};
    snprintf(action->error.text, sizeof action->error.text, "%s", member_text(m, text));
}

/* The training thread is in a save: what is written behind it keeps it from nothing. */
bool error_in_save(const struct member *m)
{
    return m->saving_round != 0 && m->saving_round != m->written_behind;
}

/* The step, or the save, is to be broken off; if it never returns the process is ended. */
static void error_arm_exit(struct member *m, bool restart)
{
    int64_t at = m->now + m->options.abort_timeout_ms;
    int64_t deadline = notice_own_deadline(m);

    if (deadline != NEVER && deadline - MARGIN_MS < at)
        at = deadline - MARGIN_MS;
    if (at < m->now + MARGIN_MS / 2)
        at = m->now + MARGIN_MS / 2; /* on_error is given a moment */
    if (at < m->exit_at)
        m->exit_at = at;
    m->exit_restart = restart;
    m->exit_begun = m->begun;
    m->exit_bytes = error_in_save(m) ? m->saving_bytes : 0;
}

/* Extend the exit timer while the save makes progress, up to this process's deadline. A node that
 * is found in a save once its end is settled is asked to break off, too: that save may have begun
 * when nobody had told of the end yet. */
void error_exit_look(struct member *m)
{
    bool came_back = m->begun == m->done && !error_in_setup(m) && !error_in_save(m);

    if (m->exit_at == NEVER) {
        if (m->view.mode == VIEW_END && error_in_save(m) && !m->exit_asked)
            error_break_off(m, &m->view.end, m->view.leave_restart);
        return;
    }
    if (came_back || m->begun != m->exit_begun) {
        m->exit_at = NEVER; /* the end arms it again for a later one */
        return;
    }
    if (error_in_save(m) && m->saving_bytes > m->exit_bytes && m->now < member_give_up_boot_ms(m)) {
        m->exit_at = NEVER;
        error_arm_exit(m, m->exit_restart);
    }
}

static bool error_has_stepped(const struct member *m)
{
    return m->view.started && m->begun > m->view.resume_step;
}

/* Its end is settled and it has not begun its first step: the program may be setting up what it
 * shares with ranks that will not come. (After a step nobody knows what it does between two
 * boundaries.) */
bool error_in_setup(const struct member *m)
{
    return m->view.mode == VIEW_END && !error_has_stepped(m) && !m->closing;
}

/* A step in flight, or a save that gathers what its peers have, would wait for ever: they leave
 * too. Judged by what the gate's closing gave: a begun that was read earlier may be one behind. */
void error_break_off(struct member *m, const struct muster_error *why, bool restart)
{
    bool in_step = m->begun > m->done;

    if (!in_step && !error_in_setup(m) && !error_in_save(m))
        return;
    if (!m->broken_off && (in_step || m->restored))
        error_ask(m, why->status, why->rank, why->code, why->step, why->text);
    m->broken_off = true;
    error_arm_exit(m, restart);
}

void error_heard(struct member *m, int rank, int code, int64_t step, const char *text,
                 uint64_t round_follows)
{
    if (m->error.status != MUSTER_OK && error_awaits_round(m) && round_follows != 0)
        m->error_round = round_follows; /* the one that was awaited may need who is lost now, too */
    if (m->error.status != MUSTER_OK || m->view.mode == VIEW_END || m->part == PART_COMMITTED)
        return; /* the first one wins */
    m->error =
        (struct muster_error){.status = MUSTER_E_PEER, .rank = rank, .code = code, .step = step};
    snprintf(m->error.text, sizeof m->error.text, "%s", member_text(m, text));
    error_ask(m, MUSTER_E_PEER, rank, code, step, text);
    if (m->begun > m->done)
        error_arm_exit(m, false);
    m->broken_off = true;
    if (round_follows != 0) {
        m->error_round = round_follows;
        bool idle = m->part == PART_NONE || m->part == PART_THAWED;
        m->error_until = m->now + (idle ? THAW_MS : GIVE_UP_MS);
        if (m->part == PART_FROZEN && m->round != round_follows && m->thaw_at < m->now + THAW_MS)
            m->thaw_at = m->now + THAW_MS; /* the wait for another round is not the wait for this */
        if (idle || m->view.mode == VIEW_OPEN) { /* captured already: no further step */
            close_gate(m, GATE_NO_USE);
            view_set(m, VIEW_WAIT);
        }
        return;
    }
    m->error_until = NEVER;
    member_end(m, MUSTER_E_PEER, false, rank, code, step, text);
}

bool error_awaits_round(const struct member *m)
{
    return m->error_until != NEVER;
}

/* Nobody waits for the answer. */
void error_exit(struct member *m)
{
    struct wire_msg message = message_make(WIRE_LEAVE);

    if (m->options.exit_allowed && m->link == LINK_JOINED && m->leave_request == 0) {
        message.u.leave =
            (struct wire_leave){.why = m->exit_restart ? LEAVE_PREEMPTED : LEAVE_ERROR,
                                .code = m->exit_restart ? m->options.restart_code : EXIT_FAILURE,
                                .done = m->done};
        m->leave_request = request_put(m, &message);
    }
    member_add(m, MEMBER_EXIT_PROCESS)->restart = m->exit_restart;
    m->exit_at = NEVER;
    m->exit_asked = true;
}
