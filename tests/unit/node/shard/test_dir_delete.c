/* A committed checkpoint's directory goes away: removed, or into a folder of the user's; and never
 * what belongs to another, whatever its name. */
#include "node/shard/dir_delete.h"
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct dir_deletion deletion(const struct shard_job *f)
{
    return (struct dir_deletion){.root = f->root,
                                 .job = JOB,
                                 .generation = f->manifest.generation,
                                 .round = f->manifest.round,
                                 .step = f->manifest.step,
                                 .path = f->path,
                                 .trash = ""};
}

static void committed(struct shard_job *f)
{
    struct muster_error err = {0};

    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
}

static void it_is_removed_and_may_be_told_again(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;

    committed(f);
    d = deletion(f);
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    assert_int_equal(scratch_count(f->root), 1);                          /* .muster */
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 2); /* JOB, NUMBER */
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    d.path = "";
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
}

static void it_is_found_without_its_path(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;

    committed(f);
    d = deletion(f);
    d.path = "/where/it/was/mounted/before/12";
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    assert_int_equal(scratch_count(f->root), 1);
}

/* A rename from one file system to another fails. */
static void one_in_a_directory_that_the_job_left_is_removed_there(void **state)
{
    static const char *const trashes[] = {"", "old"};
    struct shard_job *f = *state;
    struct muster_error err = {0};
    char present[FS_PATH_MAX];

    shard_job_must(fs_path(present, &err, "%s/present", f->root), &err);
    for (size_t i = 0; i < 2; i++) {
        committed(f);
        assert_int_equal(mkdir(present, 0777), 0);
        struct dir_deletion d = deletion(f);
        d.root = present;
        d.trash = trashes[i];
        shard_job_must(dir_delete_checkpoint(&d, &err), &err);
        assert_false(scratch_exists(f->path));
        assert_int_equal(rmdir(present), 0); /* it is empty */
    }
    assert_int_equal(scratch_count(scratch_path(f->root, "old")), 1);
}

static void it_is_moved_into_the_users_folder(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;

    committed(f);
    d = deletion(f);
    d.trash = "old";
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    assert_false(scratch_exists(f->path));
    char name[DIR_NAME_SIZE];
    dir_final_name(NULL, d.step, d.generation, d.round, true, name);
    assert_true(scratch_exists(scratch_path(f->root, "old/%s/manifest.json", name)));
}

/* Its folder was made beside the job's directory. */
static void a_directory_that_is_called_as_the_hidden_one_is_a_directory(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;
    char root[FS_PATH_MAX], path[FS_PATH_MAX];

    committed(f);
    shard_job_must(fs_path(root, &err, "%s", scratch_path(f->root, "in/.muster")), &err);
    shard_job_must(fs_path(path, &err, "%s%s", root, strrchr(f->path, '/')), &err);
    assert_int_equal(mkdir(scratch_path(f->root, "in"), 0777), 0);
    assert_int_equal(mkdir(root, 0777), 0);
    assert_int_equal(mkdir(scratch_path(root, ".muster"), 0777), 0);
    assert_int_equal(rename(f->path, path), 0);
    d = deletion(f);
    d.root = root;
    d.path = path;
    d.trash = "old";
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    assert_false(scratch_exists(path));
    assert_int_equal(scratch_count(scratch_path(root, "old")), 1);
    assert_int_equal(scratch_count(scratch_path(f->root, "in")), 1);
}

/* The folder outlived the job's records, whose numbers began again. */
static void one_of_its_name_in_the_users_folder_stays_beside_it(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;

    for (int i = 1; i <= 3; i++) {
        committed(f);
        d = deletion(f);
        d.trash = "old";
        shard_job_must(dir_delete_checkpoint(&d, &err), &err);
        assert_false(scratch_exists(f->path));
        assert_int_equal(scratch_count(scratch_path(f->root, "old")), i);
    }
}

/* Told again after it is gone: what says it is the same round is of records that were lost, and was
 * not imported. */
static void another_life_of_its_round_stays(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;
    char other[FS_PATH_MAX], plain[DIR_NAME_SIZE];

    for (size_t i = 0; i < 2; i++) {
        committed(f);
        d = deletion(f);
        shard_job_must(dir_delete_checkpoint(&d, &err), &err);
        committed(f);
        dir_final_name(NULL, d.step, d.generation, d.round, true, plain);
        shard_job_must(fs_path(other, &err, "%s/%s", f->root, i == 0 ? "old_life" : plain), &err);
        assert_int_equal(rename(f->path, other), 0);
        shard_job_must(dir_delete_checkpoint(&d, &err), &err);
        assert_true(scratch_exists(scratch_path(other, "manifest.json")));
        shard_job_must(fs_remove_tree(other, &err), &err);
    }
}

/* R12.7 */
static void one_without_its_round_file_is_known_by_its_manifest(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;

    committed(f);
    assert_int_equal(unlink(scratch_path(f->path, "ROUND")), 0);
    d = deletion(f);
    d.step++; /* the same path, another checkpoint */
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    assert_true(scratch_exists(f->path));
    d.step--;
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    assert_false(scratch_exists(f->path));
    assert_int_equal(scratch_count(f->root), 1);
}

/* Whose deletion is answered: it is gone, or it could not be told what it is (R11.9). */
static void a_damaged_round_file_makes_no_deletion_of_what_stays(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    const char *path, *manifest;
    size_t size;
    char *text;

    committed(f);
    path = scratch_path(f->path, "ROUND");
    manifest = scratch_path(f->path, "manifest.json");
    text = scratch_read(path, &size);
    scratch_write(manifest, "{", 1); /* nothing else tells, either */
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct dir_deletion d = deletion(f);

        text[bit / 8] ^= (char)(1 << bit % 8);
        scratch_write(path, text, size);
        text[bit / 8] ^= (char)(1 << bit % 8);
        if (dir_delete_checkpoint(&d, &err) != MUSTER_E_CORRUPT)
            fail_msg("bit %zu of byte %zu", bit % 8, bit / 8);
        assert_true(scratch_exists(manifest));
    }
    free(text);
    scratch_write(manifest, f->text, f->text_size);
    struct dir_deletion d = deletion(f);
    scratch_write(path, "muster", 6);
    shard_job_must(dir_delete_checkpoint(&d, &err), &err); /* its manifest tells */
    assert_false(scratch_exists(f->path));
}

static void what_is_anothers_stays(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct dir_deletion d;

    committed(f);
    d = deletion(f);
    d.round++; /* the same path, another round */
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    d = deletion(f);
    d.job = "another";
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    d = deletion(f);
    d.generation++;
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    shard_job_assert_restores(f, 0, 0);
}

/* --- a hand that was frozen ------------------------------------------------------------------- */

static const char *becomes_another; /* this directory, before the next rename */

/* In the C library's place: between the proof and the rename lies any time. */
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (becomes_another != NULL && strcmp(from, becomes_another) == 0) {
        FILE *file = fopen(scratch_path(becomes_another, "ROUND"), "we");
        assert_non_null(file);
        assert_true(fputs("muster_round 1\njob " JOB
                          "\ngeneration 9\nround 99\nnonce 0000000000000001\n",
                          file) >= 0);
        assert_int_equal(fclose(file), 0);
        becomes_another = NULL;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

/* R12.7 */
static void what_took_its_name_meanwhile_is_put_back(void **state)
{
    static const char *const trashes[] = {"", "old"};
    struct shard_job *f = *state;
    struct muster_error err = {0};

    for (size_t i = 0; i < 2; i++) {
        f->manifest.round++;
        f->manifest.step++;
        committed(f);
        struct dir_deletion d = deletion(f);
        d.trash = trashes[i];
        becomes_another = f->path;
        assert_int_equal(dir_delete_checkpoint(&d, &err), MUSTER_E_IO);
        assert_non_null(strstr(err.text, "another checkpoint"));
        assert_true(scratch_exists(scratch_path(f->path, "manifest.json")));
        shard_job_must(dir_delete_checkpoint(&d, &err), &err); /* told again: it is gone */
        assert_true(scratch_exists(scratch_path(f->path, "manifest.json")));
    }
}

/* It died in between: the next start does not take it for what was to be removed. */
static void another_in_the_trash_is_not_cleared(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    char trash[FS_PATH_MAX];

    committed(f);
    shard_job_must(fs_path(trash, &err, "%s/.muster/trash-8-88-0123456789abcdef", f->root), &err);
    assert_int_equal(rename(f->path, trash), 0);
    shard_job_must(dir_prepare(f->root, JOB, NULL, &err), &err);
    assert_true(scratch_exists(scratch_path(trash, "manifest.json")));
}

static void what_cannot_be_looked_at_is_not_gone(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct rlimit all, none;
    struct dir_deletion d;

    committed(f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = all;
    none.rlim_cur = 0;
    for (int known = 0; known < 2; known++) {
        d = deletion(f);
        d.path = known ? f->path : "";
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        enum muster_status status = dir_delete_checkpoint(&d, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
        assert_int_equal(status, MUSTER_E_IO);
    }
    d.step++; /* found by the scan alone */
    d.path = "";
    shard_job_must(dir_delete_checkpoint(&d, &err), &err);
    assert_false(scratch_exists(f->path));
}

/* Killed at any point of it, nothing is left that has the checkpoint's name and is not whole; the
 * next start of the job clears the rest (R12.7). */
static void a_crash_leaves_all_of_it_or_nothing_that_lists(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};

    for (useconds_t after_us = 0; after_us <= 400; after_us += 40) {
        f->manifest.round++;
        f->manifest.step++;
        committed(f);
        struct dir_deletion d = deletion(f);
        pid_t child = fork();
        if (child == 0)
            _exit(dir_delete_checkpoint(&d, NULL) == MUSTER_OK ? 0 : 1);
        assert_true(child > 0);
        usleep(after_us); /* the point is any: each outcome is checked alike */
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        if (scratch_exists(f->path))
            shard_job_assert_restores(f, 0, 0);
        shard_job_must(dir_delete_checkpoint(&d, &err), &err);
        assert_false(scratch_exists(f->path));
        shard_job_must(dir_prepare(f->root, JOB, NULL, &err), &err);
        assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 2); /* JOB, NUMBER */
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        TEST(it_is_removed_and_may_be_told_again),
        TEST(it_is_found_without_its_path),
        TEST(one_in_a_directory_that_the_job_left_is_removed_there),
        TEST(it_is_moved_into_the_users_folder),
        TEST(a_directory_that_is_called_as_the_hidden_one_is_a_directory),
        TEST(one_of_its_name_in_the_users_folder_stays_beside_it),
        TEST(another_life_of_its_round_stays),
        TEST(one_without_its_round_file_is_known_by_its_manifest),
        TEST(a_damaged_round_file_makes_no_deletion_of_what_stays),
        TEST(what_is_anothers_stays),
        TEST(what_took_its_name_meanwhile_is_put_back),
        TEST(another_in_the_trash_is_not_cleared),
        TEST(what_cannot_be_looked_at_is_not_gone),
        TEST(a_crash_leaves_all_of_it_or_nothing_that_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
