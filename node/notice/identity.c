/* identity - which rank of which job this process is; see identity.h.
 * The families are a table in order of precedence; most are five variable names, the others have a
 * reader of their own. Sources of names and traps: each launcher's documentation and measurements
 * with Open MPI 4.1, MPICH 4.0 and Slurm 22.05. */
#include "node/notice/identity.h"

#include "schema/error.h"
#include "schema/number.h"
#include "schema/wire/wire.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum verdict {
    VERDICT_ABSENT = 0, /* the family's variables are not there */
    VERDICT_TAKEN,
    VERDICT_SKIPPED,  /* there, but rightly not ours: said in the note, no error */
    VERDICT_REJECTED, /* there, and broken: an error unless another family answers */
};

#define WHY_MAX 192

struct family {
    const char *name;
    /* Answers VERDICT_*; writes why[WHY_MAX] when skipped or rejected. */
    enum verdict (*read)(const struct family *family, const char *const *env, struct identity *out,
                         char *why);
    const char *rank; /* names of variables; NULL = the family has none */
    const char *size;
    const char *local_rank;
    const char *local_size;
    const char *restart_count;
};

/* ---- the environment ---- */

static const char *identity_env_get(const char *const *env, const char *name)
{
    size_t length = strlen(name);

    for (; *env != NULL; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return (*env)[length + 1] != '\0' ? *env + length + 1 : NULL;
    }
    return NULL;
}

/* Decimal digits only: "3 ", "+3", "0x3" and "-1" are nobody's rank. */
static bool identity_number_parse(const char *text, int *ret_value)
{
    int64_t value;

    if (!number_read_digits(text, 0, INT_MAX, &value))
        return false;
    *ret_value = (int)value;
    return true;
}

static enum verdict identity_reject(char *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum verdict identity_reject(char *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, WHY_MAX, format, args);
    va_end(args);
    return VERDICT_REJECTED;
}

/* A variable that must be there. */
static bool identity_number_need(const char *const *env, const char *name, int *ret_value,
                                 char *why)
{
    const char *text = identity_env_get(env, name);

    if (text == NULL)
        identity_reject(why, "%s is missing", name);
    else if (!identity_number_parse(text, ret_value))
        identity_reject(why, "%s=%.40s is not a number", name, text);
    else
        return true;
    return false;
}

/* A variable that may be missing (*value stays), but not be nonsense. name may be NULL. */
static bool identity_number_want(const char *const *env, const char *name, int *value, char *why)
{
    if (name == NULL || identity_env_get(env, name) == NULL)
        return true;
    return identity_number_need(env, name, value, why);
}

static enum verdict identity_check(const struct identity *id, char *why)
{
    if (id->world_size < 1)
        return identity_reject(why, "the world size is %d", id->world_size);
    if (id->rank >= id->world_size)
        return identity_reject(why, "rank %d is outside a world of %d", id->rank, id->world_size);
    if (id->local_size == 0 || id->local_size > id->world_size)
        return identity_reject(why, "local size %d does not fit a world of %d", id->local_size,
                               id->world_size);
    if (id->local_size > 0 && id->local_rank >= id->local_size)
        return identity_reject(why, "local rank %d is outside a local size of %d", id->local_rank,
                               id->local_size);
    return VERDICT_TAKEN;
}

/* ---- families ---- */

/* All from the table's names; the caller has seen that the family is there. */
static enum verdict identity_read_names(const struct family *family, const char *const *env,
                                        struct identity *out, char *why)
{
    if (!identity_number_need(env, family->rank, &out->rank, why) ||
        !identity_number_need(env, family->size, &out->world_size, why) ||
        !identity_number_want(env, family->local_rank, &out->local_rank, why) ||
        !identity_number_want(env, family->local_size, &out->local_size, why) ||
        !identity_number_want(env, family->restart_count, &out->restart_count, why))
        return VERDICT_REJECTED;
    return identity_check(out, why);
}

static enum verdict identity_read_by_rank(const struct family *family, const char *const *env,
                                          struct identity *out, char *why)
{
    if (identity_env_get(env, family->rank) == NULL)
        return VERDICT_ABSENT;
    return identity_read_names(family, env, out, why);
}

/* A size of several without a rank means that somebody started the processes by hand: each would be
 * a job of one. */
static enum verdict identity_read_plain(const struct family *family, const char *const *env,
                                        struct identity *out, char *why)
{
    int size = 1;

    if (identity_env_get(env, family->rank) != NULL)
        return identity_read_names(family, env, out, why);
    if (identity_number_want(env, family->size, &size, why) && size > 1)
        return identity_reject(why, "%s=%d comes without %s", family->size, size, family->rank);
    return VERDICT_ABSENT;
}

/* torchrun's own mark, or the three names that it (and DeepSpeed) sets for each process. RANK and
 * WORLD_SIZE alone may be a pod's and come much later, as "plain". */
static enum verdict identity_read_torchrun(const struct family *family, const char *const *env,
                                           struct identity *out, char *why)
{
    bool three = identity_env_get(env, "RANK") != NULL &&
                 identity_env_get(env, "WORLD_SIZE") != NULL &&
                 identity_env_get(env, "LOCAL_RANK") != NULL;

    if (!three && identity_env_get(env, "TORCHELASTIC_RUN_ID") == NULL)
        return VERDICT_ABSENT;
    return identity_read_names(family, env, out, why);
}

/* srun --mpi=pmix: PMIx there is only the wire-up, and its size is not in the environment. */
static bool identity_pmix_is_slurms(const char *const *env)
{
    const char *name_space = identity_env_get(env, "PMIX_NAMESPACE");

    return name_space != NULL && strncmp(name_space, "slurm.pmix.", strlen("slurm.pmix.")) == 0;
}

static enum verdict identity_read_pmix(const struct family *family, const char *const *env,
                                       struct identity *out, char *why)
{
    if (identity_env_get(env, family->rank) == NULL)
        return VERDICT_ABSENT;
    if (identity_pmix_is_slurms(env)) {
        identity_reject(why, "PMIX_RANK is from srun, the step's variables count");
        return VERDICT_SKIPPED;
    }
    return identity_read_names(family, env, out, why);
}

/* The entry of node `index` in Slurm's "2(x3),1"; IDENTITY_UNKNOWN when it does not parse. */
static int identity_slurm_tasks_on_node(const char *text, int index)
{
    while (isdigit((unsigned char)*text)) {
        char *end;
        long tasks = strtol(text, &end, 10);
        long nodes = 1;

        if (end[0] == '(' && end[1] == 'x') {
            nodes = strtol(end + 2, &end, 10);
            if (nodes < 1 || *end++ != ')')
                return IDENTITY_UNKNOWN;
        }
        if (tasks < 1 || tasks > INT_MAX)
            return IDENTITY_UNKNOWN;
        if (index < nodes)
            return (int)tasks;
        index -= (int)nodes;
        if (*end != ',')
            return IDENTITY_UNKNOWN;
        text = end + 1;
    }
    return IDENTITY_UNKNOWN;
}

/* Why SLURM_PROCID must not be believed, or NULL. mpirun inside a batch script starts every rank
 * with the batch shell's SLURM_PROCID=0: N chiefs would write one checkpoint. */
static const char *identity_slurm_distrust(const char *const *env)
{
    static const char *const mpi_names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                            "MV2_COMM_WORLD_RANK", "PMIX_RANK"};
    const char *step = identity_env_get(env, "SLURM_STEP_ID");

    if (step == NULL)
        return "SLURM_PROCID without SLURM_STEP_ID is the batch script's, not a rank's";
    /* Slurm's own steps (interactive, batch, extern) count down from 0xfffffffb. */
    if (strtoull(step, NULL, 10) >= 0xfffffff0ULL)
        return "SLURM_STEP_ID is of a shell, not of a numbered step";
    for (size_t i = 0; i < sizeof mpi_names / sizeof mpi_names[0]; i++) {
        if (identity_env_get(env, mpi_names[i]) != NULL &&
            !(strcmp(mpi_names[i], "PMIX_RANK") == 0 && identity_pmix_is_slurms(env)))
            return "SLURM_PROCID beside MPI's variables may be the launcher's, not the rank's";
    }
    return NULL;
}

static enum verdict identity_read_slurm(const struct family *family, const char *const *env,
                                        struct identity *out, char *why)
{
    struct family names = *family;
    const char *tasks = identity_env_get(env, "SLURM_STEP_TASKS_PER_NODE");
    const char *distrust;
    int node = IDENTITY_UNKNOWN;
    int pmix_rank;
    enum verdict verdict;

    if (identity_env_get(env, family->rank) == NULL)
        return VERDICT_ABSENT;
    distrust = identity_slurm_distrust(env);
    if (distrust != NULL) {
        identity_reject(why, "%s", distrust);
        return VERDICT_SKIPPED;
    }
    if (identity_env_get(env, names.size) == NULL)
        names.size = "SLURM_NTASKS";
    if (!identity_number_want(env, "SLURM_NODEID", &node, why))
        return VERDICT_REJECTED;
    if (tasks != NULL && node >= 0)
        out->local_size = identity_slurm_tasks_on_node(tasks, node);
    verdict = identity_read_names(&names, env, out, why);
    pmix_rank = out->rank;
    if (verdict == VERDICT_TAKEN && !identity_number_want(env, "PMIX_RANK", &pmix_rank, why))
        return VERDICT_REJECTED;
    if (verdict == VERDICT_TAKEN && pmix_rank != out->rank)
        return identity_reject(why, "SLURM_PROCID=%d but PMIX_RANK=%d", out->rank, pmix_rank);
    return verdict;
}

/* {"cluster":{"chief":[..],"worker":[..],"ps":[..]},"task":{"type":"worker","index":0}}: the chief
 * is rank 0, workers follow. "master" is the chief's old name. */
static enum verdict identity_tf_config_take(const json_t *root, struct identity *out, char *why)
{
    const json_t *cluster = json_object_get(root, "cluster");
    const json_t *task = json_object_get(root, "task");
    const char *type = json_string_value(json_object_get(task, "type"));
    const json_t *index = json_object_get(task, "index");
    size_t chiefs = json_array_size(json_object_get(cluster, "chief")) +
                    json_array_size(json_object_get(cluster, "master"));
    size_t workers = json_array_size(json_object_get(cluster, "worker"));
    size_t before = 0;
    size_t own = chiefs;

    if (type == NULL || !json_is_integer(index))
        return identity_reject(why, "TF_CONFIG has no task type and index");
    if (strcmp(type, "worker") == 0) {
        before = chiefs;
        own = workers;
    } else if (strcmp(type, "chief") != 0 && strcmp(type, "master") != 0) {
        return identity_reject(why, "a TF_CONFIG task of type %.40s takes no part in steps", type);
    }
    if (json_integer_value(index) < 0 || (size_t)json_integer_value(index) >= own ||
        chiefs + workers > INT_MAX)
        return identity_reject(
            why, "TF_CONFIG's task %.40s:%" JSON_INTEGER_FORMAT " is not in its cluster", type,
            json_integer_value(index));
    out->rank = (int)(before + (size_t)json_integer_value(index));
    out->world_size = (int)(chiefs + workers);
    return identity_check(out, why);
}

static enum verdict identity_read_tf_config(const struct family *family, const char *const *env,
                                            struct identity *out, char *why)
{
    const char *text = identity_env_get(env, family->rank);
    json_error_t json_error;
    enum verdict verdict = VERDICT_ABSENT; /* without a cluster it means a single process */
    json_t *root;

    if (text == NULL)
        return VERDICT_ABSENT;
    root = json_loads(text, JSON_REJECT_DUPLICATES, &json_error);
    if (!json_is_object(root))
        verdict = identity_reject(why, "TF_CONFIG is not a JSON object");
    else if (json_object_size(json_object_get(root, "cluster")) > 0)
        verdict = identity_tf_config_take(root, out, why);
    json_decref(root);
    return verdict;
}

/* Kubernetes tells a pod of an indexed Job its index but not how many there are: the user does. */
static enum verdict identity_read_k8s_index(const struct family *family, const char *const *env,
                                            struct identity *out, char *why)
{
    if (identity_env_get(env, family->rank) == NULL)
        return VERDICT_ABSENT;
    if (identity_env_get(env, family->size) == NULL)
        return identity_reject(why, "JOB_COMPLETION_INDEX comes without a world size; set "
                                    "MUSTER_WORLD_SIZE to the Job's completions");
    return identity_read_names(family, env, out, why);
}

/* SM_HOSTS is a JSON array of all hosts in one order; the rank is SM_CURRENT_HOST's place. */
static enum verdict identity_read_sagemaker(const struct family *family, const char *const *env,
                                            struct identity *out, char *why)
{
    const char *host = identity_env_get(env, family->rank);
    const char *hosts = identity_env_get(env, family->size);
    json_error_t json_error;
    size_t count;
    size_t place;
    json_t *root;

    if (host == NULL)
        return VERDICT_ABSENT;
    if (hosts == NULL)
        return identity_reject(why, "SM_HOSTS is missing");
    root = json_loads(hosts, 0, &json_error);
    count = json_array_size(root);
    for (place = 0; place < count; place++) {
        const char *name = json_string_value(json_array_get(root, place));

        if (name != NULL && strcmp(name, host) == 0)
            break;
    }
    json_decref(root);
    if (place == count || count > INT_MAX)
        return identity_reject(why, "SM_CURRENT_HOST=%.40s is not in SM_HOSTS", host);
    out->rank = (int)place;
    out->world_size = (int)count;
    return identity_check(out, why);
}

static int identity_csv_count(const char *text)
{
    int count = 1;

    for (; *text != '\0'; text++)
        count += *text == ',';
    return count;
}

/* The worker's number in its slice; the numbers of several slices (MEGASCALE_*) follow each
 * other. */
static enum verdict identity_read_tpu(const struct family *family, const char *const *env,
                                      struct identity *out, char *why)
{
    const char *hosts = identity_env_get(env, family->size);
    int slice = 0;
    int slices = 1;
    int worker;
    int workers;

    if (identity_env_get(env, family->rank) == NULL)
        return VERDICT_ABSENT;
    if (hosts == NULL)
        hosts = identity_env_get(env, "TPU_PROCESS_ADDRESSES");
    if (hosts == NULL)
        return identity_reject(why, "TPU_WORKER_HOSTNAMES is missing");
    if (!identity_number_need(env, family->rank, &worker, why) ||
        !identity_number_want(env, "MEGASCALE_SLICE_ID", &slice, why) ||
        !identity_number_want(env, "MEGASCALE_NUM_SLICES", &slices, why))
        return VERDICT_REJECTED;
    workers = identity_csv_count(hosts);
    if (worker >= workers || slice >= slices || slices > INT_MAX / workers)
        return identity_reject(why, "worker %d of %d in slice %d of %d cannot be", worker, workers,
                               slice, slices);
    out->rank = slice * workers + worker;
    out->world_size = slices * workers;
    return identity_check(out, why);
}

/* Innermost launcher first. */
static const struct family families[] = {
    {"muster", identity_read_by_rank, "MUSTER_RANK", "MUSTER_WORLD_SIZE", "MUSTER_LOCAL_RANK",
     "MUSTER_LOCAL_SIZE", "MUSTER_RESTART_COUNT"},
    {"torchrun", identity_read_torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
     "TORCHELASTIC_RESTART_COUNT"},
    /* OMPI_COMM_WORLD_NODE_RANK is the rank within the node, so it is not needed. */
    {"openmpi", identity_read_by_rank, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_orte_num_restarts"},
    /* PRRTE keeps Open MPI's size beside PMIx's rank. */
    {"pmix", identity_read_pmix, "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, NULL},
    {"pmi", identity_read_by_rank, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
     NULL},
    {"jsm", identity_read_by_rank, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE",
     "JSM_NAMESPACE_LOCAL_RANK", NULL, NULL},
    {"flux", identity_read_by_rank, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", NULL,
     NULL},
    {"slurm", identity_read_slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
     "SLURM_RESTART_COUNT"},
    {"plain", identity_read_plain, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL},
    {"tf_config", identity_read_tf_config, "TF_CONFIG", NULL, NULL, NULL, NULL},
    {"k8s_index", identity_read_k8s_index, "JOB_COMPLETION_INDEX", "MUSTER_WORLD_SIZE", NULL, NULL,
     NULL},
    {"skypilot", identity_read_by_rank, "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES", NULL, NULL,
     NULL},
    {"sagemaker", identity_read_sagemaker, "SM_CURRENT_HOST", "SM_HOSTS", NULL, NULL, NULL},
    {"tpu", identity_read_tpu, "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES", NULL, NULL, NULL},
};

#define FAMILY_COUNT (sizeof families / sizeof families[0])
#define FAMILY_OWN 0 /* what the user said himself: never fallen back from */
#define FAMILY_TORCHRUN 1
#define FAMILY_FIRST_OF_NODES 10

static void identity_clear(struct identity *id)
{
    memset(id, 0, sizeof *id);
    id->world_size = 1;
    id->local_rank = IDENTITY_UNKNOWN;
    id->local_size = IDENTITY_UNKNOWN;
}

static void identity_note_add(char *note, size_t note_size, const char *name, const char *why)
{
    size_t used = strlen(note);

    snprintf(note + used, note_size - used, "%s%s: %s", used > 0 ? "; " : "", name, why);
}

/* ---- the job's name ---- */

/* Ids of schedulers may hold any characters (Flux begins with U+0192): only letters, digits and ._-
 * stay.
 * A name too long keeps its head and gets a hash, so that two long names stay two names. */
static void identity_job_set(char *job, const char *prefix, const char *value)
{
    size_t used = (size_t)snprintf(job, IDENTITY_JOB_MAX, "%s", prefix);
    bool fits = used + strlen(value) < IDENTITY_JOB_MAX;
    size_t room = fits ? IDENTITY_JOB_MAX - 1 : IDENTITY_JOB_MAX - 1 - 17;

    for (const char *c = value; *c != '\0' && used < room; c++)
        job[used++] = *c;
    job[used] = '\0';
    wire_job_name_clean(job);
    if (!fits)
        snprintf(job + used, IDENTITY_JOB_MAX - used, "-%016" PRIx64,
                 (uint64_t)XXH64(value, strlen(value), 0));
}

/* The names that stay over restarts, most stable first; an array's elements are jobs of their own.
 * PMIX_NAMESPACE and PMI_JOBID change with every launch and are no names. */
static const struct {
    const char *prefix;
    const char *id;
    const char *index;   /* a second variable, joined with "_"; NULL = none */
    const char *nothing; /* a value of the last variable that means "unset" */
} job_ids[] = {
    {"", "SKYPILOT_TASK_ID", NULL, ""},
    {"slurm-", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", ""},
    {"slurm-", "SLURM_JOB_ID", NULL, ""},
    {"flux-", "FLUX_JOB_ID", NULL, ""},
    {"lsf-", "LSB_JOBID", "LSB_JOBINDEX", "0"},
    {"lsf-", "LSB_JOBID", NULL, ""},
    {"pbs-", "PBS_JOBID", NULL, ""},
    {"torch-", "TORCHELASTIC_RUN_ID", NULL, "none"},
};

enum muster_status identity_job(const char *const *env, char job[IDENTITY_JOB_MAX],
                                struct muster_error *err)
{
    const char *user = identity_env_get(env, "MUSTER_JOB");

    if (user != NULL && strlen(user) >= IDENTITY_JOB_MAX)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "MUSTER_JOB is %zu bytes long, a job's name has at most %d: shorten it",
                         strlen(user), IDENTITY_JOB_MAX - 1);
    if (user != NULL && !wire_job_name_ok(user))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "MUSTER_JOB=\"%.100s\" cannot be a job's name; use 1 to %d of A-Z a-z 0-9 "
                         ". _ -, not beginning with . or -",
                         user, JOB_NAME_MAX);
    if (user != NULL) {
        snprintf(job, IDENTITY_JOB_MAX, "%s", user);
        return MUSTER_OK;
    }
    for (size_t i = 0; i < sizeof job_ids / sizeof job_ids[0]; i++) {
        const char *id = identity_env_get(env, job_ids[i].id);
        const char *index = job_ids[i].index != NULL ? identity_env_get(env, job_ids[i].index) : "";
        char both[256];

        if (id == NULL || index == NULL)
            continue;
        if (strcmp(job_ids[i].index != NULL ? index : id, job_ids[i].nothing) == 0)
            continue;
        snprintf(both, sizeof both, "%s%s%s", id, index[0] != '\0' ? "_" : "", index);
        identity_job_set(job, job_ids[i].prefix, both);
        return MUSTER_OK;
    }
    job[0] = '\0';
    return MUSTER_OK;
}

/* ---- putting it together ---- */

/* MUSTER_WORLD_SIZE without MUSTER_RANK is a statement to hold the launcher against. */
static enum muster_status identity_size_agrees(const char *const *env, const struct identity *id,
                                               struct muster_error *err)
{
    char why[WHY_MAX];
    int size = id->world_size;

    if (!identity_number_want(env, "MUSTER_WORLD_SIZE", &size, why))
        return error_set(err, MUSTER_E_ARGUMENT, "%s: correct or unset it", why);
    if (size != id->world_size && strcmp(id->family, "single") == 0)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "MUSTER_WORLD_SIZE is %d, and nothing says which of these ranks this "
                         "process is: set MUSTER_RANK too, or unset MUSTER_WORLD_SIZE",
                         size);
    if (size != id->world_size)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "MUSTER_WORLD_SIZE is %d but %s says %d: set MUSTER_RANK too, or unset "
                         "MUSTER_WORLD_SIZE",
                         size, id->family, id->world_size);
    return MUSTER_OK;
}

/* torchrun under `muster run -n 1` passes the outer rank on: each of its processes would be rank 0
 * of 1. */
static enum muster_status identity_torchrun_agrees(const char *const *env,
                                                   const struct identity *id,
                                                   struct muster_error *err)
{
    const struct family *torchrun = &families[FAMILY_TORCHRUN];
    struct identity other;
    char why[WHY_MAX];

    identity_clear(&other);
    if (identity_env_get(env, "TORCHELASTIC_RUN_ID") == NULL ||
        identity_read_torchrun(torchrun, env, &other, why) != VERDICT_TAKEN ||
        (other.rank == id->rank && other.world_size == id->world_size))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_ARGUMENT,
                     "MUSTER_RANK and MUSTER_WORLD_SIZE say rank %d of %d, but torchrun says rank "
                     "%d of %d; start torchrun by `muster run --launcher`, or unset MUSTER_RANK "
                     "and MUSTER_WORLD_SIZE in what it starts",
                     id->rank, id->world_size, other.rank, other.world_size);
}

static enum muster_status identity_family_choose(const char *const *env, struct identity *ret,
                                                 struct muster_error *err)
{
    char note[sizeof ret->note] = "";
    bool rejected = false;

    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        const struct family *family = &families[i];
        char why[WHY_MAX] = "";
        struct identity id;
        enum verdict verdict;

        identity_clear(&id);
        verdict = family->read(family, env, &id, why);
        if (verdict == VERDICT_REJECTED && i == FAMILY_OWN)
            return error_set(err, MUSTER_E_ARGUMENT,
                             "%s: correct MUSTER_RANK and MUSTER_WORLD_SIZE, or unset both", why);
        if (verdict == VERDICT_TAKEN && i == FAMILY_OWN &&
            identity_torchrun_agrees(env, &id, err) != MUSTER_OK)
            return MUSTER_E_ARGUMENT;
        if (verdict == VERDICT_TAKEN) {
            *ret = id;
            snprintf(ret->family, sizeof ret->family, "%s", family->name);
            if (i >= FAMILY_FIRST_OF_NODES)
                identity_note_add(note, sizeof note, family->name,
                                  "its ranks are nodes, one process each");
            memcpy(ret->note, note, sizeof note);
            return MUSTER_OK;
        }
        rejected = rejected || verdict == VERDICT_REJECTED;
        if (verdict != VERDICT_ABSENT)
            identity_note_add(note, sizeof note, family->name, why);
    }
    if (rejected)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "the launcher's variables give no usable rank (%s): correct them, or set "
                         "MUSTER_RANK and MUSTER_WORLD_SIZE",
                         note);
    identity_clear(ret);
    snprintf(ret->family, sizeof ret->family, "single");
    identity_note_add(note, sizeof note, "single",
                      "no launcher gave a rank, so this is rank 0 of 1");
    memcpy(ret->note, note, sizeof note);
    return MUSTER_OK;
}

enum muster_status identity_read(const char *const *environ_like, struct identity *ret,
                                 struct muster_error *err)
{
    enum muster_status status;
    struct identity id = {0};

    status = identity_family_choose(environ_like, &id, err);
    if (status == MUSTER_OK)
        status = identity_size_agrees(environ_like, &id, err);
    if (status == MUSTER_OK)
        status = identity_job(environ_like, id.job, err);
    if (status == MUSTER_OK)
        *ret = id;
    return status;
}
