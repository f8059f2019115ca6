/* cmd_demo - `muster demo`: a job of four ranks is preempted before your eyes, from the installed
 * programs alone. Starts a broker of its own in a directory of its own, and ends with the proof.
 * Never: touches another broker or job. */
#include "tools/setup/setup.h"

#include "tools/tool.h"

#include "node/clock.h"
#include "node/shard/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEMO_PATIENCE_MS 60000
#define DEMO_LOOK_MS 50

extern char **environ;

struct demo {
    char dir[PATH_MAX / 2];
    char self[PATH_MAX], musterd[PATH_MAX];
    char broker[PATH_MAX]; /* its address */
    pid_t broker_pid, job_pid;
};

/* --- processes -------------------------------------------------------------------------------- */

/* This job's identity comes from here, not from around us. */
static void demo_clear_environment(void)
{
    for (size_t i = 0; environ[i] != NULL;) {
        char name[64];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(environ[i], "="), environ[i]);
        if (strncmp(name, "MUSTER_", 7) == 0 && unsetenv(name) == 0)
            i = 0;
        else
            i++;
    }
}

/* log NULL: it speaks on our own outputs. -1: it could not be started. */
static pid_t demo_start(const struct demo *demo, const char *log, const char *const *words)
{
    char path[PATH_MAX];
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (log != NULL) {
        int fd;

        snprintf(path, sizeof path, "%s/%s", demo->dir, log);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    execv(words[0], (char *const *)words);
    fprintf(stderr, "muster: cannot start %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Its exit code; -1: it was killed. */
static int demo_wait(pid_t pid)
{
    int status;

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int demo_run(const struct demo *demo, const char *const *words)
{
    printf("\n$ muster");
    for (size_t i = 1; words[i] != NULL; i++)
        printf(strchr(words[i], ' ') != NULL ? " \"%s\"" : " %s", words[i]);
    puts("");
    return demo_wait(demo_start(demo, NULL, words));
}

static void demo_pause(void)
{
    const struct timespec pause = {.tv_nsec = DEMO_LOOK_MS * 1000000L};

    nanosleep(&pause, NULL);
}

/* --- the story -------------------------------------------------------------------------------- */

static int demo_begin(struct demo *demo)
{
    const char *tmp = getenv("TMPDIR");
    char db[PATH_MAX], self[PATH_MAX], checkpoints[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (!setup_find("musterd", demo->musterd))
        return tool_fail(TOOL_NO, "there is no musterd beside this program or in PATH: install the "
                                  "package muster-broker, or add its folder to PATH");
    snprintf(demo->self, sizeof demo->self, "%.*s", length > 0 ? (int)length : 0, self);
    snprintf(demo->dir, sizeof demo->dir, "%s/muster-demo-XXXXXX",
             tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp"); /* a socket's path is short */
    if (mkdtemp(demo->dir) == NULL)
        return tool_fail(TOOL_NO, "cannot make a directory %s: %s; set TMPDIR to one with room",
                         demo->dir, strerror(errno));
    demo_clear_environment();
    snprintf(demo->broker, sizeof demo->broker, "ipc://%s/broker.sock", demo->dir);
    snprintf(db, sizeof db, "%s/muster.db", demo->dir);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", demo->dir);
    setenv("MUSTER_CHECKPOINT_DIR", checkpoints, 1);
    setenv("MUSTER_BROKER", demo->broker, 1);
    printf("A broker starts in %s, and %d ranks train a small model for %d steps.\n", demo->dir,
           DEMO_RANKS, DEMO_STEPS);
    demo->broker_pid = demo_start(
        demo, "musterd.log",
        (const char *const[]){demo->musterd, "--listen", demo->broker, "--db", db, NULL});
    demo->job_pid = demo_start(demo, "job.log",
                               (const char *const[]){demo->self, "run", "-n", "4", "--job", "demo",
                                                     "--", demo->self, "demo", "rank", NULL});
    return TOOL_DONE;
}

static int64_t demo_step_now(struct demo *demo, muster_client_t **client)
{
    muster_rows_t *rows = NULL;
    int64_t step = -1;

    if (*client == NULL && muster_client_open(demo->broker, 1000, client, NULL) != MUSTER_OK)
        return -1;
    if (muster_client_jobs(*client, "demo", &rows, NULL) == MUSTER_OK &&
        muster_rows_count(rows) == 1 && muster_rows_jobs(rows)[0].nodes_live == DEMO_RANKS)
        step = muster_rows_jobs(rows)[0].step;
    muster_rows_destroy(&rows);
    return step;
}

/* Until the ranks are some way in. */
static int demo_await(struct demo *demo)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + DEMO_PATIENCE_MS, step = -1;
    muster_client_t *client = NULL;
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/broker.sock", demo->dir);
    while (step < DEMO_STEPS / 4 && clock_ms(CLOCK_MONOTONIC) < until_ms &&
           waitpid(demo->job_pid, NULL, WNOHANG) == 0) {
        if (access(path, F_OK) == 0)
            step = demo_step_now(demo, &client);
        demo_pause();
    }
    muster_client_close(&client, NULL);
    if (step >= DEMO_STEPS / 4)
        return TOOL_DONE;
    return tool_fail(TOOL_NO, "the job did not begin to train: read %s/job.log and musterd.log",
                     demo->dir);
}

static int demo_preempt(const struct demo *demo)
{
    int code = demo_run(demo, (const char *const[]){demo->self, "notify", "2", "--text",
                                                    "this machine is taken away", NULL});

    if (code == 0)
        code = demo_wait(demo->job_pid);
    if (code != 0)
        return tool_fail(TOOL_NO, "the job ended with exit code %d: read %s/job.log", code,
                         demo->dir);
    demo_run(demo, (const char *const[]){demo->self, "status", "demo", NULL});
    demo_run(demo, (const char *const[]){demo->self, "why", NULL});
    return TOOL_DONE;
}

/* --- the proof -------------------------------------------------------------------------------- */

/* The ranks' own words against what an uninterrupted run computes. */
static int demo_prove(const struct demo *demo)
{
    double weights[DEMO_WEIGHTS] = {0}, told;
    char path[PATH_MAX], line[1024], want[256] = "";
    size_t used = 0, equal = 0;
    int64_t resumed = 0;
    FILE *log;

    demo_train(weights, 0, DEMO_STEPS);
    for (int k = 0; k < DEMO_WEIGHTS; k++) {
        uint64_t bits;

        memcpy(&bits, &weights[k], sizeof bits);
        used += (size_t)snprintf(want + used, sizeof want - used, " %016" PRIx64, bits);
    }
    snprintf(path, sizeof path, "%s/job.log", demo->dir);
    log = fopen(path, "re");
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        const char *at = strstr(line, "demo: resumed at ");

        if (at != NULL && strstr(at, want) != NULL && strstr(at, "at 0,") == NULL) {
            equal++;
            resumed = strtoll(at + strlen("demo: resumed at "), NULL, 10);
        }
    }
    if (log != NULL)
        fclose(log);
    if (equal != DEMO_RANKS)
        return tool_fail(TOOL_NO,
                         "only %zu of %d ranks have the weights of an uninterrupted run: "
                         "read %s/job.log",
                         equal, DEMO_RANKS, demo->dir);
    told = weights[DEMO_WEIGHTS - 1];
    printf("\nAll %d ranks stopped at step %" PRId64 ", resumed there, and ended at step %d with "
           "the weights of an\nuninterrupted run, bit for bit (the last one is %.6f). Nothing was "
           "lost.\n",
           DEMO_RANKS, resumed, DEMO_STEPS, told);
    puts("\nNext: `muster init` writes a configuration, a unit and an example job for this "
         "machine.");
    return TOOL_DONE;
}

static void demo_end(struct demo *demo, int code)
{
    if (demo->job_pid > 0 && waitpid(demo->job_pid, NULL, WNOHANG) == 0) {
        kill(demo->job_pid, SIGTERM);
        demo_wait(demo->job_pid);
    }
    if (demo->broker_pid > 0) {
        kill(demo->broker_pid, SIGTERM);
        demo_wait(demo->broker_pid);
    }
    if (code == TOOL_DONE)
        (void)fs_remove_tree(demo->dir, NULL);
}

int cmd_demo(struct tool *tool)
{
    struct demo demo = {.broker_pid = -1, .job_pid = -1};
    int code;

    if (tool->args_count == 1 && strcmp(tool->args[0], "rank") == 0)
        return demo_rank();
    if (tool->args_count > 0 || tool_json(tool))
        return tool_fail(TOOL_USAGE, "write `muster demo` alone: it tells its story in words");
    code = demo_begin(&demo);
    if (code != TOOL_DONE)
        return code;
    code = demo_await(&demo);
    if (code == TOOL_DONE)
        code = demo_preempt(&demo);
    if (code == TOOL_DONE)
        code = demo_prove(&demo);
    demo_end(&demo, code);
    return code;
}
