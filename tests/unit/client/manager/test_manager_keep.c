/* What a manager tells of its checkpoints, and what it keeps of them, alone. */
#include "tests/unit/client/manager/manager_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct muster_keep_policy keep[3];

/* Keeps by these rules, and saves every `interval` steps. */
static void policies(size_t count, int64_t interval)
{
    managed.policies.keep = keep;
    managed.policies.keep_count = count;
    managed.save.number = interval;
}

/* Trains so many steps in two lives, and asks a reader afterwards. */
static void keeps(int64_t steps, const char *expected)
{
    managed_begin();
    for (int64_t step = 0; step < steps / 2; step++)
        managed_save(step);
    managed_close();
    for (int64_t step = managed_begin() + 1; step < steps; step++)
        managed_save(step);
    managed_close();
    managed_open_reader();
    assert_string_equal(managed_steps(), expected);
}

static void keep_2_over_5_saves(void **state)
{
    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 2};
    policies(1, 1);
    keeps(5, "3 4");
    assert_false(scratch_exists(scratch_path(managed.directory, "2")));
    assert_int_equal(scratch_count(managed.directory), 3); /* 3, 4, .muster */
}

static int fails_after_0(const struct muster_save_context *context)
{
    FILE *file;

    if (context->step > 1)
        return 5;
    file = fopen(scratch_path(context->directory, "value"), "w");
    return file != NULL && fputs("x", file) >= 0 && fclose(file) == 0 ? 0 : 6;
}

static int restores_anything(const struct muster_restore_context *context)
{
    (void)context;
    return 0;
}

/* Close gives up the newest where no rule wants it: not if a newer save was to be made and failed.
 */
static void the_newest_stays_for_who_comes_after_a_failed_save(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;

    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 0};
    policies(1, 1);
    managed.node.state = NULL;
    managed.node.termination.save_fn = fails_after_0;
    managed.node.termination.restore_fn = restores_anything;
    managed_begin();
    assert_true(managed_save(0));
    assert_int_equal(muster_manager_save(managed.manager, 1, &request, NULL, NULL), MUSTER_E_SAVE);
    managed_close();
    managed_open_reader();
    assert_string_equal(managed_steps(), "0");
}

static int fails_once(const struct muster_save_context *context)
{
    static bool failed;
    struct muster_save_context other = *context;

    if (context->step > 1 && !failed) {
        failed = true;
        return 5;
    }
    other.step = 1;
    return fails_after_0(&other);
}

static void it_goes_where_the_failed_save_was_made_good(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;

    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 0};
    policies(1, 1);
    managed.node.state = NULL;
    managed.node.termination.save_fn = fails_once;
    managed.node.termination.restore_fn = restores_anything;
    managed_begin();
    assert_true(managed_save(0));
    assert_int_equal(muster_manager_save(managed.manager, 1, &request, NULL, NULL), MUSTER_E_SAVE);
    request.force = true; /* the same step once more */
    assert_int_equal(muster_manager_save(managed.manager, 1, &request, NULL, NULL), MUSTER_OK);
    managed_close();
    managed_open_reader();
    assert_string_equal(managed_steps(), "");
}

static void the_newest_stays_where_a_finalizer_closes(void **state)
{
    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 0};
    policies(1, 1);
    managed_begin();
    assert_true(managed_save(0));
    muster_manager_keep_newest(managed.manager);
    muster_manager_keep_newest(NULL);
    managed_close();
    managed_open_reader();
    assert_string_equal(managed_steps(), "0");
}

static void keep_2_and_every_4_with_interval_2_over_12_steps(void **state)
{
    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 2};
    keep[1] = (struct muster_keep_policy){.kind = MUSTER_KEEP_EVERY_STEPS, .number = 4};
    policies(2, 2);
    keeps(12, "0 4 8 10");
}

static void every_3_counted_from_the_last_kept(void **state)
{
    static const int64_t steps[] = {0, 1, 2, 4, 5, 8, 9, 13, 14, 25};

    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_EVERY_STEPS_NEAR, .number = 3};
    policies(1, 1);
    managed.save = (struct muster_save_policy){
        .kind = MUSTER_SAVE_STEPS, .steps = steps, .steps_count = sizeof steps / sizeof *steps};
    keeps(26, "0 4 8 13 25");
}

static void the_newest_so_many_of_every_3(void **state)
{
    (void)state;
    keep[0] =
        (struct muster_keep_policy){.kind = MUSTER_KEEP_EVERY_STEPS, .number = 3, .max_to_keep = 2};
    policies(1, 1);
    keeps(11, "6 9");
}

static void the_nearest_to_each_10_of_uneven_saves(void **state)
{
    static const int64_t steps[] = {3, 8, 12, 15, 19, 21, 26, 32, 36};

    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_EVERY_STEPS_CLOSEST, .number = 10};
    policies(1, 1);
    managed.save = (struct muster_save_policy){
        .kind = MUSTER_SAVE_STEPS, .steps = steps, .steps_count = sizeof steps / sizeof *steps};
    keeps(37, "3 12 21 32 36");
}

static void given_steps_are_kept(void **state)
{
    static const int64_t steps[] = {1, 3};

    (void)state;
    keep[0] =
        (struct muster_keep_policy){.kind = MUSTER_KEEP_STEPS, .steps = steps, .steps_count = 2};
    policies(1, 1);
    keeps(6, "1 3");
}

static void keep_0_gives_the_newest_up_at_the_close(void **state)
{
    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 0};
    policies(1, 1);
    managed_begin();
    for (int64_t step = 0; step < 4; step++) {
        char expected[8] = {(char)('0' + step)};

        managed_save(step);
        assert_string_equal(managed_steps(), expected); /* it goes once a newer one is there */
    }
    managed_close();
    managed_open_reader();
    assert_string_equal(managed_steps(), "");
}

static void a_preempted_job_keeps_what_it_resumes_from(void **state)
{
    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 0};
    policies(1, 1);
    managed_begin();
    managed_save(0);
    assert_int_equal(
        muster_node_notify(muster_manager_node(managed.manager), MUSTER_NOTICE_USER, -1, "x"),
        MUSTER_OK);
    assert_int_equal(muster_manager_save(managed.manager, 1, NULL, NULL, NULL), MUSTER_PREEMPTED);
    assert_int_equal(muster_manager_close(&managed.manager, 0, NULL), MUSTER_PREEMPTED);
    assert_int_equal(managed_begin(), 1);
}

static void what_goes_can_be_moved_to_a_trash_folder(void **state)
{
    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 1};
    policies(1, 1);
    managed.policies.trash = "old";
    keeps(3, "2");
    assert_int_equal(scratch_count(scratch_path(managed.directory, "old")), 2);
}

/* A training that stops at each error stopped, for a checkpoint that is on disk (R12.8). */
static void a_deletion_that_fails_is_not_the_saves_failure(void **state)
{
    char hindrance[SCRATCH_PATH_MAX];

    (void)state;
    snprintf(hindrance, sizeof hindrance, "%s", scratch_path(managed.directory, "old"));
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 1};
    policies(1, 1);
    managed.policies.trash = "old";
    managed_begin();
    scratch_write(hindrance, "", 0); /* no folder can be made there */
    for (int64_t step = 0; step < 3; step++)
        assert_true(managed_save(step));
    assert_string_equal(managed_steps(), "0 1 2");
    assert_int_equal(unlink(hindrance), 0);
    assert_true(managed_save(3));
    assert_string_equal(managed_steps(), "3");
    assert_int_equal(scratch_count(hindrance), 3);
}

/* ... and its owner is told of the room that it takes (R12.8). */
static void a_deletion_that_fails_is_told_when_asked_and_at_the_end(void **state)
{
    char hindrance[SCRATCH_PATH_MAX];

    (void)state;
    snprintf(hindrance, sizeof hindrance, "%s", scratch_path(managed.directory, "old"));
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_LATEST, .number = 1};
    policies(1, 1);
    managed.policies.trash = "old";
    managed_begin();
    scratch_write(hindrance, "", 0);
    for (int64_t step = 0; step < 3; step++)
        assert_true(managed_save(step));
    assert_int_not_equal(muster_manager_check_for_errors(managed.manager, &managed.error),
                         MUSTER_OK);
    assert_non_null(strstr(managed.error.text, hindrance));
    assert_int_equal(muster_manager_check_for_errors(managed.manager, NULL), MUSTER_OK); /* once */
    managed.error.text[0] = '\0';
    assert_int_not_equal(muster_manager_close(&managed.manager, 0, &managed.error), MUSTER_OK);
    assert_non_null(strstr(managed.error.text, hindrance));
}

/* --- metrics ---------------------------------------------------------------------------------- */

static enum muster_status save_with(int64_t step, double loss, const char *custom)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    const struct muster_metric metrics[] = {{"loss", loss}, {"val/acc", 1 - loss}};

    request.metrics = metrics;
    request.metrics_count = 2;
    request.custom_metadata = custom;
    return muster_manager_save(managed.manager, step, &request, NULL, &managed.error);
}

static void the_best_step_is_by_metric_and_the_newer_of_equals(void **state)
{
    int64_t step = -1;
    double value = 0;

    (void)state;
    managed.save.number = 1;
    managed_begin();
    assert_int_equal(muster_manager_best_step(managed.manager, "loss", false, &step, NULL),
                     MUSTER_E_NOT_FOUND);
    save_with(0, 0.5, NULL);
    save_with(1, 0.25, NULL);
    save_with(2, 0.25, NULL);
    managed_save(3); /* without any */
    save_with(4, 0.75, NULL);
    managed_close();
    managed_open_reader();
    assert_int_equal(muster_manager_best_step(managed.manager, "loss", false, &step, NULL),
                     MUSTER_OK);
    assert_int_equal(step, 2);
    assert_int_equal(muster_manager_best_step(managed.manager, "loss", true, &step, NULL),
                     MUSTER_OK);
    assert_int_equal(step, 4);
    assert_int_equal(muster_manager_best_step(managed.manager, "val/acc", true, &step, NULL),
                     MUSTER_OK);
    assert_int_equal(step, 2);
    assert_int_equal(muster_manager_best_step(managed.manager, "f1", true, &step, NULL),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_manager_best_step(managed.manager, "a b", true, &step, NULL),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_metrics(managed.manager, 4, "loss", &value, NULL), MUSTER_OK);
    assert_true(value > 0.74 && value < 0.76);
    assert_int_equal(muster_manager_metrics(managed.manager, 3, "loss", &value, NULL),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_manager_metrics(managed.manager, 9, "loss", &value, NULL),
                     MUSTER_E_NOT_FOUND);
}

static void custom_metadata_comes_back_with_its_own_step(void **state)
{
    const struct muster_checkpoint_info *info = NULL;

    (void)state;
    managed.save.number = 1;
    managed_begin();
    assert_int_equal(save_with(0, 0, "{\"note\": [1, \"two\"]}"), MUSTER_OK);
    managed_save(1);
    assert_int_equal(muster_manager_metadata(managed.manager, 0, &info, sizeof *info, NULL),
                     MUSTER_OK);
    assert_non_null(strstr(info->custom_metadata, "two"));
    assert_int_equal(info->step, 0);
    assert_true(info->bytes > 0);
    assert_int_equal(muster_manager_metadata(managed.manager, 1, &info, sizeof *info, NULL),
                     MUSTER_OK);
    assert_string_equal(info->custom_metadata, "");
    assert_string_equal(info->metrics, "");
    assert_int_equal(muster_manager_metadata(managed.manager, 2, &info, sizeof *info, NULL),
                     MUSTER_E_NOT_FOUND);
}

static void bad_metrics_are_refused_and_leave_nothing(void **state)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    const struct muster_metric bad[] = {{"", 1}, {"a b", 1}, {NULL, 1}};
    const struct muster_metric twice[] = {{"loss", 1}, {"step", 2}, {"loss", 3}};

    (void)state;
    managed.save.number = 1;
    managed_begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        request.metrics = &bad[i];
        request.metrics_count = 1;
        assert_int_equal(muster_manager_save(managed.manager, 0, &request, NULL, NULL),
                         MUSTER_E_ARGUMENT);
    }
    request.metrics = twice;
    request.metrics_count = 3;
    assert_int_equal(muster_manager_save(managed.manager, 0, &request, NULL, &managed.error),
                     MUSTER_E_ARGUMENT);
    assert_non_null(strstr(managed.error.text, "metrics[2] is a second \"loss\""));
    request.metrics = NULL;
    assert_int_equal(muster_manager_save(managed.manager, 0, &request, NULL, NULL),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(save_with(0, 1, "[1]"), MUSTER_E_ARGUMENT);
    assert_int_equal(save_with(0, 1, "{"), MUSTER_E_ARGUMENT);
    assert_string_equal(managed_steps(), "");
    assert_true(managed_save(0));
}

/* The state of a training that goes wrong is saved anyway, and is not among the best. */
static void a_metric_that_is_no_number_is_left_out(void **state)
{
    const struct muster_metric metrics[] = {{"loss", NAN}, {"rate", 0.25}, {"norm", INFINITY}};
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;
    const struct muster_checkpoint_info *info = NULL;
    bool saved = false;

    (void)state;
    managed_begin();
    request.metrics = metrics;
    request.metrics_count = 3;
    assert_int_equal(muster_manager_save(managed.manager, 0, &request, &saved, NULL), MUSTER_OK);
    assert_true(saved);
    assert_int_equal(muster_manager_metadata(managed.manager, 0, &info, sizeof *info, NULL),
                     MUSTER_OK);
    assert_string_equal(info->metrics, "{\"rate\":0.25}");
    request.metrics_count = 1;
    assert_int_equal(muster_manager_save(managed.manager, 1, &request, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_save(managed.manager, 2, &request, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_metadata(managed.manager, 2, &info, sizeof *info, NULL),
                     MUSTER_OK);
    assert_string_equal(info->metrics, "");
}

/* Nobody else decides for it. */
static void a_process_alone_saves_by_time(void **state)
{
    struct muster_save_policy often = {.kind = MUSTER_SAVE_CONTINUOUS_MS, .number = 0};

    (void)state;
    managed.policies.save = &often;
    managed_begin();
    assert_true(managed_save(0));
    assert_true(managed_save(1));
    managed_close();
    often = (struct muster_save_policy){.kind = MUSTER_SAVE_PERIOD_MS, .number = 3600000};
    managed_begin();
    assert_false(managed_save(2));
    assert_string_equal(managed_steps(), "0 1");
}

static void the_best_are_kept(void **state)
{
    static const double losses[] = {0.5, 0.1, 0.4, 0.2, 0.9};

    (void)state;
    keep[0] = (struct muster_keep_policy){.kind = MUSTER_KEEP_BEST, .number = 2, .metric = "loss"};
    policies(1, 1);
    managed_begin();
    for (int64_t step = 0; step < 5; step++)
        assert_int_equal(save_with(step, losses[step], NULL), MUSTER_OK);
    assert_string_equal(managed_steps(), "1 3 4");
    managed_close(); /* now the newest counts no more than another */
    managed_open_reader();
    assert_string_equal(managed_steps(), "1 3");
}

/* --- deleting, holding, waiting --------------------------------------------------------------- */

static void one_step_can_be_deleted_but_not_the_newest(void **state)
{
    (void)state;
    managed.save.number = 1;
    managed_begin();
    for (int64_t step = 0; step < 3; step++)
        managed_save(step);
    assert_int_equal(muster_manager_delete(managed.manager, 1, &managed.error), MUSTER_OK);
    assert_string_equal(managed_steps(), "0 2");
    assert_false(scratch_exists(scratch_path(managed.directory, "1")));
    assert_int_equal(muster_manager_delete(managed.manager, 1, &managed.error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_manager_delete(managed.manager, 2, &managed.error), MUSTER_E_BUSY);
    assert_int_equal(muster_manager_delete(managed.manager, -1, &managed.error), MUSTER_E_ARGUMENT);
    managed_close();
    managed_open_reader();
    assert_int_equal(muster_manager_delete(managed.manager, 0, &managed.error),
                     MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_manager_pin(managed.manager, 0, 1000, NULL, &managed.error),
                     MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_manager_pin(managed.manager, 0, 0, NULL, &managed.error),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_unpin(managed.manager, 0, &managed.error), MUSTER_OK);
    assert_string_equal(managed_steps(), "0 2");
}

static void a_reader_hears_of_each_newest_checkpoint_once(void **state)
{
    muster_manager_t *writer;
    int64_t step = -1;

    (void)state;
    managed.save.number = 1;
    managed_begin();
    managed_save(0);
    managed_save(1);
    writer = managed.manager;
    managed.manager = NULL;
    managed_open_reader();
    assert_int_equal(muster_manager_next_checkpoint(managed.manager, 0, &step, NULL), MUSTER_OK);
    assert_int_equal(step, 1); /* the newest there is */
    assert_int_equal(muster_manager_next_checkpoint(managed.manager, 0, &step, NULL),
                     MUSTER_E_TIMEOUT);
    assert_int_equal(muster_manager_save(writer, 2, NULL, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_next_checkpoint(managed.manager, 0, &step, NULL), MUSTER_OK);
    assert_int_equal(step, 2);
    assert_int_equal(muster_manager_wait_for_new_checkpoint(managed.manager, 1, 0, &step, NULL),
                     MUSTER_OK);
    assert_int_equal(muster_manager_wait_for_new_checkpoint(managed.manager, 2, 0, &step, NULL),
                     MUSTER_E_TIMEOUT);
    assert_int_equal(muster_manager_wait_for_new_checkpoint(managed.manager, -2, 0, &step, NULL),
                     MUSTER_E_ARGUMENT);
    assert_int_equal(muster_manager_close(&writer, 0, NULL), MUSTER_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, managed_setup, managed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keep_2_over_5_saves),
        TEST(the_newest_stays_for_who_comes_after_a_failed_save),
        TEST(it_goes_where_the_failed_save_was_made_good),
        TEST(the_newest_stays_where_a_finalizer_closes),
        TEST(keep_2_and_every_4_with_interval_2_over_12_steps),
        TEST(every_3_counted_from_the_last_kept),
        TEST(the_newest_so_many_of_every_3),
        TEST(the_nearest_to_each_10_of_uneven_saves),
        TEST(given_steps_are_kept),
        TEST(keep_0_gives_the_newest_up_at_the_close),
        TEST(a_preempted_job_keeps_what_it_resumes_from),
        TEST(what_goes_can_be_moved_to_a_trash_folder),
        TEST(a_deletion_that_fails_is_told_when_asked_and_at_the_end),
        TEST(a_deletion_that_fails_is_not_the_saves_failure),
        TEST(the_best_step_is_by_metric_and_the_newer_of_equals),
        TEST(custom_metadata_comes_back_with_its_own_step),
        TEST(bad_metrics_are_refused_and_leave_nothing),
        TEST(a_metric_that_is_no_number_is_left_out),
        TEST(a_process_alone_saves_by_time),
        TEST(the_best_are_kept),
        TEST(one_step_can_be_deleted_but_not_the_newest),
        TEST(a_reader_hears_of_each_newest_checkpoint_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
