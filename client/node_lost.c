/* node_lost - a launch that begins from the start, in a directory with checkpoints of its job that the broker never heard
 * of: its database is new or was lost. Whoever trained on would throw them away without a word, so the chief refuses.
 * What the broker's records name in whatever state (deleted, superseded, aborted) is its decision, and no reason. */
#include "client/node_private.h"

#include "client/query_link.h"
#include "node/shard/dir_list.h"
#include "schema/error.h"

#define ASK_MS 2000

/* The newest that counts; -1: there is none. */
static ssize_t newest_of(const struct dir_list *list)
{
    ssize_t newest = -1;

    for (size_t i = 0; i < list->count; i++)
        if (!list->launches[i].superseded &&
            (newest < 0 || list->launches[i].step > list->launches[newest].step))
            newest = (ssize_t)i;
    return newest;
}

/* A broker that does not answer is taken for one that knows: the launch is not held up by a question. */
static bool is_known(const struct muster_node *node, const struct dir_list *list, ssize_t which)
{
    const struct question question = {.query = "round",
                                      .job = node->job,
                                      .text_arg = "",
                                      .number_arg = (int64_t)list->items[which].round};
    struct query_link *link = NULL;
    muster_rows_t *rows = rows_create(question.query);
    bool more = false, known = true;

    if (rows != NULL && query_link_open(node->broker, ASK_MS, &link, NULL) == MUSTER_OK &&
        query_link_page(link, &question, rows, &more, NULL) == MUSTER_OK)
        known = muster_rows_count(rows) == 1 &&
                muster_rows_rounds(rows)[0].generation == (int64_t)list->launches[which].generation;
    query_link_close(&link);
    muster_rows_destroy(&rows);
    return known;
}

enum muster_status node_check_lost(const struct muster_node *node, struct muster_error *err)
{
    struct arena arena;
    struct dir_list list;
    enum muster_status status;
    ssize_t newest;

    if (node->rank != 0 || node->role != ROLE_CHIEF)
        return MUSTER_OK;
    arena_init(&arena, 0);
    status = dir_list_read(node->checkpoint_dir, node->job, &arena, &list, err);
    if (status == MUSTER_OK) {
        newest = newest_of(&list);
        if (newest >= 0 && !is_known(node, &list, newest))
            status = error_set(
                err, MUSTER_E_RESTORE,
                "the broker at %.100s knows of no checkpoint of job %s: its database is new, or "
                "was lost. But %.300s was saved by it, after %lld steps. `muster import '%.300s'` "
                "tells the broker what is there, and the next launch resumes from the newest; to "
                "begin anew, give the job another directory, or move away what is in this one",
                node->broker, node->job, list.items[newest].path,
                (long long)list.launches[newest].step, node->checkpoint_dir);
        dir_list_free(&list);
    }
    arena_free(&arena);
    return status;
}
