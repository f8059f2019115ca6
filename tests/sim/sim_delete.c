/* sim_delete - the hand that removes a checkpoint's directory, as node/shard/dir_delete.c does it:
 * out of its place by one rename, then removed. Its process may die or freeze at any point of that,
 * and go on later. */
#include "tests/sim/sim_world.h"

#include <stdlib.h>

static void answer(struct sim *sim, struct sim_proc *proc, uint64_t checkpoint,
                   enum muster_status status)
{
    struct member_input input = {.kind = MEMBER_DELETED,
                                 .checkpoint = checkpoint,
                                 .code = status,
                                 .text = status == MUSTER_OK ? "" : "the disk said no"};

    if (sim->options.mutation != MUTANT_NEVER_DELETED)
        proc_feed(sim, proc, &input);
}

static void removed(struct sim *sim, struct sim_event *event)
{
    sim->stats->deleted++;
    if (sim->options.mutation != MUTANT_REMOVED_UNSYNCED)
        fs_sync_names(sim, event->proc->job);
    power_moment(sim, event->proc, POWER_REMOVED);
    answer(sim, event->proc, (uint64_t)event->number, MUSTER_OK);
}

static void remove_shards(struct sim *sim, const struct sim_dir *dir)
{
    for (size_t i = 0; i < sim->shards_count; i++)
        if (sim->shards[i].job == dir->job && sim->shards[i].round == dir->round &&
            sim->shards[i].generation == dir->generation && !sim->shards[i].deleted) {
            sim->shards[i].taken = sim->options.mutation != MUTANT_REMOVED_UNSYNCED;
            sim->shards[i].deleted = sim->unchecked = true;
        }
}

static void thaw(struct sim *sim, struct sim_event *event)
{
    proc_freeze(sim, sim->procs[event->number], false);
}

/* True: it is not there any more, or stands still. */
static bool struck(struct sim *sim, struct sim_proc *proc)
{
    if (sim->kill_hands > 0) {
        sim->kill_hands--;
        fault_met(sim, FAULT_HAND_DIES);
        proc_end(sim, proc, END_KILLED, "died in a deletion");
        return true;
    }
    if (sim->freeze_hands == 0)
        return false;
    sim->freeze_hands--;
    fault_met(sim, FAULT_HAND_FREEZES);
    proc_freeze(sim, proc, true);
    sim_after(sim, side_range(sim, 1000000, 14000000), thaw, NULL)->number = (int64_t)proc->index;
    return true;
}

static void take_out_of_place(struct sim *sim, struct sim_proc *proc, struct sim_dir *dir)
{
    check_taken_out(sim, &sim->jobs[proc->job], dir);
    SIM_TELL(sim, "%s/%u takes checkpoint %llu out of '%s'", sim->jobs[proc->job].name, proc->slot,
             (unsigned long long)dir->round, dir->path);
    fs_moves(sim, proc, dir);
    dir->path = "";
    dir->out = true;
    remove_shards(sim, dir);
    power_moment(sim, proc, POWER_TAKEN_OUT);
}

static void take_out(struct sim *sim, struct sim_event *event)
{
    struct sim_proc *proc = event->proc;
    uint64_t checkpoint = (uint64_t)event->number;
    struct sim_dir *dir = fs_dir(sim, proc->job, event->stamp, checkpoint);

    if (dir->out) {
        fs_sync_names(sim, proc->job);
        answer(sim, proc, checkpoint, MUSTER_OK); /* another hand was quicker */
        return;
    }
    if (sim->fail_deletes > 0) {
        sim->fail_deletes--;
        fault_met(sim, FAULT_DELETE_FAILS);
        answer(sim, proc, checkpoint, MUSTER_E_IO);
        return;
    }
    if (sim->options.mutation == MUTANT_DELETES_IN_PLACE && dir->path[0] != '\0' &&
        side_chance(sim, 50)) {
        remove_shards(sim, dir);
        proc_end(sim, proc, END_KILLED, "died in a deletion");
        return;
    }
    take_out_of_place(sim, proc, dir);
    sim_after(sim, side_range(sim, 500, side_chance(sim, 80) ? 60000 : 3000000), removed, proc)
        ->number = event->number;
    struck(sim, proc);
}

/* The process may be dead or frozen before the first of it. */
static void begin(struct sim *sim, struct sim_event *event)
{
    struct sim_event *next;

    if (side_chance(sim, 40) && struck(sim, event->proc) && !event->proc->alive)
        return;
    next = sim_after(sim, side_range(sim, 200, 40000), take_out, event->proc);
    next->number = event->number;
    next->stamp = event->stamp;
}

void delete_begin(struct sim *sim, struct sim_proc *proc, uint64_t generation, uint64_t checkpoint)
{
    struct sim_event *event;

    if (!sim_is_calm(sim) && !sim->options.healthy && side_chance(sim, 2)) {
        member_deletion_lost(proc->member, checkpoint); /* no memory for it */
        return;
    }
    event = sim_after(sim, 0, begin, proc);
    event->number = (int64_t)checkpoint;
    event->stamp = generation;
}
