/* safetensors_restore - a state read back from one file; see safetensors.h. */
#include "node/shard/safetensors.h"

#include "node/shard/fs.h"
#include "node/shard/reader.h"
#include "node/shard/safetensors_file.h"
#include "node/shard/sums.h"
#include "schema/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OVERWRITTEN "the state is partly overwritten: do not train on it, restore again"
#define UNTOUCHED "nothing was restored"
#define UNFIT UNTOUCHED "; register it as it was saved, or restore another checkpoint"

enum muster_status safetensors_told(enum muster_status status, const struct interrupt *interrupt,
                                    const char *path, struct muster_error *err)
{
    if (status == MUSTER_OK || interrupt == NULL || !interrupt->said)
        return status;
    return error_set(err, MUSTER_E_INTERRUPTED,
                     "the program was interrupted while it restored %.600s; the state "
                     "may be partly overwritten: do not train on it, restore again",
                     path);
}

/* --- damage -------------------------------------------------------------------------------- */

static enum muster_status safetensors_damaged(struct safetensors_file *file, const char *found,
                                              const char *checksum, const char *so,
                                              struct muster_error *err)
{
    char where[STATE_NAME_MAX + 64];

    safetensors_file_find_damage(file, where, sizeof where);
    return error_set(err, MUSTER_E_CORRUPT,
                     "%.500s is damaged%s: its checksum is %s, %s was saved; %s", file->path, where,
                     found, checksum, so);
}

static enum muster_status safetensors_check_size(const struct safetensors_file *file,
                                                 uint64_t bytes, struct muster_error *err)
{
    if (file->size == bytes)
        return MUSTER_OK;
    return error_set(err, MUSTER_E_CORRUPT,
                     "%.600s has %llu bytes, %llu were saved: it was %s; " UNTOUCHED, file->path,
                     (unsigned long long)file->size, (unsigned long long)bytes,
                     file->size < bytes ? "cut" : "added to");
}

/* All of the file against its checksum, before any of it is used. */
static enum muster_status safetensors_verify(struct safetensors_file *file, const char *checksum,
                                             struct interrupt *interrupt, struct muster_error *err)
{
    const struct fs_watcher watcher = {interrupt_went, interrupt};
    char found[MANIFEST_CHECKSUM_SIZE];
    uint64_t bytes = 0;
    enum muster_status status =
        checksum_fd(file->fd, file->path, checksum_kind_of(checksum), &watcher, &bytes, found, err);

    if (status == MUSTER_OK && strcmp(found, checksum) != 0)
        return safetensors_damaged(file, found, checksum, UNTOUCHED, err);
    return status;
}

/* --- what goes where ----------------------------------------------------------------------- */

static enum muster_status safetensors_match_one(const struct state_item *item,
                                                const struct safetensors_tensor *tensor,
                                                struct muster_error *err)
{
    char wanted[256];
    char found[256];

    if (item->split.is && tensor->split.is && item->split.begin != tensor->split.begin)
        return error_set(err, MUSTER_E_RESTORE,
                         "tensor \"%s\" is the part from %lld on in the file and from %lld on in "
                         "this program; " UNFIT,
                         item->name, (long long)tensor->split.begin, (long long)item->split.begin);
    if (item->dtype == tensor->dtype && item->dim_count == tensor->dim_count &&
        memcmp(item->shape, tensor->shape, item->dim_count * sizeof *item->shape) == 0)
        return MUSTER_OK;
    state_shape_text(item->dtype, item->shape, item->dim_count, wanted, sizeof wanted);
    state_shape_text(tensor->dtype, tensor->shape, tensor->dim_count, found, sizeof found);
    return error_set(err, MUSTER_E_RESTORE,
                     "tensor \"%s\" is %s in the file and %s in this program; " UNFIT, item->name,
                     found, wanted);
}

/* Of the entries of the state, of which not all are among the targets. */
static enum muster_status safetensors_name_lacking(const struct safetensors_index *index,
                                                   const struct muster_state *state,
                                                   const struct state_item *const *targets,
                                                   struct muster_error *err)
{
    bool *there = calloc(state->count, sizeof *there);
    size_t k = 0;

    if (there == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to compare the state with the file");
    for (size_t i = 0; i < safetensors_index_count(index); i++)
        if (targets[i] != NULL)
            there[targets[i] - state->items] = true;
    while (k + 1 < state->count && there[k])
        k++;
    free(there);
    return error_set(err, MUSTER_E_RESTORE,
                     "tensor \"%s\" is not in the file; " UNTOUCHED
                     "; leave it out of the state until the restore is done, or restore a "
                     "checkpoint that has it",
                     state->items[k].name);
}

/* targets[i]: the entry of the state that the i-th tensor of the file goes to, or NULL. */
static enum muster_status safetensors_match(const struct safetensors_index *index,
                                            const struct muster_state *state,
                                            const struct state_item **targets,
                                            struct muster_error *err)
{
    size_t found = 0;

    for (size_t i = 0; i < safetensors_index_count(index); i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(index, i);
        enum muster_status status;

        targets[i] = state_find(state, tensor->name);
        if (targets[i] == NULL)
            continue;
        status = safetensors_match_one(targets[i], tensor, err);
        if (status != MUSTER_OK)
            return status;
        found++;
    }
    if (found == state->count) /* names are unique on both sides */
        return MUSTER_OK;
    return safetensors_name_lacking(index, state, targets, err);
}

/* --- reading ------------------------------------------------------------------------------- */

static int safetensors_read_tensors(const struct safetensors_file *file,
                                    const struct state_item *const *targets, struct checksum *sum,
                                    struct interrupt *interrupt)
{
    size_t count = safetensors_index_count(file->index);
    struct reader_range *ranges = calloc(count + 1, sizeof *ranges);
    int code = ENOMEM;

    for (size_t i = 0; ranges != NULL && i < count; i++) {
        const struct safetensors_tensor *tensor = safetensors_index_tensor(file->index, i);

        ranges[i] = (struct reader_range){.offset = file->header_size + tensor->begin,
                                          .size = tensor->end - tensor->begin,
                                          .to = targets[i] == NULL ? NULL : targets[i]->data};
    }
    if (ranges != NULL)
        code = reader_read(file->fd, ranges, count, sum, interrupt);
    free(ranges);
    return code;
}

static enum muster_status safetensors_restore_read_all(struct safetensors_file *file,
                                                       const struct state_item *const *targets,
                                                       const char *checksum,
                                                       struct interrupt *interrupt,
                                                       struct muster_error *err)
{
    struct checksum *sum = checksum_create(checksum_kind_of(checksum));
    char found[MANIFEST_CHECKSUM_SIZE];
    int code = ENOMEM;

    if (sum != NULL) {
        checksum_update(sum, file->header, (size_t)file->header_size);
        code = safetensors_read_tensors(file, targets, sum, interrupt);
        checksum_text(sum, found);
    }
    checksum_destroy(&sum);
    if (code == ENOMEM)
        return error_set(err, MUSTER_E_NOMEM, "no memory to restore %.600s", file->path);
    if (code == 0 && strcmp(found, checksum) == 0)
        return MUSTER_OK;
    if (code == 0)
        return safetensors_damaged(file, found, checksum, OVERWRITTEN, err);
    return error_set_code(err, MUSTER_E_CORRUPT, code > 0 ? code : 0,
                          "%.600s %s while it was restored; " OVERWRITTEN, file->path,
                          code > 0 ? "could not be read" : "became shorter");
}

/* The header, and what goes where: all that can be wrong without a look at the data. */
static enum muster_status safetensors_restore_prepare(struct safetensors_file *file,
                                                      const struct muster_state *state,
                                                      const struct state_item ***ret_targets,
                                                      struct muster_error *err)
{
    struct muster_error inner = {.status = MUSTER_OK};
    const struct state_item **targets;
    enum muster_status status =
        file->index != NULL ? MUSTER_OK : safetensors_file_read_header(file, err);

    if (status == MUSTER_OK)
        status = safetensors_file_read_sums(file, err); /* so the header is known to be whole */
    if (status != MUSTER_OK)
        return status;
    targets = calloc(safetensors_index_count(file->index) + 1, sizeof *targets);
    if (targets == NULL)
        return error_set(err, MUSTER_E_NOMEM, "no memory to restore %.600s", file->path);
    status = safetensors_match(file->index, state, targets, &inner);
    if (status != MUSTER_OK) {
        free(targets);
        return error_set(err, status, "%.500s: %.500s", file->path, inner.text);
    }
    *ret_targets = targets;
    return MUSTER_OK;
}

static enum muster_status restore_opened(struct safetensors_file *file, const char *checksum,
                                         const struct muster_state *state,
                                         struct interrupt *interrupt, struct muster_error *err)
{
    const struct state_item **targets = NULL;
    bool small = file->size <= SAFETENSORS_VERIFY_FIRST_BYTES;
    enum muster_status status =
        small ? safetensors_verify(file, checksum, interrupt, err) : MUSTER_OK;

    if (status != MUSTER_OK)
        return status;
    status = safetensors_restore_prepare(file, state, &targets, err);
    if (status != MUSTER_OK) { /* a name that damage made another's is damage */
        struct muster_error damage;
        enum muster_status whole = small || status == MUSTER_E_NOMEM
                                       ? MUSTER_OK
                                       : safetensors_verify(file, checksum, interrupt, &damage);

        if (whole == MUSTER_OK)
            return status;
        if (err != NULL)
            *err = damage;
        return whole;
    }
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint; its failure changes nothing */
    status = safetensors_restore_read_all(file, targets, checksum, interrupt, err);
    free(targets);
    return status;
}

enum muster_status safetensors_restore(const char *path, uint64_t bytes, const char *checksum,
                                       const struct muster_state *state,
                                       struct interrupt *interrupt, struct muster_error *err)
{
    struct safetensors_file file;
    enum muster_status status = safetensors_file_open(path, &file, err);

    if (status != MUSTER_OK)
        return status;
    status = safetensors_check_size(&file, bytes, err);
    if (status == MUSTER_OK)
        status = restore_opened(&file, checksum, state, interrupt, err);
    safetensors_file_close(&file);
    return safetensors_told(status, interrupt, path, err);
}

void safetensors_find_left(const char *path, const struct muster_state *state,
                           char ret_name[STATE_NAME_MAX + 1])
{
    struct safetensors_file file;

    ret_name[0] = '\0';
    if (safetensors_file_open(path, &file, NULL) != MUSTER_OK)
        return;
    if (safetensors_file_read_header(&file, NULL) == MUSTER_OK) {
        for (size_t i = 0; ret_name[0] == '\0' && i < safetensors_index_count(file.index); i++) {
            const char *name = safetensors_index_tensor(file.index, i)->name;

            if (strcmp(name, SUMS_NAME) != 0 && state_find(state, name) == NULL)
                snprintf(ret_name, STATE_NAME_MAX + 1, "%s", name);
        }
    }
    safetensors_file_close(&file);
}
