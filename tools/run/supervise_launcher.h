/* supervise_launcher - what the broker knows of the job whose ranks a launcher starts by itself.
 * Owns: which generation belongs to a launch of the launcher, and what its end says. Never: starts
 * or ends a process; decides whether to start again (supervise.h does). Its waits have a bound. */
#ifndef TOOLS_SUPERVISE_LAUNCHER_H
#define TOOLS_SUPERVISE_LAUNCHER_H

#include "tools/run/supervise.h"
#include "tools/run/supervise_files.h"
#include "tools/tool.h"

struct launcher {
    bool given;         /* false: `muster run` starts the ranks itself */
    const char *broker; /* NULL = not told; borrowed */
    const char *job;    /* borrowed */
    int64_t before;     /* the newest generation of earlier launches, as far as is known */
    int64_t
        since_unix_ms;    /* no broker answered then: what was opened before is not this launch's */
    bool answered;        /* the broker, after the newest launch */
    struct tool_end last; /* if it did */
};

/* A launch begins: a generation that has ended by now does not belong to it. */
void launcher_begin(struct launcher *launcher);

/* The launcher's process has ended. Waits, at most 10 s, until the end of its ranks' generation is
 * on record, and tells in *exit whether that was preempted, or finished before a signal ended the
 * launcher. told: SIGTERM, SIGINT or SIGHUP came to us; 0 = none. */
void launcher_ended(struct launcher *launcher, int told_signo, struct supervise_exit *exit);

/* True: *ret_error holds the job's first error of the newest launch, as the broker knows it. */
bool launcher_error(const struct launcher *launcher, struct files_error *ret_error);

#endif
