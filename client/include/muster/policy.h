/* policy.h - when a job saves and what it keeps, as data.
 *
 * A list of save policies is any-of: a save is made when one of them wants it. A list of keep policies
 * is joint any-of: a checkpoint stays while one of them wants it; what none wants is deleted. An empty
 * list of keep policies keeps all.
 *
 * Steps here are the program's own step indexes: step k is saved when k + 1 steps are done.
 *
 * Whatever the policies say, these are never deleted: a checkpoint that is pinned or being restored, and
 * the newest one. (Keep policies that do not want the newest give it up once a newer one is committed, or
 * when the chief's manager closes with code 0, no save has failed since it was made, and all other ranks have finished,
 * for which close waits up to 10 s.) Deletion is decided by the broker, on record, and carried out by the job's
 * chief in the background; a crash in the middle leaves nothing that is listed, and is made up for.
 *
 * What a job left behind when it went back to an older checkpoint (a fallback, or a restore of a given step) is not
 * listed, and no policy counts or keeps it. Under keep policies it is deleted, too: once a later launch has saved as far
 * as it had come, or has saved and closes with code 0. Until then, and while it is pinned (before the job goes back), it stays. */
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
    MUSTER_KEEP_LATEST,           /* the newest `number`, 0 is legal */
    MUSTER_KEEP_EVERY_STEPS,      /* steps that `number` divides */
    MUSTER_KEEP_EVERY_STEPS_NEAR, /* from the oldest there is on, each at least `number` steps after the last one so kept (what was deleted by hand counts no more: another one may be kept in its stead, or let go) */
    MUSTER_KEEP_EVERY_MS, /* each committed at least `number` ms after the last one so kept */
    MUSTER_KEEP_BEST,     /* the best `number` by metric; of equals the newer */
    MUSTER_KEEP_STEPS,    /* these steps */
    MUSTER_KEEP_LAST_MS,  /* committed at most `number` ms before the newest */
    MUSTER_KEEP_KIND_COUNT
};

struct muster_keep_policy {
    enum muster_keep_kind kind;
    int64_t number;
    const char *metric;   /* BEST */
    bool greatest;        /* BEST: greater is better; else smaller is */
    bool keep_unmeasured; /* BEST: those without the metric are kept too */
    const int64_t *steps; /* STEPS */
    size_t steps_count;
};

enum muster_save_kind {
    MUSTER_SAVE_NONE,
    /* Each rank computes these alike from the step. */
    MUSTER_SAVE_EVERY_STEPS, /* steps that `number` divides */
    MUSTER_SAVE_STEPS,       /* these steps */
    /* The first step there is, if nothing was ever saved; if that fails a later one, as soon as the broker finds that
     * all ranks can (a process alone: the next). */
    MUSTER_SAVE_FIRST,
    /* The broker decides these, as a round: all ranks at one step. (A process alone decides them at each step's end.) */
    MUSTER_SAVE_PERIOD_MS, /* `number` ms after the last save began */
    MUSTER_SAVE_CONTINUOUS_MS, /* as soon as the last save is done and `number` ms after it began, 0 is legal */
    MUSTER_SAVE_OVERHEAD, /* so often that saves take at most `share` of the time, from their measured cost */
    MUSTER_SAVE_YOUNG_DALY, /* Young's and Daly's optimum, from the cost of a save and the job's interruptions */
    /* Asked on the chief alone, before each step ends; its yes is a round, as above. A yes that the broker cannot open a
     * round for stands until it can, or a save is made all the same; of several that wait the first counts. */
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

/* Both lists and what goes with them. All borrowed for the call that takes them. */
struct muster_policies {
    size_t struct_size; /* set by MUSTER_POLICIES_INIT; do not change */
    const struct muster_keep_policy *keep;
    size_t keep_count; /* 0 = all are kept */
    const struct muster_save_policy *save;
    size_t save_count;
    const char *trash; /* NULL = deleted at once; else the name of a folder inside the checkpoint
                          directory (letters, digits, _ . and -, a letter first and no digit last) that deleted checkpoints are moved to, for the user to empty; each as
                          "<its name>.<generation>-<round>", without a manifest if its launch died
                          before it had one */
};
#define MUSTER_POLICIES_INIT                          \
    {                                                 \
        .struct_size = sizeof(struct muster_policies) \
    }

#ifdef __cplusplus
}
#endif
#endif
