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

/* Of two, the one that nobody comes back for goes first; of two such, the one that ended first. */
int asleep_compare(const struct asleep_job *a, const struct asleep_job *b);

struct asleep_own {
    size_t count, pinned;
};
/* Of the jobs of this key that sleep: the one that is forgotten first. NULL: each is pinned. */
const struct asleep_job *asleep_first_of(const struct asleep *asleep, const char *key_jobs,
                                         struct asleep_own *ret_own);

#endif
