/* What metrics count: each round, checkpoint and launch once, when it has ended. */
#define muster_client_rounds give_rounds
#define muster_client_checkpoints give_checkpoints
#define muster_client_generations give_launches
#include "tools/web/history.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/unit/tools/blank_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

static struct web web;
static struct tool tool;
static struct muster_job_row job;

/* The broker's records, in the order of their numbers. */
static struct muster_round_row rounds[8];
static struct muster_checkpoint_row checkpoints[8];
static struct muster_generation_row launches[8];
static size_t rounds_count, checkpoints_count, launches_count;
static bool broken;

static enum muster_status give(const char *query, size_t count, size_t row_size, int64_t after,
                               const void *from, muster_rows_t **ret_rows)
{
    size_t skipped = (size_t)after < count ? (size_t)after : count;

    *ret_rows = blank_rows(query, count - skipped);
    if (count > skipped) {
        void *rows = strcmp(query, "rounds") == 0        ? (void *)BLANK(round, *ret_rows)
                     : strcmp(query, "checkpoints") == 0 ? (void *)BLANK(checkpoint, *ret_rows)
                                                         : (void *)BLANK(generation, *ret_rows);

        memcpy(rows, (const char *)from + skipped * row_size, (count - skipped) * row_size);
    }
    return MUSTER_OK;
}

enum muster_status give_rounds(muster_client_t *client, const char *name, int64_t after,
                               muster_rows_t **ret_rows, struct muster_error *err)
{
    (void)client;
    assert_string_equal(name, "train");
    if (broken) {
        *ret_rows = NULL;
        return err->status = MUSTER_E_BROKER;
    }
    return give("rounds", rounds_count, sizeof *rounds, after, rounds, ret_rows);
}

enum muster_status give_checkpoints(muster_client_t *client, const char *name, int64_t after,
                                    muster_rows_t **ret_rows, struct muster_error *err)
{
    (void)client, (void)name, (void)err;
    return give("checkpoints", checkpoints_count, sizeof *checkpoints, after, checkpoints,
                ret_rows);
}

enum muster_status give_launches(muster_client_t *client, const char *name, int64_t after,
                                 muster_rows_t **ret_rows, struct muster_error *err)
{
    (void)client, (void)name, (void)err;
    return give("generations", launches_count, sizeof *launches, after, launches, ret_rows);
}

static int setup(void **state)
{
    (void)state;
    web = (struct web){.tool = &tool};
    job = (struct muster_job_row){.job = "train", .created_unix_ms = 77};
    rounds_count = checkpoints_count = launches_count = 0;
    broken = false;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    web_history_free(&web);
    assert_null(web.history);
    return 0;
}

static void round_is(const char *outcome)
{
    rounds[rounds_count] = (struct muster_round_row){.round = (int64_t)rounds_count + 1,
                                                     .cause = "termination",
                                                     .state = outcome,
                                                     .opened_unix_ms = 1000,
                                                     .decided_unix_ms = 1020,
                                                     .captured_unix_ms = 2020,
                                                     .ended_unix_ms = 4020};
    rounds_count++;
}

static void a_round_counts_once_and_when_it_has_ended(void **state)
{
    struct web_job_history *history;

    (void)state;
    round_is("committed");
    round_is("aborted");
    round_is("writing");
    round_is("committed"); /* behind one that has not ended: its time comes */
    for (int i = 0; i < 2; i++) {
        history = web_history_of(&web, &tool, &job);
        assert_int_equal(history->outcomes[0][0], 1);
        assert_int_equal(history->outcomes[0][1], 1);
        assert_int_equal(history->last_round, 2);
    }
    rounds[2].state = "unchanged";
    history = web_history_of(&web, &tool, &job);
    assert_int_equal(history->outcomes[0][0], 2);
    assert_int_equal(history->outcomes[0][2], 1);
}

static void a_phase_is_in_each_bucket_that_is_long_enough(void **state)
{
    struct web_job_history *history;

    (void)state;
    round_is("committed");
    round_is("aborted"); /* nothing was written to its end */
    history = web_history_of(&web, &tool, &job);
    assert_int_equal(history->phases[PHASE_FREEZE].count, 2); /* of 0.02 s each */
    assert_int_equal(history->phases[PHASE_FREEZE].buckets[0], 0);
    assert_int_equal(history->phases[PHASE_FREEZE].buckets[1], 2);
    assert_int_equal(history->phases[PHASE_WRITE].count, 1); /* of 2 s */
    assert_true(history->phases[PHASE_WRITE].sum_s == 2);
    assert_int_equal(history->phases[PHASE_WRITE].buckets[4], 0);
    assert_int_equal(history->phases[PHASE_WRITE].buckets[5], 1);
}

static void bytes_are_those_of_committed_checkpoints(void **state)
{
    (void)state;
    checkpoints[0] = (struct muster_checkpoint_row){
        .checkpoint = 1, .state = "committed", .committed_unix_ms = 9, .bytes = 100};
    checkpoints[1] =
        (struct muster_checkpoint_row){.checkpoint = 2, .state = "failed", .bytes = 30};
    checkpoints[2] =
        (struct muster_checkpoint_row){.checkpoint = 3, .state = "writing", .bytes = 5};
    checkpoints_count = 3;
    web_history_of(&web, &tool, &job);
    assert_int_equal(web_history_of(&web, &tool, &job)->bytes, 100);
}

static void a_launch_counts_by_how_it_ended(void **state)
{
    struct web_job_history *history;

    (void)state;
    launches[0] = (struct muster_generation_row){
        .generation = 1, .state = "ended", .end_status = MUSTER_PREEMPTED};
    launches[1] = (struct muster_generation_row){
        .generation = 2, .state = "ended", .end_status = MUSTER_E_STEP, .error_rank = 3};
    launches[2] = (struct muster_generation_row){.generation = 3,
                                                 .state = "ended",
                                                 .end_status = MUSTER_E_PEER,
                                                 .error_rank = -1,
                                                 .unknown_ranks = 1};
    launches[3] = (struct muster_generation_row){.generation = 4, .state = "running"};
    launches_count = 4;
    web_history_of(&web, &tool, &job);
    history = web_history_of(&web, &tool, &job);
    assert_int_equal(history->ends[0], 0);
    assert_string_equal(web_end_words[1], "preempted");
    assert_int_equal(history->ends[1], 1);
    assert_string_equal(web_end_words[4], "error");
    assert_int_equal(history->ends[4], 1);
    assert_string_equal(web_end_words[3], "lost");
    assert_int_equal(history->ends[3], 1);
}

static void a_job_that_was_forgotten_and_made_again_counts_from_nothing(void **state)
{
    (void)state;
    round_is("committed");
    web_history_of(&web, &tool, &job);
    rounds_count = 0;
    job.created_unix_ms++;
    assert_int_equal(web_history_of(&web, &tool, &job)->outcomes[0][0], 0);
}

static void a_question_that_failed_counts_nothing_twice(void **state)
{
    char said[256] = "";

    (void)state;
    round_is("committed");
    web_history_of(&web, &tool, &job);
    broken = true;
    tool_hear(said, sizeof said);
    assert_null(web_history_of(&web, &tool, &job));
    tool_hear(NULL, 0);
    assert_int_equal(web.history_failed, TOOL_UNREACHABLE);
    broken = false;
    assert_int_equal(web_history_of(&web, &tool, &job)->outcomes[0][0], 1);
    assert_int_equal(web.history_failed, TOOL_DONE);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_round_counts_once_and_when_it_has_ended),
        T(a_phase_is_in_each_bucket_that_is_long_enough),
        T(bytes_are_those_of_committed_checkpoints),
        T(a_launch_counts_by_how_it_ended),
        T(a_job_that_was_forgotten_and_made_again_counts_from_nothing),
        T(a_question_that_failed_counts_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
