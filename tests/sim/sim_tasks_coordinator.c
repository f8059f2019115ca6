/* sim_tasks_coordinator - the life of a coordinator in a world of tasks: it opens its queue, dies,
 * and another attaches or begins again. */
#include "tests/sim/sim_tasks_private.h"

#include <string.h>

#define BLOCKS_AT SIM_TASKS_BLOCKS_AT

/* muster_coordinator_open waits for the answer: the world goes on meanwhile. */
enum muster_status task_link_start(struct task_link *link, struct muster_error *err)
{
    struct muster_coordinator *c = link->owner.arg;

    (void)err;
    w.links[WORKERS] = link;
    for (int i = 0; i < 5000 && !c->ever_opened; i++) {
        sim_tasks_others_pass();
        sim_tasks_link_turns(link);
        w.now += STEP_MS;
    }
    return MUSTER_OK;
}

/* What a former coordinator scheduled is there, but what its user gave up. */
static void find_values(void)
{
    struct muster_error err;

    for (uint64_t number = 1; number <= muster_coordinator_scheduled(w.coordinator); number++) {
        enum muster_status status =
            muster_coordinator_value(w.coordinator, number, &w.values[number], &err);

        INSIST(status == MUSTER_OK || (status == MUSTER_E_NOT_FOUND && w.freed[number]),
               "after an attach: %.200s", err.text);
        w.owner[number] = w.users_count > 0 ? number % w.users_count : 0;
        if (w.freed[number])
            muster_remote_value_free(&w.values[number]);
    }
}

void sim_tasks_coordinator_begins(bool fresh)
{
    struct muster_coordinator_options options = MUSTER_COORDINATOR_OPTIONS_INIT;
    struct muster_error err;

    options.fresh = fresh;
    options.max_queued = w.blocks ? BLOCKS_AT : 0;
    options.broker_timeout_ms = INT32_MAX;
    options.connect_timeout_ms = INT32_MAX;
    if (muster_coordinator_open(&options, &w.coordinator, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    INSIST(fresh || w.coordinator->queue == w.queue, "an attach found another queue");
    w.queue = w.coordinator->queue;
    if (fresh) {
        memset(w.began, 0, sizeof w.began);
        memset(w.begun, 0, sizeof w.begun);
        memset(w.excused, 0, sizeof w.excused);
        memset(w.poisoned, 0, sizeof w.poisoned);
        memset(w.ended, 0, sizeof w.ended);
        memset(w.freed, 0, sizeof w.freed);
    }
    w.coordinator_since_ms = w.now;
    find_values();
    if (w.broken == SIM_TASKS_SOUND)
        sim_tasks_make_per_worker(0, fresh || w.per_worker_count == 0 ? 1 : w.per_worker_count);
}

void sim_tasks_coordinator_dies(void)
{
    w.coordinator->stale = true; /* so that nothing is handed over */
    muster_coordinator_close(&w.coordinator, NULL);
    for (size_t i = 0; i < NUMBERS_MAX; i++)
        muster_remote_value_free(&w.values[i]);
}

void sim_tasks_coordinator_passes(void)
{
    bool fresh;

    if (!sim_tasks_one_in(w.users_count > 0 ? 150
                                            : 1200)) /* of several threads one is often in a call */
        return;
    fresh = w.seed % 5 == 0 && sim_tasks_below(2) == 0;
    sim_tasks_coordinator_dies();
    if (fresh)
        w.to_schedule += TASKS / 4;
    w.stats->attaches += !fresh;
    w.stats->fresh += fresh;
    sim_tasks_coordinator_begins(fresh);
}
