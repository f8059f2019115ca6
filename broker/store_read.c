/* store_read - what goes out of the database while the broker runs: the journal's events, the
 * manifest of a committed checkpoint, and the answers to named queries. */
#include "broker/store_internal.h"

#include "schema/error.h"
#include "schema/manifest.h"
#include "schema/queries.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_ARENA_MAX (1u << 20) /* one event decoded: 64 KiB, and its members as structs */

static const char *text_of(sqlite3_stmt *statement, int index)
{
    const unsigned char *text = sqlite3_column_text(statement, index);

    return text == NULL ? "" : (const char *)text;
}

static void done_with(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

/* --- journal -------------------------------------------------------------------------------------- */

uint64_t store_job_seq(struct store *store, const char *job)
{
    uint64_t seq = 0;

    sqlite3_bind_text(store->job_seq, 1, job, -1, SQLITE_STATIC);
    if (sqlite3_step(store->job_seq) == SQLITE_ROW)
        seq = (uint64_t)sqlite3_column_int64(store->job_seq, 0);
    done_with(store->job_seq);
    return seq;
}

static int64_t left_now(const struct store *store, sqlite3_stmt *statement, int64_t as_told,
                        int64_t now_boot_ms)
{
    int64_t deadline = sqlite3_column_int64(statement, 2);

    if (deadline == 0)
        return as_told;
    if (strcmp(text_of(statement, 1), store->boot_id) != 0)
        return -1; /* unknown until the node repeats its notice */
    return deadline > now_boot_ms ? deadline - now_boot_ms : 0;
}

static enum muster_status hand_out_event(struct store *store, const char *job, int64_t now_boot_ms,
                                         store_event_fn *event_fn, void *arg,
                                         struct muster_error *err)
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
    message.u.event.left_ms = left_now(store, statement, message.u.event.left_ms, now_boot_ms);
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
        status = hand_out_event(store, job, now_boot_ms, event_fn, arg, err);
        next++;
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read events", err);
    done_with(store->events);
    if (status == MUSTER_OK && next == from_seq)
        status = error_set(err, MUSTER_E_NOT_FOUND,
                           "the journal of job %s has no event %" PRIu64
                           "; a snapshot tells what happened",
                           job, from_seq);
    return status;
}

/* --- manifest ------------------------------------------------------------------------------------- */

static enum muster_status prepare_of_round(struct store *store, const char *sql, const char *job,
                                           uint64_t round, sqlite3_stmt **ret_statement,
                                           struct muster_error *err)
{
    enum muster_status status = store_prepare(store, sql, ret_statement, err);

    if (status != MUSTER_OK)
        return status;
    sqlite3_bind_text(*ret_statement, 1, job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(*ret_statement, 2, (int64_t)round);
    return MUSTER_OK;
}

static enum muster_status read_checkpoint(struct store *store, const char *job, uint64_t round,
                                          struct manifest *ret_manifest, struct muster_error *err)
{
    sqlite3_stmt *statement = NULL;
    enum muster_status status = prepare_of_round(
        store,
        "SELECT generation, step, layout, world_size, epoch, step_in_epoch, data_position, "
        "committed_unix_ms, cause, metrics, COALESCE((SELECT custom FROM checkpoint_custom u "
        "WHERE u.job = ?1 AND u.round = ?2), ''), (SELECT resume_step FROM generation g "
        "WHERE g.job = ?1 AND g.generation = checkpoint.generation AND g.opened_unix_ms > 0) "
        "FROM checkpoint WHERE job = ?1 AND round = ?2 AND state IN ('committed', 'superseded')",
        job, round, &statement, err);
    int result;

    if (status != MUSTER_OK)
        return status;
    result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        ret_manifest->generation = (uint64_t)sqlite3_column_int64(statement, 0);
        ret_manifest->step = sqlite3_column_int64(statement, 1);
        ret_manifest->layout = strcmp(text_of(statement, 2), wire_layout_name(LAYOUT_SHARDED)) == 0
                                   ? LAYOUT_SHARDED
                                   : LAYOUT_REPLICATED;
        ret_manifest->world_size = (uint64_t)sqlite3_column_int64(statement, 3);
        ret_manifest->epoch = sqlite3_column_int64(statement, 4);
        ret_manifest->step_in_epoch = sqlite3_column_int64(statement, 5);
        ret_manifest->data_position = sqlite3_column_int64(statement, 6);
        ret_manifest->total_run_calls = ret_manifest->step;
        ret_manifest->created_unix_ms = sqlite3_column_int64(statement, 7);
        ret_manifest->cause = arena_strdup(&store->arena, text_of(statement, 8));
        ret_manifest->metrics = arena_strdup(&store->arena, text_of(statement, 9));
        ret_manifest->custom = arena_strdup(&store->arena, text_of(statement, 10));
        ret_manifest->resumed_step = sqlite3_column_int64(statement, 11);
        ret_manifest->resumed_known = sqlite3_column_type(statement, 11) == SQLITE_INTEGER &&
                                      ret_manifest->resumed_step <= ret_manifest->step;
        ret_manifest->job = job;
        ret_manifest->round = round;
    } else if (result == SQLITE_DONE) {
        status = error_set(err, MUSTER_E_NOT_FOUND,
                           "job %s has no committed checkpoint of round %" PRIu64, job, round);
    } else {
        status = store_failed(store, result, "read a checkpoint", err);
    }
    sqlite3_finalize(statement);
    return status;
}

/* All rows of one statement that begins with count(*) OVER () into an array of the arena. */
typedef bool read_row_fn(struct store *store, sqlite3_stmt *statement, void *item);

static enum muster_status read_list(struct store *store, const char *sql, const char *job,
                                    uint64_t round, size_t item_size, read_row_fn *read_row,
                                    void **ret_items, size_t *ret_count, struct muster_error *err)
{
    sqlite3_stmt *statement = NULL;
    size_t capacity = 0;
    size_t count = 0;
    char *items = NULL;
    int result = SQLITE_DONE;
    enum muster_status status = prepare_of_round(store, sql, job, round, &statement, err);

    while (status == MUSTER_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        if (items == NULL) {
            capacity = (size_t)sqlite3_column_int64(statement, 0);
            items = arena_alloc(&store->arena, capacity * item_size);
        }
        if (items == NULL || count == capacity ||
            !read_row(store, statement, items + count * item_size))
            status = error_set(err, MUSTER_E_NOMEM, "no memory for the manifest of job %s", job);
        count++;
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read the shards", err);
    sqlite3_finalize(statement);
    if (status != MUSTER_OK)
        return status;
    *ret_items = items;
    *ret_count = count;
    return MUSTER_OK;
}

static bool read_shard(struct store *store, sqlite3_stmt *statement, void *item)
{
    struct manifest_shard *shard = item;

    (void)store;
    shard->rank = (uint64_t)sqlite3_column_int64(statement, 1);
    shard->incarnation = (uint64_t)sqlite3_column_int64(statement, 2);
    return true;
}

struct ranked_file {
    uint64_t rank;
    struct wire_file file;
};

static bool read_file(struct store *store, sqlite3_stmt *statement, void *item)
{
    struct ranked_file *ranked = item;

    ranked->rank = (uint64_t)sqlite3_column_int64(statement, 1);
    ranked->file.path = arena_strdup(&store->arena, text_of(statement, 2));
    ranked->file.bytes = (uint64_t)sqlite3_column_int64(statement, 3);
    ranked->file.checksum = arena_strdup(&store->arena, text_of(statement, 4));
    return ranked->file.path != NULL && ranked->file.checksum != NULL;
}

/* Both lists are in order of rank. Files of a rank whose shard did not come are left out. */
static bool files_to_shards(struct store *store, struct manifest_shard *shards, size_t shard_count,
                            const struct ranked_file *ranked, size_t file_count)
{
    struct wire_file *files = arena_alloc(&store->arena, (file_count + 1) * sizeof *files);
    size_t at = 0;

    if (files == NULL)
        return false;
    for (size_t i = 0; i < shard_count; i++) {
        while (at < file_count && ranked[at].rank < shards[i].rank)
            at++;
        shards[i].files = &files[at];
        for (; at < file_count && ranked[at].rank == shards[i].rank; at++) {
            files[at] = ranked[at].file;
            shards[i].file_count++;
        }
    }
    return true;
}

static enum muster_status read_shards(struct store *store, struct manifest *manifest,
                                      struct muster_error *err)
{
    void *shards = NULL;
    void *files = NULL;
    size_t shard_count = 0;
    size_t file_count = 0;
    enum muster_status status = read_list(
        store,
        "SELECT count(*) OVER (), rank, incarnation FROM shard WHERE job = ?1 AND round = ?2 "
        "ORDER BY rank",
        manifest->job, manifest->round, sizeof(struct manifest_shard), read_shard, &shards,
        &shard_count, err);

    if (status == MUSTER_OK)
        status = read_list(store,
                           "SELECT count(*) OVER (), rank, path, bytes, checksum FROM shard_file "
                           "WHERE job = ?1 AND round = ?2 ORDER BY rank, path",
                           manifest->job, manifest->round, sizeof(struct ranked_file), read_file,
                           &files, &file_count, err);
    if (status != MUSTER_OK)
        return status;
    if (!files_to_shards(store, shards, shard_count, files, file_count))
        return error_set(err, MUSTER_E_NOMEM, "no memory for the manifest of job %s",
                         manifest->job);
    manifest->shards = shards;
    manifest->shard_count = shard_count;
    return MUSTER_OK;
}

/* Committed rows do not change, so what was rendered once stays true. */
static enum muster_status render(struct store *store, const char *job, uint64_t round,
                                 struct muster_error *err)
{
    struct manifest manifest = {.cause = ""};
    char *text = NULL;
    size_t size = 0;
    enum muster_status status;

    if (round != 0 && store->manifest.round == round && strcmp(store->manifest.job, job) == 0)
        return MUSTER_OK;
    arena_reset(&store->arena);
    status = read_checkpoint(store, job, round, &manifest, err);
    if (status == MUSTER_OK)
        status = read_shards(store, &manifest, err);
    if (status == MUSTER_OK)
        status = manifest_render(&manifest, &text, &size, err);
    arena_reset(&store->arena);
    if (status != MUSTER_OK)
        return status;
    free(store->manifest.text);
    store->manifest.text = text;
    store->manifest.size = size;
    store->manifest.round = round;
    store->manifest.generation = manifest.generation;
    store->manifest.step = manifest.step;
    snprintf(store->manifest.job, sizeof store->manifest.job, "%s", job);
    return MUSTER_OK;
}

enum muster_status store_manifest(struct store *store, const char *job, uint64_t round,
                                  uint64_t offset, struct store_manifest *ret_manifest,
                                  struct muster_error *err)
{
    enum muster_status status = render(store, job, round, err);
    size_t left;

    if (status != MUSTER_OK)
        return status;
    if (offset > store->manifest.size)
        return error_set(err, MUSTER_E_NOT_FOUND,
                         "the manifest of job %s, round %" PRIu64 " has %zu bytes, not %" PRIu64,
                         job, round, store->manifest.size, offset);
    left = store->manifest.size - (size_t)offset;
    *ret_manifest = (struct store_manifest){
        .generation = store->manifest.generation,
        .step = store->manifest.step,
        .offset = offset,
        .total = store->manifest.size,
        .data = (const uint8_t *)store->manifest.text + offset,
        .size = left < MANIFEST_CHUNK_MAX ? left : MANIFEST_CHUNK_MAX,
    };
    return MUSTER_OK;
}

/* --- queries -------------------------------------------------------------------------------------- */

static int pack_cell(msgpack_packer *packer, sqlite3_stmt *statement, int index)
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
static bool pack_row(msgpack_sbuffer *buffer, sqlite3_stmt *statement)
{
    msgpack_packer packer;
    int columns = sqlite3_column_count(statement);

    msgpack_sbuffer_clear(buffer);
    msgpack_packer_init(&packer, buffer, msgpack_sbuffer_write);
    for (int i = 0; i < columns; i++) {
        if (pack_cell(&packer, statement, i) != 0)
            return false;
    }
    return true;
}

static enum muster_status collect(struct store *store, sqlite3_stmt *statement,
                                  struct store_rows *ret_rows, struct muster_error *err)
{
    msgpack_sbuffer row;
    enum muster_status status = MUSTER_OK;
    int result = SQLITE_DONE;

    msgpack_sbuffer_init(&row);
    while (status == MUSTER_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!pack_row(&row, statement)) {
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

static int query_look(void *arg)
{
    struct query_watch *watch = arg;

    return ++watch->looks > watch->max;
}

static enum muster_status collect_in_time(struct store *store, const struct store_query *query,
                                          sqlite3_stmt *statement, struct store_rows *ret_rows,
                                          struct muster_error *err)
{
    struct query_watch watch = {.max = store->query_looks_max};
    enum muster_status status;

    sqlite3_progress_handler(store->db, QUERY_LOOK_STEPS, query_look, &watch);
    status = collect(store, statement, ret_rows, err);
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    if (status != MUSTER_OK && watch.looks > watch.max)
        return error_set(err, MUSTER_E_UNSUPPORTED,
                         "%s is too much for a broker that has nodes to serve meanwhile; ask its "
                         "database itself, with --db",
                         query->name);
    return status;
}

/* sql is one of schema/queries.def's, so its address is its name. */
static enum muster_status prepare_query(struct store *store, const char *sql,
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
    status = prepare_query(store, sql, err);
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
    status = collect_in_time(store, query, statement, ret_rows, err);
    sqlite3_reset(statement); /* a reader that is left open would keep the WAL from being reset */
    sqlite3_clear_bindings(statement);
    return status;
}
