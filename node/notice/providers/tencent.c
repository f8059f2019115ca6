/* tencent - see tencent.h. Facts: Tencent Cloud's documentation of instance metadata. */
#include "node/notice/providers/tencent.h"

#include "node/notice/base/times.h"

#define SPOT_LEAD_MS 120000 /* two minutes */
#define ZONE_S 28800        /* the time is China's, and does not say so */

enum parse_result tencent_parse_instance(const struct http_reply *reply,
                                         const struct provider_context *context,
                                         struct notice_set *set)
{
    (void)set;
    return provider_instance_id(reply, "ins-", context) ? PARSE_OK : PARSE_FOREIGN;
}

/* "2018-08-18 12:05:33" */
enum parse_result tencent_parse_spot(const struct http_reply *reply,
                                     const struct provider_context *context, struct notice_set *set)
{
    char text[NOTICE_TEXT_MAX + 1];
    int64_t unix_ms;

    notice_text(text, reply->body, reply->size);
    if (!times_plain(text, ZONE_S, &unix_ms))
        return provider_garbage(context, "spot/termination-time: no time");
    return provider_release(context, text, unix_ms, SPOT_LEAD_MS, set);
}

static const struct provider_path paths[TENCENT_PATH_COUNT] = {
    [TENCENT_INSTANCE] = {.path = "/latest/meta-data/instance-id",
                          .timeout_ms = 2000,
                          .missing_is_absent = true,
                          .parse = tencent_parse_instance},
    [TENCENT_SPOT] = {.path = "/latest/meta-data/spot/termination-time",
                      .interval_ms = 5000,
                      .timeout_ms = 2000,
                      .after = 1 + TENCENT_INSTANCE,
                      .parse = tencent_parse_spot},
};

const struct provider provider_tencent = {
    .name = "tencent",
    .endpoint = "http://metadata.tencentyun.com",
    .connect_ms = 1000,
    .paths = paths,
    .path_count = TENCENT_PATH_COUNT,
};
