#include "client/tasks/task_parts.h"

#include "schema/limits.h"

static size_t task_parts_at_once(const struct task_window *window)
{
    return window->parts > 0 ? window->parts : TASK_PARTS_FIRST;
}

size_t task_parts_ahead(struct task_window *window)
{
    window->unheard = window->unheard_now;
    window->unheard_now = 0;
    return task_parts_at_once(window);
}

void task_parts_again(struct task_parts *parts)
{
    *parts = (struct task_parts){.have = parts->have, .sent = parts->have};
}

static int64_t task_parts_at_most(int64_t ms, int64_t most_ms)
{
    return ms < most_ms ? ms : most_ms;
}

/* Its place is for others meanwhile: one that is never answered well would hold it for ever. */
void task_parts_failed(struct task_parts *parts, int64_t now_ms)
{
    int64_t ms =
        parts->pause_ms > 0 ? task_parts_at_most(parts->pause_ms * 2, HEARTBEAT_MS) : RESEND_MIN_MS;

    task_parts_again(parts);
    parts->pause_ms = ms;
    parts->paused_to_ms = now_ms + ms;
}

/* A part that is still in a queue is not sent again. It may wait behind twice as many as the last
 * one that was timed. It takes at least as long as the one that is being timed has taken. */
static void task_parts_be_patient(struct task_parts *parts, const struct task_window *window,
                                  int64_t now_ms)
{
    int64_t ms = window->took_ms * 4;

    if (parts->timed_to > 0 && ms < now_ms - parts->timed_ms)
        ms = now_ms - parts->timed_ms;
    ms = ms < RESEND_MIN_MS ? RESEND_MIN_MS : task_parts_at_most(ms, TASK_PARTS_AGAIN_MAX_MS);
    parts->every_ms = ms;
    parts->at_ms = now_ms + ms;
}

/* How long at most between two of the same, once it is known what an answer takes. */
static int64_t task_parts_longest_ms(const struct task_window *window)
{
    int64_t ms = window->took_ms * 4;

    if (window->took_ms == 0)
        return TASK_PARTS_AGAIN_MAX_MS;
    return ms < HEARTBEAT_MS ? HEARTBEAT_MS : task_parts_at_most(ms, TASK_PARTS_AGAIN_MAX_MS);
}

/* They hold the place one after another, and after the last of them it is the others' for as long.
 */
static int64_t task_parts_leave_place_ms(const struct task_parts *parts,
                                         const struct task_window *window)
{
    return parts->every_ms * (window->unheard > 1 ? window->unheard : 1);
}

/* The first part alone, until it is answered: the others may be in a queue behind which it would
 * wait, too. One that was waited for twice leaves its place to other results: it may never be
 * answered, and they are. */
static void task_parts_overdue(struct task_parts *parts, struct task_window *window, size_t *ahead,
                               int64_t now_ms)
{
    parts->sent = parts->have;
    parts->late = true;
    if (parts->every_ms < task_parts_longest_ms(window))
        parts->every_ms = task_parts_at_most(parts->every_ms * 2, task_parts_longest_ms(window));
    parts->at_ms = now_ms + parts->every_ms;
    window->parts = 1;
    *ahead = *ahead > 0 ? 1 : 0;
    if (parts->again) {
        parts->paused_to_ms = now_ms + task_parts_leave_place_ms(parts, window);
        parts->left_ms = now_ms;
    }
    parts->again = true;
}

static size_t task_parts_under_way(const struct task_parts *parts)
{
    return (size_t)((parts->sent - parts->have + TASK_PART_MAX - 1) / TASK_PART_MAX);
}

/* Another one that was unheard was answered since this one left its place: so may this one be. */
static bool task_parts_is_paused(const struct task_parts *parts, const struct task_window *window,
                                 int64_t now_ms)
{
    bool answered = parts->again && window->answered_ms > parts->left_ms;

    return now_ms < parts->paused_to_ms && !answered;
}

void task_parts_say(struct task_parts *parts, struct task_window *window, uint64_t total,
                    size_t *ahead, int64_t now_ms, int64_t *wait_ms, task_part_fn *say, void *arg)
{
    bool any = false, late = parts->sent > parts->have && now_ms >= parts->at_ms;
    size_t sent;

    if (late)
        task_parts_overdue(parts, window, ahead, now_ms);
    window->unheard_now += parts->again;
    if (task_parts_is_paused(parts, window, now_ms)) {
        *wait_ms = task_parts_at_most(*wait_ms, parts->paused_to_ms - now_ms);
        return;
    }
    if (!late && parts->sent == parts->have)
        task_parts_be_patient(parts, window, now_ms);
    sent = task_parts_under_way(parts);
    *ahead -= sent < *ahead ? sent : *ahead;
    for (; *ahead > 0 && parts->sent < total; --*ahead) {
        uint64_t bytes = say(arg, parts->sent);

        if (bytes == 0) { /* no connection, or a full one: not long from now */
            *wait_ms = *wait_ms < RESEND_MIN_MS ? *wait_ms : RESEND_MIN_MS;
            break;
        }
        parts->sent += bytes;
        any = true;
    }
    if (any && parts->timed_to == 0) { /* the last one: it waits behind all others */
        parts->timed_to = parts->sent;
        parts->timed_ms = now_ms;
        parts->late = false;
    }
    if (parts->sent > parts->have && parts->at_ms - now_ms < *wait_ms)
        *wait_ms = parts->at_ms - now_ms;
}

/* A time that includes a repetition says less about the next answer: it is believed once, not four
 * times. */
static void task_parts_timed(struct task_window *window, int64_t took_ms, bool late)
{
    size_t parts = task_parts_at_once(window);

    window->took_ms = took_ms / (late ? 4 : 1) + 1;
    if (took_ms > TASK_PARTS_SLOW_MS)
        parts = parts > 1 ? parts / 2 : 1;
    else if (took_ms <= TASK_PARTS_SLOW_MS / 2)
        parts *= 2;
    window->parts = parts < TASK_PARTS_AHEAD ? parts : TASK_PARTS_AHEAD;
}

void task_parts_have(struct task_parts *parts, struct task_window *window, uint64_t have,
                     int64_t now_ms)
{
    if (have == parts->have)
        return; /* of one that came behind a gap */
    if (have < parts->have) {
        parts->sent = have;
        parts->timed_to = 0;
    }
    parts->have = have;
    if (parts->again)
        window->answered_ms = now_ms;
    parts->again = false;
    parts->pause_ms = parts->paused_to_ms = 0;
    if (parts->sent < have) /* the first was sent again while it was on its way */
        parts->sent = have;
    if (parts->timed_to > 0 && have >= parts->timed_to) {
        task_parts_timed(window, now_ms - parts->timed_ms, parts->late);
        parts->timed_to = 0;
    }
    task_parts_be_patient(parts, window, now_ms);
}
