/* node_allocations - a node from muster_node_open to muster_node_close, once for each allocation of
 * its own threads, with that one refused. The broker is the test: it answers whatever it is asked.
 */
#ifndef TESTS_FAULTS_NODE_ALLOCATIONS_H
#define TESTS_FAULTS_NODE_ALLOCATIONS_H

#include <stdint.h>

/* One in `stride`. Prints a line; returns the exit code: 1 when a run hung, ended without a word,
 * left a thread or a descriptor behind, or when fewer points were met. */
int node_allocations_sweep(uint64_t stride, uint64_t points_min);

/* These points only, a line each. */
int node_allocations_replay(uint64_t from, uint64_t to);

#endif
