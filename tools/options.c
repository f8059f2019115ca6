/* options - the words after a verb, the broker or database that answers, and the job that is
 * meant. */
#include "tools/tool.h"

#include "client/query/query_link.h"
#include "client/query/query_place.h"

#include "schema/nearest.h"
#include "schema/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct tool_option tool_option_table[OPTION_COUNT] = {
    [OPTION_BROKER] = {"broker", "ADDRESS", "MUSTER_BROKER",
                       "ask this broker, also -b: tcp://host:port or ipc://path"},
    [OPTION_DB] = {"db", "PATH", "MUSTER_DB", "read this database itself, without a broker"},
    [OPTION_JOB] = {"job", "JOB", "MUSTER_JOB",
                    "the job, also -j; not needed if there is only one"},
    [OPTION_JSON] = {"json", NULL, NULL, "print one JSON document instead of text"},
    [OPTION_TIMEOUT] = {"timeout", "SECONDS", "MUSTER_TIMEOUT",
                        "how long to wait for the broker's answer (5)"},
    [OPTION_GENERATION] = {"generation", "N", NULL, "show this launch instead of the newest"},
    [OPTION_SINCE] = {"since", "N", NULL, "show what follows this number (the newest 200)"},
    [OPTION_FOLLOW] = {"follow", NULL, NULL,
                       "print new events until interrupted; with --json one per line"},
    [OPTION_GRACE] = {"grace", "SECONDS", NULL,
                      "the time that the rank has left (not given, or below 3: save at once)"},
    [OPTION_TEXT] = {"text", "TEXT", NULL, "the reason, which `muster why` shows"},
    [OPTION_CANCEL] = {"cancel", "ID", NULL, "withdraw this notice instead"},
    [OPTION_WAIT] = {"wait", NULL, NULL,
                     "wait until the checkpoint is committed or given up, or the launch ends"},
    [OPTION_LEASE] = {"lease", "SECONDS", NULL,
                      "the pin ends by itself after this time (it stays until unpin)"},
    [OPTION_ID] = {"id", "ID", NULL, "the name of the holder (operator)"},
    [OPTION_ALL] = {"all", NULL, NULL, "also show what the list leaves out"},
    [OPTION_EXIT_CODE] = {"exit-code", NULL, NULL,
                          "exit with 0 if JOB finished, 42: start it again, 1: failed, 5: runs"},
    [OPTION_ROLE] = {"role", "ROLE", NULL,
                     "what the key may do: node (the default), operator, viewer"},
    [OPTION_EXPIRES] = {"expires", "TIME", NULL,
                        "how long the key is valid, as 30d or 12h (until it is revoked)"},
    [OPTION_FILE] = {"file", "FILE", NULL, "where the new key is written (NAME.key)"},
    [OPTION_SIGN] = {"sign", NULL, NULL,
                     "users of the key restore only what this broker signed (musterd --sign)"},
    [OPTION_KEY] = {"key", "FILE", "MUSTER_KEY_FILE",
                    "the key that a broker at a tcp address asks for"},
    [OPTION_LISTEN] = {"listen", "HOST:PORT", NULL,
                       "the address of the page; port 0: any free port (127.0.0.1:7780)"},
    [OPTION_RANKS] = {"ranks", "N", NULL, "how many ranks (4)"},
    [OPTION_SIZE] = {"size", "SIZE", NULL, "the state of each rank, as 512M or 4G (64M)"},
    [OPTION_ROUNDS] = {"rounds", "N", NULL, "how many preemptions (3)"},
    [OPTION_DIR] = {"dir", "DIR", NULL, "where the checkpoints go (the current directory)"},
    [OPTION_PLOT] = {"plot", "FILE", NULL, "also draw the times into this SVG file, with gnuplot"},
    [OPTION_WATCH] = {"watch", NULL, NULL,
                      "draw the answer again every 2 s on the whole terminal, until q is pressed"},
    [OPTION_HOSTS] = {"hosts", NULL, NULL,
                      "for a broker that other hosts use, too: it has TCP and a key"},
    [OPTION_ORDERS] = {"orders", NULL, NULL,
                       "the page may save, notify and pin, for everyone with the printed address"},
    [OPTION_HELP] = {"help", NULL, NULL, "describe the verb"},
};

static int options_find_option(const struct tool_verb *verb, const char *name, size_t length)
{
    unsigned allowed = verb->options | OPTIONS_COMMON;

    for (int id = 0; id < OPTION_COUNT; id++)
        if ((allowed & OPTION_BIT(id)) != 0 && strlen(tool_option_table[id].name) == length &&
            strncmp(tool_option_table[id].name, name, length) == 0)
            return id;
    return -1;
}

static int options_no_option(const struct tool_verb *verb, const char *word)
{
    struct nearest nearest = {.word = word + 2, .length = strcspn(word + 2, "=")};
    char hint[NEAREST_HINT_MAX];

    for (int id = 0; id < OPTION_COUNT && word[1] == '-'; id++)
        if (((verb->options | OPTIONS_COMMON) & OPTION_BIT(id)) != 0)
            nearest_offer(&nearest, tool_option_table[id].name);
    nearest_hint(&nearest, "--", hint);
    return tool_fail(TOOL_USAGE, "%s has no option %s%s: see `muster %s --help`", verb->name, word,
                     hint, verb->name);
}

/* The short options are those of `muster run`. */
static const char *options_long_name(const char *word)
{
    static const char *const names[][2] = {{"-h", "help"}, {"-j", "job"}, {"-b", "broker"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i][0]) == 0)
            return names[i][1];
    return word[1] == '-' ? word + 2 : "";
}

/* One "--name", "--name=value", "--name value" or "-j value" at argv[*at]. */
static int options_parse_option(struct tool *tool, const struct tool_verb *verb, int argc,
                                char **argv, int *at)
{
    const char *name = options_long_name(argv[*at]);
    const char *equals = strchr(name, '=');
    size_t length = equals == NULL ? strlen(name) : (size_t)(equals - name);
    int id = options_find_option(verb, name, length);

    if (id < 0)
        return options_no_option(verb, argv[*at]);
    if (tool_option_table[id].value == NULL) {
        if (equals != NULL)
            return tool_fail(TOOL_USAGE, "--%s takes no value: leave it out",
                             tool_option_table[id].name);
        tool->values[id] = "";
        return TOOL_DONE;
    }
    if (equals == NULL && *at + 1 >= argc)
        return tool_fail(TOOL_USAGE, "--%s needs a value: --%s %s", tool_option_table[id].name,
                         tool_option_table[id].name, tool_option_table[id].value);
    tool->values[id] = equals != NULL ? equals + 1 : argv[++*at];
    return TOOL_DONE;
}

/* A value that no option gives comes from the environment. A place named by option hides both
 * variables. */
static void options_take_environment(struct tool *tool)
{
    bool place = tool->values[OPTION_BROKER] != NULL || tool->values[OPTION_DB] != NULL;

    for (int id = 0; id < OPTION_COUNT; id++) {
        const char *value;

        if (tool->values[id] != NULL || tool_option_table[id].env == NULL)
            continue;
        if (place && (id == OPTION_BROKER || id == OPTION_DB))
            continue;
        value = getenv(tool_option_table[id].env);
        if (value != NULL && value[0] != '\0')
            tool->values[id] = value;
    }
}

/* The origin of the value: the option, or the variable that stands for it. */
static const char *option_source(const struct tool *tool, int id, const char *option)
{
    const char *value = getenv(tool_option_table[id].env);

    return value != NULL && tool->values[id] == value ? tool_option_table[id].env : option;
}

static int options_check(struct tool *tool, const struct tool_verb *verb)
{
    int64_t timeout_ms = MUSTER_CLIENT_TIMEOUT_MS;

    if (tool->args_count < verb->args_min && tool->values[OPTION_CANCEL] == NULL)
        return tool_fail(TOOL_USAGE, "%s needs more words: muster %s %s", verb->name, verb->name,
                         verb->args);
    if (strcmp(verb->name, "init") != 0 && tool->values[OPTION_BROKER] != NULL &&
        tool->values[OPTION_DB] != NULL && tool->values[OPTION_BROKER] != getenv("MUSTER_BROKER"))
        return tool_fail(TOOL_USAGE, "--broker and --db name two places: give one of them");
    if (tool->values[OPTION_TIMEOUT] != NULL &&
        tool_seconds_ms(tool->values[OPTION_TIMEOUT],
                        option_source(tool, OPTION_TIMEOUT, "--timeout"), &timeout_ms) != TOOL_DONE)
        return TOOL_USAGE;
    if (timeout_ms < 1)
        return tool_fail(TOOL_USAGE, "%s %s leaves no time for an answer: give more seconds",
                         option_source(tool, OPTION_TIMEOUT, "--timeout"),
                         tool->values[OPTION_TIMEOUT]);
    tool->timeout_ms = (int)timeout_ms;
    return TOOL_DONE;
}

int tool_parse(struct tool *tool, const struct tool_verb *verb, int argc, char **argv)
{
    bool options_end = false;

    for (int at = 0; at < argc; at++) {
        if (!options_end && strcmp(argv[at], "--") == 0) {
            options_end = true;
        } else if (!options_end && argv[at][0] == '-' && argv[at][1] != '\0') {
            int code = options_parse_option(tool, verb, argc, argv, &at);

            if (code != TOOL_DONE)
                return code;
        } else if (tool->args_count < verb->args_max) {
            tool->args[tool->args_count++] = argv[at];
        } else {
            return tool_fail(TOOL_USAGE, "%s does not know what to do with \"%s\": muster %s%s%s",
                             verb->name, argv[at], verb->name, verb->args[0] == '\0' ? "" : " ",
                             verb->args);
        }
    }
    if (tool->values[OPTION_HELP] != NULL)
        return TOOL_DONE;
    options_take_environment(tool);
    if (tool->values[OPTION_KEY] != NULL && setenv("MUSTER_KEY_FILE", tool->values[OPTION_KEY], 1))
        return tool_fail(TOOL_NO, "no memory for --key");
    return options_check(tool, verb);
}

int tool_number(const char *text, const char *what, int64_t min, int64_t max, int64_t *ret_number)
{
    if (!number_read(text, min, max, ret_number))
        return tool_fail(TOOL_USAGE,
                         "%s is a whole number from %" PRId64 " to %" PRId64 ", not \"%s\"", what,
                         min, max, text);
    return TOOL_DONE;
}

int tool_seconds_ms(const char *text, const char *what, int64_t *ret_ms)
{
    char *end = NULL;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds >= 0 && seconds <= 1e6))
        return tool_fail(TOOL_USAGE, "%s is a number of seconds from 0 to 1000000, not \"%s\"",
                         what, text);
    *ret_ms = (int64_t)(seconds * 1000 + 0.5);
    return TOOL_DONE;
}

/* --- the place that answers ------------------------------------------------------------------- */

int tool_connect(struct tool *tool)
{
    const char *place = tool->values[OPTION_BROKER];
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status;

    if (place != NULL && strstr(place, "://") == NULL)
        return tool_fail(
            TOOL_USAGE,
            "%s is \"%s\", which is not a broker's address: give tcp://host:port or ipc://path",
            option_source(tool, OPTION_BROKER, "--broker"), place);
    if (place == NULL)
        place = tool->values[OPTION_DB];
    if (place != NULL)
        snprintf(tool->place, sizeof tool->place, "%s", place);
    else if (query_place_find(tool->place, &err) != MUSTER_OK)
        return tool_fail(TOOL_UNREACHABLE, "%s", err.text);
    status = muster_client_open(tool->place, tool->timeout_ms, &tool->client, &err);
    if (status == MUSTER_OK) {
        snprintf(tool->address, sizeof tool->address, "%s", muster_client_place(tool->client));
        return TOOL_DONE;
    }
    if (status == MUSTER_E_ARGUMENT)
        return tool_fail(TOOL_USAGE, "%s", err.text);
    return tool_fail(TOOL_UNREACHABLE, "%s", err.text);
}

int tool_check_broker(struct tool *tool)
{
    if (!muster_client_is_database(tool->client))
        return TOOL_DONE;
    return tool_fail(
        tool->values[OPTION_DB] != NULL ? TOOL_USAGE : TOOL_UNREACHABLE,
        "%s needs a broker, and %s is a database, which is only read: start `musterd`, "
        "or give its address with --broker ADDRESS",
        tool->verb, tool->address);
}

/* --- the job that is meant -------------------------------------------------------------------- */

/* "a, b, c": the names in rows, for an error text. */
static void options_list_jobs(const muster_rows_t *rows, char *text, size_t size)
{
    const struct muster_job_row *jobs = muster_rows_jobs(rows);
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < muster_rows_count(rows) && used + 80 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ", ", jobs[i].job);
    if (text[0] == '\0')
        snprintf(text, size, "none yet");
}

/* A key for some jobs gets no list. */
static int options_unknown_job(struct tool *tool, const char *name)
{
    muster_rows_t *all = NULL;
    char jobs[512] = "check its name, and whether it has begun here";

    if (muster_client_jobs(tool->client, NULL, &all, NULL) == MUSTER_OK) {
        int used = snprintf(jobs, sizeof jobs, "its jobs are: ");
        options_list_jobs(all, jobs + used, sizeof jobs - (size_t)used);
    }
    muster_rows_destroy(&all);
    return tool_fail(TOOL_NO, "%s knows no job \"%s\": %s", tool->address, name, jobs);
}

int tool_get_job(struct tool *tool, const char *name, muster_rows_t **ret_rows)
{
    muster_rows_t *rows = NULL;
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = MUSTER_OK;

    if (name[0] != '\0')
        status = muster_client_jobs(tool->client, name, &rows, &err);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (muster_rows_count(rows) == 0) {
        muster_rows_destroy(&rows);
        return options_unknown_job(tool, name);
    }
    *ret_rows = rows;
    return TOOL_DONE;
}

int tool_count_steps(struct tool *tool)
{
    struct muster_error err = {.status = MUSTER_OK};
    enum muster_status status = client_count_as(tool->client, tool->job, &tool->step_offset, &err);

    return status == MUSTER_OK ? TOOL_DONE : tool_fail_status(status, &err);
}

int tool_find_job(struct tool *tool)
{
    const char *name = tool->values[OPTION_JOB];
    struct muster_error err = {.status = MUSTER_OK};
    muster_rows_t *rows = NULL;
    enum muster_status status;
    char names[512];
    int code = TOOL_DONE;

    if (name != NULL) {
        code = tool_get_job(tool, name, &rows);
        if (code == TOOL_DONE)
            snprintf(tool->job, sizeof tool->job, "%s", name);
        muster_rows_destroy(&rows);
        return code == TOOL_DONE ? tool_count_steps(tool) : code;
    }
    status = muster_client_jobs(tool->client, NULL, &rows, &err);
    if (status != MUSTER_OK)
        return tool_fail_status(status, &err);
    if (muster_rows_count(rows) == 1) {
        snprintf(tool->job, sizeof tool->job, "%s", muster_rows_jobs(rows)[0].job);
    } else if (muster_rows_count(rows) == 0) {
        code = tool_fail(TOOL_NO,
                         "%s knows no job yet: start one, for example with `muster run --job NAME "
                         "-n 4 -- PROGRAM`",
                         tool->address);
    } else {
        options_list_jobs(rows, names, sizeof names);
        code = tool_fail(TOOL_USAGE, "%s knows several jobs (%s): choose one with --job",
                         tool->address, names);
    }
    muster_rows_destroy(&rows);
    return code == TOOL_DONE ? tool_count_steps(tool) : code;
}
