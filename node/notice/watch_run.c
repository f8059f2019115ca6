/* watch_run - a runner's thread: its sources' turns, their states, what they say. See watch.h. */
#include "node/clock.h"
#include "node/notice/watch_state.h"

#include "node/notice/base/http.h"
#include "node/notice/remote.h"
#include "schema/error.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct notice_now watch_clocks(void)
{
    return (struct notice_now){.boot_ms = clock_ms(CLOCK_BOOTTIME),
                               .unix_ms = clock_ms(CLOCK_REALTIME)};
}

void watch_wake(int fd)
{
    const uint64_t one = 1;
    ssize_t written = fd >= 0 ? write(fd, &one, sizeof one) : 0; /* full: it is readable already */

    (void)written;
}

/* Mutex held. */
void watch_queue(struct shared *shared)
{
    for (size_t i = 0; i < shared->out.count && shared->count < RECORDS_MAX; i++)
        shared->records[(shared->first + shared->count++) % RECORDS_MAX] = shared->out.records[i];
    if (shared->out.count > 0)
        watch_wake(shared->wake_fd);
}

/* True: it was news. */
bool watch_say(struct shared *shared, const char *source, unsigned topic,
               const struct notice_set *set, int64_t now_boot_ms)
{
    bool news;

    pthread_mutex_lock(&shared->mutex);
    ledger_say(&shared->ledger, source, topic, set, now_boot_ms, &shared->out);
    news = shared->out.count > 0;
    watch_queue(shared);
    pthread_mutex_unlock(&shared->mutex);
    return news;
}

struct said_by {
    struct shared *shared;
    const char *source;
    unsigned first_topic; /* two files are two sources of one name */
    int64_t now_boot_ms;
};

static void watch_run_say(void *arg, unsigned topic, const struct notice_set *set)
{
    struct said_by *by = arg;

    (void)watch_say(by->shared, by->source, by->first_topic + topic, set, by->now_boot_ms);
}

/* --- a runner's thread ------------------------------------------------------------------------ */

static void watch_printable(char *text) /* parts of it come from outside */
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void watch_note_status(struct shared *shared, struct slot *slot)
{
    struct source_status status = {.last_ok_boot_ms = -1, .retry_boot_ms = -1};

    slot->ops->status(slot->self, &status);
    watch_printable(status.text);
    snprintf(status.name, sizeof status.name, "%s", slot->name);
    pthread_mutex_lock(&shared->mutex);
    slot->status = status;
    if (status.state != slot->told.state || strcmp(status.text, slot->told.text) != 0)
        watch_wake(shared->wake_fd);
    pthread_mutex_unlock(&shared->mutex);
}

static void run_sources(struct runner *runner)
{
    struct shared *shared = runner->shared;
    struct notice_now now = watch_clocks();
    bool committed = atomic_load(&shared->committed), acknowledging = false;

    for (size_t i = 0; i < runner->slot_count; i++) {
        struct slot *slot = runner->slots[i];
        unsigned index = (unsigned)(slot - shared->slots);
        struct said_by by = {shared, slot->name, index * TOPICS_MAX, now.boot_ms};

        if (committed && slot->ops->committed != NULL)
            slot->ops->committed(slot->self);
        slot->ops->run(slot->self, &now, &(struct source_out){watch_run_say, &by});
        watch_note_status(shared, slot);
        if (slot->ops->acknowledging != NULL && slot->ops->acknowledging(slot->self))
            acknowledging = true;
    }
    if (committed && runner->http != NULL)
        atomic_store(&shared->acknowledging, acknowledging);
    pthread_mutex_lock(&shared->mutex);
    ledger_tick(&shared->ledger, now.boot_ms, &shared->out);
    watch_queue(shared);
    pthread_mutex_unlock(&shared->mutex);
}

static void watch_sleep_runner(struct runner *runner)
{
    struct pollfd fds[1 + RUNNER_SLOTS_MAX * SOURCE_FDS_MAX] = {
        {.fd = runner->wake_fd, .events = POLLIN}};
    size_t count = 1;
    uint64_t woken;
    ssize_t got;
    int64_t now = watch_clocks().boot_ms, until = now + SLEEP_MAX_MS;

    for (size_t i = 0; i < runner->slot_count; i++) {
        const struct slot *slot = runner->slots[i];
        int64_t at = slot->ops->wakeup_boot_ms(slot->self);

        if (at < until)
            until = at;
        if (slot->ops->fds != NULL)
            count += slot->ops->fds(slot->self, fds + count);
    }
    if (until < now + PASS_LEAST_MS)
        until = now + PASS_LEAST_MS;
    if (runner->http != NULL)
        http_wait(runner->http, fds, count, until - now);
    else
        poll(fds, count, (int)(until - now));
    got = read(runner->wake_fd, &woken, sizeof woken); /* the next pass sees what it was for */
    (void)got;
}

struct slot *watch_new_slot(struct shared *shared, const char *name, const struct source_ops *ops,
                            void *self, enum source_state state)
{
    struct slot *slot;

    pthread_mutex_lock(&shared->mutex);
    slot = &shared->slots[shared->slot_count];
    *slot = (struct slot){.name = name, .ops = ops, .self = self};
    slot->status.state = state;
    slot->status.last_ok_boot_ms = slot->status.retry_boot_ms = -1;
    snprintf(slot->status.name, sizeof slot->status.name, "%s", name);
    slot->told = slot->status;
    shared->slot_count++;
    pthread_mutex_unlock(&shared->mutex);
    return slot;
}

static size_t watch_provider_index(const struct provider *provider)
{
    size_t index = 0;

    while (sources_provider(index) != provider)
        index++;
    return index;
}

enum muster_status watch_add_remote(struct shared *shared, struct runner *runner,
                                    const struct provider *provider, struct muster_error *err)
{
    size_t index = watch_provider_index(provider);
    const char *endpoint = shared->endpoints[index];
    struct source_config config = {.argument = "",
                                   .endpoint = endpoint[0] != '\0' ? endpoint : NULL,
                                   .runtime_dir =
                                       shared->runtime_dir[0] != '\0' ? shared->runtime_dir : NULL,
                                   .http = runner->http,
                                   .seed = shared->seed + index,
                                   .pace_waits = shared->pace.waits,
                                   .pace_timeouts = shared->pace.timeouts,
                                   .acknowledge = shared->acknowledge[index]};
    enum muster_status status;
    struct slot *slot;
    void *self = NULL;

    if (runner->slot_count == sizeof runner->slots / sizeof *runner->slots)
        return error_set(err, MUSTER_E_ARGUMENT, "more than %d notice sources; name fewer",
                         SOURCES_MAX);
    if (shared->off[index]) {
        slot = watch_new_slot(shared, provider->name, NULL, NULL, SOURCE_OFF);
        snprintf(slot->status.text, sizeof slot->status.text, "%s says so",
                 provider->disabled_environment);
        return MUSTER_OK;
    }
    status = remote_open(provider, &config, &self, err);
    if (status == MUSTER_OK)
        runner->slots[runner->slot_count++] =
            watch_new_slot(shared, provider->name, &remote_ops, self, SOURCE_PROBING);
    return status;
}

void *watch_run(void *arg)
{
    struct runner *runner = arg;

    while (!atomic_load(&runner->shared->stop)) {
        run_sources(runner);
        if (!atomic_load(&runner->shared->stop))
            watch_sleep_runner(runner);
    }
    for (size_t i = 0; i < runner->slot_count; i++)
        runner->slots[i]->ops->close(runner->slots[i]->self);
    http_destroy(&runner->http);
    return NULL;
}
