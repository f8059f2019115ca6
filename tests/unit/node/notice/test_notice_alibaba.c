/* Alibaba Cloud's parsers byte by byte. */
#include "node/notice/providers/alibaba.h"
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
    fixture_begin(&fixture, &provider_alibaba);
    return 0;
}

static void a_release_has_its_time(void **state)
{
    struct provider_fixture *f = *state;

    assert_int_equal(fixture_parse(f, alibaba_parse_spot, "2020-04-24T17:16:44Z\n"), PARSE_OK);
    assert_int_equal(f->set.count, 1);
    assert_int_equal(ITEM.kind, NOTICE_PREEMPT);
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 300000);
    assert_true(ITEM.hard);
    assert_false(ITEM.cancellable);
    assert_non_null(strstr(ITEM.text, "2020-04-24T17:16:44Z"));
}

static void a_time_that_passed_is_now_and_an_absurd_one_the_usual_lead(void **state)
{
    struct provider_fixture *f = *state;

    fixture_parse(f, alibaba_parse_spot, "2020-04-24T17:00:00Z");
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT);
    fixture_parse(f, alibaba_parse_spot, "2120-04-24T17:00:00Z");
    assert_int_equal(ITEM.deadline_boot_ms, FIXTURE_BOOT + 300000);
}

static void garbage_is_no_release(void **state)
{
    static const char *const bodies[] = {"",
                                         "soon",
                                         "<html>404</html>",
                                         "2020-04-25 01:16:44",
                                         "2020-04-24T17:16:44Z x",
                                         "2020-02-30T17:13:44Z",
                                         "2020-02-30 17:13:44",
                                         "{}"};

    fixture_all_garbage(*state, alibaba_parse_spot, bodies, sizeof bodies / sizeof *bodies);
}

static void an_instances_name_is_the_services_identity(void **state)
{
    static const char *const others[] = {"",
                                         "<html>",
                                         "ALIBABA",
                                         "i-",
                                         "x-12345",
                                         "i-bp67acfmxazb4p and more",
                                         "i-bp67acfmxazb4p?!",
                                         "it works"};
    struct provider_fixture *f = *state;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(fixture_parse(f, alibaba_parse_instance, others[i]), PARSE_FOREIGN);
    assert_int_equal(fixture_parse(f, alibaba_parse_instance, "i-bp67acfmxazb4p\n"), PARSE_OK);
    assert_string_equal(f->memory, "i-bp67acfmxazb4p");
}

static void the_token_is_asked_for_by_its_own_headers_and_may_come_without(void **state)
{
    struct provider_fixture *f = *state;

    assert_true(fixture_next(f));
    assert_string_equal(f->asked.method, "PUT");
    assert_string_equal(f->asked.url, "http://100.100.100.200/latest/api/token");
    assert_string_equal(f->asked.headers[0], "X-aliyun-ecs-metadata-token-ttl-seconds: 21600");
    fixture_give(f, 200, "TOKEN=="); /* its time is not repeated */
    fixture_asks(f, ALIBABA_INSTANCE);
    assert_string_equal(f->asked.headers[1], "X-aliyun-ecs-metadata-token: TOKEN==");
    fixture_give(f, 200, "i-bp67acfmxazb4p");
    fixture_asks(f, ALIBABA_SPOT);
    assert_string_equal(f->asked.url,
                        "http://100.100.100.200/latest/meta-data/instance/spot/termination-time");
    assert_true(fixture_give(f, 404, ""));
    assert_int_equal(f->status.state, SOURCE_HEALTHY);
    fixture_due_between(f, ALIBABA_SPOT, 5000, 5000);
    f->now.boot_ms += 21600 * 1000LL;
    assert_true(fixture_next(f));
    assert_string_equal(f->asked.method, "PUT"); /* it is taken to last as long as was asked for */
}

static void what_gives_pages_for_tokens_is_another(void **state)
{
    struct provider_fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        assert_true(fixture_next(f));
        fixture_give(f, 200, "<h1>It works</h1>");
        f->now.boot_ms = f->status.retry_boot_ms;
    }
    assert_int_equal(f->status.state, SOURCE_ABSENT);
}

static void who_knows_no_token_and_no_instance_is_absent(void **state)
{
    struct provider_fixture *f = *state;

    assert_true(fixture_next(f));
    fixture_give(f, 404, ""); /* as an HTTP server of anybody */
    for (int i = 0; i < 3; i++) {
        fixture_wait(f, ALIBABA_INSTANCE);
        fixture_asks(f, ALIBABA_INSTANCE);
        assert_string_equal(f->asked.headers[1], "");
        assert_false(fixture_give(f, 404, ""));
    }
    assert_int_equal(f->status.state, SOURCE_ABSENT);
    assert_false(fixture_next(f));
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_release_has_its_time),
        CASE(a_time_that_passed_is_now_and_an_absurd_one_the_usual_lead),
        CASE(garbage_is_no_release),
        CASE(an_instances_name_is_the_services_identity),
        CASE(the_token_is_asked_for_by_its_own_headers_and_may_come_without),
        CASE(what_gives_pages_for_tokens_is_another),
        CASE(who_knows_no_token_and_no_instance_is_absent),
    };

    return cmocka_run_group_tests_name("notice_alibaba", tests, NULL, NULL);
}
