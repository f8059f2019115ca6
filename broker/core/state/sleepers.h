/* sleepers - the jobs that have ended and left memory: their names, and what decides who is
 * forgotten first. */
#ifndef BROKER_CORE_SLEEPERS_H
#define BROKER_CORE_SLEEPERS_H

#include "broker/core/state/state.h"

#define SLEEPERS_SLOTS 4096

struct asleep_job {
    char name[JOB_NAME_MAX + 1];
    int64_t since_unix_ms; /* its end */
    bool saved;            /* it has checkpoints: it may come back for them */
    bool pinned;           /* an operator holds one: it is not forgotten */
    struct asleep_job *next;
};

struct asleep {
    struct asleep_job *jobs[SLEEPERS_SLOTS]; /* by name */
    size_t count;
    int64_t look_boot_ms; /* for those that are too old */
};

#endif
