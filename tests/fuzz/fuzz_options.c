/* What people write: options, environment and configuration files, one word or line a line of the
 * input. The first line says who reads: "musterd" the broker, "run" `muster run` with the
 * launcher's environment, "env" that environment alone, else it is a verb of `muster`. Of the
 * others "$NAME=value" goes to the environment, "@text" is a line of the broker's configuration
 * file, the rest are words of the command line. Either it is taken, and then every value is one
 * that the program can work with, or something is said. */
#include "broker/bus.h"
#include "broker/config.h"
#include "node/notice/identity.h"
#include "schema/wire/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tools/run/cmd_run.c" /* NOLINT(bugprone-suspicious-include) */

#define WORDS_MAX 64
#define FILE_BYTES_MAX 8192

struct command {
    char *words[WORDS_MAX + 1]; /* the first is the program's or verb's name */
    int words_count;
    char *variables[WORDS_MAX + 1];
    int variables_count;
    char file[FILE_BYTES_MAX];
    size_t file_size;
};

static const char *file_path(void)
{
    static char path[64];

    snprintf(path, sizeof path, "%s/muster-fuzz-conf-%d",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    return path;
}

/* Other files of the machine are none of an input's business. */
static char *own_file(char *text, const char *option)
{
    char *own;

    if (strncmp(text, option, strlen(option)) != 0)
        return text;
    free(text);
    must(asprintf(&own, "%s=%s", option, file_path()) > 0);
    return own;
}

static void add_file_line(struct command *command, const char *line)
{
    size_t length = strlen(line);

    if (command->file_size + length + 1 > sizeof command->file)
        return;
    memcpy(command->file + command->file_size, line, length);
    command->file_size += length;
    command->file[command->file_size++] = '\n';
}

static void read_command(struct command *command, struct bytes *in)
{
    char *line;

    memset(command, 0, sizeof *command);
    while ((line = take_line(in)) != NULL) {
        if (line[0] == '$' && command->variables_count < WORDS_MAX) {
            memmove(line, line + 1, strlen(line));
            command->variables[command->variables_count++] = own_file(line, "MUSTER_CONFIG");
        } else if (line[0] != '@' && line[0] != '$' && command->words_count < WORDS_MAX) {
            command->words[command->words_count++] = own_file(line, "--config");
        } else {
            if (line[0] == '@')
                add_file_line(command, line + 1);
            free(line);
        }
    }
}

static void free_command(struct command *command)
{
    for (int i = 0; i < command->words_count; i++)
        free(command->words[i]);
    for (int i = 0; i < command->variables_count; i++)
        free(command->variables[i]);
}

/* --- the three readers ------------------------------------------------------------------------ */

static void try_broker(struct command *command)
{
    FILE *file = fopen(file_path(), "w");
    struct muster_error err = {0};
    struct muster_error why;
    struct config config;
    enum muster_status status;

    must(file != NULL && fwrite(command->file, 1, command->file_size, file) == command->file_size);
    must(fclose(file) == 0);
    status = config_parse(command->words_count, command->words, &config, &err);
    if (status != MUSTER_OK) {
        must(status == MUSTER_E_ARGUMENT || status == MUSTER_E_IO);
        must(err.status == status && err.text[0] != '\0');
    } else if (!config.show_help && !config.show_version) {
        must(config.db != NULL && config.db[0] != '\0');
        must(bus_check_listen(config.listen, NULL, &why) == MUSTER_OK);
        must(config.port_file == NULL || config.port_file[0] != '\0');
        must(config.log_format == LOG_FORMAT_TEXT || config.log_format == LOG_FORMAT_JSON);
        must(config.join_timeout_ms >= 0 && config.join_timeout_ms <= INT32_MAX);
    }
    config_free(&config);
    unlink(file_path());
}

static void try_identity(const struct command *command)
{
    struct identity id;
    struct muster_error err = {0};
    enum muster_status status = identity_read((const char *const *)command->variables, &id, &err);

    if (status != MUSTER_OK) {
        must(status == MUSTER_E_ARGUMENT && err.text[0] != '\0');
        return;
    }
    must(id.rank >= 0 && id.rank < id.world_size);
    must(id.local_rank >= IDENTITY_UNKNOWN && id.local_size >= IDENTITY_UNKNOWN);
    must(id.local_size == IDENTITY_UNKNOWN || id.local_rank < id.local_size);
    must(id.restart_count >= 0 && id.family[0] != '\0');
    must(id.job[0] == '\0' || wire_job_name_ok(id.job));
}

static bool try_run(struct command *command)
{
    struct run run = {.signal_fd = -1};
    struct run_options options;
    int code = -1;
    char *words[WORDS_MAX + 1]; /* its own: the first is replaced */
    bool taken;

    memcpy(words, command->words, sizeof words);
    taken = run_options_read(&options, command->words_count, words, &code);

    if (!taken) {
        must(code == TOOL_USAGE || code == TOOL_DONE);
        return true;
    }
    must(options.count >= 0 && options.count <= RUN_RANKS_MAX);
    must(options.restart_code >= 1 && options.restart_code <= 255);
    must(options.argv[0] != NULL);
    taken = run_identity_take(&run, &options);
    if (taken) {
        must(wire_job_name_ok(run.job));
        must(run.rank_count >= 1 && run.ranks[0].rank >= 0);
        must(run.ranks[run.rank_count - 1].rank < run.command.world_size);
    }
    free(run.ranks);
    free(run.ends);
    free(run.tellers);
    return !taken;
}

/* Whether something must have been said. */
static bool try_verb(struct command *command)
{
    struct tool tool = {0};
    const struct tool_verb *verb = tool_verbs;
    int64_t number;

    while (verb->name != NULL && strcmp(verb->name, command->words[0]) != 0)
        verb++;
    if (verb->name == NULL)
        return false;
    tool.verb = verb->name;
    if (tool_parse(&tool, verb, command->words_count - 1, command->words + 1) != TOOL_DONE)
        return true;
    must(tool.args_count <= verb->args_max && tool.args_count <= TOOL_ARGS_MAX);
    if (tool.values[OPTION_HELP] != NULL)
        return false;
    must(tool.timeout_ms >= 1);
    must(tool.args_count >= verb->args_min || tool.values[OPTION_CANCEL] != NULL);
    if (tool.args_count > 0 && tool_number(tool.args[0], "N", 0, 4095, &number) == TOOL_DONE)
        must(number >= 0 && number <= 4095);
    if (tool.args_count > 0 && tool_seconds_ms(tool.args[0], "S", &number) == TOOL_DONE)
        must(number >= 0 && number <= 1000000000);
    return false;
}

/* --- all together ----------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    struct command command;
    char **environ_before = environ;
    FILE *stdout_before = stdout;
    FILE *stderr_before = stderr;
    char *said = NULL;
    size_t said_size = 0;
    bool must_say = false;

    read_command(&command, &in);
    if (command.words_count > 0) {
        FILE *listener = open_memstream(&said, &said_size);

        must(listener != NULL);
        environ = command.variables;
        if (strcmp(command.words[0], "musterd") == 0) {
            try_broker(&command);
        } else if (strcmp(command.words[0], "env") == 0) {
            try_identity(&command);
        } else {
            stdout = stderr = listener;
            must_say =
                strcmp(command.words[0], "run") == 0 ? try_run(&command) : try_verb(&command);
        }
        environ = environ_before;
        stdout = stdout_before;
        stderr = stderr_before;
        fclose(listener);
        must(!must_say || said_size > 0);
        free(said);
    }
    free_command(&command);
    return 0;
}
