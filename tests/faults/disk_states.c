/* disk_states - what a disk_log's directory may hold after a power cut; see disk_log.h. */
#include "tests/faults/disk_log.h"

#include "tests/faults/disk_log_internal.h"
#include "tests/support/scratch.h"

#include <stdarg.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#define CHOICES_MAX 400
#define SEEN_BUCKETS 65536u

enum part {
    PART_WHOLE,
    PART_ADDED,
    PART_DROPPED,
    PART_COUNT
}; /* of a renamed file the two can be told apart */
enum bytes { BYTES_SYNCED, BYTES_ZEROS, BYTES_HALF, BYTES_ALL, BYTES_COUNT };

/* What the disk may have or not: an op's part (values 0 and 1), or a file's bytes (enum bytes). */
struct choice {
    int op; /* -1: of `node`s bytes */
    enum part part;
    int node;
    unsigned values;
};

struct point { /* the power goes before ops[at] */
    const struct disk_log *log;
    int at;
    const void *told;
    int synced[DISK_NODES_MAX];  /* the newest sync, or -1 */
    int durable[DISK_NODES_MAX]; /* the op with the bytes of that sync, or -1 */
    int current[DISK_NODES_MAX]; /* the op with the newest bytes, or -1 */
    struct choice choices[CHOICES_MAX];
    int count;
    int choice_of[DISK_OPS_MAX][PART_COUNT],
        choice_of_bytes[DISK_NODES_MAX]; /* -1: it is not open */
};

/* --- seen ------------------------------------------------------------------------------------- */

struct disk_seen {
    uint64_t *hashes;
    size_t count, capacity;
};

struct disk_seen *disk_seen_create(void)
{
    struct disk_seen *seen = calloc(1, sizeof *seen);

    assert_non_null(seen);
    seen->capacity = SEEN_BUCKETS;
    seen->hashes = calloc(seen->capacity, sizeof *seen->hashes);
    assert_non_null(seen->hashes);
    return seen;
}

void disk_seen_destroy(struct disk_seen **seen)
{
    if (*seen != NULL)
        free((*seen)->hashes);
    free(*seen);
    *seen = NULL;
}

/* Where it is, or the empty place for it; 0 is no hash. */
static uint64_t *seen_place(struct disk_seen *seen, uint64_t hash)
{
    size_t at = hash % seen->capacity;

    while (seen->hashes[at] != 0 && seen->hashes[at] != hash)
        at = (at + 1) % seen->capacity;
    return &seen->hashes[at];
}

static void seen_add(struct disk_seen *seen, uint64_t hash)
{
    assert_true(++seen->count < seen->capacity / 2);
    *seen_place(seen, hash) = hash;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    return (hash ^ XXH3_64bits(data, size)) * 0x100000001b3u;
}

/* --- what is open at a point ------------------------------------------------------------------ */

static bool is_forced(const struct point *p, int at, enum part part)
{
    const struct disk_op *op = &p->log->ops[at];
    const bool added = p->synced[op->dir] > at;
    const bool dropped = op->kind != DISK_OP_RENAME || p->synced[op->old_dir] > at;

    return part == PART_ADDED ? added : added && dropped;
}

static void choice_add(struct point *p, struct choice choice)
{
    assert_true(p->count < CHOICES_MAX);
    if (choice.op < 0)
        p->choice_of_bytes[choice.node] = p->count;
    else
        p->choice_of[choice.op][choice.part] = p->count;
    p->choices[p->count++] = choice;
}

static void open_name(struct point *p, int at)
{
    const struct disk_op *op = &p->log->ops[at];
    const bool apart =
        op->kind == DISK_OP_RENAME && !p->log->is_dir[op->node] && op->dir != op->old_dir;

    if (!is_forced(p, at, apart ? PART_ADDED : PART_WHOLE))
        choice_add(p, (struct choice){at, apart ? PART_ADDED : PART_WHOLE, -1, 2});
    if (apart && !is_forced(p, at, PART_DROPPED))
        choice_add(p, (struct choice){at, PART_DROPPED, -1, 2});
}

static void point_fill(struct point *p)
{
    const struct disk_log *log = p->log;

    for (int n = 0; n < DISK_NODES_MAX; n++)
        p->synced[n] = p->durable[n] = p->current[n] = p->choice_of_bytes[n] = -1;
    for (int i = 0; i < p->at; i++)
        p->choice_of[i][PART_WHOLE] = p->choice_of[i][PART_ADDED] = p->choice_of[i][PART_DROPPED] =
            -1;
    p->told = NULL;
    p->count = 0;
    for (int i = 0; i < p->at; i++) {
        const struct disk_op *op = &log->ops[i];

        if (op->kind == DISK_OP_TOLD)
            p->told = op->data;
        else if (op->kind == DISK_OP_DATA)
            p->current[op->node] = i;
        else if (op->kind == DISK_OP_SYNC && !op->dropped)
            p->synced[op->node] = i, p->durable[op->node] = p->current[op->node];
    }
    for (int i = 0; i < p->at; i++)
        if (log->ops[i].kind <= DISK_OP_RENAME)
            open_name(p, i);
    for (int n = 0; n < log->node_count; n++)
        if (p->durable[n] != p->current[n])
            choice_add(p, (struct choice){-1, PART_WHOLE, n, BYTES_COUNT});
}

/* --- one state -------------------------------------------------------------------------------- */

static int value_of(const struct point *p, const unsigned char *values, int op, enum part part)
{
    const int at = p->choice_of[op][part];

    return at < 0 ? 1 : values[at]; /* 1: it is on the disk */
}

static enum bytes bytes_of(const struct point *p, const unsigned char *values, int node)
{
    return p->choice_of_bytes[node] < 0 ? BYTES_ALL : (enum bytes)values[p->choice_of_bytes[node]];
}

static void rename_dir(struct disk_tree *tree, const struct disk_op *op)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->names[i].node == op->node)
            tree->names[i--] = tree->names[--tree->count];
    disk_tree_put(tree, op->dir, op->name, op->node);
}

static void apply_rename(const struct point *p, const unsigned char *values, int at,
                         struct disk_tree *tree)
{
    const struct disk_op *op = &p->log->ops[at];
    const bool apart = !p->log->is_dir[op->node] && op->dir != op->old_dir;
    const bool dropped = value_of(p, values, at, apart ? PART_DROPPED : PART_WHOLE) != 0;

    if (p->log->is_dir[op->node]) {
        if (dropped)
            rename_dir(tree, op);
        return;
    }
    if (dropped)
        disk_tree_drop(tree, op->old_dir, op->old_name);
    if (dropped || value_of(p, values, at, PART_ADDED) != 0)
        disk_tree_put(tree, op->dir, op->name, op->node);
}

static void tree_make(const struct point *p, const unsigned char *values, struct disk_tree *tree)
{
    tree->count = 0;
    for (int i = 0; i < p->at; i++) {
        const struct disk_op *op = &p->log->ops[i];

        if (op->kind == DISK_OP_RENAME)
            apply_rename(p, values, i, tree);
        else if (op->kind == DISK_OP_ADD && value_of(p, values, i, PART_WHOLE) != 0)
            disk_tree_put(tree, op->dir, op->name, op->node);
        else if (op->kind == DISK_OP_DROP && value_of(p, values, i, PART_WHOLE) != 0)
            disk_tree_drop(tree, op->dir, op->name);
    }
}

/* The bytes of a file in this state, in a buffer that the next call takes. */
static const char *content(const struct point *p, const unsigned char *values, int node,
                           size_t *ret_size)
{
    static char buffer[DISK_BYTES_MAX];
    const enum bytes bytes = bytes_of(p, values, node);
    const int at = bytes == BYTES_SYNCED ? p->durable[node] : p->current[node];
    const size_t size = at < 0 ? 0 : p->log->ops[at].size;
    const size_t kept = bytes == BYTES_ZEROS ? 0 : bytes == BYTES_HALF ? size / 2 : size;

    assert_true(size <= sizeof buffer);
    *ret_size = size;
    if (kept == size)
        return at < 0 ? "" : p->log->ops[at].data;
    memcpy(buffer, p->log->ops[at].data, kept);
    memset(buffer + kept, 0, size - kept);
    return buffer;
}

/* Each of a directory's names in turn; their order does not count. */
static uint64_t tree_hash(const struct point *p, const unsigned char *values,
                          const struct disk_tree *tree, int dir, uint64_t path_hash)
{
    uint64_t sum = 0;

    for (int i = 0; i < tree->count; i++) {
        const struct disk_name *entry = &tree->names[i];
        uint64_t hash = hash_bytes(path_hash, entry->name, strlen(entry->name) + 1);
        const char *data;
        size_t size;

        if (entry->dir != dir || strncmp(entry->name, "tmp-", 4) == 0) /* nobody reads those */
            continue;
        if (p->log->is_dir[entry->node]) {
            sum += hash * 31 + tree_hash(p, values, tree, entry->node, hash);
            continue;
        }
        data = content(p, values, entry->node, &size);
        sum += hash_bytes(hash, data, size);
    }
    return sum;
}

static void write_out(const struct point *p, const unsigned char *values,
                      const struct disk_tree *tree, int dir, const char *path)
{
    for (int i = 0; i < tree->count; i++) {
        const struct disk_name *entry = &tree->names[i];
        char child[PATH_MAX];
        const char *data;
        size_t size;

        if (entry->dir != dir)
            continue;
        snprintf(child, sizeof child, "%s/%s", path, entry->name);
        if (p->log->is_dir[entry->node]) {
            assert_int_equal(mkdir(child, 0777), 0);
            write_out(p, values, tree, entry->node, child);
            continue;
        }
        data = content(p, values, entry->node, &size);
        scratch_write(child, data, size);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

struct search {
    struct disk_log *log;
    struct disk_seen *seen;
    disk_state_fn *fn;
    void *arg;
    char *ret_text;
    size_t text_size;
    struct disk_tree *tree;
};

static void describe(const struct search *s, const struct point *p, const unsigned char *values)
{
    static const char *const forgotten[BYTES_COUNT] = {"no bytes since the last sync", "zeros",
                                                       "half of the bytes", ""};
    const struct disk_op *last = &p->log->ops[p->at - 1];
    size_t at = (size_t)snprintf(
        s->ret_text, s->text_size,
        "power cut in scene \"%s\", before call %d; forgotten:", last->scene, p->at);

    for (int i = 0; i < p->count && at < s->text_size; i++) {
        const struct choice *choice = &p->choices[i];
        const struct disk_op *op = choice->op < 0 ? NULL : &p->log->ops[choice->op];

        if (values[i] == choice->values - 1)
            continue;
        if (op == NULL)
            at += (size_t)snprintf(s->ret_text + at, s->text_size - at, " [file %d: %s]",
                                   choice->node, forgotten[values[i]]);
        else
            at += (size_t)snprintf(
                s->ret_text + at, s->text_size - at, " [%s%s %s]",
                op->kind == DISK_OP_DROP || choice->part == PART_DROPPED ? "removal of " : "",
                choice->part == PART_DROPPED ? op->old_name : op->name,
                op->kind == DISK_OP_RENAME ? "by a rename" : "");
    }
}

static bool show(const struct search *s, const struct point *p, const unsigned char *values)
{
    struct disk_tree *tree = s->tree;
    uint64_t hash;
    bool good = true;

    tree_make(p, values, tree);
    hash = tree_hash(p, values, tree, DISK_ROOT, 0xcbf29ce484222325u);
    for (int i = p->at - 1; i >= 0 && p->told != NULL; i--)
        if (p->log->ops[i].kind == DISK_OP_TOLD) {
            hash = hash_bytes(hash, p->told, p->log->ops[i].size);
            break;
        }
    hash |= 1;
    if (*seen_place(s->seen, hash) == 0) {
        s->log->counts.states++;
        scratch_remove(p->log->dir);
        assert_int_equal(mkdir(p->log->dir, 0777), 0);
        write_out(p, values, tree, DISK_ROOT, p->log->dir);
        good = s->fn(s->arg, p->told);
        if (good)
            seen_add(s->seen, hash);
        else
            describe(s, p, values);
    }
    return good;
}

/* As digits of a number; false: it was the last. */
static bool next_of_all(const struct point *p, unsigned char *values)
{
    for (int i = 0; i < p->count; i++) {
        if (++values[i] < p->choices[i].values)
            return true;
        values[i] = 0;
    }
    return false;
}

static bool show_all(const struct search *s, const struct point *p)
{
    unsigned char values[CHOICES_MAX] = {0};

    do
        if (!show(s, p, values))
            return false;
    while (next_of_all(p, values));
    return true;
}

/* The n-th of a sample: nothing is on the disk, everything, each alone, all but each, and any. */
static void sample(const struct point *p, unsigned n, uint64_t *random, unsigned char *values)
{
    const unsigned count = (unsigned)p->count;

    for (unsigned i = 0; i < count; i++) {
        const unsigned all = p->choices[i].values - 1;
        const bool alone = n >= 2 && n < 2 + count && i == n - 2;
        const bool but = n >= 2 + count && n < 2 + 2 * count && i != n - 2 - count;

        *random = *random * 6364136223846793005u + 1442695040888963407u;
        values[i] = (unsigned char)(n == 1 || alone || but ? all : 0);
        if (n >= 2 + 2 * count)
            values[i] = (unsigned char)((*random >> 33) % (all + 1));
    }
}

static bool show_some(const struct search *s, const struct point *p, unsigned states_max)
{
    unsigned char values[CHOICES_MAX];
    uint64_t random = (uint64_t)p->at;

    for (unsigned n = 0; n < states_max; n++) {
        sample(p, n, &random, values);
        if (!show(s, p, values))
            return false;
    }
    return true;
}

static bool is_more_than(const struct point *p, unsigned states_max)
{
    uint64_t states = 1;

    for (int i = 0; i < p->count && states <= states_max; i++)
        states *= p->choices[i].values;
    return states > states_max;
}

/* Before a sync, and before something is told, most is open; what is open elsewhere is open there,
 * too. */
static bool is_point(const struct disk_log *log, int at)
{
    return at == log->count || log->ops[at].kind == DISK_OP_TOLD ||
           (log->ops[at].kind == DISK_OP_SYNC && !log->ops[at].dropped);
}

bool disk_log_each(struct disk_log *log, struct disk_seen *seen, unsigned states_max,
                   disk_state_fn *fn, void *arg, char *ret_text, size_t text_size)
{
    struct disk_tree *tree = malloc(sizeof *tree);
    const struct search search = {log, seen, fn, arg, ret_text, text_size, tree};
    struct point *p = malloc(sizeof *p);
    bool good = true;

    assert_true(p != NULL && tree != NULL);
    p->log = log;
    for (p->at = 1; p->at <= log->count && good; p->at++) {
        if (!is_point(log, p->at))
            continue;
        log->counts.points++;
        point_fill(p);
        good =
            is_more_than(p, states_max) ? show_some(&search, p, states_max) : show_all(&search, p);
    }
    free(p);
    free(tree);
    return good;
}
