/* words_allreduce - averages of float arrays across the processes of one host, in shared memory.
 * Owns: the mapping, its barrier, and the flag that ends a wait. Never: a thread, a signal.
 *
 * Every sum is taken in rank order, so all ranks get the same bits, and a restarted job gets the
 * bits that an uninterrupted one gets. Ranks sleep in futexes while they wait; no wait is longer
 * than the timeout, and words_allreduce_abort() ends one within 20 ms. After a failed call the
 * ranks no longer agree where they are, so every later call fails, too, until a new open. */
#ifndef WORDS_ALLREDUCE_H
#define WORDS_ALLREDUCE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_WORLD_MAX 64

struct words_segment;

struct words_group {
    const char *name; /* of the job: letters, digits, - _ . ; the same for all its ranks */
    uint64_t nonce;   /* of this launch (its generation): other launches are never joined */
    int rank, world_size;
};

/* Zero it before anything else: abort may come before open, and then open fails. */
struct words_allreduce {
    atomic_bool aborted;
    struct words_group group;
    size_t count; /* floats in one average */
    unsigned timeout_ms;
    int status;    /* 0, or what the first failed call returned */
    int late_rank; /* after -ETIMEDOUT: a rank that did not arrive; else -1 */
    struct words_segment *segment;
    size_t size_bytes;
};

/* Meets the other ranks. Blocks until all are there, at most timeout_ms. Copies group; borrows
 * group->name for the call. 0, -ETIMEDOUT, -ECANCELED (aborted), -EINVAL, or another negative
 * errno. A segment that a former launch left under the name is replaced. Once all are there the
 * name is removed, so a killed job leaves nothing behind. */
int words_allreduce_open(struct words_allreduce *all, const struct words_group *group, size_t count,
                         unsigned timeout_ms);
void words_allreduce_close(struct words_allreduce *all);

/* values[count] of all ranks -> their average, in place at all. Untouched on failure. */
int words_allreduce_mean(struct words_allreduce *all, float *values);

/* Rank r's slice of values[count] -> everybody's values, bit for bit. count <= the count opened
 * with. Untouched on failure. */
int words_allreduce_gather(struct words_allreduce *all, float *values, size_t count);

/* Ends a wait of this process, now or later, with -ECANCELED. From any thread. */
void words_allreduce_abort(struct words_allreduce *all);

/* The part [begin, end) of count that a rank owns: the parts are a partition. */
void words_allreduce_slice(size_t count, int rank, int world_size, size_t *ret_begin,
                           size_t *ret_end);

#endif
