/* safetensors_file - see safetensors_file.h. */
#include "node/shard/safetensors_file.h"

#include "node/shard/fs.h"
#include "node/shard/sums.h"
#include "schema/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum muster_status safetensors_file_open(const char *path, struct safetensors_file *ret_file,
                                         struct muster_error *err)
{
    struct safetensors_file file = {.fd = -1, .path = path};
    enum muster_status status = fs_open_regular(path, &file.fd, &file.size, err);

    if (status == MUSTER_OK)
        *ret_file = file;
    return status;
}

void safetensors_file_close(struct safetensors_file *file)
{
    if (file->path != NULL && file->fd >= 0)
        close(file->fd);
    free(file->header);
    free(file->table);
    safetensors_index_destroy(&file->index);
    *file = (struct safetensors_file){.fd = -1};
}

static enum muster_status safetensors_read_failed(const struct safetensors_file *file, int code,
                                                  struct muster_error *err)
{
    if (code == FS_END)
        return error_set(err, MUSTER_E_CORRUPT, "%.600s became shorter while it was read",
                         file->path);
    return fs_fail(err, code == ENOMEM ? MUSTER_E_NOMEM : MUSTER_E_IO, code, "read", file->path);
}

static enum muster_status safetensors_header_length(const struct safetensors_file *file,
                                                    uint64_t *ret_length, struct muster_error *err)
{
    uint64_t length = 0;
    int code = file->size < SAFETENSORS_PREFIX_BYTES
                   ? FS_END
                   : fs_pread_all(file->fd, &length, SAFETENSORS_PREFIX_BYTES, 0);

    if (code == FS_END)
        return error_set(err, MUSTER_E_CORRUPT, "%.600s is too short to be a safetensors file",
                         file->path);
    if (code != 0)
        return safetensors_read_failed(file, code, err);
    if (length > SAFETENSORS_HEADER_MAX || length > file->size - SAFETENSORS_PREFIX_BYTES)
        return error_set(
            err, MUSTER_E_CORRUPT,
            "%.600s has a header of %llu bytes in a file of %llu (at most %d are read)", file->path,
            (unsigned long long)length, (unsigned long long)file->size, SAFETENSORS_HEADER_MAX);
    *ret_length = length;
    return MUSTER_OK;
}

enum muster_status safetensors_file_read_header(struct safetensors_file *file,
                                                struct muster_error *err)
{
    struct muster_error inner = {.status = MUSTER_OK};
    uint64_t length = 0;
    int code;
    enum muster_status status = safetensors_header_length(file, &length, err);

    if (status != MUSTER_OK)
        return status;
    free(file->header); /* of a first try, which failed */
    file->header_size = length + SAFETENSORS_PREFIX_BYTES;
    file->header = malloc((size_t)file->header_size);
    code = file->header == NULL
               ? ENOMEM
               : fs_pread_all(file->fd, file->header, (size_t)file->header_size, 0);
    if (code != 0)
        return safetensors_read_failed(file, code, err);
    status = safetensors_index_parse(file->header + SAFETENSORS_PREFIX_BYTES, (size_t)length,
                                     file->size - file->header_size, &file->index, &inner);
    if (status != MUSTER_OK)
        return error_set(err, status, "%.500s: %.500s", file->path, inner.text);
    return MUSTER_OK;
}

/* --- the table of sums --------------------------------------------------------------------- */

static uint64_t safetensors_tensor_bytes(const struct safetensors_tensor *tensor)
{
    return tensor->end - tensor->begin;
}

/* The place of a tensor's first sum in the table; position as in the index. */
static uint64_t safetensors_file_sum_place(const struct safetensors_file *file, size_t position)
{
    uint64_t place = 0;

    for (size_t i = 0; i < position; i++)
        place += sums_count(safetensors_tensor_bytes(safetensors_index_tensor(file->index, i)),
                            file->piece_bytes);
    return place;
}

static uint64_t safetensors_piece_bytes_of(const struct safetensors_index *index)
{
    const char *text = safetensors_index_fact(index, SUMS_FACT);
    uint64_t bytes = text != NULL ? strtoull(text, NULL, 10) : 0;

    return bytes >= SUMS_PIECE_MIN && bytes <= SUMS_PIECE_MAX ? bytes : 0;
}

/* The table, if it is there and has the length that the other tensors need; else NULL: another
 * writer made the file. */
static const struct safetensors_tensor *safetensors_find_table(struct safetensors_file *file)
{
    size_t count = safetensors_index_count(file->index);
    const struct safetensors_tensor *last =
        count > 0 ? safetensors_index_tensor(file->index, count - 1) : NULL;

    file->piece_bytes = safetensors_piece_bytes_of(file->index);
    if (last == NULL || file->piece_bytes == 0 || strcmp(last->name, SUMS_NAME) != 0 ||
        last->dtype != STATE_DTYPE_U8 || safetensors_tensor_bytes(last) < SUMS_TAIL_BYTES ||
        safetensors_tensor_bytes(last) - SUMS_TAIL_BYTES !=
            safetensors_file_sum_place(file, count - 1) * CHECKSUM_RAW_BYTES)
        return NULL;
    return last;
}

/* A file of another writer has neither the tensor nor the fact; a file of muster has both. */
static bool safetensors_has_a_sign_of_sums(const struct safetensors_index *index)
{
    bool found = safetensors_index_fact(index, SUMS_FACT) != NULL;

    for (size_t i = 0; i < safetensors_index_count(index) && !found; i++)
        found = strcmp(safetensors_index_tensor(index, i)->name, SUMS_NAME) == 0;
    return found;
}

enum muster_status safetensors_file_read_sums(struct safetensors_file *file,
                                              struct muster_error *err)
{
    const struct safetensors_tensor *at = safetensors_find_table(file);
    int code;

    if (at == NULL && !safetensors_has_a_sign_of_sums(file->index))
        return MUSTER_OK;
    if (at == NULL)
        return error_set(err, MUSTER_E_CORRUPT, "%.600s is damaged in its header", file->path);
    file->table_bytes = (size_t)safetensors_tensor_bytes(at);
    file->table = malloc(file->table_bytes);
    code = file->table == NULL ? ENOMEM
                               : fs_pread_all(file->fd, file->table, file->table_bytes,
                                              file->header_size + at->begin);
    if (code != 0)
        return safetensors_read_failed(file, code, err);
    if (!sums_table_is_whole(file->table, file->table_bytes))
        return error_set(err, MUSTER_E_CORRUPT, "%.600s is damaged in its table of checksums",
                         file->path);
    if (!sums_header_is_whole(file->table, file->table_bytes, file->header,
                              (size_t)file->header_size))
        return error_set(err, MUSTER_E_CORRUPT, "%.600s is damaged in its header", file->path);
    return MUSTER_OK;
}

/* --- finding damage ------------------------------------------------------------------------ */

/* The first piece of a tensor that is not as it was saved, or UINT64_MAX. A piece may be larger
 * than what may be held in memory: then it is summed up in parts. */
static uint64_t safetensors_bad_piece(const struct safetensors_file *file, size_t position,
                                      char *buffer, struct checksum *sum)
{
    const struct safetensors_tensor *tensor = safetensors_index_tensor(file->index, position);
    uint64_t place = safetensors_file_sum_place(file, position);
    uint64_t size = file->piece_bytes > 0 ? safetensors_tensor_bytes(tensor) : 0;

    for (uint64_t at = 0; at < size; at += file->piece_bytes, place++) {
        uint64_t end = size - at < file->piece_bytes ? size : at + file->piece_bytes;
        unsigned char found[CHECKSUM_RAW_BYTES];

        checksum_reset(sum);
        for (uint64_t from = at; from < end;) {
            size_t n = end - from < FS_CHUNK_BYTES ? (size_t)(end - from) : FS_CHUNK_BYTES;

            if (fs_pread_all(file->fd, buffer, n, file->header_size + tensor->begin + from) != 0)
                return at / file->piece_bytes;
            checksum_update(sum, buffer, n);
            from += n;
        }
        checksum_bytes(sum, found);
        if (memcmp(found, file->table + place * CHECKSUM_RAW_BYTES, sizeof found) != 0)
            return at / file->piece_bytes;
    }
    return UINT64_MAX;
}

static void safetensors_find_in_tensors(const struct safetensors_file *file, char *text,
                                        size_t text_size)
{
    struct checksum *sum = checksum_create(CHECKSUM_XXH3);
    char *buffer = malloc(FS_CHUNK_BYTES);
    size_t count = safetensors_index_count(file->index) - 1; /* but the table */

    for (size_t i = 0; sum != NULL && buffer != NULL && i < count; i++) {
        uint64_t piece = safetensors_bad_piece(file, i, buffer, sum);

        if (piece == UINT64_MAX)
            continue;
        snprintf(text, text_size, " in tensor \"%s\" (from its byte %llu on)",
                 safetensors_index_tensor(file->index, i)->name,
                 (unsigned long long)piece * file->piece_bytes);
        break;
    }
    free(buffer);
    checksum_destroy(&sum);
}

void safetensors_file_find_damage(struct safetensors_file *file, char *text, size_t text_size)
{
    enum muster_status status = MUSTER_OK;

    text[0] = '\0';
    if (file->index == NULL)
        status = safetensors_file_read_header(file, NULL);
    if (status == MUSTER_E_CORRUPT || status == MUSTER_E_UNSUPPORTED)
        snprintf(text, text_size, " in its header");
    if (status != MUSTER_OK)
        return;
    if (file->table == NULL)
        (void)safetensors_file_read_sums(file, NULL);
    if (file->table == NULL) {
        if (safetensors_has_a_sign_of_sums(file->index))
            snprintf(text, text_size, " in its header");
        return;
    }
    if (!sums_table_is_whole(file->table, file->table_bytes))
        snprintf(text, text_size, " in its table of checksums");
    else if (!sums_header_is_whole(file->table, file->table_bytes, file->header,
                                   (size_t)file->header_size))
        snprintf(text, text_size, " in its header");
    else
        safetensors_find_in_tensors(file, text, text_size);
}
