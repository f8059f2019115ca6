/* Calls of a start on a database of an older schema fail, one in each run: a part of them.
 * slow_migrations has all. */
#include "tests/faults/migration_sweep.h"

#include "tests/faults/file_calls.h"

static const struct migration_sweep sweeps[] = {
    {"EIO and all after it, any call", MIGRATION_DISK, FAULT_CALL_ANY, FAULT_IO, .sticky = true,
     .stride = 47, .points_min = 60},
    {"ENOSPC, writes", MIGRATION_DISK, FAULT_CALL_WRITE, FAULT_FULL, .stride = 29,
     .points_min = 38},
    {"EIO, our own file calls", MIGRATION_FILES, FILE_CALL_ANY, FAULT_IO, .stride = 5,
     .points_min = 59},
};

int main(void)
{
    return migration_sweep_all(sweeps, sizeof sweeps / sizeof *sweeps);
}
