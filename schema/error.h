/* error - fill a struct muster_error in one call. */
#ifndef SCHEMA_ERROR_H
#define SCHEMA_ERROR_H

#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills *err (may be NULL) with status and a formatted line; rank -1, code 0, step -1, task 0.
 * Returns status, so that a caller can write `return error_set(err, MUSTER_E_IO, "...");`. */
enum muster_status error_set(struct muster_error *err, enum muster_status status,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same with the errno value `code`, which is kept in err->code; the text is not extended. */
enum muster_status error_set_code(struct muster_error *err, enum muster_status status, int code,
                                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Replaces control bytes by '?': they come from outside, and would command the terminal that shows
 * the text. */
void error_clean(char *text);

#ifdef __clang_analyzer__ /* which cannot see into a variadic function that it returns `status` */
#define error_set(err, status, ...) ((error_set)(err, status, __VA_ARGS__), (status))
#define error_set_code(err, status, code, ...) \
    ((error_set_code)(err, status, code, __VA_ARGS__), (status))
#endif

/* For a call whose parts may fail while the call succeeds: `to` (NULL-safe) stays untouched on
 * success.
 */
static inline enum muster_status error_pass(struct muster_error *to, enum muster_status status,
                                            const struct muster_error *from)
{
    if (status != MUSTER_OK && to != NULL)
        *to = *from;
    return status;
}

/* Does the text begin with "rank N", for this one? Most texts that tell of a rank do. */
bool error_names_rank(const char *text, int64_t rank);

/* The words of a rank on a damaged checkpoint, and of the broker if there is no older one. By these
 * words the tool knows it from one that is whole and does not fit the program. */
#define ERROR_SAYS_DAMAGED "`muster verify` names every damaged file"
#define ERROR_SAYS_NONE_OLDER "no older checkpoint is left to fall back to"

/* The reason of an abort begins so if the notice left less time than a freeze may take. */
#define ERROR_SAYS_NOTICE_LEFT "the notice left "

#endif
