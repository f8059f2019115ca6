/* agent_save - see agent_save.h. */
#include "node/agent/agent_save.h"

#include "node/shard/shard_tiles.h"
#include "schema/error.h"

#include <errno.h>
#include <stdio.h>

/* ": " and why, or nothing. */
static void agent_save_tell_why(const struct save_target *target, char ret_text[SAVE_WHY_SIZE + 2])
{
    char why[SAVE_WHY_SIZE] = "";

    if (target->why != NULL)
        target->why(why, target->hook_arg);
    snprintf(ret_text, SAVE_WHY_SIZE + 2, "%s%s", why[0] != '\0' ? ": " : "", why);
}

static enum muster_status save_by_hook(const struct save_target *target,
                                       const struct save_order *order, const char *round_dir,
                                       struct shard_files *ret_files, struct muster_error *err)
{
    char dir[FS_PATH_MAX];
    enum muster_status status =
        shard_dir_begin(round_dir, target->rank, target->incarnation, dir, err);
    char why[SAVE_WHY_SIZE + 2];
    int code;

    if (status != MUSTER_OK)
        return status;
    code = target->hook(order, dir, target->hook_arg);
    agent_save_tell_why(target, why);
    if (code != 0) {
        shard_discard(round_dir, target->rank, target->incarnation);
        return error_set_code(err, MUSTER_E_SAVE, code,
                              "save_fn returned %d%s at step %lld in %s; earlier checkpoints are "
                              "untouched",
                              code, why, (long long)(order->step + target->names.offset), dir);
    }
    return shard_dir_seal(round_dir, target->rank, target->incarnation, order->watch,
                          order->strong ? CHECKSUM_STRONG : CHECKSUM_XXH3, ret_files, err);
}

static enum muster_status save_state(const struct save_target *target,
                                     const struct save_order *order, const char *round_dir,
                                     struct shard_files *ret_files, struct muster_error *err)
{
    struct shard_facts facts = {.job = target->job,
                                .generation = order->generation,
                                .round = order->round,
                                .step = order->step,
                                .layout = target->layout,
                                .rank = target->rank,
                                .incarnation = target->incarnation,
                                .world_size = target->world_size,
                                .total_run_calls = order->step,
                                .epoch = order->epoch,
                                .step_in_epoch = order->step_in_epoch,
                                .data_position = order->data_position,
                                .checksum = order->strong ? CHECKSUM_STRONG : CHECKSUM_XXH3};

    const struct muster_state *state = order->state != NULL   ? order->state
                                       : target->take != NULL ? order->snapshot
                                                              : target->state;

    enum muster_status status;

    if (state == NULL)
        return error_set(err, MUSTER_E_SAVE,
                         "there is nothing to save: neither options.state nor save_fn was given to "
                         "muster_node_open");
    status = shard_save_state(round_dir, &facts, state, order->watch, ret_files, err);
    if (status != MUSTER_OK || !order->first || target->layout != LAYOUT_SHARDED)
        return status;
    status = shard_tiles_check(round_dir, target->world_size, state, order->watch, err);
    if (status != MUSTER_OK) {
        shard_files_clear(ret_files);
        shard_discard(round_dir, target->rank, target->incarnation);
    }
    return status;
}

enum muster_status save_take(const struct save_target *target, struct save_order *order,
                             struct muster_error *err)
{
    char why[SAVE_WHY_SIZE + 2];
    int code;

    if (target->take == NULL)
        return MUSTER_OK;
    code = target->take(order, &order->snapshot, target->hook_arg);
    agent_save_tell_why(target, why);
    if (code == 0)
        return MUSTER_OK;
    order->snapshot = NULL;
    return error_set_code(err, MUSTER_E_SAVE, code,
                          "snapshot_fn returned %d%s at step %lld; earlier checkpoints are "
                          "untouched",
                          code, why, (long long)(order->step + target->names.offset));
}

enum muster_status save_check(const struct save_target *target, const struct save_order *order,
                              struct muster_error *err)
{
    char why[SAVE_WHY_SIZE + 2];
    int code;

    if (target->check == NULL || target->hook != NULL || order->state != NULL)
        return MUSTER_OK;
    code = target->check(target->hook_arg);
    agent_save_tell_why(target, why);
    return code == 0 ? MUSTER_OK
                     : error_set_code(err, MUSTER_E_SAVE, code,
                                      "state_check_fn returned %d%s at step %lld; earlier "
                                      "checkpoints are untouched",
                                      code, why, (long long)(order->step + target->names.offset));
}

void save_release(const struct save_target *target, struct save_order *order)
{
    if (target->release != NULL && order->snapshot != NULL)
        target->release(order->snapshot, target->hook_arg);
    order->snapshot = NULL;
}

static enum muster_status save_into(const struct save_target *target,
                                    const struct save_order *order, struct shard_files *ret_files,
                                    struct muster_error *err)
{
    char round_dir[FS_PATH_MAX];
    enum muster_status status = dir_round_open(target->root, target->job, order->generation,
                                               order->round, order->nonce, round_dir, err);

    if (status != MUSTER_OK)
        return status;
    if (target->hook != NULL)
        return save_by_hook(target, order, round_dir, ret_files, err);
    return save_state(target, order, round_dir, ret_files, err);
}

enum muster_status save_shard(const struct save_target *target, struct save_order *order,
                              struct shard_files *ret_files, struct muster_error *err)
{
    bool own = target->take != NULL && order->snapshot == NULL;
    struct muster_error why = {.status = MUSTER_OK};
    enum muster_status status =
        own ? save_take(target, order, err) : save_check(target, order, err);

    if (status != MUSTER_OK)
        return status;
    status = save_into(target, order, ret_files, &why);
    if (own)
        save_release(target, order);
    if (status == MUSTER_OK)
        return status;
    if (why.code != ECANCELED || order->watch == NULL || order->watch->interrupt == NULL ||
        !order->watch->interrupt->said) { /* a full disk stays one */
        if (err != NULL)
            *err = why;
        return status;
    }
    return error_set_code(err, MUSTER_E_SAVE, ECANCELED,
                          "the program was interrupted while it saved step %lld, which is not "
                          "committed; earlier checkpoints are untouched",
                          (long long)(order->step + target->names.offset));
}
