/* story - see story.h. */
#include "tests/faults/story.h"

#include "broker/store/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define SAYINGS_MAX 400 /* a story has some thirty */
#define RETRIES_MAX 5   /* then the operator frees disk space */

/* --- broker/loop's part ----------------------------------------------------------------------- */

/* The batch is written, with patience when there is no room, and only then told. */
static void mend(struct story *story)
{
    story->mended = true;
    story->hooks->mend(story);
}

enum muster_status story_write_and_tell(struct story *story)
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
    return story_write_and_tell(story);
}

/* --- lives ------------------------------------------------------------------------------------ */

static enum muster_status drive(struct story *story)
{
    for (int i = 0; i < SAYINGS_MAX; i++) {
        enum muster_status status;

        if (story->over || story->wrong[0] != '\0')
            return MUSTER_OK;
        status = story->plot->turn(story);
        if (status != MUSTER_OK)
            return status;
    }
    story_wrong(story, "the story does not end (stage %u, in life %u)", story->stage, story->lives);
    return MUSTER_OK;
}

/* What the database has no room to tell now is asked for again; mended at last, as a write is. */
enum muster_status story_read_again(struct story *story, enum muster_status status)
{
    if (status != MUSTER_E_STORAGE)
        return status;
    if (++story->retries > RETRIES_MAX)
        mend(story);
    return MUSTER_OK;
}

/* As broker/main.c: a start that fails is undone, a failure of the running loop ends the process */
static void life(struct story *story)
{
    enum muster_status status;

    story->lives++;
    memset(story->welcomed, 0, sizeof story->welcomed);
    story->asked = false;
    if (story->plot->again != NULL)
        story->plot->again(story);
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

void story_begin(struct story *story, const struct story_plot *plot, const char *path,
                 const struct story_hooks *hooks, void *arg)
{
    memset(story, 0, sizeof *story);
    story->plot = plot;
    story->path = path;
    story->hooks = hooks;
    story->arg = arg;
    story->settings = "";
    story->options.checkpoint_frames = 8; /* so that the file is written too */
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

void story_carry_over(struct story *to, const struct story *from)
{
    to->f.now = from->f.now + 100;
    to->f.starts = from->f.starts;
    memcpy(to->f.nodes, from->f.nodes, sizeof to->f.nodes);
    memcpy(to->pending, from->pending, sizeof to->pending);
    memcpy(to->events, from->events, sizeof to->events);
    memcpy(to->answered, from->answered, sizeof to->answered);
    to->events_count = from->events_count;
    to->beaten = from->beaten;
    to->noticed = from->noticed;
    to->generation = from->generation;
    to->stage = from->stage;
    to->keep = from->keep;
    to->tasks = from->tasks;
    to->epoch = from->epoch;
    to->saved_step = from->saved_step;
    to->over = from->over;
}
