/* local_state - a process without a broker, as its own files know it.
 * Owns: the struct behind local.h, and the calls between local.c (notices, boundaries) and
 * local_save.c (the directory). */
#ifndef NODE_LOCAL_STATE_H
#define NODE_LOCAL_STATE_H

#include "node/agent/agent_tell.h"
#include "node/local/local.h"
#include "node/local/local_plan.h"
#include "node/notice/watch.h"

#include <pthread.h>

struct local {
    struct gate *gate;
    struct local_options options;
    uint64_t generation;
    uint64_t round;
    int left_fd;                /* see local_left.h; -1 = not held */
    int64_t began_step;         /* what this life resumed from */
    int64_t turn_step, turn_ms; /* the caller saves this step since then; turn_ms 0: it does not */
    int64_t saved_step;         /* restored from or saved: there is nothing newer to save at it */
    int64_t epoch, step_in_epoch, data_position;
    char *metrics, *custom;                 /* NULL = none */
    const struct muster_state *given_state; /* what is saved; NULL: options.save.state */
    struct safetensors_watch saving;        /* of the save that is made */
    struct interrupt interrupt;
    unsigned saves_failed; /* of this life, and the last of them */
    char save_failed[LOCAL_SAYS_SIZE];

    pthread_mutex_t mutex;
    struct muster_error end; /* status != OK: what every boundary returns */
    struct local_plan plan;
    bool frozen;   /* it is time: the next boundary saves and leaves */
    bool save_now; /* save_on_notice: the next boundary saves and goes on */
    bool stop;

    struct tell *tell; /* for the watching thread's lines: a log that blocks keeps no notice back */
    struct watch *watch;
    int wake_fd;
    pthread_t thread;
    bool thread_started;
    char said[LOCAL_PLAN_TEXT]; /* the plan that was logged last; the watching thread's */
};

/* local.c */
/* The training thread's lines. */
void local_say(const struct local *local, int level, const char *text);

/* local_save.c. Training thread. */
/* The record that is there: the generation of this life, and the times that former ones measured.
 */
enum muster_status local_look_at_root(struct local *local, struct muster_error *err);
/* Saves the state at `done`; blocks for the disk. */
enum muster_status local_save(struct local *local, void *call_arg, const char *cause,
                              char ret_path[FS_PATH_MAX], struct muster_error *err);

#endif
