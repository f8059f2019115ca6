/* setup - what the verbs share that begin something on this machine: init, demo, bench. */
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

/* The trial's identity comes from its own words, not from around us: unsets each MUSTER_*. */
void trial_clear_environment(void);
/* MUSTERD, and no other then; else as setup_find. An exit code; says what is missing. */
int trial_find_broker(char ret_musterd[PATH_MAX]);
/* words[0] with its words, until it ends or this process does. log: the file that its outputs go
 * to; NULL: our own. -1: could not be. */
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
/* The model behind so many steps, computed without a stop. */
void demo_train(double weights[DEMO_WEIGHTS], int from, int to);

#endif
