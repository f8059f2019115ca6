/* migration_sweep - a start of the broker on a database of an older schema, once for each call that
 * this start makes to the disk or for memory, with that call failed. On real files: the copy beside
 * the database is one. */
#ifndef TESTS_FAULTS_MIGRATION_SWEEP_H
#define TESTS_FAULTS_MIGRATION_SWEEP_H

#include "tests/support/fault_vfs.h"

#include <stdbool.h>

struct migration_sweep {
    const char *name;
    enum {
        MIGRATION_DISK,
        MIGRATION_MEMORY,
        MIGRATION_FILES
    } what;              /* SQLite's VFS, its allocations, our own file calls */
    unsigned calls;      /* of the VFS: enum fault_call; of files: enum file_call */
    enum fault fault;    /* of the VFS */
    bool sticky;         /* and all after it: as if the process had died there */
    unsigned stride;     /* 0 or 1 = every call */
    uint64_t points_min; /* all versions together; recorded, may rise, never fall */
};

/* From each older version to the newest; prints a line for each sweep, returns the exit code. What
 * must hold: an error is told; the file is sound, of a version between, and holds its rows; it is
 * never newer without a whole copy of what it was; the next start succeeds. */
int migration_sweep_all(const struct migration_sweep *sweeps, size_t count);

#endif
