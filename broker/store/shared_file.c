/* shared_file - see shared_file.h. */
#include "broker/store/shared_file.h"

#include "broker/base/clock.h"
#include "schema/error.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int shared_file_meta(sqlite3 *db, const char *key, char ret_value[SHARED_META_MAX])
{
    sqlite3_stmt *ask = NULL;
    int result = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = ?1", -1, &ask, NULL);

    ret_value[0] = '\0';
    if (result == SQLITE_OK) {
        sqlite3_bind_text(ask, 1, key, -1, SQLITE_STATIC);
        result = sqlite3_step(ask);
    }
    if (result == SQLITE_ROW)
        snprintf(ret_value, SHARED_META_MAX, "%s", (const char *)sqlite3_column_text(ask, 0));
    sqlite3_finalize(ask);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* A queue of tasks and a host may be of a job that has no row of its own. */
static bool shared_file_has_records(sqlite3 *db)
{
    static const char sql[] = "SELECT 1 FROM job UNION ALL SELECT 1 FROM task_queue "
                              "UNION ALL SELECT 1 FROM host LIMIT 1";
    sqlite3_stmt *ask = NULL;
    bool has = sqlite3_prepare_v2(db, sql, -1, &ask, NULL) != SQLITE_OK ||
               sqlite3_step(ask) != SQLITE_DONE;

    sqlite3_finalize(ask);
    return has;
}

void shared_file_look(const char *path, struct shared_file *ret_file)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *ask = NULL;
    int result = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);

    *ret_file = (struct shared_file){.result = SQLITE_OK};
    if (result == SQLITE_OK)
        result = sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema", -1, &ask, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(ask) == SQLITE_DONE ? SQLITE_EMPTY : sqlite3_reset(ask);
    sqlite3_finalize(ask);
    if (result == SQLITE_OK)
        result = shared_file_meta(db, "shared", ret_file->copy_of);
    if (result == SQLITE_OK)
        result = shared_file_meta(db, "seeded", ret_file->seeded);
    ret_file->has_records = result == SQLITE_OK && shared_file_has_records(db);
    ret_file->result = result;
    sqlite3_close(db);
}

void shared_file_unlink(const char *path, const char *suffix)
{
    char name[PATH_MAX];

    if (snprintf(name, sizeof name, "%s%s", path, suffix) < PATH_MAX)
        unlink(name);
}

enum muster_status shared_file_move_aside(const char *path, char **ret_name,
                                          struct muster_error *err)
{
    static const char *const suffixes[] = {"-wal", "-shm", ""};
    int64_t now_ms = clock_ms(CLOCK_REALTIME);
    char from[PATH_MAX], to[PATH_MAX];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (snprintf(from, sizeof from, "%s%s", path, suffixes[i]) >= PATH_MAX ||
            snprintf(to, sizeof to, "%s.damaged-%" PRId64 "%s", path, now_ms, suffixes[i]) >=
                PATH_MAX)
            return error_set(err, MUSTER_E_ARGUMENT, "path %.60s... is too long; use a shorter one",
                             path);
        if (rename(from, to) != 0 && suffixes[i][0] == '\0')
            return error_set_code(
                err, errno == ENOSPC || errno == EDQUOT ? MUSTER_E_STORAGE : MUSTER_E_IO, errno,
                "cannot move aside %s: %s; check the disk", path, strerror(errno));
    }
    *ret_name = strdup(to);
    return MUSTER_OK;
}
