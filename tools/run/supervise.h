/* supervise - what `muster run` decides: whom to end and when, restart or stop, which exit code.
 * Owns: the exit codes' meaning, the counts of launches, preemptions and failures, the deadlines.
 * Never: a process, a signal sent, a clock, a file, a message printed. Time and exits come in as
 * arguments; orders and verdicts come out. cmd_run.c carries them out.
 * Invariants: the first exit of a launch that is not 0 is its cause; only supervise_blame, at the
 * launch's end, names another failure in its place. One launch is counted as a preemption or as a
 * failure, never as both. Every wait that it orders has an end. */
#ifndef TOOLS_SUPERVISE_H
#define TOOLS_SUPERVISE_H

#include "schema/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUPERVISE_CODE_NO_RESTART EXIT_CODE_NO_RESTART
#define SUPERVISE_UNBOUNDED (-1)

struct supervise_policy {
    int rank_count;
    int restart_code;    /* 1 to 255, not 93 */
    int max_failures;    /* launches that may fail and be restarted; -1 = any number */
    int max_preemptions; /* launches that may be preempted and be restarted; -1 = any number */
    int max_stalls;      /* restarts in a row without a newer checkpoint */
    int64_t grace_ms;    /* from a failure to SIGTERM for the others, and from there to SIGKILL */
    int64_t leave_ms;    /* the same after the first restart code, while a rank trains */
    int64_t stop_ms;     /* from a forwarded SIGTERM, SIGINT or SIGHUP to SIGKILL; 0 = never */
    /* Before the first restart after a failure, or after a preemption that left no newer
     * checkpoint; doubles; 0 = none. */
    int64_t backoff_ms;
    int64_t backoff_max_ms;
    int64_t progress_ms; /* a launch this long is progress when nobody can tell the checkpoint */
};

/* Fills *policy with the documented defaults for rank_count ranks. */
void supervise_defaults(struct supervise_policy *policy, int rank_count);

enum supervise_kind {
    SUPERVISE_NONE = 0,
    SUPERVISE_FINISHED,   /* exit code 0 */
    SUPERVISE_RESTART,    /* the restart code, or death by its signal (143: SIGTERM) */
    SUPERVISE_NO_RESTART, /* 93 */
    SUPERVISE_FAILED,     /* any other code */
    SUPERVISE_SIGNALLED,  /* death by a signal */
    SUPERVISE_UNSTARTED,  /* the program could not be executed: a restart cannot help */
    SUPERVISE_KIND_COUNT
};

#define SUPERVISE_LAUNCHER (-1) /* in a rank's place: the process that starts the ranks itself */

/* How one rank ended. */
struct supervise_exit {
    int rank;
    int code;       /* exit code, when signo is 0 */
    int signo;      /* the signal it died of, or 0 */
    bool preempted; /* on record the job was: that counts, whatever the code says */
    bool unstarted; /* it never became the program; code is 126 or 127 */
};

enum supervise_order {
    SUPERVISE_WAIT = 0,
    SUPERVISE_TERM,    /* send SIGTERM to every rank that still runs */
    SUPERVISE_KILL,    /* SIGKILL to every rank that still runs, and its process group */
    SUPERVISE_ABANDON, /* they cannot be killed: stop waiting, end the launch */
};

enum supervise_reason {
    SUPERVISE_BY_NONE = 0,
    SUPERVISE_BY_FINISH,
    SUPERVISE_BY_PREEMPTION,
    SUPERVISE_BY_FAILURE,
    SUPERVISE_BY_SIGNAL, /* `muster run` itself was told to end */
    SUPERVISE_BY_NO_RESTART,
    SUPERVISE_BY_INCURABLE,
    SUPERVISE_BY_UNSTARTED,
    SUPERVISE_BY_MAX_FAILURES,
    SUPERVISE_BY_MAX_PREEMPTIONS,
    SUPERVISE_BY_STALL,
    SUPERVISE_BY_UNKILLABLE,
    SUPERVISE_BY_COUNT
};

/* The verdict after a launch. */
struct supervise_verdict {
    enum supervise_reason reason;
    bool restart;
    int exit_code;    /* of `muster run`, when it does not restart */
    int64_t delay_ms; /* before the restart */
};

/* The record of the ranks of one launch. */
struct supervise_launch {
    int64_t started_ms;
    int alive;
    int exits[SUPERVISE_KIND_COUNT];
    enum supervise_kind cause_kind; /* of the first exit that was not 0 */
    struct supervise_exit cause;
    bool cause_before_told;
    const char *incurable; /* the status that the cause ended with, if the same start fails again */
    bool term_sent;
    bool kill_sent;
    bool abandoned;
    int64_t deadline_ms; /* of the next order; INT64_MAX = none */
};

struct supervise {
    struct supervise_policy policy;
    uint64_t random;
    int launch_count;
    int preemption_count;
    int failure_count;
    int failures_in_row; /* since a newer checkpoint; the backoff grows with it */
    int idle_in_row;     /* preemptions that left no newer checkpoint; likewise */
    int stall_count;     /* ends of launches in a row without a newer checkpoint */
    bool step_known;
    int64_t step;         /* of the newest checkpoint at the last verdict; -1 = there was none */
    int told_signo;       /* the first SIGTERM, SIGINT or SIGHUP to `muster run` itself; 0 = none */
    uint64_t told_mask;   /* all of them, one bit a signal */
    int64_t interrupt_ms; /* when the first SIGINT came */
    bool kill_now;
    int hint_signo; /* SIGUSR1 or SIGUSR2: perhaps the scheduler's notice */
    int64_t hint_ms;
    struct supervise_launch now;
};

/* Copies policy. `seed` feeds the jitter of the backoff. Nothing to free. */
void supervise_init(struct supervise *sup, const struct supervise_policy *policy, uint64_t seed);

/* A launch begins: all ranks count as alive. */
void supervise_begin(struct supervise *sup, int64_t now_ms);

/* One rank ended. */
void supervise_exited(struct supervise *sup, const struct supervise_exit *exit, int64_t now_ms);

/* The cause is the restart code, and no rank that still runs has begun a step, so they have nothing
 * to save. They are ended at once, or after grace_ms if they were told to end already. */
void supervise_none_started(struct supervise *sup, int64_t now_ms);

/* Another rank's failure came before the first exit: that one is the cause. Ignored unless both are
 * failures: a launch stays a preemption or a failure, as its first exit said. */
void supervise_blame(struct supervise *sup, const struct supervise_exit *exit);

/* The cause ended with a status which says that the same start would fail again: no restart
 * follows. Borrows the name until the verdict is described. */
void supervise_incurable(struct supervise *sup, const char *status);

/* `muster run` itself received signo. True: send it to every rank that runs. SIGTERM, SIGINT and
 * SIGHUP are passed on once each (a scheduler may send two within milliseconds); SIGUSR1 and
 * SIGUSR2 each time. A second SIGINT half a second or more after the first orders SIGKILL. */
bool supervise_signal(struct supervise *sup, int signo, int64_t now_ms);

/* A rank's process ended. Processes that it started may live on, such as a shell's program that was
 * not exec'ed. Returns the signal that was sent to the process and that they did not get. 0 = none,
 * or the rank finished, or asked to be restarted or not to be. */
int supervise_inherited(const struct supervise *sup, const struct supervise_exit *exit);

/* The order that is due now, each one once. */
enum supervise_order supervise_due(struct supervise *sup, int64_t now_ms);

/* Milliseconds until an order can be due; -1 = none is planned. */
int64_t supervise_wait_ms(const struct supervise *sup, int64_t now_ms);

/* All ranks ended (or were abandoned). latest_step: the newest checkpoint's step, -1 when there is
 * none, NULL when nobody can tell. Counts the launch and says what follows. */
struct supervise_verdict supervise_end(struct supervise *sup, const int64_t *latest_step,
                                       int64_t now_ms);

/* "preempted, restart code 42 from all 4 ranks", "failed, rank 2 exited with code 1", ...: why
 * the launch ended as the verdict says. Always terminated. */
void supervise_describe(const struct supervise *sup, const struct supervise_verdict *verdict,
                        char *text, size_t size);

/* "rank 2", or "the launcher". */
struct supervise_name {
    char text[24];
};
struct supervise_name supervise_name(int rank);

#endif
