/* Alibaba Cloud's metadata service, as documented and as it misbehaves, over real sockets. */
#include "tests/support/notice_services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN "/latest/api/token"
#define INSTANCE "/latest/meta-data/instance-id"
#define SPOT "/latest/meta-data/instance/spot/termination-time"
#define NEEDS_TOKEN "X-aliyun-ecs-metadata-token: AQAEALKd=="
#define LIMIT_MS NOTICE_LIMIT_MS

static struct notice_fixture fixture;
static const struct notice_service *const service = &notice_service_alibaba;

static int set_up(void **state)
{
    *state = &fixture;
    notice_service_open(&fixture, service);
    return 0;
}

static int tear_down(void **state)
{
    notice_fixture_close(*state);
    return 0;
}

static void a_release_needs_the_token(void **state)
{
    struct notice_fixture *f = *state;

    notice_answers(f,
                   (struct http_script){.body = service->announcement(100), .needs = NEEDS_TOKEN});
    notice_fixture_watch(f, "alibaba");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_PREEMPT);
    assert_int_equal(http_server_hits(f->server, TOKEN), 1);
    assert_int_equal(http_server_hits(f->server, INSTANCE), 1);
}

static void a_401_renews_the_token_once(void **state)
{
    struct notice_fixture *f = *state;

    notice_answers(f, (struct http_script){.status = 401, .times = 1});
    notice_then_answers(
        f, (struct http_script){.body = service->announcement(100), .needs = NEEDS_TOKEN});
    notice_fixture_watch(f, "alibaba");
    notice_await(f, LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, TOKEN), 2);
    notice_state(f, "alibaba", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void a_401_to_a_new_token_is_degraded_and_retried(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    notice_answers(f, (struct http_script){.status = 401});
    notice_fixture_watch(f, "alibaba");
    status = notice_state(f, "alibaba", SOURCE_DEGRADED, "401", LIMIT_MS);
    notice_assert_retry(&status, -LIMIT_MS, 3600);
    notice_none(f);
    notice_announces(f, 100);
    notice_await(f, LIMIT_MS);
}

static void a_server_of_another_cloud_is_no_source(void **state)
{
    struct notice_fixture *f = *state;

    http_server_reset(f->server, NULL); /* 404 to everything: nothing is announced, by anybody */
    notice_announces(f, 100);
    notice_fixture_watch(f, "alibaba");
    notice_state(f, "alibaba", SOURCE_ABSENT, "not served here", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, SPOT), 0);
    notice_none(f);
}

static void a_page_instead_of_a_token_is_another_service(void **state)
{
    struct notice_fixture *f = *state;

    http_server_replace(f->server, "PUT", TOKEN, (struct http_script){.body = "<h1>It works</h1>"});
    notice_announces(f, 100);
    notice_fixture_watch(f, "alibaba");
    notice_state(f, "alibaba", SOURCE_ABSENT, "another service", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, SPOT), 0);
    notice_none(f);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NOTICE_TRAPS(CASE),
        NOTICE_TIME_TRAPS(CASE),
        CASE(a_release_needs_the_token),
        CASE(a_401_renews_the_token_once),
        CASE(a_401_to_a_new_token_is_degraded_and_retried),
        CASE(a_server_of_another_cloud_is_no_source),
        CASE(a_page_instead_of_a_token_is_another_service),
    };

    return cmocka_run_group_tests_name("notice_alibaba", tests, NULL, NULL);
}
