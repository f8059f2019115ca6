/* save - from the decision to the commit: which ranks arrived, which saved, which are still needed.
 *
 * The commit rule: a checkpoint is committed if and only if every required shard came from the
 * decided incarnations of this round at this S. Both halves are tested here and nowhere else:
 * round, step and incarnation of each SAVED in save_accept(), the count of shards in
 * save_try_commit(). */
#include "broker/core/rounds/rounds.h"
#include "schema/manifest/metrics.h"

#include <stdio.h>

static void save_finish(struct job *job, struct round *round)
{
    round_remember(job, round);
    round_free(round);
}

/* A writer until its SAVED is taken; any other member until it captured or the writer saved. */
bool save_is_needed(const struct job *job, const struct round *round,
                    const struct participant *part)
{
    if (round->state == ROUND_FREEZING)
        return true;
    if (part->writer)
        return part->saved_ms < 0;
    /* the lowest rank writes, and it comes first */
    if (job->gen.layout == LAYOUT_REPLICATED && round->parts[0].saved_ms >= 0)
        return false;
    return part->captured_ms < 0;
}

/* --- outcomes --------------------------------------------------------------------------------- */

void round_not_saved(struct core *core, struct job *job, uint64_t round, int64_t rank,
                     unsigned code, const char *text)
{
    struct wire_event event = event_make(job, EVENT_NOT_SAVED);

    event.round = round;
    event.cause = CAUSE_TERMINATION;
    event.rank = rank;
    event.code = code;
    event.text = text;
    event_emit(core, job, event, 0);
    notices_served(core, job, round);
    generation_ending(core, job, MUSTER_E_NOT_SAVED, text);
}

static bool save_time_fits(const struct core *core, const struct round *round)
{
    return round->deadline_boot_ms == 0 ||
           core->now_boot + FREEZE_MS + MARGIN_MS < round->deadline_boot_ms;
}

static void save_emit_abort(struct core *core, struct job *job, const struct round *round,
                            bool again)
{
    struct wire_event event = event_make(job, EVENT_ABORT);

    event.generation = round->generation;
    event.round = round->round;
    event.cause = round->cause;
    event.step = round->step;
    event.rank = round->culprit_rank;
    event.code = round->reason_code;
    event.text = round->reason;
    event.flags = again ? EVENT_FLAG_RETRY : 0;
    event_emit(core, job, event, 0);
}

static void save_fail_checkpoint(struct core *core, struct round *round)
{
    if (round->checkpoint.round == 0)
        return; /* never decided */
    round->checkpoint.state = CHECKPOINT_FAILED;
    persist_checkpoint(core, &round->checkpoint);
}

void round_abort(struct core *core, struct job *job, struct round *round, int64_t culprit_rank,
                 unsigned code, const char *reason, enum abort_retry retry)
{
    enum wire_cause cause = round->cause;
    bool wanted = cause != CAUSE_POLICY && cause != CAUSE_PERIOD;
    bool outranked = job->want.cause == CAUSE_TERMINATION && cause != CAUSE_TERMINATION;
    bool may = !outranked && (retry == ABORT_RETRY || retry == ABORT_RETRY_ABORTED_STEPS);
    bool left = round->attempt - round->attempts_before < ROUND_ATTEMPTS_MAX;
    bool again = retry == ABORT_LATER || (may && wanted && left && save_time_fits(core, round) &&
                                          job->gen.state == GENERATION_RUNNING);
    uint64_t number = round->round;
    char why[sizeof round->reason];

    snprintf(why, sizeof why, "%s", reason);
    for (size_t i = 0; round->state == ROUND_FREEZING && !round->shown && i < round->count; i++)
        persist_participant(core, job, round, &round->parts[i]); /* who reported, for people */
    round_move(round, ROUND_ABORTED);
    round->culprit_rank = culprit_rank;
    round->reason_code = code;
    memcpy(round->reason, why, sizeof why);
    round->final = !again;
    round->ended_unix_ms = core->now_unix;
    persist_round(core, job, round);
    save_fail_checkpoint(core, round);
    save_emit_abort(core, job, round, again);
    if (again && retry != ABORT_LATER)
        round_want_again(
            job, (struct want){cause, round->attempt + 1, retry == ABORT_RETRY_ABORTED_STEPS},
            round->attempts_before);
    save_finish(job, round);
    if (!again && retry != ABORT_OVER && cause == CAUSE_TERMINATION)
        round_not_saved(core, job, number, culprit_rank, code, why);
}

void round_unchanged(struct core *core, struct job *job, struct round *round, int64_t step)
{
    const struct checkpoint *newest = registry_newest(job);
    struct wire_event event = event_make(job, EVENT_UNCHANGED);
    bool termination = round->cause == CAUSE_TERMINATION;

    round_move(round, ROUND_UNCHANGED);
    round->step = step;
    round->ended_unix_ms = core->now_unix;
    snprintf(round->reason, sizeof round->reason, "nothing was done since step %lld",
             registry_shown(job, step));
    for (size_t i = 0; i < round->count; i++)
        persist_participant(core, job, round, &round->parts[i]);
    persist_round(core, job, round);
    event.round = round->round;
    event.cause = round->cause;
    event.step = step;
    event.checkpoint = newest != NULL && newest->row.step == step ? newest->row.round : 0;
    event_emit(core, job, event, 0);
    if (termination) {
        notices_served(core, job, round->round);
        generation_ending(core, job, MUSTER_PREEMPTED, "terminated; nothing new was to be saved");
    }
    save_finish(job, round);
}

static const struct participant *save_manifest_writer(const struct round *round)
{
    for (size_t i = 0; i < round->count; i++)
        if (round->parts[i].writer && round->parts[i].peer != NULL &&
            peer_is_live(round->parts[i].peer))
            return &round->parts[i];
    return NULL;
}

/* A rank whose thread waits for the commit stood still since it came to the step, and one that
 * stood there since the freeze. */
static int64_t save_held_ms(const struct core *core, const struct round *round)
{
    int64_t now = core->now_boot - round->opened_boot_ms, longest = -1;

    for (size_t i = 0; i < round->count; i++) {
        const struct participant *part = &round->parts[i];
        bool stood = part->done == round->step && part->reported_ms >= 0;
        int64_t from = stood ? part->reported_ms : part->at_step_ms;

        if (from >= 0 && now - from > longest)
            longest = now - from;
    }
    return longest;
}

static void save_commit(struct core *core, struct job *job, struct round *round)
{
    struct wire_event event = event_make(job, EVENT_COMMIT);
    const struct participant *writer = save_manifest_writer(round);
    bool termination = round->cause == CAUSE_TERMINATION;

    round_move(round, ROUND_COMMITTED);
    round->ended_unix_ms = core->now_unix;
    if (round->captured_unix_ms == 0)
        round->captured_unix_ms = core->now_unix;
    round->margin_ms = round->deadline_boot_ms > 0 ? round->deadline_boot_ms - core->now_boot : -1;
    round->checkpoint.state = CHECKPOINT_COMMITTED;
    round->checkpoint.committed_unix_ms = core->now_unix;
    round->checkpoint.total_ms = core->now_unix - round->decided_unix_ms;
    if (round->held && save_held_ms(core, round) > round->checkpoint.blocked_ms)
        round->checkpoint.blocked_ms = save_held_ms(core, round);
    persist_round(core, job, round);
    persist_checkpoint(core, &round->checkpoint);
    registry_add(job, &round->checkpoint);
    job->keep.committed = true;
    grace_save_measured(job, round);
    event.round = round->round;
    event.cause = round->cause;
    event.step = round->step;
    event.checkpoint = round->round;
    event.rank = writer ? (int64_t)writer->rank : -1;
    event.incarnation = writer ? writer->incarnation : 0;
    event_emit(core, job, event, 0);
    if (termination) {
        notices_served(core, job, round->round);
        generation_ending(core, job, MUSTER_PREEMPTED, "terminated; its checkpoint is committed");
    }
    save_finish(job, round);
}

static void save_try_commit(struct core *core, struct job *job, struct round *round)
{
    uint64_t shards = 0;
    bool captured = true;

    for (size_t i = 0; i < round->count; i++) {
        shards += round->parts[i].writer && round->parts[i].saved_ms >= 0;
        captured &=
            !save_is_needed(job, round, &round->parts[i]) || round->parts[i].captured_ms >= 0;
    }
    if (shards == round->checkpoint.shards_required) {
        save_commit(core, job, round);
    } else if (captured && round->state == ROUND_DECIDED) {
        round_move(round, ROUND_WRITING);
        round->captured_unix_ms = core->now_unix;
        persist_round(core, job, round);
    }
}

/* --- who comes no more ------------------------------------------------------------------------ */

/* NULL: it may come. A save behind a failed step may still be whole. */
static const char *save_gone_how(const struct round *round, const struct peer *peer,
                                 unsigned *ret_code)
{
    bool live = peer != NULL && peer_is_live(peer);

    if (peer == NULL || (live && (!peer->failed || round->state == ROUND_WRITING)))
        return NULL;
    *ret_code = peer->state == NODE_LOST ? MUSTER_E_PEER : MUSTER_E_ABORTED;
    if (peer->state == NODE_LOST)
        return "was lost";
    if (peer_has_finished(peer))
        return "finished before the save";
    if (peer->state == NODE_LEFT && peer->leave_why != LEAVE_FAILED)
        return "left before the save";
    *ret_code = MUSTER_E_STEP;
    return "failed its step";
}

/* A rank that finishes breaks off nobody's step. In a sharded job nothing is saved without it, nor
 * once the launch ends. */
static enum abort_retry save_retry_without(const struct job *job, const struct round *round,
                                           bool finished)
{
    if (job->gen.state != GENERATION_RUNNING || job->gen.layout != LAYOUT_REPLICATED ||
        (round->cause != CAUSE_TERMINATION && !finished))
        return ABORT_FINAL;
    return finished ? ABORT_RETRY : ABORT_RETRY_ABORTED_STEPS;
}

static void save_settle_members(struct core *core, struct job *job, struct round *round)
{
    char text[256];
    unsigned code = MUSTER_OK;

    for (size_t i = 0; i < round->count; i++) {
        const struct participant *part = &round->parts[i];
        const char *how = save_gone_how(round, part->peer, &code);
        if (how == NULL || !save_is_needed(job, round, part))
            continue;
        snprintf(text, sizeof text, "rank %llu %s", (unsigned long long)part->rank, how);
        round_abort(core, job, round, (int64_t)part->rank, code, text,
                    save_retry_without(job, round, peer_has_finished(part->peer)));
        return;
    }
}

void save_settle(struct core *core, struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used)
            save_settle_members(core, job, &job->rounds[i]);
}

/* --- what members say ------------------------------------------------------------------------- */

/* The round's own members at its own step; anything else changes nothing. */
static struct participant *save_accept(struct peer *peer, uint64_t number, int64_t step,
                                       struct round **ret_round)
{
    struct round *round = round_find(peer->job, number);
    struct participant *part;

    if (round == NULL || (round->state != ROUND_DECIDED && round->state != ROUND_WRITING))
        return NULL;
    part = round_part(round, peer);
    if (part == NULL || step != round->step)
        return NULL;
    *ret_round = round;
    return part;
}

static const struct answer taken = {MUSTER_OK, "", 0};
static const struct answer too_late = {MUSTER_E_ABORTED, "the round is over", 0};

struct answer save_at_step(struct core *core, struct peer *peer, const struct wire_at_step *m)
{
    struct round *round = NULL;
    struct participant *part = save_accept(peer, m->round, m->step, &round);

    if (part == NULL)
        return too_late;
    peer->begun = peer->done = m->step;
    peer->advanced_boot_ms = core->now;
    if (part->at_step_ms < 0) {
        part->at_step_ms = core->now_boot - round->opened_boot_ms;
        part->at_step_boot_ms = core->now;
    }
    if (m->captured && part->captured_ms < 0)
        part->captured_ms = core->now_boot - round->opened_boot_ms;
    round_way_left(core, round);
    persist_participant(core, peer->job, round, part);
    save_try_commit(core, peer->job, round);
    job_timer(peer->job, core->now + STUCK_MS);
    return taken;
}

/* A checkpoint of which no manifest can be made could never be restored: it is not saved, and whose
 * files are too many hears it. Another try would bring the same. */
static struct answer save_too_many_files(struct core *core, struct peer *peer, struct round *round)
{
    char text[256];

    snprintf(text, sizeof text,
             "rank %llu could not save: with its files the checkpoint has more than %d, which no "
             "manifest holds; write fewer and larger files",
             (unsigned long long)peer->rank, CHECKPOINT_FILES_MAX);
    round_abort(core, peer->job, round, (int64_t)peer->rank, MUSTER_E_SAVE, text, ABORT_FINAL);
    return (struct answer){MUSTER_E_ABORTED, "the checkpoint has too many files", 0};
}

struct answer save_files(struct core *core, struct peer *peer, const struct wire_files *m)
{
    struct round *round = NULL;
    struct participant *part = save_accept(peer, m->round, m->step, &round);
    uint64_t files = m->files.count;

    if (part == NULL || !part->writer || part->saved_ms >= 0)
        return too_late;
    for (size_t i = 0; i < round->count; i++)
        files += round->parts[i].files_taken;
    if (files > CHECKPOINT_FILES_MAX)
        return save_too_many_files(core, peer, round);
    for (size_t i = 0; i < m->files.count; i++) {
        struct action *action = action_add(core, ACTION_PERSIST);
        action->record.kind = RECORD_FILE;
        action->record.u.file =
            (struct record_file){.job = out_text(core, peer->job->name),
                                 .round = m->round,
                                 .rank = peer->rank,
                                 .path = out_text(core, m->files.items[i].path),
                                 .bytes = m->files.items[i].bytes,
                                 .checksum = out_text(core, m->files.items[i].checksum)};
    }
    part->files_taken += m->files.count;
    return taken;
}

/* Of the lowest writer. A text that is no JSON is left out, and the save counts: its sender has
 * checked it. */
static void save_take_metrics(struct round *round, const struct wire_saved *m)
{
    if (m->metrics[0] == '\0' || !metrics_ok(m->metrics))
        return;
    free(round->metrics);
    round->metrics = strdup(m->metrics);
    MUST(round->metrics != NULL);
    round->checkpoint.metrics = round->metrics;
}

static void save_take_shard(struct core *core, struct peer *peer, struct round *round,
                            struct participant *part, const struct wire_saved *m)
{
    struct job *job = peer->job;
    struct action *action = action_add(core, ACTION_PERSIST);
    int64_t since = core->now_boot - round->opened_boot_ms;

    part->saved_ms = since;
    part->save_ms = (int64_t)m->save_ms;
    if (part->at_step_ms < 0)
        part->at_step_ms = since;
    if (part->captured_ms < 0)
        part->captured_ms = since;
    if (m->save_ms > job->save_p95_ms)
        job->save_p95_ms = m->save_ms;
    action->record.kind = RECORD_SHARD;
    action->record.u.shard = (struct record_shard){.job = out_text(core, job->name),
                                                   .round = m->round,
                                                   .rank = peer->rank,
                                                   .incarnation = peer->incarnation,
                                                   .files = m->files_count,
                                                   .bytes = m->bytes,
                                                   .save_ms = m->save_ms,
                                                   .blocked_ms = m->blocked_ms,
                                                   .saved_unix_ms = core->now_unix,
                                                   .waited_ms = m->waited_ms};
    round->checkpoint.bytes += m->bytes;
    if ((int64_t)m->blocked_ms > round->checkpoint.blocked_ms)
        round->checkpoint.blocked_ms = (int64_t)m->blocked_ms;
    if ((int64_t)m->waited_ms > round->checkpoint.waited_ms)
        round->checkpoint.waited_ms = (int64_t)m->waited_ms;
    round->held |= m->held;
    bool lowest = true;
    for (size_t i = 0; i < round->count; i++)
        lowest &= !(round->parts[i].writer && round->parts[i].rank < part->rank);
    if (lowest) {
        round->checkpoint.epoch = m->epoch;
        round->checkpoint.step_in_epoch = m->step_in_epoch;
        round->checkpoint.data_position = m->data_position;
        save_take_metrics(round, m);
    }
    persist_checkpoint(core, &round->checkpoint);
    if (lowest && m->custom[0] != '\0' && custom_ok(m->custom)) {
        action = action_add(core, ACTION_PERSIST);
        action->record.kind = RECORD_CUSTOM;
        action->record.u.custom =
            (struct record_custom){out_text(core, job->name), m->round, out_long(core, m->custom)};
    }
    persist_participant(core, job, round, part);
}

/* Of a node that forgot some, or of a database that did: restored from a copy that is older than
 * they are. They are not told again, so the shard stays incomplete. */
static struct answer save_misses_files(struct core *core, struct peer *peer, struct round *round,
                                       const struct participant *part, uint64_t told)
{
    char text[256];

    snprintf(text, sizeof text,
             "rank %llu could not save: it wrote %llu files, and told the broker of %llu",
             (unsigned long long)peer->rank, (unsigned long long)told,
             (unsigned long long)part->files_taken);
    round_abort(core, peer->job, round, (int64_t)peer->rank, MUSTER_E_SAVE, text, ABORT_RETRY);
    return (struct answer){MUSTER_E_ABORTED, "the broker was not told of all files of the shard",
                           0};
}

struct answer save_saved(struct core *core, struct peer *peer, const struct wire_saved *m)
{
    struct round *round = NULL;
    struct participant *part = save_accept(peer, m->round, m->step, &round);

    if (part == NULL || !part->writer)
        return too_late;
    if (part->saved_ms >= 0)
        return taken;
    if (m->files_count != part->files_taken)
        return save_misses_files(core, peer, round, part, m->files_count);
    save_take_shard(core, peer, round, part, m);
    save_try_commit(core, peer->job, round);
    return taken;
}

struct answer save_failed(struct core *core, struct peer *peer, const struct wire_save_failed *m)
{
    struct round *round = NULL;
    struct participant *part = save_accept(peer, m->round, m->step, &round);
    char text[512];

    if (part == NULL || !part->writer)
        return too_late;
    if (part->saved_ms >= 0)
        return taken; /* said again, for a later answer was lost: its shard is known, and counts */
    snprintf(text, sizeof text, "rank %llu could not save: %s", (unsigned long long)peer->rank,
             m->text);
    /* a full disk does not loop */
    round_abort(core, peer->job, round, (int64_t)peer->rank, (unsigned)m->code, text,
                m->code == MUSTER_E_STORAGE ? ABORT_FINAL : ABORT_RETRY);
    return taken;
}

/* Its step towards S was broken off, because one that is no member was lost or failed: nobody comes
 * to S any more, but all may stand at one done. */
static void save_broken_off(struct core *core, struct peer *peer, struct round *round)
{
    struct job *job = peer->job;
    bool again = round->cause == CAUSE_TERMINATION && job->gen.layout == LAYOUT_REPLICATED;
    int64_t culprit = job->gen.error_rank; /* known, or nobody's step was broken off */
    char text[256];

    snprintf(text, sizeof text,
             "the step of rank %llu towards the save step %lld was broken off because of rank %lld",
             (unsigned long long)peer->rank, registry_shown(job, round->step), (long long)culprit);
    round_abort(core, job, round, culprit, MUSTER_E_PEER, text,
                again ? ABORT_RETRY_ABORTED_STEPS : ABORT_FINAL);
}

struct answer save_past(struct core *core, struct peer *peer, const struct wire_past *m)
{
    struct round *round = round_find(peer->job, m->round);
    struct participant *part = round ? round_part(round, peer) : NULL;
    char text[256];

    if (part == NULL || round->state != ROUND_DECIDED || !save_is_needed(peer->job, round, part))
        return too_late;
    if (m->begun <= round->step) {
        if (peer->job->gen.error_rank < 0)
            return too_late; /* nothing breaks its step off */
        save_broken_off(core, peer, round);
        return taken;
    }
    snprintf(text, sizeof text, "rank %llu had begun step %lld already, past the save step %lld",
             (unsigned long long)peer->rank, registry_shown(peer->job, m->begun),
             registry_shown(peer->job, round->step));
    round_abort(core, peer->job, round, (int64_t)peer->rank, MUSTER_E_ABORTED, text, ABORT_RETRY);
    return taken;
}

/* --- time ------------------------------------------------------------------------------------- */

static void save_way_over(struct core *core, struct job *job, struct round *round,
                          const struct participant *part)
{
    char text[256];
    const struct peer *peer = part->peer;

    snprintf(text, sizeof text,
             "rank %llu did not reach step %lld in time (it stands at %lld, %s for %llu s)",
             (unsigned long long)part->rank, registry_shown(job, round->step),
             registry_shown(job, peer ? peer->done : part->done),
             peer ? wire_phase_name(peer->phase) : "gone",
             (unsigned long long)(peer ? peer->phase_ms / 1000 : 0));
    round_abort(core, job, round, (int64_t)part->rank, MUSTER_E_TIMEOUT, text, ABORT_RETRY);
}

void save_goes_on(struct core *core, struct peer *peer, uint64_t number, uint64_t bytes)
{
    struct round *round = number > 0 ? round_find(peer->job, number) : NULL;
    struct participant *part = round != NULL ? round_part(round, peer) : NULL;

    if (part == NULL || !part->writer || part->at_step_ms < 0 || bytes <= part->saving_bytes)
        return;
    part->saving_bytes = bytes;
    part->saving_boot_ms = core->now;
}

/* A large shard on a slow disk takes what it takes; one that stands still is given up. */
static int64_t save_until(const struct participant *part, int64_t bound)
{
    int64_t longest = part->at_step_boot_ms + DAY_MS;
    int64_t from =
        part->saving_boot_ms > part->at_step_boot_ms ? part->saving_boot_ms : part->at_step_boot_ms;

    return from + bound < longest ? from + bound : longest;
}

static void save_over(struct core *core, struct job *job, struct round *round,
                      const struct participant *part)
{
    int64_t took_s = (core->now - part->at_step_boot_ms) / 1000;
    char text[192];

    if (part->saving_boot_ms == 0)
        snprintf(text, sizeof text, "rank %llu did not finish its save in %lld s",
                 (unsigned long long)part->rank, (long long)took_s);
    else
        snprintf(
            text, sizeof text,
            "rank %llu did not finish its save in %lld s (it has stood still at %llu bytes for "
            "%lld s)",
            (unsigned long long)part->rank, (long long)took_s,
            (unsigned long long)part->saving_bytes,
            (long long)((core->now - part->saving_boot_ms) / 1000));
    round_abort(core, job, round, (int64_t)part->rank, MUSTER_E_TIMEOUT, text, ABORT_RETRY);
}

void save_tick(struct core *core, struct job *job, struct round *round)
{
    int64_t bound =
        STUCK_MS > 3 * (int64_t)job->save_p95_ms ? STUCK_MS : 3 * (int64_t)job->save_p95_ms;

    for (size_t i = 0; i < round->count; i++) {
        const struct participant *part = &round->parts[i];
        if (!save_is_needed(job, round, part))
            continue;
        if (part->at_step_ms < 0) {
            if (core->now >= round->way_until_boot_ms) {
                save_way_over(core, job, round, part);
                return;
            }
            job_timer(job, round->way_until_boot_ms);
            continue;
        }
        if (core->now >= save_until(part, bound)) {
            save_over(core, job, round, part);
            return;
        }
        job_timer(job, save_until(part, bound));
    }
}
