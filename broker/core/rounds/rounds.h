/* rounds - who is to be terminated and until when, when to save, and the agreement on the step. */
#ifndef BROKER_CORE_ROUNDS_H
#define BROKER_CORE_ROUNDS_H

#include "broker/core/checkpoints/checkpoints.h"

/* grace.c */
/* Opens the termination's round, or has the open one join, when a notice's plan says now. */
void grace_consider(struct core *core, struct job *job);
bool grace_is_due(const struct core *core, struct job *job); /* else it set the timer */
/* Does a notice whose moment has come join this round of another cause? Else it sets the timer. */
bool grace_takes(const struct core *core, struct job *job, const struct round *round);
bool grace_has_trained(const struct job *job); /* as far as its ranks told: in this launch */
int64_t grace_least_ms(const struct core *core, struct job *job); /* of a freeze and a save */
int64_t grace_step_p95(struct job *job); /* 0 = never measured; remembers it for the next launch */
void grace_save_measured(struct job *job, const struct round *round);

/* notice.c */
struct answer notice_take(struct core *core, struct job *job, const struct wire_notice *m,
                          int64_t rank, uint64_t incarnation);
uint64_t notice_round(const struct job *job, const char *id); /* opened for it; 0: none yet */
struct answer notice_cancel(struct core *core, struct job *job, const char *id,
                            uint64_t incarnation);
void notices_let_pass(struct core *core, struct job *job);
void notices_settle(struct core *core, struct job *job); /* of ranks that have finished */
bool notice_is_of_evaluator(const struct core *core, uint64_t incarnation);
bool notice_make_room(struct job *job, bool of_a_tool); /* for one more; false: there is none */
void notice_facts(struct core *core, struct peer *peer, const struct wire_hello *hello);
int64_t notice_deadline(const struct job *job); /* earliest of the active, 0 = none known */
bool notice_any_active(const struct job *job);
/* Says by ALIVE which end is announced, when it is, and when the save for it is planned. */
void notice_announce(const struct core *core, const struct job *job, struct wire_alive *alive);
bool notice_counts(
    const struct notice *notice); /* active, and it ends a process that the job needs */
void notices_taken_back(struct core *core, const struct peer *peer, struct wire_snapshot *s);
void notices_join(struct core *core, struct job *job, struct round *round);
void notices_frozen_for(struct core *core, struct job *job, const struct round *round);
void notices_served(struct core *core, struct job *job, uint64_t round);

/* save_policy.c: rounds that the broker opens by time, cost and history. */
int64_t save_policy_between_ms(const struct job *job,
                               int64_t now_unix_ms); /* how often it is interrupted */
void save_policy_tick(struct core *core, struct job *job);
void save_policy_decided(struct core *core,
                         struct job *job); /* a save begins, whatever its cause */
void save_policy_launched(struct core *core, struct job *job); /* all have restored */
void save_policy_start(struct core *core, struct job *job);
void save_policy_ended(struct job *job); /* the generation is over: it is history now */
void save_policy_load(struct core *core, const struct record_history *row);
void save_policy_load_round(struct job *job, const struct record_round *row);
struct answer save_policy_wish(struct core *core, struct peer *peer, int64_t step);

/* round.c, round_decide.c */
void round_want(struct job *job, enum wire_cause cause);
void round_want_owed(struct job *job); /* instead of whatever is wanted */
/* Behind an attempt that was aborted; not instead of what was promised to somebody. */
void round_want_again(struct job *job, struct want want, uint64_t attempts_before);
void round_try_open(struct core *core, struct job *job);
void round_join_termination(struct core *core, struct job *job, struct round *round);
void round_settle(struct core *core, struct job *job);
void round_report(struct core *core, struct peer *peer, const struct wire_report *m);
struct answer round_save_now(struct core *core, struct job *job, const char *id);
void round_decide(struct core *core, struct job *job, struct round *round, int64_t step);
/* The event of its freeze or its decision, with its members. */
void round_emit(struct core *core, struct job *job, struct round *round, enum wire_event_kind kind);
void round_freeze_over(struct core *core, struct job *job, struct round *round); /* its time is */
void round_margin_reached(struct core *core, struct job *job);
void round_tick(struct core *core, struct job *job);
struct round *round_new(struct core *core, struct job *job, enum wire_cause cause,
                        uint64_t attempt);
int64_t round_way_ms(const struct round *round);
void round_way_left(const struct core *core, struct round *round); /* it may be shorter now */
uint64_t round_nonce(const struct round *round);                   /* of its members */

void round_add_members(struct job *job, struct round *round);
/* sharded: a rank without which there is no checkpoint, with the reason, or -1. */
int64_t round_missing_rank(const struct job *job, char *text, size_t size);

/* policy.c */
struct answer policy_save_at(struct core *core, struct peer *peer, int64_t step);
void policy_pending(struct core *core, struct job *job);

/* save.c */
bool save_is_needed(const struct job *job, const struct round *round,
                    const struct participant *part);
void save_settle(struct core *core, struct job *job); /* rounds whose members are gone end */
/* A rank tells how far its save came: as long as that grows, it is waited for. */
void save_goes_on(struct core *core, struct peer *peer, uint64_t round, uint64_t bytes);
struct answer save_at_step(struct core *core, struct peer *peer, const struct wire_at_step *m);
struct answer save_files(struct core *core, struct peer *peer, const struct wire_files *m);
struct answer save_saved(struct core *core, struct peer *peer, const struct wire_saved *m);
struct answer save_failed(struct core *core, struct peer *peer, const struct wire_save_failed *m);
struct answer save_past(struct core *core, struct peer *peer, const struct wire_past *m);
enum abort_retry {
    ABORT_FINAL,
    ABORT_OVER,  /* its generation is over: nothing follows, and nobody is left to be told more */
    ABORT_LATER, /* the caller wants the cause again; nothing is opened now */
    ABORT_RETRY,
    ABORT_RETRY_ABORTED_STEPS, /* the next freeze breaks off steps: a member is gone */
};
/* Ends the round; if `retry` allows, the cause has attempts left and the time fits, the next opens.
 * Returns whether another round follows. */
void round_abort(struct core *core, struct job *job, struct round *round, int64_t culprit_rank,
                 unsigned code, const char *reason, enum abort_retry retry);
void round_unchanged(struct core *core, struct job *job, struct round *round, int64_t step);
void round_not_saved(struct core *core, struct job *job, uint64_t round, int64_t rank,
                     unsigned code, const char *text);
void save_tick(struct core *core, struct job *job, struct round *round);

#endif
