/* own_allocations - a broker's stories, once for each allocation of its own code, with that one
 * refused. */
#ifndef TESTS_FAULTS_OWN_ALLOCATIONS_H
#define TESTS_FAULTS_OWN_ALLOCATIONS_H

#include <stdbool.h>

/* All of a preemption and a part of the others, or these whole. Prints a line each; returns the
 * exit code. */
int own_allocations_sweep(bool whole);

#endif
