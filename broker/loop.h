/* loop - receive all, decide, write once, send all.
 * Owns: the order of those four, the batch that could not be written yet, the counters of what
 * could not be understood. It knows the order of work. Only the core knows what a message means.
 * Invariants: nothing that the core produced leaves before the transaction of its batch was
 * committed, except hints. A batch is written whole or not at all. The core is never rolled back */
#ifndef BROKER_LOOP_H
#define BROKER_LOOP_H

#include "broker/bus.h"
#include "broker/core/contract/core.h"
#include "broker/store/store.h"

struct loop;

struct loop_counters {
    uint64_t malformed;
    uint64_t version;    /* another protocol version */
    uint64_t unexpected; /* of a type that only a broker sends */
    uint64_t denied;     /* that their sender's key may not send */
    uint64_t refused;    /* answered MUSTER_E_STORAGE */
    uint64_t share;      /* their key had its share of the disk today */
    uint64_t busy;       /* dropped: their key sends more than it gets turns for */
    uint64_t passes;
    uint64_t pass_longest_ms; /* without its wait */
};

/* Borrows all three until loop_destroy. signal_fd: a signalfd of the signals that mean "stop", or
 * -1. Returns NULL without memory. */
struct loop *loop_create(struct store *store, struct bus *bus, struct core *core, int signal_fd);
void loop_destroy(struct loop **loop);
/* From now on the loop writes these metrics when they are due. Borrows them until loop_destroy. */
struct metrics;
void loop_feeds(struct loop *loop, struct metrics *metrics);

/* Loads the core from the store and commits its start. Any failure: the broker cannot start. */
enum muster_status loop_start(struct loop *loop, struct muster_error *err);

/* One pass: waits at most timeout_ms (less if a timer is due before), then does what there is.
 * *ret_stop is set to true once a signal came. A failure is final: the process must exit without
 * closing the store, and its next start reads what was committed. */
enum muster_status loop_pass(struct loop *loop, int64_t timeout_ms, bool *ret_stop,
                             struct muster_error *err);

/* Passes until a signal comes or a pass fails; *ret_stop: a signal came, whatever the status is. */
enum muster_status loop_run(struct loop *loop, bool *ret_stop, struct muster_error *err);

const struct loop_counters *loop_counters(const struct loop *loop);

#endif
