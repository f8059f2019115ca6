/* store_read - what goes out of the database while the broker runs: the journal's events and the
 * answers to named queries. */
#include "broker/store/store_internal.h"

#include "schema/error.h"
#include "schema/sql/queries.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define EVENT_ARENA_MAX (1u << 20) /* one event decoded: 64 KiB, and its members as structs */

static const char *store_read_text_of(sqlite3_stmt *statement, int index)
{
    const unsigned char *text = sqlite3_column_text(statement, index);

    return text == NULL ? "" : (const char *)text;
}

static void store_read_done_with(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

/* --- journal ---------------------------------------------------------------------------------- */

uint64_t store_job_seq(struct store *store, const char *job)
{
    uint64_t seq = 0;

    sqlite3_bind_text(store->job_seq, 1, job, -1, SQLITE_STATIC);
    if (sqlite3_step(store->job_seq) == SQLITE_ROW)
        seq = (uint64_t)sqlite3_column_int64(store->job_seq, 0);
    store_read_done_with(store->job_seq);
    return seq;
}

static int64_t store_read_left_now(const struct store *store, sqlite3_stmt *statement,
                                   int64_t as_told, int64_t now_boot_ms)
{
    int64_t deadline = sqlite3_column_int64(statement, 2);

    if (deadline == 0)
        return as_told;
    if (strcmp(store_read_text_of(statement, 1), store->boot_id) != 0)
        return -1; /* unknown until the node repeats its notice */
    return deadline > now_boot_ms ? deadline - now_boot_ms : 0;
}

static enum muster_status store_read_hand_out_event(struct store *store, const char *job,
                                                    int64_t now_boot_ms, store_event_fn *event_fn,
                                                    void *arg, struct muster_error *err)
{
    sqlite3_stmt *statement = store->events;
    const uint8_t *body = sqlite3_column_blob(statement, 3);
    const size_t size = (size_t)sqlite3_column_bytes(statement, 3);
    struct wire_msg message;
    struct muster_error why = {.text = "it is not an event"};
    enum muster_status status;
    char finding[256];

    arena_reset(&store->arena);
    store->arena.limit_bytes = EVENT_ARENA_MAX;
    status = wire_decode(body, size, &store->arena, &message, &why);
    store->arena.limit_bytes = 0;
    if (status == MUSTER_E_NOMEM) /* says nothing of the file */
        return error_set(err, MUSTER_E_STORAGE, "no memory to read an event of job %s; free some",
                         job);
    if (status != MUSTER_OK || message.type != WIRE_EVENT) {
        snprintf(finding, sizeof finding, "event %lld of job %s cannot be read: %.120s",
                 (long long)sqlite3_column_int64(statement, 0), job, why.text);
        return store_damaged(store, finding, err);
    }
    message.u.event.left_ms =
        store_read_left_now(store, statement, message.u.event.left_ms, now_boot_ms);
    event_fn(arg, &message.u.event);
    return MUSTER_OK;
}

enum muster_status store_send_events(struct store *store, const char *job, uint64_t from_seq,
                                     uint64_t max, int64_t now_boot_ms, store_event_fn *event_fn,
                                     void *arg, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    uint64_t next = from_seq;
    int result = SQLITE_DONE;

    sqlite3_bind_text(store->events, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(store->events, 2, (int64_t)from_seq);
    sqlite3_bind_int64(store->events, 3, max > EVENTS_PAGE_MAX ? EVENTS_PAGE_MAX : (int64_t)max);
    while (status == MUSTER_OK && (result = sqlite3_step(store->events)) == SQLITE_ROW) {
        if ((uint64_t)sqlite3_column_int64(store->events, 0) != next) {
            result = SQLITE_DONE; /* what follows a gap helps nobody */
            break;
        }
        status = store_read_hand_out_event(store, job, now_boot_ms, event_fn, arg, err);
        next++;
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read events", err);
    store_read_done_with(store->events);
    if (status == MUSTER_OK && next == from_seq)
        status = error_set(err, MUSTER_E_NOT_FOUND,
                           "the journal of job %s has no event %" PRIu64
                           "; a snapshot tells what happened",
                           job, from_seq);
    return status;
}

/* --- queries ---------------------------------------------------------------------------------- */

static int store_read_pack_cell(msgpack_packer *packer, sqlite3_stmt *statement, int index)
{
    size_t size;

    switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER:
        return msgpack_pack_int64(packer, sqlite3_column_int64(statement, index));
    case SQLITE_FLOAT:
        return msgpack_pack_double(packer, sqlite3_column_double(statement, index));
    case SQLITE_TEXT:
        size = (size_t)sqlite3_column_bytes(statement, index);
        return msgpack_pack_str_with_body(packer, sqlite3_column_text(statement, index), size);
    default:
        return msgpack_pack_nil(packer);
    }
}

/* False: memory is out. */
static bool store_read_pack_row(msgpack_sbuffer *buffer, sqlite3_stmt *statement)
{
    msgpack_packer packer;
    int columns = sqlite3_column_count(statement);

    msgpack_sbuffer_clear(buffer);
    msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
    for (int i = 0; i < columns; i++) {
        if (store_read_pack_cell(&packer, statement, i) != 0)
            return false;
    }
    return true;
}

static enum muster_status store_read_collect(struct store *store, sqlite3_stmt *statement,
                                             struct store_rows *ret_rows, struct muster_error *err)
{
    msgpack_sbuffer row;
    enum muster_status status = MUSTER_OK;
    int result = SQLITE_DONE;

    msgpack_sbuffer_init(&row);
    while (status == MUSTER_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!store_read_pack_row(&row, statement)) {
            status = error_set(err, MUSTER_E_NOMEM, "no memory for an answer");
        } else if (row.size == 0 || row.size > sizeof ret_rows->cells) {
            status = error_set(err, MUSTER_E_UNSUPPORTED, "a row is empty or too long to be sent");
        } else if (row.size > sizeof ret_rows->cells - ret_rows->size) {
            ret_rows->more = true;
            result = SQLITE_DONE;
            break;
        } else {
            memcpy(ret_rows->cells + ret_rows->size, row.data, row.size);
            ret_rows->size += row.size;
            ret_rows->rows++;
        }
    }
    msgpack_sbuffer_destroy(&row);
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "answer a query", err);
    ret_rows->more = ret_rows->more || ret_rows->rows == QUERY_PAGE_ROWS;
    return status;
}

struct query_watch {
    int looks, max;
};

static int store_read_query_look(void *arg)
{
    struct query_watch *watch = arg;

    return ++watch->looks > watch->max;
}

static enum muster_status store_read_collect_in_time(struct store *store,
                                                     const struct store_query *query,
                                                     sqlite3_stmt *statement,
                                                     struct store_rows *ret_rows,
                                                     struct muster_error *err)
{
    struct query_watch watch = {.max = store->query_looks_max};
    enum muster_status status;

    sqlite3_progress_handler(store->db, QUERY_LOOK_STEPS, store_read_query_look, &watch);
    status = store_read_collect(store, statement, ret_rows, err);
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    if (status != MUSTER_OK && watch.looks > watch.max)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "%s is too much for a broker that has nodes to serve meanwhile; ask its "
                         "database itself, with --db",
                         query->name);
    return status;
}

/* sql is one of schema/sql/queries.def's, so its address is its name. */
static enum muster_status store_read_prepare_query(struct store *store, const char *sql,
                                                   struct muster_error *err)
{
    enum muster_status status;

    if (store->query_sql == sql)
        return MUSTER_OK;
    sqlite3_finalize(store->query);
    store->query = NULL;
    status = store_prepare(store, sql, &store->query, err);
    store->query_sql = status == MUSTER_OK ? sql : NULL;
    return status;
}

enum muster_status store_query(struct store *store, const struct store_query *query,
                               struct store_rows *ret_rows, struct muster_error *err)
{
    const char *sql = query_sql(query->name);
    sqlite3_stmt *statement;
    enum muster_status status;

    if (sql == NULL)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "this musterd knows no query %s; use the muster of the same version",
                         query->name);
    status = store_read_prepare_query(store, sql, err);
    if (status != MUSTER_OK)
        return status;
    statement = store->query;
    sqlite3_bind_text(statement, 1, query->job, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, query->text, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, query->number);
    sqlite3_bind_int64(statement, 4, query->after < 0 ? 0 : query->after);
    ret_rows->size = 0;
    ret_rows->rows = 0;
    ret_rows->more = false;
    ret_rows->columns = (uint64_t)sqlite3_column_count(statement);
    status = store_read_collect_in_time(store, query, statement, ret_rows, err);
    sqlite3_reset(statement); /* a reader that is left open would keep the WAL from being reset */
    sqlite3_clear_bindings(statement);
    return status;
}

uint64_t store_commits(const struct store *store)
{
    return store->commits;
}

struct store_disk store_disk(const struct store *store)
{
    struct store_disk disk = {.path = store->path, .bytes = -1, .free_bytes = -1};
    char log[PATH_BYTES_MAX + 8];
    struct statvfs fs;
    struct stat st;

    snprintf(log, sizeof log, "%s-wal", store->path);
    if (stat(store->path, &st) == 0)
        disk.bytes = st.st_size;
    if (disk.bytes >= 0 && stat(log, &st) == 0)
        disk.bytes += st.st_size;
    if (statvfs(store->path, &fs) == 0)
        disk.free_bytes = (int64_t)(fs.f_bavail * fs.f_frsize);
    return disk;
}
