/* sim_keep - what a world with policies has beside the others: what its jobs keep and when the
 * broker saves for them, readers that pin, deletions by the chief's hand, an operator who imports.
 * Such worlds draw from a stream of chance of their own, so that all the others stay as they are.
 * Part of sim_world.h. */
#ifndef TESTS_SIM_SIM_KEEP_H
#define TESTS_SIM_SIM_KEEP_H

#include "schema/wire/wire.h"

#define OF_IMPORT (UINT64_C(1) << 42) /* in the numbers of these requests */

struct sim;
struct sim_job;
struct sim_proc;
struct sim_dir;
struct sim_event;
struct record_checkpoint;
struct record_round;
struct wire_msg;

/* The checker has its own idea of what each rule means (sim_check_keep.c). */
#define SIM_RULES_MAX 3
enum sim_rule_kind {
    RULE_LATEST,
    RULE_EVERY,
    RULE_NEAR,
    RULE_EVERY_MS,
    RULE_BEST,
    RULE_STEPS,
    RULE_LAST_MS,
    RULE_KIND_COUNT,
    RULE_CLOSEST /* some that are drawn as RULE_EVERY */
};
struct sim_rule {
    enum sim_rule_kind kind;
    int64_t number, from, most;
    bool greatest, unmeasured;
};

struct sim_keeps { /* of a job */
    struct sim_rule rules[SIM_RULES_MAX];
    unsigned rules_count;
    const char *keep_text, *save_text, *trash;
    int64_t interval_ms; /* no save policy asks for a save sooner; 0 = nobody can say */
    bool wishes;         /* the chief's own function wants saves */
    bool sweeps;         /* the chief says that it saves no more */
    /* the operator */
    bool stopped;              /* nothing is launched until what is on disk was imported */
    bool hasty;                /* ... or it is imported while whoever runs, runs */
    struct sim_proc *importer; /* ... by this one, not by the operator */
    int64_t stopped_us, asked_us;
    uint64_t request;              /* of the part that is under way, 0 = none is */
    int64_t last_step, last_round; /* of the manifest before */
    size_t dir;                    /* whose manifest is on its way */
    size_t offset;
    unsigned missing_times; /* launches that found their checkpoint gone */
    uint64_t missing;       /* that one, 0 = none is */
    /* for the checker */
    uint64_t final_generation; /* in which the chief said that it saves no more */
    int64_t save_begun_unix_ms;
    uint64_t late; /* a checkpoint that is to go, and since when */
    int64_t late_us;
};

enum sim_ask {
    ASK_NOTHING,
    ASK_POLICIES,
    ASK_WISH,
    ASK_SWEEP,
    ASK_FINAL,
    ASK_DROP,
    ASK_PIN,
    ASK_UNPIN,
    ASK_COUNT
};
struct sim_asks { /* of a process: one at a time */
    unsigned wanted;
    enum sim_ask asked;
    uint64_t answered; /* of the view, when it was asked */
    bool begun, swept;
    int64_t sweeps_until_us;
    uint64_t pinned;
};

struct sim_reader { /* a tool that pins what it reads: `muster pin`, `muster verify`, a manager that
                       only reads */
    unsigned job;
    const char *id;
    uint64_t number;  /* that it was told, 0 = not yet */
    uint64_t request; /* that was not answered yet */
    int64_t lease_ms, asked_us, reads_until_us;
    int64_t held_until_us; /* as it believes; 0 = it does not */
    uint64_t starts;       /* of the broker, when it was told so */
    int64_t wall_offset_ms;
    bool over;
};

struct sim_drop { /* what was asked to be deleted whatever the policies say */
    unsigned job;
    uint64_t number;
    bool newest;
};

/* sim_keep.c */
void keeps_plan_world(struct sim *sim);
void keeps_plan_job(struct sim *sim, struct sim_job *job);
void keeps_look(struct sim *sim, struct sim_proc *proc); /* the view may have changed */
/* True: the chief is not to leave yet; its loop comes here again when it may. */
bool keeps_sweep_first(struct sim *sim, struct sim_proc *proc);
void keeps_calm(struct sim *sim);
/* The metrics of a state, "" = none: all of them differ. */
const char *keeps_metrics(struct sim *sim, int64_t step);
bool keeps_measure(int64_t step, double *ret_value);

/* sim_delete.c */
void delete_begin(struct sim *sim, struct sim_proc *proc, uint64_t generation, uint64_t checkpoint);

/* sim_reader.c */
void reader_comes(struct sim *sim, struct sim_event *event);
void readers_calm(struct sim *sim);
void readers_hear(struct sim *sim, const struct wire_msg *message);
void readers_forget(struct sim *sim); /* the database is not the one that they were answered from */
/* The pins for good of who does not believe to hold it. */
void readers_let_go(struct sim *sim, const struct sim_job *job, uint64_t number);
void drop_said(struct sim *sim, unsigned job, uint64_t number, bool newest);
/* A checkpoint of the job that is committed, by chance; 0 = there is none. */
uint64_t some_checkpoint(struct sim *sim, const struct sim_job *job);

/* sim_import.c */
void import_keep_manifest(struct sim *sim, struct sim_dir *dir, uint64_t round,
                          const uint8_t *bytes, size_t size);
void import_lose_database(
    struct sim *sim); /* all jobs are stopped, the broker's database is gone */
void import_hear(struct sim *sim, const struct wire_msg *message);
void import_hastily(struct sim *sim);
/* A launch found its checkpoint gone. True: the operator has stopped the job, and launches it
 * later. */
bool import_first(struct sim *sim, struct sim_job *job);
/* Rank 0 looks (R11.6), and imports what it found when its launch has ended for that; then
 * thread_imported. False: there is nobody who could, now. */
bool import_is_newer(struct sim *sim, const struct sim_job *job, int64_t step);
bool import_by_rank(struct sim *sim, struct sim_proc *proc);
bool import_is_gone(struct sim *sim, const struct sim_proc *proc, uint64_t checkpoint);
void import_missing(struct sim *sim, const struct sim_proc *proc, uint64_t checkpoint);

/* sim_check_keep.c */
/* An import found a later launch that had begun before it. */
bool check_is_imported(const struct sim *sim, const char *job, uint64_t round);
/* A row goes from committed to deleting: may it? */
void check_deletion(struct sim *sim, const struct record_checkpoint *row);
/* One goes that does not count: may it? */
void check_left_behind(struct sim *sim, const struct record_checkpoint *row);
void check_deleted(struct sim *sim, const struct record_checkpoint *row);
void check_delete_sent(struct sim *sim, const struct wire_msg *message);
void check_resume_sent(struct sim *sim, const struct wire_msg *message, const struct sim_proc *to);
void check_taken_out(struct sim *sim, const struct sim_job *job, const struct sim_dir *dir);
void check_listing(struct sim *sim, const struct sim_job *job);
void check_converges(struct sim *sim, struct sim_job *job); /* once a second */
void check_period(struct sim *sim, const struct record_round *row);
void check_imported(struct sim *sim, const struct sim_job *job, const struct sim_dir *dir);

#endif
