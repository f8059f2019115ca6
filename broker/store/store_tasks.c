/* store_tasks - rows of queues, tasks, results and workers; pages of what ended, and results, as
 * they go out. A task's id is queue * 2^40 + number. As everywhere, a row written twice is a row
 * written once. */
#include "broker/store/store_internal.h"

#include "schema/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ENDED "state IN ('done', 'failed', 'cancelled')"

static const char *const statements[STORE_TASK_COUNT] = {
    [STORE_TASK_QUEUE] =
        "INSERT INTO task_queue (queue, job, name, coordinator, taken, ended, released, max_queued,"
        " max_attempts, error_pending, error_number, error_status, error_code, error_text, raised,"
        " cancelled_to, created_unix_ms, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
        " ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) ON CONFLICT (queue) DO UPDATE SET coordinator = "
        "?4, taken = ?5,"
        " ended = ?6, released = ?7, max_queued = ?8, max_attempts = ?9, error_pending = ?10,"
        " error_number = ?11, error_status = ?12, error_code = ?13, error_text = ?14, raised = ?15,"
        " cancelled_to = ?16, told = ?18",
    [STORE_TASK_ADD] =
        "INSERT INTO task (id, state, attempt, losses, worker, worker_index, timeout_ms,"
        " scheduled_unix_ms, fn, uses, args) VALUES (?1, 'queued', 0, 0, 0, 0, ?2, ?3, ?4, ?5, ?6)"
        " ON CONFLICT (id) DO NOTHING",
    [STORE_TASK_ADD_GIVEN] =
        "INSERT INTO task (id, state, attempt, losses, worker, worker_index, timeout_ms,"
        " scheduled_unix_ms, fn, uses, args, leased_unix_ms, excused) VALUES (?1, ?7, ?8, ?9, ?10,"
        " ?11, ?2, ?3, ?4, ?5, ?6, ?12, ?13) ON CONFLICT (id) DO UPDATE SET state = ?7,"
        " attempt = ?8, losses = ?9, worker = ?10, worker_index = ?11, leased_unix_ms = ?12,"
        " excused = ?13 WHERE NOT " ENDED,
    [STORE_TASK_STATE] =
        "UPDATE task SET state = ?2, attempt = ?3, losses = ?4, worker = ?5, worker_index = ?6,"
        " leased_unix_ms = ?7, excused = ?8 WHERE id = ?1 AND NOT " ENDED,
    [STORE_TASK_END] =
        "UPDATE task SET state = ?2, attempt = ?3, losses = ?4, worker = ?5, ended_unix_ms = ?6,"
        " status = ?7, code = ?8, text = ?9, result = ?10, bytes = ?11, excused = ?12 WHERE id = ?1"
        " AND NOT " ENDED,
    [STORE_TASK_TEXT] = "UPDATE task SET text = ?2 WHERE id = ?1 AND NOT " ENDED,
    [STORE_TASK_PART] = "INSERT INTO task_part (id, attempt, offset, bytes) VALUES (?1, ?2, ?3, ?4)"
                        " ON CONFLICT (id, attempt, offset) DO UPDATE SET bytes = ?4",
    [STORE_TASK_PARTS_OTHER] = "DELETE FROM task_part WHERE id = ?1 AND attempt <> ?2",
    [STORE_TASK_CANCEL] = "UPDATE task SET state = 'cancelled', ended_unix_ms = ?3, status = ?4,"
                          " args = x'' WHERE id BETWEEN ?1 AND ?2 AND state = 'queued'",
    [STORE_TASK_DROP_RESOURCES] = "DELETE FROM task_resource WHERE queue = ?1",
    [STORE_TASK_DROP_QUEUE] = "DELETE FROM task_queue WHERE queue = ?1",
    [STORE_TASK_RESOURCE] =
        "INSERT INTO task_resource (queue, number, fn, args) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (queue, number) DO NOTHING",
    [STORE_TASK_WORKER] =
        "INSERT INTO task_worker (job, worker_index, incarnation, node, host, pid, slots, takes,"
        " state, unix_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        " ON CONFLICT (job, worker_index) DO UPDATE SET incarnation = ?3, node = ?4, host = ?5,"
        " pid = ?6, slots = ?7, takes = ?8, state = ?9, unix_ms = ?10",
    [STORE_TASK_PAGE] = "SELECT id, attempt, state, status, code, text, bytes, result FROM task"
                        " WHERE id BETWEEN ?1 AND ?2 AND " ENDED " AND id > (SELECT (queue << 40) +"
                        " released FROM task_queue WHERE queue = ?4) ORDER BY id LIMIT ?3",
    [STORE_TASK_RESULT] =
        "SELECT state, bytes, result, attempt FROM task WHERE id = ?1 AND id >"
        " (SELECT (queue << 40) + released FROM task_queue WHERE queue = ?1 >> 40)",
    [STORE_TASK_RESULT_PART] = "SELECT bytes FROM task_part WHERE id = ?1 AND attempt = ?2 AND"
                               " offset = ?3",
};

enum muster_status store_tasks_prepare(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < STORE_TASK_COUNT && status == MUSTER_OK; i++)
        status = store_prepare(store, statements[i], &store->tasks[i], err);
    return status;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int64_t store_tasks_id_of(uint64_t queue, uint64_t number)
{
    return (int64_t)(queue << 40 | number);
}

static void tasks_bind_number(sqlite3_stmt *statement, int index, uint64_t number)
{
    sqlite3_bind_int64(statement, index, (int64_t)number);
}

static void store_tasks_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text == NULL ? "" : text, -1, SQLITE_STATIC);
}

static void tasks_bind_bytes(sqlite3_stmt *statement, int index, struct wire_bytes bytes)
{
    if (bytes.size == 0)
        sqlite3_bind_zeroblob(statement, index, 0);
    else
        sqlite3_bind_blob(statement, index, bytes.data, (int)bytes.size, SQLITE_STATIC);
}

/* Steps a statement whose parameters are bound, to its end. */
static enum muster_status store_tasks_run(struct store *store, enum store_task which,
                                          struct muster_error *err)
{
    sqlite3_stmt *statement = store->tasks[which];
    int result = sqlite3_step(statement);
    enum muster_status status = MUSTER_OK;

    if (result != SQLITE_DONE && result != SQLITE_ROW)
        status = store_failed(store, result, "write a task's row", err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

static enum muster_status tasks_write_queue(struct store *store,
                                            const struct record_task_queue *row,
                                            struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_QUEUE];

    tasks_bind_number(s, 1, row->queue);
    store_tasks_bind_text(s, 2, row->job);
    store_tasks_bind_text(s, 3, row->name);
    tasks_bind_number(s, 4, row->coordinator);
    tasks_bind_number(s, 5, row->taken);
    tasks_bind_number(s, 6, row->ended);
    tasks_bind_number(s, 7, row->released);
    tasks_bind_number(s, 8, row->max_queued);
    tasks_bind_number(s, 9, row->max_attempts);
    tasks_bind_number(s, 10, row->error_pending);
    tasks_bind_number(s, 11, row->error_number);
    tasks_bind_number(s, 12, row->error_status);
    sqlite3_bind_int64(s, 13, row->error_code);
    store_tasks_bind_text(s, 14, row->error_text);
    tasks_bind_number(s, 15, row->raised);
    tasks_bind_number(s, 16, row->cancelled_to);
    sqlite3_bind_int64(s, 17, row->created_unix_ms);
    tasks_bind_number(s, 18, row->told);
    return store_tasks_run(store, STORE_TASK_QUEUE, err);
}

static void tasks_bind_task(sqlite3_stmt *s, const struct record_task *row)
{
    sqlite3_bind_int64(s, 1, store_tasks_id_of(row->queue, row->number));
    tasks_bind_number(s, 2, row->timeout_ms);
    sqlite3_bind_int64(s, 3, row->unix_ms);
    store_tasks_bind_text(s, 4, row->fn);
    tasks_bind_bytes(s, 5, row->uses);
    tasks_bind_bytes(s, 6, row->args);
}

/* Where it is now, from parameter `first` on. */
static void tasks_bind_state(sqlite3_stmt *s, int first, const struct record_task *row)
{
    store_tasks_bind_text(s, first, wire_task_state_name(row->state));
    tasks_bind_number(s, first + 1, row->attempt);
    tasks_bind_number(s, first + 2, row->losses);
    tasks_bind_number(s, first + 3, row->worker);
    tasks_bind_number(s, first + 4, row->worker_index);
    sqlite3_bind_int64(s, first + 5, row->unix_ms);
    tasks_bind_number(s, first + 6, row->excused);
}

static enum muster_status tasks_write_task(struct store *store, const struct record_task *row,
                                           struct muster_error *err)
{
    tasks_bind_task(store->tasks[STORE_TASK_ADD], row);
    return store_tasks_run(store, STORE_TASK_ADD, err);
}

/* Between the two of a task that is given at once stands its queue's row. */
const struct record *store_task_given(const struct actions *actions, size_t at)
{
    const struct record *task = &actions->items[at].record;

    for (size_t i = at + 1; task->kind == RECORD_TASK && i < actions->count; i++) {
        const struct record *row = &actions->items[i].record;

        if (actions->items[i].kind != ACTION_PERSIST || row->kind == RECORD_TASK_QUEUE)
            continue;
        return row->kind == RECORD_TASK_STATE && row->u.task.queue == task->u.task.queue &&
                       row->u.task.number == task->u.task.number
                   ? row
                   : NULL;
    }
    return NULL;
}

enum muster_status store_task_write_given(struct store *store, const struct record *row,
                                          const struct record *given, struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_ADD_GIVEN];

    tasks_bind_task(s, &row->u.task);
    tasks_bind_state(s, 7, &given->u.task);
    return store_tasks_run(store, STORE_TASK_ADD_GIVEN, err);
}

static enum muster_status tasks_write_state(struct store *store, const struct record_task *row,
                                            struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_STATE];

    sqlite3_bind_int64(s, 1, store_tasks_id_of(row->queue, row->number));
    tasks_bind_state(s, 2, row);
    return store_tasks_run(store, STORE_TASK_STATE, err);
}

static enum muster_status tasks_write_end(struct store *store, const struct record_task *row,
                                          struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_END];
    enum muster_status status;

    sqlite3_bind_int64(s, 1, store_tasks_id_of(row->queue, row->number));
    store_tasks_bind_text(s, 2, wire_task_state_name(row->state));
    tasks_bind_number(s, 3, row->attempt);
    tasks_bind_number(s, 4, row->losses);
    tasks_bind_number(s, 5, row->worker);
    sqlite3_bind_int64(s, 6, row->unix_ms);
    tasks_bind_number(s, 7, row->status);
    sqlite3_bind_int64(s, 8, row->code);
    store_tasks_bind_text(s, 9, row->text);
    tasks_bind_bytes(s, 10, row->result);
    tasks_bind_number(s, 11, row->bytes);
    tasks_bind_number(s, 12, row->excused);
    status = store_tasks_run(store, STORE_TASK_END, err);
    if (status != MUSTER_OK || row->attempt < 2) /* nobody else can have left parts of a result */
        return status;
    s = store->tasks[STORE_TASK_PARTS_OTHER];
    sqlite3_bind_int64(s, 1, store_tasks_id_of(row->queue, row->number));
    tasks_bind_number(s, 2, row->attempt);
    return store_tasks_run(store, STORE_TASK_PARTS_OTHER, err);
}

static enum muster_status store_tasks_write_text(struct store *store, const struct record_task *row,
                                                 struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_TEXT];

    sqlite3_bind_int64(s, 1, store_tasks_id_of(row->queue, row->number));
    store_tasks_bind_text(s, 2, row->text);
    return store_tasks_run(store, STORE_TASK_TEXT, err);
}

static enum muster_status tasks_write_part(struct store *store, const struct record_task_part *row,
                                           struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_PART];

    sqlite3_bind_int64(s, 1, store_tasks_id_of(row->queue, row->number));
    tasks_bind_number(s, 2, row->attempt);
    tasks_bind_number(s, 3, row->offset);
    tasks_bind_bytes(s, 4, row->bytes);
    return store_tasks_run(store, STORE_TASK_PART, err);
}

static enum muster_status tasks_write_resource(struct store *store,
                                               const struct record_task_resource *row,
                                               struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_RESOURCE];

    tasks_bind_number(s, 1, row->queue);
    tasks_bind_number(s, 2, row->number);
    store_tasks_bind_text(s, 3, row->fn);
    tasks_bind_bytes(s, 4, row->args);
    return store_tasks_run(store, STORE_TASK_RESOURCE, err);
}

static const char *const worker_states[] = {"live", "left", "lost"};

static enum muster_status tasks_write_worker(struct store *store,
                                             const struct record_task_worker *row,
                                             struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_WORKER];

    store_tasks_bind_text(s, 1, row->job);
    tasks_bind_number(s, 2, row->index);
    tasks_bind_number(s, 3, row->incarnation);
    tasks_bind_number(s, 4, row->node);
    store_tasks_bind_text(s, 5, row->host);
    tasks_bind_number(s, 6, row->pid);
    tasks_bind_number(s, 7, row->slots);
    tasks_bind_number(s, 8, row->takes);
    store_tasks_bind_text(s, 9, worker_states[row->state]);
    sqlite3_bind_int64(s, 10, row->unix_ms);
    return store_tasks_run(store, STORE_TASK_WORKER, err);
}

static enum muster_status tasks_write_cancel(struct store *store,
                                             const struct record_task_range *row,
                                             struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_CANCEL];

    sqlite3_bind_int64(s, 1, store_tasks_id_of(row->queue, row->from));
    sqlite3_bind_int64(s, 2, store_tasks_id_of(row->queue, row->to));
    sqlite3_bind_int64(s, 3, row->unix_ms);
    sqlite3_bind_int64(s, 4, MUSTER_E_CANCELLED);
    return store_tasks_run(store, STORE_TASK_CANCEL, err);
}

static enum muster_status tasks_write_drop(struct store *store, const struct record_task_range *row,
                                           struct muster_error *err)
{
    static const enum store_task which[] = {STORE_TASK_DROP_RESOURCES, STORE_TASK_DROP_QUEUE};
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < sizeof which / sizeof *which && status == MUSTER_OK; i++) {
        tasks_bind_number(store->tasks[which[i]], 1, row->queue);
        status = store_tasks_run(store, which[i], err);
    }
    return status == MUSTER_OK ? store_tidy_range(store, row->queue, row->from, row->to, false, err)
                               : status;
}

bool store_task_is(enum record_kind kind)
{
    return kind >= RECORD_TASK_QUEUE && kind <= RECORD_TASK_WORKER;
}

enum muster_status store_task_write(struct store *store, const struct record *row,
                                    struct muster_error *err)
{
    const struct record_task_range *range = &row->u.task_range;

    switch (row->kind) {
    case RECORD_TASK_QUEUE:
        return tasks_write_queue(store, &row->u.task_queue, err);
    case RECORD_TASK:
        return tasks_write_task(store, &row->u.task, err);
    case RECORD_TASK_STATE:
        return tasks_write_state(store, &row->u.task, err);
    case RECORD_TASK_END:
        return tasks_write_end(store, &row->u.task, err);
    case RECORD_TASK_TEXT:
        return store_tasks_write_text(store, &row->u.task, err);
    case RECORD_TASK_PART:
        return tasks_write_part(store, &row->u.task_part, err);
    case RECORD_TASK_CANCEL:
        return tasks_write_cancel(store, range, err);
    case RECORD_TASK_RELEASE:
        return store_tidy_range(store, range->queue, range->from, range->to, true, err);
    case RECORD_TASK_QUEUE_DROP:
        return tasks_write_drop(store, range, err);
    case RECORD_TASK_RESOURCE:
        return tasks_write_resource(store, &row->u.task_resource, err);
    case RECORD_TASK_WORKER:
        return tasks_write_worker(store, &row->u.task_worker, err);
    default:
        return error_set(err, MUSTER_E_FAULT, "row kind %d is none of tasks", (int)row->kind);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static const char *store_tasks_text_of(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);

    return text == NULL ? "" : (const char *)text;
}

static uint64_t store_tasks_number_of(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

static struct wire_bytes store_tasks_bytes_of(sqlite3_stmt *statement, int column)
{
    const void *data = sqlite3_column_blob(statement, column);

    return (struct wire_bytes){data, (size_t)sqlite3_column_bytes(statement, column)};
}

static bool store_tasks_state_of(const char *word, enum wire_task_state *ret_state)
{
    for (unsigned state = TASK_QUEUED; state < TASK_STATE_COUNT; state++)
        if (strcmp(wire_task_state_name(state), word) == 0) {
            *ret_state = (enum wire_task_state)state;
            return true;
        }
    return false;
}

typedef bool read_fn(sqlite3_stmt *statement, struct record *row);

static bool tasks_read_queue(sqlite3_stmt *s, struct record *row)
{
    row->u.task_queue = (struct record_task_queue){
        .queue = store_tasks_number_of(s, 0),
        .job = store_tasks_text_of(s, 1),
        .name = store_tasks_text_of(s, 2),
        .coordinator = store_tasks_number_of(s, 3),
        .taken = store_tasks_number_of(s, 4),
        .ended = store_tasks_number_of(s, 5),
        .released = store_tasks_number_of(s, 6),
        .max_queued = store_tasks_number_of(s, 7),
        .max_attempts = store_tasks_number_of(s, 8),
        .error_pending = store_tasks_number_of(s, 9) != 0,
        .error_number = store_tasks_number_of(s, 10),
        .error_status = (unsigned)store_tasks_number_of(s, 11),
        .error_code = sqlite3_column_int64(s, 12),
        .error_text = store_tasks_text_of(s, 13),
        .raised = store_tasks_number_of(s, 14),
        .cancelled_to = store_tasks_number_of(s, 15),
        .created_unix_ms = sqlite3_column_int64(s, 16),
        .told = store_tasks_number_of(s, 17),
    };
    return row->u.task_queue.queue >= 1 && row->u.task_queue.queue <= TASK_QUEUE_ID_MAX &&
           row->u.task_queue.taken <= TASK_NUMBER_MAX &&
           wire_job_name_ok(store_tasks_text_of(s, 1)) &&
           wire_job_name_ok(store_tasks_text_of(s, 2)) &&
           row->u.task_queue.error_status <= UINT8_MAX && /* a newer broker may know more of them */
           row->u.task_queue.max_attempts <= UINT8_MAX;
}

static bool tasks_read_garbage(sqlite3_stmt *s, struct record *row)
{
    row->u.task_range = (struct record_task_range){.queue = store_tasks_number_of(s, 0),
                                                   .from = store_tasks_number_of(s, 1),
                                                   .to = store_tasks_number_of(s, 2)};
    return row->u.task_range.queue >= 1 && row->u.task_range.queue <= TASK_QUEUE_ID_MAX &&
           row->u.task_range.from <= TASK_NUMBER_MAX && row->u.task_range.to <= TASK_NUMBER_MAX;
}

static bool tasks_read_resource(sqlite3_stmt *s, struct record *row)
{
    row->u.task_resource = (struct record_task_resource){.queue = store_tasks_number_of(s, 0),
                                                         .number = store_tasks_number_of(s, 1),
                                                         .fn = store_tasks_text_of(s, 2),
                                                         .args = store_tasks_bytes_of(s, 3)};
    return row->u.task_resource.args.size <= TASK_ARGS_MAX &&
           strlen(row->u.task_resource.fn) <= NAME_MAX_BYTES &&
           row->u.task_resource.number <= TASK_RESOURCES_MAX;
}

static bool tasks_read_worker(sqlite3_stmt *s, struct record *row)
{
    row->u.task_worker = (struct record_task_worker){.job = store_tasks_text_of(s, 0),
                                                     .index = store_tasks_number_of(s, 1),
                                                     .incarnation = store_tasks_number_of(s, 2),
                                                     .node = store_tasks_number_of(s, 3),
                                                     .host = store_tasks_text_of(s, 4),
                                                     .pid = store_tasks_number_of(s, 5),
                                                     .slots = store_tasks_number_of(s, 6),
                                                     .takes = store_tasks_number_of(s, 7),
                                                     .state = RECORD_WORKER_LIVE,
                                                     .unix_ms = sqlite3_column_int64(s, 8)};
    return row->u.task_worker.index <= INT32_MAX && row->u.task_worker.takes <= TASK_CREDIT_MAX &&
           strlen(row->u.task_worker.host) <= HOST_MAX;
}

static bool tasks_read_task(sqlite3_stmt *s, struct record *row)
{
    uint64_t id = store_tasks_number_of(s, 0);
    struct record_task *task = &row->u.task;

    *task = (struct record_task){.queue = id >> 40,
                                 .number = id & TASK_NUMBER_MAX,
                                 .attempt = store_tasks_number_of(s, 2),
                                 .losses = store_tasks_number_of(s, 3),
                                 .worker = store_tasks_number_of(s, 4),
                                 .worker_index = store_tasks_number_of(s, 5),
                                 .timeout_ms = store_tasks_number_of(s, 6),
                                 .unix_ms = sqlite3_column_int64(s, 7),
                                 .fn = store_tasks_text_of(s, 8),
                                 .uses = store_tasks_bytes_of(s, 9),
                                 .args = store_tasks_bytes_of(s, 10),
                                 .text = store_tasks_text_of(s, 11),
                                 .excused = store_tasks_number_of(s, 12)};
    return store_tasks_state_of(store_tasks_text_of(s, 1), &task->state) &&
           task->attempt <= UINT8_MAX && task->losses <= UINT8_MAX && task->excused <= UINT8_MAX &&
           task->timeout_ms <= INT32_MAX && strlen(task->fn) <= NAME_MAX_BYTES &&
           task->args.size <= TASK_ARGS_MAX && task->uses.size <= (size_t)TASK_USES_MAX * 4;
}

static enum muster_status tasks_load_kind(struct store *store, enum record_kind kind,
                                          const char *sql, read_fn *read, store_row_fn *row_fn,
                                          void *arg, struct muster_error *err)
{
    struct record row = {.kind = kind};
    sqlite3_stmt *statement = NULL;
    char finding[128];
    int result = SQLITE_DONE;
    enum muster_status status = store_prepare(store, sql, &statement, err);

    while (status == MUSTER_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        if (read(statement, &row)) {
            row_fn(arg, &row);
            continue;
        }
        snprintf(finding, sizeof finding, "a row of %.40s holds what none of ours may hold",
                 strstr(sql, "FROM ") + strlen("FROM "));
        status = store_damaged(store, finding, err);
    }
    if (status == MUSTER_OK && result != SQLITE_DONE)
        status = store_failed(store, result, "read the tasks", err);
    sqlite3_finalize(statement);
    return status;
}

enum muster_status store_tasks_load(struct store *store, store_row_fn *row_fn, void *arg,
                                    struct muster_error *err)
{
    static const struct {
        enum record_kind kind;
        const char *sql;
        read_fn *read;
    } parts[] = {
        {RECORD_TASK_QUEUE,
         "SELECT queue, job, name, coordinator, taken, ended, released, max_queued, max_attempts,"
         " error_pending, error_number, error_status, error_code, error_text, raised, cancelled_to,"
         " created_unix_ms, told FROM task_queue ORDER BY queue",
         tasks_read_queue},
        {RECORD_TASK_QUEUE_DROP,
         "SELECT queue, first, last FROM task_garbage"
         " WHERE queue NOT IN (SELECT queue FROM task_queue)",
         tasks_read_garbage},
        {RECORD_TASK_RESOURCE,
         "SELECT queue, number, fn, args FROM task_resource ORDER BY queue, number",
         tasks_read_resource},
        {RECORD_TASK_WORKER,
         "SELECT job, worker_index, incarnation, node, host, pid, slots, takes, unix_ms"
         " FROM task_worker WHERE state = 'live' ORDER BY job, worker_index",
         tasks_read_worker},
        {RECORD_TASK,
         "SELECT id, state, attempt, losses, worker, worker_index, timeout_ms, leased_unix_ms, fn,"
         " uses, args, text, excused FROM task WHERE state IN ('queued', 'leased') ORDER BY id",
         tasks_read_task},
    };
    int64_t garbage = 0;
    enum muster_status status =
        store_get_int(store, "SELECT count(*) FROM task_garbage", &garbage, err);

    store->untidy = garbage > 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == MUSTER_OK; i++)
        status =
            tasks_load_kind(store, parts[i].kind, parts[i].sql, parts[i].read, row_fn, arg, err);
    return status;
}

/* --- what goes out ---------------------------------------------------------------------------- */

static bool tasks_add_ended(struct store *store, sqlite3_stmt *s, struct wire_ended_entry *entry)
{
    struct wire_bytes result = store_tasks_bytes_of(s, 7);
    enum wire_task_state state = TASK_NONE;
    uint8_t *copy = arena_alloc(&store->arena, result.size + 1);

    if (!store_tasks_state_of(store_tasks_text_of(s, 2), &state) || copy == NULL)
        return false;
    if (result.size > 0)
        memcpy(copy, result.data, result.size);
    *entry =
        (struct wire_ended_entry){.queue = store_tasks_number_of(s, 0) >> 40,
                                  .number = store_tasks_number_of(s, 0) & TASK_NUMBER_MAX,
                                  .attempt = store_tasks_number_of(s, 1),
                                  .state = state,
                                  .status = store_tasks_number_of(s, 3),
                                  .code = sqlite3_column_int64(s, 4),
                                  .text = arena_strdup(&store->arena, store_tasks_text_of(s, 5)),
                                  .bytes = store_tasks_number_of(s, 6),
                                  .result = {copy, result.size}};
    return entry->text != NULL;
}

enum muster_status store_task_page(struct store *store, struct wire_tasks_page *page,
                                   struct muster_error *err)
{
    uint64_t last = page->next;
    sqlite3_stmt *s = store->tasks[STORE_TASK_PAGE];
    struct wire_ended_entry *items;
    size_t count = 0, bytes = 0;
    int result = SQLITE_DONE;
    enum muster_status status = MUSTER_OK;

    arena_reset(&store->arena);
    items = arena_alloc(&store->arena, TASKS_FRAME_MAX * sizeof *items);
    page->more = false;
    page->next = last < TASK_NUMBER_MAX ? last + 1 : last;
    sqlite3_bind_int64(s, 1, store_tasks_id_of(page->queue, page->from));
    sqlite3_bind_int64(s, 2, store_tasks_id_of(page->queue, last));
    sqlite3_bind_int64(s, 3, TASKS_FRAME_MAX + 1);
    tasks_bind_number(s, 4, page->queue);
    while (items != NULL && (result = sqlite3_step(s)) == SQLITE_ROW) {
        bytes += TASK_ENTRY_BYTES + (size_t)sqlite3_column_bytes(s, 5) +
                 (size_t)sqlite3_column_bytes(s, 7);
        if (count == TASKS_FRAME_MAX || (count > 0 && bytes > TASK_FRAME_BYTES)) {
            page->more = true;
            page->next = store_tasks_number_of(s, 0) & TASK_NUMBER_MAX;
            result = SQLITE_DONE;
            break;
        }
        if (!tasks_add_ended(store, s, &items[count]))
            break;
        count++;
    }
    if (items == NULL || result == SQLITE_ROW)
        status = error_set(err, MUSTER_E_NOMEM, "no memory for a page of tasks");
    else if (result != SQLITE_DONE)
        status = store_failed(store, result, "read a page of tasks", err);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    page->tasks.items = items;
    page->tasks.count = count;
    return status;
}

/* Of a result that came in parts: the one that holds the offset. Parts are of equal length but the
 * last, and askers go on where the last answer ended, so offsets meet. */
static enum muster_status tasks_result_part(struct store *store, int64_t id, uint64_t attempt,
                                            uint64_t offset, struct wire_result_chunk *ret_chunk,
                                            struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_RESULT_PART];
    enum muster_status status = MUSTER_OK;
    int result;

    sqlite3_bind_int64(s, 1, id);
    tasks_bind_number(s, 2, attempt);
    tasks_bind_number(s, 3, offset);
    result = sqlite3_step(s);
    if (result == SQLITE_ROW) {
        struct wire_bytes part = store_tasks_bytes_of(s, 0);
        uint8_t *copy = arena_alloc(&store->arena, part.size + 1);

        if (copy == NULL)
            status = error_set(err, MUSTER_E_NOMEM, "no memory for a part of a result");
        else if (part.size > 0)
            memcpy(copy, part.data, part.size);
        ret_chunk->bytes.data = copy;
        ret_chunk->bytes.size = part.size;
    } else if (result == SQLITE_DONE) {
        status = error_set(err, MUSTER_E_NOT_FOUND, "a result has no part at %" PRIu64, offset);
    } else {
        status = store_failed(store, result, "read a part of a result", err);
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return status;
}

static enum muster_status tasks_result_inline(struct store *store, struct wire_bytes result,
                                              uint64_t offset, struct wire_result_chunk *ret_chunk,
                                              struct muster_error *err)
{
    uint8_t *copy = arena_alloc(&store->arena, result.size + 1);

    if (copy == NULL) /* never an answer of no bytes */
        return error_set(err, MUSTER_E_NOMEM, "no memory for a result of %zu bytes", result.size);
    if (offset > result.size)
        return MUSTER_OK;
    ret_chunk->bytes.size = result.size - (size_t)offset;
    memcpy(copy, result.data + offset, ret_chunk->bytes.size);
    ret_chunk->bytes.data = copy;
    return MUSTER_OK;
}

enum muster_status store_task_result(struct store *store, const struct wire_result_get *asked,
                                     struct wire_result_chunk *ret_chunk, struct muster_error *err)
{
    sqlite3_stmt *s = store->tasks[STORE_TASK_RESULT];
    int64_t id = store_tasks_id_of(asked->queue, asked->number);
    enum wire_task_state state = TASK_NONE;
    enum muster_status status = MUSTER_OK;
    uint64_t attempt = 0;
    bool in_parts = false;
    int result;

    arena_reset(&store->arena);
    sqlite3_bind_int64(s, 1, id);
    result = sqlite3_step(s);
    if (result == SQLITE_ROW && store_tasks_state_of(store_tasks_text_of(s, 0), &state) &&
        state == TASK_DONE) {
        struct wire_bytes bytes = store_tasks_bytes_of(s, 2);

        ret_chunk->total = store_tasks_number_of(s, 1);
        attempt = store_tasks_number_of(s, 3);
        in_parts = bytes.size != ret_chunk->total;
        if (bytes.data == NULL && bytes.size == 0 && sqlite3_errcode(store->db) == SQLITE_NOMEM)
            status = store_failed(store, SQLITE_NOMEM, "read a result", err);
        else if (!in_parts && bytes.data != NULL)
            status = tasks_result_inline(store, bytes, asked->offset, ret_chunk, err);
    } else if (result == SQLITE_ROW || result == SQLITE_DONE) {
        status =
            error_set(err, MUSTER_E_NOT_FOUND, "task %" PRIu64 " has no result", asked->number);
    } else {
        status = store_failed(store, result, "read a result", err);
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if (status == MUSTER_OK && in_parts && asked->offset < ret_chunk->total)
        status = tasks_result_part(store, id, attempt, asked->offset, ret_chunk, err);
    return status;
}
