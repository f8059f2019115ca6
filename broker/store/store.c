/* store - see store.h. The connection's life and its transactions.
 *
 * Durability: WAL with synchronous=FULL syncs the log in each COMMIT before it returns. Progress
 * alone is committed with synchronous=NORMAL: a power cut may take it, never the file's integrity,
 * and the next FULL commit syncs it along. With a shared log, which is synced before each COMMIT,
 * every commit is a NORMAL one, because this file is only a copy of that log. */
#include "broker/store/shared_internal.h"
#include "broker/store/store_internal.h"

#include "broker/base/dirs.h"
#include "broker/base/failpoint.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRUNE_EVERY 64   /* events between two slices ... */
#define TIDY_EVERY_MS 10 /* a slice takes about as long: half of the time is for others */
#define TIDY_RETRY_MS 2000
#define JOBS_AHEAD 32   /* so many actions ahead a newer row of the job is looked for */
#define PRUNE_SLICE 256 /* ... each of at most this many, so that pruning outruns writing */

/* --- transactions ----------------------------------------------------------------------------- */

static void store_roll_back(struct store *store)
{
    if (sqlite3_get_autocommit(store->db) == 0) /* SQLite rolls back by itself on some errors */
        store_step(store, store->rollback, "roll back", NULL);
}

static void store_prune_bind(const struct store *store, sqlite3_stmt *statement,
                             const struct record_event *event)
{
    uint64_t beyond =
        event->seq > store->journal_events_max ? event->seq - store->journal_events_max : 0;

    sqlite3_bind_text(statement, 1, event->job, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (int64_t)beyond);
    sqlite3_bind_int64(statement, 3, event->unix_ms - JOURNAL_AGE_MS);
}

/* The journal keeps its newest events of the last days and all since an active round's first; what
 * goes is always a prefix, so that what stays has no gap. Its oldest event tells whether any may
 * go: to read a slice of them was a twelfth of the work of the broker's thread, mostly for nothing.
 */
static enum muster_status store_prune(struct store *store, const struct record_event *event,
                                      struct muster_error *err)
{
    int result;

    if (event->seq % PRUNE_EVERY != 0)
        return MUSTER_OK;
    store_prune_bind(store, store->prune_look, event);
    result = sqlite3_step(store->prune_look);
    sqlite3_reset(store->prune_look);
    if (result == SQLITE_DONE)
        return MUSTER_OK;
    if (result != SQLITE_ROW)
        return store_failed(store, result, "look at the journal's oldest event", err);
    store_prune_bind(store, store->prune, event);
    return store_step(store, store->prune, "shorten the journal", err);
}

static enum muster_status store_write_held(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < store->held_count && status == MUSTER_OK; i++)
        status = store_row_write(store, &store->held[i], err);
    return status;
}

/* Rows that were written before their turn. */
struct written_ahead {
    const struct record *given; /* a task's row, which was written with its other row */
    size_t job_end;             /* rows of this job before this index are written; 0 = none */
};

/* Each event of a job writes the job's row again, so half of all such rows would be overwritten in
 * their own transaction. Returns the last within JOBS_AHEAD actions: it is written now, in place of
 * all before it, so that rows that refer to a new job find it. */
static size_t store_newest_job(const struct actions *actions, size_t at)
{
    const char *job = actions->items[at].record.u.job.job;
    size_t newest = at;

    for (size_t i = at + 1; i < actions->count && i <= at + JOBS_AHEAD; i++) {
        const struct record *row = &actions->items[i].record;

        if (actions->items[i].kind != ACTION_PERSIST)
            continue;
        if (row->kind == RECORD_FORGET)
            break;
        if (row->kind == RECORD_JOB && strcmp(row->u.job.job, job) == 0)
            newest = i;
    }
    return newest;
}

static enum muster_status store_write_job(struct store *store, const struct actions *actions,
                                          size_t at, struct written_ahead *ahead,
                                          struct muster_error *err)
{
    const char *job = actions->items[at].record.u.job.job;
    enum muster_status status = MUSTER_OK;

    if (at < ahead->job_end &&
        strcmp(actions->items[ahead->job_end - 1].record.u.job.job, job) == 0)
        return MUSTER_OK;
    ahead->job_end = store_newest_job(actions, at) + 1;
    if (store->forgets)
        status = store_forget_rest(store, job, err);
    return status == MUSTER_OK
               ? store_row_write(store, &actions->items[ahead->job_end - 1].record, err)
               : status;
}

static enum muster_status store_write_row(struct store *store, const struct actions *actions,
                                          size_t at, struct written_ahead *ahead,
                                          struct muster_error *err)
{
    const struct record *row = &actions->items[at].record;

    if (row == ahead->given)
        return MUSTER_OK;
    if (row->kind == RECORD_FORGET)
        return store_forget(store, row->u.forget.job, err);
    if (row->kind == RECORD_JOB)
        return store_write_job(store, actions, at, ahead, err);
    store_trim_look(store, row);
    if (row->kind == RECORD_TASK && (ahead->given = store_task_given(actions, at)) != NULL)
        return store_task_write_given(store, row, ahead->given, err);
    return store_row_write(store, row, err);
}

static enum muster_status store_write_rows(struct store *store, const struct actions *actions,
                                           struct muster_error *err)
{
    enum muster_status status = store_write_held(store, err);
    struct written_ahead ahead = {.job_end = 0};

    for (size_t i = 0; i < actions->count && status == MUSTER_OK; i++) {
        const struct action *action = &actions->items[i];

        if (action->kind != ACTION_PERSIST)
            continue;
        failpoint_record(FAILPOINT_PERSIST_BEFORE, &action->record);
        status = store_write_row(store, actions, i, &ahead, err);
        failpoint_record(FAILPOINT_PERSIST_AFTER, &action->record);
        if (status == MUSTER_OK && action->record.kind == RECORD_EVENT)
            status = store_prune(store, &action->record.u.event, err);
    }
    return status;
}

static enum muster_status store_begin_transaction(struct store *store, struct muster_error *err)
{
    enum muster_status status = store_step(store, store->begin, "begin a transaction", err);

    return status == MUSTER_OK ? shared_watch(store, err) : status;
}

/* The end of a transaction that was begun with `status`: commits it, or rolls it back. */
static enum muster_status store_end_transaction(struct store *store, enum muster_status status,
                                                struct muster_error *err)
{
    bool shared = false;

    if (status == MUSTER_OK)
        status = shared_write(store, &shared, err);
    if (status == MUSTER_OK)
        status = store_step(store, store->commit, "commit", err);
    if (shared && status != MUSTER_OK)
        status = MUSTER_E_IO; /* the log has what this copy has not */
    shared_watch_end(store);
    if (status != MUSTER_OK)
        store_roll_back(store);
    else if (store->sync_failed)
        status = store_failed(store, SQLITE_IOERR_FSYNC, "copy the log into the file", err);
    if (status == MUSTER_OK)
        store->commits++;
    if (status == MUSTER_E_IO)
        store_log_cut(store);
    return status;
}

/* One transaction. Rows that were held are gone afterwards: written, or dropped for want of room.
 */
static enum muster_status store_write_all(struct store *store, const struct actions *actions,
                                          int64_t now_boot_ms, struct muster_error *err)
{
    uint64_t ends = 0;
    enum muster_status status = store_begin_transaction(store, err);

    if (status == MUSTER_OK)
        status = store_write_rows(store, actions, err);
    if (status == MUSTER_OK)
        status = store_past_write(store, err);
    if (status == MUSTER_OK)
        status = store_mark_count(store, actions, &ends, err);
    status = store_end_transaction(store, status, err);
    if (status == MUSTER_OK)
        store_past_written(store);
    if (status == MUSTER_OK && store_mark_tell(store, ends, err) != MUSTER_OK)
        status = MUSTER_E_IO; /* it is committed, and must not be told */
    store->held_count = 0;
    arena_reset(&store->held_arena);
    store->held_due_boot_ms = now_boot_ms + HEARTBEAT_MS;
    return status;
}

/* --- progress --------------------------------------------------------------------------------- */

/* Only progress may wait: nothing refers to it, and an older row of it does no harm. */
static bool store_may_wait(const struct action *action)
{
    return action->lazy && action->record.kind == RECORD_PROGRESS;
}

static bool store_all_may_wait(const struct actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        if (actions->items[i].kind == ACTION_PERSIST && !store_may_wait(&actions->items[i]))
            return false;
    }
    return true;
}

/* Keeps a copy. Without memory the row is dropped: the node tells it again within a second. */
static void store_hold(struct store *store, const struct record *row)
{
    struct record *copy;

    if (store->held_count == store->held_capacity) {
        size_t capacity = store->held_capacity == 0 ? 64 : store->held_capacity * 2;
        struct record *grown =
            capacity > 2 * CORE_NODES_MAX ? NULL : realloc(store->held, capacity * sizeof *grown);

        if (grown == NULL)
            return;
        store->held = grown;
        store->held_capacity = capacity;
    }
    copy = &store->held[store->held_count];
    *copy = *row;
    copy->u.progress.job = arena_strdup(&store->held_arena, row->u.progress.job);
    copy->u.progress.sources = arena_strdup(&store->held_arena, row->u.progress.sources);
    if (copy->u.progress.job != NULL && copy->u.progress.sources != NULL)
        store->held_count++;
}

static enum muster_status store_set_synchronous(struct store *store, const char *sql,
                                                int64_t wanted, struct muster_error *err)
{
    int64_t value = -1;
    enum muster_status status = store_exec(store, sql, err);

    if (status == MUSTER_OK)
        status = store_get_int(store, "PRAGMA synchronous", &value, err);
    if (status == MUSTER_OK && value != wanted)
        status =
            error_set(err, MUSTER_E_FAULT, "database %s: `%s` had no effect", store->path, sql);
    return status;
}

/* Without memory even this can fail; then it is the first thing that the next store_apply does. */
static enum muster_status store_sync_again(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    if (store->shared != NULL)
        return MUSTER_OK;
    if (store->unsynced)
        status = store_set_synchronous(store, "PRAGMA synchronous=FULL", 2, err);
    if (status == MUSTER_OK)
        store->unsynced = false;
    return status;
}

enum muster_status store_unsync(struct store *store, struct muster_error *err)
{
    store->unsynced = true; /* from here on, whatever of the next line succeeds */
    return store_set_synchronous(store, "PRAGMA synchronous=NORMAL", 1, err);
}

static enum muster_status store_flush_held(struct store *store, int64_t now_boot_ms,
                                           struct muster_error *err)
{
    static const struct actions nothing;
    enum muster_status status = store_unsync(store, err);
    enum muster_status restored;

    if (status != MUSTER_OK)
        return status;
    status = store_write_all(store, &nothing, now_boot_ms, err);
    restored = store_sync_again(store, err);
    if (restored != MUSTER_OK)
        return restored;
    return status == MUSTER_E_STORAGE ? MUSTER_OK : status;
}

enum muster_status store_apply(struct store *store, const struct actions *actions,
                               int64_t now_boot_ms, struct muster_error *err)
{
    enum muster_status status = store_sync_again(store, err);

    if (status != MUSTER_OK)
        return status;
    if (!store_all_may_wait(actions))
        return store_write_all(store, actions, now_boot_ms, err);
    for (size_t i = 0; i < actions->count; i++) {
        if (actions->items[i].kind == ACTION_PERSIST)
            store_hold(store, &actions->items[i].record);
    }
    if (store->held_count == 0 || now_boot_ms < store->held_due_boot_ms)
        return MUSTER_OK;
    return store_flush_held(store, now_boot_ms, err);
}

static bool store_has_old_rows(const struct store *store)
{
    return store->untidy || store->forgets || store->trims;
}

static enum muster_status store_tidy_once(struct store *store, struct muster_error *err)
{
    enum muster_status status = store_begin_transaction(store, err);

    if (status == MUSTER_OK && store->untidy)
        status = store_tidy_slice(store, err);
    if (status == MUSTER_OK && store->forgets)
        status = store_forget_slice(store, err);
    if (status == MUSTER_OK && store->trims)
        status = store_trim_slice(store, err);
    return store_end_transaction(store, status, err);
}

enum muster_status store_tidy(struct store *store, int64_t now_boot_ms, struct muster_error *err)
{
    enum muster_status status;

    if (!store_has_old_rows(store) || now_boot_ms < store->tidy_due_boot_ms)
        return MUSTER_OK;
    if (store->trims && store->held_count > 0) { /* what a launch came to is read from the rows */
        status = store_flush_held(store, now_boot_ms, err);
        if (status != MUSTER_OK)
            return status;
    }
    status = store_tidy_once(store, err);
    if (status != MUSTER_OK && store->trims)
        store_trim_again(store);
    store->tidy_due_boot_ms = now_boot_ms + (status == MUSTER_OK ? TIDY_EVERY_MS : TIDY_RETRY_MS);
    return status == MUSTER_E_STORAGE ? MUSTER_OK : status;
}

int64_t store_wakeup_boot_ms(const struct store *store)
{
    int64_t held = store->held_count > 0 ? store->held_due_boot_ms : INT64_MAX;
    int64_t tidy = store_has_old_rows(store) ? store->tidy_due_boot_ms : INT64_MAX;

    return held < tidy ? held : tidy;
}

/* --- open and close --------------------------------------------------------------------------- */

static enum muster_status store_read_boot_id(char *ret_id, struct muster_error *err)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    FILE *file = fopen(path, "re");
    bool ok = file != NULL && fgets(ret_id, BOOT_ID_MAX, file) != NULL;

    if (file != NULL)
        fclose(file);
    if (!ok)
        return error_set_code(err, MUSTER_E_IO, errno,
                              "cannot read %s, so deadlines could not be told apart from those of "
                              "another boot; mount /proc",
                              path);
    ret_id[strcspn(ret_id, "\n")] = '\0';
    return MUSTER_OK;
}

static enum muster_status store_prepare_all(struct store *store, struct muster_error *err)
{
    const struct {
        const char *sql;
        sqlite3_stmt **statement;
    } list[] = {
        {"BEGIN IMMEDIATE", &store->begin},
        {"COMMIT", &store->commit},
        {"ROLLBACK", &store->rollback},
        {"SELECT seq FROM job WHERE job = ?1", &store->job_seq},
        {"SELECT seq, boot_id, deadline_boot_ms, body FROM event WHERE job = ?1 AND seq >= ?2 "
         "ORDER BY seq LIMIT ?3",
         &store->events},
        {"INSERT INTO meta (key, value) VALUES ('ends', ?1) "
         "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
         &store->mark_count},
        {"SELECT 1 FROM (SELECT seq, unix_ms FROM event WHERE job = ?1 ORDER BY seq LIMIT 1) "
         "WHERE seq <= ?2 OR unix_ms < ?3",
         &store->prune_look},
        {"WITH oldest AS MATERIALIZED (SELECT seq, round, unix_ms FROM event WHERE job = ?1 "
         "ORDER BY seq LIMIT 256), "
         "needed AS (SELECT min(seq) AS first FROM oldest WHERE round IN (SELECT round FROM round "
         "WHERE job = ?1 AND state IN ('freezing', 'decided', 'writing'))), "
         "young AS (SELECT min(seq) AS first FROM oldest WHERE unix_ms >= ?3), "
         "last AS (SELECT max(seq) AS seq FROM oldest) "
         "DELETE FROM event WHERE job = ?1 AND seq <= (SELECT seq FROM last) "
         "AND seq < (SELECT ifnull(first, (SELECT seq FROM last) + 1) FROM needed) "
         "AND (seq <= ?2 OR seq < (SELECT ifnull(first, (SELECT seq FROM last) + 1) FROM young))",
         &store->prune},
    };
    enum muster_status status = store_rows_prepare(store, err);

    _Static_assert(PRUNE_SLICE == 256, "as in the statement above");
    for (size_t i = 0; i < sizeof list / sizeof *list && status == MUSTER_OK; i++)
        status = store_prepare(store, list[i].sql, list[i].statement, err);
    if (status == MUSTER_OK)
        status = store_tasks_prepare(store, err);
    if (status == MUSTER_OK)
        status = store_tidy_prepare(store, err);
    if (status == MUSTER_OK)
        status = store_trim_prepare(store, err);
    if (status == MUSTER_OK)
        status = store_ended_prepare(store, err);
    if (status == MUSTER_OK)
        status = store_past_prepare(store, err);
    if (status == MUSTER_OK)
        status = store_forget_prepare(store, err);
    return status;
}

static enum muster_status store_open_checked(struct store *store,
                                             const struct store_options *options,
                                             struct muster_error *err)
{
    enum muster_status status = store_read_boot_id(store->boot_id, err);

    if (status == MUSTER_OK)
        status = dirs_make_parent(store->path, err);
    if (status == MUSTER_OK)
        status = store_real_path(&store->path, err);
    if (status == MUSTER_OK && !options->allow_network_fs)
        status = store_refuse_network(store->path, err);
    if (status == MUSTER_OK)
        status = store_lock(store->path, options->lock_wait_ms, &store->lock_fd,
                            &store->created_lock, err);
    if (status == MUSTER_OK)
        store->created = access(store->path, F_OK) != 0 && errno == ENOENT;
    if (status == MUSTER_OK)
        status = store_connect(store, options, err);
    if (status == MUSTER_OK)
        status = store_prepare_all(store, err);
    if (status == MUSTER_OK)
        status = store_mark_open(store, err);
    if (status == MUSTER_OK)
        status = store_forget_begun(store, err);
    if (status == MUSTER_OK)
        status = shared_begin(store, err);
    return status;
}

/* A file that this life created, under the lock, so it is nobody else's. */
static void store_remove_created(const struct store *store)
{
    static const char *const suffixes[] = {"", "-journal", "-wal", "-shm", ".mark", ".lock"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        bool ours = strcmp(suffixes[i], ".lock") == 0   ? store->created_lock
                    : strcmp(suffixes[i], ".mark") == 0 ? store->created_mark
                                                        : store->created;

        if (ours && snprintf(path, sizeof path, "%s%s", store->path, suffixes[i]) < PATH_MAX)
            unlink(path);
    }
}

/* Also of a half-built store. */
static void store_destroy(struct store *store, bool discard)
{
    sqlite3_stmt *statement;

    while (store->db != NULL && (statement = sqlite3_next_stmt(store->db, NULL)) != NULL)
        sqlite3_finalize(statement);
    sqlite3_close(store->db);
    if (store->mark_fd >= 0)
        close(store->mark_fd);
    if (store->lock_fd >= 0) { /* last: until then no other broker may open the file */
        if (discard)
            store_remove_created(store);
        close(store->lock_fd);
    }
    arena_free(&store->held_arena);
    arena_free(&store->arena);
    free(store->held);
    store_manifests_free(store);
    free(store->path);
    free(store);
}

enum muster_status store_open(const char *path, const struct store_options *options,
                              struct store **ret_store, struct muster_error *err)
{
    static const struct store_options defaults;
    struct store *store = calloc(1, sizeof *store);
    enum muster_status status;

    if (store == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to open database %s", path);
    if (options == NULL)
        options = &defaults;
    store->lock_fd = store->mark_fd = -1;
    store->query_looks_max = QUERY_LOOKS_MAX;
    store->journal_events_max =
        options->journal_events_max > 0 ? options->journal_events_max : JOURNAL_EVENTS_MAX;
    store->checkpoint_frames = options->checkpoint_frames;
    store->sign = options->sign;
    store->shared = options->shared;
    arena_init(&store->held_arena, 0);
    arena_init(&store->arena, 0);
    store->path = strdup(path);
    status = store->path == NULL
                 ? error_set(err, MUSTER_E_NOMEM, "no memory to open database %s", path)
                 : store_open_checked(store, options, err);
    if (status != MUSTER_OK) {
        if (status == MUSTER_E_IO && store->db != NULL)
            store_log_cut(store);
        store_destroy(store, true);
        return status;
    }
    *ret_store = store;
    return MUSTER_OK;
}

void store_close(struct store **store)
{
    if (*store == NULL)
        return;
    if ((*store)->held_count > 0)
        store_flush_held(*store, 0, NULL);
    store_log_end(*store);
    store_destroy(*store, false);
    *store = NULL;
}

void store_discard(struct store **store)
{
    if (*store == NULL)
        return;
    store_destroy(*store, true);
    *store = NULL;
}
