/* Eight times the rows cost eight times the work, not 64 times: counted in SQLite's own steps, so
 * that no load of the machine counts. */
#include <muster/client.h>

#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#define FEW 256 /* two pages */
#define MANY (8 * FEW)
#define GROWTH_MAX 10

static int64_t steps; /* of all statements of this process */

static int count_steps(unsigned what, void *arg, void *statement, void *nanoseconds)
{
    (void)what;
    (void)arg;
    (void)nanoseconds;
    steps += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
    return 0;
}

static int watch(sqlite3 *db, const char **ret_text, const struct sqlite3_api_routines *api)
{
    (void)ret_text;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, count_steps, NULL);
}

/* As many rows again, with numbers behind the last. */
static void twice(struct db_fixture *db, const char *table, const char *number, int count)
{
    db_sql(db, "CREATE TEMP TABLE copy AS SELECT * FROM %s", table);
    db_sql(db, "UPDATE copy SET %s = %s + %d", number, number, count);
    db_sql(db, "INSERT INTO %s SELECT * FROM copy", table);
    db_sql(db, "DROP TABLE copy");
}

static void fill(const char *path, int count)
{
    static const char *const tables[][2] = {{"generation", "generation"}, {"round", "round"},
                                            {"checkpoint", "round"},      {"participant", "round"},
                                            {"shard", "round"},           {"event", "seq"}};
    struct db_fixture db;

    db_open(&db, path);
    db_job(&db, NULL);
    db_generation(&db, 1, NULL);
    db_node(&db, 1, 0, NULL);
    db_round(&db, 1, "cause = 'policy', state = 'committed', step = 1");
    db_checkpoint(&db, 1, "step = 1, path = '1'");
    db_event(&db, 1, NULL);
    db_member(&db, 1, 0, NULL);
    db_shard(&db, 1, 0, NULL);
    for (int rows = 1; rows < count; rows *= 2)
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
            twice(&db, tables[i][0], tables[i][1], rows);
    db_close(&db);
}

static enum muster_status all_events(muster_client_t *client, const char *job, int64_t after,
                                     muster_rows_t **ret_rows, struct muster_error *err)
{
    return muster_client_events(client, job, after, NULL, ret_rows, err);
}

static const struct {
    const char *name;
    enum muster_status (*ask)(muster_client_t *client, const char *job, int64_t after,
                              muster_rows_t **ret_rows, struct muster_error *err);
} lists[] = {{"rounds", muster_client_rounds},
             {"checkpoints", muster_client_checkpoints},
             {"generations", muster_client_generations},
             {"events", all_events}};
#define LISTS (sizeof lists / sizeof *lists)

static void measure(const char *path, int count, int64_t ret_steps[LISTS])
{
    muster_client_t *client = NULL;
    struct muster_error err;

    fill(path, count);
    if (muster_client_open(path, 1000, &client, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < LISTS; i++) {
        muster_rows_t *rows = NULL;

        steps = 0;
        if (lists[i].ask(client, "words", 0, &rows, &err) != MUSTER_OK)
            fail_msg("%s", err.text);
        ret_steps[i] = steps;
        assert_int_equal(muster_rows_count(rows), count);
        muster_rows_destroy(&rows);
    }
    muster_client_close(&client, NULL);
}

static void a_list_costs_what_its_rows_cost(void **state)
{
    char directory[SCRATCH_PATH_MAX];
    int64_t few[LISTS], many[LISTS];

    (void)state;
    scratch_make(directory);
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch), SQLITE_OK);
    measure(scratch_path(directory, "few.db"), FEW, few);
    measure(scratch_path(directory, "many.db"), MANY, many);
    scratch_remove(directory);
    for (size_t i = 0; i < LISTS; i++)
        if (few[i] == 0 || many[i] > GROWTH_MAX * few[i])
            fail_msg("%s: %lld steps for %d rows, %lld for %d", lists[i].name, (long long)few[i],
                     FEW, (long long)many[i], MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_costs_what_its_rows_cost)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
