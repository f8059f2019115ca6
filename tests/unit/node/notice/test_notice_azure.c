/* Azure's parsers byte by byte, and what comes after what in provider.c. */
#include "node/notice/providers/azure.h"
#include "tests/unit/node/notice/provider_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ITEM (f->set.items[0])
#define EVENT(type, status, resources, before)                                                     \
    "{\"EventId\":\"A123BC45\",\"EventStatus\":\"" status "\",\"EventType\":\"" type               \
    "\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[" resources "],\"NotBefore\":\"" before \
    "\",\"Description\":\"\",\"EventSource\":\"Platform\",\"DurationInSeconds\":-1}"
#define EVENTS(list) "{\"DocumentIncarnation\":2,\"Events\":[" list "]}"
#define ONE(type, status, before) EVENTS(EVENT(type, status, "\"vmss_3\"", before))

static struct provider_fixture fixture;

static int set_up(void **state)
{
    *state = &fixture;
    fixture_begin(&fixture, &provider_azure);
    snprintf(fixture.memory, sizeof fixture.memory, "vmss_3");
    return 0;
}

static void an_event_has_its_kind_and_time(void **state)
{
    static const struct {
        const char *body;
        enum wire_notice_kind kind;
    } cases[] = {{ONE("Preempt", "Scheduled", "Fri, 24 Apr 2020 17:12:14 GMT"), NOTICE_PREEMPT},
                 {ONE("Terminate", "Scheduled", "Fri, 24 Apr 2020 17:12:14 GMT"), NOTICE_TERMINATE},
                 {ONE("Reboot", "Scheduled", "Fri, 24 Apr 2020 17:12:14 GMT"), NOTICE_REBOOT},
                 {ONE("Redeploy", "Scheduled", "Fri, 24 Apr 2020 17:12:14 GMT"), NOTICE_REBOOT}};
    struct provider_fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(fixture_parse(f, azure_parse_events, cases[i].body), PARSE_OK);
        assert_int_equal(f->set.count, 1);
        assert_int_equal(ITEM.kind, cases[i].kind);
        assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 30000);
        assert_true(ITEM.hard);
        assert_true(ITEM.cancellable);
        assert_string_equal(ITEM.key, "event-A123BC45");
    }
}

static void a_time_may_be_iso_or_missing(void **state)
{
    struct provider_fixture *f = *state;

    fixture_parse(f, azure_parse_events, ONE("Preempt", "Scheduled", "2020-04-24T17:12:14Z"));
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 30000);
    fixture_parse(f, azure_parse_events, ONE("Preempt", "Scheduled", ""));
    assert_int_equal(ITEM.deadline_boot_ms, -1);
    fixture_parse(f, azure_parse_events, ONE("Preempt", "Scheduled", "2020-04-24T17:00:00Z"));
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT); /* it has passed */
}

static void what_has_started_is_now_and_not_withdrawn(void **state)
{
    struct provider_fixture *f = *state;

    fixture_parse(f, azure_parse_events, ONE("Reboot", "Started", ""));
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT);
    assert_false(ITEM.cancellable);
    fixture_parse(f, azure_parse_events, ONE("Freeze", "Started", ""));
    assert_int_equal(ITEM.kind, NOTICE_FREEZE);
    assert_true(ITEM.cancellable); /* it is over when it vanishes */
    assert_false(ITEM.hard);
    fixture_parse(f, azure_parse_events, ONE("Reboot", "Started", "2020-04-24T18:00:00Z"));
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT); /* whatever the time says */
}

static void an_event_of_another_machine_is_none_of_ours(void **state)
{
    struct provider_fixture *f = *state;

    assert_int_equal(
        fixture_parse(f, azure_parse_events,
                      EVENTS(EVENT("Preempt", "Scheduled", "\"vmss_1\",\"vmss_33\"", "garbage"))),
        PARSE_OK);
    assert_int_equal(f->set.count, 0);
    fixture_parse(
        f, azure_parse_events,
        EVENTS(EVENT("Reboot", "Scheduled", "\"vmss_1\",\"VMSS_3\"", "2020-04-24T17:12:14Z")));
    assert_int_equal(f->set.count, 1); /* names have no case */
}

static void an_unknown_kind_is_told_and_no_end(void **state)
{
    struct provider_fixture *f = *state;

    fixture_parse(f, azure_parse_events, ONE("Rehost", "Scheduled", "2020-04-24T17:12:14Z"));
    assert_int_equal(f->set.count, 1);
    assert_false(wire_notice_ends(ITEM.kind));
}

static void nothing_is_announced(void **state)
{
    struct provider_fixture *f = *state;

    assert_int_equal(fixture_parse(f, azure_parse_events, EVENTS("")), PARSE_OK);
    assert_int_equal(f->set.count, 0);
}

static void garbage_is_no_event(void **state)
{
    static const char *const bodies[] = {
        "",
        "<html>",
        "{\"DocumentIncarnation\":1}",
        "{\"DocumentIncarnation\":1,\"Events\":{}}",
        EVENTS("1"),
        EVENTS("{\"EventId\":\"1\"}"),
        EVENTS("{\"EventId\":\"1\",\"EventType\":\"Reboot\",\"Resources\":\"vmss_3\"}"),
        ONE("Reboot", "Scheduled", "soon"),
        EVENTS("") "x"};
    struct provider_fixture *f = *state;

    fixture_all_garbage(f, azure_parse_events, bodies, sizeof bodies / sizeof *bodies);
    assert_int_equal(fixture_parse(f, azure_parse_events, "{\"Events\":[]}"), PARSE_FOREIGN);
    assert_int_equal(fixture_parse(f, azure_parse_events, "[]"), PARSE_FOREIGN);
}

static void what_is_no_name_is_anothers(void **state)
{
    static const char *const bodies[] = {"", "<html>hi</html>", "two words", "{\"error\":1}"};
    struct provider_fixture *f = *state;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        assert_int_equal(fixture_parse(f, azure_parse_name, bodies[i]), PARSE_FOREIGN);
    assert_string_equal(f->memory, "vmss_3");
    assert_int_equal(fixture_parse(f, azure_parse_name, "my-vm_000002\n"), PARSE_OK);
    assert_string_equal(f->memory, "my-vm_000002");
}

/* --- what comes after what -------------------------------------------------------------------- */

static void the_name_comes_first_and_is_asked_once(void **state)
{
    struct provider_fixture *f = *state;

    fixture_asks(f, AZURE_NAME);
    assert_string_equal(f->asked.url, "http://169.254.169.254/metadata/instance/compute/name"
                                      "?api-version=2021-02-01&format=text");
    assert_string_equal(f->asked.headers[0], "Metadata: true");
    assert_false(fixture_next(f)); /* events without a name would be anybody's */
    assert_true(provider_wakeup_boot_ms(&f->run) == INT64_MAX);
    fixture_give(f, 200, "vmss_3");
    assert_int_equal(f->status.state, SOURCE_PROBING);
    fixture_asks(f, AZURE_EVENTS);
    assert_string_equal(f->asked.url,
                        "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01");
    assert_true(fixture_give(f, 200, ONE("Preempt", "Scheduled", "2020-04-24T17:12:14Z")));
    assert_int_equal(f->set.count, 1);
    assert_int_equal(f->status.state, SOURCE_HEALTHY);
    f->now.boot_ms += 86400000;
    fixture_asks(f, AZURE_EVENTS);
    assert_false(fixture_next(f));
}

static void the_first_call_has_more_than_two_minutes(void **state)
{
    struct provider_fixture *f = *state;

    fixture_asks(f, AZURE_NAME);
    fixture_give(f, 200, "vmss_3");
    fixture_asks(f, AZURE_EVENTS);
    assert_int_equal(f->asked.timeout_ms, 150000);
    assert_int_equal(f->asked.connect_ms, 1000);
    assert_false(fixture_give(f, 500, ""));
    fixture_wait(f, AZURE_EVENTS);
    fixture_asks(f, AZURE_EVENTS);
    assert_int_equal(f->asked.timeout_ms, 150000); /* it is not switched on yet */
    f->now.boot_ms += 120000;
    assert_true(fixture_give(f, 200, EVENTS("")));
    fixture_due_between(f, AZURE_EVENTS, 0, 0);
    fixture_asks(f, AZURE_EVENTS);
    assert_int_equal(f->asked.timeout_ms, 3000);
}

static void a_name_that_does_not_come_keeps_the_events_waiting_and_is_said(void **state)
{
    struct provider_fixture *f = *state;

    for (int i = 0; i < 5; i++) {
        fixture_asks(f, AZURE_NAME);
        assert_false(fixture_give(f, i == 2 ? 429 : 500, ""));
        assert_int_equal(f->status.state, SOURCE_DEGRADED);
        assert_false(fixture_next(f));
        assert_true(provider_wakeup_boot_ms(&f->run) == f->status.retry_boot_ms);
        fixture_wait(f, AZURE_NAME);
    }
    fixture_asks(f, AZURE_NAME);
    fixture_give(f, 200, "vmss_3");
    fixture_asks(f, AZURE_EVENTS);
}

static void busy_answers_back_off_by_a_second_once_it_has_worked(void **state)
{
    static const int codes[] = {429, 410, 500, 503, 429, 410};
    struct provider_fixture *f = *state;

    fixture_asks(f, AZURE_NAME);
    fixture_give(f, 200, "vmss_3");
    fixture_asks(f, AZURE_EVENTS);
    fixture_give(f, 200, EVENTS(""));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fixture_wait(f, AZURE_EVENTS);
        fixture_asks(f, AZURE_EVENTS);
        assert_false(fixture_give(f, codes[i], ""));
        assert_int_equal(f->status.state, SOURCE_DEGRADED);
        fixture_due_between(f, AZURE_EVENTS, 800, 1200);
    }
}

static void another_clouds_server_is_absent_and_asked_for_nothing_more(void **state)
{
    struct provider_fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        fixture_asks(f, AZURE_NAME);
        assert_false(i == 1 ? fixture_give(f, 404, "not here")
                            : fixture_give(f, 200, "<h1>It works"));
        fixture_wait(f, AZURE_NAME);
    }
    assert_int_equal(f->status.state, SOURCE_ABSENT);
}

/* --- acknowledging ---------------------------------------------------------------------------- */

static void with_event(struct provider_fixture *f, const char *body)
{
    fixture_asks(f, AZURE_NAME);
    fixture_give(f, 200, "vmss_3");
    fixture_asks(f, AZURE_EVENTS);
    fixture_give(f, 200, body);
}

static void nothing_is_acknowledged_without_leave_and_commit(void **state)
{
    struct provider_fixture *f = *state;

    with_event(f, ONE("Reboot", "Scheduled", "2020-04-24T17:26:44Z"));
    provider_committed(&f->run);
    assert_false(provider_is_acknowledging(&f->run));
    assert_false(fixture_next(f));
    set_up(state);
    provider_allow_acknowledging(&f->run);
    with_event(f, ONE("Reboot", "Scheduled", "2020-04-24T17:26:44Z"));
    assert_false(provider_is_acknowledging(&f->run));
    assert_false(fixture_next(f));
}

static void after_the_commit_an_announced_end_is_acknowledged_once(void **state)
{
    struct provider_fixture *f = *state;

    provider_allow_acknowledging(&f->run);
    with_event(f, ONE("Reboot", "Scheduled", "2020-04-24T17:26:44Z"));
    provider_committed(&f->run);
    assert_true(provider_is_acknowledging(&f->run));
    assert_true(provider_wakeup_boot_ms(&f->run) <= f->now.boot_ms);
    assert_true(fixture_next(f));
    assert_string_equal(f->asked.method, "POST");
    assert_string_equal(f->asked.url,
                        "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01");
    assert_string_equal(f->asked.body, "{\"StartRequests\":[{\"EventId\":\"A123BC45\"}]}");
    assert_string_equal(f->asked.headers[0], "Metadata: true");
    assert_false(fixture_give(f, 500, ""));
    assert_true(provider_is_acknowledging(&f->run)); /* again, a second later */
    assert_false(fixture_next(f));
    f->now.boot_ms += 1000;
    assert_true(fixture_next(f));
    assert_string_equal(f->asked.method, "POST");
    assert_false(fixture_give(f, 200, ""));
    assert_false(provider_is_acknowledging(&f->run));
    assert_int_equal(f->status.state, SOURCE_HEALTHY);
    fixture_asks(f, AZURE_EVENTS);
    fixture_give(f, 200, ONE("Reboot", "Scheduled", "2020-04-24T17:26:44Z"));
    f->now.boot_ms += 10000;
    fixture_asks(f, AZURE_EVENTS);
    assert_false(fixture_next(f));
}

static void a_freeze_what_has_started_and_anothers_event_are_not_acknowledged(void **state)
{
    static const char *const bodies[] = {
        ONE("Freeze", "Scheduled", "2020-04-24T17:26:44Z"), ONE("Reboot", "Started", ""),
        EVENTS(EVENT("Reboot", "Scheduled", "\"vmss_1\"", "2020-04-24T17:26:44Z")), EVENTS("")};

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct provider_fixture *f = *state;

        set_up(state);
        provider_allow_acknowledging(&f->run);
        with_event(f, bodies[i]);
        provider_committed(&f->run);
        assert_false(provider_is_acknowledging(&f->run));
    }
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_event_has_its_kind_and_time),
        CASE(a_time_may_be_iso_or_missing),
        CASE(what_has_started_is_now_and_not_withdrawn),
        CASE(an_event_of_another_machine_is_none_of_ours),
        CASE(an_unknown_kind_is_told_and_no_end),
        CASE(nothing_is_announced),
        CASE(garbage_is_no_event),
        CASE(what_is_no_name_is_anothers),
        CASE(the_name_comes_first_and_is_asked_once),
        CASE(the_first_call_has_more_than_two_minutes),
        CASE(a_name_that_does_not_come_keeps_the_events_waiting_and_is_said),
        CASE(busy_answers_back_off_by_a_second_once_it_has_worked),
        CASE(another_clouds_server_is_absent_and_asked_for_nothing_more),
        CASE(nothing_is_acknowledged_without_leave_and_commit),
        CASE(after_the_commit_an_announced_end_is_acknowledged_once),
        CASE(a_freeze_what_has_started_and_anothers_event_are_not_acknowledged),
    };

    return cmocka_run_group_tests_name("notice_azure", tests, NULL, NULL);
}
