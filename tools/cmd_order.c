/* cmd_order - the verbs that ask a broker for something: notify, save. */
#include "tools/order.h"
#include "tools/progress.h"
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include "schema/limits.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define WAIT_EVERY_MS 200

struct order_id {
    char text[40];
};

/* A name for this order, so that the broker takes a repeated message for the same one. */
static struct order_id order_new_id(const char *what)
{
    struct order_id id;
    uint32_t random = 0;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint32_t)time(NULL);
    snprintf(id.text, sizeof id.text, "%s-%08" PRIx32, what, random);
    return id;
}

/* An order that the broker does not carry out is refused, whatever its reason. */
static int order_fail(enum muster_status status, const struct muster_error *err)
{
    int code = tool_fail_status(status, err);

    /* E_BUSY: a broker that is there says "not now" */
    return code == TOOL_NO || code == TOOL_USAGE || status == MUSTER_E_BUSY ? TOOL_REFUSED : code;
}

static int order_print(struct tool *tool, json_t *document, const char *sentence)
{
    if (!tool_json(tool)) {
        json_decref(document);
        fprintf(tool->out, "%s\n", sentence);
        return TOOL_DONE;
    }
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

/* --- notify ----------------------------------------------------------------------------------- */

static int order_withdraw(struct tool *tool, const char *id)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = muster_client_cancel(tool->client, tool->job, id, &err);
    json_t *document;
    char sentence[512];

    if (status != MUSTER_OK)
        return order_fail(status, &err);
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, "cancelled", json_string(id));
    snprintf(sentence, sizeof sentence, "Notice %.200s is withdrawn: nothing more comes of it.",
             id);
    return order_print(tool, document, sentence);
}

static int order_give_notice(struct tool *tool, int rank, int64_t grace_ms)
{
    struct muster_error err = {.status = MUSTER_OK};
    struct order_id id = order_new_id("operator");
    const char *text = tool->values[OPTION_TEXT];
    int64_t round = 0;
    enum muster_status status;
    json_t *document;
    char sentence[2048], note[256] = "";

    status = muster_client_notify(tool->client, tool->job, id.text, rank, grace_ms,
                                  text == NULL ? "" : text, &round, &err);
    if (status != MUSTER_OK)
        return order_fail(status, &err);
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, "notice", json_string(id.text));
    json_object_set_new(document, "rank", json_integer(rank));
    if (grace_ms >= 0 && grace_ms < LEAST_LEAD_MS)
        snprintf(note, sizeof note,
                 " %s is too short to save in: all save at once, as if no time had been told (%s "
                 "are assumed).",
                 render_duration(grace_ms).text, render_duration(GRACE_DEFAULT_MS).text);
    snprintf(
        sentence, sizeof sentence,
        "Notice %s: rank %d of job %s will be ended.%s `muster status %s` shows what is planned, "
        "`muster why notice %s --job %s` tells what came of it, `muster notify --cancel %s "
        "--job %s` withdraws it.",
        id.text, rank, tool->job, note, tool->job, id.text, tool->job, id.text, tool->job);
    return order_print(tool, document, sentence);
}

int cmd_notify(struct tool *tool)
{
    const char *cancel = tool->values[OPTION_CANCEL];
    int64_t grace_ms = MUSTER_TIME_UNKNOWN;
    int64_t rank = 0;
    int code = TOOL_DONE;

    if (cancel != NULL && tool->args_count > 0)
        code = tool_fail(TOOL_USAGE, "--cancel takes a notice back: give no rank with it");
    if (code == TOOL_DONE && cancel == NULL)
        code = tool_number(tool->args[0], "a rank", 0, 1000000, &rank);
    if (code == TOOL_DONE && tool->values[OPTION_GRACE] != NULL)
        code = tool_seconds_ms(tool->values[OPTION_GRACE], "--grace", &grace_ms);
    if (code == TOOL_DONE)
        code = tool_check_broker(tool);
    if (code == TOOL_DONE)
        code = tool_find_job(tool);
    if (code != TOOL_DONE)
        return code;
    return cancel != NULL ? order_withdraw(tool, cancel)
                          : order_give_notice(tool, (int)rank, grace_ms);
}

/* --- save ------------------------------------------------------------------------------------- */

/* A further attempt that was promised is not opened if the launch ends first. *ret_over: the launch
 * has ended. */
static int order_look_at_launch(struct tool *tool, int64_t generation, bool *ret_over)
{
    muster_rows_t *rows = NULL;
    int code = tool_get_job(tool, tool->job, &rows);

    if (code == TOOL_DONE) {
        const struct muster_job_row *job = muster_rows_jobs(rows);

        *ret_over = strcmp(job->state, "ended") == 0 || job->generation > generation;
    }
    muster_rows_destroy(&rows);
    return code;
}

static int order_fail_ended(const struct tool *tool, const struct muster_round_row *round)
{
    return tool_fail(TOOL_NO,
                     "generation %" PRId64 " of job %s ended before it saved: `muster why round "
                     "%" PRId64 " --job %s` tells of it; ask again when the job runs",
                     round->generation, tool->job, round->round, tool->job);
}

static int order_fail_forgotten(const struct tool *tool, int64_t number)
{
    return tool_fail(TOOL_NO,
                     "round %" PRId64 " of job %s is not in the records any more: the broker's "
                     "database was restored from an older copy; ask again",
                     number, tool->job);
}

struct outcome {
    muster_rows_t *rows; /* owned */
    size_t index;        /* of the round that tells it */
};

/* The order's round, and those after it. */
static int order_read_rounds(struct tool *tool, int64_t number, muster_rows_t **ret_rows)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status =
        muster_client_rounds(tool->client, tool->job, number > 0 ? number - 1 : 0, ret_rows, &err);

    return status == MUSTER_OK ? TOOL_DONE : tool_fail_status(status, &err);
}

/* Shards: their writers are named once the step is decided. */
static void order_show(struct progress *progress, const struct muster_round_row *round)
{
    progress->all = round->writers;
    progress_at(progress, round->saved);
}

/* Waits until the order's round, or the last attempt at its save, is over. Every round ends by its
 * own bounds; an attempt that was promised comes or the launch ends, of which some brokers' rows
 * tell nothing. */
static int order_await_round(struct tool *tool, int64_t number, struct outcome *ret_outcome)
{
    const struct timespec pause = {.tv_nsec = WAIT_EVERY_MS * 1000000L};
    bool over = false; /* the launch was, before the rows were read */
    struct progress progress;

    progress_begin(&progress, "save: shards", PROGRESS_COUNT, 0);
    for (;;) {
        muster_rows_t *rows = NULL;
        size_t index = 0;
        int code = order_read_rounds(tool, number, &rows);
        enum order_state state;

        if (code != TOOL_DONE)
            return code;
        state = order_look(rows, number, &index);
        if (state == ORDER_WAITS)
            order_show(&progress, &muster_rows_rounds(rows)[index]);
        else
            progress_end(&progress);
        if (state == ORDER_OVER) {
            *ret_outcome = (struct outcome){rows, index};
            return TOOL_DONE;
        }
        if (state == ORDER_UNKNOWN)
            code = order_fail_forgotten(tool, number);
        else if (state == ORDER_PROMISED && over)
            code = order_fail_ended(tool, &muster_rows_rounds(rows)[index]);
        else if (state == ORDER_PROMISED)
            code = order_look_at_launch(tool, muster_rows_rounds(rows)[index].generation, &over);
        muster_rows_destroy(&rows);
        if (code != TOOL_DONE)
            return code;
        if (!over)
            nanosleep(&pause, NULL);
    }
}

static int order_print_outcome(struct tool *tool, const struct outcome *outcome)
{
    const struct muster_round_row *round = &muster_rows_rounds(outcome->rows)[outcome->index];
    json_t *document = render_document();
    char sentence[MUSTER_ERROR_TEXT_MAX];
    bool aborted = strcmp(round->state, "aborted") == 0;
    int code;

    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, "round", render_row(outcome->rows, outcome->index));
    if (aborted)
        snprintf(sentence, sizeof sentence,
                 "Round %" PRId64 " was aborted: %.600s. `muster why round %" PRId64
                 " --job %s` tells the whole story.",
                 round->round, round->reason, round->round, tool->job);
    else
        snprintf(sentence, sizeof sentence, "Round %" PRId64 " is %s at step %" PRId64 ".",
                 round->round, round->state, round->step);
    code = order_print(tool, document, sentence);
    return code == TOOL_DONE && aborted ? TOOL_NO : code;
}

int cmd_save(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    struct order_id id = order_new_id("save");
    struct outcome outcome = {NULL, 0};
    int64_t round = 0;
    enum muster_status status;
    json_t *document;
    char sentence[512];
    int code = tool_check_broker(tool);

    if (code == TOOL_DONE)
        code = tool_find_job(tool);
    if (code != TOOL_DONE)
        return code;
    status = muster_client_save_now(tool->client, tool->job, id.text, &round, &err);
    if (status != MUSTER_OK)
        return order_fail(status, &err);
    if (tool->values[OPTION_WAIT] != NULL) {
        code = order_await_round(tool, round, &outcome);
        if (code == TOOL_DONE)
            code = order_print_outcome(tool, &outcome);
        muster_rows_destroy(&outcome.rows);
        return code;
    }
    document = render_document();
    json_object_set_new(document, "job", json_string(tool->job));
    json_object_set_new(document, "round", json_integer((json_int_t)round));
    snprintf(sentence, sizeof sentence,
             "Round %" PRId64 " is to make the checkpoint: `muster round %" PRId64
             " --job %s` shows whether it did.",
             round, round, tool->job);
    return order_print(tool, document, sentence);
}
