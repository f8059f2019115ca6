/* Azure's scheduled events, as documented and as they misbehave, over real sockets. */
#include "tests/support/notice_services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAME "/metadata/instance/compute/name"
#define EVENTS "/metadata/scheduledevents"
#define POSTED "POST " EVENTS
#define NONE "{\"DocumentIncarnation\":1,\"Events\":[]}"
#define LIMIT_MS NOTICE_LIMIT_MS

static struct notice_fixture fixture;
static const struct notice_service *const service = &notice_service_azure;

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

static void says(struct notice_fixture *f, const char *body)
{
    notice_answers(f, (struct http_script){.body = body, .needs = "Metadata: true"});
}

static void the_name_is_asked_once_and_before_the_events(void **state)
{
    struct notice_fixture *f = *state;
    char *request;

    http_server_replace(f->server, "GET", NAME, (struct http_script){.status = 500, .times = 2});
    http_server_on(f->server, "GET", NAME, (struct http_script){.body = "vmss_3"});
    notice_fixture_watch(f, "azure");
    notice_state(f, "azure", SOURCE_HEALTHY, "", LIMIT_MS);
    assert_true(http_server_await(f->server, EVENTS, 3, LIMIT_MS));
    assert_int_equal(http_server_hits(f->server, NAME), 3);
    request = http_server_request(f->server, EVENTS);
    assert_non_null(strstr(request, "GET /metadata/scheduledevents?api-version=2020-07-01 "));
    assert_non_null(strstr(request, "Metadata: true\r\n"));
    free(request);
    assert_int_equal(http_server_hits(f->server, NULL),
                     3 + http_server_hits(f->server, EVENTS)); /* nothing is acknowledged */
}

static void no_name_no_events(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    http_server_replace(f->server, "GET", NAME, (struct http_script){.status = 500});
    notice_announces(f, 100);
    notice_fixture_watch(f, "azure");
    status = notice_state(f, "azure", SOURCE_DEGRADED, "500", LIMIT_MS);
    notice_assert_retry(&status, -LIMIT_MS, 3600);
    assert_true(http_server_await(f->server, NAME, 3, LIMIT_MS));
    assert_int_equal(http_server_hits(f->server, EVENTS), 0);
    notice_none(f);
}

static void the_first_call_may_last_as_it_switches_the_service_on(void **state)
{
    struct notice_fixture *f = *state;

    f->pace.timeouts = 10; /* 15 s for the first, 300 ms for others */
    notice_answers(f, (struct http_script){.body = NONE, .delay_ms = 2000, .times = 1});
    notice_then_answers(f, (struct http_script){.body = service->announcement(100)});
    notice_fixture_watch(f, "azure");
    assert_true(http_server_await(f->server, EVENTS, 1, LIMIT_MS));
    notice_state(f, "azure", SOURCE_PROBING, "", LIMIT_MS);
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_PREEMPT);
    notice_state(f, "azure", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void another_machines_event_is_none_of_ours(void **state)
{
    struct notice_fixture *f = *state;

    says(f, notice_azure_events("Preempt", "Scheduled", "\"vmss_33\",\"vmss_1\"",
                                notice_rfc1123(100)));
    notice_fixture_watch(f, "azure");
    notice_state(f, "azure", SOURCE_HEALTHY, "", LIMIT_MS);
    assert_true(http_server_await(f->server, EVENTS, 3, LIMIT_MS));
    notice_none(f);
    says(f,
         notice_azure_events("Preempt", "Scheduled", "\"vmss_1\",\"vmss_3\"", notice_rfc1123(100)));
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_PREEMPT);
}

static void an_event_that_vanishes_before_it_starts_is_withdrawn(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record, withdrawal;

    says(f, notice_azure_events("Reboot", "Scheduled", "\"vmss_3\"",
                                notice_rfc3339(900))); /* an imitation's date */
    notice_fixture_watch(f, "azure");
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_REBOOT);
    notice_assert_left(&record, 900000 - LIMIT_MS, 900000);
    says(f, NONE);
    withdrawal = notice_await(f, LIMIT_MS);
    assert_true(withdrawal.withdrawn);
    assert_true(withdrawal.number == record.number);
}

static void an_event_that_has_started_is_now_and_stays(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;
    size_t hits;

    says(f, notice_azure_events("Terminate", "Scheduled", "\"vmss_3\"", notice_rfc1123(600)));
    notice_fixture_watch(f, "azure");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_TERMINATE);
    says(f, notice_azure_events("Terminate", "Started", "\"vmss_3\"", ""));
    record = notice_await(f, LIMIT_MS);
    assert_false(record.withdrawn);
    assert_false(record.item.cancellable);
    notice_assert_left(&record, -LIMIT_MS, 0);
    says(f, NONE);
    hits = http_server_hits(f->server, EVENTS);
    assert_true(http_server_await(f->server, EVENTS, hits + 3, LIMIT_MS));
    notice_none(f);
}

static void a_freeze_is_reported_and_no_end(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    says(f, notice_azure_events("Freeze", "Scheduled", "\"vmss_3\"", notice_rfc1123(100)));
    notice_fixture_watch(f, "azure");
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_FREEZE);
    assert_false(wire_notice_ends(record.item.kind));
    says(f, NONE);
    assert_true(notice_await(f, LIMIT_MS).withdrawn);
}

static void a_server_of_another_cloud_is_no_source(void **state)
{
    struct notice_fixture *f = *state;

    http_server_reset(f->server, NULL); /* 404, as EC2's */
    notice_announces(f, 100);
    notice_fixture_watch(f, "azure");
    notice_state(f, "azure", SOURCE_ABSENT, "not served here", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, NAME), PROVIDER_DENIED_MAX);
    assert_int_equal(http_server_hits(f->server, EVENTS), 0);
    notice_none(f);
}

static void a_page_instead_of_a_name_is_another_service(void **state)
{
    struct notice_fixture *f = *state;

    http_server_replace(f->server, "GET", NAME, (struct http_script){.body = "<h1>It works</h1>"});
    notice_announces(f, 100);
    notice_fixture_watch(f, "azure");
    notice_state(f, "azure", SOURCE_ABSENT, "another service", LIMIT_MS);
    notice_none(f);
}

static void it_is_acknowledged_where_that_is_asked_for_and_after_the_commit(void **state)
{
    struct notice_fixture *f = *state;
    char *request;

    setenv("MUSTER_AZURE_ACKNOWLEDGE", "1", 1);
    notice_announces(f, 100);
    http_server_on(f->server, "POST", EVENTS, (struct http_script){.status = 500, .times = 1});
    http_server_on(f->server, "POST", EVENTS, (struct http_script){.body = ""});
    notice_fixture_watch(f, "azure");
    unsetenv("MUSTER_AZURE_ACKNOWLEDGE");
    notice_await(f, LIMIT_MS);
    assert_true(http_server_await(f->server, EVENTS, 5, LIMIT_MS));
    assert_int_equal(http_server_hits(f->server, POSTED), 0); /* not before the commit */
    watch_committed(f->watch);
    watch_settle(f->watch, LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, POSTED), 2); /* the first was in vain */
    request = http_server_request(f->server, POSTED);
    assert_non_null(strstr(request, "{\"StartRequests\":[{\"EventId\":\"602d9444-d2cd\"}]}"));
    assert_non_null(strstr(request, "Metadata: true\r\n"));
    free(request);
    assert_true(
        http_server_await(f->server, EVENTS, http_server_hits(f->server, EVENTS) + 3, LIMIT_MS));
    assert_int_equal(http_server_hits(f->server, POSTED), 2); /* once */
}

static void nothing_is_acknowledged_where_nobody_asked_for_it(void **state)
{
    struct notice_fixture *f = *state;

    notice_announces(f, 100);
    http_server_on(f->server, "POST", EVENTS, (struct http_script){.body = ""});
    notice_fixture_watch(f, "azure");
    notice_await(f, LIMIT_MS);
    watch_committed(f->watch);
    watch_settle(f->watch, LIMIT_MS);
    assert_true(
        http_server_await(f->server, EVENTS, http_server_hits(f->server, EVENTS) + 5, LIMIT_MS));
    assert_int_equal(http_server_hits(f->server, POSTED), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NOTICE_TRAPS(CASE),
        NOTICE_TIME_TRAPS(CASE),
        CASE(the_name_is_asked_once_and_before_the_events),
        CASE(no_name_no_events),
        CASE(the_first_call_may_last_as_it_switches_the_service_on),
        CASE(another_machines_event_is_none_of_ours),
        CASE(an_event_that_vanishes_before_it_starts_is_withdrawn),
        CASE(an_event_that_has_started_is_now_and_stays),
        CASE(a_freeze_is_reported_and_no_end),
        CASE(a_server_of_another_cloud_is_no_source),
        CASE(a_page_instead_of_a_name_is_another_service),
        CASE(it_is_acknowledged_where_that_is_asked_for_and_after_the_commit),
        CASE(nothing_is_acknowledged_where_nobody_asked_for_it),
    };

    return cmocka_run_group_tests_name("notice_azure", tests, NULL, NULL);
}
