/* hold - a pin on one checkpoint for as long as somebody reads it. A thread renews its lease, so a
 * reader that dies holds the checkpoint no longer than the lease.
 * Owns: a connection to the broker, the thread (all signals blocked), the pin's id.
 * Never: touches the checkpoint's files. */
#ifndef CLIENT_HOLD_H
#define CLIENT_HOLD_H

#include "schema/status.h"

#include <stdbool.h>
#include <stdint.h>

struct hold;

struct hold_wish {
    const char *broker;
    const char *job;
    const char *who; /* the id begins with it: "restore" */
    uint64_t checkpoint;
    int64_t lease_ms;              /* above 0 */
    int timeout_ms;                /* of the first answer */
    bool (*over)(const void *arg); /* NULL = none; breaks off the wait for it: query_link.h */
    const void *over_arg;          /* borrowed until then */
};

/* Blocks until the broker has taken the pin. Copies the wish. Statuses of the order: E_NOT_FOUND:
 * that checkpoint is gone, E_BROKER. */
enum muster_status hold_begin(const struct hold_wish *wish, struct hold **ret_hold,
                              struct muster_error *err);
/* Takes the pin back; a broker that does not answer is waited for 4 s at most. NULL-safe, nulls. */
void hold_end(struct hold **hold);

#endif
