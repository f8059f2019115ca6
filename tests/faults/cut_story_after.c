/* cut_story_after - the next launch after a power cut; see cut_story.h.
 * Each check is of a promise: what was told is there without repair, if it was told as whole; a
 * launch repairs the rest; and nothing that counts by its place is torn. */
#include "tests/faults/cut_story.h"

#include "node/shard/dir_delete.h"
#include "node/shard/dir_list.h"
#include "schema/arena.h"
#include "tests/faults/cut_story_internal.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum muster_status verify(const char *path, const struct manifest *manifest,
                                 struct muster_error *err)
{
    enum muster_status status = MUSTER_OK;

    for (size_t i = 0; status == MUSTER_OK && i < manifest->shard_count; i++)
        status = shard_verify(path, &manifest->shards[i], err);
    return status;
}

/* A directory outside .muster whose manifest parses is a whole checkpoint; one that has a manifest
 * has a good one. */
static void check_folder(struct cut_story *story, const char *folder)
{
    struct muster_error err = {0};
    const struct dirent *entry;
    DIR *dir = opendir(folder);

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *path = scratch_path(folder, "%s", entry->d_name);
        struct manifest *manifest = NULL;
        enum muster_status status;

        if (entry->d_name[0] == '.' || !scratch_exists(scratch_path(path, MANIFEST_FILE_NAME)))
            continue;
        status = shard_manifest_read(path, &manifest, &err);
        if (status == MUSTER_OK)
            status = verify(path, manifest, &err);
        if (status != MUSTER_OK)
            cut_story_wrong(story, "what has a manifest is not whole", 0, &err);
        manifest_destroy(&manifest);
    }
    if (dir != NULL)
        closedir(dir);
}

static void check_restores(struct cut_story *story, uint64_t round, const char *path)
{
    struct manifest *manifest = NULL;
    struct muster_error err = {0};
    const struct shard_restore request = {.checkpoint_path = path,
                                          .job = CUT_JOB,
                                          .layout = LAYOUT_SHARDED,
                                          .world_size = 2,
                                          .step = cut_story_step(round),
                                          .round = round,
                                          .state = story->state};
    enum muster_status status = shard_restore(&request, &manifest, &err);

    if (status == MUSTER_OK)
        status = verify(path, manifest, &err);
    if (status != MUSTER_OK)
        cut_story_wrong(story, "a checkpoint is lost", round, &err);
    else if (story->number != cut_story_step(round) || story->floats[1] != (float)(1 + round))
        cut_story_wrong(story, "another state is restored", round, NULL);
    manifest_destroy(&manifest);
}

static void check_shard(struct cut_story *story, uint64_t round, uint64_t rank)
{
    const struct shard_files *files = &story->rounds[round].files[rank];
    const struct manifest_shard shard = {rank, 0, files->files, files->count};
    struct muster_error err = {0};

    if (shard_verify(story->rounds[round].dir, &shard, &err) != MUSTER_OK)
        cut_story_wrong(story, "a shard is lost that was told as saved", round, &err);
}

enum muster_status cut_story_delete(struct cut_story *story, uint64_t round,
                                    struct muster_error *err)
{
    const struct dir_deletion deletion = {.root = story->root,
                                          .job = CUT_JOB,
                                          .generation = 1,
                                          .round = round,
                                          .step = cut_story_step(round),
                                          .path = story->rounds[round].path,
                                          .trash = round == 3 ? CUT_FOLDER : ""};

    return dir_delete_checkpoint(&deletion, err);
}

/* How often the list of the directory has it; anything damaged is wrong. */
static unsigned listed(struct cut_story *story, uint64_t round)
{
    struct muster_error err = {0};
    struct dir_list list;
    struct arena arena;
    unsigned count = 0;

    arena_init(&arena, 0);
    if (dir_list_read_all(story->root, CUT_JOB, &arena, &list, &err) == MUSTER_OK) {
        for (size_t i = 0; i < list.count; i++)
            count += list.items[i].round == round;
        if (list.damaged_count > 0)
            cut_story_wrong(story, "the list has a damaged checkpoint", round, NULL);
        dir_list_free(&list);
    } else if (err.status != MUSTER_E_NOT_FOUND) {
        cut_story_wrong(story, "no list", round, &err);
    }
    arena_free(&arena);
    return count;
}

/* --- before anything is repaired -------------------------------------------------------------- */

static void check_kept(struct cut_story *story, const struct cut_told *told)
{
    check_folder(story, story->root);
    check_folder(story, scratch_path(story->root, CUT_FOLDER));
    if (told->prepared && dir_number(story->root) != told->number)
        cut_story_wrong(story, "the directory's number is another", 0, NULL);
    for (uint64_t n = 1; n < CUT_ROUNDS; n++) {
        const struct cut_round_told *t = &told->rounds[n];

        if (t->named && !t->deleting)
            check_restores(story, n, story->rounds[n].path);
        if (t->saved[0] && !t->named && !t->aborted &&
            !scratch_exists(scratch_path(story->root, "%" PRId64, cut_story_step(n))))
            check_shard(story, n, 0);
        if (t->deleted && listed(story, n) != 0)
            cut_story_wrong(story, "it was told as deleted", n, NULL);
        if (t->deleted && n == 3)
            check_restores(
                story, n,
                scratch_path(story->root, CUT_FOLDER "/%" PRId64 ".1-3", cut_story_step(n)));
    }
}

/* --- the next launch -------------------------------------------------------------------------- */

static void commit_again(struct cut_story *story, uint64_t round)
{
    const struct cut_round *r = &story->rounds[round];
    struct muster_error err = {0};
    char path[FS_PATH_MAX];

    if (dir_commit_as(story->root, NULL, r->text, r->size, path, &err) != MUSTER_OK) {
        cut_story_wrong(story, "a committed round cannot get its name", round, &err);
        return;
    }
    check_folder(story, story->root);
    if (listed(story, round) != 1)
        cut_story_wrong(story, "the list does not have it once", round, NULL);
}

static void remove_again(struct cut_story *story, uint64_t round)
{
    struct muster_error err = {0};
    char path[FS_PATH_MAX];

    if (dir_remove_round(story->root, CUT_JOB, 1, round, CUT_NONCE, &err) != MUSTER_OK)
        cut_story_wrong(story, "an aborted round cannot be removed", round, &err);
    if (dir_round_path(story->root, 1, round, path, NULL) != MUSTER_OK || scratch_exists(path))
        cut_story_wrong(story, "an aborted round is still there", round, NULL);
}

static void delete_again(struct cut_story *story, uint64_t round)
{
    struct muster_error err = {0};

    if (cut_story_delete(story, round, &err) != MUSTER_OK)
        cut_story_wrong(story, "it cannot be deleted", round, &err);
    else if (listed(story, round) != 0)
        cut_story_wrong(story, "it is deleted and still in the list", round, NULL);
}

static void launch(struct cut_story *story, const struct cut_told *told)
{
    struct muster_error err = {0};

    if (told->prepared && dir_prepare(story->root, "another", NULL, NULL) != MUSTER_E_JOB)
        cut_story_wrong(story, "another job got the directory", 0, NULL);
    if (dir_prepare(story->root, CUT_JOB, NULL, &err) != MUSTER_OK)
        cut_story_wrong(story, "the directory cannot be prepared", 0, &err);
    for (uint64_t n = 1; n < CUT_ROUNDS; n++) {
        const struct cut_round_told *t = &told->rounds[n];

        if (!t->opened)
            continue;
        if (t->deleting)
            delete_again(story, n);
        else if (t->saved[0] && t->saved[1] && !t->aborted)
            commit_again(story, n);
        else
            remove_again(story, n);
    }
    check_folder(story, story->root);
}

bool cut_story_survived(void *arg, const void *told)
{
    static const struct cut_told nothing;
    struct cut_story *story = arg;

    story->wrong[0] = '\0';
    check_kept(story, told == NULL ? &nothing : told);
    launch(story, told == NULL ? &nothing : told);
    return story->wrong[0] == '\0';
}
