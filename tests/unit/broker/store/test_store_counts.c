/* What counts, asked of the broker's database in SQL, and of one that called it `superseded`. */
#include "broker/store/store.h"
#include "broker/store/store_internal.h"
#include "schema/rules/counts.h"
#include "tests/unit/broker/store/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

static void count_checkpoints(void *arg, const struct record *row)
{
    int *count = arg;

    if (row->kind == RECORD_CHECKPOINT)
        (*count)++;
}

#define FEW 128

static int count_steps(void *arg)
{
    int64_t *steps = arg;

    (*steps)++;
    return 0;
}

/* R11.3 */
static void what_a_later_launch_went_back_behind_does_not_count(void **state)
{
    static const struct {
        uint64_t generation;
        int64_t began_step;
        int counts;
    } launches[] = {{SAMPLE_GENERATION, 0, 1}, /* its own */
                    {SAMPLE_GENERATION + 1, 801, 1},
                    {SAMPLE_GENERATION + 2, 800, 0}};
    struct fixture *f = *state;
    struct record row = *sample_of(RECORD_LAUNCH);
    int loaded = 0;

    fixture_write_samples(f);
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        row.u.launch.generation = launches[i].generation;
        row.u.launch.began_step = launches[i].began_step;
        fixture_write(f, &row);
        assert_int_equal(
            fixture_look(f, "SELECT count(*) FROM checkpoint WHERE " COUNTS_SQL("checkpoint")),
            launches[i].counts);
    }
    assert_int_equal(store_load(f->store, count_checkpoints, &loaded, &f->err), MUSTER_OK);
    assert_int_equal(loaded, 1); /* those that do not count may be deleted */
}

#define ROW(round, generation, step, state)                                                   \
    "INSERT INTO round (job, round, generation, attempt, cause, state, step, aborted_steps,"  \
    " boot_id, opened_boot_ms, opened_unix_ms) VALUES ('train', " #round ", " #generation     \
    ", 1, 'policy', 'committed', " #step ", 0, '', 1, 1);"                                    \
    "INSERT INTO checkpoint (job, round, generation, step, state, cause, layout, world_size," \
    " shards_required, bytes, path, epoch, step_in_epoch, data_position, committed_unix_ms)"  \
    " VALUES ('train', " #round ", " #generation ", " #step ", '" state                       \
    "', 'policy', 'replicated', 1, 1, 1, 'p', -1, -1, -1, 5);"
#define LAUNCH(generation, resumed, opened, started, end)                                        \
    "INSERT INTO generation (job, generation, state, world_size, layout, checkpoint_dir,"        \
    " resume_checkpoint, resume_step, resume_ready, fallback, opened_unix_ms, started_unix_ms,"  \
    " end_text) VALUES ('train', " #generation ", 'ended', 1, 'replicated', '/ck', 0, " #resumed \
    ", 1, 0, " #opened ", " #started ", '" end "');"

static enum muster_status migrate_to(struct fixture *f, const struct sql_migration *migrations)
{
    const struct store_options options = {.allow_network_fs = true, .migrations = migrations};
    struct store store = {.path = f->db, .lock_fd = -1};
    enum muster_status status = store_connect(&store, &options, &f->err);

    sqlite3_close(store.db);
    return status;
}

/* Launch 2 went back from 30 to 10, and 3 was found on disk: it saved 15 of an unknown beginning.
 * Launch 4 never started, and 5 was ahead of a copy and saved nothing: they gave up nothing. */
static void a_database_with_superseded_rows_counts_what_it_counted(void **state)
{
    struct sql_migration before[32] = {{0, NULL, NULL}};
    struct fixture *f = *state;

    for (size_t i = 0; i < 15; i++)
        before[i] = sql_migrations[i];
    store_close(&f->store);
    snprintf(f->db, sizeof f->db, "%s", scratch_path(f->dir, "old.db"));
    assert_int_equal(migrate_to(f, before), MUSTER_OK);
    fixture_change(f,
                   "INSERT INTO job (job, state, state_unix_ms, generation, seq, round,"
                   " save_now_id, created_unix_ms) VALUES ('train', 'ended', 1, 5, 0, 9, '', 5)");
    fixture_change(f, LAUNCH(1, 0, 1, 1, "") LAUNCH(2, 10, 2, 2, "")
                          LAUNCH(3, 0, 0, 0, "found on disk") LAUNCH(4, 2, 4, 0, "")
                              LAUNCH(5, 2, 0, 5, ""));
    fixture_change(f,
                   ROW(1, 1, 10, "committed") ROW(2, 1, 30, "superseded") ROW(3, 2, 14, "committed")
                       ROW(4, 2, 20, "superseded") ROW(5, 3, 15, "committed"));
    fixture_reopen(f);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM checkpoint WHERE state = 'committed'"),
                     5);
    assert_int_equal(
        fixture_look(f, "SELECT sum(step) FROM checkpoint WHERE " COUNTS_SQL("checkpoint")),
        10 + 14 + 15);
    assert_int_equal(fixture_look(f, "SELECT count(*) FROM launch"), 3);
}

/* A long history, each launch behind the last save: in SQLite's own steps, so that no load of the
 * machine counts. */
static int64_t steps_of_a_start(struct fixture *f, int launches)
{
    const struct record *job = sample_of(RECORD_JOB);
    char sql[1024];
    int64_t steps = 0;
    int loaded = 0;

    store_close(&f->store);
    snprintf(f->db, sizeof f->db, "%s", scratch_path(f->dir, launches == FEW ? "few" : "many"));
    fixture_reopen(f);
    fixture_write(f, job);
    store_close(&f->store);
    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE n AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1"
             " FROM x WHERE n < %d) SELECT n FROM x;"
             "INSERT INTO generation (job, generation, state, world_size, layout, checkpoint_dir,"
             " resume_checkpoint, resume_step, resume_ready, fallback, opened_unix_ms)"
             " SELECT job, n, 'ended', 1, 'replicated', '/ck', 0, n - 1, 1, 0, 1 FROM job, n;"
             "INSERT INTO launch SELECT job, n, n - 1 FROM job, n;"
             "UPDATE job SET generation = %d, round = %d",
             launches, launches, launches);
    fixture_change(f, sql);
    fixture_change(
        f, "INSERT INTO round (job, round, generation, attempt, cause, state, step, aborted_steps,"
           " boot_id, opened_boot_ms, opened_unix_ms) SELECT job, generation, generation, 1,"
           " 'policy', 'committed', generation, 0, '', 1, 1 FROM generation;"
           "INSERT INTO checkpoint (job, round, generation, step, state, cause, layout, world_size,"
           " shards_required, bytes, path, epoch, step_in_epoch, data_position, committed_unix_ms)"
           " SELECT job, generation, generation, generation, 'committed', 'policy', 'replicated',"
           " 1, 1, 1, 'p', -1, -1, -1, 5 FROM generation");
    fixture_reopen(f);
    sqlite3_progress_handler(f->store->db, 100, count_steps, &steps);
    if (store_load_job(f->store, job->u.job.job, count_checkpoints, &loaded, &f->err) != MUSTER_OK)
        fail_msg("%s", f->err.text);
    sqlite3_progress_handler(f->store->db, 0, NULL, NULL);
    assert_int_equal(loaded, launches);
    return steps;
}

static void a_start_costs_what_its_launches_cost(void **state)
{
    int64_t few = steps_of_a_start(*state, FEW), many = steps_of_a_start(*state, 8 * FEW);

    if (few == 0 || many > 12 * few)
        fail_msg("%lld steps for %d launches, %lld for %d", (long long)few * 100, FEW,
                 (long long)many * 100, 8 * FEW);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_later_launch_went_back_behind_does_not_count),
        TEST(a_database_with_superseded_rows_counts_what_it_counted),
        TEST(a_start_costs_what_its_launches_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
