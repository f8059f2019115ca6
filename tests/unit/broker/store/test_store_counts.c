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
 * Launch 4 never started, and 5 was adopted and saved nothing: they gave up nothing. */
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_later_launch_went_back_behind_does_not_count),
        TEST(a_database_with_superseded_rows_counts_what_it_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
