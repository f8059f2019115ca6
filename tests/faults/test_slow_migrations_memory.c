/* As slow_migrations: allocations of SQLite, one in 61, and each call of our own to the file
 * system. */
#include "tests/faults/migration_sweep.h"

#include "tests/faults/file_calls.h"

static const struct migration_sweep sweeps[] = {
    {"an allocation of SQLite", MIGRATION_MEMORY, .stride = 61, .points_min = 3800},
    {"EIO, our own file calls", MIGRATION_FILES, FILE_CALL_ANY, FAULT_IO, .points_min = 297},
    {"EIO and all after it, our own", MIGRATION_FILES, FILE_CALL_ANY, FAULT_IO, .sticky = true,
     .points_min = 297},
    {"ENOSPC, our own file calls", MIGRATION_FILES, FILE_CALL_ANY, FAULT_FULL, .points_min = 297},
};

int main(void)
{
    return migration_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
