/* Allocations of SQLite are refused, one in each run: a part of them. slow_sqlite_allocations and
 * slow_sqlite_plots have more. */
#include "tests/faults/allocations.h"
#include "tests/faults/store_sweep.h"

static const struct store_sweep sweeps[] = {
    {"an allocation of SQLite", .there = true, .memory = true, .stride = 97, .points_min = 134},
    {"and all after it", .there = true, .memory = true, .sticky = true, .stride = 631,
     .points_min = 20},
    {"an allocation, beginning with no database", .memory = true, .stride = 2531, .points_min = 15},
    {"keep: an allocation of SQLite", &story_keep, .there = true, .memory = true, .stride = 907,
     .points_min = 14},
    {"tasks: an allocation of SQLite", &story_tasks, .there = true, .memory = true, .stride = 907,
     .points_min = 13},
};

int main(void)
{
    allocations_prepare();
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
