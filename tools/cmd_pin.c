/* cmd_pin - the verbs that hold a checkpoint and let it go: pin, unpin. */
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <inttypes.h>
#include <string.h>

#define PIN_ID "operator"

static int pin_prepare(struct tool *tool, int64_t *ret_checkpoint)
{
    int code = TOOL_DONE;

    if (tool->args_count > 0)
        code = tool_number(tool->args[0], "a checkpoint", 1, INT64_MAX, ret_checkpoint);
    if (code == TOOL_DONE)
        code = tool_check_broker(tool);
    return code == TOOL_DONE ? tool_find_job(tool) : code;
}

static const char *pin_id_of(const struct tool *tool)
{
    return tool->values[OPTION_ID] != NULL ? tool->values[OPTION_ID] : PIN_ID;
}

/* until_unix_ms: of a pin; -1 = there is none. */
static int pin_print(struct tool *tool, const char *what, int64_t checkpoint, int64_t until_unix_ms,
                     const char *sentence)
{
    json_t *document;

    if (!tool_json(tool)) {
        fprintf(tool->out, "%s\n", sentence);
        return TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, what, json_integer(checkpoint));
    json_object_set_new(document, "id", json_string(pin_id_of(tool)));
    if (until_unix_ms >= 0)
        json_object_set_new(document, "until_unix_ms", json_integer(until_unix_ms));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

/* If the broker says no, that is a refusal, unless there is no such checkpoint. */
static int pin_fail(enum muster_status status, const struct muster_error *err)
{
    int code = tool_fail_status(status, err);

    return code == TOOL_USAGE ? TOOL_REFUSED : code;
}

static bool pin_look_up(const char *pins, const char *id, struct pin *ret_pin)
{
    while (render_next_pin(&pins, ret_pin))
        if (strlen(id) == (size_t)ret_pin->length &&
            strncmp(ret_pin->id, id, (size_t)ret_pin->length) == 0)
            return true;
    return false;
}

/* By the broker's clock; if the broker cannot be asked any more, by this host's. */
static int64_t pin_until_of(struct tool *tool, int64_t checkpoint, int64_t lease_ms)
{
    int64_t until_unix_ms = lease_ms > 0 ? tool->now_unix_ms + lease_ms : 0;
    muster_rows_t *rows = NULL;
    struct pin pin;

    if (lease_ms > 0 &&
        muster_client_checkpoint(tool->client, tool->job, checkpoint, &rows, NULL) == MUSTER_OK &&
        muster_rows_count(rows) > 0 &&
        pin_look_up(muster_rows_checkpoints(rows)->pins, pin_id_of(tool), &pin))
        until_unix_ms = pin.until_unix_ms;
    muster_rows_destroy(&rows);
    return until_unix_ms;
}

int cmd_pin(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;
    int64_t checkpoint = 0, lease_ms = 0;
    char sentence[1024], until[80] = "until it is let go";
    bool named = tool->values[OPTION_ID] != NULL;
    int code = pin_prepare(tool, &checkpoint);

    if (code == TOOL_DONE && tool->values[OPTION_LEASE] != NULL)
        code = tool_seconds_ms(tool->values[OPTION_LEASE], "--lease", &lease_ms);
    if (code == TOOL_DONE && tool->values[OPTION_LEASE] != NULL && lease_ms == 0)
        code = tool_fail(TOOL_USAGE,
                         "--lease is %s: give more than 0 seconds, or leave it out to "
                         "hold the checkpoint until `muster unpin`",
                         tool->values[OPTION_LEASE]);
    if (code != TOOL_DONE)
        return code;
    status = muster_client_pin(tool->client, tool->job, checkpoint, pin_id_of(tool), lease_ms,
                               &checkpoint, &err);
    if (status != MUSTER_OK)
        return pin_fail(status, &err);
    if (lease_ms > 0)
        snprintf(until, sizeof until, "for %s", render_duration(lease_ms).text);
    snprintf(sentence, sizeof sentence,
             "Checkpoint %" PRId64 " of job %s is not deleted %s: `muster unpin %" PRId64
             " --job %s%s%s` lets it go.",
             checkpoint, tool->job, until, checkpoint, tool->job, named ? " --id " : "",
             named ? pin_id_of(tool) : "");
    return pin_print(tool, "pinned", checkpoint,
                     tool_json(tool) ? pin_until_of(tool, checkpoint, lease_ms) : 0, sentence);
}

static bool pin_holds(const char *pins, const char *id)
{
    struct pin pin;

    return pin_look_up(pins, id, &pin);
}

/* "anna (until 12:00:03), ci (until it is let go) and others", or "somebody". */
static void pin_name_holders(const struct tool *tool, const char *pins, char *ret_text, size_t size)
{
    struct pin pin;
    size_t used = 0;
    int named = 0;

    snprintf(ret_text, size, "somebody"); /* a broker of before does not tell whom */
    for (; named < 4 && render_next_pin(&pins, &pin); named++)
        used += (size_t)snprintf(ret_text + used, size - used, "%s%.*s (until %s)",
                                 named > 0 ? ", " : "", pin.length < 128 ? pin.length : 128, pin.id,
                                 pin.until_unix_ms == 0
                                     ? "it is let go"
                                     : render_clock(pin.until_unix_ms, tool->now_unix_ms).text);
    if (named == 4 && *pins != '\0')
        snprintf(ret_text + used, size - used, " and others");
}

/* Is it there, and who holds it? A failure is said. *ret_rows, freed by the caller, keeps its row.
 */
static int pin_look(struct tool *tool, int64_t checkpoint, muster_rows_t **ret_rows)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status =
        muster_client_checkpoint(tool->client, tool->job, checkpoint, ret_rows, &err);

    return status == MUSTER_OK ? TOOL_DONE : tool_fail_status(status, &err);
}

/* The checkpoint is let go, but it could not be asked who else holds it. */
static void pin_say_let_go(const struct tool *tool, const struct muster_checkpoint_row *before,
                           const struct muster_error *why, char *ret_text, size_t size)
{
    snprintf(ret_text, size,
             "Checkpoint %" PRId64 " of job %s is %s by %s (who else holds it is not known: %s: "
             "%.600s).",
             before->checkpoint, tool->job,
             pin_holds(before->pins, pin_id_of(tool)) ? "held no more" : "not held",
             pin_id_of(tool), muster_status_name(why->status), why->text);
}

static void pin_say_unpinned(const struct tool *tool, const struct muster_checkpoint_row *before,
                             const struct muster_checkpoint_row *after, char *ret_text, size_t size)
{
    const char *id = pin_id_of(tool);
    bool held = after != NULL && after->pinned; /* it may be deleted by now */
    char holders[1024], what[1536];

    pin_name_holders(tool, held ? after->pins : "", holders, sizeof holders);
    if (held && pin_holds(before->pins, id))
        snprintf(what, sizeof what, "is held no more by %s, and still by %s", id, holders);
    else if (held)
        snprintf(what, sizeof what, "is held by %s, and not by %s", holders, id);
    else if (before->pinned)
        snprintf(what, sizeof what, "is held no more by %s", id);
    else
        snprintf(what, sizeof what, "was held by nobody, nor by %s", id);
    snprintf(ret_text, size, "Checkpoint %" PRId64 " of job %s %s.", before->checkpoint, tool->job,
             what);
}

int cmd_unpin(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = MUSTER_OK;
    muster_rows_t *before = NULL, *after = NULL;
    int64_t checkpoint = 0;
    char sentence[2048];
    int code = pin_prepare(tool, &checkpoint);

    if (code == TOOL_DONE)
        code = pin_look(tool, checkpoint, &before);
    if (code == TOOL_DONE && muster_rows_count(before) == 0)
        code = tool_fail(TOOL_NO,
                         "job %s has no checkpoint %" PRId64
                         ": `muster checkpoints --job %s` lists them",
                         tool->job, checkpoint, tool->job);
    if (code == TOOL_DONE)
        status = muster_client_unpin(tool->client, tool->job, checkpoint, pin_id_of(tool), &err);
    if (status != MUSTER_OK)
        code = pin_fail(status, &err);
    if (code == TOOL_DONE) { /* it is done: what cannot be asked any more does not undo it */
        const struct muster_checkpoint_row *row = muster_rows_checkpoints(before);

        status = muster_client_checkpoint(tool->client, tool->job, checkpoint, &after, &err);
        if (status != MUSTER_OK)
            pin_say_let_go(tool, row, &err, sentence, sizeof sentence);
        else
            pin_say_unpinned(tool, row,
                             muster_rows_count(after) > 0 ? muster_rows_checkpoints(after) : NULL,
                             sentence, sizeof sentence);
        code = pin_print(tool, "unpinned", checkpoint, -1, sentence);
    }
    muster_rows_destroy(&before);
    muster_rows_destroy(&after);
    return code;
}
