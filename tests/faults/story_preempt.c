/* story_preempt - a notice, a save of both ranks, their end, and the next launch that resumes. */
#include "tests/faults/story.h"

#include "broker/store/store_internal.h"

#include <inttypes.h>

#define SAVE_STEP 12 /* begun at the freeze */

static int64_t save_step(const struct story *story)
{
    (void)story;
    return SAVE_STEP;
}

static struct story_saying of_ending(const struct story *story, const struct job *job)
{
    const struct checkpoint *newest = registry_newest(job);

    if (newest != NULL && newest->path[0] == '\0')
        return story_of_node(WORD_MANIFEST_DONE, 0, newest->row.round, newest->row.step);
    for (int n = 0; newest != NULL && n < STORY_NODES; n++) {
        const struct peer *peer = peer_find(story->f.core, story->f.nodes[n].incarnation);

        if (peer != NULL && peer_is_live(peer))
            return story_of_node(WORD_LEAVE, n, 0, 0);
    }
    return story_of_node(WORD_TICK, 0, 0, 0);
}

/* The manifest that the writer asks for, and what a node asks for that missed everything. */
static void count_event(void *arg, const struct wire_event *event)
{
    (void)event;
    ++*(size_t *)arg;
}

enum muster_status story_read_back(struct story *story)
{
    struct store_manifest chunk;
    size_t events = 0;
    enum muster_status status = store_send_events(story->store, story->f.job, 1, STORY_EVENTS_MAX,
                                                  story->f.now, count_event, &events, &story->err);

    if (status == MUSTER_OK && events < story->events_count)
        story_wrong(story, "%zu events can be had again, %zu were told", events,
                    story->events_count);
    if (status == MUSTER_OK)
        status =
            store_manifest(story->store, story->f.job, job_find(story->f.core, story->f.job)->round,
                           0, &chunk, &story->err);
    return status;
}

/* The same ranks, launched again. */
static void relaunch(struct story *story)
{
    for (int n = 0; n < STORY_NODES; n++) {
        story->f.nodes[n].incarnation += 20;
        story->f.nodes[n].generation = 0;
        story->f.nodes[n].request = 0;
        story->welcomed[n] = false;
        story->pending[n].word = WORD_NONE; /* a LEAVE whose answer nobody waits for any more */
        story->answered[n] = 0;
    }
    story->generation = 1;
}

static struct story_saying next_saying(const struct story *story)
{
    struct story_saying saying = story_next_of_nodes(story);
    const struct job *job = job_find(story->f.core, story->f.job);

    if (saying.word != WORD_NONE)
        return saying;
    if (job->gen.state == GENERATION_ENDING)
        return of_ending(story, job);
    if (!story->noticed)
        return story_of_node(WORD_NOTICE, 0, 0, 0);
    return story_of_node(WORD_TICK, 0, 0, 0);
}

static enum muster_status turn(struct story *story)
{
    const struct job *job = job_find(story->f.core, story->f.job);
    bool welcomed = story->welcomed[0] && story->welcomed[1];
    enum muster_status status = MUSTER_OK;

    if (story->generation == 0 && job != NULL && job->gen.state == GENERATION_ENDED &&
        registry_newest(job) != NULL) {
        status = story_read_back(story);
        if (status == MUSTER_OK)
            relaunch(story);
        return story_read_again(story, status);
    }
    if (story->generation == 1 && welcomed && job->gen.state == GENERATION_RUNNING) {
        if (job->gen.resume_step != SAVE_STEP)
            story_wrong(story, "resumed at step %" PRId64, job->gen.resume_step);
        story->over = true;
        return MUSTER_OK;
    }
    return story_say(story, next_saying(story));
}

const struct story_plot story_preempt = {.turn = turn, .save_step = save_step};
