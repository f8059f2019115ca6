/* store_forget - deletes all rows of a job. They may be millions, and nobody is served while they
 * are deleted, so at most a slice of each table is deleted at once. The rest is named in
 * job_garbage and is deleted between the batches, each slice in a transaction of its own. A job
 * that begins again under the name waits for the rest, and so does a start. Nothing on disk but the
 * database is touched. */
#include "broker/store/store_internal.h"

#include <stdio.h>

#define SLICE_ROWS 4096

/* Children before their parents. */
#define BY_ROWID(table)                                              \
    "DELETE FROM " table " WHERE rowid IN (SELECT rowid FROM " table \
    " WHERE job = ?1 LIMIT " STRING_OF(SLICE_ROWS) ")"
#define BY_KEY(table, key)                                                                       \
    "DELETE FROM " table " WHERE job = ?1 AND " key " <= (SELECT max(" key ") FROM (SELECT " key \
    " FROM " table " WHERE job = ?1 ORDER BY " key " LIMIT " STRING_OF(SLICE_ROWS) "))"
static const char *const statements[] = {
    BY_KEY("shard_file", "round"),
    BY_ROWID("shard"),
    BY_ROWID("checkpoint_custom"),
    BY_ROWID("checkpoint"),
    BY_ROWID("participant"),
    BY_ROWID("round"),
    BY_KEY("event", "seq"),
    BY_ROWID("notice"),
    BY_ROWID("progress"),
    BY_ROWID("node"),
    BY_KEY("launch", "generation"),
    BY_KEY("host", "launch"),
    BY_KEY("generation_past", "generation"),
    BY_ROWID("generation"),
    BY_ROWID("policy"),
    BY_KEY("pin", "checkpoint"),
    BY_ROWID("job"),
};
_Static_assert(sizeof statements / sizeof *statements == STORE_FORGET_TABLES, "one for each table");

enum muster_status store_forget_prepare(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    int64_t garbage = 0;

    for (size_t i = 0; i < STORE_FORGET_TABLES && status == MUSTER_OK; i++)
        status = store_prepare(store, statements[i], &store->forget[i], err);
    if (status == MUSTER_OK)
        status = store_prepare(store,
                               "INSERT INTO job_garbage (job) VALUES (?1)"
                               " ON CONFLICT (job) DO NOTHING",
                               &store->forget_add, err);
    if (status == MUSTER_OK)
        status = store_prepare(store, "DELETE FROM job_garbage WHERE job = ?1", &store->forget_over,
                               err);
    if (status == MUSTER_OK)
        status = store_prepare(store, "SELECT job FROM job_garbage WHERE ?1 IN ('', job) LIMIT 1",
                               &store->forget_first, err);
    if (status == MUSTER_OK)
        status = store_get_int(store, "SELECT count(*) FROM job_garbage", &garbage, err);
    store->forgets = garbage > 0;
    return status;
}

static enum muster_status store_forget_run(struct store *store, sqlite3_stmt *statement,
                                           const char *job, struct muster_error *err)
{
    sqlite3_bind_text(statement, 1, job, -1, SQLITE_STATIC);
    return store_step(store, statement, "forget a job", err);
}

/* Rows that take longer than the rest of their table are done first: no parent goes before its
 * children. */
static enum muster_status forget_slice(struct store *store, const char *job, bool *ret_over,
                                       struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < STORE_FORGET_TABLES && status == MUSTER_OK; i++) {
        status = store_forget_run(store, store->forget[i], job, err);
        if (status == MUSTER_OK && sqlite3_changes(store->db) >= SLICE_ROWS)
            return MUSTER_OK; /* there may be more of these */
    }
    if (status == MUSTER_OK)
        status = store_forget_run(store, store->forget_over, job, err);
    *ret_over = status == MUSTER_OK;
    return status;
}

enum muster_status store_forget(struct store *store, const char *job, struct muster_error *err)
{
    enum muster_status status = store_forget_run(store, store->forget_add, job, err);
    bool over = false;

    if (status == MUSTER_OK)
        status = forget_slice(store, job, &over, err);
    store->forgets |= !over;
    return status;
}

/* "" = any. ret_job: "" = none. */
static enum muster_status store_forget_find(struct store *store, const char *job, char *ret_job,
                                            struct muster_error *err)
{
    sqlite3_stmt *statement = store->forget_first;
    enum muster_status status = MUSTER_OK;
    int result;

    ret_job[0] = '\0';
    sqlite3_bind_text(statement, 1, job, -1, SQLITE_STATIC);
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        snprintf(ret_job, JOB_NAME_MAX + 1, "%s", (const char *)sqlite3_column_text(statement, 0));
    else if (result != SQLITE_DONE)
        status = store_failed(store, result, "look for jobs to forget", err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

enum muster_status store_forget_slice(struct store *store, struct muster_error *err)
{
    char job[JOB_NAME_MAX + 1];
    bool over;
    enum muster_status status = store_forget_find(store, "", job, err);

    if (status == MUSTER_OK && job[0] == '\0')
        store->forgets = false;
    if (status == MUSTER_OK && job[0] != '\0')
        status = forget_slice(store, job, &over, err);
    return status;
}

enum muster_status store_forget_rest(struct store *store, const char *job, struct muster_error *err)
{
    char name[JOB_NAME_MAX + 1];
    bool over = false;
    enum muster_status status = MUSTER_OK;

    while (store->forgets && status == MUSTER_OK) {
        status = store_forget_find(store, job, name, err);
        if (status != MUSTER_OK || name[0] == '\0')
            break;
        status = forget_slice(store, name, &over, err);
    }
    if (status == MUSTER_OK && job[0] == '\0')
        store->forgets = false;
    return status;
}

enum muster_status store_forget_begun(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    if (!store->forgets)
        return MUSTER_OK;
    status = store_exec(store, "BEGIN IMMEDIATE", err);
    if (status == MUSTER_OK)
        status = store_forget_rest(store, "", err);
    if (status == MUSTER_OK)
        return store_exec(store, "COMMIT", err);
    store_exec(store, "ROLLBACK", NULL);
    return status;
}
