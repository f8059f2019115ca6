/* log - the broker's lines on stderr: one line a record, with time and level.
 * Owns: the format (text or JSON), the escaping of what came from outside, the count of lines that
 * were dropped because nobody read them in time.
 * Never: a thread, a buffer between calls, a wait for a reader of stderr. */
#ifndef BROKER_LOG_H
#define BROKER_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void broker_log_format(enum log_format format);
/* Lines above this level are not written. LOG_LEVEL_INFO at first. */
void broker_log_least(enum log_level level);
/* Reads a level such as "warning". False: there is no such level. */
bool broker_log_level_named(const char *name, enum log_level *ret_level);

/* From now on a pipe, terminal or socket that is full costs lines, not time. They are dropped and
 * counted, and their number comes before the next line that can be written. Called once, at the
 * program's start. */
void broker_log_never_waits(void);

/* One write(2) of one line. Bytes outside printable ASCII become \xNN, so that a name sent by a
 * node can neither break a line nor speak to a terminal. */
void broker_log(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The line as it is written, without the final newline; for the above and for tests. Cuts what does
 * not fit; the result is always terminated. */
void broker_log_line(enum log_format format, enum log_level level, long long unix_ms,
                     const char *text, char *line, size_t capacity);

#endif
