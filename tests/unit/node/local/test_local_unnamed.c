/* A node without a broker where a checkpoint was committed and has no name yet: its writer was
 * killed behind the manifest, or a power cut took the name back. */
#include <muster/node.h>

#include "node/shard/dir.h"
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

static char directory[SCRATCH_PATH_MAX], said[4096];
static muster_state_t *values;
static int64_t weight;
static struct muster_node_options options;

static void take_line(int level, const char *text, void *arg)
{
    (void)arg;
    if (level <= 2)
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

static int setup(void **state)
{
    (void)state;
    scratch_make(directory);
    weight = 0;
    said[0] = '\0';
    if (muster_state_create(&values, NULL) != MUSTER_OK ||
        muster_state_add_i64(values, "weight", &weight, NULL) != MUSTER_OK)
        return -1;
    options = alone_options(directory, values);
    options.save_every_steps = 2;
    options.log = take_line;
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
    weight++;
    return 0;
}

/* One life: it resumes from step `from`, and goes on up to `to`. */
static void live(int64_t from, int64_t to)
{
    muster_node_t *node = NULL;
    struct muster_error err;

    weight = 0;
    if (muster_node_open(&options, &node, &err) != MUSTER_OK)
        fail_msg("%s", err.text);
    assert_int_equal(muster_node_resumed_step(node), from);
    assert_int_equal(weight, from);
    while (muster_node_total_run_calls(node) < to)
        if (muster_node_run(node, step, NULL, &err) != MUSTER_OK)
            fail_msg("%s", err.text);
    muster_node_close(&node, 0, NULL);
}

static bool there_is(const char *name)
{
    return scratch_exists(scratch_path(directory, "%s/manifest.json", name));
}

/* Where it is then. */
static const char *take_name(const char *root, const char *name, const char *job)
{
    const char *named = scratch_path(root, "%s", name), *unnamed;
    uint64_t generation = 0, round = 0;

    assert_true(dir_round_of(named, job, &generation, &round));
    unnamed = scratch_path(directory, ".muster/%llu-%llu", (unsigned long long)generation,
                           (unsigned long long)round);
    assert_int_equal(rename(named, unnamed), 0);
    return unnamed;
}

/* R11.8 */
static void it_gets_its_name_and_is_resumed_from(void **state)
{
    const char *unnamed;

    (void)state;
    live(0, 5); /* saves 2 and 4 */
    unnamed = take_name(directory, "4", "local");
    live(4, 4);
    assert_true(there_is("4"));
    assert_false(scratch_exists(unnamed));
    assert_non_null(strstr(said, "step 4 was committed and had no name yet"));

    take_name(directory, "4", "local"); /* another has taken the name since */
    assert_int_equal(mkdir(scratch_path(directory, "4"), 0777), 0);
    live(4, 7);
    assert_false(scratch_exists(unnamed));
    assert_true(there_is("6"));
}

/* It counts by its manifest, as one with a name does (R11.8). */
static void a_damaged_one_is_an_error_or_with_fallback_the_older_is_taken(void **state)
{
    muster_node_t *node = NULL;
    struct muster_error err;
    const char *unnamed;
    char command[SCRATCH_PATH_MAX + 64];

    (void)state;
    live(0, 5);
    unnamed = take_name(directory, "4", "local");
    snprintf(command, sizeof command, "for s in %s/*.safetensors; do echo x >>$s; done", unnamed);
    assert_int_equal(system(command), 0);
    assert_int_equal(muster_node_open(&options, &node, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, unnamed));
    assert_non_null(strstr(said, "step 4 was committed and cannot be given its name"));
    assert_true(scratch_exists(unnamed));
    options.restore_fallback = true;
    live(2, 5);
    assert_true(there_is("4"));
    options.restore_fallback = false; /* that launch gave it up, for its number is above it */
    live(4, 4);
}

/* Of another job, or with a manifest of another round. */
static void what_is_not_of_this_job_and_round_is_left_where_it_is(void **state)
{
    char other[SCRATCH_PATH_MAX];
    const char *theirs, *moved = scratch_path(directory, ".muster/900-900");

    (void)state;
    live(0, 5);
    assert_int_equal(rename(take_name(directory, "2", "local"), moved), 0);
    scratch_make(other);
    options.job = "other";
    options.checkpoint_dir = other;
    options.save_every_steps = 6;
    live(0, 7);
    options.job = "local";
    options.checkpoint_dir = directory;
    theirs = take_name(other, "6", "other");
    live(4, 4);
    assert_true(scratch_exists(theirs));
    assert_true(scratch_exists(moved));
    assert_false(there_is("2"));
    assert_false(there_is("6"));
    scratch_remove(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_gets_its_name_and_is_resumed_from),
        TEST(a_damaged_one_is_an_error_or_with_fallback_the_older_is_taken),
        TEST(what_is_not_of_this_job_and_round_is_left_where_it_is),
    };

    return cmocka_run_group_tests_name("local_unnamed", tests, NULL, NULL);
}
