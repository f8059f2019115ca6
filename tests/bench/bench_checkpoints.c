/* How long it takes to list 10,000 checkpoints, as `muster checkpoints` does, beside a bare SELECT of the
 * same rows in the same program. One JSON object on stdout; medians over the rounds. */
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <muster/client.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECKPOINTS 10000
#define ROUNDS 9

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
    db_job(&db, "round = %d", CHECKPOINTS);
    db_generation(&db, 1, "state = 'ended'");
    for (int i = 1; i <= CHECKPOINTS; i++) {
        db_round(&db, i, "state = 'committed', step = %d", i * 10);
        db_checkpoint(&db, i, "step = %d, state = 'committed', metrics = '{\"loss\": 0.5}'",
                      i * 10);
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
    if (rows != CHECKPOINTS)
        exit(EXIT_FAILURE);
    return now_ms() - began;
}

static double measure_list(const char *path)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;
    double began = now_ms();

    if (muster_client_open(path, 5000, &client, &err) != MUSTER_OK ||
        muster_client_checkpoints(client, "words", 0, &rows, &err) != MUSTER_OK) {
        fprintf(stderr, "bench_checkpoints: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    double took = now_ms() - began;
    if (muster_rows_count(rows) != CHECKPOINTS)
        exit(EXIT_FAILURE);
    muster_rows_destroy(&rows);
    muster_client_close(&client);
    return took;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(void)
{
    char dir[SCRATCH_PATH_MAX], path[SCRATCH_PATH_MAX + 16];
    double list[ROUNDS], bare[ROUNDS];

    scratch_make(dir);
    snprintf(path, sizeof path, "%s/muster.db", dir);
    fill(path);
    for (int i = 0; i < ROUNDS; i++) { /* in turn, so that both see the same machine */
        bare[i] = measure_select(path);
        list[i] = measure_list(path);
    }
    qsort(list, ROUNDS, sizeof *list, by_value);
    qsort(bare, ROUNDS, sizeof *bare, by_value);
    printf(
        "{\"bench\": \"checkpoints\", \"checkpoints\": %d, \"list_ms\": %.1f, \"select_ms\": %.1f, "
        "\"ratio\": %.2f}\n",
        CHECKPOINTS, list[ROUNDS / 2], bare[ROUNDS / 2], list[ROUNDS / 2] / bare[ROUNDS / 2]);
    scratch_remove(dir);
    return list[ROUNDS / 2] < 100 ? EXIT_SUCCESS : EXIT_FAILURE;
}
