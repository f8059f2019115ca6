/* story_nodes - two ranks that join, report, save, and repeat what was not answered. */
#include "tests/faults/story.h"

#include "broker/store/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* --- what is said next ------------------------------------------------------------------------ */

struct story_saying story_of_node(enum story_word word, int node, uint64_t round, int64_t step)
{
    return (struct story_saying){.word = word, .node = node, .round = round, .step = step};
}

static struct round *active_round(struct job *job)
{
    for (size_t i = 0; i < ROUNDS_ACTIVE_MAX; i++)
        if (job->rounds[i].used)
            return &job->rounds[i];
    return NULL;
}

static struct story_saying of_round(const struct story *story, const struct round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        const struct participant *part = &round->parts[i];
        int node = (int)part->rank;

        if (round->state == ROUND_FREEZING && part->reported_ms < 0)
            return story_of_node(WORD_REPORT, node, round->round,
                                 story->plot->save_step(story) - (int64_t)part->rank);
        if (round->state == ROUND_FREEZING)
            continue;
        if (part->at_step_ms < 0)
            return story_of_node(WORD_AT_STEP, node, round->round, round->step);
        if (part->files_taken == 0)
            return story_of_node(WORD_FILES, node, round->round, round->step);
        if (part->saved_ms < 0)
            return story_of_node(WORD_SAVED, node, round->round, round->step);
    }
    return story_of_node(WORD_TICK, 0, 0, 0);
}

struct story_saying story_next_of_nodes(const struct story *story)
{
    struct job *job;

    for (int n = 0; n < STORY_NODES; n++)
        if (!story->welcomed[n])
            return story_of_node(WORD_HELLO, n, 0, 0);
    for (int n = 0; n < STORY_NODES; n++)
        if (story->pending[n].word != WORD_NONE)
            return story->pending[n];
    job = job_find(story->f.core, story->f.job);
    if (job->gen.state == GENERATION_JOINING)
        for (int n = 0; n < STORY_NODES; n++)
            if (job->trainers[n] != NULL && job->trainers[n]->state != NODE_RESTORED)
                return story_of_node(WORD_RESTORED, n, job->gen.resume_checkpoint,
                                     job->gen.resume_step);
    if (!story->beaten)
        return story_of_node(WORD_BEAT, 0, 0, 0);
    if (active_round(job) != NULL)
        return of_round(story, active_round(job));
    return story_of_node(WORD_NONE, 0, 0, 0);
}

/* --- and how ---------------------------------------------------------------------------------- */

static void manifest_done(struct core_fixture *f, const struct story_saying *saying)
{
    struct wire_msg message = core_msg(f, saying->node, WIRE_MANIFEST_DONE);
    char path[64];

    snprintf(path, sizeof path, "/ckpt/%" PRId64, saying->step);
    message.u.manifest_done.checkpoint = saying->round;
    message.u.manifest_done.path = path;
    core_say(f, saying->node, message);
}

static void files(struct core_fixture *f, const struct story_saying *saying)
{
    static const struct wire_file list[STORY_NODES][2] = {
        {{"shard-0/a", 10, "xxh3-128:00000000000000000000000000000001"},
         {"shard-0/b", 20, "xxh3-128:00000000000000000000000000000002"}},
        {{"shard-1/a", 10, "xxh3-128:00000000000000000000000000000003"},
         {"shard-1/b", 20, "xxh3-128:00000000000000000000000000000004"}},
    };
    struct wire_msg message = core_msg(f, saying->node, WIRE_FILES);

    message.u.files.round = saying->round;
    message.u.files.step = saying->step;
    message.u.files.files.items = list[saying->node];
    message.u.files.files.count = 2;
    core_say(f, saying->node, message);
}

static void policies(struct core_fixture *f, int node)
{
    struct wire_msg message = core_msg(f, node, WIRE_POLICIES);

    message.u.policies = (struct wire_policies){.keep = STORY_KEEP, .save = "", .trash = ""};
    core_say(f, node, message);
}

static void deleted(struct core_fixture *f, const struct story_saying *saying)
{
    struct wire_msg message = core_msg(f, saying->node, WIRE_DELETED);

    message.u.deleted = (struct wire_deleted){.checkpoint = saying->round, .text = ""};
    core_say(f, saying->node, message);
}

/* Progress: rows that are written without a sync. */
static void beat(struct core_fixture *f, int node)
{
    struct input tick = {.kind = INPUT_TICK};

    core_heartbeat(f, node);
    f->now += 2 * HEARTBEAT_MS;
    tick.now_boot_ms = f->now;
    tick.now_unix_ms = 1700000000000 + f->now;
    core_step(f->core, &tick, &f->out);
}

static void speak(struct core_fixture *f, const struct story_saying *saying)
{
    switch (saying->word) {
    case WORD_HELLO:
        core_hello(f, saying->node);
        break;
    case WORD_BEAT:
        beat(f, saying->node);
        break;
    case WORD_RESTORED:
        core_restored(f, saying->node, saying->round, saying->step);
        break;
    case WORD_NOTICE:
        core_notice(f, saying->node, "notice-1", 3600000);
        break;
    case WORD_REPORT:
        core_report(f, saying->node, saying->round, saying->step, saying->step - 1);
        break;
    case WORD_AT_STEP:
        core_at_step(f, saying->node, saying->round, saying->step, false);
        break;
    case WORD_FILES:
        files(f, saying);
        break;
    case WORD_SAVED:
        core_saved(f, saying->node, saying->round, saying->step, 2);
        break;
    case WORD_MANIFEST_DONE:
        manifest_done(f, saying);
        break;
    case WORD_LEAVE:
        core_leave(f, saying->node, LEAVE_PREEMPTED, 75);
        break;
    case WORD_POLICIES:
        policies(f, saying->node);
        break;
    case WORD_DELETED:
        deleted(f, saying);
        break;
    case WORD_SWEEP:
        core_say(f, saying->node, core_msg(f, saying->node, WIRE_SWEEP));
        break;
    default:
        f->now += 500;
        core_tick(f);
        break;
    }
}

static bool is_request(enum story_word word)
{
    return word >= WORD_RESTORED && word != WORD_REPORT; /* which has no number, and no answer */
}

/* What a HELLO's answer says of what was pending: taken, or to be said again. */
static void settle_pending(struct story *story, int node)
{
    struct story_saying *pending = &story->pending[node];
    bool refused = core_sent(&story->f, story->f.nodes[node].route, WIRE_REFUSED) != NULL;

    if (refused && pending->word == WORD_LEAVE)
        pending->word = WORD_NONE; /* it was taken: nobody comes back from there */
    else if (refused)
        return; /* "later": the former generation's nodes are not all gone yet */
    story->welcomed[node] = true;
    if (story->f.nodes[node].request >= pending->request)
        pending->word = WORD_NONE;
    if (story->f.nodes[node].request > story->answered[node])
        story->answered[node] = story->f.nodes[node].request;
}

enum muster_status story_say(struct story *story, struct story_saying saying)
{
    struct core_node *node = &story->f.nodes[saying.node];
    const struct core_node before = *node;
    enum muster_status status;

    if (is_request(saying.word)) {
        if (saying.request > 0)
            node->request = saying.request - 1; /* the same number again */
        saying.request = node->request + 1;
        story->pending[saying.node] = saying;
    }
    story->noticed = story->noticed || saying.word == WORD_NOTICE;
    story->f.now += 10;
    speak(&story->f, &saying);
    status = story_write_and_tell(story);
    if (status != MUSTER_OK) {
        if (saying.word == WORD_HELLO)
            *node = before; /* its answer was never sent */
        return status;
    }
    if (saying.word == WORD_BEAT)
        story->beaten = true;
    if (saying.word == WORD_HELLO)
        settle_pending(story, saying.node);
    return MUSTER_OK;
}
