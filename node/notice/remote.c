/* remote - see remote.h. */
#include "node/notice/remote.h"

#include "node/notice/base/share.h"
#include "schema/error.h"

#include <stdlib.h>
#include <string.h>

struct remote {
    struct http *http;
    struct share_seat seat;
    struct provider_run run;
};

_Static_assert(PROVIDER_PATHS_MAX <= SHARE_TOPICS_MAX, "a path is a topic");
_Static_assert(PROVIDER_MEMORY_MAX == SHARE_MEMORY_MAX, "what is remembered is handed on");

enum muster_status remote_open(const struct provider *provider, const struct source_config *config,
                               void **ret_self, struct muster_error *err)
{
    struct remote *remote = calloc(1, sizeof *remote);

    if (remote == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for notice source %s; free some",
                         provider->name);
    if (!provider_init(&remote->run, provider, config->endpoint, config->seed, 0)) {
        free(remote);
        return error_set(err, MUSTER_E_ARGUMENT,
                         "notice source %s: \"%.100s\" is no address; give http://HOST[:PORT]",
                         provider->name, config->endpoint);
    }
    provider_set_pace(&remote->run,
                      (struct provider_pace){config->pace_waits, config->pace_timeouts});
    if (config->acknowledge)
        provider_allow_acknowledging(&remote->run);
    remote->http = config->http;
    share_seat_open(&remote->seat, config->runtime_dir, provider->name, remote->run.endpoint);
    *ret_self = remote;
    return MUSTER_OK;
}

static void remote_take_replies(struct remote *remote, const struct notice_now *now,
                                const struct source_out *out)
{
    struct http_reply reply;
    unsigned slot, topic;
    struct notice_set set;

    while (http_take(remote->http, remote, &slot, &reply))
        if (provider_take(&remote->run, slot, &reply, now, &topic, &set))
            share_seat_say(&remote->seat, topic, &set, out);
}

static void remote_ask(struct remote *remote, int64_t now_boot_ms)
{
    struct http_request *request = malloc(sizeof *request);
    unsigned slot;

    while (request != NULL && provider_next(&remote->run, now_boot_ms, request, &slot))
        if (!http_start(remote->http, request, remote, slot))
            provider_not_started(&remote->run, slot, now_boot_ms);
    free(request);
}

static void remote_own_status(const void *self, struct source_status *ret_status)
{
    provider_status(&((const struct remote *)self)->run, ret_status);
}

static void remote_run(void *self, const struct notice_now *now, const struct source_out *out)
{
    struct remote *remote = self;

    remote_take_replies(remote, now, out);
    if (remote->seat.asks) /* who takes over goes on with what was remembered */
        memcpy(remote->seat.state.memory, remote->run.memory, sizeof remote->run.memory);
    share_seat_look(&remote->seat, now, remote_own_status, remote, out);
    if (remote->seat.asks)
        remote_ask(remote, now->boot_ms);
    else
        memcpy(remote->run.memory, remote->seat.state.memory, sizeof remote->run.memory);
}

static int64_t remote_wakeup_boot_ms(const void *self)
{
    const struct remote *remote = self;
    int64_t at = remote->seat.asks ? provider_wakeup_boot_ms(&remote->run) : INT64_MAX;

    return share_seat_wakeup_boot_ms(&remote->seat, at);
}

static void remote_status(const void *self, struct source_status *ret_status)
{
    const struct remote *remote = self;

    if (remote->seat.asks)
        remote_own_status(self, ret_status);
    else
        share_seat_status(&remote->seat, ret_status);
}

static void remote_committed(void *self)
{
    struct remote *remote = self;

    provider_committed(&remote->run);
}

static bool remote_acknowledging(const void *self)
{
    const struct remote *remote = self;

    return remote->seat.asks && provider_is_acknowledging(&remote->run);
}

static void remote_close(void *self)
{
    struct remote *remote = self;

    http_abandon(remote->http, remote);
    share_close(&remote->seat.share);
    free(remote);
}

const struct source_ops remote_ops = {.run = remote_run,
                                      .wakeup_boot_ms = remote_wakeup_boot_ms,
                                      .status = remote_status,
                                      .close = remote_close,
                                      .committed = remote_committed,
                                      .acknowledging = remote_acknowledging};
