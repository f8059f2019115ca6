/* Whoever asks for the newest checkpoint gets the same one, with a path that works: `muster
 * latest`, a broker's reader and a directory's reader, whatever a kill behind the commit has left.
 */
#include <muster/manager.h>

#include "node/shard/shard.h"
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOB "words"
#define QUERY_MS 20000

static char directory[SCRATCH_PATH_MAX], root[SCRATCH_PATH_MAX], listen_at[SCRATCH_PATH_MAX];
static struct db_fixture db;
static pid_t broker;

static void must(enum muster_status status, const struct muster_error *err)
{
    if (status != MUSTER_OK)
        fail_msg("%s", err->text);
}

enum { UNWRITTEN, UNNAMED, NAMED }; /* how far its writer came */

static void put(int round, int step, int how_far, const struct dir_names *names)
{
    static const struct manifest_shard shard = {.rank = 0, .incarnation = 5};
    const struct manifest manifest = {.job = JOB,
                                      .generation = 1,
                                      .round = (uint64_t)round,
                                      .step = step,
                                      .layout = LAYOUT_REPLICATED,
                                      .world_size = 1,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = step,
                                      .created_unix_ms = DB_T0,
                                      .cause = "policy",
                                      .shards = &shard,
                                      .shard_count = 1};
    struct muster_error err;
    char at[FS_PATH_MAX], name[DIR_NAME_SIZE], path[FS_PATH_MAX];
    char *text = NULL;
    size_t size = 0;

    must(dir_round_open(root, JOB, 1, (uint64_t)round, 99, at, &err), &err);
    dir_shard_name(shard.rank, shard.incarnation, name);
    must(fs_make_dirs(scratch_path(at, "%s", name), &err), &err);
    must(manifest_render(&manifest, &text, &size, &err), &err);
    if (how_far == UNNAMED)
        must(dir_commit_manifest(root, &manifest, text, size, &err), &err);
    if (how_far == NAMED)
        must(dir_commit_as(root, names, text, size, path, &err), &err);
    free(text);
}

static void record(int round, int step, const char *path)
{
    db_round(&db, round, "state = 'committed', cause = 'policy', step = %d", step);
    db_checkpoint(&db, round,
                  "step = %d, layout = 'replicated', world_size = 1, shards_required = 1,"
                  " path = '%s'",
                  step, path);
}

static int set_up(void **state)
{
    struct muster_error err;

    (void)state;
    scratch_make(directory);
    snprintf(root, sizeof root, "%s", scratch_path(directory, "checkpoints"));
    snprintf(listen_at, sizeof listen_at, "ipc://%s", scratch_path(directory, "s"));
    must(dir_prepare(root, JOB, NULL, &err), &err);
    db_open(&db, scratch_path(directory, "muster.db"));
    db.job = JOB;
    db_job(&db, "state = 'ended'");
    db_generation(&db, 1,
                  "state = 'ended', world_size = 1, layout = 'replicated', checkpoint_dir = '%s'",
                  root);
    put(3, 40, NAMED, NULL);
    record(3, 40, "40");
    return 0;
}

static void start_broker(void)
{
    db_close(&db);
    broker = db_broker(MUSTERD_PATH, directory);
}

static int tear_down(void **state)
{
    (void)state;
    if (broker > 0) {
        kill(broker, SIGKILL);
        waitpid(broker, NULL, 0);
    }
    scratch_remove(directory);
    return 0;
}

/* "STEP PATH" */
static void by_reader(const char *of, char ret[2 * SCRATCH_PATH_MAX])
{
    struct muster_manager_options options = MUSTER_MANAGER_OPTIONS_INIT;
    const struct muster_checkpoint_info *info = NULL;
    muster_manager_t *manager = NULL;
    struct muster_error err;
    int64_t step = -1;

    options.broker = of;
    options.job = JOB;
    options.checkpoint_dir = of == NULL ? root : NULL;
    options.query_timeout_ms = QUERY_MS;
    must(muster_manager_open(&options, &manager, &err), &err);
    must(muster_manager_wait_for_new_checkpoint(manager, -1, QUERY_MS, &step, &err), &err);
    must(muster_manager_metadata(manager, MUSTER_STEP_LATEST, &info, sizeof *info, &err), &err);
    assert_int_equal(info->step, step); /* its manifest is there, too */
    snprintf(ret, 2 * SCRATCH_PATH_MAX, "%lld %s", (long long)step + 1, info->path);
    muster_manager_close(&manager, 0, &err);
}

static void by_tool(const char *place, char ret[2 * SCRATCH_PATH_MAX])
{
    char line[3 * SCRATCH_PATH_MAX];
    size_t size;
    char *text;

    snprintf(line, sizeof line,
             "cd '%s' && env -u MUSTER_BROKER -u MUSTER_JOB '%s' latest --job " JOB
             " %s --timeout 20 >output 2>notes",
             directory, MUSTER_PATH, place);
    assert_int_equal(system(line), 0);
    text = scratch_read(scratch_path(directory, "output"), &size);
    snprintf(ret, 2 * SCRATCH_PATH_MAX, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

static void all_say(const char *expected)
{
    char said[2 * SCRATCH_PATH_MAX];

    start_broker();
    by_tool("--broker ipc://s", said);
    assert_string_equal(said, expected);
    by_tool("--db muster.db", said);
    assert_string_equal(said, expected);
    by_reader(listen_at, said);
    assert_string_equal(said, expected);
    by_reader(NULL, said);
    assert_string_equal(said, expected);
}

static void all_say_40_and_the_tool_says_why(void)
{
    char expected[2 * SCRATCH_PATH_MAX];
    size_t size;
    char *notes;

    snprintf(expected, sizeof expected, "40 %s/40", root);
    all_say(expected);
    notes = scratch_read(scratch_path(directory, "notes"), &size);
    assert_non_null(strstr(notes, "step 47"));
    assert_non_null(strstr(notes, scratch_path(root, ".muster/1-4")));
    free(notes);
}

static void one_without_its_manifest_is_nobodys_newest(void **state)
{
    (void)state;
    put(4, 47, UNWRITTEN, NULL);
    record(4, 47, "");
    all_say_40_and_the_tool_says_why();
}

static void one_without_its_name_is_nobodys_newest(void **state)
{
    (void)state;
    put(4, 47, UNNAMED, NULL);
    record(4, 47, "");
    all_say_40_and_the_tool_says_why();
}

static void one_whose_name_was_never_told_is_everybodys(void **state)
{
    char expected[2 * SCRATCH_PATH_MAX];

    (void)state;
    put(4, 47, NAMED, NULL);
    record(4, 47, "");
    snprintf(expected, sizeof expected, "47 %s/47", root);
    all_say(expected);
}

static void so_is_one_that_its_job_names_otherwise(void **state)
{
    const struct dir_names names = {.prefix = "step_", .padding = 6, .offset = -1};
    char expected[2 * SCRATCH_PATH_MAX];

    (void)state;
    put(4, 47, NAMED, &names);
    record(4, 47, "");
    snprintf(expected, sizeof expected, "47 %s/step_000046", root);
    all_say(expected);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_without_its_manifest_is_nobodys_newest),
        TEST(one_without_its_name_is_nobodys_newest),
        TEST(one_whose_name_was_never_told_is_everybodys),
        TEST(so_is_one_that_its_job_names_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
