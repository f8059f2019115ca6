/* migration_sweep - see migration_sweep.h. */
#include "tests/faults/migration_sweep.h"

#include "broker/store/store.h"
#include "broker/store/store_internal.h"
#include "schema/sql/sql.h"
#include "tests/faults/allocations.h"
#include "tests/faults/file_calls.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSIONS_MAX 64

static struct fault_vfs *faults;

struct run {
    char dir[SCRATCH_PATH_MAX];
    char path[SCRATCH_PATH_MAX];
    int version; /* of the file */
    char wrong[600];
};

static void no_faults(void)
{
    fault_vfs_plan(faults, 0, FAULT_NONE, 0, false);
    allocations_plan(0, 0, false);
    file_calls_plan(0, 0, 0, false);
    file_calls_end();
}

static enum muster_status start(const char *path, struct muster_error *err)
{
    const struct store_options options = {.allow_network_fs = true};
    struct store *store = NULL;
    enum muster_status status = store_open(path, &options, &store, err);

    store_close(&store);
    return status;
}

/* The first column of the first row, or -1. */
static int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

/* Sound, with the rows that were there, and not newer than what is copied. */
static bool is_whole(const char *path)
{
    return ask(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check") == 1 &&
           ask(path, "SELECT round FROM job WHERE job = 'train'") == 17 &&
           ask(path, "SELECT count(*) FROM generation") == 1;
}

static bool make_old(struct run *run)
{
    struct sql_migration first[VERSIONS_MAX + 1] = {{0, NULL, NULL}};
    const struct store_options options = {.allow_network_fs = true, .migrations = first};
    struct store store = {.path = run->path,
                          .lock_fd = -1}; /* all of it would ask for the newest */
    struct muster_error err;
    sqlite3 *db = NULL;
    bool made;

    memcpy(first, sql_migrations, (size_t)run->version * sizeof first[0]);
    made =
        store_connect(&store, &options, &err) == MUSTER_OK &&
        sqlite3_close(store.db) == SQLITE_OK &&
        sqlite3_open_v2(run->path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_exec(
            db,
            "INSERT INTO job (job, state, state_unix_ms, generation, seq, round, created_unix_ms)"
            " VALUES ('train', 'running', 1, 3, 0, 17, 5);"
            "INSERT INTO generation (job, generation, state, world_size, layout, checkpoint_dir,"
            " resume_checkpoint, resume_step, resume_ready, fallback, opened_unix_ms)"
            " VALUES ('train', 3, 'running', 2, 'replicated', '/ck', 0, 0, 1, 0, 5)",
            NULL, NULL, NULL) == SQLITE_OK;
    if (!made)
        printf("cannot make a database of version %d: %s\n", run->version,
               db != NULL ? sqlite3_errmsg(db) : err.text),
            fflush(stdout);
    sqlite3_close(db);
    return made;
}

static void plan(const struct migration_sweep *sweep, uint64_t at)
{
    switch (sweep->what) {
    case MIGRATION_DISK:
        fault_vfs_plan(faults, sweep->calls, sweep->fault, at, sweep->sticky);
        return;
    case MIGRATION_MEMORY:
        allocations_plan(ALLOCATIONS_SQLITE, at, sweep->sticky);
        return;
    case MIGRATION_FILES:
        file_calls_plan(sweep->calls, sweep->fault == FAULT_FULL ? ENOSPC : EIO, at, sweep->sticky);
        file_calls_begin();
        return;
    }
}

static uint64_t hits(const struct migration_sweep *sweep)
{
    return sweep->what == MIGRATION_DISK     ? fault_vfs_hits(faults)
           : sweep->what == MIGRATION_MEMORY ? allocations_hits()
                                             : file_calls_hits();
}

static void wrong(struct run *run, const char *what, const struct muster_error *err)
{
    if (run->wrong[0] == '\0')
        snprintf(run->wrong, sizeof run->wrong, "from version %d: %s%s%.300s", run->version, what,
                 err != NULL ? ": " : "", err != NULL ? err->text : "");
}

/* What a start left behind, whether it failed or not. */
static void look(struct run *run, bool started)
{
    const int64_t version = ask(run->path, "PRAGMA user_version");
    char copy[SCRATCH_PATH_MAX + 32];

    if (!is_whole(run->path))
        wrong(run, "the database is not whole", NULL);
    if (version < run->version || version > (int64_t)sql_migrations_count)
        wrong(run, "the database has a version from nowhere", NULL);
    if (started && version != (int64_t)sql_migrations_count)
        wrong(run, "it started, and is not migrated", NULL);
    snprintf(copy, sizeof copy, "%s.before-v%d", run->path, run->version + 1);
    if (version > run->version &&
        (!is_whole(copy) || ask(copy, "PRAGMA user_version") != run->version))
        wrong(run, "it is migrated, and there is no whole copy of what it was", NULL);
    snprintf(copy, sizeof copy, "%s.part", run->path);
    if (started && scratch_exists(copy))
        wrong(run, "half a copy is still there", NULL);
}

/* True: it met its fault. */
static bool start_with_fault(const struct migration_sweep *sweep, uint64_t at, struct run *run)
{
    const size_t descriptors = scratch_count("/proc/self/fd");
    struct muster_error err = {.text = ""};
    enum muster_status status;
    bool hit;

    plan(sweep, at);
    status = start(run->path, &err);
    hit = hits(sweep) > 0;
    no_faults();
    if (status != MUSTER_OK && err.text[0] == '\0')
        wrong(run, "an error without a word", NULL);
    if (status != MUSTER_OK && !hit)
        wrong(run, "it failed without a fault", &err);
    look(run, status == MUSTER_OK);
    if (start(run->path, &err) != MUSTER_OK)
        wrong(run, "the next start fails", &err);
    look(run, true);
    if (scratch_count("/proc/self/fd") != descriptors)
        wrong(run, "a descriptor stays open", NULL);
    return hit;
}

static uint64_t sweep_from(const struct migration_sweep *sweep, int version, char *ret_wrong,
                           size_t size)
{
    const uint64_t stride = sweep->stride == 0 ? 1 : sweep->stride;
    uint64_t points = 0;
    bool hit = true;

    for (uint64_t at = 1; hit; at += stride) {
        struct run run = {.version = version};

        scratch_make(run.dir);
        snprintf(run.path, sizeof run.path, "%s", scratch_path(run.dir, "muster.db"));
        if (!make_old(&run))
            abort();
        hit = start_with_fault(sweep, at, &run);
        points += hit;
        if (run.wrong[0] != '\0' && ret_wrong[0] == '\0')
            snprintf(ret_wrong, size, "call %" PRIu64 ", %s", at, run.wrong);
        scratch_remove(run.dir);
    }
    return points;
}

static bool sweep_one(const struct migration_sweep *sweep, uint64_t *all)
{
    char wrong_first[800] = "";
    uint64_t points = 0;

    for (int version = 1; version < (int)sql_migrations_count; version++)
        points += sweep_from(sweep, version, wrong_first, sizeof wrong_first);
    printf("%-36s %5" PRIu64 " points (never below %" PRIu64 ")%s\n", sweep->name, points,
           sweep->points_min, points < sweep->points_min ? ": FEWER" : "");
    if (wrong_first[0] != '\0')
        printf("    WRONG, first: %s\n", wrong_first);
    fflush(stdout);
    *all += points;
    return wrong_first[0] == '\0' && points >= sweep->points_min;
}

int migration_sweep_all(const struct migration_sweep *sweeps, size_t count)
{
    bool good = true;
    uint64_t points = 0;

    allocations_prepare();
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* a thousand syncs of a real disk take minutes */
    faults = fault_vfs_create(sqlite3_vfs_find(NULL), NULL);
    no_faults();
    for (size_t i = 0; i < count; i++)
        good = sweep_one(&sweeps[i], &points) && good;
    fault_vfs_destroy(&faults);
    printf("%" PRIu64 " points in all, from each of %zu older schemas\n", points,
           sql_migrations_count - 1);
    return good ? 0 : 1;
}
