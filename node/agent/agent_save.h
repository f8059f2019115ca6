/* agent_save - one rank's save, from round directory to durable, summed-up files.
 * Owns: nothing between calls. Runs on the training thread, or for a save behind the training on
 * its own thread (behind.h), with no lock held. It blocks for the disk and for the user's own save
 * function. Never: decides that a checkpoint is good; touches another rank's files. */
#ifndef NODE_AGENT_SAVE_H
#define NODE_AGENT_SAVE_H

#include "node/shard/shard.h"
#include "schema/wire/wire.h"

struct save_order { /* one save */
    uint64_t generation;
    uint64_t round;
    uint64_t nonce; /* names the life of this round number, see node/shard/dir.h */
    int64_t step;
    int64_t epoch; /* this and the next two: -1 = not known */
    int64_t step_in_epoch;
    int64_t data_position;
    int64_t waited_ms; /* for the save before */
    int64_t turn_ms; /* CLOCK_MONOTONIC: since when the program saves this step; 0 = from now on */
    bool strong;     /* the broker signs: files get checksums that nobody can forge */
    bool first;      /* none was committed in this launch: the parts of all ranks are looked at */
    void *call_arg;  /* of the boundary call that saves */
    void *snapshot;  /* what the user's hook took, else NULL */
    const struct muster_state
        *state; /* what is saved: given for this save, or a copy; NULL: the target's */
    struct safetensors_watch *watch; /* NULL: nobody watches */
};

/* The user's own save into directory `dir`; 0 or a code of its own. */
typedef int save_hook_fn(const struct save_order *order, const char *dir, void *arg);
#define SAVE_WHY_SIZE 1024
/* Why the last hook that failed did so, in the user's words; "" if it did not say. The text is
 * taken: the next call returns "". */
typedef void save_why_fn(char ret_text[SAVE_WHY_SIZE], void *arg);

/* The user's own snapshot: 0 and *ret_snapshot, or a code; and its release. Training thread;
 * release also on the thread that wrote it. Without a save hook the snapshot is a struct
 * muster_state. */
typedef int snapshot_hook_fn(const struct save_order *order, void **ret_snapshot, void *arg);
typedef void snapshot_release_fn(void *snapshot, void *arg);

struct save_target { /* the same for all saves of a node; all borrowed */
    const char *root;
    const char *job;
    enum wire_layout layout;
    uint64_t rank;
    uint64_t world_size;
    uint64_t incarnation;
    struct dir_names names;           /* of committed checkpoints */
    const struct muster_state *state; /* NULL: nothing of the library's own to save */
    int (*check)(void *arg);          /* NULL, or asked before it is read: 0 or a code */
    save_hook_fn *hook;               /* NULL: the state is saved */
    snapshot_hook_fn *take;       /* NULL: the state is copied when it is to be written behind */
    snapshot_release_fn *release; /* may be NULL */
    save_why_fn *why;             /* may be NULL */
    void *hook_arg;               /* of all five */
};

/* Takes the user's snapshot into the order, if there is a hook for it; save_release gives it back.
 */
enum muster_status save_take(const struct save_target *target, struct save_order *order,
                             struct muster_error *err);
void save_release(const struct save_target *target, struct save_order *order);

/* Training thread, before the target's state is read or copied. */
enum muster_status save_check(const struct save_target *target, const struct save_order *order,
                              struct muster_error *err);
/* Takes a snapshot and releases it if there is a hook for that and the order has none.
 * On success *ret_files is the caller's: shard_files_clear. On failure what was written is gone.
 * E_SAVE: the disk, or the hook (err->code is its code). E_EXISTS, E_JOB: see dir_round_open. */
enum muster_status save_shard(const struct save_target *target, struct save_order *order,
                              struct shard_files *ret_files, struct muster_error *err);

#endif
