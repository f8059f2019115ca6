/* supervise_tell - tells the broker of a rank whose process ended without a word.
 * Owns: one short-lived child process a report, so that a broker that does not answer holds up
 * neither signals nor output. Never: decides that a process is dead (its life file says so); waits
 * in the supervisor itself. */
#ifndef TOOLS_SUPERVISE_TELL_H
#define TOOLS_SUPERVISE_TELL_H

#include "tools/run/supervise.h"
#include "tools/run/supervise_files.h"

#define TELL_LIMIT_MS 1500 /* from the report to giving up */

/* Forks the child; returns at once, with its pid, or 0 where there is none. It is reaped like an
 * orphan. To be called while this process has one thread. */
int tell_gone(const struct files_life *life, const struct supervise_exit *exit);

#endif
