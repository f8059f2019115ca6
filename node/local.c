/* local - see local.h. */
#include "node/local.h"

#include "node/notice/callback.h"
#include "node/notice/watch.h"
#include "schema/error.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ROUND_TRIES_MAX 100 /* round directories that former lives left behind */
#define POLL_MS 1000

struct local {
    struct gate *gate;
    struct local_options options;
    uint64_t generation;
    uint64_t round;
    int64_t saved_step; /* restored from or saved: there is nothing newer to save at it */
    int64_t epoch, step_in_epoch, data_position;

    pthread_mutex_t mutex;
    struct muster_error end; /* status != OK: what every boundary returns */
    bool noticed;
    char notice[TEXT_MAX + 1];
    bool stop;

    struct watch *watch;
    int wake_fd;
    pthread_t thread;
    bool thread_started;
};

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void say(const struct local *local, int level, const char *text)
{
    if (local->options.log != NULL)
        local->options.log(level, text, local->options.arg);
}

/* --- notices ------------------------------------------------------------------------------------- */

void local_notify(struct local *local, const char *text)
{
    pthread_mutex_lock(&local->mutex);
    if (!local->noticed)
        snprintf(local->notice, sizeof local->notice, "%s", text);
    local->noticed = true;
    gate_close(local->gate);
    pthread_mutex_unlock(&local->mutex);
}

static void say_state(const struct local *local, const struct source_status *status)
{
    char text[SOURCE_TEXT_MAX + 64];

    snprintf(text, sizeof text, "notice source %s: %s%s%s", status->name,
             source_state_name(status->state), status->text[0] != '\0' ? ": " : "", status->text);
    say(local, status->state == SOURCE_DEGRADED ? 1 : 2, text);
}

static void *watch(void *arg)
{
    struct local *local = arg;
    struct pollfd item = {.fd = local->wake_fd, .events = POLLIN};
    struct notice_record record;
    struct source_status status;
    uint64_t wakes;
    bool stop = false;

    while (!stop) {
        poll(&item, 1, POLL_MS);
        if (read(local->wake_fd, &wakes, sizeof wakes) < 0)
            wakes = 0; /* nobody woke us */
        while (watch_take(local->watch,
                          &record)) /* alone it is acted upon at once: nothing to withdraw */
            if (record.number != 0 && !record.withdrawn && wire_notice_ends(record.item.kind))
                local_notify(local, record.item.text);
        while (watch_take_change(local->watch, &status))
            say_state(local, &status);
        pthread_mutex_lock(&local->mutex);
        stop = local->stop;
        pthread_mutex_unlock(&local->mutex);
    }
    return NULL;
}

/* --- opening ------------------------------------------------------------------------------------- */

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

static enum muster_status start(struct local *local, struct muster_error *err)
{
    enum muster_status status;
    int code;

    local->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (local->wake_fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno,
                              "no file descriptor for the node: %s; raise the limit (ulimit -n)",
                              strerror(errno));
    status = watch_open(&(struct watch_options){.signals = local->options.signals,
                                                .signal_count = local->options.signal_count,
                                                .ask = local->options.watch,
                                                .arg = local->options.arg,
                                                .ask_period_ms = local->options.watch_period_ms,
                                                .sources = local->options.sources,
                                                .seed = (uint64_t)getpid(),
                                                .wake_fd = local->wake_fd},
                        &local->watch, err);
    local->options.sources = NULL; /* it was borrowed for the call */
    if (status != MUSTER_OK)
        return status;
    code = callback_thread(&local->thread, watch, local);
    local->thread_started = code == 0;
    if (code == 0)
        return MUSTER_OK;
    return error_set_code(err, MUSTER_E_BUSY, code,
                          "the node's thread could not be started: %s; raise the limit of "
                          "processes (ulimit -u)",
                          strerror(code));
}

enum muster_status local_open(const struct local_options *options, struct local **ret_local,
                              struct muster_error *err)
{
    struct local *local = calloc(1, sizeof *local);
    enum muster_status status;
    struct scan scan = {0};

    if (local == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    local->options = *options;
    local->wake_fd = -1;
    local->epoch = local->step_in_epoch = local->data_position = -1;
    pthread_mutex_init(&local->mutex, NULL);
    status = gate_create(&local->gate, err);
    if (status == MUSTER_OK)
        status = scan_root(local, INT64_MAX, &scan, err);
    if (status == MUSTER_OK) {
        local->generation = scan.generation_max + 1;
        status = start(local, err);
    }
    if (status == MUSTER_OK)
        *ret_local = local;
    else
        local_destroy(&local);
    return status;
}

void local_destroy(struct local **local)
{
    struct local *l = *local;
    const uint64_t one = 1;

    if (l == NULL)
        return;
    *local = NULL;
    if (l->thread_started) {
        pthread_mutex_lock(&l->mutex);
        l->stop = true;
        pthread_mutex_unlock(&l->mutex);
        while (write(l->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
            continue;
        pthread_join(l->thread, NULL);
    }
    watch_close(&l->watch, LEAVE_MS + 500); /* a callback that does not return is left behind */
    gate_destroy(&l->gate);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

struct gate *local_gate(struct local *local)
{
    return local->gate;
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
                                      .created_unix_ms = clock_ms(CLOCK_REALTIME),
                                      .cause = cause,
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

static enum muster_status save(struct local *local, void *call_arg, const char *cause,
                               char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    const struct save_target *target = &local->options.save;
    struct save_order order = {.generation = local->generation,
                               .nonce = target->incarnation,
                               .step = gate_done(local->gate),
                               .epoch = local->epoch,
                               .step_in_epoch = local->step_in_epoch,
                               .data_position = local->data_position,
                               .call_arg = call_arg};
    struct shard_files files = {0};
    enum muster_status status = MUSTER_E_EXISTS;

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
    if (status == MUSTER_OK)
        local->saved_step = order.step;
    return status;
}

/* --- boundaries ---------------------------------------------------------------------------------- */

static void plan_next_save(struct local *local)
{
    int64_t every = local->options.save_every_steps, done = gate_done(local->gate);

    local->gate->due = every > 0 ? (done / every + 1) * every : INT64_MAX;
}

void local_restored(struct local *local, int64_t step)
{
    pthread_mutex_lock(&local->mutex);
    gate_set(local->gate, step, step);
    local->saved_step = step;
    plan_next_save(local);
    if (!local->noticed && local->end.status == MUSTER_OK)
        gate_open(local->gate);
    pthread_mutex_unlock(&local->mutex);
}

static void preempt(struct local *local, void *call_arg)
{
    char path[FS_PATH_MAX], text[MUSTER_ERROR_TEXT_MAX];
    struct muster_error why;
    long long step = gate_done(local->gate);

    if (step == local->saved_step)
        snprintf(text, sizeof text, "notice (%.200s): leaving at step %lld, which needs no save",
                 local->notice, step);
    else if (save(local, call_arg, "termination", path, &why) == MUSTER_OK)
        snprintf(text, sizeof text, "notice (%.200s): saved step %lld in %.600s", local->notice,
                 step, path);
    else
        snprintf(text, sizeof text,
                 "notice (%.200s): step %lld was not saved: %.600s; a restart goes on from the "
                 "newest checkpoint",
                 local->notice, step, why.text);
    say(local, 2, text);
    pthread_mutex_lock(&local->mutex);
    error_set(&local->end, MUSTER_PREEMPTED, "%s", text);
    local->end.step = step;
    pthread_mutex_unlock(&local->mutex);
}

static void save_by_policy(struct local *local, void *call_arg)
{
    char path[FS_PATH_MAX];
    struct muster_error why;

    plan_next_save(local);
    if (gate_done(local->gate) != local->saved_step &&
        save(local, call_arg, "policy", path, &why) != MUSTER_OK)
        say(local, 0, why.text);
}

enum muster_status local_boundary(struct local *local, bool begin, void *call_arg,
                                  struct muster_error *err)
{
    struct muster_error end;
    bool noticed;

    for (;;) {
        pthread_mutex_lock(&local->mutex);
        end = local->end;
        noticed = local->noticed;
        if (end.status == MUSTER_OK && !noticed && gate_done(local->gate) < local->gate->due) {
            gate_open(local->gate);
            if (begin)
                gate_begin(local->gate);
            pthread_mutex_unlock(&local->mutex);
            return MUSTER_OK;
        }
        pthread_mutex_unlock(&local->mutex);
        if (end.status != MUSTER_OK) {
            if (err != NULL)
                *err = end;
            return end.status;
        }
        if (noticed)
            preempt(local, call_arg);
        else
            save_by_policy(local, call_arg);
    }
}

enum muster_status local_end_step(struct local *local, const struct local_end *end, bool *ret_saves,
                                  struct muster_error *err)
{
    enum muster_status status = MUSTER_OK, boundary;
    char path[FS_PATH_MAX];
    int64_t begun;
    bool saves, wanted;

    pthread_mutex_lock(&local->mutex);
    begun = gate_begun(local->gate);
    gate_set(local->gate, begun > end->done ? begun : end->done, end->done);
    wanted = end->want && local->end.status == MUSTER_OK && !local->noticed;
    saves = (wanted || (local->noticed && local->end.status == MUSTER_OK)) &&
            end->done != local->saved_step;
    pthread_mutex_unlock(&local->mutex);
    *ret_saves = saves;
    if (saves && end->ask)
        return MUSTER_OK;
    if (saves && wanted)
        status = save(local, end->call_arg, "policy", path, err);
    boundary = local_boundary(local, true, end->call_arg, status == MUSTER_OK ? err : NULL);
    *ret_saves = saves && local->saved_step == end->done;
    return boundary != MUSTER_OK ? boundary : status;
}

void local_fail(struct local *local, int code, const char *text)
{
    pthread_mutex_lock(&local->mutex);
    gate_close(local->gate);
    if (local->end.status == MUSTER_OK) {
        error_set_code(&local->end, MUSTER_E_STEP, code, "%s", text);
        local->end.rank = (int)local->options.save.rank;
        local->end.step = gate_done(local->gate) + 1;
    }
    pthread_mutex_unlock(&local->mutex);
}

enum muster_status local_step_failed(struct local *local, int code, struct muster_error *err)
{
    char text[96];

    snprintf(text, sizeof text, "the step function returned %d", code);
    local_fail(local, code, text);
    pthread_mutex_lock(&local->mutex);
    gate_take_back(local->gate);
    pthread_mutex_unlock(&local->mutex);
    return local_boundary(local, false, NULL, err);
}

enum muster_status local_after_failure(struct local *local, struct muster_error *err)
{
    pthread_mutex_lock(&local->mutex);
    if (gate_begun(local->gate) > gate_done(local->gate))
        gate_take_back(local->gate);
    pthread_mutex_unlock(&local->mutex);
    return local_boundary(local, false, NULL, err);
}

void local_count_step(struct local *local)
{
    int64_t done, begun;

    pthread_mutex_lock(&local->mutex);
    done = gate_done(local->gate) + 1;
    begun = gate_begun(local->gate);
    gate_set(local->gate, begun > done ? begun : done, done);
    pthread_mutex_unlock(&local->mutex);
}

void local_set_position(struct local *local, int64_t epoch, int64_t step_in_epoch,
                        int64_t data_position)
{
    local->epoch = epoch;
    local->step_in_epoch = step_in_epoch;
    local->data_position = data_position;
}

int64_t local_save_step(struct local *local)
{
    return gate_is_closed(local->gate) ? gate_begun(local->gate) : -1;
}
