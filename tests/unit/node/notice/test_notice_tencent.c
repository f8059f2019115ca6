/* Tencent Cloud's parsers byte by byte. */
#include "node/notice/providers/tencent.h"
#include "tests/unit/node/notice/provider_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ITEM (f->set.items[0])

static struct provider_fixture fixture;

static int set_up(void **state)
{
    *state = &fixture;
    fixture_begin(&fixture, &provider_tencent);
    return 0;
}

static void a_release_has_its_time(void **state)
{
    struct provider_fixture *f = *state;

    assert_int_equal(fixture_parse(f, tencent_parse_spot, "2020-04-25 01:13:44\n"), PARSE_OK);
    assert_int_equal(f->set.count, 1);
    assert_int_equal(ITEM.kind, NOTICE_PREEMPT);
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 120000);
    assert_true(ITEM.hard);
    assert_false(ITEM.cancellable);
    assert_non_null(strstr(ITEM.text, "2020-04-25 01:13:44"));
}

static void a_time_that_passed_is_now_and_an_absurd_one_the_usual_lead(void **state)
{
    struct provider_fixture *f = *state;

    fixture_parse(f, tencent_parse_spot, "2020-04-25 01:00:00");
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT);
    fixture_parse(f, tencent_parse_spot, "2120-04-24 17:00:00");
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 120000);
}

static void garbage_is_no_release(void **state)
{
    static const char *const bodies[] = {"",
                                         "soon",
                                         "<html>404</html>",
                                         "2020-04-24T17:13:44Z",
                                         "2020-04-25 01:13:44 x",
                                         "2020-02-30T17:13:44Z",
                                         "2020-02-30 17:13:44",
                                         "{}"};

    fixture_all_garbage(*state, tencent_parse_spot, bodies, sizeof bodies / sizeof *bodies);
}

static void an_instances_name_is_the_services_identity(void **state)
{
    static const char *const others[] = {"",
                                         "<html>",
                                         "TENCENT",
                                         "ins-",
                                         "x-12345",
                                         "ins-3jmvv7qz and more",
                                         "ins-3jmvv7qz?!",
                                         "it works"};
    struct provider_fixture *f = *state;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(fixture_parse(f, tencent_parse_instance, others[i]), PARSE_FOREIGN);
    assert_int_equal(fixture_parse(f, tencent_parse_instance, "ins-3jmvv7qz\n"), PARSE_OK);
    assert_string_equal(f->memory, "ins-3jmvv7qz");
}

static void it_is_asked_by_name_and_without_token(void **state)
{
    struct provider_fixture *f = *state;

    fixture_asks(f, TENCENT_INSTANCE);
    assert_string_equal(f->asked.url,
                        "http://metadata.tencentyun.com/latest/meta-data/instance-id");
    assert_string_equal(f->asked.headers[0], "");
    assert_false(fixture_next(f));
    fixture_give(f, 200, "ins-3jmvv7qz");
    fixture_asks(f, TENCENT_SPOT);
    assert_true(fixture_give(f, 404, "not found"));
    assert_int_equal(f->set.count, 0);
    assert_int_equal(f->status.state, SOURCE_HEALTHY);
    fixture_due_between(f, TENCENT_SPOT, 5000, 5000);
}

static void a_401_without_tokens_is_a_failure_like_others(void **state)
{
    struct provider_fixture *f = *state;

    fixture_asks(f, TENCENT_INSTANCE);
    assert_false(fixture_give(f, 401, ""));
    assert_int_equal(f->status.state, SOURCE_DEGRADED);
    fixture_due_between(f, TENCENT_INSTANCE, 800, 1200);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_release_has_its_time),
        CASE(a_time_that_passed_is_now_and_an_absurd_one_the_usual_lead),
        CASE(garbage_is_no_release),
        CASE(an_instances_name_is_the_services_identity),
        CASE(it_is_asked_by_name_and_without_token),
        CASE(a_401_without_tokens_is_a_failure_like_others),
    };

    return cmocka_run_group_tests_name("notice_tencent", tests, NULL, NULL);
}
