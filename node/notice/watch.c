/* watch - see watch.h. Opening, taking, closing; the threads are watch_run.c's. */
#include "node/notice/watch_state.h"

#include "node/notice/base/http.h"
#include "node/notice/base/share.h"
#include "node/notice/callback.h"
#include "node/notice/detect.h"
#include "node/notice/signal.h"
#include "node/notice/usual.h"
#include "node/thread.h"
#include "schema/error.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SETTLE_LOOK_MS 5

struct watch {
    struct shared *shared;
    struct signal_watch *signals;
    struct callback *callback;
    struct slot *signal_slot;
    bool usual_grace;
};

/* --- opening ---------------------------------------------------------------------------------- */

static struct runner *watch_new_runner(struct shared *shared)
{
    struct runner *runner = &shared->runners[shared->runner_count++];

    *runner = (struct runner){.shared = shared, .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    return runner;
}

static enum muster_status watch_add_own(struct shared *shared, const struct source_wish *wish,
                                        struct muster_error *err)
{
    const struct source_ops *ops = sources_ops(wish->name);
    struct source_config config = {.argument = wish->argument,
                                   .runtime_dir =
                                       shared->runtime_dir[0] != '\0' ? shared->runtime_dir : NULL,
                                   .seed = shared->seed};
    struct runner *runner;
    void *self = NULL;
    enum muster_status status = ops->open(&config, &self, err);

    if (status != MUSTER_OK)
        return status;
    runner = watch_new_runner(shared);
    runner->slots[runner->slot_count++] =
        watch_new_slot(shared, sources_ops_name(ops), ops, self, SOURCE_PROBING);
    return MUSTER_OK;
}

static enum muster_status watch_add_wish(struct shared *shared, const struct source_wish *wish,
                                         struct muster_error *err)
{
    const struct provider *provider = sources_provider_named(wish->name);
    struct runner *first = &shared->runners[0];
    bool is_auto = strcmp(wish->name, "auto") == 0;
    enum muster_status status = MUSTER_OK;
    void *self = NULL;

    if (sources_ops(wish->name) != NULL)
        return watch_add_own(shared, wish, err);
    if (provider == NULL && !is_auto)
        return MUSTER_OK; /* signal, callback: their own options say */
    if (first->http == NULL)
        status = http_create(&first->http, err);
    if (status == MUSTER_OK && provider != NULL)
        status = watch_add_remote(shared, first, provider, err);
    if (status == MUSTER_OK && is_auto && getenv("SLURM_JOB_ID") != NULL && !shared->slurm) {
        shared->slurm = true;
        status = watch_add_own(shared, &(struct source_wish){.name = "slurm"}, err);
    }
    if (status != MUSTER_OK || !is_auto || first->detects)
        return status;
    status = detect_open(first, &self, err);
    if (status == MUSTER_OK)
        first->slots[first->slot_count++] =
            watch_new_slot(shared, "auto", &detect_ops, self, SOURCE_PROBING);
    first->detects = true;
    return status;
}

static void watch_read_environment(struct shared *shared)
{
    const char *prefix = getenv("MUSTER_SYS_PREFIX");

    if (prefix != NULL)
        snprintf(shared->sys_prefix, sizeof shared->sys_prefix, "%s", prefix);
    if (!share_directory(shared->runtime_dir, sizeof shared->runtime_dir))
        shared->runtime_dir[0] = '\0';
    for (size_t i = 0; sources_provider(i) != NULL; i++) {
        sources_endpoint(sources_provider(i), shared->endpoints[i], ENDPOINT_BYTES);
        shared->off[i] = sources_is_off(sources_provider(i));
        shared->acknowledge[i] = sources_acknowledges(sources_provider(i));
        shared->acknowledges = shared->acknowledges || shared->acknowledge[i];
    }
}

static enum muster_status watch_start(struct runner *runner, struct muster_error *err)
{
    int code;

    if (runner->http == NULL && runner->slot_count == 0)
        return MUSTER_OK;
    code = runner->wake_fd >= 0 ? thread_start(&runner->thread, watch_run, runner) : EMFILE;
    runner->started = code == 0;
    return code == 0 ? MUSTER_OK
                     : error_set_code(err, MUSTER_E_BUSY, code,
                                      "the thread for notice sources could not be started: %s; "
                                      "raise the limits (ulimit -u, ulimit -n)",
                                      strerror(code));
}

static struct shared *watch_new_shared(const struct watch_options *options)
{
    struct shared *shared = calloc(1, sizeof *shared);

    if (shared == NULL)
        return NULL;
    pthread_mutex_init(&shared->mutex, NULL);
    ledger_init(&shared->ledger);
    shared->wake_fd = options->wake_fd;
    shared->seed = options->seed;
    shared->pace = options->pace;
    return shared;
}

static enum muster_status watch_open_sources(struct watch *watch,
                                             const struct watch_options *options,
                                             struct muster_error *err)
{
    struct shared *shared = watch->shared;
    enum muster_status status = MUSTER_OK;

    if (options->sources == NULL || options->sources->count == 0)
        return MUSTER_OK;
    watch_read_environment(shared);
    (void)watch_new_runner(shared);                      /* the first: what is asked over HTTP */
    for (size_t i = 0; i < options->sources->count; i++) /* named: auto need not add it */
        shared->slurm = shared->slurm || strcmp(options->sources->items[i].name, "slurm") == 0;
    for (size_t i = 0; i < options->sources->count && status == MUSTER_OK; i++)
        status = watch_add_wish(shared, &options->sources->items[i], err);
    for (size_t i = 0; i < shared->runner_count && status == MUSTER_OK; i++)
        status = watch_start(&shared->runners[i], err);
    return status;
}

enum muster_status watch_open(const struct watch_options *options, struct watch **ret_watch,
                              struct muster_error *err)
{
    struct watch *watch = calloc(1, sizeof *watch);
    enum muster_status status;

    if (watch != NULL)
        watch->shared = watch_new_shared(options);
    if (watch == NULL || watch->shared == NULL) {
        free(watch);
        return error_set(err, MUSTER_E_NOMEM, "no memory for the node; free some");
    }
    watch->signal_slot = watch_new_slot(watch->shared, "signal", NULL, NULL,
                                        options->signal_count > 0 ? SOURCE_HEALTHY : SOURCE_OFF);
    watch_new_slot(watch->shared, "callback", NULL, NULL,
                   options->ask != NULL ? SOURCE_HEALTHY : SOURCE_OFF);
    watch->usual_grace = options->usual_grace;
    status = signal_watch(options->signals, options->signal_count, options->wake_fd,
                          &watch->signals, err);
    if (status == MUSTER_OK)
        status = callback_start(options->ask, options->arg, options->ask_period_ms,
                                options->wake_fd, &watch->callback, err);
    if (status == MUSTER_OK)
        status = watch_open_sources(watch, options, err);
    if (status == MUSTER_OK)
        *ret_watch = watch;
    else
        watch_close(&watch, 1000);
    return status;
}

/* --- closing ---------------------------------------------------------------------------------- */

/* A runner that was never started has its sources still. False: it runs on. */
static bool watch_end_runner(struct runner *runner, int64_t limit_ms)
{
    if (runner->started) {
        if (!thread_join(runner->thread, limit_ms))
            return false;
    } else {
        for (size_t i = 0; i < runner->slot_count; i++)
            runner->slots[i]->ops->close(runner->slots[i]->self);
        http_destroy(&runner->http);
    }
    if (runner->wake_fd >= 0)
        close(runner->wake_fd);
    return true;
}

void watch_silence(struct watch *watch)
{
    if (watch == NULL)
        return;
    pthread_mutex_lock(&watch->shared->mutex);
    watch->shared->wake_fd = -1;
    pthread_mutex_unlock(&watch->shared->mutex);
    atomic_store(&watch->shared->stop, true);
    callback_abandon(watch->callback); /* the hanging thread may be taking from it */
    signal_unwatch(&watch->signals);
}

void watch_committed(struct watch *watch)
{
    struct shared *shared = watch->shared;
    struct runner *first = &shared->runners[0];

    if (!shared->acknowledges || !first->started || first->http == NULL ||
        atomic_load(&shared->committed))
        return;
    atomic_store(&shared->acknowledging, true); /* until a pass says that nothing is left */
    atomic_store(&shared->committed, true);
    watch_wake(first->wake_fd);
}

void watch_settle(struct watch *watch, int64_t limit_ms)
{
    int64_t until = watch_clocks().boot_ms + limit_ms;

    while (watch != NULL && atomic_load(&watch->shared->acknowledging) &&
           watch_clocks().boot_ms < until)
        poll(NULL, 0, SETTLE_LOOK_MS);
}

void watch_close(struct watch **watch, int64_t limit_ms)
{
    struct watch *w = *watch;
    struct shared *shared;
    int64_t until;
    bool all = true;

    if (w == NULL)
        return;
    *watch = NULL;
    shared = w->shared;
    until = watch_clocks().boot_ms + limit_ms;
    pthread_mutex_lock(&shared->mutex);
    shared->wake_fd = -1;
    pthread_mutex_unlock(&shared->mutex);
    atomic_store(&shared->stop, true);
    for (size_t i = 0; i < shared->runner_count; i++)
        watch_wake(shared->runners[i].wake_fd);
    callback_stop(&w->callback, limit_ms);
    signal_unwatch(&w->signals);
    for (size_t i = 0; i < shared->runner_count; i++) {
        int64_t left = until - watch_clocks().boot_ms;

        all = watch_end_runner(&shared->runners[i], left > 0 ? left : 0) && all;
    }
    if (all) { /* else a thread uses it still; nothing but memory is lost */
        pthread_mutex_destroy(&shared->mutex);
        free(shared);
    }
    free(w);
}

/* --- taking ----------------------------------------------------------------------------------- */

static bool watch_say_one(struct shared *shared, const char *source, unsigned topic,
                          const struct notice_item *item)
{
    struct notice_set set;

    set.count = 0;
    notice_set_add(&set, item);
    return watch_say(shared, source, topic, &set, watch_clocks().boot_ms);
}

/* It says nothing new: number 0, for the log. */
static void watch_say_again(struct shared *shared, const struct notice_item *item)
{
    struct notice_record record = {.source = "signal", .item = *item};

    pthread_mutex_lock(&shared->mutex);
    shared->out.records[0] = record;
    shared->out.count = 1;
    watch_queue(shared);
    pthread_mutex_unlock(&shared->mutex);
}

/* A signal says no time; but the launcher's usual one is known. */
static void watch_assume_grace(const struct signal_seen *seen, struct notice_item *item)
{
    struct usual_grace usual =
        usual_grace((const char *const *)environ, seen->signo, (int)getpid(), (int)getppid());
    size_t used = strlen(item->text);

    if (usual.ms < 0)
        return;
    item->deadline_boot_ms = seen->at_boot_ms + usual.ms;
    snprintf(item->text + used, sizeof item->text - used, "; %s gives %g s", usual.who,
             (double)usual.ms / 1000);
}

/* Signals and the callback were told by their own means; from here on they are as all others. */
static void watch_take_own(struct watch *watch)
{
    struct notice_item item = {.kind = NOTICE_SIGNAL, .deadline_boot_ms = -1, .key = "signal"};
    struct signal_seen seen;

    while (signal_take(watch->signals, &seen)) {
        item.deadline_boot_ms = -1;
        signal_describe(&seen, item.text);
        if (watch->usual_grace)
            watch_assume_grace(&seen, &item);
        if (!watch_say_one(watch->shared, "signal", (unsigned)seen.signo, &item))
            watch_say_again(watch->shared, &item);
    }
    if (!callback_take(watch->callback))
        return;
    item = (struct notice_item){.kind = NOTICE_TERMINATE, .deadline_boot_ms = -1, .key = "yes"};
    snprintf(item.text, sizeof item.text, "termination_watcher_fn said so");
    (void)watch_say_one(watch->shared, "callback", 0, &item);
}

bool watch_take(struct watch *watch, struct notice_record *ret_record)
{
    struct shared *shared = watch->shared;
    bool some;

    watch_take_own(watch);
    pthread_mutex_lock(&shared->mutex);
    some = shared->count > 0;
    if (some) {
        *ret_record = shared->records[shared->first];
        shared->first = (shared->first + 1) % RECORDS_MAX;
        shared->count--;
    }
    pthread_mutex_unlock(&shared->mutex);
    return some;
}

void watch_forget(struct watch *watch, uint64_t number)
{
    pthread_mutex_lock(&watch->shared->mutex);
    ledger_forget(&watch->shared->ledger, number);
    pthread_mutex_unlock(&watch->shared->mutex);
}

struct signal_name {
    char text[16];
};

static struct signal_name watch_name_of(int signo)
{
    struct signal_name name;
    const char *abbreviation = sigabbrev_np(signo);

    if (abbreviation != NULL)
        snprintf(name.text, sizeof name.text, "SIG%.10s", abbreviation);
    else
        snprintf(name.text, sizeof name.text, "%d", signo);
    return name;
}

static void watch_say_displaced(struct source_status *status, int signo)
{
    const struct signal_name name = watch_name_of(signo);

    status->state = SOURCE_DEGRADED;
    snprintf(status->text, sizeof status->text,
             "the program took %s from muster after open, so it saves nothing; set your handler "
             "before open, or call muster_notify_signal(%s) in it",
             name.text, name.text);
}

static void watch_say_put_back(struct source_status *status, int signo)
{
    const struct signal_name name = watch_name_of(signo);

    status->state = SOURCE_HEALTHY;
    snprintf(status->text, sizeof status->text,
             "the program put its own handler for %s over muster's; muster put its own back, "
             "which calls the program's too",
             name.text);
}

/* A program or library may put its own handler over ours after open: ours goes back over it. */
static void watch_look_after_signals(struct watch *watch)
{
    struct source_status *status = &watch->signal_slot->status;
    int back, displaced;

    if (status->state == SOURCE_OFF)
        return;
    back = signal_put_back(watch->signals);
    displaced = signal_displaced(watch->signals);
    pthread_mutex_lock(&watch->shared->mutex);
    if (displaced != 0)
        watch_say_displaced(status, displaced);
    else if (back != 0)
        watch_say_put_back(status, back);
    else if (status->state == SOURCE_DEGRADED) {
        status->state = SOURCE_HEALTHY;
        status->text[0] = '\0';
    }
    pthread_mutex_unlock(&watch->shared->mutex);
}

bool watch_take_change(struct watch *watch, struct source_status *ret_status)
{
    struct shared *shared = watch->shared;
    bool some = false;

    watch_look_after_signals(watch);
    pthread_mutex_lock(&shared->mutex);
    for (size_t i = 0; i < shared->slot_count && !some; i++) {
        struct slot *slot = &shared->slots[i];

        some = slot->status.state != slot->told.state ||
               strcmp(slot->status.text, slot->told.text) != 0;
        if (some)
            *ret_status = slot->told = slot->status;
    }
    pthread_mutex_unlock(&shared->mutex);
    return some;
}

static json_t *watch_status_json(const struct source_status *status, const struct notice_now *now)
{
    json_int_t ok = -1, retry = -1;

    if (status->last_ok_boot_ms >= 0)
        ok = now->unix_ms - (now->boot_ms - status->last_ok_boot_ms);
    if (status->retry_boot_ms >= 0 && status->retry_boot_ms != INT64_MAX)
        retry = status->retry_boot_ms > now->boot_ms ? status->retry_boot_ms - now->boot_ms : 0;
    return json_pack("{s:s,s:s,s:I,s:I,s:s}", "name", status->name, "state",
                     source_state_name(status->state), "ok_unix_ms", ok, "retry_ms", retry, "text",
                     status->text);
}

void watch_json(struct watch *watch, const struct notice_now *now,
                char ret_json[WATCH_JSON_MAX + 1])
{
    size_t used = 0;

    ret_json[used++] = '[';
    pthread_mutex_lock(&watch->shared->mutex);
    for (size_t i = 0; i < watch->shared->slot_count; i++) {
        json_t *json = watch_status_json(&watch->shared->slots[i].status, now);
        char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
        size_t length = text != NULL ? strlen(text) : 0;

        if (length > 0 && used + length + 2 <= WATCH_JSON_MAX) {
            if (used > 1)
                ret_json[used++] = ',';
            memcpy(ret_json + used, text, length);
            used += length;
        }
        free(text);
        json_decref(json);
    }
    pthread_mutex_unlock(&watch->shared->mutex);
    ret_json[used++] = ']';
    ret_json[used] = '\0';
}
