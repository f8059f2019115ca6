/* supervise_launch - one launch of `muster run`, from the start of its ranks until nothing of it is
 * left. Owns: the processes of the launch, their pipes, the forwarding of signals that signal_fd
 * gives. Never: decides who is to end or whether to start again (supervise.h does); opens or frees
 * what is in struct run. Every wait has a bound: orders have deadlines, the sweep and the draining
 * of pipes a limit. */
#ifndef TOOLS_SUPERVISE_LAUNCH_H
#define TOOLS_SUPERVISE_LAUNCH_H

#include "node/notice/identity.h"
#include "tools/run/hosts.h"
#include "tools/run/save_watch.h"
#include "tools/run/supervise.h"
#include "tools/run/supervise_box.h"
#include "tools/run/supervise_guard.h"
#include "tools/run/supervise_launcher.h"
#include "tools/run/supervise_output.h"
#include "tools/run/supervise_rank.h"

#include <poll.h>

struct run {
    struct supervise sup;
    struct output output;
    struct guard guard;
    struct rank_command command;
    struct files files;
    struct launcher launcher;
    struct save_watch saves;    /* how far the save under way is */
    struct hosts hosts;         /* where hosts form the launches; pid 0: not */
    struct hosts_message place; /* in the present launch */
    bool host_gone;             /* another of its hosts is gone, and no rank here began a step */
    const char *directory;      /* --output */
    struct rank_process *ranks;
    struct rank_end *ends; /* beside ranks */
    int *tellers;          /* beside ranks: pids of reports under way, 0 = none */
    int rank_count;
    int restarts_before; /* that the launcher knows of */
    int signal_fd;
    int64_t wait_say_boot_ms; /* when to say whom it waits for, after SIGTERM; 0 = not */
    bool unstarted_said;
    bool stuck_said; /* whom it waits for after a rank left with the restart code */
    char job[IDENTITY_JOB_MAX];
    struct pollfd *polls;
    struct output_stream **streams; /* beside polls; NULL = not a stream */
    int *owners;                    /* beside polls: the stream's rank */
};

/* Starts all ranks and returns when they have ended or were given up, and what they started has
 * too. Each rank's end is in run->ends, the whole in run->sup. */
void run_launch(struct run *run);

/* Reads the signals that came, and forwards to the ranks what is to be. True: a child ended. */
bool run_signals_read(struct run *run);

/* Processes that came to us and have ended, as orphans_reap. Between launches no rank is left to be
 * kept. */
int run_orphans_reap(const struct run *run, bool kill_too);

const char *run_plural(int count); /* "" or "s" */

/* "4 ranks", or "the launcher". */
struct run_whom {
    char text[32];
};
struct run_whom run_whom(const struct run *run, int count);

#endif
