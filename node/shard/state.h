/* state - the named parts of a training state, as a shard file sees them.
 * Owns: the list of entries and a hash index over their names.
 * Never: the memory that entries point to (borrowed), I/O, locks.
 * Invariant: names are unique, valid (state_name_problem) and never one of the file format;
 * size_bytes is what dtype and shape say. */
#ifndef NODE_SHARD_STATE_H
#define NODE_SHARD_STATE_H

#include "schema/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATE_NAME_MAX 255 /* bytes, without the final NUL */
#define STATE_DIMS_MAX 8

/* As enum muster_dtype of <muster/checkpoint.h>, which node/ does not see; client/ checks. */
enum state_dtype {
    STATE_DTYPE_NONE,
    STATE_DTYPE_BOOL,
    STATE_DTYPE_I8,
    STATE_DTYPE_U8,
    STATE_DTYPE_I16,
    STATE_DTYPE_U16,
    STATE_DTYPE_F16,
    STATE_DTYPE_BF16,
    STATE_DTYPE_I32,
    STATE_DTYPE_U32,
    STATE_DTYPE_F32,
    STATE_DTYPE_I64,
    STATE_DTYPE_U64,
    STATE_DTYPE_F64,
    STATE_DTYPE_F8_E4M3,
    STATE_DTYPE_F8_E5M2,
    STATE_DTYPE_F8_E8M0,
    STATE_DTYPE_C64,
    STATE_DTYPE_COUNT
};

enum state_kind {
    STATE_KIND_NONE = 0,
    STATE_KIND_TENSOR,
    STATE_KIND_SCALAR, /* a tensor of no dimensions, I64 or F64 */
    STATE_KIND_BLOB    /* a tensor U8 [size] */
};

/* A tensor of which this rank has a part: shape[axis] slices from `begin` on, of global_count. */
struct state_split {
    bool is; /* false: the whole tensor, and the rest is 0 */
    size_t axis;
    int64_t begin;
    int64_t global_count;
};

struct state_item {
    const char *name; /* in state_add: copied. In a state: owned by it */
    enum state_kind kind;
    enum state_dtype dtype;
    size_t dim_count;
    int64_t shape[STATE_DIMS_MAX];
    struct state_split split;
    bool own;            /* this rank's: no other may get it */
    uint64_t size_bytes; /* set by state_add */
    void *data;          /* borrowed */
};

struct muster_state {
    struct state_item *items; /* in the order they were added */
    size_t count;
    size_t capacity;
    uint64_t size_bytes; /* the sum of the items' */
    uint32_t *slots;     /* open addressing: 0 empty, else item index + 1 */
    size_t slot_count;   /* a power of two, at least twice count */
};

enum muster_status state_create(struct muster_state **ret_state, struct muster_error *err);
void state_destroy(struct muster_state **state);

/* Copies name and shape, borrows data. E_ARGUMENT, E_EXISTS, E_NOMEM; on failure unchanged. */
enum muster_status state_add(struct muster_state *state, const struct state_item *item,
                             struct muster_error *err);
enum muster_status state_remove(struct muster_state *state, const char *name,
                                struct muster_error *err);

/* Borrowed until the state changes; NULL: no such name. */
const struct state_item *state_find(const struct muster_state *state, const char *name);
enum muster_status state_set_own(struct muster_state *state, const char *name,
                                 struct muster_error *err); /* E_NOT_FOUND */
/* Layout replicated gives one rank's state to all. The status, and the text names the entry, if one
 * is a rank's own. */
enum muster_status state_refuse_own(const struct muster_state *state, enum muster_status status,
                                    struct muster_error *err);

/* NULL when the name is valid, else what is wrong with it ("is empty", …): a static string. */
const char *state_name_problem(const char *name);

size_t state_dtype_size(enum state_dtype dtype);      /* bytes an element; 0: no such type */
const char *state_dtype_name(enum state_dtype dtype); /* "F32"; "?" when there is none */
enum state_dtype state_dtype_of(const char *name);    /* STATE_DTYPE_NONE when there is none */

/* False: a dimension is negative, there are too many, the type is none, or the product of any
 * prefix passes INT64_MAX (also when a later dimension is 0, as in the format's reference). */
bool state_shape_bytes(enum state_dtype dtype, const int64_t *shape, size_t dim_count,
                       uint64_t *ret_bytes);

/* Does the split fit a tensor of this shape? */
bool state_split_ok(const struct state_split *split, const int64_t *shape, size_t dim_count);

/* "F32 [3, 4]" into text, cut when it does not fit. */
void state_shape_text(enum state_dtype dtype, const int64_t *shape, size_t dim_count, char *text,
                      size_t text_size);

#endif
