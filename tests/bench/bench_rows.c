/* bench_rows - what a tool or a reader waits for its lists, and a broker for its start: prints the
 * milliseconds for a tenth of the rows and for all.
 *   bench_rows [ROWS] [EVENTS]
 *   bench_rows limits      exits with 1 if one takes more than TIMES_MAX times as long for all as
 *                          for a tenth
 *   bench_rows old [EVENTS] [CHECKPOINTS] [ROUNDS]
 *                          a broker that has run for long, each number for itself: the time of its
 *                          start and of the tool's questions to it, the shortest of TRIES; beside
 *                          the long lists, SQLite alone with the same pages of the same rows */
#include <muster/client.h>
#include <muster/manager.h>

#include "node/shard/checksum.h"
#include "schema/manifest/manifest.h"
#include "schema/sql/queries.h"
#include "tests/bench/broker.h"
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define START_MAX_MS 60000
#define JOB_EVENTS 100000 /* of which a journal keeps no more */
#define TIMES_MAX 30      /* what is linear takes 10, what is quadratic 100 */
#define LEAST_MS 20

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void must(enum muster_status status, const struct muster_error *err)
{
    if (status == MUSTER_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void fill(const char *path, int count)
{
    struct db_fixture db;

    db_open(&db, path);
    db_sql(&db, "BEGIN");
    db_job(&db, NULL);
    db_generation(&db, 1, NULL);
    for (int rank = 0; rank < DB_RANKS; rank++)
        db_node(&db, 1, rank, NULL);
    for (int i = 1; i <= count; i++) {
        db_round(&db, i, "cause = 'policy', state = 'committed', step = %d", i);
        db_checkpoint(&db, i, "step = %d, path = '%d'", i, i);
        db_event(&db, i, NULL);
        for (int rank = 0; rank < DB_RANKS; rank++) {
            db_member(&db, i, rank, NULL);
            db_shard(&db, i, rank, NULL);
        }
    }
    db_sql(&db, "COMMIT");
    db_close(&db);
}

#define SHARD "shard-%05d-0000000000000001.safetensors"
#define SHARD_BYTES 64

static void put_checkpoint(const char *root, int step)
{
    char names[DB_RANKS][48], checksum[MANIFEST_CHECKSUM_SIZE], bytes[SHARD_BYTES] = "bench";
    struct wire_file files[DB_RANKS];
    struct manifest_shard shards[DB_RANKS];
    struct manifest manifest = {.job = "words",
                                .generation = 1,
                                .round = (uint64_t)step,
                                .step = step,
                                .layout = LAYOUT_SHARDED,
                                .world_size = DB_RANKS,
                                .total_run_calls = step,
                                .created_unix_ms = DB_T0 + step,
                                .cause = "policy",
                                .metrics = "{\"loss\": 0.5}",
                                .shards = shards,
                                .shard_count = DB_RANKS};
    struct checksum *sum = checksum_create(CHECKSUM_XXH3);
    struct muster_error err;
    char *text = NULL;
    size_t size = 0;

    checksum_update(sum, bytes, sizeof bytes);
    checksum_text(sum, checksum);
    checksum_destroy(&sum);
    mkdir(scratch_path(root, "%d", step), 0777);
    for (int rank = 0; rank < DB_RANKS; rank++) {
        snprintf(names[rank], sizeof names[rank], SHARD, rank);
        files[rank] = (struct wire_file){names[rank], sizeof bytes, checksum};
        shards[rank] = (struct manifest_shard){(uint64_t)rank, (uint64_t)rank + 1, &files[rank], 1};
        scratch_write(scratch_path(root, "%d/%s", step, names[rank]), bytes, sizeof bytes);
    }
    must(manifest_render(&manifest, &text, &size, &err), &err);
    scratch_write(scratch_path(root, "%d/" MANIFEST_FILE_NAME, step), text, size);
    free(text);
}

static double list_directory(const char *root)
{
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    const struct muster_checkpoint_info *all;
    muster_manager_t *manager = NULL;
    struct muster_error err;
    size_t count;
    double began_ms;

    options.checkpoint_dir = root;
    must(muster_manager_open(&options, &manager, &err), &err);
    began_ms = now_ms();
    must(muster_manager_all_steps(manager, &all, &count, sizeof *all, &err), &err);
    began_ms = now_ms() - began_ms;
    must(muster_manager_close(&manager, 0, &err), &err);
    return began_ms;
}

typedef enum muster_status ask_fn(muster_client_t *client, const char *job, int64_t after,
                                  muster_rows_t **ret_rows, struct muster_error *err);

static double list_rows(muster_client_t *client, ask_fn *ask)
{
    muster_rows_t *rows = NULL;
    struct muster_error err;
    double began_ms = now_ms();

    must(ask(client, "words", 0, &rows, &err), &err);
    muster_rows_destroy(&rows);
    return now_ms() - began_ms;
}

/* By -b an address or by --db a database; the tool's exit code is to be 0. */
static double run_tool(const char *verb, const char *option, const char *path)
{
    char line[2 * SCRATCH_PATH_MAX];
    double began_ms = now_ms();

    snprintf(line, sizeof line, "'%s' %s %s '%s' >/dev/null", MUSTER_PATH, verb, option, path);
    if (system(line) != 0)
        exit(1);
    return now_ms() - began_ms;
}

/* From the program's start until it answers. */
static double start_broker(const char *db, const char *address)
{
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;
    double began_ms = now_ms();

    if (!bench_broker_start(MUSTERD_PATH, db, address)) {
        perror(MUSTERD_PATH);
        exit(1);
    }
    must(muster_client_open(address, START_MAX_MS, &client, &err), &err);
    while (muster_client_jobs(client, NULL, &rows, &err) != MUSTER_OK &&
           now_ms() - began_ms < START_MAX_MS)
        ; /* its socket is not there yet */
    began_ms = now_ms() - began_ms;
    muster_rows_destroy(&rows);
    muster_client_close(&client, NULL);
    return began_ms;
}

static void put_events(struct db_fixture *db, const char *job, int count)
{
    db->job = job;
    db_job(db, "state = 'running', seq = %d", count);
    db_generation(db, 1, NULL);
    db_sql(db,
           "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
           " INSERT INTO event (job, seq, generation, kind, round, rank, step, text, unix_ms,"
           " boot_id, deadline_boot_ms, body) SELECT '%s', i, 1, 'commit', i, -1, i, '',"
           " %lld + i, 'boot', 0, zeroblob(100) FROM n",
           count, job, DB_T0);
}

/* Jobs of as many events as a journal keeps. */
static void put_jobs(struct db_fixture *db, int events)
{
    for (int left = events, job = 1; left > 0; left -= JOB_EVENTS, job++) {
        char name[32];

        snprintf(name, sizeof name, "job%d", job);
        put_events(db, name, left < JOB_EVENTS ? left : JOB_EVENTS);
    }
}

static void fill_events(const char *path, int count)
{
    struct db_fixture db;

    db_open(&db, path);
    db_sql(&db, "BEGIN");
    put_jobs(&db, count);
    db_sql(&db, "COMMIT");
    db_close(&db);
}

/* --- a broker that has run for long ----------------------------------------------------------- */

#define TRIES 7
#define FAILS 20
#define START_AIM_MS 1000
#define ASK_AIM_MS 100

/* The job that is asked about: every so many-th round has a checkpoint. Of the others, whose
 * checkpoints a policy has deleted, one of FAILS failed. */
static void put_rounds(struct db_fixture *db, int checkpoints, int rounds)
{
    const int each = checkpoints > 0 ? rounds / checkpoints : rounds + 1;

    for (int rank = 0; rank < DB_RANKS; rank++)
        db_node(db, 1, rank, NULL);
    for (int i = 1; i <= rounds; i++) {
        const bool saved = i % each == 0;

        const bool failed = !saved && i % FAILS == 1;

        db_round(db, i, "cause = 'policy', state = '%s', step = %d, reason = '%s'",
                 failed ? "aborted" : "committed", i, failed ? "rank 1 was lost" : "");
        for (int rank = 0; rank < DB_RANKS; rank++)
            db_member(db, i, rank, NULL);
        if (!saved)
            continue;
        db_checkpoint(db, i, "step = %d, path = '%d'", i, i);
        for (int rank = 0; rank < DB_RANKS; rank++)
            db_shard(db, i, rank, NULL);
    }
}

static void fill_old(const char *path, int events, int checkpoints, int rounds)
{
    struct db_fixture db;
    int own = events < JOB_EVENTS ? events : JOB_EVENTS;

    db_open(&db, path);
    db_sql(&db, "BEGIN");
    put_jobs(&db, events - own);
    put_events(&db, "words", own);
    put_rounds(&db, checkpoints, rounds);
    db_sql(&db, "COMMIT");
    db_close(&db);
}

/* A running broker deletes the oldest rounds slice by slice. Returns how many are left. */
static size_t wait_for_trim(const char *address)
{
    const struct timespec while_ = {.tv_nsec = 500000000};
    size_t before = 0, count = 0;
    muster_client_t *client = NULL;
    muster_rows_t *rows = NULL;
    struct muster_error err;

    must(muster_client_open(address, START_MAX_MS, &client, &err), &err);
    do {
        nanosleep(&while_, NULL);
        before = count;
        must(muster_client_rounds(client, "words", 0, &rows, &err), &err);
        count = muster_rows_count(rows);
        muster_rows_destroy(&rows);
    } while (count != before);
    muster_client_close(&client, NULL);
    return count;
}

/* SQLite alone: the file is read page by page with the broker's own SELECT. */
static double read_bare(const char *path, const char *query)
{
    double began_ms = now_ms();
    sqlite3_stmt *s = NULL;
    sqlite3 *db = NULL;
    int64_t last = 0;
    int rows;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, query_sql(query), -1, &s, NULL) != SQLITE_OK)
        exit(1);
    do {
        sqlite3_bind_text(s, 1, "words", -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 3, last);
        sqlite3_bind_int64(s, 4, 0);
        for (rows = 0; sqlite3_step(s) == SQLITE_ROW; rows++)
            last = sqlite3_column_int64(s, 0);
        sqlite3_reset(s);
    } while (rows == QUERY_PAGE_ROWS);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return now_ms() - began_ms;
}

static void print_bare(const char *path, const char *query)
{
    double least_ms = read_bare(path, query);

    for (int again = 1; again < TRIES; again++) {
        double ms = read_bare(path, query);

        least_ms = ms < least_ms ? ms : least_ms;
    }
    printf("%-11s, SQLite alone   %6.0f ms\n", query, least_ms);
}

static void print_aim(const char *what, double took_ms, double aim_ms)
{
    printf("%-26s %6.0f ms, aim %4.0f ms%s\n", what, took_ms, aim_ms,
           took_ms > aim_ms ? ": missed" : "");
}

static void measure_old(const char *directory, int events, int checkpoints, int rounds)
{
    static const char *const verbs[] = {"status",
                                        "status words",
                                        "rounds --job words",
                                        "rounds --job words --since 0",
                                        "checkpoints --job words",
                                        "why --job words"};
    char path[SCRATCH_PATH_MAX], address[SCRATCH_PATH_MAX];
    struct stat file;

    snprintf(path, sizeof path, "%s", scratch_path(directory, "old.db"));
    snprintf(address, sizeof address, "ipc://%s", scratch_path(directory, "old.sock"));
    fill_old(path, events, checkpoints, rounds);
    printf("%d events, %d checkpoints, %d rounds: %.0f MB\n", events, checkpoints, rounds,
           stat(path, &file) == 0 ? (double)file.st_size / 1e6 : 0);
    print_aim("start with all rounds", start_broker(path, address), START_AIM_MS);
    printf("%zu rounds are left\n", wait_for_trim(address));
    bench_broker_stop();
    print_aim("start", start_broker(path, address), START_AIM_MS);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        double least_ms = run_tool(verbs[i], "-b", address);

        for (int again = 1; again < TRIES; again++) {
            double ms = run_tool(verbs[i], "-b", address);

            least_ms = ms < least_ms ? ms : least_ms;
        }
        print_aim(verbs[i], least_ms, ASK_AIM_MS);
    }
    print_bare(path, "rounds");
    print_bare(path, "checkpoints");
    bench_broker_stop();
}

static int number_at(int argc, char **argv, int place, int otherwise)
{
    return argc > place ? atoi(argv[place]) : otherwise;
}

enum { ROUNDS, CHECKPOINTS, DIRECTORY, RUN_ROUNDS, RUN_WHY, IMPORT, VERIFY, START, KINDS };
static const char *const kinds[KINDS] = {
    [ROUNDS] = "rounds",
    [CHECKPOINTS] = "checkpoints",
    [DIRECTORY] = "a directory's list",
    [RUN_ROUNDS] = "`muster rounds --since 0`",
    [RUN_WHY] = "`muster why`",
    [IMPORT] = "`muster import`",
    [VERIFY] = "`muster verify`",
    [START] = "a broker's start",
};

static void measure(const char *directory, int count, int events, double ret_ms[KINDS])
{
    char path[SCRATCH_PATH_MAX], root[SCRATCH_PATH_MAX], address[SCRATCH_PATH_MAX];
    muster_client_t *client = NULL;
    struct muster_error err;

    snprintf(path, sizeof path, "%s", scratch_path(directory, "%d.db", count));
    fill(path, count);
    snprintf(root, sizeof root, "%s", scratch_path(directory, "%d", count));
    mkdir(root, 0777);
    for (int i = 1; i <= count; i++)
        put_checkpoint(root, i);
    must(muster_client_open(path, 1000, &client, &err), &err);
    ret_ms[ROUNDS] = list_rows(client, muster_client_rounds);
    ret_ms[CHECKPOINTS] = list_rows(client, muster_client_checkpoints);
    muster_client_close(&client, NULL);
    ret_ms[DIRECTORY] = list_directory(root);
    ret_ms[RUN_ROUNDS] = run_tool("rounds --since 0", "--db", path);
    ret_ms[RUN_WHY] = run_tool("why", "--db", path);

    snprintf(address, sizeof address, "ipc://%s", scratch_path(directory, "%d.sock", count));
    snprintf(path, sizeof path, "%s", scratch_path(directory, "%d-events.db", count));
    fill_events(path, events);
    ret_ms[START] = start_broker(path, address);
    char verb[SCRATCH_PATH_MAX + 16];
    snprintf(verb, sizeof verb, "import '%s'", root);
    ret_ms[IMPORT] = run_tool(verb, "-b", address);
    ret_ms[VERIFY] = run_tool("verify --job words", "-b", address);
    bench_broker_stop();
}

static void print_line(int count, const double ms[KINDS])
{
    printf("%6d rows:", count);
    for (int i = 0; i < KINDS; i++)
        printf("%s %s %.0f ms", i > 0 ? "," : "", kinds[i], ms[i]);
    printf("\n");
}

/* Ten times the rows: what is not linear shows, whatever machine this is. Short times are mostly a
 * process's start. */
static int exceed(const double few[KINDS], const double many[KINDS])
{
    int bad = 0;

    for (int i = 0; i < KINDS; i++) {
        double times = many[i] / (few[i] > LEAST_MS ? few[i] : LEAST_MS);

        if (times <= TIMES_MAX)
            continue;
        printf("%s: %.1f times as long for 10 times the rows, at most %d\n", kinds[i], times,
               TIMES_MAX);
        bad = 1;
    }
    return bad;
}

int main(int argc, char **argv)
{
    const bool limits = argc > 1 && strcmp(argv[1], "limits") == 0;
    const bool old = argc > 1 && strcmp(argv[1], "old") == 0;
    const int count = argc > 1 && !limits ? atoi(argv[1]) : 10000;
    const int events = argc > 2 ? atoi(argv[2]) : 1000000;
    double few[KINDS], many[KINDS];
    char directory[SCRATCH_PATH_MAX];

    scratch_make(directory);
    atexit(bench_broker_kill);
    if (old) {
        measure_old(directory, number_at(argc, argv, 2, 1000000), number_at(argc, argv, 3, 10000),
                    number_at(argc, argv, 4, 100000));
        scratch_remove(directory);
        return 0;
    }
    measure(directory, count / 10, events / 10, few);
    print_line(count / 10, few);
    measure(directory, count, events, many);
    print_line(count, many);
    scratch_remove(directory);
    return limits ? exceed(few, many) : 0;
}
