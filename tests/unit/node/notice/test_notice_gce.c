/* Compute Engine's parsers byte by byte, and long polls, identities and memory of provider.c
 * through them. */
#include "node/notice/providers/gce.h"
#include "node/notice/sources.h"
#include "tests/unit/node/notice/provider_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FLAVOR "HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\n"
#define TAGGED(etag) FLAVOR "ETag: " etag "\r\n"
#define ROOT "http://169.254.169.254/computeMetadata/v1/instance/"
#define WAITS "?wait_for_change=true&timeout_sec=10&last_etag="
#define ITEM (f->set.items[0])

static struct provider_fixture fixture;

static int set_up(void **state)
{
    *state = &fixture;
    fixture_begin(&fixture, &provider_gce);
    fixture.headers = TAGGED("411261ca6c9e4375");
    return 0;
}

/* --- parsers ---------------------------------------------------------------------------------- */

static void a_preemption_leaves_half_a_minute(void **state)
{
    struct provider_fixture *f = *state;

    assert_int_equal(fixture_parse(f, gce_parse_preempted, "FALSE"), PARSE_OK);
    assert_int_equal(f->set.count, 0);
    assert_int_equal(fixture_parse(f, gce_parse_preempted, "TRUE\n"), PARSE_OK);
    assert_int_equal(f->set.count, 1);
    assert_int_equal(ITEM.kind, NOTICE_PREEMPT);
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 30000);
    assert_true(ITEM.hard);
    assert_false(ITEM.cancellable);
}

/* It may have been preempted at any time since it was last seen that it was not. */
static void a_preemption_is_counted_from_the_last_time_it_was_not_one(void **state)
{
    static const struct {
        int64_t unseen_ms, left_ms;
    } gaps[] = {{100, 29900},
                {12000, 18000},
                {27000, LEAST_LEAD_MS},
                {29000, LEAST_LEAD_MS},
                {3600000, LEAST_LEAD_MS}};
    struct provider_fixture *f = *state;

    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        fixture_parse(f, gce_parse_maintenance, "NONE"); /* remembered in the same place */
        assert_int_equal(fixture_parse(f, gce_parse_preempted, "FALSE"), PARSE_OK);
        f->now.boot_ms += gaps[i].unseen_ms;
        assert_int_equal(fixture_parse(f, gce_parse_preempted, "TRUE"), PARSE_OK);
        assert_int_equal(ITEM.deadline_boot_ms, f->now.boot_ms + gaps[i].left_ms);
    }
    f->memory[0] = '\0'; /* the first answer of all */
    assert_int_equal(fixture_parse(f, gce_parse_preempted, "TRUE"), PARSE_OK);
    assert_int_equal(ITEM.deadline_boot_ms, f->now.boot_ms + LEAST_LEAD_MS);
    fixture_parse(f, gce_parse_maintenance, "NONE");
    assert_int_equal(fixture_parse(f, gce_parse_preempted, "TRUE"), PARSE_OK);
    assert_int_equal(ITEM.deadline_boot_ms, f->now.boot_ms + LEAST_LEAD_MS);
}

static void a_termination_for_maintenance_can_be_withdrawn(void **state)
{
    static const char *const values[] = {"TERMINATE_ON_HOST_MAINTENANCE",
                                         "SHUTDOWN_ON_HOST_MAINTENANCE"};
    struct provider_fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fixture_parse(f, gce_parse_maintenance, values[i]), PARSE_OK);
        assert_int_equal(ITEM.kind, NOTICE_TERMINATE);
        assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 60000);
        assert_true(ITEM.cancellable);
        assert_true(ITEM.hard);
        assert_string_equal(ITEM.text, values[i]);
    }
    assert_int_equal(fixture_parse(f, gce_parse_maintenance, "NONE"), PARSE_OK);
    assert_int_equal(f->set.count, 0);
}

static void a_live_migration_is_no_end_and_has_a_key_of_its_own(void **state)
{
    struct provider_fixture *f = *state;

    assert_int_equal(fixture_parse(f, gce_parse_maintenance, "MIGRATE_ON_HOST_MAINTENANCE"),
                     PARSE_OK);
    assert_int_equal(ITEM.kind, NOTICE_MIGRATE);
    assert_false(wire_notice_ends(ITEM.kind));
    assert_int_equal(ITEM.deadline_boot_ms, -1);
    assert_string_equal(ITEM.key, "maintenance-migrate");
    fixture_parse(f, gce_parse_maintenance, "TERMINATE_ON_HOST_MAINTENANCE");
    assert_string_equal(ITEM.key, "maintenance-terminate"); /* not the same notice */
}

static void an_hour_is_left_where_accelerators_are_and_the_beginning_was_seen(void **state)
{
    static const struct {
        const char *type;
        int64_t lead_ms;
    } types[] = {{"a2-highgpu-1g", 3600000}, {"a3-megagpu-8g", 3600000},
                 {"g2-standard-4", 3600000}, {"ct5lp-hightpu-4t", 3600000},
                 {"n1-standard-8", 60000},   {"c2-standard-4", 60000}};
    struct provider_fixture *f = *state;
    char body[128];

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        f->memory[0] = '\0';
        snprintf(body, sizeof body, "projects/12345/machineTypes/%s", types[i].type);
        assert_int_equal(fixture_parse(f, gce_parse_machine_type, body), PARSE_OK);
        assert_int_equal(f->set.count, 0);
        fixture_parse(f, gce_parse_maintenance, "TERMINATE_ON_HOST_MAINTENANCE");
        assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 60000); /* who knows since when */
        fixture_parse(f, gce_parse_maintenance, "NONE");
        fixture_parse(f, gce_parse_maintenance, "TERMINATE_ON_HOST_MAINTENANCE");
        assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + types[i].lead_ms);
    }
}

static void planned_maintenance_is_told_and_ends_nothing(void **state)
{
    static const char *const bodies[] = {
        "{\"type\":\"SCHEDULED\",\"canReschedule\":true,\"windowStartTime\":\"2020-04-25T17:11:"
        "44Z\","
        "\"windowEndTime\":\"2020-04-25T21:11:44Z\",\"maintenanceStatus\":\"PENDING\"}",
        "{\"type\":\"SCHEDULED\",\"can_reschedule\":\"TRUE\",\"window_start_time\":"
        "\"2020-04-25T17:11:44Z\",\"window_end_time\":\"2020-04-25T21:11:44Z\","
        "\"maintenance_status\":\"PENDING\"}\n"};
    static const char *const none[] = {"", "NONE", "{}", "{}\n"};
    struct provider_fixture *f = *state;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_int_equal(fixture_parse(f, gce_parse_upcoming, bodies[i]), PARSE_OK);
        assert_int_equal(f->set.count, 1);
        assert_int_equal(ITEM.kind, NOTICE_FREEZE);
        assert_false(wire_notice_ends(ITEM.kind));
        assert_true(ITEM.cancellable);
        assert_true(ITEM.deadline_boot_ms > FIXTURE_BOOT);
        assert_string_equal(ITEM.text, "maintenance SCHEDULED (PENDING) between "
                                       "2020-04-25T17:11:44Z and 2020-04-25T21:11:44Z");
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(fixture_parse(f, gce_parse_upcoming, none[i]), PARSE_OK);
        assert_int_equal(f->set.count, 0);
    }
    assert_int_equal(fixture_parse(f, gce_parse_upcoming, "<html>"), PARSE_GARBAGE);
    assert_int_equal(fixture_parse(f, gce_parse_upcoming, "{\"type\":\"SCHEDULED\"}"),
                     PARSE_GARBAGE);
}

static void what_was_remembered_first_stays(void **state)
{
    struct provider_fixture *f = *state;

    fixture_parse(f, gce_parse_maintenance, "NONE"); /* before the type */
    fixture_parse(f, gce_parse_machine_type, "projects/1/machineTypes/a2-highgpu-1g");
    fixture_parse(f, gce_parse_maintenance, "TERMINATE_ON_HOST_MAINTENANCE");
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 3600000);
}

static void garbage_is_no_notice(void **state)
{
    static const char *const preempted[] = {"", "true!", "MAYBE", "<html>TRUE</html>", "1"};
    static const char *const maintenance[] = {"", "none?", "<html>NONE", "REBOOT", "FALSE"};
    static const char *const types[] = {"", "a2-highgpu-1g", "<html>", "/machineTypes"};

    fixture_all_garbage(*state, gce_parse_preempted, preempted, 5);
    fixture_all_garbage(*state, gce_parse_maintenance, maintenance, 5);
    fixture_all_garbage(*state, gce_parse_machine_type, types, 4);
}

/* --- long polls ------------------------------------------------------------------------------- */

static void the_rest_is_well(struct provider_fixture *f)
{
    while (fixture_next(f))
        fixture_give(f, 200,
                     f->slot == GCE_PREEMPTED     ? "FALSE"
                     : f->slot == GCE_MAINTENANCE ? "NONE"
                                                  : "projects/1/machineTypes/n1-standard-1");
}

static void the_first_question_waits_for_nothing_and_the_next_for_a_change(void **state)
{
    struct provider_fixture *f = *state;

    fixture_asks(f, GCE_PREEMPTED);
    assert_string_equal(f->asked.url, ROOT "preempted" WAITS "0");
    assert_string_equal(f->asked.headers[0], "Metadata-Flavor: Google");
    assert_int_equal(f->asked.timeout_ms, 2000);
    assert_true(fixture_give(f, 200, "FALSE"));
    the_rest_is_well(f);
    assert_int_equal(f->status.state, SOURCE_HEALTHY);
    fixture_wait(f, GCE_PREEMPTED);
    fixture_asks(f, GCE_PREEMPTED);
    assert_string_equal(f->asked.url, ROOT "preempted" WAITS "411261ca6c9e4375");
    assert_true(f->asked.timeout_ms > 10000); /* than the server waits */
    assert_true(f->asked.timeout_ms < 15000); /* half of what a preemption leaves */
}

static void an_answer_after_a_long_wait_is_asked_for_again_at_once(void **state)
{
    struct provider_fixture *f = *state;

    the_rest_is_well(f);
    fixture_wait(f, GCE_PREEMPTED);
    fixture_asks(f, GCE_PREEMPTED);
    f->now.boot_ms += 10000;
    assert_true(fixture_give(f, 200, "FALSE"));
    fixture_due_between(f, GCE_PREEMPTED, 0, 0);
}

static void a_server_that_never_waits_is_asked_once_a_second(void **state)
{
    struct provider_fixture *f = *state;

    f->headers = FLAVOR; /* no ETag */
    fixture_asks(f, GCE_PREEMPTED);
    assert_true(fixture_give(f, 200, "FALSE"));
    fixture_due_between(f, GCE_PREEMPTED, 1000, 1000);
    fixture_wait(f, GCE_PREEMPTED);
    fixture_next(f);
    assert_string_equal(f->asked.url, ROOT "preempted" WAITS "0");
}

static void an_etag_that_is_no_word_of_a_url_is_not_sent_back(void **state)
{
    struct provider_fixture *f = *state;

    f->headers = TAGGED("a&b=c d");
    fixture_asks(f, GCE_PREEMPTED);
    assert_true(fixture_give(f, 200, "FALSE"));
    fixture_wait(f, GCE_PREEMPTED);
    fixture_next(f);
    assert_string_equal(f->asked.url, ROOT "preempted" WAITS "0");
}

static void after_a_failure_nothing_is_waited_for(void **state)
{
    static const int codes[] = {503, 429, 410, 500, 404};
    struct provider_fixture *f = *state;

    the_rest_is_well(f);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fixture_wait(f, GCE_PREEMPTED);
        fixture_next(f);
        assert_false(fixture_give(f, codes[i], ""));
        assert_int_equal(f->run.paths[GCE_PREEMPTED].state, SOURCE_DEGRADED);
        fixture_due_between(f, GCE_PREEMPTED, 800, 1200); /* a notice leaves 30 s */
    }
    fixture_wait(f, GCE_PREEMPTED);
    fixture_next(f);
    assert_string_equal(f->asked.url, ROOT "preempted" WAITS "0"); /* how it stands now */
    assert_int_equal(f->asked.timeout_ms, 2000);
    assert_true(fixture_give(f, 200, "TRUE"));
    assert_int_equal(ITEM.kind, NOTICE_PREEMPT);
}

static void waiting_in_vain_is_asked_anew_within_a_preemptions_time(void **state)
{
    struct provider_fixture *f = *state;

    the_rest_is_well(f);
    fixture_wait(f, GCE_PREEMPTED);
    fixture_asks(f, GCE_PREEMPTED);
    f->now.boot_ms += f->asked.timeout_ms;
    assert_false(fixture_fail(f, HTTP_TIMEOUT));
    assert_int_equal(f->status.state, SOURCE_DEGRADED);
    fixture_due_between(f, GCE_PREEMPTED, 800, 1200);
}

/* --- identity and filters --------------------------------------------------------------------- */

static void what_does_not_say_that_it_is_google_is_another(void **state)
{
    static const char *const headers[] = {"", "HTTP/1.1 200 OK\r\nServer: EC2ws\r\n",
                                          "Metadata-Flavor: Other\r\n"};

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct provider_fixture *f = *state;

        set_up(state);
        f->headers = headers[i];
        for (int k = 0; k < 3; k++) {
            fixture_wait(f, GCE_PREEMPTED);
            while (fixture_next(f)) {
                assert_false(fixture_give(f, k == 1 ? 404 : 200, "TRUE"));
                assert_int_equal(f->set.count, 0);
            }
            f->now.boot_ms += 5000;
        }
        assert_int_equal(f->status.state, SOURCE_ABSENT);
        assert_non_null(strstr(f->status.text, "another service"));
    }
}

static void a_503_without_a_name_is_no_other_cloud_and_is_asked_each_second(void **state)
{
    struct provider_fixture *f = *state;

    f->headers = ""; /* from what stands before the server */
    for (int i = 0; i < 6; i++) {
        fixture_wait(f, GCE_PREEMPTED);
        while (fixture_next(f))
            assert_false(fixture_give(f, 503, "unavailable"));
        assert_int_equal(f->status.state, SOURCE_DEGRADED);
        fixture_due_between(f, GCE_PREEMPTED, 800,
                            1200); /* somebody is there, and has 30 s to tell */
    }
}

static void a_key_that_is_filtered_from_the_beginning_is_absent(void **state)
{
    static const int codes[] = {403, 404};

    for (size_t i = 0; i < 2; i++) {
        struct provider_fixture *f = *state;

        set_up(state);
        for (int k = 0; k < 3; k++) {
            fixture_wait(f, GCE_PREEMPTED);
            while (fixture_next(f))
                fixture_give(f, f->slot == GCE_PREEMPTED ? codes[i] : 200,
                             f->slot == GCE_MAINTENANCE ? "NONE" : "projects/1/machineTypes/e2-a");
        }
        assert_int_equal(f->run.paths[GCE_PREEMPTED].state, SOURCE_ABSENT);
        fixture_due_between(f, GCE_PREEMPTED, 480000, 720000);
        assert_int_equal(f->status.state, SOURCE_DEGRADED); /* a part of it is served */
    }
}

static void what_has_worked_is_never_given_up_for_ten_minutes(void **state)
{
    struct provider_fixture *f = *state;

    the_rest_is_well(f);
    for (int i = 0; i < 10; i++) { /* as where the connection was cut on the way */
        fixture_wait(f, GCE_PREEMPTED);
        fixture_next(f);
        assert_false(fixture_give(f, 403, ""));
        assert_int_equal(f->run.paths[GCE_PREEMPTED].state, SOURCE_DEGRADED);
        fixture_due_between(f, GCE_PREEMPTED, 800, 1200);
    }
}

static void the_machine_type_is_asked_once_and_its_lack_troubles_nobody(void **state)
{
    struct provider_fixture *f = *state;

    while (fixture_next(f))
        fixture_give(f, f->slot == GCE_MACHINE_TYPE ? 403 : 200,
                     f->slot == GCE_PREEMPTED ? "FALSE" : "NONE");
    assert_int_equal(f->status.state, SOURCE_HEALTHY);
    fixture_wait(f, GCE_MACHINE_TYPE);
    while (fixture_next(f))
        fixture_give(f, 200,
                     f->slot == GCE_MACHINE_TYPE ? "projects/1/machineTypes/a2-x"
                     : f->slot == GCE_PREEMPTED  ? "FALSE"
                                                 : "NONE");
    assert_true(f->run.paths[GCE_MACHINE_TYPE].next_boot_ms == INT64_MAX);
    assert_string_equal(f->run.memory, "NA5000000");
}

static void a_tests_pace_shortens_waits_and_timeouts(void **state)
{
    struct provider_fixture *f = *state;

    provider_set_pace(&f->run, (struct provider_pace){.waits = 10, .timeouts = 4});
    fixture_asks(f, GCE_PREEMPTED);
    assert_int_equal(f->asked.timeout_ms, 500);
    assert_int_equal(f->asked.connect_ms, 1000);
    assert_false(fixture_give(f, 503, ""));
    fixture_due_between(f, GCE_PREEMPTED, 80, 120);
    fixture_asks(f, GCE_MAINTENANCE);
    assert_true(fixture_give(f, 200, "NONE"));
    fixture_due_between(f, GCE_MAINTENANCE, 100, 100);
}

static void the_platforms_own_variables_name_a_host_or_an_address(void **state)
{
    char endpoint[64], name[200];

    (void)state;
    setenv("GCE_METADATA_IP", "127.0.0.3", 1);
    sources_endpoint(&provider_gce, endpoint, sizeof endpoint);
    assert_string_equal(endpoint, "http://127.0.0.3");
    setenv("GCE_METADATA_HOST", "metadata.example:8080", 1);
    sources_endpoint(&provider_gce, endpoint, sizeof endpoint);
    assert_string_equal(endpoint, "http://metadata.example:8080");
    setenv("MUSTER_GCE_ENDPOINT", "http://127.0.0.1:7", 1);
    sources_endpoint(&provider_gce, endpoint, sizeof endpoint);
    assert_string_equal(endpoint, "http://127.0.0.1:7");
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    setenv("MUSTER_GCE_ENDPOINT", name, 1); /* cut it would be another's */
    sources_endpoint(&provider_gce, endpoint, sizeof endpoint);
    assert_false(provider_init(&fixture.run, &provider_gce, endpoint, 1, 0));
    unsetenv("GCE_METADATA_IP");
    unsetenv("GCE_METADATA_HOST");
    unsetenv("MUSTER_GCE_ENDPOINT");
    sources_endpoint(&provider_gce, endpoint, sizeof endpoint);
    assert_string_equal(endpoint, "");
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_preemption_leaves_half_a_minute),
        CASE(a_preemption_is_counted_from_the_last_time_it_was_not_one),
        CASE(a_termination_for_maintenance_can_be_withdrawn),
        CASE(a_live_migration_is_no_end_and_has_a_key_of_its_own),
        CASE(an_hour_is_left_where_accelerators_are_and_the_beginning_was_seen),
        CASE(planned_maintenance_is_told_and_ends_nothing),
        CASE(garbage_is_no_notice),
        CASE(what_was_remembered_first_stays),
        CASE(garbage_is_no_notice),
        CASE(the_first_question_waits_for_nothing_and_the_next_for_a_change),
        CASE(an_answer_after_a_long_wait_is_asked_for_again_at_once),
        CASE(a_server_that_never_waits_is_asked_once_a_second),
        CASE(an_etag_that_is_no_word_of_a_url_is_not_sent_back),
        CASE(after_a_failure_nothing_is_waited_for),
        CASE(waiting_in_vain_is_asked_anew_within_a_preemptions_time),
        CASE(what_does_not_say_that_it_is_google_is_another),
        CASE(a_503_without_a_name_is_no_other_cloud_and_is_asked_each_second),
        CASE(a_key_that_is_filtered_from_the_beginning_is_absent),
        CASE(what_has_worked_is_never_given_up_for_ten_minutes),
        CASE(the_machine_type_is_asked_once_and_its_lack_troubles_nobody),
        CASE(a_tests_pace_shortens_waits_and_timeouts),
        CASE(the_platforms_own_variables_name_a_host_or_an_address),
    };

    return cmocka_run_group_tests_name("notice_gce", tests, NULL, NULL);
}
