/* Allocations of SQLite are refused, one in each run: a part of them. slow_sqlite_allocations and
 * slow_sqlite_plots have more. */
#include "tests/faults/allocations.h"
#include "tests/faults/store_sweep.h"

static const struct store_sweep sweeps[] = {
    {"an allocation of SQLite", .memory = true, .stride = 61, .points_min = 134},
    {"and all after it", .memory = true, .sticky = true, .stride = 407, .points_min = 20},
    {"keep: an allocation of SQLite", &story_keep, .memory = true, .stride = 2003,
     .points_min = 14},
    {"tasks: an allocation of SQLite", &story_tasks, .memory = true, .stride = 2003,
     .points_min = 13},
};

int main(void)
{
    allocations_prepare();
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
