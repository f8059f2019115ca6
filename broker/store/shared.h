/* shared - one database for several brokers, one of which is active. The changes of each of its
 * transactions go into a log in PostgreSQL before they count (fenced_log.h). The next broker makes
 * its own copy of the database from that log.
 * Owns: the lease, the copy at a take-over, the snapshots that keep the log short.
 * Never: decides anything. Blocks as fenced_log.h says. One thread asks. From shared_take to the
 * store's first question, that is a thread of this module's own, which keeps the lease while the
 * start works. */
#ifndef BROKER_STORE_SHARED_H
#define BROKER_STORE_SHARED_H

#include "schema/limits.h"
#include "schema/status.h"

#include <stdbool.h>
#include <stdint.h>

#define SHARED_LEASE_MS 6000 /* by the clock of the shared database */
#define SHARED_RENEW_MS 2000
#define SHARED_MARGIN_MS 1000 /* before its end by our clock nothing more is decided */
#define SHARED_LOOK_MS 300    /* how often a standby asks */
#define SHARED_FIRST_MS 1500  /* a standby waits so long once the database is back */

struct shared;

struct shared_options {
    const char *uri;   /* a PostgreSQL address */
    const char *path;  /* of this broker's copy */
    const char *owner; /* how the others name it */
    bool known;        /* this address was right before, so a wrong password may be mended */
    const char *id;    /* shared_id of the program before this one, or NULL */
    /* The take-over goes on. Called from shared_take to the store's first question, by the thread
     * that asks; one that hangs on its disk for 120 s is not called any more. May end the process,
     * behind shared_give_up. NULL: nobody asks. */
    void (*alive_fn)(void *arg);
    void *arg;
};

/* Copies the options' texts. */
enum muster_status shared_open(const struct shared_options *options, struct shared **ret_shared,
                               struct muster_error *err);
/* Gives up the lease, if it was taken and the store was closed properly. NULL-safe, nulls. */
void shared_close(struct shared **shared);

/* Takes the lease and makes the copy. MUSTER_E_LOCKED: another broker is active. MUSTER_E_STORAGE:
 * the shared database cannot be reached. After both: ask again. MUSTER_E_ARGUMENT: the file at path
 * holds other records, and stays as it is; or the address is wrong. */
enum muster_status shared_take(struct shared *shared, struct muster_error *err);

/* After it returned MUSTER_OK: nobody has written records there yet. */
bool shared_is_empty(const struct shared *shared);

/* MUSTER_E_ARGUMENT: what is at path is a copy of a shared database. */
enum muster_status shared_refuse_copy(const char *path, struct muster_error *err);

/* After it returned MUSTER_E_LOCKED: the records there are newer than this musterd knows. */
bool shared_is_older(const struct shared *shared);

/* Within alive_fn: gives back the lease, for a process that ends now. Another broker need not wait,
 * and nothing of the take-over counts. */
void shared_give_up(struct shared *shared);

/* Says what shared_take did with a file that could not be read. Borrowed; NULL: no such file. */
const char *shared_aside(const struct shared *shared);

/* Which shared database this broker was with; "": it has not seen one. Borrowed. */
const char *shared_id(const struct shared *shared);

/* "DATABASE on HOST". Borrowed. */
const char *shared_name(const struct shared *shared);

#endif
