/* routes - the paths, and the verbs of `muster` whose --json they answer with. */
#include "tools/web/routes.h"

#include "tools/verbs.h"

#include <inttypes.h>

/* --- documents: what a verb prints with --json -------------------------------------------------
 */

static int routes_verb(struct tool *tool, int (*verb)(struct tool *tool))
{
    tool->values[OPTION_JSON] = "";
    tool->values[OPTION_ALL] = "";
    return verb(tool);
}

/* A verb whose argument is a number, after `word` if that is not NULL. */
static int routes_numbered(struct tool *tool, const struct web_request *request, const char *word,
                           int (*verb)(struct tool *tool))
{
    char number[24];

    snprintf(number, sizeof number, "%" PRId64, request->number);
    if (word != NULL)
        tool->args[tool->args_count++] = word;
    tool->args[tool->args_count++] = number;
    return routes_verb(tool, verb);
}

#define VERB(name, verb)                                         \
    static int routes_##name(struct web *web, struct tool *tool, \
                             const struct web_request *request)  \
    {                                                            \
        (void)web, (void)request;                                \
        return routes_verb(tool, verb);                          \
    }
VERB(status, cmd_status)
VERB(rounds, cmd_rounds)
VERB(checkpoints, cmd_checkpoints)
VERB(latest, cmd_latest)
VERB(why, cmd_why)
VERB(tasks, cmd_tasks)

static int routes_broker(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web, (void)request;
    if (muster_client_is_database(tool->client)) /* no failure of the place that is asked */
        return tool_fail(TOOL_USAGE, "a database knows nothing of the broker's process");
    return routes_verb(tool, cmd_broker);
}

static int routes_nodes(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    tool->values[OPTION_GENERATION] = request->generation;
    return routes_verb(tool, cmd_nodes);
}

static int routes_events(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    tool->values[OPTION_SINCE] = request->since;
    return routes_verb(tool, cmd_events);
}

static int routes_round(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    return routes_numbered(tool, request, NULL, cmd_round);
}

static int routes_why_round(struct web *web, struct tool *tool, const struct web_request *request)
{
    (void)web;
    return routes_numbered(tool, request, "round", cmd_why);
}

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"
#define METRICS "text/plain; version=0.0.4; charset=utf-8"

const struct web_route web_routes[] = {
    {"/", HTML, web_make_jobs},
    {"/jobs/*", HTML, web_make_job},
    {"/jobs/*/story", HTML, web_make_story},
    {"/jobs/*/worst", HTML, web_make_worst},
    {"/jobs/*/ranks", HTML, web_make_ranks},
    {"/jobs/*/rounds", HTML, web_make_rounds},
    {"/jobs/*/rounds/#", HTML, web_make_round},
    {"/jobs/*/checkpoints", HTML, web_make_checkpoints},
    {"/jobs/*/journal", HTML, web_make_journal},
    {"/jobs/*/launches", HTML, web_make_launches},
    {"/api/v1/jobs", JSON, routes_status},
    {"/api/v1/jobs/*", JSON, routes_status},
    {"/api/v1/jobs/*/nodes", JSON, routes_nodes},
    {"/api/v1/jobs/*/rounds", JSON, routes_rounds},
    {"/api/v1/jobs/*/rounds/#", JSON, routes_round},
    {"/api/v1/jobs/*/rounds/#/why", JSON, routes_why_round},
    {"/api/v1/jobs/*/checkpoints", JSON, routes_checkpoints},
    {"/api/v1/jobs/*/latest", JSON, routes_latest},
    {"/api/v1/jobs/*/events", JSON, routes_events},
    {"/api/v1/jobs/*/why", JSON, routes_why},
    {"/api/v1/jobs/*/tasks", JSON, routes_tasks},
    {"/api/v1/jobs/*/heat", JSON, web_make_heat},
    {"/api/v1/jobs/*/stream", "", NULL},
    {"/api/v1/broker", JSON, routes_broker},
    {"/api/v1/stream", "", NULL},
    {"/metrics", METRICS, web_make_metrics},
    {"/readyz", TEXT, web_make_ready},
    {.pattern = NULL},
};
