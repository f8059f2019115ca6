/* EC2's metadata service, as documented and as it misbehaves, over real sockets: state, record, next try. */
#include "tests/support/notice_fixture.h"

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
#define LIMIT_MS 20000 /* with sanitizers on two busy cores */

static struct notice_fixture fixture;

static int set_up(void **state)
{
    *state = &fixture;
    notice_fixture_open(&fixture, "ec2");
    return 0;
}

static int tear_down(void **state)
{
    notice_fixture_close(*state);
    return 0;
}

static void gives_tokens(struct notice_fixture *f)
{
    http_server_on(f->server, "PUT", TOKEN,
                   (struct http_script){.headers = TTL, .body = "AQAEALKd=="});
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

static void assert_left(const struct notice_record *record, int64_t least_ms, int64_t most_ms)
{
    int64_t left = record->item.deadline_boot_ms - notice_clocks().boot_ms;

    if (left < least_ms || left > most_ms)
        fail_msg("%lld ms are left", (long long)left);
}

static void assert_retry(const struct source_status *status, int64_t least_ms, int64_t most_ms)
{
    int64_t in = status->retry_boot_ms - notice_clocks().boot_ms;

    if (in < least_ms || in > most_ms)
        fail_msg("the next try is in %lld ms", (long long)in);
}

static void nothing_announced_is_healthy(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    gives_tokens(f);
    http_server_on(f->server, "GET", SCALING, (struct http_script){.body = "InService"});
    notice_fixture_watch(f, "ec2");
    status = notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
    assert_true(status.last_ok_boot_ms > 0);
    assert_retry(&status, -100, 2000);
    assert_true(http_server_await(f->server, SPOT, 2, LIMIT_MS)); /* it goes on */
    notice_none(f);
}

static void a_spot_notice_needs_the_token_and_gives_its_time(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    gives_tokens(f);
    spot_says(f, "terminate", 100, (struct http_script){.needs = NEEDS_TOKEN});
    notice_fixture_watch(f, "ec2");
    record = notice_await(f, LIMIT_MS);
    assert_string_equal(record.source, "ec2");
    assert_int_equal(record.item.kind, NOTICE_PREEMPT);
    assert_false(record.withdrawn);
    assert_left(&record, 100000 - LIMIT_MS, 100000);
    assert_true(http_server_await(f->server, SPOT, 3, LIMIT_MS));
    notice_none(f); /* once */
}

static void no_request_is_sent_through_a_proxy_or_after_a_redirect(void **state)
{
    struct notice_fixture *f = *state;
    char *request;

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    gives_tokens(f);
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

static void http_1_0_without_length_is_read(void **state)
{
    struct notice_fixture *f = *state;

    http_server_on(f->server, "PUT", TOKEN,
                   (struct http_script){.headers = TTL, .body = "AQAEALKd==", .http_1_0 = true});
    spot_says(f, "stop", 60, (struct http_script){.http_1_0 = true, .no_length = true});
    notice_fixture_watch(f, "ec2");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_STOP);
}

static void a_401_renews_the_token_once(void **state)
{
    struct notice_fixture *f = *state;

    http_server_on(f->server, "PUT", TOKEN,
                   (struct http_script){.headers = TTL, .body = "OLD", .times = 1});
    gives_tokens(f);
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

    gives_tokens(f);
    http_server_on(f->server, "GET", SPOT, (struct http_script){.status = 401});
    notice_fixture_watch(f, "ec2");
    status = notice_state(f, "ec2", SOURCE_DEGRADED, "401", LIMIT_MS);
    assert_retry(&status, -100, 1300);
    notice_none(f);
}

static void a_token_that_never_comes_is_done_without(void **state)
{
    struct notice_fixture *f = *state;

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

    http_server_on(f->server, "PUT", TOKEN, (struct http_script){.way = HTTP_WAY_HANG});
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        http_server_on(f->server, "GET", paths[i], (struct http_script){.status = 401});
    notice_fixture_watch(f, "ec2");
    status = notice_state(f, "ec2", SOURCE_ABSENT, "token is required", LIMIT_MS);
    assert_retry(&status, 400000, 720000);
    assert_int_equal(http_server_hits(f->server, TOKEN), 1);
}

static void busy(struct notice_fixture *f, int code)
{
    struct source_status status;
    char text[16];

    snprintf(text, sizeof text, "%d", code);
    gives_tokens(f);
    http_server_on(f->server, "GET", SPOT, (struct http_script){.status = code, .times = 1});
    notice_fixture_watch(f, "ec2");
    status = notice_state(f, "ec2", SOURCE_DEGRADED, text, LIMIT_MS);
    assert_retry(&status, -100, 1300);
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS); /* by itself */
    notice_none(f);
}

static void a_503_is_retried(void **state)
{
    busy(*state, 503);
}

static void a_429_is_retried(void **state)
{
    busy(*state, 429);
}

static void a_410_is_retried(void **state)
{
    busy(*state, 410);
}

static void a_403_is_given_up_for_a_while_and_the_rest_goes_on(void **state)
{
    struct notice_fixture *f = *state;

    gives_tokens(f);
    http_server_on(f->server, "GET", SPOT, (struct http_script){.status = 403});
    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_DEGRADED, "403", LIMIT_MS);
    assert_true(http_server_await(f->server, SPOT, 3, LIMIT_MS));
    assert_true(http_server_await(f->server, SCALING, 4, LIMIT_MS));
    assert_int_equal(http_server_hits(f->server, SPOT), 3);
    notice_state(f, "ec2", SOURCE_DEGRADED, "403", LIMIT_MS);
}

static void transport(struct notice_fixture *f, struct http_script script)
{
    gives_tokens(f);
    script.times = 1;
    http_server_on(f->server, "GET", SPOT, script);
    spot_says(f, "terminate", 100, (struct http_script){0});
    notice_fixture_watch(f, "ec2");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_PREEMPT); /* at the next try */
    assert_int_equal(http_server_hits(f->server, SPOT), 2);
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void a_reset_is_retried(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_RESET});
}

static void a_hang_ends_by_the_timeout(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_HANG});
}

static void a_silent_close_is_retried(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_CLOSE});
}

static void garbage_instead_of_http_is_retried(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_GARBAGE, .body = "\x16\x03\x01 tls?"});
}

static void half_a_body_is_no_notice(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_PART,
                                           .body = "{\"action\":\"stop\",\"time\":\"2020-\"}"});
}

static void slow_bytes_beyond_the_timeout_are_no_notice(void **state)
{
    transport(*state, (struct http_script){.slow_ms = 200,
                                           .body = "{\"action\":\"stop\",\"time\":\"2020-\"}"});
}

static void slow_bytes_within_the_timeout_are_read(void **state)
{
    struct notice_fixture *f = *state;

    gives_tokens(f);
    spot_says(f, "terminate", 100, (struct http_script){.slow_ms = 5});
    notice_fixture_watch(f, "ec2");
    notice_await(f, LIMIT_MS);
}

static void a_body_beyond_the_cap_is_not_read(void **state)
{
    struct notice_fixture *f = *state;
    char *body = malloc(100001);

    memset(body, ' ', 100000);
    body[100000] = '\0';
    gives_tokens(f);
    http_server_on(f->server, "GET", SPOT, (struct http_script){.body = body});
    free(body);
    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_DEGRADED, "", LIMIT_MS);
    notice_none(f);
}

static void json_garbage_is_degraded_and_withdraws_nothing(void **state)
{
    struct notice_fixture *f = *state;

    gives_tokens(f);
    http_server_on(f->server, "GET", SCALING,
                   (struct http_script){.body = "Terminated", .times = 1});
    http_server_on(f->server, "GET", SCALING, (struct http_script){.body = "<html>", .times = 2});
    http_server_on(f->server, "GET", SCALING, (struct http_script){.body = "InService"});
    notice_fixture_watch(f, "ec2");
    assert_false(notice_await(f, LIMIT_MS).withdrawn);
    notice_state(f, "ec2", SOURCE_DEGRADED, "not known", LIMIT_MS);
    notice_none(f);
    assert_true(notice_await(f, LIMIT_MS).withdrawn);
    assert_true(http_server_hits(f->server, SCALING) >= 4);
}

static void nobody_there_is_absent_and_found_when_it_comes(void **state)
{
    struct notice_fixture *f = *state;
    int port = atoi(strrchr(http_server_url(f->server), ':') + 1);

    http_server_stop(&f->server);
    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_ABSENT, "", LIMIT_MS);
    f->server = http_server_start_at("127.0.0.1", port);
    gives_tokens(f);
    notice_state(f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void another_clouds_server_is_no_source(void **state)
{
    struct notice_fixture *f = *state;

    http_server_on(f->server, "PUT", TOKEN, (struct http_script){.body = "<h1>It works</h1>"});
    http_server_on(f->server, "GET", SPOT,
                   (struct http_script){.body = "{\"action\":\"terminate\",\"time\":\"x\"}"});
    notice_fixture_watch(f, "ec2");
    notice_state(f, "ec2", SOURCE_ABSENT, "another's", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, SPOT), 0);
}

static void a_time_that_moves_at_each_request_keeps_the_first(void **state)
{
    struct notice_fixture *f = *state;

    gives_tokens(f);
    for (int i = 0; i < 4; i++)
        spot_says(f, "terminate", 120 + 2 * i, (struct http_script){.times = 1});
    notice_fixture_watch(f, "ec2");
    notice_await(f, LIMIT_MS);
    assert_true(http_server_await(f->server, SPOT, 4, LIMIT_MS));
    notice_none(f);
}

static void a_time_that_moves_nearer_is_told_again(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record first, second;

    gives_tokens(f);
    spot_says(f, "terminate", 120, (struct http_script){.times = 1});
    spot_says(f, "terminate", 60, (struct http_script){0});
    notice_fixture_watch(f, "ec2");
    first = notice_await(f, LIMIT_MS);
    second = notice_await(f, LIMIT_MS);
    assert_false(second.withdrawn);
    assert_true(second.item.deadline_boot_ms < first.item.deadline_boot_ms - 50000);
}

static void a_time_that_passed_is_now(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    gives_tokens(f);
    spot_says(f, "terminate", -600, (struct http_script){0});
    notice_fixture_watch(f, "ec2");
    record = notice_await(f, LIMIT_MS);
    assert_left(&record, -LIMIT_MS, 0);
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
    gives_tokens(f);
    http_server_on(f->server, "GET", EVENTS, (struct http_script){.body = body});
    notice_fixture_watch(f, "ec2");
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_REBOOT);
    assert_true(record.item.cancellable);
    assert_left(&record, 1800000 - LIMIT_MS, 1801000);
}

static void a_rebalance_recommendation_ends_nothing(void **state)
{
    struct notice_fixture *f = *state;

    gives_tokens(f);
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
    gives_tokens(f);
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
    notice_state(f, "auto", SOURCE_ABSENT, "no cloud that is known", LIMIT_MS);
    assert_false(watch_status(f->watch, "ec2", &status));
    assert_int_equal(http_server_hits(f->server, NULL), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_announced_is_healthy),
        CASE(a_spot_notice_needs_the_token_and_gives_its_time),
        CASE(no_request_is_sent_through_a_proxy_or_after_a_redirect),
        CASE(http_1_0_without_length_is_read),
        CASE(a_401_renews_the_token_once),
        CASE(a_401_to_a_new_token_is_degraded),
        CASE(a_token_that_never_comes_is_done_without),
        CASE(a_required_token_out_of_reach_is_absent_and_said),
        CASE(a_503_is_retried),
        CASE(a_429_is_retried),
        CASE(a_410_is_retried),
        CASE(a_403_is_given_up_for_a_while_and_the_rest_goes_on),
        CASE(a_reset_is_retried),
        CASE(a_hang_ends_by_the_timeout),
        CASE(a_silent_close_is_retried),
        CASE(garbage_instead_of_http_is_retried),
        CASE(half_a_body_is_no_notice),
        CASE(slow_bytes_beyond_the_timeout_are_no_notice),
        CASE(slow_bytes_within_the_timeout_are_read),
        CASE(a_body_beyond_the_cap_is_not_read),
        CASE(json_garbage_is_degraded_and_withdraws_nothing),
        CASE(nobody_there_is_absent_and_found_when_it_comes),
        CASE(another_clouds_server_is_no_source),
        CASE(a_time_that_moves_at_each_request_keeps_the_first),
        CASE(a_time_that_moves_nearer_is_told_again),
        CASE(a_time_that_passed_is_now),
        CASE(a_scheduled_event_has_its_kind_and_time),
        CASE(a_rebalance_recommendation_ends_nothing),
        CASE(the_platforms_own_switch_is_obeyed),
        CASE(auto_goes_by_what_the_machine_says_of_itself),
        CASE(auto_asks_nobody_on_a_machine_of_no_cloud),
    };

    return cmocka_run_group_tests_name("notice_ec2", tests, NULL, NULL);
}
