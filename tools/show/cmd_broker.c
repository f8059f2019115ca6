/* cmd_broker - what the broker reports about itself, in a few lines. */
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <inttypes.h>
#include <string.h>

/* In the order in which they are shown: what came and was not taken, then what could not go. */
static const struct {
    const char *name;
    const char *words;
} refusals[] = {
    {"refused_malformed", "messages that could not be read"},
    {"refused_version", "messages of another version of muster"},
    {"refused_unexpected", "messages that only a broker sends"},
    {"refused_frame", "messages that were not framed as muster frames them"},
    {"refused_authority", "messages that their key may not send"},
    {"refused_connection", "connections with a key that does not count"},
    {"refused_key", "messages of a key that was revoked or has expired"},
    {"refused_topic", "subscriptions to jobs that their key may not hear"},
    {"refused_busy", "messages of a key that sends more than its share"},
    {"refused_disk", "requests, because the database could not be written"},
    {"refused_share", "messages of a key that had its share of the disk today"},
    {"closed_hostile", "connections that sent what no node of muster sends"},
    {"closed_files", "connections, because too many files are open"},
    {"closed_address", "connections of an address that had its share"},
    {"closed_key", "connections of a key that had its share"},
    {"closed_silent", "connections that said nothing"},
    {"closed_unread", "connections that sent more than can be read, as a message without an end"},
    {"closed_unsent", "connections that do not read"},
    {"closed_revoked", "connections of a key that was revoked or has expired"},
    {"unsent_full", "messages to processes that do not read"},
    {"unsent_gone", "messages to processes that are gone"},
    {"rebinds_failed", "times its address could not be opened again"},
};
#define REFUSALS_COUNT (sizeof refusals / sizeof refusals[0])

static const struct muster_broker_row *broker_fact_of(const muster_rows_t *rows, const char *name)
{
    static const struct muster_broker_row none = {.name = "", .number = -1, .text = ""};
    const struct muster_broker_row *facts = muster_rows_broker(rows);

    for (size_t i = 0; i < muster_rows_count(rows); i++)
        if (strcmp(facts[i].name, name) == 0)
            return &facts[i];
    return &none;
}

static const char *broker_text_of(const muster_rows_t *rows, const char *name)
{
    return broker_fact_of(rows, name)->text;
}

static int64_t broker_number_of(const muster_rows_t *rows, const char *name)
{
    return broker_fact_of(rows, name)->number;
}

static const char *broker_plural_of(int64_t number)
{
    return number == 1 ? "" : "s";
}

static void broker_print_refusals(struct tool *tool, const muster_rows_t *rows)
{
    bool any = false;

    for (size_t i = 0; i < REFUSALS_COUNT; i++)
        any |= broker_number_of(rows, refusals[i].name) > 0;
    fprintf(tool->out, "Since its start it refused%s\n", any ? " or could not send:" : " nothing.");
    for (size_t i = 0; i < REFUSALS_COUNT; i++)
        if (broker_number_of(rows, refusals[i].name) > 0)
            fprintf(tool->out, "%8" PRId64 "  %s\n", broker_number_of(rows, refusals[i].name),
                    refusals[i].words);
}

static void broker_print(struct tool *tool, const muster_rows_t *rows)
{
    int64_t started = broker_number_of(rows, "started_unix_ms"),
            jobs = broker_number_of(rows, "jobs_running"),
            processes = broker_number_of(rows, "processes");
    const char *trouble = broker_text_of(rows, "database_trouble");

    fprintf(tool->out, "musterd %s runs on %s as process %s, since %s (%s).\n",
            broker_text_of(rows, "version"), broker_text_of(rows, "host"),
            render_number(broker_number_of(rows, "pid")).text, render_stamp(started).text,
            render_age(started, broker_number_of(rows, "now_unix_ms")).text);
    fprintf(tool->out, "It listens on %s, with events on %s, and asks for %s.\n",
            broker_text_of(rows, "endpoint"), broker_text_of(rows, "events_endpoint"),
            broker_number_of(rows, "asks_for_keys") > 0 ? "keys" : "no keys");
    fprintf(tool->out, "Its database %s has %s; the disk has %s free.\n",
            broker_text_of(rows, "database"),
            render_bytes(broker_number_of(rows, "database_bytes")).text,
            render_bytes(broker_number_of(rows, "disk_free_bytes")).text);
    if (broker_text_of(rows, "shared_database")[0] != '\0')
        fprintf(tool->out,
                "Since then it has been the active broker of the shared database %s. Its lease has "
                "%s left.\n",
                broker_text_of(rows, "shared_database"),
                render_duration(broker_number_of(rows, "lease_left_ms")).text);
    if (trouble[0] != '\0')
        fprintf(tool->out, "It CANNOT WRITE its database: %s\n", trouble);
    if (jobs == 0)
        fprintf(tool->out, "No job runs.\n");
    else
        fprintf(tool->out, "%" PRId64 " job%s run%s in %" PRId64 " process%s.\n", jobs,
                broker_plural_of(jobs), jobs == 1 ? "s" : "", processes,
                processes == 1 ? "" : "es");
    fprintf(tool->out,
            "Messages received: %" PRId64 ", sent: %" PRId64 ". It was never busy for more than %s "
            "at a time.\n",
            broker_number_of(rows, "messages_received"),
            broker_number_of(rows, "messages_sent") + broker_number_of(rows, "messages_published"),
            render_duration(broker_number_of(rows, "pass_longest_ms") + 1).text);
    broker_print_refusals(tool, rows);
}

static int broker_print_json(struct tool *tool, const muster_rows_t *rows)
{
    const struct muster_broker_row *facts = muster_rows_broker(rows);
    json_t *document = render_document(), *broker = json_object();

    for (size_t i = 0; i < muster_rows_count(rows); i++)
        json_object_set_new(broker, facts[i].name,
                            facts[i].text[0] != '\0' ? json_string(facts[i].text)
                                                     : json_integer(facts[i].number));
    json_object_set_new(document, "broker", broker);
    return render_json(document, tool->out, false) ? TOOL_DONE
                                                   : tool_fail(TOOL_NO, "no memory for the answer");
}

int cmd_broker(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    enum muster_status status;
    int code = tool_check_broker(tool);

    if (code != TOOL_DONE)
        return code;
    status = muster_client_broker(tool->client, &rows, &err);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (tool_json(tool))
        code = broker_print_json(tool, rows);
    else
        broker_print(tool, rows);
    muster_rows_destroy(&rows);
    return code;
}
