/* supervise_box - what `muster run` says when a job stops: the first cause, in one box, at the end.
 * Owns: the choice of the cause among the exits and the ranks' error files, and its form.
 * Never: decides what follows (supervise.h). */
#ifndef TOOLS_SUPERVISE_BOX_H
#define TOOLS_SUPERVISE_BOX_H

#include "tools/run/supervise.h"
#include "tools/run/supervise_files.h"
#include "tools/run/supervise_output.h"

/* How one rank of the launch ended. */
struct rank_end {
    bool ended;
    bool told; /* the broker, that it did not leave */
    struct supervise_exit exit;
    int64_t unix_ms; /* when it was seen */
};

/* The first failure of a launch: the earliest that a rank tells of itself, else the first exit, or
 * the rank that the first one to leave names. Gives sup that cause, if it is another than the first
 * exit. True: *ret_error holds its own words. */
bool cause_find(struct supervise *sup, const struct files *files, const struct rank_end *ends,
                int rank_count, struct files_error *ret_error);

struct box {
    const char *job;
    const char *program;
    const char *why; /* supervise_describe */
    const char *counts;
    const struct supervise *sup;
    const struct files_error *error; /* NULL = the rank left no words */
    const struct files *files;
    int64_t unix_ms; /* of the exit; 0 = nobody ended */
    int first_rank;
    int exit_code;
    bool stalled; /* by SUPERVISE_BY_STALL */
};
void box_say(struct output *output, const struct box *box);

#endif
