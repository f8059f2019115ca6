/* keep - what a job's policies mean in the broker's core: which checkpoints are deleted, and who
 * holds one.
 *
 *   keep.c         from the policies' wish to the deletion, which the chief carries out
 *   given_up.c     what a launch left behind that went back
 *   pins.c         leases on checkpoints
 *
 * A deletion: decided (row: deleting) -> DELETE to the lowest live rank, repeated -> DELETED (row:
 * deleted). Its decision is never taken back, so either side may be restarted in between. */
#ifndef BROKER_CORE_KEEP_H
#define BROKER_CORE_KEEP_H

#include "broker/core/checkpoints/checkpoints.h"

/* Decides that it is deleted; *row may be the registry's own, which forgets it. */
void keep_delete(struct core *core, struct job *job, const struct record_checkpoint *row);
bool keep_is_being_restored(const struct job *job, uint64_t checkpoint);
/* Deletes the checkpoints that are due. closing: all ranks are done. */
void given_up_consider(struct core *core, struct job *job, bool closing);
/* The policies of this launch; NULL: it has given none. */
const struct job_policies *keep_policies_of(const struct job *job);
bool pins_hold(const struct job *job, uint64_t checkpoint);
/* Names a holder of it; a holder without a lease is named before one with a lease. NULL: nobody
 * holds it. */
const char *pins_told(struct core *core, const struct job *job, uint64_t checkpoint);
void pins_forget(struct core *core, struct job *job, uint64_t checkpoint); /* it is deleted */
void pins_tick(struct core *core, struct job *job);
void pins_start(struct core *core, struct job *job);

#endif
