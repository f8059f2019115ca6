/* supervise_files - the files through which the ranks tell `muster run` about themselves.
 * Owns: a directory of its own for them (or --output's, for the error files), their paths, reading
 * them. Never: writes what a rank writes; trusts what is in them: sizes and kinds are checked.
 * Their form is node/agent/supervised.h's. */
#ifndef TOOLS_SUPERVISE_FILES_H
#define TOOLS_SUPERVISE_FILES_H

#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILES_PATH_MAX 4096

struct files {
    char own[FILES_PATH_MAX];    /* "" = none could be made: the job runs without */
    char errors[FILES_PATH_MAX]; /* where the error files are */
};

/* Makes the directory, readable by us alone. `output` (may be NULL) is where the logs are. */
enum muster_status files_open(struct files *ret, const char *output, struct muster_error *err);
void files_close(struct files *files, int first_rank, int rank_count); /* a zeroed one is fine */

/* "" where there is no directory. */
void files_error_path(const struct files *files, int rank, char ret_path[FILES_PATH_MAX]);
void files_life_path(const struct files *files, int rank, char ret_path[FILES_PATH_MAX]);

/* Before a launch: removes what the last launch left there. */
void files_forget(const struct files *files, int rank);

/* Why the rank's process ended, in its own words. Texts have no control characters. */
struct files_error {
    int rank;
    int error_rank; /* whose failure it was */
    int code;
    int64_t step; /* -1 = not told */
    int64_t unix_ms;
    char status[64]; /* "" = not told */
    char host[256];
    char text[4200];
};
/* False: it left none that can be read. */
bool files_error_read(const struct files *files, int rank, struct files_error *ret);

/* The reason that a node gave when it left, in one line. False: there is none. */
bool files_left_read(const struct files *files, int rank, char *ret_text, size_t size);

/* Did its node leave as finished, whatever ended its process afterwards? */
bool files_finished(const struct files *files, int rank);

/* The node that lived in the rank's process. */
struct files_life {
    int rank;
    char incarnation[17];
    char job[256];
    char broker[1024];
};
/* True: no node was opened there yet, or it takes no steps yet. */
bool files_not_started(const struct files *files, int rank);

/* True: it ended without leaving the job. False: there was none, it left, or it lives still. */
bool files_life_ended(const struct files *files, int rank, struct files_life *ret);

#endif
