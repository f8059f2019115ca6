/* store_sql - statements and what their failures mean: the floor that every other file of the store
 * stands on. */
#include "broker/store/store_internal.h"

#include "schema/error.h"

#include <errno.h>
#include <string.h>

/* --- what went wrong -------------------------------------------------------------------------- */

enum muster_status store_damaged(const struct store *store, const char *finding,
                                 struct muster_error *err)
{
    return error_set(
        err, MUSTER_E_CORRUPT,
        "database %s is damaged: %s. It was left as it is and nothing was recreated: "
        "move it away together with its -wal file (if that file stays, it is "
        "written into the next database there), then put a backup there or begin with an empty one",
        store->path, finding);
}

/* errno of the last failed write to the -wal file. sqlite3_system_errno() does not know those of a
 * COMMIT. */
static int sql_wal_errno(sqlite3 *db)
{
    sqlite3_file *wal = NULL;
    int code = 0;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
        wal == NULL || wal->pMethods == NULL ||
        wal->pMethods->xFileControl(wal, SQLITE_FCNTL_LAST_ERRNO, &code) != SQLITE_OK)
        return 0;
    return code;
}

/* A write that was refused for want of room. SQLite calls ENOSPC "full", but a quota or a file size
 * limit a mere IOERR_WRITE. A frame that was not written whole has no valid checksum, so even
 * during COMMIT such a transaction is surely not in the file; a failed sync leaves that open. */
static bool sql_out_of_room(struct store *store, int result)
{
    int code;

    if ((result & 0xff) == SQLITE_FULL)
        return true;
    if (result != SQLITE_IOERR_WRITE)
        return false;
    code = sql_wal_errno(store->db);
    return code == ENOSPC || code == EDQUOT || code == EFBIG;
}

enum muster_status store_failed(struct store *store, int result, const char *doing,
                                struct muster_error *err)
{
    const char *why = store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(result);
    int code = store->db != NULL ? sqlite3_system_errno(store->db) : 0;

    if (store->db != NULL && sql_out_of_room(store, result))
        return error_set_code(err, MUSTER_E_STORAGE, code,
                              "cannot %s: no room for database %s (%s); free disk space", doing,
                              store->path, why);
    switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, MUSTER_E_STORAGE,
                         "cannot %s: another process writes to database %s (%s); close it, nobody "
                         "but musterd may write there",
                         doing, store->path, why);
    case SQLITE_NOMEM:
        return error_set(err, MUSTER_E_STORAGE, "cannot %s in database %s: no memory; free some",
                         doing, store->path);
    case SQLITE_CORRUPT:
        return store_damaged(store, why, err);
    case SQLITE_NOTADB:
        return error_set(err, MUSTER_E_CORRUPT,
                         "file %s is not a SQLite database; it was left as it is: choose another "
                         "file with --db. If it was muster's database, its first page is damaged: "
                         "move it away together with its -wal file and put a backup in its place",
                         store->path);
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
    case SQLITE_MISUSE:
    case SQLITE_ERROR:
    case SQLITE_TOOBIG:
        return error_set(err, MUSTER_E_FAULT,
                         "cannot %s in database %s: %s; this is a bug of muster, report it", doing,
                         store->path, why);
    default:
        return error_set_code(err, MUSTER_E_IO, code,
                              "cannot %s in database %s: %s%s%s; check the disk and the file's "
                              "permissions",
                              doing, store->path, why, code != 0 ? ": " : "",
                              code != 0 ? strerror(code) : "");
    }
}

/* --- statements ------------------------------------------------------------------------------ */

enum muster_status store_prepare(struct store *store, const char *sql, sqlite3_stmt **ret_statement,
                                 struct muster_error *err)
{
    int result =
        sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);

    return result == SQLITE_OK ? MUSTER_OK
                               : store_failed(store, result, "prepare a statement", err);
}

enum muster_status store_exec(struct store *store, const char *sql, struct muster_error *err)
{
    int result = sqlite3_exec(store->db, sql, NULL, NULL, NULL);

    return result == SQLITE_OK ? MUSTER_OK : store_failed(store, result, "run a statement", err);
}

enum muster_status store_get_int(struct store *store, const char *sql, int64_t *ret_value,
                                 struct muster_error *err)
{
    sqlite3_stmt *statement = NULL;
    enum muster_status status = store_prepare(store, sql, &statement, err);
    int result;

    if (status != MUSTER_OK)
        return status;
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(statement, 0);
    else
        status = store_failed(store, result, "read a number", err);
    sqlite3_finalize(statement);
    return status;
}

enum muster_status store_step(struct store *store, sqlite3_stmt *statement, const char *doing,
                              struct muster_error *err)
{
    int result = sqlite3_step(statement);
    enum muster_status status =
        result == SQLITE_DONE ? MUSTER_OK : store_failed(store, result, doing, err);

    sqlite3_reset(statement);
    return status;
}
