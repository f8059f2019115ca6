/* story - see story.h. */
#include "tests/faults/story.h"

#include "broker/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define SAYINGS_MAX 400 /* a story has some thirty */
#define RETRIES_MAX 5   /* then the operator frees disk space */
#define SAVE_STEP 12    /* begun at the freeze */
#define FINAL_PATH "/ckpt/12"

/* --- broker/loop's part ---------------------------------------------------------------------------- */

/* The batch is written, with patience when there is no room, and only then told. */
static void mend(struct story *story)
{
    story->mended = true;
    story->hooks->mend(story);
}

static enum muster_status write_and_tell(struct story *story)
{
    enum muster_status status;
    unsigned tries = 0;

    if (story->tell_first)
        story_note(story);
    do {
        status = store_apply(story->store, &story->f.out, story->f.now, &story->err);
        if (status != MUSTER_E_STORAGE)
            break;
        story->retries++;
        if (++tries == RETRIES_MAX)
            mend(story);
    } while (tries <= RETRIES_MAX);
    if (status == MUSTER_OK && !story->hooks->alive(story))
        return error_set(&story->err, MUSTER_E_IO, "the power is gone");
    if (status == MUSTER_OK && !story->tell_first)
        story_note(story);
    if (status == MUSTER_OK)
        story_verify_synced(story);
    if (status == MUSTER_OK)
        return status;
    if (story->err.text[0] == '\0')
        story_wrong(story, "status %s without a word", muster_status_name(status));
    return status;
}

static void load_row(void *arg, const struct record *row)
{
    core_load(arg, row);
}

static enum muster_status start(struct story *story)
{
    struct core_fixture *f = &story->f;
    const struct core_options options = {.start_id = 7000 + ++f->starts,
                                         .events_endpoint = "ipc:///e"};
    const struct input input = {
        .kind = INPUT_START, .now_boot_ms = f->now, .now_unix_ms = 1700000000000 + f->now};
    enum muster_status status =
        store_open(story->path, &story->options, &story->store, &story->err);

    if (status != MUSTER_OK)
        return status;
    if (story->settings[0] != '\0')
        store_exec(story->store, story->settings, NULL);
    core_destroy(&f->core);
    f->core = core_create(&options);
    if (f->core == NULL)
        return error_set(&story->err, MUSTER_E_NOMEM, "no memory to start");
    status = store_load(story->store, load_row, f->core, &story->err);
    if (status != MUSTER_OK)
        return status;
    core_clear(f);
    core_step(f->core, &input, &f->out);
    return write_and_tell(story);
}

/* --- what is said next ---------------------------------------------------------------------------- */

static struct story_saying of_node(enum story_word word, int node, uint64_t round, int64_t step)
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

static struct story_saying of_round(const struct round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        const struct participant *part = &round->parts[i];
        int node = (int)part->rank;

        if (round->state == ROUND_FREEZING && part->reported_ms < 0)
            return of_node(WORD_REPORT, node, round->round, SAVE_STEP - (int64_t)part->rank);
        if (round->state == ROUND_FREEZING)
            continue;
        if (part->at_step_ms < 0)
            return of_node(WORD_AT_STEP, node, round->round, round->step);
        if (part->files_taken == 0)
            return of_node(WORD_FILES, node, round->round, round->step);
        if (part->saved_ms < 0)
            return of_node(WORD_SAVED, node, round->round, round->step);
    }
    return of_node(WORD_TICK, 0, 0, 0);
}

static struct story_saying of_ending(const struct story *story, const struct job *job)
{
    const struct checkpoint *newest = registry_newest(job);

    if (newest != NULL && newest->path[0] == '\0')
        return of_node(WORD_MANIFEST_DONE, 0, newest->row.round, newest->row.step);
    for (int n = 0; newest != NULL && n < STORY_NODES; n++) {
        const struct peer *peer = peer_find(story->f.core, story->f.nodes[n].incarnation);

        if (peer != NULL && peer_is_live(peer))
            return of_node(WORD_LEAVE, n, 0, 0);
    }
    return of_node(WORD_TICK, 0, 0, 0);
}

static struct story_saying next_saying(const struct story *story)
{
    struct job *job;

    for (int n = 0; n < STORY_NODES; n++)
        if (!story->welcomed[n])
            return of_node(WORD_HELLO, n, 0, 0);
    for (int n = 0; n < STORY_NODES; n++)
        if (story->pending[n].word != WORD_NONE)
            return story->pending[n];
    job = job_find(story->f.core, story->f.job);
    if (job->gen.state == GENERATION_JOINING)
        for (int n = 0; n < STORY_NODES; n++)
            if (job->trainers[n] != NULL && job->trainers[n]->state != NODE_RESTORED)
                return of_node(WORD_RESTORED, n, job->gen.resume_checkpoint, job->gen.resume_step);
    if (!story->beaten)
        return of_node(WORD_BEAT, 0, 0, 0);
    if (active_round(job) != NULL)
        return of_round(active_round(job));
    if (job->gen.state == GENERATION_ENDING)
        return of_ending(story, job);
    if (!story->noticed)
        return of_node(WORD_NOTICE, 0, 0, 0);
    return of_node(WORD_TICK, 0, 0, 0);
}

/* --- and how --------------------------------------------------------------------------------------- */

static void manifest_done(struct core_fixture *f, const struct story_saying *saying)
{
    struct wire_msg message = core_msg(f, saying->node, WIRE_MANIFEST_DONE);

    message.u.manifest_done.checkpoint = saying->round;
    message.u.manifest_done.path = FINAL_PATH;
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

/* Progress: rows that are written without a sync. */
static void beat(struct core_fixture *f, int node)
{
    struct input tick = {.kind = INPUT_TICK};

    core_heartbeat(f, node);
    f->now += 2 * PROGRESS_MS;
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
    default:
        f->now += 500;
        core_tick(f);
        break;
    }
}

static bool is_request(enum story_word word)
{
    return word >= WORD_RESTORED;
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

static enum muster_status say(struct story *story, struct story_saying saying)
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
    status = write_and_tell(story);
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

/* The manifest that the writer asks for, and what a node asks for that missed everything. */
static void count_event(void *arg, const struct wire_event *event)
{
    (void)event;
    ++*(size_t *)arg;
}

static enum muster_status read_back(struct story *story)
{
    struct store_manifest chunk;
    size_t events = 0;
    enum muster_status status = store_send_events(story->store, story->f.job, 1, STORY_EVENTS_MAX,
                                                  story->f.now, count_event, &events, &story->err);

    if (status == MUSTER_OK && events < story->events_count)
        story_wrong(story, "%zu events can be had again, %zu were told", events,
                    story->events_count);
    if (status == MUSTER_OK)
        status = store_manifest(story->store, story->f.job, story->f.core->jobs->round, 0, &chunk,
                                &story->err);
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

static enum muster_status drive(struct story *story)
{
    for (int i = 0; i < SAYINGS_MAX; i++) {
        const struct job *job = job_find(story->f.core, story->f.job);
        bool welcomed = story->welcomed[0] && story->welcomed[1];
        enum muster_status status = MUSTER_OK;

        if (story->wrong[0] != '\0')
            return MUSTER_OK;
        if (story->generation == 0 && job != NULL && job->gen.state == GENERATION_ENDED &&
            registry_newest(job) != NULL) {
            status = read_back(story);
            if (status != MUSTER_OK && status != MUSTER_E_STORAGE)
                return status;
            if (status == MUSTER_OK)
                relaunch(story);
            else if (++story->retries > RETRIES_MAX)
                mend(story);
            continue;
        }
        if (story->generation == 1 && welcomed && job->gen.state == GENERATION_RUNNING) {
            if (job->gen.resume_step != SAVE_STEP)
                story_wrong(story, "resumed at step %" PRId64, job->gen.resume_step);
            story->over = true;
            return MUSTER_OK;
        }
        status = say(story, next_saying(story));
        if (status != MUSTER_OK)
            return status;
    }
    story_wrong(story, "the story does not end");
    return MUSTER_OK;
}

/* --- lives ------------------------------------------------------------------------------------------ */

/* As broker/main.c: a start that fails is undone, a failure of the running loop ends the process. */
static void life(struct story *story)
{
    enum muster_status status;

    story->lives++;
    memset(story->welcomed, 0, sizeof story->welcomed);
    status = start(story);
    if (status != MUSTER_OK) {
        story->refusals++;
        store_discard(&story->store);
        story->hooks->killed(story);
        return;
    }
    story_verify(story);
    status = drive(story);
    if (status == MUSTER_OK)
        return;
    story->exits++;
    story->hooks->killed(story);
}

bool story_tell(struct story *story)
{
    while (!story->over && story->wrong[0] == '\0') {
        if (story->lives == STORY_LIVES_MAX)
            story_wrong(story, "life %u failed too: %s", story->lives, story->err.text);
        else
            life(story);
        if (story->lives == STORY_LIVES_MAX - 1)
            mend(story);
    }
    if (story->wrong[0] == '\0')
        story_verify(story);
    return story->wrong[0] == '\0';
}

void story_begin(struct story *story, const char *path, const struct story_hooks *hooks, void *arg)
{
    memset(story, 0, sizeof *story);
    story->path = path;
    story->hooks = hooks;
    story->arg = arg;
    story->settings = "PRAGMA wal_autocheckpoint=8"; /* so that the file is written too */
    story->options.allow_network_fs = true;
    story->saved_step = -1;
    core_fixture_open(&story->f, STORY_NODES, LAYOUT_SHARDED);
    story->f.starts = 0;
}

void story_end(struct story *story)
{
    store_close(&story->store);
    core_fixture_close(&story->f);
}
