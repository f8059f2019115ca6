/* member_unheard - what the log says when no broker is heard: what this rank does, and what needs
 * the broker. */
#include "node/core/member_state.h"

#include <stdio.h>

#define SAYS_SIZE 256

static int64_t unheard_seconds_to(const struct member *m, int64_t at)
{
    return at > m->now ? (at - m->now) / 1000 : 0;
}

static bool unheard_wrote(const struct member *m)
{
    return save_last(m)->round == m->round && save_last(m)->code == MUSTER_OK;
}

/* Its thread is held for the verdict. */
static bool unheard_is_held(const struct member *m)
{
    return m->part == PART_CAPTURED && m->give_up_at != NEVER;
}

/* Captured, and held for the verdict: by its own deadline it leaves, by the bound of the wait it
 * goes on. */
static void unheard_held_says(const struct member *m, char ret_text[SAYS_SIZE])
{
    int64_t leaves = notice_own_deadline(m);
    bool first = leaves != NEVER && leaves - MARGIN_MS < m->give_up_at;
    int64_t until = first ? leaves - MARGIN_MS : m->give_up_at;

    snprintf(ret_text, SAYS_SIZE,
             "this rank is held at step %lld%s until that is committed; without a broker it %s in "
             "%lld s",
             member_shown(m, m->step), unheard_wrote(m) ? ", its shard is written," : "",
             first        ? "leaves"
             : m->closing ? "closes"
                          : "trains on",
             (long long)unheard_seconds_to(m, until));
}

/* True: the round that this rank is in says what it does. */
static bool unheard_round_says(const struct member *m, char ret_text[SAYS_SIZE])
{
    long long step = member_shown(m, m->step);

    if (unheard_is_held(m))
        unheard_held_says(m, ret_text);
    else if (m->part == PART_CAPTURING)
        snprintf(ret_text, SAYS_SIZE, "step %lld is being saved, and the commit waits for it",
                 step);
    else if (m->part == PART_TO_STEP && m->done < m->step && !m->closing)
        snprintf(
            ret_text, SAYS_SIZE,
            "training goes on to step %lld, where a save is agreed on, and the commit waits for it",
            step);
    else if (m->part == PART_COMMITTED)
        snprintf(ret_text, SAYS_SIZE,
                 "the job's checkpoint is committed, and this rank leaves in %lld s at most",
                 (long long)unheard_seconds_to(m, m->manifest_until));
    else if (m->part == PART_FROZEN)
        snprintf(ret_text, SAYS_SIZE, "this rank waits for an agreement for %lld s more",
                 (long long)unheard_seconds_to(m, m->thaw_at));
    else
        return false;
    return true;
}

static void unheard_says(const struct member *m, char ret_text[SAYS_SIZE])
{
    if (unheard_round_says(m, ret_text))
        return;
    if (m->closing)
        snprintf(ret_text, SAYS_SIZE, "this rank closes, and soon leaves without it");
    else if (!m->view.started)
        snprintf(ret_text, SAYS_SIZE, "no step begins until it is back");
    else if (m->error.status != MUSTER_OK)
        snprintf(ret_text, SAYS_SIZE, "another rank failed, and this one ends in %lld s at most",
                 (long long)unheard_seconds_to(m, m->error_until));
    else
        snprintf(ret_text, SAYS_SIZE,
                 "training goes on, and nothing is saved by agreement until it is back");
}

/* Once a silence: what is not saved meanwhile nobody else can tell of. */
static void unheard_say(struct member *m)
{
    char text[SAYS_SIZE];

    if (m->unheard_said || m->link == LINK_OVER || !m->view.joined || m->view.mode == VIEW_END ||
        m->view.left || m->now - m->heard_at < LOST_MS)
        return;
    m->unheard_said = m->view.unheard = m->view_changed = true;
    unheard_says(m, text);
    member_log(m, 1, "no broker was heard for %lld s: %s; start musterd with its database again",
               (long long)(m->now - m->heard_at) / 1000, text);
}

/* Told to end: does its end wait for the broker? Not once that is committed, nor if it closes and
 * no round keeps it. */
static bool unheard_end_waits(const struct member *m)
{
    bool kept = unheard_is_held(m) || m->part == PART_CAPTURING || m->part == PART_FROZEN;

    return m->view.mode != VIEW_END && m->part != PART_COMMITTED && (kept || !m->closing);
}

/* Facts for a person who looks at a process that should be gone. Told once per silence. */
static void unheard_say_told_to_end(struct member *m)
{
    int64_t deadline = notice_own_deadline(m);
    int64_t silent = m->now - m->heard_at;
    bool decided = m->part == PART_TO_STEP || m->part == PART_CAPTURING || m->part == PART_CAPTURED;
    char save[64] = "a save is agreed on";

    if (deadline == NEVER || silent < LOST_MS || !m->view.joined) {
        m->silence_said = false;
        return;
    }
    if (m->silence_said || !unheard_end_waits(m) || m->now >= deadline - MARGIN_MS)
        return;
    m->silence_said = true;
    if (decided)
        snprintf(save, sizeof save, "the save of step %lld is committed", member_shown(m, m->step));
    member_log(
        m, 1,
        "told to end in %lld s, and no broker was heard for %lld s: %s as soon as it is back "
        "(start musterd with its database again); without it this process leaves in %lld s, "
        "and the newest committed checkpoint counts",
        (long long)unheard_seconds_to(m, deadline), (long long)silent / 1000, save,
        (long long)unheard_seconds_to(m, deadline - MARGIN_MS));
}

void unheard_tick(struct member *m)
{
    unheard_say(m);
    unheard_say_told_to_end(m);
}
