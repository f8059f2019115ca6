#include "client/query/dbread.h"

#include "client/query/dbread_shared.h"
#include "client/query/query_place.h"
#include "schema/error.h"
#include "schema/paths.h"
#include "schema/sql/queries.h"
#include "schema/sql/sql.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct dbread {
    sqlite3 *sqlite;
    struct dbread_shared *shared; /* NULL: a file. Else it owns sqlite */
    char *path;                   /* as the user wrote it, or the shared one's name: for texts */
    const char *sql;              /* of the last question: a list asks the same for each page */
    sqlite3_stmt *statement;      /* ... ready to be asked again */
};

/* The meaning of a failed call, and what to do about it. */
static enum muster_status dbread_failed(const struct dbread *db, int rc, struct muster_error *err)
{
    const char *why = db->sqlite == NULL ? sqlite3_errstr(rc) : sqlite3_errmsg(db->sqlite);

    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return error_set(err, MUSTER_E_CORRUPT,
                         "%s is not a muster database: give the file that musterd was started with "
                         "(--db)",
                         db->path);
    case SQLITE_CORRUPT:
        return error_set(err, MUSTER_E_CORRUPT,
                         "the database %s is damaged (%s): keep a copy and see what musterd says "
                         "when it opens it",
                         db->path, why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, MUSTER_E_BUSY, "the database %s is busy (%s): try again", db->path,
                         why);
    case SQLITE_NOMEM:
        return error_set(err, MUSTER_E_NOMEM, "no memory to read the database %s", db->path);
    default:
        /* Most often the -wal or -shm file beside it may not be read or made by this user. */
        return error_set(err, MUSTER_E_IO,
                         "the database %s cannot be read (%s): ask the broker by its "
                         "address, or copy it together with its -wal file to a directory of yours "
                         "and read the copy",
                         db->path, why);
    }
}

static enum muster_status dbread_check_file(const char *path, struct muster_error *err)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return error_set_code(err, MUSTER_E_NOT_FOUND, errno,
                                  "there is no database %s: give the file of a musterd, or a "
                                  "broker's address (tcp://host:port or ipc://path)",
                                  path);
        return error_set_code(
            err, MUSTER_E_IO, errno,
            "the database %s cannot be reached (%s): check the permissions of its "
            "directories, or ask the broker by its address",
            path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode))
        return error_set(err, MUSTER_E_CORRUPT,
                         "%s is not a file, so not a muster database: give the file that musterd "
                         "was started with (--db)",
                         path);
    return MUSTER_OK;
}

/* The one integer that a statement gives; -1 if it gives no row. */
static int dbread_read_number(struct dbread *db, const char *sql, int64_t *ret_number)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;
    int rc = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    *ret_number = number;
    return SQLITE_OK;
}

/* Reading the header and the schema shows what the file is. */
static enum muster_status dbread_check_schema(struct dbread *db, struct muster_error *err)
{
    const int64_t known = (int64_t)sql_migrations_count;
    int64_t version = 0;
    int64_t tables = 0;
    int rc = dbread_read_number(db, "PRAGMA user_version", &version);

    if (rc == SQLITE_OK)
        rc =
            dbread_read_number(db,
                               "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name IN"
                               " ('meta', 'job', 'generation', 'round', 'checkpoint')",
                               &tables);
    if (rc != SQLITE_OK)
        return dbread_failed(db, rc, err);
    if (tables < 5 || version < 1)
        return dbread_failed(db, SQLITE_NOTADB, err);
    if (version > known)
        return error_set(err, MUSTER_E_SCHEMA,
                         "the database %s has schema %lld, this muster knows up to %lld: use the "
                         "muster of the version that wrote it",
                         db->path, (long long)version, (long long)known);
    if (version < known)
        return error_set(err, MUSTER_E_SCHEMA,
                         "the database %s has schema %lld, this muster needs %lld: start this "
                         "version's musterd on it once, which brings it up to date",
                         db->path, (long long)version, (long long)known);
    return MUSTER_OK;
}

/* The file may come from anybody: nothing in its schema may run functions with side effects. */
static enum muster_status dbread_begin(struct dbread *db, struct muster_error *err)
{
    sqlite3_extended_result_codes(db->sqlite, 1);
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return dbread_check_schema(db, err);
}

static enum muster_status dbread_connect_to(struct dbread *db, int busy_timeout_ms,
                                            struct muster_error *err)
{
    /* "./": a name like ":memory:" would mean something else to SQLite. */
    char *name = sqlite3_mprintf("%s%s", db->path[0] == '/' ? "" : "./", db->path);
    int rc;

    if (name == NULL)
        return dbread_failed(db, SQLITE_NOMEM, err);
    rc = sqlite3_open_v2(name, &db->sqlite, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_free(name);
    if (rc != SQLITE_OK)
        return dbread_failed(db, rc, err);
    sqlite3_busy_timeout(db->sqlite, busy_timeout_ms);
    return dbread_begin(db, err);
}

static void dbread_forget_statement(void *arg)
{
    struct dbread *db = arg;

    sqlite3_finalize(db->statement);
    db->statement = NULL;
    db->sql = NULL;
}

/* The shared database may have gone on, or be another broker's after a take-over. */
static enum muster_status dbread_renew(struct dbread *db, struct muster_error *err)
{
    sqlite3 *now = NULL;
    enum muster_status status;

    if (db->shared == NULL)
        return MUSTER_OK;
    status = dbread_shared_renew(db->shared, dbread_forget_statement, db, &now, err);
    if (status != MUSTER_OK || now == db->sqlite) {
        db->sqlite = now;
        return status;
    }
    db->sqlite = now;
    return dbread_begin(db, err);
}

static enum muster_status dbread_open_shared(struct dbread *db, const char *uri, int timeout_ms,
                                             struct muster_error *err)
{
    char *name;
    enum muster_status status = dbread_shared_open(uri, timeout_ms, &db->shared, err);

    if (status == MUSTER_OK)
        status = dbread_renew(db, err);
    if (status != MUSTER_OK)
        return status;
    name = strdup(dbread_shared_name(db->shared));
    if (name == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to open the shared database");
    free(db->path);
    db->path = name;
    return MUSTER_OK;
}

enum muster_status dbread_open(const char *path, int timeout_ms, struct dbread **ret_db,
                               struct muster_error *err)
{
    struct dbread *db;
    char unnamed[32]; /* its address may have a password */
    bool is_shared = paths_is_postgres(path);
    enum muster_status status = is_shared ? MUSTER_OK : dbread_check_file(path, err);

    if (status != MUSTER_OK)
        return status;
    db = calloc(1, sizeof *db);
    snprintf(unnamed, sizeof unnamed, "of %s", query_place_db_word());
    if (db != NULL)
        db->path = strdup(is_shared ? unnamed : path);
    if (db == NULL || db->path == NULL)
        status = error_set(err, MUSTER_E_NOMEM, "no memory to open the database");
    else if (is_shared)
        status = dbread_open_shared(db, path, timeout_ms, err);
    else
        status = dbread_connect_to(db, timeout_ms, err);
    if (status != MUSTER_OK) {
        dbread_close(&db);
        return status;
    }
    *ret_db = db;
    return MUSTER_OK;
}

void dbread_close(struct dbread **db)
{
    if (db == NULL || *db == NULL)
        return;
    sqlite3_finalize(db[0]->statement);
    if (db[0]->shared == NULL)
        sqlite3_close(db[0]->sqlite);
    dbread_shared_close(&db[0]->shared);
    free(db[0]->path);
    free(*db);
    *db = NULL;
}

static void dbread_read_cells(sqlite3_stmt *statement, struct cell *cells, int count)
{
    for (int i = 0; i < count; i++) {
        cells[i] = (struct cell){0};
        if (sqlite3_column_type(statement, i) == SQLITE_TEXT) {
            cells[i].text = (const char *)sqlite3_column_text(statement, i);
            cells[i].size = (size_t)sqlite3_column_bytes(statement, i);
        } else {
            cells[i].integer = sqlite3_column_int64(statement, i); /* NULL gives 0 */
        }
    }
}

static int dbread_bind_all(sqlite3_stmt *statement, const struct question *question)
{
    int rc = sqlite3_bind_text(statement, 1, question->job, -1, SQLITE_STATIC);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 2, question->text_arg, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(statement, 3, question->number_arg);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(statement, 4, question->after);
    return rc;
}

/* sql is one of schema/sql/queries.def's, so its address is its name. */
static int dbread_prepare(struct dbread *db, const char *sql)
{
    int rc = SQLITE_OK;

    if (db->sql == sql)
        return SQLITE_OK;
    sqlite3_finalize(db->statement);
    db->statement = NULL;
    rc = sqlite3_prepare_v2(db->sqlite, sql, -1, &db->statement, NULL);
    db->sql = rc == SQLITE_OK ? sql : NULL;
    return rc;
}

enum muster_status dbread_page(struct dbread *db, const struct question *question,
                               muster_rows_t *rows, bool *ret_more, struct muster_error *err)
{
    const char *sql = query_sql(question->query);
    struct cell cells[QUERY_COLUMNS_MAX];
    enum muster_status status = MUSTER_OK;
    size_t count = 0;
    int columns;
    int rc;

    if (sql == NULL)
        return error_set(err, MUSTER_E_NOT_FOUND, "there is no query named %s", question->query);
    status = dbread_renew(db, err);
    if (status != MUSTER_OK)
        return status;
    rc = dbread_prepare(db, sql);
    if (rc == SQLITE_OK)
        rc = dbread_bind_all(db->statement, question);
    columns = sqlite3_column_count(db->statement);
    if (columns > QUERY_COLUMNS_MAX)
        columns = QUERY_COLUMNS_MAX;
    while (rc == SQLITE_OK && status == MUSTER_OK) {
        int step = sqlite3_step(db->statement);

        if (step == SQLITE_DONE)
            break;
        if (step != SQLITE_ROW) {
            rc = step;
            break;
        }
        dbread_read_cells(db->statement, cells, columns);
        status = rows_append(rows, cells, (size_t)columns, err);
        count++;
    }
    if (rc != SQLITE_OK)
        status = dbread_failed(db, rc, err);
    sqlite3_reset(db->statement); /* no page holds on to the database */
    if (db->statement != NULL)
        sqlite3_clear_bindings(db->statement); /* they are the asker's */
    if (status == MUSTER_OK)
        *ret_more = count == QUERY_PAGE_ROWS;
    return status;
}

const char *dbread_name(const struct dbread *db)
{
    return db->path;
}
