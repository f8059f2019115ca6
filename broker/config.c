/* config - see config.h. */
#include "broker/config.h"

#include "broker/bus.h"
#include "broker/core/contract/core.h"
#include "schema/error.h"
#include "schema/limits.h"
#include "schema/nearest.h"
#include "schema/number.h"
#include "schema/paths.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048
#define NAME_BYTES_MAX 32

enum option_type {
    OPTION_TEXT,
    OPTION_PATH,
    OPTION_FLAG,
    OPTION_ONCE,
    OPTION_MS,
    OPTION_COUNT,
    OPTION_FORMAT,
    OPTION_LEVEL
};

/* OPTION_ONCE: asks for one thing that musterd does before it ends. It is a flag alone: in a
 * service's file it would end each start. */
static const struct option {
    const char *name; /* as a flag; with '_' and upper case in the other two */
    enum option_type type;
    size_t offset;
} options[] = {
    {"listen", OPTION_TEXT, offsetof(struct config, listen)},
    {"db", OPTION_PATH, offsetof(struct config, db)},
    {"shared", OPTION_TEXT, offsetof(struct config, shared)},
    {"port-file", OPTION_PATH, offsetof(struct config, port_file)},
    {"relay", OPTION_TEXT, offsetof(struct config, relay)},
    {"key-file", OPTION_PATH, offsetof(struct config, key_file)},
    {"metrics", OPTION_TEXT, offsetof(struct config, metrics)},
    {"log-format", OPTION_FORMAT, offsetof(struct config, log_format)},
    {"log-level", OPTION_LEVEL, offsetof(struct config, log_level)},
    {"join-timeout-ms", OPTION_MS, offsetof(struct config, join_timeout_ms)},
    {"keep-jobs", OPTION_COUNT, offsetof(struct config, keep_jobs)},
    {"keep-jobs-days", OPTION_COUNT, offsetof(struct config, keep_jobs_days)},
    {"allow-network-fs", OPTION_FLAG, offsetof(struct config, allow_network_fs)},
    {"sign", OPTION_FLAG, offsetof(struct config, sign)},
    {"migrate", OPTION_ONCE, offsetof(struct config, migrate)},
    {"check-config", OPTION_ONCE, offsetof(struct config, check_config)},
};
#define OPTIONS_COUNT (sizeof options / sizeof *options)

static const char help[] =
    "usage: musterd [OPTION...]\n"
    "\n"
    "The broker of muster: it decides at which step a job saves, and keeps the record.\n"
    "Without options it listens on a socket that only this user can reach.\n"
    "\n"
    "  --listen ADDRESS       ipc:///PATH, tcp://127.0.0.1:PORT (events use PORT + 1) or\n"
    "                         tcp://127.0.0.1:* for any free ports; an address that other\n"
    "                         hosts reach needs a key first: see `muster key`\n"
    "  --db PATH              the database; each musterd needs its own\n"
    "  --shared POSTGRESQL    postgresql://HOST/DATABASE, as psql takes it: several brokers keep\n"
    "                         their records there, and one is active; if it dies or is told\n"
    "                         to end, another goes on. Each then keeps a copy at --db\n"
    "  --allow-network-fs     allow a database on a network file system; only if no other\n"
    "                         host uses it\n"
    "  --port-file FILE       once ready, write both endpoints there, one per line\n"
    "  --relay ADDRESS[,...]  be a relay, not a broker: the ranks of this host connect to "
    "--listen\n"
    "                         (default: relay.sock), and it alone connects to ADDRESS\n"
    "  --key-file FILE        the key that a relay shows to the broker, as made by `muster key`\n"
    "  --metrics HOST:PORT    answer GET /metrics there, for Prometheus, without a password:\n"
    "                         127.0.0.1:7790 is for this host alone\n"
    "  --join-timeout-ms MS   how long all ranks of a job may take to join and restore\n"
    "                         (default 600000)\n"
    "  --keep-jobs N          how many ended jobs are remembered (default 10000, 0: all); jobs\n"
    "                         without checkpoints go first, a job with a pin stays\n"
    "  --keep-jobs-days DAYS  for how long ended jobs are remembered (default 365, 0: for ever);\n"
    "                         no file is deleted\n"
    "  --sign                 sign each manifest; `muster key add --sign` makes the key for it\n"
    "  --log-format FORMAT    text (default) or json; one line per record, on stderr\n"
    "  --log-level LEVEL      the lowest level to log: error, warning, info (default) or debug\n"
    "  --config FILE          read options from FILE, as `listen = ADDRESS`, one per line\n"
    "  --migrate              make the database, or bring it to this version, and exit\n"
    "  --check-config         print the options in effect, as such a FILE, and exit: with 2 if "
    "one\n"
    "                         is wrong\n"
    "  --version, --help\n"
    "\n"
    "Options above --migrate can also be set in the environment (--port-file is\n"
    "MUSTER_PORT_FILE) or in FILE (port_file). A flag wins over the environment, and the\n"
    "environment wins over FILE.\n"
    "\n"
    "Defaults: db $XDG_STATE_HOME/muster/muster.db (root: /var/lib/muster/muster.db),\n"
    "listen ipc://$XDG_RUNTIME_DIR/muster/broker.sock (root: ipc:///run/muster/broker.sock;\n"
    "without XDG_RUNTIME_DIR: ipc:///tmp/muster-UID/broker.sock).\n"
    "SIGTERM and SIGINT end it cleanly. Exit codes: 0 ended by a signal, 1 failure, 2 wrong "
    "usage.\n";

const char *config_help(void)
{
    return help;
}

/* --- values ----------------------------------------------------------------------------------- */

static enum muster_status config_no_memory(struct muster_error *err)
{
    return error_set(err, MUSTER_E_NOMEM, "no memory for the configuration");
}

static enum muster_status config_set_text(char **field, const char *value, struct muster_error *err)
{
    char *copy = strdup(value);

    if (copy == NULL)
        return config_no_memory(err);
    free(*field);
    *field = copy;
    return MUSTER_OK;
}

static enum muster_status config_wrong(const char *where, const char *value, const char *expected,
                                       struct muster_error *err)
{
    return error_set(err, MUSTER_E_ARGUMENT, "%s: \"%s\" is not %s", where, value, expected);
}

static enum muster_status config_set_flag(bool *field, const char *where, const char *value,
                                          struct muster_error *err)
{
    static const char *const words[][2] = {
        {"0", "1"}, {"no", "yes"}, {"false", "true"}, {"off", "on"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (size_t on = 0; on < 2; on++) {
            if (strcmp(value, words[i][on]) == 0) {
                *field = on == 1;
                return MUSTER_OK;
            }
        }
    }
    return config_wrong(where, value, "yes or no", err);
}

static enum muster_status config_set_number(int64_t *field, const char *where, const char *value,
                                            long long least, long long most, const char *expected,
                                            struct muster_error *err)
{
    return number_read(value, least, most, field) ? MUSTER_OK
                                                  : config_wrong(where, value, expected, err);
}

static enum muster_status config_set_value(struct config *config, const struct option *option,
                                           const char *where, const char *value,
                                           struct muster_error *err)
{
    void *field = (char *)config + option->offset;

    switch (option->type) {
    case OPTION_FLAG:
    case OPTION_ONCE:
        return config_set_flag(field, where, value, err);
    case OPTION_MS:
        return config_set_number(field, where, value, 1, INT32_MAX,
                                 "a number of milliseconds from 1 to 2147483647", err);
    case OPTION_COUNT:
        return config_set_number(field, where, value, 0, 10000000, "a number from 0 to 10000000",
                                 err);
    case OPTION_FORMAT:
        if (strcmp(value, "text") != 0 && strcmp(value, "json") != 0)
            return config_wrong(where, value, "text or json", err);
        *(enum log_format *)field = value[0] == 'j' ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
        return MUSTER_OK;
    case OPTION_LEVEL:
        if (!broker_log_level_named(value, field))
            return config_wrong(where, value, "error, warning, info or debug", err);
        return MUSTER_OK;
    case OPTION_TEXT:
    case OPTION_PATH:
        if (value[0] == '\0')
            return config_wrong(where, value, "a value", err);
        return config_set_text(field, value, err);
    }
    return MUSTER_OK;
}

/* Of a file or the environment. */
static enum muster_status config_set_for_good(struct config *config, const struct option *option,
                                              const char *where, const char *value,
                                              struct muster_error *err)
{
    enum muster_status status = config_set_value(config, option, where, value, err);
    const bool *field = (const bool *)((const char *)config + option->offset);

    return status == MUSTER_OK && option->type == OPTION_ONCE && *field
               ? error_set(err, MUSTER_E_ARGUMENT,
                           "%s: each start would end at once; give musterd --%s when you want it",
                           where, option->name)
               : status;
}

/* '-' and '_' are the same, so that a name can be copied from anywhere. */
static const struct option *config_find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < OPTIONS_COUNT; i++) {
        size_t at = 0;

        while (at < length && options[i].name[at] != '\0' &&
               options[i].name[at] == (name[at] == '_' ? '-' : name[at]))
            at++;
        if (at == length && options[i].name[at] == '\0')
            return &options[i];
    }
    return NULL;
}

/* With the option that was probably meant, which PREFIX stands before. */
static enum muster_status config_no_option(const char *where, const char *name, size_t length,
                                           const char *prefix, struct muster_error *err)
{
    struct nearest nearest = {.word = name, .length = length};
    char hint[NEAREST_HINT_MAX];

    for (size_t i = 0; i < OPTIONS_COUNT; i++)
        nearest_offer(&nearest, options[i].name);
    if (length == strlen("insecure") && strncmp(name, "insecure", length) == 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s%s%s is gone: nobody on a network is let in without a key. Take it "
                         "out, make a key with `muster key add NAME --job JOB`, and start musterd "
                         "again",
                         where, prefix, "insecure");
    nearest_offer(&nearest, "config");
    nearest_hint(&nearest, prefix, hint);
    return error_set(err, MUSTER_E_ARGUMENT, "%sthere is no option %s%.*s%s; see musterd --help",
                     where, prefix, (int)length, name, hint);
}

/* --- the three places ------------------------------------------------------------------------- */

static char *config_trim(char *text)
{
    size_t length;

    while (isspace((unsigned char)*text))
        text++;
    length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

static enum muster_status config_take_line(struct config *config, const char *path, int number,
                                           char *line, struct muster_error *err)
{
    char where[LINE_BYTES_MAX];
    char *text = config_trim(line);
    char *equals = strchr(text, '=');
    const struct option *option;
    char *name;

    if (text[0] == '\0' || text[0] == '#')
        return MUSTER_OK;
    if (equals == NULL)
        return error_set(err, MUSTER_E_ARGUMENT, "%s line %d: write NAME = VALUE, or # COMMENT",
                         path, number);
    *equals = '\0';
    name = config_trim(text);
    option = config_find_option(name, strlen(name));
    if (option == NULL) {
        snprintf(where, sizeof where, "%s line %d: ", path, number);
        return config_no_option(where, name, strlen(name), "", err);
    }
    snprintf(where, sizeof where, "%s line %d: %s", path, number, name);
    return config_set_for_good(config, option, where, config_trim(equals + 1), err);
}

static enum muster_status config_take_file(struct config *config, const char *path,
                                           struct muster_error *err)
{
    char line[LINE_BYTES_MAX];
    FILE *file = fopen(path, "re");
    enum muster_status status = MUSTER_OK;

    if (file == NULL)
        return error_set_code(err, MUSTER_E_IO, errno, "cannot read configuration %s: %s", path,
                              strerror(errno));
    for (int number = 1; status == MUSTER_OK && fgets(line, sizeof line, file) != NULL; number++) {
        if (strlen(line) == sizeof line - 1)
            status = error_set(err, MUSTER_E_ARGUMENT, "%s line %d is too long", path, number);
        else
            status = config_take_line(config, path, number, line, err);
    }
    if (status == MUSTER_OK && ferror(file))
        status = error_set_code(err, MUSTER_E_IO, errno, "cannot read configuration %s: %s", path,
                                strerror(errno));
    fclose(file);
    return status;
}

static const char *config_from_environment(const char *name, char *ret_variable)
{
    const char *value;
    size_t at = (size_t)sprintf(ret_variable, "MUSTER_");

    for (; *name != '\0'; name++)
        ret_variable[at++] = (char)(*name == '-' ? '_' : toupper((unsigned char)*name));
    ret_variable[at] = '\0';
    value = getenv(ret_variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum muster_status config_take_environment(struct config *config, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < OPTIONS_COUNT && status == MUSTER_OK; i++) {
        char variable[NAME_BYTES_MAX];
        const char *value = config_from_environment(options[i].name, variable);

        if (value != NULL)
            status = config_set_for_good(config, &options[i], variable, value, err);
    }
    return status;
}

/* A flag as "--name=value", "--name value", or "--name" alone. */
struct flag {
    const char *name;
    size_t length;
    const char *value; /* NULL = none was given with it */
};

static enum muster_status config_split_flag(const char *argument, struct flag *ret_flag,
                                            struct muster_error *err)
{
    if (strncmp(argument, "--", 2) != 0 || argument[2] == '\0')
        return error_set(err, MUSTER_E_ARGUMENT,
                         "musterd takes options only, not \"%s\"; see musterd --help", argument);
    ret_flag->name = argument + 2;
    ret_flag->length = strcspn(ret_flag->name, "=");
    ret_flag->value =
        ret_flag->name[ret_flag->length] == '=' ? ret_flag->name + ret_flag->length + 1 : NULL;
    return MUSTER_OK;
}

static bool config_flag_is(const struct flag *flag, const char *name)
{
    return strlen(name) == flag->length && strncmp(flag->name, name, flag->length) == 0;
}

/* One argument, or two. config NULL: only --config is taken; for all others the name is checked. */
static enum muster_status config_take_flag(int argc, char *const *argv, int *at,
                                           struct config *config, const char **config_path,
                                           struct muster_error *err)
{
    const char *argument = argv[*at];
    struct flag flag = {0};
    const struct option *option;
    enum muster_status status = config_split_flag(argument, &flag, err);
    bool is_config;

    if (status != MUSTER_OK)
        return status;
    is_config = config_flag_is(&flag, "config");
    option = config_find_option(flag.name, flag.length);
    if (option == NULL && !is_config)
        return config_no_option("", flag.name, flag.length, "--", err);
    if (flag.value == NULL && option != NULL &&
        (option->type == OPTION_FLAG || option->type == OPTION_ONCE))
        flag.value = "yes";
    else if (flag.value == NULL && *at + 1 < argc)
        flag.value = argv[++*at];
    if (flag.value == NULL)
        return error_set(err, MUSTER_E_ARGUMENT, "option %s needs a value; see musterd --help",
                         argument);
    if (is_config)
        *config_path = flag.value;
    else if (config != NULL)
        return config_set_value(config, option, argument, flag.value, err);
    return MUSTER_OK;
}

static enum muster_status config_take_flags(int argc, char *const *argv, struct config *config,
                                            const char **config_path, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (int at = 1; at < argc && status == MUSTER_OK; at++)
        status = config_take_flag(argc, argv, &at, config, config_path, err);
    return status;
}

/* --- defaults --------------------------------------------------------------------------------- */

enum muster_status config_default_db(unsigned uid, char **ret_path, struct muster_error *err)
{
    char path[PATH_BYTES_MAX + 1];

    if (!paths_default_db(uid, getenv("XDG_STATE_HOME"), getenv("HOME"), path))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "neither XDG_STATE_HOME nor HOME says where the database should be; name "
                         "it with --db PATH");
    return config_set_text(ret_path, path, err);
}

enum muster_status config_default_listen(unsigned uid, char **ret_endpoint,
                                         struct muster_error *err)
{
    char endpoint[ENDPOINT_MAX + 1];

    if (!paths_default_endpoint(uid, getenv("XDG_RUNTIME_DIR"), endpoint))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "XDG_RUNTIME_DIR is too long for a socket; name one with --listen");
    return config_set_text(ret_endpoint, endpoint, err);
}

static enum muster_status config_default_relay(unsigned uid, char **ret_endpoint,
                                               struct muster_error *err)
{
    char endpoint[ENDPOINT_MAX + 1];
    char *name;

    if (!paths_default_endpoint(uid, getenv("XDG_RUNTIME_DIR"), endpoint) ||
        (name = strrchr(endpoint, '/')) == NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "XDG_RUNTIME_DIR is too long for a socket; name one with --listen");
    memcpy(name, "/relay.sock", sizeof "/relay.sock"); /* shorter than broker.sock */
    return config_set_text(ret_endpoint, endpoint, err);
}

/* A relay has no database. */
static enum muster_status config_relay_defaults(struct config *config, struct muster_error *err)
{
    const char *wrong = config->shared != NULL    ? "--shared"
                        : config->sign            ? "--sign"
                        : config->migrate         ? "--migrate"
                        : config->metrics != NULL ? "--metrics"
                                                  : NULL;

    if (wrong != NULL)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "%s is for a broker, and --relay starts none: give it to the musterd "
                         "at %s",
                         wrong, config->relay);
    return config->listen == NULL ? config_default_relay((unsigned)geteuid(), &config->listen, err)
                                  : MUSTER_OK;
}

static enum muster_status config_fill_defaults(struct config *config, struct muster_error *err)
{
    const unsigned uid = (unsigned)geteuid();
    enum muster_status status = MUSTER_OK;

    if (config->relay != NULL)
        return config_relay_defaults(config, err);
    if (config->db != NULL && paths_is_postgres(config->db))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "--db takes the path of a file; the address of a PostgreSQL database is "
                         "given with --shared, beside --db for this broker's copy");
    if (config->db == NULL)
        status = config_default_db(uid, &config->db, err);
    if (status == MUSTER_OK && config->listen == NULL)
        status = config_default_listen(uid, &config->listen, err);
    if (status == MUSTER_OK)
        status =
            bus_check_listen(config->listen, NULL, err); /* main.c knows whether there are keys */
    return status;
}

/* --- all together ----------------------------------------------------------------------------- */

static bool config_asks_for(int argc, char *const *argv, const char *flag)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], flag) == 0)
            return true;
    }
    return false;
}

enum muster_status config_parse(int argc, char *const *argv, struct config *ret_config,
                                struct muster_error *err)
{
    const char *path = getenv("MUSTER_CONFIG");
    enum muster_status status;

    *ret_config = (struct config){.keep_jobs = KEEP_JOBS_DEFAULT,
                                  .keep_jobs_days = KEEP_JOBS_DAYS_DEFAULT,
                                  .show_help = config_asks_for(argc, argv, "--help"),
                                  .show_version = config_asks_for(argc, argv, "--version")};
    ret_config->log_level = LOG_LEVEL_INFO;
    if (ret_config->show_help || ret_config->show_version)
        return MUSTER_OK;
    status = config_take_flags(argc, argv, NULL, &path, err); /* where is the file? */
    if (status == MUSTER_OK && path != NULL && path[0] != '\0')
        status = config_take_file(ret_config, path, err);
    if (status == MUSTER_OK)
        status = config_take_environment(ret_config, err);
    if (status == MUSTER_OK)
        status = config_take_flags(argc, argv, ret_config, &path, err);
    if (status == MUSTER_OK)
        status = config_fill_defaults(ret_config, err);
    return status;
}

/* Hides a password: between USER: and the last @, or after password=. */
static void config_put_address(FILE *out, const char *address)
{
    const char *from = strstr(address, "://");
    const char *until = strrchr(address, '@');

    from = from == NULL ? NULL : strchr(from + 3, ':');
    for (const char *at = address; *at != '\0'; at++) {
        fputc(*at, out);
        if (at == from && until != NULL && until > from) {
            fputs("***", out);
            at = until - 1;
        } else if (strncmp(at, "password=", 9) == 0) {
            fputs("assword=***", out);
            at += 8 + strcspn(at + 9, "&");
        }
    }
}

static void config_put(FILE *out, const struct config *config, const struct option *option)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    const void *field = (const char *)config + option->offset;

    for (const char *at = option->name; *at != '\0'; at++)
        fputc(*at == '-' ? '_' : *at, out);
    switch (option->type) {
    case OPTION_TEXT:
    case OPTION_PATH:
        fputs(" = ", out);
        if (option->offset == offsetof(struct config, shared))
            config_put_address(out, *(char *const *)field);
        else
            fputs(*(char *const *)field, out);
        fputc('\n', out);
        break;
    case OPTION_FLAG:
    case OPTION_ONCE:
        fprintf(out, " = %s\n", *(const bool *)field ? "yes" : "no");
        break;
    case OPTION_MS:
    case OPTION_COUNT:
        fprintf(out, " = %" PRId64 "\n", *(const int64_t *)field);
        break;
    case OPTION_FORMAT:
        fprintf(out, " = %s\n",
                *(const enum log_format *)field == LOG_FORMAT_JSON ? "json" : "text");
        break;
    case OPTION_LEVEL:
        fprintf(out, " = %s\n", levels[*(const enum log_level *)field]);
        break;
    }
}

/* Without a value, or with the one that stands for the default. */
static bool config_is_unset(const struct config *config, const struct option *option)
{
    const void *field = (const char *)config + option->offset;

    if (option->type == OPTION_ONCE)
        return true;
    if (option->type == OPTION_TEXT || option->type == OPTION_PATH)
        return *(char *const *)field == NULL;
    return option->type == OPTION_MS && *(const int64_t *)field == 0;
}

char *config_text(const struct config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < OPTIONS_COUNT; i++)
        if (!config_is_unset(config, &options[i]))
            config_put(out, config, &options[i]);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

void config_free(struct config *config)
{
    free(config->listen);
    free(config->db);
    free(config->shared);
    free(config->port_file);
    free(config->metrics);
    free(config->relay);
    free(config->key_file);
    *config = (struct config){0};
}
