/* disk_log - the record; see disk_log.h. The states are made in disk_states.c. */
#include "tests/faults/disk_log.h"

#include "tests/faults/disk_log_internal.h"
#include "tests/faults/file_calls.h"
#include "tests/support/scratch.h"

#include <stdarg.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct disk_op *op_add(struct disk_log *log, enum disk_op_kind kind)
{
    struct disk_op *op;

    assert_true(log->count < DISK_OPS_MAX);
    op = &log->ops[log->count++];
    *op = (struct disk_op){.kind = kind, .scene = log->scene};
    return op;
}

/* --- the tree as it is now -------------------------------------------------------------------- */

int disk_tree_find(const struct disk_tree *tree, int dir, const char *name)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->names[i].dir == dir && strcmp(tree->names[i].name, name) == 0)
            return i;
    return -1;
}

void disk_tree_drop(struct disk_tree *tree, int dir, const char *name)
{
    int at = disk_tree_find(tree, dir, name);

    if (at >= 0)
        tree->names[at] = tree->names[--tree->count];
}

void disk_tree_put(struct disk_tree *tree, int dir, const char *name, int node)
{
    struct disk_name *entry;

    disk_tree_drop(tree, dir, name);
    assert_true(tree->count < DISK_NAMES_MAX);
    entry = &tree->names[tree->count++];
    entry->dir = dir;
    entry->node = node;
    snprintf(entry->name, sizeof entry->name, "%s", name);
}

/* The directory that a path is in, and its last part; -1: it is not below ours. */
static int resolve(const struct disk_log *log, const char *path, const char **ret_name)
{
    const size_t length = strlen(log->dir);
    int dir = DISK_ROOT;

    if (strncmp(path, log->dir, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return -1;
    path += length;
    while (*path == '/')
        path++;
    for (const char *end = strchr(path, '/'); end != NULL;
         path = end + 1, end = strchr(path, '/')) {
        char part[DISK_NAME_SIZE];
        int at;

        snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
        at = disk_tree_find(&log->now, dir, part);
        if (at < 0)
            return -1;
        dir = log->now.names[at].node;
    }
    *ret_name = path;
    return dir;
}

static int node_of(const struct disk_log *log, const char *path)
{
    const char *name;
    int dir = resolve(log, path, &name);
    int at = dir < 0 || *name == '\0' ? -1 : disk_tree_find(&log->now, dir, name);

    return dir == DISK_ROOT && *name == '\0' ? DISK_ROOT : at < 0 ? -1 : log->now.names[at].node;
}

/* --- what is seen ----------------------------------------------------------------------------- */

static void see_new(struct disk_log *log, const char *path, bool is_dir)
{
    const char *name;
    int dir = resolve(log, path, &name);
    struct disk_op *op;

    if (dir < 0 || disk_tree_find(&log->now, dir, name) >= 0)
        return;
    assert_true(log->node_count < DISK_NODES_MAX);
    log->is_dir[log->node_count] = is_dir;
    op = op_add(log, DISK_OP_ADD);
    op->node = log->node_count++;
    op->dir = dir;
    snprintf(op->name, sizeof op->name, "%s", name);
    disk_tree_put(&log->now, dir, name, op->node);
}

static void see_link(struct disk_log *log, const char *from, const char *path)
{
    const char *name;
    int dir = resolve(log, path, &name), node = node_of(log, from);
    struct disk_op *op;

    if (dir < 0 || node < 0)
        return;
    op = op_add(log, DISK_OP_ADD);
    op->node = node;
    op->dir = dir;
    snprintf(op->name, sizeof op->name, "%s", name);
    disk_tree_put(&log->now, dir, name, node);
}

static void see_removed(struct disk_log *log, const char *path)
{
    const char *name;
    int dir = resolve(log, path, &name);
    struct disk_op *op;

    if (dir < 0 || disk_tree_find(&log->now, dir, name) < 0)
        return;
    op = op_add(log, DISK_OP_DROP);
    op->dir = dir;
    snprintf(op->name, sizeof op->name, "%s", name);
    disk_tree_drop(&log->now, dir, name);
}

static void see_renamed(struct disk_log *log, const char *from, const char *path)
{
    const char *name, *old;
    int dir = resolve(log, path, &name), old_dir = resolve(log, from, &old);
    int node = node_of(log, from);
    struct disk_op *op;

    assert_true(dir >= 0 && old_dir >= 0 && node >= 0);
    op = op_add(log, DISK_OP_RENAME);
    op->node = node;
    op->dir = dir;
    op->old_dir = old_dir;
    snprintf(op->name, sizeof op->name, "%s", name);
    snprintf(op->old_name, sizeof op->old_name, "%s", old);
    disk_tree_drop(&log->now, old_dir, old);
    disk_tree_put(&log->now, dir, name, node);
}

static void see_data(struct disk_log *log, const char *path)
{
    int node = node_of(log, path);
    struct disk_op *op;

    if (node < 0)
        return;
    op = op_add(log, DISK_OP_DATA);
    op->node = node;
    op->data = scratch_read(path, &op->size);
}

static void see_sync(struct disk_log *log, const char *path)
{
    int node = node_of(log, path);
    struct disk_op *op;

    if (node < 0)
        return;
    op = op_add(log, DISK_OP_SYNC);
    op->node = node;
    snprintf(op->path, sizeof op->path, "%s", path + strlen(log->dir));
}

void disk_log_see(void *arg, const struct file_calls_seen *call)
{
    struct disk_log *log = arg;
    const char *name = call->name;

    log->counts.calls++;
    if (strcmp(name, "open") == 0 || strcmp(name, "mkdir") == 0)
        see_new(log, call->path, name[0] == 'm');
    else if (strcmp(name, "link") == 0)
        see_link(log, call->from, call->path);
    else if (strcmp(name, "unlink") == 0 || strcmp(name, "rmdir") == 0)
        see_removed(log, call->path);
    else if (strcmp(name, "rename") == 0 || strcmp(name, "renameat2") == 0)
        see_renamed(log, call->from, call->path);
    else if (strcmp(name, "fsync") == 0)
        see_sync(log, call->path);
    else
        see_data(log, call->path);
}

/* --- for the caller --------------------------------------------------------------------------- */

struct disk_log *disk_log_create(const char *dir)
{
    struct disk_log *log = calloc(1, sizeof *log);

    assert_non_null(log);
    snprintf(log->dir, sizeof log->dir, "%s", dir);
    log->is_dir[DISK_ROOT] = true;
    log->node_count = 1;
    log->scene = "";
    file_calls_watch(disk_log_see, log);
    return log;
}

void disk_log_destroy(struct disk_log **log)
{
    if (*log == NULL)
        return;
    file_calls_watch(NULL, NULL);
    for (int i = 0; i < (*log)->count; i++)
        free((*log)->ops[i].data);
    free(*log);
    *log = NULL;
}

void disk_log_scene(struct disk_log *log, const char *scene)
{
    log->scene = scene;
}

void disk_log_told(struct disk_log *log, const void *told, size_t size)
{
    struct disk_op *op = op_add(log, DISK_OP_TOLD);

    op->data = malloc(size);
    assert_non_null(op->data);
    memcpy(op->data, told, size);
    op->size = size;
}

/* '*' at the end stands for anything. */
static bool fits(const char *pattern, const char *text)
{
    const size_t length = strlen(pattern);

    return length > 0 && pattern[length - 1] == '*' ? strncmp(pattern, text, length - 1) == 0
                                                    : strcmp(pattern, text) == 0;
}

static bool matches(const struct disk_op *op, const struct disk_drop *drop)
{
    return op->kind == DISK_OP_SYNC && fits(drop->scene, op->scene) && fits(drop->path, op->path);
}

unsigned disk_log_drop(struct disk_log *log, const struct disk_drop *drop)
{
    unsigned found = 0, dropped = 0;

    for (int i = 0; i < log->count; i++) {
        struct disk_op *op = &log->ops[i];

        op->dropped =
            drop->scene != NULL && matches(op, drop) && (++found == drop->n || drop->n == 0);
        dropped += op->dropped;
    }
    return dropped;
}

bool disk_log_sync(const struct disk_log *log, size_t i, const char **ret_scene,
                   const char **ret_path)
{
    for (int k = 0; k < log->count; k++) {
        if (log->ops[k].kind != DISK_OP_SYNC || i-- > 0)
            continue;
        *ret_scene = log->ops[k].scene;
        *ret_path = log->ops[k].path;
        return true;
    }
    return false;
}

struct disk_counts disk_log_counts(const struct disk_log *log)
{
    return log->counts;
}
