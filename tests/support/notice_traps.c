/* notice_traps - see notice_traps.h. */
#include "tests/support/notice_traps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LIMIT_MS NOTICE_LIMIT_MS
#define BACKOFF_MOST_MS (PROVIDER_BACKOFF_MAX_MS * 12 / 10 / NOTICE_PACE)
#define RARELY_PACE 10 /* so that it is more than a busy machine may take */
#define RARELY_LEAST_MS (PROVIDER_RARELY_MS * 8 / 10 / RARELY_PACE)
#define RARELY_MOST_MS (PROVIDER_RARELY_MS * 12 / 10 / RARELY_PACE)
#define IN_S 100 /* a time that stays ahead of a slow test */

void notice_service_open(struct notice_fixture *f, const struct notice_service *service)
{
    notice_fixture_open(f, service->name);
    f->service = service;
    f->pace.waits = NOTICE_PACE;
    service->ready(f);
    notice_says_nothing(f);
}

static struct http_script completed(struct notice_fixture *f, struct http_script script)
{
    if (script.headers == NULL)
        script.headers = f->service->headers;
    return script;
}

void notice_answers(struct notice_fixture *f, struct http_script script)
{
    http_server_replace(f->server, "GET", f->service->path, completed(f, script));
}

void notice_then_answers(struct notice_fixture *f, struct http_script script)
{
    http_server_on(f->server, "GET", f->service->path, completed(f, script));
}

void notice_announces(struct notice_fixture *f, int64_t in_s)
{
    notice_answers(f, (struct http_script){.body = f->service->announcement(in_s)});
}

static struct http_script nothing(const struct notice_fixture *f)
{
    return f->service->nothing != NULL ? (struct http_script){.body = f->service->nothing}
                                       : (struct http_script){.status = 404, .body = "no"};
}

void notice_says_nothing(struct notice_fixture *f)
{
    notice_answers(f, nothing(f));
}

void notice_assert_left(const struct notice_record *record, int64_t least_ms, int64_t most_ms)
{
    int64_t left = record->item.deadline_boot_ms - notice_clocks().boot_ms;

    if (record->item.deadline_boot_ms < 0 || left < least_ms || left > most_ms)
        fail_msg("%lld ms are left", (long long)left);
}

void notice_assert_retry(const struct source_status *status, int64_t least_ms, int64_t most_ms)
{
    int64_t in = status->retry_boot_ms - notice_clocks().boot_ms;

    if (in < least_ms || in > most_ms)
        fail_msg("the next try is in %lld ms", (long long)in);
}

static void watch(struct notice_fixture *f)
{
    notice_fixture_watch(f, f->service->name);
}

static struct source_status state_is(struct notice_fixture *f, enum source_state state,
                                     const char *text)
{
    return notice_state(f, f->service->name, state, text, LIMIT_MS);
}

static void asked_again(struct notice_fixture *f, size_t times)
{
    size_t hits = http_server_hits(f->server, f->service->path);

    assert_true(http_server_await(f->server, f->service->path, hits + times, LIMIT_MS));
}

/* The announcement comes through, whatever was before. */
static void is_told(struct notice_fixture *f)
{
    struct notice_record record = notice_await(f, LIMIT_MS);

    assert_string_equal(record.source, f->service->name);
    assert_int_equal(record.item.kind, f->service->kind);
    assert_false(record.withdrawn);
    assert_true(record.number > 0);
    assert_int_equal(record.item.cancellable, f->service->cancellable);
    assert_true(record.item.deadline_boot_ms >= 0);
    assert_string_not_equal(record.item.text, "");
    if (f->service->timed)
        notice_assert_left(&record, IN_S * 1000 - 2 * LIMIT_MS, IN_S * 1000);
}

/* While the paths that are asked often are being asked, the next try is that of one that is asked
 * rarely. */
static struct source_status await_next_try(struct notice_fixture *f, int64_t most_ms)
{
    const struct timespec nap = {.tv_nsec = 5000000};
    int64_t end_ms = notice_clocks().boot_ms + LIMIT_MS;
    struct source_status status;

    do {
        status = state_is(f, SOURCE_HEALTHY, "");
        if (status.retry_boot_ms - notice_clocks().boot_ms <= most_ms)
            break;
        nanosleep(&nap, NULL);
    } while (notice_clocks().boot_ms < end_ms);
    return status;
}

void nothing_announced_is_healthy(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    watch(f);
    status = await_next_try(f, 1000);
    assert_true(status.last_ok_boot_ms > 0);
    if (status.retry_boot_ms >= 0) /* else it is being asked */
        notice_assert_retry(&status, -LIMIT_MS, 1000);
    asked_again(f, 3);
    state_is(f, SOURCE_HEALTHY, "");
    notice_none(f);
}

void an_end_is_told_once(void **state)
{
    struct notice_fixture *f = *state;

    notice_announces(f, IN_S);
    watch(f);
    is_told(f);
    asked_again(f, 3);
    state_is(f, SOURCE_HEALTHY, "");
    notice_none(f);
}

void http_1_0_without_length_is_read(void **state)
{
    struct notice_fixture *f = *state;

    notice_answers(f, (struct http_script){.body = f->service->announcement(IN_S),
                                           .http_1_0 = true,
                                           .no_length = true});
    watch(f);
    is_told(f);
    state_is(f, SOURCE_HEALTHY, "");
}

/* It answers so for ever: said, tried again, no notice; then it announces, and that is told. */
static void busy(struct notice_fixture *f, int code)
{
    struct source_status status;
    char text[16];

    snprintf(text, sizeof text, "%d", code);
    notice_answers(f, (struct http_script){.status = code, .body = "busy", .headers = ""});
    watch(f);
    status = state_is(f, SOURCE_DEGRADED, text);
    notice_assert_retry(&status, -LIMIT_MS, BACKOFF_MOST_MS);
    asked_again(f, 2);
    notice_none(f);
    notice_announces(f, IN_S);
    is_told(f);
    state_is(f, SOURCE_HEALTHY, "");
}

void a_503_is_retried(void **state)
{
    busy(*state, 503);
}

void a_500_is_retried(void **state)
{
    busy(*state, 500);
}

void a_429_is_retried(void **state)
{
    busy(*state, 429);
}

void a_410_is_retried(void **state)
{
    busy(*state, 410);
}

void a_403_is_asked_rarely_where_it_never_worked(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;
    int64_t until;

    f->pace.waits = RARELY_PACE;
    notice_answers(f, (struct http_script){.status = 403});
    watch(f);
    assert_true(http_server_await(f->server, f->service->path, PROVIDER_DENIED_MAX, LIMIT_MS));
    until = notice_clocks().boot_ms + LIMIT_MS;
    do { /* the answer to the last one may be on its way */
        poll(NULL, 0, 10);
        status = state_is(f, SOURCE_DEGRADED, "403"); /* other paths answer: a part is filtered */
    } while (status.retry_boot_ms < notice_clocks().boot_ms + 10000 &&
             notice_clocks().boot_ms < until);
    notice_assert_retry(&status, RARELY_LEAST_MS - LIMIT_MS, RARELY_MOST_MS);
    assert_int_equal(http_server_hits(f->server, f->service->path), PROVIDER_DENIED_MAX);
    notice_none(f);
}

void a_403_is_retried_soon_where_it_has_worked(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    watch(f);
    state_is(f, SOURCE_HEALTHY, "");
    notice_answers(f, (struct http_script){.status = 403});
    asked_again(f, PROVIDER_DENIED_MAX + 2);
    status = state_is(f, SOURCE_DEGRADED, "403");
    notice_assert_retry(&status, -LIMIT_MS, BACKOFF_MOST_MS);
    notice_announces(f, IN_S);
    is_told(f);
    state_is(f, SOURCE_HEALTHY, "");
}

void a_redirect_is_not_followed(void **state)
{
    struct notice_fixture *f = *state;

    http_server_on(f->server, "GET", "/elsewhere",
                   (struct http_script){.body = f->service->announcement(IN_S)});
    notice_answers(f, (struct http_script){.status = 302, .headers = "Location: /elsewhere\r\n"});
    watch(f);
    state_is(f, SOURCE_DEGRADED, "302");
    asked_again(f, 1);
    assert_int_equal(http_server_hits(f->server, "/elsewhere"), 0);
    notice_none(f);
}

/* It works, does this once, and announces at the next try. */
static void transport(struct notice_fixture *f, struct http_script script)
{
    struct http_script first = nothing(f);

    first.times = 1;
    script.times = 1;
    notice_answers(f, first);
    notice_then_answers(f, script);
    notice_then_answers(f, (struct http_script){.body = f->service->announcement(IN_S)});
    watch(f);
    is_told(f);
    assert_true(http_server_hits(f->server, f->service->path) >= 3);
    state_is(f, SOURCE_HEALTHY, "");
    notice_none(f);
}

void a_reset_is_retried(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_RESET});
}

void a_hang_ends_by_the_timeout(void **state)
{
    struct notice_fixture *f = *state;

    f->pace.timeouts = 4;
    transport(f, (struct http_script){.way = HTTP_WAY_HANG});
}

void a_silent_close_is_retried(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_CLOSE});
}

void what_is_no_http_is_retried(void **state)
{
    transport(*state, (struct http_script){.way = HTTP_WAY_GARBAGE, .body = "\x16\x03\x01 tls?"});
}

void half_a_body_is_no_notice(void **state)
{
    struct notice_fixture *f = *state;

    f->pace.timeouts = 4;
    transport(f, (struct http_script){.way = HTTP_WAY_PART,
                                      .body = f->service->announcement(IN_S + 1000)});
}

void slow_bytes_beyond_the_timeout_are_no_notice(void **state)
{
    struct notice_fixture *f = *state;

    f->pace.timeouts = 4;
    transport(f,
              (struct http_script){.slow_ms = 1000, .body = f->service->announcement(IN_S + 1000)});
}

void slow_bytes_within_it_are_read(void **state)
{
    struct notice_fixture *f = *state;

    notice_answers(f, (struct http_script){.body = f->service->announcement(IN_S), .slow_ms = 2});
    watch(f);
    is_told(f);
}

void a_body_beyond_the_cap_is_not_read(void **state)
{
    struct notice_fixture *f = *state;
    char *body = malloc(100001);

    assert_non_null(body);
    memset(body, ' ', 100000);
    body[100000] = '\0';
    notice_answers(f, (struct http_script){.body = body});
    free(body);
    watch(f);
    state_is(f, SOURCE_DEGRADED, "");
    asked_again(f, 1);
    notice_none(f);
}

void garbage_is_degraded_and_withdraws_nothing(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    notice_announces(f, IN_S);
    watch(f);
    is_told(f);
    notice_answers(f, (struct http_script){.body = "<html>welcome</html>"});
    state_is(f, SOURCE_DEGRADED, "");
    asked_again(f, 3);
    notice_none(f);
    notice_says_nothing(f);
    if (f->service->cancellable) {
        record = notice_await(f, LIMIT_MS);
        assert_true(record.withdrawn);
        assert_int_equal(record.item.kind, f->service->kind);
    }
    state_is(f, SOURCE_HEALTHY, "");
    notice_none(f);
}

void nobody_there_is_absent_and_found_when_it_comes(void **state)
{
    struct notice_fixture *f = *state;
    struct source_status status;

    http_server_pause(f->server);
    watch(f);
    status = state_is(f, SOURCE_ABSENT, "");
    notice_assert_retry(&status, -LIMIT_MS, BACKOFF_MOST_MS);
    assert_int_equal(status.last_ok_boot_ms, -1);
    http_server_resume(f->server);
    f->service->ready(f);
    notice_announces(f, IN_S);
    is_told(f);
    state_is(f, SOURCE_HEALTHY, "");
}

void a_time_that_moves_later_keeps_the_first(void **state)
{
    struct notice_fixture *f = *state;

    notice_announces(f, IN_S);
    watch(f);
    is_told(f);
    for (int i = 1; i < 3; i++) {
        notice_announces(f, IN_S + 60 * i);
        asked_again(f, 2);
    }
    notice_none(f);
}

void a_time_that_moves_nearer_is_told_again(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    notice_announces(f, IN_S);
    watch(f);
    is_told(f);
    notice_announces(f, 40);
    record = notice_await(f, LIMIT_MS);
    assert_false(record.withdrawn);
    notice_assert_left(&record, 40000 - LIMIT_MS, 40000);
}

void a_time_that_passed_is_now(void **state)
{
    struct notice_fixture *f = *state;
    struct notice_record record;

    notice_announces(f, -600);
    watch(f);
    record = notice_await(f, LIMIT_MS);
    assert_int_equal(record.item.kind, f->service->kind);
    notice_assert_left(&record, -LIMIT_MS, 0);
}
