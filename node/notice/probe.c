/* probe - see probe.h. Facts: the vendors' documentation. */
#include "node/notice/probe.h"

#include "node/notice/base/json.h"

#include <stdio.h>
#include <string.h>

#define TTL_HEADER "X-aws-ec2-metadata-token-ttl-seconds"

static bool probe_is_ec2(const struct http_reply *reply) /* the reply repeats the ttl */
{
    char ttl[32];

    return reply->size > 0 && http_header(reply, TTL_HEADER, ttl, sizeof ttl) &&
           strcmp(ttl, "60") == 0;
}

static bool probe_is_gce(const struct http_reply *reply)
{
    char flavor[32];

    return http_header(reply, "Metadata-Flavor", flavor, sizeof flavor) &&
           strcmp(flavor, "Google") == 0;
}

static bool probe_is_azure(const struct http_reply *reply)
{
    json_t *root = json_read(reply);
    bool proved = json_is_integer(json_object_get(root, "DocumentIncarnation"));

    json_decref(root);
    return proved;
}

static const struct {
    const char *source, *method, *path, *header;
    bool (*proves)(const struct http_reply *reply);
} probes[] = {
    {"ec2", "PUT", "/latest/api/token", TTL_HEADER ": 60", probe_is_ec2},
    {"gce", "GET", "/computeMetadata/v1/instance/preempted", "Metadata-Flavor: Google",
     probe_is_gce},
    {"azure", "GET", "/metadata/scheduledevents?api-version=2020-07-01", "Metadata: true",
     probe_is_azure},
};

const char *probe_source(size_t index)
{
    return index < sizeof probes / sizeof *probes ? probes[index].source : NULL;
}

void probe_request(size_t index, const char *endpoint, struct http_request *ret_request)
{
    memset(ret_request, 0, sizeof *ret_request);
    ret_request->method = probes[index].method;
    ret_request->connect_ms = PROBE_CONNECT_MS;
    ret_request->timeout_ms = PROBE_TIMEOUT_MS;
    snprintf(ret_request->url, sizeof ret_request->url, "%s%s", endpoint, probes[index].path);
    snprintf(ret_request->headers[0], sizeof ret_request->headers[0], "%s", probes[index].header);
}

bool probe_proves(size_t index, const struct http_reply *reply)
{
    return reply->result == HTTP_ANSWERED && reply->status == 200 && probes[index].proves(reply);
}
