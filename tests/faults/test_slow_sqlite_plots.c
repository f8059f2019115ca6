/* Allocations of SQLite are refused while checkpoints are kept and deleted, and while tasks run:
 * one of seven, since one story has 30,000. */
#include "tests/faults/allocations.h"
#include "tests/faults/store_sweep.h"

static const struct store_sweep sweeps[] = {
    {"keep: an allocation of SQLite", &story_keep, .memory = true, .stride = 7, .points_min = 4200},
    {"keep: and all after it", &story_keep, .memory = true, .sticky = true, .stride = 61,
     .points_min = 480},
    {"tasks: an allocation of SQLite", &story_tasks, .memory = true, .stride = 7,
     .points_min = 3900},
    {"tasks: and all after it", &story_tasks, .memory = true, .sticky = true, .stride = 61,
     .points_min = 440},
};

int main(void)
{
    allocations_prepare();
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
