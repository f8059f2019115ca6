/* agent_boundary - the training thread's side of a boundary: it obeys the view. */
#include "node/agent/agent_state.h"

#include "node/clock.h"
#include "schema/error.h"

#include <stdio.h>
#include <string.h>

static enum muster_status boundary_ended(struct agent *agent, struct muster_error *err)
{
    agent->end_told = true;
    if (err != NULL)
        *err = agent->view.end;
    return agent->view.end.status;
}

static enum muster_status boundary_put_simple(struct agent *agent, enum member_input_kind kind,
                                              struct muster_error *err)
{
    struct post *post = post_new(kind);
    enum muster_status status;

    if (post != NULL)
        post->input.step = gate_done(agent->gate);
    status = post_put(agent, post, err);
    return status == MUSTER_OK ? agent_wait_fed(agent, err) : status;
}

static void agent_boundary_plan_next_save(struct agent *agent)
{
    int64_t every = agent->options.save_every_steps, done = gate_done(agent->gate);

    agent->gate->due = every > 0 ? (done / every + 1) * every : INT64_MAX;
}

static bool boundary_save_is_due(const struct agent *agent)
{
    return gate_done(agent->gate) >= agent->gate->due;
}

/* --- the slow path ---------------------------------------------------------------------------- */

/* A policy's save at an open gate: from here on this thread waits for the outcome. */
static enum muster_status boundary_ask_for_save(struct agent *agent, struct muster_error *err)
{
    gate_close(agent->gate);
    agent_boundary_plan_next_save(agent);
    return boundary_put_simple(agent, MEMBER_POLICY_SAVE, err);
}

/* Tells the core that this thread stands at a closed boundary: once for each mode and round. */
static bool boundary_must_arrive(struct visit *visit, const struct member_view *view)
{
    if (visit->arrived &&
        (view->mode == VIEW_CAPTURE || (visit->mode == view->mode && visit->round == view->round)))
        return false;
    visit->arrived = true;
    visit->mode = view->mode;
    visit->round = view->round;
    return true;
}

/* S is reached, and this state is to be saved. */
static bool boundary_is_save_step(const struct agent *agent, const struct visit *visit)
{
    const struct member_view *view = &agent->view;

    return (view->mode == VIEW_STEP_TO && !visit->failed) ||
           (view->mode == VIEW_CAPTURE && agent->captured_round != view->round);
}

/* At a closed gate: does what the view asks of the thread that stands there. */
static enum muster_status boundary_stand(struct agent *agent, struct visit *visit,
                                         struct muster_error *err)
{
    const struct member_view *view = &agent->view;

    if (boundary_save_is_due(agent) && (view->mode == VIEW_OPEN || view->mode == VIEW_WAIT))
        return boundary_ask_for_save(agent, err);
    if (boundary_save_is_due(agent)) /* the open round saves this very step */
        agent_boundary_plan_next_save(agent);
    if (boundary_must_arrive(visit, view)) {
        if (visit->ask && visit->save_round != 0 && !view->writer)
            agent_turn_beside(agent);
        return boundary_put_simple(agent, MEMBER_ARRIVED, err);
    }
    if (view->mode == VIEW_CAPTURE && agent->captured_round != view->round)
        return visit->ask ? agent_turn(agent, err) : agent_capture(agent, visit, err);
    return agent_wait(agent, &visit->patience, INT64_MAX, err);
}

/* One look at the view. *ret_leave: the boundary is over, with the status that is returned. */
static enum muster_status boundary_obey(struct agent *agent, struct visit *visit, bool *ret_leave,
                                        struct muster_error *err)
{
    const struct member_view *view = &agent->view;

    *ret_leave = true;
    if (view->mode == VIEW_END)
        return boundary_ended(agent, err);
    if (visit->ask && visit->save_round != 0 && agent->turn.round == visit->save_round)
        return MUSTER_OK; /* it is the caller's turn, and no step begins */
    if (view->mode == VIEW_OPEN && !boundary_save_is_due(agent)) {
        gate_open(agent->gate); /* closed by a policy save that was answered without a round */
        return !visit->begin || gate_begin(agent->gate)
                   ? MUSTER_OK
                   : error_set(err, MUSTER_E_FAULT, "an open gate refused a step; report it");
    }
    if (view->mode == VIEW_STEP_TO && gate_done(agent->gate) < view->step && !visit->failed) {
        if (boundary_save_is_due(agent)) /* the open round saves a later step */
            agent_boundary_plan_next_save(agent);
        if (visit->begin)
            gate_admit(agent->gate);
        return MUSTER_OK;
    }
    if (boundary_is_save_step(agent, visit))
        visit->save_round = view->round;
    *ret_leave = false;
    return boundary_stand(agent, visit, err);
}

enum muster_status agent_stay(struct agent *agent, struct visit *visit, struct muster_error *err)
{
    enum muster_status status;
    bool leave = false;

    pthread_mutex_lock(&agent->mutex);
    agent_turn_ended(agent, visit);
    status = agent_wait_fed(agent, err); /* what another thread said before comes first */
    while (status == MUSTER_OK && !leave)
        status = boundary_obey(agent, visit, &leave, err);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_boundary(struct agent *agent, bool begin, void *call_arg,
                                  struct muster_error *err)
{
    struct visit visit = {.begin = begin, .call_arg = call_arg};

    return agent_stay(agent, &visit, err);
}

static struct post *boundary_failure_post(int code, int64_t step, const char *text)
{
    struct post *post = post_new(MEMBER_STEP_FAILED);

    if (post == NULL)
        return NULL;
    post->input.code = code;
    post->input.step = step;
    post->input.text = arena_strdup(&post->arena, text);
    return post;
}

enum muster_status agent_step_failed(struct agent *agent, int code, struct muster_error *err)
{
    struct visit visit = {.failed = true};
    enum muster_status status;
    char text[96];

    pthread_mutex_lock(&agent->mutex);
    gate_close(agent->gate);
    gate_take_back(agent->gate);
    snprintf(text, sizeof text, "the step function returned %d", code);
    status = post_put(agent, boundary_failure_post(code, gate_done(agent->gate) + 1, text), err);
    pthread_mutex_unlock(&agent->mutex);
    if (status == MUSTER_OK)
        status = agent_stay(agent, &visit, err); /* serves a round; ends with the verdict */
    if (status == MUSTER_OK)
        return error_set_code(err, MUSTER_E_STEP, code, "%s", text);
    if (status == MUSTER_E_STEP && err != NULL)
        err->code = code;
    return status;
}

enum muster_status agent_after_failure(struct agent *agent, struct muster_error *err)
{
    struct visit visit = {.failed = true};
    enum muster_status status;

    pthread_mutex_lock(&agent->mutex);
    gate_close(agent->gate);
    if (gate_begun(agent->gate) > gate_done(agent->gate))
        gate_take_back(agent->gate);
    pthread_mutex_unlock(&agent->mutex);
    status = agent_stay(agent, &visit, err);
    return status != MUSTER_OK ? status
                               : error_set(err, MUSTER_E_STEP, "this process reported a failure");
}

void agent_count_step(struct agent *agent)
{
    pthread_mutex_lock(&agent->mutex);
    gate_count(agent->gate);
    pthread_mutex_unlock(&agent->mutex);
}

void agent_set_position(struct agent *agent, int64_t epoch, int64_t step_in_epoch,
                        int64_t data_position)
{
    agent->epoch = epoch;
    agent->step_in_epoch = step_in_epoch;
    agent->data_position = data_position;
}

void agent_hold(struct agent *agent, int change)
{
    atomic_fetch_add(&agent->hold_depth, change);
}

/* --- leaving ---------------------------------------------------------------------------------- */

static bool boundary_leaving_goes_on(enum muster_status status)
{
    return status == MUSTER_OK || status == MUSTER_E_INTERRUPTED;
}

/* One look while leaving; true: go on. An interrupt shortens it, and ends nothing in the middle. */
static bool boundary_serve_leaving(struct agent *agent, struct visit *visit)
{
    const struct member_view *view = &agent->view;
    bool at_step = view->mode == VIEW_STEP_TO && gate_done(agent->gate) == view->step;
    const int64_t now_ms = clock_ms(CLOCK_MONOTONIC);

    if (agent->hurries && !visit->patience.deaf) {
        agent->interrupted = false;
        visit->patience.deaf = true;
        visit->hurry_until_ms = now_ms + HURRY_MS;
    }
    if (visit->patience.deaf && now_ms >= visit->hurry_until_ms)
        return false;
    if (at_step && boundary_must_arrive(visit, view))
        return boundary_leaving_goes_on(boundary_put_simple(agent, MEMBER_ARRIVED, NULL));
    if (view->mode == VIEW_CAPTURE && agent->captured_round != view->round)
        return boundary_leaving_goes_on(agent_capture(agent, visit, NULL));
    return boundary_leaving_goes_on(
        agent_wait(agent, &visit->patience,
                   visit->patience.deaf ? visit->hurry_until_ms - now_ms : HEARTBEAT_MS, NULL));
}

void agent_leave(struct agent *agent, enum wire_leave_why why, int code)
{
    struct visit visit = {.arrived = true, .leaving = true};
    struct post *post;
    bool go_on = true;

    pthread_mutex_lock(&agent->mutex);
    gate_close(agent->gate);
    agent->interrupted = false; /* the way out is a wait of its own */
    agent->gate->due = INT64_MAX;
    /* A program that finished has ended its last step. One that failed between two boundaries is in
     * the middle of a step, or of a hold, and its state is that of no step. */
    bool broken = why == LEAVE_FAILED && (gate_begun(agent->gate) > gate_done(agent->gate) ||
                                          atomic_load(&agent->hold_depth) > 0);
    gate_set(agent->gate, gate_done(agent->gate), gate_done(agent->gate));
    agent_turn_ended(agent, &visit);
    visit.mode = agent->view.mode; /* not of a decision that the farewell crosses */
    visit.round = agent->view.round;
    if (!agent->leaving) {
        post = agent->farewell;
        agent->farewell = NULL;
        post->input.why = why;
        post->input.code = code;
        post->input.broken = broken || visit.unsaved; /* what it wrote of it may be torn */
        agent->leaving = true;
        go_on = post_put(agent, post, NULL) == MUSTER_OK;
    }
    if (go_on)
        go_on = boundary_leaving_goes_on(agent_wait_fed(agent, NULL));
    while (go_on && !agent->view.left) /* the core bounds it */
        go_on = boundary_serve_leaving(agent, &visit);
    agent_end_behind(agent);
    pthread_mutex_unlock(&agent->mutex);
}

/* --- joining ---------------------------------------------------------------------------------- */

static enum muster_status agent_boundary_told_to_end(const struct agent *agent, const char *why,
                                                     struct muster_error *err)
{
    const char *waits_for = agent->view.refused.text;

    return error_set(
        err, MUSTER_PREEMPTED,
        "told to end by %.200s, while waiting to join job %s%s%.500s; this process took no "
        "part in the job; start it again",
        why, agent->options.save.job, waits_for[0] != '\0' ? ": " : "", waits_for);
}

static enum muster_status boundary_joined_or_not(struct agent *agent, int64_t waited_ms,
                                                 int64_t connect_ms, int64_t open_ms,
                                                 bool *ret_wait, struct muster_error *err)
{
    const struct member_view *view = &agent->view;
    char why[256];

    *ret_wait = false;
    if (view->joined) /* also when it has ended since: a member says good-bye */
        return MUSTER_OK;
    if (view->mode == VIEW_END)
        return boundary_ended(agent, err);
    if (member_ends_soon(agent->core, clock_ms(CLOCK_BOOTTIME), why, sizeof why))
        return agent_boundary_told_to_end(agent, why, err);
    if (view->refused.status != MUSTER_OK && (!view->refused_retry || waited_ms >= open_ms)) {
        if (err != NULL)
            *err = view->refused;
        return view->refused.status;
    }
    if (agent->misfit.status != MUSTER_OK)
        return error_set(err, agent->misfit.status, "the broker at %s cannot be joined: %.700s",
                         agent->broker, agent->misfit.text);
    if (agent->frames_heard == 0 && waited_ms >= connect_ms)
        return error_set(err, MUSTER_E_BROKER,
                         "no broker answered at %s within %lld ms; start one with `musterd`, or "
                         "correct the address in MUSTER_BROKER or option broker",
                         agent->broker, (long long)connect_ms);
    if (waited_ms >= open_ms)
        return error_set(err, MUSTER_E_TIMEOUT,
                         "the broker at %s answered but did not let this rank in within %lld ms; "
                         "look at `muster status`",
                         agent->broker, (long long)open_ms);
    *ret_wait = true;
    return MUSTER_OK;
}

enum muster_status agent_wait_joined(struct agent *agent, int64_t connect_ms, int64_t open_ms,
                                     struct muster_error *err)
{
    struct agent_patience patience = {0};
    int64_t began_ms = clock_ms(CLOCK_MONOTONIC);
    enum muster_status status;
    bool wait = true, said = false;

    pthread_mutex_lock(&agent->mutex);
    do {
        if (!said && agent->view.refused_retry && agent->view.refused.status != MUSTER_OK) {
            said = true;
            agent_log(agent, 1, "rank %llu waits to join job %s: %s",
                      (unsigned long long)agent->options.save.rank, agent->options.save.job,
                      agent->view.refused.text);
        }
        status = boundary_joined_or_not(agent, clock_ms(CLOCK_MONOTONIC) - began_ms, connect_ms,
                                        open_ms, &wait, err);
        if (wait)
            status = agent_wait(agent, &patience, connect_ms < open_ms ? connect_ms : open_ms, err);
    } while (wait && status == MUSTER_OK);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_wait_resume(struct agent *agent, uint64_t not_checkpoint,
                                     struct agent_resume *ret_resume, struct muster_error *err)
{
    struct agent_patience patience = {0};
    const struct member_view *view = &agent->view;
    enum muster_status status = MUSTER_OK;

    pthread_mutex_lock(&agent->mutex);
    while (status == MUSTER_OK && view->mode != VIEW_END &&
           (!view->resume_known || view->resume_checkpoint == not_checkpoint))
        status = agent_wait(agent, &patience, INT64_MAX, err);
    if (status == MUSTER_OK && view->mode == VIEW_END)
        status = boundary_ended(agent, err);
    if (status == MUSTER_OK) {
        ret_resume->checkpoint = view->resume_checkpoint;
        ret_resume->step = view->resume_step;
        memcpy(ret_resume->path, view->resume_path, sizeof ret_resume->path);
    }
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_wait_started(struct agent *agent, uint64_t checkpoint, bool *ret_started,
                                      struct muster_error *err)
{
    struct agent_patience patience = {0};
    const struct member_view *view = &agent->view;
    enum muster_status status = MUSTER_OK;

    pthread_mutex_lock(&agent->mutex);
    while (status == MUSTER_OK && view->mode != VIEW_END && !view->started &&
           view->resume_checkpoint == checkpoint)
        status = agent_wait(agent, &patience, INT64_MAX, err);
    if (status == MUSTER_OK && view->mode == VIEW_END)
        status = boundary_ended(agent, err);
    if (status == MUSTER_OK)
        *ret_started = view->resume_checkpoint == checkpoint;
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_suspects(struct agent *agent, int64_t wait_ms, struct muster_error *err)
{
    const int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + wait_ms;
    struct agent_patience patience = {0};
    enum muster_status status;
    int64_t left_ms = wait_ms;

    pthread_mutex_lock(&agent->mutex);
    status = boundary_put_simple(agent, MEMBER_SUSPECTS, err);
    while (status == MUSTER_OK && agent->view.mode != VIEW_END && !agent->view.all_live &&
           !agent->error_heard && left_ms > 0) {
        status = agent_wait(agent, &patience, left_ms, err);
        left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
    }
    if (status == MUSTER_OK && agent->view.mode == VIEW_END)
        status = boundary_ended(agent, err);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_take_end(struct agent *agent, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    pthread_mutex_lock(&agent->mutex);
    if (agent->view.mode == VIEW_END)
        status = boundary_ended(agent, err);
    else if (agent->interrupted)
        status = error_set(err, MUSTER_E_INTERRUPTED, "rank %llu was interrupted while it waited",
                           (unsigned long long)agent->options.save.rank);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_restored(struct agent *agent, uint64_t checkpoint, int64_t step,
                                  struct muster_error *err)
{
    struct post *post = post_new(MEMBER_RESTORED);
    enum muster_status status;

    pthread_mutex_lock(&agent->mutex);
    gate_set(agent->gate, step, step);
    agent_boundary_plan_next_save(agent);
    if (post != NULL) {
        post->input.checkpoint = checkpoint;
        post->input.step = step;
    }
    status = post_put(agent, post, err);
    if (status == MUSTER_OK)
        status = agent_wait_fed(agent, err);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_restore_failed(struct agent *agent, uint64_t checkpoint, int64_t step,
                                        const char *text, bool final, bool imports,
                                        struct muster_error *err)
{
    struct post *post = post_new(MEMBER_RESTORE_FAILED);
    enum muster_status status;

    if (post != NULL) {
        post->input.checkpoint = checkpoint;
        post->input.step = step;
        post->input.text = arena_strdup(&post->arena, text);
        post->input.final = final;
        post->input.imports = imports;
    }
    pthread_mutex_lock(&agent->mutex);
    status = post_put(agent, post, err);
    if (status == MUSTER_OK)
        status = agent_wait_fed(agent, err);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

/* --- any thread ------------------------------------------------------------------------------- */

enum muster_status agent_fail(struct agent *agent, int code, const char *text,
                              struct muster_error *err)
{
    enum muster_status status;

    pthread_mutex_lock(&agent->mutex);
    gate_close(agent->gate);    /* no further step begins before the core has heard it */
    agent->interrupted = false; /* that was what it led to */
    status = post_put(agent, boundary_failure_post(code, gate_done(agent->gate), text), err);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

enum muster_status agent_notify(struct agent *agent, enum wire_notice_kind kind, int64_t left_ms,
                                const char *text, struct muster_error *err)
{
    struct post *post = post_new(MEMBER_NOTICE);
    enum muster_status status;

    pthread_mutex_lock(&agent->mutex);
    if (post != NULL) {
        post->input.id = arena_printf(&post->arena, "program-%016llx-%llu",
                                      (unsigned long long)agent->options.member.incarnation,
                                      (unsigned long long)++agent->notice_count);
        post->input.notice_kind = kind;
        post->input.source = "program";
        post->input.left_ms = left_ms;
        post->input.text = arena_strndup(&post->arena, text, strnlen(text, TEXT_MAX));
    }
    status = post_put(agent, post, err);
    pthread_mutex_unlock(&agent->mutex);
    return status;
}

bool agent_hears_broker(const struct agent *agent)
{
    return !atomic_load(&agent->unheard);
}

const char *agent_why_waits(const struct agent *agent)
{
    return agent_hears_broker(agent)
               ? "`muster rounds` shows whom it waits for"
               : "no broker is heard; what is written is committed once it answers again";
}

uint64_t agent_broker_start(const struct agent *agent)
{
    return atomic_load(&agent->broker_start);
}

int64_t agent_outcome_step(const struct agent *agent)
{
    return atomic_load(&agent->outcome_step);
}

int64_t agent_save_step(const struct agent *agent)
{
    return atomic_load(&agent->save_step);
}

void agent_view(struct agent *agent, struct member_view *ret_view)
{
    pthread_mutex_lock(&agent->mutex);
    *ret_view = agent->view;
    pthread_mutex_unlock(&agent->mutex);
}
