/* usual - what is usual where this process was started: which signals announce an end, how long
 * from there to the end. Owns: the table of launchers and platforms; facts by their documentation
 * and measurements (Open MPI 4.1, Slurm 22.05). Never: reads the process's own environment, touches
 * a file. Pure.
 *
 * Every layer that is there counts, and the shortest time is the one that a rank gets: mpirun
 * inside of sbatch leaves the 2 s of mpirun. An orchestrator can be set to other times, which no
 * environment tells: grace_period_ms says them. */
#ifndef NODE_NOTICE_USUAL_H
#define NODE_NOTICE_USUAL_H

#include <stddef.h>
#include <stdint.h>

struct usual_grace {
    int64_t ms;      /* -1: nothing is usual here */
    const char *who; /* "mpirun", for people; NULL with -1 */
};
/* From the first of this signal to the end by force. pid: ours; parent: our parent's. */
struct usual_grace usual_grace(const char *const *environ_like, int signo, int pid, int parent);

#define USUAL_SIGNALS_MAX 4
/* The signals that announce an end here, SIGTERM first; how many. */
size_t usual_signals(const char *const *environ_like, int ret_signals[USUAL_SIGNALS_MAX]);

#endif
