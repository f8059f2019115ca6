/* store_log - the write-ahead log: the mode, what is synced, when it is copied into the file.
 *
 * Pages that a sync failed to write may never be written. The kernel marks them as clean, everybody
 * goes on reading them, and the next sync succeeds without them. If that one acknowledges a batch,
 * a power cut leaves a hole in the log before it, and the batch is gone with all behind the hole.
 * So
 *   - no connection goes on after a sync that failed, not even one of SQLite's own checkpoints,
 *     whose failures it ignores;
 *   - what no sync acknowledged is cut off the log at once. If a start copied it into the file and
 *     the power went meanwhile, no log could make these pages whole;
 *   - each start copies the whole log into the file, which writes and syncs every page again, and
 *     begins the log at its beginning, before anything is acknowledged. */
#include "broker/store/store_internal.h"

#include "schema/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WAL_KEEP_BYTES "67108864" /* what a checkpoint leaves of the -wal file */
#define CHECKPOINT_FRAMES 1000    /* SQLite's own */

/* --- settings --------------------------------------------------------------------------------- */

/* A row that says "wal" is no switch yet. If the file is not in that mode, the step that ends the
 * statement commits the switch, with its syncs. A connection that went on without it would commit
 * with a rollback journal, and no sync makes the deletion of that durable. The next power cut would
 * bring it back, and it would undo the last batch. */
static enum muster_status store_log_set_wal(struct store *store, struct muster_error *err)
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

static enum muster_status store_log_expect(struct store *store, const char *sql, int64_t wanted,
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

/* --- what is surely on the disk --------------------------------------------------------------- */

#define HEADER_BYTES \
    32 /* of the log: the page's size at 8, the salt of its present beginning at 16 */
#define FRAME_HEADER_BYTES 24 /* before each page */

static sqlite3_file *log_file(const struct store *store)
{
    sqlite3_file *wal = NULL;

    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK)
        return NULL;
    return wal != NULL && wal->pMethods != NULL ? wal : NULL;
}

static bool store_log_read_header(sqlite3_file *wal, int64_t *ret_page, uint64_t *ret_salt)
{
    uint8_t header[HEADER_BYTES];

    if (wal->pMethods->xRead(wal, header, sizeof header, 0) != SQLITE_OK)
        return false;
    *ret_page =
        (int64_t)header[8] << 24 | (int64_t)header[9] << 16 | (int64_t)header[10] << 8 | header[11];
    memcpy(ret_salt, header + 16, sizeof *ret_salt);
    return true;
}

static void store_log_is_synced(struct store *store, int frames)
{
    sqlite3_file *wal = log_file(store);
    int64_t page;

    store->synced.frames = frames;
    store->synced.known = wal != NULL && store_log_read_header(wal, &page, &store->synced.salt);
}

/* --- what is not, cut off --------------------------------------------------------------------- */

/* SQLite's locks of the index (-shm), and the header at its beginning: see walformat.html of its
 * documentation. */
#define INDEX_REGION_BYTES 32768
#define INDEX_HEADER_BYTES 96 /* twice the same */
#define LOCK_WRITE 0          /* then: checkpoint, recovery */
#define LOCK_CHANGES 3
#define LOCK_READ_LOG \
    4 /* the slots of readers of the log; a reader on slot 3 has all from the file */
#define LOCK_READERS 4
#define READER_LOOKS 20 /* a reader's transaction is one statement */
#define READER_LOOK_MS 10

static bool store_log_index_lock(sqlite3_file *file, int first, int count)
{
    int result = SQLITE_BUSY;

    for (int i = 0; i < READER_LOOKS && result == SQLITE_BUSY; i++) {
        if (i > 0)
            sqlite3_sleep(READER_LOOK_MS);
        result =
            file->pMethods->xShmLock(file, first, count, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE);
    }
    return result == SQLITE_OK;
}

static void store_log_index_unlock(sqlite3_file *file, int first, int count)
{
    file->pMethods->xShmLock(file, first, count, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
}

/* The index says how long the log is, and lives on while anybody has the database open. If the log
 * were shorter than that, nobody could read, and no broker start. Without a header the next opener
 * builds the index from the log. So the header goes first: a kill in between leaves the whole
 * log. */
static bool store_log_forget_and_cut(sqlite3_file *file, sqlite3_file *wal, sqlite3_int64 size)
{
    void volatile *header = NULL;

    if (file->pMethods->xShmMap(file, 0, INDEX_REGION_BYTES, 0, &header) != SQLITE_OK ||
        header == NULL)
        return false;
    for (size_t i = 0; i < INDEX_HEADER_BYTES; i++)
        ((uint8_t volatile *)header)[i] = 0;
    file->pMethods->xShmBarrier(file);
    return wal->pMethods->xTruncate(wal, size) == SQLITE_OK;
}

/* Not while anybody reads the log: the place of what is cut off is written again, and he would read
 * that. */
static bool store_log_cut_behind(const struct store *store, sqlite3_file *wal, sqlite3_int64 size)
{
    sqlite3_file *file = NULL;
    bool done = false;

    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        file == NULL || file->pMethods == NULL || file->pMethods->iVersion < 2 ||
        !store_log_index_lock(file, LOCK_WRITE, LOCK_CHANGES))
        return false;
    if (store_log_index_lock(file, LOCK_READ_LOG, LOCK_READERS)) {
        done = store_log_forget_and_cut(file, wal, size);
        store_log_index_unlock(file, LOCK_READ_LOG, LOCK_READERS);
    }
    store_log_index_unlock(file, LOCK_WRITE, LOCK_CHANGES);
    return done;
}

/* A log that began again in between has nothing of what was synced: that is in the file. */
void store_log_cut(struct store *store)
{
    sqlite3_file *wal = store->synced.known ? log_file(store) : NULL;
    sqlite3_int64 have = 0, size = 0;
    int64_t page = 0;
    uint64_t salt = 0;

    store->synced.cut = true;
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (wal == NULL || !store_log_read_header(wal, &page, &salt))
        return;
    if (store->synced.frames > 0 && salt == store->synced.salt)
        size = HEADER_BYTES + (page + FRAME_HEADER_BYTES) * store->synced.frames;
    if (wal->pMethods->xFileSize(wal, &have) == SQLITE_OK && size < have &&
        store_log_cut_behind(store, wal, size))
        wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static int store_log_sync_log(struct store *store)
{
    sqlite3_file *wal = log_file(store);

    return wal == NULL ? SQLITE_OK : wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
}

/* In place of SQLite's own: called after a commit. A copy that failed is tried again after the next
 * batch. Nothing is copied that is not surely in the log. */
static int store_log_checkpoint_at_times(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct store *store = arg;

    if (frames >= store->checkpoint_frames && store->unsynced &&
        store_log_sync_log(store) != SQLITE_OK) {
        store->sync_failed = true;
        return SQLITE_OK;
    }
    if (frames >= store->checkpoint_frames || !store->unsynced)
        store_log_is_synced(store, frames);
    if (frames >= store->checkpoint_frames &&
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
            SQLITE_IOERR_FSYNC)
        store->sync_failed = true;
    return SQLITE_OK;
}

/* A reader that does not end keeps the log from beginning again. An old log that a power cut brings
 * back is written over the file again, up to its hole: SQLite syncs the new length with its next
 * header only. */
static enum muster_status store_log_copy_whole_log(struct store *store, struct muster_error *err)
{
    int result = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    if (result == SQLITE_OK)
        result = store_log_sync_log(store);
    if (result == SQLITE_OK) {
        store->synced.known = true;
        store->synced.frames = 0;
    }
    return result == SQLITE_OK || (result & 0xff) == SQLITE_BUSY
               ? MUSTER_OK
               : store_failed(store, result, "copy the log into the file", err);
}

void store_log_end(struct store *store)
{
    if (!store->synced.cut && store_log_sync_log(store) != SQLITE_OK)
        store_log_cut(store);
    if (!store->synced.cut)
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

enum muster_status store_log_begin(struct store *store, struct muster_error *err)
{
    enum muster_status status = store_log_set_wal(store, err);

    if (status == MUSTER_OK)
        status =
            store_exec(store, /* secure_delete, a default of some, writes all that is deleted */
                       "PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;"
                       " PRAGMA journal_size_limit=" WAL_KEEP_BYTES,
                       err);
    if (status == MUSTER_OK)
        status = store_log_expect(store, "PRAGMA synchronous", 2, err);
    if (status == MUSTER_OK)
        status = store_log_expect(store, "PRAGMA foreign_keys", 1, err);
    if (status == MUSTER_OK)
        status = store_log_copy_whole_log(store, err);
    if (store->checkpoint_frames == 0)
        store->checkpoint_frames = CHECKPOINT_FRAMES;
    sqlite3_wal_hook(store->db, store_log_checkpoint_at_times, store);
    return status;
}
