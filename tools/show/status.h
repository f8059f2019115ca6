/* status - what a job's row says, in the words of `muster status`: for it, and for `muster web`. */
#ifndef TOOLS_SHOW_STATUS_H
#define TOOLS_SHOW_STATUS_H

#include "tools/render.h"

/* The state; of a job that has ended, how. */
const char *status_outcome(const struct muster_job_row *job);
/* A step as the job's program counts it. */
int64_t status_step(const struct muster_job_row *job, int64_t step);
/* Steps done since the newest checkpoint; below 0: the launch has not come back to it yet. */
int64_t status_unsaved(const struct muster_job_row *job);
/* Steps that count towards the result, of all that were computed: 0 to 1; -1 = not known. It is an
 * upper bound if ranks were lost (unknown_ranks). */
double status_goodput(const struct muster_job_row *job);
struct shown status_goodput_shown(const struct muster_job_row *job);
/* Jobs that go on by name, then those that have ended, the newest end first. Owned; NULL: no
 * memory. */
const struct muster_job_row **status_ordered(const muster_rows_t *rows);
/* The table of these jobs. width: as of table_print. */
void status_list(FILE *out, const struct muster_job_row *const *jobs, size_t count,
                 int64_t now_unix_ms, int width);

#endif
