/* Tencent Cloud's metadata service, as documented and as it misbehaves, over real sockets. */
#include "tests/support/notice_services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INSTANCE "/latest/meta-data/instance-id"
#define SPOT "/latest/meta-data/spot/termination-time"
#define CHINA_S (8 * 3600)
#define LIMIT_MS NOTICE_LIMIT_MS

static struct notice_fixture fixture;
static const struct notice_service *const service = &notice_service_tencent;

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

static void the_time_is_chinas_wherever_this_machine_is(void **state)
{
    static const char *const zones[] = {"UTC0", "CST-8", "EST5EDT"};
    struct notice_fixture *f = *state;

    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        struct notice_record record;

        setenv("TZ", zones[i], 1);
        if (i > 0) {
            notice_fixture_close(f);
            notice_service_open(f, service);
        }
        notice_announces(f, 100);
        notice_fixture_watch(f, "tencent");
        record = notice_await(f, LIMIT_MS);
        notice_assert_left(&record, 100000 - LIMIT_MS, 100000);
    }
    unsetenv("TZ");
}

static void a_401_is_retried(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    notice_answers(f, (struct http_script){.status = 401});
    notice_fixture_watch(f, "tencent");
    status = notice_state(f, "tencent", SOURCE_DEGRADED, "401", LIMIT_MS);
    notice_assert_retry(&status, -LIMIT_MS, 3600);
    notice_announces(f, 100);
    notice_await(f, LIMIT_MS);
}

static void a_server_of_another_cloud_is_no_source(void **state)
{
    struct notice_fixture *f = *state;

    http_server_replace(f->server, "GET", INSTANCE,
                        (struct http_script){.body = "i-0123456789abcdef0"});
    notice_announces(f, 100);
    notice_fixture_watch(f, "tencent");
    notice_state(f, "tencent", SOURCE_ABSENT, "another service", LIMIT_MS);
    assert_int_equal(http_server_hits(f->server, INSTANCE), PROVIDER_DENIED_MAX);
    assert_int_equal(http_server_hits(f->server, SPOT), 0);
    notice_none(f);
}

static void a_name_that_nobody_knows_is_absent(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    setenv("MUSTER_TENCENT_ENDPOINT", "http://no-such-host.invalid", 1); /* as on any other cloud */
    notice_fixture_watch(f, "tencent");
    status = notice_state(f, "tencent", SOURCE_ABSENT, "", LIMIT_MS);
    assert_int_equal(status.last_ok_boot_ms, -1);
    notice_none(f);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NOTICE_TRAPS(CASE),
        NOTICE_TIME_TRAPS(CASE),
        CASE(the_time_is_chinas_wherever_this_machine_is),
        CASE(a_401_is_retried),
        CASE(a_server_of_another_cloud_is_no_source),
        CASE(a_name_that_nobody_knows_is_absent),
    };

    return cmocka_run_group_tests_name("notice_tencent", tests, NULL, NULL);
}
