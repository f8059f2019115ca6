/* What is damage and what is not: a call to the disk that failed once is not; rows of tasks that
 * contradict one another are (those of rounds and nodes: test_store.c). */
#include "broker/store/store_internal.h"
#include "tests/support/fault_vfs.h"
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void a_read_that_fails_once_is_not_called_damage(void **state)
{
    struct fixture *f = *state;
    struct fault_vfs *faults;
    uint64_t at = 0, hits, refused = 0;

    fixture_write_samples(f);
    store_close(&f->store);
    faults = fault_vfs_create(sqlite3_vfs_find(NULL), NULL);
    do {
        fault_vfs_plan(faults, FAULT_CALL_READ, FAULT_IO, ++at, false);
        enum muster_status status = store_open(f->db, &f->options, &f->store, &f->err);
        hits = fault_vfs_hits(faults);
        if (status != MUSTER_OK && status != MUSTER_E_IO)
            fail_msg("read %llu: %s", (unsigned long long)at, f->err.text);
        refused += status != MUSTER_OK;
        fault_vfs_plan(faults, FAULT_CALL_READ, FAULT_NONE, 0, false);
        store_close(&f->store);
    } while (hits > 0);
    fault_vfs_destroy(&faults);
    assert_true(at > 20);
    assert_true(refused > 0);
    fixture_reopen(f); /* the fixture closes it */
}

/* --- tasks ------------------------------------------------------------------------------------ */

#define T(number) "((1 << 40) + " #number ")"

/* A queue that took six: one released, one done, one failed, one cancelled, one leased, one queued.
 */
static const char tasks[] =
    "INSERT INTO task_queue VALUES (1, 'train', 'main', 7, 6, 4, 1, 100, 3, 1, 3, 40, 17, 'no', 0, "
    "0, 0, 0);"
    "INSERT INTO task_resource VALUES (1, 1, 'make', x''), (1, 2, 'make', x'');"
    "INSERT INTO task_worker VALUES ('train', 0, 11, 0, 'h', 4, 1, 2, 'live', 0),"
    " ('train', 1, 12, 0, 'h', 5, 0, 0, 'left', 0), ('train', 2, 13, 0, 'h', 6, 1, 1, 'live', 0);"
    "INSERT INTO task (id, state, attempt, losses, worker, worker_index, timeout_ms, "
    "scheduled_unix_ms, fn, uses,"
    " args) VALUES (" T(
        2) ", 'done', 2, 1, 12, 1, 0, 0, 'work', x'', x''),"
           " (" T(3) ", 'failed', 3, 3, 12, 1, 0, 0, 'work', x'', x''),"
                     " (" T(4) ", 'cancelled', 0, 0, 0, 0, 0, 0, 'work', x'', x''),"
                               " (" T(5) ", 'leased', 2, 1, 11, 0, 0, 0, 'work', x'', x''),"
                                         " (" T(
                                             6) ", 'queued', 0, 0, 0, 0, 0, 0, 'work', x'', x'');"
                                                "INSERT INTO task_part VALUES (" T(
                                                    2) ", 2, 0, x'00')";

static void rows_of_tasks_that_do_not_fit_together_are_damage(void **state)
{
    static const struct {
        const char *change;
        const char *finding;
    } rows[] = {
        {"UPDATE task_queue SET ended = 7", "7 ended"},
        {"UPDATE task_queue SET released = 7", "7 are released"},
        {"UPDATE task_queue SET error_number = 0", "0 had the error"},
        {"UPDATE task_queue SET max_attempts = 0", "has taken 6 tasks"},
        {"DELETE FROM task WHERE state = 'done'", "has 4 of the tasks behind 1 to 6"},
        {"DELETE FROM task WHERE state = 'queued'", "has 4 of the tasks behind 1 to 6"},
        {"UPDATE task_queue SET released = 0", "has 5 of the tasks behind 0 to 6"},
        {"UPDATE task SET id = id + 1 WHERE state = 'queued'", "the last is 7"},
        {"UPDATE task_queue SET ended = 5", "2 have not ended, and its count says 1"},
        {"DELETE FROM task_resource; DELETE FROM task_queue", "task 2 of queue 1"},
        {"DELETE FROM task_resource; DELETE FROM task_queue;"
         "INSERT INTO task_garbage VALUES (1, 2, 5)",
         "task 6 of queue 1"},
        {"INSERT INTO task_garbage VALUES (1, 3, 2)", "3 to 2 of queue 1"},
        {"UPDATE task SET state = 'bored' WHERE state = 'done'", "is \"bored\""},
        {"UPDATE task SET attempt = 3 WHERE state = 'leased'", "at attempt 3 with 1 losses"},
        {"UPDATE task SET attempt = 1 WHERE state = 'queued'", "at attempt 1 with 0 losses"},
        {"UPDATE task SET attempt = 1 WHERE state = 'done'", "at attempt 1 with 1 losses"},
        {"UPDATE task SET attempt = 0, losses = -1 WHERE state = 'leased'", "with -1 losses"},
        {"UPDATE task SET excused = 1 WHERE state = 'done'", "with 1 losses, 1 excused"},
        {"UPDATE task SET attempt = 257, excused = 255 WHERE state = 'leased'", "255 excused"},
        {"UPDATE task SET attempt = 1, excused = -1 WHERE state = 'leased'", "-1 excused"},
        {"UPDATE task SET worker = 0 WHERE state = 'done'", "is \"done\""},
        {"UPDATE task SET worker_index = 1 WHERE state = 'leased'", "worker 1, which is another"},
        {"UPDATE task SET worker = 12, worker_index = 1 WHERE state = 'leased'", "which is left"},
        {"DELETE FROM task_worker WHERE worker_index = 0", "which is not there"},
        {"UPDATE task_worker SET incarnation = 99 WHERE worker_index = 0", "another process now"},
        {"UPDATE task_part SET id = id + 5", "of task 7 of queue 1"},
        {"DELETE FROM task_resource WHERE number = 1", "has 1 values"},
        {"UPDATE task_worker SET state = 'away' WHERE worker_index = 1", "is \"away\""},
        {"UPDATE task_worker SET takes = 0 WHERE worker_index = 2", "takes 0 tasks"},
        {"UPDATE task_worker SET incarnation = 11 WHERE worker_index = 2", "worker 0 and worker 2"},
    };
    struct fixture *f = *state;

    fixture_reopen(f);
    assert_int_equal(store_exec(f->store, tasks, &f->err), MUSTER_OK);
    assert_int_equal(store_check_rows(f->store, &f->err), MUSTER_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(store_exec(f->store, "BEGIN", &f->err), MUSTER_OK);
        assert_int_equal(store_exec(f->store, rows[i].change, &f->err), MUSTER_OK);
        if (store_check_rows(f->store, &f->err) != MUSTER_E_CORRUPT)
            fail_msg("not seen: %s", rows[i].change);
        if (strstr(f->err.text, rows[i].finding) == NULL)
            fail_msg("%s: %s", rows[i].change, f->err.text);
        assert_int_equal(store_exec(f->store, "ROLLBACK", &f->err), MUSTER_OK);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_that_fails_once_is_not_called_damage),
        TEST(rows_of_tasks_that_do_not_fit_together_are_damage),
    };

    return cmocka_run_group_tests_name("store_check", tests, NULL, NULL);
}
