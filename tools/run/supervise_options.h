/* supervise_options - the command line of `muster run`, and how it complains.
 * Owns: the usage text, the words' meaning, their defaults.
 * Never: starts anything; reads more of the environment than the variables that stand for options.
 */
#ifndef TOOLS_SUPERVISE_OPTIONS_H
#define TOOLS_SUPERVISE_OPTIONS_H

#include <stdbool.h>

#define RUN_RANKS_MAX 1024

struct run_options {
    int count; /* 0 = not given */
    const char *job;
    const char *broker;
    const char *directory; /* --output */
    int restart_code;
    bool reraise; /* preset `signal` */
    bool fallback;
    bool relay;      /* the ranks speak to the broker through one here */
    bool launcher;   /* the command starts the ranks itself */
    bool quiet;      /* no word of what goes as it should */
    bool code_given; /* --restart-code or --restart-preset */
    int max_failures;
    int max_preemptions;
    int grace_ms;
    int leave_ms;
    int stop_ms;
    int backoff_ms;
    int nodes_min, nodes_max; /* --nodes; 0 = not given */
    int node_rank;            /* -1 = any */
    int join_wait_ms;
    const char *host_address;
    char **argv; /* of the ranks */
};

/* True: *o is filled; its strings are borrowed from argv and the environment. False: *ret_code is
 * the exit code, and what is wrong (or the help) was printed. */
bool run_options_read(struct run_options *o, int argc, char **argv, int *ret_code);

/* Both say on stderr what is wrong, and return false. */
bool run_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool run_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
