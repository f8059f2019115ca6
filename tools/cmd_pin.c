/* cmd_pin - the verbs that hold a checkpoint and let it go: pin, unpin. */
#include "tools/render.h"
#include "tools/tool.h"

#include <inttypes.h>

#define PIN_ID "operator"

static int prepare(struct tool *tool, int64_t *ret_checkpoint)
{
    int code = TOOL_DONE;

    if (tool->args_count > 0)
        code = tool_number(tool->args[0], "a checkpoint", 1, INT64_MAX, ret_checkpoint);
    if (code == TOOL_DONE)
        code = tool_check_broker(tool);
    return code == TOOL_DONE ? tool_find_job(tool) : code;
}

static const char *id_of(const struct tool *tool)
{
    return tool->values[OPTION_ID] != NULL ? tool->values[OPTION_ID] : PIN_ID;
}

static int print(struct tool *tool, const char *what, int64_t checkpoint, const char *sentence)
{
    json_t *document;

    if (!tool_json(tool)) {
        fprintf(tool->out, "%s\n", sentence);
        return TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, what, json_integer(checkpoint));
    json_object_set_new(document, "id", json_string(id_of(tool)));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

/* The broker's no is a refusal, unless there is nothing such. */
static int fail_pin(enum muster_status status, const struct muster_error *err)
{
    int code = tool_fail_status(status, err);

    return code == TOOL_USAGE ? TOOL_REFUSED : code;
}

int cmd_pin(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int64_t checkpoint = 0, lease_ms = 0;
    char sentence[1024], until[80] = "until it is let go";
    bool named = tool->values[OPTION_ID] != NULL;
    int code = prepare(tool, &checkpoint);

    if (code == TOOL_DONE && tool->values[OPTION_LEASE] != NULL)
        code = tool_seconds_ms(tool->values[OPTION_LEASE], "--lease", &lease_ms);
    if (code == TOOL_DONE && tool->values[OPTION_LEASE] != NULL && lease_ms == 0)
        code = tool_fail(TOOL_USAGE,
                         "--lease is %s: give more than 0 seconds, or leave it out to "
                         "hold the checkpoint until `muster unpin`",
                         tool->values[OPTION_LEASE]);
    if (code != TOOL_DONE)
        return code;
    status = muster_client_pin(tool->client, tool->job, checkpoint, id_of(tool), lease_ms,
                               &checkpoint, &err);
    if (status != MUSTER_OK)
        return fail_pin(status, &err);
    if (lease_ms > 0)
        snprintf(until, sizeof until, "for %s", render_duration(lease_ms).text);
    snprintf(sentence, sizeof sentence,
             "Checkpoint %" PRId64 " of job %s is not deleted %s: `muster unpin %" PRId64
             " --job %s%s%s` lets it go.",
             checkpoint, tool->job, until, checkpoint, tool->job, named ? " --id " : "",
             named ? id_of(tool) : "");
    return print(tool, "pinned", checkpoint, sentence);
}

/* Is it there, and does anybody hold it? A failure is said. */
static int look(struct tool *tool, int64_t checkpoint, bool *ret_there, bool *ret_held)
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status =
        muster_client_checkpoint(tool->client, tool->job, checkpoint, &rows, &err);

    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    *ret_there = muster_rows_count(rows) > 0;
    *ret_held = *ret_there && muster_rows_checkpoints(rows)[0].pinned;
    muster_rows_destroy(&rows);
    return TOOL_DONE;
}

int cmd_unpin(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int64_t checkpoint = 0;
    char sentence[1024];
    const char *is = "is held no more by";
    bool there = false, before = false, after = false;
    int code = prepare(tool, &checkpoint);

    if (code == TOOL_DONE)
        code = look(tool, checkpoint, &there, &before);
    if (code == TOOL_DONE && !there)
        code = tool_fail(TOOL_REFUSED,
                         "job %s has no checkpoint %" PRId64
                         ": `muster checkpoints --job %s` lists them",
                         tool->job, checkpoint, tool->job);
    if (code != TOOL_DONE)
        return code;
    status = muster_client_unpin(tool->client, tool->job, checkpoint, id_of(tool), &err);
    if (status != MUSTER_OK)
        return fail_pin(status, &err);
    code = look(tool, checkpoint, &there, &after); /* it may be deleted by now */
    if (code != TOOL_DONE)
        return code;
    if (after)
        is = "is held by somebody, and not by";
    else if (!before)
        is = "was held by nobody, nor by";
    snprintf(sentence, sizeof sentence, "Checkpoint %" PRId64 " of job %s %s %s.", checkpoint,
             tool->job, is, id_of(tool));
    return print(tool, "unpinned", checkpoint, sentence);
}
