/* muster - the tool: shows jobs, asks brokers for something, runs ranks.
 * Owns: the table of verbs, and help. */
#include "client/query/query_place.h"
#include "schema/nearest.h"
#include "tools/paint.h"
#include "tools/render.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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
    tool.out = open_memstream(&tool.answer, &tool.answer_size);
    if (tool.out == NULL)
        return tool_fail(TOOL_NO, "no memory for the answer");
    code = muster_asks_nobody(verb) ? TOOL_DONE : tool_connect(&tool);
    if (code == TOOL_DONE)
        code = tool.values[OPTION_WATCH] != NULL ? tool_watch(&tool, verb) : verb->run(&tool);
    written = tool_flush(&tool);
    fclose(tool.out);
    free(tool.answer);
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
