/* signal - signals as termination notices.
 * Owns: the handlers it installed, which signal came when and from whom, its duplicates of the
 * descriptors to wake. Never: a handler for a signal that nobody watches; locks, memory or clocks
 * other than CLOCK_BOOTTIME inside a handler; threads; blocking a signal for anybody but itself, or
 * for longer than it tells one.
 *
 * A handler observes and chains: the host's own handler runs as before. A default action is
 * swallowed as long as a node watches the signal: the node leaves at its next boundary instead of
 * dying in a step. An ignored signal is only observed. A forked child inherits no watch: there
 * fork() gives the former handlers back. Where the host's handler lies over ours and chains to it,
 * the signal has its former effect, the default action included, so that worker processes stay
 * killable. A node that the child opens is the first one of its process. The table is
 * process-wide, because signals are; several nodes may watch the same ones. */
#ifndef NODE_NOTICE_SIGNAL_H
#define NODE_NOTICE_SIGNAL_H

#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIGNAL_WATCHES_MAX 64 /* nodes of one process that watch at once */
#define SIGNAL_NUMBER_MAX 64
#define SIGNAL_BURST_MS 2000

struct signal_watch; /* one node's */

/* Watches `signals` (may be empty: then only signal_report is heard). Signals are watched from
 * here on; wake_fd (an eventfd, borrowed for the call) becomes readable when one came.
 * E_ARGUMENT: a number that cannot be watched. E_BUSY: too many watches. E_IO: no descriptor.
 * E_NOMEM. */
enum muster_status signal_watch(const int *signals, size_t count, int wake_fd,
                                struct signal_watch **ret_watch, struct muster_error *err);
/* Restores the former handlers of signals that nobody else watches, where ours is still the
 * current one; a handler that was put over ours since stays and goes on to chain. A thread that
 * stands still where it tells a signal holds it up for 100 ms, and leaves a descriptor open.
 * NULL-safe. */
void signal_unwatch(struct signal_watch **watch);

struct signal_seen {
    int signo;
    int from_pid;       /* 0: unknown, or from outside this pid namespace */
    int64_t at_boot_ms; /* when the first one of its burst came */
};

/* Takes one signal that came; false: none. A signal that comes within SIGNAL_BURST_MS of the first
 * of its kind is told with it: two TERMs of one teardown are one notice. A later one is told again.
 */
bool signal_take(struct signal_watch *watch, struct signal_seen *ret_seen);

/* Puts our handler back over one that the program put over it since; ours calls the program's. A
 * program that set SIG_DFL or SIG_IGN keeps that. The signal for which it was done; 0: none. */
int signal_put_back(struct signal_watch *watch);
/* The same for all watches of this process. */
void signal_put_all_back(void);
/* A watched signal whose present handler is another's, which decides whether we hear it. 0: none */
int signal_displaced(const struct signal_watch *watch);

/* The host's own handler saw it (async-signal-safe): all watches of this process are told. */
void signal_report(int signo);

/* Is a signal at now a new burst, when the last burst began at first (0: there was none)? */
static inline bool signal_begins_burst(int64_t first_boot_ms, int64_t now_boot_ms)
{
    return first_boot_ms == 0 || now_boot_ms - first_boot_ms >= SIGNAL_BURST_MS;
}

#define SIGNAL_TEXT_SIZE 64
/* "SIGTERM from pid 4711" */
void signal_describe(const struct signal_seen *seen, char ret_text[SIGNAL_TEXT_SIZE]);

#endif
