/* bench - `muster bench`: what a preemption costs on this machine and in this directory.
 * Real ranks of a job of their own are started by `muster run` with a broker of their own, save
 * when a notice comes, and are started again. For comparison it also measures as many plain writes
 * and reads. */
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include "tools/tool.h"

#include <limits.h>
#include <stdint.h>

#define BENCH_RANKS_MAX 64
#define BENCH_ROUNDS_MAX 20
#define BENCH_PLAN_ENV "MUSTER_BENCH_PLAN" /* set: this process is a rank; the plan's path */
#define BENCH_JOB "muster-bench"

/* A file that all processes of a bench run map into memory. Times are CLOCK_MONOTONIC in ms. */
struct bench_plan {
    int64_t ranks, rounds;
    int64_t size_bytes; /* of the state of each rank */
    struct {
        double noticed_ms;
        struct {
            double opening_ms, opened_ms, left_ms;
        } ranks[BENCH_RANKS_MAX];
    } launches[BENCH_ROUNDS_MAX + 1];
};

/* The answer: medians, in ms. */
struct bench_figures {
    double agreement, save, gone, restart, plain_write, plain_read;
};

double bench_clock_ms(void);
/* NULL: cannot be had; errno is set. */
struct bench_plan *bench_plan_map(const char *path);

/* This process as one rank; an exit code. */
int bench_rank(const char *plan_path);

/* `ranks` processes write, or read from the disk, a file of `size_bytes` each in `dir`, at the same
 * time. Returns the ms until the last is done; below 0: it failed, and errno tells why. */
double bench_plain_write(const char *dir, int64_t ranks, int64_t size_bytes);
double bench_plain_read(const char *dir, int64_t ranks, int64_t size_bytes);

/* Is there gnuplot, and may the picture be written to `path`? An exit code; says what is missing.
 */
int bench_plot_check(const char *path);
/* Draws it; its script and what gnuplot says go to the other two files. An exit code. */
int bench_plot_draw(const char *path, const char *script_path, const char *log_path,
                    const struct bench_plan *plan, const struct bench_figures *figures);

#endif
