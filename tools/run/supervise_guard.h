/* supervise_guard - a small process that outlives `muster run` for a moment, to clean up.
 * Owns: one child that waits for the end of a pipe and then kills the process groups it was told.
 * Why: PR_SET_PDEATHSIG ends the ranks of a supervisor that was killed, but not what the ranks
 * started (data loaders, helpers), and those would keep memory, files and devices.
 * Never: sends a signal while the supervisor lives. */
#ifndef TOOLS_SUPERVISE_GUARD_H
#define TOOLS_SUPERVISE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

struct guard {
    pid_t pid; /* 0 = none: the job runs without it */
    int fd;    /* its pipe; close-on-exec, so that nobody else keeps it open */
};

/* Forks the guard. To be called before any rank is started. False: there is none. */
bool guard_start(struct guard *ret);

/* Tells the guard of a group, or that the group's leader is about to be reaped (its number may then
 * be given to another process). */
void guard_add(const struct guard *guard, pid_t group);
void guard_remove(const struct guard *guard, pid_t group);

/* Releases the guard and waits for its exit, which follows at once. */
void guard_stop(struct guard *guard);

#endif
