/* node_left - the chief of a launch removes what an earlier launch, whose processes all died, had
 * begun to write. It removes only a round that was aborted by the broker's records: a committed
 * round without a manifest looks the same on disk. */
#include "client/node/node_private.h"

#include "client/query/query_link.h"
#include "node/shard/dir_left.h"

#include <string.h>

#define LEFT_MAX 64 /* looked at in one launch; the next one goes on */
#define ASK_MS 2000

/* False: the broker does not answer. */
static bool node_left_ask(struct query_link *link, const char *job, const struct dir_left *left,
                          bool *ret_aborted)
{
    const struct question question = {
        .query = "round", .job = job, .text_arg = "", .number_arg = (int64_t)left->round};
    muster_rows_t *rows = rows_create(question.query);
    bool more = false;
    bool answered =
        rows != NULL && query_link_page(link, &question, rows, &more, NULL) == MUSTER_OK;

    *ret_aborted = answered && muster_rows_count(rows) == 1 &&
                   muster_rows_rounds(rows)[0].generation == (int64_t)left->generation &&
                   strcmp(muster_rows_rounds(rows)[0].state, "aborted") == 0;
    muster_rows_destroy(&rows);
    return answered;
}

void node_clear_left(struct muster_node *node)
{
    struct dir_left left[LEFT_MAX];
    struct query_link *link = NULL;
    size_t count = 0;
    bool aborted;

    if (node->agent != NULL && node->rank == 0 && node->role == ROLE_CHIEF)
        count = dir_left_find(node->checkpoint_dir, muster_node_generation(node), left, LEFT_MAX);
    if (count == 0 || query_link_open(node->broker, ASK_MS, &link, NULL) != MUSTER_OK)
        return;
    query_link_set_over(link, node_is_over, node);
    /* open waits for no more than one answer that does not come: what stays is looked at by the
     * next launch */
    for (size_t i = 0; i < count && node_left_ask(link, node->job, &left[i], &aborted); i++)
        if (left[i].round > 0 && aborted)
            agent_clear_left(node->agent, left[i].generation, left[i].round);
    query_link_close(&link);
}
