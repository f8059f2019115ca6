/* alibaba - see alibaba.h. Facts: Alibaba Cloud's documentation of instance metadata. */
#include "node/notice/providers/alibaba.h"

#include "node/notice/base/times.h"

#define SPOT_LEAD_MS 300000 /* five minutes */

enum parse_result alibaba_parse_instance(const struct http_reply *reply,
                                         const struct provider_context *context,
                                         struct notice_set *set)
{
    (void)set;
    return provider_instance_id(reply, "i-", context) ? PARSE_OK : PARSE_FOREIGN;
}

/* "2015-01-05T18:02:00Z" */
enum parse_result alibaba_parse_spot(const struct http_reply *reply,
                                     const struct provider_context *context, struct notice_set *set)
{
    char text[NOTICE_TEXT_MAX + 1];
    int64_t unix_ms;

    notice_text(text, reply->body, reply->size);
    if (!times_rfc3339(text, &unix_ms))
        return provider_garbage(context, "spot/termination-time: no time");
    return provider_release(context, text, unix_ms, SPOT_LEAD_MS, set);
}

static const struct provider_path paths[ALIBABA_PATH_COUNT] = {
    [ALIBABA_INSTANCE] = {.path = "/latest/meta-data/instance-id",
                          .timeout_ms = 2000,
                          .missing_is_absent = true,
                          .parse = alibaba_parse_instance},
    [ALIBABA_SPOT] = {.path = "/latest/meta-data/instance/spot/termination-time",
                      .interval_ms = 5000,
                      .timeout_ms = 2000,
                      .after = 1 + ALIBABA_INSTANCE,
                      .parse = alibaba_parse_spot},
};

const struct provider provider_alibaba = {
    .name = "alibaba",
    .endpoint = "http://100.100.100.200",
    .token_path = "/latest/api/token",
    .token_ttl_header = "X-aliyun-ecs-metadata-token-ttl-seconds",
    .token_header = "X-aliyun-ecs-metadata-token",
    .token_ttl_s = 21600,
    .connect_ms = 1000,
    .paths = paths,
    .path_count = ALIBABA_PATH_COUNT,
};
