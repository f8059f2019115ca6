/* The disk in memory and the shim over it, with plain SQLite: what they promise to the tests that
 * trust them. */
#include "tests/support/fault_vfs.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/disk/a.db"

struct fixture {
    uint64_t seed;
    struct mem_vfs *disk;
    struct fault_vfs *faults;
    sqlite3 *db;
};

static uint64_t next_random(void *arg)
{
    uint64_t *seed = arg;
    uint64_t z = (*seed += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void power_up(struct fixture *f, uint64_t seed)
{
    f->seed = seed;
    f->disk = mem_vfs_create("disk", next_random, &f->seed);
    f->faults = fault_vfs_create(mem_vfs_sqlite(f->disk), f->disk);
}

static void put_away(struct fixture *f)
{
    sqlite3_close(f->db);
    f->db = NULL;
    fault_vfs_destroy(&f->faults);
    mem_vfs_destroy(&f->disk);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    power_up(f, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    put_away(*state);
    free(*state);
    return 0;
}

static int run(struct fixture *f, const char *sql)
{
    return sqlite3_exec(f->db, sql, NULL, NULL, NULL);
}

static void open_db(struct fixture *f, const char *settings)
{
    assert_int_equal(sqlite3_open(PATH, &f->db), SQLITE_OK);
    sqlite3_extended_result_codes(f->db, 1);
    assert_int_equal(run(f, settings), SQLITE_OK);
}

static const char wal_full[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL";
static const char wal_off[] = "PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL";

/* -1: it cannot be read. */
static int64_t number(struct fixture *f, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t found = -1;

    if (sqlite3_prepare_v2(f->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        found = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return found;
}

static bool is_sound(struct fixture *f)
{
    return number(f, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") ==
           1;
}

static void close_dead(struct fixture *f)
{
    sqlite3_close(f->db);
    f->db = NULL;
    mem_vfs_up(f->disk);
}

/* Rows of one transaction each, until one is not committed; how many were. */
static int64_t insert_until_it_fails(struct fixture *f, int64_t max)
{
    int64_t committed = 0;

    while (committed < max &&
           run(f, "INSERT INTO t (text) VALUES (hex(randomblob(700)))") == SQLITE_OK)
        committed++;
    return committed;
}

static const char make_table[] = "CREATE TABLE t (n INTEGER PRIMARY KEY, text); "
                                 "PRAGMA wal_autocheckpoint=5";

/* --- the disk --------------------------------------------------------------------------------- */

static void what_was_committed_survives_every_power_cut(void **state)
{
    struct fixture *f = *state;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        int64_t committed;

        put_away(f);
        power_up(f, seed);
        open_db(f, wal_full);
        assert_int_equal(run(f, make_table), SQLITE_OK);
        fault_vfs_keep(f->faults, (unsigned)(seed % 5) * 25);
        fault_vfs_plan(f->faults, FAULT_CALL_SYNC | FAULT_CALL_WRITE, FAULT_CUT, seed * 3, false);
        committed = insert_until_it_fails(f, 60);
        assert_int_equal(fault_vfs_hits(f->faults), 1);
        close_dead(f);
        open_db(f, wal_full);
        assert_true(is_sound(f));
        assert_in_range(number(f, "SELECT count(*) FROM t"), committed, committed + 1);
    }
}

/* The control: without a sync the disk must be seen to lose rows, or the file. */
static void without_syncs_a_power_cut_loses_rows(void **state)
{
    struct fixture *f = *state;
    int lost = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        int64_t committed;

        put_away(f);
        power_up(f, seed);
        open_db(f, wal_off);
        assert_int_equal(run(f, make_table), SQLITE_OK);
        fault_vfs_plan(f->faults, FAULT_CALL_WRITE, FAULT_CUT, 60, false);
        committed = insert_until_it_fails(f, 60);
        close_dead(f);
        assert_int_equal(sqlite3_open(PATH, &f->db), SQLITE_OK);
        lost += number(f, "SELECT count(*) FROM t") < committed;
    }
    assert_int_equal(lost, 10);
}

static void a_killed_process_loses_nothing_and_its_connection_does_no_more(void **state)
{
    struct fixture *f = *state;
    sqlite3 *dead;

    open_db(f, wal_off);
    assert_int_equal(run(f, make_table), SQLITE_OK);
    assert_int_equal(insert_until_it_fails(f, 3), 3);
    assert_int_equal(run(f, "BEGIN IMMEDIATE; INSERT INTO t (text) VALUES ('half')"), SQLITE_OK);
    mem_vfs_kill(f->disk);
    dead = f->db;
    assert_int_not_equal(run(f, "COMMIT"), SQLITE_OK);
    f->db = NULL;
    assert_int_not_equal(sqlite3_open(PATH, &f->db) | run(f, "SELECT * FROM t"), SQLITE_OK);
    sqlite3_close(f->db);
    sqlite3_close(dead);
    mem_vfs_up(f->disk);
    open_db(f, wal_off); /* no lock of the dead one is met */
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 3);
    assert_int_equal(insert_until_it_fails(f, 1), 1);
    assert_true(is_sound(f));
}

static void a_name_is_there_after_the_cut_only_when_its_directory_was_synced(void **state)
{
    struct fixture *f = *state;
    size_t size = 0;

    open_db(f, wal_off);
    assert_int_equal(run(f, make_table), SQLITE_OK); /* nothing was ever synced */
    assert_non_null(mem_vfs_content(f->disk, PATH, &size));
    mem_vfs_power_cut(f->disk, 0);
    close_dead(f);
    assert_null(mem_vfs_content(f->disk, PATH, &size));

    open_db(f, wal_full);
    assert_int_equal(run(f, make_table), SQLITE_OK);
    mem_vfs_power_cut(f->disk, 0);
    close_dead(f);
    assert_non_null(mem_vfs_content(f->disk, PATH, &size));
    open_db(f, wal_full);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void a_full_disk_takes_no_more_and_goes_on_when_there_is_room(void **state)
{
    struct fixture *f = *state;

    open_db(f, wal_full);
    assert_int_equal(run(f, make_table), SQLITE_OK);
    mem_vfs_limit(f->disk, mem_vfs_bytes(f->disk) + 40000);
    insert_until_it_fails(f, 1000);
    assert_int_equal(sqlite3_extended_errcode(f->db), SQLITE_FULL);
    mem_vfs_limit(f->disk, UINT64_MAX);
    assert_int_equal(insert_until_it_fails(f, 10), 10);
    assert_true(is_sound(f));
}

static void two_connections_meet_each_others_locks(void **state)
{
    struct fixture *f = *state;
    sqlite3 *other = NULL;

    open_db(f, wal_full);
    assert_int_equal(run(f, make_table), SQLITE_OK);
    assert_int_equal(sqlite3_open(PATH, &other), SQLITE_OK);
    assert_int_equal(run(f, "BEGIN IMMEDIATE"), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    assert_int_equal(sqlite3_exec(other, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(run(f, "COMMIT"), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_int_equal(insert_until_it_fails(f, 1), 1);
}

/* --- the shim --------------------------------------------------------------------------------- */

static int outcome(struct fixture *f, unsigned calls, enum fault fault, bool sticky)
{
    int first;

    fault_vfs_plan(f->faults, calls, fault, 1, sticky);
    first = run(f, "INSERT INTO t (text) VALUES ('x')");
    assert_true(fault_vfs_hits(f->faults) > 0);
    assert_int_equal(run(f, "INSERT INTO t (text) VALUES ('y')") == SQLITE_OK, !sticky);
    fault_vfs_plan(f->faults, FAULT_CALL_ANY, FAULT_NONE, 0, false);
    return first;
}

static void each_fault_is_what_sqlite_would_hear_of_a_disk(void **state)
{
    struct fixture *f = *state;
    int64_t before;

    open_db(f, wal_full);
    assert_int_equal(run(f, make_table), SQLITE_OK);
    before = number(f, "SELECT count(*) FROM t");
    assert_int_equal(outcome(f, FAULT_CALL_WRITE, FAULT_IO, true), SQLITE_IOERR_WRITE);
    assert_int_equal(outcome(f, FAULT_CALL_WRITE, FAULT_QUOTA, true), SQLITE_IOERR_WRITE);
    assert_int_equal(outcome(f, FAULT_CALL_WRITE, FAULT_FULL, true), SQLITE_FULL);
    assert_int_equal(outcome(f, FAULT_CALL_WRITE, FAULT_SHORT, true), SQLITE_IOERR_WRITE);
    assert_int_equal(outcome(f, FAULT_CALL_WRITE, FAULT_SHORT_FULL, true), SQLITE_FULL);
    assert_int_equal(outcome(f, FAULT_CALL_SYNC, FAULT_IO, true), SQLITE_IOERR_FSYNC);
    assert_int_equal(outcome(f, FAULT_CALL_SHM_LOCK, FAULT_BUSY, true), SQLITE_PROTOCOL);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), before);
    assert_int_equal(outcome(f, FAULT_CALL_WRITE, FAULT_SHORT_FULL, false), SQLITE_FULL);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), before + 1);
    assert_true(is_sound(f));
}

static void a_plan_counts_its_calls_and_ends_when_they_do(void **state)
{
    struct fixture *f = *state;
    uint64_t calls;

    open_db(f, wal_full);
    assert_int_equal(run(f, make_table), SQLITE_OK);
    fault_vfs_plan(f->faults, FAULT_CALL_SYNC, FAULT_IO, 0, false);
    assert_int_equal(insert_until_it_fails(f, 10), 10);
    calls = fault_vfs_calls(f->faults);
    assert_true(calls >= 10); /* each commit syncs the log, and some the file */
    assert_int_equal(fault_vfs_hits(f->faults), 0);
    fault_vfs_plan(f->faults, FAULT_CALL_SYNC, FAULT_IO, calls * 2, false);
    assert_int_equal(insert_until_it_fails(f, 10), 10);
    assert_int_equal(fault_vfs_hits(f->faults), 0);
}

static enum fault third_write_of_the_log(void *arg, enum fault_call call, const char *path)
{
    int *writes = arg;

    if (call != FAULT_CALL_WRITE || strcmp(path, PATH "-wal") != 0)
        return FAULT_NONE;
    return ++*writes == 3 ? FAULT_IO : FAULT_NONE;
}

static void a_simulator_may_choose_by_itself(void **state)
{
    struct fixture *f = *state;
    int writes = 0;

    open_db(f, wal_full);
    assert_int_equal(run(f, make_table), SQLITE_OK);
    fault_vfs_choose(f->faults, third_write_of_the_log, &writes);
    assert_true(insert_until_it_fails(f, 10) < 10);
    assert_int_equal(writes, 3);
    fault_vfs_choose(f->faults, NULL, NULL);
}

static void it_stands_over_real_files_too(void **state)
{
    char dir[SCRATCH_PATH_MAX];
    struct fixture real = {.db = NULL};

    (void)state;
    scratch_make(dir);
    real.faults = fault_vfs_create(sqlite3_vfs_find("unix"), NULL);
    assert_int_equal(sqlite3_open(scratch_path(dir, "real.db"), &real.db), SQLITE_OK);
    assert_int_equal(run(&real, wal_full), SQLITE_OK);
    assert_int_equal(run(&real, make_table), SQLITE_OK);
    assert_int_equal(outcome(&real, FAULT_CALL_SYNC, FAULT_IO, false) & 0xff, SQLITE_IOERR);
    assert_int_equal(sqlite3_close(real.db), SQLITE_OK);
    fault_vfs_destroy(&real.faults);
    assert_true(scratch_exists(scratch_path(dir, "real.db")));
    scratch_remove(dir);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_committed_survives_every_power_cut),
        TEST(without_syncs_a_power_cut_loses_rows),
        TEST(a_killed_process_loses_nothing_and_its_connection_does_no_more),
        TEST(a_name_is_there_after_the_cut_only_when_its_directory_was_synced),
        TEST(a_full_disk_takes_no_more_and_goes_on_when_there_is_room),
        TEST(two_connections_meet_each_others_locks),
        TEST(each_fault_is_what_sqlite_would_hear_of_a_disk),
        TEST(a_plan_counts_its_calls_and_ends_when_they_do),
        TEST(a_simulator_may_choose_by_itself),
        TEST(it_stands_over_real_files_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
