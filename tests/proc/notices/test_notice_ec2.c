/* EC2's metadata service, as documented and as it misbehaves, over real sockets: state, record,
 * next try. */
#include "tests/support/notice_services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TOKEN "/latest/api/token"
#define SPOT "/latest/meta-data/spot/instance-action"
#define EVENTS "/latest/meta-data/events/maintenance/scheduled"
#define SCALING "/latest/meta-data/autoscaling/target-lifecycle-state"
#define REBALANCE "/latest/meta-data/events/recommendations/rebalance"
#define TTL "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"
#define NEEDS_TOKEN "X-aws-ec2-metadata-token: AQAEALKd=="
#define LIMIT_MS NOTICE_LIMIT_MS

static struct notice_fixture fixture;
static const struct notice_service *const service = &notice_service_ec2;

static int set_up_trap(void **state)
{
    *state = &fixture;
    notice_service_open(&fixture, service);
    return 0;
}

static int set_up(void **state) /* a server that answers nothing yet */
{
    set_up_trap(state);
    http_server_reset(fixture.server, NULL);
    return 0;
}

static int tear_down(void **state)
{
    notice_fixture_close(*state);
    return 0;
}

static void spot_says(struct notice_fixture *f, const char *action, int64_t in_s,
                      struct http_script script)
{
    char body[128];

    snprintf(body, sizeof body, "{\"action\":\"%s\",\"time\":\"%s\"}", action,
             notice_rfc3339(in_s));
    script.body = body;
    http_server_on(f->server, "GET", SPOT, script);
}

static void a_spot_notice_needs_the_token_and_gives_its_time(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    service->ready(f);
    spot_says(f, "terminate", 100, (struct http_script){.needs = NEEDS_TOKEN});
    notice_fixture_watch(f, "ec2");
    record = notice_await(f, LIMIT_MS);
    assert_string_equal(record.source, "ec2");
    assert_int_equal(record.item.kind, NOTICE_PREEMPT);
    assert_false(record.withdrawn);
    notice_assert_left(&record, 100000 - LIMIT_MS, 100000);
    assert_true(http_server_await(f->server, SPOT, 3, LIMIT_MS));
    notice_none(f); /* once */
}

static void no_request_is_sent_through_a_proxy_or_after_a_redirect(void **state)
{
    struct notice_fixture *f = *state;
    char *request;

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    service->ready(f);
    http_server_on(f->server, "GET", SPOT,
                   (struct http_script){.status = 302, .headers = "Location: /elsewhere\r\n"});
    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_DEGRADED, "302", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, "/elsewhere"), 0);
    request = http_server_request(f->server, TOKEN);
    assert_non_null(strstr(request, "PUT /latest/api/token HTTP/1.1\r\n"));
    assert_null(strstr(request, "X-Forwarded-For"));
    free(request);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
}

static void a_token_over_http_1_0_is_read(void **state)
{
    struct notice_fixture *f = *state;

    http_server_on(f->server, "PUT", TOKEN,
                   (struct http_script){.headers = TTL, .body = "AQAEALKd==", .http_1_0 = true});
    spot_says(f, "stop", 60,
              (struct http_script){.http_1_0 = true, .no_length = true, .needs = NEEDS_TOKEN});
    notice_fixture_watch(f, "ec2");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_STOP);
}

static void a_401_renews_the_token_once(void **state)
{
    struct notice_fixture *f = *state;

    http_server_on(f->server, "PUT", TOKEN,
                   (struct http_script){.headers = TTL, .body = "OLD", .times = 1});
    service->ready(f);
    spot_says(f, "terminate", 100, (struct http_script){.needs = NEEDS_TOKEN});
    notice_fixture_watch(f, "ec2");
    notice_await(f, LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, TOKEN), 2);
    assert_int_equal(http_server_hits(f->server, SPOT), 2);
}

static void a_401_to_a_new_token_is_degraded(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    service->ready(f);
    http_server_on(f->server, "GET", SPOT, (struct http_script){.status = 401});
    notice_fixture_watch(f, "ec2");
    status = notice_state(f, "ec2", SOURCE_DEGRADED, "401", LIMIT_MS);
    notice_assert_retry(&status, -LIMIT_MS, 1300);
    notice_none(f);
}

static void a_token_that_never_comes_is_done_without(void **state)
{
    struct notice_fixture *f = *state;

    f->pace.timeouts = 4;
    http_server_on(f->server, "PUT", TOKEN, (struct http_script){.way = HTTP_WAY_HANG});
    spot_says(f, "terminate", 100, (struct http_script){0});
    notice_fixture_watch(f, "ec2");
    notice_await(f, LIMIT_MS);
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, TOKEN), 1);
}

static void a_required_token_out_of_reach_is_absent_and_said(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    static const char *const paths[] = {SPOT, EVENTS, SCALING, REBALANCE};

    f->pace = (struct provider_pace){.waits = 10, .timeouts = 4};
    http_server_on(f->server, "PUT", TOKEN, (struct http_script){.way = HTTP_WAY_HANG});
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        http_server_on(f->server, "GET", paths[i], (struct http_script){.status = 401});
    notice_fixture_watch(f, "ec2");
    status = notice_state(f, "ec2", SOURCE_ABSENT, "token is required", LIMIT_MS);
    notice_assert_retry(&status, 48000 - LIMIT_MS, 72000);
    assert_int_equal(http_server_hits(f->server, TOKEN), 1);
}

static void json_garbage_is_degraded_and_withdraws_nothing(void **state)
{
    struct notice_fixture *f = *state;

    service->ready(f);
    http_server_on(f->server, "GET", SCALING,
                   (struct http_script){.body = "Terminated", .times = 1});
    http_server_on(f->server, "GET", SCALING, (struct http_script){.body = "<html>"});
    notice_fixture_watch(f, "ec2");
    assert_false(notice_await(f, LIMIT_MS).withdrawn);
    notice_state(f, "ec2", SOURCE_DEGRADED, "not known", LIMIT_MS);
    assert_true(http_server_await(f->server, SCALING, 4, LIMIT_MS));
    notice_none(f);
    http_server_replace(f->server, "GET", SCALING, (struct http_script){.body = "InService"});
    assert_true(notice_await(f, LIMIT_MS).withdrawn);
}

static void another_clouds_server_is_no_source(void **state)
{
    struct notice_fixture *f = *state;

    http_server_on(f->server, "PUT", TOKEN, (struct http_script){.body = "<h1>It works</h1>"});
    http_server_on(f->server, "GET", SPOT,
                   (struct http_script){.body = "{\"action\":\"terminate\",\"time\":\"x\"}"});
    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_ABSENT, "another service", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, SPOT), 0);
}

static void a_scheduled_event_has_its_kind_and_time(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;
    char body[512];

    snprintf(body, sizeof body,
             "[{\"NotBefore\":\"%s\",\"Code\":\"system-reboot\",\"EventId\":\"instance-event-0\","
             "\"Description\":\"reboot\",\"State\":\"active\"}]",
             notice_rfc1123(1800));
    service->ready(f);
    http_server_on(f->server, "GET", EVENTS, (struct http_script){.body = body});
    notice_fixture_watch(f, "ec2");
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_REBOOT);
    assert_true(record.item.cancellable);
    notice_assert_left(&record, 1800000 - LIMIT_MS, 1801000);
}

static void a_rebalance_recommendation_ends_nothing(void **state)
{
    struct notice_fixture *f = *state;

    service->ready(f);
    http_server_on(f->server, "GET", REBALANCE,
                   (struct http_script){.body = "{\"noticeTime\":\"2026-01-01T00:00:00Z\"}"});
    notice_fixture_watch(f, "ec2");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_MIGRATE);
}

static void the_platforms_own_switch_is_obeyed(void **state)
{
    struct notice_fixture *f = *state;

    setenv("AWS_EC2_METADATA_DISABLED", "TRUE", 1);
    notice_fixture_watch(f, "ec2");
    unsetenv("AWS_EC2_METADATA_DISABLED");
    notice_state(f, "ec2", SOURCE_OFF, "AWS_EC2_METADATA_DISABLED", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, NULL), 0);
}

static void auto_goes_by_what_the_machine_says_of_itself(void **state)
{
    struct notice_fixture *f = *state;
    char command[256];

    snprintf(command, sizeof command,
             "mkdir -p '%s/root/sys/class/dmi/id' && "
             "echo 'Amazon EC2' >'%s/root/sys/class/dmi/id/sys_vendor'",
             f->directory, f->directory);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/root", f->directory);
    setenv("MUSTER_SYS_PREFIX", command, 1);
    service->ready(f);
    spot_says(f, "terminate", 100, (struct http_script){.needs = NEEDS_TOKEN});
    notice_fixture_watch(f, "auto");
    unsetenv("MUSTER_SYS_PREFIX");
    assert_string_equal(notice_await(f, LIMIT_MS).source, "ec2");
}

static void auto_asks_nobody_on_a_machine_of_no_cloud(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;
    char command[256];

    snprintf(command, sizeof command,
             "mkdir -p '%s/sys/class/dmi/id' && echo 'QEMU' >'%s/sys/class/dmi/id/sys_vendor'",
             f->directory, f->directory);
    assert_int_equal(system(command), 0);
    setenv("MUSTER_SYS_PREFIX", f->directory, 1);
    notice_fixture_watch(f, "auto");
    unsetenv("MUSTER_SYS_PREFIX");
    notice_state(f, "auto", SOURCE_ABSENT, "DMI names no cloud that is known", LIMIT_MS);
    assert_false(notice_status(f, "ec2", &status));
    assert_int_equal(http_server_hits(f->server, NULL), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TRAP(name) cmocka_unit_test_setup_teardown(name, set_up_trap, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NOTICE_TRAPS(TRAP),
        NOTICE_TIME_TRAPS(TRAP),
        CASE(a_spot_notice_needs_the_token_and_gives_its_time),
        CASE(no_request_is_sent_through_a_proxy_or_after_a_redirect),
        CASE(a_token_over_http_1_0_is_read),
        CASE(a_401_renews_the_token_once),
        CASE(a_401_to_a_new_token_is_degraded),
        CASE(a_token_that_never_comes_is_done_without),
        CASE(a_required_token_out_of_reach_is_absent_and_said),
        CASE(json_garbage_is_degraded_and_withdraws_nothing),
        CASE(another_clouds_server_is_no_source),
        CASE(a_scheduled_event_has_its_kind_and_time),
        CASE(a_rebalance_recommendation_ends_nothing),
        CASE(the_platforms_own_switch_is_obeyed),
        CASE(auto_goes_by_what_the_machine_says_of_itself),
        CASE(auto_asks_nobody_on_a_machine_of_no_cloud),
    };

    return cmocka_run_group_tests_name("notice_ec2", tests, NULL, NULL);
}
