/* store_rows - records to rows and back, by one table of columns.
 * Owns: which field is which column.
 * Invariant: every write is an insert or an update of the whole row by its key, so that a row
 * written twice is a row written once. An event's row never changes. */
#include "broker/store/store_internal.h"

#include "schema/error.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum column_type {
    COLUMN_U64, /* the 64 bits, as a signed number */
    COLUMN_I64,
    COLUMN_UNSIGNED,
    COLUMN_BOOL,
    COLUMN_TEXT,
    COLUMN_WORD,    /* an enum, stored as its word; none is '' */
    COLUMN_WORD64,  /* the same in a uint64_t, write only */
    COLUMN_BOOT_ID, /* of this boot; read: sets the bool at offset if it is another's */
    COLUMN_BOOT_MS, /* after its BOOT_ID; read: 0 if of another boot */
    COLUMN_BODY,    /* the event as a frame, write only */
};

struct words {
    const char *(*name)(unsigned value);
    unsigned count;
};
struct column {
    const char *name;
    enum column_type type;
    size_t offset;
    const struct words *words;
};

static const char *rows_notice_state_name(unsigned state)
{
    static const char *const names[] = {"active", "cancelled", "served"};

    return state < 3 ? names[state] : "unknown";
}

static const char *rows_host_state_name(unsigned state)
{
    static const char *const names[] = {"", "waiting", "running", "left", "lost"};

    return state < HOST_STATE_COUNT ? names[state] : "unknown";
}

static const struct words word_role = {wire_role_name, ROLE_COUNT};
static const struct words word_layout = {wire_layout_name, LAYOUT_COUNT};
static const struct words word_cause = {wire_cause_name, CAUSE_COUNT};
static const struct words word_round = {wire_round_state_name, ROUND_STATE_COUNT};
static const struct words word_generation = {wire_generation_state_name, GENERATION_STATE_COUNT};
static const struct words word_node = {wire_node_state_name, NODE_STATE_COUNT};
static const struct words word_phase = {wire_phase_name, PHASE_COUNT};
static const struct words word_notice = {wire_notice_kind_name, NOTICE_KIND_COUNT};
static const struct words word_leave = {wire_leave_why_name, LEAVE_WHY_COUNT};
static const struct words word_checkpoint = {wire_checkpoint_state_name, CHECKPOINT_STATE_COUNT};
static const struct words word_event = {wire_event_kind_name, EVENT_KIND_COUNT};
static const struct words word_notice_state = {rows_notice_state_name, 3};
static const struct words word_host = {rows_host_state_name, HOST_STATE_COUNT};

/* COLUMN(row, field, type): a column named as its field. */
#define AT(row, field) offsetof(struct record, u.row.field)
#define COLUMN(row, field, type)                    \
    {                                               \
#field, COLUMN_##type, AT(row, field), NULL \
    }
#define WORD(row, field, words)                       \
    {                                                 \
#field, COLUMN_WORD, AT(row, field), &(words) \
    }

static const struct column job_columns[] = {
    COLUMN(job, job, TEXT),
    WORD(job, state, word_generation),
    COLUMN(job, state_unix_ms, I64),
    COLUMN(job, generation, U64),
    COLUMN(job, seq, U64),
    COLUMN(job, round, U64),
    COLUMN(job, save_now_id, TEXT),
    COLUMN(job, created_unix_ms, I64),
    COLUMN(job, save_now_round, U64),
    WORD(job, want, word_cause),
    COLUMN(job, want_attempt, U64),
    COLUMN(job, want_aborted_steps, BOOL),
    COLUMN(job, step_p95_ms, I64),
    COLUMN(job, save_p95_ms, I64),
    COLUMN(job, saves, TEXT),
    COLUMN(job, freeze_unix_ms, I64),
    COLUMN(job, plan, TEXT),
    COLUMN(job, lineage, TEXT),
};
static const struct column launch_columns[] = {
    COLUMN(launch, job, TEXT),
    COLUMN(launch, generation, U64),
    COLUMN(launch, began_step, I64),
};
static const struct column host_columns[] = {
    COLUMN(host, job, TEXT),          COLUMN(host, launch, U64),     COLUMN(host, id, U64),
    COLUMN(host, place, I64),         COLUMN(host, name, TEXT),      COLUMN(host, address, TEXT),
    COLUMN(host, port, U64),          COLUMN(host, first_rank, U64), COLUMN(host, ranks, U64),
    COLUMN(host, min_hosts, U64),     COLUMN(host, max_hosts, U64),  COLUMN(host, wait_ms, U64),
    COLUMN(host, node_rank, I64),     COLUMN(host, ended, U64),      WORD(host, state, word_host),
    COLUMN(host, state_unix_ms, I64),
};
static const struct column generation_columns[] = {
    COLUMN(generation, job, TEXT),
    COLUMN(generation, generation, U64),
    WORD(generation, state, word_generation),
    COLUMN(generation, world_size, U64),
    WORD(generation, layout, word_layout),
    COLUMN(generation, checkpoint_dir, TEXT),
    COLUMN(generation, resume_checkpoint, U64),
    COLUMN(generation, resume_step, I64),
    COLUMN(generation, resume_ready, BOOL),
    COLUMN(generation, fallback, BOOL),
    COLUMN(generation, end_status, UNSIGNED),
    COLUMN(generation, end_text, TEXT),
    COLUMN(generation, error_rank, I64),
    COLUMN(generation, error_code, I64),
    COLUMN(generation, error_text, TEXT),
    COLUMN(generation, opened_unix_ms, I64),
    COLUMN(generation, started_unix_ms, I64),
    COLUMN(generation, ended_unix_ms, I64),
    COLUMN(generation, ending_unix_ms, I64),
};
static const struct column node_columns[] = {
    COLUMN(node, job, TEXT),          COLUMN(node, incarnation, U64),
    COLUMN(node, generation, U64),    WORD(node, role, word_role),
    COLUMN(node, rank, U64),          COLUMN(node, host, TEXT),
    COLUMN(node, pid, U64),           WORD(node, state, word_node),
    COLUMN(node, last_request, U64),  COLUMN(node, last_code, UNSIGNED),
    COLUMN(node, last_value, U64),    WORD(node, leave_why, word_leave),
    COLUMN(node, exit_code, I64),     COLUMN(node, joined_unix_ms, I64),
    COLUMN(node, ended_unix_ms, I64),
};
static const struct column progress_columns[] = {
    COLUMN(progress, job, TEXT),        COLUMN(progress, incarnation, U64),
    COLUMN(progress, begun, I64),       COLUMN(progress, done, I64),
    WORD(progress, phase, word_phase),  COLUMN(progress, step_p95_ms, U64),
    COLUMN(progress, applied_seq, U64), COLUMN(progress, heard_unix_ms, I64),
    COLUMN(progress, sources, TEXT),
};
static const struct column notice_columns[] = {
    COLUMN(notice, job, TEXT),
    COLUMN(notice, generation, U64),
    COLUMN(notice, id, TEXT),
    COLUMN(notice, rank, I64),
    COLUMN(notice, incarnation, U64),
    WORD(notice, kind, word_notice),
    COLUMN(notice, source, TEXT),
    WORD(notice, state, word_notice_state),
    COLUMN(notice, cancellable, BOOL),
    COLUMN(notice, left_ms, I64),
    {"boot_id", COLUMN_BOOT_ID, AT(notice, other_boot), NULL},
    COLUMN(notice, deadline_boot_ms, BOOT_MS),
    COLUMN(notice, text, TEXT),
    COLUMN(notice, round, U64),
    COLUMN(notice, received_unix_ms, I64),
    COLUMN(notice, flags, U64),
};
static const struct column event_columns[] = {
    COLUMN(event, job, TEXT),
    COLUMN(event, seq, U64),
    COLUMN(event, generation, U64),
    {"kind", COLUMN_WORD64, AT(event, body.kind), &word_event},
    {"round", COLUMN_U64, AT(event, body.round), NULL},
    {"rank", COLUMN_I64, AT(event, body.rank), NULL},
    {"step", COLUMN_I64, AT(event, body.step), NULL},
    {"text", COLUMN_TEXT, AT(event, body.text), NULL},
    COLUMN(event, unix_ms, I64),
    {"boot_id", COLUMN_BOOT_ID, 0, NULL},
    COLUMN(event, deadline_boot_ms, I64),
    COLUMN(event, body, BODY),
};
static const struct column round_columns[] = {
    COLUMN(round, job, TEXT),
    COLUMN(round, round, U64),
    COLUMN(round, generation, U64),
    COLUMN(round, attempt, U64),
    WORD(round, cause, word_cause),
    WORD(round, state, word_round),
    COLUMN(round, step, I64),
    COLUMN(round, aborted_steps, BOOL),
    COLUMN(round, culprit_rank, I64),
    COLUMN(round, reason_code, UNSIGNED),
    COLUMN(round, reason, TEXT),
    COLUMN(round, final, BOOL),
    {"boot_id", COLUMN_BOOT_ID, AT(round, other_boot), NULL},
    COLUMN(round, deadline_boot_ms, BOOT_MS),
    COLUMN(round, opened_boot_ms, BOOT_MS),
    COLUMN(round, opened_unix_ms, I64),
    COLUMN(round, decided_unix_ms, I64),
    COLUMN(round, captured_unix_ms, I64),
    COLUMN(round, ended_unix_ms, I64),
    COLUMN(round, margin_ms, I64),
    COLUMN(round, plan, TEXT),
};
static const struct column participant_columns[] = {
    COLUMN(participant, job, TEXT),       COLUMN(participant, round, U64),
    COLUMN(participant, rank, U64),       COLUMN(participant, incarnation, U64),
    COLUMN(participant, writer, BOOL),    COLUMN(participant, begun, I64),
    COLUMN(participant, done, I64),       COLUMN(participant, reported_ms, I64),
    COLUMN(participant, at_step_ms, I64), COLUMN(participant, captured_ms, I64),
    COLUMN(participant, saved_ms, I64),   COLUMN(participant, save_ms, I64),
    COLUMN(participant, failed, TEXT),
};
static const struct column checkpoint_columns[] = {
    COLUMN(checkpoint, job, TEXT),
    COLUMN(checkpoint, round, U64),
    COLUMN(checkpoint, generation, U64),
    COLUMN(checkpoint, step, I64),
    WORD(checkpoint, state, word_checkpoint),
    WORD(checkpoint, cause, word_cause),
    WORD(checkpoint, layout, word_layout),
    COLUMN(checkpoint, world_size, U64),
    COLUMN(checkpoint, shards_required, U64),
    COLUMN(checkpoint, bytes, U64),
    COLUMN(checkpoint, path, TEXT),
    COLUMN(checkpoint, epoch, I64),
    COLUMN(checkpoint, step_in_epoch, I64),
    COLUMN(checkpoint, data_position, I64),
    COLUMN(checkpoint, pinned, BOOL),
    COLUMN(checkpoint, metrics, TEXT),
    COLUMN(checkpoint, committed_unix_ms, I64),
    COLUMN(checkpoint, blocked_ms, I64),
    COLUMN(checkpoint, waited_ms, I64),
    COLUMN(checkpoint, total_ms, I64),
    COLUMN(checkpoint, trash, TEXT),
};
static const struct column shard_columns[] = {
    COLUMN(shard, job, TEXT),          COLUMN(shard, round, U64),
    COLUMN(shard, rank, U64),          COLUMN(shard, incarnation, U64),
    COLUMN(shard, files, U64),         COLUMN(shard, bytes, U64),
    COLUMN(shard, save_ms, U64),       COLUMN(shard, blocked_ms, U64),
    COLUMN(shard, saved_unix_ms, I64), COLUMN(shard, waited_ms, U64),
};
static const struct column file_columns[] = {
    COLUMN(file, job, TEXT),  COLUMN(file, round, U64), COLUMN(file, rank, U64),
    COLUMN(file, path, TEXT), COLUMN(file, bytes, U64), COLUMN(file, checksum, TEXT),
};

static const struct column policy_columns[] = {
    COLUMN(policy, job, TEXT),  COLUMN(policy, generation, U64), COLUMN(policy, keep, TEXT),
    COLUMN(policy, save, TEXT), COLUMN(policy, trash, TEXT),
};
static const struct column pin_columns[] = {
    COLUMN(pin, job, TEXT),
    COLUMN(pin, checkpoint, U64),
    COLUMN(pin, id, TEXT),
    COLUMN(pin, until_unix_ms, I64),
};
static const struct column custom_columns[] = {
    COLUMN(custom, job, TEXT),
    COLUMN(custom, round, U64),
    COLUMN(custom, custom, TEXT),
};
static const struct column history_columns[] = {
    COLUMN(history, job, TEXT),
    COLUMN(history, run_ms, I64),
    COLUMN(history, interruptions, U64),
};

#define EVENT_KEPT                                                                \
    "seq = event.seq WHERE body = excluded.body" /* other content: no row changes \
                                                  */

static const struct table {
    const char *name;
    const struct column *columns;
    size_t count;
    const char *key;
    const char *on_conflict; /* NULL = take the new row */
} tables[RECORD_KIND_COUNT] = {
#define TABLE(columns) columns, sizeof(columns) / sizeof *(columns)
    [RECORD_JOB] = {"job", TABLE(job_columns), "job", NULL},
    [RECORD_GENERATION] = {"generation", TABLE(generation_columns), "job, generation", NULL},
    [RECORD_LAUNCH] = {"launch", TABLE(launch_columns), "job, generation", NULL},
    [RECORD_HOST] = {"host", TABLE(host_columns), "job, launch, id", NULL},
    [RECORD_NODE] = {"node", TABLE(node_columns), "job, incarnation", NULL},
    [RECORD_PROGRESS] = {"progress", TABLE(progress_columns), "job, incarnation", NULL},
    [RECORD_NOTICE] = {"notice", TABLE(notice_columns), "job, generation, id", NULL},
    [RECORD_EVENT] = {"event", TABLE(event_columns), "job, seq", EVENT_KEPT},
    [RECORD_ROUND] = {"round", TABLE(round_columns), "job, round", NULL},
    [RECORD_PARTICIPANT] = {"participant", TABLE(participant_columns), "job, round, rank", NULL},
    [RECORD_CHECKPOINT] = {"checkpoint", TABLE(checkpoint_columns), "job, round", NULL},
    [RECORD_SHARD] = {"shard", TABLE(shard_columns), "job, round, rank", NULL},
    [RECORD_FILE] = {"shard_file", TABLE(file_columns), "job, round, rank, path", NULL},
    [RECORD_POLICY] = {"policy", TABLE(policy_columns), "job", NULL},
    [RECORD_PIN] = {"pin", TABLE(pin_columns), "job, checkpoint, id", NULL},
    [RECORD_CUSTOM] = {"checkpoint_custom", TABLE(custom_columns), "job, round", NULL},
    [RECORD_HISTORY] = {"history", TABLE(history_columns), NULL, NULL},
};

static const char broker_sql[] =
    "INSERT INTO meta (key, value) VALUES ('broker_epoch', ?1), ('database', ?2) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value";
static const char unpin_sql[] = "DELETE FROM pin WHERE job = ?1 AND checkpoint = ?2 AND id = ?3";
static const char shards_gone_sql[] = "DELETE FROM shard WHERE job = ?1 AND round = ?2";
static const char files_gone_sql[] = "DELETE FROM shard_file WHERE job = ?1 AND round = ?2";
/* --- statements ----------------------------------------------------------------------------- */

#define SQL_MAX 4096

static void rows_sql_append(char *sql, const char *text)
{
    strncat(sql, text, SQL_MAX - 1 - strlen(sql));
}

static void rows_append_columns(char *sql, const struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        rows_sql_append(sql, i > 0 ? ", " : "");
        rows_sql_append(sql, table->columns[i].name);
    }
}

/* INSERT ... ON CONFLICT (key) DO UPDATE; never REPLACE, which would delete a row others refer to.
 * The key, which comes first, is not set: SQLite would read all rows that refer to it, of a job its
 * whole journal. */
static void rows_write_sql(const struct table *table, char *sql)
{
    size_t first = 1;
    char set[128];

    sql[0] = '\0';
    rows_sql_append(sql, "INSERT INTO ");
    rows_sql_append(sql, table->name);
    rows_sql_append(sql, " (");
    rows_append_columns(sql, table);
    rows_sql_append(sql, ") VALUES (?1");
    for (size_t i = 1; i < table->count; i++) {
        snprintf(set, sizeof set, ", ?%zu", i + 1);
        rows_sql_append(sql, set);
    }
    snprintf(set, sizeof set, ") ON CONFLICT (%s) DO UPDATE SET ", table->key);
    rows_sql_append(sql, set);
    if (table->on_conflict != NULL) {
        rows_sql_append(sql, table->on_conflict);
        return;
    }
    for (const char *c = table->key; *c != '\0'; c++)
        first += *c == ',';
    for (size_t i = first; i < table->count; i++) {
        snprintf(set, sizeof set, "%s%s = excluded.%s", i > first ? ", " : "",
                 table->columns[i].name, table->columns[i].name);
        rows_sql_append(sql, set);
    }
    if (table ==
        &tables[RECORD_GENERATION]) /* one that was found on disk knows less than what is here */
        rows_sql_append(sql, " WHERE excluded.end_text <> '" FOUND_ON_DISK
                             "' OR generation.end_text = '" FOUND_ON_DISK "'");
}

enum muster_status store_rows_prepare(struct store *store, struct muster_error *err)
{
    char sql[SQL_MAX];
    enum muster_status status =
        store_prepare(store, broker_sql, &store->writes[RECORD_BROKER], err);

    if (status == MUSTER_OK)
        status = store_prepare(store, unpin_sql, &store->writes[RECORD_UNPIN], err);
    if (status == MUSTER_OK)
        status = store_prepare(store, shards_gone_sql, &store->writes[RECORD_SHARDS_GONE], err);
    if (status == MUSTER_OK)
        status = store_prepare(store, files_gone_sql, &store->files_gone, err);
    for (size_t kind = 0; kind < RECORD_KIND_COUNT && status == MUSTER_OK; kind++) {
        if (tables[kind].name == NULL || tables[kind].key == NULL)
            continue;
        rows_write_sql(&tables[kind], sql);
        status = store_prepare(store, sql, &store->writes[kind], err);
    }
    return status;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int store_rows_bind_text(sqlite3_stmt *statement, int parameter, const char *text)
{
    return sqlite3_bind_text(statement, parameter, text == NULL ? "" : text, -1, SQLITE_STATIC);
}

static int rows_bind_word(sqlite3_stmt *statement, int parameter, const struct words *words,
                          uint64_t value)
{
    const bool none = value == 0 && words != &word_notice_state;

    if (value >= words->count)
        return SQLITE_RANGE; /* a number without a word must not get into the file */
    return store_rows_bind_text(statement, parameter, none ? "" : words->name((unsigned)value));
}

static int rows_bind_body(struct store *store, sqlite3_stmt *statement, int parameter,
                          const struct wire_event *event)
{
    const struct wire_msg message = {.type = WIRE_EVENT, .u.event = *event};
    size_t size = wire_encode(&message, store->body, sizeof store->body);

    if (size == 0)
        return SQLITE_TOOBIG;
    return sqlite3_bind_blob(statement, parameter, store->body, (int)size, SQLITE_STATIC);
}

#define FIELD(type, row, column) (*(type const *)((const char *)(row) + (column)->offset))

static int rows_bind_column(struct store *store, sqlite3_stmt *statement, int parameter,
                            const struct column *column, const struct record *row)
{
    switch (column->type) {
    case COLUMN_U64:
        return sqlite3_bind_int64(statement, parameter, (int64_t)FIELD(uint64_t, row, column));
    case COLUMN_I64:
    case COLUMN_BOOT_MS:
        return sqlite3_bind_int64(statement, parameter, FIELD(int64_t, row, column));
    case COLUMN_UNSIGNED:
        return sqlite3_bind_int64(statement, parameter, FIELD(unsigned, row, column));
    case COLUMN_BOOL:
        return sqlite3_bind_int64(statement, parameter, FIELD(bool, row, column) ? 1 : 0);
    case COLUMN_TEXT:
        return store_rows_bind_text(statement, parameter, FIELD(const char *, row, column));
    case COLUMN_WORD:
        return rows_bind_word(statement, parameter, column->words, FIELD(unsigned, row, column));
    case COLUMN_WORD64:
        return rows_bind_word(statement, parameter, column->words, FIELD(uint64_t, row, column));
    case COLUMN_BOOT_ID:
        return store_rows_bind_text(statement, parameter, store->boot_id);
    case COLUMN_BODY:
        return rows_bind_body(store, statement, parameter, &row->u.event.body);
    }
    return SQLITE_MISUSE;
}

static int rows_bind_broker(sqlite3_stmt *statement, const struct record_broker *row)
{
    char epoch[24], database[24];
    int result;

    snprintf(epoch, sizeof epoch, "%" PRIu64, row->epoch);
    snprintf(database, sizeof database, "%016" PRIx64, row->database);
    result = sqlite3_bind_text(statement, 1, epoch, -1, SQLITE_TRANSIENT);
    return result != SQLITE_OK ? result
                               : sqlite3_bind_text(statement, 2, database, -1, SQLITE_TRANSIENT);
}

static int rows_bind_row(struct store *store, sqlite3_stmt *statement, const struct record *row)
{
    const struct table *table = &tables[row->kind];
    int result;

    if (row->kind == RECORD_BROKER)
        return rows_bind_broker(statement, &row->u.broker);
    if (row->kind == RECORD_SHARDS_GONE) {
        result = store_rows_bind_text(statement, 1, row->u.shards_gone.job);
        return result != SQLITE_OK
                   ? result
                   : sqlite3_bind_int64(statement, 2, (int64_t)row->u.shards_gone.round);
    }
    if (row->kind == RECORD_UNPIN)
        table = &tables[RECORD_PIN]; /* its key is the first columns */
    for (size_t i = 0; i < table->count && !(row->kind == RECORD_UNPIN && i == 3); i++) {
        result = rows_bind_column(store, statement, (int)i + 1, &table->columns[i], row);
        if (result != SQLITE_OK)
            return result;
    }
    return SQLITE_OK;
}

static const char *row_name(const struct record *row)
{
    return tables[row->kind].name != NULL ? tables[row->kind].name : "broker, unpin or shards gone";
}

static enum muster_status rows_write_by(struct store *store, sqlite3_stmt *statement,
                                        const struct record *row, struct muster_error *err)
{
    char doing[64];
    int result;
    bool changed;

    snprintf(doing, sizeof doing, "write a %s row", row_name(row));
    result = rows_bind_row(store, statement, row);
    if (result != SQLITE_OK)
        return error_set(err, MUSTER_E_FAULT,
                         "the core wants a %s row written that cannot be stored: %s; this is a bug "
                         "of muster, report it",
                         row_name(row), sqlite3_errstr(result));
    result = sqlite3_step(statement);
    changed = sqlite3_changes(store->db) > 0;
    sqlite3_reset(statement); /* reports the same result again */
    sqlite3_clear_bindings(statement);
    if (result != SQLITE_DONE)
        return store_failed(store, result, doing, err);
    if (row->kind == RECORD_EVENT && !changed)
        return error_set(err, MUSTER_E_FAULT,
                         "event %" PRIu64 " of job %s exists with other content; this is a bug of "
                         "muster, report it",
                         row->u.event.seq, row->u.event.job);
    return MUSTER_OK;
}

enum muster_status store_row_write(struct store *store, const struct record *row,
                                   struct muster_error *err)
{
    enum muster_status status;

    if (row->kind <= RECORD_NONE || row->kind >= RECORD_HISTORY)
        return error_set(err, MUSTER_E_FAULT, "the core wants a row of unknown kind %d written",
                         (int)row->kind);
    if (store_task_is(row->kind))
        return store_task_write(store, row, err);
    status = rows_write_by(store, store->writes[row->kind], row, err);
    if (status == MUSTER_OK && row->kind == RECORD_SHARDS_GONE)
        status = rows_write_by(store, store->files_gone, row, err);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool rows_word_value(const struct words *words, const char *text, unsigned *ret_value)
{
    if (*text == '\0') {
        *ret_value = 0;
        return true;
    }
    for (unsigned value = 0; value < words->count; value++) {
        if (strcmp(words->name(value), text) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static const char *rows_column_text(sqlite3_stmt *statement, int index)
{
    const unsigned char *text = sqlite3_column_text(statement, index);

    return text == NULL ? "" : (const char *)text;
}

#define SET(type, row, column, value) (*(type *)((char *)(row) + (column)->offset) = (value))

/* False: the column holds what no row of ours may hold. */
static bool rows_read_column(const struct store *store, sqlite3_stmt *statement, int index,
                             const struct column *column, bool *other_boot, struct record *row)
{
    const int64_t number = sqlite3_column_int64(statement, index);
    unsigned word;

    switch (column->type) {
    case COLUMN_U64:
        SET(uint64_t, row, column, (uint64_t)number);
        return true;
    case COLUMN_I64:
        SET(int64_t, row, column, number);
        return true;
    case COLUMN_UNSIGNED:
        SET(unsigned, row, column, (unsigned)number);
        return number >= 0 && number <= UINT_MAX;
    case COLUMN_BOOL:
        SET(bool, row, column, number != 0);
        return true;
    case COLUMN_TEXT:
        SET(const char *, row, column, rows_column_text(statement, index));
        return true;
    case COLUMN_WORD:
        if (!rows_word_value(column->words, rows_column_text(statement, index), &word))
            return false;
        SET(unsigned, row, column, word);
        return true;
    case COLUMN_BOOT_ID:
        *other_boot = strcmp(rows_column_text(statement, index), store->boot_id) != 0;
        SET(bool, row, column, *other_boot);
        return true;
    case COLUMN_BOOT_MS:
        SET(int64_t, row, column, *other_boot ? 0 : number);
        return true;
    case COLUMN_WORD64:
    case COLUMN_BODY:
        return false;
    }
    return false;
}

static enum muster_status rows_read_row(const struct store *store, sqlite3_stmt *statement,
                                        const struct table *table, struct record *row,
                                        struct muster_error *err)
{
    bool other_boot = false;
    char finding[160];

    for (size_t i = 0; i < table->count; i++) {
        if (rows_read_column(store, statement, (int)i, &table->columns[i], &other_boot, row))
            continue;
        snprintf(finding, sizeof finding, "table %s, column %s holds \"%.64s\"", table->name,
                 table->columns[i].name, rows_column_text(statement, (int)i));
        return store_damaged(store, finding, err);
    }
    return MUSTER_OK;
}

enum muster_status store_rows_load(struct store *store, enum record_kind kind, const char *rest,
                                   const char *job, uint64_t generation, store_row_fn *row_fn,
                                   void *arg, struct muster_error *err)
{
    const struct table *table = &tables[kind];
    struct record row = {.kind = kind};
    sqlite3_stmt *statement = NULL;
    enum muster_status status;
    char sql[SQL_MAX] = "SELECT ";
    int result = SQLITE_DONE;

    rows_append_columns(sql, table);
    if (kind != RECORD_HISTORY) { /* which is no table */
        rows_sql_append(sql, " FROM ");
        rows_sql_append(sql, table->name);
    }
    rows_sql_append(sql, rest);
    status = store_prepare(store, sql, &statement, err);
    if (status != MUSTER_OK)
        return status;
    if (sqlite3_bind_parameter_count(statement) >= 1)
        store_rows_bind_text(statement, 1, job);
    if (sqlite3_bind_parameter_count(statement) >= 2)
        sqlite3_bind_int64(statement, 2, (int64_t)generation);
    while (status == MUSTER_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        status = rows_read_row(store, statement, table, &row, err);
        if (status == MUSTER_OK)
            row_fn(arg, &row);
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read the rows", err);
    sqlite3_finalize(statement);
    return status;
}
