/* Rows of tasks that nobody reads any more: many go in slices, so that the broker serves others in
 * between. */
#include "tests/support/tasks_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>

#define SLICE_MOST 1200000 /* bytes: a slice, and what its last row was */
#define BYTES                                                                   \
    "SELECT (SELECT ifnull(sum(length(args) + length(result)), 0) FROM task) +" \
    " (SELECT ifnull(sum(length(bytes)), 0) FROM task_part)"
#define PARTS_BYTES (17 * 48000)

static void by_hand(const struct tasks_fixture *f, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(f->db, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* 60 tasks of 60,000 bytes; of the last three a result in parts besides; the very last is at the
 * worker. */
static void fill(struct tasks_fixture *f)
{
    tasks_worker_begin(f, 0, 1, 1);
    tasks_add(f, 60);
    for (uint64_t number = 1; number <= 59; number++)
        tasks_done(f, 0, number, 1);
    by_hand(f, "UPDATE task SET args = zeroblob(30000), result = zeroblob(30000);"
               "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 16)"
               " INSERT INTO task_part SELECT id, 1, i * 48000, zeroblob(48000) FROM n, task"
               "  WHERE id & 0xffff > 57");
}

static bool is_tidy(const struct tasks_fixture *f)
{
    return store_wakeup_boot_ms(f->store) == INT64_MAX;
}

/* Returns how many slices it took. */
static int tidy_all(struct tasks_fixture *f)
{
    int slices = 0;

    for (int64_t left = tasks_look(f, BYTES); !is_tidy(f);) {
        int64_t before = left;

        tasks_tidy_slice(f);
        left = tasks_look(f, BYTES);
        assert_in_range(before - left, 0, SLICE_MOST + PARTS_BYTES);
        slices += left < before;
    }
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task_garbage"), 0);
    return slices;
}

static void a_queue_that_was_begun_anew_goes_in_slices(void **state)
{
    struct tasks_fixture *f = *state;
    int64_t all;

    fill(f);
    all = tasks_look(f, BYTES);
    assert_int_equal(all, 60 * 60000 + 3 * PARTS_BYTES);
    f->coordinator++;
    tasks_open_queue(f, true, 0);
    assert_sent(f, "w0:alive -60.1; c:opened q2 0/0");
    assert_in_range(tasks_look(f, BYTES), all - SLICE_MOST, all - 1);
    tasks_add(f, 1);
    assert_sent(f, "c:taken 1");
    tasks_tidy_slice(f);
    assert_in_range(tasks_look(f, BYTES), all - 2 * SLICE_MOST, all - SLICE_MOST);
    tasks_restart(f); /* in the middle of it */
    assert_false(is_tidy(f));
    assert_in_range(tidy_all(f), 3, 6);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task"), 1);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task_part"), 0);
}

/* It would find their rows as its own. */
static void no_queue_gets_the_number_of_one_whose_rows_are_left(void **state)
{
    struct tasks_fixture *f = *state;

    fill(f);
    f->coordinator++;
    tasks_open_queue(f, true, 0);
    assert_sent(f, "w0:alive -60.1; c:opened q2 0/0");
    by_hand(f, "UPDATE task SET id = (3 << 40) + (id & 0xffff) WHERE id >> 40 = 1;"
               "UPDATE task_part SET id = (3 << 40) + (id & 0xffff);"
               "UPDATE task_garbage SET queue = 3;");
    tasks_restart(f);
    f->coordinator++;
    tasks_open_queue(f, true, 0);
    assert_sent(f, "c:opened q4 0/0");
}

static void a_small_one_goes_at_once(void **state)
{
    struct tasks_fixture *f = *state;

    tasks_add(f, 10);
    f->coordinator++;
    tasks_open_queue(f, true, 0);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task"), 0);
    assert_true(is_tidy(f));
}

static void what_is_released_goes_and_nothing_else(void **state)
{
    struct tasks_fixture *f = *state;

    fill(f);
    tasks_say(f, WIRE_QUEUE_BEAT, 30);
    assert_false(is_tidy(f));
    tasks_tidy_slice(f);
    tasks_say(f, WIRE_QUEUE_BEAT, 58); /* it has begun already */
    assert_in_range(tidy_all(f), 1, 4);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task"), 2);
    assert_int_equal(tasks_look(f, "SELECT count(DISTINCT id) FROM task_part"), 2);
    tasks_say(f, WIRE_QUEUE_BEAT, 60); /* the last one has not ended */
    tidy_all(f);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task WHERE state = 'leased'"), 1);
    assert_int_equal(tasks_look(f, "SELECT count(*) FROM task"), 1);
    assert_int_equal(tasks_look(f, "SELECT count(DISTINCT id) FROM task_part"), 1);
}

static void what_is_released_is_not_read(void **state)
{
    struct tasks_fixture *f = *state;

    fill(f);
    tasks_say(f, WIRE_QUEUE_BEAT, 59);
    assert_false(is_tidy(f));
    tasks_say(f, WIRE_TASKS_GET, 1);
    assert_sent(f, "c:page 1-61");
    tasks_say(f, WIRE_RESULT_GET, 59);
    assert_sent(f, "c:chunk 59 0+0/0/MUSTER_E_NOT_FOUND");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tasks_with_queue, tasks_without_core)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_queue_that_was_begun_anew_goes_in_slices),
        TEST(no_queue_gets_the_number_of_one_whose_rows_are_left),
        TEST(a_small_one_goes_at_once),
        TEST(what_is_released_goes_and_nothing_else),
        TEST(what_is_released_is_not_read),
    };

    return cmocka_run_group_tests_name("store_tidy", tests, tasks_open_file, tasks_close_file);
}
