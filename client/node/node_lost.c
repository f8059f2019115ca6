/* node_lost - a launch that begins from the start, or from an older checkpoint, in a directory with
 * newer ones of its job that the broker never heard of. The broker's database is new, was lost, or
 * was restored from an older copy. A launch that trained on would silently discard them, so rank 0
 * refuses. If the manifest names the broker's database, the broker has an older copy of that. Then
 * the launch ends, rank 0 imports what is there (node_import), and the next launch goes on from it.
 *
 * A checkpoint that the broker's records decided on (committed, superseded, deleted) is no reason.
 * A round that the records show as aborted may still have been committed: a manifest is written
 * only after a commit, so an older copy may have forgotten that. For a damaged one rank 0 asks
 * only about its round's number. Checkpoints of no more steps than the resume checkpoint are read
 * only if one of more steps is there: its launch may have given them up. */
#include "client/node/node_private.h"

#include "client/query/query_link.h"
#include "node/clock.h"
#include "node/shard/dir_list.h"
#include "schema/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AGAIN_MS 200

struct newest {
    const char *path; /* NULL: there is none; else the list's */
    uint64_t generation, round;
    int64_t step;
    uint64_t database; /* that its manifest was made from; 0: not known */
    bool whole;
};
struct asking {
    const struct muster_node *node;
    struct query_link *link;
    bool (*over_fn)(const void *node); /* breaks a wait off */
    int64_t until_ms;
    bool over; /* the launch has ended, or this process has to */
};

/* --- the broker ------------------------------------------------------------------------------- */

static bool node_lost_is_decided(const char *state)
{
    return strcmp(state, "committed") == 0 || strcmp(state, "superseded") == 0 ||
           strcmp(state, "deleting") == 0 || strcmp(state, "deleted") == 0;
}

bool node_is_over(const void *arg)
{
    const struct muster_node *node = arg;
    struct member_view view;

    agent_view(node->agent, &view);
    return view.mode == VIEW_END || agent_is_interrupted(node->agent);
}

/* Its numbers begin again with each database; the step is another's then. */
static bool node_lost_is_known(const struct newest *newest, const muster_rows_t *rows)
{
    if (muster_rows_count(rows) != 1)
        return false;
    if (newest->whole) {
        const struct muster_checkpoint_row *row = muster_rows_checkpoints(rows);

        return row->generation == (int64_t)newest->generation && row->step == newest->step &&
               node_lost_is_decided(row->state);
    }
    const struct muster_round_row *row = muster_rows_rounds(rows);

    return row->generation == (int64_t)newest->generation && row->step == newest->step;
}

static enum muster_status node_lost_ask_once(struct asking *asking, const struct newest *newest,
                                             bool *ret_known, struct muster_error *err)
{
    const struct muster_node *node = asking->node;
    const struct question question = {.query = newest->whole ? "checkpoint" : "round",
                                      .job = node->job,
                                      .text_arg = "",
                                      .number_arg = (int64_t)newest->round};
    muster_rows_t *rows = rows_create(question.query);
    bool more = false;
    enum muster_status status = MUSTER_OK;

    if (rows == NULL)
        status = error_set(err, MUSTER_E_NOMEM, "no memory to ask the broker %s", node->broker);
    else if (asking->link == NULL)
        status = query_link_open(node->broker, (int)node->options.connect_timeout_ms, &asking->link,
                                 err);
    if (status == MUSTER_OK) {
        query_link_set_over(asking->link, asking->over_fn, node);
        status = query_link_page(asking->link, &question, rows, &more, err);
    }
    if (status == MUSTER_OK)
        *ret_known = node_lost_is_known(newest, rows);
    muster_rows_destroy(&rows);
    return status;
}

static bool node_lost_is_away(enum muster_status status)
{
    return status == MUSTER_E_BROKER || status == MUSTER_E_STORAGE || status == MUSTER_E_BUSY;
}

/* A broker that is away, or cannot read just now, cannot answer. This waits as everything else in a
 * launch does: as long as the launch lasts. */
static enum muster_status node_lost_ask(struct asking *asking, const struct newest *newest,
                                        bool *ret_known, struct muster_error *err)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
    enum muster_status status;

    for (;;) {
        status = node_lost_ask_once(asking, newest, ret_known, err);
        if (!node_lost_is_away(status))
            return status;
        asking->over = node_is_over(asking->node);
        if (asking->over)
            return agent_take_end(asking->node->agent, err);
        if (clock_ms(CLOCK_MONOTONIC) >= asking->until_ms)
            return status;
        nanosleep(&pause, NULL);
    }
}

/* --- what is there ---------------------------------------------------------------------------- */

static struct newest node_lost_whole_item(const struct dir_list *list, size_t at)
{
    return (struct newest){.path = list->items[at].path,
                           .generation = list->launches[at].generation,
                           .round = list->items[at].round,
                           .step = list->launches[at].step,
                           .database = list->items[at].database,
                           .whole = true};
}

/* Item `at` of the list, of which the damaged are the last, if it counts. */
static struct newest node_lost_candidate(const struct muster_node *node,
                                         const struct dir_list *list, size_t at)
{
    struct newest none = {.step = -1};
    int64_t step;

    if (at < list->count)
        return list->launches[at].counts ? node_lost_whole_item(list, at) : none;
    const struct dir_damaged *damaged = &list->damaged[at - list->count];
    if (damaged->generation == UINT64_MAX ||
        !dir_list_counts(list, damaged, node->job, &node->wish.names, &step))
        return none;
    return (struct newest){.path = damaged->path,
                           .generation = damaged->generation,
                           .round = damaged->round,
                           .step = step};
}

/* Of those after more steps than `above`, whole or damaged, that the broker does not know. */
static enum muster_status node_lost_find_newest(const struct muster_node *node,
                                                const struct dir_list *list, int64_t above,
                                                struct newest *ret_newest, bool *ret_over,
                                                struct muster_error *err)
{
    struct asking asking = {.node = node,
                            .over_fn = node_is_over,
                            .until_ms = clock_ms(CLOCK_MONOTONIC) + node->options.join_timeout_ms};
    enum muster_status status = MUSTER_OK;

    *ret_newest = (struct newest){.step = above};
    for (size_t i = 0; status == MUSTER_OK && i < list->count + list->damaged_count; i++) {
        struct newest item = node_lost_candidate(node, list, i);
        bool known = false;

        if (item.step <= ret_newest->step)
            continue;
        status = node_lost_ask(&asking, &item, &known, err);
        if (status == MUSTER_OK && !known)
            *ret_newest = item;
    }
    query_link_close(&asking.link);
    *ret_over = asking.over;
    return status;
}

/* The command comes first, so that it stays whole if the text is cut. */
static enum muster_status node_lost_refuse(const struct muster_node *node,
                                           const struct newest *newest, int64_t resume,
                                           struct muster_error *err)
{
    char from[80] = "";

    if (resume > 0)
        snprintf(from, sizeof from, "has this launch resume at step %lld, and ",
                 (long long)resume + node->wish.names.offset);
    return error_set(
        err, MUSTER_E_RESTORE,
        "`muster import '%s'` is to be run first: %s is there, and the broker at %.100s %sknows "
        "of no checkpoint of job %s at step %lld. Its database is new, was lost or restored "
        "from an older copy, or a process without a broker saved that checkpoint. The import tells "
        "the broker what is there, and the next launch resumes from the newest. It says what it "
        "leaves out, and why: move that away to go on without it. To %s in any case, give the job "
        "another directory, or move away what is newer in this one",
        node->checkpoint_dir, newest->path, node->broker, from, node->job,
        (long long)newest->step + node->wish.names.offset,
        resume > 0 ? "go on from there without an import" : "begin from the start");
}

/* Was its manifest made from the broker's database, of which the broker now has an older copy? */
static bool node_lost_is_of_broker(const struct muster_node *node, uint64_t database)
{
    struct member_view view;

    agent_view(node->agent, &view);
    return database != 0 && database == view.database;
}

static enum muster_status node_lost_imports(const struct muster_node *node,
                                            const struct newest *newest, struct muster_error *err)
{
    return error_set(
        err, MUSTER_E_RESTORE,
        "%s is there, and the broker at %.100s knows of no checkpoint of job %s at step %lld: its "
        "database was restored from an older copy. Rank %d imports what is there, and the next "
        "launch resumes from the newest",
        newest->path, node->broker, node->job, (long long)newest->step + node->wish.names.offset,
        node->rank);
}

enum muster_status node_check_lost(const struct muster_node *node, int64_t resume, bool *ret_over,
                                   bool *ret_imports, struct muster_error *err)
{
    const int64_t above = resume > 0 ? resume : -1;
    struct arena arena;
    struct dir_list list;
    struct newest newest;
    enum muster_status status;

    if (node->rank != 0 || !role_is_trainer(node->role))
        return MUSTER_OK;
    arena_init(&arena, 0);
    status = dir_list_read_above(node->checkpoint_dir, node->job, &node->wish.names, above, &arena,
                                 &list, err);
    if (status == MUSTER_OK) {
        status = node_lost_find_newest(node, &list, above, &newest, ret_over, err);
        *ret_imports = status == MUSTER_OK && node_lost_is_of_broker(node, newest.database);
        if (status == MUSTER_OK && newest.path != NULL)
            status = *ret_imports ? node_lost_imports(node, &newest, err)
                                  : node_lost_refuse(node, &newest, resume, err);
        dir_list_free(&list);
    } else if (status == MUSTER_E_NOT_FOUND)
        status = MUSTER_OK; /* what is to be restored is elsewhere, or not there: that is told by
                               reading it */
    arena_free(&arena);
    return status;
}

/* --- an older copy gets them back ------------------------------------------------------------- */

struct importing {
    struct asking asking;
    bool over;               /* the broker takes no more from this launch */
    int count;               /* that are new to the broker */
    int64_t imported;        /* the greatest step of them, -1 = none */
    int64_t refused;         /* ... of those that it refused */
    struct muster_error why; /* of that one */
};

static bool node_lost_is_interrupted(const void *arg)
{
    const struct muster_node *node = arg;

    return agent_is_interrupted(node->agent);
}

static enum muster_status node_lost_import_once(struct importing *importing,
                                                const struct newest *item, struct muster_error *err)
{
    const char *job = importing->asking.node->job;
    char *text = NULL;
    size_t size = 0;
    bool known = false, is_new = false;
    enum muster_status status = node_lost_ask_once(&importing->asking, item, &known, err);

    if (status == MUSTER_OK && !known)
        status = shard_manifest_text(item->path, &text, &size, err);
    if (text != NULL)
        status =
            query_link_import(importing->asking.link, job, item->path, text, size, &is_new, err);
    free(text);
    importing->over = status == MUSTER_E_BUSY && is_new; /* another launch runs: it looks itself */
    importing->count += status == MUSTER_OK && is_new;
    if (status == MUSTER_OK && item->step > importing->imported)
        importing->imported = item->step;
    return status;
}

/* False: there is no use in going on. */
static bool node_lost_import_one(struct importing *importing, const struct newest *item)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};
    struct muster_error why;
    enum muster_status status;

    while (node_lost_is_away(status = node_lost_import_once(importing, item, &why))) {
        if (importing->over || node_lost_is_interrupted(importing->asking.node) ||
            clock_ms(CLOCK_MONOTONIC) >= importing->asking.until_ms)
            return false;
        nanosleep(&pause, NULL);
    }
    if (status != MUSTER_OK && item->step > importing->refused) {
        importing->refused = item->step;
        importing->why = why;
    }
    return status != MUSTER_E_NOMEM;
}

static enum muster_status node_lost_import_result(const struct importing *importing,
                                                  struct muster_error *err)
{
    const struct muster_node *node = importing->asking.node;

    node_log(node, 1, "%d checkpoint%s of job %s %s imported from %s into the broker's database",
             importing->count, importing->count == 1 ? "" : "s", node->job,
             importing->count == 1 ? "was" : "were", node->checkpoint_dir);
    if (importing->refused <= importing->imported)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_RESTORE,
                     "the checkpoint of step %lld in %s is newer than what the broker's database "
                     "knows, and it was not imported: %s",
                     (long long)importing->refused + node->wish.names.offset, node->checkpoint_dir,
                     importing->why.text);
}

enum muster_status node_import(const struct muster_node *node, struct muster_error *err)
{
    struct importing importing = {
        .asking = {.node = node,
                   .over_fn = node_lost_is_interrupted,
                   .until_ms = clock_ms(CLOCK_MONOTONIC) + node->options.join_timeout_ms},
        .imported = -1,
        .refused = -1};
    struct arena arena;
    struct dir_list list;
    bool goes_on = true;

    arena_init(&arena, 0);
    if (dir_list_read_above(node->checkpoint_dir, node->job, &node->wish.names, -1, &arena, &list,
                            &importing.why) != MUSTER_OK) {
        arena_free(&arena);
        return error_set(err, MUSTER_E_RESTORE, "nothing was imported: %s", importing.why.text);
    }
    for (size_t i = 0; goes_on && i < list.count; i++) {
        const struct newest item = node_lost_whole_item(&list, i);

        goes_on =
            !node_lost_is_of_broker(node, item.database) || node_lost_import_one(&importing, &item);
    }
    query_link_close(&importing.asking.link);
    dir_list_free(&list);
    arena_free(&arena);
    return node_lost_import_result(&importing, err);
}
