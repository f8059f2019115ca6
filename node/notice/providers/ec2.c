/* ec2 - see ec2.h. Facts: Amazon's documentation of instance metadata and of spot interruptions. */
#include "node/notice/providers/ec2.h"

#include "node/notice/base/json.h"
#include "node/notice/base/times.h"

#include <stdio.h>
#include <string.h>

#define SPOT_LEAD_MS 120000                 /* two minutes, best effort */
#define EVENT_LEAD_MAX_MS (60 * 86400000LL) /* scheduled events come weeks ahead at most */
#define SPOT_LEAD_MAX_MS 600000             /* more than that is no spot action's time */

/* {"action":"terminate","time":"2020-04-24T17:11:44Z"}. The key is the action alone: an imitation
 * of the service moves the time at every request, and the first one counts. */
enum parse_result ec2_parse_spot(const struct http_reply *reply,
                                 const struct provider_context *context, struct notice_set *set)
{
    struct notice_item item = {.hard = true};
    char action[32], time[64];
    int64_t unix_ms, latest;
    json_t *root = json_read(reply);
    bool read = json_text(root, "action", action, sizeof action) &&
                json_text(root, "time", time, sizeof time);

    json_decref(root);
    if (!read)
        return provider_garbage(context,
                                "spot/instance-action: no JSON object with action and time");
    if (strcmp(action, "terminate") == 0)
        item.kind = NOTICE_PREEMPT;
    else if (strcmp(action, "stop") == 0 || strcmp(action, "hibernate") == 0)
        item.kind = NOTICE_STOP;
    else
        return provider_garbage(context, "spot/instance-action: an action that is not known");
    if (!times_rfc3339(time, &unix_ms))
        return provider_garbage(context, "spot/instance-action: time is no date");
    item.deadline_boot_ms = times_deadline(&context->now, unix_ms, INT32_MAX);
    latest = context->now.boot_ms + SPOT_LEAD_MS;
    if (item.deadline_boot_ms >
        context->now.boot_ms + SPOT_LEAD_MAX_MS) /* absurd: the usual lead */
        item.deadline_boot_ms = latest;
    if (strcmp(action, "hibernate") == 0) /* begins at once, whatever the time says */
        item.deadline_boot_ms = context->now.boot_ms;
    snprintf(item.key, sizeof item.key, "spot-%s", action);
    notice_text(item.text, reply->body, reply->size);
    notice_set_add(set, &item);
    return PARSE_OK;
}

static bool ec2_event_kind(const char *code, enum wire_notice_kind *ret_kind)
{
    static const struct {
        const char *code;
        enum wire_notice_kind kind;
    } kinds[] = {{"instance-stop", NOTICE_STOP},
                 {"instance-retirement", NOTICE_TERMINATE},
                 {"instance-reboot", NOTICE_REBOOT},
                 {"system-reboot", NOTICE_REBOOT},
                 {"system-maintenance", NOTICE_FREEZE}}; /* network or power for a while */

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].code, code) == 0) {
            *ret_kind = kinds[i].kind;
            return true;
        }
    return false;
}

/* False: it cannot be read. */
static bool ec2_add_event(const json_t *event, const struct provider_context *context,
                          struct notice_set *set)
{
    struct notice_item item = {.cancellable = true};
    char code[64], id[64] = "", state[32] = "active", before[64], description[128] = "", text[400];
    int64_t unix_ms;

    if (!json_is_object(event) || !json_text(event, "Code", code, sizeof code) ||
        !json_text(event, "NotBefore", before, sizeof before) || !times_rfc1123(before, &unix_ms))
        return false;
    json_text(event, "State", state, sizeof state);
    json_text(event, "EventId", id, sizeof id);
    json_text(event, "Description", description, sizeof description);
    if (strcmp(state, "active") != 0) /* completed, canceled */
        return true;
    if (!ec2_event_kind(code, &item.kind))
        item.kind = NOTICE_FREEZE; /* one that is not known yet: told, no end */
    item.hard = wire_notice_ends(item.kind);
    item.deadline_boot_ms = times_deadline(&context->now, unix_ms, EVENT_LEAD_MAX_MS);
    snprintf(item.key, sizeof item.key, "event-%s", id[0] != '\0' ? id : code);
    snprintf(text, sizeof text, "%s %s %s: %s", code, id, before, description);
    notice_text(item.text, text, strlen(text));
    notice_set_add(set, &item);
    return true;
}

enum parse_result ec2_parse_events(const struct http_reply *reply,
                                   const struct provider_context *context, struct notice_set *set)
{
    json_t *root = json_read(reply);
    bool read = json_is_array(root);

    for (size_t i = 0; read && i < json_array_size(root); i++)
        read = ec2_add_event(json_array_get(root, i), context, set);
    json_decref(root);
    return read
               ? PARSE_OK
               : provider_garbage(context, "events/maintenance/scheduled: no JSON array of events");
}

enum parse_result ec2_parse_scaling(const struct http_reply *reply,
                                    const struct provider_context *context, struct notice_set *set)
{
    struct notice_item item = {
        .kind = NOTICE_TERMINATE, .deadline_boot_ms = -1, .cancellable = true};
    static const char *const states[] = {"InService",      "Standby",           "Detached",
                                         "Warmed:Running", "Warmed:Hibernated", "Warmed:Stopped"};

    notice_text(item.text, reply->body, reply->size); /* one word, with or without a newline */
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(item.text, states[i]) == 0)
            return PARSE_OK;
    if (strcmp(item.text, "Terminated") != 0 && strcmp(item.text, "Warmed:Terminated") != 0)
        return provider_garbage(context,
                                "autoscaling/target-lifecycle-state: a state that is not known");
    snprintf(item.key, sizeof item.key, "scaling");
    snprintf(item.text, sizeof item.text, "the auto-scaling group terminates the instance");
    notice_set_add(set, &item);
    return PARSE_OK;
}

enum parse_result ec2_parse_rebalance(const struct http_reply *reply,
                                      const struct provider_context *context,
                                      struct notice_set *set)
{
    struct notice_item item = {
        .kind = NOTICE_MIGRATE, .deadline_boot_ms = -1, .cancellable = true, .key = "rebalance"};
    json_t *root = json_read(reply);
    char time[64];
    bool read = json_text(root, "noticeTime", time, sizeof time);

    json_decref(root);
    if (!read)
        return provider_garbage(context, "events/recommendations/rebalance: no noticeTime");
    snprintf(item.text, sizeof item.text, "rebalance is recommended since %s: a hint, no end",
             time);
    notice_set_add(set, &item);
    return PARSE_OK;
}

/* The real one's own name: a bridge to a container may let everything through but its tokens. */
static bool ec2_is_ec2(const struct http_reply *reply)
{
    char server[32];

    return http_header(reply, "Server", server, sizeof server) && strcmp(server, "EC2ws") == 0;
}

static const struct provider_path paths[EC2_PATH_COUNT] = {
    [EC2_SPOT] = {.path = "/latest/meta-data/spot/instance-action",
                  .interval_ms = 2000,
                  .timeout_ms = 2000,
                  .parse = ec2_parse_spot},
    [EC2_EVENTS] = {.path = "/latest/meta-data/events/maintenance/scheduled",
                    .interval_ms = 30000,
                    .timeout_ms = 2000,
                    .parse = ec2_parse_events},
    [EC2_SCALING] = {.path = "/latest/meta-data/autoscaling/target-lifecycle-state",
                     .interval_ms = 2000,
                     .timeout_ms = 2000,
                     .parse = ec2_parse_scaling},
    [EC2_REBALANCE] = {.path = "/latest/meta-data/events/recommendations/rebalance",
                       .interval_ms = 30000,
                       .timeout_ms = 2000,
                       .hint = true,
                       .parse = ec2_parse_rebalance},
};

const struct provider provider_ec2 = {
    .name = "ec2",
    .endpoint = "http://169.254.169.254",
    .endpoint_environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT"},
    .disabled_environment = "AWS_EC2_METADATA_DISABLED",
    .token_path = "/latest/api/token",
    .token_ttl_header = "X-aws-ec2-metadata-token-ttl-seconds",
    .token_header = "X-aws-ec2-metadata-token",
    .token_ttl_s = 21600,
    .token_ttl_told = true,
    .is_ours_tokenless = ec2_is_ec2,
    .connect_ms = 1000,
    .paths = paths,
    .path_count = EC2_PATH_COUNT,
};
