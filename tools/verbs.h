/* verbs - the function of each verb of `muster`. It returns an exit code (enum tool_exit). */
#ifndef TOOLS_VERBS_H
#define TOOLS_VERBS_H

#include "tools/tool.h"

extern const struct tool_verb tool_verbs[]; /* all but run; ends with name NULL */

int cmd_status(struct tool *tool);
int cmd_nodes(struct tool *tool);
int cmd_rounds(struct tool *tool);
int cmd_round(struct tool *tool);
int cmd_checkpoints(struct tool *tool);
int cmd_latest(struct tool *tool);
int cmd_events(struct tool *tool);
int cmd_notify(struct tool *tool);
int cmd_save(struct tool *tool);
int cmd_pin(struct tool *tool);
int cmd_unpin(struct tool *tool);
int cmd_forget(struct tool *tool);
int cmd_verify(struct tool *tool);
int cmd_import(struct tool *tool);
int cmd_why(struct tool *tool);
int cmd_tasks(struct tool *tool);
int cmd_broker(struct tool *tool);
int cmd_key(struct tool *tool);
int cmd_web(struct tool *tool);
int cmd_bench(struct tool *tool);
int cmd_top(struct tool *tool);
int cmd_doctor(struct tool *tool);
int cmd_init(struct tool *tool);
int cmd_demo(struct tool *tool);
int cmd_run(int argc, char **argv); /* parses its own words; argv[0] is "run" */

#endif
