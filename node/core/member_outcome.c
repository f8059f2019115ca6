/* member_outcome - how the rounds ended in which this node captured its state, or was to: a rank
 * that saved wants to know it after training went on. The newest MEMBER_OUTCOMES_MAX are in the
 * view, and those that are awaited; only when all are the oldest makes room. */
#include "node/core/member_state.h"

#include <stdio.h>

static struct member_outcome *member_outcome_outcome_of(struct member *m, uint64_t round)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (m->view.outcomes[i].round == round && m->view.outcomes[i].state == OUTCOME_OPEN)
            return &m->view.outcomes[i];
    return NULL;
}

/* Its manifest may be this node's to write, however many rounds come to nothing meanwhile. */
static bool member_outcome_is_awaited(const struct member *m, const struct member_outcome *outcome)
{
    return outcome->state == OUTCOME_OPEN && (outcome->saved || outcome->round == m->behind_round);
}

static struct member_outcome *member_outcome_make_room(struct member *m)
{
    struct member_outcome *room = &m->view.outcomes[m->outcomes_count % MEMBER_OUTCOMES_MAX];

    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX && member_outcome_is_awaited(m, room); i++)
        room = &m->view.outcomes[++m->outcomes_count % MEMBER_OUTCOMES_MAX];
    m->outcomes_count++;
    return room;
}

void outcome_captured(struct member *m, uint64_t round, int64_t step)
{
    if (member_outcome_outcome_of(m, round) != NULL)
        return;
    *member_outcome_make_room(m) =
        (struct member_outcome){.round = round, .step = step, .state = OUTCOME_OPEN, .rank = -1};
    m->view_changed = true;
}

void outcome_saved(struct member *m, uint64_t round)
{
    struct member_outcome *outcome = member_outcome_outcome_of(m, round);

    if (outcome != NULL)
        outcome->saved = true;
}

bool outcome_awaited(const struct member *m)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++) {
        const struct member_outcome *outcome = &m->view.outcomes[i];

        if (outcome->state == OUTCOME_OPEN && outcome->saved && !outcome->unsure)
            return true;
    }
    return false;
}

static void member_outcome_end(struct member *m, struct member_outcome *outcome,
                               enum member_outcome_state state, int64_t rank, uint64_t code,
                               const char *text)
{
    const char *fit = wire_text_fit(&m->out->arena, text, OUTCOME_TEXT_MAX);

    outcome->state = state;
    outcome->rank = rank >= 0 && rank < WORLD_SIZE_MAX ? (int)rank : -1;
    outcome->code = (int)code;
    snprintf(outcome->text, sizeof outcome->text, "%s", fit != NULL ? fit : "");
    m->view_changed = true;
}

static void outcome_in_place(struct member *m, uint64_t round)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (m->view.outcomes[i].round == round && m->view.outcomes[i].state == OUTCOME_COMMITTED)
            m->view.outcomes[i].in_place = m->view_changed = true;
}

/* Another rank's save failed before this one came to S: all are told alike. Open it would be waited
 * for by the very thread that has to get to S. */
static struct member_outcome *outcome_on_the_way(struct member *m, uint64_t round)
{
    if (round != m->round || m->step < 0)
        return NULL;
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (m->view.outcomes[i].round == round)
            return NULL;
    outcome_captured(m, round, m->step);
    return member_outcome_outcome_of(m, round);
}

void outcome_on_disk(struct member *m, int64_t step)
{
    m->view.committed[m->commits_count++ % MEMBER_COMMITS_MAX] = step;
    m->view_changed = true;
}

static int64_t outcome_newest_on_disk(const struct member *m)
{
    int64_t newest =
        m->view.resume_known && m->view.resume_checkpoint != 0 ? m->view.resume_step : 0;

    for (size_t i = 0; i < MEMBER_COMMITS_MAX; i++)
        if (m->view.committed[i] > newest)
            newest = m->view.committed[i];
    return newest;
}

struct outcome_cost outcome_cost(const struct member *m)
{
    int64_t newest = outcome_newest_on_disk(m), again = m->done > newest ? m->done - newest : 0;
    struct outcome_cost cost;
    char from[64] = "begins from the start";

    if (newest > 0)
        snprintf(from, sizeof from, "resumes at step %lld", member_shown(m, newest));
    snprintf(cost.text, sizeof cost.text, "it %s and computes %lld step%s again", from,
             (long long)again, again == 1 ? "" : "s");
    return cost;
}

/* A rank's log tells of its own failures, and rank 0's of all. */
static void outcome_say_not_saved(struct member *m, const struct wire_event *event)
{
    bool mine = event->rank == (int64_t)m->options.rank || m->options.rank == 0;
    int64_t step = event->step > 0 ? event->step : m->done;

    if ((event->flags & EVENT_FLAG_RETRY) != 0) {
        member_log(m, 2, "step %lld is not saved yet, it is tried again: %s", member_shown(m, step),
                   event->text);
        return;
    }
    m->view.saves_failed++;
    m->view_changed = true;
    snprintf(m->view.save_failed, sizeof m->view.save_failed, "step %lld: %.250s",
             member_shown(m, step), event->text);
    member_log(m, mine ? 1 : 2, "step %lld was NOT saved: %s; if the job ends now, %s",
               member_shown(m, step), event->text, outcome_cost(m).text);
}

void outcome_event(struct member *m, const struct wire_event *event)
{
    struct member_outcome *outcome = member_outcome_outcome_of(m, event->round);

    if (event->kind == EVENT_COMMIT || event->kind == EVENT_UNCHANGED ||
        (event->kind == EVENT_SAVE_SKIPPED && event->code == MUSTER_E_EXISTS))
        outcome_on_disk(m, event->step);
    if (event->kind == EVENT_MANIFEST)
        outcome_in_place(m, event->round);
    if ((event->kind == EVENT_ABORT && (outcome != NULL || event->round == m->round)) ||
        (event->kind == EVENT_SAVE_SKIPPED && event->code != MUSTER_E_EXISTS))
        outcome_say_not_saved(m, event);
    if (outcome == NULL && event->kind == EVENT_ABORT)
        outcome = outcome_on_the_way(m, event->round);
    if (outcome == NULL)
        return;
    if (event->kind == EVENT_COMMIT || event->kind == EVENT_UNCHANGED)
        member_outcome_end(m, outcome, OUTCOME_COMMITTED, -1, 0, "");
    else if (event->kind == EVENT_ABORT)
        member_outcome_end(m, outcome, OUTCOME_ABORTED, event->rank, event->code, event->text);
}

/* It saved, and the event that tells who writes the manifest was missed: the lowest rank that saved
 * and lives does. */
static void outcome_write_down(struct member *m, const struct member_outcome *outcome)
{
    bool lowest = m->options.layout == LAYOUT_REPLICATED || m->options.rank == 0;

    if (outcome->saved && lowest)
        manifest_begin(m, outcome->round);
}

/* A snapshot stands for events that are heard no more. It tells the end of one round by name, and
 * of the newest checkpoint; rounds that it does not tell of are open there, or over and forgotten.
 */
void outcome_snapshot(struct member *m, const struct wire_snapshot *s)
{
    if (s->named_state == ROUND_ABORTED && s->named_cause != CAUSE_NONE &&
        s->named_round != s->round)
        (void)outcome_on_the_way(m, s->named_round);
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++) {
        struct member_outcome *outcome = &m->view.outcomes[i];
        bool named = outcome->round == s->named_round;

        if (outcome->state != OUTCOME_OPEN || outcome->round == s->round)
            continue;
        if (outcome->round == s->newest_checkpoint ||
            (named && (s->named_state == ROUND_COMMITTED || s->named_state == ROUND_UNCHANGED))) {
            if (!named || s->named_state != ROUND_UNCHANGED)
                outcome_write_down(m, outcome);
            member_outcome_end(m, outcome, OUTCOME_COMMITTED, -1, 0, "");
        } else if (named && s->named_state == ROUND_ABORTED)
            member_outcome_end(
                m, outcome, s->named_cause == CAUSE_NONE ? OUTCOME_UNKNOWN : OUTCOME_ABORTED, -1,
                MUSTER_E_ABORTED, "it was aborted while this node did not hear the broker");
        else if (outcome->round < s->newest_checkpoint && outcome->step >= s->newest_step)
            member_outcome_end(m, outcome, OUTCOME_UNKNOWN, -1, MUSTER_E_ABORTED,
                               "its end was not heard, and it is not the newest checkpoint");
        outcome->unsure =
            !named || (s->named_state != ROUND_DECIDED && s->named_state != ROUND_WRITING);
    }
}

/* No broker will ever tell of them, and whoever saved would wait for that. */
void outcomes_forget(struct member *m, const char *why)
{
    for (size_t i = 0; i < MEMBER_OUTCOMES_MAX; i++)
        if (m->view.outcomes[i].state == OUTCOME_OPEN)
            member_outcome_end(m, &m->view.outcomes[i], OUTCOME_UNKNOWN, -1, MUSTER_E_ABORTED, why);
}
