/* What a coordinator's calls return and say when the broker can write nothing, or cannot read what
 * it has. */
#include "tests/proc/tasks/coordinator_stage.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_broker_that_cannot_write_is_named_for_it(void **state)
{
    muster_remote_value_t *value = stage_schedule();

    (void)state;
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.full, true);
    while (stage_join(200) == MUSTER_E_TIMEOUT) /* until a beat was answered so */
        continue;
    assert_int_equal(stage.err.status, MUSTER_E_STORAGE);
    assert_says("not all tasks have ended in time, for the broker at tcp://");
    assert_says("can write nothing: the disk is full. Nothing is lost");
    atomic_store(&stage.full, false);
    while (stage_join(200) == MUSTER_E_STORAGE)
        continue;
    assert_int_equal(stage.err.status, MUSTER_E_TIMEOUT);
    muster_remote_value_free(&value);
}

/* It is heard, so that no other bound ends the wait. */
static void a_wait_without_end_ends_when_nothing_can_be_written(void **state)
{
    (void)state;
    stage_open_again(30000, STAGE_BROKER_MS);
    muster_remote_value_t *value = stage_schedule();
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.full, true);
    assert_int_equal(stage_join(-1), MUSTER_E_STORAGE);
    assert_says("the disk is full");
    muster_remote_value_free(&value);
    atomic_store(&stage.full, false);
}

static void a_queue_is_not_opened_while_nothing_can_be_written(void **state)
{
    (void)state;
    muster_coordinator_close(&stage.coordinator, NULL);
    atomic_store(&stage.full, true);
    assert_int_equal(stage_open(1200, 1000), MUSTER_E_STORAGE);
    assert_says("the queue was not opened, for the broker at tcp://");
}

/* Its beats are answered all the while. */
static void a_broker_that_cannot_read_what_has_ended_is_named_for_it(void **state)
{
    (void)state;
    stage_open_again(30000, STAGE_BROKER_MS);
    muster_remote_value_t *value = stage_schedule();
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.unreadable, true);
    atomic_store(&stage.done, 1);
    assert_int_equal(stage_join(-1), MUSTER_E_STORAGE);
    assert_says("at tcp://");
    assert_says(" cannot read which tasks have ended: cannot read a page. Nothing is lost");
    assert_int_equal(stage_join(300), MUSTER_E_STORAGE);
    atomic_store(&stage.unreadable, false);
    while (stage_join(300) != MUSTER_OK) /* until it was asked again; the alarm ends a hang */
        continue;
    muster_remote_value_free(&value);
}

/* Pages are not needed for that. */
static void what_cannot_be_read_keeps_nothing_from_being_handed_over(void **state)
{
    struct muster_call call = MUSTER_CALL_INIT;

    (void)state;
    stage_open_again(30000, STAGE_BROKER_MS);
    muster_remote_value_t *values[] = {stage_schedule(), NULL};
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.no_answer, WIRE_TASKS_ADD);
    values[1] = stage_schedule();
    atomic_store(&stage.unreadable, true);
    atomic_store(&stage.done, 1);
    assert_int_equal(stage_join(-1), MUSTER_E_STORAGE);
    call.function = "fail";
    assert_int_equal(muster_coordinator_schedule(stage.coordinator, &call, 10000, NULL, &stage.err),
                     MUSTER_OK);
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 100, &stage.err),
                     MUSTER_E_TIMEOUT);
    atomic_store(&stage.no_answer, WIRE_NONE);
    assert_int_equal(muster_coordinator_close(&stage.coordinator, NULL), MUSTER_OK);
    for (int i = 0; i < 2; i++)
        muster_remote_value_free(&values[i]);
}

static void a_result_that_cannot_be_read_is_named_for_it(void **state)
{
    const void *data;
    size_t size;

    (void)state;
    stage_open_again(30000, STAGE_BROKER_MS);
    muster_remote_value_t *value = stage_schedule();
    atomic_store(&stage.done, 1);
    assert_int_equal(stage_join(20000), MUSTER_OK);
    atomic_store(&stage.unreadable, true);
    assert_int_equal(muster_remote_value_fetch(value, -1, &data, &size, &stage.err),
                     MUSTER_E_STORAGE);
    assert_says("the result of task 1 did not come, for the broker at tcp://");
    assert_says("cannot read it (MUSTER_E_IO: a file could not be read or written");
    assert_int_equal(muster_remote_value_fetch(value, 300, &data, &size, &stage.err),
                     MUSTER_E_STORAGE);
    atomic_store(&stage.unreadable, false);
    while (muster_remote_value_fetch(value, 300, &data, &size, &stage.err) != MUSTER_OK)
        continue;
    assert_int_equal(size, STAGE_RESULT_BYTES);
    muster_remote_value_free(&value);
}

/* It is slow, but nobody knows yet that it cannot read. */
static void a_new_broker_is_not_blamed_for_what_the_last_could_not_read(void **state)
{
    muster_remote_value_t *value = stage_schedule();
    const void *data;
    size_t size;

    (void)state;
    assert_int_equal(muster_coordinator_flush(stage.coordinator, 10000, &stage.err), MUSTER_OK);
    atomic_store(&stage.unreadable, true);
    atomic_store(&stage.done, 1);
    while (stage_join(100) != MUSTER_E_STORAGE)
        assert_int_equal(stage.err.status, MUSTER_E_TIMEOUT);
    stage_broker_is_another(1, WIRE_TASKS_GET);
    while (stage_join(100) == MUSTER_E_STORAGE) /* until it was opened; the alarm ends a hang */
        continue;
    assert_int_equal(stage.err.status, MUSTER_E_TIMEOUT);
    atomic_store(&stage.unreadable, false);
    atomic_store(&stage.no_answer, WIRE_NONE);
    assert_int_equal(stage_join(20000), MUSTER_OK);
    atomic_store(&stage.bad_result, 1);
    while (muster_remote_value_fetch(value, 100, &data, &size, &stage.err) != MUSTER_E_STORAGE)
        assert_int_equal(stage.err.status, MUSTER_E_TIMEOUT);
    stage_broker_is_another(1, WIRE_RESULT_GET);
    while (muster_remote_value_fetch(value, 100, &data, &size, &stage.err) == MUSTER_E_STORAGE)
        continue;
    assert_int_equal(stage.err.status, MUSTER_E_TIMEOUT);
    muster_remote_value_free(&value);
}

/* Each answer to the first frees its place, which is the only one since answers were late. */
static void one_result_that_cannot_be_read_holds_up_no_other(void **state)
{
    const void *data;
    size_t size;

    (void)state;
    stage_open_again(30000, STAGE_BROKER_MS);
    muster_remote_value_t *values[] = {stage_schedule(), stage_schedule()};
    atomic_store(&stage.done, 2);
    assert_int_equal(stage_join(20000), MUSTER_OK);
    atomic_store(&stage.bad_result, 1);
    assert_int_equal(muster_remote_value_fetch(values[0], -1, &data, &size, &stage.err),
                     MUSTER_E_STORAGE);
    assert_int_equal(muster_remote_value_fetch(values[1], -1, &data, &size, &stage.err), MUSTER_OK);
    assert_int_equal(size, STAGE_RESULT_BYTES);
    for (int i = 0; i < 2; i++)
        muster_remote_value_free(&values[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_begin, stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_broker_that_cannot_write_is_named_for_it),
        TEST(a_wait_without_end_ends_when_nothing_can_be_written),
        TEST(a_queue_is_not_opened_while_nothing_can_be_written),
        TEST(a_broker_that_cannot_read_what_has_ended_is_named_for_it),
        TEST(what_cannot_be_read_keeps_nothing_from_being_handed_over),
        TEST(a_result_that_cannot_be_read_is_named_for_it),
        TEST(a_new_broker_is_not_blamed_for_what_the_last_could_not_read),
        TEST(one_result_that_cannot_be_read_holds_up_no_other),
    };

    return cmocka_run_group_tests_name("coordinator_storage", tests, NULL, NULL);
}
