/* state - what the broker's core remembers, and who of its files does what.
 *
 *   core.c      create, dispatch, timers              journal.c   events and rows as actions
 *   settle.c    what follows from the facts, whoever changed them
 *   load.c      from the rows of the database         save.c      from the decision to the commit
 *   hello.c     who comes: HELLO, WELCOME, snapshots  generation.c  opening, starting, ending
 *   roster.c    who is there: LEAVE, loss, errors     policy.c      saves that all ranks ask for alike
 *   round.c     one agreement, from cause to decision
 *   registry.c  checkpoints and the resume choice     notice.c    who will be terminated, until when
 *   asleep.c    jobs that have ended and left memory
 *   bystander.c  ps and evaluators, for whom nobody waits
 *   plan.c      when to freeze, from numbers    grace.c     the same for this job and its notices
 *   tasks*.c   queues of tasks and their workers, see tasks.h
 *   keep.c, pins.c, save_policy.c   the job's policies, see keep.h    import.c  checkpoints found on disk
 *
 * Memory is taken when a job, node or generation appears and given back when it goes; its count is
 * bounded by CORE_JOBS_MAX, CORE_NODES_MAX and WORLD_SIZE_MAX. */
#ifndef BROKER_CORE_STATE_H
#define BROKER_CORE_STATE_H

#include "broker/core/checkpoints/keep_state.h"
#include "broker/core/core.h"
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
#define OUTCOMES_MAX \
    CORE_OUTCOMES_MAX /* rounds whose outcome a returning node can be told without the database */

struct job;

enum gone_state { GONE_NONE, GONE_TOLD, GONE_PINGED };

struct peer { /* one incarnation of the newest generation */
    struct job *job;
    uint64_t incarnation;
    enum wire_role role;
    uint64_t rank;
    char host[HOST_MAX + 1];
    uint64_t pid;
    enum wire_node_state state;
    bool failed; /* told of an own failure: takes part in no further round */
    bool mapped; /* said HELLO to this broker start */
    uint64_t route;
    uint64_t last_request;
    unsigned last_code;
    uint64_t last_value;
    enum wire_leave_why leave_why;
    int64_t exit_code;
    int64_t joined_unix_ms;
    int64_t ended_unix_ms;
    /* progress */
    int64_t begun;
    int64_t done;
    unsigned phase;
    uint64_t phase_ms;
    uint64_t saving_bytes; /* as its last heartbeat has them */
    uint64_t step_p95_ms;
    uint64_t applied_seq;
    uint64_t named_round; /* the round that its last HELLO spoke of */
    uint64_t told_resume; /* a bystander: what it was told to restore */
    bool newcomer;        /* its first HELLO was said to this start */
    bool reads_any;       /* a bystander of before this start: what it was told is in no row */
    int64_t heard_boot_ms;
    int64_t heard_unix_ms;
    int64_t advanced_boot_ms; /* when begun last changed, or its save came on */
    int64_t told_boot_ms;     /* when it told begun by a heartbeat, 0 = not yet */
    bool stuck_said;
    int64_t pinged_boot_ms; /* 0 = no ping without an answer since */
    bool progress_dirty;
    char sources[SOURCES_BYTES_MAX + 1]; /* for show alone */
    int64_t repeat_boot_ms;              /* next unicast repeat */
    int64_t repeat_every_ms;
    bool repeated; /* since the newest event: its acknowledgement says nothing of the fan-out */
    bool left_out; /* missed a freeze: not a member of the next round (replicated) */
    bool missed_freeze; /* one of this start of the broker */
    bool kept;          /* a launch that is being opened takes it over (servers.c) */
    /* its supervisor says that it ended (gone.c) */
    enum gone_state gone_state;
    unsigned gone_signo;
    int64_t gone_code;
    int64_t gone_boot_ms; /* when it was told, then when it was pinged */
    struct peer *next_hash;
};

struct notice {
    char id[NOTICE_ID_MAX + 1];
    uint64_t generation;
    int64_t rank;
    uint64_t incarnation;
    enum wire_notice_kind kind;
    char source[NAME_MAX_BYTES + 1];
    enum record_notice_state state;
    bool cancellable;
    bool of_evaluator; /* its own end is nobody else's: shown, no cause of a round */
    int64_t left_ms;
    int64_t deadline_boot_ms; /* 0 = not known (the machine rebooted) */
    char *text;
    uint64_t round;
    int64_t received_unix_ms;
    uint64_t flags; /* NOTICE_FLAG_* */
    struct notice *next;
};

#define GRACE_TEXT_MAX 511
struct grace { /* what the active notices ask for, as shown */
    enum plan_why why;
    char id[NOTICE_ID_MAX + 1]; /* of the notice that decides */
    int64_t freeze_boot_ms;
    int64_t freeze_unix_ms; /* 0 = no plan waits */
    char text[GRACE_TEXT_MAX + 1];
    unsigned basis;   /* PLAN_KNOWS_* */
    bool early_asked; /* the early save: one for all that end together */
};

struct participant {
    struct peer *peer; /* NULL once the peer is forgotten */
    uint64_t rank;
    uint64_t incarnation;
    bool writer;
    int64_t begun;
    int64_t done;
    int64_t reported_ms;
    int64_t at_step_ms;
    int64_t captured_ms;
    int64_t saved_ms;
    int64_t save_ms;
    int64_t at_step_boot_ms;
    int64_t saving_boot_ms; /* when its save was last seen to go on, 0 = never */
    uint64_t saving_bytes;  /* how far it had come */
    uint64_t files_taken;
};

struct round {
    bool used;
    uint64_t round;
    uint64_t generation;
    uint64_t attempt;
    uint64_t attempts_before; /* of the cause that a termination joined: they do not count for it */
    enum wire_cause cause;
    enum wire_round_state state;
    int64_t step;
    bool aborted_steps;
    int64_t culprit_rank;
    unsigned reason_code;
    char reason[512];
    char plan[GRACE_TEXT_MAX + 1]; /* a termination: why it was frozen when it was */
    bool final;
    bool held; /* trainers wait for the commit. Forgotten by a start of the broker: then as told */
    int64_t deadline_boot_ms; /* 0 = none */
    int64_t opened_boot_ms;   /* BOOT_UNKNOWN between load and start: of another boot */
    int64_t opened_unix_ms;
    int64_t decided_unix_ms;
    int64_t captured_unix_ms;
    int64_t ended_unix_ms;
    int64_t margin_ms;
    int64_t freeze_until_boot_ms;
    int64_t way_until_boot_ms;
    struct participant *parts; /* by rank, ascending */
    size_t count;
    struct record_checkpoint checkpoint; /* strings: job's, "", metrics */
    char *metrics;                       /* as its lowest writer told, NULL = none */
};

struct checkpoint {               /* a committed one, not superseded */
    struct record_checkpoint row; /* path, metrics: owned below */
    char *path;
    char *metrics;
    bool given_up; /* its manifest could not be written in this launch */
};

struct outcome {
    uint64_t round;
    enum wire_round_state state;
    enum wire_cause cause;
    int64_t step;
    uint64_t generation;
    uint64_t attempt;
    bool final; /* aborted, and not to be tried again */
};

struct generation {
    uint64_t generation;
    enum wire_generation_state state;
    uint64_t world_size;
    enum wire_layout layout;
    char checkpoint_dir[PATH_BYTES_MAX + 1];
    uint64_t
        directory; /* its number, and who told it; 0 = since the start of the broker nobody did */
    uint64_t directory_rank;
    char directory_host[HOST_MAX + 1];
    uint64_t resume_checkpoint;
    int64_t resume_step;
    bool resume_ready;
    bool fallback;
    unsigned end_status;
    char end_text[512];
    int64_t error_rank;
    int64_t error_code;
    char *error_text;
    int64_t opened_unix_ms;
    int64_t started_unix_ms;
    int64_t ending_unix_ms; /* when it began to end, 0 = it did not, or not known */
    int64_t ended_unix_ms;
    int64_t join_ms; /* the join timeout, and when it is over */
    int64_t join_until_boot_ms;
    int64_t back_until_boot_ms; /* ranks that are missing by then are lost; 0 = none is awaited */
    int64_t ending_boot_ms;
};

struct want { /* all zero: no save is wanted */
    enum wire_cause cause;
    uint64_t attempt;   /* number the next round of it gets */
    bool aborted_steps; /* freeze with abort: a member was lost or failed */
};

struct lineage_start {
    uint64_t id;  /* of a start of the broker */
    uint64_t seq; /* the newest event when it began */
};
struct lineage {                              /* lineage.c */
    struct lineage_start starts[LINEAGE_MAX]; /* the newest ones, oldest first */
    size_t count;
    char text[LINEAGE_MAX * (16 + 1 + 20 + 1) + 1]; /* of them, for the row */
};

struct job {
    char name[JOB_NAME_MAX + 1];
    int64_t state_unix_ms;
    uint64_t seq;
    uint64_t start_seq; /* of this start of the broker: what a former one told ends here */
    struct lineage lineage;
    uint64_t round; /* highest number used */
    char save_now_id[NOTICE_ID_MAX + 1];
    uint64_t save_now_round;
    int64_t created_unix_ms;
    struct generation gen; /* gen.generation 0: none yet */
    struct peer **peers;   /* all of this generation, the ended ones too */
    size_t peers_count;
    size_t peers_capacity;
    struct peer **trainers; /* [world_size]: the live holder of each rank, or NULL */
    struct notice *notices; /* of this generation */
    struct round rounds[ROUNDS_ACTIVE_MAX];
    struct checkpoint *checkpoints; /* ascending step */
    size_t checkpoints_count, checkpoints_capacity;
    struct keep_state keep;
    struct outcome outcomes[OUTCOMES_MAX]; /* ring */
    size_t outcomes_next;
    uint64_t
        outcomes_from; /* the ring had no room for this one, or one below it: see round_known_above */
    struct want want;     /* the save that is to be opened */
    struct want want_row; /* as the database has it */
    uint64_t want_before; /* as round.attempts_before */
    int64_t
        want_not_before_boot_ms; /* after a broker start: give the generation time to come back */
    uint64_t *partly;            /* rounds of large imports that were cut short: import.c */
    size_t partly_count, partly_capacity;
    int64_t policy_step; /* last decided or skipped by SAVE_AT, -1 */
    bool policy_skipped;
    int64_t policy_pending;  /* asked for while a round was open, -1 */
    uint64_t save_p95_ms;    /* longest save seen */
    int64_t step_p95_ms;     /* of its slowest rank, over all launches; 0 = never measured */
    struct plan_saves saves; /* over all launches */
    struct grace plan;
    struct grace plan_row;    /* as the database has it */
    int64_t progress_boot_ms; /* last progress rows */
    int64_t fan_out_ms;       /* last measured */
    int64_t emitted_boot_ms;  /* when seq last rose */
    int64_t timer_boot_ms;    /* when job_tick is due */
    uint64_t settled_step;    /* core->steps when it was settled last */
    bool moved;               /* a process came, went or failed: settling looks at each */
    struct job *next;
};

struct manifest;
struct manifest_reader;

struct import { /* of a manifest, under way; see import.c */
    char path[PATH_BYTES_MAX + 1];
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

/* Who said LEAVE and is in no list any more: a ring of the newest ones. */
struct departed {
    uint64_t incarnations[DEPARTED_MAX];
    size_t next;
};

struct asleep; /* asleep.c */

struct core {
    struct tasks *tasks;   /* NULL: nobody has any */
    struct asleep *asleep; /* NULL: nobody is */
    struct import import;
    struct core_options options;
    char events_endpoint[ENDPOINT_MAX + 1];
    uint64_t epoch;
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
    /* of the present step. `now` is the loop's clock: boot time less what the loop was away. Silence
     * and bounds count on it, for nobody could be heard or told meanwhile. Deadlines and the times of
     * rows are in boot time. */
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

/* asleep.c */
#define TOO_MANY_JOBS                                                                              \
    "this broker leads as many jobs as it can; `muster status` lists those that run: end one, or " \
    "start "                                                                                       \
    "another musterd with its own --db and --listen for further ones"
bool asleep_holds(const struct core *core, const char *name);
void asleep_add(struct core *core, const struct record_job_asleep *row);
void asleep_remove(struct core *core, const char *name);
void asleep_tick(struct core *core);
void asleep_forget(struct core *core, const char *name);       /* its rows go */
struct answer asleep_take(struct core *core, struct job *job); /* FORGET */
void asleep_free(struct core *core);
bool job_has_row(const struct job *job); /* else nothing of it was ever persisted */

/* start.c */
void start_take(struct core *core);
void start_job(struct core *core, struct job *job); /* its rows were loaded, at a start or later */

/* core.c */
struct job *job_find(const struct core *core, const char *name);
/* NULL: it sleeps, or as many are in memory as may be. It has no row before one is persisted. */
struct job *job_create(struct core *core, const char *name);
void job_drop(struct core *core, struct job *job); /* out of memory */
struct peer *peer_find(const struct core *core, uint64_t incarnation);
struct peer *peer_create(struct core *core, struct job *job, uint64_t incarnation);
void peers_forget(struct core *core, struct job *job); /* but those that are kept */
bool peer_is_live(const struct peer *peer);            /* joined and neither left nor lost */
struct peer *peer_of_rank(const struct job *job, int64_t rank); /* who holds it now, or NULL */
bool peer_has_finished(const struct peer *peer); /* it left, with nothing left to do */
bool step_ok(int64_t step);                      /* a count of steps that may come from outside */
void job_timer(struct job *job, int64_t at_boot_ms);
int64_t core_clock_ms(const struct core *core, int64_t boot_ms);        /* on the loop's clock */
int64_t core_passed_ms(const struct core *core, int64_t since_boot_ms); /* to the last tick */
void job_tick(struct core *core, struct job *job);

/* settle.c: derives what follows from the job's facts. */
void job_settle(struct core *core, struct job *job);

/* What a request's handler answers. */
struct answer {
    unsigned code;
    const char *text; /* "" or in the actions' arena or static */
    uint64_t value;
};

/* hello.c */
void hello_take(struct core *core, const struct input *in);
void hello_snapshot(struct core *core, struct peer *peer);

/* roster.c */
unsigned roster_phase_known(uint64_t phase);
struct answer roster_leave(struct core *core, struct peer *peer, const struct wire_leave *leave);
struct answer roster_error(struct core *core, struct peer *peer, const struct wire_error *error);
void roster_lost(struct core *core, struct peer *peer, const char *why);
void roster_heartbeat(struct core *core, struct peer *peer, const struct wire_heartbeat *beat);
void roster_tick(struct core *core, struct job *job);

/* gone.c: value 1, the death is being looked into; 0, nobody such lives. */
struct answer gone_take(struct core *core, struct job *job, const struct wire_gone *told);
void gone_heard(struct peer *peer); /* any message of it */
void gone_tick(struct core *core, struct peer *peer);

/* generation.c */
void generation_open(struct core *core, struct job *job, const struct wire_hello *hello);
void generation_adopt(struct core *core, struct job *job, uint64_t generation,
                      const struct wire_hello *hello);
/* A rank of it has done `done`, and this database did not know that it had restored. */
void generation_stands_at(struct core *core, struct job *job, int64_t done);
void generation_goes_on(struct core *core, struct job *job);
bool generation_began_is_known(const struct job *job);             /* from which checkpoint */
void generation_await_unknown(struct core *core, struct job *job); /* at a start */
void generation_set_first_error(struct core *core, struct job *job, int64_t rank, int64_t code,
                                const char *text);
void generation_ending(struct core *core, struct job *job, unsigned status, const char *text);
/* An error of a peer that nobody is left to tell of: the event, the first error, and the end. */
void generation_rank_failed(struct core *core, struct job *job, enum wire_event_kind kind,
                            uint64_t rank, const char *text);
bool generation_is_over(const struct job *job); /* it ends, or has ended */
/* The launch of this rank has ended as terminated. age_ms: of its process, 0 = not known. */
bool generation_rank_is_late(const struct core *core, const struct job *job, uint64_t rank,
                             uint64_t age_ms);
bool generation_is_found(
    const struct job *job); /* by an import: whether it has ended is not known */
void generation_end(struct core *core, struct job *job);         /* nobody is left */
void generation_check_ended(struct core *core, struct job *job); /* all gone? */
size_t generation_live_count(const struct job *job);
bool generation_rank_finished(const struct job *job, uint64_t rank); /* it had nothing left to do */
bool generation_awaits_rank(const struct job *job, uint64_t rank); /* to come back, unknown here */
bool generation_awaits_ranks(const struct job *job);
void generation_check_started(struct core *core, struct job *job);
void generation_tick(struct core *core, struct job *job);

/* import.c */
/* False: the answer is sent later, see import_tick. */
bool import_take(struct core *core, const struct input *in, struct answer *ret_answer);
void import_tick(struct core *core); /* the next files of a large one */
void import_load_round(struct job *job, const struct record_round *row);
bool import_is_due(const struct core *core);
void import_free(struct core *core);

/* keep.c, pins.c, save_policy.c */
void keep_free(struct job *job);
void keep_load(struct core *core,
               const struct record *row); /* POLICY, CHECKPOINT that is deleting */
void keep_start(struct core *core, struct job *job);
void keep_tick(struct core *core, struct job *job);
void keep_settle(struct core *core, struct job *job);   /* decides what is deleted */
void keep_launched(struct core *core, struct job *job); /* all have restored */
struct answer keep_policies_take(struct core *core, struct peer *peer,
                                 const struct wire_policies *m);
struct answer keep_sweep(struct core *core, struct peer *peer, const struct wire_sweep *m);
struct answer keep_drop(struct core *core, struct job *job, const struct wire_drop *m);
struct answer keep_deleted(struct core *core, struct peer *peer, const struct wire_deleted *m);
struct answer pins_take(struct core *core, struct job *job, const struct wire_pin *m);
struct answer pins_unpin(struct core *core, struct job *job, const struct wire_unpin *m);
void pins_load(struct core *core, const struct record_pin *row);
void save_policy_tick(struct core *core, struct job *job);
void save_policy_decided(struct core *core,
                         struct job *job); /* a save begins, whatever its cause */
void save_policy_launched(struct core *core, struct job *job); /* all have restored */
void save_policy_start(struct core *core, struct job *job);
void save_policy_ended(struct job *job); /* the generation is over: it is history now */
void save_policy_load(struct core *core, const struct record_history *row);
void save_policy_load_round(struct job *job, const struct record_round *row);
struct answer save_policy_wish(struct core *core, struct peer *peer, int64_t step);

/* servers.c */
/* NULL: none; else of the lowest rank. */
const struct peer *servers_missing(const struct core *core, const struct job *job);
/* Before the peers of a launch are forgotten: for one that begins, or that is found to run already. */
void servers_keep(struct core *core, struct job *job, bool launch);
void servers_kept(struct core *core, struct job *job); /* in the launch that follows */

/* tasks*.c */
void tasks_message(struct core *core, const struct input *in);
void tasks_load(struct core *core, const struct record *row);
void tasks_start(struct core *core);
void tasks_tick(struct core *core);
void tasks_node_left(struct core *core, uint64_t incarnation); /* in good order */
int64_t tasks_wakeup_boot_ms(const struct core *core);
void tasks_free(struct core *core);

/* registry.c */
const struct checkpoint *registry_newest(const struct job *job);
/* It has its manifest and its final name, as readers and a repair-free restart need it. */
const struct checkpoint *registry_newest_whole(const struct job *job);
struct checkpoint *registry_find(struct job *job, uint64_t round); /* committed; NULL: none such */
bool registry_has(const struct job *job, uint64_t round);
bool registry_has_step(const struct job *job, int64_t step);
/* What a count of steps done + this is to the job's program. False: no checkpoint has its name, which tells it. */
bool registry_step_offset(const struct job *job, int64_t *ret_offset);
/* This count of steps done as the job's program counts: texts and logs tell a step by the number that the checkpoints'
 * directories have. */
long long registry_shown(const struct job *job, int64_t step);
void registry_drop(struct job *job, uint64_t round); /* out of memory, not of the database */
/* What a process that joins now is to restore: the launch's choice; for a bystander, once that is
 * deleted, the newest. */
const struct checkpoint *registry_resume_of(struct job *job, struct peer *peer);
/* A bystander whose launch's choice was deleted, and there is nothing else to read: it begins from nothing. */
bool registry_lets_begin(const struct job *job, const struct peer *peer);
void registry_add(struct job *job, const struct record_checkpoint *row);
void registry_free(struct job *job);
/* It is newer than what a fallback of this launch chose: superseded once the launch has started. */
bool registry_is_given_up(const struct job *job, const struct checkpoint *checkpoint);
void registry_supersede_given_up(struct core *core, struct job *job);
/* What launches before the present one committed beyond a step that it is known to have begun from, or from before. */
void registry_give_up_beyond(struct core *core, struct job *job, int64_t step);
/* given_up.c: what is superseded is to be deleted some time. */
void given_up_add(struct job *job, const struct record_checkpoint *row); /* copies it */
void given_up_forget(struct job *job, uint64_t round);
void registry_announce_resume(struct core *core, struct job *job);
struct answer registry_restored(struct core *core, struct peer *peer,
                                const struct wire_restored *m);
struct answer registry_restore_failed(struct core *core, struct peer *peer,
                                      const struct wire_restore_failed *m);
struct answer registry_manifest_done(struct core *core, struct peer *peer,
                                     const struct wire_manifest_done *m);

/* grace.c */
/* Opens the termination's round, or has the open one join, when a notice's plan says now. */
void grace_consider(struct core *core, struct job *job);
bool grace_is_due(const struct core *core, struct job *job); /* else it set the timer */
bool grace_has_trained(const struct job *job); /* as far as its ranks told: in this launch */
int64_t grace_least_ms(const struct core *core, struct job *job); /* of a freeze and a save */
int64_t grace_step_p95(struct job *job); /* 0 = never measured; remembers it for the next launch */
void grace_save_measured(struct job *job, const struct round *round);
void grace_forget(struct job *job);

/* notice.c */
struct answer notice_take(struct core *core, struct job *job, const struct wire_notice *m,
                          int64_t rank, uint64_t incarnation);
struct answer notice_cancel(struct core *core, struct job *job, const char *id,
                            uint64_t incarnation);
void notices_let_pass(struct core *core, struct job *job);
void notices_settle(struct core *core, struct job *job); /* of ranks that have finished */
bool notice_is_of_evaluator(const struct core *core, uint64_t incarnation);
bool notice_make_room(struct job *job, bool of_a_tool); /* for one more; false: there is none */
void notice_facts(struct core *core, struct peer *peer, const struct wire_hello *hello);
int64_t notice_deadline(const struct job *job); /* earliest of the active, 0 = none known */
bool notice_any_active(const struct job *job);
bool notice_counts(
    const struct notice *notice); /* active, and it ends a process that the job needs */
void notices_taken_back(struct core *core, const struct peer *peer, struct wire_snapshot *s);
void notices_join(struct core *core, struct job *job, struct round *round);
void notices_frozen_for(struct core *core, struct job *job, const struct round *round);
void notices_served(struct core *core, struct job *job, uint64_t round);
void notices_free(struct job *job);

/* bystander.c */
void bystander_lost(struct core *core, struct peer *peer, const char *why);
void bystander_failed(struct core *core, struct peer *peer, int64_t step, const char *why);
struct answer bystander_restore_failed(struct core *core, struct peer *peer, int64_t step,
                                       const char *why);

/* round.c */
struct round *round_open_one(struct job *job); /* freezing or decided, NULL if none */
/* The same, or a termination's save that is written behind training: no other is opened beside the job's last. */
struct round *round_awaited(struct job *job);
struct round *round_find(struct job *job, uint64_t number);
struct participant *round_part(struct round *round, const struct peer *peer);
struct outcome round_outcome(struct job *job, uint64_t number);
void round_remember(struct job *job, const struct round *round);
void round_imported(struct job *job, const struct outcome *outcome); /* whatever it was here */
/* Of the rounds with greater numbers each that has ended is among the outcomes. */
uint64_t round_known_above(const struct job *job);
/* In this launch, as far as its newest rounds tell: also one that was deleted since. */
bool round_was_committed(const struct job *job, int64_t step);
void round_want(struct job *job, enum wire_cause cause);
void round_want_nothing(struct job *job);
void round_want_owed(struct job *job); /* instead of whatever is wanted */
/* Behind an attempt that was aborted; not instead of what was promised to somebody. */
void round_want_again(struct job *job, struct want want, uint64_t attempts_before);
void round_try_open(struct core *core, struct job *job);
void round_join_termination(struct core *core, struct job *job, struct round *round);
/* Whether it is a member now. */
bool round_join_freeze(struct core *core, struct job *job, struct peer *peer);
void round_settle(struct core *core, struct job *job);
struct answer round_report(struct core *core, struct peer *peer, const struct wire_report *m);
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
uint64_t round_nonce(struct core *core, const struct round *round);
void round_free(struct round *round);

bool round_is_committed(const struct job *job, int64_t step);
bool round_is_being_written(const struct job *job, int64_t step);
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
