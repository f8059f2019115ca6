/* manager_list - see manager_list.h. */
#include "client/manager/manager_list.h"

#include "client/manager/place.h"
#include "client/query/query_link.h"
#include "node/shard/dir.h"
#include "node/shard/dir_list.h"
#include "schema/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_BYTES_MAX (1U << 30) /* 10,000 checkpoints take some 4 MiB */

void manager_list_init(struct manager_list *list)
{
    memset(list, 0, sizeof *list);
    arena_init(&list->arena, LIST_BYTES_MAX);
}

void manager_list_free(struct manager_list *list)
{
    arena_free(&list->arena);
    manager_list_init(list);
}

bool manager_source_is_over(const void *arg)
{
    struct manager_source *source = (struct manager_source *)arg;

    source->broken_off = source->broken_off || (source->interrupted != NULL &&
                                                source->interrupted(source->interrupted_arg));
    return source->broken_off;
}

enum muster_status manager_source_open(struct manager_source *source, struct muster_error *err)
{
    enum muster_status status;

    source->broken_off = false;
    if (source->link != NULL)
        return MUSTER_OK;
    status = query_link_open(source->broker, source->timeout_ms, &source->link, err);
    if (status == MUSTER_OK)
        query_link_set_over(source->link, manager_source_is_over, source);
    return status;
}

enum muster_status manager_source_told(const struct manager_source *source,
                                       enum muster_status status, struct muster_error *err)
{
    if (status != MUSTER_E_BROKER || !source->broken_off)
        return status;
    return error_set(err, MUSTER_E_INTERRUPTED, "the question to the broker was broken off");
}

void manager_source_close(struct manager_source *source)
{
    query_link_close(&source->link);
}

static enum muster_status manager_list_no_memory(struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOMEM, "no memory for the list of checkpoints; free some");
}

/* --- of a broker ------------------------------------------------------------------------------ */

/* The directory was moved, or is mounted at another place, since the broker wrote down its path.
 * The checkpoint is the one of that name in the given directory, if it is of that round. */
static const char *manager_list_place_of(const struct manager_source *source,
                                         const struct muster_checkpoint_row *row,
                                         char moved[FS_PATH_MAX])
{
    const char *name = strrchr(row->path, '/');

    if (source->directory == NULL || name == NULL || !row->in_place || fs_exists(row->path) ||
        fs_path(moved, NULL, "%s%s", source->directory, name) != MUSTER_OK ||
        !dir_is_round(moved, source->job, (uint64_t)row->generation, (uint64_t)row->checkpoint))
        return row->path;
    return moved;
}

static enum muster_status manager_list_take_row(struct manager_list *list,
                                                const struct manager_source *source,
                                                const struct muster_checkpoint_row *row,
                                                struct muster_error *err)
{
    struct muster_checkpoint_info *info;
    char moved[FS_PATH_MAX], found[FS_PATH_MAX];
    const bool committed = strcmp(row->state, "committed") == 0;
    const bool is_named = committed && !row->in_place &&
                          place_find(source->job, source->directory, row, row->step, found);
    const bool is_unplaced = committed && !row->in_place && !is_named;

    if (is_unplaced && (uint64_t)row->checkpoint > list->unplaced) {
        list->unplaced = (uint64_t)row->checkpoint;
        list->unplaced_generation = (uint64_t)row->generation;
    }
    if (is_unplaced && source->readable_only) {
        list->hidden++;
        return MUSTER_OK;
    }
    if (!committed) {
        const char *state = arena_strdup(&list->arena, row->state);

        if (state == NULL)
            return manager_list_no_memory(err);
        list->unlisted[list->unlisted_count++] = (struct manager_unlisted){row->step - 1, state};
        return MUSTER_OK;
    }
    info = &list->items[list->count];
    *info = (struct muster_checkpoint_info){
        .checkpoint = (uint64_t)row->checkpoint,
        .generation = (uint64_t)row->generation,
        .step = row->step - 1,
        .path = arena_strdup(&list->arena,
                             is_named ? found : manager_list_place_of(source, row, moved)),
        .epoch = row->epoch,
        .step_in_epoch = row->step_in_epoch,
        .data_position = row->data_position,
        .committed_unix_ms = row->committed_unix_ms,
        .bytes = row->bytes,
        .pinned = row->pinned,
        .metrics = arena_strdup(&list->arena, row->metrics)};
    if (info->path == NULL || info->metrics == NULL)
        return manager_list_no_memory(err);
    list->count++;
    return MUSTER_OK;
}

static enum muster_status manager_list_take_rows(struct manager_list *list,
                                                 const struct manager_source *source,
                                                 const muster_rows_t *rows,
                                                 struct muster_error *err)
{
    size_t count = muster_rows_count(rows);
    const struct muster_checkpoint_row *all = muster_rows_checkpoints(rows);
    enum muster_status status = MUSTER_OK;

    list->items = arena_alloc(&list->arena, (count + 1) * sizeof *list->items);
    list->unlisted = arena_alloc(&list->arena, (count + 1) * sizeof *list->unlisted);
    if (list->items == NULL || list->unlisted == NULL)
        return manager_list_no_memory(err);
    for (size_t i = 0; i < count && status == MUSTER_OK; i++)
        status = manager_list_take_row(list, source, &all[i], err);
    return status;
}

/* All pages of an answer. *ret_rows is owned, also on failure; NULL: no memory. */
static enum muster_status manager_list_ask_all(struct manager_source *source,
                                               struct question question, muster_rows_t **ret_rows,
                                               struct muster_error *err)
{
    enum muster_status status;
    bool more = true;

    question.job = source->job;
    *ret_rows = rows_create(question.query);
    if (*ret_rows == NULL)
        return manager_list_no_memory(err);
    status = manager_source_open(source, err);
    while (status == MUSTER_OK && more) {
        rows_go_on(*ret_rows, &question);
        status = query_link_page(source->link, &question, *ret_rows, &more, err);
    }
    return manager_source_told(source, status, err);
}

static enum muster_status manager_list_ask_broker(struct manager_list *list,
                                                  struct manager_source *source, const char *query,
                                                  struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    const struct question question = {
        .query = query, .text_arg = "", .keyed = strcmp(query, "checkpoints") == 0};
    enum muster_status status = manager_list_ask_all(source, question, &rows, err);

    if (status == MUSTER_OK)
        status = manager_list_take_rows(list, source, rows, err);
    muster_rows_destroy(&rows);
    return status;
}

enum muster_status manager_source_restore_failed(struct manager_source *source, uint64_t generation,
                                                 char ret_text[MUSTER_ERROR_TEXT_MAX],
                                                 struct muster_error *err)
{
    muster_rows_t *rows = NULL;
    enum muster_status status = manager_list_ask_all(
        source, (struct question){.query = "events", .text_arg = "restore failed", .keyed = true},
        &rows, err);
    const struct muster_event_row *events = muster_rows_events(rows);

    ret_text[0] = '\0';
    for (size_t i = 0; status == MUSTER_OK && i < muster_rows_count(rows); i++)
        if (events[i].generation == (int64_t)generation)
            snprintf(ret_text, MUSTER_ERROR_TEXT_MAX, "%s", events[i].text);
    muster_rows_destroy(&rows);
    return status;
}

/* --- of a directory --------------------------------------------------------------------------- */

static int manager_list_by_age(const void *a, const void *b)
{
    const struct muster_checkpoint_info *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->checkpoint > y->checkpoint) - (x->checkpoint < y->checkpoint);
}

static struct muster_checkpoint_info manager_list_info_of(const struct dir_list *found,
                                                          size_t index)
{
    const struct dir_item *item = &found->items[index];
    const struct counts_item *launch = &found->launches[index];

    return (struct muster_checkpoint_info){.checkpoint = item->round,
                                           .generation = launch->generation,
                                           .step = launch->step - 1,
                                           .path = item->path,
                                           .epoch = item->epoch,
                                           .step_in_epoch = item->step_in_epoch,
                                           .data_position = item->data_position,
                                           .committed_unix_ms = launch->created_unix_ms,
                                           .bytes = item->bytes,
                                           .metrics = item->metrics};
}

/* False: no memory. */
static bool manager_list_take_found(struct manager_list *list, const struct dir_list *found)
{
    list->items = arena_alloc(&list->arena, (found->count + 1) * sizeof *list->items);
    list->unlisted = arena_alloc(&list->arena, (found->count + 1) * sizeof *list->unlisted);
    if (list->items == NULL || list->unlisted == NULL)
        return false;
    for (size_t i = 0; i < found->count; i++) {
        const struct muster_checkpoint_info info = manager_list_info_of(found, i);

        if (found->launches[i].counts)
            list->items[list->count++] = info;
        else
            list->unlisted[list->unlisted_count++] =
                (struct manager_unlisted){info.step, "superseded"};
    }
    return true;
}

static enum muster_status manager_list_read_directory(struct manager_list *list,
                                                      const struct manager_source *source,
                                                      struct muster_error *err)
{
    struct dir_list found;
    enum muster_status status =
        dir_list_read(source->directory, source->job, &list->arena, &found, err);
    bool ok;

    if (status != MUSTER_OK)
        return status;
    ok = manager_list_take_found(list, &found);
    dir_list_free(&found);
    return ok ? MUSTER_OK : manager_list_no_memory(err);
}

/* --- both ------------------------------------------------------------------------------------- */

static enum muster_status manager_list_read_all(struct manager_list *list,
                                                struct manager_source *source, const char *query,
                                                struct muster_error *err)
{
    enum muster_status status;
    size_t kept = 0;

    manager_list_free(list);
    status = source->broker != NULL ? manager_list_ask_broker(list, source, query, err)
                                    : manager_list_read_directory(list, source, err);
    if (status != MUSTER_OK) {
        manager_list_free(list);
        return status;
    }
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, manager_list_by_age);
    for (size_t i = 0; i < list->count; i++) { /* of one step the latest made counts */
        if (kept > 0 && list->items[kept - 1].step == list->items[i].step)
            kept--;
        list->items[kept++] = list->items[i];
    }
    list->count = kept;
    return MUSTER_OK;
}

enum muster_status manager_list_read(struct manager_list *list, struct manager_source *source,
                                     struct muster_error *err)
{
    return manager_list_read_all(list, source, "checkpoints", err);
}

enum muster_status manager_list_read_newest(struct manager_list *list,
                                            struct manager_source *source, struct muster_error *err)
{
    enum muster_status status = manager_list_read_all(list, source, "latest", err);

    /* the newest cannot be read yet: the one before it can */
    return status == MUSTER_OK && list->hidden > 0
               ? manager_list_read_all(list, source, "checkpoints", err)
               : status;
}

const struct muster_checkpoint_info *manager_list_find(const struct manager_list *list,
                                                       int64_t step)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].step == step)
            return &list->items[i];
    return NULL;
}

const struct muster_checkpoint_info *manager_list_newest(const struct manager_list *list)
{
    return list->count > 0 ? &list->items[list->count - 1] : NULL;
}
