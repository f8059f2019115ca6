/* store_trim - deletes rounds that ended long ago, with the rows of their ranks and of checkpoints
 * that are gone from the disk. Without it a job of 1,000 ranks adds 1,000 rows a save, without
 * limit. The same walk over the jobs looks after launches that ended (store_ended.c). As in
 * store_tidy.c, at most a slice goes at once, between the batches. */
#include "broker/store/store_internal.h"

#include <stdio.h>

#define TRIM_EVERY 64    /* rounds of a job between two looks */
#define TRIM_LAUNCHES 16 /* launches of a job, the same */
#define SLICE_ROWS 4096  /* a slice ends with the round that reaches this */
#define SLICE_ROUNDS 512

/* This tells how many rounds, and launches, of a job with that many ranks are kept. */
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

enum fate {
    FATE_STAYS,
    FATE_RANKS_GO, /* the round's own row stays: the chief asks whether it may clear what is left
                      on the disk of a save that came to nothing */
    FATE_GOES,
};

#define LONG \
    "(round > " STRING_OF(ROUNDS_KEPT_MIN) " OR generation >= " STRING_OF(TRIM_LAUNCHES) ")"
static const char next_job_sql[] =
    "SELECT job, " KEPT(RANKS_OF("job")) " FROM job"
                                         " WHERE job > ?1 AND " LONG " ORDER BY job LIMIT 1";
/* Numbers may have gaps, so the newest are counted by their rows. */
static const char last_old_sql[] = "SELECT round FROM round WHERE job = ?1 ORDER BY round DESC"
                                   " LIMIT 1 OFFSET ?2";
/* An import writes a round before it has its checkpoint, and remembers one that was cut short. */
static const char next_rounds_sql[] =
    "SELECT r.round, CASE WHEN r.state NOT IN ('committed', 'aborted', 'unchanged')"
    " OR r.reason LIKE 'found on disk%'"
    " OR EXISTS (SELECT 1 FROM checkpoint c WHERE c.job = r.job AND c.round = r.round"
    " AND " STAYS("c") ") THEN 0 WHEN r.state = 'aborted' AND r.step >= 0 THEN 1 ELSE 2 END"
                       " FROM round r WHERE r.job = ?1 AND r.round > ?2 AND r.round <= ?3"
                       " ORDER BY r.round LIMIT " STRING_OF(SLICE_ROUNDS);
/* Children before their parents. */
#define OF_ROUND(table) "DELETE FROM " table " WHERE job = ?1 AND round = ?2"
static const char *const deletions[] = {
    OF_ROUND("shard_file"),  OF_ROUND("shard"),      OF_ROUND("checkpoint_custom"),
    OF_ROUND("participant"), OF_ROUND("checkpoint"), OF_ROUND("round"),
};
#define TABLES_OF_RANKS 4 /* come first */
_Static_assert(sizeof deletions / sizeof *deletions == STORE_TRIM_TABLES, "one for each table");

enum muster_status store_trim_prepare(struct store *store, struct muster_error *err)
{
    int64_t long_jobs = 0;
    enum muster_status status = store_prepare(store, next_job_sql, &store->trim_job, err);

    if (status == MUSTER_OK)
        status = store_prepare(store, last_old_sql, &store->trim_last, err);
    if (status == MUSTER_OK)
        status = store_prepare(store, next_rounds_sql, &store->trim_rounds, err);
    for (size_t i = 0; i < STORE_TRIM_TABLES && status == MUSTER_OK; i++)
        status = store_prepare(store, deletions[i], &store->trim[i], err);
    if (status == MUSTER_OK)
        status = store_get_int(store, "SELECT EXISTS (SELECT 1 FROM job WHERE " LONG ")",
                               &long_jobs, err);
    store->trims = long_jobs > 0;
    return status;
}

void store_trim_again(struct store *store)
{
    store->trims = true;
    store->trim_at_job[0] = '\0';
    store->trim_at_round = store->trim_to_round = store->trim_kept = 0;
}

void store_trim_look(struct store *store, const struct record *row)
{
    bool due =
        (row->kind == RECORD_ROUND && row->u.round.round % TRIM_EVERY == 0) ||
        (row->kind == RECORD_GENERATION && row->u.generation.generation % TRIM_LAUNCHES == 0);

    if (due && !store->trims)
        store_trim_again(store);
}

/* The newest of the job's rounds that are old; 0: none is. */
static enum muster_status store_trim_find_last(struct store *store, struct muster_error *err)
{
    sqlite3_stmt *s = store->trim_last;
    enum muster_status status = MUSTER_OK;
    int result;

    sqlite3_bind_text(s, 1, store->trim_at_job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, store->trim_kept);
    result = sqlite3_step(s);
    store->trim_at_round = 0;
    store->trim_to_round = result == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        status = store_failed(store, result, "look for old rounds", err);
    sqlite3_reset(s);
    return status;
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
        store->trim_kept = sqlite3_column_int64(s, 1);
    } else if (result != SQLITE_DONE) {
        status = store_failed(store, result, "look for a job with old rounds", err);
    }
    sqlite3_reset(s);
    return status == MUSTER_OK && store->trims ? store_trim_find_last(store, err) : status;
}

struct trim_list {
    int64_t rounds[SLICE_ROUNDS];
    enum fate fates[SLICE_ROUNDS];
    size_t count;
};

/* The job's next old rounds, in ascending order. */
static enum muster_status store_trim_list(struct store *store, struct trim_list *list,
                                          struct muster_error *err)
{
    sqlite3_stmt *s = store->trim_rounds;
    enum muster_status status = MUSTER_OK;
    int result = SQLITE_ROW;

    list->count = 0;
    sqlite3_bind_text(s, 1, store->trim_at_job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, store->trim_at_round);
    sqlite3_bind_int64(s, 3, store->trim_to_round);
    while (list->count < SLICE_ROUNDS && (result = sqlite3_step(s)) == SQLITE_ROW) {
        list->rounds[list->count] = sqlite3_column_int64(s, 0);
        list->fates[list->count++] = (enum fate)sqlite3_column_int(s, 1);
    }
    if (list->count < SLICE_ROUNDS && result != SQLITE_DONE)
        status = store_failed(store, result, "look for old rounds", err);
    sqlite3_reset(s);
    return status;
}

static enum muster_status store_trim_round(struct store *store, int64_t round, enum fate fate,
                                           int *rows, struct muster_error *err)
{
    size_t tables = fate == FATE_GOES ? STORE_TRIM_TABLES : TABLES_OF_RANKS;
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; fate != FATE_STAYS && i < tables && status == MUSTER_OK; i++) {
        sqlite3_bind_text(store->trim[i], 1, store->trim_at_job, -1, SQLITE_STATIC);
        sqlite3_bind_int64(store->trim[i], 2, round);
        status = store_step(store, store->trim[i], "delete an old round", err);
        *rows += sqlite3_changes(store->db);
    }
    return status;
}

enum muster_status store_trim_slice(struct store *store, struct muster_error *err)
{
    struct trim_list list;
    bool more = false;
    int rows = 0;
    enum muster_status status = store_trim_list(store, &list, err);

    if (status == MUSTER_OK && list.count == 0 && store->trim_at_job[0] != '\0')
        status = store_ended_slice(store, store->trim_at_job, store->trim_kept, &more, err);
    if (status == MUSTER_OK && list.count == 0 && !more)
        return store_trim_next_job(store, err);
    for (size_t i = 0; i < list.count && rows < SLICE_ROWS && status == MUSTER_OK; i++) {
        status = store_trim_round(store, list.rounds[i], list.fates[i], &rows, err);
        store->trim_at_round = list.rounds[i];
    }
    return status;
}
