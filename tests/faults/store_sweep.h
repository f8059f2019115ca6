/* store_sweep - the story, once for each call that SQLite makes to its disk or for memory, with
 * that call failed. */
#ifndef TESTS_FAULTS_STORE_SWEEP_H
#define TESTS_FAULTS_STORE_SWEEP_H

#include "tests/faults/story.h"
#include "tests/support/fault_vfs.h"

#include <stdbool.h>

struct store_sweep {
    const char *name;
    const struct story_plot *plot; /* NULL = story_preempt */
    bool there;                    /* so is a database of this schema, before the first start */
    bool memory;                   /* SQLite's allocations are refused; else ... */
    unsigned calls;                /* enum fault_call, as bits */
    enum fault fault;
    bool sticky;          /* until somebody mends the disk */
    unsigned keep;        /* power cut: percent of the unsynced that is kept */
    bool then_cut;        /* a power cut at the story's end, too: nothing unsynced is kept */
    uint64_t from, to;    /* 0 = all; else these calls only, both included */
    unsigned stride;      /* 0 or 1 = every call; else one in so many */
    uint64_t points_min;  /* recorded; may rise, never fall */
    const char *settings; /* NULL = the story's own */
    bool tell_first;      /* the broker tells before it writes */
    bool must_fail;       /* a control: at least one run must be found wrong */
};

#define STORE_SWEEP(call, kind) .calls = FAULT_CALL_##call, .fault = FAULT_##kind

struct store_sweep_result {
    uint64_t points; /* runs that met their fault */
    uint64_t calls;  /* of a run without one */
    uint64_t wrong;  /* runs that ended wrong */
    char first[1200];
};

struct store_sweep_result store_sweep_run(const struct store_sweep *sweep);

/* With MUSTER_COUNT_SWEEPS in the environment it only counts the points that there would be, so
 * that every test run holds the floors of those sweeps that are slow. Runs all, prints a line each;
 * returns the exit code: 1 when one ended wrong, met fewer points than recorded, or is a control
 * that nothing noticed. */
int store_sweep_all(const struct store_sweep *sweeps, size_t count);

#endif
