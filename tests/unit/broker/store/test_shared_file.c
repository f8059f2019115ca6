/* The file at the path of a broker's copy: what it holds, and that one which cannot be read is
 * kept under another name. */
#include "broker/store/shared_file.c" /* NOLINT(bugprone-suspicious-include) */

#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static char dir[SCRATCH_PATH_MAX], db[SCRATCH_PATH_MAX + 16];

static int setup(void **state)
{
    (void)state;
    scratch_make(dir);
    snprintf(db, sizeof db, "%s/muster.db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(dir);
    return 0;
}

static void with(const char *sql)
{
    sqlite3 *made = NULL;

    assert_int_equal(sqlite3_open(db, &made), SQLITE_OK);
    if (sqlite3_exec(made, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(made));
    sqlite3_close(made);
}

#define TABLES                                                                 \
    "CREATE TABLE meta (key TEXT, value TEXT); CREATE TABLE job (job TEXT);"   \
    "CREATE TABLE task_queue (queue INTEGER); CREATE TABLE host (id INTEGER);" \
    "INSERT INTO meta VALUES ('shared', 'abc'), ('seeded', 'def');"

static struct shared_file looked(void)
{
    struct shared_file file;

    shared_file_look(db, &file);
    return file;
}

static void a_copy_tells_what_it_is_a_copy_of_and_whether_it_has_records(void **state)
{
    (void)state;
    with(TABLES);
    assert_int_equal(looked().result, SQLITE_OK);
    assert_string_equal(looked().copy_of, "abc");
    assert_string_equal(looked().seeded, "def");
    assert_false(looked().has_records);
    with("INSERT INTO host VALUES (1)");
    assert_true(looked().has_records);
    with("DELETE FROM host; INSERT INTO task_queue VALUES (1)");
    assert_true(looked().has_records);
    with("DELETE FROM task_queue; INSERT INTO job VALUES ('train')");
    assert_true(looked().has_records);
}

static void what_no_row_tells_is_empty(void **state)
{
    (void)state;
    with(TABLES "DELETE FROM meta");
    assert_int_equal(looked().result, SQLITE_OK);
    assert_string_equal(looked().copy_of, "");
    assert_string_equal(looked().seeded, "");
}

static void a_file_without_tables_or_of_other_bytes_holds_nothing(void **state)
{
    (void)state;
    assert_int_equal(looked().result, SQLITE_CANTOPEN);
    with("");
    scratch_write(db, "", 0);
    assert_int_equal(looked().result, SQLITE_EMPTY);
    scratch_write(db, "this is no database, but a text that somebody put there", 55);
    assert_int_equal(looked().result, SQLITE_NOTADB);
    assert_false(looked().has_records);
}

static void one_that_is_moved_aside_takes_its_journal_along(void **state)
{
    char *name = NULL;
    struct muster_error err;

    (void)state;
    scratch_write(db, "bytes", 5);
    scratch_write(scratch_path(dir, "muster.db-wal"), "more", 4);
    assert_int_equal(shared_file_move_aside(db, &name, &err), MUSTER_OK);
    assert_false(scratch_exists(db));
    assert_true(scratch_exists(name));
    assert_non_null(strstr(name, "/muster.db.damaged-"));
    assert_int_equal(scratch_count(dir), 2);
    assert_false(scratch_exists(scratch_path(dir, "muster.db-wal")));
    free(name);
}

static void one_that_cannot_be_moved_is_an_error_and_stays(void **state)
{
    char *name = NULL;
    struct muster_error err;

    (void)state;
    assert_int_equal(shared_file_move_aside(scratch_path(dir, "none"), &name, &err), MUSTER_E_IO);
    assert_null(name);
    assert_non_null(strstr(err.text, "cannot move aside"));
}

static void a_suffix_is_unlinked_and_nothing_else(void **state)
{
    (void)state;
    scratch_write(db, "bytes", 5);
    scratch_write(scratch_path(dir, "muster.db-wal"), "more", 4);
    shared_file_unlink(db, "-wal");
    shared_file_unlink(db, "-shm"); /* is not there */
    assert_true(scratch_exists(db));
    assert_int_equal(scratch_count(dir), 1);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_copy_tells_what_it_is_a_copy_of_and_whether_it_has_records),
        T(what_no_row_tells_is_empty),
        T(a_file_without_tables_or_of_other_bytes_holds_nothing),
        T(one_that_is_moved_aside_takes_its_journal_along),
        T(one_that_cannot_be_moved_is_an_error_and_stays),
        T(a_suffix_is_unlinked_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
