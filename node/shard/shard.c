/* shard - writing a shard; see shard.h. Restoring is in shard_restore.c. */
#include "node/shard/shard.h"

#include "node/shard/checksum.h"
#include "node/shard/safetensors.h"
#include "schema/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FACT_COUNT 13
#define FACT_SIZE 24 /* a 64-bit number */

void shard_files_clear(struct shard_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < files->count; i++) {
        free((void *)(uintptr_t)files->files[i].path);
        free((void *)(uintptr_t)files->files[i].checksum);
    }
    free(files->files);
    *files = (struct shard_files){0};
}

/* files->files has room for it. */
static bool shard_files_add(struct shard_files *files, const char *path, uint64_t bytes,
                            const char *checksum)
{
    struct wire_file *file = &files->files[files->count];

    file->path = strdup(path);
    file->checksum = strdup(checksum);
    file->bytes = bytes;
    files->count++; /* also half-built, so that clear frees both halves */
    files->bytes += bytes;
    return file->path != NULL && file->checksum != NULL;
}

/* A save's caller always gets E_SAVE for a full or broken disk. */
static enum muster_status shard_as_save(enum muster_status status, struct muster_error *err)
{
    if (status != MUSTER_E_IO && status != MUSTER_E_NOT_FOUND && status != MUSTER_E_CORRUPT)
        return status;
    if (err != NULL)
        err->status = MUSTER_E_SAVE;
    return MUSTER_E_SAVE;
}

void shard_discard(const char *round_dir, uint64_t rank, uint64_t incarnation)
{
    char path[FS_PATH_MAX];
    char name[DIR_NAME_SIZE];

    dir_shard_name(rank, incarnation, name);
    if (fs_path(path, NULL, "%s/%s", round_dir, name) == MUSTER_OK)
        (void)fs_remove_tree(path, NULL); /* what stays goes with its round */
    if (fs_path(path, NULL, "%s/%s" DIR_SHARD_SUFFIX, round_dir, name) == MUSTER_OK)
        (void)unlink(path);
}

/* --- the default save ---------------------------------------------------------------------- */

static void shard_fill_facts(const struct shard_facts *facts, char texts[FACT_COUNT][FACT_SIZE],
                             struct safetensors_fact ret_facts[FACT_COUNT])
{
    const struct {
        const char *key;
        int64_t number;
    } numbers[] = {
        {"generation", (int64_t)facts->generation},
        {"round", (int64_t)facts->round},
        {"step", facts->step},
        {"rank", (int64_t)facts->rank},
        {"world_size", (int64_t)facts->world_size},
        {"total_run_calls", facts->total_run_calls},
        {"epoch", facts->epoch},
        {"step_in_epoch", facts->step_in_epoch},
        {"data_position", facts->data_position},
    };
    size_t n = 0;

    ret_facts[n++] =
        (struct safetensors_fact){"muster_shard", "1"}; /* the version of these facts */
    ret_facts[n++] = (struct safetensors_fact){"job", facts->job};
    ret_facts[n++] = (struct safetensors_fact){"layout", wire_layout_name(facts->layout)};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++, n++) {
        snprintf(texts[n], FACT_SIZE, "%" PRId64, numbers[i].number);
        ret_facts[n] = (struct safetensors_fact){numbers[i].key, texts[n]};
    }
    snprintf(texts[n], FACT_SIZE, "%016" PRIx64, facts->incarnation);
    ret_facts[n] = (struct safetensors_fact){"incarnation", texts[n]};
}

/* One rank's part would be all that such a checkpoint has. */
static enum muster_status shard_check_splits(const struct shard_facts *facts,
                                             const struct muster_state *state,
                                             struct muster_error *err)
{
    for (size_t i = 0; facts->layout == LAYOUT_REPLICATED && i < state->count; i++) {
        const struct state_item *item = &state->items[i];

        if (item->split.is && item->shape[item->split.axis] != item->split.global_count)
            return error_set(err, MUSTER_E_SAVE,
                             "tensor \"%s\" is split among the ranks, and layout replicated saves "
                             "one rank's state only; use layout sharded",
                             item->name);
    }
    return facts->layout == LAYOUT_REPLICATED ? state_refuse_own(state, MUSTER_E_SAVE, err)
                                              : MUSTER_OK;
}

enum muster_status shard_save_state(const char *round_dir, const struct shard_facts *facts,
                                    const struct muster_state *state,
                                    struct safetensors_watch *watch, struct shard_files *ret_files,
                                    struct muster_error *err)
{
    struct safetensors_fact list[FACT_COUNT];
    char texts[FACT_COUNT][FACT_SIZE];
    char checksum[MANIFEST_CHECKSUM_SIZE];
    char path[FS_PATH_MAX];
    char name[DIR_NAME_SIZE + sizeof DIR_SHARD_SUFFIX];
    struct shard_files files = {0};
    uint64_t bytes;
    enum muster_status status;

    status = shard_check_splits(facts, state, err);
    if (status != MUSTER_OK)
        return status;
    dir_shard_name(facts->rank, facts->incarnation, name);
    memcpy(name + strlen(name), DIR_SHARD_SUFFIX, sizeof DIR_SHARD_SUFFIX);
    shard_fill_facts(facts, texts, list);
    status = fs_path(path, err, "%s/%s", round_dir, name);
    if (status == MUSTER_OK)
        status = safetensors_save(path, state, list, FACT_COUNT, watch, facts->checksum, &bytes,
                                  checksum, err);
    if (status != MUSTER_OK)
        return status; /* nothing of ours is there */
    status = fs_sync_dir(round_dir, err);
    files.files = calloc(1, sizeof *files.files);
    if (status == MUSTER_OK &&
        (files.files == NULL || !shard_files_add(&files, name, bytes, checksum)))
        status = error_set(err, MUSTER_E_NOMEM, "no memory to report the shard %.600s", path);
    if (status != MUSTER_OK) {
        shard_files_clear(&files);
        unlink(path);
        return shard_as_save(status, err);
    }
    *ret_files = files;
    return MUSTER_OK;
}

/* --- the user's own save_fn ---------------------------------------------------------------- */

enum muster_status shard_dir_begin(const char *round_dir, uint64_t rank, uint64_t incarnation,
                                   char ret_dir[FS_PATH_MAX], struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char name[DIR_NAME_SIZE];
    enum muster_status status;

    dir_shard_name(rank, incarnation, name);
    status = fs_path(path, err, "%s/%s", round_dir, name);
    if (status != MUSTER_OK)
        return status;
    if (mkdir(path, 0777) != 0)
        return fs_fail(err, errno == EEXIST ? MUSTER_E_EXISTS : MUSTER_E_SAVE, errno,
                       "create the shard directory", path);
    return fs_path(ret_dir, err, "%s", path);
}

static bool shard_seal_went(uint64_t bytes, void *arg)
{
    struct safetensors_watch *watch = arg;

    atomic_fetch_add(&watch->bytes, bytes);
    return !safetensors_is_stopped(watch);
}

static enum muster_status shard_sum_up(const char *dir, const char *name,
                                       const struct fs_list *list, const struct fs_watcher *watcher,
                                       enum checksum_kind kind, struct shard_files *files,
                                       struct muster_error *err)
{
    char path[FS_PATH_MAX];
    char reported[FS_PATH_MAX];
    char checksum[MANIFEST_CHECKSUM_SIZE];
    uint64_t bytes;
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; i < list->count && status == MUSTER_OK; i++) {
        status = fs_path(path, err, "%s/%s", dir, list->paths[i]);
        if (status == MUSTER_OK)
            status = fs_path(reported, err, "%s/%s", name, list->paths[i]);
        if (status != MUSTER_OK)
            return status;
        if (!manifest_path_ok(reported) || state_name_problem(reported) != NULL)
            return error_set(
                err, MUSTER_E_UNSUPPORTED,
                "the file name %.600s cannot be in a manifest: at most %d bytes of UTF-8 "
                "with the shard's name, no control character or backslash; rename it",
                path, FILE_PATH_MAX);
        status = checksum_file(path, kind, watcher, &bytes, checksum, err);
        if (status == MUSTER_OK && !shard_files_add(files, reported, bytes, checksum))
            status = error_set(err, MUSTER_E_NOMEM, "no memory to report the shard %.600s", dir);
    }
    return status;
}

enum muster_status shard_dir_seal(const char *round_dir, uint64_t rank, uint64_t incarnation,
                                  struct safetensors_watch *watch, enum checksum_kind kind,
                                  struct shard_files *ret_files, struct muster_error *err)
{
    const struct fs_watcher watching = {shard_seal_went, watch};
    const struct fs_watcher *watcher = watch != NULL ? &watching : NULL;
    char dir[FS_PATH_MAX];
    char name[DIR_NAME_SIZE];
    struct fs_list list = {0};
    struct shard_files files = {0};
    enum muster_status status;

    dir_shard_name(rank, incarnation, name);
    status = fs_path(dir, err, "%s/%s", round_dir, name);
    if (status == MUSTER_OK)
        status = fs_walk(dir, watcher, &list, err);
    if (status == MUSTER_OK) {
        files.files = calloc(list.count + 1, sizeof *files.files);
        status = files.files == NULL
                     ? error_set(err, MUSTER_E_NOMEM, "no memory to report the shard %.600s", dir)
                     : shard_sum_up(dir, name, &list, watcher, kind, &files, err);
    }
    if (status == MUSTER_OK)
        status = fs_sync_dir(round_dir, err);
    fs_list_clear(&list);
    if (status != MUSTER_OK) {
        shard_files_clear(&files);
        shard_discard(round_dir, rank, incarnation);
        return shard_as_save(status, err);
    }
    *ret_files = files;
    return MUSTER_OK;
}
