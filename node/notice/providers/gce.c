/* gce - see gce.h. Facts: Google's documentation of the metadata server and of host maintenance. */
#include "node/notice/providers/gce.h"

#include "node/notice/base/json.h"
#include "node/notice/base/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define INSTANCE "/computeMetadata/v1/instance/"
#define PREEMPTED_LEAD_MS 30000     /* then the machine is switched off, best effort */
#define MAINTENANCE_LEAD_MS 60000   /* of most machines */
#define ACCELERATED_LEAD_MS 3600000 /* of those with accelerators */
#define UPCOMING_LEAD_MAX_MS (60 * 86400000LL)

/* The server may hold an answer for a minute and more. A connection that dies in silence is a time
 * without sight: less than half of the 30 s that a preemption leaves is what may be lost that way.
 */
#define WAIT_QUERY "?wait_for_change=true&timeout_sec=10&last_etag="
#define WAIT_TIMEOUT_MS 13000

/* The remembered answers, by position. */
#define SEEN_NONE \
    0 /* 'N': it was seen that no maintenance is announced: a later one begins when it is seen */
#define ACCELERATED 1 /* 'A': the machine type has accelerators */
#define UNPREEMPTED 2 /* from here on: when it was last seen that it is not preempted, boot ms */

static void gce_remember(const struct provider_context *context, size_t what, char value)
{
    if (context->memory[0] == '\0')
        memcpy(context->memory, "--", 3);
    context->memory[what] = value;
}

static bool gce_remembers(const struct provider_context *context, size_t what, char value)
{
    return context->memory[0] != '\0' && context->memory[what] == value;
}

static void gce_remember_unpreempted(const struct provider_context *context)
{
    if (context->memory[0] == '\0')
        memcpy(context->memory, "--", 3);
    snprintf(context->memory + UNPREEMPTED, PROVIDER_MEMORY_MAX + 1 - UNPREEMPTED, "%lld",
             (long long)context->now.boot_ms);
}

/* It was announced at some time after it was last seen that it was not; of an answer that is the
 * first nothing is known. */
static int64_t gce_preempted_deadline(const struct provider_context *context)
{
    int64_t now = context->now.boot_ms, least = now + LEAST_LEAD_MS, seen = -PREEMPTED_LEAD_MS;

    if (context->memory[0] != '\0' && context->memory[UNPREEMPTED] != '\0')
        seen = strtoll(context->memory + UNPREEMPTED, NULL, 10);
    if (seen > now)
        seen = now;
    return seen + PREEMPTED_LEAD_MS > least ? seen + PREEMPTED_LEAD_MS : least;
}

enum parse_result gce_parse_preempted(const struct http_reply *reply,
                                      const struct provider_context *context,
                                      struct notice_set *set)
{
    struct notice_item item = {
        .kind = NOTICE_PREEMPT, .hard = true, .key = "preempted"}; /* it is not taken back */

    notice_text(item.text, reply->body, reply->size);
    if (strcasecmp(item.text, "FALSE") == 0) {
        gce_remember_unpreempted(context);
        return PARSE_OK;
    }
    if (strcasecmp(item.text, "TRUE") != 0)
        return provider_garbage(context, "instance/preempted: neither TRUE nor FALSE");
    item.deadline_boot_ms = gce_preempted_deadline(context);
    snprintf(item.text, sizeof item.text, "Compute Engine preempts this machine");
    notice_set_add(set, &item);
    return PARSE_OK;
}

static bool gce_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* NONE, MIGRATE_ON_HOST_MAINTENANCE, TERMINATE_ON_HOST_MAINTENANCE (once SHUTDOWN_...). Nothing
 * says when it was announced: where that was not seen, the least time is what is left. */
enum parse_result gce_parse_maintenance(const struct http_reply *reply,
                                        const struct provider_context *context,
                                        struct notice_set *set)
{
    struct notice_item item = {.cancellable = true};
    bool long_lead =
        gce_remembers(context, SEEN_NONE, 'N') && gce_remembers(context, ACCELERATED, 'A');

    notice_text(item.text, reply->body, reply->size);
    if (strcmp(item.text, "NONE") == 0) {
        gce_remember(context, SEEN_NONE, 'N');
        return PARSE_OK;
    }
    if (gce_starts(item.text, "MIGRATE")) {
        item.kind = NOTICE_MIGRATE;
        item.deadline_boot_ms = -1;
    } else if (gce_starts(item.text, "TERMINATE") || gce_starts(item.text, "SHUTDOWN")) {
        item.kind = NOTICE_TERMINATE;
        item.hard = true;
        item.deadline_boot_ms =
            context->now.boot_ms + (long_lead ? ACCELERATED_LEAD_MS : MAINTENANCE_LEAD_MS);
    } else
        return provider_garbage(context, "instance/maintenance-event: a value that is not known");
    snprintf(item.key, sizeof item.key, "maintenance-%s", wire_notice_kind_name(item.kind));
    notice_set_add(set, &item);
    return PARSE_OK;
}

/* "projects/123/machineTypes/a2-highgpu-1g". Accelerators that were attached to a machine of
 * another family are not seen here; then the lead is taken to be short. */
enum parse_result gce_parse_machine_type(const struct http_reply *reply,
                                         const struct provider_context *context,
                                         struct notice_set *set)
{
    static const char *const families[] = {"a2-", "a3-", "a4-", "a4x-", "g2-", "g4-", "ct", "tpu"};
    char text[NOTICE_TEXT_MAX + 1];
    const char *type;

    (void)set;
    notice_text(text, reply->body, reply->size);
    type = strrchr(text, '/');
    if (type == NULL || strstr(text, "/machineTypes/") == NULL)
        return provider_garbage(context, "instance/machine-type: no machine type");
    gce_remember(context, ACCELERATED, '-');
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (gce_starts(type + 1, families[i]))
            gce_remember(context, ACCELERATED, 'A');
    return PARSE_OK;
}

/* The documentation of the API has camelCase, machines have been seen to say it in snake_case. */
static bool gce_either(const json_t *root, const char *camel, const char *snake, char *ret_text,
                       size_t size)
{
    return json_text(root, camel, ret_text, size) || json_text(root, snake, ret_text, size);
}

/* {"type":"SCHEDULED","windowStartTime":"2026-04-24T17:00:00Z",...}; nothing planned: 404, an empty
 * object or NONE. Days ahead, and it may be moved: told for people, as what does not end the
 * machine. */
enum parse_result gce_parse_upcoming(const struct http_reply *reply,
                                     const struct provider_context *context, struct notice_set *set)
{
    struct notice_item item = {.kind = NOTICE_FREEZE, .cancellable = true, .key = "upcoming"};
    char start[64], end[64] = "?", type[32] = "?", status[32] = "?", text[400];
    json_t *root = json_read(reply);
    bool none = json_is_object(root) && json_object_size(root) == 0;
    bool read = gce_either(root, "windowStartTime", "window_start_time", start, sizeof start);
    int64_t unix_ms;

    (void)json_text(root, "type", type, sizeof type);
    (void)gce_either(root, "windowEndTime", "window_end_time", end, sizeof end);
    (void)gce_either(root, "maintenanceStatus", "maintenance_status", status, sizeof status);
    json_decref(root);
    notice_text(item.text, reply->body, reply->size);
    if (none || item.text[0] == '\0' || strcmp(item.text, "NONE") == 0)
        return PARSE_OK;
    if (!read || !times_rfc3339(start, &unix_ms))
        return provider_garbage(context, "instance/upcoming-maintenance: no windowStartTime");
    item.deadline_boot_ms = times_deadline(&context->now, unix_ms, UPCOMING_LEAD_MAX_MS);
    snprintf(text, sizeof text, "maintenance %s (%s) between %s and %s", type, status, start, end);
    notice_text(item.text, text, strlen(text));
    notice_set_add(set, &item);
    return PARSE_OK;
}

static bool gce_is_google(const struct http_reply *reply)
{
    char flavor[32];

    return http_header(reply, "Metadata-Flavor", flavor, sizeof flavor) &&
           strcmp(flavor, "Google") == 0;
}

static const struct provider_path paths[GCE_PATH_COUNT] = {
    [GCE_PREEMPTED] = {.path = INSTANCE "preempted",
                       .wait_query = WAIT_QUERY,
                       .interval_ms = 1000,
                       .timeout_ms = WAIT_TIMEOUT_MS,
                       .first_timeout_ms = 2000,
                       .missing_is_absent = true,
                       .parse = gce_parse_preempted},
    [GCE_MAINTENANCE] = {.path = INSTANCE "maintenance-event",
                         .wait_query = WAIT_QUERY,
                         .interval_ms = 1000,
                         .timeout_ms = WAIT_TIMEOUT_MS,
                         .first_timeout_ms = 2000,
                         .missing_is_absent = true,
                         .parse = gce_parse_maintenance},
    [GCE_MACHINE_TYPE] = {.path = INSTANCE "machine-type",
                          .timeout_ms = 2000,
                          .missing_is_absent = true,
                          .hint = true,
                          .parse = gce_parse_machine_type},
    [GCE_UPCOMING] = {.path = INSTANCE "upcoming-maintenance?alt=json",
                      .interval_ms = 60000,
                      .timeout_ms = 2000,
                      .hint = true,
                      .parse = gce_parse_upcoming},
};

const struct provider provider_gce = {
    .name = "gce",
    .endpoint =
        "http://169.254.169.254", /* metadata.google.internal, without asking for the name */
    .endpoint_environment = {"GCE_METADATA_HOST", "GCE_METADATA_IP"},
    .header = "Metadata-Flavor: Google",
    .connect_ms = 1000,
    .backoff_max_ms = 1000,
    .is_ours = gce_is_google,
    .paths = paths,
    .path_count = GCE_PATH_COUNT,
};
