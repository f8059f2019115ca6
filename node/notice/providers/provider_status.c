/* provider_status - a provider's state, when it wants to ask, and what its parsers share. See
 * provider.h. */
#include "node/notice/providers/provider.h"

#include "node/notice/base/times.h"

#include <stdio.h>
#include <string.h>

#define NEVER INT64_MAX
#define RELEASE_MAX_MS 900000 /* more than that is no release's time */

enum parse_result provider_garbage(const struct provider_context *context, const char *why)
{
    snprintf(context->why, SOURCE_TEXT_MAX + 1, "%s", why);
    return PARSE_GARBAGE;
}

bool provider_instance_id(const struct http_reply *reply, const char *prefix,
                          const struct provider_context *context)
{
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char text[NOTICE_TEXT_MAX + 1];
    size_t length = strlen(prefix);

    notice_text(text, reply->body, reply->size);
    if (strncmp(text, prefix, length) != 0 || text[length] == '\0' ||
        strlen(text) > PROVIDER_MEMORY_MAX ||
        strspn(text + length, allowed) != strlen(text + length))
        return false;
    memcpy(context->memory, text, strlen(text) + 1);
    return true;
}

enum parse_result provider_release(const struct provider_context *context, const char *text,
                                   int64_t unix_ms, int64_t lead_ms, struct notice_set *set)
{
    struct notice_item item = {.kind = NOTICE_PREEMPT, .hard = true, .key = "spot"};

    item.deadline_boot_ms = times_deadline(&context->now, unix_ms, INT32_MAX);
    if (item.deadline_boot_ms > context->now.boot_ms + RELEASE_MAX_MS) /* absurd */
        item.deadline_boot_ms = context->now.boot_ms + lead_ms;
    snprintf(item.text, sizeof item.text, "the spot instance is released at %.60s", text);
    notice_set_add(set, &item);
    return PARSE_OK;
}

static int64_t provider_status_sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t provider_wakeup_boot_ms(const struct provider_run *run)
{
    int64_t at = NEVER, token_at = NEVER;
    bool with_token = run->provider->token_path != NULL;

    if (with_token && !run->token.in_flight) {
        token_at = run->token.next_boot_ms;
        if (run->token_text[0] != '\0' && run->token_refresh_boot_ms > token_at)
            token_at = run->token_refresh_boot_ms;
    }
    for (size_t i = 0; i < run->provider->path_count; i++) {
        unsigned after = run->provider->paths[i].after;

        if (!run->paths[i].in_flight && (after == 0 || run->paths[after - 1].well_once))
            at = provider_status_sooner(at, run->paths[i].next_boot_ms);
    }
    if (provider_is_acknowledging(run) && !run->acknowledgement.in_flight)
        at = provider_status_sooner(at, run->acknowledgement.next_boot_ms);
    if (with_token && !provider_has_token(run, run->seen_boot_ms) && !run->token_missing)
        return token_at; /* paths wait for it */
    return provider_status_sooner(at, token_at);
}

static const struct provider_asked *provider_worst(const struct provider_run *run)
{
    static const int badness[SOURCE_STATE_COUNT] = {
        [SOURCE_HEALTHY] = 0, [SOURCE_PROBING] = 1, [SOURCE_ABSENT] = 2, [SOURCE_DEGRADED] = 3};
    const struct provider_asked *worst_one = &run->paths[0];

    for (size_t i = 1; i < run->provider->path_count; i++)
        if (!run->provider->paths[i].hint &&
            badness[run->paths[i].state] > badness[worst_one->state])
            worst_one = &run->paths[i];
    return worst_one;
}

void provider_status(const struct provider_run *run, struct source_status *ret_status)
{
    const struct provider_asked *shown = provider_worst(run);
    bool any_well = false, blocked;

    ret_status->last_ok_boot_ms = -1;
    for (size_t i = 0; i < run->provider->path_count; i++) {
        if (run->paths[i].last_ok_boot_ms > ret_status->last_ok_boot_ms)
            ret_status->last_ok_boot_ms = run->paths[i].last_ok_boot_ms;
        any_well = any_well || run->paths[i].state == SOURCE_HEALTHY;
    }
    blocked = run->provider->token_path != NULL && !run->token_missing &&
              !provider_has_token(run, run->seen_boot_ms) && run->token.state != SOURCE_HEALTHY;
    if (blocked)
        shown = &run->token;
    ret_status->state = shown->state;
    if (shown->state == SOURCE_ABSENT && any_well && !blocked)
        ret_status->state = SOURCE_DEGRADED; /* a part of it is filtered */
    ret_status->retry_boot_ms =
        shown->state == SOURCE_HEALTHY ? provider_wakeup_boot_ms(run) : shown->next_boot_ms;
    if (ret_status->retry_boot_ms == NEVER)
        ret_status->retry_boot_ms = -1; /* all are in flight */
    memcpy(ret_status->text, shown->text, sizeof shown->text);
}
