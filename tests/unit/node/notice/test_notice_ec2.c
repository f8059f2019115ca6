/* EC2's parsers byte by byte, and the rules of provider.c through them, in virtual time. */
#include "node/notice/providers/ec2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BOOT INT64_C(5000000)
#define UNIX INT64_C(1587748304000) /* 2020-04-24T17:11:44Z */

static struct notice_set set;
static char why[SOURCE_TEXT_MAX + 1];

static struct http_reply reply_of(int status, const char *body)
{
    return (struct http_reply){.result = HTTP_ANSWERED,
                               .status = status,
                               .headers = "HTTP/1.0 X\r\n",
                               .body = body,
                               .size = strlen(body),
                               .error = ""};
}

static enum parse_result parse(provider_parse_fn *parser, const char *body)
{
    char memory[PROVIDER_MEMORY_MAX + 1] = "";
    const struct provider_context context = {
        .now = {.boot_ms = BOOT, .unix_ms = UNIX}, .memory = memory, .why = why};
    struct http_reply reply = reply_of(200, body);

    set.count = 0;
    return parser(&reply, &context, &set);
}

static void a_spot_action_has_its_time(void **state)
{
    (void)state;
    assert_int_equal(
        parse(ec2_parse_spot, "{\"action\":\"terminate\",\"time\":\"2020-04-24T17:13:44Z\"}"),
        PARSE_OK);
    assert_int_equal(set.count, 1);
    assert_int_equal(set.items[0].kind, NOTICE_PREEMPT);
    assert_int_equal(set.items[0].deadline_boot_ms, BOOT + 120000);
    assert_true(set.items[0].hard);
    assert_false(set.items[0].cancellable);
    assert_string_equal(set.items[0].key, "spot-terminate");
    assert_non_null(strstr(set.items[0].text, "17:13:44Z"));
}

static void spot_actions_stop_and_hibernate(void **state)
{
    (void)state;
    assert_int_equal(parse(ec2_parse_spot,
                           "{\n\t\"action\": \"stop\",\n\t\"time\": \"2020-04-24T17:13:44Z\"\n}\n"),
                     PARSE_OK);
    assert_int_equal(set.items[0].kind, NOTICE_STOP);
    assert_int_equal(
        parse(ec2_parse_spot, "{\"action\":\"hibernate\",\"time\":\"2020-04-24T17:13:44Z\"}"),
        PARSE_OK);
    assert_int_equal(set.items[0].deadline_boot_ms, BOOT); /* it begins at once */
}

static void a_spot_time_that_passed_is_now_and_an_absurd_one_the_usual_lead(void **state)
{
    (void)state;
    assert_int_equal(
        parse(ec2_parse_spot, "{\"action\":\"stop\",\"time\":\"2020-04-24T17:00:00Z\"}"), PARSE_OK);
    assert_int_equal(set.items[0].deadline_boot_ms, BOOT);
    assert_int_equal(
        parse(ec2_parse_spot, "{\"action\":\"stop\",\"time\":\"2120-04-24T17:00:00Z\"}"), PARSE_OK);
    assert_int_equal(set.items[0].deadline_boot_ms, BOOT + 120000);
}

static void garbage_is_no_spot_action(void **state)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"action\":\"terminate\"}",
        "{\"action\":\"noop\",\"time\":\"2020-04-24T17:13:44Z\"}",
        "{\"action\":\"terminate\",\"time\":\"soon\"}",
        "{\"action\":\"terminate\",\"time\":\"2020-02-30T17:13:44Z\"}",
        "{\"action\":\"terminate\",\"time\":\"2020-04-24T17:13:44Z\"} x",
        "{\"action\":\"terminate\",\"action\":\"stop\",\"time\":\"2020-04-24T17:13:44Z\"}",
        "{\"action\":7,\"time\":\"2020-04-24T17:13:44Z\"}",
        "{\"action\":\"terminate\\u0000\",\"time\":\"2020-04-24T17:13:44Z\"}",
        "<html>terminate</html>"};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        why[0] = '\0';
        assert_int_equal(parse(ec2_parse_spot, bodies[i]), PARSE_GARBAGE);
        assert_int_equal(set.count, 0);
        assert_string_not_equal(why, "");
    }
}

static void scheduled_events_have_kinds_and_states(void **state)
{
    (void)state;
    assert_int_equal(
        parse(ec2_parse_events,
              "[{\"NotBefore\":\"24 Apr 2020 18:11:44 GMT\",\"Code\":\"system-reboot\","
              "\"Description\":\"scheduled reboot\",\"EventId\":\"instance-event-1\","
              "\"State\":\"active\"},"
              "{\"NotBefore\":\"5 Apr 2020 18:11:44 GMT\",\"Code\":\"instance-stop\","
              "\"EventId\":\"instance-event-2\",\"State\":\"canceled\"},"
              "{\"NotBefore\":\"5 Apr 2020 18:11:44 GMT\",\"Code\":\"instance-stop\","
              "\"EventId\":\"instance-event-3\",\"State\":\"completed\"},"
              "{\"NotBefore\":\"1 May 2020 00:00:00 GMT\",\"Code\":\"instance-retirement\","
              "\"EventId\":\"instance-event-4\",\"State\":\"active\"},"
              "{\"NotBefore\":\"1 May 2020 00:00:00 GMT\",\"Code\":\"system-maintenance\","
              "\"EventId\":\"instance-event-5\",\"State\":\"active\"}]"),
        PARSE_OK);
    assert_int_equal(set.count, 3);
    assert_string_equal(set.items[0].key, "event-instance-event-1");
    assert_int_equal(set.items[0].kind, NOTICE_REBOOT);
    assert_int_equal(set.items[0].deadline_boot_ms, BOOT + 3600000);
    assert_true(set.items[0].cancellable);
    assert_int_equal(set.items[1].kind, NOTICE_TERMINATE);
    assert_int_equal(set.items[2].kind, NOTICE_FREEZE); /* told, no end */
    assert_false(wire_notice_ends(set.items[2].kind));
}

static void no_scheduled_events_and_garbage_for_them(void **state)
{
    (void)state;
    assert_int_equal(parse(ec2_parse_events, "[]"), PARSE_OK);
    assert_int_equal(set.count, 0);
    assert_int_equal(parse(ec2_parse_events, "{}"), PARSE_GARBAGE);
    assert_int_equal(parse(ec2_parse_events, "[1]"), PARSE_GARBAGE);
    assert_int_equal(parse(ec2_parse_events, "[{\"Code\":\"instance-stop\",\"NotBefore\":\"x\"}]"),
                     PARSE_GARBAGE);
}

static void the_scaling_group_terminates_at_an_unknown_time(void **state)
{
    (void)state;
    assert_int_equal(parse(ec2_parse_scaling, "InService"), PARSE_OK);
    assert_int_equal(set.count, 0);
    assert_int_equal(parse(ec2_parse_scaling, "Terminated\n"), PARSE_OK);
    assert_int_equal(set.items[0].kind, NOTICE_TERMINATE);
    assert_int_equal(set.items[0].deadline_boot_ms, -1);
    assert_true(set.items[0].cancellable);
    assert_int_equal(parse(ec2_parse_scaling, "<html>Terminated"), PARSE_GARBAGE);
}

static void a_rebalance_recommendation_is_no_end(void **state)
{
    (void)state;
    assert_int_equal(parse(ec2_parse_rebalance, "{\"noticeTime\":\"2020-04-24T17:11:44Z\"}"),
                     PARSE_OK);
    assert_int_equal(set.count, 1);
    assert_false(wire_notice_ends(set.items[0].kind));
}

/* --- provider.c ------------------------------------------------------------------------------- */

static struct provider_run run;
static int64_t now;
static struct http_request asked;
static unsigned slot;
static struct source_status status;

static int begin(void **state)
{
    (void)state;
    now = BOOT;
    assert_true(provider_init(&run, &provider_ec2, NULL, 7, now));
    return 0;
}

static bool next(void)
{
    return provider_next(&run, now, &asked, &slot);
}

static bool give(struct http_reply reply)
{
    const struct notice_now clocks = {now, UNIX};
    unsigned topic;
    bool said = provider_take(&run, slot, &reply, &clocks, &topic, &set);

    provider_status(&run, &status);
    return said;
}

static struct http_reply token_reply(const char *token)
{
    struct http_reply reply = reply_of(200, token);

    reply.headers = "HTTP/1.1 200 OK\r\nX-Aws-Ec2-Metadata-Token-Ttl-Seconds: 21600\r\n";
    return reply;
}

static struct http_reply failure(enum http_result result, const char *error)
{
    return (struct http_reply){.result = result, .headers = "", .body = "", .error = error};
}

static void with_token(void)
{
    assert_true(next());
    assert_string_equal(asked.method, "PUT");
    assert_string_equal(asked.url, "http://169.254.169.254/latest/api/token");
    assert_string_equal(asked.headers[0], "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    assert_false(next()); /* everything waits for the token */
    give(token_reply("TOKEN=="));
}

/* Answers all that is due but the spot path with 404; then the spot path is asked. */
static void ask_spot(void)
{
    while (next() && slot != EC2_SPOT)
        give(reply_of(404, "no"));
    assert_int_equal(slot, EC2_SPOT);
    assert_string_equal(asked.url, "http://169.254.169.254/latest/meta-data/spot/instance-action");
}

static void the_rest_is_404(void)
{
    while (next())
        give(reply_of(404, "no"));
}

static void assert_next_in(int64_t least_ms, int64_t most_ms)
{
    int64_t left = run.paths[EC2_SPOT].next_boot_ms - now;

    if (left < least_ms || left > most_ms)
        fail_msg("the spot path is asked in %lld ms", (long long)left);
}

static void a_404_is_healthy_and_says_nothing_is_there(void **state)
{
    (void)state;
    with_token();
    ask_spot();
    assert_string_equal(asked.headers[1], "X-aws-ec2-metadata-token: TOKEN==");
    assert_true(give(reply_of(404, "no")));
    assert_int_equal(set.count, 0);
    the_rest_is_404();
    assert_int_equal(status.state, SOURCE_HEALTHY);
    assert_int_equal(status.last_ok_boot_ms, now);
    assert_int_equal(status.retry_boot_ms, now + 2000);
}

static void a_401_gets_one_new_token_and_one_header_of_it(void **state)
{
    (void)state;
    with_token();
    ask_spot();
    assert_false(give(reply_of(401, "")));
    assert_true(next());
    assert_string_equal(asked.method, "PUT");
    give(token_reply("NEW"));
    ask_spot();
    assert_string_equal(asked.headers[1], "X-aws-ec2-metadata-token: NEW");
    assert_string_equal(asked.headers[2], "");
    assert_false(give(reply_of(401, "")));
    assert_int_equal(run.paths[EC2_SPOT].state, SOURCE_DEGRADED);
    assert_next_in(800, 1200);
}

static void a_late_token_is_tried_without_once_and_401_then_means_out_of_reach(void **state)
{
    (void)state;
    assert_true(next());
    give(failure(HTTP_TIMEOUT, "timed out"));
    ask_spot();
    assert_string_equal(asked.headers[1], "");
    assert_false(give(reply_of(401, "")));
    assert_int_equal(status.state, SOURCE_ABSENT);
    assert_non_null(strstr(status.text, "token is required"));
    assert_false(next()); /* no spinning */
    assert_true(status.retry_boot_ms >= now + 480000 && status.retry_boot_ms <= now + 720000);
    now = status.retry_boot_ms;
    assert_true(next());
    assert_string_equal(asked.method, "PUT");
}

static void a_late_token_and_ec2s_answers_without_one_are_healthy(void **state)
{
    struct http_reply ec2s = reply_of(404, "");

    (void)state;
    ec2s.headers = "HTTP/1.0 404 Not Found\r\nServer: EC2ws\r\n";
    assert_true(next());
    give(failure(HTTP_TIMEOUT, "timed out"));
    ask_spot();
    assert_true(give(ec2s));
    the_rest_is_404();
    assert_int_equal(status.state, SOURCE_HEALTHY);
    assert_int_equal(status.last_ok_boot_ms, now);
}

/* A token that was given once can be given again: one slow answer must not blind it for minutes. */
static void a_token_that_was_given_once_is_asked_for_again_in_seconds(void **state)
{
    (void)state;
    with_token();
    the_rest_is_404();
    now += 2000;
    ask_spot();
    give(reply_of(401, "")); /* it is not good any more, and the new one comes late */
    assert_true(next());
    assert_string_equal(asked.method, "PUT");
    for (int i = 0; i < 8; i++) {
        give(failure(HTTP_TIMEOUT, "timed out"));
        while (next()) { /* without one it is not answered */
            assert_string_equal(asked.method, "GET");
            give(reply_of(401, ""));
        }
        assert_int_equal(status.state, SOURCE_DEGRADED);
        assert_in_range(status.retry_boot_ms, now + 800, now + 4800);
        assert_in_range(provider_wakeup_boot_ms(&run), now + 800, now + 4800);
        now = status.retry_boot_ms;
        assert_true(next());
        assert_string_equal(asked.method, "PUT");
    }
    give(token_reply("NEW"));
    ask_spot();
    assert_true(give(reply_of(404, "no")));
    the_rest_is_404();
    assert_int_equal(status.state, SOURCE_HEALTHY);
}

static void with_an_expired_token_it_is_not_healthy_and_does_not_spin(void **state)
{
    (void)state;
    with_token();
    the_rest_is_404();
    now += 21600 * INT64_C(1000);
    assert_true(next());
    assert_string_equal(asked.method, "PUT");
    give(failure(HTTP_REFUSED, "refused"));
    assert_false(next());
    provider_status(&run, &status);
    assert_int_equal(status.state, SOURCE_DEGRADED);
    assert_true(provider_wakeup_boot_ms(&run) >= now + 800);
    assert_int_equal(status.retry_boot_ms, provider_wakeup_boot_ms(&run));
}

/* Another cloud, a proxy, a sign-in page: no token, and nothing there. It is no healthy EC2, but is
 * asked on. */
static void without_a_token_404_alone_is_no_proof(void **state)
{
    (void)state;
    assert_true(next());
    give(reply_of(404, "")); /* the token */
    for (int i = 0; i < 3; i++) {
        ask_spot();
        assert_false(give(reply_of(404, "")));
        the_rest_is_404();
        assert_int_equal(status.state, SOURCE_DEGRADED);
        assert_non_null(strstr(status.text, "gives no token"));
        assert_int_equal(status.last_ok_boot_ms, -1);
        assert_next_in(1600, 2400);
        now = run.paths[EC2_SPOT].next_boot_ms;
    }
    ask_spot();
    assert_true(
        give(reply_of(200, "{\"action\":\"terminate\",\"time\":\"2020-04-24T17:13:44Z\"}")));
    assert_int_equal(run.paths[EC2_SPOT].state, SOURCE_HEALTHY);
}

static void where_nobody_answers_at_all_it_begins_with_the_token_again(void **state)
{
    (void)state;
    assert_true(next());
    give(failure(HTTP_TIMEOUT, "timed out"));
    ask_spot();
    assert_false(give(failure(HTTP_TIMEOUT, "timed out")));
    assert_int_equal(status.state, SOURCE_ABSENT);
    now = status.retry_boot_ms;
    assert_true(next());
    assert_string_equal(asked.method, "PUT"); /* it may require one, once it is there */
}

static void nobody_there_is_absent_and_is_tried_with_growing_delays(void **state)
{
    static const int64_t delays[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};

    (void)state;
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        int64_t left;

        assert_true(next());
        assert_string_equal(asked.method, "PUT");
        give(failure(HTTP_REFUSED, "refused"));
        assert_int_equal(status.state, SOURCE_ABSENT);
        left = status.retry_boot_ms - now;
        assert_true(left >= delays[i] * 8 / 10 && left <= delays[i] * 12 / 10);
        now = status.retry_boot_ms;
    }
    with_token();
    the_rest_is_404();
    assert_int_equal(status.state, SOURCE_HEALTHY);
}

static void busy_answers_back_off_and_withdraw_nothing(void **state)
{
    static const int codes[] = {410, 429, 500, 503, 418};

    (void)state;
    with_token();
    the_rest_is_404();
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        now = run.paths[EC2_SPOT].next_boot_ms;
        ask_spot();
        assert_false(give(reply_of(codes[i], "busy")));
        assert_int_equal(run.paths[EC2_SPOT].state, SOURCE_DEGRADED);
        assert_next_in((1000 << i) * 8 / 10, (1000 << i) * 12 / 10);
    }
}

static void while_an_end_is_announced_asking_goes_on_at_full_rate(void **state)
{
    (void)state;
    with_token();
    ask_spot();
    assert_true(give(reply_of(200, "{\"action\":\"stop\",\"time\":\"2020-04-24T17:13:44Z\"}")));
    for (int i = 0; i < 6; i++) {
        now = run.paths[EC2_SPOT].next_boot_ms;
        ask_spot();
        assert_false(give(failure(HTTP_BROKEN, "reset")));
        assert_next_in(800, 1200);
    }
}

static void a_403_thrice_is_absent_and_asked_rarely(void **state)
{
    (void)state;
    with_token();
    for (int i = 0; i < 3; i++) {
        ask_spot();
        assert_false(give(reply_of(403, "")));
        if (i < 2)
            assert_int_equal(run.paths[EC2_SPOT].state, SOURCE_DEGRADED);
        else
            assert_int_equal(run.paths[EC2_SPOT].state, SOURCE_ABSENT);
        if (i < 2)
            now = run.paths[EC2_SPOT].next_boot_ms;
    }
    assert_next_in(480000, 720000);
    the_rest_is_404();
    assert_int_equal(status.state, SOURCE_DEGRADED); /* a part of it is filtered */
}

static void another_clouds_server_gives_no_token_and_is_no_source(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(next());
        assert_string_equal(asked.method, "PUT");
        give(reply_of(200, "<html>hello</html>"));
        now = status.retry_boot_ms;
    }
    assert_int_equal(status.state, SOURCE_ABSENT);
    assert_non_null(strstr(status.text, "another service"));
}

static void garbage_is_degraded_at_the_same_pace(void **state)
{
    (void)state;
    with_token();
    ask_spot();
    assert_false(give(reply_of(200, "<html>")));
    assert_int_equal(status.state, SOURCE_DEGRADED);
    assert_next_in(2000, 2000);
}

static void a_token_is_renewed_before_it_ends_while_asking_goes_on(void **state)
{
    (void)state;
    with_token();
    the_rest_is_404();
    now += 21600 * 900LL;
    assert_true(next());
    assert_string_equal(asked.method, "PUT");
    assert_true(provider_next(&run, now, &asked, &slot)); /* the old one is good still */
    assert_string_equal(asked.method, "GET");
    assert_string_equal(asked.headers[1], "X-aws-ec2-metadata-token: TOKEN==");
}

static void the_services_clock_is_taken_where_ours_is_wrong(void **state)
{
    struct http_reply reply =
        reply_of(200, "{\"action\":\"terminate\",\"time\":\"2020-04-24T18:12:14Z\"}");

    (void)state;
    with_token();
    ask_spot();
    reply.headers = "HTTP/1.1 200 OK\r\nDate: Fri, 24 Apr 2020 18:11:44 GMT\r\n";
    assert_true(give(reply));
    assert_int_equal(set.items[0].deadline_boot_ms, now + 30000);
}

static void an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    assert_false(provider_init(&run, &provider_ec2, "https://169.254.169.254", 1, 0));
    assert_false(provider_init(&run, &provider_ec2, "169.254.169.254", 1, 0));
    assert_true(provider_init(&run, &provider_ec2, "http://127.0.0.1:1338/", 1, 0));
    assert_string_equal(run.endpoint, "http://127.0.0.1:1338");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spot_action_has_its_time),
        cmocka_unit_test(spot_actions_stop_and_hibernate),
        cmocka_unit_test(a_spot_time_that_passed_is_now_and_an_absurd_one_the_usual_lead),
        cmocka_unit_test(garbage_is_no_spot_action),
        cmocka_unit_test(scheduled_events_have_kinds_and_states),
        cmocka_unit_test(no_scheduled_events_and_garbage_for_them),
        cmocka_unit_test(the_scaling_group_terminates_at_an_unknown_time),
        cmocka_unit_test(a_rebalance_recommendation_is_no_end),
        cmocka_unit_test_setup(a_404_is_healthy_and_says_nothing_is_there, begin),
        cmocka_unit_test_setup(a_401_gets_one_new_token_and_one_header_of_it, begin),
        cmocka_unit_test_setup(a_late_token_is_tried_without_once_and_401_then_means_out_of_reach,
                               begin),
        cmocka_unit_test_setup(a_late_token_and_ec2s_answers_without_one_are_healthy, begin),
        cmocka_unit_test_setup(a_token_that_was_given_once_is_asked_for_again_in_seconds, begin),
        cmocka_unit_test_setup(with_an_expired_token_it_is_not_healthy_and_does_not_spin, begin),
        cmocka_unit_test_setup(without_a_token_404_alone_is_no_proof, begin),
        cmocka_unit_test_setup(where_nobody_answers_at_all_it_begins_with_the_token_again, begin),
        cmocka_unit_test_setup(nobody_there_is_absent_and_is_tried_with_growing_delays, begin),
        cmocka_unit_test_setup(busy_answers_back_off_and_withdraw_nothing, begin),
        cmocka_unit_test_setup(while_an_end_is_announced_asking_goes_on_at_full_rate, begin),
        cmocka_unit_test_setup(a_403_thrice_is_absent_and_asked_rarely, begin),
        cmocka_unit_test_setup(another_clouds_server_gives_no_token_and_is_no_source, begin),
        cmocka_unit_test_setup(garbage_is_degraded_at_the_same_pace, begin),
        cmocka_unit_test_setup(a_token_is_renewed_before_it_ends_while_asking_goes_on, begin),
        cmocka_unit_test_setup(the_services_clock_is_taken_where_ours_is_wrong, begin),
        cmocka_unit_test(an_address_that_is_none_is_refused),
    };

    return cmocka_run_group_tests_name("notice_ec2", tests, NULL, NULL);
}
