/* `muster top` without a terminal: the order of its list, the job that it follows, its rate, its
 * keys. */
#include "tools/live/top.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/unit/tools/blank_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct tool tool;
static struct top top;

/* Three jobs: the first has the newest checkpoint, the second the most steps, the third changed
 * last. */
static int setup(void **state)
{
    static const struct muster_job_row values[] = {
        {.job = "a", .state = "running", .step = 5, .newest_unix_ms = 300, .state_unix_ms = 10},
        {.job = "b", .state = "running", .step = 90, .newest_unix_ms = 100, .state_unix_ms = 20},
        {.job = "c", .state = "running", .step = 40, .newest_unix_ms = 200, .state_unix_ms = 30}};

    (void)state;
    top = (struct top){.tool = &tool, .rate = -1, .last_step = -1};
    top.jobs = blank_rows("jobs", 3);
    for (size_t i = 0; i < 3; i++) {
        struct muster_job_row *row = &BLANK(job, top.jobs)[i];

        row->job = values[i].job;
        row->state = values[i].state;
        row->step = values[i].step;
        row->newest_unix_ms = values[i].newest_unix_ms;
        row->state_unix_ms = values[i].state_unix_ms;
    }
    return top_order_jobs(&top);
}

static int teardown(void **state)
{
    (void)state;
    top_forget(&top);
    muster_rows_destroy(&top.jobs);
    free(top.ordered);
    return 0;
}

static void assert_order(const char *expected)
{
    char shown[4] = "";

    for (size_t i = 0; i < 3; i++)
        shown[i] = top.ordered[i]->job[0];
    assert_string_equal(shown, expected);
}

static void the_key_s_sorts_by_step_then_by_checkpoint_then_as_before(void **state)
{
    (void)state;
    assert_order("abc");
    assert_false(top_take_key(&top, 's'));
    assert_order("bca");
    top_take_key(&top, 's');
    assert_order("acb");
    top_take_key(&top, 's');
    assert_order("abc");
}

static void enter_opens_the_chosen_job_and_escape_leaves_it(void **state)
{
    (void)state;
    top_take_key(&top, SCREEN_UP); /* there is nothing above the first */
    assert_int_equal(top.chosen, 0);
    top_take_key(&top, SCREEN_PAGE_DOWN); /* nor below the last */
    assert_int_equal(top.chosen, 2);
    assert_true(top_take_key(&top, SCREEN_ENTER)); /* the broker is asked about it */
    assert_string_equal(top.job, "c");
    assert_string_equal(top_job(&top)->job, "c");
    top_take_key(&top, SCREEN_ESCAPE);
    assert_string_equal(top.job, "");
    assert_null(top_job(&top));
}

static void a_job_that_was_named_is_never_left(void **state)
{
    (void)state;
    snprintf(top.named, sizeof top.named, "b");
    top_open_job(&top, "b");
    top_take_key(&top, SCREEN_ESCAPE);
    assert_string_equal(top.job, "b");
    assert_false(top_take_key(&top, 'f'));
    assert_false(top.follow);
}

static void the_job_that_changed_last_is_followed(void **state)
{
    (void)state;
    assert_true(top_take_key(&top, 'f'));
    top_follow(&top);
    assert_string_equal(top.job, "c");
    BLANK(job, top.jobs)[0].state_unix_ms = 40;
    top_follow(&top);
    assert_string_equal(top.job, "a");
}

static void a_rate_needs_two_answers_of_one_job(void **state)
{
    struct muster_job_row job = {.step = 100};

    (void)state;
    top.asked_unix_ms = 50000;
    top_measure(&top, &job);
    assert_true(top.rate < 0);
    job.step = 106;
    top.asked_unix_ms += 2000;
    top_measure(&top, &job);
    assert_true(top.rate == 3);
    job.step = 80; /* it was started again from a checkpoint */
    top.asked_unix_ms += 2000;
    top_measure(&top, &job);
    assert_true(top.rate < 0);
    top_open_job(&top, "b");
    top_measure(&top, &job);
    assert_true(top.rate < 0);
}

static void any_key_closes_the_help_and_does_nothing_else(void **state)
{
    (void)state;
    top_take_key(&top, '?');
    assert_true(top.help);
    assert_false(top_take_key(&top, 'p'));
    assert_false(top.help);
    assert_false(top.paused);
    top_take_key(&top, 'p');
    assert_true(top.paused);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_key_s_sorts_by_step_then_by_checkpoint_then_as_before),
        T(enter_opens_the_chosen_job_and_escape_leaves_it),
        T(a_job_that_was_named_is_never_left),
        T(the_job_that_changed_last_is_followed),
        T(a_rate_needs_two_answers_of_one_job),
        T(any_key_closes_the_help_and_does_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
