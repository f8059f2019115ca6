/* A node without a broker: which checkpoint is the newest, and which numbers are taken. */
#include <muster/node.h>

#include "node/shard/dir.h"
#include "node/shard/shard.h"
#include "tests/support/scratch.h"
#include "tests/unit/node/local/alone_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEN_YEARS_MS (INT64_C(10) * 365 * 86400 * 1000)

static char directory[SCRATCH_PATH_MAX];
static muster_state_t *values;
static int64_t weight, weight_a_step;
static struct muster_node_options options;

static int setup(void **state)
{
    (void)state;
    scratch_make(directory);
    weight = 0;
    if (muster_state_create(&values, NULL) != MUSTER_OK ||
        muster_state_add_i64(values, "weight", &weight, NULL) != MUSTER_OK)
        return -1;
    options = alone_options(directory, values);
    options.save_every_steps = 2;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    muster_state_destroy(&values);
    scratch_remove(directory);
    return 0;
}

static int step(void *arg)
{
    (void)arg;
    weight += weight_a_step;
    return 0;
}

/* One life up to step `to`; returns the weight that it began with. */
static int64_t live(int64_t to, int64_t a_step)
{
    muster_node_t *node = NULL;
    struct muster_error err;
    int64_t began;

    weight = 0;
    weight_a_step = a_step;
    if (muster_node_open(&options, &node, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    began = weight;
    while (muster_node_total_run_calls(node) < to)
        if (muster_node_run(node, step, NULL, &err) != MUSTER_OK)
            fail_msg("%s", err.text);
    muster_node_close(&node, 0, NULL);
    return began;
}

static void move(const char *from, const char *to)
{
    assert_int_equal(rename(scratch_path(directory, "%s", from), scratch_path(directory, "%s", to)),
                     0);
}

static uint64_t round_of(const char *name)
{
    uint64_t generation = 0, round = 0;

    assert_true(dir_round_of(scratch_path(directory, "%s", name), "local", &generation, &round));
    return round;
}

static void is_of_ten_years_later(const char *name)
{
    const char *path = scratch_path(directory, "%s", name);
    struct manifest *manifest = NULL;
    char *text = NULL;
    size_t size;

    assert_int_equal(shard_manifest_read(path, &manifest, NULL), MUSTER_OK);
    manifest->created_unix_ms += TEN_YEARS_MS;
    assert_int_equal(manifest_render(manifest, &text, &size, NULL), MUSTER_OK);
    scratch_write(scratch_path(path, "manifest.json"), text, size);
    manifest_destroy(&manifest);
    free(text);
}

/* By the clock the later launch saved before, so it gave nothing up. */
static void of_equal_steps_the_later_launch_counts_whatever_the_clock_was(void **state)
{
    (void)state;
    assert_int_equal(live(5, 1), 0); /* saves 2 and 4 */
    move("4", ".muster/aside");
    assert_int_equal(live(5, 100), 2); /* from 2; saves 4 */
    move(".muster/aside", "4.1-9");
    is_of_ten_years_later("4.1-9");
    assert_int_equal(live(4, 1), 202);
}

/* A launch may save one step in two rounds. The list is in no order, so each has each name once. */
static void of_one_launch_the_later_round_counts(void **state)
{
    (void)state;
    assert_int_equal(live(5, 1), 0); /* saves 2 and 4 */
    move("4", ".muster/aside");
    scratch_remove(scratch_path(directory, "2"));
    options.save_every_steps = 1;
    assert_int_equal(live(5, 100), 0); /* saves 1 to 5, 4 in a later round */
    scratch_remove(scratch_path(directory, "5"));
    move(".muster/aside", "4.1-9");
    assert_true(round_of("4") > round_of("4.1-9"));
    assert_int_equal(live(4, 1), 400);
    move("4", ".muster/aside");
    move("4.1-9", "4");
    move(".muster/aside", "4.1-9");
    assert_int_equal(live(4, 1), 400);
}

static void copy_to(const char *to, const char *name)
{
    size_t size;
    char *text = scratch_read(scratch_path(directory, "4/%s", name), &size);

    scratch_write(scratch_path(to, "%s", name), text, size);
    free(text);
}

/* It was listed where it was made, and under its name a moment later. */
static void one_that_gets_its_name_meanwhile_is_restored_from_there(void **state)
{
    char made[FS_PATH_MAX];

    (void)state;
    live(5, 1); /* saves 2 and 4 */
    assert_int_equal(dir_round_path(directory, 1, round_of("4"), made, NULL), MUSTER_OK);
    assert_int_equal(mkdir(made, 0777), 0);
    copy_to(made, "ROUND");
    copy_to(made, "manifest.json"); /* and its shards are gone from there */
    assert_int_equal(live(5, 1), 4);
}

/* So a broker that is there again gives none of these numbers to another (R11.8). */
static void rounds_are_numbered_far_above_those_that_are_there(void **state)
{
    uint64_t first;

    (void)state;
    live(3, 1); /* saves 2 */
    first = round_of("2");
    assert_true(first > 1000);
    live(5, 1); /* saves 4 */
    assert_true(round_of("4") > first + 1000);
}

static void the_generation_of_a_damaged_checkpoint_is_not_used_again(void **state)
{
    uint64_t generation = 0, round = 0, damaged = 0;

    (void)state;
    live(3, 1);                      /* saves 2 */
    assert_int_equal(live(5, 1), 2); /* saves 4 */
    assert_true(dir_round_of(scratch_path(directory, "4"), "local", &damaged, &round));
    scratch_write(scratch_path(directory, "4/manifest.json"), "{", 1);
    options.restore_fallback = true;
    assert_int_equal(live(7, 1), 2); /* saves 4 once more, and 6 */
    assert_true(dir_round_of(scratch_path(directory, "6"), "local", &generation, &round));
    assert_int_equal(generation, damaged + 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(of_equal_steps_the_later_launch_counts_whatever_the_clock_was),
        T(of_one_launch_the_later_round_counts),
        T(one_that_gets_its_name_meanwhile_is_restored_from_there),
        T(rounds_are_numbered_far_above_those_that_are_there),
        T(the_generation_of_a_damaged_checkpoint_is_not_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
