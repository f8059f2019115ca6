/* A committed checkpoint's directory goes away: removed, or into a folder of the user's; and never what
 * belongs to another, whatever its name. */
#include "node/shard/dir_delete.h"
#include "tests/unit/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
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
    assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 1); /* JOB */
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
    dir_final_name(d.step, d.generation, d.round, true, name);
    assert_true(scratch_exists(scratch_path(f->root, "old/%s/manifest.json", name)));
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

/* Killed at any point of it, nothing is left that has the checkpoint's name and is not whole; the next
 * start of the job clears the rest. */
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
        shard_job_must(dir_prepare(f->root, JOB, &err), &err);
        assert_int_equal(scratch_count(scratch_path(f->root, ".muster")), 1); /* JOB */
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        TEST(it_is_removed_and_may_be_told_again),
        TEST(it_is_found_without_its_path),
        TEST(it_is_moved_into_the_users_folder),
        TEST(what_is_anothers_stays),
        TEST(a_crash_leaves_all_of_it_or_nothing_that_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
