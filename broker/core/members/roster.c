/* roster - which processes are there: heartbeats, LEAVE, errors, loss.
 * Silence is judged only here, in a tick, after the messages of the same pass were taken. */
#include "broker/core/members/members.h"
#include "broker/core/tasks/queues.h"

#include <stdio.h>

/* A newer node may do what this broker has no word for. */
unsigned roster_phase_known(uint64_t phase)
{
    return phase < PHASE_COUNT ? (unsigned)phase : PHASE_NONE;
}

/* --- while it lives --------------------------------------------------------------------------- */

/* However long it takes: whoever waits for its verdict knows that it is bounded here. */
static uint64_t roster_awaited_by(struct peer *peer, uint64_t number)
{
    struct round *round = number > 0 ? round_find(peer->job, number) : NULL;
    bool decided =
        round != NULL && (round->state == ROUND_DECIDED || round->state == ROUND_WRITING);

    return decided && round_part(round, peer) != NULL ? number : 0;
}

/* A save that begins, ends or writes is no hang. A save behind the training thread says nothing of
 * that. */
static bool roster_saves_on(const struct peer *peer, const struct wire_heartbeat *beat)
{
    bool saves = beat->phase == PHASE_SAVING;

    return saves != (peer->phase == PHASE_SAVING) ||
           (saves && beat->saving_bytes != peer->saving_bytes);
}

/* Finds who was heard longest ago, and pings each rank that was not heard since the question. Once
 * a moment: a collective that breaks does so for all, and each of them asks. */
static void roster_look_for_silence(struct core *core, struct job *job, const struct peer *asks)
{
    struct silence *silence = &job->silence;

    if (silence->at_boot_ms == core->now)
        return;
    *silence = (struct silence){
        .at_boot_ms = core->now, .least_boot_ms = INT64_MAX, .second_boot_ms = INT64_MAX};
    for (uint64_t rank = 0; rank < job->gen.world_size; rank++) {
        struct peer *peer = job->trainers[rank];
        if (peer == NULL)
            continue;
        int64_t heard = peer->mapped ? peer->heard_boot_ms : 0;
        if (heard < silence->least_boot_ms) {
            silence->second_boot_ms = silence->least_boot_ms;
            silence->least_boot_ms = heard;
            silence->least_rank = rank;
        } else if (heard < silence->second_boot_ms)
            silence->second_boot_ms = heard;
        if (peer != asks && peer->mapped && heard <= asks->suspects_boot_ms &&
            peer->pinged_boot_ms == 0) {
            peer->pinged_boot_ms = core->now;
            send_to(core, peer->route, job->name, WIRE_PING);
        }
    }
}

/* Was each other rank heard since this one suspects that one is gone? A message of the same pass as
 * the question proves nothing: it may be older. Nor is it asked behind an error: that is told. */
static bool roster_all_others_live(struct core *core, struct peer *peer, bool suspects)
{
    struct job *job = peer->job;

    if (!suspects || peer->suspects_boot_ms == 0)
        peer->suspects_boot_ms = suspects ? core->now : 0;
    if (!suspects || !role_is_trainer(peer->role) || job->trainers == NULL ||
        generation_is_over(job) || job->gen.error_rank >= 0)
        return false;
    roster_look_for_silence(core, job, peer);
    return (job->silence.least_rank == peer->rank
                ? job->silence.second_boot_ms
                : job->silence.least_boot_ms) > peer->suspects_boot_ms;
}

void roster_heartbeat(struct core *core, struct peer *peer, const struct wire_heartbeat *beat)
{
    const bool all_live = roster_all_others_live(core, peer, beat->suspects);
    struct wire_msg *alive = send_to(core, peer->route, peer->job->name, WIRE_ALIVE);

    alive->u.alive.all_live = all_live;
    alive->u.alive.awaited_round = roster_awaited_by(peer, beat->round);
    notice_announce(core, peer->job, &alive->u.alive);
    if (!step_ok(beat->begun) || !step_ok(beat->done))
        return;
    if (beat->begun != peer->begun || beat->done != peer->done || roster_saves_on(peer, beat)) {
        peer->advanced_boot_ms = core->now;
        peer->stuck_said = false;
    }
    bool advanced = beat->begun > peer->begun;
    peer->begun = beat->begun;
    peer->done = beat->done;
    peer->told_boot_ms = core->now;
    struct round *round = round_open_one(peer->job);
    if (advanced && round != NULL && round->state == ROUND_DECIDED && beat->begun <= round->step &&
        round_part(round, peer) != NULL) {
        int64_t until = core->now + round_way_ms(round); /* it is still coming */
        if (until > round->way_until_boot_ms)
            round->way_until_boot_ms = until;
    }
    save_goes_on(core, peer, beat->saving_round, beat->saving_bytes);
    peer->saving_bytes = beat->saving_bytes;
    peer->named_round = beat->round;
    peer->phase = roster_phase_known(beat->phase);
    peer->phase_ms = beat->phase_ms;
    bool measured = peer->step_p95_ms == 0 && beat->step_p95_ms > 0;
    peer->step_p95_ms = beat->step_p95_ms;
    if (measured && round != NULL && round_part(round, peer) != NULL)
        round_way_left(core, round);
    if (beat->sources != NULL && beat->sources[0] != '\0')
        strncpy(peer->sources, beat->sources, sizeof peer->sources - 1);
    peer->progress_dirty = true;
    if (advanced && notice_any_active(peer->job)) /* a plan may wait for it */
        job_timer(peer->job, core->now);
    if (peer->job->timer_boot_ms > core->now + HEARTBEAT_MS)
        job_timer(peer->job, core->now + HEARTBEAT_MS);
}

static void roster_gone(struct core *core, struct peer *peer, enum wire_node_state state)
{
    struct job *job = peer->job;

    peer_move(peer, state);
    peer->ended_unix_ms = core->now_unix;
    if (role_is_trainer(peer->role) && job->trainers[peer->rank] == peer)
        job->trainers[peer->rank] = NULL;
}

/* A plan waits: the save is still wanted, and who is left can make it now. (A sharded job cannot.)
 */
static bool roster_plan_can_be_kept(const struct job *job)
{
    return job->plan.why == PLAN_AHEAD && notice_any_active(job) && grace_has_trained(job) &&
           job->gen.layout == LAYOUT_REPLICATED;
}

/* The moment of a notice has come, and its save waits for the end of this other one. */
static bool roster_notice_waits(const struct job *job, const struct round *round)
{
    return round != NULL && job->plan.why != PLAN_NONE && job->plan.why != PLAN_AHEAD &&
           notice_any_active(job);
}

/* The round that is saved without this rank. True: a round, which the others serve before they end
 * for its error. Its number, if it is open and no other one comes after it. */
static bool roster_round_follows(struct job *job, const struct peer *peer, uint64_t *ret_number)
{
    struct round *round = round_awaited(job);
    const struct participant *part = round != NULL ? round_part(round, peer) : NULL;

    if (round != NULL && round->cause == CAUSE_TERMINATION)
        return true;
    bool wanted = job->want.cause == CAUSE_TERMINATION || roster_notice_waits(job, round);
    if (job->gen.state == GENERATION_RUNNING && wanted) {
        round_want(job, CAUSE_TERMINATION);
        job->want.aborted_steps = job->gen.layout == LAYOUT_REPLICATED;
        return true;
    }
    if (round != NULL && (part == NULL || !save_is_needed(job, round, part))) {
        *ret_number = job->want.cause == CAUSE_NONE ? round->round : 0;
        return true;
    }
    round_want_nothing(job);
    if (job->gen.state != GENERATION_RUNNING || !roster_plan_can_be_kept(job))
        return false;
    job->plan.why = PLAN_DUE;
    job->plan.freeze_unix_ms = 0;
    snprintf(job->plan.text, sizeof job->plan.text,
             "at once: rank %llu failed or was lost while the job trained on",
             (unsigned long long)peer->rank);
    round_want_again(job, (struct want){CAUSE_TERMINATION, 1, true}, 0);
    return true;
}

/* The error comes before the retry's freeze: everybody knows why its step is broken off. */
static void roster_tell_error(struct core *core, const struct peer *peer, struct wire_event event,
                              int64_t code)
{
    struct job *job = peer->job;

    generation_set_first_error(core, job, (int64_t)peer->rank, code, event.text);
    event.rank = (int64_t)peer->rank;
    event.flags = roster_round_follows(job, peer, &event.round) ? EVENT_FLAG_ROUND_FOLLOWS : 0;
    event_emit(core, job, event, 0);
}

/* Without this rank the others cannot go on together, and they were not told yet. */
static void roster_left_early(struct core *core, struct peer *peer, bool failed)
{
    struct wire_error error = {.code = peer->exit_code, .step = peer->done};

    if (peer->job->gen.state != GENERATION_RUNNING || peer->job->gen.error_rank >= 0 ||
        (!failed && generation_live_count(peer->job) == 0))
        return;
    if (failed)
        error.text = out_printf(core, "rank %llu left with exit code %lld",
                                (unsigned long long)peer->rank, (long long)peer->exit_code);
    else
        error.text = out_printf(core, "rank %llu left in the middle (%s, exit code %lld)",
                                (unsigned long long)peer->rank,
                                wire_leave_why_name(peer->leave_why), (long long)peer->exit_code);
    roster_error(core, peer, &error);
}

void roster_preempted(struct core *core, struct peer *peer)
{
    peer->leave_why = LEAVE_PREEMPTED;
    roster_gone(core, peer, NODE_LEFT);
    persist_peer(core, peer);
}

struct answer roster_leave(struct core *core, struct peer *peer, const struct wire_leave *leave)
{
    static const struct answer ok = {MUSTER_OK, "", 0};
    struct job *job = peer->job;
    bool running = job->gen.state == GENERATION_RUNNING;

    if (step_ok(leave->done))
        peer->begun = peer->done = leave->done;
    peer->leave_why = leave->why < LEAVE_WHY_COUNT ? (enum wire_leave_why)leave->why : LEAVE_ERROR;
    peer->exit_code = leave->code;
    /* the noticed rank's own clock may be first to reach the margin; it is the same one for all */
    if (running && role_is_trainer(peer->role) && leave->why == LEAVE_PREEMPTED)
        round_margin_reached(core, job);
    roster_gone(core, peer, NODE_LEFT);
    if (peer->leave_why == LEAVE_PREEMPTED || peer->leave_why == LEAVE_FINISHED)
        tasks_node_left(core, peer->incarnation);
    persist_peer(core, peer);
    persist_progress(core, peer);
    if (role_is_trainer(peer->role) && peer->leave_why != LEAVE_FINISHED)
        roster_left_early(core, peer, peer->leave_why == LEAVE_FAILED);
    if (!role_is_trainer(peer->role) && leave->why == LEAVE_FAILED && !peer->failed)
        observer_failed(core, peer, leave->done,
                        out_printf(core, "it left with exit code %lld", (long long)leave->code));
    return ok;
}

struct answer roster_error(struct core *core, struct peer *peer, const struct wire_error *error)
{
    struct job *job = peer->job;
    struct wire_event event = event_make(job, EVENT_PEER_ERROR);

    if (!role_is_trainer(peer->role)) {
        observer_failed(core, peer, error->step, error->text);
        return (struct answer){MUSTER_OK, "", 0};
    }
    peer->failed = job->moved = true;
    if (peer_is_live(peer))
        peer->leave_why = LEAVE_FAILED; /* in its row: a start of the broker knows it too */
    if (job->gen.state != GENERATION_RUNNING && job->gen.state != GENERATION_JOINING)
        return (struct answer){MUSTER_OK, "", 0};
    event.code = MUSTER_E_STEP;
    event.left_ms = error->code;
    event.step = error->step;
    event.text = error->text;
    roster_tell_error(core, peer, event, error->code);
    return (struct answer){MUSTER_OK, "", 0};
}

void roster_lost(struct core *core, struct peer *peer, const char *why)
{
    struct job *job = peer->job;
    enum wire_generation_state state = job->gen.state;
    char text[512];

    roster_gone(core, peer, NODE_LOST);
    persist_peer(core, peer);
    if (state != GENERATION_JOINING) /* what it did after it was last heard is not known */
        persist_progress(core, peer);
    if (!role_is_trainer(peer->role))
        observer_lost(core, peer, why);
    snprintf(text, sizeof text, "rank %llu (process %llu on %s) was lost at step %lld or later: %s",
             (unsigned long long)peer->rank, (unsigned long long)peer->pid, peer->host,
             registry_shown(job, peer->done), why);
    if (state == GENERATION_RUNNING && role_is_trainer(peer->role)) {
        struct wire_event event = event_make(job, EVENT_NODE_LOST);
        event.code = MUSTER_E_PEER;
        event.step = peer->done;
        event.left_ms = core->now - peer->heard_boot_ms;
        event.text = text;
        roster_tell_error(core, peer, event, 0);
    }
}

/* --- time ------------------------------------------------------------------------------------- */

/* After a start everybody has START_GRACE_MS to come back. A rank that missed a freeze since then
 * has less if a deadline passes in that time: its peers may wait for it in the step that is to be
 * saved. */
static bool roster_has_grace(const struct core *core, const struct peer *peer)
{
    int64_t until = core->start_boot_ms + START_GRACE_MS;
    int64_t deadline = notice_deadline(peer->job);
    bool forced = peer->missed_freeze && deadline > 0 &&
                  until + FREEZE_MS + 2 * MARGIN_MS >= core_clock_ms(core, deadline);

    return core->epoch > 1 && core->now < until && !peer->mapped && !forced;
}

static void roster_judge_silence(struct core *core, struct peer *peer)
{
    int64_t silent = core->now - peer->heard_boot_ms;
    bool pinged_in_vain = peer->pinged_boot_ms > 0 && core->now - peer->pinged_boot_ms >= LOST_MS;
    char why[128];

    if (silent < LOST_MS || (roster_has_grace(core, peer) && !pinged_in_vain)) {
        if (silent >= 2 * HEARTBEAT_MS && peer->mapped && peer->pinged_boot_ms == 0) {
            peer->pinged_boot_ms = core->now;
            send_to(core, peer->route, peer->job->name, WIRE_PING);
        }
        return;
    }
    if (peer->mapped)
        snprintf(why, sizeof why, "it was silent for %lld.%01lld s", (long long)(silent / 1000),
                 (long long)(silent % 1000 / 100));
    else /* what is known of it is of the broker before */
        snprintf(why, sizeof why,
                 "in %lld.%01lld s it did not come back to the restarted broker, and what it did "
                 "while none ran is not known",
                 (long long)(silent / 1000), (long long)(silent % 1000 / 100));
    roster_lost(core, peer, why);
}

/* Events that were published and not acknowledged go once more, to this node alone. */
static void roster_repeat_events(struct core *core, struct peer *peer)
{
    struct job *job = peer->job;

    if (!peer->mapped || peer->applied_seq >= job->seq || core->now < peer->repeat_boot_ms)
        return;
    struct action *action = action_add(core, ACTION_SEND_EVENTS);
    action->route = peer->route;
    action->job = out_text(core, job->name);
    action->number = peer->applied_seq + 1;
    action->count = EVENTS_PAGE_MAX;
    peer->repeated = true;
    peer->repeat_every_ms =
        peer->repeat_every_ms * 2 > HEARTBEAT_MS ? HEARTBEAT_MS : peer->repeat_every_ms * 2;
    peer->repeat_boot_ms = core->now + peer->repeat_every_ms;
}

/* Where a node makes no progress; NULL: nothing says that it should. A loop that muster does not
 * step shows begun = done also in its steps: then only the time tells. Before a launch's first step
 * a program may set up for long. */
static const char *roster_stands_in(const struct peer *peer)
{
    if (peer->begun > peer->done)
        return "step";
    if (peer->phase == PHASE_SAVING)
        return "its save at step";
    if (peer->phase == PHASE_STEPPING && role_is_trainer(peer->role) &&
        peer->done > peer->job->gen.resume_step)
        return "no step since step";
    return NULL;
}

static void roster_judge_stuck(struct core *core, struct peer *peer)
{
    int64_t limit = 10 * (int64_t)peer->step_p95_ms;
    int64_t still = core->now - peer->advanced_boot_ms;
    const char *where = roster_stands_in(peer);
    char text[256];

    if (limit < STUCK_MS)
        limit = STUCK_MS;
    if (peer->stuck_said || where == NULL || still < limit ||
        peer->job->gen.state != GENERATION_RUNNING)
        return;
    struct wire_event event = event_make(peer->job, EVENT_STUCK);
    event.step = peer->begun > peer->done ? peer->begun : peer->done;
    /* the query "nodes" reads these words */
    snprintf(text, sizeof text, "%s %llu has been in %s %lld for %lld s",
             role_is_trainer(peer->role) ? "rank" : wire_role_name(peer->role),
             (unsigned long long)peer->rank, where, (long long)event.step,
             (long long)(still / 1000));
    event.rank = (int64_t)peer->rank;
    event.left_ms = still;
    event.text = text;
    peer->stuck_said = true;
    event_emit(core, peer->job, event, 0);
}

void roster_tick(struct core *core, struct job *job)
{
    size_t live = 0;

    for (size_t i = 0; i < job->peers_count; i++) {
        struct peer *peer = job->peers[i];
        if (!peer_is_live(peer))
            continue;
        roster_judge_silence(core, peer);
        if (peer_is_live(peer))
            gone_tick(core, peer);
        if (!peer_is_live(peer))
            continue;
        live++;
        roster_judge_stuck(core, peer);
        roster_repeat_events(core, peer);
        if (peer->mapped && peer->applied_seq < job->seq)
            job_timer(job, peer->repeat_boot_ms);
    }
    if (live > 0)
        job_timer(job, core->now + HEARTBEAT_MS / 2);
}
