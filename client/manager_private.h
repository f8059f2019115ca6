/* manager_private - the manager behind the public handle. client/manager*.c only. */
#ifndef CLIENT_MANAGER_PRIVATE_H
#define CLIENT_MANAGER_PRIVATE_H

#include "client/manager_list.h"
#include "client/manager_policy.h"
#include "client/node_private.h"

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

    /* read-only */
    muster_state_t *state;
    muster_restore_fn *restore_fn;
    void *arg;

    struct manager_source source;
    struct manager_list list;
    struct arena arena; /* of copied texts */
    char job[JOB_NAME_MAX + 1];
    char broker[ENDPOINT_MAX + 1];
    char directory[PATH_BYTES_MAX + 1];
    int rank;
    bool fallback;

    int64_t passed; /* the last step whose boundary was passed; -1 = none */
    int64_t latest; /* the newest step that is known to be committed; -1 = none */
    bool fresh;     /* nothing was restored and no step passed: any step may be the first */
    int64_t asked;  /* should_save said yes of this step; -1 = of none */
    uint64_t round; /* of a save whose end was not told yet; 0 = none */
};

bool manager_is_gone(const struct muster_manager *manager); /* NULL, or a forked child's */
/* E_ARGUMENT or E_FORKED of such a one. */
enum muster_status manager_refuse(const struct muster_manager *manager, const char *call,
                                  struct muster_error *err);
enum muster_status manager_need_node(const struct muster_manager *manager, const char *call,
                                     struct muster_error *err);
/* Reads the list of checkpoints anew; of a job that may go on alone, from the disk if there is no broker. */
enum muster_status manager_read_list(struct muster_manager *manager, struct muster_error *err);

#endif
