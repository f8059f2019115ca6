/* The list of a directory breaks off, as on a disk that fails or a network file system: what was
 * not read is not taken for what is not there. Each listing call fails in turn. */
#include "node/shard/dir.h"
#include "tests/faults/file_calls.h"
#include "tests/support/scratch.h"
#include "tools/run/supervise_progress.h"
#include "tools/tool.h"
#include "tools/verbs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[SCRATCH_PATH_MAX];
static struct dir_made made;

int cmd_run(int argc, char **argv);
int cmd_run(int argc, char **argv) /* what the tool is linked without */
{
    (void)argc, (void)argv;
    return 0;
}

static void put(const char *name, uint64_t round, int64_t step)
{
    static const struct wire_file file = {"shard-00000-0000000000000032.safetensors", 30,
                                          "xxh3-128:00112233445566778899aabbccddeeff"};
    const struct manifest_shard shard = {0, 50, &file, 1};
    const struct manifest manifest = {.job = "train",
                                      .generation = 1,
                                      .round = round,
                                      .step = step,
                                      .layout = LAYOUT_SHARDED,
                                      .world_size = 1,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = step,
                                      .created_unix_ms = 1700000000000,
                                      .cause = "policy",
                                      .shards = &shard,
                                      .shard_count = 1};
    char *text = NULL;
    size_t size = 0;

    assert_int_equal(manifest_render(&manifest, &text, &size, NULL), MUSTER_OK);
    mkdir(scratch_path(root, "%s", name), 0777);
    scratch_write(scratch_path(root, "%s/" MANIFEST_FILE_NAME, name), text, size);
    free(text);
}

static int setup(void **state)
{
    struct muster_error err;

    (void)state;
    scratch_make(root);
    if (dir_prepare(root, "train", &made, &err) != MUSTER_OK)
        return -1;
    put("20", 1, 20);
    put("40", 2, 40);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(root);
    return 0;
}

/* The at-th call fails. False: there are no more of them. */
static bool fails_at(uint64_t at, void (*act)(void))
{
    file_calls_plan(FILE_CALL_LIST, EIO, at, false);
    file_calls_begin();
    act();
    file_calls_end();
    return file_calls_hits() > 0;
}

static bool answered;
static int64_t step;

static void look_at_progress(void)
{
    step = 7;
    answered = progress_in_directory(root, "train", &step);
}

static void the_newest_step_is_not_known(void **state)
{
    uint64_t at = 1;

    (void)state;
    for (; fails_at(at, look_at_progress); at++) {
        assert_false(answered);
        assert_int_equal(step, 7);
    }
    assert_true(answered && at > 4);
    assert_int_equal(step, 40);
}

static struct muster_error why;

static void prepare_for_another(void)
{
    assert_int_equal(dir_prepare(root, "other", NULL, &why), MUSTER_E_JOB);
}

static void nobody_is_told_to_remove_it(void **state)
{
    uint64_t at = 1;

    (void)state;
    for (; fails_at(at, prepare_for_another); at++)
        assert_null(strstr(why.text, "no checkpoint is in it"));
    assert_true(at > 4);
}

static void take_back(void)
{
    dir_take_back(root, &made);
}

static void what_is_in_it_is_not_taken_back(void **state)
{
    uint64_t at = 1;

    (void)state;
    for (; fails_at(at, take_back); at++) {
        assert_true(scratch_exists(scratch_path(root, ".muster/JOB")));
        assert_true(scratch_exists(scratch_path(root, ".muster/NUMBER")));
    }
    assert_true(at > 2);
}

static int code;

static void import(void)
{
    struct tool tool = {.verb = "import", .args = {root}, .args_count = 1, .timeout_ms = 50};
    char *text = NULL;
    size_t size = 0;

    tool.out = open_memstream(&text, &size);
    assert_int_equal(muster_client_open("ipc:///tmp/muster-no-broker", 50, &tool.client, NULL),
                     MUSTER_OK);
    code = cmd_import(&tool);
    muster_client_close(&tool.client, NULL);
    fclose(tool.out);
    free(text);
}

static void nothing_is_imported(void **state)
{
    uint64_t at = 1;

    (void)state;
    put(".muster/1-3", 3, 60);
    for (; fails_at(at, import); at++)
        assert_int_equal(code, TOOL_NO);
    assert_true(at > 8);
    assert_int_equal(code, TOOL_UNREACHABLE); /* there is all that the broker would be told */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_newest_step_is_not_known),
        TEST(nobody_is_told_to_remove_it),
        TEST(what_is_in_it_is_not_taken_back),
        TEST(nothing_is_imported),
    };

    return cmocka_run_group_tests_name("broken_lists", tests, NULL, NULL);
}
