/* fenced_log - see fenced_log.h. */
#include "fenced/fenced_log.h"

#include "fenced/postgres.h"
#include "schema/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RELEASE_TRIES 4
#define RELEASE_PAUSE_MS 100
#define READ_BATCHES 64   /* in the answer to one question, at most */
#define READ_BYTES 131072 /* of them: the batch that reaches it is the last */

struct fenced_log {
    struct postgres *postgres;
    char owner[FENCED_LOG_NAME_MAX];
    char id[64];    /* of the database that this broker was with; "": it has not seen one yet */
    uint64_t epoch; /* 0: never had the lease */
    uint64_t seq;
    int64_t schema; /* of the records, the newest that this process knows; 0: it reads any */
    bool is_older;  /* than who is active */
    bool has_tables;
    bool doubt; /* a batch was sent, and its answer did not come */
};

static enum muster_status fenced_do(struct fenced_log *log, const struct question *ask,
                                    int *ret_rows, struct muster_error *err)
{
    PGresult *result;
    enum muster_status status = postgres_ask(log->postgres, ask, &result, err);

    *ret_rows = status == MUSTER_OK ? PQntuples(result) : 0;
    PQclear(result);
    return status;
}

/* --- the lease -------------------------------------------------------------------------------- */

/* Two brokers that begin at once may both make them: the one that loses tries again. */
static enum muster_status fenced_make_tables(struct fenced_log *log, struct muster_error *err)
{
    static const char *const made[] = {
        "CREATE TABLE IF NOT EXISTS muster_batch (seq bigint PRIMARY KEY, epoch bigint NOT NULL, "
        "changes bytea NOT NULL)",
        "CREATE TABLE IF NOT EXISTS muster_snapshot (epoch bigint, seq bigint, part bigint, "
        "data bytea NOT NULL, PRIMARY KEY (epoch, seq, part))",
        "CREATE TABLE IF NOT EXISTS muster_lease (one boolean PRIMARY KEY CHECK (one), "
        "version bigint NOT NULL, id text NOT NULL, epoch bigint NOT NULL, seq bigint NOT NULL, "
        "snapshot_epoch bigint NOT NULL, snapshot bigint NOT NULL, owner text NOT NULL, "
        "ends timestamptz NOT NULL)",
        "INSERT INTO muster_lease SELECT true, 1, gen_random_uuid()::text, 0, 0, 0, -1, '', "
        "'-infinity' WHERE NOT EXISTS (SELECT FROM muster_batch) "
        "AND NOT EXISTS (SELECT FROM muster_snapshot) ON CONFLICT DO NOTHING",
        "SELECT 1 FROM muster_lease",
    };
    enum muster_status status = MUSTER_OK;
    int rows = 0;

    for (size_t i = 0; i < sizeof made / sizeof *made && status == MUSTER_OK; i++) {
        struct question ask = {.sql = made[i], .doing = "make muster's tables"};

        status = fenced_do(log, &ask, &rows, err);
    }
    if (status == MUSTER_OK && rows == 0)
        status = error_set(err, MUSTER_E_ARGUMENT,
                           "the shared database %s has records, and its table muster_lease has no "
                           "row: only a part of it was restored; restore the whole of it. To begin "
                           "with the records of --db, end all its brokers and drop the three "
                           "tables muster_*",
                           fenced_log_name(log));
    return status;
}

static enum muster_status fenced_has_tables(struct fenced_log *log, bool *ret_has,
                                            struct muster_error *err)
{
    struct question ask = {.sql = "SELECT to_regclass('muster_lease') IS NOT NULL WHERE "
                                  "to_regclass('muster_lease') IS NOT NULL",
                           .doing = "look for muster's tables"};
    int rows;
    enum muster_status status = fenced_do(log, &ask, &rows, err);

    if (status == MUSTER_OK && rows > 0) { /* and who made it came to the end */
        ask.sql = "SELECT 1 FROM muster_lease";
        status = fenced_do(log, &ask, &rows, err);
    }
    *ret_has = rows > 0;
    return status;
}

/* id NULL: it has no tables. An empty database in the place of the right one would split the
 * brokers: some go on with the records, and some without. */
static enum muster_status fenced_is_same(struct fenced_log *log, const char *id,
                                         struct muster_error *err)
{
    if (id != NULL && log->id[0] == '\0')
        snprintf(log->id, sizeof log->id, "%s", id);
    if (log->id[0] == '\0' || (id != NULL && strcmp(log->id, id) == 0))
        return MUSTER_OK;
    return error_set(
        err, postgres_was_right(log->postgres) ? MUSTER_E_STORAGE : MUSTER_E_ARGUMENT,
        "the shared database %s %s: this broker worked with another database; give the "
        "address of that one, or restore it. If it is lost for good, start musterd "
        "once without --shared: then its --db has records of its own, and can fill "
        "a new database",
        fenced_log_name(log), id == NULL ? "has no record of muster" : "has other records");
}

static enum muster_status fenced_no_row(const struct fenced_log *log, struct muster_error *err)
{
    return error_set(err, MUSTER_E_CORRUPT,
                     "the shared database %s has no row in its table muster_lease any more: "
                     "somebody deleted it, or restores a part of the database; restore the "
                     "whole of it",
                     fenced_log_name(log));
}

/* SQLite's user_version, in the head of the snapshot; NULL: there is none. */
#define SNAPSHOT_SCHEMA                                                               \
    "(SELECT ('x' || encode(substring(data from 61 for 4), 'hex'))::bit(32)::bigint " \
    "FROM muster_snapshot s WHERE s.epoch = snapshot_epoch AND s.seq = snapshot AND part = 0)"

static enum muster_status fenced_locked(struct fenced_log *log, const char *owner, int64_t left_ms,
                                        int64_t schema, struct muster_error *err)
{
    char older[128] = "";

    log->is_older = log->schema > 0 && schema > log->schema;
    if (log->is_older && left_ms == 0)
        return error_set(err, MUSTER_E_LOCKED,
                         "the shared database %s has records of schema %" PRId64
                         ", and this musterd knows schema %" PRId64
                         ": install the newer one here, too",
                         fenced_log_name(log), schema, log->schema);
    if (log->is_older)
        snprintf(older, sizeof older,
                 "; this musterd knows schema %" PRId64 ", the active broker writes %" PRId64
                 ": install the newer one here, too",
                 log->schema, schema);
    return error_set(err, MUSTER_E_LOCKED,
                     "%.200s is the active broker of the shared database %s, for %" PRId64
                     " ms at least%s",
                     owner, fenced_log_name(log), left_ms, older);
}

/* MUSTER_E_LOCKED, and for how long its lease still counts; or why that is not known. */
static enum muster_status fenced_holder(struct fenced_log *log, int64_t *ret_left_ms,
                                        struct muster_error *err)
{
    struct question ask = {
        .sql = "SELECT (extract(epoch FROM greatest(ends - now(), '0 s')) * 1000)::bigint, owner, "
               "version, id, " SNAPSHOT_SCHEMA
               " FROM (SELECT greatest(ends, '2000-01-01') AS ends, owner, version, id, "
               "snapshot_epoch, snapshot FROM muster_lease) lease", /* given up: -infinity */
        .doing = "read who is active"};
    PGresult *result;
    enum muster_status status = postgres_ask(log->postgres, &ask, &result, err);

    if (status != MUSTER_OK)
        return status;
    if (PQntuples(result) == 0)
        status = fenced_no_row(log, err);
    else if (postgres_int(result, 0, 2) != 1)
        status = error_set(err, MUSTER_E_ARGUMENT,
                           "the shared database %s is of a newer musterd (version %" PRId64
                           "): this one knows version 1; install the newer one here, too",
                           fenced_log_name(log), postgres_int(result, 0, 2));
    else if ((status = fenced_is_same(log, PQgetvalue(result, 0, 3), err)) == MUSTER_OK) {
        postgres_is_known(log->postgres);
        *ret_left_ms = postgres_int(result, 0, 0);
        status = fenced_locked(log, PQgetvalue(result, 0, 1), *ret_left_ms,
                               postgres_int(result, 0, 4), err);
    }
    PQclear(result);
    return status;
}

static enum muster_status fenced_held(struct fenced_log *log, struct muster_error *err)
{
    int64_t left_ms;

    return fenced_holder(log, &left_ms, err);
}

/* Of a row of: epoch, seq, snapshot_epoch, snapshot, id. */
static void fenced_take_head(const PGresult *result, struct fenced_log_head *ret_head)
{
    *ret_head = (struct fenced_log_head){
        .epoch = (uint64_t)postgres_int(result, 0, 0),
        .seq = (uint64_t)postgres_int(result, 0, 1),
        .has_snapshot = postgres_int(result, 0, 3) >= 0,
    };
    if (ret_head->has_snapshot) {
        ret_head->snapshot_epoch = (uint64_t)postgres_int(result, 0, 2);
        ret_head->snapshot_seq = (uint64_t)postgres_int(result, 0, 3);
    }
    snprintf(ret_head->id, sizeof ret_head->id, "%s", PQgetvalue(result, 0, 4));
}

/* A lease that ends later than any can was given by a clock that was set back since. Records of a
 * newer musterd are no use to an older one. */
enum muster_status fenced_log_take(struct fenced_log *log, int64_t lease_ms,
                                   struct fenced_log_head *ret_head, struct muster_error *err)
{
    struct question ask = {
        .sql = "UPDATE muster_lease SET owner = $1, epoch = greatest(epoch + 1, "
               "(extract(epoch FROM clock_timestamp()) * 1000)::bigint), "
               "ends = clock_timestamp() + $2 * interval '1 ms' "
               "WHERE version = 1 AND $3 IN ('', id) "
               "AND ($4::bigint = 0 OR $4::bigint >= coalesce(" SNAPSHOT_SCHEMA
               ", 0)) AND (ends < clock_timestamp() "
               "OR ends > clock_timestamp() + 2 * $2 * interval '1 ms') "
               "RETURNING epoch, seq, snapshot_epoch, snapshot, id, "
               "(SELECT count(*) FROM muster_batch b WHERE b.seq > muster_lease.seq)",
        .count = 4,
        .params = {postgres_text(log->owner), postgres_number((uint64_t)lease_ms),
                   postgres_text(log->id), postgres_number((uint64_t)log->schema)},
        .doing = "take the lease"};
    PGresult *result;
    bool has;
    enum muster_status status = fenced_has_tables(log, &has, err);

    if (status == MUSTER_OK && !has)
        status = fenced_is_same(log, NULL, err);
    if (status == MUSTER_OK && !has)
        status = fenced_make_tables(log, err);
    if (status == MUSTER_OK)
        status = postgres_ask(log->postgres, &ask, &result, err);
    if (status != MUSTER_OK)
        return status;
    if (PQntuples(result) == 0) {
        PQclear(result);
        return fenced_held(log, err);
    }
    fenced_take_head(result, ret_head);
    fenced_is_same(log, ret_head->id, NULL);
    log->epoch = ret_head->epoch;
    log->seq = ret_head->seq;
    log->doubt = false;
    if (postgres_int(result, 0, 5) > 0)
        status = error_set(err, MUSTER_E_CORRUPT,
                           "the shared database %s has batches beyond the %" PRIu64
                           " that its table muster_lease knows: only a part of it was restored; "
                           "restore the whole of it",
                           fenced_log_name(log), log->seq);
    PQclear(result);
    if (status != MUSTER_OK)
        fenced_log_release(log);
    return status;
}

static enum muster_status fenced_newer(const struct fenced_log *log, int64_t version,
                                       struct muster_error *err)
{
    return error_set(err, MUSTER_E_SCHEMA,
                     "the shared database %s is of a newer musterd (version %" PRId64
                     "): this muster knows version 1; use the muster of the version that wrote it",
                     fenced_log_name(log), version);
}

enum muster_status fenced_log_head(struct fenced_log *log, struct fenced_log_head *ret_head,
                                   struct muster_error *err)
{
    struct question ask = {
        .sql = "SELECT epoch, seq, snapshot_epoch, snapshot, id, version FROM muster_lease",
        .doing = "read the head of the log"};
    PGresult *result;
    enum muster_status status = MUSTER_OK;

    if (!log->has_tables)
        status = fenced_has_tables(log, &log->has_tables, err);
    if (status == MUSTER_OK && log->has_tables)
        status = postgres_ask(log->postgres, &ask, &result, err);
    if (status != MUSTER_OK)
        return status;
    if (!log->has_tables)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the database %s has no tables of muster: give the address that musterd "
                         "was started with (--shared)",
                         fenced_log_name(log));
    if (PQntuples(result) == 0)
        status = fenced_no_row(log, err);
    else if (postgres_int(result, 0, 5) != 1)
        status = fenced_newer(log, postgres_int(result, 0, 5), err);
    else {
        fenced_take_head(result, ret_head);
        postgres_is_known(log->postgres);
    }
    PQclear(result);
    return status;
}

enum muster_status fenced_log_look(struct fenced_log *log, struct muster_error *err)
{
    bool has;
    int64_t left_ms = 0;
    enum muster_status status = fenced_has_tables(log, &has, err);

    if (status != MUSTER_OK)
        return status;
    status = has ? fenced_holder(log, &left_ms, err) : fenced_is_same(log, NULL, err);
    return status == MUSTER_E_LOCKED && left_ms == 0 ? MUSTER_OK : status;
}

void fenced_log_expect(struct fenced_log *log, const char *id)
{
    snprintf(log->id, sizeof log->id, "%s", id);
}

const char *fenced_log_id(const struct fenced_log *log)
{
    return log->id;
}

void fenced_log_knows(struct fenced_log *log, int64_t schema)
{
    log->schema = schema;
}

bool fenced_log_is_older(const struct fenced_log *log)
{
    return log->is_older;
}

enum muster_status fenced_log_renew(struct fenced_log *log, int64_t lease_ms,
                                    struct muster_error *err)
{
    struct question ask = {
        .sql = "UPDATE muster_lease SET ends = clock_timestamp() + $2 * interval '1 ms' "
               "WHERE epoch = $1 RETURNING epoch",
        .count = 2,
        .params = {postgres_number(log->epoch), postgres_number((uint64_t)lease_ms)},
        .doing = "renew the lease"};
    int rows;
    enum muster_status status = fenced_do(log, &ask, &rows, err);

    return status == MUSTER_OK && rows == 0 ? fenced_held(log, err) : status;
}

/* The first answer may be that the connection is lost: then the next one would wait for the lease's
 * end. */
void fenced_log_release(struct fenced_log *log)
{
    struct question ask = {.sql = "UPDATE muster_lease SET ends = '-infinity' WHERE epoch = $1 "
                                  "RETURNING epoch",
                           .count = 1,
                           .params = {postgres_number(log->epoch)},
                           .doing = "give up the lease"};
    const struct timespec pause = {.tv_nsec = RELEASE_PAUSE_MS * 1000000};
    enum muster_status status = log->epoch > 0 ? MUSTER_E_STORAGE : MUSTER_OK;
    int rows;

    for (int i = 0; i < RELEASE_TRIES && status == MUSTER_E_STORAGE; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        status = fenced_do(log, &ask, &rows, NULL);
    }
}

/* --- the log ---------------------------------------------------------------------------------- */

/* Nobody else appends in our epoch: the end of the log tells what became of the batch. */
static enum muster_status fenced_resolve(struct fenced_log *log, struct muster_error *err)
{
    struct question ask = {.sql = "SELECT epoch, seq FROM muster_lease",
                           .doing = "see what was written"};
    PGresult *result;
    enum muster_status status = postgres_ask(log->postgres, &ask, &result, err);

    if (status != MUSTER_OK)
        return status;
    uint64_t epoch = (uint64_t)postgres_int(result, 0, 0),
             seq = (uint64_t)postgres_int(result, 0, 1);
    PQclear(result);
    if (epoch != log->epoch)
        return fenced_held(log, err);
    if (seq != log->seq)
        return error_set(err, MUSTER_E_IO,
                         "the log in the shared database %s ends with batch %" PRIu64
                         ", not with %" PRIu64 ": %s",
                         fenced_log_name(log), seq, log->seq,
                         seq > log->seq ? "the answer to the last one was lost"
                                        : "it was restored to an earlier state");
    log->doubt = false;
    return MUSTER_OK;
}

enum muster_status fenced_log_append(struct fenced_log *log, const void *changes, size_t size,
                                     struct muster_error *err)
{
    struct question ask = {
        .sql = "WITH fence AS (UPDATE muster_lease SET seq = seq + 1 "
               "WHERE epoch = $1 AND seq = $2 RETURNING seq) "
               "INSERT INTO muster_batch SELECT seq, $1, $3::bytea FROM fence RETURNING seq",
        .count = 3,
        .params = {postgres_number(log->epoch), postgres_number(log->seq),
                   postgres_bytes(changes, size)},
        .doing = "write a batch",
        .replicated = true};
    enum muster_status status = log->doubt ? fenced_resolve(log, err) : MUSTER_OK;
    int rows;

    if (status != MUSTER_OK)
        return status;
    log->doubt = true;
    status = fenced_do(log, &ask, &rows, err);
    if (status == MUSTER_OK && rows == 0) {
        status = fenced_resolve(log, err);
        return status == MUSTER_OK ? error_set(err, MUSTER_E_IO, "a batch was not taken") : status;
    }
    if (status == MUSTER_OK) {
        log->seq++;
        log->doubt = false;
    }
    return status;
}

uint64_t fenced_log_seq(const struct fenced_log *log)
{
    return log->seq;
}

/* --- snapshots -------------------------------------------------------------------------------- */

enum muster_status fenced_log_snapshot_part(struct fenced_log *log, uint64_t seq, uint64_t part,
                                            const void *data, size_t size, struct muster_error *err)
{
    struct question ask = {.sql =
                               "INSERT INTO muster_snapshot VALUES ($1, $2, $3, $4) "
                               "ON CONFLICT (epoch, seq, part) DO UPDATE SET data = excluded.data",
                           .count = 4,
                           .params = {postgres_number(log->epoch), postgres_number(seq),
                                      postgres_number(part), postgres_bytes(data, size)},
                           .doing = "write a snapshot"};
    int rows;

    return fenced_do(log, &ask, &rows, err);
}

enum muster_status fenced_log_snapshot_end(struct fenced_log *log, uint64_t seq,
                                           struct muster_error *err)
{
    struct question ask = {
        .sql = "UPDATE muster_lease SET snapshot = $2, snapshot_epoch = $1 "
               "WHERE epoch = $1 AND (snapshot_epoch, snapshot) < ($1, $2) RETURNING epoch",
        .count = 2,
        .params = {postgres_number(log->epoch), postgres_number(seq)},
        .doing = "end a snapshot"};
    int rows;
    enum muster_status status = fenced_do(log, &ask, &rows, err);

    return status == MUSTER_OK && rows == 0 ? fenced_held(log, err) : status;
}

/* Rows that are large are few a question: it has POSTGRES_WAIT_MS. */
static enum muster_status fenced_log_sweep_one(struct fenced_log *log, const char *sql,
                                               int *ret_rows, struct muster_error *err)
{
    struct question ask = {.sql = sql,
                           .count = 1,
                           .params = {postgres_number(log->epoch)},
                           .doing = "delete what the snapshot stands for"};

    return fenced_do(log, &ask, ret_rows, err);
}

enum muster_status fenced_log_sweep(struct fenced_log *log, bool *ret_more,
                                    struct muster_error *err)
{
    int batches = 0, parts = 0;
    enum muster_status status =
        fenced_log_sweep_one(log,
                             "DELETE FROM muster_batch WHERE seq IN (SELECT seq FROM muster_batch, "
                             "(SELECT snapshot FROM muster_lease WHERE epoch = $1) lease "
                             "WHERE seq <= snapshot ORDER BY seq LIMIT 256) RETURNING seq",
                             &batches, err);

    if (status == MUSTER_OK)
        status = fenced_log_sweep_one(
            log,
            "DELETE FROM muster_snapshot WHERE (epoch, seq, part) IN (SELECT "
            "s.epoch, s.seq, s.part FROM muster_snapshot s, (SELECT "
            "snapshot_epoch, snapshot FROM muster_lease WHERE epoch = $1) lease "
            "WHERE (s.epoch, s.seq) < (snapshot_epoch, snapshot) "
            "ORDER BY s.epoch, s.seq LIMIT 32) RETURNING epoch",
            &parts, err);
    if (status == MUSTER_OK)
        *ret_more = batches > 0 || parts > 0;
    return status;
}

void fenced_log_is_known(struct fenced_log *log)
{
    postgres_is_known(log->postgres);
}

enum muster_status fenced_log_read_snapshot(struct fenced_log *log,
                                            const struct fenced_log_head *head,
                                            fenced_log_part_fn *part_fn, void *arg,
                                            struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (uint64_t part = 0; status == MUSTER_OK; part++) {
        struct question ask = {.sql = "SELECT data FROM muster_snapshot WHERE epoch = $1 AND "
                                      "seq = $2 AND part = $3",
                               .count = 3,
                               .params = {postgres_number(head->snapshot_epoch),
                                          postgres_number(head->snapshot_seq),
                                          postgres_number(part)},
                               .doing = "read the snapshot"};
        PGresult *result;

        status = postgres_ask(log->postgres, &ask, &result, err);
        if (status != MUSTER_OK)
            return status;
        bool over = PQntuples(result) == 0;
        if (!over)
            status = part_fn(arg, PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0), err);
        PQclear(result);
        if (over && part == 0)
            return error_set(err, MUSTER_E_CORRUPT,
                             "the shared database %s has no snapshot: somebody deleted "
                             "it, or restored only a part of the database; restore the whole of it",
                             fenced_log_name(log));
        if (over)
            break;
    }
    return status;
}

static enum muster_status fenced_gap(const struct fenced_log *log, uint64_t seq,
                                     struct muster_error *err)
{
    return error_set(err, MUSTER_E_CORRUPT,
                     "the shared database %s has no batch %" PRIu64 ": somebody deleted it, or "
                     "restored only a part of the database; restore the whole of it",
                     fenced_log_name(log), seq);
}

enum muster_status fenced_log_read_batches(struct fenced_log *log,
                                           const struct fenced_log_head *head,
                                           fenced_log_part_fn *part_fn, void *arg,
                                           struct muster_error *err)
{
    uint64_t seq = head->snapshot_seq;
    enum muster_status status = MUSTER_OK;

    while (seq < head->seq && status == MUSTER_OK) {
        uint64_t left = head->seq - seq, last = seq + (left < READ_BATCHES ? left : READ_BATCHES);
        struct question ask = {
            .sql = "SELECT seq, changes FROM (SELECT seq, changes, sum(octet_length(changes)) "
                   "OVER (ORDER BY seq) - octet_length(changes) AS before FROM muster_batch "
                   "WHERE seq > $1 AND seq <= $2) batch WHERE before < $3 ORDER BY seq",
            .count = 3,
            .params = {postgres_number(seq), postgres_number(last), postgres_number(READ_BYTES)},
            .doing = "read the log"};
        PGresult *result;

        status = postgres_ask(log->postgres, &ask, &result, err);
        if (status != MUSTER_OK)
            return status;
        int rows = PQntuples(result);
        for (int i = 0; i < rows && status == MUSTER_OK; i++) {
            if ((uint64_t)postgres_int(result, i, 0) != ++seq)
                status = fenced_gap(log, seq, err);
            else
                status =
                    part_fn(arg, PQgetvalue(result, i, 1), (size_t)PQgetlength(result, i, 1), err);
        }
        PQclear(result);
        if (rows == 0)
            return fenced_gap(log, seq + 1, err);
    }
    return status;
}

/* --- life ------------------------------------------------------------------------------------- */

enum muster_status fenced_log_open(const char *uri, const char *owner,
                                   const struct postgres_use *use, struct fenced_log **ret_log,
                                   struct muster_error *err)
{
    struct fenced_log *log = calloc(1, sizeof *log);
    enum muster_status status;

    if (log == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory for the shared database");
    status = postgres_open(uri, use, &log->postgres, err);
    if (status != MUSTER_OK) {
        fenced_log_close(&log);
        return status;
    }
    snprintf(log->owner, sizeof log->owner, "%s", owner);
    for (char *at = log->owner; *at != '\0'; at++) /* a path may be no UTF-8, and a text must be */
        if (*at < ' ' || *at > '~')
            *at = '?';
    *ret_log = log;
    return MUSTER_OK;
}

void fenced_log_close(struct fenced_log **log)
{
    if (*log == NULL)
        return;
    postgres_close(&(*log)->postgres);
    free(*log);
    *log = NULL;
}

const char *fenced_log_name(const struct fenced_log *log)
{
    return postgres_name(log->postgres);
}
