/* sim_faults - what goes wrong, when, and that it stops. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>
#include <string.h>

static struct sim_proc *live_in(const struct sim_job *job, unsigned slot)
{
    struct sim_proc *proc = job->procs[slot];

    return proc != NULL && proc->alive ? proc : NULL;
}

/* Chance's target, or the next one that lives. */
static struct sim_proc *target_of(struct sim *sim, const struct sim_fault_plan *plan)
{
    const struct sim_job *job = &sim->jobs[plan->target % sim->jobs_count];
    unsigned slots = job->nodes + job->extras;

    if (plan->slot >= 0)
        return live_in(&sim->jobs[0], (unsigned)plan->slot);
    for (unsigned i = 0; i < slots; i++) {
        struct sim_proc *proc = live_in(job, (plan->target / 7 + i) % slots);
        if (proc != NULL)
            return proc;
    }
    return NULL;
}

/* --- what is counted -------------------------------------------------------------------------- */

#define WITHOUT_BIT 2 /* faults of relays strike at once */
_Static_assert(FAULT_COUNT - WITHOUT_BIT <= 64, "a bit for each other");

static uint64_t bit_of(enum sim_fault kind)
{
    if (kind == FAULT_RELAY_DIES || kind == FAULT_RELAY_STALLS)
        return 0;
    return UINT64_C(1) << (kind > FAULT_RELAY_STALLS ? kind - WITHOUT_BIT : kind);
}

void fault_met(struct sim *sim, enum sim_fault kind)
{
    sim->stats->faults[kind]++;
    sim->faults_met++;
}

void fault_met_once(struct sim *sim, uint64_t *unmet, enum sim_fault kind)
{
    if ((*unmet & bit_of(kind)) == 0)
        return;
    *unmet &= ~bit_of(kind);
    fault_met(sim, kind);
}

/* --- what is over ----------------------------------------------------------------------------- */

static void brokers_thaw(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_BROKERS; i++) {
        struct sim_broker *newest = broker_turn(sim, i);
        sim->broker->frozen = false;
        sim->broker->pass_at_us = NEVER; /* a pass that came while it was frozen did nothing */
        broker_wake(sim, sim->now_us);
        sim->broker = newest;
    }
    sim->freeze_at_send = false;
}

static void undo(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->stamp < sim->procs_count ? sim->procs[event->stamp] : NULL;

    *(proc != NULL ? &proc->unmet : &sim->unmet) &= ~bit_of((enum sim_fault)event->number);
    switch ((enum sim_fault)event->number) {
    case FAULT_NODE_FREEZE:
        proc_freeze(sim, proc, false);
        break;
    case FAULT_THREAD_STUCK:
        thread_unstick(sim, proc);
        break;
    case FAULT_BROKER_FREEZE:
        brokers_thaw(sim);
        break;
    case FAULT_DATABASE_OLD:
        sim->put_back = sim->copied;
        if (sim->options.shared)
            shared_put_back(sim);
        else if (sim->broker->alive) {
            sim->broker->down_us = 1000000;
            broker_crash(sim, "its database is restored from a copy");
        }
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
    case FAULT_RELAY_DIES:
    case FAULT_RELAY_STALLS:
        relay_fault(sim, proc, (enum sim_fault)event->number, false);
        break;
    case FAULT_STORE_FULL:
        store_fault_over(sim, FAULT_STORE_FULL);
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
    proc_start(sim, &sim->jobs[proc->job], proc->slot, sim->now_us);
    fault_met(sim, FAULT_TWIN);
}

static void on_proc(struct sim *sim, const struct sim_fault_plan *plan, struct sim_proc *proc)
{
    switch (plan->kind) {
    case FAULT_NODE_CRASH:
        fault_met(sim, FAULT_NODE_CRASH);
        proc_end(sim, proc, END_KILLED, "crash");
        return;
    case FAULT_NODE_FREEZE:
        if (!proc->frozen)
            fault_met(sim, FAULT_NODE_FREEZE);
        proc_freeze(sim, proc, true);
        break;
    case FAULT_THREAD_STUCK:
        proc->stuck = true;
        break;
    case FAULT_TWIN:
        twin(sim, proc, plan->for_us);
        return;
    case FAULT_GONE_WRONG:
        if (sim->broker->alive) /* else nobody hears it */
            fault_met(sim, FAULT_GONE_WRONG);
        tool_gone(sim, proc);
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
    case FAULT_RELAY_DIES:
    case FAULT_RELAY_STALLS:
        relay_fault(sim, proc, plan->kind, true);
        break;
    default:
        return;
    }
    undo_later(sim, plan, proc);
}

static void crash_broker(struct sim *sim, const struct sim_fault_plan *plan)
{
    struct sim_broker *b = sim->broker;

    b->crash_at = plan->kind;
    b->crash_deletes = false;
    b->crash_after =
        (unsigned)sim_range(sim, 0, plan->kind == FAULT_BROKER_BETWEEN_SENDS ? 60 : 12);
    if (sim_chance(sim, 40))
        b->crash_after = 0;
    b->crash_picky = sim_chance(sim, 70);
    if (b->crash_picky)
        b->crash_after %= plan->kind == FAULT_BROKER_BETWEEN_SENDS ? 24 : 4;
    b->down_us = plan->for_us;
}

static void crash_in_deletion(struct sim *sim, const struct sim_fault_plan *plan)
{
    static const enum sim_fault kinds[] = {FAULT_BROKER_BEFORE_COMMIT, FAULT_BROKER_AFTER_COMMIT,
                                           FAULT_BROKER_BETWEEN_SENDS};
    struct sim_broker *b = sim->broker;

    if (b->crash_at != FAULT_NOTHING)
        return;
    b->crash_at = kinds[side_range(sim, 0, 2)];
    b->crash_after = (unsigned)side_range(sim, 0, 3);
    b->crash_picky = false;
    b->crash_deletes = true;
    b->down_us = plan->for_us;
}

/* What hits whoever does it next, or is over at once; false: it is none of these. */
static bool next_time(struct sim *sim, const struct sim_fault_plan *plan)
{
    switch (plan->kind) {
    case FAULT_DELETE_FAILS:
        sim->fail_deletes++;
        return true;
    case FAULT_HAND_DIES:
        sim->kill_hands++;
        return true;
    case FAULT_HAND_FREEZES:
        sim->freeze_hands++;
        return true;
    case FAULT_BROKER_IN_DELETION:
        crash_in_deletion(sim, plan);
        return true;
    case FAULT_DATABASE_LOST:
        import_lose_database(sim);
        return true;
    case FAULT_HOST_CUT:
        power_fault(sim, plan);
        return true;
    case FAULT_STEP_FAILS:
        sim->fail_steps++;
        return true;
    case FAULT_SAVE_FAILS:
        sim->fail_saves++;
        sim->fail_again = plan->for_us == TRIED_AGAIN * 1000;
        return true;
    case FAULT_RESTORE_FAILS:
        sim->fail_restores++;
        return true;
    case FAULT_MANIFEST_FAILS:
        sim->fail_manifests++;
        return true;
    case FAULT_WALL_JUMP:
        sim->wall_offset_ms += sim_range(sim, -86400000, 86400000);
        fault_met(sim, FAULT_WALL_JUMP);
        return true;
    default:
        return false;
    }
}

/* What ends by itself, at a time that is known when it begins; false: it is none of these. */
static bool until(struct sim *sim, const struct sim_fault_plan *plan)
{
    const int64_t end_us = sim->now_us + plan->for_us;

    switch (plan->kind) {
    case FAULT_SAVE_SLOW:
        sim->slow_saves_until_us = end_us;
        sim->slow_slot = plan->slot;
        return true;
    case FAULT_SAVE_LONG:
        sim->long_saves_until_us = end_us;
        sim->long_slot = plan->slot;
        return true;
    case FAULT_SAVE_HANGS:
        sim->hung_saves_until_us = end_us;
        return true;
    case FAULT_DISK_SLOW:
        sim->slow_disk_until_us = end_us;
        sim->slow_disk_us = side_chance(sim, 50) ? 50000 : LOOP_GAP_MS * 1000 + 100000;
        return true;
    case FAULT_TOOL_ASKS:
        sim->asks_until_us = end_us;
        sim_after(sim, 0, tool_asks, NULL);
        return true;
    default:
        return false;
    }
}

/* In the middle of a pass, or between two. */
static void freeze_broker(struct sim *sim)
{
    if (sim->options.shared && side_chance(sim, 50))
        sim->freeze_at_send = true;
    else
        sim->broker->frozen = true;
}

static void everywhere(struct sim *sim, const struct sim_fault_plan *plan)
{
    if (next_time(sim, plan) || until(sim, plan) || shared_fault(sim, plan))
        return;
    switch (plan->kind) {
    case FAULT_BROKER_FREEZE:
        freeze_broker(sim);
        break;
    case FAULT_DATABASE_OLD:
        copy_take(sim);
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

bool fault_is_notice(enum sim_fault kind)
{
    return kind >= FAULT_NOTICE && kind <= FAULT_NOTICE_WITHDRAWN;
}

bool fault_is_crash_of_broker(enum sim_fault kind)
{
    return kind >= FAULT_BROKER_IDLE && kind <= FAULT_BROKER_REBOOT;
}

static bool is_in_store(enum sim_fault kind)
{
    return kind >= FAULT_STORE_FIRST;
}

static bool needs_proc(enum sim_fault kind)
{
    switch (kind) {
    case FAULT_NODE_CRASH:
    case FAULT_NODE_FREEZE:
    case FAULT_THREAD_STUCK:
    case FAULT_TWIN:
    case FAULT_GONE_WRONG:
    case FAULT_CUT_NODE:
    case FAULT_STALL_UP:
    case FAULT_STALL_DOWN:
    case FAULT_STALL_BOTH:
    case FAULT_RELAY_DIES:
    case FAULT_RELAY_STALLS:
        return true;
    default:
        return fault_is_notice(kind);
    }
}

static void arm(struct sim *sim, const struct sim_fault_plan *plan)
{
    store_fault_arm(sim, plan->kind);
    undo_later(sim, plan, NULL);
}

void faults_happen(struct sim *sim, struct sim_event *event)
{
    struct sim_fault_plan plan = sim->faults[event->number];
    struct sim_proc *proc = target_of(sim, &plan);

    if (needs_proc(plan.kind) && proc == NULL)
        return; /* between two launches */
    SIM_TELL(sim, "FAULT %s on %d for %lld ms", sim_fault_name(plan.kind),
             proc ? (int)proc->slot : -1, (long long)(plan.for_us / 1000));
    *(needs_proc(plan.kind) ? &proc->unmet : &sim->unmet) |= bit_of(plan.kind);
    if (fault_is_notice(plan.kind))
        notice_fault(sim, &plan, proc);
    else if (plan.kind == FAULT_NOTICE_TOOL || plan.kind == FAULT_OPERATOR_SAVE)
        tool_request(sim, &plan);
    else if (fault_is_crash_of_broker(plan.kind))
        crash_broker(sim, &plan);
    else if (is_in_store(plan.kind))
        arm(sim, &plan);
    else if (needs_proc(plan.kind))
        on_proc(sim, &plan, proc);
    else
        everywhere(sim, &plan);
}

static void broker_calm(struct sim_broker *b)
{
    b->crash_at = FAULT_NOTHING;
    b->crash_deletes = false;
    b->holder.cut_until_us = 0;
}

/* The liveness phase begins. Half of its worlds get one notice more, with time enough. */
void faults_stop(struct sim *sim, struct sim_event *event)
{
    (void)event;
    sim->calm_was = true;
    SIM_TELL(sim, "CALM: no faults from here on");
    sim->fail_saves = sim->fail_restores = sim->fail_manifests = sim->fail_steps = 0;
    sim->slow_saves_until_us = sim->hung_saves_until_us = sim->long_saves_until_us = 0;
    sim->slow_disk_until_us = sim->slow_log_until_us = 0;
    sim->lost_answers = 0;
    for (unsigned i = 0; i < SIM_BROKERS; i++)
        broker_calm(&sim->brokers[i]);
    memset(sim->cuts, 0, sizeof sim->cuts);
    sim->pub_loss_percent = sim->pub_drop_percent = 0;
    keeps_calm(sim);
    for (unsigned kind = FAULT_STORE_FIRST; kind < FAULT_COUNT; kind++)
        store_fault_over(sim, (enum sim_fault)kind);
    for (size_t i = 0; i < sim->jobs_count; i++) {
        const struct record_job *row = disk_job(sim, sim->jobs[i].name);
        sim->jobs[i].calm_seq = row != NULL ? row->seq : 0;
        if (sim_chance(sim, 50))
            notice_in_calm(sim, &sim->jobs[i]);
    }
}
