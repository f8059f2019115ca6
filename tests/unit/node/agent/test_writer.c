/* The writer's thread: what it reports, and that nothing queued is lost when it is destroyed. */
#include "node/agent/writer.h"

#include "node/shard/shard.h"
#include "schema/manifest/manifest.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_FILES 2000

struct fixture {
    char directory[SCRATCH_PATH_MAX];
    struct writer *writer;
    char order[16]; /* of the results: 'm' a manifest, 'd' a deletion */
    int results;    /* written by the writer's thread; read after writer_destroy has joined it */
    uint64_t checkpoint;
    enum muster_status status;
    char text[FS_PATH_MAX];
};

static struct fixture f;

static void done(const struct writer_result *result, void *arg)
{
    (void)arg;
    if (f.results < (int)sizeof f.order - 1)
        f.order[f.results] = result->deleted ? 'd' : 'm';
    f.results++;
    f.checkpoint = result->checkpoint;
    f.status = result->status;
    snprintf(f.text, sizeof f.text, "%s",
             result->status == MUSTER_OK ? result->path : result->text);
}

static int setup(void **state)
{
    (void)state;
    f = (struct fixture){.results = 0};
    scratch_make(f.directory);
    if (dir_prepare(f.directory, "words", NULL, NULL) != MUSTER_OK)
        return -1;
    return writer_create(f.directory, "words", done, NULL, &f.writer, NULL) != MUSTER_OK;
}

static int teardown(void **state)
{
    (void)state;
    (void)writer_destroy(&f.writer, 10000);
    scratch_remove(f.directory);
    return 0;
}

static void a_manifest_is_committed_before_destroy_returns(void **state)
{
    const struct manifest_shard shard = {.incarnation = 1};
    const struct manifest manifest = {.job = "words",
                                      .generation = 1,
                                      .round = 2,
                                      .step = 30,
                                      .layout = LAYOUT_REPLICATED,
                                      .world_size = 1,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .cause = "termination",
                                      .shards = &shard,
                                      .shard_count = 1};
    char path[FS_PATH_MAX], own[FS_PATH_MAX], *text = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(dir_round_open(f.directory, "words", 1, 2, 9, path, NULL), MUSTER_OK);
    assert_int_equal(shard_dir_begin(path, 0, 1, own, NULL), MUSTER_OK); /* no file in it */
    assert_int_equal(manifest_render(&manifest, &text, &size, NULL), MUSTER_OK);
    assert_int_equal(writer_manifest(f.writer, 2, text, size, NULL), MUSTER_OK);
    free(text); /* it was copied */
    (void)writer_destroy(&f.writer, 10000);
    assert_null(f.writer);
    assert_int_equal(f.results, 1);
    assert_int_equal(f.status, MUSTER_OK);
    assert_int_equal(f.checkpoint, 2);
    assert_string_equal(f.text, scratch_path(f.directory, "30"));
    assert_true(fs_is_dir(f.text));
}

static void a_text_that_is_no_manifest_is_reported_with_its_reason(void **state)
{
    (void)state;
    assert_int_equal(writer_manifest(f.writer, 7, "{}", 2, NULL), MUSTER_OK);
    (void)writer_destroy(&f.writer, 10000);
    assert_int_equal(f.results, 1);
    assert_int_equal(f.checkpoint, 7);
    assert_int_equal(f.status, MUSTER_E_CORRUPT);
    assert_true(strlen(f.text) > 0);
}

static void only_the_rounds_own_life_is_removed(void **state)
{
    char mine[FS_PATH_MAX], other[FS_PATH_MAX];

    (void)state;
    assert_int_equal(dir_round_open(f.directory, "words", 1, 3, 30, mine, NULL), MUSTER_OK);
    assert_int_equal(dir_round_open(f.directory, "words", 1, 4, 40, other, NULL), MUSTER_OK);
    assert_int_equal(writer_discard(f.writer, 1, 3, 30, NULL), MUSTER_OK);
    assert_int_equal(writer_discard(f.writer, 1, 4, 41, NULL), MUSTER_OK);
    (void)writer_destroy(&f.writer, 10000);
    assert_false(fs_exists(mine));
    assert_true(fs_is_dir(other));
    assert_int_equal(f.results, 0);
}

/* Round `round` with many files, under its final name. */
static void make_large(uint64_t round, char ret_path[FS_PATH_MAX])
{
    char path[FS_PATH_MAX];

    assert_int_equal(dir_round_open(f.directory, "words", 1, round, 9, path, NULL), MUSTER_OK);
    for (int i = 0; i < LARGE_FILES; i++)
        scratch_write(scratch_path(path, "%d", i), "", 0);
    assert_int_equal(fs_path(ret_path, NULL, "%s/%llu", f.directory, (unsigned long long)round),
                     MUSTER_OK);
    assert_int_equal(rename(path, ret_path), 0);
}

/* At the end of a process the newest checkpoint's manifest may have seconds. It can come too late
 * for one removal, if this thread is not run for so long; not for all of them. */
static void a_manifest_does_not_wait_for_a_removal_that_has_begun(void **state)
{
    char path[FS_PATH_MAX];
    bool overtook = false;

    (void)state;
    for (uint64_t round = 1; round <= 20 && !overtook; round++) {
        make_large(round, path);
        assert_int_equal(writer_delete(f.writer, 1, round, (int64_t)round, path, "", NULL),
                         MUSTER_OK);
        while (fs_exists(path))
            continue;
        assert_int_equal(writer_manifest(f.writer, 7, "{}", 2, NULL), MUSTER_OK);
        (void)writer_destroy(&f.writer, 10000);
        assert_int_equal(f.results, 2);
        overtook = strcmp(f.order, "md") == 0;
        f.results = 0;
        assert_int_equal(writer_create(f.directory, "words", done, NULL, &f.writer, NULL),
                         MUSTER_OK);
    }
    assert_true(overtook);
}

static void a_writer_without_work_starts_no_thread(void **state)
{
    (void)state;
    assert_false(writer_is_busy(f.writer));
    (void)writer_destroy(&f.writer, 10000);
    (void)writer_destroy(&f.writer, 10000); /* NULL by now */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_manifest_is_committed_before_destroy_returns),
        TEST(a_text_that_is_no_manifest_is_reported_with_its_reason),
        TEST(only_the_rounds_own_life_is_removed),
        TEST(a_manifest_does_not_wait_for_a_removal_that_has_begun),
        TEST(a_writer_without_work_starts_no_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
