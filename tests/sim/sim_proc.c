/* sim_proc - one process: drives a node's core as node/agent/agent_core.c does, with its gate, its
 * timer and its posts. What the training thread does is sim_thread.c. */
#include "tests/sim/sim_world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CLOSINGS_MAX 8

static int64_t proc_boot_ms(const struct sim *sim, const struct sim_proc *proc)
{
    return sim->now_us / 1000 + proc->boot_offset_ms;
}

static void look(struct sim *sim, struct sim_event *event)
{
    keeps_look(sim, event->proc);
    thread_look(sim, event->proc);
}

/* --- actions ---------------------------------------------------------------------------------- */

/* MUTANT_SAVES_LATE_SAYS_SO: the step that the shard really holds. */
static struct wire_msg tell_truth(struct sim *sim, const struct sim_proc *proc,
                                  const struct wire_msg *message)
{
    struct wire_msg copy = *message;
    bool files = message->type == WIRE_FILES;
    uint64_t round = files ? message->u.files.round : message->u.saved.round;
    const struct sim_shard *shard;

    if (sim->options.mutation != MUTANT_SAVES_LATE_SAYS_SO ||
        (!files && message->type != WIRE_SAVED))
        return copy;
    shard = fs_shard(sim, proc, proc->view.generation, round);
    if (shard != NULL && files)
        copy.u.files.step = shard->done;
    else if (shard != NULL)
        copy.u.saved.step = shard->done;
    return copy;
}

static void send_frame(struct sim *sim, struct sim_proc *proc, const struct wire_msg *original)
{
    struct wire_msg copy = tell_truth(sim, proc, original);
    const struct wire_msg *message = &copy;
    size_t size = wire_encode(message, sim->buffer, sizeof sim->buffer);

    if (size == 0) {
        sim_broken(sim, "wire", "a %s of rank %u cannot be encoded", wire_type_name(message->type),
                   proc->rank);
        return;
    }
    SIM_TELL(sim, "%s/%u -> %s request %llu applied %llu%s", sim->jobs[proc->job].name, proc->slot,
             wire_type_name(message->type), (unsigned long long)message->up.request,
             (unsigned long long)message->up.applied_seq, proc->route ? "" : " (not connected)");
    sim->stats->messages[message->type]++;
    check_up(sim, proc, message);
    net_up(sim, proc, sim->buffer, size);
}

static void publish_view(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = &proc->view, before = proc->view;
    enum view_mode former = view->mode;
    const char *const modes[] = {"WAIT", "OPEN", "STEP_TO", "CAPTURE", "END"};

    proc->view = *member_get_view(proc->member);
    claims_outcomes(sim, proc);
    if (view->mode == VIEW_END && former != VIEW_END) {
        proc->end_generation = view->generation;
        claims_ends(sim, proc);
    }
    if (view->mode != former || view->round != before.round || view->step != before.step)
        proc->undecided_us = sim->now_us;
    SIM_TELL(sim, "%s/%u view %s round %llu step %lld%s%s%s%s (begun %lld done %lld) %s",
             sim->jobs[proc->job].name, proc->slot, modes[view->mode],
             (unsigned long long)view->round, (long long)view->step, view->writer ? " writer" : "",
             view->joined ? " joined" : "", view->started ? " started" : "",
             view->left ? " left" : "", (long long)proc->begun, (long long)proc->done,
             view->mode == VIEW_END ? view->end.text : "");
    if (view->mode == VIEW_OPEN && proc->closed) {
        if (former != VIEW_OPEN) /* else the thread closed it itself, and waits */
            check_open(sim, proc);
        check_held(sim, proc, &before);
        proc->closed = false;
        if (sim->options.mutation == MUTANT_DISCARDS_EARLY && former != VIEW_OPEN)
            fs_discard(sim, proc, view->generation, proc->captured_round);
    }
    sim_after(sim, sim_range(sim, 0, 30), look, proc);
}

static void exit_by_agent(struct sim *sim, struct sim_event *event)
{
    sim->stats->process_exits_by_agent++;
    proc_end(sim, event->proc, event->number ? END_RESTART : END_FAILED, "ended by its agent");
}

static void on_error(struct sim *sim, struct sim_event *event)
{
    thread_on_error(sim, event->proc);
}

static int64_t close_gate(struct sim *sim, struct sim_proc *proc)
{
    if (!proc->closed)
        proc->closed_since_us = sim->now_us;
    proc->closed = true;
    return proc->begun;
}

/* Returns the begun of a closing, or -1. */
static int64_t carry_out(struct sim *sim, struct sim_proc *proc, const struct member_action *action)
{
    switch (action->kind) {
    case MEMBER_SEND:
        send_frame(sim, proc, &action->message);
        return -1;
    case MEMBER_SUBSCRIBE: /* there is one address: a subscription that stands is kept */
        if (!proc->wants_sub)
            net_subscribe(sim, proc);
        return -1;
    case MEMBER_CLOSE_GATE:
        return close_gate(sim, proc);
    case MEMBER_VIEW:
        publish_view(sim, proc);
        return -1;
    case MEMBER_ON_ERROR:
        proc->error_heard = true;
        sim_after(sim, sim_range(sim, 0, 300000), on_error, proc);
        return -1;
    case MEMBER_WRITE_MANIFEST:
        proc->manifests++;
        fs_manifest(sim, proc, action->generation, action->round, action->step, action->bytes,
                    action->bytes_count);
        return -1;
    case MEMBER_DISCARD_ROUND:
        fs_discard(sim, proc, action->generation, action->round);
        return -1;
    case MEMBER_DELETE:
        delete_begin(sim, proc, action->generation, action->round);
        return -1;
    case MEMBER_NOTICE_WITHDRAWN: /* each has an id of its own here */
        return -1;
    case MEMBER_EXIT_PROCESS:
        sim_after(sim, 0, exit_by_agent, proc)->number = action->restart;
        return -1;
    case MEMBER_LOG:
        SIM_TELL(sim, "%s/%u log: %s", sim->jobs[proc->job].name, proc->slot, action->text);
        return -1;
    }
    sim_broken(sim, "member", "rank %u's core asked for an unknown action", proc->rank);
    return -1;
}

/* One that is merely slow tells nothing: it is none of those that go on. */
static void tell_saving(const struct sim *sim, struct sim_proc *proc)
{
    uint64_t round = proc->saving_round != 0 ? proc->saving_round : proc->behind_round;
    int64_t begun_us = proc->saving_round != 0 ? proc->save_begun_us : proc->behind_begun_us;

    if (proc->saves_long)
        member_set_saving(proc->member, round, (uint64_t)(sim->now_us - begun_us) / 1000 + 1);
}

/* What a tick before the next wake-up finds to do is done late in a quiet world: nobody gives one
 * there. That no broker is heard is for people, and comes with the next heartbeat. */
static void check_wakeup(struct sim *sim, struct sim_proc *proc)
{
    const struct member_view *view = member_get_view(proc->member);
    struct member_input early = proc->fed;
    bool unheard = view->unheard;

    early.kind = MEMBER_TICK;
    early.now_boot_ms = proc_boot_ms(sim, proc);
    if (proc->fed.kind == 0 || early.now_boot_ms >= member_wakeup_boot_ms(proc->member))
        return;
    member_actions_clear(&proc->actions);
    member_step(proc->member, &early, &proc->actions);
    for (size_t i = 0; i < proc->actions.count && view->unheard == unheard; i++)
        if (proc->actions.items[i].kind != MEMBER_LOG)
            sim_broken(sim, "wakeup",
                       "rank %u's core has action %d to do before it asks to be woken", proc->rank,
                       (int)proc->actions.items[i].kind);
}

static int64_t step_core(struct sim *sim, struct sim_proc *proc, struct member_input *input)
{
    int64_t closing = -1;

    input->now_boot_ms = proc_boot_ms(sim, proc);
    if (input->kind != MEMBER_GATE_CLOSED)
        input->begun = proc->begun;
    input->done = proc->done;
    input->in_hold = proc->holding && proc->state == THREAD_STEP;
    if (input->kind != MEMBER_GATE_CLOSED)
        check_wakeup(sim, proc);
    proc->fed = *input;
    member_actions_clear(&proc->actions);
    tell_saving(sim, proc);
    member_step(proc->member, input, &proc->actions);
    if (member_moved_wrong(proc->member))
        sim_broken(sim, "moves", "rank %d changed a state as no table allows", (int)proc->rank);
    for (size_t i = 0; i < proc->actions.count && !sim->failed; i++) {
        int64_t begun = carry_out(sim, proc, &proc->actions.items[i]);
        if (closing < 0)
            closing = begun;
    }
    return closing;
}

static void timer(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    struct member_input input = {.kind = MEMBER_TICK};

    if (event->stamp != proc->timer_stamp)
        return;
    proc->timer_at_us = NEVER;
    proc_feed(sim, proc, &input);
}

static void set_timer(struct sim *sim, struct sim_proc *proc)
{
    int64_t wakeup = member_wakeup_boot_ms(proc->member);
    int64_t at = wakeup == INT64_MAX ? NEVER : (wakeup - proc->boot_offset_ms) * 1000;

    if (at < sim->now_us + 1000)
        at = sim->now_us + 1000; /* the agent sleeps a millisecond at least */
    if (at == proc->timer_at_us)
        return;
    proc->timer_at_us = at;
    proc->timer_stamp++;
    if (at != NEVER)
        sim_at(sim, at, timer, proc)->stamp = proc->timer_stamp;
}

void proc_feed(struct sim *sim, struct sim_proc *proc, struct member_input *input)
{
    int64_t closing;

    if (!proc->alive || sim->failed)
        return;
    closing = step_core(sim, proc, input);
    for (int i = 0; closing >= 0 && !sim->failed; i++) {
        struct member_input closed = {.kind = MEMBER_GATE_CLOSED, .begun = closing};
        if (i == CLOSINGS_MAX) {
            sim_broken(sim, "member", "rank %u's core closes its gate for ever", proc->rank);
            return;
        }
        closing = step_core(sim, proc, &closed);
    }
    set_timer(sim, proc);
}

void proc_frame(struct sim *sim, struct sim_proc *proc, const uint8_t *data, size_t size)
{
    struct wire_msg message;
    struct muster_error err;
    struct member_input input = {.kind = MEMBER_FRAME, .message = &message};

    arena_reset(&sim->frame);
    if (wire_decode(data, size, &sim->frame, &message, &err) != MUSTER_OK) {
        sim_broken(sim, "wire", "a frame of the broker cannot be decoded: %s", err.text);
        return;
    }
    if (message.type == WIRE_EVENT)
        SIM_TELL(sim, "%s/%u <- EVENT %llu %s round %llu step %lld", sim->jobs[proc->job].name,
                 proc->slot, (unsigned long long)message.u.event.seq,
                 wire_event_kind_name((unsigned)message.u.event.kind),
                 (unsigned long long)message.u.event.round, (long long)message.u.event.step);
    else if (message.type == WIRE_ACK)
        SIM_TELL(sim, "%s/%u <- ACK of %llu: %s %s", sim->jobs[proc->job].name, proc->slot,
                 (unsigned long long)message.u.ack.request,
                 muster_status_name((enum muster_status)message.u.ack.code), message.u.ack.text);
    else
        SIM_TELL(sim, "%s/%u <- %s last %llu", sim->jobs[proc->job].name, proc->slot,
                 wire_type_name(message.type), (unsigned long long)message.down.last_seq);
    if (message.type == WIRE_ALIVE && sim->options.mutation == MUTANT_ALL_LIVE)
        message.u.alive.all_live = true;
    if (message.type == WIRE_ALIVE && sim->options.mutation == MUTANT_NEVER_TOLD)
        message.u.alive.all_live = false;
    proc->frames_heard++;
    proc->heard_us = sim->now_us;
    check_heard(sim, proc, &message);
    if (sim->options.mutation == MUTANT_NO_ORDER && message.type == WIRE_EVENT &&
        message.u.event.seq > proc->heard_contiguous)
        message.u.event.seq = proc->heard_contiguous + 1;
    proc_feed(sim, proc, &input);
    if (member_heard_boot_ms(proc->member) == sim->now_us / 1000 + proc->boot_offset_ms)
        proc->link_us = sim->now_us;
}

/* --- life ------------------------------------------------------------------------------------- */

static void first_tick(struct sim *sim, struct sim_event *event)
{
    struct member_input input = {.kind = MEMBER_TICK};

    proc_feed(sim, event->proc, &input);
    sim_thread_start(sim, event->proc);
}

static enum wire_role role_of(const struct sim_job *job, unsigned slot)
{
    if (slot < job->nodes)
        return slot == 0 ? ROLE_CHIEF : ROLE_WORKER;
    return slot == job->nodes ? ROLE_EVALUATOR : ROLE_PS;
}

/* Who is ended by its agent is so in every world; in half of them it says LEAVE before. */
static bool says_so(const struct sim *sim)
{
    return sim->options.seed % 2 == 0 || (sim->focus != NULL && sim->focus->rare);
}

struct sim_proc *proc_start(struct sim *sim, struct sim_job *job, unsigned slot, int64_t created_us)
{
    struct sim_proc *proc = calloc(1, sizeof *proc);
    unsigned rank = slot < job->nodes ? slot : 0; /* one evaluator, one ps */
    char host[32], dir[32];

    proc->index = (unsigned)sim->procs_count;
    proc->job = job->index;
    proc->slot = slot;
    proc->role = role_of(job, slot);
    proc->rank = rank;
    proc->launch = job->launch;
    proc->incarnation = (sim_random(sim) << 8) | (++sim->last_incarnation & 0xff) | 0x100;
    proc->alive = true;
    proc->closed = true;
    proc->closed_since_us = sim->now_us;
    proc->boot_offset_ms = sim_range(sim, 20000, 900000000);
    proc->created_us = created_us;
    proc->total = slot < job->nodes ? job->total[rank] : INT64_MAX;
    proc->policy_due = NEVER;
    proc->not_checkpoint = UINT64_MAX;
    proc->restored_checkpoint = UINT64_MAX;
    proc->timer_at_us = NEVER;
    proc->since_us = sim->now_us;
    snprintf(host, sizeof host, "host%u", power_host(sim, rank));
    snprintf(dir, sizeof dir, "/ck/%s", job->name);
    struct member_options options = {.job = job->name,
                                     .role = proc->role,
                                     .rank = rank,
                                     .world_size = job->nodes,
                                     .incarnation = proc->incarnation,
                                     .host = host,
                                     .pid = 1000 + proc->index,
                                     .layout = job->layout,
                                     .checkpoint_dir = dir,
                                     .join_timeout_ms = job->join_timeout_ms,
                                     .abort_timeout_ms = job->abort_timeout_ms,
                                     .exit_allowed = says_so(sim),
                                     .restart_code = 42,
                                     .grace_period_ms = job->grace_period_ms,
                                     .save_on_notice = job->save_on_notice,
                                     .restore_fallback = job->fallback,
                                     .started_boot_ms =
                                         created_us / 1000 + 1 + proc->boot_offset_ms};
    proc->member = member_create(&options);
    member_actions_init(&proc->actions);
    proc->view = *member_get_view(proc->member);
    sim->procs = realloc(sim->procs, (sim->procs_count + 1) * sizeof(struct sim_proc *));
    sim->procs[sim->procs_count++] = proc;
    proc->older = job->procs[slot];
    job->procs[slot] = proc;
    job->ended[slot] = END_NONE;
    SIM_TELL(sim, "PROCESS %s/%u starts (%s, launch %llu, process %u)", job->name, slot,
             wire_role_name(proc->role), (unsigned long long)job->launch, proc->index);
    net_connect(sim, proc, sim->now_us + sim_range(sim, 100, 30000));
    sim_after(sim, 0, first_tick, proc);
    grace_started(sim, proc);
    return proc;
}

static const char *const end_names[] = {"none", "finished", "restart", "failed", "killed"};

void proc_end(struct sim *sim, struct sim_proc *proc, enum sim_end end, const char *how)
{
    if (!proc->alive)
        return;
    SIM_TELL(sim, "PROCESS %s/%u ends: %s, %s (begun %lld, done %lld)", sim->jobs[proc->job].name,
             proc->slot, end_names[end], how, (long long)proc->begun, (long long)proc->done);
    proc->end = end;
    proc->died_us = sim->now_us;
    proc->alive = false;
    proc->frozen = false;
    proc->state = THREAD_GONE;
    net_process_gone(proc);
    for (size_t i = 0; i < proc->deferred_count; i++)
        free(proc->deferred[i].data);
    proc->deferred_count = 0;
    suspects_end(sim, proc);
    check_end(sim, proc);
    check_listing(sim, &sim->jobs[proc->job]);
    tool_sees_end(sim, proc);
    job_proc_ended(sim, proc);
}

void proc_freeze(struct sim *sim, struct sim_proc *proc, bool frozen)
{
    if (!proc->alive || proc->frozen == frozen)
        return;
    SIM_TELL(sim, "%s %s/%u", frozen ? "FREEZE" : "THAW", sim->jobs[proc->job].name, proc->slot);
    proc->frozen = frozen;
    proc->undecided_us = sim->now_us;
    for (size_t i = 0; !frozen && i < proc->deferred_count; i++) {
        const struct sim_event *old = &proc->deferred[i];
        struct sim_event *event = sim_at(sim, sim->now_us, old->fn, proc);
        event->stamp = old->stamp;
        event->number = old->number;
        event->data = old->data;
        event->size = old->size;
    }
    if (!frozen)
        proc->deferred_count = 0;
}

void proc_free(struct sim_proc *proc)
{
    net_process_gone(proc);
    for (size_t i = 0; i < proc->deferred_count; i++)
        free(proc->deferred[i].data);
    free(proc->stalled_up.items);
    free(proc->stalled_down.items);
    free(proc->deferred);
    free(proc->heard);
    member_destroy(&proc->member);
    member_actions_free(&proc->actions);
    free(proc);
}
