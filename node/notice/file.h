/* file - a notice that is a file: the cheapest hook for a preStop, a prolog, a shim, an
 * administrator. If the file exists, there is a notice; line.h says what the file may contain. If
 * the file is removed, the notice is withdrawn. The file may exist from the start, may be replaced
 * by rename, or may lie on a file system that reports no changes. So its directory is watched, and
 * the file is looked at each second. Runs on a thread of its own, for a file server that hangs. */
#ifndef NODE_NOTICE_FILE_H
#define NODE_NOTICE_FILE_H

#include "node/notice/base/source.h"

#define FILE_PERIOD_MS 1000

extern const struct source_ops file_ops; /* argument: the path */

#endif
