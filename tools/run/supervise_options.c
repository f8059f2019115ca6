/* supervise_options - reading the words of `muster run`; see supervise_options.h. */
#include "tools/run/supervise_options.h"

#include "client/query/query_address.h"
#include "schema/nearest.h"
#include "schema/number.h"
#include "schema/wire/wire.h"
#include "tools/run/supervise.h"
#include "tools/tool.h"

#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: muster run [options] [--] COMMAND [ARGUMENT...]\n"
    "Starts the ranks of a job on this host and restarts them together.\n"
    "\n"
    "  -n, --ranks N            ranks to start here (default 1). Under a launcher that has given\n"
    "                           this process a rank (srun, mpirun, torchrun), only that rank\n"
    "  -j, --job NAME           the job's name (MUSTER_JOB; default: the scheduler's job id, else\n"
    "                           the command's name)\n"
    "  -b, --broker ADDR        the broker (MUSTER_BROKER)\n"
    "      --relay              one connection of this host to the broker, for all its ranks\n"
    "      --launcher           COMMAND starts the ranks itself, as torchrun, accelerate launch,\n"
    "                           deepspeed and srun do. It gets no rank. The broker's record of\n"
    "                           the job says whether it was preempted, whatever COMMAND exits "
    "with\n"
    "      --nodes MIN[:MAX]    start the same command on each host: the hosts form each launch.\n"
    "                           It begins with MAX hosts, or with MIN after --join-wait-ms. When\n"
    "                           another host comes, the job saves and all begin again with it. A\n"
    "                           host that is told to end leaves. All hosts need the same broker\n"
    "                           and job\n"
    "      --node-rank N        the place that this host asks for (default: any)\n"
    "      --join-wait-ms N     how long MIN hosts wait for one more (default 30000)\n"
    "      --host-address ADDR  where the other hosts reach this one (default: the address that\n"
    "                           it has towards the broker)\n"
    "      --output DIR         also append what rank R prints to DIR/R.log, and write why it\n"
    "                           failed to DIR/R.error.json (removed when R starts again)\n"
    "      --fallback           if a rank finds the newest checkpoint damaged, all ranks take the\n"
    "                           next older one (MUSTER_FALLBACK=1), and newer ones no longer "
    "count\n"
    "      --max-failures N     how many failed launches are restarted (default 3, -1 = all)\n"
    "      --max-preemptions N  how many preempted launches are restarted (default -1 = all)\n"
    "      --restart-code N     exit code that asks for a restart (MUSTER_RESTART_CODE; default "
    "42)\n"
    "      --restart-preset P   gcp (143), kubeflow (143) or slurm (75) instead; signal\n"
    "                           (143): `muster run` then dies of the signal that ended the job\n"
    "      --grace-ms N         the time from a failure until the other ranks get SIGTERM, and\n"
    "                           from there until SIGKILL (default 10000)\n"
    "      --leave-ms N         the same, from when the first rank left with the restart code,\n"
    "                           while another rank is in training (default 120000)\n"
    "      --stop-ms N          the time from a forwarded SIGTERM, SIGINT or SIGHUP until SIGKILL\n"
    "                           (default 600000, 0 = never)\n"
    "      --backoff-ms N       the pause before the first restart after a failure, or after a\n"
    "                           preemption that left no newer checkpoint; it doubles up to 30 s\n"
    "                           (default 1000). Any other preemption is restarted at once\n"
    "      --log-level LEVEL    error, warning, info or debug: how much this command and the\n"
    "                           library in the ranks log (MUSTER_LOG; default: info for this\n"
    "                           command, warning for the library)\n"
    "\n"
    "It passes on what rank R prints line by line, with [R] before each line. It passes SIGTERM,\n"
    "SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 to the ranks' processes; if one ends a shell, the\n"
    "program that the shell left running gets it. A second SIGINT kills the ranks. SIGKILL of\n"
    "`muster run` kills its ranks at once, even in the middle of a save. Exit codes of ranks: 0\n"
    "finished, the restart code: restart me, 93: do not restart, anything else: failure.\n"
    "`muster run` exits with 0 when all ranks finished, with the restart code when it was told\n"
    "to end, with 130 at Ctrl-C, 127 if there is no such program and 126 if it cannot be\n"
    "executed, else with the code of the first rank that failed (128 + its signal); 2: the\n"
    "command line is wrong.\n";

enum {
    OPT_OUTPUT = 256,
    OPT_NODES,
    OPT_NODE_RANK,
    OPT_JOIN_WAIT,
    OPT_HOST_ADDRESS,
    OPT_FALLBACK,
    OPT_LAUNCHER,
    OPT_RELAY,
    OPT_LOG_LEVEL,
    OPT_MAX_FAILURES,
    OPT_MAX_PREEMPTIONS,
    OPT_RESTART_CODE,
    OPT_RESTART_PRESET,
    OPT_GRACE,
    OPT_LEAVE,
    OPT_STOP,
    OPT_BACKOFF,
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"job", required_argument, NULL, 'j'},
    {"broker", required_argument, NULL, 'b'},
    {"help", no_argument, NULL, 'h'},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"node-rank", required_argument, NULL, OPT_NODE_RANK},
    {"join-wait-ms", required_argument, NULL, OPT_JOIN_WAIT},
    {"host-address", required_argument, NULL, OPT_HOST_ADDRESS},
    {"relay", no_argument, NULL, OPT_RELAY},
    {"launcher", no_argument, NULL, OPT_LAUNCHER},
    {"fallback", no_argument, NULL, OPT_FALLBACK},
    {"max-failures", required_argument, NULL, OPT_MAX_FAILURES},
    {"max-preemptions", required_argument, NULL, OPT_MAX_PREEMPTIONS},
    {"restart-code", required_argument, NULL, OPT_RESTART_CODE},
    {"restart-preset", required_argument, NULL, OPT_RESTART_PRESET},
    {"grace-ms", required_argument, NULL, OPT_GRACE},
    {"leave-ms", required_argument, NULL, OPT_LEAVE},
    {"stop-ms", required_argument, NULL, OPT_STOP},
    {"backoff-ms", required_argument, NULL, OPT_BACKOFF},
    {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
    {NULL, 0, NULL, 0},
};

bool run_fail(const char *format, ...)
{
    va_list args;

    fputs("muster run: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

bool run_usage_error(const char *format, ...)
{
    char text[1200];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return run_fail("%s; `muster run --help` lists the options", text);
}

static bool supervise_options_number_take(const char *name, const char *text, int min, int max,
                                          int *ret_value)
{
    int64_t value;

    if (!number_read(text, min, max, &value))
        return run_usage_error("%s must be a number from %d to %d, not \"%s\"", name, min, max,
                               text);
    *ret_value = (int)value;
    return true;
}

static bool supervise_options_code_take(const char *name, const char *text, int *ret_code)
{
    if (!supervise_options_number_take(name, text, 1, 255, ret_code))
        return false;
    if (*ret_code == SUPERVISE_CODE_NO_RESTART)
        return run_usage_error("%s cannot be %d, which means \"do not restart\"", name,
                               SUPERVISE_CODE_NO_RESTART);
    return true;
}

static bool supervise_options_preset_take(const char *name, struct run_options *o)
{
    static const struct {
        const char *name;
        int code;
    } presets[] = {{"gcp", 143}, {"kubeflow", 143}, {"slurm", 75}, {"signal", 143}};

    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(name, presets[i].name) == 0) {
            o->restart_code = presets[i].code;
            o->reraise = strcmp(name, "signal") == 0;
            return true;
        }
    }
    return run_usage_error("--restart-preset must be gcp, kubeflow, signal or slurm, not \"%s\"",
                           name);
}

static bool supervise_options_job_take(const char *name)
{
    if (!wire_job_name_ok(name))
        return run_usage_error(
            "--job \"%.100s\" cannot be a job's name: use 1 to %d of A-Z a-z 0-9 . _ -, "
            "not beginning with . or -",
            name, JOB_NAME_MAX);
    return true;
}

static bool supervise_options_restart_code_take(struct run_options *o, int option,
                                                const char *value)
{
    if (o->code_given)
        return run_usage_error(
            "--restart-code and --restart-preset can be given once, and not both");
    o->code_given = true;
    return option == OPT_RESTART_CODE
               ? supervise_options_code_take("--restart-code", value, &o->restart_code)
               : supervise_options_preset_take(value, o);
}

/* "2" or "2:4". */
static bool supervise_options_nodes_take(struct run_options *o, const char *value)
{
    const char *colon = strchr(value, ':');
    char least[16];

    snprintf(least, sizeof least, "%.*s", colon != NULL ? (int)(colon - value) : 15, value);
    if (!supervise_options_number_take("--nodes", least, 1, HOSTS_MAX, &o->nodes_min))
        return false;
    o->nodes_max = o->nodes_min;
    if (colon != NULL &&
        !supervise_options_number_take("--nodes", colon + 1, 1, HOSTS_MAX, &o->nodes_max))
        return false;
    if (o->nodes_max < o->nodes_min)
        return run_usage_error("--nodes %s: the first number is the least, the second the most",
                               value);
    return true;
}

static bool supervise_options_hosts_fit(const struct run_options *o)
{
    if (o->nodes_max == 0 && (o->node_rank >= 0 || o->host_address != NULL))
        return run_usage_error("--node-rank and --host-address need --nodes");
    if (o->nodes_max > 0 && o->launcher)
        return run_usage_error("--nodes contradicts --launcher: the launcher knows its hosts");
    if (o->nodes_max > 0 && o->node_rank >= o->nodes_max)
        return run_usage_error("--node-rank is from 0 to %d with these --nodes", o->nodes_max - 1);
    if (o->host_address != NULL && strlen(o->host_address) > HOST_MAX)
        return run_usage_error("--host-address has at most %d bytes", HOST_MAX);
    return true;
}

/* getopt has already printed what is wrong. */
static bool supervise_options_word_is_wrong(const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    struct nearest nearest = {.word = is_long ? word + 2 : word};
    char hint[NEAREST_HINT_MAX] = "";

    nearest.length = strcspn(nearest.word, "=");
    for (const struct option *known = long_options; is_long && known->name != NULL; known++)
        nearest_offer(&nearest, known->name);
    if (nearest.best_edits > 0)
        nearest_hint(&nearest, "--", hint);
    return run_usage_error("the command line is wrong%s", hint);
}

static bool option_take(struct run_options *o, int option, const char *value)
{
    switch (option) {
    case 'n':
        return supervise_options_number_take("-n", value, 1, RUN_RANKS_MAX, &o->count);
    case 'j':
        o->job = value;
        return supervise_options_job_take(value);
    case 'b':
        o->broker = value;
        return true;
    case OPT_OUTPUT:
        o->directory = value;
        return true;
    case OPT_NODES:
        return supervise_options_nodes_take(o, value);
    case OPT_NODE_RANK:
        return supervise_options_number_take("--node-rank", value, 0, HOSTS_MAX - 1, &o->node_rank);
    case OPT_JOIN_WAIT:
        return supervise_options_number_take("--join-wait-ms", value, 0, INT_MAX, &o->join_wait_ms);
    case OPT_HOST_ADDRESS:
        o->host_address = value;
        return true;
    case OPT_RELAY:
        o->relay = true;
        return true;
    case OPT_LAUNCHER:
        o->launcher = true;
        return true;
    case OPT_FALLBACK:
        o->fallback = true;
        return true;
    case OPT_MAX_FAILURES:
        return supervise_options_number_take("--max-failures", value, -1, INT_MAX,
                                             &o->max_failures);
    case OPT_MAX_PREEMPTIONS:
        return supervise_options_number_take("--max-preemptions", value, -1, INT_MAX,
                                             &o->max_preemptions);
    case OPT_RESTART_CODE:
    case OPT_RESTART_PRESET:
        return supervise_options_restart_code_take(o, option, value);
    case OPT_GRACE:
        return supervise_options_number_take("--grace-ms", value, 0, INT_MAX, &o->grace_ms);
    case OPT_LEAVE:
        return supervise_options_number_take("--leave-ms", value, 0, INT_MAX, &o->leave_ms);
    case OPT_STOP:
        return supervise_options_number_take("--stop-ms", value, 0, INT_MAX, &o->stop_ms);
    case OPT_LOG_LEVEL:
        return setenv("MUSTER_LOG", value, 1) == 0; /* the ranks inherit it */
    case OPT_BACKOFF:
        return supervise_options_number_take("--backoff-ms", value, 0, INT_MAX, &o->backoff_ms);
    default:
        return supervise_options_word_is_wrong(value);
    }
}

/* MUSTER_LOG, for this command. The library refuses an unknown level in the same words. */
static bool supervise_options_log_level_read(bool *ret_quiet)
{
    static const char *const levels[] = {"none", "error", "warning", "info", "debug"};
    const char *level = getenv("MUSTER_LOG");

    if (level == NULL || level[0] == '\0')
        return true;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(level, levels[i]) == 0) {
            *ret_quiet = i < 3;
            return true;
        }
    return run_usage_error(
        "MUSTER_LOG or --log-level is \"%.60s\"; it takes none, error, warning, info or debug",
        level);
}

static const char *supervise_options_env_or_null(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool run_options_read(struct run_options *o, int argc, char **argv, int *ret_code)
{
    static char name[] = "muster run";
    const char *code = supervise_options_env_or_null("MUSTER_RESTART_CODE");
    struct supervise_policy policy;
    struct muster_error err;
    int option;

    supervise_defaults(&policy, 1);
    *o = (struct run_options){
        .broker = supervise_options_env_or_null("MUSTER_BROKER"),
        .restart_code = policy.restart_code,
        .max_failures = policy.max_failures,
        .max_preemptions = policy.max_preemptions,
        .grace_ms = (int)policy.grace_ms,
        .leave_ms = (int)policy.leave_ms,
        .stop_ms = (int)policy.stop_ms,
        .backoff_ms = (int)policy.backoff_ms,
        .node_rank = -1,
        .join_wait_ms = 30000,
    };
    *ret_code = TOOL_USAGE;
    optind = 0;     /* the main program may have used getopt */
    argv[0] = name; /* for getopt's own messages */
    while ((option = getopt_long(argc, argv, "+n:j:b:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage_text, stdout);
            *ret_code = TOOL_DONE;
            return false;
        }
        if (!option_take(o, option, option == '?' ? argv[optind - 1] : optarg))
            return false;
    }
    if (o->launcher && o->count > 0)
        return run_usage_error("-n contradicts --launcher: the launcher starts the ranks, so tell "
                               "it how many");
    if (!supervise_options_hosts_fit(o))
        return false;
    if (!o->code_given && code != NULL &&
        !supervise_options_code_take("MUSTER_RESTART_CODE", code, &o->restart_code))
        return false;
    if (!supervise_options_log_level_read(&o->quiet))
        return false;
    if (o->broker != NULL && query_address_check(o->broker, &err) != MUSTER_OK)
        return run_usage_error("%s", err.text);
    o->argv = argv + optind;
    if (o->argv[0] == NULL)
        return run_usage_error("no command was given");
    return true;
}
