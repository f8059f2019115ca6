/* What a page hears while it is open: each news once, a failure once, and that it is not alone. */
#define web_ask give_answer
#include "tools/web/stream.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct web web;
static struct stream stream;
static struct web_answer tick, heat;

struct web_answer *give_answer(struct web *of, const char *key, web_make_fn *make,
                               const struct web_request *request)
{
    (void)of, (void)make, (void)request;
    struct web_answer *answer = strncmp(key, "stream heat ", 12) == 0 ? &heat : &tick;

    answer->references = 2; /* it outlives its release */
    return answer;
}

static int setup(void **state)
{
    (void)state;
    web = (struct web){.stopping = false};
    stream = (struct stream){.web = &web, .fd = -1, .told_ms = INT64_MAX / 2};
    tick = (struct web_answer){.body = (char *)"{\"version\":1}", .hash = 11, .made_ms = 5};
    heat = (struct web_answer){.body = (char *)"{\"states\":\"t\"}", .hash = 21, .made_ms = 6};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(stream.pending);
    return 0;
}

static void is_told(const char *expected)
{
    assert_true(stream_fill(&stream));
    assert_string_equal(stream.pending, expected);
    assert_int_equal(stream.size, strlen(expected));
}

static void what_is_new_is_told_once(void **state)
{
    (void)state;
    is_told("event: tick\nid: 5\ndata: {\"version\":1}\n\n");
    stream.told_ms = INT64_MAX / 2;
    is_told("");
    tick.hash = 12;
    is_told("event: tick\nid: 5\ndata: {\"version\":1}\n\n");
}

static void a_page_of_one_job_hears_of_its_ranks(void **state)
{
    (void)state;
    snprintf(stream.request.job, sizeof stream.request.job, "train");
    is_told("event: tick\nid: 5\ndata: {\"version\":1}\n\n"
            "event: heat\nid: 6\ndata: {\"states\":\"t\"}\n\n");
}

static void trouble_is_told_once_and_what_was_there_again_behind_it(void **state)
{
    (void)state;
    is_told("event: tick\nid: 5\ndata: {\"version\":1}\n\n");
    tick.code = TOOL_UNREACHABLE;
    tick.body = (char *)"no broker\nanswers";
    assert_true(stream_fill(&stream));
    assert_non_null(strstr(stream.pending, "event: trouble\n"));
    assert_non_null(strstr(stream.pending, "data: no broker answers\n\n")); /* one line */
    stream.told_ms = INT64_MAX / 2;
    is_told("");
    tick = (struct web_answer){.body = (char *)"{\"version\":1}", .hash = 11, .made_ms = 5};
    is_told("event: tick\nid: 5\ndata: {\"version\":1}\n\n");
}

static void a_page_that_hears_nothing_new_hears_that(void **state)
{
    (void)state;
    assert_true(stream_fill(&stream));
    stream.told_ms -= WEB_STREAM_ALIVE_MS;
    is_told(": still here\n\n");
    is_told("");
}

static void a_message_is_read_in_parts_and_the_end_is_told(void **state)
{
    char part[8] = "";

    (void)state;
    assert_int_equal(stream_read(&stream, 0, part, 7), 7);
    assert_string_equal(part, "event: ");
    assert_int_equal(stream_read(&stream, 7, part, 5), 5);
    assert_memory_equal(part, "tick\n", 5);
    stream.at = stream.size;
    web.stopping = true;
    assert_int_equal(stream_read(&stream, 12, part, 5), MHD_CONTENT_READER_END_OF_STREAM);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_new_is_told_once),
        T(a_page_of_one_job_hears_of_its_ranks),
        T(trouble_is_told_once_and_what_was_there_again_behind_it),
        T(a_page_that_hears_nothing_new_hears_that),
        T(a_message_is_read_in_parts_and_the_end_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
