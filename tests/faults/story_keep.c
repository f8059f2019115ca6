/* story_keep - what is kept and what goes: see story.h. A tool asks again until it is answered. */
#include "tests/faults/story.h"

#include "schema/manifest/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TOOL_ROUTE 500
#define FIRST_STEP 12
#define SECOND_STEP 24
#define OTHER_JOB "old"
#define PIN_ID "reader"

enum stage {
    FIRST_SAVE,
    PINNING,
    SECOND_SAVE,
    UNPINNING,
    DELETING,
    IMPORTING,
    IMPORTING_REST,
    OVER
};

static int64_t save_step(const struct story *story)
{
    return story->stage >= SECOND_SAVE ? SECOND_STEP : FIRST_STEP;
}

static void next_stage(struct story *story)
{
    story->stage++;
    story->asked = false;
}

/* --- what a tool says ------------------------------------------------------------------------- */

static enum muster_status tool(struct story *story, const char *job, struct wire_msg message)
{
    message.up = (struct wire_up){.job = job, .role = ROLE_TOOL, .request = 1};
    story->f.now += 10;
    story->asked = true;
    core_feed(&story->f, TOOL_ROUTE, &message);
    return story_write_and_tell(story);
}

static enum muster_status save_now(struct story *story)
{
    struct wire_msg message = {.type = WIRE_SAVE_NOW};

    message.u.save_now.id = story->stage == FIRST_SAVE ? "first" : "second";
    return tool(story, story->f.job, message);
}

static enum muster_status pin(struct story *story)
{
    struct wire_msg message = {.type = WIRE_PIN};

    message.u.pin = (struct wire_pin){.checkpoint = story->keep.first, .id = PIN_ID};
    return tool(story, story->f.job, message);
}

static enum muster_status unpin(struct story *story)
{
    struct wire_msg message = {.type = WIRE_UNPIN};

    story->keep.unpinning = true;
    message.u.unpin = (struct wire_unpin){.checkpoint = story->keep.first, .id = PIN_ID};
    return tool(story, story->f.job, message);
}

static char *manifest_of(size_t *ret_size)
{
    static const struct wire_file file = {"a", 10, "xxh3-128:00112233445566778899aabbccddeeff"};
    const struct manifest_shard shard = {.incarnation = 1, .files = &file, .file_count = 1};
    const struct manifest manifest = {.job = OTHER_JOB,
                                      .generation = 2,
                                      .round = 3,
                                      .step = 70,
                                      .layout = LAYOUT_REPLICATED,
                                      .world_size = 1,
                                      .cause = "operator",
                                      .shards = &shard,
                                      .shard_count = 1};
    char *text = NULL;

    if (manifest_render(&manifest, &text, ret_size, NULL) != MUSTER_OK)
        abort();
    return text;
}

/* In two parts; a broker that started in between has forgotten the first. */
static enum muster_status import(struct story *story)
{
    bool rest = story->stage == IMPORTING_REST;
    struct wire_msg message = {.type = WIRE_IMPORT};
    size_t size = 0;
    char *text = manifest_of(&size);
    enum muster_status status;

    message.u.import.path = "/ckpt/70";
    message.u.import.total = size;
    message.u.import.offset = rest ? size / 2 : 0;
    message.u.import.bytes.data = (const uint8_t *)text + message.u.import.offset;
    message.u.import.bytes.size = rest ? size - size / 2 : size / 2;
    status = tool(story, OTHER_JOB, message);
    free(text);
    return status;
}

/* --- what comes next -------------------------------------------------------------------------- */

static enum muster_status say(struct story *story, enum story_word word, uint64_t round,
                              int64_t step)
{
    return story_say(story, story_of_node(word, 0, round, step));
}

/* Time passes, and both ranks are heard. */
static enum muster_status wait(struct story *story)
{
    return story_say(story,
                     story_of_node(WORD_BEAT, (int)(story->keep.waits++ % STORY_NODES), 0, 0));
}

/* A save of this stage's step, whole. */
static enum muster_status save(struct story *story, const struct job *job, uint64_t *ret_checkpoint)
{
    const struct checkpoint *newest = registry_newest(job);

    if (newest != NULL && newest->row.step >= save_step(story)) {
        if (newest->path[0] == '\0')
            return say(story, WORD_MANIFEST_DONE, newest->row.round, newest->row.step);
        *ret_checkpoint = newest->row.round;
        next_stage(story);
        return MUSTER_OK;
    }
    return story->asked ? wait(story) : save_now(story);
}

static enum muster_status act(struct story *story, const struct job *job)
{
    enum muster_status status;

    switch ((enum stage)story->stage) {
    case FIRST_SAVE:
        return save(story, job, &story->keep.first);
    case PINNING:
        return pin(story);
    case SECOND_SAVE:
        return save(story, job, &story->keep.second);
    case UNPINNING:
        return unpin(story);
    case DELETING:
        if (story->keep.told_to_delete)
            return say(story, WORD_DELETED, story->keep.first, FIRST_STEP);
        /* without memory nothing went; who closes asks again */
        return ++story->keep.looks % 8 == 0 ? say(story, WORD_SWEEP, 0, 0) : wait(story);
    case IMPORTING:
    case IMPORTING_REST:
        return import(story);
    case OVER:
        break;
    }
    status = story_read_back(story);
    story->over = status == MUSTER_OK;
    return story_read_again(story, status);
}

static enum muster_status turn(struct story *story)
{
    struct story_saying saying = story_next_of_nodes(story);

    if (saying.word != WORD_NONE)
        return story_say(story, saying);
    if (!story->keep.policies_told)
        return say(story, WORD_POLICIES, 0, 0);
    return act(story, job_find(story->f.core, story->f.job));
}

/* --- the ledger ------------------------------------------------------------------------------- */

static void again(struct story *story)
{
    if (story->stage == IMPORTING_REST)
        story->stage = IMPORTING;
}

/* The answers that somebody waits for. A tool asks one thing at a time. */
static void note(struct story *story, const struct action *action)
{
    const struct wire_msg *m = &action->message;

    if (action->kind != ACTION_SEND)
        return;
    if (m->type == WIRE_DELETE) {
        if (m->u.delete.checkpoint != story->keep.first || !story->keep.unpinning)
            story_wrong(story, "checkpoint %" PRIu64 " is to be deleted at stage %u",
                        m->u.delete.checkpoint, story->stage);
        story->keep.told_to_delete = true;
        return;
    }
    if (m->type != WIRE_ACK)
        return;
    if (m->u.ack.code == MUSTER_E_NOMEM && action->route == TOOL_ROUTE) {
        story->stage = story->stage == IMPORTING_REST ? IMPORTING : story->stage;
        return; /* nothing was done: it is said again */
    }
    if (m->u.ack.code != MUSTER_OK)
        story_wrong(story, "stage %u: answered with %s: %s", story->stage,
                    muster_status_name((enum muster_status)m->u.ack.code), m->u.ack.text);
    if (action->route != TOOL_ROUTE && story->pending[0].word == WORD_POLICIES)
        story->keep.policies_told = true;
    else if (action->route != TOOL_ROUTE && story->pending[0].word == WORD_DELETED)
        next_stage(story);
    else if (action->route == TOOL_ROUTE && story->stage != FIRST_SAVE &&
             story->stage != SECOND_SAVE)
        next_stage(story);
}

#define COUNT_FIRST "SELECT count(*) FROM checkpoint WHERE job = 'train' AND round = ?1 AND state "
#define COUNT_PINS "FROM pin WHERE job = 'train' AND id = '" PIN_ID "'"

static void verify(struct story *story)
{
    const struct story_of_keep *keep = &story->keep;

    if (keep->policies_told)
        story_verify_number(story, "how many policies are there",
                            "SELECT count(*) FROM policy WHERE keep = '" STORY_KEEP "'", 0, 1);
    if (story->stage > PINNING && !keep->unpinning)
        story_verify_number(story, "the pin", "SELECT count(*) " COUNT_PINS, 0, 1);
    if (story->stage > UNPINNING)
        story_verify_number(story, "minus the pin", "SELECT -count(*) " COUNT_PINS, 0, 0);
    if (keep->first != 0 && !keep->unpinning)
        story_verify_number(story, "what is pinned or the newest", COUNT_FIRST "= 'committed'",
                            keep->first, 1);
    if (keep->told_to_delete)
        story_verify_number(story, "the decided deletion", COUNT_FIRST "IN ('deleting', 'deleted')",
                            keep->first, 1);
    if (story->stage > DELETING)
        story_verify_number(story, "the deletion", COUNT_FIRST "= 'deleted'", keep->first, 1);
    if (keep->second != 0)
        story_verify_number(story, "the newest", COUNT_FIRST "= 'committed'", keep->second, 1);
    if (story->stage == OVER)
        story_verify_number(story, "what was imported",
                            "SELECT count(*) FROM checkpoint WHERE job = '" OTHER_JOB
                            "' AND state = 'committed' AND step = 70",
                            0, 1);
}

const struct story_plot story_keep = {
    .turn = turn, .again = again, .note = note, .verify = verify, .save_step = save_step};
