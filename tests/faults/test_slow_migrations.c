/* Every call of SQLite to its disk fails in a start on a database of an older schema, one in each
 * run, from each older schema; slow_migrations_full: those that find no room;
 * slow_migrations_memory: allocations, and our own file calls. */
#include "tests/faults/migration_sweep.h"

static const struct migration_sweep sweeps[] = {
    {"EIO, any call", MIGRATION_DISK, FAULT_CALL_ANY, FAULT_IO, .points_min = 2700},
    {"EIO and all after it, any call", MIGRATION_DISK, FAULT_CALL_ANY, FAULT_IO, .sticky = true,
     .points_min = 2700},
};

int main(void)
{
    return migration_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
