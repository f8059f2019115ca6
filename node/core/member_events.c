/* member_events - what each event of the journal does to this node. Events come in order, without
 * gaps, once each; a snapshot stands for all up to its seq. */
#include "node/core/member_state.h"

#include "schema/error.h"

#include <stdio.h>
#include <string.h>

static const struct wire_member *events_find_me(const struct member *m,
                                                const struct wire_event *event)
{
    for (size_t i = 0; i < event->members.count; i++)
        if (event->members.items[i].incarnation == m->options.incarnation)
            return &event->members.items[i];
    return NULL;
}

static bool events_takes_part(const struct member *m, const struct wire_event *event,
                              bool *ret_writer)
{
    const struct wire_member *me = events_find_me(m, event);

    if (event->flags & EVENT_FLAG_OTHERS) {
        *ret_writer = event->incarnation == 0 || event->incarnation == m->options.incarnation;
        return me == NULL && role_is_trainer(m->options.role);
    }
    *ret_writer = me != NULL && (me->flags & MEMBER_FLAG_WRITER) != 0;
    return me != NULL;
}

static void events_resume(struct member *m, uint64_t checkpoint, int64_t step, const char *path)
{
    m->view.resume_known = true;
    m->view.resume_checkpoint = checkpoint;
    m->view.resume_step = step;
    snprintf(m->view.resume_path, sizeof m->view.resume_path, "%s", path);
    m->view_changed = true;
}

static void events_started(struct member *m)
{
    m->view.started = true;
    m->join_until = NEVER;
    if (no_round_holds(m))
        view_open_or_end(m);
    m->view_changed = true;
}

static void events_on_termination(struct member *m, const struct wire_event *event)
{
    if (event->flags & EVENT_FLAG_RETRY)
        return; /* a kind that ends nothing */
    m->view.termination_seen = true;
    m->view_changed = true;
    notices_heard(m, event->code, event->rank, event->left_ms);
    if (event->round == 0 || event->round != m->round || m->part == PART_NONE)
        return;
    m->cause = CAUSE_TERMINATION; /* it joined my round: whoever is captured holds now */
    view_set(m, m->view.mode);
}

struct peer_text {
    char text[TEXT_MAX + 64];
};

/* On a cluster's log the words alone would read as this rank's own failure. */
static struct peer_text events_peer_text(const struct member *m, int64_t rank, int64_t step,
                                         const char *words)
{
    struct peer_text shown;

    if (error_names_rank(words, rank))
        snprintf(shown.text, sizeof shown.text, "%s", words); /* the broker's, of a lost rank */
    else if (step > 0)
        snprintf(shown.text, sizeof shown.text, "rank %lld failed at step %lld: %s",
                 (long long)rank, member_shown(m, step), words);
    else
        snprintf(shown.text, sizeof shown.text, "rank %lld failed: %s", (long long)rank, words);
    return shown;
}

static void events_on_peer(struct member *m, const struct wire_event *event)
{
    if (event->rank == (int64_t)m->options.rank && m->own_failure)
        return;
    int code =
        event->kind == EVENT_PEER_ERROR && event->left_ms > INT32_MIN && event->left_ms < INT32_MAX
            ? (int)event->left_ms
            : 0;
    uint64_t follows = event->round != 0 ? event->round : ROUND_TO_COME;
    error_heard(m, (int)event->rank, code, event->step,
                events_peer_text(m, event->rank, event->step, event->text).text,
                (event->flags & EVENT_FLAG_ROUND_FOLLOWS) != 0 ? follows : 0);
}

static void events_end_with(struct member *m, enum muster_status status,
                            const struct wire_event *event)
{
    member_end(m, status, false, (int)event->rank, 0, event->step, event->text);
}

/* The generation ends at once; a first error that was heard before stays the one that is named. */
static void events_on_rank_restarted(struct member *m, const struct wire_event *event)
{
    if (m->error.status == MUSTER_OK)
        events_end_with(m, MUSTER_E_PEER, event);
    else
        member_end(m, m->error.status, false, m->error.rank, m->error.code, m->error.step,
                   m->error.text);
}

static void events_on_freeze(struct member *m, const struct wire_event *event)
{
    bool writer;

    if (event->round <= m->round)
        return;
    m->round_generation = event->generation;
    if (events_takes_part(m, event, &writer))
        round_freeze(m, event->round, (enum wire_cause)event->cause,
                     (event->flags & EVENT_FLAG_ABORT) != 0);
}

static void events_on_decision(struct member *m, const struct wire_event *event)
{
    uint64_t nonce = event->nonce;
    bool writer;

    if (!events_takes_part(m, event, &writer) || event->round < m->round)
        return;
    if (nonce == 0) /* journaled by a broker of before there was that field */
        nonce = wire_round_nonce(event->members.items, event->members.count);
    round_decision(m, event->round, event->generation, (enum wire_cause)event->cause, event->step,
                   writer, nonce);
}

static void events_not_saved(struct member *m, const char *text)
{
    char line[TEXT_MAX + 256];

    snprintf(line, sizeof line,
             "NOT saved: the job is being terminated and no checkpoint was committed: %s; %s", text,
             outcome_cost(m).text);
    member_end(m, MUSTER_PREEMPTED, true, -1, MUSTER_E_NOT_SAVED, -1, line);
}

void restore_refused(struct member *m, const char *text)
{
    member_end(m, MUSTER_E_RESTORE, false, -1, 0, m->view.resume_step, text);
}

/* The source remembers that it gave it: to give it again would be a repeat. */
static void events_withdrawn(struct member *m, const char *id)
{
    struct member_action *action = member_add(m, MEMBER_NOTICE_WITHDRAWN);

    action->text = member_text(m, id);
}

static void events_on_resume(struct member *m, const struct wire_event *event)
{
    events_resume(m, event->checkpoint, event->step, event->path);
}

static void events_on_started(struct member *m, const struct wire_event *event)
{
    (void)event;
    events_started(m);
}

static void events_on_commit(struct member *m, const struct wire_event *event)
{
    round_committed(m, event->round, (enum wire_cause)event->cause,
                    event->incarnation == m->options.incarnation);
}

static void events_on_manifest(struct member *m, const struct wire_event *event)
{
    if (m->part == PART_COMMITTED && event->round == m->round)
        m->manifest_until = m->now;
}

static void events_on_abort(struct member *m, const struct wire_event *event)
{
    round_aborted(m, event->round, event->generation, (event->flags & EVENT_FLAG_RETRY) != 0, true);
}

static void events_on_unchanged(struct member *m, const struct wire_event *event)
{
    part_unchanged(m, event->round, (enum wire_cause)event->cause, event->step);
}

static void events_on_not_saved(struct member *m, const struct wire_event *event)
{
    events_not_saved(m, event->text);
}

static void events_on_save_skipped(struct member *m, const struct wire_event *event)
{
    if (m->policy_wait && event->step == m->done)
        policy_over(m);
}

static void events_on_join_failed(struct member *m, const struct wire_event *event)
{
    events_end_with(m, MUSTER_E_JOIN, event);
}

static void events_on_restore_failed(struct member *m, const struct wire_event *event)
{
    if (event->flags & EVENT_FLAG_IMPORTS)
        member_end(m, MUSTER_PREEMPTED, true, -1, 0, -1, event->text);
    else if (!(event->flags & EVENT_FLAG_RETRY))
        events_end_with(m, MUSTER_E_RESTORE, event);
}

/* A ps or an evaluator: its own end, nobody else's. */
static void events_on_observer(struct member *m, const struct wire_event *event)
{
    if (event->incarnation == m->options.incarnation && event->code == MUSTER_E_RESTORE)
        events_end_with(m, MUSTER_E_RESTORE, event);
}

static void events_on_notice_cancelled(struct member *m, const struct wire_event *event)
{
    events_withdrawn(m, event->text);
    if (event->incarnation != m->options.incarnation) /* else it was forgotten then */
        notice_forget(m, event->text);
}

/* The handler of each event; NULL = it is for others to read. */
static void (*const events_taken[EVENT_KIND_COUNT])(struct member *, const struct wire_event *) = {
    [EVENT_RESUME] = events_on_resume,
    [EVENT_STARTED] = events_on_started,
    [EVENT_TERMINATION] = events_on_termination,
    [EVENT_PEER_ERROR] = events_on_peer,
    [EVENT_NODE_LOST] = events_on_peer,
    [EVENT_RANK_RESTARTED] = events_on_rank_restarted,
    [EVENT_JOIN_FAILED] = events_on_join_failed,
    [EVENT_RESTORE_FAILED] = events_on_restore_failed,
    [EVENT_OBSERVER] = events_on_observer,
    [EVENT_NOTICE_CANCELLED] = events_on_notice_cancelled,
    [EVENT_FREEZE] = events_on_freeze,
    [EVENT_DECISION] = events_on_decision,
    [EVENT_COMMIT] = events_on_commit,
    [EVENT_MANIFEST] = events_on_manifest,
    [EVENT_ABORT] = events_on_abort,
    [EVENT_UNCHANGED] = events_on_unchanged,
    [EVENT_NOT_SAVED] = events_on_not_saved,
    [EVENT_SAVE_SKIPPED] = events_on_save_skipped,
};

void events_apply(struct member *m, const struct wire_event *event)
{
    if (event->generation != m->generation)
        return; /* of another launch: the answer to its next frame fences a node of an older one */
    outcome_event(m, event);
    if (event->kind < EVENT_KIND_COUNT && events_taken[event->kind] != NULL)
        events_taken[event->kind](m, event);
}

/* --- a snapshot ------------------------------------------------------------------------------- */

static void events_snapshot_outcome(struct member *m, const struct wire_snapshot *s)
{
    if (m->round == 0 || s->named_round != m->round || s->round == m->round)
        return;
    switch (s->named_state) {
    case ROUND_COMMITTED:
        round_committed(m, m->round, (enum wire_cause)s->named_cause, false);
        break;
    case ROUND_ABORTED:
        /* without a cause it is unknown there: its shards are kept */
        round_aborted(m, m->round, m->round_generation, s->round > 0, s->named_cause != CAUSE_NONE);
        break;
    case ROUND_UNCHANGED:
        part_unchanged(m, m->round, (enum wire_cause)s->named_cause, s->named_step);
        break;
    default:
        break; /* writing: its commit will be heard */
    }
}

static void member_events_snapshot_round(struct member *m, const struct wire_snapshot *s)
{
    bool mine = s->round == m->round;

    if (s->round == 0 || !s->member || s->taken)
        return;
    m->round_generation = s->generation;
    if (s->round_state == ROUND_FREEZING && s->round > m->round)
        round_freeze(m, s->round, (enum wire_cause)s->round_cause,
                     (s->round_flags & EVENT_FLAG_ABORT) != 0);
    else if (s->round_state == ROUND_DECIDED && s->round >= m->round &&
             (!mine || m->part == PART_FROZEN || m->part == PART_THAWED))
        round_decision(m, s->round, s->generation, (enum wire_cause)s->round_cause, s->round_step,
                       s->writer, s->round_nonce);
}

static void events_snapshot_end(struct member *m, const struct wire_snapshot *s)
{
    enum muster_status status = (enum muster_status)s->end_status;

    if (s->generation_state != GENERATION_ENDING && s->generation_state != GENERATION_ENDED)
        return;
    if (status == MUSTER_PREEMPTED && m->part != PART_COMMITTED)
        member_end(m, MUSTER_PREEMPTED, true, -1, 0, -1, "the job is being terminated");
    else if (status == MUSTER_E_NOT_SAVED)
        events_not_saved(m, s->end_text);
    else if (status != MUSTER_OK && status != MUSTER_PREEMPTED)
        member_end(m, status, false, (int)s->error_rank, (int)s->error_code, -1, s->end_text);
}

/* A notice that was told and has no answer yet counts: the broker takes it after this. */
static void events_snapshot_withdrawn(struct member *m, const struct wire_snapshot *s)
{
    for (size_t i = 0; i < s->withdrawn.count; i++)
        if (!notice_is_being_told(m, s->withdrawn.items[i].id)) {
            events_withdrawn(m, s->withdrawn.items[i].id);
            notice_forget(m, s->withdrawn.items[i].id);
        }
}

void events_snapshot(struct member *m, const struct wire_snapshot *s)
{
    if (s->generation != m->generation)
        return; /* of the next one: HELLO will tell that this process is stale */
    if (s->resume_ready)
        events_resume(m, s->resume_checkpoint, s->resume_step, s->resume_path);
    else if (s->resume_repair)
        manifest_begin(m, s->resume_checkpoint);
    events_snapshot_withdrawn(m, s);
    outcome_snapshot(m, s);
    events_snapshot_outcome(m, s);
    if (s->generation_state == GENERATION_RUNNING && !m->view.started)
        events_started(m);
    if (s->error_rank >= 0 && s->generation_state == GENERATION_RUNNING && !m->own_failure)
        error_heard(m, (int)s->error_rank, (int)s->error_code, -1,
                    events_peer_text(m, s->error_rank, -1, s->error_text).text,
                    s->round > 0 ? ROUND_TO_COME : 0);
    member_events_snapshot_round(m, s);
    events_snapshot_end(m, s);
}
