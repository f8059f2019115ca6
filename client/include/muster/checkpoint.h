/* muster/checkpoint.h - what a checkpoint holds: the training state, by name.
 *
 * A muster_state_t is a list of names with pointers to your memory. muster reads that memory when
 * it saves, and writes it when it restores. It never frees that memory.
 * A restore fills each entry, and fails if an entry was not saved. A saved tensor that has no entry
 * is left out, and the node's log says so once.
 * Of these calls only muster_checkpoint_* block or touch a disk. Only one thread at a time may use
 * a state. While a save or restore of a state runs, nothing else may use it. */
#ifndef MUSTER_CHECKPOINT_H
#define MUSTER_CHECKPOINT_H

#include <muster/status.h>

#include <stdbool.h>
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
    MUSTER_DTYPE_F8_E4M3, /* one byte each; muster only copies them, it does not compute with
                           * them */
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
 * destroyed. A name is 1 to 255 bytes of UTF-8 without control characters, and unique in the state.
 * "__metadata__" and "muster.sums" are reserved for the file format.
 *
 * A tensor is dense and row-major (C order), in native (little-endian) byte order. With dim_count 0
 * it is a single element. A dimension may be 0, and then data may be NULL. A blob is opaque bytes.
 * A restore refuses a blob of another size, as it refuses a wrong shape.
 *
 * MUSTER_E_ARGUMENT: the text says which argument is wrong, and why. MUSTER_E_EXISTS: the name is
 * in use. MUSTER_E_NOMEM. On failure the state is as before. */
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

/* Adds this rank's part of a tensor (layout sharded): `count` slices along `axis`, from slice
 * `begin` on. data holds these slices densely; its shape is that of the whole tensor, but with
 * count along the axis. count may be 0.
 * The parts of all ranks must make the whole and must not overlap. The rank that saves last checks
 * this, in each save until one save of the launch is committed. If the parts do not fit together,
 * its save fails (MUSTER_E_SAVE), the checkpoint is not committed, and the error names tensor and
 * ranks.
 * Any number of ranks can restore such a checkpoint; each reads only what its own parts need.
 * Entries that are not split must then be the same in every rank's state, unless
 * muster_state_set_own marks them; a restore checks that.
 * Otherwise as muster_state_add_tensor. */
MUSTER_API enum muster_status muster_state_add_split(muster_state_t *state, const char *name,
                                                     enum muster_dtype dtype,
                                                     const int64_t *whole_shape, size_t dim_count,
                                                     size_t axis, int64_t begin, int64_t count,
                                                     void *data, struct muster_error *ret_error);

/* Says that each rank has its own value of an entry, such as its random numbers. With layout
 * sharded, a job of another size gives each rank the entry that the rank of the same number saved.
 * If that rank saved none, the restore fails (MUSTER_E_RESTORE).
 * The mark is not saved: mark it in the program that restores, too. A reader or an observer is no
 * rank, and reads what is there.
 * Layout replicated refuses such a state, and the error names the entry: MUSTER_E_ARGUMENT at open,
 * and for a state that is given to muster_manager_save. If an entry is marked after open, each save
 * (MUSTER_E_SAVE) or restore (MUSTER_E_RESTORE) fails. MUSTER_E_NOT_FOUND: no such name. */
MUSTER_API enum muster_status muster_state_set_own(muster_state_t *state, const char *name,
                                                   struct muster_error *ret_error);

/* Divides `length` slices among the ranks as evenly as possible. If some are left over, the first
 * ranks get one more each. */
MUSTER_API void muster_split_range(int64_t length, int rank, int world_size, int64_t *ret_begin,
                                   int64_t *ret_count);

/* Takes one entry out; its memory is no longer borrowed. MUSTER_E_NOT_FOUND: no such name. */
MUSTER_API enum muster_status muster_state_remove(muster_state_t *state, const char *name,
                                                  struct muster_error *ret_error);

/* The number of entries; 0 for NULL. */
MUSTER_API size_t muster_state_count(const muster_state_t *state);

/* The sum of all entries' bytes. A shard file has these and a header. 0 for NULL. */
MUSTER_API uint64_t muster_state_size_bytes(const muster_state_t *state);

/* --- reading without a job ------------------------------------------------------------------ */

/* These calls are for a program that joins no job, such as an evaluation or an export.
 * `directory` is the path of a checkpoint, as `muster checkpoints` shows it. The calls ask no
 * broker, and do not protect the checkpoint from deletion while they read it; muster_manager_pin
 * does. They block for the disk, and any thread may make them. If a key file
 * (muster-environment(7)) names a signing key, they refuse a checkpoint that this key did not
 * sign. */
struct muster_read_options {
    size_t struct_size; /* set by MUSTER_READ_OPTIONS_INIT; do not change */
    /* Reads only what this rank saved. -1 = what all ranks saved. A tensor that was saved in parts
     * is then joined, and a tensor that differs between the ranks is refused. */
    int rank;
    /* muster_checkpoint_read calls it about 10 times a second while it reads, on the same thread.
     * true: the read returns MUSTER_E_INTERRUPTED. Must not call muster. NULL = it reads to the
     * end. */
    bool (*interrupted_fn)(void *arg);
    void *arg;
};
#define MUSTER_READ_OPTIONS_INIT                                      \
    {                                                                 \
        .struct_size = sizeof(struct muster_read_options), .rank = -1 \
    }
/* The same for C++17 and other languages. struct_size is sizeof of the structure. */
MUSTER_API void muster_read_options_init(struct muster_read_options *options, size_t struct_size);

/* Tells what the checkpoint holds, as JSON. The caller frees *ret_json with free(). options may be
 * NULL.
 *   "job" "step" "generation" "world_size" "layout" "epoch" "metrics" "custom" … as they were saved
 *   "tensors": {"w": {"dtype": "F32", "shape": [3, 4], "bytes": 48, "ranks": 1}, …}
 *   "files":   {"shard-00000-…": {"bytes": 96, "checksum": "xxh3-128:…", "rank": 0}, …}
 * "ranks": how many ranks saved the tensor. One that was saved in parts also has "axis", and its
 * shape is that of the whole. With option rank it has "begin", too, and its shape is that of the
 * rank's part. A blob is shown as a tensor of U8 [bytes]. A checkpoint that a job's own save_fn
 * wrote has "files", by path, and no "tensors". Later versions may add members.
 *
 * MUSTER_E_NOT_FOUND there is no such checkpoint, or that rank saved nothing · MUSTER_E_RESTORE it
 * is unfinished · MUSTER_E_CORRUPT damage, in the file that the text names · MUSTER_E_SIGNATURE ·
 * MUSTER_E_VERSION · MUSTER_E_IO · MUSTER_E_NOMEM · MUSTER_E_ARGUMENT. */
MUSTER_API enum muster_status muster_checkpoint_metadata(const char *directory,
                                                         const struct muster_read_options *options,
                                                         char **ret_json,
                                                         struct muster_error *ret_error);

/* Fills each entry of `state`: from the tensor of its name, or from the file whose path is its
 * name. It reads nothing else. An entry of muster_state_add_split gets its part of a tensor that
 * was saved in parts. A tensor is checked by the sums of its own pieces, a file by its checksum.
 *
 * Fails as muster_checkpoint_metadata, and with: MUSTER_E_NOT_FOUND there is no such name ·
 * MUSTER_E_RESTORE it has another type, shape or size, or differs between the ranks. The memory is
 * then as before. With MUSTER_E_CORRUPT (damage, in the file and tensor that the text names) and
 * MUSTER_E_INTERRUPTED (interrupted_fn said so), entries may be overwritten in part. */
MUSTER_API enum muster_status muster_checkpoint_read(const char *directory,
                                                     const struct muster_read_options *options,
                                                     muster_state_t *state,
                                                     struct muster_error *ret_error);

#ifdef __cplusplus
}
#endif
#endif
