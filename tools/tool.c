/* tool - functions that all verbs share: they print errors and answers, and ask about a job.
 * Owns: what goes to stderr and stdout. Never: a verb of its own. */
#include "tools/tool.h"
#include "client/query/query_place.h"
#include "node/clock.h"
#include "schema/paths.h"
#include "tools/paint.h"
#include "tools/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- speaking --------------------------------------------------------------------------------- */

static char tool_clean(char byte) /* what comes from elsewhere must not command the terminal */
{
    if ((byte >= 0 && byte < ' ' && byte != '\n' && byte != '\t') || byte == 127)
        return '?';
    return byte;
}

static char *heard; /* NULL: errors go to stderr */
static size_t heard_size;

void tool_hear(char *text, size_t size)
{
    heard = text;
    heard_size = size;
}

int tool_fail(int exit_code, const char *format, ...)
{
    char text[MUSTER_ERROR_TEXT_MAX * 2];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (char *at = text; *at != '\0'; at++)
        *at = (char)(*at == '\n' ? ' ' : tool_clean(*at));
    if (heard != NULL)
        snprintf(heard, heard_size, "%s", text);
    else
        fprintf(stderr, "muster: %s\n", text);
    return exit_code;
}

int tool_fail_status(enum muster_status status, const struct muster_error *err)
{
    int code = TOOL_REFUSED;

    switch (status) {
    case MUSTER_E_BROKER:
    case MUSTER_E_TIMEOUT:
    case MUSTER_E_VERSION:
    case MUSTER_E_PROTOCOL:
    case MUSTER_E_IO:
    case MUSTER_E_CORRUPT:
    case MUSTER_E_BUSY:
    case MUSTER_E_SCHEMA:
    case MUSTER_E_STORAGE: /* the broker cannot write: an order may still be carried out */
        code = TOOL_UNREACHABLE;
        break;
    case MUSTER_E_NOT_FOUND:
    case MUSTER_E_NOMEM:
        code = TOOL_NO;
        break;
    case MUSTER_E_ARGUMENT:
    case MUSTER_E_UNSUPPORTED:
        code = TOOL_USAGE;
        break;
    default:
        break;
    }
    return tool_fail(code, "%s", err->text);
}

bool tool_json(const struct tool *tool)
{
    return tool->values[OPTION_JSON] != NULL;
}

/* --- collecting the answer -------------------------------------------------------------------- */

int tool_flush(struct tool *tool)
{
    if (tool->kept)
        return TOOL_DONE;
    if (fflush(tool->out) != 0)
        return tool_fail(TOOL_NO, "no memory for the answer");
    paint_text(stdout, tool->answer, tool->answer_size);
    rewind(tool->out);
    if (fflush(stdout) != 0)
        return tool_fail(TOOL_NO, "the answer could not be written to the standard output");
    return TOOL_DONE;
}

int64_t tool_now_unix_ms(void)
{
    const char *fixed = getenv("MUSTER_TEST_NOW"); /* so that tests can compare ages */

    if (fixed != NULL && fixed[0] != '\0')
        return strtoll(fixed, NULL, 10);
    return clock_ms(CLOCK_REALTIME);
}

/* --- a job --------------------------------------------------------------------------------------
 */

const char *tool_broker_of(const char *broker, char address[ENDPOINT_MAX + 1])
{
    if (broker == NULL)
        broker = getenv("MUSTER_BROKER");
    if (broker != NULL && broker[0] != '\0')
        return broker;
    return query_place_broker(address) ? address : NULL;
}

bool tool_node_is_live(const struct muster_node_row *node)
{
    return strcmp(node->state, "joined") == 0 || strcmp(node->state, "restored") == 0;
}

bool tool_node_is_rank(const struct muster_node_row *node)
{
    return strcmp(node->role, "chief") == 0 || strcmp(node->role, "worker") == 0;
}

bool tool_node_has_finished(const struct muster_node_row *node)
{
    return strcmp(node->state, "left") == 0 && strcmp(node->leave_why, "finished") == 0;
}

bool tool_notice_fell(const muster_rows_t *nodes, const struct muster_event_row *cancelled)
{
    const struct muster_node_row *node = muster_rows_nodes(nodes);

    for (size_t i = 0; i < muster_rows_count(nodes); i++)
        if (node[i].rank == cancelled->rank && tool_node_is_rank(&node[i]) &&
            tool_node_has_finished(&node[i]) && node[i].ended_unix_ms == cancelled->unix_ms)
            return true;
    return false;
}

bool tool_end_is_unheard(const char *end_text, int64_t unknown_ranks)
{
    return unknown_ranks > 0 &&
           strstr(end_text, "did not come back to the restarted broker") != NULL;
}

bool tool_end_is_of(const char *end_text, const char *failure)
{
    static const char prefix[] = " could not restore: ";
    const char *restored = strstr(end_text, prefix);
    const char *text = restored != NULL ? restored + sizeof prefix - 1 : end_text;
    const char *cut = strstr(text, " ... (`muster events` has it whole)");

    return failure[0] != '\0' &&
           strncmp(failure, text, cut != NULL ? (size_t)(cut - text) : SIZE_MAX) == 0;
}

/* True for the path of a socket at which nobody takes connections: there is no answer to wait for.
 * For other addresses this cannot be told so quickly. */
static bool tool_nobody_listens(const char *broker)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    bool nobody = false;
    int fd;

    if (strncmp(broker, "ipc:///", 7) != 0 || strlen(broker + 6) >= sizeof to.sun_path)
        return false;
    memcpy(to.sun_path, broker + 6, strlen(broker + 6));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        nobody = errno == ENOENT || errno == ECONNREFUSED;
    close(fd);
    return nobody;
}

bool tool_running_job(const char *broker, const char *job, char *ret_text, size_t size)
{
    struct tool tool = {.verb = "run", .timeout_ms = 1000};
    muster_rows_t *rows = NULL;
    bool running = false;

    broker = tool_broker_of(broker, tool.address);
    if (broker != NULL && !tool_nobody_listens(broker) &&
        muster_client_open(broker, tool.timeout_ms, &tool.client, NULL) == MUSTER_OK &&
        muster_client_jobs(tool.client, job, &rows, NULL) == MUSTER_OK &&
        muster_rows_count(rows) == 1) {
        const struct muster_job_row *row = muster_rows_jobs(rows);

        running = strcmp(row->state, "running") == 0 && row->nodes_live > 0;
        snprintf(ret_text, size,
                 "generation %" PRId64 ", step %" PRId64 ", %" PRId64 " of %" PRId64 " ranks live",
                 row->generation, row->step + paths_step_offset(row->newest_path, row->newest_step),
                 row->nodes_live, row->world_size);
    }
    muster_rows_destroy(&rows);
    muster_client_close(&tool.client, NULL);
    return running;
}

int tool_latest_step(const char *broker, const char *job, int64_t *ret_step)
{
    struct tool tool = {.verb = "run", .timeout_ms = 2000};
    muster_rows_t *rows = NULL;
    int64_t step = -1;
    enum muster_status status;

    broker = tool_broker_of(broker, tool.address);
    if (broker == NULL)
        return 1;
    status = muster_client_open(broker, tool.timeout_ms, &tool.client, NULL);
    if (status == MUSTER_OK)
        status = muster_client_latest(tool.client, job, &rows, NULL);
    if (status == MUSTER_OK && muster_rows_count(rows) > 0)
        step = muster_rows_checkpoints(rows)[0].step +
               paths_step_offset(muster_rows_checkpoints(rows)[0].path,
                                 muster_rows_checkpoints(rows)[0].step);
    muster_rows_destroy(&rows);
    muster_client_close(&tool.client, NULL);
    if (status != MUSTER_OK)
        return (int)status;
    *ret_step = step;
    return 0;
}

static void tool_end_of_job(const struct muster_job_row *job, struct tool_end *end)
{
    end->generation = job->generation;
    end->ended = strcmp(job->state, "ended") == 0;
    end->status = end->ended ? (enum muster_status)job->end_status : MUSTER_OK;
    end->preempted = end->status == MUSTER_PREEMPTED || end->status == MUSTER_E_NOT_SAVED;
    end->finished = end->ended && end->status == MUSTER_OK && job->started_unix_ms > 0;
    end->error_rank = (int)job->error_rank;
    end->error_code = (int)job->error_code;
    end->opened_unix_ms = job->opened_unix_ms;
    end->ended_unix_ms = job->ended_unix_ms;
    snprintf(end->text, sizeof end->text, "%s",
             job->error_text[0] != '\0' ? job->error_text : job->end_text);
}

static void tool_end_of_nodes(const muster_rows_t *rows, struct tool_end *end)
{
    const struct muster_node_row *nodes = muster_rows_nodes(rows);

    for (size_t i = 0; i < muster_rows_count(rows); i++) {
        if (!tool_node_is_rank(&nodes[i]))
            continue;
        end->preempted =
            end->preempted || (!end->ended && strcmp(nodes[i].leave_why, "preempted") == 0);
        end->finished = end->finished && strcmp(nodes[i].leave_why, "finished") == 0;
        if (nodes[i].rank == end->error_rank)
            snprintf(end->host, sizeof end->host, "%s", nodes[i].host);
    }
}

bool tool_job_end(const char *broker, const char *job, struct tool_end *ret_end)
{
    struct tool tool = {.verb = "run", .timeout_ms = 2000};
    struct tool_end end = {.error_rank = -1};
    muster_rows_t *jobs = NULL, *nodes = NULL;
    enum muster_status status;

    broker = tool_broker_of(broker, tool.address);
    if (broker == NULL || tool_nobody_listens(broker))
        return false;
    status = muster_client_open(broker, tool.timeout_ms, &tool.client, NULL);
    if (status == MUSTER_OK)
        status = muster_client_jobs(tool.client, job, &jobs, NULL);
    if (status == MUSTER_OK && muster_rows_count(jobs) == 1) {
        tool_end_of_job(muster_rows_jobs(jobs), &end);
        status = muster_client_nodes(tool.client, job, end.generation, &nodes, NULL);
    }
    if (status == MUSTER_OK && nodes != NULL)
        tool_end_of_nodes(nodes, &end);
    muster_rows_destroy(&jobs);
    muster_rows_destroy(&nodes);
    muster_client_close(&tool.client, NULL);
    if (status == MUSTER_OK || status == MUSTER_E_NOT_FOUND)
        *ret_end = end;
    return status == MUSTER_OK || status == MUSTER_E_NOT_FOUND;
}
