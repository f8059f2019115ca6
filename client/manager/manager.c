/* manager - opening, closing, and what there is; see manager.h. */
#include "client/manager/manager_private.h"
#include "client/node/options_take.h"
#include "client/query/query_place.h"

#include "node/clock.h"
#include "schema/error.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DIRECTORY_LOOK_MS 100

/* --- refusals --------------------------------------------------------------------------------- */

/* This holds for a reader, too: its connection and its pins are the parent's. */
bool manager_is_gone(const struct muster_manager *manager)
{
    return manager == NULL ||
           (manager->node != NULL ? gate_forked(manager->node->gate) : manager->pid != getpid());
}

enum muster_status manager_refuse(const struct muster_manager *manager, const char *call,
                                  struct muster_error *err)
{
    if (manager == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: manager is NULL; open one with muster_manager_open", call);
    return error_set(err, MUSTER_E_FORKED, "%s: this process was forked from the manager's; %s",
                     call, muster_status_advice(MUSTER_E_FORKED));
}

enum muster_status manager_need_node(const struct muster_manager *manager, const char *call,
                                     struct muster_error *err)
{
    if (manager_is_gone(manager))
        return manager_refuse(manager, call, err);
    if (manager->read_only)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "%s: this manager is read-only; open one with option node to save", call);
    if (!manager->restored)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s: call muster_manager_restore before the first step, also when nothing "
                         "is saved yet",
                         call);
    return MUSTER_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

static enum muster_status manager_contradiction(struct muster_error *err, const char *text)
{
    return error_set(err, MUSTER_E_ARGUMENT, "muster_manager_open: %s", text);
}

static enum muster_status manager_check_timeout(const char *name, int64_t ms,
                                                struct muster_error *err)
{
    if (ms >= 0 && ms <= INT_MAX)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_ARGUMENT,
                     "muster_manager_open: %s is %lld; give 0 (the usual) to %d milliseconds", name,
                     (long long)ms, INT_MAX);
}

static enum muster_status manager_check_options(const struct muster_manager_options *o,
                                                struct muster_error *err)
{
    enum muster_status status;

    if (o->name_digits < 0 || o->name_digits > DIR_PADDING_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_manager_open: name_digits is %d; give 0 to %d", o->name_digits,
                         DIR_PADDING_MAX);
    if (o->name_prefix != NULL && !dir_prefix_ok(o->name_prefix))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_manager_open: name_prefix is \"%.60s\"; use at most %d letters, "
                         "digits, _ and -, not ending with a digit",
                         o->name_prefix, DIR_PREFIX_MAX);
    status = manager_check_timeout("save_timeout_ms", o->save_timeout_ms, err);
    if (status == MUSTER_OK)
        status = manager_check_timeout("query_timeout_ms", o->query_timeout_ms, err);
    if (status == MUSTER_OK)
        status = manager_check_timeout("directory_timeout_ms", o->directory_timeout_ms, err);
    if (status != MUSTER_OK)
        return status;
    if (o->node == NULL && o->policies != NULL)
        return manager_contradiction(
            err, "policies are given without a node; a read-only manager saves and "
                 "deletes nothing");
    if (o->node == NULL && o->checkpoint_dir == NULL && o->job == NULL)
        return manager_contradiction(err,
                                     "neither a node to save with nor a checkpoint_dir or a job to "
                                     "read is given");
    if (o->node == NULL && o->broker != NULL && o->job == NULL)
        return manager_contradiction(err,
                                     "a broker is given without a job; which one is to be read?");
    if (o->node != NULL && (o->broker != NULL || o->job != NULL || o->checkpoint_dir != NULL ||
                            o->state != NULL || o->restore_fn != NULL || o->interrupted_fn != NULL))
        return manager_contradiction(err,
                                     "broker, job, checkpoint_dir, state, restore_fn and "
                                     "interrupted_fn are for a read-only manager; with a node they "
                                     "stand in its options");
    if (o->node != NULL && (o->node->save_every_steps != 0 || o->node->restore_later))
        return manager_contradiction(
            err, "the node's save_every_steps and restore_later are the manager's; "
                 "use a policy, and muster_manager_restore");
    if (o->node != NULL && o->node->role > MUSTER_ROLE_WORKER)
        return manager_contradiction(
            err, "the node's role takes no part in steps; a manager with a node is for "
                 "a chief and workers, one that only reads has no node");
    if (o->state != NULL && o->restore_fn != NULL)
        return manager_contradiction(
            err, "both state and restore_fn are given; a checkpoint is restored by "
                 "one of them");
    return MUSTER_OK;
}

static enum muster_status manager_keep_text(struct muster_manager *manager, const char **text,
                                            struct muster_error *err)
{
    if (*text == NULL)
        return MUSTER_OK;
    *text = arena_strdup(&manager->arena, *text);
    return *text != NULL ? MUSTER_OK : error_set(err, MUSTER_E_NOMEM, "no memory for a manager");
}

/* With a node the process counts as failed, as after an interrupt in any other wait of the node. */
static bool manager_is_interrupted(void *arg)
{
    const struct muster_manager *m = arg;

    if (m->node != NULL && m->node->agent != NULL)
        return agent_is_interrupted(m->node->agent);
    if (m->node_options.interrupted_fn != NULL)
        return m->node_options.interrupted_fn(m->node_options.arg);
    return m->interrupted_fn != NULL && m->interrupted_fn(m->arg);
}

/* The options of the node, checked now: a wrong one is told here, not at the restore. */
static enum muster_status manager_take_node(struct muster_manager *manager,
                                            const struct muster_node_options *options,
                                            struct muster_error *err)
{
    struct muster_node_options *own = &manager->node_options;
    struct muster_node *probe = calloc(1, sizeof *probe);
    enum muster_status status;

    if (probe == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for a manager; free some");
    status = node_configure(probe, options, err);
    if (status == MUSTER_OK) {
        *own = probe->options;
        own->termination.sources = options->termination.sources;
        own->termination.restart_code = options->termination.restart_code;
        own->rank = options->rank;
        own->world_size = options->world_size;
        memcpy(manager->job, probe->job, sizeof manager->job);
        memcpy(manager->broker, probe->broker, sizeof manager->broker);
        memcpy(manager->directory, probe->checkpoint_dir, sizeof manager->directory);
        own->job = manager->job;
        own->broker = manager->broker;
        own->checkpoint_dir = manager->directory;
        if (probe->join_timeout_default)
            own->join_timeout_ms = 0;
        own->restore_later = false;
        manager->behind = own->save_behind;
        own->restore_fallback |= manager->fallback;
        manager->rank = probe->rank;
        status = manager_keep_text(manager, &own->termination.sources, err);
    }
    free(probe);
    manager->source = (struct manager_source){.broker = manager->broker,
                                              .job = manager->job,
                                              .directory = manager->directory,
                                              .interrupted = manager_is_interrupted,
                                              .interrupted_arg = manager};
    return status;
}

/* The job that makes the directory may start after its reader. */
static enum muster_status manager_await_directory(struct muster_manager *manager,
                                                  const struct muster_manager_options *options,
                                                  struct muster_error *err)
{
    const struct timespec pause = {.tv_nsec = DIRECTORY_LOOK_MS * 1000000L};
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + options->directory_timeout_ms;

    while (!fs_is_dir(options->checkpoint_dir)) {
        if (clock_ms(CLOCK_MONOTONIC) >= until_ms)
            return error_set(err, MUSTER_E_NOT_FOUND,
                             "there is no directory %.600s; give the job's checkpoint directory",
                             options->checkpoint_dir);
        if (manager_is_interrupted(manager))
            return error_set(err, MUSTER_E_INTERRUPTED,
                             "the wait for directory %.600s was broken off",
                             options->checkpoint_dir);
        nanosleep(&pause, NULL);
    }
    return MUSTER_OK;
}

static enum muster_status manager_take_reader(struct muster_manager *manager,
                                              const struct muster_manager_options *options,
                                              struct muster_error *err)
{
    const char *broker = options->broker;
    char endpoint[ENDPOINT_MAX + 1];
    enum muster_status status;

    if (broker == NULL && options->checkpoint_dir == NULL) {
        broker = getenv("MUSTER_BROKER");
        if (broker == NULL || broker[0] == '\0')
            broker = query_place_broker(endpoint) ? endpoint : NULL;
        if (broker == NULL)
            return manager_contradiction(err,
                                         "a job is given, no broker runs on this host, and neither "
                                         "option broker nor MUSTER_BROKER names one elsewhere");
    }
    manager->read_only = true;
    manager->state = options->state;
    manager->restore_fn = options->restore_fn;
    manager->interrupted_fn = options->interrupted_fn;
    manager->arg = options->arg;
    manager->source = (struct manager_source){.broker = broker,
                                              .job = options->job,
                                              .directory = options->checkpoint_dir,
                                              .interrupted = manager_is_interrupted,
                                              .interrupted_arg = manager,
                                              .readable_only = true};
    status = manager_keep_text(manager, &manager->source.broker, err);
    if (status == MUSTER_OK)
        status = manager_keep_text(manager, &manager->source.job, err);
    if (status == MUSTER_OK)
        status = manager_keep_text(manager, &manager->source.directory, err);
    if (status == MUSTER_OK && broker == NULL)
        status = manager_await_directory(manager, options, err);
    return status;
}

/* The caller's structures, and those that they point to, as this library knows them. */
struct given {
    struct muster_manager_options options;
    struct muster_node_options node;
    struct muster_policies policies;
};

static enum muster_status manager_take_given(const struct muster_manager_options *options,
                                             struct given *ret_given, struct muster_error *err)
{
    struct muster_manager_options *own = &ret_given->options;
    enum muster_status status = manager_options_take(options, own, err);

    if (status == MUSTER_OK && own->node != NULL) {
        status = node_options_take(own->node, &ret_given->node, err);
        own->node = &ret_given->node;
    }
    if (status == MUSTER_OK && own->policies != NULL) {
        status = policies_take(own->policies, &ret_given->policies, err);
        own->policies = &ret_given->policies;
    }
    return status;
}

static enum muster_status manager_take_options(struct muster_manager *manager,
                                               const struct muster_manager_options *options,
                                               struct muster_error *err)
{
    enum muster_status status = manager_check_options(options, err);

    if (status == MUSTER_OK)
        status = step_rules_take(options->policies, &manager->rules, err);
    if (status == MUSTER_OK)
        status = manager_keep_take(options->policies, &manager->keep, err);
    if (status != MUSTER_OK)
        return status;
    manager->fallback = options->fallback;
    manager->save_timeout_ms =
        options->save_timeout_ms > 0 ? options->save_timeout_ms : MANAGER_SAVE_TIMEOUT_MS;
    manager->silence_ms = START_GRACE_MS;
    manager->names = (struct dir_names){.padding = options->name_digits, .offset = -1};
    if (options->name_prefix != NULL)
        memcpy(manager->names.prefix, options->name_prefix, strlen(options->name_prefix) + 1);
    status = options->node != NULL ? manager_take_node(manager, options->node, err)
                                   : manager_take_reader(manager, options, err);
    manager->source.timeout_ms =
        options->query_timeout_ms > 0 ? (int)options->query_timeout_ms : MANAGER_QUERY_TIMEOUT_MS;
    if (options->node != NULL && manager->node_options.connect_timeout_ms > 0 &&
        manager->node_options.connect_timeout_ms < manager->source.timeout_ms)
        manager->source.timeout_ms = (int)manager->node_options.connect_timeout_ms;
    return status;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static void manager_free(struct muster_manager *manager)
{
    manager_source_close(&manager->source);
    manager_list_free(&manager->list);
    arena_free(&manager->arena);
    free(manager->keep);
    free(manager);
}

enum muster_status muster_manager_open(const struct muster_manager_options *options,
                                       muster_manager_t **ret_manager,
                                       struct muster_error *ret_error)
{
    struct muster_manager *manager;
    struct given given;
    enum muster_status status;

    if (ret_manager == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_manager_open: ret_manager is NULL; give the address of a handle");
    manager = calloc(1, sizeof *manager);
    if (manager == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for a manager; free some");
    arena_init(&manager->arena, 0);
    manager_list_init(&manager->list);
    manager->pid = getpid();
    manager->passed = manager->latest = manager->failed = manager->asked = manager->given =
        manager->wished = -1;
    status = manager_take_given(options, &given, ret_error);
    if (status == MUSTER_OK)
        status = manager_take_options(manager, &given.options, ret_error);
    if (status == MUSTER_OK)
        *ret_manager = manager;
    else
        manager_free(manager);
    return status;
}

/* The job is done saving: deletes what no policy wants, the newest too. Returns an error for what
 * cannot be deleted. Work that is left for the next launch only costs disk space. */
static enum muster_status manager_sweep_last(struct muster_manager *m, struct muster_error *err)
{
    struct member_view view = {.mode = VIEW_OPEN};
    struct muster_error why;

    if (m->node->agent != NULL)
        agent_view(m->node->agent, &view);
    if (view.mode != VIEW_OPEN || member_view_ends(&view) || gate_is_closed(m->node->gate))
        return MUSTER_OK; /* it is told to end, or has: the newest is what it resumes from */
    if (manager_keep_sweep(m, true, &why) == MUSTER_OK)
        return MUSTER_OK;
    node_log(m->node, 1, "%s", why.text);
    return manager_keep_failure(m, err);
}

/* Pins end with their lease, but it is better to end them now. */
static void manager_unpin_all(struct muster_manager *m)
{
    struct wire_msg message = {.type = WIRE_UNPIN, .u.unpin = {.id = m->pin_id}};

    if (m->pin_id[0] != '\0')
        manager_order(m, &message, NULL);
}

/* *ret_saves: how the last saves went. An error of leaving the job is returned before it. */
static enum muster_status manager_leave_job(struct muster_manager *m, int code,
                                            enum muster_status *ret_saves, struct muster_error *err)
{
    struct muster_error saves_why, why;
    enum muster_status left;

    *ret_saves = manager_outcome_end(m, &saves_why);
    if (*ret_saves != MUSTER_OK)
        node_log(m->node, 1, "%s", saves_why.text);
    /* a launch that comes after a failed save begins from the newest there is */
    else if (code == 0 && !m->keeps_newest && m->failed <= m->latest)
        *ret_saves = manager_sweep_last(m, &saves_why);
    left = muster_node_close(&m->node, code, &why);
    error_pass(err, *ret_saves, &saves_why);
    return error_pass(err, left, &why);
}

enum muster_status muster_manager_close(muster_manager_t **manager, int code,
                                        struct muster_error *ret_error)
{
    struct muster_manager *m = manager != NULL ? *manager : NULL;
    enum muster_status status = MUSTER_OK, left = MUSTER_OK;

    if (m == NULL)
        return MUSTER_OK;
    /* of the parent: nothing is freed. In its close the node's gate may be gone already */
    if (m->closing ? m->pid != getpid() : manager_is_gone(m)) {
        *manager = NULL;
        return manager_refuse(m, "muster_manager_close", ret_error);
    }
    if (m->closing) /* by an atexit handler of a process that leaves in here */
        return MUSTER_OK;
    m->closing = true;
    if (!m->source.broken_off) /* who broke a question off waits for no other */
        manager_unpin_all(m);
    if (m->node != NULL)
        left = manager_leave_job(m, code, &status, ret_error);
    *manager = NULL; /* not before: a save that is written behind finds the node by it */
    manager_free(m);
    return left != MUSTER_OK ? left : status;
}

void muster_manager_keep_newest(muster_manager_t *manager)
{
    if (manager != NULL)
        manager->keeps_newest = true;
}

muster_node_t *muster_manager_node(const muster_manager_t *manager)
{
    return manager == NULL ? NULL : manager->node;
}

/* --- what there is ---------------------------------------------------------------------------- */

enum muster_status manager_read_list(struct muster_manager *manager, struct muster_error *err)
{
    struct manager_source disk = manager->source;
    bool alone = manager->node != NULL && manager->node->local != NULL;
    enum muster_status status = MUSTER_E_BROKER;

    if (!alone)
        status = manager_list_read(&manager->list, &manager->source, err);
    if (!alone && (status != MUSTER_E_BROKER || manager->node != NULL || manager->read_only ||
                   !manager->node_options.offline_ok))
        return status;
    disk.broker = NULL;
    if (!fs_is_dir(disk.directory)) /* made when the job is joined */
        return MUSTER_OK;
    return manager_list_read(&manager->list, &disk, err);
}

enum muster_status muster_manager_reload(muster_manager_t *manager, struct muster_error *ret_error)
{
    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_reload", ret_error);
    return manager_read_list(manager, ret_error);
}

enum muster_status muster_manager_all_steps(muster_manager_t *manager,
                                            const struct muster_checkpoint_info **ret_all,
                                            size_t *ret_count, size_t struct_size,
                                            struct muster_error *ret_error)
{
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_all_steps", ret_error);
    status = manager_read_placed(manager, ret_error);
    if (status != MUSTER_OK)
        return status;
    status = manager_give(manager, manager->list.items, manager->list.count, struct_size, ret_all,
                          ret_error);
    if (status == MUSTER_OK && ret_count != NULL)
        *ret_count = manager->list.count;
    return status;
}

enum muster_status muster_manager_latest_step(muster_manager_t *manager, int64_t *ret_step,
                                              struct muster_error *ret_error)
{
    const struct muster_checkpoint_info *newest;
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_latest_step", ret_error);
    status = manager_read_list(manager, ret_error);
    if (status != MUSTER_OK)
        return status;
    newest = manager_list_newest(&manager->list);
    if (newest == NULL)
        return error_set(ret_error, MUSTER_E_NOT_FOUND,
                         "nothing is saved yet of job %s: there is no latest step",
                         manager->source.job != NULL ? manager->source.job : "(any)");
    if (ret_step != NULL)
        *ret_step = newest->step;
    return MUSTER_OK;
}
