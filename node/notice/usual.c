/* usual - see usual.h. Pure. */
#include "node/notice/usual.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ANY 0

struct row {
    const char *variable;
    const char *value; /* its beginning; NULL = any */
    const char *who;
    int signo; /* ANY: every one that no other row of these names has */
    int64_t ms;
};

/* Of one `who` the first row that fits counts. */
static const struct row rows[] = {
    {"OMPI_COMM_WORLD_RANK", NULL, "mpirun", ANY, 2000}, /* SIGTERM at 1 s, SIGKILL at 3 s */
    {"TORCHELASTIC_RUN_ID", NULL, "torchrun", ANY, 30000},
    {"SLURM_JOB_ID", NULL, "Slurm", ANY, 30000},            /* KillWait */
    {"LSB_JOBID", NULL, "LSF", SIGUSR2, 600000},            /* the run limit's warning */
    {"LSB_JOBID", NULL, "LSF", SIGINT, 20000},              /* then SIGTERM, 10 s, SIGKILL */
    {"LSB_JOBID", NULL, "LSF", ANY, 10000},                 /* JOB_TERMINATE_INTERVAL */
    {"PBS_VERSION", "TORQUE", "PBS", ANY, 2000},            /* kill_delay */
    {"PBS_JOBID", NULL, "PBS", ANY, 10000},                 /* kill_delay */
    {"FLUX_JOB_ID", NULL, "Flux", ANY, 5000},               /* kill-timeout */
    {"SGE_TASK_ID", NULL, "Grid Engine", SIGUSR2, 60000},   /* -notify */
    {"_CONDOR_SCRATCH_DIR", NULL, "HTCondor", ANY, 600000}, /* job_max_vacate_time */
    {"RUNPOD_POD_ID", NULL, "RunPod", ANY, 5000},
    {"SM_HOSTS", NULL, "SageMaker", ANY, 120000},
    {"KUBERNETES_SERVICE_HOST", NULL, "Kubernetes", ANY, 30000}, /* terminationGracePeriodSeconds */
    {"container", "docker", "docker", ANY, 10000},
};

#define SYSTEMD_MS 90000 /* TimeoutStopSec */

static const char *usual_value_of(const char *const *env, const char *name)
{
    size_t length = strlen(name);

    for (; *env != NULL; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return (*env)[length + 1] != '\0' ? *env + length + 1 : NULL;
    return NULL;
}

static bool usual_fits(const struct row *row, const char *const *env, int signo)
{
    const char *value = usual_value_of(env, row->variable);

    if (value == NULL || (row->signo != ANY && row->signo != signo))
        return false;
    return row->value == NULL || strncmp(value, row->value, strlen(row->value)) == 0;
}

/* Shells of a session inherit INVOCATION_ID: only the unit's own process counts, and what it
 * started itself. */
static bool usual_is_unit(const char *const *env, int pid, int parent)
{
    const char *text = usual_value_of(env, "SYSTEMD_EXEC_PID");
    long main_pid = text != NULL ? strtol(text, NULL, 10) : 0;

    return main_pid > 0 && (main_pid == pid || main_pid == parent);
}

struct usual_grace usual_grace(const char *const *environ_like, int signo, int pid, int parent)
{
    struct usual_grace least = {.ms = -1};
    const char *counted = "";

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].who, counted) == 0 || !usual_fits(&rows[i], environ_like, signo))
            continue;
        counted = rows[i].who;
        if (least.ms < 0 || rows[i].ms < least.ms)
            least = (struct usual_grace){rows[i].ms, rows[i].who};
    }
    if (usual_is_unit(environ_like, pid, parent) && (least.ms < 0 || SYSTEMD_MS < least.ms))
        least = (struct usual_grace){SYSTEMD_MS, "systemd"};
    return least;
}

size_t usual_signals(const char *const *environ_like, int ret_signals[USUAL_SIGNALS_MAX])
{
    size_t count = 0;

    ret_signals[count++] = SIGTERM;
    if (usual_value_of(environ_like, "LSB_JOBID") != NULL) { /* bkill; the run limit */
        ret_signals[count++] = SIGINT;
        ret_signals[count++] = SIGUSR2;
    }
    return count;
}
