/* callback - calls the user's function "is there a notice?" at a steady pace.
 * Owns: a thread to ask on (all signals blocked in it), so that a question that does not return
 * stops nobody else. One yes is one notice; after it the callback is not asked again.
 * Never: a thread without a question; a question once callback_stop was called; a write to wake_fd
 * after callback_stop has returned. */
#ifndef NODE_NOTICE_CALLBACK_H
#define NODE_NOTICE_CALLBACK_H

#include "schema/status.h"

#include <stdbool.h>
#include <stdint.h>

struct callback;

/* Asks at once, then every period_ms. wake_fd (an eventfd, borrowed until callback_stop) becomes
 * readable after a yes. ask NULL: *ret_callback is NULL, which all calls here take.
 * E_NOMEM, E_BUSY (no thread). */
enum muster_status callback_start(bool (*ask)(void *arg), void *arg, int64_t period_ms, int wake_fd,
                                  struct callback **ret_callback, struct muster_error *err);
/* True once, after a yes. */
bool callback_take(struct callback *callback);
/* No other thread may be in callback_take. Waits at most limit_ms for a question that is being
 * asked; false: it has not returned, and what it uses is left to it for ever. NULL-safe. */
bool callback_stop(struct callback **callback, int64_t limit_ms);
/* From here on the callback is not called, but callback_take may still be: for an owner that cannot
 * wait until its own threads are gone. The memory that the callback uses is kept for ever.
 * NULL-safe. */
void callback_abandon(struct callback *callback);

#endif
