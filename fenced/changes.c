/* changes - see changes.h. */
#define SQLITE_ENABLE_SESSION 1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "fenced/changes.h"

#include "schema/error.h"

static int changes_conflict(void *arg, int kind, sqlite3_changeset_iter *at)
{
    (void)arg;
    (void)kind;
    (void)at;
    return SQLITE_CHANGESET_ABORT;
}

enum muster_status changes_apply(sqlite3 *db, const void *changes, size_t size,
                                 struct muster_error *err)
{
    int result =
        sqlite3changeset_apply(db, (int)size, (void *)changes, NULL, changes_conflict, NULL);

    switch (result & 0xff) {
    case SQLITE_OK:
        return MUSTER_OK;
    case SQLITE_NOMEM:
        return error_set(err, MUSTER_E_NOMEM, "no memory to apply a batch");
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_CANTOPEN:
        return error_set(err, MUSTER_E_STORAGE, "cannot write the copy %s: %s; check the disk",
                         sqlite3_db_filename(db, "main"), sqlite3_errstr(result));
    default:
        return error_set(
            err, MUSTER_E_CORRUPT,
            "the log in the shared database does not fit its snapshot (%s): it was changed "
            "by hand, or only a part of it was restored; restore the whole of it",
            sqlite3_errstr(result));
    }
}
