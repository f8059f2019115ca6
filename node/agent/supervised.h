/* supervised - what a node tells the supervisor that started its process, by two small files.
 *
 *   MUSTER_ERROR_FILE         why this process ends: one JSON object, written once, at the first
 *                             error that ends the node (its own step, fail, or any MUSTER_E_*)
 *   TORCHELASTIC_ERROR_FILE   the same object, unless torchrun's own file is there already
 *   MUSTER_LIFE_FILE          which node lives in this process, under a lock that the kernel takes
 *                             away with the process. Unlocked and not empty: the process died
 *                             without leaving the job. A node that left empties the file, or
 *                             writes "muster-left 1" and a line: why, or which saves failed.
 *                             "muster-finished 1": it had done all its steps.
 *                             A last line "started" tells that steps may be taken
 *
 * Owns: those files' form; the lock. Fields of the JSON object: schema_version (1), job, role,
 * rank, world_size, host, pid, generation, incarnation (16 hexadecimal digits), status (name),
 * code, step (-1: none), error_rank (whose failure it is), text, unix_ms. `message` has the form
 * that torchrun reads.
 * Never: an error of its own: it goes on without a file that cannot be written. Nothing in a forked
 * child (its callers see to that; the lock is not inherited). */
#ifndef NODE_SUPERVISED_H
#define NODE_SUPERVISED_H

#include "node/shard/fs.h"

#include <stdatomic.h>

/* The node that speaks. Strings are borrowed for the call. */
struct supervised_facts {
    const char *job;
    const char *role;
    const char *host;
    const char *broker;
    int rank;
    int world_size;
    uint64_t generation; /* 0: none yet */
    uint64_t incarnation;
};

#define SUPERVISED_WHY_MAX 1024

struct supervised {
    char error_path[FS_PATH_MAX]; /* "": not asked for */
    char torch_path[FS_PATH_MAX];
    char life_path[FS_PATH_MAX];
    int life_fd; /* -1: none */
    bool started;
    bool finished;
    char why[SUPERVISED_WHY_MAX];
    atomic_bool told;
};

/* Reads the three variables. Before the node's threads start: getenv is not safe beside setenv. */
void supervised_init(struct supervised *supervised);

/* The node begins to speak to the broker. Only the first node of a process is recorded. */
void supervised_joins(struct supervised *supervised, const struct supervised_facts *facts);

/* Its first step may begin. Agent thread, before `leaves`; the first call writes, later ones do
 * nothing. */
void supervised_starts(struct supervised *supervised);

/* For the time when it has left: why it was preempted, or which saves failed. Control characters
 * become spaces there. */
void supervised_says(struct supervised *supervised, const char *why);

/* It left as finished: a signal that ends the process from here on changes nothing. */
void supervised_finished(struct supervised *supervised);

/* The node goes on without a broker: no other rank has to hear of its death, and its last words are
 * only for the supervisor. */
void supervised_alone(struct supervised *supervised);

/* It left, or will never be a member. NULL-safe, also before init's. */
void supervised_leaves(struct supervised *supervised);

/* The first call writes, later ones do nothing. Any thread. */
void supervised_error(struct supervised *supervised, const struct supervised_facts *facts,
                      const struct muster_error *error);

#endif
