/* node_open - joining the job: directory, agent or local mode, restore; and the way back. */
#include "client/node/node_private.h"
#include "client/query/query_door.h"

#include "node/link_key.h"
#include "node/started.h"
#include "schema/error.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what the supervisor is told -------------------------------------------------------------- */

static struct supervised_facts node_facts(const struct muster_node *node)
{
    return (struct supervised_facts){.job = node->job,
                                     .role = wire_role_name(node->role),
                                     .host = node->host,
                                     .broker = node->broker,
                                     .rank = node->rank,
                                     .world_size = node->world_size,
                                     .generation =
                                         node->gate != NULL ? muster_node_generation(node) : 0,
                                     .incarnation = node->incarnation};
}

struct muster_error node_shown_error(const struct muster_node *node,
                                     const struct muster_error *error)
{
    struct muster_error shown = *error;

    shown.step += error->step > 0 ? node->wish.names.offset : 0;
    return shown;
}

void node_tell_error(struct muster_node *node, const struct muster_error *error)
{
    const struct supervised_facts facts = node_facts(node);

    const struct muster_error shown = node_shown_error(node, error);

    if (error->status == MUSTER_OK || error->status == MUSTER_PREEMPTED)
        return;
    supervised_error(&node->supervised, &facts, &shown);
}

/* --- callbacks: from the node's form to the user's -------------------------------------------- */

static struct muster_save_context node_open_save_context(const struct muster_node *node,
                                                         const struct save_order *order,
                                                         const char *dir)
{
    return (struct muster_save_context){.struct_size = sizeof(struct muster_save_context),
                                        .directory = dir,
                                        .step = order->step,
                                        .generation = order->generation,
                                        .round = order->round,
                                        .rank = node->rank,
                                        .world_size = node->world_size,
                                        .call_arg = order->call_arg,
                                        .arg = node->options.arg,
                                        .snapshot = order->snapshot};
}

static int node_open_call_save_fn(const struct save_order *order, const char *dir, void *arg)
{
    const struct muster_node *node = arg;
    const struct muster_save_context context = node_open_save_context(node, order, dir);

    return node->options.termination.save_fn(&context);
}

static int node_open_call_snapshot_fn(const struct save_order *order, void **ret_snapshot,
                                      void *arg)
{
    const struct muster_node *node = arg;
    const struct muster_save_context context = node_open_save_context(node, order, NULL);

    return node->options.snapshot_fn(&context, ret_snapshot);
}

static int node_open_call_state_check_fn(void *arg)
{
    const struct muster_node *node = arg;

    return node->options.state_check_fn(node->options.arg);
}

static void node_open_take_save_error(char ret_text[SAVE_WHY_SIZE], void *arg)
{
    struct muster_node *node = arg;

    memcpy(ret_text, node->save_error, SAVE_WHY_SIZE);
    node->save_error[0] = '\0';
}

static void node_open_call_release_fn(void *snapshot, void *arg)
{
    const struct muster_node *node = arg;

    node->options.snapshot_release_fn(snapshot, node->options.arg);
}

static int node_open_call_restore_fn(void *arg, const struct shard_found *found)
{
    struct muster_node *node = arg;
    const struct muster_restore_context context = {.struct_size = sizeof context,
                                                   .directory = found->dir,
                                                   .step = found->step,
                                                   .rank = node->rank,
                                                   .world_size = node->world_size,
                                                   .arg = node->options.arg,
                                                   .checkpoint_directory = found->checkpoint_dir,
                                                   .saved_world_size = (int)found->world_size};

    node->save_error[0] = '\0';
    return node->options.termination.restore_fn(&context);
}

static struct save_target node_open_save_target(struct muster_node *node)
{
    return (struct save_target){
        .root = node->checkpoint_dir,
        .job = node->job,
        .layout = node->layout,
        .rank = (uint64_t)node->rank,
        .world_size = (uint64_t)node->world_size,
        .incarnation = node->incarnation,
        .names = node->wish.names,
        .state = node->options.state,
        .check = node->options.state_check_fn != NULL ? node_open_call_state_check_fn : NULL,
        .hook = node->options.termination.save_fn != NULL ? node_open_call_save_fn : NULL,
        .take = node->options.snapshot_fn != NULL ? node_open_call_snapshot_fn : NULL,
        .release = node->options.snapshot_release_fn != NULL ? node_open_call_release_fn : NULL,
        .why = node_open_take_save_error,
        .hook_arg = node};
}

/* --- restoring -------------------------------------------------------------------------------- */

/* An older copy of the broker's database lists what was deleted since; or the whole directory is
 * away. */
static enum muster_status node_open_is_gone(const struct muster_node *node, const char *path,
                                            struct muster_error *err)
{
    return error_set_code(
        err, MUSTER_E_RESTORE, ENOENT,
        "checkpoint %.1100s was not restored at rank %d: it is not there. If it was moved or is "
        "not "
        "mounted, put that right; if the broker's database was restored from an older copy, run "
        "`muster import %.1100s`, which takes what is there, and start the job again",
        path, node->rank, node->checkpoint_dir);
}

/* The directory was moved, or is mounted at another place, since the broker wrote down its path.
 * The checkpoint is the one of that name in this job's directory, if it proves to be this one */
static bool node_open_is_moved(const struct muster_node *node, const char *path,
                               char ret_path[FS_PATH_MAX])
{
    const char *name = strrchr(path, '/');

    return node->agent != NULL && name != NULL && !fs_is_dir(path) &&
           fs_path(ret_path, NULL, "%s%s", node->checkpoint_dir, name) == MUSTER_OK &&
           strcmp(ret_path, path) != 0 && fs_is_dir(ret_path);
}

/* May an older checkpoint be whole where this one is not? If the program does not fit or fails, the
 * checkpoint is not at fault: going back would only lose work. */
static bool node_open_is_damage(enum muster_status status, const char *path)
{
    char manifest[FS_PATH_MAX];

    if (status == MUSTER_E_RESTORE) /* it is "unfinished", its manifest was lost */
        return fs_path(manifest, NULL, "%s/" MANIFEST_FILE_NAME, path) == MUSTER_OK &&
               !fs_exists(manifest);
    return status == MUSTER_E_CORRUPT || status == MUSTER_E_IO || status == MUSTER_E_NOT_FOUND;
}

/* The advice about a damaged one where nothing older is taken. */
static const char *node_open_advice(const struct muster_node *node)
{
    return node->options.restore_fallback
               ? ""
               : "; " ERROR_SAYS_DAMAGED ": put them back from a copy, or let "
                 "the job take the next "
                 "older checkpoint (`muster run --fallback`, or option restore_fallback, which is "
                 "fallback in a manager's options)";
}

/* A restore fills the state's memory. */
static enum muster_status node_open_check_state(const struct muster_node *node,
                                                const struct shard_restore *request,
                                                struct muster_error *err)
{
    int code = request->state != NULL && node->options.state_check_fn != NULL
                   ? node->options.state_check_fn(node->options.arg)
                   : 0;

    return code == 0
               ? MUSTER_OK
               : error_set_code(err, MUSTER_E_ARGUMENT, code,
                                "state_check_fn returned %d, so the state was not filled", code);
}

static bool node_is_interrupted(void *arg)
{
    const struct muster_node *node = arg;

    if (node->agent != NULL)
        return agent_is_interrupted(node->agent);
    return node->options.interrupted_fn != NULL && node->options.interrupted_fn(node->options.arg);
}

static enum muster_status node_open_read_checkpoint(struct muster_node *node, const char *path,
                                                    int64_t step, uint64_t round, bool *ret_damage,
                                                    struct muster_error *err)
{
    struct shard_restore request = {.checkpoint_path = path,
                                    .job = node->job,
                                    .layout = node->layout,
                                    .rank = (uint64_t)node->rank,
                                    .world_size = (uint64_t)node->world_size,
                                    .step = step,
                                    .round = round,
                                    .signer = node->signer[0] != '\0' ? node->signer : NULL,
                                    .state = node->options.state};
    struct interrupt interrupt = {.ask = node_is_interrupted, .arg = node};
    struct manifest *manifest = NULL;
    struct muster_error why;
    enum muster_status status;
    char moved[FS_PATH_MAX], left[STATE_NAME_MAX + 1] = "", own[SAVE_WHY_SIZE] = "";

    request.ret_left = left;
    request.interrupt = &interrupt;
    if (node_open_is_moved(node, path, moved)) {
        node_log(node, 2, "checkpoint %.300s was moved, to %.300s", path, moved);
        request.checkpoint_path = path = moved;
    }
    if (node->options.termination.restore_fn != NULL) {
        request.state = NULL;
        request.restore_fn = node_open_call_restore_fn;
        request.any_world_size = node->options.restore_any_world_size;
        request.arg = node;
    } else if (request.state == NULL) /* an evaluator without a state reads for itself */
        return MUSTER_OK;
    status = node_open_check_state(node, &request, &why);
    if (status == MUSTER_OK)
        status = shard_restore(&request, &manifest, &why);
    *ret_damage = node_open_is_damage(status, path);
    if (status == MUSTER_E_INTERRUPTED)
        return error_pass(err, status, &why);
    if (status == MUSTER_E_NOT_FOUND && node->agent != NULL) /* damage has other codes */
        return node_open_is_gone(node, path, err);
    if (status == MUSTER_E_RESTORE && request.restore_fn != NULL)
        node_open_take_save_error(own, node);
    if (status != MUSTER_OK)
        return error_set_code(err, MUSTER_E_RESTORE, why.code,
                              "checkpoint %.300s was not restored at rank %d (%s): %s%s%.500s%s",
                              path, node->rank, muster_status_name(status), own,
                              own[0] != '\0' ? "; " : "", why.text,
                              *ret_damage ? node_open_advice(node) : "");
    if (left[0] != '\0' && (node->rank == 0 || node->layout == LAYOUT_SHARDED))
        node_log(node, 1,
                 "rank %d: the checkpoint %.300s has a tensor \"%s\", and maybe others, that this "
                 "program's state lacks; none was restored, and later checkpoints are without them",
                 node->rank, path, left);
    node->resumed_checkpoint = manifest->round;
    node->epoch = manifest->epoch;
    node->step_in_epoch = manifest->step_in_epoch;
    node->data_position = manifest->data_position;
    manifest_destroy(&manifest);
    return MUSTER_OK;
}

static void node_open_resumed(struct muster_node *node, int64_t step, const char *path)
{
    node->resumed_step = step;
    node->restored = true;
    if (step > 0)
        node_log(node, 2, "rank %d resumes at step %lld from %s", node->rank,
                 (long long)step + node->wish.names.offset, path);
    else
        node_log(node, 2, "rank %d begins from the start", node->rank);
}

/* The checkpoint that is offered is not the one that was asked for. MUSTER_OK: it is. */
static enum muster_status node_open_check_wish(const struct muster_node *node,
                                               const struct agent_resume *resume,
                                               struct muster_error *err)
{
    long long wish = node->wish.resume_done + node->wish.names.offset; /* as its user counts */
    long long step = resume->step + node->wish.names.offset;

    if (node->wish.resume_done < 0 || step == wish)
        return MUSTER_OK;
    if (step < wish && err->status != MUSTER_OK) /* it was there, and could not be read */
        return MUSTER_E_NOT_FOUND;
    if (step > wish && node->local != NULL)
        return error_set(
            err, MUSTER_E_UNSUPPORTED,
            "the checkpoint of step %lld is newer than %lld, and without a broker nobody "
            "records that it counts no more; start a broker, or move that checkpoint away",
            step, wish);
    if (step > wish)
        return error_set(err, MUSTER_E_RESTORE,
                         "rank %d was asked to go back to step %lld, so step %lld counts no more",
                         node->rank, wish, step);
    return error_set(
        err, MUSTER_E_NOT_FOUND,
        "this job cannot go back to the checkpoint of step %lld; the next older one is "
        "of step %lld",
        wish, step);
}

/* A checkpoint that the broker offers, and what came of it. */
struct offer {
    struct agent_resume resume;
    struct muster_error why; /* status OK: it was read, or declined */
    bool damage;             /* another one may be whole */
    bool declined;           /* it is not the wanted one ... */
    bool unwished;           /* ... and the wanted one is not there */
    bool over;               /* the launch ended meanwhile */
    bool imports;            /* the broker does not know of newer ones: this process tells it */
};

static enum muster_status node_open_take_offer(struct muster_node *node, struct offer *offer)
{
    const struct agent_resume *resume = &offer->resume;
    enum muster_status status = node_open_check_wish(node, resume, &offer->why);

    offer->declined = status != MUSTER_OK;
    offer->unwished = status == MUSTER_E_NOT_FOUND;
    if (status == MUSTER_OK && (resume->checkpoint == 0 || node->wish.resume_done < 0)) {
        status = node_check_lost(node, resume->step, &offer->over, &offer->imports, &offer->why);
        offer->damage = false;
    }
    if (status != MUSTER_OK || offer->over || resume->checkpoint == 0)
        return status;
    return node_open_read_checkpoint(node, resume->path, resume->step, resume->checkpoint,
                                     &offer->damage, &offer->why);
}

/* *ret_again: another rank could not restore it, and all take an older one. */
static enum muster_status node_open_tell_restored(struct muster_node *node,
                                                  const struct offer *offer, bool *ret_again,
                                                  struct muster_error *err)
{
    const struct agent_resume *resume = &offer->resume;
    bool waits = node->options.restore_fallback || node->wish.resume_done >= 0, settled = true;
    enum muster_status status = agent_restored(node->agent, resume->checkpoint, resume->step, err);

    if (status == MUSTER_OK && waits)
        status = agent_wait_started(node->agent, resume->checkpoint, &settled, err);
    *ret_again = status == MUSTER_OK && !settled;
    if (status == MUSTER_OK && settled)
        node_open_resumed(node, resume->step, resume->path);
    return status;
}

static enum muster_status node_open_tell_unread(struct muster_node *node, struct offer *offer,
                                                struct muster_error *err)
{
    bool final = !offer->declined && !offer->damage;

    node_log(node, offer->declined ? 2 : 0, "%s", offer->why.text);
    if (offer->declined)
        offer->why.status = MUSTER_OK;
    return agent_restore_failed(node->agent, offer->resume.checkpoint, offer->resume.step,
                                offer->why.text, final, offer->imports, err);
}

static enum muster_status node_open_restore_with_broker(struct muster_node *node,
                                                        struct muster_error *err)
{
    struct offer offer = {.damage = true};
    uint64_t failed = UINT64_MAX;
    bool again = true;

    while (again) {
        enum muster_status status = agent_wait_resume(node->agent, failed, &offer.resume, err);

        if (offer.imports && status == MUSTER_PREEMPTED) {
            enum muster_status imported = node_import(node, err);
            return imported != MUSTER_OK ? imported : status;
        }
        if (offer.imports && status != MUSTER_OK) /* the launch ended for something else */
            return status;
        if (status != MUSTER_OK && offer.why.status != MUSTER_OK &&
            !(offer.damage && node->options.restore_fallback)) /* our own reason says more */
            return error_pass(err, offer.why.status, &offer.why);
        if (status != MUSTER_OK) /* the broker's word: nothing older is left */
            return status;
        status = node_open_take_offer(node, &offer);
        if (offer.over)
            return error_pass(err, status, &offer.why);
        if (offer.unwished || status == MUSTER_E_INTERRUPTED) /* no fault of the checkpoint's */
            return error_pass(err, offer.why.status, &offer.why);
        status = status == MUSTER_OK ? node_open_tell_restored(node, &offer, &again, err)
                                     : node_open_tell_unread(node, &offer, err);
        if (status != MUSTER_OK)
            return status;
        failed = offer.resume.checkpoint;
    }
    return MUSTER_OK;
}

static enum muster_status node_open_restore_alone(struct muster_node *node,
                                                  struct muster_error *err)
{
    struct local_resume resume;
    struct muster_error why = {.status = MUSTER_OK};
    int64_t below = INT64_MAX;
    bool damage = true;
    enum muster_status status;

    do {
        status = local_find_resume(node->local, below, &resume, &why);
        if (status == MUSTER_OK && resume.step == 0 && below != INT64_MAX) {
            why = *err;
            return error_set(err, MUSTER_E_RESTORE,
                             "%.3900s; no older checkpoint is left to fall back to", why.text);
        }
        if (status != MUSTER_OK) {
            *err = why;
            return status;
        }
        status = node_open_check_wish(node, &(struct agent_resume){.step = resume.step}, &why);
        if (status != MUSTER_OK) { /* an older one would be forgotten with the next start */
            if (err != NULL)
                *err = why;
            return why.status;
        }
        status = resume.step == 0
                     ? MUSTER_OK
                     : node_open_read_checkpoint(node, resume.path, resume.step, 0, &damage, err);
        below = resume.step;
    } while (status != MUSTER_OK && damage && node->options.restore_fallback);
    if (status != MUSTER_OK)
        return status;
    local_restored(node->local, resume.step);
    node_open_resumed(node, resume.step, resume.path);
    return MUSTER_OK;
}

/* One rank found its checkpoint gone, so the launch is over for all ranks. Each removes what it
 * made in place of the directory, so that nothing is in the way. (If an observer found it, the
 * others go on.) */
static void node_open_take_back(struct muster_node *node)
{
    if (role_is_trainer(node->role))
        dir_take_back(node->checkpoint_dir, &node->made);
}

enum muster_status node_restore(struct muster_node *node, struct muster_error *err)
{
    enum muster_status status;

    if (node->restored)
        return MUSTER_OK;
    status = node->local != NULL ? node_open_restore_alone(node, err)
                                 : node_open_restore_with_broker(node, err);
    if (status == MUSTER_OK)
        node_clear_left(node);
    if (status == MUSTER_E_RESTORE && node->agent != NULL)
        node_open_take_back(node);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The directory is made, proved to be writable and claimed for the job; from here on its path is
 * absolute, so that all ranks name it alike wherever they were started. */
static enum muster_status node_open_prepare_directory(struct muster_node *node,
                                                      struct muster_error *err)
{
    char absolute[PATH_MAX];
    enum muster_status status = dir_prepare(node->checkpoint_dir, node->job, &node->made, err);

    if (status != MUSTER_OK)
        return status;
    if (realpath(node->checkpoint_dir, absolute) == NULL)
        return fs_fail(err, MUSTER_E_IO, errno, "find", node->checkpoint_dir);
    if (strlen(absolute) > PATH_BYTES_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the checkpoint directory's absolute path is longer than %d bytes; use a "
                         "shorter one: %.100s...",
                         PATH_BYTES_MAX, absolute);
    memcpy(node->checkpoint_dir, absolute, strlen(absolute) + 1);
    return fs_random_u64(&node->incarnation, err);
}

static void node_open_tell_ending(const struct muster_error *error, void *node)
{
    node_tell_error(node, error);
}

/* The broker may just have let it in. After an interrupt it does not wait for an answer that is not
 * likely to come. */
static bool node_open_says_goodbye(const struct muster_node *node, enum muster_status status)
{
    struct member_view view;

    agent_view(node->agent, &view);
    return status != MUSTER_E_BROKER && (status != MUSTER_E_INTERRUPTED || view.joined);
}

static enum muster_status open_agent(struct muster_node *node, struct muster_error *err)
{
    const struct muster_node_options *o = &node->options;
    const struct agent_options options = {
        .member = {.job = node->job,
                   .role = node->role,
                   .rank = (uint64_t)node->rank,
                   .world_size = (uint64_t)node->world_size,
                   .incarnation = node->incarnation,
                   .host = node->host,
                   .pid = (uint64_t)getpid(),
                   .layout = node->layout,
                   .checkpoint_dir = node->checkpoint_dir,
                   .signer = node->signer,
                   .directory = dir_number(node->checkpoint_dir),
                   .started_boot_ms = started_first_node_boot_ms(),
                   .join_timeout_ms = o->join_timeout_ms,
                   .join_timeout_default = node->join_timeout_default,
                   .abort_timeout_ms = o->abort_timeout_ms,
                   .grace_period_ms = o->termination.grace_period_ms,
                   .save_on_notice = o->termination.save_on_notice,
                   .restore_fallback = o->restore_fallback || node->wish.resume_done >= 0,
                   .step_offset = node->wish.names.offset,
                   .exit_allowed = o->termination.on_preempted == MUSTER_PREEMPTED_EXIT,
                   .restart_code = o->termination.restart_code},
        .broker = node->broker,
        .save = node_open_save_target(node),
        .hooks = {.watch = o->termination.termination_watcher_fn,
                  .on_error = o->on_error != NULL || o->events != NULL ? node_events_error : NULL,
                  .seen = o->events != NULL ? node_events_view : NULL,
                  .interrupted = o->interrupted_fn,
                  .log = node_logs(node) ? node_log_line : NULL,
                  .arg = o->arg,
                  .log_arg = node},
        .watch_period_ms = o->termination.watcher_period_ms,
        .signals = node->signals,
        .signal_count = node->signal_count,
        .sources = &node->sources,
        .save_every_steps = o->save_every_steps,
        .save_behind = o->save_behind,
        .ending = node_open_tell_ending,
        .ending_arg = node,
        .supervised = &node->supervised,
    };
    const struct supervised_facts facts = node_facts(node);
    enum muster_status status;

    supervised_joins(&node->supervised, &facts); /* before HELLO: a death right after is known */
    status = agent_open(&options, &node->agent, err);

    if (status != MUSTER_OK)
        return status;
    node->gate = agent_gate(node->agent);
    status = agent_wait_joined(node->agent, o->connect_timeout_ms, o->open_timeout_ms, err);
    if (status == MUSTER_E_BROKER && o->offline_ok && node->world_size == 1)
        return status; /* it hears what ends this process until somebody else does */
    if (status != MUSTER_OK) {
        if (node_open_says_goodbye(node, status))
            agent_leave(node->agent, status == MUSTER_PREEMPTED ? LEAVE_PREEMPTED : LEAVE_ERROR,
                        status == MUSTER_PREEMPTED ? o->termination.restart_code : EXIT_FAILURE);
        node_end_agent(node);
        if (status == MUSTER_PREEMPTED)
            supervised_says(&node->supervised, err->text);
        supervised_leaves(&node->supervised);
        node->gate = NULL;
    }
    return status;
}

static enum muster_status open_local(struct muster_node *node, struct muster_error *err)
{
    const struct muster_node_options *o = &node->options;
    const struct local_options options = {
        .save = node_open_save_target(node),
        .watch = o->termination.termination_watcher_fn,
        .log = node_logs(node) ? node_log_line : NULL,
        .interrupted = o->interrupted_fn,
        .arg = o->arg,
        .announced = o->events != NULL ? node_events_announced : NULL,
        .committed = o->events != NULL ? node_events_committed : NULL,
        .log_arg = node,
        .watch_period_ms = o->termination.watcher_period_ms,
        .signals = node->signals,
        .signal_count = node->signal_count,
        .sources = &node->sources,
        .save_every_steps = o->save_every_steps,
        .grace_period_ms = o->termination.grace_period_ms,
        .save_on_notice = o->termination.save_on_notice};
    char told[SOURCE_TEXT_MAX + 64];
    enum muster_status status;
    bool ended;

    if (node->world_size > 1)
        return error_set(err, MUSTER_E_BROKER,
                         "no broker answered at %s, and %d ranks cannot agree on a save without "
                         "one: offline_ok is for a world of 1; start one with `musterd`",
                         node->broker, node->world_size);
    node_log(node, 1,
             "no broker answered at %s; rank 0 of 1 goes on alone, saving and exiting by itself",
             node->broker);
    status = local_open(&options, &node->local, err);
    if (status == MUSTER_OK)
        node->gate = local_gate(node->local);
    if (agent_dismiss(&node->agent, told, sizeof told, &ended) && status == MUSTER_OK)
        local_notify(node->local, NOTICE_SIGNAL, -1, told);
    if (!ended)
        node->left_behind = true;
    if (status == MUSTER_OK)
        supervised_alone(&node->supervised);
    return status;
}

/* Told to end, by then the job is settled or was never joined: as a boundary would. */
static void node_open_leave_preempted(struct muster_node *node)
{
    if (node->agent != NULL)
        agent_leave(node->agent, LEAVE_PREEMPTED, node->options.termination.restart_code);
    node_leave_process(node);
}

void node_end_agent(struct muster_node *node)
{
    if (!agent_destroy(&node->agent))
        node->left_behind = true;
}

void node_free(struct muster_node *node)
{
    if (node->left_behind)
        return;
    events_drop(node->options.events);
    free(node);
}

static void node_open_give_up(struct muster_node *node, enum muster_status status)
{
    if (status == MUSTER_PREEMPTED)
        node_open_leave_preempted(node);
    else if (node->agent != NULL)
        agent_leave(node->agent, LEAVE_ERROR, EXIT_FAILURE);
    supervised_leaves(&node->supervised);
    node_end_agent(node);
    local_destroy(&node->local);
    node_free(node);
}

enum muster_status muster_node_open(const struct muster_node_options *options,
                                    muster_node_t **ret_node, struct muster_error *ret_error)
{
    return node_open(options, NULL, ret_node, ret_error);
}

enum muster_status node_open(const struct muster_node_options *options,
                             const struct node_wish *wish, muster_node_t **ret_node,
                             struct muster_error *ret_error)
{
    struct muster_error error = {.status = MUSTER_OK};
    struct muster_node *node;
    enum muster_status status;

    if (ret_node == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_node_open: ret_node is NULL; give the address of a handle");
    node = calloc(1, sizeof *node);
    if (node == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for the node; free some");
    node->epoch = node->step_in_epoch = node->data_position = -1;
    node->rank = -1;
    node->wish.resume_done = -1;
    if (wish != NULL)
        node->wish = *wish;
    supervised_init(&node->supervised);
    status = node_configure(node, options, &error);
    events_hold(node->options.events);
    if (status == MUSTER_OK)
        status = node_log_configure(node, &error);
    if (status == MUSTER_OK && node->identity_note[0] != '\0')
        node_log(node, 2, "%s", node->identity_note);
    if (status == MUSTER_OK)
        status = link_key_signer(node->signer, &error);
    if (status == MUSTER_OK)
        status = node_open_prepare_directory(node, &error);
    if (status == MUSTER_OK)
        status = query_door_explain(node->broker, open_agent(node, &error), &error);
    if (status == MUSTER_E_RESTORE) /* that was so before it came */
        node_open_take_back(node);
    if (status == MUSTER_E_BROKER && node->options.offline_ok)
        status = open_local(node, &error);
    if (status == MUSTER_OK && node->wish.opened != NULL)
        *node->wish.opened = node;
    if (status == MUSTER_OK && !node->options.restore_later)
        status = node_restore(node, &error);
    if (status == MUSTER_OK) {
        *ret_node = node;
        return MUSTER_OK;
    }
    if (node->wish.opened != NULL)
        *node->wish.opened = NULL;
    node_tell_error(node, &error);
    if (ret_error != NULL)
        *ret_error = error;
    node_open_give_up(node, status);
    return status;
}
