/* gate - the one atomic word that a training step passes.
 * Owns: the number of steps begun and done, and the bit that stops a thread at its next boundary.
 * Never: clock, lock, system call on the hot path; no waiting (the slow path is agent's or
 * local's).
 *
 * word: high bit = closed, the rest = begun. The training thread alone counts begun up, and only by
 * a compare-exchange that fails when the bit was set meanwhile. So no increment ever has to be
 * taken back, and nothing is in flight when the bit is cleared. With the bit set, begun changes
 * only under the owner's mutex (gate_admit, gate_take_back, gate_set).
 *
 * The gate lives in a page that the kernel wipes in a forked child: there `mark` is 0, which tells
 * the child without a system call that this node is its parent's. */
#ifndef NODE_GATE_H
#define NODE_GATE_H

#include "schema/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GATE_CLOSED (UINT64_C(1) << 63)

struct gate {
    _Alignas(64) _Atomic uint64_t word;
    _Atomic int64_t done;
    _Atomic uint32_t mark; /* 1 in the process that made it */
    int32_t ask_pid;       /* the kernel cannot wipe: compare this with getpid(); else 0 */
    int64_t due;           /* training thread only: the done at which it takes the slow path though
                              the gate is open (a save of its policy); INT64_MAX = never */
};

/* A closed gate with begun = done = 0, never due. Returned owned: gate_destroy. E_NOMEM. */
enum muster_status gate_create(struct gate **ret_gate, struct muster_error *err);
void gate_destroy(struct gate **gate); /* NULL-safe; not in a forked child */

bool gate_forked_slow(const struct gate *gate);

/* Is this a forked child of the process that made the gate? */
static inline bool gate_forked(const struct gate *gate)
{
    if (atomic_load_explicit(&gate->mark, memory_order_relaxed) == 0)
        return true;
    return gate->ask_pid != 0 && gate_forked_slow(gate);
}

/* False: this may be a forked child; gate_forked tells. */
static inline bool gate_asks_nobody(const struct gate *gate)
{
    return atomic_load_explicit(&gate->mark, memory_order_relaxed) != 0 && gate->ask_pid == 0;
}

/* Training thread, begun == done. True: one more step is begun. False: closed or due; take the slow
 * path. An open gate's word is begun, which is done here: so the word need not be loaded first. */
static inline bool gate_begin(struct gate *gate)
{
    int64_t done = atomic_load_explicit(&gate->done, memory_order_relaxed);
    uint64_t open_word = (uint64_t)done;

    return done < gate->due &&
           atomic_compare_exchange_strong_explicit(&gate->word, &open_word, open_word + 1,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

/* Training thread: the step that was begun is done. */
static inline void gate_finish(struct gate *gate)
{
    int64_t done = atomic_load_explicit(&gate->done, memory_order_relaxed);

    atomic_store_explicit(&gate->done, done + 1, memory_order_release);
}

static inline int64_t gate_done(const struct gate *gate)
{
    return atomic_load_explicit(&gate->done, memory_order_acquire);
}

static inline int64_t gate_begun(const struct gate *gate)
{
    return (int64_t)(atomic_load_explicit(&gate->word, memory_order_acquire) & ~GATE_CLOSED);
}

static inline bool gate_is_closed(const struct gate *gate)
{
    return (atomic_load_explicit(&gate->word, memory_order_acquire) & GATE_CLOSED) != 0;
}

/* All of these with the owner's mutex held. */
int64_t
gate_close(struct gate *gate); /* returns the begun of this closing; may be closed already */
void gate_open(struct gate *gate);
void gate_admit(struct gate *gate); /* training thread, gate closed: one more step is begun */
void gate_take_back(
    struct gate *gate); /* training thread: the step that was begun never happened */
/* Training thread, no step in flight: where training stands. The bit stays as it is. */
void gate_set(struct gate *gate, int64_t begun, int64_t done);
void gate_count(struct gate *gate); /* as gate_set, for one more done step, begun here or not */

#endif
