/* Every allocation of SQLite is refused once, and from one of 13 on until memory is back: of a
 * broker that finds its database, and some of one that makes it. */
#include "tests/faults/allocations.h"
#include "tests/faults/store_sweep.h"

static const struct store_sweep sweeps[] = {
    {"an allocation of SQLite", .there = true, .memory = true, .points_min = 13000},
    {"and all after it", .there = true, .memory = true, .sticky = true, .stride = 13,
     .points_min = 1000},
    {"an allocation, beginning with no database", .memory = true, .stride = 61, .points_min = 600},
};

int main(void)
{
    allocations_prepare();
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
