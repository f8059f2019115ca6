/* Tests of node/notice/identity: every family, its precedence and its traps, as tables. */
#include "node/notice/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ENV(...)          \
    {                     \
        __VA_ARGS__, NULL \
    }

struct taken {
    const char *what;
    const char *env[14];
    const char *family;
    int rank, world_size, local_rank, local_size, restart_count;
};

static const struct taken taken_cases[] = {
    {"the library's own names",
     ENV("MUSTER_RANK=3", "MUSTER_WORLD_SIZE=8", "MUSTER_LOCAL_RANK=1", "MUSTER_LOCAL_SIZE=2",
         "MUSTER_RESTART_COUNT=5"),
     "muster", 3, 8, 1, 2, 5},
    {"own names win over every launcher",
     ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "RANK=1", "WORLD_SIZE=2",
         "LOCAL_RANK=1", "MUSTER_RANK=0", "MUSTER_WORLD_SIZE=4"),
     "muster", 0, 4, -1, -1, 0},
    {"torchrun",
     ENV("TORCHELASTIC_RUN_ID=none", "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
         "TORCHELASTIC_RESTART_COUNT=2"),
     "torchrun", 5, 8, 1, 4, 2},
    {"torchrun's three names without its id", ENV("RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1"),
     "torchrun", 1, 2, 1, -1, 0},
    {"srun starting torchrun: RANK is the process, SLURM_PROCID the node",
     ENV("SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_LOCALID=0", "RANK=7",
         "WORLD_SIZE=8", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=4", "SLURM_RESTART_COUNT=9"),
     "torchrun", 7, 8, 3, 4, 0},
    {"Open MPI, whose NODE_RANK is no node's number",
     ENV("OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=0",
         "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_NODE_RANK=1", "PMIX_RANK=2"),
     "openmpi", 2, 4, 0, 2, 0},
    {"mpirun in a batch script: SLURM_PROCID is 0 in every rank",
     ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "SLURM_PROCID=0", "SLURM_LOCALID=0",
         "SLURM_NTASKS=2"),
     "openmpi", 1, 2, -1, -1, 0},
    {"mpirun over several nodes: remote ranks do have a step",
     ENV("OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "SLURM_PROCID=1", "SLURM_STEP_ID=0",
         "SLURM_NTASKS=2"),
     "openmpi", 3, 4, -1, -1, 0},
    {"PRRTE", ENV("PMIX_RANK=1", "PMIX_NAMESPACE=prterun-1", "OMPI_COMM_WORLD_SIZE=3"), "pmix", 1,
     3, -1, -1, 0},
    {"MPICH", ENV("PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"), "pmi", 1,
     4, 1, 2, 0},
    {"srun --mpi=pmi2", ENV("PMI_RANK=1", "PMI_SIZE=2", "SLURM_STEP_ID=0", "SLURM_PROCID=1"), "pmi",
     1, 2, -1, -1, 0},
    {"jsrun", ENV("JSM_NAMESPACE_RANK=6", "JSM_NAMESPACE_SIZE=12", "JSM_NAMESPACE_LOCAL_RANK=0"),
     "jsm", 6, 12, 0, -1, 0},
    {"Flux", ENV("FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=2", "FLUX_TASK_LOCAL_ID=1"), "flux", 1, 2, 1,
     -1, 0},
    {"srun",
     ENV("SLURM_STEP_ID=0", "SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=7", "SLURM_NTASKS=9",
         "SLURM_LOCALID=1", "SLURM_NODEID=2", "SLURM_STEP_TASKS_PER_NODE=2(x3),1",
         "SLURM_RESTART_COUNT=1"),
     "slurm", 5, 7, 1, 2, 1},
    {"srun, last node of an uneven step",
     ENV("SLURM_STEP_ID=0", "SLURM_PROCID=6", "SLURM_NTASKS=7", "SLURM_LOCALID=0", "SLURM_NODEID=3",
         "SLURM_STEP_TASKS_PER_NODE=2(x3),1"),
     "slurm", 6, 7, 0, 1, 0},
    {"srun with a task list that cannot be read: local size unknown",
     ENV("SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_NODEID=4",
         "SLURM_STEP_TASKS_PER_NODE=1(x2)"),
     "slurm", 0, 2, -1, -1, 0},
    {"srun --mpi=pmix: the size is only in Slurm's names",
     ENV("PMIX_RANK=1", "PMIX_NAMESPACE=slurm.pmix.17.0", "SLURM_STEP_ID=0", "SLURM_PROCID=1",
         "SLURM_NTASKS=2"),
     "slurm", 1, 2, -1, -1, 0},
    {"plain names", ENV("RANK=1", "WORLD_SIZE=2"), "plain", 1, 2, -1, -1, 0},
    {"TF_CONFIG chief",
     ENV("TF_CONFIG={\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"],\"ps\":[\"d:1\"]"
         "},\"task\":{\"type\":\"chief\",\"index\":0}}"),
     "tf_config", 0, 3, -1, -1, 0},
    {"TF_CONFIG worker after the chief",
     ENV("TF_CONFIG={\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"]},\"task\":{"
         "\"type\":\"worker\",\"index\":1}}"),
     "tf_config", 2, 3, -1, -1, 0},
    {"TF_CONFIG workers alone",
     ENV("TF_CONFIG={\"cluster\":{\"worker\":[\"b:1\",\"c:1\"]},\"task\":{\"type\":\"worker\","
         "\"index\":0}}"),
     "tf_config", 0, 2, -1, -1, 0},
    {"an indexed Job with the user's world size",
     ENV("JOB_COMPLETION_INDEX=2", "MUSTER_WORLD_SIZE=3"), "k8s_index", 2, 3, -1, -1, 0},
    {"SkyPilot", ENV("SKYPILOT_NODE_RANK=1", "SKYPILOT_NUM_NODES=2"), "skypilot", 1, 2, -1, -1, 0},
    {"SageMaker", ENV("SM_CURRENT_HOST=algo-10", "SM_HOSTS=[\"algo-1\",\"algo-10\",\"algo-2\"]"),
     "sagemaker", 1, 3, -1, -1, 0},
    {"TPU slices",
     ENV("TPU_WORKER_ID=1", "TPU_WORKER_HOSTNAMES=a,b", "MEGASCALE_SLICE_ID=1",
         "MEGASCALE_NUM_SLICES=2"),
     "tpu", 3, 4, -1, -1, 0},
    {"an index inside torchrun: the inner launcher wins",
     ENV("JOB_COMPLETION_INDEX=1", "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1"), "torchrun", 3, 4, 1,
     -1, 0},
    {"a world size that agrees with the launcher's",
     ENV("RANK=1", "WORLD_SIZE=2", "MUSTER_WORLD_SIZE=2"), "plain", 1, 2, -1, -1, 0},
    {"no launcher", ENV("HOME=/root"), "single", 0, 1, -1, -1, 0},
    {"a world of one without a rank", ENV("WORLD_SIZE=1"), "single", 0, 1, -1, -1, 0},
    {"a size whose rank another tells",
     ENV("WORLD_SIZE=2", "SM_CURRENT_HOST=b", "SM_HOSTS=[\"a\",\"b\"]"), "sagemaker", 1, 2, -1, -1,
     0},
    {"empty values are unset", ENV("RANK=", "WORLD_SIZE=", "MUSTER_RANK="), "single", 0, 1, -1, -1,
     0},
    {"a name that only begins like ours", ENV("MUSTER_RANKS=3", "XRANK=1"), "single", 0, 1, -1, -1,
     0},
    {"TF_CONFIG without a cluster is one process", ENV("TF_CONFIG={}"), "single", 0, 1, -1, -1, 0},
    {"a batch script is no rank", ENV("SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_JOB_ID=7"),
     "single", 0, 1, -1, -1, 0},
    {"an interactive step's shell is no rank",
     ENV("SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_ID=4294967290"), "single", 0, 1, -1, -1,
     0},
};

static void each_family_gives_all_its_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof taken_cases / sizeof taken_cases[0]; i++) {
        const struct taken *c = &taken_cases[i];
        struct muster_error err = {0};
        struct identity id;

        print_message("  %s\n", c->what);
        if (identity_read(c->env, &id, &err) != MUSTER_OK)
            fail_msg("%s: %s", c->what, err.text);
        assert_string_equal(id.family, c->family);
        assert_int_equal(id.rank, c->rank);
        assert_int_equal(id.world_size, c->world_size);
        assert_int_equal(id.local_rank, c->local_rank);
        assert_int_equal(id.local_size, c->local_size);
        assert_int_equal(id.restart_count, c->restart_count);
    }
}

struct refused {
    const char *env[8];
    const char *named; /* must stand in the text */
};

static const struct refused refused_cases[] = {
    {ENV("MUSTER_RANK=4", "MUSTER_WORLD_SIZE=4"), "rank 4 is outside a world of 4"},
    {ENV("MUSTER_RANK=1"), "MUSTER_WORLD_SIZE is missing"},
    {ENV("MUSTER_RANK=one", "MUSTER_WORLD_SIZE=4"), "MUSTER_RANK=one is not a number"},
    {ENV("MUSTER_RANK=-1", "MUSTER_WORLD_SIZE=4"), "MUSTER_RANK=-1 is not a number"},
    {ENV("MUSTER_RANK=99999999999", "MUSTER_WORLD_SIZE=4"), "MUSTER_RANK=99999999999"},
    {ENV("MUSTER_RANK=0", "MUSTER_WORLD_SIZE=0"), "the world size is 0"},
    {ENV("MUSTER_RANK=0", "MUSTER_WORLD_SIZE=2", "MUSTER_LOCAL_RANK=2", "MUSTER_LOCAL_SIZE=2"),
     "local rank 2"},
    {ENV("MUSTER_RANK=0", "MUSTER_WORLD_SIZE=2", "MUSTER_LOCAL_SIZE=4"), "local size 4"},
    {ENV("MUSTER_RANK=0", "RANK=0", "WORLD_SIZE=2"), "MUSTER_WORLD_SIZE is missing"},
    {ENV("MUSTER_WORLD_SIZE=4"), "MUSTER_WORLD_SIZE is 4, and nothing says which"},
    {ENV("MUSTER_WORLD_SIZE=4", "RANK=0", "WORLD_SIZE=2"), "plain says 2"},
    {ENV("OMPI_COMM_WORLD_RANK=1"), "openmpi: OMPI_COMM_WORLD_SIZE is missing"},
    {ENV("OMPI_COMM_WORLD_RANK=1", "SLURM_PROCID=0", "SLURM_STEP_ID=0", "SLURM_NTASKS=2"),
     "slurm: SLURM_PROCID beside MPI's"},
    {ENV("PMIX_RANK=1"), "pmix: OMPI_COMM_WORLD_SIZE is missing"},
    {ENV("PMIX_RANK=1", "PMIX_NAMESPACE=slurm.pmix.17.0", "SLURM_STEP_ID=0", "SLURM_PROCID=0",
         "SLURM_NTASKS=2"),
     "SLURM_PROCID=0 but PMIX_RANK=1"},
    {ENV("PMI_RANK=2", "PMI_SIZE=2"), "pmi: rank 2 is outside a world of 2"},
    {ENV("TORCHELASTIC_RUN_ID=x", "RANK=1"), "torchrun: WORLD_SIZE is missing"},
    {ENV("MUSTER_RANK=0", "MUSTER_WORLD_SIZE=1", "TORCHELASTIC_RUN_ID=x", "RANK=1", "WORLD_SIZE=2",
         "LOCAL_RANK=1"),
     "say rank 0 of 1, but torchrun says rank 1 of 2"},
    {ENV("RANK=1"), "plain: WORLD_SIZE is missing"},
    {ENV("WORLD_SIZE=4"), "plain: WORLD_SIZE=4 comes without RANK"},
    {ENV("JSM_NAMESPACE_RANK=1"), "jsm: JSM_NAMESPACE_SIZE"},
    {ENV("FLUX_TASK_RANK=1"), "flux: FLUX_JOB_SIZE"},
    {ENV("SLURM_STEP_ID=0", "SLURM_PROCID=1"), "slurm: SLURM_NTASKS is missing"},
    {ENV("TF_CONFIG=nonsense"), "TF_CONFIG is not a JSON object"},
    {ENV("TF_CONFIG={\"cluster\":{\"worker\":[\"b:1\"]}}"), "no task type"},
    {ENV("TF_CONFIG={\"cluster\":{\"worker\":[\"b:1\"],\"ps\":[\"c:1\"]},\"task\":{\"type\":\"ps\","
         "\"index\":0}}"),
     "type ps takes no part"},
    {ENV("TF_CONFIG={\"cluster\":{\"worker\":[\"b:1\"]},\"task\":{\"type\":\"worker\",\"index\":1}"
         "}"),
     "worker:1 is not in its cluster"},
    {ENV("TF_CONFIG={\"cluster\":{\"worker\":[\"b:1\"]},\"task\":{\"type\":\"worker\",\"index\":-1}"
         "}"),
     "worker:-1 is not in its cluster"},
    {ENV("JOB_COMPLETION_INDEX=1"), "set MUSTER_WORLD_SIZE to the Job's completions"},
    {ENV("SKYPILOT_NODE_RANK=0"), "skypilot: SKYPILOT_NUM_NODES"},
    {ENV("SM_CURRENT_HOST=algo-3", "SM_HOSTS=[\"algo-1\"]"), "algo-3 is not in SM_HOSTS"},
    {ENV("SM_CURRENT_HOST=algo-1"), "SM_HOSTS is missing"},
    {ENV("TPU_WORKER_ID=2", "TPU_WORKER_HOSTNAMES=a,b"), "worker 2 of 2"},
    {ENV("TPU_WORKER_ID=0"), "TPU_WORKER_HOSTNAMES is missing"},
};

static void a_broken_family_is_refused_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused_cases / sizeof refused_cases[0]; i++) {
        const struct refused *c = &refused_cases[i];
        struct muster_error err = {0};
        struct identity id;
        struct identity before;

        memset(&id, 0x5a, sizeof id);
        before = id;
        if (identity_read(c->env, &id, &err) != MUSTER_E_ARGUMENT)
            fail_msg("%s was taken", c->env[0]);
        if (strstr(err.text, c->named) == NULL)
            fail_msg("%s: the text is \"%s\"", c->env[0], err.text);
        assert_memory_equal(&id, &before, sizeof id);
        assert_int_equal(identity_read(c->env, &id, NULL), MUSTER_E_ARGUMENT);
    }
}

static void a_rejected_family_is_named_in_the_note_when_another_answers(void **state)
{
    static const char *const env[] = {"OMPI_COMM_WORLD_RANK=1", "RANK=1", "WORLD_SIZE=2", NULL};
    struct identity id;

    (void)state;
    assert_int_equal(identity_read(env, &id, NULL), MUSTER_OK);
    assert_string_equal(id.family, "plain");
    assert_string_equal(id.note, "openmpi: OMPI_COMM_WORLD_SIZE is missing");
}

static void the_fallback_to_a_single_process_is_said(void **state)
{
    static const char *const env[] = {"SLURM_PROCID=0", "SLURM_NTASKS=2", NULL};
    struct identity id;

    (void)state;
    assert_int_equal(identity_read(env, &id, NULL), MUSTER_OK);
    assert_non_null(strstr(id.note, "slurm: SLURM_PROCID without SLURM_STEP_ID"));
    assert_non_null(strstr(id.note, "single: no launcher gave a rank"));
}

static void an_own_rank_has_nothing_to_note(void **state)
{
    static const char *const env[] = {"MUSTER_RANK=0", "MUSTER_WORLD_SIZE=2", "RANK=7", NULL};
    struct identity id;

    (void)state;
    assert_int_equal(identity_read(env, &id, NULL), MUSTER_OK);
    assert_string_equal(id.note, "");
}

static void a_note_longer_than_its_field_is_cut_cleanly(void **state)
{
    static const char *const env[] = {
        "OMPI_COMM_WORLD_RANK=1", "PMI_RANK=1",      "JSM_NAMESPACE_RANK=1", "FLUX_TASK_RANK=1",
        "SLURM_PROCID=1",         "RANK=1",          "TF_CONFIG=x",          "SM_CURRENT_HOST=a",
        "SKYPILOT_NODE_RANK=1",   "TPU_WORKER_ID=1", "PMIX_RANK=nonsense",   NULL};
    struct muster_error err;
    struct identity id;

    (void)state;
    assert_int_equal(identity_read(env, &id, &err), MUSTER_E_ARGUMENT);
    assert_true(strlen(err.text) < sizeof err.text);
}

struct job_case {
    const char *env[8];
    const char *job;
};

static const struct job_case job_cases[] = {
    {ENV("HOME=/"), ""},
    {ENV("MUSTER_JOB=mine", "SLURM_JOB_ID=1", "SKYPILOT_TASK_ID=sky-1"), "mine"},
    {ENV("SKYPILOT_TASK_ID=sky-1", "SLURM_JOB_ID=1"), "sky-1"},
    {ENV("SKYPILOT_TASK_ID=-/a b"), "_-a-b"},
    {ENV("SKYPILOT_TASK_ID=.\xe9"), "_-"},
    {ENV("SLURM_JOB_ID=17", "TORCHELASTIC_RUN_ID=abc"), "slurm-17"},
    {ENV("SLURM_JOB_ID=19", "SLURM_ARRAY_JOB_ID=17", "SLURM_ARRAY_TASK_ID=2"), "slurm-17_2"},
    {ENV("FLUX_JOB_ID=\xc6\x92"
         "2Xy"),
     "flux---2Xy"},
    {ENV("LSB_JOBID=5", "LSB_JOBINDEX=0"), "lsf-5"},
    {ENV("LSB_JOBID=5", "LSB_JOBINDEX=3"), "lsf-5_3"},
    {ENV("PBS_JOBID=5.host"), "pbs-5.host"},
    {ENV("TORCHELASTIC_RUN_ID=abc"), "torch-abc"},
    {ENV("TORCHELASTIC_RUN_ID=none", "RANK=0", "WORLD_SIZE=1"), ""},
    {ENV("PMIX_NAMESPACE=x", "PMI_JOBID=2.0"), ""},
};

static void the_jobs_name_is_the_most_stable_id(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof job_cases / sizeof job_cases[0]; i++) {
        const char *env[16];
        struct muster_error err = {0};
        struct identity id;
        size_t n = 0;

        for (; job_cases[i].env[n] != NULL; n++)
            env[n] = job_cases[i].env[n];
        env[n++] = "MUSTER_RANK=0"; /* a rank, so that only the name is being judged */
        env[n++] = "MUSTER_WORLD_SIZE=1";
        env[n] = NULL;
        if (identity_read(env, &id, &err) != MUSTER_OK)
            fail_msg("case %zu: %s", i, err.text);
        assert_string_equal(id.job, job_cases[i].job);
    }
}

static void long_job_ids_stay_different(void **state)
{
    static const char *const first[] = {
        "SKYPILOT_TASK_ID=sky-managed-2024-01-01-00-00-00-000000_a-very-long-name-of-a-task_1-0",
        NULL};
    static const char *const second[] = {
        "SKYPILOT_TASK_ID=sky-managed-2024-01-01-00-00-00-000000_a-very-long-name-of-a-task_2-0",
        NULL};
    struct identity a;
    struct identity b;

    (void)state;
    assert_int_equal(identity_read(first, &a, NULL), MUSTER_OK);
    assert_int_equal(identity_read(second, &b, NULL), MUSTER_OK);
    assert_int_equal(strlen(a.job), IDENTITY_JOB_MAX - 1);
    assert_string_not_equal(a.job, b.job);
}

static void a_users_job_name_is_never_cut(void **state)
{
    char exact[16 + IDENTITY_JOB_MAX] = "MUSTER_JOB=";
    const char *const env[] = {exact, NULL};
    struct muster_error err;
    struct identity id;

    (void)state;
    memset(exact + strlen(exact), 'j', IDENTITY_JOB_MAX - 1);
    assert_int_equal(identity_read(env, &id, NULL), MUSTER_OK);
    exact[strlen(exact)] = 'j';
    assert_int_equal(identity_read(env, &id, &err), MUSTER_E_ARGUMENT);
    assert_non_null(strstr(err.text, "MUSTER_JOB is 64 bytes long"));
}

static void a_users_job_name_must_be_one(void **state)
{
    static const char *const names[] = {"MUSTER_JOB=a b", "MUSTER_JOB=-a", "MUSTER_JOB=.a",
                                        "MUSTER_JOB=a/b", "MUSTER_JOB=\xc3\xa9"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *const env[] = {names[i], NULL};
        struct muster_error err = {0};
        struct identity id;

        assert_int_equal(identity_read(env, &id, &err), MUSTER_E_ARGUMENT);
        assert_non_null(strstr(err.text, "cannot be a job's name"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_gives_all_its_fields),
        cmocka_unit_test(a_broken_family_is_refused_and_named),
        cmocka_unit_test(a_rejected_family_is_named_in_the_note_when_another_answers),
        cmocka_unit_test(the_fallback_to_a_single_process_is_said),
        cmocka_unit_test(an_own_rank_has_nothing_to_note),
        cmocka_unit_test(a_note_longer_than_its_field_is_cut_cleanly),
        cmocka_unit_test(the_jobs_name_is_the_most_stable_id),
        cmocka_unit_test(long_job_ids_stay_different),
        cmocka_unit_test(a_users_job_name_is_never_cut),
        cmocka_unit_test(a_users_job_name_must_be_one),
    };

    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
