/* Split tensors whose parts leave holes or overlap are found by the rank that saves last. */
#include "node/shard/shard_tiles.h"
#include "tests/unit/node/shard/shard_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#define LENGTH 12

static int64_t slices[LENGTH];

/* Rank `rank` saves [begin, end) of `whole`. Returns what the check then says, with this watch. */
static enum muster_status save_part(struct shard_job *f, uint64_t rank, const int64_t range[2],
                                    int64_t whole, struct safetensors_watch *watch,
                                    struct muster_error *err)
{
    struct shard_files files = {0};
    const struct shard_facts facts = {.job = JOB,
                                      .generation = 1,
                                      .round = 4,
                                      .step = 12,
                                      .layout = LAYOUT_SHARDED,
                                      .rank = rank,
                                      .incarnation = shard_job_incarnation(rank),
                                      .world_size = WORLD};
    muster_state_t *state = NULL;
    enum muster_status status;

    shard_job_must(muster_state_create(&state, err), err);
    shard_job_must(muster_state_add_split(state, "w", MUSTER_DTYPE_I64, &whole, 1, 0, range[0],
                                          range[1] - range[0], slices, err),
                   err);
    shard_job_must(shard_save_state(f->round_dir, &facts, state, NULL, &files, err), err);
    status = shard_tiles_check(f->round_dir, WORLD, state, watch, err);
    shard_files_clear(&files);
    muster_state_destroy(&state);
    return status;
}

static const struct row {
    int64_t ranges[WORLD][2];
    const char *says[2]; /* NULL: whole */
} rows[] = {
    {{{0, 4}, {4, 8}, {8, 12}}, {NULL}},
    {{{8, 12}, {0, 4}, {4, 8}}, {NULL}},
    {{{0, 12}, {12, 12}, {0, 0}}, {NULL}},
    {{{0, 4}, {4, 7}, {8, 12}}, {"slices 7 to 8 of 12", "rank 2 has 8 to 12"}},
    {{{0, 4}, {4, 8}, {8, 11}}, {"slices 11 to 12 of 12", "rank 2 has 8 to 11"}},
    {{{1, 4}, {4, 8}, {8, 12}}, {"slices 0 to 1 of 12", "rank 0 has 1 to 4"}},
    {{{0, 5}, {4, 8}, {8, 12}}, {"ranks 0 and 1 both save slice 4", "rank 1 has 4 to 8"}},
    {{{0, 4}, {0, 4}, {4, 12}}, {"ranks 0 and 1 both save slice 0", "rank 1 has 0 to 4"}},
};

/* Whichever rank `last` is. */
static void look_behind_the_last(struct shard_job *f, const struct row *row, uint64_t last,
                                 uint64_t nonce)
{
    struct muster_error err;

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, nonce, f->round_dir, &err), &err);
    for (uint64_t n = 1; n < WORLD; n++) {
        uint64_t rank = (last + n) % WORLD;
        assert_int_equal(save_part(f, rank, row->ranges[rank], LENGTH, NULL, &err), MUSTER_OK);
    }
    if (row->says[0] == NULL) {
        assert_int_equal(save_part(f, last, row->ranges[last], LENGTH, NULL, &err), MUSTER_OK);
    } else {
        assert_int_equal(save_part(f, last, row->ranges[last], LENGTH, NULL, &err), MUSTER_E_SAVE);
        assert_non_null(strstr(err.text, "tensor \"w\""));
        assert_non_null(strstr(err.text, row->says[0]));
        assert_non_null(strstr(err.text, row->says[1]));
    }
    shard_job_must(dir_remove_round(f->root, JOB, 1, 4, nonce, &err), &err);
}

static void a_hole_and_an_overlap_are_named_by_the_rank_that_saves_last(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (uint64_t last = 0; last < WORLD; last++)
            look_behind_the_last(*state, &rows[i], last, NONCE + WORLD * i + last);
}

static void ranks_that_do_not_agree_on_the_whole_are_named(void **state)
{
    static const int64_t ranges[WORLD][2] = {{0, 4}, {4, 8}, {8, 10}};
    struct shard_job *f = *state;
    struct muster_error err;

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    assert_int_equal(save_part(f, 0, ranges[0], LENGTH, NULL, &err), MUSTER_OK);
    assert_int_equal(save_part(f, 1, ranges[1], LENGTH, NULL, &err), MUSTER_OK);
    assert_int_equal(save_part(f, 2, ranges[2], 10, NULL, &err), MUSTER_E_SAVE);
    assert_non_null(strstr(err.text, "rank 0 splits 12 slices along axis 0, and rank 2 10"));
}

static bool yes(void *arg)
{
    (void)arg;
    return true;
}

/* Which has a hole, as nobody hears. */
static void a_look_at_many_shards_is_broken_off(void **state)
{
    static const int64_t ranges[WORLD][2] = {{0, 4}, {4, 8}, {8, 10}};
    struct shard_job *f = *state;
    struct interrupt interrupt = {.ask = yes, .asked_ms = 1};
    struct safetensors_watch watch = {.interrupt = &interrupt};
    struct muster_error err;

    shard_job_must(dir_round_open(f->root, JOB, 1, 4, NONCE, f->round_dir, &err), &err);
    assert_int_equal(save_part(f, 0, ranges[0], LENGTH, &watch, &err), MUSTER_OK);
    assert_int_equal(save_part(f, 1, ranges[1], LENGTH, &watch, &err), MUSTER_OK);
    assert_false(interrupt.said); /* not all are there */
    assert_int_equal(save_part(f, 2, ranges[2], LENGTH, &watch, &err), MUSTER_E_SAVE);
    assert_int_equal(err.code, ECANCELED);
    assert_true(interrupt.said);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, shard_job_make, shard_job_drop)
    const struct CMUnitTest tests[] = {
        T(a_hole_and_an_overlap_are_named_by_the_rank_that_saves_last),
        T(ranks_that_do_not_agree_on_the_whole_are_named),
        T(a_look_at_many_shards_is_broken_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
