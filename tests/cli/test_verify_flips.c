/* `muster verify` finds a changed bit at every position of manifest.json and of ROUND. */
#include "tests/support/db_fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tools/cmd_verify.c" /* NOLINT(bugprone-suspicious-include) */

int cmd_run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return -1;
}

#define JOB "words"
#define ROUND 7
#define GENERATION 1

static char root[SCRATCH_PATH_MAX], place[FS_PATH_MAX];
static struct db_fixture db;
static struct tool tool;

static void must(enum muster_status status, const struct muster_error *err)
{
    if (status != MUSTER_OK)
        fail_msg("%s", err->text);
}

static void commit(void)
{
    static const struct manifest_shard shard = {.rank = 0, .incarnation = 5};
    const struct manifest manifest = {.job = JOB,
                                      .generation = GENERATION,
                                      .round = ROUND,
                                      .step = 3,
                                      .layout = LAYOUT_REPLICATED,
                                      .world_size = 1,
                                      .epoch = -1,
                                      .step_in_epoch = -1,
                                      .data_position = -1,
                                      .total_run_calls = 3,
                                      .created_unix_ms = DB_T0,
                                      .cause = "policy",
                                      .metrics = "{\"loss\": 0.25}",
                                      .custom = "{\"who\": [\"me\", null]}",
                                      .resumed_known = true,
                                      .shards = &shard,
                                      .shard_count = 1};
    struct muster_error err;
    char round[FS_PATH_MAX], name[DIR_NAME_SIZE];
    char *text = NULL;
    size_t size = 0;

    must(dir_prepare(root, JOB, NULL, &err), &err);
    must(dir_round_open(root, JOB, GENERATION, ROUND, 99, round, &err), &err);
    dir_shard_name(shard.rank, shard.incarnation, name);
    must(fs_make_dirs(scratch_path(round, "%s", name), &err), &err);
    must(manifest_render(&manifest, &text, &size, &err), &err);
    must(dir_commit_as(root, NULL, text, size, place, &err), &err);
    free(text);
}

static int set_up(void **state)
{
    struct muster_error err;

    (void)state;
    scratch_make(root);
    commit();
    db_open(&db, scratch_path(root, "m.db"));
    db.job = JOB;
    db_job(&db, NULL);
    db_generation(&db, GENERATION, "world_size = 1, layout = 'replicated'");
    db_round(&db, ROUND, "state = 'committed', cause = 'policy', step = 3");
    db_checkpoint(
        &db, ROUND,
        "step = 3, layout = 'replicated', world_size = 1, shards_required = 1, epoch = -1,"
        " step_in_epoch = -1, data_position = -1, path = '%s'",
        place);
    tool.out = fopen("/dev/null", "we");
    snprintf(tool.job, sizeof tool.job, "%s", JOB);
    must(muster_client_open(scratch_path(root, "m.db"), 1000, &tool.client, &err), &err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    muster_client_close(&tool.client, NULL);
    fclose(tool.out);
    db_close(&db);
    scratch_remove(root);
    return 0;
}

static int64_t damaged(void)
{
    struct verify v = {.tool = &tool, .damages = json_array()};
    struct muster_error err = {.status = MUSTER_OK};
    bool any;

    must(verify_list(&v, ROUND, &any, &err), &err);
    assert_int_equal(v.checkpoints, 1);

    json_decref(v.damages);
    return v.damaged;
}

/* One bit at each position, another one at the next. */
static void flip_all(const char *file)
{
    const char *path = scratch_path(place, "%s", file);
    size_t size;
    char *text = scratch_read(path, &size);

    assert_true(size > 100);
    for (size_t i = 0; i < size; i++) {
        const char bit = (char)(1 << (i % 8));

        text[i] ^= bit;
        scratch_write(path, text, size);
        if (damaged() == 0)
            fail_msg("%s: bit %zu of byte %zu is not found", file, i % 8, i);
        text[i] ^= bit;
    }
    scratch_write(path, text, size);
    free(text);
    assert_int_equal(damaged(), 0);
}

static void a_changed_bit_of_a_manifest_is_found(void **state)
{
    (void)state;
    assert_int_equal(damaged(), 0);
    flip_all(MANIFEST_FILE_NAME);
}

/* All bits of all bytes, by who reads it for everybody (R11.9). */
static void no_reader_takes_a_changed_manifest(void **state)
{
    size_t size;
    char *text = scratch_read(scratch_path(place, MANIFEST_FILE_NAME), &size);

    (void)state;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct manifest *manifest = NULL;

        text[bit / 8] ^= (char)(1 << bit % 8);
        if (manifest_parse(text, size, &manifest, NULL) == MUSTER_OK)
            fail_msg("bit %zu of byte %zu: %s", bit % 8, bit / 8, text);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(text);
}

/* R11.9 */
static void a_changed_bit_of_a_round_file_is_found(void **state)
{
    (void)state;
    flip_all("ROUND");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_bit_of_a_manifest_is_found),
        cmocka_unit_test(no_reader_takes_a_changed_manifest),
        cmocka_unit_test(a_changed_bit_of_a_round_file_is_found),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
