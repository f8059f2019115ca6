/* One save of a rank, as it is told when the program was interrupted in it. */
#include "node/agent/agent_save.h"
#include "node/shard/dir.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

static int code_of_save_fn;

static int hook(const struct save_order *order, const char *directory, void *arg)
{
    (void)order;
    (void)arg;
    scratch_write(scratch_path(directory, "model"), "m", 1);
    return code_of_save_fn;
}

/* What save_shard says of a save whose program was told to go, and whose save_fn returns `code`. */
static enum muster_status save_interrupted(int code, struct muster_error *err)
{
    char dir[SCRATCH_PATH_MAX];
    struct interrupt interrupt = {.said = true};
    struct safetensors_watch watch = {.interrupt = &interrupt};
    struct save_target target = {.job = "words", .root = dir, .world_size = 1, .hook = hook};
    struct save_order order = {.generation = 1, .round = 1, .nonce = 1, .step = 7, .watch = &watch};
    struct shard_files files = {0};
    enum muster_status status;

    scratch_make(dir);
    assert_int_equal(dir_prepare(dir, "words", NULL, err), MUSTER_OK);
    code_of_save_fn = code;
    status = save_shard(&target, &order, &files, err);
    shard_files_clear(&files);
    scratch_remove(dir);
    return status;
}

static void what_was_broken_off_is_told_as_that(void **state)
{
    struct muster_error err = {0};

    (void)state;
    assert_int_equal(save_interrupted(0, &err), MUSTER_E_SAVE);
    assert_int_equal(err.code, ECANCELED);
    assert_non_null(strstr(err.text, "interrupted while it saved step 7"));
}

/* Another round would fill it again. */
static void a_disk_that_was_full_by_then_is_told_as_full(void **state)
{
    struct muster_error err = {0};

    (void)state;
    assert_int_equal(save_interrupted(ENOSPC, &err), MUSTER_E_SAVE);
    assert_int_equal(err.code, ENOSPC);
    assert_non_null(strstr(err.text, "save_fn returned 28"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_broken_off_is_told_as_that),
        cmocka_unit_test(a_disk_that_was_full_by_then_is_told_as_full),
    };

    return cmocka_run_group_tests_name("agent_save", tests, NULL, NULL);
}
