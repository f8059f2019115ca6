/* manager_read - what a manager tells about single checkpoints; waiting for new ones, holding one
 * while it is read, and deleting one. */
#include "client/manager/manager_private.h"

#include "client/query/query_link.h"
#include "node/clock.h"
#include "node/shard/shard.h"
#include "schema/error.h"
#include "schema/manifest/metrics.h"
#include "schema/sized.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 100 /* between two looks for a new checkpoint */
#define TRY_MS 20   /* and for the newest, which changes while it is asked for */
#define TRIES_MAX (MANIFEST_WAIT_MS / TRY_MS)
#define MOVES_MAX                                                                  \
    3 /* a checkpoint's place changes twice at most: it gets its name, and it goes \
       */

/* --- clocks ----------------------------------------------------------------------------------- */

static void manager_read_pause_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* --- one step --------------------------------------------------------------------------------- */

/* The checkpoint of a step in a list that is read again, or the newest (MUSTER_STEP_LATEST).
 * E_NOT_FOUND says what is known of it. */
static enum muster_status manager_find(struct muster_manager *manager, int64_t step,
                                       const struct muster_checkpoint_info **ret_info,
                                       struct muster_error *err)
{
    const struct muster_checkpoint_info *info;
    enum muster_status status = manager_read_list(manager, err);

    if (status != MUSTER_OK)
        return status;
    info = step == MUSTER_STEP_LATEST ? manager_list_newest(&manager->list)
                                      : manager_list_find(&manager->list, step);
    if (info == NULL) {
        manager_not_found(manager, step, err);
        return MUSTER_E_NOT_FOUND;
    }
    *ret_info = info;
    return MUSTER_OK;
}

enum muster_status manager_give(struct muster_manager *manager,
                                const struct muster_checkpoint_info *own, size_t count,
                                size_t struct_size, const struct muster_checkpoint_info **ret_all,
                                struct muster_error *err)
{
    unsigned char *all = NULL;

    if (struct_size == 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "struct_size is 0; give sizeof(struct muster_checkpoint_info)");
    if (ret_all == NULL)
        return MUSTER_OK;
    if (count > 0)
        all = struct_size > SIZE_MAX / count
                  ? NULL
                  : arena_alloc(&manager->list.arena, count * struct_size);
    if (count > 0 && all == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for %zu checkpoints; free some", count);
    for (size_t i = 0; i < count; i++)
        sized_give(all + i * struct_size, struct_size, &own[i], sizeof own[i]);
    *ret_all = (const void *)all;
    return MUSTER_OK;
}

static bool manager_read_is_on_its_way(const struct muster_manager *m)
{
    return m->node != NULL && m->node->agent != NULL && m->list.unplaced > m->unplaced &&
           m->list.unplaced_generation == muster_node_generation(m->node);
}

enum muster_status manager_read_placed(struct muster_manager *m, struct muster_error *err)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + MANIFEST_WAIT_MS;
    enum muster_status status;

    if (m->node != NULL && m->node->agent != NULL)
        agent_wait_in_place(m->node->agent, MANIFEST_WAIT_MS);
    status = manager_read_list(m, err);
    while (status == MUSTER_OK && manager_read_is_on_its_way(m) &&
           clock_ms(CLOCK_MONOTONIC) < until_ms) {
        manager_read_pause_ms(
            TRY_MS); /* a rank that took no part in its round hears nothing of it */
        status = manager_read_list(m, err);
    }
    if (manager_read_is_on_its_way(m)) /* a full disk: it is not waited for again */
        m->unplaced = m->list.unplaced;
    return status;
}

static enum muster_status manager_read_no_metric(const char *call, struct muster_error *err)
{
    return error_set(err, MUSTER_E_ARGUMENT,
                     "%s: the metric's name is missing or no name: use "
                     "letters, digits and . _ - /",
                     call);
}

enum muster_status muster_manager_best_step(muster_manager_t *manager, const char *metric,
                                            bool greatest, int64_t *ret_step,
                                            struct muster_error *ret_error)
{
    double best = 0, value;
    int64_t step = -1;
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_best_step", ret_error);
    if (metric == NULL || !metric_name_ok(metric))
        return manager_read_no_metric("muster_manager_best_step", ret_error);
    status = manager_read_list(manager, ret_error);
    if (status != MUSTER_OK)
        return status;
    for (size_t i = 0; i < manager->list.count; i++) {
        const struct muster_checkpoint_info *info = &manager->list.items[i];

        if (!metrics_get(info->metrics, metric, &value) ||
            (step >= 0 && (greatest ? value < best : value > best)))
            continue;
        best = value;
        step = info->step;
    }
    if (step < 0)
        return error_set(ret_error, MUSTER_E_NOT_FOUND,
                         "no checkpoint has a metric \"%.63s\": there is no best step", metric);
    if (ret_step != NULL)
        *ret_step = step;
    return MUSTER_OK;
}

enum muster_status muster_manager_metrics(muster_manager_t *manager, int64_t step,
                                          const char *metric, double *ret_value,
                                          struct muster_error *ret_error)
{
    const struct muster_checkpoint_info *info = NULL;
    enum muster_status status;
    double value;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_metrics", ret_error);
    if (metric == NULL || !metric_name_ok(metric))
        return manager_read_no_metric("muster_manager_metrics", ret_error);
    status = manager_find(manager, step, &info, ret_error);
    if (status != MUSTER_OK)
        return status;
    if (!metrics_get(info->metrics, metric, &value))
        return error_set(ret_error, MUSTER_E_NOT_FOUND, "step %lld has no metric \"%.63s\"",
                         (long long)info->step, metric);
    if (ret_value != NULL)
        *ret_value = value;
    return MUSTER_OK;
}

enum muster_status muster_manager_metadata(muster_manager_t *manager, int64_t step,
                                           const struct muster_checkpoint_info **ret_info,
                                           size_t struct_size, struct muster_error *ret_error)
{
    const struct muster_checkpoint_info *info = NULL;
    struct muster_checkpoint_info shown;
    struct manifest *manifest = NULL;
    struct muster_error why;
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_metadata", ret_error);
    status = manager_read_placed(manager, &why);
    for (int tries = 0; status == MUSTER_OK && manifest == NULL && tries < MOVES_MAX; tries++) {
        status = manager_find(manager, step, &info, &why);
        if (status == MUSTER_OK && shard_manifest_read(info->path, &manifest, &why) != MUSTER_OK)
            manager_read_pause_ms(tries > 0 ? TRY_MS
                                            : 0); /* named, or deleted, since it was asked for */
    }
    if (manifest == NULL)
        return error_pass(ret_error, status != MUSTER_OK ? status : why.status, &why);
    shown = *info;
    shown.custom_metadata = arena_strdup(&manager->list.arena, manifest->custom);
    manifest_destroy(&manifest);
    if (shown.custom_metadata == NULL)
        return error_set(ret_error, MUSTER_E_NOMEM, "no memory for custom metadata; free some");
    return manager_give(manager, &shown, 1, struct_size, ret_info, ret_error);
}

/* --- waiting ---------------------------------------------------------------------------------- */

bool manager_try_again(const struct muster_manager *manager, int *tries)
{
    if ((manager->list.count == 0 && manager->list.hidden == 0) || ++*tries > TRIES_MAX)
        return false;
    manager_read_pause_ms(TRY_MS);
    return true;
}

enum muster_status muster_manager_wait_for_new_checkpoint(muster_manager_t *manager,
                                                          int64_t after_step, int64_t timeout_ms,
                                                          int64_t *ret_step,
                                                          struct muster_error *ret_error)
{
    const struct muster_checkpoint_info *newest;
    enum muster_status status;
    int64_t until_ms, left_ms;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_wait_for_new_checkpoint", ret_error);
    if (after_step < -1 || timeout_ms < 0)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_manager_wait_for_new_checkpoint: after_step (%lld) or timeout_ms "
                         "(%lld) is negative",
                         (long long)after_step, (long long)timeout_ms);
    until_ms = timeout_ms > INT64_MAX / 4 ? INT64_MAX : clock_ms(CLOCK_MONOTONIC) + timeout_ms;
    for (;;) {
        status = manager_list_read_newest(&manager->list, &manager->source, ret_error);
        newest = manager_list_newest(&manager->list);
        left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
        if (status == MUSTER_OK && newest != NULL && newest->step > after_step)
            break;
        if (status != MUSTER_OK && status != MUSTER_E_BROKER)
            return status;
        if (manager_source_is_over(&manager->source))
            return error_set(ret_error, MUSTER_E_INTERRUPTED,
                             "the wait for a new checkpoint was broken off");
        if (left_ms <= 0)
            return status != MUSTER_OK
                       ? status
                       : error_set(ret_error, MUSTER_E_TIMEOUT,
                                   "no checkpoint above step %lld was made within %lld ms",
                                   (long long)after_step, (long long)timeout_ms);
        manager_read_pause_ms(left_ms < LOOK_MS ? left_ms : LOOK_MS);
    }
    if (ret_step != NULL)
        *ret_step = newest->step;
    return MUSTER_OK;
}

enum muster_status muster_manager_next_checkpoint(muster_manager_t *manager, int64_t timeout_ms,
                                                  int64_t *ret_step, struct muster_error *ret_error)
{
    int64_t step = -1;
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_next_checkpoint", ret_error);
    status = muster_manager_wait_for_new_checkpoint(manager, manager->given, timeout_ms, &step,
                                                    ret_error);
    if (status != MUSTER_OK)
        return status;
    manager->given = step;
    if (ret_step != NULL)
        *ret_step = step;
    return MUSTER_OK;
}

/* --- orders ----------------------------------------------------------------------------------- */

enum muster_status manager_order(struct muster_manager *manager, struct wire_msg *message,
                                 struct muster_error *err)
{
    struct manager_source *source = &manager->source;
    enum muster_status status;
    uint64_t value = 0;

    message->up.job = source->job;
    status = manager_source_open(source, err);
    if (status == MUSTER_OK)
        status = query_link_order(source->link, message, &value, err);
    return manager_source_told(source, status, err);
}

static bool manager_read_is_alone(const struct muster_manager *manager)
{
    return manager->source.broker == NULL ||
           (manager->node != NULL && manager->node->local != NULL);
}

static enum muster_status manager_read_name_the_pins(struct muster_manager *manager,
                                                     struct muster_error *err)
{
    uint64_t number = 0;
    enum muster_status status = MUSTER_OK;

    if (manager->pin_id[0] == '\0')
        status = fs_random_u64(&number, err);
    if (status == MUSTER_OK && manager->pin_id[0] == '\0')
        snprintf(manager->pin_id, sizeof manager->pin_id, "reader-%016" PRIx64, number);
    return status;
}

static enum muster_status manager_read_pin_once(struct muster_manager *manager, int64_t step,
                                                int64_t lease_ms, int64_t *ret_step,
                                                struct muster_error *err)
{
    struct wire_msg message = {.type = WIRE_PIN};
    const struct muster_checkpoint_info *info = NULL;
    enum muster_status status = manager_find(manager, step, &info, err);

    if (status != MUSTER_OK)
        return status;
    message.u.pin = (struct wire_pin){
        .checkpoint = info->checkpoint, .id = manager->pin_id, .lease_ms = lease_ms};
    status = manager_order(manager, &message, err);
    if (status == MUSTER_OK && ret_step != NULL)
        *ret_step = info->step;
    return status;
}

enum muster_status muster_manager_pin(muster_manager_t *manager, int64_t step, int64_t lease_ms,
                                      int64_t *ret_step, struct muster_error *ret_error)
{
    enum muster_status status;
    int tries = 0;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_pin", ret_error);
    if (lease_ms <= 0)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_manager_pin: lease_ms is %lld; give 1 or more",
                         (long long)lease_ms);
    if (manager_read_is_alone(manager))
        return error_set(ret_error, MUSTER_E_UNSUPPORTED,
                         "muster_manager_pin: only a broker can hold a checkpoint for a reader; "
                         "give broker and job");
    status = manager_read_name_the_pins(manager, ret_error);
    if (status == MUSTER_OK)
        status = manager_read_pin_once(manager, step, lease_ms, ret_step, ret_error);
    while (status == MUSTER_E_NOT_FOUND && step == MUSTER_STEP_LATEST &&
           manager_try_again(manager, &tries))
        status = manager_read_pin_once(manager, step, lease_ms, ret_step, ret_error);
    return status;
}

enum muster_status muster_manager_unpin(muster_manager_t *manager, int64_t step,
                                        struct muster_error *ret_error)
{
    struct wire_msg message = {.type = WIRE_UNPIN};
    const struct muster_checkpoint_info *info = NULL;
    enum muster_status status;

    if (manager_is_gone(manager))
        return manager_refuse(manager, "muster_manager_unpin", ret_error);
    if (manager->pin_id[0] == '\0')
        return MUSTER_OK; /* this manager has pinned nothing */
    status = manager_find(manager, step, &info, ret_error);
    if (status != MUSTER_OK)
        return status;
    message.u.unpin = (struct wire_unpin){.checkpoint = info->checkpoint, .id = manager->pin_id};
    return manager_order(manager, &message, ret_error);
}

enum muster_status muster_manager_delete(muster_manager_t *manager, int64_t step,
                                         struct muster_error *ret_error)
{
    struct wire_msg message = {.type = WIRE_DROP};
    const struct muster_checkpoint_info *info = NULL;
    struct muster_error why;
    const char *reason;
    enum muster_status status = manager_need_node(manager, "muster_manager_delete", ret_error);

    if (status == MUSTER_OK && step < 0)
        status =
            error_set(ret_error, MUSTER_E_ARGUMENT,
                      "muster_manager_delete: step is %lld; steps begin with 0", (long long)step);
    if (status == MUSTER_OK)
        status = manager_find(manager, step, &info, ret_error);
    if (status != MUSTER_OK)
        return status;
    if (manager_read_is_alone(manager) && info == manager_list_newest(&manager->list))
        return error_set(ret_error, MUSTER_E_BUSY,
                         "muster_manager_delete: step %lld stays: it is the newest",
                         (long long)step);
    if (manager_read_is_alone(manager))
        return manager_keep_delete_alone(manager, info, ret_error);
    message.u.drop = (struct wire_drop){.checkpoint = info->checkpoint};
    manager->deletes = true;
    agent_wait_in_place(manager->node->agent,
                        MANIFEST_WAIT_MS); /* an older one stays before that */
    status = manager_order(manager, &message, &why);
    reason = status == MUSTER_E_BUSY ? strstr(why.text, "stays: ") : NULL;
    if (reason == NULL)
        return error_pass(ret_error, status, &why);
    return error_set(ret_error, status, "muster_manager_delete: step %lld %.200s", (long long)step,
                     reason); /* the broker counts the steps that are done */
}
