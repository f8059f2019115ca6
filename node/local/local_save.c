/* local_save - what a process without a broker reads from its directory and writes into it. */
#include "node/local/local_left.h"

#include "node/clock.h"
#include "node/shard/dir_list.h"
#include "schema/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_TRIES_MAX 100 /* round directories that former lives left behind */
/* A broker that is away now may have given numbers to rounds that left nothing here: a save that
 * failed, one that was not decided. `muster import` takes no number that is another round's, so a
 * life begins above as many of them. */
#define ROUND_JUMP 1000

/* --- what is there ---------------------------------------------------------------------------- */

static enum muster_status local_save_list_root(const struct local *local, struct arena *arena,
                                               struct dir_list *ret_list, struct muster_error *err)
{
    const struct save_target *save = &local->options.save;
    enum muster_status status = dir_list_read_all(save->root, save->job, arena, ret_list, err);

    /* it was there when this process began: "nothing is saved" would be another thing */
    return status == MUSTER_E_NOT_FOUND ? fs_fail(err, MUSTER_E_IO, ENOENT, "read", save->root)
                                        : status;
}

/* All of its files were durable before its manifest was written, and a manifest is written only
 * after a commit; so only its name is missing. The process that committed it may be giving the name
 * just now. */
static enum muster_status local_save_give_name(const struct local *local, const char *dir,
                                               char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    const struct save_target *target = &local->options.save;
    char path[FS_PATH_MAX];
    char *text = NULL;
    size_t size = 0;
    enum muster_status status = fs_path(path, err, "%s/" MANIFEST_FILE_NAME, dir);

    if (status == MUSTER_OK)
        status = fs_read_small(path, MANIFEST_BYTES_MAX, &text, &size, err);
    if (status == MUSTER_OK)
        status = dir_commit_as(target->root, &target->names, text, size, ret_path, err);
    free(text);
    return status;
}

/* One that cannot get it counts where it is. */
static bool local_save_name_one(const struct local *local, const struct dir_list *list, size_t i)
{
    const struct save_target *save = &local->options.save;
    const struct counts_item *launch = &list->launches[i];
    uint64_t round = list->items[i].round;
    char path[FS_PATH_MAX], text[MUSTER_ERROR_TEXT_MAX];
    struct muster_error why;
    bool named;

    if (dir_round_path(save->root, launch->generation, round, path, NULL) != MUSTER_OK ||
        strcmp(path, list->items[i].path) != 0 ||
        !dir_is_round(path, save->job, launch->generation, round))
        return false;
    named = local_save_give_name(local, list->items[i].path, path, &why) == MUSTER_OK;
    snprintf(text, sizeof text, "step %lld was committed and %s: %.2000s",
             (long long)launch->step + (long long)local->options.save.names.offset,
             named ? "had no name yet; it has one now" : "cannot be given its name",
             named ? path : why.text);
    local_say(local, named ? 2 : 1, text);
    return named;
}

/* The checkpoints of this job that are there. On success the list is the caller's: dir_list_free.
 */
static enum muster_status local_save_read_root(const struct local *local, struct arena *arena,
                                               struct dir_list *ret_list, struct muster_error *err)
{
    enum muster_status status = local_save_list_root(local, arena, ret_list, err);
    bool named = false;

    for (size_t i = 0; status == MUSTER_OK && i < ret_list->count; i++)
        if (local_save_name_one(local, ret_list, i))
            named = true;
    if (!named)
        return status;
    dir_list_free(ret_list);
    return local_save_list_root(local, arena, ret_list, err);
}

/* Among equal steps the later generation and round wins; one that got its name meanwhile is the
 * last of its two. */
static bool local_save_is_newer(const struct dir_list *list, size_t a, size_t b)
{
    const struct counts_item *x = &list->launches[a], *y = &list->launches[b];

    if (x->step != y->step)
        return x->step > y->step;
    if (x->generation != y->generation)
        return x->generation > y->generation;
    return list->items[a].round >= list->items[b].round;
}

/* If a damaged checkpoint would be the newest, by its name, then it is chosen and its restore
 * fails: nobody goes back to an older one unasked. */
static void local_save_take_damaged(const struct local *local, const struct dir_list *list,
                                    int64_t below, const char **ret_path, int64_t *ret_step)
{
    const struct save_target *save = &local->options.save;

    for (size_t i = 0; i < list->damaged_count; i++) {
        int64_t step;

        if (!dir_list_counts(list, &list->damaged[i], save->job, &save->names, &step) ||
            step >= below || step <= *ret_step)
            continue;
        *ret_step = step;
        *ret_path = list->damaged[i].path;
    }
}

enum muster_status local_find_resume(struct local *local, int64_t below,
                                     struct local_resume *ret_resume, struct muster_error *err)
{
    struct arena arena;
    struct dir_list list;
    size_t best = SIZE_MAX;
    enum muster_status status;

    arena_init(&arena, 0);
    status = local_save_read_root(local, &arena, &list, err);
    if (status == MUSTER_OK) {
        const char *path = "";

        for (size_t i = 0; i < list.count; i++)
            if (list.launches[i].counts && list.launches[i].step < below &&
                (best == SIZE_MAX || local_save_is_newer(&list, i, best)))
                best = i;
        ret_resume->step = best != SIZE_MAX ? list.launches[best].step : 0;
        if (best != SIZE_MAX)
            path = list.items[best].path;
        local_save_take_damaged(local, &list, below, &path, &ret_resume->step);
        status = fs_path(ret_resume->path, err, "%s", path);
        dir_list_free(&list);
    }
    arena_free(&arena);
    return status;
}

#define TIMES_FILE "%s/.muster/LOCAL"

/* Without them the first notice of this life is not planned: no reason to do anything else. */
static void local_save_read_times(struct local *local)
{
    char path[FS_PATH_MAX], *text = NULL;
    size_t size;

    if (fs_path(path, NULL, TIMES_FILE, local->options.save.root) == MUSTER_OK &&
        fs_read_small(path, LOCAL_TIMES_TEXT, &text, &size, NULL) == MUSTER_OK)
        local_plan_read_times(&local->plan, text);
    free(text);
}

static void local_save_write_times(const struct local *local, const char *text)
{
    char dir[FS_PATH_MAX], path[FS_PATH_MAX];
    struct muster_error err;

    if (dir_muster_path(local->options.save.root, dir, &err) != MUSTER_OK ||
        fs_path(path, &err, TIMES_FILE, local->options.save.root) != MUSTER_OK ||
        fs_replace(dir, dir, path, text, strlen(text), &err) != MUSTER_OK)
        local_say(local, 1, err.text);
}

static void local_save_number_above(struct local *local, uint64_t generation, uint64_t round)
{
    if (generation >= local->generation)
        local->generation = generation + 1;
    if (round > local->round)
        local->round = round;
}

enum muster_status local_look_at_root(struct local *local, struct muster_error *err)
{
    struct arena arena;
    struct dir_list list;
    enum muster_status status;

    arena_init(&arena, 0);
    status = local_save_read_root(local, &arena, &list, err);
    if (status == MUSTER_OK) {
        local->generation = 1;
        for (size_t i = 0; i < list.count; i++)
            local_save_number_above(local, list.launches[i].generation, list.items[i].round);
        for (size_t i = 0; i < list.damaged_count; i++)
            if (list.damaged[i].generation != UINT64_MAX)
                local_save_number_above(local, list.damaged[i].generation, list.damaged[i].round);
        local->round += ROUND_JUMP;
        dir_list_free(&list);
        local_save_read_times(local);
    }
    arena_free(&arena);
    return status;
}

/* --- saving ----------------------------------------------------------------------------------- */

static enum muster_status local_save_commit(struct local *local, const struct save_order *order,
                                            const struct shard_files *files, const char *cause,
                                            char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    const struct save_target *target = &local->options.save;
    const struct manifest_shard shard = {.rank = target->rank,
                                         .incarnation = target->incarnation,
                                         .files = files->files,
                                         .file_count = files->count};
    const struct manifest manifest = {.job = target->job,
                                      .generation = order->generation,
                                      .round = order->round,
                                      .step = order->step,
                                      .layout = target->layout,
                                      .world_size = target->world_size,
                                      .epoch = order->epoch,
                                      .step_in_epoch = order->step_in_epoch,
                                      .data_position = order->data_position,
                                      .total_run_calls = order->step,
                                      .created_unix_ms = clock_ms(CLOCK_REALTIME),
                                      .cause = cause,
                                      .metrics = local->metrics,
                                      .custom = local->custom,
                                      .resumed_known = true,
                                      .resumed_step = local->began_step,
                                      .shards = &shard,
                                      .shard_count = 1};
    enum muster_status status;
    char *text = NULL;
    size_t size = 0;

    status = manifest_render(&manifest, &text, &size, err);
    if (status == MUSTER_OK)
        status = dir_commit_as(target->root, &target->names, text, size, ret_path, err);
    free(text);
    return status;
}

enum muster_status local_save(struct local *local, void *call_arg, const char *cause,
                              char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    const struct save_target *target = &local->options.save;
    struct save_order order = {.generation = local->generation,
                               .nonce = target->incarnation,
                               .step = gate_done(local->gate),
                               .first = local->saved_step == local->began_step,
                               .epoch = local->epoch,
                               .step_in_epoch = local->step_in_epoch,
                               .data_position = local->data_position,
                               .call_arg = call_arg,
                               .state = local->given_state,
                               .watch = &local->saving};
    struct shard_files files = {0};
    enum muster_status status = MUSTER_E_EXISTS;
    bool turn = local->turn_ms > 0 && local->turn_step == order.step;
    int64_t began = turn ? local->turn_ms : clock_ms(CLOCK_MONOTONIC);
    char times[LOCAL_TIMES_TEXT];

    local->interrupt =
        (struct interrupt){.ask = local->options.interrupted, .arg = local->options.arg};
    local->saving = (struct safetensors_watch){.interrupt = &local->interrupt};
    for (int i = 0; i < ROUND_TRIES_MAX && status == MUSTER_E_EXISTS; i++) {
        order.round = ++local->round;
        local_left_begin(local, order.round, order.nonce);
        status = save_shard(target, &order, &files, err);
    }
    if (status == MUSTER_OK)
        status = local_save_commit(local, &order, &files, cause, ret_path, err);
    if (status == MUSTER_OK || /* else nothing refers to it: no other process takes part */
        dir_remove_round(target->root, target->job, order.generation, order.round, order.nonce,
                         NULL) == MUSTER_OK)
        local_left_end(local);
    shard_files_clear(&files);
    if (status != MUSTER_OK) {
        local->saves_failed++;
        snprintf(local->save_failed, sizeof local->save_failed, "step %lld: %.500s",
                 (long long)order.step + (long long)target->names.offset, err->text);
        return local->interrupt.said ? err->status = MUSTER_E_INTERRUPTED : status;
    }
    local->saved_step = order.step;
    local->turn_ms = 0;
    pthread_mutex_lock(&local->mutex);
    plan_saves_add(&local->plan.saves, clock_ms(CLOCK_MONOTONIC) - began);
    local_plan_write_times(&local->plan, times);
    pthread_mutex_unlock(&local->mutex);
    local_save_write_times(local, times);
    if (local->options.committed != NULL)
        local->options.committed(order.step, local->options.log_arg);
    return MUSTER_OK;
}
