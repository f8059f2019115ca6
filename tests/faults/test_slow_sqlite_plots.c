/* Allocations of SQLite are refused while checkpoints are kept and deleted, and while tasks run:
 * one of three, and all from one of 61 on. */
#include "tests/faults/allocations.h"
#include "tests/faults/store_sweep.h"

static const struct store_sweep sweeps[] = {
    {"keep: an allocation of SQLite", &story_keep, .there = true, .memory = true, .stride = 3,
     .points_min = 4400},
    {"keep: and all after it", &story_keep, .there = true, .memory = true, .sticky = true,
     .stride = 61, .points_min = 215},
    {"tasks: an allocation of SQLite", &story_tasks, .there = true, .memory = true, .stride = 3,
     .points_min = 4150},
    {"tasks: and all after it", &story_tasks, .there = true, .memory = true, .sticky = true,
     .stride = 61, .points_min = 200},
};

int main(void)
{
    allocations_prepare();
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
