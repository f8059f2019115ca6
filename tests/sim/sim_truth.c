/* sim_truth - see sim_truth.h. */
#include "tests/sim/sim_truth.h"

#include "tests/sim/sim_store.h"
#include "tests/support/scratch.h"

#include <string.h>
#include <unistd.h>

static const struct sim_proc *process_of(const struct sim *sim, uint64_t incarnation)
{
    for (size_t i = 0; i < sim->procs_count; i++)
        if (sim->procs[i]->incarnation == incarnation)
            return sim->procs[i];
    return NULL;
}

static struct sim_truth *launch_of(struct sim_truths *truths, const struct record_node *node)
{
    struct sim_truth *launch;

    for (size_t i = 0; i < truths->count; i++)
        if (truths->launches[i].generation == node->generation &&
            strcmp(truths->launches[i].job, node->job) == 0)
            return &truths->launches[i];
    if (truths->count == SIM_TRUTHS_MAX)
        return NULL;
    launch = &truths->launches[truths->count++];
    *launch = (struct sim_truth){
        .job = node->job, .generation = node->generation, .done = -1, .restored = INT64_MAX};
    return launch;
}

/* A process that left before it restored anything began nowhere. */
static void add_process(struct sim_truth *launch, const struct sim_proc *proc)
{
    bool began = proc->begun > proc->first_step;

    if (proc->done > launch->done)
        launch->done = proc->done;
    if (!began)
        return;
    if (launch->restored == INT64_MAX)
        launch->restored = proc->first_step;
    else if (launch->restored != proc->first_step)
        launch->restored = -1;
}

void sim_truth_tell(struct sim *sim)
{
    const struct sim_table *nodes = &sim->disk.tables[RECORD_NODE];
    static struct sim_truths truths;

    if (sim->options.over_fn == NULL || sim->store == NULL || sim->failed || sim->lost_history ||
        sim->keeps) /* these import what others did */
        return;
    truths.count = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct record_node *node = &nodes->rows[i].record.u.node;
        const struct sim_proc *proc = process_of(sim, node->incarnation);
        struct sim_truth *launch = launch_of(&truths, node);
        bool steps = node->role == ROLE_CHIEF || node->role == ROLE_WORKER;
        if (launch != NULL && proc != NULL && steps)
            add_process(launch, proc);
    }
    for (size_t i = 0; i < truths.count; i++)
        if (truths.launches[i].restored == INT64_MAX)
            truths.launches[i].restored = -1;
    memset(sim->store->armed, 0, sizeof sim->store->armed);
    store_close(&sim->store->store);
    scratch_write(sim->store->path, "", 0); /* only the VFS in memory has more of it */
    truths.database = sim->store->path;
    sim->options.over_fn(&truths, sim->options.over_arg);
    unlink(sim->store->path);
}
