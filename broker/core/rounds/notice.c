/* notice - which processes will be terminated, and when. These are facts of one generation; the
 * plan uses the earliest deadline of the active notices. */
#include "broker/core/rounds/rounds.h"

#include <stdio.h>

static struct notice *notice_of_id(const struct job *job, const char *id)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (strcmp(notice->id, id) == 0)
            return notice;
    return NULL;
}

/* Does it end a process that the job needs? */
static bool notice_ends(const struct notice *notice)
{
    return wire_notice_ends(notice->kind) && !notice->of_evaluator;
}

bool notice_counts(const struct notice *notice)
{
    return notice->state == RECORD_NOTICE_ACTIVE && notice_ends(notice);
}

int64_t notice_deadline(const struct job *job)
{
    int64_t deadline = 0;

    for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (notice_counts(notice) && notice->deadline_boot_ms > 0 &&
            (deadline == 0 || notice->deadline_boot_ms < deadline))
            deadline = notice->deadline_boot_ms;
    return deadline;
}

/* The end that comes first; if only ends without a known time are left, any of them. */
static const struct notice *notice_first_of(const struct job *job)
{
    const struct notice *first = NULL;

    for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (notice_counts(notice) &&
            (first == NULL || first->deadline_boot_ms == 0 ||
             (notice->deadline_boot_ms > 0 && notice->deadline_boot_ms < first->deadline_boot_ms)))
            first = notice;
    return first;
}

void notice_announce(const struct core *core, const struct job *job, struct wire_alive *alive)
{
    const struct notice *first = notice_first_of(job);
    int64_t freeze = job->plan.freeze_boot_ms;

    if (first == NULL)
        return;
    alive->notice_kind = first->kind;
    alive->notice_rank = first->rank;
    alive->notice_left_ms = -1;
    alive->notice_save_ms = -1;
    if (first->deadline_boot_ms > 0)
        alive->notice_left_ms =
            first->deadline_boot_ms > core->now_boot ? first->deadline_boot_ms - core->now_boot : 0;
    if (job->plan.freeze_unix_ms > 0)
        alive->notice_save_ms = freeze > core->now_boot ? freeze - core->now_boot : 0;
}

bool notice_any_active(const struct job *job)
{
    for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (notice_counts(notice))
            return true;
    return false;
}

/* A start: who lives after its deadline shows that it is not exact, and so do all who come back to
 * a broker that was away over it. A save that cannot be in time any more is tried at once, and has
 * the bounds of a notice without a time. */
void notices_let_pass(struct core *core, struct job *job)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (notice->state == RECORD_NOTICE_ACTIVE &&
            notice->deadline_boot_ms < core->now_boot + PLAN_FREEZE_MS + MARGIN_MS)
            notice->deadline_boot_ms = 0;
}

/* The round that is opened for them: who withdraws one from now on comes too late, and is told so.
 */
void notices_frozen_for(struct core *core, struct job *job, const struct round *round)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next) {
        if (!notice_counts(notice) || notice->round == round->round)
            continue;
        notice->round = round->round;
        persist_notice(core, job, notice);
    }
}

void notices_served(struct core *core, struct job *job, uint64_t round)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next) {
        if (!notice_counts(notice))
            continue;
        notice->state = RECORD_NOTICE_SERVED;
        notice->round = round;
        persist_notice(core, job, notice);
    }
}

static int64_t notice_deadline_told(const struct core *core, const struct wire_notice *m)
{
    return core->now_boot + (m->left_ms >= 0 ? m->left_ms : GRACE_DEFAULT_MS);
}

/* Its present words, under an id that may be known. */
static void notice_fill_in(const struct core *core, const struct job *job, struct notice *notice,
                           const struct wire_notice *m)
{
    char *text = strdup(m->text);

    MUST(text != NULL);
    free(notice->text);
    notice->text = text;
    snprintf(notice->id, sizeof notice->id, "%s", m->id);
    snprintf(notice->source, sizeof notice->source, "%s", m->source);
    notice->generation = job->gen.generation;
    notice->kind = m->kind < NOTICE_KIND_COUNT ? (enum wire_notice_kind)m->kind : NOTICE_USER;
    notice->state = RECORD_NOTICE_ACTIVE;
    notice->cancellable = m->cancellable;
    notice->left_ms = m->left_ms;
    notice->flags = m->flags & ~(uint64_t)NOTICE_FLAG_TAKEN_BACK;
    notice->deadline_boot_ms = notice_deadline_told(core, m);
    notice->received_unix_ms = core->now_unix;
}

/* A known id counts again if its source withdrew it and issues it again, if it has become a kind
 * that ends a process, or if its deadline is earlier. A later deadline postpones nothing. */
static bool notice_is_news(const struct core *core, const struct notice *known,
                           const struct wire_notice *m)
{
    if (known->state == RECORD_NOTICE_SERVED)
        return false;
    if (known->state == RECORD_NOTICE_CANCELLED)
        return true;
    if (wire_notice_ends(m->kind) != wire_notice_ends(known->kind))
        return wire_notice_ends(m->kind);
    return m->left_ms >= 0 && (known->deadline_boot_ms == 0 ||
                               notice_deadline_told(core, m) < known->deadline_boot_ms);
}

/* A withdrawn notice may be forgotten here (the database has it); an active one may not. */
bool notice_make_room(struct job *job, bool of_a_tool)
{
    struct notice **last_withdrawn = NULL;
    size_t all = 0, of_tools = 0;

    for (struct notice **at = &job->notices; *at != NULL; at = &(*at)->next) {
        all++;
        of_tools += (*at)->incarnation == 0 && (*at)->state == RECORD_NOTICE_ACTIVE;
        if ((*at)->state == RECORD_NOTICE_CANCELLED)
            last_withdrawn = at; /* the newest are in front */
    }
    if (of_a_tool && of_tools >= NOTICES_TOOLS_MAX)
        return false;
    if (all < NOTICES_JOB_MAX)
        return true;
    if (last_withdrawn == NULL)
        return false;
    struct notice *gone = *last_withdrawn;
    *last_withdrawn = gone->next;
    free(gone->text);
    free(gone);
    return true;
}

static struct answer notice_too_many(struct core *core, const struct job *job, bool of_a_tool)
{
    return (struct answer){
        MUSTER_E_BUSY,
        out_printf(core,
                   "job '%s' has %d active notices %s already, and no more are kept; cancel one "
                   "with `muster notify --cancel`",
                   job->name, of_a_tool ? NOTICES_TOOLS_MAX : NOTICES_JOB_MAX,
                   of_a_tool ? "of operators" : "in all"),
        0};
}

/* Show and plan only: no seq, not waiting for the commit. */
static void notice_hint(struct core *core, struct job *job, const struct notice *notice)
{
    struct action *action = action_add(core, ACTION_HINT);

    action->job = out_text(core, job->name);
    action->deadline_boot_ms = notice->deadline_boot_ms;
    action->message.type = WIRE_HINT;
    core_fill_down(core, job->name, &action->message.down);
    action->message.down.job = action->job;
    action->message.u.hint =
        (struct wire_hint){.id = out_text(core, notice->id),
                           .kind = notice->kind,
                           .rank = notice->rank,
                           .left_ms = notice->deadline_boot_ms - core->now_boot};
}

static void notice_emit_termination(struct core *core, struct job *job, const struct notice *notice,
                                    const struct round *round)
{
    struct wire_event event = event_make(job, EVENT_TERMINATION);

    event.rank = notice->rank;
    event.incarnation = notice->incarnation;
    event.code = notice->kind;
    event.left_ms = notice->left_ms;
    event.text = notice->id;
    event.round = round != NULL ? round->round : 0;
    event.flags = notice_ends(notice) ? 0 : EVENT_FLAG_RETRY; /* shown, nobody leaves */
    event_emit(core, job, event, notice->deadline_boot_ms);
}

static void notice_join(struct core *core, struct job *job, struct notice *notice,
                        struct round *round)
{
    notice->round = round->round;
    persist_notice(core, job, notice);
    round_join_termination(core, job, round);
}

/* A plan has come to its moment, and a round that was opened for something else will do. Its
 * members hear that they leave after it. */
void notices_join(struct core *core, struct job *job, struct round *round)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next) {
        if (!notice_counts(notice))
            continue;
        notice_emit_termination(core, job, notice, round);
        notice_join(core, job, notice, round);
    }
}

/* It joins a termination's round; another one only if its own moment has come and grace_takes()
 * says so. */
static void notice_emit_and_join(struct core *core, struct job *job, struct notice *notice)
{
    struct round *round = round_awaited(job);
    bool ending = generation_is_over(job);
    bool joins = notice_ends(notice) && round != NULL;

    if (joins && !ending && round->cause != CAUSE_TERMINATION)
        joins = grace_is_due(core, job) && grace_takes(core, job, round);
    notice_emit_termination(core, job, notice, joins ? round : NULL);
    if (!notice_ends(notice) || ending)
        return;
    if (joins)
        notice_join(core, job, notice, round);
}

bool notice_is_of_evaluator(const struct core *core, uint64_t incarnation)
{
    const struct peer *peer = incarnation != 0 ? peer_find(core, incarnation) : NULL;

    return peer != NULL && peer->role == ROLE_EVALUATOR;
}

/* Of a tool: what a node's source told it has looked at itself, by the same rule. */
static void notice_doubt(struct core *core, struct wire_notice *m)
{
    char note[96];
    char *text;

    if (!plan_left_of(m->left_ms, -1, false).too_short)
        return;
    snprintf(note, sizeof note, "%s(%lld.%01lld s were told: too short to save in)",
             m->text[0] == '\0' ? "" : " ", (long long)m->left_ms / 1000,
             (long long)m->left_ms % 1000 / 100);
    text = wire_text_fit(&core->out->arena, m->text, TEXT_MAX - strlen(note));
    MUST(text != NULL);
    m->text = out_printf(core, "%s%s", text, note);
    m->left_ms = -1;
}

/* Is it refused at any time, for a fault of its own? */
static bool notice_is_refused(struct core *core, const struct job *job, const struct wire_notice *m,
                              int64_t rank, bool of_a_tool, struct answer *ret_answer)
{
    if (m->id[0] == '\0' || m->left_ms < -1 || m->left_ms > LEFT_MAX_MS)
        *ret_answer = (struct answer){
            MUSTER_E_ARGUMENT,
            "a notice needs an id, and time left from 0 ms to ten years, or -1 (unknown)", 0};
    else if (job->gen.generation == 0 || job->gen.state == GENERATION_ENDED)
        *ret_answer = (struct answer){
            MUSTER_E_NOT_FOUND,
            out_printf(core,
                       "job '%s' is not running (%s), so nobody is there to be told; `muster "
                       "status --job %s` shows it",
                       job->name,
                       job->gen.generation == 0    ? "it has not been started"
                       : job->gen.end_text[0] != 0 ? job->gen.end_text
                                                   : "its last process left",
                       job->name),
            0};
    else if (of_a_tool && (rank < 0 || (uint64_t)rank >= job->gen.world_size))
        *ret_answer = (struct answer){
            MUSTER_E_RANK,
            out_printf(core, "job %s has no rank %lld: its ranks are 0 to %llu", job->name,
                       (long long)rank, (unsigned long long)job->gen.world_size - 1),
            0};
    else
        return false;
    return true;
}

/* Nobody needs the machine of a rank that has finished, and the others would save and leave for
 * nothing. (Its own node tells nothing more: whoever has left is not heard.) */
static struct answer notice_answer_finished(struct core *core, const struct job *job, int64_t rank)
{
    return (struct answer){
        MUSTER_E_NOT_FOUND,
        out_printf(core,
                   "rank %lld of job '%s' has finished and needs its host no more: it can be ended "
                   "without a notice; `muster nodes --job %s` shows who still works",
                   (long long)rank, job->name, job->name),
        0};
}

static struct notice *notice_add(struct job *job)
{
    struct notice *notice = calloc(1, sizeof *notice);

    /* A refusal would be an answer: the node would not say it again, and nobody would save. The
     * next start hears it, because a request without an answer is repeated. */
    MUST(notice != NULL);
    notice->next = job->notices;
    job->notices = notice;
    notice->state = RECORD_NOTICE_CANCELLED;
    return notice;
}

struct answer notice_take(struct core *core, struct job *job, const struct wire_notice *told,
                          int64_t rank, uint64_t incarnation)
{
    struct wire_notice as_told = *told, *m = &as_told;
    struct notice *notice = notice_of_id(job, m->id);
    struct answer refusal;

    if (notice_is_refused(core, job, m, rank, incarnation == 0, &refusal))
        return refusal;
    if (incarnation == 0)
        notice_doubt(core, m);
    if (notice != NULL && !notice_is_news(core, notice, m))
        return (struct answer){MUSTER_OK, "", notice->round};
    if (incarnation == 0 && generation_rank_finished(job, (uint64_t)rank))
        return notice_answer_finished(core, job, rank);
    if (notice == NULL) {
        if (!notice_make_room(job, incarnation == 0))
            return notice_too_many(core, job, incarnation == 0);
        notice = notice_add(job);
    }
    if (notice->state ==
        RECORD_NOTICE_CANCELLED) { /* who tells an active one again says when only */
        notice->rank = rank;
        notice->round = 0; /* of a former issue of it */
        notice->incarnation = incarnation;
        notice->of_evaluator = notice_is_of_evaluator(core, incarnation);
    }
    notice_fill_in(core, job, notice, m);
    if (!notice->of_evaluator)
        notice_hint(core, job, notice);
    persist_notice(core, job, notice);
    notice_emit_and_join(core, job, notice);
    job->moved = true; /* it may be of a rank that has finished */
    return (struct answer){MUSTER_OK, "", notice->round};
}

uint64_t notice_round(const struct job *job, const char *id)
{
    const struct notice *notice = notice_of_id(job, id);

    return notice != NULL ? notice->round : 0;
}

/* Frozen for, or the job ends anyway. (Between two attempts of a round a notice may still be
 * withdrawn.) */
static bool notice_is_too_late(struct job *job, const struct notice *notice)
{
    const struct round *round = round_find(job, notice->round);
    bool in_time = notice->state == RECORD_NOTICE_CANCELLED && notice->round == 0;
    bool ending = generation_is_over(job);

    return (ending && !in_time) || notice->state == RECORD_NOTICE_SERVED ||
           (round != NULL && round->cause == CAUSE_TERMINATION && round->state != ROUND_ABORTED);
}

/* A node hears of the round anyway; a person believes what the tool says. */
static struct answer notice_answer_late(struct core *core, const struct job *job,
                                        const struct notice *notice)
{
    const char *text;

    if (notice->round != 0)
        text = out_printf(core,
                          "too late to withdraw notice '%s': round %llu was opened for it, so its "
                          "save is made and all ranks of job '%s' leave to be restarted. `muster "
                          "why round %llu --job %s` tells what came of it",
                          notice->id, (unsigned long long)notice->round, job->name,
                          (unsigned long long)notice->round, job->name);
    else
        text = out_printf(core,
                          "too late to withdraw notice '%s': generation %llu of job '%s' is ending "
                          "already (%s). `muster why --job %s` tells how",
                          notice->id, (unsigned long long)job->gen.generation, job->name,
                          job->gen.end_text, job->name);
    return (struct answer){MUSTER_E_ENDING, text, notice->round};
}

/* The event names the incarnation that withdrew its own notice, 0 for a tool: a node that issues it
 * again meanwhile knows that this is not about the new one. */
static void notice_withdraw(struct core *core, struct job *job, struct notice *notice,
                            uint64_t incarnation)
{
    struct wire_event event = event_make(job, EVENT_NOTICE_CANCELLED);

    notice->state = RECORD_NOTICE_CANCELLED;
    if (incarnation == 0)
        notice->flags |= NOTICE_FLAG_TAKEN_BACK;
    persist_notice(core, job, notice);
    event.rank = notice->rank;
    event.incarnation = incarnation;
    event.text = notice->id;
    event_emit(core, job, event, 0);
    /* not frozen yet: nothing happens but what was owed before */
    const struct round *open = round_open_one(job);
    if (!notice_any_active(job) && job->want.cause == CAUSE_TERMINATION &&
        (open == NULL || open->cause != CAUSE_TERMINATION))
        round_want_owed(job);
    if (!notice_any_active(job))
        grace_forget(job);
}

struct answer notice_cancel(struct core *core, struct job *job, const char *id,
                            uint64_t incarnation)
{
    struct notice *notice = notice_of_id(job, id);

    if (notice == NULL)
        return (struct answer){MUSTER_E_NOT_FOUND,
                               out_printf(core,
                                          "job '%s' has no notice '%s' in its present generation; "
                                          "`muster events --job %s` tells of all that there were",
                                          job->name, id, job->name),
                               0};
    bool late = notice_is_too_late(job, notice);
    if (notice->state == RECORD_NOTICE_ACTIVE)
        notice_withdraw(core, job, notice, incarnation);
    if (late && incarnation == 0)
        return notice_answer_late(core, job, notice);
    return (struct answer){MUSTER_OK, "", notice->round};
}

/* Notices that their node has to forget, if it missed the events. Not those that it withdrew
 * itself, since it may have issued them again. */
void notices_taken_back(struct core *core, const struct peer *peer, struct wire_snapshot *s)
{
    struct wire_notice_id *ids = arena_alloc(&core->out->arena, NOTICES_NODE_MAX * sizeof *ids);
    size_t count = 0;

    MUST(ids != NULL);
    for (const struct notice *at = peer->job->notices; at != NULL; at = at->next)
        if (at->incarnation == peer->incarnation && at->state == RECORD_NOTICE_CANCELLED &&
            (at->flags & NOTICE_FLAG_TAKEN_BACK) != 0 && count < NOTICES_NODE_MAX)
            ids[count++].id = out_text(core, at->id);
    s->withdrawn.items = ids;
    s->withdrawn.count = count;
}

/* A rank that has finished needs its machine no more, and nobody is left to withdraw what it told.
 */
void notices_settle(struct core *core, struct job *job)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next) {
        const struct peer *teller = peer_find(core, notice->incarnation); /* NULL: a tool */
        bool finished = teller != NULL ? role_is_trainer(teller->role) && peer_has_finished(teller)
                                       : generation_rank_finished(job, (uint64_t)notice->rank);
        if (finished && notice->state == RECORD_NOTICE_ACTIVE)
            notice_withdraw(core, job, notice, notice->incarnation);
    }
}

/* HELLO repeats every uncancelled notice with its time left: news to a broker that lost it, a
 * deadline to one whose machine was rebooted or whose database is older. (A difference of less
 * than the margin is how long the message took.) */
void notice_facts(struct core *core, struct peer *peer, const struct wire_hello *hello)
{
    for (size_t i = 0; i < hello->notices.count; i++) {
        const struct wire_notice_fact *fact = &hello->notices.items[i];
        struct wire_notice m = {.id = fact->id,
                                .kind = fact->kind,
                                .source = fact->source,
                                .left_ms = fact->left_ms,
                                .cancellable = fact->cancellable,
                                .text = fact->text,
                                .flags = fact->flags};
        struct notice *known = notice_of_id(peer->job, fact->id);
        bool told = fact->left_ms >= 0 && fact->left_ms <= LEFT_MAX_MS;
        if (known == NULL) {
            notice_take(core, peer->job, &m, (int64_t)peer->rank, peer->incarnation);
        } else if (known->state == RECORD_NOTICE_CANCELLED) {
            continue; /* its node will hear so; if it issues it again, that is a request */
        } else if (known->deadline_boot_ms > core->now_boot + fact->left_ms + MARGIN_MS && told) {
            notice_take(core, peer->job, &m, (int64_t)peer->rank, peer->incarnation);
        } else if (known->deadline_boot_ms == 0 && told) {
            known->deadline_boot_ms = core->now_boot + fact->left_ms;
            persist_notice(core, peer->job, known);
        }
    }
}
