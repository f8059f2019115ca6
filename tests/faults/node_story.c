/* node_story - see node_story.h. */
#include "tests/faults/node_story.h"

#include "node/shard/dir_delete.h"
#include "node/shard/dir_list.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB "words"
#define NONCE 0xfeedu
#define STEP 12
#define TRIES_MAX 3
#define TRASH "old"
#define FLOATS 3000 /* more than one page, less than a chunk */

static const char own_file[] = "what save_fn wrote";

static void wrong(struct node_story *story, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void wrong(struct node_story *story, const char *format, ...)
{
    va_list args;

    if (story->wrong[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(story->wrong, sizeof story->wrong, format, args);
    va_end(args);
}

static uint64_t incarnation_of(uint64_t rank, uint64_t round)
{
    return 0xabc000 + 16 * round + rank;
}

/* --- what must be true at any time ------------------------------------------------------------ */

/* A directory outside .muster that has a manifest is a whole checkpoint. */
static void check_checkpoint(struct node_story *story, const char *path)
{
    struct manifest *manifest = NULL;
    struct muster_error err = {0};
    enum muster_status status = shard_manifest_read(path, &manifest, &err);

    for (size_t i = 0; status == MUSTER_OK && i < manifest->shard_count; i++)
        status = shard_verify(path, &manifest->shards[i], &err);
    if (status != MUSTER_OK)
        wrong(story, "under its final name there is no whole checkpoint: %s", err.text);
    manifest_destroy(&manifest);
}

static void check_folder(struct node_story *story, const char *path)
{
    struct dirent *entry;
    DIR *dir = opendir(path);

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, TRASH) != 0)
            check_checkpoint(story, scratch_path(path, "%s", entry->d_name));
    }
    if (dir != NULL)
        closedir(dir);
}

static void check_root(struct node_story *story)
{
    char moved[SCRATCH_PATH_MAX];

    snprintf(moved, sizeof moved, "%s", scratch_path(story->root, TRASH));
    check_folder(story, story->root);
    check_folder(story, moved); /* what is moved there is whole, too */
}

static void check_error(struct node_story *story, const char *step, enum muster_status status,
                        const struct muster_error *err)
{
    if (status == MUSTER_OK)
        return;
    story->failures++;
    if ((size_t)status < NODE_STORY_STATUSES)
        story->statuses[status]++;
    if (err->status != status || err->text[0] == '\0')
        wrong(story, "%s: %s, told as %s: \"%s\"", step, muster_status_name(status),
              muster_status_name(err->status), err->text);
    if (status == MUSTER_E_FAULT || status == MUSTER_E_ARGUMENT || status == MUSTER_E_JOB)
        wrong(story, "%s: a disk's failure is called %s: %s", step, muster_status_name(status),
              err->text);
}

/* --- the steps -------------------------------------------------------------------------------- */

typedef enum muster_status step_fn(struct node_story *story, struct muster_error *err);

static enum muster_status prepare(struct node_story *story, struct muster_error *err)
{
    return dir_prepare(story->root, JOB, NULL, err);
}

static enum muster_status open_round(struct node_story *story, struct muster_error *err)
{
    return dir_round_open(story->root, JOB, 1, story->round, NONCE, story->round_dir, err);
}

static enum muster_status save_default(struct node_story *story, struct muster_error *err)
{
    const struct shard_facts facts = {.job = JOB,
                                      .generation = 1,
                                      .round = story->round,
                                      .step = STEP,
                                      .layout = LAYOUT_SHARDED,
                                      .rank = 0,
                                      .incarnation = incarnation_of(0, story->round),
                                      .world_size = 2,
                                      .total_run_calls = STEP,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1};

    story->number = STEP;
    shard_files_clear(&story->files[0]);
    return shard_save_state(story->round_dir, &facts, story->state, NULL, &story->files[0], err);
}

/* save_fn's own calls are not ours to fail. */
static enum muster_status save_own(struct node_story *story, struct muster_error *err)
{
    const uint64_t incarnation = incarnation_of(1, story->round);
    char dir[FS_PATH_MAX];
    enum muster_status status = shard_dir_begin(story->round_dir, 1, incarnation, dir, err);

    if (status != MUSTER_OK)
        return status;
    story->end();
    scratch_write(scratch_path(dir, "a"), own_file, sizeof own_file);
    scratch_write(scratch_path(dir, "b"), own_file, 1);
    story->begin();
    shard_files_clear(&story->files[1]);
    return shard_dir_seal(story->round_dir, 1, incarnation, NULL, CHECKSUM_XXH3, &story->files[1],
                          err);
}

static enum muster_status render(struct node_story *story, char **ret_text, size_t *ret_size,
                                 struct muster_error *err)
{
    struct manifest_shard shards[2];
    const struct manifest manifest = {.job = JOB,
                                      .generation = 1,
                                      .round = story->round,
                                      .step = STEP,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 2,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = STEP,
                                      .created_unix_ms = 1,
                                      .cause = "operator",
                                      .shards = shards,
                                      .shard_count = 2};

    for (uint64_t rank = 0; rank < 2; rank++)
        shards[rank] = (struct manifest_shard){rank, incarnation_of(rank, story->round),
                                               story->files[rank].files, story->files[rank].count};
    return manifest_render(&manifest, ret_text, ret_size, err);
}

static enum muster_status commit(struct node_story *story, struct muster_error *err)
{
    char *text = NULL;
    size_t size = 0;
    enum muster_status status = render(story, &text, &size, err);

    if (status == MUSTER_OK)
        status = dir_commit_as(story->root, NULL, text, size, story->path, err);
    free(text);
    return status;
}

static int read_own(void *arg, const struct shard_found *found)
{
    struct node_story *story = arg;
    size_t size;
    char *content;

    story->end();
    content = scratch_read(scratch_path(found->dir, "a"), &size);
    if (found->step != STEP || size != sizeof own_file || memcmp(content, own_file, size) != 0)
        wrong(story, "restore_fn was shown other files");
    free(content);
    story->begin();
    return 0;
}

static struct shard_restore request(struct node_story *story, uint64_t rank)
{
    return (struct shard_restore){.checkpoint_path = story->path,
                                  .job = JOB,
                                  .layout = LAYOUT_SHARDED,
                                  .rank = rank,
                                  .world_size = 2,
                                  .step = STEP,
                                  .round = story->round};
}

static enum muster_status restore_default(struct node_story *story, struct muster_error *err)
{
    struct shard_restore restore = request(story, 0);
    enum muster_status status;

    restore.state = story->state;
    story->number = -7;
    status = shard_restore(&restore, NULL, err);
    if (status == MUSTER_OK && story->number != STEP)
        wrong(story, "restored was %" PRId64, story->number);
    if (status != MUSTER_OK && story->number != -7 &&
        strstr(err->text, "partly overwritten") == NULL)
        wrong(story, "the state was touched, and the error does not say so: %s", err->text);
    return status;
}

static enum muster_status restore_own(struct node_story *story, struct muster_error *err)
{
    struct shard_restore restore = request(story, 1);

    restore.restore_fn = read_own;
    restore.arg = story;
    return shard_restore(&restore, NULL, err);
}

/* A list that leaves one out would let a process alone begin further back. */
static enum muster_status list_it(struct node_story *story, struct muster_error *err)
{
    struct dir_list list;
    struct arena arena;
    enum muster_status status;

    arena_init(&arena, 0);
    status = dir_list_read_all(story->root, JOB, &arena, &list, err);
    if (status == MUSTER_OK) {
        if (list.count != 1 || list.damaged_count != 0 || list.launches[0].step != STEP)
            wrong(story, "the list has %zu whole checkpoints and %zu damaged ones", list.count,
                  list.damaged_count);
        dir_list_free(&list);
    }
    arena_free(&arena);
    return status;
}

static enum muster_status remove_round(struct node_story *story, struct muster_error *err)
{
    return dir_remove_round(story->root, JOB, 1, story->round, NONCE, err);
}

/* What is counted as a checkpoint meanwhile is whole: it goes out of its place before anything of
 * it does. */
static enum muster_status delete_checkpoint(struct node_story *story, struct muster_error *err)
{
    const struct dir_deletion deletion = {.root = story->root,
                                          .job = JOB,
                                          .generation = 1,
                                          .round = story->committed,
                                          .step = STEP,
                                          .path = story->path,
                                          .trash = story->to_trash ? TRASH : ""};

    return dir_delete_checkpoint(&deletion, err);
}

/* --- the story -------------------------------------------------------------------------------- */

static enum muster_status once(struct node_story *story, const char *name, step_fn *step)
{
    struct muster_error err = {0};
    enum muster_status status;

    story->begin();
    status = step(story, &err);
    story->end();
    check_error(story, name, status, &err);
    check_root(story);
    return status;
}

/* Until it succeeds, or until it is told that nobody is there to try again. */
static bool persistently(struct node_story *story, bool patient, const char *name, step_fn *step)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        if (once(story, name, step) == MUSTER_OK)
            return true;
        if (!patient)
            return false;
    }
    wrong(story, "%s failed %d times", name, TRIES_MAX);
    return false;
}

/* "Whatever could not be written whole is gone." */
static void check_no_shard(struct node_story *story, uint64_t rank)
{
    char name[DIR_NAME_SIZE];

    dir_shard_name(rank, incarnation_of(rank, story->round), name);
    if (!story->may_leave &&
        (scratch_exists(scratch_path(story->round_dir, "%s", name)) ||
         scratch_exists(scratch_path(story->round_dir, "%s%s", name, DIR_SHARD_SUFFIX))))
        wrong(story, "the shard of rank %" PRIu64 " could not be saved and is there", rank);
}

/* All shards of one round. A failure is told as SAVE_FAILED: the round is aborted. */
static bool save_all(struct node_story *story)
{
    if (once(story, "dir_round_open", open_round) != MUSTER_OK)
        return false;
    if (once(story, "shard_save_state", save_default) != MUSTER_OK) {
        check_no_shard(story, 0);
        return false;
    }
    if (once(story, "save_fn", save_own) != MUSTER_OK) {
        check_no_shard(story, 1);
        return false;
    }
    return true;
}

static bool save_patiently(struct node_story *story, bool patient)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        story->round++;
        if (save_all(story))
            return true;
        if (!patient)
            return false;
        if (!persistently(story, true, "dir_remove_round", remove_round))
            return false;
    }
    wrong(story, "no round could be saved");
    return false;
}

static bool delete_it(struct node_story *story, bool patient)
{
    story->deleting = true;
    if (!persistently(story, patient, "dir_delete_checkpoint", delete_checkpoint))
        return false;
    if (scratch_exists(story->path))
        wrong(story, "the deleted checkpoint is still there");
    if (story->to_trash && scratch_count(scratch_path(story->root, TRASH)) != 1)
        wrong(story, "the deleted checkpoint is not in its folder");
    return true;
}

bool node_story_tell(struct node_story *story, bool patient)
{
    bool done =
        persistently(story, patient, "dir_prepare", prepare) && save_patiently(story, patient) &&
        (story->saved = true) && persistently(story, patient, "dir_commit", commit) &&
        !(story->saved = false) && (story->committed = story->round) > 0 &&
        persistently(story, patient, "dir_list_read_all", list_it) &&
        persistently(story, patient, "shard_restore", restore_default) &&
        persistently(story, patient, "shard_restore of save_fn", restore_own) &&
        save_patiently(story, patient) &&
        persistently(story, patient, "dir_remove_round", remove_round) && delete_it(story, patient);

    if (done && scratch_exists(story->round_dir))
        wrong(story, "the aborted round is still there");
    if (done && !story->may_leave && story->failures == 0 &&
        scratch_count(scratch_path(story->root, ".muster")) != 2) /* JOB, NUMBER */
        wrong(story, ".muster has leftovers");
    return story->wrong[0] == '\0';
}

bool node_story_resume(struct node_story *story)
{
    if (!persistently(story, true, "dir_prepare", prepare))
        return false;
    if (story->deleting)
        return delete_it(story, true);
    if (!story->saved)
        return true;
    return persistently(story, true, "dir_commit", commit) &&
           persistently(story, true, "shard_restore", restore_default) &&
           persistently(story, true, "shard_restore of save_fn", restore_own);
}

void node_story_begin(struct node_story *story, const char *dir, void (*begin)(void),
                      void (*end)(void))
{
    static float floats[FLOATS];
    const int64_t shape[1] = {FLOATS};

    memset(story, 0, sizeof *story);
    snprintf(story->dir, sizeof story->dir, "%s", dir);
    snprintf(story->root, sizeof story->root, "%s/a/b/checkpoints", dir);
    story->begin = begin;
    story->end = end;
    if (muster_state_create(&story->state, NULL) != MUSTER_OK ||
        muster_state_add_i64(story->state, "number", &story->number, NULL) != MUSTER_OK ||
        muster_state_add_tensor(story->state, "floats", MUSTER_DTYPE_F32, shape, 1, floats, NULL) !=
            MUSTER_OK)
        abort();
}

void node_story_end(struct node_story *story)
{
    shard_files_clear(&story->files[0]);
    shard_files_clear(&story->files[1]);
    muster_state_destroy(&story->state);
}
