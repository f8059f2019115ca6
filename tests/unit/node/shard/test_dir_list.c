/* The list of a directory's checkpoints for who asks what is newer than one: by the names first. */
#include "node/shard/dir_list.h"
#include "schema/manifest/manifest.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEGAN_S INT64_C(1700000000)
#define SUM "xxh3-128:00112233445566778899aabbccddeeff"

static char root[SCRATCH_PATH_MAX];
static struct arena arena;
static struct dir_list list;
static const struct dir_names plain = {.padding = 0};

static int make(void **state)
{
    (void)state;
    scratch_make(root);
    mkdir(scratch_path(root, ".muster"), 0777);
    arena_init(&arena, 0);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    dir_list_free(&list);
    arena_free(&arena);
    scratch_remove(root);
    return 0;
}

static void put_saved(const char *name, uint64_t generation, int64_t step, int64_t created_unix_ms)
{
    static const struct wire_file file = {"shard-00000-0000000000000032.safetensors", 30, SUM};
    const struct manifest_shard shard = {0, 50, &file, 1};
    const struct manifest manifest = {.job = "train",
                                      .generation = generation,
                                      .round = (uint64_t)step,
                                      .step = step,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 1,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = step,
                                      .created_unix_ms = created_unix_ms,
                                      .cause = "policy",
                                      .shards = &shard,
                                      .shard_count = 1};
    struct muster_error err;
    char *text = NULL;
    size_t size = 0;

    if (manifest_render(&manifest, &text, &size, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    mkdir(scratch_path(root, "%s", name), 0777);
    scratch_write(scratch_path(root, "%s/" MANIFEST_FILE_NAME, name), text, size);
    free(text);
}

static void put(const char *name, uint64_t generation, int64_t step)
{
    put_saved(name, generation, step, BEGAN_S * 1000 + step);
}

/* open(2) fails, as where a sector cannot be read. */
static void make_unreadable(const char *name)
{
    const char *path = scratch_path(root, "%s/" MANIFEST_FILE_NAME, name);

    remove(path);
    assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
}

static void write_round(const char *name, const char *text)
{
    scratch_write(scratch_path(root, "%s/ROUND", name), text, strlen(text));
}

/* Of launch 1, whose files were written a minute after its first. */
static void put_damaged(const char *name)
{
    const struct timespec times[] = {{.tv_sec = BEGAN_S + 60}, {.tv_sec = BEGAN_S + 60}};

    put(name, 1, 1);
    write_round(name, "muster_round 1\njob train\ngeneration 1\nround 7\n"
                      "nonce 00000000000000ff\n");
    make_unreadable(name);
    utimensat(AT_FDCWD, scratch_path(root, "%s/" MANIFEST_FILE_NAME, name), times, 0);
    utimensat(AT_FDCWD, scratch_path(root, "%s/ROUND", name), times, 0);
}

static void read_above(int64_t above)
{
    struct muster_error err;

    dir_list_free(&list);
    if (dir_list_read_above(root, "train", &plain, above, &arena, &list, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
}

static bool has(int64_t step)
{
    for (size_t i = 0; i < list.count; i++)
        if (list.launches[i].step == step)
            return true;
    return false;
}

/* R11.6 */
static void what_is_not_newer_by_its_name_is_not_looked_at_while_nothing_is(void **state)
{
    (void)state;
    put("20", 1, 20);
    put("40", 1, 40);
    put("40.3-3", 3, 40);
    put("a copy of 10", 1, 10);
    make_unreadable("20");
    read_above(40);
    assert_int_equal(list.count, 1);
    assert_true(has(10)); /* a name that tells nothing: the manifest does */
    assert_int_equal(list.damaged_count, 0);
    put("60", 1, 60);
    read_above(60);
    assert_int_equal(list.count, 1);
}

static void older_ones_that_cannot_be_read_are_passed_over_where_something_is_newer(void **state)
{
    (void)state;
    put("20", 1, 20);
    put("30", 1, 30);
    put("40", 1, 40);
    put("60", 1, 60);
    put("a copy of 50", 1, 50);
    make_unreadable("20");
    make_unreadable("40");
    read_above(40);
    assert_int_equal(list.count, 3);
    assert_true(has(30) && has(50) && has(60));
    assert_int_equal(list.damaged_count, 0);
}

/* 40 was gone back to, and 50 saved since: who looks above 50 knows it, as who looks at all of
 * them. */
static void what_a_launch_gave_up_that_saved_no_more_steps_does_not_count(void **state)
{
    int64_t step = 0;

    (void)state;
    put("40", 1, 40);
    put("70", 1, 70);
    put_damaged("60");
    read_above(40);
    assert_true(has(70) && list.launches[0].counts);
    assert_true(dir_list_counts(&list, &list.damaged[0], "train", &plain, &step));
    put_saved("50", 2, 50, (BEGAN_S + 300) * 1000);
    read_above(50);
    assert_int_equal(list.damaged_count, 1);
    assert_false(dir_list_counts(&list, &list.damaged[0], "train", &plain, &step));
    for (size_t i = 0; i < list.count; i++)
        assert_int_equal(list.launches[i].counts, list.launches[i].step != 70);
    assert_true(has(70));
    assert_int_equal(rename(scratch_path(root, "70"), scratch_path(root, ".muster/1-70")), 0);
    assert_int_equal(rename(scratch_path(root, "60"), scratch_path(root, ".muster/trash")), 0);
    read_above(50); /* without its name alone */
    assert_int_equal(list.count, 3);
    for (size_t i = 0; i < list.count; i++)
        assert_int_equal(list.launches[i].counts, list.launches[i].step != 70);
}

/* R11.6 */
static void one_without_its_name_is_found_and_what_is_being_deleted_is_not(void **state)
{
    (void)state;
    put(".muster/3-70", 3, 70);
    put(".muster/trash-3-80-00000000000000ff", 3, 80);
    put(".muster/3-90x", 3, 90);
    mkdir(scratch_path(root, ".muster/4-100"), 0777); /* being written */
    read_above(-1);
    assert_int_equal(list.count, 1);
    assert_true(has(70));
    assert_int_equal(list.damaged_count, 0);
}

static void who_reads_all_has_those_without_their_name_first_and_each_error(void **state)
{
    struct muster_error err;

    (void)state;
    put("40", 1, 40);
    put(".muster/3-70", 3, 70);
    put(".muster/trash-3-80-00000000000000ff", 3, 80);
    mkdir(scratch_path(root, ".muster/4-100"), 0777); /* being written */
    assert_int_equal(dir_list_read_all(root, "train", &arena, &list, &err), MUSTER_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.launches[0].step, 70);
    assert_true(has(40));
    dir_list_free(&list);
    assert_int_equal(dir_list_read_all(root, "other", &arena, &list, &err), MUSTER_OK);
    assert_int_equal(list.count, 0);
    make_unreadable(".muster/3-70");
    assert_int_equal(dir_list_read_all(root, "train", &arena, &list, &err), MUSTER_E_IO);
    assert_non_null(strstr(err.text, ".muster/3-70"));
    assert_int_equal(dir_list_read_all(scratch_path(root, "none"), "train", &arena, &list, &err),
                     MUSTER_E_NOT_FOUND);
    scratch_remove(scratch_path(root, ".muster"));
    assert_int_equal(dir_list_read_all(root, "train", &arena, &list, &err), MUSTER_OK);
    assert_int_equal(list.count, 1);
}

static void what_cannot_be_read_is_damaged_and_no_error(void **state)
{
    int64_t step = 0;
    struct muster_error err;

    (void)state;
    put("60", 2, 60);
    put("80", 2, 80);
    write_round("80", "muster_round 1\njob train\ngeneration 2\nround 7\nnonce 00000000000000ff\n");
    make_unreadable("80");
    assert_int_equal(dir_list_read(root, "train", &arena, &list, &err), MUSTER_E_IO);
    read_above(40);
    assert_true(has(60));
    assert_int_equal(list.damaged_count, 1);
    assert_true(dir_list_counts(&list, &list.damaged[0], "train", &plain, &step));
    assert_int_equal(step, 80);
    assert_int_equal(list.damaged[0].generation, 2);
    assert_int_equal(list.damaged[0].round, 7);
}

static void a_directory_that_is_not_there_is_told_apart(void **state)
{
    struct muster_error err;

    (void)state;
    assert_int_equal(
        dir_list_read_above(scratch_path(root, "none"), "train", &plain, 0, &arena, &list, &err),
        MUSTER_E_NOT_FOUND);
    assert_int_equal(rmdir(scratch_path(root, ".muster")), 0);
    read_above(0); /* that of another tool */
    assert_int_equal(list.count, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        T(what_is_not_newer_by_its_name_is_not_looked_at_while_nothing_is),
        T(older_ones_that_cannot_be_read_are_passed_over_where_something_is_newer),
        T(what_a_launch_gave_up_that_saved_no_more_steps_does_not_count),
        T(one_without_its_name_is_found_and_what_is_being_deleted_is_not),
        T(who_reads_all_has_those_without_their_name_first_and_each_error),
        T(what_cannot_be_read_is_damaged_and_no_error),
        T(a_directory_that_is_not_there_is_told_apart),
    };

    return cmocka_run_group_tests_name("dir_list", tests, NULL, NULL);
}
