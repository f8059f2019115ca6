/* supervise_rank - the processes of `muster run`: starting a rank, signalling it, its end, and the
 * end of everything it started.
 * Owns: fork and exec, the rank's environment and process group, zombies, adopted orphans.
 * Never: decides who is to end (supervise.h does); reads the ranks' output.
 * Invariant: a rank stays a zombie until rank_reap(), so that its process group's number cannot be
 * given to strangers while it may still be signalled. */
#ifndef TOOLS_SUPERVISE_RANK_H
#define TOOLS_SUPERVISE_RANK_H

#include "schema/status.h"
#include "tools/run/supervise.h"
#include "tools/run/supervise_files.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The facts that every rank of a launch shares. All borrowed. */
struct rank_command {
    char **argv;
    const char *job;
    const char *broker; /* NULL = not told */
    int world_size;     /* negative = not told; so the next */
    int restart_count;
    int restart_code;
    int master_port; /* of rank 0, free at the launch; 0 = other hosts have ranks, so not told */
    const char *master_address; /* of rank 0's host; NULL = here */
    int node_rank;              /* this host's place among those that form the launch; -1 = none */
    bool fallback;              /* told only if it is given: else it is as around us */
    const struct files *files;
    sigset_t mask;           /* what the ranks are started with */
    void (*on_sigpipe)(int); /* as around us, where we ignore them */
    void (*on_sigxfsz)(int);
};

#define RANK_HEIRS_MAX 16

struct rank_process {
    int rank;       /* SUPERVISE_LAUNCHER: it starts the ranks itself, and is told of none */
    int local_rank; /* negative = unknown, not told */
    int local_size;
    pid_t pid;    /* 0 = not started, or reaped; also the number of its process group */
    int start_fd; /* holds errno when the program could not be executed */
    bool ended;
    /* Processes that this one had started and left alive when a forwarded signal ended it. They get
     * the signal in its place, and the rank lives as long as they do. */
    pid_t heirs[RANK_HEIRS_MAX];
    int heir_count;
    int heirs_left;
    bool heirs_speak;            /* their end is the rank's: its process could say nothing */
    int64_t heirs_until_boot_ms; /* then they are killed; INT64_MAX = when the rank would be */
};

/* Starts the rank in its own process group, with stdin from /dev/null, its output into two new
 * pipes, torchrun's RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT
 * where they are not set and all ranks are ours, and MUSTER_JOB, MUSTER_RANK, MUSTER_WORLD_SIZE,
 * MUSTER_LOCAL_RANK, MUSTER_LOCAL_SIZE, MUSTER_RESTART_COUNT, MUSTER_RESTART_CODE, MUSTER_BROKER,
 * MUSTER_ERROR_FILE and MUSTER_LIFE_FILE in its environment. It dies with us (PR_SET_PDEATHSIG).
 * Whether the program can be executed shows only when the rank ends. The caller owns the two
 * descriptors.
 */
enum muster_status rank_start(struct rank_process *rank, const struct rank_command *command,
                              int *ret_out_fd, int *ret_err_fd, struct muster_error *err);

/* A port that is free now at `address` (INADDR_LOOPBACK, or INADDR_ANY for all of this host's). 0:
 * none is. Ask again for each launch: the last one's may still be taken. */
int rank_free_port(in_addr_t address);

/* True once, when the rank has ended; fills *ret_exit. Does not block, does not reap. */
bool rank_ended(struct rank_process *rank, struct supervise_exit *ret_exit);

/* The rank has just ended: finds its heirs, which are the processes of its group that are our
 * children by now. Returns how many. If a signal ended the rank's process, the rank ends with
 * them. */
int rank_heirs_find(struct rank_process *rank, const struct supervise_exit *exit);

/* Reaps the heirs that ended, and returns how many are left. Where they speak for the rank, the end
 * of one that leaves with restart_code, or that is the only one, becomes *exit. */
int rank_heirs_look(struct rank_process *rank, int restart_code, struct supervise_exit *exit);

/* Signals the rank's process alone, or its heirs. Not its group: a data loader's worker that dies
 * of a forwarded SIGTERM would break the step before the checkpoint that the signal asks for. */
void rank_signal(const struct rank_process *rank, int signo);

/* SIGKILL to the rank and to all that stayed in its process group. */
void rank_kill_group(const struct rank_process *rank);

/* Takes the zombie away. One that did not end is left to whoever comes after us. */
void rank_reap(struct rank_process *rank);

/* Reaps adopted orphans that ended; those among our children that `ranks` or `keep` names are
 * left. With kill_too every other child is sent SIGKILL first. Returns how many are left. */
int orphans_reap(const struct rank_process *ranks, int rank_count, const pid_t keep[2],
                 bool kill_too);

#endif
