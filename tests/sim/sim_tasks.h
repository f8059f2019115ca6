/* sim_tasks - tasks in a simulated world: the real coordinator, the real workers' wire and the real core and
 * database of a broker, on a virtual clock, with frames that are late or lost, connections that break, processes
 * that die, stop and come back. A world is its seed. Checked as it goes:
 *   no task ends twice, and none is lost: all have ended when the faults are over
 *   no task is begun more than three times
 *   the rows fit together: none lost, leases of living workers (broker/store_check.c)
 *   when an error was raised nothing is executing, at any worker that the broker could hear */
#ifndef TESTS_SIM_SIM_TASKS_H
#define TESTS_SIM_SIM_TASKS_H

#include <stdint.h>

struct sim_tasks_stats {
    uint64_t tasks, attempts, done, failed, cancelled, raised, stale;
    uint64_t broker_kills, worker_kills, leaves, pauses, cuts, attaches, frames_lost, checks;
};

/* Fails the test (cmocka) where an invariant does not hold; names the seed. */
void sim_tasks_run(uint64_t seed, struct sim_tasks_stats *stats);
void sim_tasks_print(const struct sim_tasks_stats *stats);

#endif
