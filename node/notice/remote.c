/* remote - see remote.h. */
#include "node/notice/remote.h"

#include "node/notice/share.h"
#include "schema/error.h"

#include <stdlib.h>
#include <string.h>

struct remote {
    struct http *http;
    struct share *share;
    int64_t share_boot_ms; /* when it is looked at next */
    bool asks;
    struct provider_run run;
    struct share_state state; /* what is known: asked for, or read */
};

_Static_assert(PROVIDER_PATHS_MAX <= SHARE_TOPICS_MAX, "a path is a topic");

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
    remote->http = config->http;
    remote->share = share_open(config->runtime_dir, provider->name, remote->run.endpoint);
    remote->asks = remote->share == NULL;
    remote->state.status.state = SOURCE_PROBING;
    remote->state.status.last_ok_boot_ms = -1;
    *ret_self = remote;
    return MUSTER_OK;
}

static void take_replies(struct remote *remote, const struct notice_now *now,
                         const struct source_out *out)
{
    struct http_reply reply;
    unsigned slot, topic;
    struct notice_set set;

    while (http_take(remote->http, remote, &slot, &reply)) {
        if (!provider_take(&remote->run, slot, &reply, now, &topic, &set))
            continue;
        remote->state.known[topic] = true;
        remote->state.sets[topic] = set;
        out->say(out->arg, topic, &set);
    }
}

static void ask(struct remote *remote, int64_t now_boot_ms)
{
    struct http_request *request = malloc(sizeof *request);
    unsigned slot;

    while (request != NULL && provider_next(&remote->run, now_boot_ms, request, &slot))
        if (!http_start(remote->http, request, remote, slot))
            provider_not_started(&remote->run, slot, now_boot_ms);
    free(request);
}

static void say_read(struct remote *remote, const struct source_out *out)
{
    for (unsigned i = 0; i < SHARE_TOPICS_MAX; i++)
        if (remote->state.known[i])
            out->say(out->arg, i, &remote->state.sets[i]);
}

/* Who asks, and what another who asks has learnt. */
static void look_around(struct remote *remote, const struct notice_now *now,
                        const struct source_out *out)
{
    struct share_state *read;

    if (remote->share == NULL || now->boot_ms < remote->share_boot_ms)
        return;
    remote->share_boot_ms = now->boot_ms + SHARE_STAMP_MS;
    remote->asks = share_is_asker(remote->share, now->boot_ms);
    if (remote->asks) {
        remote->state.stamp_boot_ms = now->boot_ms;
        provider_status(&remote->run, &remote->state.status);
        share_write(remote->share, &remote->state);
        return;
    }
    read = malloc(sizeof *read);
    if (read != NULL && share_read(remote->share, now->boot_ms, read)) {
        remote->state = *read;
        say_read(remote, out);
    }
    free(read);
}

static void run(void *self, const struct notice_now *now, const struct source_out *out)
{
    struct remote *remote = self;

    take_replies(remote, now, out);
    look_around(remote, now, out);
    if (remote->asks)
        ask(remote, now->boot_ms);
}

static int64_t wakeup_boot_ms(const void *self)
{
    const struct remote *remote = self;
    int64_t at = remote->asks ? provider_wakeup_boot_ms(&remote->run) : INT64_MAX;

    return remote->share != NULL && remote->share_boot_ms < at ? remote->share_boot_ms : at;
}

static void status(const void *self, struct source_status *ret_status)
{
    const struct remote *remote = self;

    if (remote->asks)
        provider_status(&remote->run, ret_status);
    else {
        ret_status->state = remote->state.status.state;
        ret_status->last_ok_boot_ms = remote->state.status.last_ok_boot_ms;
        ret_status->retry_boot_ms = remote->state.status.retry_boot_ms;
        memcpy(ret_status->text, remote->state.status.text, sizeof ret_status->text);
    }
}

static void close_remote(void *self)
{
    struct remote *remote = self;

    http_abandon(remote->http, remote);
    share_close(&remote->share);
    free(remote);
}

const struct source_ops remote_ops = {
    .run = run, .wakeup_boot_ms = wakeup_boot_ms, .status = status, .close = close_remote};
