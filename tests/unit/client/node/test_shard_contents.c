/* Reading a checkpoint without its job: its contents, each tensor with its sums checked, and
 * refusals that name what is wrong. */
#include "node/shard/checksum.h"
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 2 /* of each rank */
static const int64_t whole[] = {WORLD * ROWS, 3};

/* "w" is split over the ranks, "same" is the same in all, and "value" is the rank. */
static struct shard_job *committed(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    double same = 0.25;
    float w[ROWS * 3];

    shard_job_must(muster_state_add_f64(f->state, "same", &same, &err), &err);
    for (uint64_t rank = 0; rank < WORLD; rank++) {
        for (int i = 0; i < ROWS * 3; i++)
            w[i] = (float)(rank * ROWS * 3 + (uint64_t)i);
        shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
        shard_job_must(muster_state_add_split(f->state, "w", MUSTER_DTYPE_F32, whole, 2, 0,
                                              (int64_t)rank * ROWS, ROWS, w, &err),
                       &err);
        shard_job_save_rank(f, rank);
        shard_job_must(muster_state_remove(f->state, "w", &err), &err);
    }
    shard_job_must(muster_state_remove(f->state, "same", &err), &err);
    shard_job_render(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    return f;
}

static struct muster_read_options of_rank(int rank)
{
    struct muster_read_options options = MUSTER_READ_OPTIONS_INIT;

    options.rank = rank;
    return options;
}

static enum muster_status read_f32(const struct shard_job *f, const char *name, int rank,
                                   const int64_t *shape, float *data, struct muster_error *err)
{
    struct muster_read_options options = of_rank(rank);
    muster_state_t *wanted = NULL;
    enum muster_status status;

    shard_job_must(muster_state_create(&wanted, err), err);
    shard_job_must(muster_state_add_tensor(wanted, name, MUSTER_DTYPE_F32, shape, 2, data, err),
                   err);
    status = muster_checkpoint_read(f->path, &options, wanted, err);
    muster_state_destroy(&wanted);
    return status;
}

static enum muster_status read_value(const struct shard_job *f, int rank, int64_t *value,
                                     struct muster_error *err)
{
    struct muster_read_options options = of_rank(rank);
    muster_state_t *wanted = NULL;
    enum muster_status status;

    shard_job_must(muster_state_create(&wanted, err), err);
    shard_job_must(muster_state_add_i64(wanted, "value", value, err), err);
    status = muster_checkpoint_read(f->path, &options, wanted, err);
    muster_state_destroy(&wanted);
    return status;
}

static void assert_holds(const char *json, const char *words)
{
    if (strstr(json, words) == NULL)
        fail_msg("no %s in %s", words, json);
}

static void what_it_holds_is_told_of_all_ranks_and_of_one(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_read_options options = of_rank(2);
    struct muster_error err = {0};
    char *json = NULL;

    shard_job_must(muster_checkpoint_metadata(f->path, NULL, &json, &err), &err);
    assert_holds(json, "\"job\":\"words\"");
    assert_holds(json, "\"step\":12");
    assert_holds(json,
                 "\"w\":{\"dtype\":\"F32\",\"shape\":[6,3],\"ranks\":3,\"bytes\":72,\"axis\":0}");
    assert_holds(json, "\"value\":{\"dtype\":\"I64\",\"shape\":[],\"ranks\":3,\"bytes\":8}");
    assert_holds(json, f->files[1].files[0].path);
    assert_holds(json, f->files[1].files[0].checksum);
    assert_null(strstr(json, "muster.sums"));
    assert_null(strstr(json, "\"shards\""));
    free(json);
    shard_job_must(muster_checkpoint_metadata(f->path, &options, &json, &err), &err);
    assert_holds(json, "\"shape\":[2,3],\"ranks\":1,\"bytes\":24,\"axis\":0,\"begin\":4}");
    assert_null(strstr(json, f->files[1].files[0].path));
    free(json);
}

static void a_tensor_is_read_whole_in_a_part_and_as_a_rank_had_it(void **state)
{
    struct shard_job *f = committed(state);
    const int64_t part[] = {ROWS, 3};
    struct muster_error err = {0};
    float data[WORLD * ROWS * 3];
    muster_state_t *wanted = NULL;
    double same = 0;

    shard_job_must(read_f32(f, "w", -1, whole, data, &err), &err);
    for (int i = 0; i < WORLD * ROWS * 3; i++)
        assert_true(data[i] == (float)i);
    shard_job_must(read_f32(f, "w", 1, part, data, &err), &err);
    for (int i = 0; i < ROWS * 3; i++)
        assert_true(data[i] == (float)(ROWS * 3 + i));
    shard_job_must(muster_state_create(&wanted, &err), &err);
    shard_job_must(muster_state_add_f64(wanted, "same", &same, &err), &err);
    shard_job_must(
        muster_state_add_split(wanted, "w", MUSTER_DTYPE_F32, whole, 2, 0, 3, 2, data, &err), &err);
    shard_job_must(muster_checkpoint_read(f->path, NULL, wanted, &err), &err);
    muster_state_destroy(&wanted);
    assert_true(same == 0.25 && data[0] == 9 && data[5] == 14);
}

static void what_differs_between_ranks_needs_the_rank(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};
    int64_t value = -1;

    assert_int_equal(read_value(f, -1, &value, &err), MUSTER_E_RESTORE);
    assert_holds(err.text, "\"value\" is not split, and differs between the shards of ranks 0");
    assert_int_equal(value, -1);
    for (int rank = 0; rank < WORLD; rank++) {
        shard_job_must(read_value(f, rank, &value, &err), &err);
        assert_int_equal(value, rank);
    }
    assert_int_equal(read_value(f, WORLD, &value, &err), MUSTER_E_NOT_FOUND);
    assert_holds(err.text, "has no shard of rank 3");
}

static void damage(const struct shard_job *f, int rank, long at)
{
    FILE *file = fopen(scratch_path(f->path, "%s", f->files[rank].files[0].path), "r+");

    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fputc('#', file), '#');
    assert_int_equal(fclose(file), 0);
}

static void a_file_is_read_by_its_path_and_its_own_sum(void **state)
{
    struct shard_job *f = committed(state);
    const struct wire_file *file = &f->files[0].files[0];
    struct muster_error err = {0};
    muster_state_t *wanted = NULL;
    unsigned char *bytes = malloc((size_t)file->bytes + 1);
    size_t size;
    char *found = scratch_read(scratch_path(f->path, "%s", file->path), &size);

    assert_non_null(bytes);
    shard_job_must(muster_state_create(&wanted, &err), &err);
    shard_job_must(muster_state_add_blob(wanted, file->path, bytes, (size_t)file->bytes, &err),
                   &err);
    shard_job_must(muster_checkpoint_read(f->path, NULL, wanted, &err), &err);
    assert_memory_equal(bytes, found, size);
    damage(f, 0, -1);
    assert_int_equal(muster_checkpoint_read(f->path, NULL, wanted, &err), MUSTER_E_CORRUPT);
    assert_holds(err.text, "is damaged: its checksum is xxh3-128:");
    shard_job_must(muster_state_remove(wanted, file->path, &err), &err);
    shard_job_must(muster_state_add_blob(wanted, file->path, bytes, (size_t)file->bytes + 1, &err),
                   &err);
    assert_int_equal(muster_checkpoint_read(f->path, NULL, wanted, &err), MUSTER_E_RESTORE);
    assert_holds(err.text, "give one of the same size");
    muster_state_destroy(&wanted);
    free(found);
    free(bytes);
}

/* From the end: the table's two last sums, those of four pieces, and before them the bytes. */
static void damage_is_named_where_it_is_read_and_only_there(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};
    const long sums = (long)(3 + 2) * CHECKSUM_RAW_BYTES;
    float data[WORLD * ROWS * 3];
    char *json = NULL;
    int64_t value;

    damage(f, 1, -sums - 1); /* the last byte of the entries: of "w" */
    assert_int_equal(read_f32(f, "w", -1, whole, data, &err), MUSTER_E_CORRUPT);
    assert_holds(err.text, "is damaged in tensor \"w\"");
    shard_job_must(read_value(f, 1, &value, &err), &err);
    shard_job_must(muster_checkpoint_metadata(f->path, NULL, &json, &err), &err);
    free(json);
    damage(f, 1, -1);
    assert_int_equal(read_value(f, 1, &value, &err), MUSTER_E_CORRUPT);
    assert_int_equal(muster_checkpoint_metadata(f->path, NULL, &json, &err), MUSTER_E_CORRUPT);
    shard_job_must(read_value(f, 0, &value, &err), &err);
}

static void what_is_not_there_is_named(void **state)
{
    struct shard_job *f = committed(state);
    struct muster_error err = {0};
    const int64_t other[] = {5, 3};
    float data[WORLD * ROWS * 3] = {7};
    struct shard_job nowhere = *f;
    char *json = NULL;

    assert_int_equal(read_f32(f, "v", -1, whole, data, &err), MUSTER_E_NOT_FOUND);
    assert_holds(err.text, "\"v\"");
    assert_int_equal(read_f32(f, "w", -1, other, data, &err), MUSTER_E_RESTORE);
    assert_holds(err.text, "\"w\"");
    assert_true(data[0] == 7);
    snprintf(nowhere.path, sizeof nowhere.path, "%s", scratch_path(f->root, "step-000000000099"));
    assert_int_equal(read_f32(&nowhere, "w", -1, whole, data, &err), MUSTER_E_NOT_FOUND);
    assert_holds(err.text, "there is no checkpoint");
    assert_int_equal(muster_checkpoint_metadata(f->root, NULL, &json, &err), MUSTER_E_RESTORE);
    assert_holds(err.text, "is unfinished, or its manifest.json was lost");
    assert_int_equal(remove(scratch_path(f->path, "%s", f->files[2].files[0].path)), 0);
    assert_int_equal(read_f32(f, "w", -1, whole, data, &err), MUSTER_E_CORRUPT);
    assert_holds(err.text, f->files[2].files[0].path);
}

static void wrong_arguments_are_named(void **state)
{
    struct shard_job *f = *state;
    struct muster_read_options options = of_rank(-2), empty = {0};
    struct muster_error err = {0};
    char *json = NULL;

    assert_int_equal(muster_checkpoint_metadata(NULL, NULL, &json, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_checkpoint_metadata("x", NULL, NULL, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_checkpoint_metadata("x", &options, &json, &err), MUSTER_E_ARGUMENT);
    assert_holds(err.text, "rank is -2");
    assert_int_equal(muster_checkpoint_read("x", &empty, f->state, &err), MUSTER_E_ARGUMENT);
    assert_int_equal(muster_checkpoint_read("x", NULL, NULL, &err), MUSTER_E_ARGUMENT);
    assert_null(json);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        T(what_it_holds_is_told_of_all_ranks_and_of_one),
        T(a_tensor_is_read_whole_in_a_part_and_as_a_rank_had_it),
        T(what_differs_between_ranks_needs_the_rank),
        T(a_file_is_read_by_its_path_and_its_own_sum),
        T(damage_is_named_where_it_is_read_and_only_there),
        T(what_is_not_there_is_named),
        T(wrong_arguments_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
