/* cmd_demo - `muster demo`: a job of four ranks is preempted before your eyes, from the installed
 * programs alone. Starts a broker of its own in a directory of its own, and ends with the proof.
 * Never: touches another broker or job. */
#include "tools/setup/setup.h"

#include "tools/tool.h"
#include "tools/verbs.h"

#include "node/clock.h"
#include "node/shard/fs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEMO_PATIENCE_MS 60000
#define DEMO_LOOK_MS 50

struct demo {
    char dir[PATH_MAX / 2];
    char self[PATH_MAX], musterd[PATH_MAX];
    char broker[PATH_MAX]; /* its address */
    pid_t broker_pid, job_pid;
};

/* --- processes -------------------------------------------------------------------------------- */

static int demo_run(const char *const *words)
{
    printf("\n$ muster");
    for (size_t i = 1; words[i] != NULL; i++)
        printf(strchr(words[i], ' ') != NULL ? " \"%s\"" : " %s", words[i]);
    puts("");
    return trial_wait(trial_start(NULL, words));
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
    char checkpoints[PATH_MAX], log[PATH_MAX];

    if (trial_find_broker(demo->musterd) != TOOL_DONE)
        return TOOL_NO;
    setup_self(demo->self);
    snprintf(demo->dir, sizeof demo->dir, "%s/muster-demo-XXXXXX",
             tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp"); /* a socket's path is short */
    if (mkdtemp(demo->dir) == NULL)
        return tool_fail(TOOL_NO,
                         "cannot make a directory %s: %s; set TMPDIR to a directory that you may "
                         "write, with 50 MB free",
                         demo->dir, strerror(errno));
    trial_clear_environment();
    snprintf(demo->broker, sizeof demo->broker, "ipc://%s/broker.sock", demo->dir);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", demo->dir);
    setenv("MUSTER_CHECKPOINT_DIR", checkpoints, 1);
    setenv("MUSTER_BROKER", demo->broker, 1);
    printf("A broker starts in %s, and %d ranks train a small model for %d steps.\n", demo->dir,
           DEMO_RANKS, DEMO_STEPS);
    snprintf(log, sizeof log, "%s/musterd.log", demo->dir);
    demo->broker_pid = trial_start_broker(log, demo->musterd, demo->broker, demo->dir);
    snprintf(log, sizeof log, "%s/job.log", demo->dir);
    demo->job_pid =
        trial_start(log, (const char *const[]){demo->self, "run", "-n", "4", "--job", "demo", "--",
                                               demo->self, "demo", "rank", NULL});
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
    int code = demo_run((const char *const[]){demo->self, "notify", "2", "--text",
                                              "this machine is taken away", NULL});

    if (code == 0)
        code = trial_wait(demo->job_pid);
    if (code != 0)
        return tool_fail(TOOL_NO, "the job ended with exit code %d: read %s/job.log", code,
                         demo->dir);
    demo_run((const char *const[]){demo->self, "status", "demo", NULL});
    demo_run((const char *const[]){demo->self, "why", NULL});
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
    if (demo->job_pid > 0 && waitpid(demo->job_pid, NULL, WNOHANG) == 0)
        trial_stop(demo->job_pid);
    trial_stop(demo->broker_pid);
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
