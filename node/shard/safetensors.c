/* safetensors - the save; see safetensors.h. The restore is in safetensors_restore.c. */
#include "node/shard/safetensors.h"

#include "node/shard/direct.h"
#include "node/shard/fs.h"
#include "node/shard/hasher.h"
#include "node/shard/sums.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes on their way to the disk. Writes are FS_CHUNK_BYTES long and begin at multiples of it; what
 * is large goes from the user's memory straight to the kernel. */
struct out {
    int fd;
    struct hasher *hasher;
    struct direct *direct; /* NULL: through the page cache */
    char *buffer;
    size_t used;
    uint64_t bytes;
    uint64_t begun_bytes;            /* of them the kernel was told to write to the disk */
    struct safetensors_watch *watch; /* NULL: nobody does */
};

/* The disk works while we copy, instead of beginning with the fsync: that is what a save wins over
 * a plain write. Less at a time costs more calls than it gains. Only begun, never waited for here:
 * a wait would take the error that the fsync has to tell. Where it cannot be had (ESPIPE, ENOSYS)
 * the fsync does all of it. */
static void safetensors_begin_writeback(struct out *out)
{
    if (out->bytes - out->begun_bytes < FS_WRITEBACK_BYTES)
        return;
    (void)sync_file_range(out->fd, (off_t)out->begun_bytes, (off_t)(out->bytes - out->begun_bytes),
                          SYNC_FILE_RANGE_WRITE);
    out->begun_bytes = out->bytes;
}

bool safetensors_is_stopped(struct safetensors_watch *watch)
{
    if (watch == NULL)
        return false;
    if (interrupt_look(watch->interrupt))
        atomic_store(&watch->stop, true);
    return atomic_load(&watch->stop);
}

static int safetensors_out_write(struct out *out, const void *data, size_t size)
{
    int code = safetensors_is_stopped(out->watch) ? ECANCELED : fs_write_all(out->fd, data, size);

    if (code != 0)
        return code;
    out->bytes += size;
    if (out->watch != NULL)
        atomic_fetch_add(&out->watch->bytes, size);
    safetensors_begin_writeback(out);
    return 0;
}

/* On a thread of ours: it asks nobody. */
static bool safetensors_disk_went(uint64_t bytes, void *arg)
{
    struct out *out = arg;

    if (out->watch == NULL)
        return true;
    atomic_fetch_add(&out->watch->bytes, bytes);
    return !atomic_load(&out->watch->stop);
}

/* On the thread that saves. */
static bool safetensors_disk_has(uint64_t bytes, void *arg)
{
    struct out *out = arg;

    return safetensors_disk_went(bytes, arg) && !safetensors_is_stopped(out->watch);
}

static int safetensors_out_flush(struct out *out)
{
    int code = safetensors_out_write(out, out->buffer, out->used);

    out->used = 0;
    return code;
}

static int safetensors_put_direct(struct out *out, const char *data, uint64_t size)
{
    int code = 0;

    for (uint64_t at = 0; at < size && code == 0; at += DIRECT_PIECE_BYTES) {
        uint64_t n = size - at < DIRECT_PIECE_BYTES ? size - at : DIRECT_PIECE_BYTES;

        code =
            safetensors_is_stopped(out->watch) ? ECANCELED : direct_put(out->direct, data + at, n);
    }
    out->bytes += size;
    return code;
}

static int safetensors_out_put(struct out *out, const char *data, uint64_t size)
{
    int code = 0;

    if (out->direct != NULL)
        return safetensors_put_direct(out, data, size);
    while (size > 0 && code == 0) {
        size_t n = FS_CHUNK_BYTES - out->used;

        if (n > size)
            n = (size_t)size;
        if (n == FS_CHUNK_BYTES) {
            code = safetensors_out_write(out, data, n);
        } else {
            memcpy(out->buffer + out->used, data, n);
            out->used += n;
            if (out->used == FS_CHUNK_BYTES)
                code = safetensors_out_flush(out);
        }
        data += n;
        size -= n;
    }
    return code;
}

static int safetensors_write_tensors(struct out *out, const struct safetensors_layout *layout,
                                     size_t count, unsigned char *table)
{
    unsigned char *sums = table;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct state_item *item = layout->order[i];

        hasher_push(out->hasher, &(struct hasher_entry){.data = item->data,
                                                        .size = item->size_bytes,
                                                        .ret_sums = sums,
                                                        .piece_bytes = layout->piece_bytes});
        sums += sums_count(item->size_bytes, layout->piece_bytes) * CHECKSUM_RAW_BYTES;
        code = safetensors_out_put(out, item->data, item->size_bytes);
    }
    return code;
}

/* The thread that hashes runs ahead of the disk, so that the table is there when its turn comes. */
static int safetensors_write_bytes(struct out *out, const struct safetensors_layout *layout,
                                   size_t count, unsigned char *table)
{
    int code;

    hasher_push(out->hasher,
                &(struct hasher_entry){.data = layout->header, .size = layout->header_size});
    code = safetensors_out_put(out, layout->header, layout->header_size);
    if (code == 0)
        code = safetensors_write_tensors(out, layout, count, table);
    if (code != 0)
        return code;
    hasher_wait(out->hasher);
    sums_seal(table, layout->table_bytes, layout->header, layout->header_size);
    hasher_push(out->hasher, &(struct hasher_entry){.data = table, .size = layout->table_bytes});
    return safetensors_out_put(out, (const char *)table, layout->table_bytes);
}

static void safetensors_out_begin(struct out *out, uint64_t file_bytes)
{
    if (file_bytes >= DIRECT_MIN_BYTES && direct_gains(out->fd))
        out->direct = direct_begin(out->fd, &(struct fs_watcher){safetensors_disk_went, out});
}

/* The kernel then has all that safetensors_out_put took, unless one of the two failed. */
static int safetensors_out_end(struct out *out, int code)
{
    int ended = 0;

    if (out->direct != NULL)
        ended = direct_end(&out->direct);
    else if (code == 0)
        ended = safetensors_out_flush(out);
    return code != 0 ? code : ended;
}

static int safetensors_write_file(struct out *out, const struct safetensors_layout *layout,
                                  size_t count, uint64_t data_bytes, unsigned char *table)
{
    const uint64_t file_bytes = layout->header_size + data_bytes + layout->table_bytes;
    int code = fs_allocate(out->fd, file_bytes);

    if (code != 0)
        return code;
    safetensors_out_begin(out, file_bytes);
    code = safetensors_out_end(out, safetensors_write_bytes(out, layout, count, table));
    if (code == 0)
        code = fs_await_disk(out->fd, out->bytes, &(struct fs_watcher){safetensors_disk_has, out});
    if (code == 0 && fs_fsync(out->fd) != 0)
        code = errno;
    if (code == 0)
        hasher_wait(out->hasher);
    if (code == 0 && hasher_gave_up(out->hasher))
        code = ECANCELED;
    return code;
}

/* Creates, writes, closes; removes what it created when that fails. Returns 0 or an errno value. */
static int safetensors_create_file(const char *path, struct out *out,
                                   const struct safetensors_layout *layout,
                                   const struct muster_state *state, unsigned char *table)
{
    int code;

    out->fd = fs_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (out->fd < 0)
        return errno;
    code = safetensors_write_file(out, layout, state->count, state->size_bytes, table);
    if (fs_close(out->fd) != 0 && code == 0)
        code = errno; /* network file systems tell of a full disk only here */
    if (code != 0)
        unlink(path);
    return code == EEXIST ? EIO : code; /* EEXIST means one thing to the caller: it was there */
}

enum muster_status safetensors_save(const char *path, const struct muster_state *state,
                                    const struct safetensors_fact *facts, size_t fact_count,
                                    struct safetensors_watch *watch, enum checksum_kind kind,
                                    uint64_t *ret_bytes, char ret_checksum[MANIFEST_CHECKSUM_SIZE],
                                    struct muster_error *err)
{
    struct out out = {.fd = -1, .watch = watch};
    const struct fs_watcher hashes = {safetensors_disk_went, &out};
    const struct fs_watcher *slow = kind == CHECKSUM_XXH3 ? NULL : &hashes; /* slower than a disk */
    struct safetensors_layout layout;
    unsigned char *table;
    int code = ENOMEM;
    enum muster_status status = safetensors_layout_make(state, facts, fact_count, &layout, err);

    if (status != MUSTER_OK)
        return status;
    table = malloc(layout.table_bytes);
    out.buffer = aligned_alloc(4096, FS_CHUNK_BYTES);
    out.hasher = table != NULL && out.buffer != NULL
                     ? hasher_create(kind, slow, watch != NULL ? watch->interrupt : NULL)
                     : NULL;
    if (out.hasher != NULL)
        code = safetensors_create_file(path, &out, &layout, state, table);
    if (code == 0) {
        *ret_bytes = out.bytes;
        hasher_text(out.hasher, ret_checksum);
    }
    hasher_destroy(&out.hasher);
    free(out.buffer);
    free(table);
    safetensors_layout_clear(&layout);
    if (code == 0)
        return MUSTER_OK;
    status = code == EEXIST ? MUSTER_E_EXISTS : code == ENOMEM ? MUSTER_E_NOMEM : MUSTER_E_SAVE;
    return fs_fail(err, status, code, "write the shard", path);
}
