/* store_ended - writes what a launch came to that ended long ago into one row of generation_past.
 * So questions about the job need not read the rows of its ranks again and again. Later those rows
 * are deleted: otherwise a job of 1,000 ranks would add 2,000 rows a launch, without limit.
 * store_trim.c calls this in its transactions. */
#include "broker/store/store_internal.h"

#include "schema/sql/queries.h"

#include <stdio.h>

#define SLICE_ROWS 4096

/* The answer to the question about launches is what is kept of them. The two newest launches may
 * still change: one runs, and ranks of the one before it may still leave. */
static const char add_sql[] =
    "INSERT INTO generation_past (job, generation, nodes, step, unknown_ranks, unknown_unix_ms)"
    " SELECT ?1, generation, nodes, step, unknown_ranks, unknown_unix_ms FROM (%s)"
    " WHERE state = 'ended' AND generation < (SELECT j.generation FROM job j WHERE j.job = ?1) - 1"
    " LIMIT 1";
/* The oldest launch after ?2 with ranks on record, and whether these may go: its row is there, and
 * no round on record needs the hosts of its ranks. Numbers may have gaps, so the newest ?3 launches
 * are counted by their rows. */
static const char oldest_sql[] =
    "SELECT n.generation, EXISTS (SELECT 1 FROM generation_past p"
    "  WHERE p.job = ?1 AND p.generation = n.generation) AND NOT EXISTS (SELECT 1 FROM round r"
    "  JOIN participant USING (job, round) WHERE r.job = ?1 AND r.generation = n.generation) FROM "
    "node n"
    " WHERE n.job = ?1 AND n.generation > ?2 AND n.generation <= (SELECT g.generation"
    "  FROM generation g WHERE g.job = ?1 ORDER BY g.generation DESC LIMIT 1 OFFSET ?3)"
    " ORDER BY n.generation LIMIT 1";
/* Children before their parents. */
static const char *const deletions[STORE_ENDED_TABLES] = {
    "DELETE FROM progress WHERE rowid IN (SELECT p.rowid FROM node n JOIN progress p"
    " USING (job, incarnation) WHERE n.job = ?1 AND n.generation = ?2 LIMIT " STRING_OF(
        SLICE_ROWS) ")",
    "DELETE FROM node WHERE rowid IN (SELECT rowid FROM node WHERE job = ?1 AND generation = ?2"
    " LIMIT " STRING_OF(SLICE_ROWS) ")",
};

enum muster_status store_ended_prepare(struct store *store, struct muster_error *err)
{
    char *add = sqlite3_mprintf(add_sql, query_sql("generations"));
    enum muster_status status = add != NULL
                                    ? store_prepare(store, add, &store->ended_add, err)
                                    : store_failed(store, SQLITE_NOMEM, "prepare a statement", err);

    sqlite3_free(add);
    if (status == MUSTER_OK)
        status = store_prepare(store,
                               "SELECT ifnull(max(generation), 0) FROM generation_past"
                               " WHERE job = ?1",
                               &store->ended_last, err);
    if (status == MUSTER_OK)
        status = store_prepare(store, oldest_sql, &store->ended_oldest, err);
    for (size_t i = 0; i < STORE_ENDED_TABLES && status == MUSTER_OK; i++)
        status = store_prepare(store, deletions[i], &store->ended[i], err);
    return status;
}

/* Writes what the next launch came to. ret_changed: there was one. */
static enum muster_status store_ended_add(struct store *store, const char *job, bool *ret_changed,
                                          struct muster_error *err)
{
    sqlite3_stmt *last = store->ended_last;
    enum muster_status status = MUSTER_OK;
    int result;

    sqlite3_bind_text(last, 1, job, -1, SQLITE_STATIC);
    result = sqlite3_step(last);
    if (result == SQLITE_ROW)
        sqlite3_bind_int64(store->ended_add, 3, sqlite3_column_int64(last, 0));
    else
        status = store_failed(store, result, "look for ended launches", err);
    sqlite3_reset(last);
    if (status != MUSTER_OK)
        return status;
    sqlite3_bind_text(store->ended_add, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(store->ended_add, 4, 0);
    status = store_step(store, store->ended_add, "write what a launch came to", err);
    *ret_changed = status == MUSTER_OK && sqlite3_changes(store->db) > 0;
    return status;
}

/* A slice of the ranks of this launch. ret_over: there are no more. */
static enum muster_status store_ended_delete(struct store *store, const char *job,
                                             int64_t generation, bool *ret_over,
                                             struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    *ret_over = true;
    for (size_t i = 0; i < STORE_ENDED_TABLES && *ret_over && status == MUSTER_OK; i++) {
        sqlite3_bind_text(store->ended[i], 1, job, -1, SQLITE_STATIC);
        sqlite3_bind_int64(store->ended[i], 2, generation);
        status = store_step(store, store->ended[i], "delete the ranks of an old launch", err);
        *ret_over = sqlite3_changes(store->db) < SLICE_ROWS;
    }
    return status;
}

enum muster_status store_ended_slice(struct store *store, const char *job, int64_t kept,
                                     int64_t *at, bool *ret_more, struct muster_error *err)
{
    sqlite3_stmt *s = store->ended_oldest;
    enum muster_status status;
    int64_t generation = 0;
    bool goes = false, over = true;
    int result;

    *ret_more = false;
    status = store_ended_add(store, job, ret_more, err);
    if (status != MUSTER_OK || *ret_more)
        return status;
    sqlite3_bind_text(s, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, *at);
    sqlite3_bind_int64(s, 3, kept);
    result = sqlite3_step(s);
    if (result == SQLITE_ROW) {
        *ret_more = true;
        generation = sqlite3_column_int64(s, 0);
        goes = sqlite3_column_int(s, 1) != 0;
    } else if (result != SQLITE_DONE) {
        status = store_failed(store, result, "look for old launches", err);
    }
    sqlite3_reset(s);
    if (status == MUSTER_OK && goes)
        status = store_ended_delete(store, job, generation, &over, err);
    if (status == MUSTER_OK && *ret_more && over)
        *at = generation;
    return status;
}
