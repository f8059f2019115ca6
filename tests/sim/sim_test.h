/* sim_test - what the simulator's tests share. */
#ifndef TESTS_SIM_SIM_TEST_H
#define TESTS_SIM_SIM_TEST_H

#include "tests/sim/sim.h"

/* Runs the seed; on a violation prints it, the end of its story and how to replay it, and returns
 * false. */
bool sim_run_told(const struct sim_options *options, struct sim_stats *stats);
/* The worlds of seeds 1 to count: none may break anything. Prints what they met. */
void sim_run_worlds(struct sim_options (*world)(uint64_t seed), uint64_t count,
                    struct sim_stats *stats);
/* The first of `count` seeds that breaks something; false when none does. */
bool sim_find_failure(enum sim_mutation mutation, unsigned count, struct sim_failure *ret_failure);
/* The same, but only what breaks this invariant counts. */
bool sim_find_broken(const struct sim_options *options, unsigned count, const char *invariant);
/* ... and the words that tell which of the invariant's checks saw it. */
bool sim_find_said(const struct sim_options *options, unsigned count, const char *invariant,
                   const char *words);

/* These three count what they found: a deliberate bug that was seen. A control that finds in
 * another way says so. */
void sim_bug_seen(const struct sim_failure *failure, uint64_t seed);
/* For the end of a main: prints how many were seen, and fails if those are fewer than `bugs_min` */
int sim_bugs_end(int failed, unsigned bugs_min);

uint64_t sim_median(uint64_t *numbers, size_t count); /* sorts them */
/* More than any world takes, sanitized and without a sanitizer. */
#define SIM_WORLD_SECONDS 120
/* Which world took the most of this process's own time. */
struct sim_longest {
    double seconds;
    char arguments[192];
};
void sim_longest_note(struct sim_longest *longest, const struct sim_options *options,
                      double seconds);
double sim_cpu_seconds(void);
/* main of a test of seeds that nobody has run before: as many as this process can do in so many
 * seconds of its own time; on a busy machine in at most three times that. The first is printed, the
 * one that took longest, and one that breaks something or does not end. */
struct sim_fresh {
    double memory_s, put_back_s, store_s, shared_s;
};
int sim_fresh_main(const struct sim_fresh *cpu);

#endif
