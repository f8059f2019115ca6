/* sim_truth - what a world really did, for whoever holds the product's words against it once it is
 * over: how far each launch came, and from where it began. From the processes themselves, not from
 * what they told the broker.
 * Only worlds with a real database (--sqlite), whose history is whole and their own. */
#ifndef TESTS_SIM_SIM_TRUTH_H
#define TESTS_SIM_SIM_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

#define SIM_TRUTHS_MAX 256

struct sim_truth { /* of a launch */
    const char *job;
    uint64_t generation;
    int64_t done;     /* the most steps that a rank has done */
    int64_t restored; /* where all ranks began; -1 = none did, or not all alike */
};
struct sim_truths {
    const char *database; /* may be opened by its path; the broker is gone */
    struct sim_truth launches[SIM_TRUTHS_MAX];
    size_t count;
};
typedef void sim_over_fn(const struct sim_truths *truths, void *arg);

/* Calls options.over_fn, if there is one and the world is such a one. The database is closed then
 */
void sim_truth_tell(struct sim *sim);

#endif
