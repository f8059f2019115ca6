/* sim_faults - what goes wrong, when, and that it stops. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

static struct sim_proc *target_of(struct sim *sim, const struct sim_fault_plan *plan)
{
    const struct sim_job *job = &sim->jobs[plan->target % sim->jobs_count];
    struct sim_proc *proc = job->procs[(plan->target / 7) % job->nodes];

    return proc != NULL && proc->alive ? proc : NULL;
}

/* --- notices ------------------------------------------------------------------------------------------ */

static void deadline(struct sim *sim, struct sim_event *event)
{
    proc_end(sim, event->proc, END_KILLED, "the deadline of its notice");
}

static void withdraw(struct sim *sim, struct sim_event *event)
{
    struct member_input input = {.kind = MEMBER_NOTICE_CANCELLED, .id = (const char *)event->data};

    SIM_TELL(sim, "NOTICE %s of rank %u withdrawn", input.id, event->proc->rank);
    proc_feed(sim, event->proc, &input);
}

/* A notice reaches the process; at its deadline the process is killed, unless it is withdrawn. */
void faults_notice(struct sim *sim, struct sim_proc *proc, int64_t left_ms, bool told,
                   int64_t withdraw_us)
{
    static const enum wire_notice_kind kinds[] = {NOTICE_PREEMPT, NOTICE_TERMINATE, NOTICE_STOP,
                                                  NOTICE_REBOOT,  NOTICE_SIGNAL,    NOTICE_USER};
    char id[32];
    struct member_input input = {.kind = MEMBER_NOTICE,
                                 .source = "sim",
                                 .text = "",
                                 .left_ms = told ? left_ms : -1,
                                 .cancellable = withdraw_us > 0,
                                 .notice_kind = kinds[sim_random(sim) % 6]};

    snprintf(id, sizeof id, "n%llu", (unsigned long long)++sim->last_notice);
    input.id = id;
    sim->stats->notices++;
    SIM_TELL(sim, "NOTICE %s on %s/%u, %lld ms left%s", id, sim->jobs[proc->job].name, proc->rank,
             (long long)left_ms, told ? "" : " (not told)");
    if (withdraw_us > 0) {
        struct sim_event *event = sim_after(sim, withdraw_us, withdraw, proc);
        event->size = strlen(id) + 1;
        event->data = malloc(event->size);
        memcpy(event->data, id, event->size);
    } else {
        sim_after(sim, left_ms * 1000, deadline, proc);
    }
    if (proc->frozen)
        return; /* nobody hears it */
    proc_feed(sim, proc, &input);
}

static void tool_request(struct sim *sim, const struct sim_fault_plan *plan)
{
    const struct sim_job *job = &sim->jobs[plan->target % sim->jobs_count];
    struct wire_msg message = {
        .type = plan->kind == FAULT_OPERATOR_SAVE ? WIRE_SAVE_NOW : WIRE_NOTICE,
        .up = {
            .request = ++sim->tool_request, .job = job->name, .role = ROLE_TOOL, .incarnation = 1}};
    char id[32];
    size_t size;

    if (!sim->broker.alive)
        return;
    snprintf(id, sizeof id, "t%llu", (unsigned long long)sim->tool_request);
    if (plan->kind == FAULT_OPERATOR_SAVE)
        message.u.save_now.id = id;
    else
        message.u.notice = (struct wire_notice){.id = id,
                                                .kind = NOTICE_PREEMPT,
                                                .source = "tool",
                                                .left_ms = plan->for_us / 1000 + 5000,
                                                .rank = (int64_t)((plan->target / 7) % job->nodes)};
    size = wire_encode(&message, sim->buffer, sizeof sim->buffer);
    sim->stats->messages[message.type]++;
    sim->routes = realloc(sim->routes, (sim->last_route + 2) * sizeof(struct sim_proc *));
    sim->routes[++sim->last_route] = NULL;
    broker_receive(sim, sim->last_route, sim->buffer, size);
}

static void notice_all(struct sim *sim, const struct sim_fault_plan *plan)
{
    const struct sim_job *job = &sim->jobs[plan->target % sim->jobs_count];

    for (unsigned rank = 0; rank < job->nodes; rank++)
        if (job->procs[rank] != NULL && job->procs[rank]->alive)
            faults_notice(sim, job->procs[rank], plan->for_us / 1000 + sim_range(sim, 4000, 20000),
                          true, 0);
}

static void notice(struct sim *sim, const struct sim_fault_plan *plan, struct sim_proc *proc)
{
    int64_t ms = plan->for_us / 1000;

    if (plan->kind == FAULT_NOTICE_ALL)
        notice_all(sim, plan);
    else if (proc == NULL)
        return;
    else if (plan->kind == FAULT_NOTICE_SHORT)
        faults_notice(sim, proc, ms % 3000, true, 0);
    else if (plan->kind == FAULT_NOTICE_WITHDRAWN)
        faults_notice(sim, proc, ms + 20000, true, plan->for_us + 1);
    else
        faults_notice(sim, proc, ms + 6000, sim_chance(sim, 70), 0);
}

/* --- the rest ------------------------------------------------------------------------------------------ */

static void undo(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->stamp < sim->procs_count ? sim->procs[event->stamp] : NULL;

    switch ((enum sim_fault)event->number) {
    case FAULT_NODE_FREEZE:
        proc_freeze(sim, proc, false);
        break;
    case FAULT_THREAD_STUCK:
        thread_unstick(sim, proc);
        break;
    case FAULT_BROKER_FREEZE:
        sim->broker.frozen = false;
        sim->broker.pass_at_us = NEVER; /* a pass that came while it was frozen did nothing */
        broker_wake(sim, sim->now_us);
        break;
    case FAULT_DISK_FULL:
        sim->disk_full = false;
        break;
    case FAULT_PUB_DROPS_ALL:
        sim->pub_drop_all = false;
        break;
    case FAULT_PUB_DROPS_SOME:
        sim->pub_drop_percent = 0;
        break;
    case FAULT_PUB_STALLS:
        sim->pub_stall = false;
        break;
    case FAULT_CUT_NODE:
        net_cut(sim, proc, false);
        break;
    case FAULT_CUT_ALL:
        for (size_t i = 0; i < sim->procs_count; i++)
            if (sim->procs[i]->cut && sim->procs[i]->alive)
                net_cut(sim, sim->procs[i], false);
        break;
    case FAULT_STALL_UP:
    case FAULT_STALL_DOWN:
    case FAULT_STALL_BOTH:
        net_stall(sim, proc, false, false);
        break;
    default:
        break;
    }
    SIM_TELL(sim, "OVER: %s", sim_fault_name((unsigned)event->number));
}

static void undo_later(struct sim *sim, const struct sim_fault_plan *plan,
                       const struct sim_proc *proc)
{
    struct sim_event *event = sim_after(sim, plan->for_us, undo, NULL);

    event->number = plan->kind;
    event->stamp = proc ? proc->index : UINT64_MAX;
}

/* The platform believes that a process is gone and starts another for its rank. */
static void twin(struct sim *sim, struct sim_proc *proc, int64_t for_us)
{
    struct sim_fault_plan plan = {.kind = FAULT_CUT_NODE, .for_us = for_us};

    if (sim_chance(sim, 40)) {
        plan.kind = FAULT_NODE_FREEZE;
        proc_freeze(sim, proc, true);
        undo_later(sim, &plan, proc);
    } else if (sim_chance(sim, 60)) {
        net_cut(sim, proc, true);
        undo_later(sim, &plan, proc);
    }
    proc_start(sim, &sim->jobs[proc->job], proc->rank);
}

static void on_proc(struct sim *sim, const struct sim_fault_plan *plan, struct sim_proc *proc)
{
    switch (plan->kind) {
    case FAULT_NODE_CRASH:
        proc_end(sim, proc, END_KILLED, "crash");
        return;
    case FAULT_NODE_FREEZE:
        proc_freeze(sim, proc, true);
        break;
    case FAULT_THREAD_STUCK:
        proc->stuck = true;
        break;
    case FAULT_TWIN:
        twin(sim, proc, plan->for_us);
        return;
    case FAULT_CUT_NODE:
        net_cut(sim, proc, true);
        break;
    case FAULT_STALL_UP:
        net_stall(sim, proc, true, false);
        break;
    case FAULT_STALL_DOWN:
        net_stall(sim, proc, false, true);
        break;
    case FAULT_STALL_BOTH:
        net_stall(sim, proc, true, true);
        break;
    default:
        return;
    }
    undo_later(sim, plan, proc);
}

static void crash_broker(struct sim *sim, const struct sim_fault_plan *plan)
{
    struct sim_broker *b = &sim->broker;

    b->crash_at = plan->kind;
    b->crash_after =
        (unsigned)sim_range(sim, 0, plan->kind == FAULT_BROKER_BETWEEN_SENDS ? 60 : 12);
    if (sim_chance(sim, 40))
        b->crash_after = 0;
    b->crash_picky = sim_chance(sim, 70);
    if (b->crash_picky)
        b->crash_after %= plan->kind == FAULT_BROKER_BETWEEN_SENDS ? 24 : 4;
    b->down_us = plan->for_us;
}

static void everywhere(struct sim *sim, const struct sim_fault_plan *plan)
{
    switch (plan->kind) {
    case FAULT_STEP_FAILS:
        sim->fail_steps++;
        return;
    case FAULT_SAVE_FAILS:
        sim->fail_saves++;
        return;
    case FAULT_SAVE_SLOW:
        sim->slow_saves_until_us = sim->now_us + plan->for_us;
        return;
    case FAULT_RESTORE_FAILS:
        sim->fail_restores++;
        return;
    case FAULT_MANIFEST_FAILS:
        sim->fail_manifests++;
        return;
    case FAULT_WALL_JUMP:
        sim->wall_offset_ms += sim_range(sim, -86400000, 86400000);
        return;
    case FAULT_BROKER_FREEZE:
        sim->broker.frozen = true;
        break;
    case FAULT_DISK_FULL:
        sim->disk_full = true;
        break;
    case FAULT_PUB_DROPS_ALL:
        sim->pub_drop_all = true;
        break;
    case FAULT_PUB_DROPS_SOME:
        sim->pub_drop_percent = 50;
        break;
    case FAULT_PUB_STALLS:
        sim->pub_stall = true;
        break;
    case FAULT_CUT_ALL:
        for (size_t i = 0; i < sim->procs_count; i++)
            if (sim->procs[i]->alive)
                net_cut(sim, sim->procs[i], true);
        break;
    default:
        return;
    }
    undo_later(sim, plan, NULL);
}

static bool is_notice(enum sim_fault kind)
{
    return kind >= FAULT_NOTICE && kind <= FAULT_NOTICE_WITHDRAWN;
}

static bool is_crash_of_broker(enum sim_fault kind)
{
    return kind >= FAULT_BROKER_IDLE && kind <= FAULT_BROKER_REBOOT;
}

static void happen(struct sim *sim, struct sim_event *event)
{
    struct sim_fault_plan plan = sim->faults[event->number];
    struct sim_proc *proc;

    if (plan.kind == FAULT_NOTICE_RANK_0)
        plan.target = (unsigned)(plan.target % sim->jobs_count); /* rank 0 */
    proc = target_of(sim, &plan);
    SIM_TELL(sim, "FAULT %s on %d for %lld ms", sim_fault_name(plan.kind),
             proc ? (int)proc->rank : -1, (long long)(plan.for_us / 1000));
    if (!is_crash_of_broker(plan.kind))
        sim->stats->faults[plan.kind]++; /* those of the broker are counted when they hit */
    if (is_notice(plan.kind))
        notice(sim, &plan, proc);
    else if (plan.kind == FAULT_NOTICE_TOOL || plan.kind == FAULT_OPERATOR_SAVE)
        tool_request(sim, &plan);
    else if (is_crash_of_broker(plan.kind))
        crash_broker(sim, &plan);
    else if (proc != NULL)
        on_proc(sim, &plan, proc);
    everywhere(sim, &plan);
}

void faults_stop(struct sim *sim)
{
    SIM_TELL(sim, "CALM: no faults from here on");
    sim->fail_saves = sim->fail_restores = sim->fail_manifests = sim->fail_steps = 0;
    sim->slow_saves_until_us = 0;
    sim->pub_loss_percent = sim->pub_drop_percent = 0;
    sim->broker.crash_at = FAULT_NONE;
}

static void calm(struct sim *sim, struct sim_event *event)
{
    (void)event;
    faults_stop(sim);
}

/* --- the plan -------------------------------------------------------------------------------------------- */

static int64_t length_of(struct sim *sim, enum sim_fault kind)
{
    if (is_crash_of_broker(kind))
        return sim_range(sim, 10000, sim_chance(sim, 80) ? 3000000 : 15000000);
    if (kind == FAULT_THREAD_STUCK)
        return sim_range(sim, 100000, sim_chance(sim, 70) ? 8000000 : 90000000);
    if (kind == FAULT_NODE_FREEZE || kind == FAULT_BROKER_FREEZE)
        return sim_range(sim, 50000, sim_chance(sim, 70) ? 4000000 : 14000000);
    if (is_notice(kind) || kind == FAULT_NOTICE_TOOL)
        return sim_range(sim, 1, sim_chance(sim, 60) ? 12000000 : 50000000);
    return sim_range(sim, 10000, sim_chance(sim, 70) ? 3000000 : 12000000);
}

static int64_t longest_work_us(const struct sim *sim)
{
    int64_t longest = 0;

    for (size_t i = 0; i < sim->jobs_count; i++) {
        int64_t work = sim->jobs[i].total[0] * sim->jobs[i].step_us;
        for (unsigned rank = 0; rank < sim->jobs[i].nodes; rank++)
            if (sim->jobs[i].total[rank] * sim->jobs[i].step_us > work)
                work = sim->jobs[i].total[rank] * sim->jobs[i].step_us;
        longest = work > longest ? work : longest;
    }
    return longest;
}

static enum sim_fault pick_fault(struct sim *sim)
{
    static const enum sim_fault often[] = {FAULT_NOTICE,
                                           FAULT_NOTICE,
                                           FAULT_NOTICE_RANK_0,
                                           FAULT_OPERATOR_SAVE,
                                           FAULT_BROKER_AFTER_COMMIT,
                                           FAULT_BROKER_BETWEEN_SENDS,
                                           FAULT_PUB_DROPS_ALL,
                                           FAULT_NODE_FREEZE};

    if (sim_chance(sim, 35))
        return often[sim_random(sim) % (sizeof often / sizeof often[0])];
    return (enum sim_fault)sim_range(sim, 1, FAULT_COUNT - 1);
}

static enum sim_fault pick_healthy(struct sim *sim)
{
    static const enum sim_fault kinds[] = {FAULT_NOTICE,        FAULT_NOTICE_ALL,
                                           FAULT_NOTICE_RANK_0, FAULT_NOTICE_TOOL,
                                           FAULT_OPERATOR_SAVE, FAULT_NOTICE_WITHDRAWN};

    return kinds[sim_random(sim) % (sizeof kinds / sizeof kinds[0])];
}

void faults_plan(struct sim *sim)
{
    int64_t work = longest_work_us(sim), window = work + 5000000;
    size_t count =
        sim->options.healthy ? 2 : (size_t)sim_range(sim, 2, sim_chance(sim, 80) ? 12 : 30);
    bool clustered = sim_chance(sim, 40);
    int64_t centre = sim_range(sim, 0, window), last = 0;

    for (size_t i = 0; i < count; i++) {
        struct sim_fault_plan *plan = &sim->faults[sim->faults_count];
        plan->kind = sim->options.healthy ? pick_healthy(sim) : pick_fault(sim);
        plan->at_us = sim_range(sim, 0, window);
        if (clustered && sim_chance(sim, 70)) /* all at once is what breaks things */
            plan->at_us = centre + sim_range(sim, 0, 4000000);
        plan->for_us = length_of(sim, plan->kind);
        if (sim->options.healthy) {
            plan->at_us = (int64_t)(i + 1) * work / 3;
            plan->for_us = 30000000;
        }
        plan->target = (unsigned)(sim_random(sim) & 0xffff);
        if (plan->at_us + plan->for_us + 30000000 > last)
            last = plan->at_us + plan->for_us + 30000000;
        sim_at(sim, plan->at_us, happen, NULL)->number = (int64_t)sim->faults_count++;
    }
    sim->calm_us = last;
    sim->limit_us = last + 4 * work + 300000000;
    sim_at(sim, sim->calm_us, calm, NULL);
}
