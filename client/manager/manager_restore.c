/* manager_restore - a manager's restore: the job's, agreed on by all ranks; or a reader's own. */
#include "client/manager/manager_private.h"

#include "client/manager/hold.h"
#include "node/clock.h"
#include "node/link_key.h"
#include "node/shard/shard.h"
#include "schema/error.h"
#include "schema/sized.h"

#include <string.h>

enum muster_status manager_not_found(const struct muster_manager *m, int64_t step,
                                     struct muster_error *err)
{
    const char *state = NULL;

    if (step == MUSTER_STEP_LATEST)
        return error_set(err, MUSTER_E_NOT_FOUND, "nothing is saved yet: there is no latest step");
    for (size_t i = 0; i < m->list.unlisted_count; i++)
        if (m->list.unlisted[i].step == step)
            state = m->list.unlisted[i].state;
    if (state != NULL && strcmp(state, "writing") == 0)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the checkpoint of step %lld is unfinished: its save is under way, or its "
                         "job died in it; restore another one",
                         (long long)step);
    if (state != NULL && strcmp(state, "failed") == 0)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the checkpoint of step %lld is unfinished: its save failed; `muster "
                         "rounds` says why; restore another one",
                         (long long)step);
    if (state != NULL)
        return error_set(err, MUSTER_E_NOT_FOUND, "the checkpoint of step %lld is %s",
                         (long long)step, state);
    return error_set(
        err, MUSTER_E_NOT_FOUND,
        "there is no checkpoint of step %lld; muster_manager_all_steps lists what there "
        "is",
        (long long)step);
}

/* --- the job's -------------------------------------------------------------------------------- */

/* All ranks have restored, and this one begins its first step. */
static enum muster_status manager_restore_begin_steps(struct muster_manager *m,
                                                      struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    struct agent_resume resume;
    bool started = true;

    if (m->node->agent != NULL) {
        status = agent_wait_resume(m->node->agent, UINT64_MAX, &resume, err);
        if (status == MUSTER_OK)
            status = agent_wait_started(m->node->agent, resume.checkpoint, &started, err);
        node_note_interrupt(m->node, status);
    }
    return status;
}

static enum muster_status manager_restore_join(struct muster_manager *m, int64_t step,
                                               struct muster_error *err)
{
    struct node_wish wish = {.names = m->names, .resume_done = -1, .opened = &m->node};

    if (step != MUSTER_STEP_LATEST)
        wish.resume_done = step + 1;
    return node_open(&m->node_options, &wish, &m->node, err);
}

/* Logs why all ranks went back. Another rank may have failed to restore, before this one looked
 * which checkpoint is the newest: so this asks the job's journal. */
static bool manager_restore_fell_back(struct muster_manager *m)
{
    char text[MUSTER_ERROR_TEXT_MAX] = "";
    const struct muster_checkpoint_info *newest;
    bool back = false;

    if (!m->node->options.restore_fallback)
        return false;
    if (m->node->local != NULL) {
        newest = manager_read_list(m, NULL) == MUSTER_OK ? manager_list_newest(&m->list) : NULL;
        back = newest != NULL && m->latest < newest->step;
    } else if (manager_source_restore_failed(&m->source, muster_node_generation(m->node), text,
                                             NULL) == MUSTER_OK)
        back = text[0] != '\0';
    if (back)
        node_log(m->node, 1,
                 "restored step %lld: a newer checkpoint could not be restored%s%.2000s",
                 (long long)m->latest, text[0] != '\0' ? ": " : "", text);
    return back;
}

/* As long as a node waits for its broker. */
static enum muster_status manager_restore_await_list(struct muster_manager *m,
                                                     struct muster_error *err)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + (m->node_options.connect_timeout_ms > 0
                                                        ? m->node_options.connect_timeout_ms
                                                        : CONNECT_TIMEOUT_MS);
    enum muster_status status;

    do
        status = manager_read_list(m, err);
    while (status == MUSTER_E_BROKER && clock_ms(CLOCK_MONOTONIC) < until_ms);
    return status;
}

/* Saves by time count from the newest checkpoint, also in another life. */
static void manager_restore_begin_alone(struct muster_manager *m)
{
    const struct muster_checkpoint_info *newest = NULL;

    if (m->node->local == NULL || m->keep == NULL)
        return;
    if (manager_read_list(m, NULL) == MUSTER_OK)
        newest = manager_list_newest(&m->list);
    m->alone = alone_pace_begin(
        clock_ms(CLOCK_MONOTONIC),
        newest != NULL ? clock_ms(CLOCK_REALTIME) - newest->committed_unix_ms : -1);
}

static enum muster_status restore_job(struct muster_manager *m, int64_t step,
                                      struct muster_restored *ret, struct muster_error *err)
{
    enum muster_status status =
        step != MUSTER_STEP_LATEST ? manager_restore_await_list(m, err) : MUSTER_OK;

    if (status != MUSTER_OK)
        return status;
    if (step != MUSTER_STEP_LATEST && manager_list_find(&m->list, step) == NULL)
        return manager_not_found(m, step, err);
    status = manager_restore_join(m, step, err);
    if (status == MUSTER_OK)
        status = manager_restore_begin_steps(m, err);
    if (status == MUSTER_OK)
        status = manager_keep_tell(m, err);
    if (status != MUSTER_OK) {
        muster_node_close(&m->node, 1, NULL);
        return status;
    }
    m->restored = true;
    manager_restore_begin_alone(m);
    m->latest = m->passed = muster_node_resumed_step(m->node) - 1;
    m->fresh = m->passed < 0;
    if (m->fresh)
        return manager_not_found(m, MUSTER_STEP_LATEST, err);
    if (step == MUSTER_STEP_LATEST)
        ret->fell_back = manager_restore_fell_back(m);
    ret->step = m->latest;
    ret->checkpoint = m->node->resumed_checkpoint;
    muster_node_position(m->node, &ret->epoch, &ret->step_in_epoch, &ret->data_position);
    return MUSTER_OK;
}

/* --- a reader's ------------------------------------------------------------------------------- */

static int manager_restore_call_restore_fn(void *arg, const struct shard_found *found)
{
    const struct muster_manager *m = arg;
    const struct muster_restore_context context = {.struct_size = sizeof context,
                                                   .directory = found->dir,
                                                   .step = found->step,
                                                   .rank = 0,
                                                   .world_size = 1,
                                                   .arg = m->arg,
                                                   .checkpoint_directory = found->checkpoint_dir,
                                                   .saved_world_size = (int)found->world_size};

    return m->restore_fn(&context);
}

static enum muster_status manager_restore_read_one(struct muster_manager *m,
                                                   const struct muster_checkpoint_info *info,
                                                   struct muster_restored *ret,
                                                   struct muster_error *err)
{
    struct shard_restore request = {
        .checkpoint_path = info->path,
        .job = m->source.job,
        .world_size = 1,
        .wholes = true,
        .step = info->step + 1,
        .round = info->checkpoint,
        .state = m->state,
        .restore_fn = m->restore_fn != NULL ? manager_restore_call_restore_fn : NULL,
        .arg = m};
    struct interrupt interrupt = {.ask = m->source.interrupted, .arg = m->source.interrupted_arg};
    struct manifest *found = NULL, *restored = NULL;
    char signer[SIGNER_MAX + 1];
    enum muster_status status = link_key_signer(signer, err);

    if (status == MUSTER_OK)
        status = shard_manifest_read(info->path, &found, err);
    if (status != MUSTER_OK)
        return status;
    request.signer = signer[0] != '\0' ? signer : NULL;
    request.layout = found->layout;
    request.interrupt = &interrupt;
    if (request.job == NULL)
        request.job = found->job;
    status = shard_restore(&request, &restored, err);
    if (status == MUSTER_OK) {
        ret->step = info->step;
        ret->checkpoint = info->checkpoint;
        ret->epoch = restored->epoch;
        ret->step_in_epoch = restored->step_in_epoch;
        ret->data_position = restored->data_position;
    }
    manifest_destroy(&found);
    manifest_destroy(&restored);
    return status;
}

#define READ_LEASE_MS \
    60000 /* prolonged while it is read: a reader that dies holds it for a minute */

/* A pin keeps it from being deleted meanwhile. If it is gone already, the broker says so. */
static enum muster_status manager_restore_read_held(struct muster_manager *m,
                                                    const struct muster_checkpoint_info *info,
                                                    struct muster_restored *ret,
                                                    struct muster_error *err)
{
    const struct hold_wish wish = {.broker = m->source.broker,
                                   .job = m->source.job,
                                   .who = "restore",
                                   .checkpoint = info->checkpoint,
                                   .lease_ms = READ_LEASE_MS,
                                   .timeout_ms = m->source.timeout_ms,
                                   .over = manager_source_is_over,
                                   .over_arg = &m->source};
    struct hold *hold = NULL;
    enum muster_status status;

    if (m->source.broker == NULL)
        return manager_restore_read_one(m, info, ret, err);
    m->source.broken_off = false;
    status = manager_source_told(&m->source, hold_begin(&wish, &hold, err), err);
    if (status == MUSTER_OK)
        status = manager_restore_read_one(m, info, ret, err);
    hold_end(&hold);
    return status;
}

static enum muster_status restore_reader(struct muster_manager *m, int64_t step,
                                         struct muster_restored *ret, struct muster_error *err)
{
    size_t at;
    enum muster_status status = manager_read_list(m, err);

    if (status != MUSTER_OK)
        return status;
    if (m->state == NULL && m->restore_fn == NULL)
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "muster_manager_restore: neither option state nor restore_fn says where to");
    at = m->list.count;
    while (at > 0 && step != MUSTER_STEP_LATEST && m->list.items[at - 1].step != step)
        at--;
    if (at == 0)
        return manager_not_found(m, step, err);
    status = manager_restore_read_held(m, &m->list.items[at - 1], ret, err);
    while (status != MUSTER_OK && status != MUSTER_E_INTERRUPTED && m->fallback &&
           step == MUSTER_STEP_LATEST && at > 1) {
        at--;
        ret->fell_back = true;
        status = manager_restore_read_held(m, &m->list.items[at - 1], ret, err);
    }
    return status;
}

enum muster_status muster_manager_restore(muster_manager_t *manager, int64_t step,
                                          struct muster_restored *ret_restored, size_t struct_size,
                                          struct muster_error *ret_error)
{
    struct muster_restored restored = {
        .step = -1, .epoch = -1, .step_in_epoch = -1, .data_position = -1};
    struct muster_error why;
    enum muster_status status;
    int tries = 0;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_restore", ret_error);
    if (step < MUSTER_STEP_LATEST || step > INT64_MAX / 4)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_manager_restore: step is %lld; give MUSTER_STEP_LATEST or 0 and "
                         "more",
                         (long long)step);
    if (manager->restored)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_manager_restore: this job has restored already; open a read-only "
                         "manager to read another checkpoint, or restart to go back");
    status = manager->read_only ? restore_reader(manager, step, &restored, &why)
                                : restore_job(manager, step, &restored, &why);
    while (manager->read_only && status == MUSTER_E_NOT_FOUND && step == MUSTER_STEP_LATEST &&
           manager_try_again(manager, &tries))
        status = restore_reader(manager, step, &restored, &why);
    if (status == MUSTER_OK || status == MUSTER_E_NOT_FOUND)
        sized_give(ret_restored, struct_size, &restored, sizeof restored);
    return error_pass(ret_error, status, &why);
}
