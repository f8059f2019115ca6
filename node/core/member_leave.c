/* member_leave - when a node that closes may leave: it says LEAVE when no round needs it any more.
 */
#include "node/core/member_state.h"

/* What is written behind is given up then, whatever else: the process is about to be killed. */
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

/* What came of a save is waited for as at S; but for a moment only if others wait for this LEAVE,
 * if the job is over here, or if the end of that round may have been missed: then a commit that is
 * not heard in time is written down by the next launch. */
static int64_t outcome_until(const struct member *m, bool sure)
{
    bool others_wait = m->part == PART_TO_STEP && m->done < m->step;

    if (others_wait && m->walk_from > m->outcome_from)
        return m->walk_from + MANIFEST_WAIT_MS; /* what is awaited may be under way */
    if (m->unfit || m->view.mode == VIEW_END || others_wait || !sure)
        return m->outcome_from + MANIFEST_WAIT_MS;
    return m->outcome_from + GIVE_UP_MS;
}

/* Until when a save of this node's keeps it, if the broker is not heard again; 0 = none does. LEAVE
 * comes after its SAVED, because who left is not waited for; and after its outcome, because the
 * manifest may be this node's to write, however many rounds followed. */
static int64_t kept_until(const struct member *m)
{
    int64_t until = member_give_up_boot_ms(m);
    int64_t unheard = m->heard_at + LOST_MS;
    bool sure;

    if (m->link != LINK_JOINED || (!outcome_awaited(m, &sure) && m->behind_round == 0))
        return 0;
    if (m->behind_round == 0 && outcome_until(m, sure) < until)
        until = outcome_until(m, sure);
    return unheard < until ? unheard : until;
}

/* The same of a manifest, of all that wait to be written: a broker that is silent gives none of
 * them. What is not written in time is written by the next launch. */
static int64_t manifest_kept_until(const struct member *m)
{
    int64_t until = member_give_up_boot_ms(m);
    int64_t unheard = m->heard_at + ENDING_MS;

    if (m->manifest == 0)
        return 0;
    if (m->manifest_late < until)
        until = m->manifest_late;
    return m->manifest_writing || until < unheard ? until : unheard;
}

static bool something_keeps_it(const struct member *m)
{
    bool manifest = m->now < manifest_kept_until(m);

    if (m->now < kept_until(m))
        return true;
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
        return manifest; /* a step that it will not come to: the others wait for it until it says so
                          */
    case PART_CAPTURED:  /* its commit may be this node's to write down; bounded by give_up_at */
        return m->cause == CAUSE_TERMINATION ||
               (m->link == LINK_JOINED && m->behind_round != m->round &&
                m->now - m->heard_at < LOST_MS);
    default:
        break;
    }
    return manifest || (m->error.status != MUSTER_OK && m->error_until != NEVER);
}

/* How long LEAVE waits for its answer. Near the end of this process's own time it is killed
 * meanwhile, and who was not heard for long will not answer now. */
static int64_t leave_wait_ms(const struct member *m)
{
    int64_t end = member_give_up_boot_ms(m);
    int64_t last = m->now - m->heard_at < LOST_MS ? (MARGIN_MS / 4) : 0;

    if (end == NEVER || m->now + HEARTBEAT_MS < end)
        return HEARTBEAT_MS;
    return m->now < end ? end - m->now + last : last;
}

/* It was put when the broker was not heard for long, and that has not got it and is heard again:
 * what this node waited for may come now. If nothing keeps it any more LEAVE is said anew. */
void leave_take_back(struct member *m)
{
    if (m->leaves_taken_back == LEAVES_TAKEN_BACK_MAX)
        return; /* a broker that does not stay: this one is said to each, and waits no longer */
    m->leaves_taken_back++;
    request_withdraw(m, m->leave_request);
    m->leave_request = 0;
    m->left_until = NEVER;
}

/* The broker lives, and keeps nothing: it would take who leaves unheard for lost, and its job for
 * failed. */
void leave_is_not_stored(struct member *m)
{
    int64_t until = m->leave_from + ENDING_MS, end = member_give_up_boot_ms(m);

    if (m->leave_request == 0)
        return;
    if (m->now + HEARTBEAT_MS + HEARTBEAT_MS < until)
        until = m->now + HEARTBEAT_MS + HEARTBEAT_MS;
    if (until > end)
        until = end;
    if (until > m->left_until)
        m->left_until = until;
}

/* A notice that comes while LEAVE waits for its answer: no longer than leave_wait_ms() would have
 * said then. */
static void leave_in_time(struct member *m)
{
    int64_t last = member_give_up_boot_ms(m);

    if (m->leave_request == 0 || m->left_until == NEVER || last == NEVER)
        return;
    last = (last > m->leave_from ? last : m->leave_from) + (MARGIN_MS / 4);
    if (last < m->left_until)
        m->left_until = last;
}

/* The driver bounds close, too, but not what this core bounds: what it is to write, and LEAVE,
 * which has its bound from when it is put, or from when the broker was found to be away. */
static void say_kept(struct member *m)
{
    bool told = m->left_until != NEVER && m->now < m->left_until;
    bool writes =
        m->leave_request == 0 && (m->now < kept_until(m) || m->now < manifest_kept_until(m));
    bool kept = told || writes;

    m->view_changed |= kept != m->view.kept;
    m->view.kept = kept;
}

/* A request without a number is answered so to who has left: LEAVE was under way when it was taken
 * back. */
void leave_taken(struct member *m)
{
    m->view.left = true;
    m->view.kept = false;
    m->view_changed = true;
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
        if (m->leave_request > 0 || m->left_until == NEVER) {
            m->leave_from = m->now;
            m->left_until = m->now + leave_wait_ms(m);
        }
    }
    if (m->link == LINK_JOINED && m->leave_request == 0 && !may_leave)
        m->left_until = NEVER; /* it came back in time: LEAVE can be said */
    bool unreachable = m->link != LINK_JOINED && m->left_until == NEVER &&
                       (m->view.mode == VIEW_END || m->part == PART_NONE ||
                        m->part == PART_THAWED || !something_keeps_it(m));
    if (unreachable)
        m->left_until =
            m->now + leave_wait_ms(m); /* the broker is away: it will find out by silence */
    leave_in_time(m);
    bool answered = m->leave_request > 0 && !request_waits(m, m->leave_request);
    bool never_in = !m->view.joined && m->link == LINK_HELLO && !m->hello_open;
    if (m->link == LINK_OVER || never_in || answered ||
        (m->left_until != NEVER && m->now >= m->left_until)) {
        leave_taken(m);
    } else {
        say_kept(m);
    }
}

int64_t leave_wakeup(const struct member *m)
{
    int64_t at = m->left_until, manifest = manifest_kept_until(m);

    if (!m->closing || m->view.left)
        return NEVER;
    if (m->leave_request > 0)
        return at;
    if (m->now < kept_until(m) && kept_until(m) < at)
        at = kept_until(m);
    if (m->now < manifest && manifest < at)
        at = manifest;
    return at;
}
