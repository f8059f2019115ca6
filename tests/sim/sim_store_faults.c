/* sim_store_faults - which of SQLite's calls to its file system fail. A fault is armed by the plan,
 * counts the calls of its kind, and is met once; want of room lasts until it is over. */
#include "tests/sim/sim_store.h"

struct trait {
    unsigned calls;
    int64_t after_max; /* calls that go well before it */
};
#define ALL_BUT_SYNC (FAULT_CALL_ANY & ~(unsigned)FAULT_CALL_SYNC)
static const struct trait traits[STORE_FAULTS] = {
    [FAULT_STORE_IO - FAULT_STORE_FIRST] = {ALL_BUT_SYNC, 120},
    [FAULT_STORE_TORN - FAULT_STORE_FIRST] = {FAULT_CALL_WRITE, 60},
    [FAULT_STORE_SYNC - FAULT_STORE_FIRST] = {FAULT_CALL_SYNC, 6},
    [FAULT_STORE_FULL - FAULT_STORE_FIRST] = {FAULT_CALL_WRITE, 4},
    [FAULT_STORE_KILL - FAULT_STORE_FIRST] = {FAULT_CALL_ANY, 120},
    [FAULT_STORE_CUT - FAULT_STORE_FIRST] = {FAULT_CALL_ANY, 120},
};

void store_fault_arm(struct sim *sim, enum sim_fault kind)
{
    unsigned at = kind - FAULT_STORE_FIRST;

    if (sim->store == NULL)
        return;
    sim->store->armed[at].on = true;
    sim->store->armed[at].hit = false;
    sim->store->armed[at].after = (unsigned)sim_range(sim, 0, traits[at].after_max);
}

void store_fault_over(struct sim *sim, enum sim_fault kind)
{
    if (sim->store != NULL)
        sim->store->armed[kind - FAULT_STORE_FIRST].on = false;
}

/* Nothing of it, all of it, or something between. */
unsigned store_fault_keeps(struct sim *sim)
{
    return (unsigned)(sim_chance(sim, 30) ? 0 : sim_chance(sim, 20) ? 100 : sim_range(sim, 1, 99));
}

static enum fault strike(struct sim *sim, enum sim_fault kind)
{
    static const enum fault no_room[] = {FAULT_FULL, FAULT_QUOTA, FAULT_SHORT_FULL};

    switch (kind) {
    case FAULT_STORE_TORN:
        return FAULT_SHORT;
    case FAULT_STORE_FULL:
        return no_room[sim_random(sim) % 3];
    case FAULT_STORE_KILL:
        mem_vfs_kill(sim->store->disk);
        return FAULT_IO;
    case FAULT_STORE_CUT:
        sim->store->lost_power = true;
        mem_vfs_power_cut(sim->store->disk, store_fault_keeps(sim));
        return FAULT_IO;
    default:
        return FAULT_IO;
    }
}

enum fault store_fault_choose(void *arg, enum fault_call call, const char *path)
{
    struct sim *sim = arg;
    struct sim_store *s = sim->store;

    (void)path;
    for (unsigned at = 0; at < STORE_FAULTS && mem_vfs_is_up(s->disk); at++) {
        enum sim_fault kind = FAULT_STORE_FIRST + at;
        if (!s->armed[at].on || (traits[at].calls & (unsigned)call) == 0)
            continue;
        if (s->armed[at].after > 0) {
            s->armed[at].after--;
            continue;
        }
        if (!s->armed[at].hit) {
            SIM_TELL(sim, "FAULT %s in a call to %s", sim_fault_name(kind), fault_call_name(call));
            fault_met(sim, kind);
        }
        s->armed[at].hit = true;
        s->armed[at].on = kind == FAULT_STORE_FULL;
        return strike(sim, kind);
    }
    return FAULT_NONE;
}
