/* Every call of a start on a database of an older schema fails, one in each run, from each older schema. */
#include "tests/faults/migration_sweep.h"

#include "tests/faults/file_calls.h"

static const struct migration_sweep sweeps[] = {
    {"EIO, any call", MIGRATION_DISK, FAULT_CALL_ANY, FAULT_IO, .points_min = 444},
    {"EIO and all after it, any call", MIGRATION_DISK, FAULT_CALL_ANY, FAULT_IO, .sticky = true,
     .points_min = 444},
    {"ENOSPC, writes", MIGRATION_DISK, FAULT_CALL_WRITE, FAULT_FULL, .points_min = 132},
    {"ENOSPC and all after it, writes", MIGRATION_DISK, FAULT_CALL_WRITE, FAULT_FULL,
     .sticky = true, .points_min = 132},
    {"short, then ENOSPC, writes", MIGRATION_DISK, FAULT_CALL_WRITE, FAULT_SHORT_FULL,
     .points_min = 132},
    {"an allocation of SQLite", MIGRATION_MEMORY, .stride = 61, .points_min = 850},
    {"EIO, our own file calls", MIGRATION_FILES, FILE_CALL_ANY, FAULT_IO, .points_min = 81},
    {"EIO and all after it, our own", MIGRATION_FILES, FILE_CALL_ANY, FAULT_IO, .sticky = true,
     .points_min = 81},
    {"ENOSPC, our own file calls", MIGRATION_FILES, FILE_CALL_ANY, FAULT_FULL, .points_min = 81},
};

int main(void)
{
    return migration_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
