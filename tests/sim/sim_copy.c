/* sim_copy - a copy of the broker's database that an operator made, and that is restored later: all
 * that happened in between is forgotten by the broker alone. What nodes know, what shards hold and
 * what was said before stays; checks against what was once written begin again. */
#include "tests/sim/sim_world.h"

static void copy_disk(struct sim_disk *to, const struct sim_disk *from)
{
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++)
        table_copy(&to->tables[i], &from->tables[i]);
    table_clear(&to->held);
    to->ends = from->ends;
}

void copy_take(struct sim *sim)
{
    if (sim->broker->in_doubt || sim->broker->refused)
        return; /* nobody knows what it would hold */
    copy_disk(&sim->copy, &sim->disk);
    sim->copy_epoch = sim->broker->epoch;
    sim->copy_lease = sim->lease;
    sim->copied = true;
    if (sim->store != NULL)
        sim_store_copy(sim);
}

/* A launch that is opened by the database as it is now has no history but this. Its number is above
 * all that were in use: one that is given again is taken for the former one, of which nodes and
 * files may tell. */
bool is_of_lost_history(const struct sim_job *job, uint64_t generation)
{
    return generation <= job->lost_generation;
}

static void lose_generations(struct sim *sim)
{
    for (size_t i = 0; i < sim->jobs_count; i++) {
        struct sim_job *job = &sim->jobs[i];
        const struct record_job *row = disk_job(sim, job->name);
        if (row != NULL && row->generation > job->lost_generation)
            job->lost_generation = row->generation;
    }
}

/* Numbers of requests go back to what the copy knows. */
static void forget(struct sim *sim, struct sim_proc *proc)
{
    const struct record_node *row = disk_node_of(sim, proc);

    proc->request_said = row != NULL ? row->last_request : 0;
    proc->acknowledged = 0;
    proc->lost_history = true;
}

static void begin_anew(struct sim *sim)
{
    sim->broker->in_doubt = false;
    sim->put_back = sim->copied = false;
    sim->lost_history = true;
    sim->lost_us = sim->now_us;
    sim->stats->histories_lost++;
    for (size_t i = 0; i < sim->jobs_count; i++) {
        sim->jobs[i].told_seq = 0;
        sim->jobs[i].keeps.save_begun_unix_ms = 0;
    }
    for (size_t i = 0; i < sim->procs_count; i++)
        forget(sim, sim->procs[i]);
    readers_forget(sim);
    import_hastily(sim);
    sim->unchecked = sim->unchecked_rounds = true;
}

void copy_put_back(struct sim *sim)
{
    if (!sim->put_back || !sim->copied)
        return;
    lose_generations(sim);
    copy_disk(&sim->disk, &sim->copy);
    sim->broker->epoch = sim->copy_epoch;
    fault_met(sim, FAULT_DATABASE_OLD);
    begin_anew(sim);
    if (sim->store != NULL)
        sim_store_put_back(sim);
    SIM_TELL(sim, "BROKER's database is an older copy");
}

/* Nothing is known any more of what was: not of those who asked, nor what they were told. */
void copy_nothing(struct sim *sim)
{
    if (!sim->lose_database)
        return;
    lose_generations(sim);
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++)
        table_clear(&sim->disk.tables[i]);
    table_clear(&sim->disk.held);
    sim->disk.ends = sim->broker->ends_told = 0;
    sim->broker->epoch = 0;
    sim->lose_database = false;
    fault_met(sim, FAULT_DATABASE_LOST);
    begin_anew(sim);
    if (sim->store != NULL)
        sim_store_lose(sim);
    SIM_TELL(sim, "BROKER has no database any more");
}

void undo_keep(struct sim *sim)
{
    if (sim->options.mutation == MUTANT_LOSES_BATCH ||
        sim->options.mutation == MUTANT_READS_REPLICA)
        copy_disk(&sim->undo, &sim->disk);
}

void undo_last(struct sim *sim)
{
    if (sim->options.mutation == MUTANT_LOSES_BATCH && sim->undo.tables[RECORD_BROKER].count > 0)
        copy_disk(&sim->disk, &sim->undo);
}

void undo_swap(struct sim *sim)
{
    struct sim_disk disk = sim->disk;

    if (sim->options.mutation != MUTANT_READS_REPLICA)
        return;
    sim->disk = sim->undo;
    sim->undo = disk;
}

void copy_free(struct sim *sim)
{
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++) {
        table_free(&sim->copy.tables[i]);
        table_free(&sim->undo.tables[i]);
    }
}
