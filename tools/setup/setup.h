/* setup - what `muster init` and `muster demo` share. */
#ifndef TOOLS_SETUP_H
#define TOOLS_SETUP_H

#include <limits.h>
#include <stdbool.h>

/* The program of that name: beside this one, in the build tree's folder of it, or in PATH. */
bool setup_find(const char *name, char ret_path[PATH_MAX]);

/* The program of one rank of the demo. Returns its exit code. */
int demo_rank(void);
#define DEMO_RANKS 4
#define DEMO_STEPS 300
#define DEMO_WEIGHTS 8
/* The model behind so many steps, computed without a stop. */
void demo_train(double weights[DEMO_WEIGHTS], int from, int to);

#endif
