/* disk_log_internal - shared by disk_log.c and disk_states.c alone. */
#ifndef TESTS_FAULTS_DISK_LOG_INTERNAL_H
#define TESTS_FAULTS_DISK_LOG_INTERNAL_H

#include "tests/faults/disk_log.h"

#include <limits.h>

#define DISK_OPS_MAX 2000
#define DISK_NODES_MAX 300
#define DISK_NAMES_MAX 200 /* at one time */
#define DISK_NAME_SIZE 128
#define DISK_BYTES_MAX 65536 /* of a file */
#define DISK_ROOT 0          /* the node of `dir` */

enum disk_op_kind {
    DISK_OP_ADD,    /* a name for a new node, or a further one */
    DISK_OP_DROP,   /* a name goes */
    DISK_OP_RENAME, /* both */
    DISK_OP_DATA,   /* a file's content is this */
    DISK_OP_SYNC,
    DISK_OP_TOLD,
};

struct disk_op {
    enum disk_op_kind kind;
    const char *scene;
    bool dropped; /* a sync that is taken for not made */
    int node, dir, old_dir;
    char name[DISK_NAME_SIZE], old_name[DISK_NAME_SIZE];
    char path[2 * DISK_NAME_SIZE]; /* of a sync */
    char *data;                    /* owned: a file's bytes, or what was told */
    size_t size;
};

struct disk_name {
    int dir, node;
    char name[DISK_NAME_SIZE];
};
struct disk_tree {
    struct disk_name names[DISK_NAMES_MAX];
    int count;
};
int disk_tree_find(const struct disk_tree *tree, int dir, const char *name); /* -1: not there */
void disk_tree_drop(struct disk_tree *tree, int dir, const char *name);
void disk_tree_put(struct disk_tree *tree, int dir, const char *name, int node);

struct disk_log {
    char dir[PATH_MAX];
    const char *scene;
    struct disk_op ops[DISK_OPS_MAX];
    int count;
    bool is_dir[DISK_NODES_MAX];
    int node_count;
    struct disk_tree now;
    struct disk_counts counts;
};

#endif
