/* sim_test - what the simulator's tests share. */
#ifndef TESTS_SIM_SIM_TEST_H
#define TESTS_SIM_SIM_TEST_H

#include "tests/sim/sim.h"

/* Runs the seed; on a violation prints it with the end of its story and returns false. */
bool sim_run_told(const struct sim_options *options, struct sim_stats *stats);
/* The first of `count` seeds that breaks something; false when none does. */
bool sim_find_failure(enum sim_mutation mutation, unsigned count, struct sim_failure *ret_failure);

#endif
