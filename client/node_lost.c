/* node_lost - a launch that begins from the start, in a directory with checkpoints of its job that the broker never heard
 * of: its database is new or was lost. Whoever trained on would throw them away without a word, so rank 0 refuses.
 * What the broker's records name in whatever state (deleted, superseded, aborted) is its decision, and no reason. */
#include "client/node_private.h"

#include "client/query_link.h"
#include "node/shard/dir_list.h"
#include "schema/error.h"

struct newest {
    const char *path; /* NULL: there is none; else the list's */
    uint64_t generation, round;
    int64_t step;
};

/* Of those that count, whole or damaged. */
static struct newest newest_of(const struct muster_node *node, const struct dir_list *list)
{
    struct newest newest = {.step = -1};

    for (size_t i = 0; i < list->count; i++)
        if (!list->launches[i].superseded && list->launches[i].step > newest.step)
            newest = (struct newest){list->items[i].path, list->launches[i].generation,
                                     list->items[i].round, list->launches[i].step};
    for (size_t i = 0; i < list->damaged_count; i++) {
        const struct dir_damaged *damaged = &list->damaged[i];
        int64_t step;

        if (damaged->generation != UINT64_MAX &&
            dir_list_counts(list, damaged, node->job, &node->wish.names, &step) &&
            step > newest.step)
            newest = (struct newest){damaged->path, damaged->generation, damaged->round, step};
    }
    return newest;
}

/* Its numbers begin anew with each database, and in processes without a broker; the step is another's then. */
static enum muster_status ask(const struct muster_node *node, const struct newest *newest,
                              bool *ret_known, struct muster_error *err)
{
    const struct question question = {
        .query = "round", .job = node->job, .text_arg = "", .number_arg = (int64_t)newest->round};
    struct query_link *link = NULL;
    muster_rows_t *rows = rows_create(question.query);
    bool more = false;
    enum muster_status status =
        rows != NULL
            ? query_link_open(node->broker, (int)node->options.connect_timeout_ms, &link, err)
            : error_set(err, MUSTER_E_NOMEM, "no memory to ask the broker %s", node->broker);

    if (status == MUSTER_OK)
        status = query_link_page(link, &question, rows, &more, err);
    if (status == MUSTER_OK) {
        const struct muster_round_row *row = muster_rows_rounds(rows);

        *ret_known = muster_rows_count(rows) == 1 &&
                     row->generation == (int64_t)newest->generation && row->step == newest->step;
    }
    query_link_close(&link);
    muster_rows_destroy(&rows);
    return status;
}

enum muster_status node_check_lost(const struct muster_node *node, struct muster_error *err)
{
    struct arena arena;
    struct dir_list list;
    enum muster_status status;
    bool known = true;

    if (node->rank != 0 || !role_is_trainer(node->role))
        return MUSTER_OK;
    arena_init(&arena, 0);
    status = dir_list_read(node->checkpoint_dir, node->job, &arena, &list, err);
    if (status == MUSTER_OK) {
        struct newest newest = newest_of(node, &list);

        if (newest.path != NULL)
            status = ask(node, &newest, &known, err);
        if (status == MUSTER_OK && !known)
            status = error_set(
                err, MUSTER_E_RESTORE,
                "the broker at %.100s knows of no checkpoint of job %s after %lld steps: its "
                "database is new, or was lost, or a process without a broker saved it. But %.300s "
                "is there. `muster import '%.300s'` tells the broker what is there, and the next "
                "launch resumes from the newest; what it leaves out is resumed without a broker; "
                "to begin anew, give the job another directory, or move away what is in this one",
                node->broker, node->job, (long long)newest.step, newest.path, node->checkpoint_dir);
        dir_list_free(&list);
    }
    arena_free(&arena);
    return status;
}
