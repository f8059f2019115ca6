/* The page of all jobs, and the words of a stream about jobs. */
#define muster_client_jobs give_jobs
#include "tools/web/page_jobs.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/unit/tools/blank_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW 1700000100000

static struct web web;
static struct tool tool;
static char *text;
static size_t size;
static struct muster_job_row jobs[3];
static size_t jobs_count;
static const char *asked;

enum muster_status give_jobs(muster_client_t *client, const char *job, muster_rows_t **ret_rows,
                             struct muster_error *err)
{
    (void)client, (void)err;
    asked = job;
    *ret_rows = blank_rows("jobs", jobs_count);
    for (size_t i = 0; i < jobs_count; i++)
        BLANK(job, *ret_rows)[i] = jobs[i];
    return MUSTER_OK;
}

static struct muster_job_row job_of(const char *name, const char *state)
{
    return (struct muster_job_row){.job = name,
                                   .state = state,
                                   .state_unix_ms = NOW - 5000,
                                   .open_round_state = "",
                                   .open_round_cause = "",
                                   .layout = "",
                                   .checkpoint_dir = "",
                                   .newest_path = "",
                                   .error_text = "",
                                   .end_text = "",
                                   .plan = "",
                                   .error_rank = -1};
}

static int setup(void **state)
{
    (void)state;
    web = (struct web){.tool = &tool};
    tool = (struct tool){.now_unix_ms = NOW, .out = open_memstream(&text, &size)};
    jobs[0] = job_of("<b>a&b</b>", "running");
    jobs[1] = job_of("two", "joining");
    jobs[2] = job_of("three", "ended");
    jobs_count = 3;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fclose(tool.out);
    free(text);
    return 0;
}

static const char *made(web_make_fn *make, const struct web_request *request)
{
    fclose(tool.out);
    free(text);
    tool.out = open_memstream(&text, &size);
    assert_int_equal(make(&web, &tool, request), TOOL_DONE);
    fflush(tool.out);
    return text;
}

static void all_jobs_are_counted_and_no_name_is_markup(void **state)
{
    const struct web_request request = {.page = 1};
    const char *page = made(web_make_jobs, &request);

    (void)state;
    assert_null(asked);
    assert_non_null(strstr(page, "1 running, 1 on the way, 1 ended"));
    assert_null(strstr(page, "<b>a"));
    assert_non_null(strstr(page, "&lt;b&gt;a&amp;b&lt;/b&gt;"));
    assert_non_null(strstr(page, "href=\"/jobs/two\""));
}

static void a_plan_or_a_notice_is_told(void **state)
{
    const struct web_request request = {.page = 1};

    (void)state;
    jobs_count = 1;
    jobs[0].notices_active = 2;
    assert_non_null(strstr(made(web_make_jobs, &request), "2 notices"));
    jobs[0].freeze_unix_ms = NOW + 30000;
    assert_non_null(strstr(made(web_make_jobs, &request), "data-until=\"1700000130000\""));
}

static void without_a_job_it_tells_how_to_start_one(void **state)
{
    const struct web_request request = {.page = 1};

    (void)state;
    jobs_count = 0;
    assert_non_null(strstr(made(web_make_jobs, &request), "No job yet."));
}

static uint64_t version(void)
{
    const struct web_request request = {.job = "two"};
    const char *tick = made(web_make_tick, &request);

    assert_string_equal(asked, "two");
    assert_memory_equal(tick, "{\"version\":\"", 12);
    return strtoull(tick + 12, NULL, 16);
}

/* Steps alone do not: a page asks again when something has happened. */
static void a_tick_has_another_version_when_something_happened(void **state)
{
    uint64_t before;

    (void)state;
    jobs[0] = job_of("two", "running");
    jobs_count = 1;
    before = version();
    assert_non_null(strstr(text, "\"facts\":{\"step\":"));
    jobs[0].step += 5;
    assert_true(version() == before);
    jobs[0].seq++;
    assert_true(version() != before);
    before = version();
    jobs[0].state = "ending";
    assert_true(version() != before);
}

static void it_is_ready_when_the_broker_answers(void **state)
{
    const struct web_request request = {.page = 1};

    (void)state;
    assert_memory_equal(made(web_make_ready, &request), "ok\n", 3);
    assert_string_equal(asked, "-"); /* a name that no job has */
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(all_jobs_are_counted_and_no_name_is_markup),
        T(a_plan_or_a_notice_is_told),
        T(without_a_job_it_tells_how_to_start_one),
        T(a_tick_has_another_version_when_something_happened),
        T(it_is_ready_when_the_broker_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
