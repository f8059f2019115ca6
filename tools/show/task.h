/* task - the story of one task, for `muster why task`. */
#ifndef TOOLS_SHOW_TASK_H
#define TOOLS_SHOW_TASK_H

#include "tools/tool.h"

/* An exit code. */
int cmd_why_task(struct tool *tool, int64_t number);

#endif
