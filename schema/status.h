/* status - every status code of muster, with its sentence.
 * This header and status.def are installed as <muster/status.h>, <muster/status.def>.
 * 0 is success; a positive value names what happened. The text that says to whom and why is in
 * struct muster_error, filled by every function that takes one as its last argument. */
#ifndef MUSTER_STATUS_H
#define MUSTER_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MUSTER_API __attribute__((visibility("default")))
#else
#define MUSTER_API
#endif

enum muster_status {
#define X(name, value, sentence, advice) name = value,
#include "status.def"
#undef X
    MUSTER_STATUS_COUNT = 45
};

#define MUSTER_ERROR_TEXT_MAX 4096 /* with the final NUL; longer text is cut between characters */

/* Caller-owned description of a failure. Untouched on success. It never grows, because no call
 * takes its size. */
struct muster_error {
    enum muster_status status; /* the same value that the function returned */
    int rank;                  /* the rank that it is about, or -1 */
    int code;                  /* errno, a peer's own code, an exit code; 0 = none */
    long long step;            /* the step that it is about, or -1 */
    /* Of a coordinator's call: the number of the task that failed; 0 = the call itself failed. */
    unsigned long long task;
    /* One line: what happened, to what, what to do. It is never empty and holds no control bytes */
    char text[MUSTER_ERROR_TEXT_MAX];
};

/* All three borrow nothing and return static strings; an unknown status gives "unknown status". */
MUSTER_API const char *muster_status_name(enum muster_status status);     /* "MUSTER_E_RANK" */
MUSTER_API const char *muster_status_sentence(enum muster_status status); /* what it means */
MUSTER_API const char *muster_status_advice(enum muster_status status);   /* what to do next */

/* The exit code of a program that ends with this status. 0 for MUSTER_OK, 42 for MUSTER_PREEMPTED,
 * 1 for a failure that a restart may mend. 93 (do not restart) if the same start would fail again:
 * a wrong option, rank, world size, layout or version, or another job's directory. If the restart
 * code may be another than 42, muster_node_restart_code() has it. */
MUSTER_API int muster_status_exit_code(enum muster_status status);

/* The version of these headers. A program that was built with them runs with every later library of
 * the same major. */
#define MUSTER_VERSION "0.2.0"
/* The version of the library that is loaded, as "0.2.0". */
MUSTER_API const char *muster_version(void);

#ifdef __cplusplus
}
#endif
#endif
