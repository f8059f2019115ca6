/* state - what the broker's core remembers, and the questions about it. The rules stand in the
 * folders beside this one. Each knows only those before it:
 *
 *   state/         the structs, one header a machine; facts*.c questions; journal.c events and rows
 *   checkpoints/   which exist, which go
 *   tasks/         queues, leases, workers
 *   rounds/        notices, when to save, the agreement
 *   members/       who is there, launches; settle.c
 *   core.c, dispatch.c, start.c, load.c: what takes each input
 *
 * Memory is taken when a job, node or generation appears and given back when it goes; its count is
 * bounded by CORE_JOBS_MAX, CORE_NODES_MAX and WORLD_SIZE_MAX. */
#ifndef BROKER_CORE_STATE_H
#define BROKER_CORE_STATE_H

#include "broker/core/contract/core.h"
#include "broker/core/state/job.h"
#include "schema/error.h"
#include "schema/rules/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A broken promise of our own: the broker stops and its restart re-reads (crash-only). */
#define MUST(condition)   \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

#define BOOT_UNKNOWN INT64_MIN
#define STEP_MAX ((int64_t)1 << 62) /* sums and differences of two steps stay inside 64 bits */
#define LEFT_MAX_MS ((int64_t)3650 * 24 * 3600 * 1000) /* ten years: a notice's time left */

#define DEPARTED_MAX 4096

struct manifest;
struct manifest_reader;

struct import { /* of a manifest, under way; see import.c */
    char path[PATH_BYTES_MAX + 1];
    char job[JOB_NAME_MAX + 1];     /* as its sender names it */
    char by[BY_MAX + 1];            /* who that is */
    struct manifest_reader *reader; /* of its parts; NULL: none is under way */
    size_t total, have;
    unsigned code; /* what the last one was answered */
    char text[TEXT_MAX + 1];
    uint64_t done;
    /* a large one that is whole, and whose files become rows pass by pass: NULL = none */
    struct manifest *manifest;
    size_t shard, file;      /* the next */
    uint64_t route, request; /* who is answered once they are all there */
};

struct tasks; /* tasks.h */

/* Processes that said LEAVE and are in no list any more: a ring of the newest ones. */
struct departed {
    uint64_t incarnations[DEPARTED_MAX];
    size_t next;
};

struct asleep; /* sleepers.h */

struct core {
    struct tasks *tasks;   /* NULL: nobody has any */
    struct asleep *asleep; /* NULL: nobody is */
    struct import import;
    struct core_options options;
    char events_endpoint[ENDPOINT_MAX + 1];
    char signer[SIGNER_MAX + 1]; /* "": no manifest is signed */
    uint64_t epoch;
    uint64_t database; /* its number, as in record_broker */
    bool older; /* the database is an older copy: shards of what it holds for open may be deleted */
    bool started;
    uint64_t steps; /* inputs that were taken */
    int64_t start_boot_ms;
    int64_t ticked_ms;      /* the loop's clock at its last tick */
    int64_t away_ms;        /* by how much boot time is ahead of it */
    int64_t timers_away_ms; /* ... when the timers were last looked at */
    int64_t gap_boot_ms;    /* when the loop was last back from a gap, */
    unsigned gaps;          /* and how many were nobody's time since it was last steady */
    struct job *jobs;
    size_t jobs_count;
    size_t peers_count;
    struct peer *hash[4096]; /* by incarnation */
    struct departed departed;
    /* of the present step. `now` is the loop's clock: boot time less what the loop was away.
     * Silence and bounds count on it, for nobody could be heard or told meanwhile. Deadlines and
     * the times of rows are in boot time. */
    int64_t now;
    int64_t now_boot;
    int64_t now_unix;
    struct actions *out;
};

/* moves.c */
extern const struct moves generation_moves, peer_moves, round_moves;
void generation_move(struct generation *generation, enum wire_generation_state to);
void peer_move(struct peer *peer, enum wire_node_state to);
void round_move(struct round *round, enum wire_round_state to);

/* journal.c */
struct action *action_add(struct core *core, enum action_kind kind);
char *out_text(struct core *core, const char *text);
char *out_long(struct core *core,
               const char *text); /* longer than TEXT_MAX, and known to be UTF-8 */
char *out_printf(struct core *core, const char *format, ...) __attribute__((format(printf, 2, 3)));
void persist_broker(struct core *core);
void persist_job(struct core *core, struct job *job);
void persist_want(struct core *core, struct job *job); /* if its row does not say it yet */
void persist_generation(struct core *core, const struct job *job);
void persist_peer(struct core *core, const struct peer *peer);
void persist_progress(struct core *core, struct peer *peer);
void persist_notice(struct core *core, const struct job *job, const struct notice *notice);
void persist_round(struct core *core, const struct job *job, const struct round *round);
void persist_participant(struct core *core, const struct job *job, const struct round *round,
                         const struct participant *part);
void persist_checkpoint(struct core *core, const struct record_checkpoint *row);
struct wire_event event_make(const struct job *job, enum wire_event_kind kind);
/* Gives the event the job's next seq, journals and publishes it. Strings are copied. */
void event_emit(struct core *core, struct job *job, struct wire_event event,
                int64_t deadline_boot_ms);
struct wire_msg *send_to(struct core *core, uint64_t route, const char *job, enum wire_type type);
void send_ack(struct core *core, uint64_t route, const char *job, uint64_t request, unsigned code,
              const char *text, uint64_t value);

/* departed.c */
void departed_add(struct departed *departed, uint64_t incarnation);
bool departed_holds(const struct departed *departed, uint64_t incarnation);

/* lineage.c */
void lineage_begin(const struct core *core, struct job *job); /* this start of the broker */
/* Are these the events that the job has up to `seq`, as that start of the broker told them? */
bool lineage_holds(const struct job *job, uint64_t start_id, uint64_t seq);
void lineage_read(struct lineage *ret_lineage, const char *text);

/* jobs.c, free.c */
struct job *job_find(const struct core *core, const char *name);
/* NULL: it sleeps, or as many are in memory as may be. It has no row before one is persisted. */
struct job *job_create(struct core *core, const char *name);
/* A launch of it has not ended, or hosts wait to form one. */
bool job_runs(const struct job *job);
/* NULL: this job (NULL: a new one) may run for the key. As many of a key's may begin as there is
 * still room for, so who takes all that it can leaves half to the others. A key for all jobs has no
 * such bound. */
const char *jobs_refusal(const struct core *core, const struct job *job, const char *key_jobs);
/* The same for places that stay taken when their user is gone, as all are in time: a key has one of
 * KEY_SHARE_LEAST in any case. Beyond its share each new one takes the place of one of its own. */
#define KEY_SHARE_LEAST 16
bool share_is_left(size_t own, size_t all, size_t most);
bool peers_have_room(const struct core *core, const char *key_jobs);
void job_drop(struct core *core, struct job *job); /* out of memory */
struct peer *peer_find(const struct core *core, uint64_t incarnation);
struct peer *peer_create(struct core *core, struct job *job, uint64_t incarnation);
void peers_forget(struct core *core, struct job *job); /* but those that are kept */
bool peer_is_live(const struct peer *peer);            /* joined and neither left nor lost */
struct peer *peer_of_rank(const struct job *job, int64_t rank); /* who holds it now, or NULL */
bool peer_has_finished(const struct peer *peer); /* it left, with nothing left to do */
bool step_ok(int64_t step);                      /* a count of steps that may come from outside */
void job_timer(struct job *job, int64_t at_boot_ms);
void job_free(struct core *core, struct job *job);
void round_free(struct round *round);
void notices_free(struct job *job);
void policies_free(struct job *job);

/* clock.c */
int64_t core_clock_ms(const struct core *core, int64_t boot_ms);        /* on the loop's clock */
int64_t core_passed_ms(const struct core *core, int64_t since_boot_ms); /* to the last tick */

/* sleepers.c: the jobs that have ended and left memory. */
#define TOO_MANY_JOBS                                                                              \
    "this broker leads as many jobs as it can; `muster status` lists those that run: end one, or " \
    "start another musterd with its own --db and --listen for further ones"
#define TOO_MANY_OF_KEY                                                                       \
    "this key has used up its share of running jobs: end one of them (`muster status` lists " \
    "those that run)"
#define TOO_MANY_PROCESSES_OF_KEY                                                              \
    "this key has used up its share of processes: end one of its jobs (`muster status` lists " \
    "those that run)"
#define TOO_MANY_KEPT_OF_KEY                                                                     \
    "this key has used up its share of the ended jobs that this broker keeps, and each of them " \
    "is pinned: unpin (`muster unpin`) or forget (`muster forget`) one of them"
bool asleep_holds(const struct core *core, const char *name);
/* Else those that its key has pinned use up its share of the ended jobs that are kept. */
bool asleep_has_room(const struct core *core, const char *key_jobs);
/* Its rows go. by: as in record_forget. */
void asleep_forget(struct core *core, const char *name, const char *by);
void asleep_add(struct core *core, const struct record_job_asleep *row);
void asleep_remove(struct core *core, const char *name);
void asleep_free(struct core *core);
bool job_has_row(const struct job *job); /* else nothing of it was ever persisted */

/* facts.c */
bool generation_began_is_known(const struct job *job); /* from which checkpoint */
bool generation_is_over(const struct job *job);        /* it ends, or has ended */
/* The launch of this rank has ended before it came. age_ms: of its process, 0 = not known. */
bool generation_rank_is_late(const struct core *core, const struct job *job, uint64_t rank,
                             uint64_t age_ms);
size_t generation_live_count(const struct job *job);
bool generation_rank_finished(const struct job *job, uint64_t rank); /* it had nothing left to do */
/* NULL: none; else of the lowest rank. */
const struct peer *servers_missing(const struct core *core, const struct job *job);
bool servers_is_gone(const struct core *core, const struct peer *peer);
bool servers_is_newest(const struct job *job, size_t index); /* of its rank, of job->peers */

/* facts_saves.c */
struct round *round_open_one(struct job *job); /* freezing or decided, NULL if none */
/* The same, or a termination's save that is written behind training: no other is opened beside the
 * job's last. */
struct round *round_awaited(struct job *job);
struct round *round_find(struct job *job, uint64_t number);
struct participant *round_part(struct round *round, const struct peer *peer);
bool round_is_committed(const struct job *job, int64_t step);
bool round_is_being_written(const struct job *job, int64_t step);
const struct checkpoint *registry_newest(const struct job *job);
/* It has its manifest and its final name, as readers and a repair-free restart need it. */
const struct checkpoint *registry_newest_whole(const struct job *job);
struct checkpoint *registry_find(struct job *job, uint64_t round); /* committed; NULL: none such */
bool registry_has(const struct job *job, uint64_t round);
bool registry_has_step(const struct job *job, int64_t step);
/* A count of steps done + this is the step as the job's program counts it. False: no checkpoint has
 * its name, which tells it. */
bool registry_step_offset(const struct job *job, int64_t *ret_offset);
/* This count of steps done as the job's program counts: texts and logs tell a step by the number
 * that the checkpoints' directories have. */
long long registry_shown(const struct job *job, int64_t step);

/* outcomes.c */
struct outcome round_outcome(struct job *job, uint64_t number);
void round_remember(struct job *job, const struct round *round);
void round_imported(struct job *job, const struct outcome *outcome); /* whatever it was here */
/* Of the rounds with greater numbers each that has ended is among the outcomes. */
uint64_t round_known_above(const struct job *job);
/* In this launch, as far as its newest rounds tell: also one that was deleted since. */
bool round_was_committed(const struct job *job, int64_t step);

/* ending.c */
void round_want_nothing(struct job *job);
void grace_forget(struct job *job);
void generation_set_first_error(struct core *core, struct job *job, int64_t rank, int64_t code,
                                const char *text);
void generation_ending(struct core *core, struct job *job, unsigned status, const char *text);

/* The answer of a request's handler. */
struct answer {
    unsigned code;
    const char *text; /* "" or in the actions' arena or static */
    uint64_t value;
};

#endif
