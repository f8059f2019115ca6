/* behind - the thread of a save behind the training: it writes one rank's snapshot while the
 * training thread goes on.
 * Owns: the snapshot (the user's until it is released, else a copy of the state), the thread, which
 * starts with the first save; one save at a time.
 * Never: a decision about the round; fork. All signals are blocked in it. */
#ifndef NODE_BEHIND_H
#define NODE_BEHIND_H

#include "node/agent/agent_save.h"

struct behind;

struct behind_result { /* of one save; borrowed for the call */
    const struct save_order *order;
    enum muster_status status;
    const struct shard_files *files; /* MUSTER_OK */
    const struct muster_error *why;  /* else */
    int64_t save_ms;                 /* from the snapshot's beginning to the durable file */
    int64_t blocked_ms;              /* the snapshot alone */
    bool held;                       /* the training thread waits for the commit: never behind it */
};
/* Called on the thread with each save's outcome; until it returns the save is under way. */
typedef void behind_done_fn(const struct behind_result *result, void *arg);

/* target is borrowed until destroy. E_NOMEM. */
enum muster_status behind_create(const struct save_target *target, behind_done_fn *done, void *arg,
                                 struct behind **ret_behind, struct muster_error *err);
/* Breaks off what is being written, and waits at most limit_ms for the end of it. False: it has not
 * ended. Its thread is left behind with all that it uses, also target and what `done` is called
 * with. NULL-safe. */
bool behind_destroy(struct behind **behind, int64_t limit_ms);

/* Training thread, while none is under way. begin: behind_bytes counts from 0 again. take: copies;
 * the state may change when it returns. start: writes what was taken; drop: does not. E_NOMEM,
 * E_BUSY (no thread to be had), E_INTERRUPTED (interrupt): nothing was taken. E_SAVE: the user's
 * hook. */
void behind_begin(struct behind *behind);
enum muster_status behind_take(struct behind *behind, const struct save_order *order,
                               struct interrupt *interrupt, struct muster_error *err);
void behind_start(struct behind *behind);
void behind_drop(struct behind *behind);

bool behind_is_busy(struct behind *behind); /* any thread; until done has returned */
void behind_stop(struct behind *behind); /* any thread: what is written fails soon; the user's own
                                            save_fn is not disturbed */
uint64_t behind_bytes(
    struct behind *behind); /* any thread: copied, then written of the present save; grows */

#endif
