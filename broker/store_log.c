/* store_log - the write-ahead log: the mode, what is synced, when it is copied into the file.
 *
 * What a sync failed to write may never be written: the kernel marks such pages as clean, everybody goes on
 * reading them, and the next sync succeeds without them. If that one acknowledges a batch, a power cut
 * leaves a hole in the log before it, and the batch is gone with all behind the hole. So
 *   - no connection goes on after a sync that failed, not even one of SQLite's own checkpoints, whose
 *     failures it ignores;
 *   - each start copies the whole log into the file, which writes every page anew and syncs it, and begins the
 *     log at its beginning, before anything is acknowledged. */
#include "broker/store_internal.h"

#include "schema/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WAL_KEEP_BYTES "67108864" /* what a checkpoint leaves of the -wal file */
#define CHECKPOINT_FRAMES 1000    /* SQLite's own */

/* --- settings ------------------------------------------------------------------------------------- */

/* A row that says "wal" is no switch yet: of a file that is not in that mode it is committed, with its syncs,
 * by the step that ends the statement. A connection that went on without would commit with a rollback
 * journal, whose deletion no sync makes durable: the next power cut brings it back, and it takes the last
 * batch along. */
static enum muster_status set_wal(struct store *store, struct muster_error *err)
{
    sqlite3_stmt *statement = NULL;
    enum muster_status status = store_prepare(store, "PRAGMA journal_mode=WAL", &statement, err);
    char mode[16] = "unknown";
    int result;

    if (status != MUSTER_OK)
        return status;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);

        snprintf(mode, sizeof mode, "%s", text == NULL ? "unknown" : text);
    }
    if (result != SQLITE_DONE)
        status = store_failed(store, result, "switch to write-ahead logging", err);
    else if (strcmp(mode, "wal") != 0)
        status =
            error_set(err, MUSTER_E_UNSUPPORTED,
                      "database %s cannot use write-ahead logging (journal_mode stays %s); put "
                      "it on a local disk with --db",
                      store->path, mode);
    sqlite3_finalize(statement);
    return status;
}

static enum muster_status expect(struct store *store, const char *sql, int64_t wanted,
                                 struct muster_error *err)
{
    int64_t value = -1;
    enum muster_status status = store_get_int(store, sql, &value, err);

    if (status == MUSTER_OK && value != wanted)
        status = error_set(err, MUSTER_E_UNSUPPORTED,
                           "database %s: %s is %" PRId64 " although it was set to %" PRId64,
                           store->path, sql, value, wanted);
    return status;
}

/* --- checkpoints ---------------------------------------------------------------------------------- */

/* In place of SQLite's own: called after a commit. What failed is tried again after the next. */
static int checkpoint_at_times(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct store *store = arg;

    if (frames >= store->checkpoint_frames &&
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
            SQLITE_IOERR_FSYNC)
        store->sync_failed = true;
    return SQLITE_OK;
}

/* An old log that a power cut brings back is written over the file again, up to its hole. SQLite syncs the new length
 * with its next header only. */
static int sync_log(struct store *store)
{
    sqlite3_file *wal = NULL;

    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
        wal == NULL || wal->pMethods == NULL)
        return SQLITE_OK;
    return wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
}

/* A reader that does not end keeps the log from beginning anew. */
static enum muster_status copy_whole_log(struct store *store, struct muster_error *err)
{
    int result = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    if (result == SQLITE_OK)
        result = sync_log(store);
    return result == SQLITE_OK || (result & 0xff) == SQLITE_BUSY
               ? MUSTER_OK
               : store_failed(store, result, "copy the log into the file", err);
}

enum muster_status store_log_begin(struct store *store, struct muster_error *err)
{
    enum muster_status status = set_wal(store, err);

    if (status == MUSTER_OK)
        status =
            store_exec(store, /* secure_delete, a default of some, writes all that is deleted */
                       "PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;"
                       " PRAGMA journal_size_limit=" WAL_KEEP_BYTES,
                       err);
    if (status == MUSTER_OK)
        status = expect(store, "PRAGMA synchronous", 2, err);
    if (status == MUSTER_OK)
        status = expect(store, "PRAGMA foreign_keys", 1, err);
    if (status == MUSTER_OK)
        status = copy_whole_log(store, err);
    if (store->checkpoint_frames == 0)
        store->checkpoint_frames = CHECKPOINT_FRAMES;
    sqlite3_wal_hook(store->db, checkpoint_at_times, store);
    return status;
}
