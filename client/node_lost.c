/* node_lost - a launch that begins from the start, or from an older checkpoint, in a directory with newer ones of its job
 * that the broker never heard of: its database is new, was lost, or was put back to an older copy. Whoever trained on
 * would throw them away without a word, so rank 0 refuses.
 * What the broker's records name in whatever state (deleted, superseded, aborted) is its decision, and no reason. */
#include "client/node_private.h"

#include "client/query_link.h"
#include "node/shard/dir_list.h"
#include "schema/error.h"

#include <stdio.h>

struct newest {
    const char *path; /* NULL: there is none; else the list's */
    uint64_t generation, round;
    int64_t step;
};

/* Its numbers begin anew with each database, and in processes without a broker; the step is another's then. */
static enum muster_status ask(const struct muster_node *node, const struct newest *newest,
                              struct query_link **link, bool *ret_known, struct muster_error *err)
{
    const struct question question = {
        .query = "round", .job = node->job, .text_arg = "", .number_arg = (int64_t)newest->round};
    muster_rows_t *rows = rows_create(question.query);
    bool more = false;
    enum muster_status status = MUSTER_OK;

    if (rows == NULL)
        status = error_set(err, MUSTER_E_NOMEM, "no memory to ask the broker %s", node->broker);
    else if (*link == NULL)
        status = query_link_open(node->broker, (int)node->options.connect_timeout_ms, link, err);
    if (status == MUSTER_OK)
        status = query_link_page(*link, &question, rows, &more, err);
    if (status == MUSTER_OK) {
        const struct muster_round_row *row = muster_rows_rounds(rows);

        *ret_known = muster_rows_count(rows) == 1 &&
                     row->generation == (int64_t)newest->generation && row->step == newest->step;
    }
    muster_rows_destroy(&rows);
    return status;
}

/* Item `at` of the list, of which the damaged are the last, if it counts. */
static struct newest candidate(const struct muster_node *node, const struct dir_list *list,
                               size_t at)
{
    struct newest none = {.step = -1};
    int64_t step;

    if (at < list->count) {
        const struct superseded_item *launch = &list->launches[at];
        struct newest item = {list->items[at].path, launch->generation, list->items[at].round,
                              launch->step};
        return launch->superseded ? none : item;
    }
    const struct dir_damaged *damaged = &list->damaged[at - list->count];
    if (damaged->generation == UINT64_MAX ||
        !dir_list_counts(list, damaged, node->job, &node->wish.names, &step))
        return none;
    return (struct newest){damaged->path, damaged->generation, damaged->round, step};
}

/* Of those after more steps than `above`, whole or damaged, that the broker does not know. */
static enum muster_status find_newest(const struct muster_node *node, const struct dir_list *list,
                                      int64_t above, struct newest *ret_newest,
                                      struct muster_error *err)
{
    struct query_link *link = NULL;
    enum muster_status status = MUSTER_OK;

    *ret_newest = (struct newest){.step = above};
    for (size_t i = 0; status == MUSTER_OK && i < list->count + list->damaged_count; i++) {
        struct newest item = candidate(node, list, i);
        bool known = false;

        if (item.step <= ret_newest->step)
            continue;
        status = ask(node, &item, &link, &known, err);
        if (status == MUSTER_OK && !known)
            *ret_newest = item;
    }
    query_link_close(&link);
    return status;
}

static enum muster_status refuse(const struct muster_node *node, const struct newest *newest,
                                 int64_t resume, struct muster_error *err)
{
    char from[80] = "";

    if (resume > 0)
        snprintf(from, sizeof from, "has this launch resume after %lld steps, and ",
                 (long long)resume);
    return error_set(
        err, MUSTER_E_RESTORE,
        "the broker at %.100s %sknows of no checkpoint of job %s after %lld steps: its database is "
        "new, was lost or put back to an older copy, or a process without a broker saved it. But "
        "%.300s is there. `muster import '%.300s'` tells the broker what is there, and the next "
        "launch resumes from the newest; what it leaves out is resumed without a broker; to %s, "
        "give the job another directory, or move away what is in this one",
        node->broker, from, node->job, (long long)newest->step, newest->path, node->checkpoint_dir,
        resume > 0 ? "go on without it" : "begin anew");
}

enum muster_status node_check_lost(const struct muster_node *node, int64_t resume,
                                   struct muster_error *err)
{
    struct arena arena;
    struct dir_list list;
    struct newest newest;
    enum muster_status status;

    if (node->rank != 0 || !role_is_trainer(node->role))
        return MUSTER_OK;
    arena_init(&arena, 0);
    status = dir_list_read(node->checkpoint_dir, node->job, &arena, &list, err);
    if (status == MUSTER_OK) {
        status = find_newest(node, &list, resume > 0 ? resume : -1, &newest, err);
        if (status == MUSTER_OK && newest.path != NULL)
            status = refuse(node, &newest, resume, err);
        dir_list_free(&list);
    } else if (status == MUSTER_E_NOT_FOUND)
        status =
            MUSTER_OK; /* what is to be restored is elsewhere, or not there: that is told by reading it */
    arena_free(&arena);
    return status;
}
