/* checkpoints - which checkpoints exist, which one a launch resumes from, which are deleted, and
 * which were found on disk. */
#ifndef BROKER_CORE_CHECKPOINTS_H
#define BROKER_CORE_CHECKPOINTS_H

#include "broker/core/state/state.h"

/* import.c */
/* False: the answer is sent later, see import_tick. */
bool import_take(struct core *core, const struct input *in, struct answer *ret_answer);
void import_tick(struct core *core); /* the next files of a large one */
void import_load_round(struct job *job, const struct record_round *row);
bool import_is_due(const struct core *core);
void import_free(struct core *core);

/* keep.c, pins.c */
void keep_load(struct core *core,
               const struct record *row); /* POLICY, CHECKPOINT that is deleting */
void keep_start(struct core *core, struct job *job);
void keep_tick(struct core *core, struct job *job);
void keep_settle(struct core *core, struct job *job); /* decides what is deleted */
/* All have done their steps, as the chief said: the newest may be deleted, too. */
bool keep_is_over(const struct job *job);
void keep_launched(struct core *core, struct job *job); /* all have restored */
struct answer keep_policies_take(struct core *core, struct peer *peer,
                                 const struct wire_policies *m);
struct answer keep_sweep(struct core *core, struct peer *peer, const struct wire_sweep *m);
struct answer keep_drop(struct core *core, struct job *job, const struct wire_drop *m);
struct answer keep_deleted(struct core *core, struct peer *peer, const struct wire_deleted *m);
struct answer pins_take(struct core *core, struct job *job, const struct wire_pin *m);
struct answer pins_unpin(struct core *core, struct job *job, const struct wire_unpin *m);
void pins_load(struct core *core, const struct record_pin *row);

/* registry.c */
void registry_drop(struct job *job, uint64_t round); /* out of memory, not of the database */
/* The checkpoint that a process that joins now is to restore: the launch's choice; for an observer,
 * once that is deleted, the newest. */
const struct checkpoint *registry_resume_of(struct job *job, struct peer *peer);
/* An observer whose launch's choice was deleted, and there is nothing else to read: it begins from
 * nothing. */
bool registry_lets_begin(const struct job *job, const struct peer *peer);
void registry_add(struct job *job, const struct record_checkpoint *row);
/* A committed one, whether it counts or not. True: it counts. */
bool registry_take(struct job *job, const struct record_checkpoint *row);
void registry_load_launch(struct job *job, const struct record_launch *row);
/* That launch takes steps: checkpoints that therefore no longer count leave the list. */
void registry_launched(struct core *core, struct job *job, uint64_t generation, int64_t began_step);
/* given_up.c: what does not count is to be deleted some time. */
void given_up_add(struct job *job, const struct record_checkpoint *row); /* copies it */
void given_up_forget(struct job *job, uint64_t round);
void registry_announce_resume(struct core *core, struct job *job);
struct answer registry_manifest_done(struct core *core, struct peer *peer,
                                     const struct wire_manifest_done *m);

#endif
