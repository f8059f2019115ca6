/* shard_job - see shard_job.h. */
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

uint64_t shard_job_incarnation(uint64_t rank)
{
    return 0xabc0 + rank;
}

void shard_job_must(enum muster_status status, const struct muster_error *err)
{
    if (status != MUSTER_OK)
        fail_msg("%s: %s", muster_status_name(status), err->text);
}

int shard_job_make(void **state)
{
    struct shard_job *f = calloc(1, sizeof *f);
    struct muster_error err = {0};

    assert_non_null(f);
    scratch_make(f->dir);
    snprintf(f->root, sizeof f->root, "%s", scratch_path(f->dir, "a/b/checkpoints"));
    shard_job_must(dir_prepare(f->root, JOB, NULL, &err), &err);
    shard_job_must(muster_state_create(&f->state, &err), &err);
    shard_job_must(muster_state_add_i64(f->state, "value", &f->value, &err), &err);
    f->manifest = (struct manifest){.job = JOB,
                                    .generation = 1,
                                    .round = 4,
                                    .step = 12,
                                    .layout = LAYOUT_SHARDED,
                                    .world_size = WORLD,
                                    .epoch = 1,
                                    .step_in_epoch = 2,
                                    .data_position = -1,
                                    .total_run_calls = 12,
                                    .created_unix_ms = 1,
                                    .cause = "operator",
                                    .shards = f->shards,
                                    .shard_count = WORLD};
    *state = f;
    return 0;
}

int shard_job_drop(void **state)
{
    struct shard_job *f = *state;

    for (int i = 0; i < WORLD; i++)
        shard_files_clear(&f->files[i]);
    muster_state_destroy(&f->state);
    free(f->text);
    scratch_remove(f->dir);
    free(f);
    return 0;
}

void shard_job_save_rank(struct shard_job *f, uint64_t rank)
{
    struct muster_error err = {0};
    struct shard_facts facts = {.job = JOB,
                                .generation = f->manifest.generation,
                                .round = f->manifest.round,
                                .step = f->manifest.step,
                                .layout = f->manifest.layout,
                                .rank = rank,
                                .incarnation = shard_job_incarnation(rank),
                                .world_size = WORLD,
                                .total_run_calls = 12,
                                .epoch = 1,
                                .step_in_epoch = 2,
                                .data_position = -1,
                                .checksum = f->checksum};

    f->value = f->same ? 5 : (int64_t)rank;
    shard_files_clear(&f->files[rank]);
    shard_job_must(shard_save_state(f->round_dir, &facts, f->state, NULL, &f->files[rank], &err),
                   &err);
}

void shard_job_render(struct shard_job *f)
{
    struct muster_error err = {0};

    for (uint64_t i = 0; i < f->manifest.shard_count; i++)
        f->shards[i] = (struct manifest_shard){i, shard_job_incarnation(i), f->files[i].files,
                                               f->files[i].count};
    free(f->text);
    if (f->key != NULL)
        f->text = signed_text(&f->manifest, f->key, &f->text_size);
    else
        shard_job_must(manifest_render(&f->manifest, &f->text, &f->text_size, &err), &err);
}

void shard_job_write_round(struct shard_job *f)
{
    struct muster_error err = {0};

    for (uint64_t rank = 0; rank < f->manifest.shard_count; rank++) {
        shard_job_must(dir_round_open(f->root, JOB, f->manifest.generation, f->manifest.round,
                                      NONCE, f->round_dir, &err),
                       &err);
        shard_job_save_rank(f, rank);
    }
    shard_job_render(f);
}

enum muster_status shard_job_commit(struct shard_job *f, struct muster_error *err)
{
    return dir_commit_as(f->root, NULL, f->text, f->text_size, f->path, err);
}

struct shard_restore shard_job_request(struct shard_job *f, uint64_t rank)
{
    return (struct shard_restore){.checkpoint_path = f->path,
                                  .job = JOB,
                                  .layout = f->manifest.layout,
                                  .rank = rank,
                                  .world_size = WORLD,
                                  .step = f->manifest.step,
                                  .round = f->manifest.round,
                                  .state = f->state};
}

void shard_job_assert_restores(struct shard_job *f, uint64_t rank, int64_t value)
{
    struct shard_restore r = shard_job_request(f, rank);
    struct muster_error err = {0};

    f->value = -1;
    shard_job_must(shard_restore(&r, NULL, &err), &err);
    assert_int_equal(f->value, value);
}
