/* run_hosts - what `muster run --nodes` does before each launch: it waits for its place among the
 * hosts, and gives the ranks their numbers. Never: ends a rank. */
#ifndef TOOLS_RUN_RUN_HOSTS_H
#define TOOLS_RUN_RUN_HOSTS_H

#include "tools/run/supervise_launch.h"

/* Blocks until this host is in a launch after the last one, for JOIN_TIMEOUT_MS at most. -1: it is.
 * Else the exit code of `muster run`; the reason was printed. Without --nodes it returns -1 at
 * once. */
int run_hosts_await(struct run *run);

/* After a preempted launch: was this host told to end, and not another one? If so, that was
 * printed. */
bool run_hosts_is_taken(struct run *run);

#endif
