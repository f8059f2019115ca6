/* member_leave - when a node that closes may leave: it says LEAVE when no round needs it any more. */
#include "node/core/member_state.h"

/* What is written behind is given up then, whatever else: the process is about to be killed. */
int64_t member_give_up_boot_ms(const struct member *m)
{
    int64_t deadline = notice_own_deadline(m);

    return deadline == NEVER ? NEVER : deadline - MARGIN_MS;
}

static bool something_keeps_it(const struct member *m)
{
    bool manifest = m->manifest != 0 && m->now < m->manifest_late;
    bool behind =
        m->behind_round != 0 && m->now < member_give_up_boot_ms(m) && m->link == LINK_JOINED;

    if (behind)
        return true; /* LEAVE comes after its SAVED: who left is not waited for */
    if (m->unfit)
        return false;
    if (m->view.mode == VIEW_END)
        return manifest;
    if (m->gate_use != GATE_NO_USE)
        return true; /* a freeze or a decision is on its way through the gate */
    switch (m->part) {
    case PART_FROZEN:
    case PART_CAPTURING:
    case PART_COMMITTED:
        return true;
    case PART_TO_STEP:
        if (m->done == m->step)
            return true;
        return manifest; /* a step that it will not come to: the others wait for it until it says so */
    case PART_CAPTURED: /* its commit may be this node's to write down; bounded by give_up_at */
        return m->cause == CAUSE_TERMINATION || m->link == LINK_JOINED;
    default:
        break;
    }
    return manifest || (m->error.status != MUSTER_OK && m->error_until != NEVER);
}

void member_leave(struct member *m)
{
    if (!m->closing || m->view.left)
        return;
    bool may_leave = m->link == LINK_JOINED && !something_keeps_it(m);
    if (m->leave_request == 0 && may_leave) {
        struct wire_msg message = message_make(WIRE_LEAVE);
        bool finished = m->why == LEAVE_FINISHED && m->view.end.code == MUSTER_E_NOT_SAVED;
        enum wire_leave_why why = m->view.mode == VIEW_END && m->view.leave_restart && !finished
                                      ? LEAVE_PREEMPTED
                                      : m->why;
        message.u.leave = (struct wire_leave){.why = why, .code = m->exit_code, .done = m->done};
        m->leave_request =
            request_put(m, &message); /* 0: too many wait; tried again, not for ever */
        if (m->leave_request > 0 || m->left_until == NEVER)
            m->left_until = m->now + LEAVE_MS;
    }
    if (m->link == LINK_JOINED && m->leave_request == 0 && !may_leave)
        m->left_until = NEVER; /* it came back in time: LEAVE can be said */
    bool unreachable = m->link != LINK_JOINED && m->left_until == NEVER &&
                       (m->view.mode == VIEW_END || m->part == PART_NONE ||
                        m->part == PART_THAWED || !something_keeps_it(m));
    if (unreachable)
        m->left_until = m->now + LEAVE_MS; /* the broker is away: it will find out by silence */
    bool answered = m->leave_request > 0 && !request_waits(m, m->leave_request);
    bool never_in = !m->view.joined && m->link == LINK_HELLO && !m->hello_open;
    if (m->link == LINK_OVER || never_in || answered ||
        (m->left_until != NEVER && m->now >= m->left_until)) {
        m->view.left = true;
        m->view_changed = true;
    }
}
