/* local_save - what a process without a broker reads from its directory and writes into it. */
#include "node/local_state.h"

#include "schema/error.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_TRIES_MAX 100 /* round directories that former lives left behind */

/* --- what is there ------------------------------------------------------------------------------- */

struct scan { /* the best of what was looked at */
    int64_t below;
    uint64_t generation_max;
    int64_t step;
    uint64_t generation; /* among equal steps the later generation and round wins */
    uint64_t round;
    char path[FS_PATH_MAX];
};

static void look_at(const struct local *local, const char *name, struct scan *scan)
{
    char path[FS_PATH_MAX];
    struct manifest *manifest = NULL;
    bool newer;

    if (name[0] == '.' ||
        fs_path(path, NULL, "%s/%s", local->options.save.root, name) != MUSTER_OK ||
        shard_manifest_read(path, &manifest, NULL) != MUSTER_OK)
        return;
    if (strcmp(manifest->job, local->options.save.job) == 0) {
        if (manifest->generation > scan->generation_max)
            scan->generation_max = manifest->generation;
        newer = manifest->step > scan->step ||
                (manifest->step == scan->step &&
                 (manifest->generation > scan->generation ||
                  (manifest->generation == scan->generation && manifest->round > scan->round)));
        if (manifest->step < scan->below && newer) {
            scan->step = manifest->step;
            scan->generation = manifest->generation;
            scan->round = manifest->round;
            memcpy(scan->path, path, sizeof path);
        }
    }
    manifest_destroy(&manifest);
}

static enum muster_status scan_root(const struct local *local, int64_t below, struct scan *ret_scan,
                                    struct muster_error *err)
{
    DIR *dir = opendir(local->options.save.root);
    const struct dirent *entry;

    if (dir == NULL)
        return fs_fail(err, MUSTER_E_IO, errno, "read", local->options.save.root);
    *ret_scan = (struct scan){.below = below};
    while ((entry = readdir(dir)) != NULL)
        look_at(local, entry->d_name, ret_scan);
    closedir(dir);
    return MUSTER_OK;
}

enum muster_status local_find_resume(struct local *local, int64_t below,
                                     struct local_resume *ret_resume, struct muster_error *err)
{
    struct scan scan;
    enum muster_status status = scan_root(local, below, &scan, err);

    if (status != MUSTER_OK)
        return status;
    ret_resume->step = scan.step;
    memcpy(ret_resume->path, scan.path, sizeof scan.path);
    return MUSTER_OK;
}

#define TIMES_FILE "%s/.muster/LOCAL"

/* Without them the first notice of this life is not planned: no reason to do anything else. */
static void read_times(struct local *local)
{
    char path[FS_PATH_MAX], *text = NULL;
    size_t size;

    if (fs_path(path, NULL, TIMES_FILE, local->options.save.root) == MUSTER_OK &&
        fs_read_small(path, LOCAL_TIMES_TEXT, &text, &size, NULL) == MUSTER_OK)
        local_plan_read_times(&local->plan, text);
    free(text);
}

static void write_times(const struct local *local, const char *text)
{
    char dir[FS_PATH_MAX], path[FS_PATH_MAX];
    struct muster_error err;

    if (fs_path(dir, &err, "%s/.muster", local->options.save.root) != MUSTER_OK ||
        fs_path(path, &err, TIMES_FILE, local->options.save.root) != MUSTER_OK ||
        fs_replace(dir, dir, path, text, strlen(text), &err) != MUSTER_OK)
        local_say(local, 1, err.text);
}

enum muster_status local_look_at_root(struct local *local, struct muster_error *err)
{
    struct scan scan = {0};
    enum muster_status status = scan_root(local, INT64_MAX, &scan, err);

    if (status != MUSTER_OK)
        return status;
    local->generation = scan.generation_max + 1;
    read_times(local);
    return MUSTER_OK;
}

/* --- saving -------------------------------------------------------------------------------------- */

static enum muster_status commit(struct local *local, const struct save_order *order,
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
                                      .created_unix_ms = local_clock_ms(CLOCK_REALTIME),
                                      .cause = cause,
                                      .metrics = local->metrics,
                                      .custom = local->custom,
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
                               .epoch = local->epoch,
                               .step_in_epoch = local->step_in_epoch,
                               .data_position = local->data_position,
                               .call_arg = call_arg,
                               .state = local->given_state};
    struct shard_files files = {0};
    enum muster_status status = MUSTER_E_EXISTS;
    int64_t began = local_clock_ms(CLOCK_MONOTONIC);
    char times[LOCAL_TIMES_TEXT];

    for (int i = 0; i < ROUND_TRIES_MAX && status == MUSTER_E_EXISTS; i++) {
        order.round = ++local->round;
        status = save_shard(target, &order, &files, err);
    }
    if (status == MUSTER_OK)
        status = commit(local, &order, &files, cause, ret_path, err);
    if (status != MUSTER_OK) /* nothing refers to it: no other process takes part */
        dir_remove_round(target->root, target->job, order.generation, order.round, order.nonce,
                         NULL);
    shard_files_clear(&files);
    if (status != MUSTER_OK)
        return status;
    local->saved_step = order.step;
    pthread_mutex_lock(&local->mutex);
    plan_saves_add(&local->plan.saves, local_clock_ms(CLOCK_MONOTONIC) - began);
    local_plan_write_times(&local->plan, times);
    pthread_mutex_unlock(&local->mutex);
    write_times(local, times);
    return MUSTER_OK;
}
