/* agent_tell - the user's log and on_error, called on a thread of their own: one that does not
 * return stops no heartbeat.
 * Owns: a bounded queue and its thread, which is started only where there is somebody to call.
 * Never: a lock held during a callback; a callback after tell_stop has returned. on_error comes
 * before every line of the log that waits; when the queue is full, further lines are lost. */
#ifndef NODE_AGENT_TELL_H
#define NODE_AGENT_TELL_H

#include "schema/status.h"

#include <stdbool.h>
#include <stdint.h>

#define TELL_LINES_MAX 256

struct tell;

struct tell_hooks { /* both may be NULL */
    void (*on_error)(const struct muster_error *error, void *arg);
    void (*log)(int level, const char *text, void *arg);
    void *arg;
};

/* *ret_tell is NULL when both hooks are; all calls here take that. E_NOMEM, E_BUSY (no thread). */
enum muster_status tell_start(const struct tell_hooks *hooks, struct tell **ret_tell,
                              struct muster_error *err);
/* Neither waits; the text is copied. */
void tell_log(struct tell *tell, int level, const char *text);
void tell_error(struct tell *tell, const struct muster_error *error);
/* Waits until the calls that wait were made, for at most limit_ms: before the process ends. */
void tell_drain(struct tell *tell, int64_t limit_ms);
/* Makes the calls that wait, for at most limit_ms. False: a callback has not returned, and what it
 * uses is left to it for ever. NULL-safe. */
bool tell_stop(struct tell **tell, int64_t limit_ms);

#endif
