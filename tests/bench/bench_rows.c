/* bench_rows - what a tool or a reader waits for its lists: prints the milliseconds for a tenth of the rows and for all.
 *   bench_rows [ROWS] */
#include <muster/client.h>
#include <muster/manager.h>

#include "schema/manifest/manifest.h"
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

static void put_manifest(const char *root, int step)
{
    const struct wire_file file = {"shard-00000-0000000000000001.safetensors", 4096,
                                   "xxh3-128:00000000000000000000000000000000"};
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
    struct muster_error err;
    char *text = NULL;
    size_t size = 0;

    for (uint64_t rank = 0; rank < DB_RANKS; rank++)
        shards[rank] = (struct manifest_shard){rank, rank + 1, &file, 1};
    must(manifest_render(&manifest, &text, &size, &err), &err);
    mkdir(scratch_path(root, "%d", step), 0777);
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
    must(muster_manager_all_steps(manager, &all, &count, &err), &err);
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

static double run_tool(const char *path, const char *verb)
{
    char line[2 * SCRATCH_PATH_MAX];
    double began_ms = now_ms();

    snprintf(line, sizeof line, "'%s' %s --db '%s' >/dev/null", MUSTER_PATH, verb, path);
    if (system(line) != 0)
        exit(1);
    return now_ms() - began_ms;
}

static void measure(const char *directory, int count)
{
    char path[SCRATCH_PATH_MAX], root[SCRATCH_PATH_MAX];
    muster_client_t *client = NULL;
    struct muster_error err;

    snprintf(path, sizeof path, "%s", scratch_path(directory, "%d.db", count));
    fill(path, count);
    snprintf(root, sizeof root, "%s", scratch_path(directory, "%d", count));
    mkdir(root, 0777);
    for (int i = 1; i <= count; i++)
        put_manifest(root, i);
    must(muster_client_open(path, 1000, &client, &err), &err);
    printf("%6d rows: rounds %.0f ms, checkpoints %.0f ms, a directory's list %.0f ms\n", count,
           list_rows(client, muster_client_rounds), list_rows(client, muster_client_checkpoints),
           list_directory(root));
    muster_client_close(&client, NULL);
    printf("%6d rows: `muster rounds` %.0f ms, `muster why` %.0f ms\n", count,
           run_tool(path, "rounds"), run_tool(path, "why"));
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 10000;
    char directory[SCRATCH_PATH_MAX];

    scratch_make(directory);
    measure(directory, count / 10);
    measure(directory, count);
    scratch_remove(directory);
    return 0;
}
