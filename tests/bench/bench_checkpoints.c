/* How long it takes to list 10,000 checkpoints: from the database and through a broker, as `muster
 * checkpoints` does, and through a broker by a manager; beside a bare SELECT of the same rows in
 * the same run. One JSON object on stdout; medians over the rounds. It fails if one of the lists
 * takes 100 ms or more. bench_checkpoints COUNT lists so many, and fails for no time. */
#include "tests/bench/broker.h"
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <muster/client.h>
#include <muster/manager.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHECKPOINTS_DEFAULT 10000
#define ROUNDS 9
#define START_MAX_MS 60000

static int checkpoints = CHECKPOINTS_DEFAULT;

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fill(const char *path)
{
    struct db_fixture db;

    db_open(&db, path);
    db_sql(&db, "BEGIN");
    db_job(&db, "round = %d", checkpoints);
    db_generation(&db, 1, "state = 'ended'");
    for (int i = 1; i <= checkpoints; i++) {
        db_round(&db, i, "state = 'committed', step = %d", i * 10);
        db_checkpoint(&db, i,
                      "step = %d, state = 'committed', path = '%d', metrics = '{\"loss\": 0.5}'",
                      i * 10, i);
        db_shard(&db, i, 0, NULL);
    }
    db_sql(&db, "COMMIT");
    db_close(&db);
}

static double measure_select(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    double began = now_ms();
    int rows = 0;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT * FROM checkpoint WHERE job = 'words' ORDER BY round", -1,
                           &statement, NULL) != SQLITE_OK)
        exit(EXIT_FAILURE);
    while (sqlite3_step(statement) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(statement); i++)
            rows += sqlite3_column_text(statement, i) != NULL && i == 0;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    if (rows != checkpoints)
        exit(EXIT_FAILURE);
    return now_ms() - began;
}

static void fail(const struct muster_error *err)
{
    fprintf(stderr, "bench_checkpoints: %s\n", err->text);
    bench_broker_kill();
    exit(EXIT_FAILURE);
}

/* As a program that reads a job's checkpoints lists them. */
static double measure_manager(const char *address)
{
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    const struct muster_checkpoint_info *all = NULL;
    muster_manager_t *manager = NULL;
    struct muster_error err = {.text = "the manager lists too few"};
    size_t count = 0;
    double began = now_ms();

    options.broker = address;
    options.job = "words";
    if (muster_manager_open(&options, &manager, &err) != MUSTER_OK ||
        muster_manager_all_steps(manager, &all, &count, sizeof *all, &err) != MUSTER_OK ||
        count != (size_t)checkpoints)
        fail(&err);
    double took = now_ms() - began;
    muster_manager_close(&manager, 0, NULL);
    return took;
}

/* Its socket comes a moment behind its start. */
static void await_broker(const char *address)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;
    double began = now_ms();

    if (muster_client_open(address, 5000, &client, &err) != MUSTER_OK)
        fail(&err);
    while (muster_client_jobs(client, NULL, &rows, &err) != MUSTER_OK)
        if (now_ms() - began > START_MAX_MS)
            fail(&err);
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
}

static double measure_list(const char *path)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;
    double began = now_ms();

    if (muster_client_open(path, 5000, &client, &err) != MUSTER_OK ||
        muster_client_checkpoints(client, "words", 0, &rows, &err) != MUSTER_OK)
        fail(&err);
    double took = now_ms() - began;
    if (muster_rows_count(rows) != (size_t)checkpoints)
        exit(EXIT_FAILURE);
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
    return took;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    const bool limited = argc < 2;
    char dir[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX + 16], address[SCRATCH_PATH_MAX + 16];
    double list[ROUNDS], bare[ROUNDS], asked[ROUNDS], manager[ROUNDS];

    if (!limited)
        checkpoints = atoi(argv[1]);
    scratch_make(dir);
    snprintf(path, sizeof path, "%s/muster.db", dir);
    snprintf(address, sizeof address, "ipc://%s/socket", dir);
    fill(path);
    if (!bench_broker_start(MUSTERD_PATH, path, address))
        exit(EXIT_FAILURE);
    await_broker(address);
    for (int i = 0; i < ROUNDS; i++) { /* in turn, so that all see the same machine */
        bare[i] = measure_select(path);
        list[i] = measure_list(path);
        asked[i] = measure_list(address);
        manager[i] = measure_manager(address);
    }
    bench_broker_stop();
    printf("{\"bench\": \"checkpoints\", \"checkpoints\": %d, \"list_ms\": %.1f, "
           "\"broker_ms\": %.1f, \"manager_ms\": %.1f, \"select_ms\": %.1f, \"ratio\": %.2f}\n",
           checkpoints, median(list), median(asked), median(manager), median(bare),
           median(list) / median(bare));
    scratch_remove(dir);
    return !limited || (median(list) < 100 && median(asked) < 100 && median(manager) < 100)
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
