/* cmd_init - `muster init`: the files that a broker and a first job on this machine need, with a
 * comment on each line that one may want to change.
 * Never: overwrites a file; starts anything. */
#include "tools/setup/setup.h"

#include "tools/tool.h"
#include "tools/verbs.h"

#include "schema/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct init {
    struct tool *tool;
    bool hosts; /* others use the broker, too */
    bool slurm; /* this machine submits to it */
    const char *job;
    char dir[PATH_MAX / 2]; /* absolute */
    char db[PATH_BYTES_MAX + 1], listen[ENDPOINT_MAX + 1], broker[ENDPOINT_MAX + 300];
    char musterd[PATH_MAX], muster[PATH_MAX];
    int ranks;
};

static void init_path(const struct init *init, const char *name, char ret_path[PATH_MAX])
{
    snprintf(ret_path, PATH_MAX, "%s/%s", init->dir, name);
}

/* Opens a new file to write to; NULL: it was printed why there is none. */
static FILE *init_open(const struct init *init, const char *name, int mode)
{
    char path[PATH_MAX];
    FILE *file;
    int fd;

    init_path(init, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    if (file == NULL)
        tool_fail(TOOL_NO, "cannot write %s: %s; nothing of yours is overwritten", path,
                  strerror(errno));
    return file;
}

static int init_close(const struct init *init, const char *name, FILE *file, const char *what)
{
    bool ok = !ferror(file);

    if (fclose(file) != 0 || !ok)
        return tool_fail(TOOL_NO, "cannot write %s/%s: %s", init->dir, name, strerror(errno));
    fprintf(init->tool->out, "%s/%s  %s\n", init->dir, name, what);
    return TOOL_DONE;
}

/* --- the files -------------------------------------------------------------------------------- */

static int init_config(const struct init *init)
{
    FILE *file = init_open(init, "musterd.conf", 0644);

    if (file == NULL)
        return TOOL_NO;
    fprintf(file,
            "# musterd.conf - of the broker: musterd --config %s/musterd.conf\n"
            "# Each line is an option of musterd(8). A line without # counts.\n\n"
            "# Where jobs find it. %s\n"
            "listen = %s\n\n"
            "# Its record: on a disk of this host, never on a network file system.\n"
            "db = %s\n\n",
            init->dir,
            init->hosts ? "Open this port and the next one in the firewall."
                        : "This socket is for this user of this host alone.",
            init->listen, init->db);
    fputs("# Metrics for Prometheus, without a password: keep it on this host.\n"
          "# metrics = 127.0.0.1:7790\n\n"
          "# How long all ranks of a launch may take to join and restore.\n"
          "# join_timeout_ms = 600000\n\n"
          "# How many ended jobs are remembered, and for how many days. 0: all, for ever.\n"
          "# keep_jobs = 10000\n"
          "# keep_jobs_days = 365\n\n"
          "# text or json, and the least that is told: error, warning, info or debug.\n"
          "# log_format = text\n"
          "# log_level = info\n",
          file);
    return init_close(init, "musterd.conf", file, "the broker's options");
}

static int init_unit(const struct init *init)
{
    bool root = geteuid() == 0;
    FILE *file = init_open(init, "musterd.service", 0644);

    if (file == NULL)
        return TOOL_NO;
    fprintf(file,
            "# musterd.service - the broker as a service of this %s:\n"
            "#     systemctl %slink %s/musterd.service\n"
            "#     systemctl %senable --now musterd\n"
            "%s"
            "[Unit]\nDescription=muster broker\nDocumentation=man:musterd(8)\n"
            "StartLimitIntervalSec=0\n\n"
            "[Service]\nType=notify\nExecStart=\"%s\" --config \"%s/musterd.conf\"\n"
            "Restart=always\nRestartSec=1\nWatchdogSec=60\nLimitNOFILE=65536\nLimitCORE=0\n"
            "NoNewPrivileges=yes\n\n"
            "[Install]\nWantedBy=%s\n",
            root ? "host" : "user", root ? "" : "--user ", init->dir, root ? "" : "--user ",
            root ? "# The package muster-broker has one with a sandbox of its own.\n"
                 : "# So that it runs while you are logged out: loginctl enable-linger\n",
            init->musterd, init->dir, root ? "multi-user.target" : "default.target");
    return init_close(init, "musterd.service", file, "the broker as a service");
}

static void init_put_job(const struct init *init, FILE *file)
{
    fprintf(file,
            "# Where the broker is, and where checkpoints go%s.\n"
            "export MUSTER_BROKER='%s'\n"
            "export MUSTER_CHECKPOINT_DIR='%s/checkpoints'\n",
            init->hosts ? ": a directory that all hosts see" : "", init->broker, init->dir);
    if (init->hosts)
        fprintf(file, "export MUSTER_KEY_FILE='%s/%s.key'\n", init->dir, init->job);
    fputs("# Who tells that a machine goes away: SIGTERM does always; auto asks the cloud, too.\n"
          "export MUSTER_NOTICE_SOURCES=\"${MUSTER_NOTICE_SOURCES:-auto}\"\n\n",
          file);
}

static int init_script(const struct init *init)
{
    FILE *file = init_open(init, "job.sh", 0755);

    if (file == NULL)
        return TOOL_NO;
    fprintf(file,
            "#!/bin/sh\n"
            "# job.sh - %d ranks on this machine, started again together when they were "
            "preempted.\n"
            "#     ./job.sh                      trains the model of `muster demo`\n"
            "#     ./job.sh python3 train.py     trains yours\n",
            init->ranks);
    init_put_job(init, file);
    fprintf(file,
            "[ $# -gt 0 ] || set -- '%s' demo rank\n"
            "exec '%s' run -n %d --job '%s' -- \"$@\"\n",
            init->muster, init->muster, init->ranks, init->job);
    return init_close(init, "job.sh", file, "an example job");
}

static int init_batch(const struct init *init)
{
    FILE *file = init_open(init, "job.sbatch", 0644);

    if (file == NULL)
        return TOOL_NO;
    fprintf(file,
            "#!/bin/bash\n"
            "# job.sbatch - the same by Slurm: sbatch job.sbatch [PROGRAM...]\n"
            "# man muster-slurm explains each line.\n"
            "#SBATCH --job-name=%s\n"
            "#SBATCH --ntasks=%d\n"
            "#SBATCH --requeue --signal=TERM@120\n"
            "#SBATCH --open-mode=append\n",
            init->job, init->ranks);
    init_put_job(init, file);
    fprintf(file,
            "[ $# -gt 0 ] || set -- '%s' demo rank\n"
            "export MUSTER_JOB='%s'\n"
            "srun --kill-on-bad-exit=0 \"$@\"\n"
            "code=$?\n"
            "[ $code != 42 ] || scontrol requeue \"$SLURM_JOB_ID\"\n"
            "exit $code\n",
            init->muster, init->job);
    return init_close(init, "job.sbatch", file, "the same by Slurm");
}

/* By the verb that makes keys. */
static int init_key(const struct init *init)
{
    struct tool tool = *init->tool;
    char file[PATH_MAX];

    snprintf(file, sizeof file, "%s/%s.key", init->dir, init->job);
    tool.args[0] = "add";
    tool.args[1] = init->job;
    tool.args_count = 2;
    tool.values[OPTION_DB] = init->db;
    tool.values[OPTION_JOB] = init->job;
    tool.values[OPTION_FILE] = file;
    return cmd_key(&tool);
}

/* --- this machine ----------------------------------------------------------------------------- */

static int init_directory(struct init *init)
{
    const char *name = init->tool->args_count > 0 ? init->tool->args[0] : "muster";
    char *real;

    if (mkdir(name, 0755) != 0 && errno != EEXIST)
        return tool_fail(TOOL_NO, "cannot make \"%s\": %s; name another directory: muster init DIR",
                         name, strerror(errno));
    real = realpath(name, NULL);
    if (real == NULL || strlen(real) >= sizeof init->dir || strpbrk(real, "'\"\n%") != NULL) {
        free(real);
        return tool_fail(TOOL_NO,
                         "%s cannot be used: choose a shorter path without quotes and "
                         "percent signs",
                         name);
    }
    snprintf(init->dir, sizeof init->dir, "%s", real);
    free(real);
    return TOOL_DONE;
}

/* The place that an option names; a variable speaks of the jobs that there are. */
static const char *init_told(const struct init *init, enum tool_option_id id)
{
    const char *told = init->tool->values[id];

    return told == getenv(tool_option_table[id].env) ? NULL : told;
}

/* --broker and --db instead of the default places. */
static int init_take_places(struct init *init)
{
    const char *broker = init_told(init, OPTION_BROKER), *db = init_told(init, OPTION_DB);

    if (db != NULL && (db[0] != '/' || strlen(db) >= sizeof init->db))
        return tool_fail(TOOL_USAGE, "--db is \"%s\"; give a whole path, as in /var/lib/muster.db",
                         db);
    if (broker != NULL && (strstr(broker, "://") == NULL || strlen(broker) > ENDPOINT_MAX ||
                           strchr(broker, ',') != NULL))
        return tool_fail(TOOL_USAGE,
                         "\"%s\" is not one broker's address: give tcp://host:port or ipc://path",
                         broker);
    if (db != NULL)
        snprintf(init->db, sizeof init->db, "%s", db);
    if (broker != NULL)
        snprintf(init->broker, sizeof init->broker, "%s", broker);
    if (broker != NULL)
        snprintf(init->listen, sizeof init->listen, "%s", broker);
    return TOOL_DONE;
}

static int init_places(struct init *init)
{
    char host[256] = "localhost";
    unsigned uid = (unsigned)geteuid();

    if (!setup_find("musterd", init->musterd))
        snprintf(init->musterd, sizeof init->musterd, "/usr/bin/musterd");
    if (!setup_find("muster", init->muster))
        snprintf(init->muster, sizeof init->muster, "muster");
    if (!paths_default_db(uid, getenv("XDG_STATE_HOME"), getenv("HOME"), init->db) ||
        !paths_default_endpoint(uid, getenv("XDG_RUNTIME_DIR"), init->listen))
        return tool_fail(TOOL_NO, "neither XDG_STATE_HOME nor HOME says where a database should "
                                  "be: set HOME");
    gethostname(host, sizeof host - 1);
    if (init->hosts)
        snprintf(init->listen, sizeof init->listen, "tcp://0.0.0.0:7700");
    if (init->hosts)
        snprintf(init->broker, sizeof init->broker, "tcp://%s:7700", host);
    else
        snprintf(init->broker, sizeof init->broker, "%s", init->listen);
    return init_take_places(init);
}

static int init_job_name(struct init *init)
{
    init->job = init->tool->values[OPTION_JOB];
    if (init->job == NULL)
        init->job = "example";
    if (init->job[0] == '\0' || strlen(init->job) > 60 ||
        strspn(init->job, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
            strlen(init->job))
        return tool_fail(TOOL_USAGE,
                         "--job is \"%s\"; an example's name has letters, digits, - _ and . only",
                         init->job);
    return TOOL_DONE;
}

static void init_next(const struct init *init)
{
    fprintf(init->tool->out,
            "\nNext, in three terminals or with & behind the first:\n"
            "  musterd --config '%s/musterd.conf'\n"
            "  '%s/job.sh'\n"
            "  MUSTER_BROKER='%s' muster top\n"
            "muster doctor tells what is still missing.\n",
            init->dir, init->dir, init->broker);
}

int cmd_init(struct tool *tool)
{
    struct init init = {.tool = tool, .hosts = tool->values[OPTION_HOSTS] != NULL};
    char srun[PATH_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int code = init_job_name(&init);

    if (tool_json(tool))
        return tool_fail(TOOL_USAGE, "init writes files and tells their names: leave out --json");
    init.ranks = cores < 2 ? 2 : cores > 4 ? 4 : (int)cores;
    init.slurm = setup_find("sbatch", srun);
    if (code == TOOL_DONE)
        code = init_places(&init);
    if (code == TOOL_DONE)
        code = init_directory(&init);
    if (code == TOOL_DONE && init.hosts)
        code = init_key(&init); /* first: it may be refused, and a file would be in the way then */
    if (code == TOOL_DONE)
        code = init_config(&init);
    if (code == TOOL_DONE)
        code = init_unit(&init);
    if (code == TOOL_DONE)
        code = init_script(&init);
    if (code == TOOL_DONE && init.slurm)
        code = init_batch(&init);
    if (code == TOOL_DONE)
        init_next(&init);
    return code;
}
