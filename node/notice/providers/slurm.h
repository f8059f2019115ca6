/* slurm - the end of a Slurm job's time, as a notice when it comes near.
 * SLURM_JOB_END_TIME says it (Slurm 23.02 and later), else and again each SLURM_PERIOD_MS squeue
 * does, in a child process: it is a projection, which `scontrol update` and preemption move. One of
 * the job's processes on a host asks, the others read what it learnt (share.h). An end that moves
 * earlier is told; one that moves later withdraws the notice, and is told again when it is near.
 * Before the first notice squeue is asked once more, if it has not been of late. "slurm:SECONDS":
 * how long before the end the notice comes, SLURM_LEAD_S without. Its signals are the signal
 * source's; the time between them and the end is usual.h's. */
#ifndef NODE_NOTICE_SLURM_H
#define NODE_NOTICE_SLURM_H

#include "node/notice/base/source.h"

#define SLURM_LEAD_S 300
#define SLURM_LEAD_MAX_S 86400
#define SLURM_PERIOD_MS 300000
#define SLURM_LIMIT_MS 30000   /* squeue waits for a controller that does not answer */
#define SLURM_CONFIRM_MS 60000 /* an end known for longer is asked for again before it is told */

extern const struct source_ops slurm_ops; /* argument: "", or the lead in seconds */

/* The output of squeue or scontrol, with SLURM_TIME_FORMAT=%s. False: no end can be read. 0: there
 * is none. Pure. */
bool slurm_parse(const char *bytes, size_t size, int64_t *ret_end_unix_ms);

#endif
