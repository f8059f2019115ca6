/* node_options - what muster_node_open was asked for: options first, the environment for what they
 * leave unset, then defaults; each value checked before anything is opened. */
#include "client/node/node_private.h"
#include "client/node/options_take.h"
#include "client/query/query_address.h"

#include "node/notice/identity.h"
#include "node/notice/usual.h"
#include "schema/error.h"
#include "schema/number.h"
#include "schema/paths.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESTART_CODE_DEFAULT 42 /* as TensorFlow on Borg */
#define WATCHER_PERIOD_MS 1000  /* as TensorFlow's watcher thread */
#define OPEN_TIMEOUT_MS 60000

static const char *node_options_environment(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum muster_status node_options_copy_text(char *buffer, size_t size, const char *what,
                                                 const char *value, struct muster_error *err)
{
    size_t length = strlen(value);

    if (length >= size)
        return error_set(err, MUSTER_E_ARGUMENT, "%s is longer than %zu bytes: \"%.100s...\"", what,
                         size - 1, value);
    memcpy(buffer, value, length + 1);
    return MUSTER_OK;
}

static enum muster_status node_options_take_identity(struct muster_node *node,
                                                     struct muster_error *err)
{
    const struct muster_node_options *o = &node->options;
    struct identity identity = {.rank = 0};
    enum muster_status status;
    const char *job = o->job;

    if ((o->rank >= 0) != (o->world_size > 0))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "options give %s without %s; give both, or neither to take them from the "
                         "launcher's environment",
                         o->rank >= 0 ? "rank" : "world_size",
                         o->rank >= 0 ? "world_size" : "rank");
    status = identity_read((const char *const *)environ, &identity, err);
    if (o->rank >= 0) { /* the environment is asked for the job's name only */
        if (status != MUSTER_OK)
            identity.job[0] = '\0';
        identity.rank = o->rank;
        identity.world_size = o->world_size;
    } else if (status != MUSTER_OK)
        return status;
    else
        memcpy(node->identity_note, identity.note, sizeof node->identity_note);
    node->rank = identity.rank;
    node->world_size = identity.world_size;
    if (job == NULL)
        job = identity.job[0] != '\0' ? identity.job : node_options_environment("MUSTER_JOB");
    if (job == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "this job has no name; start it by `muster run`, or set option job or "
                         "MUSTER_JOB");
    if (!wire_job_name_ok(job))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "\"%.100s\" cannot be a job's name; use 1 to %d of A-Z a-z 0-9 . _ -, not "
                         "beginning with . or -",
                         job, JOB_NAME_MAX);
    return node_options_copy_text(node->job, sizeof node->job, "the job's name", job, err);
}

static enum muster_status node_options_check_place(struct muster_node *node,
                                                   struct muster_error *err)
{
    enum muster_role role = node->options.role;

    if (node->world_size < 1 || node->world_size > WORLD_SIZE_MAX)
        return error_set(err, MUSTER_E_WORLD_SIZE, "world size %d is not between 1 and %d",
                         node->world_size, WORLD_SIZE_MAX);
    if (node->rank < 0 || node->rank >= node->world_size)
        return error_set(err, MUSTER_E_RANK, "rank %d is not inside the world of %d; use 0 to %d",
                         node->rank, node->world_size, node->world_size - 1);
    if (role < MUSTER_ROLE_DEFAULT || role > MUSTER_ROLE_EVALUATOR)
        return error_set(err, MUSTER_E_ARGUMENT, "option role has no such value (%d)", (int)role);
    if (node->options.layout < MUSTER_LAYOUT_DEFAULT ||
        node->options.layout > MUSTER_LAYOUT_SHARDED)
        return error_set(err, MUSTER_E_ARGUMENT, "option layout has no such value (%d)",
                         (int)node->options.layout);
    if (role == MUSTER_ROLE_DEFAULT)
        role = node->rank == 0 ? MUSTER_ROLE_CHIEF : MUSTER_ROLE_WORKER;
    node->role = role == MUSTER_ROLE_CHIEF    ? ROLE_CHIEF
                 : role == MUSTER_ROLE_WORKER ? ROLE_WORKER
                 : role == MUSTER_ROLE_PS     ? ROLE_PS
                                              : ROLE_EVALUATOR;
    node->layout =
        node->options.layout == MUSTER_LAYOUT_SHARDED ? LAYOUT_SHARDED : LAYOUT_REPLICATED;
    if (node->layout == LAYOUT_REPLICATED && node->options.state != NULL)
        return state_refuse_own(node->options.state, MUSTER_E_ARGUMENT, err);
    return MUSTER_OK;
}

static enum muster_status node_options_take_places(struct muster_node *node,
                                                   struct muster_error *err)
{
    const char *dir = node->options.checkpoint_dir;
    const char *broker = node->options.broker;
    enum muster_status status;

    if (gethostname(node->host, sizeof node->host - 1) != 0)
        memcpy(node->host, "unknown", sizeof "unknown");
    if (dir == NULL)
        dir = node_options_environment("MUSTER_CHECKPOINT_DIR");
    if (dir == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "nobody says where checkpoints go; set option checkpoint_dir or "
                         "MUSTER_CHECKPOINT_DIR to one directory for all ranks");
    status = node_options_copy_text(node->checkpoint_dir, sizeof node->checkpoint_dir,
                                    "the checkpoint directory's path", dir, err);
    if (status != MUSTER_OK)
        return status;
    if (broker == NULL)
        broker = node_options_environment("MUSTER_BROKER");
    if (broker != NULL) {
        status = query_address_check(broker, err);
        return status != MUSTER_OK ? status
                                   : node_options_copy_text(node->broker, sizeof node->broker,
                                                            "the broker's address", broker, err);
    }
    if (!paths_default_endpoint((unsigned)geteuid(), getenv("XDG_RUNTIME_DIR"), node->broker))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "XDG_RUNTIME_DIR is too long for a socket; set MUSTER_BROKER");
    return MUSTER_OK;
}

int node_options_restart_code(void)
{
    const char *text = node_options_environment("MUSTER_RESTART_CODE");
    long code = text != NULL ? strtol(text, NULL, 10) : 0;

    return code < 1 || code > 255 || code == EXIT_CODE_NO_RESTART ? RESTART_CODE_DEFAULT
                                                                  : (int)code;
}

static enum muster_status node_options_take_restart_code(struct muster_node *node,
                                                         struct muster_error *err)
{
    const char *text = node_options_environment("MUSTER_RESTART_CODE");
    int64_t code = node->options.termination.restart_code;

    if (code == 0 && text != NULL && !number_read(text, 1, 255, &code))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "MUSTER_RESTART_CODE is \"%.40s\"; give a number from 1 to 255", text);
    if (code == 0)
        code = RESTART_CODE_DEFAULT;
    if (code < 1 || code > 255)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "termination.restart_code is %d; give a number from 1 to 255", (int)code);
    if (code == EXIT_CODE_NO_RESTART)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the restart code is %d, which tells `muster run` not to restart; give "
                         "another number from 1 to 255",
                         EXIT_CODE_NO_RESTART);
    node->options.termination.restart_code = (int)code;
    return MUSTER_OK;
}

/* For the operator who starts a job again beside a damaged checkpoint, without a change to its
 * program. */
static enum muster_status node_options_take_fallback(struct muster_node *node,
                                                     struct muster_error *err)
{
    const char *text = node_options_environment("MUSTER_FALLBACK");

    if (text != NULL && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return error_set(err, MUSTER_E_ARGUMENT, "MUSTER_FALLBACK is \"%.40s\"; give 0 or 1", text);
    node->options.restore_fallback |= text != NULL && text[0] == '1';
    return MUSTER_OK;
}

static enum muster_status node_options_take_sources(struct muster_node *node,
                                                    struct muster_error *err)
{
    const char *text = node->options.termination.sources;
    enum muster_status status;

    if (text == NULL)
        text = node_options_environment("MUSTER_NOTICE_SOURCES");
    status = sources_parse(text, &node->sources, err);
    if (status == MUSTER_OK)
        status = sources_check_environment(err);
    node->options.termination.sources = NULL; /* it was borrowed for the call */
    return status;
}

static enum muster_status node_options_check_snapshot(const struct muster_node *node,
                                                      struct muster_error *err)
{
    const struct muster_node_options *o = &node->options;

    if (o->save_behind && o->termination.save_fn != NULL && o->snapshot_fn == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "save_behind with termination.save_fn needs a snapshot_fn: save_fn writes "
                         "while training changes the state");
    if (o->snapshot_release_fn != NULL && o->snapshot_fn == NULL)
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "snapshot_release_fn is set without snapshot_fn; set both, or snapshot_fn alone");
    return MUSTER_OK;
}

static enum muster_status node_options_take_termination(struct muster_node *node,
                                                        struct muster_error *err)
{
    struct muster_termination_config *t = &node->options.termination;

    enum muster_status status = node_options_check_snapshot(node, err);

    if (status != MUSTER_OK)
        return status;
    if ((t->save_fn != NULL) != (t->restore_fn != NULL))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "termination.save_fn and restore_fn belong together; set both or neither");
    if (t->save_fn == NULL && node->options.state == NULL && node->role != ROLE_EVALUATOR)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "there is nothing to save; set option state, or termination.save_fn and "
                         "restore_fn");
    if (t->grace_period_ms < -1 || t->watcher_period_ms < 0 ||
        (t->on_preempted != MUSTER_PREEMPTED_EXIT && t->on_preempted != MUSTER_PREEMPTED_RETURN))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "termination: grace_period_ms (%lld), watcher_period_ms (%lld) or "
                         "on_preempted (%d) is out of range",
                         (long long)t->grace_period_ms, (long long)t->watcher_period_ms,
                         (int)t->on_preempted);
    if (t->watcher_period_ms == 0)
        t->watcher_period_ms = WATCHER_PERIOD_MS;
    for (size_t i = 0; i < NODE_SIGNALS_MAX && t->signals[i] > 0; i++)
        node->signals[node->signal_count++] = t->signals[i];
    if (t->signals[0] == 0)
        node->signal_count = usual_signals((const char *const *)environ, node->signals);
    return node_options_take_restart_code(node, err);
}

static enum muster_status node_options_take_timeouts(struct muster_node *node,
                                                     struct muster_error *err)
{
    struct muster_node_options *o = &node->options;
    struct {
        const char *name;
        int64_t *value;
        int64_t otherwise;
    } all[] = {
        {"connect_timeout_ms", &o->connect_timeout_ms, paths_connect_ms(node->broker)},
        {"open_timeout_ms", &o->open_timeout_ms, OPEN_TIMEOUT_MS},
        {"join_timeout_ms", &o->join_timeout_ms, JOIN_TIMEOUT_MS},
        {"abort_timeout_ms", &o->abort_timeout_ms, STUCK_MS},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i].value < 0 || *all[i].value > INT32_MAX)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "option %s is %lld; give 0 (the default) to %d milliseconds",
                             all[i].name, (long long)*all[i].value, INT32_MAX);
        if (all[i].value == &o->join_timeout_ms)
            node->join_timeout_default = o->join_timeout_ms == 0;
        if (*all[i].value == 0)
            *all[i].value = all[i].otherwise;
    }
    if (o->save_every_steps < 0)
        return error_set(err, MUSTER_E_ARGUMENT, "option save_every_steps is %lld; give 0 or more",
                         (long long)o->save_every_steps);
    return MUSTER_OK;
}

enum muster_status node_configure(struct muster_node *node,
                                  const struct muster_node_options *options,
                                  struct muster_error *err)
{
    enum muster_status status = node_options_take(options, &node->options, err);

    if (status == MUSTER_OK)
        status = node_options_take_identity(node, err);
    if (status == MUSTER_OK)
        status = node_options_check_place(node, err);
    if (status == MUSTER_OK)
        status = node_options_take_places(node, err);
    if (status == MUSTER_OK)
        status = node_options_take_termination(node, err);
    if (status == MUSTER_OK)
        status = node_options_take_fallback(node, err);
    if (status == MUSTER_OK)
        status = node_options_take_sources(node, err);
    if (status == MUSTER_OK)
        status = node_options_take_timeouts(node, err);
    node->options.job = node->job; /* the caller's strings were borrowed for the call */
    node->options.broker = node->broker;
    node->options.checkpoint_dir = node->checkpoint_dir;
    return status;
}
