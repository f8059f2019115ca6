/* sim_plan - which faults a seed meets, when and how long: by chance, and those of its focus
 * (sim_focus.c). */
#include "tests/sim/sim_save.h"
#include "tests/sim/sim_world.h"

#define IMPORT_PERCENT 25 /* of the worlds with policies, in which the database is lost */

static int64_t length_of(struct sim *sim, enum sim_fault kind)
{
    if (fault_is_crash_of_broker(kind))
        return sim_range(sim, 10000, sim_chance(sim, 80) ? 3000000 : 15000000);
    if (kind == FAULT_SAVE_HANGS)
        return 30000000;
    if (kind == FAULT_DATABASE_OLD)
        return sim_range(sim, 1000, sim_chance(sim, 60) ? 3000000 : 30000000);
    if (kind == FAULT_THREAD_STUCK)
        return sim_range(sim, 100000, sim_chance(sim, 70) ? 8000000 : 90000000);
    if (kind == FAULT_NODE_FREEZE || kind == FAULT_BROKER_FREEZE)
        return sim_range(sim, 50000, sim_chance(sim, 70) ? 4000000 : 14000000);
    if (fault_is_notice(kind) || kind == FAULT_NOTICE_TOOL)
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
    return (enum sim_fault)sim_range(sim, 1, FAULT_CHANCE_LAST);
}

static enum sim_fault pick_healthy(struct sim *sim)
{
    static const enum sim_fault kinds[] = {FAULT_NOTICE,        FAULT_NOTICE_ALL,
                                           FAULT_NOTICE_RANK_0, FAULT_NOTICE_TOOL,
                                           FAULT_OPERATOR_SAVE, FAULT_NOTICE_WITHDRAWN};

    return kinds[sim_random(sim) % (sizeof kinds / sizeof kinds[0])];
}

/* How long after its time it may be felt: who was noticed is killed up to 20 s later, and a slow
 * save that begins at the last moment takes its time. */
static int64_t tail_us(enum sim_fault kind)
{
    if (kind == FAULT_DATABASE_LOST)
        return 60000000;
    if (kind == FAULT_HOST_CUT)
        return 20000000;
    if (kind == FAULT_SAVE_HANGS)
        return 95000000;
    if (kind == FAULT_SAVE_LONG)
        return 260000000;
    return fault_is_notice(kind) || kind == FAULT_NOTICE_TOOL || kind == FAULT_SAVE_SLOW ? 30000000
                                                                                         : 5000000;
}

void plan_add(struct sim *sim, const struct sim_fault_plan *plan)
{
    int64_t tail = tail_us(plan->kind);
    int64_t left = plan->left_ms * 1000 > plan->for_us ? plan->left_ms * 1000 : plan->for_us;

    if (sim->faults_count == SIM_FAULTS_MAX)
        return;
    if (plan->at_us + left + tail > sim->calm_us)
        sim->calm_us = plan->at_us + left + tail;
    sim->stats->faults_planned++;
    sim->faults[sim->faults_count] = *plan;
    sim_at(sim, plan->at_us, faults_happen, NULL)->number = (int64_t)sim->faults_count++;
}

static void add_focus(struct sim *sim, int64_t work)
{
    const struct sim_focus *focus = sim->focus;
    unsigned nodes = sim->jobs[0].nodes, first = (unsigned)(sim_random(sim) % nodes);
    const unsigned ranks[] = {first, (first + 1) % nodes};
    int64_t moment =
        focus->late ? work * sim_range(sim, 60, 95) / 100 : 3000000 + sim_range(sim, 0, work / 2);

    if (focus->from_start)
        moment = 0;
    for (size_t i = 0; i < FOCUS_FAULTS_MAX && focus->faults[i].kind != FAULT_NOTHING; i++) {
        int who = focus->faults[i].who;
        struct sim_fault_plan plan = {.kind = focus->faults[i].kind,
                                      .at_us = moment + 1000 * focus->faults[i].at_ms +
                                               sim_range(sim, 0, 1000 * focus->faults[i].spread_ms),
                                      .for_us = 1000 * focus->faults[i].for_ms,
                                      .target = (unsigned)(sim_random(sim) & 0xffff),
                                      .slot = who == SIM_ANY      ? -1
                                              : who == SIM_RANK_0 ? 0
                                                                  : (int)ranks[who],
                                      .left_ms = focus->faults[i].left_ms};
        plan_add(sim, &plan);
    }
}

static void add_healthy(struct sim *sim, int64_t work)
{
    for (int i = 1; i <= 2; i++) {
        struct sim_fault_plan plan = {.kind = pick_healthy(sim),
                                      .at_us = i * work / 3,
                                      .for_us = 30000000,
                                      .target = (unsigned)(sim_random(sim) & 0xffff),
                                      .slot = -1};
        plan_add(sim, &plan);
    }
}

static void add_by_chance(struct sim *sim, int64_t work)
{
    int64_t window = sim_chance(sim, 40) ? work / 3 + 2000000 : work + 2000000;
    size_t count = (size_t)sim_range(sim, 6, sim_chance(sim, 80) ? 14 : 32);
    bool clustered = sim_chance(sim, 40);
    int64_t centre = sim_range(sim, 0, window);

    if (sim->focus != NULL)
        count = sim->focus->rare ? (size_t)sim_range(sim, 0, 2) : (size_t)sim_range(sim, 4, 5);
    for (size_t i = 0; i < count; i++) {
        struct sim_fault_plan plan = {.kind = pick_fault(sim),
                                      .at_us = sim_range(sim, 0, window),
                                      .target = (unsigned)(sim_random(sim) & 0xffff),
                                      .slot = -1};
        if (sim->options.shared && plan.kind == FAULT_DATABASE_OLD) /* --put-back asks for that */
            plan.kind = FAULT_BROKER_FREEZE;
        if (clustered && sim_chance(sim, 70)) /* all at once is what breaks things */
            plan.at_us = centre + sim_range(sim, 0, 4000000);
        plan.for_us = length_of(sim, plan.kind);
        plan_add(sim, &plan);
    }
}

/* Of SQLite's calls; on top of what the world meets with its rows in memory. */
static void add_in_store(struct sim *sim, int64_t work)
{
    size_t count = (size_t)sim_range(sim, 3, 9);

    for (size_t i = 0; i < count; i++) {
        struct sim_fault_plan plan = {
            .kind = (enum sim_fault)sim_range(sim, FAULT_STORE_FIRST, FAULT_COUNT - 1),
            .at_us = sim_range(sim, 0, work + 2000000),
            .for_us = sim_range(sim, 10000, 8000000),
            .slot = -1};
        plan_add(sim, &plan);
    }
}

/* Around deletions. */
static void add_in_keeps(struct sim *sim, int64_t work)
{
    for (enum sim_fault kind = FAULT_KEEP_FIRST; kind <= FAULT_BROKER_IN_DELETION; kind++)
        for (int64_t count = side_range(sim, 0, 2); count > 0; count--) {
            struct sim_fault_plan plan = {.kind = kind,
                                          .at_us = side_range(sim, 0, work + 2000000),
                                          .for_us = side_range(sim, 10000, 4000000),
                                          .slot = -1};
            plan_add(sim, &plan);
        }
    if (side_chance(sim, IMPORT_PERCENT) && !sim->options.shared) {
        struct sim_fault_plan plan = {
            .kind = FAULT_DATABASE_LOST, .at_us = side_range(sim, work / 3, work), .slot = -1};
        plan_add(sim, &plan);
    }
}

static void add_some(struct sim *sim, const enum sim_fault *kinds, size_t count, int64_t from,
                     int64_t to)
{
    struct sim_fault_plan plan = {.kind = kinds[side_range(sim, 0, (int64_t)count - 1)],
                                  .at_us = side_range(sim, from, to),
                                  .target = (unsigned)side_range(sim, 0, 0xffff),
                                  .for_us = side_range(sim, 100000, 6000000),
                                  .slot = -1};

    plan.at_us = plan.at_us > 0 ? plan.at_us : 0;
    plan.left_ms = plan.kind == FAULT_NOTICE_TOOL ? side_range(sim, 1000, 40000) : 0;
    plan_add(sim, &plan);
}

#define SOME(kinds, from, to) add_some(sim, kinds, sizeof kinds / sizeof kinds[0], from, to)

/* A copy is made, something happens that it does not hold, it is restored, something else happens
 * under the same numbers while ranks are not heard, and the broker dies once more. */
static void add_put_back(struct sim *sim, int64_t work)
{
    static const enum sim_fault events[] = {
        FAULT_OPERATOR_SAVE, FAULT_NOTICE,        FAULT_TWIN,
        FAULT_NODE_CRASH,    FAULT_STEP_FAILS,    FAULT_NOTICE_TOOL,
        FAULT_SAVE_FAILS,    FAULT_RESTORE_FAILS, FAULT_OPERATOR_SAVE};
    static const enum sim_fault unheard[] = {FAULT_CUT_NODE, FAULT_CUT_NODE, FAULT_NODE_FREEZE,
                                             FAULT_STALL_UP};
    static const enum sim_fault again[] = {FAULT_OPERATOR_SAVE, FAULT_NOTICE, FAULT_NOTICE_TOOL,
                                           FAULT_OPERATOR_SAVE};
    static const enum sim_fault crashes[] = {FAULT_BROKER_IDLE, FAULT_BROKER_AFTER_COMMIT,
                                             FAULT_BROKER_BETWEEN_SENDS, FAULT_BROKER_REBOOT};
    int64_t at = side_range(sim, 0, side_chance(sim, 50) ? 3000000 : work);
    int64_t away = side_range(sim, 50000, side_chance(sim, 60) ? 1500000 : 6000000);
    int64_t back = at + away;
    struct sim_fault_plan plan = {
        .kind = FAULT_DATABASE_OLD, .at_us = at, .for_us = away, .slot = -1};

    plan_add(sim, &plan);
    for (int64_t count = side_range(sim, 1, 3); count > 0; count--)
        SOME(events, at - 300000, back);
    for (int64_t count = side_range(sim, 1, 3); count > 0; count--)
        SOME(unheard, back - 300000, back + 1500000);
    for (int64_t count = side_range(sim, 0, 2); count > 0; count--)
        SOME(again, back + 1000000, back + 3000000);
    for (int64_t count = side_range(sim, 0, 2); count > 0; count--)
        SOME(crashes, back + 1200000, back + 5000000);
}

static void add_slow_disk(struct sim *sim, int64_t work)
{
    for (int64_t count = side_range(sim, 1, 3); count > 0; count--) {
        struct sim_fault_plan plan = {.kind = FAULT_DISK_SLOW,
                                      .at_us = side_range(sim, 0, work + 2000000),
                                      .for_us = side_range(sim, 1000000, 60000000),
                                      .slot = -1};
        plan_add(sim, &plan);
    }
}

static void add_power_cuts(struct sim *sim, int64_t work)
{
    power_plan(sim);
    for (int64_t count = side_range(sim, 2, 6); count > 0; count--) {
        struct sim_fault_plan plan = {.kind = FAULT_HOST_CUT,
                                      .at_us = side_range(sim, 0, work + 2000000),
                                      .target = (unsigned)side_range(sim, 0, 0xffff),
                                      .slot = -1};
        plan_add(sim, &plan);
    }
}

static void add_relays(struct sim *sim, int64_t work)
{
    for (int64_t count = 1 + relay_below(sim, 5); count > 0; count--) {
        struct sim_fault_plan plan = {
            .kind = relay_below(sim, 3) > 0 ? FAULT_RELAY_DIES : FAULT_RELAY_STALLS,
            .at_us = relay_below(sim, work + 2000000),
            .for_us = 20000 + relay_below(sim, relay_below(sim, 4) > 0 ? 1500000 : 12000000),
            .target = (unsigned)relay_below(sim, 0xffff),
            .slot = -1};
        plan_add(sim, &plan);
    }
}

#define LASTING_NODES_MAX 16
#define LASTING_STEPS_MAX 300 /* of one rank; steps that are shorter take longer then */

/* Each rank does so much more than it would: the ends of loops differ as before. Where steps become
 * longer there are fewer of them, and every count of them shrinks alike: 2,000 steps of a second, a
 * save after each second, would keep the simulator for minutes. */
static void outlast(struct sim_job *job, int64_t until_us)
{
    int64_t longest = 0, steps;

    for (unsigned rank = 0; rank < job->nodes; rank++)
        longest = job->total[rank] > longest ? job->total[rank] : longest;
    if (longest * job->step_us >= until_us)
        return;
    if (until_us / job->step_us >= LASTING_STEPS_MAX)
        job->step_us = until_us / LASTING_STEPS_MAX;
    steps = until_us / job->step_us + 1;
    for (unsigned rank = 0; rank < job->nodes; rank++)
        job->total[rank] = steps > longest ? job->total[rank] + steps - longest
                                           : 1 + job->total[rank] * (steps - 1) / longest;
    if (steps < longest && job->policy_every > 0)
        job->policy_every = 1 + job->policy_every * steps / longest;
}

/* The faults come when they would have come; then the loops go on, so that what the liveness phase
 * asks for is asked of them. Large worlds, each second of which takes the simulator longest, stay
 * as they are: some of them last anyway. */
static void plan_lasting(struct sim *sim)
{
    bool ends =
        (sim->focus != NULL && (sim->focus->late || sim->focus->rare)) || notice_is_at_the_end(sim);

    if (!sim->options.lasting || sim->options.healthy || ends || sim->nodes > LASTING_NODES_MAX)
        return;
    for (size_t i = 0; i < sim->jobs_count; i++)
        outlast(&sim->jobs[i], sim->calm_us + 10000000);
}

void plan_faults(struct sim *sim)
{
    int64_t work = longest_work_us(sim);

    if (sim->options.grace != NULL) {
        grace_plan_faults(sim);
        return;
    }
    suspects_plan_world(sim);
    turns_plan_world(sim);
    if (sim->options.healthy || sim->quiet)
        add_healthy(sim, work);
    else
        add_by_chance(sim, work);
    if (sim->focus != NULL)
        add_focus(sim, work);
    if (sim->options.put_back)
        add_put_back(sim, work);
    if (sim->options.slow_disk)
        add_slow_disk(sim, work);
    if (sim->options.shared)
        shared_plan(sim, work);
    if (sim->options.power_cuts)
        add_power_cuts(sim, work);
    if (sim->options.relays)
        add_relays(sim, work);
    if (sim->options.suspects)
        suspects_plan(sim, work);
    if (sim->keeps && !sim->options.healthy && !sim->quiet)
        add_in_keeps(sim, work);
    if (sim->options.sqlite && !sim->options.healthy)
        add_in_store(sim, work);
    plan_lasting(sim);
    for (size_t i = 0; i < sim->jobs_count; i++) {
        sim->stats->steps_short += sim->jobs[i].step_us <= 1000;
        sim->stats->steps_long += sim->jobs[i].step_us >= 60000000;
        sim->stats->jobs_large += sim->jobs[i].nodes == SIM_NODES_MAX;
    }
    sim->limit_us = sim->calm_us + 4 * longest_work_us(sim) + 300000000;
    sim_at(sim, sim->calm_us, faults_stop, NULL);
}
