/* line - the notice that a person or a script writes: a notice file's first line, a command's output. Pure.
 *
 *   [KIND] [TIME] [final] [anything else]
 *
 * in any order, between blanks. TIME: "+SECONDS" from when it was written, Unix seconds, or a date as
 * 2026-11-21T12:00:00Z; without one the time is unknown. KIND: preempt, terminate (unless named), stop, reboot, time_limit,
 * user, freeze, migrate. final: taking it away does not withdraw it. An empty line is a notice too. */
#ifndef NODE_NOTICE_LINE_H
#define NODE_NOTICE_LINE_H

#include "node/notice/source.h"

/* written_unix_ms: what "+SECONDS" counts from. Never fails: what is not understood is text. */
void line_parse(const char *bytes, size_t size, const struct notice_now *now,
                int64_t written_unix_ms, struct notice_item *ret_item);

#endif
