/* muster - the tool: shows jobs, asks brokers for something, runs ranks.
 * Owns: the table of verbs, help, exit codes, what is written to stdout and stderr. */
#include "client/query/query_place.h"
#include "node/clock.h"
#include "schema/nearest.h"
#include "schema/paths.h"
#include "tools/paint.h"
#include "tools/render.h"
#include "tools/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const struct tool_verb tool_verbs[] = {
    {"status", "[JOB]", "all jobs, or one job: state, open round, whom it waits for, checkpoint",
     OPTION_BIT(OPTION_ALL) | OPTION_BIT(OPTION_EXIT_CODE) | OPTION_BIT(OPTION_WATCH), 0, 1,
     cmd_status},
    {"top", "", "jobs and ranks on the whole terminal, kept up to date; ? shows its keys", 0, 0, 0,
     cmd_top},
    {"nodes", "", "the ranks: host, state, step, lag, what they do",
     OPTION_BIT(OPTION_GENERATION) | OPTION_BIT(OPTION_WATCH), 0, 0, cmd_nodes},
    {"rounds", "", "all agreements on a save step, and their outcomes",
     OPTION_BIT(OPTION_SINCE) | OPTION_BIT(OPTION_WATCH), 0, 0, cmd_rounds},
    {"round", "N", "one of these rounds: its members, their reports, saves and times", 0, 1, 1,
     cmd_round},
    {"checkpoints", "", "all checkpoints: step, state, size, shards, path", OPTION_BIT(OPTION_ALL),
     0, 0, cmd_checkpoints},
    {"latest", "", "step and path to resume from, for scripts; exit 1 if there is none", 0, 0, 0,
     cmd_latest},
    {"events", "", "the job's journal", OPTION_BIT(OPTION_SINCE) | OPTION_BIT(OPTION_FOLLOW), 0, 0,
     cmd_events},
    {"notify", "RANK | --cancel ID", "tell the job that a rank will be ended: all save and leave",
     OPTION_BIT(OPTION_GRACE) | OPTION_BIT(OPTION_TEXT) | OPTION_BIT(OPTION_CANCEL), 1, 1,
     cmd_notify},
    {"save", "", "make a checkpoint now, at an agreed step; nobody leaves", OPTION_BIT(OPTION_WAIT),
     0, 0, cmd_save},
    {"pin", "[CHECKPOINT]", "protect a checkpoint, or the newest, from deletion",
     OPTION_BIT(OPTION_LEASE) | OPTION_BIT(OPTION_ID), 0, 1, cmd_pin},
    {"unpin", "CHECKPOINT", "end that protection", OPTION_BIT(OPTION_ID), 1, 1, cmd_unpin},
    {"forget", "JOB", "remove a job that has ended from the records; no file is deleted", 0, 1, 1,
     cmd_forget},
    {"verify", "[CHECKPOINT]",
     "read checkpoints again and name every damaged file; exit 1 if one is", 0, 0, 1, cmd_verify},
    {"import", "DIR", "tell the broker about the checkpoints in a directory, as after a loss", 0, 1,
     1, cmd_import},
    {"tasks", "[STATE | N | workers]",
     "the queues of tasks; or tasks in a state, one task, the workers", 0, 0, 1, cmd_tasks},
    {"broker", "", "the broker itself: address, disk, load, and what it refused", 0, 0, 0,
     cmd_broker},
    {"key", "add|list|revoke|rotate|show", "decide who may use this host's broker over TCP",
     OPTION_BIT(OPTION_ROLE) | OPTION_BIT(OPTION_EXPIRES) | OPTION_BIT(OPTION_FILE) |
         OPTION_BIT(OPTION_SIGN),
     1, 3, cmd_key},
    {"web", "", "a page for the browser, and metrics for Prometheus",
     OPTION_BIT(OPTION_LISTEN) | OPTION_BIT(OPTION_ORDERS), 0, 0, cmd_web},
    {"bench", "", "measure what a preemption costs on this machine, in a directory",
     OPTION_BIT(OPTION_RANKS) | OPTION_BIT(OPTION_SIZE) | OPTION_BIT(OPTION_ROUNDS) |
         OPTION_BIT(OPTION_DIR) | OPTION_BIT(OPTION_PLOT),
     0, 0, cmd_bench},
    {"doctor", "", "check what a job would find here, and say how to mend it; exit 1 if needed", 0,
     0, 0, cmd_doctor},
    {"init", "[DIR]", "write a commented configuration, a unit and an example job into DIR",
     OPTION_BIT(OPTION_HOSTS), 0, 1, cmd_init},
    {"demo", "[rank]", "watch a job of four ranks lose nothing when it is preempted", 0, 0, 1,
     cmd_demo},
    {"why", "[notice|round|task N]", "the whole story of a notice, a round, a task, or the newest",
     0, 0, 2, cmd_why},
    {.name = NULL},
};

/* --- speaking --------------------------------------------------------------------------------- */

static char muster_clean(char byte) /* what comes from elsewhere must not command the terminal */
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
        *at = (char)(*at == '\n' ? ' ' : muster_clean(*at));
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

static char *collected;
static size_t collected_size;

int tool_flush(struct tool *tool)
{
    if (tool->kept)
        return TOOL_DONE;
    if (fflush(tool->out) != 0)
        return tool_fail(TOOL_NO, "no memory for the answer");
    paint_text(stdout, collected, collected_size);
    rewind(tool->out);
    if (fflush(stdout) != 0)
        return tool_fail(TOOL_NO, "the answer could not be written to the standard output");
    return TOOL_DONE;
}

/* --- help ------------------------------------------------------------------------------------- */

static void muster_print_option(const struct tool_option *option)
{
    char words[64];

    snprintf(words, sizeof words, "--%s%s%s", option->name, option->value == NULL ? "" : " ",
             option->value == NULL ? "" : option->value);
    printf("  %-20s %s", words, option->help);
    if (option->env != NULL)
        printf(" [%s]", option->env);
    putchar('\n');
}

static void muster_print_options(unsigned options)
{
    for (int id = 0; id < OPTION_COUNT; id++)
        if ((options & OPTION_BIT(id)) != 0)
            muster_print_option(&tool_option_table[id]);
}

/* Does the verb need a broker? A database is only read, and a user who names one is told so. */
static bool muster_is_order(const struct tool_verb *verb)
{
    return verb->run == cmd_notify || verb->run == cmd_save || verb->run == cmd_pin ||
           verb->run == cmd_unpin || verb->run == cmd_forget || verb->run == cmd_import;
}

static int muster_help_verb(const struct tool_verb *verb)
{
    printf("muster %s%s%s [options]\n  %s\n\n", verb->name, verb->args[0] == '\0' ? "" : " ",
           verb->args, verb->summary);
    muster_print_options((verb->options | OPTIONS_COMMON) &
                         (muster_is_order(verb) ? ~OPTION_BIT(OPTION_DB) : ~0U));
    return TOOL_DONE;
}

static int muster_help(void)
{
    printf("muster VERB [options]\n\n");
    for (const struct tool_verb *verb = tool_verbs; verb->name != NULL; verb++)
        printf("  %-12s %-27s %s\n", verb->name, verb->args, verb->summary);
    printf("  %-12s %-27s %s\n", "run", "[options] -- PROGRAM",
           "start ranks, and restart them together after a preemption");
    printf("  %-12s %-27s %s\n", "version", "[--json]", "print the version");
    printf("  %-12s %-27s %s\n\n", "help", "[VERB]", "show this list, or one verb's options");
    muster_print_options(OPTIONS_COMMON);
    printf("\nExit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 broker or database not "
           "reachable, 4 refused.\n");
    return TOOL_DONE;
}

/* --- the program ------------------------------------------------------------------------------ */

static const struct tool_verb *muster_find_verb(const char *name)
{
    for (const struct tool_verb *verb = tool_verbs; verb->name != NULL; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

static int muster_no_verb(const char *name)
{
    struct nearest nearest = {.word = name, .length = strlen(name)};
    char hint[NEAREST_HINT_MAX];

    for (const struct tool_verb *verb = tool_verbs; verb->name != NULL; verb++)
        nearest_offer(&nearest, verb->name);
    nearest_offer(&nearest, "run");
    nearest_offer(&nearest, "help");
    nearest_offer(&nearest, "version");
    nearest_hint(&nearest, "", hint);
    return tool_fail(TOOL_USAGE, "there is no verb \"%s\"%s: `muster help` lists them", name, hint);
}

int64_t tool_now_unix_ms(void)
{
    const char *fixed = getenv("MUSTER_TEST_NOW"); /* so that tests can compare ages */

    if (fixed != NULL && fixed[0] != '\0')
        return strtoll(fixed, NULL, 10);
    return clock_ms(CLOCK_REALTIME);
}

/* 0: the answer goes to a file, a pipe or a program, which gets all columns. */
static int muster_terminal_width(void)
{
    struct winsize size;

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* True also for verbs that ask a broker in their own way. */
static bool muster_asks_nobody(const struct tool_verb *verb)
{
    return verb->run == cmd_key || verb->run == cmd_bench || verb->run == cmd_doctor ||
           verb->run == cmd_init || verb->run == cmd_demo;
}

static int muster_run_verb(const struct tool_verb *verb, int argc, char **argv)
{
    struct tool tool = {
        .verb = verb->name, .now_unix_ms = tool_now_unix_ms(), .width = muster_terminal_width()};
    int code = tool_parse(&tool, verb, argc, argv);
    int written;

    if (code != TOOL_DONE)
        return code;
    if (tool.values[OPTION_HELP] != NULL)
        return muster_help_verb(verb);
    paint_begin();
    tool.out = open_memstream(&collected, &collected_size);
    if (tool.out == NULL)
        return tool_fail(TOOL_NO, "no memory for the answer");
    code = muster_asks_nobody(verb) ? TOOL_DONE : tool_connect(&tool);
    if (code == TOOL_DONE)
        code = tool.values[OPTION_WATCH] != NULL ? tool_watch(&tool, verb) : verb->run(&tool);
    written = tool_flush(&tool);
    fclose(tool.out);
    free(collected);
    muster_client_close(&tool.client, NULL);
    return code != TOOL_DONE ? code : written;
}

static int muster_run_help(int argc, char **argv)
{
    const struct tool_verb *verb;

    if (argc < 3)
        return muster_help();
    verb = muster_find_verb(argv[2]);
    if (verb != NULL)
        return muster_help_verb(verb);
    if (strcmp(argv[2], "run") == 0) {
        char name[] = "run";
        char option[] = "--help";
        char *words[] = {name, option, NULL};

        return cmd_run(2, words);
    }
    if (strcmp(argv[2], "help") == 0 || strcmp(argv[2], "version") == 0)
        return muster_help();
    return muster_no_verb(argv[2]);
}

/* It asks no broker, so of the options only --json means something. */
static int muster_print_version(int argc, char **argv)
{
    json_t *document;

    if (argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0))
        return muster_help();
    if (argc > 1 || (argc == 1 && strcmp(argv[0], "--json") != 0))
        return tool_fail(TOOL_USAGE,
                         "version does not know what to do with \"%s\": muster version [--json]",
                         strcmp(argv[0], "--json") == 0 ? argv[1] : argv[0]);
    if (argc == 0) {
        printf("muster %s\n", MUSTER_VERSION);
        return TOOL_DONE;
    }
    document = render_document();
    json_object_set_new(document, "version", json_string(MUSTER_VERSION));
    return render_json(document, stdout, false) ? TOOL_DONE
                                                : tool_fail(TOOL_NO, "no memory for the answer");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct tool_verb *verb = muster_find_verb(name);

    query_place_name_options();
    if (strcmp(name, "run") == 0)
        return cmd_run(argc - 1, argv + 1);
    if (verb != NULL)
        return muster_run_verb(verb, argc - 2, argv + 2);
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return muster_run_help(argc, argv);
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0)
        return muster_print_version(argc - 2, argv + 2);
    if (name[0] == '\0')
        return tool_fail(TOOL_USAGE, "say what to do: `muster help` lists the verbs");
    if (name[0] == '-')
        return tool_fail(TOOL_USAGE,
                         "%s comes before a verb: say first what to do, `muster VERB %s ...`; "
                         "`muster help` lists the verbs",
                         name, name);
    return muster_no_verb(name);
}

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
static bool muster_nobody_listens(const char *broker)
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
    if (broker != NULL && !muster_nobody_listens(broker) &&
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

static void muster_end_of_job(const struct muster_job_row *job, struct tool_end *end)
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

static void muster_end_of_nodes(const muster_rows_t *rows, struct tool_end *end)
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
    if (broker == NULL || muster_nobody_listens(broker))
        return false;
    status = muster_client_open(broker, tool.timeout_ms, &tool.client, NULL);
    if (status == MUSTER_OK)
        status = muster_client_jobs(tool.client, job, &jobs, NULL);
    if (status == MUSTER_OK && muster_rows_count(jobs) == 1) {
        muster_end_of_job(muster_rows_jobs(jobs), &end);
        status = muster_client_nodes(tool.client, job, end.generation, &nodes, NULL);
    }
    if (status == MUSTER_OK && nodes != NULL)
        muster_end_of_nodes(nodes, &end);
    muster_rows_destroy(&jobs);
    muster_rows_destroy(&nodes);
    muster_client_close(&tool.client, NULL);
    if (status == MUSTER_OK || status == MUSTER_E_NOT_FOUND)
        *ret_end = end;
    return status == MUSTER_OK || status == MUSTER_E_NOT_FOUND;
}
