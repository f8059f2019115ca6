/* local - one process alone, without a broker (option offline_ok, world size 1).
 * Owns: a notice's way to the boundary that the plan (local_plan.h) chooses, the save there, the
 * choice of what to resume from, and <root>/.muster/LOCAL, in which the measured times outlive the
 * process. Never: more than one rank; a broker, once it has begun without one. A checkpoint that it
 * writes is a directory with a manifest like any other, so a later life with a broker can import
 * it. Threads as in agent.h. */
#ifndef NODE_LOCAL_H
#define NODE_LOCAL_H

#include "node/agent/agent_save.h"
#include "node/gate.h"
#include "node/notice/sources.h"

struct local;

struct local_options {
    struct save_target save; /* its pointers are borrowed until local_destroy */
    bool (*watch)(void *arg);
    void (*log)(int level, const char *text, void *arg);
    bool (*interrupted)(void *arg); /* NULL = nobody is asked; the thread that saves */
    /* Of the end that is announced, at each look at it, and of a checkpoint. Neither may wait. */
    void (*announced)(enum wire_notice_kind kind, int64_t deadline_boot_ms, void *arg);
    void (*committed)(int64_t step, void *arg);
    void *arg;     /* of watch and interrupted */
    void *log_arg; /* of log, announced and committed */
    int64_t watch_period_ms;
    const int *signals;
    size_t signal_count;
    const struct source_list *sources; /* borrowed for open; NULL = none */
    int64_t save_every_steps;
    int64_t grace_period_ms; /* -1 = as the notice says */
    bool save_on_notice;
};

/* Reads what checkpoints there are and starts to watch for notices. E_NOMEM, E_BUSY, E_IO,
 * E_ARGUMENT. */
enum muster_status local_open(const struct local_options *options, struct local **ret_local,
                              struct muster_error *err);
void local_destroy(struct local **local); /* NULL-safe */
struct gate *local_gate(struct local *local);

struct local_resume {
    int64_t step; /* 0: begin from the start */
    char path[FS_PATH_MAX];
};
/* The newest checkpoint with a manifest, whole or damaged, and a step below `below` (INT64_MAX:
 * any). One that was committed and has no name yet gets it before. */
enum muster_status local_find_resume(struct local *local, int64_t below,
                                     struct local_resume *ret_resume, struct muster_error *err);
void local_restored(struct local *local, int64_t step); /* opens the gate */

/* The slow path of a boundary: as agent_boundary. MUSTER_PREEMPTED: leave; what was saved is in
 * the text. E_INTERRUPTED: a save was broken off; local_fail ends what is left. */
enum muster_status local_boundary(struct local *local, bool begin, void *call_arg,
                                  struct muster_error *err);
/* For the supervisor, once it has left: why it was preempted, or which saves of this life failed.
 * "": nothing. */
#define LOCAL_SAYS_SIZE 600
void local_words(struct local *local, char ret_text[LOCAL_SAYS_SIZE + 64]);
/* As agent_give_state. */
void local_give_state(struct local *local, const struct muster_state *state);
/* As agent_set_facts, but of all saves from here on. */
enum muster_status local_set_facts(struct local *local, const char *metrics, const char *custom,
                                   struct muster_error *err);
/* A manager's boundary after the step that makes it `done` steps, as agent_end_step. */
struct local_end {
    int64_t done;
    bool want, ask;
    void *call_arg;
};
enum muster_status local_end_step(struct local *local, const struct local_end *end, bool *ret_saves,
                                  struct muster_error *err);
/* Was the caller told to save the step that it stands at, and has it not done so yet? */
bool local_is_turn(const struct local *local);
enum muster_status local_step_failed(struct local *local, int code, struct muster_error *err);
enum muster_status local_after_failure(struct local *local, struct muster_error *err);
void local_count_step(struct local *local);
void local_set_position(struct local *local, int64_t epoch, int64_t step_in_epoch,
                        int64_t data_position);

/* Any thread. */
void local_fail(struct local *local, int code, const char *text);
/* The deadline of the notice that comes first, in boot time, and its kind; NOTICE_NONE: none
 * stands. Any thread. */
enum wire_notice_kind local_announced(struct local *local, int64_t *ret_deadline_boot_ms);

void local_notify(struct local *local, enum wire_notice_kind kind, int64_t left_ms,
                  const char *text); /* left_ms -1: unknown */
int64_t
local_save_step(struct local *local); /* once it is time to save: the step in flight; else -1 */

#endif
