/* shard_reshard - see shard_reshard.h. */
#include "node/shard/shard_reshard.h"

#include "node/shard/sums.h"
#include "schema/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX ((uint64_t)32 << 20) /* in memory at once: shards of up to 2 TiB */
#define OVERWRITTEN "the state is partly overwritten: do not train on it, restore again"

/* One entry of the state, and what the shards gave for it so far. */
struct wanted {
    const struct state_item *item; /* the state's, or `whole` */
    struct state_item whole;       /* the same, with the split that the file has */
    struct part {                  /* along the axis, clipped to what is wanted */
        int64_t begin, end;
        uint64_t rank;
    } * parts;
    size_t part_count;
    bool found; /* not split: in the shard of `rank` */
    uint64_t rank;
    uint64_t piece_bytes;
    unsigned char sum[CHECKSUM_RAW_BYTES]; /* not split: of its pieces' sums */
};

struct reshard {
    const struct shard_restore *request;
    const struct manifest *manifest;
    struct wanted *wanted; /* as the state's items */
    size_t count;
    char *buffer;
    uint64_t buffer_bytes;
};

/* --- one shard's file ------------------------------------------------------------------------ */

static bool reshard_fact_is(const struct safetensors_file *file, const char *key,
                            const char *wanted)
{
    const char *found = safetensors_index_fact(file->index, key);

    return found != NULL && strcmp(found, wanted) == 0;
}

/* The facts that the shard itself tells, against the manifest. */
static enum muster_status reshard_check_facts(const struct safetensors_file *file,
                                              const struct manifest *manifest,
                                              const struct manifest_shard *shard,
                                              struct muster_error *err)
{
    const struct {
        const char *key;
        uint64_t number;
    } rows[] = {{"generation", manifest->generation},
                {"round", manifest->round},
                {"step", (uint64_t)manifest->step},
                {"rank", shard->rank}};
    char text[24];
    bool same = reshard_fact_is(file, "job", manifest->job);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, "%" PRIu64, rows[i].number);
        same &= reshard_fact_is(file, rows[i].key, text);
    }
    snprintf(text, sizeof text, "%016" PRIx64, shard->incarnation);
    if (same && reshard_fact_is(file, "incarnation", text))
        return MUSTER_OK;
    return error_set(err, MUSTER_E_CORRUPT,
                     "%.600s is not the shard that the manifest means: another job, round, step or "
                     "rank is in its metadata",
                     file->path);
}

static enum muster_status reshard_read_shard_header(const struct manifest *manifest,
                                                    struct safetensors_file *file,
                                                    const struct manifest_shard *shard,
                                                    struct muster_error *err)
{
    uint64_t bytes = shard->files[0].bytes;
    enum muster_status status;

    if (file->size != bytes)
        return error_set(err, MUSTER_E_CORRUPT, "%.600s has %llu bytes, %llu were saved: it was %s",
                         file->path, (unsigned long long)file->size, (unsigned long long)bytes,
                         file->size < bytes ? "cut" : "added to");
    status = safetensors_file_read_header(file, err);
    if (status == MUSTER_OK)
        status = safetensors_file_read_sums(file, err);
    if (status == MUSTER_OK)
        status = reshard_check_facts(file, manifest, shard, err);
    if (status != MUSTER_OK)
        return status;
    if (file->table == NULL || file->piece_bytes > PIECE_MAX)
        return error_set(err, MUSTER_E_RESTORE,
                         "%.600s has no table of checksums that parts of it could be checked by; "
                         "start the job with %llu ranks, as it was saved",
                         file->path, (unsigned long long)manifest->world_size);
    return MUSTER_OK;
}

enum muster_status shard_reshard_open(const char *checkpoint_path, const struct manifest *manifest,
                                      const struct manifest_shard *shard, char path[FS_PATH_MAX],
                                      struct safetensors_file *ret_file, struct muster_error *err)
{
    char name[DIR_NAME_SIZE + sizeof DIR_SHARD_SUFFIX];
    enum muster_status status;

    dir_shard_name(shard->rank, shard->incarnation, name);
    memcpy(name + strlen(name), DIR_SHARD_SUFFIX, sizeof DIR_SHARD_SUFFIX);
    if (shard->file_count != 1 || strcmp(shard->files[0].path, name) != 0)
        return error_set(err, MUSTER_E_RESTORE,
                         "the shard of rank %" PRIu64 " in %.600s was written by the job's own "
                         "save_fn; start the job with %" PRIu64 " ranks, as it was saved",
                         shard->rank, checkpoint_path, manifest->world_size);
    status = fs_path(path, err, "%s/%s", checkpoint_path, name);
    if (status == MUSTER_OK)
        status = shard_damage(safetensors_file_open(path, ret_file, err), err);
    if (status != MUSTER_OK)
        return status;
    status = reshard_read_shard_header(manifest, ret_file, shard, err);
    if (status != MUSTER_OK)
        safetensors_file_close(ret_file);
    return status;
}

/* --- does it fit? ---------------------------------------------------------------------------- */

static enum muster_status reshard_unfit(const struct safetensors_file *file, const char *name,
                                        const char *what, struct muster_error *err)
{
    return error_set(err, MUSTER_E_RESTORE,
                     "%.500s: tensor \"%s\" %s; nothing was restored; register it as it was saved, "
                     "or restore another checkpoint",
                     file->path, name, what);
}

static enum muster_status reshard_check_shape(const struct safetensors_file *file,
                                              const struct state_item *item,
                                              const struct safetensors_tensor *tensor,
                                              struct muster_error *err)
{
    bool same = item->dtype == tensor->dtype && item->dim_count == tensor->dim_count;
    char wanted[128], found[128], text[320];

    if (item->split.is != tensor->split.is)
        return reshard_unfit(file, item->name,
                             item->split.is ? "is split in this program and not in the file"
                                            : "is split in the file and not in this program",
                             err);
    if (item->split.is && (item->split.axis != tensor->split.axis ||
                           item->split.global_count != tensor->split.global_count))
        return reshard_unfit(file, item->name,
                             "is split along another axis, or of another length, there", err);
    for (size_t i = 0; same && i < item->dim_count; i++)
        same = item->shape[i] == tensor->shape[i] || (item->split.is && i == item->split.axis);
    if (same)
        return MUSTER_OK;
    state_shape_text(item->dtype, item->shape, item->dim_count, wanted, sizeof wanted);
    state_shape_text(tensor->dtype, tensor->shape, tensor->dim_count, found, sizeof found);
    snprintf(text, sizeof text, "is %s in the file and %s in this program", found, wanted);
    return reshard_unfit(file, item->name, text, err);
}

/* The part of the tensor that this rank wants, along the axis. False: nothing. */
static bool shard_reshard_overlap(const struct state_item *item,
                                  const struct safetensors_tensor *tensor, struct part *ret_part)
{
    int64_t from = item->split.begin, to = from + item->shape[item->split.axis];
    int64_t begin = tensor->split.begin, end = begin + tensor->shape[tensor->split.axis];

    ret_part->begin = begin > from ? begin : from;
    ret_part->end = end < to ? end : to;
    return ret_part->begin < ret_part->end;
}

static enum muster_status reshard_note_part(struct wanted *wanted,
                                            const struct safetensors_file *file,
                                            const struct safetensors_tensor *tensor, uint64_t rank,
                                            struct muster_error *err)
{
    struct part part = {.rank = rank}, *parts;

    if (!shard_reshard_overlap(wanted->item, tensor, &part))
        return MUSTER_OK;
    for (size_t i = 0; i < wanted->part_count; i++)
        if (part.begin < wanted->parts[i].end && wanted->parts[i].begin < part.end)
            return error_set(err, MUSTER_E_RESTORE,
                             "%.400s: tensor \"%s\": parts of the shards of ranks %" PRIu64
                             " and %" PRIu64 " overlap; nothing was restored",
                             file->path, wanted->item->name, wanted->parts[i].rank, rank);
    parts = realloc(wanted->parts, (wanted->part_count + 1) * sizeof *parts);
    if (parts == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to restore %.600s", file->path);
    wanted->parts = parts;
    wanted->parts[wanted->part_count++] = part;
    return MUSTER_OK;
}

static uint64_t reshard_sums_of(const struct safetensors_file *file,
                                const struct safetensors_tensor *tensor)
{
    return sums_count(tensor->end - tensor->begin, file->piece_bytes);
}

/* place: of its first sum in the table. */
static enum muster_status reshard_note_whole(struct wanted *wanted,
                                             const struct safetensors_file *file,
                                             const struct safetensors_tensor *tensor,
                                             uint64_t place, uint64_t rank,
                                             struct muster_error *err)
{
    unsigned char sum[CHECKSUM_RAW_BYTES];

    checksum_raw(file->table + place * CHECKSUM_RAW_BYTES,
                 (size_t)reshard_sums_of(file, tensor) * CHECKSUM_RAW_BYTES, sum);
    if (!wanted->found) {
        wanted->found = true;
        wanted->rank = rank;
        wanted->piece_bytes = file->piece_bytes;
        memcpy(wanted->sum, sum, sizeof sum);
        return MUSTER_OK;
    }
    if (wanted->piece_bytes == file->piece_bytes && memcmp(wanted->sum, sum, sizeof sum) == 0)
        return MUSTER_OK;
    return error_set(
        err, MUSTER_E_RESTORE,
        "tensor \"%s\" is not split, and differs between the shards of ranks %" PRIu64
        " and %" PRIu64 " in %.400s: a job of another size cannot tell which one to "
        "take; declare its split axis, start with as many ranks as saved it, or read one "
        "rank's with muster_checkpoint_read",
        wanted->item->name, wanted->rank, rank, file->path);
}

static struct wanted *shard_reshard_wanted_of(const struct reshard *r, const char *name)
{
    const struct muster_state *state = r->request->state;
    const struct state_item *item = state_find(state, name);

    return item == NULL ? NULL : &r->wanted[item - state->items];
}

/* A reader has tensors as they are, not as some job's ranks split them. */
static void shard_reshard_take_whole(const struct reshard *r, struct wanted *wanted,
                                     const struct safetensors_tensor *tensor)
{
    const struct state_item *item = wanted->item;
    bool own = r->request->own_parts;

    if (!r->request->wholes || item->split.is || !tensor->split.is ||
        tensor->split.axis >= item->dim_count ||
        item->shape[tensor->split.axis] !=
            (own ? tensor->shape[tensor->split.axis] : tensor->split.global_count))
        return;
    wanted->whole = *item;
    wanted->whole.split = tensor->split;
    if (!own)
        wanted->whole.split.begin = 0;
    wanted->item = &wanted->whole;
}

/* A reader is no rank: it says whose it reads. */
static bool reshard_is_anothers(const struct reshard *r, const struct wanted *wanted, uint64_t rank)
{
    return wanted->item->own && !r->request->wholes && rank != r->request->rank;
}

static enum muster_status shard_reshard_look_at(struct reshard *r,
                                                const struct safetensors_file *file, uint64_t rank,
                                                struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    uint64_t place = 0, next = 0;

    for (size_t i = 0; status == MUSTER_OK && i < safetensors_index_count(file->index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(file->index, i);
        struct wanted *wanted = shard_reshard_wanted_of(r, tensor->name);

        place = next;
        next += reshard_sums_of(file, tensor);
        if (wanted == NULL || wanted->item == NULL || reshard_is_anothers(r, wanted, rank))
            continue;
        shard_reshard_take_whole(r, wanted, tensor);
        status = reshard_check_shape(file, wanted->item, tensor, err);
        if (status == MUSTER_OK)
            status = wanted->item->split.is
                         ? reshard_note_part(wanted, file, tensor, rank, err)
                         : reshard_note_whole(wanted, file, tensor, place, rank, err);
    }
    if (file->piece_bytes > r->buffer_bytes)
        r->buffer_bytes = file->piece_bytes;
    return status;
}

/* Is everything that is wanted in some shard? Parts do not overlap, so lengths can be added up. */
static enum muster_status reshard_check_complete(const struct reshard *r, struct muster_error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct wanted *wanted = &r->wanted[i];
        const struct state_item *item = wanted->item;
        int64_t have = 0;

        for (size_t k = 0; k < wanted->part_count; k++)
            have += wanted->parts[k].end - wanted->parts[k].begin;
        if (item->split.is ? have == item->shape[item->split.axis] : wanted->found)
            continue;
        return error_set(
            err, r->request->job == NULL && !item->split.is ? MUSTER_E_NOT_FOUND : MUSTER_E_RESTORE,
            "tensor \"%s\": %s not in the shards of %.500s; nothing was restored", item->name,
            item->split.is ? "a part of it is"
            : item->own    ? "it is each rank's own, and this rank's is"
                           : "it is",
            r->request->checkpoint_path);
    }
    return MUSTER_OK;
}

/* --- reading --------------------------------------------------------------------------------- */

/* A tensor as `outer` rows, each of `count` slices of `slice` bytes along the axis. */
struct rows {
    uint64_t outer, slice;
    uint64_t row_bytes, to_row_bytes; /* in the file, in the state */
    uint64_t from, to, bytes; /* of what is copied, in each row of the file and of the state */
};

static struct rows reshard_rows_of(const struct state_item *item,
                                   const struct safetensors_tensor *tensor, const struct part *part)
{
    size_t axis = item->split.axis;
    struct rows rows = {.outer = 1, .slice = state_dtype_size(item->dtype)};

    for (size_t i = 0; i < axis; i++)
        rows.outer *= (uint64_t)item->shape[i];
    for (size_t i = axis + 1; i < item->dim_count; i++)
        rows.slice *= (uint64_t)item->shape[i];
    rows.row_bytes = (uint64_t)tensor->shape[axis] * rows.slice;
    rows.to_row_bytes = (uint64_t)item->shape[axis] * rows.slice;
    rows.from = (uint64_t)(part->begin - tensor->split.begin) * rows.slice;
    rows.to = (uint64_t)(part->begin - item->split.begin) * rows.slice;
    rows.bytes = (uint64_t)(part->end - part->begin) * rows.slice;
    return rows;
}

/* The part of bytes [at, at + size) of the tensor that the state wants; with piece NULL only
 * whether any. */
static bool reshard_copy_piece(const struct rows *rows, const char *piece, uint64_t at,
                               uint64_t size, char *to)
{
    bool any = false;

    for (uint64_t row = at / rows->row_bytes; row < rows->outer; row++) {
        uint64_t begin = row * rows->row_bytes + rows->from, end = begin + rows->bytes;

        if (begin >= at + size)
            break;
        if (end <= at)
            continue;
        any = true;
        if (piece == NULL)
            return true;
        uint64_t first = begin > at ? begin : at;
        uint64_t last = end < at + size ? end : at + size;

        memcpy(to + row * rows->to_row_bytes + rows->to + (first - begin), piece + (first - at),
               (size_t)(last - first));
    }
    return any;
}

static enum muster_status reshard_piece_failed(const struct safetensors_file *file,
                                               const char *name, uint64_t at, int code,
                                               struct muster_error *err)
{
    if (code > 0)
        return error_set_code(err, MUSTER_E_CORRUPT, code,
                              "%.500s could not be read while it was restored; " OVERWRITTEN,
                              file->path);
    return error_set(err, MUSTER_E_CORRUPT,
                     "%.400s is damaged in tensor \"%s\" (from its byte %llu on); " OVERWRITTEN,
                     file->path, name, (unsigned long long)at);
}

static enum muster_status reshard_read_tensor(const struct reshard *r,
                                              const struct safetensors_file *file,
                                              const struct safetensors_tensor *tensor,
                                              uint64_t place, const struct rows *rows,
                                              const struct state_item *item,
                                              struct muster_error *err)
{
    uint64_t size = tensor->end - tensor->begin;

    for (uint64_t at = 0; at < size; at += file->piece_bytes, place++) {
        uint64_t n = size - at < file->piece_bytes ? size - at : file->piece_bytes;
        int code;

        if (!reshard_copy_piece(rows, NULL, at, n, NULL))
            continue;
        code = interrupt_look(r->request->interrupt)
                   ? ECANCELED
                   : fs_pread_all(file->fd, r->buffer, (size_t)n,
                                  file->header_size + tensor->begin + at);
        if (code != 0 || !sums_piece_is_whole(file->table, place, r->buffer, (size_t)n))
            return reshard_piece_failed(file, tensor->name, at, code, err);
        reshard_copy_piece(rows, r->buffer, at, n, item->data);
    }
    return MUSTER_OK;
}

static enum muster_status reshard_read_from(const struct reshard *r,
                                            const struct safetensors_file *file, uint64_t rank,
                                            struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;
    uint64_t place = 0, next = 0;

    for (size_t i = 0; status == MUSTER_OK && i < safetensors_index_count(file->index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(file->index, i);
        const struct wanted *wanted = shard_reshard_wanted_of(r, tensor->name);
        uint64_t bytes = tensor->end - tensor->begin;
        struct rows rows = {.outer = 1, .row_bytes = bytes, .to_row_bytes = bytes, .bytes = bytes};
        struct part part;

        place = next;
        next += reshard_sums_of(file, tensor);
        if (wanted == NULL || bytes == 0 || (!wanted->item->split.is && wanted->rank != rank))
            continue;
        if (wanted->item->split.is && !shard_reshard_overlap(wanted->item, tensor, &part))
            continue;
        if (wanted->item->split.is)
            rows = reshard_rows_of(wanted->item, tensor, &part);
        status = reshard_read_tensor(r, file, tensor, place, &rows, wanted->item, err);
    }
    return status;
}

/* --- all of them ----------------------------------------------------------------------------- */

static bool reshard_is_needed(const struct reshard *r, uint64_t rank)
{
    for (size_t i = 0; i < r->count; i++) {
        if (!r->wanted[i].item->split.is && r->wanted[i].rank == rank)
            return true;
        for (size_t k = 0; k < r->wanted[i].part_count; k++)
            if (r->wanted[i].parts[k].rank == rank)
                return true;
    }
    return false;
}

/* Its table of checksums can be forged. A signature covers the whole file, so that is read before
 * any part of it is used. */
static enum muster_status reshard_check_signed(const struct reshard *r,
                                               const struct safetensors_file *file,
                                               const struct wire_file *told,
                                               struct muster_error *err)
{
    const struct fs_watcher watcher = {interrupt_went, r->request->interrupt};
    char found[MANIFEST_CHECKSUM_SIZE];
    uint64_t bytes = 0;
    enum muster_status status =
        r->request->signer == NULL
            ? MUSTER_OK
            : checksum_fd(file->fd, file->path, checksum_kind_of(told->checksum), &watcher, &bytes,
                          found, err);

    if (r->request->signer == NULL || status != MUSTER_OK || strcmp(found, told->checksum) == 0)
        return status;
    return error_set(
        err, MUSTER_E_CORRUPT,
        "%.500s was changed since it was saved: its checksum is %s, %s was signed; " OVERWRITTEN,
        file->path, found, told->checksum);
}

/* Headers of thousands of files are long work, too. */
static enum muster_status reshard_look_between_shards(const struct reshard *r,
                                                      struct muster_error *err)
{
    return !interrupt_look(r->request->interrupt)
               ? MUSTER_OK
               : error_set_code(err, MUSTER_E_INTERRUPTED, ECANCELED,
                                "the program was interrupted while it restored %.600s",
                                r->request->checkpoint_path);
}

static enum muster_status reshard_each_shard(struct reshard *r, bool read, struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; status == MUSTER_OK && i < r->manifest->shard_count; i++) {
        const struct manifest_shard *shard = &r->manifest->shards[i];
        char path[FS_PATH_MAX];
        struct safetensors_file file;

        status = reshard_look_between_shards(r, err);
        if (status != MUSTER_OK || (read && !reshard_is_needed(r, shard->rank)))
            continue;
        status =
            shard_reshard_open(r->request->checkpoint_path, r->manifest, shard, path, &file, err);
        if (status != MUSTER_OK)
            break;
        status = read ? reshard_check_signed(r, &file, &shard->files[0], err)
                      : shard_reshard_look_at(r, &file, shard->rank, err);
        if (read && status == MUSTER_OK)
            status = reshard_read_from(r, &file, shard->rank, err);
        safetensors_file_close(&file);
    }
    return status;
}

static enum muster_status reshard_make_wanted(struct reshard *r, struct muster_error *err)
{
    r->count = r->request->state->count;
    r->wanted = calloc(r->count + 1, sizeof *r->wanted);
    if (r->wanted == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to restore %.600s",
                         r->request->checkpoint_path);
    for (size_t i = 0; i < r->count; i++)
        r->wanted[i].item = &r->request->state->items[i];
    return MUSTER_OK;
}

static enum muster_status reshard(struct reshard *r, struct muster_error *err)
{
    enum muster_status status = reshard_make_wanted(r, err);

    if (status == MUSTER_OK)
        status = reshard_each_shard(r, false, err);
    if (status == MUSTER_OK)
        status = reshard_check_complete(r, err);
    if (status != MUSTER_OK)
        return status;
    r->buffer = malloc((size_t)r->buffer_bytes + 1);
    if (r->buffer == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to restore %.600s",
                         r->request->checkpoint_path);
    return reshard_each_shard(r, true, err);
}

enum muster_status shard_reshard(const struct shard_restore *request,
                                 const struct manifest *manifest, struct muster_error *err)
{
    struct reshard r = {.request = request, .manifest = manifest};
    struct muster_error why = {.status = MUSTER_OK};
    enum muster_status status = reshard(&r, &why);

    for (size_t i = 0; r.wanted != NULL && i < r.count; i++)
        free(r.wanted[i].parts);
    free(r.wanted);
    free(r.buffer);
    if (status != MUSTER_OK && err != NULL)
        *err = why;
    return status;
}

bool shard_is_split_otherwise(const char *path, const struct muster_state *state)
{
    struct safetensors_file file;
    bool otherwise = false;

    if (safetensors_file_open(path, &file, NULL) != MUSTER_OK)
        return false;
    if (safetensors_file_read_header(&file, NULL) == MUSTER_OK) {
        for (size_t i = 0; i < safetensors_index_count(file.index); i++) {
            const struct safetensors_tensor *tensor = safetensors_index_tensor(file.index, i);
            const struct state_item *item = state_find(state, tensor->name);

            otherwise |= item != NULL && item->split.is && tensor->split.is &&
                         (item->split.begin != tensor->split.begin ||
                          item->shape[item->split.axis] != tensor->shape[tensor->split.axis]);
        }
    }
    safetensors_file_close(&file);
    return otherwise;
}
