/* Batches a second: transactions that each are on disk before the next one, in SQLite alone and in
 * the log that brokers share. usage: bench_batches ADDRESS DIRECTORY [SECONDS]; one JSON object.
 *
 *   sqlite   one synced transaction of a row of so many bytes
 *   shared   fenced_log_append of as many, one question after another */
#include "fenced/fenced_log.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const size_t sizes[] = {300, 3000, 30000};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void die(const char *why)
{
    fprintf(stderr, "bench_batches: %s\n", why);
    exit(EXIT_FAILURE);
}

static double of_sqlite(sqlite3 *db, size_t size, double seconds)
{
    sqlite3_stmt *insert = NULL;
    double began_s = now_s();
    size_t count = 0;

    if (sqlite3_prepare_v2(db, "INSERT INTO batch (data) VALUES (zeroblob(?1))", -1, &insert,
                           NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
    sqlite3_bind_int64(insert, 1, (sqlite3_int64)size);
    for (; now_s() - began_s < seconds; count++)
        if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK)
            die(sqlite3_errmsg(db));
    sqlite3_finalize(insert);
    return (double)count / (now_s() - began_s);
}

static double of_log(struct fenced_log *log, size_t size, double seconds)
{
    static uint8_t bytes[30000];
    double began_s = now_s();
    struct muster_error err;
    size_t count = 0;

    for (; now_s() - began_s < seconds; count++)
        if (fenced_log_append(log, bytes, size, &err) != MUSTER_OK)
            die(err.text);
    return (double)count / (now_s() - began_s);
}

int main(int argc, char **argv)
{
    const struct postgres_use use = {.option = "ADDRESS"};
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 2;
    struct fenced_log_head head;
    struct fenced_log *log = NULL;
    struct muster_error err;
    sqlite3 *db = NULL;
    char path[PATH_MAX];

    if (argc < 3) { /* `./tools/dev bench` has no PostgreSQL */
        fprintf(stderr, "bench_batches: tests/bench/bench_shared.sh runs it\n");
        return EXIT_SUCCESS;
    }
    snprintf(path, sizeof path, "%s/bench-batches.db", argv[2]);
    unlink(path);
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                     "CREATE TABLE batch (seq INTEGER PRIMARY KEY, data BLOB)",
                     NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
    if (fenced_log_open(argv[1], "bench", &use, &log, &err) != MUSTER_OK ||
        fenced_log_take(log, 600000, &head, &err) != MUSTER_OK)
        die(err.text);
    printf("{\"bench\": \"batches\", \"results\": [");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double alone = of_sqlite(db, sizes[i], seconds), shared = of_log(log, sizes[i], seconds);

        printf("%s{\"bytes\": %zu, \"sqlite_per_s\": %.0f, \"shared_per_s\": %.0f}",
               i > 0 ? ", " : "", sizes[i], alone, shared);
        fflush(stdout);
    }
    printf("]}\n");
    fenced_log_release(log);
    fenced_log_close(&log);
    sqlite3_close(db);
    unlink(path);
    return EXIT_SUCCESS;
}
