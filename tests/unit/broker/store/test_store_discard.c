/* A start that is refused: its files go if they are of this start, and nothing else does. */
#include "tests/unit/broker/store/store_fixture.h"

#include "tests/support/scratch.h"
#include "tests/unit/broker/store/store_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static size_t files_left(const struct fixture *f)
{
    return scratch_count(scratch_path(f->dir, "state"));
}

static void a_new_database_leaves_no_file_behind(void **state)
{
    struct fixture *f = *state;

    assert_true(files_left(f) >= 3); /* database, WAL, lock */
    store_discard(&f->store);
    assert_null(f->store);
    assert_int_equal(files_left(f), 0);
    store_discard(&f->store); /* NULL by now */
}

static void a_database_that_was_there_keeps_its_rows_and_is_free_for_the_next(void **state)
{
    struct fixture *f = *state;

    fixture_write_samples(f);
    store_close(&f->store);
    fixture_reopen(f);
    store_discard(&f->store);
    assert_true(scratch_exists(f->db));
    fixture_reopen(f); /* not locked any more */
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM job"), 1);
}

static void a_lock_file_that_was_there_is_not_removed(void **state)
{
    struct fixture *f = *state;
    char lock[SCRATCH_PATH_MAX + 64];

    store_discard(&f->store);
    snprintf(lock, sizeof lock, "%s.lock", f->db);
    scratch_write(lock, "", 0);
    fixture_reopen(f);
    store_discard(&f->store);
    assert_true(scratch_exists(lock)); /* another broker may wait on it */
    assert_int_equal(files_left(f), 1);
}

static void an_open_that_fails_discards_by_itself(void **state)
{
    struct fixture *f = *state;

    store_discard(&f->store);
    fixture_limit_file_size(5000); /* the lock's pid fits, the tables do not */
    assert_int_not_equal(store_open(f->db, &f->options, &f->store, &f->err), MUSTER_OK);
    fixture_limit_file_size(RLIM_INFINITY);
    assert_null(f->store);
    assert_int_equal(files_left(f), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_database_leaves_no_file_behind),
        TEST(a_database_that_was_there_keeps_its_rows_and_is_free_for_the_next),
        TEST(a_lock_file_that_was_there_is_not_removed),
        TEST(an_open_that_fails_discards_by_itself),
    };

    return cmocka_run_group_tests_name("store_discard", tests, NULL, NULL);
}
