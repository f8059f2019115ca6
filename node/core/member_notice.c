/* member_notice - this process's own notices: kept until they are withdrawn, and sent as soon as
 * there is room. */
#include "node/core/member_state.h"
#include "schema/rules/plan.h"

#include <stdio.h>

int64_t notice_own_deadline(const struct member *m)
{
    int64_t deadline = NEVER;

    for (size_t i = 0; i < m->notices_count; i++)
        if (m->notices[i].termination && !m->notices[i].withdrawn &&
            m->notices[i].deadline_boot_ms > 0 && m->notices[i].deadline_boot_ms < deadline)
            deadline = m->notices[i].deadline_boot_ms;
    return deadline;
}

void notice_words(const struct member *m, char *ret_text, size_t size)
{
    for (size_t i = 0; i < m->notices_count; i++) {
        const struct own_notice *notice = &m->notices[i];
        if (!notice->termination || notice->withdrawn)
            continue;
        snprintf(ret_text, size, "told to end by %s: %s", notice->source, notice->text);
        return;
    }
}

bool member_ends_soon(const struct member *m, int64_t now_boot_ms, char *ret_why, size_t size)
{
    for (size_t i = 0; i < m->notices_count; i++) {
        const struct own_notice *notice = &m->notices[i];
        bool guess = (notice->flags & NOTICE_FLAG_AT_ONCE) != 0;
        if (notice->termination && !notice->withdrawn &&
            (guess || notice->deadline_boot_ms <= now_boot_ms + GRACE_DEFAULT_MS)) {
            snprintf(ret_why, size, "%s: %s", notice->source, notice->text);
            return true;
        }
    }
    return false;
}

static struct own_notice *notice_find(struct member *m, const char *id)
{
    for (size_t i = 0; i < m->notices_count; i++)
        if (strcmp(m->notices[i].id, id) == 0)
            return &m->notices[i];
    return NULL;
}

/* Room for one with this deadline: a free place, or that of the one with the latest deadline, which
 * the broker was told too. Notices are kept here for HELLO and for this process's own deadline. */
static struct own_notice *notice_place(struct member *m, const struct member_input *in,
                                       int64_t deadline)
{
    struct own_notice *latest = &m->notices[0];

    if (m->notices_count < NOTICES_NODE_MAX)
        return &m->notices[m->notices_count++];
    for (size_t i = 1; i < m->notices_count; i++)
        if (!m->notices[i].termination ||
            (latest->termination && m->notices[i].deadline_boot_ms > latest->deadline_boot_ms))
            latest = &m->notices[i];
    if (wire_notice_ends(in->notice_kind) &&
        (!latest->termination || deadline < latest->deadline_boot_ms))
        return latest;
    member_log(m, 1, "a further notice (%s) is not told: %d are known already", in->id,
               NOTICES_NODE_MAX);
    return NULL;
}

static void notice_fill(struct member *m, struct own_notice *notice, const struct member_input *in,
                        int64_t deadline, bool too_short)
{
    memset(notice, 0, sizeof *notice);
    snprintf(notice->id, sizeof notice->id, "%s", in->id);
    snprintf(notice->source, sizeof notice->source, "%s", in->source ? in->source : "");
    const char *note = too_short ? " (that has passed, or is too short to save in)" : "";
    char *text = wire_text_fit(&m->out->arena, in->text, sizeof notice->text - 1 - strlen(note));
    snprintf(notice->text, sizeof notice->text, "%s%s", text ? text : "", note);
    notice->kind = in->notice_kind;
    notice->cancellable = in->cancellable;
    notice->termination = wire_notice_ends(in->notice_kind);
    notice->deadline_boot_ms = deadline;
}

static uint64_t notice_flags(const struct member *m, const struct plan_left *left)
{
    return (m->options.save_on_notice ? NOTICE_FLAG_SAVE_NOW : 0) |
           (left->by_option ? NOTICE_FLAG_GRACE_PERIOD : 0) |
           (left->assumed ? NOTICE_FLAG_ASSUMED : 0) | (left->at_once ? NOTICE_FLAG_AT_ONCE : 0);
}

static void notice_say_too_short(struct member *m, const struct member_input *in)
{
    bool told = in->left_ms >= 0 && in->left_ms < LEAST_LEAD_MS;

    member_log(m, 2,
               "notice %s: %s %lld ms, in which nothing could be saved. So the time left counts as "
               "unknown, and what is new since the last save is saved at once",
               in->id, told ? "it leaves" : "grace_period_ms is",
               (long long)(told ? in->left_ms : m->options.grace_period_ms));
}

/* Said at once, whatever the training thread does. An id that is known counts again if its deadline
 * is earlier now, or if it ends this process now and did not before. */
void notice_put(struct member *m, const struct member_input *in)
{
    struct own_notice *notice = notice_find(m, in->id);
    bool ends = wire_notice_ends(in->notice_kind);
    struct plan_left left =
        plan_left_of(in->left_ms, m->options.grace_period_ms, in->notice_kind == NOTICE_SIGNAL);
    int64_t deadline = m->now + left.ms;
    bool again = notice != NULL && notice->withdrawn; /* before its withdrawal could be told */
    if (notice != NULL && !again && notice->termination == ends &&
        (left.too_short || in->left_ms < 0 || deadline >= notice->deadline_boot_ms))
        return;
    if (notice != NULL && notice->termination && !ends && !again)
        return;
    if (notice == NULL)
        notice = notice_place(m, in, deadline);
    if (notice == NULL)
        return;
    if (left.too_short)
        notice_say_too_short(m, in);
    notice_fill(m, notice, in, deadline, left.too_short);
    notice->flags = notice_flags(m, &left);
    if (notice->termination) {
        m->view.termination_seen = true;
        m->view_changed = true;
    }
    notice->unsaid = true;
}

static bool notice_say(struct member *m, const struct own_notice *notice)
{
    struct wire_msg message = message_make(notice->withdrawn ? WIRE_CANCEL : WIRE_NOTICE);
    int64_t left = notice->deadline_boot_ms - m->now;

    if (notice->withdrawn)
        message.u.cancel.id = notice->id;
    else
        message.u.notice = (struct wire_notice){.id = notice->id,
                                                .kind = notice->kind,
                                                .source = notice->source,
                                                .left_ms = left > 0 ? left : 0,
                                                .cancellable = notice->cancellable,
                                                .text = notice->text,
                                                .rank = (int64_t)m->options.rank,
                                                .flags = notice->flags};
    return request_put(m, &message) > 0;
}

/* Notices that come and go while the broker is away must not take the room of a round's answers. */
void notices_say(struct member *m)
{
    for (size_t i = 0; i < m->notices_count && m->pending_count < PENDING_NOTICE_MAX;) {
        struct own_notice *notice = &m->notices[i];

        if (!notice->unsaid || !notice_say(m, notice)) {
            i++;
            continue;
        }
        notice->unsaid = false;
        if (notice->withdrawn)
            notice_forget(m, notice->id); /* the next one has its place now */
        else
            i++;
    }
}

bool notice_forget(struct member *m, const char *id)
{
    struct own_notice *notice = notice_find(m, id);

    if (notice == NULL)
        return false;
    size_t after = m->notices_count - (size_t)(notice - m->notices) - 1;
    memmove(notice, notice + 1, after * sizeof *notice);
    m->notices_count--;
    return true;
}

bool notice_is_being_told(struct member *m, const char *id)
{
    const struct own_notice *notice = notice_find(m, id);

    for (size_t i = 0; i < m->pending_count; i++)
        if (m->pending[i]->message.type == WIRE_NOTICE &&
            strcmp(m->pending[i]->message.u.notice.id, id) == 0)
            return true;
    return notice != NULL && notice->unsaid;
}

/* The broker shall not hear a notice that it has not taken yet: NOTICE would freeze before CANCEL
 * came. */
static void notice_unsay(struct member *m, const char *id)
{
    for (size_t i = 0; i < m->pending_count; i++) {
        const struct wire_msg *message = &m->pending[i]->message;
        if (message->type == WIRE_NOTICE && strcmp(message->u.notice.id, id) == 0)
            request_withdraw(m, message->up.request);
    }
}

void notice_drop(struct member *m, const char *id)
{
    struct own_notice *notice = notice_find(m, id);

    if (notice == NULL)
        return;
    notice_unsay(m, id);
    notice->withdrawn = notice->unsaid = true;
}

/* --- the end that is announced ---------------------------------------------------------------- */

#define ANNOUNCED_SAME_MS 100 /* two words of one moment: messages take their time */

void notices_told(struct member *m, const struct wire_alive *alive)
{
    m->told = (struct member_announced){.kind = alive->notice_kind};
    if (alive->notice_kind == NOTICE_NONE)
        return;
    m->told.rank = alive->notice_rank;
    if (alive->notice_left_ms >= 0)
        m->told.deadline_boot_ms = m->now + alive->notice_left_ms;
    if (alive->notice_save_ms >= 0)
        m->told.save_boot_ms = m->now + alive->notice_save_ms;
}

static bool notice_comes_before(const struct member_announced *one,
                                const struct member_announced *other)
{
    if (other->kind == NOTICE_NONE || other->deadline_boot_ms == 0)
        return other->kind == NOTICE_NONE || one->deadline_boot_ms > 0;
    return one->deadline_boot_ms > 0 && one->deadline_boot_ms < other->deadline_boot_ms;
}

void notices_heard(struct member *m, uint64_t kind, int64_t rank, int64_t left_ms)
{
    const struct member_announced heard = {
        .kind = kind, .rank = rank, .deadline_boot_ms = left_ms >= 0 ? m->now + left_ms : 0};

    if (notice_comes_before(&heard, &m->told))
        m->told = heard;
}

static bool notice_is_same_moment(int64_t one, int64_t other)
{
    return (one == 0) == (other == 0) && one - other <= ANNOUNCED_SAME_MS &&
           other - one <= ANNOUNCED_SAME_MS;
}

void notices_announce(struct member *m)
{
    struct member_announced now = m->told, *shown = &m->view.announced;

    for (size_t i = 0; i < m->notices_count; i++) {
        const struct member_announced own = {.kind = m->notices[i].kind,
                                             .rank = (int64_t)m->options.rank,
                                             .deadline_boot_ms = m->notices[i].deadline_boot_ms};
        if (m->notices[i].termination && !m->notices[i].withdrawn &&
            notice_comes_before(&own, &now))
            now = own;
    }
    if (now.kind == shown->kind && now.rank == shown->rank &&
        notice_is_same_moment(now.deadline_boot_ms, shown->deadline_boot_ms) &&
        notice_is_same_moment(now.save_boot_ms, shown->save_boot_ms))
        return;
    *shown = now;
    m->view_changed = true;
}
