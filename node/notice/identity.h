/* identity - which rank of which job this process is, read from its launcher's environment.
 * Owns: the table of launchers ("families"), their order and their traps.
 * Never: reads the process's own environment, touches a file or a socket, keeps a reference.
 * Invariant: all numbers of one answer come from one family; families are never mixed. */
#ifndef NODE_NOTICE_IDENTITY_H
#define NODE_NOTICE_IDENTITY_H

#include "schema/status.h"

#define IDENTITY_JOB_MAX 64
#define IDENTITY_UNKNOWN (-1)

struct identity {
    char job[IDENTITY_JOB_MAX]; /* "" when neither the user nor a scheduler named one */
    int rank;
    int world_size;
    int local_rank;    /* rank on this host; IDENTITY_UNKNOWN when the family does not say */
    int local_size;    /* ranks on this host; IDENTITY_UNKNOWN when the family does not say */
    int restart_count; /* restarts that the launcher knows of; 0 when it does not say */
    char family[32];   /* "muster", "torchrun", "openmpi", "slurm", ..., "single" */
    char note[256];    /* for the log: why other families were not taken; "" when nothing to say */
};

/* Finds this process's place in its job from `environ_like`, a NULL-terminated list of NAME=value.
 * Order, innermost launcher first: muster (MUSTER_RANK and MUSTER_WORLD_SIZE), torchrun, openmpi,
 * pmix, pmi, jsm, flux, slurm (a numbered step, without MPI variables), plain (RANK and
 * WORLD_SIZE), tf_config, k8s_index (with MUSTER_WORLD_SIZE), skypilot, sagemaker, tpu, and at last
 * single: rank 0 of 1, said in the note. A variable with an empty value counts as unset.
 * The job's name: MUSTER_JOB, else SkyPilot's, Slurm's, Flux's, LSF's, PBS's or torchrun's id.
 * A family that is there but incomplete or contradictory is rejected and named in the note; when no
 * other family answers it is MUSTER_E_ARGUMENT, because "single" would make every process the
 * chief. MUSTER_RANK or MUSTER_WORLD_SIZE that contradict are MUSTER_E_ARGUMENT at once.
 * Does not block; any thread; borrows its arguments for the call; *ret untouched on failure. */
enum muster_status identity_read(const char *const *environ_like, struct identity *ret,
                                 struct muster_error *err);

/* Only the job's name, for a process that is no rank, such as a launcher; "" when no variable names
 * it. */
enum muster_status identity_job(const char *const *environ_like, char job[IDENTITY_JOB_MAX],
                                struct muster_error *err);

#endif
