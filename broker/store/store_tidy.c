/* store_tidy - rows of tasks that nobody reads any more: a queue that was begun again, results that
 * were released. They may be gigabytes, and nobody is served while they are deleted. So at most a
 * slice of them is deleted at once. The rest is named in task_garbage and is deleted between the
 * batches, each slice in a transaction of its own. */
#include "broker/store/store_internal.h"

#define SLICE_ROWS 8192
#define SLICE_BYTES (1 << 20)

static const char *const statements[STORE_TIDY_COUNT] = {
    [STORE_TIDY_FIRST] = "SELECT queue, first, last, queue IN (SELECT queue FROM task_queue)"
                         " FROM task_garbage LIMIT 1",
    [STORE_TIDY_LOOK] = "SELECT id, length(args) + length(result) + " STRING_OF(
        TASK_PART_MAX) " * (SELECT count(*) FROM task_part p WHERE p.id = task.id)"
                       " FROM task WHERE id BETWEEN ?1 AND ?2"
                       " AND (NOT ?3 OR state IN ('done', 'failed', 'cancelled'))"
                       " ORDER BY id LIMIT " STRING_OF(SLICE_ROWS),
    [STORE_TIDY_TASKS] = "DELETE FROM task WHERE id BETWEEN ?1 AND ?2"
                         " AND (NOT ?3 OR state IN ('done', 'failed', 'cancelled'))",
    [STORE_TIDY_PARTS] = "DELETE FROM task_part WHERE id BETWEEN ?1 AND ?2"
                         " AND (NOT ?3 OR id NOT IN (SELECT id FROM task WHERE id BETWEEN ?1 AND "
                         "?2))",
    [STORE_TIDY_REST] = "INSERT INTO task_garbage (queue, first, last) VALUES (?1, ?2, ?3)"
                        " ON CONFLICT (queue) DO UPDATE SET first = ?2, last = max(last, ?3)",
    [STORE_TIDY_OVER] = "DELETE FROM task_garbage WHERE queue = ?1",
};

enum muster_status store_tidy_prepare(struct store *store, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < STORE_TIDY_COUNT && status == MUSTER_OK; i++)
        status = store_prepare(store, statements[i], &store->tidy[i], err);
    return status;
}

static enum muster_status store_tidy_run(struct store *store, enum store_tidy which,
                                         const int64_t values[3], struct muster_error *err)
{
    sqlite3_stmt *s = store->tidy[which];
    enum muster_status status = MUSTER_OK;
    int result;

    for (int i = 0; i < 3 && i < sqlite3_bind_parameter_count(s); i++)
        sqlite3_bind_int64(s, i + 1, values[i]);
    result = sqlite3_step(s);
    if (result != SQLITE_DONE)
        status = store_failed(store, result, "delete tasks that nobody wants", err);
    sqlite3_reset(s);
    return status;
}

/* Where the slice ends that begins with the first: `last` if there are no more. */
static enum muster_status store_tidy_look(struct store *store, const int64_t range[3],
                                          int64_t *ret_last, struct muster_error *err)
{
    sqlite3_stmt *s = store->tidy[STORE_TIDY_LOOK];
    enum muster_status status = MUSTER_OK;
    int64_t last = range[0], bytes = 0;
    int result, rows = 0;

    for (int i = 0; i < 3; i++)
        sqlite3_bind_int64(s, i + 1, range[i]);
    while ((result = sqlite3_step(s)) == SQLITE_ROW && bytes < SLICE_BYTES) {
        last = sqlite3_column_int64(s, 0);
        bytes += sqlite3_column_int64(s, 1);
        rows++;
    }
    if (result != SQLITE_DONE && result != SQLITE_ROW)
        status = store_failed(store, result, "look for tasks that nobody wants", err);
    sqlite3_reset(s);
    *ret_last = result == SQLITE_DONE && rows < SLICE_ROWS ? range[1] : last;
    return status;
}

enum muster_status store_tidy_range(struct store *store, uint64_t queue, uint64_t first,
                                    uint64_t last, bool ended_only, struct muster_error *err)
{
    const int64_t base = (int64_t)(queue << 40);
    int64_t range[3] = {base + (int64_t)first, base + (int64_t)last, ended_only};
    int64_t slice_last = 0;
    enum muster_status status = store_tidy_look(store, range, &slice_last, err);
    bool over = slice_last == range[1];

    range[1] = slice_last;
    if (status == MUSTER_OK)
        status = store_tidy_run(store, STORE_TIDY_TASKS, range, err);
    if (status == MUSTER_OK)
        status = store_tidy_run(store, STORE_TIDY_PARTS, range, err);
    if (status != MUSTER_OK)
        return status;
    if (over)
        return store_tidy_run(store, STORE_TIDY_OVER, (int64_t[]){(int64_t)queue, 0, 0}, err);
    store->untidy = true;
    return store_tidy_run(store, STORE_TIDY_REST,
                          (int64_t[]){(int64_t)queue, slice_last - base + 1, (int64_t)last}, err);
}

/* In a transaction. */
enum muster_status store_tidy_slice(struct store *store, struct muster_error *err)
{
    sqlite3_stmt *s = store->tidy[STORE_TIDY_FIRST];
    enum muster_status status = MUSTER_OK;
    uint64_t values[4] = {0};
    int result = sqlite3_step(s);

    if (result != SQLITE_ROW && result != SQLITE_DONE)
        status = store_failed(store, result, "look for tasks that nobody wants", err);
    for (int i = 0; result == SQLITE_ROW && i < 4; i++)
        values[i] = (uint64_t)sqlite3_column_int64(s, i);
    sqlite3_reset(s);
    if (result == SQLITE_DONE)
        store->untidy = false;
    if (result != SQLITE_ROW)
        return status;
    return store_tidy_range(store, values[0], values[1], values[2], values[3] != 0, err);
}
