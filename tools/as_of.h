/* as_of - if a database's musterd is dead, its records are as old as that death; this says so. */
#ifndef TOOLS_AS_OF_H
#define TOOLS_AS_OF_H

#include "tools/tool.h"

/* For a dead broker's database: prints, before the answer, a line that says how old it is. */
void tool_print_as_of(struct tool *tool);
bool tool_broker_is_dead(const struct tool *tool); /* which wrote this database */

#endif
