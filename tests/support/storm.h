/* storm - signals that come at any moment, as a profiler's timer sends them: SIGPROF about every 10
 * us, to the thread that began the storm, with a handler that restarts nothing (no SA_RESTART). One
 * at a time. */
#ifndef TESTS_SUPPORT_STORM_H
#define TESTS_SUPPORT_STORM_H

#include <signal.h>

struct storm;

/* `handler` NULL: one that does nothing. Failures end the test (cmocka). */
struct storm *storm_begin(void (*handler)(int signo));
void storm_end(struct storm **storm); /* what was set before is set again */

/* For a program's main: with MUSTER_TEST_STORM in the environment a storm that never ends, a signal
 * about every so many microseconds. */
void storm_from_environment(void);

#endif
