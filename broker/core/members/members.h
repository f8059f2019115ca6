/* members - processes that join, restore, train and leave; a launch from its opening to its end;
 * what follows from all that. */
#ifndef BROKER_CORE_MEMBERS_H
#define BROKER_CORE_MEMBERS_H

#include "broker/core/rounds/rounds.h"

/* hello.c */
void hello_take(struct core *core, const struct input *in);
void hello_snapshot(struct core *core, struct peer *peer);

/* roster.c */
unsigned roster_phase_known(uint64_t phase);
void roster_preempted(struct core *core, struct peer *peer); /* the peer was told to leave */
struct answer roster_leave(struct core *core, struct peer *peer, const struct wire_leave *leave);
struct answer roster_error(struct core *core, struct peer *peer, const struct wire_error *error);
void roster_lost(struct core *core, struct peer *peer, const char *why);
void roster_heartbeat(struct core *core, struct peer *peer, const struct wire_heartbeat *beat);
void roster_tick(struct core *core, struct job *job);

/* gone.c. The value is 1 if the death is being looked into, and 0 if no such process lives. */
struct answer gone_take(struct core *core, struct job *job, const struct input *in);
void gone_heard(struct peer *peer); /* any message of it */
void gone_tick(struct core *core, struct peer *peer);

/* generation.c */
void generation_open(struct core *core, struct job *job, const struct wire_hello *hello);
/* A launch that this database, an older copy, does not know: it is over, and its number used. */
void generation_ahead(struct core *core, struct job *job, uint64_t generation,
                      const struct wire_hello *hello, const char *text);
/* An error of a peer that nobody is left to tell of: the event, the first error, and the end. */
void generation_rank_failed(struct core *core, struct job *job, enum wire_event_kind kind,
                            uint64_t rank, const char *text);
void generation_end(struct core *core, struct job *job);         /* nobody is left */
void generation_check_ended(struct core *core, struct job *job); /* all gone? */
void generation_check_started(struct core *core, struct job *job);
void generation_tick(struct core *core, struct job *job);

/* hosts.c */
/* MUSTER_OK, or why this host cannot take part, whatever the others say. job: NULL = not known. */
struct answer hosts_refusal(struct core *core, const struct input *in, const struct job *job);
/* A host that has ranks for the job's next launch, or is in the one that hosts formed last. */
struct answer hosts_take(struct core *core, struct job *job, const struct input *in);
void hosts_load(struct core *core, const struct record_host *row);
/* After a start each of its rows counts as heard. */
void hosts_take_for_heard(struct core *core, struct job *job);
void hosts_tick(struct core *core, struct job *job);

/* restore.c */
struct answer restore_take_done(struct core *core, struct peer *peer,
                                const struct wire_restored *m);
struct answer restore_take_failed(struct core *core, struct peer *peer,
                                  const struct wire_restore_failed *m);

/* servers.c */
/* Before the peers of a launch are forgotten. */
void servers_keep(struct core *core, struct job *job);
void servers_kept(struct core *core, struct job *job); /* in the launch that follows */

/* observer.c */
void observer_lost(struct core *core, struct peer *peer, const char *why);
void observer_failed(struct core *core, struct peer *peer, int64_t step, const char *why);
struct answer observer_restore_failed(struct core *core, struct peer *peer, int64_t step,
                                      const char *why);

/* asleep.c */
void asleep_tick(struct core *core);
/* The key began this job. If its share of the ended jobs that are kept is used up, one of them is
 * forgotten, and none of another key. */
void asleep_make_room(struct core *core, const struct job *begun, const char *key_jobs);
struct answer asleep_take(struct core *core, struct job *job, const char *by); /* FORGET */

/* settle.c: derives what follows from the job's facts. */
void job_settle(struct core *core, struct job *job);

#endif
