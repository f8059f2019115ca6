/* What is usual: the time from a signal to the end, by the launchers that are around this process.
 */
#include "node/notice/usual.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PID 41
#define PARENT 40

struct usual_case {
    const char *env[5];
    int signo;
    int64_t ms;
    const char *who;
};

static const struct usual_case cases[] = {
    {{NULL}, SIGTERM, -1, NULL},
    {{"PATH=/bin"}, SIGTERM, -1, NULL},
    {{"OMPI_COMM_WORLD_RANK=0"}, SIGTERM, 2000, "mpirun"},
    {{"OMPI_COMM_WORLD_RANK="}, SIGTERM, -1, NULL}, /* an empty value counts as unset */
    {{"TORCHELASTIC_RUN_ID=none"}, SIGTERM, 30000, "torchrun"},
    {{"SLURM_JOB_ID=7"}, SIGTERM, 30000, "Slurm"},
    {{"SLURM_JOB_ID=7"}, SIGUSR1, 30000, "Slurm"},
    {{"LSB_JOBID=7"}, SIGTERM, 10000, "LSF"},
    {{"LSB_JOBID=7"}, SIGINT, 20000, "LSF"},
    {{"LSB_JOBID=7"}, SIGUSR2, 600000, "LSF"},
    {{"PBS_JOBID=7.x"}, SIGTERM, 10000, "PBS"},
    {{"PBS_JOBID=7.x", "PBS_VERSION=TORQUE-6.1.2"}, SIGTERM, 2000, "PBS"},
    {{"PBS_JOBID=7.x", "PBS_VERSION=19"}, SIGTERM, 10000, "PBS"},
    {{"FLUX_JOB_ID=f1"}, SIGTERM, 5000, "Flux"},
    {{"SGE_TASK_ID=undefined"}, SIGUSR2, 60000, "Grid Engine"},
    {{"SGE_TASK_ID=undefined"}, SIGTERM, -1, NULL},
    {{"_CONDOR_SCRATCH_DIR=/x"}, SIGTERM, 600000, "HTCondor"},
    {{"RUNPOD_POD_ID=x"}, SIGTERM, 5000, "RunPod"},
    {{"SM_HOSTS=[]"}, SIGTERM, 120000, "SageMaker"},
    {{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, SIGTERM, 30000, "Kubernetes"},
    {{"container=docker"}, SIGTERM, 10000, "docker"},
    {{"container=lxc"}, SIGTERM, -1, NULL},
    /* the unit's own process, and what it started; not everything below */
    {{"SYSTEMD_EXEC_PID=41"}, SIGTERM, 90000, "systemd"},
    {{"SYSTEMD_EXEC_PID=40"}, SIGTERM, 90000, "systemd"},
    {{"SYSTEMD_EXEC_PID=39"}, SIGTERM, -1, NULL},
    /* the shortest of all layers counts, in whatever order they are there */
    {{"SLURM_JOB_ID=7", "OMPI_COMM_WORLD_RANK=1"}, SIGTERM, 2000, "mpirun"},
    {{"OMPI_COMM_WORLD_RANK=1", "SLURM_JOB_ID=7"}, SIGTERM, 2000, "mpirun"},
    {{"LSB_JOBID=7", "TORCHELASTIC_RUN_ID=x"}, SIGTERM, 10000, "LSF"},
    {{"LSB_JOBID=7", "TORCHELASTIC_RUN_ID=x"}, SIGUSR2, 30000, "torchrun"},
    {{"SYSTEMD_EXEC_PID=41", "container=docker"}, SIGTERM, 10000, "docker"},
};

static void the_shortest_usual_time_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct usual_case *c = &cases[i];
        struct usual_grace got = usual_grace(c->env, c->signo, PID, PARENT);

        if (got.ms != c->ms)
            fail_msg("case %zu (%s): %lld ms", i, c->env[0], (long long)got.ms);
        if (c->who == NULL)
            assert_null(got.who);
        else
            assert_string_equal(got.who, c->who);
    }
}

static void lsf_has_signals_of_its_own(void **state)
{
    static const char *const nothing[] = {"A=b", NULL}, *const lsf[] = {"LSB_JOBID=7", NULL};
    int signals[USUAL_SIGNALS_MAX];

    (void)state;
    assert_int_equal(usual_signals(nothing, signals), 1);
    assert_int_equal(signals[0], SIGTERM);
    assert_int_equal(usual_signals(lsf, signals), 3);
    assert_int_equal(signals[0], SIGTERM);
    assert_int_equal(signals[1], SIGINT);
    assert_int_equal(signals[2], SIGUSR2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_usual_time_counts),
        cmocka_unit_test(lsf_has_signals_of_its_own),
    };

    return cmocka_run_group_tests_name("notice_usual", tests, NULL, NULL);
}
