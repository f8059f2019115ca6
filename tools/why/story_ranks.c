/* story_ranks - how the ranks of the story's launch stand: who is stuck, who trains on. */
#include "tools/tool.h"
#include "tools/why/story_internal.h"

#include <stdlib.h>

#define STUCK_NAMED_MAX 4

/* Of rank -1: whoever is; NULL: nobody. */
static const struct muster_node_row *ranks_stuck_of(const struct story *story, int64_t rank)
{
    const struct muster_node_row *node = muster_rows_nodes(story->nodes);

    for (size_t i = 0; i < muster_rows_count(story->nodes); i++)
        if (node[i].stuck_unix_ms != 0 && (rank < 0 || node[i].rank == rank))
            return &node[i];
    return NULL;
}

bool story_is_stuck(const struct story *story)
{
    return ranks_stuck_of(story, -1) != NULL;
}

void story_stuck(struct story *story)
{
    struct stuck stuck;

    render_stuck_find(story->nodes, &stuck);
    if (stuck.all)
        story_say(story, "All %zu ranks are stuck, the longest first:", stuck.count);
    for (size_t i = 0; i < stuck.count && i < STUCK_NAMED_MAX; i++)
        story_say(story, "%s %" PRId64 " (host %s, pid %" PRId64 ") is stuck: it has been %s.",
                  tool_node_is_rank(stuck.nodes[i]) ? "Rank" : stuck.nodes[i]->role,
                  stuck.nodes[i]->rank, stuck.nodes[i]->host, stuck.nodes[i]->pid,
                  render_stuck(stuck.nodes[i]).text);
    if (stuck.count > STUCK_NAMED_MAX)
        story_say(story, "And %zu more are stuck: `muster nodes --job %s` shows them.",
                  stuck.count - STUCK_NAMED_MAX, story->job);
    free(stuck.nodes);
}

/* Of a rank that was stuck: does it go on since? (Of one whose launch ends nobody knows.) */
bool story_came_out(const struct story *story, const struct muster_event_row *stuck)
{
    const struct muster_node_row *node = muster_rows_nodes(story->nodes);

    if (strcmp(stuck->kind, "stuck") != 0 || stuck->rank < 0 ||
        ranks_stuck_of(story, stuck->rank) != NULL)
        return false;
    for (size_t i = 0; i < muster_rows_count(story->nodes); i++)
        if (node[i].rank == stuck->rank && tool_node_is_rank(&node[i]) &&
            node[i].done >= stuck->step && node[i].joined_unix_ms <= stuck->unix_ms &&
            strcmp(node[i].phase, "ended") != 0)
            return true;
    return false;
}

/* A rank that was lost, and from which no word came since a moment before this failure was told.
 * NULL: none. */
static const struct muster_node_row *ranks_silent_before(const struct story *story,
                                                         const struct muster_event_row *failure)
{
    const struct muster_node_row *node = muster_rows_nodes(story->nodes), *found = NULL;

    for (size_t i = 0; i < muster_rows_count(story->nodes); i++) {
        if (!tool_node_is_rank(&node[i]) || node[i].rank == failure->rank ||
            strcmp(node[i].state, "lost") != 0 || node[i].applied_seq >= failure->seq ||
            node[i].heard_unix_ms > failure->unix_ms ||
            story_broker_was_away(story, failure->unix_ms, node[i].ended_unix_ms))
            continue;
        if (found == NULL || node[i].heard_unix_ms < found->heard_unix_ms)
            found = &node[i];
    }
    return found;
}

/* A step that fails because a peer is gone is told before the peer's silence is. */
int64_t story_lost_before(const struct story *story, const struct muster_event_row *failure)
{
    const struct muster_node_row *node =
        strcmp(failure->kind, "peer error") == 0 ? ranks_silent_before(story, failure) : NULL;

    return node != NULL ? node->rank : -1;
}

void story_blame(struct story *story, const struct muster_event_row *failure)
{
    const struct muster_node_row *node =
        strcmp(failure->kind, "peer error") == 0 ? ranks_silent_before(story, failure) : NULL;

    if (node == NULL)
        return;
    story_say(story,
              "Rank %" PRId64 " (host %s, pid %" PRId64 ") was lost: it was last heard at %s, "
              "before that failure was told. So it most likely died first, and the step of rank "
              "%" PRId64 " failed because of it.",
              node->rank, node->host, node->pid, story_at(story, node->heard_unix_ms).text,
              failure->rank);
}

/* "The job trains on", or how many of its ranks do. */
struct who story_trains_on(const struct story *story)
{
    const struct muster_node_row *node = muster_rows_nodes(story->nodes);
    struct who who = {"The job trains on"};
    size_t live = 0, finished = 0;

    for (size_t i = 0; i < muster_rows_count(story->nodes); i++) {
        if (!tool_node_is_rank(&node[i]))
            continue;
        live += tool_node_is_live(&node[i]);
        finished += tool_node_has_finished(&node[i]);
    }
    if (finished > 0)
        snprintf(who.text, sizeof who.text, "%zu rank%s finished, and %zu train%s on", finished,
                 finished == 1 ? " has" : "s have", live, live == 1 ? "s" : "");
    return who;
}
