/* sim_tasks - tasks in a simulated world: the real coordinator, the real workers' wire and the real
 * core and database of a broker, on a virtual clock, with frames that are late or lost, connections
 * that break, processes that die, stop and come back. A world is its seed. Checked as it goes: no
 * task ends twice, and none is lost: all have ended when the faults are over no task is begun more
 * than three times, beside attempts that do not count; no attempt is begun twice the rows fit
 * together: none lost, leases of living workers (broker/store/store_check.c) when an error was
 * raised nothing is executing, at any worker that the broker could hear what is done was begun
 *   schedule, join and done name a parameter server while it is missing, and at no other time
 *   a call takes no longer than it may, and no thread waits for ever beside others
 *   a task has its own worker's part of each per-worker value, made for this queue; none fails for
 * want of one that could be made a result is the task's own and all of one attempt, long ones too
 */
#ifndef TESTS_SIM_SIM_TASKS_H
#define TESTS_SIM_SIM_TASKS_H

#include "schema/wire/wire.h"

struct core;

struct sim_tasks_stats {
    uint64_t tasks, attempts, done, failed, cancelled, raised, stale;
    uint64_t broker_kills, worker_kills, leaves, pauses, cuts, attaches, frames_lost, checks;
    uint64_t fresh, cancels, fetched, freed, values_made, timeouts, preempted, poisoned;
    uint64_t servers_killed, servers_preempted, servers_failed, servers_finished, servers_back;
    uint64_t unavailable_schedule, unavailable_join, unavailable_done; /* calls that said so */
    uint64_t waits_beside;            /* of a thread for what another one hears */
    uint64_t messages[WIRE_TYPE_MAX]; /* that were heard */
};

/* Worlds differ by their seed: in every second one the coordinator blocks in schedule (a queue of
 * 6) and in join, in every third one the broker's queue is full when it has a few tasks' bytes, and
 * in the one behind it there are parameter servers, in every fourth one three threads share the
 * coordinator, in every fifth one the coordinator may begin its queue again. */

/* Fails the test (cmocka) where an invariant does not hold; names the seed. */
void sim_tasks_run(uint64_t seed, struct sim_tasks_stats *stats);

/* A world where nothing fails but tasks that end their workers' processes: these are failed by
 * name, after three losses that count and one at most that does not, and no other task fails. */
void sim_tasks_run_poisoned(uint64_t seed, struct sim_tasks_stats *stats);

/* Must-fail controls: a core that is broken on purpose, in a world without other faults. */
enum sim_tasks_break {
    SIM_TASKS_SOUND,
    SIM_TASKS_LOSE,    /* forgets what is queued, once */
    SIM_TASKS_TWICE,   /* gives one that has ended again */
    SIM_TASKS_RUNS,    /* raises an error while something runs */
    SIM_TASKS_STAYS,   /* never raises one */
    SIM_TASKS_AGAIN,   /* gives the number of an attempt that a preempted worker had begun again ...
                        */
    SIM_TASKS_MIXES,   /* ... which nobody sees but in a result that is of two attempts */
    SIM_TASKS_BLAMES,  /* lets what ends its workers run with others until the end; of poisoned
                          worlds */
    SIM_TASKS_MUTE,    /* tells of no server that is missing */
    SIM_TASKS_GRUDGES, /* tells of it ever after; both of worlds with servers */
    SIM_TASKS_SLEEPS   /* a coordinator that wakes nobody, of worlds with several threads */
};
/* True: the world failed, with these words. In a child process. */
bool sim_tasks_fails(uint64_t seed, enum sim_tasks_break how, const char *words);
/* The broken core, before each of its steps (sim_tasks_break.c). */
void sim_tasks_break_core(struct core *core, enum sim_tasks_break how);
void sim_tasks_print(const struct sim_tasks_stats *stats);

#endif
