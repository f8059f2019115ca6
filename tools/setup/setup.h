/* setup - shared by the verbs that begin something on this machine: init, demo, bench. */
#ifndef TOOLS_SETUP_H
#define TOOLS_SETUP_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* This program's own path; "" = not known. */
void setup_self(char ret_path[PATH_MAX]);

/* The program of that name: beside this one, in the build tree's folder of it, or in PATH. */
bool setup_find(const char *name, char ret_path[PATH_MAX]);

/* --- trial.c: a broker and a job of one's own --- */

/* Unsets each MUSTER_* variable: the trial's identity comes from its own options only. */
void trial_clear_environment(void);
/* Finds musterd: the variable MUSTERD alone if it is set, else as setup_find. Returns an exit code;
 * prints what is missing. */
int trial_find_broker(char ret_musterd[PATH_MAX]);
/* Starts words[0] with its words; it ends at the latest with this process. log: the file for its
 * output; NULL: our own output. -1: it could not be started. */
pid_t trial_start(const char *log, const char *const *words);
/* With its database in `dir`. It outlives Ctrl-C, so that the ranks end first. */
pid_t trial_start_broker(const char *log, const char *musterd, const char *address,
                         const char *dir);
int trial_wait(pid_t pid); /* its exit code; -1: it was killed, or never was */
void trial_stop(pid_t pid);

/* --- demo_rank.c --- */

/* The program of one rank of the demo. Returns its exit code. */
int demo_rank(void);
#define DEMO_RANKS 4
#define DEMO_STEPS 300
#define DEMO_WEIGHTS 8
/* The model after this many steps, computed without interruption. */
void demo_train(double weights[DEMO_WEIGHTS], int from, int to);

#endif
