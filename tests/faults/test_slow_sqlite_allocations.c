/* Every allocation of SQLite is refused once, and from each on until memory is back. */
#include "tests/faults/allocations.h"
#include "tests/faults/store_sweep.h"

static const struct store_sweep sweeps[] = {
    {"an allocation of SQLite", .memory = true, .points_min = 8100},
    {"and all after it", .memory = true, .sticky = true, .stride = 7, .points_min = 1150},
};

int main(void)
{
    allocations_prepare();
    return store_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
