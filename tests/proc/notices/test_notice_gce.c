/* Compute Engine's metadata server, as documented and as it misbehaves, over real sockets. */
#include "tests/support/notice_services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOT "/computeMetadata/v1/instance/"
#define PREEMPTED ROOT "preempted"
#define MAINTENANCE ROOT "maintenance-event"
#define MACHINE_TYPE ROOT "machine-type"
#define FLAVOR "Metadata-Flavor: Google\r\n"
#define TAGGED(etag) FLAVOR "ETag: " etag "\r\n"
#define HELD(etag) "last_etag=" etag " "
#define LIMIT_MS NOTICE_LIMIT_MS

static struct notice_fixture fixture;
static const struct notice_service *const service = &notice_service_gce;

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

static void maintenance_says(struct notice_fixture *f, const char *value, const char *headers,
                             const char *holds)
{
    http_server_replace(f->server, "GET", MAINTENANCE,
                        (struct http_script){.headers = headers, .body = value, .holds = holds});
}

static void a_preemption_leaves_thirty_seconds(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    notice_answers(f, (struct http_script){.headers = TAGGED("e1"), .body = "FALSE"});
    notice_fixture_watch(f, "gce");
    assert_true(http_server_await(f->server, PREEMPTED, 2, LIMIT_MS));
    notice_announces(f, 0);
    record = notice_await(f, LIMIT_MS);
    notice_assert_left(&record, 30000 - LIMIT_MS, 30000);
    assert_true(record.item.hard);
}

static void a_long_poll_is_one_request_until_the_value_changes(void **state)
{
    struct notice_fixture *f = *state;
    char *request;
    struct notice_record record;

    notice_answers(
        f, (struct http_script){.headers = TAGGED("e1"), .body = "FALSE", .holds = HELD("e1")});
    maintenance_says(f, "NONE", TAGGED("m1"), HELD("m1"));
    notice_fixture_watch(f, "gce");
    assert_true(http_server_await(f->server, PREEMPTED, 2, LIMIT_MS));
    assert_true(http_server_await(f->server, MAINTENANCE, 2, LIMIT_MS));
    request = http_server_request(f->server, PREEMPTED);
    assert_non_null(strstr(request, "wait_for_change=true"));
    assert_non_null(strstr(request, "timeout_sec=10"));
    assert_non_null(strstr(request, "last_etag=e1 "));
    assert_non_null(strstr(request, "Metadata-Flavor: Google\r\n"));
    free(request);
    notice_state(f, "gce", SOURCE_HEALTHY, "", LIMIT_MS);
    notice_none(f);
    assert_int_equal(http_server_hits(f->server, PREEMPTED), 2); /* it waits */
    notice_answers(
        f, (struct http_script){.headers = TAGGED("e2"), .body = "TRUE", .holds = HELD("e2")});
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_PREEMPT);
    assert_true(http_server_await(f->server, PREEMPTED, 3, LIMIT_MS));
    notice_none(f);
}

static void a_long_poll_that_dies_in_silence_is_asked_again(void **state)
{
    struct notice_fixture *f = *state;

    f->pace.timeouts = 10;
    notice_answers(f, (struct http_script){.headers = TAGGED("e1"), .body = "FALSE", .times = 1});
    notice_then_answers(f, (struct http_script){.way = HTTP_WAY_HANG, .times = 1});
    notice_then_answers(f, (struct http_script){.headers = TAGGED("e2"), .body = "TRUE"});
    notice_fixture_watch(f, "gce");
    notice_await(f, LIMIT_MS);
    notice_state(f, "gce", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void after_a_503_it_is_asked_how_it_stands(void **state)
{
    struct notice_fixture *f = *state;
    char *request;

    notice_answers(f, (struct http_script){.headers = TAGGED("e1"), .body = "FALSE", .times = 1});
    notice_then_answers(f, (struct http_script){.status = 503, .headers = "", .times = 1});
    notice_then_answers(
        f, (struct http_script){.headers = TAGGED("e1"), .body = "FALSE", .holds = HELD("e1")});
    notice_fixture_watch(f, "gce");
    assert_true(http_server_await(f->server, PREEMPTED, 3, LIMIT_MS));
    notice_state(f, "gce", SOURCE_HEALTHY, "", LIMIT_MS); /* without waiting for a change */
    assert_true(http_server_await(f->server, PREEMPTED, 4, LIMIT_MS));
    request = http_server_request(f->server, PREEMPTED);
    assert_non_null(strstr(request, "last_etag=e1 "));
    free(request);
}

static void a_termination_for_maintenance_is_withdrawn_by_none(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record, withdrawal;

    maintenance_says(f, "TERMINATE_ON_HOST_MAINTENANCE", FLAVOR, NULL);
    notice_fixture_watch(f, "gce");
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_TERMINATE);
    assert_true(record.item.cancellable);
    notice_assert_left(&record, 60000 - LIMIT_MS, 60000);
    maintenance_says(f, "NONE", FLAVOR, NULL);
    withdrawal = notice_await(f, LIMIT_MS);
    assert_true(withdrawal.withdrawn);
    assert_true(withdrawal.number == record.number);
    notice_state(f, "gce", SOURCE_HEALTHY, "", LIMIT_MS);
}

static void an_hour_is_left_on_a_host_with_accelerators(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    http_server_replace(
        f->server, "GET", MACHINE_TYPE,
        (struct http_script){.headers = FLAVOR, .body = "projects/7/machineTypes/a3-highgpu-8g"});
    notice_fixture_watch(f, "gce");
    assert_true(http_server_await(f->server, MACHINE_TYPE, 1, LIMIT_MS));
    assert_true(http_server_await(f->server, MAINTENANCE, 3, LIMIT_MS));
    maintenance_says(f, "TERMINATE_ON_HOST_MAINTENANCE", FLAVOR, NULL);
    record = notice_await(f, LIMIT_MS);
    notice_assert_left(&record, 3600000 - LIMIT_MS, 3600000);
}

static void a_live_migration_is_reported_and_no_end(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    maintenance_says(f, "MIGRATE_ON_HOST_MAINTENANCE", FLAVOR, NULL);
    notice_fixture_watch(f, "gce");
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, NOTICE_MIGRATE);
    assert_false(wire_notice_ends(record.item.kind));
    maintenance_says(f, "NONE", FLAVOR, NULL);
    assert_true(notice_await(f, LIMIT_MS).withdrawn);
}

static void a_filtered_key_is_degraded_and_the_other_is_heard(void **state)
{
    struct notice_fixture *f = *state;

    notice_answers(f, (struct http_script){.status = 404}); /* as behind a pod's identity */
    maintenance_says(f, "TERMINATE_ON_HOST_MAINTENANCE", FLAVOR, NULL);
    notice_fixture_watch(f, "gce");
    assert_int_equal(notice_await(f, LIMIT_MS).item.kind, NOTICE_TERMINATE);
    notice_state(f, "gce", SOURCE_DEGRADED, "not served here", LIMIT_MS);
}

static void all_keys_filtered_is_absent(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    f->pace.waits = 10;
    http_server_reset(f->server, NULL);
    for (int i = 0; i < 2; i++)
        http_server_on(f->server, "GET", i == 0 ? PREEMPTED : MAINTENANCE,
                       (struct http_script){.status = 403, .headers = FLAVOR});
    notice_fixture_watch(f, "gce");
    status = notice_state(f, "gce", SOURCE_ABSENT, "403", LIMIT_MS);
    notice_assert_retry(&status, 48000 - LIMIT_MS, 72000);
}

static void a_server_of_another_cloud_is_no_source(void **state)
{
    struct notice_fixture *f = *state;

    http_server_reset(f->server, NULL);
    for (int i = 0; i < 2; i++)
        http_server_on(f->server, "GET", i == 0 ? PREEMPTED : MAINTENANCE,
                       (struct http_script){.headers = "Server: EC2ws\r\n", .body = "TRUE"});
    notice_fixture_watch(f, "gce");
    notice_state(f, "gce", SOURCE_ABSENT, "another service", LIMIT_MS);
    notice_none(f);
    assert_int_equal(http_server_hits(f->server, PREEMPTED), PROVIDER_DENIED_MAX);
}

static void auto_finds_it_by_the_machines_word(void **state)
{
    struct notice_fixture *f = *state;
    char command[256];

    snprintf(command, sizeof command,
             "mkdir -p '%s/root/sys/class/dmi/id' && "
             "echo 'Google Compute Engine' >'%s/root/sys/class/dmi/id/product_name'",
             f->directory, f->directory);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/root", f->directory);
    setenv("MUSTER_SYS_PREFIX", command, 1);
    notice_announces(f, 0);
    notice_fixture_watch(f, "auto");
    unsetenv("MUSTER_SYS_PREFIX");
    assert_string_equal(notice_await(f, LIMIT_MS).source, "gce");
    notice_state(f, "auto", SOURCE_HEALTHY, "gce is asked", LIMIT_MS);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NOTICE_TRAPS(CASE),
        CASE(a_preemption_leaves_thirty_seconds),
        CASE(a_long_poll_is_one_request_until_the_value_changes),
        CASE(a_long_poll_that_dies_in_silence_is_asked_again),
        CASE(after_a_503_it_is_asked_how_it_stands),
        CASE(a_termination_for_maintenance_is_withdrawn_by_none),
        CASE(an_hour_is_left_on_a_host_with_accelerators),
        CASE(a_live_migration_is_reported_and_no_end),
        CASE(a_filtered_key_is_degraded_and_the_other_is_heard),
        CASE(all_keys_filtered_is_absent),
        CASE(a_server_of_another_cloud_is_no_source),
        CASE(auto_finds_it_by_the_machines_word),
    };

    return cmocka_run_group_tests_name("notice_gce", tests, NULL, NULL);
}
