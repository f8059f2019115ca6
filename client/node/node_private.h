/* node_private - the node behind the public handle. client/node*.c only.
 * Either agent or local is set: with a broker, or alone. */
#ifndef CLIENT_NODE_PRIVATE_H
#define CLIENT_NODE_PRIVATE_H

#include <muster/node.h>

#include "client/node/node_events.h"
#include "node/agent/agent.h"
#include "node/agent/supervised.h"
#include "node/local/local.h"

#include <stdatomic.h>
#include <sys/types.h>

#define NODE_SIGNALS_MAX 8

/* The wishes of a manager for its node, besides the options. */
struct node_wish {
    struct dir_names names;
    int64_t resume_done; /* restore the checkpoint of so many steps; newer ones are given up; -1:
                            the newest */
    struct muster_node **opened; /* set before the restore, whose callbacks may tell a failure by
                                    it; NULL again if the open fails */
};

struct muster_node {
    struct gate *gate; /* the agent's or local's */
    /* training thread: why a boundary is refused at once */
    int hold_depth;
    bool scope_open;
    atomic_bool failed; /* muster_node_fail was called, by any thread */
    bool interrupted;   /* a wait of its program was broken off */

    struct agent *agent;
    bool left_behind; /* a thread of an agent that is gone still uses all of this */
    struct local *local;
    struct muster_node_options options; /* strings are copies: the buffers below */
    char broker[BROKERS_TEXT_MAX + 1];
    char job[JOB_NAME_MAX + 1];
    char host[HOST_MAX + 1];
    char checkpoint_dir[PATH_BYTES_MAX + 1];
    char signer[SIGNER_MAX + 1]; /* of the key file: the key that signs its manifests; "": none */
    int rank;
    int world_size;
    enum wire_role role;
    enum wire_layout layout;
    uint64_t incarnation;
    int signals[NODE_SIGNALS_MAX];
    size_t signal_count;
    struct source_list sources;
    char identity_note[256];
    int log_level;             /* lines above it are not told; -1 = none is */
    bool join_timeout_default; /* the option was 0 */
    bool restored;
    pid_t closing; /* the process that is in muster_node_close, 0 = none */
    bool exited;   /* exit_fn was called and returned */
    struct node_wish wish;
    bool told; /* a call returned that the job is being terminated, or called exit_fn for it */
    struct supervised supervised;
    struct node_seen seen; /* of it events were made; the agent's thread, or the watching one */
    char save_error[SAVE_WHY_SIZE]; /* of the callback that runs, by the thread that runs it */
    int64_t resumed_step;
    struct dir_made made;                        /* by this open, of the checkpoint directory */
    uint64_t resumed_checkpoint;                 /* 0 = none */
    int64_t epoch, step_in_epoch, data_position; /* of the restored checkpoint */
};

/* Fills node from options and environment. E_ARGUMENT, E_RANK: the text says which value is wrong,
 * and why. */
enum muster_status node_configure(struct muster_node *node,
                                  const struct muster_node_options *options,
                                  struct muster_error *err);
int node_options_restart_code(void); /* as the environment has it, else 42 */

/* muster_node_open for a manager; wish NULL: without a manager. */
enum muster_status node_open(const struct muster_node_options *options,
                             const struct node_wish *wish, muster_node_t **ret_node,
                             struct muster_error *err);

/* A manager's boundary (node.c): refused, and left by the exit policy, as every other. */
enum muster_status node_end_step(struct muster_node *node, const struct agent_end *end,
                                 struct agent_ended *ret_ended, struct muster_error *err);

void node_end_agent(struct muster_node *node);
void node_free(struct muster_node *node); /* unless a thread was left behind with it */
struct muster_error
node_shown_error(const struct muster_node *node,
                 const struct muster_error *error); /* step: as its user counts */

/* Restores the resume checkpoint; once. */
enum muster_status node_restore(struct muster_node *node, struct muster_error *err);

/* For the chief of a launch that begins after `resume` steps. E_RESTORE: newer checkpoints are
 * there that the broker never heard of; *ret_imports: the broker's own database wrote them. Blocks
 * for the disk and, if there are such checkpoints, for the broker's answer. *ret_over: the launch,
 * or this process, ended meanwhile, and the status is the one that every boundary returns. */
enum muster_status node_check_lost(const struct muster_node *node, int64_t resume, bool *ret_over,
                                   bool *ret_imports, struct muster_error *err);
/* After *ret_imports, when the launch has ended: gives the broker the manifests that its database,
 * an older copy, does not know. Blocks for the disk and the broker, join_timeout_ms at most.
 * MUSTER_OK: the next launch goes on from the newest, or tries again. E_RESTORE: the broker refused
 * the newest, and the next launch would fail in the same way. */
enum muster_status node_import(const struct muster_node *node, struct muster_error *err);
/* For query_link_set_over and a node with an agent: true if the answer is no longer needed. */
bool node_is_over(const void *node);

/* Removes in the background what dead launches left unfinished. Waits only if there is something */
void node_clear_left(struct muster_node *node);

/* If a call's status is E_INTERRUPTED, the other ranks learn that this one failed. For any other
 * status it does nothing.
 */
void node_note_interrupt(struct muster_node *node, enum muster_status status);

/* The exit policy (node.c). Returns with policy RETURN, or when exit_fn did. */
void node_leave_process(struct muster_node *node);

/* An error that ends the node: into the supervisor's error file. Nothing else counts as one: not a
 * refused call, a preemption, a call in a forked child. */
void node_tell_error(struct muster_node *node, const struct muster_error *error);

/* Which lines are logged: those that MUSTER_LOG names; else all to options.log, or errors and
 * warnings to stderr. E_ARGUMENT: no such level. */
enum muster_status node_log_configure(struct muster_node *node, struct muster_error *err);
bool node_logs(const struct muster_node *node);              /* false: nothing of any level */
void node_log_line(int level, const char *text, void *node); /* any thread */
void node_log(const struct muster_node *node, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
