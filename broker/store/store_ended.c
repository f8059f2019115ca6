/* store_ended - sums up each launch that ended long ago in one row of generation_past. So questions
 * about the job need not read the rows of its ranks again and again. Later those rows are deleted:
 * otherwise a job of 1,000 ranks would add 2,000 rows a launch, without limit. store_trim.c calls
 * this in its transactions. */
#include "broker/store/store_internal.h"

#include "schema/sql/queries.h"

#include <stdio.h>

#define SLICE_ROWS 4096

/* The next launch that ended and has no row. The two newest may still change: one runs, and ranks
 * of the one before it may still leave. */
static const char next_sql[] =
    "SELECT g.generation FROM generation g JOIN job j ON j.job = g.job WHERE g.job = ?1"
    " AND g.state = 'ended' AND g.generation < j.generation - 1 AND g.generation >"
    " ifnull((SELECT max(p.generation) FROM generation_past p WHERE p.job = ?1), 0)"
    " ORDER BY g.generation LIMIT 1";
/* The row keeps what the query of launches answers. That query begins with the launch after ?3. */
static const char add_sql[] =
    "INSERT INTO generation_past (job, generation, nodes, step, unknown_ranks, unknown_unix_ms)"
    " SELECT ?1, generation, nodes, step, unknown_ranks, unknown_unix_ms FROM (%s)"
    " WHERE generation = ?3 + 1 LIMIT 1";
/* The oldest launch whose ranks may go. They stay while a round on record shows their hosts.
 * Numbers may have gaps, so the newest ?2 launches are counted by their rows. */
static const char oldest_sql[] =
    "SELECT p.generation FROM generation_past p WHERE p.job = ?1 AND p.generation <="
    " (SELECT g.generation FROM generation g WHERE g.job = ?1 ORDER BY g.generation DESC"
    "  LIMIT 1 OFFSET ?2)"
    " AND EXISTS (SELECT 1 FROM node n WHERE n.job = ?1 AND n.generation = p.generation)"
    " AND p.generation NOT IN (SELECT r.generation FROM round r WHERE r.job = ?1"
    "  AND EXISTS (SELECT 1 FROM participant m WHERE m.job = ?1 AND m.round = r.round))"
    " ORDER BY p.generation LIMIT 1";
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
        status = store_prepare(store, next_sql, &store->ended_next, err);
    if (status == MUSTER_OK)
        status = store_prepare(store, oldest_sql, &store->ended_oldest, err);
    for (size_t i = 0; i < STORE_ENDED_TABLES && status == MUSTER_OK; i++)
        status = store_prepare(store, deletions[i], &store->ended[i], err);
    return status;
}

/* The launch that the statement finds; 0 = none. */
static enum muster_status store_ended_find(struct store *store, sqlite3_stmt *s, const char *job,
                                           int64_t *ret_launch, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    int result;

    sqlite3_bind_text(s, 1, job, -1, SQLITE_STATIC);
    result = sqlite3_step(s);
    *ret_launch = result == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        status = store_failed(store, result, "look for old launches", err);
    sqlite3_reset(s);
    return status;
}

static enum muster_status store_ended_add(struct store *store, const char *job, int64_t launch,
                                          struct muster_error *err)
{
    sqlite3_bind_text(store->ended_add, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(store->ended_add, 3, launch - 1);
    sqlite3_bind_int64(store->ended_add, 4, 0);
    return store_step(store, store->ended_add, "write what a launch came to", err);
}

/* Deletes a slice of the launch's rows: first the progress of its ranks, then the ranks. */
static enum muster_status store_ended_delete(struct store *store, const char *job, int64_t launch,
                                             struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    bool over = true;

    for (size_t i = 0; i < STORE_ENDED_TABLES && over && status == MUSTER_OK; i++) {
        sqlite3_bind_text(store->ended[i], 1, job, -1, SQLITE_STATIC);
        sqlite3_bind_int64(store->ended[i], 2, launch);
        status = store_step(store, store->ended[i], "delete the ranks of an old launch", err);
        over = sqlite3_changes(store->db) < SLICE_ROWS;
    }
    return status;
}

enum muster_status store_ended_slice(struct store *store, const char *job, int64_t kept,
                                     bool *ret_more, struct muster_error *err)
{
    int64_t launch = 0;
    enum muster_status status = store_ended_find(store, store->ended_next, job, &launch, err);

    if (status == MUSTER_OK && launch > 0) {
        status = store_ended_add(store, job, launch, err);
    } else if (status == MUSTER_OK) {
        sqlite3_bind_int64(store->ended_oldest, 2, kept);
        status = store_ended_find(store, store->ended_oldest, job, &launch, err);
        if (status == MUSTER_OK && launch > 0)
            status = store_ended_delete(store, job, launch, err);
    }
    *ret_more = status == MUSTER_OK && launch > 0;
    return status;
}
