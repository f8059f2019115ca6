/* Allocations of SQLite are refused, one in each run: a part of them. slow_sqlite_allocations has all. */
#include "tests/faults/allocations.h"
#include "tests/faults/store_sweep.h"

static const struct store_sweep sweeps[] = {
    {"an allocation of SQLite", .memory = true, .stride = 61, .points_min = 134},
    {"and all after it", .memory = true, .sticky = true, .stride = 407, .points_min = 20},
};

int main(void)
{
    allocations_prepare();
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
