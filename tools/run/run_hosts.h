/* run_hosts - what `muster run --nodes` does before each launch: it waits for its place among the
 * hosts, and gives the ranks their numbers. Never: ends a rank. */
#ifndef TOOLS_RUN_RUN_HOSTS_H
#define TOOLS_RUN_RUN_HOSTS_H

#include "tools/run/supervise_launch.h"

/* Blocks until this host is in a launch behind the last one; for JOIN_TIMEOUT_MS at most. -1: it
 * is. Else the exit code of `muster run`, whose reason was said. Without --nodes -1 at once. */
int run_hosts_await(struct run *run);

/* A launch was preempted: was this host told to end, and not another one? Then it was said. */
bool run_hosts_is_taken(struct run *run);

#endif
