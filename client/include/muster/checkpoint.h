/* muster/checkpoint.h - what a checkpoint holds: the training state, by name.
 *
 * A muster_state_t is a list of names with pointers to memory of yours. muster reads that memory
 * when it saves and writes it when it restores; it never copies or frees it.
 * A restore fills each entry, and fails if an entry was not saved. A saved tensor without an entry
 * is left, and the node's log says so once.
 * Nothing here blocks or touches a disk. One thread at a time uses a handle; while a save or a
 * restore of it runs, that thread. */
#ifndef MUSTER_CHECKPOINT_H
#define MUSTER_CHECKPOINT_H

#include <muster/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_STATE_NAME_MAX 255 /* bytes of UTF-8, without the final NUL */
#define MUSTER_STATE_DIMS_MAX 8

/* Element types of tensors; the names in a shard file are safetensors' own (F32, BF16, …). */
enum muster_dtype {
    MUSTER_DTYPE_NONE = 0,
    MUSTER_DTYPE_BOOL, /* one byte an element, 0 or 1 */
    MUSTER_DTYPE_I8,
    MUSTER_DTYPE_U8,
    MUSTER_DTYPE_I16,
    MUSTER_DTYPE_U16,
    MUSTER_DTYPE_F16,
    MUSTER_DTYPE_BF16,
    MUSTER_DTYPE_I32,
    MUSTER_DTYPE_U32,
    MUSTER_DTYPE_F32,
    MUSTER_DTYPE_I64,
    MUSTER_DTYPE_U64,
    MUSTER_DTYPE_F64,
    MUSTER_DTYPE_F8_E4M3, /* one byte each; muster copies them, and computes with none */
    MUSTER_DTYPE_F8_E5M2,
    MUSTER_DTYPE_F8_E8M0,
    MUSTER_DTYPE_C64, /* two F32: real, imaginary */
    MUSTER_DTYPE_COUNT
};

typedef struct muster_state muster_state_t;

/* An empty state. Returned owned: free with muster_state_destroy. MUSTER_E_NOMEM. */
MUSTER_API enum muster_status muster_state_create(muster_state_t **ret_state,
                                                  struct muster_error *ret_error);

/* Frees the list, never the memory that its entries point to; NULL-safe; nulls the handle. */
MUSTER_API void muster_state_destroy(muster_state_t **state);

/* Adds one entry. Copies name and shape; borrows the data until the entry is removed or the state
 * destroyed. A name is 1 to 255 bytes of UTF-8 without control characters, used once in a state.
 * The file format takes "__metadata__" and "muster.sums".
 *
 * A tensor is dense and row-major (C order), in native (little-endian) byte order. dim_count 0 is a
 * single element. A dimension may be 0, and then data may be NULL. A blob is opaque bytes; a blob
 * of another size is refused at a restore, as a wrong shape is.
 *
 * MUSTER_E_ARGUMENT: what is wrong with which argument. MUSTER_E_EXISTS: the name is in use.
 * MUSTER_E_NOMEM. On failure the state is as before. */
MUSTER_API enum muster_status muster_state_add_tensor(muster_state_t *state, const char *name,
                                                      enum muster_dtype dtype, const int64_t *shape,
                                                      size_t dim_count, void *data,
                                                      struct muster_error *ret_error);
MUSTER_API enum muster_status muster_state_add_i64(muster_state_t *state, const char *name,
                                                   int64_t *value, struct muster_error *ret_error);
MUSTER_API enum muster_status muster_state_add_f64(muster_state_t *state, const char *name,
                                                   double *value, struct muster_error *ret_error);
MUSTER_API enum muster_status muster_state_add_blob(muster_state_t *state, const char *name,
                                                    void *data, size_t size_bytes,
                                                    struct muster_error *ret_error);

/* Adds this rank's part of a tensor (layout sharded): `count` slices from `begin` on along `axis`.
 * data has them densely, in the shape of the whole with count at the axis. count may be 0.
 * The parts of all ranks make the whole and must not overlap: the rank that saves last looks, until
 * a save of the launch is committed. Its save then fails (MUSTER_E_SAVE), the checkpoint is not
 * committed, and the error names tensor and ranks. Any number of ranks can restore such
 * a checkpoint; each reads only what its own parts need. Entries that are not split must then be
 * the same in every rank's state; a restore checks that. Otherwise as muster_state_add_tensor. */
MUSTER_API enum muster_status muster_state_add_split(muster_state_t *state, const char *name,
                                                     enum muster_dtype dtype,
                                                     const int64_t *whole_shape, size_t dim_count,
                                                     size_t axis, int64_t begin, int64_t count,
                                                     void *data, struct muster_error *ret_error);

/* The usual parts of `length` slices: as even as can be; the first ranks have one more. */
MUSTER_API void muster_split_range(int64_t length, int rank, int world_size, int64_t *ret_begin,
                                   int64_t *ret_count);

/* Takes one entry out; its memory is no longer borrowed. MUSTER_E_NOT_FOUND: no such name. */
MUSTER_API enum muster_status muster_state_remove(muster_state_t *state, const char *name,
                                                  struct muster_error *ret_error);

/* The number of entries; 0 for NULL. */
MUSTER_API size_t muster_state_count(const muster_state_t *state);

/* The sum of all entries' bytes, which a shard file has plus its header; 0 for NULL. */
MUSTER_API uint64_t muster_state_size_bytes(const muster_state_t *state);

#ifdef __cplusplus
}
#endif
#endif
