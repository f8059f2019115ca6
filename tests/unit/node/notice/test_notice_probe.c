/* What proves which cloud has answered, and what does not. */
#include "node/notice/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define EC2_TTL "X-Aws-Ec2-Metadata-Token-Ttl-Seconds: 60\r\n"
#define GOOGLE "Metadata-Flavor: Google\r\n"

static bool proves(const char *source, int status, const char *headers, const char *body)
{
    struct http_reply reply = {.result = HTTP_ANSWERED,
                               .status = status,
                               .headers = headers,
                               .body = body,
                               .size = strlen(body)};
    size_t index = 0;

    while (strcmp(probe_source(index), source) != 0)
        index++;
    return probe_proves(index, &reply);
}

static void each_cloud_has_a_proof_of_its_own(void **state)
{
    (void)state;
    assert_true(proves("ec2", 200, EC2_TTL, "token"));
    assert_false(proves("ec2", 200, EC2_TTL, ""));
    assert_false(proves("ec2", 200, "", "token"));
    assert_false(proves("ec2", 200, "X-aws-ec2-metadata-token-ttl-seconds: 600\r\n", "token"));
    assert_false(proves("ec2", 403, EC2_TTL, "token"));
    assert_false(proves("ec2", 200, GOOGLE, "token"));

    assert_true(proves("gce", 200, GOOGLE, "FALSE"));
    assert_false(proves("gce", 403, GOOGLE, "FALSE"));
    assert_false(proves("gce", 200, "Metadata-Flavor: Other\r\n", "FALSE"));
    assert_false(proves("gce", 200, "", "FALSE"));

    assert_true(proves("azure", 200, "", "{\"DocumentIncarnation\":0,\"Events\":[]}"));
    assert_false(proves("azure", 200, "", "{\"DocumentIncarnation\":\"0\"}"));
    assert_false(proves("azure", 200, "", "{\"Events\":[]}"));
    assert_false(proves("azure", 200, "", "[1]"));
    assert_false(proves("azure", 200, "", "<html>Sign in</html>"));
    assert_false(proves("azure", 400, "", "{\"DocumentIncarnation\":0}"));
}

static void no_answer_proves_nothing(void **state)
{
    (void)state;
    for (int result = 0; result < HTTP_RESULT_COUNT; result++) {
        struct http_reply reply = {.result = (enum http_result)result,
                                   .status = 200,
                                   .headers = GOOGLE EC2_TTL,
                                   .body = "{\"DocumentIncarnation\":1}",
                                   .size = 25};

        for (size_t i = 0; probe_source(i) != NULL; i++)
            assert_int_equal(probe_proves(i, &reply), result == HTTP_ANSWERED);
    }
}

static void each_request_is_short_and_says_what_it_wants(void **state)
{
    static const char *const wanted[] = {
        "PUT http://h/latest/api/token X-aws-ec2-metadata-token-ttl-seconds: 60",
        "GET http://h/computeMetadata/v1/instance/preempted Metadata-Flavor: Google",
        "GET http://h/metadata/scheduledevents?api-version=2020-07-01 Metadata: true"};
    struct http_request request;
    char text[512];

    (void)state;
    for (size_t i = 0; probe_source(i) != NULL; i++) {
        probe_request(i, "http://h", &request);
        snprintf(text, sizeof text, "%s %.200s %.200s", request.method, request.url,
                 request.headers[0]);
        assert_string_equal(text, wanted[i]);
        assert_int_equal(request.connect_ms, 1000);
        assert_int_equal(request.timeout_ms, 2000);
        assert_null(request.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cloud_has_a_proof_of_its_own),
        cmocka_unit_test(no_answer_proves_nothing),
        cmocka_unit_test(each_request_is_short_and_says_what_it_wants),
    };

    return cmocka_run_group_tests_name("notice_probe", tests, NULL, NULL);
}
