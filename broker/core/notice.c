/* notice - who will be terminated, and until when. Facts of one generation; the earliest deadline of
 * the active ones is the plan's. */
#include "broker/core/state.h"

#include <stdio.h>

void notices_free(struct job *job)
{
    while (job->notices != NULL) {
        struct notice *next = job->notices->next;
        free(job->notices->text);
        free(job->notices);
        job->notices = next;
    }
}

static struct notice *find(const struct job *job, const char *id)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (strcmp(notice->id, id) == 0)
            return notice;
    return NULL;
}

static bool counts(const struct notice *notice)
{
    return notice->state == RECORD_NOTICE_ACTIVE && wire_notice_ends(notice->kind);
}

int64_t notice_deadline(const struct job *job)
{
    int64_t deadline = 0;

    for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (counts(notice) && notice->deadline_boot_ms > 0 &&
            (deadline == 0 || notice->deadline_boot_ms < deadline))
            deadline = notice->deadline_boot_ms;
    return deadline;
}

bool notice_any_active(const struct job *job)
{
    for (const struct notice *notice = job->notices; notice != NULL; notice = notice->next)
        if (counts(notice))
            return true;
    return false;
}

void notices_served(struct core *core, struct job *job, uint64_t round)
{
    for (struct notice *notice = job->notices; notice != NULL; notice = notice->next) {
        if (!counts(notice))
            continue;
        notice->state = RECORD_NOTICE_SERVED;
        notice->round = round;
        persist_notice(core, job, notice);
    }
}

static struct notice *remember(struct core *core, struct job *job, const struct wire_notice *m,
                               int64_t rank, uint64_t incarnation)
{
    struct notice *notice = calloc(1, sizeof *notice);

    if (notice == NULL)
        return NULL;
    strncpy(notice->id, m->id, sizeof notice->id - 1);
    strncpy(notice->source, m->source, sizeof notice->source - 1);
    notice->generation = job->gen.generation;
    notice->rank = rank;
    notice->incarnation = incarnation;
    notice->kind = m->kind < NOTICE_KIND_COUNT ? (enum wire_notice_kind)m->kind : NOTICE_USER;
    notice->cancellable = m->cancellable;
    notice->left_ms = m->left_ms;
    notice->deadline_boot_ms = core->now + (m->left_ms >= 0 ? m->left_ms : GRACE_DEFAULT_MS);
    notice->text = strdup(m->text);
    notice->received_unix_ms = core->now_unix;
    notice->next = job->notices;
    job->notices = notice;
    return notice;
}

/* Show and plan only: no seq, not waiting for the commit. */
static void hint(struct core *core, struct job *job, const struct notice *notice)
{
    struct action *action = action_add(core, ACTION_HINT);

    action->job = out_text(core, job->name);
    action->deadline_boot_ms = notice->deadline_boot_ms;
    action->message.type = WIRE_HINT;
    core_fill_down(core, job->name, &action->message.down);
    action->message.down.job = action->job;
    action->message.u.hint = (struct wire_hint){.id = out_text(core, notice->id),
                                                .kind = notice->kind,
                                                .rank = notice->rank,
                                                .left_ms = notice->deadline_boot_ms - core->now};
}

static void announce(struct core *core, struct job *job, struct notice *notice)
{
    struct round *round = round_open_one(job);
    bool ending = job->gen.state == GENERATION_ENDING || job->gen.state == GENERATION_ENDED;
    struct wire_event event = event_make(job, EVENT_TERMINATION);

    event.rank = notice->rank;
    event.incarnation = notice->incarnation;
    event.code = notice->kind;
    event.left_ms = notice->left_ms;
    event.text = notice->id;
    event.round = wire_notice_ends(notice->kind) && round != NULL ? round->round : 0;
    event.flags = wire_notice_ends(notice->kind) ? 0 : EVENT_FLAG_RETRY; /* shown, nobody leaves */
    event_emit(core, job, event, notice->deadline_boot_ms);
    if (!wire_notice_ends(notice->kind) || ending)
        return;
    if (round != NULL) {
        notice->round = round->round;
        persist_notice(core, job, notice);
        round_join_termination(core, job, round);
    } else {
        round_want(core, job, CAUSE_TERMINATION);
    }
}

struct answer notice_take(struct core *core, struct job *job, const struct wire_notice *m,
                          int64_t rank, uint64_t incarnation)
{
    struct notice *notice = find(job, m->id);

    if (m->id[0] == '\0' || m->left_ms < -1 || m->left_ms > LEFT_MAX_MS)
        return (struct answer){
            MUSTER_E_ARGUMENT,
            "a notice needs an id, and time left from 0 ms to ten years, or -1 (unknown)", 0};
    if (job->gen.generation == 0 || job->gen.state == GENERATION_ENDED)
        return (struct answer){MUSTER_E_NOT_FOUND, "the job has no running generation", 0};
    if (incarnation == 0 && (rank < 0 || (uint64_t)rank >= job->gen.world_size))
        return (struct answer){MUSTER_E_RANK,
                               out_printf(core, "rank %lld is not inside the job's world of %llu",
                                          (long long)rank, (unsigned long long)job->gen.world_size),
                               0};
    if (notice != NULL)
        return (struct answer){MUSTER_OK, "", notice->round}; /* known already */
    notice = remember(core, job, m, rank, incarnation);
    if (notice == NULL)
        return (struct answer){MUSTER_E_NOMEM, "the broker is out of memory", 0};
    hint(core, job, notice);
    persist_notice(core, job, notice);
    announce(core, job, notice);
    return (struct answer){MUSTER_OK, "", notice->round};
}

struct answer notice_cancel(struct core *core, struct job *job, const char *id)
{
    struct notice *notice = find(job, id);

    if (notice == NULL)
        return (struct answer){MUSTER_E_NOT_FOUND,
                               out_printf(core,
                                          "job '%s' has no notice '%s' in its present generation; "
                                          "`muster why` lists them",
                                          job->name, id),
                               0};
    if (notice->state != RECORD_NOTICE_ACTIVE)
        return (struct answer){MUSTER_OK, "", notice->round};
    notice->state = RECORD_NOTICE_CANCELLED;
    persist_notice(core, job, notice);
    struct wire_event event = event_make(job, EVENT_NOTICE_CANCELLED);
    event.rank = notice->rank;
    event.text = notice->id;
    event_emit(core, job, event, 0);
    if (!notice_any_active(job) && job->want.cause == CAUSE_TERMINATION &&
        round_open_one(job) == NULL)
        job->want = (struct want){CAUSE_NONE, 0, false}; /* not frozen yet: nothing happens */
    return (struct answer){MUSTER_OK, "", notice->round};
}

/* HELLO repeats every uncancelled notice with its time left: news to a broker that lost it, a deadline
 * to one whose machine was rebooted. */
void notice_facts(struct core *core, struct peer *peer, const struct wire_hello *hello)
{
    for (size_t i = 0; i < hello->notices.count; i++) {
        const struct wire_notice_fact *fact = &hello->notices.items[i];
        struct wire_notice m = {.id = fact->id,
                                .kind = fact->kind,
                                .source = fact->source,
                                .left_ms = fact->left_ms,
                                .cancellable = fact->cancellable,
                                .text = fact->text};
        struct notice *known = find(peer->job, fact->id);
        if (known == NULL) {
            notice_take(core, peer->job, &m, (int64_t)peer->rank, peer->incarnation);
        } else if (known->deadline_boot_ms == 0 && fact->left_ms >= 0 &&
                   fact->left_ms <= LEFT_MAX_MS) {
            known->deadline_boot_ms = core->now + fact->left_ms;
            persist_notice(core, peer->job, known);
        }
    }
}
