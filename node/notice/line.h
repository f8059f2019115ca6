/* line - the notice that a person or a script writes: a notice file's first line, a command's
 * output. Pure.
 *
 *   [KIND] [TIME] [final] [anything else]
 *
 * in any order, between blanks. TIME: "+SECONDS" from when it was written, Unix seconds, or a date
 * as 2026-11-21T12:00:00Z; without one the time is unknown. KIND: preempt, terminate (unless
 * named), stop, reboot, time_limit, user, freeze, migrate. final: taking it away does not withdraw
 * it. An empty line is a notice too. */
#ifndef NODE_NOTICE_LINE_H
#define NODE_NOTICE_LINE_H

#include "node/notice/base/source.h"

#define LINE_WORD_MAX 63

enum line_sense {
    LINE_UNDERSTOOD, /* a kind, a time, final, or nothing */
    LINE_WORDS_ONLY, /* a reason without any of these */
    LINE_NO_TIME,    /* a word of it is meant for a time and is none: "+5m", "12:30", "30" alone */
    LINE_NO_TEXT     /* bytes that nobody writes */
};

/* written_unix_ms: what "+SECONDS" counts from. Never fails: what is not understood is text, and
 * the notice stands; the sense says what its writer should hear. ret_word (LINE_WORD_MAX + 1 bytes,
 * may be NULL): what was not understood. */
enum line_sense line_parse(const char *bytes, size_t size, const struct notice_now *now,
                           int64_t written_unix_ms, struct notice_item *ret_item, char *ret_word);
/* The same for people, on what a source stands: "" if there is nothing to say. where: what was
 * read, or "". */
void line_describe(enum line_sense sense, const char *where, const char *word,
                   char ret_text[SOURCE_TEXT_MAX + 1]);

#endif
