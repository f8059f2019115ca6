/* A state that is given with a save, of one process without a broker. */
#include "tests/unit/client/manager/manager_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static int64_t averaged; /* what the given state has of "value" */
static muster_state_t *given;
static int snapshots;

static int setup(void **state)
{
    averaged = 0;
    if (muster_state_create(&given, NULL) != MUSTER_OK ||
        muster_state_add_i64(given, "value", &averaged, NULL) != MUSTER_OK)
        return -1;
    return managed_setup(state);
}

static int teardown(void **state)
{
    int code = managed_teardown(state); /* close may save it */

    muster_state_destroy(&given);
    return code;
}

static enum muster_status save_given(int64_t step, bool *ret_saved)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;

    request.state = given;
    managed.value = step;
    averaged = 1000 + step;
    return muster_manager_save(managed.manager, step, &request, ret_saved, &managed.error);
}

static void what_is_given_is_saved_and_nothing_else(void **state)
{
    bool saved = false;

    (void)state;
    managed_begin();
    assert_int_equal(save_given(0, &saved), MUSTER_OK);
    assert_true(saved);
    assert_false(managed_save(1));
    assert_true(managed_save(2)); /* without one it is the node's again */
    managed_close();
    managed_open_reader();
    assert_int_equal(muster_manager_restore(managed.manager, 0, NULL, 0, NULL), MUSTER_OK);
    assert_int_equal(managed.value, 1000);
    assert_int_equal(muster_manager_restore(managed.manager, 2, NULL, 0, NULL), MUSTER_OK);
    assert_int_equal(managed.value, 2);
}

static void notice(void)
{
    assert_int_equal(
        muster_node_notify(muster_manager_node(managed.manager), MUSTER_NOTICE_USER, -1, "x"),
        MUSTER_OK);
}

static void a_notice_saves_what_is_given_with_its_step(void **state)
{
    bool saved = false;

    (void)state;
    managed_begin();
    assert_int_equal(save_given(0, NULL), MUSTER_OK);
    notice();
    assert_int_equal(save_given(1, &saved), MUSTER_PREEMPTED);
    assert_true(saved);
    muster_manager_close(&managed.manager, 0, NULL);
    assert_int_equal(managed_begin(), 1);
    assert_int_equal(managed.value, 1001);
}

static void close_saves_what_was_given_with_the_last_step(void **state)
{
    (void)state;
    managed_begin();
    assert_int_equal(save_given(0, NULL), MUSTER_OK);
    assert_int_equal(save_given(1, NULL), MUSTER_OK);
    notice();
    assert_int_equal(muster_manager_close(&managed.manager, 0, NULL), MUSTER_PREEMPTED);
    assert_int_equal(managed_begin(), 1);
    assert_int_equal(managed.value, 1001);
}

static int64_t other_value;
static muster_state_t *other;

static enum muster_status save_other(int64_t step)
{
    struct muster_save_request request = MUSTER_SAVE_REQUEST_INIT;

    request.state = other;
    return muster_manager_save(managed.manager, step, &request, NULL, NULL);
}

/* A preemption saves behind the last step what the last call gave that was not refused. */
static void the_state_of_a_repeated_call_counts_and_that_of_a_refused_one_does_not(void **state)
{
    (void)state;
    other_value = 5000;
    assert_int_equal(muster_state_create(&other, NULL), MUSTER_OK);
    assert_int_equal(muster_state_add_i64(other, "value", &other_value, NULL), MUSTER_OK);
    managed_begin();
    assert_int_equal(save_given(0, NULL), MUSTER_OK);
    assert_int_equal(save_other(1), MUSTER_OK);
    assert_int_equal(save_given(1, NULL), MUSTER_OK); /* again: the other one is free to go */
    assert_int_equal(save_other(7), MUSTER_E_ARGUMENT);
    muster_state_destroy(&other);
    notice();
    assert_int_equal(muster_manager_close(&managed.manager, 0, NULL), MUSTER_PREEMPTED);
    assert_int_equal(managed_begin(), 1);
    assert_int_equal(managed.value, 1001);
}

static int save_nothing(const struct muster_save_context *context)
{
    (void)context;
    return 0;
}

static int restore_nothing(const struct muster_restore_context *context)
{
    (void)context;
    return 0;
}

static int take_state(const struct muster_save_context *context, void **ret_snapshot)
{
    snapshots++;
    *ret_snapshot = context->arg;
    return 0;
}

static void a_snapshot_is_asked_for_also_where_training_waits_for_the_save(void **state)
{
    (void)state;
    snapshots = 0;
    managed.node.snapshot_fn = take_state;
    managed.node.arg = managed.state;
    managed_begin();
    for (int step = 0; step < 4; step++)
        managed_save(step);
    assert_int_equal(snapshots, 2);
    assert_string_equal(managed_steps(), "0 2");
}

static void a_save_fn_saves_by_itself(void **state)
{
    (void)state;
    managed.node.state = NULL;
    managed.node.termination.save_fn = save_nothing;
    managed.node.termination.restore_fn = restore_nothing;
    managed_begin();
    assert_int_equal(save_given(0, NULL), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(managed.error.text, "save_fn"));
    assert_true(managed_save(0));
}

/* Refused at the call: in the save it would fail round after round. */
static void one_with_a_ranks_own_entry_needs_layout_sharded(void **state)
{
    (void)state;
    managed_begin();
    assert_int_equal(muster_state_set_own(given, "value", NULL), MUSTER_OK);
    assert_int_equal(save_given(0, NULL), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(managed.error.text, "\"value\" is each rank's own"));
    assert_true(managed_save(0));
    managed_close();
    managed.node.layout = MUSTER_LAYOUT_SHARDED;
    managed.node.checkpoint_dir = scratch_path(managed.directory, "sharded");
    managed_begin();
    assert_int_equal(save_given(0, NULL), MUSTER_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_given_is_saved_and_nothing_else),
        TEST(a_notice_saves_what_is_given_with_its_step),
        TEST(close_saves_what_was_given_with_the_last_step),
        TEST(the_state_of_a_repeated_call_counts_and_that_of_a_refused_one_does_not),
        TEST(a_snapshot_is_asked_for_also_where_training_waits_for_the_save),
        TEST(a_save_fn_saves_by_itself),
        TEST(one_with_a_ranks_own_entry_needs_layout_sharded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
