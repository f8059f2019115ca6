/* sim - whole clusters on a virtual clock: the broker's core and the nodes' cores as they are, with
 * a simulated disk, network, training loop and supervisor around them. One seed decides everything.
 * Owns: one world a call. Never: a thread, a clock, a socket, global state between two calls.
 *
 * A seed has a safety phase (faults of any kind) and a liveness phase (they stop; all must
 * converge). The invariants I1-I12 of PROTOCOL.md are checked as the world goes (sim_check.c). */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "schema/wire/wire.h"
#include "tests/sim/sim_truth.h"

#include <stdio.h>

#define SIM_REASONS_MAX (MUSTER_E_NOT_SAVED + 1)

/* Each is counted when it strikes, not when its time comes: one that lasts by what it strikes
 * first. */
enum sim_fault {
    FAULT_NOTHING,
    FAULT_NODE_CRASH,
    FAULT_NODE_FREEZE,
    FAULT_THREAD_STUCK,
    FAULT_STEP_FAILS,
    FAULT_SAVE_FAILS,
    FAULT_SAVE_SLOW,
    FAULT_SAVE_HANGS, /* longer than its bound */
    FAULT_RESTORE_FAILS,
    FAULT_MANIFEST_FAILS,
    FAULT_BROKER_IDLE, /* the broker crashes between two passes */
    FAULT_BROKER_BEFORE_COMMIT,
    FAULT_BROKER_AFTER_COMMIT,
    FAULT_BROKER_BETWEEN_SENDS,
    FAULT_BROKER_REBOOT, /* its machine: boot times mean nothing any more */
    FAULT_BROKER_FREEZE,
    FAULT_DATABASE_OLD, /* the broker starts from a copy that was made some time ago */
    FAULT_DISK_FULL,
    FAULT_PUB_DROPS_ALL,
    FAULT_PUB_DROPS_SOME,
    FAULT_PUB_STALLS,
    FAULT_CUT_NODE, /* its connections are cut and come back with another route */
    FAULT_CUT_ALL,
    FAULT_STALL_UP, /* one-way: frames arrive when it is over */
    FAULT_STALL_DOWN,
    FAULT_STALL_BOTH,
    FAULT_NOTICE,
    FAULT_NOTICE_SHORT, /* less time than a save takes */
    FAULT_NOTICE_ALL,
    FAULT_NOTICE_RANK_0,
    FAULT_NOTICE_EARLIER, /* a second one, whose deadline is earlier */
    FAULT_NOTICE_WITHDRAWN,
    FAULT_NOTICE_TOOL,
    FAULT_OPERATOR_SAVE,
    FAULT_TOOL_ASKS, /* questions, one after another */
    FAULT_WALL_JUMP,
    FAULT_GONE_WRONG, /* a supervisor says that a process is gone which lives */
    FAULT_TWIN,       /* a second process comes for a rank whose first one still lives */
    FAULT_SAVE_LONG,  /* for minutes, and goes on all the while: in worlds made for it alone */
    FAULT_DISK_SLOW,  /* a transaction of the broker takes seconds, again and again: likewise */
    FAULT_RELAY_DIES, /* with what it holds: in worlds with relays alone, as the next */
    FAULT_RELAY_STALLS,
    FAULT_HOST_CUT, /* the power of a host with ranks, with what they had not synced: likewise */
    /* In worlds with two brokers and one log. */
    FAULT_LOG_CUT,   /* the active broker does not reach it */
    FAULT_LOG_SLOW,  /* batches and answers are on their way for seconds */
    FAULT_LOG_DOUBT, /* a batch is written, and the answer is lost */
    FAULT_HAND_OVER, /* the active broker is told to end */
    /* In worlds with policies alone. */
    FAULT_DELETE_FAILS,       /* EIO */
    FAULT_HAND_DIES,          /* the process that deletes, somewhere in it */
    FAULT_HAND_FREEZES,       /* it goes on with it later */
    FAULT_BROKER_IN_DELETION, /* the broker dies where it writes or tells one */
    FAULT_DATABASE_LOST,      /* and the manifests on disk are what is left */
    /* Of single frames, in a part of the worlds. A late one is overtaken by others. */
    FAULT_UP_LOST,
    FAULT_UP_TWICE,
    FAULT_UP_LATE,
    FAULT_DOWN_LOST,
    FAULT_DOWN_TWICE,
    FAULT_DOWN_LATE,
    FAULT_PUB_TWICE,
    FAULT_PUB_LATE,
    /* With SQLite as the disk, in one of the calls that it makes to its file system. */
    FAULT_STORE_IO,   /* EIO */
    FAULT_STORE_TORN, /* half a write, then EIO */
    FAULT_STORE_SYNC, /* a sync fails: nobody knows what is on the disk */
    FAULT_STORE_FULL, /* no room for a while: ENOSPC, EDQUOT, half a write */
    FAULT_STORE_KILL, /* the broker dies in the middle of a transaction, or of its start */
    FAULT_STORE_CUT,  /* so does its machine: what was not synced is lost, kept or torn */
    FAULT_COUNT
};
#define FAULT_CHANCE_LAST FAULT_TWIN
#define FAULT_KEEP_FIRST FAULT_DELETE_FAILS
#define FAULT_STORE_FIRST FAULT_STORE_IO
#define STORE_FAULTS (FAULT_COUNT - FAULT_STORE_FIRST)
const char *sim_fault_name(unsigned fault);

/* Why rounds were aborted, by the words of the reason. */
enum sim_reason {
    REASON_NOBODY,
    REASON_SHARDED_LOST, /* these before REASON_LOST and its like, whose words they contain */
    REASON_SHARDED_FINISHED,
    REASON_SHARDED_FAILED,
    REASON_SHARDED_LEFT,
    REASON_FREEZE,
    REASON_WAY,
    REASON_SAVE_SLOW,
    REASON_MARGIN_REPORT,
    REASON_MARGIN_SAVE,
    REASON_LOST,
    REASON_FAILED,
    REASON_FINISHED,
    REASON_LEFT,
    REASON_PAST, /* before REASON_BEYOND */
    REASON_BEYOND,
    REASON_BROKEN_OFF,
    REASON_SAVE_FAILED,
    REASON_RESTART,
    REASON_NEXT_GENERATION,
    REASON_UNREACHABLE,
    REASON_OLDER,
    REASON_COUNT
};
const char *sim_reason_words(unsigned reason);

/* When a termination's round was frozen, by the words of its plan. */
enum sim_plan_why {
    PLANNED_ASKED,
    PLANNED_UNMEASURED, /* a save was assumed; before the next two, whose words it contains */
    PLANNED_PASSED,     /* before PLANNED_LATE, whose words it contains */
    PLANNED_LATE,
    PLANNED_NO_MORE, /* a rank is gone that the save needs, or whose step cannot be finished */
    PLANNED_BEFORE,  /* the round was open for another cause */
    PLANNED_COUNT
};
const char *sim_plan_words(unsigned why);

/* What a process does when a notice reaches it. */
enum sim_moment {
    MOMENT_JOINING, /* nobody has answered its HELLO */
    MOMENT_STARTUP, /* it waits, or restores, before the first step of its launch */
    MOMENT_STEP,
    MOMENT_LAST_STEP,
    MOMENT_SAVE, /* or its writer is still busy with one */
    MOMENT_LEAVING,
    MOMENT_COUNT
};
const char *sim_moment_name(unsigned moment);

/* Must-fail controls: what the driver or the training loop does wrong on purpose. */
enum sim_mutation {
    MUTANT_NONE,
    MUTANT_NO_GUARD,           /* the slow path forgets its begun < S test */
    MUTANT_PUBLISH_FIRST,      /* sends go out before the transaction */
    MUTANT_TORN_BATCH,         /* a crash may leave half a transaction */
    MUTANT_SAVES_LATE,         /* the training loop saves a step later than told */
    MUTANT_SAVES_LATE_SAYS_SO, /* ... and SAVED tells that step: the broker must not take it */
    MUTANT_FORGETS_DECISION,   /* a start of the broker reads decided rounds as undecided ... */
    MUTANT_FORGETS_ROUND,      /* ... does not read open rounds ... */
    MUTANT_FORGETS_CHECKPOINT, /* ... nor the newest checkpoint ... */
    MUTANT_FORGETS_EPOCH,      /* ... nor how often the broker was started */
    MUTANT_LOSES_BATCH,        /* a crash takes the last transaction along, as without a sync */
    MUTANT_NO_TIMERS,          /* the broker's core is never told that time passes */
    MUTANT_NO_ORDER,           /* a node acts on events as they come */
    MUTANT_WRONG_ERROR,        /* nodes are told of another rank's failure than the first */
    MUTANT_DISCARDS_EARLY, /* a shard is deleted when the node goes on, not when its round aborts */
    MUTANT_NO_SYNC,        /* synchronous=OFF (with SQLite as the disk) under power cuts */
    MUTANT_DELETES_IN_PLACE, /* a checkpoint's files go before its name does */
    MUTANT_FORGETS_DELETION, /* a start of the broker reads what is being deleted as committed .. */
    MUTANT_FORGETS_PINS,     /* ... and no pins */
    MUTANT_NEVER_DELETED,    /* nobody says that something was deleted */
    MUTANT_LOSES_IMPORT,     /* what was imported is not written */
    MUTANT_DOES_NOT_LOOK,    /* rank 0 goes on beside newer checkpoints that nobody knows */
    MUTANT_NEVER_AGAIN,      /* rank 1 is not started again */
    MUTANT_SAVED_UNSYNCED,   /* under power cuts: SAVED is said before the shard is synced, ... */
    MUTANT_NAMED_UNSYNCED,   /* ... MANIFEST_DONE before the checkpoint's name is, ... */
    MUTANT_REMOVED_UNSYNCED, /* ... its files go before the name that it lost is */
    MUTANT_RANKS_MIXED_UP,   /* a relay gives its ranks each other's messages, */
    MUTANT_HALF_A_BUNDLE,    /* ... or what is in front of the cut in one is taken */
    /* With a shared log: */
    MUTANT_NO_FENCE,      /* it takes any broker's batch, ... */
    MUTANT_FENCE_APART,   /* ... or asks whose it is before it is written, not in one */
    MUTANT_OWN_CLOCK,     /* a lease ends by the clock of the broker that renews it */
    MUTANT_READS_REPLICA, /* a take-over reads a log that is a batch behind */
    /* With collectives that break: */
    MUTANT_BLAMES_ITSELF, /* a rank whose collective broke asks nobody, */
    MUTANT_ALL_LIVE,      /* ... is told at once that all others live, */
    MUTANT_NEVER_TOLD,    /* ... or never */
    /* With programs that save by themselves: */
    MUTANT_TURN_TRAINS, /* one trains a step in its turn, and saves what came of it */
    MUTANT_COUNT
};

/* A world of one job and one notice: what the test sets, in ms and percent, and what came of it. */
struct sim_grace {
    int64_t step_ms, save_ms;
    unsigned jitter;    /* of both, either way */
    unsigned growth;    /* each save takes so much longer than the one before */
    int64_t slow_times; /* the step in flight at the planned freeze takes so many times as long, 0 =
                           once */
    int64_t
        broker_down_ms; /* the broker dies just before that freeze, for so long; 0 = it does not */
    int64_t notice_ms, left_ms;
    bool stands; /* each process of each launch is told of that deadline, as by a notice file */
    int64_t frozen_ms, committed_ms, not_saved_ms; /* -1 = never */
    int64_t named_rank;                            /* of "not saved" */
    int64_t opened_ms, resume_step;                /* of the launch that is under way */
    bool gained;                                   /* it has committed a step, or finished */
    unsigned launches;                             /* under the notice, with time to train */
    char plan[512];                                /* of the freeze */
    bool slowed;
};

enum sim_with { SIM_BY_SEED, SIM_WITH, SIM_WITHOUT };

struct sim_options {
    uint64_t seed;
    bool sqlite;   /* broker/store is the disk */
    bool focused;  /* nearly every world is one of those made for rare outcomes */
    bool put_back; /* every world's database is restored from a copy */
    bool hasty; /* what is on disk is imported at once then, whoever runs, and lost databases stop
                   nobody */
    bool slow_disk;          /* every world's broker has one, for a while */
    bool shared;             /* two brokers, of which one is active, over one log */
    bool power_cuts;         /* of every world's hosts, now and then (sim_power.c) */
    bool relays;             /* every host has one (sim_relay.c) */
    bool suspects;           /* collectives break, and ranks suspect one another (sim_suspects.c) */
    bool turns;              /* programs save by themselves (sim_save.c) */
    bool lasting;            /* loops outlast the faults, but in worlds whose matter is their end */
    bool healthy;            /* no faults but notices and saves that are asked for */
    unsigned nodes;          /* 0 = the seed decides */
    enum wire_layout layout; /* LAYOUT_NONE = the seed decides */
    int async;               /* -1 = the seed decides */
    enum sim_with keeps;     /* policies, pins, deletions, imports */
    const char *world; /* one that is made for a control, by its name (sim_focus.c); NULL = none */
    enum sim_mutation mutation;
    struct sim_grace *grace; /* NULL = none */
    FILE *story;             /* one line an event; NULL = none */
    sim_over_fn *over_fn;    /* hears what the world did (sim_truth.h); NULL = nobody does */
    void *over_arg;
};

struct sim_stats {
    uint64_t seeds;
    uint64_t events;
    uint64_t simulated_ms;
    uint64_t nodes;
    uint64_t steps;
    uint64_t launches;
    uint64_t generations;
    uint64_t rounds;
    uint64_t commits;
    uint64_t commits_of[CAUSE_COUNT];
    uint64_t aborts;
    uint64_t aborts_by[SIM_REASONS_MAX]; /* by status */
    uint64_t reasons[REASON_COUNT];
    uint64_t moves[ROUND_STATE_COUNT][ROUND_STATE_COUNT];
    uint64_t plans[PLANNED_COUNT];
    uint64_t behind;                /* saves written behind training */
    uint64_t gone_told, gone_lived; /* supervisors' words, and those that were about somebody */
    uint64_t unchanged;
    uint64_t not_saved;
    uint64_t skipped;
    uint64_t notices;
    uint64_t notices_ample; /* of them: after the faults, with time enough */
    uint64_t ample_saved, ample_aborted, ample_over;
    uint64_t jobs;
    uint64_t steps_short, steps_long, jobs_large; /* of 1 ms or less, of a minute; 64 ranks */
    uint64_t shared;                              /* worlds of several jobs */
    uint64_t strides, uneven; /* jobs: several steps in a call; ranks that finish early */
    uint64_t observers;
    uint64_t between_strides; /* saves that were due in the middle of such a call */
    uint64_t noticed[MOMENT_COUNT];
    uint64_t holds;
    uint64_t queries, rows;
    uint64_t bundles, bundled; /* and messages in them */
    uint64_t bundles_cut;      /* half of one came: nothing of it may be taken */
    uint64_t bundles_halved;   /* a relay left half of the messages out */
    uint64_t suspects[2];      /* ranks whose collective broke: all others lived, or one was dead */
    uint64_t turns, turns_beside, turns_again, turns_over, turns_failed; /* of such programs */
    uint64_t suspects_all_live, suspects_unanswered; /* what came of it, where nobody was blamed */
    uint64_t collectives_broken;                     /* though all lived */
    uint64_t histories_lost;
    uint64_t launches_anew;              /* opened after that, with no history but this one */
    uint64_t keeping;                    /* worlds with policies */
    uint64_t deletions, deletions_asked; /* decided, and those of them that somebody asked for */
    uint64_t deleted, drops, pins, imports, imports_by_rank;
    uint64_t cut_shards, cut_names, cut_deletions; /* that power cuts took back */
    uint64_t faults_planned, faults_met;
    uint64_t thaws;
    uint64_t snapshots;
    uint64_t broker_starts;
    uint64_t takeovers, overtaken; /* leases taken from another; brokers that lived on */
    uint64_t refused;              /* batches by the fence */
    uint64_t late_joins;           /* decided saves of another cause that a notice joined */
    uint64_t late;                 /* batches that were written when their broker was dead */
    uint64_t process_exits_by_agent;
    uint64_t rested;                     /* jobs that came to rest after the faults */
    uint64_t restless_us, restless_seed; /* the one that took longest for it */
    uint64_t steps_lost;                 /* work that was done twice */
    uint64_t faults[FAULT_COUNT];
    uint64_t messages[WIRE_TYPE_MAX];
    uint64_t emitted[EVENT_KIND_COUNT];
    uint64_t ends[SIM_REASONS_MAX]; /* statuses with which training loops ended */
};

struct sim_failure {
    char invariant[16]; /* "I1", "liveness", ... */
    char text[600];
    int64_t at_ms;
};

/* Runs one seed to its end; adds to *stats. False: an invariant was broken, see *ret_failure. */
bool sim_run(const struct sim_options *options, struct sim_stats *stats,
             struct sim_failure *ret_failure);

void sim_stats_print(const struct sim_stats *stats, FILE *out);
/* Runs the seed once more and prints the last lines of its story. */
void sim_print_story(const struct sim_options *options, size_t lines, FILE *out);
/* The arguments of muster-sim that mean these options; size: some 200 bytes. */
void sim_arguments(const struct sim_options *options, char *text, size_t size);
/* Names the world that runs when a core aborts the process. */
void sim_guard_aborts(void);
/* A world that takes more seconds of this process's own time ends the process, and is named. */
void sim_limit_worlds(unsigned seconds);

#endif
