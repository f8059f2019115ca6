/* store_fixture - see store_fixture.h. */
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

bool fixture_is_shared(void)
{
    return getenv("MUSTER_TEST_SHARED") != NULL;
}

/* Each test has a schema of its own: the address ends where its number begins. */
static void share(struct fixture *f)
{
    static unsigned tests;
    char address[512];
    const struct shared_options options = {.uri = address, .path = f->db, .owner = "a test"};

    if (f->number == 0)
        f->number = ++tests;
    snprintf(address, sizeof address, "%s%u", getenv("MUSTER_TEST_SHARED"), f->number);
    if (shared_open(&options, &f->options.shared, &f->err) != MUSTER_OK ||
        shared_take(f->options.shared, &f->err) != MUSTER_OK)
        fail_msg("%s", f->err.text);
}

void fixture_close(struct fixture *f)
{
    store_close(&f->store);
    shared_close(&f->options.shared);
}

void fixture_reopen(struct fixture *f)
{
    fixture_close(f);
    if (fixture_is_shared())
        share(f);
    if (store_open(f->db, &f->options, &f->store, &f->err) != MUSTER_OK)
        fail_msg("%s", f->err.text);
}

void fixture_limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    scratch_make(f->dir);
    snprintf(f->db, sizeof f->db, "%s", scratch_path(f->dir, "state/muster.db"));
    f->options.allow_network_fs = true; /* wherever the tests run */
    fixture_reopen(f);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    fixture_limit_file_size(RLIM_INFINITY);
    fixture_close(f);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

enum muster_status fixture_apply(struct fixture *f, const struct record *rows, size_t count)
{
    struct action items[512];
    struct actions batch = batch_of(rows, count, false, items);

    return store_apply(f->store, &batch, NOW, &f->err);
}

void fixture_write(struct fixture *f, const struct record *row)
{
    if (fixture_apply(f, row, 1) != MUSTER_OK)
        fail_msg("%s", f->err.text);
}

void fixture_write_samples(struct fixture *f)
{
    if (fixture_apply(f, samples, samples_count) != MUSTER_OK)
        fail_msg("%s", f->err.text);
}

int64_t fixture_look(const struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t number;

    assert_int_equal(sqlite3_open_v2(f->db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

void fixture_change(const struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}
