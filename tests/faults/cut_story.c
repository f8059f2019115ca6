/* cut_story - see cut_story.h. What must be there after a power cut is in cut_story_after.c. */
#include "tests/faults/cut_story.h"

#include "tests/faults/cut_story_internal.h"
#include "tests/faults/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CUT_TOLD_SINCE 2
#define SEED_AGAIN 1000

static const char own_file[] = "what save_fn wrote";

void cut_story_wrong(struct cut_story *story, const char *what, uint64_t round,
                     const struct muster_error *err)
{
    if (story->wrong[0] == '\0')
        snprintf(story->wrong, sizeof story->wrong, "round %" PRIu64 ": %s%s%.1000s", round, what,
                 err == NULL ? "" : ": ", err == NULL ? "" : err->text);
}

int64_t cut_story_step(uint64_t round)
{
    return 12 * (int64_t)round;
}

static uint64_t incarnation_of(uint64_t rank, uint64_t round)
{
    return 0xabc000 + 16 * round + rank;
}

/* --- the steps -------------------------------------------------------------------------------- */

typedef enum muster_status step_fn(struct cut_story *story, uint64_t round,
                                   struct muster_error *err);

static enum muster_status prepare(struct cut_story *story, uint64_t round, struct muster_error *err)
{
    (void)round;
    return dir_prepare(story->root, CUT_JOB, NULL, err);
}

static enum muster_status open_round(struct cut_story *story, uint64_t round,
                                     struct muster_error *err)
{
    return dir_round_open(story->root, CUT_JOB, 1, round, CUT_NONCE, story->rounds[round].dir, err);
}

static enum muster_status save_default(struct cut_story *story, uint64_t round,
                                       struct muster_error *err)
{
    const struct shard_facts facts = {.job = CUT_JOB,
                                      .generation = 1,
                                      .round = round,
                                      .step = cut_story_step(round),
                                      .layout = LAYOUT_SHARDED,
                                      .incarnation = incarnation_of(0, round),
                                      .world_size = 2,
                                      .total_run_calls = cut_story_step(round),
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1};

    story->number = cut_story_step(round);
    for (size_t i = 0; i < CUT_FLOATS; i++)
        story->floats[i] = (float)(i + round);
    return shard_save_state(story->rounds[round].dir, &facts, story->state, NULL,
                            &story->rounds[round].files[0], err);
}

/* As a save_fn writes: it syncs nothing. */
static bool write_own(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool good = fd >= 0 && write(fd, own_file, sizeof own_file) == (ssize_t)sizeof own_file;

    return close(fd) == 0 && good;
}

static enum muster_status save_own(struct cut_story *story, uint64_t round,
                                   struct muster_error *err)
{
    struct cut_round *r = &story->rounds[round];
    char dir[FS_PATH_MAX];
    enum muster_status status = shard_dir_begin(r->dir, 1, incarnation_of(1, round), dir, err);

    if (status != MUSTER_OK)
        return status;
    if (!write_own(scratch_path(dir, "a")) || mkdir(scratch_path(dir, "b"), 0777) != 0 ||
        !write_own(scratch_path(dir, "b/c")))
        cut_story_wrong(story, "save_fn could not write", round, NULL);
    return shard_dir_seal(r->dir, 1, incarnation_of(1, round), NULL, CHECKSUM_XXH3, &r->files[1],
                          err);
}

static enum muster_status commit(struct cut_story *story, uint64_t round, struct muster_error *err)
{
    struct cut_round *r = &story->rounds[round];

    return dir_commit_as(story->root, NULL, r->text, r->size, r->path, err);
}

static enum muster_status remove_aborted(struct cut_story *story, uint64_t round,
                                         struct muster_error *err)
{
    return dir_remove_round(story->root, CUT_JOB, 1, round, CUT_NONCE, err);
}

static enum muster_status delete_it(struct cut_story *story, uint64_t round,
                                    struct muster_error *err)
{
    return cut_story_delete(story, round, err);
}

/* --- the story -------------------------------------------------------------------------------- */

static void render(struct cut_story *story, uint64_t round)
{
    struct cut_round *r = &story->rounds[round];
    struct manifest_shard shards[2];
    struct muster_error err = {0};
    const struct manifest manifest = {.job = CUT_JOB,
                                      .generation = 1,
                                      .round = round,
                                      .step = cut_story_step(round),
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 2,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = cut_story_step(round),
                                      .created_unix_ms = 1,
                                      .cause = "operator",
                                      .shards = shards,
                                      .shard_count = 2};

    for (uint64_t rank = 0; rank < 2; rank++)
        shards[rank] = (struct manifest_shard){rank, incarnation_of(rank, round),
                                               r->files[rank].files, r->files[rank].count};
    if (manifest_render(&manifest, &r->text, &r->size, &err) != MUSTER_OK)
        cut_story_wrong(story, "no manifest", round, &err);
}

/* What a death left is told behind the next two steps, or not at all. */
static void told(struct cut_story *story)
{
    if (story->over)
        return;
    disk_log_told(story->log, &story->told, sizeof story->told);
    story->over = story->died && ++story->told_since == CUT_TOLD_SINCE;
}

static enum muster_status once(struct cut_story *story, step_fn *step, uint64_t round,
                               struct muster_error *err)
{
    enum muster_status status;

    file_calls_begin();
    status = step(story, round, err);
    file_calls_end();
    return status;
}

/* From one call on, all fail. The next process finds what is there. */
static void die_in(struct cut_story *story, step_fn *fn, uint64_t round)
{
    const struct cut_death *death = &story->death;

    file_calls_plan(FILE_CALL_ANY, EIO, death->at, true);
    (void)once(story, fn, round, NULL);
    story->died = file_calls_hits() > 0;
    story->fits =
        story->died && (death->path == NULL ||
                        scratch_exists(scratch_path(story->dir, "%s", death->path)) != death->gone);
    file_calls_plan(FILE_CALL_ANY, 0, 0, false);
    disk_log_scene(story->log, CUT_AGAIN);
    file_calls_random(story->seed + SEED_AGAIN);
}

/* What the other process does, and when. */
struct cut_other {
    struct cut_story *story;
    step_fn *fn;
    uint64_t round, changes;
};

static void see_and_overtake(void *arg, const struct file_calls_seen *call)
{
    struct cut_other *other = arg;
    struct cut_story *story = other->story;
    struct muster_error err = {0};

    disk_log_see(story->log, call);
    if (++other->changes != story->death.at || story->died)
        return;
    story->died = true;
    disk_log_scene(story->log, CUT_AGAIN);
    if (once(story, other->fn, other->round, &err) != MUSTER_OK)
        cut_story_wrong(story, "the process that was quicker", other->round, &err);
    disk_log_scene(story->log, story->death.step);
}

static enum muster_status be_overtaken(struct cut_story *story, step_fn *fn, uint64_t round,
                                       struct muster_error *err)
{
    struct cut_other other = {story, fn, round, 0};
    enum muster_status status;

    file_calls_watch(see_and_overtake, &other);
    status = once(story, fn, round, err);
    file_calls_watch(disk_log_see, story->log);
    return status;
}

static void step(struct cut_story *story, const char *name, step_fn *fn, uint64_t round)
{
    const bool here =
        story->death.step != NULL && strcmp(story->death.step, name) == 0 && !story->died;
    struct muster_error err = {0};
    enum muster_status status;

    if (story->over)
        return;
    disk_log_scene(story->log, name);
    file_calls_random(++story->seed);
    if (here && !story->death.overtaken)
        die_in(story, fn, round);
    status = here && story->death.overtaken ? be_overtaken(story, fn, round, &err)
                                            : once(story, fn, round, &err);
    if (status != MUSTER_OK)
        cut_story_wrong(story, name, round, &err);
}

static void save(struct cut_story *story, uint64_t round)
{
    struct cut_round_told *to = &story->told.rounds[round];

    if (story->over)
        return;
    to->opened = true;
    told(story);
    step(story, "open", open_round, round);
    if (!story->died) /* it would make up for what the first did not do */
        step(story, "open by rank 1", open_round, round);
    step(story, "save", save_default, round);
    to->saved[0] = true;
    told(story);
    step(story, "save_fn", save_own, round);
    to->saved[1] = true;
    told(story);
    if (!story->over)
        render(story, round);
}

static void save_and_commit(struct cut_story *story, uint64_t round)
{
    save(story, round);
    step(story, "commit", commit, round);
    story->told.rounds[round].named = true;
    told(story);
}

static void delete (struct cut_story *story, const char *name, uint64_t round)
{
    story->told.rounds[round].deleting = true;
    told(story);
    step(story, name, delete_it, round);
    story->told.rounds[round].deleted = true;
    told(story);
}

static void tell(struct cut_story *story)
{
    step(story, "prepare", prepare, 0);
    story->told.prepared = true;
    story->told.number = dir_number(story->root);
    told(story);
    save_and_commit(story, 1);
    save(story, 2);
    story->told.rounds[2].aborted = true;
    told(story);
    step(story, "remove", remove_aborted, 2);
    story->told.rounds[2].removed = true;
    told(story);
    save_and_commit(story, 3);
    delete (story, "delete", 1);
    delete (story, "move to a folder", 3);
}

void cut_story_tell(struct cut_story *story, const char *dir, const struct cut_death *death)
{
    const int64_t shape[1] = {CUT_FLOATS};

    memset(story, 0, sizeof *story);
    snprintf(story->dir, sizeof story->dir, "%s", dir);
    snprintf(story->root, sizeof story->root, "%s/a/checkpoints", dir);
    if (death != NULL)
        story->death = *death;
    if (muster_state_create(&story->state, NULL) != MUSTER_OK ||
        muster_state_add_i64(story->state, "number", &story->number, NULL) != MUSTER_OK ||
        muster_state_add_tensor(story->state, "floats", MUSTER_DTYPE_F32, shape, 1, story->floats,
                                NULL) != MUSTER_OK)
        abort();
    story->log = disk_log_create(dir);
    file_calls_plan(FILE_CALL_ANY, 0, 0, false);
    tell(story);
    file_calls_random(0);
}

void cut_story_end(struct cut_story *story)
{
    for (size_t i = 0; i < CUT_ROUNDS; i++) {
        shard_files_clear(&story->rounds[i].files[0]);
        shard_files_clear(&story->rounds[i].files[1]);
        free(story->rounds[i].text);
        story->rounds[i].text = NULL;
    }
    muster_state_destroy(&story->state);
    disk_log_destroy(&story->log);
}
