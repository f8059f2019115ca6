/* fault_vfs - every call that SQLite makes to its file system, counted, and some of them failed.
 * Owns: the count and the decision. A shim: what is not failed goes to the VFS below, either
 * SQLite's own (real files) or a mem_vfs (files that lose what was not synced at a power cut).
 * Never: a clock, a random number of its own, a sleep. One thread.
 *
 *   struct mem_vfs *disk = mem_vfs_create("disk", next_random, &seed);
 *   struct fault_vfs *faults = fault_vfs_create(mem_vfs_sqlite(disk), disk);
 *   fault_vfs_plan(faults, FAULT_CALL_SYNC, FAULT_CUT, 17, false);  the power goes in the 17th sync
 *   ... store_open(), store_apply(): one of them says MUSTER_E_IO ...
 *   store_close(&store);             on a dead disk: writes nothing
 *   mem_vfs_up(disk);                what is left is what a disk may have left
 *   ... store_open() again; look at what is there ...
 *   if (fault_vfs_hits(faults) == 0) the run had fewer than 17 syncs: all were tried
 *
 * A simulator decides for each call by itself: fault_vfs_choose(faults, fn, arg), and draws from
 * its own generator in fn. */
#ifndef TESTS_SUPPORT_FAULT_VFS_H
#define TESTS_SUPPORT_FAULT_VFS_H

#include "tests/support/mem_vfs.h"

/* The calls, as bits. Unlocking cannot fail in a way that anybody could answer, so it never does */
enum fault_call {
    FAULT_CALL_OPEN = 1 << 0,
    FAULT_CALL_DELETE = 1 << 1,
    FAULT_CALL_ACCESS = 1 << 2,
    FAULT_CALL_READ = 1 << 3,
    FAULT_CALL_WRITE = 1 << 4,
    FAULT_CALL_TRUNCATE = 1 << 5,
    FAULT_CALL_SYNC = 1 << 6,
    FAULT_CALL_SIZE = 1 << 7,
    FAULT_CALL_LOCK = 1 << 8,
    FAULT_CALL_SHM_MAP = 1 << 9,
    FAULT_CALL_SHM_LOCK = 1 << 10,
};
#define FAULT_CALL_ANY ((1u << 11) - 1u)
#define FAULT_CALL_KINDS 11

enum fault {
    FAULT_NONE,
    FAULT_IO, /* EIO: SQLITE_IOERR_..., SQLITE_CANTOPEN; nothing was done, or half a mem_vfs's sync
               */
    FAULT_FULL,       /* ENOSPC: SQLITE_FULL of a write, else as FAULT_IO */
    FAULT_QUOTA,      /* EDQUOT: SQLITE_IOERR_WRITE with that errno; else as FAULT_IO */
    FAULT_SHORT,      /* the first half of a write, then EIO; else as FAULT_IO */
    FAULT_SHORT_FULL, /* the first half of a write, then ENOSPC; else as FAULT_IO */
    FAULT_BUSY,       /* SQLITE_BUSY of a lock, else as FAULT_IO */
    FAULT_CUT,        /* the power goes before the call is carried out */
    FAULT_KIND_COUNT
};

struct fault_vfs;

/* Becomes SQLite's default VFS. disk: the mem_vfs that `below` is of, for FAULT_CUT; else NULL.
 * Aborts when memory is out. */
struct fault_vfs *fault_vfs_create(sqlite3_vfs *below, struct mem_vfs *disk);
/* No connection may be open any more. The VFS that was the default is it again. NULL-safe, nulls */
void fault_vfs_destroy(struct fault_vfs **faults);

/* Fails the at-th of these calls from now on (1 = the next), with `sticky` every one after it too.
 * The counts begin again. at = 0: nothing fails, calls are only counted. */
void fault_vfs_plan(struct fault_vfs *faults, unsigned calls, enum fault fault, uint64_t at,
                    bool sticky);
uint64_t fault_vfs_calls(const struct fault_vfs *faults); /* of those planned for */
uint64_t fault_vfs_hits(const struct fault_vfs *faults);  /* failed */

/* Of what is done besides, in percent of what was not synced: what FAULT_CUT keeps. Default 50. */
void fault_vfs_keep(struct fault_vfs *faults, unsigned percent);

/* Asked at each call. path may be NULL (a file without a name). */
typedef enum fault fault_choose_fn(void *arg, enum fault_call call, const char *path);
void fault_vfs_choose(struct fault_vfs *faults, fault_choose_fn *choose_fn, void *arg);

const char *fault_call_name(enum fault_call call);
const char *fault_name(enum fault fault);

#endif
