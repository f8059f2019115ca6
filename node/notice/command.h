/* command - a command that tells notices: /bin/sh -c COMMAND, each period, in a process group of
 * its own. Exit code 0 and nothing on stdout mean no notice. Exit code 0 and a line mean a notice,
 * see line.h. Anything else means that the command does not work, and changes nothing. It is killed
 * with its group after COMMAND_LIMIT_MS, see child.h. */
#ifndef NODE_NOTICE_COMMAND_H
#define NODE_NOTICE_COMMAND_H

#include "node/notice/base/child.h"

#define COMMAND_PERIOD_MS 5000
#define COMMAND_LIMIT_MS CHILD_LIMIT_MS

extern const struct source_ops command_ops; /* argument: the command */

#endif
