/* local - see local.h. */
#include "node/local/local_left.h"

#include "node/clock.h"
#include "node/thread.h"
#include "schema/error.h"
#include "schema/manifest/metrics.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SAVE_TRIES_MAX                                                        \
    3 /* of a termination's save, as with a broker; a full disk does not loop \
       */
#define POLL_MS 1000
#define POLL_FIRST_MS 100 /* until a step was measured: the first notice is to be planned */

void local_say(const struct local *local, int level, const char *text)
{
    if (local->options.log != NULL)
        local->options.log(level, text, local->options.log_arg);
}

/* --- notices ---------------------------------------------------------------------------------- */

static void local_wake(struct local *local)
{
    const uint64_t one = 1;

    while (write(local->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

/* Mutex held. Now or later? Returns when to ask again. */
static int64_t local_consider(struct local *local)
{
    int64_t wakeup = INT64_MAX;

    if (local->frozen)
        return wakeup;
    local->frozen = local_plan_due(&local->plan, clock_ms(CLOCK_BOOTTIME), &wakeup);
    if (!local->frozen && !local_plan_wants_save(&local->plan))
        return wakeup;
    local->save_now |= !local->frozen;
    gate_close(local->gate);
    return wakeup;
}

/* Mutex held. */
static void local_take_notice(struct local *local, uint64_t number, enum wire_notice_kind kind,
                              int64_t left_ms, const char *text)
{
    if (local->frozen) /* the first boundary is what it leads to already */
        return;
    local_plan_notice(&local->plan, clock_ms(CLOCK_BOOTTIME), number, kind, left_ms, text);
    local_consider(local);
    if (!local->options.save_on_notice || local->frozen)
        return;
    local->save_now = true;
    gate_close(local->gate);
}

void local_notify(struct local *local, enum wire_notice_kind kind, int64_t left_ms,
                  const char *text)
{
    pthread_mutex_lock(&local->mutex);
    local_take_notice(local, 0, kind, left_ms, text);
    pthread_mutex_unlock(&local->mutex);
    local_wake(local);
}

/* Mutex held. */
enum wire_notice_kind local_announced(struct local *local, int64_t *ret_deadline_boot_ms)
{
    enum wire_notice_kind kind = NOTICE_NONE;

    pthread_mutex_lock(&local->mutex);
    for (size_t i = 0; i < local->plan.count; i++) {
        const struct local_notice *notice = &local->plan.notices[i];
        if (kind != NOTICE_NONE && notice->deadline_boot_ms >= *ret_deadline_boot_ms)
            continue;
        kind = notice->kind;
        *ret_deadline_boot_ms = notice->deadline_boot_ms;
    }
    pthread_mutex_unlock(&local->mutex);
    return kind;
}

static void local_take_record(struct local *local, const struct notice_record *record)
{
    int64_t deadline = record->item.deadline_boot_ms, now = clock_ms(CLOCK_BOOTTIME);

    if (record->number == 0 || !wire_notice_ends(record->item.kind))
        return;
    if (record->withdrawn)
        local_plan_withdraw(&local->plan, record->number);
    else
        local_take_notice(local, record->number, record->item.kind,
                          deadline < 0     ? -1
                          : deadline > now ? deadline - now
                                           : 0,
                          record->item.text);
}

static void local_say_state(const struct local *local, const struct source_status *status)
{
    char text[SOURCE_TEXT_MAX + 64];

    snprintf(text, sizeof text, "notice source %s: %s%s%s", status->name,
             source_state_name(status->state), status->text[0] != '\0' ? ": " : "", status->text);
    tell_log(local->tell, status->state == SOURCE_DEGRADED ? 1 : 2, text);
}

/* The news of the plan for people: when it comes, changes its notice, and goes. */
static void local_say_plan(struct local *local, const char *text)
{
    size_t same = strcspn(text, ":"); /* the numbers behind it change all the time */

    if (strncmp(text, local->said, same) == 0 && (text[0] != '\0') == (local->said[0] != '\0'))
        return;
    memcpy(local->said, text, strlen(text) + 1);
    tell_log(local->tell, 2, text[0] != '\0' ? text : "the notice is withdrawn; training goes on");
}

static void local_say_announced(struct local *local)
{
    int64_t deadline = 0;
    enum wire_notice_kind kind = local_announced(local, &deadline);

    if (local->options.announced != NULL)
        local->options.announced(kind, deadline, local->options.log_arg);
}

/* One pass. Returns how long to sleep; -1: for ever, the node is closed. */
static int64_t local_look_around(struct local *local)
{
    struct notice_record record;
    struct source_status status;
    char text[LOCAL_PLAN_TEXT];
    int64_t sleep;
    int64_t poll_ms;
    bool stop;

    pthread_mutex_lock(&local->mutex);
    local_plan_look(&local->plan, clock_ms(CLOCK_BOOTTIME), gate_begun(local->gate),
                    !gate_is_closed(local->gate));
    while (watch_take(local->watch, &record))
        local_take_record(local, &record);
    sleep = local_consider(local) - clock_ms(CLOCK_BOOTTIME);
    memcpy(text, local->plan.text, sizeof text);
    poll_ms = pace_p95(&local->plan.pace) > 0 ? POLL_MS : POLL_FIRST_MS;
    stop = local->stop;
    pthread_mutex_unlock(&local->mutex);
    local_say_plan(local, text);
    local_say_announced(local);
    while (watch_take_change(local->watch, &status))
        local_say_state(local, &status);
    return stop ? -1 : sleep > poll_ms ? poll_ms : sleep > 0 ? sleep : 0;
}

static void *local_watch(void *arg)
{
    struct local *local = arg;
    struct pollfd item = {.fd = local->wake_fd, .events = POLLIN};
    uint64_t wakes;
    int64_t sleep;

    while ((sleep = local_look_around(local)) >= 0) {
        poll(&item, 1, (int)sleep);
        if (read(local->wake_fd, &wakes, sizeof wakes) < 0)
            wakes = 0; /* nobody woke us */
    }
    return NULL;
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum muster_status local_start(struct local *local, struct muster_error *err)
{
    const struct tell_hooks hooks = {.log = local->options.log, .arg = local->options.log_arg};
    enum muster_status status;
    int code;

    status = tell_start(&hooks, &local->tell, err);
    if (status != MUSTER_OK)
        return status;
    local->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (local->wake_fd < 0)
        return error_set_code(err, MUSTER_E_IO, errno,
                              "no file descriptor for the node: %s; raise the limit (ulimit -n)",
                              strerror(errno));
    status = watch_open(&(struct watch_options){.signals = local->options.signals,
                                                .signal_count = local->options.signal_count,
                                                .ask = local->options.watch,
                                                .arg = local->options.arg,
                                                .usual_grace = local->options.grace_period_ms < 0,
                                                .ask_period_ms = local->options.watch_period_ms,
                                                .sources = local->options.sources,
                                                .seed = (uint64_t)getpid(),
                                                .wake_fd = local->wake_fd},
                        &local->watch, err);
    local->options.sources = NULL; /* it was borrowed for the call */
    if (status != MUSTER_OK)
        return status;
    code = thread_start(&local->thread, local_watch, local);
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

    if (local == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    local->options = *options;
    local->wake_fd = local->left_fd = -1;
    local->epoch = local->step_in_epoch = local->data_position = -1;
    local_plan_init(&local->plan, options->grace_period_ms);
    pthread_mutex_init(&local->mutex, NULL);
    status = gate_create(&local->gate, err);
    if (status == MUSTER_OK) {
        local_left_open(local);
        status = local_look_at_root(local, err);
    }
    if (status == MUSTER_OK)
        status = local_start(local, err);
    if (status == MUSTER_OK)
        *ret_local = local;
    else
        local_destroy(&local);
    return status;
}

void local_destroy(struct local **local)
{
    struct local *l = *local;

    if (l == NULL)
        return;
    *local = NULL;
    if (l->thread_started) {
        pthread_mutex_lock(&l->mutex);
        l->stop = true;
        pthread_mutex_unlock(&l->mutex);
        local_wake(l);
        pthread_join(l->thread, NULL);
    }
    watch_close(&l->watch, HEARTBEAT_MS + 500); /* a callback that does not return is left behind */
    tell_stop(&l->tell, HEARTBEAT_MS + 500);
    gate_destroy(&l->gate);
    local_left_close(l);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    pthread_mutex_destroy(&l->mutex);
    free(l->metrics);
    free(l->custom);
    free(l);
}

struct gate *local_gate(struct local *local)
{
    return local->gate;
}

/* --- boundaries ------------------------------------------------------------------------------- */

static void local_plan_next_save(struct local *local)
{
    int64_t every = local->options.save_every_steps, done = gate_done(local->gate);

    local->gate->due = every > 0 ? (done / every + 1) * every : INT64_MAX;
}

void local_restored(struct local *local, int64_t step)
{
    pthread_mutex_lock(&local->mutex);
    gate_set(local->gate, step, step);
    local->began_step = local->saved_step = step;
    local_plan_next_save(local);
    local_plan_restart_looks(&local->plan, step);
    if (!local->frozen && local->end.status == MUSTER_OK)
        gate_open(local->gate);
    pthread_mutex_unlock(&local->mutex);
}

static bool local_disk_is_full(const struct muster_error *why)
{
    return why->code == ENOSPC || why->code == EDQUOT;
}

static enum muster_status local_save_to_leave(struct local *local, void *call_arg, int64_t deadline,
                                              char ret_path[FS_PATH_MAX], struct muster_error *err)
{
    enum muster_status status = MUSTER_E_SAVE;

    for (int i = 0; i < SAVE_TRIES_MAX && status != MUSTER_OK && status != MUSTER_E_INTERRUPTED;
         i++) {
        if (i > 0 && (local_disk_is_full(err) || clock_ms(CLOCK_BOOTTIME) >= deadline - MARGIN_MS))
            break;
        status = local_save(local, call_arg, "termination", ret_path, err);
    }
    return status;
}

/* E_INTERRUPTED: its save was broken off, and the end is the interrupted program's own. */
static enum muster_status local_preempt(struct local *local, void *call_arg,
                                        struct muster_error *err)
{
    char path[FS_PATH_MAX], text[MUSTER_ERROR_TEXT_MAX];
    struct local_notice notice;
    struct muster_error why = {.status = MUSTER_OK};
    int64_t step = gate_done(local->gate);
    long long shown = step + local->options.save.names.offset;
    int64_t left;
    int code = 0;

    pthread_mutex_lock(&local->mutex);
    notice = local->plan.chosen;
    pthread_mutex_unlock(&local->mutex);
    if (step == local->saved_step)
        snprintf(text, sizeof text, "notice (%.200s): leaving at step %lld, which needs no save",
                 notice.text, shown);
    else if (local_save_to_leave(local, call_arg, notice.deadline_boot_ms, path, &why) ==
             MUSTER_OK) {
        left = notice.deadline_boot_ms - clock_ms(CLOCK_BOOTTIME);
        snprintf(text, sizeof text, "notice (%.200s): saved step %lld in %.600s, %lld ms %s",
                 notice.text, shown, path, (long long)(left < 0 ? -left : left),
                 left < 0 ? "after its deadline" : "before its deadline");
    } else if (why.status == MUSTER_E_INTERRUPTED) {
        return error_pass(err, why.status, &why);
    } else {
        code = MUSTER_E_NOT_SAVED;
        snprintf(
            text, sizeof text,
            "NOT saved: step %lld, by notice (%.200s): %.600s; a restart goes on from the newest "
            "checkpoint",
            shown, notice.text, why.text);
    }
    local_say(local, code == 0 ? 2 : 1, text);
    pthread_mutex_lock(&local->mutex);
    error_set_code(&local->end, MUSTER_PREEMPTED, code, "%s", text);
    local->end.step = step;
    pthread_mutex_unlock(&local->mutex);
    return MUSTER_OK;
}

static enum muster_status local_save_and_go_on(struct local *local, void *call_arg,
                                               const char *cause, struct muster_error *err)
{
    char path[FS_PATH_MAX];
    struct muster_error why;
    enum muster_status status = MUSTER_OK;

    local_plan_next_save(local);
    if (gate_done(local->gate) != local->saved_step)
        status = local_save(local, call_arg, cause, path, &why);
    if (status == MUSTER_E_INTERRUPTED)
        return error_pass(err, status, &why);
    if (status != MUSTER_OK)
        local_say(local, 0, why.text);
    return MUSTER_OK;
}

/* Mutex held: what this boundary has to do first. */
enum errand { ERRAND_NONE, ERRAND_END, ERRAND_LEAVE, ERRAND_SAVE_NOW, ERRAND_SAVE };

static enum errand local_next_errand(struct local *local)
{
    if (local->end.status != MUSTER_OK)
        return ERRAND_END;
    if (local->frozen)
        return ERRAND_LEAVE;
    if (local->save_now) {
        local->save_now = false;
        return ERRAND_SAVE_NOW;
    }
    return gate_done(local->gate) < local->gate->due ? ERRAND_NONE : ERRAND_SAVE;
}

enum muster_status local_boundary(struct local *local, bool begin, void *call_arg,
                                  struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    struct muster_error end;
    enum errand errand;

    while (status == MUSTER_OK) {
        pthread_mutex_lock(&local->mutex);
        end = local->end;
        errand = local_next_errand(local);
        if (errand == ERRAND_NONE) {
            gate_open(local->gate);
            if (begin)
                gate_begin(local->gate);
        }
        pthread_mutex_unlock(&local->mutex);
        if (errand == ERRAND_NONE)
            return MUSTER_OK;
        if (errand == ERRAND_LEAVE)
            status = local_preempt(local, call_arg, err);
        else if (errand != ERRAND_END)
            status = local_save_and_go_on(local, call_arg,
                                          errand == ERRAND_SAVE ? "policy" : "notice", err);
        else
            return error_pass(err, end.status, &end);
    }
    return status;
}

void local_words(struct local *local, char ret_text[LOCAL_SAYS_SIZE + 64])
{
    const unsigned count = local->saves_failed;

    ret_text[0] = '\0';
    pthread_mutex_lock(&local->mutex);
    if (local->end.status == MUSTER_PREEMPTED)
        snprintf(ret_text, LOCAL_SAYS_SIZE, "%.*s", LOCAL_SAYS_SIZE - 1, local->end.text);
    else if (count > 0)
        snprintf(ret_text, LOCAL_SAYS_SIZE + 64, "%u save%s of this launch failed, the last of %s",
                 count, count == 1 ? "" : "s", local->save_failed);
    pthread_mutex_unlock(&local->mutex);
}

void local_give_state(struct local *local, const struct muster_state *state)
{
    local->given_state = state;
}

enum muster_status local_set_facts(struct local *local, const char *metrics, const char *custom,
                                   struct muster_error *err)
{
    if ((metrics != NULL && !metrics_ok(metrics)) || (custom != NULL && !custom_ok(custom)))
        return error_set(
            err, MUSTER_E_ARGUMENT,
            "the metrics or the custom metadata are no JSON object of at most %d, %d bytes",
            METRICS_BYTES_MAX, CUSTOM_BYTES_MAX);
    free(local->metrics);
    free(local->custom);
    local->metrics = metrics != NULL && metrics[0] != '\0' ? strdup(metrics) : NULL;
    local->custom = custom != NULL && custom[0] != '\0' ? strdup(custom) : NULL;
    return MUSTER_OK;
}

enum muster_status local_end_step(struct local *local, const struct local_end *end, bool *ret_saves,
                                  struct muster_error *err)
{
    enum muster_status status = MUSTER_OK, boundary;
    char path[FS_PATH_MAX];
    int64_t begun;
    bool saves, wanted, told;

    pthread_mutex_lock(&local->mutex);
    begun = gate_begun(local->gate);
    gate_set(local->gate, begun > end->done ? begun : end->done, end->done);
    told = local->frozen || local->save_now; /* the boundary below saves for it */
    wanted = end->want && local->end.status == MUSTER_OK && !told;
    saves = (wanted || (told && local->end.status == MUSTER_OK)) && end->done != local->saved_step;
    pthread_mutex_unlock(&local->mutex);
    *ret_saves = saves;
    if (saves && end->ask) {
        local->turn_step = end->done;
        local->turn_ms = clock_ms(CLOCK_MONOTONIC);
        return MUSTER_OK;
    }
    if (saves && wanted)
        status = local_save(local, end->call_arg, "policy", path, err);
    if (status == MUSTER_E_INTERRUPTED) {
        *ret_saves = false;
        return status;
    }
    boundary = local_boundary(local, true, end->call_arg, status == MUSTER_OK ? err : NULL);
    *ret_saves = saves && local->saved_step == end->done;
    return boundary != MUSTER_OK ? boundary : status;
}

bool local_is_turn(const struct local *local)
{
    return local->turn_ms > 0 && local->turn_step == gate_done(local->gate);
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
    pthread_mutex_lock(&local->mutex);
    gate_count(local->gate);
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
