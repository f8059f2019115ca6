/* command - a command that is asked: /bin/sh -c COMMAND, each period, in a process group of its own.
 * Exit code 0 and nothing on stdout: no notice. Exit code 0 and a line: a notice, see line.h. Anything else: it
 * does not work; nothing changes. Killed with its group after COMMAND_LIMIT_MS.
 * Its exit code is not taken from waitpid, which the host may have done before. */
#ifndef NODE_NOTICE_COMMAND_H
#define NODE_NOTICE_COMMAND_H

#include "node/notice/source.h"

#define COMMAND_PERIOD_MS 5000
#define COMMAND_LIMIT_MS 10000
#define COMMAND_OUTPUT_MAX 4096

extern const struct source_ops command_ops; /* argument: the command */

#endif
