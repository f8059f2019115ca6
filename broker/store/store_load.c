/* store_load - all that a start of the broker, or a job that wakes, has to know.
 * Owns: which rows those are, and the order in which they are handed to the core. */
#include "broker/store/store_internal.h"

#include <stdlib.h>

/* Of launches that took steps and are over; one that did not finish was interrupted. */
#define HISTORY_SQL                                                              \
    " FROM (SELECT job, sum(max(ended_unix_ms - started_unix_ms, 0)) AS run_ms," \
    " sum(end_status <> 0) AS interruptions FROM generation"                     \
    " WHERE job = ?1 AND started_unix_ms > 0 AND ended_unix_ms > 0 GROUP BY job) AS history"

static const char *store_load_text(sqlite3_stmt *statement, int index)
{
    const unsigned char *text = sqlite3_column_text(statement, index);

    return text == NULL ? "" : (const char *)text;
}

static enum muster_status load_broker(struct store *store, store_row_fn *row_fn, void *arg,
                                      struct muster_error *err)
{
    struct record row = {.kind = RECORD_BROKER, .u.broker.older = store_is_older(store)};
    sqlite3_stmt *statement = NULL;
    enum muster_status status =
        store_prepare(store,
                      "SELECT (SELECT value FROM meta WHERE key = 'broker_epoch'),"
                      " (SELECT value FROM meta WHERE key = 'database')",
                      &statement, err);
    int result;

    if (status != MUSTER_OK)
        return status;
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        row.u.broker.epoch = strtoull(store_load_text(statement, 0), NULL, 10);
        row.u.broker.database = strtoull(store_load_text(statement, 1), NULL, 16);
    } else
        status = store_failed(store, result, "read the broker's epoch", err);
    sqlite3_finalize(statement);
    if (status == MUSTER_OK)
        row_fn(arg, &row);
    return status;
}

#define ACTIVE_ROUNDS                                                \
    "round IN (SELECT round FROM round WHERE job = ?1 AND state IN " \
    "('freezing', 'decided', 'writing'))"

/* As COUNTS_NOT_SQL, for a whole job at once: the lowest step at which the launches after each one
 * began. Asked of each checkpoint it would cost checkpoints times launches. */
#define GIVEN_UP                                                                               \
    "(SELECT c.rowid FROM (SELECT g.generation AS generation, min(l.began_step) OVER"          \
    " (ORDER BY g.generation DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS step"   \
    " FROM generation g LEFT JOIN launch l USING (job, generation) WHERE g.job = ?1) AS later" \
    " CROSS JOIN checkpoint c ON c.job = ?1 AND c.generation = later.generation"               \
    " AND c.state = 'committed' AND c.step > later.step)"

static const struct {
    enum record_kind kind;
    const char *rest;
} job_parts[] = {
    {RECORD_GENERATION, " WHERE job = ?1 AND generation = ?2"},
    {RECORD_LAUNCH, " WHERE job = ?1 ORDER BY generation"},
    {RECORD_HOST, " WHERE job = ?1 AND (launch = (SELECT MAX(launch) FROM host WHERE job = ?1)"
                  " OR launch = 0) ORDER BY launch DESC, place"},
    {RECORD_NODE, " WHERE job = ?1 AND generation = ?2 ORDER BY role, rank, rowid"},
    {RECORD_PROGRESS, " WHERE job = ?1 AND incarnation IN (SELECT incarnation FROM node"
                      " WHERE job = ?1 AND generation = ?2)"},
    {RECORD_NOTICE, " WHERE job = ?1 AND generation = ?2 ORDER BY received_unix_ms, id"},
    {RECORD_ROUND,
     " WHERE job = ?1 AND (round IN (SELECT round FROM round WHERE job = ?1 AND state NOT IN"
     " ('freezing', 'decided', 'writing') ORDER BY round DESC LIMIT " STRING_OF(
         CORE_OUTCOMES_MAX) ") OR (state = 'aborted' AND reason = '" ROUND_FOUND_IN_PART "'))"
                            " ORDER BY round"},
    {RECORD_ROUND, " WHERE job = ?1 AND state IN ('freezing', 'decided', 'writing')"
                   " ORDER BY round"},
    {RECORD_PARTICIPANT, " WHERE job = ?1 AND " ACTIVE_ROUNDS " ORDER BY round, rank"},
    {RECORD_SHARD, " WHERE job = ?1 AND " ACTIVE_ROUNDS " ORDER BY round, rank"},
    {RECORD_FILE, " WHERE job = ?1 AND " ACTIVE_ROUNDS " ORDER BY round, rank, path"},
    {RECORD_CHECKPOINT, " WHERE job = ?1 AND state IN ('writing', 'deleting') ORDER BY round"},
    {RECORD_CHECKPOINT, " WHERE job = ?1 AND state = 'committed' AND rowid NOT IN " GIVEN_UP
                        " ORDER BY step DESC, round DESC LIMIT " STRING_OF(CORE_CHECKPOINTS_MAX)},
    {RECORD_CHECKPOINT,
     " WHERE rowid IN " GIVEN_UP " ORDER BY round LIMIT " STRING_OF(CORE_CHECKPOINTS_MAX)},
    {RECORD_POLICY, " WHERE job = ?1"},
    {RECORD_PIN, " WHERE job = ?1 ORDER BY checkpoint, id"},
    {RECORD_HISTORY, HISTORY_SQL},
};

static enum muster_status load_job(struct store *store, const char *job, uint64_t generation,
                                   store_row_fn *row_fn, void *arg, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < sizeof job_parts / sizeof *job_parts && status == MUSTER_OK; i++)
        status = store_rows_load(store, job_parts[i].kind, job_parts[i].rest, job, generation,
                                 row_fn, arg, err);
    return status;
}

/* Ended jobs, except the newest, sleep: only a question brings them back. */
#define AWAKE                                                                                     \
    "(state NOT IN ('ended', '') OR job IN (SELECT job FROM pin WHERE until_unix_ms > 0) OR job " \
    "IN"                                                                                          \
    " (SELECT job FROM job WHERE state IN ('ended', '') ORDER BY state_unix_ms DESC, job"         \
    " LIMIT " STRING_OF(CORE_ENDED_MAX) "))"

static enum muster_status load_asleep(struct store *store, store_row_fn *row_fn, void *arg,
                                      struct muster_error *err)
{
    sqlite3_stmt *jobs = NULL;
    int result = SQLITE_DONE;
    enum muster_status status = store_prepare(
        store,
        "SELECT job, state_unix_ms,"
        " EXISTS (SELECT 1 FROM checkpoint c WHERE c.job = job.job AND c.state = 'committed'),"
        " EXISTS (SELECT 1 FROM pin p WHERE p.job = job.job) FROM job WHERE NOT " AWAKE,
        &jobs, err);

    while (status == MUSTER_OK && (result = sqlite3_step(jobs)) == SQLITE_ROW) {
        const struct record row = {
            .kind = RECORD_JOB_ASLEEP,
            .u.job_asleep = {store_load_text(jobs, 0), sqlite3_column_int64(jobs, 1),
                             sqlite3_column_int(jobs, 2) != 0, sqlite3_column_int(jobs, 3) != 0}};
        row_fn(arg, &row);
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read the jobs", err);
    sqlite3_finalize(jobs);
    return status;
}

static enum muster_status load_jobs(struct store *store, store_row_fn *row_fn, void *arg,
                                    struct muster_error *err)
{
    sqlite3_stmt *jobs = NULL;
    int result = SQLITE_DONE;
    enum muster_status status = store_rows_load(store, RECORD_JOB, " WHERE " AWAKE " ORDER BY job",
                                                NULL, 0, row_fn, arg, err);

    if (status == MUSTER_OK)
        status = store_prepare(
            store, "SELECT job, generation FROM job WHERE " AWAKE " ORDER BY job", &jobs, err);
    while (status == MUSTER_OK && (result = sqlite3_step(jobs)) == SQLITE_ROW)
        status = load_job(store, store_load_text(jobs, 0), (uint64_t)sqlite3_column_int64(jobs, 1),
                          row_fn, arg, err);
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read the jobs", err);
    sqlite3_finalize(jobs);
    return status;
}

static enum muster_status load_all(struct store *store, store_row_fn *row_fn, void *arg,
                                   struct muster_error *err)
{
    enum muster_status status = load_broker(store, row_fn, arg, err);

    if (status == MUSTER_OK)
        status = load_jobs(store, row_fn, arg, err);
    if (status == MUSTER_OK)
        status = load_asleep(store, row_fn, arg, err);
    if (status == MUSTER_OK)
        status = store_tasks_load(store, row_fn, arg, err);
    return status;
}

enum muster_status store_load_job(struct store *store, const char *job, store_row_fn *row_fn,
                                  void *arg, struct muster_error *err)
{
    sqlite3_stmt *found = NULL;
    int64_t generation = -1;
    enum muster_status status =
        store_prepare(store, "SELECT generation FROM job WHERE job = ?1", &found, err);

    if (status != MUSTER_OK)
        return status;
    sqlite3_bind_text(found, 1, job, -1, SQLITE_STATIC);
    if (sqlite3_step(found) == SQLITE_ROW)
        generation = sqlite3_column_int64(found, 0);
    sqlite3_finalize(found);
    if (generation < 0)
        return MUSTER_OK;
    status = store_rows_load(store, RECORD_JOB, " WHERE job = ?1", job, 0, row_fn, arg, err);
    if (status == MUSTER_OK)
        status = load_job(store, job, (uint64_t)generation, row_fn, arg, err);
    return status;
}

enum muster_status store_load(struct store *store, store_row_fn *row_fn, void *arg,
                              struct muster_error *err)
{
    enum muster_status status = store_exec(store, "BEGIN", err);

    if (status != MUSTER_OK)
        return status;
    status = store_check_rows(store, err);
    if (status == MUSTER_OK)
        status = load_all(store, row_fn, arg, err);
    if (status == MUSTER_OK)
        return store_exec(store, "COMMIT", err);
    store_exec(store, "ROLLBACK", NULL);
    return status;
}
