/* sim_thread - the training thread: a loop of steps with boundaries between them, as client/ and
 * node/agent/agent_boundary.c make it. In a synchronous job a step ends only when all its
 * participants began it, so a wrong freeze deadlocks visibly. */
#include "tests/sim/sim_save.h"
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

#define CONNECT_US 10000000
#define OPEN_US 60000000

static void boundary(struct sim *sim, struct sim_proc *proc);
static void leave(struct sim *sim, struct sim_proc *proc, enum wire_leave_why why, int64_t code);

static bool is_trainer(const struct sim_proc *proc)
{
    return proc->role == ROLE_CHIEF || proc->role == ROLE_WORKER;
}

const char *thread_state_name(enum sim_thread_state state)
{
    static const char *const names[] = {"joining",
                                        "waits for its checkpoint",
                                        "restoring",
                                        "posted",
                                        "waits at a boundary",
                                        "in a step",
                                        "suspects another",
                                        "saving",
                                        "waits for deletions",
                                        "leaving",
                                        "gone"};

    return names[state];
}

void thread_set_state(struct sim *sim, struct sim_proc *proc, enum sim_thread_state state)
{
    if (proc->state != state)
        proc->since_us = sim->now_us;
    proc->state = state;
    proc->thread_stamp++;
}

/* --- posts to the agent thread ---------------------------------------------------------------- */

static void posted(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    struct member_input input;

    if (event->stamp != proc->thread_stamp)
        return;
    memcpy(&input, event->data, sizeof input);
    if (proc->begun == proc->done)
        proc->arrivals[proc->arrivals_next++ % 32] = proc->done;
    proc->state = proc->after_post;
    proc->thread_stamp++;
    proc_feed(sim, proc, &input);
    thread_look(sim, proc);
}

void thread_post(struct sim *sim, struct sim_proc *proc, const struct member_input *input,
                 enum sim_thread_state after)
{
    proc->after_post = after;
    proc->state = THREAD_POSTED;
    proc->thread_stamp++;
    struct sim_event *event = sim_after(sim, sim_range(sim, 0, sim->post_max_us), posted, proc);
    event->stamp = proc->thread_stamp;
    event->data = malloc(sizeof *input);
    event->size = sizeof *input;
    memcpy(event->data, input, sizeof *input);
}

static void plan_next_save(struct sim *sim, struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    int64_t stride = job->stride, every = job->policy_every * stride - stride / 2;

    if (job->policy_every == 0 || !is_trainer(proc))
        return;
    int64_t due = (proc->done * stride / every + 1) * every; /* in steps */
    proc->policy_due = (due + stride - 1) / stride;
    proc->due_between = due % stride != 0;
}

/* --- steps ------------------------------------------------------------------------------------ */

static void step_failed(struct sim *sim, struct sim_proc *proc, const char *text)
{
    struct member_input input = {
        .kind = MEMBER_STEP_FAILED, .code = 7, .step = proc->done + 1, .text = text};

    SIM_TELL(sim, "%s/%u step %lld fails: %s", sim->jobs[proc->job].name, proc->slot,
             (long long)proc->begun, text);
    if (!proc->closed)
        proc->closed_since_us = sim->now_us;
    proc->closed = true;
    proc->begun--;
    proc->failed_step = true;
    proc->arrived = false;
    proc->since_us = sim->now_us;
    thread_post(sim, proc, &input, THREAD_WAITING);
}

static void step_over(struct sim *sim, struct sim_proc *proc)
{
    if (sim->fail_steps > 0 && sim_chance(sim, 50)) {
        sim->fail_steps--;
        fault_met(sim, FAULT_STEP_FAILS);
        step_failed(sim, proc, "the step function returned 7");
        return;
    }
    proc->done++;
    sim->stats->steps++;
    boundary(sim, proc);
}

static void step_end(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;

    if (event->stamp != proc->thread_stamp || proc->state != THREAD_STEP)
        return;
    if (proc->stuck) {
        fault_met_once(sim, &proc->unmet, FAULT_THREAD_STUCK);
        proc->stuck_at_end = true;
        return;
    }
    step_over(sim, proc);
}

void thread_unstick(struct sim *sim, struct sim_proc *proc)
{
    proc->stuck = false;
    if (proc->alive && proc->stuck_at_end && proc->state == THREAD_STEP) {
        proc->stuck_at_end = false;
        step_over(sim, proc);
    }
}

static void run_step(struct sim *sim, struct sim_proc *proc)
{
    const struct sim_job *job = &sim->jobs[proc->job];
    int64_t takes = job->step_us * sim_range(sim, 80, 120) / 100;

    if (sim_chance(sim, 1))
        takes *= 3;
    if (proc->holding)
        takes *= sim_range(sim, 2, job->step_us > 1000000 ? 2 : 10);
    proc->released = true;
    if (sim->options.grace != NULL)
        takes = grace_step_us(sim, proc);
    sim_after(sim, takes, step_end, proc)->stamp = proc->thread_stamp;
}

/* Its own rank is itself: another life of it may be there under that number of a generation that is
 * lost. */
static struct sim_proc *takes_part(const struct sim_job *job, unsigned rank, struct sim_proc *proc)
{
    return is_trainer(proc) && rank == proc->rank ? proc
                                                  : job_peer(job, rank, proc->view.generation);
}

/* A step of a synchronous job goes on when all who take part in it have begun it. */
static void release(struct sim *sim, struct sim_proc *proc)
{
    struct sim_job *job = &sim->jobs[proc->job];
    int64_t step = proc->begun;

    for (unsigned rank = 0; rank < job->nodes; rank++) {
        const struct sim_proc *peer = takes_part(job, rank, proc);
        if (job->total[rank] < step)
            continue; /* its loop is shorter */
        if (peer == NULL)
            return;
        if (!(peer->alive && peer->begun >= step) && peer->done < step)
            return;
    }
    for (unsigned rank = 0; rank < job->nodes; rank++) {
        struct sim_proc *peer = takes_part(job, rank, proc);
        if (peer != NULL && peer->alive && peer->state == THREAD_STEP && !peer->released &&
            peer->begun == step)
            run_step(sim, peer);
    }
}

static void begin(struct sim *sim, struct sim_proc *proc)
{
    check_waited(sim, proc);
    proc->begun++;
    proc->released = false;
    proc->stuck_at_end = false;
    proc->holding = sim_chance(sim, sim->jobs[proc->job].hold_percent);
    sim->stats->holds += proc->holding;
    thread_set_state(sim, proc, THREAD_STEP);
    check_begin(sim, proc);
    notice_at_last_step(sim, proc);
    if (sim->jobs[proc->job].async || !is_trainer(proc))
        run_step(sim, proc);
    else
        release(sim, proc);
    suspects_begin(sim, proc);
}

void thread_suspects(struct sim *sim, struct sim_proc *proc)
{
    struct member_input input = {.kind = MEMBER_SUSPECTS};

    suspects_asks(sim, proc);
    if (sim->options.mutation == MUTANT_BLAMES_ITSELF)
        step_failed(sim, proc, SIM_BROKE);
    else
        thread_post(sim, proc, &input, THREAD_SUSPECTING);
}

void thread_suspects_nobody(struct sim *sim, struct sim_proc *proc)
{
    step_failed(sim, proc, SIM_BROKE);
}

/* on_error: a thread blocked in a collective is freed, most times. */
void thread_on_error(struct sim *sim, struct sim_proc *proc)
{
    if (proc->state == THREAD_SUSPECTING)
        thread_look(sim, proc);
    if (proc->state != THREAD_STEP)
        return;
    if ((proc->stuck && sim_chance(sim, 50)) || sim_chance(sim, 12)) {
        if (proc->stuck)
            fault_met_once(sim, &proc->unmet, FAULT_THREAD_STUCK);
        if (proc->deaf_since_us <
            proc->since_us) /* it goes on if it can, else the process has to be ended */
            proc->deaf_since_us = sim->now_us;
        return;
    }
    proc->stuck = false;
    step_failed(sim, proc, "broken off");
}

/* --- the slow path ---------------------------------------------------------------------------- */

static void end_loop(struct sim *sim, struct sim_proc *proc, enum muster_status status,
                     bool restart)
{
    sim->stats->ends[status]++;
    leave(sim, proc,
          restart                   ? LEAVE_PREEMPTED
          : status == MUSTER_E_STEP ? LEAVE_FAILED
                                    : LEAVE_ERROR,
          status == MUSTER_E_STEP ? 7 : 1);
}

/* As agent_suspects. */
static void suspecting(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    if (view->mode == VIEW_END) {
        end_loop(sim, proc, view->end.status, view->leave_restart);
    } else if (view->all_live) {
        suspects_lives(sim, proc);
        step_failed(sim, proc, SIM_BROKE);
    } else if (proc->error_heard) { /* a save may be served first, and needs this step to be over */
        step_failed(sim, proc, SIM_BROKE);
    }
}

static bool must_arrive(struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    if (proc->arrived && (view->mode == VIEW_CAPTURE ||
                          (proc->arrived_mode == view->mode && proc->arrived_round == view->round)))
        return false;
    proc->arrived = true;
    proc->arrived_mode = view->mode;
    proc->arrived_round = view->round;
    return true;
}

static bool save_is_due(const struct sim_proc *proc)
{
    return proc->done >= proc->policy_due;
}

static void ask_for_save(struct sim *sim, struct sim_proc *proc)
{
    struct member_input input = {.kind = MEMBER_POLICY_SAVE, .step = proc->done};

    sim->stats->between_strides += proc->due_between;
    if (!proc->closed)
        proc->closed_since_us = sim->now_us;
    proc->closed = true;
    plan_next_save(sim, proc);
    thread_post(sim, proc, &input, THREAD_WAITING);
}

static bool may_step(const struct sim *sim, const struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    return view->mode == VIEW_STEP_TO &&
           (proc->done < view->step || (sim->options.mutation == MUTANT_NO_GUARD &&
                                        proc->done == view->step && proc->done < proc->total));
}

static void obey(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;
    struct member_input arrived = {.kind = MEMBER_ARRIVED, .step = proc->done};

    if (view->mode == VIEW_END) {
        end_loop(sim, proc, view->end.status, view->leave_restart);
        return;
    }
    if (turn_is_on(sim, proc))
        return;
    if ((view->mode == VIEW_OPEN && !save_is_due(proc)) || may_step(sim, proc)) {
        if (proc->failed_step) { /* its run() returns E_STEP */
            end_loop(sim, proc, MUSTER_E_STEP, false);
            return;
        }
        if (view->mode == VIEW_OPEN)
            proc->closed = false;
        else if (save_is_due(proc))
            plan_next_save(sim, proc);
        begin(sim, proc);
        return;
    }
    if (save_is_due(proc) && (view->mode == VIEW_OPEN || view->mode == VIEW_WAIT)) {
        ask_for_save(sim, proc);
        return;
    }
    if (save_is_due(proc))
        plan_next_save(sim, proc);
    turn_at_save_step(proc);
    if (must_arrive(proc)) {
        turn_arrives(sim, proc);
        thread_post(sim, proc, &arrived, THREAD_WAITING);
    } else if (view->mode == VIEW_CAPTURE && proc->captured_round != view->round) {
        save_capture(sim, proc);
    }
}

static void boundary(struct sim *sim, struct sim_proc *proc)
{
    if (proc->done >= proc->total || (!is_trainer(proc) && job_is_done(&sim->jobs[proc->job]))) {
        if (keeps_sweep_first(sim, proc))
            thread_set_state(sim, proc, THREAD_SWEEPING);
        else
            leave(sim, proc, LEAVE_FINISHED, 0);
        return;
    }
    if (!proc->closed && !save_is_due(proc)) {
        begin(sim, proc);
        return;
    }
    turn_at_boundary(sim, proc);
    proc->arrived = false;
    thread_set_state(sim, proc, THREAD_WAITING);
    thread_look(sim, proc);
}

void thread_swept(struct sim *sim, struct sim_proc *proc)
{
    if (proc->state == THREAD_SWEEPING)
        boundary(sim, proc);
}

/* --- leaving ---------------------------------------------------------------------------------- */

static void gone(struct sim *sim, struct sim_proc *proc, const char *how)
{
    proc_end(sim, proc,
             proc->why == LEAVE_FINISHED    ? END_FINISHED
             : proc->why == LEAVE_PREEMPTED ? END_RESTART
                                            : END_FAILED,
             how);
}

static void leave(struct sim *sim, struct sim_proc *proc, enum wire_leave_why why, int64_t code)
{
    struct member_input input = {.kind = MEMBER_CLOSE, .why = why, .code = code};

    if (!proc->closed)
        proc->closed_since_us = sim->now_us;
    proc->closed = true;
    proc->visit_asks = false;
    proc->policy_due = NEVER;
    proc->begun = proc->done;
    proc->why = why;
    proc->leaving = true;
    proc->arrived = true;
    proc->since_us = sim->now_us;
    SIM_TELL(sim, "%s/%u leaves: %s, done %lld", sim->jobs[proc->job].name, proc->slot,
             wire_leave_why_name(why), (long long)proc->done);
    thread_post(sim, proc, &input, THREAD_LEAVING);
}

static void serve_leaving(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;
    struct member_input arrived = {.kind = MEMBER_ARRIVED, .step = proc->done};

    if (view->left)
        gone(sim, proc, "left");
    else if (view->mode == VIEW_STEP_TO && proc->done == view->step && must_arrive(proc))
        thread_post(sim, proc, &arrived, THREAD_LEAVING);
    else if (view->mode == VIEW_CAPTURE && proc->captured_round != view->round)
        save_capture(sim, proc);
}

/* --- joining ---------------------------------------------------------------------------------- */

static void restored(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    const struct sim_job *job = &sim->jobs[proc->job];
    uint64_t checkpoint = (uint64_t)event->number;
    const struct sim_shard *shard = NULL;
    struct member_input input = {.kind = MEMBER_RESTORED, .checkpoint = checkpoint};

    if (event->stamp != proc->thread_stamp)
        return;
    if (checkpoint > 0)
        shard = fs_restore(sim, job, (const char *)event->data, checkpoint,
                           is_trainer(proc) ? (int)proc->rank : -1, proc->since_us);
    if (checkpoint > 0 && (shard == NULL || sim->fail_restores > 0)) {
        if (shard == NULL && import_is_gone(sim, proc, checkpoint))
            import_missing(sim, proc, checkpoint);
        else if (shard == NULL)
            sim_broken(sim, "I9",
                       "rank %u is told to restore %llu at '%s', which is not there whole",
                       proc->rank, (unsigned long long)checkpoint, (const char *)event->data);
        if (shard != NULL)
            fault_met(sim, FAULT_RESTORE_FAILS); /* else it could not be restored anyway */
        sim->fail_restores -= sim->fail_restores > 0;
        input.kind = MEMBER_RESTORE_FAILED;
        input.step = shard ? shard->done : 0;
        input.text = "the file is damaged";
        proc->not_checkpoint = checkpoint;
        thread_post(sim, proc, &input, THREAD_RESUME);
        return;
    }
    if (is_trainer(proc) && proc->rank == 0 && sim->options.mutation != MUTANT_DOES_NOT_LOOK &&
        import_is_newer(sim, job, shard != NULL ? shard->done : -1)) {
        proc->imports = true;
        input.kind = MEMBER_RESTORE_FAILED;
        input.step = shard != NULL ? shard->done : 0;
        input.text = "newer ones are there";
        input.final = input.imports = true;
        proc->not_checkpoint = checkpoint;
        thread_post(sim, proc, &input, THREAD_RESUME);
        return;
    }
    check_restored(sim, proc, checkpoint, shard);
    proc->begun = proc->done = input.step = shard ? shard->done : 0;
    proc->first_step = proc->done;
    proc->restored_checkpoint = checkpoint;
    proc->arrived = false;
    plan_next_save(sim, proc);
    SIM_TELL(sim, "%s/%u restored checkpoint %llu, step %lld", job->name, proc->slot,
             (unsigned long long)checkpoint, (long long)proc->done);
    thread_post(sim, proc, &input, THREAD_WAITING);
}

void thread_imported(struct sim *sim, struct sim_proc *proc)
{
    if (proc->state == THREAD_RESUME)
        end_loop(sim, proc, proc->view.end.status, proc->view.leave_restart);
}

static void resume(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    if (view->mode == VIEW_END && proc->imports && proc->view.leave_restart) {
        if (sim->jobs[proc->job].keeps.importer == proc || import_by_rank(sim, proc))
            return;
    }
    if (view->mode == VIEW_END) {
        end_loop(sim, proc, view->end.status, view->leave_restart);
        return;
    }
    if (!view->resume_known || view->resume_checkpoint == proc->not_checkpoint)
        return;
    thread_set_state(sim, proc, THREAD_RESTORING);
    proc->restoring = view->resume_checkpoint;
    struct sim_event *event = sim_after(sim, sim_range(sim, 1000, 400000), restored, proc);
    event->stamp = proc->thread_stamp;
    event->number = (int64_t)view->resume_checkpoint;
    event->size = strlen(view->resume_path) + 1;
    event->data = malloc(event->size);
    memcpy(event->data, view->resume_path, event->size);
}

static void joining(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;
    bool late = sim->now_us - proc->since_us >= OPEN_US;

    if (view->mode == VIEW_END)
        end_loop(sim, proc, view->end.status, view->leave_restart);
    else if (view->joined) {
        thread_set_state(sim, proc, THREAD_RESUME);
        resume(sim, proc);
    } else if (view->refused.status != MUSTER_OK && (!view->refused_retry || late)) {
        sim->stats->ends[view->refused.status]++;
        proc_end(sim, proc, view->refused.status == MUSTER_PREEMPTED ? END_RESTART : END_FAILED,
                 view->refused.text);
    } else if (late || (proc->frames_heard == 0 && sim->now_us - proc->since_us >= CONNECT_US)) {
        sim->stats->ends[MUSTER_E_BROKER]++;
        proc_end(sim, proc, END_FAILED, "no broker answered");
    }
}

static void joining_late(struct sim *sim, struct sim_event *event)
{
    if (event->proc->state == THREAD_JOINING)
        joining(sim, event->proc);
}

void sim_thread_start(struct sim *sim, struct sim_proc *proc)
{
    thread_set_state(sim, proc, THREAD_JOINING);
    sim_after(sim, CONNECT_US, joining_late, proc);
    sim_after(sim, OPEN_US, joining_late, proc);
}

/* A fallback chose an older checkpoint after this one was restored. */
static bool resume_changed(const struct sim_proc *proc)
{
    const struct member_view *view = &proc->view;

    return !view->started && view->resume_known && view->mode != VIEW_END &&
           view->resume_checkpoint != proc->restored_checkpoint;
}

void thread_look(struct sim *sim, struct sim_proc *proc)
{
    if (!proc->alive || sim->failed)
        return;
    switch (proc->state) {
    case THREAD_JOINING:
        joining(sim, proc);
        break;
    case THREAD_RESUME:
        resume(sim, proc);
        break;
    case THREAD_WAITING:
        if (resume_changed(proc)) {
            thread_set_state(sim, proc, THREAD_RESUME);
            resume(sim, proc);
        } else {
            obey(sim, proc);
        }
        break;
    case THREAD_SUSPECTING:
        suspecting(sim, proc);
        break;
    case THREAD_LEAVING:
        serve_leaving(sim, proc);
        break;
    default:
        break; /* it does not look */
    }
}
