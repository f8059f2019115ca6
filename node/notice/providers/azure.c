/* azure - see azure.h. Facts: Microsoft's documentation of scheduled events and of instance
 * metadata. */
#include "node/notice/providers/azure.h"

#include "node/notice/base/json.h"
#include "node/notice/base/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KEY "event-"
#define LEAD_MAX_MS (60 * 86400000LL) /* failing hardware is announced days ahead */

/* The machine's name as the events have it: not the host's name, which differs in a scale set. */
enum parse_result azure_parse_name(const struct http_reply *reply,
                                   const struct provider_context *context, struct notice_set *set)
{
    static const char allowed[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.";
    char name[NOTICE_TEXT_MAX + 1];

    (void)set;
    notice_text(name, reply->body, reply->size);
    if (name[0] == '\0' || strlen(name) > PROVIDER_MEMORY_MAX ||
        strspn(name, allowed) != strlen(name))
        return PARSE_FOREIGN;
    memcpy(context->memory, name, strlen(name) + 1);
    return PARSE_OK;
}

static bool azure_is_about(const json_t *event, const char *name)
{
    const json_t *resources = json_object_get(event, "Resources");

    for (size_t i = 0; i < json_array_size(resources); i++) {
        const char *resource = json_string_value(json_array_get(resources, i));

        if (resource != NULL && strcasecmp(resource, name) == 0) /* Azure's names have no case */
            return true;
    }
    return false;
}

static enum wire_notice_kind azure_kind_of(const char *type)
{
    static const struct {
        const char *type;
        enum wire_notice_kind kind;
    } kinds[] = {{"Preempt", NOTICE_PREEMPT},
                 {"Terminate", NOTICE_TERMINATE},
                 {"Reboot", NOTICE_REBOOT},
                 {"Redeploy", NOTICE_REBOOT}}; /* to another host, with empty local disks */

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].type, type) == 0)
            return kinds[i].kind;
    return NOTICE_FREEZE; /* and one that is not known yet: told, no end */
}

/* RFC 1123 as documented, ISO 8601 as an imitation of the service writes it, empty once it has
 * started. */
static bool azure_read_time(const char *text, bool started, const struct notice_now *now,
                            int64_t *ret_boot_ms)
{
    int64_t unix_ms;

    *ret_boot_ms = started ? now->boot_ms : -1;
    if (text[0] == '\0')
        return true;
    if (!times_rfc1123(text, &unix_ms) && !times_rfc3339(text, &unix_ms))
        return false;
    if (!started)
        *ret_boot_ms = times_deadline(now, unix_ms, LEAD_MAX_MS);
    return true;
}

/* False: it cannot be read. */
static bool azure_add_event(const json_t *event, const struct provider_context *context,
                            struct notice_set *set)
{
    struct notice_item item = {0};
    char id[80], type[32], status[32] = "Scheduled", before[64] = "", description[128] = "";
    char text[400];
    bool started;

    if (!json_is_object(event) || !json_text(event, "EventId", id, sizeof id) ||
        !json_text(event, "EventType", type, sizeof type) ||
        !json_is_array(json_object_get(event, "Resources")))
        return false;
    if (!azure_is_about(event, context->memory))
        return true;
    json_text(event, "EventStatus", status, sizeof status);
    json_text(event, "NotBefore", before, sizeof before);
    json_text(event, "Description", description, sizeof description);
    started = strcmp(status, "Started") == 0;
    if (!azure_read_time(before, started, &context->now, &item.deadline_boot_ms))
        return false;
    item.kind = azure_kind_of(type);
    item.hard = wire_notice_ends(item.kind);
    item.cancellable = !started || !item.hard; /* what has started vanishes when it is over */
    snprintf(item.key, sizeof item.key, KEY "%s", id);
    snprintf(text, sizeof text, "%s %s %s %s %s", type, status, id, before, description);
    notice_text(item.text, text, strlen(text));
    notice_set_add(set, &item);
    return true;
}

enum parse_result azure_parse_events(const struct http_reply *reply,
                                     const struct provider_context *context, struct notice_set *set)
{
    json_t *root = json_read(reply);
    const json_t *events = json_object_get(root, "Events");
    bool read = json_is_array(events);
    bool foreign = root != NULL && json_object_get(root, "DocumentIncarnation") == NULL;

    for (size_t i = 0; read && i < json_array_size(events); i++)
        read = azure_add_event(json_array_get(events, i), context, set);
    json_decref(root);
    if (foreign)
        return PARSE_FOREIGN;
    return read ? PARSE_OK
                : provider_garbage(context, "scheduledevents: no JSON object with Events");
}

/* It is for all machines that the event names. */
static void azure_acknowledge(const struct notice_item *item, char ret_body[PROVIDER_BODY_MAX + 1])
{
    json_t *body = json_pack("{s:[{s:s}]}", "StartRequests", "EventId", item->key + strlen(KEY));
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;

    snprintf(ret_body, PROVIDER_BODY_MAX + 1, "%s", text != NULL ? text : "{}");
    free(text);
    json_decref(body);
}

static const struct provider_path paths[AZURE_PATH_COUNT] = {
    [AZURE_NAME] = {.path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
                    .timeout_ms = 3000,
                    .missing_is_absent = true,
                    .parse = azure_parse_name},
    [AZURE_EVENTS] = {.path = "/metadata/scheduledevents?api-version=2020-07-01",
                      .interval_ms = 1000,
                      .timeout_ms = 3000,
                      .first_timeout_ms = 150000, /* the first call switches the service on */
                      .after = 1 + AZURE_NAME,
                      .missing_is_absent = true,
                      .parse = azure_parse_events},
};

const struct provider provider_azure = {
    .name = "azure",
    .endpoint = "http://169.254.169.254",
    .header = "Metadata: true",
    .connect_ms = 1000,
    .backoff_max_ms = 1000,
    .paths = paths,
    .path_count = AZURE_PATH_COUNT,
    .acknowledge_environment = "MUSTER_AZURE_ACKNOWLEDGE",
    .acknowledge_slot = AZURE_EVENTS,
    .acknowledge = azure_acknowledge,
};
