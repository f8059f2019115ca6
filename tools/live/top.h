/* top - what the files of `muster top` share: what was asked, what is chosen, and its picture. */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include "tools/show/status.h"
#include "tools/tool.h"

#define TOP_EVENTS 200 /* of the journal, that can be scrolled to */

enum top_order { TOP_BY_RANK, TOP_BY_LAG, TOP_BY_SILENCE, TOP_ORDERS };
enum top_jobs_order { TOP_BY_STATE, TOP_BY_STEP, TOP_BY_CHECKPOINT, TOP_JOBS_ORDERS };

struct top {
    struct tool *tool;
    char job[256];   /* that is shown; "" = the list of all */
    char named[256]; /* by --job: there is no list to go back to */
    bool follow;     /* show the job that changed last */
    bool paused, help;
    enum top_order order;
    enum top_jobs_order jobs_order;
    size_t chosen; /* of the list; of a job's view, how far its ranks are scrolled */
    /* The answers, NULL: none yet. */
    muster_rows_t *jobs, *nodes, *rounds, *notices, *events;
    const struct muster_job_row **ordered; /* owned: of jobs, as they are shown */
    int64_t asked_unix_ms;
    int64_t last_step, last_unix_ms;      /* of this job, for its rate */
    double rate;                          /* steps a second, negative: not known */
    char said[MUSTER_ERROR_TEXT_MAX * 2]; /* why the newest question failed, "" = it did not */
};

/* The row of top->job; NULL: the job is no longer there. */
const struct muster_job_row *top_job(const struct top *top);
/* Draws all into out, for a terminal of that size. */
void top_picture(const struct top *top, FILE *out, int width, int height);

#endif
