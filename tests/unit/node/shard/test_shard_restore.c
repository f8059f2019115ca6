/* What is restored from a checkpoint, to whom, and what is refused. */
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <muster/node.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void what_was_saved_and_is_not_wanted_is_named(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    char left[STATE_NAME_MAX + 1] = "?";
    struct shard_restore r;
    muster_state_t *other = NULL;
    int64_t value = 0;

    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    r = shard_job_request(f, 1);
    r.ret_left = left;
    shard_job_must(shard_restore(&r, NULL, &err), &err);
    assert_string_equal(left, "");
    assert_int_equal(muster_state_create(&other, NULL), MUSTER_OK);
    r.state = other; /* which wants nothing */
    shard_job_must(shard_restore(&r, NULL, &err), &err);
    assert_string_equal(left, "value");
    r.world_size = 2;
    left[0] = '?';
    shard_job_must(shard_restore(&r, NULL, &err), &err);
    assert_string_equal(left, "value");
    assert_int_equal(muster_state_add_i64(other, "other", &value, NULL), MUSTER_OK);
    r.world_size = WORLD;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE);
    assert_non_null(
        strstr(err.text, "\"other\" is not in the file; nothing was restored; leave it"));
    muster_state_destroy(&other);
}

/* --- restore ------------------------------------------------------------------------------- */

static void replicated_checkpoint_restores_at_every_rank_of_any_world(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct manifest *manifest = NULL;
    struct shard_restore r;

    f->manifest.layout = LAYOUT_REPLICATED;
    f->manifest.shard_count = 1;
    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    r = shard_job_request(f, 77);
    r.world_size = 100;
    f->value = -1;
    shard_job_must(shard_restore(&r, &manifest, &err), &err);
    assert_int_equal(f->value, 0);
    assert_int_equal(manifest->total_run_calls, 12);
    assert_int_equal(manifest->epoch, 1);
    assert_int_equal(manifest->step_in_epoch, 2);
    manifest_destroy(&manifest);
}

static void restore_refuses_what_was_not_asked_for(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
#define REFUSED(change, status, words)                            \
    do {                                                          \
        struct manifest *none = NULL;                             \
        r = shard_job_request(f, 1);                              \
        f->value = -1;                                            \
        change;                                                   \
        assert_int_equal(shard_restore(&r, &none, &err), status); \
        if (strstr(err.text, words) == NULL)                      \
            fail_msg("%s", err.text);                             \
        assert_int_equal(f->value, -1);                           \
        assert_null(none);                                        \
    } while (0)
    REFUSED(r.job = "other", MUSTER_E_JOB, "\"other\"");
    REFUSED(r.layout = LAYOUT_REPLICATED, MUSTER_E_LAYOUT,
            "set option layout to MUSTER_LAYOUT_SHARDED");
    REFUSED(r.step = 13, MUSTER_E_RESTORE, "step 12");
    REFUSED(r.round = 3, MUSTER_E_RESTORE, "round 4");
    REFUSED(r.world_size = 4, MUSTER_E_RESTORE, "\"value\" is not split");
    REFUSED(r.world_size = 4, MUSTER_E_RESTORE, "saved by 3 ranks, and to be restored by 4: ");
    REFUSED(r.rank = 3, MUSTER_E_RESTORE, "rank 3");
    REFUSED(r.state = NULL, MUSTER_E_ARGUMENT, "restore_fn");
    REFUSED(r.checkpoint_path = scratch_path(f->root, "13"), MUSTER_E_NOT_FOUND, "/13");
    REFUSED((assert_int_equal(unlink(scratch_path(f->path, "%s", f->files[1].files[0].path)), 0)),
            MUSTER_E_CORRUPT, "missing");
    REFUSED((scratch_flip_bit(scratch_path(f->path, "manifest.json"), 0, 0)), MUSTER_E_CORRUPT,
            "manifest.json");
    REFUSED((assert_int_equal(unlink(scratch_path(f->path, "manifest.json")), 0)), MUSTER_E_RESTORE,
            "unfinished");
#undef REFUSED
}

/* Random numbers, say: of three ranks, each with its own. */
static void what_is_a_ranks_own_comes_back_to_its_number_alone(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    shard_job_must(muster_state_set_own(f->state, "value", &err), &err);
    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    for (uint64_t world_size = 1; world_size <= WORLD + 1; world_size++)
        for (uint64_t rank = 0; rank < world_size && rank < WORLD; rank++) {
            r = shard_job_request(f, rank);
            r.world_size = world_size;
            f->value = -1;
            shard_job_must(shard_restore(&r, NULL, &err), &err);
            assert_int_equal(f->value, rank);
        }
    r.rank = WORLD; /* of four: nobody saved it */
    f->value = -1;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE);
    assert_non_null(
        strstr(err.text, "\"value\": it is each rank's own, and this rank's is not in"));
    assert_int_equal(f->value, -1);
}

static void layout_replicated_refuses_what_is_a_ranks_own_by_name(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct shard_files files = {0};
    struct muster_node_options options = MUSTER_NODE_OPTIONS_INIT;
    const struct shard_facts facts = {.job = JOB, .layout = LAYOUT_REPLICATED};
    struct shard_restore r;
    muster_node_t *node = NULL;

    f->manifest.layout = LAYOUT_REPLICATED;
    f->manifest.shard_count = 1;
    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    assert_int_equal(muster_state_set_own(f->state, "none", &err), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_state_set_own(NULL, "value", &err), MUSTER_E_ARGUMENT);
    shard_job_must(muster_state_set_own(f->state, "value", &err), &err);
#define REFUSED(call, status)                                                               \
    do {                                                                                    \
        assert_int_equal(call, status);                                                     \
        assert_non_null(                                                                    \
            strstr(err.text, "\"value\" is each rank's own, and layout replicated would")); \
    } while (0)
    r = shard_job_request(f, 0);
    f->value = -1;
    REFUSED(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE);
    assert_int_equal(f->value, -1);
    REFUSED(shard_save_state(f->round_dir, &facts, f->state, NULL, &files, &err), MUSTER_E_SAVE);
    options.job = JOB;
    options.rank = 0;
    options.world_size = 2;
    options.checkpoint_dir = f->root;
    options.state = f->state;
    REFUSED(muster_node_open(&options, &node, &err), MUSTER_E_ARGUMENT);
#undef REFUSED
}

static void damage_of_one_rank_is_found_at_that_rank_alone(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    shard_job_write_round(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    scratch_flip_bit(scratch_path(f->path, "%s", f->files[1].files[0].path), f->files[1].bytes - 1,
                     3);
    shard_job_assert_restores(f, 0, 0);
    shard_job_assert_restores(f, 2, 2);
    r = shard_job_request(f, 1);
    f->value = -1;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, f->files[1].files[0].path));
    assert_int_equal(f->value, -1);
}

static void manifest_cannot_send_a_rank_to_another_ranks_file(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct shard_restore r;

    shard_job_write_round(f);
    f->shards[1].files = f->files[0].files;
    free(f->text);
    shard_job_must(manifest_render(&f->manifest, &f->text, &f->text_size, &err), &err);
    shard_job_must(shard_job_commit(f, &err), &err);
    r = shard_job_request(f, 1);
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_CORRUPT);
    shard_job_assert_restores(f, 0, 0);
}

struct seen {
    int calls;
    int64_t step;
    char dir[FS_PATH_MAX], checkpoint_dir[FS_PATH_MAX];
    uint64_t world_size;
    int answer;
};

static int see(void *arg, const struct shard_found *found)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->step = found->step;
    seen->world_size = found->world_size;
    strcpy(seen->dir, found->dir != NULL ? found->dir : "");
    strcpy(seen->checkpoint_dir, found->checkpoint_dir);
    return seen->answer;
}

static void restore_fn_gets_the_directory_once_all_its_files_are_found_whole(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct seen seen = {0};
    struct shard_restore r;
    char dir[FS_PATH_MAX];

    f->manifest.layout = LAYOUT_REPLICATED;
    f->manifest.shard_count = 1;
    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    shard_job_must(shard_dir_begin(f->round_dir, 0, shard_job_incarnation(0), dir, &err), &err);
    scratch_write(scratch_path(dir, "a"), "abc", 3);
    scratch_write(scratch_path(dir, "b"), "def", 3);
    shard_job_must(shard_dir_seal(f->round_dir, 0, shard_job_incarnation(0), NULL, CHECKSUM_XXH3,
                                  &f->files[0], &err),
                   &err);
    shard_job_render(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    r = shard_job_request(f, 2);
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE); /* a state is not its kind */
    assert_non_null(strstr(err.text, "save_fn"));
    r.state = NULL;
    r.restore_fn = see;
    r.arg = &seen;
    shard_job_must(shard_restore(&r, NULL, &err), &err);
    assert_int_equal(seen.step, 12);
    assert_string_equal(seen.dir, scratch_path(f->path, "shard-00000-000000000000abc0"));
    seen.answer = 5;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE);
    assert_int_equal(err.code, 5);
    assert_int_equal(seen.calls, 2);
    scratch_flip_bit(scratch_path(seen.dir, "b"), 1, 1);
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_CORRUPT);
    assert_non_null(strstr(err.text, "/b "));
    assert_int_equal(seen.calls, 2);
}

static void save_fn_that_wrote_no_file_commits_and_restores(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct seen seen = {0};
    struct shard_restore r;
    char dir[FS_PATH_MAX];

    f->manifest.layout = LAYOUT_REPLICATED;
    f->manifest.shard_count = 1;
    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    shard_job_must(shard_dir_begin(f->round_dir, 0, shard_job_incarnation(0), dir, &err), &err);
    shard_job_must(shard_dir_seal(f->round_dir, 0, shard_job_incarnation(0), NULL, CHECKSUM_XXH3,
                                  &f->files[0], &err),
                   &err);
    shard_job_render(f);
    shard_job_must(shard_job_commit(f, &err), &err);
    shard_job_must(shard_job_commit(f, &err), &err);
    r = shard_job_request(f, 0);
    r.state = NULL;
    r.restore_fn = see;
    r.arg = &seen;
    shard_job_must(shard_restore(&r, NULL, &err), &err);
    assert_int_equal(seen.calls, 1);
}

/* Each rank writes a file of its own. */
static void write_by_save_fn(struct shard_job *f)
{
    struct muster_error err = {0};
    char dir[FS_PATH_MAX];

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    for (uint64_t rank = 0; rank < WORLD; rank++) {
        uint64_t incarnation = shard_job_incarnation(rank);
        shard_job_must(shard_dir_begin(f->round_dir, rank, incarnation, dir, &err), &err);
        scratch_write(scratch_path(dir, "part"), "abc", 3);
        shard_job_must(shard_dir_seal(f->round_dir, rank, incarnation, NULL, CHECKSUM_XXH3,
                                      &f->files[rank], &err),
                       &err);
    }
    shard_job_render(f);
    shard_job_must(shard_job_commit(f, &err), &err);
}

static enum muster_status restore_in_world(struct shard_job *f, uint64_t world_size, uint64_t rank,
                                           struct seen *ret_seen, struct muster_error *ret_err)
{
    struct shard_restore r = shard_job_request(f, rank);

    *ret_seen = (struct seen){.calls = 0};
    r.state = NULL;
    r.restore_fn = see;
    r.arg = ret_seen;
    r.world_size = world_size;
    r.any_world_size = true;
    return shard_restore(&r, NULL, ret_err);
}

static void assert_holds(const char *path, const char *text)
{
    size_t size;
    char *content = scratch_read(path, &size);

    assert_string_equal(content, text);
    free(content);
}

static void restore_fn_that_reads_any_world_size_gets_the_whole_checkpoint(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct seen seen;

    write_by_save_fn(f);
    for (uint64_t world_size = 1; world_size <= 2 * WORLD; world_size++)
        for (uint64_t rank = 0; rank < world_size; rank++) {
            shard_job_must(restore_in_world(f, world_size, rank, &seen, &err), &err);
            assert_int_equal(seen.calls, 1);
            assert_string_equal(seen.checkpoint_dir, f->path);
            assert_int_equal(seen.world_size, WORLD);
            if (rank < WORLD)
                assert_holds(scratch_path(seen.dir, "part"), "abc");
            else
                assert_string_equal(seen.dir, "");
        }
}

static void and_each_file_is_verified_by_some_rank_before(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct seen seen;

    write_by_save_fn(f);
    scratch_flip_bit(scratch_path(f->path, "%s", f->files[2].files[0].path), 1, 1);
    for (uint64_t world_size = 1; world_size <= 2 * WORLD; world_size++) {
        int found = 0;
        for (uint64_t rank = 0; rank < world_size; rank++)
            found += restore_in_world(f, world_size, rank, &seen, &err) == MUSTER_E_CORRUPT;
        assert_true(found > 0);
    }
}

static void another_world_size_is_refused_to_a_restore_fn_that_does_not_say_so(void **state)
{
    struct shard_job *f = *state;
    struct muster_error err = {0};
    struct seen seen = {.calls = 0};
    struct shard_restore r;

    write_by_save_fn(f);
    r = shard_job_request(f, 0);
    r.state = NULL;
    r.restore_fn = see;
    r.arg = &seen;
    r.world_size = 2;
    assert_int_equal(shard_restore(&r, NULL, &err), MUSTER_E_RESTORE);
    assert_non_null(strstr(err.text, "restore_any_world_size"));
    assert_int_equal(seen.calls, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        T(replicated_checkpoint_restores_at_every_rank_of_any_world),
        T(what_was_saved_and_is_not_wanted_is_named),
        T(restore_refuses_what_was_not_asked_for),
        T(what_is_a_ranks_own_comes_back_to_its_number_alone),
        T(layout_replicated_refuses_what_is_a_ranks_own_by_name),
        T(damage_of_one_rank_is_found_at_that_rank_alone),
        T(manifest_cannot_send_a_rank_to_another_ranks_file),
        T(restore_fn_gets_the_directory_once_all_its_files_are_found_whole),
        T(save_fn_that_wrote_no_file_commits_and_restores),
        T(restore_fn_that_reads_any_world_size_gets_the_whole_checkpoint),
        T(and_each_file_is_verified_by_some_rank_before),
        T(another_world_size_is_refused_to_a_restore_fn_that_does_not_say_so),
    };

    return cmocka_run_group_tests_name("shard_restore", tests, NULL, NULL);
}
