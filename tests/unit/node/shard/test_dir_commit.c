/* The commit of a round's shards: its names, what a crash between any two of its steps leaves, what
 * stops it, and what an abort removes. */
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- commit -------------------------------------------------------------------------------- */

static void commit_names_the_directory_after_its_step(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    size_t size;
    char *text;

    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    assert_string_equal(f->path, scratch_path(f->root, "12"));
    text = scratch_read(scratch_path(f->path, "manifest.json"), &size);
    assert_int_equal(size, f->text_size);
    assert_memory_equal(text, f->text, size);
    free(text);
    assert_int_equal(scratch_count(f->path), WORLD + 2);                  /* ROUND, manifest.json */
    assert_int_equal(scratch_count(f->root), 2);                          /* .muster, 12 */
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 2); /* JOB, NUMBER */
    for (uint64_t rank = 0; rank < WORLD; rank++)
        shard_job_assert_restores(f, rank, (int64_t)rank);
}

/* Every state in which a crash can leave a commit; dir_commit must come to the same end from each.
 */
static void commit_is_finished_from_every_crash_point(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    const char *final;

    for (int point = 0; point < 7; point++) {
        f->manifest.round = 10 + (uint64_t)point;
        f->manifest.step = 100 + point;
        shard_job_write_round(f);
        final = scratch_path(f->root, "%d", 100 + point);
        if (point == 1) /* died while writing the temporary file */
            scratch_write(scratch_path(f->root, ".muster/tmp-00"), f->text, 3);
        if (point >= 2) /* died after the manifest was in place */
            shard_job_must(dir_commit_manifest(f->root, &f->manifest, f->text, f->text_size, &err),
                           &err);
        if (point == 3) /* a disk that lost the tail of a file it had not been told to sync */
            scratch_cut(scratch_path(f->round_dir, "manifest.json"), 10);
        if (point >= 4) /* died after the rename */
            assert_int_equal(rename(f->round_dir, final), 0);
        if (point == 5) /* and the manifest did not survive */
            assert_int_equal(unlink(scratch_path(final, "manifest.json")), 0);
        if (point == 6) /* a straggler opened the round once more, too late */
            assert_int_equal(dir_round_open(f->root, JOB, 1, 16, NONCE, f->round_dir, NULL), 0);
        memset(f->path, 0, sizeof f->path);
        shard_job_must(shard_job_commit(f, &err), &err);
        assert_string_equal(f->path, final);
        shard_job_must(shard_job_commit(f, &err), &err); /* and again */
        assert_string_equal(f->path, final);
        shard_job_assert_restores(f, 1, 1);
    }
}

static void step_that_another_round_has_gets_the_second_name(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    char first[FS_PATH_MAX];

    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    strcpy(first, f->path);
    f->manifest.round = 5;
    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    assert_string_equal(f->path, scratch_path(f->root, "12.1-5"));
    shard_job_must(shard_job_commit(f, &err), &err); /* found again under its second name */
    assert_string_equal(f->path, scratch_path(f->root, "12.1-5"));
    shard_job_assert_restores(f, 0, 0);
    strcpy(f->path, first);
    f->manifest.round = 4;
    shard_job_assert_restores(f, 0, 0); /* the first is as it was */
}

static void directory_of_the_user_with_the_steps_name_is_left_alone(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};

    assert_int_equal(fs_make_dirs(scratch_path(f->root, "12"), NULL), MUSTER_OK);
    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    assert_string_equal(f->path, scratch_path(f->root, "12.1-4"));
    assert_int_equal(scratch_count(scratch_path(f->root, "12")), 0);
    f->manifest.round = 5;
    shard_job_write_round(f);
    scratch_write(scratch_path(f->root, "12.1-5"), "a file", 6);
    assert_int_equal(shard_job_commit(f, &err), MUSTER_E_EXISTS);
    assert_non_null(strstr(err.text, "12.1-5"));
    assert_true(scratch_exists(f->round_dir)); /* nothing is lost */
}

static void missing_or_short_shard_stops_the_commit_and_is_named(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    const char *shard;

    shard_job_write_round(f);
    shard = scratch_path(f->round_dir, "%s", f->files[1].files[0].path);
    scratch_cut(shard, 10);
    assert_int_equal(shard_job_commit(f, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, f->files[1].files[0].path));
    assert_int_equal(unlink(shard), 0);
    assert_int_equal(shard_job_commit(f, &err), MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(err.text, f->files[1].files[0].path));
    assert_int_equal(scratch_count(f->root), 1); /* only .muster */
    assert_int_equal(dir_commit_as(f->root, NULL, "{}", 2, f->path, &err), MUSTER_E_CORRUPT);
}

static void round_is_found_before_and_after_its_commit(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    enum dir_place place = DIR_PLACE_NONE;
    char path[FS_PATH_MAX];

    assert_int_equal(dir_find(f->root, JOB, 1, 4, 12, &place, path, &err), MUSTER_E_NOT_FOUND);
    assert_int_equal(place, DIR_PLACE_NONE);
    shard_job_write_round(f);
    shard_job_must(dir_find(f->root, JOB, 1, 4, 12, &place, path, &err), &err);
    assert_int_equal(place, DIR_PLACE_ROUND);
    assert_string_equal(path, f->round_dir);
    shard_job_must(shard_job_commit(f, &err), &err);
    shard_job_must(dir_find(f->root, JOB, 1, 4, 12, &place, path, &err), &err);
    assert_int_equal(place, DIR_PLACE_FINAL);
    assert_string_equal(path, f->path);
    assert_int_equal(dir_find(f->root, JOB, 1, 44, 12, &place, path, &err), MUSTER_E_NOT_FOUND);
    assert_int_equal(dir_find(f->root, "word", 1, 4, 12, &place, path, &err), MUSTER_E_NOT_FOUND);
}

static void nonce_is_that_of_the_members_in_any_order(void **state)
{
    static const struct wire_member a[] = {{0, 10, MEMBER_FLAG_WRITER}, {1, 11, 0}};
    static const struct wire_member b[] = {{1, 11, 0}, {0, 10, 0}};
    static const struct wire_member c[] = {{0, 11, 0}, {1, 10, 0}};

    (void)state;
    assert_true(wire_round_nonce(a, 2) == wire_round_nonce(b, 2));
    assert_true(wire_round_nonce(a, 2) != wire_round_nonce(c, 2));
    assert_true(wire_round_nonce(a, 2) != wire_round_nonce(a, 1));
    assert_true(wire_round_nonce(a, 0) != 0);
}

static void aborted_round_is_removed_and_a_committed_one_is_not(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};

    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE, NULL), MUSTER_OK); /* none */
    shard_job_write_round(f);
    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE + 1, &err), MUSTER_E_EXISTS);
    assert_int_equal(dir_remove_round(f->root, "other", 1, 4, NONCE, &err), MUSTER_E_EXISTS);
    assert_true(scratch_exists(f->round_dir));
    shard_job_must(dir_remove_round(f->root, JOB, 1, 4, NONCE, &err), &err);
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")),
                     2); /* JOB, NUMBER, no trash */
    shard_job_write_round(f);
    shard_job_must(dir_commit_manifest(f->root, &f->manifest, f->text, f->text_size, &err), &err);
    assert_int_equal(dir_remove_round(f->root, JOB, 1, 4, NONCE, &err), MUSTER_E_EXISTS);
    assert_non_null(strstr(err.text, "manifest"));
    shard_job_must(shard_job_commit(f, &err), &err);
    shard_job_must(dir_remove_round(f->root, JOB, 1, 4, NONCE, &err),
                   &err); /* nothing in .muster */
    shard_job_assert_restores(f, 0, 0);
    f->manifest.round = 5;
    shard_job_write_round(f);
    shard_job_must(dir_remove_round(f->root, JOB, 1, 5, 0, &err), &err); /* of whatever life */
    assert_false(scratch_exists(f->round_dir));
    assert_int_equal(mkdir(scratch_path(f->root, ".muster/1-9"), 0700), 0); /* died unclaimed */
    shard_job_must(dir_remove_round(f->root, JOB, 1, 9, NONCE, &err), &err);
    assert_false(scratch_exists(scratch_path(f->root, ".muster/1-9")));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        T(commit_names_the_directory_after_its_step),
        T(commit_is_finished_from_every_crash_point),
        T(step_that_another_round_has_gets_the_second_name),
        T(directory_of_the_user_with_the_steps_name_is_left_alone),
        T(missing_or_short_shard_stops_the_commit_and_is_named),
        T(round_is_found_before_and_after_its_commit),
        cmocka_unit_test(nonce_is_that_of_the_members_in_any_order),
        T(aborted_round_is_removed_and_a_committed_one_is_not),
    };

    return cmocka_run_group_tests_name("dir_commit", tests, NULL, NULL);
}
