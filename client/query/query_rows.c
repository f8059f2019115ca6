#include "client/query/query_rows.h"

#include "schema/arena.h"
#include "schema/error.h"
#include "schema/sized.h"
#include "schema/sql/queries.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

struct column {
    const char *name;
    enum muster_column_kind kind;
    size_t offset; /* of the member in the row's struct */
};
struct shape {
    const struct column *columns;
    size_t columns_count;
    size_t size_bytes; /* of the row's struct */
    enum muster_row_kind kind;
};

/* ROW names the struct whose columns follow. */
#define TEXT(name) {#name, MUSTER_COLUMN_TEXT, offsetof(struct ROW, name)},
#define INTEGER(name) {#name, MUSTER_COLUMN_INTEGER, offsetof(struct ROW, name)},
#define BOOLEAN(name) {#name, MUSTER_COLUMN_BOOLEAN, offsetof(struct ROW, name)},
#define SHAPE(columns, kind)                                                  \
    {                                                                         \
        columns, sizeof columns / sizeof columns[0], sizeof(struct ROW), kind \
    }

#define ROW muster_job_row
static const struct column job_columns[] = {COLUMNS_JOB(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_job = SHAPE(job_columns, MUSTER_ROW_JOB);
#undef ROW
#define ROW muster_node_row
static const struct column node_columns[] = {COLUMNS_NODE(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_node = SHAPE(node_columns, MUSTER_ROW_NODE);
#undef ROW
#define ROW muster_round_row
static const struct column round_columns[] = {COLUMNS_ROUND(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_round = SHAPE(round_columns, MUSTER_ROW_ROUND);
#undef ROW
#define ROW muster_participant_row
static const struct column participant_columns[] = {COLUMNS_PARTICIPANT(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_participant = SHAPE(participant_columns, MUSTER_ROW_PARTICIPANT);
#undef ROW
#define ROW muster_checkpoint_row
static const struct column checkpoint_columns[] = {COLUMNS_CHECKPOINT(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_checkpoint = SHAPE(checkpoint_columns, MUSTER_ROW_CHECKPOINT);
#undef ROW
#define ROW muster_shard_row
static const struct column shard_columns[] = {COLUMNS_SHARD(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_shard = SHAPE(shard_columns, MUSTER_ROW_SHARD);
#undef ROW
#define ROW muster_file_row
static const struct column file_columns[] = {COLUMNS_FILE(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_file = SHAPE(file_columns, MUSTER_ROW_FILE);
#undef ROW
#define ROW muster_event_row
static const struct column event_columns[] = {COLUMNS_EVENT(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_event = SHAPE(event_columns, MUSTER_ROW_EVENT);
#undef ROW
#define ROW muster_notice_row
static const struct column notice_columns[] = {COLUMNS_NOTICE(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_notice = SHAPE(notice_columns, MUSTER_ROW_NOTICE);
#undef ROW
#define ROW muster_generation_row
static const struct column generation_columns[] = {COLUMNS_GENERATION(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_generation = SHAPE(generation_columns, MUSTER_ROW_GENERATION);
#undef ROW

#define ROW muster_task_queue_row
static const struct column task_queue_columns[] = {COLUMNS_TASK_QUEUE(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_task_queue = SHAPE(task_queue_columns, MUSTER_ROW_TASK_QUEUE);
#undef ROW
#define ROW muster_task_row
static const struct column task_columns[] = {COLUMNS_TASK(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_task = SHAPE(task_columns, MUSTER_ROW_TASK);
#undef ROW
#define ROW muster_task_worker_row
static const struct column task_worker_columns[] = {COLUMNS_TASK_WORKER(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_task_worker = SHAPE(task_worker_columns, MUSTER_ROW_TASK_WORKER);
#undef ROW
#define ROW muster_host_row
static const struct column host_columns[] = {COLUMNS_HOST(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_host = SHAPE(host_columns, MUSTER_ROW_HOST);
#undef ROW
#define ROW muster_policy_row
static const struct column policy_columns[] = {COLUMNS_POLICY(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_policy = SHAPE(policy_columns, MUSTER_ROW_POLICY);
#undef ROW
#define ROW muster_broker_row
static const struct column broker_columns[] = {COLUMNS_BROKER(TEXT, INTEGER, BOOLEAN)};
static const struct shape shape_broker = SHAPE(broker_columns, MUSTER_ROW_BROKER);
#undef ROW

static const struct {
    const char *query;
    const struct shape *shape;
} query_shapes[] = {
    {"jobs", &shape_job},
    {"job", &shape_job},
    {"nodes", &shape_node},
    {"rounds", &shape_round},
    {"round", &shape_round},
    {"attempts", &shape_round},
    {"participants", &shape_participant},
    {"checkpoints", &shape_checkpoint},
    {"checkpoint", &shape_checkpoint},
    {"latest", &shape_checkpoint},
    {"shards", &shape_shard},
    {"files", &shape_file},
    {"events", &shape_event},
    {"incidents", &shape_event},
    {"notices", &shape_notice},
    {"generations", &shape_generation},
    {"task_queues", &shape_task_queue},
    {"tasks", &shape_task},
    {"tasks_after", &shape_task},
    {"task_workers", &shape_task_worker},
    {"hosts", &shape_host},
    {"policies", &shape_policy},
    {QUERY_BROKER, &shape_broker},
};

/* The rows for a program whose structs have another size. */
struct view {
    struct view *next;
    size_t struct_size;
    size_t count;
    alignas(max_align_t) unsigned char items[];
};

struct muster_rows {
    const struct shape *shape;
    struct view *views;
    struct arena strings;
    unsigned char *items; /* structs of shape->size_bytes */
    size_t count;
    size_t capacity;
};

muster_rows_t *rows_create(const char *query)
{
    for (size_t i = 0; i < sizeof query_shapes / sizeof query_shapes[0]; i++) {
        muster_rows_t *rows;

        if (strcmp(query_shapes[i].query, query) != 0)
            continue;
        rows = calloc(1, sizeof *rows);
        if (rows == NULL)
            return NULL;
        rows->shape = query_shapes[i].shape;
        arena_init(&rows->strings, 0);
        return rows;
    }
    return NULL;
}

void muster_rows_destroy(muster_rows_t **rows)
{
    if (rows == NULL || *rows == NULL)
        return;
    arena_free(&(*rows)->strings);
    while ((*rows)->views != NULL) {
        struct view *next = (*rows)->views->next;

        free((*rows)->views);
        (*rows)->views = next;
    }
    free((*rows)->items);
    free(*rows);
    *rows = NULL;
}

static bool query_rows_grow(muster_rows_t *rows)
{
    size_t capacity = rows->capacity == 0 ? 16 : rows->capacity * 2;
    unsigned char *items;

    if (rows->count < rows->capacity)
        return true;
    if (rows->count >= ROWS_MAX)
        return false;
    items = realloc(rows->items, capacity * rows->shape->size_bytes);
    if (items == NULL)
        return false;
    rows->items = items;
    rows->capacity = capacity;
    return true;
}

static bool query_rows_set_text(muster_rows_t *rows, unsigned char *member, const struct cell *cell)
{
    const char *text = "";

    if (cell != NULL && cell->text != NULL && cell->size > 0)
        text = arena_strndup(&rows->strings, cell->text, cell->size);
    memcpy(member, &text, sizeof text);
    return text != NULL;
}

enum muster_status rows_append(muster_rows_t *rows, const struct cell *cells, size_t count,
                               struct muster_error *err)
{
    const struct shape *shape = rows->shape;
    unsigned char *item;

    if (!query_rows_grow(rows))
        return error_set(err, MUSTER_E_NOMEM, "no memory for an answer of more than %zu rows",
                         rows->count);
    item = rows->items + rows->count * shape->size_bytes;
    memset(item, 0, shape->size_bytes);
    for (size_t i = 0; i < shape->columns_count; i++) {
        const struct column *column = &shape->columns[i];
        const struct cell *cell = i < count ? &cells[i] : NULL;
        int64_t integer = cell == NULL || cell->text != NULL ? 0 : cell->integer;
        bool truth = integer != 0;

        if (column->kind == MUSTER_COLUMN_TEXT) {
            if (!query_rows_set_text(rows, item + column->offset, cell))
                return error_set(err, MUSTER_E_NOMEM, "no memory for an answer's row %zu",
                                 rows->count);
        } else if (column->kind == MUSTER_COLUMN_BOOLEAN) {
            memcpy(item + column->offset, &truth, sizeof truth);
        } else {
            memcpy(item + column->offset, &integer, sizeof integer);
        }
    }
    rows->count++;
    return MUSTER_OK;
}

static void query_rows_shift_row(const struct shape *shape, unsigned char *item, int64_t offset)
{
    static const char *const names[] = {"step", "begun", "done", "resume_step"};

    for (size_t i = 0; i < shape->columns_count; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            int64_t step;

            if (strcmp(shape->columns[i].name, names[k]) != 0)
                continue;
            memcpy(&step, item + shape->columns[i].offset, sizeof step);
            step += step >= 0 ? offset : 0;
            memcpy(item + shape->columns[i].offset, &step, sizeof step);
        }
}

void rows_shift_steps(muster_rows_t *rows, int64_t offset)
{
    for (size_t i = 0; i < rows->count; i++)
        query_rows_shift_row(rows->shape, rows->items + i * rows->shape->size_bytes, offset);
}

size_t muster_rows_count(const muster_rows_t *rows)
{
    return rows == NULL ? 0 : rows->count;
}

/* Of another size: laid out once for that size. */
static const unsigned char *query_rows_view_of(struct muster_rows *rows, size_t struct_size)
{
    const size_t own_size = rows->shape->size_bytes;
    struct view *view = rows->views;

    while (view != NULL && (view->struct_size != struct_size || view->count != rows->count))
        view = view->next;
    if (view != NULL)
        return view->items;
    if (struct_size == 0 || struct_size > SIZE_MAX / 2 / rows->count)
        return NULL;
    view = malloc(sizeof *view + rows->count * struct_size);
    if (view == NULL)
        return NULL;
    *view = (struct view){rows->views, struct_size, rows->count};
    for (size_t i = 0; i < rows->count; i++)
        sized_give(view->items + i * struct_size, struct_size, rows->items + i * own_size,
                   own_size);
    rows->views = view;
    return view->items;
}

const void *muster_rows_array(const muster_rows_t *rows, enum muster_row_kind kind,
                              size_t struct_size)
{
    if (rows == NULL || rows->count == 0 || rows->shape->kind != kind)
        return NULL;
    return struct_size == rows->shape->size_bytes
               ? rows->items
               : query_rows_view_of((struct muster_rows *)rows, struct_size);
}

size_t muster_rows_columns(const muster_rows_t *rows)
{
    return rows == NULL ? 0 : rows->shape->columns_count;
}

const char *muster_rows_column_name(const muster_rows_t *rows, size_t column)
{
    return column < muster_rows_columns(rows) ? rows->shape->columns[column].name : "";
}

enum muster_column_kind muster_rows_column_kind(const muster_rows_t *rows, size_t column)
{
    return column < muster_rows_columns(rows) ? rows->shape->columns[column].kind
                                              : MUSTER_COLUMN_NONE;
}

static const unsigned char *query_rows_member_at(const muster_rows_t *rows, size_t row,
                                                 size_t column)
{
    return rows->items + row * rows->shape->size_bytes + rows->shape->columns[column].offset;
}

const char *muster_rows_text(const muster_rows_t *rows, size_t row, size_t column)
{
    const char *text;

    if (row >= muster_rows_count(rows) ||
        muster_rows_column_kind(rows, column) != MUSTER_COLUMN_TEXT)
        return "";
    memcpy(&text, query_rows_member_at(rows, row, column), sizeof text);
    return text;
}

int64_t muster_rows_integer(const muster_rows_t *rows, size_t row, size_t column)
{
    enum muster_column_kind kind = muster_rows_column_kind(rows, column);
    int64_t integer;
    bool truth;

    if (row >= muster_rows_count(rows))
        return 0;
    if (kind == MUSTER_COLUMN_BOOLEAN) {
        memcpy(&truth, query_rows_member_at(rows, row, column), sizeof truth);
        return truth;
    }
    if (kind != MUSTER_COLUMN_INTEGER)
        return 0;
    memcpy(&integer, query_rows_member_at(rows, row, column), sizeof integer);
    return integer;
}

void rows_go_on(const muster_rows_t *rows, struct question *question)
{
    size_t count = muster_rows_count(rows);

    question->after = question->keyed ? 0 : (int64_t)count;
    if (question->keyed && count > 0)
        question->number_arg = muster_rows_integer(rows, count - 1, question->key_column);
}
