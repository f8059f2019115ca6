/* safetensors_header - the JSON that begins a safetensors file: pure, no I/O.
 * A file is: 8 bytes, the header's length N (little-endian); N bytes of JSON, padded with spaces;
 * then the tensors' bytes, without a hole and with nothing after them.
 * {"__metadata__": {"key": "text", …}, "name": {"dtype": "F32", "shape": [3, 4],
 *  "data_offsets": [begin, end]}, …}, offsets counted from the end of the header.
 *
 * Written here: sorted by element size (largest first) and name, N a multiple of 8, so that every
 * tensor is aligned to its element. The table of sums (sums.h) comes after all of them. Read here:
 * any order in the JSON, but the ranges must tile the data. Facts of muster's own in __metadata__:
 * muster_sums; muster_blobs, JSON: ["name", …]; muster_splits, JSON: {"name": [axis, begin, length
 * of the whole], …}. */
#ifndef NODE_SHARD_SAFETENSORS_HEADER_H
#define NODE_SHARD_SAFETENSORS_HEADER_H

#include "node/shard/state.h"

#define SAFETENSORS_HEADER_MAX 100000000 /* bytes of JSON, as the format's reference reads */
#define SAFETENSORS_PREFIX_BYTES 8

struct safetensors_fact { /* one entry of __metadata__ */
    const char *key;
    const char *text;
};

struct safetensors_tensor {
    const char *name;
    enum state_dtype dtype;
    size_t dim_count;
    int64_t shape[STATE_DIMS_MAX];
    struct state_split split;
    uint64_t begin; /* from the end of the header */
    uint64_t end;
};

struct safetensors_index; /* a parsed header */

struct safetensors_layout {
    const struct state_item **order; /* the entries, as their bytes are written */
    char *header;                    /* for that order, length prefix and padding included */
    size_t header_size;
    uint64_t piece_bytes; /* of the table of sums that follows the entries, see sums.h */
    size_t table_bytes;
};

/* Where everything goes in a state's file. Returned owned: safetensors_layout_clear.
 * E_NOMEM; E_ARGUMENT: over SAFETENSORS_HEADER_MAX, or a fact is not UTF-8. */
enum muster_status safetensors_layout_make(const struct muster_state *state,
                                           const struct safetensors_fact *facts, size_t fact_count,
                                           struct safetensors_layout *ret_layout,
                                           struct muster_error *err);
void safetensors_layout_clear(struct safetensors_layout *layout); /* idempotent */

/* Parses N bytes of hostile JSON before data_bytes of data. Returned owned.
 * E_CORRUPT: not JSON, a name twice, a bad type, shape or range, ranges that overlap, leave a hole
 * or do not end with the data; err names the tensor. E_UNSUPPORTED: an element type or a number of
 * dimensions that muster does not have. E_NOMEM. */
enum muster_status safetensors_index_parse(const char *json, size_t size, uint64_t data_bytes,
                                           struct safetensors_index **ret_index,
                                           struct muster_error *err);
void safetensors_index_destroy(struct safetensors_index **index);

/* Sorted by place in the file; borrowed from the index. */
size_t safetensors_index_count(const struct safetensors_index *index);
const struct safetensors_tensor *safetensors_index_tensor(const struct safetensors_index *index,
                                                          size_t position);
/* The text of one entry of __metadata__, or NULL; borrowed. */
const char *safetensors_index_fact(const struct safetensors_index *index, const char *key);

#endif
