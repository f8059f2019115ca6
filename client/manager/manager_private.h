/* manager_private - the manager behind the public handle. client/manager*.c only. */
#ifndef CLIENT_MANAGER_PRIVATE_H
#define CLIENT_MANAGER_PRIVATE_H

#include "client/manager/manager_alone.h"
#include "client/manager/manager_list.h"
#include "client/manager/manager_policy.h"
#include "client/node/node_private.h"
#include "schema/rules/policies.h"

#include <sys/types.h>

#define MANAGER_SAVE_TIMEOUT_MS 600000
#define MANAGER_QUERY_TIMEOUT_MS 5000

struct muster_manager {
    bool read_only;
    bool restored;
    struct muster_node_options node_options; /* texts are copies, in arena */
    struct muster_node *node;                /* once it has joined */
    struct dir_names names;
    struct step_rules rules;
    int64_t save_timeout_ms;
    int64_t silence_ms; /* close stays so long for a broker that is not heard */
    bool behind;        /* saves go on behind the training */

    /* read-only */
    muster_state_t *state;
    muster_restore_fn *restore_fn;
    muster_interrupted_fn *interrupted_fn;
    void *arg;

    struct manager_source source;
    struct manager_list list;
    struct arena arena; /* of copied texts */
    char job[JOB_NAME_MAX + 1];
    char broker[BROKERS_TEXT_MAX + 1];
    char directory[PATH_BYTES_MAX + 1];
    int rank;
    bool fallback;

    int64_t passed;                /* the last step whose boundary was passed; -1 = none */
    struct muster_error undeleted; /* without a broker: the deletion that failed and was not told */
    int64_t latest;                /* the newest step that is known to be committed; -1 = none */
    int64_t failed; /* the newest whose save is known to have failed, or not to have been made; -1 =
                       none */
    bool fresh;     /* nothing was restored and no step passed: any step may be the first */
    int64_t wished; /* a function said yes of this step, and no round was opened for it yet; -1 =
                       none */
    int64_t wish_again_ms; /* CLOCK_MONOTONIC: not told again before */
    int64_t asked;         /* should_save said yes of this step; -1 = of none */
    struct manager_pending {
        uint64_t round;
        int64_t step;
    } pending[MEMBER_OUTCOMES_MAX]; /* saves whose end was not told yet, the oldest first */
    size_t pending_count;
    uint64_t unplaced;       /* waited for in vain, up to this checkpoint */
    bool deletes;            /* some were asked for: their files may not be gone yet */
    struct alone_pace alone; /* CLOCK_MONOTONIC; of a process without a broker */
    uint64_t told_start;     /* of the broker that was told the policies */
    int64_t tell_again_ms;   /* CLOCK_MONOTONIC: one that did not answer is not told again before */
    int64_t given;           /* the last step that next_checkpoint gave; -1 = none */
    char pin_id[NOTICE_ID_MAX + 1]; /* "" = nothing was pinned yet */
    pid_t pid;                      /* that opened it */
    bool closing;                   /* in muster_manager_close */
    bool keeps_newest;              /* its close is not the end of the job */
    struct keep_rules *keep;        /* NULL = all is kept, and the broker saves nothing by itself */
};

bool manager_is_gone(const struct muster_manager *manager); /* NULL, or a forked child's */
/* Returns E_ARGUMENT or E_FORKED if the manager cannot be used. */
enum muster_status manager_refuse(const struct muster_manager *manager, const char *call,
                                  struct muster_error *err);
enum muster_status manager_need_node(const struct muster_manager *manager, const char *call,
                                     struct muster_error *err);
/* Reads the list of checkpoints again. For a job that may go on alone it reads the disk if there is
 * no broker. */
enum muster_status manager_read_list(struct muster_manager *manager, struct muster_error *err);

/* The same, but waits, at most MANIFEST_WAIT_MS, until the newest has its final name, which it gets
 * a moment after its commit. So its path does not change afterwards. */
enum muster_status manager_read_placed(struct muster_manager *manager, struct muster_error *err);

/* Copies infos for a program whose structure has struct_size bytes. They live as the list does.
 * ret_all may be NULL. E_ARGUMENT, E_NOMEM. */
enum muster_status manager_give(struct muster_manager *manager,
                                const struct muster_checkpoint_info *own, size_t count,
                                size_t struct_size, const struct muster_checkpoint_info **ret_all,
                                struct muster_error *err);
enum muster_status manager_not_found(const struct muster_manager *manager, int64_t step,
                                     struct muster_error *err);
/* A reader did not find the newest checkpoint. Is it worth another try? It may have been deleted
 * for a newer one, which may not have its manifest yet. Waits a moment; *tries is 0 at first. */
bool manager_try_again(const struct muster_manager *manager, int *tries);
/* Sends an order as a tool does, so that no node is needed for it. */
enum muster_status manager_order(struct muster_manager *manager, struct wire_msg *message,
                                 struct muster_error *err);

/* manager_outcome.c. A save is pending from here on. */
void manager_outcome_add(struct muster_manager *manager, uint64_t round, int64_t step);
/* Waits for `count` pending saves from number `first` on, and settles those that ended. Of those
 * that failed the first is told now, each further one by a call of its own. E_TIMEOUT: one has not
 * ended. */
enum muster_status manager_outcome_await(struct muster_manager *manager, size_t first, size_t count,
                                         int64_t until_ms, struct muster_error *err);
/* Waits for all, save_timeout_ms at most, and silence_ms while no broker is heard. Nobody asks
 * again: of those that failed the first is returned, and each further one, or one that has not
 * ended, is in the log. */
enum muster_status manager_outcome_end(struct muster_manager *manager, struct muster_error *err);
/* Is this step captured, and neither committed nor failed yet? */
bool manager_outcome_is_open(const struct muster_manager *manager, int64_t step);

/* manager_keep.c. The policies that are the broker's; NULL if there are none. Checked by
 * step_rules_take. */
enum muster_status manager_keep_take(const struct muster_policies *policies,
                                     struct keep_rules **ret_rules, struct muster_error *err);
/* The chief tells the broker, once it has joined. */
enum muster_status manager_keep_tell(struct muster_manager *manager, struct muster_error *err);
/* ... and again where that broker has restarted since: its database may be another. Waits at
 * most FREEZE_MS for it. */
void manager_keep_tell_again(struct muster_manager *manager);
/* Alone: is a save due by time or cost? */
bool manager_keep_alone_due(const struct muster_manager *manager);
/* Alone: deletes what no policy wants; final: the newest too. With a broker and final: waits until
 * it has. */
/* A deletion that failed since the last such call; MUSTER_OK = none. */
enum muster_status manager_keep_failure(struct muster_manager *manager, struct muster_error *err);
enum muster_status manager_keep_sweep(struct muster_manager *manager, bool final,
                                      struct muster_error *err);
enum muster_status manager_keep_delete_alone(struct muster_manager *manager,
                                             const struct muster_checkpoint_info *info,
                                             struct muster_error *err);

#endif
