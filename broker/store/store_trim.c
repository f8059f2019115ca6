/* store_trim - rounds that ended long ago go, with the rows of their ranks and of checkpoints that
 * are gone from the disk. Without it a job of 1,000 ranks adds 1,000 rows a save, without limit. As
 * in store_tidy.c, at most a slice goes at once, between the batches. */
#include "broker/store/store_internal.h"

#include <stdio.h>

#define TRIM_EVERY 64   /* rounds of a job between two looks */
#define SLICE_ROWS 4096 /* a slice ends with the round that reaches this */
#define SLICE_ROUNDS 256
#define STRING(number) #number
#define STRING_OF(macro) STRING(macro)

/* This tells how many rounds of a job with that many ranks are kept. */
#define KEPT(ranks)                                                                       \
    "max(" STRING_OF(ROUNDS_KEPT_MIN) ", min(" STRING_OF(ROUNDS_KEPT_MAX) ", " STRING_OF( \
        ROUND_ROWS_KEPT) " / (" ranks ")))"
#define RANKS_OF(job)                                                                \
    "max(1, ifnull((SELECT g.world_size FROM generation g WHERE g.job = " job ".job" \
    " AND g.generation = " job ".generation), 1))"
/* A checkpoint's row stays while it is on the disk. Of those that are gone, each launch's furthest
 * stays: it tells how many steps the launch took. */
#define STAYS(c)                                                                               \
    "(" c ".state NOT IN ('failed', 'deleted') OR " c ".state = 'deleted' AND NOT EXISTS"      \
    " (SELECT 1 FROM checkpoint y WHERE y.job = " c ".job AND y.generation = " c ".generation" \
    " AND y.state IN ('committed', 'deleting', 'deleted') AND y.step > " c ".step))"

static const char next_job_sql[] = "SELECT job, round - " KEPT(RANKS_OF(
    "job")) " FROM job"
            " WHERE job > ?1 AND round > " STRING_OF(ROUNDS_KEPT_MIN) " ORDER BY job LIMIT 1";
/* An import writes a round before it has its checkpoint, and remembers one that was cut short. */
static const char next_rounds_sql[] =
    "SELECT r.round FROM round r WHERE r.job = ?1 AND r.round > ?2 AND r.round <= ?3"
    " AND r.state IN ('committed', 'aborted', 'unchanged') AND r.reason NOT LIKE 'found on disk%'"
    " AND NOT EXISTS (SELECT 1 FROM checkpoint c WHERE c.job = r.job AND c.round = r.round"
    " AND " STAYS("c") ") ORDER BY r.round LIMIT " STRING_OF(SLICE_ROUNDS);
/* Children before their parents. */
#define OF_ROUND(table) "DELETE FROM " table " WHERE job = ?1 AND round = ?2"
static const char *const deletions[] = {
    OF_ROUND("shard_file"), OF_ROUND("shard"),       OF_ROUND("checkpoint_custom"),
    OF_ROUND("checkpoint"), OF_ROUND("participant"), OF_ROUND("round"),
};
_Static_assert(sizeof deletions / sizeof *deletions == STORE_TRIM_TABLES, "one for each table");

enum muster_status store_trim_prepare(struct store *store, struct muster_error *err)
{
    int64_t long_jobs = 0;
    enum muster_status status = store_prepare(store, next_job_sql, &store->trim_job, err);

    if (status == MUSTER_OK)
        status = store_prepare(store, next_rounds_sql, &store->trim_rounds, err);
    for (size_t i = 0; i < STORE_TRIM_TABLES && status == MUSTER_OK; i++)
        status = store_prepare(store, deletions[i], &store->trim[i], err);
    if (status == MUSTER_OK)
        status = store_get_int(
            store, "SELECT EXISTS (SELECT 1 FROM job WHERE round > " STRING_OF(ROUNDS_KEPT_MIN) ")",
            &long_jobs, err);
    store->trims = long_jobs > 0;
    return status;
}

void store_trim_look(struct store *store, const struct record_round *row)
{
    if (row->round % TRIM_EVERY != 0 || store->trims)
        return;
    store->trims = true;
    store->trim_at_job[0] = '\0';
    store->trim_at_round = store->trim_to_round = 0;
}

static enum muster_status store_trim_next_job(struct store *store, struct muster_error *err)
{
    sqlite3_stmt *s = store->trim_job;
    enum muster_status status = MUSTER_OK;
    int result;

    sqlite3_bind_text(s, 1, store->trim_at_job, -1, SQLITE_TRANSIENT);
    result = sqlite3_step(s);
    store->trims = result == SQLITE_ROW;
    if (result == SQLITE_ROW) {
        snprintf(store->trim_at_job, sizeof store->trim_at_job, "%s",
                 (const char *)sqlite3_column_text(s, 0));
        store->trim_to_round = sqlite3_column_int64(s, 1);
        store->trim_at_round = 0;
    } else if (result != SQLITE_DONE) {
        status = store_failed(store, result, "look for a job with old rounds", err);
    }
    sqlite3_reset(s);
    return status;
}

/* The job's next rounds that go, in ascending order. */
static enum muster_status store_trim_list(struct store *store, int64_t rounds[SLICE_ROUNDS],
                                          size_t *ret_count, struct muster_error *err)
{
    sqlite3_stmt *s = store->trim_rounds;
    enum muster_status status = MUSTER_OK;
    size_t count = 0;
    int result;

    sqlite3_bind_text(s, 1, store->trim_at_job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, store->trim_at_round);
    sqlite3_bind_int64(s, 3, store->trim_to_round);
    while ((result = sqlite3_step(s)) == SQLITE_ROW && count < SLICE_ROUNDS)
        rounds[count++] = sqlite3_column_int64(s, 0);
    if (result != SQLITE_DONE && result != SQLITE_ROW)
        status = store_failed(store, result, "look for old rounds", err);
    sqlite3_reset(s);
    *ret_count = count;
    return status;
}

static enum muster_status store_trim_round(struct store *store, int64_t round, int *rows,
                                           struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < STORE_TRIM_TABLES && status == MUSTER_OK; i++) {
        sqlite3_bind_text(store->trim[i], 1, store->trim_at_job, -1, SQLITE_STATIC);
        sqlite3_bind_int64(store->trim[i], 2, round);
        status = store_step(store, store->trim[i], "delete an old round", err);
        *rows += sqlite3_changes(store->db);
    }
    return status;
}

enum muster_status store_trim_slice(struct store *store, struct muster_error *err)
{
    int64_t rounds[SLICE_ROUNDS];
    size_t count = 0;
    int rows = 0;
    enum muster_status status = store_trim_list(store, rounds, &count, err);

    if (status == MUSTER_OK && count == 0)
        return store_trim_next_job(store, err);
    for (size_t i = 0; i < count && rows < SLICE_ROWS && status == MUSTER_OK; i++) {
        status = store_trim_round(store, rounds[i], &rows, err);
        store->trim_at_round = rounds[i];
    }
    return status;
}
