/* sim_world - what the simulator's files share. Nobody else includes it. */
#ifndef TESTS_SIM_SIM_WORLD_H
#define TESTS_SIM_SIM_WORLD_H

#include "broker/core/contract/core.h"
#include "node/core/member.h"
#include "tests/sim/sim.h"
#include "tests/sim/sim_keep.h"

#define SIM_NODES_MAX 64
#define SIM_EXTRAS_MAX 2 /* ps and evaluators of a job */
#define SIM_SLOTS_MAX (SIM_NODES_MAX + SIM_EXTRAS_MAX)
#define SIM_FAULTS_MAX 64
#define SIM_BROKERS 2 /* with a shared log; else the first is alone */
#define NEVER INT64_MAX

struct sim;
struct sim_store;
struct sim_proc;
struct sim_event;
typedef void sim_row_fn(void *arg, const struct record *row);
typedef void sim_event_fn(struct sim *sim, struct sim_event *event);

struct sim_event {
    int64_t at_us;
    uint64_t order;
    sim_event_fn *fn;
    struct sim_proc *proc; /* deferred while it is frozen, dropped when it is gone; may be NULL */
    uint64_t stamp;
    int64_t number;
    uint8_t *data; /* owned */
    size_t size;
};

/* --- the file system: what each shard really holds ------------------------------------------- */
enum { SIM_SHARD_HEADS = 4096 };
struct sim_shard {
    uint64_t job, generation, round, rank, incarnation;
    int64_t begun, done;
    size_t older; /* the place of the one before it with the same head, + 1; 0 = none */
    bool complete, deleted;
    bool synced; /* what a power cut leaves alone */
    bool taken;  /* deleted with its directory, whose name may still come back */
};
struct sim_dir { /* of a round */
    uint64_t job, generation, round;
    int64_t step;
    const char *path; /* "" until renamed */
    bool out;         /* taken out of its place, to be removed */
    const char *was;  /* its path before a rename that is not synced; NULL: there is none such */
    unsigned mover;   /* the host of that rename */
    bool refused;     /* the broker takes no import of it */
    char *manifest;   /* owned; NULL: it has none */
    size_t manifest_size;
};

/* --- the broker's disk ------------------------------------------------------------------------ */
struct sim_row {
    struct record record; /* strings are interned */
    uint64_t boot;        /* of the broker's machine */
    uint8_t *body;        /* EVENT: the encoded message */
    size_t body_size;
};
struct sim_table {
    struct sim_row *rows;
    size_t count, capacity;
    uint32_t *heads, *next; /* by key: of the first `indexed` rows */
    size_t heads_count, indexed;
};
struct sim_disk {
    struct sim_table tables[RECORD_KIND_COUNT];
    struct sim_table held; /* lazy rows */
    uint64_t ends;         /* as broker/store_mark counts them */
};

/* --- processes -------------------------------------------------------------------------------- */
enum sim_thread_state {
    THREAD_JOINING,
    THREAD_RESUME, /* waits for what to restore */
    THREAD_RESTORING,
    THREAD_POSTED,  /* an input of its own waits for the agent thread */
    THREAD_WAITING, /* at a closed boundary */
    THREAD_STEP,
    THREAD_SUSPECTING, /* its collective broke; it waits for what is known of the others */
    THREAD_SAVING,
    THREAD_SWEEPING, /* its loop is over; it waits for what is to be deleted */
    THREAD_LEAVING,
    THREAD_GONE,
    THREAD_STATE_COUNT
};
enum sim_end { END_NONE, END_FINISHED, END_RESTART, END_FAILED, END_KILLED };

struct sim_frames { /* owned */
    struct sim_event *items;
    size_t count;
};

struct sim_proc {
    struct sim_proc *older; /* of the same slot, before this one; may live still */
    unsigned index, job, rank;
    unsigned slot; /* of its job: the trainers by rank, then ps and evaluators */
    enum wire_role role;
    uint64_t launch, incarnation;
    bool alive, frozen;
    int64_t boot_offset_ms;
    int64_t created_us; /* the process; its node comes to life later */
    struct member *member;
    struct member_actions actions;
    uint64_t timer_stamp;
    int64_t timer_at_us;
    /* gate */
    bool closed;
    int64_t begun, done;
    struct member_input fed; /* the last that its core was given */
    int64_t closed_since_us;
    /* training thread */
    struct member_view view; /* as published last */
    enum sim_thread_state state;
    enum sim_thread_state after_post;
    uint64_t thread_stamp; /* of the event that it waits for */
    uint64_t frames_heard;
    int64_t heard_us;          /* the last of them */
    int64_t since_us;          /* in this state */
    int64_t total, policy_due; /* in calls */
    bool due_between;          /* in the middle of a call of several steps */
    int64_t first_step;        /* restored */
    uint64_t restored_checkpoint;
    uint64_t not_checkpoint; /* could not be restored */
    bool imports; /* newer ones that the database lacks, once the launch has ended for it */
    uint64_t restoring;
    struct sim_asks asks;
    bool arrived, leaving, stuck, stuck_at_end, failed_step, released;
    bool holding; /* this step is a hold: evaluation, something that must not be cut */
    unsigned manifests;
    enum wire_leave_why why;
    enum view_mode arrived_mode;
    uint64_t arrived_round;
    uint64_t captured_round, saving_round;
    bool visit_asks, turn_beside; /* sim_save.c: at this boundary; the others save, not this rank */
    uint64_t asked_round, turn_round;
    uint64_t behind_round; /* its snapshot is being written while the thread trains on */
    int64_t behind_begun_us;
    uint64_t discard_generation, discard_round;
    int64_t save_begun_us;
    bool saves_long; /* and its heartbeats tell that it goes on */
    int64_t
        saved_long_us; /* when the next save began behind such a one, whose SAVED is on its way */
    enum sim_end end;
    uint64_t end_generation; /* when its view ended it: who leaves may hear of the next one */
    /* network */
    uint64_t route;  /* 0 = not connected */
    unsigned at;     /* the broker that it is connected to, or tries */
    int64_t link_us; /* when it heard that one last */
    bool connected_once;
    bool cut, stall_up, stall_down;
    int64_t old_cut_us; /* frames of a former connection still arrive until then */
    int64_t up_last_us, down_last_us, sub_last_us;
    bool wants_sub, subscribed;
    uint64_t sub_stamp;
    struct sim_frames stalled_up, stalled_down;
    struct sim_event *deferred;
    size_t deferred_count;
    uint64_t unmet; /* faults that lie on it and have struck nothing yet, a bit each */
    /* for the checker */
    int64_t charged_from_us, charged_us; /* waited, since it came to this state */
    uint64_t heard_contiguous;           /* all events up to here were handed to its core */
    uint64_t *heard;                     /* seqs beyond it */
    size_t heard_count;
    uint64_t applied_said;
    uint64_t request_said;
    uint64_t acknowledged; /* highest request that was answered after it was written */
    int64_t untold_us;     /* live beside a first error that it does not act on */
    uint64_t past_said;
    uint64_t given_up_in;    /* the batch that called it lost or fenced */
    int64_t hello_way_us;    /* the longest that a HELLO was on its way to the broker's core */
    uint64_t hello_route;    /* of its last HELLO that the broker's core was given ... */
    int64_t taken_us;        /* ... and when it was given the last frame from there */
    uint64_t reported_round; /* its last REPORT */
    int64_t reported_begun;
    uint64_t thawed_round;  /* it waited in vain for this one */
    uint64_t awaited_round; /* the broker said last that it waits for it, ... */
    int64_t awaited_us;     /* ... and when */
    int64_t arrivals[32];   /* steps at which it stood at a closed gate, a ring */
    unsigned arrivals_next;
    uint64_t captured_said; /* AT_STEP, captured: a member that writes nothing */
    int64_t undecided_us;   /* since when its view, and what it heard and took, is as it is */
    int64_t begun_told, p95_told_ms; /* by the newest heartbeat that the broker took; the longest */
    int64_t advanced_us;             /* when one told of a step that it had begun */
    int64_t measured_us; /* since when they tell this start of the broker how long its steps take */
    int64_t suspects_us, died_us; /* when its collective broke, when it ended */
    int suspects_gone;            /* a rank that was dead then; -1: none was */
    bool suspects_ran_out;        /* nobody told it in time */
    bool error_heard;             /* by its agent */
    int64_t deaf_since_us; /* on_error did not free the thread: if it was in this step, its agent
                              ends it */
    bool lost_history;     /* began before the database was restored from an older copy */
    int64_t saved_us;      /* its last save was whole */
    uint64_t left_seq; /* the newest event that it had heard when it first said LEAVE, if it waited
                          for its outcome no longer; else 0 */
};

struct sim_job {
    char name[16];
    unsigned index, nodes;
    enum wire_layout layout;
    bool async;
    int64_t no_room_us; /* a rank told last that its disk was full; 0: none did */
    bool together;      /* restarted as one launch */
    bool gang;          /* ... whose other processes are killed some time after one has failed */
    bool fallback;
    bool supervised; /* `muster run` sees each process end, and says so */
    bool save_on_notice;
    bool writes_behind; /* a writer takes a snapshot and trains on */
    int64_t grace_period_ms;
    int64_t join_timeout_ms, abort_timeout_ms;
    int64_t total[SIM_NODES_MAX];
    unsigned extras; /* ps and evaluators */
    unsigned stride; /* steps that one call does */
    unsigned hold_percent;
    int64_t step_us; /* of one call */
    int64_t save_us;
    int64_t policy_every;
    struct sim_proc *procs[SIM_SLOTS_MAX]; /* the newest of each slot */
    int64_t created_us[SIM_SLOTS_MAX];     /* of each slot, the process that was started last */
    enum sim_end ended[SIM_SLOTS_MAX];     /* of each slot, the process that ended last */
    uint64_t launch;
    uint64_t lost_generation; /* this one and those before began in a history that was lost */
    bool finished;
    int64_t failed_us; /* when the first process of this launch failed, 0 = none has */
    struct wire_file *files;
    struct sim_keeps keeps;
    /* for the checker */
    uint64_t calm_seq; /* the newest event when the faults stopped */
    bool comes;        /* a member that the decided round waits for is in the user's code */
    uint64_t open_round;
    uint64_t other_round, late_round; /* decided for another cause; one that a notice joined */
    int64_t open_charged_us;
    bool rested;         /* since the faults stopped, once */
    uint64_t calm_round; /* the first that was open in the calm; 0 = none yet */
    int64_t restless_us;
    int64_t furthest[SIM_NODES_MAX];  /* the most steps that each rank has done, */
    int64_t got_on_us;                /* and when one did one more */
    unsigned calm_counts;             /* how often furthest began again, */
    uint64_t calm_generation;         /* and in which generation at last */
    uint64_t told_seq;                /* the newest event that anybody was told of */
    uint64_t told_batch, told_before; /* ... in the batches before this one */
    uint64_t freezing_round, decided_round;
    int64_t freezing_us, decided_us;     /* since when */
    uint64_t opened_generation;          /* and no process is in it yet; 0 = none */
    int64_t ending_us;                   /* since when its launch is ending; 0 = not known */
    int64_t promised_us;                 /* since an abort said that its save is tried again */
    uint64_t error_batch;                /* that told of the first error of its launch, ... */
    uint64_t announced_batch;            /* ... that told that a round follows, ... */
    int64_t announced_us;                /* ... and when that was; 0 = not known */
    uint64_t follows_round, follows_seq; /* the freeze in the same batch, which breaks off steps */
};

struct sim_fault_plan {
    enum sim_fault kind;
    int64_t at_us, for_us;
    unsigned target; /* job and slot, by chance */
    int slot;        /* of job 0; -1 = by target */
    int64_t left_ms; /* notices: the time left, 0 = by for_us */
};

/* Of what one says to others behind a sync, and where a power cut tries whether it was one. */
enum sim_power_moment {
    POWER_SAVED, /* a shard is to be told */
    POWER_COMMITTED,
    POWER_RENAMED,
    POWER_NAMED,
    POWER_TAKEN_OUT, /* a checkpoint that is to be deleted */
    POWER_REMOVED,
    POWER_MOMENT_COUNT
};

/* Worlds made for what chance alone meets too seldom. */
#define FOCUS_FAULTS_MAX 5
struct sim_focus {
    const char *name;
    unsigned weight; /* of the sum of all */
    enum wire_layout layout;
    int async; /* -1 = by chance; so are zeros below */
    unsigned nodes_min, nodes_max;
    int64_t step_us, save_us, seconds;
    bool uneven;
    int policy; /* how many policy saves a loop has */
    bool late;  /* at the end of the loop */
    struct {
        enum sim_fault kind;
        int64_t at_ms, spread_ms; /* after the focus' moment */
        int64_t for_ms, left_ms;
        int who; /* 0, 1 = first or second of two ranks of the seed; SIM_RANK_0; SIM_ANY */
    } faults[FOCUS_FAULTS_MAX];
    bool rare;            /* few others, which would come between them */
    bool from_start;      /* their times count from the world's begin */
    enum sim_with behind; /* saves are written behind training */
};
#define TRIED_AGAIN \
    2 /* for_ms of FAULT_SAVE_FAILS: with a status after which a save is tried again */
#define SIM_RANK_0 (-1)
#define SIM_ANY (-2)

/* What somebody was told, and what must have come of it. */
struct sim_notice {
    const char *job, *id;
    struct sim_proc *proc; /* NULL: told by a tool */
    int64_t at_us, left_ms;
    bool ample; /* told when no fault was left, with time for all that has to be done */
    bool withdrawn;
    bool ends;       /* its process, which knows when */
    bool told;       /* the broker has it in its rows */
    uint64_t cancel; /* the request that takes it back; 0 = none was said */
    int64_t untold_us;
};

/* What a broker knows of the log that it shares with the other (sim_shared.c). */
struct sim_holder {
    uint64_t epoch, seq; /* of its lease; of the last batch that it knows to be written */
    int64_t renewed_us;  /* by its own clock, before it asked */
    int64_t renew_at_us;
    bool doubts;          /* its lease may be over */
    bool unsure;          /* a batch was sent, and its answer did not come */
    uint64_t sent, lost;  /* the last batch that was sent; the one that a dead life left */
    uint64_t told[4];     /* the newest event of each job in its copy */
    int64_t cut_until_us; /* it does not reach the log */
    int64_t skew_ms;      /* of its wall clock */
    bool of_lost_history; /* the log has lost commits since it took the lease */
    bool lacks;           /* a job that its own copy would have: what it writes then is refused */
};
struct sim_lease {
    uint64_t epoch, seq;
    int64_t ends_us; /* by the database's clock */
};

struct sim_broker {
    bool alive, frozen;
    struct core *core;
    uint64_t starts, start_id, epoch, boot;
    int64_t boot_offset_ms;
    uint64_t stamp; /* events of a former life are dropped */
    struct actions batch, free_outputs;
    struct actions doubt; /* it may be in the database or not: its commit did not return */
    bool in_doubt;
    uint64_t doubt_boot;
    uint64_t doubt_ends; /* that it would write */
    int64_t started_us;
    bool starting;      /* the batch of its start is not written */
    bool busy;          /* a batch is being written */
    bool blocked;       /* a batch could not be written */
    bool refused;       /* the database refused that batch, and its log may hold it */
    int64_t passed_us;  /* the last pass of its loop ... */
    int64_t steady_us;  /* ... and since when it was never away */
    int64_t pass_at_us; /* NEVER = none is due */
    uint64_t pass_stamp;
    struct sim_event *inbox;
    size_t inbox_count, inbox_capacity;
    struct sim_event lacking[64];
    size_t lacking_count;
    enum sim_fault crash_at;
    unsigned crash_after; /* batches, sends */
    bool crash_picky;     /* only in batches that journal something */
    bool crash_deletes;   /* only in batches that decide or end a deletion */
    bool deletes;         /* this one does */
    bool journals;        /* the batch does */
    int64_t down_us;
    uint64_t ends_told; /* what the mark beside its database says */
    struct sim_holder holder;
};

struct sim {
    struct sim_options options;
    struct sim_stats *stats;
    struct sim_failure *failure;
    bool failed, over;
    uint64_t random;
    uint64_t frames; /* of the mishaps of single ones */
    uint64_t relay_chance, suspects_chance, turns_chance;
    unsigned relay_ranks; /* slots behind each relay */
    struct sim_relay **relays;
    size_t relays_count;
    bool frames_fail;
    bool quiet;    /* of worlds with suspects: nothing else fails */
    uint64_t side; /* of what worlds with policies have beside the others */
    bool keeps;
    int64_t now_us;
    uint64_t order;
    struct sim_event *queue;
    size_t queue_count, queue_capacity;
    struct arena arena; /* of the world */
    struct arena frame; /* of one decoded frame */
    const char **words; /* interned */
    size_t words_count, words_capacity;
    uint8_t buffer[WIRE_FRAME_MAX];

    struct sim_broker brokers[SIM_BROKERS];
    struct sim_broker *broker; /* whose turn it is, else the one that took the lease last */
    struct sim_lease lease, copy_lease;
    int64_t slow_log_until_us;
    unsigned lost_answers;   /* of the next batches */
    bool freeze_at_send;     /* the broker, in the middle of a pass */
    struct sim_store *store; /* NULL: rows in memory alone */
    struct sim_disk disk;
    uint64_t batches;     /* that were written */
    struct sim_disk undo; /* MUTANT_LOSES_BATCH: before the last transaction */
    struct sim_disk copy; /* of an operator, to be restored later */
    uint64_t copy_boot, copy_epoch;
    bool copied, put_back; /* put_back: restored at the next start */
    bool lost_history;     /* it was, once */
    int64_t lost_us;       /* when it was the last time */
    struct sim_shard *shards;
    size_t shards_count;
    size_t shard_heads[SIM_SHARD_HEADS]; /* the newest of each, + 1 */
    bool unchecked_rounds;               /* one was written since they were looked at */
    bool unchecked; /* a committed checkpoint may have become another since it was looked at */
    struct sim_dir *dirs;
    size_t dirs_count;
    struct sim_job jobs[4];
    size_t jobs_count;
    struct sim_proc **procs; /* all that ever were */
    size_t procs_count;
    struct sim_proc **routes; /* by number; NULL: a tool's */
    uint64_t last_route, last_incarnation, last_notice, tool_request;
    struct sim_notice *notices;
    size_t notices_count;
    uint64_t asked, answered; /* questions of tools */
    struct sim_reader *readers;
    size_t readers_count;
    struct sim_drop *drops;
    size_t drops_count;
    bool lose_database; /* at the next start */

    /* the seed's nature */
    const struct sim_focus *focus; /* NULL = none */
    unsigned nodes;
    int64_t delay_min_us, delay_max_us;
    int64_t post_max_us;
    int64_t fsync_max_us;
    unsigned host_ranks; /* so many ranks of each job are on one host */
    bool broker_beside;  /* the broker is on the first of them */
    unsigned pub_loss_percent;
    uint64_t journal_max;
    struct sim_fault_plan faults[SIM_FAULTS_MAX];
    size_t faults_count;
    int64_t calm_us; /* no faults from here on */
    bool calm_was;
    int64_t limit_us; /* all must be done by now */
    /* active faults */
    bool disk_full, pub_drop_all, pub_stall;
    unsigned pub_drop_percent;
    int64_t slow_saves_until_us, hung_saves_until_us, long_saves_until_us;
    int64_t slow_disk_until_us, slow_disk_us; /* and how long a transaction takes at least */
    int slow_slot, long_slot;                 /* whose, of job 0; -1 = everybody's */
    bool fail_again;                          /* the next that fails is tried again */
    unsigned faults_met;
    uint64_t unmet;        /* those of no process that have struck nothing yet, a bit each */
    int64_t asks_until_us; /* a tool asks and asks */
    unsigned fail_saves, fail_restores, fail_manifests, fail_steps;
    unsigned fail_deletes, kill_hands, freeze_hands;
    unsigned cuts[POWER_MOMENT_COUNT]; /* of a host's power, that wait for such a moment */
    int64_t wall_offset_ms;
};

/* sim.c: time, chance, the story */
uint64_t sim_random(struct sim *sim);
int64_t sim_range(struct sim *sim, int64_t low, int64_t high); /* both included */
bool sim_chance(struct sim *sim, unsigned percent);
int64_t side_range(struct sim *sim, int64_t low, int64_t high);
int64_t relay_below(struct sim *sim, int64_t below);
int64_t suspects_below(struct sim *sim, int64_t below);
int64_t frames_below(struct sim *sim, int64_t below); /* 0 ... below - 1 */
bool side_chance(struct sim *sim, unsigned percent);
const char *sim_word(struct sim *sim, const char *text); /* interned copy */
struct sim_event *sim_at(struct sim *sim, int64_t at_us, sim_event_fn *fn, struct sim_proc *proc);
struct sim_event *sim_after(struct sim *sim, int64_t delay_us, sim_event_fn *fn,
                            struct sim_proc *proc);
void sim_tell(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_broken(struct sim *sim, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define SIM_TELL(sim, ...)                \
    do {                                  \
        if ((sim)->options.story != NULL) \
            sim_tell((sim), __VA_ARGS__); \
    } while (0)
bool sim_is_calm(const struct sim *sim);

/* sim_table.c */
struct sim_row *table_find(const struct sim_table *table,
                           const struct record *key); /* NULL: none */
struct sim_row *
sim_table_add(struct sim_table *table); /* its key is written before the next look */
void table_remove(struct sim_table *table, struct sim_row *row); /* the last takes its place */
void table_drop_first(struct sim_table *table, size_t count);
void table_clear(struct sim_table *table);
void table_copy(struct sim_table *to, const struct sim_table *from);
void table_free(struct sim_table *table);

/* sim_copy.c */
void copy_take(struct sim *sim);
void copy_put_back(struct sim *sim); /* at a start of the broker */
void copy_nothing(struct sim *sim);  /* the same: it starts from no database at all */
void copy_free(struct sim *sim);
bool is_of_lost_history(const struct sim_job *job, uint64_t generation);
void undo_keep(
    struct sim *sim); /* MUTANT_LOSES_BATCH, MUTANT_READS_REPLICA: before a transaction ... */
void undo_last(struct sim *sim); /* ... which a crash takes along, ... */
void undo_swap(struct sim *sim); /* ... or a take-over does not read */

/* sim_disk.c */
enum muster_status disk_apply(struct sim *sim, const struct actions *batch); /* as store_apply */
void disk_apply_doubt(struct sim *sim);
void disk_apply_some(struct sim *sim, const struct actions *batch, size_t count);
void disk_load(struct sim *sim, struct core *core);
void disk_load_job(struct sim *sim, struct core *core, const char *name);
void disk_rows(struct sim *sim, sim_row_fn *fn, void *arg);
void disk_free(struct sim *sim);
const struct record_job *disk_job(const struct sim *sim, const char *job);
const struct record_generation *disk_generation(const struct sim *sim, const char *job,
                                                uint64_t generation);
const struct record_round *disk_round(const struct sim *sim, const char *job, uint64_t round);
const struct record_participant *disk_member(const struct sim *sim, const char *job, uint64_t round,
                                             uint64_t incarnation);
/* Is it a member of that round, as far as its row or its freeze tells? */
bool disk_asks(const struct sim *sim, const char *job, const struct record_round *round,
               const struct sim_proc *proc);
bool disk_has_shard(const struct sim *sim, const char *job, uint64_t round, uint64_t incarnation);
const struct record_node *disk_node(const struct sim *sim, const char *job, uint64_t incarnation);
const struct record_node *disk_node_of(const struct sim *sim, const struct sim_proc *proc);
const struct record_checkpoint *disk_checkpoint(const struct sim *sim, const char *job,
                                                uint64_t round);
bool disk_counts(const struct sim *sim, const struct record_checkpoint *row);
const struct record_checkpoint *disk_newest(const struct sim *sim, const char *job);
const struct record_notice *disk_notice(const struct sim *sim, const char *job, const char *id);
const struct sim_row *disk_event(const struct sim *sim, const char *job, uint64_t seq);

/* sim_grace.c */
void grace_started(struct sim *sim, struct sim_proc *proc);
void grace_plan_job(struct sim *sim, struct sim_job *job);
void grace_plan_faults(struct sim *sim);
int64_t grace_step_us(struct sim *sim, const struct sim_proc *proc);
int64_t grace_save_us(struct sim *sim, uint64_t round);
void grace_observe(struct sim *sim, const struct wire_event *event);

/* sim_store.c */
typedef void sim_store_event_fn(void *arg, const struct wire_event *event);
void sim_store_create(struct sim *sim);
/* False: the broker's start fails, for a fault of its disk. */
bool sim_store_start(struct sim *sim, struct core *core);
enum muster_status sim_store_apply(struct sim *sim, const struct actions *batch);
uint64_t sim_store_mark(const struct sim *sim);
bool sim_store_is_dead(const struct sim *sim);     /* the broker cannot go on with it */
void sim_store_die(struct sim *sim, bool reboots); /* with the broker */
bool sim_store_lost_power(const struct sim *sim);
enum muster_status sim_store_events(struct sim *sim, const struct action *action,
                                    sim_store_event_fn *fn, void *arg);
bool sim_store_manifest(struct sim *sim, const struct action *action,
                        struct wire_manifest_chunk *ret_chunk);
void sim_store_query(struct sim *sim, const struct action *action, struct wire_rows *ret_rows);
void sim_store_copy(struct sim *sim);     /* keeps the files as they are now ... */
void sim_store_put_back(struct sim *sim); /* ... and opens those at the next start */
void sim_store_lose(struct sim *sim);     /* there are none */
void sim_store_free(struct sim *sim);

/* sim_store_rows.c */
struct sim_texts { /* rows as text, to be compared */
    char **items;
    size_t count;
    struct core *core; /* gets each row, too; NULL: none does */
};
void sim_texts_take(void *arg, const struct record *row); /* arg: a struct sim_texts */
void sim_texts_sort(struct sim_texts *texts);
/* False: they differ; the first that does is told. */
bool sim_texts_same(const struct sim_texts *wanted, const struct sim_texts *found,
                    const char **ret_wanted, const char **ret_found);
void sim_texts_free(struct sim_texts *texts);

/* sim_store_faults.c */
void store_fault_arm(struct sim *sim, enum sim_fault kind);
void store_fault_over(struct sim *sim, enum sim_fault kind);

/* sim_shared.c: of the broker whose turn it is */
void shared_world(struct sim *sim);                 /* the world: both wait for the lease */
void shared_waits(struct sim *sim, int64_t for_us); /* as a standby from then on */
void shared_started(struct sim *sim);               /* with the rows of the log */
/* Once a pass. False: it is not active any more. */
bool shared_holds(struct sim *sim);
void shared_send(struct sim *sim); /* its batch to the log, whose answer is broker_answered() */
void shared_died(struct sim *sim); /* its batch may be on its way */
void shared_release(struct sim *sim);
/* False: a batch of a broker that is behind the log, which nodes drop, or will. */
bool shared_is_newest(const struct sim *sim);
uint64_t shared_told(const struct sim *sim, const char *job); /* the newest event of its copy */
void shared_put_back(struct sim *sim);                        /* the log loses its last batches */
void shared_plan(struct sim *sim, int64_t work);
bool shared_fault(struct sim *sim, const struct sim_fault_plan *plan);

/* sim_broker_send.c */
void broker_lower_head(struct sim *sim, struct wire_down *head);
void broker_transmit(struct sim *sim, uint64_t route, const char *topic, struct wire_msg *message);
void broker_carry_out(struct sim *sim, const struct action *action);
void broker_publish_hints(struct sim *sim);

/* sim_broker.c */
enum sim_answer { ANSWER_WRITTEN, ANSWER_NO_ROOM, ANSWER_NOT_ACTIVE };
void broker_answered(struct sim *sim, enum sim_answer answer); /* to its batch */
void broker_begins_again(struct sim *sim, const char *why);    /* as a standby */
unsigned broker_index(const struct sim *sim);
struct sim_broker *broker_turn(struct sim *sim, unsigned index); /* whose turn it was */
void broker_start(struct sim *sim);
void broker_crash(struct sim *sim, const char *how);
void broker_receive(struct sim *sim, uint64_t route, const uint8_t *data, size_t size);
void broker_wake(struct sim *sim, int64_t at_us);
void broker_free(struct sim *sim);
int64_t broker_boot_ms(const struct sim *sim);
int64_t broker_unix_ms(const struct sim *sim);

/* sim_relay.c */
void relays_plan(struct sim *sim);
void relays_end(struct sim *sim);
/* A frame from or to a process, whose connection has that route. */
void relay_take(struct sim *sim, const struct sim_proc *proc, uint64_t route, const uint8_t *data,
                size_t size, bool up);
void relay_fault(struct sim *sim, struct sim_proc *proc, enum sim_fault kind, bool begins);

/* sim_net.c */
void net_bundle(struct sim *sim, const struct sim_event *frame, int64_t *last_us, bool up);
void net_plan(struct sim *sim);
void net_up(struct sim *sim, struct sim_proc *proc, const uint8_t *data, size_t size);
void net_down(struct sim *sim, uint64_t route, const uint8_t *data, size_t size);
void net_publish(struct sim *sim, const char *job, const uint8_t *data, size_t size);
void net_connect(struct sim *sim, struct sim_proc *proc, int64_t at_us);
void net_subscribe(struct sim *sim, struct sim_proc *proc);
void net_disconnect(struct sim *sim, struct sim_proc *proc);
void net_process_gone(struct sim_proc *proc); /* what it sent still arrives */
void net_broker_gone(struct sim *sim);
void net_broker_back(struct sim *sim);
void net_stall(struct sim *sim, struct sim_proc *proc, bool up, bool down);
void net_cut(struct sim *sim, struct sim_proc *proc, bool cut);
void net_look_at_silence(struct sim *sim, struct sim_event *event); /* from then on */

/* sim_proc.c */
struct sim_proc *proc_start(struct sim *sim, struct sim_job *job, unsigned slot,
                            int64_t created_us);
void proc_end(struct sim *sim, struct sim_proc *proc, enum sim_end end, const char *how);
void proc_frame(struct sim *sim, struct sim_proc *proc, const uint8_t *data, size_t size);
void proc_feed(struct sim *sim, struct sim_proc *proc, struct member_input *input);
void proc_freeze(struct sim *sim, struct sim_proc *proc, bool frozen);
void proc_free(struct sim_proc *proc);

/* sim_thread.c */
void sim_thread_start(struct sim *sim, struct sim_proc *proc);
void thread_look(struct sim *sim, struct sim_proc *proc); /* the view may have changed */
void thread_on_error(struct sim *sim, struct sim_proc *proc);
void thread_suspects(struct sim *sim, struct sim_proc *proc); /* its collective broke */
void thread_suspects_nobody(struct sim *sim, struct sim_proc *proc);
void thread_unstick(struct sim *sim, struct sim_proc *proc);
void thread_swept(struct sim *sim, struct sim_proc *proc);
void thread_imported(struct sim *sim, struct sim_proc *proc); /* its launch ended for that */
const char *thread_state_name(enum sim_thread_state state);

/* sim_suspects.c */
#define SIM_BROKE "a collective broke"
void suspects_plan_world(struct sim *sim);
void suspects_plan(struct sim *sim, int64_t work);
void suspects_begin(struct sim *sim, struct sim_proc *proc); /* a step, perhaps with a dead rank */
void suspects_end(struct sim *sim, const struct sim_proc *gone);   /* those in a step with it */
void suspects_asks(struct sim *sim, struct sim_proc *proc);        /* a rank begins to suspect */
void suspects_lives(struct sim *sim, const struct sim_proc *proc); /* it is told that all live */
void suspects_blamed(struct sim *sim, const struct record_generation *row); /* the first error */

/* sim_fs.c */
struct sim_shard *fs_shard(struct sim *sim, const struct sim_proc *proc, uint64_t generation,
                           uint64_t round);
struct sim_shard *fs_shard_of(struct sim *sim, uint64_t job, uint64_t generation, uint64_t round,
                              uint64_t incarnation);
struct sim_shard *fs_shard_add(struct sim *sim, const struct sim_proc *proc, uint64_t generation,
                               uint64_t round);
struct sim_dir *fs_dir(struct sim *sim, uint64_t job, uint64_t generation, uint64_t round);
void fs_manifest(struct sim *sim, struct sim_proc *proc, uint64_t generation, uint64_t round,
                 int64_t step, const uint8_t *bytes, size_t size);
void fs_discard(struct sim *sim, struct sim_proc *proc, uint64_t generation, uint64_t round);
size_t fs_manifest_bytes(uint64_t round, uint8_t *buffer, size_t offset, size_t max,
                         size_t *ret_total);
/* The state that a rank restores, told to do so at `told_us`; -1: somebody who may read any. NULL:
 * there is no whole checkpoint at `path`. */
const struct sim_shard *fs_restore(struct sim *sim, const struct sim_job *job, const char *path,
                                   uint64_t checkpoint, int rank, int64_t told_us);

/* What a power cut of that host makes of what was not synced: it is there, or not, or torn. */
void fs_forget(struct sim *sim, unsigned host);
/* All names of a job's directories are on the disk. */
void fs_sync_names(struct sim *sim, uint64_t job);
/* Before a rename of one: by whom. */
void fs_moves(struct sim *sim, const struct sim_proc *proc, struct sim_dir *dir);

/* sim_power.c */
void power_plan(struct sim *sim);
unsigned power_host(const struct sim *sim, uint64_t rank);
void power_fault(struct sim *sim, const struct sim_fault_plan *plan);
/* This process has come to it: a cut that waits for that comes now, or soon. */
void power_moment(struct sim *sim, const struct sim_proc *proc, enum sim_power_moment moment);

/* sim_job.c */
struct sim_job *sim_job_named(struct sim *sim, const char *name); /* NULL: none of them */
void job_plan(struct sim *sim);
void job_launch(struct sim *sim, struct sim_job *job);
/* The process of a slot in a generation: the one that lives, else the one that came furthest. */
struct sim_proc *job_peer(const struct sim_job *job, unsigned slot, uint64_t generation);
bool job_slot_lives(const struct sim_job *job, unsigned slot);
/* Whoever is told that a rank is stuck ends a launch whose database was restored, if it gets no
 * further: two lives of a rank may have taken part in it, and who lives waits for steps that only
 * the other took. */
void job_told_stuck(struct sim *sim, const struct record_event *row);
bool job_is_done(const struct sim_job *job); /* all ranks have finished their loops */
void job_proc_ended(struct sim *sim, struct sim_proc *proc);

/* sim_faults.c */
void faults_happen(struct sim *sim, struct sim_event *event);
void faults_stop(struct sim *sim, struct sim_event *event);
/* It strikes: what was planned and met nobody is not counted. */
void fault_met(struct sim *sim, enum sim_fault kind);
/* The same of one that lasts: what it strikes first counts. `unmet` is its process', or the
 * world's. */
void fault_met_once(struct sim *sim, uint64_t *unmet, enum sim_fault kind);
bool fault_is_notice(enum sim_fault kind);
bool fault_is_crash_of_broker(enum sim_fault kind);

/* sim_notice.c */
void notice_fault(struct sim *sim, const struct sim_fault_plan *plan, struct sim_proc *proc);
void notice_at_last_step(struct sim *sim, struct sim_proc *proc);
bool notice_is_at_the_end(const struct sim *sim); /* in this seed's world */
void notice_in_calm(struct sim *sim, struct sim_job *job);

/* sim_focus.c */
void plan_focus(struct sim *sim);

/* sim_plan.c */
void plan_faults(struct sim *sim);
void plan_add(struct sim *sim, const struct sim_fault_plan *plan);

/* sim_tool.c */
struct wire_msg tool_message(struct sim *sim, enum wire_type type, const struct sim_job *job);
/* By a connection of its own; the answer is heard by tool_hears(). */
void tool_say(struct sim *sim, const struct wire_msg *message);
void tool_request(struct sim *sim, const struct sim_fault_plan *plan);
void tool_asks(struct sim *sim, struct sim_event *event);
bool tool_forget_is_for_one_that_runs(const struct sim *sim, const struct wire_msg *message);
void tool_forget_is_refused(struct sim *sim, const struct wire_msg *message, size_t from);
void tool_gone(struct sim *sim, const struct sim_proc *proc); /* true or not */
void tool_sees_end(struct sim *sim, const struct sim_proc *proc);
void tool_hears(struct sim *sim, const struct wire_msg *message);

/* sim_check.c, sim_check_wire.c, sim_check_life.c */
void check_loaded(struct sim *sim);                           /* at a start of the broker */
bool node_is_given_up(const struct record_node *row);         /* lost or fenced */
void check_row(struct sim *sim, const struct record *record); /* before it is put into its table */
void check_batch(struct sim *sim);                            /* after a transaction */
void check_sent(struct sim *sim, const struct wire_msg *message, struct sim_proc *to);
void check_up(struct sim *sim, struct sim_proc *proc, const struct wire_msg *message);
void check_heard(struct sim *sim, struct sim_proc *proc, const struct wire_msg *message);
void check_begin(struct sim *sim, struct sim_proc *proc);
void check_waited(struct sim *sim, struct sim_proc *proc);
void check_open(struct sim *sim, struct sim_proc *proc);
void check_held(struct sim *sim, struct sim_proc *proc, const struct member_view *former);
void check_restored(struct sim *sim, struct sim_proc *proc, uint64_t checkpoint,
                    const struct sim_shard *shard);
void check_end(struct sim *sim, struct sim_proc *proc);
void check_second(struct sim *sim, struct sim_event *event); /* liveness, once a second */
void check_over(struct sim *sim);
bool runs_user_code(const struct sim_proc *proc);
bool is_to_be_ended(const struct sim *sim, const struct sim_proc *proc);

/* sim_check_bounds.c */
void bounds_pass(struct sim *sim); /* the broker's loop goes round */
void bounds_beat(struct sim *sim, struct sim_proc *proc, const struct wire_heartbeat *beat);
void check_bounds(struct sim *sim); /* once a second */
/* What the core did with a request: `before` actions of the batch are older than it. */
void check_taken_once(struct sim *sim, const struct sim_proc *proc, const struct wire_msg *message,
                      size_t before);

/* sim_check_claims.c: before the row is put into its table */
void claims_round(struct sim *sim, const struct record_round *row, const struct record_round *old);
void claims_generation(struct sim *sim, const struct record_generation *row,
                       const struct record_generation *old);
void claims_node(struct sim *sim, const struct record_node *row, const struct record_node *old);
void claims_cancelled(struct sim *sim, const struct sim_proc *to, uint64_t request);
void claims_leaves(struct sim *sim, const struct sim_notice *notice);
void claims_started(struct sim *sim, const struct record_event *row);
void claims_committed(struct sim *sim, const struct record_checkpoint *row); /* it becomes so */
void claims_lost(struct sim *sim, const struct record_event *row);
void claims_outcomes(struct sim *sim, const struct sim_proc *proc); /* with a new view */
void claims_ends(struct sim *sim, const struct sim_proc *proc);     /* with a view that ends it */
void claims_follows(struct sim *sim, const struct record_event *row);
void claims_promised(struct sim *sim, struct sim_job *job);      /* once a second in the calm */
void claims_noticed(struct sim *sim, struct sim_notice *notice); /* likewise */

/* sim_check_calm.c */
void check_rests(struct sim *sim, struct sim_job *job); /* once a second, when no fault is left */

#endif
