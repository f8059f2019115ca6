/* cmd_forget - the verb that removes a job from the broker's records: forget. Deletes no file. */
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <inttypes.h>
#include <stdio.h>

static int forget_print(struct tool *tool, const char *directory, int64_t kept)
{
    json_t *document;

    if (!tool_json(tool)) {
        fprintf(tool->out, "Job %s is forgotten.\n", tool->job);
        if (kept > 0)
            fprintf(tool->out,
                    "Its %" PRId64 " checkpoint%s stay%s in %s: `muster import %s --job %s` brings "
                    "%s back.\n",
                    kept, kept == 1 ? "" : "s", kept == 1 ? "s" : "", directory, directory,
                    tool->job, kept == 1 ? "it" : "them");
        return TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "forgotten", json_string(tool->job));
    json_object_set_new(document, "checkpoints_kept", json_integer(kept));
    json_object_set_new(document, "checkpoint_dir", json_string(directory));
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

int cmd_forget(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = MUSTER_OK;
    muster_rows_t *rows = NULL;
    int64_t kept = 0;
    int code = tool_check_broker(tool);

    snprintf(tool->job, sizeof tool->job, "%s", tool->args[0]);
    if (code == TOOL_DONE)
        code = tool_get_job(tool, tool->job, &rows);
    if (code == TOOL_DONE)
        status = muster_client_forget(tool->client, tool->job, &kept, &err);
    if (status == MUSTER_E_BUSY) /* not its broker, but the job is: nothing to wait for */
        code = tool_fail(TOOL_REFUSED, "%s", err.text);
    else if (status != MUSTER_OK)
        code = tool_fail_status(status, &err);
    if (code == TOOL_DONE)
        code = forget_print(tool, muster_rows_jobs(rows)->checkpoint_dir, kept);
    muster_rows_destroy(&rows);
    return code;
}
