/* file - a notice that is a file: the cheapest hook for a preStop, a prolog, a shim, an
 * administrator. It is there: a notice, see line.h for what it may say. It is taken away:
 * withdrawn. It may be there before, may be replaced by rename, may lie on a file system that tells
 * nobody: its directory is watched, and it is looked at each second. Runs on a thread of its own,
 * for a file server that hangs. */
#ifndef NODE_NOTICE_FILE_H
#define NODE_NOTICE_FILE_H

#include "node/notice/base/source.h"

#define FILE_PERIOD_MS 1000

extern const struct source_ops file_ops; /* argument: the path */

#endif
