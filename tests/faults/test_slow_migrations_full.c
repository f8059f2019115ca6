/* As slow_migrations: each write finds the disk full. */
#include "tests/faults/migration_sweep.h"

static const struct migration_sweep sweeps[] = {
    {"ENOSPC, writes", MIGRATION_DISK, FAULT_CALL_WRITE, FAULT_FULL, .points_min = 1056},
    {"ENOSPC and all after it, writes", MIGRATION_DISK, FAULT_CALL_WRITE, FAULT_FULL,
     .sticky = true, .points_min = 1056},
    {"short, then ENOSPC, writes", MIGRATION_DISK, FAULT_CALL_WRITE, FAULT_SHORT_FULL,
     .points_min = 1056},
};

int main(void)
{
    return migration_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
