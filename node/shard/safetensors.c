/* safetensors - see safetensors.h. */
#include "node/shard/safetensors.h"

#include "node/shard/checksum.h"
#include "node/shard/fs.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- save ---------------------------------------------------------------------------------- */

/* Bytes on their way to the disk. Writes are FS_CHUNK_BYTES long and begin at multiples of it; what
 * is large goes from the user's memory straight to the kernel. */
struct out {
    int fd;
    struct checksum *sum;
    char *buffer;
    size_t used;
    uint64_t bytes;
};

static int out_write(struct out *out, const void *data, size_t size)
{
    checksum_update(out->sum, data, size); /* just before the write, while it is in the cache */
    out->bytes += size;
    return fs_write_all(out->fd, data, size);
}

static int out_flush(struct out *out)
{
    int code = out_write(out, out->buffer, out->used);

    out->used = 0;
    return code;
}

static int out_put(struct out *out, const char *data, uint64_t size)
{
    int code = 0;

    while (size > 0 && code == 0) {
        size_t n = FS_CHUNK_BYTES - out->used;

        if (n > size)
            n = (size_t)size;
        if (n == FS_CHUNK_BYTES) {
            code = out_write(out, data, n);
        } else {
            memcpy(out->buffer + out->used, data, n);
            out->used += n;
            if (out->used == FS_CHUNK_BYTES)
                code = out_flush(out);
        }
        data += n;
        size -= n;
    }
    return code;
}

static int write_file(struct out *out, const char *header, size_t header_size,
                      const struct state_item *const *order, size_t count)
{
    int code = out_put(out, header, header_size);

    for (size_t i = 0; i < count && code == 0; i++)
        code = out_put(out, order[i]->data, order[i]->size_bytes);
    if (code == 0)
        code = out_flush(out);
    if (code == 0 && fsync(out->fd) != 0)
        code = errno;
    return code;
}

/* Creates, writes, closes; removes what it created when that fails. Returns 0 or an errno value. */
static int create_file(const char *path, struct out *out, const char *header, size_t header_size,
                       const struct state_item *const *order, size_t count)
{
    int code;

    out->sum = checksum_create();
    out->buffer = aligned_alloc(4096, FS_CHUNK_BYTES);
    if (out->sum == NULL || out->buffer == NULL)
        return ENOMEM;
    out->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (out->fd < 0)
        return errno;
    code = write_file(out, header, header_size, order, count);
    if (close(out->fd) != 0 && code == 0)
        code = errno; /* network file systems tell of a full disk only here */
    if (code != 0)
        unlink(path);
    return code == EEXIST ? EIO : code; /* EEXIST means one thing to the caller: it was there */
}

enum muster_status safetensors_save(const char *path, const struct muster_state *state,
                                    const struct safetensors_fact *facts, size_t fact_count,
                                    uint64_t *ret_bytes, char ret_checksum[MANIFEST_CHECKSUM_SIZE],
                                    struct muster_error *err)
{
    struct out out = {.fd = -1};
    const struct state_item **order;
    char *header;
    size_t header_size;
    int code;
    enum muster_status status =
        safetensors_header_render(state, facts, fact_count, &order, &header, &header_size, err);

    if (status != MUSTER_OK)
        return status;
    code = create_file(path, &out, header, header_size, order, state->count);
    if (code == 0) {
        *ret_bytes = out.bytes;
        checksum_text(out.sum, ret_checksum);
    }
    checksum_destroy(&out.sum);
    free(out.buffer);
    free(header);
    free(order);
    if (code == 0)
        return MUSTER_OK;
    status = code == EEXIST ? MUSTER_E_EXISTS : code == ENOMEM ? MUSTER_E_NOMEM : MUSTER_E_SAVE;
    return fs_fail(err, status, code, "write the shard", path);
}

/* --- restore ------------------------------------------------------------------------------- */

/* Prefixes an error of the header or of matching with the file it is about. */
static enum muster_status name_file(struct muster_error *err, enum muster_status status,
                                    const char *path)
{
    struct muster_error inner;

    if (err == NULL)
        return status;
    inner = *err;
    return error_set(err, status, "%.500s: %.500s", path, inner.text);
}

static enum muster_status verify(int fd, const char *path, uint64_t size, uint64_t bytes,
                                 const char *checksum, struct muster_error *err)
{
    char found[MANIFEST_CHECKSUM_SIZE];
    uint64_t found_bytes = size;
    enum muster_status status;

    if (size == bytes) {
        status = checksum_fd(fd, path, &found_bytes, found, err);
        if (status != MUSTER_OK)
            return status;
    }
    if (found_bytes != bytes)
        return error_set(err, MUSTER_E_CORRUPT,
                         "%.600s has %llu bytes, %llu were saved: it was %s; nothing was restored",
                         path, (unsigned long long)found_bytes, (unsigned long long)bytes,
                         found_bytes < bytes ? "cut" : "added to");
    if (strcmp(found, checksum) != 0)
        return error_set(
            err, MUSTER_E_CORRUPT,
            "%.600s is damaged: its checksum is %s, %s was saved; nothing was restored", path,
            found, checksum);
    return MUSTER_OK;
}

/* The header with its prefix; returned owned. */
static enum muster_status read_header(int fd, const char *path, uint64_t size, char **ret_header,
                                      uint64_t *ret_size, struct muster_error *err)
{
    uint64_t length = 0;
    char *header;
    int code = size < SAFETENSORS_PREFIX_BYTES
                   ? FS_END
                   : fs_pread_all(fd, &length, SAFETENSORS_PREFIX_BYTES, 0);

    if (code == FS_END)
        return error_set(err, MUSTER_E_CORRUPT, "%.600s is too short to be a safetensors file",
                         path);
    if (code != 0)
        return fs_fail(err, MUSTER_E_IO, code, "read", path);
    if (length > SAFETENSORS_HEADER_MAX || length > size - SAFETENSORS_PREFIX_BYTES)
        return error_set(
            err, MUSTER_E_CORRUPT,
            "%.600s has a header of %llu bytes in a file of %llu (at most %d are read)", path,
            (unsigned long long)length, (unsigned long long)size, SAFETENSORS_HEADER_MAX);
    length += SAFETENSORS_PREFIX_BYTES;
    header = malloc((size_t)length);
    code = header == NULL ? ENOMEM : fs_pread_all(fd, header, (size_t)length, 0);
    if (code == 0) {
        *ret_header = header;
        *ret_size = length;
        return MUSTER_OK;
    }
    free(header);
    if (code == FS_END)
        return error_set(err, MUSTER_E_CORRUPT, "%.600s became shorter while it was read", path);
    return fs_fail(err, code == ENOMEM ? MUSTER_E_NOMEM : MUSTER_E_IO, code, "read", path);
}

static enum muster_status match_one(const struct state_item *item,
                                    const struct safetensors_tensor *tensor,
                                    struct muster_error *err)
{
    char wanted[256];
    char found[256];

    if (item->dtype == tensor->dtype && item->dim_count == tensor->dim_count &&
        memcmp(item->shape, tensor->shape, item->dim_count * sizeof *item->shape) == 0)
        return MUSTER_OK;
    state_shape_text(item->dtype, item->shape, item->dim_count, wanted, sizeof wanted);
    state_shape_text(tensor->dtype, tensor->shape, tensor->dim_count, found, sizeof found);
    return error_set(err, MUSTER_E_RESTORE,
                     "tensor \"%s\" is %s in the file and %s in this program; nothing was restored",
                     item->name, found, wanted);
}

/* targets[i]: the entry of the state that the i-th tensor of the file goes to, or NULL. */
static enum muster_status match(const struct safetensors_index *index,
                                const struct muster_state *state, const struct state_item **targets,
                                struct muster_error *err)
{
    size_t found = 0;

    for (size_t i = 0; i < safetensors_index_count(index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(index, i);
        enum muster_status status;

        targets[i] = state_find(state, tensor->name);
        if (targets[i] == NULL)
            continue;
        status = match_one(targets[i], tensor, err);
        if (status != MUSTER_OK)
            return status;
        found++;
    }
    if (found == state->count) /* names are unique on both sides */
        return MUSTER_OK;
    for (size_t k = 0; k < state->count; k++) {
        const struct state_item *item = &state->items[k];
        bool there = false;

        for (size_t i = 0; i < safetensors_index_count(index) && !there; i++)
            there = targets[i] != NULL && targets[i] == item;
        if (!there)
            return error_set(err, MUSTER_E_RESTORE,
                             "tensor \"%s\" is not in the file; nothing was restored", item->name);
    }
    return MUSTER_OK;
}

/* Reads one tensor into the user's memory, or, with to NULL, only past the checksum. */
static int read_tensor(int fd, uint64_t offset, uint64_t size, char *to, char *buffer,
                       struct checksum *sum)
{
    while (size > 0) {
        size_t n = size < FS_CHUNK_BYTES ? (size_t)size : FS_CHUNK_BYTES;
        char *into = to == NULL ? buffer : to;
        int code = fs_pread_all(fd, into, n, offset);

        if (code != 0)
            return code;
        checksum_update(sum, into, n);
        offset += n;
        size -= n;
        if (to != NULL)
            to += n;
    }
    return 0;
}

static enum muster_status read_all(int fd, const char *path, const char *header,
                                   uint64_t header_size, const struct safetensors_index *index,
                                   const struct state_item *const *targets, const char *checksum,
                                   struct muster_error *err)
{
    struct checksum *sum = checksum_create();
    char *buffer = malloc(FS_CHUNK_BYTES);
    char found[MANIFEST_CHECKSUM_SIZE];
    int code = 0;

    if (sum == NULL || buffer == NULL) {
        checksum_destroy(&sum);
        free(buffer);
        return error_set(err, MUSTER_E_NOMEM, "no memory to restore %.600s", path);
    }
    checksum_update(sum, header, (size_t)header_size);
    for (size_t i = 0; i < safetensors_index_count(index) && code == 0; i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(index, i);

        code = read_tensor(fd, header_size + tensor->begin, tensor->end - tensor->begin,
                           targets[i] == NULL ? NULL : targets[i]->data, buffer, sum);
    }
    checksum_text(sum, found);
    checksum_destroy(&sum);
    free(buffer);
    if (code == 0 && strcmp(found, checksum) == 0)
        return MUSTER_OK;
    return error_set_code(
        err, MUSTER_E_CORRUPT, code > 0 ? code : 0,
        "%.600s %s while it was restored, after it had been found whole; the state "
        "is partly overwritten: do not train on it, restore again",
        path, code > 0 ? "could not be read" : "was changed");
}

static enum muster_status restore_opened(int fd, const char *path, uint64_t size,
                                         const char *checksum, const struct muster_state *state,
                                         struct muster_error *err)
{
    struct safetensors_index *index = NULL;
    const struct state_item **targets = NULL;
    char *header = NULL;
    uint64_t header_size = 0;
    enum muster_status status = read_header(fd, path, size, &header, &header_size, err);

    if (status != MUSTER_OK)
        return status;
    status = safetensors_index_parse(header + SAFETENSORS_PREFIX_BYTES,
                                     (size_t)header_size - SAFETENSORS_PREFIX_BYTES,
                                     size - header_size, &index, err);
    if (status == MUSTER_OK) {
        targets = calloc(safetensors_index_count(index) + 1, sizeof *targets);
        status = targets == NULL ? MUSTER_E_NOMEM : match(index, state, targets, err);
        if (targets == NULL)
            error_set(err, status, "no memory to restore");
    }
    if (status != MUSTER_OK)
        status = name_file(err, status, path);
    else
        status = read_all(fd, path, header, header_size, index, targets, checksum, err);
    free(targets);
    free(header);
    safetensors_index_destroy(&index);
    return status;
}

enum muster_status safetensors_restore(const char *path, uint64_t bytes, const char *checksum,
                                       const struct muster_state *state, struct muster_error *err)
{
    int fd = -1;
    uint64_t size = 0;
    enum muster_status status = fs_open_regular(path, &fd, &size, err);

    if (status != MUSTER_OK)
        return status;
    status = verify(fd, path, size, bytes, checksum, err);
    if (status == MUSTER_OK)
        status = restore_opened(fd, path, size, checksum, state, err);
    close(fd);
    return status;
}
