/* policy.h - policies, as data: when a job saves, and which checkpoints it keeps.
 *
 * A save is made when any save policy of the list wants it. A checkpoint stays while any keep
 * policy of the list wants it; the others are deleted. An empty list of keep policies keeps all.
 *
 * Steps here are the program's own step indexes: step k is saved when k + 1 steps are done.
 *
 * Never deleted are a checkpoint that is pinned or being restored, and the newest one. If the keep
 * policies do not want the newest, it is deleted once a newer one is committed. It is also deleted
 * when the chief's manager closes with code 0, no save has failed since, and all other ranks have
 * finished. That close waits up to 10 s for them.
 * The broker decides a deletion and records it. The job's chief carries it out in the background.
 * After a crash in the middle the checkpoint is not listed, and the next start finishes the
 * deletion.
 *
 * When a job goes back to an older checkpoint (a fallback, or a restore of a given step), newer
 * ones stay behind. They are not listed, and no policy counts or keeps them. Under keep policies
 * they are deleted once a later launch has saved as far, or has saved and closes with code 0. A pin
 * that was set before the job went back protects them. */
#ifndef MUSTER_POLICY_H
#define MUSTER_POLICY_H

#include <muster/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_METRIC_NAME_MAX 63   /* bytes: letters, digits and . _ - / */
#define MUSTER_POLICIES_MAX 16      /* in one list */
#define MUSTER_POLICY_STEPS_MAX 512 /* given steps, of all policies of a list together */

enum muster_keep_kind {
    MUSTER_KEEP_NONE,
    MUSTER_KEEP_LATEST,      /* the newest `number`, 0 is legal */
    MUSTER_KEEP_EVERY_STEPS, /* steps that `number` divides */
    /* The oldest checkpoint, and then each one at least `number` steps after the last that this
     * policy keeps. A checkpoint that was deleted by hand no longer counts, so another one may be
     * kept in its place. */
    MUSTER_KEEP_EVERY_STEPS_NEAR,
    /* Each that was committed at least `number` ms after the last that this policy keeps. */
    MUSTER_KEEP_EVERY_MS,
    MUSTER_KEEP_BEST,    /* the best `number` by metric; of equals the newer */
    MUSTER_KEEP_STEPS,   /* these steps */
    MUSTER_KEEP_LAST_MS, /* committed at most `number` ms before the newest */
    /* For each multiple of `number` the nearest step that was saved; of two the newer. Saves by
     * time seldom hit the multiples, but this keeps checkpoints about evenly apart. */
    MUSTER_KEEP_EVERY_STEPS_CLOSEST,
    MUSTER_KEEP_KIND_COUNT
};

/* Programs keep this structure and muster_save_policy in arrays, so they never grow: the size of an
 * element is fixed when the program is built. A kind that needs more members gets a list of its own
 * at the end of muster_policies. */
struct muster_keep_policy {
    enum muster_keep_kind kind;
    int64_t number;
    const char *metric;   /* BEST */
    bool greatest;        /* BEST: true: greater is better; false: smaller is */
    bool keep_unmeasured; /* BEST: checkpoints without the metric are kept, too */
    const int64_t *steps; /* STEPS */
    size_t steps_count;
    int64_t max_to_keep; /* EVERY_STEPS, EVERY_STEPS_CLOSEST: only this many, the newest; 0 = all */
};

enum muster_save_kind {
    MUSTER_SAVE_NONE,
    /* Each rank computes these alike from the step. */
    MUSTER_SAVE_EVERY_STEPS, /* steps that `number` divides */
    MUSTER_SAVE_STEPS,       /* these steps */
    /* The first step, if nothing was ever saved. If that save fails, a later step is saved, as soon
     * as all ranks can save (for a process without a broker, the next step). */
    MUSTER_SAVE_FIRST,
    /* The broker decides these, at one step of all ranks. (A process without a broker decides at
     * the end of each step.) */
    MUSTER_SAVE_PERIOD_MS, /* `number` ms after the last save began */
    /* As soon as the last save is done and `number` ms after it began; 0 is legal. */
    MUSTER_SAVE_CONTINUOUS_MS,
    /* As often as the measured cost allows: saves take at most `share` of the time. */
    MUSTER_SAVE_OVERHEAD,
    /* At Young's and Daly's optimal interval, for the cost of a save and the job's interruptions.
     */
    MUSTER_SAVE_YOUNG_DALY,
    /* Called on the chief alone, before each step ends. If the broker cannot open a save at once, a
     * yes stays valid until it can, or until another save is made. If several functions said yes,
     * the first counts. */
    MUSTER_SAVE_FUNCTION,
    MUSTER_SAVE_KIND_COUNT
    /* Preemption needs no policy: a preempted job always saves. */
};

/* Is a save wanted at step index `step`? Training thread of the chief. */
typedef bool muster_should_save_fn(int64_t step, void *arg);

struct muster_save_policy {
    enum muster_save_kind kind;
    int64_t number;
    double share; /* OVERHEAD: above 0, below 1; 0.02 = 2 % */
    const int64_t *steps;
    size_t steps_count;
    muster_should_save_fn *should_save_fn;
    void *arg;
};

/* Both lists and what goes with them. All are borrowed for the call that takes this structure. */
struct muster_policies {
    size_t struct_size; /* set by MUSTER_POLICIES_INIT; do not change */
    const struct muster_keep_policy *keep;
    size_t keep_count; /* 0 = all are kept */
    const struct muster_save_policy *save;
    size_t save_count;
    /* NULL = delete at once. Else a folder inside the checkpoint directory, which the user empties.
     * Deleted checkpoints are moved there as "<its name>.<generation>-<round>". A checkpoint that
     * never got a manifest has none there. The folder's name has letters, digits, _ . and -; it
     * begins with a letter and does not end with a digit. */
    const char *trash;
};
#define MUSTER_POLICIES_INIT                          \
    {                                                 \
        .struct_size = sizeof(struct muster_policies) \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_policies_init(struct muster_policies *policies, size_t struct_size);

#ifdef __cplusplus
}
#endif
#endif
