/* notice_services - see notice_services.h. */
#include "tests/support/notice_services.h"

#include <stdio.h>

/* --- Compute Engine --------------------------------------------------------------------------- */

#define GCE "/computeMetadata/v1/instance/"
#define FLAVOR "Metadata-Flavor: Google\r\n"

static void gce_ready(struct notice_fixture *f)
{
    http_server_replace(f->server, "GET", GCE "maintenance-event",
                        (struct http_script){.headers = FLAVOR, .body = "NONE"});
    http_server_replace(
        f->server, "GET", GCE "machine-type",
        (struct http_script){.headers = FLAVOR, .body = "projects/7/machineTypes/n1-standard-8"});
}

static const char *gce_announcement(int64_t from_now_s)
{
    (void)from_now_s;
    return "TRUE";
}

const struct notice_service notice_service_gce = {.name = "gce",
                                                  .path = GCE "preempted",
                                                  .headers = FLAVOR,
                                                  .nothing = "FALSE",
                                                  .kind = NOTICE_PREEMPT,
                                                  .ready = gce_ready,
                                                  .announcement = gce_announcement};

/* --- EC2 -------------------------------------------------------------------------------------- */

static void ec2_ready(struct notice_fixture *f) /* tokens; all else is 404, which is nothing */
{
    http_server_on(
        f->server, "PUT", "/latest/api/token",
        (struct http_script){.headers = "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n",
                             .body = NOTICE_TOKEN});
}

static const char *ec2_announcement(int64_t from_now_s)
{
    static char body[128];

    snprintf(body, sizeof body, "{\"action\":\"terminate\",\"time\":\"%s\"}",
             notice_rfc3339(from_now_s));
    return body;
}

const struct notice_service notice_service_ec2 = {.name = "ec2",
                                                  .path = "/latest/meta-data/spot/instance-action",
                                                  .kind = NOTICE_PREEMPT,
                                                  .timed = true,
                                                  .ready = ec2_ready,
                                                  .announcement = ec2_announcement};

/* --- Azure ------------------------------------------------------------------------------------ */

static void azure_ready(struct notice_fixture *f)
{
    http_server_replace(f->server, "GET", "/metadata/instance/compute/name",
                        (struct http_script){.body = "vmss_3", .needs = "Metadata: true"});
}

const char *notice_azure_events(const char *type, const char *status, const char *resources,
                                const char *before)
{
    static char body[512];

    snprintf(body, sizeof body,
             "{\"DocumentIncarnation\":2,\"Events\":[{\"EventId\":\"602d9444-d2cd\","
             "\"EventStatus\":\"%s\",\"EventType\":\"%s\",\"ResourceType\":\"VirtualMachine\","
             "\"Resources\":[%s],\"NotBefore\":\"%s\",\"Description\":\"\","
             "\"EventSource\":\"Platform\",\"DurationInSeconds\":-1}]}",
             status, type, resources, before);
    return body;
}

static const char *azure_announcement(int64_t from_now_s)
{
    return notice_azure_events("Preempt", "Scheduled", "\"vmss_3\"", notice_rfc1123(from_now_s));
}

const struct notice_service notice_service_azure = {.name = "azure",
                                                    .path = "/metadata/scheduledevents",
                                                    .nothing =
                                                        "{\"DocumentIncarnation\":1,\"Events\":[]}",
                                                    .kind = NOTICE_PREEMPT,
                                                    .timed = true,
                                                    .cancellable = true,
                                                    .ready = azure_ready,
                                                    .announcement = azure_announcement};

/* --- Alibaba ---------------------------------------------------------------------------------- */

static void alibaba_ready(struct notice_fixture *f)
{
    http_server_replace(f->server, "PUT", "/latest/api/token",
                        (struct http_script){.body = NOTICE_TOKEN,
                                             .needs = "X-aliyun-ecs-metadata-token-ttl-seconds: "});
    http_server_replace(
        f->server, "GET", "/latest/meta-data/instance-id",
        (struct http_script){.body = "i-bp67acfmxazb4p",
                             .needs = "X-aliyun-ecs-metadata-token: " NOTICE_TOKEN});
}

static const char *alibaba_announcement(int64_t from_now_s)
{
    return notice_rfc3339(from_now_s);
}

const struct notice_service notice_service_alibaba = {
    .name = "alibaba",
    .path = "/latest/meta-data/instance/spot/termination-time",
    .kind = NOTICE_PREEMPT,
    .timed = true,
    .ready = alibaba_ready,
    .announcement = alibaba_announcement};

/* --- Tencent ---------------------------------------------------------------------------------- */

#define CHINA_S (8 * 3600)

static void tencent_ready(struct notice_fixture *f)
{
    http_server_replace(f->server, "GET", "/latest/meta-data/instance-id",
                        (struct http_script){.body = "ins-3jmvv7qz"});
}

static const char *tencent_announcement(int64_t from_now_s)
{
    return notice_plain(from_now_s + CHINA_S);
}

const struct notice_service notice_service_tencent = {.name = "tencent",
                                                      .path =
                                                          "/latest/meta-data/spot/termination-time",
                                                      .kind = NOTICE_PREEMPT,
                                                      .timed = true,
                                                      .ready = tencent_ready,
                                                      .announcement = tencent_announcement};
