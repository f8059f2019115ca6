/* supervise_progress - the step of a job's newest checkpoint, for the stop without progress.
 * Asks the broker; where none answers, reads the manifests in MUSTER_CHECKPOINT_DIR.
 * Never: writes; waits longer than the tool's timeout for a broker. */
#ifndef TOOLS_SUPERVISE_PROGRESS_H
#define TOOLS_SUPERVISE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* broker NULL: MUSTER_BROKER, else the default one. False: nobody can tell. *ret_step -1: none yet.
 */
bool progress_step(const char *broker, const char *job, int64_t *ret_step);

/* The greatest step of the job's manifests in a checkpoint directory. False: it cannot be read. */
bool progress_in_directory(const char *directory, const char *job, int64_t *ret_step);

#endif
