/* round - one agreement on one save step, from its cause to the decision. Owns: which save is
 * wanted, the freeze, the reports, the save step S. save.c has what follows the decision. Its
 * states are in moves.c; a policy save enters at DECIDED. One round is open (FREEZING, DECIDED) at
 * a time. */
#include "broker/core/rounds/rounds.h"

#include <stdio.h>

/* --- opening ---------------------------------------------------------------------------------- */

struct round *round_new(struct core *core, struct job *job, enum wire_cause cause, uint64_t attempt)
{
    struct round *round = NULL;

    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX && round == NULL; i++)
        if (!job->rounds[i].used)
            round = &job->rounds[i];
    if (round == NULL)
        return NULL;
    memset(round, 0, sizeof *round);
    round->used = true;
    round->round = ++job->round;
    round->generation = job->gen.generation;
    round->attempt = attempt;
    round->cause = cause;
    round->step = -1;
    round->culprit_rank = -1;
    round->margin_ms = -1;
    round->opened_boot_ms = core->now_boot;
    round->opened_unix_ms = core->now_unix;
    round->deadline_boot_ms = cause == CAUSE_TERMINATION ? notice_deadline(job) : 0;
    if (cause == CAUSE_TERMINATION)
        memcpy(round->plan, job->plan.text, sizeof round->plan);
    return round;
}

static bool round_may_be_member(const struct job *job, const struct peer *peer)
{
    bool skipped = peer != NULL && peer->left_out && job->gen.layout == LAYOUT_REPLICATED;

    return peer != NULL && peer->state == NODE_RESTORED && !peer->failed && !skipped;
}

/* A rank that missed a freeze is left out of the next, unless nobody would be left. */
static void round_ask_all_again(struct job *job)
{
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (round_may_be_member(job, job->trainers[rank]))
            return;
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (job->trainers[rank] != NULL)
            job->trainers[rank]->left_out = false;
}

static struct participant round_part_of(struct peer *peer)
{
    return (struct participant){.peer = peer,
                                .rank = peer->rank,
                                .incarnation = peer->incarnation,
                                .begun = -1,
                                .done = -1,
                                .reported_ms = -1,
                                .at_step_ms = -1,
                                .captured_ms = -1,
                                .saved_ms = -1,
                                .save_ms = -1};
}

void round_add_members(struct job *job, struct round *round)
{
    round_ask_all_again(job);
    round->parts = calloc(job->gen.world_size + 1, sizeof *round->parts);
    MUST(round->parts != NULL);
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (round_may_be_member(job, job->trainers[rank]))
            round->parts[round->count++] = round_part_of(job->trainers[rank]);
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (job->trainers[rank] != NULL)
            job->trainers[rank]->left_out = false;
}

static const char *round_how_absent(const struct peer *peer)
{
    if (peer->state == NODE_LOST)
        return "was lost";
    if (peer->leave_why == LEAVE_FINISHED)
        return "finished";
    if (peer->failed)
        return "failed its step";
    return "left";
}

/* The lowest rank that cannot take part; writes who it is and why, and what comes of it. */
static int64_t round_absent_rank(const struct job *job, const char *so, char *text, size_t size)
{
    const char *how = "left";
    uint64_t rank = 0;

    while (rank < job->gen.world_size && round_may_be_member(job, job->trainers[rank]))
        rank++;
    if (rank == job->gen.world_size)
        return -1;
    for (size_t i = 0; i < job->peers_count; i++)
        if (role_is_trainer(job->peers[i]->role) && job->peers[i]->rank == rank)
            how = round_how_absent(job->peers[i]);
    snprintf(text, size, "rank %llu %s, and %s", (unsigned long long)rank, how, so);
    return (int64_t)rank;
}

/* sharded: without one rank there is no checkpoint. */
int64_t round_missing_rank(const struct job *job, char *text, size_t size)
{
    return round_absent_rank(job, "a sharded checkpoint needs every rank", text, size);
}

static void round_list_members(const struct round *round, struct wire_event *event,
                               struct wire_member *members)
{
    for (size_t i = 0; i < round->count; i++)
        members[i] = (struct wire_member){round->parts[i].rank, round->parts[i].incarnation,
                                          round->parts[i].writer ? MEMBER_FLAG_WRITER : 0};
    event->members.items = members;
    event->members.count = round->count;
}

/* All lives of ranks that this launch let in and that take no part: whoever hears the event was let
 * in before it. False: they are more than those who take part. */
static bool round_list_others(const struct job *job, struct round *round, struct wire_event *event,
                              struct wire_member *members)
{
    size_t count = 0;

    for (size_t i = 0; i < job->peers_count; i++) {
        const struct peer *peer = job->peers[i];

        if (!role_is_trainer(peer->role) || round_part(round, peer) != NULL)
            continue;
        if (count == round->count)
            return false;
        members[count++] = (struct wire_member){peer->rank, peer->incarnation, 0};
    }
    for (size_t i = 0; i < round->count && job->gen.layout == LAYOUT_REPLICATED; i++)
        if (round->parts[i].writer)
            event->incarnation = round->parts[i].incarnation;
    event->flags |= EVENT_FLAG_OTHERS;
    event->members.items = members;
    event->members.count = count;
    return true;
}

uint64_t round_nonce(const struct round *round)
{
    uint64_t nonce = 0;

    for (size_t i = 0; i < round->count; i++) {
        const struct wire_member member = {round->parts[i].rank, round->parts[i].incarnation, 0};

        nonce = wire_round_nonce_add(nonce, &member);
    }
    return nonce == 0 ? 1 : nonce;
}

void round_emit(struct core *core, struct job *job, struct round *round, enum wire_event_kind kind)
{
    struct wire_member *members =
        arena_alloc(&core->out->arena, round->count * sizeof *members + 1);
    struct wire_event event = event_make(job, kind);

    MUST(members != NULL);
    event.round = round->round;
    event.cause = round->cause;
    event.step = round->step;
    event.flags = round->aborted_steps ? EVENT_FLAG_ABORT : 0;
    if (kind == EVENT_DECISION)
        event.nonce = round->nonce;
    if (!round_list_others(job, round, &event, members))
        round_list_members(round, &event, members);
    event_emit(core, job, event, round->deadline_boot_ms);
}

/* Of a freeze that is told now. */
static int64_t round_freeze_until(const struct core *core, const struct round *round)
{
    int64_t until = core->now + (round->aborted_steps ? STUCK_MS : FREEZE_MS);

    int64_t last = core_clock_ms(core, round->deadline_boot_ms - MARGIN_MS);

    return round->deadline_boot_ms > 0 && until > last ? last : until;
}

static void round_begin_freeze(struct core *core, struct job *job, struct round *round)
{
    round_move(round, ROUND_FREEZING);
    round->freeze_until_boot_ms = round_freeze_until(core, round);
    round->show_boot_ms = core->now + FREEZE_MS / 4;
    job_timer(job, round->show_boot_ms);
    persist_job(core, job);
    persist_round(core, job, round);
    if (round->cause == CAUSE_TERMINATION)
        notices_frozen_for(core, job, round);
    round_emit(core, job, round, EVENT_FREEZE);
    job_timer(job, round->freeze_until_boot_ms);
}

/* Nothing has been done since the resume checkpoint, or nothing may begin yet: the state on disk is
 * the state. */
static void round_unchanged_at_once(struct core *core, struct job *job)
{
    struct round *round = round_new(core, job, job->want.cause, job->want.attempt);

    if (round == NULL)
        return;
    round_want_nothing(job);
    persist_job(core, job);
    round_unchanged(core, job, round, job->gen.resume_step);
}

static bool round_generation_is_back(const struct job *job)
{
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++)
        if (job->trainers[rank] != NULL && !job->trainers[rank]->mapped)
            return false;
    return true;
}

static bool round_plan_forces(const struct core *core, struct job *job)
{
    int64_t deadline = notice_deadline(job);

    return deadline > 0 && core->now_boot + grace_least_ms(core, job) >= deadline;
}

static bool round_may_open(struct core *core, struct job *job)
{
    if (job->want.cause == CAUSE_NONE || round_awaited(job) != NULL)
        return false;
    if (core->now < job->want_not_before_boot_ms && !round_generation_is_back(job) &&
        !round_plan_forces(core, job)) {
        job_timer(job, job->want_not_before_boot_ms);
        return false;
    }
    return true;
}

void round_try_open(struct core *core, struct job *job)
{
    char text[256] = "no memory for the members of a round";
    struct round *round;

    if (!round_may_open(core, job))
        return;
    if (job->gen.state == GENERATION_JOINING) {
        if (job->want.cause == CAUSE_TERMINATION)
            round_unchanged_at_once(core, job);
        return; /* other causes wait for the first step */
    }
    round = round_new(core, job, job->want.cause, job->want.attempt);
    if (round == NULL)
        return; /* three are being written: when one ends this is tried again */
    round->aborted_steps = job->want.aborted_steps;
    round->attempts_before = job->want_before;
    round_want_nothing(job);
    int64_t missing =
        job->gen.layout == LAYOUT_SHARDED ? round_missing_rank(job, text, sizeof text) : -1;
    round_add_members(job, round);
    if (round->count == 0 && missing < 0)
        missing = round_absent_rank(job, "no rank is left that could save", text, sizeof text);
    if (missing >= 0 || round->count == 0) {
        persist_job(core, job);
        persist_round(core, job, round);
        round_abort(core, job, round, missing, MUSTER_E_ABORTED, text, ABORT_FINAL);
        return;
    }
    round_begin_freeze(core, job, round);
}

void round_want(struct job *job, enum wire_cause cause)
{
    if (generation_is_over(job))
        return;
    if (job->want.cause == CAUSE_NONE || cause == CAUSE_TERMINATION) {
        if (job->want.cause != cause) {
            job->want.attempt = 1;
            job->want_before = 0;
        }
        job->want.cause = cause;
    }
}

/* A termination's save is the job's last, an operator's is promised; another cause comes again by
 * itself. */
static int round_weight_of(enum wire_cause cause)
{
    return cause == CAUSE_TERMINATION ? 3 : cause == CAUSE_OPERATOR ? 2 : cause != CAUSE_NONE;
}

void round_want_again(struct job *job, struct want want, uint64_t attempts_before)
{
    if (round_weight_of(want.cause) < round_weight_of(job->want.cause))
        return;
    job->want = want;
    job->want_before = attempts_before;
}

/* Could it be an attempt at the save that `muster save` was answered with last? A policy's is none.
 */
static bool round_may_be_for_operator(const struct job *job, uint64_t generation, uint64_t round,
                                      enum wire_cause cause)
{
    return generation == job->gen.generation && round >= job->save_now_round && round > 0 &&
           cause != CAUSE_POLICY;
}

/* One that was aborted for good ends the operator's wait if it was theirs. Between their attempts a
 * manager's or a notice's may come to nothing. */
static bool round_settles(const struct job *job, const struct outcome *at)
{
    return at->state != ROUND_ABORTED ||
           (at->final && (at->round == job->save_now_round || round_weight_of(at->cause) > 1));
}

/* The last attempt at the operator's save, if that is still owed. It was accepted, so it is tried
 * again whatever became of its round and of those after it. Their rows say so over any number of
 * starts, also where a notice joined one of them or came before the next. */
static const struct outcome *round_owed_since(const struct job *job)
{
    const struct outcome *last = NULL;
    bool answered = false;

    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        const struct round *at = &job->rounds[i];
        if (at->used && round_may_be_for_operator(job, at->generation, at->round, at->cause))
            return NULL;
    }
    for (size_t i = 0; i < OUTCOMES_MAX; i++) {
        const struct outcome *at = &job->outcomes[i];
        if (!round_may_be_for_operator(job, at->generation, at->round, at->cause))
            continue;
        if (round_settles(job, at))
            return NULL;
        if (at->final)
            continue;
        answered |= at->round == job->save_now_round;
        last = last == NULL || at->round > last->round ? at : last;
    }
    return answered ? last : NULL;
}

void round_want_owed(struct job *job)
{
    const struct outcome *last = job->gen.error_rank < 0 ? round_owed_since(job) : NULL;

    round_want_nothing(job);
    if (last == NULL)
        return;
    job->want = (struct want){CAUSE_OPERATOR, last->attempt, false};
    job->want_before = last->cause == CAUSE_OPERATOR ? 0 : last->attempt - 1;
}

/* The plan of a round that a notice finds open. */
static const char *round_opened_for(enum wire_cause cause)
{
    switch (cause) {
    case CAUSE_OPERATOR:
        return "at once: an operator asked for a checkpoint; the notice came later";
    case CAUSE_PERIOD:
        return "at once: a save of the job's policy was due; the notice came later";
    case CAUSE_NOTICE:
        return "at once: a notice asked for an early save; its own freeze came later";
    default:
        return ""; /* the ranks', at a step of their own: nobody was frozen */
    }
}

/* A notice while a round is open joins it: S stands, the earliest deadline counts. */
void round_join_termination(struct core *core, struct job *job, struct round *round)
{
    int64_t deadline = notice_deadline(job);

    if (round->cause != CAUSE_TERMINATION) {
        round->attempts_before = round->attempt - 1;
        snprintf(round->plan, sizeof round->plan, "%s", round_opened_for(round->cause));
    }
    round->cause = CAUSE_TERMINATION;
    if (deadline > 0 && (round->deadline_boot_ms == 0 || deadline < round->deadline_boot_ms))
        round->deadline_boot_ms = deadline;
    round->checkpoint.cause = CAUSE_TERMINATION;
    persist_round(core, job, round);
    if (round->state == ROUND_DECIDED || round->state == ROUND_WRITING)
        persist_checkpoint(core, &round->checkpoint);
    job_timer(job, core->now);
}

struct answer round_save_now(struct core *core, struct job *job, const char *id)
{
    struct round *round;

    /* a resend */
    if (strcmp(job->save_now_id, id) == 0 && id[0] != '\0')
        return (struct answer){MUSTER_OK, "",
                               job->save_now_round ? job->save_now_round : job->round};
    if (job->gen.state == GENERATION_JOINING)
        return (struct answer){
            MUSTER_E_NOT_FOUND,
            out_printf(core,
                       "job '%s' is not running yet: its generation %llu waits for its ranks, and "
                       "`muster status %s` names who is missing; save once it runs",
                       job->name, (unsigned long long)job->gen.generation, job->name),
            0};
    if (job->gen.state != GENERATION_RUNNING)
        return (struct answer){
            MUSTER_E_NOT_FOUND,
            out_printf(core,
                       "job '%s' is not running (its generation %llu is %s); a save "
                       "needs running processes: start it again first, as by `muster run`",
                       job->name, (unsigned long long)job->gen.generation,
                       wire_generation_state_name(job->gen.state)),
            0};
    round = round_awaited(job);
    if (round == NULL) {
        uint64_t before = job->round;
        bool owed = job->want.cause == CAUSE_OPERATOR; /* of an earlier request, since a start */
        round_want(job, CAUSE_OPERATOR);
        round_try_open(core, job);
        round = round_open_one(job);
        if (round == NULL && job->round == before) { /* a promise would die with this broker */
            if (job->want.cause == CAUSE_OPERATOR && !owed)
                round_want_nothing(job);
            return (struct answer){
                MUSTER_E_BUSY,
                "no save can begin right now (the broker has just started, or "
                "earlier saves are still being written); try again in a few seconds",
                0};
        }
    }
    /* an open round is an agreed save too, and so is the job's last: its outcome is the answer */
    snprintf(job->save_now_id, sizeof job->save_now_id, "%s", id);
    job->save_now_round = round ? round->round : job->round;
    persist_job(core, job);
    return (struct answer){MUSTER_OK, "", job->save_now_round};
}

/* --- time ------------------------------------------------------------------------------------- */

/* The lowest rank whose report or save is lacking; -1: none is. */
static int64_t round_laggard(const struct job *job, const struct round *round)
{
    for (size_t i = 0; i < round->count; i++)
        if (round->state == ROUND_FREEZING ? round->parts[i].reported_ms < 0
                                           : save_is_needed(job, round, &round->parts[i]))
            return (int64_t)round->parts[i].rank;
    return -1;
}

/* All have reported, and they wait for another round's save of the same step: no later one is being
 * written. That round lacks a member's save, or it would be committed. */
static int64_t round_writing_laggard(const struct job *job)
{
    const struct round *newest = NULL;

    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        const struct round *at = &job->rounds[i];
        if (at->used && at->state == ROUND_WRITING && (newest == NULL || at->step > newest->step))
            newest = at;
    }
    return newest != NULL ? round_laggard(job, newest) : -1;
}

/* Everybody leaves with what was committed before. */
void round_margin_reached(struct core *core, struct job *job)
{
    struct round *round = round_awaited(job);
    char text[256];

    if (!notice_any_active(job) || job->gen.state != GENERATION_RUNNING)
        return;
    if (round == NULL) {
        round_not_saved(core, job, 0, -1, MUSTER_E_NOT_SAVED,
                        "the deadline's margin was reached before the commit");
        return;
    }
    int64_t rank = round_laggard(job, round);
    bool reports = round->state == ROUND_FREEZING && rank >= 0;
    if (rank < 0)
        rank = round_writing_laggard(job);
    snprintf(text, sizeof text, "the deadline's margin was reached while rank %lld had not %s",
             (long long)rank, reports ? "reported" : "saved");
    const enum wire_cause cause = round->cause;
    const uint64_t number = round->round;
    round_abort(core, job, round, rank, MUSTER_E_NOT_SAVED, text, ABORT_FINAL);
    if (cause != CAUSE_TERMINATION) /* the notice's own was still to come */
        round_not_saved(core, job, number, rank, MUSTER_E_NOT_SAVED, text);
}

/* deadline - margin without a commit. */
static void round_margin_over(struct core *core, struct job *job)
{
    int64_t deadline = notice_deadline(job);

    if (deadline == 0 || !notice_any_active(job) || job->gen.state != GENERATION_RUNNING)
        return;
    if (core->now_boot < deadline - MARGIN_MS)
        job_timer(job, core_clock_ms(core, deadline - MARGIN_MS));
    else
        round_margin_reached(core, job);
}

/* Whom it waits for is asked by people: a freeze that lasts has the rows that tell. One that does
 * not costs none. */
static void round_freeze_show(struct core *core, struct job *job, struct round *round)
{
    if (round->shown)
        return;
    if (core->now < round->show_boot_ms) {
        job_timer(job, round->show_boot_ms);
        return;
    }
    round->shown = true;
    for (size_t i = 0; i < round->count; i++)
        persist_participant(core, job, round, &round->parts[i]);
}

static void round_freeze_tick(struct core *core, struct job *job, struct round *round)
{
    if (core->now >= round->freeze_until_boot_ms) {
        round_freeze_over(core, job, round);
        return;
    }
    round_freeze_show(core, job, round);
    job_timer(job, round->freeze_until_boot_ms);
}

void round_tick(struct core *core, struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++) {
        struct round *round = &job->rounds[i];
        if (!round->used)
            continue;
        if (round->state == ROUND_FREEZING)
            round_freeze_tick(core, job, round);
        else
            save_tick(core, job, round);
    }
    round_margin_over(core, job);
}
